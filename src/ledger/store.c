/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a ledger, and its transactions. docs/ledger.md describes the tables.
 *
 * Accounts, balances, runs and the edge of the log's tree are in memory while a ledger is open. A
 * transaction changes memory and database together. If it fails, the database rolls back, and memory
 * is set back to copies of what was kept last: nothing that could fail again is needed for that. */
#include "ledger/ledger.h"

#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

static const char *const sql[LEDGER_QUERIES] = {
    [LEDGER_Q_SIZE] = "SELECT idx, at FROM entry ORDER BY idx DESC LIMIT 1",
    [LEDGER_Q_ENTRY] = "SELECT " LEDGER_COLUMNS " FROM entry WHERE idx = $1",
    [LEDGER_Q_ENTRIES] =
        "SELECT " LEDGER_COLUMNS " FROM entry WHERE idx >= $1 ORDER BY idx LIMIT $2",
    [LEDGER_Q_ALL] = "SELECT " LEDGER_COLUMNS " FROM entry ORDER BY idx",
    [LEDGER_Q_BACK] =
        "SELECT idx, kind, postings FROM entry WHERE idx < $1 ORDER BY idx DESC LIMIT $2",
    /* + keeps SQLite to the index of customers and keys: these entries are few */
    [LEDGER_Q_CASH] = "SELECT idx, kind, postings FROM entry WHERE customer = 0 AND +idx < $1 "
                      "ORDER BY +idx DESC LIMIT $2",
    /* sums of BIGINT are no BIGINT in PostgreSQL */
    [LEDGER_Q_PAID] = "SELECT kind, CAST(sum(amount) AS BIGINT) FROM entry WHERE kind IN ('topup', "
                      "'payout') GROUP BY kind",
    [LEDGER_Q_KEY] = "SELECT " LEDGER_COLUMNS " FROM entry WHERE customer = $1 AND key = $2",
    [LEDGER_Q_ADD_ENTRY] = "INSERT INTO entry(" LEDGER_COLUMNS ") VALUES(" LEDGER_PLACES ")",
    [LEDGER_Q_ACCOUNTS] = "SELECT id, kind, name, balance FROM account ORDER BY id",
    [LEDGER_Q_ADD_ACCOUNT] = "INSERT INTO account(id, kind, name, balance) VALUES($1, $2, $3, 0)",
    [LEDGER_Q_SET_BALANCE] = "UPDATE account SET balance = $1 WHERE id = $2",
    [LEDGER_Q_RUNS] = "SELECT run.id, run.sha256, run.carry, entry.text FROM run JOIN entry ON "
                      "entry.idx = run.entry ORDER BY run.id",
    [LEDGER_Q_ADD_RUN] = "INSERT INTO run(id, sha256, entry, carry) VALUES($1, $2, $3, $4)",
    [LEDGER_Q_SET_CARRY] = "UPDATE run SET carry = $1 WHERE id = $2",
    [LEDGER_Q_ADD_EARNING] =
        "INSERT INTO earning(account, day, label, units, n) VALUES($1, $2, $3, $4, $5) ON CONFLICT "
        "(account, day, label) DO UPDATE SET units = earning.units + excluded.units, n = earning.n "
        "+ excluded.n",
    [LEDGER_Q_EARNINGS] =
        "SELECT day, label, units, n FROM earning WHERE account = $1 ORDER BY day, label",
    [LEDGER_Q_EARNED] = "SELECT CAST(sum(units) AS BIGINT), CAST(sum(n) AS BIGINT) FROM "
                        "earning WHERE account = $1",
    [LEDGER_Q_EARNINGS_OF_DAY] =
        "SELECT account, label, units, n FROM earning WHERE day = $1 ORDER BY account, label",
    [LEDGER_Q_EARNED_BETWEEN] = "SELECT account, CAST(sum(units) AS BIGINT) FROM earning WHERE day "
                                ">= $1 AND day <= $2 GROUP BY account ORDER BY account",
    [LEDGER_Q_COUNT_EARNINGS] = "SELECT count(*) FROM earning",
    [LEDGER_Q_TILE] = "SELECT hashes FROM tile WHERE level = $1 AND n = $2",
    [LEDGER_Q_SET_TILE] = "INSERT INTO tile(level, n, hashes) VALUES($1, $2, $3) ON CONFLICT "
                          "(level, n) DO UPDATE SET hashes = excluded.hashes",
    [LEDGER_Q_COUNT_TILES] = "SELECT count(*) FROM tile",
    [LEDGER_Q_CHECKPOINT] = "SELECT day, size, note FROM checkpoint ORDER BY day DESC LIMIT 1",
    [LEDGER_Q_CHECKPOINTS] = "SELECT day, size, note FROM checkpoint ORDER BY day",
    [LEDGER_Q_SET_CHECKPOINT] = "INSERT INTO checkpoint(day, size, note) VALUES($1, $2, $3) ON "
                                "CONFLICT (day) DO UPDATE SET size = excluded.size, note = "
                                "excluded.note",
    [LEDGER_Q_META] = "SELECT value FROM meta WHERE name = $1",
    [LEDGER_Q_ADD_META] = "INSERT INTO meta(name, value) VALUES($1, $2)",
    [LEDGER_Q_REPEATED] = "SELECT max(idx) FROM entry WHERE key IS NOT NULL GROUP BY customer, key "
                          "HAVING count(*) > 1 ORDER BY 1 LIMIT 1",
    [LEDGER_Q_AUDITED] =
        "SELECT entry, vals, errors, score FROM audited WHERE entry >= $1 ORDER BY entry LIMIT $2",
    [LEDGER_Q_WAITING] =
        "SELECT entry, data FROM waiting WHERE entry >= $1 ORDER BY entry LIMIT $2",
    [LEDGER_Q_COUNT_WAITING] = "SELECT count(*) FROM waiting",
    [LEDGER_Q_ADD_WAITING] = "INSERT INTO waiting(entry, data) VALUES($1, $2)",
    [LEDGER_Q_END_WAITING] = "DELETE FROM waiting WHERE entry = $1",
    [LEDGER_Q_DROP_WAITING] = "DELETE FROM waiting WHERE entry < $1",
    [LEDGER_Q_PREDICTIONS] = "SELECT idx FROM entry WHERE idx >= $1 AND idx < $2 AND kind = "
                             "'prediction' ORDER BY idx LIMIT $3",
    [LEDGER_Q_ADD_AUDITED] =
        "INSERT INTO audited(entry, vals, errors, score) VALUES($1, $2, $3, $4)",
};

