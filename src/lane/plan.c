/* SPDX-License-Identifier: Apache-2.0
 *
 * One network's workspace: a plan of stages and an arena.
 *
 * Layout: (channel, row, column, lane), one sample per lane. In a plain network the number of lanes
 * is the next power of two of the number of samples; with fewer than 16 lanes, one vector holds
 * several neighbouring columns of a row, so that a convolution computes few empty lanes. Other
 * networks always have 16 lanes. The numbers of a sample do not depend on the number of lanes; sums
 * over samples (gradients of weights) go over the lanes in a fixed order. Rows are rounded up to
 * whole vectors. Nothing uses what a convolution computes beyond a row's end: the gradient there is
 * and stays zero.
 *
 * A convolution with stride S becomes two stages. LANE_STAGE_FOLD turns each channel into F x F
 * channels, F = min(S, K): channel (c, a, b) has the pixels (S i + a, S j + b) of channel c. On
 * these, the convolution has stride 1 and filters of ceil(K / S), with zeros where K is no multiple
 * of S.
 */
#include "lane/workspace.h"
#include "base/isa.h"

#include <string.h>

/* ---- plan ---- */

/* A map follows every convolution: it copies the output to the layout of the next stage. */
static void end_conv(fds_lane *lane) {
    if (!lane->stage_count || lane->stages[lane->stage_count - 1].kind != LANE_STAGE_CONV)
        return;
    lane->stages[lane->stage_count] = (lane_stage){
        .kind = LANE_STAGE_MAP, .in = lane->stage_count, .pool = 1, .input_grad = true};
    lane->stage_count++;
}

/* Adds a stage that reads what the last one has written. */
static lane_stage *add_stage(fds_lane *lane, lane_stage stage) {
    if (stage.kind != LANE_STAGE_MAP)
        end_conv(lane);
    stage.in = lane->stage_count;
    lane->stages[lane->stage_count] = stage;
    return &lane->stages[lane->stage_count++];
}

/* A convolution with a stride, as a fold and a convolution without one. */
static void add_folded(fds_lane *lane, const fds__layer *l, bool input_grad) {
    const uint32_t fold = MIN(l->stride, l->kernel);
    const uint32_t kernel = (l->kernel + l->stride - 1) / l->stride;
    const fds_shape folded = {l->in.channels * fold * fold, l->out.height + kernel - 1,
                              l->out.width + kernel - 1};
    add_stage(lane, (lane_stage){.kind = LANE_STAGE_FOLD,
                                 .layer = l,
                                 .out = folded,
                                 .fold = fold,
                                 .input_grad = input_grad});
    lane_stage *conv = add_stage(lane, (lane_stage){.kind = LANE_STAGE_CONV,
                                                    .unfolded = l,
                                                    .out = l->out,
                                                    .fold = fold,
                                                    .input_grad = input_grad});
    conv->folded =
        (fds__layer){.kind = FDS__LAYER_CONV,
                     .in = folded,
                     .out = l->out,
                     .kernel = kernel,
                     .stride = 1,
                     .bias = (size_t)l->out.channels * folded.channels * kernel * kernel};
    conv->layer = &conv->folded;
}

/* A residual block: what its end must know of its begin. */
typedef struct {
    uint32_t fork; /* stage */
    bool has_skip; /* a projection */
    uint32_t end;  /* has_skip: the boundary that the last layer before the projection writes */
    bool weights_before;
} block;

static void add_skip(fds_lane *lane, const fds__layer *layer, block *b) {
    end_conv(lane);
    b->has_skip = true;
    b->end = lane->stage_count;
    if (layer->stride > 1)
        add_folded(lane, layer, b->weights_before);
    else
        add_stage(lane, (lane_stage){.kind = layer->kind == FDS__LAYER_FC ? LANE_STAGE_FC
                                                                          : LANE_STAGE_CONV,
                                     .layer = layer,
                                     .out = layer->out,
                                     .input_grad = b->weights_before});
    lane->stages[b->end].in = lane->stages[b->fork].in;
}

/* Without a projection, the gradient of the skip is that of the sum. With one, the projection
 * writes it to the boundary that the fork reads. */
static void add_join(fds_lane *lane, lane_stage stage, const block *b) {
    lane_stage *fork = &lane->stages[b->fork];
    stage.other = b->has_skip ? b->end : fork->in;
    stage.has_skip = b->has_skip;
    add_stage(lane, stage);
    fork->other = b->has_skip ? fork->in : lane->stage_count;
}

