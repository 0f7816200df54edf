/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything computed again from the entries, in their order: postings, shares from values, balances,
 * carries; earnings (verify_earnings.c); leaves, the tree and its tiles, checkpoints (verify_log.c).
 * Accounts, runs, and the earnings of one day are in memory; entries are not. Processors hash some
 * hundred predictions (batch.c) while one of them checks those before. */
#include "ledger/ledger.h"

#include <stdarg.h>

enum { REPORT_EVERY = 256 };

typedef struct {
    const fds_ledger *ledger;
    ledger_state state;           /* what the entries so far add up to */
    ledger_parts own, *parts;     /* parts: of the entry at hand */
    ledger_batch *batch, *hashed; /* predictions to hash; those to check meanwhile */
    ledger_log_check *log;
    ledger_earnings_check *earnings;
    int64_t released_from; /* first day of the release that is being checked */
    uint64_t kinds[LEDGER_KINDS];
    size_t checkpoints;
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
        e->amount > LEDGER_MOST_AMOUNT ||
        (a->state.privacy.is_on && e->amount > a->state.privacy.price_limit))
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
    return ledger_earnings_check_add(a->earnings, e->label, run, a->state.account_count, err);
}

static fds_status check_transfer(const audit *a, const ledger_entry *e, fds_error *err) {
    const ledger_account *account = &a->state.accounts[e->customer];
    bool is_topup = e->kind == LEDGER_TOPUP;
    int64_t units = is_topup ? e->amount : -e->amount,
            owed = MAX(ledger_visible(&a->state, e->customer), 0);
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
    if (!is_right)
        return FAIL_ENTRY(a, e, err, "it has no reason, or not two operators");
    fds_error why = {0};
    fds_status status = ledger_correction_check(a->ledger, &a->state, e->ref, a->parts->postings,
                                                a->parts->count, &why);
    return status == FDS_ERR_USAGE
               ? FAIL_ENTRY(a, e, err,
                            "it corrects a prediction by a provider's account, which "
                            "shows what the prediction has paid")
           : status != FDS_OK ? fds__fail(err, status, "%s", why.text)
                              : FDS_OK;
}

static fds_status check_note(const audit *a, const ledger_entry *e, fds_error *err) {
    json_t *root = NULL;
    TRY(fds__json_parse("entry", e->text, strlen(e->text), &root, err));
    bool is_right = json_is_object(root) && a->parts->count == 0;
    json_decref(root);
    return is_right ? FDS_OK : FAIL_ENTRY(a, e, err, "it is no note");
}

/* Its days' earnings were compared with the predictions when those days ended. */
static fds_status check_release(const audit *a, const ledger_entry *e, fds_error *err) {
    OWNED int64_t *earned = NULL;
    size_t providers = 0;
    TRY(NEW(earned, MAX(a->state.account_count, a->ledger->state.account_count), err));
    TRY(ledger_earned_between(a->ledger, a->released_from, a->state.privacy.released, earned, err));
    bool is_right = true;
    for (size_t i = 0; is_right && i < a->state.account_count; i++)
        if (a->state.accounts[i].kind == FDS_ACCOUNT_PROVIDER) {
            is_right = providers < a->parts->count && is_posting(a, providers, i, -earned[i]) &&
                       a->parts->count / 2 + providers < a->parts->count &&
                       a->parts->postings[a->parts->count / 2 + providers].account == i;
            providers++;
        }
    if (!is_right || a->parts->count != 2 * providers + 1 ||
        a->parts->postings[2 * providers].account != a->state.privacy.reserve)
        return FAIL_ENTRY(a, e, err, "its postings are not those of a release");
    return FDS_OK;
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
    if (e->kind == LEDGER_PRIVACY || e->kind == LEDGER_RELEASE) {
        a->released_from = a->state.privacy.released + 1;
        if (!a->state.privacy.is_on && a->kinds[LEDGER_PREDICTION])
            return FAIL_ENTRY(a, e, err, "there are predictions before it");
        return ledger_privacy_take(&a->state, e, err);
    }
    if (e->kind != LEDGER_RUN || !e->text)
        return FDS_OK;
    TRY(ledger_state_read_run(&a->state, e->text, err));
    const ledger_run *run = a->state.runs[a->state.run_count - 1];
    if (e->run != a->state.run_count - 1 ||
        (run->policy == FDS__POLICY_SIGNED && (!a->state.has_debts || a->state.privacy.is_on)))
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
    case LEDGER_RELEASE:
        return check_release(a, e, err);
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
    log_hash leaf = log_leaf(a->parts->leaf.data, a->parts->leaf.used);
    if (!log_equal(&leaf, &e->leaf))
        return FAIL_ENTRY(a, e, err, "its leaf in the log is not that of its columns");
    TRY(ledger_log_check_add(a->log, &leaf, err));
    TRY(ledger_earnings_check_day(a->earnings, e->at_ms / LEDGER_DAY_MS, err));
    TRY(check_kind(a, e, err));
    if (ledger_state_post(&a->state, a->parts->postings, a->parts->count, &why) != FDS_OK)
        return FAIL_ENTRY(a, e, err, "%.200s", why.text);
    ledger_state_withhold(&a->state, e->kind, a->parts->postings, a->parts->count);
    ledger_state_keep(&a->state);
    a->state.size++;
    a->state.at_ms = e->at_ms;
    a->kinds[e->kind]++;
    return FDS_OK;
}

