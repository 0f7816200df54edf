/* SPDX-License-Identifier: Apache-2.0
 * The deep engine's own loops, written plainly for the compiler to turn into vectors. */
#include "net/deep_loops.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- bf16 ---- */

static inline float from_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    /* a NaN must stay one */
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

/* ---- the same loops for both ---- */

#define F32_IN(x) (x)
#define F32_OUT(x) (x)

#define LOOPS(type, LOAD, STORE, add_relu, gradient)                                           \
    static void add_relu(type *restrict y, const type *restrict z, size_t count) {             \
        for (size_t i = 0; i < count; i++) {                                                   \
            float sum = LOAD(y[i]) + LOAD(z[i]);                                               \
            y[i] = STORE(sum > 0 ? sum : 0);                                                   \
        }                                                                                      \
    }                                                                                          \
    static void gradient(type *d, const type *a, const type *b, const type *y, size_t count) { \
        if (b && y)                                                                            \
            for (size_t i = 0; i < count; i++)                                                 \
                d[i] = STORE(LOAD(y[i]) > 0 ? LOAD(a[i]) + LOAD(b[i]) : 0);                    \
        else if (b)                                                                            \
            for (size_t i = 0; i < count; i++)                                                 \
                d[i] = STORE(LOAD(a[i]) + LOAD(b[i]));                                         \
        else                                                                                   \
            for (size_t i = 0; i < count; i++)                                                 \
                d[i] = STORE(LOAD(y[i]) > 0 ? LOAD(a[i]) : 0);                                 \
    }

/* Where a tap of an output sees the image, along one axis; false: padding. */
static inline bool sees(const deep_move *p, int axis, uint32_t out, uint32_t tap, uint32_t *in) {
    *in = out * p->stride + tap - p->padding[axis]; /* wraps round below 0 */
    return *in < p->in[axis];
}

/* Which output sees a pixel through a tap, along one axis; false: none. */
static inline bool seen_by(const deep_move *p, int axis, uint32_t in, uint32_t tap, uint32_t *out) {
    uint32_t at = in + p->padding[axis] - tap;
    *out = at / p->stride;
    return at <= in + p->padding[axis] && at % p->stride == 0 && *out < p->out[axis];
}

/* Bytes of an image's block that lie in the same order on both sides, or 0. */
static inline size_t same_order(const deep_move *p, size_t element) {
    size_t width = (size_t)p->in[1] * p->chunk;
    bool is_same = p->kernel[0] * p->kernel[1] == 1 && p->in[0] == p->out[0] &&
                   p->in[1] == p->out[1] && p->from.column == p->chunk &&
                   p->to.column == p->chunk && p->from.row == width && p->to.row == width;
    return is_same ? p->in[0] * width * element : 0;
}

#define FOR(i, end) for (uint32_t i = 0; i < (end); i++)