fds_status ledger_make_first_tables(db *d, fds_error *err) {
    TRY(db_run(
        d,
        "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"
        "CREATE TABLE account(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL "
        "UNIQUE,"
        " balance INTEGER NOT NULL) STRICT;"
        "CREATE TABLE entry(idx INTEGER PRIMARY KEY, kind TEXT NOT NULL, at INTEGER NOT NULL,"
        " run INTEGER, customer INTEGER REFERENCES account(id), amount INTEGER, fee INTEGER,"
        " label TEXT, confidence REAL, rule TEXT, ref INTEGER, text TEXT, key TEXT,"
        " fingerprint BLOB, answer BLOB, postings BLOB, vals BLOB, errors BLOB, input BLOB,"
        " salt BLOB NOT NULL, leaf BLOB NOT NULL, UNIQUE(customer, key)) STRICT;"
        "CREATE TABLE run(id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE,"
        " entry INTEGER NOT NULL REFERENCES entry(idx), carry BLOB NOT NULL) STRICT;"
        "CREATE TABLE earning(account INTEGER NOT NULL REFERENCES account(id), day INTEGER NOT "
        "NULL,"
        " label TEXT NOT NULL, units INTEGER NOT NULL, n INTEGER NOT NULL,"
        " PRIMARY KEY(account, day, label)) STRICT;"
        "CREATE TABLE tile(level INTEGER NOT NULL, n INTEGER NOT NULL, hashes BLOB NOT NULL,"
        " PRIMARY KEY(level, n)) STRICT;"
        "CREATE TABLE checkpoint(day INTEGER PRIMARY KEY, size INTEGER NOT NULL,"
        " note TEXT NOT NULL) STRICT",
        err));
    return db_protect(d, "entry", err);
}

