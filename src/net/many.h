/* SPDX-License-Identifier: Apache-2.0
 *
 * many: a few inputs under thousands of networks of one architecture.
 *
 *   many.c         the plan of a network: where everything lies
 *   many_kernel.c  the arithmetic, compiled for each instruction set
 *
 * One input must not cost more than reading all weights once. So the vector lanes hold networks, 16
 * side by side, not samples: (weight, 16) and (channel, row, column, 16). Weights are halves (IEEE
 * 754, 16 bits, all finite), which halves what must be read. The bits are those of the lane engine
 * with the same weights. */
#ifndef FDS_MANY_H
#define FDS_MANY_H

#include "net/net.h"

enum {
    FDS_MANY_NETS = 16,   /* in a group: evaluated side by side */
    FDS_MANY_INPUTS = 12, /* at most that are evaluated together */
};

typedef struct fds_many fds_many; /* shareable */

/* net must outlive it. */
fds_status fds_many_create(const fds_net *net, fds_many **out, fds_error *err);
void fds_many_free(fds_many *many);
/* (weights): the weight of the network that stands in each place of a group's weights. */
const uint32_t *fds_many_order(const fds_many *many);
/* Floats of one input as evaluation wants it, and of a worker's own room. */
size_t fds_many_input_size(const fds_many *many);
size_t fds_many_room(const fds_many *many);
/* wide (input_size, zeroed before its first use) from a sample. */
void fds_many_spread(const fds_many *many, const float *sample, float *wide);
/* Probabilities (count, classes, 16) of count <= FDS_MANY_INPUTS inputs (count, input_size) by one
 * group's weights (weights, 16), in room (aligned, zeroed before its first use). NULL when one of
 * them is no number. */
const float *fds_many_run(const fds_many *many, const uint16_t *weights, const float *inputs,
                          size_t count, float *room);

#endif
