/* SPDX-License-Identifier: Apache-2.0
 * Shapley values by enumeration: the axioms on random games, closed forms, and second methods that
 * share nothing with it. Tolerances are relative to the greatest |v|. */
#include "fixture.h"

static const double tight = 1e-12;

static size_t bit(size_t mask, size_t i) { return mask >> i & 1; }

static void shapley(size_t n, const double *v, double *values) {
    exact_values(&(array_game){n, 1, v}, FDS_SAMPLER_KERNEL, NULL, 1, values);
}

static void expect_shapley(size_t n, const double *v, const double *wanted, const char *what) {
    double got[20];
    shapley(n, v, got);
    expect_near(got, wanted, n, tight * fmax(1, most(v, (size_t)1 << n)), what);
}

/* ---- the axioms ---- */

/* 50 random games for each n = 1 .. 12. */
static void each_random_game(void (*check)(size_t n, double *v, fds_rng *rng)) {
    for (size_t n = 1; n <= 12; n++)
        for (size_t game = 0; game < (IS_SLOW_BUILD ? 5 : 50); game++) {
            fds_rng rng = fds_rng_make(1, 2000, n, game);
            double *v = random_values((size_t)1 << n, &rng);
            check(n, v, &rng);
            free(v);
        }
}

static void check_efficiency(size_t n, double *v, fds_rng *rng) {
    (void)rng;
    double values[12], sum = 0;
    shapley(n, v, values);
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    assert_true(fabs(sum - (v[((size_t)1 << n) - 1] - v[0])) <= tight);
}

static void values_sum_to_what_all_have_over_none(void **state) {
    (void)state;
    each_random_game(check_efficiency);
}

static void check_twins(size_t n, double *v, fds_rng *rng) {
    if (n < 2)
        return;
    size_t a = fds_rng_below(rng, n), b = (a + 1 + fds_rng_below(rng, n - 1)) % n;
    for (size_t mask = 0; mask < (size_t)1 << n; mask++)
        if (bit(mask, a) && !bit(mask, b)) /* b in the place of a is worth the same */
            v[mask ^ (size_t)1 << a ^ (size_t)1 << b] = v[mask];
    double values[12];
    shapley(n, v, values);
    assert_true(fabs(values[a] - values[b]) <= tight);
}

static void twins_get_the_same(void **state) {
    (void)state;
    each_random_game(check_twins);
}

static void check_dummy(size_t n, double *v, fds_rng *rng) {
    size_t dummy = fds_rng_below(rng, n);
    double own = fds_rng_below(rng, 2) ? uniform(rng) : 0;
    for (size_t mask = 0; mask < (size_t)1 << n; mask++)
        if (bit(mask, dummy))
            v[mask] = v[mask ^ (size_t)1 << dummy] + own;
    double values[12];
    shapley(n, v, values);
    assert_true(fabs(values[dummy] - own) <= tight);
}

static void a_dummy_gets_what_it_is_worth_alone(void **state) {
    (void)state;
    each_random_game(check_dummy);
}

static void check_additivity(size_t n, double *v, fds_rng *rng) {
    size_t masks = (size_t)1 << n;
    double a = uniform(rng), b = uniform(rng);
    double *w = random_values(masks, rng), *both = need(masks, sizeof *both);
    for (size_t mask = 0; mask < masks; mask++)
        both[mask] = a * v[mask] + b * w[mask];
    double of_v[12], of_w[12], of_both[12];
    shapley(n, v, of_v);
    shapley(n, w, of_w);
    shapley(n, both, of_both);
    for (size_t i = 0; i < n; i++)
        assert_true(fabs(a * of_v[i] + b * of_w[i] - of_both[i]) <= tight);
    free(w);
    free(both);
}

static void the_value_of_a_sum_is_the_sum_of_the_values(void **state) {
    (void)state;
    each_random_game(check_additivity);
}

/* ---- closed forms ---- */

/* v(S) = 1 when all of T are there: they share it. */
static void unanimity_games(void **state) {
    (void)state;
    for (size_t n = 1; n <= 6; n++)
        for (size_t team = 1; team < (size_t)1 << n; team++) {
            double v[64], wanted[6];
            for (size_t mask = 0; mask < (size_t)1 << n; mask++)
                v[mask] = (mask & team) == team;
            for (size_t i = 0; i < n; i++)
                wanted[i] = (double)bit(team, i) / __builtin_popcountll(team);
            expect_shapley(n, v, wanted, "unanimity game");
        }
}

