/* SPDX-License-Identifier: Apache-2.0
 *
 * A share of the paid predictions is answered by the bank of sub-models too, in time that nobody else
 * needs, and what it says is kept in the ledger: audits compare the payments with it (secrets.c has which
 * ones, and why nobody can steer that).
 *
 * A prediction is chosen once it is paid, because its number decides. Its input waits here, in memory alone:
 * nothing keeps inputs. What does not fit, and what is lost when the process dies, is missing among the
 * ledger's rows; the entry that reveals the day's secret says how many there are, so audits see which.
 *
 * The thread has the lowest priority, answers one input at a time, and lets requests that wait go first,
 * unless the queue is half full. Rows are written some at a time, so that the disk is not synced for each.
 *
 * Locks: ledger_lock, then that of the queue. */
#include "serve/serve.h"

#include <math.h>
#include <sched.h>
#include <time.h>

enum {
    MOST_ITEMS = 4096,
    MOST_BYTES = 64 << 20,
    ROWS = 64,       /* that are written together */
    MOST_ROWS = 512, /* that wait for a disk that fails */
    TICK_MS = 500,
    YIELD_NS = 1000000,
};
#define DRAIN_S 5.0 /* for what waits when the server stops */

typedef struct serve_item {
    struct serve_item *next;
    serve_models *models; /* a user of these */
    const serve_model *model;
    uint64_t entry;
    uint32_t label;
    int64_t day;
    float sample[];
} serve_item;

/* An answer that is not written yet. */
struct serve_row {
    uint64_t entry;
    int64_t day;
    size_t payees;
    double score;
    float *numbers; /* (2, payees) values and errors */
};

/* ---- the queue ---- */

static size_t size_of(const serve_model *m) {
    return sizeof(serve_item) + fds__shape_size(m->info.shape) * sizeof(float);
}

static void free_item(serve_item *item) {
    serve_models_release(item->models);
    fds__free(item);
}

/* Tells once that predictions are missed, until all that waits is answered. */
static void miss(fds_server *server, size_t count, const char *why) {
    atomic_fetch_add(&server->metrics.audits_missed, count);
    if (!atomic_exchange(&server->shadow->is_missing, true))
        serve_log_event(server, "audit", why);
}

static void put(fds_server *server, const serve_job *job, size_t k, uint64_t entry, int64_t day) {
    serve_shadow *shadow = server->shadow;
    const serve_batch *b = job->batch;
    size_t floats = fds__shape_size(b->model->info.shape), bytes = size_of(b->model);
    if (shadow->count >= MOST_ITEMS || shadow->bytes + bytes > MOST_BYTES) {
        miss(server, 1, "the bank is too slow: predictions that should be audited are not");
        return;
    }
    serve_item *item = fds__alloc_zero(1, bytes);
    if (!item) {
        miss(server, 1, "out of memory: predictions that should be audited are not");
        return;
    }
    atomic_fetch_add(&job->models->users, 1);
    item->models = job->models;
    item->model = b->model;
    item->entry = entry;
    item->day = day;
    item->label = b->labels[job->first + k];
    memcpy(item->sample, b->samples + (job->first + k) * floats, floats * sizeof(float));
    *shadow->last = item;
    shadow->last = &item->next;
    shadow->count++;
    shadow->bytes += bytes;
    pthread_cond_signal(&shadow->is_filled);
}

fds_status serve_shadow_before(fds_server *server, fds_error *err) {
    return server->shadow ? serve_secrets_prepare(server, err) : FDS_OK;
}

void serve_shadow_after(fds_server *server, serve_job **jobs, size_t count,
                        const fds_charge *charges) {
    serve_shadow *shadow = server->shadow;
    if (!shadow)
        return;
    int64_t began = shadow->secrets.last_day, now = serve_secrets_today(&shadow->secrets);
    pthread_mutex_lock(&shadow->lock);
    for (size_t i = 0; i < count; i++) {
        const serve_job *job = jobs[i];
        for (size_t k = 0; !job->reply.status && k < job->request.count; k++) {
            const fds_charge *c = &charges[job->first_charge + k];
            if (c->status != FDS_OK || c->is_repeated || !job->model->info.has_bank)
                continue;
            /* midnight has passed meanwhile: the entry itself says on which side it is */
            int64_t day = began == now ? now : serve_secrets_day_of(server->ledger, c->index);
            if (serve_secrets_choose(&shadow->secrets, day, c->index))
                put(server, job, k, c->index, day);
        }
    }
    pthread_mutex_unlock(&shadow->lock);
}

/* ---- answers ---- */

