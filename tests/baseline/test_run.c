/* SPDX-License-Identifier: Apache-2.0
 * Methods that ask a table, from data to values: the same bits for any number of threads and from a
 * table that has it all, exact values in the limit, odd data, mistakes, and faults. */
#include "run_fixture.h"

static const char *const asking[] = {"loo", "tmc",           "beta:4,1",  "banzhaf",
                                     "ame", "group-testing", "cs-shapley"};

static bool may_judge(const char *method, fds__scorer scorer) {
    return strcmp(method, "cs-shapley") != 0 || scorer == FDS__SCORER_ACCURACY;
}

/* ---- bits ---- */

static void threads_change_no_bit(void **state) {
    (void)state;
    game g = game_vectors(4, 8, 3, 5);
    for (size_t m = 0; m < COUNT(asking); m++) {
        call first = call_of(&g, "retrain:2", asking[m], FDS__SCORER_ACCURACY);
        first.params.truncate = 0.05;
        call again = first;
        run_call(&first);
        forget_table(&first);
        for (unsigned threads = 2; threads <= 4; threads++) {
            again.params.threads = threads;
            run_call(&again);
            forget_table(&again);
            expect_same_bits(&first, &again);
            assert_int_equal(first.report.trained, again.report.trained);
        }
    }
    game_free(&g);
}

static void what_was_trained_once_is_not_trained_again(void **state) {
    (void)state;
    game g = game_vectors(6, 8, 3, 5);
    for (int scorer = FDS__SCORER_ACCURACY; scorer <= FDS__SCORER_EACH_SAMPLE; scorer++)
        for (size_t m = 0; m < COUNT(asking); m++) {
            if (!may_judge(asking[m], (fds__scorer)scorer))
                continue;
            call first = call_of(&g, "retrain:2", asking[m], (fds__scorer)scorer);
            call again = first;
            run_call(&first);
            run_call(&again);
            expect_same_bits(&first, &again);
            assert_int_equal(again.report.trained, 0);
            assert_int_equal(again.report.asked, first.report.asked);
            assert_true(first.report.asked > 0);
            if (m == 0 && scorer == 0)
                assert_int_equal(first.report.trained, 7);
            assert_true(first.report.trained <= 64); /* all coalitions there are */
        }
    game_free(&g);
}

/* ---- values ---- */

static void values_converge_to_the_exact_ones(void **state) {
    (void)state;
    enum { N = 6, X = 5 };
    game g = game_vectors(N, X, 3, 8);
    double truth[N * X];
    call each = call_of(&g, "retrain:2", "tmc", FDS__SCORER_EACH_SAMPLE);
    call mean = call_of(&g, "retrain:2", "tmc", FDS__SCORER_CONFIDENCE);
    exact_each(&g, &each.value, truth);
    each.params.permutations = mean.params.permutations = 1500;
    run_call(&each);
    run_call(&mean);
    for (size_t i = 0; i < N; i++) {
        double sum = 0;
        for (size_t x = 0; x < X; x++) {
            size_t at = i * X + x;
            assert_true(fabs(each.values[at] - truth[at]) < 4.5 * each.errors[at] + 1e-12);
            sum += each.values[at];
        }
        assert_true(fabs(sum / X - mean.values[i]) < 1e-12); /* the value is additive */
    }
    game_free(&g);
}

static void loo_is_the_difference_of_two_sub_models(void **state) {
    (void)state;
    game g = game_vectors(5, 6, 2, 9);
    call c = call_of(&g, "retrain:2", "loo", FDS__SCORER_EACH_SAMPLE);
    run_call(&c);
    expect_all_zero(c.errors, 5 * 6);
    fds_utility *value = make_value(&g, &c.value, 1);
    float all[6 * 2], less[6 * 2];
    eval(value, 0, 31, all);
    for (size_t i = 0; i < 5; i++) {
        eval(value, 0, 31 ^ (uint64_t)1 << i, less);
        for (size_t x = 0; x < 6; x++) {
            size_t at = 2 * x + fds__dataset_get_info(g.test).labels[x];
            assert_true(c.values[i * 6 + x] == (double)all[at] - (double)less[at]);
        }
    }
    fds_utility_free(value);
    game_free(&g);
}

/* ---- odd data ---- */

