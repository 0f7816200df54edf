/* SPDX-License-Identifier: Apache-2.0
 * Payouts and corrections need two operators: one proposes, another one agrees.
 *
 * A proposal is an entry "audit" of the ledger, {"propose": "payout", "by": "ann", "what": {...}}, and
 * so is a refusal, {"refuse": 17, "by": "bob"}. What carries a proposal out has the key "proposal 17",
 * so it happens once, and names both operators and the proposal. Which proposals wait follows from the
 * entries, and is in memory while the server runs. A payout pays exactly what was proposed, all of it
 * or nothing. */
#include "serve/serve.h"

enum { MOST = 256, AT_ONCE = 100, KEY = 32 };

static const char *const names[] = {"payout", "correct"};

const char *serve_proposal_name(serve_proposal_kind kind) { return names[kind]; }

/* ---- those that wait ---- */

static void forget(serve_proposals *p, size_t i) {
    json_decref(p->items[i].what);
    memmove(p->items + i, p->items + i + 1, (p->count - i - 1) * sizeof *p->items);
    p->count--;
}

void serve_proposals_free(serve_proposals *p) {
    while (p->count)
        forget(p, p->count - 1);
    fds__free(p->items);
    *p = (serve_proposals){0};
}

const serve_proposal *serve_proposals_find(const serve_proposals *p, uint64_t id) {
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].id == id)
            return &p->items[i];
    return NULL;
}

static void drop(serve_proposals *p, uint64_t id) {
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].id == id) {
            forget(p, i);
            return;
        }
}

int64_t serve_proposals_pending(const fds_server *server, const char *account) {
    int64_t sum = 0, units;
    for (size_t i = 0; i < server->proposals.count; i++) {
        const serve_proposal *p = &server->proposals.items[i];
        const json_t *list = json_object_get(p->what, "payouts");
        for (size_t k = 0; p->kind == SERVE_PAYOUT && k < json_array_size(list); k++) {
            const json_t *one = json_array_get(list, k);
            const char *name = json_string_value(json_object_get(one, "account")),
                       *amount = json_string_value(json_object_get(one, "amount"));
            if (name && strcmp(name, account) == 0 &&
                fds_ledger_units(server->ledger, amount, &units, NULL) == FDS_OK)
                sum += units;
        }
    }
    return sum;
}

/* ---- from an entry ---- */

static void make_key(uint64_t id, char key[KEY]) {
    snprintf(key, KEY, "proposal %llu", (unsigned long long)id);
}

static bool find_kind(const char *name, serve_proposal_kind *out) {
    for (int i = 0; name && i < 2; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (serve_proposal_kind)i;
            return true;
        }
    return false;
}

/* Whether an entry carries it out: that of the first account, or of cash. */
static bool is_done(const fds_server *server, const serve_proposal *p) {
    const json_t *first = json_array_get(json_object_get(p->what, "payouts"), 0);
    const char *name = json_string_value(json_object_get(first, "account"));
    uint64_t account, index;
    char key[KEY];
    make_key(p->id, key);
    name = p->kind == SERVE_PAYOUT ? name : "cash";
    return name && fds_ledger_find(server->ledger, name, &account, NULL) == FDS_OK &&
           fds_ledger_find_key(server->ledger, account, key, &index, NULL) == FDS_OK;
}

/* An entry of a proposal among those that wait; other entries are left alone. */
static fds_status take(fds_server *server, const json_t *entry, fds_error *err) {
    serve_proposals *all = &server->proposals;
    const json_t *text = json_object_get(entry, "text");
    const char *by = json_string_value(json_object_get(text, "by")),
               *at = json_string_value(json_object_get(entry, "at"));
    serve_proposal p = {.id = (uint64_t)json_integer_value(json_object_get(entry, "index")),
                        .what = json_object_get(text, "what")};
    void *items = all->items;
    if (!find_kind(json_string_value(json_object_get(text, "propose")), &p.kind) || !by || !at ||
        !json_is_object(p.what) || is_done(server, &p))
        return FDS_OK;
    fds_status status = fds__grow(&items, &all->capacity, all->count + 1, sizeof *all->items, err);
    all->items = items;
    TRY(status);
    snprintf(p.by, sizeof p.by, "%s", by);
    snprintf(p.at, sizeof p.at, "%s", at);
    json_incref(p.what);
    memmove(all->items + 1, all->items, all->count * sizeof *all->items);
    all->items[0] = p;
    all->count++;
    return FDS_OK;
}

