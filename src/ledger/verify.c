/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything computed again from the entries, in their order: postings, shares from values, balances,
 * carries, earnings, leaves, the tree and its tiles, checkpoints. Accounts, runs, and the earnings of
 * one day are in memory; entries are not. */
#include "ledger/ledger.h"

#include <stdarg.h>

enum { REPORT_EVERY = 256, EARNINGS_AT_ONCE = 1 << 17, DENSE_LABELS = 256 };

typedef struct {
    int64_t day;
    uint64_t size;
    log_hash root;
} mark;

/* Earnings of a day by one label: (capacity) by account. */
typedef struct {
    ledger_earning *of;
    size_t capacity;
} dense_sums;

typedef struct {
    const fds_ledger *ledger;
    ledger_state state;       /* what the entries so far add up to */
    ledger_parts own, *parts; /* parts: of the entry at hand */
    ledger_batch *batch;
    dense_sums sums[DENSE_LABELS];
    log_tree *tree;
    log_store store; /* compares instead of writing */
    log_hash leaves[LOG_TILE];
    size_t leaf_count; /* not in the tree yet */
    mark *marks;       /* checkpoints by day */
    size_t mark_count, mark_capacity, mark_at;
    int64_t day; /* whose earnings are being summed */
    ledger_earning *earnings;
    size_t earning_count, earning_capacity, earning_limit;
    ledger_state labels; /* of the day: kept and found as names of accounts are */
    uint64_t earning_rows, kinds[LEDGER_KINDS];
} audit;

#define FAIL_ENTRY(a, e, err, ...) fail_entry((a), (e)->index, (err), __VA_ARGS__)

__attribute__((format(printf, 4, 5))) static fds_status
fail_entry(const audit *a, uint64_t index, fds_error *err, const char *format, ...) {
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ledger_fail(a->ledger, err, "entry %llu: %s", (unsigned long long)index, text);
}

/* ---- the log ---- */

static fds_status compare_tile(void *context, unsigned level, uint64_t n, size_t width,
                               const log_hash *hashes, fds_error *err) {
    const audit *a = context;
    log_hash stored[LOG_TILE];
    if (width < LOG_TILE) /* not its last state, or compared at the end */
        return FDS_OK;
    fds_status status =
        a->ledger->store.read(a->ledger->store.context, level, n, width, stored, err);
    if (status == FDS_ERR_NOT_FOUND || (status == FDS_OK && memcmp(stored, hashes, sizeof stored)))
        return ledger_fail(a->ledger, err, "tile %llu of level %u is not that of the entries",
                           (unsigned long long)n, level);
    return status;
}

/* Adds the waiting leaves to the tree; at a checkpoint, its root must be the signed one. */
static fds_status grow_tree(audit *a, fds_error *err) {
    TRY(log_tree_append(a->tree, a->leaves, a->leaf_count, &a->store, err));
    a->leaf_count = 0;
    while (a->mark_at < a->mark_count && a->marks[a->mark_at].size == a->tree->size) {
        const mark *m = &a->marks[a->mark_at++];
        log_hash root = log_tree_root(a->tree);
        if (!log_equal(&root, &m->root))
            return ledger_fail(a->ledger, err,
                               "the checkpoint of %llu entries is signed for other entries",
                               (unsigned long long)m->size);
    }
    return FDS_OK;
}

static fds_status add_leaf(audit *a, const ledger_entry *e, fds_error *err) {
    log_hash leaf = log_leaf(a->parts->leaf.data, a->parts->leaf.used);
    if (!log_equal(&leaf, &e->leaf))
        return FAIL_ENTRY(a, e, err, "its leaf in the log is not that of its columns");
    a->leaves[a->leaf_count++] = leaf;
    bool is_marked =
        a->mark_at < a->mark_count && a->marks[a->mark_at].size == a->tree->size + a->leaf_count;
    return a->leaf_count == LOG_TILE || is_marked ? grow_tree(a, err) : FDS_OK;
}

