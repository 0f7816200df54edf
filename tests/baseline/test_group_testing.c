/* SPDX-License-Identifier: Apache-2.0
 * Group testing: the original form against constrained least squares over all pairs, both forms
 * against enumerated Shapley values, within their epsilon, with errors that fall as they should. */
#include "asked_game.h"

static const bool forms[] = {false, true}; /* form */
static const char *const form_names[] = {"original", "improved"};

static fds_params params_of(bool form, size_t coalitions, uint64_t seed) {
    return (fds_params){.method = "group-testing",
                        .scorer = FDS__SCORER_ACCURACY,
                        .coalitions = coalitions,
                        .epsilon = 1,
                        .delta = 0.1,
                        .form = form,
                        .seed = seed};
}

static fds_status try_testing(asked_game *a, const fds_params *params, double *values,
                              double *errors, fds_error *err) {
    return try_asking(&baseline_group_testing, a, params, values, errors, NULL, err);
}

static void testing(asked_game *a, const fds_params *params, double *values, double *errors) {
    fds_error err;
    expect_ok(try_testing(a, params, values, errors, &err), &err);
}

/* ---- the definition ---- */

/* Solves A x = b (size, size) with x in b, by elimination with pivots. */
static void solve(double *a, double *b, size_t size) {
    for (size_t k = 0; k < size; k++) {
        size_t pivot = k;
        for (size_t i = k; i < size; i++)
            pivot = fabs(a[i * size + k]) > fabs(a[pivot * size + k]) ? i : pivot;
        for (size_t j = 0; j < size; j++) {
            double kept = a[k * size + j];
            a[k * size + j] = a[pivot * size + j];
            a[pivot * size + j] = kept;
        }
        double kept = b[k];
        b[k] = b[pivot];
        b[pivot] = kept;
        for (size_t i = 0; i < size; i++) {
            double factor = i == k ? 0 : a[i * size + k] / a[k * size + k];
            for (size_t j = k; j < size; j++)
                a[i * size + j] -= factor * a[k * size + j];
            b[i] -= factor * b[k];
        }
    }
    for (size_t k = 0; k < size; k++)
        b[k] /= a[k * size + k];
}

/* min sum over pairs of (s_i - s_j - D_ij)^2 with sum s = total, by its multiplier's equations. */
static void least_squares(const double *d, size_t n, double total, double *s) {
    size_t size = n + 1;
    double *a = need(size * size, sizeof *a), *b = need(size, sizeof *b);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            a[i * size + j] = i == j ? (double)n - 1 : -1;
            b[i] += d[i * n + j];
        }
        a[i * size + n] = a[n * size + i] = 1;
    }
    b[n] = total;
    solve(a, b, size);
    memcpy(s, b, n * sizeof *s);
    free(a);
    free(b);
}

/* Algorithm 1 again from the coalitions that were asked for: the first two are none and all. */
static void the_original_form_solves_its_feasibility_problem(void **state) {
    (void)state;
    for (size_t n = 2; n <= 9; n++) {
        enum { TESTS = 1300 };
        uint64_t log[TESTS + 2];
        fds_rng rng = fds_rng_make(1, 3000, n, 0);
        double *v = random_accuracies((size_t)1 << n, &rng), d[81] = {0}, wanted[9], got[9], z = 0;
        asked_game a = {.game = {n, 1, v}, .log = log, .log_size = COUNT(log)};
        fds_params params = params_of(false, TESTS, n);
        testing(&a, &params, got, NULL);
        assert_int_equal(a.asked, TESTS + 2);
        for (size_t k = 1; k < n; k++)
            z += 2 / (double)k;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                for (size_t t = 2; t < TESTS + 2; t++)
                    d[i * n + j] += z / TESTS * v[log[t]] *
                                    ((double)(log[t] >> i & 1) - (double)(log[t] >> j & 1));
        double total = v[log[1]] - v[log[0]], sum = 0;
        assert_int_equal(log[0], 0);
        assert_int_equal(log[1], ((uint64_t)1 << n) - 1);
        least_squares(d, n, total, wanted);
        expect_near(got, wanted, n, 1e-12, "constrained least squares");
        for (size_t i = 0; i < n; i++) {
            sum += got[i];
            for (size_t j = 0; j < n; j++) /* feasible for any epsilon */
                assert_true(fabs(got[i] - got[j] - d[i * n + j]) <= 1e-12);
        }
        assert_true(fabs(sum - total) <= 1e-12);
        free(v);
    }
}

