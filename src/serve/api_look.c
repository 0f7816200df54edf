/* SPDX-License-Identifier: Apache-2.0
 * What people look at: accounts, entries, statements, receipts, and all of it at a glance. */
#include "serve/serve.h"

enum { MOST_LISTED = 100, USUALLY_LISTED = 50, AT_ONCE = 1024, ACCOUNTS_AT_ONCE = 256 };

static const char *const kinds[] = {"platform", "customer", "provider"};

static bool is_staff(const serve_call *call) {
    return call->role == SERVE_AUDITOR || call->role == SERVE_OPERATOR;
}

/* Who may see only his own postings. */
static uint64_t viewer_of(const serve_call *call, uint64_t account) {
    return is_staff(call) ? UINT64_MAX : account;
}

static fds_status need_account(const serve_call *call, const char *name, uint64_t *account,
                               fds_error *err) {
    TRY(serve_arg_account(call, name, account, err));
    return *account != UINT64_MAX
               ? FDS_OK
               : fds__fail(err, FDS_ERR_USAGE, "\"%s\" is missing: whose account?", name);
}

/* A text of the ledger as the answer. */
static fds_status send_text(serve_call *call, char *text) {
    fds__text_add(&call->reply->body, text, strlen(text));
    fds_text_free(text);
    return FDS_OK;
}

/* ---- one account ---- */

/* Units become money; sums are kept. */
static json_t *earning_json(const serve_call *call, const json_t *row, int64_t *units,
                            uint64_t *count) {
    json_t *out = json_object();
    const json_t *error = json_object_get(row, "error");
    json_int_t own = json_integer_value(json_object_get(row, "units"));
    fds__text number = {0};
    if (json_is_number(error)) {
        double scale = fds__money_scale(fds_ledger_decimals(call->ledger));
        fds__text_fixed(&number, fds_ledger_decimals(call->ledger),
                        json_number_value(error) / scale);
    }
    bool is_whole =
        fds__json_share(out, "day", json_object_get(row, "day")) &&
        fds__json_share(out, "label", json_object_get(row, "label")) &&
        fds__json_put(out, "amount", serve_money(call, own)) &&
        fds__json_share(out, "count", json_object_get(row, "count")) &&
        fds__json_put(out, "error", number.data ? json_string(number.data) : json_null());
    fds__free(number.data);
    *units += own;
    *count += (uint64_t)json_integer_value(json_object_get(row, "count"));
    return fds__json_keep_if(out, is_whole);
}

static fds_status put_earnings(const serve_call *call, uint64_t account, json_t *root,
                               fds_error *err) {
    char *text = NULL;
    json_t *read = NULL, *list = json_array(), *total = json_object();
    int64_t units = 0;
    uint64_t count = 0;
    size_t i;
    const json_t *row;
    fds_status status = fds_ledger_earnings(call->ledger, account, &text, err);
    if (status == FDS_OK)
        status = fds__json_parse("earnings", text, strlen(text), &read, err);
    fds_text_free(text);
    bool is_whole = status == FDS_OK;
    json_array_foreach(json_object_get(read, "earnings"), i, row) is_whole =
        is_whole && fds__json_append(list, earning_json(call, row, &units, &count));
    is_whole = is_whole && fds__json_put(total, "amount", serve_money(call, units)) &&
               fds__json_put(total, "count", json_integer((json_int_t)count)) &&
               fds__json_share(root, "earnings", list) && fds__json_share(root, "total", total);
    json_decref(read);
    json_decref(list);
    json_decref(total);
    return status == FDS_OK && !is_whole ? fds__fail_json(err) : status;
}

fds_status serve_api_account(serve_call *call, fds_error *err) {
    uint64_t account;
    TRY(need_account(call, "name", &account, err));
    const char *name = fds_ledger_account_name(call->ledger, account);
    int64_t balance = is_staff(call) ? fds_ledger_balance(call->ledger, account)
                                     : fds_ledger_released(call->ledger, account);
    json_t *root = json_object();
    fds_status status = put_earnings(call, account, root, err);
    if (status != FDS_OK) {
        json_decref(root);
        return status;
    }
    bool is_whole =
        fds__json_put(root, "name", json_string(name)) &&
        fds__json_put(root, "kind",
                      json_string(kinds[fds_ledger_account_kind(call->ledger, account)])) &&
        fds__json_put(root, "balance", serve_money(call, balance)) &&
        fds__json_put(root, "pending",
                      serve_money(call, serve_proposals_pending(call->server, name)));
    return serve_send_json(call, root, is_whole, err);
}

/* ---- all accounts ---- */

