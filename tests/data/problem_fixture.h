/* SPDX-License-Identifier: Apache-2.0
 * What the tests of problems share: data in memory, parameters, what is logged. */
#ifndef FDS_TEST_PROBLEM_FIXTURE_H
#define FDS_TEST_PROBLEM_FIXTURE_H

#include "fixture.h"

#include "../base/faults.h"

#include <math.h>

enum { CLASSES = 4, PROVIDERS = 6 };
static const char *const class_names[CLASSES] = {"cat", "dog", "owl", "f\xc3\xbcnf"};
static const char *const provider_names[PROVIDERS] = {
    "A", "a", "A ", "M\xc3\xbcller", "M\xc3\xb6ller", "last"};

/* Two features; classes of 40, 30, 20 and 10 % of the samples; providers of uneven sizes. */
static inline fds_dataset *make_data(size_t count, bool has_providers) {
    float *floats = need(count, 2 * sizeof *floats);
    uint16_t *labels = need(count, sizeof *labels);
    uint32_t *providers = need(count, sizeof *providers);
    for (size_t i = 0; i < count; i++) {
        static const uint16_t pattern[] = {0, 1, 0, 2, 1, 0, 3, 2, 1, 0};
        labels[i] = pattern[i % 10];
        providers[i] = (uint32_t)(i * i % 7 % PROVIDERS); /* some have many, some none */
        floats[2 * i] = (float)i;
        floats[2 * i + 1] = (float)labels[i];
    }
    fds_arrays arrays = {.count = count,
                         .shape = {2, 1, 1},
                         .floats = floats,
                         .labels = labels,
                         .classes = CLASSES,
                         .class_names = class_names,
                         .providers = has_providers ? providers : NULL,
                         .provider_count = PROVIDERS,
                         .provider_names = provider_names};
    fds_dataset *ds = NULL;
    fds_error err = {0};
    expect_ok(fds_dataset_create(&arrays, &ds, &err), &err);
    memset(floats, 0, 2 * count * sizeof *floats); /* all was copied */
    free(floats);
    free(labels);
    free(providers);
    return ds;
}

static inline fds_params *make_params(const char *job, const char *const *pairs) {
    fds_params *p = fds_params_create(job);
    fds_error err = {0};
    assert_non_null(p);
    for (; pairs && *pairs; pairs += 2)
        expect_ok(fds_params_set(p, pairs[0], pairs[1], &err), &err);
    return p;
}
#define PARAMS(job, ...) make_params(job, (const char *const[]){__VA_ARGS__, NULL})

static inline fds_problem *make_problem(const fds_dataset *train, const fds_dataset *test,
                                        const fds_params *params) {
    fds_problem *p = NULL;
    fds_error err = {0};
    expect_ok(fds_problem_create(train, test, params, NULL, &p, &err), &err);
    return p;
}

static char logged[2048];

static inline void on_log(void *user, fds_log_level level, const char *text) {
    (void)user;
    size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s: %s\n",
             level == FDS_LOG_WARNING ? "warning" : "note", text);
}

static const fds_events listening = {.log = on_log};

static inline void expect_described(const fds_problem *p, const char *kind) {
    json_t *root = json_loads(fds_problem_describe(p), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    const json_t *players = json_object_get(root, "players");
    assert_int_equal(json_object_size(root), 7);
    assert_true(json_is_true(json_object_get(root, "tests_balanced")) == !p->is_proportional);
    assert_string_equal(json_string_value(json_object_get(root, "task")), "classification");
    assert_string_equal(json_string_value(json_object_get(root, "data")), p->train->source);
    assert_string_equal(json_string_value(json_object_get(players, "kind")), kind);
    assert_int_equal(json_integer_value(json_object_get(players, "count")), fds_problem_players(p));
    assert_int_equal(json_integer_value(json_object_get(players, "samples")), p->sample_count);
    assert_int_equal(json_integer_value(json_object_get(root, "tests")), p->test_count);
    assert_int_equal(json_integer_value(json_object_get(root, "inputs")), p->input_count);
    assert_true(json_is_true(json_object_get(root, "tests_set_aside")) == (p->test == p->train));
    json_decref(root);
    assert_ptr_equal(fds_problem_describe(p), fds_problem_describe(p));
}

#endif
