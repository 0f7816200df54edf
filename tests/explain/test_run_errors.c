/* SPDX-License-Identifier: Apache-2.0
 * Files of a run that say what no fit has written, although nothing in them is torn: numbers that
 * are none, and counts that lie. None of them takes memory for what is not there. */
#include "fixture.h"

static void set_groups(const char *dir, const char *first) {
    json_t *json = read_run(dir), *groups = json_object_get(json, "groups");
    assert_int_equal(json_array_set_new(groups, 0, json_loads(first, JSON_DECODE_ANY, NULL)), 0);
    write_run(dir, json);
}

static void groups_must_be_numbers(void **state) {
    (void)state;
    static const char *const wrong[] = {"\"a\"", "1.5", "null", "-1", "4294967296", "[0]"};
    task t = task_make("afds");
    fds_run *run = NULL;
    fds_error err;
    fit(&t, scratch_path("run"));
    for (size_t i = 0; i < COUNT(wrong); i++) {
        set_groups(scratch_path("run"), wrong[i]);
        expect_failure(fds__run_open(scratch_path("run"), 1, &run, &err), FDS_ERR_FORMAT, &err,
                       "\"groups\", entry 0");
        expect_in(err.text, FDS__RUN_JSON);
    }
    set_groups(scratch_path("run"), "0");
    fds_run_free(open_run(scratch_path("run")));
    task_free(&t);
}

static void set_machine(const char *dir, const char *key, json_t *value) {
    json_t *json = read_run(dir), *machine = json_object_get(json, "machine");
    assert_int_equal(
        value ? json_object_set_new(machine, key, value) : json_object_del(machine, key), 0);
    write_run(dir, json);
}

static void threads_must_be_few(void **state) {
    (void)state;
    static const json_int_t wrong[] = {-1, 1025, (json_int_t)1 << 31};
    task t = task_make("afds");
    fds_run *run = NULL;
    fds_error err;
    fit(&t, scratch_path("run"));
    for (size_t i = 0; i < COUNT(wrong); i++) {
        set_machine(scratch_path("run"), "threads", json_integer(wrong[i]));
        expect_failure(fds__run_open(scratch_path("run"), 1, &run, &err), FDS_ERR_FORMAT, &err,
                       "threads");
    }
    set_machine(scratch_path("run"), "threads", json_integer(1));
    set_machine(scratch_path("run"), "explainer_threads", NULL); /* older runs lack it */
    fds_run_free(open_run(scratch_path("run")));
    task_free(&t);
}

/* More epochs than the text could have lines. */
static void a_count_of_epochs_that_lies_takes_no_memory(void **state) {
    (void)state;
    static const char line[] =
        "{\"epoch\": 1, \"lr\": 0.5, \"loss\": 0.25, \"validation_loss\": 0.125}\n";
    fds__metric *metrics = NULL;
    fds_error err;
    expect_failure(learn_metrics_parse("x", line, SIZE_MAX, &metrics, &err), FDS_ERR_FORMAT, &err,
                   "line 2");
    expect_failure(learn_metrics_parse("x", "", SIZE_MAX, &metrics, &err), FDS_ERR_FORMAT, &err,
                   "line 1");
    assert_null(metrics);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(groups_must_be_numbers),
        IN_SCRATCH(threads_must_be_few),
        cmocka_unit_test(a_count_of_epochs_that_lies_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
