/* SPDX-License-Identifier: Apache-2.0
 *
 * "tknn:T": the share of a label among the samples of the coalition within the distance T,
 *
 *     v(s) = a(s) / c(s),    or 1/C where c(s) = 0,
 *
 * with c(s) of them within T, a(s) of these of the label, and C classes; v of no players is 1/C. In a
 * regression it predicts the mean of their standardised targets, or that of all players (0). Wang et
 * al., "Threshold KNN-Shapley", 2023: the value of a sample depends on the others by two counts alone,
 * which is what makes it private at little cost (baseline/tknn.c).
 *
 * Derivation. The players within T are c, alone they matter. Let i join the first k of the other c - 1
 * in a random order, k = 0 .. c - 1 with probability 1/c each. For k = 0 it adds m_i - 1/C, where m_i is
 * 1 for the label. For k > 0 the share before it is on average p = (a - m_i) / (c - 1), and joining
 * moves it to (k p + m_i) / (k + 1), by (m_i - p) / (k + 1). So
 *
 *     phi_i = 1/c (m_i - 1/C)  +  1/c (m_i - (a - m_i) / (c - 1)) (1/2 + ... + 1/c)
 *
 * Distances are Euclidean, on normalised values. Where T is not given, a tenth of the distances between
 * inputs (the first MOST_INPUTS of them) are below it; the players' samples have no part in that. */
#include "utility/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 1000, TENTH = 10 };

typedef struct {
    const fds__utility_data *data;
    double threshold;
    size_t *first;    /* (inputs + 1) */
    uint32_t *near;   /* (first[inputs]) positions within samples, ascending for each input */
    double *harmonic; /* (samples + 1) 1 + 1/2 + ... + 1/c */
} tknn;

/* ---- the threshold ---- */

bool fds__tknn_read(const char *text, double *out) {
    char *end = NULL;
    *out = 0;
    if (!text || strncmp(text, "tknn", 4) != 0)
        return false;
    if (!text[4])
        return true;
    if (text[4] != ':' || strspn(text + 5, "0123456789.eE+-") != strlen(text + 5))
        return false;
    *out = fds__read_double(text + 5, &end);
    return end != text + 5 && !*end && isfinite(*out) && *out > 0;
}

fds_status fds__tknn_check(const fds__utility_params *params, uint32_t number, fds_error *err) {
    double threshold;
    (void)number;
    return fds__tknn_read(params->kind, &threshold)
               ? FDS_OK
               : fds__fail(err, FDS_ERR_USAGE,
                           "utility function \"%.100s\": after the colon there must be a distance "
                           "above 0, for example tknn:2.5",
                           params->kind);
}

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static fds_status find_threshold(const fds__utility_data *data, double *out, fds_error *err) {
    const fds_inputs *in = data->inputs;
    const size_t count = MIN(in->count, (size_t)MOST_INPUTS), pairs = count * (count - 1) / 2;
    OWNED double *distances = NULL;
    size_t at = 0;
    if (count < 2)
        return fds__fail(err, FDS_ERR_USAGE,
                         "\"tknn\" takes its distance from those between inputs, and there is one "
                         "input; give a distance, for example tknn:2.5");
    TRY(NEW(distances, pairs, err));
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            distances[at++] = fds__utility_distance2(in->values + i * in->size,
                                                     in->values + j * in->size, in->size);
    qsort(distances, pairs, sizeof *distances, by_value);
    *out = sqrt(distances[pairs / TENTH]);
    return *out > 0 ? FDS_OK
                    : fds__fail(err, FDS_ERR_USAGE,
                                "\"tknn\": a tenth of the inputs are alike, so that their distance "
                                "0 is no threshold; give one, for example tknn:2.5");
}

/* ---- making and freeing ---- */

static void tknn_free(void *self) {
    tknn *t = self;
    if (t) {
        fds__free(t->first);
        fds__free(t->near);
        fds__free(t->harmonic);
    }
    fds__free(t);
}

/* The samples within T of an input, counted in first[input + 1] or, once near is there, listed. */
static fds_status find_near(void *context, size_t input, unsigned worker, fds_error *err) {
    (void)worker, (void)err;
    tknn *t = context;
    const fds_inputs *samples = t->data->samples, *inputs = t->data->inputs;
    const float *x = inputs->values + input * inputs->size;
    const double most = t->threshold * t->threshold;
    size_t count = 0;
    for (size_t i = 0; i < samples->count; i++) {
        if (fds__utility_distance2(x, samples->values + i * samples->size, samples->size) > most)
            continue;
        if (t->near)
            t->near[t->first[input] + count] = (uint32_t)i;
        count++;
    }
    if (!t->near)
        t->first[input + 1] = count;
    return FDS_OK;
}

