/* SPDX-License-Identifier: Apache-2.0
 * Least squares of many players: groups as unknowns. */
#include "ls_fixture.h"

/* ---- whole groups as players ---- */

/* A game of the groups, which are i % groups: the mask of groups in s decides. */
typedef struct {
    const fds_plan *plan;
    size_t groups, columns;
    const double *v; /* (2^groups, columns) */
} group_game;

static fds_status read_groups(void *context, unsigned worker, size_t row, size_t first,
                              size_t count, double *out, fds_error *err) {
    (void)worker, (void)err;
    const group_game *g = context;
    size_t mask = 0;
    for (size_t i = 0; i < g->groups; i++)
        mask |= (size_t)fds_coalition_has(fds_plan_coalition(g->plan, row), i) << i;
    memcpy(out, g->v + mask * g->columns + first, count * sizeof *out);
    return FDS_OK;
}

/* The same coalitions as a plan of the groups themselves. */
static fds_plan *plan_of_groups(const fds_plan *plan, size_t groups) {
    fds_plan *small = hand_plan(FDS_SAMPLER_PAIRED, groups, NULL, plan->rows - 2);
    for (size_t row = 2; row < plan->rows; row++) {
        for (size_t i = 0; i < groups; i++)
            if (fds_coalition_has(fds_plan_coalition(plan, row), i))
                fds__coalition_add(fds__plan_bits(small, row), i);
        small->weights[row] = 1;
    }
    return small;
}

/* More members than least squares have room for unknowns, groups of unequal size. */
static void whole_groups_are_solved_as_so_many_unknowns(void **state) {
    (void)state;
    enum { GROUPS = 6, COLUMNS = 3, PLAYERS = 40001 };
    fds_rng rng = fds_rng_make(5, 0, 0, 0);
    double *v = rough_values(GROUPS, COLUMNS, 0.2, &rng);
    fds_groups *groups = groups_in_turn(PLAYERS, GROUPS);
    fds_plan *plan = sampled_plan(FDS_SAMPLER_GFDS_PLUS, PLAYERS, groups, 60, 1),
             *small = plan_of_groups(plan, GROUPS);
    group_game large_game = {plan, GROUPS, COLUMNS, v}, small_game = {small, GROUPS, COLUMNS, v};
    fds_rows large_rows = {COLUMNS, read_groups, &large_game},
             small_rows = {COLUMNS, read_groups, &small_game};
    double *values = need(2 * PLAYERS * COLUMNS, sizeof *values),
           *errors = values + PLAYERS * COLUMNS, small_values[GROUPS * COLUMNS],
           small_errors[GROUPS * COLUMNS];
    for (int adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_SHRINK; adjust++) {
        fds_ls_params params = {.adjust = (fds_adjust)adjust, .groups = groups}, plain = {0};
        fds_ls_report report = solve_rows(plan, &large_rows, &params, 1, values, errors);
        solve_rows(small, &small_rows, &plain, 1, small_values, small_errors);
        assert_int_equal(report.features, GROUPS);
        assert_true(fds_least_squares_memory(plan, &params, COLUMNS, 1) < (uint64_t)100 << 20);
        for (size_t i = 0; i < PLAYERS; i++) {
            double of = PLAYERS / GROUPS + (i % GROUPS < PLAYERS % GROUPS);
            for (size_t c = 0; c < COLUMNS; c++) {
                size_t at = i * COLUMNS + c, group = i % GROUPS * COLUMNS + c;
                assert_true(fabs(of * values[at] - small_values[group]) < 1e-10);
                assert_true(fabs(of * errors[at] - small_errors[group]) < 1e-10);
            }
        }
    }
    free(values);
    free(v);
    fds_plan_free(small);
    fds_plan_free(plan);
    fds_groups_free(groups);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_groups_are_solved_as_so_many_unknowns),
    };
    return cmocka_run_group_tests_name("game/ls_scale", tests, NULL, NULL);
}
