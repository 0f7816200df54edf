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
 * by chance would promise too much. A value farther from the mean than tau^2 and its variance explain
 * loses (1 - f) of a deviation that is probably real: the square of that is added.
 *
 * The greatest value of a column suffers from the winner's curse: among values that their errors
 * cannot tell apart, the greatest is the one with the luckiest error. How large that error is
 * expected to be is added to the stated one in quadrature.
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
        double kept = careful / (careful + var[at]), moves = var[at] / (spread + var[at]);
        double off = phi[at] - mean, value = phi[at] - moves * off;
        double excess = MAX(off * off - var[at] - careful, 0.0);
        lost += phi[at] - value;
        moved++;
        phi[at] = value;
        var[at] = var[at] * (kept + (1 - kept) / (double)count) + moves * moves * excess;
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

/* ---- the winner's curse ---- */

static double normal_share(double x) { return erfc(-x / sqrt(2)) / 2; }

/* The expected error of the greatest estimate, given that no other one is greater: estimates are
 * normal around the values found. An integral over the error, in steps of half a standard error;
 * logarithms, because thousands of others may come near. */
static double expected_luck(const double *phi, const double *var, size_t players, size_t width,
                            size_t top) {
    enum { STEPS = 17 };
    double logs[STEPS], error = sqrt(var[top * width]), sum = 0, all = 0, most = -INFINITY;
    for (int s = 0; s < STEPS; s++)
        logs[s] = -pow((s - STEPS / 2) / 2.0, 2) / 2;
    for (size_t k = 0; k < players; k++) {
        double lead = phi[top * width] - phi[k * width], other = sqrt(var[k * width]);
        bool is_far = lead > STEPS / 4 * error + 6 * other;
        for (int s = 0; k != top && !is_far && s < STEPS; s++) {
            double ahead = lead + (s - STEPS / 2) / 2.0 * error;
            logs[s] += log(other > 0 ? normal_share(ahead / other) : ahead >= 0);
        }
    }
    for (int s = 0; s < STEPS; s++)
        most = fmax(most, logs[s]);
    for (int s = 0; s < STEPS && most > -INFINITY; s++) {
        double weight = exp(logs[s] - most);
        sum += weight * (s - STEPS / 2) / 2.0 * error;
        all += weight;
    }
    return all > 0 ? sum / all : 0;
}

fds_status fds__ls_add_winners_curse(size_t players, size_t width, const double *phi, double *var,
                                     fds_error *err) {
    for (size_t c = 0; c < width; c++) {
        size_t top = 0;
        for (size_t k = 1; k < players; k++)
            if (phi[k * width + c] > phi[top * width + c])
                top = k;
        double luck = expected_luck(phi + c, var + c, players, width, top);
        var[top * width + c] += luck * luck;
        TRY(fds__pool_check(err));
    }
    return FDS_OK;
}
