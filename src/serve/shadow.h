/* SPDX-License-Identifier: Apache-2.0
 * What the bank says about some predictions, for audits, and about which ones. A part of serve.h. */
#ifndef FDS_SERVE_SHADOW_H
#define FDS_SERVE_SHADOW_H

/* ---- secrets.c ---- */

enum { SERVE_SECRETS = 64, SERVE_SEAL = 36 /* bytes that a seal adds */ };

typedef struct serve_secret {
    int64_t day; /* since 1970 */
    uint32_t share_ppm;
    uint8_t bytes[32], key[32]; /* key: of inputs that wait; it is never revealed */
    bool is_committed;          /* the log has its hash */
} serve_secret;

/* Those that are not revealed yet; under ledger_lock. */
typedef struct serve_secrets {
    char base[FDS__PATH_MAX]; /* of their files' names */
    uint32_t share_ppm;       /* of new ones; 0: there are none */
    size_t count;
    serve_secret items[SERVE_SECRETS];
    int64_t last_day, ready_day; /* of the newest entry; for which all is prepared, or -1 */
    int64_t (*now_ms)(void);     /* since 1970 */
} serve_secrets;

int64_t serve_system_ms(void);
/* Reads the files; what was left half done is finished or removed. */
fds_status serve_secrets_open(fds_server *server, const char *base, fds_error *err);
int64_t serve_secrets_today(const serve_secrets *secrets);
/* Before predictions are paid: the log commits to the secrets of this day and of the next. */
fds_status serve_secrets_prepare(fds_server *server, fds_error *err);
/* Whether the prediction of that entry, paid on that day, is audited. */
bool serve_secrets_choose(const serve_secrets *secrets, int64_t day, uint64_t entry);
void serve_secrets_name(int64_t day, char name[11]); /* "2026-11-18" */
/* An input for which that day's secret has chosen its entry: out (size + SERVE_SEAL). */
fds_status serve_secrets_seal(const serve_secrets *secrets, int64_t day, uint64_t entry,
                              const void *data, size_t size, uint8_t *out, fds_error *err);
int64_t serve_secrets_sealed_day(const void *sealed, size_t size); /* -1: malformed */
/* The same back: out (size - SERVE_SEAL). FDS_ERR_NOT_FOUND: the key is gone. FDS_ERR_CORRUPT: somebody
 * has changed it. */
fds_status serve_secrets_unseal(const serve_secrets *secrets, uint64_t entry, const void *sealed,
                                size_t size, void *out, fds_error *err);
/* Reveals the secrets of all days before that one. */
fds_status serve_secrets_reveal(fds_server *server, int64_t before, fds_error *err);

/* ---- shadow.c ---- */

struct serve_item;
struct serve_row;

typedef struct serve_shadow {
    serve_secrets secrets;
    uint8_t *sealed; /* (sealed_capacity) the last input that was kept; under ledger_lock */
    size_t sealed_capacity;
    unsigned long long kept; /* by the transaction at hand; under ledger_lock */
    pthread_mutex_t lock;    /* of the next two */
    pthread_cond_t is_filled;
    bool has_more; /* the ledger may have inputs that were not taken yet */
    bool is_ended;
    pthread_t thread;
    bool has_thread;
    /* The thread's. */
    serve_models *models[2]; /* the newest that it has used, and those before; users of them */
    struct serve_item *first, **last;
    uint64_t next;  /* inputs of entries below it are taken, or have failed */
    double retry_s; /* when to take all again, because one has failed; INFINITY: none has */
    bool is_told;   /* that one has failed */
    struct serve_row *rows;
    size_t row_count;
    int64_t revealed_day; /* before which all secrets are revealed */
} serve_shadow;

/* base: of the secrets' files; share: of the predictions, 0 to 1; now_ms: NULL for the system's. Reveals
 * what is due. serve_shadow_stop is needed after a failure too. */
fds_status serve_shadow_open(fds_server *server, const char *base, double share,
                             int64_t (*now_ms)(void), fds_error *err);
fds_status serve_shadow_start(fds_server *server, fds_error *err);
void serve_shadow_stop(fds_server *server); /* what waits goes on waiting */
/* Under ledger_lock, around the transaction that pays. */
fds_status serve_shadow_before(fds_server *server, fds_error *err);
void serve_shadow_after(fds_server *server);
/* Within it: what the ledger keeps of sample k of a job, which entry pays for; *size 0: nothing. */
fds_status serve_shadow_keep(fds_server *server, const serve_job *job, size_t k, uint64_t entry,
                             int64_t at_ms, const void **data, size_t *size, fds_error *err);
/* Reveals the secrets of days that are over, as far as nothing of them waits. What waits in vain for
 * days is forgotten: audits name it then. */
fds_status serve_shadow_reveal(fds_server *server, fds_error *err);

#endif
