/* SPDX-License-Identifier: Apache-2.0
 *
 * fds/ledger.h: what customers have paid and providers have earned, in a log that nobody can quietly
 * change. docs/ledger.md explains the words, the file and the guarantees. Stable within a minor
 * version.
 *
 * A ledger is an SQLite file, or tables of a PostgreSQL database: its path is then a URI that begins with
 * "postgresql:" or "postgres:". One process has it open for writing. Several may read a file while
 * none writes, and a database at any time. Money is counted in units of the ledger's own, much finer
 * than the currency's ("USD/6": millionths of a dollar). Every change is an entry with a number;
 * entries are never changed, only followed by corrections. A call that returns FDS_OK has put its
 * entries on the disk.
 *
 * A ledger can be private: providers then learn statements with noise, and nothing else of what their
 * data has earned. See fds_ledger_set_private.
 *
 * Where fds was built without SQLite and libsodium, every function fails with FDS_ERR_UNSUPPORTED; so
 * do URIs where it was built without libpq.
 */
#ifndef FDS_LEDGER_H
#define FDS_LEDGER_H

#include "../fds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Opening =============================================================================== */

/* Belongs to one thread at a time. */
typedef struct fds_ledger fds_ledger;

/* Makes an empty ledger, and its signing key in the new file "PATH.key" (mode 0600); it has the
 * accounts "cash" and "fees", entries 0 and 1. params, of job "ledger": "currency", "decimals",
 * "origin" (the name of the log), "debts", "signing_key" (another file for the key; needed with a
 * URI). FDS_ERR_CONFLICT: a file of that name exists, or the database has a ledger. */
FDS_API fds_status fds_ledger_create(const char *path, const fds_params *params, fds_error *err);

typedef enum fds_ledger_access { FDS_LEDGER_READ, FDS_LEDGER_WRITE } fds_ledger_access;

/* FDS_ERR_CONFLICT if another process has the file open for writing, or for reading if access is
 * FDS_LEDGER_WRITE; a database only if both would write. key: the file of the signing key, NULL for
 * "PATH.key" of a file; only FDS_LEDGER_WRITE needs it. */
FDS_API fds_status fds_ledger_open(const char *path, fds_ledger_access access, const char *key,
                                   fds_ledger **out, fds_error *err);
FDS_API void fds_ledger_close(fds_ledger *ledger); /* NULL is fine */
/* For messages: its path, or its URI without passwords. */
FDS_API const char *fds_ledger_name(const fds_ledger *ledger);
FDS_API const char *fds_ledger_currency(const fds_ledger *ledger); /* "USD" */
FDS_API int fds_ledger_decimals(const fds_ledger *ledger);         /* of a unit: 6 */
FDS_API int64_t fds_ledger_minor(const fds_ledger *ledger);        /* units of a cent: 10000 */
FDS_API uint64_t fds_ledger_size(const fds_ledger *ledger);        /* entries */
/* Reads "10.00" or "-0.5" as units, exactly. FDS_ERR_USAGE: it is no amount, or has more decimals. */
FDS_API fds_status fds_ledger_units(const fds_ledger *ledger, const char *text, int64_t *units,
                                    fds_error *err);
/* The log's public key, "origin+hash+base64", which verifies receipts and checkpoints. */
FDS_API const char *fds_ledger_vkey(const fds_ledger *ledger);

/* Finds out what became of a call that failed while the disk or the database did: entries that are
 * there after all count from then on. Calls that add entries do so by themselves. */
FDS_API fds_status fds_ledger_settle(fds_ledger *ledger, fds_error *err);

/* ==== Accounts ============================================================================== */

typedef enum fds_account_kind {
    FDS_ACCOUNT_PLATFORM, /* "cash", what came in minus what was paid out; "fees" */
    FDS_ACCOUNT_CUSTOMER,
    FDS_ACCOUNT_PROVIDER
} fds_account_kind;

