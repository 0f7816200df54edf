/* SPDX-License-Identifier: Apache-2.0
 * One amount divided by values.
 *
 * The division uses whole numbers, so it is exact and the same everywhere: values are scaled by a
 * power of two until the greatest has 62 bits, and the fraction that remains, at most 2^-61 of the
 * greatest, is dropped. A payee is due amount * weight / total: a whole part, and a fraction of which
 * 64 bits are kept. Equal values have equal fractions. */
#include "pay/pay.h"

#include <math.h>

enum {
    BITS = 62,           /* of the greatest weight */
    LEAST_SUM_PART = 20, /* signed: the sum is at least 1/20 of the sum of sizes */
    HALF = 32,           /* bits of a fraction that are computed at a time */
};

/* A share is at most LEAST_SUM_PART times the amount, and must fit. */
#define MOST_AMOUNT (INT64_MAX / 32)

const char *fds__pay_rule_text(fds__pay_rule rule) {
    switch (rule) {
    case FDS__PAY_RULE_CLIP:
        return "in proportion to the values, where negative ones earn nothing";
    case FDS__PAY_RULE_SIGNED:
        return "in proportion to the values, where negative ones owe";
    case FDS__PAY_RULE_CLIP_FOR_SIGNED:
        return "negative values earn nothing instead of owing, because the values nearly cancel "
               "each other out";
    case FDS__PAY_RULE_EVENLY:
        return "the same for everybody, because no value is above zero";
    }
    return "?";
}

/* ---- weights ---- */

static fds_status check(const double *values, size_t count, int64_t amount, fds_error *err) {
    if (count == 0)
        return fds__fail(err, FDS_ERR_USAGE, "there are no players to pay");
    if (amount < 0)
        return fds__fail(err, FDS_ERR_USAGE, "an amount must be at least 0 (got %lld)",
                         (long long)amount);
    if (amount > MOST_AMOUNT)
        return fds__fail(err, FDS_ERR_LIMIT, "an amount must be at most %lld units (got %lld)",
                         (long long)MOST_AMOUNT, (long long)amount);
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return fds__fail(err, FDS_ERR_USAGE, "the value of player %zu (from 0) is not finite",
                             i);
    return FDS_OK;
}

/* Weights of BITS bits; with is_clipped those of negative values are 0. */
static void weigh(const double *values, size_t count, bool is_clipped, int64_t *weights) {
    double greatest = 0;
    int exponent;
    for (size_t i = 0; i < count; i++)
        if (values[i] > 0 || !is_clipped)
            greatest = MAX(greatest, fabs(values[i]));
    frexp(greatest, &exponent); /* greatest is below 2^exponent */
    for (size_t i = 0; i < count; i++)
        weights[i] = is_clipped && values[i] < 0 ? 0 : (int64_t)ldexp(values[i], BITS - exponent);
}

static fds__fixed sum(const int64_t *weights, size_t count, bool of_sizes) {
    fds__fixed total = 0;
    for (size_t i = 0; i < count; i++)
        total += of_sizes && weights[i] < 0 ? -weights[i] : weights[i];
    return total;
}

/* Sets the weights by the policy or, where it does not apply, by the rule that replaces it. */
static fds__pay_rule choose(const double *values, size_t count, fds__policy policy,
                            int64_t *weights) {
    if (policy == FDS__POLICY_SIGNED) {
        weigh(values, count, false, weights);
        fds__fixed total = sum(weights, count, false), sizes = sum(weights, count, true);
        if (total > 0 && total * LEAST_SUM_PART >= sizes)
            return FDS__PAY_RULE_SIGNED;
    }
    weigh(values, count, true, weights);
    if (sum(weights, count, false) > 0)
        return policy == FDS__POLICY_SIGNED ? FDS__PAY_RULE_CLIP_FOR_SIGNED : FDS__PAY_RULE_CLIP;
    for (size_t i = 0; i < count; i++)
        weights[i] = 1;
    return FDS__PAY_RULE_EVENLY;
}

/* ---- shares ---- */

/* rest / total, which is below 1, with 64 bits after the point, rounded down. */
static fds__fixed fraction(fds__fixed rest, fds__fixed total) {
    fds__fixed bits = 0;
    for (int half = 0; half < 2; half++) {
        rest <<= HALF; /* total is below 2^95 for less than 2^33 payees */
        bits = bits << HALF | rest / total;
        rest %= total;
    }
    return bits;
}

fds_status fds__divide(const double *values, size_t count, int64_t amount, fds__policy policy,
                       int64_t *weights, int64_t *shares, fds__fixed *parts, size_t *left,
                       fds__pay_rule *rule, fds_error *err) {
    TRY(check(values, count, amount, err));
    *rule = choose(values, count, policy, weights);
    fds__fixed total = sum(weights, count, false), units = amount;
    assert(total > 0 && total < (fds__fixed)1 << 95);
    for (size_t i = 0; i < count; i++) {
        fds__fixed product = (fds__fixed)amount * weights[i], share = product / total;
        share -= product % total < 0; /* down, of negative weights too */
        shares[i] = (int64_t)share;
        parts[i] = fraction(product - share * total, total);
        units -= share;
    }
    assert(units >= 0 && units < (fds__fixed)count);
    *left = (size_t)units;
    return FDS_OK;
}
