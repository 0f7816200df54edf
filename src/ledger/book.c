/* SPDX-License-Identifier: Apache-2.0
 * New entries of predictions that are paid for. */
#include "ledger/ledger.h"

/* ---- keys ---- */

static fds_status read_first(const fds_ledger *l, const db_query *row, ledger_entry_kind kind,
                             const uint8_t fingerprint[32], ledger_first_use *out, fds_error *err) {
    ledger_entry e;
    TRY(ledger_entry_read(row, &e, err));
    if (e.kind != kind || e.fingerprint.size != 32 ||
        memcmp(e.fingerprint.data, fingerprint, 32) != 0)
        return fds__fail(
            err, FDS_ERR_CONFLICT,
            "the key \"%.100s\" of %.100s stands for another request: entry %llu, a %s", e.key,
            l->state.accounts[e.customer].name, (unsigned long long)e.index,
            ledger_entry_kinds[e.kind]);
    *out = (ledger_first_use){.is_found = true, .index = e.index, .run = e.run, .amount = e.amount};
    if (!e.answer.data)
        return FDS_OK;
    out->answer = fds__alloc(e.answer.size + 1);
    if (!out->answer)
        return fds__fail_nomem(err, e.answer.size);
    memcpy(out->answer, e.answer.data, e.answer.size);
    ((char *)out->answer)[e.answer.size] = 0; /* for those who take it for a text */
    out->answer_size = e.answer.size;
    return FDS_OK;
}

fds_status ledger_look_up(const fds_ledger *l, ledger_entry_kind kind, uint64_t owner,
                          const char *key, const uint8_t fingerprint[32], ledger_first_use *out,
                          fds_error *err) {
    db_query *q;
    bool has_row;
    *out = (ledger_first_use){0};
    if (!key)
        return FDS_OK;
    TRY(ledger_check_word("a key", key, LEDGER_KEY, err));
    fds_status status = ledger_query(l, LEDGER_Q_KEY, &q, err);
    if (status == FDS_OK) {
        db_bind_int(q, 1, (int64_t)owner);
        db_bind_text(q, 2, key);
        status = db_next(q, &has_row, err);
    }
    if (status == FDS_ERR_CONFLICT) /* another writer: it says nothing of the key */
        status = FDS_ERR_IO;
    TRY(status);
    if (has_row)
        status = read_first(l, q, kind, fingerprint, out, err);
    db_end(q);
    return status;
}

/* ---- predictions ---- */

static fds_status check_charge(const fds_ledger *l, const fds_charge *c, fds_error *err) {
    if (c->run >= l->state.run_count)
        return fds__fail(err, FDS_ERR_USAGE, "there is no run %llu", (unsigned long long)c->run);
    if (c->amount < 0 || c->amount > LEDGER_MOST_AMOUNT)
        return fds__fail(err, FDS_ERR_USAGE, "an amount must be from 0 to %lld units (got %lld)",
                         (long long)LEDGER_MOST_AMOUNT, (long long)c->amount);
    if (l->state.privacy.is_on && c->amount > l->state.privacy.price_limit)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a prediction of a private ledger costs at most %lld units (got %lld)",
                         (long long)l->state.privacy.price_limit, (long long)c->amount);
    TRY(ledger_check_word("a label", c->label, LEDGER_NAME, err));
    if (!isnan(c->confidence) && !(c->confidence >= 0 && c->confidence <= 1))
        return fds__fail(err, FDS_ERR_USAGE, "a confidence must be from 0 to 1, or NaN");
    if (!c->values)
        return fds__fail(err, FDS_ERR_USAGE, "there are no values");
    if (c->answer_size > LEDGER_ANSWER || (c->answer_size && !c->answer))
        return fds__fail(err, FDS_ERR_USAGE, "an answer must have at most %d bytes (got %zu)",
                         LEDGER_ANSWER, c->answer_size);
    const ledger_run *run = l->state.runs[c->run];
    for (size_t i = 0; i < run->count; i++) {
        if (!isfinite((float)c->values[i]))
            return fds__fail(err, FDS_ERR_USAGE, "value %zu (from 0) is not finite, or too large",
                             i);
        if (c->errors && c->errors[i] < 0)
            return fds__fail(err, FDS_ERR_USAGE, "standard error %zu (from 0) is negative", i);
    }
    if (l->state.accounts[c->customer].balance < c->amount)
        return fds__fail(err, FDS_ERR_LIMIT, "the balance of %.100s is too low",
                         l->state.accounts[c->customer].name);
    return FDS_OK;
}

