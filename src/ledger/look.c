/* SPDX-License-Identifier: Apache-2.0
 * Entries, statements and earnings for people: who may see what, and amounts as decimal numbers. */
#include "ledger/ledger.h"

enum { ERRORS_OF = 1024 }; /* newest entries whose errors are summed for earnings */

/* ---- values ---- */

/* Values of a prediction as they are stored; errors are NaN where not known. */
static void read_values(const ledger_entry *e, size_t count, double *values, double *errors) {
    for (size_t i = 0; i < count; i++) {
        float value;
        uint16_t half;
        memcpy(&value, (const char *)e->values.data + i * sizeof value, sizeof value);
        values[i] = (double)value;
        errors[i] = NAN;
        if (!e->errors.data)
            continue;
        memcpy(&half, (const char *)e->errors.data + i * sizeof half, sizeof half);
        errors[i] = fds__half_to_double(half);
        if (!isfinite(errors[i]))
            errors[i] = NAN;
    }
}

/* Standard errors of the shares in units: (payees), to be freed. */
static fds_status share_errors(const fds_ledger *l, const ledger_entry *e, double **out,
                               fds_error *err) {
    size_t count = l->state.runs[e->run]->count;
    fds__pay_rule rule;
    OWNED double *values = NULL;
    TRY(NEW(values, 3 * count, err));
    if (!ledger_rule_find(e->rule, &rule))
        return ledger_fail(l, err, "entry %llu: its rule is unknown", (unsigned long long)e->index);
    read_values(e, count, values, values + count);
    fds__pay_errors(values, values + count, count, e->amount - e->fee, rule, values + 2 * count);
    TRY(NEW(*out, count, err));
    memcpy(*out, values + 2 * count, count * sizeof **out);
    return FDS_OK;
}

/* ---- one entry as JSON ---- */

typedef struct {
    const fds_ledger *ledger;
    const ledger_entry *entry;
    const ledger_parts *parts;
    uint64_t viewer;
    bool is_all;     /* the viewer sees everything */
    bool has_answer; /* the kept answer is shown */
    bool is_party;   /* the viewer has a posting */
    bool is_hidden;  /* a prediction, of which the viewer sees nothing: the ledger is private */
} view;

static bool put_bytes(json_t *root, const char *name, fds__bytes bytes) {
    OWNED char *text = bytes.data ? fds__alloc((bytes.size + 2) / 3 * 4 + 1) : NULL;
    if (!bytes.data)
        return true;
    if (!text)
        return false;
    log_base64_encode(bytes.data, bytes.size, text);
    return fds__json_put(root, name, json_string(text));
}

static bool put_hex(json_t *root, const char *name, const void *data) {
    char hex[65];
    ledger_hex(data, 32, hex);
    return fds__json_put(root, name, json_string(hex));
}

/* What everybody can read in the log, and the leaf's hash. */
static bool put_public(json_t *root, const view *v) {
    const ledger_entry *e = v->entry;
    char time[LEDGER_TIME];
    bool ok = fds__json_put(root, "index", json_integer((json_int_t)e->index)) &&
              fds__json_put(root, "kind", json_string(ledger_entry_kinds[e->kind])) &&
              fds__json_put(root, "at", json_string(ledger_time_text(e->at_ms, time)));
    if (e->run < v->ledger->state.run_count)
        ok = ok && fds__json_put(root, "run", json_string(v->ledger->state.runs[e->run]->sha256));
    if (!v->is_hidden &&
        (e->kind == LEDGER_PREDICTION || (e->has_amount && (v->is_all || v->is_party))))
        ok = ok && fds__json_put(root, "amount", json_integer(e->amount)) &&
             fds__json_put(root, "fee", json_integer(e->fee));
    if (e->label && !v->is_hidden)
        ok = ok && fds__json_put(root, "label", json_string(e->label)) &&
             fds__json_put(root, "rule", json_string(e->rule ? e->rule : ""));
    if (e->ref != LEDGER_NONE)
        ok = ok && fds__json_put(root, "ref", json_integer((json_int_t)e->ref));
    return ok && put_hex(root, "leaf", e->leaf.bytes);
}

