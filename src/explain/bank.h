/* SPDX-License-Identifier: Apache-2.0
 *
 * The bank, inside: what its files share.
 *
 *   bank.c       answers: all sub-models on an input, then least squares
 *   bank_file.c  the file: its bytes, filling it, reading it
 *
 * lane/many.h evaluates the sub-models in groups of 16, in the order of their slots.
 */
#ifndef FDS_BANK_H
#define FDS_BANK_H

#include "explain/explain.h"

/* ---- bank_file.c ---- */

enum { FDS__BANK_HEADER = 72 };

/* One slot for each different coalition of the plan, in its order. The plan must outlive it. */
typedef struct fds__bank_slots {
    const fds_plan *plan;
    size_t count;
    uint32_t *of_row;    /* (rows of the plan) */
    uint32_t *first;     /* (count): the first row of each */
    fds__slot_map index; /* from coalition id to slot */
    size_t weights;      /* of a sub-model */
    size_t record_size;
} fds__bank_slots;

/* fds__bank_slots_free is needed after a failure too. */
fds_status fds__bank_slots_init(fds__bank_slots *out, const fds_net *net, const fds_plan *plan,
                                fds_error *err);
void fds__bank_slots_free(fds__bank_slots *slots);
/* Reads and checks all sub-models of a file: groups (groups, weights, 16) in the given order. */
fds_status fds__bank_read(const char *path, const fds_net *net, const fds__bank_slots *slots,
                          const uint32_t *order, unsigned threads, uint16_t *groups,
                          fds_error *err);

#endif
