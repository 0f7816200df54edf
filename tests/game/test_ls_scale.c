/* SPDX-License-Identifier: Apache-2.0
 * Least squares of many players: groups as unknowns, and conjugate gradients. */
#include "game/ls_cg.h"
#include "ls_fixture.h"

#include <time.h>

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

/* Members of a group that is one player have the same value, but that does not make it certain. */
static void whole_groups_keep_their_errors(void **state) {
    (void)state;
    enum { GROUPS = 6, PLAYERS = 24 };
    double plain[2 * PLAYERS], shrunk[2 * PLAYERS];
    fds_groups *groups = groups_in_turn(PLAYERS, GROUPS);
    fds_plan *plan = sampled_plan(FDS_SAMPLER_GFDS_PLUS, PLAYERS, groups, 200, 1);
    hash_game game = {plan, 0.3};
    fds_rows rows = {1, hash_read, &game};
    fds_ls_params params = {.groups = groups};
    solve_rows(plan, &rows, &params, 1, plain, plain + PLAYERS);
    params.adjust = FDS_ADJUST_SHRINK;
    solve_rows(plan, &rows, &params, 1, shrunk, shrunk + PLAYERS);
    assert_true(plain[PLAYERS] > 1e-4);
    assert_true(greatest_difference(plain, shrunk, 2 * PLAYERS) < 1e-12);
    fds_plan_free(plan);
    fds_groups_free(groups);
}

/* More groups than conjugate gradients begin with, for which they have no room. */
static void thousands_of_whole_groups_are_solved_with_matrices(void **state) {
    (void)state;
    enum { GROUPS = FDS__LS_MANY + 6, PLAYERS = 2 * GROUPS };
    fds_groups *groups = groups_in_turn(PLAYERS, GROUPS);
    fds_plan *plan = sampled_plan(FDS_SAMPLER_GFDS_PLUS, PLAYERS, groups, 3 * GROUPS, 1);
    hash_game game = {plan, 0};
    fds_rows rows = {1, hash_read, &game};
    double values[2 * PLAYERS];
    for (int adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_SHRINK; adjust++) {
        fds_ls_params params = {.adjust = (fds_adjust)adjust, .groups = groups};
        fds_ls_report report = solve_rows(plan, &rows, &params, 1, values, values + PLAYERS);
        assert_int_equal(report.features, GROUPS);
        for (size_t i = 0; i < PLAYERS; i++) {
            double own = 1.0 + (double)(i % 5), other = 1.0 + (double)((i + GROUPS) % PLAYERS % 5);
            assert_true(fabs(values[i] - (own + other) / 2 / PLAYERS) < 1e-10);
            assert_true(values[PLAYERS + i] < 1e-10);
        }
    }
    fds_plan_free(plan);
    fds_groups_free(groups);
}

static void too_many_whole_groups_are_refused(void **state) {
    (void)state;
    enum { GROUPS = FDS__LS_MOST_DIRECT + 1 };
    fds_groups *groups = groups_in_turn(GROUPS, GROUPS);
    fds_plan *plan = sampled_plan(FDS_SAMPLER_GFDS_PLUS, GROUPS, groups, 2, 1);
    fds_ls_params params = {.groups = groups};
    fds_error err;
    expect_error(fds_least_squares_check(plan, &params, &err), FDS_ERR_LIMIT, &err, "whole groups");
    fds_plan_free(plan);
    fds_groups_free(groups);
}

/* ---- conjugate gradients ---- */

enum { MANY = 600, MANY_COLUMNS = 20 };

typedef struct {
    double values[MANY * MANY_COLUMNS], errors[MANY * MANY_COLUMNS];
    fds__ls_choice choice;
} solution;

static bool with_prior_of(const fds__design *d, fds_adjust adjust) {
    return (adjust == FDS_ADJUST_SHRINK || adjust == FDS_ADJUST_COUNTS) && d->pairs >= 2 * d->real;
}

static void solve_by_cg(const fds_plan *plan, const fds_rows *rows, const fds_ls_params *params,
                        unsigned threads, solution *out) {
    fds__design d;
    fds_error err;
    expect_ok(fds__design_create(plan, fds__ls_groups(plan, params),
                                 fds__ls_with_fit(params->adjust), NULL, &d, &err),
              &err);
    expect_ok(fds__ls_cg(&d, with_prior_of(&d, params->adjust), rows, params, threads, out->values,
                         out->errors, &out->choice, &err),
              &err);
    fds__design_free(&d);
}

