/* SPDX-License-Identifier: Apache-2.0
 * The methods by name, what they are started with, and what is refused before any work. */
#include "../game/fixture.h"
#include "baseline/baseline.h"

static const char *example(const char *name) {
    return strcmp(name, "knn:K") == 0      ? "knn:5"
           : strcmp(name, "tknn:T") == 0   ? "tknn:2.5"
           : strcmp(name, "beta:A,B") == 0 ? "beta:4,1"
                                           : name;
}

static fds_params defaults(const char *name) {
    fds_params params;
    fds_error err;
    expect_ok(fds__baseline_default(name, &params, &err), &err);
    return params;
}

static void every_method_starts_with_what_its_check_accepts(void **state) {
    (void)state;
    for (const char *const *name = fds_baseline_methods(); *name; name++) {
        fds_params params = defaults(example(*name));
        fds_error err;
        assert_non_null(fds_baseline_about(*name));
        assert_string_equal(params.method, example(*name));
        expect_ok(fds__baseline_check(&params, 100, &err), &err);
    }
    assert_null(fds_baseline_about("nobody"));
    fds_params tmc = defaults("tmc");
    assert_int_equal(tmc.permutations, 1000);
    assert_true(tmc.until == 0.05 && tmc.truncate == 0.01);
    assert_true(defaults("beta:1,1").truncate == 0);
    assert_int_equal(defaults("knn:3").scorer, FDS__SCORER_CONFIDENCE);
    assert_int_equal(defaults("loo").scorer, FDS__SCORER_ACCURACY);
}

static void tables_are_asked_by_some(void **state) {
    (void)state;
    static const char *const yes[] = {"loo",     "tmc", "group-testing", "cs-shapley",
                                      "banzhaf", "ame", "beta:4,1"};
    static const char *const no[] = {"gshapley",   "freeshap", "knn:5", "random",
                                     "same-label", "",         "nobody"};
    for (size_t i = 0; i < COUNT(yes); i++)
        assert_true(fds__baseline_needs_table(yes[i]));
    for (size_t i = 0; i < COUNT(no); i++)
        assert_false(fds__baseline_needs_table(no[i]));
    assert_false(fds__baseline_needs_table(NULL));
}

static void unknown_methods_are_answered_with_the_list(void **state) {
    (void)state;
    static const char *const bad[] = {"", "lo", "tmc:5", "LOO", "looo", NULL};
    for (size_t i = 0; i < COUNT(bad); i++) {
        fds_params params;
        fds_error err = {0};
        expect_error(fds__baseline_default(bad[i], &params, &err), FDS_ERR_USAGE, &err,
                     "`method` must be ls, exact, loo, tmc, ");
        for (const char *const *name = fds_baseline_methods(); *name; name++)
            if (!strstr(err.text, *name))
                fail_msg("%s is not in: %s", *name, err.text);
        params = (fds_params){.method = bad[i]};
        expect_error(fds__baseline_check(&params, 10, &err), FDS_ERR_USAGE, &err,
                     "`method` must be");
        expect_error(fds__baseline(&params, NULL, NULL, NULL, NULL, NULL, &err), FDS_ERR_USAGE,
                     &err, "`method` must be");
    }
    static const char *const knn[] = {"knn", "knn:", "knn:0", "knn:-1", "knn:5x", "knn:9999999999"};
    static const char *const beta[] = {"beta", "beta:4", "beta:0,1", "beta:x,1"};
    fds_params params;
    fds_error err = {0};
    for (size_t i = 0; i < COUNT(knn); i++)
        expect_error(fds__baseline_default(knn[i], &params, &err), FDS_ERR_USAGE, &err,
                     "for example knn:5");
    for (size_t i = 0; i < COUNT(beta); i++)
        expect_error(fds__baseline_default(beta[i], &params, &err), FDS_ERR_USAGE, &err,
                     "for example beta:4,1");
}

/* ---- numbers that make no sense ---- */

static void expect_refused(fds_params params, size_t players, fds_status status,
                           const char *words) {
    fds_error err = {0};
    expect_error(fds__baseline_check(&params, players, &err), status, &err, words);
}

/* The table of parameters refuses them before the method sees them. */
static void expect_not_set(const char *name, const char *text, const char *words) {
    fds_error err = {0};
    fds_params *params = fds_params_create("value");
    assert_non_null(params);
    expect_error(fds_params_set(params, name, text, &err), FDS_ERR_USAGE, &err, words);
    fds_params_free(params);
}

