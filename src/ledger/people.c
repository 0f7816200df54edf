/* SPDX-License-Identifier: Apache-2.0
 * New entries that people make: top-ups, payouts, corrections, notes. Each has a key, or none. Their
 * texts name who is answerable for them (fds_ledger_set_by). */
#include "ledger/ledger.h"

enum { MOST_CORRECTED = 4096 }; /* postings of a correction */

/* ---- who ---- */

static void forget_by(fds_ledger *l) {
    for (int i = 0; i < 2; i++) {
        fds__free(l->operators[i]);
        l->operators[i] = NULL;
    }
    l->proposal = LEDGER_NONE;
}

fds_status fds_ledger_set_by(fds_ledger *l, const fds_ledger_by *by, fds_error *err) {
    forget_by(l);
    for (int i = 0; by && i < 2 && by->operators[i]; i++) {
        TRY(ledger_check_word("the name of an operator", by->operators[i], LEDGER_NAME, err));
        l->operators[i] = fds__strdup(by->operators[i]);
        if (!l->operators[i])
            return fds__fail_nomem(err, strlen(by->operators[i]) + 1);
    }
    l->proposal = by ? by->proposal : LEDGER_NONE;
    return FDS_OK;
}

static bool put_operators(json_t *root, const char *const operators[2]) {
    json_t *names = json_array();
    bool is_whole = fds__json_share(root, "operators", names);
    for (int i = 0; is_whole && i < 2 && operators[i]; i++)
        is_whole = fds__json_append(names, json_string(operators[i]));
    json_decref(names);
    return is_whole;
}

/* The text of an entry, which takes root. what: "ref", "reason". operators: NULL for those that are
 * set. *out NULL: there is nothing to say. */
static fds_status make_text(const fds_ledger *l, const char *what, const char *words,
                            const char *const *operators, char **out, fds_error *err) {
    json_t *root = json_object();
    const char *const own[2] = {l->operators[0], l->operators[1]};
    operators = operators ? operators : own;
    bool is_whole = !words || fds__json_put(root, what, json_string(words));
    if (operators[0])
        is_whole = is_whole && put_operators(root, operators);
    if (l->proposal != LEDGER_NONE)
        is_whole =
            is_whole && fds__json_put(root, "proposal", json_integer((json_int_t)l->proposal));
    bool is_empty = is_whole && json_object_size(root) == 0;
    *out = is_whole && !is_empty ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return *out || is_empty ? FDS_OK : fds__fail_json(err);
}

/* ---- keys ---- */

/* A request in a form of its own, to tell another one under the same key. */
static fds_status fingerprint_of(const fds__text *request, uint8_t out[32], fds_error *err) {
    fds_status status = fds__text_check(request, err);
    if (status == FDS_OK)
        fds__sha256(&(fds__bytes){request->data, request->used}, 1, out);
    fds__free(request->data);
    return status;
}

static void add_field(fds__text *request, const char *field) {
    fds__text_print(request, " %zu:", field ? strlen(field) : 0);
    if (field)
        fds__text_add(request, field, strlen(field));
}

/* Of cash: the ledger's own keys are not for others, who could keep a release from being entered. */
static fds_status check_own_key(const char *key, fds_error *err) {
    if (!key || strncmp(key, LEDGER_OWN_KEY, strlen(LEDGER_OWN_KEY)) != 0)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_USAGE, "a key must not begin with \"%s\" (got %.100s)",
                     LEDGER_OWN_KEY, key);
}

static fds_status check_ref(const char *ref, fds_error *err) {
    return ref ? ledger_check_word("a reference", ref, LEDGER_TEXT, err) : FDS_OK;
}

/* ---- top-ups and payouts ---- */

/* Money between an account and cash, within a transaction: units > 0 towards the account. */
static fds_status put_transfer(fds_ledger *l, ledger_entry_kind kind, uint64_t account,
                               int64_t units, const char *ref, const char *key,
                               const uint8_t fingerprint[32], uint64_t *index, fds_error *err) {
    OWNED char *text = NULL;
    ledger_entry e = LEDGER_ENTRY(kind);
    TRY(make_text(l, "ref", ref, NULL, &text, err));
    e.customer = account;
    e.has_amount = true;
    e.amount = units < 0 ? -units : units;
    e.text = text;
    e.key = key;
    e.fingerprint = (fds__bytes){key ? fingerprint : NULL, key ? 32 : 0};
    fds_posting postings[] = {{account, units}, {LEDGER_CASH, -units}};
    TRY(ledger_add(l, &e, postings, 2, err));
    *index = e.index;
    return FDS_OK;
}

