/* SPDX-License-Identifier: Apache-2.0
 * Small statistics, each in one place. */
#include "base/base.h"

#include <math.h>
#include <stdlib.h>

uint32_t fds__argmax(const double *values, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

uint32_t fds__argmax_f32(const float *values, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

double fds__correlation(const double *a, const double *b, const bool *in, size_t count) {
    const double alike = 1e-12;
    double n = 0, mean_a = 0, mean_b = 0, aa = 0, bb = 0, saa = 0, sbb = 0, sab = 0;
    for (size_t i = 0; i < count; i++)
        if (!in || in[i]) {
            n++;
            mean_a += a[i];
            mean_b += b[i];
        }
    mean_a /= n;
    mean_b /= n;
    for (size_t i = 0; i < count; i++)
        if (!in || in[i]) {
            double x = a[i] - mean_a, y = b[i] - mean_b;
            aa += a[i] * a[i];
            bb += b[i] * b[i];
            saa += x * x;
            sbb += y * y;
            sab += x * y;
        }
    return n > 2 && saa > alike * aa && sbb > alike * bb ? sab / (sqrt(saa) * sqrt(sbb)) : NAN;
}

/* ranks[count]: 1 for the greatest value; equal values get the mean of their ranks. order[count]:
 * scratch. */
static fds_status find_ranks(const double *values, size_t count, size_t *order, double *ranks,
                             fds_error *err) {
    TRY(fds__rank(values, count, order, err));
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && values[order[end]] == values[order[first]];)
            end++;
        for (size_t i = first; i < end; i++)
            ranks[order[i]] = (double)(first + 1 + end) / 2;
    }
    return FDS_OK;
}

fds_status fds__spearman(const double *a, const double *b, size_t count, double *out,
                         fds_error *err) {
    OWNED double *ranks = NULL;
    OWNED size_t *order = NULL;
    TRY(NEW(ranks, 2 * count, err));
    TRY(NEW(order, count, err));
    TRY(find_ranks(a, count, order, ranks, err));
    TRY(find_ranks(b, count, order, ranks + count, err));
    *out = fds__correlation(ranks, ranks + count, NULL, count);
    return FDS_OK;
}

void fds__transpose(const double *in, size_t rows, size_t columns, double *out) {
    enum { BLOCK = 32 }; /* for the cache */
    for (size_t first = 0; first < columns; first += BLOCK)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = first; j < MIN(first + BLOCK, columns); j++)
                out[j * rows + i] = in[i * columns + j];
}

uint64_t fds__draw_seed(uint64_t seed, uint64_t draw) { return seed + draw * 0x9E3779B97F4A7C15u; }

double fds__decimal(float value) {
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)value);
    return strtod(text, NULL);
}

float fds__decimal_product(float a, float b) { return (float)(fds__decimal(a) * fds__decimal(b)); }