/* The law of the coalitions' sizes; in the improved form the dummy takes a place of some. */
static void sizes_are_drawn_as_the_papers_say(void **state) {
    (void)state;
    enum { PLAYERS = 6, TESTS = IS_SLOW_BUILD ? 20000 : 100000 };
    uint64_t *log = need(TESTS + 2, sizeof *log);
    double v[1 << PLAYERS] = {0}, values[PLAYERS];
    for (size_t form = 0; form < 2; form++) {
        asked_game a = {.game = {PLAYERS, 1, v}, .log = log, .log_size = TESTS + 2};
        fds_params params = params_of(forms[form], TESTS, 4);
        testing(&a, &params, values, NULL);
        size_t from = forms[form] ? 0 : 2, total = PLAYERS + forms[form];
        double wanted[PLAYERS + 1] = {0}, got[PLAYERS + 1] = {0}, z = 0, members = 0;
        for (size_t k = 1; k < total; k++)
            z += 2 / (double)k;
        for (size_t k = 1; k < total; k++) {
            double q = (1 / (double)k + 1 / (double)(total - k)) / z;
            double dummy = forms[form] ? (double)k / (double)total : 0;
            wanted[k] += q * (1 - dummy);
            wanted[k - 1] += q * dummy;
        }
        for (size_t t = from; t < from + TESTS; t++) {
            got[__builtin_popcountll(log[t])] += 1. / TESTS;
            members += (double)(log[t] & 1);
        }
        for (size_t k = 0; k <= PLAYERS; k++)
            assert_true(fabs(got[k] - wanted[k]) <= 5 * sqrt(wanted[k] / TESTS));
        assert_true(fabs(members / TESTS - 0.5) <=
                    5 * 0.5 / sqrt(TESTS)); /* k and N-k equally often */
    }
    free(log);
}

/* ---- how many ---- */

/* The note's Theorem 4, and the same for n values, in the papers' own terms. */
static size_t papers_tests(size_t n, bool form, double epsilon, double delta) {
    double total = (double)(n + form), z = 0, q_tot = 0;
    for (double k = 1; k < total; k++)
        z += 2 / k;
    for (double k = 1; k < total; k++)
        q_tot += (1 / k + 1 / (total - k)) / z * (1 + 2 * k * (k - total) / (total * (total - 1)));
    double pairs = (double)n * (double)(n - 1);
    double u = epsilon / ((form ? 1 : 2) * z * sqrt((double)n) * (1 - q_tot));
    double h = (1 + u) * log(1 + u) - u;
    return (size_t)ceil(log((form ? 2 * (double)n : pairs) / delta) / (1 - q_tot) / h);
}

static fds_status count_only(void *context, const uint64_t *coalitions, size_t count,
                             double *values, fds_error *err) {
    (void)coalitions, (void)err;
    *(size_t *)context += count;
    memset(values, 0, count * sizeof *values);
    return FDS_OK;
}

static void epsilon_and_delta_decide_how_many_are_asked(void **state) {
    (void)state;
    const struct {
        size_t players;
        double epsilon, delta;
        size_t original, improved; /* worked out apart from this program; 0: not */
    } cases[] = {{100, 5, 0.1, 7935, 1363},
                 {100, 10, 0.1, 2059, 365},
                 {10, 2, 0.01, 0, 0},
                 {2, 0.5, 0.5, 0, 0},
                 {70, 8, 0.05, 0, 0}};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t form = 0; form < 2; form++) {
            double values[100];
            size_t asked = 0, known = forms[form] ? cases[i].improved : cases[i].original;
            fds_params params = params_of(forms[form], 0, 1);
            params.epsilon = cases[i].epsilon;
            params.delta = cases[i].delta;
            baseline_job job = {.params = &params,
                                .game = {cases[i].players, 1, count_only, &asked},
                                .players = cases[i].players,
                                .columns = 1,
                                .values = values};
            fds_error err;
            expect_ok(run_job(&baseline_group_testing, &job, &err), &err);
            asked -= forms[form] ? 0 : 2;
            assert_int_equal(
                asked, papers_tests(cases[i].players, forms[form], params.epsilon, params.delta));
            if (known)
                assert_int_equal(asked, known);
        }
}