static fds_status read_mark(audit *a, const db_query *row, const char *vkey, fds_error *err) {
    void *grown = a->marks;
    fds_status status =
        fds__grow(&grown, &a->mark_capacity, a->mark_count + 1, sizeof *a->marks, err);
    a->marks = grown;
    TRY(status);
    const mark *last = a->mark_count ? &a->marks[a->mark_count - 1] : NULL;
    mark m = {.day = db_int(row, 0)};
    const char *note = db_text(row, 2, NULL);
    TRY(log_checkpoint_open(note ? note : "", note ? strlen(note) : 0, vkey, &m.size, &m.root,
                            err));
    if (db_int(row, 1) != (int64_t)m.size || m.size == 0 || (last && m.size <= last->size))
        return ledger_fail(a->ledger, err, "the checkpoint of day %lld is of another size",
                           (long long)m.day);
    a->marks[a->mark_count++] = m;
    return FDS_OK;
}

static fds_status read_marks(audit *a, const char *vkey, fds_error *err) {
    db_query *q;
    bool has_row = true;
    TRY(ledger_query(a->ledger, LEDGER_Q_CHECKPOINTS, &q, err));
    fds_status status = FDS_OK;
    while (status == FDS_OK) {
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        status = read_mark(a, q, vkey, err);
    }
    db_end(q);
    if (status == FDS_OK &&
        (!a->mark_count || a->marks[a->mark_count - 1].size != a->ledger->state.size))
        status = ledger_fail(a->ledger, err, "its newest checkpoint is not of all entries");
    return status;
}

static fds_status count_rows(const fds_ledger *l, enum ledger_query which, uint64_t *out,
                             fds_error *err) {
    db_query *q;
    bool has_row;
    TRY(ledger_query(l, which, &q, err));
    fds_status status = db_next(q, &has_row, err);
    *out = status == FDS_OK && has_row ? (uint64_t)db_int(q, 0) : 0;
    db_end(q);
    return status;
}

/* The tiles that are not full, and that there are no others. */
static fds_status check_tiles(audit *a, fds_error *err) {
    const fds_ledger *l = a->ledger;
    uint64_t wanted = 0, found;
    for (unsigned level = 0; level < LOG_LEVELS; level++) {
        uint64_t hashes = a->tree->size >> (8 * level);
        size_t width = (size_t)(hashes % LOG_TILE);
        log_hash stored[LOG_TILE];
        wanted += (hashes + LOG_TILE - 1) / LOG_TILE;
        if (!width)
            continue;
        fds_status status =
            l->store.read(l->store.context, level, hashes / LOG_TILE, width, stored, err);
        bool is_other =
            status == FDS_ERR_NOT_FOUND ||
            (status == FDS_OK && memcmp(stored, a->tree->edge[level], width * sizeof *stored) != 0);
        if (!is_other)
            TRY(status);
        if (is_other || l->store.read(l->store.context, level, hashes / LOG_TILE, width + 1, stored,
                                      NULL) == FDS_OK)
            return ledger_fail(l, err, "the last tile of level %u is not that of the entries",
                               level);
    }
    TRY(count_rows(l, LEDGER_Q_COUNT_TILES, &found, err));
    return found == wanted ? FDS_OK
                           : ledger_fail(l, err, "its log has %llu tiles instead of %llu",
                                         (unsigned long long)found, (unsigned long long)wanted);
}

/* ---- earnings, day by day ---- */

static fds_status fail_earnings(const audit *a, fds_error *err) {
    char day[LEDGER_TIME];
    return ledger_fail(a->ledger, err, "the earnings of %s are not those of its predictions",
                       ledger_day_text(a->day, day));
}

static fds_status compare_earnings(audit *a, db_query *q, fds_error *err) {
    bool has_row;
    for (size_t i = 0;; i++) {
        TRY(db_next(q, &has_row, err));
        if (has_row != (i < a->earning_count))
            return fail_earnings(a, err);
        if (!has_row)
            return FDS_OK;
        const ledger_earning *e = &a->earnings[i];
        const char *label = db_text(q, 1, NULL);
        if (db_int(q, 0) != (int64_t)e->account || !label || strcmp(label, e->label) != 0 ||
            db_int(q, 2) != e->units || db_int(q, 3) != e->count)
            return fail_earnings(a, err);
    }
}

