/* SPDX-License-Identifier: Apache-2.0
 * Connections, on libmicrohttpd.
 *
 * libmicrohttpd takes the first of several Content-Length headers, and ignores it beside
 * Transfer-Encoding; its timeouts count from the last byte. So the head of each request is checked
 * before anything else: exactly one Content-Length and Host, no Transfer-Encoding. And a thread of our
 * own watches the clock: the head of a request must be there idle_s after the connection or the last
 * answer, its body and the sending of its answer may each take request_s, and a body must come at
 * min_rate on average. A connection that is too slow is shut down.
 *
 * A request that waits for the worker is suspended, and nobody may touch it until it is resumed. */
#include "serve/serve.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    HEAD_BYTES = 32768, /* of a request's head, and of what is read at a time */
    GRACE_S = 5,        /* before the rate of an upload is judged */
    WATCH_MS = 100,
    THREADS = 2, /* that read and write; each has its part of the connections */
    LEAST_FOR_THREADS = 16
};

#define TLS_VERSIONS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

typedef enum { PHASE_HEAD, PHASE_BODY, PHASE_WAIT, PHASE_SEND } peer_phase;

/* A connection, between two of its neighbours. */
typedef struct peer {
    struct peer *before, *after;
    int fd;
    peer_phase phase;
    double since_s;
    uint64_t bytes; /* of the body so far */
} peer;

struct serve_http {
    fds_server *server;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock; /* of all peers */
    peer *first;
    pthread_t watcher;
    bool has_watcher;
    atomic_bool is_over;
};

/* ---- the watch ---- */

static bool is_too_slow(const fds_server *server, const peer *c, double now_s) {
    double elapsed_s = now_s - c->since_s;
    switch (c->phase) {
    case PHASE_HEAD:
        return elapsed_s > server->set.idle_s;
    case PHASE_BODY:
        return elapsed_s > server->set.request_s ||
               (elapsed_s > GRACE_S && (double)c->bytes < elapsed_s * (double)server->set.min_rate);
    case PHASE_SEND:
        return elapsed_s > server->set.request_s;
    default:
        return false; /* the worker always answers */
    }
}

static void *watch(void *context) {
    struct serve_http *http = context;
    const struct timespec pause = {.tv_nsec = WATCH_MS * 1000000L};
    while (!atomic_load(&http->is_over)) {
        double now_s = fds__now_s();
        pthread_mutex_lock(&http->lock);
        for (peer *c = http->first; c; c = c->after)
            if (is_too_slow(http->server, c, now_s))
                shutdown(c->fd, SHUT_RDWR); /* its thread finds it closed */
        pthread_mutex_unlock(&http->lock);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void enter(struct serve_http *http, peer *c, peer_phase phase) {
    pthread_mutex_lock(&http->lock);
    c->phase = phase;
    c->since_s = fds__now_s();
    c->bytes = 0;
    pthread_mutex_unlock(&http->lock);
}

static int socket_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code) {
    struct serve_http *http = context;
    peer *c = *socket_context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        c = fds__alloc_zero(1, sizeof *c);
        *socket_context = c;
        if (!c) /* it has no deadlines, and every request of it is refused */
            return;
        *c = (peer){.fd = socket_of(connection), .since_s = fds__now_s()};
        pthread_mutex_lock(&http->lock);
        c->after = http->first;
        if (http->first)
            http->first->before = c;
        http->first = c;
        pthread_mutex_unlock(&http->lock);
        atomic_fetch_add(&http->server->metrics.connections, 1);
        return;
    }
    if (!c)
        return;
    pthread_mutex_lock(&http->lock); /* the socket is open until we return */
    if (c->before)
        c->before->after = c->after;
    else
        http->first = c->after;
    if (c->after)
        c->after->before = c->before;
    pthread_mutex_unlock(&http->lock);
    atomic_fetch_sub(&http->server->metrics.connections, 1);
    fds__free(c);
}

static peer *peer_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* ---- a request's head ---- */