/* With probability 0.9 each by the bound, which is so wide that none ever is outside. */
static void values_are_within_epsilon(void **state) {
    (void)state;
    for (size_t form = 0; form < 2; form++) {
        double worst = 0;
        for (size_t n = 2; n <= (IS_SLOW_BUILD ? 5 : 10); n++)
            for (uint64_t seed = 0; seed < 3; seed++) {
                fds_rng rng = fds_rng_make(seed, 3001, n, 0);
                double *v = random_accuracies((size_t)1 << n, &rng), exact[10], got[10];
                asked_game a = {.game = {n, 1, v}};
                fds_params params = params_of(forms[form], 0, seed);
                testing(&a, &params, got, NULL);
                exact_values(&a.game, FDS_SAMPLER_KERNEL, NULL, 1, exact);
                worst = fmax(worst, distance(got, exact, n));
                free(v);
            }
        print_message("# %s: at most %.3f from the truth with epsilon 1\n", form_names[form],
                      worst);
        assert_true(worst <= 1);
    }
}

/* ---- accuracy ---- */

/* Root mean square error over games, and of the estimated standard errors. */
static void errors_at(bool form, size_t tests, double *error, double *estimated) {
    enum { PLAYERS = 6, GAMES = IS_SLOW_BUILD ? 30 : 100 };
    double sum = 0, estimated_sum = 0;
    for (uint64_t game = 0; game < GAMES; game++) {
        fds_rng rng = fds_rng_make(game, 3002, 0, 0);
        double *v = random_accuracies(1 << PLAYERS, &rng), exact[PLAYERS], got[PLAYERS],
               errors[PLAYERS];
        asked_game a = {.game = {PLAYERS, 1, v}};
        fds_params params = params_of(form, tests, game);
        testing(&a, &params, got, errors);
        exact_values(&a.game, FDS_SAMPLER_KERNEL, NULL, 1, exact);
        for (size_t i = 0; i < PLAYERS; i++) {
            sum += (got[i] - exact[i]) * (got[i] - exact[i]) / (PLAYERS * GAMES);
            estimated_sum += errors[i] * errors[i] / (PLAYERS * GAMES);
        }
        free(v);
    }
    *error = sqrt(sum);
    *estimated = sqrt(estimated_sum);
}

static void errors_fall_with_the_root_of_the_tests_and_are_estimated(void **state) {
    (void)state;
    const size_t tests[] = {100, 800, 6400};
    for (size_t form = 0; form < 2; form++) {
        double error[3], estimated[3];
        for (size_t i = 0; i < 3; i++) {
            errors_at(forms[form], tests[i], &error[i], &estimated[i]);
            print_message("# %s, T = %zu: error %.5f, standard error %.5f\n", form_names[form],
                          tests[i], error[i], estimated[i]);
            assert_true(error[i] > 0.8 * estimated[i] && error[i] < 1.25 * estimated[i]);
        }
        for (size_t i = 1; i < 3; i++) /* sqrt 8 = 2.83 */
            assert_true(error[i - 1] / error[i] > 2.2 && error[i - 1] / error[i] < 3.6);
    }
}

/* ---- what must not matter, and what must ---- */

static void columns_are_games_of_their_own(void **state) {
    (void)state;
    enum { PLAYERS = 5, COLUMNS = 3, TESTS = 700 };
    fds_rng rng = fds_rng_make(5, 3003, 0, 0);
    double *v = random_accuracies((1 << PLAYERS) * COLUMNS, &rng), one[1 << PLAYERS];
    for (size_t form = 0; form < 2; form++) {
        double all[PLAYERS * COLUMNS], errors[PLAYERS * COLUMNS], alone[PLAYERS], alone_e[PLAYERS];
        fds_params params = params_of(forms[form], TESTS, 6);
        asked_game a = {.game = {PLAYERS, COLUMNS, v}};
        testing(&a, &params, all, errors);
        for (size_t c = 0; c < COLUMNS; c++) {
            for (size_t mask = 0; mask < 1 << PLAYERS; mask++)
                one[mask] = v[mask * COLUMNS + c];
            asked_game b = {.game = {PLAYERS, 1, one}};
            testing(&b, &params, alone, alone_e);
            for (size_t i = 0; i < PLAYERS; i++) {
                assert_true(alone[i] == all[i * COLUMNS + c]);
                assert_true(alone_e[i] == errors[i * COLUMNS + c]);
            }
        }
    }
    free(v);
}

