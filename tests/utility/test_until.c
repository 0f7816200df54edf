/* SPDX-License-Identifier: Apache-2.0
 * How many coalitions the next round of `until_error` has. */
#include "utility_fixture.h"

static fds__until begin(double wanted, uint64_t most, size_t first) {
    const fds_params params = {.until_error = wanted, .coalitions = most};
    fds__until u;
    fds__until_begin(&u, &params, first, 1 << 20);
    return u;
}

/* Whether it was the last round when all predictions have this error. */
static bool measure(fds__until *u, double error, bool is_ridged) {
    double greatest[3] = {error, error, error};
    return fds__until_measure(u, greatest, 3, is_ridged, NULL);
}

static void the_next_round_follows_the_root_of_the_number(void **state) {
    (void)state;
    fds__until u = begin(0.01, 0, 1000);
    assert_false(measure(&u, 0.015, false)); /* 2.25 times as many, and a margin */
    assert_in_range(u.count, 2300, 2400);
    assert_int_equal(u.count % 2, 0);
    assert_true(measure(&u, 0.01, false));
    assert_true(u.is_reached);
    assert_int_equal(u.rounds, 2);
}

static void a_round_is_neither_much_larger_nor_hardly_larger(void **state) {
    (void)state;
    fds__until u = begin(0.01, 0, 1000);
    assert_false(measure(&u, 5, false));
    assert_int_equal(u.count, 4000);
    assert_false(measure(&u, 0.010001, false));
    assert_int_equal(u.count, 5000);
}

static void errors_of_a_ridge_are_not_believed(void **state) {
    (void)state;
    fds__until u = begin(0.01, 0, 1000);
    assert_false(measure(&u, 0.001, true));
    assert_int_equal(u.count, 4000);
}

static void the_most_is_the_last_round(void **state) {
    (void)state;
    fds__until u = begin(0.01, 1501, 1000), small = begin(0.01, 600, 1000);
    assert_int_equal(small.count, 600);
    assert_false(measure(&u, 1, false));
    assert_int_equal(u.count, 1501);
    assert_true(measure(&u, 1, false));
    assert_false(u.is_reached);
}

static void the_noise_of_a_program_ends_the_rounds(void **state) {
    (void)state;
    fds__until u = begin(0.01, 0, 1000);
    u.floor = 0.006; /* 0.0175 without it, which must become 0.008 */
    assert_false(measure(&u, 0.0185, false));
    assert_int_equal(u.count, 4000);
    assert_false(measure(&u, 0.0125, false)); /* 1.88 times as many instead of 1.56, and a margin */
    assert_in_range(u.count, 7500, 8500);
    u.floor = 0.01;
    assert_true(measure(&u, 0.0101, false));
    assert_false(u.is_reached);
}

static void a_round_has_more_coalitions_even_if_they_are_few(void **state) {
    (void)state;
    fds__until u = begin(0.01, 0, 4);
    assert_false(measure(&u, 0.010001, false));
    assert_int_equal(u.count, 6);
    fds__until few = begin(0.01, 5, 4);
    assert_false(measure(&few, 0.010001, false));
    assert_int_equal(few.count, 5);
}

static void there_is_a_most_if_none_is_given(void **state) {
    (void)state;
    const fds_params params = {.until_error = 1e-9},
                     more = {.until_error = 1e-9, .coalitions = 1 << 25};
    fds__until u;
    fds__until_begin(&u, &params, 1000, (size_t)1 << 27);
    assert_int_equal(u.most, 1 << 24);
    fds__until_begin(&u, &more, 1000, (size_t)1 << 27);
    assert_int_equal(u.most, 1 << 25);
}

static void five_of_a_hundred_predictions_may_be_worse(void **state) {
    (void)state;
    double greatest[100];
    for (size_t worse = 5; worse <= 6; worse++) {
        fds__until u = begin(0.01, 0, 1000);
        for (size_t i = 0; i < 100; i++)
            greatest[i] = i < worse ? 0.5 : 0.009;
        assert_int_equal(fds__until_measure(&u, greatest, 100, false, NULL), worse == 5);
    }
    fds__until one = begin(0.01, 0, 1000);
    greatest[0] = 0.02;
    assert_false(fds__until_measure(&one, greatest, 1, false, NULL));
}

static void the_greatest_error_is_found_at_any_stride(void **state) {
    (void)state;
    const double errors[] = {1, 9, 3, 9, 2, 9};
    assert_true(fds__until_greatest(errors, 3, 2) == 3);
    assert_true(fds__until_greatest(errors + 1, 1, 1) == 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_round_follows_the_root_of_the_number),
        cmocka_unit_test(a_round_is_neither_much_larger_nor_hardly_larger),
        cmocka_unit_test(errors_of_a_ridge_are_not_believed),
        cmocka_unit_test(the_noise_of_a_program_ends_the_rounds),
        cmocka_unit_test(a_round_has_more_coalitions_even_if_they_are_few),
        cmocka_unit_test(there_is_a_most_if_none_is_given),
        cmocka_unit_test(the_most_is_the_last_round),
        cmocka_unit_test(five_of_a_hundred_predictions_may_be_worse),
        cmocka_unit_test(the_greatest_error_is_found_at_any_stride),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
