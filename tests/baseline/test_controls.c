/* SPDX-License-Identifier: Apache-2.0
 * What methods are compared with: numbers that mean nothing, and labels that agree. */
#include "run_fixture.h"

static void random_numbers_are_standard_normal(void **state) {
    (void)state;
    enum { N = 20000 };
    double *values = need(N, sizeof *values), sum = 0, squares = 0;
    fds_params params = {.method = "random", .seed = 5};
    baseline_job job = {.params = &params, .players = N, .columns = 1, .values = values};
    assert_int_equal(run_job(&baseline_random, &job, NULL), FDS_OK);
    for (size_t i = 0; i < N; i++) {
        sum += values[i];
        squares += values[i] * values[i];
    }
    assert_true(fabs(sum / N) < 0.03 && fabs(squares / N - 1) < 0.05);
    free(values);
}

static void random_numbers_are_a_function_of_the_seed(void **state) {
    (void)state;
    game g = game_vectors(6, 5, 2, 1);
    call a = call_of(&g, "kernel", "random", FDS__SCORER_EACH_SAMPLE);
    call b = a, one = call_of(&g, "kernel", "random", FDS__SCORER_ACCURACY);
    b.params.threads = 3;
    run_call(&a);
    run_call(&b);
    run_call(&one);
    expect_same_bits(&a, &b);
    expect_all_nan(a.errors, 6 * 5);
    for (size_t i = 0; i < 6; i++)
        assert_true(one.values[i] == a.values[i * 5]);
    b.params.seed = 4;
    run_call(&b);
    assert_true(memcmp(a.values, b.values, sizeof a.values) != 0);
    game_free(&g);
}

static void labels_agree_or_not(void **state) {
    (void)state;
    game g = game_vectors(9, 7, 3, 2);
    call each = call_of(&g, "kernel", "same-label", FDS__SCORER_EACH_SAMPLE);
    call mean = call_of(&g, "kernel", "same-label", FDS__SCORER_ACCURACY);
    run_call(&each);
    run_call(&mean);
    const uint16_t *ours = fds__dataset_get_info(g.train).labels,
                   *asked = fds__dataset_get_info(g.test).labels;
    for (size_t i = 0; i < 9; i++) {
        size_t same = 0;
        for (size_t x = 0; x < 7; x++) {
            assert_true(each.values[i * 7 + x] == (ours[i] == asked[x]));
            same += ours[i] == asked[x];
        }
        assert_true(mean.values[i] == (double)same / 7);
    }
    game_free(&g);
}

/* Of a player with several samples, the label that most of them have. */
static void a_provider_has_the_label_of_most_samples(void **state) {
    (void)state;
    game g = game_providers(30, 5, 2, 3);
    call c = call_of(&g, "kernel", "same-label", FDS__SCORER_EACH_SAMPLE);
    run_call(&c);
    fds__dataset_info train = fds__dataset_get_info(g.train), test = fds__dataset_get_info(g.test);
    for (size_t p = 0; p < fds_players_count(g.players); p++) {
        const uint32_t *index;
        size_t count = fds_players_samples(g.players, p, &index), ones = 0;
        for (size_t i = 0; i < count; i++)
            ones += train.labels[index[i]];
        for (size_t x = 0; x < 5; x++)
            assert_true(c.values[p * 5 + x] == (test.labels[x] == (2 * ones > count)));
    }
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(random_numbers_are_standard_normal),
        IN_SCRATCH(random_numbers_are_a_function_of_the_seed),
        IN_SCRATCH(labels_agree_or_not),
        IN_SCRATCH(a_provider_has_the_label_of_most_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
