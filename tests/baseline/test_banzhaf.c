/* SPDX-License-Identifier: Apache-2.0
 * Banzhaf values against their definition, enumerated. */
#include "asked_game.h"

enum { MOST = 10 };

static fds_params params_of(size_t coalitions, uint64_t seed) {
    return (fds_params){
        .method = "banzhaf", .coalitions = coalitions, .epsilon = 1, .delta = 0.1, .seed = seed};
}

static fds_status try_banzhaf(asked_game *a, const fds_params *params, double *values,
                              double *errors, fds_error *err) {
    return try_asking(&baseline_banzhaf, a, params, values, errors, NULL, err);
}

static void banzhaf(const array_game *game, const fds_params *params, double *values,
                    double *errors) {
    asked_game a = {.game = *game};
    fds_error err;
    expect_ok(try_banzhaf(&a, params, values, errors, &err), &err);
}

/* The mean over all coalitions without i of what i adds. */
static void enumerate(const array_game *g, double *values) {
    size_t masks = (size_t)1 << g->players;
    for (size_t i = 0; i < g->players; i++)
        for (size_t c = 0; c < g->columns; c++) {
            double sum = 0;
            for (size_t mask = 0; mask < masks; mask++)
                if (!(mask >> i & 1))
                    sum += g->v[(mask | (size_t)1 << i) * g->columns + c] -
                           g->v[mask * g->columns + c];
            values[i * g->columns + c] = sum / (double)(masks / 2);
        }
}

static void errors_halve_with_four_times_the_coalitions(void **state) {
    (void)state;
    double *v = accuracies(MOST, 1, 1), truth[MOST];
    array_game game = {MOST, 1, v};
    enumerate(&game, truth);
    expect_errors_to_halve(&baseline_banzhaf, &game, truth, params_of(0, 0), 200, 40);
    free(v);
}

static void standard_errors_cover_the_truth(void **state) {
    (void)state;
    enum { SEEDS = 300, N = 6, COLUMNS = 2, SIZE = N * COLUMNS };
    double *v = accuracies(N, COLUMNS, 2), truth[SIZE], values[SIZE], errors[SIZE];
    array_game game = {N, COLUMNS, v};
    size_t covered = 0;
    enumerate(&game, truth);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        fds_params params = params_of(150, seed);
        banzhaf(&game, &params, values, errors);
        for (size_t i = 0; i < SIZE; i++)
            covered += fabs(values[i] - truth[i]) <= 2 * errors[i];
    }
    double share = (double)covered / (SEEDS * SIZE);
    print_message("# %.3f within two standard errors\n", share);
    assert_true(share > 0.93 && share < 0.975);
    free(v);
}

/* The same coalitions, in two passes. */
static void values_are_differences_of_means(void **state) {
    (void)state;
    enum { N = 5, DRAWS = 600 };
    double *v = accuracies(N, 1, 3), values[N], errors[N];
    uint64_t log[DRAWS];
    asked_game a = {.game = {N, 1, v}, .log = log, .log_size = DRAWS};
    fds_params params = params_of(DRAWS, 1);
    fds_error err;
    expect_ok(try_banzhaf(&a, &params, values, errors, &err), &err);
    assert_int_equal(a.asked, DRAWS);
    assert_int_equal(a.calls, 2);
    for (size_t i = 0; i < N; i++) {
        double sum[2] = {0}, count[2] = {0}, squares[2] = {0};
        for (size_t k = 0; k < DRAWS; k++) {
            sum[log[k] >> i & 1] += v[log[k]];
            count[log[k] >> i & 1]++;
        }
        for (size_t k = 0; k < DRAWS; k++) {
            size_t side = log[k] >> i & 1;
            squares[side] += pow(v[log[k]] - sum[side] / count[side], 2);
        }
        assert_true(fabs(values[i] - (sum[1] / count[1] - sum[0] / count[0])) < 1e-13);
        double variance =
            squares[0] / count[0] / (count[0] - 1) + squares[1] / count[1] / (count[1] - 1);
        assert_true(fabs(errors[i] - sqrt(variance)) < 1e-13);
        assert_true(count[0] > 240 && count[0] < 360); /* an even chance */
    }
    free(v);
}

