/* SPDX-License-Identifier: Apache-2.0
 * The deep engine's own loops, written plainly for the compiler to turn into vectors. */
#include "deep/loops.h"
#include "base/isa.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* ---- elements: f32 or bf16 ---- */

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

INLINE float load(const bool is_bf16, const void *data, size_t i) {
    return is_bf16 ? from_bf16(((const uint16_t *)data)[i]) : ((const float *)data)[i];
}

INLINE void store(const bool is_bf16, void *data, size_t i, float value) {
    if (is_bf16)
        ((uint16_t *)data)[i] = to_bf16(value);
    else
        ((float *)data)[i] = value;
}

INLINE size_t size_of(const bool is_bf16) { return is_bf16 ? sizeof(uint16_t) : sizeof(float); }

/* ---- sums and relus ---- */

INLINE void add_relu(const bool is_bf16, void *restrict y, const void *restrict z, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float sum = load(is_bf16, y, i) + load(is_bf16, z, i);
        store(is_bf16, y, i, sum > 0 ? sum : 0);
    }
}

/* A test of b or y inside the loop would keep the compiler from using vectors. */
INLINE void gradient(const bool is_bf16, void *d, const void *a, const void *b, const void *y,
                     size_t count) {
    if (b && y)
        for (size_t i = 0; i < count; i++)
            store(is_bf16, d, i,
                  load(is_bf16, y, i) > 0 ? load(is_bf16, a, i) + load(is_bf16, b, i) : 0);
    else if (b)
        for (size_t i = 0; i < count; i++)
            store(is_bf16, d, i, load(is_bf16, a, i) + load(is_bf16, b, i));
    else
        for (size_t i = 0; i < count; i++)
            store(is_bf16, d, i, load(is_bf16, y, i) > 0 ? load(is_bf16, a, i) : 0);
}

/* ---- images and columns ---- */

/* Where a tap of an output sees the image, along one axis; false: padding. */
static inline bool sees(const deep_move *p, int axis, uint32_t out, uint32_t tap, uint32_t *in) {
    *in = out * p->stride + tap - p->padding[axis]; /* wraps around below 0 */
    return *in < p->in[axis];
}

/* Which output sees a pixel through a tap, along one axis; false: none. */
static inline bool seen_by(const deep_move *p, int axis, uint32_t in, uint32_t tap, uint32_t *out) {
    uint32_t at = in + p->padding[axis] - tap;
    *out = at / p->stride;
    return at <= in + p->padding[axis] && at % p->stride == 0 && *out < p->out[axis];
}

/* The bytes of an image's block if both sides have them in the same order, else 0. */
static inline size_t same_order(const deep_move *p, size_t element) {
    size_t width = (size_t)p->in[1] * p->chunk;
    bool is_same = p->kernel[0] * p->kernel[1] == 1 && p->in[0] == p->out[0] &&
                   p->in[1] == p->out[1] && p->from.column == p->chunk &&
                   p->to.column == p->chunk && p->from.row == width && p->to.row == width;
    return is_same ? p->in[0] * width * element : 0;
}

#define FOR(i, end) for (uint32_t i = 0; i < (end); i++)

/* The offset of a tap's chunk of an output among the columns. */
INLINE size_t column_of(const deep_move *p, uint32_t r, uint32_t c, uint32_t i, uint32_t j) {
    return r * p->to.row + c * p->to.column + (i * p->kernel[1] + j) * p->to.tap;
}

INLINE void gather_chunks(const bool is_bf16, const size_t chunk, const deep_move *p, const char *x,
                          char *y) {
    const size_t size = size_of(is_bf16);
    FOR(r, p->out[0])
    FOR(c, p->out[1])
    FOR(i, p->kernel[0])
    FOR(j, p->kernel[1]) {
        uint32_t row, column;
        bool is_row = sees(p, 0, r, i, &row), is_image = sees(p, 1, c, j, &column) && is_row;
        char *to = y + column_of(p, r, c, i, j) * size;
        if (is_image)
            memcpy(to, x + (row * p->from.row + column * p->from.column) * size, chunk * size);
        else
            memset(to, 0, chunk * size);
    }
}

INLINE void scatter_chunks(const bool is_bf16, const size_t chunk, const deep_move *p,
                           const char *dy, char *dx) {
    const size_t size = size_of(is_bf16);
    FOR(row, p->in[0])
    FOR(column, p->in[1]) {
        float sum[16] = {0};
        char *to = dx + (row * p->from.row + column * p->from.column) * size;
        FOR(i, p->kernel[0])
        FOR(j, p->kernel[1]) {
            uint32_t r, c;
            if (!seen_by(p, 0, row, i, &r) || !seen_by(p, 1, column, j, &c))
                continue;
            const char *from = dy + column_of(p, r, c, i, j) * size;
            for (size_t l = 0; l < chunk; l++)
                sum[l] += load(is_bf16, from, l);
        }
        for (size_t l = 0; l < chunk; l++)
            store(is_bf16, to, l, sum[l]);
    }
}

INLINE void move(const bool is_bf16, const bool is_scatter, const deep_move *p, const void *x,
                 void *y, size_t begin, size_t end) {
    const size_t size = size_of(is_bf16), same = same_order(p, size);
    const deep_strides *of_x = is_scatter ? &p->to : &p->from,
                       *of_y = is_scatter ? &p->from : &p->to;
    for (size_t k = begin; k < end; k++) {
        size_t image = k / p->blocks, block = k % p->blocks;
        const char *from = (const char *)x + (image * of_x->image + block * of_x->block) * size;
        char *to = (char *)y + (image * of_y->image + block * of_y->block) * size;
        if (same)
            memcpy(to, from, same);
        else if (is_scatter)
            p->chunk == 16 ? scatter_chunks(is_bf16, 16, p, from, to)
                           : scatter_chunks(is_bf16, 8, p, from, to);
        else
            p->chunk == 16 ? gather_chunks(is_bf16, 16, p, from, to)
                           : gather_chunks(is_bf16, 8, p, from, to);
    }
}

/* ---- Adam ---- */

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

/* ---- the table ---- */

#define LOOPS_OF(type, is_bf16)                                                            \
    static void add_relu_##type(void *y, const void *z, size_t count) {                    \
        add_relu(is_bf16, y, z, count);                                                    \
    }                                                                                      \
    static void gradient_##type(void *d, const void *a, const void *b, const void *y,      \
                                size_t count) {                                            \
        gradient(is_bf16, d, a, b, y, count);                                              \
    }                                                                                      \
    static void gather_##type(const deep_move *p, const void *x, void *y, size_t begin,    \
                              size_t end) {                                                \
        move(is_bf16, false, p, x, y, begin, end);                                         \
    }                                                                                      \
    static void scatter_##type(const deep_move *p, const void *dy, void *dx, size_t begin, \
                               size_t end) {                                               \
        move(is_bf16, true, p, dy, dx, begin, end);                                        \
    }
LOOPS_OF(f32, false)
LOOPS_OF(bf16, true)

const deep_loops FDS__ISA_TABLE(deep_loops) = {
    .f32 = {add_relu_f32, gradient_f32, gather_f32, scatter_f32},
    .bf16 = {add_relu_bf16, gradient_bf16, gather_bf16, scatter_bf16},
    .adam = adam,
};
