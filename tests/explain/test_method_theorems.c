/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's theorems, on games of few players whose values are enumerated:
 *   1  values of games that differ by less than epsilon differ by 2 epsilon at the most (AFDS)
 *   2  where groups do not interact, a group's value divided evenly is off by at most
 *      (1 - 1/|G|) epsilon, epsilon being what values within the group differ by (GFDS+)
 * and the lemma under the second: a group's value is the sum of its members'. Each bound is also
 * reached, so that none of them is true for want of trying. */
#include "../game/fixture.h"
#include "utility/utility.h"

enum { MOST_PLAYERS = 8, GAMES = 40 };

static void shapley(size_t n, const double *v, double *values) {
    const array_game game = {n, 1, v};
    exact_values(&game, FDS_SAMPLER_KERNEL, NULL, 1, values);
}

/* ---- theorem 1 ---- */

static double greatest_distance(const double *a, const double *b, size_t count) {
    double greatest = 0;
    for (size_t i = 0; i < count; i++)
        greatest = fmax(greatest, fabs(a[i] - b[i]));
    return greatest;
}

static void games_alike_have_values_alike(void **state) {
    (void)state;
    for (uint64_t game = 0; game < GAMES; game++) {
        fds_rng rng = fds_rng_make(game, 4000, 0, 0);
        size_t n = 2 + game % (MOST_PLAYERS - 1), all = (size_t)1 << n;
        double epsilon = pow(10, -(double)(game % 5)), of_v[MOST_PLAYERS], of_a[MOST_PLAYERS];
        double *v = random_values(all, &rng), *a = random_values(all, &rng);
        for (size_t s = 0; s < all; s++)
            a[s] = v[s] + 0.999 * epsilon * a[s];
        shapley(n, v, of_v);
        shapley(n, a, of_a);
        assert_true(greatest_distance(v, a, all) < epsilon);
        assert_true(greatest_distance(of_v, of_a, n) <= 2 * epsilon);
        free(v);
        free(a);
    }
}

/* A game that is off upwards with a player and downwards without it is off by all of 2 epsilon. */
static void twice_epsilon_is_reached(void **state) {
    (void)state;
    const size_t n = 6, all = (size_t)1 << n;
    const double epsilon = 0.125;
    fds_rng rng = fds_rng_make(1, 4001, 0, 0);
    double *v = random_values(all, &rng), *a = need(all, sizeof *a);
    double of_v[MOST_PLAYERS], of_a[MOST_PLAYERS];
    for (size_t player = 0; player < n; player++) {
        for (size_t s = 0; s < all; s++)
            a[s] = v[s] + (s >> player & 1 ? epsilon : -epsilon);
        shapley(n, v, of_v);
        shapley(n, a, of_a);
        assert_true(fabs(of_a[player] - of_v[player] - 2 * epsilon) < 1e-14);
        assert_true(greatest_distance(of_v, of_a, n) <= 2 * epsilon + 1e-14);
    }
    free(v);
    free(a);
}

/* What every coalition of few players is worth, for one input and each label: (2^players, 2). */
static double *enumerate(const char *kind, const fds_dataset *ds, const fds_players *players) {
    fds__utility_params params = fds__utility_params_default();
    const uint32_t input = (uint32_t)fds_players_count(players);
    size_t all = (size_t)1 << input;
    double *v = need(all * 2, sizeof *v);
    fds_utility *value = NULL;
    fds_error err;
    params.kind = kind;
    params.network = "fc:classes";
    params.train.lr = 1e-2f;
    params.beta = 1;
    expect_ok(fds__utility_create(&params, ds, players, ds, &input, 1, 1, &value, &err), &err);
    for (uint64_t s = 0; s < all; s++) {
        float probs[2];
        expect_ok(fds_utility_eval(value, 0, &s, probs, &err), &err);
        v[2 * s] = (double)probs[0], v[2 * s + 1] = (double)probs[1];
    }
    fds_utility_free(value);
    return v;
}

/* Networks trained for a few epochs instead of until they have converged: the more epochs, the
 * nearer their values, and always within the bound. */
