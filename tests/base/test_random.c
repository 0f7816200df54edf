/* SPDX-License-Identifier: Apache-2.0
 * Random numbers: Random123's published answers, distributions, and streams that are functions of
 * their key and counter alone. Seeds are fixed, so that a bound is met always or never. */
#include "scratch.h"
#include "base/base.h"

#include <math.h>

/* Random123, tests/kat_vectors, philox4x64 with 10 rounds: all zero, all ones, digits of pi. */
static void philox_gives_the_published_answers(void **state) {
    (void)state;
    const struct {
        uint64_t counter[4], key[2], answer[4];
    } kat[] = {
        {{0, 0, 0, 0},
         {0, 0},
         {0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b, 0x7e68b68aec7ba23b}},
        {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
         {UINT64_MAX, UINT64_MAX},
         {0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0}},
        {{0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
         {0x452821e638d01377, 0xbe5466cf34e90c6c},
         {0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6}},
    };
    for (size_t i = 0; i < COUNT(kat); i++) {
        fds_rng rng = {.used = 4};
        memcpy(rng.counter, kat[i].counter, sizeof rng.counter);
        memcpy(rng.key, kat[i].key, sizeof rng.key);
        for (int j = 0; j < 4; j++)
            assert_true(fds_rng_u64(&rng) == kat[i].answer[j]);
    }
}

static void make_puts_its_arguments_where_files_expect_them(void **state) {
    (void)state;
    fds_rng zero = fds_rng_make(0, 0, 0, 0);
    assert_true(fds_rng_u64(&zero) == 0x16554d9eca36314c);
    fds_rng rng = fds_rng_make(1, 2, 3, 4), by_hand = {.key = {1, 2}, .counter = {3, 4}, .used = 4};
    for (int i = 0; i < 40; i++) {
        if (i % 4 == 0) { /* block i/4 is the last word of the counter */
            by_hand.counter[3] = (uint64_t)i / 4;
            by_hand.used = 4;
        }
        assert_true(fds_rng_u64(&rng) == fds_rng_u64(&by_hand));
    }
}

static double chi_square(const size_t *seen, size_t buckets, size_t draws) {
    double sum = 0, expected = (double)draws / (double)buckets;
    for (size_t i = 0; i < buckets; i++)
        sum += ((double)seen[i] - expected) * ((double)seen[i] - expected) / expected;
    return sum;
}

/* Wilson and Hilferty: the quantile of chi-square at z standard deviations */
static double chi_square_at(size_t buckets, double z) {
    double df = (double)buckets - 1, c = 2 / (9 * df);
    return df * pow(1 - c + z * sqrt(c), 3);
}

static void expect_uniform(const size_t *seen, size_t buckets, size_t draws) {
    double got = chi_square(seen, buckets, draws);
    if (got > chi_square_at(buckets, 3.5)) /* p = 2e-4 */
        fail_msg("%zu buckets: chi-square %g", buckets, got);
    if (buckets > 20 && got < chi_square_at(buckets, -3.5)) /* too even to be random */
        fail_msg("%zu buckets: chi-square %g", buckets, got);
}

static void below_is_uniform_for_any_bound(void **state) {
    (void)state;
    const struct {
        uint64_t bound, bucket; /* numbers that share a bucket */
    } cases[] = {{2, 1},
                 {3, 1},
                 {10, 1},
                 {1000003, 10000},
                 /* here a remainder would give the lower half twice the weight of the upper */
                 {(uint64_t)3 << 62, (uint64_t)1 << 60},
                 {((uint64_t)1 << 63) + 1, (uint64_t)1 << 58}};
    const size_t draws = 1000000;
    for (size_t c = 0; c < COUNT(cases); c++) {
        size_t seen[101] = {0}, buckets = (size_t)(cases[c].bound / cases[c].bucket);
        fds_rng rng = fds_rng_make(7, 100, c, 0);
        size_t counted = 0;
        for (size_t i = 0; i < draws; i++) {
            uint64_t got = fds_rng_below(&rng, cases[c].bound);
            assert_true(got < cases[c].bound);
            size_t bucket = (size_t)(got / cases[c].bucket);
            if (bucket < buckets) { /* the last, incomplete one is left out */
                seen[bucket]++;
                counted++;
            }
        }
        expect_uniform(seen, buckets, counted);
    }
}

/* Multiplying without rejecting would give every third number below 3/4 of 2^64 double weight. */
static void below_a_great_bound_has_no_favourites(void **state) {
    (void)state;
    size_t seen[3] = {0};
    fds_rng rng = fds_rng_make(7, 101, 0, 0);
    for (size_t i = 0; i < 100000; i++)
        seen[fds_rng_below(&rng, (uint64_t)3 << 62) % 3]++;
    expect_uniform(seen, 3, 100000);
}

static void below_small_bounds_is_zero(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(1, 1, 1, 1);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(fds_rng_below(&rng, 0), 0);
        assert_int_equal(fds_rng_below(&rng, 1), 0);
    }
}

