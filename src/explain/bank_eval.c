/* SPDX-License-Identifier: Apache-2.0
 *
 * A network evaluated with 16 sets of weights at a time: the plan of its steps, where everything
 * lies, and the order of the weights.
 *
 * What lies between two steps is (channel, row, column, 16), with zeros around it where the next
 * step is a convolution that pads. Convolutions are done input by input; their weights, which every
 * position needs again, are widened to floats once a group. Fully connected layers, which need a
 * weight once an input, are done for several inputs at a time and take the weights as they are.
 */
#include "explain/bank.h"

#include <math.h>
#include <string.h>

typedef struct {
    fds_layer_kind kind;    /* FDS_CONV, FDS_MAXPOOL, FDS_FC */
    const fds_layer *layer; /* conv, fc */
    uint32_t window;        /* maxpool: 1 for none */
    bool relu;              /* afterwards */
    size_t weights;         /* where those of a group begin, in vectors */
    size_t wide;            /* conv: where they begin once widened, in vectors */
} step;

typedef struct {
    fds_shape shape;
    uint32_t pad;
    bool is_each;                    /* kept for each of the inputs, not for one alone */
    size_t row, plane, origin, size; /* in floats; origin: of the first column within */
    size_t at;                       /* in the room; the inputs themselves lie elsewhere */
} bound;

struct fds_bank_net {
    const fds_net *net;
    const fds_kernels *maps; /* pooling and softmax */
    const fds_bank_kernels *kernels;
    uint32_t *order; /* (weights) */
    uint32_t step_count, first_fc;
    step steps[FDS_MAX_LAYERS];
    bound bounds[FDS_MAX_LAYERS + 1]; /* step i takes bounds[i] to bounds[i + 1] */
    size_t wide_vectors, room;        /* room: in floats, the widened weights first */
};

/* ---- plan ---- */

/* Layers to steps: relu goes with the step before it. */
static void plan_steps(fds_bank_net *bn) {
    for (uint32_t i = 0; i < bn->net->layer_count; i++) {
        const fds_layer *layer = &bn->net->layers[i];
        if (layer->kind == FDS_RELU && bn->step_count) {
            bn->steps[bn->step_count - 1].relu = true;
            continue;
        }
        step *s = &bn->steps[bn->step_count++];
        *s = (step){.kind = layer->kind, .layer = layer, .window = layer->kernel};
        if (layer->kind == FDS_RELU) /* the first of all: a pooling of single values */
            *s = (step){.kind = FDS_MAXPOOL, .layer = layer, .window = 1, .relu = true};
    }
    while (bn->steps[bn->first_fc].kind != FDS_FC)
        bn->first_fc++;
}

static void plan_bounds(fds_bank_net *bn) {
    bn->room = bn->wide_vectors * FDS_LANES;
    for (uint32_t i = 0; i <= bn->step_count; i++) {
        bound *b = &bn->bounds[i];
        const step *reader = i < bn->step_count ? &bn->steps[i] : NULL;
        b->shape = i ? bn->steps[i - 1].layer->out : bn->net->input;
        b->pad = reader && reader->kind == FDS_CONV ? reader->layer->padding : 0;
        b->is_each = i == 0 || i >= bn->first_fc;
        b->row = (size_t)(b->shape.width + 2 * b->pad) * FDS_LANES;
        b->plane = (b->shape.height + 2 * b->pad) * b->row;
        b->origin = b->pad * (b->row + FDS_LANES);
        b->size = b->shape.channels * b->plane;
        b->at = bn->room;
        if (i)
            bn->room += b->size * (b->is_each ? FDS_BANK_INPUTS : 1);
    }
}

/* Places of the weights, tile by tile as the kernels read them. */
static void plan_weights(fds_bank_net *bn) {
    uint32_t *to = bn->order;
    for (uint32_t i = 0; i < bn->step_count; i++) {
        step *s = &bn->steps[i];
        if (s->kind == FDS_MAXPOOL)
            continue;
        const fds_layer *l = s->layer;
        bool is_conv = s->kind == FDS_CONV;
        uint32_t rows = l->out.channels, taps = l->in.channels;
        taps *= is_conv ? l->kernel * l->kernel : 1;
        s->weights = (size_t)(to - bn->order);
        for (uint32_t r = 0, a; r < rows; r += a) {
            a = fds_bank_tile(rows - r, is_conv ? FDS_BANK_FILTERS : FDS_BANK_OUTPUTS);
            for (uint32_t k = 0; k < a; k++)
                *to++ = (uint32_t)(l->bias + r + k);
            for (uint32_t t = 0; t < taps; t++)
                for (uint32_t k = 0; k < a; k++)
                    *to++ = (uint32_t)(l->weight + (size_t)(r + k) * taps + t);
        }
        if (is_conv) {
            s->wide = bn->wide_vectors;
            bn->wide_vectors += (size_t)rows * (taps + 1);
        }
    }
}

static const fds_bank_kernels *kernels_named(const char *name) {
    static const fds_bank_kernels *const tables[] = {
#ifdef __x86_64__
        &fds_bank_avx512,
        &fds_bank_avx2,
#endif
        &fds_bank_generic,
    };
    size_t i = 0;
    while (strcmp(tables[i]->name, name) != 0)
        i++;
    return tables[i];
}

