/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the deep engine share: a graph in the engine beside its reference. */
#ifndef FDS_TEST_DEEP_FIXTURE_H
#define FDS_TEST_DEEP_FIXTURE_H

#include "../base/scratch.h"
#include "deep_reference.h"
#include "deep/onednn.h"
#include "lane/lane.h"

#include <math.h>

/* Greatest difference of got from wanted, over the greatest of wanted and least. */
static inline double relative_error(const float *got, const double *wanted, size_t count,
                                    double least) {
    double off = 0, most = least;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(got[i]))
            return INFINITY;
        off = fmax(off, fabs(got[i] - wanted[i]));
        most = fmax(most, fabs(wanted[i]));
    }
    return off == 0 ? 0 : off / most;
}

typedef struct {
    const deep_graph *graph;
    deep_exec *exec; /* NULL where a whole network is the subject */
    deep_ref *ref;
    size_t inputs, outputs; /* floats of a batch */
    float *x, *d;           /* samples, and the gradient by the outputs */
    double most;            /* greatest of all gradients by weights */
} subject;

/* Random tensors, alike in both, and normal samples, drawn anew while one comes so near to a kink
 * that float and double could end on different sides of it. */
static inline void subject_draw_samples(subject *t, uint64_t seed, double least_kink) {
    fds_rng rng = fds_rng_make(seed, 2000, 0, 0);
    for (size_t k = 0; k < t->outputs; k++)
        t->d[k] = (float)fds_rng_normal(&rng);
    for (int tries = 0; tries < 100; tries++) {
        for (size_t k = 0; k < t->inputs; k++)
            t->x[k] = (float)fds_rng_normal(&rng);
        deep_ref_forward(t->ref, t->x, true, true);
        if (t->ref->kink >= least_kink)
            break;
    }
}

static inline float *random_tensor(const deep_graph *g, uint32_t i, uint64_t seed) {
    const fds__deep_tensor *t = &g->tensors[i];
    fds_rng rng = fds_rng_make(seed, 2001, i, 0);
    float *values = need(t->count, sizeof *values);
    double scale = t->rank > 1 ? sqrt(2.0 / ((double)t->count / t->dims[0])) : 0.3;
    bool is_variance = strstr(g->names[i], "running_var") != NULL;
    bool is_scale = t->rank == 1 && strstr(g->names[i], "weight");
    for (size_t k = 0; k < t->count; k++)
        values[k] = (float)(is_variance ? 0.5 + fds_rng_unit(&rng)
                                        : is_scale + scale * fds_rng_normal(&rng));
    return values;
}

static inline subject subject_bare(const deep_graph *g, uint32_t batch) {
    subject t = {.graph = g, .ref = deep_ref_create(g, batch)};
    t.inputs = batch * deep_node_size(&g->nodes[0]);
    t.outputs = batch * deep_node_size(&g->nodes[g->count - 1]);
    t.x = need(t.inputs, sizeof *t.x);
    t.d = need(t.outputs, sizeof *t.d);
    return t;
}

static inline subject subject_make(const deep_graph *g, uint32_t batch, unsigned threads,
                                   fds__precision precision, uint64_t seed) {
    subject t = subject_bare(g, batch);
    fds_error err;
    expect_ok(deep_exec_create(g, batch, threads, precision, true, &t.exec, &err), &err);
    for (uint32_t i = 0; i < g->tensor_count; i++) {
        float *values = random_tensor(g, i, seed);
        float *area = g->tensors[i].is_statistic ? t.exec->running : t.exec->values;
        expect_ok(deep_exec_write(t.exec, i, values, area, &err), &err);
        for (size_t k = 0; k < g->tensors[i].count; k++)
            t.ref->values[i][k] = values[k];
        free(values);
    }
    subject_draw_samples(&t, seed, 1e-5);
    return t;
}

