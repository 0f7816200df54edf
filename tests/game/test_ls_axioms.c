/* SPDX-License-Identifier: Apache-2.0
 * What holds of every estimate, however rough: the values sum to what all have over none, names of
 * players do not matter, games add up; and games and plans at the edge of what is possible. */
#include "ls_fixture.h"

enum { N = 9, COLUMNS = 3, VALUES = N * COLUMNS };

/* ---- efficiency ---- */

/* Relative to the greatest value, as sums of such have no more digits. */
static void expect_efficient(const double *v, size_t n, size_t columns, const double *values,
                             const char *what) {
    size_t full = ((size_t)1 << n) - 1;
    for (size_t c = 0; c < columns; c++) {
        double sum = 0, greatest = 1;
        for (size_t i = 0; i < n; i++) {
            sum += values[i * columns + c];
            greatest = fmax(greatest, fabs(values[i * columns + c]));
        }
        if (!(fabs(sum - (v[full * columns + c] - v[c])) <= 1e-12 * greatest))
            fail_msg("%s: the values sum to %.17g instead of %.17g", what, sum,
                     v[full * columns + c] - v[c]);
    }
}

static void values_sum_to_what_all_have_over_none(void **state) {
    (void)state;
    for (size_t n = 2; n <= 10; n += 2)
        for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++)
            for (size_t count = 2; count < (size_t)1 << n && count <= 512; count *= 4) {
                fds_rng rng = fds_rng_make(1, 3400, n, count);
                double *v = random_values(COLUMNS << n, &rng), values[10 * COLUMNS];
                array_game game = {n, COLUMNS, v};
                fds_groups *groups = groups_in_turn(n, 2);
                bool by_group = sampler >= FDS_SAMPLER_GFDS;
                fds_plan *plan = sampled_plan(sampler, n, by_group ? groups : NULL, count, 1);
                for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++) {
                    if (by_group && adjust >= FDS_ADJUST_COUNTS)
                        continue;
                    fds_ls_params params = {.adjust = adjust, .groups = groups};
                    solve_array(plan, &game, &params, values, NULL);
                    expect_efficient(v, n, COLUMNS, values, adjust_names[adjust]);
                }
                fds_plan_free(plan);
                fds_groups_free(groups);
                free(v);
            }
}

/* ---- symmetry ---- */

static size_t permuted(size_t mask, const uint32_t *to, size_t n) {
    size_t out = 0;
    for (size_t i = 0; i < n; i++)
        out |= bit(mask, i) << to[i];
    return out;
}

/* The plan, the game and the groups with player i renamed to[i]. */
static void check_symmetry(fds_sampler sampler, fds_adjust adjust, uint64_t seed) {
    fds_rng rng = fds_rng_make(2, 3400, sampler, seed);
    uint32_t to[N], group_of[N], group_to[N];
    double *v = rough_values(N, COLUMNS, 0.2, &rng), *w = need(COLUMNS << N, sizeof *w);
    for (uint32_t i = 0; i < N; i++)
        to[i] = i;
    fds_rng_shuffle(&rng, to, N);
    random_partition(&rng, N, 3, group_of);
    for (size_t i = 0; i < N; i++)
        group_to[to[i]] = group_of[i];
    for (size_t mask = 0; mask < (size_t)1 << N; mask++)
        memcpy(w + permuted(mask, to, N) * COLUMNS, v + mask * COLUMNS, COLUMNS * sizeof *w);
    fds_groups *groups = make_groups(group_of, N), *renamed = make_groups(group_to, N);
    fds_plan *plan = sampled_plan(sampler, N, NULL, 60, seed), *other;
    other = hand_plan(sampler, N, NULL, 60);
    for (size_t row = 2; row < 62; row++) {
        *fds__plan_bits(other, row) = permuted(*fds__plan_bits(plan, row), to, N);
        other->weights[row] = plan->weights[row];
    }
    double a[VALUES], b[VALUES], a_errors[VALUES], b_errors[VALUES];
    solve_array(plan, &(array_game){N, COLUMNS, v},
                &(fds_ls_params){.adjust = adjust, .groups = groups}, a, a_errors);
    solve_array(other, &(array_game){N, COLUMNS, w},
                &(fds_ls_params){.adjust = adjust, .groups = renamed}, b, b_errors);
    for (size_t i = 0; i < N; i++) {
        expect_near(b + to[i] * COLUMNS, a + i * COLUMNS, COLUMNS, 1e-12, "renamed players");
        expect_near(b_errors + to[i] * COLUMNS, a_errors + i * COLUMNS, COLUMNS, 1e-12, "errors");
    }
    fds_plan_free(plan);
    fds_plan_free(other);
    fds_groups_free(groups);
    fds_groups_free(renamed);
    free(v);
    free(w);
}

