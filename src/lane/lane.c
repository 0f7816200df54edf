/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward and backward of a network's stages, for groups of up to 16 samples. plan.c has the layout,
 * layers.c the stages that are neither products nor maps.
 */
#include "lane/workspace.h"

#include <string.h>

/* ---- forward ---- */

/* Copies the samples to the first boundary, one per lane. Lanes without a sample repeat the first
 * sample: they have no gradient, but must not hold an infinity. */
static void gather(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                   uint32_t count) {
    const fds__boundary *b = &lane->bounds[0];
    const float *from[FDS__LANES];
    const uint32_t lanes = (uint32_t)b->column, width = b->shape.width, height = b->shape.height;
    for (uint32_t l = 0; l < FDS__LANES; l++)
        from[l] = inputs->values + members[l < count ? l : 0] * inputs->size;
    if (lanes == FDS__LANES && b->pad == 0) { /* no borders: one long row */
        lane->kernels->rows_to_lanes(from, 0, inputs->size, b->value);
        return;
    }
    size_t at = 0;
    for (uint32_t n = 0; n < b->shape.channels * height; n++, at += width) {
        float *row = b->value + b->origin + n / height * b->plane + n % height * b->row;
        if (lanes == FDS__LANES) {
            lane->kernels->rows_to_lanes(from, at, width, row);
            continue;
        }
        for (uint32_t w = 0; w < width; w++)
            for (uint32_t l = 0; l < lanes; l++)
                row[w * lanes + l] = from[l][at + w];
    }
}

static uint32_t row_vectors(const fds__boundary *b) {
    return (uint32_t)(lane_round_up(b->shape.width * b->column) / FDS__LANES);
}

/* Computes rows of the output, from first on. */
static void conv_forward(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                         const fds__boundary *out, const float *weights, uint32_t first,
                         uint32_t rows) {
    const fds__layer *l = s->layer;
    const uint32_t k = l->kernel;
    lane->kernels->product(&(fds__product){
        .tile = s->forward,
        .rows = l->out.channels,
        .vectors = row_vectors(out),
        .w = weights + l->weight,
        .w_row = (size_t)l->in.channels * k * k,
        .x = in->value + first * in->row,
        .y = out->value + first * out->row,
        .y_row = out->plane,
        .taps = {l->in.channels, k, k},
        .w_tap = {(size_t)k * k, k, 1},
        .x_tap = {in->plane, in->row, in->column},
        .start = FDS__START_BIAS,
        .bias = weights + l->bias,
        .repeat = {rows, 1, 1},
        .x_repeat = {in->row},
        .y_repeat = {out->row},
    });
}

static fds__map map_of(const fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                       const fds__boundary *out) {
    return (fds__map){
        .channels = out->shape.channels,
        .height = out->shape.height,
        .width = out->shape.width,
        .pool = s->pool,
        .lanes = lane->lanes,
        .relu = s->relu,
        .x = in->value,
        .x_plane = in->plane,
        .x_row = in->row,
        .x_column = in->column,
        .y = out->value + out->origin,
        .y_plane = out->plane,
        .y_row = out->row,
        .y_column = out->column,
        .dy = out->grad + out->origin,
        .dx = in->grad,
    };
}

/* A convolution and the map after it, one row of windows at a time: the map finds what the
 * convolution has written in the first-level cache. Rows that no window covers are not computed. */
static void conv_map_forward(fds_lane *lane, uint32_t i, const float *weights) {
    const lane_stage *conv = &lane->stages[i], *s = conv + 1;
    const fds__boundary *in = &lane->bounds[conv->in], *mid = &lane->bounds[i + 1], *out = mid + 1;
    if (conv->unfolded) {
        lane_fold_weights(conv, weights);
        weights = conv->weights_own;
    }
    fds__map map = map_of(lane, s, mid, out);
    map.height = 1;
    if (conv->is_wide)
        lane_winograd_filters(lane, conv, weights);
    for (uint32_t h = 0, done = 0; h < out->shape.height; h++) {
        if (!conv->is_wide)
            conv_forward(lane, conv, in, mid, weights, h * s->pool, s->pool);
        for (; conv->is_wide && done < (h + 1) * s->pool; done += 2)
            lane_winograd_forward(lane, conv, in, mid, weights, done / 2);
        lane->kernels->map_forward(&map);
        map.x += s->pool * mid->row;
        map.y += out->row;
    }
}

