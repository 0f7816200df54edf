/* SPDX-License-Identifier: Apache-2.0
 * Groups, the paper's group-wise values against its formulas, and its two theorems. */
#include "fixture.h"

static size_t count_of(size_t mask) { return (size_t)__builtin_popcountll(mask); }

static double choose(size_t n, size_t k) {
    double c = 1;
    for (size_t i = 1; i <= k; i++)
        c = c * (double)(n - k + i) / (double)i;
    return c;
}

/* ---- partitions ---- */

static void groups_are_numbered_by_their_first_player(void **state) {
    (void)state;
    const uint32_t group_of[] = {7, UINT32_MAX, 7, 0, UINT32_MAX, 7};
    fds_groups *groups = make_groups(group_of, 6);
    static const uint32_t wanted[] = {0, 1, 0, 2, 1, 0};
    static const uint32_t members[3][3] = {{0, 2, 5}, {1, 4}, {3}};
    static const size_t sizes[] = {3, 2, 1};
    assert_int_equal(fds_groups_count(groups), 3);
    assert_int_equal(fds_groups_players(groups), 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(fds_groups_of(groups, i), wanted[i]);
    for (size_t g = 0; g < 3; g++) {
        const uint32_t *got;
        assert_int_equal(fds_groups_members(groups, g, &got), sizes[g]);
        assert_memory_equal(got, members[g], sizes[g] * sizeof *got);
    }
    assert_string_equal(fds_groups_name(groups, 0), "group 0");
    assert_string_equal(fds_groups_name(groups, 2), "group 2");
    fds_groups_free(groups);
}

static void names_go_with_the_numbers_given(void **state) {
    (void)state;
    const uint32_t group_of[] = {2, 0, 2, 0};
    const char *names[] = {"cats", NULL, "dogs"}; /* nobody is in 1: its name is not asked for */
    char dogs[] = "dogs";
    names[2] = dogs;
    fds_groups *groups, *copy;
    fds_error err;
    expect_ok(fds_groups_create(group_of, 4, names, &groups, &err), &err);
    dogs[0] = 'h'; /* the names were copied */
    expect_ok(fds__groups_copy(groups, &copy, &err), &err);
    fds_groups_free(groups);
    assert_string_equal(fds_groups_name(copy, 0), "dogs");
    assert_string_equal(fds_groups_name(copy, 1), "cats");
    assert_int_equal(fds_groups_of(copy, 3), 1);
    fds_groups_free(copy);
}

static void groups_out_of_range_are_nobody(void **state) {
    (void)state;
    const uint32_t *members, group_of[] = {0, 1};
    fds_groups *groups = make_groups(group_of, 2);
    assert_int_equal(fds_groups_of(groups, 2), UINT32_MAX);
    assert_int_equal(fds_groups_members(groups, 2, &members), 0);
    assert_string_equal(fds_groups_name(groups, 2), "?");
    fds_groups_free(groups);
    fds_groups_free(NULL);
    fds_error err;
    expect_error(fds_groups_create(group_of, 0, NULL, &groups, &err), FDS_ERR_USAGE, &err,
                 "at least");
    expect_error(fds_groups_create(group_of, FDS__MAX_PLAYERS + 1, NULL, &groups, &err),
                 FDS_ERR_LIMIT, &err, "1048577 players");
}

static fds_status create(fds_error *err) {
    static const uint32_t group_of[] = {3, 1, 3, 2};
    fds_groups *groups;
    TRY(fds_groups_create(group_of, 4, NULL, &groups, err));
    fds_groups_free(groups);
    return FDS_OK;
}

static void allocations_may_fail(void **state) {
    (void)state;
    each_allocation_fails("groups", create);
}

/* ---- the paper's formulas, written out ---- */

typedef struct {
    size_t n, groups;
    uint32_t group_of[12];
    size_t masks[12]; /* players of each group */
    double v[1 << 12];
} grouped_game;

static grouped_game *random_game(uint64_t stream, uint64_t number, size_t n, size_t groups) {
    grouped_game *g = need(1, sizeof *g);
    fds_rng rng = fds_rng_make(stream, 2001, number, n * 100 + groups);
    g->n = n;
    g->groups = groups;
    random_partition(&rng, n, groups, g->group_of);
    for (size_t i = 0; i < n; i++)
        g->masks[g->group_of[i]] |= (size_t)1 << i;
    for (size_t mask = 0; mask < (size_t)1 << n; mask++)
        g->v[mask] = uniform(&rng);
    return g;
}

/* The players of a set of groups. */
static size_t players_of(const grouped_game *g, size_t set) {
    size_t mask = 0;
    for (size_t k = 0; k < g->groups; k++)
        mask |= set >> k & 1 ? g->masks[k] : 0;
    return mask;
}

static double shapley_formula(const grouped_game *g, size_t i) {
    double value = 0;
    for (size_t s = 0; s < (size_t)1 << g->n; s++)
        if (!(s >> i & 1))
            value += (g->v[s | (size_t)1 << i] - g->v[s]) / choose(g->n - 1, count_of(s));
    return value / (double)g->n;
}

/* varphi_i: the members of i's group singly, the other groups whole */
static double gfds_formula(const grouped_game *g, size_t i) {
    size_t own = g->group_of[i], others = (size_t)1 << g->groups;
    size_t m = count_of(g->masks[own]) + g->groups - 1;
    double value = 0;
    for (size_t set = 0; set < others; set++)
        for (size_t in = 0; !(set >> own & 1) && in < (size_t)1 << g->n; in++) {
            if (in & ~g->masks[own] || in >> i & 1)
                continue;
            size_t s = players_of(g, set) | in;
            value +=
                (g->v[s | (size_t)1 << i] - g->v[s]) / choose(m - 1, count_of(set) + count_of(in));
        }
    return value / (double)m;
}

/* varphi+_i: groups as players, evenly divided */
static double gfds_plus_formula(const grouped_game *g, size_t i) {
    size_t own = g->group_of[i];
    double value = 0;
    for (size_t set = 0; set < (size_t)1 << g->groups; set++)
        if (!(set >> own & 1))
            value += (g->v[players_of(g, set | (size_t)1 << own)] - g->v[players_of(g, set)]) /
                     choose(g->groups - 1, count_of(set));
    return value / (double)g->groups / (double)count_of(g->masks[own]);
}

static void library_values(const grouped_game *g, fds_sampler sampler, double *values) {
    fds_groups *groups = make_groups(g->group_of, g->n);
    exact_values(&(array_game){g->n, 1, g->v}, sampler, groups, 1, values);
    fds_groups_free(groups);
}

static void expect_formula(const grouped_game *g, fds_sampler sampler,
                           double (*formula)(const grouped_game *, size_t)) {
    double got[12], wanted[12];
    library_values(g, sampler, got);
    for (size_t i = 0; i < g->n; i++)
        wanted[i] = formula(g, i);
    expect_near(got, wanted, g->n, 1e-12, "a group-wise value");
}

static void gfds_and_gfds_plus_follow_the_formulas(void **state) {
    (void)state;
    size_t games = 0;
    for (size_t n = 1; n <= (IS_SLOW_BUILD ? 6 : 9); n++)
        for (size_t groups = 1; groups <= n; groups++)
            for (uint64_t number = 0; number < 4; number++, games++) {
                grouped_game *g = random_game(1, number, n, groups);
                expect_formula(g, FDS_SAMPLER_GFDS, gfds_formula);
                expect_formula(g, FDS_SAMPLER_GFDS_PLUS, gfds_plus_formula);
                free(g);
            }
    print_message("# %zu games\n", games);
}

/* One group, or every player a group of its own. */
static void trivial_groups_give_the_shapley_value(void **state) {
    (void)state;
    for (size_t n = 1; n <= 8; n++)
        for (uint64_t number = 0; number < 5; number++) {
            grouped_game *one = random_game(2, number, n, 1), *all = random_game(3, number, n, n);
            expect_formula(one, FDS_SAMPLER_GFDS, shapley_formula);
            expect_formula(all, FDS_SAMPLER_GFDS, shapley_formula);
            expect_formula(all, FDS_SAMPLER_GFDS_PLUS, shapley_formula);
            free(one);
            free(all);
        }
}

/* ---- the paper's theorems ---- */

/* Theorem 1: |v_a - v| < eps gives |phi(v_a) - phi(v)| <= 2 eps. Half of the games have v_a differ
 * by +-eps at random; the others by +eps where a player is and -eps where it is not, which takes
 * that player's value to the bound. */
static void theorem_1_and_its_bound_is_reached(void **state) {
    (void)state;
    const double eps = 0.01;
    double nearest = 0;
    for (uint64_t number = 0; number < (IS_SLOW_BUILD ? 200 : 2000); number++) {
        size_t n = 1 + number % 8;
        grouped_game *g = random_game(4, number, n, 1);
        fds_rng rng = fds_rng_make(5, 2001, number, 0);
        double near_v[256], exact[8], approximate[8];
        size_t victim = fds_rng_below(&rng, n);
        for (size_t mask = 0; mask < (size_t)1 << n; mask++) {
            double off = number % 2 ? uniform(&rng) : mask >> victim & 1 ? 1 - 1e-9 : -1 + 1e-9;
            near_v[mask] = g->v[mask] + eps * off;
        }
        exact_values(&(array_game){n, 1, g->v}, FDS_SAMPLER_KERNEL, NULL, 1, exact);
        exact_values(&(array_game){n, 1, near_v}, FDS_SAMPLER_KERNEL, NULL, 1, approximate);
        for (size_t i = 0; i < n; i++) {
            double difference = fabs(approximate[i] - exact[i]);
            assert_true(difference <= 2 * eps);
            nearest = fmax(nearest, difference / (2 * eps));
        }
        free(g);
    }
    print_message("# greatest difference: %.9f of the bound\n", nearest);
    assert_true(nearest > 1 - 1e-6);
}

/* Theorem 2, where groups do not interact: |phi+_j - phi_j| <= (1 - 1/|G|) eps, eps being the
 * greatest difference of two values in j's group. Its lemma: a group's value is the sum of its
 * members' values. */
static void theorem_2_and_its_lemma(void **state) {
    (void)state;
    double nearest = 0;
    for (uint64_t number = 0; number < (IS_SLOW_BUILD ? 200 : 2000); number++) {
        size_t n = 2 + number % 8, groups = 1 + number / 8 % n;
        grouped_game *g = random_game(6, number, n, groups);
        double inside[1 << 9], plus[12], phi[12], empty = g->v[0];
        memcpy(inside, g->v, sizeof inside[0] << n); /* v_g(T) for T within g: any numbers */
        for (size_t mask = 0; mask < (size_t)1 << n; mask++) {
            g->v[mask] = empty;
            for (size_t k = 0; k < groups; k++)
                g->v[mask] += mask & g->masks[k] ? inside[mask & g->masks[k]] : 0;
        }
        library_values(g, FDS_SAMPLER_GFDS_PLUS, plus);
        exact_values(&(array_game){n, 1, g->v}, FDS_SAMPLER_KERNEL, NULL, 1, phi);
        for (size_t k = 0; k < groups; k++) {
            double eps = 0, size = (double)count_of(g->masks[k]), sum = 0, sum_plus = 0;
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < n; j++)
                    if (g->group_of[i] == k && g->group_of[j] == k)
                        eps = fmax(eps, fabs(phi[i] - phi[j]));
            for (size_t i = 0; i < n; i++) {
                if (g->group_of[i] != k)
                    continue;
                double difference = fabs(plus[i] - phi[i]), bound = (1 - 1 / size) * eps;
                assert_true(difference <= bound + 1e-12);
                if (bound > 1e-6)
                    nearest = fmax(nearest, difference / bound);
                sum += phi[i];
                sum_plus += plus[i];
            }
            assert_true(fabs(sum - sum_plus) <= 1e-12 * (double)n);
        }
        free(g);
    }
    print_message("# greatest difference: %.6f of the bound\n", nearest);
    assert_true(nearest > 0.99); /* groups of two reach it */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_numbered_by_their_first_player),
        cmocka_unit_test(names_go_with_the_numbers_given),
        cmocka_unit_test(groups_out_of_range_are_nobody),
        cmocka_unit_test(allocations_may_fail),
        cmocka_unit_test(gfds_and_gfds_plus_follow_the_formulas),
        cmocka_unit_test(trivial_groups_give_the_shapley_value),
        cmocka_unit_test(theorem_1_and_its_bound_is_reached),
        cmocka_unit_test(theorem_2_and_its_lemma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
