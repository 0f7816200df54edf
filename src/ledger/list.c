/* SPDX-License-Identifier: Apache-2.0
 * Many entries, the newest first; sums of all.
 *
 * There is no index of postings: a prediction has one per provider, and such a table would be most of
 * the ledger. A list looks back from a given entry instead, at LEDGER_SCAN of them at most, and says
 * where the next one goes on. Notes and corrections are found by their keys' owner, cash. */
#include "ledger/ledger.h"

/* The postings of a row of LEDGER_Q_BACK or LEDGER_Q_CASH; null for entries without any. */
static fds__bytes postings_of(const db_query *row) {
    fds__bytes bytes = {0};
    if (db_type_of(row, 2) == DB_BLOB)
        bytes.data = db_blob(row, 2, &bytes.size);
    return bytes;
}

/* ---- entries ---- */

typedef struct {
    const fds_ledger *ledger;
    const fds_ledger_listing *what;
    bool has_kind;
    ledger_entry_kind kind;
    fds_posting *postings;
    size_t capacity;
    uint64_t *found; /* (limit) */
    size_t count;
    uint64_t before; /* all below are not looked at yet */
} listing;

static fds_status concerns(listing *l, const db_query *row, bool *out, fds_error *err) {
    ledger_entry e = {.index = l->before};
    const char *kind = db_text(row, 1, NULL);
    size_t count;
    *out = false;
    /* which predictions have paid a provider is not for it to know */
    if (kind && strcmp(kind, ledger_entry_kinds[LEDGER_PREDICTION]) == 0 &&
        ledger_is_hidden(l->ledger, l->what->viewer))
        return FDS_OK;
    if (l->has_kind && (!kind || strcmp(kind, ledger_entry_kinds[l->kind]) != 0))
        return FDS_OK;
    if (l->what->account == LEDGER_NONE) {
        *out = true;
        return FDS_OK;
    }
    e.postings = postings_of(row);
    TRY(ledger_postings_decode(&e, l->ledger->state.account_count, &l->postings, &l->capacity,
                               &count, err));
    for (size_t i = 0; i < count && !*out; i++)
        *out = l->postings[i].account == l->what->account && l->postings[i].units != 0;
    return FDS_OK;
}

static fds_status look_back(listing *l, db_query *q, fds_error *err) {
    size_t seen = 0;
    while (l->count < l->what->limit) {
        bool has_row, is_found;
        TRY(db_next(q, &has_row, err));
        if (!has_row) {
            l->before = seen < LEDGER_SCAN ? 0 : l->before;
            return FDS_OK;
        }
        seen++;
        l->before = (uint64_t)db_int(q, 0);
        TRY(concerns(l, q, &is_found, err));
        if (is_found)
            l->found[l->count++] = l->before;
    }
    return FDS_OK;
}

static fds_status find_entries(listing *l, fds_error *err) {
    db_query *q;
    bool is_of_cash = l->has_kind && (l->kind == LEDGER_CORRECTION || l->kind == LEDGER_AUDIT ||
                                      l->kind == LEDGER_PRIVACY || l->kind == LEDGER_RELEASE);
    TRY(ledger_query(l->ledger, is_of_cash ? LEDGER_Q_CASH : LEDGER_Q_BACK, &q, err));
    db_bind_int(q, 1, (int64_t)l->before);
    db_bind_int(q, 2, LEDGER_SCAN);
    fds_status status = look_back(l, q, err);
    db_end(q);
    return status;
}

static fds_status add_entries(const listing *l, json_t *list, fds_error *err) {
    for (size_t i = 0; i < l->count; i++) {
        json_t *entry;
        TRY(ledger_entry_json(l->ledger, l->found[i], l->what->viewer, false, &entry, err));
        if (!fds__json_append(list, entry))
            return fds__fail_json(err);
    }
    return FDS_OK;
}

static fds_status write_list(const listing *l, char **json, fds_error *err) {
    json_t *root = json_object(), *list = json_array();
    bool is_whole = fds__json_share(root, "entries", list) &&
                    fds__json_put(root, "more", json_boolean(l->before > 0)) &&
                    fds__json_put(root, "before", json_integer((json_int_t)l->before));
    fds_status status = is_whole ? add_entries(l, list, err) : fds__fail_json(err);
    *json = status == FDS_OK ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(list);
    json_decref(root);
    return status == FDS_OK && !*json ? fds__fail_json(err) : status;
}