/* The run again, for this thread alone. It must be the same one: the folder may have changed. */
static fds_status open_run(fds_server *server, serve_model *m, fds_error *err) {
    char sha256[65];
    fds_params params = server->params;
    if (m->shadow)
        return FDS_OK;
    params.threads = 1;
    TRY(fds_run_open(m->folder, &params, &m->shadow, err));
    const char *text = fds_run_describe(m->shadow);
    fds_sha256_hex(text, strlen(text), sha256);
    if (strcmp(sha256, m->sha256) == 0)
        return FDS_OK;
    fds_run_free(m->shadow);
    m->shadow = NULL;
    return fds__fail(err, FDS_ERR_CONFLICT, "%s: another run than the one that is served",
                     m->folder);
}

/* values and errors (players) */
static fds_status ask(serve_model *m, const serve_item *item, double *values, double *errors,
                      double *score, fds_error *err) {
    uint16_t any = 0;
    uint32_t label = item->label;
    double target = 0;
    const fds_arrays arrays = {.count = 1,
                               .shape = m->info.shape,
                               .floats = item->sample,
                               .labels = &any,
                               .classes = m->info.classes};
    fds_dataset *ds = NULL;
    TRY(fds_dataset_create(&arrays, &ds, err));
    const fds__answers answers = {
        .labels = &label, .values = values, .errors = errors, .targets = &target};
    fds_status status = fds__run_explain(m->shadow, FDS__ANSWERER_BANK, ds, NULL, 1,
                                         !m->info.is_regression, &answers, err);
    if (status == FDS_OK)
        status = fds__run_scores(m->shadow, ds, score, err);
    fds_dataset_free(ds);
    return status;
}

static fds_status answer(fds_server *server, const serve_item *item, fds_error *err) {
    serve_shadow *shadow = server->shadow;
    serve_model *m = (serve_model *)(uintptr_t)item->model; /* its shadow is this thread's */
    size_t players = m->info.players, payees = m->payees->count;
    OWNED double *values = NULL;
    struct serve_row *row = &shadow->rows[shadow->row_count];
    TRY(NEW(values, 2 * players, err));
    double *errors = values + players;
    TRY(open_run(server, m, err));
    TRY(ask(m, item, values, errors, &row->score, err));
    TRY(NEW(row->numbers, 2 * payees, err));
    for (size_t i = 0; i < players; i++) {
        size_t p = m->payees->payee_of[i];
        row->numbers[p] += (float)values[i];
        row->numbers[payees + p] += (float)(errors[i] * errors[i]);
    }
    for (size_t p = payees; p < 2 * payees; p++)
        row->numbers[p] = sqrtf(row->numbers[p]);
    row->entry = item->entry;
    row->day = item->day;
    row->payees = payees;
    shadow->row_count++;
    return FDS_OK;
}

/* ---- rows ---- */

static void free_rows(serve_shadow *shadow) {
    for (size_t i = 0; i < shadow->row_count; i++)
        fds__free(shadow->rows[i].numbers);
    shadow->row_count = 0;
}

/* Under ledger_lock. What a failing disk does not take is tried again. */
static void write_rows(fds_server *server) {
    serve_shadow *shadow = server->shadow;
    fds_audited rows[MOST_ROWS];
    fds_error err = {0};
    for (size_t i = 0; i < shadow->row_count; i++) {
        const struct serve_row *r = &shadow->rows[i];
        rows[i] = (fds_audited){r->entry, r->numbers, r->numbers + r->payees, r->score};
    }
    if (!shadow->row_count)
        return;
    fds_status status = fds_ledger_add_audited(server->ledger, rows, shadow->row_count, &err);
    if (status == FDS_OK)
        atomic_fetch_add(&server->metrics.audited, shadow->row_count);
    else if (status == FDS_ERR_IO && shadow->row_count < MOST_ROWS)
        return;
    else
        miss(server, shadow->row_count, err.text);
    free_rows(shadow);
}

/* Whether something of that day, or before it, is still on its way. */
static bool is_pending(serve_shadow *shadow, int64_t day) {
    bool is = shadow->busy_day <= day;
    pthread_mutex_lock(&shadow->lock);
    for (const serve_item *item = shadow->first; item && !is; item = item->next)
        is = item->day <= day;
    pthread_mutex_unlock(&shadow->lock);
    for (size_t i = 0; i < shadow->row_count && !is; i++)
        is = shadow->rows[i].day <= day;
    return is;
}

/* Writes what waits; when a day is over and all of it is written, its secret is revealed. */
static void settle(fds_server *server) {
    serve_shadow *shadow = server->shadow;
    fds_error err = {0};
    pthread_mutex_lock(&server->ledger_lock);
    write_rows(server);
    int64_t today = serve_secrets_today(&shadow->secrets);
    if (today > shadow->revealed_day && !is_pending(shadow, today - 1)) {
        if (serve_secrets_reveal(server, today, &err) == FDS_OK)
            shadow->revealed_day = today;
        else
            serve_log_event(server, "audit", err.text);
    }
    pthread_mutex_unlock(&server->ledger_lock);
}

/* ---- the thread ---- */