/* What each pays of a series of edges from far to near: every stretch is shared by those who lie at
 * or beyond its far end. far: distances of the players on one line. */
static double line_share(const double *far, size_t n, size_t i) {
    double share = 0;
    for (size_t j = 0; j < n; j++) { /* the stretch that ends at j */
        double before = 0, users = 0, same = 0;
        for (size_t k = 0; k < n; k++) {
            before = far[k] < far[j] ? fmax(before, far[k]) : before;
            users += far[k] >= far[j];
            same += far[k] == far[j];
        }
        if (far[i] >= far[j])
            share += (far[j] - before) / users / same; /* j's equals have that stretch too */
    }
    return share;
}

/* A runway as long as the largest aircraft of S needs. */
static void airport_games(void **state) {
    (void)state;
    for (size_t n = 1; n <= 15; n++) {
        fds_rng rng = fds_rng_make(2, 2000, n, 0);
        double cost[15], wanted[15], *v = need((size_t)1 << n, sizeof *v);
        for (size_t i = 0; i < n; i++)
            cost[i] = (double)(1 + fds_rng_below(&rng, 10)); /* some alike */
        for (size_t mask = 0; mask < (size_t)1 << n; mask++)
            for (size_t i = 0; i < n; i++)
                v[mask] = fmax(v[mask], bit(mask, i) ? cost[i] : 0);
        for (size_t i = 0; i < n; i++)
            wanted[i] = line_share(cost, n, i);
        expect_shapley(n, v, wanted, "airport game");
        free(v);
    }
}

/* Swings of player i counted by dynamic programming: ways[k][w], coalitions of k others of weight
 * w. Shapley and Shubik's power is the share of the orders in which i is the one that decides. */
static double voting_power(const unsigned *weight, size_t n, unsigned quota, size_t i) {
    static double ways[20][400];
    memset(ways, 0, sizeof ways);
    ways[0][0] = 1;
    for (size_t j = 0; j < n; j++)
        for (size_t k = n; j != i && k-- > 1;)
            for (size_t w = 400; w-- > weight[j];)
                ways[k][w] += ways[k - 1][w - weight[j]];
    double power = 0, others = 1; /* C(n-1, k) */
    for (size_t k = 0; k < n; k++) {
        for (unsigned w = quota > weight[i] ? quota - weight[i] : 0; w < quota; w++)
            power += ways[k][w] / others / (double)n;
        others = others * (double)(n - 1 - k) / (double)(k + 1);
    }
    return power;
}

static void weighted_voting_games(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 5, 9, 13, 17, 20};
    for (size_t s = 0; s < COUNT(sizes) - (IS_SLOW_BUILD ? 2 : 0); s++) {
        size_t n = sizes[s];
        fds_rng rng = fds_rng_make(3, 2000, n, 0);
        unsigned weight[20], total = 0;
        for (size_t i = 0; i < n; i++)
            total += weight[i] = 1 + (unsigned)fds_rng_below(&rng, 15);
        unsigned quota = total / 2 + 1;
        double wanted[20], *v = need((size_t)1 << n, sizeof *v);
        for (size_t mask = 0; mask < (size_t)1 << n; mask++) {
            unsigned votes = 0;
            for (size_t i = 0; i < n; i++)
                votes += bit(mask, i) ? weight[i] : 0;
            v[mask] = votes >= quota;
        }
        for (size_t i = 0; i < n; i++)
            wanted[i] = voting_power(weight, n, quota, i);
        expect_shapley(n, v, wanted, "voting game");
        free(v);
    }
}

/* ---- minimum cost spanning trees ---- */

enum { NODES = 13 }; /* the source, node 0, and up to 12 players */

