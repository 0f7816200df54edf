/* SPDX-License-Identifier: Apache-2.0
 * fds_result_create: results of values that were computed elsewhere. */
#include "result_fixture.h"

static const double values[] = {0.1, 2e-300, -1.0 / 3, 12345678.9};
static const double errors[] = {0.01, 0, 1, 5e-324};

static const char *const own_classes[] = {"zero", "one"}, *const own_names[] = {"A", "B"},
                         *const own_inputs[] = {"x", "y"}, *const own_providers[] = {NULL, "P"};
static const uint32_t own_labels[] = {1, 0}, own_sizes[] = {3, 4}, own_groups[] = {5, 6},
                      own_targets[] = {0, 1};
static const fds_values own = {.method = "mine",
                               .players = 2,
                               .predictions = 2,
                               .classes = 2,
                               .class_names = own_classes,
                               .player_names = own_names,
                               .providers = own_providers,
                               .inputs = own_inputs,
                               .player_labels = own_labels,
                               .player_samples = own_sizes,
                               .player_groups = own_groups,
                               .labels = own_targets,
                               .values = values,
                               .errors = errors};

static fds_status make_own(void *with, fds_error *err) {
    fds_result *r = NULL;
    fds_status status = fds_result_create(with, &r, err);
    fds_result_free(r);
    return status;
}

static void values_of_ones_own_are_a_result(void **state) {
    (void)state;
    fds_result *r;
    fds_error err = {0};
    double copy[2][4];
    expect_ok(fds_result_create(&own, &r, &err), &err);
    fds_result_copy(r, copy[0], copy[1]);
    assert_memory_equal(copy[0], values, sizeof values);
    assert_memory_equal(copy[1], errors, sizeof errors);
    fds_result_copy(r, NULL, NULL);
    assert_string_equal(fds_result_player_label(r, 0), "one");
    assert_string_equal(fds_result_provider(r, 1), "P");
    assert_string_equal(fds_result_input(r, 1), "y");
    assert_string_equal(fds_result_label(r, 1), "one");
    assert_int_equal(fds_result_player_samples(r, 1), 4);
    assert_int_equal(fds_result_player_group(r, 1), 6);
    assert_int_equal(fds_result_player_samples(r, 2), 0);
    assert_int_equal(fds_result_player_group(r, 2), UINT32_MAX);
    assert_true(fds_result_mean(r, 0) == (values[0] + values[2]) / 2);
    fds_result_free(r);
    fds_values copied = own;
    assert_true(each_fault(FDS__FAULT_ALLOC, make_own, NULL, &copied) > 8);
}

static void what_is_not_known_may_be_left_out(void **state) {
    (void)state;
    fds_result *r;
    fds_error err = {0};
    fds_values few = {.method = "mine",
                      .players = 2,
                      .predictions = 1,
                      .classes = 2,
                      .class_names = own_classes,
                      .player_names = own_names,
                      .player_labels = own_labels,
                      .values = values};
    expect_ok(fds_result_create(&few, &r, &err), &err);
    assert_true(isnan(fds_result_error(r, 0, 0)));
    assert_string_equal(fds_result_input(r, 0), "?");
    assert_int_equal(fds_result_player_samples(r, 0), 1);
    assert_int_equal(fds_result_player_group(r, 0), UINT32_MAX);
    fds_result_free(r);
    few.is_exact = true;
    expect_ok(fds_result_create(&few, &r, &err), &err);
    assert_true(fds_result_error(r, 0, 0) == 0);
    fds_result_free(r);
    few.values = NULL;
    assert_int_equal(fds_result_create(&few, &r, &err), FDS_ERR_USAGE);
    few.values = values;
    few.classes = 1;
    assert_int_equal(fds_result_create(&few, &r, &err), FDS_ERR_USAGE);
    assert_string_equal(err.text, "player 0: label 1, there are 1 classes");
}

static void values_of_a_regression_have_targets_for_labels(void **state) {
    (void)state;
    fds_result *r;
    fds_error err = {0};
    static const double players[] = {0.1, -1.0 / 3}, explained[] = {12345678.9, NAN};
    fds_values numbers = {.method = "mine",
                          .players = 2,
                          .predictions = 2,
                          .player_names = own_names,
                          .values = values,
                          .player_targets = players,
                          .targets = explained};
    expect_ok(fds_result_create(&numbers, &r, &err), &err);
    assert_true(fds_result_is_regression(r));
    assert_true(fds_result_player_target(r, 0) == 0.1 &&
                fds_result_player_target(r, 1) == -1.0 / 3);
    assert_true(fds_result_target(r, 0) == 12345678.9 && isnan(fds_result_target(r, 1)));
    assert_true(isnan(fds_result_predicted_target(r, 0)) && isnan(fds_result_true_target(r, 0)));
    assert_true(isnan(fds_result_player_target(r, 2)) && isnan(fds_result_target(r, 2)));
    assert_string_equal(fds_result_label(r, 1), "?");
    fds_result_free(r);
    assert_true(each_fault(FDS__FAULT_ALLOC, make_own, NULL, &numbers) > 8);
    expect_ok(fds_result_create(&own, &r, &err), &err);
    assert_true(isnan(fds_result_player_target(r, 0)) && isnan(fds_result_target(r, 0)));
    fds_result_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(values_of_ones_own_are_a_result),
        TEST(what_is_not_known_may_be_left_out),
        TEST(values_of_a_regression_have_targets_for_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
