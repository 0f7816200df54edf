/* SPDX-License-Identifier: Apache-2.0
 *
 * Statements with noise. All providers' statements of a period are drawn at once, and once: the charge
 * is an entry that is on the disk before the first random bit, the statements are an entry, and both
 * have keys by which there is only one of each. A process that dies between the two leaves a charge
 * without statements; the next call draws them for that charge. What it had drawn was seen by nobody.
 *
 * The sums to which noise is added must change by no more than the price when one prediction does.
 * Shares of the ledger do not have that property: what rounding leaves is carried from one prediction to
 * the next. So each prediction is divided here by itself, in 2^-16 units rounded down. */
#include "ledger/ledger.h"

enum { REPORT_EVERY = 256 };

/* ---- sums ---- */

typedef struct {
    const fds_ledger *ledger;
    int64_t *sums;
    uint64_t *counted; /* (accounts) predictions of a customer so far */
    /* scratch (payees) */
    double *values;
    int64_t *weights, *shares;
    fds__fixed *parts;
    size_t capacity;
} summing;

static fds_status reserve(summing *s, size_t count, fds_error *err) {
    if (count <= s->capacity)
        return FDS_OK;
    fds__free(s->values);
    fds__free(s->weights);
    fds__free(s->shares);
    fds__free(s->parts);
    s->values = NULL;
    s->weights = s->shares = NULL;
    s->parts = NULL;
    s->capacity = 0;
    TRY(NEW(s->values, count, err));
    TRY(NEW(s->weights, count, err));
    TRY(NEW(s->shares, count, err));
    TRY(NEW(s->parts, count, err));
    s->capacity = count;
    return FDS_OK;
}

static fds_status add_shares(summing *s, const ledger_entry *e, const ledger_run *run,
                             fds_error *err) {
    size_t left;
    fds__pay_rule rule;
    TRY(reserve(s, run->count, err));
    for (size_t i = 0; i < run->count; i++) {
        float value;
        memcpy(&value, (const char *)e->values.data + i * sizeof value, sizeof value);
        s->values[i] = (double)value;
    }
    TRY(fds__divide(s->values, run->count, e->amount - e->fee, FDS__POLICY_CLIP, s->weights,
                    s->shares, s->parts, &left, &rule, err));
    for (size_t i = 0; i < run->count; i++) {
        fds__fixed share =
            ((fds__fixed)s->shares[i] << LEDGER_GRID) + (s->parts[i] >> (64 - LEDGER_GRID));
        int64_t *sum = &s->sums[run->payees[i]];
        if (share > INT64_MAX || __builtin_add_overflow(*sum, (int64_t)share, sum))
            return fds__fail(err, FDS_ERR_LIMIT, "the statement of %.200s is too large",
                             s->ledger->state.accounts[run->payees[i]].name);
    }
    return FDS_OK;
}

/* Whether a prediction counts depends on it and on the same customer's earlier ones alone. */
static fds_status count_entry(summing *s, const ledger_entry *e, fds_error *err) {
    const ledger_state *state = &s->ledger->state;
    const ledger_privacy *p = &state->privacy;
    ledger_parts parts = {0};
    if (e->kind != LEDGER_PREDICTION)
        return FDS_OK;
    fds_status status =
        ledger_parts_postings(&parts, e, state, err); /* that its columns are right */
    ledger_parts_free(&parts);
    TRY(status);
    if (e->amount > p->price_limit || e->fee < 0 || e->fee > e->amount)
        return FDS_OK;
    if (p->per_customer && s->counted[e->customer]++ >= p->per_customer)
        return FDS_OK;
    return add_shares(s, e, state->runs[e->run], err);
}

static fds_status sum_rows(summing *s, db_query *q, uint64_t total, const fds_events *events,
                           fds_error *err) {
    double start_s = fds__now_s();
    for (uint64_t done = 0;; done++) {
        ledger_entry e;
        bool has_row;
        if (done % REPORT_EVERY == 0)
            TRY(fds__report(events, "sum", "entries", done, total, start_s, err));
        TRY(db_next(q, &has_row, err));
        if (!has_row)
            return done == total ? FDS_OK : ledger_fail(s->ledger, err, "an entry is missing");
        TRY(ledger_entry_read(q, &e, err));
        TRY(count_entry(s, &e, err));
    }
}

static fds_status sum_between(summing *s, int64_t from, int64_t to, const fds_events *events,
                              fds_error *err) {
    db_query *q;
    uint64_t first, end;
    TRY(NEW(s->counted, s->ledger->state.account_count, err));
    TRY(ledger_first_at(s->ledger, from * LEDGER_DAY_MS, &first, err));
    TRY(ledger_first_at(s->ledger, (to + 1) * LEDGER_DAY_MS, &end, err));
    TRY(ledger_query(s->ledger, LEDGER_Q_ENTRIES, &q, err));
    db_bind_int(q, 1, (int64_t)first);
    db_bind_int(q, 2, (int64_t)(end - first));
    fds_status status = sum_rows(s, q, end - first, events, err);
    db_end(q);
    return status;
}

