/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger: money that customers pay and providers earn, entry by entry. docs/ledger.md has the rules,
 * the tables and the formats.
 *
 *   state.c     accounts and runs in memory; the division of one amount; undoing it all
 *   entry.c     an entry: its row, its leaf in the log, its postings and shares
 *   store.c     tables, queries, transactions
 *   ledger.c    creating, opening, accounts
 *   book.c      new entries: predictions
 *   people.c    new entries: top-ups, payouts, corrections, notes
 *   audited.c   what the bank says about predictions that were paid
 *   waiting.c   what is kept of predictions until the bank has answered
 *   runs.c      runs and their payees
 *   privacy.c   what a private ledger promises, shows and has spent
 *   release.c   new entries: statements with noise
 *   look.c      one entry, statements and earnings for people
 *   list.c      many entries; sums of all
 *   export.c    the whole for other programs
 *   verify.c    everything computed again: verify_log.c the log, verify_earnings.c what was earned;
 *               batch.c hashes on all processors
 *   receipt.c   proofs of shares; files of the log
 *   watch.c     somebody else's log, from outside
 *   absent.c    instead of all of these, where a library that they need is missing
 *   db.h        the database          log.h   the transparency log
 */
#ifndef FDS_LEDGER_ROOM_H
#define FDS_LEDGER_ROOM_H

#include "fds/ledger.h"
#include "ledger/db.h"
#include "ledger/log.h"
#include "pay/pay.h"
#include "privacy/privacy.h"

#include <math.h>

#define LEDGER_NONE UINT64_MAX
#define LEDGER_OWN_KEY "privacy" /* keys of entries that the ledger makes by itself begin so */
#define LEDGER_MOST_AMOUNT ((int64_t)FDS__EXACT_MAX) /* of one posting to or from a customer */
enum {
    LEDGER_FORMAT = 1,
    LEDGER_NAME = 200, /* bytes of a name or label */
    LEDGER_KEY = 255,
    LEDGER_ANSWER = 65536,
    LEDGER_TEXT = 2000, /* bytes of a reference or reason */
    LEDGER_NOTE = 1 << 20,
    LEDGER_SCAN = 8192, /* entries that are looked at by one call for a list */
    LEDGER_LIST = 1000, /* entries of a list */
    LEDGER_PAYEES = 1 << 20,
    LEDGER_SALT = 32,
    LEDGER_CASH = 0, /* account numbers */
    LEDGER_FEES = 1,
    LEDGER_DAY_MS = 86400000,
    LEDGER_GRID = 16, /* bits after the point of a unit, in sums that get noise */
};

/* ---- state.c ---- */

typedef struct ledger_account {
    fds_account_kind kind;
    char *name;
    int64_t balance;
    int64_t kept;     /* the balance in the database */
    int64_t withheld; /* of a provider in a private ledger: earned, and not released yet */
    int64_t kept_withheld;
    bool is_touched;
} ledger_account;

typedef struct ledger_run {
    char sha256[65], *name;
    fds__policy policy;
    uint32_t fee_ppm;
    size_t count;
    uint64_t *payees; /* (count) accounts */
    fds__carry *carry;
    fds__fixed *kept; /* (count) what the carry owes in the database */
    bool is_touched;
    double *values;  /* (count) scratch, as are the others */
    int64_t *shares; /* (count) */
    fds__fixed *before;
} ledger_run;

/* What a private ledger promises, and how far its statements are. */
typedef struct ledger_privacy {
    bool is_on;
    fds__mechanism mechanism;
    double epsilon, delta; /* delta 0: of Laplace */
    uint64_t cost_nano;    /* of a release: epsilon, or rho */
    int64_t price_limit;   /* units */
    uint64_t per_customer; /* predictions of a customer that a release counts; 0: all */
    bool is_daily;         /* a period is a day, else a month */
    uint64_t reserve;      /* account */
    int64_t released;      /* the last day whose predictions are released, or the day before all */
    bool is_spent;         /* a release is paid for and has not happened yet: */
    uint64_t spend;        /* the entry that charges it */
    int64_t spent_to;      /* its last day */
} ledger_privacy;

/* What the entries add up to. */
typedef struct ledger_state {
    ledger_account *accounts;
    size_t account_count, account_capacity;
    size_t *slots, slot_count; /* names: account + 1 at a place by hash, 0: none */
    size_t *touched, touched_count, touched_capacity; /* accounts whose balance is not kept yet */
    ledger_run **runs;
    size_t run_count, run_capacity;
    uint64_t size; /* entries */
    int64_t at_ms; /* of the last one */
    bool has_debts;
    ledger_privacy privacy;
} ledger_state;

