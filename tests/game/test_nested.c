/* SPDX-License-Identifier: Apache-2.0
 * Plans of players who come and go: restricted to common players, draws are the same; and least squares
 * on them are as near to exact values as on leverage sampling. */
#include "fixture.h"

#include <math.h>

enum { PLAYERS = 12, COUNT_OF = 200 };

static uint64_t key(size_t i) { return (i + 1) * UINT64_C(0x9e3779b97f4a7c15); }

static fds_plan *nested(const uint64_t *keys, size_t players, size_t count, uint64_t seed) {
    fds_plan *plan = NULL;
    fds_error err;
    expect_ok(fds_plan_nested(keys, players, count, seed, NULL, &plan, &err), &err);
    return plan;
}

static void longer_plans_begin_with_shorter_ones(void **state) {
    uint64_t keys[PLAYERS];
    (void)state;
    for (size_t i = 0; i < PLAYERS; i++)
        keys[i] = key(i);
    fds_plan *shorter = nested(keys, PLAYERS, 100, 3), *longer = nested(keys, PLAYERS, 300, 3);
    for (size_t row = 0; row < fds_plan_rows(shorter); row++)
        assert_memory_equal(fds_plan_coalition(shorter, row), fds_plan_coalition(longer, row),
                            sizeof(uint64_t));
    fds_plan_free(shorter);
    fds_plan_free(longer);
}

/* Every coalition of the plan without player 5 is one of the plan with it, without player 5; up to the
 * draws that one of them leaves out. */
static void a_plan_without_a_player_is_the_plan_restricted_to_the_others(void **state) {
    enum { N = 40, GONE = 5 };
    uint64_t keys[N], fewer[N - 1];
    size_t found = 0;
    (void)state;
    for (size_t i = 0; i < N; i++)
        keys[i] = key(i);
    for (size_t i = 0; i < N - 1; i++)
        fewer[i] = keys[i + (i >= GONE)];
    fds_plan *with = nested(keys, N, COUNT_OF, 1), *without = nested(fewer, N - 1, COUNT_OF, 1);
    for (size_t row = 2; row < fds_plan_rows(without); row++)
        for (size_t other = 2; other < fds_plan_rows(with); other++) {
            uint64_t bits = *fds_plan_coalition(with, other),
                     low = bits & (((uint64_t)1 << GONE) - 1), high = bits >> (GONE + 1) << GONE;
            if ((low | high) == *fds_plan_coalition(without, row)) {
                found++;
                break;
            }
        }
    /* of 100 draws about 2 / 41 are of nobody or everybody, in one of the plans or the other */
    assert_true(found >= COUNT_OF - 20);
    fds_plan_free(with);
    fds_plan_free(without);
}

