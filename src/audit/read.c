/* SPDX-License-Identifier: Apache-2.0
 * Predictions from a ledger: entries as they were paid, and rows of what the bank says about them. */
#include "audit/audit.h"

#include <math.h>

enum { AT_ONCE = 8192 };

/* ---- runs ---- */

static fds_status add_run(fds_auditor *a, const fds_ledger *l, const ledger_run *from,
                          fds_error *err) {
    OWNED const char **names = NULL;
    const audit_validation *v = NULL;
    TRY(NEW(names, from->count, err));
    for (size_t i = 0; i < from->count; i++)
        names[i] = l->state.accounts[from->payees[i]].name;
    for (size_t i = 0; i < a->validation_count; i++)
        if (strcmp(a->validations[i].sha256, from->sha256) == 0)
            v = &a->validations[i];
    const fds_audit_payees payees = {.names = names,
                                     .count = from->count,
                                     .policy = ledger_policy_name(from->policy),
                                     .level = v ? v->level : (double)NAN,
                                     .score = v ? v->scores : NULL,
                                     .scores = v ? v->count : 0};
    return fds_auditor_add_payees(a, &payees, err);
}

static fds_status add_runs(fds_auditor *a, const fds_ledger *l, fds_error *err) {
    while (a->run_count < l->state.run_count)
        TRY(add_run(a, l, l->state.runs[a->run_count], err));
    return FDS_OK;
}

/* ---- one prediction ---- */

/* Numbers of an entry, aligned. */
typedef struct {
    fds_auditor *auditor;
    const fds_ledger *ledger;
    float *values, *errors; /* (capacity) */
    size_t capacity;
    uint64_t rows, most;
} reader;

static fds_status reserve(reader *r, size_t count, fds_error *err) {
    if (count <= r->capacity)
        return FDS_OK;
    fds__free(r->values);
    fds__free(r->errors);
    r->values = r->errors = NULL;
    r->capacity = 0;
    TRY(NEW(r->values, count, err));
    TRY(NEW(r->errors, count, err));
    r->capacity = count;
    return FDS_OK;
}

static fds_status fill(reader *r, const ledger_entry *e, fds_audit_prediction *out,
                       fds_error *err) {
    const ledger_state *s = &r->ledger->state;
    size_t count = e->run < s->run_count ? s->runs[e->run]->count : 0;
    if (!count || e->values.size != count * sizeof(float) || !e->has_amount || !e->label ||
        (e->errors.data && e->errors.size != count * sizeof(uint16_t)))
        return ledger_fail(r->ledger, err, "entry %llu: a column is missing or malformed",
                           (unsigned long long)e->index);
    TRY(reserve(r, count, err));
    memcpy(r->values, e->values.data, e->values.size);
    for (size_t i = 0; e->errors.data && i < count; i++) {
        uint16_t half;
        memcpy(&half, (const char *)e->errors.data + i * sizeof half, sizeof half);
        r->errors[i] = (float)fds__half_to_double(half);
    }
    *out = (fds_audit_prediction){.entry = e->index,
                                  .run = (size_t)e->run,
                                  .customer = e->customer,
                                  .label = e->label,
                                  .amount = e->amount - e->fee,
                                  .values = r->values,
                                  .errors = e->errors.data ? r->errors : NULL,
                                  .score = NAN};
    return FDS_OK;
}

static fds_status name_customer(fds_auditor *a, const fds_ledger *l, fds_error *err) {
    audit_customer *last = a->customer_count ? &a->customers[a->customer_count - 1] : NULL;
    if (!last || last->name)
        return FDS_OK;
    last->name = fds__strdup(fds_ledger_account_name(l, last->account));
    return last->name ? FDS_OK : fds__fail_nomem(err, LEDGER_NAME);
}

/* ---- entries ---- */

/* What a correction that an audit proposed gave to each provider. */
static fds_status take_correction(reader *r, const ledger_entry *e, fds_error *err) {
    const ledger_state *s = &r->ledger->state;
    json_t *root = NULL;
    TRY(fds__json_parse("a correction", e->text ? e->text : "", e->text ? strlen(e->text) : 0,
                        &root, err));
    const char *reason = json_string_value(json_object_get(root, "reason"));
    bool is_ours = reason && strncmp(reason, AUDIT_REASON, strlen(AUDIT_REASON)) == 0;
    json_decref(root);
    if (!is_ours)
        return FDS_OK;
    ledger_parts parts = {0};
    fds_status status = ledger_parts_postings(&parts, e, s, err);
    for (size_t i = 0; status == FDS_OK && i < parts.count; i++) {
        const char *name = s->accounts[parts.postings[i].account].name;
        const json_t *place = json_object_get(r->auditor->provider_of, name);
        if (place)
            r->auditor->providers[json_integer_value(place)].corrected +=
                (double)parts.postings[i].units;
    }
    ledger_parts_free(&parts);
    return status;
}

static fds_status take_entry(reader *r, const ledger_entry *e, fds_error *err) {
    fds_audit_prediction p;
    if (e->index != r->auditor->next_entry)
        return ledger_fail(r->ledger, err, "entry %llu is missing",
                           (unsigned long long)r->auditor->next_entry);
    r->auditor->next_entry++;
    if (e->kind == LEDGER_CORRECTION)
        return take_correction(r, e, err);
    if (e->kind != LEDGER_PREDICTION)
        return FDS_OK;
    TRY(fill(r, e, &p, err));
    TRY(fds_auditor_add(r->auditor, &p, err));
    return name_customer(r->auditor, r->ledger, err);
}

