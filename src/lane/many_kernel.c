/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of many.c, compiled once for each instruction set (see meson.build): products in
 * which both sides are vectors of 16 lanes, one network per lane. Registers hold a tile of results.
 * Each result is one chain of fused multiply-adds, bias first, taps in order, so that its bits
 * depend neither on the instruction set nor on the tile.
 */
#include "lane/many_kernel.h"
#include "base/isa.h"
#include "lane/simd.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

/* A tile has A rows by B columns: A*B results, B operands and a weight must fit the registers. */
enum { MAX_B = 7 };
enum { AHEAD = 16 }; /* halves are prefetched this many taps ahead: a tenth faster than without */
#define FITS(A, B) ((B) == 1 || (A) * (B) + (B) + 1 <= VREGS)

/* ---- halves ---- */

/* VW halves as floats, exactly. AVX2 and generic code move exponent and fraction to their places in
 * a float, which makes the exponent 112 too low, and multiply. All halves are finite. */
#if defined FDS_AVX512
INLINE vf load_half(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
#elif defined FDS_AVX2
INLINE vf load_half(const uint16_t *p) {
    __m256i h = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    __m256i size = _mm256_slli_epi32(_mm256_and_si256(h, _mm256_set1_epi32(0x7fff)), 13);
    __m256i sign = _mm256_slli_epi32(_mm256_and_si256(h, _mm256_set1_epi32(0x8000)), 16);
    __m256 value = _mm256_mul_ps(_mm256_castsi256_ps(size), _mm256_set1_ps(0x1p112f));
    return _mm256_or_ps(value, _mm256_castsi256_ps(sign));
}
#else
INLINE vf load_half(const uint16_t *p) {
    vf r;
    for (int i = 0; i < VW; i++) {
        union {
            uint32_t bits;
            float value;
        } size = {.bits = (p[i] & 0x7fffu) << 13};
        r.f[i] = copysignf(size.value * 0x1p112f, p[i] & 0x8000 ? -1.0f : 1.0f);
    }
    return r;
}
#endif

static void widen(const uint16_t *halves, size_t count, float *out) {
    for (size_t i = 0; i < count * FDS__LANES; i += VW)
        v_store(out + i, load_half(halves + i));
}

/* ---- products ---- */

/* Weight number i (in vectors of 16 lanes) of either kind. */
INLINE vf load_weight(const bool is_half, const void *w, size_t i, int lane) {
    return is_half ? load_half((const uint16_t *)w + i * FDS__LANES + lane)
                   : v_load((const float *)w + i * FDS__LANES + lane);
}

/* Prefetches count vectors of halves from number i on, two per cache line; beyond the end of the
 * memory that is useless but harmless. */
INLINE void fetch(const void *w, size_t i, int count) {
    for (int k = 0; k < count; k += 2)
        __builtin_prefetch((const void *)((uintptr_t)w + (i + (size_t)k) * FDS__LANES * 2));
}

INLINE void tile(const int A, const int B, const bool is_half, const many_product *p, const void *w,
                 const float *x, float *y) {
    for (int lane = 0; lane < FDS__LANES; lane += VW) {
        vf acc[MANY_OUTPUTS][MAX_B];
        size_t at = (size_t)A;
        UNROLL
        for (int a = 0; a < A; a++) {
            UNROLL
            for (int b = 0; b < B; b++)
                acc[a][b] = load_weight(is_half, w, (size_t)a, lane);
        }
        for (uint32_t t0 = 0; t0 < p->taps[0]; t0++)
            for (uint32_t t1 = 0; t1 < p->taps[1]; t1++) {
                const float *xv = x + t0 * p->x_tap[0] + t1 * p->x_tap[1] + lane;
                for (uint32_t t2 = 0; t2 < p->taps[2]; t2++, xv += p->x_tap[2], at += (size_t)A) {
                    if (is_half)
                        fetch(w, at + (size_t)(AHEAD * A), A);
                    vf xs[MAX_B];
                    UNROLL
                    for (int b = 0; b < B; b++)
                        xs[b] = v_load(xv + (size_t)b * p->x_column);
                    UNROLL
                    for (int a = 0; a < A; a++) {
                        vf wa = load_weight(is_half, w, at + (size_t)a, lane);
                        UNROLL
                        for (int b = 0; b < B; b++)
                            acc[a][b] = v_fma(wa, xs[b], acc[a][b]);
                    }
                }
            }
        UNROLL
        for (int a = 0; a < A; a++) {
            UNROLL
            for (int b = 0; b < B; b++) {
                vf value = p->relu ? v_max(acc[a][b], v_set1(0.0f)) : acc[a][b];
                v_store(y + (size_t)a * p->y_row + (size_t)b * p->y_column + lane, value);
            }
        }
    }
}

typedef void tile_function(const many_product *p, const void *w, const float *x, float *y);

#define TILE(KIND, IS_HALF, A, B)                                                                  \
    static void KIND##_##A##_##B(const many_product *p, const void *w, const float *x, float *y) { \
        if (FITS(A, B))                                                                            \
            tile(A, B, IS_HALF, p, w, x, y);                                                       \
    }
