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
    void (*multiply)(const float *a, const float *b, float *y, size_t count);
    /* y[16] = the mean over a window of vectors; rows of x are row floats apart */
    void (*average)(const float *x, size_t row, uint32_t height, uint32_t width, float *y);
    /* Batchnorm. sums[l] += each lane's sum over vectors of x, of (x - mean)^2, and of dy and
     * dy (x - mean) */
    void (*sum)(const float *x, size_t vectors, double mean, double *sums);
    void (*sum_squares)(const float *x, size_t vectors, double mean, double *sums);
    void (*sum_products)(const float *dy, const float *x, size_t vectors, double mean, double *sums,
                         double *products);
    /* y = (x - mean) scale + shift, and dx = a dy - b - c (x - mean) */
    void (*normalise)(const float *x, double mean, double scale, double shift, float *y,
                      size_t count);
    void (*normalise_backward)(const float *x, const float *dy, double mean, double a, double b,
                               double c, float *dx, size_t count);
} lane_layer_kernels;

extern const lane_layer_kernels lane_layer_kernels_generic;
#ifdef __x86_64__
extern const lane_layer_kernels lane_layer_kernels_avx2, lane_layer_kernels_avx512;
#endif

#endif
