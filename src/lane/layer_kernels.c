/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of layers.c, compiled once for each instruction set (see meson.build): plain loops
 * that the compiler turns into vectors, in double where sums or series need the digits. */
#include "lane/layer_kernels.h"
#include "base/isa.h"
#include "lane/series.h"

/* ---- activations ---- */

static void tanh_forward(const float *x, float *y, size_t count) {
    for (size_t i = 0; i < count; i++)
        y[i] = (float)tanh_series((double)x[i]);
}

static void tanh_backward(const float *y, const float *dy, float *dx, size_t count) {
    for (size_t i = 0; i < count; i++)
        dx[i] = dy[i] * (1.0f - y[i] * y[i]);
}

#define GELU_SCALE 0.7978845608028654 /* sqrt(2 / pi) */
#define GELU_CUBE 0.044715

static void gelu_forward(const float *x, float *y, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const double v = (double)x[i];
        y[i] = (float)(0.5 * v * (1.0 + tanh_series(GELU_SCALE * (v + GELU_CUBE * v * v * v))));
    }
}

static void gelu_backward(const float *x, const float *dy, float *dx, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const double v = (double)x[i];
        const double t = tanh_series(GELU_SCALE * (v + GELU_CUBE * v * v * v));
        const double inner = GELU_SCALE * (1.0 + 3.0 * GELU_CUBE * v * v);
        const double slope = 0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * inner;
        dx[i] = (float)((double)dy[i] * slope);
    }
}

static void add(const float *a, const float *b, float *y, size_t count) {
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
}

static void multiply(const float *a, const float *b, float *y, size_t count) {
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] * b[i];
}

/* ---- average pooling ---- */

static void average(const float *x, size_t row, uint32_t height, uint32_t width, float *y) {
    double sum[FDS__LANES] = {0};
    for (uint32_t h = 0; h < height; h++)
        for (uint32_t w = 0; w < width; w++)
            for (int l = 0; l < FDS__LANES; l++)
                sum[l] += (double)x[h * row + w * FDS__LANES + (size_t)l];
    for (int l = 0; l < FDS__LANES; l++)
        y[l] = (float)(sum[l] / ((double)height * (double)width));
}

/* ---- batchnorm ---- */

static void sum(const float *x, size_t vectors, double mean, double *sums) {
    (void)mean;
    for (size_t v = 0; v < vectors; v++)
        for (size_t l = 0; l < FDS__LANES; l++)
            sums[l] += (double)x[v * FDS__LANES + l];
}

static void sum_squares(const float *x, size_t vectors, double mean, double *sums) {
    for (size_t v = 0; v < vectors; v++)
        for (size_t l = 0; l < FDS__LANES; l++) {
            const double d = (double)x[v * FDS__LANES + l] - mean;
            sums[l] += d * d;
        }
}

static void sum_products(const float *dy, const float *x, size_t vectors, double mean, double *sums,
                         double *products) {
    for (size_t v = 0; v < vectors; v++)
        for (size_t l = 0; l < FDS__LANES; l++) {
            const double d = (double)dy[v * FDS__LANES + l];
            sums[l] += d;
            products[l] += d * ((double)x[v * FDS__LANES + l] - mean);
        }
}

static void normalise(const float *x, double mean, double scale, double shift, float *y,
                      size_t count) {
    for (size_t i = 0; i < count; i++)
        y[i] = (float)(((double)x[i] - mean) * scale + shift);
}

static void normalise_backward(const float *x, const float *dy, double mean, double a, double b,
                               double c, float *dx, size_t count) {
    for (size_t i = 0; i < count; i++)
        dx[i] = (float)(a * (double)dy[i] - b - c * ((double)x[i] - mean));
}

const lane_layer_kernels FDS__ISA_TABLE(lane_layer_kernels) = {
    .tanh_forward = tanh_forward,
    .tanh_backward = tanh_backward,
    .gelu_forward = gelu_forward,
    .gelu_backward = gelu_backward,
    .add = add,
    .multiply = multiply,
    .average = average,
    .sum = sum,
    .sum_squares = sum_squares,
    .sum_products = sum_products,
    .normalise = normalise,
    .normalise_backward = normalise_backward,
};