static void coalitions_depend_on_seed_and_number_alone(void **state) {
    (void)state;
    enum { PLAYERS = 8 };
    uint64_t few[600], many[1500], others[600];
    double v[1 << PLAYERS] = {0}, values[PLAYERS];
    for (size_t form = 0; form < 2; form++) {
        asked_game a = {.game = {PLAYERS, 1, v}, .log = few, .log_size = 600},
                   b = {.game = {PLAYERS, 1, v}, .log = many, .log_size = 1500},
                   c = {.game = {PLAYERS, 1, v}, .log = others, .log_size = 600};
        fds_params params = params_of(forms[form], 600, 7);
        testing(&a, &params, values, NULL);
        params.coalitions = 1500;
        testing(&b, &params, values, NULL);
        params.seed = 8;
        testing(&c, &params, values, NULL);
        assert_memory_equal(few, many, sizeof few);
        assert_memory_not_equal(few, others, sizeof few);
    }
}

/* One player: all of it, without a test, or what the dummy's form makes of it. */
static void one_player_gets_all(void **state) {
    (void)state;
    double v[] = {0.25, 0.75}, value, error;
    fds_params params = params_of(false, 0, 1);
    asked_game a = {.game = {1, 1, v}};
    testing(&a, &params, &value, &error);
    assert_true(value == 0.5 && error == 0);
    assert_int_equal(a.asked, 2);
    params = params_of(true, 20000, 1);
    testing(&a, &params, &value, &error);
    assert_true(fabs(value - 0.5) <= 5 * error && error < 0.01);
}

static void one_test_tells_no_standard_error(void **state) {
    (void)state;
    double v[8] = {0, 1, 1, 1, 1, 1, 1, 1}, values[3], errors[3];
    for (size_t form = 0; form < 2; form++) {
        asked_game a = {.game = {3, 1, v}};
        fds_params params = params_of(forms[form], 1, 1);
        testing(&a, &params, values, errors);
        for (size_t i = 0; i < 3; i++)
            assert_true(isfinite(values[i]) && isnan(errors[i]));
    }
}

/* ---- mistakes and faults ---- */

/* test_methods.c has what is refused before. */
static void too_many_tests_are_refused(void **state) {
    (void)state;
    static const double epsilons[] = {1e-3, 1e-300};
    double v[32] = {0}, values[5];
    for (size_t i = 0; i < COUNT(epsilons); i++)
        for (size_t form = 0; form < 2; form++) {
            asked_game a = {.game = {5, 1, v}};
            fds_params params = params_of(forms[form], 0, 1);
            params.epsilon = epsilons[i];
            fds_error err = {0};
            expect_error(try_testing(&a, &params, values, NULL, &err), FDS_ERR_LIMIT, &err,
                         "give a greater `epsilon`, or `coalitions`");
            assert_int_equal(a.asked, 0);
            params.coalitions = 10; /* then nothing of it matters */
            testing(&a, &params, values, NULL);
        }
}

static fds_status small_run(fds_error *err) {
    double v[16] = {0}, values[4], errors[4];
    asked_game a = {.game = {4, 1, v}};
    fds_params params = params_of(false, 30, 1);
    return try_testing(&a, &params, values, errors, err);
}

static bool cancel(void *user, const fds_progress *progress) {
    assert_true(progress->done > 0 && progress->done <= progress->total);
    return *(bool *)user = true;
}

static void faults_are_passed_on_and_leak_nothing(void **state) {
    (void)state;
    each_allocation_fails("group testing", small_run);
    double v[16] = {0}, values[4];
    fds_params params = params_of(false, 600, 1);
    expect_failures_passed_on(&baseline_group_testing, &params, 3); /* both ends, then two chunks */
    bool is_told = false;
    fds_events events = {.progress = cancel, .user = &is_told};
    params = params_of(true, 600, 1);
    asked_game a = {.game = {4, 1, v}};
    baseline_job job = {.params = &params,
                        .game = asked_as_game(&a),
                        .players = 4,
                        .columns = 1,
                        .values = values,
                        .events = &events};
    fds_error err = {0};
    assert_int_equal(run_job(&baseline_group_testing, &job, &err), FDS_ERR_CANCELLED);
    assert_true(is_told && a.asked < 600);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_original_form_solves_its_feasibility_problem),
        cmocka_unit_test(sizes_are_drawn_as_the_papers_say),
        cmocka_unit_test(epsilon_and_delta_decide_how_many_are_asked),
        cmocka_unit_test(values_are_within_epsilon),
        cmocka_unit_test(errors_fall_with_the_root_of_the_tests_and_are_estimated),
        cmocka_unit_test(columns_are_games_of_their_own),
        cmocka_unit_test(coalitions_depend_on_seed_and_number_alone),
        cmocka_unit_test(one_player_gets_all),
        cmocka_unit_test(one_test_tells_no_standard_error),
        cmocka_unit_test(too_many_tests_are_refused),
        cmocka_unit_test(faults_are_passed_on_and_leak_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