fds_status ledger_make_audited(db *d, fds_error *err) {
    TRY(db_run(d,
               "CREATE TABLE audited(entry INTEGER PRIMARY KEY REFERENCES entry(idx),"
               " vals BLOB NOT NULL, errors BLOB NOT NULL, score REAL) STRICT",
               err));
    return db_protect(d, "audited", err);
}

fds_status ledger_make_waiting(db *d, fds_error *err) {
    return db_run(d,
                  "CREATE TABLE waiting(entry INTEGER PRIMARY KEY REFERENCES entry(idx),"
                  " data BLOB NOT NULL) STRICT",
                  err);
}

static fds_status make_without_waiting(db *d, fds_error *err) {
    TRY(ledger_make_first_tables(d, err));
    return ledger_make_audited(d, err);
}

static fds_status make_without_audited(db *d, fds_error *err) {
    TRY(ledger_make_first_tables(d, err));
    return ledger_make_waiting(d, err);
}

fds_status ledger_make_tables(db *d, fds_error *err) {
    TRY(make_without_waiting(d, err));
    return ledger_make_waiting(d, err);
}

db_make ledger_tables_of(const fds_ledger *l) {
    if (l->has_audited)
        return l->has_waiting ? ledger_make_tables : make_without_waiting;
    return l->has_waiting ? make_without_audited : ledger_make_first_tables;
}

/* ---- queries ---- */

fds_status ledger_fail(const fds_ledger *l, fds_error *err, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fds__fail(err, FDS_ERR_CORRUPT, "%s: %s", l->path, text);
}

fds_status ledger_query(const fds_ledger *l, enum ledger_query which, db_query **out,
                        fds_error *err) {
    db_query **place = ((fds_ledger *)(uintptr_t)l)->queries + which; /* prepared once */
    if (!*place)
        TRY(db_prepare(l->db, sql[which], which == LEDGER_Q_ALL, place, err));
    *out = *place;
    return FDS_OK;
}

fds_status ledger_entry_get(const fds_ledger *l, uint64_t index, ledger_entry *out, db_query **row,
                            fds_error *err) {
    bool has_row;
    if (index >= l->state.size)
        return fds__fail(err, FDS_ERR_NOT_FOUND, "%s has no entry %llu: the last one is %llu",
                         l->path, (unsigned long long)index, (unsigned long long)l->state.size - 1);
    TRY(ledger_query(l, LEDGER_Q_ENTRY, row, err));
    db_bind_int(*row, 1, (int64_t)index);
    fds_status status = db_next(*row, &has_row, err);
    if (status == FDS_OK && !has_row)
        status = ledger_fail(l, err, "entry %llu is missing", (unsigned long long)index);
    if (status == FDS_OK)
        status = ledger_entry_read(*row, out, err);
    if (status != FDS_OK)
        db_end(*row);
    return status;
}

/* ---- the log's tiles in the database ---- */

static fds_status read_tile(void *context, unsigned level, uint64_t n, size_t width,
                            log_hash *hashes, fds_error *err) {
    db_query *q;
    bool has_row;
    size_t size = 0;
    TRY(ledger_query(context, LEDGER_Q_TILE, &q, err));
    db_bind_int(q, 1, level);
    db_bind_int(q, 2, (int64_t)n);
    fds_status status = db_next(q, &has_row, err);
    const void *found = status == FDS_OK && has_row ? db_blob(q, 0, &size) : NULL;
    if (status == FDS_OK && size < width * sizeof *hashes)
        status = fds__fail(err, FDS_ERR_NOT_FOUND, "there is no tile %llu of level %u so wide",
                           (unsigned long long)n, level);
    if (status == FDS_OK)
        memcpy(hashes, found, width * sizeof *hashes);
    db_end(q);
    return status;
}

static fds_status write_tile(void *context, unsigned level, uint64_t n, size_t width,
                             const log_hash *hashes, fds_error *err) {
    db_query *q;
    TRY(ledger_query(context, LEDGER_Q_SET_TILE, &q, err));
    db_bind_int(q, 1, level);
    db_bind_int(q, 2, (int64_t)n);
    db_bind_blob(q, 3, hashes, width * sizeof *hashes);
    return db_do(q, err);
}

log_store ledger_tiles(const fds_ledger *l) {
    return (log_store){.context = (void *)(uintptr_t)l, .read = read_tile, .write = write_tile};
}

