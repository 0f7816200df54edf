/* SPDX-License-Identifier: Apache-2.0
 *
 * A share of the paid predictions is answered by the bank of sub-models too, in time that nobody else
 * needs, and what it says is kept in the ledger: audits compare the payments with it (secrets.c has which
 * ones, and why nobody can steer that).
 *
 * A prediction is chosen when its entry has a number, because that decides. Its input is sealed, and waits
 * in the ledger, written by the transaction that pays; the one that writes the bank's answer removes it. So
 * a chosen prediction has an input or an answer at all times, whenever the process dies, and neither a full
 * queue nor a stop loses any: who removes an input makes an audit alarm. The sealed bytes hold
 *
 *     run in 8 bytes, label in 4, 4 of zeros, the sample in floats of 4      (little-endian)
 *
 * An input that cannot be answered (its run is not served any more, or has no answer) is tried again, for
 * days; then it is forgotten, and audits name the entry. If very many wait, predictions are refused: that
 * a prediction is audited is a promise, which a slow bank does not undo.
 *
 * The thread has the lowest priority, answers one input at a time, and lets requests that wait go first,
 * unless half of what may wait does. Rows are written some at a time, so that the disk is not synced for
 * each.
 *
 * Locks: ledger_lock, then the shadow's own. */
#include "serve/serve.h"

#include <math.h>
#include <time.h>

enum {
    MOST_WAITING = 1000000,
    TAKEN = 16, /* inputs that are read together */
    ROWS = 64,  /* that are written together */
    TICK_MS = 500,
    YIELD_NS = 1000000,
    WAIT_DAYS = 2, /* after which an input is forgotten; audits want the secret then */
    DAY_MS = 86400000,
};
#define RETRY_S 30.0

/* What an input is for. */
typedef struct {
    uint64_t run; /* of the ledger */
    uint32_t label, zero;
} item_head;

typedef struct serve_item {
    struct serve_item *next;
    uint64_t entry;
    size_t floats; /* of the sample */
    item_head head;
    float sample[];
} serve_item;

/* An answer that is not written yet. */
struct serve_row {
    uint64_t entry;
    size_t payees;
    double score;
    float *numbers; /* (2, payees) values and errors */
};

/* ---- inputs that are kept ---- */

fds_status serve_shadow_before(fds_server *server, fds_error *err) {
    if (!server->shadow)
        return FDS_OK;
    server->shadow->kept = 0;
    if (atomic_load(&server->metrics.audits_waiting) >= MOST_WAITING)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "%d predictions wait for the bank, which is too slow for `audit_share`",
                         MOST_WAITING);
    return serve_secrets_prepare(server, err);
}

fds_status serve_shadow_keep(fds_server *server, const serve_job *job, size_t k, uint64_t entry,
                             int64_t at_ms, const void **data, size_t *size, fds_error *err) {
    serve_shadow *shadow = server->shadow;
    const serve_batch *b = job->batch;
    const serve_model *m = b->model;
    int64_t day = at_ms / DAY_MS;
    *size = 0;
    if (!shadow || !m->info.has_bank || !serve_secrets_choose(&shadow->secrets, day, entry))
        return FDS_OK;
    const item_head head = {.run = m->ledger_run, .label = b->labels[job->first + k]};
    size_t floats = fds__shape_size(m->info.shape), bytes = sizeof head + floats * sizeof(float);
    void *sealed = shadow->sealed;
    fds_status status = fds__grow(&sealed, &shadow->sealed_capacity, SERVE_SEAL + bytes, 1, err);
    shadow->sealed = sealed;
    TRY(status);
    uint8_t *plain = shadow->sealed + SERVE_SEAL; /* encrypted where it is */
    memcpy(plain, &head, sizeof head);
    memcpy(plain + sizeof head, b->samples + (job->first + k) * floats, floats * sizeof(float));
    TRY(serve_secrets_seal(&shadow->secrets, day, entry, plain, bytes, shadow->sealed, err));
    shadow->kept++;
    *data = shadow->sealed;
    *size = SERVE_SEAL + bytes;
    return FDS_OK;
}

static void call_thread(serve_shadow *shadow) {
    pthread_mutex_lock(&shadow->lock);
    shadow->has_more = true;
    pthread_cond_signal(&shadow->is_filled);
    pthread_mutex_unlock(&shadow->lock);
}

