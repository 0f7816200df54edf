/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (FIPS 180-4) of as many messages side by side as a vector has lanes; compiled once for each
 * instruction set. One message alone cannot use vectors, because each round needs the one before. */
#include "base/hash_lanes.h"

#include <string.h>

#if defined FDS_AVX512 || defined FDS_AVX2
#include <immintrin.h>

enum { BLOCK = 64, WORDS = BLOCK / 4, ROUNDS = 64 };

#ifdef FDS_AVX512
enum { LANES = 16 };
typedef __m512i vu;
#define V(name) _mm512_##name
#define V_ROTATE(a, n) _mm512_ror_epi32(a, n)
/* bitwise: the table of the function of three bits */
static inline vu v_xor3(vu a, vu b, vu c) { return _mm512_ternarylogic_epi32(a, b, c, 0x96); }
static inline vu v_choose(vu a, vu b, vu c) { return _mm512_ternarylogic_epi32(a, b, c, 0xca); }
static inline vu v_majority(vu a, vu b, vu c) { return _mm512_ternarylogic_epi32(a, b, c, 0xe8); }
#else
enum { LANES = 8 };
typedef __m256i vu;
#define V(name) _mm256_##name
#define V_ROTATE(a, n) _mm256_or_si256(_mm256_srli_epi32(a, n), _mm256_slli_epi32(a, 32 - (n)))
static inline vu v_xor(vu a, vu b) { return _mm256_xor_si256(a, b); }
static inline vu v_and(vu a, vu b) { return _mm256_and_si256(a, b); }
static inline vu v_xor3(vu a, vu b, vu c) { return v_xor(a, v_xor(b, c)); }
static inline vu v_choose(vu a, vu b, vu c) { return v_xor(c, v_and(a, v_xor(b, c))); }
static inline vu v_majority(vu a, vu b, vu c) { return v_xor(v_and(a, b), v_and(c, v_xor(a, b))); }
#endif

static inline vu v_add(vu a, vu b) { return V(add_epi32)(a, b); }
static inline vu v_set(uint32_t a) { return V(set1_epi32)((int)a); }

static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/* One block of each lane. w[t] is word t of all of them. */
static void compress(vu state[8], vu w[WORDS]) {
    vu a = state[0], b = state[1], c = state[2], d = state[3];
    vu e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < ROUNDS; t++) {
        if (t >= WORDS) {
            vu two = w[(t + 14) % WORDS], fifteen = w[(t + 1) % WORDS];
            vu s1 = v_xor3(V_ROTATE(two, 17), V_ROTATE(two, 19), V(srli_epi32)(two, 10));
            vu s0 = v_xor3(V_ROTATE(fifteen, 7), V_ROTATE(fifteen, 18), V(srli_epi32)(fifteen, 3));
            w[t % WORDS] = v_add(v_add(w[t % WORDS], s0), v_add(w[(t + 9) % WORDS], s1));
        }
        vu sum1 = v_xor3(V_ROTATE(e, 6), V_ROTATE(e, 11), V_ROTATE(e, 25));
        vu sum0 = v_xor3(V_ROTATE(a, 2), V_ROTATE(a, 13), V_ROTATE(a, 22));
        vu t1 = v_add(v_add(h, v_set(constants[t])),
                      v_add(v_add(sum1, v_choose(e, f, g)), w[t % WORDS]));
        vu t2 = v_add(sum0, v_majority(a, b, c));
        h = g, g = f, f = e, e = v_add(d, t1);
        d = c, c = b, b = a, a = v_add(t1, t2);
    }
    const vu out[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] = v_add(state[i], out[i]);
}

/* A message: whole blocks where it lies, then one or two with what is left, 0x80, zeros, and its
 * length in bits. */
typedef struct {
    const uint8_t *data;
    size_t whole, blocks;
    uint8_t tail[2 * BLOCK];
} message;

static void pad(message *m, fds__bytes bytes) {
    size_t rest = bytes.size % BLOCK;
    uint64_t bits = (uint64_t)bytes.size * 8;
    m->data = bytes.data;
    m->whole = bytes.size / BLOCK;
    m->blocks = m->whole + (rest + 9 > BLOCK ? 2 : 1);
    uint8_t *end = m->tail + (m->blocks - m->whole) * BLOCK;
    memset(m->tail, 0, sizeof m->tail);
    if (rest)
        memcpy(m->tail, m->data + m->whole * BLOCK, rest);
    m->tail[rest] = 0x80;
    for (int i = 1; i <= 8; i++, bits >>= 8)
        end[-i] = (uint8_t)bits;
}

static void digest(const fds__bytes *messages, size_t count, uint8_t (*digests)[32]) {
    message m[LANES];
    uint32_t words[WORDS][LANES] __attribute__((aligned(64))) = {{0}};
    vu state[8], w[WORDS];
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        pad(&m[i], messages[i]);
        most = MAX(most, m[i].blocks);
    }
    for (int i = 0; i < 8; i++)
        state[i] = v_set(first[i]);
    for (size_t b = 0; b < most; b++) {
        for (size_t i = 0; i < count; i++) {
            if (b >= m[i].blocks)
                continue; /* it has its digest: what its lane computes is not used */
            const uint8_t *block =
                b < m[i].whole ? m[i].data + b * BLOCK : m[i].tail + (b - m[i].whole) * BLOCK;
            for (size_t t = 0; t < WORDS; t++) {
                uint32_t word;
                memcpy(&word, block + 4 * t, sizeof word);
                words[t][i] = __builtin_bswap32(word);
            }
        }
        memcpy(w, words, sizeof w);
        compress(state, w);
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; b + 1 == m[i].blocks && k < 8; k++) {
                uint32_t all[LANES];
                memcpy(all, &state[k], sizeof all);
                uint32_t word = __builtin_bswap32(all[i]);
                memcpy(digests[i] + 4 * k, &word, sizeof word);
            }
    }
}

const fds__sha256_lanes FDS__ISA_TABLE(fds__sha256) = {LANES, digest};

#else

const fds__sha256_lanes FDS__ISA_TABLE(fds__sha256) = {0, NULL};

#endif