static fds_status add_transfer(fds_ledger *l, ledger_entry_kind kind, uint64_t account,
                               int64_t units, const char *ref, const char *key,
                               const uint8_t fingerprint[32], uint64_t *index, fds_error *err) {
    uint64_t number = LEDGER_NONE;
    TRY(ledger_begin(l, err));
    TRY(ledger_end(l, put_transfer(l, kind, account, units, ref, key, fingerprint, &number, err),
                   err));
    if (index)
        *index = number;
    return FDS_OK;
}

fds_status fds_ledger_topup(fds_ledger *l, uint64_t customer, int64_t units, const char *ref,
                            const char *key, uint64_t *index, fds_error *err) {
    uint8_t fingerprint[32];
    fds__text request = {0};
    ledger_first_use first;
    TRY(ledger_settle(l, err));
    TRY(ledger_check_account(l, customer, err));
    if (l->state.accounts[customer].kind != FDS_ACCOUNT_CUSTOMER)
        return fds__fail(err, FDS_ERR_USAGE, "%.200s is not a customer: only customers pay in",
                         l->state.accounts[customer].name);
    if (units < 1 || units > LEDGER_MOST_AMOUNT)
        return fds__fail(err, FDS_ERR_USAGE, "a top-up must be from 1 to %lld units (got %lld)",
                         (long long)LEDGER_MOST_AMOUNT, (long long)units);
    TRY(check_ref(ref, err));
    fds__text_print(&request, "topup %lld", (long long)units);
    add_field(&request, ref);
    TRY(fingerprint_of(&request, fingerprint, err));
    TRY(ledger_look_up(l, LEDGER_TOPUP, customer, key, fingerprint, &first, err));
    if (!first.is_found)
        return add_transfer(l, LEDGER_TOPUP, customer, units, ref, key, fingerprint, index, err);
    if (index)
        *index = first.index;
    return FDS_OK;
}

fds_status fds_ledger_payout(fds_ledger *l, uint64_t account, int64_t minimum, const char *ref,
                             const char *key, int64_t *units, uint64_t *index, fds_error *err) {
    uint8_t fingerprint[32];
    fds__text request = {0};
    ledger_first_use first;
    TRY(ledger_settle(l, err));
    TRY(ledger_check_account(l, account, err));
    if (account == LEDGER_CASH)
        return fds__fail(err, FDS_ERR_USAGE,
                         "cash is what was not paid out: choose another account");
    TRY(check_ref(ref, err));
    fds__text_print(&request, "payout %lld", (long long)minimum);
    add_field(&request, ref);
    TRY(fingerprint_of(&request, fingerprint, err));
    TRY(ledger_look_up(l, LEDGER_PAYOUT, account, key, fingerprint, &first, err));
    int64_t owed = MAX(ledger_visible(&l->state, account), 0), paid = owed - owed % l->unit.minor;
    if (first.is_found)
        paid = first.amount;
    else if (paid < minimum)
        paid = 0;
    if (paid && !first.is_found)
        TRY(add_transfer(l, LEDGER_PAYOUT, account, -paid, ref, key, fingerprint, &first.index,
                         err));
    if (units)
        *units = paid;
    if (index)
        *index = paid ? first.index : LEDGER_NONE;
    return FDS_OK;
}

/* ---- payouts of given amounts ---- */

