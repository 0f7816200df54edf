/* SPDX-License-Identifier: Apache-2.0
 * A game of the utility functions' tests as a problem. */
#ifndef FDS_TEST_GAME_PROBLEM_H
#define FDS_TEST_GAME_PROBLEM_H

#include "../utility/utility_fixture.h"
#include "run_job.h"

/* Borrows all of it; not to be freed. */
static inline fds_problem game_problem(const game *g) {
    return (fds_problem){.train = g->train,
                         .test = g->test,
                         .players = g->players,
                         .tests = (uint32_t *)(uintptr_t)g->inputs,
                         .test_count = g->input_count};
}

#endif