/* The direct method with the strengths that conjugate gradients have chosen. */
static void solve_directly(const fds_plan *plan, const fds_rows *rows, const fds_ls_params *params,
                           const fds__ls_choice *c, solution *out) {
    bool with_fit = fds__ls_with_fit(params->adjust);
    const fds_ls_report strengths = {.ridge = fmax(c->fit.ridge, c->rest.ridge),
                                     .ridge_fit = c->fit.ridge,
                                     .ridge_rest = c->rest.ridge,
                                     .shrink = with_fit ? c->fit.shrink : c->rest.shrink,
                                     .shrink_rest = with_fit ? c->rest.shrink : 0};
    fds__ls_prepared *p;
    fds_error err;
    double *v = need(plan->rows * rows->columns, sizeof *v);
    for (size_t row = 0; row < plan->rows; row++)
        rows->read(rows->context, 0, row, 0, rows->columns, v + row * rows->columns, &err);
    expect_ok(fds__ls_prepared_create(plan, params, &strengths, &p, &err), &err);
    expect_ok(fds__ls_prepared_solve(p, v, rows->columns, out->values, out->errors, &err), &err);
    fds__ls_prepared_free(p);
    free(v);
}

/* Squares of the errors, averaged. */
static double mean_square(const double *x) {
    double sum = 0;
    for (size_t i = 0; i < MANY * MANY_COLUMNS; i++)
        sum += x[i] * x[i] / (MANY * MANY_COLUMNS);
    return sum;
}

static void conjugate_gradients_find_what_the_direct_method_finds(void **state) {
    (void)state;
    static const fds_sampler samplers[] = {FDS_SAMPLER_LEVERAGE, FDS_SAMPLER_PAIRED,
                                           FDS_SAMPLER_KERNEL};
    static solution by_cg, directly;
    fds_groups *groups = groups_in_turn(MANY, 7);
    for (size_t i = 0; i < COUNT(samplers); i++)
        for (int adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++)
            for (size_t per_player = 3; per_player <= 6; per_player += 3) {
                fds_plan *plan =
                    sampled_plan(samplers[i], MANY, NULL, per_player * MANY, 1 + per_player);
                hash_game game = {plan, 0.1};
                fds_rows rows = {MANY_COLUMNS, hash_read, &game};
                fds_ls_params params = {.adjust = (fds_adjust)adjust, .groups = groups};
                solve_by_cg(plan, &rows, &params, 1, &by_cg);
                solve_directly(plan, &rows, &params, &by_cg.choice, &directly);
                /* the prior moves each value by its error, and that is an estimate here */
                bool is_moved = (per_player == 6 || !plan->is_paired) &&
                                (adjust == FDS_ADJUST_SHRINK || adjust == FDS_ADJUST_COUNTS);
                double off = (is_moved ? root_mean_square : greatest_difference)(
                           by_cg.values, directly.values, MANY * MANY_COLUMNS),
                       scale = sqrt(mean_square(directly.errors)),
                       ratio = sqrt(mean_square(by_cg.errors)) / scale;
                print_message("# %s, %s, %zu per player: values differ by %.1e standard errors, "
                              "errors %.3f times\n",
                              sampler_names[samplers[i]], adjust_names[adjust], per_player,
                              off / scale, ratio);
                assert_true(off < (is_moved ? 0.3 : 1e-2) * scale);
                /* with hardly more pairs than unknowns and nothing shrunk, both are guesses */
                bool is_extreme = per_player == 3 && adjust == FDS_ADJUST_CONTROL;
                assert_true(ratio > 0.85 && ratio < (is_extreme ? 2 : 1.2));
                fds_plan_free(plan);
            }
    fds_groups_free(groups);
}

static void conjugate_gradients_give_the_same_bits_on_any_threads(void **state) {
    (void)state;
    enum { N = 200, COLUMNS = 150 }; /* three chunks */
    static double one[2 * N * COLUMNS], many[2 * N * COLUMNS];
    fds_groups *groups = groups_in_turn(N, 3);
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 5 * N, 1);
    hash_game game = {plan, 0.3};
    fds_rows rows = {COLUMNS, hash_read, &game};
    fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS, .groups = groups};
    fds__design d;
    fds_error err;
    expect_ok(fds__design_create(plan, groups, true, NULL, &d, &err), &err);
    for (unsigned threads = 1; threads <= 4; threads++) {
        double *to = threads == 1 ? one : many;
        fds__ls_choice choice;
        expect_ok(
            fds__ls_cg(&d, true, &rows, &params, threads, to, to + N * COLUMNS, &choice, &err),
            &err);
        if (threads > 1)
            assert_memory_equal(one, many, sizeof one);
    }
    fds__design_free(&d);
    fds_plan_free(plan);
    fds_groups_free(groups);
}

