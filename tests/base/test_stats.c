/* SPDX-License-Identifier: Apache-2.0
 * Small statistics against definitions written out again: ties, edges, numbers at the ends of what a
 * double holds. */
#include "scratch.h"

#include "base/base.h"

#include <math.h>

/* ---- the greatest ---- */

static void the_greatest_is_found_and_the_lowest_place_of_several(void **state) {
    (void)state;
    static const struct {
        float values[5];
        uint32_t count, place;
    } cases[] = {{{1, 5, 3}, 3, 1},
                 {{2, 2, 2}, 3, 0},
                 {{-3, -1, -1, -2}, 4, 1},
                 {{-0.0f, 0.0f}, 2, 0},
                 {{-INFINITY, -INFINITY, 0}, 3, 2},
                 {{7}, 1, 0},
                 {{0}, 0, 0},
                 {{0, 0, 0, 0, 1e-45f}, 5, 4}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        double wide[5];
        for (size_t k = 0; k < 5; k++)
            wide[k] = (double)cases[i].values[k];
        assert_int_equal(fds__argmax_f32(cases[i].values, cases[i].count), cases[i].place);
        assert_int_equal(fds__argmax(wide, cases[i].count), cases[i].place);
    }
}

/* ---- correlation ---- */

/* Pearson's, in long double, from the definition. */
static double correlation(const double *a, const double *b, const bool *in, size_t count) {
    long double n = 0, sa = 0, sb = 0, aa = 0, bb = 0, ab = 0;
    for (size_t i = 0; i < count; i++)
        if (!in || in[i]) {
            n++;
            sa += a[i];
            sb += b[i];
        }
    for (size_t i = 0; i < count; i++)
        if (!in || in[i]) {
            aa += (a[i] - sa / n) * (a[i] - sa / n);
            bb += (b[i] - sb / n) * (b[i] - sb / n);
            ab += (a[i] - sa / n) * (b[i] - sb / n);
        }
    return (double)(ab / sqrtl(aa * bb));
}

static void correlation_is_pearsons(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(3, 0, 0, 0);
    for (int round = 0; round < 200; round++) {
        double a[40], b[40], share = fds_rng_unit(&rng), scale = ldexp(1, round - 100);
        bool in[40];
        size_t count = 3 + fds_rng_below(&rng, 38), inside = 0;
        for (size_t i = 0; i < count; i++) {
            a[i] = scale * fds_rng_normal(&rng);
            b[i] = share * a[i] / scale - (1 - share) * fds_rng_normal(&rng);
            in[i] = fds_rng_below(&rng, 3) > 0;
            inside += in[i];
        }
        double all = fds__correlation(a, b, NULL, count), some = fds__correlation(a, b, in, count);
        assert_true(fabs(all - correlation(a, b, NULL, count)) < 1e-13);
        assert_true(inside < 3 ? isnan(some) : fabs(some - correlation(a, b, in, count)) < 1e-13);
        assert_true(fds__correlation(b, a, NULL, count) == all);
        assert_true(fabs(all) <= 1 + 1e-15);
    }
}

static void correlation_of_too_few_or_equal_values_is_unknown(void **state) {
    (void)state;
    static const double rising[] = {1, 2, 3, 4}, equal[] = {0.1, 0.1, 0.1, 0.1}, zero[4] = {0},
                        falling[] = {8, 6, 4, 2};
    static const bool two[] = {true, false, true, false}, none[4] = {false};
    double rounded[] = {0.1, 0.1, 0.1, nextafter(0.1, 1)};
    assert_true(fabs(fds__correlation(rising, falling, NULL, 4) + 1) < 1e-15);
    assert_true(isnan(fds__correlation(rising, falling, NULL, 2)));
    assert_true(isnan(fds__correlation(rising, falling, NULL, 0)));
    assert_true(isnan(fds__correlation(rising, falling, two, 4)));
    assert_true(isnan(fds__correlation(rising, falling, none, 4)));
    assert_true(isnan(fds__correlation(rising, equal, NULL, 4)));
    assert_true(isnan(fds__correlation(zero, rising, NULL, 4)));
    assert_true(isnan(fds__correlation(rounded, rising, NULL, 4))); /* alike but for rounding */
    rounded[3] = NAN;
    assert_true(isnan(fds__correlation(rounded, rising, NULL, 4)));
}

