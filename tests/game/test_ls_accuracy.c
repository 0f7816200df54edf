/* SPDX-License-Identifier: Apache-2.0
 * What the estimates are worth, on games whose exact values are known: standard errors that hold
 * the truth as often as they say, and errors that vanish as coalitions become many. */
#include "ls_fixture.h"

enum { N = 10, COLUMNS = 4, GROUPS = 3, VALUES = N * COLUMNS };

typedef struct {
    const char *name;
    double *v, exact[VALUES];
    array_game game;
} subject;

/* Values that nothing can tell beforehand, and values like a model's. */
static subject make_subject(bool is_random) {
    fds_rng rng = fds_rng_make(1, 3200, is_random, 0);
    subject s = {.name = is_random ? "random game" : "rough game"};
    s.v = is_random ? random_values(COLUMNS << N, &rng) : rough_values(N, COLUMNS, 0.1, &rng);
    s.game = (array_game){N, COLUMNS, s.v};
    exact_values(&s.game, FDS_SAMPLER_KERNEL, NULL, 1, s.exact);
    return s;
}

/* How many of the values, over many plans, lie within 1.96 standard errors of the truth. */
typedef struct {
    size_t held, all;
} tally;

static void count_held(const fds_plan *plan, const fds_rows *rows, const fds_ls_params *params,
                       const double *exact, tally *t) {
    size_t count = fds_plan_players(plan) * rows->columns;
    double *values = need(2 * count, sizeof *values), *errors = values + count;
    solve_rows(plan, rows, params, 1, values, errors);
    for (size_t i = 0; i < count; i++)
        t->held += fabs(values[i] - exact[i]) <= 1.96 * errors[i];
    t->all += count;
    free(values);
}

static double share_held(const tally *t, const char *game, size_t coalitions, fds_sampler sampler,
                         fds_adjust adjust) {
    double share = (double)t->held / (double)t->all;
    print_message("# %s, %zu %s coalitions, %s: %.3f within 1.96 errors\n", game, coalitions,
                  sampler_names[sampler], adjust_names[adjust], share);
    return share;
}

/* Small games, of whose coalitions the leverage plans have a good part. In a random game no
 * coalition tells anything of another. */
static void errors_of_small_games_hold_the_truth(void **state) {
    (void)state;
    fds_groups *groups = groups_in_turn(N, GROUPS);
    for (int is_random = 0; is_random < 2; is_random++) {
        subject s = make_subject(is_random);
        for (fds_sampler sampler = FDS_SAMPLER_PAIRED; sampler <= FDS_SAMPLER_LEVERAGE; sampler++)
            for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++) {
                tally t = {0};
                for (uint64_t seed = 0; seed < (IS_SLOW_BUILD ? 50 : 200); seed++) {
                    fds_plan *plan = sampled_plan(sampler, N, NULL, 200, seed);
                    array_context context = {&s.game, plan};
                    fds_rows rows = array_rows(&context);
                    fds_ls_params params = {.adjust = adjust, .groups = groups};
                    count_held(plan, &rows, &params, s.exact, &t);
                    fds_plan_free(plan);
                }
                double share = share_held(&t, s.name, 200, sampler, adjust);
                assert_true(share >= 0.9 && share <= 0.99);
            }
        free(s.v);
    }
    fds_groups_free(groups);
}

/* ---- a game of many players with known values ---- */

enum { MANY = 40, TEAMS = 200, MEMBERS = 4 };

/* A team is worth something when all of its members take part: they share it. */
typedef struct {
    uint64_t team[TEAMS];
    double worth[TEAMS], exact[MANY];
    const fds_plan *plan;
} teams;

static teams make_teams(void) {
    teams t = {.plan = NULL};
    fds_rng rng = fds_rng_make(2, 3200, 0, 0);
    for (size_t j = 0; j < TEAMS; j++) {
        size_t count = 0;
        for (size_t k = 0; k <= j % MEMBERS; k++)
            t.team[j] |= (uint64_t)1 << fds_rng_below(&rng, MANY);
        for (size_t i = 0; i < MANY; i++)
            count += bit(t.team[j], i);
        t.worth[j] = uniform(&rng) + 0.3;
        for (size_t i = 0; i < MANY; i++)
            t.exact[i] += bit(t.team[j], i) ? t.worth[j] / (double)count : 0;
    }
    return t;
}

