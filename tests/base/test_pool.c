/* SPDX-License-Identifier: Apache-2.0
 * The parallel loop: every job once whatever the threads, one well-defined error, callbacks only on
 * the calling thread. Jobs run on other threads, where cmocka cannot assert: they count, and the
 * test looks at the counts afterwards. */
#include "scratch.h"
#include "base/base.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { MOST_JOBS = 1000 };

typedef struct {
    atomic_uint times[MOST_JOBS];
    atomic_uint workers_seen; /* bit a worker */
    unsigned workers;         /* how many there should be */
    atomic_bool wrong_worker; /* a number out of range, or one worker on two threads at once */
    atomic_bool busy[64];
    pthread_t caller;
    atomic_bool worker_0_elsewhere;
    size_t fail_from, fail_every; /* which jobs fail */
    bool linger;                  /* low jobs take longer, so that high ones end first */
    size_t calls, last_done;      /* of the progress callback */
    bool wrong_thread, not_rising, wrong_total;
    size_t cancel_at;
    size_t total;
} board;

static fds_status count_job(void *context, size_t job, unsigned worker, fds_error *err) {
    board *b = context;
    if (worker >= b->workers || atomic_exchange(&b->busy[worker % 64], true))
        atomic_store(&b->wrong_worker, true);
    if ((worker == 0) != (pthread_equal(pthread_self(), b->caller) != 0))
        atomic_store(&b->worker_0_elsewhere, true);
    atomic_fetch_or(&b->workers_seen, 1u << worker % 32);
    atomic_fetch_add(&b->times[job], 1);
    if (b->linger)
        usleep(job % 4 == 0 ? 3000 : 100);
    atomic_store(&b->busy[worker % 64], false);
    if (b->fail_every && job >= b->fail_from && (job - b->fail_from) % b->fail_every == 0)
        return fds__fail(err, job % 2 ? FDS_ERR_FORMAT : FDS_ERR_SHAPE, "job %zu failed", job);
    return FDS_OK;
}

static bool see_progress(void *user, const fds_progress *progress) {
    board *b = user;
    b->wrong_thread |= !pthread_equal(pthread_self(), b->caller);
    b->not_rising |= progress->done < b->last_done;
    b->wrong_total |= progress->total != b->total || progress->done > b->total;
    b->last_done = progress->done;
    b->calls++;
    return b->cancel_at && progress->done >= b->cancel_at;
}

static board *board_make(unsigned threads, size_t count) {
    board *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->workers = fds__pool_workers(threads, count);
    b->caller = pthread_self();
    b->total = count;
    return b;
}

static fds_status run(board *b, unsigned threads, fds_error *err) {
    fds_events events = {.progress = see_progress, .user = b};
    fds_status status =
        fds__pool_run(threads, b->total, count_job, b, "count", "jobs", &events, err);
    assert_false(b->wrong_worker);
    assert_false(b->worker_0_elsewhere);
    assert_false(b->wrong_thread);
    assert_false(b->not_rising);
    assert_false(b->wrong_total);
    return status;
}

static void every_job_is_done_once_for_any_number_of_threads(void **state) {
    (void)state;
    const size_t counts[] = {1, 2, 3, 7, 64, MOST_JOBS};
    for (unsigned threads = 0; threads <= 9; threads++)
        for (size_t c = 0; c < COUNT(counts); c++) {
            board *b = board_make(threads, counts[c]);
            fds_error err = {0};
            assert_int_equal(run(b, threads, &err), FDS_OK);
            for (size_t job = 0; job < MOST_JOBS; job++)
                assert_int_equal(b->times[job], job < counts[c]);
            assert_string_equal(err.text, "");
            assert_int_equal(b->last_done, counts[c]);
            free(b);
        }
}

static void zero_jobs_are_done_at_once(void **state) {
    (void)state;
    board *b = board_make(4, 0);
    fds_error err = {0};
    assert_int_equal(run(b, 4, &err), FDS_OK);
    assert_int_equal(b->workers_seen, 0);
    free(b);
    assert_int_equal(fds__pool_run(0, 0, count_job, NULL, "none", "jobs", NULL, NULL), FDS_OK);
}

static void there_are_never_more_workers_than_jobs(void **state) {
    (void)state;
    assert_int_equal(fds__pool_workers(50, 3), 3);
    assert_int_equal(fds__pool_workers(3, 50), 3);
    assert_int_equal(fds__pool_workers(3, 0), 1);
    assert_int_equal(fds__pool_workers(0, 1000000), fds_processors());
    assert_true(fds_processors() >= 1);
    board *b = board_make(50, 3);
    fds_error err;
    assert_int_equal(run(b, 50, &err), FDS_OK);
    assert_int_equal(b->workers_seen & ~7u, 0);
    free(b);
}

static void threads_do_run_side_by_side(void **state) {
    (void)state;
    board *b = board_make(4, 40);
    fds_error err;
    b->linger = true;
    assert_int_equal(run(b, 4, &err), FDS_OK);
    assert_int_equal(b->workers_seen, 15);
    free(b);
}