void ledger_state_free(ledger_state *state);
/* The account's number, LEDGER_NONE: there is none. */
uint64_t ledger_state_find(const ledger_state *state, const char *name);
fds_status ledger_state_add_account(ledger_state *state, fds_account_kind kind, const char *name,
                                    fds_error *err);
/* Takes a copy of payees; the carry is 0. */
fds_status ledger_state_add_run(ledger_state *state, const char *name, const char *sha256,
                                fds__policy policy, uint32_t fee_ppm, const uint64_t *payees,
                                size_t count, fds_error *err);
/* The same from the text of an entry. FDS_ERR_CORRUPT: it is malformed. */
fds_status ledger_state_read_account(ledger_state *state, const char *text, fds_error *err);
fds_status ledger_state_read_run(ledger_state *state, const char *text, fds_error *err);
void ledger_run_free(ledger_run *run);
/* Everything in memory is in the database; or: is as the database has it again. */
void ledger_state_keep(ledger_state *state);
void ledger_state_undo(ledger_state *state, size_t accounts, size_t runs);
/* Changes balances, all or none. FDS_ERR_LIMIT: one would be below its floor, or too large. */
fds_status ledger_state_post(ledger_state *state, const fds_posting *postings, size_t count,
                             fds_error *err);
/* Divides an amount by the values in run->values: *fee, run->shares, *rule. After a failure the carry is
 * as before; ledger_run_back takes the last division back. */
fds_status ledger_run_divide(ledger_run *run, int64_t amount, int64_t *fee, fds__pay_rule *rule,
                             fds_error *err);
void ledger_run_back(ledger_run *run);
const char *ledger_kind_name(fds_account_kind kind); /* "customer" */
bool ledger_kind_find(const char *name, fds_account_kind *out);
const char *ledger_policy_name(fds__policy policy);
bool ledger_policy_find(const char *name, fds__policy *out);

/* ---- entry.c ---- */

typedef enum ledger_entry_kind {
    LEDGER_OPEN,
    LEDGER_RUN,
    LEDGER_TOPUP,
    LEDGER_PREDICTION,
    LEDGER_PAYOUT,
    LEDGER_CORRECTION,
    LEDGER_AUDIT,
    LEDGER_PRIVACY, /* the ledger is private; a release is paid for */
    LEDGER_RELEASE, /* statements with noise */
    LEDGER_KINDS
} ledger_entry_kind;
extern const char *const ledger_entry_kinds[LEDGER_KINDS];
bool ledger_entry_kind_find(const char *name, ledger_entry_kind *out);
/* What an entry whose postings were posted does to earnings that are withheld. */
void ledger_state_withhold(ledger_state *state, ledger_entry_kind kind, const fds_posting *postings,
                           size_t count);

/* A row of the table entry. Pointers belong to whoever made it. */
typedef struct ledger_entry {
    uint64_t index;
    ledger_entry_kind kind;
    int64_t at_ms;
    uint64_t run, customer, ref; /* LEDGER_NONE: null */
    bool has_amount;             /* and fee */
    int64_t amount, fee;
    double confidence;                                               /* NaN: null */
    const char *label, *rule, *text, *key;                           /* NULL: null */
    fds__bytes fingerprint, answer, postings, values, errors, input; /* data NULL: null */
    uint8_t salt[LEDGER_SALT];
    log_hash leaf;
} ledger_entry;

/* One of a kind, all else null. */
#define LEDGER_ENTRY(kind_)                  \
    ((ledger_entry){.kind = (kind_),         \
                    .run = LEDGER_NONE,      \
                    .customer = LEDGER_NONE, \
                    .ref = LEDGER_NONE,      \
                    .confidence = (double)NAN})

const char *ledger_rule_name(fds__pay_rule rule); /* "clip-for-signed" */
bool ledger_rule_find(const char *name, fds__pay_rule *out);

/* Columns of the table, in the order of ledger_entry_read, and of ledger_entry_bind from $1. */
#define LEDGER_COLUMNS                                                                     \
    "idx, kind, at, run, customer, amount, fee, label, confidence, rule, ref, text, key, " \
    "fingerprint, answer, postings, vals, errors, input, salt, leaf"