fds_status fds_ledger_entries(const fds_ledger *ledger, const fds_ledger_listing *what, char **json,
                              fds_error *err) {
    OWNED uint64_t *found = NULL;
    listing l = {.ledger = ledger, .what = what, .has_kind = what->kind != NULL};
    if (what->limit < 1 || what->limit > LEDGER_LIST)
        return fds__fail(err, FDS_ERR_USAGE, "a list has 1 to %d entries (got %zu)", LEDGER_LIST,
                         what->limit);
    if (what->kind && !ledger_entry_kind_find(what->kind, &l.kind))
        return fds__fail(err, FDS_ERR_USAGE, "there is no kind of entries \"%.60s\"", what->kind);
    if (what->account != LEDGER_NONE)
        TRY(ledger_check_account(ledger, what->account, err));
    if (what->viewer != LEDGER_NONE)
        TRY(ledger_check_account(ledger, what->viewer, err));
    TRY(NEW(found, what->limit, err));
    l.found = found;
    l.before = MIN(what->before, ledger->state.size);
    fds_status status = find_entries(&l, err);
    if (status == FDS_OK)
        status = write_list(&l, json, err);
    fds__free(l.postings);
    return status;
}

fds_status fds_ledger_find_key(const fds_ledger *l, uint64_t account, const char *key,
                               uint64_t *index, fds_error *err) {
    db_query *q;
    bool has_row;
    TRY(ledger_check_account(l, account, err));
    TRY(ledger_check_word("a key", key, LEDGER_KEY, err));
    TRY(ledger_query(l, LEDGER_Q_KEY, &q, err));
    db_bind_int(q, 1, (int64_t)account);
    db_bind_text(q, 2, key);
    fds_status status = db_next(q, &has_row, err);
    if (status == FDS_OK && !has_row)
        status = fds__fail(err, FDS_ERR_NOT_FOUND, "%.200s has no entry with the key \"%.100s\"",
                           l->state.accounts[account].name, key);
    if (status == FDS_OK)
        *index = (uint64_t)db_int(q, 0);
    db_end(q);
    return status;
}

/* ---- sums ---- */

static fds_status add_transfers(const fds_ledger *l, fds_ledger_totals *out, fds_error *err) {
    db_query *q;
    bool has_row = true;
    TRY(ledger_query(l, LEDGER_Q_PAID, &q, err));
    fds_status status = FDS_OK;
    while (status == FDS_OK) {
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        const char *kind = db_text(q, 0, NULL);
        *(kind && strcmp(kind, "topup") == 0 ? &out->in : &out->out) = db_int(q, 1);
    }
    db_end(q);
    return status;
}

/* Corrections may concern cash too. */
static fds_status add_corrections(const fds_ledger *l, db_query *q, fds_ledger_totals *out,
                                  fds_error *err) {
    OWNED fds_posting *postings = NULL;
    size_t capacity = 0, count;
    for (;;) {
        bool has_row;
        ledger_entry e = {0};
        TRY(db_next(q, &has_row, err));
        if (!has_row)
            return FDS_OK;
        e.index = (uint64_t)db_int(q, 0);
        e.postings = postings_of(q);
        TRY(ledger_postings_decode(&e, l->state.account_count, &postings, &capacity, &count, err));
        for (size_t i = 0; i < count; i++)
            if (postings[i].account == LEDGER_CASH)
                ledger_count_cash(out, postings[i].units);
    }
}

fds_status fds_ledger_sum(fds_ledger *l, fds_ledger_totals *out, fds_error *err) {
    fds_ledger_totals totals = {0};
    if (!l->has_totals) {
        db_query *q;
        TRY(add_transfers(l, &totals, err));
        TRY(ledger_query(l, LEDGER_Q_CASH, &q, err));
        db_bind_int(q, 1, INT64_MAX);
        db_bind_int(q, 2, INT64_MAX);
        fds_status status = add_corrections(l, q, &totals, err);
        db_end(q);
        TRY(status);
        l->totals = totals;
        l->has_totals = true;
    }
    *out = l->totals;
    return FDS_OK;
}

/* Of a private ledger: the statements. */
typedef struct {
    int64_t units;
    uint64_t count;
} stated;

static fds_status add_stated(void *user, const char *period, const char *last, int64_t units,
                             uint64_t entry, fds_error *err) {
    stated *s = user;
    (void)period, (void)last, (void)entry;
    s->count++;
    return __builtin_add_overflow(s->units, units, &s->units)
               ? fds__fail(err, FDS_ERR_LIMIT, "statements add up to too much")
               : FDS_OK;
}

fds_status fds_ledger_earned(const fds_ledger *l, uint64_t account, int64_t *units, uint64_t *count,
                             fds_error *err) {
    db_query *q;
    bool has_row;
    stated s = {0};
    TRY(ledger_check_account(l, account, err));
    if (ledger_is_hidden(l, account)) {
        TRY(fds_ledger_released_statements(l, account, NULL, add_stated, &s, err));
        *units = s.units;
        *count = s.count;
        return FDS_OK;
    }
    TRY(ledger_query(l, LEDGER_Q_EARNED, &q, err));
    db_bind_int(q, 1, (int64_t)account);
    fds_status status = db_next(q, &has_row, err);
    *units = status == FDS_OK && has_row ? db_int(q, 0) : 0;
    *count = status == FDS_OK && has_row ? (uint64_t)db_int(q, 1) : 0;
    db_end(q);
    return status;
}