static void sub_models_trained_shortly_are_within_the_bound(void **state) {
    (void)state;
    enum { N = 6, ALL = 1 << N };
    static const char *const kinds[] = {"retrain:2", "retrain:10", "retrain:50"};
    float x[(N + 1) * 3];
    uint16_t labels[N + 1];
    fds_rng rng = fds_rng_make(2, 4002, 0, 0);
    fds_dataset *ds = NULL;
    fds_players *players = NULL;
    fds_error err;
    for (size_t i = 0; i < COUNT(x); i++)
        x[i] = (float)(fds_rng_normal(&rng) + (double)(i / 3 % 2));
    for (size_t i = 0; i <= N; i++)
        labels[i] = i % 2;
    expect_ok(fds__dataset_create(N + 1, (fds_shape){3, 1, 1}, NULL, x, labels, 2, NULL, &ds, &err),
              &err);
    expect_ok(fds_players_points(ds, NULL, N, &players, &err), &err);
    double *v = enumerate("retrain", ds, players), of_v[N * 2], of_a[N * 2], last = 1;
    const array_game game = {N, 2, v};
    exact_values(&game, FDS_SAMPLER_KERNEL, NULL, 1, of_v);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        double *a = enumerate(kinds[k], ds, players);
        const array_game approximate = {N, 2, a};
        exact_values(&approximate, FDS_SAMPLER_KERNEL, NULL, 1, of_a);
        double epsilon = greatest_distance(v, a, ALL * 2);
        double miss = greatest_distance(of_v, of_a, N * 2);
        assert_true(miss > 0 && miss <= 2 * epsilon);
        assert_true(epsilon < last);
        last = epsilon;
        free(a);
    }
    free(v);
    fds_players_free(players);
    fds_dataset_free(ds);
}

/* ---- theorem 2 ---- */

/* Groups that do not interact: v(S) = v(0) + sum of f_g(S and G_g), each f_g any function. */
static double *apart(size_t n, const fds_groups *groups, fds_rng *rng) {
    size_t all = (size_t)1 << n;
    double *v = need(all, sizeof *v), empty = uniform(rng);
    double *f = need(all, sizeof *f);
    for (size_t s = 0; s < all; s++)
        v[s] = empty;
    for (size_t g = 0; g < fds_groups_count(groups); g++) {
        const uint32_t *members;
        size_t count = fds_groups_members(groups, g, &members), mask = 0;
        for (size_t i = 0; i < count; i++)
            mask |= (size_t)1 << members[i];
        for (size_t s = 1; s < all; s++)
            f[s] = uniform(rng);
        for (size_t s = 0; s < all; s++)
            v[s] += f[s & mask];
    }
    free(f);
    return v;
}

/* Values of single players, and those of groups divided evenly. */
static void both_values(size_t n, const double *v, const fds_groups *groups, double *single,
                        double *even) {
    const array_game game = {n, 1, v};
    exact_values(&game, FDS_SAMPLER_KERNEL, NULL, 1, single);
    exact_values(&game, FDS_SAMPLER_GFDS_PLUS, groups, 1, even);
}

/* How far values within a group are apart, and how far the evenly divided ones are off. */
static void group_distances(const fds_groups *groups, size_t g, const double *single,
                            const double *even, double *spread, double *miss) {
    const uint32_t *members;
    size_t count = fds_groups_members(groups, g, &members);
    *spread = *miss = 0;
    for (size_t i = 0; i < count; i++) {
        *miss = fmax(*miss, fabs(even[members[i]] - single[members[i]]));
        for (size_t j = 0; j < i; j++)
            *spread = fmax(*spread, fabs(single[members[i]] - single[members[j]]));
    }
}

static fds_groups *some_groups(size_t n, fds_rng *rng) {
    uint32_t group_of[MOST_PLAYERS];
    random_partition(rng, n, 2 + fds_rng_below(rng, n - 1), group_of);
    return make_groups(group_of, n);
}