#define LEDGER_PLACES "$1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21"
/* FDS_ERR_CORRUPT where a column is not what it must be. The entry is valid as long as the row. */
fds_status ledger_entry_read(const db_query *row, ledger_entry *out, fds_error *err);
void ledger_entry_bind(const ledger_entry *entry, db_query *insert);

/* Postings as bytes. Decoding fails with FDS_ERR_CORRUPT unless they are exactly what encoding gives;
 * *postings and *capacity grow as needed and can be used again. */
fds_status ledger_postings_encode(const fds_posting *postings, size_t count, fds__text *out,
                                  fds_error *err);
fds_status ledger_postings_decode(const ledger_entry *entry, size_t accounts,
                                  fds_posting **postings, size_t *capacity, size_t *count,
                                  fds_error *err);

/* The leaf of posting number i in the tree of shares: its text. */
void ledger_share_text(const ledger_entry *entry, size_t i, const char *account, int64_t units,
                       fds__text *out);
/* The hashes of all of them; *hashes and *capacity grow as needed. */
fds_status ledger_share_hashes(const ledger_entry *entry, const ledger_state *state,
                               const fds_posting *postings, size_t count, log_hash **hashes,
                               size_t *capacity, fds_error *err);
/* The entry's leaf in the log. shares: the root of that tree, NULL without postings. */
typedef struct ledger_unit {
    char currency[4];
    int decimals;
    int64_t minor; /* units of the currency's own smallest unit */
} ledger_unit;
void ledger_leaf_text(const ledger_entry *entry, const ledger_state *state, const ledger_unit *unit,
                      const log_hash *shares, fds__text *out);
/* The parts of an entry from its row, for reading; zeroed at first, and used again. */
typedef struct ledger_parts {
    fds_posting *postings;
    size_t count, posting_capacity;
    log_hash *hashes; /* (count) of the shares */
    size_t hash_capacity;
    fds__text leaf;
} ledger_parts;
/* FDS_ERR_CORRUPT: a column is missing, or names what is not there. */
fds_status ledger_parts_read(ledger_parts *parts, const ledger_entry *entry,
                             const ledger_state *state, const ledger_unit *unit, fds_error *err);
/* The same for postings and count alone: nothing is hashed. */
fds_status ledger_parts_postings(ledger_parts *parts, const ledger_entry *entry,
                                 const ledger_state *state, fds_error *err);
void ledger_parts_free(ledger_parts *parts);
/* "2026-11-17T21:00:00.123Z", and the day alone. */
enum { LEDGER_TIME = 80 }; /* room for any numbers */
const char *ledger_time_text(int64_t at_ms, char out[LEDGER_TIME]);
const char *ledger_day_text(int64_t day, char out[LEDGER_TIME]);
/* False unless it is a day as written above. */
bool ledger_day_read(const char *text, int64_t *day);
void ledger_hex(const void *data, size_t size, char *out); /* 2 * size + 1 */
/* Names, labels and keys: UTF-8 without control characters, 1 to most bytes. what: for messages. */
fds_status ledger_check_word(const char *what, const char *word, size_t most, fds_error *err);

/* ---- store.c ---- */

enum ledger_query {
    LEDGER_Q_SIZE,
    LEDGER_Q_ENTRY,   /* $1: number */
    LEDGER_Q_ENTRIES, /* from $1 on, at most $2 of them */
    LEDGER_Q_ALL,     /* all, in order */
    LEDGER_Q_BACK,    /* below $1, the newest first, at most $2: number, kind, postings */
    LEDGER_Q_CASH,    /* the same of those whose keys are of cash, all of them */
    LEDGER_Q_PAID,    /* sums of what was paid in and out, by kind */
    LEDGER_Q_KEY,     /* customer, key */
    LEDGER_Q_ADD_ENTRY,
    LEDGER_Q_ACCOUNTS,
    LEDGER_Q_ADD_ACCOUNT,
    LEDGER_Q_SET_BALANCE,
    LEDGER_Q_RUNS,
    LEDGER_Q_ADD_RUN,
    LEDGER_Q_SET_CARRY,
    LEDGER_Q_ADD_EARNING,
    LEDGER_Q_EARNINGS,        /* of account $1 */
    LEDGER_Q_EARNED,          /* their sums */
    LEDGER_Q_EARNINGS_OF_DAY, /* $1 */
    LEDGER_Q_EARNED_BETWEEN,  /* day $1 and day $2: account, units */
    LEDGER_Q_COUNT_EARNINGS,
    LEDGER_Q_TILE,
    LEDGER_Q_SET_TILE,
    LEDGER_Q_COUNT_TILES,
    LEDGER_Q_CHECKPOINT,
    LEDGER_Q_CHECKPOINTS,
    LEDGER_Q_SET_CHECKPOINT,
    LEDGER_Q_META,
    LEDGER_Q_ADD_META,
    LEDGER_Q_REPEATED,
    LEDGER_Q_AUDITED, /* from entry $1 on, at most $2: entry, vals, errors, score */
    LEDGER_Q_ADD_AUDITED,
    LEDGER_Q_WAITING, /* from entry $1 on, at most $2: entry, data */
    LEDGER_Q_COUNT_WAITING,
    LEDGER_Q_ADD_WAITING,
    LEDGER_Q_END_WAITING,  /* of entry $1 */
    LEDGER_Q_DROP_WAITING, /* of entries below $1 */
    LEDGER_Q_PREDICTIONS,  /* numbers of those from $1 on and below $2, at most $3 */
    LEDGER_QUERIES
};

