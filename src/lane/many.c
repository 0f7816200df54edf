/* SPDX-License-Identifier: Apache-2.0
 *
 * A network evaluated with 16 sets of weights at a time: the plan of its steps, the layout of its
 * memory, and the order of the weights.
 *
 * The numbers between two steps are (channel, row, column, 16), with zeros around them where the
 * next step is a convolution that pads. Convolutions take one input at a time; every position uses
 * their weights again, so these are widened to floats once per group. Fully connected layers use a
 * weight once per input, so they take several inputs at a time and the weights as halves.
 *
 * A network that is not plain has no steps: the lane engine evaluates network after network, with
 * the inputs in its lanes.
 */
#include "base/isa.h"
#include "lane/many_kernel.h"
#include "lane/workspace.h"

#include <math.h>
#include <string.h>

_Static_assert(FDS__MANY_NETS == FDS__LANES, "one network per lane");

typedef struct {
    fds__layer_kind kind;    /* FDS__LAYER_CONV, FDS__LAYER_MAXPOOL, FDS__LAYER_FC */
    const fds__layer *layer; /* conv, fc */
    uint32_t window;         /* maxpool: 1 for none */
    bool relu;               /* afterwards */
    size_t weights;          /* offset in a group's weights, in vectors */
} step;

typedef struct {
    fds_shape shape;
    uint32_t pad;
    bool is_each;                    /* holds all inputs, not one at a time */
    size_t row, plane, origin, size; /* in floats; origin: offset of the first pixel */
    size_t at;                       /* offset in the scratch; unused for the network's input */
} bound;

struct fds__many {
    const fds_net *net;
    const fds__kernels *maps; /* pooling and softmax */
    const many_kernels *kernels;
    uint32_t *order; /* (weights) */
    uint32_t step_count, first_fc;
    step steps[FDS__MAX_LAYERS];
    bound bounds[FDS__MAX_LAYERS + 1]; /* step i takes bounds[i] to bounds[i + 1] */
    size_t conv_vectors;               /* weights of all convolutions, the first of a group's */
    size_t scratch; /* in floats: those weights widened, then the bounds. Not plain: the weights of
                     * one network, then probabilities (FDS__MANY_INPUTS, classes, 16) */
    unsigned workers;
    float **scratches; /* (workers) */
    fds_lane **lanes;  /* (workers), not plain */
};

/* ---- plan ---- */

/* Layers to steps: relu is part of the step before it. */
static void plan_steps(fds__many *many) {
    for (uint32_t i = 0; i < many->net->layer_count; i++) {
        const fds__layer *layer = &many->net->layers[i];
        bool is_relu = layer->kind == FDS__LAYER_RELU;
        if (is_relu && many->step_count)
            many->steps[many->step_count - 1].relu = true;
        else /* a relu as the first layer is a pooling of windows of 1 */
            many->steps[many->step_count++] =
                (step){.kind = is_relu ? FDS__LAYER_MAXPOOL : layer->kind,
                       .layer = layer,
                       .window = is_relu ? 1 : layer->kernel,
                       .relu = is_relu};
    }
    while (many->steps[many->first_fc].kind != FDS__LAYER_FC)
        many->first_fc++;
}

static void plan_bounds(fds__many *many) {
    many->scratch = many->conv_vectors * FDS__LANES;
    for (uint32_t i = 0; i <= many->step_count; i++) {
        bound *b = &many->bounds[i];
        const step *reader = i < many->step_count ? &many->steps[i] : NULL;
        b->shape = i ? many->steps[i - 1].layer->out : many->net->input;
        b->pad = reader && reader->kind == FDS__LAYER_CONV ? reader->layer->padding : 0;
        b->is_each = i == 0 || i >= many->first_fc;
        b->row = (size_t)(b->shape.width + 2 * b->pad) * FDS__LANES;
        b->plane = (b->shape.height + 2 * b->pad) * b->row;
        b->origin = b->pad * (b->row + FDS__LANES);
        b->size = b->shape.channels * b->plane;
        b->at = many->scratch;
        if (i)
            many->scratch += b->size * (b->is_each ? FDS__MANY_INPUTS : 1);
    }
}

