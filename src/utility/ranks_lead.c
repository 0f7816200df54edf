/* SPDX-License-Identifier: Apache-2.0
 * Rank 0 of an MPI job: gives out rows, keeps records; its other threads compute. */
#include "utility/ranks_inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_US = 500 };
static const double PATIENCE_S = 10;

typedef enum { FREE, GIVEN, DONE } state;

typedef struct {
    const fds__ranks_work *work;
    uint32_t *order;  /* (count) tasks, in the order of dispatch */
    uint32_t *of_row; /* (rows) task + 1; 0: none */
    uint8_t *states;  /* (count) */
    double *given_s;  /* (count) when a rank got it */
    size_t next;      /* in order; all before it were given at least once */
    size_t again;     /* tasks that are free again */
    double longest_s; /* that an answer has taken */
    atomic_size_t done;
    atomic_bool has_failed;
    pthread_mutex_t lock; /* guards all but done and has_failed */
    const fds_events *events;
    double start_s, looked_s;
} leader;

/* A free task; count: there is none. The lock is held. */
static size_t take_locked(leader *l) {
    size_t count = l->work->count;
    while (l->next < count && l->states[l->order[l->next]] != FREE)
        l->next++;
    if (l->next < count)
        return l->order[l->next++];
    for (size_t i = 0; l->again && i < count; i++)
        if (l->states[i] == FREE) {
            l->again--;
            return i;
        }
    return count;
}

static size_t take_task(leader *l, double given_s) {
    pthread_mutex_lock(&l->lock);
    size_t i = take_locked(l);
    if (i < l->work->count) {
        l->states[i] = GIVEN;
        l->given_s[i] = given_s;
    }
    pthread_mutex_unlock(&l->lock);
    return i;
}