/* One request, with its connection. */
typedef struct {
    serve_request request; /* first: a job's owner */
    struct MHD_Connection *connection;
    struct serve_http *http;
    peer *from;
    size_t received, held; /* bytes of the body; those that count as held */
    bool is_closing;       /* the connection ends with the answer */
} exchange;

/* Headers that matter, and how many there are of each. */
typedef struct {
    bool has_odd;  /* a name that is none, or that a folded line was added to */
    bool is_twice; /* one that may be given once */
    unsigned lengths, hosts, encodings, codings;
    const char *length, *host, *key, *size, *authorization, *cookie, *origin, *site, *token;
} heads;

/* libmicrohttpd adds what a folded line says to the name of the header before it: "Transfer-Encoding:"
 * and " chunked" become "Transfer-Encodingchunked", which a proxy may have taken for what it was. */
static bool is_odd(const char *name) {
    static const char *const framing[] = {"Content-Length", "Transfer-Encoding"};
    static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm"
                                "nopqrstuvwxyz";
    for (size_t i = 0; i < sizeof framing / sizeof *framing; i++) {
        size_t size = strlen(framing[i]);
        if (strncasecmp(name, framing[i], size) == 0 && name[size])
            return true;
    }
    return !*name || strspn(name, token) != strlen(name);
}

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name,
                                    const char *value) {
    heads *h = context;
    const struct {
        const char *name;
        unsigned *count;
        const char **value;
    } known[] = {{"Content-Length", &h->lengths, &h->length},
                 {"Host", &h->hosts, &h->host},
                 {"Transfer-Encoding", &h->encodings, NULL},
                 {"Content-Encoding", &h->codings, NULL},
                 {"Idempotency-Key", NULL, &h->key},
                 {"Inference-Header-Content-Length", NULL, &h->size},
                 {"Authorization", NULL, &h->authorization},
                 {"Cookie", NULL, &h->cookie},
                 {"Origin", NULL, &h->origin},
                 {"Sec-Fetch-Site", NULL, &h->site},
                 {"X-FDS-Token", NULL, &h->token}};
    (void)kind;
    h->has_odd |= is_odd(name);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(name, known[i].name) == 0) {
            if (known[i].count)
                ++*known[i].count;
            else
                h->is_twice |= *known[i].value != NULL;
            if (known[i].value)
                *known[i].value = value ? value : "";
        }
    return MHD_YES;
}

/* Names and values after "?", as JSON; the last of a name counts. */
static enum MHD_Result add_argument(void *context, enum MHD_ValueKind kind, const char *name,
                                    const char *value) {
    (void)kind;
    fds__json_put(context, name, json_string(value ? value : "")); /* not UTF-8: not there */
    return MHD_YES;
}

/* What could make us and a proxy disagree on where a request ends. False: refused. */
static bool check_framing(const heads *h, bool is_post, const char *version, size_t *length,
                          serve_reply *reply) {
    const char *digits = h->lengths ? h->length : "0";
    *length = 0;
    if (h->has_odd)
        serve_refuse(reply, 400, "a header is malformed, or folded into two lines");
    else if (h->hosts > 1 || (h->hosts == 0 && strcmp(version, "HTTP/1.0") != 0))
        serve_refuse(reply, 400, "there must be exactly one Host");
    else if (h->encodings && h->lengths)
        serve_refuse(reply, 400, "Transfer-Encoding beside Content-Length is not accepted");
    else if (h->encodings)
        serve_refuse(reply, 411, "Transfer-Encoding is not accepted: send one Content-Length");
    else if (h->lengths > 1 || (is_post && h->lengths == 0))
        serve_refuse(reply, 411, "there must be exactly one Content-Length");
    else if (!*digits || strspn(digits, "0123456789") != strlen(digits))
        serve_refuse(reply, 400, "Content-Length must be a number");
    else if (strlen(digits) > 18)
        serve_refuse(reply, 413, "the body is too large");
    else if (h->is_twice)
        serve_refuse(reply, 400,
                     "Idempotency-Key, Inference-Header-Content-Length, Authorization, Cookie, "
                     "Origin, Sec-Fetch-Site and X-FDS-Token may be given once");
    else if (h->codings)
        serve_refuse(reply, 400, "Content-Encoding is not accepted: send the body as it is");
    else
        *length = (size_t)strtoull(digits, NULL, 10);
    if (!reply->status && !is_post && *length > 0)
        serve_refuse(reply, 400, "a request without POST has no body");
    return !reply->status;
}