/* Adds an account; an account of that name and kind is returned as it is. Its number is its identity
 * forever. Names are UTF-8 without control characters, at most 200 bytes. FDS_ERR_CONFLICT: the name
 * belongs to an account of another kind. */
FDS_API fds_status fds_ledger_account(fds_ledger *ledger, fds_account_kind kind, const char *name,
                                      uint64_t *account, fds_error *err);
/* FDS_ERR_NOT_FOUND, with the name most like it. */
FDS_API fds_status fds_ledger_find(const fds_ledger *ledger, const char *name, uint64_t *account,
                                   fds_error *err);
FDS_API uint64_t fds_ledger_accounts(const fds_ledger *ledger); /* numbers are 0 .. accounts-1 */
FDS_API const char *fds_ledger_account_name(const fds_ledger *ledger, uint64_t account);
FDS_API fds_account_kind fds_ledger_account_kind(const fds_ledger *ledger, uint64_t account);
/* Units: what the platform owes the account. */
FDS_API int64_t fds_ledger_balance(const fds_ledger *ledger, uint64_t account);

/* ==== Predictions =========================================================================== */

/* Who is paid for the predictions of a run; frozen once it is added. */
typedef struct fds_ledger_run {
    const char *name;          /* of the model: "mnist" */
    const char *sha256;        /* of the run, hexadecimal: its identity */
    const char *const *payees; /* (count) names of providers, in the order of the values */
    size_t count;
    const char *policy; /* "clip" or "signed"; NULL: clip. signed needs a ledger with debts */
    uint32_t fee_ppm;   /* the platform's share of an amount, in millionths */
} fds_ledger_run;

/* Adds a run and the accounts of its payees; a run of that sha256 is returned as it is,
 * FDS_ERR_CONFLICT if it has other payees, another policy or fee. */
FDS_API fds_status fds_ledger_add_run(fds_ledger *ledger, const fds_ledger_run *run,
                                      uint64_t *number, fds_error *err);

/* One prediction that a customer pays for. The arrays are the caller's. */
typedef struct fds_charge {
    uint64_t run, customer;
    int64_t amount;          /* units */
    const char *label;       /* that was predicted and explained */
    double confidence;       /* its probability, or NaN */
    const double *values;    /* (payees of the run) kept as floats; shares follow from these */
    const double *errors;    /* standard errors, NaN where not known; or NULL */
    uint8_t input[32];       /* SHA-256 of the input; the log has a salted hash of it */
    const char *key;         /* idempotency key of the customer, at most 255 bytes; or NULL */
    uint8_t fingerprint[32]; /* SHA-256 of the request, to tell another body under one key */
    const void *answer;      /* what the customer is told, to be repeated for the key */
    size_t answer_size;      /* at most 65,536 */
    /* What became of it. FDS_OK: it is paid, by entry number index. FDS_ERR_USAGE: a mistake in it.
     * FDS_ERR_LIMIT: the customer's balance is too low. FDS_ERR_CONFLICT: the key stands for another
     * request. */
    fds_status status;
    uint64_t index;
    bool is_repeated;   /* the key was paid before: nothing was paid now */
    void *first_answer; /* then the answer of that time, to be freed by fds_text_free; else NULL */
    size_t first_answer_size;
    char reason[160]; /* for people; empty: none */
} fds_charge;

/* Pays for all of them in one transaction, in this order; the same key twice is one payment. When it
 * returns FDS_OK, what became of each stands in it and is on the disk. Otherwise (disk full, ...)
 * nothing was paid, unless the process ends before the disk works again: keys tell. */
FDS_API fds_status fds_ledger_charge(fds_ledger *ledger, fds_charge *charges, size_t count,
                                     fds_error *err);

/* The same, and what `keep` returns in *data (its own, until the next call) is kept with the prediction,
 * in the same transaction, until that is audited. It is called for each charge that is paid now, by its
 * place among the charges, with the number and the time of its entry; *size 0: nothing is kept. */
typedef fds_status (*fds_keep_function)(void *user, size_t place, uint64_t entry, int64_t at_ms,
                                        const void **data, size_t *size, fds_error *err);
