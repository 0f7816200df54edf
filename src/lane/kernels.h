/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of the lane engine, compiled once for each instruction set. A kernel works on one
 * group of up to 16 samples; lane.c, which calls it, knows layers and layouts.
 *
 * Bits: every output number is computed by one chain of operations whose order is stated here and
 * does not depend on the width of a register or on how the work is cut into tiles.
 *
 * LeNet-5 forward on 16 images of 28 x 28, the lanes last:
 *
 *     layers             input              weights         output             kernel
 *     conv:6x5p2         (1, 32, 32, 16)    (6, 1, 5, 5)    (6, 28, 28, 16)    product, 1x5x5 taps
 *     relu, maxpool      (6, 28, 28, 16)                    (6, 14, 14, 16)    map_forward
 *     conv:16x5          (6, 14, 14, 16)    (16, 6, 5, 5)   (16, 10, 10, 16)   product, 6x5x5 taps
 *     relu, maxpool      (16, 10, 10, 16)                   (16, 5, 5, 16)     map_forward
 *     fc:120, relu       (400, 16)          (120, 400)      (120, 16)          product, 400 taps
 *     fc:84, relu        (120, 16)          (84, 120)       (84, 16)           product, 120 taps
 *     fc:10              (84, 16)           (10, 84)        (10, 16)           product, 84 taps
 *
 * softmax turns the last output into probabilities. Backward goes up the table: two products per fc
 * (gradients by weights and by input), map_backward, and filter_grad and input_grad per conv; the
 * first conv needs no input_grad.
 */
#ifndef FDS_KERNELS_H
#define FDS_KERNELS_H

#include "base/base.h"

#define FDS__LANES 16 /* samples side by side */

/* The largest tile of results that registers hold: a rows by b registers. */
typedef struct fds__tile {
    uint32_t a, b;
} fds__tile;

/* y[r][v] = start + sum over taps t of w[r][t] * x[t][v], taps in order, v a vector of 16 floats.
 * This is a convolution, a fully connected layer, both gradients of the latter and, where
 * input_grad does not fit, the gradient of a convolution's input. The taps are three nested loops,
 * outermost first; three more nested loops repeat the whole and move w, x and y. */
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

/* The gradient of a convolution's filters: grad[o][c][i][j] (+)= sum over rows h, vectors v and the
 * 16 lanes of dy[o][h][v] * x[c][h+i][v shifted by j]. Each lane is summed in order, then the lanes
 * as in sum_lanes. */
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
                     * lane's own sum; grad then stays as it is */
} fds__filter_grad;

#define FDS__FILTER_TILE 6

/* The gradient of a convolution's input, for 16 lanes and kernels up to FDS__INPUT_KERNEL:
 * dx[c][h][v] = sum over o, i, j of w[o][c][i][j] * dy[o][h-i][v-j], in the order of falling j,
 * rising i, rising o. */
typedef struct fds__input_grad {
    uint32_t out_channels, in_channels, kernel, rows, columns; /* rows, columns: of dy */
    const float *w, *dy;
    size_t dy_plane, dy_row;
    float *dx; /* rows + kernel - 1 by columns + kernel - 1 */
    size_t dx_plane, dx_row;
} fds__input_grad;

#define FDS__INPUT_KERNEL 6

/* y = relu(maxpool(x)), each optional: windows of size pool (1: none). The strides of channel, row
 * and column are in floats; the lanes of a column are contiguous. */
typedef struct fds__map {
    uint32_t channels, height, width; /* of y */
    uint32_t pool, lanes;
    bool relu;
    const float *x;
    size_t x_plane, x_row, x_column;
    float *y;
    size_t y_plane, y_row, y_column;
    const float *dy; /* with the strides of y */
    float *dx;       /* with the strides of x; may be x itself */
} fds__map;

typedef struct fds__optimizer_step {
    size_t count;
    float *w, *m, *v; /* weights, first and second moment (SGD: m only) */
    const float *g;
    float lr, momentum, beta1, beta2, epsilon, weight_decay;
    float correct1, correct2; /* Adam: 1 / (1 - beta1^t), 1 / (1 - beta2^t) */
} fds__optimizer_step;

typedef struct fds__kernels {
    fds__tile (*tile)(uint32_t rows, uint32_t vectors); /* the fastest for a product of that size */
    void (*product)(const fds__product *p);
    void (*filter_grad)(const fds__filter_grad *p);
    void (*input_grad)(const fds__input_grad *p);
    /* out[i] (+)= the sum of in[i][16] as a tree: upper half added to lower until one is left */
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
    /* out[l][i] = in[i][l], for 16 lanes; rows of out are out_row floats apart. May write up to the
     * next multiple of 16 beyond count */
    void (*lanes_to_rows)(const float *in, size_t count, float *out, size_t out_row);
    /* logits (classes, 16) to probabilities in place; with labels also each lane's loss */
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