/* What one prediction adds to the earnings of an account on a day. */
typedef struct ledger_earning {
    uint64_t account;
    int64_t day;
    const char *label; /* lives as long as the transaction */
    int64_t units, count;
} ledger_earning;

struct fds_ledger {
    db *db;
    db_query *queries[LEDGER_QUERIES]; /* prepared when first needed */
    char path[FDS__PATH_MAX];          /* for messages: without passwords */
    bool can_write;
    bool has_audited; /* the table of audited predictions */
    bool has_waiting; /* that of what waits for it */
    ledger_unit unit;
    char origin[LOG_NAME + 1], vkey[LOG_VKEY];
    log_key key;
    ledger_state state;
    log_tree *tree;
    log_store store;

    int64_t (*now_ms)(void); /* since 1970 */
    fds_status (*random)(void *out, size_t size, fds_error *err);
    const fds__bits *bits; /* of the noise */
    char *operators[2];    /* whom the next entries name; NULL: nobody */
    uint64_t proposal;
    fds_ledger_totals totals, kept_totals;
    bool has_totals; /* they were asked for, and are kept up to date since */

    /* the transaction */
    bool is_doubtful; /* a commit has failed, and what became of it is not known */
    uint64_t
        doubt_size; /* entries and root if it has happened; LEDGER_NONE: nothing was committed */
    log_hash doubt_root;
    size_t kept_accounts, kept_runs;
    uint64_t kept_size;
    int64_t kept_at_ms;
    ledger_privacy kept_privacy;
    log_tree *kept_tree;
    log_hash *leaves; /* of the new entries */
    size_t leaf_capacity;
    ledger_earning *earnings;
    size_t earning_count, earning_capacity;
    /* scratch */
    fds_posting *postings;
    size_t posting_capacity;
    log_hash *hashes;
    size_t hash_capacity;
    fds__text bytes, text; /* postings of an entry; its leaf */
};

/* The query, ready for its parameters; end it by db_end. */
fds_status ledger_query(const fds_ledger *ledger, enum ledger_query which, db_query **out,
                        fds_error *err);
/* FDS_ERR_CORRUPT, naming the ledger. */
__attribute__((format(printf, 3, 4))) fds_status
ledger_fail(const fds_ledger *ledger, fds_error *err, const char *format, ...);
/* Tables, indexes and triggers: those of all ledgers; the table of audited predictions and that of what
 * waits for it, which those made by earlier versions lack; all. */
fds_status ledger_make_first_tables(db *d, fds_error *err);
fds_status ledger_make_audited(db *d, fds_error *err);
fds_status ledger_make_waiting(db *d, fds_error *err);
fds_status ledger_make_tables(db *d, fds_error *err);
/* Those that this ledger has. */
db_make ledger_tables_of(const fds_ledger *ledger);
/* After a commit of unknown outcome: finds it out, and reads everything again if it has happened.
 * Begin does it as well; functions that look at balances or names before do it first. */
fds_status ledger_settle(fds_ledger *ledger, fds_error *err);
/* Entries of one transaction: begin, add, end. status: of what was done between; end returns it, or
 * the failure to commit. After a failure nothing has happened, or the ledger is in doubt. */
fds_status ledger_begin(fds_ledger *ledger, fds_error *err);
fds_status ledger_end(fds_ledger *ledger, fds_status status, fds_error *err);
/* The same for a transaction without entries, that has written other rows. If the commit fails, these
 * may be there all the same. */
