/* SPDX-License-Identifier: Apache-2.0
 * A table as a game: verdicts by their definitions, what is trained and what is not, and faults. */
#include "../utility/table_tests.h"
#include "baseline/baseline.h"

static const fds__scorer scorers[] = {FDS__SCORER_ACCURACY, FDS__SCORER_CONFIDENCE,
                                      FDS__SCORER_CROSS_ENTROPY, FDS__SCORER_EACH_SAMPLE};
static const uint32_t labels[INPUTS] = {1, 0, 1};

static baseline_asker *make_asker(fds_table *table, baseline_columns columns, fds__scorer scorer,
                                  unsigned threads, const fds_events *events) {
    baseline_asker *asker = NULL;
    fds_error err = {0};
    expect_ok(baseline_asker_create(table, columns, scorer, labels, threads, events, &asker, &err),
              &err);
    return asker;
}

static void ask_ok(baseline_asker *asker, const uint64_t *coalitions, size_t count, double *out) {
    baseline_game game = baseline_asker_game(asker);
    fds_error err = {0};
    expect_ok(game.ask(game.context, coalitions, count, out, &err), &err);
}

static void expect_counts(const baseline_asker *asker, size_t asked, size_t computed) {
    size_t a, c;
    baseline_asker_count(asker, &a, &c);
    assert_int_equal(a, asked);
    assert_int_equal(c, computed);
}

/* ---- verdicts ---- */