/* Cost of connecting the players of mask to the source: Prim's algorithm. */
static double tree_cost(double cost[NODES][NODES], size_t n, size_t mask) {
    double total = 0, nearest[NODES];
    size_t left = mask;
    for (size_t i = 0; i < n; i++)
        nearest[i] = cost[0][i + 1];
    while (left) {
        size_t next = n;
        for (size_t i = 0; i < n; i++)
            if (bit(left, i) && (next == n || nearest[i] < nearest[next]))
                next = i;
        total += nearest[next];
        left ^= (size_t)1 << next;
        for (size_t i = 0; i < n; i++)
            nearest[i] = fmin(nearest[i], cost[next + 1][i + 1]);
    }
    return total;
}

/* Mean over all n! orders of what each adds to those before it; order is permuted in place. */
static void add_orders(const double *v, size_t *order, size_t n, size_t at, double *sums) {
    if (at == n) {
        size_t mask = 0;
        for (size_t j = 0; j < n; j++) {
            size_t with = mask | (size_t)1 << order[j];
            sums[order[j]] += v[with] - v[mask];
            mask = with;
        }
        return;
    }
    for (size_t j = at; j < n; j++) {
        size_t kept = order[at];
        order[at] = order[j];
        order[j] = kept;
        add_orders(v, order, n, at + 1, sums);
        order[j] = order[at];
        order[at] = kept;
    }
}

static void spanning_trees_against_all_orders(void **state) {
    (void)state;
    for (size_t n = 1; n <= (IS_SLOW_BUILD ? 7 : 8); n++)
        for (uint64_t game = 0; game < 3; game++) {
            fds_rng rng = fds_rng_make(4, 2000, n, game);
            double cost[NODES][NODES] = {{0}}, v[256], sums[8] = {0}, orders = 1;
            size_t order[8];
            for (size_t i = 0; i <= n; i++)
                for (size_t j = 0; j < i; j++) /* whole numbers: the sums below are exact */
                    cost[i][j] = cost[j][i] = (double)fds_rng_below(&rng, 100);
            for (size_t mask = 0; mask < (size_t)1 << n; mask++)
                v[mask] = tree_cost(cost, n, mask);
            for (size_t i = 0; i < n; i++) {
                order[i] = i;
                orders *= (double)(i + 1);
            }
            add_orders(v, order, n, 0, sums);
            for (size_t i = 0; i < n; i++)
                sums[i] /= orders;
            expect_shapley(n, v, sums, "spanning tree against orders");
        }
}

/* Houses along several roads that meet at the source: the cheapest tree of any S is the roads up to
 * its farthest houses, so every stretch is shared by the houses beyond it. */
static void spanning_trees_along_roads(void **state) {
    (void)state;
    for (size_t n = 1; n <= 12; n++) {
        fds_rng rng = fds_rng_make(5, 2000, n, 0);
        double far[NODES] = {0}, cost[NODES][NODES], wanted[12];
        size_t road[NODES];
        for (size_t i = 0; i <= n; i++) {
            far[i] = i ? 1 + (double)fds_rng_below(&rng, 20) : 0;
            road[i] = fds_rng_below(&rng, 3);
        }
        for (size_t i = 0; i <= n; i++)
            for (size_t j = 0; j <= n; j++)
                cost[i][j] = road[i] == road[j] ? fabs(far[i] - far[j]) : far[i] + far[j];
        double *v = need((size_t)1 << n, sizeof *v);
        for (size_t mask = 0; mask < (size_t)1 << n; mask++)
            v[mask] = tree_cost(cost, n, mask);
        for (size_t i = 0; i < n; i++) {
            double along[12];
            size_t houses = 0, self = 0;
            for (size_t j = 0; j < n; j++)
                if (road[j + 1] == road[i + 1]) {
                    self = i == j ? houses : self;
                    along[houses++] = far[j + 1];
                }
            wanted[i] = line_share(along, houses, self);
        }
        expect_shapley(n, v, wanted, "spanning tree along roads");
        free(v);
    }
}

/* ---- dividends ---- */

/* phi_i is the sum over T with i of Harsanyi's dividend d(T) / |T|, and v(S) the sum of d(T) over T
 * within S. With whole numbers all of that is exact up to the last division. */
