/* SPDX-License-Identifier: Apache-2.0
 * The numbers of a case depend on nothing but data and settings: not on threads, not on the order
 * of methods, not on how often it was interrupted. */
#include "case_fixture.h"

#include <sys/stat.h>

/* ---- nothing else matters ---- */

static const char *const several[] = {"afds", "bank", "ls", "tmc", "loo/sample", "random", NULL};

static trial several_make(void) {
    trial t = trial_make("afds,bank,ls,tmc,loo/sample,random");
    t.params.top_only = false;
    t.params.truth = 80;
    t.params.flipped = 0.1;
    return t;
}

static void threads_change_no_number(void **state) {
    (void)state;
    trial t = several_make();
    trial_point(&t);
    run_case(&t, scratch_path("one"));
    json_t *wanted = read_numbers(scratch_path("one"));
    t.params.threads = 2;
    run_case(&t, scratch_path("two"));
    expect_same_numbers(scratch_path("two"), wanted);
    json_decref(wanted);
    trial_free(&t);
}

static void the_order_of_methods_changes_no_number(void **state) {
    (void)state;
    static const char *const turned[] = {"tmc", "bank", "afds", NULL};
    trial t = several_make();
    trial_point(&t);
    run_case(&t, scratch_path("one"));
    json_t *wanted = read_numbers(scratch_path("one"));
    t.params.methods = "tmc,bank,afds";
    run_case(&t, scratch_path("two"));
    json_t *got = read_numbers(scratch_path("two")), *timed = read_case(scratch_path("two"));
    for (size_t i = 0; turned[i]; i++) {
        assert_true(json_equal(find_row(got, turned[i]), find_row(wanted, turned[i])));
        assert_true(json_is_false(
            json_object_get(json_object_get(find_row(timed, turned[i]), "timing"), "was_resumed")));
    }
    json_decref(timed);
    json_decref(got);
    json_decref(wanted);
    trial_free(&t);
}

/* ---- interrupted ---- */

/* Asks to stop at the stop_at-th call of progress, counted from when the log said from (NULL: from
 * the beginning). */
typedef struct {
    uint64_t calls, stop_at;
    const char *from;
    char last[200]; /* the last message */
} watch;

static bool watch_progress(void *user, const fds_progress *progress) {
    watch *w = user;
    assert_true(progress->stage && progress->unit);
    return ++w->calls == w->stop_at && (!w->from || strstr(w->last, w->from));
}

static void watch_log(void *user, fds_log_level level, const char *text) {
    watch *w = user;
    if (level == FDS_LOG_WARNING) { /* a small explainer of a small game */
        expect_in(text, "do not pay by them");
        return;
    }
    assert_int_equal(level, FDS_LOG_INFO);
    snprintf(w->last, sizeof w->last, "%s", text);
    if (w->from && strstr(text, w->from))
        w->calls = 0;
}

static bool was_resumed(const char *dir, const char *method) {
    json_t *json = read_case(dir);
    bool was = json_is_true(
        json_object_get(json_object_get(find_row(json, method), "timing"), "was_resumed"));
    json_decref(json);
    return was;
}

static void a_case_that_was_cancelled_goes_on_with_the_same_numbers(void **state) {
    (void)state;
    enum { PLACES = IS_SLOW_BUILD ? 2 : 4 };
    watch w = {0};
    char dir[300];
    fds_error err;
    trial t = several_make();
    trial_point(&t);
    t.events = (fds_events){watch_log, watch_progress, &w};
    run_case(&t, scratch_path("whole"));
    assert_string_equal(w.last, "clouds, seed 4: removals by random (6 of 6)");
    json_t *wanted = read_numbers(scratch_path("whole"));
    uint64_t calls = w.calls;
    snprintf(dir, sizeof dir, "%s", scratch_path("case"));
    for (uint64_t place = 0; place < PLACES; place++) {
        w = (watch){.stop_at = 1 + place * (calls - 1) / PLACES};
        expect_failure(try_case(&t, dir, &err), FDS_ERR_CANCELLED, &err, "cancelled");
        assert_false(fds__path_exists(in_run(dir, "case.json")));
        w = (watch){0};
        run_case(&t, dir);
        expect_same_numbers(dir, wanted);
        remove_run(dir);
    }
    /* again and again in the same folder */
    static const char *const steps[] = {"afds (1", "tmc (3", "the truth", "loo/sample with",
                                        "by afds (1"};
    for (size_t i = 0; i < COUNT(steps); i++) {
        w = (watch){.stop_at = 2, .from = steps[i]};
        expect_failure(try_case(&t, dir, &err), FDS_ERR_CANCELLED, &err, "cancelled");
        expect_in(w.last, steps[i]);
    }
    w = (watch){0};
    run_case(&t, dir);
    expect_same_numbers(dir, wanted);
    for (size_t i = 0; several[i]; i++) /* the bank is of the fit of afds */
        assert_int_equal(was_resumed(dir, several[i]), i == 0 || i == 1 || i == 3);
    json_decref(wanted);
    trial_free(&t);
}

