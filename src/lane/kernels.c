/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels, compiled once for each instruction set (see meson.build). The three that multiply
 * keep a tile of results in registers; the others are plain loops that the compiler turns into
 * vectors, which cannot change a bit without -ffast-math and contraction.
 */
#include "base/isa.h"
#include "lane/kernels.h"
#include "lane/series.h"
#include "lane/simd.h"

#include <string.h>

#define UNROLL_TAPS _Pragma("GCC unroll 5")
#define PARTS (FDS__LANES / VW) /* registers per 16 lanes */

/* ---- tiles ------------------------------------------------------------------------------- */

/* With sanitizers the compiler takes minutes over large tiles; small ones are the same code. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define TILE_REGS 8
#else
#define TILE_REGS VREGS
#endif

/* A tile has A rows by B registers of results; A*B accumulators, B operands and a broadcast must
 * fit the registers. */
enum { MAX_A = 12, MAX_B = 6, TILE_LIMIT = TILE_REGS * 25 / 32 };
#define FITS(A, B) ((A) * (B) <= TILE_LIMIT && (A) * (B) + (B) + 1 <= TILE_REGS)

/* Cuts n into parts of at most most, as equal as possible; returns the size of the next part. */
INLINE uint32_t next_part(uint32_t n, uint32_t most) {
    uint32_t parts = (n + most - 1) / most;
    return (n + parts - 1) / parts;
}

/* The cost of a tile per tap, in eighths of a cycle: two products or two loads per cycle, whichever
 * take longer, and at least the latency of a chain (4 cycles). Of equal tiles, fewer loads win. */
static uint32_t tile_cost(uint32_t a, uint32_t b) {
    uint32_t products = a * b, loads = a + b;
    uint32_t most = products > loads ? products : loads;
    return 4 * (most > 8 ? most : 8) + loads;
}

static fds__tile tile(uint32_t rows, uint32_t vectors) {
    fds__tile best = {1, 1};
    uint64_t best_cost = UINT64_MAX;
    for (uint32_t a = 1; a <= MAX_A; a++) {
        for (uint32_t b = 1; b <= MAX_B; b++) {
            if (!FITS(a, b))
                continue;
            uint64_t cost = 0;
            for (uint32_t r = 0, nr; r < rows; r += nr) {
                nr = next_part(rows - r, a);
                for (uint32_t v = 0, nv; v < vectors * PARTS; v += nv) {
                    nv = next_part(vectors * PARTS - v, b);
                    cost += tile_cost(nr, nv);
                }
            }
            if (cost < best_cost || (cost == best_cost && a * b > best.a * best.b)) {
                best = (fds__tile){a, b};
                best_cost = cost;
            }
        }
    }
    return best;
}

/* ---- sums -------------------------------------------------------------------------------- */

static void sum_lanes(const float *in, size_t count, bool add, float *out) {
    for (size_t i = 0; i < count; i++, in += FDS__LANES) {
        float t[FDS__LANES / 2];
        for (int l = 0; l < 8; l++)
            t[l] = in[l] + in[l + 8];
        for (int l = 0; l < 4; l++)
            t[l] += t[l + 4];
        float sum = (t[0] + t[2]) + (t[1] + t[3]);
        out[i] = add ? out[i] + sum : sum;
    }
}

/* Up to eight chains at a time hide the latency of an addition. */
INLINE void sum_tile(const uint32_t A, const float *in, size_t plane, size_t row, uint32_t height,
                     uint32_t vectors, float *out) {
    vf acc[8];
    UNROLL
    for (uint32_t a = 0; a < A; a++)
        acc[a] = v_set1(0.0f);
    for (uint32_t h = 0; h < height; h++)
        for (uint32_t v = 0; v < vectors; v++) {
            UNROLL
            for (uint32_t a = 0; a < A; a++)
                acc[a] = v_add(acc[a], v_load(in + a * plane + h * row + v * FDS__LANES));
        }
    UNROLL
    for (uint32_t a = 0; a < A; a++)
        v_store(out + a * FDS__LANES, acc[a]);
}

