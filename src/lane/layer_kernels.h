/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of layers.c, compiled once for each instruction set. Every number has its own chain
 * of operations, so the bits do not depend on the instruction set. */
#ifndef FDS_LANE_LAYER_KERNELS_H
#define FDS_LANE_LAYER_KERNELS_H

#include "lane/kernels.h"

typedef struct lane_layer_kernels {
    void (*tanh_forward)(const float *x, float *y, size_t count);
    void (*tanh_backward)(const float *y, const float *dy, float *dx, size_t count);
    /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    void (*gelu_forward)(const float *x, float *y, size_t count);
    void (*gelu_backward)(const float *x, const float *dy, float *dx, size_t count);
    void (*add)(const float *a, const float *b, float *y, size_t count); /* y may be a or b */
    /* y[16] = the mean over a window of vectors; rows of x are row floats apart */
    void (*average)(const float *x, size_t row, uint32_t height, uint32_t width, float *y);
} lane_layer_kernels;

extern const lane_layer_kernels lane_layer_kernels_generic;
#ifdef __x86_64__
extern const lane_layer_kernels lane_layer_kernels_avx2, lane_layer_kernels_avx512;
#endif

#endif