static void fc_forward(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                       const fds__boundary *out, const float *weights) {
    const fds__layer *l = s->layer;
    lane->kernels->product(&(fds__product){
        .tile = s->forward,
        .rows = l->out.channels,
        .vectors = 1,
        .w = weights + l->weight,
        .w_row = l->in.channels,
        .x = in->value,
        .y = out->value,
        .y_row = FDS__LANES,
        .taps = {1, 1, l->in.channels},
        .w_tap = {0, 0, 1},
        .x_tap = {0, 0, FDS__LANES},
        .start = FDS__START_BIAS,
        .bias = weights + l->bias,
        .repeat = {1, 1, 1},
    });
    if (s->relu)
        lane->kernels->relu_forward(out->value, (size_t)l->out.channels * FDS__LANES);
}

/* One stage of the group at work. A convolution does the map after it too. */
static void forward_stage(fds_lane *lane, uint32_t i, const float *weights) {
    const lane_stage *s = &lane->stages[i];
    const fds__boundary *in = &lane->bounds[s->in], *out = &lane->bounds[i + 1];
    fds__map map;
    switch (s->kind) {
    case LANE_STAGE_CONV:
        conv_map_forward(lane, i, weights);
        break;
    case LANE_STAGE_MAP:
        map = map_of(lane, s, in, out);
        lane->kernels->map_forward(&map);
        break;
    case LANE_STAGE_FC:
        fc_forward(lane, s, in, out, weights);
        break;
    default:
        lane_layer_forward(lane, i, weights);
    }
}

static uint32_t groups_of(size_t count) {
    return (uint32_t)((count + FDS__LANES - 1) / FDS__LANES);
}

/* The samples of group g when all groups have count. */
static uint32_t size_of(size_t count, size_t g) {
    return (uint32_t)MIN(count - g * FDS__LANES, (size_t)FDS__LANES);
}

/* All groups of the count members through all stages; group 0 is at work afterwards. */
static void forward(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members, size_t count,
                    const float *weights) {
    const uint32_t groups = groups_of(count);
    for (uint32_t g = 0; g < groups; g++) {
        const uint32_t size = size_of(count, g);
        uint32_t lanes = lane->net->is_plain ? 1 : FDS__LANES;
        while (lanes < size)
            lanes *= 2;
        lane_use_group(lane, g);
        lane_lay_out(lane, lanes);
        gather(lane, inputs, members + g * FDS__LANES, size);
        if (lane->is_training && !lane->net->is_plain)
            lane_drop_draw(lane, inputs, members + g * FDS__LANES, size);
    }
    for (uint32_t i = 0; i < lane->stage_count;
         i += lane->stages[i].kind == LANE_STAGE_CONV ? 2 : 1) {
        if (lane->stages[i].kind == LANE_STAGE_NORM)
            lane_norm_measure(lane, i, weights, count);
        for (uint32_t g = 0; g < groups; g++) {
            lane_use_group(lane, g);
            forward_stage(lane, i, weights);
        }
    }
    lane_use_group(lane, 0);
}

void fds__lane_forward(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                       uint32_t count, const float *weights) {
    lane->is_training = false;
    forward(lane, inputs, members, count, weights);
}

/* ---- backward ---- */

/* input_grad for 16 lanes and usual filters. Otherwise one position (i, j) of the window at a time:
 * a product sums over output channels and adds to the shifted row of the input's gradient. */