void serve_shadow_after(fds_server *server) {
    serve_shadow *shadow = server->shadow;
    if (!shadow || !shadow->kept)
        return;
    atomic_fetch_add(&server->metrics.audits_waiting, shadow->kept);
    call_thread(shadow);
}

/* ---- inputs that wait ---- */

/* Whatever has failed is tried again later: its input is still there. Tells the first of many. */
static void fail(fds_server *server, const char *why) {
    serve_shadow *shadow = server->shadow;
    shadow->retry_s = MIN(shadow->retry_s, fds__now_s() + RETRY_S);
    if (!shadow->is_told)
        serve_log_event(server, "audit", why);
    shadow->is_told = true;
}

static fds_status take_item(void *user, uint64_t entry, const void *sealed, size_t size,
                            fds_error *err) {
    fds_server *server = user;
    serve_shadow *shadow = server->shadow;
    serve_item *item;
    fds_error why = {0};
    size_t bytes = size > SERVE_SEAL ? size - SERVE_SEAL : 0;
    shadow->next = entry + 1;
    item = fds__alloc_zero(1, sizeof *item + bytes);
    if (!item)
        return fds__fail_nomem(err, bytes);
    item->entry = entry;
    item->floats = (MAX(bytes, sizeof item->head) - sizeof item->head) / sizeof(float);
    if (serve_secrets_unseal(&shadow->secrets, entry, sealed, size, &item->head, &why) != FDS_OK) {
        fds__free(item);
        fail(server, why.text);
        return FDS_OK;
    }
    *shadow->last = item;
    shadow->last = &item->next;
    return FDS_OK;
}

static void take_items(fds_server *server) {
    serve_shadow *shadow = server->shadow;
    fds_error err = {0};
    pthread_mutex_lock(&server->ledger_lock);
    uint64_t from = shadow->next;
    if (fds_ledger_waiting(server->ledger, from, TAKEN, take_item, server, &err) != FDS_OK)
        fail(server, err.text);
    pthread_mutex_lock(&shadow->lock);
    shadow->has_more = shadow->next != from;
    pthread_mutex_unlock(&shadow->lock);
    pthread_mutex_unlock(&server->ledger_lock);
}

static serve_item *pop(serve_shadow *shadow) {
    serve_item *item = shadow->first;
    if (item) {
        shadow->first = item->next;
        shadow->last = shadow->first ? shadow->last : &shadow->first;
    }
    return item;
}

/* ---- models ---- */

/* A reload brings new models, and predictions of the old ones may still wait: both are kept until nothing
 * does. */
static bool take_models(fds_server *server) {
    serve_shadow *shadow = server->shadow;
    serve_models *now = serve_models_now(server);
    bool are_new = now != shadow->models[0];
    if (!are_new) {
        serve_models_release(now);
        return false;
    }
    serve_models_release(shadow->models[1]);
    shadow->models[1] = shadow->models[0];
    shadow->models[0] = now;
    return true;
}

static serve_model *find_model(serve_shadow *shadow, uint64_t run) {
    for (int i = 0; i < 2 && shadow->models[i]; i++)
        for (size_t k = 0; k < shadow->models[i]->count; k++)
            if (shadow->models[i]->items[k].ledger_run == run)
                return &shadow->models[i]->items[k];
    return NULL;
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
    fds_status status = strcmp(sha256, m->sha256) == 0
                            ? fds__run_verify(m->shadow, err)
                            : fds__fail(err, FDS_ERR_CONFLICT,
                                        "%s: another run than the one that is served", m->folder);
    if (status == FDS_OK)
        return FDS_OK;
    fds_run_free(m->shadow);
    m->shadow = NULL;
    return status;
}

