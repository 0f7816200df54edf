/* SPDX-License-Identifier: Apache-2.0
 * A table as a game: scores by their definitions, what is trained and what is not, and faults. */
#include "../utility/table_tests.h"
#include "baseline/baseline.h"

static const fds__scorer scorers[] = {FDS__SCORER_ACCURACY, FDS__SCORER_CONFIDENCE,
                                      FDS__SCORER_CROSS_ENTROPY, FDS__SCORER_EACH_SAMPLE};
static const uint32_t labels[INPUTS] = {1, 0, 1};

/* The game of a table, and the job that it belongs to. */
typedef struct {
    fds_params params;
    fds__baseline_data data;
    fds__baseline_report report;
    baseline_job job;
} asked_table;

static fds_status open_game(asked_table *a, fds_table *table, bool by_class, fds__scorer scorer,
                            unsigned threads, const fds_events *events, fds_error *err) {
    a->params = (fds_params){.scorer = scorer, .threads = threads};
    a->data = (fds__baseline_data){.labels = labels, .table = table};
    a->report = (fds__baseline_report){0};
    a->job = (baseline_job){
        .params = &a->params, .data = &a->data, .report = &a->report, .events = events};
    return baseline_open_game(&a->job, by_class, err);
}

static void open_scored(asked_table *a, fds_table *table, fds__scorer scorer, unsigned threads) {
    fds_error err = {0};
    expect_ok(open_game(a, table, false, scorer, threads, NULL, &err), &err);
}

static fds_status try_ask(asked_table *a, const uint64_t *coalitions, size_t count, double *out,
                          fds_error *err) {
    return a->job.game.ask(a->job.game.context, coalitions, count, out, err);
}

static void ask_ok(asked_table *a, const uint64_t *coalitions, size_t count, double *out) {
    fds_error err = {0};
    expect_ok(try_ask(a, coalitions, count, out, &err), &err);
}

static void expect_counts(const asked_table *a, size_t asked, size_t computed) {
    assert_int_equal(a->report.asked, asked);
    assert_int_equal(a->report.trained, computed);
}

/* ---- scores ---- */

static void scores_are_those_of_their_definitions(void **state) {
    (void)state;
    const double probs[] = {0.2, 0.5, 0.3, 0.4, 0.4, 0.2, 0, 0.9, 0.1, 0.1, 0.2, 0.7};
    const uint32_t asked[] = {1, 1, 0, 2}; /* right, a tie that label 0 wins, wrong, right */
    double each[4], one;
    baseline_score(FDS__SCORER_EACH_SAMPLE, probs, asked, 4, 3, each);
    assert_true(each[0] == 0.5 && each[1] == 0.4 && each[2] == 0 && each[3] == 0.7);
    baseline_score(FDS__SCORER_ACCURACY, probs, asked, 4, 3, &one);
    assert_true(one == 0.5);
    baseline_score(FDS__SCORER_CONFIDENCE, probs, asked, 4, 3, &one);
    assert_true(fabs(one - 0.4) < 1e-15);
    baseline_score(FDS__SCORER_CROSS_ENTROPY, probs, asked, 4, 3, &one);
    assert_true(fabs(one - (log(0.5) + log(0.4) + log(1e-12) + log(0.7)) / 4) < 1e-14);
}