static void sum_planes(const float *in, uint32_t planes, size_t plane, size_t row, uint32_t height,
                       uint32_t vectors, float *out) {
    for (uint32_t part = 0; part < FDS__LANES; part += VW) {
        uint32_t n = 0;
        for (; n + 8 <= planes; n += 8)
            sum_tile(8, in + n * plane + part, plane, row, height, vectors,
                     out + n * FDS__LANES + part);
        for (; n + 2 <= planes; n += 2)
            sum_tile(2, in + n * plane + part, plane, row, height, vectors,
                     out + n * FDS__LANES + part);
        for (; n < planes; n++)
            sum_tile(1, in + n * plane + part, plane, row, height, vectors,
                     out + n * FDS__LANES + part);
    }
}

/* ---- product ----------------------------------------------------------------------------- */

/* A tile of A rows by B registers; taps is the innermost count, a constant for the usual filters.
 * Three rows of w share a base pointer: base, base + s and base + 2s are address modes of the
 * processor. */
INLINE void product_tile(const int A, const int B, const uint32_t taps, const fds__product *p,
                         const float *w, const float *x, float *y, const float *bias) {
    vf acc[MAX_A][MAX_B];
    UNROLL
    for (int a = 0; a < A; a++) {
        UNROLL
        for (int b = 0; b < B; b++) {
            if (p->start == FDS__START_Y)
                acc[a][b] = v_load(y + (size_t)a * p->y_row + b * VW);
            else
                acc[a][b] = v_set1(bias ? bias[a] : 0.0f);
        }
    }
    const size_t s = p->w_row, wt = p->w_tap[2], xt = p->x_tap[2];
    for (uint32_t t0 = 0; t0 < p->taps[0]; t0++) {
        for (uint32_t t1 = 0; t1 < p->taps[1]; t1++) {
            const float *xv = x + t0 * p->x_tap[0] + t1 * p->x_tap[1];
            const float *wb[MAX_A / 3];
            UNROLL
            for (int i = 0; i < (A + 2) / 3; i++)
                wb[i] = w + t0 * p->w_tap[0] + t1 * p->w_tap[1] + 3 * (size_t)i * s;
            UNROLL_TAPS
            for (uint32_t t2 = 0; t2 < taps; t2++) {
                vf xs[MAX_B];
                UNROLL
                for (int b = 0; b < B; b++)
                    xs[b] = v_load(xv + b * VW);
                UNROLL
                for (int a = 0; a < A; a++) {
                    vf wa = v_set1(wb[a / 3][(size_t)(a % 3) * s]);
                    UNROLL
                    for (int b = 0; b < B; b++)
                        acc[a][b] = v_fma(wa, xs[b], acc[a][b]);
                }
                xv += xt;
                UNROLL
                for (int i = 0; i < (A + 2) / 3; i++)
                    wb[i] += wt;
            }
        }
    }
    UNROLL
    for (int a = 0; a < A; a++) {
        UNROLL
        for (int b = 0; b < B; b++)
            v_store(y + (size_t)a * p->y_row + b * VW, acc[a][b]);
    }
}

typedef void product_function(const fds__product *p, const float *w, const float *x, float *y,
                              const float *bias);

#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#define PRODUCT(A, B)                                                                              \
    static void product_##A##_##B(const fds__product *p, const float *w, const float *x, float *y, \
                                  const float *bias) {                                             \
        if (FITS(A, B) && p->taps[2] == 5)                                                         \
            product_tile(A, B, 5, p, w, x, y, bias);                                               \
        else if (FITS(A, B) && p->taps[2] == 3)                                                    \
            product_tile(A, B, 3, p, w, x, y, bias);                                               \
        else if (FITS(A, B))                                                                       \
            product_tile(A, B, p->taps[2], p, w, x, y, bias);                                      \
    }
#define PRODUCTS(A) \
    PRODUCT(A, 1) PRODUCT(A, 2) PRODUCT(A, 3) PRODUCT(A, 4) PRODUCT(A, 5) PRODUCT(A, 6)
