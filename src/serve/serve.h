/* SPDX-License-Identifier: Apache-2.0
 *
 * serve: runs behind HTTP.
 *
 *   server.c   starts, reloads and stops: parameters, runs, keys, the ledger
 *   http.c     connections: framing, deadlines, limits. The only file that knows libmicrohttpd
 *   routes.c   requests: which endpoint, who may, what is answered at once and what is queued
 *   batch.c    the queue and its worker: predicts and explains everything that waits, in one batch
 *   charge.c   one transaction for a batch; answers that were paid before
 *   models.c   the runs as models; admit.c which of them may serve
 *   shadow.c   what the bank says about some predictions, for audits; secrets.c about which
 *   keys.c     keys and logins: who asks; rates.c how often
 *   logins.c   passwords, on a thread of its own; passwords.c their hashes
 *   sessions.c who has logged in, cookies
 *   api.c      /api: which endpoint for whom; api_look.c what people look at; api_money.c what
 *              operators do; api_audit.c what audits say; api_samples.c pictures of a provider's samples
 *   verify.c   the whole ledger computed again, beside serving
 *   proposals.c   what one operator has proposed and another one has to agree to
 *   page.c     the page's files
 *   report.c   the log and the metrics
 *   oip.c, oip_answer.c   the protocol (oip.h)
 *
 * Threads: http.c's read requests and write answers; one worker owns all runs, and the ledger while
 * it holds ledger_lock; another one hashes passwords; one asks the bank, by runs of its own, in idle time;
 * one verifies a copy of the ledger, when somebody wants it; the caller's thread starts, reloads and stops.
 * A request that needs one of these is a job. Its connection is suspended until the job's reply is there.
 */
#ifndef FDS_SERVE_INTERNAL_H
#define FDS_SERVE_INTERNAL_H

#include "explain/explain.h"
#include "fds/audit.h"
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
    SERVE_NAME = 64,       /* of a model */
    SERVE_WHO = 16,        /* bytes that stand for a key or an address where rates are counted */
    SERVE_HASH = 128,      /* of a password's hash, with its NUL */
    SERVE_PASSWORD = 1024, /* bytes */
    SERVE_SESSION = 65,    /* digits of a session's id, or of its token, and a NUL */
    SERVE_COOKIE = 192,
    SERVE_FILE = 64 << 20, /* bytes of a file that is sent */
    SERVE_BODY = 1 << 16,  /* bytes of a body that is sent to /api, but for predictions */
};

/* ---- replies ---- */

