/* SPDX-License-Identifier: Apache-2.0
 * Which endpoint a request is for, whether its sender may use it, and what follows.
 *
 * What the head alone decides is decided before the body: an unknown key, a model that is not there, a
 * rate. Such a body is read and dropped, so that the connection can go on. */
#include "serve/serve.h"

#include <stdarg.h>
#include <stdlib.h>

typedef enum {
    ROUTE_NONE,
    ROUTE_LIVE,
    ROUTE_READY,
    ROUTE_SERVER,
    ROUTE_MODEL,
    ROUTE_MODEL_READY,
    ROUTE_INFER,
    ROUTE_METRICS,
    ROUTE_OPENAPI,
    ROUTE_LOG
} route_kind;

/* A path in parts. */
typedef struct {
    route_kind kind;
    bool is_v1;
    char model[SERVE_NAME + 16], version[SERVE_NAME + 1];
    const char *rest; /* of the log */
} route;

extern const char serve_openapi_json[];

/* ---- paths ---- */

/* Moves *at behind text, if it begins with it. */
static bool skip(const char **at, const char *text) {
    size_t size = strlen(text);
    if (strncmp(*at, text, size) != 0)
        return false;
    *at += size;
    return true;
}

/* Copies up to one of the ends; false: it is empty or too long. */
static bool copy_part(const char **at, const char *ends, char *out, size_t size) {
    size_t length = strcspn(*at, ends);
    if (length == 0 || length >= size)
        return false;
    memcpy(out, *at, length);
    out[length] = 0;
    *at += length;
    return true;
}

/* NAME[/versions/V][/infer|/ready] */
static route read_v2(const char *at) {
    route r = {.kind = ROUTE_NONE};
    if (!copy_part(&at, "/", r.model, sizeof r.model) ||
        (skip(&at, "/versions/") && !copy_part(&at, "/", r.version, sizeof r.version)))
        return r;
    r.kind = !*at                        ? ROUTE_MODEL
             : strcmp(at, "/infer") == 0 ? ROUTE_INFER
             : strcmp(at, "/ready") == 0 ? ROUTE_MODEL_READY
                                         : ROUTE_NONE;
    return r;
}

/* NAME, NAME:predict, NAME:explain */
static route read_v1(const char *at) {
    route r = {.kind = ROUTE_NONE, .is_v1 = true};
    if (!copy_part(&at, ":/", r.model, SERVE_NAME + 1))
        return r;
    r.kind = !*at                                                         ? ROUTE_MODEL_READY
             : strcmp(at, ":predict") == 0 || strcmp(at, ":explain") == 0 ? ROUTE_INFER
                                                                          : ROUTE_NONE;
    if (strcmp(at, ":explain") == 0)
        strcat(r.model, ".explain"); /* it is SERVE_NAME + 16 bytes long */
    return r;
}

static route read_path(const char *path) {
    static const struct {
        const char *path;
        route_kind kind;
    } fixed[] = {{"/v2/health/live", ROUTE_LIVE}, {"/v2/health/ready", ROUTE_READY},
                 {"/v2", ROUTE_SERVER},           {"/v2/", ROUTE_SERVER},
                 {"/metrics", ROUTE_METRICS},     {"/openapi.json", ROUTE_OPENAPI}};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (strcmp(path, fixed[i].path) == 0)
            return (route){.kind = fixed[i].kind};
    if (skip(&path, "/v2/models/"))
        return read_v2(path);
    if (skip(&path, "/v1/models/"))
        return read_v1(path);
    if (skip(&path, "/log/"))
        return (route){.kind = *path ? ROUTE_LOG : ROUTE_NONE, .rest = path};
    return (route){.kind = ROUTE_NONE};
}

/* ---- who asks ---- */

/* Sets role and account; false: refused. No header is nobody, which is enough for what is public. */
static bool identify(fds_server *server, const serve_head *head, serve_request *r,
                     uint8_t who[SERVE_WHO]) {
    char key[FDS_SERVE_KEY];
    memset(who, 0, SERVE_WHO);
    if (!server->has_keys || !head->authorization)
        return true;
    if (!serve_keys_extract(head->authorization, key)) {
        serve_refuse(r->reply, 401,
                     "Authorization must be \"Bearer KEY\", or Basic with the key as "
                     "password");
        return false;
    }
    pthread_mutex_lock(&server->lock);
    const serve_key *found = serve_keys_find(&server->keys, key);
    if (found) {
        r->role = found->role;
        memcpy(r->account, found->account, sizeof r->account);
        memcpy(who, found->hash, SERVE_WHO);
    }
    pthread_mutex_unlock(&server->lock);
    if (!found)
        serve_refuse(r->reply, 401, "%s",
                     serve_keys_is_whole(key) ? "the key is not known"
                                              : "the key is damaged: its last part does not agree");
    return found;
}

