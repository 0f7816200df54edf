/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the least squares share: games, plans made by hand, and the least squares in
 * one call. */
#ifndef FDS_TEST_GAME_LS_FIXTURE_H
#define FDS_TEST_GAME_LS_FIXTURE_H

#include "fixture.h"

static const char *const adjust_names[] = {"plain", "shrink", "counts", "control"};
static const char *const sampler_names[] = {"kernel", "paired", "leverage", "gfds", "gfds+"};

static inline size_t bit(size_t mask, size_t i) { return mask >> i & 1; }

/* ---- games ---- */

/* Like a model's confidence: rises with the players' weights, saturates, and is rough. Players of
 * one group (of three) are alike but for a part. */
static inline double *rough_values(size_t n, size_t columns, double roughness, fds_rng *rng) {
    size_t masks = (size_t)1 << n;
    double *v = need(masks * columns, sizeof *v);
    for (size_t c = 0; c < columns; c++) {
        double weight[64], group[3] = {uniform(rng), uniform(rng), uniform(rng)};
        for (size_t i = 0; i < n; i++)
            weight[i] = (group[i % 3] + 0.5 * uniform(rng)) / sqrt((double)n);
        for (size_t mask = 0; mask < masks; mask++) {
            double sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += bit(mask, i) ? weight[i] : 0;
            v[mask * columns + c] = 0.5 + 0.5 * tanh(2 * sum) + roughness * uniform(rng);
        }
    }
    return v;
}

/* Groups i % count. */
static inline fds_groups *groups_in_turn(size_t n, size_t count) {
    uint32_t *group_of = need(n, sizeof *group_of);
    for (size_t i = 0; i < n; i++)
        group_of[i] = (uint32_t)(i % count);
    fds_groups *groups = make_groups(group_of, n);
    free(group_of);
    return groups;
}

/* Games of any number of players: a sum of the members' weights and something that depends on the
 * set and the column in no way that can be told. */
typedef struct {
    const fds_plan *plan;
    double roughness;
} hash_game;

static inline double unit_of(uint64_t key) { return (double)(key >> 11) * 0x1p-53; }

static inline fds_status hash_read(void *context, unsigned worker, size_t row, size_t first,
                                   size_t count, double *out, fds_error *err) {
    (void)worker, (void)err;
    const hash_game *g = context;
    const uint64_t *s = fds_plan_coalition(g->plan, row);
    size_t n = fds_plan_players(g->plan);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fds_coalition_has(s, i) ? 1.0 + (double)(i % 5) : 0;
    uint64_t id = fds_coalition_id(s, n);
    for (size_t c = 0; c < count; c++) {
        uint64_t key = id ^ ((uint64_t)(first + c) * 0x9e3779b97f4a7c15u);
        key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
        key = (key ^ key >> 32) * 0x94d049bb133111ebu;
        out[c] = sum * (double)(1 + (first + c) % 3) / (double)n + g->roughness * unit_of(key);
    }
    return FDS_OK;
}

/* ---- plans made by hand ---- */

/* The caller fills the bits and weights of rows 2 .. rows+1. */
static inline fds_plan *hand_plan(fds_sampler sampler, size_t players, const fds_groups *groups,
                                  size_t rows) {
    fds_plan *plan = NULL;
    fds_error err;
    expect_ok(fds__plan_new(sampler, players, groups, &plan, &err), &err);
    expect_ok(fds__plan_reserve(plan, rows + 2, &err), &err);
    plan->is_paired = sampler != FDS_SAMPLER_KERNEL;
    return plan;
}

/* ---- least squares ---- */

static inline fds_ls_report solve_rows(const fds_plan *plan, const fds_rows *rows,
                                       const fds_ls_params *params, unsigned threads,
                                       double *values, double *errors) {
    fds_ls_report report;
    fds_error err;
    expect_ok(fds_least_squares(plan, rows, params, threads, values, errors, &report, NULL, &err),
              &err);
    return report;
}

static inline fds_ls_report solve_array(const fds_plan *plan, const array_game *game,
                                        const fds_ls_params *params, double *values,
                                        double *errors) {
    array_context context = {game, plan};
    fds_rows rows = array_rows(&context);
    return solve_rows(plan, &rows, params, 1, values, errors);
}

static inline double greatest_difference(const double *a, const double *b, size_t count) {
    double greatest = 0;
    for (size_t i = 0; i < count; i++) {
        double off = fabs(a[i] - b[i]);
        greatest = isnan(off) ? INFINITY : fmax(greatest, off);
    }
    return greatest;
}

static inline double root_mean_square(const double *a, const double *b, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum / (double)count);
}

#endif