ROWS(PRODUCTS)
#define PRODUCT_ROW(A)                                  \
    {product_##A##_1, product_##A##_2, product_##A##_3, \
     product_##A##_4, product_##A##_5, product_##A##_6},
static product_function *const product_tiles[MAX_A][MAX_B] = {ROWS(PRODUCT_ROW)};

static void product_once(const fds__product *p, const float *w, const float *x, float *y) {
    const uint32_t registers = p->vectors * PARTS;
    for (uint32_t r = 0, nr; r < p->rows; r += nr) {
        nr = next_part(p->rows - r, p->tile.a);
        for (uint32_t v = 0, nv; v < registers; v += nv) {
            nv = next_part(registers - v, p->tile.b);
            product_tiles[nr - 1][nv - 1](p, w + r * p->w_row, x + v * VW,
                                          y + r * p->y_row + v * VW,
                                          p->start == FDS__START_BIAS ? p->bias + r : NULL);
        }
    }
}

static void product(const fds__product *p) {
    const size_t *w = p->w_repeat, *x = p->x_repeat, *y = p->y_repeat;
    for (uint32_t i = 0; i < p->repeat[0]; i++)
        for (uint32_t j = 0; j < p->repeat[1]; j++)
            for (uint32_t k = 0; k < p->repeat[2]; k++)
                product_once(p, p->w + i * w[0] + j * w[1] + k * w[2],
                             p->x + i * x[0] + j * x[1] + k * x[2],
                             p->y + i * y[0] + j * y[1] + k * y[2]);
}

/* ---- gradient of filters ----------------------------------------------------------------- */

enum { MAX_FILTERS = FDS__FILTER_TILE, MAX_TAPS = 6, ROW_BYTES = 28 << 10 };
#define FILTER_FITS(A, B) ((A) * (B) + (A) + 1 <= TILE_REGS)

/* A filters by B neighbouring columns of the window, over rows x vectors of positions. */
INLINE void filter_tile(const int A, const int B, const fds__filter_grad *p, uint32_t rows,
                        const float *dy, const float *x, float *partial, size_t filter) {
    vf acc[MAX_FILTERS][MAX_TAPS];
    UNROLL
    for (int a = 0; a < A; a++) {
        UNROLL
        for (int b = 0; b < B; b++)
            acc[a][b] = v_load(partial + a * filter + b * FDS__LANES);
    }
    for (uint32_t h = 0; h < rows; h++) {
        const float *d[(MAX_FILTERS + 2) / 3], *xv = x + h * p->x_row;
        UNROLL
        for (int i = 0; i < (A + 2) / 3; i++)
            d[i] = dy + h * p->dy_row + 3 * (size_t)i * p->dy_plane;
        for (uint32_t v = 0; v < p->vectors; v++) {
            vf ds[MAX_FILTERS];
            UNROLL
            for (int a = 0; a < A; a++)
                ds[a] = v_load(d[a / 3] + (size_t)(a % 3) * p->dy_plane);
            UNROLL
            for (int b = 0; b < B; b++) {
                vf xs = v_load(xv + b * p->shift);
                v_pin(xs);
                UNROLL
                for (int a = 0; a < A; a++)
                    acc[a][b] = v_fma(ds[a], xs, acc[a][b]);
            }
            xv += FDS__LANES;
            UNROLL
            for (int i = 0; i < (A + 2) / 3; i++)
                d[i] += FDS__LANES;
        }
    }
    UNROLL
    for (int a = 0; a < A; a++) {
        UNROLL
        for (int b = 0; b < B; b++)
            v_store(partial + a * filter + b * FDS__LANES, acc[a][b]);
    }
}

typedef void filter_function(const fds__filter_grad *p, uint32_t rows, const float *dy,
                             const float *x, float *partial, size_t filter);

#define FILTERS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define FILTER(A, B)                                                                        \
    static void filter_##A##_##B(const fds__filter_grad *p, uint32_t rows, const float *dy, \
                                 const float *x, float *partial, size_t filter) {           \
        if (FILTER_FITS(A, B))                                                              \
            filter_tile(A, B, p, rows, dy, x, partial, filter);                             \
    }