fds_status ledger_end_rows(fds_ledger *ledger, fds_status status, fds_error *err);
/* Numbers, salts and writes an entry, whose postings are applied to the balances. index, at_ms,
 * postings, salt and leaf are set here. */
fds_status ledger_add(fds_ledger *ledger, ledger_entry *entry, const fds_posting *postings,
                      size_t count, fds_error *err);
/* What a posting of cash adds to what came in or was paid out. */
void ledger_count_cash(fds_ledger_totals *totals, int64_t units);
/* Entry number index as query LEDGER_Q_ENTRY has it: end that query after use. */
fds_status ledger_entry_get(const fds_ledger *ledger, uint64_t index, ledger_entry *out,
                            db_query **row, fds_error *err);
/* Sums what is of one account, day and label, and sorts by these. False: a sum is too large. */
int ledger_earning_compare(const void *a, const void *b);
bool ledger_earnings_merge(ledger_earning *earnings, size_t *count);
/* The system's time; the number of entries and the time of the last one. */
int64_t ledger_system_ms(void);
fds_status ledger_read_size(const fds_ledger *ledger, uint64_t *size, int64_t *at_ms,
                            fds_error *err);
/* Tiles of the log in the database. */
log_store ledger_tiles(const fds_ledger *ledger);

/* The number that a query counts. */
fds_status ledger_count_rows(const fds_ledger *ledger, enum ledger_query which, uint64_t *out,
                             fds_error *err);

/* ---- verify_log.c ---- */

/* Compares the log with the leaves of all entries: its tree, tiles, and signed checkpoints. */
typedef struct ledger_log_check ledger_log_check;
fds_status ledger_log_check_create(const fds_ledger *ledger, const char *vkey,
                                   ledger_log_check **out, fds_error *err);
void ledger_log_check_free(ledger_log_check *check); /* NULL is fine */
fds_status ledger_log_check_add(ledger_log_check *check, const log_hash *leaf, fds_error *err);
fds_status ledger_log_check_end(ledger_log_check *check, size_t *checkpoints, fds_error *err);

/* ---- verify_earnings.c ---- */

/* Compares the table of earnings with all predictions, in the order of their days. */
typedef struct ledger_earnings_check ledger_earnings_check;
fds_status ledger_earnings_check_create(const fds_ledger *ledger, ledger_earnings_check **out,
                                        fds_error *err);
void ledger_earnings_check_free(ledger_earnings_check *check); /* NULL is fine */
fds_status ledger_earnings_check_day(ledger_earnings_check *check, int64_t day, fds_error *err);
/* A prediction of that day, by the shares in its run. */
fds_status ledger_earnings_check_add(ledger_earnings_check *check, const char *label_name,
                                     const ledger_run *run, size_t accounts, fds_error *err);
fds_status ledger_earnings_check_end(ledger_earnings_check *check, fds_error *err);

/* ---- batch.c ---- */

/* Predictions that wait to be hashed together, with the names of the accounts and the payees of the
 * runs of a state, which must not change meanwhile. */
typedef struct ledger_batch ledger_batch;
enum { LEDGER_BATCH = 256 };

fds_status ledger_batch_create(const ledger_state *state, const ledger_unit *unit,
                               ledger_batch **out, fds_error *err);
void ledger_batch_free(ledger_batch *batch); /* NULL is fine */
size_t ledger_batch_count(const ledger_batch *batch);
/* Takes a copy; there are less than LEDGER_BATCH. */
fds_status ledger_batch_add(ledger_batch *batch, const ledger_entry *entry, fds_error *err);
/* Hashes all, and calls `beside` on one of the threads; the failure is that of `beside`. */
fds_status ledger_batch_hash(ledger_batch *batch, fds_status (*beside)(void *, fds_error *),
                             void *context, fds_error *err);
/* What hashing gave for number i, or that it failed; parts and entry are the batch's. */
fds_status ledger_batch_get(ledger_batch *batch, size_t i, const ledger_entry **entry,
                            ledger_parts **parts);
void ledger_batch_clear(ledger_batch *batch);

/* ---- book.c ---- */

/* What a key was used for. */
typedef struct ledger_first_use {
    bool is_found;
    uint64_t index, run;
    int64_t amount;
    void *answer; /* (answer_size) the caller fds__frees it */
    size_t answer_size;
} ledger_first_use;
/* key NULL: none. FDS_ERR_CONFLICT: the key stands for another request. */
fds_status ledger_look_up(const fds_ledger *ledger, ledger_entry_kind kind, uint64_t owner,
                          const char *key, const uint8_t fingerprint[32], ledger_first_use *out,
                          fds_error *err);

