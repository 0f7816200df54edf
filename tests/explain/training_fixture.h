/* SPDX-License-Identifier: Apache-2.0
 * What the tests of training an explainer share: a small training with everything in it. */
#ifndef FDS_TEST_TRAINING_FIXTURE_H
#define FDS_TEST_TRAINING_FIXTURE_H

#include "../game/fixture.h"
#include "explain/learn.h"

/* Rows of a plan, all values in memory. */
typedef struct {
    size_t columns;
    double *v; /* (rows, columns) */
} memory_rows;

static inline fds_status memory_read(void *context, unsigned worker, size_t row, size_t first,
                                     size_t count, double *out, fds_error *err) {
    (void)worker, (void)err;
    const memory_rows *m = context;
    assert_true(first + count <= m->columns);
    memcpy(out, m->v + row * m->columns + first, count * sizeof *out);
    return FDS_OK;
}

/* A training and all that it points to. */
typedef struct {
    fds__training training;
    fds_groups *groups;
    fds_plan *plan, *validation_plan;
    memory_rows values, validation_values;
    fds_rows rows, validation_rows;
    float *x, *targets;
    uint16_t *labels;
    double *empty, *full;
} toy;

typedef struct {
    size_t inputs, validation, players, groups;
    uint32_t classes;
    fds_shape shape;
    fds_sampler sampler;
    size_t coalitions, validation_coalitions;
    double roughness; /* of v, in no way that can be learnt */
    bool is_exact;    /* plan: all coalitions */
} toy_size;

/* What a player is worth for a label of an input: a smooth function of the input. */
static inline double toy_weight(const toy *t, size_t input, size_t y, size_t i) {
    size_t size = fds__shape_size(t->training.shape);
    const float *x = t->training.x + input * size;
    double sum = 0;
    for (size_t f = 0; f < size; f++)
        sum += x[f] * cos((double)(1 + f * 7 + y * 3 + i * 5));
    return (1 + 0.3 * (double)(i % 3) + tanh(sum / sqrt((double)size))) /
           (double)t->training.players * (y % 2 ? -0.5 : 1);
}

static inline double toy_value(const toy *t, const uint64_t *s, size_t input, size_t y,
                               double roughness) {
    size_t n = t->training.players;
    double sum = 0.1 * (double)y;
    for (size_t i = 0; i < n; i++)
        sum += fds_coalition_has(s, i) ? toy_weight(t, input, y, i) : 0;
    uint64_t key = fds_coalition_id(s, n) + 1000003 * (input * 17 + y);
    key = fds_checksum(&key, sizeof key);
    return sum + 0.1 * sum * sum + roughness * ((double)(key >> 11) * 0x1p-53 - 0.5);
}

static inline fds_rows toy_rows(const toy *t, const fds_plan *plan, double roughness,
                                memory_rows *rows) {
    size_t classes = t->training.classes, columns = t->training.inputs * classes;
    rows->columns = columns;
    rows->v = need(fds_plan_rows(plan) * columns, sizeof(double));
    for (size_t r = 0; r < fds_plan_rows(plan); r++)
        for (size_t c = 0; c < columns; c++)
            rows->v[r * columns + c] =
                toy_value(t, fds_plan_coalition(plan, r), c / classes, c % classes, roughness);
    return (fds_rows){columns, memory_read, rows};
}

/* Targets by plain least squares on the plan. */
static inline float *toy_targets(const toy *t) {
    size_t n = t->training.players, columns = t->rows.columns;
    double *values = need(n * columns, sizeof *values);
    float *targets = need(n * columns, sizeof *targets);
    fds_ls_params params = {.adjust = FDS_ADJUST_NONE};
    fds_error err;
    expect_ok(fds_least_squares(t->plan, &t->rows, &params, 1, values, NULL, NULL, NULL, &err),
              &err);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < columns; c++)
            targets[c * n + i] = (float)values[i * columns + c];
    free(values);
    return targets;
}

