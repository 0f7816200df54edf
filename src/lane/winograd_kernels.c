/* SPDX-License-Identifier: Apache-2.0
 * The transforms of Winograd's convolution: see winograd_kernels.h. */
#include "lane/winograd_kernels.h"
#include "base/isa.h"
#include "lane/series.h"
#include "lane/simd.h"

/* Where position n of turned filters is: rows and columns 0 and 3 are exchanged. */
INLINE int turned(int n, bool is_turned) {
    static const int other[] = {3, 1, 2, 0};
    return is_turned ? 4 * other[n / 4] + other[n % 4] : n;
}

/* ---- filters ---- */

/* y = G x, for x0, x1, x2 that are step apart: x0, (x0 + x1 + x2)/2, (x0 - x1 + x2)/2, x2. */
INLINE void filter_side(const vf *x, int step, vf *y, int y_step) {
    const vf half = v_set1(0.5f), outer = v_add(x[0], x[2 * step]), inner = x[step];
    y[0] = x[0];
    y[y_step] = v_mul(half, v_add(outer, inner));
    y[2 * y_step] = v_mul(half, v_sub(outer, inner));
    y[3 * y_step] = x[2 * step];
}

static void filters(const float *w, uint32_t out, uint32_t in, float *u, size_t u_row,
                    size_t stride) {
    for (uint32_t o = 0; o < out; o++)
        for (uint32_t c = 0; c < in; c += VW) {
            const float *from = w + ((size_t)o * in + c) * 9;
            float columns[9][VW] = {{0}};
            vf g[9], half[12], whole[LANE_POSITIONS];
            for (uint32_t l = 0; l < VW && c + l < in; l++)
                for (int k = 0; k < 9; k++)
                    columns[k][l] = from[9 * l + (uint32_t)k];
            for (int k = 0; k < 9; k++)
                g[k] = v_load(columns[k]);
            for (int k = 0; k < 3; k++)
                filter_side(g + k, 3, half + k, 3);
            for (int k = 0; k < 4; k++)
                filter_side(half + 3 * k, 1, whole + 4 * k, 1);
            for (int n = 0; n < LANE_POSITIONS; n++)
                v_store(u + (size_t)n * stride + o * u_row + c, whole[n]);
        }
}

/* y = G'x: x0 + (x1 + x2)/2, (x1 - x2)/2, (x1 + x2)/2 + x3. */
INLINE void filter_side_backward(const vf *x, int step, vf *y, int y_step) {
    const vf half = v_set1(0.5f), sum = v_mul(half, v_add(x[step], x[2 * step]));
    y[0] = v_add(x[0], sum);
    y[y_step] = v_mul(half, v_sub(x[step], x[2 * step]));
    y[2 * y_step] = v_add(sum, x[3 * step]);
}

static void filters_backward(const float *u, size_t u_row, size_t stride, uint32_t out, uint32_t in,
                             bool add, float *w) {
    for (uint32_t o = 0; o < out; o++)
        for (uint32_t c = 0; c < in; c += VW) {
            float *to = w + ((size_t)o * in + c) * 9;
            float columns[9][VW];
            vf whole[LANE_POSITIONS], half[12], g[9];
            for (int n = 0; n < LANE_POSITIONS; n++)
                whole[n] = v_load(u + (size_t)n * stride + o * u_row + c);
            for (int k = 0; k < 4; k++)
                filter_side_backward(whole + k, 4, half + k, 4);
            for (int k = 0; k < 3; k++)
                filter_side_backward(half + 4 * k, 1, g + 3 * k, 1);
            for (int k = 0; k < 9; k++)
                v_store(columns[k], g[k]);
            for (uint32_t l = 0; l < VW && c + l < in; l++)
                for (int k = 0; k < 9; k++)
                    to[9 * l + (uint32_t)k] = (add ? to[9 * l + (uint32_t)k] : 0) + columns[k][l];
        }
}

/* ---- tiles of the input ---- */