fds_status fds_bank_net_create(const fds_net *net, fds_bank_net **out, fds_error *err) {
    const fds_kernels *maps;
    FDS_TRY(fds_kernels_choose(&maps, err));
    fds_bank_net *bn = fds_alloc_zero(1, sizeof *bn);
    uint32_t *order = fds_alloc_zero(net->weights, sizeof *order);
    if (!bn || !order) {
        fds_free(bn);
        fds_free(order);
        return fds_fail_nomem(err, net->weights * sizeof *order);
    }
    bn->net = net;
    bn->maps = maps;
    bn->kernels = kernels_named(maps->name);
    bn->order = order;
    plan_steps(bn);
    plan_weights(bn);
    plan_bounds(bn);
    *out = bn;
    return FDS_OK;
}

void fds_bank_net_free(fds_bank_net *bn) {
    if (!bn)
        return;
    fds_free(bn->order);
    fds_free(bn);
}

const uint32_t *fds_bank_net_order(const fds_bank_net *bn) { return bn->order; }
size_t fds_bank_net_input_size(const fds_bank_net *bn) { return bn->bounds[0].size; }
size_t fds_bank_net_room(const fds_bank_net *bn) { return bn->room; }

void fds_bank_net_spread(const fds_bank_net *bn, const float *sample, float *wide) {
    const bound *b = &bn->bounds[0];
    for (uint32_t c = 0; c < b->shape.channels; c++)
        for (uint32_t h = 0; h < b->shape.height; h++) {
            float *to = wide + b->origin + c * b->plane + h * b->row;
            for (uint32_t w = 0; w < b->shape.width; w++, sample++)
                for (int l = 0; l < FDS_LANES; l++)
                    *to++ = *sample;
        }
}

/* ---- running it ---- */

static void run_conv(const fds_bank_net *bn, const step *s, const bound *in, const bound *out,
                     const float *w, const float *x, float *y) {
    const fds_layer *l = s->layer;
    bn->kernels->product(
        &(fds_bank_product){
            .rows = l->out.channels,
            .most = FDS_BANK_FILTERS,
            .taps = {l->in.channels, l->kernel, l->kernel},
            .x_tap = {in->plane, in->row, FDS_LANES},
            .columns = l->out.width,
            .lines = l->out.height,
            .x = x,
            .x_column = FDS_LANES,
            .x_line = in->row,
            .y = y + out->origin,
            .y_row = out->plane,
            .y_column = FDS_LANES,
            .y_line = out->row,
            .relu = s->relu,
        },
        w);
}

static void run_pool(const fds_bank_net *bn, const step *s, const bound *in, const bound *out,
                     const float *x, float *y) {
    bn->maps->map_forward(&(fds_map){
        .channels = out->shape.channels,
        .height = out->shape.height,
        .width = out->shape.width,
        .pool = s->window,
        .lanes = FDS_LANES,
        .relu = s->relu,
        .x = x,
        .x_plane = in->plane,
        .x_row = in->row,
        .x_column = FDS_LANES,
        .y = y + out->origin,
        .y_plane = out->plane,
        .y_row = out->row,
        .y_column = FDS_LANES,
    });
}

/* The steps before the first fully connected layer, for input number i. */
static void run_picture(const fds_bank_net *bn, const float *input, size_t i, float *room) {
    for (uint32_t k = 0; k < bn->first_fc; k++) {
        const step *s = &bn->steps[k];
        const bound *in = &bn->bounds[k], *out = in + 1;
        const float *x = k ? room + in->at : input;
        float *y = room + out->at + (out->is_each ? i * out->size : 0);
        if (s->kind == FDS_CONV)
            run_conv(bn, s, in, out, room + s->wide * FDS_LANES, x, y);
        else
            run_pool(bn, s, in, out, x, y);
    }
}

static void run_fc(const fds_bank_net *bn, uint32_t k, const uint16_t *weights, const float *x,
                   size_t count, float *y) {
    const step *s = &bn->steps[k];
    bn->kernels->product_half(
        &(fds_bank_product){
            .rows = s->layer->out.channels,
            .most = FDS_BANK_OUTPUTS,
            .taps = {1, 1, s->layer->in.channels},
            .x_tap = {0, 0, FDS_LANES},
            .columns = (uint32_t)count,
            .lines = 1,
            .x = x,
            .x_column = bn->bounds[k].size,
            .y = y,
            .y_row = FDS_LANES,
            .y_column = bn->bounds[k + 1].size,
            .relu = s->relu,
        },
        weights + s->weights * FDS_LANES);
}

const float *fds_bank_net_run(const fds_bank_net *bn, const uint16_t *weights, const float *inputs,
                              size_t count, float *room) {
    const bound *last = &bn->bounds[bn->step_count];
    for (uint32_t k = 0; k < bn->first_fc; k++) {
        const step *s = &bn->steps[k];
        if (s->kind == FDS_CONV)
            bn->kernels->widen(
                weights + s->weights * FDS_LANES,
                (size_t)(bn->steps[k].layer->out.channels) *
                    (1 + (size_t)s->layer->in.channels * s->layer->kernel * s->layer->kernel),
                room + s->wide * FDS_LANES);
    }
    for (size_t i = 0; i < count; i++)
        run_picture(bn, inputs + i * bn->bounds[0].size, i, room);
    for (uint32_t k = bn->first_fc; k < bn->step_count; k++)
        run_fc(bn, k, weights, k ? room + bn->bounds[k].at : inputs, count,
               room + bn->bounds[k + 1].at);
    float *z = room + last->at;
    for (size_t i = 0; i < count * last->size; i++)
        if (!isfinite(z[i]))
            return NULL;
    for (size_t i = 0; i < count; i++)
        bn->maps->softmax(z + i * last->size, bn->net->classes, FDS_LANES, NULL, NULL);
    return z;
}