static void unit_is_uniform_in_0_to_1_without_1(void **state) {
    (void)state;
    const size_t draws = 1000000;
    size_t seen[1000] = {0}, last_bits[2] = {0};
    fds_rng rng = fds_rng_make(8, 100, 0, 0);
    for (size_t i = 0; i < draws; i++) {
        double got = fds_rng_unit(&rng);
        assert_true(got >= 0 && got < 1);
        seen[(size_t)(got * 1000)]++;
        last_bits[(uint64_t)(got * 0x1p53) & 1]++;
    }
    expect_uniform(seen, 1000, draws);
    expect_uniform(last_bits, 2, draws); /* 53 bits, down to the last */
    fds_rng top = {.block = {0, 0, 0, UINT64_MAX}, .used = 3};
    assert_true(fds_rng_unit(&top) == 1 - 0x1p-53);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void normal_has_the_moments_and_the_distribution(void **state) {
    (void)state;
    const size_t n = 1000000;
    double *draws = malloc(n * sizeof *draws), m1 = 0, m2 = 0, m3 = 0, m4 = 0, distance = 0;
    assert_non_null(draws);
    fds_rng rng = fds_rng_make(9, 100, 0, 0);
    for (size_t i = 0; i < n; i++) {
        double x = draws[i] = fds_rng_normal(&rng);
        m1 += x / (double)n;
        m2 += x * x / (double)n;
        m3 += x * x * x / (double)n;
        m4 += x * x * x * x / (double)n;
    }
    /* four standard errors of each */
    assert_true(fabs(m1) < 4 * sqrt(1.0 / (double)n));
    assert_true(fabs(m2 - 1) < 4 * sqrt(2.0 / (double)n));
    assert_true(fabs(m3) < 4 * sqrt(15.0 / (double)n));
    assert_true(fabs(m4 - 3) < 4 * sqrt(96.0 / (double)n));
    qsort(draws, n, sizeof *draws, by_value);
    for (size_t i = 0; i < n; i++) {
        double cdf = 0.5 * erfc(-draws[i] * M_SQRT1_2);
        distance = fmax(distance, fabs(cdf - (double)i / (double)n));
        distance = fmax(distance, fabs(cdf - (double)(i + 1) / (double)n));
    }
    assert_true(distance < 1.95 / sqrt((double)n)); /* Kolmogorov and Smirnov, p = 1e-3 */
    assert_true(draws[0] < -4 && draws[n - 1] > 4); /* the tails are there: 32 expected in each */
    assert_true(draws[0] > -7 && draws[n - 1] < 7);
    free(draws);
}

/* 0 .. 119: the permutation's number in the factorial system */
static size_t rank_of(const uint32_t *p) {
    size_t rank = 0;
    for (size_t i = 0; i < 5; i++) {
        size_t smaller = 0;
        for (size_t j = i + 1; j < 5; j++)
            smaller += p[j] < p[i];
        rank = rank * (5 - i) + smaller;
    }
    return rank;
}

static void shuffle_is_uniform_over_all_permutations(void **state) {
    (void)state;
    size_t seen[120] = {0};
    for (size_t i = 0; i < 240000; i++) {
        uint32_t items[5] = {0, 1, 2, 3, 4};
        fds_rng rng = fds_rng_make(10, 100, i, 0); /* a stream a shuffle, as the callers do */
        fds_rng_shuffle(&rng, items, 5);
        seen[rank_of(items)]++;
    }
    expect_uniform(seen, 120, 240000);
}

static void shuffle_keeps_every_item_and_takes_short_lists(void **state) {
    (void)state;
    uint32_t items[1000], count[1000] = {0};
    for (uint32_t i = 0; i < 1000; i++)
        items[i] = i;
    fds_rng rng = fds_rng_make(11, 100, 0, 0);
    fds_rng_shuffle(&rng, items, 1000);
    for (uint32_t i = 0; i < 1000; i++)
        count[items[i]]++;
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(count[i], 1);
    fds_rng_shuffle(&rng, NULL, 0);
    uint32_t one = 42;
    fds_rng_shuffle(&rng, &one, 1);
    assert_int_equal(one, 42);
}

static void streams_do_not_depend_on_the_order_of_calls(void **state) {
    (void)state;
    uint64_t alone[2][100];
    for (uint64_t s = 0; s < 2; s++) {
        fds_rng rng = fds_rng_make(5, 6, s, 7);
        for (int i = 0; i < 100; i++)
            alone[s][i] = fds_rng_u64(&rng);
    }
    fds_rng a = fds_rng_make(5, 6, 0, 7), b = fds_rng_make(5, 6, 1, 7);
    for (int i = 0; i < 100; i++) {
        assert_true(fds_rng_u64(&b) == alone[1][i]);
        fds_rng copy = a; /* a copy goes on from where it was taken, and disturbs nothing */
        assert_true(fds_rng_u64(&copy) == alone[0][i]);
        assert_true(fds_rng_u64(&a) == alone[0][i]);
    }
}

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void every_argument_opens_another_stream(void **state) {
    (void)state;
    enum { SIDE = 6, DRAWS = 8, N = SIDE * SIDE * SIDE * SIDE * DRAWS };
    uint64_t *all = malloc(N * sizeof *all);
    assert_non_null(all);
    size_t used = 0;
    for (uint64_t i = 0; i < SIDE * SIDE * SIDE * SIDE; i++) {
        fds_rng rng =
            fds_rng_make(i % SIDE, i / SIDE % SIDE, i / SIDE / SIDE % SIDE, i / SIDE / SIDE / SIDE);
        for (int d = 0; d < DRAWS; d++)
            all[used++] = fds_rng_u64(&rng);
    }
    qsort(all, N, sizeof *all, by_number);
    for (size_t i = 1; i < N; i++)
        assert_true(all[i] != all[i - 1]);
    free(all);
}

/* The first numbers of neighbouring streams, along each argument, are uniform and uncorrelated. */
static void neighbouring_streams_are_independent(void **state) {
    (void)state;
    const size_t n = 200000;
    for (int which = 0; which < 4; which++) {
        size_t pairs[100] = {0};
        double before = 0.5, product = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t at[4] = {3, 3, 3, 3};
            at[which] = i;
            fds_rng rng = fds_rng_make(at[0], at[1], at[2], at[3]);
            double now = fds_rng_unit(&rng);
            pairs[(size_t)(before * 10) * 10 + (size_t)(now * 10)]++;
            product += (before - 0.5) * (now - 0.5) * 12;
            before = now;
        }
        expect_uniform(pairs, 100, n);
        assert_true(fabs(product) < 4 * sqrt((double)n));
    }
}

