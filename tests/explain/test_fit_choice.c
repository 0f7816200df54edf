/* SPDX-License-Identifier: Apache-2.0
 * Fits with explainer auto where not all sub-models answer in time: validation inputs choose between
 * a map learnt from the answers of the first of them and least squares on these answers. */
#include "fixture.h"

static const char *const words = "sub-models would take about";

enum { FEW_PLAYERS = 8, FIRST = 112 };

/* Few players and few inputs: 8 players, 18 inputs to learn from. Of 202 sub-models, as many as answer
 * in time are more than half of all coalitions that there are. */
static task choosing_task(void) {
    static const uint32_t group_of[FEW_PLAYERS];
    task t = task_make("afds");
    fds_error err;
    fds_players_free(t.players);
    fds_groups_free(t.groups);
    expect_ok(fds_players_points(t.train, NULL, FEW_PLAYERS, &t.players, &err), &err);
    expect_ok(fds_groups_create(group_of, FEW_PLAYERS, NULL, &t.groups, &err), &err);
    t.input_count = 20;
    t.params.explainer = AUTO;
    t.params.model = "fc:32,relu,fc:classes";
    t.params.epochs = 40;
    t.params.lr = 1e-2;
    t.params.coalitions = 200;
    t.params.answer_ms = 0.0034;
    return t;
}

/* The distance of default answers from those of all sub-models, over the size of the latter. */
static double distance_from_bank(const task *t, const char *dir) {
    static answers by_all, by_default;
    double off = 0, size = 0;
    fds_run *run = open_run(dir);
    ask(run, FDS__ANSWERER_BANK, t->train, NULL, MOST, false, &by_all);
    ask(run, FDS__ANSWERER_EXPLAINER, t->train, NULL, MOST, false, &by_default);
    for (size_t i = 0; i < MOST * FEW_PLAYERS; i++) {
        off += pow(by_all.values[i] - by_default.values[i], 2);
        size += pow(by_all.values[i], 2);
    }
    fds_run_free(run);
    return sqrt(off / size);
}

static void few_inputs_take_the_bank_of_the_first_sub_models(void **state) {
    (void)state;
    task t = choosing_task();
    t.params.keep_models = true;
    fds__fit_report report = fit(&t, scratch_path("run"));
    assert_int_equal(report.probes, FIRST);
    assert_true(report.choice.is_measured && report.choice.is_bank);
    assert_true(report.choice.bank < report.choice.probe);
    expect_efficient(&t, scratch_path("run"), FDS__ANSWERER_EXPLAINER);
    t.params.explainer = PROBE;
    fds__fit_report named = fit(&t, scratch_path("probe"));
    assert_true(!named.choice.is_measured && named.probes == report.probes);
    double bank = distance_from_bank(&t, scratch_path("run")),
           probe = distance_from_bank(&t, scratch_path("probe"));
    print_message("# off by %.3f of the values, a probe by %.3f; %s\n", bank, probe, report.reason);
    assert_true(bank < 0.1 && bank < probe / 2);
    task_free(&t);
}

/* As a bank of that many coalitions answers: the same values and jackknife errors, but for the
 * weights, which each fit rounds alike. */
static void it_answers_as_a_fit_of_so_many_coalitions(void **state) {
    (void)state;
    static answers a, b;
    task t = choosing_task();
    fit(&t, scratch_path("run"));
    t.params.explainer = BANK;
    t.params.coalitions = FIRST - 2;
    fit(&t, scratch_path("short"));
    fds_run *run = open_run(scratch_path("run")), *whole = open_run(scratch_path("short"));
    assert_string_equal(fds__run_get_info(run).explainer, "bank");
    assert_false(fds__run_get_info(run).asks_all || fds__run_get_info(run).has_bank);
    expect_in(fds__run_error_source(run, FDS__ANSWERER_EXPLAINER), "first 112 sub-models");
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, MOST, false, &a);
    ask(whole, FDS__ANSWERER_BANK, t.train, NULL, MOST, false, &b);
    assert_memory_equal(a.values, b.values, MOST * FEW_PLAYERS * sizeof(double));
    assert_memory_equal(a.errors, b.errors, MOST * FEW_PLAYERS * sizeof(double));
    fds_run_free(run);
    fds_run_free(whole);
    task_free(&t);
}

