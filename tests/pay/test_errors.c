/* SPDX-License-Identifier: Apache-2.0
 * Errors of money against simulated ones: values are drawn around true ones, and the shares that
 * they give are compared with those of the truth. */
#include "../base/scratch.h"

#include "pay/pay.h"

#include <math.h>

enum { MOST = 100, ROUNDS = 400, AMOUNT = 1000000 };

/* Shares without rounding. */
static void divide(const double *values, size_t n, fds__pay_rule rule, double *shares) {
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += rule == FDS__PAY_RULE_SIGNED ? values[i] : fmax(values[i], 0);
    for (size_t i = 0; i < n; i++)
        shares[i] =
            AMOUNT * (rule == FDS__PAY_RULE_SIGNED ? values[i] : fmax(values[i], 0)) / total;
}

typedef struct {
    double expected, found; /* misallocated, of 1 */
    double covered;         /* share of the payees that earn whose interval holds the truth */
} outcome;

/* What least squares do with the value of a player whose truth is normal around 0 (ls_noise.c). */
static void shrink(double spread, double *value, double *error) {
    double kept = spread * spread / (spread * spread + *error * *error);
    *value *= kept;
    *error *= sqrt(kept);
}

/* large of n players have true values from 0.03 to 0.15, the others of about spread; all errors are
 * about error. is_shrunk: those of the others are shrunk by what is known of them. */
static outcome simulate(size_t n, size_t large, double spread, double error, bool is_shrunk,
                        fds__pay_rule rule) {
    outcome sum = {0};
    double truth[MOST], values[MOST], errors[MOST], paid[MOST], due[MOST], stated[MOST];
    for (unsigned round = 0; round < ROUNDS; round++) {
        fds_rng rng = fds_rng_make(5, 0, round, 0);
        double shift = 0, difference = 0;
        size_t holds = 0;
        for (size_t i = 0; i < n; i++) {
            truth[i] =
                spread * fds_rng_normal(&rng) + (i < large ? 0.03 + 0.12 * fds_rng_unit(&rng) : 0);
            errors[i] = error * (0.7 + 0.6 * fds_rng_unit(&rng));
            values[i] = truth[i] + errors[i] * fds_rng_normal(&rng);
            shift += (truth[i] - values[i]) / (double)n;
        }
        for (size_t i = 0; i < n; i++)
            values[i] += shift; /* efficiency: the sum of the values is known */
        for (size_t i = large; is_shrunk && i < n; i++)
            shrink(spread, &values[i], &errors[i]);
        divide(values, n, rule, paid);
        divide(truth, n, rule, due);
        sum.expected += fds__pay_errors(values, errors, n, AMOUNT, rule, stated) / AMOUNT / ROUNDS;
        for (size_t i = 0; i < n; i++)
            difference += fabs(paid[i] - due[i]) / 2;
        for (size_t i = 0; i < large; i++)
            holds += fabs(paid[i] - due[i]) <= 1.96 * stated[i];
        sum.found += difference / AMOUNT / ROUNDS;
        sum.covered += (double)holds / (double)large / ROUNDS;
    }
    print_message(
        "# %zu payees, error %.3f, %s: %.3f misallocated, %.3f expected; %.1f %% covered\n", n,
        error, is_shrunk ? "shrunk" : "plain", sum.found, sum.expected, 100 * sum.covered);
    return sum;
}

static void misallocated_money_is_as_simulated(void **state) {
    (void)state;
    static const struct {
        size_t n, large;
        double spread, error;
    } cases[] = {{100, 10, 0.003, 0.003}, {100, 10, 0.003, 0.01}, {100, 10, 0, 0.01},
                 {12, 2, 0.003, 0.02},    {12, 12, 0, 0.02},      {20, 20, 0, 0.005}};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int is_plain = 0; is_plain < 2; is_plain++)
            for (int rule = FDS__PAY_RULE_CLIP; rule <= FDS__PAY_RULE_SIGNED; rule++) {
                outcome o = simulate(cases[i].n, cases[i].large, cases[i].spread, cases[i].error,
                                     !is_plain, (fds__pay_rule)rule);
                /* plain values that are mostly noise are less certain than their errors say */
                assert_true(o.expected > (is_plain ? 0.55 : 0.9) * o.found);
                assert_true(o.expected < 1.4 * o.found && o.covered > 0.85);
            }
}

