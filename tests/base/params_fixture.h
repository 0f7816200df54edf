/* SPDX-License-Identifier: Apache-2.0
 * What the tests of parameters share: the table once more, read by the tests themselves, and
 * parameters that are set and refused. */
#ifndef FDS_TEST_PARAMS_FIXTURE_H
#define FDS_TEST_PARAMS_FIXTURE_H

#include "faults.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

enum { KIND_FLAG, KIND_TEXT, KIND_CHOICE, KIND_COUNT, KIND_REAL };

typedef struct {
    int kind;
    int place;
    unsigned jobs;
    const char *field, *name, *value, *choices, *standard, *automatic, *help, *methods, *why,
        *needs;
    double min, max;
    bool is_above, is_even, advanced, operand, is_common, repeats;
} row;

#define TRAIN FDS__JOB_TRAIN
#define VALUE FDS__JOB_VALUE
#define FIT FDS__JOB_FIT
#define BENCH FDS__JOB_BENCH
#define EXPLAIN FDS__JOB_EXPLAIN
#define PAY FDS__JOB_PAY
#define SHOW FDS__JOB_SHOW
#define AUDIT FDS__JOB_AUDIT
#define LEDGER FDS__JOB_LEDGER
#define SERVE FDS__JOB_SERVE
#define TRUST FDS__JOB_TRUST
#define PRIVACY FDS__JOB_PRIVACY
#define UPDATE FDS__JOB_UPDATE
#define FORGET FDS__JOB_FORGET
#define PARAM(kind_, field_, jobs_, ...) \
    {.kind = KIND_##kind_,               \
     .place = FDS__PLACE_##field_,       \
     .jobs = (jobs_),                    \
     .field = #field_,                   \
     __VA_ARGS__},
#define AGAIN PARAM
static const row rows[] = {
#include "base/params.def"
};

static const struct {
    const char *name;
    unsigned bit;
} jobs[] = {{"train", TRAIN}, {"shapley", VALUE},   {"baseline", VALUE}, {"fit", FIT},
            {"bench", BENCH}, {"explain", EXPLAIN}, {"pay", PAY},        {"show", SHOW},
            {"audit", AUDIT}, {"ledger", LEDGER},   {"serve", SERVE},    {"privacy", PRIVACY},
            {"trust", TRUST}, {"update", UPDATE},   {"forget", FORGET}};

static inline const char *name_of(const row *r) { return r->name ? r->name : r->field; }

static inline const row *find_row(unsigned job, const char *name) {
    for (size_t i = 0; i < COUNT(rows); i++)
        if ((rows[i].jobs & job) && strcmp(name_of(&rows[i]), name) == 0)
            return &rows[i];
    return NULL;
}

static inline fds_params *make(const char *job) {
    fds_params *params = fds_params_create(job);
    assert_non_null(params);
    return params;
}

static inline void set(fds_params *params, const char *name, const char *text) {
    fds_error err = {0};
    expect_ok(fds_params_set(params, name, text, &err), &err);
}

static inline void expect(const fds_params *params, const char *name, const char *text) {
    char got[256];
    fds_error err = {0};
    expect_ok(fds_params_get(params, name, got, sizeof got, &err), &err);
    if (strcmp(got, text) != 0)
        fail_msg("%s is %s, not %s", name, got, text);
}

/* It is refused, the message says part and what was given, and the parameter stays what it was. */
static inline void refuse(fds_params *params, const char *name, const char *text,
                          const char *part) {
    char before[256], quoted[80];
    fds_error err = {0};
    expect_ok(fds_params_get(params, name, before, sizeof before, &err), &err);
    fds_status status = fds_params_set(params, name, text, &err);
    if (status != FDS_ERR_USAGE)
        fail_msg("%s = %s: %s", name, text, fds_status_name(status));
    snprintf(quoted, sizeof quoted, "`%s` ", name);
    if (strncmp(err.text, quoted, strlen(quoted)) != 0)
        fail_msg("\"%s\" does not begin with %s", err.text, quoted);
    expect_in(err.text, part);
    expect(params, name, before);
}

#endif
