/* SPDX-License-Identifier: Apache-2.0
 * Logins: a password is checked on a thread of its own, one at a time, because its hash takes 19 MiB
 * and some 20 ms; connections go on meanwhile.
 *
 * Failures are counted by name and address together, by name, and by address: who guesses from one place
 * is slowed down at once, who guesses from many does not get far, and nobody keeps a processor busy. A
 * name that is under attack can still be used by its owner from another place, but for the second limit,
 * and keys work in any case. An unknown name takes as long as a known one. */
#include "serve/serve.h"

enum { MOST_WAITING = 32 };

enum { BY_PAIR, BY_NAME, BY_ADDRESS, LIMITS };
static const serve_rate limits[LIMITS] = {
    [BY_PAIR] = {.per_s = 0.1, .burst = 5},
    [BY_NAME] = {.per_s = 0.5, .burst = 100},
    [BY_ADDRESS] = {.per_s = 5, .burst = 50},
};

struct serve_hasher {
    pthread_mutex_t lock;
    pthread_cond_t is_filled;
    serve_job *first, **last;
    size_t count;
    bool is_ended, has_thread;
    pthread_t thread;
};

/* ---- failures ---- */

/* Whose failures are counted by a limit; other rates are counted in the same table. */
static void name_failures(const serve_job *job, const char *name, int limit,
                          uint8_t out[SERVE_WHO]) {
    static const char *const tags[LIMITS] = {"login at", "login", "login from"};
    uint8_t hash[32];
    const fds__bytes parts[] = {
        {tags[limit], strlen(tags[limit]) + 1},
        {name, limit == BY_ADDRESS ? 0 : strlen(name)},
        {job->address, limit == BY_NAME ? 0 : (size_t)SERVE_WHO},
    };
    fds__sha256(parts, 3, hash);
    memcpy(out, hash, SERVE_WHO);
}

/* Whether one more try is allowed; takes: it has failed. */
static bool may_try(fds_server *server, const serve_job *job, const char *name, bool takes) {
    uint8_t who[SERVE_WHO];
    double now_s = fds__now_s();
    bool may = true;
    for (int i = 0; i < LIMITS; i++) {
        if (i != BY_NAME && !server->set.connections_each)
            continue; /* behind a proxy all have one address */
        name_failures(job, name, i, who);
        may &= serve_rates_use(server->rates, who, limits[i], takes, now_s);
    }
    return may;
}

/* ---- one login ---- */

static bool find_login(fds_server *server, const char *name, serve_login *out) {
    pthread_mutex_lock(&server->lock);
    const serve_login *found = serve_logins_find(&server->keys, name);
    if (found)
        *out = *found;
    pthread_mutex_unlock(&server->lock);
    return found;
}

/* Keys may have been read anew while the password was hashed. */
static fds_status begin(fds_server *server, const serve_login *login, char id[SERVE_SESSION],
                        serve_session *about, fds_error *err) {
    pthread_mutex_lock(&server->lock);
    const serve_login *now = serve_logins_find(&server->keys, login->name);
    bool is_same = now && now->role == login->role && strcmp(now->hash, login->hash) == 0 &&
                   strcmp(now->account, login->account) == 0;
    fds_status status =
        is_same ? serve_sessions_begin(server->sessions, login, fds__now_s(), id, about, err)
                : FDS_ERR_NOT_FOUND;
    pthread_mutex_unlock(&server->lock);
    return status;
}

static void refuse(serve_job *job) { serve_refuse(&job->reply, 401, "name or password is wrong"); }

static void log_in(fds_server *server, serve_job *job, const char *name, const char *password) {
    serve_login login = {0};
    serve_session about;
    char id[SERVE_SESSION];
    fds_error err = {0};
    if (!may_try(server, job, name, false)) {
        serve_refuse(&job->reply, 429, "too many failures; try again later");
        job->reply.retry_s = 10;
        return;
    }
    bool is_known = find_login(server, name, &login);
    bool is_right = serve_password_check(is_known ? login.hash : NULL, password);
    fds_status status = is_right ? begin(server, &login, id, &about, &err) : FDS_ERR_NOT_FOUND;
    if (status == FDS_ERR_NOT_FOUND) {
        may_try(server, job, name, true);
        refuse(job);
    } else if (status != FDS_OK) {
        serve_log_event(server, "failure", err.text);
        serve_refuse(&job->reply, 503, "%s", fds_status_text(status));
    } else {
        serve_route_me(server, &about, &job->reply);
        serve_cookie_write(server, id, job->reply.cookie);
        job->role = about.role; /* for the log */
        memcpy(job->account, about.account, sizeof job->account);
    }
    serve_forget(&login, sizeof login);
    serve_forget(id, sizeof id);
}

static void answer(fds_server *server, serve_job *job) {
    const char *name = json_string_value(json_object_get(job->args, "name")),
               *password = json_string_value(json_object_get(job->args, "password"));
    if (!name || !password)
        serve_refuse(&job->reply, 400, "{\"name\": ..., \"password\": ...} is needed");
    else if (!*name || strlen(name) > SERVE_ACCOUNT || strlen(password) > SERVE_PASSWORD)
        refuse(job);
    else
        log_in(server, job, name, password);
}

/* ---- the thread ---- */

static serve_job *take(serve_hasher *h) {
    pthread_mutex_lock(&h->lock);
    while (!h->first && !h->is_ended)
        pthread_cond_wait(&h->is_filled, &h->lock);
    serve_job *job = h->first;
    if (job) {
        h->first = job->next;
        h->last = h->first ? h->last : &h->first;
        h->count--;
    }
    pthread_mutex_unlock(&h->lock);
    return job;
}

static void *work(void *context) {
    fds_server *server = context;
    for (serve_job *job; (job = take(server->hasher)) != NULL;) {
        answer(server, job);
        job->done(job);
    }
    return NULL;
}

bool serve_hasher_put(fds_server *server, serve_job *job) {
    serve_hasher *h = server->hasher;
    pthread_mutex_lock(&h->lock);
    bool is_free = !h->is_ended && h->count < MOST_WAITING;
    if (is_free) {
        job->next = NULL;
        *h->last = job;
        h->last = &job->next;
        h->count++;
        pthread_cond_signal(&h->is_filled);
    } else {
        serve_refuse(&job->reply, 503, "too many logins at once");
        job->reply.retry_s = 2;
    }
    pthread_mutex_unlock(&h->lock);
    return is_free;
}

fds_status serve_hasher_start(fds_server *server, fds_error *err) {
    serve_hasher *h;
    TRY(NEW(h, 1, err));
    h->last = &h->first;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->is_filled, NULL);
    server->hasher = h;
    h->has_thread = pthread_create(&h->thread, NULL, work, server) == 0;
    return h->has_thread ? FDS_OK : fds__fail(err, FDS_ERR_NOMEM, "cannot start a thread");
}

void serve_hasher_stop(fds_server *server) {
    serve_hasher *h = server->hasher;
    if (!h || !h->has_thread)
        return;
    pthread_mutex_lock(&h->lock);
    h->is_ended = true;
    pthread_cond_signal(&h->is_filled);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->thread, NULL);
    h->has_thread = false;
}

void serve_hasher_free(serve_hasher *h) {
    if (!h)
        return;
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->is_filled);
    fds__free(h);
}
