/* SPDX-License-Identifier: Apache-2.0
 * TMC-Shapley and Beta Shapley against enumerated values, and against a plain walk that truncates
 * by the authors' rule. */
#include "asked_game.h"

enum { MOST = 10 };

typedef struct {
    double values[MOST * 3], errors[MOST * 3];
    fds__baseline_report report;
} outcome;

static fds_params params_of(const char *name, size_t permutations, uint64_t seed) {
    return (fds_params){.method = name, .permutations = permutations, .seed = seed, .threads = 1};
}

static fds_status try_tmc(asked_game *a, const fds_params *params, outcome *o, fds_error *err) {
    *o = (outcome){.report = {.change = NAN}};
    return try_asking(&baseline_tmc, a, params, o->values, o->errors, &o->report, err);
}

static outcome tmc(const array_game *game, const fds_params *params) {
    asked_game a = {.game = *game};
    outcome o;
    fds_error err;
    expect_ok(try_tmc(&a, params, &o, &err), &err);
    return o;
}

/* ---- Beta Shapley, by definition ---- */

static double log_beta(double a, double b) { return lgamma(a) + lgamma(b) - lgamma(a + b); }

/* Over all coalitions without i. */
static void enumerate_beta(const array_game *g, double alpha, double beta, double *values) {
    size_t n = g->players;
    for (size_t i = 0; i < n; i++) {
        values[i] = 0;
        for (size_t mask = 0; mask < (size_t)1 << n; mask++) {
            if (mask >> i & 1)
                continue;
            double j = __builtin_popcountll(mask) + 1.0;
            double weight =
                exp(log_beta(j + beta - 1, (double)n - j + alpha) - log_beta(alpha, beta));
            values[i] += weight * (g->v[mask | (size_t)1 << i] - g->v[mask]);
        }
    }
}

/* ---- Shapley values ---- */

static void errors_halve_with_four_times_the_orders(void **state) {
    (void)state;
    double *v = accuracies(MOST, 1, 1), truth[MOST];
    array_game game = {MOST, 1, v};
    exact_values(&game, FDS_SAMPLER_KERNEL, NULL, 1, truth);
    expect_errors_to_halve(&baseline_tmc, &game, truth, params_of("tmc", 0, 0), 100, 30);
    free(v);
}

/* How often the truth is within two standard errors: 95 of 100 times. */
static void standard_errors_cover_the_truth(void **state) {
    (void)state;
    enum { SEEDS = 200 };
    static const char *const names[] = {"tmc", "beta:4,1"};
    const size_t n = 6;
    double *v = accuracies(n, 1, 2), truth[MOST];
    array_game game = {n, 1, v};
    for (size_t k = 0; k < COUNT(names); k++) {
        enumerate_beta(&game, k ? 4 : 1, 1, truth);
        size_t covered = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            fds_params params = params_of(names[k], 150, seed);
            outcome o = tmc(&game, &params);
            for (size_t i = 0; i < n; i++)
                covered += fabs(o.values[i] - truth[i]) <= 2 * o.errors[i];
        }
        double share = (double)covered / (double)(SEEDS * n);
        print_message("# %s: %.3f within two standard errors\n", names[k], share);
        assert_true(share > 0.93 && share < 0.975);
    }
    free(v);
}

static void values_sum_to_what_all_have_over_none(void **state) {
    (void)state;
    for (size_t n = 1; n <= MOST; n++) {
        double *v = accuracies(n, 3, 3);
        fds_params params = params_of("tmc", 77, 5);
        outcome o = tmc(&(array_game){n, 3, v}, &params);
        for (size_t c = 0; c < 3; c++) {
            double sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += o.values[i * 3 + c];
            assert_true(fabs(sum - (v[(((size_t)1 << n) - 1) * 3 + c] - v[c])) < 1e-12);
        }
        assert_int_equal(o.report.permutations, 77);
        assert_true(o.report.truncated == 0 && !o.report.has_converged);
        free(v);
    }
}

static void one_and_two_players(void **state) {
    (void)state;
    const double one[] = {0.25, 0.75}, two[] = {0.1, 0.5, 0.4, 0.9};
    fds_params params = params_of("tmc", 3, 1);
    outcome o = tmc(&(array_game){1, 1, one}, &params);
    assert_true(o.values[0] == 0.5 && o.errors[0] == 0);
    params.permutations = 1;
    o = tmc(&(array_game){1, 1, one}, &params);
    assert_true(o.values[0] == 0.5 && isnan(o.errors[0]));
    params.permutations = 4000;
    o = tmc(&(array_game){2, 1, two}, &params);
    assert_true(fabs(o.values[0] - 0.45) < 0.01 && fabs(o.values[1] - 0.35) < 0.01);
}