static void few_players_and_few_classes(void **state) {
    (void)state;
    for (size_t players = 1; players <= 2; players++)
        for (uint32_t classes = 1; classes <= 2; classes++) {
            game g = game_vectors(players, 4, classes, 7);
            for (size_t m = 0; m < COUNT(asking); m++) {
                call c = call_of(&g, "retrain:2", asking[m], FDS__SCORER_ACCURACY);
                c.params.truncate = 0.01;
                run_call(&c);
                for (size_t i = 0; i < players; i++)
                    if (classes == 1 && m < 5) /* always right, even untrained */
                        assert_true(c.values[i] == 0);
                    else
                        assert_true(isfinite(c.values[i]));
                forget_table(&c);
            }
            game_free(&g);
        }
}

/* Two equal samples: kernel regression cannot distinguish their owners. */
static void twins_are_worth_the_same(void **state) {
    (void)state;
    const float train[] = {0, 1, 0, 1, 1, 0, 0, 0}, test[] = {0, 1, 1, 0};
    const uint16_t train_labels[] = {0, 0, 1, 1}, test_labels[] = {0, 1};
    game g = {.inputs = {0, 1}, .input_count = 2};
    fds_error err = {0};
    fds_shape shape = {2, 1, 1};
    expect_ok(fds__dataset_create(4, shape, NULL, train, train_labels, 2, NULL, &g.train, &err),
              &err);
    expect_ok(fds__dataset_create(2, shape, NULL, test, test_labels, 2, NULL, &g.test, &err), &err);
    expect_ok(fds_players_points(g.train, NULL, 4, &g.players, &err), &err);
    call loo = call_of(&g, "kernel", "loo", FDS__SCORER_CONFIDENCE);
    run_call(&loo);
    assert_true(fabs(loo.values[0] - loo.values[1]) < 1e-6);
    call tmc = call_of(&g, "kernel", "tmc", FDS__SCORER_CONFIDENCE);
    tmc.params.permutations = 2000;
    run_call(&tmc);
    assert_true(fabs(tmc.values[0] - tmc.values[1]) < 4 * (tmc.errors[0] + tmc.errors[1]));
    game_free(&g);
}

static void no_orders_said_means_those_of_the_method(void **state) {
    (void)state;
    game g = game_vectors(3, 4, 2, 7);
    call c = call_of(&g, "kernel", "tmc", FDS__SCORER_CONFIDENCE);
    c.params.permutations = 0;
    run_call(&c);
    assert_int_equal(c.report.permutations, 1000);
    assert_true(!isnan(c.report.change) && !c.report.has_converged);
    game_free(&g);
}

/* ---- mistakes ---- */

static void parts_that_do_not_fit_are_refused(void **state) {
    (void)state;
    game g = game_vectors(3, 4, 2, 7);
    fds__utility_params p = smaller("kernel");
    fds_utility *value = make_value(&g, &p, 1);
    fds_table *table = NULL;
    fds_error err = {0};
    double out[3];
    uint32_t labels[4] = {0, 1, 0, 1}, bad[4] = {0, 1, 2, 0}, beyond[4] = {0, 1, 2, 4};
    expect_ok(fds_table_open(scratch_path("t"), value, FDS_STORE_F32, NULL, &table, &err), &err);
    const fds_problem problem = game_problem(&g);
    const fds__baseline_data good = {.problem = &problem, .labels = labels, .table = table};
    fds_params loo = {.method = "loo"};
    expect_ok(fds__baseline(&loo, &good, out, NULL, NULL, NULL, &err), &err);
    fds__baseline_data data = good;
    data.table = NULL;
    expect_failure(fds__baseline(&loo, &data, out, NULL, NULL, NULL, &err), FDS_ERR_USAGE, &err,
                   "needs a table");
    fds_problem changed = problem;
    data = good;
    data.problem = &changed;
    changed.test_count = 3;
    expect_failure(fds__baseline(&loo, &data, out, NULL, NULL, NULL, &err), FDS_ERR_SHAPE, &err,
                   "4 test samples and 2 classes, the data has 3, 3 and 2");
    changed.test_count = 0;
    expect_failure(fds__baseline(&loo, &data, out, NULL, NULL, NULL, &err), FDS_ERR_USAGE, &err,
                   "no samples chosen");
    data = good;
    data.labels = bad;
    expect_failure(fds__baseline(&loo, &data, out, NULL, NULL, NULL, &err), FDS_ERR_USAGE, &err,
                   "test sample 2: label 2, there are 2 classes");
    data.labels = NULL;
    expect_failure(fds__baseline(&loo, &data, out, NULL, NULL, NULL, &err), FDS_ERR_USAGE, &err,
                   "needs training data, players, test data and labels");
    data = good;
    data.problem = &changed;
    changed = problem;
    changed.tests = beyond;
    assert_int_not_equal(fds__baseline(&loo, &data, out, NULL, NULL, NULL, &err), FDS_OK);
    expect_failure(fds__baseline(&loo, NULL, out, NULL, NULL, NULL, &err), FDS_ERR_USAGE, &err,
                   "needs training data");
    loo.scorer = 7;
    expect_failure(fds__baseline(&loo, &good, out, NULL, NULL, NULL, &err), FDS_ERR_USAGE, &err,
                   "`scorer` 7: there are 0 to 3");
    loo.scorer = FDS__SCORER_ACCURACY;
    game other = game_vectors(4, 4, 2, 7);
    data = good;
    data.made = make_value(&other, &p, 1);
    expect_failure(fds__baseline(&loo, &data, out, NULL, NULL, NULL, &err), FDS_ERR_SHAPE, &err,
                   "the utility function has 4 players");
    fds_utility_free((fds_utility *)(uintptr_t)data.made);
    game_free(&other);
    fds_table_free(table);
    fds_utility_free(value);
    game_free(&g);
}

