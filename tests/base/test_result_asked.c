/* SPDX-License-Identifier: Apache-2.0
 * What a result in memory answers: its values and names, ranks, the ranking as JSON, a description
 * that threads share. */
#include "result_sample.h"

#include <pthread.h>

/* ---- getters ---- */

static void getters_answer_for_any_index(void **state) {
    (void)state;
    fds_result *r = sample();
    const size_t far[] = {2, 3, SIZE_MAX - 1, SIZE_MAX};
    r->predicted[0] = 1;
    r->truth[0] = CLASSES; /* no such class */
    r->confidence[0] = 0.75;
    r->empty[1] = 0.25;
    r->full[1] = 0.5;
    assert_int_equal(fds_result_players(r), PLAYERS);
    assert_int_equal(fds_result_predictions(r), TESTS);
    assert_string_equal(fds_result_method(r), "ls");
    assert_false(fds_result_is_mean(r) || fds_result_is_exact(r));
    assert_string_equal(fds_result_player(r, 1), odd_name);
    assert_null(fds_result_provider(r, 0));
    assert_string_equal(fds_result_provider(r, 1), "M\xc3\xbcller, Ltd");
    assert_string_equal(fds_result_player_label(r, 0), "one, two");
    assert_string_equal(fds_result_input(r, 0), "?");
    assert_string_equal(fds_result_label(r, 1), "zero");
    assert_string_equal(fds_result_predicted(r, 0), "one, two");
    assert_null(fds_result_predicted(r, 1));
    assert_null(fds_result_truth(r, 0));
    assert_true(fds_result_confidence(r, 0) == 0.75 && isnan(fds_result_confidence(r, 1)));
    assert_true(fds_result_empty(r, 1) == 0.25 && fds_result_full(r, 1) == 0.5);
    assert_true(fds_result_value(r, 1, 0) == values[2] && fds_result_error(r, 1, 0) == errors[2]);
    assert_true(isnan(fds_result_check(r, 0, 0)) && isnan(fds_result_check_error(r, 0, 0)));
    for (size_t i = 0; i < COUNT(far); i++) {
        assert_string_equal(fds_result_player(r, far[i]), "?");
        assert_null(fds_result_provider(r, far[i]));
        assert_string_equal(fds_result_player_label(r, far[i]), "?");
        assert_string_equal(fds_result_input(r, far[i]), "?");
        assert_string_equal(fds_result_label(r, far[i]), "?");
        assert_null(fds_result_predicted(r, far[i]));
        assert_null(fds_result_truth(r, far[i]));
        assert_true(isnan(fds_result_confidence(r, far[i])) && isnan(fds_result_full(r, far[i])));
        assert_true(isnan(fds_result_value(r, far[i], 0)) && isnan(fds_result_value(r, 0, far[i])));
        assert_true(isnan(fds_result_error(r, far[i], 0)) && isnan(fds_result_error(r, 0, far[i])));
        assert_true(isnan(fds_result_mean(r, far[i])) && isnan(fds_result_mean_error(r, far[i])));
        assert_true(isnan(fds_result_check_correlation(r, far[i])));
    }
    fds_result_free(r);
}

static void names_are_copied_and_may_change(void **state) {
    (void)state;
    fds_result *r = sample();
    char name[] = "first";
    name_player(r, 0, name, name, 0, 1);
    name[0] = 'F';
    assert_string_equal(fds_result_player(r, 0), "first");
    name_player(r, 0, "second", NULL, 2, 5);
    assert_string_equal(fds_result_player(r, 0), "second");
    assert_null(fds_result_provider(r, 0));
    assert_string_equal(fds_result_player_label(r, 0), "f\xc3\xbcnf");
    fds_result_free(r);
}