/* Jobs 12, 15, 18 ... fail, some faster than those before them: the error is always job 12's. */
static void the_error_is_that_of_the_lowest_failing_job(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 8; threads++)
        for (int again = 0; again < 10; again++) {
            board *b = board_make(threads, 200);
            b->fail_from = 12;
            b->fail_every = 3;
            b->linger = true;
            fds_error err = {0};
            assert_int_equal(run(b, threads, &err), FDS_ERR_SHAPE);
            assert_int_equal(err.status, FDS_ERR_SHAPE);
            assert_string_equal(err.text, "job 12 failed");
            free(b);
        }
}

static void a_failure_stops_the_loop(void **state) {
    (void)state;
    board *b = board_make(2, MOST_JOBS);
    b->fail_from = 5;
    b->fail_every = MOST_JOBS;
    b->linger = true;
    assert_int_equal(run(b, 2, NULL), FDS_ERR_FORMAT);
    size_t started = 0;
    for (size_t job = 0; job < MOST_JOBS; job++)
        started += b->times[job];
    assert_true(started < 200);
    free(b);
}

static fds_status fail_silently(void *context, size_t job, unsigned worker, fds_error *err) {
    (void)context, (void)job, (void)worker, (void)err;
    return FDS_ERR_LIMIT;
}

static void a_status_without_text_is_still_a_failure(void **state) {
    (void)state;
    fds_error err = {0};
    assert_int_equal(fds__pool_run(3, 9, fail_silently, NULL, "s", "u", NULL, &err), FDS_ERR_LIMIT);
    assert_int_equal(err.status, FDS_ERR_LIMIT);
}

static void progress_can_cancel(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 4; threads++) {
        board *b = board_make(threads, MOST_JOBS);
        b->cancel_at = 10;
        b->linger = true;
        fds_error err = {0};
        assert_int_equal(run(b, threads, &err), FDS_ERR_CANCELLED);
        assert_int_equal(err.status, FDS_ERR_CANCELLED);
        expect_in(err.text, "count: cancelled after ");
        assert_true(b->last_done >= 10 && b->last_done < 200);
        size_t calls = b->calls;
        usleep(10000);
        assert_int_equal(b->calls, calls);
        free(b);
    }
}

/* A job that would go on for a minute, on the calling thread, on another one, or on both. */
typedef struct {
    size_t long_job; /* 2: both are */
    double started_s;
    pthread_t caller;
    bool wrong_thread;
} minute;

static fds_status take_a_minute(void *context, size_t job, unsigned worker, fds_error *err) {
    const minute *m = context;
    (void)worker;
    for (int i = 0; i < 60000 && (m->long_job == 2 || job == m->long_job); i++) {
        usleep(1000);
        TRY(fds__pool_check(err));
    }
    return FDS_OK;
}

static bool stop_soon(void *user, const fds_progress *progress) {
    minute *m = user;
    (void)progress;
    m->wrong_thread |= !pthread_equal(pthread_self(), m->caller);
    return fds__now_s() - m->started_s > 0.2;
}

static void a_long_job_is_cancelled_within_a_second(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 2; threads++)
        for (size_t long_job = 0; long_job <= 2; long_job++) {
            minute m = {long_job, fds__now_s(), pthread_self(), false};
            fds_events events = {.progress = stop_soon, .user = &m};
            fds_error err = {0};
            assert_int_equal(
                fds__pool_run(threads, 2, take_a_minute, &m, "wait", "jobs", &events, &err),
                FDS_ERR_CANCELLED);
            expect_in(err.text, "wait: cancelled after ");
            assert_true(fds__now_s() - m.started_s < 1.2);
            assert_false(m.wrong_thread);
        }
    assert_int_equal(fds__pool_check(NULL), FDS_OK); /* outside a loop */
}

static void without_memory_no_job_is_started(void **state) {
    (void)state;
    board *b = board_make(2, 10);
    fds_error err;
    fds__fault_arm(FDS__FAULT_ALLOC, 1);
    assert_int_equal(run(b, 2, &err), FDS_ERR_NOMEM);
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    assert_int_equal(b->workers_seen, 0);
    free(b);
}

static void a_forked_child_has_workers_of_its_own(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    return; /* it allows no threads in a forked child */
#endif
    board *b = board_make(4, 64);
    assert_int_equal(run(b, 4, NULL), FDS_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(fds__pool_run(4, 64, count_job, b, "count", "jobs", NULL, NULL) != FDS_OK);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    free(b);
}

/* As Slurm, taskset and mpirun do it. */
static void only_the_processors_of_this_process_count(void **state) {
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(fds_processors(), CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(fds_processors(), 1);
    assert_int_equal(fds__pool_workers(0, 1000), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_is_done_once_for_any_number_of_threads),
        cmocka_unit_test(zero_jobs_are_done_at_once),
        cmocka_unit_test(there_are_never_more_workers_than_jobs),
        cmocka_unit_test(threads_do_run_side_by_side),
        cmocka_unit_test(the_error_is_that_of_the_lowest_failing_job),
        cmocka_unit_test(a_failure_stops_the_loop),
        cmocka_unit_test(a_status_without_text_is_still_a_failure),
        cmocka_unit_test(progress_can_cancel),
        cmocka_unit_test(a_long_job_is_cancelled_within_a_second),
        cmocka_unit_test(without_memory_no_job_is_started),
        cmocka_unit_test(only_the_processors_of_this_process_count),
        cmocka_unit_test(a_forked_child_has_workers_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
