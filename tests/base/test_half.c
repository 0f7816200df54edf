/* SPDX-License-Identifier: Apache-2.0
 * 16-bit floats: every pattern there and back, and rounding against a search in double. */
#include "scratch.h"
#include "base/base.h"

#include <math.h>

/* The definition, by arithmetic instead of bits. */
static double by_definition(uint16_t half) {
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double sign = half & 0x8000 ? -1.0 : 1.0;
    if (exponent == 31)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    return exponent ? sign * ldexp(1.0 + fraction / 1024.0, exponent - 15)
                    : sign * ldexp(fraction / 1024.0, -14);
}

static void all_patterns_mean_what_the_standard_says(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 65536; half++) {
        double value = fds__half_to_double((uint16_t)half), right = by_definition((uint16_t)half);
        if (isnan(right))
            assert_true(isnan(value));
        else
            assert_true(value == right && signbit(value) == signbit(right));
    }
}

static void all_patterns_come_back(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 65536; half++) {
        uint16_t back = fds__half_from_float((float)by_definition((uint16_t)half));
        bool is_nan = (half & 0x7fff) > 0x7c00;
        assert_int_equal(back, is_nan ? 0x7e00 : half);
    }
}

/* The nearest of all halves; of two that are as near, the even one. Halves of one sign are in the
 * order of their patterns. 65536 stands for infinity, as if the exponent went on. */
static uint16_t nearest(float value) {
    double size = fabs((double)value);
    uint16_t low = 0, high = 0x7c00;
    if (size >= 65536)
        return (uint16_t)(signbit(value) ? 0xfc00 : 0x7c00);
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (by_definition(middle) <= size)
            low = middle;
        else
            high = middle;
    }
    double above = high == 0x7c00 ? 65536 : by_definition(high);
    double up = above - size, down = size - by_definition(low);
    uint16_t best = up < down || (up == down && high % 2 == 0) ? high : low;
    return (uint16_t)(best | (signbit(value) ? 0x8000 : 0));
}

static void expect_nearest(float value) {
    uint16_t half = fds__half_from_float(value);
    if (half != nearest(value))
        fail_msg("%a became %04x, %04x is nearest", (double)value, half, nearest(value));
}

/* Between any two neighbours: the middle, and the floats just beside it and beside the ends. */
static void rounding_is_to_nearest_even(void **state) {
    (void)state;
    for (uint16_t half = 0; half < 0x7c00; half++) {
        double low = by_definition(half);
        double high = half == 0x7bff ? 65536 : by_definition((uint16_t)(half + 1));
        float middle = (float)((low + high) / 2); /* exact: one more bit than a half has */
        const float tries[] = {(float)low, middle, (float)high};
        for (size_t i = 0; i < COUNT(tries); i++)
            for (int side = -1; side <= 1; side++)
                for (int sign = -1; sign <= 1; sign += 2) {
                    float beside = side ? nextafterf(tries[i], side * INFINITY) : tries[i];
                    expect_nearest((float)sign * beside);
                }
    }
}

static void any_float_is_rounded_to_nearest(void **state) {
    (void)state;
    for (uint64_t bits = 0; bits < 0x7f800000; bits += 4099) {
        uint32_t pattern = (uint32_t)bits;
        float value;
        memcpy(&value, &pattern, sizeof value);
        expect_nearest(value);
        expect_nearest(-value);
    }
    assert_int_equal(fds__half_from_float(INFINITY), 0x7c00);
    assert_int_equal(fds__half_from_float(-INFINITY), 0xfc00);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_patterns_mean_what_the_standard_says),
        cmocka_unit_test(all_patterns_come_back),
        cmocka_unit_test(rounding_is_to_nearest_even),
        cmocka_unit_test(any_float_is_rounded_to_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