static void twenty_players_against_dividends(void **state) {
    (void)state;
    const size_t n = IS_SLOW_BUILD ? 14 : 20, masks = (size_t)1 << n;
    fds_rng rng = fds_rng_make(6, 2000, 0, 0);
    double *v = need(masks, sizeof *v), by_size[20][21] = {{0}}, wanted[20] = {0}, got[20];
    for (size_t mask = 0; mask < masks; mask++) {
        v[mask] = (double)fds_rng_below(&rng, 201) - 100;
        for (size_t i = 0; i < n; i++)
            by_size[i][__builtin_popcountll(mask)] += bit(mask, i) ? v[mask] : 0;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 1; k <= n; k++)
            wanted[i] += by_size[i][k] / (double)k;
    for (size_t i = 0; i < n; i++)
        for (size_t mask = 0; mask < masks; mask++)
            v[mask] += bit(mask, i) ? v[mask ^ (size_t)1 << i] : 0;
    shapley(n, v, got);
    double error = 0, scale = most(v, masks);
    for (size_t i = 0; i < n; i++)
        error = fmax(error, fabs(got[i] - wanted[i]) / scale);
    print_message("# %zu players, %zu coalitions: error %.2g of max |v|\n", n, masks, error);
    assert_true(error <= tight);
    free(v);
}

/* The other way round: from random values to dividends, with the longer type against their
 * cancellation. */
static void random_games_against_dividends(void **state) {
    (void)state;
    for (size_t n = 1; n <= 14; n++) {
        fds_rng rng = fds_rng_make(7, 2000, n, 0);
        const size_t masks = (size_t)1 << n;
        double *v = random_values(masks, &rng), wanted[14];
        long double *dividend = need(masks, sizeof *dividend), sum[14] = {0};
        for (size_t mask = 0; mask < masks; mask++)
            dividend[mask] = v[mask];
        for (size_t i = 0; i < n; i++)
            for (size_t mask = 0; mask < masks; mask++)
                dividend[mask] -= bit(mask, i) ? dividend[mask ^ (size_t)1 << i] : 0;
        for (size_t i = 0; i < n; i++) {
            for (size_t mask = 1; mask < masks; mask++)
                sum[i] += bit(mask, i) ? dividend[mask] / __builtin_popcountll(mask) : 0;
            wanted[i] = (double)sum[i];
        }
        expect_shapley(n, v, wanted, "dividends of a random game");
        free(v);
        free(dividend);
    }
}

/* A player's value is small beside v: the sums must not lose it. */
static void a_great_common_value_does_no_harm(void **state) {
    (void)state;
    const size_t n = IS_SLOW_BUILD ? 12 : 20, masks = (size_t)1 << n;
    double *v = need(masks, sizeof *v), got[20], wanted[20];
    for (size_t mask = 0; mask < masks; mask++) {
        v[mask] = 0x1p20; /* and i + 1 for each player i who is there: exact */
        for (size_t i = 0; i < n; i++)
            v[mask] += bit(mask, i) ? (double)(i + 1) : 0;
    }
    for (size_t i = 0; i < n; i++)
        wanted[i] = (double)(i + 1);
    shapley(n, v, got);
    expect_near(got, wanted, n, tight * 0x1p20, "great common value");
    free(v);
}

/* ---- columns, threads, refusals ---- */

static void threads_and_columns_do_not_change_a_bit(void **state) {
    (void)state;
    enum { N = 8, COLUMNS = 700 };
    const uint32_t group_of[N] = {0, 1, 0, 2, 1, 0, 2, 2};
    fds_rng rng = fds_rng_make(8, 2000, 0, 0);
    double *v = random_values(((size_t)1 << N) * COLUMNS, &rng);
    double *one = need(N * COLUMNS, sizeof *one), *many = need(N * COLUMNS, sizeof *many);
    fds_groups *groups = make_groups(group_of, N);
    const array_game game = {N, COLUMNS, v};
    for (int kind = 0; kind < 3; kind++) {
        fds_sampler sampler = kind == 2 ? FDS_SAMPLER_GFDS_PLUS : FDS_SAMPLER_GFDS;
        exact_values(&game, sampler, kind ? groups : NULL, 1, one);
        for (unsigned threads = 0; threads <= 4; threads++) {
            memset(many, 0xff, N * COLUMNS * sizeof *many);
            exact_values(&game, sampler, kind ? groups : NULL, threads, many);
            assert_memory_equal(one, many, N * COLUMNS * sizeof *one);
        }
    }
    exact_values(&game, FDS_SAMPLER_KERNEL, NULL, 4, many);
    for (size_t column = 0; column < COLUMNS; column += 99) { /* a column among many, or alone */
        double alone[N], of_column[1 << N];
        for (size_t mask = 0; mask < 1 << N; mask++)
            of_column[mask] = v[mask * COLUMNS + column];
        shapley(N, of_column, alone);
        for (size_t i = 0; i < N; i++)
            assert_true(alone[i] == many[i * COLUMNS + column]);
    }
    fds_groups_free(groups);
    free(v);
    free(one);
    free(many);
}

