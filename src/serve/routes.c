/* SPDX-License-Identifier: Apache-2.0
 * Which endpoint a request is for, whether its sender may use it, and what follows.
 *
 * What the head alone decides is decided before the body: a rate, an unknown key, a model that is not
 * there. Such a body is read and dropped, so that the connection can go on.
 *
 * The rate of an address comes first: who is refused for any reason has asked, too. On /api, and there
 * alone, a cookie may take the place of a key. A request that changes something by a cookie must come
 * from our page: it has the session's token, and no header of the browser says otherwise. */
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
    ROUTE_LOG,
    ROUTE_PAGE,
    ROUTE_ME,
    ROUTE_LOGIN,
    ROUTE_LOGOUT,
    ROUTE_API
} route_kind;

/* A path in parts. */
typedef struct {
    route_kind kind;
    bool is_v1, is_api;
    char model[SERVE_NAME + 16], version[SERVE_NAME + 1];
    const char *rest;               /* of the log */
    const serve_endpoint *endpoint; /* of ROUTE_API */
    const char *type, *text;        /* of ROUTE_PAGE */
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

/* me, login, logout, models/NAME/infer, or an endpoint */
static route read_api(const char *at) {
    route r = {.kind = ROUTE_NONE};
    if (skip(&at, "models/")) {
        r = read_v2(at);
        r.kind = r.kind == ROUTE_INFER ? ROUTE_INFER : ROUTE_NONE;
    } else if ((r.endpoint = serve_endpoint_find(at)) != NULL) {
        r.kind = ROUTE_API;
    } else {
        r.kind = strcmp(at, "me") == 0       ? ROUTE_ME
                 : strcmp(at, "login") == 0  ? ROUTE_LOGIN
                 : strcmp(at, "logout") == 0 ? ROUTE_LOGOUT
                                             : ROUTE_NONE;
    }
    r.is_api = true;
    return r;
}

static route read_path(const char *path) {
    route page = {.kind = ROUTE_PAGE};
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
    if (skip(&path, "/api/"))
        return read_api(path);
    return serve_page_find(path, &page.type, &page.text) ? page : (route){.kind = ROUTE_NONE};
}

static bool is_post(const route *at) {
    return at->kind == ROUTE_INFER || at->kind == ROUTE_LOGIN || at->kind == ROUTE_LOGOUT ||
           (at->kind == ROUTE_API && at->endpoint->is_post);
}

/* ---- who asks ---- */

/* By a cookie, which counts on /api alone. False: refused. */
static bool identify_session(fds_server *server, const serve_head *head, const route *at,
                             serve_request *r, uint8_t who[SERVE_WHO]) {
    char id[SERVE_SESSION];
    uint8_t hash[32];
    bool is_login = at->kind == ROUTE_LOGIN;
    if (!is_login &&
        (!head->cookie || !serve_cookie_read(head->cookie, serve_cookie_name(server), id) ||
         !serve_sessions_find(server->sessions, id, r->start_s, &r->session)))
        return true;
    if (is_post(at) && (!serve_is_same_origin(head->fetch_site, head->origin, head->host) ||
                        (!is_login && !serve_is_token(&r->session, head->token)))) {
        serve_refuse(r->reply, 403,
                     "this must come from the server's own page, with X-FDS-Token as /api/me has "
                     "it");
        return false;
    }
    if (is_login) /* whoever it was: it begins anew */
        return true;
    r->role = r->session.role;
    memcpy(r->account, r->session.account, sizeof r->account);
    fds__sha256(&(fds__bytes){r->session.login, strlen(r->session.login)}, 1, hash);
    memcpy(who, hash, SERVE_WHO);
    if (at->kind == ROUTE_LOGOUT)
        serve_sessions_end(server->sessions, id);
    return true;
}

/* Sets role and account; false: refused. No header is nobody, which is enough for what is public. */
static bool identify(fds_server *server, const serve_head *head, const route *at, serve_request *r,
                     uint8_t who[SERVE_WHO]) {
    char key[FDS_SERVE_KEY];
    memset(who, 0, SERVE_WHO);
    if (!server->has_keys)
        return true;
    if (!head->authorization || at->kind == ROUTE_LOGIN)
        return !at->is_api || identify_session(server, head, at, r, who);
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

/* Whether the role may use a route; operators may use all outside /api. */
static bool may(const fds_server *server, serve_role role, const route *at) {
    if (at->kind == ROUTE_API)
        return at->endpoint->roles >> role & 1;
    if (!server->has_keys)
        return true;
    if (at->kind == ROUTE_LOGOUT)
        return role != SERVE_NOBODY;
    if (role == SERVE_OPERATOR && !at->is_api)
        return true;
    return at->kind == ROUTE_INFER     ? role == SERVE_CUSTOMER
           : at->kind == ROUTE_METRICS ? role == SERVE_AUDITOR
                                       : true;
}

static bool allow(const fds_server *server, const route *at, serve_request *r) {
    if (may(server, r->role, at))
        return true;
    if (r->role == SERVE_NOBODY)
        serve_refuse(r->reply, 401, "%sa key is needed: Authorization: Bearer fds_...",
                     at->is_api ? "a login or " : "");
    else
        serve_refuse(r->reply, 403, "a %s may not do this", serve_role_name(r->role));
    return false;
}

static bool is_within_rate(fds_server *server, const uint8_t who[SERVE_WHO], double per_s,
                           serve_request *r) {
    if (per_s <= 0 || serve_rates_take(server->rates, who, per_s, r->start_s))
        return true;
    serve_refuse(r->reply, 429, "too many requests; try again in a second");
    r->reply->retry_s = 1;
    return false;
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

static void put_model(fds__text *out, const serve_model *m) {
    fds_shape shape = m->info.shape;
    fds__text_print(out, "{\"name\":\"%s\",\"version\":\"%s\",\"classes\":[", m->name, m->version);
    for (uint32_t c = 0; c < m->info.classes && !m->info.is_regression; c++) {
        fds__text_add(out, ",", c > 0);
        oip_write_string(out, m->class_names[c]);
    }
    fds__text_print(out, "],\"shape\":[%u,%u,%u]}", (unsigned)shape.channels,
                    (unsigned)shape.height, (unsigned)shape.width);
}

static void put_word(fds__text *out, const char *name, const char *word) {
    fds__text_print(out, "\"%s\":", name);
    if (*word)
        oip_write_string(out, word);
    else
        fds__text_add(out, "null", 4);
    fds__text_add(out, ",", 1);
}

void serve_route_me(fds_server *server, const serve_session *who, serve_reply *reply) {
    serve_models *models = serve_models_now(server);
    char price[32] = "";
    answer_text(reply, SERVE_JSON, "{");
    fds__text *out = &reply->body;
    if (server->ledger) /* its currency, decimals and key never change */
        fds_money_text(server->set.price, fds_ledger_decimals(server->ledger), price);
    put_word(out, "role", serve_role_name(who->role));
    put_word(out, "account", who->account);
    put_word(out, "name", *who->login ? who->login : who->account);
    put_word(out, "token", who->token);
    put_word(out, "currency", server->ledger ? fds_ledger_currency(server->ledger) : "");
    fds__text_print(out, "\"decimals\":%d,",
                    server->ledger ? fds_ledger_decimals(server->ledger) : 0);
    put_word(out, "price", price);
    put_word(out, "vkey", server->ledger ? fds_ledger_vkey(server->ledger) : "");
    fds__text_print(out, "\"models\":[");
    for (size_t i = 0; i < models->count; i++) {
        fds__text_add(out, ",", i > 0);
        put_model(out, &models->items[i]);
    }
    fds__text_add(out, "]}", 2);
    serve_models_release(models);
}

static void answer_me(fds_server *server, serve_request *r) {
    serve_session who = r->session;
    who.role = r->role;
    memcpy(who.account, r->account, sizeof who.account);
    serve_route_me(server, &who, r->reply);
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
    case ROUTE_PAGE:
        answer_text(r->reply, at->type, at->text);
        break;
    case ROUTE_ME:
        answer_me(server, r);
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
    if (at->is_api && head->json_size) {
        serve_refuse(r->reply, 400, "raw tensors are not accepted here: send JSON");
        return;
    }
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

/* ---- /api ---- */

static void prepare_api(const serve_head *head, const route *at, serve_request *r) {
    serve_job *job = &r->job;
    job->kind = at->kind == ROUTE_LOGIN ? SERVE_JOB_LOGIN : SERVE_JOB_API;
    job->endpoint = at->endpoint;
    job->role = r->role;
    memcpy(job->account, r->account, sizeof job->account);
    memcpy(job->address, head->address, sizeof job->address);
    r->takes_body = is_post(at);
    r->most_body = SERVE_BODY;
}

static void answer_logout(const fds_server *server, serve_reply *reply) {
    say(reply, "{}");
    serve_cookie_write(server, "", reply->cookie);
}

static void read_api_body(serve_request *r) {
    fds_error err = {0};
    json_t *args = NULL;
    fds_status status = fds__json_parse("the body", (const char *)r->body, r->size, &args, &err);
    serve_forget(r->body, r->size); /* it may have a password */
    if (status == FDS_OK && !json_is_object(args))
        serve_refuse(r->reply, 400, "the body must be an object of JSON");
    else if (status != FDS_OK)
        serve_refuse(r->reply, serve_status(status), "%s", err.text);
    json_decref(r->job.args);
    r->job.args = args;
}

/* ---- a request ---- */

bool serve_route_admit(fds_server *server, const serve_head *head, serve_request *r) {
    const route at = read_path(head->path);
    r->is_web = at.is_api || at.kind == ROUTE_PAGE || at.kind == ROUTE_NONE;
    return at.kind == ROUTE_LIVE || at.kind == ROUTE_READY ||
           is_within_rate(server, head->address, server->set.rate_each, r);
}

static bool check_method(const route *at, const char *method, serve_request *r) {
    bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (is_post(at) ? strcmp(method, "POST") == 0 : is_get)
        return true;
    serve_refuse(r->reply, 405, "use %s here", is_post(at) ? "POST" : "GET");
    r->reply->allow = is_post(at) ? "POST" : "GET, HEAD";
    return false;
}

/* Whether it may go on: the path, the method, who asks, and how often with one key. */
static bool admit(fds_server *server, const serve_head *head, const route *at, serve_request *r) {
    uint8_t who[SERVE_WHO];
    bool is_health = at->kind == ROUTE_LIVE || at->kind == ROUTE_READY;
    if (at->kind == ROUTE_NONE) {
        serve_refuse(r->reply, 404, "there is no \"%.100s\"", head->path);
        return false;
    }
    if (!check_method(at, head->method, r))
        return false;
    if (!server->ledger && (at->kind == ROUTE_API || (at->is_api && at->kind == ROUTE_INFER))) {
        serve_refuse(r->reply, 404, "there is no ledger");
        return false;
    }
    if (!identify(server, head, at, r, who))
        return false;
    if (!is_health && r->role != SERVE_NOBODY && !is_within_rate(server, who, server->set.rate, r))
        return false;
    return allow(server, at, r);
}

void serve_route(fds_server *server, const serve_head *head, serve_request *r) {
    const route at = read_path(head->path);
    r->reply = &r->job.reply;
    r->reply->json_size = SIZE_MAX;
    r->job.args = head->query;
    if (!admit(server, head, &at, r))
        return;
    if (at.kind == ROUTE_INFER)
        prepare_infer(server, head, &at, r);
    else if (at.kind == ROUTE_API || at.kind == ROUTE_LOGIN)
        prepare_api(head, &at, r);
    else if (at.kind == ROUTE_LOGOUT)
        answer_logout(server, r->reply);
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
    if (r->takes_body && job->kind != SERVE_JOB_INFER)
        read_api_body(r);
    if (job->kind != SERVE_JOB_INFER) {
        r->is_queued = !r->reply->status;
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
    if (job->is_paid && job->amount < server->set.price) {
        serve_refuse(r->reply, 400,
                     "parameter \"fds_amount\" must be at least the price, %lld units",
                     (long long)server->set.price);
        return;
    }
    if (*job->key)
        take_fingerprint(r);
    r->is_queued = true;
}
