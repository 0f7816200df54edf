/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of a matrix of bits with many columns of doubles. Coalitions stay bits, 64 times smaller
 * than rows of doubles.
 *
 * Thirty-two columns of bits at a time, the sums of all 256 subsets of each eight rows of x are put
 * into a table, so that a row of the product needs four additions for 32 multiplications (the
 * method of the four Russians). The order of the additions is that of the columns: the bits of the
 * result depend neither on threads nor on the instruction set. */
#ifndef FDS_GAME_LS_BITS_H
#define FDS_GAME_LS_BITS_H

#include "base/base.h"
#include "base/isa.h"

enum { FDS__BITS_TILE = 16 }; /* columns of x at a time; their number is a multiple of it */

typedef struct fds__bits {
    size_t rows, columns;
    uint32_t *words; /* (columns / 32 rounded up, rows): bit k of word j is column 32 j + k */
} fds__bits;

/* table (4, 256, TILE) receives the sums of the subsets of up to 32 rows of x; out (rows, TILE) +=
 * what the words choose. Distances between rows of x and of out: stride. */
typedef struct fds__bits_kernel {
    void (*fill)(const double *x, size_t stride, size_t count, double *table);
    void (*add)(const uint32_t *words, size_t rows, const double *table, double *out,
                size_t stride);
} fds__bits_kernel;

extern const fds__bits_kernel fds__bits_generic, fds__bits_avx2, fds__bits_avx512;

/* out (rows, width) = bits x (columns, width). table: (4, 256, TILE) of scratch. In a job of a pool a
 * cancellation is heard after each tile of out. */
fds_status fds__bits_multiply(const fds__bits *bits, const fds__bits_kernel *kernel,
                              const double *x, size_t width, double *table, double *out,
                              fds_error *err);
enum { FDS__BITS_TABLE = 4 * 256 * FDS__BITS_TILE };

#endif