/* What only the customer, or the account that was paid, may see. */
static bool put_owned(json_t *root, const view *v) {
    const ledger_entry *e = v->entry;
    const ledger_state *s = &v->ledger->state;
    bool ok = true;
    if (e->customer != LEDGER_CASH && e->customer < s->account_count)
        ok = fds__json_put(root, e->kind == LEDGER_PAYOUT ? "account" : "customer",
                           json_string(s->accounts[e->customer].name));
    if (!isnan(e->confidence))
        ok = ok && fds__json_put(root, "confidence", json_real(e->confidence));
    if (e->key)
        ok = ok && fds__json_put(root, "key", json_string(e->key));
    if (e->fingerprint.size == 32)
        ok = ok && put_hex(root, "fingerprint", e->fingerprint.data);
    if (e->input.size == 32)
        ok = ok && put_hex(root, "input", e->input.data);
    return ok && (!v->has_answer || put_bytes(root, "answer_base64", e->answer));
}

static json_t *posting_json(const view *v, size_t i, const double *values, const double *errors,
                            const double *unit_errors) {
    const fds_posting *p = &v->parts->postings[i];
    size_t payees = v->entry->kind == LEDGER_PREDICTION ? v->parts->count - 2 : 0;
    json_t *root = json_object();
    bool ok =
        fds__json_put(root, "account", json_string(v->ledger->state.accounts[p->account].name)) &&
        fds__json_put(root, "units", json_integer(p->units));
    if (i >= 1 && i <= payees)
        ok = ok && fds__json_put(root, "value", fds__json_real(values[i - 1])) &&
             fds__json_put(root, "error", fds__json_real(errors[i - 1])) &&
             fds__json_put(root, "unit_error", fds__json_real(unit_errors[i - 1]));
    return fds__json_keep_if(root, ok);
}

static fds_status put_postings(json_t *root, const view *v, fds_error *err) {
    OWNED double *values = NULL;
    OWNED double *unit_errors = NULL;
    const ledger_entry *e = v->entry;
    size_t payees = 0;
    if (e->kind == LEDGER_PREDICTION) {
        payees = v->ledger->state.runs[e->run]->count;
        TRY(NEW(values, 2 * payees, err));
        read_values(e, payees, values, values + payees);
        TRY(share_errors(v->ledger, e, &unit_errors, err));
        if (v->parts->count != payees + 2)
            return ledger_fail(v->ledger, err, "entry %llu: its postings are malformed",
                               (unsigned long long)e->index);
    }
    json_t *list = json_array();
    bool ok = fds__json_share(root, "postings", list);
    for (size_t i = 0; ok && i < v->parts->count; i++)
        if (v->is_all || (v->parts->postings[i].account == v->viewer && !v->is_hidden &&
                          !ledger_is_earned(e->kind, i, v->parts->count)))
            ok = fds__json_append(
                list, posting_json(v, i, values, values ? values + payees : NULL, unit_errors));
    json_decref(list);
    return ok ? FDS_OK : fds__fail_json(err);
}

static fds_status make_json(const view *v, json_t *root, fds_error *err) {
    const ledger_entry *e = v->entry;
    bool ok = put_public(root, v);
    if (v->is_all || e->customer == v->viewer)
        ok = ok && put_owned(root, v);
    if (e->text && (v->is_all || v->is_party)) {
        json_t *text;
        TRY(fds__json_parse("entry", e->text, strlen(e->text), &text, err));
        if (!v->is_all) { /* who did it concerns the platform's own people */
            json_object_del(text, "operators");
            json_object_del(text, "proposal");
        }
        ok = ok && fds__json_put(root, "text", text);
    }
    return ok ? put_postings(root, v, err) : fds__fail_json(err);
}

fds_status ledger_entry_json(const fds_ledger *l, uint64_t index, uint64_t viewer, bool has_answer,
                             json_t **out, fds_error *err) {
    ledger_entry e;
    ledger_parts parts = {0};
    db_query *row;
    TRY(ledger_entry_get(l, index, &e, &row, err));
    view v = {.ledger = l,
              .entry = &e,
              .parts = &parts,
              .viewer = viewer,
              .is_all = viewer == LEDGER_NONE,
              .has_answer = has_answer};
    v.is_hidden =
        e.kind == LEDGER_PREDICTION && l->state.privacy.is_on && !v.is_all && e.customer != viewer;
    json_t *root = json_object();
    fds_status status = ledger_parts_postings(&parts, &e, &l->state, err);
    for (size_t i = 0; status == FDS_OK && i < parts.count; i++)
        v.is_party |= parts.postings[i].account == viewer;
    if (status == FDS_OK)
        status = make_json(&v, root, err);
    db_end(row);
    ledger_parts_free(&parts);
    *out = fds__json_keep_if(root, status == FDS_OK);
    return status;
}