static void a_dummy_gets_nothing_and_twins_nearly_the_same(void **state) {
    (void)state;
    double v[32];
    for (size_t mask = 0; mask < 32; mask++) { /* 0 and 1 are twins, 4 adds nothing */
        double twins = (mask & 3) == 3 ? 0.5 : mask & 3 ? 0.4 : 0;
        v[mask] = twins + 0.2 * (mask >> 2 & 1) * (1 + (double)(mask >> 3 & 1));
    }
    fds_params params = params_of("tmc", 4000, 1);
    outcome o = tmc(&(array_game){5, 1, v}, &params);
    assert_true(o.values[4] == 0 && o.errors[4] == 0);
    assert_true(fabs(o.values[0] - o.values[1]) < 4 * (o.errors[0] + o.errors[1]));
    assert_true(fabs(o.values[0] - 0.25) < 4 * o.errors[0]);
}

/* All coalitions have the same utility, 0 among them: nothing is divided by 0. */
static void constant_games_give_zeros(void **state) {
    (void)state;
    static const double levels[] = {0, 0.5, -3};
    for (size_t k = 0; k < COUNT(levels); k++) {
        double v[256];
        for (size_t mask = 0; mask < COUNT(v); mask++)
            v[mask] = levels[k];
        fds_params params = params_of("tmc", 1000, 1);
        params.truncate = 0.01;
        params.until = 0.05;
        outcome o = tmc(&(array_game){8, 1, v}, &params);
        for (size_t i = 0; i < 8; i++)
            assert_true(o.values[i] == 0 && o.errors[i] == 0);
        assert_true(o.report.has_converged && o.report.change == 0);
        assert_int_equal(o.report.permutations, 200);
        assert_true(fabs(o.report.truncated - 2.0 / 8) < 1e-15); /* after the sixth place */
    }
}

/* ---- truncation and stopping ---- */

/* Algorithm 1 with the authors' count, one permutation at a time; returns the skipped places. */
static size_t plain_tmc(const array_game *g, const fds_params *params, size_t permutations,
                        double *values) {
    size_t n = g->players, columns = g->columns, skipped = 0, all = ((size_t)1 << n) - 1;
    memset(values, 0, n * columns * sizeof *values);
    for (uint64_t t = 0; t < permutations; t++) {
        uint32_t order[MOST];
        baseline_permutation(params->seed, t, n, order);
        size_t mask = 0, counter = 0;
        for (size_t place = 0; place < n; place++) {
            size_t next = mask | (size_t)1 << order[place];
            double off = 0, size = 0;
            for (size_t c = 0; c < columns; c++) {
                double now = g->v[next * columns + c], full = g->v[all * columns + c];
                values[order[place] * columns + c] +=
                    (now - g->v[mask * columns + c]) / (double)permutations;
                off += fabs(now - full) / (double)columns;
                size += fabs(full) / (double)columns;
            }
            mask = next;
            counter = off <= params->truncate * size ? counter + 1 : 0;
            if (counter > 5) {
                skipped += n - place - 1;
                break;
            }
        }
    }
    return skipped;
}

/* Games that come near v(N) early: 0.9 and a little noise from three players on. */
static double *saturating(size_t n, size_t columns) {
    double *v = accuracies(n, columns, 8);
    for (size_t mask = 0; mask < (size_t)1 << n; mask++)
        for (size_t c = 0; c < columns; c++)
            if (__builtin_popcountll(mask) >= 3)
                v[mask * columns + c] = 0.9 + 0.02 * v[mask * columns + c];
    return v;
}

static void permutations_end_after_the_sixth_place_that_is_near(void **state) {
    (void)state;
    for (size_t columns = 1; columns <= 3; columns += 2) {
        double *v = saturating(MOST, columns), wanted[MOST * 3];
        array_game game = {MOST, columns, v};
        asked_game a = {.game = game};
        fds_params params = params_of("tmc", 230, 4);
        outcome o;
        fds_error err;
        params.truncate = 0.02;
        expect_ok(try_tmc(&a, &params, &o, &err), &err);
        size_t skipped = plain_tmc(&game, &params, 230, wanted);
        assert_true(skipped > 0);
        assert_true(fabs(o.report.truncated - (double)skipped / (230.0 * MOST)) < 1e-15);
        expect_near(o.values, wanted, MOST * columns, 1e-12, "truncated");
        /* v(0), v(N) once; the last place of a whole order is v(N) too */
        size_t whole = 0;
        params.truncate = 0;
        asked_game all = {.game = game};
        expect_ok(try_tmc(&all, &params, &o, &err), &err);
        whole = all.asked;
        assert_int_equal(whole, 2 + 230 * (MOST - 1));
        assert_true(a.asked < whole);
        assert_true(o.report.truncated == 0);
        assert_int_equal(plain_tmc(&game, &params, 230, wanted), 0);
        expect_near(o.values, wanted, MOST * columns, 1e-12, "whole");
        free(v);
    }
}

