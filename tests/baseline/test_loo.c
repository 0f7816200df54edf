/* SPDX-License-Identifier: Apache-2.0
 * Leave one out, by definition. */
#include "asked_game.h"

static const fds_params loo = {.method = "loo"};

static void values_are_what_is_lost_without_a_player(void **state) {
    (void)state;
    for (size_t n = 1; n <= 10; n++) {
        enum { COLUMNS = 2 };
        fds_rng rng = fds_rng_make(1, 2000, n, 0);
        double *v = random_values(((size_t)1 << n) * COLUMNS, &rng), values[10 * COLUMNS],
               error = -1;
        asked_game a = {.game = {n, COLUMNS, v}};
        fds_error err;
        size_t all = ((size_t)1 << n) - 1;
        expect_ok(try_asking(&baseline_loo, &a, &loo, values, n == 1 ? &error : NULL, NULL, &err),
                  &err);
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < COLUMNS; c++)
                assert_true(values[i * COLUMNS + c] ==
                            v[all * COLUMNS + c] - v[(all ^ (size_t)1 << i) * COLUMNS + c]);
        assert_int_equal(a.asked, n + 1);
        assert_true(error == -1); /* exact: left as fds__baseline sets it, 0 */
        free(v);
    }
}

static fds_status sum_of_numbers(void *context, const uint64_t *coalitions, size_t count,
                                 double *values, fds_error *err) {
    (void)err;
    size_t n = *(size_t *)context;
    for (size_t k = 0; k < count; k++) {
        values[k] = 0;
        for (size_t i = 0; i < n; i++)
            values[k] +=
                fds_coalition_has(coalitions + k * fds_coalition_words(n), i) ? (double)i : 0;
    }
    return FDS_OK;
}

static void many_players_are_asked_for_in_several_calls(void **state) {
    (void)state;
    size_t n = 600;
    double values[600];
    baseline_job job = {.params = &loo,
                        .game = {n, 1, sum_of_numbers, &n},
                        .players = n,
                        .columns = 1,
                        .values = values};
    fds_error err;
    expect_ok(run_job(&baseline_loo, &job, &err), &err);
    for (size_t i = 0; i < n; i++)
        assert_true(values[i] == (double)i);
}

static fds_status small_run(fds_error *err) {
    double v[16] = {0}, values[4];
    asked_game a = {.game = {4, 1, v}};
    return try_asking(&baseline_loo, &a, &loo, values, NULL, NULL, err);
}

static void faults_are_passed_on_and_leak_nothing(void **state) {
    (void)state;
    each_allocation_fails("loo", small_run);
    expect_failures_passed_on(&baseline_loo, &loo, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_what_is_lost_without_a_player),
        cmocka_unit_test(many_players_are_asked_for_in_several_calls),
        cmocka_unit_test(faults_are_passed_on_and_leak_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