fds_status fds_ledger_entry(const fds_ledger *l, uint64_t index, uint64_t viewer, char **json,
                            fds_error *err) {
    json_t *root;
    if (viewer != LEDGER_NONE)
        TRY(ledger_check_account(l, viewer, err));
    TRY(ledger_entry_json(l, index, viewer, true, &root, err));
    *json = fds__json_text(root, JSON_COMPACT);
    json_decref(root);
    return *json ? FDS_OK : fds__fail_json(err);
}

/* ---- statements ---- */

typedef struct {
    const fds_ledger *ledger;
    uint64_t account;
    int64_t from, to; /* days, both included */
    int64_t balance;
    fds__text out;
    fds_posting *postings;
    size_t capacity;
} statement;

static void add_money(fds__text *out, int64_t units, int decimals) {
    char money[32];
    fds_money_text(units, decimals, money);
    fds__text_add(out, money, strlen(money));
}

static fds_status add_line(statement *s, const ledger_entry *e, size_t posting, int64_t units,
                           fds_error *err) {
    OWNED double *errors = NULL;
    char time[LEDGER_TIME];
    int decimals = s->ledger->unit.decimals;
    fds__text_print(&s->out, "%s,%llu,%s,", ledger_time_text(e->at_ms, time),
                    (unsigned long long)e->index, ledger_entry_kinds[e->kind]);
    fds__text_csv(&s->out, e->label ? e->label : "");
    fds__text_add(&s->out, ",", 1);
    add_money(&s->out, units, decimals);
    fds__text_add(&s->out, ",", 1);
    if (e->kind == LEDGER_PREDICTION && posting >= 1 &&
        posting <= s->ledger->state.runs[e->run]->count) {
        TRY(share_errors(s->ledger, e, &errors, err));
        if (isfinite(errors[posting - 1]))
            fds__text_fixed(&s->out, decimals, errors[posting - 1] / fds__money_scale(decimals));
    }
    fds__text_add(&s->out, ",", 1);
    add_money(&s->out, s->balance, decimals);
    fds__text_add(&s->out, "\n", 1);
    return fds__text_check(&s->out, err);
}

static fds_status state_entry(statement *s, const ledger_entry *e, fds_error *err) {
    size_t count;
    int64_t day = e->at_ms / LEDGER_DAY_MS;
    TRY(ledger_postings_decode(e, s->ledger->state.account_count, &s->postings, &s->capacity,
                               &count, err));
    for (size_t i = 0; i < count; i++) {
        int64_t units = s->postings[i].units;
        if (s->postings[i].account != s->account || units == 0)
            continue;
        if (ledger_is_hidden(s->ledger, s->account) &&
            (e->kind == LEDGER_PREDICTION || ledger_is_earned(e->kind, i, count)))
            continue;
        if (__builtin_add_overflow(s->balance, units, &s->balance))
            return ledger_fail(s->ledger, err, "entry %llu: its balance is too large",
                               (unsigned long long)e->index);
        if (e->kind == LEDGER_PREDICTION && e->run >= s->ledger->state.run_count)
            return ledger_fail(s->ledger, err, "entry %llu: its run is missing",
                               (unsigned long long)e->index);
        if (day >= s->from && day <= s->to)
            TRY(add_line(s, e, i, units, err));
    }
    return FDS_OK;
}

static fds_status write_out(statement *s, fds_write_function write, void *user, fds_error *err) {
    if (s->out.used && !write(user, s->out.data, s->out.used))
        return fds__fail(err, FDS_ERR_IO, "the statement cannot be written");
    s->out.used = 0;
    return FDS_OK;
}

static fds_status read_day(const char *name, const char *text, int64_t *day, fds_error *err) {
    if (!text || ledger_day_read(text, day))
        return FDS_OK;
    return fds__fail(err, FDS_ERR_USAGE, "`%s` must be a day such as 2026-11-17 (got %.60s)", name,
                     text);
}

