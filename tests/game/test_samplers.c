/* SPDX-License-Identifier: Apache-2.0
 * The samplers follow their laws. Seeds are fixed, so that a test passes always or never; bounds
 * are at p = 2e-4. */
#include "fixture.h"

static const size_t many = IS_SLOW_BUILD ? 100000 : 1000000;

/* ---- chi-square ---- */

/* Wilson and Hilferty's quantile at 3.5 standard deviations */
static void expect_chi_square(double got, double freedom, const char *what) {
    double c = 2 / (9 * freedom);
    double high = freedom * pow(1 - c + 3.5 * sqrt(c), 3);
    double low = freedom * pow(fmax(0, 1 - c - 3.5 * sqrt(c)), 3);
    if (!(got < high) || got < low) /* too even to be random, too */
        fail_msg("%s: chi-square %g with %g degrees of freedom", what, got, freedom);
}

static void expect_law(const size_t *seen, const double *share, size_t buckets, const char *what) {
    double draws = 0, sum = 0, chi = 0;
    for (size_t i = 0; i < buckets; i++) {
        draws += (double)seen[i];
        sum += share[i];
    }
    for (size_t i = 0; i < buckets; i++) {
        double expected = draws * share[i] / sum;
        assert_true(expected > 5);
        chi += ((double)seen[i] - expected) * ((double)seen[i] - expected) / expected;
    }
    expect_chi_square(chi, (double)buckets - 1, what);
}

/* Sizes 1 .. m-1 of the draws by the kernel law. seen[k]. */
static void expect_kernel_sizes(const size_t *seen, size_t m, const char *what) {
    double share[128];
    assert_true(m <= COUNT(share) && seen[0] == 0);
    for (size_t k = 1; k < m; k++)
        share[k] = 1 / ((double)k * (double)(m - k));
    if (m > 2)
        expect_law(seen + 1, share + 1, m - 1, what);
}

/* ---- the laws ---- */

static void sizes_follow_the_kernel(void **state) {
    (void)state;
    static const size_t players[] = {2, 3, 10, 100};
    for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_PAIRED; sampler++)
        for (size_t p = 0; p < COUNT(players); p++) {
            size_t n = players[p], seen[128] = {0}, step = sampler == FDS_SAMPLER_PAIRED ? 2 : 1;
            fds_plan *plan = sampled_plan((fds_sampler)sampler, n, NULL, many * step, 21);
            for (size_t row = 2; row < fds_plan_rows(plan); row += step) {
                seen[plan_size(plan,
                               row)]++; /* of pairs the first: the second is not independent */
                assert_true(fds_plan_weight(plan, row) == 1);
            }
            expect_kernel_sizes(seen, n, sampler == FDS_SAMPLER_PAIRED ? "paired" : "kernel");
            fds_plan_free(plan);
        }
}

/* Of 6 players every subset of a size is equally likely: 20 of size 3, and so on. */
static void subsets_of_a_size_are_equally_likely(void **state) {
    (void)state;
    for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_PAIRED; sampler++) {
        fds_plan *plan = sampled_plan((fds_sampler)sampler, 6, NULL, many, 22);
        size_t by_mask[64] = {0};
        for (size_t row = 2; row < fds_plan_rows(plan);
             row += sampler == FDS_SAMPLER_PAIRED ? 2 : 1)
            by_mask[fds_plan_coalition(plan, row)[0]]++;
        for (int k = 1; k < 6; k++) {
            size_t seen[20], buckets = 0;
            double share[20];
            for (size_t mask = 0; mask < 64; mask++)
                if (__builtin_popcountll(mask) == k) {
                    share[buckets] = 1;
                    seen[buckets++] = by_mask[mask];
                }
            expect_law(seen, share, buckets, "subsets of a size");
        }
        fds_plan_free(plan);
    }
}

/* Of 100 players: how often each one, and each two, are in coalitions of a size. Members of a
 * coalition exclude each other, which takes (n-1)/n off the sum of squares. */