static fds_status reserve_earnings(audit *a, size_t more, fds_error *err) {
    void *grown = a->earnings;
    fds_status status =
        fds__grow(&grown, &a->earning_capacity, a->earning_count + more, sizeof *a->earnings, err);
    a->earnings = grown;
    return status;
}

/* Sums by account, for the first labels of a day; the others are listed and sorted. */
static fds_status add_dense(audit *a, size_t label, const ledger_run *run, fds_error *err) {
    dense_sums *sums = &a->sums[label];
    size_t accounts = a->state.account_count, old = sums->capacity;
    void *grown = sums->of;
    fds_status status = fds__grow(&grown, &sums->capacity, accounts, sizeof *sums->of, err);
    sums->of = grown;
    TRY(status);
    if (sums->capacity > old)
        memset(sums->of + old, 0, (sums->capacity - old) * sizeof *sums->of);
    for (size_t i = 0; i < run->count; i++) {
        ledger_earning *sum = &sums->of[run->payees[i]];
        if (__builtin_add_overflow(sum->units, run->shares[i], &sum->units))
            return fail_earnings(a, err);
        sum->count += run->shares[i] != 0;
    }
    return FDS_OK;
}

/* The sums of a day, listed. */
static fds_status list_dense(audit *a, fds_error *err) {
    for (size_t label = 0; label < MIN(a->labels.account_count, (size_t)DENSE_LABELS); label++) {
        dense_sums *sums = &a->sums[label];
        TRY(reserve_earnings(a, sums->capacity, err));
        for (size_t i = 0; i < sums->capacity; i++) {
            if (sums->of[i].count)
                a->earnings[a->earning_count++] =
                    (ledger_earning){i, a->day, a->labels.accounts[label].name, sums->of[i].units,
                                     sums->of[i].count};
            sums->of[i] = (ledger_earning){0};
        }
    }
    return FDS_OK;
}

static fds_status end_day(audit *a, fds_error *err) {
    db_query *q;
    TRY(list_dense(a, err));
    if (!ledger_earnings_merge(a->earnings, &a->earning_count))
        return fail_earnings(a, err);
    TRY(ledger_query(a->ledger, LEDGER_Q_EARNINGS_OF_DAY, &q, err));
    db_bind_int(q, 1, a->day);
    fds_status status = compare_earnings(a, q, err);
    db_end(q);
    a->earning_rows += a->earning_count;
    a->earning_count = 0;
    a->earning_limit = EARNINGS_AT_ONCE;
    ledger_state_free(&a->labels);
    return status;
}

static fds_status note_earnings(audit *a, const ledger_entry *e, const ledger_run *run,
                                fds_error *err) {
    uint64_t label = ledger_state_find(&a->labels, e->label);
    if (label == LEDGER_NONE) {
        TRY(ledger_state_add_account(&a->labels, FDS_ACCOUNT_PLATFORM, e->label, err));
        label = a->labels.account_count - 1;
    }
    if (label < DENSE_LABELS)
        return add_dense(a, label, run, err);
    if (a->earning_count + run->count > a->earning_limit) {
        if (!ledger_earnings_merge(a->earnings, &a->earning_count))
            return fail_earnings(a, err);
        a->earning_limit = MAX(a->earning_limit, 2 * (a->earning_count + run->count));
    }
    TRY(reserve_earnings(a, run->count, err));
    for (size_t i = 0; i < run->count; i++)
        if (run->shares[i])
            a->earnings[a->earning_count++] = (ledger_earning){
                run->payees[i], a->day, a->labels.accounts[label].name, run->shares[i], 1};
    return FDS_OK;
}

/* ---- entries of each kind ---- */

static bool is_posting(const audit *a, size_t i, uint64_t account, int64_t units) {
    return a->parts->postings[i].account == account && a->parts->postings[i].units == units;
}

