/* SPDX-License-Identifier: Apache-2.0
 *
 * pay: values turned into money. docs/pay.md has the rules and their proofs.
 *
 *   divide.c    one amount divided by values: whole units and the fractions left over
 *   carry.c     who gets the units left over, so that no fraction is ever lost
 *   errors.c    standard errors of values as standard errors of money
 *   money.c     amounts and currencies as text
 *   payees.c    who is paid: players, providers or groups
 *   members.c   what the members of a cluster get
 *   payer.c     pays prediction after prediction, and keeps what is owed in a file
 *   batch.c     all inputs of a batch, block by block
 *   payment.c   what a payer has paid for the predictions of a result
 *   write.c     payments as CSV, JSON and lines of JSON
 */
#ifndef FDS_PAY_H
#define FDS_PAY_H

#include "base/base.h"
#include "fds/advanced.h"

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

/* ---- divide.c ---- */

/* Units of money with 64 bits after the point. */
__extension__ typedef __int128 fds__fixed;
#define FDS__UNIT ((fds__fixed)1 << 64)

/* Divides amount, a whole number of units, by the values: payee i is due shares[i] whole units and
 * the fraction parts[i] of one, rounded down to 64 bits. The exact fractions add up to *left units,
 * fewer than there are payees. weights (count) is scratch.
 * FDS_ERR_USAGE for no payees, a negative amount or values that are not finite; FDS_ERR_LIMIT for an
 * amount above INT64_MAX / 32, because a signed share may be 20 times as much. */
fds_status fds__divide(const double *values, size_t count, int64_t amount, fds__policy policy,
                       int64_t *weights, int64_t *shares, fds__fixed *parts, size_t *left,
                       fds__pay_rule *rule, fds_error *err);

/* ---- carry.c ---- */

/* What each payee is still owed: its exact total minus what it was paid. */
typedef struct fds__carry fds__carry;

fds_status fds__carry_create(size_t count, fds__carry **out, fds_error *err);
void fds__carry_free(fds__carry *carry);
/* A prediction to come. Those that are foreseen, in the order in which they will be paid, end with
 * every payee within one unit of its exact total. Only before the first payment. */
fds_status fds__carry_foresee(fds__carry *carry, const double *values, int64_t amount,
                              fds__policy policy, fds_error *err);
/* Pays for the next prediction: shares (count) add up to the amount. They are untouched, and nothing
 * is paid, after a failure, whose reasons are those of fds__divide. */
fds_status fds__carry_pay(fds__carry *carry, const double *values, int64_t amount,
                          fds__policy policy, int64_t *shares, fds__pay_rule *rule, fds_error *err);
fds__fixed fds__carry_owed(const fds__carry *carry, size_t payee);
/* Goes on from what an earlier carry owed: owed (count), whose sum is 0 up to rounding. */
void fds__carry_set(fds__carry *carry, const fds__fixed *owed);

/* ---- errors.c ---- */

/* Standard errors of shares in units: out (count), from the values and their standard errors (NaN:
 * not known). Returns how many units are expected to be misallocated, half the sum of all
 * differences from the true shares; NaN when an error is not known. */
double fds__pay_errors(const double *values, const double *errors, size_t count, int64_t amount,
                       fds__pay_rule rule, double *out);

/* ---- money.c ---- */

/* What an amount is counted in. */
typedef struct fds__unit {
    const char *currency; /* an ISO 4217 code, or NULL */
    int decimals;
} fds__unit;

/* Reads "100.5" as 10050 units of 2 decimals. Without a currency there are as many decimals as the
 * text has, at least 2. name: of the parameter, for messages. */
fds_status fds__money_read(const char *name, const char *text, const char *currency,
                           fds__unit *unit, int64_t *amount, fds_error *err);
double fds__money_scale(int decimals); /* 10^decimals */

/* ---- payees.c ---- */

