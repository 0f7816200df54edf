/* SPDX-License-Identifier: Apache-2.0
 *
 * The stages that are neither products nor maps. Networks that have them always compute 16 lanes, so
 * a row of a boundary is contiguous: (width, 16).
 */
#include "lane/workspace.h"

#include <math.h>
#include <string.h>

/* Where row h of channel c is, from the first pixel on. */
static float *row_at(const fds__boundary *b, float *buffer, uint32_t c, uint32_t h) {
    return buffer + b->origin + c * b->plane + h * b->row;
}

/* Row n, counted over all channels. */
static float *row_number(const fds__boundary *b, float *buffer, uint32_t n) {
    return row_at(b, buffer, n / b->shape.height, n % b->shape.height);
}

/* ---- folds: see plan.c ---- */

/* The pixel of the input at which (row, column) of a folded channel is; false in the padding. */
static bool fold_place(const lane_stage *s, uint32_t place, uint32_t offset, uint32_t size,
                       uint32_t *at) {
    *at = place * s->layer->stride + offset - s->layer->padding; /* wraps below 0 */
    return *at < size;
}

static void fold_forward(const lane_stage *s, const fds__boundary *in, const fds__boundary *out) {
    const uint32_t f = s->fold, height = in->shape.height, width = in->shape.width;
    for (uint32_t c = 0; c < out->shape.channels; c++)
        for (uint32_t i = 0; i < out->shape.height; i++) {
            float *to = row_at(out, out->value, c, i);
            uint32_t h, w;
            if (!fold_place(s, i, c / f % f, height, &h)) {
                memset(to, 0, out->row * sizeof *to);
                continue;
            }
            const float *from = row_at(in, in->value, c / f / f, h);
            for (uint32_t j = 0; j < out->shape.width; j++, to += FDS__LANES)
                if (fold_place(s, j, c % f, width, &w))
                    memcpy(to, from + w * FDS__LANES, FDS__LANES * sizeof *to);
                else
                    memset(to, 0, FDS__LANES * sizeof *to);
        }
}

/* A pixel is at one place of the folded channels at most: nothing adds up. */
static void fold_backward(const lane_stage *s, const fds__boundary *in, const fds__boundary *out) {
    const uint32_t f = s->fold, height = in->shape.height, width = in->shape.width;
    memset(in->grad, 0, in->shape.channels * in->plane * sizeof(float));
    for (uint32_t c = 0; c < out->shape.channels; c++)
        for (uint32_t i = 0; i < out->shape.height; i++) {
            const float *from = row_at(out, out->grad, c, i);
            uint32_t h, w;
            if (!fold_place(s, i, c / f % f, height, &h))
                continue;
            float *to = row_at(in, in->grad, c / f / f, h);
            for (uint32_t j = 0; j < out->shape.width; j++)
                if (fold_place(s, j, c % f, width, &w))
                    memcpy(to + w * FDS__LANES, from + j * FDS__LANES, FDS__LANES * sizeof *to);
        }
}

void lane_fold_plan(lane_stage *s) {
    const uint32_t k = s->folded.kernel, f = s->fold, stride = s->unfolded->stride;
    const uint32_t kernel = s->unfolded->kernel;
    for (uint32_t n = 0; n < s->folded.bias; n++) {
        const uint32_t j = n % k, i = n / k % k, b = n / k / k % f, a = n / k / k / f % f;
        const uint32_t filter = n / k / k / f / f; /* (o, c) */
        const uint32_t row = i * stride + a, column = j * stride + b;
        s->places[n] = row < kernel && column < kernel ? (filter * kernel + row) * kernel + column
                                                       : LANE_NO_PLACE;
    }
}

void lane_fold_weights(const lane_stage *s, const float *weights) {
    const fds__layer *l = s->unfolded;
    for (size_t n = 0; n < s->folded.bias; n++)
        s->weights_own[n] =
            s->places[n] == LANE_NO_PLACE ? 0.0f : weights[l->weight + s->places[n]];
    memcpy(s->weights_own + s->folded.bias, weights + l->bias, l->out.channels * sizeof(float));
}

