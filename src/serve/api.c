/* SPDX-License-Identifier: Apache-2.0
 * /api: the endpoints of the page, and what they have in common. docs/serve.md describes them.
 *
 * An endpoint that needs the ledger is a job of the worker. It takes milliseconds at most: what reads
 * many entries does so in parts, between which predictions are answered. */
#include "serve/serve.h"

#include <stdlib.h>

enum {
    CUSTOMER = 1 << SERVE_CUSTOMER,
    PROVIDER = 1 << SERVE_PROVIDER,
    AUDITOR = 1 << SERVE_AUDITOR,
    OPERATOR = 1 << SERVE_OPERATOR,
    STAFF = AUDITOR | OPERATOR,
    EVERYBODY = CUSTOMER | PROVIDER | STAFF
};

static const serve_endpoint endpoints[] = {
    {"account", false, EVERYBODY, serve_api_account},
    {"entries", false, EVERYBODY, serve_api_entries},
    {"entry", false, EVERYBODY, serve_api_entry},
    {"statement", false, EVERYBODY, serve_api_statement},
    {"receipt", false, PROVIDER | STAFF, serve_api_receipt},
    {"samples", false, PROVIDER | STAFF, serve_api_samples},
    {"accounts", false, STAFF, serve_api_accounts},
    {"overview", false, STAFF, serve_api_overview},
    {"audit", false, STAFF, serve_api_audit},
    {"audit/verify", true, STAFF, serve_api_verify},
    {"audit/cancel", true, STAFF, serve_api_verify_cancel},
    {"proposals", false, STAFF, serve_api_proposals},
    {"payouts", false, STAFF, serve_api_payouts},
    {"topup", true, OPERATOR, serve_api_topup},
    {"payout", true, OPERATOR, serve_api_payout},
    {"correct", true, OPERATOR, serve_api_correct},
    {"proposals/agree", true, OPERATOR, serve_api_agree},
    {"proposals/refuse", true, OPERATOR, serve_api_refuse},
};

const serve_endpoint *serve_endpoint_find(const char *path) {
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++)
        if (strcmp(path, endpoints[i].path) == 0)
            return &endpoints[i];
    return NULL;
}

/* ---- a call ---- */

/* Messages of the ledger name its file, and accounts that are like the one that was asked for: those
 * who see only their own are told less. */
static void refuse(serve_call *call, fds_status status, const fds_error *err) {
    bool is_staff = call->role == SERVE_AUDITOR || call->role == SERVE_OPERATOR;
    serve_reply *reply = call->reply;
    unsigned code = reply->status != 200                                    ? reply->status
                    : status == FDS_ERR_CONFLICT || status == FDS_ERR_LIMIT ? 409
                                                                            : serve_status(status);
    if (code >= 500) {
        serve_log_event(call->server, "failure", err->text);
        serve_refuse(reply, status == FDS_ERR_IO ? 503 : code, "%s", fds_status_text(status));
        reply->retry_s = reply->status == 503;
    } else if (status == FDS_ERR_NOT_FOUND && !is_staff) {
        serve_refuse(reply, 404, "there is nothing of yours by that name or number");
    } else if (status == FDS_ERR_CONFLICT && !is_staff) {
        serve_refuse(reply, code, "it cannot be done now");
    } else {
        serve_refuse(reply, code, "%s", err->text);
    }
}

void serve_api_answer(fds_server *server, serve_job *job) {
    fds_error err = {0};
    serve_call call = {.server = server,
                       .ledger = server->ledger,
                       .job = job,
                       .role = job->role,
                       .account = job->account,
                       .args = job->args,
                       .reply = &job->reply};
    if (!job->is_unfinished)
        job->reply = (serve_reply){.status = 200, .type = SERVE_JSON, .json_size = SIZE_MAX};
    job->is_unfinished = false;
    pthread_mutex_lock(&server->ledger_lock);
    fds_status status = job->endpoint->answer(&call, &err);
    pthread_mutex_unlock(&server->ledger_lock);
    if (status == FDS_OK && !job->is_unfinished)
        status = fds__text_check(&job->reply.body, &err);
    if (status == FDS_OK)
        return;
    job->is_unfinished = false;
    refuse(&call, status, &err);
}

/* ---- arguments ---- */

const char *serve_arg_text(const serve_call *call, const char *name) {
    const char *text = json_string_value(json_object_get(call->args, name));
    return text && *text ? text : NULL;
}

fds_status serve_arg_needed(const serve_call *call, const char *name, const char **out,
                            fds_error *err) {
    *out = serve_arg_text(call, name);
    return *out ? FDS_OK : fds__fail(err, FDS_ERR_USAGE, "\"%s\" is missing", name);
}

fds_status serve_arg_number(const serve_call *call, const char *name, uint64_t usual, uint64_t *out,
                            fds_error *err) {
    const json_t *value = json_object_get(call->args, name);
    const char *text = json_string_value(value);
    *out = usual;
    if (!value || json_is_null(value) || (text && !*text))
        return FDS_OK;
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *out = (uint64_t)json_integer_value(value);
        return FDS_OK;
    }
    if (!text || strlen(text) > 18 || strspn(text, "0123456789") != strlen(text))
        return fds__fail(err, FDS_ERR_USAGE, "\"%s\" must be a number", name);
    *out = strtoull(text, NULL, 10);
    return FDS_OK;
}

fds_status serve_arg_units(const serve_call *call, const char *name, int64_t *out, fds_error *err) {
    const char *text;
    TRY(serve_arg_needed(call, name, &text, err));
    return fds_ledger_units(call->ledger, text, out, err);
}

fds_status serve_arg_account(const serve_call *call, const char *name, uint64_t *account,
                             fds_error *err) {
    const char *text = serve_arg_text(call, name);
    if (call->role == SERVE_AUDITOR || call->role == SERVE_OPERATOR) {
        *account = UINT64_MAX;
        return text ? fds_ledger_find(call->ledger, text, account, err) : FDS_OK;
    }
    fds_account_kind kind =
        call->role == SERVE_CUSTOMER ? FDS_ACCOUNT_CUSTOMER : FDS_ACCOUNT_PROVIDER;
    TRY(fds_ledger_find(call->ledger, call->account, account, err));
    return fds_ledger_account_kind(call->ledger, *account) == kind
               ? FDS_OK
               : fds__fail(err, FDS_ERR_NOT_FOUND, "%s is the account of another kind",
                           call->account);
}

/* ---- answers ---- */

json_t *serve_money(const serve_call *call, int64_t units) {
    char text[32];
    return json_string(fds_money_text(units, fds_ledger_decimals(call->ledger), text));
}

fds_status serve_send_json(serve_call *call, json_t *root, bool is_whole, fds_error *err) {
    char *text = is_whole && root ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!text)
        return fds__fail_json(err);
    fds__text_add(&call->reply->body, text, strlen(text));
    fds__free(text);
    return FDS_OK;
}