int64_t ledger_system_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

fds_status ledger_count_rows(const fds_ledger *l, enum ledger_query which, uint64_t *out,
                             fds_error *err) {
    db_query *q;
    bool has_row;
    TRY(ledger_query(l, which, &q, err));
    fds_status status = db_next(q, &has_row, err);
    *out = status == FDS_OK && has_row ? (uint64_t)db_int(q, 0) : 0;
    db_end(q);
    return status;
}

fds_status ledger_read_size(const fds_ledger *l, uint64_t *size, int64_t *at_ms, fds_error *err) {
    db_query *q;
    bool has_row;
    TRY(ledger_query(l, LEDGER_Q_SIZE, &q, err));
    fds_status status = db_next(q, &has_row, err);
    *size = status == FDS_OK && has_row ? (uint64_t)db_int(q, 0) + 1 : 0;
    *at_ms = status == FDS_OK && has_row ? db_int(q, 1) : 0;
    db_end(q);
    return status;
}

/* ---- what became of a commit ---- */

/* The newest checkpoint: how many entries the database has, and which. */
static fds_status read_edge(const fds_ledger *l, uint64_t *size, log_hash *root, fds_error *err) {
    OWNED char *note = NULL;
    uint64_t entries;
    int64_t at_ms;
    TRY(ledger_read_size(l, &entries, &at_ms, err));
    TRY(fds_ledger_checkpoint(l, &note, err));
    TRY(log_checkpoint_open(note, strlen(note), l->vkey, size, root, err));
    return *size == entries ? FDS_OK : ledger_fail(l, err, "its newest checkpoint is of others");
}

/* Whether the entries in doubt are there. Beside these, the database must be as it was kept last. */
static fds_status find_outcome(fds_ledger *l, bool *is_there, fds_error *err) {
    uint64_t size;
    log_hash root, kept = log_tree_root(l->kept_tree);
    TRY(db_settle(l->db, err));
    fds_status status = read_edge(l, &size, &root, err);
    *is_there = status == FDS_OK && size == l->doubt_size && log_equal(&root, &l->doubt_root);
    if (l->kept_size == 0 && status == FDS_ERR_NOT_FOUND)
        return FDS_OK; /* nor are its tables */
    TRY(status);
    if (*is_there || (size == l->kept_size && log_equal(&root, &kept)))
        return FDS_OK;
    return fds__fail(err, FDS_ERR_CONFLICT,
                     "%s was changed by another process while the connection was lost: it has %llu "
                     "entries instead of %llu. Open it again",
                     l->path, (unsigned long long)size, (unsigned long long)l->kept_size);
}

fds_status ledger_settle(fds_ledger *l, fds_error *err) {
    bool is_there;
    if (!l->is_doubtful)
        return FDS_OK;
    TRY(find_outcome(l, &is_there, err));
    if (is_there)
        TRY(ledger_load(l, err));
    l->has_totals &= !is_there;
    l->is_doubtful = false;
    return FDS_OK;
}

fds_status fds_ledger_settle(fds_ledger *l, fds_error *err) { return ledger_settle(l, err); }

/* ---- transactions ---- */

static void keep_edge(fds_ledger *l) {
    l->kept_size = l->state.size;
    *l->kept_tree = *l->tree;
}

/* Others may have written while the connection was lost. */
static fds_status check_alone(fds_ledger *l, fds_error *err) {
    bool is_there;
    l->doubt_size = LEDGER_NONE;
    fds_status status = find_outcome(l, &is_there, err);
    l->is_doubtful = status != FDS_OK;
    if (status != FDS_OK)
        db_rollback(l->db);
    return status;
}

fds_status ledger_begin(fds_ledger *l, fds_error *err) {
    if (!l->can_write)
        return fds__fail(err, FDS_ERR_USAGE, "%s is open for reading only", l->path);
    TRY(ledger_settle(l, err));
    TRY(db_begin(l->db, err));
    keep_edge(l);
    if (db_was_lost(l->db))
        TRY(check_alone(l, err));
    l->kept_accounts = l->state.account_count;
    l->kept_runs = l->state.run_count;
    l->kept_at_ms = l->state.at_ms;
    l->kept_totals = l->totals;
    l->kept_privacy = l->state.privacy;
    l->earning_count = 0;
    return FDS_OK;
}

