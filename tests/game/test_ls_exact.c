/* SPDX-License-Identifier: Apache-2.0
 * Where least squares must give the exact values: over all coalitions, and for games that the model
 * holds, from few. */
#include "ls_fixture.h"

enum { COLUMNS = 5 };

static fds_plan *complete_plan(size_t n) {
    return sampled_plan(FDS_SAMPLER_LEVERAGE, n, NULL, ((size_t)1 << n) - 2, 1);
}

/* ---- all coalitions ---- */

static void plain_over_all_coalitions_is_exact(void **state) {
    (void)state;
    double worst = 0;
    for (size_t n = 2; n <= 10; n++)
        for (uint64_t game = 0; game < 3; game++) {
            fds_rng rng = fds_rng_make(1, 3000, n, game);
            double *v = random_values(COLUMNS << n, &rng), wanted[10 * COLUMNS], got[10 * COLUMNS];
            array_game g = {n, COLUMNS, v};
            exact_values(&g, FDS_SAMPLER_KERNEL, NULL, 1, wanted);
            fds_plan *plan = complete_plan(n);
            fds_ls_report report =
                solve_array(plan, &g, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, got, NULL);
            expect_near(got, wanted, n * COLUMNS, 1e-10, "plain over all coalitions");
            worst = fmax(worst, greatest_difference(got, wanted, n * COLUMNS));
            assert_true(report.ridge == 0);
            assert_int_equal(report.pairs, ((size_t)1 << n) / 2 - 1);
            assert_int_equal(report.features, n);
            fds_plan_free(plan);
            free(v);
        }
    print_message("# plain over all coalitions, n = 2 .. 10: off by at most %.1e\n", worst);
}

/* There is nothing left to predict, so that nothing is shrunk. */
static void shrink_and_counts_over_all_coalitions_are_exact(void **state) {
    (void)state;
    double worst = 0;
    for (size_t n = 2; n <= 10; n++)
        for (uint64_t game = 0; game < 4; game++) {
            fds_rng rng = fds_rng_make(2, 3000, n, game);
            double wanted[10 * COLUMNS], got[10 * COLUMNS], errors[10 * COLUMNS];
            double *v =
                game % 2 ? random_values(COLUMNS << n, &rng) : rough_values(n, COLUMNS, 0.1, &rng);
            array_game g = {n, COLUMNS, v};
            exact_values(&g, FDS_SAMPLER_KERNEL, NULL, 1, wanted);
            fds_plan *plan = complete_plan(n);
            fds_groups *groups = groups_in_turn(n, game < 2 ? n : 2);
            for (fds_adjust adjust = FDS_ADJUST_SHRINK; adjust <= FDS_ADJUST_COUNTS; adjust++) {
                fds_ls_params params = {.adjust = adjust, .groups = groups};
                fds_ls_report report = solve_array(plan, &g, &params, got, errors);
                expect_near(got, wanted, n * COLUMNS, 1e-10, adjust_names[adjust]);
                worst = fmax(worst, greatest_difference(got, wanted, n * COLUMNS));
                assert_true(report.shrink == 0 && report.shrink_rest == 0 && report.ridge == 0);
                assert_true(most(errors, n * COLUMNS) == 0);
            }
            fds_groups_free(groups);
            fds_plan_free(plan);
            free(v);
        }
    print_message("# shrink and counts over all coalitions: off by at most %.1e\n", worst);
}

/* ---- games of the model ---- */

enum { N = 12, GROUPS = 3, MASKS = 1 << N };

/* v(s) = 0.3 + sum of weights, and the values, which are the weights. */
static double *additive_game(const double *weight) {
    double *v = need(MASKS, sizeof *v);
    for (size_t mask = 0; mask < MASKS; mask++) {
        v[mask] = 0.3;
        for (size_t i = 0; i < N; i++)
            v[mask] += bit(mask, i) ? weight[i] : 0;
    }
    return v;
}

static void expect_additive(const double *weight, fds_adjust adjust, const fds_groups *groups,
                            size_t count) {
    double *v = additive_game(weight), got[N], errors[N];
    array_game game = {N, 1, v};
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_LEVERAGE; sampler++) {
        fds_plan *plan = sampled_plan(sampler, N, NULL, count, 3);
        fds_ls_params params = {.adjust = adjust, .groups = groups};
        solve_array(plan, &game, &params, got, errors);
        expect_near(got, weight, N, 1e-8, adjust_names[adjust]);
        assert_true(most(errors, N) <= 1e-8);
        fds_plan_free(plan);
    }
    free(v);
}

