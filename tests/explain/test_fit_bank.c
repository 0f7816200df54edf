/* SPDX-License-Identifier: Apache-2.0
 * Fits that keep their sub-models: the bank answers as least squares on the run's table do, with an
 * explainer beside it or alone, and has the same bytes however often the fit was stopped. */
#include "fixture.h"

#include "utility/table.h"

/* What least squares on the run's own table say: values and errors (players, inputs * classes), the
 * inputs in the given order, which receives it. */
static void solve_table(const task *t, const char *dir, uint32_t *order, double *values,
                        double *errors) {
    const fds__fit_settings s = settled(t);
    fds__fit_plans plans;
    fds_table *table = NULL;
    fds_table_view *view = NULL;
    fds_error err;
    expect_ok(fds__fit_plans_make(&s, PLAYERS, t->groups, &plans, &err), &err);
    fds_utility *value = utility_of(t, order);
    expect_ok(fds_table_open(in_run(dir, FDS__RUN_TABLE), value, FDS_STORE_F32, NULL, &table, &err),
              &err);
    expect_ok(fds_table_view_create(table, plans.plan, NULL, false, 1, &view, &err), &err);
    const fds_rows rows = fds_table_view_rows(view);
    const fds_ls_params ls = {.adjust = s.adjust, .groups = t->groups};
    expect_ok(fds_least_squares(plans.plan, &rows, &ls, 1, values, errors, NULL, NULL, &err), &err);
    fds_table_view_free(view);
    fds_table_free(table);
    fds_utility_free(value);
    fds__fit_plans_free(&plans);
}

/* The bank answers as least squares on the table do, but for weights rounded to 16 bits. */
static void expect_bank_like_table(const task *t, const char *dir) {
    static answers a;
    static double values[PLAYERS * INPUTS * CLASSES], errors[PLAYERS * INPUTS * CLASSES];
    uint32_t order[INPUTS];
    double miss = 0, miss_errors = 0, most = 0;
    solve_table(t, dir, order, values, errors);
    fds_run *run = open_run(dir);
    assert_true(fds__run_get_info(run).has_bank);
    for (uint32_t y = 0; y < CLASSES; y++) {
        for (size_t x = 0; x < INPUTS; x++)
            a.labels[x] = y;
        ask(run, FDS__ANSWERER_BANK, t->train, order, INPUTS, true, &a);
        for (size_t x = 0; x < INPUTS; x++)
            for (size_t i = 0; i < PLAYERS; i++) {
                size_t at = (i * INPUTS + x) * CLASSES + y;
                most = fmax(most, fabs(values[at]));
                miss = fmax(miss, fabs(a.values[x * PLAYERS + i] - values[at]));
                miss_errors = fmax(miss_errors, fabs(a.errors[x * PLAYERS + i] - errors[at]));
            }
    }
    print_message("# values up to %.3f, the bank's off by %.1e, errors by %.1e\n", most, miss,
                  miss_errors);
    assert_true(miss < 5e-4 && miss_errors < 5e-4 && most > 0.02);
    fds_run_free(run);
}

static void kept_sub_models_answer_like_the_table(void **state) {
    (void)state;
    static const struct {
        const char *method;
        const char *adjust;
        size_t coalitions;
    } cases[] = {{"afds", "counts", 200}, {"afds", "shrink", 60},
                 {"afds", "none", 200},   {"afds", "counts", 20} /* fewer than unknowns */,
                 {"gfds", "none", 120},   {"gfds+", "none", 60}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        task t = task_make(cases[i].method);
        t.params.keep_models = true;
        t.params.adjust = cases[i].adjust;
        t.params.coalitions = cases[i].coalitions;
        t.params.explainer_epochs = 1;
        fit(&t, scratch_path("run"));
        expect_bank_like_table(&t, scratch_path("run"));
        expect_efficient(&t, scratch_path("run"), FDS__ANSWERER_BANK);
        expect_efficient(&t, scratch_path("run"), FDS__ANSWERER_EXPLAINER);
        remove_run(scratch_path("run"));
        task_free(&t);
    }
}

static void a_bank_needs_no_network(void **state) {
    (void)state;
    static answers by_bank, by_default;
    task t = task_make("afds");
    t.params.explainer = BANK;
    fds__fit_report report = fit(&t, scratch_path("run"));
    assert_true(report.sub_models == 82 && report.epochs == 0);
    assert_int_equal(access(scratch_path("run/explainer.safetensors"), F_OK), -1);
    assert_int_equal(access(scratch_path("run/errors.safetensors"), F_OK), -1);
    expect_bank_like_table(&t, scratch_path("run"));
    expect_efficient(&t, scratch_path("run"), FDS__ANSWERER_BANK);
    fds_run *run = open_run(scratch_path("run"));
    assert_string_equal(fds__run_get_info(run).explainer, "bank");
    ask(run, FDS__ANSWERER_BANK, t.train, NULL, MOST, false, &by_bank);
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, MOST, false, &by_default);
    assert_memory_equal(by_bank.values, by_default.values, MOST * PLAYERS * sizeof(double));
    assert_string_equal(fds__run_error_source(run, FDS__ANSWERER_BANK),
                        fds__run_error_source(run, FDS__ANSWERER_EXPLAINER));
    expect_in(fds__run_error_source(run, FDS__ANSWERER_BANK), "jackknife");
    fds_run_free(run);
    task_free(&t);
}

/* Stopped while sub-models are trained and kept, the bank ends with the same bytes. */
static void a_stopped_bank_ends_with_the_same_bits(void **state) {
    (void)state;
    char wanted[65], got[65];
    stopper s = {0};
    task t = task_make("afds");
    t.params.explainer = BANK;
    t.events = (fds_events){.progress = stop, .user = &s};
    fit(&t, scratch_path("whole"));
    uint64_t calls = s.calls;
    sha256_of(scratch_path("whole/models.bank"), wanted);
    for (uint64_t at = 2; at < calls; at += calls / 5) {
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

static void a_run_without_a_bank_says_so(void **state) {
    (void)state;
    static answers a;
    task t = task_make("afds");
    const fds__answers to = places(&a);
    fds_error err = {0};
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    expect_failure(fds__run_explain(run, FDS__ANSWERER_BANK, t.train, NULL, 1, false, &to, &err),
                   FDS_ERR_USAGE, &err, "no bank");
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, 1, false, &a); /* it still answers otherwise */
    fds_run_free(run);
    task_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(kept_sub_models_answer_like_the_table),
        IN_SCRATCH(a_bank_needs_no_network),
        IN_SCRATCH(a_stopped_bank_ends_with_the_same_bits),
        IN_SCRATCH(a_run_without_a_bank_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