/* The next item; NULL: there is none now. */
static serve_item *take(serve_shadow *shadow) {
    struct timespec until;
    pthread_mutex_lock(&shadow->lock);
    if (!shadow->first && !shadow->is_ended) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TICK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&shadow->is_filled, &shadow->lock, &until);
    }
    serve_item *item = shadow->first;
    if (item) {
        shadow->first = item->next;
        shadow->last = shadow->first ? shadow->last : &shadow->first;
        shadow->count--;
        shadow->bytes -= size_of(item->model);
    }
    shadow->busy_day = item ? item->day : INT64_MAX;
    pthread_mutex_unlock(&shadow->lock);
    return item;
}

static bool is_over(serve_shadow *shadow) {
    pthread_mutex_lock(&shadow->lock);
    bool is = shadow->is_ended && (!shadow->first || fds__now_s() > shadow->end_s);
    pthread_mutex_unlock(&shadow->lock);
    return is;
}

static bool must_wait(fds_server *server) {
    serve_shadow *shadow = server->shadow;
    pthread_mutex_lock(&shadow->lock);
    bool has_time =
        !shadow->is_ended && shadow->count < MOST_ITEMS / 2 && shadow->bytes < MOST_BYTES / 2;
    pthread_mutex_unlock(&shadow->lock);
    pthread_mutex_lock(&server->queue.lock);
    bool is_busy = server->queue.first != NULL;
    pthread_mutex_unlock(&server->queue.lock);
    return has_time && is_busy;
}

static void give_way(fds_server *server) {
    const struct timespec pause = {.tv_nsec = YIELD_NS};
    while (must_wait(server))
        nanosleep(&pause, NULL);
}

static void *work(void *context) {
    fds_server *server = context;
    serve_shadow *shadow = server->shadow;
    const struct sched_param none = {0};
    sched_setscheduler(0, SCHED_IDLE,
                       &none); /* of this thread; if that fails, it is as any other */
    double settled_s = fds__now_s();
    while (!is_over(shadow)) {
        serve_item *item = take(shadow);
        fds_error err = {0};
        if (item) {
            give_way(server);
            if (answer(server, item, &err) != FDS_OK)
                miss(server, 1, err.text);
            free_item(item);
        } else {
            atomic_store(&shadow->is_missing, false);
        }
        shadow->busy_day = INT64_MAX;
        if (shadow->row_count >= ROWS || fds__now_s() - settled_s > TICK_MS / 1000.0) {
            settle(server);
            settled_s = fds__now_s();
        }
    }
    settle(server);
    return NULL;
}

/* ---- life ---- */

static bool has_bank(fds_server *server) {
    serve_models *models = serve_models_now(server);
    bool has = false;
    for (size_t i = 0; i < models->count; i++)
        has |= models->items[i].info.has_bank;
    serve_models_release(models);
    return has;
}

fds_status serve_shadow_open(fds_server *server, const char *base, double share,
                             int64_t (*now_ms)(void), fds_error *err) {
    serve_shadow *shadow;
    TRY(NEW(shadow, 1, err));
    server->shadow = shadow;
    pthread_mutex_init(&shadow->lock, NULL);
    pthread_cond_init(&shadow->is_filled, NULL);
    shadow->last = &shadow->first;
    shadow->busy_day = INT64_MAX;
    shadow->secrets.now_ms = now_ms;
    shadow->secrets.share_ppm = has_bank(server) ? (uint32_t)(share * 1e6 + 0.5) : 0;
    TRY(NEW(shadow->rows, MOST_ROWS, err));
    TRY(serve_secrets_open(server, base, err));
    shadow->revealed_day = serve_secrets_today(&shadow->secrets);
    return serve_secrets_reveal(server, shadow->revealed_day, err);
}

fds_status serve_shadow_start(fds_server *server, fds_error *err) {
    if (!server->shadow)
        return FDS_OK;
    if (pthread_create(&server->shadow->thread, NULL, work, server) != 0)
        return fds__fail(err, FDS_ERR_NOMEM, "cannot start a thread");
    server->shadow->has_thread = true;
    return FDS_OK;
}

void serve_shadow_stop(fds_server *server) {
    serve_shadow *shadow = server->shadow;
    if (!shadow)
        return;
    if (shadow->has_thread) {
        pthread_mutex_lock(&shadow->lock);
        shadow->is_ended = true;
        shadow->end_s = fds__now_s() + DRAIN_S;
        pthread_cond_signal(&shadow->is_filled);
        pthread_mutex_unlock(&shadow->lock);
        pthread_join(shadow->thread, NULL);
    }
    if (shadow->count)
        miss(server, shadow->count, "the server stops: predictions that should be audited are not");
    while (shadow->first) {
        serve_item *item = shadow->first;
        shadow->first = item->next;
        free_item(item);
    }
    free_rows(shadow);
    fds__free(shadow->rows);
    serve_forget(&shadow->secrets, sizeof shadow->secrets);
    pthread_mutex_destroy(&shadow->lock);
    pthread_cond_destroy(&shadow->is_filled);
    fds__free(shadow);
    server->shadow = NULL;
}