/* Then no player deviates from its group. */
static void groups_of_one_player_have_errors(void **state) {
    (void)state;
    enum { N = 120, COLUMNS = 3 };
    fds_groups *groups = groups_in_turn(N, N);
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 6 * N, 1);
    hash_game game = {plan, 0.1};
    fds_rows rows = {COLUMNS, hash_read, &game};
    static solution by_cg, directly;
    for (int adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++) {
        fds_ls_params params = {.adjust = (fds_adjust)adjust, .groups = groups};
        solve_by_cg(plan, &rows, &params, 1, &by_cg);
        solve_directly(plan, &rows, &params, &by_cg.choice, &directly);
        for (size_t i = 0; i < (size_t)N * COLUMNS; i++) {
            assert_true(fabs(by_cg.values[i] - directly.values[i]) < 1e-2 * directly.errors[i]);
            assert_true(fabs(by_cg.errors[i] / directly.errors[i] - 1) < 0.1);
        }
    }
    fds_plan_free(plan);
    fds_groups_free(groups);
}

static fds_status read_heavy(void *context, unsigned worker, size_t row, size_t first, size_t count,
                             double *out, fds_error *err) {
    const hash_game *g = context;
    TRY(hash_read(context, worker, row, first, count, out, err));
    for (size_t c = 0; c < count; c++)
        out[c] += fds_coalition_has(fds_plan_coalition(g->plan, row), 7) ? 0.2 : 0;
    return FDS_OK;
}

/* It is drawn to the others, and its error says so: many times theirs. */
static void a_value_far_above_the_others_is_in_its_interval(void **state) {
    (void)state;
    static solution by_cg, directly;
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, MANY, NULL, 2 * MANY, 1);
    hash_game game = {plan, 0.1};
    fds_rows rows = {MANY_COLUMNS, read_heavy, &game};
    for (int adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_COUNTS; adjust++) {
        fds_ls_params params = {.adjust = (fds_adjust)adjust};
        solve_by_cg(plan, &rows, &params, 1, &by_cg);
        solve_directly(plan, &rows, &params, &by_cg.choice, &directly);
        for (size_t c = 0; c < MANY_COLUMNS; c++) {
            double truth = 0.2 + 3.0 * (double)(1 + c % 3) / MANY;
            size_t at = 7 * MANY_COLUMNS + c;
            if (c == 0)
                print_message("# %s: %.3f +- %.3f, directly %.3f +- %.3f, other errors %.3f\n",
                              adjust_names[adjust], by_cg.values[at], by_cg.errors[at],
                              directly.values[at], directly.errors[at], by_cg.errors[c]);
            assert_true(fabs(by_cg.values[at] - truth) < 1.96 * by_cg.errors[at]);
            assert_true(fabs(directly.values[at] - truth) < 1.96 * directly.errors[at]);
            assert_true(by_cg.errors[at] > 3 * by_cg.errors[c]);
            assert_true(fabs(by_cg.errors[at] / directly.errors[at] - 1) < 0.25);
        }
    }
    fds_plan_free(plan);
}

static void thousands_of_groups_are_solved_with_matrices(void **state) {
    (void)state;
    enum { N = FDS__LS_MOST_COARSE + 1 };
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 2, 1);
    fds_groups *many = groups_in_turn(N, N), *few = groups_in_turn(N, 10);
    assert_true(fds__ls_is_many(plan, few, N, 1));
    assert_false(fds__ls_is_many(plan, many, N, 1));
    fds_groups_free(few);
    fds_groups_free(many);
    fds_plan_free(plan);
}

static void memory_counts_the_surrogate_and_the_groups(void **state) {
    (void)state;
    enum { N = 2000, PAIRS = N, MANY_GROUPS = 1000 };
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 2 * PAIRS, 1);
    fds_groups *groups = groups_in_turn(N, MANY_GROUPS);
    hash_game game = {plan, 0};
    fds_rows rows = {1, hash_read, &game};
    fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS};
    uint64_t plain = fds_least_squares_memory(plan, &params, 1, 1), g = MANY_GROUPS;
    params.control = &rows;
    assert_true(fds_least_squares_memory(plan, &params, 1, 1) >
                plain + 2 * sizeof(double) * FDS__CG_SAMPLE * PAIRS);
    params.control = NULL;
    params.groups =
        groups; /* rows and influence; two matrices for each stage, and one between them */
    assert_true(fds_least_squares_memory(plan, &params, 1, 1) >
                sizeof(double) * (2 * PAIRS * g + 5 * g * g));
    fds_groups_free(groups);
    fds_plan_free(plan);
}

