/* SPDX-License-Identifier: Apache-2.0
 *
 * serve: runs behind HTTP.
 *
 *   server.c   starts, reloads and stops: parameters, runs, keys, the ledger
 *   http.c     connections: framing, deadlines, limits. The only file that knows libmicrohttpd
 *   routes.c   requests: which endpoint, who may, what is answered at once and what is queued
 *   batch.c    the queue and its worker: predicts and explains everything that waits, in one batch
 *   charge.c   one transaction for a batch; answers that were paid before
 *   models.c   the runs as models
 *   keys.c     who asks, and how often
 *   report.c   the log and the metrics
 *   oip.c, oip_answer.c   the protocol (oip.h)
 *
 * Threads: http.c's read requests and write answers; one worker owns all runs, and the ledger while
 * it holds ledger_lock; the caller's thread starts, reloads and stops. A request that needs the worker
 * is a job. Its connection is suspended until the worker has filled the job's reply.
 */
#ifndef FDS_SERVE_INTERNAL_H
#define FDS_SERVE_INTERNAL_H

#include "explain/explain.h"
#include "fds/ledger.h"
#include "fds/serve.h"
#include "pay/pay.h"
#include "serve/oip.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    SERVE_ACCOUNT = 200,   /* bytes of an account's name */
    SERVE_KEY_BYTES = 200, /* of an idempotency key; the ledger's limit is 255 */
    SERVE_PATH = 256,
    SERVE_NAME = 64, /* of a model */
    SERVE_WHO = 16,  /* bytes that stand for a key or an address where rates are counted */
};

/* ---- replies ---- */

/* What is sent. body belongs to the reply. */
typedef struct serve_reply {
    unsigned status;   /* of HTTP; 0: there is none yet */
    const char *type;  /* Content-Type */
    const char *allow; /* of a 405, or NULL */
    fds__text body;
    size_t json_size; /* Inference-Header-Content-Length; SIZE_MAX: none */
    unsigned retry_s; /* Retry-After; 0: none */
    bool is_repeated; /* of an idempotency key that was paid before */
} serve_reply;

#define SERVE_JSON "application/json"

/* {"error": "..."} */
__attribute__((format(printf, 3, 4))) void serve_refuse(serve_reply *reply, unsigned status,
                                                        const char *format, ...);
/* The status of HTTP for a failure that the asker, or we, are to blame for. */
unsigned serve_status(fds_status status);

/* ---- models.c ---- */

typedef struct serve_model {
    char name[SERVE_NAME + 1], explain_name[SERVE_NAME + 16];
    char sha256[65], version[17]; /* version: the first digits */
    fds_run *run;                 /* the worker's */
    fds__run_info info;
    oip_model plain, explained;
    const char **class_names, **player_names;
    fds__payees *payees;
    const char **payee_names;
    uint64_t ledger_run;
} serve_model;

/* All models as of one moment; shared by requests that have begun. */
typedef struct serve_models {
    atomic_uint users;
    size_t count;
    serve_model *items;
} serve_models;

/* list: lines "NAME=RUN". */
fds_status serve_models_open(const char *list, const fds_params *params, bool is_paid,
                             serve_models **out, fds_error *err);
void serve_models_release(serve_models *models); /* NULL is fine */
/* name: with or without ".explain"; NULL: none. */
const serve_model *serve_models_find(const serve_models *models, const char *name,
                                     const oip_model **as);

/* ---- keys.c ---- */

/* Names of accounts and labels, as the ledger takes them. what: for messages. */
fds_status serve_check_word(const char *what, const char *word, fds_error *err);

typedef enum serve_role { SERVE_NOBODY, SERVE_CUSTOMER, SERVE_AUDITOR, SERVE_OPERATOR } serve_role;
const char *serve_role_name(serve_role role);

typedef struct serve_key {
    serve_role role;
    char account[SERVE_ACCOUNT + 1];
    uint8_t hash[32];
} serve_key;

