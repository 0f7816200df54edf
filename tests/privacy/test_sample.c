/* SPDX-License-Identifier: Apache-2.0
 *
 * The samplers' probabilities: all of the tree of random bits down to a depth, and a chi-square test of
 * a million draws from a fixed stream of bits.
 *
 * A path of bits that ends within the depth has the probability 2^-length. Paths that do not end yet are
 * what is left: the probability of a result is between the sum of its paths and that plus the rest. */
#include "../base/scratch.h"

#include "privacy/privacy.h"

#include <math.h>

/* ---- the tree ---- */

enum { DEPTH = IS_SLOW_BUILD ? 14 : 20, RANGE = 64 };

typedef struct {
    uint8_t bits[32]; /* one per byte */
    size_t count;
} path;

static fds_status fill_from_path(void *context, void *out, size_t size, fds_error *err) {
    const path *p = context;
    fds_rng rng =
        fds_rng_make(17, 1, 0, 0); /* what follows the path: with zeros, loops would not end */
    uint8_t *bytes = out;
    (void)err;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)fds_rng_u64(&rng);
    for (size_t i = 0; i < p->count; i++) {
        bytes[i / 8] &= (uint8_t) ~(1u << (7 - i % 8));
        bytes[i / 8] |= (uint8_t)(p->bits[i] << (7 - i % 8));
    }
    return FDS_OK;
}

/* A result from a path; how many bits it took goes to *taken. */
typedef int64_t (*trial)(privacy_stream *stream, const fds__dp_noise *noise);

typedef struct {
    double mass[2 * RANGE + 1]; /* by result + RANGE */
    double rest;
} tree;

static void walk(trial run, const fds__dp_noise *noise, path *p, size_t depth, tree *out) {
    const fds__bits bits = {fill_from_path, p};
    privacy_stream stream;
    fds_error err = {0};
    privacy_stream_begin(&stream, &bits, &err);
    int64_t result = run(&stream, noise);
    uint64_t taken = stream.taken;
    privacy_stream_end(&stream);
    if (taken <= p->count) {
        assert_true(result >= -RANGE && result <= RANGE);
        assert_true(taken == p->count); /* its parent had too few bits */
        out->mass[result + RANGE] += ldexp(1, -(int)p->count);
    } else if (p->count == depth) {
        out->rest += ldexp(1, -(int)p->count);
    } else {
        for (uint8_t bit = 0; bit < 2; bit++) {
            p->bits[p->count++] = bit;
            walk(run, noise, p, depth, out);
            p->count--;
        }
    }
}

static tree all_paths(trial run, const fds__dp_noise *noise, size_t depth) {
    tree out = {.rest = 0};
    path p = {.count = 0};
    walk(run, noise, &p, depth, &out);
    double sum = out.rest;
    for (size_t i = 0; i < COUNT(out.mass); i++)
        sum += out.mass[i];
    assert_true(sum == 1); /* sums of powers of two are exact */
    return out;
}

/* Every probability is within what the tree leaves open. */
static void expect_mass(const tree *t, int64_t result, double probability) {
    double low = t->mass[result + RANGE];
    if (!(low <= probability * (1 + 1e-12) && probability <= (low + t->rest) * (1 + 1e-12)))
        fail_msg("result %lld: %.9g is not in [%.9g, %.9g]", (long long)result, probability, low,
                 low + t->rest);
}

static int64_t run_below(privacy_stream *s, const fds__dp_noise *n) {
    return (int64_t)privacy_below(s, n->sensitivity);
}
static int64_t run_bernoulli(privacy_stream *s, const fds__dp_noise *n) {
    return privacy_bernoulli(s, n->sensitivity, n->cost_nano);
}
static int64_t run_exp(privacy_stream *s, const fds__dp_noise *n) {
    return privacy_bernoulli_exp(s, n->sensitivity, n->cost_nano);
}
static int64_t run_draw(privacy_stream *s, const fds__dp_noise *n) {
    int64_t out = 0;
    fds_error err = {0};
    expect_ok(privacy_draw(s, n, &out, &err), &err);
    return out;
}

static void parts_have_exact_probabilities(void **state) {
    (void)state;
    tree t = all_paths(run_below, &(fds__dp_noise){.sensitivity = 5}, 18);
    for (int64_t i = 0; i < 5; i++)
        expect_mass(&t, i, 0.2);
    const uint64_t ratios[][2] = {{0, 1}, {1, 1}, {1, 2}, {1, 3}, {5, 8}, {7, 11}, {999, 1000}};
    for (size_t i = 0; i < COUNT(ratios); i++) {
        fds__dp_noise n = {.sensitivity = ratios[i][0], .cost_nano = ratios[i][1]};
        double p = (double)ratios[i][0] / (double)ratios[i][1];
        t = all_paths(run_bernoulli, &n, 18);
        assert_true(t.rest <= 0x1p-17);
        expect_mass(&t, 1, p);
        t = all_paths(run_exp, &n, 18);
        assert_true(t.rest <= 0x1p-6);
        expect_mass(&t, 1, exp(-p));
        expect_mass(&t, 0, -expm1(-p));
    }
    t = all_paths(run_exp, &(fds__dp_noise){.sensitivity = 9, .cost_nano = 4}, 18);
    expect_mass(&t, 1, exp(-2.25));
}

