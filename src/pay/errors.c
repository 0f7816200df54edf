/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors of money from errors of values. A value is phi_i, its standard error e_i, the amount c.
 *
 * signed: c_i = c phi_i / V. The sum of the values, V = v(N) - v(0), is known without error, so the
 * error of c_i is c e_i / V.
 *
 * clip: c_i = c p_i / P, with p_i = max(phi_i, 0) and P their sum, which has an error too. The error
 * of p_i is u_i, the root mean square of max(phi_i + e_i z, 0) - p_i for a standard normal z: e_i far
 * above zero, e_i / sqrt(2) at zero, 0 far below. Clipping also turns noise into income: a value
 * whose truth is zero adds e_i / sqrt(2 pi) to P on average. B estimates the sum of that, as the sum
 * of sqrt(2) e_i f(phi_i / e_i), where f is the density of z: the mean of a term is right for a true
 * value of zero, and too large for others. To first order, with a_i = p_i / P and values whose errors
 * are independent,
 *
 *     error of c_i = c / P * sqrt((1 - a_i)^2 u_i^2 + a_i^2 (B^2 + sum of u_j^2 over the others))
 *
 * What is misallocated is half the sum of |c_i - true c_i|. Its mean, for true values t_i that are
 * normal around phi_i with standard deviation e_i: with signed, sqrt(2 / pi) times half the sum of the
 * errors; with clip, half the sum of the means of |c p_i / P - c max(t_i, 0) / P'|, where P' is the mean
 * of the sum of max(t_j, 0). P' is above P, because the truth too has values on either side of zero.
 *
 * evenly: no value is above zero, so the values do not say who is due the money. It may be any one of
 * the n payees: the error of c / n is then c sqrt(n - 1) / n, and c (1 - 1/n) is misallocated. */
#include "pay/pay.h"

#include <math.h>

#define MEAN_OF_NORMAL 0.79788456080286536 /* sqrt(2 / pi) */

static double density(double z) { return exp(-z * z / 2) * MEAN_OF_NORMAL / 2; }

/* u_i^2: the mean square of max(value + error z, 0) - max(value, 0). */
static double clipped_variance(double value, double error) {
    if (error == 0)
        return 0;
    double a = value / error, below = erfc(-a / sqrt(2)) / 2,
           above = erfc(a / sqrt(2)) / 2; /* P(z < a), P(z > a) */
    double square =
        value > 0 ? below - a * density(a) + a * a * above : (1 + a * a) * below + a * density(a);
    return error * error * fmax(square, 0);
}

/* The mean of max(t, 0) for t normal around value. */
static double clipped_mean(double value, double error) {
    return error == 0 ? fmax(value, 0)
                      : value * erfc(-value / error / sqrt(2)) / 2 + error * density(value / error);
}

/* The mean of |paid - max(t, 0)|, paid being 0 or more. */
static double clipped_distance(double paid, double value, double error) {
    if (error == 0)
        return fabs(paid - fmax(value, 0));
    double from = -value / error, to = (paid - value) / error;
    double below = erfc(-from / sqrt(2)) / 2, between = erfc(-to / sqrt(2)) / 2 - below,
           above = erfc(to / sqrt(2)) / 2; /* P(t < 0), P(0 < t < paid), P(t > paid) */
    return paid * below + (paid - value) * (between - above) +
           error * (2 * density(to) - density(from));
}

/* Of one unit of money. A share also depends on the errors of the others, through their sum. */
static double misallocated_by_clip(const double *values, const double *errors, size_t count) {
    double paid = 0, due = 0, all = 0, sum = 0;
    for (size_t i = 0; i < count; i++) {
        paid += fmax(values[i], 0);
        due += clipped_mean(values[i], errors[i]);
        all += clipped_variance(values[i], errors[i]);
    }
    for (size_t i = 0; i < count; i++) {
        double part = fmax(values[i], 0) / paid, own = (1 - part) * errors[i];
        double others = fmax(all - clipped_variance(values[i], errors[i]), 0);
        /* what it would get of the truth's sum if its own value were exact */
        double fair = part * (due - clipped_mean(values[i], errors[i]) + fmax(values[i], 0));
        sum += clipped_distance(fair, values[i], sqrt(own * own + part * part * others));
    }
    return sum / due / 2;
}

/* Both of one unit of money. */
static void errors_of_signed(const double *values, const double *errors, size_t count,
                             double *out) {
    double total = 0;
    for (size_t i = 0; i < count; i++)
        total += values[i];
    for (size_t i = 0; i < count; i++)
        out[i] = errors[i] / total;
}

static void errors_of_clip(const double *values, const double *errors, size_t count, double *out) {
    double total = 0, all = 0, noise = 0;
    for (size_t i = 0; i < count; i++) {
        out[i] = clipped_variance(values[i], errors[i]);
        total += fmax(values[i], 0);
        all += out[i];
        noise += errors[i] == 0 ? 0 : sqrt(2) * errors[i] * density(values[i] / errors[i]);
    }
    for (size_t i = 0; i < count; i++) {
        double part = fmax(values[i], 0) / total, own = (1 - part) * (1 - part) * out[i];
        out[i] = sqrt(own + part * part * (noise * noise + fmax(all - out[i], 0))) / total;
    }
}

/* Unless the values are exact, any one may be due everything. Returns what is misallocated. */
static double errors_of_evenly(const double *errors, size_t count, double *out) {
    double n = (double)count, sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += errors[i];
    double doubt = isnan(sum) ? (double)NAN : sum > 0;
    for (size_t i = 0; i < count; i++)
        out[i] = doubt * sqrt(n - 1) / n;
    return doubt * (1 - 1 / n);
}

double fds__pay_errors(const double *values, const double *errors, size_t count, int64_t amount,
                       fds__pay_rule rule, double *out) {
    double misallocated = 0;
    if (rule == FDS__PAY_RULE_EVENLY)
        misallocated = errors_of_evenly(errors, count, out);
    else if (rule == FDS__PAY_RULE_SIGNED)
        errors_of_signed(values, errors, count, out);
    else
        errors_of_clip(values, errors, count, out);
    if (rule == FDS__PAY_RULE_CLIP || rule == FDS__PAY_RULE_CLIP_FOR_SIGNED)
        misallocated = misallocated_by_clip(values, errors, count);
    for (size_t i = 0; i < count; i++) {
        misallocated += rule == FDS__PAY_RULE_SIGNED ? MEAN_OF_NORMAL / 2 * out[i] : 0;
        out[i] *= (double)amount;
    }
    return misallocated * (double)amount;
}