/* Customer, payees in the order of the values, fees. */
static fds_status make_postings(fds_ledger *l, const fds_charge *c, int64_t fee, size_t *count,
                                fds_error *err) {
    const ledger_run *run = l->state.runs[c->run];
    void *postings = l->postings;
    *count = run->count + 2;
    fds_status status =
        fds__grow(&postings, &l->posting_capacity, *count, sizeof *l->postings, err);
    l->postings = postings;
    TRY(status);
    l->postings[0] = (fds_posting){c->customer, -c->amount};
    for (size_t i = 0; i < run->count; i++)
        l->postings[i + 1] = (fds_posting){run->payees[i], run->shares[i]};
    l->postings[run->count + 1] = (fds_posting){LEDGER_FEES, fee};
    return FDS_OK;
}

static fds_status note_earnings(fds_ledger *l, const ledger_run *run, const ledger_entry *e,
                                fds_error *err) {
    void *earnings = l->earnings;
    fds_status status = fds__grow(&earnings, &l->earning_capacity, l->earning_count + run->count,
                                  sizeof *l->earnings, err);
    l->earnings = earnings;
    TRY(status);
    for (size_t i = 0; i < run->count; i++)
        if (run->shares[i])
            l->earnings[l->earning_count++] = (ledger_earning){
                .account = run->payees[i],
                .day = e->at_ms / LEDGER_DAY_MS,
                .label = e->label,
                .units = run->shares[i],
                .count = 1,
            };
    return FDS_OK;
}

/* Values as they are stored, and from there for the division; errors as they are stored. */
static void round_values(const fds_charge *c, ledger_run *run, float *values, uint16_t *errors) {
    for (size_t i = 0; i < run->count; i++) {
        values[i] = (float)c->values[i] + 0.0F; /* no negative zero */
        run->values[i] = (double)values[i];
        if (c->errors)
            errors[i] = fds__half_from_float((float)c->errors[i]);
    }
}

static fds_status add_prediction(fds_ledger *l, fds_charge *c, fds_error *err) {
    ledger_run *run = l->state.runs[c->run];
    OWNED float *values = NULL;
    OWNED uint16_t *errors = NULL;
    fds__pay_rule rule;
    size_t count;
    TRY(NEW(values, run->count, err));
    TRY(NEW(errors, run->count, err));
    round_values(c, run, values, errors);
    ledger_entry e = LEDGER_ENTRY(LEDGER_PREDICTION);
    e.run = c->run;
    e.customer = c->customer;
    e.has_amount = true;
    e.amount = c->amount;
    e.label = c->label;
    e.confidence = c->confidence + 0.0;
    e.key = c->key;
    e.fingerprint = (fds__bytes){c->key ? c->fingerprint : NULL, c->key ? 32 : 0};
    e.answer = (fds__bytes){c->answer_size ? c->answer : NULL, c->answer_size};
    e.values = (fds__bytes){values, run->count * sizeof *values};
    e.errors = (fds__bytes){c->errors ? errors : NULL, c->errors ? run->count * sizeof *errors : 0};
    e.input = (fds__bytes){c->input, sizeof c->input};
    TRY(ledger_run_divide(run, c->amount, &e.fee, &rule, err));
    e.rule = ledger_rule_name(rule);
    fds_status status = make_postings(l, c, e.fee, &count, err);
    if (status == FDS_OK)
        status = ledger_add(l, &e, l->postings, count, err);
    if (status != FDS_OK) {
        ledger_run_back(run);
        return status;
    }
    c->index = e.index;
    return note_earnings(l, run, &e, err);
}

