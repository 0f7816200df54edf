/* SPDX-License-Identifier: Apache-2.0
 * What a provider earns by splitting, by enumeration against the theory of docs/splitting.md.
 *
 * Any game is a sum of unanimity games, v = sum over T of a_T [T is in the coalition]. There
 *     points   a provider A of samples gets  sum_T a_T |T n A| / |T|,  whoever else owns what
 *     player   a provider A gets             sum of a_T / (number of providers with samples in T) over
 *              the T that have samples of A
 * so that the names of A together get a_T times (names in T) / (providers in T). */
#include "fixture.h"

enum { POINTS = 12, OWN = 6, DIVIDENDS = 80 };

typedef struct {
    const fds_plan *plan;
    uint64_t set[DIVIDENDS];
    double dividend[DIVIDENDS];
} game;

static game random_game(uint64_t seed) {
    game g = {0};
    fds_rng rng = fds_rng_make(seed, 2024, 0, 0);
    for (size_t t = 0; t < DIVIDENDS; t++) {
        while (!g.set[t])
            g.set[t] = fds_rng_u64(&rng) & fds_rng_u64(&rng) & (((uint64_t)1 << POINTS) - 1);
        g.dividend[t] = (fds_rng_unit(&rng) - 0.4) / 20;
    }
    return g;
}

static fds_status read_game(void *context, unsigned worker, size_t row, size_t first, size_t count,
                            double *out, fds_error *err) {
    (void)worker, (void)first, (void)count, (void)err;
    const game *g = context;
    uint64_t s = *fds_plan_coalition(g->plan, row);
    *out = 0;
    for (size_t t = 0; t < DIVIDENDS; t++)
        *out += (s & g->set[t]) == g->set[t] ? g->dividend[t] : 0;
    return FDS_OK;
}

/* Exact values (points) of points, or of the players that groups are, each divided among its members. */
static void enumerate(game *g, const fds_groups *groups, double *values) {
    fds_plan *plan;
    fds_error err = {0};
    expect_ok(fds_plan_exact(FDS_SAMPLER_GFDS_PLUS, POINTS, groups, &plan, &err), &err);
    g->plan = plan;
    const fds_rows rows = {1, read_game, g};
    expect_ok(fds_exact(plan, &rows, 1, values, NULL, &err), &err);
    fds_plan_free(plan);
}

/* Points 0 .. OWN-1 are A's, under `names` names in turn; the others belong to three providers. */
static void owners(size_t names, uint32_t *of) {
    for (uint32_t i = 0; i < POINTS; i++)
        of[i] = i < OWN ? i % (uint32_t)names : 100 + i % 3;
}

static double sum_own(const double *values) {
    double sum = 0;
    for (size_t i = 0; i < OWN; i++)
        sum += values[i];
    return sum;
}

/* What the names of A get together as players, by dividends. */
static double theory_player(const game *g, size_t names) {
    double sum = 0;
    uint32_t of[POINTS];
    owners(names, of);
    for (size_t t = 0; t < DIVIDENDS; t++) {
        bool has[200] = {false};
        double own = 0, all = 0;
        for (size_t i = 0; i < POINTS; i++)
            if (g->set[t] >> i & 1 && !has[of[i]]) {
                has[of[i]] = true;
                all++;
                own += of[i] < 100;
            }
        sum += g->dividend[t] * own / all;
    }
    return sum;
}

static double theory_points(const game *g) {
    double sum = 0;
    for (size_t t = 0; t < DIVIDENDS; t++)
        sum += g->dividend[t] *
               (double)__builtin_popcountll(g->set[t] & (((uint64_t)1 << OWN) - 1)) /
               (double)__builtin_popcountll(g->set[t]);
    return sum;
}

static double as_players(game *g, const uint32_t *of) {
    double values[POINTS];
    fds_groups *groups;
    fds_error err = {0};
    expect_ok(fds_groups_create(of, POINTS, NULL, &groups, &err), &err);
    enumerate(g, groups, values);
    fds_groups_free(groups);
    return sum_own(values);
}

static void names_of_one_provider_get_what_the_theory_says(void **state) {
    (void)state;
    static const size_t splits[] = {1, 2, 5, 6};
    bool has_changed = false;
    for (uint64_t seed = 0; seed < 5; seed++) {
        game g = random_game(seed);
        double values[POINTS], whole = 0;
        enumerate(&g, NULL, values);
        for (size_t k = 0; k < COUNT(splits); k++) {
            uint32_t of[POINTS];
            owners(splits[k], of);
            double split = as_players(&g, of);
            whole = k == 0 ? split : whole;
            assert_true(fabs(split - theory_player(&g, splits[k])) < 1e-12);
            has_changed |= fabs(split - whole) > 1e-3;
            /* one cluster of all its names: as if it had not split */
            for (size_t i = 0; i < OWN; i++)
                of[i] = 0;
            assert_true(fabs(as_players(&g, of) - whole) < 1e-12);
            /* the sum of points: names do not enter */
            assert_true(fabs(sum_own(values) - theory_points(&g)) < 1e-12);
        }
    }
    assert_true(has_changed);
}