#define FILTER_TAPS(A) FILTER(A, 1) FILTER(A, 2) FILTER(A, 3) FILTER(A, 4) FILTER(A, 5) FILTER(A, 6)
FILTERS(FILTER_TAPS)
#define FILTER_ROW(A)                                \
    {filter_##A##_1, filter_##A##_2, filter_##A##_3, \
     filter_##A##_4, filter_##A##_5, filter_##A##_6},
static filter_function *const filter_tiles[MAX_FILTERS][MAX_TAPS] = {FILTERS(FILTER_ROW)};

/* One tile of filters, in blocks of rows: a block of dy stays in the first-level cache for all
 * input channels and rows of the window. */
static void filter_grad_tile(const fds__filter_grad *p, uint32_t o, uint32_t no, uint32_t most_b) {
    const uint32_t k = p->kernel;
    const size_t weights = (size_t)p->in_channels * k * k, filter = weights * FDS__LANES;
    uint32_t block = ROW_BYTES / (uint32_t)(no * p->vectors * FDS__LANES * sizeof(float));
    block = block < 1 ? 1 : block;
    float *sums = p->each ? p->each + o * filter : p->partial;
    memset(sums, 0, no * filter * sizeof(float));
    for (uint32_t h = 0, nh; h < p->rows; h += nh) {
        nh = next_part(p->rows - h, block);
        for (uint32_t c = 0; c < p->in_channels * k * PARTS; c++) {
            uint32_t part = c % PARTS, i = c / PARTS % k, channel = c / PARTS / k;
            const float *dy = p->dy + o * p->dy_plane + h * p->dy_row + part * VW;
            const float *x = p->x + channel * p->x_plane + (h + i) * p->x_row + part * VW;
            float *partial = sums + (size_t)(c / PARTS) * k * FDS__LANES + part * VW;
            for (uint32_t j = 0, nj; j < k; j += nj) {
                nj = next_part(k - j, most_b);
                filter_tiles[no - 1][nj - 1](p, nh, dy, x + j * p->shift, partial + j * FDS__LANES,
                                             filter);
            }
        }
    }
    if (!p->each)
        sum_lanes(sums, no * weights, p->add, p->grad + o * weights);
}

static void filter_grad(const fds__filter_grad *p) {
    uint32_t most_b = p->kernel < MAX_TAPS ? p->kernel : MAX_TAPS, most_a = MAX_FILTERS;
    while (!FILTER_FITS(most_a, next_part(p->kernel, most_b)))
        most_a--;
    for (uint32_t o = 0, no; o < p->out_channels; o += no) {
        no = next_part(p->out_channels - o, most_a);
        filter_grad_tile(p, o, no, most_b);
    }
}

/* ---- gradient of a convolution's input --------------------------------------------------- */

#define INPUT_FITS(A, B) ((A) * (B) + 2 <= TILE_REGS)

/* One row of dx for A input channels. Registers hold the B = kernel columns of dx that a column of
 * dy adds to. After each column of dy the first of them is complete and the window moves on. */
INLINE void input_row(const int A, const int B, const fds__input_grad *p, uint32_t h,
                      const float *w, const float *dy, float *dx) {
    const uint32_t k = (uint32_t)B, channels = p->out_channels, columns = p->columns;
    const uint32_t first = h + 1 > p->rows ? h + 1 - p->rows : 0, last = h < k - 1 ? h : k - 1;
    const size_t s = (size_t)k * k, filter = p->in_channels * s, plane = p->dy_plane;
    vf acc[FDS__INPUT_KERNEL][FDS__INPUT_KERNEL];
    UNROLL
    for (int a = 0; a < A; a++) {
        UNROLL
        for (int b = 0; b < B; b++)
            acc[a][b] = v_set1(0.0f);
    }
    for (uint32_t v = 0; v < columns; v++) {
        for (uint32_t i = first; i <= last; i++) {
            const float *d = dy + (h - i) * p->dy_row + v * FDS__LANES, *wi = w + i * k;
            for (uint32_t o = 0; o < channels; o++, d += plane, wi += filter) {
                const vf value = v_load(d);
                UNROLL
                for (int a = 0; a < A; a++) {
                    UNROLL
                    for (int b = 0; b < B; b++)
                        acc[a][b] = v_fma(v_set1(wi[a * s + b]), value, acc[a][b]);
                }
            }
        }
        UNROLL
        for (int a = 0; a < A; a++) {
            v_store(dx + a * p->dx_plane + v * FDS__LANES, acc[a][0]);
            UNROLL
            for (int b = 0; b + 1 < B; b++)
                acc[a][b] = acc[a][b + 1];
            acc[a][B - 1] = v_set1(0.0f);
        }
    }
    UNROLL
    for (int a = 0; a < A; a++) {
        UNROLL
        for (int b = 0; b + 1 < B; b++)
            v_store(dx + a * p->dx_plane + (columns + (uint32_t)b) * FDS__LANES, acc[a][b]);
    }
}

typedef void input_function(const fds__input_grad *p, uint32_t h, const float *w, const float *dy,
                            float *dx);

#define INPUT(A, B)                                                                   \
    static void input_##A##_##B(const fds__input_grad *p, uint32_t h, const float *w, \
                                const float *dy, float *dx) {                         \
        if (INPUT_FITS(A, B))                                                         \
            input_row(A, B, p, h, w, dy, dx);                                         \
    }
