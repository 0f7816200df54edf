/* SPDX-License-Identifier: Apache-2.0
 * The surrogate game: as much of it is taken off as is of use, and its values are added again. */
#include "ls_fixture.h"

enum { N = 9, COLUMNS = 3, VALUES = N * COLUMNS, MASKS = 1 << N };

typedef struct {
    double *v, exact[VALUES];
    array_game game;
} known;

static known make_known(double *v) {
    known k = {.v = v, .game = {N, COLUMNS, v}};
    exact_values(&k.game, FDS_SAMPLER_KERNEL, NULL, 1, k.exact);
    return k;
}

/* Values like a model's, another for each number. */
static double *game_values(uint64_t number) {
    fds_rng rng = fds_rng_make(1, 3300, number, 0);
    return rough_values(N, COLUMNS, 0.1, &rng);
}

static fds_ls_report solve_with(const fds_plan *plan, const array_game *game, fds_adjust adjust,
                                const known *surrogate, double *values, double *errors) {
    array_context of_surrogate = {&surrogate->game, plan};
    fds_rows control = array_rows(&of_surrogate);
    fds_groups *groups = groups_in_turn(N, 3);
    fds_ls_params params = {.adjust = adjust,
                            .groups = groups,
                            .control = &control,
                            .control_values = surrogate->exact};
    fds_ls_report report = solve_array(plan, game, &params, values, errors);
    fds_groups_free(groups);
    return report;
}

static void each_plan_and_adjust(void (*run)(const fds_plan *, fds_adjust)) {
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_LEVERAGE; sampler++)
        for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_COUNTS; adjust++) {
            fds_plan *plan = sampled_plan(sampler, N, NULL, 80, 2);
            run(plan, adjust);
            fds_plan_free(plan);
        }
}

static void check_same_game(const fds_plan *plan, fds_adjust adjust) {
    known k = make_known(game_values(0));
    double values[VALUES], errors[VALUES];
    fds_ls_report report = solve_with(plan, &k.game, adjust, &k, values, errors);
    assert_true(fabs(report.control - 1) <= 1e-6);
    assert_true(fabs(report.explained - 1) <= 1e-6);
    expect_near(values, k.exact, VALUES, 1e-9, "the game is its own surrogate");
    assert_true(most(errors, VALUES) <= 1e-6);
    free(k.v);
}

static void the_game_itself_gives_its_own_values(void **state) {
    (void)state;
    each_plan_and_adjust(check_same_game);
}

static void check_half(const fds_plan *plan, fds_adjust adjust) {
    known k = make_known(game_values(0));
    double *half = need(MASKS * COLUMNS, sizeof *half), values[VALUES], errors[VALUES];
    for (size_t i = 0; i < MASKS * COLUMNS; i++)
        half[i] = 0.25 - 0.5 * k.v[i]; /* what is constant is nobody's */
    array_game game = {N, COLUMNS, half};
    fds_ls_report report = solve_with(plan, &game, adjust, &k, values, errors);
    assert_true(fabs(report.control + 0.5) <= 1e-6);
    for (size_t i = 0; i < VALUES; i++)
        assert_true(fabs(values[i] + 0.5 * k.exact[i]) <= 1e-9);
    free(half);
    free(k.v);
}

static void any_multiple_of_a_known_game_is_known(void **state) {
    (void)state;
    each_plan_and_adjust(check_half);
}

/* Noise of its own: where it seems to be of use that is chance. */
static void an_unrelated_surrogate_is_left_alone(void **state) {
    (void)state;
    enum { SEEDS = 10 };
    double share = 0, change = 0, error = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        fds_rng rng = fds_rng_make(2, 3300, seed, 0);
        known k = make_known(game_values(seed)),
              other = make_known(random_values(MASKS * COLUMNS, &rng));
        double with[VALUES], without[VALUES], errors[VALUES];
        fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 400, seed);
        fds_ls_report report = solve_with(plan, &k.game, FDS_ADJUST_NONE, &other, with, errors);
        solve_array(plan, &k.game, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, without, NULL);
        share = fmax(share, fabs(report.control));
        change = fmax(change, root_mean_square(with, without, VALUES));
        for (size_t i = 0; i < VALUES; i++)
            error += errors[i] / (VALUES * SEEDS);
        fds_plan_free(plan);
        free(k.v);
        free(other.v);
    }
    print_message("# unrelated surrogate: share at most %.4f, values change by at most %.5f, their "
                  "errors are %.5f\n",
                  share, change, error);
    assert_true(share < 0.15); /* its own values are ten times as rough */
    assert_true(change < error / 5);
}

