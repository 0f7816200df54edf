/* SPDX-License-Identifier: Apache-2.0
 * Least squares prepared once: with the strengths that fds_least_squares chose they give its values
 * and standard errors, for any sampler and adjustment, one game at a time or many. */
#include "ls_fixture.h"

enum { N = 20, GROUPS = 4, COLUMNS = 5 };

/* All rows of a game: (rows, COLUMNS). */
static double *read_all(const fds_plan *plan, const fds_rows *rows) {
    double *v = need(fds_plan_rows(plan) * rows->columns, sizeof *v);
    for (size_t row = 0; row < fds_plan_rows(plan); row++)
        rows->read(rows->context, 0, row, 0, rows->columns, v + row * rows->columns, NULL);
    return v;
}

static fds__ls_prepared *prepare(const fds_plan *plan, const fds_ls_params *params,
                                 const fds_ls_report *strengths) {
    fds__ls_prepared *prepared = NULL;
    fds_error err;
    expect_ok(fds__ls_prepared_create(plan, params, strengths, &prepared, &err), &err);
    return prepared;
}

/* Solves all columns together, and one by one, and compares with what is wanted. */
static void expect_solved(const fds__ls_prepared *prepared, const fds_plan *plan, const double *v,
                          const double *values, const double *errors, const char *what) {
    size_t n = fds_plan_players(plan), rows = fds_plan_rows(plan);
    double *got = need(2 * n * COLUMNS, sizeof *got), *one = need(rows + 2 * n, sizeof *one);
    fds_error err;
    expect_ok(fds__ls_prepared_solve(prepared, v, COLUMNS, got, got + n * COLUMNS, &err), &err);
    expect_near(got, values, n * COLUMNS, 1e-12, what);
    expect_near(got + n * COLUMNS, errors, n * COLUMNS, 1e-12, what);
    for (size_t c = 0; c < COLUMNS; c++) {
        double *value = one + rows, *error = value + n;
        for (size_t row = 0; row < rows; row++)
            one[row] = v[row * COLUMNS + c];
        expect_ok(fds__ls_prepared_solve(prepared, one, 1, value, error, &err), &err);
        for (size_t i = 0; i < n; i++) {
            expect_near(&value[i], &values[i * COLUMNS + c], 1, 1e-9, what);
            expect_near(&error[i], &errors[i * COLUMNS + c], 1, 1e-9, what);
        }
    }
    free(got);
    free(one);
}

static void they_are_those_of_the_least_squares(void **state) {
    (void)state;
    /* few coalitions need a ridge, more than a block of pairs do not */
    static const size_t counts[] = {40, 300};
    fds_groups *groups = groups_in_turn(N, GROUPS);
    size_t with_ridge = 0;
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++)
        for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_COUNTS; adjust++)
            for (size_t k = 0; k < COUNT(counts); k++) {
                bool is_grouped = sampler >= FDS_SAMPLER_GFDS;
                if (is_grouped && adjust == FDS_ADJUST_COUNTS)
                    continue;
                fds_plan *plan = sampled_plan(sampler, N, is_grouped ? groups : NULL, counts[k], 1);
                hash_game game = {plan, 0.5};
                fds_rows rows = {COLUMNS, hash_read, &game};
                fds_ls_params params = {.adjust = adjust, .groups = groups};
                double values[N * COLUMNS], errors[N * COLUMNS], *v = read_all(plan, &rows);
                fds_ls_report report = solve_rows(plan, &rows, &params, 1, values, errors);
                fds__ls_prepared *prepared = prepare(plan, &params, &report);
                char what[100];
                snprintf(what, sizeof what, "%s, %s, %zu", sampler_names[sampler],
                         adjust_names[adjust], counts[k]);
                expect_solved(prepared, plan, v, values, errors, what);
                with_ridge += report.ridge > 0;
                assert_true(report.ridge == fmax(report.ridge_fit, report.ridge_rest));
                fds__ls_prepared_free(prepared);
                fds_plan_free(plan);
                free(v);
            }
    assert_true(with_ridge >= 4);
    fds_groups_free(groups);
}

static void mistakes_are_told(void **state) {
    (void)state;
    fds_plan *plan = sampled_plan(FDS_SAMPLER_PAIRED, N, NULL, 200, 1);
    fds_rows rows = {1, NULL, NULL};
    double value = 0;
    fds_ls_params params = {.adjust = FDS_ADJUST_SHRINK};
    fds_ls_params with_control = {
        .adjust = FDS_ADJUST_SHRINK, .control = &rows, .control_values = &value};
    const fds_ls_report wrong[] = {
        {.shrink = -1},   {.shrink = NAN},   {.shrink_rest = INFINITY},
        {.ridge = 1},     {.ridge_rest = 1}, {.ridge = -1, .ridge_fit = -1},
        {.control = 0.5},
    };
    fds__ls_prepared *prepared = NULL;
    fds_error err;
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(fds__ls_prepared_create(plan, &params, &wrong[i], &prepared, &err),
                         FDS_ERR_USAGE);
    assert_int_equal(
        fds__ls_prepared_create(plan, &with_control, &(fds_ls_report){0}, &prepared, &err),
        FDS_ERR_USAGE);
    prepared = prepare(plan, &params, &(fds_ls_report){.shrink = 1});
    assert_int_equal(fds__ls_prepared_solve(prepared, &value, 0, &value, NULL, &err),
                     FDS_ERR_USAGE);
    fds__ls_prepared_free(prepared);
    fds_plan_free(plan);
}

static fds_plan *shared_plan;

static fds_status make_and_solve(fds_error *err) {
    static double v[202], values[N], errors[N];
    fds__ls_prepared *prepared = NULL;
    fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS};
    fds_status status = fds__ls_prepared_create(shared_plan, &params, &(fds_ls_report){.shrink = 1},
                                                &prepared, err);
    if (status == FDS_OK)
        status = fds__ls_prepared_solve(prepared, v, 1, values, errors, err);
    fds__ls_prepared_free(prepared);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    shared_plan = sampled_plan(FDS_SAMPLER_PAIRED, N, NULL, 200, 1);
    each_allocation_fails("prepared least squares", make_and_solve);
    fds_plan_free(shared_plan);
}

static void too_many_players_are_refused_before_any_work(void **state) {
    (void)state;
    enum { MANY = 20000 };
    fds_error err;
    const fds_ls_params params = {.adjust = FDS_ADJUST_NONE};
    fds_plan *plan = sampled_plan(FDS_SAMPLER_PAIRED, MANY, NULL, 4, 1);
    expect_ok(fds_least_squares_check(plan, &params, &err), &err);
    assert_int_equal(fds__ls_prepared_check(plan, &params, &err), FDS_ERR_LIMIT);
    assert_non_null(strstr(err.text, "20000 unknowns"));
    assert_non_null(strstr(err.text, "`explainer` mlp"));
    fds_plan_free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_those_of_the_least_squares),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(too_many_players_are_refused_before_any_work),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
