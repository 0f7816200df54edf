/* SPDX-License-Identifier: Apache-2.0
 * A server: what it opens, in which order, and how it ends.
 *
 * Stopping: requests that have begun are answered, then the worker ends, then the connections, then the
 * ledger. No connection may be suspended when libmicrohttpd stops: the worker resumes the last of them,
 * and what comes later is refused. */
#include "serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_PASSED_FD = 3, MAX_PEM = 1 << 20, BACKLOG = 1024, HELD_TIMES = 32, MILLION = 1000000 };
enum { MOST_JSON = 4 << 20 }; /* what jansson makes of it takes some 50 times as much */

/* ---- parameters ---- */

static fds_status copy_text(const char *text, char **out, fds_error *err) {
    *out = text ? fds__strdup(text) : NULL;
    return *out || !text ? FDS_OK : fds__fail_nomem(err, strlen(text) + 1);
}

static fds_status check(const fds_params *p, fds_error *err) {
    if (!p || p->job != FDS__JOB_SERVE)
        return fds__fail(err, FDS_ERR_USAGE, "parameters of the job \"serve\" are needed");
    if (!p->model)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`model` is missing: name a run, for example mnist=mnist.run");
    if (p->ledger && !p->keys)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`ledger` needs `keys`: customers are known by their keys");
    if (p->ledger && !p->price)
        return fds__fail(err, FDS_ERR_USAGE, "`ledger` needs `price`, for example 0.01");
    bool has_share = fds__is_given(p, audit_share);
    if (!p->ledger && (p->price || fds__is_given(p, fee) || p->signing_key || has_share))
        return fds__fail(err, FDS_ERR_USAGE, "`%s` needs `ledger`",
                         p->price         ? "price"
                         : p->signing_key ? "signing_key"
                         : has_share      ? "audit_share"
                                          : "fee");
    if (!p->ledger && p->only_private)
        return fds__fail(err, FDS_ERR_USAGE, "`private` needs `ledger`");
    if (!p->tls_cert != !p->tls_key)
        return fds__fail(err, FDS_ERR_USAGE, "`tls_cert` and `tls_key` go together");
    return FDS_OK;
}

static fds_status read_settings(fds_server *s, const fds_params *p, fds_error *err) {
    serve_settings *set = &s->set;
    *set = (serve_settings){
        .limits = {.batch = (size_t)p->max_batch, .json = MIN((size_t)p->max_bytes, MOST_JSON)},
        .max_bytes = (size_t)p->max_bytes,
        .held_bytes = (size_t)p->max_bytes * HELD_TIMES,
        .connections = (unsigned)p->connections,
        .connections_each = (unsigned)p->connections_each,
        .rate = p->rate,
        .rate_each = p->rate_each,
        .idle_s = p->idle_s,
        .request_s = p->request_s,
        .drain_s = p->drain_s,
        .min_rate = p->min_rate,
        .fee_ppm = (uint32_t)(p->fee * MILLION + 0.5),
        .policy = p->policy == 1 ? "signed" : "clip",
    };
    set->standards = (serve_standards){.min_agreement = p->min_agreement,
                                       .max_misallocation = p->max_misallocation,
                                       .min_coverage = p->min_coverage};
    TRY(copy_text(p->audit_groups, &set->audit_groups, err));
    TRY(copy_text(p->force_run, &set->standards.forced, err));
    TRY(copy_text(p->force_reason, &set->standards.reason, err));
    TRY(copy_text(p->model, &set->models, err));
    TRY(copy_text(p->keys, &set->keys_path, err));
    TRY(copy_text(p->ledger, &set->ledger, err));
    s->params = fds__params_default(FDS__JOB_EXPLAIN);
    s->params.threads = p->threads;
    s->has_keys = p->keys != NULL;
    return FDS_OK;
}

/* ---- the ledger ---- */

static fds_status read_price(fds_server *s, const char *text, fds_error *err) {
    TRY(fds_ledger_units(s->ledger, text, &s->set.price, err));
    return s->set.price >= 1
               ? FDS_OK
               : fds__fail(err, FDS_ERR_USAGE,
                           "`price` must be at least one unit of the ledger (got %s)", text);
}