/* ---- people.c ---- */

/* FDS_ERR_USAGE: a private ledger, a prediction, and a posting of a provider. The state has the accounts
 * of the postings. */
fds_status ledger_correction_check(const fds_ledger *ledger, const ledger_state *state, uint64_t of,
                                   const fds_posting *postings, size_t count, fds_error *err);

/* ---- audited.c ---- */

/* The number of the first entry that is not before a time. */
fds_status ledger_first_at(const fds_ledger *ledger, int64_t at_ms, uint64_t *index,
                           fds_error *err);

/* ---- waiting.c ---- */

/* Within a transaction; makes the table if there is none. */
fds_status ledger_add_waiting(fds_ledger *ledger, uint64_t entry, const void *data, size_t size,
                              fds_error *err);
fds_status ledger_end_waiting(fds_ledger *ledger, uint64_t entry, fds_error *err);

/* ---- privacy.c ---- */

/* What an entry of kind privacy or release changes in what the ledger promises and has released.
 * FDS_ERR_CORRUPT: its text is malformed. */
fds_status ledger_privacy_take(ledger_state *state, const ledger_entry *entry, fds_error *err);
/* Reads it from the database: after accounts. */
fds_status ledger_privacy_load(fds_ledger *ledger, fds_error *err);
/* Units of each account from the earnings of these days: sums (accounts). */
fds_status ledger_earned_between(const fds_ledger *ledger, int64_t from, int64_t to, int64_t *sums,
                                 fds_error *err);
/* A private ledger shows this account only what was released. */
bool ledger_is_hidden(const fds_ledger *ledger, uint64_t account);
/* What the account may see and be paid. */
int64_t ledger_visible(const ledger_state *state, uint64_t account);
/* Whether posting number i of a release is what a provider has earned, which nobody but the platform
 * sees: they stand before the statements. */
bool ledger_is_earned(ledger_entry_kind kind, size_t i, size_t count);
/* The first and last day of a period, "2026-11" or "2026-11-17". */
fds_status ledger_period_read(const ledger_privacy *privacy, const char *period, int64_t *from,
                              int64_t *to, fds_error *err);
fds__dp_noise ledger_noise(const ledger_privacy *privacy);
/* Calls take for each entry of kind release, the newest first, until it sets *is_over. */
typedef fds_status (*ledger_release_function)(void *user, const ledger_entry *release,
                                              bool *is_over, fds_error *err);
fds_status ledger_releases(const fds_ledger *ledger, ledger_release_function take, void *user,
                           fds_error *err);

/* ---- release.c ---- */

/* Exact sums of what each account's predictions of these days count, in 2^-LEDGER_GRID units: sums
 * (accounts). Each prediction is divided by itself, so one prediction changes them by its price at
 * most. */
fds_status ledger_private_sums(const fds_ledger *ledger, int64_t from, int64_t to,
                               const fds_events *events, int64_t *sums, fds_error *err);
/* Statements in units from such sums: the noise is drawn here. The arrays (count) may be one. */
fds_status ledger_private_draw(const ledger_privacy *privacy, const fds__bits *bits,
                               const int64_t *sums, size_t count, int64_t *statements,
                               fds_error *err);

/* ---- look.c ---- */

/* An entry as fds_ledger_entry has it, without the kept answer unless has_answer. */
fds_status ledger_entry_json(const fds_ledger *ledger, uint64_t index, uint64_t viewer,
                             bool has_answer, json_t **out, fds_error *err);

/* ---- ledger.c ---- */

/* Reads accounts, runs and the log; after a failure the state is as before. */
fds_status ledger_load(fds_ledger *ledger, fds_error *err);
/* Adds a row to the table meta. */
fds_status ledger_put_meta(fds_ledger *ledger, const char *name, const char *value, fds_error *err);
/* A text of the table meta, cut to size; FDS_ERR_CORRUPT: there is none. */
fds_status ledger_meta(const fds_ledger *ledger, const char *name, char *out, size_t size,
                       fds_error *err);
/* Adds an account that is not there yet, within a transaction. more: what else its entry says, whose
 * members are taken; or NULL. */
fds_status ledger_open_account(fds_ledger *ledger, fds_account_kind kind, const char *name,
                               json_t *more, fds_error *err);
fds_status ledger_check_account(const fds_ledger *ledger, uint64_t account, fds_error *err);

#endif
