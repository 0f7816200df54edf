/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the engine share: random samples, instruction sets, and a network beside its
 * reference. */
#ifndef FDS_TEST_FIXTURE_H
#define FDS_TEST_FIXTURE_H

#include "../base/scratch.h"
#include "lane/workspace.h"
#include "model/model.h"
#include "reference.h"

#include <math.h>

/* ---- instruction sets ---- */

static const char *const isa_names[] = {"generic", "avx2", "avx512"};

/* Makes lanes created from now on use it; false when this processor cannot. */
static inline bool isa_use(const char *name) {
    setenv("FDS_ISA", name, 1);
    if (strcmp(fds_isa(), name) == 0)
        return true;
    assert_string_not_equal(name, "generic");
    expect_no_cpu_flag(strcmp(name, "avx512") == 0 ? "avx512bw" : "avx2");
    return false;
}

static inline void isa_reset(void) { unsetenv("FDS_ISA"); }

/* ---- samples ---- */

typedef struct {
    fds_shape shape;
    uint32_t classes;
    size_t count, size; /* size: floats in a sample */
    float *x;           /* (count, size) */
    double *xd;         /* the same */
    uint16_t *labels;   /* (count) */
    size_t tokens;      /* 0, or: the values are whole numbers below it */
} samples;

static inline samples samples_make(fds_shape shape, uint32_t classes, size_t count) {
    size_t size = (size_t)shape.channels * shape.height * shape.width;
    return (samples){shape,
                     classes,
                     count,
                     size,
                     need(count * size, sizeof(float)),
                     need(count * size, sizeof(double)),
                     need(count, sizeof(uint16_t)),
                     0};
}

static inline void samples_free(samples *s) {
    free(s->x);
    free(s->xd);
    free(s->labels);
}

/* Sample i from the normal distribution, or of any tokens, with any label. */
static inline void samples_draw(samples *s, size_t i, fds_rng *rng) {
    for (size_t j = i * s->size; j < (i + 1) * s->size; j++)
        s->xd[j] = s->x[j] =
            s->tokens ? (float)fds_rng_below(rng, (uint32_t)s->tokens) : (float)fds_rng_normal(rng);
    s->labels[i] = (uint16_t)fds_rng_below(rng, s->classes);
}

static inline samples samples_normal(fds_shape shape, uint32_t classes, size_t count,
                                     uint64_t seed) {
    samples s = samples_make(shape, classes, count);
    for (size_t i = 0; i < count; i++) {
        fds_rng rng = fds_rng_make(seed, 1000, i, 0);
        samples_draw(&s, i, &rng);
    }
    return s;
}

static inline fds_dataset *samples_dataset(const samples *s) {
    fds_dataset *ds = NULL;
    fds_error err;
    expect_ok(
        fds__dataset_create(s->count, s->shape, NULL, s->x, s->labels, s->classes, NULL, &ds, &err),
        &err);
    return ds;
}

/* Inputs with the values as they are. index may be NULL: all. */
static inline fds_inputs *samples_inputs(const samples *s, const uint32_t *index, size_t count) {
    fds_dataset *ds = samples_dataset(s);
    fds_inputs *inputs = NULL;
    fds_error err;
    float *mean = need(s->shape.channels, sizeof *mean),
          *std = need(s->shape.channels, sizeof *std);
    for (uint32_t c = 0; c < s->shape.channels; c++)
        std[c] = 1;
    expect_ok(fds_inputs_create(ds, index, index ? count : s->count, mean, std, &inputs, &err),
              &err);
    free(mean);
    free(std);
    fds_dataset_free(ds);
    return inputs;
}

/* ---- a network, its reference, and samples for both ---- */

typedef struct {
    fds_net *net;
    ref_net *ref;
    size_t weights;
    float *w;   /* initial weights */
    double *wd; /* the same */
    samples s;
    fds_inputs *inputs;
} subject;

/* Batchnorm starts with ones and zeros, which would hide mistakes: moves them a little. */
static inline void subject_stir(subject *t, size_t tensor, uint64_t seed) {
    const fds_tensor_info info = fds_net_tensor(t->net, tensor);
    fds_rng rng = fds_rng_make(seed, 1004, tensor, 0);
    for (size_t i = info.offset; i < info.offset + info.count; i++)
        if (t->w[i] == 0 || t->w[i] == 1)
            t->w[i] += (float)(fds_rng_unit(&rng) - 0.5) / 2;
}

/* The network with initial weights, and no samples yet. */
static inline subject subject_bare(const char *text, fds_shape shape, uint32_t classes,
                                   uint64_t seed) {
    subject t = {0};
    fds_error err;
    expect_ok(fds_net_create(text, shape, classes, &t.net, &err), &err);
    t.ref = ref_create(fds_net_text(t.net), shape.channels, shape.height, shape.width);
    assert_non_null(t.ref);
    t.weights = fds_net_weights(t.net);
    assert_int_equal(t.weights, t.ref->weights);
    assert_int_equal(classes, t.ref->classes);
    t.w = need(t.weights, sizeof *t.w);
    t.wd = need(t.weights, sizeof *t.wd);
    fds_net_init(t.net, seed, t.w);
    for (size_t i = 0; i < fds_net_tensors(t.net); i++)
        subject_stir(&t, i, seed);
    for (size_t i = 0; i < t.weights; i++)
        t.wd[i] = t.w[i];
    return t;
}

/* With normal samples, drawn anew where one comes so near to a kink that float and double could
 * end on different sides of it. */
static inline subject subject_make(const char *text, fds_shape shape, uint32_t classes,
                                   size_t count, uint64_t seed) {
    subject t = subject_bare(text, shape, classes, seed);
    t.s = samples_make(shape, classes, count);
    t.s.tokens = t.ref->layer[0].tokens;
    for (size_t i = 0; i < count; i++) {
        fds_rng rng = fds_rng_make(seed, 1000, i, 0);
        do {
            samples_draw(&t.s, i, &rng);
            ref_forward(t.ref, t.wd, t.s.xd + i * t.s.size);
        } while (t.ref->kink < 3e-6);
    }
    t.inputs = samples_inputs(&t.s, NULL, 0);
    return t;
}

/* The mean loss of the members as one mini-batch, and its gradient (weights). */
static inline double lane_gradient(fds_lane *lane, const subject *t, const uint32_t *members,
                                   size_t count, float *gradient) {
    expect_ok(fds__lane_reserve(lane, count, count, NULL), NULL);
    unsigned before = fds__tiny_flush();
    double sum = fds__lane_backprop(lane, t->inputs, members, count, t->w);
    fds__tiny_restore(before);
    memcpy(gradient, lane->grad, t->weights * sizeof *gradient);
    return sum / (double)count;
}

static inline void subject_free(subject *t) {
    fds_inputs_free(t->inputs);
    samples_free(&t->s);
    ref_free(t->ref);
    fds_net_free(t->net);
    free(t->w);
    free(t->wd);
}

static inline fds_lane *subject_lane(const subject *t) {
    fds_lane *lane = NULL;
    fds_error err;
    expect_ok(fds_lane_create(t->net, &lane, &err), &err);
    return lane;
}

/* Greatest difference of got from wanted, over the greatest of wanted and least. Where these are
 * all zero, so must got be. */
static inline double relative_error(const float *got, const double *wanted, size_t count,
                                    double least) {
    double difference = 0, most = least;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(got[i]))
            return INFINITY;
        difference = fmax(difference, fabs(got[i] - wanted[i]));
        most = fmax(most, fabs(wanted[i]));
    }
    return difference == 0 ? 0 : difference / most;
}

#endif
