/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases whose allocations and file operations fail, one at a time: each failure is reported, and the
 * next run in the same folder ends with the numbers of one that never failed. Leaks show where the
 * tests are built with the address sanitizer. Jansson's allocations fail too. */
#include "case_fixture.h"

typedef struct {
    trial t;
    char dir[300];
    json_t *wanted;
} subject;

static void subject_make(subject *s, const char *methods) {
    s->t = trial_make(methods);
    trial_point(&s->t);
    s->t.params.coalitions = 20;
    s->t.params.truth = 20;
    s->t.params.lds = 5;
    s->t.params.lds_seeds = s->t.params.loss_seeds = 1;
    s->t.params.flipped = 0.1;
    s->t.params.top_only = false;
    snprintf(s->dir, sizeof s->dir, "%s", scratch_path("case"));
    run_case(&s->t, s->dir);
    s->wanted = read_numbers(s->dir);
    remove_run(s->dir);
}

static void subject_free(subject *s) {
    json_decref(s->wanted);
    trial_free(&s->t);
}

/* Failures at about so many places, each in a new folder. */
static void fail_at(const subject *s, fds__fault_kind kind, uint64_t places) {
    fds__fault_arm(kind, 0);
    run_case(&s->t, s->dir);
    uint64_t calls = fds__fault_arm(kind, 0), tried = 0, survived = 0;
    remove_run(s->dir);
    assert_true(calls > 50);
    for (uint64_t nth = 1; nth <= calls; nth += 1 + calls / places, tried++) {
        fds_error err = {0};
        fds__fault_arm(kind, nth);
        fds_status status = try_case(&s->t, s->dir, &err);
        fds__fault_arm(kind, 0);
        if (status == FDS_OK) /* what only concerns events, or tidying up */
            survived++;
        else
            expect_told(kind, nth, status, &err);
        if (tried % 3 == 0 || status == FDS_OK) {
            run_case(&s->t, s->dir);
            expect_same_numbers(s->dir, s->wanted);
        }
        remove_run(s->dir);
    }
    print_message("# %llu of %llu %s failed, %llu of them without harm\n",
                  (unsigned long long)tried, (unsigned long long)calls,
                  kind == FDS__FAULT_IO ? "file operations" : "allocations",
                  (unsigned long long)survived);
    assert_true(survived * 20 <= tried + 20);
}

static void fail_everywhere(const char *methods, uint64_t places) {
    subject s;
    json_set_alloc_funcs(fds__alloc, fds__free);
    subject_make(&s, methods);
    fail_at(&s, FDS__FAULT_ALLOC, places);
    fail_at(&s, FDS__FAULT_IO, places);
    json_set_alloc_funcs(malloc, free);
    subject_free(&s);
}

static void a_case_survives_failures(void **state) {
    (void)state;
    fail_everywhere("ls,loo,knn:2/sample,random", IS_SLOW_BUILD ? 16 : 24);
}

/* Fewer: fits have such tests of their own. */
static void a_case_with_fits_survives_failures(void **state) {
    (void)state;
    fail_everywhere("afds,bank", IS_SLOW_BUILD ? 3 : 5);
}

/* One after the other in one folder, each a little later than the last. */
static void a_case_that_fails_again_and_again_gets_done(void **state) {
    (void)state;
    subject s;
    subject_make(&s, "ls,tmc");
    for (int kind = FDS__FAULT_ALLOC; kind <= FDS__FAULT_IO; kind++) {
        for (uint64_t nth = 3; nth < 1000000; nth += nth / 3) {
            fds_error err = {0};
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status = try_case(&s.t, s.dir, &err);
            if (fds__fault_arm((fds__fault_kind)kind, 0) < nth) {
                expect_ok(status, &err);
                break;
            }
        }
        run_case(&s.t, s.dir);
        expect_same_numbers(s.dir, s.wanted);
        remove_run(s.dir);
    }
    subject_free(&s);
}

/* The copy of a dataset that wrong labels are written in. */
static void a_copy_with_other_labels_is_whole_or_none(void **state) {
    (void)state;
    task t = task_providers("afds");
    const fds__dataset_info before = fds__dataset_get_info(t.train);
    uint16_t labels[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++)
        labels[i] = (uint16_t)((before.labels[i] + 1) % CLASSES);
    for (uint64_t nth = 1;; nth++) {
        fds_dataset *copy = NULL;
        fds_error err = {0};
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        fds_status status = fds__dataset_relabel(t.train, labels, &copy, &err);
        if (fds__fault_arm(FDS__FAULT_ALLOC, 0) >= nth) {
            assert_int_equal(status, FDS_ERR_NOMEM);
            assert_null(copy);
            continue;
        }
        expect_ok(status, &err);
        const fds__dataset_info after = fds__dataset_get_info(copy);
        float was[FEATURES], is[FEATURES];
        assert_int_equal(after.count, before.count);
        assert_int_equal(after.providers, before.providers);
        assert_memory_equal(after.labels, labels, sizeof labels);
        assert_memory_equal(after.provider_ids, before.provider_ids, SAMPLES * sizeof(uint32_t));
        for (size_t i = 0; i < SAMPLES; i++) {
            fds_dataset_sample(t.train, i, was);
            fds_dataset_sample(copy, i, is);
            assert_memory_equal(was, is, sizeof was);
        }
        for (uint32_t c = 0; c < CLASSES; c++)
            assert_string_equal(fds_dataset_class_name(copy, c),
                                fds_dataset_class_name(t.train, c));
        for (uint32_t p = 0; p < before.providers; p++)
            assert_string_equal(fds_dataset_provider_name(copy, p),
                                fds_dataset_provider_name(t.train, p));
        fds_dataset_free(copy);
        labels[5] = CLASSES;
        expect_failure(fds__dataset_relabel(t.train, labels, &copy, &err), FDS_ERR_FORMAT, &err,
                       "sample 5");
        break;
    }
    task_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_case_survives_failures),
        IN_SCRATCH(a_case_with_fits_survives_failures),
        IN_SCRATCH(a_case_that_fails_again_and_again_gets_done),
        IN_SCRATCH(a_copy_with_other_labels_is_whole_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