/* All coalitions of the seven players, by every scorer, for several threads. */
static void answers_are_the_scores_of_the_sub_models(void **state) {
    (void)state;
    enum { ALL = 1 << PLAYERS };
    uint64_t coalitions[ALL];
    double got[ALL * INPUTS], wanted[INPUTS], probs[INPUTS * CLASSES];
    for (size_t k = 0; k < ALL; k++)
        coalitions[k] = (k * 37 + 5) % ALL; /* the full one and the empty one anywhere */
    fds_table *table = open_ok("t");
    for (size_t j = 0; j < COUNT(scorers); j++)
        for (unsigned threads = 1; threads <= 3; threads++) {
            asked_table asker;
            open_scored(&asker, table, scorers[j], threads);
            baseline_game game = asker.job.game;
            assert_int_equal(game.players, PLAYERS);
            assert_int_equal(game.columns, scorers[j] == FDS__SCORER_EACH_SAMPLE ? INPUTS : 1);
            ask_ok(&asker, coalitions, ALL, got);
            for (size_t k = 0; k < ALL; k++) {
                for (size_t i = 0; i < INPUTS * CLASSES; i++)
                    probs[i] = (double)fake_prob(&kept.value, &coalitions[k], i);
                baseline_score(scorers[j], probs, labels, INPUTS, CLASSES, wanted);
                assert_memory_equal(got + k * game.columns, wanted, game.columns * sizeof *got);
            }
            expect_counts(&asker, ALL, j == 0 && threads == 1 ? ALL : 0);
            baseline_job_free(&asker.job);
        }
    assert_int_equal(kept.calls, ALL);
    fds_table_free(table);
}

static void shares_by_class_sum_to_the_accuracy(void **state) {
    (void)state;
    enum { SOME = 60 };
    uint64_t coalitions[SOME];
    double by_class[SOME * CLASSES], accuracy[SOME];
    for (size_t k = 0; k < SOME; k++)
        coalitions[k] = 2 * k;
    fds_table *table = open_ok("t");
    asked_table classes, all;
    fds_error err = {0};
    expect_ok(open_game(&classes, table, true, FDS__SCORER_ACCURACY, 2, NULL, &err), &err);
    open_scored(&all, table, FDS__SCORER_ACCURACY, 2);
    assert_int_equal(classes.job.game.columns, CLASSES);
    ask_ok(&classes, coalitions, SOME, by_class);
    ask_ok(&all, coalitions, SOME, accuracy);
    for (size_t k = 0; k < SOME; k++) {
        assert_true(fabs(by_class[2 * k] + by_class[2 * k + 1] - accuracy[k]) < 1e-15);
        assert_true(by_class[2 * k] == 0 || by_class[2 * k] == 1.0 / 3); /* one input of label 0 */
    }
    baseline_job_free(&classes.job);
    baseline_job_free(&all.job);
    fds_table_free(table);
}

/* ---- what is trained ---- */

static void only_what_is_asked_for_and_missing_is_trained(void **state) {
    (void)state;
    const uint64_t first[] = {3}, second[] = {5, 3, 5, 9, 5};
    double out[5];
    fds_table *table = open_ok("t");
    asked_table asker;
    open_scored(&asker, table, FDS__SCORER_CONFIDENCE, 1);
    ask_ok(&asker, first, 0, out);
    expect_counts(&asker, 0, 0);
    ask_ok(&asker, first, 1, out);
    expect_counts(&asker, 1, 1); /* neither the empty nor the full coalition */
    ask_ok(&asker, second, 5, out);
    expect_counts(&asker, 6, 3);
    assert_true(out[0] == out[2] && out[2] == out[4]);
    assert_int_equal(kept.calls, 3);
    baseline_job_free(&asker.job);
    fds_table_free(table);
    table = open_ok("t"); /* another process */
    open_scored(&asker, table, FDS__SCORER_CONFIDENCE, 1);
    ask_ok(&asker, second, 5, out);
    expect_counts(&asker, 5, 0);
    assert_int_equal(kept.calls, 3);
    baseline_job_free(&asker.job);
    fds_table_free(table);
}

static void coalitions_of_several_words(void **state) {
    (void)state;
    fake_make(&kept, 130, INPUTS, CLASSES, 1);
    uint64_t coalitions[2 * 3] = {1, 0, 2, 0, (uint64_t)1 << 63, 1};
    double out[2];
    fds_table *table = open_ok("t");
    asked_table asker;
    open_scored(&asker, table, FDS__SCORER_CONFIDENCE, 1);
    ask_ok(&asker, coalitions, 2, out);
    for (size_t k = 0; k < 2; k++) {
        double sum = 0;
        for (size_t i = 0; i < INPUTS; i++)
            sum += (double)fake_prob(&kept.value, coalitions + 3 * k, i * CLASSES + labels[i]);
        assert_true(out[k] == sum / INPUTS);
    }
    baseline_job_free(&asker.job);
    fds_table_free(table);
}