/* Keeps the record of a task, by the writer of a worker; or compares it with the one that is kept. */
static fds_status keep(leader *l, size_t i, unsigned worker, const uint8_t *record,
                       fds_error *err) {
    const fds__ranks_work *w = l->work;
    pthread_mutex_lock(&l->lock); /* until it is written, so that nobody compares before that */
    bool is_first = l->states[i] != DONE;
    fds_status status = is_first ? w->keep(w->context, i, worker, record, err)
                                 : w->compare(w->context, i, record, err);
    if (is_first && status == FDS_OK) {
        l->states[i] = DONE;
        atomic_fetch_add(&l->done, 1);
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

static fds_status compute_here(leader *l, unsigned worker, fds_error *err) {
    const fds__ranks_work *w = l->work;
    while (!atomic_load(&l->has_failed) && atomic_load(&l->done) < w->count) {
        const uint8_t *record;
        size_t i = take_task(l, 0); /* 0: it is here, and nobody else gets it */
        if (i == w->count) {
            TRY(fds__pool_check(err));
            usleep(WAIT_US);
            continue;
        }
        TRY(w->compute(w->context, i, worker, &record, err));
        TRY(keep(l, i, worker, record, err));
    }
    return FDS_OK;
}

static fds_status hear_hello(unsigned from, size_t count, fds_error *err) {
    if (count < 4 || fds__team.message[2] != fds__team.description)
        return fds__fail(
            err, FDS_ERR_CONFLICT,
            "rank %u computes something else: its data, options or version differ from "
            "those of rank 0",
            from);
    fds__team.threads[from] = (unsigned)MIN(MAX(fds__team.message[1], (uint64_t)1), (uint64_t)1024);
    return FDS_OK;
}

static fds_status hear_result(leader *l, unsigned from, size_t count, fds_error *err) {
    const uint64_t *m = fds__team.message;
    size_t record_words = fds__team.record_size / 8, weights = count > 2 ? (size_t)m[2] : 0;
    uint64_t row = m[1];
    const uint8_t *record = (const uint8_t *)(m + 3);
    fds__team.given[from] -= fds__team.given[from] > 0;
    if (count != 3 + record_words + (weights + 1) / 2 || row >= fds_plan_rows(fds__team.plan) ||
        fds__record_check(record, fds__team.record_size) != FDS__FOUND_GOOD ||
        memcmp(record + 8, fds_plan_coalition(fds__team.plan, (size_t)row),
               fds__team.plan->words * 8) != 0)
        return fds__fail(err, FDS_ERR_CORRUPT, "the record of row %llu from rank %u is damaged",
                         (unsigned long long)row, from);
    size_t task = row < fds_plan_rows(l->work->plan) ? l->of_row[row] : 0;
    if (!task)
        return FDS_OK; /* of an earlier fill, in which another rank was faster */
    pthread_mutex_lock(&l->lock);
    if (l->given_s[task - 1] > 0)
        l->longest_s = MAX(l->longest_s, fds__now_s() - l->given_s[task - 1]);
    bool is_first = l->states[task - 1] != DONE;
    pthread_mutex_unlock(&l->lock);
    const fds__sink *sink = fds__team.utility->data ? fds__team.utility->data->sink : NULL;
    if (sink && weights && is_first)
        TRY(sink->take(sink->context, fds__team.utility->workers,
                       fds_plan_coalition(fds__team.plan, row),
                       (const float *)(m + 3 + record_words), err));
    return keep(l, task - 1, l->work->workers, record, err);
}

static fds_status hear_failure(unsigned from, size_t count, fds_error *err) {
    char text[sizeof err->text];
    size_t size = MIN((count - 3) * 8, sizeof text - 1);
    memcpy(text, fds__team.message + 3, size);
    text[size] = 0;
    return fds__fail(err, (fds_status)fds__team.message[2], "rank %u: %s", from, text);
}

static fds_status hear(leader *l, bool *is_there, fds_error *err) {
    unsigned from;
    size_t count;
    TRY(fds__ranks_receive(&from, &count, is_there, err));
    if (!*is_there)
        return FDS_OK;
    uint64_t kind = fds__team.message[0];
    if (kind == FDS__RANKS_HELLO)
        return hear_hello(from, count, err);
    if (kind == FDS__RANKS_RESULT && count > 3)
        return hear_result(l, from, count, err);
    if (kind == FDS__RANKS_FAILURE && count >= 3)
        return hear_failure(from, count, err);
    return fds__fail(err, FDS_ERR_CORRUPT, "rank %u sends what no rank sends", from);
}

/* Gives rows to ranks that have fewer than they need; one more than threads, so that none waits. */
static bool give(leader *l) {
    const fds__sink *sink = fds__team.utility->data ? fds__team.utility->data->sink : NULL;
    bool has_given = false;
    unsigned all = 0;
    for (unsigned r = 1; r < fds__team.t->ranks; r++)
        all += fds__team.threads[r];
    for (unsigned r = 1; r < fds__team.t->ranks; r++) {
        bool is_end = l->work->count - MIN(l->next, l->work->count) <= all;
        while (fds__team.given[r] < fds__team.threads[r] + (fds__team.threads[r] && !is_end)) {
            size_t i = take_task(l, fds__now_s());
            if (i == l->work->count)
                return has_given;
            uint64_t words[4] = {FDS__RANKS_ROW, l->work->rows[i], sink != NULL};
            fds__ranks_send(r, words, 4);
            fds__team.given[r]++;
            has_given = true;
        }
    }
    return has_given;
}

/* Rows that a rank has had for too long are free again, but only when no other row is. */
static void look_for_frozen(leader *l) {
    double now_s = fds__now_s();
    const char *set = getenv("FDS_MPI_PATIENCE_S");
    if (now_s - l->looked_s < 0.1)
        return;
    l->looked_s = now_s;
    pthread_mutex_lock(&l->lock);
    double patience_s = MAX(set ? atof(set) : PATIENCE_S, 5 * l->longest_s);
    for (size_t i = 0; l->next >= l->work->count && !l->again && i < l->work->count; i++)
        if (l->states[i] == GIVEN && l->given_s[i] > 0 && now_s - l->given_s[i] > patience_s) {
            l->states[i] = FREE;
            l->again++;
        }
    pthread_mutex_unlock(&l->lock);
}

static fds_status lead(leader *l, fds_error *err) {
    unsigned idle = 0;
    while (!atomic_load(&l->has_failed) && atomic_load(&l->done) < l->work->count) {
        bool is_there = true, has_moved = false;
        while (is_there) {
            TRY(hear(l, &is_there, err));
            has_moved |= is_there;
        }
        has_moved |= give(l);
        look_for_frozen(l);
        TRY(fds__pool_check(err));
        idle = has_moved ? 0 : MIN(idle + 1, (unsigned)FDS__RANKS_IDLE);
        if (idle)
            fds__ranks_pause(idle);
    }
    return FDS_OK;
}

/* The calling thread leads, the others compute. */
static fds_status take_part(void *context, size_t job, unsigned worker, fds_error *err) {
    leader *l = context;
    (void)job;
    fds_status status = worker == 0 ? lead(l, err) : compute_here(l, worker - 1, err);
    if (status != FDS_OK)
        atomic_store(&l->has_failed, true);
    return status;
}

static bool show_progress(void *user, const fds_progress *part) {
    const leader *l = user;
    fds_progress all = *part;
    all.done = atomic_load(&l->done);
    all.total = l->work->count;
    return l->events && l->events->progress ? l->events->progress(l->events->user, &all) : false;
}

/* A task in the order of dispatch. */
typedef struct {
    uint32_t segment, size, task;
} turn;

static int compare_turns(const void *a, const void *b) {
    const turn *x = a, *y = b;
    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

/* The largest coalitions first, so that no rank has a large one left when the others are done; but
 * segment by segment, because a writer syncs the one that it leaves. */
static fds_status sort_tasks(leader *l, fds_error *err) {
    const fds__ranks_work *w = l->work;
    size_t players = fds_plan_players(w->plan);
    OWNED turn *turns = NULL;
    TRY(NEW(turns, w->count, err));
    for (size_t i = 0; i < w->count; i++)
        turns[i] =
            (turn){w->segments[i],
                   (uint32_t)fds_coalition_size(fds_plan_coalition(w->plan, w->rows[i]), players),
                   (uint32_t)i};
    qsort(turns, w->count, sizeof *turns, compare_turns);
    for (size_t i = 0; i < w->count; i++)
        l->order[i] = turns[i].task;
    return FDS_OK;
}

static fds_status prepare(leader *l, fds_error *err) {
    const fds__ranks_work *w = l->work;
    TRY(NEW(l->order, w->count, err));
    TRY(NEW(l->of_row, fds_plan_rows(w->plan), err));
    TRY(NEW(l->states, w->count, err));
    TRY(NEW(l->given_s, w->count, err));
    for (size_t i = 0; i < w->count; i++)
        l->of_row[w->rows[i]] = (uint32_t)i + 1;
    return sort_tasks(l, err);
}

fds_status fds__ranks_run(const fds__ranks_work *work, const fds_events *events, fds_error *err) {
    leader l = {
        .work = work, .lock = PTHREAD_MUTEX_INITIALIZER, .events = events, .start_s = fds__now_s()};
    const fds_events shown = {.progress = show_progress, .user = &l};
    fds_status status = prepare(&l, err);
    if (status == FDS_OK) /* a job for each thread, which lasts until all is done */
        status = fds__pool_run(work->workers + 1, work->workers + 1, take_part, &l, "utilities",
                               "sub-models", &shown, err);
    pthread_mutex_destroy(&l.lock);
    fds__free(l.order);
    fds__free(l.of_row);
    fds__free(l.states);
    fds__free(l.given_s);
    return status;
}
