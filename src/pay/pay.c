/* SPDX-License-Identifier: Apache-2.0
 * pay: values turned into money.
 *
 * The division uses whole numbers, so it is exact and the same everywhere: values are scaled by a
 * power of two until the greatest has 62 bits, and the fraction that remains, at most 2^-61 of the
 * greatest, is dropped. Each player gets the whole part of amount * weight / total; the units left
 * over, fewer than there are players, go one each to the largest remainders. So a player of a
 * greater value never gets less than another. */
#include "pay/pay.h"

#include <math.h>
#include <stdlib.h>

enum {
    BITS = 62,           /* of the greatest weight */
    LEAST_SUM_PART = 20, /* signed: the sum is at least 1/20 of the sum of sizes */
};

/* A share is at most LEAST_SUM_PART times the amount, and must fit. */
#define MOST_AMOUNT (INT64_MAX / 32)

__extension__ typedef __int128 int128;

typedef struct {
    int128 remainder; /* of amount * weight / total */
    size_t player;
} rest;

static int by_remainder(const void *left, const void *right) {
    const rest *a = left, *b = right;
    if (a->remainder != b->remainder)
        return a->remainder > b->remainder ? -1 : 1;
    return a->player < b->player ? -1 : a->player > b->player;
}

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

static int128 sum(const int64_t *weights, size_t count, bool of_sizes) {
    int128 total = 0;
    for (size_t i = 0; i < count; i++)
        total += of_sizes && weights[i] < 0 ? -weights[i] : weights[i];
    return total;
}

/* Sets the weights by the policy or, where it does not apply, by the rule that replaces it. */
static fds__pay_rule choose(const double *values, size_t count, fds__policy policy,
                            int64_t *weights) {
    if (policy == FDS__POLICY_SIGNED) {
        weigh(values, count, false, weights);
        int128 total = sum(weights, count, false), sizes = sum(weights, count, true);
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

/* total is above 0; a remainder is from 0 to total - 1, of negative weights too. */
static void divide(const int64_t *weights, size_t count, int64_t amount, rest *rests,
                   int64_t *shares) {
    int128 total = sum(weights, count, false), left = amount;
    for (size_t i = 0; i < count; i++) {
        int128 product = (int128)amount * weights[i], share = product / total;
        if (product % total < 0)
            share--;
        rests[i] = (rest){product - share * total, i};
        shares[i] = (int64_t)share;
        left -= share;
    }
    qsort(rests, count, sizeof *rests, by_remainder);
    for (size_t i = 0; i < (size_t)left; i++)
        shares[rests[i].player]++;
}

fds_status fds__pay(const double *values, size_t count, int64_t amount, fds__policy policy,
                    int64_t *shares, fds__pay_rule *rule, fds_error *err) {
    TRY(check(values, count, amount, err));
    int64_t *weights = fds__alloc_zero(count, sizeof *weights);
    rest *rests = fds__alloc_zero(count, sizeof *rests);
    bool has_memory = weights && rests;
    if (has_memory) {
        *rule = choose(values, count, policy, weights);
        divide(weights, count, amount, rests, shares);
    }
    fds__free(weights);
    fds__free(rests);
    return has_memory ? FDS_OK : fds__fail_nomem(err, count * sizeof *rests);
}