static void pairs_are_complements_without_repetition(void **state) {
    uint64_t keys[5];
    bool seen[32] = {false};
    (void)state;
    for (size_t i = 0; i < 5; i++)
        keys[i] = key(i);
    fds_plan *plan = nested(keys, 5, 30, 2); /* all that there are */
    for (size_t row = 0; row < 32; row++) {
        uint64_t bits = *fds_plan_coalition(plan, row);
        assert_false(seen[bits]);
        seen[bits] = true;
        if (row % 2)
            assert_int_equal(bits, 31 & ~*fds_plan_coalition(plan, row - 1));
    }
    fds_plan_free(plan);
    fds_error err;
    assert_int_equal(fds_plan_nested(keys, 5, 32, 2, NULL, &plan, &err), FDS_ERR_LIMIT);
    assert_int_equal(fds_plan_nested(keys, 5, 7, 2, NULL, &plan, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_plan_nested(keys, 1, 2, 2, NULL, &plan, &err), FDS_ERR_USAGE);
}

static bool stop(void *user, const fds_progress *progress) {
    assert_true(progress->done < progress->total);
    return --*(int *)user == 0;
}

static void a_long_plan_can_be_cancelled(void **state) {
    (void)state;
    enum { MANY = 3000 };
    static uint64_t keys[MANY];
    int calls = 3; /* one for some hundred draws */
    const fds_events events = {.progress = stop, .user = &calls};
    fds_plan *plan = NULL;
    fds_error err;
    for (size_t i = 0; i < MANY; i++)
        keys[i] = key(i);
    assert_int_equal(fds_plan_nested(keys, MANY, 2000, 2, &events, &plan, &err), FDS_ERR_CANCELLED);
    assert_null(plan);
}

/* ---- against leverage sampling ---- */

/* A game of squares and pairs, whose values are known by enumeration. */
static double worth(uint64_t bits) {
    double linear = 0, pairs = 0;
    for (size_t i = 0; i < PLAYERS; i++)
        for (size_t k = 0; bits >> i & 1 && k <= i; k++)
            if (bits >> k & 1)
                (i == k ? (linear += sin((double)(3 * i + 1)))
                        : (pairs += cos((double)(7 * i + 5 * k))));
    return tanh(0.5 * linear) + 0.2 * pairs;
}

typedef struct {
    const fds_plan *plan;
} game;

static fds_status read_row(void *context, unsigned worker, size_t row, size_t first, size_t count,
                           double *out, fds_error *err) {
    (void)worker, (void)first, (void)count, (void)err;
    out[0] = worth(*fds_plan_coalition(((game *)context)->plan, row));
    return FDS_OK;
}

static void solve(const fds_plan *plan, bool is_exact, double values[PLAYERS]) {
    game g = {plan};
    const fds_rows rows = {1, read_row, &g};
    const fds_ls_params ls = {.adjust = FDS_ADJUST_NONE};
    fds_error err;
    if (is_exact)
        expect_ok(fds_exact(plan, &rows, 1, values, NULL, &err), &err);
    else
        expect_ok(fds_least_squares(plan, &rows, &ls, 1, values, NULL, NULL, NULL, &err), &err);
}

/* Root mean square error over seeds and players. */
static double error_of(bool is_nested, size_t count, const double *truth) {
    enum { SEEDS = 200 };
    double sum = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint64_t keys[PLAYERS];
        double values[PLAYERS];
        fds_plan *plan = NULL;
        fds_error err;
        for (size_t i = 0; i < PLAYERS; i++)
            keys[i] = key(i);
        if (is_nested)
            plan = nested(keys, PLAYERS, count, seed);
        else
            expect_ok(
                fds_plan_sample(FDS_SAMPLER_LEVERAGE, PLAYERS, NULL, count, seed, &plan, &err),
                &err);
        solve(plan, false, values);
        for (size_t i = 0; i < PLAYERS; i++)
            sum += (values[i] - truth[i]) * (values[i] - truth[i]);
        fds_plan_free(plan);
    }
    return sqrt(sum / (SEEDS * PLAYERS));
}

static void values_are_as_near_to_exact_ones_as_with_leverage_sampling(void **state) {
    static const size_t counts[] = {60, 120, 240, 480, 960};
    double truth[PLAYERS];
    fds_plan *all = NULL;
    fds_error err;
    (void)state;
    expect_ok(fds_plan_exact(FDS_SAMPLER_KERNEL, PLAYERS, NULL, &all, &err), &err);
    solve(all, true, truth);
    fds_plan_free(all);
    for (size_t i = 0; i < COUNT(counts); i++) {
        double ours = error_of(true, counts[i], truth), usual = error_of(false, counts[i], truth);
        print_message("# %zu coalitions: nested %.5f, leverage %.5f, ratio %.3f\n", counts[i], ours,
                      usual, ours / usual);
        assert_true(ours < 1.25 * usual);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longer_plans_begin_with_shorter_ones),
        cmocka_unit_test(a_plan_without_a_player_is_the_plan_restricted_to_the_others),
        cmocka_unit_test(pairs_are_complements_without_repetition),
        cmocka_unit_test(a_long_plan_can_be_cancelled),
        cmocka_unit_test(values_are_as_near_to_exact_ones_as_with_leverage_sampling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