static fds_status take_entries(reader *r, size_t most, bool *is_over, fds_error *err) {
    db_query *q;
    bool has_row = true;
    size_t taken = 0;
    TRY(ledger_query(r->ledger, LEDGER_Q_ENTRIES, &q, err));
    db_bind_int(q, 1, (int64_t)r->auditor->next_entry);
    db_bind_int(q, 2, (int64_t)most);
    fds_status status = FDS_OK;
    for (; status == FDS_OK; taken++) {
        ledger_entry e;
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        status = ledger_entry_read(q, &e, err);
        if (status == FDS_OK)
            status = take_entry(r, &e, err);
    }
    db_end(q);
    *is_over = taken < most;
    return status;
}

/* ---- audited rows ---- */

static fds_status take_row(void *user, const fds_audited *row, fds_error *err) {
    reader *r = user;
    ledger_entry e;
    db_query *q;
    fds_audit_prediction p;
    if (r->rows++ == r->most)
        return FDS_ERR_CANCELLED;
    TRY(ledger_entry_get(r->ledger, row->entry, &e, &q, err));
    fds_status status = fill(r, &e, &p, err);
    if (status == FDS_OK) {
        p.bank = row->values;
        p.bank_errors = row->errors;
        p.score = row->score;
        status = fds_auditor_add(r->auditor, &p, err);
    }
    db_end(q);
    r->auditor->next_row = row->entry + 1;
    return status;
}

static fds_status take_rows(reader *r, size_t most, bool *is_over, fds_error *err) {
    fds_error why = {0};
    r->rows = 0;
    r->most = most;
    fds_status status = fds_ledger_audited(r->ledger, r->auditor->next_row, take_row, r, &why);
    bool is_stopped = status == FDS_ERR_CANCELLED && r->rows > r->most;
    *is_over = *is_over && !is_stopped;
    return status == FDS_OK || is_stopped ? FDS_OK : fds__fail(err, status, "%s", why.text);
}

static void take_names(fds_auditor *a, const fds_ledger *l) {
    a->decimals = l->unit.decimals;
    a->is_private = l->state.privacy.is_on;
    snprintf(a->currency, sizeof a->currency, "%s", l->unit.currency);
    snprintf(a->name, sizeof a->name, "%s", l->path);
}

fds_status fds_auditor_take(fds_auditor *a, const fds_ledger *l, size_t most, bool *is_over,
                            fds_error *err) {
    reader r = {.auditor = a, .ledger = l};
    take_names(a, l);
    fds_status status = add_runs(a, l, err);
    if (status == FDS_OK)
        status = take_entries(&r, most, is_over, err);
    if (status == FDS_OK)
        status = take_rows(&r, most, is_over, err);
    fds__free(r.values);
    fds__free(r.errors);
    return status;
}

/* ---- everything ---- */

static fds_status choose_checks(fds_auditor *a, const char *checks, fds_error *err) {
    const char *names[AUDIT_KINDS + 1] = {NULL};
    char hint[FDS__HINT], word[64];
    memcpy(names, audit_names, sizeof audit_names);
    for (int i = 0; checks && i < AUDIT_KINDS; i++)
        a->checks[i].is_wanted = false;
    for (const char *at = checks; at && *at;) {
        size_t size = strcspn(at, ","), found = AUDIT_KINDS;
        snprintf(word, sizeof word, "%.*s", (int)MIN(size, sizeof word - 1), at);
        for (size_t i = 0; i < AUDIT_KINDS; i++)
            if (strcmp(word, audit_names[i]) == 0)
                found = i;
        if (found == AUDIT_KINDS)
            return fds__fail(err, FDS_ERR_USAGE, "there is no check \"%s\"%s", word,
                             fds__hint(word, names, hint));
        a->checks[found].is_wanted = true;
        at += size + (at[size] == ',');
    }
    return FDS_OK;
}

static fds_status take_all(fds_auditor *a, const fds_ledger *l, const fds_events *events,
                           fds_error *err) {
    double start_s = fds__now_s();
    uint64_t size = fds_ledger_size(l);
    bool is_needed = false;
    for (int i = AUDIT_LEDGER + 1; i < AUDIT_KINDS; i++)
        is_needed |= a->checks[i].is_wanted;
    for (bool is_over = !is_needed; !is_over;) {
        TRY(fds__report(events, "audit", "entries", a->next_entry, size, start_s, err));
        TRY(fds_auditor_take(a, l, AT_ONCE, &is_over, err));
    }
    return fds__report(events, "audit", "entries", size, size, start_s, err);
}

fds_status fds_audit_ledger(const fds_ledger *l, const char *checks, const char *vkey,
                            const fds_params *params, const fds_events *events, char **json,
                            fds_error *err) {
    fds_auditor *a = NULL;
    TRY(fds_auditor_create(params, &a, err));
    fds_status status = choose_checks(a, checks, err);
    if (status == FDS_OK && a->checks[AUDIT_LEDGER].is_wanted)
        status = fds_auditor_verify(a, l, vkey, events, err);
    fds_error why = {0};
    bool is_wrong = a->ledger_fault && *a->ledger_fault;
    if (status == FDS_OK)
        status = take_all(a, l, events, &why);
    if (status != FDS_OK &&
        why.status == status) /* of a ledger that is not right, what can be read */
        status = is_wrong && status != FDS_ERR_CANCELLED ? FDS_OK
                                                         : fds__fail(err, status, "%s", why.text);
    if (status == FDS_OK)
        status = fds_auditor_report(a, json, err);
    fds_auditor_free(a);
    return status;
}