/* Predictions that were hashed. */
static fds_status check_hashed(void *context, fds_error *err) {
    audit *a = context;
    fds_status status = FDS_OK;
    for (size_t i = 0; i < ledger_batch_count(a->hashed) && status == FDS_OK; i++) {
        const ledger_entry *e;
        if (ledger_batch_get(a->hashed, i, &e, &a->parts) != FDS_OK)
            a->parts = &a->own; /* fails again, unless something else is wrong before */
        status = check_entry(a, e, err);
    }
    ledger_batch_clear(a->hashed);
    a->parts = &a->own;
    return status;
}

/* Hashes the predictions that wait, and checks those that were hashed before. */
static fds_status turn(audit *a, fds_error *err) {
    ledger_batch *next = a->hashed;
    TRY(ledger_batch_hash(a->batch, check_hashed, a, err));
    a->hashed = a->batch;
    a->batch = next;
    return FDS_OK;
}

static fds_status check_waiting(audit *a, fds_error *err) {
    TRY(turn(a, err));
    return check_hashed(a, err);
}

/* Predictions wait for each other; other entries change what is known, and come after them. */
static fds_status take_entry(audit *a, const ledger_entry *e, fds_error *err) {
    if (e->kind == LEDGER_PREDICTION) {
        TRY(ledger_batch_add(a->batch, e, err));
        return ledger_batch_count(a->batch) == LEDGER_BATCH ? turn(a, err) : FDS_OK;
    }
    TRY(check_waiting(a, err));
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
        } else if (check_waiting(a, err) == FDS_OK) { /* what came before is wrong first */
            fds__fail(err, status, "%s", why.text);
        }
    }
    db_end(q);
    if (status == FDS_OK)
        status = check_waiting(a, err);
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
    TRY(db_check(l->db, ledger_tables_of(l), err));
    TRY(ledger_log_check_create(l, vkey, &a->log, err));
    TRY(check_entries(a, events, err));
    TRY(ledger_log_check_end(a->log, &a->checkpoints, err));
    TRY(ledger_earnings_check_end(a->earnings, err));
    TRY(check_rows(a, LEDGER_Q_ACCOUNTS, a->state.account_count, check_account_row, err));
    TRY(check_rows(a, LEDGER_Q_RUNS, a->state.run_count, check_run_row, err));
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
               fds__json_put(root, "checkpoints", json_integer((json_int_t)a->checkpoints)) &&
               fds__json_put(root, "vkey", json_string(vkey));
    *report = is_whole ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(kinds);
    json_decref(root);
    return *report ? FDS_OK : fds__fail_json(err);
}

static void free_audit(audit *a) {
    ledger_state_free(&a->state);
    ledger_parts_free(&a->own);
    ledger_log_check_free(a->log);
    ledger_earnings_check_free(a->earnings);
    ledger_batch_free(a->batch);
    ledger_batch_free(a->hashed);
    fds__free(a);
}

fds_status fds_ledger_verify(const fds_ledger *l, const char *vkey, const fds_events *events,
                             char **report, fds_error *err) {
    audit *a;
    vkey = vkey ? vkey : l->vkey;
    TRY(NEW(a, 1, err));
    a->ledger = l;
    a->state.has_debts = l->state.has_debts;
    a->parts = &a->own;
    fds_status status = ledger_earnings_check_create(l, &a->earnings, err);
    if (status == FDS_OK)
        status = ledger_batch_create(&a->state, &l->unit, &a->batch, err);
    if (status == FDS_OK)
        status = ledger_batch_create(&a->state, &l->unit, &a->hashed, err);
    if (status == FDS_OK)
        status = check_all(a, vkey, events, err);
    if (status == FDS_OK && report)
        status = write_report(a, vkey, report, err);
    free_audit(a);
    return status;
}
