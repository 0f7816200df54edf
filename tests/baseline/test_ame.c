/* SPDX-License-Identifier: Apache-2.0
 * Average marginal effects against their definition, enumerated, and against a plain Lasso. */
#include "asked_game.h"

enum { MOST = 10, FOLDS = 10, LAMBDAS = 100 };

static fds_params params_of(size_t coalitions, uint64_t seed) {
    return (fds_params){.method = "ame", .coalitions = coalitions, .seed = seed, .threads = 1};
}

static fds_status try_ame(asked_game *a, const fds_params *params, double *values, double *errors,
                          fds_error *err) {
    return try_asking(&baseline_ame, a, params, values, errors, NULL, err);
}

static void ame(const array_game *game, const fds_params *params, double *values, double *errors) {
    asked_game a = {.game = *game};
    fds_error err;
    expect_ok(try_ame(&a, params, values, errors, &err), &err);
}

/* The mean over p of what i adds to coalitions that have each other player with probability p. */
static void enumerate(const array_game *g, double *values) {
    for (size_t i = 0; i < g->players; i++) {
        values[i] = 0;
        for (size_t mask = 0; mask < (size_t)1 << g->players; mask++) {
            if (mask >> i & 1)
                continue;
            double in = __builtin_popcountll(mask), out = (double)g->players - 1 - in, weight = 0;
            for (size_t k = 1; k <= 4; k++)
                weight += pow((double)k / 5, in) * pow(1 - (double)k / 5, out) / 4;
            values[i] += weight * (g->v[mask | (size_t)1 << i] - g->v[mask]);
        }
    }
}

/* Players' weights, and what each pair of neighbours has more than the two. */
static double *weights_and_pairs(size_t n, const double *weights, double pair) {
    double *v = need((size_t)1 << n, sizeof *v);
    for (size_t mask = 0; mask < (size_t)1 << n; mask++)
        for (size_t i = 0; i < n; i++) {
            v[mask] += mask >> i & 1 ? weights[i] : 0;
            v[mask] += i && (mask >> i & 1) && (mask >> (i - 1) & 1) ? pair : 0;
        }
    return v;
}

/* ---- the values ---- */

static void additive_games_give_their_weights(void **state) {
    (void)state;
    enum { N = 6 };
    const double weights[N] = {0.3, 0, 0.1, -0.2, 0.3, 0.05};
    double *v = weights_and_pairs(N, weights, 0), truth[N], values[N], errors[N];
    array_game game = {N, 1, v};
    enumerate(&game, truth);
    assert_true(distance(truth, weights, N) < 1e-12);
    fds_params params = params_of(8000, 1);
    ame(&game, &params, values, errors);
    for (size_t i = 0; i < N; i++) {
        print_message("# %.4f: %.4f +- %.4f\n", weights[i], values[i], errors[i]);
        assert_true(fabs(values[i] - weights[i]) < 4 * errors[i] + 0.002);
        assert_true(errors[i] < 0.015);
    }
    free(v);
}

static void a_dummy_gets_nothing_and_twins_nearly_the_same(void **state) {
    (void)state;
    enum { N = 5 }; /* players 0 and 1 are twins, who have a utility only apart; 4 is a dummy */
    double v[1 << N], values[N], errors[N];
    for (size_t mask = 0; mask < 1 << N; mask++)
        v[mask] = 0.5 * ((mask & 3) != 0) + 0.3 * (mask >> 2 & 1) * (mask >> 3 & 1);
    array_game game = {N, 1, v};
    for (uint64_t seed = 0; seed < 10; seed++) {
        fds_params params = params_of(2000, seed);
        ame(&game, &params, values, errors);
        assert_true(fabs(values[4]) <= 4 * errors[4] + 0.002);
        assert_true(fabs(values[0] - values[1]) < 4 * (errors[0] + errors[1]));
        assert_true(values[0] > 0.1 && values[1] > 0.1);
    }
}

static void errors_halve_with_four_times_the_coalitions(void **state) {
    (void)state;
    double weights[MOST], truth[MOST];
    for (size_t i = 0; i < MOST; i++)
        weights[i] = 0.1 + 0.02 * (double)i;
    double *v = weights_and_pairs(MOST, weights, -0.05);
    array_game game = {MOST, 1, v};
    enumerate(&game, truth);
    expect_errors_to_halve(&baseline_ame, &game, truth, params_of(0, 0), 200, 20);
    free(v);
}