/* What is sent. body belongs to the reply. */
typedef struct serve_reply {
    unsigned status;   /* of HTTP; 0: there is none yet */
    const char *type;  /* Content-Type */
    const char *allow; /* of a 405, or NULL */
    fds__text body;
    size_t json_size;          /* Inference-Header-Content-Length; SIZE_MAX: none */
    unsigned retry_s;          /* Retry-After; 0: none */
    bool is_repeated;          /* of an idempotency key that was paid before */
    char cookie[SERVE_COOKIE]; /* Set-Cookie; "": none */
    const char *file;          /* that a browser saves it as, or NULL */
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
    char folder[FDS__PATH_MAX];
    fds_run *run;    /* the worker's */
    fds_run *shadow; /* the same again, of the thread that asks the bank; NULL: not opened yet */
    fds__run_info info;
    oip_model plain, explained;
    const char **class_names, **player_names;
    fds__payees *payees;
    const char **payee_names;
    uint64_t ledger_run;
    double *value_sums;   /* (players) of all predictions that this server has explained */
    uint64_t value_count; /* of these predictions */
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

/* ---- admit.c ---- */

/* What validation.json of a run must say. */
typedef struct serve_standards {
    double min_agreement, max_misallocation, min_coverage;
    char *forced; /* lines: names of models that serve all the same; or NULL */
    char *reason; /* why; or NULL */
} serve_standards;

/* FDS_ERR_USAGE: the run of a model is poor, and not forced; the first is named, with all that is wrong
 * with it. A forced one becomes an entry of the ledger, once. */
fds_status serve_admit(fds_server *server, const serve_models *models, fds_error *err);

/* ---- keys.c ---- */

/* UTF-8 of 1 to most bytes without control characters, as the ledger takes it. what: for messages. */
fds_status serve_check_word(const char *what, const char *word, size_t most, fds_error *err);

typedef enum serve_role {
    SERVE_NOBODY,
    SERVE_CUSTOMER,
    SERVE_PROVIDER,
    SERVE_AUDITOR,
    SERVE_OPERATOR
} serve_role;
const char *serve_role_name(serve_role role);

typedef struct serve_key {
    serve_role role;
    char account[SERVE_ACCOUNT + 1];
    uint8_t hash[32];
} serve_key;

/* account is who it is: two logins of one account are one person. */
typedef struct serve_login {
    serve_role role;
    char account[SERVE_ACCOUNT + 1], name[SERVE_ACCOUNT + 1];
    char hash[SERVE_HASH]; /* "$argon2id$..." of the password */
} serve_login;

typedef struct serve_keys {
    size_t count, capacity;
    serve_key *items;
    size_t login_count, login_capacity;
    serve_login *logins;
} serve_keys;

fds_status serve_keys_read(const char *path, serve_keys *out, fds_error *err);
void serve_keys_free(serve_keys *keys);
/* The key in a header "Bearer KEY" or "Basic base64(anything:KEY)"; false: it has none. */
bool serve_keys_extract(const char *authorization, char key[FDS_SERVE_KEY]);
bool serve_keys_is_whole(const char *key); /* its own checksum agrees */
/* All keys are compared, each in constant time. */
const serve_key *serve_keys_find(const serve_keys *keys, const char *key);
const serve_login *serve_logins_find(const serve_keys *keys, const char *name); /* NULL: none */

/* ---- rates.c ---- */

/* Requests of each key or address, in a table of fixed size. */
typedef struct serve_rates serve_rates;
fds_status serve_rates_create(serve_rates **out, fds_error *err);
void serve_rates_free(serve_rates *rates);
/* Whether one more is within the rate, of which a second's worth may come at once. Shareable. */
bool serve_rates_take(serve_rates *rates, const uint8_t who[SERVE_WHO], double per_s, double now_s);
/* The same with a burst of its own, which is at least 1; takes: else it only looks. */
typedef struct serve_rate {
    double per_s, burst;
} serve_rate;
bool serve_rates_use(serve_rates *rates, const uint8_t who[SERVE_WHO], serve_rate rate, bool takes,
                     double now_s);

/* ---- passwords.c ---- */

/* Takes 19 MiB and some 20 ms. */
fds_status serve_password_hash(const char *password, char out[SERVE_HASH], fds_error *err);
/* hash NULL: of nobody, who has no password, but it takes as long. */
bool serve_password_check(const char *hash, const char *password);
void serve_forget(void *secret, size_t size); /* zeros that no compiler leaves out */

/* ---- sessions.c ---- */

/* Shareable. */
typedef struct serve_sessions serve_sessions;

typedef struct serve_session {
    serve_role role;
    char account[SERVE_ACCOUNT + 1], login[SERVE_ACCOUNT + 1];
    char token[SERVE_SESSION]; /* that state-changing requests send back */
} serve_session;

fds_status serve_sessions_create(serve_sessions **out, fds_error *err);
void serve_sessions_free(serve_sessions *sessions); /* NULL is fine */
/* A new one, with an id of its own. */
fds_status serve_sessions_begin(serve_sessions *sessions, const serve_login *login, double now_s,
                                char id[SERVE_SESSION], serve_session *about, fds_error *err);
/* False: there is no such session, or no longer. */
bool serve_sessions_find(serve_sessions *sessions, const char *id, double now_s,
                         serve_session *about);
void serve_sessions_end(serve_sessions *sessions, const char *id);
/* Ends those whose login is gone, or has another password, role or account. */
void serve_sessions_keep(serve_sessions *sessions, const serve_keys *keys);

const char *serve_cookie_name(const fds_server *server);
/* The session's id in a header "Cookie"; false: it has none, or several. */
bool serve_cookie_read(const char *header, const char *name, char id[SERVE_SESSION]);
void serve_cookie_write(const fds_server *server, const char *id, char out[SERVE_COOKIE]);
/* Whether a browser says that the page which asks is ours; what is not sent (NULL) says nothing. */
bool serve_is_same_origin(const char *fetch_site, const char *origin, const char *host);
bool serve_is_token(const serve_session *session, const char *token);

/* ---- report.c ---- */

enum { SERVE_BUCKETS = 12, SERVE_CODES = 600, SERVE_RECENT = 16 };

typedef struct serve_metrics {
    atomic_ullong codes[SERVE_CODES]; /* requests by status */
    atomic_ullong predictions, batches, paid, repeated, ledger_failures, reloads;
    atomic_ullong units; /* charged */
    atomic_ullong audited, audits_missed, audits_waiting;
    atomic_ullong seconds[SERVE_BUCKETS + 1], microseconds;
    atomic_uint connections, requests;  /* open now */
    atomic_ullong bytes;                /* of bodies, held now */
    atomic_ullong recent[SERVE_RECENT]; /* requests by second: second << 32 | count */
    double start_s;
} serve_metrics;

/* What an operator sees at a glance: of the last seconds, and since the start. */
typedef struct serve_glance {
    double requests_per_s, p50_ms, p99_ms, uptime_s;
    unsigned long long failures;
} serve_glance;
serve_glance serve_metrics_glance(const serve_metrics *metrics, double now_s);
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

typedef enum serve_job_kind {
    SERVE_JOB_INFER,
    SERVE_JOB_LOG,
    SERVE_JOB_API,
    SERVE_JOB_LOGIN /* not the worker's, but that of logins.c */
} serve_job_kind;
struct serve_endpoint;

typedef struct serve_job {
    struct serve_job *next, *next_held; /* in the queue; among those with keys in flight */
    serve_job_kind kind;
    char path[SERVE_PATH]; /* of the log's file */

    /* Of /api: who asks for what. */
    const struct serve_endpoint *endpoint;
    serve_role role;
    json_t *args;         /* of the query or the body: an object */
    fds_ledger_cursor at; /* how far it has come */
    json_t *state;        /* what it keeps meanwhile, or NULL */
    bool is_unfinished;   /* to be gone on with in a later round */
    uint8_t address[SERVE_WHO];

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
    serve_job *first_side, **last_side; /* without predictions: a few in each round */
    size_t side_count;                  /* of these, with those that are being answered */
    serve_job *held;                    /* jobs with idempotency keys that are not answered yet */
    bool is_ended;
    pthread_t worker;
    bool has_worker;
} serve_queue;

fds_status serve_queue_start(fds_server *server, fds_error *err);
/* Answers what is queued, then ends the worker. */
void serve_queue_stop(fds_server *server);
/* False: another request of that customer and key is in flight, too many wait, or the queue has ended; then the
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

/* Adds the values of a batch to its model's sums (models.c). */
void serve_model_note(const serve_batch *batch);

/* ---- charge.c ---- */

/* Before anything is computed: answers paid jobs whose keys were paid before, and refuses those of
 * customers who cannot pay. */
void serve_charge_check(fds_server *server, serve_job **jobs, size_t count);
/* Pays for all jobs, which are paid, composed and not answered, in one transaction, and fills their
 * replies. */
void serve_charge(fds_server *server, serve_job **jobs, size_t count);

#include "serve/shadow.h"

/* ---- logins.c ---- */

typedef struct serve_hasher serve_hasher;

fds_status serve_hasher_start(fds_server *server, fds_error *err);
/* Answers what waits, and refuses what comes later. */
void serve_hasher_stop(fds_server *server);
void serve_hasher_free(serve_hasher *hasher); /* once no request is left; NULL is fine */
/* Checks the password of a job, begins a session, and fills the reply. False: too many wait; then the
 * job's reply says so, and it stays with the caller. */
bool serve_hasher_put(fds_server *server, serve_job *job);

/* ---- proposals.c ---- */

typedef enum serve_proposal_kind { SERVE_PAYOUT, SERVE_CORRECTION } serve_proposal_kind;

/* What an operator has proposed: an entry "audit" {"propose": "payout", "by": "ann", "what": {...}}. */
typedef struct serve_proposal {
    uint64_t id; /* number of that entry */
    serve_proposal_kind kind;
    char by[SERVE_ACCOUNT + 1], at[32];
    json_t *what;
} serve_proposal;

/* Those that wait; the worker's. */
typedef struct serve_proposals {
    serve_proposal *items;
    size_t count, capacity;
    bool is_doubtful; /* writing one has failed: they are read again */
} serve_proposals;

/* From the entries: those that were neither refused nor carried out. */
fds_status serve_proposals_read(fds_server *server, fds_error *err);
fds_status serve_proposals_settle(fds_server *server, fds_error *err);
void serve_proposals_free(serve_proposals *proposals);
const serve_proposal *serve_proposals_find(const serve_proposals *proposals, uint64_t id);
const char *serve_proposal_name(serve_proposal_kind kind);
/* Writes the entry. what stays the caller's. */
fds_status serve_proposals_add(fds_server *server, serve_proposal_kind kind, const char *by,
                               const json_t *what, const char *key, uint64_t *id, fds_error *err);
fds_status serve_proposals_refuse(fds_server *server, uint64_t id, const char *by, fds_error *err);
/* Carries it out, in the name of both. *indexes (count): numbers of the entries, to be freed. */
fds_status serve_proposals_agree(fds_server *server, uint64_t id, const char *by,
                                 uint64_t **indexes, size_t *count, fds_error *err);
/* Units that pending payouts have for an account. */
int64_t serve_proposals_pending(const fds_server *server, const char *account);

/* ---- api_audit.c ---- */

/* What was audited so far. */
/* Of the calling thread, which works beside those that serve. Not the lowest: beside busy programs it could
 * not end, or let go of a lock, in time. */
void serve_lower_priority(void);

typedef struct serve_audit serve_audit;
void serve_audit_free(serve_audit *audit); /* NULL is fine */
/* Later predictions may be of the runs that are served now. */
void serve_audit_reload(fds_server *server);

/* ---- verify.c ---- */

typedef struct serve_verify serve_verify;
fds_status serve_verify_create(serve_verify **out, fds_error *err);
void serve_verify_stop(serve_verify *verify); /* and frees it; NULL is fine */
/* What the last verification has found, as the auditor's own; what is known of it, and of the one that
 * runs: "verifying", "verified_at", "verify_error". Shareable. */
fds_status serve_verify_share(serve_verify *verify, fds_auditor *auditor, fds_error *err);
bool serve_verify_put(json_t *json, serve_verify *verify);

/* ---- the server ---- */

typedef struct serve_settings {
    char *models, *keys_path; /* for reloading */
    char *ledger;             /* its path, or NULL */
    oip_limits limits;
    size_t max_bytes, held_bytes; /* of a body; of all bodies together */
    unsigned connections, connections_each;
    double rate, rate_each; /* per second: of a key, of an address; 0: no limit */
    double idle_s, request_s, drain_s;
    uint64_t min_rate; /* bytes per second of an upload */
    int64_t price;     /* units */
    uint32_t fee_ppm;
    const char *policy;
    serve_standards standards;
    char *audit_groups; /* CSV file, or NULL */
} serve_settings;

struct fds_server {
    serve_settings set;
    fds_params params;    /* those that runs are opened with */
    pthread_mutex_t lock; /* of models and keys */
    serve_models *models;
    serve_keys keys;
    bool has_keys;
    fds_ledger *ledger; /* or NULL: predictions are free */
    bool is_private;    /* the ledger: providers see released statements alone */
    pthread_mutex_t ledger_lock;
    serve_rates *rates;
    serve_sessions *sessions;
    serve_hasher *hasher;
    serve_proposals proposals; /* under ledger_lock */
    serve_shadow *shadow;      /* or NULL */
    serve_audit *audit;        /* under ledger_lock; NULL: nobody has asked yet */
    serve_verify *verify;
    bool is_tls;
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
    const char *host, *origin, *fetch_site, *token, *cookie;
    json_t *query; /* names and values, which the request takes; NULL: none */
    uint8_t address[SERVE_WHO];
} serve_head;

/* One request on its way. */
typedef struct serve_request {
    char method[8], path[SERVE_PATH], remote[64];
    char account[SERVE_ACCOUNT + 1];
    serve_role role;
    serve_session session; /* of a cookie; role nobody: there is none */
    bool is_web;           /* the page or /api: headers for browsers */
    bool takes_body;       /* else what is sent is read and dropped */
    size_t most_body;      /* bytes; 0: as many as anything has */
    bool is_v1, is_queued;
    size_t json_size;
    uint8_t *body;
    size_t size, capacity;
    serve_job job;
    serve_reply *reply; /* the job's */
    double start_s;
} serve_request;

/* Whether the address is within its rate: of all requests, malformed ones too. False: refused. */
bool serve_route_admit(fds_server *server, const serve_head *head, serve_request *request);
/* Decides by the head alone; a reply without status: the body is wanted. */
void serve_route(fds_server *server, const serve_head *head, serve_request *request);
/* With the whole body. Either the reply is there, or the job is queued and request->is_queued. */
void serve_route_body(fds_server *server, serve_request *request);

/* The asker of /api as he is described to himself: role, account, token, models, price. */
void serve_route_me(fds_server *server, const serve_session *who, serve_reply *reply);

/* ---- api.c ---- */

/* One call of an endpoint, on the worker's thread, which has the ledger. */
typedef struct serve_call {
    fds_server *server;
    fds_ledger *ledger;
    serve_job *job;
    serve_role role;
    const char *account; /* of who asks */
    const json_t *args;
    serve_reply *reply; /* 200, JSON, without a body */
} serve_call;

typedef struct serve_endpoint {
    const char *path; /* after "/api/" */
    bool is_post;
    unsigned roles; /* 1 << role */
    /* A failure becomes an error: FDS_ERR_USAGE 400, FDS_ERR_NOT_FOUND 404, FDS_ERR_CONFLICT and
     * FDS_ERR_LIMIT 409, unless the reply says another status. */
    fds_status (*answer)(serve_call *call, fds_error *err);
} serve_endpoint;

const serve_endpoint *serve_endpoint_find(const char *path); /* NULL: none */
void serve_api_answer(fds_server *server, serve_job *job);

/* Members of args. A number from 0 on; usual where it is not given. */
fds_status serve_arg_number(const serve_call *call, const char *name, uint64_t usual, uint64_t *out,
                            fds_error *err);
const char *serve_arg_text(const serve_call *call,
                           const char *name); /* NULL: not given, or empty */
fds_status serve_arg_needed(const serve_call *call, const char *name, const char **out,
                            fds_error *err);
fds_status serve_arg_units(const serve_call *call, const char *name, int64_t *out, fds_error *err);
/* The account of which a customer or provider may see: its own. Others name it by args; *account
 * UINT64_MAX: they did not. */
fds_status serve_arg_account(const serve_call *call, const char *name, uint64_t *account,
                             fds_error *err);
/* {"units": ...} as money: "12.340000". */
json_t *serve_money(const serve_call *call, int64_t units);
/* Sends an object, and lets go of it; NULL, or not is_whole: out of memory. */
fds_status serve_send_json(serve_call *call, json_t *root, bool is_whole, fds_error *err);

fds_status serve_api_account(serve_call *call, fds_error *err); /* api_look.c, as are the next */
fds_status serve_api_accounts(serve_call *call, fds_error *err);
fds_status serve_api_entries(serve_call *call, fds_error *err);
fds_status serve_api_entry(serve_call *call, fds_error *err);
fds_status serve_api_statement(serve_call *call, fds_error *err);
fds_status serve_api_receipt(serve_call *call, fds_error *err);
fds_status serve_api_overview(serve_call *call, fds_error *err);
fds_status serve_api_audit(serve_call *call, fds_error *err);  /* api_audit.c */
fds_status serve_api_verify(serve_call *call, fds_error *err); /* verify.c, as is the next */
fds_status serve_api_verify_cancel(serve_call *call, fds_error *err);
fds_status serve_api_samples(serve_call *call, fds_error *err); /* api_samples.c */
fds_status serve_api_topup(serve_call *call, fds_error *err);   /* api_money.c, as are the next */
fds_status serve_api_payout(serve_call *call, fds_error *err);
fds_status serve_api_correct(serve_call *call, fds_error *err);
fds_status serve_api_proposals(serve_call *call, fds_error *err);
fds_status serve_api_agree(serve_call *call, fds_error *err);
fds_status serve_api_refuse(serve_call *call, fds_error *err);
fds_status serve_api_payouts(serve_call *call, fds_error *err);

/* ---- page.c ---- */

/* A file of the page by its path; false: there is none. */
bool serve_page_find(const char *path, const char **type, const char **text);

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
