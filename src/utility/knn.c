/* SPDX-License-Identifier: Apache-2.0
 *
 * "knn:K": the share of a label among the K samples of the coalition nearest to the input,
 *
 *     v(s) = 1/K  sum over k = 1 .. min(K, |s|) of 1[label of the k-th nearest is y],
 *
 * so that the utility of the empty coalition is 0. In a regression it predicts 1/K times the sum of
 * the standardised targets of these samples: where there are fewer than K, the mean of all players'
 * targets stands for the others. Its Shapley values are known exactly: Jia et
 * al., "Efficient task-specific data valuation for nearest neighbor algorithms", VLDB 2019, Theorem
 * 1. Distances are Euclidean, on normalised values ("knn:K") or on the features of a network
 * trained on all players' samples ("knn:K@model"; features.c). Of two samples at the same distance,
 * the one with the lower number is nearer.
 */
#include "utility/utility.h"

#include <stdlib.h>

typedef struct {
    const fds__utility_data *data;
    uint32_t k;
    uint32_t *order; /* (inputs, samples): positions within samples, nearest first */
} knn;

/* ---- making and freeing ---- */

typedef struct {
    double distance2;
    uint32_t position;
} neighbour;

static int by_distance(const void *left, const void *right) {
    const neighbour *a = left, *b = right;
    if (a->distance2 != b->distance2)
        return a->distance2 < b->distance2 ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

typedef struct {
    const fds__features *points;
    size_t samples;
    neighbour *near; /* (workers, samples) */
    uint32_t *order; /* as in knn */
} sorting;

/* Sorts the samples by their distance from one input. */
static fds_status sort_neighbours(void *context, size_t input, unsigned worker, fds_error *err) {
    (void)err;
    const sorting *s = context;
    const size_t size = s->points->size;
    const float *x = s->points->inputs + input * size;
    neighbour *near = s->near + worker * s->samples;
    for (size_t i = 0; i < s->samples; i++)
        near[i] = (neighbour){fds__utility_distance2(x, s->points->samples + i * size, size),
                              (uint32_t)i};
    qsort(near, s->samples, sizeof *near, by_distance);
    for (size_t i = 0; i < s->samples; i++)
        s->order[input * s->samples + i] = near[i].position;
    return FDS_OK;
}

static void knn_free(void *self) {
    knn *n = self;
    if (n)
        fds__free(n->order);
    fds__free(n);
}

/* points: the vectors whose distances count. */
static fds_status create(fds__utility_making *making, const fds__features *points, fds_error *err) {
    const fds__utility_data *data = making->data;
    size_t samples = data->samples->count, inputs = data->inputs->count, pairs;
    if (!fds__mul(samples, inputs, &pairs) || pairs > FDS__MAX_UTILITY_MEMORY / sizeof(uint32_t))
        return fds__fail(err, FDS_ERR_LIMIT,
                         "the neighbours of %zu inputs among %zu samples take more than %zu bytes",
                         inputs, samples, FDS__MAX_UTILITY_MEMORY);
    knn *n;
    OWNED neighbour *near = NULL;
    TRY(NEW(n, 1, err));
    making->self = n;
    n->data = data;
    n->k = making->number;
    TRY(NEW(n->order, pairs, err));
    TRY(NEW(near, samples * fds__pool_workers(data->workers, inputs), err));
    making->memory = sizeof *n + pairs * sizeof *n->order;
    sorting s = {points, samples, near, n->order};
    return fds__pool_run(data->workers, inputs, sort_neighbours, &s, "neighbours", "inputs",
                         making->params->events, err);
}

fds_status fds__knn_create(fds__utility_making *making, fds_error *err) {
    const fds_inputs *samples = making->data->samples, *inputs = making->data->inputs;
    return create(making, &(fds__features){samples->size, samples->values, inputs->values}, err);
}

fds_status fds__knn_model_create(fds__utility_making *making, fds_error *err) {
    fds__features features = {0};
    fds_status status = fds__features_make(making, &features, err);
    if (status == FDS_OK)
        status = create(making, &features, err);
    fds__free(features.samples);
    fds__free(features.inputs);
    return status;
}

/* ---- answering ---- */

static fds_status knn_eval(const void *self, unsigned worker, const uint64_t *coalition,
                           float *probs, fds_error *err) {
    (void)worker, (void)err;
    const knn *n = self;
    const fds__utility_data *data = n->data;
    const size_t samples = data->samples->count;
    for (size_t i = 0; i < data->inputs->count; i++) {
        const uint32_t *order = n->order + i * samples;
        float *votes = probs + i * data->classes; /* counted, then divided */
        for (uint32_t y = 0; y < data->classes; y++)
            votes[y] = 0;
        double sum = 0; /* of targets */
        for (size_t j = 0, found = 0; j < samples && found < n->k; j++)
            if (fds_coalition_has(coalition, data->owner[order[j]])) {
                votes[data->samples->labels[order[j]]] += 1;
                sum += data->is_regression ? (double)data->samples->targets[order[j]] : 0;
                found++;
            }
        if (data->is_regression) {
            votes[0] = (float)(sum / n->k);
            continue;
        }
        for (uint32_t y = 0; y < data->classes; y++)
            votes[y] /= (float)n->k;
    }
    return FDS_OK;
}

/* ---- Shapley values ---- */

/* Of one input and one label, from the farthest sample N to the nearest:
 *     phi_N = 1[y_N = y] / K * min(K, N) / N
 *     phi_i = phi_{i+1} + (1[y_i = y] - 1[y_{i+1} = y]) / K * min(K, i) / i
 * (the paper writes phi_N for N >= K). */
static void recurse(const knn *n, const uint32_t *order, uint32_t label, double *values) {
    const uint16_t *labels = n->data->samples->labels;
    double phi = 0, after = 0; /* after: whether the next farther sample has the label */
    for (size_t i = n->data->samples->count; i > 0; i--) {
        double match = labels[order[i - 1]] == label;
        phi += (match - after) / n->k * ((double)MIN((size_t)n->k, i) / (double)i);
        values[n->data->owner[order[i - 1]]] = phi;
        after = match;
    }
}

static void knn_values(const void *self, size_t input, uint32_t label, double *values) {
    const knn *n = self;
    recurse(n, n->order + input * n->data->samples->count, label, values);
}

const fds__utility_kind fds__knn_kind = {.eval = knn_eval, .free = knn_free, .values = knn_values};

fds_status fds__utility_knn_label(const fds_utility *utility, size_t input, uint32_t label,
                                  double *values, fds_error *err) {
    if (utility->data->is_regression)
        return fds__fail(err, FDS_ERR_USAGE,
                         "exact values by a formula are of classes, not of a regression");
    if (!utility->kind->values)
        return fds__fail(err, FDS_ERR_USAGE,
                         "only the utility functions \"knn:K\", \"knn:K@model\" and \"tknn:T\" "
                         "have exact values by a formula");
    const size_t samples = utility->data->samples->count;
    if (samples != utility->players)
        return fds__fail(err, FDS_ERR_USAGE,
                         "exact values by a formula require one sample per player; these %zu "
                         "players have %zu",
                         utility->players, samples);
    utility->kind->values(utility->self, input, label, values);
    return FDS_OK;
}

fds_status fds_utility_knn_shapley(const fds_utility *utility, double *values, fds_error *err) {
    for (size_t i = 0; i < utility->inputs; i++)
        for (uint32_t y = 0; y < utility->classes; y++, values += utility->players)
            TRY(fds__utility_knn_label(utility, i, y, values, err));
    return FDS_OK;
}
