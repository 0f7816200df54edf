/* SPDX-License-Identifier: Apache-2.0
 * A parallel loop. Workers take the next job number from one counter, so jobs run in any order;
 * results must depend on the job's number alone. */
#include "base.h"

#include <cblas.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    size_t count;
    fds__job job;
    void *context;
    const char *stage, *unit;
    const fds_events *events;
    double start_s, reported_s;
    atomic_size_t next, done;
    atomic_bool stop, is_cancelled;
    pthread_mutex_t lock; /* guards what follows */
    size_t failed_job;
    fds_error error;
} pool;

typedef struct {
    pool *pool;
    unsigned number;
    pthread_t thread;
} worker;

static const double REPORT_S = 0.1;   /* between two reports to the caller */
static _Thread_local worker *current; /* the worker that this thread is, or NULL */

/* Only the calling thread reports. */
static fds_status report(pool *p, fds_error *err) {
    worker *w = current;
    current = NULL; /* the callback is not a job */
    fds_status status =
        fds__report(p->events, p->stage, p->unit, atomic_load(&p->done), p->count, p->start_s, err);
    if (status != FDS_OK)
        atomic_store(&p->is_cancelled, true);
    p->reported_s = fds__now_s();
    current = w;
    return status;
}

fds_status fds__pool_check(fds_error *err) {
    pool *p = current ? current->pool : NULL;
    if (p && current->number == 0 && fds__now_s() - p->reported_s > REPORT_S)
        return report(p, err);
    if (p && atomic_load(&p->is_cancelled))
        return fds__fail(err, FDS_ERR_CANCELLED, "%s: cancelled after %zu of %zu %s", p->stage,
                         atomic_load(&p->done), p->count, p->unit);
    return FDS_OK;
}

static void note_failure(pool *p, size_t job, const fds_error *error) {
    pthread_mutex_lock(&p->lock);
    if (p->error.status == FDS_OK || job < p->failed_job) {
        p->failed_job = job;
        p->error = *error;
    }
    pthread_mutex_unlock(&p->lock);
    atomic_store(&p->stop, true);
}

static void *work(void *argument) {
    worker *w = argument;
    worker *outer = current;
    pool *p = w->pool;
    current = w;
    while (!atomic_load(&p->stop)) {
        size_t job = atomic_fetch_add(&p->next, 1);
        if (job >= p->count)
            break;
        fds_error error = {0};
        fds_status status = p->job(p->context, job, w->number, &error);
        if (status == FDS_OK) {
            atomic_fetch_add(&p->done, 1);
            if (w->number == 0)
                status = report(p, &error);
        }
        if (status != FDS_OK) {
            error.status = status;
            note_failure(p, job, &error);
        }
    }
    current = outer;
    return NULL;
}

/* The calling thread, which has no more jobs, waits for another thread and continues to report. */
static void join(pool *p, pthread_t thread) {
    struct timespec until;
    fds_error error = {0};
    do {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += (long)(REPORT_S * 1e9);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!atomic_load(&p->is_cancelled) && fds__now_s() - p->reported_s > REPORT_S &&
            report(p, &error) != FDS_OK)
            note_failure(p, p->count, &error);
    } while (pthread_timedjoin_np(thread, NULL, &until) == ETIMEDOUT);
}

/* Those that this process may use: a batch system may have given it some of the machine's. Where there
 * are more than a set can hold, all that are online. */
unsigned fds_processors(void) {
    cpu_set_t own;
    long online = sched_getaffinity(0, sizeof own, &own) == 0 ? CPU_COUNT(&own)
                                                              : sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online > 1024 ? 1024 : (unsigned)online;
}

unsigned fds__pool_workers(unsigned threads, size_t count) {
    unsigned wanted = threads ? threads : fds_processors();
    return (unsigned)MAX((size_t)1, MIN((size_t)wanted, count));
}

fds_status fds__pool_run(unsigned threads, size_t count, fds__job job, void *context,
                         const char *stage, const char *unit, const fds_events *events,
                         fds_error *err) {
    assert(job && stage && unit);
    unsigned workers = fds__pool_workers(threads, count), started = 1;
    OWNED worker *all = NULL;
    TRY(NEW(all, workers, err));
    pool p = {.count = count,
              .job = job,
              .context = context,
              .stage = stage,
              .unit = unit,
              .events = events,
              .start_s = fds__now_s(),
              .reported_s = fds__now_s(),
              .lock = PTHREAD_MUTEX_INITIALIZER};
    for (unsigned i = 0; i < workers; i++)
        all[i] = (worker){.pool = &p, .number = i};
    /* where a thread cannot start, the others do its work */
    while (started < workers &&
           pthread_create(&all[started].thread, NULL, work, &all[started]) == 0)
        started++;
    work(&all[0]);
    for (unsigned i = 1; i < started; i++)
        join(&p, all[i].thread);
    pthread_mutex_destroy(&p.lock);
    if (p.error.status != FDS_OK)
        return fds__fail(err, p.error.status, "%s", p.error.text);
    return fds__report(events, stage, unit, count, count, p.start_s, err);
}

/* ---- OpenBLAS ---- */

static pthread_mutex_t blas_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static size_t blas_users;
static int blas_threads; /* before the first of them */

void fds__blas_begin(void) {
    pthread_mutex_lock(&blas_lock);
    if (blas_users++ == 0) {
        blas_threads = openblas_get_num_threads();
        openblas_set_num_threads(1);
    }
    pthread_mutex_unlock(&blas_lock);
}

void fds__blas_end(void) {
    pthread_mutex_lock(&blas_lock);
    if (--blas_users == 0)
        openblas_set_num_threads(blas_threads);
    pthread_mutex_unlock(&blas_lock);
}