/* Looks at every group of games whose groups do not interact, with values of both kinds. */
static void each_group_apart(uint64_t purpose,
                             void (*look)(const fds_groups *groups, size_t g, const double *single,
                                          const double *even)) {
    for (uint64_t game = 0; game < GAMES; game++) {
        fds_rng rng = fds_rng_make(game, purpose, 0, 0);
        size_t n = 3 + game % (MOST_PLAYERS - 2);
        fds_groups *groups = some_groups(n, &rng);
        double *v = apart(n, groups, &rng), single[MOST_PLAYERS], even[MOST_PLAYERS];
        both_values(n, v, groups, single, even);
        for (size_t g = 0; g < fds_groups_count(groups); g++)
            look(groups, g, single, even);
        free(v);
        fds_groups_free(groups);
    }
}

static void expect_sum(const fds_groups *groups, size_t g, const double *single,
                       const double *even) {
    const uint32_t *members;
    double sum = 0, group = 0;
    size_t count = fds_groups_members(groups, g, &members);
    for (size_t i = 0; i < count; i++) {
        sum += single[members[i]];
        group += even[members[i]];
        assert_true(even[members[i]] == even[members[0]]);
    }
    assert_true(fabs(sum - group) < 1e-12);
}

static void a_groups_value_is_the_sum_of_its_members(void **state) {
    (void)state;
    each_group_apart(4003, expect_sum);
}

static void expect_bound(const fds_groups *groups, size_t g, const double *single,
                         const double *even) {
    const uint32_t *members;
    double spread, miss, count = (double)fds_groups_members(groups, g, &members);
    group_distances(groups, g, single, even, &spread, &miss);
    assert_true(miss <= (1 - 1 / count) * spread + 1e-12);
}

static void even_shares_are_near_where_groups_are_apart(void **state) {
    (void)state;
    each_group_apart(4004, expect_bound);
}

/* One member who is worth more than all others, who are alike. */
static void the_groups_bound_is_reached(void **state) {
    (void)state;
    enum { N = 7 };
    static const uint32_t group_of[N] = {0, 0, 0, 0, 1, 1, 1};
    static const double worth[N] = {0.75, 0.25, 0.25, 0.25, 0.125, 0.125, 0.5};
    fds_groups *groups = make_groups(group_of, N);
    double v[1 << N], single[N], even[N], spread, miss;
    for (size_t s = 0; s < COUNT(v); s++) {
        v[s] = -0.5;
        for (size_t i = 0; i < N; i++)
            v[s] += s >> i & 1 ? worth[i] : 0;
    }
    both_values(N, v, groups, single, even);
    group_distances(groups, 0, single, even, &spread, &miss);
    assert_true(fabs(spread - 0.5) < 1e-14 && fabs(miss - 0.75 * 0.5) < 1e-14);
    group_distances(groups, 1, single, even, &spread, &miss);
    assert_true(fabs(spread - 0.375) < 1e-14 && fabs(miss - 2.0 / 3 * 0.375) < 1e-14);
    fds_groups_free(groups);
}

/* Without that assumption it is not true: a pair across groups of different size is shared in
 * halves by the groups, and not by their members. */
static void groups_that_interact_may_be_off(void **state) {
    (void)state;
    enum { N = 4 };
    static const uint32_t group_of[N] = {0, 0, 0, 1};
    fds_groups *groups = make_groups(group_of, N);
    double v[1 << N], single[N], even[N], spread, miss;
    for (size_t s = 0; s < COUNT(v); s++)
        v[s] = s & 8 && s & 7; /* the last one, and any of the others */
    both_values(N, v, groups, single, even);
    group_distances(groups, 0, single, even, &spread, &miss);
    assert_true(spread < 1e-14 && miss > 0.05);
    fds_groups_free(groups);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(games_alike_have_values_alike),
        cmocka_unit_test(twice_epsilon_is_reached),
        cmocka_unit_test(sub_models_trained_shortly_are_within_the_bound),
        cmocka_unit_test(a_groups_value_is_the_sum_of_its_members),
        cmocka_unit_test(even_shares_are_near_where_groups_are_apart),
        cmocka_unit_test(the_groups_bound_is_reached),
        cmocka_unit_test(groups_that_interact_may_be_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
