/* SPDX-License-Identifier: Apache-2.0
 *
 * exp, log and tanh in plain double arithmetic, so that the bits do not depend on a libm. They are
 * exact to more digits than a float has. */
#ifndef FDS_LANE_SERIES_H
#define FDS_LANE_SERIES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

/* c[0] + c[1] x + c[2] x^2 + ... */
INLINE double polynomial(const double *c, int terms, double x) {
    double sum = c[terms - 1];
    UNROLL
    for (int i = terms - 2; i >= 0; i--)
        sum = sum * x + c[i];
    return sum;
}

/* exp(x) for x <= 0: 2^n times the series of the rest, which lies within ln 2 / 2 of 0. */
INLINE double exp_nonpositive(double x) {
    static const double series[] = {1.0,      1.0,       1.0 / 2,   1.0 / 6,
                                    1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040};
    const double round = 0x1.8p52; /* adding it leaves no place for a fraction */
    double t = x * 1.4426950408889634;
    t = t > -1000.0 ? t : -1000.0;
    double n = (t + round) - round;
    uint64_t bits = (uint64_t)((int64_t)n + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return scale * polynomial(series, 8, (t - n) * 0.6931471805599453);
}

/* log(x) for x >= 1: the exponent, and 2 atanh((m-1)/(m+1)) of the mantissa between sqrt(1/2) and
 * sqrt(2). */
INLINE double log_positive(double m) {
    static const double series[] = {1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13};
    uint64_t bits;
    memcpy(&bits, &m, sizeof bits);
    int64_t exponent = (int64_t)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffull) | (1023ull << 52);
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double s = (m - 1.0) / (m + 1.0);
    return (double)exponent * 0.6931471805599453 + 2.0 * s * polynomial(series, 7, s * s);
}

/* (1 - e) / (1 + e) with e = exp(-2 |x|), and the sign of x. What is no number stays none. */
INLINE double tanh_series(double x) {
    double e = exp_nonpositive(-2.0 * fabs(x));
    return x == x ? copysign((1.0 - e) / (1.0 + e), x) : x;
}

#endif