typedef struct serve_keys {
    size_t count;
    serve_key *items;
} serve_keys;

fds_status serve_keys_read(const char *path, serve_keys *out, fds_error *err);
void serve_keys_free(serve_keys *keys);
/* The key in a header "Bearer KEY" or "Basic base64(anything:KEY)"; false: it has none. */
bool serve_keys_extract(const char *authorization, char key[FDS_SERVE_KEY]);
bool serve_keys_is_whole(const char *key); /* its own checksum agrees */
/* All keys are compared, each in constant time. */
const serve_key *serve_keys_find(const serve_keys *keys, const char *key);

/* Requests of each key or address, in a table of fixed size. */
typedef struct serve_rates serve_rates;
fds_status serve_rates_create(serve_rates **out, fds_error *err);
void serve_rates_free(serve_rates *rates);
/* Whether one more is within the rate, of which a second's worth may come at once. Shareable. */
bool serve_rates_take(serve_rates *rates, const uint8_t who[SERVE_WHO], double per_s, double now_s);

/* ---- report.c ---- */

enum { SERVE_BUCKETS = 12, SERVE_CODES = 600 };

typedef struct serve_metrics {
    atomic_ullong codes[SERVE_CODES]; /* requests by status */
    atomic_ullong predictions, batches, paid, repeated, ledger_failures, reloads;
    atomic_ullong units; /* charged */
    atomic_ullong seconds[SERVE_BUCKETS + 1], microseconds;
    atomic_uint connections, requests; /* open now */
    atomic_ullong bytes;               /* of bodies, held now */
} serve_metrics;

void serve_metrics_count(serve_metrics *metrics, unsigned status, double seconds);
void serve_metrics_write(const fds_server *server, fds__text *out);

/* One request of the log. */
typedef struct serve_record {
    const char *method, *path, *account, *role, *remote;
    unsigned status;
    double seconds;
    size_t bytes_in, bytes_out, samples;
} serve_record;
void serve_log_request(fds_server *server, const serve_record *record);
/* An event of the server's own; error: what went wrong, or NULL. */
void serve_log_event(fds_server *server, const char *event, const char *error);

/* ---- batch.c ---- */

typedef enum serve_job_kind { SERVE_JOB_INFER, SERVE_JOB_LOG } serve_job_kind;

typedef struct serve_job {
    struct serve_job *next, *next_held; /* in the queue; among those with keys in flight */
    serve_job_kind kind;
    char path[SERVE_PATH]; /* of the log's file */

    serve_models *models; /* a user of these */
    const serve_model *model;
    const oip_model *as;
    oip_request request;
    bool is_paid;
    char account[SERVE_ACCOUNT + 1];
    int64_t amount;                /* units, of each sample */
    char key[SERVE_KEY_BYTES + 1]; /* of idempotency; "": none */
    uint8_t fingerprint[32];

    /* The worker's: the answers and, once paid, the numbers of the entries. */
    uint64_t customer;
    const struct serve_batch *batch;
    size_t first, first_charge; /* place among the batch's samples; among its charges */
    uint64_t *receipts;         /* (samples) of a paid job */
    oip_body body;
    fds__text packed;

    serve_reply reply;
    void (*done)(
        struct serve_job *job); /* called once the reply is there; job is then its owner's */
    void *owner;
} serve_job;

void serve_job_clear(serve_job *job); /* frees what it holds, except for the reply */

typedef struct serve_queue {
    pthread_mutex_t lock;
    pthread_cond_t is_filled;
    serve_job *first, **last;
    serve_job *held; /* jobs with idempotency keys that are not answered yet */
    bool is_ended;
    pthread_t worker;
    bool has_worker;
} serve_queue;

fds_status serve_queue_start(fds_server *server, fds_error *err);
/* Answers what is queued, then ends the worker. */
void serve_queue_stop(fds_server *server);
/* False: another request of that customer and key is in flight, or the queue has ended; then the
 * job's reply says so, and it stays with the caller. */