void lane_unfold_grad(const lane_stage *s, bool add, float *grad) {
    const fds__layer *l = s->unfolded;
    float *filters = grad + l->weight, *biases = grad + l->bias;
    for (size_t n = 0; n < s->folded.bias; n++)
        if (s->places[n] != LANE_NO_PLACE)
            filters[s->places[n]] = (add ? filters[s->places[n]] : 0.0f) + s->grad_own[n];
    for (size_t o = 0; o < l->out.channels; o++)
        biases[o] = (add ? biases[o] : 0.0f) + s->grad_own[s->folded.bias + o];
}

void lane_fold_clear(const lane_stage *s, float *each) {
    for (size_t n = 0; n < s->folded.bias; n++)
        if (s->places[n] == LANE_NO_PLACE)
            memset(each + n * FDS__LANES, 0, FDS__LANES * sizeof *each);
}

/* ---- average pooling ---- */

/* A window's size: that of the layer, or the whole image. */
static void average_window(const lane_stage *s, uint32_t *height, uint32_t *width) {
    const bool is_global = s->layer->kind == FDS__LAYER_GLOBALPOOL;
    *height = is_global ? s->layer->in.height : s->layer->kernel;
    *width = is_global ? s->layer->in.width : s->layer->kernel;
}

static void average_forward(const fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                            const fds__boundary *out) {
    uint32_t height, width;
    average_window(s, &height, &width);
    for (uint32_t c = 0; c < out->shape.channels; c++)
        for (uint32_t h = 0; h < out->shape.height; h++) {
            const float *from = row_at(in, in->value, c, h * height);
            float *to = row_at(out, out->value, c, h);
            for (uint32_t w = 0; w < out->shape.width; w++)
                lane->layer_kernels->average(from + w * width * FDS__LANES, in->row, height, width,
                                             to + w * FDS__LANES);
        }
}

static void average_backward(const lane_stage *s, const fds__boundary *in,
                             const fds__boundary *out) {
    uint32_t height, width;
    average_window(s, &height, &width);
    const float scale = 1.0f / ((float)height * (float)width);
    memset(in->grad, 0, in->shape.channels * in->plane * sizeof(float));
    for (uint32_t c = 0; c < out->shape.channels; c++)
        for (uint32_t h = 0; h < out->shape.height * height; h++) {
            const float *from = row_at(out, out->grad, c, h / height);
            float *to = row_at(in, in->grad, c, h);
            for (uint32_t w = 0; w < out->shape.width * width; w++)
                for (uint32_t l = 0; l < FDS__LANES; l++)
                    to[w * FDS__LANES + l] = scale * from[w / width * FDS__LANES + l];
        }
}

/* ---- number by number ---- */

static void activate(const fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                     const fds__boundary *out) {
    const lane_layer_kernels *k = lane->layer_kernels;
    for (uint32_t n = 0; n < in->shape.channels * in->shape.height; n++)
        (s->kind == LANE_STAGE_TANH ? k->tanh_forward : k->gelu_forward)(
            row_number(in, in->value, n), row_number(out, out->value, n),
            (size_t)in->shape.width * FDS__LANES);
}

/* The slope of tanh follows from its output, that of gelu from its input. */
static void activate_backward(const fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                              const fds__boundary *out) {
    const lane_layer_kernels *k = lane->layer_kernels;
    const bool is_tanh = s->kind == LANE_STAGE_TANH;
    for (uint32_t n = 0; n < in->shape.channels * in->shape.height; n++)
        (is_tanh ? k->tanh_backward : k->gelu_backward)(
            is_tanh ? row_number(out, out->value, n) : row_number(in, in->value, n),
            row_number(out, out->grad, n), row_number(in, in->grad, n),
            (size_t)in->shape.width * FDS__LANES);
}

/* ---- batchnorm ---- */

#define NORM_EPSILON 1e-5

/* One number per channel and sample is too little for a variance: such a mini-batch is normalised
 * with the running statistics, which it leaves as they are. */
static bool norm_uses_batch(const fds_lane *lane, const fds__boundary *b, size_t count) {
    return lane->is_training && count * b->shape.height * b->shape.width > 1;
}

