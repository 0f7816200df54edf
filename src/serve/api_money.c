/* SPDX-License-Identifier: Apache-2.0
 * What operators do: top-ups by themselves; payouts and corrections with another operator. */
#include "serve/serve.h"

enum { MOST_POSTINGS = 1000, LISTED_AT_ONCE = 200, MOST_REASON = 2000 };

/* ---- top-ups ---- */

fds_status serve_api_topup(serve_call *call, fds_error *err) {
    const char *name;
    int64_t units;
    uint64_t account, index;
    bool is_new = json_is_true(json_object_get(call->args, "new"));
    TRY(serve_arg_needed(call, "account", &name, err));
    TRY(serve_arg_units(call, "amount", &units, err));
    if (units < 1)
        return fds__fail(err, FDS_ERR_USAGE, "\"amount\" must be above 0");
    TRY(is_new ? fds_ledger_account(call->ledger, FDS_ACCOUNT_CUSTOMER, name, &account, err)
               : fds_ledger_find(call->ledger, name, &account, err));
    const fds_ledger_by by = {.operators = {call->account}, .proposal = UINT64_MAX};
    TRY(fds_ledger_set_by(call->ledger, &by, err));
    fds_status status = fds_ledger_topup(call->ledger, account, units, serve_arg_text(call, "ref"),
                                         serve_arg_text(call, "key"), &index, err);
    fds_ledger_set_by(call->ledger, NULL, NULL);
    TRY(status);
    return serve_send_json(call, json_pack("{s:I}", "index", (json_int_t)index), true, err);
}

/* ---- proposing a payout ---- */

/* What a provider is owed in whole numbers of the currency's own unit. */
static int64_t payable(const serve_call *call, uint64_t account, int64_t minor) {
    int64_t balance = fds_ledger_balance(call->ledger, account);
    return fds_ledger_account_kind(call->ledger, account) == FDS_ACCOUNT_PROVIDER && balance > 0
               ? balance - balance % minor
               : 0;
}

static json_t *list_payouts(const serve_call *call, int64_t minimum) {
    json_t *list = json_array();
    bool is_whole = list != NULL;
    int64_t minor = fds_ledger_minor(call->ledger);
    for (uint64_t i = 0; is_whole && i < fds_ledger_accounts(call->ledger); i++) {
        int64_t units = payable(call, i, minor);
        if (units < 1 || units < minimum)
            continue;
        json_t *one = json_object();
        is_whole =
            fds__json_put(one, "account", json_string(fds_ledger_account_name(call->ledger, i))) &&
            fds__json_put(one, "amount", serve_money(call, units));
        is_whole = fds__json_append(list, fds__json_keep_if(one, is_whole));
    }
    return fds__json_keep_if(list, is_whole);
}

/* A text for people, which may be left out. */
static fds_status check_words(const char *what, const char *text, fds_error *err) {
    return text && *text ? serve_check_word(what, text, MOST_REASON, err) : FDS_OK;
}

fds_status serve_api_payout(serve_call *call, fds_error *err) {
    const char *ref = serve_arg_text(call, "ref");
    int64_t minimum = 0;
    uint64_t id;
    if (serve_arg_text(call, "minimum"))
        TRY(serve_arg_units(call, "minimum", &minimum, err));
    TRY(check_words("ref", ref, err));
    json_t *list = list_payouts(call, minimum), *what = json_object();
    bool is_whole = list && fds__json_share(what, "payouts", list) &&
                    fds__json_put(what, "minimum", serve_money(call, minimum)) &&
                    (!ref || fds__json_put(what, "ref", json_string(ref)));
    fds_status status =
        !is_whole ? fds__fail_json(err)
        : json_array_size(list) == 0
            ? fds__fail(err, FDS_ERR_CONFLICT, "nobody is owed that much: there is nothing to pay")
            : serve_proposals_add(call->server, SERVE_PAYOUT, call->account, what,
                                  serve_arg_text(call, "key"), &id, err);
    json_decref(what);
    json_t *root = status == FDS_OK
                       ? json_pack("{s:I, s:O}", "proposal", (json_int_t)id, "payouts", list)
                       : NULL;
    json_decref(list);
    return status == FDS_OK ? serve_send_json(call, root, true, err) : status;
}