static void players_always_or_never_there_are_an_error(void **state) {
    (void)state;
    double v[1 << 8] = {0}, values[8], errors[8];
    size_t failed = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        asked_game a = {.game = {8, 1, v}};
        fds_params params = params_of(3, seed);
        fds_error err = {0};
        fds_status status = try_banzhaf(&a, &params, values, errors, &err);
        if (status == FDS_OK)
            continue;
        expect_error(status, FDS_ERR_USAGE, &err, "of the 3 coalitions that were drawn");
        assert_int_equal(a.asked, 0); /* before any work */
        failed++;
    }
    assert_true(failed > 25);
}

static void one_player_and_one_coalition_a_side(void **state) {
    (void)state;
    const double v[] = {0.25, 0.75};
    double value, error = 7;
    for (uint64_t seed = 0;; seed++) {
        asked_game a = {.game = {1, 1, v}};
        fds_params params = params_of(2, seed);
        fds_error err = {0};
        if (try_banzhaf(&a, &params, &value, &error, &err) != FDS_OK)
            continue;
        assert_true(value == 0.5 && isnan(error));
        break;
    }
    fds_params params = params_of(100, 1);
    banzhaf(&(array_game){1, 1, v}, &params, &value, &error);
    assert_true(value == 0.5 && error == 0);
}

static void constant_games_give_zeros(void **state) {
    (void)state;
    double v[16], values[4], errors[4];
    for (size_t i = 0; i < 16; i++)
        v[i] = 0.3;
    fds_params params = params_of(100, 1);
    banzhaf(&(array_game){4, 1, v}, &params, values, errors);
    for (size_t i = 0; i < 4; i++)
        assert_true(values[i] == 0 && errors[i] == 0);
}

static void epsilon_and_delta_decide_how_many(void **state) {
    (void)state;
    double *v = accuracies(6, 1, 4), truth[6], values[6];
    asked_game a = {.game = {6, 1, v}};
    fds_params params = params_of(0, 1);
    fds_error err = {0};
    expect_ok(try_banzhaf(&a, &params, values, NULL, &err), &err);
    assert_int_equal(a.asked, (size_t)ceil(log(240) * 16));
    enumerate(&a.game, truth);
    params.epsilon = 0.2;
    size_t within = 0;
    for (params.seed = 1; params.seed <= 20; params.seed++) {
        banzhaf(&a.game, &params, values, NULL);
        within += distance(values, truth, 6) <= 0.2;
    }
    assert_true(within >= 18);
    params.epsilon = 1e-6;
    expect_error(try_banzhaf(&a, &params, values, NULL, &err), FDS_ERR_LIMIT, &err,
                 "banzhaf: `epsilon` 1e-06 and `delta` 0.1 need");
    free(v);
}

static fds_status small_run(fds_error *err) {
    double v[16] = {0}, values[4];
    asked_game a = {.game = {4, 1, v}};
    fds_params params = params_of(300, 1);
    return try_banzhaf(&a, &params, values, NULL, err);
}

static void faults_are_passed_on_and_leak_nothing(void **state) {
    (void)state;
    each_allocation_fails("banzhaf", small_run);
    fds_params params = params_of(600, 1);
    expect_failures_passed_on(&baseline_banzhaf, &params, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_halve_with_four_times_the_coalitions),
        cmocka_unit_test(standard_errors_cover_the_truth),
        cmocka_unit_test(values_are_differences_of_means),
        cmocka_unit_test(players_always_or_never_there_are_an_error),
        cmocka_unit_test(one_player_and_one_coalition_a_side),
        cmocka_unit_test(constant_games_give_zeros),
        cmocka_unit_test(epsilon_and_delta_decide_how_many),
        cmocka_unit_test(faults_are_passed_on_and_leak_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
