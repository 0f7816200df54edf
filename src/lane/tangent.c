/* SPDX-License-Identifier: Apache-2.0
 *
 * The empirical neural tangent kernel (Jacot et al. 2018) of a network,
 *
 *     K(x, x') = 1/C  sum over outputs c = 1 .. C of < df_c(x)/dw, df_c(x')/dw >,
 *
 * from the gradients that the lane engine computes, 16 samples side by side. Each layer adds:
 *
 *     convolution       sum over c of < G_c, G_c' >, G the gradients by filters and biases
 *     fully connected   (sum over c of < d_c, d_c' >) (< a, a' > + 1), a the layer's input and d
 *                       the gradient by its output: nothing as large as the weights
 *
 * The features of a group of 16 samples are all these numbers: (features, 16). The features of a
 * stay in memory, as many groups as fit into KEPT_BYTES; each worker then takes blocks of b,
 * computes their features and multiplies. PART features at a time are summed in float, in the order
 * of outputs, then of the layer's numbers; the parts are summed in double, in the same order.
 * Threads and blocks do not change the order.
 */
#include "lane/workspace.h"

#include <math.h>
#include <string.h>

enum {
    PART = 1024,     /* gradients per sum in float */
    PART_INPUT = 32, /* a layer's inputs per sum: of one sign and size, as the pixels of a
                      * background, they all round the same way */
    STEP = 128,      /* features multiplied at once: they fit the first-level cache */
    BLOCK = 6,       /* groups of b that one pass over a serves */
    PAIRS = FDS__LANES * FDS__LANES,
};
#define KEPT_BYTES ((size_t)128 << 20) /* features of a, or one group where that is more */
#define MAX_BYTES ((size_t)4 << 30)    /* features of BLOCK groups */

/* A layer's part of the sum: <left, left'>, times <right, right'> + 1 where there is a right.
 * Offsets and counts are in features of a group. */
typedef struct {
    uint32_t stage, in;                    /* in: the boundary that the stage reads */
    size_t left, each, right, right_count; /* left: (outputs, each) */
} term;

typedef struct {
    fds_lane *lane;
    fds__tile tile;  /* for products of a block */
    float *features; /* (BLOCK, features, 16) of b; owns packed and products as well */
    float *packed;   /* (STEP, blocks, 16): some of the features, side by side */
    float *products; /* (groups of a, 16, BLOCK * 16) of one part */
    double *sums[3]; /* of the same shape: left, right, all layers */
} scratch;

typedef struct {
    const fds_net *net;
    const float *weights;
    const fds_inputs *a, *b;
    float *kernel; /* (a, b) */
    term terms[LANE_MAX_STAGES];
    uint32_t term_count;
    size_t features;      /* of a group */
    size_t first, groups; /* of a: in memory now */
    float *kept;          /* (groups, features, 16) */
    scratch *workers;
} tangent;

/* ---- plan ---- */

static void plan(tangent *t, const fds_lane *lane) {
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        const lane_stage *s = &lane->stages[i];
        if (s->kind != LANE_STAGE_CONV && s->kind != LANE_STAGE_FC)
            continue;
        const fds__layer *l = s->layer;
        bool is_conv = s->kind == LANE_STAGE_CONV;
        size_t inputs = (size_t)l->in.channels * l->kernel * l->kernel;
        term *m = &t->terms[t->term_count++];
        *m = (term){.stage = i, .in = s->in, .left = t->features};
        m->each = is_conv ? l->out.channels * (inputs + 1) : l->out.channels;
        m->right = m->left + m->each * t->net->classes;
        m->right_count = is_conv ? 0 : l->in.channels;
        t->features = m->right + m->right_count;
    }
}

/* ---- memory ---- */

static fds_status set_worker(const tangent *t, scratch *d, fds_error *err) {
    const size_t pairs = t->groups * BLOCK * PAIRS;
    if (!d->lane)
        TRY(lane_create(t->net, true, &d->lane, err));
    const size_t features = BLOCK * t->features * FDS__LANES, packed = STEP * BLOCK * FDS__LANES;
    d->features = fds__alloc_aligned((features + packed + pairs) * sizeof(float));
    d->sums[0] = fds__alloc_zero(3 * pairs, sizeof(double));
    if (!d->features || !d->sums[0])
        return fds__fail_nomem(err, (features + packed + pairs) * sizeof(float));
    d->packed = d->features + features;
    d->products = d->packed + packed;
    d->sums[1] = d->sums[0] + pairs;
    d->sums[2] = d->sums[1] + pairs;
    return FDS_OK;
}

static void free_workers(tangent *t, unsigned workers) {
    for (unsigned w = 0; t->workers && w < workers; w++) {
        fds_lane_free(t->workers[w].lane);
        fds__free(t->workers[w].features);
        fds__free(t->workers[w].sums[0]);
    }
    fds__free(t->workers);
    fds__free(t->kept);
}

