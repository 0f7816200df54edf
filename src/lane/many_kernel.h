/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic of many.c, compiled once for each instruction set. */
#ifndef FDS_MANY_KERNEL_H
#define FDS_MANY_KERNEL_H

#include "lane/kernels.h"

/* y[r][c] = bias[r] + sum over taps t of w[t][r] * x[t][c], taps in order, for each line. All are
 * vectors of 16 lanes; strides are in floats. For a convolution, rows are filters, columns and
 * lines those of the image. For a fully connected layer, rows are outputs and columns are inputs.
 *
 * Rows are cut into tiles (many_tile). The weights of a tile of a rows are its a biases, then a
 * weights per tap. */
typedef struct many_product {
    uint32_t rows, most; /* most: rows of a tile, at most */
    uint32_t taps[3];    /* nested loops, outermost first */
    size_t x_tap[3];
    uint32_t columns, lines;
    const float *x;
    size_t x_column, x_line;
    float *y;
    size_t y_row, y_column, y_line;
    bool relu;
} many_product;

enum { MANY_FILTERS = 4, MANY_OUTPUTS = 8 }; /* rows of a tile: conv, fc */

/* Rows of the next tile when n are left. */
static inline uint32_t many_tile(uint32_t n, uint32_t most) {
    uint32_t parts = (n + most - 1) / most;
    return (n + parts - 1) / parts;
}

typedef struct many_kernels {
    void (*widen)(const uint16_t *halves, size_t count, float *out); /* count vectors of 16 */
    void (*product)(const many_product *p, const float *w);
    void (*product_half)(const many_product *p, const uint16_t *w);
} many_kernels;

extern const many_kernels many_kernels_generic;
#ifdef __x86_64__
extern const many_kernels many_kernels_avx2, many_kernels_avx512;
#endif

#endif