/* ---- from all entries ---- */

static bool is_refused(const json_t *refused, uint64_t id) {
    char key[KEY];
    make_key(id, key);
    return json_object_get(refused, key) != NULL;
}

/* The newest first: a refusal is read before what it refuses. */
static fds_status take_entries(fds_server *server, const json_t *list, json_t *refused,
                               fds_error *err) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i),
                     *other = json_object_get(json_object_get(entry, "text"), "refuse");
        char key[KEY];
        make_key((uint64_t)json_integer_value(other), key);
        if (json_is_integer(other) && !fds__json_put(refused, key, json_true()))
            return fds__fail_json(err);
        if (!is_refused(refused, (uint64_t)json_integer_value(json_object_get(entry, "index"))))
            TRY(take(server, entry, err));
    }
    return FDS_OK;
}

fds_status serve_proposals_read(fds_server *server, fds_error *err) {
    fds_ledger_listing what = {.account = UINT64_MAX,
                               .kind = "audit",
                               .before = UINT64_MAX,
                               .limit = AT_ONCE,
                               .viewer = UINT64_MAX};
    json_t *refused = json_object();
    fds_status status = refused ? FDS_OK : fds__fail_json(err);
    for (bool has_more = true; has_more && status == FDS_OK;) {
        char *text = NULL;
        json_t *page = NULL;
        status = fds_ledger_entries(server->ledger, &what, &text, err);
        if (status == FDS_OK)
            status = fds__json_parse("entries", text, strlen(text), &page, err);
        fds_text_free(text);
        if (status == FDS_OK)
            status = take_entries(server, json_object_get(page, "entries"), refused, err);
        has_more = json_is_true(json_object_get(page, "more"));
        what.before = (uint64_t)json_integer_value(json_object_get(page, "before"));
        json_decref(page);
    }
    json_decref(refused);
    return status;
}

/* ---- proposing and refusing ---- */

static fds_status write_note(fds_server *server, json_t *note, const char *key, uint64_t *index,
                             fds_error *err) {
    OWNED char *text = note ? fds__json_text(note, JSON_COMPACT) : NULL;
    json_decref(note);
    TRY(text ? FDS_OK : fds__fail_json(err));
    fds_status status = fds_ledger_note(server->ledger, text, key, index, err);
    server->proposals.is_doubtful |= status != FDS_OK;
    return status;
}

/* After a failure the entries tell what has happened all the same. */
fds_status serve_proposals_settle(fds_server *server, fds_error *err) {
    if (!server->proposals.is_doubtful)
        return FDS_OK;
    TRY(fds_ledger_settle(server->ledger, err));
    serve_proposals_free(&server->proposals);
    fds_status status = serve_proposals_read(server, err);
    server->proposals.is_doubtful = status != FDS_OK;
    return status;
}

/* The proposal of that key, if there is one. Amounts of a payout may have changed since. */
static fds_status find_first(const fds_server *server, serve_proposal_kind kind, const json_t *what,
                             const char *key, bool *is_found, uint64_t *id, fds_error *err) {
    uint64_t cash;
    TRY(fds_ledger_find(server->ledger, "cash", &cash, err));
    fds_status status = fds_ledger_find_key(server->ledger, cash, key, id, err);
    *is_found = status == FDS_OK;
    if (status == FDS_ERR_NOT_FOUND)
        return FDS_OK;
    TRY(status);
    const serve_proposal *p = serve_proposals_find(&server->proposals, *id);
    if (p && p->kind == kind && (kind == SERVE_PAYOUT || json_equal(p->what, what)))
        return FDS_OK;
    return fds__fail(err, FDS_ERR_CONFLICT,
                     p ? "the key stands for another proposal"
                       : "the proposal of that key waits no longer");
}