static size_t groups_of(size_t count) { return (count + FDS__LANES - 1) / FDS__LANES; }

static fds_status prepare(tangent *t, unsigned workers, fds_error *err) {
    TRY(NEW(t->workers, workers, err));
    TRY(lane_create(t->net, true, &t->workers[0].lane, err));
    plan(t, t->workers[0].lane);
    const size_t group = t->features * FDS__LANES * sizeof(float);
    if (t->features > MAX_BYTES / (BLOCK * FDS__LANES * sizeof(float)))
        return fds__fail(err, FDS_ERR_LIMIT,
                         "the gradients of %u outputs by %zu weights take more than %zu bytes; use "
                         "a network with fewer filters",
                         t->net->classes, t->net->weights, MAX_BYTES);
    t->groups = MIN(groups_of(t->a->count), MAX(KEPT_BYTES / group, (size_t)1));
    t->kept = fds__alloc_aligned(t->groups * group);
    if (!t->kept)
        return fds__fail_nomem(err, t->groups * group);
    for (unsigned w = 0; w < workers; w++)
        TRY(set_worker(t, &t->workers[w], err));
    return FDS_OK;
}

/* ---- features ---- */

/* Features of inputs 16 group .. 16 group + 15; beyond the last input, those of the first. */
static void collect(const tangent *t, fds_lane *lane, const fds_inputs *inputs, size_t group,
                    float *features) {
    const term *end = t->terms + t->term_count;
    uint32_t members[FDS__LANES];
    float *each[LANE_MAX_STAGES] = {NULL};
    for (uint32_t l = 0; l < FDS__LANES; l++) {
        size_t i = group * FDS__LANES + l;
        members[l] = i < inputs->count ? (uint32_t)i : 0;
    }
    fds__lane_forward(lane, inputs, members, FDS__LANES, t->weights);
    for (const term *m = t->terms; m < end; m++)
        memcpy(features + m->right * FDS__LANES, lane->bounds[m->in].value,
               m->right_count * FDS__LANES * sizeof(float));
    for (uint32_t c = 0; c < t->net->classes; c++) {
        for (const term *m = t->terms; m < end; m++)
            each[m->stage] = features + (m->left + c * m->each) * FDS__LANES;
        fds__lane_backward_each(lane, c, t->weights, each);
        for (const term *m = t->terms; m < end; m++)
            if (m->right_count)
                memcpy(each[m->stage], lane->bounds[m->stage + 1].grad,
                       m->each * FDS__LANES * sizeof(float));
    }
}

static fds_status keep_group(void *context, size_t job, unsigned worker, fds_error *err) {
    const tangent *t = context;
    (void)err;
    unsigned before = fds__tiny_flush();
    collect(t, t->workers[worker].lane, t->a, t->first + job,
            t->kept + job * t->features * FDS__LANES);
    fds__tiny_restore(before);
    return FDS_OK;
}

/* ---- products ---- */

/* The given features of the groups of b side by side: (count, blocks, 16). */
static void pack(const tangent *t, const scratch *d, size_t blocks, size_t first, size_t count) {
    float *to = d->packed;
    for (size_t i = first; i < first + count; i++)
        for (size_t g = 0; g < blocks; g++, to += FDS__LANES)
            memcpy(to, d->features + (g * t->features + i) * FDS__LANES, FDS__LANES * sizeof *to);
}

/* products (+)= the products of features first .. first+count-1, at most STEP. */
static void multiply_step(const tangent *t, const scratch *d, size_t blocks, size_t first,
                          size_t count, bool add) {
    fds__product p = {
        .tile = d->tile,
        .vectors = (uint32_t)blocks,
        .w_row = 1,
        .x = d->packed,
        .y_row = BLOCK * FDS__LANES,
        .taps = {1, 1, (uint32_t)count},
        .w_tap = {0, 0, FDS__LANES},
        .x_tap = {0, 0, blocks * FDS__LANES},
        .start = add ? FDS__START_Y : FDS__START_ZERO,
        .repeat = {1, 1, 1},
    };
    pack(t, d, blocks, first, count);
    for (size_t g = 0; g < t->groups; g++) {
        p.rows = (uint32_t)MIN(t->a->count - (t->first + g) * FDS__LANES, (size_t)FDS__LANES);
        p.w = t->kept + (g * t->features + first) * FDS__LANES;
        p.y = d->products + g * BLOCK * PAIRS;
        d->lane->kernels->product(&p);
    }
}

