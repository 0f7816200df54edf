/* SPDX-License-Identifier: Apache-2.0
 * Whole calls of fds__baseline on small data, with a table in the scratch folder. */
#ifndef FDS_TEST_RUN_FIXTURE_H
#define FDS_TEST_RUN_FIXTURE_H

#include "game_problem.h"

enum { MOST_PLAYERS = 12, MOST_INPUTS = 16, MOST_VALUES = MOST_PLAYERS * MOST_INPUTS };

/* One call: its data and what comes of it. */
typedef struct {
    const game *g;
    fds__utility_params value;
    bool is_default;    /* no parameters of a utility function are given */
    fds_utility *made;  /* the caller's utility function, or NULL */
    const char *folder; /* of the table */
    fds_params params;
    const fds_events *events;
    size_t players, columns;
    double values[MOST_VALUES], errors[MOST_VALUES];
    fds__baseline_report report;
} call;

static inline call call_of(const game *g, const char *kind, const char *method,
                           fds__scorer scorer) {
    call c = {.g = g,
              .value = smaller(kind),
              .folder = "table",
              .params = {.method = method,
                         .scorer = scorer,
                         .permutations = 40,
                         .coalitions = 60,
                         .epsilon = 1,
                         .delta = 0.1,
                         .seed = 3,
                         .threads = 1}};
    c.players = fds_players_count(g->players);
    c.columns = scorer == FDS__SCORER_EACH_SAMPLE ? g->input_count : 1;
    assert_true(c.players * c.columns <= MOST_VALUES);
    return c;
}

static inline fds_status try_call(call *c, fds_error *err) {
    const game *g = c->g;
    uint32_t labels[64];
    fds__dataset_info test = fds__dataset_get_info(g->test);
    fds_utility *value = NULL;
    fds_table *table = NULL;
    fds_status status = FDS_OK;
    memset(c->values, 0, sizeof c->values);
    memset(c->errors, 0, sizeof c->errors);
    for (size_t i = 0; i < g->input_count; i++)
        labels[i] = test.labels[g->inputs[i]];
    if (fds__baseline_needs_table(c->params.method)) {
        status = try_value(g, &c->value, 4, &value, err);
        if (status == FDS_OK)
            status =
                fds_table_open(scratch_path(c->folder), value, FDS_STORE_F32, NULL, &table, err);
    }
    const fds_problem problem = game_problem(g);
    fds__baseline_data data = {.problem = &problem,
                               .labels = labels,
                               .utility = c->is_default ? NULL : &c->value,
                               .table = table,
                               .made = c->made};
    if (status == FDS_OK)
        status = fds__baseline(&c->params, &data, c->values, c->errors, &c->report, c->events, err);
    fds_table_free(table);
    fds_utility_free(value);
    return status;
}

static inline void run_call(call *c) {
    fds_error err = {0};
    fds_status status = try_call(c, &err);
    if (status != FDS_OK)
        fail_msg("%s: %s: %s", c->params.method, fds_status_name(status), err.text);
}

/* Every allocation fails once. */
static inline void expect_allocations_to_fail(const call *whole) {
    for (uint64_t nth = 1;; nth++) {
        call c = *whole;
        fds_error err = {0};
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        fds_status status = try_call(&c, &err);
        if (fds__fault_arm(FDS__FAULT_ALLOC, 0) < nth) {
            expect_ok(status, &err);
            return;
        }
        assert_int_equal(status, FDS_ERR_NOMEM);
    }
}

static inline void forget_table(const call *c) {
    nftw(scratch_path(c->folder), scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void expect_same_bits(const call *a, const call *b) {
    assert_memory_equal(a->values, b->values, sizeof a->values);
    if (memcmp(a->errors, b->errors, sizeof a->errors) != 0)
        fail_msg("%s: standard errors differ", a->params.method);
}

static inline void expect_all_nan(const double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_true(isnan(values[i]));
}

static inline void expect_all_zero(const double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_true(values[i] == 0);
}

/* A given utility function of that kind is used, one of another kind or number is not, and the
 * values are the same. */
static inline void expect_made_to_be_used(const call *of, const char *kind, const char *other) {
    call own = *of;
    uint64_t allocations[3];
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    run_call(&own);
    allocations[0] = fds__fault_arm(FDS__FAULT_ALLOC, 0);
    for (size_t k = 0; k < 2; k++) {
        call given = *of;
        fds__utility_params p = of->value;
        p.kind = k ? other : kind;
        given.made = make_value(of->g, &p, 1);
        fds__fault_arm(FDS__FAULT_ALLOC, 0);
        run_call(&given);
        allocations[1 + k] = fds__fault_arm(FDS__FAULT_ALLOC, 0);
        expect_same_bits(&own, &given);
        fds_utility_free(given.made);
    }
    assert_true(allocations[1] < allocations[0]); /* nothing was made */
    assert_int_equal(allocations[2], allocations[0]);
}

/* Exact Shapley values of the utility function p, one column per input, by enumeration. */
static inline void exact_each(const game *g, const fds__utility_params *p, double *values) {
    fds_utility *value = make_value(g, p, 1);
    fds_table *table = NULL;
    fds_plan *plan = NULL;
    fds_table_view *view = NULL;
    uint32_t labels[64];
    fds_error err = {0};
    for (size_t i = 0; i < g->input_count; i++)
        labels[i] = fds__dataset_get_info(g->test).labels[g->inputs[i]];
    expect_ok(fds_table_open(scratch_path("exact"), value, FDS_STORE_F32, NULL, &table, &err),
              &err);
    expect_ok(fds_plan_exact(FDS_SAMPLER_KERNEL, fds_players_count(g->players), NULL, &plan, &err),
              &err);
    expect_ok(fds_table_fill(table, plan, 1, NULL, &err), &err);
    expect_ok(fds_table_view_create(table, plan, labels, false, 1, &view, &err), &err);
    fds_rows rows = fds_table_view_rows(view);
    expect_ok(fds_exact(plan, &rows, 1, values, NULL, &err), &err);
    fds_table_view_free(view);
    fds_plan_free(plan);
    fds_table_free(table);
    fds_utility_free(value);
}

#endif