static void additive_games_need_no_more_than_three_coalitions_a_player(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(3, 3000, 0, 0);
    double weight[N];
    for (size_t i = 0; i < N; i++)
        weight[i] = uniform(&rng);
    expect_additive(weight, FDS_ADJUST_NONE, NULL, 3 * N);
}

/* Members who were never told apart share evenly, which must not be felt by those who were. */
static void gfds_tells_members_apart(void **state) {
    (void)state;
    fds_groups *groups = groups_in_turn(N, GROUPS);
    fds_plan *plan = sampled_plan(FDS_SAMPLER_GFDS, N, groups, 20 * N, 3);
    fds_rng rng = fds_rng_make(7, 3000, 0, 0);
    double weight[N], got[N];
    for (size_t i = 0; i < N; i++)
        weight[i] = uniform(&rng);
    double *v = additive_game(weight);
    solve_array(plan, &(array_game){N, 1, v}, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, got,
                NULL);
    expect_near(got, weight, N, 1e-6, "additive game by GFDS");
    fds_plan_free(plan);
    fds_groups_free(groups);
    free(v);
}

/* Shrinking towards the mean of the group takes nothing from those who are there already. */
static void players_alike_within_groups_need_few_coalitions(void **state) {
    (void)state;
    fds_groups *groups = groups_in_turn(N, GROUPS);
    double weight[N];
    for (size_t i = 0; i < N; i++)
        weight[i] = (double)(i % GROUPS) - 0.7;
    for (fds_adjust adjust = FDS_ADJUST_SHRINK; adjust <= FDS_ADJUST_COUNTS; adjust++)
        for (size_t count = 8; count <= 64; count *= 2)
            expect_additive(weight, adjust, groups, count);
    fds_groups_free(groups);
}

/* Any function of the three counts: equal within groups. The fit is penalised, so that it does not
 * hold the game in full; but most of it. */
static void functions_of_counts_are_found_from_few_coalitions(void **state) {
    (void)state;
    double plain = 0, counts = 0;
    fds_groups *groups = groups_in_turn(N, GROUPS);
    for (uint64_t draw = 0; draw < 10; draw++) {
        fds_rng rng = fds_rng_make(4, 3000, draw, 0);
        double table[GROUPS + 1][N + 1], *v = need(MASKS, sizeof *v), wanted[N], got[N];
        for (size_t g = 0; g <= GROUPS; g++)
            for (size_t k = 0; k <= N; k++)
                table[g][k] = uniform(&rng);
        for (size_t mask = 0; mask < MASKS; mask++) {
            size_t count[GROUPS + 1] = {0};
            for (size_t i = 0; i < N; i++)
                count[i % GROUPS] += bit(mask, i), count[GROUPS] += bit(mask, i);
            for (size_t g = 0; g <= GROUPS; g++)
                v[mask] += table[g][count[g]];
        }
        array_game game = {N, 1, v};
        exact_values(&game, FDS_SAMPLER_KERNEL, NULL, 1, wanted);
        fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 10 * N, draw);
        solve_array(plan, &game, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, got, NULL);
        plain += root_mean_square(got, wanted, N) / 10;
        solve_array(plan, &game, &(fds_ls_params){.adjust = FDS_ADJUST_COUNTS, .groups = groups},
                    got, NULL);
        counts += root_mean_square(got, wanted, N) / 10;
        fds_plan_free(plan);
        free(v);
    }
    fds_groups_free(groups);
    print_message("# functions of counts, 120 coalitions: error %.4f plain, %.4f counts\n", plain,
                  counts);
    assert_true(counts < 0.25 * plain);
}

/* ---- whole groups as players ---- */