/* 1 - 6 sum d^2 / (n (n^2 - 1)) without ties; with ties, Pearson's of mean ranks by hand. */
static void spearman_is_that_of_mean_ranks(void **state) {
    (void)state;
    static const struct {
        double a[5], b[5], wanted;
        size_t count;
    } cases[] = {
        {{1, 2, 3, 4, 5}, {2, 1, 4, 3, 5}, 0.8, 5},           /* d^2 = 4: 1 - 24/120 */
        {{10, 20, 30, 40, 50}, {1, 10, 100, 1e3, 1e9}, 1, 5}, /* any rising function */
        {{1, 2, 3, 4}, {4, 3, 2, 1}, -1, 4},
        {{1, 2, 2, 3}, {1, 2, 3, 4}, 0.9486832980505138, 4}, /* 4.5 / sqrt(4.5 * 5) */
        {{1, 1, 2, 2}, {1, 2, 1, 2}, 0, 4},
        {{5, 5, 5, 1, 9}, {2, 7, 7, 7, 9}, 0.5, 5}, /* ranks 3 3 3 1 5 and 1 3 3 3 5: 4 / 8 */
    };
    fds_error err;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double found;
        expect_ok(fds__spearman(cases[i].a, cases[i].b, cases[i].count, &found, &err), &err);
        if (fabs(found - cases[i].wanted) > 1e-14)
            fail_msg("case %zu: %.17g, not %.17g", i, found, cases[i].wanted);
    }
}

static void spearman_of_equal_values_is_unknown(void **state) {
    (void)state;
    static const double rising[] = {1, 2, 3}, equal[] = {7, 7, 7};
    fds_error err;
    double found;
    expect_ok(fds__spearman(rising, equal, 3, &found, &err), &err);
    assert_true(isnan(found));
    expect_ok(fds__spearman(rising, rising, 2, &found, &err), &err);
    assert_true(isnan(found));
    expect_ok(fds__spearman(rising, rising, 0, &found, &err), &err);
    assert_true(isnan(found));
}

/* ---- transposing ---- */

static void transposing_moves_every_number(void **state) {
    (void)state;
    static const size_t sides[] = {1, 2, 31, 32, 33, 64, 100};
    for (size_t r = 0; r < COUNT(sides); r++)
        for (size_t c = 0; c < COUNT(sides); c++) {
            size_t rows = sides[r], columns = sides[c];
            double *in = need(rows * columns, sizeof *in), *out = need(rows * columns, sizeof *out),
                   *back = need(rows * columns, sizeof *back);
            for (size_t i = 0; i < rows * columns; i++)
                in[i] = (double)i;
            fds__transpose(in, rows, columns, out);
            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < columns; j++)
                    assert_true(out[j * rows + i] == in[i * columns + j]);
            fds__transpose(out, columns, rows, back);
            assert_memory_equal(in, back, rows * columns * sizeof *in);
            free(in);
            free(out);
            free(back);
        }
    fds__transpose(NULL, 0, 5, NULL);
    fds__transpose(NULL, 5, 0, NULL);
}

/* ---- seeds of draws ---- */

static void every_draw_has_a_seed_of_its_own(void **state) {
    (void)state;
    /* files on disk depend on these */
    assert_true(fds__draw_seed(0, 1) == 0x9e3779b97f4a7c15u);
    assert_true(fds__draw_seed(5, 2) == 0x3c6ef372fe94f82fu);
    for (uint64_t seed = 0; seed < 100; seed++) {
        assert_true(fds__draw_seed(seed, 0) == seed);
        for (uint64_t draw = 1; draw < 200; draw++) {
            uint64_t got = fds__draw_seed(seed, draw);
            assert_true(got > 1000); /* no small seed that a person might choose */
            assert_true(got - fds__draw_seed(seed, draw - 1) > 1000);
        }
    }
}

/* ---- decimal numbers ---- */

static void products_are_those_of_the_numbers_as_written(void **state) {
    (void)state;
    assert_true(fds__decimal_product(0.0001f, 10) == 0.001f);
    assert_true(fds__decimal_product(0.1f, 0.1f) == 0.01f); /* 0.1f * 0.1f is not */
    assert_true(fds__decimal_product(0.0003f, 3) == 0.0009f);
    assert_true(fds__decimal_product(0, 10) == 0);
    assert_true(fds__decimal_product(-0.7f, 0.3f) == -0.21f);
    assert_true(fds__decimal_product(1e30f, 1e30f) == INFINITY);
    for (int digits = 1; digits < 100; digits++)
        for (int power = -6; power < 3; power++) {
            char text[32];
            snprintf(text, sizeof text, "%de%d", digits, power);
            float lr = strtof(text, NULL);
            assert_true(fds__decimal(lr) == strtod(text, NULL));
            snprintf(text, sizeof text, "%de%d", digits, power + 1);
            assert_true(fds__decimal_product(lr, 10) == strtof(text, NULL));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_greatest_is_found_and_the_lowest_place_of_several),
        cmocka_unit_test(correlation_is_pearsons),
        cmocka_unit_test(correlation_of_too_few_or_equal_values_is_unknown),
        cmocka_unit_test(spearman_is_that_of_mean_ranks),
        cmocka_unit_test(spearman_of_equal_values_is_unknown),
        cmocka_unit_test(transposing_moves_every_number),
        cmocka_unit_test(every_draw_has_a_seed_of_its_own),
        cmocka_unit_test(products_are_those_of_the_numbers_as_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