static void a_round_asks_for_all_its_orders_at_once(void **state) {
    (void)state;
    double *v = accuracies(4, 1, 5);
    uint64_t log[2 + 60 * 3];
    asked_game a = {.game = {4, 1, v}, .log = log, .log_size = COUNT(log)};
    fds_params params = params_of("tmc", 60, 4);
    outcome o;
    fds_error err;
    expect_ok(try_tmc(&a, &params, &o, &err), &err);
    assert_int_equal(a.calls, 1 + 3 + 3); /* the ends; 50 permutations; 10 permutations */
    assert_int_equal(a.most, BASELINE_ROUND);
    assert_int_equal(log[0], 0);
    assert_int_equal(log[1], 15);
    for (size_t i = 2; i < COUNT(log); i++) {
        size_t place = i < 152 ? (i - 2) / 50 : (i - 152) / 10;
        assert_int_equal(__builtin_popcountll(log[i]), place + 1);
    }
    free(v);
}

static void it_stops_when_values_have_settled(void **state) {
    (void)state;
    double *v = accuracies(6, 1, 6), now[MOST], before[MOST], change = 0;
    array_game game = {6, 1, v};
    fds_params params = params_of("tmc", 5000, 4);
    params.until = 0.05;
    outcome o = tmc(&game, &params);
    assert_true(o.report.has_converged);
    plain_tmc(&game, &params, o.report.permutations, now);
    plain_tmc(&game, &params, o.report.permutations - 100, before);
    for (size_t i = 0; i < 6; i++)
        change += fabs(now[i] - before[i]) / fabs(now[i]) / 6;
    assert_true(fabs(change - o.report.change) < 1e-9 && change < 0.05);
    print_message("# converged after %zu permutations\n", o.report.permutations);
    /* and no look before was below it */
    for (size_t t = 200; t < o.report.permutations; t += 100) {
        params.permutations = t;
        outcome early = tmc(&game, &params);
        assert_true(!early.report.has_converged && early.report.change >= 0.05);
    }
    free(v);
}

/* ---- Beta Shapley ---- */

static void beta_values_are_those_of_their_definition(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double alpha, beta;
    } cases[] = {{"beta:16,1", 16, 1},
                 {"beta:4,1", 4, 1},
                 {"beta:1,4", 1, 4},
                 {"beta:1,16", 1, 16},
                 {"beta:0.5,2.5", 0.5, 2.5}};
    const size_t n = 7;
    double *v = accuracies(n, 1, 7), wanted[MOST];
    array_game game = {n, 1, v};
    for (size_t k = 0; k < COUNT(cases); k++) {
        fds_params params = params_of(cases[k].name, IS_SLOW_BUILD ? 4000 : 40000, 1);
        outcome o = tmc(&game, &params);
        enumerate_beta(&game, cases[k].alpha, cases[k].beta, wanted);
        for (size_t i = 0; i < n; i++)
            if (!(fabs(o.values[i] - wanted[i]) < 4.5 * o.errors[i]))
                fail_msg("%s: value %zu is %g instead of %g, standard error %g", cases[k].name, i,
                         o.values[i], wanted[i], o.errors[i]);
    }
    free(v);
}

static void beta_1_1_is_the_shapley_value_to_the_bit(void **state) {
    (void)state;
    for (size_t n = 1; n <= MOST; n++) {
        double *v = accuracies(n, 1, 9);
        fds_params params = params_of("tmc", 120, 3);
        outcome shapley = tmc(&(array_game){n, 1, v}, &params);
        params.method = "beta:1,1";
        outcome beta = tmc(&(array_game){n, 1, v}, &params);
        assert_memory_equal(shapley.values, beta.values, sizeof beta.values);
        assert_memory_equal(shapley.errors, beta.errors, sizeof beta.errors);
        free(v);
    }
}

