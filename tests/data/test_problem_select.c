/* SPDX-License-Identifier: Apache-2.0
 * fds_problem_select: samples of players and training inputs that the caller names. */
#include "problem_fixture.h"

typedef struct {
    fds_dataset *train, *test;
    fds_params *params;
    fds_selection chosen;
} selecting;

static fds_status select_again(void *with, fds_error *err) {
    const selecting *s = with;
    fds_problem *p = NULL;
    fds_status status = fds_problem_select(s->train, s->test, &s->chosen, s->params, NULL, &p, err);
    fds_problem_free(p);
    return status;
}

static void named_samples_are_taken_as_they_are(void **state) {
    (void)state;
    static const uint32_t samples[] = {3, 4, 9, 11}, inputs[] = {0, 5, 6, 7, 8, 12, 13, 14, 15, 16},
                          group_of[] = {0, 1, 0, 1};
    selecting s = {.train = make_data(20, true), .test = make_data(7, true)};
    fds_error err = {0};
    fds_groups *groups;
    fds_problem *p;
    expect_ok(fds_groups_create(group_of, 4, NULL, &groups, &err), &err);
    s.chosen = (fds_selection){samples, 4, inputs, 10, groups};
    s.params = PARAMS("fit", "players", "all");
    expect_ok(fds_problem_select(s.train, s.test, &s.chosen, s.params, NULL, &p, &err), &err);
    assert_int_equal(fds_problem_players(p), 4);
    assert_string_equal(fds_problem_player(p, 1), "sample 4");
    assert_int_equal(fds_problem_tests(p), 7);
    assert_int_equal(p->input_count, 10);
    assert_memory_equal(p->inputs, inputs, sizeof inputs);
    assert_int_equal(fds_groups_of(p->groups, 2), 0);
    fds_problem_free(p);
    expect_ok(fds_problem_select(s.train, NULL, &s.chosen, s.params, NULL, &p, &err), &err);
    assert_int_equal(fds_problem_tests(p), 0);
    fds_problem_free(p);
    assert_true(each_fault(FDS__FAULT_ALLOC, select_again, NULL, &s) > 10);
    fds_params_free(s.params);
    s.params = PARAMS("shapley", "players", "providers");
    s.chosen.groups = NULL;
    expect_ok(fds_problem_select(s.train, s.test, &s.chosen, s.params, NULL, &p, &err), &err);
    assert_true(fds_problem_players(p) < 4); /* some have two of the samples */
    assert_int_equal(p->input_count, 0);
    fds_problem_free(p);
    fds_params_free(s.params);
    fds_groups_free(groups);
    fds_dataset_free(s.train);
    fds_dataset_free(s.test);
}

static void wrong_names_of_samples_are_refused(void **state) {
    (void)state;
    static const uint32_t twice[] = {3, 3}, far[] = {3, 20}, right[] = {3, 4}, group_of[] = {0};
    selecting s = {.train = make_data(20, false), .test = make_data(7, false)};
    const struct {
        fds_selection chosen;
        const fds_dataset *test;
        const char *text;
    } cases[] = {
        {{twice, 2, NULL, 0, NULL}, s.test, "samples of players must be ascending"},
        {{far, 2, NULL, 0, NULL}, s.test, "below 20 (got 20)"},
        {{right, 0, NULL, 0, NULL}, s.test, "needs samples of players"},
        {{right, 2, NULL, 0, NULL}, NULL, "needs test samples"},
    };
    fds_error err = {0};
    fds_problem *p = NULL;
    s.params = PARAMS("shapley", "players", "all");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            fds_problem_select(s.train, cases[i].test, &cases[i].chosen, s.params, NULL, &p, &err),
            FDS_ERR_USAGE);
        assert_non_null(strstr(err.text, cases[i].text));
    }
    fds_groups *groups;
    expect_ok(fds_groups_create(group_of, 1, NULL, &groups, &err), &err);
    s.chosen = (fds_selection){right, 2, NULL, 0, groups};
    assert_int_equal(fds_problem_select(s.train, s.test, &s.chosen, s.params, NULL, &p, &err),
                     FDS_ERR_USAGE);
    assert_non_null(strstr(err.text, "groups of 1 players: there are 2"));
    fds_groups_free(groups);
    fds_params_free(s.params);
    fds_dataset_free(s.train);
    fds_dataset_free(s.test);
}

static void samples_have_the_names_that_they_are_given(void **state) {
    (void)state;
    static const char *const names[] = {"eins", "zwei", "f\xc3\xbcnf"}, *const wrong[] = {
                                                                            "a", "\x01", "c"};
    fds_dataset *ds = make_data(3, false);
    fds_error err = {0};
    assert_null(fds_dataset_sample_name(ds, 0));
    assert_int_equal(fds_dataset_name_samples(ds, wrong, &err), FDS_ERR_FORMAT);
    assert_non_null(strstr(err.text, "name of sample 1"));
    expect_ok(fds_dataset_name_samples(ds, names, &err), &err);
    expect_ok(fds_dataset_name_samples(ds, names, &err), &err); /* the old ones are freed */
    assert_string_equal(fds_dataset_sample_name(ds, 2), names[2]);
    assert_null(fds_dataset_sample_name(ds, 3));
    fds_dataset_free(ds);
}

int main(void) {
    json_set_alloc_funcs(fds__alloc, fds__free);
    const struct CMUnitTest tests[] = {
        TEST(named_samples_are_taken_as_they_are),
        TEST(wrong_names_of_samples_are_refused),
        TEST(samples_have_the_names_that_they_are_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