static fds_status flush_balances(fds_ledger *l, fds_error *err) {
    db_query *q;
    TRY(ledger_query(l, LEDGER_Q_SET_BALANCE, &q, err));
    for (size_t i = 0; i < l->state.touched_count; i++) {
        size_t account = l->state.touched[i];
        if (l->state.accounts[account].balance == l->state.accounts[account].kept)
            continue;
        db_bind_int(q, 1, l->state.accounts[account].balance);
        db_bind_int(q, 2, (int64_t)account);
        TRY(db_do(q, err));
    }
    return FDS_OK;
}

static fds_status flush_carries(fds_ledger *l, fds_error *err) {
    db_query *q;
    TRY(ledger_query(l, LEDGER_Q_SET_CARRY, &q, err));
    for (size_t i = 0; i < l->state.run_count; i++) {
        ledger_run *r = l->state.runs[i];
        if (!r->is_touched)
            continue;
        for (size_t k = 0; k < r->count; k++)
            r->before[k] = fds__carry_owed(r->carry, k);
        db_bind_blob(q, 1, r->before, r->count * sizeof *r->before);
        db_bind_int(q, 2, (int64_t)i);
        TRY(db_do(q, err));
    }
    return FDS_OK;
}

int ledger_earning_compare(const void *a, const void *b) {
    const ledger_earning *x = a, *y = b;
    if (x->account != y->account)
        return x->account < y->account ? -1 : 1;
    if (x->day != y->day)
        return x->day < y->day ? -1 : 1;
    return strcmp(x->label, y->label);
}

bool ledger_earnings_merge(ledger_earning *earnings, size_t *count) {
    size_t used = 0;
    if (*count)
        qsort(earnings, *count, sizeof *earnings, ledger_earning_compare);
    for (size_t i = 0; i < *count; i++) {
        ledger_earning *last = used ? &earnings[used - 1] : NULL;
        if (!last || ledger_earning_compare(last, &earnings[i]) != 0)
            earnings[used++] = earnings[i];
        else if (__builtin_add_overflow(last->units, earnings[i].units, &last->units))
            return false;
        else
            last->count += earnings[i].count;
    }
    *count = used;
    return true;
}

static fds_status flush_earnings(fds_ledger *l, fds_error *err) {
    db_query *q;
    TRY(ledger_query(l, LEDGER_Q_ADD_EARNING, &q, err));
    if (!ledger_earnings_merge(l->earnings, &l->earning_count))
        return fds__fail(err, FDS_ERR_LIMIT, "the earnings of a day are too large");
    for (size_t i = 0; i < l->earning_count; i++) {
        const ledger_earning *e = &l->earnings[i];
        db_bind_int(q, 1, (int64_t)e->account);
        db_bind_int(q, 2, e->day);
        db_bind_text(q, 3, e->label);
        db_bind_int(q, 4, e->units);
        db_bind_int(q, 5, e->count);
        TRY(db_do(q, err));
    }
    return FDS_OK;
}

static fds_status flush_log(fds_ledger *l, fds_error *err) {
    db_query *q;
    OWNED char *note = NULL;
    TRY(log_tree_append(l->tree, l->leaves, l->state.size - l->kept_size, &l->store, err));
    log_hash root = log_tree_root(l->tree);
    TRY(log_checkpoint_sign(&l->key, l->state.size, &root, &note, err));
    TRY(ledger_query(l, LEDGER_Q_SET_CHECKPOINT, &q, err));
    db_bind_int(q, 1, l->state.at_ms / LEDGER_DAY_MS);
    db_bind_int(q, 2, (int64_t)l->state.size);
    db_bind_text(q, 3, note);
    return db_do(q, err);
}

static fds_status flush(fds_ledger *l, fds_error *err) {
    TRY(flush_balances(l, err));
    TRY(flush_carries(l, err));
    TRY(flush_earnings(l, err));
    return flush_log(l, err);
}

static void end_queries(fds_ledger *l) { /* an unfinished one would keep the transaction open */
    for (size_t i = 0; i < LEDGER_QUERIES; i++)
        if (l->queries[i])
            db_end(l->queries[i]);
}