FDS_API fds_status fds_ledger_charge_keeping(fds_ledger *ledger, fds_charge *charges, size_t count,
                                             fds_keep_function keep, void *user, fds_error *err);

/* What became of a charge whose key was paid before: sets status, index, is_repeated, first_answer, and
 * run, that of the payment. Reads customer, key and fingerprint only, and pays nothing. */
FDS_API fds_status fds_ledger_repeat(fds_ledger *ledger, fds_charge *charge, fds_error *err);

/* ==== Audited predictions =================================================================== */

/* What the sub-models of a run say about a prediction that was paid: what audits compare its payment
 * with. */
typedef struct fds_audited {
    uint64_t entry;      /* of the prediction */
    const float *values; /* (payees of its run), as of fds_charge, by the bank */
    const float *errors; /* (payees) their standard errors */
    double score;        /* how unlike the calibrated inputs the input is; NaN: not known */
} fds_audited;

/* Adds rows (they are never changed), in one transaction, and forgets what was kept for them.
 * FDS_ERR_CONFLICT: the entry has one. FDS_ERR_USAGE: the entry is no prediction, or a value is not
 * finite. A ledger made by an earlier version has no table for them, and gets it now. */
FDS_API fds_status fds_ledger_add_audited(fds_ledger *ledger, const fds_audited *rows, size_t count,
                                          fds_error *err);
/* Calls `take` for each row from an entry on, in the order of entries. What take gets lives until it
 * returns. */
typedef fds_status (*fds_audited_function)(void *user, const fds_audited *row, fds_error *err);
FDS_API fds_status fds_ledger_audited(const fds_ledger *ledger, uint64_t from,
                                      fds_audited_function take, void *user, fds_error *err);
/* The rows of predictions of a day ("2026-11-18"): how many there are, and the SHA-256 over them, which
 * a note of the log vouches for (docs/ledger.md). */
FDS_API fds_status fds_ledger_audited_day(const fds_ledger *ledger, const char *day, uint64_t *rows,
                                          uint8_t sha256[32], fds_error *err);

/* Calls `take` for what is kept for predictions that wait for their audit, from an entry on, in the order
 * of entries, for at most that many. data lives until take returns. */
typedef fds_status (*fds_waiting_function)(void *user, uint64_t entry, const void *data,
                                           size_t size, fds_error *err);
FDS_API fds_status fds_ledger_waiting(const fds_ledger *ledger, uint64_t from, size_t most,
                                      fds_waiting_function take, void *user, fds_error *err);
FDS_API fds_status fds_ledger_waiting_count(const fds_ledger *ledger, uint64_t *count,
                                            fds_error *err);
/* Forgets what waits of days before that one ("2026-11-18"): nobody will audit it. *count: how many. */
FDS_API fds_status fds_ledger_drop_waiting(fds_ledger *ledger, const char *before_day,
                                           uint64_t *count, fds_error *err);

/* ==== Other entries ========================================================================= */

/* Who is answerable for what follows. */
typedef struct fds_ledger_by {
    const char *operators[2]; /* names; NULL: nobody, or nobody else */
    uint64_t proposal;        /* number of the note that proposed it, UINT64_MAX: none */
} fds_ledger_by;

/* From now on the texts of top-ups and payouts name these operators, and those of corrections too the
 * proposal; NULL: no longer. */
FDS_API fds_status fds_ledger_set_by(fds_ledger *ledger, const fds_ledger_by *by, fds_error *err);

/* Each has a key (or NULL), one of the account's (of a correction or note: of "cash"): the same key again
 * changes nothing and gives the first entry's number, FDS_ERR_CONFLICT with other arguments. FDS_ERR_LIMIT:
 * a balance would be below its floor, or too large. */

/* Money that a customer has paid in. ref: of the payment, for people; or NULL. */
FDS_API fds_status fds_ledger_topup(fds_ledger *ledger, uint64_t customer, int64_t units,
                                    const char *ref, const char *key, uint64_t *index,
                                    fds_error *err);