static void conv_backward_input(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                                const fds__boundary *out, const float *weights) {
    const fds__layer *l = s->layer;
    const uint32_t k = l->kernel;
    const size_t filter = (size_t)l->in.channels * k * k;
    if (s->is_wide) {
        lane_winograd_backward_input(lane, s, in, out, weights);
        return;
    }
    if (lane->lanes == FDS__LANES && k > 1 && k <= FDS__INPUT_KERNEL) {
        lane->kernels->input_grad(&(fds__input_grad){
            .out_channels = l->out.channels,
            .in_channels = l->in.channels,
            .kernel = k,
            .rows = l->out.height,
            .columns = l->out.width,
            .w = weights + l->weight,
            .dy = out->grad,
            .dy_plane = out->plane,
            .dy_row = out->row,
            .dx = in->grad,
            .dx_plane = in->plane,
            .dx_row = in->row,
        });
        return;
    }
    memset(in->grad, 0, l->in.channels * in->plane * sizeof(float));
    lane->kernels->product(&(fds__product){
        .tile = s->backward,
        .rows = l->in.channels,
        .vectors = row_vectors(out),
        .w = weights + l->weight,
        .w_row = (size_t)k * k,
        .x = out->grad,
        .y = in->grad,
        .y_row = in->plane,
        .taps = {1, 1, l->out.channels},
        .w_tap = {0, 0, filter},
        .x_tap = {0, 0, out->plane},
        .start = FDS__START_Y,
        .repeat = {l->out.height, k, k},
        .w_repeat = {0, k, 1},
        .x_repeat = {out->row, 0, 0},
        .y_repeat = {in->row, in->row, in->column},
    });
}

/* each: receives every lane's own gradients (fds__lane_backward_each), or NULL. */
static void conv_backward(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                          const fds__boundary *out, const float *weights, bool add, float *each) {
    const fds__layer *l = s->layer;
    const uint32_t vectors = row_vectors(out);
    const size_t filters = (size_t)l->out.channels * l->in.channels * l->kernel * l->kernel;
    float *biases = each ? each + filters * FDS__LANES : lane->scratch;
    float *grad = s->unfolded ? s->grad_own : lane->grad;
    const bool adds = add && !s->unfolded;
    if (s->is_wide && !each)
        lane_winograd_backward_filters(lane, s, in, out, add);
    else
        lane->kernels->filter_grad(&(fds__filter_grad){
            .out_channels = l->out.channels,
            .in_channels = l->in.channels,
            .kernel = l->kernel,
            .rows = l->out.height,
            .vectors = vectors,
            .dy = out->grad,
            .dy_plane = out->plane,
            .dy_row = out->row,
            .x = in->value,
            .x_plane = in->plane,
            .x_row = in->row,
            .shift = in->column,
            .add = adds,
            .grad = grad + l->weight,
            .partial = lane->scratch,
            .each = each,
        });
    lane->kernels->sum_planes(out->grad, l->out.channels, out->plane, out->row, l->out.height,
                              vectors, biases);
    if (!each)
        lane->kernels->sum_lanes(biases, l->out.channels, adds, grad + l->bias);
    if (s->unfolded && each)
        lane_fold_clear(s, each);
    else if (s->unfolded)
        lane_unfold_grad(s, add, lane->grad);
    if (s->input_grad)
        conv_backward_input(lane, s, in, out, s->unfolded ? s->weights_own : weights);
}

/* The gradient of the weights, 16 inputs per vector, from the transposed input. The remaining
 * inputs of a row, fewer than 16, go through a tail of whole vectors. */
static void fc_backward_weights(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                                const fds__boundary *out, uint32_t count, bool add) {
    const fds__layer *l = s->layer;
    const size_t inputs = l->in.channels, whole = inputs / FDS__LANES * FDS__LANES;
    const size_t row = lane_round_up(inputs);
    float *x = lane->scratch, *tail = x + FDS__LANES * row;
    lane->kernels->lanes_to_rows(in->value, inputs, x, row);
    fds__product p = {
        .tile = s->weights,
        .rows = l->out.channels,
        .vectors = (uint32_t)(whole / FDS__LANES),
        .w = out->grad,
        .w_row = FDS__LANES,
        .x = x,
        .y = lane->grad + l->weight,
        .y_row = inputs,
        .taps = {1, 1, count},
        .w_tap = {0, 0, 1},
        .x_tap = {0, 0, row},
        .start = add ? FDS__START_Y : FDS__START_ZERO,
        .repeat = {1, 1, 1},
    };
    if (whole)
        lane->kernels->product(&p);
    if (whole == inputs)
        return;
    p.tile = s->tail, p.vectors = 1, p.x = x + whole, p.y = tail, p.y_row = FDS__LANES;
    for (size_t o = 0; o < l->out.channels && add; o++)
        memcpy(tail + o * FDS__LANES, lane->grad + l->weight + o * inputs + whole,
               (inputs - whole) * sizeof(float));
    lane->kernels->product(&p);
    for (size_t o = 0; o < l->out.channels; o++)
        memcpy(lane->grad + l->weight + o * inputs + whole, tail + o * FDS__LANES,
               (inputs - whole) * sizeof(float));
}