static fds_status list_near(tknn *t, const fds_events *events, fds_error *err) {
    const fds__utility_data *data = t->data;
    size_t inputs = data->inputs->count;
    TRY(NEW(t->first, inputs + 1, err));
    TRY(fds__pool_run(data->workers, inputs, find_near, t, "neighbours", "inputs", events, err));
    for (size_t i = 0; i < inputs; i++)
        t->first[i + 1] += t->first[i];
    if (t->first[inputs] > FDS__MAX_UTILITY_MEMORY / sizeof *t->near)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "the neighbours of %zu inputs among %zu samples take more than %zu bytes",
                         inputs, data->samples->count, FDS__MAX_UTILITY_MEMORY);
    TRY(NEW(t->near, t->first[inputs] + 1, err));
    return fds__pool_run(data->workers, inputs, find_near, t, "neighbours", "inputs", events, err);
}

fds_status fds__tknn_create(fds__utility_making *making, fds_error *err) {
    const fds__utility_data *data = making->data;
    tknn *t;
    TRY(NEW(t, 1, err));
    making->self = t;
    t->data = data;
    fds__tknn_read(making->params->kind, &t->threshold);
    if (t->threshold == 0)
        TRY(find_threshold(data, &t->threshold, err));
    TRY(list_near(t, making->params->events, err));
    TRY(NEW(t->harmonic, data->samples->count + 1, err));
    for (size_t c = 1; c <= data->samples->count; c++)
        t->harmonic[c] = t->harmonic[c - 1] + 1 / (double)c;
    making->memory = sizeof *t + (data->inputs->count + 1) * sizeof *t->first +
                     t->first[data->inputs->count] * sizeof *t->near +
                     (data->samples->count + 1) * sizeof *t->harmonic;
    return fds__utility_about(making->about, json_pack("{s:f}", "threshold", t->threshold), err);
}

/* ---- answering ---- */

static fds_status tknn_eval(const void *self, unsigned worker, const uint64_t *coalition,
                            float *probs, fds_error *err) {
    (void)worker, (void)err;
    const tknn *t = self;
    const fds__utility_data *data = t->data;
    for (size_t i = 0; i < data->inputs->count; i++) {
        float *votes = probs + i * data->classes;
        double sum = 0; /* of targets */
        size_t found = 0;
        for (uint32_t y = 0; y < data->classes; y++)
            votes[y] = 0;
        for (size_t j = t->first[i]; j < t->first[i + 1]; j++)
            if (fds_coalition_has(coalition, data->owner[t->near[j]])) {
                votes[data->samples->labels[t->near[j]]] += 1;
                sum += data->is_regression ? (double)data->samples->targets[t->near[j]] : 0;
                found++;
            }
        for (uint32_t y = 0; y < data->classes; y++)
            votes[y] = data->is_regression ? (float)(found ? sum / (double)found : 0)
                       : found             ? votes[y] / (float)found
                                           : 1 / (float)data->classes;
    }
    return FDS_OK;
}

/* ---- Shapley values ---- */

static void count_near(const tknn *t, size_t input, uint32_t label, fds__tknn_counts *out) {
    const uint16_t *labels = t->data->samples->labels;
    *out = (fds__tknn_counts){0, 0};
    for (size_t j = t->first[input]; j < t->first[input + 1]; j++)
        ++*(labels[t->near[j]] == label ? &out->same : &out->other);
}

/* The formula for c samples within T, a of them of the label. */
static double value_of(const tknn *t, bool is_same, double a, double c) {
    double m = is_same, chance = 1 / (double)t->data->classes, phi = (m - chance) / c;
    size_t whole = MIN((size_t)c, t->data->samples->count);
    return c < 2 ? phi : phi + (m - (a - m) / (c - 1)) / c * (t->harmonic[whole] - 1);
}

static void set_values(const tknn *t, size_t input, uint32_t label, fds__tknn_counts counts,
                       double *values) {
    const uint16_t *labels = t->data->samples->labels;
    memset(values, 0, fds_players_count(t->data->players) * sizeof *values);
    for (size_t j = t->first[input]; j < t->first[input + 1]; j++) {
        bool is_same = labels[t->near[j]] == label;
        /* counts of others may lack the sample itself, which knows that it is there */
        double a = (double)MAX(counts.same, (int64_t)is_same),
               b = (double)MAX(counts.other, (int64_t)!is_same);
        values[t->data->owner[t->near[j]]] = value_of(t, is_same, a, a + b);
    }
}

static void tknn_values(const void *self, size_t input, uint32_t label, double *values) {
    fds__tknn_counts counts;
    count_near(self, input, label, &counts);
    set_values(self, input, label, counts, values);
}

const fds__utility_kind fds__tknn_kind = {
    .eval = tknn_eval, .free = tknn_free, .values = tknn_values};

void fds__tknn_count(const fds_utility *utility, size_t input, uint32_t label,
                     fds__tknn_counts *out) {
    assert(utility->kind == &fds__tknn_kind);
    count_near(utility->self, input, label, out);
}

void fds__tknn_values(const fds_utility *utility, size_t input, uint32_t label,
                      fds__tknn_counts counts, double *values) {
    assert(utility->kind == &fds__tknn_kind);
    set_values(utility->self, input, label, counts, values);
}