/* ---- proposing a correction ---- */

static fds_status check_posting(const serve_call *call, const json_t *list, size_t i,
                                int64_t *units, fds_error *err) {
    const json_t *one = json_array_get(list, i);
    const char *name = json_string_value(json_object_get(one, "account")),
               *amount = json_string_value(json_object_get(one, "amount"));
    uint64_t account;
    if (!name || !amount)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a posting must be {\"account\": \"acme\", \"amount\": \"-1.00\"}");
    TRY(fds_ledger_find(call->ledger, name, &account, err));
    TRY(fds_ledger_units(call->ledger, amount, units, err));
    for (size_t k = 0; k < i; k++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, k), "account")), name) ==
            0)
            return fds__fail(err, FDS_ERR_USAGE, "%.200s is corrected twice", name);
    return *units ? FDS_OK : fds__fail(err, FDS_ERR_USAGE, "the correction of %.200s is 0", name);
}

static fds_status check_postings(const serve_call *call, const json_t *list, fds_error *err) {
    int64_t sum = 0, units;
    size_t count = json_array_size(list);
    if (count < 2 || count > MOST_POSTINGS)
        return fds__fail(err, FDS_ERR_USAGE, "\"postings\" must be a list of 2 to %d",
                         MOST_POSTINGS);
    for (size_t i = 0; i < count; i++) {
        TRY(check_posting(call, list, i, &units, err));
        if (__builtin_add_overflow(sum, units, &sum))
            return fds__fail(err, FDS_ERR_USAGE, "\"postings\" are too large");
    }
    return sum == 0 ? FDS_OK
                    : fds__fail(err, FDS_ERR_USAGE, "\"postings\" must sum to 0 (got %lld units)",
                                (long long)sum);
}

fds_status serve_api_correct(serve_call *call, fds_error *err) {
    const json_t *postings = json_object_get(call->args, "postings");
    const char *reason;
    uint64_t of, id;
    TRY(serve_arg_number(call, "of", UINT64_MAX, &of, err));
    if (of >= fds_ledger_size(call->ledger))
        return fds__fail(err, FDS_ERR_USAGE, "\"of\" must be the number of an entry");
    TRY(serve_arg_needed(call, "reason", &reason, err));
    TRY(check_words("reason", reason, err));
    TRY(check_postings(call, postings, err));
    json_t *what =
        json_pack("{s:I, s:O, s:s}", "of", (json_int_t)of, "postings", postings, "reason", reason);
    fds_status status = what ? serve_proposals_add(call->server, SERVE_CORRECTION, call->account,
                                                   what, serve_arg_text(call, "key"), &id, err)
                             : fds__fail_json(err);
    json_decref(what);
    TRY(status);
    return serve_send_json(call, json_pack("{s:I}", "proposal", (json_int_t)id), true, err);
}

/* ---- proposals ---- */

fds_status serve_api_proposals(serve_call *call, fds_error *err) {
    TRY(serve_proposals_settle(call->server, err));
    const serve_proposals *all = &call->server->proposals;
    json_t *root = json_object(), *list = json_array();
    bool is_whole = fds__json_share(root, "proposals", list);
    for (size_t i = 0; is_whole && i < all->count; i++) {
        const serve_proposal *p = &all->items[i];
        is_whole =
            fds__json_append(list, json_pack("{s:I, s:s, s:s, s:s, s:O}", "id", (json_int_t)p->id,
                                             "kind", serve_proposal_name(p->kind), "by", p->by,
                                             "at", p->at, "what", p->what));
    }
    json_decref(list);
    return serve_send_json(call, root, is_whole, err);
}