/* The gradient of the inputs, 16 inputs per vector and one sample per row, then transposed. The
 * remaining inputs, fewer than 16, have one sample per lane. Both sum over the outputs in order. */
static void fc_backward_input(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                              const fds__boundary *out, const float *weights, uint32_t count) {
    const fds__layer *l = s->layer;
    const size_t inputs = l->in.channels, whole = inputs / FDS__LANES * FDS__LANES;
    const size_t row = lane_round_up(inputs);
    float *dx = lane->scratch;
    fds__product p = {
        .tile = s->backward,
        .rows = count,
        .vectors = (uint32_t)(whole / FDS__LANES),
        .w = out->grad,
        .w_row = 1,
        .x = weights + l->weight,
        .y = dx,
        .y_row = row,
        .taps = {1, 1, l->out.channels},
        .w_tap = {0, 0, FDS__LANES},
        .x_tap = {0, 0, inputs},
        .start = FDS__START_ZERO,
        .repeat = {1, 1, 1},
    };
    if (whole) {
        const float *rows[FDS__LANES];
        for (uint32_t n = 0; n < FDS__LANES; n++)
            rows[n] = dx + n * row;
        memset(dx + count * row, 0, (FDS__LANES - count) * row * sizeof(float));
        lane->kernels->product(&p);
        lane->kernels->rows_to_lanes(rows, 0, whole, in->grad);
    }
    if (whole < inputs) {
        p.tile = s->tail, p.rows = (uint32_t)(inputs - whole), p.vectors = 1;
        p.w = weights + l->weight + whole, p.w_row = 1, p.w_tap[2] = inputs;
        p.x = out->grad, p.x_tap[2] = FDS__LANES;
        p.y = in->grad + whole * FDS__LANES, p.y_row = FDS__LANES;
        lane->kernels->product(&p);
    }
}

static void fc_backward(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                        const fds__boundary *out, const float *weights, uint32_t count, bool add,
                        bool is_each) {
    const fds__layer *l = s->layer;
    if (s->relu)
        lane->kernels->relu_backward(out->value, out->grad, (size_t)l->out.channels * FDS__LANES);
    if (!is_each) {
        fc_backward_weights(lane, s, in, out, count, add);
        lane->kernels->sum_lanes(out->grad, l->out.channels, add, lane->grad + l->bias);
    }
    if (s->input_grad)
        fc_backward_input(lane, s, in, out, weights, count);
}

static void map_backward(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                         const fds__boundary *out) {
    fds__map map = map_of(lane, s, in, out);
    lane->kernels->map_backward(&map);
    /* the loss does not depend on what no window covers */
    lane_clear_around(in, in->grad, (size_t)out->shape.height * s->pool,
                      (size_t)out->shape.width * s->pool);
}

/* One stage of the group at work, which has count samples. */
static void backward_stage(fds_lane *lane, uint32_t i, const float *weights, uint32_t count,
                           bool add, float *const *each) {
    const lane_stage *s = &lane->stages[i];
    const fds__boundary *in = &lane->bounds[s->in], *out = &lane->bounds[i + 1];
    switch (s->kind) {
    case LANE_STAGE_CONV:
        conv_backward(lane, s, in, out, weights, add, each ? each[i] : NULL);
        break;
    case LANE_STAGE_MAP:
        if (s->input_grad)
            map_backward(lane, s, in, out);
        break;
    case LANE_STAGE_FC:
        fc_backward(lane, s, in, out, weights, count, add, each != NULL);
        break;
    case LANE_STAGE_EMBED:
        lane_embed_backward(lane, i, count, add);
        break;
    default:
        if (s->input_grad)
            lane_layer_backward(lane, i, weights, count);
    }
}

/* The mini-batch's mean takes back what the bias adds: its gradient is 0 and nothing but rounding is
 * computed, which Adam would turn into whole steps. */
