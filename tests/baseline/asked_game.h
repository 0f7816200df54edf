/* SPDX-License-Identifier: Apache-2.0
 * Games of few players, given by the value of every coalition, as methods ask them: what was asked
 * is written down, and any call can be made to fail. */
#ifndef FDS_TEST_ASKED_GAME_H
#define FDS_TEST_ASKED_GAME_H

#include "../game/fixture.h"
#include "baseline/baseline.h"

typedef struct {
    array_game game;
    size_t asked, calls, most; /* coalitions, calls, and coalitions of the greatest call */
    size_t fail_at;            /* the call that fails; 0: none */
    uint64_t *log;             /* (log_size) masks in the order asked for, or NULL */
    size_t log_size;
} asked_game;

static inline fds_status asked_ask(void *context, const uint64_t *coalitions, size_t count,
                                   double *values, fds_error *err) {
    asked_game *a = context;
    if (++a->calls == a->fail_at)
        return fds_fail(err, FDS_IO, "call %zu was told to fail", a->calls);
    assert_true(count > 0);
    a->most = FDS_MAX(a->most, count);
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

/* Values of accuracies: uniform in 0 .. 1. */
static inline double *random_accuracies(size_t count, fds_rng *rng) {
    double *v = need(count, sizeof *v);
    for (size_t i = 0; i < count; i++)
        v[i] = fds_rng_unit(rng);
    return v;
}

/* Euclidean distance. */
static inline double distance(const double *a, const double *b, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

#endif