static fds_status open_ledger(fds_server *s, const fds_params *p, fds_error *err) {
    if (!p->ledger)
        return FDS_OK;
    TRY(fds_ledger_open(p->ledger, FDS_LEDGER_WRITE, p->signing_key, &s->ledger, err));
    fds_ledger_privacy privacy;
    fds_ledger_privacy_of(s->ledger, &privacy);
    s->is_private = privacy.is_private;
    if (p->only_private && !s->is_private)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`private`: %s is not private; fds privacy on makes it so, before its first "
            "prediction",
            fds_ledger_name(s->ledger));
    TRY(read_price(s, p->price, err));
    fds_ledger_totals totals; /* read all entries once, now: not while customers wait */
    TRY(fds_ledger_sum(s->ledger, &totals, err));
    return serve_proposals_read(s, err);
}

static fds_status enter_customer(fds_server *s, serve_role role, const char *name, fds_error *err) {
    uint64_t account;
    return role == SERVE_CUSTOMER
               ? fds_ledger_account(s->ledger, FDS_ACCOUNT_CUSTOMER, name, &account, err)
               : FDS_OK;
}

/* Runs that the ledger must know. */
static fds_status enter_runs(fds_server *s, serve_models *models, fds_error *err) {
    fds_status status = FDS_OK;
    pthread_mutex_lock(&s->ledger_lock);
    for (size_t i = 0; s->ledger && i < models->count && status == FDS_OK; i++) {
        serve_model *m = &models->items[i];
        const fds_ledger_run run = {.name = m->name,
                                    .sha256 = m->sha256,
                                    .payees = m->payee_names,
                                    .count = m->payees->count,
                                    .policy = s->set.policy,
                                    .fee_ppm = s->set.fee_ppm};
        status = fds_ledger_add_run(s->ledger, &run, &m->ledger_run, err);
    }
    pthread_mutex_unlock(&s->ledger_lock);
    return status;
}

/* The same of customers. */
static fds_status enter_customers(fds_server *s, const serve_keys *keys, fds_error *err) {
    fds_status status = FDS_OK;
    pthread_mutex_lock(&s->ledger_lock);
    for (size_t i = 0; s->ledger && i < keys->count && status == FDS_OK; i++)
        status = enter_customer(s, keys->items[i].role, keys->items[i].account, err);
    for (size_t i = 0; s->ledger && i < keys->login_count && status == FDS_OK; i++)
        status = enter_customer(s, keys->logins[i].role, keys->logins[i].account, err);
    pthread_mutex_unlock(&s->ledger_lock);
    return status;
}

/* ---- threads beside those that serve ---- */

void serve_lower_priority(void) { setpriority(PRIO_PROCESS, 0, 5); } /* 0: this thread, on Linux */

/* ---- runs and keys ---- */

/* Opens all runs anew; those that were there go only if that succeeds. */
static fds_status load_models(fds_server *s, fds_error *err) {
    serve_models *models = NULL;
    TRY(serve_models_open(s->set.models, &s->params, s->ledger != NULL, &models, err));
    fds_status status = serve_admit(s, models, err);
    if (status == FDS_OK)
        status = enter_runs(s, models, err);
    if (status == FDS_OK) {
        pthread_mutex_lock(&s->lock);
        serve_models *old = s->models;
        s->models = models;
        pthread_mutex_unlock(&s->lock);
        models = old;
        serve_audit_reload(s);
    }
    serve_models_release(models);
    return status;
}

/* The same of keys and logins. */
static fds_status load_keys(fds_server *s, fds_error *err) {
    serve_keys keys = {0};
    if (!s->has_keys)
        return FDS_OK;
    TRY(serve_keys_read(s->set.keys_path, &keys, err));
    fds_status status = enter_customers(s, &keys, err);
    if (status == FDS_OK) {
        pthread_mutex_lock(&s->lock);
        serve_keys old = s->keys;
        s->keys = keys;
        serve_sessions_keep(s->sessions, &s->keys);
        pthread_mutex_unlock(&s->lock);
        keys = old;
    }
    serve_keys_free(&keys);
    return status;
}

