/* SPDX-License-Identifier: Apache-2.0
 * Texts that grow: nothing is lost, numbers come back to the bit in any locale, and a text that
 * has failed stays failed. */
#include "comma.h"
#include "base/base.h"

#include <float.h>
#include <math.h>

static void parts_are_joined_however_many(void **state) {
    (void)state;
    enum { PARTS = 20000 };
    fds__text text = {0};
    fds_error err = {0};
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    for (int i = 0; i < PARTS; i++) {
        fds__text_add(&text, "ab\0c", 4); /* any bytes */
        fds__text_print(&text, "%d %s;", i % 10, "x");
        assert_int_equal(text.data[text.used], 0);
    }
    assert_true(fds__fault_arm(FDS__FAULT_ALLOC, 0) < 50); /* geometric, not one at a time */
    expect_ok(fds__text_check(&text, &err), &err);
    assert_int_equal(text.used, PARTS * 8);
    for (int i = 0; i < PARTS; i++) {
        char part[16] = "ab\0c? x;";
        part[4] = (char)('0' + i % 10);
        assert_memory_equal(text.data + 8 * i, part, 8);
    }
    fds__free(text.data);
}

static void an_empty_part_makes_an_empty_text(void **state) {
    (void)state;
    fds__text text = {0};
    fds_error err = {0};
    fds__text_add(&text, "", 0);
    expect_ok(fds__text_check(&text, &err), &err);
    assert_string_equal(text.data, "");
    fds__free(text.data);
}

/* ---- failures ---- */

static void a_text_that_has_failed_stays_failed(void **state) {
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        fds__text text = {0};
        fds_error err = {0};
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        for (int i = 0; i < 200; i++) {
            fds__text_print(&text, "%04d", i);
            if (text.is_failed && text.data) /* what was there before stands */
                assert_int_equal(strlen(text.data), text.used);
        }
        fds__text_double(&text, 0.1);
        bool was_hit = fds__fault_arm(FDS__FAULT_ALLOC, 0) >= nth;
        assert_int_equal(fds__text_check(&text, &err), was_hit ? FDS_ERR_NOMEM : FDS_OK);
        assert_true(text.is_failed == was_hit);
        assert_true(was_hit ? text.used < 803 : text.used == 803);
        fds__free(text.data);
        if (!was_hit) {
            assert_true(nth > 3);
            break;
        }
    }
}

static void a_part_of_1024_bytes_is_too_long_to_print(void **state) {
    (void)state;
    fds__text text = {0};
    fds__text_print(&text, "%1023d", 7);
    assert_false(text.is_failed);
    assert_int_equal(text.used, 1023);
    fds__text_print(&text, "%1024d", 7);
    assert_true(text.is_failed);
    assert_int_equal(text.used, 1023);
    fds__free(text.data);
}

/* ---- numbers ---- */

/* What one call writes, in a place that the next call uses again. */
static const char *written(void (*write)(fds__text *, double), double value) {
    static char kept[400];
    fds__text text = {0};
    write(&text, value);
    assert_true(text.data && text.used < sizeof kept);
    snprintf(kept, sizeof kept, "%s", text.data);
    fds__free(text.data);
    return kept;
}

static void as_float(fds__text *text, double value) { fds__text_float(text, (float)value); }
static void as_three(fds__text *text, double value) { fds__text_digits(text, 3, value); }
static void as_cents(fds__text *text, double value) { fds__text_fixed(text, 2, value); }
static void as_longest(fds__text *text, double value) { fds__text_fixed(text, 30, value); }