static fds_status check_prediction(audit *a, const ledger_entry *e, fds_error *err) {
    ledger_run *run = a->state.runs[e->run];
    int64_t fee;
    fds__pay_rule rule;
    for (size_t i = 0; i < run->count; i++) {
        float value;
        memcpy(&value, (const char *)e->values.data + i * sizeof value, sizeof value);
        run->values[i] = (double)value;
    }
    if (a->state.accounts[e->customer].kind != FDS_ACCOUNT_CUSTOMER || e->amount < 0 ||
        e->amount > LEDGER_MOST_AMOUNT)
        return FAIL_ENTRY(a, e, err, "its amount or customer is impossible");
    if (ledger_run_divide(run, e->amount, &fee, &rule, NULL) != FDS_OK)
        return FAIL_ENTRY(a, e, err, "its values cannot be divided by");
    if (fee != e->fee || strcmp(ledger_rule_name(rule), e->rule) != 0)
        return FAIL_ENTRY(a, e, err, "its fee or rule is not that of its amount and values");
    bool is_right = a->parts->count == run->count + 2 &&
                    is_posting(a, 0, e->customer, -e->amount) &&
                    is_posting(a, run->count + 1, LEDGER_FEES, fee);
    for (size_t i = 0; is_right && i < run->count; i++)
        is_right = is_posting(a, i + 1, run->payees[i], run->shares[i]);
    if (!is_right)
        return FAIL_ENTRY(a, e, err, "its shares are not those of its amount and values");
    return note_earnings(a, e, run, err);
}

static fds_status check_transfer(const audit *a, const ledger_entry *e, fds_error *err) {
    const ledger_account *account = &a->state.accounts[e->customer];
    bool is_topup = e->kind == LEDGER_TOPUP;
    int64_t units = is_topup ? e->amount : -e->amount, owed = MAX(account->balance, 0);
    if (e->amount < 1 || e->fee != 0 || a->parts->count != 2 ||
        !is_posting(a, 0, e->customer, units) || !is_posting(a, 1, LEDGER_CASH, -units) ||
        e->customer == LEDGER_CASH)
        return FAIL_ENTRY(a, e, err, "its postings are not those of its amount");
    if (is_topup ? account->kind != FDS_ACCOUNT_CUSTOMER
                 : e->amount > owed || e->amount % a->ledger->unit.minor != 0)
        return FAIL_ENTRY(a, e, err, "its account or amount is not one for a %s",
                          ledger_entry_kinds[e->kind]);
    return FDS_OK;
}

static fds_status check_correction(const audit *a, const ledger_entry *e, fds_error *err) {
    json_t *root = NULL;
    TRY(fds__json_parse("entry", e->text, strlen(e->text), &root, err));
    const json_t *operators = json_object_get(root, "operators");
    const char *first = json_string_value(json_array_get(operators, 0)),
               *second = json_string_value(json_array_get(operators, 1));
    bool is_right = json_is_string(json_object_get(root, "reason")) && first && second &&
                    strcmp(first, second) != 0 && a->parts->count >= 2;
    json_decref(root);
    return is_right ? FDS_OK : FAIL_ENTRY(a, e, err, "it has no reason, or not two operators");
}

static fds_status check_note(const audit *a, const ledger_entry *e, fds_error *err) {
    json_t *root = NULL;
    TRY(fds__json_parse("entry", e->text, strlen(e->text), &root, err));
    bool is_right = json_is_object(root) && a->parts->count == 0;
    json_decref(root);
    return is_right ? FDS_OK : FAIL_ENTRY(a, e, err, "it is no note");
}

/* The first entry says what kind of ledger it is. */
static fds_status check_first(const audit *a, const ledger_entry *e, fds_error *err) {
    const fds_ledger *l = a->ledger;
    json_t *root = NULL;
    TRY(fds__json_parse("entry", e->text ? e->text : "", e->text ? strlen(e->text) : 0, &root,
                        err));
    const char *currency = json_string_value(json_object_get(root, "currency")),
               *origin = json_string_value(json_object_get(root, "origin"));
    bool is_right = currency && strcmp(currency, l->unit.currency) == 0 && origin &&
                    strcmp(origin, l->origin) == 0 &&
                    json_integer_value(json_object_get(root, "decimals")) == l->unit.decimals &&
                    json_integer_value(json_object_get(root, "format")) == LEDGER_FORMAT &&
                    json_is_true(json_object_get(root, "debts")) == l->state.has_debts;
    json_decref(root);
    return is_right ? FDS_OK
                    : FAIL_ENTRY(a, e, err,
                                 "currency, decimals, origin or debts of the ledger were "
                                 "others at its beginning");
}