/* Whether the role may use a route; operators may use all. */
static bool may(const fds_server *server, serve_role role, route_kind kind) {
    if (!server->has_keys || role == SERVE_OPERATOR)
        return true;
    return kind == ROUTE_INFER     ? role == SERVE_CUSTOMER
           : kind == ROUTE_METRICS ? role == SERVE_AUDITOR
                                   : true;
}

static bool allow(const fds_server *server, route_kind kind, serve_request *r) {
    if (may(server, r->role, kind))
        return true;
    if (r->role == SERVE_NOBODY)
        serve_refuse(r->reply, 401, "a key is needed: Authorization: Bearer fds_...");
    else
        serve_refuse(r->reply, 403, "the key of a %s may not do this", serve_role_name(r->role));
    return false;
}

static bool is_within_rates(fds_server *server, const serve_head *head,
                            const uint8_t who[SERVE_WHO], serve_request *r) {
    const serve_settings *set = &server->set;
    bool is_known = r->role != SERVE_NOBODY;
    bool is_within = (set->rate_each <= 0 ||
                      serve_rates_take(server->rates, head->address, set->rate_each, r->start_s)) &&
                     (set->rate <= 0 || !is_known ||
                      serve_rates_take(server->rates, who, set->rate, r->start_s));
    if (!is_within) {
        serve_refuse(r->reply, 429, "too many requests; try again in a second");
        r->reply->retry_s = 1;
    }
    return is_within;
}

/* ---- answers without a body ---- */

__attribute__((format(printf, 2, 3))) static void say(serve_reply *reply, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *reply = (serve_reply){.status = 200, .type = SERVE_JSON, .json_size = SIZE_MAX};
    fds__text_add(&reply->body, text, strlen(text));
}

static void answer_health(fds_server *server, bool is_ready_asked, serve_reply *reply) {
    bool is_ready = !atomic_load(&server->is_draining);
    say(reply, "{\"live\":true,\"ready\":%s}", is_ready ? "true" : "false");
    if (is_ready_asked && !is_ready)
        reply->status = 503;
}

/* The model of a path as the caller's job; false: there is none. */
static bool find_model(fds_server *server, const route *at, serve_job *job) {
    job->models = serve_models_now(server);
    job->model = serve_models_find(job->models, at->model, &job->as);
    if (!job->model)
        serve_refuse(&job->reply, 404, "there is no model \"%.80s\"", at->model);
    else if (*at->version && strcmp(at->version, job->model->version) != 0)
        serve_refuse(&job->reply, 404, "model %s has no version \"%.64s\"; it is %s", job->as->name,
                     at->version, job->model->version);
    return !job->reply.status;
}

static void answer_model(fds_server *server, const route *at, serve_job *job) {
    if (!find_model(server, at, job))
        return;
    if (at->kind == ROUTE_MODEL_READY) {
        say(&job->reply, "{\"name\":\"%s\",\"ready\":true}", job->as->name);
        return;
    }
    job->reply = (serve_reply){.status = 200, .type = SERVE_JSON, .json_size = SIZE_MAX};
    oip_write_metadata(&job->reply.body, job->as);
}

static void answer_text(serve_reply *reply, const char *type, const char *text) {
    *reply = (serve_reply){.status = 200, .type = type, .json_size = SIZE_MAX};
    fds__text_add(&reply->body, text, strlen(text));
}

/* The worker owns the ledger: the job is queued once the head is read. */
static void prepare_log(fds_server *server, const char *path, serve_request *r) {
    serve_job *job = &r->job;
    if (!server->ledger || strlen(path) >= sizeof job->path) {
        serve_refuse(r->reply, 404,
                     server->ledger ? "the log has no such file"
                                    : "there is no log: predictions are free");
        return;
    }
    job->kind = SERVE_JOB_LOG;
    snprintf(job->path, sizeof job->path, "%s", path);
}

static void answer_get(fds_server *server, const route *at, serve_request *r) {
    switch (at->kind) {
    case ROUTE_LIVE:
    case ROUTE_READY:
        answer_health(server, at->kind == ROUTE_READY, r->reply);
        break;
    case ROUTE_SERVER:
        say(r->reply,
            "{\"name\":\"fds\",\"version\":\"%s\",\"extensions\":[\"binary_tensor_data\"]}",
            FDS_VERSION);
        break;
    case ROUTE_METRICS:
        answer_text(r->reply, "text/plain; version=0.0.4; charset=utf-8", "");
        serve_metrics_write(server, &r->reply->body);
        break;
    case ROUTE_OPENAPI:
        answer_text(r->reply, SERVE_JSON, serve_openapi_json);
        break;
    case ROUTE_LOG:
        prepare_log(server, at->rest, r);
        break;
    default:
        answer_model(server, at, &r->job);
    }
}