/* Normalised probabilities of whole numbers -RANGE .. RANGE. */
static void exact_masses(const fds__dp_noise *noise, double *mass) {
    double cost = (double)noise->cost_nano / 1e9, s = (double)noise->sensitivity, sum = 0;
    for (int x = -RANGE; x <= RANGE; x++)
        sum += mass[x + RANGE] = noise->mechanism == FDS__LAPLACE ? exp(-abs(x) * cost / s)
                                                                  : exp(-x * x * cost / (s * s));
    for (int i = 0; i <= 2 * RANGE; i++)
        mass[i] /= sum;
}

static void draws_have_exact_probabilities(void **state) {
    (void)state;
    const fds__dp_noise noises[] = {
        {FDS__LAPLACE, 1, 1000000000}, {FDS__LAPLACE, 2, 1000000000}, {FDS__LAPLACE, 1, 2000000000},
        {FDS__GAUSS, 1, 500000000},    {FDS__GAUSS, 1, 2000000000},
    };
    for (size_t i = 0; i < COUNT(noises); i++) {
        double mass[2 * RANGE + 1];
        exact_masses(&noises[i], mass);
        tree t = all_paths(run_draw, &noises[i], DEPTH);
        for (int x = -RANGE; x <= RANGE; x++)
            expect_mass(&t, x, mass[x + RANGE]);
        for (int x = 1; x <= RANGE; x++) /* the sign is one bit, the last but for Gauss */
            if (noises[i].mechanism == FDS__LAPLACE)
                assert_true(t.mass[RANGE - x] == t.mass[RANGE + x]);
        print_message("# noise %zu: %.4f of the tree is deeper\n", i, t.rest);
        assert_true(IS_SLOW_BUILD || t.rest < 0.75);
    }
}

/* ---- a million draws ---- */

static fds_status fill_from_philox(void *context, void *out, size_t size, fds_error *err) {
    fds_rng *rng = context;
    uint8_t *bytes = out;
    (void)err;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = fds_rng_u64(rng);
        memcpy(bytes + i, &word, 8);
    }
    return FDS_OK;
}

/* Pearson's statistic of draws of one noise against the probabilities of another, as standard deviations
 * from its mean; results expected less than ten times are taken together. */
static double chi_square(const fds__dp_noise *drawn, const fds__dp_noise *stated, size_t count) {
    fds_rng rng = fds_rng_make(18, 1, 0, 0);
    const fds__bits bits = {fill_from_philox, &rng};
    fds_error err = {0};
    int64_t *out = need(count, sizeof *out);
    expect_ok(fds__dp_draw(drawn, &bits, out, count, &err), &err);
    double mass[2 * RANGE + 1], seen[2 * RANGE + 1] = {0}, rare = 0, rare_seen = 0, sum = 0;
    size_t cells = 0;
    exact_masses(stated, mass);
    for (size_t i = 0; i < count; i++) {
        if (out[i] >= -RANGE && out[i] <= RANGE)
            seen[out[i] + RANGE]++;
        else
            rare_seen++;
    }
    free(out);
    for (int i = 0; i <= 2 * RANGE; i++) {
        double expected = mass[i] * (double)count;
        if (expected < 10) {
            rare += expected;
            rare_seen += seen[i];
            continue;
        }
        sum += (seen[i] - expected) * (seen[i] - expected) / expected;
        cells++;
    }
    if (rare > 1) {
        sum += (rare_seen - rare) * (rare_seen - rare) / rare;
        cells++;
    } else if (rare_seen > 20) {
        sum = HUGE_VAL;
    }
    return (sum - (double)(cells - 1)) / sqrt(2 * (double)(cells - 1));
}

static void a_million_draws_fit(void **state) {
    (void)state;
    size_t count = IS_SLOW_BUILD ? 100000 : 1000000;
    const fds__dp_noise noises[] = {
        {FDS__LAPLACE, 3, 1000000000}, {FDS__LAPLACE, 7, 3333333333}, {FDS__GAUSS, 10, 2000000000}};
    for (size_t i = 0; i < COUNT(noises); i++) {
        double z = chi_square(&noises[i], &noises[i], count);
        print_message("# noise %zu: %.2f standard deviations\n", i, z);
        assert_true(fabs(z) < 4);
        /* mutants: half the scale; 1 % less noise */
        fds__dp_noise half = noises[i], less = noises[i];
        half.cost_nano *= noises[i].mechanism == FDS__LAPLACE ? 2 : 4;
        less.cost_nano = less.cost_nano / 100 * 101;
        assert_true(chi_square(&half, &noises[i], 100000) > 100);
        assert_true(IS_SLOW_BUILD || i > 0 || chi_square(&less, &noises[i], count) > 4);
    }
}

