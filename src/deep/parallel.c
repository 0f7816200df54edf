/* SPDX-License-Identifier: Apache-2.0
 * Threads, instruction sets and large memory of the deep engine. */
#include "deep/parallel.h"
#include "base/isa.h"

#include <omp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

/* The thread sanitizer does not see OpenMP's barriers and would report races that they prevent. */
#ifdef __SANITIZE_THREAD__
enum { MOST_THREADS = 1 };
#else
enum { MOST_THREADS = 1024 };
#endif

/* ---- the team ---- */

/* A forked child does not have OpenMP's threads and would wait for them for ever. */
static fds_status check_fork(fds_error *err) {
    static atomic_int owner; /* the process that started the threads */
    int none = 0, self = (int)getpid();
    if (atomic_compare_exchange_strong(&owner, &none, self) || none == self)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_UNSUPPORTED,
                     "this process was forked after fds had started threads: set threads to 1 "
                     "here, or fork before the first call of fds");
}

fds_status deep_team_enter(unsigned threads, deep_team *team, fds_error *err) {
    int wanted = (int)MIN(threads, (unsigned)MOST_THREADS), granted = 0;
    if (wanted > 1)
        TRY(check_fork(err));
    *team = (deep_team){omp_get_max_threads(), omp_get_dynamic(), fds__tiny_flush()};
    omp_set_dynamic(0); /* else each region might have another number of threads */
    omp_set_num_threads(wanted);
#pragma omp parallel reduction(+ : granted)
    {
        (void)fds__tiny_flush();
        granted++;
    }
    if (granted == wanted)
        return FDS_OK;
    deep_team_leave(*team);
    return fds__fail(
        err, FDS_ERR_LIMIT,
        "OpenMP grants %d of %d threads (%s): set threads to %d, or lift that limit", granted,
        wanted, omp_in_parallel() ? "called from within a parallel region" : "see OMP_THREAD_LIMIT",
        granted);
}

void deep_team_leave(deep_team team) {
#pragma omp parallel
    fds__tiny_restore(team.tiny);
    omp_set_num_threads(team.threads);
    omp_set_dynamic(team.is_dynamic);
}

void deep_parallel(size_t count, deep_work work, void *context) {
#pragma omp parallel
    {
        size_t team = (size_t)omp_get_num_threads(), number = (size_t)omp_get_thread_num();
        size_t part = (count / team + 63) / 64 * 64, begin = MIN(count, number * part);
        size_t end = number == team - 1 ? count : MIN(count, begin + part);
        if (begin < end)
            work(context, begin, end);
    }
}

const deep_loops *deep_loops_choose(void) {
    fds__isa_set isa = FDS__ISA_GENERIC;
    fds__isa_choose(&isa, NULL);
    return FDS__ISA_PICK(isa, deep_loops);
}

/* ---- memory ---- */

fds_status deep_arena_make(deep_arena *arena, size_t size, fds_error *err) {
    size_t align = size >= 2 * HUGE_PAGE ? HUGE_PAGE : 64;
    arena->block = size <= SIZE_MAX - align ? fds__alloc(size + align) : NULL;
    if (!arena->block)
        return fds__fail_nomem(err, size);
    arena->data = (void *)(((uintptr_t)arena->block + align - 1) / align * align);
    arena->size = size;
    if (align == HUGE_PAGE) /* advice only: it fails where the system has no huge pages */
        (void)madvise(arena->data, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    memset(arena->data, 0, size);
    return FDS_OK;
}

void deep_arena_free(deep_arena *arena) {
    fds__free(arena->block);
    *arena = (deep_arena){0};
}