/* Pays out what an account (not "cash") is owed, rounded down to the currency's own unit; the rest
 * stays. *units: how much, 0 (and no entry, *index UINT64_MAX) if it is below minimum or below one such
 * unit. */
FDS_API fds_status fds_ledger_payout(fds_ledger *ledger, uint64_t account, int64_t minimum,
                                     const char *ref, const char *key, int64_t *units,
                                     uint64_t *index, fds_error *err);

typedef struct fds_posting {
    uint64_t account;
    int64_t units; /* positive: the platform owes the account more */
} fds_posting;

/* Pays out exactly these units, which are positive and whole numbers of the currency's own unit; all of
 * them in one transaction, or none. An account stands there once, and indexes (count) receives the
 * numbers of the entries. FDS_ERR_LIMIT: a balance is too low. */
FDS_API fds_status fds_ledger_pay(fds_ledger *ledger, const fds_posting *payouts, size_t count,
                                  const char *ref, const char *key, uint64_t *indexes,
                                  fds_error *err);

/* Mends entry of; postings sum to 0. operators: two different people, who have both agreed. */
FDS_API fds_status fds_ledger_correct(fds_ledger *ledger, uint64_t of, const fds_posting *postings,
                                      size_t count, const char *reason,
                                      const char *const operators[2], const char *key,
                                      uint64_t *index, fds_error *err);

/* An entry of kind "audit", which moves no money: what people have decided, as an object of JSON of at
 * most 1 MiB. The log vouches for it, and does not show it. */
FDS_API fds_status fds_ledger_note(fds_ledger *ledger, const char *json, const char *key,
                                   uint64_t *index, fds_error *err);

/* ==== Looking =============================================================================== */

/* One entry as JSON: everything but salts. viewer: an account that may see its own postings only, or
 * UINT64_MAX for all. To be freed by fds_text_free. */
FDS_API fds_status fds_ledger_entry(const fds_ledger *ledger, uint64_t index, uint64_t viewer,
                                    char **json, fds_error *err);
/* The number of the entry that has an account's key. FDS_ERR_NOT_FOUND: there is none. */
FDS_API fds_status fds_ledger_find_key(const fds_ledger *ledger, uint64_t account, const char *key,
                                       uint64_t *index, fds_error *err);

/* Which entries are listed. */
typedef struct fds_ledger_listing {
    uint64_t account; /* with a posting of this one that is not 0; UINT64_MAX: all */
    const char *kind; /* "prediction", ...; NULL: all */
    uint64_t before;  /* with lower numbers; UINT64_MAX: all */
    size_t limit;     /* at most so many, 1 to 1000 */
    uint64_t viewer;  /* as of fds_ledger_entry */
} fds_ledger_listing;

/* {"entries": [...], "more": true, "before": 17}: entries as of fds_ledger_entry, the newest first, but
 * without kept answers. One call looks at 8192 entries at most, so it takes milliseconds and may find
 * fewer than limit: "more" says that there may be others, below "before". Notes and corrections are
 * found at once. To be freed by fds_text_free. */
FDS_API fds_status fds_ledger_entries(const fds_ledger *ledger, const fds_ledger_listing *what,
                                      char **json, fds_error *err);
/* What happened to an account from day to day, both as "2026-11-17" or NULL: CSV with date, entry,
 * kind, label, amount, standard error, balance. */
FDS_API fds_status fds_ledger_statement(const fds_ledger *ledger, uint64_t account,
                                        const char *from, const char *to, fds_write_function write,
                                        void *user, fds_error *err);
/* The same in parts, for those who have other things to do meanwhile: begins with a zeroed cursor, looks
 * at most at so many entries, and goes on from there. */
typedef struct fds_ledger_cursor {
    uint64_t next;
    int64_t balance;
    bool is_over;
} fds_ledger_cursor;
FDS_API fds_status fds_ledger_statement_part(const fds_ledger *ledger, uint64_t account,
                                             const char *from, const char *to,
                                             fds_ledger_cursor *at, size_t most,
                                             fds_write_function write, void *user, fds_error *err);