/* Without parameters, a utility function has those of fds__utility_params_default. */
static void without_parameters_the_usual_ones_are_taken(void **state) {
    (void)state;
    static const char *const free_of_tables[] = {"gshapley", "freeshap", "knn:2@model"};
    game g = game_digits(4, 5);
    for (size_t m = 0; m < COUNT(free_of_tables); m++) {
        call given = call_of(&g, "entk", free_of_tables[m], FDS__SCORER_CONFIDENCE), none = given;
        given.value = fds__utility_params_default();
        given.params.permutations = none.params.permutations = 1;
        none.is_default = true;
        run_call(&given);
        run_call(&none);
        expect_same_bits(&given, &none);
    }
    game_free(&g);
}

/* ---- what it takes ---- */

static size_t most_of(const char *method, size_t players, uint32_t classes) {
    fds_params params;
    fds_error err;
    size_t most;
    expect_ok(fds__baseline_default(method, &params, &err), &err);
    expect_ok(fds__baseline_most(&params, players, classes, &most, &err), &err);
    return most;
}

static void the_most_coalitions_are_known_beforehand(void **state) {
    (void)state;
    assert_int_equal(most_of("loo", 100, 10), 101);
    assert_int_equal(most_of("tmc", 100, 10), 99002);
    assert_int_equal(most_of("beta:4,1", 100, 10), 99002);
    assert_int_equal(most_of("cs-shapley", 100, 10), 110001);
    assert_int_equal(most_of("group-testing", 100, 10), 2061);
    assert_int_equal(most_of("banzhaf", 100, 10), (size_t)ceil(log(4000) * 800 / 3));
    assert_int_equal(most_of("ame", 100, 10), 2000);
    assert_int_equal(most_of("tmc", 6, 3), 64); /* all that there are */
    static const char *const none[] = {"gshapley", "freeshap", "knn:5", "random", "same-label"};
    for (size_t i = 0; i < COUNT(none); i++)
        assert_int_equal(most_of(none[i], 100, 10), 0);
    fds_params params = {.method = "tmc", .scorer = 9};
    fds_error err = {0};
    size_t most;
    expect_failure(fds__baseline_most(&params, 10, 2, &most, &err), FDS_ERR_USAGE, &err,
                   "`scorer` 9: there are 0 to 3");
}