static void exact_values_have_no_error(void **state) {
    (void)state;
    double out[3];
    const double values[] = {0.5, -0.25, 0}, errors[3] = {0};
    for (int rule = FDS__PAY_RULE_CLIP; rule <= FDS__PAY_RULE_CLIP_FOR_SIGNED; rule++) {
        assert_true(fds__pay_errors(values, errors, 3, 100, (fds__pay_rule)rule, out) == 0);
        assert_true(out[0] == 0 && out[1] == 0 && out[2] == 0);
    }
}

static void errors_that_are_not_known_stay_so(void **state) {
    (void)state;
    double out[2];
    const double values[] = {1, 2}, one[] = {0.1, NAN};
    assert_true(isnan(fds__pay_errors(values, one, 2, 100, FDS__PAY_RULE_CLIP, out)));
    assert_true(isnan(fds__pay_errors(values, one, 2, 100, FDS__PAY_RULE_SIGNED, out)));
    assert_true(isnan(fds__pay_errors(values, one, 2, 100, FDS__PAY_RULE_EVENLY, out)));
    assert_true(isnan(out[0]));
}

/* Of two payees who share evenly each error is half of that of the difference. */
static void two_payees_by_hand(void **state) {
    (void)state;
    double out[2];
    const double values[] = {100, 100}, errors[] = {3, 4};
    double misallocated = fds__pay_errors(values, errors, 2, 200, FDS__PAY_RULE_CLIP, out);
    assert_true(fabs(out[0] - 2.5) < 1e-9 && fabs(out[1] - 2.5) < 1e-9);
    assert_true(fabs(misallocated - 2.5 * 0.79788456080286536) < 1e-9);
    misallocated = fds__pay_errors(values, errors, 2, 200, FDS__PAY_RULE_SIGNED, out);
    assert_true(out[0] == 3 && out[1] == 4);
    assert_true(fabs(misallocated - 3.5 * 0.79788456080286536) < 1e-9);
}

/* One payee gets everything, whatever its value; beside one that is surely below zero, nearly so. */
static void what_nobody_else_may_be_due_is_not_misallocated(void **state) {
    (void)state;
    double out[2];
    const double one[] = {0.1}, its_error[] = {0.1};
    assert_true(fabs(fds__pay_errors(one, its_error, 1, 100, FDS__PAY_RULE_CLIP, out)) < 1e-9);
    const double two[] = {0.1, -0.05}, errors[] = {0.1, 0.02};
    assert_true(fds__pay_errors(two, errors, 2, 100, FDS__PAY_RULE_CLIP, out) < 1);
}

/* Where no value is above zero, any one of the payees may be due everything. */
static void without_a_value_above_zero_anyone_may_be_due_it(void **state) {
    (void)state;
    double out[4];
    const double values[4] = {-1, -1, -1, 0}, errors[] = {1, 1, 1, 1}, none[4] = {0};
    assert_true(fds__pay_errors(values, errors, 4, 100, FDS__PAY_RULE_EVENLY, out) == 75);
    assert_true(fabs(out[0] - 25 * sqrt(3)) < 1e-9);
    assert_true(fds__pay_errors(values, none, 4, 100, FDS__PAY_RULE_EVENLY, out) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misallocated_money_is_as_simulated),
        cmocka_unit_test(exact_values_have_no_error),
        cmocka_unit_test(errors_that_are_not_known_stay_so),
        cmocka_unit_test(two_payees_by_hand),
        cmocka_unit_test(what_nobody_else_may_be_due_is_not_misallocated),
        cmocka_unit_test(without_a_value_above_zero_anyone_may_be_due_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
