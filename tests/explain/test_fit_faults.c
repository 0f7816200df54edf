/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits and runs whose allocations and file operations fail, one at a time: each failure is told,
 * and the next fit in the same folder ends with the bits of one that never failed. Leaks show where
 * the tests are built with the address sanitizer. In fits Jansson's allocations fail too; not where
 * files are read, as its reader asserts that it has memory for a text with escapes. */
#include "fixture.h"

/* Failures are tried at about so many places of a fit; all places take too long. */
enum { PLACES = IS_SLOW_BUILD ? 40 : 120 };

typedef struct {
    task t;
    char dir[300];
    const char *file; /* whose bytes are compared */
    char wanted[65];
} subject;

static void subject_make(subject *s, const char *method, int explainer) {
    s->t = task_make(method);
    s->t.params.explainer = explainer;
    s->t.params.coalitions = 20;
    s->t.params.explainer_epochs = 2;
    s->t.params.epochs = 1;
    s->t.input_count = 20;
    s->file = explainer == BANK ? FDS__RUN_BANK : FDS__RUN_EXPLAINER;
    snprintf(s->dir, sizeof s->dir, "%s", scratch_path("run"));
    fit(&s->t, s->dir);
    sha256_of(in_run(s->dir, s->file), s->wanted);
    remove_run(s->dir);
}

/* Opens the run and asks it once, by whatever answers. */
static fds_status open_and_ask(const subject *s, fds_error *err) {
    static answers a;
    const fds__answers to = places(&a);
    fds_run *run = NULL;
    TRY(fds__run_open(s->dir, 1, &run, err));
    fds_status status =
        fds__run_explain(run, FDS__ANSWERER_EXPLAINER, s->t.train, NULL, 3, false, &to, err);
    if (status == FDS_OK)
        status = fds__run_check_data(run, s->t.train, err);
    fds_run_free(run);
    return status;
}

static void expect_whole(const subject *s) {
    char got[65];
    fds_error err;
    fit(&s->t, s->dir);
    sha256_of(in_run(s->dir, s->file), got);
    assert_string_equal(got, s->wanted);
    expect_ok(open_and_ask(s, &err), &err);
}

/* In a new folder for each failure, or all in the same one, which then gets on a little further
 * each time. */
static void fail_fits(const subject *s, fds__fault_kind kind) {
    fds_error err;
    fds__fault_arm(kind, 0);
    fit(&s->t, s->dir);
    uint64_t calls = fds__fault_arm(kind, 0), tried = 0, survived = 0;
    remove_run(s->dir);
    assert_true(calls > 50);
    for (uint64_t nth = 1; nth <= calls; nth += 1 + calls / PLACES, tried++) {
        err = (fds_error){0};
        fds__fault_arm(kind, nth);
        fds_status status = try_fit(&s->t, s->dir, NULL, &err);
        fds__fault_arm(kind, 0);
        if (status == FDS_OK) /* what is only told to events, or tidied up */
            survived++;
        else
            expect_told(kind, nth, status, &err);
        if (tried % 4 == 0 || status == FDS_OK)
            expect_whole(s);
        remove_run(s->dir);
    }
    print_message("# %llu of %llu %s failed, %llu of them without harm\n",
                  (unsigned long long)tried, (unsigned long long)calls,
                  kind == FDS__FAULT_IO ? "file operations" : "allocations",
                  (unsigned long long)survived);
    assert_true(survived * 20 <= tried + 20);
}

static void fail_everywhere(const char *method, int explainer) {
    subject s;
    json_set_alloc_funcs(fds__alloc, fds__free);
    subject_make(&s, method, explainer);
    fail_fits(&s, FDS__FAULT_ALLOC);
    fail_fits(&s, FDS__FAULT_IO);
    json_set_alloc_funcs(malloc, free);
    task_free(&s.t);
}

static void a_fit_survives_failures(void **state) {
    (void)state;
    fail_everywhere("afds", LINEAR);
}

static void a_fit_by_groups_survives_failures(void **state) {
    (void)state;
    fail_everywhere("gfds+", MLP);
}

static void a_bank_survives_failures(void **state) {
    (void)state;
    fail_everywhere("afds", BANK);
}

/* Failures one after the other in one folder, each a little later than the last. */
static void a_fit_that_fails_again_and_again_gets_done(void **state) {
    (void)state;
    subject s;
    subject_make(&s, "afds", LINEAR);
    for (int kind = FDS__FAULT_ALLOC; kind <= FDS__FAULT_IO; kind++) {
        for (uint64_t nth = 3; nth < 1000000; nth += nth / 3) {
            fds_error err = {0};
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status = try_fit(&s.t, s.dir, NULL, &err);
            if (fds__fault_arm((fds__fault_kind)kind, 0) < nth) {
                expect_ok(status, &err);
                break;
            }
        }
        expect_whole(&s);
        remove_run(s.dir);
    }
    task_free(&s.t);
}

/* Every single one: a run is opened often, and quickly. */
static void opening_a_run_survives_failures(void **state) {
    (void)state;
    static const int explainers[] = {LINEAR, BANK};
    for (size_t e = 0; e < COUNT(explainers); e++) {
        subject s;
        subject_make(&s, "afds", explainers[e]);
        fit(&s.t, s.dir);
        for (int kind = FDS__FAULT_ALLOC; kind <= FDS__FAULT_IO; kind++)
            for (uint64_t nth = 1;; nth += IS_SLOW_BUILD ? 3 : 1) {
                fds_error err = {0};
                fds__fault_arm((fds__fault_kind)kind, nth);
                fds_status status = open_and_ask(&s, &err);
                if (fds__fault_arm((fds__fault_kind)kind, 0) < nth) {
                    expect_ok(status, &err);
                    assert_true(nth > 5);
                    print_message("# %s: %llu %s\n", explainers[e] == BANK ? "bank" : "linear",
                                  (unsigned long long)nth - 1,
                                  kind == FDS__FAULT_IO ? "file operations" : "allocations");
                    break;
                }
                expect_told((fds__fault_kind)kind, nth, status, &err);
            }
        remove_run(s.dir);
        task_free(&s.t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_fit_survives_failures),
        IN_SCRATCH(a_fit_by_groups_survives_failures),
        IN_SCRATCH(a_bank_survives_failures),
        IN_SCRATCH(a_fit_that_fails_again_and_again_gets_done),
        IN_SCRATCH(opening_a_run_survives_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