/* ---- predictions ---- */

/* Printable ASCII without blanks: charge.c adds one. */
static bool is_key(const char *text) {
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return size > 0 && size <= SERVE_KEY_BYTES;
}

static bool read_head(fds_server *server, const serve_head *head, serve_request *r) {
    char *end = NULL;
    r->json_size = SIZE_MAX;
    if (head->json_size) {
        unsigned long long size = strtoull(head->json_size, &end, 10);
        if (strspn(head->json_size, "0123456789") != strlen(head->json_size) || !*head->json_size ||
            strlen(head->json_size) > 18) {
            serve_refuse(r->reply, 400, "Inference-Header-Content-Length must be a number");
            return false;
        }
        r->json_size = (size_t)size;
    }
    if (head->idempotency && !is_key(head->idempotency)) {
        serve_refuse(r->reply, 400,
                     "Idempotency-Key must have 1 to %d printable characters without blanks",
                     SERVE_KEY_BYTES);
        return false;
    }
    if (head->idempotency && server->ledger)
        snprintf(r->job.key, sizeof r->job.key, "%s", head->idempotency);
    return true;
}

static void prepare_infer(fds_server *server, const serve_head *head, const route *at,
                          serve_request *r) {
    r->is_v1 = at->is_v1;
    if (atomic_load(&server->is_draining)) {
        serve_refuse(r->reply, 503, "the server is about to stop");
        r->reply->retry_s = 5;
        return;
    }
    if (!read_head(server, head, r) || !find_model(server, at, &r->job))
        return;
    r->job.kind = SERVE_JOB_INFER;
    r->job.is_paid = server->ledger != NULL;
    memcpy(r->job.account, r->account, sizeof r->job.account);
    r->takes_body = true;
}

void serve_route(fds_server *server, const serve_head *head, serve_request *r) {
    const route at = read_path(head->path);
    uint8_t who[SERVE_WHO];
    bool is_get = strcmp(head->method, "GET") == 0 || strcmp(head->method, "HEAD") == 0,
         is_post = strcmp(head->method, "POST") == 0;
    r->reply = &r->job.reply;
    r->reply->json_size = SIZE_MAX;
    if (at.kind == ROUTE_NONE) {
        serve_refuse(r->reply, 404, "there is no \"%.100s\"", head->path);
        return;
    }
    if (at.kind == ROUTE_INFER ? !is_post : !is_get) {
        serve_refuse(r->reply, 405, "use %s here", at.kind == ROUTE_INFER ? "POST" : "GET");
        r->reply->allow = at.kind == ROUTE_INFER ? "POST" : "GET, HEAD";
        return;
    }
    if (!identify(server, head, r, who) || !allow(server, at.kind, r))
        return;
    if (at.kind != ROUTE_LIVE && at.kind != ROUTE_READY && !is_within_rates(server, head, who, r))
        return;
    if (at.kind == ROUTE_INFER)
        prepare_infer(server, head, &at, r);
    else
        answer_get(server, &at, r);
}

/* Tells another request under the same key. */
static void take_fingerprint(serve_request *r) {
    uint64_t json_size = r->json_size;
    const fds__bytes parts[] = {
        {r->path, strlen(r->path) + 1}, {&json_size, sizeof json_size}, {r->body, r->size}};
    fds__sha256(parts, 3, r->job.fingerprint);
}

void serve_route_body(fds_server *server, serve_request *r) {
    serve_job *job = &r->job;
    fds_error err = {0};
    if (r->reply->status)
        return;
    if (job->kind == SERVE_JOB_LOG) {
        r->is_queued = true;
        return;
    }
    const oip_limits *limits = &server->set.limits;
    fds_status status =
        r->is_v1 ? oip_parse_v1(job->as, limits, r->body, r->size, &job->request, &err)
                 : oip_parse(job->as, limits, r->body, r->size, r->json_size, &job->request, &err);
    if (status != FDS_OK) {
        serve_refuse(r->reply, serve_status(status), "%s", err.text);
        r->reply->retry_s = status == FDS_ERR_NOMEM;
        return;
    }
    job->amount = job->request.amount ? job->request.amount : server->set.price;
    if (*job->key)
        take_fingerprint(r);
    r->is_queued = true;
}