static void expect_members(fds_sampler sampler, size_t size) {
    enum { N = 100 };
    fds_plan *plan = sampled_plan(sampler, N, NULL, 2 * many, 23);
    static uint32_t together[N][N];
    memset(together, 0, sizeof together);
    double rows = 0;
    for (size_t row = 2; row < fds_plan_rows(plan); row += fds_plan_is_paired(plan) ? 2 : 1) {
        if (plan_size(plan, row) != size)
            continue;
        const uint64_t *bits = fds_plan_coalition(plan, row);
        rows++;
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; fds_coalition_has(bits, i) && j <= i; j++)
                together[i][j] += fds_coalition_has(bits, j);
    }
    double k = (double)size, one = k / N, two = one * (k - 1) / (N - 1), chi = 0, worst = 0;
    for (size_t i = 0; i < N; i++) {
        double off = together[i][i] - rows * one;
        chi += off * off / (rows * one * (1 - one)) * (N - 1) / N;
        for (size_t j = 0; size > 1 && j < i; j++)
            worst = fmax(worst, fabs(together[i][j] - rows * two) / sqrt(rows * two * (1 - two)));
    }
    expect_chi_square(chi, N - 1, "members");
    if (rows * two > 20) /* 4950 pairs of players */
        assert_true(worst < 5.5);
    fds_plan_free(plan);
}

static void players_are_equally_likely_members(void **state) {
    (void)state;
    static const size_t sizes[] = {2, 20, 50, 77};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        expect_members(FDS_SAMPLER_KERNEL, sizes[s]);
        expect_members(FDS_SAMPLER_PAIRED, sizes[s]);
        if (sizes[s] > 2) /* of the 4950 pairs all are drawn in the end: too even */
            expect_members(FDS_SAMPLER_LEVERAGE, sizes[s]);
    }
}

static void leverage_has_every_size_once_in_each_run(void **state) {
    (void)state;
    enum { N = 40, RUNS = 10 };
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 2 * (N - 1) * RUNS, 24);
    size_t first_sizes[RUNS];
    for (size_t run = 0; run < RUNS; run++) {
        bool seen[N] = {false};
        for (size_t j = 0; j < N - 1; j++) {
            size_t size = plan_size(plan, 2 + 2 * (run * (N - 1) + j));
            assert_false(seen[size]);
            seen[size] = true;
        }
        first_sizes[run] = plan_size(plan, 2 + 2 * run * (N - 1));
    }
    size_t same = 0;
    for (size_t run = 1; run < RUNS; run++)
        same += first_sizes[run] == first_sizes[0];
    assert_true(same < RUNS - 1); /* runs have orders of their own */
    double sum = 0;
    for (size_t row = 2; row < fds_plan_rows(plan); row++) {
        double k = (double)plan_size(plan, row); /* all sizes drawn alike: 1/(k(n-k)) */
        assert_true(fabs(fds_plan_weight(plan, row) * k * (N - k) -
                         fds_plan_weight(plan, 2) * (double)plan_size(plan, 2) *
                             (N - (double)plan_size(plan, 2))) < 1e-9);
        sum += fds_plan_weight(plan, row);
    }
    assert_true(fabs(sum - (double)(fds_plan_rows(plan) - 2)) < 1e-6);
    fds_plan_free(plan);
}

/* Of few players leverage takes all coalitions: each once, weighted by the Shapley kernel. */
static void expect_exhausted(size_t n, uint64_t seed) {
    size_t all = ((size_t)1 << n) - 2;
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, n, NULL, all, seed);
    bool *seen = need((size_t)1 << n, sizeof *seen);
    double factor = 0;
    for (size_t row = 2; row < all + 2; row++) {
        size_t mask = fds_plan_coalition(plan, row)[0], k = plan_size(plan, row);
        assert_true(mask > 0 && mask <= all && !seen[mask]);
        seen[mask] = true;
        double kernel = tgamma((double)k) * tgamma((double)(n - k)) / tgamma((double)n + 1);
        factor = row == 2 ? fds_plan_weight(plan, row) / kernel : factor;
        assert_true(fabs(fds_plan_weight(plan, row) / kernel / factor - 1) < 1e-12);
    }
    fds_error err;
    fds_plan *more;
    expect_error(fds_plan_sample(FDS_SAMPLER_LEVERAGE, n, NULL, all + 2, seed, &more, &err),
                 FDS_ERR_LIMIT, &err, "there are only");
    free(seen);
    fds_plan_free(plan);
}

/* Many seeds, because the order in which the sizes run out depends on it. */
static void leverage_exhausts_small_games(void **state) {
    (void)state;
    for (size_t n = 2; n <= (IS_SLOW_BUILD ? 10 : 14); n++)
        for (uint64_t seed = 0; seed < (n <= 8 ? 100 : 1); seed++)
            expect_exhausted(n, seed);
}