/* y = B'x: x0 - x2, x1 + x2, x2 - x1, x1 - x3. */
INLINE void input_side(const vf *x, int step, vf *y) {
    const vf a = x[0], b = x[step], c = x[2 * step], d = x[3 * step];
    y[0] = v_sub(a, c);
    y[step] = v_add(b, c);
    y[2 * step] = v_sub(c, b);
    y[3 * step] = v_sub(b, d);
}

/* One tile: from d, whose rows and columns are apart by these strides, to v. */
INLINE void input_tile(vf d[LANE_POSITIONS], bool is_turned, float *v, size_t stride) {
    UNROLL
    for (int k = 0; k < 4; k++)
        input_side(d + k, 4, d + k);
    UNROLL
    for (int k = 0; k < 4; k++)
        input_side(d + 4 * k, 1, d + 4 * k);
    UNROLL
    for (int n = 0; n < LANE_POSITIONS; n++)
        v_store(v + (size_t)turned(n, is_turned) * stride, d[n]);
}

INLINE void input_tiles(const lane_image *x, lane_tiles tiles, const bool is_turned, float *v,
                        size_t stride) {
    const size_t row = x->row;
    for (int32_t c = 0; c < x->channels; c++)
        for (uint32_t t = 0; t < tiles.count; t++, v += FDS__LANES) {
            const int32_t h = tiles.row, w = tiles.column + 2 * (int32_t)t;
            const bool is_inside = h >= 0 && w >= 0 && h + 4 <= x->rows && w + 4 <= x->columns;
            const float *plane = x->values + (size_t)c * x->plane;
            for (int part = 0; part < FDS__LANES; part += VW) {
                vf d[LANE_POSITIONS];
                if (is_inside) {
                    const float *from = plane + (size_t)h * row + (size_t)w * FDS__LANES + part;
                    UNROLL
                    for (int n = 0; n < LANE_POSITIONS; n++)
                        d[n] = v_load(from + (size_t)(n / 4) * row + n % 4 * FDS__LANES);
                } else {
                    for (int n = 0; n < LANE_POSITIONS; n++) {
                        const int32_t i = h + n / 4, j = w + n % 4;
                        d[n] = v_set1(0.0f);
                        if (i >= 0 && j >= 0 && i < x->rows && j < x->columns)
                            d[n] = v_load(plane + (size_t)i * row + (size_t)j * FDS__LANES + part);
                    }
                }
                input_tile(d, is_turned, v + part, stride);
            }
        }
}

static void input(const lane_image *x, lane_tiles tiles, bool is_turned, float *v, size_t stride) {
    if (is_turned)
        input_tiles(x, tiles, true, v, stride);
    else
        input_tiles(x, tiles, false, v, stride);
}

static void channels_last(const lane_image *x, int32_t row, float *out) {
    const float *from = x->values + (size_t)row * x->row;
    const int32_t channels = (x->channels + FDS__LANES - 1) / FDS__LANES * FDS__LANES;
    for (int32_t w = 0; w < x->columns; w++, from += FDS__LANES, out += channels * FDS__LANES)
        for (int32_t c = 0; c < channels; c += VW)
            for (int part = 0; part < FDS__LANES; part += VW) {
                vf block[VW];
                for (int k = 0; k < VW; k++)
                    block[k] = c + k < x->channels
                                   ? v_load(from + (size_t)(c + k) * x->plane + part)
                                   : v_set1(0.0f);
                v_transpose(block);
                for (int l = 0; l < VW; l++)
                    v_store(out + (part + l) * channels + c, block[l]);
            }
}

static void input_last(const float *const rows[4], int32_t columns, size_t size, lane_tiles tiles,
                       float *v, size_t stride) {
    for (uint32_t t = 0; t < tiles.count; t++) {
        const int32_t w = tiles.column + 2 * (int32_t)t;
        for (size_t k = 0; k < size; k += VW, v += VW) {
            vf d[LANE_POSITIONS];
            UNROLL
            for (int n = 0; n < LANE_POSITIONS; n++) {
                const int32_t j = w + n % 4;
                d[n] = v_set1(0.0f);
                if (rows[n / 4] && j >= 0 && j < columns)
                    d[n] = v_load(rows[n / 4] + (size_t)j * size + k);
            }
            input_tile(d, false, v, stride);
        }
    }
}