static void standard_errors_cover_the_truth(void **state) {
    (void)state;
    enum { SEEDS = 60 };
    double weights[MOST], truth[MOST], values[MOST], errors[MOST];
    for (size_t i = 0; i < MOST; i++)
        weights[i] = 0.1 + 0.02 * (double)i;
    double *v = weights_and_pairs(MOST, weights, -0.05);
    array_game game = {MOST, 1, v};
    size_t covered = 0;
    enumerate(&game, truth);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        fds_params params = params_of(400, seed);
        ame(&game, &params, values, errors);
        for (size_t i = 0; i < MOST; i++)
            covered += fabs(values[i] - truth[i]) <= 2 * errors[i];
    }
    double share = (double)covered / (SEEDS * MOST);
    print_message("# %.3f within two standard errors\n", share);
    assert_true(share > 0.85 && share < 0.99);
    free(v);
}

/* Three of 80 players matter, and there are 160 coalitions. */
static fds_status three_matter(void *context, const uint64_t *coalitions, size_t count,
                               double *values, fds_error *err) {
    (void)context, (void)err;
    for (size_t k = 0; k < count; k++)
        values[k] = fds_coalition_has(coalitions + 2 * k, 5) -
                    0.8 * fds_coalition_has(coalitions + 2 * k, 40) +
                    0.9 * fds_coalition_has(coalitions + 2 * k, 77);
    return FDS_OK;
}

static void few_coalitions_find_the_few_who_matter(void **state) {
    (void)state;
    double values[80], errors[80];
    fds_params params = params_of(160, 1);
    baseline_job job = {.params = &params,
                        .game = {80, 1, three_matter, NULL},
                        .players = 80,
                        .columns = 1,
                        .values = values,
                        .errors = errors};
    fds_error err;
    expect_ok(run_job(&baseline_ame, &job, &err), &err);
    assert_true(values[5] > 0.5 && values[40] < -0.4 && values[77] > 0.5);
    size_t zeros = 0;
    for (size_t i = 0; i < 80; i++) {
        zeros += values[i] == 0;
        assert_true(i == 5 || i == 40 || i == 77 || fabs(values[i]) < 0.3);
    }
    print_message("# %zu of 80 are 0\n", zeros);
    assert_true(zeros > 20);
}

/* ---- a plain Lasso on the same coalitions ---- */

typedef struct {
    size_t players, count;
    double x[600][MOST], y[600];
} regression;

/* Without the rows of one fold, from residuals. */
static double plain_lasso(const regression *r, size_t without, double lambda, double *b) {
    double left[600], means[MOST] = {0}, mean = 0, size = 0;
    size_t n = r->players;
    for (size_t k = 0; k < r->count; k++)
        size += k / 4 % FOLDS != without;
    for (size_t k = 0; k < r->count; k++)
        if (k / 4 % FOLDS != without) {
            mean += r->y[k] / size;
            for (size_t i = 0; i < n; i++)
                means[i] += r->x[k][i] / size;
        }
    for (size_t k = 0; k < r->count; k++) {
        left[k] = r->y[k] - mean;
        for (size_t i = 0; i < n; i++)
            left[k] -= b[i] * (r->x[k][i] - means[i]);
    }
    for (size_t sweep = 0; sweep < 100; sweep++)
        for (size_t i = 0; i < n; i++) {
            double slope = 0, square = 0;
            for (size_t k = 0; k < r->count; k++)
                if (k / 4 % FOLDS != without) {
                    double x = r->x[k][i] - means[i];
                    slope += x * (left[k] + b[i] * x) / size;
                    square += x * x / size;
                }
            double now = slope > lambda    ? (slope - lambda) / square
                         : slope < -lambda ? (slope + lambda) / square
                                           : 0;
            for (size_t k = 0; k < r->count; k++)
                left[k] -= (now - b[i]) * (r->x[k][i] - means[i]);
            b[i] = now;
        }
    double squares = 0;
    for (size_t k = 0; k < r->count; k++)
        squares += k / 4 % FOLDS == without ? left[k] * left[k] : 0;
    return squares;
}