/* A channel's sum over the samples of all groups, in the order of groups, then lanes; a lane's sum
 * is in the order of rows. is_squared: of the squared differences from the mean. */
static double norm_total(const fds_lane *lane, uint32_t in, uint32_t channel, size_t count,
                         double mean, bool is_squared) {
    double total = 0;
    for (size_t first = 0; first < count; first += FDS__LANES) {
        const fds__boundary *b = &lane->groups[first / FDS__LANES * (lane->stage_count + 1) + in];
        double sums[FDS__LANES] = {0};
        for (uint32_t h = 0; h < b->shape.height; h++)
            (is_squared ? lane->layer_kernels->sum_squares : lane->layer_kernels->sum)(
                row_at(b, b->value, channel, h), b->shape.width, mean, sums);
        for (uint32_t l = 0; l < MIN(count - first, (size_t)FDS__LANES); l++)
            total += sums[l];
    }
    return total;
}

void lane_norm_measure(fds_lane *lane, uint32_t i, const float *weights, size_t count) {
    lane_stage *s = &lane->stages[i];
    const fds__boundary *b = &lane->groups[s->in];
    const uint32_t channels = b->shape.channels;
    const double n = (double)count * b->shape.height * b->shape.width;
    const float *means = weights + s->layer->mean, *variances = weights + s->layer->variance;
    s->is_batch = norm_uses_batch(lane, b, count);
    for (uint32_t c = 0; c < channels; c++) {
        double mean = (double)means[c], variance = (double)variances[c], unbiased = variance;
        if (s->is_batch) {
            mean = norm_total(lane, s->in, c, count, 0, false) / n;
            const double squares = norm_total(lane, s->in, c, count, mean, true);
            variance = squares / n;
            unbiased = squares / (n - 1);
        }
        if (lane->is_training) {
            lane->grad[s->layer->mean + c] = (float)mean;
            lane->grad[s->layer->variance + c] = (float)unbiased;
        }
        s->norm[c] = mean;
        s->norm[channels + c] = 1.0 / sqrt(variance + NORM_EPSILON);
    }
}

static void norm_forward(const fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                         const fds__boundary *out, const float *weights) {
    const float *scale = weights + s->layer->weight, *shift = weights + s->layer->bias;
    const double *mean = s->norm, *inverse = mean + in->shape.channels;
    for (uint32_t n = 0; n < in->shape.channels * in->shape.height; n++) {
        const uint32_t c = n / in->shape.height;
        lane->layer_kernels->normalise(
            row_number(in, in->value, n), mean[c], (double)scale[c] * inverse[c], (double)shift[c],
            row_number(out, out->value, n), (size_t)in->shape.width * FDS__LANES);
    }
}

void lane_norm_sum(fds_lane *lane, uint32_t i, size_t count) {
    const lane_stage *s = &lane->stages[i];
    const uint32_t channels = s->out.channels;
    const double n = (double)count * s->out.height * s->out.width;
    for (uint32_t c = 0; c < channels; c++) {
        double total[2] = {0}; /* of dy, and of dy (x - mean) */
        for (size_t first = 0; first < count; first += FDS__LANES) {
            const fds__boundary *group =
                lane->groups + first / FDS__LANES * (lane->stage_count + 1);
            const fds__boundary *in = &group[s->in], *out = &group[i + 1];
            double sums[2][FDS__LANES] = {{0}};
            for (uint32_t h = 0; h < s->out.height; h++)
                lane->layer_kernels->sum_products(row_at(out, out->grad, c, h),
                                                  row_at(in, in->value, c, h), s->out.width,
                                                  s->norm[c], sums[0], sums[1]);
            for (uint32_t l = 0; l < MIN(count - first, (size_t)FDS__LANES); l++)
                total[0] += sums[0][l], total[1] += sums[1][l];
        }
        total[1] *= s->norm[channels + c];
        lane->grad[s->layer->bias + c] = (float)total[0];
        lane->grad[s->layer->weight + c] = (float)total[1];
        s->norm[2 * channels + c] = total[0] / n;
        s->norm[3 * channels + c] = total[1] / n;
    }
}