/* Draws of one call, and of two, are independent: no pair of neighbours is alike more often than chance
 * has it. The mutant gives each number twice. */
static void noise_is_never_used_twice(void **state) {
    (void)state;
    enum { N = 100000 };
    static int64_t out[N];
    fds_rng rng = fds_rng_make(19, 1, 0, 0);
    const fds__bits bits = {fill_from_philox, &rng};
    const fds__dp_noise noise = {FDS__LAPLACE, 1 << 20, 1000000000};
    fds_error err = {0};
    for (size_t i = 0; i < N; i += N / 2)
        expect_ok(fds__dp_draw(&noise, &bits, out + i, N / 2, &err), &err);
    size_t alike = 0;
    double product = 0, square = 0;
    for (size_t i = 1; i < N; i++) {
        alike += out[i] == out[i - 1];
        product += (double)out[i] * (double)out[i - 1];
        square += (double)out[i] * (double)out[i];
    }
    assert_true(alike <= 3); /* expected: 1e5 / 2^22 */
    assert_true(fabs(product / square) < 4 / sqrt(N));
    int64_t first, second; /* the system's bits differ from call to call */
    expect_ok(fds__dp_draw(&(fds__dp_noise){FDS__LAPLACE, UINT64_C(1) << 50, FDS__NANO},
                           &fds__system_bits, &first, 1, &err),
              &err);
    expect_ok(fds__dp_draw(&(fds__dp_noise){FDS__LAPLACE, UINT64_C(1) << 50, FDS__NANO},
                           &fds__system_bits, &second, 1, &err),
              &err);
    assert_true(first != second);
}

/* ---- limits and failures ---- */

static void sums_that_do_not_fit_are_refused(void **state) {
    (void)state;
    const fds__dp_noise noise = {FDS__LAPLACE, 1000, 1000000000};
    int64_t in[64], out[64] = {1};
    for (size_t i = 0; i < 64; i++)
        in[i] = INT64_MAX; /* half of the draws are above 0 */
    fds_rng rng = fds_rng_make(20, 1, 0, 0);
    const fds__bits bits = {fill_from_philox, &rng};
    fds_error err = {0};
    assert_int_equal(fds__dp_add(&noise, &bits, in, out, 64, &err), FDS_ERR_LIMIT);
    assert_true(out[0] == 1 && out[1] == 0); /* nothing of it is seen */
    int64_t more[] = {(INT64_C(1) << 53) + 1, -5};
    expect_ok(fds__dp_add(&noise, &bits, more, more, 2, &err), &err);
    assert_true(llabs(more[0] - (INT64_C(1) << 53)) < 100000 && llabs(more[1]) < 100000);
}

static void a_noise_that_is_too_large_is_refused(void **state) {
    (void)state;
    int64_t out;
    fds_error err = {0};
    const fds__dp_noise wrong[] = {{FDS__LAPLACE, UINT64_C(1) << 51, FDS__NANO},
                                   {FDS__LAPLACE, 1 << 30, 1},
                                   {FDS__GAUSS, UINT64_C(1) << 52, FDS__NANO},
                                   {FDS__LAPLACE, 0, 1},
                                   {FDS__GAUSS, 1, 0}};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(fds__dp_draw(&wrong[i], &fds__system_bits, &out, 1, &err), FDS_ERR_USAGE);
}

static void a_source_that_fails_ends_the_draw(void **state) {
    (void)state;
    const fds__dp_noise noises[] = {{FDS__LAPLACE, 1000, FDS__NANO}, {FDS__GAUSS, 1000, FDS__NANO}};
    int64_t out[200];
    fds_error err = {0};
    for (size_t i = 0; i < COUNT(noises); i++)
        for (uint64_t nth = 1; nth < 4; nth++) {
            fds__fault_arm(FDS__FAULT_IO, nth);
            assert_int_equal(fds__dp_draw(&noises[i], &fds__system_bits, out, 200, &err),
                             FDS_ERR_IO);
            fds__fault_arm(FDS__FAULT_IO, 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_exact_probabilities),
        cmocka_unit_test(draws_have_exact_probabilities),
        cmocka_unit_test(a_million_draws_fit),
        cmocka_unit_test(noise_is_never_used_twice),
        cmocka_unit_test(sums_that_do_not_fit_are_refused),
        cmocka_unit_test(a_noise_that_is_too_large_is_refused),
        cmocka_unit_test(a_source_that_fails_ends_the_draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
