/* SPDX-License-Identifier: Apache-2.0
 * Empirical Bayes. In a group whose values differ by hardly more than their errors, the differences
 * are noise, and a payment by value would pay for it. So in each column and group:
 *
 *     value <- mean + f (value - mean) + even,   f = tau^2 / (tau^2 + variance of the value)
 *
 * where even keeps the sum of the group, and tau^2 is the spread of its values beyond what their
 * variances explain. A value far from the mean, in a group of large spread, stays as it is. The
 * new variance is f times the old one, plus the share of the mean's own. It is computed with a
 * tau^2 that is larger by three quarters of its own standard error: a spread that is too small
 * by chance would promise too much.
 */
#include "ls.h"

#include <math.h>

/* The spread of fewer values says too little. */
enum { LEAST_MEMBERS = 4 };

static void shrink_group(const uint32_t *members, size_t count, size_t width, size_t c, double *phi,
                         double *var) {
    double mean = 0, noise = 0, squares = 0;
    for (size_t k = 0; k < count; k++) {
        size_t at = (members ? members[k] : k) * width + c;
        mean += phi[at] / (double)count;
        noise += var[at] / (double)count;
    }
    for (size_t k = 0; k < count; k++) {
        double off = phi[(members ? members[k] : k) * width + c] - mean;
        squares += off * off;
    }
    double lost = 0, moved = 0; /* the sum of the group stays */
    double spread = MAX(squares / (double)(count - 1) - noise, 0.0);
    double careful = spread + 0.75 * noise * sqrt(2 / (double)(count - 1));
    for (size_t k = 0; k < count; k++) {
        size_t at = (members ? members[k] : k) * width + c;
        if (var[at] == 0)
            continue;
        double kept = careful / (careful + var[at]);
        double value = mean + spread / (spread + var[at]) * (phi[at] - mean);
        lost += phi[at] - value;
        moved++;
        phi[at] = value;
        var[at] *= kept + (1 - kept) / (double)count;
    }
    for (size_t k = 0; k < count; k++) {
        size_t at = (members ? members[k] : k) * width + c;
        phi[at] += var[at] > 0 ? lost / moved : 0;
    }
}

void fds__ls_shrink_noise(const fds__design *d, size_t width, double *phi, double *var) {
    for (size_t g = 0; g < d->group_count; g++) {
        const uint32_t *members = NULL;
        size_t count = d->groups ? fds_groups_members(d->groups, g, &members) : d->players;
        for (size_t c = 0; count >= LEAST_MEMBERS && c < width; c++)
            shrink_group(members, count, width, c, phi, var);
    }
}