static void find_remote(struct MHD_Connection *connection, serve_request *r,
                        uint8_t address[SERVE_WHO]) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *from = info ? info->client_addr : NULL;
    memset(address, 0, SERVE_WHO);
    if (from && from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)from;
        memcpy(address + 12, &v4->sin_addr, 4);
        inet_ntop(AF_INET, &v4->sin_addr, r->remote, sizeof r->remote);
    } else if (from && from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)from;
        if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
            memcpy(address + 12, v6->sin6_addr.s6_addr + 12, 4);
        else
            memcpy(address, &v6->sin6_addr, 8); /* one customer has 2^64 addresses of these */
        inet_ntop(AF_INET6, &v6->sin6_addr, r->remote, sizeof r->remote);
    }
}

/* Room for the body, if it is wanted; all bodies together are bounded. */
static void reserve_body(exchange *x, size_t length) {
    fds_server *server = x->http->server;
    serve_request *r = &x->request;
    if (!r->takes_body || r->reply->status)
        return;
    if (r->most_body && length > r->most_body) {
        serve_refuse(r->reply, 413, "a body of %zu bytes: at most %zu are accepted here", length,
                     r->most_body);
        return;
    }
    x->held = length;
    if (atomic_fetch_add(&server->metrics.bytes, length) + length > server->set.held_bytes ||
        !(r->body = fds__alloc(length))) {
        serve_refuse(r->reply, 503, "too many large requests at once");
        r->reply->retry_s = 1;
    }
    r->capacity = length;
}

static void read_head(exchange *x, const char *url, const char *method, const char *version) {
    fds_server *server = x->http->server;
    serve_request *r = &x->request;
    heads h = {0};
    size_t length = 0;
    serve_head head = {.method = method, .path = url};
    r->start_s = fds__now_s();
    r->reply = &r->job.reply;
    snprintf(r->method, sizeof r->method, "%s", method);
    snprintf(r->path, sizeof r->path, "%s", url);
    find_remote(x->connection, r, head.address);
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, count_header, &h);
    x->is_closing =
        !x->from || !check_framing(&h, strcmp(method, "POST") == 0, version, &length, r->reply);
    if (!x->from)
        serve_refuse(r->reply, 503, "out of memory");
    if (!x->is_closing && length > server->set.max_bytes) {
        serve_refuse(r->reply, 413, "a body of %zu bytes: at most %zu are accepted", length,
                     server->set.max_bytes);
        x->is_closing = true; /* reading it all would be what the limit is against */
    }
    if (!serve_route_admit(server, &head, r) || x->is_closing)
        return;
    head.authorization = h.authorization;
    head.idempotency = h.key;
    head.json_size = h.size;
    head.host = h.host;
    head.cookie = h.cookie;
    head.origin = h.origin;
    head.fetch_site = h.site;
    head.token = h.token;
    if (strncmp(url, "/api/", 5) == 0 && (head.query = json_object()))
        MHD_get_connection_values(x->connection, MHD_GET_ARGUMENT_KIND, add_argument, head.query);
    serve_route(server, &head, r);
    reserve_body(x, length);
}

/* ---- answers ---- */

static void free_body(void *data) { fds__free(data); }

/* What a browser may do with the page and with answers of /api: nothing but what the page needs. */
static void add_web_headers(struct MHD_Response *response, const serve_reply *reply) {
    char text[128];
    MHD_add_response_header(response, "Content-Security-Policy",
                            "default-src 'none'; script-src 'self'; style-src 'self'; "
                            "img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
                            "form-action 'none'; frame-ancestors 'none'");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    if (*reply->cookie)
        MHD_add_response_header(response, "Set-Cookie", reply->cookie);
    if (reply->file) {
        snprintf(text, sizeof text, "attachment; filename=\"%s\"", reply->file);
        MHD_add_response_header(response, "Content-Disposition", text);
    }
}