fds_status ledger_private_sums(const fds_ledger *l, int64_t from, int64_t to,
                               const fds_events *events, int64_t *sums, fds_error *err) {
    summing s = {.ledger = l, .sums = sums};
    memset(sums, 0, l->state.account_count * sizeof *sums);
    fds_status status = sum_between(&s, from, to, events, err);
    fds__free(s.counted);
    fds__free(s.values);
    fds__free(s.weights);
    fds__free(s.shares);
    fds__free(s.parts);
    return status;
}

/* ---- noise ---- */

fds_status ledger_private_draw(const ledger_privacy *p, const fds__bits *bits, const int64_t *sums,
                               size_t count, int64_t *statements, fds_error *err) {
    fds__dp_noise noise = ledger_noise(p);
    TRY(fds__dp_add(&noise, bits, sums, statements, count, err));
    /* to whole units: nothing is learnt from rounding what has its noise */
    for (size_t i = 0; i < count; i++) {
        int64_t rest = statements[i] & ((INT64_C(1) << LEDGER_GRID) - 1);
        statements[i] =
            (statements[i] - rest) / (INT64_C(1) << LEDGER_GRID) + (rest >> (LEDGER_GRID - 1));
    }
    return FDS_OK;
}

/* ---- entries ---- */

typedef struct {
    const char *period;
    int64_t from, to;
    char key[64], from_text[LEDGER_TIME], to_text[LEDGER_TIME];
} release;

static void name_entry(release *r, const char *what) {
    snprintf(r->key, sizeof r->key, LEDGER_OWN_KEY " %s %.20s", what, r->period);
}

static fds_status add_entry(fds_ledger *l, ledger_entry *e, const release *r, json_t *root,
                            const fds_posting *postings, size_t count, fds_error *err) {
    uint8_t fingerprint[32];
    OWNED char *text = root ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!text)
        return fds__fail_json(err);
    fds__sha256(&(fds__bytes){text, strlen(text)}, 1, fingerprint);
    e->customer = LEDGER_CASH; /* whose key it is */
    e->text = text;
    e->key = r->key;
    e->fingerprint = (fds__bytes){fingerprint, sizeof fingerprint};
    TRY(ledger_add(l, e, postings, count, err));
    fds_status status = ledger_privacy_take(&l->state, e, err);
    e->text = e->key = NULL;
    e->fingerprint = (fds__bytes){0};
    return status;
}

static fds_status add_spend(fds_ledger *l, release *r, fds_error *err) {
    const ledger_privacy *p = &l->state.privacy;
    ledger_entry e = LEDGER_ENTRY(LEDGER_PRIVACY);
    name_entry(r, "spend");
    json_t *root = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:f}", "privacy", "spend", "period",
                             r->period, "from", r->from_text, "to", r->to_text, "mechanism",
                             fds__mechanism_name(p->mechanism), "cost_nano",
                             (json_int_t)p->cost_nano, "delta", p->delta);
    return add_entry(l, &e, r, root, NULL, 0, err);
}

/* For all k providers: what each has earned, taken back; its statement; the reserve. */
static fds_status make_postings(const fds_ledger *l, const uint64_t *providers, size_t count,
                                const int64_t *earned, const int64_t *statements,
                                fds_posting *postings, fds_error *err) {
    int64_t difference = 0;
    for (size_t i = 0; i < count; i++) {
        postings[i] = (fds_posting){providers[i], -earned[providers[i]]};
        postings[count + i] = (fds_posting){providers[i], statements[i]};
        if (__builtin_add_overflow(difference, earned[providers[i]], &difference) ||
            __builtin_sub_overflow(difference, statements[i], &difference))
            return fds__fail(err, FDS_ERR_LIMIT, "the statements of a period are too large");
    }
    postings[2 * count] = (fds_posting){l->state.privacy.reserve, difference};
    return FDS_OK;
}

static fds_status add_release(fds_ledger *l, release *r, const fds_posting *postings, size_t count,
                              uint64_t *index, fds_error *err) {
    ledger_entry e = LEDGER_ENTRY(LEDGER_RELEASE);
    e.ref = l->state.privacy.spend;
    name_entry(r, "release");
    json_t *root = json_pack("{s:s, s:s, s:s, s:s}", "privacy", "release", "period", r->period,
                             "from", r->from_text, "to", r->to_text);
    TRY(add_entry(l, &e, r, root, postings, count, err));
    *index = e.index;
    return FDS_OK;
}