/* Whether the charge was paid before, under its key. */
static void find_charge(const fds_ledger *l, fds_charge *c, fds_error *why) {
    ledger_first_use first = {0};
    bool is_customer = c->customer < l->state.account_count &&
                       l->state.accounts[c->customer].kind == FDS_ACCOUNT_CUSTOMER;
    c->status = is_customer ? ledger_look_up(l, LEDGER_PREDICTION, c->customer, c->key,
                                             c->fingerprint, &first, why)
                            : fds__fail(why, FDS_ERR_USAGE, "account %llu is not a customer's",
                                        (unsigned long long)c->customer);
    c->is_repeated = first.is_found;
    c->index = first.index;
    c->first_answer = first.answer;
    c->first_answer_size = first.answer_size;
    if (first.is_found)
        c->run = first.run;
}

/* What was decided, for people; fails only where it is not for the asker to mend. */
static fds_status conclude(fds_charge *c, const fds_error *why, fds_error *err) {
    snprintf(c->reason, sizeof c->reason, "%.*s", (int)sizeof c->reason - 1,
             c->status == FDS_OK ? "" : why->text);
    if (c->status == FDS_OK || c->status == FDS_ERR_USAGE || c->status == FDS_ERR_LIMIT ||
        c->status == FDS_ERR_CONFLICT)
        return FDS_OK;
    return fds__fail(err, c->status, "%s", why->text);
}

/* Decides about one charge; fails only if the whole batch has to. */
static fds_status charge_one(fds_ledger *l, fds_charge *c, fds_error *err) {
    fds_error why = {0};
    find_charge(l, c, &why);
    if (c->status == FDS_OK && !c->is_repeated)
        c->status = check_charge(l, c, &why);
    if (c->status == FDS_OK && !c->is_repeated)
        c->status = add_prediction(l, c, &why);
    return conclude(c, &why, err);
}

fds_status fds_ledger_repeat(fds_ledger *l, fds_charge *c, fds_error *err) {
    fds_error why = {0};
    TRY(ledger_settle(l, err));
    find_charge(l, c, &why);
    fds_status status = conclude(c, &why, err);
    if (status == FDS_OK || ledger_begin(l, &why) != FDS_OK)
        return status;
    find_charge(l, c, &why); /* once more: a transaction finds a lost connection again */
    return ledger_end(l, conclude(c, &why, err), err);
}

/* Nothing was paid, repeated or not. */
static void forget(fds_charge *charges, size_t count, fds_status status) {
    for (size_t i = 0; i < count; i++) {
        fds__free(charges[i].first_answer);
        charges[i].first_answer = NULL;
        charges[i].first_answer_size = 0;
        charges[i].is_repeated = false;
        charges[i].index = 0;
        charges[i].status = status;
    }
}

static fds_status keep(fds_ledger *l, const fds_charge *c, size_t place, fds_keep_function function,
                       void *user, fds_error *err) {
    const void *data = NULL;
    size_t size = 0;
    if (!function || c->status != FDS_OK || c->is_repeated)
        return FDS_OK;
    TRY(function(user, place, c->index, l->state.at_ms, &data, &size, err));
    return size ? ledger_add_waiting(l, c->index, data, size, err) : FDS_OK;
}

fds_status fds_ledger_charge_keeping(fds_ledger *l, fds_charge *charges, size_t count,
                                     fds_keep_function function, void *user, fds_error *err) {
    bool had_table = l->has_waiting;
    for (size_t i = 0; i < count; i++) {
        charges[i].first_answer = NULL;
        charges[i].reason[0] = 0;
    }
    fds_status status = ledger_begin(l, err);
    if (status == FDS_OK) {
        for (size_t i = 0; i < count && status == FDS_OK; i++) {
            status = charge_one(l, &charges[i], err);
            if (status == FDS_OK)
                status = keep(l, &charges[i], i, function, user, err);
        }
        status = ledger_end(l, status, err);
    }
    if (status != FDS_OK) {
        l->has_waiting = had_table;
        forget(charges, count, status);
    }
    return status;
}

fds_status fds_ledger_charge(fds_ledger *l, fds_charge *charges, size_t count, fds_error *err) {
    return fds_ledger_charge_keeping(l, charges, count, NULL, NULL, err);
}