/* values and errors (players) */
static fds_status ask(serve_model *m, serve_item *item, double *values, double *errors,
                      double *score, fds_error *err) {
    uint16_t any = 0;
    uint32_t label = item->head.label;
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

/* Values of players as those of payees, who have several. */
static fds_status add_up(const serve_model *m, const double *values, const double *errors,
                         struct serve_row *row, fds_error *err) {
    size_t payees = row->payees;
    TRY(NEW(row->numbers, 2 * payees, err));
    for (size_t i = 0; i < m->info.players; i++) {
        size_t p = m->payees->payee_of[i];
        row->numbers[p] += (float)values[i];
        row->numbers[payees + p] += (float)(errors[i] * errors[i]);
    }
    for (size_t p = 0; p < payees; p++) {
        row->numbers[payees + p] = sqrtf(row->numbers[payees + p]);
        if (!isfinite(row->numbers[p])) {
            fds__free(row->numbers);
            return fds__fail(err, FDS_ERR_DIVERGED, "entry %llu: the bank has no answer",
                             (unsigned long long)row->entry);
        }
    }
    return FDS_OK;
}

static fds_status answer(fds_server *server, serve_item *item, fds_error *err) {
    serve_shadow *shadow = server->shadow;
    serve_model *m = find_model(shadow, item->head.run);
    if (!m && take_models(server))
        m = find_model(shadow, item->head.run);
    if (!m || !m->info.has_bank || item->floats != fds__shape_size(m->info.shape) ||
        item->head.label >= MAX(m->info.classes, 1))
        return fds__fail(err, FDS_ERR_NOT_FOUND,
                         "entry %llu waits for its audit by a run that is not served any more: "
                         "serve it beside the others",
                         (unsigned long long)item->entry);
    struct serve_row row = {.entry = item->entry, .payees = m->payees->count};
    OWNED double *values = NULL;
    TRY(NEW(values, 2 * m->info.players, err));
    double *errors = values + m->info.players;
    TRY(open_run(server, m, err));
    TRY(ask(m, item, values, errors, &row.score, err));
    TRY(add_up(m, values, errors, &row, err));
    shadow->rows[shadow->row_count++] = row;
    return FDS_OK;
}

/* ---- rows ---- */

static void free_rows(serve_shadow *shadow) {
    for (size_t i = 0; i < shadow->row_count; i++)
        fds__free(shadow->rows[i].numbers);
    shadow->row_count = 0;
}

/* Under ledger_lock. */
static void write_rows(fds_server *server) {
    serve_shadow *shadow = server->shadow;
    fds_audited rows[ROWS];
    fds_error err = {0};
    for (size_t i = 0; i < shadow->row_count; i++) {
        const struct serve_row *r = &shadow->rows[i];
        rows[i] = (fds_audited){r->entry, r->numbers, r->numbers + r->payees, r->score};
    }
    if (!shadow->row_count)
        return;
    if (fds_ledger_add_audited(server->ledger, rows, shadow->row_count, &err) == FDS_OK) {
        atomic_fetch_add(&server->metrics.audited, shadow->row_count);
        atomic_fetch_sub(&server->metrics.audits_waiting, shadow->row_count);
    } else {
        fail(server, err.text);
    }
    free_rows(shadow);
}

static fds_status read_day(void *user, uint64_t entry, const void *sealed, size_t size,
                           fds_error *err) {
    int64_t *day = user;
    (void)err;
    (void)entry;
    *day = serve_secrets_sealed_day(sealed, size);
    return FDS_OK;
}

static fds_status forget(fds_server *server, int64_t before, fds_error *err) {
    char name[11];
    uint64_t count, left;
    serve_secrets_name(before, name);
    TRY(fds_ledger_drop_waiting(server->ledger, name, &count, err));
    TRY(fds_ledger_waiting_count(server->ledger, &left, err));
    atomic_store(&server->metrics.audits_waiting, left);
    atomic_fetch_add(&server->metrics.audits_missed, count);
    if (count)
        serve_log_event(server, "audit",
                        "predictions that should have been audited were not, and are forgotten");
    return FDS_OK;
}

fds_status serve_shadow_reveal(fds_server *server, fds_error *err) {
    serve_shadow *shadow = server->shadow;
    int64_t today = serve_secrets_today(&shadow->secrets), oldest = INT64_MAX;
    if (today <= shadow->revealed_day)
        return FDS_OK;
    TRY(fds_ledger_waiting(server->ledger, 0, 1, read_day, &oldest, err));
    if (oldest < today - WAIT_DAYS) {
        TRY(forget(server, today - WAIT_DAYS, err));
        oldest = INT64_MAX;
        TRY(fds_ledger_waiting(server->ledger, 0, 1, read_day, &oldest, err));
    }
    TRY(serve_secrets_reveal(server, MIN(oldest, today), err));
    shadow->revealed_day = MIN(oldest, today);
    return FDS_OK;
}

/* Writes what was answered; when a day is over and all of it is written, its secret is revealed. */
static void settle(fds_server *server) {
    fds_error err = {0};
    pthread_mutex_lock(&server->ledger_lock);
    write_rows(server);
    if (serve_shadow_reveal(server, &err) != FDS_OK)
        fail(server, err.text);
    pthread_mutex_unlock(&server->ledger_lock);
}

/* ---- the thread ---- */

static bool is_ended(serve_shadow *shadow) {
    pthread_mutex_lock(&shadow->lock);
    bool is = shadow->is_ended;
    pthread_mutex_unlock(&shadow->lock);
    return is;
}

/* Waits for inputs, or for a tick. */
static void wait(serve_shadow *shadow) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TICK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&shadow->lock);
    if (!shadow->has_more && !shadow->is_ended)
        pthread_cond_timedwait(&shadow->is_filled, &shadow->lock, &until);
    pthread_mutex_unlock(&shadow->lock);
}