/* dx = weight / deviation * (dy - mean of dy - x^ * mean of dy x^), x^ the normalised x. With the
 * running statistics, which do not depend on x, only the first term. Lanes without a sample must
 * have no gradient. */
static void norm_backward(const fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                          const fds__boundary *out, const float *weights, uint32_t count) {
    const uint32_t channels = in->shape.channels;
    const double *mean = s->norm, *inverse = mean + channels, *terms = inverse + channels;
    for (uint32_t n = 0; n < channels * in->shape.height; n++) {
        const uint32_t c = n / in->shape.height;
        const double a = (double)weights[s->layer->weight + c] * inverse[c];
        const double share = s->is_batch ? a : 0.0;
        float *dx = row_number(in, in->grad, n);
        lane->layer_kernels->normalise_backward(
            row_number(in, in->value, n), row_number(out, out->grad, n), mean[c], a,
            share * terms[c], share * inverse[c] * terms[channels + c], dx,
            (size_t)in->shape.width * FDS__LANES);
        for (uint32_t w = 0; w < in->shape.width; w++)
            for (uint32_t l = count; l < FDS__LANES; l++)
                dx[w * FDS__LANES + l] = 0.0f;
    }
}

/* ---- dropout ---- */

/* A unit of a sample is dropped by a number that is a function of (seed, epoch, dropout layer,
 * sample, unit): neither the mini-batch nor the coalition matters. Lanes without a sample are 0. */
void lane_drop_draw(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                    uint32_t count) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        const lane_stage *s = &lane->stages[i];
        if (s->kind != LANE_STAGE_DROP)
            continue;
        const size_t units = fds__shape_size(s->out);
        const double rate = s->layer->rate / 1000.0;
        const float scale = (float)(1.0 / (1.0 - rate));
        float *mask = lane->bounds[i + 1].mask;
        memset(mask, 0, units * FDS__LANES * sizeof *mask);
        for (uint32_t l = 0; l < count; l++) {
            fds_rng rng =
                fds_rng_make(lane->seed, FDS__PURPOSE_DROPOUT, 256 * (uint64_t)lane->epoch + number,
                             fds__inputs_key(inputs, members[l]));
            for (size_t u = 0; u < units; u++)
                mask[u * FDS__LANES + l] = fds_rng_unit(&rng) < rate ? 0.0f : scale;
        }
        number++;
    }
}

/* Value forward, gradient backward: both are multiplied with the mask. */
static void drop(const fds_lane *lane, const fds__boundary *a, float *from, const fds__boundary *b,
                 float *to, const float *mask) {
    const size_t row = (size_t)a->shape.width * FDS__LANES;
    for (uint32_t n = 0; n < a->shape.channels * a->shape.height; n++)
        lane->layer_kernels->multiply(row_number(a, from, n), mask + n * row, row_number(b, to, n),
                                      row);
}

/* ---- embeddings ---- */

/* The vector of a token. lane_check_tokens has seen the numbers of training and prediction; many.c
 * checks nothing, and finds that the output is no number. */
static const float *vector_of(const lane_stage *s, float token, const float *weights) {
    const bool is_known = token > -0.5f && token < (float)s->layer->tokens - 0.5f;
    return is_known ? weights + (size_t)(token + 0.5f) * s->out.channels : NULL;
}

static void embed_forward(const lane_stage *s, const fds__boundary *in, const fds__boundary *out,
                          const float *weights) {
    const size_t tokens = fds__shape_size(in->shape), width = out->shape.width;
    for (size_t t = 0; t < tokens; t++)
        for (size_t l = 0; l < FDS__LANES; l++) {
            const float *from = vector_of(s, in->value[t * FDS__LANES + l], weights);
            float *to =
                out->value + out->origin + t / width * out->row + t % width * FDS__LANES + l;
            for (uint32_t d = 0; d < s->out.channels; d++)
                to[d * out->plane] = from ? from[d] : NAN;
        }
}