static void means_are_over_all_predictions(void **state) {
    (void)state;
    fds_result *r = sample(), *all = sample_all(PLAYERS), *mean = sample_mean();
    for (size_t i = 0; i < PLAYERS; i++) {
        assert_true(fds_result_mean(r, i) == values[i] / 2 + values[2 + i] / 2);
        assert_true(isnan(fds_result_mean_error(r, i))); /* the predictions share sub-models */
        assert_true(fabs(fds_result_mean(all, i) - ((double)i + 0.06)) < 1e-15);
        assert_true(fds_result_mean_error(all, i) == 0); /* exact */
        assert_true(fds_result_mean(mean, i) == values[i]);
        assert_true(fds_result_mean_error(mean, i) == errors[i]);
    }
    fds_result_free(r);
    fds_result_free(all);
    fds_result_free(mean);
}

/* ---- ranks ---- */

static void players_are_ranked_by_value_then_by_number(void **state) {
    (void)state;
    static const double mixed[] = {0, 3, -0.0, INFINITY, 3, -INFINITY, 0, 1e-320};
    static const size_t expected[] = {3, 1, 4, 7, 0, 2, 6, 5};
    size_t order[COUNT(mixed)];
    fds_error err = {0};
    expect_ok(fds__rank(mixed, COUNT(mixed), order, &err), &err);
    assert_memory_equal(order, expected, sizeof expected);
    static const double unknown[] = {NAN, 1, -(double)NAN, 2, NAN};
    static const size_t last[] = {3, 1, 0, 2, 4};
    expect_ok(fds__rank(unknown, COUNT(unknown), order, &err), &err);
    assert_memory_equal(order, last, sizeof last);
    expect_ok(fds__rank(mixed, 0, order, &err), &err);
    enum { MANY = 300 };
    double many[MANY];
    size_t ranked[MANY];
    fds_rng rng = fds_rng_make(2, 0, 0, 0);
    for (size_t i = 0; i < MANY; i++)
        many[i] = fds_rng_below(&rng, 3) ? fds_rng_normal(&rng) : (double)NAN;
    expect_ok(fds__rank(many, MANY, ranked, &err), &err);
    for (size_t i = 1; i < MANY; i++) {
        double before = many[ranked[i - 1]], after = many[ranked[i]];
        assert_true(before >= after || (isnan(after) && !isnan(before)) ||
                    (isnan(before) && isnan(after) && ranked[i - 1] < ranked[i]));
    }
}

static void a_prediction_or_the_mean_is_ranked(void **state) {
    (void)state;
    fds_result *r = sample();
    fds_error err = {0};
    size_t order[PLAYERS];
    expect_ok(fds_result_rank(r, 0, order, &err), &err);
    assert_true(order[0] == 0 && order[1] == 1);
    expect_ok(fds_result_rank(r, SIZE_MAX, order, &err), &err);
    assert_true(order[0] == 1 && order[1] == 0);
    order[0] = 9;
    assert_int_equal(fds_result_rank(r, 2, order, &err), FDS_ERR_USAGE);
    expect_in(err.text, "prediction 2: there are 2");
    assert_int_equal(order[0], 9);
    fds_result_free(r);
}

/* ---- the ranking as JSON ---- */

static void json_of_inputs_ranks_the_players_of_each(void **state) {
    (void)state;
    fds_result *r = sample();
    name_input(r, 0, "test sample 7");
    name_input(r, 1, "b.png");
    r->samples[1] = FDS__UNKNOWN;
    r->truth[0] = 1;
    r->predicted[0] = 2;
    r->confidence[0] = 0.5;
    fds__json_put(r->about, "run", json_string("folder"));
    json_t *root = ranking(r);
    const json_t *inputs = json_object_get(root, "inputs"), *first = json_array_get(inputs, 0),
                 *second = json_array_get(inputs, 1);
    assert_string_equal(text_of(root, "run"), "folder");
    assert_null(json_object_get(root, "ranking"));
    assert_int_equal(json_array_size(inputs), TESTS);
    assert_string_equal(text_of(first, "input"), "test sample 7");
    assert_int_equal(int_of(first, "sample"), 7);
    assert_string_equal(text_of(first, "predicted"), "f\xc3\xbcnf");
    assert_string_equal(text_of(first, "true"), "one, two");
    assert_string_equal(text_of(first, "label"), "f\xc3\xbcnf");
    assert_true(real_of(first, "confidence") == 0.5);
    assert_true(json_is_null(json_object_get(first, "probability_with_none")));
    assert_true(json_is_null(json_object_get(second, "sample")));
    assert_true(json_is_null(json_object_get(second, "predicted")));
    assert_null(json_object_get(first, "correlation"));
    const json_t *best = json_array_get(json_object_get(second, "ranking"), 0);
    assert_int_equal(int_of(best, "rank"), 1);
    assert_string_equal(text_of(best, "player"), odd_name);
    assert_string_equal(text_of(best, "label"), "f\xc3\xbcnf");
    assert_string_equal(text_of(best, "provider"), "M\xc3\xbcller, Ltd");
    assert_int_equal(int_of(best, "samples"), 3);
    assert_true(real_of(best, "value") == 12345678.9);
    assert_null(json_object_get(best, "bank_value"));
    json_decref(root);
    fds_result_free(r);
}

