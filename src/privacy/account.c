/* SPDX-License-Identifier: Apache-2.0
 *
 * What releases cost together. Pure epsilon adds up; rho of zero-concentrated differential privacy adds
 * up; rho becomes (epsilon, delta) by corollary 13 of Canonne, Kamath and Steinke (2020):
 *
 *     delta = inf over alpha > 1 of  exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1)
 *
 * Every alpha gives a valid bound, so an alpha that is a little off costs tightness, never validity. */
#include "privacy/privacy.h"

#include <math.h>

enum { STEPS = 200 }; /* of a bisection: more than a double has bits */

fds_status fds__cost_add(uint64_t *sum, uint64_t cost_nano, fds_error *err) {
    uint64_t total;
    if (__builtin_add_overflow(*sum, cost_nano, &total))
        return fds__fail(err, FDS_ERR_LIMIT, "the budget does not fit 64 bits");
    *sum = total;
    return FDS_OK;
}

double fds__pure_rho(double epsilon) { return epsilon * epsilon / 2; }

double fds__zcdp_delta(double rho, double epsilon) {
    if (rho <= 0)
        return 0;
    /* the logarithm of the bound is least where (2 alpha - 1) rho - epsilon + log(1 - 1/alpha) = 0,
     * which rises in alpha; at this upper end it is above 0 */
    double low = 1, high = (epsilon + 1) / (2 * rho) + 2;
    for (int i = 0; i < STEPS; i++) {
        double alpha = low + (high - low) / 2;
        if ((2 * alpha - 1) * rho - epsilon + log1p(-1 / alpha) < 0)
            low = alpha;
        else
            high = alpha;
    }
    double log_delta =
        (high - 1) * (high * rho - epsilon) + high * log1p(-1 / high) - log(high - 1);
    return MIN(exp(log_delta), 1);
}

double fds__zcdp_epsilon(double rho, double delta) {
    if (rho <= 0)
        return 0;
    double low = 0,
           high = rho + 2 * sqrt(rho * -log(delta)); /* Bun and Steinke's, which is enough */
    for (int i = 0; i < STEPS; i++) {
        double epsilon = low + (high - low) / 2;
        if (fds__zcdp_delta(rho, epsilon) <= delta)
            high = epsilon;
        else
            low = epsilon;
    }
    return high;
}

uint64_t fds__zcdp_rho_nano(double epsilon, double delta) {
    uint64_t low = 0, high = UINT64_C(1) << 50;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (fds__zcdp_epsilon((double)middle / (double)FDS__NANO, delta) <= epsilon)
            low = middle;
        else
            high = middle;
    }
    return low;
}

double fds__epsilon_of(double pure, double squares, double rho, double delta) {
    if (delta <= 0)
        return rho > 0 ? (double)INFINITY : pure;
    return MIN(pure + fds__zcdp_epsilon(rho, delta), fds__zcdp_epsilon(squares / 2 + rho, delta));
}
