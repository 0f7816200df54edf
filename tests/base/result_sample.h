/* SPDX-License-Identifier: Apache-2.0
 * Results for tests: two players, two predictions, three classes; names that need care. */
#ifndef FDS_TEST_RESULT_SAMPLE_H
#define FDS_TEST_RESULT_SAMPLE_H

#include "result_fixture.h"

enum { PLAYERS = 2, TESTS = 2, CLASSES = 3, HUGE_NAME = 1 << 20 };
static const char odd_name[] = "a \"b\", c\nd";
static const double values[TESTS * PLAYERS] = {0.1, 2e-300, -1.0 / 3, 12345678.9};
static const double errors[TESTS * PLAYERS] = {0.01, 0, 1, 5e-324};

static inline void name_all(fds_result *r) {
    name_player(r, 0, "plain", NULL, 1, 1);
    if (r->players > 1)
        name_player(r, 1, odd_name, "M\xc3\xbcller, Ltd", 2, 3);
    name_class(r, 0, "zero");
    name_class(r, 1, "one, two");
    name_class(r, 2, "f\xc3\xbcnf");
}

static inline fds_result *sample(void) {
    fds_result *r = new_result(PLAYERS, TESTS, CLASSES);
    name_all(r);
    memcpy(r->values, values, sizeof values);
    memcpy(r->errors, errors, sizeof errors);
    r->samples[0] = 7;
    r->samples[1] = 40;
    r->labels[0] = 2;
    r->labels[1] = 0;
    fds__result_average(r);
    return r;
}

/* Every label of each test sample: value p.tl for player p, test sample t, label l; exact. */
static inline fds_result *sample_all(size_t players) {
    fds_result *r = new_result(players, TESTS * CLASSES, CLASSES);
    name_all(r);
    r->has_all_labels = r->is_exact = true;
    for (size_t k = 0; k < r->predictions; k++) {
        r->samples[k] = (uint32_t)(k / CLASSES);
        r->labels[k] = (uint32_t)(k % CLASSES);
        for (size_t i = 0; i < players; i++)
            r->values[k * players + i] =
                (double)i + (double)(k / CLASSES) / 10 + (double)(k % CLASSES) / 100;
    }
    fds__result_average(r);
    return r;
}

static inline fds_result *sample_mean(void) {
    fds_result *r = new_result(PLAYERS, 1, CLASSES);
    name_all(r);
    r->is_mean = true;
    memcpy(r->values, values, PLAYERS * sizeof *values);
    memcpy(r->errors, errors, PLAYERS * sizeof *errors);
    fds__result_average(r);
    return r;
}

static inline const char *save(const fds_result *r, const char *name) {
    fds_error err = {0};
    const char *path = scratch_path(name);
    expect_ok(fds_result_save(r, path, &err), &err);
    return path;
}

/* The ranking as JSON. */
static inline json_t *ranking(const fds_result *r) {
    fds_error err = {0};
    char *text = NULL;
    expect_ok(fds_result_json(r, &text, &err), &err);
    json_t *root = load_text(text);
    fds_text_free(text);
    return root;
}

#endif
