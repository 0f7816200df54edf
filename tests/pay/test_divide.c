/* SPDX-License-Identifier: Apache-2.0
 * One amount divided: sums to the unit, order, proportion, and values at the ends of what a double
 * holds. */
#include "../base/scratch.h"

#include "pay/pay.h"

#include <math.h>

enum { MANY = 100000 };

static fds__pay_rule pay(const double *values, size_t count, int64_t amount, fds__policy policy,
                         int64_t *shares) {
    fds_error err = {0};
    fds__carry *carry = NULL;
    fds__pay_rule rule = FDS__PAY_RULE_CLIP;
    expect_ok(fds__carry_create(count, &carry, &err), &err);
    expect_ok(fds__carry_pay(carry, values, amount, policy, shares, &rule, &err), &err);
    fds__carry_free(carry);
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += shares[i];
    assert_true(sum == amount);
    return rule;
}

static void expect_shares(const double *values, size_t count, int64_t amount, fds__policy policy,
                          fds__pay_rule rule, const int64_t *expected) {
    int64_t shares[8];
    assert_int_equal(pay(values, count, amount, policy, shares), rule);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(shares[i], expected[i]);
}

#define EXPECT(policy, rule, amount, values, expected)                                           \
    expect_shares((const double[])values, COUNT(((const double[])values)), amount, policy, rule, \
                  (const int64_t[])expected)
#define LIST(...) \
    { __VA_ARGS__ }

static void shares_are_in_proportion_and_the_largest_remainders_are_rounded_up(void **state) {
    (void)state;
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 100, LIST(1, 3), LIST(25, 75));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 10000, LIST(0.5, 0.25, 0.25),
           LIST(5000, 2500, 2500));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 10, LIST(6, 7, 7),
           LIST(3, 4, 3)); /* 3.0, 3.5, 3.5 */
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 100, LIST(1, 1, 1), LIST(34, 33, 33));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 2, LIST(1, 1, 1), LIST(1, 1, 0));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 1, LIST(1, 2, 4), LIST(0, 0, 1));
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_SIGNED, 1, LIST(1, 2, 4), LIST(0, 0, 1));
}

static void negative_values_earn_nothing_or_owe(void **state) {
    (void)state;
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 100, LIST(3, -2, 1), LIST(75, 0, 25));
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_SIGNED, 100, LIST(3, -2, 1), LIST(150, -100, 50));
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_SIGNED, 10, LIST(4, -1),
           LIST(13, -3)); /* 13.33, -3.33 */
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_SIGNED, 10, LIST(-1, 4), LIST(-3, 13));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 7, LIST(-0.0, 0, 5), LIST(0, 0, 7));
}

static void values_that_nearly_cancel_are_clipped_instead(void **state) {
    (void)state;
    /* the sum is exactly a twentieth of the sum of sizes, then just below, then below zero */
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_SIGNED, 100, LIST(21, -19), LIST(1050, -950));
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_CLIP_FOR_SIGNED, 100, LIST(20.999, -19), LIST(100, 0));
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_CLIP_FOR_SIGNED, 100, LIST(1, 3, -9), LIST(25, 75, 0));
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_CLIP_FOR_SIGNED, 100, LIST(1, -1), LIST(100, 0));
}

static void without_a_value_above_zero_all_get_the_same(void **state) {
    (void)state;
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_EVENLY, 100, LIST(0, 0, 0), LIST(34, 33, 33));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_EVENLY, 5, LIST(-1, -5), LIST(3, 2));
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_EVENLY, 5, LIST(-1, -5), LIST(3, 2));
}

static void one_player_and_no_money(void **state) {
    (void)state;
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 7, LIST(0.1), LIST(7));
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_SIGNED, 7, LIST(0.1), LIST(7));
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_EVENLY, 7, LIST(-0.1), LIST(7));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 0, LIST(1, 2), LIST(0, 0));
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_SIGNED, 0, LIST(3, -1), LIST(0, 0));
}