static fds_status fail_at_row_9(void *context, unsigned worker, size_t row, size_t first,
                                size_t count, double *out, fds_error *err) {
    (void)context, (void)worker, (void)first;
    memset(out, 0, count * sizeof *out);
    return row == 9 ? fds__fail(err, FDS_ERR_CORRUPT, "row 9 is damaged") : FDS_OK;
}

static bool stop(void *user, const fds_progress *progress) {
    assert_string_equal(progress->stage, "exact values");
    ++*(int *)user;
    return true;
}

static void refusals_and_failures_are_told(void **state) {
    (void)state;
    double values[4], v[16] = {0};
    fds_error err = {0};
    const array_game game = {4, 1, v};
    fds_plan *sampled = sampled_plan(FDS_SAMPLER_PAIRED, 4, NULL, 6, 1);
    fds_plan *exact = exact_plan(FDS_SAMPLER_KERNEL, 4, NULL);
    fds_rows rows = array_rows(&(array_context){&game, sampled});
    expect_error(fds_exact(sampled, &rows, 1, values, NULL, &err), FDS_ERR_USAGE, &err, "sampled");
    rows = array_rows(&(array_context){&game, exact});
    int calls = 0;
    const fds_events events = {.progress = stop, .user = &calls};
    expect_error(fds_exact(exact, &rows, 1, values, &events, &err), FDS_ERR_CANCELLED, &err,
                 "parts");
    assert_int_equal(calls, 1);
    rows.columns = 0;
    expect_error(fds_exact(exact, &rows, 1, values, NULL, &err), FDS_ERR_USAGE, &err, "columns");
    rows = (fds_rows){1, fail_at_row_9, NULL};
    expect_error(fds_exact(exact, &rows, 1, values, NULL, &err), FDS_ERR_CORRUPT, &err, "row 9");
    assert_int_equal(fds_exact(exact, &rows, 1, values, NULL, NULL), FDS_ERR_CORRUPT);
    fds_plan_free(sampled);
    fds_plan_free(exact);
}

static fds_status enumerate(fds_error *err) {
    static const double v[16] = {0};
    static const array_game game = {4, 1, v};
    double values[4];
    fds_plan *plan;
    TRY(fds_plan_exact(FDS_SAMPLER_KERNEL, 4, NULL, &plan, err));
    array_context context = {&game, plan};
    fds_rows rows = array_rows(&context);
    fds_status status = fds_exact(plan, &rows, 1, values, NULL, err);
    fds_plan_free(plan);
    return status;
}

static void allocations_may_fail(void **state) {
    (void)state;
    each_allocation_fails("exact values", enumerate);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_sum_to_what_all_have_over_none),
        cmocka_unit_test(twins_get_the_same),
        cmocka_unit_test(a_dummy_gets_what_it_is_worth_alone),
        cmocka_unit_test(the_value_of_a_sum_is_the_sum_of_the_values),
        cmocka_unit_test(unanimity_games),
        cmocka_unit_test(airport_games),
        cmocka_unit_test(weighted_voting_games),
        cmocka_unit_test(spanning_trees_against_all_orders),
        cmocka_unit_test(spanning_trees_along_roads),
        cmocka_unit_test(twenty_players_against_dividends),
        cmocka_unit_test(random_games_against_dividends),
        cmocka_unit_test(a_great_common_value_does_no_harm),
        cmocka_unit_test(threads_and_columns_do_not_change_a_bit),
        cmocka_unit_test(refusals_and_failures_are_told),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