static fds_status account_json(const serve_call *call, uint64_t account, json_t **out,
                               fds_error *err) {
    int64_t units;
    uint64_t count;
    fds_account_kind kind = fds_ledger_account_kind(call->ledger, account);
    TRY(fds_ledger_earned(call->ledger, account, &units, &count, err));
    json_t *root = json_object();
    bool is_provider = kind == FDS_ACCOUNT_PROVIDER;
    bool is_whole =
        fds__json_put(root, "name", json_string(fds_ledger_account_name(call->ledger, account))) &&
        fds__json_put(root, "kind", json_string(kinds[kind])) &&
        fds__json_put(root, "balance",
                      serve_money(call, fds_ledger_balance(call->ledger, account))) &&
        fds__json_put(root, "earned", is_provider ? serve_money(call, units) : json_null()) &&
        fds__json_put(root, "predictions",
                      is_provider ? json_integer((json_int_t)count) : json_null());
    *out = fds__json_keep_if(root, is_whole);
    return *out ? FDS_OK : fds__fail_json(err);
}

static fds_status read_kind(const serve_call *call, bool *has_kind, fds_account_kind *kind,
                            fds_error *err) {
    const char *name = serve_arg_text(call, "kind");
    *has_kind = name != NULL;
    for (int i = 0; name && i < 3; i++)
        if (strcmp(name, kinds[i]) == 0) {
            *kind = (fds_account_kind)i;
            return FDS_OK;
        }
    return name ? fds__fail(err, FDS_ERR_USAGE,
                            "\"kind\" must be customer, provider or platform (got %.60s)", name)
                : FDS_OK;
}

/* In parts: there may be very many. */
fds_status serve_api_accounts(serve_call *call, fds_error *err) {
    fds__text *out = &call->reply->body;
    bool has_kind;
    fds_account_kind kind = FDS_ACCOUNT_PLATFORM;
    uint64_t all = fds_ledger_accounts(call->ledger);
    TRY(read_kind(call, &has_kind, &kind, err));
    if (call->job->at.next == 0)
        fds__text_print(out, "{\"accounts\":[");
    for (size_t i = 0; i < ACCOUNTS_AT_ONCE && call->job->at.next < all; i++) {
        uint64_t account = call->job->at.next++;
        json_t *one = NULL;
        if (has_kind && fds_ledger_account_kind(call->ledger, account) != kind)
            continue;
        fds__text_add(out, ",", out->used && out->data[out->used - 1] == '}');
        TRY(account_json(call, account, &one, err));
        TRY(serve_send_json(call, one, true, err));
    }
    if (out->used > SERVE_FILE)
        return fds__fail(err, FDS_ERR_LIMIT, "the list is too long: ask for one kind");
    call->job->is_unfinished = call->job->at.next < all;
    if (!call->job->is_unfinished)
        fds__text_print(out, "]}");
    return FDS_OK;
}

/* ---- entries ---- */

fds_status serve_api_entries(serve_call *call, fds_error *err) {
    fds_ledger_listing what = {.kind = serve_arg_text(call, "kind")};
    uint64_t limit;
    char *text = NULL;
    TRY(serve_arg_account(call, "account", &what.account, err));
    TRY(serve_arg_number(call, "before", UINT64_MAX, &what.before, err));
    TRY(serve_arg_number(call, "limit", USUALLY_LISTED, &limit, err));
    what.limit = (size_t)MIN(MAX(limit, 1), (uint64_t)MOST_LISTED);
    what.viewer = viewer_of(call, what.account);
    TRY(fds_ledger_entries(call->ledger, &what, &text, err));
    return send_text(call, text);
}

static fds_status need_index(const serve_call *call, uint64_t *index, fds_error *err) {
    TRY(serve_arg_number(call, "index", UINT64_MAX, index, err));
    return *index != UINT64_MAX ? FDS_OK
                                : fds__fail(err, FDS_ERR_USAGE, "\"index\" of an entry is missing");
}

/* Others than the staff see entries in which they have a posting, which is then there. */
static bool has_posting(const char *text) {
    json_t *entry = json_loads(text, 0, NULL);
    bool has = json_array_size(json_object_get(entry, "postings")) > 0;
    json_decref(entry);
    return has;
}

fds_status serve_api_entry(serve_call *call, fds_error *err) {
    uint64_t index, account;
    char *text = NULL;
    TRY(need_index(call, &index, err));
    TRY(serve_arg_account(call, "account", &account, err));
    TRY(fds_ledger_entry(call->ledger, index, viewer_of(call, account), &text, err));
    if (!is_staff(call) && !has_posting(text)) {
        fds_text_free(text);
        return fds__fail(err, FDS_ERR_NOT_FOUND, "entry %llu is of others",
                         (unsigned long long)index);
    }
    return send_text(call, text);
}

/* ---- files ---- */

static bool add_part(void *user, const char *data, size_t size) {
    fds__text_add(user, data, size);
    return true;
}

