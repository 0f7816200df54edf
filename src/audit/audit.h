/* SPDX-License-Identifier: Apache-2.0
 *
 * audit: whether payments are what the sub-models say. docs/audit.md has the checks and what they can and
 * cannot find.
 *
 *   evidence.c   anytime-valid statistics: bets, bounds of a mean, ranks; their proofs
 *   auditor.c    what an auditor knows; one prediction for all checks that take it
 *   self.c       customers who feed their own providers
 *   input.c      groups of providers, validation.json of runs
 *   read.c       predictions from a ledger
 *   secrets.c    the check of the ledger itself: verification, and the choice of what was audited
 *   verdict.c    what the checks say, as JSON and in words; corrections.c what would mend a payment
 *   page.c       the same as one HTML file
 */
#ifndef FDS_AUDIT_ROOM_H
#define FDS_AUDIT_ROOM_H

#include "fds/audit.h"
#include "ledger/ledger.h"

/* ---- evidence.c ---- */

enum {
    AUDIT_STAKES = 4,
    AUDIT_STARTS = 20,
    AUDIT_PLACES = 1 << 16, /* that numbers are rounded to */
    AUDIT_POINTS = 256,     /* of a series */
};

/* A gambler against one hypothesis. Zeroed at first. */
typedef struct audit_bet {
    uint64_t steps;
    unsigned starts; /* beginnings so far */
    double lows;     /* the sum of the bounds of all steps */
    float capital[AUDIT_STARTS][AUDIT_STAKES];
} audit_bet;

/* Bets that E[x] > 0, for x >= -low, which is known before x. */
void audit_bet_mean(audit_bet *bet, double x, double low);
/* Bets that p, uniform on (0, 1) under the hypothesis, is small; the second one that it is very small. */
void audit_bet_rank(audit_bet *bet, double p);
void audit_bet_power(audit_bet *bet, double p);
/* The e-value: the probability that it ever reaches 1/p is at most p under the hypothesis. */
double audit_bet_value(const audit_bet *bet);

/* A lower bound of a mean at all times. Zeroed at first; p is the same in all calls. */
typedef struct audit_bound {
    double count, sum, squares; /* of x */
    double most;                /* by which x was, or could have been, below the mean */
    double weight, weighted, penalty;
} audit_bound;

void audit_bound_step(audit_bound *bound, double x, double low, double p);
double audit_bound_low(const audit_bound *bound, double p);

/* Numbers so far, for ranks among them. */
typedef struct audit_bag {
    uint32_t *tree; /* (AUDIT_PLACES + 1) Fenwick's: sums of how often each place occurs */
    uint64_t count;
} audit_bag;

fds_status audit_bag_create(audit_bag *bag, fds_error *err);
void audit_bag_add(audit_bag *bag, double number);
/* The share of numbers above it; u, uniform on (0, 1), decides among equal ones. */
double audit_bag_rank(const audit_bag *bag, double number, double u);

/* An e-value over time, thinned out to at most AUDIT_POINTS. */
typedef struct audit_point {
    uint64_t entry;
    double e;
} audit_point;
typedef struct audit_series {
    uint64_t seen, stride;
    size_t count;
    audit_point points[AUDIT_POINTS];
} audit_series;
void audit_series_note(audit_series *series, uint64_t entry, double e);

/* ---- auditor.c ---- */

typedef enum audit_kind {
    AUDIT_LEDGER,
    AUDIT_TRUTH,
    AUDIT_PROVIDER,
    AUDIT_COVERAGE,
    AUDIT_GROUPS,
    AUDIT_DRIFT,
    AUDIT_SELF,
    AUDIT_KINDS
} audit_kind;
extern const char *const audit_names[AUDIT_KINDS];

/* What became of a check. */
typedef struct audit_check {
    bool is_wanted;
    uint64_t predictions;
    double best;         /* the greatest e over needed; 1 and more: an alarm */
    double e, needed;    /* of that time */
    uint64_t alarm_at;   /* the entry that made it an alarm, LEDGER_NONE */
    audit_series series; /* of e over needed, the greatest at each time */
} audit_check;

/* A provider, or a group of them: what it was paid and what it was owed, in predictions that were
 * audited. */
typedef struct audit_party {
    char *name;
    double needed; /* e-value of an alarm */
    audit_bet under, over;
    double greatest,
        greatest_before;   /* difference of shares, in this window and in the one before */
    audit_bound low, high; /* of owed - paid in units; of its negative */
    double paid, owed;     /* units */
    double corrected;      /* units, by corrections that audits proposed */
    double e, best;
    uint64_t alarm_at;
    uint64_t predictions;
    double paid_share, owed_share; /* of the prediction at hand; NaN: it does not pay the party */
    double equal_share;            /* if all payees got the same */
} audit_party;