static fds_status add_new(audit *a, const ledger_entry *e, fds_error *err) {
    if (e->index == 0)
        TRY(check_first(a, e, err));
    if (e->kind == LEDGER_OPEN && e->text)
        return ledger_state_read_account(&a->state, e->text, err);
    if (e->kind != LEDGER_RUN || !e->text)
        return FDS_OK;
    TRY(ledger_state_read_run(&a->state, e->text, err));
    const ledger_run *run = a->state.runs[a->state.run_count - 1];
    if (e->run != a->state.run_count - 1 ||
        (run->policy == FDS__POLICY_SIGNED && !a->state.has_debts))
        return FAIL_ENTRY(a, e, err, "its run is impossible");
    return FDS_OK;
}

static fds_status check_kind(audit *a, const ledger_entry *e, fds_error *err) {
    fds__fixed sum = 0;
    for (size_t i = 0; i < a->parts->count; i++)
        sum += a->parts->postings[i].units;
    if (sum != 0)
        return FAIL_ENTRY(a, e, err, "its postings do not sum to 0");
    switch (e->kind) {
    case LEDGER_PREDICTION:
        return check_prediction(a, e, err);
    case LEDGER_TOPUP:
    case LEDGER_PAYOUT:
        return check_transfer(a, e, err);
    case LEDGER_CORRECTION:
        return check_correction(a, e, err);
    case LEDGER_AUDIT:
        return check_note(a, e, err);
    default:
        return a->parts->count == 0 ? FDS_OK : FAIL_ENTRY(a, e, err, "it has postings");
    }
}

static fds_status check_entry(audit *a, const ledger_entry *e, fds_error *err) {
    if (e->index != a->state.size)
        return FAIL_ENTRY(a, e, err, "entry %llu is missing", (unsigned long long)a->state.size);
    if (e->at_ms < a->state.at_ms)
        return FAIL_ENTRY(a, e, err, "its time is before that of the entry before");
    if ((e->key != NULL) != (e->fingerprint.size == 32))
        return FAIL_ENTRY(a, e, err, "its key has no fingerprint");
    fds_error why = {0};
    fds_status status = add_new(a, e, &why);
    if (status == FDS_ERR_FORMAT || (status == FDS_ERR_CORRUPT && !strstr(why.text, ": entry ")))
        return FAIL_ENTRY(a, e, err, "%.250s", why.text);
    if (status != FDS_OK)
        return fds__fail(err, status, "%s", why.text);
    if (a->parts == &a->own) /* else it was hashed with others */
        TRY(ledger_parts_read(a->parts, e, &a->state, &a->ledger->unit, err));
    TRY(add_leaf(a, e, err));
    if (e->at_ms / LEDGER_DAY_MS != a->day) { /* once the entry itself is known to be right */
        TRY(end_day(a, err));
        a->day = e->at_ms / LEDGER_DAY_MS;
    }
    TRY(check_kind(a, e, err));
    if (ledger_state_post(&a->state, a->parts->postings, a->parts->count, &why) != FDS_OK)
        return FAIL_ENTRY(a, e, err, "%.200s", why.text);
    ledger_state_keep(&a->state);
    a->state.size++;
    a->state.at_ms = e->at_ms;
    a->kinds[e->kind]++;
    return FDS_OK;
}

/* Those that wait. */
static fds_status check_batch(audit *a, fds_error *err) {
    size_t count = ledger_batch_count(a->batch);
    fds_status status = ledger_batch_hash(a->batch, err);
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        const ledger_entry *e;
        fds_error why = {0};
        fds_status hashed = ledger_batch_get(a->batch, i, &e, &a->parts, &why);
        if (hashed != FDS_OK)
            a->parts = &a->own; /* fails again, unless something else is wrong before */
        status = check_entry(a, e, err);
    }
    ledger_batch_clear(a->batch);
    a->parts = &a->own;
    return status;
}