/* The reference of a network, with that one's weights. */
static inline subject subject_of_net(const fds__deep *net, uint64_t seed) {
    subject t = subject_bare(&net->graph, net->params.batch);
    fds_error err;
    for (uint32_t i = 0; i < net->graph.tensor_count; i++) {
        size_t count = net->graph.tensors[i].count;
        float *values = need(count, sizeof *values);
        expect_ok(fds__deep_read(net, i, FDS__DEEP_VALUE, values, &err), &err);
        for (size_t k = 0; k < count; k++)
            t.ref->values[i][k] = values[k];
        free(values);
    }
    subject_draw_samples(&t, seed, 1e-5);
    return t;
}

static inline void subject_free(subject *t) {
    deep_exec_free(t->exec);
    deep_ref_free(t->ref);
    free(t->x);
    free(t->d);
}

/* How far the engine's outputs are from the reference's. */
static inline double subject_forward(subject *t) {
    fds_error err;
    const double *wanted = deep_ref_forward(t->ref, t->x, true, true);
    memcpy(t->exec->input, t->x, t->inputs * sizeof *t->x);
    expect_ok(deep_exec_forward(t->exec, &err), &err);
    return relative_error(t->exec->output, wanted, t->outputs, 0);
}

static inline void subject_backward(subject *t) {
    fds_error err;
    deep_ref_backward(t->ref, t->d);
    for (size_t i = 0; i < t->exec->active; i++)
        t->exec->gradients[i] = NAN; /* every place must be written */
    memcpy(t->exec->d_output, t->d, t->outputs * sizeof *t->d);
    expect_ok(deep_exec_backward(t->exec, &err), &err);
    for (uint32_t i = 0; i < t->graph->tensor_count; i++)
        for (size_t k = 0; k < t->graph->tensors[i].count; k++)
            if (fabs(t->ref->gradients[i][k]) > t->most)
                t->most = fabs(t->ref->gradients[i][k]);
}

/* The engine's tensor (a statistic, or a gradient) beside the reference's. */
static inline float *subject_tensor(const subject *t, uint32_t i, const double **wanted) {
    fds_error err;
    const fds__deep_tensor *tensor = &t->graph->tensors[i];
    float *got = need(tensor->count, sizeof *got);
    *wanted = t->ref->gradients[i];
    const float *area = tensor->is_statistic ? t->exec->moments : t->exec->gradients;
    expect_ok(deep_exec_read(t->exec, i, area, got, &err), &err);
    for (uint32_t n = 0; tensor->is_statistic && n < t->graph->count; n++)
        if (t->graph->nodes[n].kind == DEEP_NORM && t->graph->nodes[n].tensor + 2 == i)
            *wanted = t->ref->means[n];
        else if (t->graph->nodes[n].kind == DEEP_NORM && t->graph->nodes[n].tensor + 3 == i)
            *wanted = t->ref->variances[n];
    return got;
}

/* Relative to the tensor's greatest value, taken to be at least a hundredth of the greatest of all
 * gradients: before batch norm they nearly cancel, and what is left of some is rounding. */
static inline double subject_error(const subject *t, uint32_t i) {
    const double *wanted;
    float *got = subject_tensor(t, i, &wanted);
    double error = relative_error(got, wanted, t->graph->tensors[i].count,
                                  t->graph->tensors[i].is_statistic ? 1e-2 : 1e-2 * t->most);
    free(got);
    return error;
}

/* Root mean square of the difference over that of the tensor. */
static inline double subject_error_rms(const subject *t, uint32_t i) {
    const double *wanted;
    float *got = subject_tensor(t, i, &wanted);
    double off = 0, all = 0;
    for (size_t k = 0; k < t->graph->tensors[i].count; k++) {
        off += (got[k] - wanted[k]) * (got[k] - wanted[k]);
        all += wanted[k] * wanted[k];
    }
    free(got);
    return sqrt(off / fmax(all, 1e-6));
}

/* How far a network's tensor is from the reference's. */
static inline double net_error(const fds__deep *net, const subject *t, uint32_t i) {
    fds_error err;
    size_t count = t->graph->tensors[i].count;
    float *got = need(count, sizeof *got);
    expect_ok(fds__deep_read(net, i, FDS__DEEP_VALUE, got, &err), &err);
    double error = relative_error(got, t->ref->values[i], count, 1e-2);
    free(got);
    return error;
}

#endif
