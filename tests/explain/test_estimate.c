/* SPDX-License-Identifier: Apache-2.0
 * What a fit would take, told before it: against what the fit then takes. */
#include "fixture.h"

static fds__fit_cost estimate(const task *t) {
    fds__fit_cost e;
    fds_error err;
    memset(&e, 0xa5, sizeof e);
    expect_ok(fds__fit_estimate(problem_of(t), &t->params, NULL, &e, &err), &err);
    return e;
}

static uint64_t counted;

static int count_bytes(const char *path, const struct stat *about, int kind, struct FTW *where) {
    (void)path, (void)where;
    counted += kind == FTW_F ? (uint64_t)about->st_size : 0;
    return 0;
}

static uint64_t bytes_below(const char *path) {
    counted = 0;
    assert_int_equal(nftw(path, count_bytes, 16, FTW_PHYS), 0);
    return counted;
}

/* Each method, some with the sub-models kept: seconds that are seconds, sub-models and bytes that
 * are those of the fit. */
static void an_estimate_is_of_the_fit_that_follows(void **state) {
    (void)state;
    for (const char *const *method = fit_methods; *method; method++) {
        task t = task_make(*method);
        bool keeps = strcmp(*method, "afds") == 0 || strcmp(*method, "gfds+") == 0;
        t.params.keep_models = keeps;
        if (keeps)
            t.params.model = "fc:40,relu,fc:classes";
        fds__fit_cost e = estimate(&t);
        assert_int_equal(scratch_entries(), 0);
        fds__fit_report r = fit(&t, scratch_path("run"));
        uint64_t disk = bytes_below(scratch_path("run/utilities"));
        if (keeps)
            disk += bytes_below(scratch_path("run/models.bank"));
        print_message("# %s: %llu bytes on disk, %llu told; %.2g s of sub-models, %.2g told\n",
                      *method, (unsigned long long)disk, (unsigned long long)e.disk,
                      r.seconds[FDS__FIT_STAGE_UTILITIES], e.seconds[FDS__FIT_STAGE_UTILITIES]);
        assert_true(fabs((double)e.disk - (double)disk) < 0.05 * (double)disk);
        assert_int_equal(e.sub_models, r.sub_models);
        for (int stage = FDS__FIT_STAGE_UTILITIES; stage <= FDS__FIT_STAGE_EXPLAINER; stage++)
            assert_true(e.seconds[stage] > 0 && e.seconds[stage] < 600);
        assert_true(e.seconds[FDS__FIT_STAGE_CHECK] >= 0 && e.seconds[FDS__FIT_STAGE_CHECK] < 600);
        /* values, their errors and the targets, at the least */
        assert_true(e.memory > (uint64_t)PLAYERS * INPUTS * CLASSES * 20);
        assert_true(e.memory < (uint64_t)1 << 30);
        remove_run(scratch_path("run"));
        task_free(&t);
    }
}

/* A task whose estimate needs no steps of a network, which take most of the two seconds. */
static task quick_task(void) {
    task t = task_make("afds");
    t.params.explainer = BANK;
    t.params.epochs = 1;
    return t;
}

/* Sizes are of the settings: more inputs and coalitions take more. (Memory is that of the whole process, which
 * has more than these few need.) */
static void more_takes_more(void **state) {
    (void)state;
    task t = quick_task();
    fds__fit_cost all = estimate(&t);
    t.input_count = 20;
    fds__fit_cost few = estimate(&t);
    assert_true(few.memory > 0 && few.disk < all.disk);
    t.params.coalitions = 600;
    fds__fit_cost many = estimate(&t);
    assert_true(many.disk > few.disk && many.sub_models > few.sub_models);
    task_free(&t);
}

/* The bank trains nothing. */
static void a_bank_has_no_training(void **state) {
    (void)state;
    task t = quick_task();
    fds__fit_cost e = estimate(&t);
    assert_true(e.seconds[FDS__FIT_STAGE_EXPLAINER] == 0 && e.seconds[FDS__FIT_STAGE_CHECK] == 0);
    assert_true(e.seconds[FDS__FIT_STAGE_UTILITIES] > 0 && e.disk > 0);
    task_free(&t);
}

/* Nothing is promised for a game that is not like the one that was measured. */
static void accuracy_is_told_where_it_was_measured(void **state) {
    (void)state;
    task t = quick_task();
    fds__fit_cost e = estimate(&t);
    assert_true(e.accuracy == 0 && !e.accuracy_of);
    task_free(&t);
}

/* ---- stopping ---- */

typedef struct {
    uint64_t done, stop_at; /* trials */
    double asked_s;
    bool has_end;
} listener;

static bool listen(void *user, const fds_progress *progress) {
    listener *l = user;
    assert_string_equal(progress->stage, "estimate");
    assert_string_equal(progress->unit, "trials");
    assert_true(progress->done >= l->done && progress->done <= 3 && progress->total == 3);
    l->done = progress->done;
    l->has_end |= progress->done == progress->total;
    if (l->done < l->stop_at || l->asked_s != 0)
        return false;
    l->asked_s = fds__now_s();
    return true;
}

static void an_estimate_is_cancelled_in_each_of_its_trials(void **state) {
    (void)state;
    task t = task_make("afds");
    for (uint64_t at = 0; at <= 4; at++) {
        listener l = {.stop_at = at};
        const fds_events events = {.progress = listen, .user = &l};
        fds__fit_cost e;
        fds_error err = {0};
        fds_status status = fds__fit_estimate(problem_of(&t), &t.params, &events, &e, &err);
        assert_int_equal(status, at <= 3 ? FDS_ERR_CANCELLED : FDS_OK);
        assert_true(l.has_end == (at >= 3));
        if (status != FDS_OK)
            expect_in(err.text, "cancelled");
    }
    task_free(&t);
}

/* Sub-models that take an hour: nobody waits for the end of one. */
static void an_estimate_is_cancelled_within_a_second(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 2; threads++) {
        task t = task_make("afds");
        listener l = {0};
        const fds_events events = {.progress = listen, .user = &l};
        fds__fit_cost e;
        fds_error err = {0};
        t.params.epochs = 1000000;
        t.params.model = "fc:400,relu,fc:400,relu,fc:classes";
        t.params.threads = threads;
        assert_int_equal(fds__fit_estimate(problem_of(&t), &t.params, &events, &e, &err),
                         FDS_ERR_CANCELLED);
        assert_true(l.asked_s != 0 && fds__now_s() - l.asked_s < 1);
        task_free(&t);
    }
}

static void every_failure_is_told(void **state) {
    (void)state;
    task t = quick_task();
    t.params.coalitions = 20;
    t.input_count = 10;
    for (uint64_t nth = 1;; nth += 1 + nth / 8) {
        fds__fit_cost e;
        fds_error err = {0};
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        fds_status status = fds__fit_estimate(problem_of(&t), &t.params, NULL, &e, &err);
        if (fds__fault_arm(FDS__FAULT_ALLOC, 0) < nth) {
            expect_ok(status, &err);
            assert_true(nth > 20);
            break;
        }
        assert_int_equal(status, FDS_ERR_NOMEM);
    }
    task_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(an_estimate_is_of_the_fit_that_follows),
        cmocka_unit_test(more_takes_more),
        cmocka_unit_test(a_bank_has_no_training),
        cmocka_unit_test(accuracy_is_told_where_it_was_measured),
        cmocka_unit_test(an_estimate_is_cancelled_in_each_of_its_trials),
        cmocka_unit_test(an_estimate_is_cancelled_within_a_second),
        cmocka_unit_test(every_failure_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