static fds_status check_payouts(const fds_ledger *l, const fds_posting *payouts, size_t count,
                                fds_error *err) {
    OWNED bool *has = NULL;
    TRY(NEW(has, l->state.account_count, err));
    for (size_t i = 0; i < count; i++) {
        uint64_t account = payouts[i].account;
        TRY(ledger_check_account(l, account, err));
        const char *name = l->state.accounts[account].name;
        if (account == LEDGER_CASH || has[account])
            return fds__fail(err, FDS_ERR_USAGE, "%.200s cannot be paid out, or stands there twice",
                             name);
        if (payouts[i].units < 1 || payouts[i].units > LEDGER_MOST_AMOUNT ||
            payouts[i].units % l->unit.minor != 0)
            return fds__fail(err, FDS_ERR_USAGE,
                             "a payout must be from 1 to %lld units, a multiple of %lld (got %lld "
                             "for %.200s)",
                             (long long)LEDGER_MOST_AMOUNT, (long long)l->unit.minor,
                             (long long)payouts[i].units, name);
        has[account] = true;
    }
    return FDS_OK;
}

/* One of several payouts: a key that was used for this amount before pays nothing. */
static fds_status pay_one(fds_ledger *l, const fds_posting *payout, const char *ref,
                          const char *key, uint64_t *index, fds_error *err) {
    uint8_t fingerprint[32];
    fds__text request = {0};
    ledger_first_use first;
    fds__text_print(&request, "pay %lld", (long long)payout->units);
    add_field(&request, ref);
    TRY(fingerprint_of(&request, fingerprint, err));
    TRY(ledger_look_up(l, LEDGER_PAYOUT, payout->account, key, fingerprint, &first, err));
    *index = first.index;
    if (first.is_found)
        return FDS_OK;
    if (ledger_visible(&l->state, payout->account) < payout->units)
        return fds__fail(err, FDS_ERR_LIMIT, "the balance of %.200s is too low",
                         l->state.accounts[payout->account].name);
    return put_transfer(l, LEDGER_PAYOUT, payout->account, -payout->units, ref, key, fingerprint,
                        index, err);
}

fds_status fds_ledger_pay(fds_ledger *l, const fds_posting *payouts, size_t count, const char *ref,
                          const char *key, uint64_t *indexes, fds_error *err) {
    fds_status status = FDS_OK;
    TRY(ledger_settle(l, err));
    TRY(check_ref(ref, err));
    TRY(check_payouts(l, payouts, count, err));
    TRY(ledger_begin(l, err));
    for (size_t i = 0; i < count && status == FDS_OK; i++)
        status = pay_one(l, &payouts[i], ref, key, &indexes[i], err);
    return ledger_end(l, status, err);
}

/* ---- corrections ---- */

/* What a prediction paid a provider is not to be read from how it is mended. */
fds_status ledger_correction_check(const fds_ledger *l, const ledger_state *s, uint64_t of,
                                   const fds_posting *postings, size_t count, fds_error *err) {
    ledger_entry e;
    db_query *row;
    if (!s->privacy.is_on)
        return FDS_OK;
    TRY(ledger_entry_get(l, of, &e, &row, err));
    bool is_prediction = e.kind == LEDGER_PREDICTION;
    db_end(row);
    for (size_t i = 0; is_prediction && i < count; i++)
        if (s->accounts[postings[i].account].kind == FDS_ACCOUNT_PROVIDER)
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s is private: a correction of a prediction takes money from "
                             "\"reserve\", not from providers, who would learn their shares",
                             l->path);
    return FDS_OK;
}

static fds_status check_correction(const fds_ledger *l, uint64_t of, const fds_posting *postings,
                                   size_t count, const char *reason, const char *const operators[2],
                                   fds_error *err) {
    fds__fixed sum = 0;
    if (of >= l->state.size)
        return fds__fail(err, FDS_ERR_NOT_FOUND, "there is no entry %llu to correct",
                         (unsigned long long)of);
    if (count < 2 || count > MOST_CORRECTED)
        return fds__fail(err, FDS_ERR_USAGE, "a correction has 2 to %d postings (got %zu)",
                         MOST_CORRECTED, count);
    for (size_t i = 0; i < count; i++) {
        TRY(ledger_check_account(l, postings[i].account, err));
        const char *name = l->state.accounts[postings[i].account].name;
        if (postings[i].units == 0 || postings[i].units > LEDGER_MOST_AMOUNT ||
            postings[i].units < -LEDGER_MOST_AMOUNT)
            return fds__fail(err, FDS_ERR_USAGE, "the correction of %.200s is 0 or too large",
                             name);
        for (size_t k = 0; k < i; k++)
            if (postings[k].account == postings[i].account)
                return fds__fail(err, FDS_ERR_USAGE, "%.200s is corrected twice", name);
        sum += postings[i].units;
    }
    if (sum != 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "the postings of a correction must sum to 0 (got %lld units)",
                         (long long)sum);
    TRY(ledger_check_word("the reason of a correction", reason, LEDGER_TEXT, err));
    for (int i = 0; i < 2; i++)
        TRY(ledger_check_word("the name of an operator", operators ? operators[i] : NULL,
                              LEDGER_NAME, err));
    if (strcmp(operators[0], operators[1]) == 0)
        return fds__fail(err, FDS_ERR_USAGE, "a correction needs two different operators (got %s)",
                         operators[0]);
    return FDS_OK;
}