/* Sums of a provider by day and label: {"earnings":[{"day","label","units","count","error"}]}. error is
 * the standard error of the units: the sum of those of the predictions, which share the errors of their
 * run; null where a stored error is missing, and for days that the newest 1024 entries do not cover. */
FDS_API fds_status fds_ledger_earnings(const fds_ledger *ledger, uint64_t account, char **json,
                                       fds_error *err);
/* Their sum: units, and predictions that paid anything. */
FDS_API fds_status fds_ledger_earned(const fds_ledger *ledger, uint64_t account, int64_t *units,
                                     uint64_t *count, fds_error *err);

/* Units that came in and were paid out, corrections of "cash" included. */
typedef struct fds_ledger_totals {
    int64_t in, out;
} fds_ledger_totals;
/* The first call reads all entries; later ones do not. */
FDS_API fds_status fds_ledger_sum(fds_ledger *ledger, fds_ledger_totals *out, fds_error *err);
/* format: "hledger", "beancount", "ledger" or "csv". A new file replaces an old one. */
FDS_API fds_status fds_ledger_export(const fds_ledger *ledger, const char *format, const char *path,
                                     const fds_events *events, fds_error *err);
/* A copy of the whole in an SQLite file, as of one moment; also while it is open for writing here. */
FDS_API fds_status fds_ledger_backup(const fds_ledger *ledger, const char *path, fds_error *err);
/* *out: the ledger again, as of one moment, open for reading, for another thread. path: that it was opened
 * by. A file is copied to PATH.snapshot, which goes as soon as it is open: pause, if there is one, is called
 * between parts of the copy, and others may use the ledger until it returns; true: stop
 * (FDS_ERR_CANCELLED). PostgreSQL has snapshots of its own. */
typedef bool (*fds_ledger_pause)(void *user, uint64_t done, uint64_t total);
FDS_API fds_status fds_ledger_snapshot(const fds_ledger *ledger, const char *path,
                                       fds_ledger_pause pause, void *user, fds_ledger **out,
                                       fds_error *err);

/* ==== Privacy: statements that keep those who asked private (docs/privacy.md) ================ */

/* What a private ledger promises. */
typedef struct fds_ledger_privacy {
    bool is_private;       /* all else is 0 and NULL if it is not */
    const char *mechanism; /* "laplace" or "gauss" */
    const char *periods;   /* "month" or "day" */
    double epsilon,
        delta;  /* of the statements of a period, all of them together; delta 0: of laplace */
    double rho; /* the same of gauss */
    int64_t price_limit;   /* units: no prediction costs more */
    uint64_t per_customer; /* predictions of a customer that a period counts; 0: all, and single
                            * predictions are protected, not customers */
    double deviation;      /* units: standard deviation of the noise in a statement */
    uint64_t reserve;      /* the account that pays the noise, or gets it */
} fds_ledger_privacy;
FDS_API void fds_ledger_privacy_of(const fds_ledger *ledger, fds_ledger_privacy *out);

/* Makes a ledger private, for good and before its first prediction. From then on providers learn
 * released statements only: fds_ledger_statement, _earnings and _earned of a provider are about these;
 * fds_ledger_entry and _entries show a provider that views them no prediction's amount, label or share;
 * receipts of predictions are refused; payouts pay at most what was released. params, of job "privacy":
 * "price_limit", "epsilon", "mechanism", "delta", "per_customer", "periods". FDS_ERR_CONFLICT: it is
 * private, or has predictions. FDS_ERR_UNSUPPORTED: fds was built without GMP. */
FDS_API fds_status fds_ledger_set_private(fds_ledger *ledger, const fds_params *params,
                                          uint64_t *index, fds_error *err);
