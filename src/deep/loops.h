/* SPDX-License-Identifier: Apache-2.0
 *
 * What the deep engine computes without oneDNN: loops over whole tensors, compiled once for each
 * instruction set, as fast as memory. Each number is computed alone, so its bits depend on nothing
 * else.
 *
 * bf16 is the upper half of a float, rounded to the nearest, ties to even. */
#ifndef FDS_DEEP_LOOPS_H
#define FDS_DEEP_LOOPS_H

#include "deep/deep.h"

/* The constants of one Adam step, as PyTorch computes it:
 *     g' = g + decay w,  w' = keep w               (decay is 0, or keep is 1)
 *     m = beta1 m + (1 - beta1) g',  v = beta2 v + (1 - beta2) g'^2
 *     w = w' - rate m / (root sqrt(v) + epsilon)   rate = lr / (1 - beta1^t)
 *                                                  root = 1 / sqrt(1 - beta2^t) */
typedef struct deep_adam {
    float beta1, beta2, rest1, rest2, epsilon, decay, keep, rate, root;
} deep_adam;

/* Distances in elements between neighbours of a tensor of images. */
typedef struct deep_strides {
    size_t image, block, row, column, tap;
} deep_strides;

/* From images to columns: a column has all that a filter sees of an image for one output, its taps
 * side by side as channels. With a filter of one tap this is a change of layout, or a choice of
 * every other pixel. Channels are moved in chunks of 8 or 16. */
typedef struct deep_move {
    uint32_t images, blocks, chunk, in[2], out[2], kernel[2], stride, padding[2];
    deep_strides from, to; /* of images, of columns */
} deep_move;

/* The loops over tensors of f32, or of bf16. */
typedef struct deep_loops_of {
    /* y = relu(y + z) */
    void (*add_relu)(void *y, const void *z, size_t count);
    /* d = a + b, and 0 where y <= 0; b or y may be NULL, d may be a or b */
    void (*gradient)(void *d, const void *a, const void *b, const void *y, size_t count);
    /* Images to columns, 0 where a tap sees padding; and the gradient of that, the sum over all
     * taps that saw a pixel, in their order. begin .. end-1: of images * blocks */
    void (*gather)(const deep_move *p, const void *x, void *y, size_t begin, size_t end);
    void (*scatter)(const deep_move *p, const void *dy, void *dx, size_t begin, size_t end);
} deep_loops_of;

typedef struct deep_loops {
    deep_loops_of f32, bf16;
    /* false when a weight is no longer finite */
    bool (*adam)(const deep_adam *p, float *w, const float *g, float *m, float *v, size_t count);
} deep_loops;

extern const deep_loops deep_loops_generic;
#ifdef __x86_64__
extern const deep_loops deep_loops_avx2, deep_loops_avx512;
#endif

#endif