static fds_status state_entries(statement *s, fds_ledger_cursor *at, size_t most, fds_error *err) {
    db_query *q;
    bool has_row = true;
    uint64_t end = at->next + most;
    TRY(ledger_query(s->ledger, LEDGER_Q_ENTRIES, &q, err));
    db_bind_int(q, 1, (int64_t)at->next);
    db_bind_int(q, 2, (int64_t)most);
    fds_status status = FDS_OK;
    while (status == FDS_OK) {
        ledger_entry e;
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        status = ledger_entry_read(q, &e, err);
        if (status == FDS_OK && e.index != at->next)
            status =
                ledger_fail(s->ledger, err, "entry %llu is missing", (unsigned long long)at->next);
        if (status == FDS_OK)
            status = state_entry(s, &e, err);
        at->next++;
    }
    db_end(q);
    at->balance = s->balance;
    at->is_over = at->next < end;
    return status;
}

fds_status fds_ledger_statement_part(const fds_ledger *l, uint64_t account, const char *from,
                                     const char *to, fds_ledger_cursor *at, size_t most,
                                     fds_write_function write, void *user, fds_error *err) {
    statement s = {.ledger = l,
                   .account = account,
                   .from = INT64_MIN,
                   .to = INT64_MAX,
                   .balance = at->balance};
    TRY(ledger_check_account(l, account, err));
    TRY(read_day("from", from, &s.from, err));
    TRY(read_day("to", to, &s.to, err));
    if (at->next == 0)
        fds__text_print(&s.out, "date,entry,kind,label,amount,standard_error,balance\n");
    fds__text_add(&s.out, "", 0); /* a part may have no lines */
    fds_status status = state_entries(&s, at, most, err);
    if (status == FDS_OK)
        status = fds__text_check(&s.out, err);
    if (status == FDS_OK)
        status = write_out(&s, write, user, err);
    fds__free(s.out.data);
    fds__free(s.postings);
    return status;
}

fds_status fds_ledger_statement(const fds_ledger *l, uint64_t account, const char *from,
                                const char *to, fds_write_function write, void *user,
                                fds_error *err) {
    fds_ledger_cursor at = {0};
    while (!at.is_over)
        TRY(fds_ledger_statement_part(l, account, from, to, &at, LEDGER_SCAN, write, user, err));
    return FDS_OK;
}

/* ---- earnings ---- */

/* The error of what the newest entries have paid an account, by day and label. Predictions share the
 * errors of their run, so errors add up, as in fds pay. */
typedef struct {
    int64_t day;
    char label[LEDGER_NAME + 1];
    double error; /* units; NaN: one is not known */
} spread;

typedef struct {
    const fds_ledger *ledger;
    uint64_t account;
    spread *items;
    size_t count, capacity;
    int64_t from; /* all entries of this day and later ones are in it */
    fds_posting *postings;
    size_t posting_capacity;
} spreads;

static fds_status find_spread(spreads *s, int64_t day, const char *label, spread **out,
                              fds_error *err) {
    for (size_t i = s->count; i-- > 0;)
        if (s->items[i].day == day && strcmp(s->items[i].label, label) == 0) {
            *out = &s->items[i];
            return FDS_OK;
        }
    void *items = s->items;
    fds_status status = fds__grow(&items, &s->capacity, s->count + 1, sizeof *s->items, err);
    s->items = items;
    TRY(status);
    *out = &s->items[s->count++];
    **out = (spread){.day = day};
    snprintf((*out)->label, sizeof(*out)->label, "%s", label);
    return FDS_OK;
}

static fds_status spread_entry(spreads *s, const ledger_entry *e, fds_error *err) {
    OWNED double *errors = NULL;
    size_t count;
    if (e->kind != LEDGER_PREDICTION || !e->label || e->run >= s->ledger->state.run_count)
        return FDS_OK;
    TRY(ledger_postings_decode(e, s->ledger->state.account_count, &s->postings,
                               &s->posting_capacity, &count, err));
    size_t payees = s->ledger->state.runs[e->run]->count;
    for (size_t i = 1; i <= payees && i < count; i++) {
        spread *sum;
        if (s->postings[i].account != s->account || s->postings[i].units == 0)
            continue;
        TRY(share_errors(s->ledger, e, &errors, err));
        TRY(find_spread(s, e->at_ms / LEDGER_DAY_MS, e->label, &sum, err));
        sum->error += errors[i - 1];
        break; /* a payee stands once in a run */
    }
    return FDS_OK;
}

