/* SPDX-License-Identifier: Apache-2.0
 * What the tests of cases share: a small task, ways to run it and to look at its case.json. */
#ifndef FDS_TEST_CASE_FIXTURE_H
#define FDS_TEST_CASE_FIXTURE_H

#include "../explain/fixture.h"
#include "eval/eval.h"

enum { OWNERS = 10, LEARNT = 24, TESTED = 6 };

typedef struct {
    fds_dataset *train, *test;
    fds_players *players;
    uint32_t samples[OWNERS], inputs[LEARNT], tests[TESTED];
    uint32_t player_labels[OWNERS], test_labels[TESTED];
    const char *name;
    fds_problem problem;
    fds_params params;
    fds_events events;
} trial;

/* Parameters for which a case takes a fraction of a second. */
static inline fds_params quick_bench(const char *methods) {
    fds_params p = fds__params_default(FDS__JOB_BENCH);
    p.methods = methods;
    p.remove = "10,50,100";
    p.top_only = true;
    p.model = "fc:classes";
    p.explainer = LINEAR;
    p.coalitions = 60;
    p.permutations = 20;
    p.flipped = 0;
    p.seed = 4;
    p.threads = 1;
    return p;
}

static inline trial trial_make(const char *methods) {
    trial t = {.train = clouds(OWNERS + LEARNT, 1),
               .test = clouds(30, 2),
               .name = "clouds",
               .params = quick_bench(methods)};
    fds_error err;
    expect_ok(fds_players_points(t.train, NULL, OWNERS, &t.players, &err), &err);
    for (uint32_t i = 0; i < LEARNT; i++)
        t.inputs[i] = OWNERS + i;
    for (uint32_t i = 0; i < TESTED; i++)
        t.tests[i] = (7 * i + 3) % 30;
    return t;
}

/* Once the trial stays where it is. Each player is a sample, in ascending order. */
static inline void trial_point(trial *t) {
    size_t players = fds_players_count(t->players);
    for (size_t i = 0; i < players; i++) {
        const uint32_t *index;
        assert_int_equal(fds_players_samples(t->players, i, &index), 1);
        t->samples[i] = index[0];
        t->player_labels[i] = t->train->labels[index[0]];
    }
    for (size_t i = 0; i < TESTED; i++)
        t->test_labels[i] = t->test->labels[t->tests[i]];
    t->problem = (fds_problem){.train = t->train,
                               .test = t->test,
                               .has_test_part = true,
                               .players = t->players,
                               .player_labels = t->player_labels,
                               .samples = t->samples,
                               .sample_count = players,
                               .inputs = t->inputs,
                               .input_count = LEARNT,
                               .tests = t->tests,
                               .test_count = TESTED,
                               .test_labels = t->test_labels};
}

static inline void trial_free(trial *t) {
    fds_players_free(t->players);
    fds_dataset_free(t->train);
    fds_dataset_free(t->test);
}

static inline fds_status try_case(const trial *t, const char *dir, fds_error *err) {
    return eval_case(dir, t->name, &t->problem, &t->params, &t->events, err);
}

static inline void run_case(const trial *t, const char *dir) {
    fds_error err;
    expect_ok(try_case(t, dir, &err), &err);
}

/* ---- case.json ---- */

static inline json_t *read_case(const char *dir) {
    json_t *json = json_load_file(in_run(dir, "case.json"), 0, NULL);
    assert_non_null(json);
    return json;
}

/* Without what depends on the clock and the machine. */
static inline json_t *read_numbers(const char *dir) {
    json_t *json = read_case(dir), *row;
    size_t i;
    json_array_foreach(json_object_get(json, "rows"), i, row)
        assert_int_equal(json_object_del(row, "timing"), 0);
    assert_int_equal(json_object_del(json, "machine"), 0);
    return json;
}

static inline void expect_same_numbers(const char *dir, const json_t *wanted) {
    json_t *got = read_numbers(dir);
    if (!json_equal(got, wanted)) {
        char text[400] = "";
        fds__json_difference(wanted, got, "case", text, sizeof text);
        fail_msg("%s: %s", dir, text);
    }
    json_decref(got);
}

static inline const json_t *find_row(const json_t *json, const char *method) {
    json_t *row;
    size_t i;
    json_array_foreach(json_object_get(json, "rows"), i,
                       row) if (strcmp(json_string_value(json_object_get(row, "method")), method) ==
                                0) return row;
    fail_msg("there is no row %s", method);
    return NULL;
}

static inline double number(const json_t *from, const char *key) {
    const json_t *value = json_object_get(from, key);
    if (json_is_null(value))
        return NAN;
    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* The entry of a row's losses, or NULL. */
static inline const json_t *find_losses(const json_t *row, const char *value, const char *way,
                                        const char *set) {
    json_t *entry;
    size_t i;
    json_array_foreach(
        json_object_get(row, "losses"), i,
        entry) if (strcmp(json_string_value(json_object_get(entry, "utility")), value) == 0 &&
                   strcmp(json_string_value(json_object_get(entry, "removal")), way) == 0 &&
                   strcmp(json_string_value(json_object_get(entry, "set")), set) == 0) return entry;
    return NULL;
}

#endif
