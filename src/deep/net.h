/* SPDX-License-Identifier: Apache-2.0
 * A deep network in memory: shared by deep.c and infer.c. */
#ifndef FDS_DEEP_NET_H
#define FDS_DEEP_NET_H

#include "deep/onednn.h"
#include "deep/parallel.h"

struct fds__deep {
    fds__deep_params params;
    char network[16];
    deep_graph graph;
    deep_exec *exec;
    deep_arena moment1, moment2; /* laid out as exec->values */
    const deep_loops *loops;
    uint64_t steps;
    bool has_idle_moments; /* a moment other than 0 was written to an idle tap (see deep_exec) */
};

/* Copies count samples x (channels, height, width) of shape to the network's input; a single
 * channel is repeated where the network takes more. The samples up to the batch become 0. */
void deep_gather(deep_exec *exec, fds_shape shape, const float *x, size_t count);

#endif