/* Every coalition of the groups with its Shapley kernel weight, several times over. */
static fds_plan *all_of_groups(const fds_groups *groups, size_t times) {
    size_t count = fds_groups_count(groups), pairs = ((size_t)1 << count) / 2 - 1;
    fds_plan *plan =
        hand_plan(FDS_SAMPLER_GFDS_PLUS, fds_groups_players(groups), groups, 2 * pairs * times);
    for (size_t row = 2; row < plan->rows; row += 2) {
        size_t mask = 1 + (row / 2 - 1) % pairs, size = (size_t)__builtin_popcountll(mask);
        double ways = 1; /* coalitions of that size */
        for (size_t k = 1; k <= size; k++)
            ways = ways * (double)(count - k + 1) / (double)k;
        for (size_t g = 0; g < count; g++)
            if (bit(mask, g))
                fds__plan_add(plan, 0, g, fds__plan_bits(plan, row));
        fds__coalition_complement(fds__plan_bits(plan, row), plan->players,
                                  fds__plan_bits(plan, row + 1));
        plan->weights[row] = plan->weights[row + 1] =
            1 / ((double)size * (double)(count - size) * ways);
    }
    return plan;
}

static void gfds_plus_divides_the_exact_value_of_a_group_evenly(void **state) {
    (void)state;
    double worst = 0;
    for (size_t count = 2; count <= 8; count++)
        for (uint64_t game = 0; game < 3; game++) {
            fds_rng rng = fds_rng_make(5, 3000, count, game);
            uint32_t group_of[10];
            size_t n = game == 0 ? count : 10;
            random_partition(&rng, n, count, group_of);
            fds_groups *groups = make_groups(group_of, n);
            double *v = random_values(COLUMNS << n, &rng), wanted[10 * COLUMNS], got[10 * COLUMNS];
            array_game g = {n, COLUMNS, v};
            exact_values(&g, FDS_SAMPLER_GFDS_PLUS, groups, 1, wanted);
            fds_plan *plan = all_of_groups(groups, 20);
            solve_array(plan, &g, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, got, NULL);
            expect_near(got, wanted, n * COLUMNS, 1e-8, "GFDS+");
            worst = fmax(worst, greatest_difference(got, wanted, n * COLUMNS));
            fds_plan_free(plan);
            fds_groups_free(groups);
            free(v);
        }
    print_message("# GFDS+ over all coalitions of 2 .. 8 groups: off by at most %.1e\n", worst);
}

/* One group, or every player a group: the game played is the game itself. */
static void gfds_of_one_or_of_all_groups_goes_to_the_shapley_value(void **state) {
    (void)state;
    enum { FEW = 6, RUNS = 5 };
    fds_rng rng = fds_rng_make(6, 3000, 0, 0);
    double *v = rough_values(FEW, 1, 0.1, &rng), wanted[FEW], got[FEW];
    array_game game = {FEW, 1, v};
    exact_values(&game, FDS_SAMPLER_KERNEL, NULL, 1, wanted);
    for (size_t count = 1; count <= FEW; count += FEW - 1) {
        fds_groups *groups = groups_in_turn(FEW, count);
        double off[2] = {0};
        for (int many = 0; many < 2; many++)
            for (uint64_t seed = 0; seed < RUNS; seed++) {
                fds_plan *plan =
                    sampled_plan(FDS_SAMPLER_GFDS, FEW, groups, many ? 20000 : 200, seed);
                solve_array(plan, &game, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, got, NULL);
                off[many] += root_mean_square(got, wanted, FEW) / RUNS;
                fds_plan_free(plan);
            }
        print_message("# GFDS of %zu groups: error %.5f with 200, %.5f with 20,000 coalitions\n",
                      count, off[0], off[1]);
        assert_true(off[1] < off[0] / 5);
        assert_true(off[1] < 2e-3);
        fds_groups_free(groups);
    }
    free(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_over_all_coalitions_is_exact),
        cmocka_unit_test(shrink_and_counts_over_all_coalitions_are_exact),
        cmocka_unit_test(additive_games_need_no_more_than_three_coalitions_a_player),
        cmocka_unit_test(gfds_tells_members_apart),
        cmocka_unit_test(players_alike_within_groups_need_few_coalitions),
        cmocka_unit_test(functions_of_counts_are_found_from_few_coalitions),
        cmocka_unit_test(gfds_plus_divides_the_exact_value_of_a_group_evenly),
        cmocka_unit_test(gfds_of_one_or_of_all_groups_goes_to_the_shapley_value),
    };
    return cmocka_run_group_tests_name("game/ls_exact", tests, NULL, NULL);
}