fds_status serve_api_statement(serve_call *call, fds_error *err) {
    serve_job *job = call->job;
    uint64_t account;
    TRY(need_account(call, "account", &account, err));
    TRY(fds_ledger_statement_part(call->ledger, account, serve_arg_text(call, "from"),
                                  serve_arg_text(call, "to"), &job->at, AT_ONCE, add_part,
                                  &call->reply->body, err));
    if (call->reply->body.used > SERVE_FILE)
        return fds__fail(err, FDS_ERR_LIMIT, "the statement is too long: ask for fewer days");
    job->is_unfinished = !job->at.is_over;
    call->reply->type = "text/csv; charset=utf-8";
    call->reply->file = "statement.csv";
    return FDS_OK;
}

fds_status serve_api_receipt(serve_call *call, fds_error *err) {
    uint64_t index, account;
    char *proof = NULL;
    TRY(need_index(call, &index, err));
    TRY(need_account(call, "account", &account, err));
    TRY(fds_ledger_receipt(call->ledger, index, account, &proof, err));
    call->reply->type = "text/plain; charset=utf-8";
    call->reply->file = "receipt.txt";
    return send_text(call, proof);
}

/* ---- all of it ---- */

/* What the platform owes, by kind of account; the sum of all is what is missing, 0. */
static bool put_money(const serve_call *call, json_t *root, const fds_ledger_totals *totals) {
    int64_t owed[3] = {0}, cash = 0, fees = 0, sum = 0;
    json_t *money = json_object();
    for (uint64_t i = 0; i < fds_ledger_accounts(call->ledger); i++) {
        int64_t balance = fds_ledger_balance(call->ledger, i);
        const char *name = fds_ledger_account_name(call->ledger, i);
        fds_account_kind kind = fds_ledger_account_kind(call->ledger, i);
        owed[kind] += balance;
        if (kind == FDS_ACCOUNT_PLATFORM && strcmp(name, "cash") == 0)
            cash = balance;
        else if (kind == FDS_ACCOUNT_PLATFORM)
            fees += balance;
    }
    /* what came in, less what was paid out, is owed to somebody */
    sum = totals->in - totals->out - owed[FDS_ACCOUNT_CUSTOMER] - owed[FDS_ACCOUNT_PROVIDER] - fees;
    sum = sum ? sum : totals->in - totals->out + cash;
    bool is_whole =
        fds__json_put(money, "in", serve_money(call, totals->in)) &&
        fds__json_put(money, "out", serve_money(call, totals->out)) &&
        fds__json_put(money, "customers", serve_money(call, owed[FDS_ACCOUNT_CUSTOMER])) &&
        fds__json_put(money, "providers", serve_money(call, owed[FDS_ACCOUNT_PROVIDER])) &&
        fds__json_put(money, "fees", serve_money(call, fees)) &&
        fds__json_put(money, "difference", serve_money(call, sum)) &&
        fds__json_share(root, "money", money);
    json_decref(money);
    return is_whole;
}

static bool put_models(fds_server *server, json_t *root) {
    serve_models *models = serve_models_now(server);
    json_t *list = json_array();
    bool is_whole = fds__json_share(root, "models", list);
    for (size_t i = 0; is_whole && i < models->count; i++) {
        const serve_model *m = &models->items[i];
        is_whole = fds__json_append(
            list, json_pack("{s:s, s:s, s:i, s:i}", "name", m->name, "version", m->version,
                            "players", (int)m->info.players, "payees", (int)m->payees->count));
    }
    json_decref(list);
    serve_models_release(models);
    return is_whole;
}

fds_status serve_api_overview(serve_call *call, fds_error *err) {
    const serve_glance g = serve_metrics_glance(&call->server->metrics, fds__now_s());
    fds_ledger_totals totals;
    char *note = NULL;
    TRY(fds_ledger_sum(call->ledger, &totals, err));
    TRY(fds_ledger_checkpoint(call->ledger, &note, err));
    json_t *root = json_object();
    bool is_whole =
        fds__json_put(root, "entries", json_integer((json_int_t)fds_ledger_size(call->ledger))) &&
        fds__json_put(root, "checkpoint", json_string(note)) &&
        fds__json_put(root, "vkey", json_string(fds_ledger_vkey(call->ledger))) &&
        put_money(call, root, &totals) &&
        fds__json_put(root, "requests_per_s", json_real(g.requests_per_s)) &&
        fds__json_put(root, "p50_ms", json_real(g.p50_ms)) &&
        fds__json_put(root, "p99_ms", json_real(g.p99_ms)) &&
        fds__json_put(root, "paid",
                      json_integer((json_int_t)atomic_load(&call->server->metrics.paid))) &&
        fds__json_put(root, "failures", json_integer((json_int_t)g.failures)) &&
        put_models(call->server, root) && fds__json_put(root, "uptime_s", json_real(g.uptime_s));
    fds_text_free(note);
    return serve_send_json(call, root, is_whole, err);
}