/* Draws the statements of all providers for a period that is over ("2026-11", "2026-11-17"), or does
 * nothing if that was done. The charge is on the disk before anything is drawn; a process that dies in
 * between leaves a charge, which the next call uses. The statements also cover days before the period
 * that no other has covered. *index (or NULL): their entry. */
FDS_API fds_status fds_ledger_release(fds_ledger *ledger, const char *period,
                                      const fds_events *events, uint64_t *index, fds_error *err);
/* Units of an account that its owner may see, and that may be paid out: of a provider in a private
 * ledger the balance without what is not released yet, else the balance. */
FDS_API int64_t fds_ledger_released(const fds_ledger *ledger, uint64_t account);
/* Calls take for each released statement of an account, the newest first; or for that of one period
 * (FDS_ERR_NOT_FOUND: there is none). last: the last day of the period. */
typedef fds_status (*fds_ledger_release_function)(void *user, const char *period, const char *last,
                                                  int64_t units, uint64_t entry, fds_error *err);
FDS_API fds_status fds_ledger_released_statements(const fds_ledger *ledger, uint64_t account,
                                                  const char *period,
                                                  fds_ledger_release_function take, void *user,
                                                  fds_error *err);
/* What was spent: {"private", "mechanism", "price_limit", "per_customer", "releases": [{"period", "from",
 * "to", "epsilon" or "rho", "entry", "released"}], "each": {...}, "together": {"epsilon", "rho", "delta",
 * "epsilon_at_delta"}}. "each" is of one release, which is all that a single prediction is in; "together"
 * of all, which a customer may be in. To be freed by fds_text_free. */
FDS_API fds_status fds_ledger_budget(const fds_ledger *ledger, double delta, char **json,
                                     fds_error *err);

/* ==== Proof ================================================================================= */

/* Computes everything again: postings, balances, keys, shares from values, hashes, the log and its
 * signatures. FDS_ERR_CORRUPT names the first entry that does not agree. *report (or NULL): what was
 * checked, as JSON, to be freed by fds_text_free. vkey: NULL for the ledger's own. */
FDS_API fds_status fds_ledger_verify(const fds_ledger *ledger, const char *vkey,
                                     const fds_events *events, char **report, fds_error *err);
/* The newest signed checkpoint of the log: a C2SP signed note. To be freed by fds_text_free. */
FDS_API fds_status fds_ledger_checkpoint(const fds_ledger *ledger, char **note, fds_error *err);
/* A file of the log by its path in C2SP tlog-tiles: "checkpoint", "tile/0/x001/234", "tile/0/000.p/7",
 * "tile/entries/000". To be freed by fds_text_free. FDS_ERR_NOT_FOUND: there is no such file. */
FDS_API fds_status fds_ledger_log_file(const fds_ledger *ledger, const char *path, void **data,
                                       size_t *size, fds_error *err);
/* A c2sp.org/tlog-proof@v1 of an entry, with the share of one account, its salt and its path in the
 * tree of shares; it shows nobody else's. To be freed by fds_text_free. */
FDS_API fds_status fds_ledger_receipt(const fds_ledger *ledger, uint64_t index, uint64_t account,
                                      char **proof, fds_error *err);
/* Needs no ledger. *json: what the receipt says, once it is proven. FDS_ERR_CORRUPT if it is not. */
FDS_API fds_status fds_receipt_verify(const char *proof, size_t size, const char *vkey, char **json,
                                      fds_error *err);
/* Checks that a log only grows. from: its address, as in "https://example.com/log" (the program curl
 * fetches it), or a folder with its files. kept: a file with the checkpoint of the last call; the first
 * call makes it. *old_size (0 at first), *size: entries then and now. FDS_ERR_CORRUPT: it does not begin
 * with the entries of then, or is not signed by vkey; a new checkpoint that contradicts the kept one goes
 * to the file "KEPT.conflict". */
FDS_API fds_status fds_log_watch(const char *from, const char *vkey, const char *kept,
                                 uint64_t *old_size, uint64_t *size, fds_error *err);

#ifdef __cplusplus
}
#endif
#endif