/* Predictions wait for each other; other entries change what is known, and come after them. */
static fds_status take_entry(audit *a, const ledger_entry *e, fds_error *err) {
    if (e->kind == LEDGER_PREDICTION) {
        TRY(ledger_batch_add(a->batch, e, err));
        return ledger_batch_count(a->batch) == LEDGER_BATCH ? check_batch(a, err) : FDS_OK;
    }
    TRY(check_batch(a, err));
    return check_entry(a, e, err);
}

static fds_status check_entries(audit *a, const fds_events *events, fds_error *err) {
    db_query *q;
    bool has_row = true;
    double start_s = fds__now_s();
    uint64_t total = a->ledger->state.size, seen = 0;
    TRY(ledger_query(a->ledger, LEDGER_Q_ALL, &q, err));
    fds_status status = FDS_OK;
    while (status == FDS_OK) {
        ledger_entry e;
        if (seen++ % REPORT_EVERY == 0)
            status = fds__report(events, "verify", "entries", a->state.size, total, start_s, err);
        if (status == FDS_OK)
            status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        fds_error why = {0};
        status = ledger_entry_read(q, &e, &why);
        if (status == FDS_OK) {
            status = take_entry(a, &e, err);
        } else if (check_batch(a, err) == FDS_OK) { /* what came before is wrong first */
            fds__fail(err, status, "%s", why.text);
        }
    }
    db_end(q);
    if (status == FDS_OK)
        status = check_batch(a, err);
    if (status == FDS_OK && a->state.size != total)
        status =
            ledger_fail(a->ledger, err, "entry %llu is missing", (unsigned long long)a->state.size);
    if (status == FDS_OK)
        status = fds__report(events, "verify", "entries", total, total, start_s, err);
    return status;
}

/* ---- the tables that follow from the entries ---- */

static fds_status check_account_row(const audit *a, const db_query *q, size_t i, fds_error *err) {
    const ledger_account *x = i < a->state.account_count ? &a->state.accounts[i] : NULL;
    const char *kind = db_text(q, 1, NULL), *name = db_text(q, 2, NULL);
    if (!x || db_int(q, 0) != (int64_t)i || !kind || strcmp(kind, ledger_kind_name(x->kind)) != 0 ||
        !name || strcmp(name, x->name) != 0)
        return ledger_fail(a->ledger, err, "account %zu is not what its entry says", i);
    if (db_int(q, 3) != x->balance)
        return ledger_fail(a->ledger, err,
                           "the balance of %.200s is %lld units, but its entries add up to %lld",
                           x->name, (long long)db_int(q, 3), (long long)x->balance);
    return FDS_OK;
}

static fds_status check_run_row(const audit *a, const db_query *q, size_t i, fds_error *err) {
    const ledger_run *x = i < a->state.run_count ? a->state.runs[i] : NULL;
    const char *sha256 = db_text(q, 1, NULL);
    size_t size;
    const char *carry = db_blob(q, 2, &size);
    bool is_right = x && db_int(q, 0) == (int64_t)i && sha256 && strcmp(sha256, x->sha256) == 0 &&
                    size == x->count * sizeof(fds__fixed);
    for (size_t k = 0; is_right && k < x->count; k++) {
        fds__fixed owed = fds__carry_owed(x->carry, k);
        is_right = memcmp(carry + k * sizeof owed, &owed, sizeof owed) == 0;
    }
    return is_right ? FDS_OK
                    : ledger_fail(a->ledger, err,
                                  "run %zu, or what it carries, is not that of its "
                                  "entries",
                                  i);
}

static fds_status check_rows(const audit *a, enum ledger_query which, size_t wanted,
                             fds_status (*check)(const audit *, const db_query *, size_t,
                                                 fds_error *),
                             fds_error *err) {
    db_query *q;
    bool has_row = true;
    size_t found = 0;
    TRY(ledger_query(a->ledger, which, &q, err));
    fds_status status = FDS_OK;
    while (status == FDS_OK) {
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        status = check(a, q, found++, err);
    }
    db_end(q);
    if (status == FDS_OK && found != wanted)
        status = ledger_fail(a->ledger, err, "an account or a run is missing");
    return status;
}

