/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the bank: what its files share.
 *
 *   bank.c         answers: all sub-models on an input, then least squares
 *   bank_file.c    the file: its bytes, filling it, reading it
 *   bank_eval.c    a network with 16 sets of weights: where everything lies
 *   bank_kernel.c  the arithmetic of that, compiled for each instruction set
 *
 * One input must not cost more than reading all weights once. So the vector lanes hold sub-models,
 * 16 side by side, not samples: (weight, 16) and (channel, row, column, 16). Weights are kept in 16
 * bits, which halves what must be read. Sub-models are in groups of 16, by their slots.
 */
#ifndef FDS_BANK_H
#define FDS_BANK_H

#include "explain/explain.h"
#include "net/kernels.h"
#include "utility/table.h"

/* ---- bank_kernel.c ---- */

/* y[r][c] = bias[r] + sum over taps t of w[t][r] * x[t][c], taps in order, for each line; all of
 * them vectors of 16 lanes, and strides in floats. A convolution: rows are filters, columns and
 * lines those of the picture. A fully connected layer: rows are outputs, columns are inputs.
 *
 * Rows are cut into tiles (fds_bank_tile); the weights of a tile of a rows are its a biases, then a
 * weights for each tap. */
typedef struct fds_bank_product {
    uint32_t rows, most; /* most: rows of a tile */
    uint32_t taps[3];    /* nested loops, outermost first */
    size_t x_tap[3];
    uint32_t columns, lines;
    const float *x;
    size_t x_column, x_line;
    float *y;
    size_t y_row, y_column, y_line;
    bool relu;
} fds_bank_product;

enum { FDS_BANK_FILTERS = 4, FDS_BANK_OUTPUTS = 8 }; /* rows of a tile: conv, fc */

/* How many of the n rows that are left make up the next tile. */
static inline uint32_t fds_bank_tile(uint32_t n, uint32_t most) {
    uint32_t parts = (n + most - 1) / most;
    return (n + parts - 1) / parts;
}

typedef struct fds_bank_kernels {
    const char *name;
    void (*widen)(const uint16_t *halves, size_t count, float *out); /* count vectors of 16 */
    void (*product)(const fds_bank_product *p, const float *w);
    void (*product_half)(const fds_bank_product *p, const uint16_t *w);
} fds_bank_kernels;

extern const fds_bank_kernels fds_bank_generic;
#ifdef __x86_64__
extern const fds_bank_kernels fds_bank_avx2, fds_bank_avx512;
#endif

/* ---- bank_eval.c ---- */

enum { FDS_BANK_INPUTS = 12 }; /* that are evaluated together */

typedef struct fds_bank_net fds_bank_net; /* shareable */

/* net must outlive it. */
fds_status fds_bank_net_create(const fds_net *net, fds_bank_net **out, fds_error *err);
void fds_bank_net_free(fds_bank_net *bn);
/* (weights): the weight of the network that stands in each place of a group's weights. */
const uint32_t *fds_bank_net_order(const fds_bank_net *bn);
/* Floats of one input as evaluation wants it, and of a worker's own room. */
size_t fds_bank_net_input_size(const fds_bank_net *bn);
size_t fds_bank_net_room(const fds_bank_net *bn);
/* wide (input_size, zeroed before its first use) from a sample. */
void fds_bank_net_spread(const fds_bank_net *bn, const float *sample, float *wide);
/* Probabilities (count, classes, 16) of count <= FDS_BANK_INPUTS inputs (count, input_size) by one
 * group's weights (weights, 16), in room (aligned, zeroed before its first use). NULL when one of
 * them is no number. */
const float *fds_bank_net_run(const fds_bank_net *bn, const uint16_t *weights, const float *inputs,
                              size_t count, float *room);

/* ---- bank_file.c ---- */

enum { FDS_BANK_HEADER = 72 };

/* Which sub-models there are: one slot for each different coalition of the plan, in its order. */
typedef struct fds_bank_slots {
    size_t count;
    uint32_t *of_row; /* (rows of the plan) */
    uint32_t *first;  /* (count): the first row of each */
    uint64_t *ids;    /* (count): of the coalitions */
    fds_index index;  /* from id to slot */
    size_t weights;   /* of a sub-model */
    size_t record_size;
} fds_bank_slots;

fds_status fds_bank_slots_create(const fds_net *net, const fds_plan *plan, fds_bank_slots *out,
                                 fds_error *err);
void fds_bank_slots_free(fds_bank_slots *slots);
/* Reads and checks all sub-models of a file: groups (groups, weights, 16) in the given order. */
fds_status fds_bank_read(const char *path, const fds_net *net, const fds_plan *plan,
                         const fds_bank_slots *slots, const uint32_t *order, unsigned threads,
                         uint16_t *groups, fds_error *err);

#endif
