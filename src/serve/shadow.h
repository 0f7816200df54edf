/* SPDX-License-Identifier: Apache-2.0
 * What the bank says about some predictions, for audits, and about which ones. A part of serve.h. */
#ifndef FDS_SERVE_SHADOW_H
#define FDS_SERVE_SHADOW_H

/* ---- secrets.c ---- */

enum { SERVE_SECRETS = 64 };

typedef struct serve_secret {
    int64_t day; /* since 1970 */
    uint32_t share_ppm;
    uint8_t bytes[32];
    bool is_committed; /* the log has its hash */
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
int64_t serve_secrets_day_of(const fds_ledger *ledger, uint64_t entry); /* -1: not known */
/* Reveals the secrets of all days before that one. */
fds_status serve_secrets_reveal(fds_server *server, int64_t before, fds_error *err);

/* ---- shadow.c ---- */

struct serve_item;
struct serve_row;

typedef struct serve_shadow {
    serve_secrets secrets;
    pthread_mutex_t lock; /* of the queue */
    pthread_cond_t is_filled;
    struct serve_item *first, **last;
    size_t count, bytes;
    bool is_ended;
    double end_s;
    atomic_bool is_missing; /* that predictions are missed was told */
    pthread_t thread;
    bool has_thread;
    /* The thread's. */
    struct serve_row *rows;
    size_t row_count;
    int64_t busy_day;     /* of what is being answered; INT64_MAX: nothing is */
    int64_t revealed_day; /* before which all secrets are revealed */
} serve_shadow;

/* base: of the secrets' files; share: of the predictions, 0 to 1; now_ms: NULL for the system's. Reveals
 * what is due. serve_shadow_stop is needed after a failure too. */
fds_status serve_shadow_open(fds_server *server, const char *base, double share,
                             int64_t (*now_ms)(void), fds_error *err);
fds_status serve_shadow_start(fds_server *server, fds_error *err);
/* Answers what waits, for some seconds. */
void serve_shadow_stop(fds_server *server);
/* Both under ledger_lock, around the transaction that pays for jobs. */
fds_status serve_shadow_before(fds_server *server, fds_error *err);
void serve_shadow_after(fds_server *server, serve_job **jobs, size_t count,
                        const fds_charge *charges);

#endif