/* A surrogate that is near helps. */
static void a_related_surrogate_lessens_the_error(void **state) {
    (void)state;
    enum { SEEDS = 10 };
    double plain = 0, helped = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        fds_rng rng = fds_rng_make(3, 3300, seed, 0);
        known k = make_known(game_values(seed));
        double *near = need(MASKS * COLUMNS, sizeof *near), with[VALUES], without[VALUES];
        for (size_t i = 0; i < MASKS * COLUMNS; i++)
            near[i] = 2 * k.v[i] + 0.05 * uniform(&rng);
        known surrogate = make_known(near);
        fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 80, seed);
        solve_with(plan, &k.game, FDS_ADJUST_NONE, &surrogate, with, NULL);
        solve_array(plan, &k.game, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, without, NULL);
        helped += root_mean_square(with, k.exact, VALUES) / SEEDS;
        plain += root_mean_square(without, k.exact, VALUES) / SEEDS;
        fds_plan_free(plan);
        free(k.v);
        free(near);
    }
    print_message("# surrogate that is near: error %.5f, without it %.5f\n", helped, plain);
    assert_true(helped < plain / 2);
}

/* phi(v) = phi(v - share w) + share phi(w), and the errors are those of the first. */
static void check_additivity(const fds_plan *plan, fds_adjust adjust) {
    if (adjust !=
        FDS_ADJUST_NONE) /* there the strengths are chosen for v, not for the difference */
        return;
    known k = make_known(game_values(1)), other = make_known(game_values(2));
    double values[VALUES], errors[VALUES], of_rest[VALUES], errors_of_rest[VALUES];
    fds_ls_report report = solve_with(plan, &k.game, adjust, &other, values, errors);
    for (size_t i = 0; i < MASKS * COLUMNS; i++)
        k.v[i] -= report.control * other.v[i];
    solve_array(plan, &k.game, &(fds_ls_params){.adjust = adjust}, of_rest, errors_of_rest);
    for (size_t i = 0; i < VALUES; i++)
        of_rest[i] += report.control * other.exact[i];
    expect_near(values, of_rest, VALUES, 1e-13, "difference and surrogate");
    expect_near(errors, errors_of_rest, VALUES, 1e-13, "errors of the difference");
    free(k.v);
    free(other.v);
}

static void values_are_those_of_the_difference_and_of_the_surrogate(void **state) {
    (void)state;
    each_plan_and_adjust(check_additivity);
}

/* Least squares predict an additive surrogate without error: it can be of no use, and rounding
 * must not be taken for one. Likewise one that is constant. */
static void check_additive_surrogate(const fds_plan *plan, fds_adjust adjust) {
    for (int is_constant = 0; is_constant < 2; is_constant++) {
        double *w = need(MASKS * COLUMNS, sizeof *w), with[VALUES], without[VALUES];
        for (size_t mask = 0; mask < MASKS; mask++)
            for (size_t c = 0; c < COLUMNS; c++) {
                w[mask * COLUMNS + c] = 1.0 / 3;
                for (size_t i = 0; !is_constant && i < N; i++)
                    w[mask * COLUMNS + c] += bit(mask, i) ? 0.1 + 0.7 * (double)(i % 3) : 0;
            }
        known k = make_known(game_values(1)), other = make_known(w);
        fds_groups *groups = groups_in_turn(N, 3);
        fds_ls_report report = solve_with(plan, &k.game, adjust, &other, with, NULL);
        solve_array(plan, &k.game, &(fds_ls_params){.adjust = adjust, .groups = groups}, without,
                    NULL);
        if (!(fabs(report.control) < 1e3))
            fail_msg("%s: the share of an additive surrogate is %g", adjust_names[adjust],
                     report.control);
        expect_near(with, without, VALUES, 1e-9, "additive surrogate");
        fds_groups_free(groups);
        free(k.v);
        free(w);
    }
}

static void an_additive_surrogate_changes_nothing(void **state) {
    (void)state;
    each_plan_and_adjust(check_additive_surrogate);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_game_itself_gives_its_own_values),
        cmocka_unit_test(any_multiple_of_a_known_game_is_known),
        cmocka_unit_test(an_unrelated_surrogate_is_left_alone),
        cmocka_unit_test(a_related_surrogate_lessens_the_error),
        cmocka_unit_test(values_are_those_of_the_difference_and_of_the_surrogate),
        cmocka_unit_test(an_additive_surrogate_changes_nothing),
    };
    return cmocka_run_group_tests_name("game/ls_control", tests, NULL, NULL);
}