static fds_status read_teams(void *context, unsigned worker, size_t row, size_t first, size_t count,
                             double *out, fds_error *err) {
    (void)worker, (void)first, (void)count, (void)err;
    const teams *t = context;
    uint64_t s = fds_plan_coalition(t->plan, row)[0];
    *out = 0;
    for (size_t j = 0; j < TEAMS; j++)
        *out += (s & t->team[j]) == t->team[j] ? t->worth[j] : 0;
    return FDS_OK;
}

static void errors_hold_the_truth_as_often_as_they_say(void **state) {
    (void)state;
    enum { COALITIONS = 400 };
    teams game = make_teams();
    fds_rows rows = {1, read_teams, &game};
    fds_groups *groups = groups_in_turn(MANY, GROUPS);
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_LEVERAGE; sampler++)
        for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++) {
            tally t = {0};
            for (uint64_t seed = 0; seed < (IS_SLOW_BUILD ? 20 : 100); seed++) {
                fds_plan *plan = sampled_plan(sampler, MANY, NULL, COALITIONS, seed);
                game.plan = plan;
                fds_ls_params params = {.adjust = adjust, .groups = groups};
                count_held(plan, &rows, &params, game.exact, &t);
                fds_plan_free(plan);
            }
            double share = share_held(&t, "40 players", COALITIONS, sampler, adjust);
            assert_true(share >= 0.9 && share <= 0.995);
        }
    fds_groups_free(groups);
}

/* ---- many coalitions ---- */

/* Root of the mean squared error over some plans. */
static double error_of(const subject *s, fds_adjust adjust, size_t count) {
    enum { DRAWS = 10 };
    fds_groups *groups = groups_in_turn(N, GROUPS);
    double sum = 0;
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        double values[VALUES];
        fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, count, seed);
        solve_array(plan, &s->game, &(fds_ls_params){.adjust = adjust, .groups = groups}, values,
                    NULL);
        double off = root_mean_square(values, s->exact, VALUES);
        sum += off * off / DRAWS;
        fds_plan_free(plan);
    }
    fds_groups_free(groups);
    return sqrt(sum);
}

static void errors_fall_as_coalitions_become_many(void **state) {
    (void)state;
    static const size_t counts[] = {40, 100, 250, 600, (1 << N) - 2};
    for (int is_random = 0; is_random < 2; is_random++) {
        subject s = make_subject(is_random);
        for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++) {
            double off[COUNT(counts)];
            for (size_t i = 0; i < COUNT(counts); i++)
                off[i] = error_of(&s, adjust, counts[i]);
            print_message("# %s, %s: error %.4f %.4f %.4f %.4f, with all coalitions %.1e\n", s.name,
                          adjust_names[adjust], off[0], off[1], off[2], off[3], off[4]);
            for (size_t i = 1; i < COUNT(counts); i++)
                assert_true(off[i] < off[i - 1]);
            assert_true(off[3] < off[0] && off[4] < 1e-10);
        }
        free(s.v);
    }
}

/* On a game like a model's, what is fitted besides is worth having. */
static void shrinking_and_counts_help_where_coalitions_are_few(void **state) {
    (void)state;
    subject s = make_subject(false);
    double plain = error_of(&s, FDS_ADJUST_NONE, 60), shrink = error_of(&s, FDS_ADJUST_SHRINK, 60),
           counts = error_of(&s, FDS_ADJUST_COUNTS, 60);
    print_message("# rough game, 60 coalitions: error %.4f plain, %.4f shrink, %.4f counts\n",
                  plain, shrink, counts);
    assert_true(shrink < plain && counts < plain);
    free(s.v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_small_games_hold_the_truth),
        cmocka_unit_test(errors_hold_the_truth_as_often_as_they_say),
        cmocka_unit_test(errors_fall_as_coalitions_become_many),
        cmocka_unit_test(shrinking_and_counts_help_where_coalitions_are_few),
    };
    return cmocka_run_group_tests_name("game/ls_accuracy", tests, NULL, NULL);
}