static void judges_go_by_their_definitions(void **state) {
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
static void answers_are_what_the_judge_says_of_the_sub_models(void **state) {
    (void)state;
    enum { ALL = 1 << PLAYERS };
    uint64_t coalitions[ALL];
    double got[ALL * INPUTS], wanted[INPUTS], probs[INPUTS * CLASSES];
    for (size_t k = 0; k < ALL; k++)
        coalitions[k] = (k * 37 + 5) % ALL; /* the full one and the empty one anywhere */
    fds_table *table = open_ok("t");
    for (size_t j = 0; j < COUNT(scorers); j++)
        for (unsigned threads = 1; threads <= 3; threads++) {
            baseline_asker *asker = make_asker(table, BASELINE_SCORED, scorers[j], threads, NULL);
            baseline_game game = baseline_asker_game(asker);
            assert_int_equal(game.players, PLAYERS);
            assert_int_equal(game.columns, scorers[j] == FDS__SCORER_EACH_SAMPLE ? INPUTS : 1);
            ask_ok(asker, coalitions, ALL, got);
            for (size_t k = 0; k < ALL; k++) {
                for (size_t i = 0; i < INPUTS * CLASSES; i++)
                    probs[i] = (double)fake_prob(&kept.value, &coalitions[k], i);
                baseline_score(scorers[j], probs, labels, INPUTS, CLASSES, wanted);
                assert_memory_equal(got + k * game.columns, wanted, game.columns * sizeof *got);
            }
            expect_counts(asker, ALL, j == 0 && threads == 1 ? ALL : 0);
            baseline_asker_free(asker);
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
    baseline_asker *classes = make_asker(table, BASELINE_BY_CLASS, FDS__SCORER_ACCURACY, 2, NULL);
    baseline_asker *all = make_asker(table, BASELINE_SCORED, FDS__SCORER_ACCURACY, 2, NULL);
    assert_int_equal(baseline_asker_game(classes).columns, CLASSES);
    ask_ok(classes, coalitions, SOME, by_class);
    ask_ok(all, coalitions, SOME, accuracy);
    for (size_t k = 0; k < SOME; k++) {
        assert_true(fabs(by_class[2 * k] + by_class[2 * k + 1] - accuracy[k]) < 1e-15);
        assert_true(by_class[2 * k] == 0 || by_class[2 * k] == 1.0 / 3); /* one input of label 0 */
    }
    baseline_asker_free(classes);
    baseline_asker_free(all);
    baseline_asker_free(NULL);
    fds_table_free(table);
}

/* ---- what is trained ---- */

static void only_what_is_asked_for_and_missing_is_trained(void **state) {
    (void)state;
    const uint64_t first[] = {3}, second[] = {5, 3, 5, 9, 5};
    double out[5];
    fds_table *table = open_ok("t");
    baseline_asker *asker = make_asker(table, BASELINE_SCORED, FDS__SCORER_CONFIDENCE, 1, NULL);
    ask_ok(asker, first, 0, out);
    expect_counts(asker, 0, 0);
    ask_ok(asker, first, 1, out);
    expect_counts(asker, 1, 1); /* neither the empty nor the full coalition */
    ask_ok(asker, second, 5, out);
    expect_counts(asker, 6, 3);
    assert_true(out[0] == out[2] && out[2] == out[4]);
    assert_int_equal(kept.calls, 3);
    baseline_asker_free(asker);
    fds_table_free(table);
    table = open_ok("t"); /* another process */
    asker = make_asker(table, BASELINE_SCORED, FDS__SCORER_CONFIDENCE, 1, NULL);
    ask_ok(asker, second, 5, out);
    expect_counts(asker, 5, 0);
    assert_int_equal(kept.calls, 3);
    baseline_asker_free(asker);
    fds_table_free(table);
}

static void coalitions_of_several_words(void **state) {
    (void)state;
    fake_make(&kept, 130, INPUTS, CLASSES, 1);
    uint64_t coalitions[2 * 3] = {1, 0, 2, 0, (uint64_t)1 << 63, 1};
    double out[2];
    fds_table *table = open_ok("t");
    baseline_asker *asker = make_asker(table, BASELINE_SCORED, FDS__SCORER_CONFIDENCE, 1, NULL);
    ask_ok(asker, coalitions, 2, out);
    for (size_t k = 0; k < 2; k++) {
        double sum = 0;
        for (size_t i = 0; i < INPUTS; i++)
            sum += (double)fake_prob(&kept.value, coalitions + 3 * k, i * CLASSES + labels[i]);
        assert_true(out[k] == sum / INPUTS);
    }
    baseline_asker_free(asker);
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
    baseline_asker *asker = make_asker(table, BASELINE_SCORED, FDS__SCORER_CONFIDENCE, 2, &events);
    for (uint64_t call = 0; call < 5; call++) {
        uint64_t coalitions[10];
        for (uint64_t k = 0; k < 10; k++)
            coalitions[k] = 10 * call + k;
        ask_ok(asker, coalitions, 10, out);
        assert_int_equal(f.last, 10 * (call + 1));
    }
    uint64_t more[10] = {60, 61, 62, 63, 64, 65, 66, 67, 68, 69};
    baseline_game game = baseline_asker_game(asker);
    fds_error err = {0};
    f.stop_at = 52;
    assert_int_equal(game.ask(game.context, more, 10, out, &err), FDS_ERR_CANCELLED);
    baseline_asker_free(asker);
    fds_table_free(table);
}

static void failures_are_passed_on(void **state) {
    (void)state;
    const uint64_t coalitions[] = {1, 2, 3, 4};
    double out[4];
    fds_error err = {0};
    fds_table *table = open_ok("t");
    baseline_asker *asker = make_asker(table, BASELINE_SCORED, FDS__SCORER_CONFIDENCE, 1, NULL);
    baseline_game game = baseline_asker_game(asker);
    kept.fail_at = 3;
    assert_int_equal(game.ask(game.context, coalitions, 4, out, &err), FDS_ERR_DIVERGED);
    expect_in(err.text, "told to fail");
    expect_counts(asker, 4, 2); /* what was trained is kept */
    ask_ok(asker, coalitions, 4, out);
    expect_counts(asker, 8, 4);
    baseline_asker_free(asker);
    const uint32_t bad[INPUTS] = {0, 2, 0};
    asker = NULL;
    assert_int_equal(baseline_asker_create(table, BASELINE_SCORED, FDS__SCORER_ACCURACY, bad, 1,
                                           NULL, &asker, &err),
                     FDS_ERR_USAGE);
    expect_in(err.text, "test sample 1: label 2, there are 2 classes");
    assert_null(asker);
    fds_table_free(table);
}

static fds_status use_asker(double *out, fds_error *err) {
    const uint64_t coalitions[] = {1, 2, 3, 4, 127};
    fds_table *table = NULL;
    baseline_asker *asker = NULL;
    TRY(open_table("t", &table, err));
    fds_status status = baseline_asker_create(table, BASELINE_SCORED, FDS__SCORER_CONFIDENCE,
                                              labels, 1, NULL, &asker, err);
    if (status == FDS_OK) {
        baseline_game game = baseline_asker_game(asker);
        status = game.ask(game.context, coalitions, 5, out, err);
    }
    baseline_asker_free(asker);
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
        TEST(judges_go_by_their_definitions),
        TEST(answers_are_what_the_judge_says_of_the_sub_models),
        TEST(shares_by_class_sum_to_the_accuracy),
        TEST(only_what_is_asked_for_and_missing_is_trained),
        TEST(coalitions_of_several_words),
        TEST(sub_models_are_counted_over_all_calls),
        TEST(failures_are_passed_on),
        TEST(want_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