/* 1 unless nobody is there. */
static fds_status read_any(void *context, unsigned worker, size_t row, size_t first, size_t count,
                           double *out, fds_error *err) {
    (void)worker, (void)first, (void)count, (void)err;
    *out = *fds_plan_coalition(context, row) != 0;
    return FDS_OK;
}

/* Substitutes, of which any one is enough: against two others, k names get k / (k + 2) together. */
static void names_of_substitutes_take_more_and_more(void **state) {
    (void)state;
    for (size_t names = 1; names <= 10; names++) {
        fds_plan *plan;
        double values[POINTS], sum = 0;
        fds_error err = {0};
        expect_ok(fds_plan_exact(FDS_SAMPLER_KERNEL, names + 2, NULL, &plan, &err), &err);
        const fds_rows rows = {1, read_any, plan};
        expect_ok(fds_exact(plan, &rows, 1, values, NULL, &err), &err);
        for (size_t i = 0; i < names; i++)
            sum += values[i];
        assert_true(fabs(sum - (double)names / (double)(names + 2)) < 1e-12);
        fds_plan_free(plan);
    }
}

/* ---- clusters from coalitions of single players ---- */

enum { CLUSTER = 3, PARTS = POINTS - CLUSTER + 1 };

/* Players 0 .. CLUSTER-1 as one, player 0 of PARTS, by least squares on those rows of a plan that have
 * all of them or none. */
static void value_joined(const game *g, fds_sampler sampler, size_t coalitions, uint64_t seed,
                         double *values, double *errors) {
    fds_plan *plan, *joined;
    fds_error err = {0};
    fds__ls_prepared *solver;
    uint32_t part_of[POINTS], rows[(size_t)1 << POINTS];
    double v[(size_t)1 << POINTS] = {0};
    const fds_ls_params plain = {.adjust = FDS_ADJUST_NONE};
    for (size_t i = 0; i < POINTS; i++)
        part_of[i] = i < CLUSTER ? 0 : (uint32_t)(i - CLUSTER + 1);
    expect_ok(fds_plan_sample(sampler, POINTS, NULL, coalitions, seed, &plan, &err), &err);
    expect_ok(fds__plan_join(plan, part_of, PARTS, &joined, rows, &err), &err);
    for (size_t row = 0; row < fds_plan_rows(joined); row++) {
        uint64_t s = *fds_plan_coalition(joined, row), all = ((uint64_t)1 << CLUSTER) - 1;
        assert_int_equal(s >> 1 << CLUSTER | (s & 1 ? all : 0),
                         *fds_plan_coalition(plan, rows[row]));
        game whole = *g;
        whole.plan = plan;
        expect_ok(read_game(&whole, 0, rows[row], 0, 1, &v[row], &err), &err);
    }
    expect_ok(fds__ls_prepared_create(joined, &plain, &(fds_ls_report){0}, &solver, &err), &err);
    expect_ok(fds__ls_prepared_solve(solver, v, 1, values, errors, &err), &err);
    fds__ls_prepared_free(solver);
    fds_plan_free(joined);
    fds_plan_free(plan);
}

/* The value of the cluster in the game of parts, by enumeration. */
static double one_player(game *g, double *truth) {
    uint32_t of[POINTS];
    fds_groups *groups;
    fds_error err = {0};
    double one = 0;
    for (uint32_t i = 0; i < POINTS; i++)
        of[i] = i < CLUSTER ? 0 : i;
    expect_ok(fds_groups_create(of, POINTS, NULL, &groups, &err), &err);
    enumerate(g, groups, truth);
    fds_groups_free(groups);
    for (size_t i = 0; i < CLUSTER; i++)
        one += truth[i];
    return one;
}

static void all_coalitions_value_a_cluster_as_one_exactly(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        game g = random_game(seed);
        double truth[POINTS], values[PARTS], errors[PARTS], one = one_player(&g, truth);
        value_joined(&g, FDS_SAMPLER_LEVERAGE, ((size_t)1 << POINTS) - 2, seed, values, errors);
        assert_true(fabs(values[0] - one) < 1e-12 && errors[0] < 1e-12);
        for (size_t p = 1; p < PARTS; p++)
            assert_true(fabs(values[p] - truth[p + CLUSTER - 1]) < 1e-12 && errors[p] < 1e-12);
    }
}

static void a_plan_that_lacks_a_coalition_of_the_parts_is_refused(void **state) {
    (void)state;
    fds_plan *plan, *joined = NULL;
    fds_error err = {0};
    uint32_t part_of[POINTS], rows[(size_t)1 << POINTS];
    for (uint32_t i = 0; i < POINTS; i++)
        part_of[i] = i / 2;
    expect_ok(fds_plan_sample(FDS_SAMPLER_LEVERAGE, POINTS, NULL, 1500, 1, &plan, &err), &err);
    assert_int_equal(fds__plan_join(plan, part_of, POINTS / 2, &joined, rows, &err), FDS_ERR_USAGE);
    assert_non_null(strstr(err.text, "every coalition"));
    assert_null(joined);
    fds_plan_free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_one_provider_get_what_the_theory_says),
        cmocka_unit_test(names_of_substitutes_take_more_and_more),
        cmocka_unit_test(all_coalitions_value_a_cluster_as_one_exactly),
        cmocka_unit_test(a_plan_that_lacks_a_coalition_of_the_parts_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
