/* SPDX-License-Identifier: Apache-2.0
 * Sessions of people who have logged in: a table in memory, so a restart ends them all.
 *
 * A session is known by 256 random bits in a cookie, of which only the SHA-256 is kept. It also has a
 * token that the page sends back in a header: other pages cannot read it, so they cannot make this
 * one's user change anything. A cookie that was sent before a login is never taken over. */
#include "serve/serve.h"

#include <strings.h>

enum {
    MOST = 1024,     /* sessions */
    MOST_OF_ONE = 8, /* of one login: the one that was used longest ago ends */
    LIFE_S = 12 * 3600,
    IDLE_S = 30 * 60,
};

typedef struct {
    uint8_t hash[32]; /* of its id */
    char hash_of_password[SERVE_HASH];
    serve_session about;
    double start_s, used_s; /* start_s 0: free */
} entry;

struct serve_sessions {
    pthread_mutex_t lock;
    entry items[MOST];
};

fds_status serve_sessions_create(serve_sessions **out, fds_error *err) {
    TRY(NEW(*out, 1, err));
    pthread_mutex_init(&(*out)->lock, NULL);
    return FDS_OK;
}

void serve_sessions_free(serve_sessions *sessions) {
    if (sessions) {
        pthread_mutex_destroy(&sessions->lock);
        serve_forget(sessions->items, sizeof sessions->items);
    }
    fds__free(sessions);
}

static void end(entry *e) { serve_forget(e, sizeof *e); }

static bool is_alive(entry *e, double now_s) {
    if (e->start_s > 0 && (now_s - e->start_s > LIFE_S || now_s - e->used_s > IDLE_S))
        end(e);
    return e->start_s > 0;
}

/* A free place; where there is none, or this login has its share, that of the session which was used
 * longest ago. */
static entry *find_place(serve_sessions *s, const char *login, double now_s) {
    entry *free_one = NULL, *oldest = NULL, *own = NULL;
    size_t own_count = 0;
    for (entry *e = s->items; e < s->items + MOST; e++) {
        if (!is_alive(e, now_s)) {
            free_one = e;
            continue;
        }
        oldest = !oldest || e->used_s < oldest->used_s ? e : oldest;
        if (strcmp(e->about.login, login) != 0)
            continue;
        own_count++;
        own = !own || e->used_s < own->used_s ? e : own;
    }
    return own_count >= MOST_OF_ONE ? own : free_one ? free_one : oldest;
}

static void hash_id(const char *id, uint8_t out[32]) {
    fds__sha256(&(fds__bytes){id, strlen(id)}, 1, out);
}

static fds_status random_hex(char out[SERVE_SESSION], fds_error *err) {
    uint8_t bytes[SERVE_SESSION / 2];
    TRY(fds__random_secret(bytes, sizeof bytes, err));
    for (size_t i = 0; i < SERVE_SESSION / 2; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    serve_forget(bytes, sizeof bytes);
    return FDS_OK;
}

fds_status serve_sessions_begin(serve_sessions *s, const serve_login *login, double now_s,
                                char id[SERVE_SESSION], serve_session *about, fds_error *err) {
    *about = (serve_session){.role = login->role};
    memcpy(about->account, login->account, sizeof about->account);
    memcpy(about->login, login->name, sizeof about->login);
    TRY(random_hex(id, err));
    TRY(random_hex(about->token, err));
    pthread_mutex_lock(&s->lock);
    entry *e = find_place(s, login->name, now_s);
    *e = (entry){.about = *about, .start_s = now_s, .used_s = now_s};
    hash_id(id, e->hash);
    memcpy(e->hash_of_password, login->hash, sizeof e->hash_of_password);
    pthread_mutex_unlock(&s->lock);
    return FDS_OK;
}

/* Ids are compared by their hashes: how long it takes tells nothing about an id. */
static entry *find(serve_sessions *s, const char *id, double now_s) {
    uint8_t hash[32];
    hash_id(id, hash);
    for (entry *e = s->items; e < s->items + MOST; e++)
        if (is_alive(e, now_s) && memcmp(e->hash, hash, sizeof hash) == 0)
            return e;
    return NULL;
}

bool serve_sessions_find(serve_sessions *s, const char *id, double now_s, serve_session *about) {
    pthread_mutex_lock(&s->lock);
    entry *e = find(s, id, now_s);
    if (e) {
        e->used_s = now_s;
        *about = e->about;
    }
    pthread_mutex_unlock(&s->lock);
    return e;
}

void serve_sessions_end(serve_sessions *s, const char *id) {
    pthread_mutex_lock(&s->lock);
    entry *e = find(s, id, 0);
    if (e)
        end(e);
    pthread_mutex_unlock(&s->lock);
}

void serve_sessions_keep(serve_sessions *s, const serve_keys *keys) {
    pthread_mutex_lock(&s->lock);
    for (entry *e = s->items; e < s->items + MOST; e++) {
        const serve_login *login = e->start_s > 0 ? serve_logins_find(keys, e->about.login) : NULL;
        if (!login || login->role != e->about.role ||
            strcmp(login->account, e->about.account) != 0 ||
            strcmp(login->hash, e->hash_of_password) != 0)
            end(e);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- what browsers send ---- */

const char *serve_cookie_name(const fds_server *server) {
    return server->is_tls ? "__Host-fds" : "fds";
}

bool serve_cookie_read(const char *header, const char *name, char id[SERVE_SESSION]) {
    size_t length = strlen(name), found = 0;
    for (const char *at = header; *at;) {
        at += strspn(at, " \t;");
        size_t size = strcspn(at, ";");
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            const char *value = at + length + 1;
            if (size - length - 1 != SERVE_SESSION - 1 ||
                strspn(value, "0123456789abcdef") < SERVE_SESSION - 1)
                return false;
            memcpy(id, value, SERVE_SESSION - 1);
            id[SERVE_SESSION - 1] = 0;
            found++;
        }
        at += size;
    }
    return found == 1; /* of two, one may have been planted by a neighbour */
}

void serve_cookie_write(const fds_server *server, const char *id, char out[SERVE_COOKIE]) {
    snprintf(out, SERVE_COOKIE, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s",
             serve_cookie_name(server), id, server->is_tls ? "; Secure" : "",
             *id ? "" : "; Max-Age=0");
}

bool serve_is_same_origin(const char *fetch_site, const char *origin, const char *host) {
    if (fetch_site && strcmp(fetch_site, "same-origin") != 0)
        return false;
    const char *from = origin ? strstr(origin, "://") : NULL;
    return !origin || (from && host && strcasecmp(from + 3, host) == 0);
}

bool serve_is_token(const serve_session *session, const char *token) {
    uint8_t own[32], sent[32];
    hash_id(session->token, own);
    hash_id(token ? token : "", sent);
    return *session->token && memcmp(own, sent, sizeof own) == 0;
}