static void clear_bias(fds_lane *lane, const lane_stage *s) {
    const fds__layer *l = s->unfolded ? s->unfolded : s->layer;
    if (lane->stages[s->normalised_by].is_batch)
        memset(lane->grad + l->bias, 0, l->out.channels * sizeof(float));
}

/* All groups of count samples through all stages; group 0 is at work afterwards. */
static void backward(fds_lane *lane, const float *weights, size_t count, bool add,
                     float *const *each) {
    for (uint32_t i = lane->stage_count; i-- > 0;) {
        if (lane->stages[i].kind == LANE_STAGE_NORM)
            lane_norm_sum(lane, i, count);
        for (uint32_t g = 0; g < groups_of(count); g++) {
            lane_use_group(lane, g);
            backward_stage(lane, i, weights, size_of(count, g), add || g > 0, each);
        }
        if (lane->stages[i].normalised_by)
            clear_bias(lane, &lane->stages[i]);
    }
    lane_use_group(lane, 0);
}

/* Probabilities to the gradient of the mean loss: (p - 1[label]) / batch, 0 in empty lanes. */
static void loss_gradient(fds_lane *lane, uint32_t count, size_t batch) {
    const fds__boundary *logits = &lane->bounds[lane->stage_count];
    const float scale = 1.0f / (float)batch;
    for (uint32_t k = 0; k < lane->net->classes; k++) {
        const float *p = logits->value + k * FDS__LANES;
        float *d = logits->grad + k * FDS__LANES;
        for (uint32_t l = 0; l < FDS__LANES; l++)
            d[l] = l < count ? (p[l] - (lane->labels[l] == k ? 1.0f : 0.0f)) * scale : 0.0f;
    }
}

/* Of a regression: the squared error, returned, and its gradient 2 (z - target) / batch. */
static double squared_error(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                            uint32_t count, size_t batch) {
    const fds__boundary *last = &lane->bounds[lane->stage_count];
    const float scale = 2.0f / (float)batch;
    double loss = 0;
    for (uint32_t l = 0; l < FDS__LANES; l++) {
        float away = l < count ? last->value[l] - inputs->targets[members[l]] : 0.0f;
        last->grad[l] = away * scale;
        loss += (double)away * (double)away;
    }
    return loss;
}

/* Forward and backward for count members, a part of a mini-batch of batch samples. */
static double backprop(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                       size_t count, size_t batch, const float *weights, bool add) {
    double loss = 0;
    forward(lane, inputs, members, count, weights);
    for (uint32_t g = 0; g < groups_of(count); g++) {
        const uint32_t size = size_of(count, g);
        lane_use_group(lane, g);
        if (lane->net->is_regression) {
            loss += squared_error(lane, inputs, members + g * FDS__LANES, size, batch);
            continue;
        }
        for (uint32_t l = 0; l < size; l++)
            lane->labels[l] = inputs->labels[members[g * FDS__LANES + l]];
        lane->kernels->softmax(lane->bounds[lane->stage_count].value, lane->net->classes, size,
                               lane->labels, lane->losses);
        for (uint32_t l = 0; l < size; l++)
            loss += (double)lane->losses[l];
        loss_gradient(lane, size, batch);
    }
    backward(lane, weights, count, add, NULL);
    return loss;
}

/* The groups of a mini-batch go one after another, which keeps their numbers in the cache, unless
 * batchnorm needs all of them at once. */
double fds__lane_backprop(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                          size_t count, const float *weights) {
    const size_t part = lane->net->has_batchnorm ? count : FDS__LANES;
    double loss = 0;
    assert(groups_of(MIN(part, count)) <= lane->group_count);
    lane->is_training = true;
    for (size_t first = 0; first < count; first += part)
        loss += backprop(lane, inputs, members + first, MIN(count - first, part), count, weights,
                         first > 0);
    return loss;
}

void fds__lane_backward_each(fds_lane *lane, uint32_t output, const float *weights,
                             float *const *each) {
    float *d = lane->bounds[lane->stage_count].grad;
    for (size_t i = 0; i < (size_t)lane->net->classes * FDS__LANES; i++)
        d[i] = i / FDS__LANES == output ? 1.0f : 0.0f;
    backward(lane, weights, FDS__LANES, false, each);
}
