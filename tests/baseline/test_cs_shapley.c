/* SPDX-License-Identifier: Apache-2.0
 * CS-Shapley against its definition, enumerated over all permutations and environments of a class;
 * closed forms; truncation; and classes, players and accuracies that are not there. */
#include "asked_game.h"

enum { MOST = 10 }; /* players */

typedef struct {
    size_t players;
    uint32_t classes;
    const uint32_t *labels; /* (players) */
    const double *shares;   /* (2^players, classes): correctly classified, by label */
} class_game;

static uint32_t untested; /* one bit per class: no test sample has the label */

typedef struct {
    double values[MOST], errors[MOST];
    fds__baseline_report report;
    asked_game asked;
    size_t warnings;
    char warning[200]; /* the last of them */
    bool is_cancelled; /* by the first report of progress */
} outcome;

static void count_warnings(void *user, fds_log_level level, const char *text) {
    outcome *o = user;
    o->warnings += level == FDS_LOG_WARNING;
    snprintf(o->warning, sizeof o->warning, "%s", text);
}

static bool see_progress(void *user, const fds_progress *progress) {
    assert_true(progress->done <= progress->total);
    return ((outcome *)user)->is_cancelled;
}

static fds_status try_cs(const class_game *g, const fds_params *params, outcome *o,
                         fds_error *err) {
    size_t fail_at = o->asked.fail_at;
    *o = (outcome){.asked = {.game = {g->players, g->classes, g->shares}, .fail_at = fail_at},
                   .is_cancelled = o->is_cancelled};
    fds_events events = {count_warnings, see_progress, o};
    uint32_t tested[8]; /* one test sample per class */
    fds_problem problem = {0};
    const fds__baseline_data data = {.problem = &problem, .labels = tested};
    fds_dataset *named = NULL; /* for the names of the classes */
    for (uint32_t y = 0; y < g->classes; y++)
        if (!(untested >> y & 1))
            tested[problem.test_count++] = y;
    TRY(fds__dataset_create(1, (fds_shape){1, 1, 1}, NULL, &(float){0}, &(uint16_t){0}, g->classes,
                            NULL, &named, err));
    problem.train = named;
    baseline_job job = {.params = params,
                        .data = &data,
                        .game = asked_as_game(&o->asked),
                        .player_labels = g->labels,
                        .classes = g->classes,
                        .players = g->players,
                        .columns = 1,
                        .values = o->values,
                        .errors = o->errors,
                        .report = &o->report,
                        .events = &events};
    fds_status status = run_job(&baseline_cs_shapley, &job, err);
    fds_dataset_free(named);
    return status;
}

static fds_params params_of(size_t permutations, uint64_t seed) {
    return (fds_params){.method = "cs-shapley", .permutations = permutations, .seed = seed};
}

static outcome run_cs(const class_game *g, const fds_params *params) {
    outcome o = {.warnings = 0};
    fds_error err;
    expect_ok(try_cs(g, params, &o, &err), &err);
    return o;
}

/* ---- the definition, enumerated ---- */

static size_t class_mask(const class_game *g, uint32_t label) {
    size_t mask = 0;
    for (size_t i = 0; i < g->players; i++)
        mask |= (size_t)(g->labels[i] == label) << i;
    return mask;
}

static double utility(const class_game *g, uint32_t label, size_t mask) {
    double out = 0;
    for (uint32_t y = 0; y < g->classes; y++)
        out += y == label ? 0 : g->shares[mask * g->classes + y];
    return g->shares[mask * g->classes + label] * exp(out);
}

/* How probable an environment is: of each other class a size uniform in 1 .. all, then a uniform
 * subset. 0 for sets that are none. */
static double environment_chance(const class_game *g, uint32_t label, size_t environment) {
    double chance = (environment & class_mask(g, label)) == 0;
    for (uint32_t y = 0; y < g->classes; y++) {
        int size = __builtin_popcountll(class_mask(g, y));
        int taken = __builtin_popcountll(environment & class_mask(g, y));
        if (y == label || size == 0)
            continue;
        double subsets = 1;
        for (int k = 1; k <= taken; k++)
            subsets *= (double)(size - k + 1) / k;
        chance *= taken == 0 ? 0 : 1 / (size * subsets);
    }
    return chance;
}

/* Adds each player's marginals over all permutations of the players left; weight is the probability
 * of the permutation so far. */