static void only_the_first_sub_models_are_kept(void **state) {
    (void)state;
    static answers a;
    const fds__answers to = places(&a);
    size_t first, all;
    fds_error err = {0};
    task t = choosing_task();
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    expect_failure(fds__run_explain(run, FDS__ANSWERER_BANK, t.train, NULL, 1, false, &to, &err),
                   FDS_ERR_USAGE, &err, "keep_models");
    fds_run_free(run);
    t.params.keep_models = true;
    fit(&t, scratch_path("kept"));
    free(scratch_read(scratch_path("run/models.bank"), &first));
    free(scratch_read(scratch_path("kept/models.bank"), &all));
    assert_true(first < 2 * all / 3);
    task_free(&t);
}

/* Sixteen players who differ little, and 64 coalitions: the map is better. */
static void few_coalitions_take_the_probe(void **state) {
    (void)state;
    task t = task_make("afds");
    t.params.explainer = AUTO;
    t.params.model = "fc:32,relu,fc:classes";
    t.params.coalitions = 400;
    t.params.answer_ms = 0.003;
    fds__fit_report report = fit(&t, scratch_path("run"));
    print_message("# %s\n", report.reason);
    assert_int_equal(report.probes, 64);
    assert_true(report.choice.is_measured && !report.choice.is_bank);
    fds_run *run = open_run(scratch_path("run"));
    assert_string_equal(fds__run_get_info(run).explainer, "probe");
    expect_in(fds__run_error_source(run, FDS__ANSWERER_EXPLAINER), "calibrated");
    fds_run_free(run);
    expect_efficient(&t, scratch_path("run"), FDS__ANSWERER_EXPLAINER);
    task_free(&t);
}

typedef struct {
    const char *words;
    size_t count;
} warned;

static void count_warnings(void *user, fds_log_level level, const char *text) {
    warned *w = user;
    w->count += level == FDS_LOG_WARNING && strstr(text, w->words);
}

/* A ridge shrinks values, of which errors of least squares say too little; those of a probe are
 * calibrated. */
static void least_squares_with_a_ridge_do_not_answer(void **state) {
    (void)state;
    enum { MANY = 33 };
    static const uint32_t group_of[MANY];
    task t = choosing_task();
    fds_error err;
    fds_players_free(t.players);
    fds_groups_free(t.groups);
    expect_ok(fds_players_points(t.train, NULL, MANY, &t.players, &err), &err);
    expect_ok(fds_groups_create(group_of, MANY, NULL, &t.groups, &err), &err);
    for (uint32_t i = 0; i < t.input_count; i++)
        t.inputs[i] = MANY + i;
    t.params.model = "fc:64,relu,fc:classes";
    t.input_count = 12;
    t.params.coalitions = 300;
    t.params.answer_ms = 0.0068;
    fds__fit_report report = fit(&t, scratch_path("run"));
    print_message("# %s\n", report.reason);
    assert_true(report.choice.is_measured && report.choice.strengths.ridge > 0);
    assert_true(report.choice.bank < report.choice.probe && !report.choice.is_bank);
    expect_in(report.reason, "needed a ridge");
    fds_run *run = open_run(scratch_path("run"));
    expect_in(fds__run_error_source(run, FDS__ANSWERER_EXPLAINER), "calibrated");
    fds_run_free(run);
    task_free(&t);
}

static void values_with_a_ridge_are_warned_of(void **state) {
    (void)state;
    warned w = {"needed a ridge", 0};
    task t = task_make("afds");
    t.events = (fds_events){.log = count_warnings, .user = &w};
    fit(&t, scratch_path("enough"));
    assert_int_equal(w.count, 0);
    t.params.coalitions = 40; /* fewer than three per player */
    fit(&t, scratch_path("few"));
    assert_int_equal(w.count, 1);
    task_free(&t);
}

static void the_reason_has_both_numbers(void **state) {
    (void)state;
    char numbers[80];
    task t = choosing_task();
    fds__fit_report first = fit(&t, scratch_path("run"));
    expect_in(first.reason, words);
    snprintf(numbers, sizeof numbers,
             "misallocate %.1f of each 100, and a learnt map from them %.1f",
             100 * first.choice.bank, 100 * first.choice.probe);
    expect_in(first.reason, numbers);
    fds__fit_report again = fit(&t, scratch_path("run"));
    assert_true(again.was_resumed);
    assert_string_equal(again.reason, first.reason);
    task_free(&t);
}

