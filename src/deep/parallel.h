/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of the deep engine: OpenMP's, since oneDNN works on them too and a second set would
 * only be in their way. */
#ifndef FDS_DEEP_PARALLEL_H
#define FDS_DEEP_PARALLEL_H

#include "deep/loops.h"

/* How the calling thread stood before. */
typedef struct deep_team {
    int threads, is_dynamic;
    unsigned state; /* of its arithmetic */
} deep_team;

/* From enter to leave the calling thread's parallel regions, oneDNN's too, have that many threads,
 * and these take numbers too small for a normal float as 0: they would cost a hundred times the
 * time, and Adam's moments end there. FDS_ERR_LIMIT where OpenMP grants fewer: oneDNN would wait
 * for the others for ever, and results depend on the number. FDS_ERR_UNSUPPORTED for more than one
 * in a process that was forked from one that had a team. */
fds_status deep_team_enter(unsigned threads, deep_team *team, fds_error *err);
void deep_team_leave(deep_team team);

/* Calls work for parts of 0 .. count-1, one a thread of the team, that begin at multiples of 64. */
typedef void (*deep_work)(void *context, size_t begin, size_t end);
void deep_parallel(size_t count, deep_work work, void *context);

const deep_loops *deep_loops_choose(void);

/* Zeroed memory, in huge pages where there are any: a step walks through all of it. */
typedef struct deep_arena {
    void *block;
    void *data; /* to 64 bytes */
    size_t size;
} deep_arena;
fds_status deep_arena_make(deep_arena *arena, size_t size, fds_error *err);
void deep_arena_free(deep_arena *arena);

#endif