static void the_smallest_and_greatest_numbers_are_paid(void **state) {
    (void)state;
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 100, LIST(1e-300, 3e-300), LIST(25, 75));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 100, LIST(1e300, 3e300), LIST(25, 75));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 3, LIST(1.7e308, 1.7e308, 1.7e308), LIST(1, 1, 1));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 100, LIST(5e-324, 5e-324), LIST(50, 50));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 100, LIST(1e-300, 1e300), LIST(0, 100));
    EXPECT(FDS__POLICY_CLIP, FDS__PAY_RULE_CLIP, 100, LIST(-1e300, 1e-300), LIST(0, 100));
    EXPECT(FDS__POLICY_SIGNED, FDS__PAY_RULE_CLIP_FOR_SIGNED, 100, LIST(-1e300, 1e-300),
           LIST(0, 100));
}

static double draw(fds_rng *rng) { return ldexp(fds_rng_normal(rng), (int)fds_rng_below(rng, 40)); }

/* A share is within a unit of what exact division gives, and greater values never earn less. */
static void random_payments_are_exact_and_keep_the_order(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(1, 0, 0, 0);
    for (int round = 0; round < 2000; round++) {
        double values[64], scaled[64];
        int64_t shares[64], again[64];
        size_t count = 1 + fds_rng_below(&rng, 64);
        int64_t amount = (int64_t)(fds_rng_u64(&rng) >> (6 + fds_rng_below(&rng, 58)));
        int power = (int)fds_rng_below(&rng, 400) - 200;
        for (size_t i = 0; i < count; i++) {
            values[i] = draw(&rng);
            scaled[i] = ldexp(values[i], power);
        }
        fds__policy policy = round % 2 ? FDS__POLICY_SIGNED : FDS__POLICY_CLIP;
        fds__pay_rule rule = pay(values, count, amount, policy, shares);
        assert_int_equal(pay(scaled, count, amount, policy, again), rule);
        assert_memory_equal(shares, again, count * sizeof *shares);
        long double total = 0;
        for (size_t i = 0; i < count; i++)
            total += rule == FDS__PAY_RULE_SIGNED || values[i] > 0 ? values[i] : 0;
        for (size_t i = 0; i < count && rule != FDS__PAY_RULE_EVENLY; i++) {
            bool counts = rule == FDS__PAY_RULE_SIGNED || values[i] > 0;
            long double exact = counts ? amount * (values[i] / total) : 0;
            assert_true(fabsl((long double)shares[i] - exact) <= 1 + fabsl(exact) * 1e-15L);
            for (size_t k = 0; k < count; k++)
                assert_false(values[i] > values[k] && shares[i] < shares[k]);
        }
    }
}

static void another_order_of_players_pays_each_the_same(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(2, 0, 0, 0);
    double values[50], turned[50];
    int64_t shares[50], other[50];
    for (size_t i = 0; i < 50; i++)
        turned[49 - i] = values[i] = fds_rng_normal(&rng) + 0.5; /* all different: no ties */
    pay(values, 50, 1234567, FDS__POLICY_SIGNED, shares);
    pay(turned, 50, 1234567, FDS__POLICY_SIGNED, other);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(shares[i], other[49 - i]);
}

static void a_hundred_thousand_players_are_paid(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(3, 0, 0, 0);
    double *values = need(MANY, sizeof *values);
    int64_t *shares = need(MANY, sizeof *shares);
    for (size_t i = 0; i < MANY; i++)
        values[i] = fds_rng_normal(&rng) + 0.2;
    static const int64_t amounts[] = {1, 99999, 12345678901, INT64_C(1) << 53, INT64_MAX / 32};
    for (size_t a = 0; a < COUNT(amounts); a++) {
        assert_int_equal(pay(values, MANY, amounts[a], FDS__POLICY_CLIP, shares),
                         FDS__PAY_RULE_CLIP);
        for (size_t i = 0; i < MANY; i++)
            assert_true(shares[i] >= 0 && (values[i] > 0 || shares[i] == 0));
        assert_int_equal(pay(values, MANY, amounts[a], FDS__POLICY_SIGNED, shares),
                         FDS__PAY_RULE_SIGNED);
    }
    free(values);
    free(shares);
}