static void all_permutations(const class_game *g, uint32_t label, size_t mask, size_t left,
                             double weight, double *values) {
    double next = weight / __builtin_popcountll(left);
    for (size_t i = 0; i < g->players; i++) {
        size_t bit = (size_t)1 << i;
        if (!(left & bit))
            continue;
        values[i] += next * (utility(g, label, mask | bit) - utility(g, label, mask));
        all_permutations(g, label, mask | bit, left ^ bit, next, values);
    }
}

/* is_normal: divided so as to add up to a_in of all players. */
static void definition(const class_game *g, bool is_normal, double *values) {
    size_t all = ((size_t)1 << g->players) - 1;
    memset(values, 0, g->players * sizeof *values);
    for (uint32_t y = 0; y < g->classes; y++) {
        double sum = 0;
        for (size_t e = 0; e <= all; e++)
            if (environment_chance(g, y, e) > 0)
                all_permutations(g, y, e, class_mask(g, y), environment_chance(g, y, e), values);
        for (size_t i = 0; i < g->players; i++)
            sum += g->labels[i] == y ? values[i] : 0;
        for (size_t i = 0; is_normal && i < g->players; i++)
            if (g->labels[i] == y)
                values[i] *= g->shares[all * g->classes + y] / sum;
    }
}

/* ---- games ---- */

/* Shares of all test samples: below 1/classes each, and greater the more players are there, so that
 * the classes' sums are clearly above 0. */
static double *random_shares(size_t players, uint32_t classes, fds_rng *rng) {
    size_t masks = (size_t)1 << players;
    double *shares = need(masks * classes, sizeof *shares);
    for (size_t mask = 0; mask < masks; mask++)
        for (uint32_t y = 0; y < classes; y++)
            shares[mask * classes + y] =
                (0.4 * fds_rng_unit(rng) + 0.6 * __builtin_popcountll(mask) / (double)players) /
                classes;
    return shares;
}

/* ---- tests ---- */

static const uint32_t splits[][6] = {
    {0, 1, 0, 1, 0, 1}, {0, 0, 1, 1, 2, 2}, {2, 1, 1, 0, 1, 1}, {1, 0, 0, 0, 0, 0}};

static void values_are_those_of_the_definition(void **state) {
    (void)state;
    double worst = 0;
    for (size_t split = 0; split < COUNT(splits); split++)
        for (size_t n = 2; n <= 6; n += 2) {
            fds_rng rng = fds_rng_make(split, 3100, n, 0);
            double *shares = random_shares(n, 3, &rng), wanted[6];
            class_game g = {n, 3, splits[split], shares};
            fds_params params = params_of(IS_SLOW_BUILD ? 3000 : 20000, split);
            outcome o = run_cs(&g, &params);
            definition(&g, true, wanted);
            double tolerance = IS_SLOW_BUILD ? 0.015 : 0.005;
            expect_near(o.values, wanted, n, tolerance, "the enumerated definition");
            for (size_t i = 0; i < n; i++)
                worst = fmax(worst, fabs(o.values[i] - wanted[i]));
            free(shares);
        }
    print_message("# at most %.4f from the definition\n", worst);
}

static void errors_fall_with_the_root_of_the_orders_and_are_told(void **state) {
    (void)state;
    enum { GAMES = IS_SLOW_BUILD ? 15 : 40 };
    const size_t permutations[] = {100, 800, 6400};
    double error[3] = {0}, estimated[3] = {0};
    for (uint64_t game = 0; game < GAMES; game++) {
        fds_rng rng = fds_rng_make(game, 3101, 0, 0);
        double *shares = random_shares(6, 3, &rng), wanted[6];
        class_game g = {6, 3, splits[game % 2], shares};
        definition(&g, true, wanted);
        for (size_t k = 0; k < 3; k++) {
            fds_params params = params_of(permutations[k], game);
            outcome o = run_cs(&g, &params);
            for (size_t i = 0; i < 6; i++) {
                error[k] += (o.values[i] - wanted[i]) * (o.values[i] - wanted[i]);
                estimated[k] += o.errors[i] * o.errors[i];
            }
        }
        free(shares);
    }
    for (size_t k = 0; k < 3; k++) {
        error[k] = sqrt(error[k] / (6 * GAMES));
        estimated[k] = sqrt(estimated[k] / (6 * GAMES));
        print_message("# %zu permutations: error %.5f, standard error %.5f\n", permutations[k],
                      error[k], estimated[k]);
        assert_true(error[k] > 0.6 * estimated[k] && error[k] < 1.25 * estimated[k]);
    }
    for (size_t k = 1; k < 3; k++) /* sqrt 8 = 2.83 */
        assert_true(error[k - 1] / error[k] > 2.2 && error[k - 1] / error[k] < 3.6);
}

