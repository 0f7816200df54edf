/* SPDX-License-Identifier: Apache-2.0
 * Accounting against figures of the paper's own program, and grids. */
#include "../base/scratch.h"

#include "privacy/privacy.h"

#include <float.h>
#include <math.h>

/* The bound itself over many alphas: none is better than ours. */
static double least_delta(double rho, double epsilon) {
    double least = 1;
    for (double log_alpha = -20; log_alpha < 20; log_alpha += 1e-3) {
        double alpha = 1 + exp(log_alpha);
        least = fmin(least, exp((alpha - 1) * (alpha * rho - epsilon) + alpha * log1p(-1 / alpha) -
                                log(alpha - 1)));
    }
    return least;
}

static void delta_is_the_least_over_alpha(void **state) {
    (void)state;
    const double rhos[] = {1e-4, 0.01, 0.5, 4}, epsilons[] = {0.1, 1, 4, 10};
    for (size_t i = 0; i < COUNT(rhos); i++)
        for (size_t j = 0; j < COUNT(epsilons); j++) {
            double ours = fds__zcdp_delta(rhos[i], epsilons[j]);
            double least = least_delta(rhos[i], epsilons[j]);
            assert_true(ours <= least * (1 + 1e-9));
            assert_true(ours >= least * (1 - 1e-4) || ours < DBL_MIN);
        }
}

static void epsilon_and_rho_invert_delta(void **state) {
    (void)state;
    const double rhos[] = {1e-4, 0.01, 0.5, 4}, deltas[] = {1e-3, 1e-6, 1e-10};
    for (size_t i = 0; i < COUNT(rhos); i++)
        for (size_t j = 0; j < COUNT(deltas); j++) {
            double epsilon = fds__zcdp_epsilon(rhos[i], deltas[j]);
            assert_true(fds__zcdp_delta(rhos[i], epsilon) <= deltas[j]);
            assert_true(fds__zcdp_delta(rhos[i], epsilon * (1 - 1e-9)) > deltas[j]);
            /* tighter than Bun and Steinke's conversion */
            assert_true(epsilon < rhos[i] + 2 * sqrt(rhos[i] * -log(deltas[j])));
            double rho = (double)fds__zcdp_rho_nano(epsilon, deltas[j]) / 1e9;
            assert_true(rho <= rhos[i] * (1 + 1e-12) && rho >= rhos[i] - 2e-9);
        }
}

/* Gaussian noise of sigma on a sensitivity of 1 has an exact delta (Balle and Wang 2018), which the
 * conversion must not go below. */
static void conversion_is_not_below_the_truth(void **state) {
    (void)state;
    for (double sigma = 0.5; sigma < 20; sigma *= 1.5)
        for (double epsilon = 0.1; epsilon < 8; epsilon *= 1.7) {
            double a = 1 / (2 * sigma) - epsilon * sigma, b = -1 / (2 * sigma) - epsilon * sigma;
            double truth = 0.5 * erfc(-a / sqrt(2)) - exp(epsilon) * 0.5 * erfc(-b / sqrt(2));
            assert_true(fds__zcdp_delta(1 / (2 * sigma * sigma), epsilon) >= truth);
        }
}

static void costs_add_up_and_do_not_wrap(void **state) {
    (void)state;
    fds_error err = {0};
    uint64_t sum = 0;
    for (int i = 0; i < 12; i++)
        assert_int_equal(fds__cost_add(&sum, 100000001, &err), FDS_OK);
    assert_true(sum == 1200000012);
    sum = UINT64_MAX - 1;
    assert_int_equal(fds__cost_add(&sum, 2, &err), FDS_ERR_LIMIT);
    assert_true(sum == UINT64_MAX - 1);
}

/* Twelve Laplace releases of epsilon 1 against twelve Gaussian ones that cost as much each. */
static void releases_together_cost_the_lesser_bound(void **state) {
    (void)state;
    assert_true(fds__epsilon_of(3, 3, 0, 0) == 3);
    assert_true(isinf(fds__epsilon_of(3, 3, 0.1, 0)));
    assert_true(fds__epsilon_of(3, 3, 0, 1e-6) == 3); /* few: plain addition is less */
    assert_true(fds__epsilon_of(365, 365, 0, 1e-6) < 365);
    assert_true(fds__epsilon_of(365, 365, 0, 1e-6) == fds__zcdp_epsilon(182.5, 1e-6));
}

static void a_grid_takes_the_nearest_step(void **state) {
    (void)state;
    const struct {
        double x, step;
        int64_t steps;
    } cases[] = {{1.2, 0.5, 2}, {1.3, 0.5, 3}, {-1.3, 0.5, -3}, {0.25, 0.5, 0}, {0.75, 0.5, 2}};
    fds_error err = {0};
    int64_t steps;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(fds__to_grid(cases[i].x, cases[i].step, &steps, &err), FDS_OK);
        assert_true(steps == cases[i].steps);
    }
    assert_int_equal(fds__to_grid((double)NAN, 1, &steps, &err), FDS_ERR_USAGE);
    assert_int_equal(fds__to_grid(1, 0, &steps, &err), FDS_ERR_USAGE);
    assert_int_equal(fds__to_grid(1e300, 1, &steps, &err), FDS_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delta_is_the_least_over_alpha),
        cmocka_unit_test(epsilon_and_rho_invert_delta),
        cmocka_unit_test(conversion_is_not_below_the_truth),
        cmocka_unit_test(costs_add_up_and_do_not_wrap),
        cmocka_unit_test(releases_together_cost_the_lesser_bound),
        cmocka_unit_test(a_grid_takes_the_nearest_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
