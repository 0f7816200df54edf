/* SPDX-License-Identifier: Apache-2.0
 * The lights of the page: what the checks of an audit say about the ledger, as it grows.
 *
 * The auditor reads what is new when somebody asks, in parts of some milliseconds, between which
 * predictions are answered. Only the check "ledger" reads everything anew, when an auditor or operator
 * wants it (verify.c). */
#include "serve/serve.h"

enum { AT_ONCE = 512 };

struct serve_audit {
    fds_auditor *auditor;
};

void serve_audit_free(serve_audit *audit) {
    if (!audit)
        return;
    fds_auditor_free(audit->auditor);
    fds__free(audit);
}

/* With the runs that are served: what their validation.json says is the level to compare with. */
static fds_status open_audit(fds_server *server, serve_audit **out, fds_error *err) {
    serve_audit *audit;
    fds_params *params = fds_params_create("trust");
    serve_models *models = serve_models_now(server);
    fds_status status = params ? FDS_OK : fds__fail_nomem(err, sizeof *params);
    for (size_t i = 0; i < models->count && status == FDS_OK; i++)
        status = fds_params_set(params, "run", models->items[i].folder, err);
    serve_models_release(models);
    if (status == FDS_OK && server->set.audit_groups)
        status = fds_params_set(params, "groups", server->set.audit_groups, err);
    if (status == FDS_OK)
        status = NEW(audit, 1, err);
    if (status == FDS_OK) {
        status = fds_auditor_create(params, &audit->auditor, err);
        if (status == FDS_OK)
            *out = audit;
        else
            fds__free(audit);
    }
    fds_params_free(params);
    return status;
}

/* What is known of earlier runs stays, and what they were found to do. */
void serve_audit_reload(fds_server *server) {
    serve_models *models = serve_models_now(server);
    fds_error err = {0};
    fds_status status = FDS_OK;
    pthread_mutex_lock(&server->ledger_lock);
    for (size_t i = 0; server->audit && i < models->count && status == FDS_OK; i++)
        status = fds_auditor_add_run(server->audit->auditor, models->items[i].folder, &err);
    pthread_mutex_unlock(&server->ledger_lock);
    serve_models_release(models);
    if (status != FDS_OK)
        serve_log_event(server, "audit", err.text);
}

static fds_status report(serve_call *call, fds_error *err) {
    const fds_server *server = call->server;
    char *text = NULL;
    json_t *json = NULL;
    TRY(serve_verify_share(server->verify, server->audit->auditor, err));
    TRY(fds_auditor_report(server->audit->auditor, &text, err));
    fds_status status = fds__json_parse("report", text, strlen(text), &json, err);
    fds_text_free(text);
    TRY(status);
    const serve_shadow *shadow = server->shadow;
    bool is_whole =
        fds__json_put(json, "waiting",
                      json_integer((json_int_t)atomic_load(&server->metrics.audits_waiting))) &&
        serve_verify_put(json, server->verify) &&
        fds__json_put(json, "audit_share",
                      json_real(shadow ? shadow->secrets.share_ppm / 1e6 : 0)) &&
        fds__json_put(json, "missed",
                      json_integer((json_int_t)atomic_load(&server->metrics.audits_missed)));
    return serve_send_json(call, json, is_whole, err);
}

fds_status serve_api_audit(serve_call *call, fds_error *err) {
    fds_server *server = call->server;
    bool is_over;
    if (!server->audit)
        TRY(open_audit(server, &server->audit, err));
    fds_status status =
        fds_auditor_take(server->audit->auditor, call->ledger, AT_ONCE, &is_over, err);
    if (status != FDS_OK) { /* it may have taken a part: the next one begins anew */
        serve_audit_free(server->audit);
        server->audit = NULL;
        return status;
    }
    if (!is_over) {
        call->job->is_unfinished = true;
        return FDS_OK;
    }
    return report(call, err);
}