/* sums = the sums of products of features first .. first+count-1. */
static void multiply(const tangent *t, const scratch *d, size_t blocks, size_t first, size_t count,
                     size_t part, double *restrict sums) {
    const size_t pairs = t->groups * BLOCK * PAIRS;
    const float *restrict products = d->products;
    memset(sums, 0, pairs * sizeof *sums);
    for (size_t i = 0, n; i < count; i += n) {
        n = MIN(count - i, MIN(part, (size_t)STEP));
        multiply_step(t, d, blocks, first + i, n, i % part > 0);
        if ((i + n) % part > 0 && i + n < count)
            continue;
        for (size_t k = 0; k < pairs; k++)
            sums[k] += (double)products[k];
    }
}

static void add_terms(const tangent *t, scratch *d, size_t blocks) {
    const size_t pairs = t->groups * BLOCK * PAIRS;
    double *left = d->sums[0], *right = d->sums[1], *all = d->sums[2];
    memset(all, 0, pairs * sizeof *all);
    for (const term *m = t->terms; m < t->terms + t->term_count; m++) {
        multiply(t, d, blocks, m->left, m->each * t->net->classes, PART, left);
        if (m->right_count)
            multiply(t, d, blocks, m->right, m->right_count, PART_INPUT, right);
        for (size_t i = 0; i < pairs; i++)
            all[i] += m->right_count ? left[i] * (right[i] + 1) : left[i];
    }
}

/* Writes the sums of BLOCK groups of b, from group first on, to the kernel. */
static fds_status write_rows(const tangent *t, const double *all, size_t first, fds_error *err) {
    const size_t from_a = t->first * FDS__LANES, from_b = first * FDS__LANES;
    const size_t rows = MIN(t->a->count - from_a, t->groups * FDS__LANES);
    const size_t columns = MIN(t->b->count - from_b, (size_t)BLOCK * FDS__LANES);
    for (size_t i = 0; i < rows; i++) {
        const double *row = all + i * BLOCK * FDS__LANES;
        for (size_t j = 0; j < columns; j++) {
            float value = (float)(row[j] / t->net->classes);
            if (!isfinite(value))
                return fds__fail(err, FDS_ERR_DIVERGED,
                                 "samples %u and %u: the product of their gradients is infinite or "
                                 "not a number",
                                 t->a->ids[from_a + i], t->b->ids[from_b + j]);
            t->kernel[(from_a + i) * t->b->count + from_b + j] = value;
        }
    }
    return FDS_OK;
}

static fds_status fill_block(void *context, size_t job, unsigned worker, fds_error *err) {
    const tangent *t = context;
    scratch *d = &t->workers[worker];
    const size_t first = job * BLOCK;
    const size_t blocks = MIN(groups_of(t->b->count) - first, (size_t)BLOCK);
    unsigned before = fds__tiny_flush();
    for (size_t g = 0; g < blocks; g++)
        collect(t, d->lane, t->b, first + g, d->features + g * t->features * FDS__LANES);
    d->tile = d->lane->kernels->tile(FDS__LANES, (uint32_t)blocks);
    add_terms(t, d, blocks);
    fds__tiny_restore(before);
    return write_rows(t, d->sums[2], first, err);
}

/* ---- the whole ---- */

static fds_status run(tangent *t, unsigned threads, const fds_events *events, fds_error *err) {
    const size_t all = groups_of(t->a->count), most = t->groups;
    const size_t jobs = (groups_of(t->b->count) + BLOCK - 1) / BLOCK;
    for (t->first = 0; t->first < all; t->first += most) {
        t->groups = MIN(most, all - t->first);
        TRY(fds__pool_run(threads, t->groups, keep_group, t, "gradients", "groups", events, err));
        TRY(fds__pool_run(threads, jobs, fill_block, t, "tangent kernel", "blocks", events, err));
    }
    return FDS_OK;
}

fds_status fds__net_tangent(const fds_net *net, const float *weights, const fds_inputs *a,
                            const fds_inputs *b, unsigned threads, float *kernel,
                            const fds_events *events, fds_error *err) {
    tangent t = {.net = net, .weights = weights, .a = a, .b = b, .kernel = kernel};
    if (net->has_batchnorm)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%.200s: the tangent kernel does not know batchnorm; use a network "
                         "without it",
                         net->text);
    if (net->layers[0].kind == FDS__LAYER_EMBED)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%.200s: the tangent kernel does not know embed; use a network without it",
                         net->text);
    TRY(lane_check_shape(net, a, err));
    TRY(lane_check_shape(net, b, err));
    if (!a->count || !b->count)
        return FDS_OK;
    unsigned workers = fds__pool_workers(threads, MAX(groups_of(a->count), groups_of(b->count)));
    fds_status status = prepare(&t, workers, err);
    if (status == FDS_OK)
        status = run(&t, workers, events, err);
    free_workers(&t, workers);
    return status;
}