static fds_status check_keys(const audit *a, fds_error *err) {
    db_query *q;
    bool has_row;
    TRY(ledger_query(a->ledger, LEDGER_Q_REPEATED, &q, err));
    fds_status status = db_next(q, &has_row, err);
    if (status == FDS_OK && has_row)
        status = fail_entry(a, (uint64_t)db_int(q, 0), err, "its key is that of an earlier entry");
    db_end(q);
    return status;
}

static fds_status check_all(audit *a, const char *vkey, const fds_events *events, fds_error *err) {
    const fds_ledger *l = a->ledger;
    uint64_t rows;
    TRY(db_check(l->db, ledger_tables_of(l), err));
    TRY(read_marks(a, vkey, err));
    TRY(check_entries(a, events, err));
    TRY(grow_tree(a, err));
    TRY(end_day(a, err));
    if (a->mark_at != a->mark_count)
        return ledger_fail(l, err, "a checkpoint is of more entries than there are");
    TRY(check_tiles(a, err));
    TRY(check_rows(a, LEDGER_Q_ACCOUNTS, a->state.account_count, check_account_row, err));
    TRY(check_rows(a, LEDGER_Q_RUNS, a->state.run_count, check_run_row, err));
    TRY(count_rows(l, LEDGER_Q_COUNT_EARNINGS, &rows, err));
    if (rows != a->earning_rows)
        return ledger_fail(l, err, "there are earnings of days without predictions");
    return check_keys(a, err);
}

/* ---- the report ---- */

static fds_status write_report(const audit *a, const char *vkey, char **report, fds_error *err) {
    json_t *root = json_object(), *kinds = json_object();
    bool is_whole =
        kinds && fds__json_put(root, "entries", json_integer((json_int_t)a->state.size));
    for (int i = 0; i < LEDGER_KINDS; i++)
        is_whole = is_whole && fds__json_put(kinds, ledger_entry_kinds[i],
                                             json_integer((json_int_t)a->kinds[i]));
    is_whole = is_whole && fds__json_share(root, "kinds", kinds) &&
               fds__json_put(root, "accounts", json_integer((json_int_t)a->state.account_count)) &&
               fds__json_put(root, "runs", json_integer((json_int_t)a->state.run_count)) &&
               fds__json_put(root, "cash", json_integer(-a->state.accounts[LEDGER_CASH].balance)) &&
               fds__json_put(root, "currency", json_string(a->ledger->unit.currency)) &&
               fds__json_put(root, "decimals", json_integer(a->ledger->unit.decimals)) &&
               fds__json_put(root, "checkpoints", json_integer((json_int_t)a->mark_count)) &&
               fds__json_put(root, "vkey", json_string(vkey));
    *report = is_whole ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(kinds);
    json_decref(root);
    return *report ? FDS_OK : fds__fail_json(err);
}

static void free_audit(audit *a) {
    ledger_state_free(&a->state);
    ledger_state_free(&a->labels);
    ledger_parts_free(&a->own);
    fds__free(a->tree);
    fds__free(a->marks);
    fds__free(a->earnings);
    for (size_t i = 0; i < DENSE_LABELS; i++)
        fds__free(a->sums[i].of);
    ledger_batch_free(a->batch);
    fds__free(a);
}

fds_status fds_ledger_verify(const fds_ledger *l, const char *vkey, const fds_events *events,
                             char **report, fds_error *err) {
    audit *a;
    vkey = vkey ? vkey : l->vkey;
    TRY(NEW(a, 1, err));
    a->ledger = l;
    a->state.has_debts = l->state.has_debts;
    a->store = (log_store){.context = a, .write = compare_tile};
    a->earning_limit = EARNINGS_AT_ONCE;
    a->parts = &a->own;
    fds_status status = NEW(a->tree, 1, err);
    if (status == FDS_OK)
        status = ledger_batch_create(&a->state, &l->unit, &a->batch, err);
    if (status == FDS_OK)
        status = check_all(a, vkey, events, err);
    if (status == FDS_OK && report)
        status = write_report(a, vkey, report, err);
    free_audit(a);
    return status;
}