/* Every player adds its own share to its class: the environment scales all of a class equally, and
 * the normalisation removes it. */
static void additive_accuracies_come_back_exactly(void **state) {
    (void)state;
    const uint32_t labels[MOST] = {0, 0, 1, 1, 1, 2, 2, 0, 1, 2};
    const double wins[MOST] = {.05, .1, .02, .07, .1, .03, .15, .01, .04, .06};
    double *shares = need((1 << MOST) * 3, sizeof *shares);
    for (size_t mask = 0; mask < 1 << MOST; mask++)
        for (size_t i = 0; i < MOST; i++)
            shares[mask * 3 + labels[i]] += (double)(mask >> i & 1) * wins[i];
    class_game g = {MOST, 3, labels, shares};
    fds_params params = params_of(120, 3); /* not a whole number of rounds */
    outcome o = run_cs(&g, &params);
    expect_near(o.values, wins, MOST, 1e-12, "shares won");
    assert_int_equal(o.report.permutations, 120);
    assert_true(o.report.truncated == 0 && !o.report.has_converged);
    assert_int_equal(o.warnings, 0);
    assert_int_equal(o.asked.most, 3 * BASELINE_ROUND); /* all classes of a round at once */
    assert_int_equal(o.asked.asked, 120 * (3 + MOST) + 1);
    free(shares);
}

/* The first of class 0 answers all of it. Class 1, of one player, is too short to be cut. */
static void truncation_keeps_both_accuracies(void **state) {
    (void)state;
    uint32_t labels[MOST] = {0};
    labels[4] = 1;
    double *shares = need((1 << MOST) * 2, sizeof *shares);
    for (size_t mask = 0; mask < 1 << MOST; mask++) {
        shares[mask * 2] = (mask & ~(size_t)16) ? 0.5 : 0;
        shares[mask * 2 + 1] = (mask & 16) ? 0.4 : 0;
    }
    class_game g = {MOST, 2, labels, shares};
    fds_params params = params_of(200, 5);
    outcome whole = run_cs(&g, &params);
    params.truncate = 0.01;
    outcome cut = run_cs(&g, &params);
    for (size_t i = 0; i < MOST; i++) /* what was cut off adds nothing in truth either */
        assert_true(cut.values[i] == whole.values[i] && cut.errors[i] == whole.errors[i]);
    assert_true(whole.report.truncated == 0);
    assert_true(fabs(cut.report.truncated - 0.3) < 1e-12); /* six of nine, and one of one */
    assert_int_equal(cut.asked.asked, 200 * (2 + 2 + 6 + 1) + 1);
    free(shares);
}

/* Places near to the whole must follow each other: here every second player undoes it. */
static void truncation_wants_places_running(void **state) {
    (void)state;
    const uint32_t labels[MOST] = {0};
    double *shares = need(1 << MOST, sizeof *shares);
    for (size_t mask = 0; mask < 1 << MOST; mask++)
        shares[mask] = __builtin_popcountll(mask) % 2 ? 0.1 : 0.5;
    class_game g = {MOST, 1, labels, shares};
    fds_params params = params_of(10, 5);
    params.truncate = 0.01;
    assert_true(run_cs(&g, &params).report.truncated == 0);
    free(shares);
}

static void permutations_end_once_the_values_converge(void **state) {
    (void)state;
    const uint32_t labels[] = {0, 0, 1};
    double shares[8 * 2];
    for (size_t mask = 0; mask < 8; mask++) { /* nothing depends on permutations or environments */
        shares[mask * 2] = 0.1 * (double)(mask & 1) + 0.2 * (double)(mask >> 1 & 1);
        shares[mask * 2 + 1] = 0.5 * (double)(mask >> 2);
    }
    class_game g = {3, 2, labels, shares};
    fds_params params = params_of(1000, 1);
    params.until = 0.05;
    outcome o = run_cs(&g, &params);
    assert_true(o.report.has_converged && o.report.change < 0.05);
    assert_int_equal(o.report.permutations, 200); /* the first look at the change */
    params.until = 0;
    o = run_cs(&g, &params);
    assert_true(!o.report.has_converged);
    assert_int_equal(o.report.permutations, 1000);
}

