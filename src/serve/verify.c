/* SPDX-License-Identifier: Apache-2.0
 * Verifying the whole ledger beside serving: everything computed again, on a thread of its own.
 *
 * The thread reads a snapshot. Of a file that is a copy, made in parts of 1 MiB under ledger_lock, between
 * which predictions are answered; entries that are added meanwhile are in it too. Then the thread has the
 * lowest priority, and so have those that hash for it: under load it takes what is left. Not before: a
 * thread that holds a lock must not wait for others. */
#include "serve/serve.h"

#include <time.h>

enum { PAUSE_NS = 4000000, STAGE = 16, TIME = 32 };

struct serve_verify {
    pthread_mutex_t lock; /* of what follows, but for the flag */
    pthread_t thread;
    bool has_thread; /* to be joined */
    bool is_running;
    atomic_bool is_cancelled;
    char stage[STAGE];
    uint64_t done, total;
    fds_auditor *auditor; /* what the last one that ended has found, or NULL */
    char verified_at[TIME];
    fds_error why; /* of the last one, if it has failed */
};

/* ---- the thread ---- */

static bool note_progress(serve_verify *v, const char *stage, uint64_t done, uint64_t total) {
    pthread_mutex_lock(&v->lock);
    snprintf(v->stage, sizeof v->stage, "%s", stage);
    v->done = done;
    v->total = total;
    pthread_mutex_unlock(&v->lock);
    return atomic_load(&v->is_cancelled);
}

static bool note_event(void *user, const fds_progress *p) {
    return note_progress(user, p->stage, p->done, p->total);
}

static bool let_others(void *user, uint64_t done, uint64_t total) {
    fds_server *server = user;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    pthread_mutex_unlock(&server->ledger_lock);
    bool is_cancelled = note_progress(server->verify, "copy", done, total);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&server->ledger_lock);
    return is_cancelled;
}

static fds_status verify(fds_server *server, fds_auditor *auditor, fds_error *err) {
    fds_ledger *snapshot = NULL;
    const fds_events events = {.progress = note_event, .user = server->verify};
    pthread_mutex_lock(&server->ledger_lock);
    fds_status status = fds_ledger_settle(server->ledger, err);
    if (status == FDS_OK)
        status = fds_ledger_snapshot(server->ledger, server->set.ledger, let_others, server,
                                     &snapshot, err);
    pthread_mutex_unlock(&server->ledger_lock);
    TRY(status);
    serve_lower_priority();
    status = fds_auditor_verify(auditor, snapshot, NULL, &events, err);
    fds_ledger_close(snapshot);
    return status;
}

static fds_status make_auditor(fds_auditor **out, fds_error *err) {
    fds_params *params = fds_params_create("trust");
    fds_status status =
        params ? fds_auditor_create(params, out, err) : fds__fail_nomem(err, sizeof *params);
    fds_params_free(params);
    return status;
}

/* The verdict stays with the time at which it was found. */
static void conclude(fds_server *server, fds_auditor *found, fds_status status,
                     const fds_error *why) {
    serve_verify *v = server->verify;
    struct tm parts;
    time_t now = time(NULL);
    gmtime_r(&now, &parts);
    pthread_mutex_lock(&v->lock);
    v->is_running = false;
    v->why = (fds_error){0};
    if (status == FDS_OK) {
        fds_auditor *old = v->auditor;
        v->auditor = found;
        found = old;
        strftime(v->verified_at, sizeof v->verified_at, "%Y-%m-%dT%H:%M:%SZ", &parts);
    } else {
        v->why = *why;
    }
    pthread_mutex_unlock(&v->lock);
    fds_auditor_free(found);
    serve_log_event(server, "verify", status == FDS_OK ? NULL : why->text);
}

static void *work(void *context) {
    fds_server *server = context;
    fds_auditor *auditor = NULL;
    fds_error err = {0};
    fds_status status = make_auditor(&auditor, &err);
    if (status == FDS_OK)
        status = verify(server, auditor, &err);
    conclude(server, auditor, status, &err);
    return NULL;
}

/* ---- start and stop ---- */

fds_status serve_verify_create(serve_verify **out, fds_error *err) {
    TRY(NEW(*out, 1, err));
    pthread_mutex_init(&(*out)->lock, NULL);
    return FDS_OK;
}

/* Under its lock. */
static fds_status start(fds_server *server, serve_verify *v, fds_error *err) {
    if (v->is_running)
        return FDS_OK;
    if (v->has_thread)
        pthread_join(v->thread, NULL); /* it has concluded */
    atomic_store(&v->is_cancelled, false);
    snprintf(v->stage, sizeof v->stage, "copy");
    v->done = v->total = 0;
    v->has_thread = v->is_running = pthread_create(&v->thread, NULL, work, server) == 0;
    return v->is_running ? FDS_OK : fds__fail(err, FDS_ERR_NOMEM, "cannot start a thread");
}

void serve_verify_stop(serve_verify *v) {
    if (!v)
        return;
    atomic_store(&v->is_cancelled, true);
    if (v->has_thread)
        pthread_join(v->thread, NULL);
    fds_auditor_free(v->auditor);
    pthread_mutex_destroy(&v->lock);
    fds__free(v);
}

/* ---- what it says ---- */

static json_t *progress_of(const serve_verify *v) {
    return v->is_running ? json_pack("{s:s, s:I, s:I}", "stage", v->stage, "done",
                                     (json_int_t)v->done, "total", (json_int_t)v->total)
                         : json_null();
}

static json_t *text_of(const char *text) { return *text ? json_string(text) : json_null(); }

static bool put_state(json_t *json, const serve_verify *v) {
    return fds__json_put(json, "verifying", progress_of(v)) &&
           fds__json_put(json, "verified_at", text_of(v->verified_at)) &&
           fds__json_put(json, "verify_error", text_of(v->why.text));
}

fds_status serve_verify_share(serve_verify *v, fds_auditor *auditor, fds_error *err) {
    pthread_mutex_lock(&v->lock);
    fds_status status = v->auditor ? fds_auditor_share_verdict(auditor, v->auditor, err) : FDS_OK;
    pthread_mutex_unlock(&v->lock);
    return status;
}

bool serve_verify_put(json_t *json, serve_verify *v) {
    pthread_mutex_lock(&v->lock);
    bool is_whole = put_state(json, v);
    pthread_mutex_unlock(&v->lock);
    return is_whole;
}

static fds_status send_state(serve_call *call, fds_error *err) {
    json_t *json = json_object();
    return serve_send_json(call, json, serve_verify_put(json, call->server->verify), err);
}

fds_status serve_api_verify(serve_call *call, fds_error *err) {
    serve_verify *v = call->server->verify;
    pthread_mutex_lock(&v->lock);
    fds_status status = start(call->server, v, err);
    pthread_mutex_unlock(&v->lock);
    TRY(status);
    return send_state(call, err);
}

fds_status serve_api_verify_cancel(serve_call *call, fds_error *err) {
    atomic_store(&call->server->verify->is_cancelled, true);
    return send_state(call, err);
}