/* The order of the weights: tile by tile, as the kernels read them. */
static void plan_weights(fds__many *many) {
    uint32_t *to = many->order;
    for (uint32_t i = 0; i < many->step_count; i++) {
        step *s = &many->steps[i];
        if (s->kind == FDS__LAYER_MAXPOOL)
            continue;
        const fds__layer *l = s->layer;
        bool is_conv = s->kind == FDS__LAYER_CONV;
        uint32_t rows = l->out.channels, taps = l->in.channels;
        taps *= is_conv ? l->kernel * l->kernel : 1;
        s->weights = (size_t)(to - many->order);
        for (uint32_t r = 0, a; r < rows; r += a) {
            a = many_tile(rows - r, is_conv ? MANY_FILTERS : MANY_OUTPUTS);
            for (uint32_t k = 0; k < a; k++)
                *to++ = (uint32_t)(l->bias + r + k);
            for (uint32_t t = 0; t < taps; t++)
                for (uint32_t k = 0; k < a; k++)
                    *to++ = (uint32_t)(l->weight + (size_t)(r + k) * taps + t);
        }
        if (is_conv) /* none comes after a fully connected layer */
            many->conv_vectors = (size_t)(to - many->order);
    }
}

static void plan_alone(fds__many *many) {
    const fds_net *net = many->net;
    for (uint32_t i = 0; i < net->weights; i++)
        many->order[i] = i;
    many->bounds[0].size = fds__shape_size(net->input);
    many->scratch = net->weights + FDS__MANY_INPUTS * (size_t)net->classes * FDS__LANES;
}

static fds_status fill_many(fds__many *many, const fds_net *net, fds_error *err) {
    fds__isa_set isa;
    TRY(fds__isa_choose(&isa, err));
    TRY(NEW(many->order, net->weights, err));
    TRY(NEW(many->scratches, many->workers, err));
    TRY(NEW(many->lanes, many->workers, err));
    many->net = net;
    many->maps = FDS__ISA_PICK(isa, fds__kernels);
    many->kernels = FDS__ISA_PICK(isa, many_kernels);
    if (net->is_plain) {
        plan_steps(many);
        plan_weights(many);
        plan_bounds(many);
    } else {
        plan_alone(many);
    }
    for (unsigned w = 0; w < many->workers; w++) {
        many->scratches[w] = fds__alloc_aligned(many->scratch * sizeof(float));
        if (!many->scratches[w])
            return fds__fail_nomem(err, many->scratch * sizeof(float));
        if (!net->is_plain)
            TRY(fds_lane_create(net, &many->lanes[w], err));
    }
    return FDS_OK;
}

fds_status fds__many_create(const fds_net *net, unsigned workers, fds__many **out, fds_error *err) {
    fds__many *many;
    TRY(NEW(many, 1, err));
    many->workers = workers;
    fds_status status = fill_many(many, net, err);
    if (status == FDS_OK)
        *out = many;
    else
        fds__many_free(many);
    return status;
}

void fds__many_free(fds__many *many) {
    if (!many)
        return;
    for (unsigned w = 0; w < many->workers; w++) {
        if (many->scratches)
            fds__free(many->scratches[w]);
        if (many->lanes)
            fds_lane_free(many->lanes[w]);
    }
    fds__free(many->scratches);
    fds__free(many->lanes);
    fds__free(many->order);
    fds__free(many);
}

const uint32_t *fds__many_order(const fds__many *many) { return many->order; }
size_t fds__many_input_size(const fds__many *many) { return many->bounds[0].size; }

void fds__many_spread(const fds__many *many, const float *sample, float *wide) {
    const bound *b = &many->bounds[0];
    if (!many->net->is_plain) {
        memcpy(wide, sample, b->size * sizeof *wide);
        return;
    }
    for (uint32_t c = 0; c < b->shape.channels; c++)
        for (uint32_t h = 0; h < b->shape.height; h++) {
            float *to = wide + b->origin + c * b->plane + h * b->row;
            for (uint32_t w = 0; w < b->shape.width; w++, sample++)
                for (int l = 0; l < FDS__LANES; l++)
                    *to++ = *sample;
        }
}

/* ---- evaluation ---- */

static void run_conv(const fds__many *many, const step *s, const bound *in, const bound *out,
                     const float *w, const float *x, float *y) {
    const fds__layer *l = s->layer;
    many->kernels->product(
        &(many_product){
            .rows = l->out.channels,
            .most = MANY_FILTERS,
            .taps = {l->in.channels, l->kernel, l->kernel},
            .x_tap = {in->plane, in->row, FDS__LANES},
            .columns = l->out.width,
            .lines = l->out.height,
            .x = x,
            .x_column = FDS__LANES,
            .x_line = in->row,
            .y = y + out->origin,
            .y_row = out->plane,
            .y_column = FDS__LANES,
            .y_line = out->row,
            .relu = s->relu,
        },
        w);
}