static bool stop_in(void *user, const fds_progress *progress) {
    return strcmp(progress->stage, user) == 0;
}

static void every_stage_of_conjugate_gradients_can_be_cancelled(void **state) {
    (void)state;
    enum { N = 150 };
    static char stages[][24] = {"normal equations", "groups",   "sample",
                                "shrinkage",        "leverage", "least squares"};
    double values[2 * N];
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 4 * N, 1);
    hash_game game = {plan, 0.3};
    fds_rows rows = {1, hash_read, &game};
    fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS};
    for (size_t i = 0; i < COUNT(stages); i++) {
        fds_events events = {.progress = stop_in, .user = stages[i]};
        fds__design d;
        fds__ls_choice choice;
        fds_error err;
        expect_ok(fds__design_create(plan, NULL, true, &events, &d, &err), &err);
        expect_error(fds__ls_cg(&d, true, &rows, &params, 1, values, values + N, &choice, &err),
                     FDS_ERR_CANCELLED, &err, stages[i]);
        fds__design_free(&d);
    }
    fds_plan_free(plan);
}

static bool stop_always(void *user, const fds_progress *progress) {
    (void)user, (void)progress;
    return true;
}

/* A product alone may take seconds; the pool listens every tenth of one. */
static fds_status multiply_long(void *context, size_t job, unsigned worker, fds_error *err) {
    enum { ROWS = 2048 * 8, COLUMNS = 32 * 64 };
    static double x[COLUMNS * FDS__CG_CHUNK], out[ROWS * FDS__CG_CHUNK], table[FDS__BITS_TABLE];
    static uint32_t words[ROWS * COLUMNS / 32];
    const fds__bits bits = {ROWS, COLUMNS, words};
    fds_status status = FDS_OK;
    (void)job, (void)worker;
    nanosleep(&(struct timespec){.tv_nsec = 150000000}, NULL);
    status = fds__bits_multiply(&bits, &fds__bits_generic, x, FDS__CG_CHUNK, table, out, err);
    *(bool *)context = status == FDS_ERR_CANCELLED;
    return status;
}

static void a_product_of_bits_can_be_cancelled(void **state) {
    (void)state;
    bool is_heard = false;
    const fds_events events = {.progress = stop_always};
    fds_error err;
    assert_int_equal(fds__pool_run(1, 1, multiply_long, &is_heard, "bits", "jobs", &events, &err),
                     FDS_ERR_CANCELLED);
    assert_true(is_heard);
}

/* More unknowns than matrices are made for; two coalitions per player cannot say much, but the values
 * of a game that adds up are found. */
static void more_players_than_matrices_hold_are_solved(void **state) {
    (void)state;
    enum { N = 17000 };
    if (IS_SLOW_BUILD)
        SKIP_CASE("it takes a minute");
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 400, 1);
    hash_game game = {plan, 0};
    fds_rows rows = {1, hash_read, &game};
    double *values = need(2 * N, sizeof *values), sum = 0, wanted = 0;
    solve_rows(plan, &rows, &(fds_ls_params){.adjust = FDS_ADJUST_COUNTS}, 1, values, values + N);
    for (size_t i = 0; i < N; i++) {
        assert_true(isfinite(values[i]) && isfinite(values[N + i]));
        sum += values[i];
        wanted += (1.0 + (double)(i % 5)) / N;
    }
    assert_true(fabs(sum - wanted) < 1e-9);
    free(values);
    fds_plan_free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_groups_are_solved_as_so_many_unknowns),
        cmocka_unit_test(whole_groups_keep_their_errors),
        cmocka_unit_test(thousands_of_whole_groups_are_solved_with_matrices),
        cmocka_unit_test(too_many_whole_groups_are_refused),
        cmocka_unit_test(conjugate_gradients_find_what_the_direct_method_finds),
        cmocka_unit_test(conjugate_gradients_give_the_same_bits_on_any_threads),
        cmocka_unit_test(groups_of_one_player_have_errors),
        cmocka_unit_test(a_value_far_above_the_others_is_in_its_interval),
        cmocka_unit_test(thousands_of_groups_are_solved_with_matrices),
        cmocka_unit_test(memory_counts_the_surrogate_and_the_groups),
        cmocka_unit_test(every_stage_of_conjugate_gradients_can_be_cancelled),
        cmocka_unit_test(a_product_of_bits_can_be_cancelled),
        cmocka_unit_test(more_players_than_matrices_hold_are_solved),
    };
    return cmocka_run_group_tests_name("game/ls_scale", tests, NULL, NULL);
}
