/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the game share: games given as arrays, plans and groups that are always there,
 * and a way to let every allocation fail. */
#ifndef FDS_TEST_GAME_FIXTURE_H
#define FDS_TEST_GAME_FIXTURE_H

#include "../base/scratch.h"
#include "game/game.h"

#include <math.h>

/* The status wanted, with a message that has the words. */
static inline void expect_error(fds_status got, fds_status wanted, const fds_error *err,
                                const char *words) {
    if (got != wanted || err->status != wanted)
        fail_msg("%s instead of %s", fds_status_name(got), fds_status_name(wanted));
    if (!strstr(err->text, words))
        fail_msg("\"%s\" does not say \"%s\"", err->text, words);
}

static inline double uniform(fds_rng *rng) { return 2 * fds_rng_unit(rng) - 1; }

/* ---- games of few players, given by the value of every coalition ---- */

typedef struct {
    size_t players, columns;
    const double *v; /* (2^players, columns) by mask */
} array_game;

/* The rows of a plan in such a game; both must outlive it. */
typedef struct {
    const array_game *game;
    const fds_plan *plan;
} array_context;

static inline fds_status array_read(void *context, unsigned worker, size_t row, size_t first,
                                    size_t count, double *out, fds_error *err) {
    (void)worker, (void)err;
    const array_context *a = context;
    size_t mask = fds_plan_coalition(a->plan, row)[0];
    memcpy(out, a->game->v + mask * a->game->columns + first, count * sizeof *out);
    return FDS_OK;
}

static inline fds_rows array_rows(array_context *context) {
    return (fds_rows){context->game->columns, array_read, context};
}

static inline fds_plan *exact_plan(fds_sampler sampler, size_t players, const fds_groups *groups) {
    fds_plan *plan = NULL;
    fds_error err;
    expect_ok(fds_plan_exact(sampler, players, groups, &plan, &err), &err);
    return plan;
}

static inline fds_plan *sampled_plan(fds_sampler sampler, size_t players, const fds_groups *groups,
                                     size_t count, uint64_t seed) {
    fds_plan *plan = NULL;
    fds_error err;
    expect_ok(fds_plan_sample(sampler, players, groups, count, seed, &plan, &err), &err);
    return plan;
}

static inline fds_groups *make_groups(const uint32_t *group_of, size_t players) {
    fds_groups *groups = NULL;
    fds_error err;
    expect_ok(fds_groups_create(group_of, players, NULL, &groups, &err), &err);
    return groups;
}

/* values[players * columns]; groups NULL: the Shapley value */
static inline void exact_values(const array_game *game, fds_sampler sampler,
                                const fds_groups *groups, unsigned threads, double *values) {
    fds_plan *plan = exact_plan(sampler, game->players, groups);
    array_context context = {game, plan};
    fds_rows rows = array_rows(&context);
    fds_error err;
    expect_ok(fds_exact(plan, &rows, threads, values, NULL, &err), &err);
    fds_plan_free(plan);
}

static inline double most(const double *v, size_t count) {
    double greatest = 0;
    for (size_t i = 0; i < count; i++)
        greatest = fmax(greatest, fabs(v[i]));
    return greatest;
}

static inline void expect_near(const double *got, const double *wanted, size_t count,
                               double tolerance, const char *what) {
    for (size_t i = 0; i < count; i++)
        if (!(fabs(got[i] - wanted[i]) <= tolerance))
            fail_msg("%s: value %zu is %.17g instead of %.17g", what, i, got[i], wanted[i]);
}

/* Any values, uniform in -1 .. 1, for all coalitions, the empty one too. */
static inline double *random_values(size_t count, fds_rng *rng) {
    double *v = need(count, sizeof *v);
    for (size_t i = 0; i < count; i++)
        v[i] = uniform(rng);
    return v;
}

/* Groups of n players: sizes and places at random, none empty. */
static inline void random_partition(fds_rng *rng, size_t n, size_t groups, uint32_t *group_of) {
    for (size_t i = 0; i < n; i++)
        group_of[i] = (uint32_t)(i < groups ? i : fds_rng_below(rng, groups));
    fds_rng_shuffle(rng, group_of, n);
}

/* ---- plans ---- */

static inline size_t plan_size(const fds_plan *plan, size_t row) {
    return fds_coalition_size(fds_plan_coalition(plan, row), fds_plan_players(plan));
}

/* A sampler that groups players gets three groups of different size. */
static inline fds_groups *groups_for(fds_sampler sampler, size_t n) {
    if (sampler < FDS_SAMPLER_GFDS)
        return NULL;
    uint32_t *group_of = need(n, sizeof *group_of);
    for (size_t i = 0; i < n; i++)
        group_of[i] = i % 7 < 1 ? 0 : i % 7 < 3 ? 1 : 2;
    fds_groups *groups = make_groups(group_of, n);
    free(group_of);
    return groups;
}

/* The coalition of the small game that a row stands for: members of owner singly, then the other
 * groups (owner = their number: groups alone). Fails when a group is torn. */
static inline size_t small_mask(const fds_plan *plan, size_t row, const fds_groups *groups,
                                size_t owner) {
    size_t mask = 0, bit = 0;
    const uint64_t *bits = fds_plan_coalition(plan, row);
    const uint32_t *members;
    size_t singles = fds_groups_members(groups, owner, &members);
    for (size_t i = 0; i < singles; i++)
        mask |= (size_t)fds_coalition_has(bits, members[i]) << bit++;
    for (size_t g = 0; g < fds_groups_count(groups); g++) {
        if (g == owner)
            continue;
        size_t count = fds_groups_members(groups, g, &members);
        for (size_t i = 1; i < count; i++)
            assert_true(fds_coalition_has(bits, members[i]) == fds_coalition_has(bits, members[0]));
        mask |= (size_t)fds_coalition_has(bits, members[0]) << bit++;
    }
    return mask;
}

/* ---- faults ---- */

/* Runs with the 1st, 2nd, 3rd ... allocation failing, until there is no such. */
static inline void each_allocation_fails(const char *name, fds_status (*run)(fds_error *)) {
    for (uint64_t nth = 1;; nth++) {
        fds_error err = {0};
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        fds_status status = run(&err);
        if (fds__fault_arm(FDS__FAULT_ALLOC, 0) < nth) {
            expect_ok(status, &err);
            assert_true(nth > 1);
            print_message("# %s: %lu allocations failed, one at a time\n", name,
                          (unsigned long)nth - 1);
            return;
        }
        if (status != FDS_ERR_NOMEM || err.status != FDS_ERR_NOMEM)
            fail_msg("%s: allocation %lu fails: %s", name, (unsigned long)nth,
                     fds_status_name(status));
    }
}

#endif
