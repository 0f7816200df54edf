/* SPDX-License-Identifier: Apache-2.0
 * Fits whose explainer asks some of the sub-models: what it answers, what it keeps, and that it ends
 * with the same bytes however often the fit was stopped. */
#include "fixture.h"

/* Sixteen sub-models. */
static task probing_task(const char *method) {
    task t = task_make(method);
    t.params.explainer = PROBE;
    t.params.answer_ms = 1e-4;
    return t;
}

static void a_probe_answers_much_like_the_bank(void **state) {
    (void)state;
    static answers by_bank, by_probe;
    task t = probing_task("afds");
    t.params.keep_models = true;
    t.params.answer_ms = 2; /* as many sub-models as there are, in sixteens */
    fds__fit_report report = fit(&t, scratch_path("run"));
    assert_int_equal(report.probes, 48);
    assert_true(report.agreement > 0.7 && report.epochs == 0);
    expect_efficient(&t, scratch_path("run"), FDS__ANSWERER_EXPLAINER);
    expect_efficient(&t, scratch_path("run"), FDS__ANSWERER_BANK);
    fds_run *run = open_run(scratch_path("run"));
    assert_string_equal(fds__run_get_info(run).explainer, "probe");
    ask(run, FDS__ANSWERER_BANK, t.train, NULL, MOST, false, &by_bank);
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, MOST, false, &by_probe);
    double off = 0, size = 0;
    for (size_t i = 0; i < MOST * PLAYERS; i++) {
        off += pow(by_bank.values[i] - by_probe.values[i], 2);
        size += pow(by_bank.values[i], 2);
        assert_true(by_probe.errors[i] > 0 && isfinite(by_probe.errors[i]));
    }
    print_message("# the probe is off by %.3f of the bank's values\n", sqrt(off / size));
    assert_true(off < 0.25 * size);
    expect_in(fds__run_error_source(run, FDS__ANSWERER_EXPLAINER), "calibrated");
    fds_run_free(run);
    task_free(&t);
}

/* Without keep_models the run keeps the sub-models that the probe asks, and no other. */
static void only_the_probes_are_kept(void **state) {
    (void)state;
    static answers a;
    static const char *const methods[] = {"fds", "afds", "gfds"};
    for (size_t i = 0; i < COUNT(methods); i++) {
        task t = probing_task(methods[i]);
        const fds__answers to = places(&a);
        fds_error err = {0};
        fds__fit_report report = fit(&t, scratch_path("run"));
        assert_int_equal(report.probes, FDS__MANY_NETS);
        expect_efficient(&t, scratch_path("run"), FDS__ANSWERER_EXPLAINER);
        fds_run *run = open_run(scratch_path("run"));
        assert_false(fds__run_get_info(run).has_bank);
        expect_failure(
            fds__run_explain(run, FDS__ANSWERER_BANK, t.train, NULL, 1, false, &to, &err),
            FDS_ERR_USAGE, &err, "keep_models");
        fds_run_free(run);
        remove_run(scratch_path("run"));
        task_free(&t);
    }
}

static bool count_sub_models(void *user, const fds_progress *p) {
    fds_progress *last = user;
    if (strcmp(p->stage, "utilities") != 0)
        return false;
    assert_true(!last->total || p->total == last->total);
    assert_true(p->done >= last->done && p->done <= p->total);
    *last = *p;
    return false;
}

/* Probes are trained first, but the time left is that of all sub-models. */
static void progress_counts_all_sub_models(void **state) {
    (void)state;
    fds_progress last = {0};
    task t = probing_task("afds");
    t.events = (fds_events){.progress = count_sub_models, .user = &last};
    fds__fit_report report = fit(&t, scratch_path("run"));
    assert_int_equal(last.total, report.sub_models);
    assert_int_equal(last.done, last.total);
    task_free(&t);
}

static void a_stopped_fit_ends_with_the_same_bits(void **state) {
    (void)state;
    static const char *const names[] = {"explainer.safetensors", "errors.safetensors",
                                        "models.bank"};
    char wanted[COUNT(names)][65], got[65];
    stopper s = {0};
    task t = probing_task("afds");
    t.events = (fds_events){.progress = stop, .user = &s};
    fit(&t, scratch_path("whole"));
    uint64_t calls = s.calls;
    for (size_t i = 0; i < COUNT(names); i++)
        sha256_of(in_run(scratch_path("whole"), names[i]), wanted[i]);
    for (uint64_t at = 2; at < calls; at += calls / 8) {
        s = (stopper){.stop_at = at};
        assert_int_equal(try_fit(&t, scratch_path("run"), NULL, NULL), FDS_ERR_CANCELLED);
        s = (stopper){0};
        fit(&t, scratch_path("run"));
        for (size_t i = 0; i < COUNT(names); i++) {
            sha256_of(in_run(scratch_path("run"), names[i]), got);
            assert_string_equal(got, wanted[i]);
        }
        remove_run(scratch_path("run"));
    }
    task_free(&t);
}

/* auto asks all sub-models where that is quick, some of them where it is not, and takes a network
 * where even a few are too slow. */
static void auto_follows_the_time_of_an_answer(void **state) {
    (void)state;
    task t = task_make("afds");
    t.params.explainer = AUTO;
    t.params.answer_ms = 5;
    fds__fit_settings s = settled(&t);
    assert_true(s.is_bank && s.keeps_models && s.probes == 0);
    expect_in(s.reason, "62 sub-models would take");
    t.params.coalitions = 4000;
    t.params.answer_ms = 0.003;
    s = settled(&t);
    assert_true(!s.is_bank && !s.keeps_models && s.probes >= 64 && s.probes % 16 == 0);
    assert_true(fds__fit_measures(&s)); /* least squares on their answers may be better */
    t.params.answer_ms = 1e-5;
    s = settled(&t);
    assert_true(!s.is_bank && s.probes == 0);
    assert_string_equal(s.explainer.network, "mlp");
    expect_in(s.reason, "64 sub-models would take");
    task_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_probe_answers_much_like_the_bank),
        IN_SCRATCH(only_the_probes_are_kept),
        IN_SCRATCH(progress_counts_all_sub_models),
        IN_SCRATCH(a_stopped_fit_ends_with_the_same_bits),
        IN_SCRATCH(auto_follows_the_time_of_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