static void renamed_players_keep_their_values(void **state) {
    (void)state;
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_LEVERAGE; sampler++)
        for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++)
            for (uint64_t seed = 0; seed < 5; seed++)
                check_symmetry(sampler, adjust, seed);
}

/* ---- additivity ---- */

static void the_value_of_a_sum_is_the_sum_of_the_values(void **state) {
    (void)state;
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++) {
        fds_rng rng = fds_rng_make(3, 3400, sampler, 0);
        size_t size = COLUMNS << N;
        double *v = random_values(size, &rng), *w = random_values(size, &rng);
        double *both = need(size, sizeof *both), of_v[VALUES], of_w[VALUES], of_both[VALUES];
        for (size_t i = 0; i < size; i++)
            both[i] = 3 * v[i] - 0.5 * w[i];
        fds_groups *groups = groups_for(sampler, N);
        fds_plan *plan = sampled_plan(sampler, N, groups, 60, 1);
        fds_ls_params params = {.adjust = FDS_ADJUST_NONE};
        solve_array(plan, &(array_game){N, COLUMNS, v}, &params, of_v, NULL);
        solve_array(plan, &(array_game){N, COLUMNS, w}, &params, of_w, NULL);
        solve_array(plan, &(array_game){N, COLUMNS, both}, &params, of_both, NULL);
        for (size_t i = 0; i < VALUES; i++)
            assert_true(fabs(3 * of_v[i] - 0.5 * of_w[i] - of_both[i]) <= 1e-12);
        fds_plan_free(plan);
        fds_groups_free(groups);
        free(v);
        free(w);
        free(both);
    }
}

/* Columns know nothing of each other where no strength is chosen. */
static void a_column_alone_is_as_among_others(void **state) {
    (void)state;
    enum { MANY = 601 };
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 100, 1);
    hash_game game = {plan, 0.5};
    fds_rows rows = {MANY, hash_read, &game};
    double *all = need(2 * N * MANY, sizeof *all), *errors = all + N * MANY, one[N], one_error[N];
    solve_rows(plan, &rows, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, 1, all, errors);
    double off = 0;
    rows.columns = 1; /* the first column; what it is does not depend on how many there are */
    solve_rows(plan, &rows, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, 1, one, one_error);
    for (size_t i = 0; i < N; i++) {
        off = fmax(off, fabs(all[i * MANY] - one[i]));
        off = fmax(off, fabs(errors[i * MANY] - one_error[i]));
    }
    print_message("# a column alone and among 600 others: off by %.1e\n", off);
    assert_true(off <= 1e-14);
    fds_plan_free(plan);
    free(all);
}

/* ---- few coalitions ---- */

static void check_few(fds_sampler sampler, size_t n, size_t count) {
    fds_groups *own = groups_for(sampler, n);
    fds_plan *plan = sampled_plan(sampler, n, own, count, 1);
    hash_game game = {plan, 0.5};
    fds_rows rows = {COLUMNS, hash_read, &game};
    double *values = need(2 * n * COLUMNS, sizeof *values), *errors = values + n * COLUMNS;
    double none[COLUMNS], all[COLUMNS];
    hash_read(&game, 0, 0, 0, COLUMNS, none, NULL);
    hash_read(&game, 0, 1, 0, COLUMNS, all, NULL);
    for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++)
        for (size_t grouping = 0; grouping < 3; grouping++) {
            if (own && adjust >= FDS_ADJUST_COUNTS)
                continue;
            fds_groups *groups = groups_in_turn(n, grouping == 0 ? 1 : grouping == 1 ? n : 2);
            fds_ls_params params = {.adjust = adjust, .groups = groups};
            fds_ls_report report = solve_rows(plan, &rows, &params, 1, values, errors);
            for (size_t i = 0; i < 2 * n * COLUMNS; i++)
                assert_true(isfinite(values[i]));
            for (size_t c = 0; c < COLUMNS; c++) {
                double sum = none[c] - all[c];
                for (size_t i = 0; i < n; i++)
                    sum += values[i * COLUMNS + c];
                assert_true(fabs(sum) <= 1e-11);
            }
            /* for GFDS+ they are few or many by the number of groups */
            assert_true(adjust != FDS_ADJUST_NONE || own || report.ridge > 0);
            assert_true(isfinite(report.explained));
            fds_groups_free(groups);
        }
    free(values);
    fds_plan_free(plan);
    fds_groups_free(own);
}

static void few_coalitions_give_finite_values_with_the_right_sum(void **state) {
    (void)state;
    static const size_t sizes[] = {4, 5, 8, 30, 70};
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++)
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (size_t count = 2; count < 3 * sizes[s]; count += count < 8 ? 2 : 46)
                check_few(sampler, sizes[s], count);
}