/* Sums, draws and enters the statements of what is paid for. */
static fds_status draw(fds_ledger *l, release *r, const fds_events *events, uint64_t *index,
                       fds_error *err) {
    size_t accounts = l->state.account_count, count = 0;
    OWNED int64_t *sums = NULL, *earned = NULL;
    OWNED uint64_t *providers = NULL;
    OWNED fds_posting *postings = NULL;
    TRY(NEW(sums, accounts, err));
    TRY(NEW(earned, accounts, err));
    TRY(NEW(providers, accounts, err));
    TRY(NEW(postings, 2 * accounts + 1, err));
    TRY(ledger_private_sums(l, r->from, r->to, events, sums, err));
    TRY(ledger_earned_between(l, r->from, r->to, earned, err));
    for (size_t i = 0; i < accounts; i++)
        if (l->state.accounts[i].kind == FDS_ACCOUNT_PROVIDER) {
            sums[count] = sums[i];
            providers[count++] = i;
        }
    TRY(ledger_private_draw(&l->state.privacy, l->bits, sums, count, sums, err));
    TRY(make_postings(l, providers, count, earned, sums, postings, err));
    TRY(ledger_begin(l, err));
    return ledger_end(l, add_release(l, r, postings, 2 * count + 1, index, err), err);
}

/* The period must be over, and after all that was released. */
static fds_status check_period(const fds_ledger *l, const release *r, fds_error *err) {
    const ledger_privacy *p = &l->state.privacy;
    char day[LEDGER_TIME];
    fds__dp_noise noise = ledger_noise(p);
    if (r->to <= p->released)
        return fds__fail(err, FDS_ERR_CONFLICT,
                         "predictions up to %s are released already, in another period, or are "
                         "older than the ledger's privacy",
                         ledger_day_text(p->released, day));
    if ((r->to + 1) * LEDGER_DAY_MS > MAX(l->now_ms(), l->state.at_ms))
        return fds__fail(err, FDS_ERR_USAGE,
                         "the period %s is not over: statements are drawn once, when nothing can "
                         "be added to it",
                         r->period);
    if (p->is_spent && p->spent_to != r->to)
        return fds__fail(err, FDS_ERR_CONFLICT,
                         "another period is paid for and not released: release the one up to %s "
                         "first",
                         ledger_day_text(p->spent_to, day));
    return fds__dp_draw(&noise, l->bits, NULL, 0, err); /* before it is paid for */
}

fds_status fds_ledger_release(fds_ledger *l, const char *period, const fds_events *events,
                              uint64_t *index, fds_error *err) {
    release r = {.period = period};
    uint64_t number = LEDGER_NONE;
    TRY(ledger_settle(l, err));
    const ledger_privacy *p = &l->state.privacy;
    if (!p->is_on)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s is not private: fds privacy on makes a ledger private before its "
                         "first prediction",
                         l->path);
    TRY(ledger_period_read(p, period, &r.from, &r.to, err));
    name_entry(&r, "release");
    fds_status status = fds_ledger_find_key(l, LEDGER_CASH, r.key, &number, err);
    if (status == FDS_ERR_NOT_FOUND) {
        r.from = p->released + 1;
        TRY(check_period(l, &r, err));
        ledger_day_text(r.from, r.from_text);
        ledger_day_text(r.to, r.to_text);
        if (!p->is_spent) {
            TRY(ledger_begin(l, err));
            TRY(ledger_end(l, add_spend(l, &r, err), err));
        }
        status = draw(l, &r, events, &number, err);
    }
    TRY(status);
    if (index)
        *index = number;
    return FDS_OK;
}

/* ---- reading ---- */

typedef struct {
    const fds_ledger *ledger;
    uint64_t account;
    const char *period; /* NULL: any */
    fds_ledger_release_function take;
    void *user;
    bool is_found;
} reading;

static fds_status read_release(void *context, const ledger_entry *e, bool *is_over,
                               fds_error *err) {
    reading *r = context;
    ledger_parts parts = {0};
    json_t *root = NULL;
    TRY(fds__json_parse("entry", e->text ? e->text : "", e->text ? strlen(e->text) : 0, &root,
                        err));
    const char *period = json_string_value(json_object_get(root, "period")),
               *to = json_string_value(json_object_get(root, "to"));
    fds_status status = ledger_parts_postings(&parts, e, &r->ledger->state, err);
    bool is_wanted = period && to && (!r->period || strcmp(period, r->period) == 0);
    for (size_t i = parts.count / 2; status == FDS_OK && is_wanted && i + 1 < parts.count; i++)
        if (parts.postings[i].account == r->account) {
            r->is_found = true;
            status = r->take(r->user, period, to, parts.postings[i].units, e->index, err);
        }
    *is_over = r->period && is_wanted;
    ledger_parts_free(&parts);
    json_decref(root);
    return status;
}

fds_status fds_ledger_released_statements(const fds_ledger *l, uint64_t account, const char *period,
                                          fds_ledger_release_function take, void *user,
                                          fds_error *err) {
    reading r = {.ledger = l, .account = account, .period = period, .take = take, .user = user};
    TRY(ledger_check_account(l, account, err));
    TRY(ledger_releases(l, read_release, &r, err));
    if (period && !r.is_found)
        return fds__fail(err, FDS_ERR_NOT_FOUND, "%s has no released statement of %.200s for %.20s",
                         l->path, l->state.accounts[account].name, period);
    return FDS_OK;
}