#define FILTERS(X) X(1) X(2) X(3) X(4)
#define OUTPUTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define FULL(A, B) TILE(full, false, A, B)
#define HALF(A, B) TILE(half, true, A, B)
#define FULL_TILES(A) FULL(A, 1) FULL(A, 2) FULL(A, 3) FULL(A, 4) FULL(A, 5) FULL(A, 6) FULL(A, 7)
#define HALF_TILES(A) HALF(A, 1) HALF(A, 2) HALF(A, 3)
FILTERS(FULL_TILES)
OUTPUTS(HALF_TILES)
#define FULL_ROW(A)                                          \
    {full_##A##_1, full_##A##_2, full_##A##_3, full_##A##_4, \
     full_##A##_5, full_##A##_6, full_##A##_7},
#define HALF_ROW(A) {half_##A##_1, half_##A##_2, half_##A##_3},
static tile_function *const full_tiles[MANY_FILTERS][MAX_B] = {FILTERS(FULL_ROW)};
static tile_function *const half_tiles[MANY_OUTPUTS][3] = {OUTPUTS(HALF_ROW)};

/* The most columns of a tile of a rows. */
INLINE uint32_t most_columns(uint32_t a, uint32_t limit) {
    uint32_t most = (VREGS - 1) / (a + 1);
    return most < 1 ? 1 : most > limit ? limit : most;
}

/* Tiles of rows are the outermost loop: their weights come from the slowest memory. */
INLINE void product_any(const bool is_half, const many_product *p, const void *w) {
    const size_t taps = (size_t)p->taps[0] * p->taps[1] * p->taps[2];
    const uint8_t *from = w;
    for (uint32_t r = 0, a; r < p->rows; r += a) {
        a = many_tile(p->rows - r, p->most);
        const uint32_t most = most_columns(a, is_half ? 3 : MAX_B);
        for (uint32_t line = 0; line < p->lines; line++)
            for (uint32_t c = 0, b; c < p->columns; c += b) {
                b = many_tile(p->columns - c, most);
                tile_function *f = is_half ? half_tiles[a - 1][b - 1] : full_tiles[a - 1][b - 1];
                f(p, from, p->x + line * p->x_line + c * p->x_column,
                  p->y + r * p->y_row + line * p->y_line + c * p->y_column);
            }
        from += (1 + taps) * a * FDS__LANES * (is_half ? sizeof(uint16_t) : sizeof(float));
    }
}

static void product(const many_product *p, const float *w) { product_any(false, p, w); }
static void product_half(const many_product *p, const uint16_t *w) { product_any(true, p, w); }

const many_kernels FDS__ISA_TABLE(many_kernels) = {
    .widen = widen, .product = product, .product_half = product_half};