/* A single coalition, or an odd number of them, is possible without pairs. */
static void one_coalition_is_enough_for_values(void **state) {
    (void)state;
    check_few(FDS_SAMPLER_KERNEL, 2, 1);
    check_few(FDS_SAMPLER_KERNEL, 7, 1);
    check_few(FDS_SAMPLER_KERNEL, 7, 5);
}

/* The least number of players, with groups of every kind. */
static void two_and_three_players(void **state) {
    (void)state;
    for (size_t n = 2; n <= 3; n++)
        for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_LEVERAGE; sampler++)
            for (size_t count = 1; count <= n; count++)
                for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++) {
                    fds_rng rng = fds_rng_make(4, 3400, n, 0);
                    double *v = random_values((size_t)1 << n, &rng), values[3], errors[3], exact[3];
                    array_game game = {n, 1, v};
                    fds_groups *groups = groups_in_turn(n, count);
                    fds_plan *plan = sampled_plan(sampler, n, NULL, n == 2 ? 2 : 6, 1);
                    exact_values(&game, FDS_SAMPLER_KERNEL, NULL, 1, exact);
                    solve_array(plan, &game, &(fds_ls_params){.adjust = adjust, .groups = groups},
                                values, errors);
                    expect_efficient(v, n, 1, values, adjust_names[adjust]);
                    for (size_t i = 0; i < n; i++)
                        assert_true(isfinite(values[i]) && isfinite(errors[i]));
                    if (sampler == FDS_SAMPLER_LEVERAGE && adjust == FDS_ADJUST_NONE)
                        expect_near(values, exact, n, 1e-12, "all coalitions");
                    fds_plan_free(plan);
                    fds_groups_free(groups);
                    free(v);
                }
}

/* ---- numbers ---- */

static void a_constant_game_is_worth_nothing(void **state) {
    (void)state;
    double *v = need(COLUMNS << N, sizeof *v), values[VALUES], errors[VALUES];
    for (size_t i = 0; i < COLUMNS << N; i++)
        v[i] = 0.1;
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++) {
        fds_groups *groups = groups_for(sampler, N);
        fds_plan *plan = sampled_plan(sampler, N, groups, 40, 1);
        for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++) {
            if (groups && adjust >= FDS_ADJUST_COUNTS)
                continue;
            solve_array(plan, &(array_game){N, COLUMNS, v}, &(fds_ls_params){.adjust = adjust},
                        values, errors);
            assert_true(most(values, VALUES) == 0 && most(errors, VALUES) == 0);
        }
        fds_plan_free(plan);
        fds_groups_free(groups);
    }
    free(v);
}

/* Values, errors and choices scale with the game. */
static void huge_and_tiny_games_are_the_same_game(void **state) {
    (void)state;
    static const double scales[] = {1e-150, 1e150};
    fds_rng rng = fds_rng_make(6, 3400, 0, 0);
    double *v = rough_values(N, COLUMNS, 0.1, &rng), *scaled = need(COLUMNS << N, sizeof *v);
    fds_groups *groups = groups_in_turn(N, 3);
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_LEVERAGE; sampler++)
        for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++)
            for (size_t count = 10; count <= 100; count *= 10) {
                fds_plan *plan = sampled_plan(sampler, N, NULL, count, 1);
                fds_ls_params params = {.adjust = adjust, .groups = groups};
                double one[VALUES], one_errors[VALUES], got[VALUES], errors[VALUES];
                array_game game = {N, COLUMNS, v};
                solve_array(plan, &game, &params, one, one_errors);
                game.v = scaled;
                for (size_t s = 0; s < COUNT(scales); s++) {
                    for (size_t i = 0; i < COLUMNS << N; i++)
                        scaled[i] = v[i] * scales[s];
                    solve_array(plan, &game, &params, got, errors);
                    for (size_t i = 0; i < VALUES; i++) {
                        got[i] /= scales[s];
                        errors[i] /= scales[s];
                    }
                    expect_near(got, one, VALUES, 1e-12, "scaled game");
                    expect_near(errors, one_errors, VALUES, 1e-12, "errors of the scaled game");
                }
                fds_plan_free(plan);
            }
    fds_groups_free(groups);
    free(v);
    free(scaled);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_sum_to_what_all_have_over_none),
        cmocka_unit_test(renamed_players_keep_their_values),
        cmocka_unit_test(the_value_of_a_sum_is_the_sum_of_the_values),
        cmocka_unit_test(a_column_alone_is_as_among_others),
        cmocka_unit_test(few_coalitions_give_finite_values_with_the_right_sum),
        cmocka_unit_test(one_coalition_is_enough_for_values),
        cmocka_unit_test(two_and_three_players),
        cmocka_unit_test(a_constant_game_is_worth_nothing),
        cmocka_unit_test(huge_and_tiny_games_are_the_same_game),
    };
    return cmocka_run_group_tests_name("game/ls_axioms", tests, NULL, NULL);
}