/* relu and maxpool become one map, relu after fc is part of it. */
static void add_map(fds_lane *lane, lane_stage stage) {
    lane_stage *last = lane->stage_count ? &lane->stages[lane->stage_count - 1] : NULL;
    const bool is_relu = stage.layer->kind == FDS__LAYER_RELU;
    const bool after_map = last && last->kind == LANE_STAGE_MAP;
    stage.pool = is_relu ? 1 : stage.layer->kernel;
    stage.relu = is_relu;
    if (is_relu && (after_map || (last && last->kind == LANE_STAGE_FC)))
        last->relu = true;
    else if (!is_relu && after_map && last->pool == 1)
        last->pool = stage.pool;
    else
        add_stage(lane, stage);
}

static void plan_stages(fds_lane *lane) {
    static const lane_stage_kind kinds[] = {
        [FDS__LAYER_CONV] = LANE_STAGE_CONV,       [FDS__LAYER_FC] = LANE_STAGE_FC,
        [FDS__LAYER_AVGPOOL] = LANE_STAGE_AVERAGE, [FDS__LAYER_GLOBALPOOL] = LANE_STAGE_AVERAGE,
        [FDS__LAYER_TANH] = LANE_STAGE_TANH,       [FDS__LAYER_GELU] = LANE_STAGE_GELU,
        [FDS__LAYER_FORK] = LANE_STAGE_FORK,       [FDS__LAYER_JOIN] = LANE_STAGE_JOIN,
        [FDS__LAYER_RELU] = LANE_STAGE_MAP,        [FDS__LAYER_MAXPOOL] = LANE_STAGE_MAP,
        [FDS__LAYER_BATCHNORM] = LANE_STAGE_NORM,  [FDS__LAYER_DROPOUT] = LANE_STAGE_DROP,
        [FDS__LAYER_EMBED] = LANE_STAGE_EMBED,
    };
    const fds_net *net = lane->net;
    bool weights_before = false;
    block b = {0};
    for (uint32_t i = 0; i < net->layer_count; i++) {
        const fds__layer *layer = &net->layers[i];
        const lane_stage stage = {.kind = kinds[layer->kind],
                                  .layer = layer,
                                  .out = layer->out,
                                  .input_grad = weights_before};
        if (layer->is_skip)
            add_skip(lane, layer, &b);
        else if (layer->kind == FDS__LAYER_JOIN)
            add_join(lane, stage, &b);
        else if (layer->kind == FDS__LAYER_RELU || layer->kind == FDS__LAYER_MAXPOOL)
            add_map(lane, stage);
        else if (layer->stride > 1)
            add_folded(lane, layer, weights_before);
        else
            add_stage(lane, stage);
        if (layer->kind == FDS__LAYER_FORK)
            b = (block){.fork = lane->stage_count - 1, .weights_before = weights_before};
        weights_before |= layer->kind == FDS__LAYER_CONV || layer->kind == FDS__LAYER_FC ||
                          layer->kind == FDS__LAYER_BATCHNORM || layer->kind == FDS__LAYER_EMBED;
    }
}

/* Finds the layers whose bias batchnorm takes back: fc, or a convolution with its map, that copies
 * only, directly before it. */
static void find_normalised(fds_lane *lane) {
    for (uint32_t i = 1; i < lane->stage_count; i++) {
        lane_stage *before = &lane->stages[i - 1];
        if (lane->stages[i].kind != LANE_STAGE_NORM || before->relu)
            continue;
        if (before->kind == LANE_STAGE_MAP && before->pool == 1 && i > 1)
            before--;
        if (before->kind == LANE_STAGE_CONV || before->kind == LANE_STAGE_FC)
            before->normalised_by = i;
    }
}

/* The shapes between stages, with the padding and width that the stages that read them need. */
static void plan_bounds(fds_lane *lane) {
    fds__boundary *b = lane->bounds;
    b[0].shape = lane->net->input;
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        const lane_stage *s = &lane->stages[i];
        fds_shape in = b[s->in].shape;
        if (s->kind == LANE_STAGE_CONV)
            b[s->in].pad = s->layer->padding;
        if (s->kind == LANE_STAGE_FC)
            b[s->in].wide = true;
        b[i + 1].shape = s->kind != LANE_STAGE_MAP
                             ? s->out
                             : (fds_shape){in.channels, in.height / s->pool, in.width / s->pool};
    }
    b[lane->stage_count].wide = true;
}