static void plain_ame(const regression *r, double v, double *values, double *errors) {
    double b[FOLDS + 1][MOST] = {{0}}, best[FOLDS + 1][MOST], most = 0, least = INFINITY;
    double mean = 0;
    for (size_t k = 0; k < r->count; k++)
        mean += r->y[k] / (double)r->count;
    for (size_t i = 0; i < r->players; i++) {
        double slope = 0;
        for (size_t k = 0; k < r->count; k++)
            slope += r->x[k][i] * (r->y[k] - mean) / (double)r->count;
        most = fmax(most, fabs(slope));
    }
    for (size_t l = 0; l < LAMBDAS; l++) {
        double squares = 0;
        for (size_t f = 0; f <= FOLDS; f++)
            squares += plain_lasso(r, f, most * pow(0.001, (double)l / (LAMBDAS - 1)), b[f]);
        if (squares < least) {
            least = squares;
            memcpy(best, b, sizeof b);
        }
    }
    for (size_t i = 0; i < r->players; i++) {
        double sum = 0, squares = 0;
        for (size_t f = 0; f < FOLDS; f++) {
            sum += best[f][i];
            squares += best[f][i] * best[f][i];
        }
        values[i] = sqrt(v) * best[FOLDS][i];
        errors[i] = sqrt(v * 0.9 * (squares - sum * sum / FOLDS));
    }
}

static void values_are_those_of_a_plain_lasso(void **state) {
    (void)state;
    enum { N = 6, COLUMNS = 2, DRAWS = 533 };
    static regression r = {.players = N, .count = DRAWS};
    const double p_of[] = {0.2, 0.4, 0.6, 0.8};
    const double v = (1 / 0.16 + 1 / 0.24 + 1 / 0.24 + 1 / 0.16) / 4;
    double *games = accuracies(N, COLUMNS, 3), values[N * COLUMNS], errors[N * COLUMNS];
    for (size_t mask = 0; mask < 1 << N; mask++) /* the second is nearly additive */
        games[mask * COLUMNS + 1] = 0.01 * games[mask * COLUMNS + 1] + 0.3 * (double)(mask & 1) -
                                    0.1 * (double)(mask >> 3 & 1);
    uint64_t log[DRAWS];
    asked_game a = {.game = {N, COLUMNS, games}, .log = log, .log_size = DRAWS};
    fds_params params = params_of(DRAWS, 7);
    fds_error err;
    expect_ok(try_ame(&a, &params, values, errors, &err), &err);
    assert_int_equal(a.asked, DRAWS);
    assert_int_equal(a.calls, 2);
    for (size_t c = 0; c < COLUMNS; c++) {
        double wanted[N], wanted_errors[N];
        for (size_t k = 0; k < DRAWS; k++) {
            double p = p_of[k % 4];
            r.y[k] = games[log[k] * COLUMNS + c];
            for (size_t i = 0; i < N; i++)
                r.x[k][i] = (log[k] >> i & 1 ? 1 / p : -1 / (1 - p)) / sqrt(v);
        }
        plain_ame(&r, v, wanted, wanted_errors);
        for (size_t i = 0; i < N; i++) {
            if (fabs(values[i * COLUMNS + c] - wanted[i]) > 1e-6)
                fail_msg("game %zu, player %zu: %.9f, not %.9f", c, i, values[i * COLUMNS + c],
                         wanted[i]);
            assert_true(fabs(errors[i * COLUMNS + c] - wanted_errors[i]) < 1e-6);
        }
    }
    free(games);
}

/* ---- coalitions ---- */

static void each_probability_has_its_turn(void **state) {
    (void)state;
    enum { N = 10, DRAWS = 4000 };
    double *v = accuracies(N, 1, 4), values[N];
    static uint64_t log[DRAWS];
    asked_game a = {.game = {N, 1, v}, .log = log, .log_size = DRAWS};
    fds_params params = params_of(DRAWS, 1);
    size_t members[4] = {0};
    fds_error err;
    expect_ok(try_ame(&a, &params, values, NULL, &err), &err);
    for (size_t k = 0; k < DRAWS; k++)
        members[k % 4] += (size_t)__builtin_popcountll(log[k]);
    for (size_t k = 0; k < 4; k++)
        assert_true(fabs((double)members[k] / DRAWS * 4 / N - 0.2 * (double)(k + 1)) < 0.02);
    free(v);
}