/* Tokens in order, the samples of each in the order of the lanes. */
void lane_embed_backward(fds_lane *lane, uint32_t i, uint32_t count, bool add) {
    const lane_stage *s = &lane->stages[i];
    const fds__boundary *in = &lane->bounds[s->in], *out = &lane->bounds[i + 1];
    const size_t tokens = fds__shape_size(in->shape), width = out->shape.width;
    float *grad = lane->grad + s->layer->weight;
    if (!add)
        memset(grad, 0, (size_t)s->layer->tokens * s->out.channels * sizeof *grad);
    for (size_t t = 0; t < tokens; t++)
        for (size_t l = 0; l < count; l++) {
            float *to = grad + (size_t)(in->value[t * FDS__LANES + l] + 0.5f) * s->out.channels;
            const float *from =
                out->grad + out->origin + t / width * out->row + t % width * FDS__LANES + l;
            for (uint32_t d = 0; d < s->out.channels; d++)
                to[d] += from[d * out->plane];
        }
}

/* ---- residual blocks ---- */

/* out = a, or a + b: all of one shape, each with its own layout. */
static void copy_rows(const fds__boundary *a, float *from, const fds__boundary *out, float *to) {
    for (uint32_t n = 0; n < out->shape.channels * out->shape.height; n++)
        memcpy(row_number(out, to, n), row_number(a, from, n),
               (size_t)out->shape.width * FDS__LANES * sizeof *to);
}

static void add_rows(const fds_lane *lane, const fds__boundary *a, float *from_a,
                     const fds__boundary *b, float *from_b, const fds__boundary *out, float *to) {
    for (uint32_t n = 0; n < out->shape.channels * out->shape.height; n++)
        lane->layer_kernels->add(row_number(a, from_a, n), row_number(b, from_b, n),
                                 row_number(out, to, n), (size_t)out->shape.width * FDS__LANES);
}

/* ---- all of them ---- */

void lane_layer_forward(fds_lane *lane, uint32_t i, const float *weights) {
    const lane_stage *s = &lane->stages[i];
    const fds__boundary *in = &lane->bounds[s->in], *out = &lane->bounds[i + 1];
    const fds__boundary *other = &lane->bounds[s->other];
    switch (s->kind) {
    case LANE_STAGE_FOLD:
        fold_forward(s, in, out);
        break;
    case LANE_STAGE_AVERAGE:
        average_forward(lane, s, in, out);
        break;
    case LANE_STAGE_NORM:
        norm_forward(lane, s, in, out, weights);
        break;
    case LANE_STAGE_EMBED:
        embed_forward(s, in, out, weights + s->layer->weight);
        break;
    case LANE_STAGE_DROP:
        if (lane->is_training)
            drop(lane, in, in->value, out, out->value, out->mask);
        else
            copy_rows(in, in->value, out, out->value);
        break;
    case LANE_STAGE_FORK:
        copy_rows(in, in->value, out, out->value);
        break;
    case LANE_STAGE_JOIN:
        add_rows(lane, in, in->value, other, other->value, out, out->value);
        break;
    default:
        activate(lane, s, in, out);
    }
}

void lane_layer_backward(fds_lane *lane, uint32_t i, const float *weights, uint32_t count) {
    const lane_stage *s = &lane->stages[i];
    const fds__boundary *in = &lane->bounds[s->in], *out = &lane->bounds[i + 1];
    const fds__boundary *other = &lane->bounds[s->other];
    switch (s->kind) {
    case LANE_STAGE_FOLD:
        fold_backward(s, in, out);
        break;
    case LANE_STAGE_AVERAGE:
        average_backward(s, in, out);
        break;
    case LANE_STAGE_NORM:
        norm_backward(lane, s, in, out, weights, count);
        break;
    case LANE_STAGE_DROP:
        if (lane->is_training)
            drop(lane, out, out->grad, in, in->grad, out->mask);
        else
            copy_rows(out, out->grad, in, in->grad);
        break;
    case LANE_STAGE_FORK:
        add_rows(lane, out, out->grad, other, other->grad, in, in->grad);
        break;
    case LANE_STAGE_JOIN:
        copy_rows(out, out->grad, in, in->grad);
        if (s->has_skip)
            copy_rows(out, out->grad, other, other->grad);
        break;
    default:
        activate_backward(lane, s, in, out);
    }
}