static void run_pool(const fds__many *many, const step *s, const bound *in, const bound *out,
                     const float *x, float *y) {
    many->maps->map_forward(&(fds__map){
        .channels = out->shape.channels,
        .height = out->shape.height,
        .width = out->shape.width,
        .pool = s->window,
        .lanes = FDS__LANES,
        .relu = s->relu,
        .x = x,
        .x_plane = in->plane,
        .x_row = in->row,
        .x_column = FDS__LANES,
        .y = y + out->origin,
        .y_plane = out->plane,
        .y_row = out->row,
        .y_column = FDS__LANES,
    });
}

/* The steps before the first fully connected layer, for input number i. */
static void run_image(const fds__many *many, const float *input, size_t i, float *scratch) {
    for (uint32_t k = 0; k < many->first_fc; k++) {
        const step *s = &many->steps[k];
        const bound *in = &many->bounds[k], *out = in + 1;
        const float *x = k ? scratch + in->at : input;
        float *y = scratch + out->at + (out->is_each ? i * out->size : 0);
        if (s->kind == FDS__LAYER_CONV)
            run_conv(many, s, in, out, scratch + s->weights * FDS__LANES, x, y);
        else
            run_pool(many, s, in, out, x, y);
    }
}

static void run_fc(const fds__many *many, uint32_t k, const uint16_t *weights, const float *x,
                   size_t count, float *y) {
    const step *s = &many->steps[k];
    many->kernels->product_half(
        &(many_product){
            .rows = s->layer->out.channels,
            .most = MANY_OUTPUTS,
            .taps = {1, 1, s->layer->in.channels},
            .x_tap = {0, 0, FDS__LANES},
            .columns = (uint32_t)count,
            .lines = 1,
            .x = x,
            .x_column = many->bounds[k].size,
            .y = y,
            .y_row = FDS__LANES,
            .y_column = many->bounds[k + 1].size,
            .relu = s->relu,
        },
        weights + s->weights * FDS__LANES);
}

/* The networks of a group one after another, each with all inputs in the lanes. */
static const float *run_alone(const fds__many *many, fds_lane *lane, const uint16_t *weights,
                              const float *inputs, size_t count, float *scratch) {
    const fds_net *net = many->net;
    const fds_inputs x = {.count = count, .size = many->bounds[0].size, .values = (float *)inputs};
    uint32_t members[FDS__MANY_INPUTS];
    float *own = scratch, *probs = scratch + net->weights;
    bool is_finite = true;
    for (uint32_t i = 0; i < count; i++)
        members[i] = i;
    unsigned before = fds__tiny_flush();
    for (uint32_t n = 0; n < FDS__MANY_NETS && is_finite; n++) {
        for (size_t w = 0; w < net->weights; w++)
            own[w] = (float)fds__half_to_double(weights[w * FDS__MANY_NETS + n]);
        fds__lane_forward(lane, &x, members, (uint32_t)count, own);
        float *z = lane->bounds[lane->stage_count].value; /* (classes, 16) */
        for (size_t i = 0; i < net->classes * count; i++)
            is_finite &= isfinite(z[i / count * FDS__LANES + i % count]);
        if (!net->is_regression)
            lane->kernels->softmax(z, net->classes, (uint32_t)count, NULL, NULL);
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < net->classes; k++)
                probs[(i * net->classes + k) * FDS__MANY_NETS + n] = z[k * FDS__LANES + i];
    }
    fds__tiny_restore(before);
    return is_finite ? probs : NULL;
}

static const float *run_together(const fds__many *many, const uint16_t *weights,
                                 const float *inputs, size_t count, float *scratch) {
    const bound *last = &many->bounds[many->step_count];
    many->kernels->widen(weights, many->conv_vectors, scratch);
    for (size_t i = 0; i < count; i++)
        run_image(many, inputs + i * many->bounds[0].size, i, scratch);
    for (uint32_t k = many->first_fc; k < many->step_count; k++)
        run_fc(many, k, weights, k ? scratch + many->bounds[k].at : inputs, count,
               scratch + many->bounds[k + 1].at);
    float *z = scratch + last->at;
    for (size_t i = 0; i < count * last->size; i++)
        if (!isfinite(z[i]))
            return NULL;
    for (size_t i = 0; i < count && !many->net->is_regression; i++)
        many->maps->softmax(z + i * last->size, many->net->classes, FDS__LANES, NULL, NULL);
    return z;
}

const float *fds__many_run(const fds__many *many, unsigned worker, const uint16_t *weights,
                           const float *inputs, size_t count) {
    float *scratch = many->scratches[worker];
    return many->net->is_plain
               ? run_together(many, weights, inputs, count, scratch)
               : run_alone(many, many->lanes[worker], weights, inputs, count, scratch);
}
