/* SPDX-License-Identifier: Apache-2.0
 * The loops of ls_bits.h, compiled once for each instruction set. Each number is computed alone, by
 * additions only, so that all sets give the same bits. */
#include "game/ls_bits.h"

#include <string.h>

enum { TILE = FDS__BITS_TILE };

static void fill(const double *x, size_t stride, size_t count, double *restrict table) {
    memset(table, 0, FDS__BITS_TABLE * sizeof *table);
    for (size_t byte = 0; 8 * byte < count; byte++) {
        double *own = table + byte * 256 * TILE;
        size_t rows = MIN(count - 8 * byte, (size_t)8);
        for (size_t b = 1; b < (size_t)1 << rows; b++) {
            const double *less = own + (b & (b - 1)) * TILE;
            const double *row = x + (8 * byte + (size_t)__builtin_ctzll(b)) * stride;
            for (int k = 0; k < TILE; k++)
                own[b * TILE + (size_t)k] = less[k] + row[k];
        }
    }
}

static void add(const uint32_t *words, size_t rows, const double *restrict table,
                double *restrict out, size_t stride) {
    for (size_t r = 0; r < rows; r++) {
        const double *a = table + (words[r] & 255) * TILE,
                     *b = table + (256 + (words[r] >> 8 & 255)) * TILE,
                     *c = table + (512 + (words[r] >> 16 & 255)) * TILE,
                     *d = table + (768 + (words[r] >> 24)) * TILE;
        double *to = out + r * stride;
        for (int k = 0; k < TILE; k++)
            to[k] += (a[k] + b[k]) + (c[k] + d[k]);
    }
}

const fds__bits_kernel FDS__ISA_TABLE(fds__bits) = {fill, add};
