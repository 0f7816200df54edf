/* SPDX-License-Identifier: Apache-2.0
 * Products of a matrix of bits: ls_bits.h. */
#include "game/ls_bits.h"

#include <string.h>

fds_status fds__bits_multiply(const fds__bits *bits, const fds__bits_kernel *kernel,
                              const double *x, size_t width, double *table, double *out,
                              fds_error *err) {
    enum { ROWS = 2048 }; /* a tile of so many rows of out stays in the cache */
    memset(out, 0, bits->rows * width * sizeof *out);
    for (size_t tile = 0; tile < width; tile += FDS__BITS_TILE)
        for (size_t first = 0; first < bits->rows; first += ROWS) {
            size_t rows = MIN(bits->rows - first, (size_t)ROWS);
            for (size_t column = 0; column < bits->columns; column += 32) {
                size_t count = MIN(bits->columns - column, (size_t)32);
                kernel->fill(x + column * width + tile, width, count, table);
                kernel->add(bits->words + column / 32 * bits->rows + first, rows, table,
                            out + first * width + tile, width);
            }
            TRY(fds__pool_check(err));
        }
    return FDS_OK;
}