/* ---- groups ---- */

/* Every coalition of a game of m players by the kernel law; seen[mask]. */
static void expect_kernel_masks(const size_t *seen, size_t m, const char *what) {
    double share[256];
    size_t masks = ((size_t)1 << m) - 1;
    for (size_t mask = 1; mask < masks; mask++) {
        double k = __builtin_popcountll(mask);
        share[mask] = tgamma(k) * tgamma((double)m - k);
    }
    assert_true(seen[0] == 0 && seen[masks] == 0);
    expect_law(seen + 1, share + 1, masks - 1, what);
}

static void gfds_plays_the_game_of_each_group_in_turn(void **state) {
    (void)state;
    const uint32_t group_of[] = {0, 1, 2, 1, 2, 2, 1, 2, 2};
    fds_groups *groups = make_groups(group_of, 9); /* of 1, 3 and 5 */
    fds_plan *plan = sampled_plan(FDS_SAMPLER_GFDS, 9, groups, 2 * many, 26);
    static size_t seen[3][256];
    for (size_t row = 2; row < fds_plan_rows(plan); row += 2) {
        size_t owner = (row - 2) / 2 % 3;
        seen[owner][small_mask(plan, row, groups, owner)]++;
        assert_true(fds_plan_weight(plan, row) == 1);
    }
    expect_kernel_masks(seen[0], 3, "GFDS, group of 1");
    expect_kernel_masks(seen[1], 5, "GFDS, group of 3");
    expect_kernel_masks(seen[2], 7, "GFDS, group of 5");
    fds_plan_free(plan);
    fds_groups_free(groups);
}

static void gfds_plus_plays_the_game_of_groups(void **state) {
    (void)state;
    enum { N = 130 }; /* three words */
    uint32_t group_of[N];
    fds_rng rng = fds_rng_make(27, 2003, 0, 0);
    random_partition(&rng, N, 5, group_of);
    fds_groups *groups = make_groups(group_of, N);
    fds_plan *plan = sampled_plan(FDS_SAMPLER_GFDS_PLUS, N, groups, 2 * many, 27);
    size_t seen[32] = {0};
    for (size_t row = 2; row < fds_plan_rows(plan); row += 2)
        seen[small_mask(plan, row, groups, 5)]++;
    expect_kernel_masks(seen, 5, "GFDS+");
    fds_plan_free(plan);
    fds_groups_free(groups);
}

/* ---- no repeats ---- */

typedef struct {
    uint64_t bits[2], id;
} identity;

static int by_bits(const void *a, const void *b) {
    return memcmp(((const identity *)a)->bits, ((const identity *)b)->bits, 2 * sizeof(uint64_t));
}

static int by_id(const void *a, const void *b) {
    uint64_t x = ((const identity *)a)->id, y = ((const identity *)b)->id;
    return (x > y) - (x < y);
}

/* A million coalitions by leverage: no two the same, no two with one id. */
static void a_million_coalitions_have_a_million_ids(void **state) {
    (void)state;
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, 100, NULL, many, 32);
    size_t count = fds_plan_rows(plan);
    identity *all = need(count, sizeof *all);
    for (size_t row = 0; row < count; row++) {
        const uint64_t *bits = fds_plan_coalition(plan, row);
        all[row] = (identity){{bits[0], bits[1]}, fds_coalition_id(bits, 100)};
    }
    qsort(all, count, sizeof *all, by_bits);
    for (size_t i = 1; i < count; i++)
        assert_true(by_bits(&all[i - 1], &all[i]) != 0);
    qsort(all, count, sizeof *all, by_id);
    for (size_t i = 1; i < count; i++)
        assert_true(all[i - 1].id != all[i].id);
    free(all);
    fds_plan_free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_follow_the_kernel),
        cmocka_unit_test(subsets_of_a_size_are_equally_likely),
        cmocka_unit_test(players_are_equally_likely_members),
        cmocka_unit_test(leverage_has_every_size_once_in_each_run),
        cmocka_unit_test(leverage_exhausts_small_games),
        cmocka_unit_test(gfds_plays_the_game_of_each_group_in_turn),
        cmocka_unit_test(gfds_plus_plays_the_game_of_groups),
        cmocka_unit_test(a_million_coalitions_have_a_million_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