static void seeds_decide_everything(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(3, 3102, 0, 0);
    double *shares = random_shares(6, 3, &rng);
    class_game g = {6, 3, splits[1], shares};
    fds_params params = params_of(70, 9);
    outcome a = run_cs(&g, &params), b = run_cs(&g, &params);
    params.seed = 10;
    outcome c = run_cs(&g, &params);
    assert_memory_equal(a.values, b.values, sizeof a.values);
    assert_memory_equal(a.errors, b.errors, sizeof a.errors);
    assert_memory_not_equal(a.values, c.values, sizeof a.values);
    free(shares);
}

/* ---- what may be missing ---- */

/* No test sample has label 1: its players can win nothing, and are not asked about; the others are
 * not touched. */
static void a_class_may_be_missing_from_the_test_set(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(4, 3103, 0, 0);
    double *shares = random_shares(6, 3, &rng), wanted[6];
    for (size_t mask = 0; mask < 64; mask++)
        shares[mask * 3 + 1] = 0;
    class_game g = {6, 3, splits[1], shares};
    fds_params params = params_of(2000, 2);
    untested = 1 << 1;
    outcome o = run_cs(&g, &params);
    definition(&g, true, wanted); /* NaN in class 1 */
    for (size_t i = 0; i < 6; i++)
        if (g.labels[i] == 1)
            assert_true(o.values[i] == 0 && o.errors[i] == 0);
        else
            assert_true(fabs(o.values[i] - wanted[i]) < 0.04);
    assert_int_equal(o.warnings, 1);
    expect_in(o.warning, "no test sample has the label 1: the values of its players are 0");
    assert_int_equal(o.asked.asked, 2000 * (2 + 4) + 1);
    assert_true(o.report.truncated == 0);
    untested = 0; /* tested, but never correctly classified */
    outcome never = run_cs(&g, &params);
    assert_memory_equal(o.values, never.values, sizeof o.values);
    assert_int_equal(never.warnings, 1);
    expect_in(never.warning, "the values of class 1 add up to 0");
    free(shares);
}

static void no_label_of_the_players_may_be_tested(void **state) {
    (void)state;
    double shares[64 * 3] = {0};
    class_game g = {6, 3, splits[1], shares};
    fds_params params = params_of(60, 1);
    untested = 7;
    outcome o = run_cs(&g, &params);
    untested = 0;
    for (size_t i = 0; i < 6; i++)
        assert_true(o.values[i] == 0 && o.errors[i] == 0);
    assert_int_equal(o.warnings, 3);
    assert_int_equal(o.asked.asked, 1);
    assert_true(o.report.truncated == 0);
}

static void a_class_may_be_missing_from_the_players(void **state) {
    (void)state;
    const uint32_t labels[] = {2, 0, 0, 2, 2};
    fds_rng rng = fds_rng_make(5, 3104, 0, 0);
    double *shares = random_shares(5, 4, &rng), wanted[5];
    class_game g = {5, 4, labels, shares};
    fds_params params = params_of(IS_SLOW_BUILD ? 3000 : 10000, 2);
    outcome o = run_cs(&g, &params);
    definition(&g, true, wanted);
    expect_near(o.values, wanted, 5, 0.02, "classes 1 and 3 have no players");
    assert_int_equal(o.warnings, 0);
    free(shares);
}

/* No environment then: the Shapley value of the accuracy itself, to scale. */
static void a_single_class_has_no_environment(void **state) {
    (void)state;
    const uint32_t labels[5] = {0};
    fds_rng rng = fds_rng_make(6, 3105, 0, 0);
    double *shares = random_shares(5, 1, &rng), wanted[5], exact[5], sum = 0;
    class_game g = {5, 1, labels, shares};
    definition(&g, true, wanted);
    exact_values(&(array_game){5, 1, shares}, FDS_SAMPLER_KERNEL, NULL, 1, exact);
    for (size_t i = 0; i < 5; i++)
        exact[i] *= shares[31] / (shares[31] - shares[0]);
    expect_near(wanted, exact, 5, 1e-12, "the definition itself");
    fds_params params = params_of(IS_SLOW_BUILD ? 3000 : 20000, 2);
    outcome o = run_cs(&g, &params);
    expect_near(o.values, exact, 5, 0.03, "one class");
    for (size_t i = 0; i < 5; i++)
        sum += o.values[i];
    assert_true(fabs(sum - shares[31]) < 1e-12);
    free(shares);
}