static void twenty_per_player_and_at_least_200_are_drawn(void **state) {
    (void)state;
    double v[1 << MOST] = {0}, values[MOST];
    asked_game few = {.game = {MOST, 1, v}};
    fds_params params = params_of(0, 1);
    fds_error err = {0};
    size_t most;
    expect_ok(try_ame(&few, &params, values, NULL, &err), &err);
    assert_int_equal(few.asked, 200);
    expect_ok(fds__baseline_most(&params, 100, 10, &most, &err), &err);
    assert_int_equal(most, 2000);
    params.coalitions = 39;
    expect_error(fds__baseline_check(&params, 10, &err), FDS_ERR_USAGE, &err,
                 "`coalitions` must be at least 40 for ame (got 39)");
    params.coalitions = 40;
    expect_ok(fds__baseline_check(&params, 10, &err), &err);
}

static void threads_change_no_bit(void **state) {
    (void)state;
    enum { N = 7, COLUMNS = 5, SIZE = N * COLUMNS };
    double *v = accuracies(N, COLUMNS, 5), values[2][SIZE], errors[2][SIZE];
    for (size_t run = 0; run < 2; run++) {
        fds_params params = params_of(400, 2);
        params.threads = run ? 3 : 1;
        ame(&(array_game){N, COLUMNS, v}, &params, values[run], errors[run]);
    }
    assert_memory_equal(values[0], values[1], sizeof *values);
    assert_memory_equal(errors[0], errors[1], sizeof *errors);
    free(v);
}

/* ---- odd games ---- */

static void constant_games_give_zeros(void **state) {
    (void)state;
    double v[16], values[4], errors[4];
    for (size_t i = 0; i < 16; i++)
        v[i] = 0.3;
    fds_params params = params_of(100, 1);
    ame(&(array_game){4, 1, v}, &params, values, errors);
    for (size_t i = 0; i < 4; i++)
        assert_true(values[i] == 0 && errors[i] == 0);
}

static void one_player_has_all_of_it(void **state) {
    (void)state;
    const double v[] = {0.25, 0.75};
    double value, error;
    fds_params params = params_of(4000, 1);
    ame(&(array_game){1, 1, v}, &params, &value, &error);
    assert_true(fabs(value - 0.5) < 4 * error + 0.001 && error < 0.02);
}

static void values_that_are_nan_are_not_hidden(void **state) {
    (void)state;
    double v[16] = {0}, values[4];
    v[3] = NAN;
    fds_params params = params_of(100, 1);
    ame(&(array_game){4, 1, v}, &params, values, NULL);
    for (size_t i = 0; i < 4; i++)
        assert_true(isnan(values[i]));
}

static fds_status small_run(fds_error *err) {
    double v[16] = {0}, values[4];
    asked_game a = {.game = {4, 1, v}};
    fds_params params = params_of(300, 1);
    return try_ame(&a, &params, values, NULL, err);
}

static void faults_are_passed_on_and_leak_nothing(void **state) {
    (void)state;
    each_allocation_fails("ame", small_run);
    fds_params params = params_of(600, 1);
    expect_failures_passed_on(&baseline_ame, &params, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(additive_games_give_their_weights),
        cmocka_unit_test(a_dummy_gets_nothing_and_twins_nearly_the_same),
        cmocka_unit_test(errors_halve_with_four_times_the_coalitions),
        cmocka_unit_test(standard_errors_cover_the_truth),
        cmocka_unit_test(few_coalitions_find_the_few_who_matter),
        cmocka_unit_test(values_are_those_of_a_plain_lasso),
        cmocka_unit_test(each_probability_has_its_turn),
        cmocka_unit_test(twenty_per_player_and_at_least_200_are_drawn),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(constant_games_give_zeros),
        cmocka_unit_test(one_player_has_all_of_it),
        cmocka_unit_test(values_that_are_nan_are_not_hidden),
        cmocka_unit_test(faults_are_passed_on_and_leak_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