void lane_clear_around(const fds__boundary *b, float *buffer, size_t rows, size_t columns) {
    const size_t from = b->pad * b->column, to = from + columns * b->column;
    const size_t height = b->shape.height + 2 * b->pad;
    if (rows == height && columns * b->column == b->row)
        return;
    for (size_t n = 0; n < b->shape.channels * height; n++, buffer += b->row) {
        const size_t h = n % height;
        if (h < b->pad || h >= b->pad + rows) {
            memset(buffer, 0, b->row * sizeof(float));
        } else {
            memset(buffer, 0, from * sizeof(float));
            memset(buffer + to, 0, (b->row - to) * sizeof(float));
        }
    }
}

void lane_lay_out(fds_lane *lane, uint32_t lanes) {
    if (lane->lanes == lanes)
        return;
    lane->lanes = lanes;
    for (uint32_t i = 0; i <= lane->stage_count; i++) {
        fds__boundary *b = &lane->bounds[i];
        b->column = b->wide ? FDS__LANES : lanes;
        b->row = lane_round_up((b->shape.width + 2 * b->pad) * b->column);
        b->plane = (b->shape.height + 2 * b->pad) * b->row;
        b->origin = b->pad * (b->row + b->column);
        lane_clear_around(b, b->value, b->shape.height, b->shape.width);
        /* the last row's last vector may reach beyond it: no infinity may be left there */
        memset(b->value + b->shape.channels * b->plane, 0, FDS__LANES * sizeof(float));
    }
}

static size_t bound_size(const fds__boundary *b) {
    return (size_t)b->shape.channels * (b->shape.height + 2 * b->pad) *
               (b->shape.width + 2 * b->pad) * FDS__LANES +
           FDS__LANES * FDS__LANES; /* the last vectors of a row may reach beyond the last row */
}

/* A stage's scratch, in floats: partial sums of filters, or the transposed input and a tail. */
static size_t scratch_size(const lane_stage *s) {
    if (s->kind == LANE_STAGE_CONV)
        return (s->is_wide ? lane_winograd_scratch(s) : 0) +
               MAX((size_t)FDS__FILTER_TILE * s->layer->in.channels * s->layer->kernel *
                       s->layer->kernel,
                   (size_t)s->layer->out.channels) *
                   FDS__LANES;
    if (s->kind == LANE_STAGE_FC)
        return FDS__LANES * (lane_round_up(s->layer->in.channels) + s->layer->out.channels);
    return 0;
}

/* In backward, the map after a convolution is the last to read the convolution's output, and
 * overwrites it with the gradient, which saves cache. The network's input needs no gradient. */
static bool has_own_grad(const fds_lane *lane, uint32_t i) {
    return i > 0 && (lane->keeps_values || lane->stages[i - 1].kind != LANE_STAGE_CONV);
}

/* Floats of a folded convolution's own weights, of their gradient, or of their places; a third of
 * batchnorm's doubles. */
static size_t own_size(const lane_stage *s) {
    if (s->kind == LANE_STAGE_NORM)
        return lane_round_up(3 * (size_t)s->out.channels);
    return s->unfolded ? lane_round_up(s->folded.bias + s->folded.out.channels) : 0;
}

/* Floats of the mask that dropout writes beside boundary i. */
static size_t mask_size(const fds_lane *lane, uint32_t i) {
    const bool is_drop = i && lane->stages[i - 1].kind == LANE_STAGE_DROP;
    return is_drop ? fds__shape_size(lane->bounds[i].shape) * FDS__LANES : 0;
}

/* Floats of a group's values, gradients and masks. */
static size_t values_size(const fds_lane *lane) {
    size_t size = 0;
    for (uint32_t i = 0; i <= lane->stage_count; i++)
        size += bound_size(&lane->bounds[i]) * (has_own_grad(lane, i) ? 2 : 1) + mask_size(lane, i);
    return size;
}

static void place_values(const fds_lane *lane, fds__boundary *bounds, float *at) {
    for (uint32_t i = 0; i <= lane->stage_count; i++) {
        bounds[i].value = bounds[i].grad = at;
        at += bound_size(&bounds[i]);
        if (has_own_grad(lane, i)) {
            bounds[i].grad = at;
            at += bound_size(&bounds[i]);
        }
        bounds[i].mask = at;
        at += mask_size(lane, i);
    }
}