static void a_stopped_fit_ends_with_the_same_choice_and_bits(void **state) {
    (void)state;
    char wanted[65], got[65];
    stopper s = {0};
    task t = choosing_task();
    t.events = (fds_events){.progress = stop, .user = &s};
    fit(&t, scratch_path("whole"));
    uint64_t calls = s.calls;
    sha256_of(scratch_path("whole/models.bank"), wanted);
    for (uint64_t at = 2; at < calls; at += calls / 8) {
        s = (stopper){.stop_at = at};
        assert_int_equal(try_fit(&t, scratch_path("run"), NULL, NULL), FDS_ERR_CANCELLED);
        s = (stopper){0};
        fit(&t, scratch_path("run"));
        sha256_of(scratch_path("run/models.bank"), got);
        assert_string_equal(got, wanted);
        expect_same_record(scratch_path("run"), scratch_path("whole"));
        remove_run(scratch_path("run"));
    }
    task_free(&t);
}

/* The sub-models are there; each allocation after them fails once. */
static void a_choice_survives_failures(void **state) {
    (void)state;
    stopper s = {0};
    fds_error err = {0};
    fds_status status = FDS_ERR_NOMEM;
    uint64_t nth = 0;
    task t = choosing_task();
    t.events = (fds_events){.progress = stop, .user = &s};
    fit(&t, scratch_path("whole"));
    s = (stopper){.stop_at = s.calls - 1};
    assert_int_equal(try_fit(&t, scratch_path("run"), NULL, NULL), FDS_ERR_CANCELLED);
    s = (stopper){0};
    while (status != FDS_OK) {
        fds__fault_arm(FDS__FAULT_ALLOC, nth += 3);
        status = try_fit(&t, scratch_path("run"), NULL, &err);
        fds__fault_arm(FDS__FAULT_ALLOC, 0);
        if (status != FDS_OK)
            expect_told(FDS__FAULT_ALLOC, nth, status, &err);
    }
    print_message("# %llu allocations\n", (unsigned long long)nth);
    assert_true(nth > 100);
    expect_same_record(scratch_path("run"), scratch_path("whole"));
    task_free(&t);
}

static void a_run_that_lost_its_choice_is_refused(void **state) {
    (void)state;
    fds_run *run;
    fds_error err = {0};
    task t = choosing_task();
    fit(&t, scratch_path("run"));
    json_t *json = read_run(scratch_path("run"));
    assert_int_equal(json_object_del(json_object_get(json, "results"), "choice"), 0);
    write_run(scratch_path("run"), json);
    expect_failure(fds__run_open(scratch_path("run"), 0, &run, &err), FDS_ERR_FORMAT, &err,
                   "results.choice");
    task_free(&t);
}

/* ---- the measure ---- */

/* One input of three players and two labels, of which the second is predicted. */
static double misallocated(const double values[3], const double targets[3]) {
    static const uint32_t predicted[1] = {1};
    double all[2][6] = {{9, -9, 9}, {-9, 9, 9}};
    memcpy(all[0] + 3, values, 3 * sizeof *values);
    memcpy(all[1] + 3, targets, 3 * sizeof *targets);
    const fds__comparison c = {.inputs = 1,
                               .players = 3,
                               .classes = 2,
                               .values = all[0],
                               .targets = all[1],
                               .predicted = predicted};
    return fds__comparison_misallocated(&c);
}

/* By hand: the shares as fds pay divides, and half the sum of their differences. */
static void misallocated_money_is_what_pay_would_move(void **state) {
    (void)state;
    static const double quarter[] = {0.25, 0.25, 0.5}, scaled[] = {0.5, 0.5, 1},
                        one[] = {0.3, -0.1, -0.2}, other[] = {-1, 2, -1}, none[] = {-1, -2, 0};
    assert_float_equal(misallocated(quarter, scaled), 0, 1e-15);
    assert_float_equal(misallocated(quarter, one), 0.75, 1e-15);
    assert_float_equal(misallocated(one, other), 1, 1e-15);
    assert_float_equal(misallocated(none, none), 0, 1e-15);
    assert_float_equal(misallocated(none, one), 2.0 / 3, 1e-15); /* divided evenly */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(few_inputs_take_the_bank_of_the_first_sub_models),
        IN_SCRATCH(it_answers_as_a_fit_of_so_many_coalitions),
        IN_SCRATCH(only_the_first_sub_models_are_kept),
        IN_SCRATCH(few_coalitions_take_the_probe),
        IN_SCRATCH(least_squares_with_a_ridge_do_not_answer),
        IN_SCRATCH(values_with_a_ridge_are_warned_of),
        IN_SCRATCH(the_reason_has_both_numbers),
        IN_SCRATCH(a_stopped_fit_ends_with_the_same_choice_and_bits),
        IN_SCRATCH(a_choice_survives_failures),
        IN_SCRATCH(a_run_that_lost_its_choice_is_refused),
        cmocka_unit_test(misallocated_money_is_what_pay_would_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