static fds_status need_id(const serve_call *call, uint64_t *id, fds_error *err) {
    TRY(serve_arg_number(call, "id", UINT64_MAX, id, err));
    return *id != UINT64_MAX ? FDS_OK
                             : fds__fail(err, FDS_ERR_USAGE, "\"id\" of a proposal is missing");
}

static fds_status send_indexes(serve_call *call, const uint64_t *indexes, size_t count,
                               fds_error *err) {
    json_t *root = json_object(), *list = json_array();
    bool is_whole = fds__json_share(root, "indexes", list);
    for (size_t i = 0; is_whole && i < count; i++)
        is_whole = fds__json_append(list, json_integer((json_int_t)indexes[i]));
    json_decref(list);
    return serve_send_json(call, root, is_whole, err);
}

fds_status serve_api_agree(serve_call *call, fds_error *err) {
    OWNED uint64_t *indexes = NULL;
    uint64_t id;
    size_t count = 0;
    TRY(need_id(call, &id, err));
    const serve_proposal *p = serve_proposals_find(&call->server->proposals, id);
    if (p && strcmp(p->by, call->account) == 0) {
        call->reply->status = 403;
        return fds__fail(err, FDS_ERR_USAGE, "another operator must agree: %s has proposed it",
                         p->by);
    }
    TRY(serve_proposals_agree(call->server, id, call->account, &indexes, &count, err));
    return send_indexes(call, indexes, count, err);
}

fds_status serve_api_refuse(serve_call *call, fds_error *err) {
    uint64_t id;
    TRY(need_id(call, &id, err));
    TRY(serve_proposals_refuse(call->server, id, call->account, err));
    return send_indexes(call, NULL, 0, err);
}

/* ---- the file of payouts ---- */

static void add_payout(const serve_call *call, const json_t *entry, const char *wanted) {
    fds__text *out = &call->reply->body;
    const char *ref = json_string_value(json_object_get(json_object_get(entry, "text"), "ref")),
               *account = json_string_value(json_object_get(entry, "account")),
               *at = json_string_value(json_object_get(entry, "at"));
    char money[32];
    if (wanted && (!ref || strcmp(ref, wanted) != 0))
        return;
    fds__text_print(out, "%.10s,", at ? at : "");
    fds__text_csv(out, account ? account : "");
    fds__text_print(out, ",%s,%lld,",
                    fds_money_text(json_integer_value(json_object_get(entry, "amount")),
                                   fds_ledger_decimals(call->ledger), money),
                    (long long)json_integer_value(json_object_get(entry, "index")));
    fds__text_csv(out, ref ? ref : "");
    fds__text_add(out, "\n", 1);
}

/* In parts: payouts are among very many other entries. */
fds_status serve_api_payouts(serve_call *call, fds_error *err) {
    serve_job *job = call->job;
    char *text = NULL;
    json_t *page = NULL;
    const fds_ledger_listing what = {.account = UINT64_MAX,
                                     .kind = "payout",
                                     .before = job->at.next ? job->at.next : UINT64_MAX,
                                     .limit = LISTED_AT_ONCE,
                                     .viewer = UINT64_MAX};
    if (!job->at.next)
        fds__text_print(&call->reply->body, "date,account,amount,entry,ref\n");
    TRY(fds_ledger_entries(call->ledger, &what, &text, err));
    fds_status status = fds__json_parse("entries", text, strlen(text), &page, err);
    fds_text_free(text);
    TRY(status);
    const json_t *list = json_object_get(page, "entries");
    for (size_t i = 0; i < json_array_size(list); i++)
        add_payout(call, json_array_get(list, i), serve_arg_text(call, "ref"));
    job->at.next = (uint64_t)json_integer_value(json_object_get(page, "before"));
    job->is_unfinished = json_is_true(json_object_get(page, "more"));
    json_decref(page);
    if (call->reply->body.used > SERVE_FILE)
        return fds__fail(err, FDS_ERR_LIMIT, "there are too many payouts: name their \"ref\"");
    call->reply->type = "text/csv; charset=utf-8";
    call->reply->file = "payouts.csv";
    return FDS_OK;
}