static fds_status allocate(fds_lane *lane, fds_error *err) {
    const size_t values = values_size(lane), weights = lane_round_up(lane->net->weights);
    size_t scratch = 0, own = 0;
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        scratch = MAX(scratch, scratch_size(&lane->stages[i]));
        own += 3 * own_size(&lane->stages[i]);
    }
    lane->arena_size = values + scratch + own + 3 * weights;
    lane->arena = fds__alloc_aligned(lane->arena_size * sizeof(float));
    if (!lane->arena)
        return fds__fail_nomem(err, lane->arena_size * sizeof(float));
    place_values(lane, lane->bounds, lane->arena);
    float *at = lane->arena + values;
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        lane_stage *s = &lane->stages[i];
        s->weights_own = at;
        s->grad_own = at + own_size(s);
        s->places = (uint32_t *)(void *)(at + 2 * own_size(s));
        at += 3 * own_size(s);
        s->norm = (double *)(void *)s->weights_own;
        if (s->unfolded)
            lane_fold_plan(s);
    }
    lane->scratch = at;
    lane->grad = at + scratch;
    lane->m = lane->grad + weights;
    lane->v = lane->m + weights;
    return FDS_OK;
}

/* The first group's memory is in the arena. All groups have 16 lanes, as batchnorm is not plain, so
 * the layout of the first is that of the others. */
fds_status lane_reserve_groups(fds_lane *lane, size_t batch, fds_error *err) {
    const size_t groups = (batch + FDS__LANES - 1) / FDS__LANES, size = lane->stage_count + 1;
    if (groups <= lane->group_count)
        return FDS_OK;
    const size_t values = values_size(lane), more_size = (groups - 1) * values;
    fds__boundary *bounds;
    TRY(NEW(bounds, groups * size, err));
    float *more = fds__alloc_aligned(more_size * sizeof *more);
    if (!more) {
        fds__free(bounds);
        return fds__fail_nomem(err, more_size * sizeof *more);
    }
    for (size_t g = 0; g < groups; g++) {
        memcpy(bounds + g * size, lane->bounds, size * sizeof *bounds);
        if (g)
            place_values(lane, bounds + g * size, more + (g - 1) * values);
    }
    fds__free(lane->groups);
    fds__free(lane->more);
    lane->groups = lane->bounds = bounds;
    lane->group_count = groups;
    lane->more = more;
    lane->more_size = more_size;
    return FDS_OK;
}

static void choose_tiles(fds_lane *lane) {
    fds__tile (*tile)(uint32_t, uint32_t) = lane->kernels->tile;
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        lane_stage *s = &lane->stages[i];
        if (s->kind == LANE_STAGE_CONV) {
            s->is_wide = !s->unfolded && fds__layer_is_wide(s->layer);
            s->forward = tile(s->layer->out.channels, s->layer->out.width);
            s->backward = tile(s->layer->in.channels, s->layer->out.width);
            if (s->is_wide)
                lane_winograd_plan(lane, s);
        } else if (s->kind == LANE_STAGE_FC) {
            s->forward = tile(s->layer->out.channels, 1);
            s->backward = tile(FDS__LANES, s->layer->in.channels / FDS__LANES);
            s->weights = tile(s->layer->out.channels, s->layer->in.channels / FDS__LANES);
            s->tail = tile(s->layer->out.channels, 1);
        }
    }
}

fds_status lane_create(const fds_net *net, bool keeps_values, fds_lane **out, fds_error *err) {
    fds__isa_set isa;
    TRY(fds__isa_choose(&isa, err));
    fds_lane *lane;
    TRY(NEW(lane, 1, err));
    lane->net = net;
    lane->kernels = FDS__ISA_PICK(isa, fds__kernels);
    lane->layer_kernels = FDS__ISA_PICK(isa, lane_layer_kernels);
    lane->winograd = FDS__ISA_PICK(isa, lane_winograd_kernels);
    lane->keeps_values = keeps_values;
    plan_stages(lane);
    find_normalised(lane);
    lane->group_count = 1;
    fds_status status = NEW(lane->groups, lane->stage_count + 1, err);
    lane->bounds = lane->groups;
    if (status == FDS_OK) {
        plan_bounds(lane);
        choose_tiles(lane);
        status = allocate(lane, err);
    }
    if (status != FDS_OK) {
        fds_lane_free(lane);
        return status;
    }
    lane_lay_out(lane, FDS__LANES);
    *out = lane;
    return FDS_OK;
}

fds_status fds_lane_create(const fds_net *net, fds_lane **out, fds_error *err) {
    return lane_create(net, false, out, err);
}

void fds_lane_free(fds_lane *lane) {
    if (!lane)
        return;
    fds__free(lane->arena);
    fds__free(lane->groups);
    fds__free(lane->more);
    fds__free(lane->places);
    fds__free(lane);
}