#define INPUTS(A) INPUT(A, 1) INPUT(A, 2) INPUT(A, 3) INPUT(A, 4) INPUT(A, 5) INPUT(A, 6)
FILTERS(INPUTS)
#define INPUT_ROW(A) \
    {input_##A##_1, input_##A##_2, input_##A##_3, input_##A##_4, input_##A##_5, input_##A##_6},
static input_function *const input_rows[FDS__INPUT_KERNEL][FDS__INPUT_KERNEL] = {
    FILTERS(INPUT_ROW)};

static void input_grad(const fds__input_grad *p) {
    const uint32_t k = p->kernel;
    uint32_t most = FDS__INPUT_KERNEL;
    while (!INPUT_FITS(most, k))
        most--;
    for (uint32_t h = 0; h < p->rows + k - 1; h++) {
        for (uint32_t c = 0, nc; c < p->in_channels; c += nc) {
            nc = next_part(p->in_channels - c, most);
            for (int part = 0; part < FDS__LANES; part += VW)
                input_rows[nc - 1][k - 1](p, h, p->w + c * k * k, p->dy + part,
                                          p->dx + c * p->dx_plane + h * p->dx_row + part);
        }
    }
}

/* ---- pooling and rectifying -------------------------------------------------------------- */

/* Rows of windows: 16 lanes in whole registers, 4 or 8 lanes by fours, 1 or 2 lanes one by one. */
#define MAP_NAME(name) name##_whole
#define MAP_TYPE vf
#define MAP_WIDTH VW
#define MAP_OP(name) v_##name
#define MAP_LANES FDS__LANES
#include "lane/map_rows.h"

#define MAP_NAME(name) name##_fours
#define MAP_TYPE v4
#define MAP_WIDTH 4
#define MAP_OP(name) v4_##name
#define MAP_LANES p->lanes
#include "lane/map_rows.h"

#define MAP_NAME(name) name##_ones
#define MAP_TYPE v1
#define MAP_WIDTH 1
#define MAP_OP(name) v1_##name
#define MAP_LANES p->lanes
#include "lane/map_rows.h"

static void map_forward(const fds__map *p) {
    if (p->lanes == FDS__LANES)
        map_forward_whole(p);
    else if (p->lanes % 4 == 0)
        map_forward_fours(p);
    else
        map_forward_ones(p);
}

static void map_backward(const fds__map *p) {
    if (p->lanes == FDS__LANES)
        map_backward_whole(p);
    else if (p->lanes % 4 == 0)
        map_backward_fours(p);
    else
        map_backward_ones(p);
}

static void relu_forward(float *y, size_t count) {
    for (size_t i = 0; i < count; i++)
        y[i] = y[i] > 0.0f ? y[i] : 0.0f;
}

static void relu_backward(const float *y, float *dy, size_t count) {
    for (size_t i = 0; i < count; i++)
        dy[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

/* ---- transposing ------------------------------------------------------------------------- */

static void rows_to_lanes(const float *const rows[FDS__LANES], size_t first, size_t count,
                          float *out) {
    for (size_t i = 0, n; i < count; i += n) {
        n = count - i < VW ? count - i : VW;
        if (n < VW && count >= VW) { /* the last block overlaps the one before */
            i = count - VW;
            n = VW;
        }
        for (int part = 0; part < FDS__LANES; part += VW) {
            vf block[VW];
            for (int l = 0; l < VW && n == VW; l++)
                block[l] = v_load(rows[part + l] + first + i);
            if (n == VW)
                v_transpose(block);
            for (size_t k = 0; k < n; k++) {
                float *to = out + (i + k) * FDS__LANES + part;
                if (n == VW)
                    v_store(to, block[k]);
                for (int l = 0; l < VW && n < VW; l++)
                    to[l] = rows[part + l][first + i + k];
            }
        }
    }
}

static void lanes_to_rows(const float *in, size_t count, float *out, size_t out_row) {
    for (size_t i = 0; i < count; i += VW) {
        for (int part = 0; part < FDS__LANES; part += VW) {
            vf block[VW];
            for (int k = 0; k < VW; k++)
                block[k] = v_load(in + (i + k) * FDS__LANES + part);
            v_transpose(block);
            for (int l = 0; l < VW; l++)
                v_store(out + (part + l) * out_row + i, block[l]);
        }
    }
}

/* ---- softmax ----------------------------------------------------------------------------- */

static void softmax(float *z, uint32_t classes, uint32_t lanes, const uint16_t *labels,
                    float *loss) {
    float top[FDS__LANES], sum[FDS__LANES];
    for (int l = 0; l < FDS__LANES; l++) {
        top[l] = z[l];
        sum[l] = 0.0f;
    }
    for (uint32_t k = 1; k < classes; k++)
        for (int l = 0; l < FDS__LANES; l++)
            top[l] = z[k * FDS__LANES + l] > top[l] ? z[k * FDS__LANES + l] : top[l];
    if (labels)
        for (uint32_t l = 0; l < lanes; l++)
            loss[l] = top[l] - z[labels[l] * FDS__LANES + l];
    for (uint32_t k = 0; k < classes; k++) {
        for (int l = 0; l < FDS__LANES; l++) {
            float e = (float)exp_nonpositive((double)(z[k * FDS__LANES + l] - top[l]));
            z[k * FDS__LANES + l] = e;
            sum[l] += e;
        }
    }
    for (uint32_t k = 0; k < classes; k++)
        for (int l = 0; l < FDS__LANES; l++)
            z[k * FDS__LANES + l] /= sum[l];
    if (labels)
        for (uint32_t l = 0; l < lanes; l++)
            loss[l] += (float)log_positive((double)sum[l]);
}

/* ---- steps ------------------------------------------------------------------------------- */

/* w -= lr m' / (sqrt(v') + epsilon), with m' and v' the moments corrected for their start at 0. */
static void adam(const fds__optimizer_step *p) {
    const float b1 = p->beta1, b2 = p->beta2, c1 = 1.0f - b1, c2 = 1.0f - b2;
    const float step = p->lr * p->correct1, correct2 = p->correct2, epsilon = p->epsilon;
    const float decay = p->weight_decay;
    float *restrict w = p->w, *restrict m = p->m, *restrict v = p->v;
    const float *restrict gradient = p->g;
    for (size_t i = 0; i < p->count; i++) {
        const float g = fmaf(decay, w[i], gradient[i]);
        m[i] = fmaf(b1, m[i], c1 * g);
        v[i] = fmaf(b2, v[i], c2 * (g * g));
        w[i] -= step * m[i] / (sqrtf(v[i] * correct2) + epsilon);
    }
}

static void sgd(const fds__optimizer_step *p) {
    float *restrict w = p->w, *restrict m = p->m;
    const float *restrict gradient = p->g;
    for (size_t i = 0; i < p->count; i++) {
        m[i] = p->momentum * m[i] + (gradient[i] + p->weight_decay * w[i]);
        w[i] -= p->lr * m[i];
    }
}

const fds__kernels FDS__ISA_TABLE(fds__kernels) = {
    .tile = tile,
    .product = product,
    .filter_grad = filter_grad,
    .input_grad = input_grad,
    .sum_lanes = sum_lanes,
    .sum_planes = sum_planes,
    .map_forward = map_forward,
    .map_backward = map_backward,
    .relu_forward = relu_forward,
    .relu_backward = relu_backward,
    .rows_to_lanes = rows_to_lanes,
    .lanes_to_rows = lanes_to_rows,
    .softmax = softmax,
    .adam = adam,
    .sgd = sgd,
};
