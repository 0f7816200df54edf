/* SPDX-License-Identifier: Apache-2.0
 * KNN-Shapley through fds__baseline: exact, against enumeration. */
#include "run_fixture.h"

static void values_are_exact(void **state) {
    (void)state;
    static const char *const names[] = {"knn:1", "knn:3", "knn:8"};
    game g = game_vectors(8, 9, 3, 4);
    for (size_t k = 0; k < COUNT(names); k++) {
        double truth[8 * 9];
        call each = call_of(&g, "kernel", names[k], FDS__SCORER_EACH_SAMPLE);
        call mean = call_of(&g, "kernel", names[k], FDS__SCORER_CONFIDENCE);
        fds__utility_params p = smaller(names[k]);
        exact_each(&g, &p, truth);
        nftw(scratch_path("exact"), scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
        run_call(&each);
        run_call(&mean);
        for (size_t i = 0; i < 8; i++) {
            double sum = 0;
            for (size_t x = 0; x < 9; x++) {
                /* the table holds floats */
                assert_true(fabs(each.values[i * 9 + x] - truth[i * 9 + x]) < 1e-7);
                sum += each.values[i * 9 + x];
            }
            assert_true(fabs(mean.values[i] - sum / 9) < 1e-15);
        }
        expect_all_zero(each.errors, 8 * 9);
        expect_all_zero(mean.errors, 8);
        assert_int_equal(mean.report.asked, 0);
    }
    game_free(&g);
}

static void one_player_has_all_of_it(void **state) {
    (void)state;
    game g = game_vectors(1, 4, 2, 6);
    call c = call_of(&g, "kernel", "knn:1", FDS__SCORER_EACH_SAMPLE);
    run_call(&c);
    for (size_t x = 0; x < 4; x++)
        assert_true(c.values[x] == (fds__dataset_get_info(g.test).labels[x] ==
                                    fds__dataset_get_info(g.train).labels[0]));
    game_free(&g);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    game g = game_providers(20, 4, 2, 3);
    fds_error err = {0};
    call c = call_of(&g, "kernel", "knn:2", FDS__SCORER_CONFIDENCE);
    expect_failure(try_call(&c, &err), FDS_ERR_USAGE, &err, "one sample per player");
    c.params.method = "knn:4";
    expect_failure(try_call(&c, &err), FDS_ERR_USAGE, &err, "K must be at most 3");
    c = call_of(&g, "kernel", "knn:2", FDS__SCORER_ACCURACY);
    expect_failure(try_call(&c, &err), FDS_ERR_USAGE, &err, "cannot be scored by accuracy");
    game_free(&g);
}

static void neighbours_that_are_sorted_are_not_sorted_again(void **state) {
    (void)state;
    game g = game_vectors(6, 5, 3, 6);
    call pixels = call_of(&g, "kernel", "knn:2", FDS__SCORER_EACH_SAMPLE);
    call features = call_of(&g, "kernel", "knn:2@model", FDS__SCORER_CONFIDENCE);
    expect_made_to_be_used(&pixels, "knn:2", "knn:3");
    expect_made_to_be_used(&features, "knn:2@model", "knn:2");
    game_free(&g);
}

static void want_of_memory_leaks_nothing(void **state) {
    (void)state;
    game g = game_vectors(5, 3, 2, 6);
    call c = call_of(&g, "kernel", "knn:2", FDS__SCORER_CONFIDENCE);
    expect_allocations_to_fail(&c);
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(values_are_exact),
        IN_SCRATCH(one_player_has_all_of_it),
        IN_SCRATCH(what_cannot_be_is_refused),
        IN_SCRATCH(neighbours_that_are_sorted_are_not_sorted_again),
        IN_SCRATCH(want_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