/* In the place where it is to stay: the training points into it. */
static inline void toy_make(toy *t, const toy_size *size) {
    size_t count = size->inputs * fds__shape_size(size->shape), columns;
    fds_rng rng = fds_rng_make(11, 99, 0, 0);
    memset(t, 0, sizeof *t);
    t->x = need(count, sizeof *t->x);
    t->labels = need(size->inputs, sizeof *t->labels);
    for (size_t i = 0; i < count; i++)
        t->x[i] = (float)fds_rng_normal(&rng);
    for (size_t i = 0; i < size->inputs; i++)
        t->labels[i] = t->x[i * fds__shape_size(size->shape)] > 0 ? 1 : 0;
    t->training = (fds__training){.inputs = size->inputs,
                                  .validation = size->validation,
                                  .shape = size->shape,
                                  .x = t->x,
                                  .labels = t->labels,
                                  .players = size->players,
                                  .classes = size->classes};
    if (size->groups) {
        uint32_t *group_of = need(size->players, sizeof *group_of);
        random_partition(&rng, size->players, size->groups, group_of);
        t->groups = make_groups(group_of, size->players);
        free(group_of);
    }
    const fds_groups *by = size->sampler >= FDS_SAMPLER_GFDS ? t->groups : NULL;
    t->plan = size->is_exact ? exact_plan(size->sampler, size->players, by)
                             : sampled_plan(size->sampler, size->players, by, size->coalitions, 1);
    t->validation_plan =
        sampled_plan(FDS_SAMPLER_PAIRED, size->players, NULL, size->validation_coalitions, 2);
    t->rows = toy_rows(t, t->plan, size->roughness, &t->values);
    t->validation_rows = toy_rows(t, t->validation_plan, size->roughness, &t->validation_values);
    columns = size->inputs * size->classes;
    t->empty = need(columns, sizeof *t->empty);
    t->full = need(columns, sizeof *t->full);
    memcpy(t->empty, t->values.v, columns * sizeof *t->empty);
    memcpy(t->full, t->values.v + columns, columns * sizeof *t->full);
    t->targets = toy_targets(t);
    t->training.groups = t->groups;
    t->training.empty = t->empty;
    t->training.full = t->full;
    t->training.targets = t->targets;
    t->training.plan = t->plan;
    t->training.validation_plan = t->validation_plan;
    t->training.rows = &t->rows;
    t->training.validation_rows = &t->validation_rows;
}

static inline void toy_free(toy *t) {
    fds_groups_free(t->groups);
    fds_plan_free(t->plan);
    fds_plan_free(t->validation_plan);
    free(t->values.v);
    free(t->validation_values.v);
    free(t->x);
    free(t->targets);
    free(t->labels);
    free(t->empty);
    free(t->full);
}

/* Values of inputs first .. first+count-1 by an explainer, normalised: (count, classes, players).
 * The caller frees them. */
static inline double *answers_of(fds__explainer *explainer, const fds__training *training,
                                 size_t first, size_t count) {
    size_t n = training->players, labels = training->classes,
           sample = fds__shape_size(training->shape);
    float *raw = need(count * labels * n, sizeof *raw);
    double *values = need(count * labels * n, sizeof *values);
    fds_error err;
    expect_ok(fds__explainer_run(explainer, training->x + first * sample, count, NULL, raw, &err),
              &err);
    for (size_t i = 0; i < count * labels * n; i++)
        values[i] = raw[i];
    for (size_t c = 0; c < count * labels; c++) {
        size_t column = first * labels + c;
        fds__normalise(training->full[column] - training->empty[column], n, values + c * n);
    }
    free(raw);
    return values;
}

static inline char *hash_of(const char *path) {
    static char hex[4][65];
    static unsigned turn;
    size_t size;
    char *data = scratch_read(path, &size), *out = hex[turn++ % 4];
    fds_sha256_hex(data, size, out);
    free(data);
    return out;
}

#endif