/* On a game of 40 players, of which few coalitions repeat. */
static void no_method_asks_for_more(void **state) {
    (void)state;
    enum { N = 40, X = 12 };
    game g = {.train = vectors(N, 3, 5), .test = vectors(X, 3, 6), .input_count = X};
    fds__utility_params p = smaller("kernel");
    fds_error err = {0};
    uint32_t labels[X];
    double out[N];
    expect_ok(fds_players_points(g.train, NULL, N, &g.players, &err), &err);
    for (size_t i = 0; i < X; i++) {
        g.inputs[i] = (uint32_t)i;
        labels[i] = fds__dataset_get_info(g.test).labels[i];
    }
    const fds_problem problem = game_problem(&g);
    fds_utility *value = make_value(&g, &p, 1);
    for (size_t m = 0; m < COUNT(asking); m++)
        for (int form = 0; form < 2; form++) {
            fds_table *table = NULL;
            fds_table_cost before, after;
            fds_params params = {.method = asking[m],
                                 .permutations = 3,
                                 .coalitions = 60,
                                 .form = form,
                                 .truncate = form ? 0.3 : 0};
            expect_ok(fds_table_open(scratch_path("t"), value, FDS_STORE_F32, NULL, &table, &err),
                      &err);
            expect_ok(fds__baseline_estimate(&params, table, &before, &err), &err);
            assert_true(before.missing == before.coalitions && before.disk_free > 0);
            const fds__baseline_data data = {.problem = &problem, .labels = labels, .table = table};
            expect_ok(fds__baseline(&params, &data, out, NULL, NULL, NULL, &err), &err);
            size_t there = fds__table_count(table), most = before.coalitions;
            assert_true(form ? there <= most : there == most); /* nothing is drawn twice here */
            uint64_t bytes;
            expect_ok(fds__table_bytes(value, FDS_STORE_F32, most, &bytes, &err), &err);
            assert_int_equal(before.disk, bytes);
            expect_ok(fds__baseline_estimate(&params, table, &after, &err), &err);
            assert_int_equal(after.missing, most - there);
            assert_true(after.missing > 0 || after.disk == 0);
            fds_table_free(table);
            nftw(scratch_path("t"), scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
        }
    fds_utility_free(value);
    game_free(&g);
}

/* ---- events and faults ---- */

typedef struct {
    uint64_t done, total, stop_at;
} follower;

static bool follow(void *user, const fds_progress *progress) {
    follower *f = user;
    if (progress->total == 0) /* sub-models, reported by the game of the table */
        return false;
    assert_true(progress->done >= f->done && progress->done <= progress->total);
    f->done = progress->done;
    f->total = progress->total;
    return f->stop_at && progress->done >= f->stop_at;
}

static void methods_report_progress_and_can_be_cancelled(void **state) {
    (void)state;
    static const char *const names[] = {"loo", "tmc", "beta:4,1", "banzhaf"};
    static const uint64_t totals[] = {7, 40 * 6, 40 * 6, 60};
    game g = game_vectors(6, 4, 2, 7);
    for (size_t m = 0; m < COUNT(names); m++) {
        follower f = {0};
        fds_events events = {.progress = follow, .user = &f};
        call c = call_of(&g, "kernel", names[m], FDS__SCORER_CONFIDENCE);
        fds_error err = {0};
        c.events = &events;
        run_call(&c);
        assert_int_equal(f.done, totals[m]);
        assert_int_equal(f.total, totals[m]);
        f = (follower){.stop_at = 1};
        expect_failure(try_call(&c, &err), FDS_ERR_CANCELLED, &err, "");
    }
    game_free(&g);
}

/* Every allocation of a run from a table, and every file operation of one that fills it, fails
 * once; test_ask.c has the allocations of filling. */
static void every_fault_is_reported_and_leaks_nothing(void **state) {
    (void)state;
    game g = game_vectors(2, 3, 2, 7);
    call whole = call_of(&g, "kernel", "tmc", FDS__SCORER_ACCURACY);
    whole.params.permutations = 1;
    run_call(&whole);
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t nth = 1;; nth++) {
            call c = whole;
            fds_error err = {0};
            if (kind == FDS__FAULT_IO)
                forget_table(&c);
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status = try_call(&c, &err);
            if (fds__fault_arm((fds__fault_kind)kind, 0) < nth) {
                expect_ok(status, &err);
                print_message("# %lu %s failed, one at a time\n", (unsigned long)nth - 1,
                              kind ? "file operations" : "allocations");
                break;
            }
            if (status == FDS_OK)
                fail_msg("fault %d number %lu went unseen", kind, (unsigned long)nth);
            assert_true(strlen(err.text) > 0);
            if (kind == FDS__FAULT_IO) { /* what was left on the disk does no harm */
                run_call(&c);
                expect_same_bits(&whole, &c);
            }
        }
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(threads_change_no_bit),
        IN_SCRATCH(what_was_trained_once_is_not_trained_again),
        IN_SCRATCH(values_converge_to_the_exact_ones),
        IN_SCRATCH(loo_is_the_difference_of_two_sub_models),
        IN_SCRATCH(few_players_and_few_classes),
        IN_SCRATCH(twins_are_worth_the_same),
        IN_SCRATCH(no_orders_said_means_those_of_the_method),
        IN_SCRATCH(parts_that_do_not_fit_are_refused),
        cmocka_unit_test(without_parameters_the_usual_ones_are_taken),
        cmocka_unit_test(the_most_coalitions_are_known_beforehand),
        IN_SCRATCH(no_method_asks_for_more),
        IN_SCRATCH(methods_report_progress_and_can_be_cancelled),
        IN_SCRATCH(every_fault_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
