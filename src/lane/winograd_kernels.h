/* SPDX-License-Identifier: Apache-2.0
 *
 * The transforms of winograd.c, compiled once for each instruction set. They turn tiles of an image
 * into 16 positions each and back:
 *
 *     V = B'dB     a tile of 4 x 4 pixels d of the input       U = GgG'   a filter g of 3 x 3
 *     y = A'MA     a tile of 2 x 2 pixels y of the output      S = AdA'   its gradient d, 2 x 2
 *
 * with the matrices of Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016:
 * F(2 x 2, 3 x 3). Every number has its own chain of operations, so the bits do not depend on the
 * instruction set. */
#ifndef FDS_LANE_WINOGRAD_KERNELS_H
#define FDS_LANE_WINOGRAD_KERNELS_H

#include "lane/kernels.h"

#define LANE_POSITIONS 16

/* An image, (channels, rows, columns, 16). Around it are zeros. */
typedef struct lane_image {
    float *values;
    size_t plane, row; /* strides in floats; columns are 16 apart */
    int32_t channels, rows, columns;
} lane_image;

/* A run of tiles beside each other: their first pixel, and how many. */
typedef struct lane_tiles {
    int32_t row, column;
    uint32_t count;
} lane_tiles;

/* All outputs have positions stride floats apart. is_turned: filters are turned by 180 degrees,
 * which only exchanges the first and the last row and column of the positions. */
typedef struct lane_winograd_kernels {
    /* u[position][o][c] of w (out, in, 3, 3); rows of u are u_row floats apart */
    void (*filters)(const float *w, uint32_t out, uint32_t in, float *u, size_t u_row,
                    size_t stride);
    /* (+)= the gradient of w from that of u */
    void (*filters_backward)(const float *u, size_t u_row, size_t stride, uint32_t out, uint32_t in,
                             bool add, float *w);
    /* v[position][channel][tile][16] */
    void (*input)(const lane_image *x, lane_tiles tiles, bool is_turned, float *v, size_t stride);
    /* y = the tiles of m[position][channel][tile][16] + bias, which may be NULL */
    void (*output)(const float *m, size_t stride, bool is_turned, const float *bias,
                   lane_tiles tiles, const lane_image *y);
    /* s[position][channel][tile][16] of a gradient dy */
    void (*gradient)(const lane_image *dy, lane_tiles tiles, float *s, size_t stride);
    /* out[column][16][channel] of one row of x; channels are rounded up to 16, with zeros */
    void (*channels_last)(const lane_image *x, int32_t row, float *out);
    /* v[position][tile][16][channel] of four such rows, NULL: zeros; size: of a column */
    void (*input_last)(const float *const rows[4], int32_t columns, size_t size, lane_tiles tiles,
                       float *v, size_t stride);
} lane_winograd_kernels;

extern const lane_winograd_kernels lane_winograd_kernels_generic;
#ifdef __x86_64__
extern const lane_winograd_kernels lane_winograd_kernels_avx2, lane_winograd_kernels_avx512;
#endif

#endif