static void add_headers(struct MHD_Response *response, const exchange *x,
                        const serve_reply *reply) {
    char number[32];
    MHD_add_response_header(response, "Content-Type", reply->type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (x->request.is_web)
        add_web_headers(response, reply);
    if (reply->json_size != SIZE_MAX) {
        snprintf(number, sizeof number, "%zu", reply->json_size);
        MHD_add_response_header(response, "Inference-Header-Content-Length", number);
    }
    if (reply->retry_s) {
        snprintf(number, sizeof number, "%u", reply->retry_s);
        MHD_add_response_header(response, "Retry-After", number);
    }
    if (reply->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (reply->allow)
        MHD_add_response_header(response, "Allow", reply->allow);
    if (reply->is_repeated)
        MHD_add_response_header(response, "Idempotent-Replayed", "true");
    if (x->is_closing)
        MHD_add_response_header(response, "Connection", "close");
}

static enum MHD_Result send_reply(exchange *x) {
    serve_reply *reply = x->request.reply;
    if (reply->body.is_failed)
        return MHD_NO; /* no memory even for an error: the connection ends */
    /* raw tensors behind JSON are no JSON */
    if (reply->json_size != SIZE_MAX)
        reply->type = "application/octet-stream";
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback(
        reply->body.used, reply->body.data, free_body);
    if (!response)
        return MHD_NO;
    reply->body.data = NULL; /* the response's now; how much it was is logged */
    add_headers(response, x, reply);
    enter(x->http, x->from, PHASE_SEND);
    enum MHD_Result result = MHD_queue_response(x->connection, reply->status, response);
    MHD_destroy_response(response);
    return result;
}

static void on_done(serve_job *job) {
    exchange *x = job->owner;
    MHD_resume_connection(x->connection);
}

/* Hands the job to the worker, whose answer resumes the connection. */
static void hand_over(exchange *x) {
    serve_job *job = &x->request.job;
    job->done = on_done;
    job->owner = x;
    enter(x->http, x->from, PHASE_WAIT);
    MHD_suspend_connection(x->connection);
    fds_server *server = x->http->server;
    if (!(job->kind == SERVE_JOB_LOGIN ? serve_hasher_put : serve_queue_put)(server, job))
        MHD_resume_connection(x->connection);
}

/* ---- libmicrohttpd's calls ---- */

static void take_part(exchange *x, const char *data, size_t size) {
    serve_request *r = &x->request;
    x->received += size;
    pthread_mutex_lock(&x->http->lock);
    x->from->bytes += size;
    pthread_mutex_unlock(&x->http->lock);
    if (!r->body || r->reply->status)
        return;
    assert(size <=
           r->capacity - r->size); /* there is one Content-Length, and this is what it says */
    memcpy(r->body + r->size, data, size);
    r->size += size;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **state) {
    struct serve_http *http = context;
    exchange *x = *state;
    if (!x) { /* the head */
        if (!(x = fds__alloc_zero(1, sizeof *x)))
            return MHD_NO;
        *state = x;
        *x = (exchange){.connection = connection, .http = http, .from = peer_of(connection)};
        atomic_fetch_add(&http->server->metrics.requests, 1);
        if (x->from)
            enter(http, x->from, PHASE_BODY);
        read_head(x, url, method, version);
        return !x->from ? MHD_NO : x->is_closing ? send_reply(x) : MHD_YES;
    }
    if (*size > 0) {
        take_part(x, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (!x->request.is_queued) {
        serve_route_body(http->server, &x->request);
        if (x->request.is_queued) {
            hand_over(x);
            return MHD_YES;
        }
    }
    return send_reply(x);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code) {
    struct serve_http *http = context;
    fds_server *server = http->server;
    exchange *x = *state;
    (void)connection;
    if (!x)
        return;
    serve_request *r = &x->request;
    bool is_sent = code == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    if (r->job.kind == SERVE_JOB_LOGIN) { /* known only afterwards */
        r->role = r->job.role;
        memcpy(r->account, r->job.account, sizeof r->account);
    }
    const serve_record record = {.method = r->method,
                                 .path = r->path,
                                 .account = r->account,
                                 .role = r->role ? serve_role_name(r->role) : NULL,
                                 .remote = r->remote,
                                 .status = is_sent ? r->reply->status : 0,
                                 .seconds = fds__now_s() - r->start_s,
                                 .bytes_in = x->received,
                                 .bytes_out = r->reply->body.used,
                                 .samples = r->job.request.count};
    serve_metrics_count(&server->metrics, record.status, record.seconds);
    serve_log_request(server, &record);
    if (x->from)
        enter(http, x->from, PHASE_HEAD);
    fds__free(r->reply->body.data);
    fds__free(r->body);
    atomic_fetch_sub(&server->metrics.bytes, x->held);
    serve_job_clear(&r->job);
    fds__free(x);
    *state = NULL;
    atomic_fetch_sub(&server->metrics.requests, 1);
}

/* Its messages are about single connections; the log has these. */
static void on_message(void *context, const char *format, va_list args) {
    (void)context;
    (void)format;
    (void)args;
}

/* ---- starting and stopping ---- */

fds_status serve_http_check(fds_error *err) {
    (void)err;
    return FDS_OK;
}

static fds_status start_daemon(struct serve_http *http, const serve_listen *listen,
                               fds_error *err) {
    const serve_settings *set = &http->server->set;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                     (listen->tls_cert ? MHD_USE_TLS : 0u);
    unsigned threads = set->connections < LEAST_FOR_THREADS ? 0 : THREADS;
    const struct MHD_OptionItem options[] = {
        {MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)on_message, NULL}, /* first: it is used at once */
        {MHD_OPTION_LISTEN_SOCKET, listen->fd, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, set->connections, NULL},
        {MHD_OPTION_PER_IP_CONNECTION_LIMIT, set->connections_each, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEAD_BYTES, NULL},
        {MHD_OPTION_THREAD_POOL_SIZE, threads, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, http},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, http},
        {listen->tls_cert ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, listen->tls_cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, listen->tls_key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_VERSIONS},
        {MHD_OPTION_END, 0, NULL}};
    http->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, http, MHD_OPTION_ARRAY,
                                    options, MHD_OPTION_END);
    if (http->daemon)
        return FDS_OK;
    close(listen->fd);
    return fds__fail(err, FDS_ERR_IO, "cannot serve%s",
                     listen->tls_cert ? ": `tls_cert` and `tls_key` must be a certificate and its "
                                        "key, both as PEM"
                                      : " HTTP on this socket");
}

fds_status serve_http_start(fds_server *server, const serve_listen *listen, fds_error *err) {
    struct serve_http *http;
    fds_status status = NEW(http, 1, err);
    if (status != FDS_OK) {
        close(listen->fd);
        return status;
    }
    http->server = server;
    pthread_mutex_init(&http->lock, NULL);
    server->http = http;
    TRY(start_daemon(http, listen, err));
    if (pthread_create(&http->watcher, NULL, watch, http) != 0)
        return fds__fail(err, FDS_ERR_NOMEM, "cannot start a thread");
    http->has_watcher = true;
    return FDS_OK;
}

void serve_http_drain(fds_server *server, double limit_s) {
    const struct timespec pause = {.tv_nsec = 2000000};
    double end_s = fds__now_s() + limit_s;
    int listening = MHD_quiesce_daemon(server->http->daemon);
    if (listening != MHD_INVALID_SOCKET)
        close(listening);
    while (atomic_load(&server->metrics.requests) > 0 && fds__now_s() < end_s)
        nanosleep(&pause, NULL);
}

void serve_http_stop(fds_server *server) {
    struct serve_http *http = server->http;
    if (!http)
        return;
    atomic_store(&http->is_over, true);
    if (http->has_watcher)
        pthread_join(http->watcher, NULL);
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    pthread_mutex_destroy(&http->lock);
    fds__free(http);
    server->http = NULL;
}