static fds_status try_to_pay(const double *values, size_t count, int64_t amount, fds_error *err) {
    fds__carry *carry = NULL;
    int64_t shares[2] = {-1, -1};
    fds__pay_rule rule;
    expect_ok(fds__carry_create(count, &carry, NULL), NULL);
    fds_status status =
        fds__carry_pay(carry, values, amount, FDS__POLICY_SIGNED, shares, &rule, err);
    assert_true(shares[0] == -1 && shares[1] == -1);
    fds__carry_free(carry);
    return status;
}

static void what_cannot_be_paid_is_refused(void **state) {
    (void)state;
    fds_error err = {0};
    double values[2] = {1, 2};
    assert_int_equal(try_to_pay(values, 0, 1, &err), FDS_ERR_USAGE);
    assert_int_equal(try_to_pay(values, 2, -1, &err), FDS_ERR_USAGE);
    assert_int_equal(try_to_pay(values, 2, INT64_MAX, &err), FDS_ERR_LIMIT);
    values[1] = NAN;
    assert_int_equal(try_to_pay(values, 2, 1, &err), FDS_ERR_USAGE);
    expect_in(err.text, "player 1");
    values[1] = -INFINITY;
    assert_int_equal(try_to_pay(values, 2, 1, NULL), FDS_ERR_USAGE);
}

/* Fractions add up to whole units but for the last bit of each, also of values that divide badly. */
static void fractions_lose_less_than_their_last_bit(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(4, 0, 0, 0);
    fds_error err = {0};
    for (int round = 0; round < 2000; round++) {
        double values[64];
        int64_t weights[64], shares[64], sum = 0;
        fds__fixed parts[64], all = 0;
        size_t count = 1 + fds_rng_below(&rng, 64), left = 0;
        fds__pay_rule rule;
        int64_t amount = (int64_t)fds_rng_below(&rng, 1000);
        for (size_t i = 0; i < count; i++)
            values[i] = draw(&rng);
        expect_ok(fds__divide(values, count, amount, (fds__policy)(round % 2), weights, shares,
                              parts, &left, &rule, &err),
                  &err);
        for (size_t i = 0; i < count; i++) {
            assert_true(parts[i] >= 0 && parts[i] < FDS__UNIT);
            sum += shares[i];
            all += parts[i];
        }
        fds__fixed lost = (fds__fixed)left * FDS__UNIT - all;
        assert_true(lost >= 0 && lost < (fds__fixed)count && sum + (int64_t)left == amount);
        assert_true(left < count);
    }
}

static void every_rule_has_a_text(void **state) {
    (void)state;
    for (int rule = FDS__PAY_RULE_CLIP; rule <= FDS__PAY_RULE_EVENLY; rule++) {
        assert_true(strlen(fds__pay_rule_text((fds__pay_rule)rule)) > 10);
        for (int other = 0; other < rule; other++)
            assert_string_not_equal(fds__pay_rule_text((fds__pay_rule)rule),
                                    fds__pay_rule_text((fds__pay_rule)other));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_in_proportion_and_the_largest_remainders_are_rounded_up),
        cmocka_unit_test(negative_values_earn_nothing_or_owe),
        cmocka_unit_test(values_that_nearly_cancel_are_clipped_instead),
        cmocka_unit_test(without_a_value_above_zero_all_get_the_same),
        cmocka_unit_test(one_player_and_no_money),
        cmocka_unit_test(the_smallest_and_greatest_numbers_are_paid),
        cmocka_unit_test(random_payments_are_exact_and_keep_the_order),
        cmocka_unit_test(another_order_of_players_pays_each_the_same),
        cmocka_unit_test(a_hundred_thousand_players_are_paid),
        cmocka_unit_test(what_cannot_be_paid_is_refused),
        cmocka_unit_test(fractions_lose_less_than_their_last_bit),
        cmocka_unit_test(every_rule_has_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
