/* SPDX-License-Identifier: Apache-2.0
 * The equations for all strengths of a penalty, from one factorisation, against one inverse each. */
#include "game/ls.h"
#include "ls_fixture.h"

enum { N = 23, PAIRS = 60, COLUMNS = 3 };

typedef struct {
    fds__design design;
    fds__gram gram;
    const double *h, *weights;
    size_t size;
    double *rows, *b; /* (PAIRS, size), (size, COLUMNS) */
} equations;

/* What left-out pairs get from b and total by the inverse, and by the path: both (PAIRS, COLUMNS). */
static void compare(const equations *e, fds__penalty fixed, bool is_ridge, const fds__path *path,
                    double strength) {
    const double total[COLUMNS] = {1, -2, 0.5};
    double by_inverse[PAIRS], by_path[PAIRS], theta[2 * N * COLUMNS], work[PAIRS * 2 * N];
    double turned[2 * N * PAIRS], z[2 * N * COLUMNS];
    fds__penalty penalty = fixed;
    fds__solver solver = {0};
    fds__path_point point;
    fds_error err;
    *(is_ridge ? &penalty.ridge : &penalty.shrink) = strength;
    expect_ok(fds__solver_create(&e->design, e->h, e->size, penalty, &solver, &err), &err);
    expect_ok(fds__path_at(path, strength, &point, &err), &err);
    fds__solver_apply(&solver, e->b, total, COLUMNS, theta);
    fds__solver_leverage(&solver, e->rows, PAIRS, e->size, e->weights, work, by_inverse);
    expect_ok(fds__path_turn(path, e->rows, 1, e->size, PAIRS, true, 1, turned, &err), &err);
    expect_ok(fds__path_turn(path, e->b, COLUMNS, 1, COLUMNS, true, 1, z, &err), &err);
    fds__path_solve(&point, total, COLUMNS, z);
    fds__path_leverage(&point, turned, PAIRS, e->weights, by_path);
    expect_near(by_path, by_inverse, PAIRS, 1e-10, "leverage");
    for (size_t i = 0; i < PAIRS; i++)
        for (size_t c = 0; c < COLUMNS; c++) {
            double inverse = 0, one = 0;
            for (size_t j = 0; j < e->size; j++) {
                inverse += e->rows[i * e->size + j] * theta[j * COLUMNS + c];
                one += turned[j * PAIRS + i] * z[j * COLUMNS + c];
            }
            assert_true(fabs(one - inverse) <= 1e-10);
        }
    /* distances are kept where the solution itself returns to the basis */
    fds__path_return(path, COLUMNS, z);
    for (size_t c = 0; c < COLUMNS; c++) {
        double own = 0, turned_back = 0;
        for (size_t j = 0; j < e->size; j++) {
            own += theta[j * COLUMNS + c] * theta[j * COLUMNS + c];
            turned_back += z[j * COLUMNS + c] * z[j * COLUMNS + c];
        }
        assert_true(fabs(own - turned_back) <= 1e-10 * (1 + own));
    }
    fds__solver_free(&solver);
    fds__path_point_free(&point);
}

static void each_strength(equations *e, fds__penalty fixed, bool is_ridge) {
    static const double strengths[] = {0.01, 1, 40, 1280};
    fds_error err;
    fds__path path = {0};
    expect_ok(fds__path_create(&e->design, e->h, e->size, fixed, is_ridge, &path, &err), &err);
    for (size_t i = 0; i < COUNT(strengths); i++)
        compare(e, fixed, is_ridge, &path, strengths[i]);
    fds__path_free(&path);
}

static void a_path_agrees_with_the_inverse_of_each_strength(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(1, 3400, 0, 0);
    fds_error err;
    for (int variant = 0; variant < 4; variant++) {
        bool with_steps = variant & 1;
        fds_groups *groups = variant & 2 ? groups_in_turn(N, 4) : NULL;
        fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 2 * PAIRS, 5);
        equations e = {0};
        expect_ok(fds__design_create(plan, groups, with_steps, NULL, &e.design, &err), &err);
        expect_ok(fds__gram_create(&e.design, &e.gram, &err), &err);
        e.size = e.design.features;
        assert_true(e.size < 2 * N && e.design.pairs >= PAIRS);
        e.h = with_steps ? e.gram.mild : e.gram.kernel;
        e.weights = with_steps ? e.design.mild : e.design.kernel;
        e.rows = need(PAIRS * e.size, sizeof *e.rows);
        e.b = random_values(e.size * COLUMNS, &rng);
        fds__design_rows(&e.design, 0, PAIRS, e.rows);
        each_strength(&e, (fds__penalty){0}, false);
        each_strength(&e, (fds__penalty){.ridge = 1}, false);
        each_strength(&e, (fds__penalty){0}, true);
        each_strength(&e, (fds__penalty){.shrink = 3}, true);
        free(e.rows);
        free(e.b);
        fds__gram_free(&e.gram);
        fds__design_free(&e.design);
        fds_plan_free(plan);
        fds_groups_free(groups);
    }
}

/* Fewer pairs than players: only deviations that are penalised are determined. */
static void a_strength_that_leaves_the_solution_open_is_refused(void **state) {
    (void)state;
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 20, 5);
    fds__design design;
    fds__gram gram = {0};
    fds__path path = {0};
    fds__path_point point;
    fds_error err;
    expect_ok(fds__design_create(plan, NULL, false, NULL, &design, &err), &err);
    expect_ok(fds__gram_create(&design, &gram, &err), &err);
    expect_ok(fds__path_create(&design, gram.kernel, N, (fds__penalty){0}, false, &path, &err),
              &err);
    expect_error(fds__path_at(&path, 0, &point, &err), FDS_ERR_DIVERGED, &err, "distinguish");
    fds__path_point_free(&point);
    expect_ok(fds__path_at(&path, 1, &point, &err), &err);
    fds__path_point_free(&point);
    fds__path_free(&path);
    fds__gram_free(&gram);
    fds__design_free(&design);
    fds_plan_free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_agrees_with_the_inverse_of_each_strength),
        cmocka_unit_test(a_strength_that_leaves_the_solution_open_is_refused),
    };
    return cmocka_run_group_tests_name("game/ls_path", tests, NULL, NULL);
}
