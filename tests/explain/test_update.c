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

static void one_key(json_t *json) {
    json_t *list = json_object_get(json, "players");
    json_object_set(json_array_get(list, 1), "key",
                    json_object_get(json_array_get(list, 0), "key"));
}
static void no_validation(json_t *json) {
    json_object_set_new(json_object_get(json, "inputs"), "validation", json_integer(0));
}
static void validation_alone(json_t *json) {
    json_t *inputs = json_object_get(json, "inputs");
    json_object_set(inputs, "validation", json_object_get(inputs, "count"));
}
static void more_inputs(json_t *json) {
    json_object_set_new(json_object_get(json, "inputs"), "count", json_integer(13));
}
static void fewer_players(json_t *json) { json_array_remove(json_object_get(json, "players"), 0); }
static void more_players(json_t *json) {
    for (int i = 0; i < 70; i++) {
        json_t *list = json_object_get(json, "players"),
               *player = json_deep_copy(json_array_get(list, 0));
        char key[17];
        snprintf(key, sizeof key, "%016x", i);
        json_object_set_new(player, "key", json_string(key));
        json_array_insert_new(list, 0, player);
    }
}
static void another_class(json_t *json) {
    json_array_append_new(json_object_get(json_object_get(json, "data"), "classes"),
                          json_string("d"));
}
static void another_seed(json_t *json) {
    json_object_set_new(json_object_get(json, "utility"), "seed", json_integer(77));
}
static void no_sources(json_t *json) {
    json_object_set_new(json_object_get(json, "origin"), "sources", json_array());
}

/* By sums that are right: somebody, or another version, wrote it. */
static void a_record_that_contradicts_itself_is_refused(void **state) {
    (void)state;
    static const struct {
        void (*damage)(json_t *);
        fds_status update, forget;
    } cases[] = {{one_key, FDS_ERR_FORMAT, FDS_OK},
                 {no_validation, FDS_ERR_FORMAT, FDS_ERR_FORMAT},
                 {validation_alone, FDS_ERR_FORMAT, FDS_ERR_FORMAT},
                 {more_inputs, FDS_ERR_CORRUPT, FDS_ERR_CORRUPT},
                 {fewer_players, FDS_ERR_FORMAT, FDS_ERR_CORRUPT},
                 {more_players, FDS_ERR_FORMAT, FDS_ERR_CORRUPT},
                 {another_class, FDS_ERR_CORRUPT, FDS_ERR_CORRUPT},
                 {another_seed, FDS_ERR_CORRUPT, FDS_ERR_CORRUPT},
                 {no_sources, FDS_ERR_FORMAT, FDS_ERR_FORMAT}};
    char kept[300];
    make_run();
    snprintf(kept, sizeof kept, "%s", old_run);
    for (size_t i = 0; i < COUNT(cases); i++) {
        fds_error err;
        json_t *json;
        begin(true);
        expect_ok(fds__json_read(in_run(run, FDS__RUN_JSON), 1 << 20, &json, &err), &err);
        json_object_del(json, "checksum");
        cases[i].damage(json);
        assert_true(fds__json_seal(json));
        expect_ok(fds__json_write(run, FDS__RUN_JSON, json, &err), &err);
        json_decref(json);
        snprintf(old_run, sizeof old_run, "%s", run);
        snprintf(run, sizeof run, "%s", scratch_path("new"));
        fds_status status = change(false, NULL, &err);
        if (status != cases[i].update)
            fail_msg("update, case %zu: %s: %s", i, fds_status_name(status), err.text);
        snprintf(run, sizeof run, "%s", old_run);
        status = change(true, NULL, &err);
        if (status != cases[i].forget)
            fail_msg("forget, case %zu: %s: %s", i, fds_status_name(status), err.text);
        snprintf(old_run, sizeof old_run, "%s", kept);
    }
}

int main(void) {
    setenv("OMP_WAIT_POLICY", "passive", 1);
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(every_report_of_progress_can_cancel_a_change),
        IN_SCRATCH(a_change_survives_failures),
        IN_SCRATCH(a_record_that_contradicts_itself_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