fds_status fds_ledger_correct(fds_ledger *l, uint64_t of, const fds_posting *postings, size_t count,
                              const char *reason, const char *const operators[2], const char *key,
                              uint64_t *index, fds_error *err) {
    OWNED char *text = NULL;
    uint8_t fingerprint[32];
    fds__text request = {0};
    ledger_first_use first;
    TRY(ledger_settle(l, err));
    TRY(check_own_key(key, err));
    TRY(check_correction(l, of, postings, count, reason, operators, err));
    TRY(ledger_correction_check(l, &l->state, of, postings, count, err));
    fds__text_print(&request, "correction %llu", (unsigned long long)of);
    for (size_t i = 0; i < count; i++)
        fds__text_print(&request, " %llu=%lld", (unsigned long long)postings[i].account,
                        (long long)postings[i].units);
    add_field(&request, reason);
    add_field(&request, operators[0]);
    add_field(&request, operators[1]);
    TRY(fingerprint_of(&request, fingerprint, err));
    TRY(ledger_look_up(l, LEDGER_CORRECTION, LEDGER_CASH, key, fingerprint, &first, err));
    if (!first.is_found) {
        TRY(make_text(l, "reason", reason, operators, &text, err));
        ledger_entry e = LEDGER_ENTRY(LEDGER_CORRECTION);
        e.customer = LEDGER_CASH; /* whose key it is */
        e.ref = of;
        e.text = text;
        e.key = key;
        e.fingerprint = (fds__bytes){key ? fingerprint : NULL, key ? 32 : 0};
        TRY(ledger_begin(l, err));
        TRY(ledger_end(l, ledger_add(l, &e, postings, count, err), err));
        first.index = e.index;
    }
    if (index)
        *index = first.index;
    return FDS_OK;
}

/* ---- notes ---- */

static fds_status check_note(const char *json, fds_error *err) {
    json_t *root = NULL;
    size_t size = json ? strlen(json) : 0;
    if (size > LEDGER_NOTE)
        return fds__fail(err, FDS_ERR_LIMIT, "a note must have at most %d bytes (got %zu)",
                         LEDGER_NOTE, size);
    TRY(fds__json_parse("a note", json ? json : "", size, &root, err));
    bool is_object = json_is_object(root);
    json_decref(root);
    return is_object ? FDS_OK : fds__fail(err, FDS_ERR_USAGE, "a note must be an object of JSON");
}

fds_status fds_ledger_note(fds_ledger *l, const char *json, const char *key, uint64_t *index,
                           fds_error *err) {
    uint8_t fingerprint[32];
    fds__text request = {0};
    ledger_first_use first;
    TRY(ledger_settle(l, err));
    TRY(check_own_key(key, err));
    TRY(check_note(json, err));
    fds__text_print(&request, "note");
    add_field(&request, json);
    TRY(fingerprint_of(&request, fingerprint, err));
    TRY(ledger_look_up(l, LEDGER_AUDIT, LEDGER_CASH, key, fingerprint, &first, err));
    if (!first.is_found) {
        ledger_entry e = LEDGER_ENTRY(LEDGER_AUDIT);
        e.customer = LEDGER_CASH; /* whose key it is */
        e.text = json;
        e.key = key;
        e.fingerprint = (fds__bytes){key ? fingerprint : NULL, key ? 32 : 0};
        TRY(ledger_begin(l, err));
        TRY(ledger_end(l, ledger_add(l, &e, NULL, 0, err), err));
        first.index = e.index;
    }
    if (index)
        *index = first.index;
    return FDS_OK;
}