bool serve_queue_put(fds_server *server, serve_job *job);

/* The samples of a batch, all of one model, and what was computed. */
typedef struct serve_batch {
    const serve_model *model;
    size_t count;
    bool has_values;
    float *samples;
    uint32_t *labels;
    float *probs;
    double *predictions, *values, *errors, *shares;
    double *payee_values, *payee_errors; /* (count, payees) */
} serve_batch;

/* ---- charge.c ---- */

/* Before anything is computed: answers paid jobs whose keys were paid before, and refuses those of
 * customers who cannot pay. */
void serve_charge_check(fds_server *server, serve_job **jobs, size_t count);
/* Pays for all jobs, which are paid, composed and not answered, in one transaction, and fills their
 * replies. */
void serve_charge(fds_server *server, serve_job **jobs, size_t count);

/* ---- the server ---- */

typedef struct serve_settings {
    char *models, *keys_path; /* for reloading */
    oip_limits limits;
    size_t max_bytes, held_bytes; /* of a body; of all bodies together */
    unsigned connections, connections_each;
    double rate, rate_each; /* per second: of a key, of an address; 0: no limit */
    double idle_s, request_s, drain_s;
    uint64_t min_rate; /* bytes per second of an upload */
    int64_t price;     /* units */
    uint32_t fee_ppm;
    const char *policy;
} serve_settings;

struct fds_server {
    serve_settings set;
    fds_params params;    /* those that runs are opened with */
    pthread_mutex_t lock; /* of models and keys */
    serve_models *models;
    serve_keys keys;
    bool has_keys;
    fds_ledger *ledger; /* or NULL: predictions are free */
    pthread_mutex_t ledger_lock;
    serve_rates *rates;
    serve_queue queue;
    serve_metrics metrics;
    struct serve_http *http;
    atomic_bool is_draining;
    fds_server_log log;
    void *log_user;
    pthread_mutex_t log_lock;
    uint16_t port;
    char address[320];
};

/* The present models; the caller releases them. */
serve_models *serve_models_now(fds_server *server);

/* ---- routes.c ---- */

/* What is known of a request before its body. */
typedef struct serve_head {
    const char *method, *path;
    const char *authorization, *idempotency; /* headers, or NULL */
    const char *json_size;                   /* Inference-Header-Content-Length, or NULL */
    uint8_t address[SERVE_WHO];
} serve_head;

/* One request on its way. */
typedef struct serve_request {
    char method[8], path[SERVE_PATH], remote[64];
    char account[SERVE_ACCOUNT + 1];
    serve_role role;
    bool takes_body; /* else what is sent is read and dropped */
    bool is_v1, is_queued;
    size_t json_size;
    uint8_t *body;
    size_t size, capacity;
    serve_job job;
    serve_reply *reply; /* the job's */
    double start_s;
} serve_request;

/* Decides by the head alone; a reply without status: the body is wanted. */
void serve_route(fds_server *server, const serve_head *head, serve_request *request);
/* With the whole body. Either the reply is there, or the job is queued and request->is_queued. */
void serve_route_body(fds_server *server, serve_request *request);

/* ---- http.c ---- */

typedef struct serve_listen {
    int fd;
    char *tls_cert, *tls_key; /* PEM, or NULL */
} serve_listen;

/* FDS_ERR_UNSUPPORTED: fds was built without libmicrohttpd. */
fds_status serve_http_check(fds_error *err);
/* Takes over listen->fd, after a failure too. */
fds_status serve_http_start(fds_server *server, const serve_listen *listen, fds_error *err);
/* No new connections; waits until every request that has begun is answered, at most that long. */
void serve_http_drain(fds_server *server, double limit_s);
void serve_http_stop(fds_server *server); /* NULL http is fine */

#endif