static void secrets_differ_and_a_failure_is_reported(void **state) {
    (void)state;
    uint8_t a[256] = {0}, b[256] = {0};
    fds_error err = {0};
    assert_int_equal(fds__random_secret(a, sizeof a, &err), FDS_OK);
    assert_int_equal(fds__random_secret(b, sizeof b, &err), FDS_OK);
    for (size_t i = 0; i < 256; i += 16) {
        assert_memory_not_equal(a + i, b + i, 16);
        assert_memory_not_equal(a + i, (uint8_t[16]){0}, 16);
    }
    fds__fault_arm(FDS__FAULT_IO, 1);
    assert_int_equal(fds__random_secret(a, sizeof a, &err), FDS_ERR_IO);
    fds__fault_arm(FDS__FAULT_IO, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_answers),
        cmocka_unit_test(make_puts_its_arguments_where_files_expect_them),
        cmocka_unit_test(below_is_uniform_for_any_bound),
        cmocka_unit_test(below_a_great_bound_has_no_favourites),
        cmocka_unit_test(below_small_bounds_is_zero),
        cmocka_unit_test(unit_is_uniform_in_0_to_1_without_1),
        cmocka_unit_test(normal_has_the_moments_and_the_distribution),
        cmocka_unit_test(shuffle_is_uniform_over_all_permutations),
        cmocka_unit_test(shuffle_keeps_every_item_and_takes_short_lists),
        cmocka_unit_test(streams_do_not_depend_on_the_order_of_calls),
        cmocka_unit_test(every_argument_opens_another_stream),
        cmocka_unit_test(neighbouring_streams_are_independent),
        cmocka_unit_test(secrets_differ_and_a_failure_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