/* After a failed commit: whether it has happened all the same. */
static bool has_happened(fds_ledger *l) {
    fds_error why;
    bool is_there = false;
    end_queries(l);
    l->doubt_size = l->state.size;
    l->doubt_root = log_tree_root(l->tree);
    l->is_doubtful = find_outcome(l, &is_there, &why) != FDS_OK;
    return !l->is_doubtful && is_there;
}

static void undo(fds_ledger *l) {
    end_queries(l);
    db_rollback(l->db);
    ledger_state_undo(&l->state, l->kept_accounts, l->kept_runs);
    l->state.size = l->kept_size;
    l->state.at_ms = l->kept_at_ms;
    l->totals = l->kept_totals;
    l->state.privacy = l->kept_privacy;
    *l->tree = *l->kept_tree;
}

fds_status ledger_end(fds_ledger *l, fds_status status, fds_error *err) {
    bool has_entries = l->state.size > l->kept_size;
    if (status == FDS_OK && has_entries)
        status = flush(l, err);
    if (status == FDS_OK && has_entries) {
        status = db_commit(l->db, err);
        if (status == FDS_OK || has_happened(l)) {
            ledger_state_keep(&l->state);
            return FDS_OK;
        }
    }
    undo(l);
    return status;
}

fds_status ledger_end_rows(fds_ledger *l, fds_status status, fds_error *err) {
    if (status == FDS_OK) {
        status = db_commit(l->db, err);
        if (status == FDS_OK)
            return FDS_OK;
        l->doubt_size = LEDGER_NONE; /* the next transaction settles the database first */
        l->is_doubtful = true;
    }
    undo(l);
    return status;
}

/* ---- one entry ---- */

void ledger_count_cash(fds_ledger_totals *totals, int64_t units) {
    int64_t *sum = units < 0 ? &totals->in : &totals->out;
    if (__builtin_add_overflow(*sum, units < 0 ? -units : units, sum))
        *sum = INT64_MAX;
}

static fds_status make_leaf(fds_ledger *l, ledger_entry *e, const fds_posting *postings,
                            size_t count, fds_error *err) {
    log_hash root;
    if (count) {
        TRY(ledger_postings_encode(postings, count, &l->bytes, err));
        e->postings = (fds__bytes){l->bytes.data, l->bytes.used};
        TRY(ledger_share_hashes(e, &l->state, postings, count, &l->hashes, &l->hash_capacity, err));
        root = log_root(l->hashes, count);
    }
    l->text.used = 0;
    ledger_leaf_text(e, &l->state, &l->unit, count ? &root : NULL, &l->text);
    if (fds__text_check(&l->text, err) != FDS_OK) {
        l->text.is_failed = false;
        return FDS_ERR_NOMEM;
    }
    e->leaf = log_leaf(l->text.data, l->text.used);
    return FDS_OK;
}

fds_status ledger_add(fds_ledger *l, ledger_entry *e, const fds_posting *postings, size_t count,
                      fds_error *err) {
    db_query *q;
    void *leaves = l->leaves;
    size_t new_entries = (size_t)(l->state.size - l->kept_size);
    fds_status status =
        fds__grow(&leaves, &l->leaf_capacity, new_entries + 1, sizeof *l->leaves, err);
    l->leaves = leaves;
    TRY(status);
    e->index = l->state.size;
    e->at_ms = MAX(l->now_ms(), l->state.at_ms);
    TRY(l->random(e->salt, sizeof e->salt, err));
    TRY(make_leaf(l, e, postings, count, err));
    TRY(ledger_query(l, LEDGER_Q_ADD_ENTRY, &q, err));
    TRY(ledger_state_post(&l->state, postings, count, err));
    ledger_state_withhold(&l->state, e->kind, postings, count);
    ledger_entry_bind(e, q);
    fds_status done = db_do(q, err);
    if (done != FDS_OK) /* balances have changed: the whole transaction must fail, not this entry */
        return done == FDS_ERR_NOMEM ? done : FDS_ERR_IO;
    l->leaves[new_entries] = e->leaf;
    for (size_t i = 0; i < count; i++)
        if (postings[i].account == LEDGER_CASH)
            ledger_count_cash(&l->totals, postings[i].units);
    l->state.size++;
    l->state.at_ms = e->at_ms;
    return FDS_OK;
}
