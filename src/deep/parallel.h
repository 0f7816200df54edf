/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of the deep engine: OpenMP's, which oneDNN uses too; a second set would compete with
 * them. */
#ifndef FDS_DEEP_PARALLEL_H
#define FDS_DEEP_PARALLEL_H

#include "deep/loops.h"

/* The calling thread's settings before deep_team_enter. */
typedef struct deep_team {
    int threads, is_dynamic;
    unsigned tiny; /* fds__tiny_flush */
} deep_team;

/* From enter to leave the calling thread's parallel regions, oneDNN's too, have that many threads,
 * and these take denormal numbers as 0 (fds__tiny_flush). FDS_ERR_LIMIT where OpenMP grants fewer
 * threads: oneDNN would wait for the others for ever, and results depend on the number.
 * FDS_ERR_UNSUPPORTED for several threads in a process forked from one that had a team. */
fds_status deep_team_enter(unsigned threads, deep_team *team, fds_error *err);
void deep_team_leave(deep_team team);

/* Calls work for one part of 0 .. count-1 per thread of the team, cut at multiples of 64. */
typedef void (*deep_work)(void *context, size_t begin, size_t end);
void deep_parallel(size_t count, deep_work work, void *context);

const deep_loops *deep_loops_choose(void);

/* Zeroed memory, in huge pages where possible: a training step walks through all of it. */
typedef struct deep_arena {
    void *block;
    void *data; /* aligned to 64 bytes */
    size_t size;
} deep_arena;
fds_status deep_arena_make(deep_arena *arena, size_t size, fds_error *err);
void deep_arena_free(deep_arena *arena);

#endif