static bool has_more(serve_shadow *shadow) {
    pthread_mutex_lock(&shadow->lock);
    bool has = shadow->has_more;
    pthread_mutex_unlock(&shadow->lock);
    return has;
}

/* Nothing is to be done now: so the models of before a reload can go, and failures are tried again. */
static void rest(fds_server *server) {
    serve_shadow *shadow = server->shadow;
    if (!take_models(server)) {
        serve_models_release(shadow->models[1]);
        shadow->models[1] = NULL;
    }
    if (fds__now_s() > shadow->retry_s) {
        shadow->retry_s = INFINITY;
        shadow->next = 0;
        call_thread(shadow);
    }
    wait(shadow);
}

static bool must_wait(fds_server *server) {
    bool has_time = !is_ended(server->shadow) &&
                    atomic_load(&server->metrics.audits_waiting) < MOST_WAITING / 2;
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

static void answer_next(fds_server *server) {
    serve_shadow *shadow = server->shadow;
    fds_error err = {0};
    serve_item *item = pop(shadow);
    give_way(server);
    if (answer(server, item, &err) != FDS_OK)
        fail(server, err.text);
    else
        shadow->is_told = false;
    fds__free(item);
}

static void *work(void *context) {
    fds_server *server = context;
    serve_shadow *shadow = server->shadow;
    serve_lower_priority();
    double settled_s = fds__now_s();
    while (!is_ended(shadow)) {
        if (!shadow->first)
            take_items(server);
        if (shadow->first)
            answer_next(server);
        bool is_idle = !shadow->first && !has_more(shadow);
        if (shadow->row_count == ROWS || is_idle || fds__now_s() - settled_s > TICK_MS / 1000.0) {
            settle(server);
            settled_s = fds__now_s();
        }
        if (is_idle)
            rest(server);
    }
    settle(server);
    return NULL;
}

/* ---- start and stop ---- */

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
    uint64_t waiting;
    TRY(NEW(shadow, 1, err));
    server->shadow = shadow;
    pthread_mutex_init(&shadow->lock, NULL);
    pthread_cond_init(&shadow->is_filled, NULL);
    shadow->last = &shadow->first;
    shadow->retry_s = INFINITY;
    shadow->revealed_day = -1;
    shadow->secrets.now_ms = now_ms;
    shadow->secrets.share_ppm = has_bank(server) ? (uint32_t)(share * 1e6 + 0.5) : 0;
    TRY(NEW(shadow->rows, ROWS, err));
    TRY(serve_secrets_open(server, base, err));
    TRY(fds_ledger_waiting_count(server->ledger, &waiting, err));
    atomic_store(&server->metrics.audits_waiting, waiting);
    shadow->has_more = waiting > 0;
    return serve_shadow_reveal(server, err);
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
        pthread_cond_signal(&shadow->is_filled);
        pthread_mutex_unlock(&shadow->lock);
        pthread_join(shadow->thread, NULL);
    }
    while (shadow->first)
        fds__free(pop(shadow));
    free_rows(shadow);
    fds__free(shadow->rows);
    fds__free(shadow->sealed);
    serve_models_release(shadow->models[0]);
    serve_models_release(shadow->models[1]);
    serve_forget(&shadow->secrets, sizeof shadow->secrets);
    pthread_mutex_destroy(&shadow->lock);
    pthread_cond_destroy(&shadow->is_filled);
    fds__free(shadow);
    server->shadow = NULL;
}