/* A key can be withdrawn while a run is broken. */
fds_status fds_server_reload(fds_server *server, fds_error *err) {
    fds_error why = {0}, of_keys = {0};
    fds_status status = load_models(server, &why), keys_status = load_keys(server, &of_keys);
    if (keys_status != FDS_OK) {
        status = keys_status;
        why = of_keys;
    }
    serve_log_event(server, "reload", status == FDS_OK ? NULL : why.text);
    if (status != FDS_OK)
        return fds__fail(err, status, "%s", why.text);
    atomic_fetch_add(&server->metrics.reloads, 1);
    return FDS_OK;
}

/* ---- the socket ---- */

/* The first socket that systemd has opened for this process; -1: none. */
static int passed_socket(void) {
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    if (!pid || !count || strtol(pid, NULL, 10) != (long)getpid() || strtol(count, NULL, 10) < 1)
        return -1;
    return FIRST_PASSED_FD;
}

static bool is_loopback(const struct sockaddr *address) {
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;
    if (address->sa_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* Keys must not cross a network in clear text. name: of the address, for people. */
static fds_status check_plain(const fds_params *p, const struct sockaddr *address, const char *name,
                              fds_error *err) {
    if (is_loopback(address) || address->sa_family == AF_UNIX || p->tls_cert || p->allow_plain)
        return FDS_OK;
    return fds__fail(
        err, FDS_ERR_USAGE,
        "%s is no loopback address: give `tls_cert` and `tls_key`, or `allow_plain` if "
        "a proxy encrypts",
        name);
}

static fds_status bind_socket(const fds_params *p, const struct addrinfo *to, int *out,
                              fds_error *err) {
    const int on = 1;
    char name[128];
    snprintf(name, sizeof name, "`host` %.100s", p->host);
    TRY(check_plain(p, to->ai_addr, name, err));
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, to->ai_addr, to->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return fds__fail(err, FDS_ERR_IO, "cannot listen on %s port %llu: %s", p->host,
                         (unsigned long long)p->port, strerror(why));
    }
    *out = fd;
    return FDS_OK;
}

static fds_status open_socket(const fds_params *p, int *out, fds_error *err) {
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[8];
    *out = passed_socket();
    if (*out >= 0) {
        struct sockaddr_storage at = {0};
        socklen_t size = sizeof at;
        if (getsockname(*out, (struct sockaddr *)&at, &size) != 0)
            return fds__fail(err, FDS_ERR_IO, "the socket from systemd: %s", strerror(errno));
        return check_plain(p, (const struct sockaddr *)&at, "the socket from systemd", err);
    }
    const char *host = strcmp(p->host, "localhost") == 0 ? "127.0.0.1" : p->host;
    snprintf(port, sizeof port, "%u", (unsigned)p->port);
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`host` must be a numeric address such as 127.0.0.1 or ::1 (got %.100s)",
                         p->host);
    fds_status status = bind_socket(p, found, out, err);
    freeaddrinfo(found);
    return status;
}

