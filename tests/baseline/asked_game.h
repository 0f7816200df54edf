/* SPDX-License-Identifier: Apache-2.0
 * Games of few players, given by the value of every coalition, as methods ask them: what was asked
 * is written down, and any call can be made to fail. */
#ifndef FDS_TEST_ASKED_GAME_H
#define FDS_TEST_ASKED_GAME_H

#include "../game/fixture.h"
#include "run_job.h"

typedef struct {
    array_game game;
    size_t asked, calls, most; /* coalitions, calls, and coalitions of the greatest call */
    size_t fail_at;            /* the call that fails; 0: none */
    uint64_t *log;             /* (log_size) masks of the coalitions asked for, in order; or NULL */
    size_t log_size;
} asked_game;

static inline fds_status asked_ask(void *context, const uint64_t *coalitions, size_t count,
                                   double *values, fds_error *err) {
    asked_game *a = context;
    if (++a->calls == a->fail_at)
        return fds__fail(err, FDS_ERR_IO, "call %zu must fail", a->calls);
    assert_true(count > 0);
    a->most = MAX(a->most, count);
    for (size_t t = 0; t < count; t++, a->asked++) {
        assert_true(coalitions[t] < (uint64_t)1 << a->game.players);
        memcpy(values + t * a->game.columns, a->game.v + coalitions[t] * a->game.columns,
               a->game.columns * sizeof *values);
        if (a->asked < a->log_size)
            a->log[a->asked] = coalitions[t];
    }
    return FDS_OK;
}

static inline baseline_game asked_as_game(asked_game *a) {
    return (baseline_game){a->game.players, a->game.columns, asked_ask, a};
}

/* One call of a method that only asks; report may be NULL. */
static inline fds_status try_asking(const baseline_method *method, asked_game *a,
                                    const fds_params *params, double *values, double *errors,
                                    fds__baseline_report *report, fds_error *err) {
    fds__baseline_report unread = {0};
    baseline_job job = {.params = params,
                        .game = asked_as_game(a),
                        .players = a->game.players,
                        .columns = a->game.columns,
                        .values = values,
                        .errors = errors,
                        .report = report ? report : &unread};
    return run_job(method, &job, err);
}

/* Every one of so many calls fails once, in a game of four players. */
static inline void expect_failures_passed_on(const baseline_method *method,
                                             const fds_params *params, size_t calls) {
    for (size_t call = 1; call <= calls; call++) {
        double v[16] = {0}, values[4];
        asked_game a = {.game = {4, 1, v}, .fail_at = call};
        fds_error err = {0};
        expect_error(try_asking(method, &a, params, values, NULL, NULL, &err), FDS_ERR_IO, &err,
                     "must fail");
    }
}

/* Values of accuracies: uniform in 0 .. 1. */
static inline double *random_accuracies(size_t count, fds_rng *rng) {
    double *v = need(count, sizeof *v);
    for (size_t i = 0; i < count; i++)
        v[i] = fds_rng_unit(rng);
    return v;
}

/* All coalitions of n players, in several games. */
static inline double *accuracies(size_t n, size_t columns, uint64_t seed) {
    fds_rng rng = fds_rng_make(seed, 2000, n, 0);
    return random_accuracies(((size_t)1 << n) * columns, &rng);
}

/* Euclidean distance. */
static inline double distance(const double *a, const double *b, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* Draws `least` permutations or coalitions, then four and sixteen times as many, for many seeds:
 * the mean distance from the truth halves each time. */
static inline void expect_errors_to_halve(const baseline_method *method, const array_game *game,
                                          const double *truth, fds_params params, size_t least,
                                          uint64_t seeds) {
    double values[16], off[3] = {0};
    for (size_t size = 0; size < 3; size++)
        for (params.seed = 0; params.seed < seeds; params.seed++) {
            asked_game a = {.game = *game};
            fds_error err;
            params.permutations = params.coalitions = least << 2 * size;
            expect_ok(try_asking(method, &a, &params, values, NULL, NULL, &err), &err);
            off[size] += distance(values, truth, game->players) / (double)seeds;
        }
    print_message("# %s: off by %.4f, %.4f and %.4f with %zu, %zu and %zu drawn\n", params.method,
                  off[0], off[1], off[2], least, 4 * least, 16 * least);
    for (size_t size = 1; size < 3; size++)
        assert_true(off[size - 1] / off[size] > 1.7 && off[size - 1] / off[size] < 2.3);
}

#endif