/* What a method took is what it took when it was done. */
static void a_resumed_case_keeps_what_methods_took(void **state) {
    (void)state;
    static const char record[] = "{\"prepare_s\": 12.5, \"answer_ms\": null, \"sub_models\": 77, "
                                 "\"was_resumed\": false, \"machine\": {\"processor\": \"Other\"}}";
    trial t = trial_make("tmc,loo");
    char dir[300];
    trial_point(&t);
    snprintf(dir, sizeof dir, "%s", scratch_path("case"));
    run_case(&t, dir);
    assert_int_equal(unlink(in_run(dir, "case.json")), 0);
    scratch_write(in_run(dir, "tmc.json"), record, strlen(record));
    scratch_write(in_run(dir, "loo.json"), "{\"begun\": true}", 15);
    run_case(&t, dir);
    json_t *json = read_case(dir);
    const json_t *tmc = find_row(json, "tmc"), *timing = json_object_get(tmc, "timing");
    assert_true(number(tmc, "sub_models") == 77 && number(timing, "prepare_s") == 12.5);
    assert_true(json_is_false(json_object_get(timing, "was_resumed")));
    assert_true(number(json_object_get(tmc, "permutations"), "sampled") == 20);
    assert_true(number(find_row(json, "loo"), "sub_models") == OWNERS + 1);
    assert_true(was_resumed(dir, "loo"));
    assert_true(json_is_true(json_object_get(json_object_get(json, "machine"), "is_mixed")));
    json_decref(json);
    trial_free(&t);
}

/* ---- damaged ---- */

/* Warnings, one after the other. */
static void keep_warnings(void *user, fds_log_level level, const char *text) {
    char *all = user;
    if (level == FDS_LOG_WARNING)
        snprintf(all + strlen(all), 1000 - strlen(all), "%s\n", text);
}

static void a_damaged_record_is_reported_and_measured_again(void **state) {
    (void)state;
    static const struct {
        const char *text, *warning;
    } damaged[] = {
        {"{}", "tmc.json: neither"},
        {"{", "tmc.json: line 1"},
        {"[]", "tmc.json: neither"},
        {"{\"begun\": false, \"sub_models\": 7}", "tmc.json: neither"},
        {"{\"prepare_s\": 1, \"answer_ms\": null, \"sub_models\": -7, \"was_resumed\": false}",
         "tmc.json: neither"},
    };
    char dir[300], warnings[1000];
    trial t = trial_make("loo,tmc");
    trial_point(&t);
    t.events = (fds_events){keep_warnings, NULL, warnings};
    snprintf(dir, sizeof dir, "%s", scratch_path("case"));
    *warnings = 0;
    run_case(&t, dir);
    assert_string_equal(warnings, "");
    json_t *wanted = read_numbers(dir);
    for (size_t i = 0; i < COUNT(damaged); i++) {
        assert_int_equal(unlink(in_run(dir, "case.json")), 0);
        scratch_write(in_run(dir, "tmc.json"), damaged[i].text, strlen(damaged[i].text));
        *warnings = 0;
        run_case(&t, dir);
        expect_in(warnings, damaged[i].warning);
        expect_in(warnings, "; tmc is measured again");
        expect_same_numbers(dir, wanted);
        assert_true(was_resumed(dir, "tmc") && !was_resumed(dir, "loo"));
    }
    json_decref(wanted);
    trial_free(&t);
}

static void a_damaged_result_is_reported_and_measured_again(void **state) {
    (void)state;
    static const char *const damaged[] = {"", "{\"fds\": \"0.1.0\"", "{}",
                                          "{\"kind\": \"fds bench case\", \"fds\": \"0.1.0\"}"};
    char dir[300], warnings[1000];
    trial t = trial_make("loo,ls");
    trial_point(&t);
    t.events = (fds_events){keep_warnings, NULL, warnings};
    snprintf(dir, sizeof dir, "%s", scratch_path("case"));
    run_case(&t, dir);
    json_t *wanted = read_numbers(dir);
    for (size_t i = 0; i < COUNT(damaged); i++) {
        scratch_write(in_run(dir, "case.json"), damaged[i], strlen(damaged[i]));
        *warnings = 0;
        run_case(&t, dir);
        expect_in(warnings, "case.json: ");
        expect_in(warnings, "; the case is measured again");
        expect_same_numbers(dir, wanted);
        assert_false(was_resumed(dir, "loo")); /* what it took is still known */
    }
    json_decref(wanted);
    trial_free(&t);
}

static void a_finished_case_is_left_as_it_is(void **state) {
    (void)state;
    struct stat before, after;
    trial t = trial_make("ls");
    trial_point(&t);
    run_case(&t, scratch_path("case"));
    assert_int_equal(stat(scratch_path("case/case.json"), &before), 0);
    double start_s = fds__now_s();
    watch w = {.stop_at = 1}; /* nothing is computed, so that there is nothing to stop */
    t.events = (fds_events){NULL, watch_progress, &w};
    run_case(&t, scratch_path("case"));
    assert_true(fds__now_s() - start_s < 1);
    assert_int_equal(stat(scratch_path("case/case.json"), &after), 0);
    assert_true(before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
                before.st_mtim.tv_nsec == after.st_mtim.tv_nsec && before.st_ino == after.st_ino);
    trial_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(threads_change_no_number),
        IN_SCRATCH(the_order_of_methods_changes_no_number),
        IN_SCRATCH(a_case_that_was_cancelled_goes_on_with_the_same_numbers),
        IN_SCRATCH(a_resumed_case_keeps_what_methods_took),
        IN_SCRATCH(a_damaged_record_is_reported_and_measured_again),
        IN_SCRATCH(a_damaged_result_is_reported_and_measured_again),
        IN_SCRATCH(a_finished_case_is_left_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