typedef enum fds__pay_by {
    FDS__PAY_BY_PLAYER,
    FDS__PAY_BY_PROVIDER,
    FDS__PAY_BY_GROUP
} fds__pay_by;
const char *fds__pay_by_name(fds__pay_by by);

/* Who is paid, with copies of all names. Several payments may share one. */
typedef struct fds__payees {
    fds__pay_by by;
    size_t players, count, *payee_of; /* payee_of (players) */
    char *
        *names; /* (4, count): player, its label, provider, group; NULL each where not paid by it */
    uint32_t *samples; /* (count) of a player */
    json_t *clusters;  /* players that are several providers: {"player", "members"}; or NULL */
    uint64_t checksum; /* of everything that tells the players apart */
    unsigned users;
} fds__payees;

enum { FDS__NAME_PLAYER, FDS__NAME_LABEL, FDS__NAME_PROVIDER, FDS__NAME_GROUP, FDS__NAMES };

fds_status fds__payees_create(const fds_result *result, fds__pay_by by, fds__payees **out,
                              fds_error *err);
fds__payees *fds__payees_share(fds__payees *payees); /* one more user */
void fds__payees_free(fds__payees *payees);          /* one less */
/* FDS_ERR_USAGE when a result has other players. */
fds_status fds__payees_check(const fds__payees *payees, const fds_result *result, fds_error *err);
static inline const char *fds__payees_name(const fds__payees *p, int which, size_t payee) {
    return p->names[(size_t)which * p->count + payee];
}

/* ---- payment.c ---- */

struct fds_payment {
    const fds_result *result; /* must outlive it; NULL: only sums, of predictions paid elsewhere */
    fds__payees *payees;
    fds__unit unit;
    fds__policy policy;
    bool is_total;      /* an amount for all predictions, not for each */
    int64_t each;       /* amount for each prediction, or 0 */
    size_t predictions; /* rows; one more has the sums */
    size_t paid;        /* predictions that the sums are of */
    int64_t *amounts;   /* (predictions + 1) */
    double *misallocated;
    double *values, *errors; /* (predictions + 1, payees) */
    int64_t *shares;         /* the same */
    fds__pay_rule *rules;    /* (predictions) */
};

/* Empty, for the predictions of a result; like gives everything else. */
fds_status fds__payment_create(const fds_payment *like, const fds_result *result, fds_payment **out,
                               fds_error *err);
/* Makes the arrays of a payment whose payees and predictions are known. */
fds_status fds__payment_reserve(fds_payment *payment, fds_error *err);
/* Adds row k of one payment to the sums of another (or of itself). FDS_ERR_LIMIT: too large. */
fds_status fds__payment_add(fds_payment *sums, const fds_payment *payment, size_t k,
                            fds_error *err);

/* ---- members.c ---- */

/* The list of fds_payment_clusters; NULL: out of memory. */
json_t *fds__payment_clusters_json(const fds_payment *payment);

/* ---- payer.c ---- */

bool fds__payer_has_carry(const fds_payer *payer);

/* ---- write.c ---- */

/* Writes payments as they come, in the format of a name: "csv", "json" or "jsonl". */
typedef struct fds__pay_writer fds__pay_writer;

/* To a file, which is put in place by the commit. is_summary: the sums only. */
fds_status fds__pay_writer_open(const char *path, bool is_summary, fds__pay_writer **out,
                                fds_error *err);
/* To whoever called. */
fds_status fds__pay_writer_create(const char *format, bool is_summary, fds_write_function write,
                                  void *user, fds__pay_writer **out, fds_error *err);
fds_status fds__pay_writer_add(fds__pay_writer *writer, const fds_payment *payment, fds_error *err);
fds_status fds__pay_writer_finish(fds__pay_writer *writer, const fds_payment *sums, fds_error *err);
fds_status fds__pay_writer_commit(fds__pay_writer *writer, fds_error *err);
void fds__pay_writer_free(fds__pay_writer *writer); /* without a commit: leaves the old file */

#endif
