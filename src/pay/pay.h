/* SPDX-License-Identifier: Apache-2.0
 *
 * pay: values turned into money.
 *
 *   pay.c      one amount divided by values, exactly
 *   payment.c  a payment for every prediction of a result, and its file
 */
#ifndef FDS_PAY_H
#define FDS_PAY_H

#include "base/base.h"

/* How values become money:
 *   FDS__POLICY_CLIP    negative values earn nothing, the others share in proportion
 *   FDS__POLICY_SIGNED  c_i = phi_i / sum phi * c, the paper's: negative values owe */
typedef enum fds__policy { FDS__POLICY_CLIP, FDS__POLICY_SIGNED } fds__policy;

/* The rule that was applied. */
typedef enum fds__pay_rule {
    FDS__PAY_RULE_CLIP,
    FDS__PAY_RULE_SIGNED,
    FDS__PAY_RULE_CLIP_FOR_SIGNED, /* signed, but the sum is below 5 % of the sum of sizes */
    FDS__PAY_RULE_EVENLY           /* no value is above zero */
} fds__pay_rule;
const char *fds__pay_rule_text(fds__pay_rule rule);

/* Divides amount, a whole number of the smallest unit of money, by the values: shares[count] add up
 * to it exactly (largest remainder; ties go to the lowest number). FDS_ERR_USAGE for no players, a
 * negative amount or values that are not finite; FDS_ERR_LIMIT for an amount above INT64_MAX / 32,
 * because a signed share may be 20 times as much. */
fds_status fds__pay(const double *values, size_t count, int64_t amount, fds__policy policy,
                    int64_t *shares, fds__pay_rule *rule, fds_error *err);

#endif
