/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of the lane engine, once for each instruction set. A kernel works on one group of
 * up to 16 samples; the context that calls it (lane.c) knows layers and layouts.
 *
 * Bits: every output number is computed by one chain of operations whose order is stated here and
 * does not depend on the width of a register or on how the work is cut into tiles.
 */
#ifndef FDS_KERNELS_H
#define FDS_KERNELS_H

#include "base/base.h"

#define FDS__LANES 16 /* samples side by side */

/* The largest tile of results to hold in registers: a rows by b registers. */
typedef struct fds__tile {
    uint32_t a, b;
} fds__tile;

/* y[r][v] = start + sum over taps t of w[r][t] * x[t][v], taps in order, v a vector of 16 floats.
 * A convolution, a fully connected layer and both its gradients are this, and where no special
 * kernel fits, the gradient of a convolution's input. The taps are three nested loops, outermost
 * first; the whole is repeated in three nested loops that move w, x and y. */
typedef struct fds__product {
    fds__tile tile; /* from the kernels' tile() */
    uint32_t rows, vectors;
    const float *w; /* row r at w + r * w_row */
    size_t w_row;
    const float *x; /* vector v at x + 16 v */
    float *y;       /* row r, vector v at y + r * y_row + 16 v */
    size_t y_row;
    uint32_t taps[3];
    size_t w_tap[3], x_tap[3]; /* strides in floats */
    enum { FDS__START_ZERO, FDS__START_BIAS, FDS__START_Y } start;
    const float *bias; /* (rows), with FDS__START_BIAS */
    uint32_t repeat[3];
    size_t w_repeat[3], x_repeat[3], y_repeat[3];
} fds__product;

/* grad[o][c][i][j] (+)= sum over rows h, vectors v of dy[o][h][v] * x[c][h+i][v shifted by j], and
 * over the 16 lanes: the gradient of a convolution's filters. Each lane is summed in order, then
 * the lanes as in sum_lanes. */
typedef struct fds__filter_grad {
    uint32_t out_channels, in_channels, kernel, rows, vectors;
    const float *dy; /* channel o, row h at dy + o * dy_plane + h * dy_row */
    size_t dy_plane, dy_row;
    const float *x;
    size_t x_plane, x_row, shift; /* shift: floats from one column to the next */
    bool add;
    float *grad;
    float *partial; /* scratch: (FDS__FILTER_TILE, in_channels, kernel, kernel, 16) */
    float *each;    /* or NULL; (out_channels, in_channels, kernel, kernel, 16): receives every
                     * lane's own sum, and grad nothing */
} fds__filter_grad;

#define FDS__FILTER_TILE 6

/* dx[c][h][v] = sum over o, i, j of w[o][c][i][j] * dy[o][h-i][v-j]: the gradient of a
 * convolution's input, for 16 lanes and kernels up to FDS__INPUT_KERNEL. For each h and v: j
 * falling, i rising, o rising. */
typedef struct fds__input_grad {
    uint32_t out_channels, in_channels, kernel, rows, columns; /* rows, columns: of dy */
    const float *w, *dy;
    size_t dy_plane, dy_row;
    float *dx; /* rows + kernel - 1 by columns + kernel - 1 */
    size_t dx_plane, dx_row;
} fds__input_grad;

#define FDS__INPUT_KERNEL 6

/* y = relu(maxpool(x)), either part optional: windows of size pool (1: none). Layouts by strides in
 * floats: channel, row, column; the lanes of a column are contiguous. */
typedef struct fds__map {
    uint32_t channels, height, width; /* of y */
    uint32_t pool, lanes;
    bool relu;
    const float *x;
    size_t x_plane, x_row, x_column;
    float *y;
    size_t y_plane, y_row, y_column;
    const float *dy; /* laid out as y */
    float *dx;       /* laid out as x, or x itself */
} fds__map;

typedef struct fds__optimizer_step {
    size_t count;
    float *w, *m, *v; /* weights, first and second moment (SGD: m only) */
    const float *g;
    float lr, momentum, beta1, beta2, epsilon, weight_decay;
    float correct1, correct2; /* Adam: 1 / (1 - beta1^t), 1 / (1 - beta2^t) */
} fds__optimizer_step;

typedef struct fds__kernels {
    fds__tile (*tile)(uint32_t rows, uint32_t vectors); /* the fastest for a product's size */
    void (*product)(const fds__product *p);
    void (*filter_grad)(const fds__filter_grad *p);
    void (*input_grad)(const fds__input_grad *p);
    /* out[i] (+)= the sum of in[i][16] as a tree: halves added until one is left */
    void (*sum_lanes)(const float *in, size_t count, bool add, float *out);
    /* out[n][16] = sum over h, v of in[n][h][v], in order */
    void (*sum_planes)(const float *in, uint32_t planes, size_t plane, size_t row, uint32_t height,
                       uint32_t vectors, float *out);
    void (*map_forward)(const fds__map *p);
    void (*map_backward)(const fds__map *p);
    /* y = max(0, y), and dy = 0 where y <= 0 */
    void (*relu_forward)(float *y, size_t count);
    void (*relu_backward)(const float *y, float *dy, size_t count);
    /* out[i][l] = rows[l][first + i], for 16 lanes */
    void (*rows_to_lanes)(const float *const rows[FDS__LANES], size_t first, size_t count,
                          float *out);
    /* out[l][i] = in[i][l], for 16 lanes; rows of out are out_row floats apart, and up to the next
     * multiple of 16 beyond count may be written */
    void (*lanes_to_rows)(const float *in, size_t count, float *out, size_t out_row);
    /* logits (classes, 16) to probabilities in place, and, with labels, each lane's loss */
    void (*softmax)(float *z, uint32_t classes, uint32_t lanes, const uint16_t *labels,
                    float *loss);
    void (*adam)(const fds__optimizer_step *p);
    void (*sgd)(const fds__optimizer_step *p);
} fds__kernels;

extern const fds__kernels fds__kernels_generic;
#ifdef __x86_64__
extern const fds__kernels fds__kernels_avx2, fds__kernels_avx512;
#endif

#endif