fds_status serve_proposals_add(fds_server *server, serve_proposal_kind kind, const char *by,
                               const json_t *what, const char *given, uint64_t *id,
                               fds_error *err) {
    char *text = NULL, key[300];
    json_t *entry = NULL;
    bool is_found = false;
    TRY(serve_proposals_settle(server, err));
    snprintf(key, sizeof key, "propose %.280s", given ? given : "");
    if (given)
        TRY(find_first(server, kind, what, key, &is_found, id, err));
    if (is_found)
        return FDS_OK;
    if (server->proposals.count >= MOST)
        return fds__fail(err, FDS_ERR_LIMIT, "%d proposals wait already: refuse some", MOST);
    TRY(write_note(server,
                   json_pack("{s:s, s:s, s:O}", "propose", names[kind], "by", by, "what", what),
                   given ? key : NULL, id, err));
    TRY(fds_ledger_entry(server->ledger, *id, UINT64_MAX, &text, err));
    fds_status status = fds__json_parse("entry", text, strlen(text), &entry, err);
    fds_text_free(text);
    if (status == FDS_OK)
        status = take(server, entry, err);
    json_decref(entry);
    return status;
}

static fds_status need(const fds_server *server, uint64_t id, const serve_proposal **out,
                       fds_error *err) {
    *out = serve_proposals_find(&server->proposals, id);
    return *out ? FDS_OK
                : fds__fail(err, FDS_ERR_NOT_FOUND, "no proposal %llu waits",
                            (unsigned long long)id);
}

fds_status serve_proposals_refuse(fds_server *server, uint64_t id, const char *by, fds_error *err) {
    const serve_proposal *p;
    uint64_t index;
    TRY(serve_proposals_settle(server, err));
    TRY(need(server, id, &p, err));
    TRY(write_note(server, json_pack("{s:I, s:s}", "refuse", (json_int_t)id, "by", by), NULL,
                   &index, err));
    drop(&server->proposals, id);
    return FDS_OK;
}

/* ---- carrying out ---- */

static fds_status read_postings(const fds_server *server, const json_t *list, fds_posting **out,
                                size_t *count, fds_error *err) {
    *count = json_array_size(list);
    TRY(NEW(*out, *count + 1, err));
    for (size_t i = 0; i < *count; i++) {
        const json_t *one = json_array_get(list, i);
        TRY(fds_ledger_find(server->ledger, json_string_value(json_object_get(one, "account")),
                            &(*out)[i].account, err));
        TRY(fds_ledger_units(server->ledger, json_string_value(json_object_get(one, "amount")),
                             &(*out)[i].units, err));
    }
    return FDS_OK;
}

static fds_status carry_out(fds_server *server, const serve_proposal *p,
                            const char *const operators[2], uint64_t **indexes, size_t *count,
                            fds_error *err) {
    OWNED fds_posting *postings = NULL;
    bool is_payout = p->kind == SERVE_PAYOUT;
    size_t posting_count;
    char key[KEY];
    make_key(p->id, key);
    TRY(read_postings(server, json_object_get(p->what, is_payout ? "payouts" : "postings"),
                      &postings, &posting_count, err));
    *count = is_payout ? posting_count : 1;
    TRY(NEW(*indexes, *count + 1, err));
    if (is_payout)
        return fds_ledger_pay(server->ledger, postings, posting_count,
                              json_string_value(json_object_get(p->what, "ref")), key, *indexes,
                              err);
    return fds_ledger_correct(
        server->ledger, (uint64_t)json_integer_value(json_object_get(p->what, "of")), postings,
        posting_count, json_string_value(json_object_get(p->what, "reason")), operators, key,
        *indexes, err);
}

fds_status serve_proposals_agree(fds_server *server, uint64_t id, const char *by,
                                 uint64_t **indexes, size_t *count, fds_error *err) {
    const serve_proposal *p;
    TRY(serve_proposals_settle(server, err));
    TRY(need(server, id, &p, err));
    const fds_ledger_by both = {.operators = {p->by, by}, .proposal = id};
    TRY(fds_ledger_set_by(server->ledger, &both, err));
    fds_status status = carry_out(server, p, both.operators, indexes, count, err);
    fds_ledger_set_by(server->ledger, NULL, NULL);
    if (status == FDS_OK)
        drop(&server->proposals, id);
    server->proposals.is_doubtful |= status == FDS_ERR_IO;
    return status;
}