#define WITH(name, ...)                             \
    ((fds_params){.method = name,                   \
                  .scorer = FDS__SCORER_CONFIDENCE, \
                  .permutations = 10,               \
                  .epsilon = 1,                     \
                  .delta = 0.1,                     \
                  __VA_ARGS__})

static void mistakes_are_named(void **state) {
    (void)state;
    expect_refused(WITH("loo", .threads = 1), 0, FDS_ERR_USAGE, "there are no players");
    expect_refused(WITH("loo", .threads = 1), (size_t)1 << 30, FDS_ERR_LIMIT, "at most");
    static const char *const refused[] = {"-0.1", "nan", "inf"};
    for (size_t i = 0; i < COUNT(refused); i++) {
        expect_not_set("until", refused[i], "`until` must be ");
        expect_not_set("truncate", refused[i], "`truncate` must be ");
        expect_not_set("epsilon", refused[i], "`epsilon` must be ");
        expect_not_set("delta", refused[i], "`delta` must be ");
    }
    expect_not_set("epsilon", "0", "`epsilon` must be a number above 0");
    expect_not_set("delta", "0", "`delta` must be a number above 0");
    expect_not_set("delta", "2", "`delta` must be ");
    expect_not_set("permutations", "18446744073709551615", "`permutations` must be ");
    expect_not_set("coalitions", "18446744073709551615", "`coalitions` must be ");
    expect_refused(WITH("banzhaf", .coalitions = 1), 10, FDS_ERR_USAGE,
                   "`coalitions` must be at least 2 for banzhaf (got 1)");
    static const char *const drawing[] = {"banzhaf", "group-testing"};
    for (size_t k = 0; k < 2; k++) {
        fds_params params = WITH(drawing[k], .threads = 1);
        params.delta = 1;
        expect_refused(params, 10, FDS_ERR_USAGE, "`delta` must be above 0 and below 1");
        params.delta = 0.1;
        params.scorer = FDS__SCORER_CROSS_ENTROPY;
        expect_refused(params, 10, FDS_ERR_USAGE, "needs `coalitions` with cross-entropy");
        params.coalitions = 100;
        params.epsilon = params.delta = 0; /* not used then */
        fds_error err;
        expect_ok(fds__baseline_check(&params, 10, &err), &err);
    }
}

static void neighbours_are_at_most_the_players(void **state) {
    (void)state;
    expect_refused(WITH("knn:11", .threads = 1), 10, FDS_ERR_USAGE,
                   "`method` knn:11: K must be at most 10");
    fds_params params = WITH("knn:10", .threads = 1);
    fds_error err;
    expect_ok(fds__baseline_check(&params, 10, &err), &err);
}

static void scorers_that_cannot_be_are_refused_with_the_reason(void **state) {
    (void)state;
    fds_params params;
    fds_error err;
    for (const char *const *name = fds_baseline_methods(); *name; name++)
        for (int scorer = 0; scorer <= FDS__SCORER_EACH_SAMPLE; scorer++) {
            params = defaults(example(*name));
            params.scorer = (fds__scorer)scorer;
            params.coalitions = 100;
            bool is_cs = strcmp(*name, "cs-shapley") == 0,
                 is_knn = strcmp(*name, "knn:K") == 0 || strcmp(*name, "tknn:T") == 0;
            if (is_cs && scorer != FDS__SCORER_ACCURACY)
                expect_refused(params, 10, FDS_ERR_USAGE,
                               "accuracies in one class and in the others");
            else if (is_knn &&
                     (scorer == FDS__SCORER_ACCURACY || scorer == FDS__SCORER_CROSS_ENTROPY))
                expect_refused(params, 10, FDS_ERR_USAGE, "share of the label among");
            else
                expect_ok(fds__baseline_check(&params, 10, &err), &err);
        }
    params = defaults("loo");
    params.scorer = 9;
    expect_refused(params, 10, FDS_ERR_USAGE, "`scorer` 9");
    params.scorer = -1;
    expect_refused(params, 10, FDS_ERR_USAGE, "`scorer` -1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_starts_with_what_its_check_accepts),
        cmocka_unit_test(tables_are_asked_by_some),
        cmocka_unit_test(unknown_methods_are_answered_with_the_list),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(neighbours_are_at_most_the_players),
        cmocka_unit_test(scorers_that_cannot_be_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