/* Of the newest entries, as many as one call may look at. */
static fds_status spread_entries(spreads *s, fds_error *err) {
    db_query *q;
    uint64_t size = s->ledger->state.size, first = size > ERRORS_OF ? size - ERRORS_OF : 0;
    bool has_row = true;
    TRY(ledger_query(s->ledger, LEDGER_Q_ENTRIES, &q, err));
    db_bind_int(q, 1, (int64_t)first);
    db_bind_int(q, 2, ERRORS_OF);
    fds_status status = FDS_OK;
    s->from = INT64_MAX;
    while (status == FDS_OK) {
        ledger_entry e;
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        status = ledger_entry_read(q, &e, err);
        if (status == FDS_OK && s->from == INT64_MAX) /* the first day may have begun before */
            s->from = e.at_ms / LEDGER_DAY_MS + (first > 0);
        if (status == FDS_OK)
            status = spread_entry(s, &e, err);
    }
    db_end(q);
    return status;
}

/* Standard error of what an account has earned by a label on a day; NaN: not known. */
static double error_of(const spreads *s, int64_t day, const char *label) {
    for (size_t i = 0; day >= s->from && i < s->count; i++)
        if (s->items[i].day == day && strcmp(s->items[i].label, label) == 0)
            return s->items[i].error;
    return NAN;
}

static fds_status add_earnings(db_query *q, const spreads *s, json_t *list, fds_error *err) {
    bool has_row;
    for (;;) {
        char day[LEDGER_TIME];
        TRY(db_next(q, &has_row, err));
        if (!has_row)
            return FDS_OK;
        json_t *root = json_object();
        const char *label = db_text(q, 1, NULL);
        bool ok = fds__json_put(root, "day", json_string(ledger_day_text(db_int(q, 0), day))) &&
                  fds__json_put(root, "label", fds__json_string(label)) &&
                  fds__json_put(root, "units", json_integer(db_int(q, 2))) &&
                  fds__json_put(root, "count", json_integer(db_int(q, 3))) &&
                  fds__json_put(root, "error",
                                fds__json_real(error_of(s, db_int(q, 0), label ? label : "")));
        if (!fds__json_append(list, fds__json_keep_if(root, ok)))
            return fds__fail_json(err);
    }
}

static fds_status list_earnings(const spreads *s, json_t *list, fds_error *err) {
    db_query *q;
    TRY(ledger_query(s->ledger, LEDGER_Q_EARNINGS, &q, err));
    db_bind_int(q, 1, (int64_t)s->account);
    fds_status status = add_earnings(q, s, list, err);
    db_end(q);
    return status;
}

/* Of a private ledger: the statements, the oldest first. */
typedef struct {
    json_t *list;
    double deviation;
} released;

static fds_status add_released(void *user, const char *period, const char *last, int64_t units,
                               uint64_t entry, fds_error *err) {
    released *r = user;
    json_t *root = json_object();
    (void)entry;
    bool ok = fds__json_put(root, "day", json_string(last)) &&
              fds__json_put(root, "period", json_string(period)) &&
              fds__json_put(root, "label", json_string("")) &&
              fds__json_put(root, "units", json_integer(units)) &&
              fds__json_put(root, "count", json_integer(0)) &&
              fds__json_put(root, "error", fds__json_real(r->deviation));
    return json_array_insert_new(r->list, 0, fds__json_keep_if(root, ok)) == 0
               ? FDS_OK
               : fds__fail_json(err);
}

static fds_status list_released(const spreads *s, json_t *list, fds_error *err) {
    fds_ledger_privacy privacy;
    fds_ledger_privacy_of(s->ledger, &privacy);
    released r = {list, privacy.deviation};
    return fds_ledger_released_statements(s->ledger, s->account, NULL, add_released, &r, err);
}

fds_status fds_ledger_earnings(const fds_ledger *l, uint64_t account, char **json, fds_error *err) {
    spreads s = {.ledger = l, .account = account};
    TRY(ledger_check_account(l, account, err));
    bool is_hidden = ledger_is_hidden(l, account);
    fds_status status = is_hidden ? FDS_OK : spread_entries(&s, err);
    json_t *root = json_object(), *list = json_array();
    if (status == FDS_OK && !fds__json_share(root, "earnings", list))
        status = fds__fail_json(err);
    if (status == FDS_OK)
        status = is_hidden ? list_released(&s, list, err) : list_earnings(&s, list, err);
    char *text = status == FDS_OK ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(list);
    json_decref(root);
    fds__free(s.items);
    fds__free(s.postings);
    if (status == FDS_OK && !text)
        status = fds__fail_json(err);
    if (status == FDS_OK)
        *json = text;
    return status;
}