/* ---- tiles of the output ---- */

/* y = A'x: x0 + x1 + x2, x1 - x2 - x3. */
INLINE void output_side(const vf *x, int step, vf *y, int y_step) {
    y[0] = v_add(v_add(x[0], x[step]), x[2 * step]);
    y[y_step] = v_sub(v_sub(x[step], x[2 * step]), x[3 * step]);
}

INLINE void output_tiles(const float *m, size_t stride, const bool is_turned, const float *bias,
                         lane_tiles tiles, const lane_image *y) {
    for (int32_t c = 0; c < y->channels; c++) {
        const vf start = v_set1(bias ? bias[c] : 0.0f);
        for (uint32_t t = 0; t < tiles.count; t++, m += FDS__LANES) {
            const int32_t h = tiles.row, w = tiles.column + 2 * (int32_t)t;
            float *to =
                y->values + (size_t)c * y->plane + (size_t)h * y->row + (size_t)w * FDS__LANES;
            for (int part = 0; part < FDS__LANES; part += VW) {
                vf d[LANE_POSITIONS], half[8], whole[4];
                UNROLL
                for (int n = 0; n < LANE_POSITIONS; n++)
                    d[n] = v_load(m + (size_t)turned(n, is_turned) * stride + part);
                UNROLL
                for (int k = 0; k < 4; k++)
                    output_side(d + k, 4, half + k, 4);
                UNROLL
                for (int k = 0; k < 2; k++)
                    output_side(half + 4 * k, 1, whole + 2 * k, 1);
                UNROLL
                for (int n = 0; n < 4; n++)
                    if (h + n / 2 < y->rows && w + n % 2 < y->columns)
                        v_store(to + (size_t)(n / 2) * y->row + n % 2 * FDS__LANES + part,
                                v_add(whole[n], start));
            }
        }
    }
}

static void output(const float *m, size_t stride, bool is_turned, const float *bias,
                   lane_tiles tiles, const lane_image *y) {
    if (is_turned)
        output_tiles(m, stride, true, bias, tiles, y);
    else
        output_tiles(m, stride, false, bias, tiles, y);
}

/* y = Ax: x0, x0 + x1, x0 - x1, -x1. */
INLINE void gradient_side(const vf *x, int step, vf *y, int y_step) {
    y[0] = x[0];
    y[y_step] = v_add(x[0], x[step]);
    y[2 * y_step] = v_sub(x[0], x[step]);
    y[3 * y_step] = v_sub(v_set1(0.0f), x[step]);
}

static void gradient(const lane_image *dy, lane_tiles tiles, float *s, size_t stride) {
    for (int32_t c = 0; c < dy->channels; c++)
        for (uint32_t t = 0; t < tiles.count; t++, s += FDS__LANES) {
            const int32_t h = tiles.row, w = tiles.column + 2 * (int32_t)t;
            const float *from =
                dy->values + (size_t)c * dy->plane + (size_t)h * dy->row + (size_t)w * FDS__LANES;
            for (int part = 0; part < FDS__LANES; part += VW) {
                vf d[4], half[8], whole[LANE_POSITIONS];
                UNROLL
                for (int n = 0; n < 4; n++) {
                    d[n] = v_set1(0.0f);
                    if (h + n / 2 < dy->rows && w + n % 2 < dy->columns)
                        d[n] = v_load(from + (size_t)(n / 2) * dy->row + n % 2 * FDS__LANES + part);
                }
                UNROLL
                for (int k = 0; k < 2; k++)
                    gradient_side(d + k, 2, half + k, 2);
                UNROLL
                for (int k = 0; k < 4; k++)
                    gradient_side(half + 2 * k, 1, whole + 4 * k, 1);
                UNROLL
                for (int n = 0; n < LANE_POSITIONS; n++)
                    v_store(s + (size_t)n * stride + part, whole[n]);
            }
        }
}

const lane_winograd_kernels FDS__ISA_TABLE(lane_winograd_kernels) = {
    .filters = filters,
    .filters_backward = filters_backward,
    .input = input,
    .output = output,
    .gradient = gradient,
    .channels_last = channels_last,
    .input_last = input_last,
};