/* A game in which only the first player to come counts: its marginal is 1 at place 1. */
static void a_large_first_number_weighs_small_coalitions(void **state) {
    (void)state;
    double v[1 << MOST];
    for (size_t mask = 0; mask < COUNT(v); mask++)
        v[mask] = mask > 0;
    double sums[3] = {0};
    static const char *const names[] = {"beta:16,1", "beta:1,1", "beta:1,16"};
    for (size_t k = 0; k < 3; k++) {
        fds_params params = params_of(names[k], 100, 1);
        outcome o = tmc(&(array_game){MOST, 1, v}, &params);
        for (size_t i = 0; i < MOST; i++)
            sums[k] += o.values[i];
    }
    assert_true(sums[0] > 5 && fabs(sums[1] - 1) < 1e-12 && sums[2] < 1e-4);
    /* w_1 of beta:16,1 with 10 players: 10 B(1, 25) / B(16, 1) = 10 * 16 / 25 */
    assert_true(fabs(sums[0] - 6.4) < 1e-12);
}

/* Weights of many players, of which products would overflow: their sum shows. */
static fds_status count_players(void *context, const uint64_t *coalitions, size_t count,
                                double *values, fds_error *err) {
    (void)err;
    size_t n = *(size_t *)context;
    for (size_t k = 0; k < count; k++)
        values[k] = (double)fds_coalition_size(coalitions + k * fds_coalition_words(n), n);
    return FDS_OK;
}

static void weights_of_many_players_stay_finite(void **state) {
    (void)state;
    static const char *const names[] = {"beta:900,1", "beta:1,900", "beta:0.01,0.01",
                                        "beta:999999999,0.0001"};
    size_t n = 1500;
    double *values = need(n, sizeof *values);
    for (size_t k = 0; k < COUNT(names); k++) {
        fds_params params = params_of(names[k], 1, 1);
        fds__baseline_report report = {0};
        baseline_job job = {.params = &params,
                            .game = {n, 1, count_players, &n},
                            .players = n,
                            .columns = 1,
                            .values = values,
                            .report = &report};
        fds_error err;
        double sum = 0;
        expect_ok(run_job(&baseline_tmc, &job, &err), &err);
        for (size_t i = 0; i < n; i++)
            sum += values[i]; /* every marginal is 1: the weights themselves */
        assert_true(fabs(sum / (double)n - 1) < 1e-9);
    }
    free(values);
}

static void beta_names_are_read(void **state) {
    (void)state;
    double a, b;
    assert_true(baseline_read_beta("beta:4,1", &a, &b) && a == 4 && b == 1);
    assert_true(baseline_read_beta("beta:0.5,12.25", &a, &b) && a == 0.5 && b == 12.25);
    static const char *const bad[] = {
        "",         "beta",        "beta:",      "beta:1",     "beta:1,",           "beta:,1",
        "beta:0,1", "beta:1,0",    "beta:-1,1",  "beta:1,1,1", "beta:1e3,1",        "beta:1;1",
        "beta:.,1", "beta:1..2,1", "beta:nan,1", "beta:1,inf", "beta:1234567890,1", "beta: 1,1",
        "tmc",      "betas:1,1"};
    for (size_t i = 0; i < COUNT(bad); i++)
        if (baseline_read_beta(bad[i], &a, &b))
            fail_msg("\"%s\" was read", bad[i]);
}

/* ---- faults ---- */

static fds_status small_run(fds_error *err) {
    double v[16] = {0};
    asked_game a = {.game = {4, 1, v}};
    fds_params params = params_of("beta:4,1", 60, 1);
    outcome o;
    return try_tmc(&a, &params, &o, err);
}

static void faults_are_passed_on_and_leak_nothing(void **state) {
    (void)state;
    each_allocation_fails("tmc", small_run);
    fds_params params = params_of("tmc", 60, 1);
    expect_failures_passed_on(&baseline_tmc, &params, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_halve_with_four_times_the_orders),
        cmocka_unit_test(standard_errors_cover_the_truth),
        cmocka_unit_test(values_sum_to_what_all_have_over_none),
        cmocka_unit_test(one_and_two_players),
        cmocka_unit_test(a_dummy_gets_nothing_and_twins_nearly_the_same),
        cmocka_unit_test(constant_games_give_zeros),
        cmocka_unit_test(permutations_end_after_the_sixth_place_that_is_near),
        cmocka_unit_test(a_round_asks_for_all_its_orders_at_once),
        cmocka_unit_test(it_stops_when_values_have_settled),
        cmocka_unit_test(beta_values_are_those_of_their_definition),
        cmocka_unit_test(beta_1_1_is_the_shapley_value_to_the_bit),
        cmocka_unit_test(a_large_first_number_weighs_small_coalitions),
        cmocka_unit_test(weights_of_many_players_stay_finite),
        cmocka_unit_test(beta_names_are_read),
        cmocka_unit_test(faults_are_passed_on_and_leak_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