/* Where the socket is, for people. */
static void name_address(fds_server *s, int fd, bool is_tls) {
    struct sockaddr_storage at = {0};
    socklen_t size = sizeof at;
    char host[64] = "", port[16] = "0";
    const char *scheme = is_tls ? "https" : "http";
    if (getsockname(fd, (struct sockaddr *)&at, &size) == 0 && at.ss_family != AF_UNIX)
        getnameinfo((struct sockaddr *)&at, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    s->port = (uint16_t)strtoul(port, NULL, 10);
    snprintf(s->address, sizeof s->address,
             at.ss_family == AF_INET6 ? "%s://[%s]:%s" : "%s://%s:%s", scheme, host, port);
}

static fds_status listen_and_serve(fds_server *s, const fds_params *p, fds_error *err) {
    serve_listen to = {.fd = -1};
    size_t size;
    uint8_t *cert = NULL, *key = NULL;
    fds_status status = FDS_OK;
    if (p->tls_cert)
        status = fds__file_read(p->tls_cert, MAX_PEM, &cert, &size, err);
    if (status == FDS_OK && p->tls_key)
        status = fds__file_read_secret(p->tls_key, MAX_PEM, &key, &size, err);
    if (status == FDS_OK)
        status = open_socket(p, &to.fd, err);
    if (status == FDS_OK) {
        name_address(s, to.fd, cert != NULL);
        to.tls_cert = (char *)cert;
        to.tls_key = (char *)key;
        status = serve_http_start(s, &to, err);
    }
    fds__free(cert);
    fds__free(key);
    return status;
}

/* ---- all of it ---- */

static void free_server(fds_server *s) {
    serve_queue_stop(s);
    serve_shadow_stop(s);
    serve_verify_stop(s->verify);
    serve_hasher_stop(s);
    serve_http_stop(s);
    serve_hasher_free(s->hasher);
    serve_sessions_free(s->sessions);
    serve_proposals_free(&s->proposals);
    serve_audit_free(s->audit);
    serve_models_release(s->models);
    serve_keys_free(&s->keys);
    serve_rates_free(s->rates);
    fds_ledger_close(s->ledger);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->ledger_lock);
    pthread_mutex_destroy(&s->log_lock);
    pthread_mutex_destroy(&s->queue.lock);
    pthread_cond_destroy(&s->queue.is_filled);
    fds__free(s->set.models);
    fds__free(s->set.keys_path);
    fds__free(s->set.ledger);
    fds__free(s->set.audit_groups);
    fds__free(s->set.standards.forced);
    fds__free(s->set.standards.reason);
    fds__free(s);
}

static fds_status start(fds_server *s, const fds_params *p, fds_error *err) {
    TRY(read_settings(s, p, err));
    TRY(serve_rates_create(&s->rates, err));
    TRY(serve_sessions_create(&s->sessions, err));
    TRY(serve_verify_create(&s->verify, err));
    TRY(open_ledger(s, p, err));
    TRY(load_models(s, err));
    TRY(load_keys(s, err));
    if (p->ledger)
        TRY(serve_shadow_open(s, p->signing_key ? p->signing_key : p->ledger, p->audit_share, NULL,
                              err));
    TRY(serve_shadow_start(s, err));
    TRY(serve_queue_start(s, err));
    TRY(serve_hasher_start(s, err));
    return listen_and_serve(s, p, err);
}

fds_status fds_server_start(const fds_params *params, fds_server_log log, void *user,
                            fds_server **out, fds_error *err) {
    fds_server *s;
    TRY(serve_http_check(err));
    TRY(check(params, err));
    TRY(NEW(s, 1, err));
    s->log = log;
    s->log_user = user;
    s->is_tls = params->tls_cert != NULL;
    s->metrics.start_s = fds__now_s();
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->ledger_lock, NULL);
    pthread_mutex_init(&s->log_lock, NULL);
    pthread_mutex_init(&s->queue.lock, NULL);
    pthread_cond_init(&s->queue.is_filled, NULL);
    fds_status status = start(s, params, err);
    if (status != FDS_OK) {
        free_server(s);
        return status;
    }
    serve_log_event(s, "start", NULL);
    *out = s;
    return FDS_OK;
}

uint16_t fds_server_port(const fds_server *server) { return server->port; }
const char *fds_server_address(const fds_server *server) { return server->address; }

void fds_server_stop(fds_server *s) {
    if (!s)
        return;
    atomic_store(&s->is_draining, true);
    serve_log_event(s, "drain", NULL);
    const struct timespec pause = {
        .tv_sec = (time_t)s->set.drain_s,
        .tv_nsec = (long)((s->set.drain_s - (double)(time_t)s->set.drain_s) * 1e9)};
    nanosleep(&pause, NULL);
    serve_http_drain(s, s->set.request_s);
    serve_log_event(s, "stop", NULL);
    free_server(s);
}
