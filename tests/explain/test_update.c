/* SPDX-License-Identifier: Apache-2.0
 *
 * fds_update and fds_forget, cancelled at reports of progress, with allocations and file operations that fail: the
 * same call again gives the bytes of one that was never disturbed, and a forgotten provider is gone. */
#include "fixture.h"

enum { ROWS = 36, PLACES_UPDATE = IS_SLOW_BUILD ? 6 : 20 };

static char old_run[300], run[300], data[300], test_data[300];

static void write_rows(const char *path, size_t first, size_t count, bool has_owners) {
    char text[8192];
    size_t used =
        (size_t)snprintf(text, sizeof text, "x1,x2,label%s\n", has_owners ? ",provider" : "");
    for (size_t i = first; i < first + count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%.4f,%.4f,%c",
                                 (double)(i % 3) + (double)(i * 7919 % 1000) / 1000,
                                 (double)(i * 104729 % 1000) / 900, "abc"[i % 3]);
        if (has_owners)
            used += (size_t)snprintf(text + used, sizeof text - used, ",shop-%zu", i % 6);
        used += (size_t)snprintf(text + used, sizeof text - used, "\n");
    }
    scratch_write(path, text, used);
}

static void set(fds_params *params, const char *name, const char *value) {
    fds_error err;
    expect_ok(fds_params_set(params, name, value, &err), &err);
}

static void make_run(void) {
    static const char *const words[][2] = {
        {"players", "providers"}, {"changing", "yes"},  {"method", "afds"},
        {"epochs", "1"},          {"inputs", "12"},     {"threads", "1"},
        {"model", "logistic"},    {"coalitions", "20"}, {"keep_models", "true"}};
    fds_error err;
    fds_dataset *train = NULL, *test = NULL;
    fds_problem *problem = NULL;
    snprintf(old_run, sizeof old_run, "%s", scratch_path("old"));
    snprintf(run, sizeof run, "%s", scratch_path("run"));
    snprintf(data, sizeof data, "%s", scratch_path("train.csv"));
    snprintf(test_data, sizeof test_data, "%s", scratch_path("test.csv"));
    write_rows(data, 0, ROWS, true);
    write_rows(test_data, 100, 30, false);
    fds_params *params = fds_params_create("fit");
    for (size_t i = 0; i < COUNT(words); i++)
        set(params, words[i][0], words[i][1]);
    set(params, "test_file", test_data);
    set(params, "data", data);
    expect_ok(fds_data_open(data, params, NULL, &train, &test, &err), &err);
    expect_ok(fds_problem_create(train, test, params, NULL, &problem, &err), &err);
    expect_ok(fds_fit(old_run, problem, params, NULL, NULL, &err), &err);
    fds_problem_free(problem);
    fds_dataset_free(train);
    fds_dataset_free(test);
    fds_params_free(params);
}

static fds_status change(bool forgets, const fds_events *events, fds_error *err) {
    fds_params *params = fds_params_create(forgets ? "forget" : "update");
    if (!params)
        return fds__fail_nomem(err, 1);
    fds_status status = fds_params_set(params, "threads", "1", err);
    if (status == FDS_OK && !forgets)
        status = fds_params_set(params, "remove", "shop-3", err);
    if (status == FDS_OK)
        status = forgets ? fds_forget(run, "shop-3", params, events, NULL, err)
                         : fds_update(old_run, params, run, events, NULL, err);
    fds_params_free(params);
    return status;
}

/* What is to be changed: a copy of the old run to forget in, or nothing to update into. */
static void begin(bool forgets) {
    char command[1000];
    snprintf(command, sizeof command, forgets ? "rm -rf '%s' && cp -r '%s' '%s'" : "rm -rf '%s'",
             run, old_run, run);
    assert_int_equal(system(command), 0);
}

static void expect_same(bool forgets, char wanted[2][65]) {
    fds_error err;
    char got[65];
    fds_status status = change(forgets, NULL, &err);
    if (status != FDS_ERR_NOT_FOUND) /* it had ended */
        expect_ok(status, &err);
    static const char *const names[] = {FDS__RUN_BANK, FDS__RUN_PLAYERS};
    for (size_t i = 0; i < COUNT(names); i++) {
        sha256_of(in_run(run, names[i]), got);
        if (!wanted[i][0])
            strcpy(wanted[i], got);
        assert_string_equal(got, wanted[i]);
    }
    char command[700];
    snprintf(command, sizeof command, "grep -rqa shop-3 '%s'", run);
    assert_int_not_equal(system(command), 0);
}

static void every_report_of_progress_can_cancel_a_change(void **state) {
    (void)state;
    make_run();
    for (int forgets = 0; forgets < 2; forgets++) {
        char wanted[2][65] = {"", ""};
        stopper s = {0};
        const fds_events events = {.progress = stop, .user = &s};
        fds_error err;
        begin(forgets);
        expect_ok(change(forgets, &events, &err), &err);
        begin(forgets);
        expect_same(forgets, wanted);
        const uint64_t reports = s.calls;
        assert_true(reports > 20);
        for (uint64_t nth = 1; nth <= reports; nth += 1 + reports / PLACES_UPDATE) {
            s = (stopper){.stop_at = nth};
            begin(forgets);
            fds_status status = change(forgets, &events, &err);
            if (status != FDS_ERR_CANCELLED)
                fail_msg("report %llu of %llu: %s", (unsigned long long)nth,
                         (unsigned long long)reports, fds_status_name(status));
            expect_same(forgets, wanted);
        }
        print_message("# %s: %llu reports\n", forgets ? "forget" : "update",
                      (unsigned long long)reports);
    }
}

static void a_change_survives_failures(void **state) {
    (void)state;
    make_run();
    for (int forgets = 0; forgets < 2; forgets++) {
        char wanted[2][65] = {"", ""};
        fds_error err;
        begin(forgets);
        expect_same(forgets, wanted);
        for (int kind = FDS__FAULT_ALLOC; kind <= FDS__FAULT_IO; kind++) {
            begin(forgets);
            fds__fault_arm((fds__fault_kind)kind, 0);
            expect_ok(change(forgets, NULL, &err), &err);
            const uint64_t calls = fds__fault_arm((fds__fault_kind)kind, 0);
            assert_true(calls > 50);
            for (uint64_t nth = 1; nth <= calls; nth += 1 + calls / PLACES_UPDATE) {
                err = (fds_error){0};
                begin(forgets);
                fds__fault_arm((fds__fault_kind)kind, nth);
                fds_status status = change(forgets, NULL, &err);
                fds__fault_arm((fds__fault_kind)kind, 0);
                if (status != FDS_OK)
                    expect_told((fds__fault_kind)kind, nth, status, &err);
                expect_same(forgets, wanted);
            }
        }
    }
}

int main(void) {
    setenv("OMP_WAIT_POLICY", "passive", 1);
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(every_report_of_progress_can_cancel_a_change),
        IN_SCRATCH(a_change_survives_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
