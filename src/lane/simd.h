/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector operations that the kernels need, for the instruction set of this compilation
 * (FDS_AVX512, FDS_AVX2, or neither). VW is the width in floats, VREGS the number of registers.
 * Every operation rounds once, as IEEE 754 says, so all widths give the same bits.
 */
#ifndef FDS_SIMD_H
#define FDS_SIMD_H

#include <math.h>

#if defined FDS_AVX512 || defined FDS_AVX2
#include <immintrin.h>

#ifdef FDS_AVX512
#define VW 16
#define VREGS 32
#define X86(name) _mm512_##name
typedef __m512 vf;
typedef __m512d vf_pairs;
/* Keeps a loaded value in its register: else the compiler loads it again for every use. */
#define v_pin(a) __asm__("" : "+v"(a))
#define V_WHERE(a, how, b, c) _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, how), c)
#else
#define VW 8
#define VREGS 16
#define X86(name) _mm256_##name
typedef __m256 vf;
typedef __m256d vf_pairs;
#define v_pin(a) __asm__("" : "+x"(a))
#define V_WHERE(a, how, b, c) _mm256_and_ps(_mm256_cmp_ps(a, b, how), c)
#endif

static inline vf v_load(const float *p) { return X86(loadu_ps)(p); }
static inline void v_store(float *p, vf a) { X86(storeu_ps)(p, a); }
static inline vf v_set1(float a) { return X86(set1_ps)(a); }
static inline vf v_fma(vf a, vf b, vf c) { return X86(fmadd_ps)(a, b, c); }
static inline vf v_add(vf a, vf b) { return X86(add_ps)(a, b); }
static inline vf v_sub(vf a, vf b) { return X86(sub_ps)(a, b); }
static inline vf v_mul(vf a, vf b) { return X86(mul_ps)(a, b); }
static inline vf v_max(vf a, vf b) { return X86(max_ps)(a, b); } /* a > b ? a : b */
/* a == b ? c : 0, a == b ? 0 : c, and a > 0 ? c : 0 */
static inline vf v_if_equal(vf a, vf b, vf c) { return V_WHERE(a, _CMP_EQ_OQ, b, c); }
static inline vf v_unless_equal(vf a, vf b, vf c) { return V_WHERE(a, _CMP_NEQ_UQ, b, c); }
static inline vf v_if_positive(vf a, vf c) { return V_WHERE(a, _CMP_GT_OQ, X86(setzero_ps)(), c); }

/* r[i][j] = r[j][i] */
static inline void v_transpose(vf r[VW]) {
    vf t[VW];
    for (int i = 0; i < VW; i += 2) {
        t[i] = X86(unpacklo_ps)(r[i], r[i + 1]);
        t[i + 1] = X86(unpackhi_ps)(r[i], r[i + 1]);
    }
    for (int i = 0; i < VW; i += 4)
        for (int j = 0; j < 2; j++) {
            vf_pairs a = X86(castps_pd)(t[i + j]), b = X86(castps_pd)(t[i + j + 2]);
            r[i + 2 * j] = X86(castpd_ps)(X86(unpacklo_pd)(a, b));
            r[i + 2 * j + 1] = X86(castpd_ps)(X86(unpackhi_pd)(a, b));
        }
#ifdef FDS_AVX512
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++) {
            t[8 * j + i] = _mm512_shuffle_f32x4(r[8 * j + i], r[8 * j + i + 4], 0x88);
            t[8 * j + i + 4] = _mm512_shuffle_f32x4(r[8 * j + i], r[8 * j + i + 4], 0xdd);
        }
    for (int i = 0; i < 8; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    }
#else
    for (int i = 0; i < 4; i++) {
        t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
    for (int i = 0; i < VW; i++)
        r[i] = t[i];
#endif
}

#else

#define VW 4
#define VREGS 8
typedef struct {
    float f[VW];
} vf;

#define v_pin(a) (void)(a)
static inline vf v_load(const float *p) { return (vf){{p[0], p[1], p[2], p[3]}}; }
static inline void v_store(float *p, vf a) {
    for (int i = 0; i < VW; i++)
        p[i] = a.f[i];
}
static inline vf v_set1(float a) { return (vf){{a, a, a, a}}; }
#define V_EACH(expression)       \
    vf r;                        \
    for (int i = 0; i < VW; i++) \
        r.f[i] = (expression);   \
    return r
/* fmaf rounds once everywhere, and is fast where the processor has such an instruction */
static inline vf v_fma(vf a, vf b, vf c) { V_EACH(fmaf(a.f[i], b.f[i], c.f[i])); }
static inline vf v_add(vf a, vf b) { V_EACH(a.f[i] + b.f[i]); }
static inline vf v_sub(vf a, vf b) { V_EACH(a.f[i] - b.f[i]); }
static inline vf v_mul(vf a, vf b) { V_EACH(a.f[i] * b.f[i]); }
static inline vf v_max(vf a, vf b) { V_EACH(a.f[i] > b.f[i] ? a.f[i] : b.f[i]); }
static inline vf v_if_equal(vf a, vf b, vf c) { V_EACH(a.f[i] == b.f[i] ? c.f[i] : 0.0f); }
static inline vf v_unless_equal(vf a, vf b, vf c) { V_EACH(a.f[i] == b.f[i] ? 0.0f : c.f[i]); }
static inline vf v_if_positive(vf a, vf c) { V_EACH(a.f[i] > 0.0f ? c.f[i] : 0.0f); }
static inline void v_transpose(vf r[VW]) {
    for (int i = 0; i < VW; i++)
        for (int j = 0; j < i; j++) {
            float other = r[i].f[j];
            r[i].f[j] = r[j].f[i];
            r[j].f[i] = other;
        }
}

#endif

/* The operations that pooling needs, for four floats and for one. */
typedef float v4 __attribute__((vector_size(16)));
typedef int v4_bits __attribute__((vector_size(16)));

static inline v4 v4_load(const float *p) { return (v4){p[0], p[1], p[2], p[3]}; }
static inline void v4_store(float *p, v4 a) {
    for (int i = 0; i < 4; i++)
        p[i] = a[i];
}
static inline v4 v4_set1(float a) { return (v4){a, a, a, a}; }
static inline v4 v4_max(v4 a, v4 b) {
    v4_bits above = a > b;
    return (v4)((above & (v4_bits)a) | (~above & (v4_bits)b));
}
static inline v4 v4_if_equal(v4 a, v4 b, v4 c) { return (v4)((a == b) & (v4_bits)c); }
static inline v4 v4_unless_equal(v4 a, v4 b, v4 c) { return (v4)((a != b) & (v4_bits)c); }
static inline v4 v4_if_positive(v4 a, v4 c) { return (v4)((a > v4_set1(0.0f)) & (v4_bits)c); }

typedef float v1;

static inline v1 v1_load(const float *p) { return *p; }
static inline void v1_store(float *p, v1 a) { *p = a; }
static inline v1 v1_set1(float a) { return a; }
static inline v1 v1_max(v1 a, v1 b) { return a > b ? a : b; }
static inline v1 v1_if_equal(v1 a, v1 b, v1 c) { return a == b ? c : 0.0f; }
static inline v1 v1_unless_equal(v1 a, v1 b, v1 c) { return a == b ? 0.0f : c; }
static inline v1 v1_if_positive(v1 a, v1 c) { return a > 0.0f ? c : 0.0f; }

#endif