static void json_of_test_samples_ranks_the_mean_alone(void **state) {
    (void)state;
    fds_result *r = sample();
    json_t *root = ranking(r);
    const json_t *list = json_object_get(root, "ranking");
    assert_null(json_object_get(root, "inputs"));
    assert_int_equal(json_array_size(list), PLAYERS);
    assert_string_equal(text_of(json_array_get(list, 0), "player"), odd_name);
    assert_true(json_is_null(json_object_get(json_array_get(list, 0), "standard_error")));
    json_decref(root);
    fds_result_free(r);
}

static void checked_values_stand_beside_the_others(void **state) {
    (void)state;
    fds_result *r = new_result(4, 1, 1);
    for (size_t i = 0; i < 4; i++)
        r->values[i] = (double)i;
    name_input(r, 0, "a");
    name_class(r, 0, "c");
    r->checks = fds__alloc_zero(4, sizeof *r->checks);
    r->check_errors = fds__alloc_zero(4, sizeof *r->check_errors);
    assert_true(r->checks && r->check_errors);
    for (size_t i = 0; i < 4; i++)
        r->checks[i] = 2 * (double)i + 1;
    r->check_errors[3] = 0.5;
    assert_true(fabs(fds_result_check_correlation(r, 0) - 1) < 1e-15);
    assert_true(fds_result_check(r, 0, 3) == 7 && fds_result_check_error(r, 0, 3) == 0.5);
    json_t *root = ranking(r);
    const json_t *input = json_array_get(json_object_get(root, "inputs"), 0),
                 *best = json_array_get(json_object_get(input, "ranking"), 0);
    assert_true(fabs(real_of(input, "correlation") - 1) < 1e-12);
    assert_true(real_of(best, "bank_value") == 7 && real_of(best, "bank_standard_error") == 0.5);
    json_decref(root);
    fds_result_free(r);
}

/* ---- the description, from several threads ---- */

static void *describe(void *result) { return (void *)(uintptr_t)fds_result_describe(result); }

static void threads_share_one_description(void **state) {
    (void)state;
    enum { THREADS = 8, ROUNDS = 50 };
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        void *texts[THREADS];
        fds_result *r = new_result(1, 1, 1);
        fds__json_put(r->about, "share", json_real(0.1));
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, describe, r), 0);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], &texts[i]), 0);
        for (int i = 0; i < THREADS; i++)
            assert_ptr_equal(texts[i], texts[0]);
        assert_string_equal(texts[0], "{\n \"share\": 0.1\n}");
        fds_result_free(r);
    }
}

int main(void) {
    json_set_alloc_funcs(fds__alloc, fds__free);
    const struct CMUnitTest tests[] = {
        TEST(getters_answer_for_any_index),
        TEST(names_are_copied_and_may_change),
        TEST(means_are_over_all_predictions),
        TEST(players_are_ranked_by_value_then_by_number),
        TEST(a_prediction_or_the_mean_is_ranked),
        TEST(json_of_inputs_ranks_the_players_of_each),
        TEST(json_of_test_samples_ranks_the_mean_alone),
        TEST(checked_values_stand_beside_the_others),
        TEST(threads_share_one_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