/* ---- events and failures ---- */

typedef struct {
    uint64_t last, stop_at;
} follower;

static bool follow(void *user, const fds_progress *progress) {
    follower *f = user;
    assert_string_equal(progress->unit, "sub-models");
    assert_int_equal(progress->total, 0);
    assert_true(progress->done >= f->last);
    f->last = progress->done;
    return f->stop_at && progress->done >= f->stop_at;
}

static void sub_models_are_counted_over_all_calls(void **state) {
    (void)state;
    follower f = {0};
    fds_events events = {.progress = follow, .user = &f};
    double out[10];
    fds_table *table = open_ok("t");
    asked_table asker;
    fds_error err = {0};
    expect_ok(open_game(&asker, table, false, FDS__SCORER_CONFIDENCE, 2, &events, &err), &err);
    for (uint64_t call = 0; call < 5; call++) {
        uint64_t coalitions[10];
        for (uint64_t k = 0; k < 10; k++)
            coalitions[k] = 10 * call + k;
        ask_ok(&asker, coalitions, 10, out);
        assert_int_equal(f.last, 10 * (call + 1));
    }
    uint64_t more[10] = {60, 61, 62, 63, 64, 65, 66, 67, 68, 69};
    f.stop_at = 52;
    assert_int_equal(try_ask(&asker, more, 10, out, &err), FDS_ERR_CANCELLED);
    baseline_job_free(&asker.job);
    fds_table_free(table);
}

static void failures_are_passed_on(void **state) {
    (void)state;
    const uint64_t coalitions[] = {1, 2, 3, 4};
    double out[4];
    fds_error err = {0};
    fds_table *table = open_ok("t");
    asked_table asker;
    open_scored(&asker, table, FDS__SCORER_CONFIDENCE, 1);
    kept.fail_at = 3;
    assert_int_equal(try_ask(&asker, coalitions, 4, out, &err), FDS_ERR_DIVERGED);
    expect_in(err.text, "told to fail");
    expect_counts(&asker, 4, 2); /* what was trained is kept */
    ask_ok(&asker, coalitions, 4, out);
    expect_counts(&asker, 8, 4);
    baseline_job_free(&asker.job);
    fds_table_free(table);
}

static fds_status use_asker(double *out, fds_error *err) {
    const uint64_t coalitions[] = {1, 2, 3, 4, 127};
    fds_table *table = NULL;
    asked_table asker;
    TRY(open_table("t", &table, err));
    fds_status status = open_game(&asker, table, false, FDS__SCORER_CONFIDENCE, 1, NULL, err);
    if (status == FDS_OK)
        status = try_ask(&asker, coalitions, 5, out, err);
    baseline_job_free(&asker.job);
    fds_table_free(table);
    return status;
}

/* File operations fail in test_run.c. */
static void want_of_memory_leaks_nothing(void **state) {
    (void)state;
    double whole[5], out[5];
    fds_error err = {0};
    expect_ok(use_asker(whole, &err), &err);
    for (uint64_t nth = 1;; nth++) {
        remove_tree("t");
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        fds_status status = use_asker(out, &err);
        if (fds__fault_arm(FDS__FAULT_ALLOC, 0) < nth) {
            expect_ok(status, &err);
            assert_memory_equal(out, whole, sizeof out);
            print_message("# %lu allocations failed, one at a time\n", (unsigned long)nth - 1);
            break;
        }
        assert_int_equal(status, FDS_ERR_NOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(scores_are_those_of_their_definitions),
        TEST(answers_are_the_scores_of_the_sub_models),
        TEST(shares_by_class_sum_to_the_accuracy),
        TEST(only_what_is_asked_for_and_missing_is_trained),
        TEST(coalitions_of_several_words),
        TEST(sub_models_are_counted_over_all_calls),
        TEST(failures_are_passed_on),
        TEST(want_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