/* The shares of each payee for one label, as they were so far: (payees, AUDIT_BINS). */
enum { AUDIT_BINS = 128 };
typedef struct audit_label {
    char *name;
    uint32_t *bins, seen;
    double *sums; /* (payees) */
} audit_label;

typedef struct audit_run {
    char sha256[65];
    size_t count;
    size_t *providers; /* (count) places in the auditor's list */
    fds__policy policy;
    double level; /* share of the money that was misallocated at fit time; NaN: not known */
    audit_bag bag;
    bool has_scores;
    audit_label *labels;
    size_t label_count, label_capacity;
} audit_run;

typedef struct audit_pair { /* of a customer and a provider */
    audit_bet bet;
    double shares, usual; /* sums of its shares; of their means at these times */
} audit_pair;
typedef struct audit_customer {
    uint64_t account, predictions, tested;
    audit_pair *pairs; /* (pair_count) by provider; none yet for the first predictions */
    size_t pair_count;
    char *name;      /* or NULL */
    double weight;   /* its share of alpha */
    double best;     /* e over needed */
    size_t provider; /* of the best */
    uint64_t alarm_at;
} audit_customer;

typedef struct audit_validation { /* of a run that was named */
    char sha256[65];
    double level;
    double *scores;
    size_t count;
} audit_validation;

struct fds_auditor {
    double alpha, tolerance;
    uint64_t seed;
    audit_check checks[AUDIT_KINDS];
    audit_run *runs;
    size_t run_count, run_capacity;
    audit_party *providers, *groups;
    size_t provider_count, provider_capacity, group_count;
    size_t batches;                            /* of providers: runs that had new ones */
    json_t *provider_of, *group_of;            /* by name: number of a provider; of its group */
    size_t *group_of_provider, group_capacity; /* (provider_count) SIZE_MAX: none */
    audit_validation *validations;
    size_t validation_count, validation_capacity;
    /* over audited predictions */
    uint64_t audited, truth_count, first_audited, last_audited;
    double audited_units;
    double misallocated, inside, ranks; /* sums of shares */
    double compared, levels;            /* the same where the level is known, and of the levels */
    audit_bet truth, coverage, drift;
    audit_bound truth_low;
    /* over all predictions */
    uint64_t predictions;
    double paid_units;
    audit_customer *customers;
    size_t customer_count, customer_capacity, pair_count;
    size_t *slots, slot_count; /* customers: number + 1 at a place by hash, 0: none */
    /* where reading goes on, and what it has read */
    uint64_t next_entry, next_row;
    int decimals;
    bool is_private;
    char currency[4], name[FDS__PATH_MAX];
    char *ledger_fault; /* what verification has found; "": nothing; NULL: it was not done */
    uint64_t days;      /* whose secrets were checked */
    uint64_t open_days; /* with predictions, and without a commitment */
    /* scratch: (scratch) the most payees of a run */
    double *values, *paid, *owed;
    int64_t *weights, *shares;
    fds__fixed *parts;
    size_t scratch;
};

/* Notes the greatest e of a check after a prediction. */
void audit_check_note(audit_check *check, uint64_t entry, double e, double needed);
fds_status audit_party_init(audit_party *party, const char *name, fds_error *err);
/* The shares of the payees by the rule of payments, without what rounding carries: out (payees). */
fds_status audit_divide(fds_auditor *auditor, const audit_run *run, const float *values,
                        double *out, fds_error *err);

/* ---- self.c ---- */

fds_status audit_self(fds_auditor *auditor, audit_run *run, const fds_audit_prediction *prediction,
                      fds_error *err);
void audit_self_free(fds_auditor *auditor);

/* ---- input.c ---- */

fds_status audit_read_groups(fds_auditor *auditor, const char *path, fds_error *err);
fds_status audit_read_runs(fds_auditor *auditor, const char *folders, fds_error *err);

/* ---- corrections.c ---- */

enum { AUDIT_MONEY = 40 };
#define AUDIT_REASON "audit " /* the reason of every correction begins with it */
/* "12.345678", in the ledger's decimals. */
void audit_units_text(const fds_auditor *auditor, int64_t units, char out[AUDIT_MONEY]);

/* {"of":N,"postings":[{"account","amount"}...],"reason":TEXT}: what would pay these parties, of a check
 * that alarms, what they were owed; json_null() if there is none. NULL: no memory. */
json_t *audit_correction(const fds_auditor *auditor, audit_kind kind);

#endif