#define MOVES(type, LOAD, STORE, gather, scatter)                                                  \
    static inline void gather##_chunks(const deep_move *p, const type *x, type *y, size_t chunk) { \
        FOR(r, p->out[0])                                                                          \
        FOR(c, p->out[1])                                                                          \
        FOR(i, p->kernel[0])                                                                       \
        FOR(j, p->kernel[1]) {                                                                     \
            uint32_t row, column;                                                                  \
            bool is_image = sees(p, 0, r, i, &row) & sees(p, 1, c, j, &column);                    \
            type *to = y + r * p->to.row + c * p->to.column + (i * p->kernel[1] + j) * p->to.tap;  \
            if (is_image)                                                                          \
                memcpy(to, x + row * p->from.row + column * p->from.column, chunk * sizeof(type)); \
            else                                                                                   \
                memset(to, 0, chunk * sizeof(type));                                               \
        }                                                                                          \
    }                                                                                              \
    static void gather(const deep_move *p, const type *x, type *y, size_t begin, size_t end) {     \
        size_t same = same_order(p, sizeof(type));                                                 \
        for (size_t k = begin; k < end; k++) {                                                     \
            size_t image = k / p->blocks, block = k % p->blocks;                                   \
            const type *x0 = x + image * p->from.image + block * p->from.block;                    \
            type *y0 = y + image * p->to.image + block * p->to.block;                              \
            if (same)                                                                              \
                memcpy(y0, x0, same);                                                              \
            else if (p->chunk == 16)                                                               \
                gather##_chunks(p, x0, y0, 16);                                                    \
            else                                                                                   \
                gather##_chunks(p, x0, y0, 8);                                                     \
        }                                                                                          \
    }                                                                                              \
    static inline void scatter##_chunks(const deep_move *p, const type *dy, type *dx,              \
                                        size_t chunk) {                                            \
        FOR(row, p->in[0])                                                                         \
        FOR(column, p->in[1]) {                                                                    \
            float sum[16] = {0};                                                                   \
            type *to = dx + row * p->from.row + column * p->from.column;                           \
            FOR(i, p->kernel[0])                                                                   \
            FOR(j, p->kernel[1]) {                                                                 \
                uint32_t r, c;                                                                     \
                if (!seen_by(p, 0, row, i, &r) || !seen_by(p, 1, column, j, &c))                   \
                    continue;                                                                      \
                const type *from =                                                                 \
                    dy + r * p->to.row + c * p->to.column + (i * p->kernel[1] + j) * p->to.tap;    \
                for (size_t l = 0; l < chunk; l++)                                                 \
                    sum[l] += LOAD(from[l]);                                                       \
            }                                                                                      \
            for (size_t l = 0; l < chunk; l++)                                                     \
                to[l] = STORE(sum[l]);                                                             \
        }                                                                                          \
    }                                                                                              \
    static void scatter(const deep_move *p, const type *dy, type *dx, size_t begin, size_t end) {  \
        size_t same = same_order(p, sizeof(type));                                                 \
        for (size_t k = begin; k < end; k++) {                                                     \
            size_t image = k / p->blocks, block = k % p->blocks;                                   \
            const type *dy0 = dy + image * p->to.image + block * p->to.block;                      \
            type *dx0 = dx + image * p->from.image + block * p->from.block;                        \
            if (same)                                                                              \
                memcpy(dx0, dy0, same);                                                            \
            else if (p->chunk == 16)                                                               \
                scatter##_chunks(p, dy0, dx0, 16);                                                 \
            else                                                                                   \
                scatter##_chunks(p, dy0, dx0, 8);                                                  \
        }                                                                                          \
    }

LOOPS(float, F32_IN, F32_OUT, add_relu, gradient)
LOOPS(uint16_t, from_bf16, to_bf16, add_relu_bf16, gradient_bf16)
MOVES(float, F32_IN, F32_OUT, gather, scatter)
MOVES(uint16_t, from_bf16, to_bf16, gather_bf16, scatter_bf16)

static bool adam(const deep_adam *p, float *restrict w, const float *restrict gradients,
                 float *restrict m, float *restrict v, size_t count) {
    const deep_adam a = *p;
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        float g = gradients[i] + a.decay * w[i];
        m[i] = a.beta1 * m[i] + a.rest1 * g;
        v[i] = a.beta2 * v[i] + a.rest2 * g * g;
        w[i] = a.keep * w[i] - a.rate * m[i] / (a.root * sqrtf(v[i]) + a.epsilon);
        wrong |= !(fabsf(w[i]) <= FLT_MAX);
    }
    return !wrong;
}

#if defined FDS_AVX512
#define TABLE deep_loops_avx512
#define NAME "avx512"
#elif defined FDS_AVX2
#define TABLE deep_loops_avx2
#define NAME "avx2"
#else
#define TABLE deep_loops_generic
#define NAME "generic"
#endif

const deep_loops TABLE = {
    .name = NAME,
    .add_relu = add_relu,
    .add_relu_bf16 = add_relu_bf16,
    .gradient = gradient,
    .gradient_bf16 = gradient_bf16,
    .gather = gather,
    .gather_bf16 = gather_bf16,
    .scatter = scatter,
    .scatter_bf16 = scatter_bf16,
    .adam = adam,
};