static void one_player_gets_the_accuracy_of_its_class(void **state) {
    (void)state;
    const uint32_t label = 1;
    double shares[] = {0.3, 0.1, 0.2, 0.4}; /* none, then the player */
    class_game g = {1, 2, &label, shares};
    fds_params params = params_of(10, 1);
    outcome o = run_cs(&g, &params);
    assert_true(fabs(o.values[0] - 0.4) < 1e-15 && o.errors[0] < 1e-9);
}

static void accuracies_of_nought_are_worth_nought(void **state) {
    (void)state;
    double shares[64 * 3] = {0};
    class_game g = {6, 3, splits[1], shares};
    fds_params params = params_of(120, 1);
    params.truncate = 0.01;
    params.until = 0.05;
    outcome o = run_cs(&g, &params);
    for (size_t i = 0; i < 6; i++)
        assert_true(o.values[i] == 0 && o.errors[i] == 0);
    assert_int_equal(o.warnings, 3);
}

/* Players who harm their class keep their sign: they are not divided by a negative sum. */
static void harmful_classes_are_not_turned_over(void **state) {
    (void)state;
    const uint32_t labels[] = {0, 0, 0, 1};
    double shares[16 * 2], wanted[4];
    for (size_t mask = 0; mask < 16; mask++) {
        shares[mask * 2] = 0.5 - 0.1 * (double)(mask & 1) - 0.2 * (double)(mask >> 1 & 1);
        shares[mask * 2 + 1] = 0.25 * (double)(mask >> 3);
    }
    class_game g = {4, 2, labels, shares};
    fds_params params = params_of(300, 1);
    outcome o = run_cs(&g, &params);
    definition(&g, false, wanted);
    expect_near(o.values, wanted, 3, 1e-12, "class 0, not normalised");
    assert_true(o.values[1] < o.values[0] && o.values[0] < 0);
    assert_true(fabs(o.values[3] - 0.25) < 1e-12); /* class 1 is, as ever */
    assert_int_equal(o.warnings, 1);
}

/* ---- faults ---- */

static fds_status small_run(fds_error *err) {
    double shares[64 * 3] = {0};
    class_game g = {6, 3, splits[1], shares};
    fds_params params = params_of(3, 1);
    outcome o = {.warnings = 0};
    return try_cs(&g, &params, &o, err);
}

static void faults_are_passed_on_and_leak_nothing(void **state) {
    (void)state;
    each_allocation_fails("class-wise Shapley values", small_run);
    double shares[64 * 3] = {0};
    class_game g = {6, 3, splits[1], shares};
    fds_params params = params_of(3, 1);
    params.truncate = 0.01;
    for (size_t call = 1; call <= 5; call++) { /* environments, with the class, two places, all */
        outcome o = {.asked.fail_at = call};
        fds_error err = {0};
        expect_error(try_cs(&g, &params, &o, &err), FDS_ERR_IO, &err, "must fail");
    }
    outcome o = {.is_cancelled = true};
    fds_error err = {0};
    assert_int_equal(try_cs(&g, &params, &o, &err), FDS_ERR_CANCELLED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_the_definition),
        cmocka_unit_test(errors_fall_with_the_root_of_the_orders_and_are_told),
        cmocka_unit_test(additive_accuracies_come_back_exactly),
        cmocka_unit_test(truncation_keeps_both_accuracies),
        cmocka_unit_test(truncation_wants_places_running),
        cmocka_unit_test(permutations_end_once_the_values_converge),
        cmocka_unit_test(seeds_decide_everything),
        cmocka_unit_test(a_class_may_be_missing_from_the_test_set),
        cmocka_unit_test(no_label_of_the_players_may_be_tested),
        cmocka_unit_test(a_class_may_be_missing_from_the_players),
        cmocka_unit_test(a_single_class_has_no_environment),
        cmocka_unit_test(one_player_gets_the_accuracy_of_its_class),
        cmocka_unit_test(accuracies_of_nought_are_worth_nought),
        cmocka_unit_test(harmful_classes_are_not_turned_over),
        cmocka_unit_test(faults_are_passed_on_and_leak_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