static void numbers_have_the_fewest_digits(void **state) {
    (void)state;
    const struct {
        double value;
        const char *as_double, *as_float;
    } cases[] = {
        {0, "0", "0"},
        {-0.0, "-0", "-0"},
        {0.1, "0.1", "0.1"},
        {-1.5, "-1.5", "-1.5"},
        {1.0 / 3, "0.3333333333333333", "0.33333334"},
        {0.1 + 0.2, "0.30000000000000004", "0.3"},
        {16777217, "16777217", "16777216"},
        {1e22, "1e+22", "1e+22"},
        {DBL_MAX, "1.7976931348623157e+308", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_string_equal(written(fds__text_double, cases[i].value), cases[i].as_double);
        if (cases[i].as_float)
            assert_string_equal(written(as_float, cases[i].value), cases[i].as_float);
    }
}

static void any_number_is_read_back_to_the_bit(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(1, 5000, 0, 0);
    for (int i = 0; i < (IS_SLOW_BUILD ? 2000 : 20000); i++) {
        union {
            uint64_t bits;
            double value;
        } d = {fds_rng_u64(&rng)};
        union {
            uint32_t bits;
            float value;
        } f = {(uint32_t)fds_rng_u64(&rng)};
        double back = strtod(written(fds__text_double, d.value), NULL);
        assert_true(isnan(d.value) ? isnan(back) : back == d.value);
        float small = strtof(written(as_float, (double)f.value), NULL);
        assert_true(isnan(f.value) ? isnan(small) : small == f.value);
    }
}

/* The fewest of 15, 16 and 17 digits that read back. */
static const char *fewest(double value, char text[64]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, 64, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return text;
}

static void doubles_are_those_of_printf(void **state) {
    (void)state;
    static const double edges[] = {0,       -0.0,  1,    -1,     1e-5,  1e-4,  1e-10, 1e14,
                                   1e15,    1e16,  0.1,  0.25,   1e22,  1e-11, 1e-23, 99999,
                                   0.00001, 1e13,  1e-7, 1e-9,   0.3,   9.5,   2e-5,  3e-8,
                                   7e-10,   5e-11, 1.5,  123456, 12345, 1e5};
    fds_rng rng = fds_rng_make(3, 5000, 0, 0);
    char wanted[64];
    for (size_t i = 0; i < COUNT(edges); i++)
        for (int away = -2; away <= 2; away++) {
            double value = edges[i];
            for (int k = 0; k < abs(away); k++)
                value = nextafter(value, away < 0 ? -DBL_MAX : DBL_MAX);
            assert_string_equal(written(fds__text_double, value), fewest(value, wanted));
        }
    for (int i = 0; i < (IS_SLOW_BUILD ? 10000 : 400000); i++) {
        double value = (fds_rng_unit(&rng) - 0.5) * pow(10, 30 * fds_rng_unit(&rng) - 14);
        if (i % 4 == 0) /* of few digits */
            value = (double)(int64_t)(1000 * value) / 1000;
        if (i % 4 == 1)
            value = (double)(float)value;
        assert_string_equal(written(fds__text_double, value), fewest(value, wanted));
    }
}

static void integers_are_those_of_printf(void **state) {
    (void)state;
    static const int64_t cases[] = {0, 1, -1, 9, 10, -1234567890123, INT64_MAX, INT64_MIN};
    char wanted[32];
    for (size_t i = 0; i < COUNT(cases); i++) {
        fds__text text = {0};
        fds__text_int(&text, cases[i]);
        snprintf(wanted, sizeof wanted, "%lld", (long long)cases[i]);
        assert_string_equal(text.data, wanted);
        fds__free(text.data);
    }
}

static void nine_digits_are_those_of_printf(void **state) {
    (void)state;
    static const double edges[] = {0,
                                   -0.0,
                                   1,
                                   -1,
                                   1e8,
                                   999999999,
                                   1e9,
                                   9.9999999949999,
                                   9.999999995000001,
                                   0.0001,
                                   0.00009999999999,
                                   1e-5,
                                   1e-14,
                                   9.9e-15,
                                   0.1,
                                   0.5,
                                   123456789,
                                   0.25,
                                   100,
                                   1e-10,
                                   1234567.895,
                                   DBL_MAX,
                                   DBL_MIN,
                                   (double)INFINITY,
                                   0.000999999999999};
    fds_rng rng = fds_rng_make(2, 5000, 0, 0);
    char wanted[64];
    for (size_t i = 0; i < COUNT(edges) + (IS_SLOW_BUILD ? 5000 : 200000); i++) {
        double value = i < COUNT(edges)
                           ? edges[i]
                           : (fds_rng_unit(&rng) - 0.5) * pow(10, 30 * fds_rng_unit(&rng) - 18);
        const char *got = written(fds__text_nine, value);
        snprintf(wanted, sizeof wanted, "%.9g", value == 0 ? 0 : value);
        if (strcmp(got, wanted) != 0) /* only where two are equally near */
            assert_true(fabs(strtod(got, NULL) - value) <=
                        fabs(strtod(wanted, NULL) - value) * (1 + 1e-6));
    }
}

static void digits_and_decimals_are_as_asked_for(void **state) {
    (void)state;
    assert_string_equal(written(as_three, 1234.5678), "1.23e+03");
    assert_string_equal(written(as_three, 0.00012345), "0.000123");
    assert_string_equal(written(as_cents, 2.5), "2.50");
    assert_string_equal(written(as_cents, -1e-9), "-0.00");
    assert_string_equal(written(as_cents, 1234567.891), "1234567.89");
    assert_int_equal(strlen(written(as_longest, -DBL_MAX)), 1 + 309 + 1 + 30);
    assert_true(strtod(written(as_longest, -DBL_MAX), NULL) == -DBL_MAX);
}

static void numbers_have_a_point_in_every_locale(void **state) {
    (void)state;
    if (!comma_begin())
        return;
    assert_string_equal(written(fds__text_double, 0.5), "0.5");
    assert_string_equal(written(fds__text_double, 1.0 / 3), "0.3333333333333333");
    assert_string_equal(written(as_float, 0.1), "0.1");
    assert_string_equal(written(as_three, 2.25), "2.25");
    assert_string_equal(written(as_cents, 1234567.5), "1234567.50");
    char *end;
    assert_true(fds__read_double("-2.5e-3,", &end) == -2.5e-3 && *end == ',');
    assert_true(fds__read_double("0,5", &end) == 0 && *end == ',');
    assert_true(fds__decimal(0.1f) == 0.1 && fds__decimal_product(0.0001f, 10) == 0.001f);
    comma_end();
}

/* ---- CSV ---- */

static void csv_fields_are_quoted_and_never_run_as_formulas(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"plain", "plain"},
        {"a, \"b\"", "\"a, \"\"b\"\"\""},
        {" padded", "\" padded\""},
        {"padded ", "\"padded \""},
        {" ", "\" \""},
        {"\"", "\"\"\"\""},
        {"two\nlines", "\"two\nlines\""},
        {"=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""},
        {"@SUM(1)", "\"'@SUM(1)\""},
        {"+1+1", "\"'+1+1\""},
        {"-2+3+\"x\"", "\"'-2+3+\"\"x\"\"\""},
        {"\tx", "\"'\tx\""},
        {"\r=x", "\"'\r=x\""},
        {"-", "\"'-\""},
        {"-3", "-3"},
        {"+4.25", "+4.25"},
        {"-.5e-3", "-.5e-3"},
        {"a=b", "a=b"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        fds__text text = {0};
        fds__text_csv(&text, cases[i][0]);
        assert_string_equal(text.data, cases[i][1]);
        fds__free(text.data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_joined_however_many),
        cmocka_unit_test(an_empty_part_makes_an_empty_text),
        cmocka_unit_test(a_text_that_has_failed_stays_failed),
        cmocka_unit_test(a_part_of_1024_bytes_is_too_long_to_print),
        cmocka_unit_test(numbers_have_the_fewest_digits),
        cmocka_unit_test(any_number_is_read_back_to_the_bit),
        cmocka_unit_test(doubles_are_those_of_printf),
        cmocka_unit_test(integers_are_those_of_printf),
        cmocka_unit_test(nine_digits_are_those_of_printf),
        cmocka_unit_test(digits_and_decimals_are_as_asked_for),
        cmocka_unit_test(csv_fields_are_quoted_and_never_run_as_formulas),
        cmocka_unit_test_setup_teardown(numbers_have_a_point_in_every_locale, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
