/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the log compare with: the recursive definitions of RFC 6962, section 2.1, as
 * they stand there, on SHA-256 from libsodium; and a store of tiles in memory. */
#ifndef FDS_TEST_LEDGER_REFERENCE_H
#define FDS_TEST_LEDGER_REFERENCE_H

#include "../base/faults.h"

#include "ledger/log.h"

#include <sodium.h>

/* ---- leaves ---- */

/* Hash number i of a log, unlike any other. */
static inline log_hash some_leaf(uint64_t i) {
    char text[32];
    return log_leaf(text, (size_t)snprintf(text, sizeof text, "entry %llu", (unsigned long long)i));
}

static inline log_hash *some_leaves(size_t count) {
    log_hash *leaves = need(count, sizeof *leaves);
    for (size_t i = 0; i < count; i++)
        leaves[i] = some_leaf(i);
    return leaves;
}

static inline void expect_same(const log_hash *a, const log_hash *b) {
    assert_memory_equal(a->bytes, b->bytes, sizeof *a);
}

static inline void flip_bit(void *data, size_t bit) {
    ((uint8_t *)data)[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* ---- the definitions ---- */

enum { REFERENCE = 300 }; /* leaves; number i is some_leaf(i) */

static inline size_t reference_split(size_t n) {
    size_t k = 1;
    while (2 * k < n)
        k *= 2;
    return k;
}

/* MTH(D[from:to]), each computed once. */
static inline log_hash reference_root(size_t from, size_t to) {
    static log_hash known[REFERENCE + 1][REFERENCE + 1];
    static bool is_known[REFERENCE + 1][REFERENCE + 1];
    uint8_t input[65] = {1};
    assert_true(from <= to && to <= REFERENCE);
    if (is_known[from][to])
        return known[from][to];
    log_hash *out = &known[from][to];
    if (from == to)
        crypto_hash_sha256(out->bytes, (const uint8_t *)"", 0);
    else if (to - from == 1)
        *out = some_leaf(from);
    else {
        size_t k = reference_split(to - from);
        log_hash left = reference_root(from, from + k), right = reference_root(from + k, to);
        memcpy(input + 1, left.bytes, 32);
        memcpy(input + 33, right.bytes, 32);
        crypto_hash_sha256(out->bytes, input, sizeof input);
    }
    is_known[from][to] = true;
    return *out;
}

/* PATH(m, D[from:to]) */
static inline size_t reference_path(size_t m, size_t from, size_t to, log_hash *out) {
    if (to - from == 1)
        return 0;
    size_t k = reference_split(to - from);
    bool is_left = m < k;
    size_t length =
        is_left ? reference_path(m, from, from + k, out) : reference_path(m - k, from + k, to, out);
    out[length] = is_left ? reference_root(from + k, to) : reference_root(from, from + k);
    return length + 1;
}

/* SUBPROOF(m, D[from:to], b) */
static inline size_t reference_subproof(size_t m, size_t from, size_t to, bool b, log_hash *out) {
    if (m == to - from) {
        if (!b)
            out[0] = reference_root(from, to);
        return b ? 0 : 1;
    }
    size_t k = reference_split(to - from);
    bool is_left = m <= k;
    size_t length = is_left ? reference_subproof(m, from, from + k, b, out)
                            : reference_subproof(m - k, from + k, to, false, out);
    out[length] = is_left ? reference_root(from + k, to) : reference_root(from, from + k);
    return length + 1;
}

/* ---- a store in memory ---- */

enum { STORE_LEVELS = 3, STORE_TILES = 260 };

typedef struct memory_store {
    size_t width[STORE_LEVELS][STORE_TILES];
    log_hash *tiles[STORE_LEVELS][STORE_TILES];
    uint64_t reads, writes;
    uint64_t fail_read, fail_write; /* the number of the call that fails, from 1 */
} memory_store;

static inline fds_status memory_read(void *context, unsigned level, uint64_t n, size_t width,
                                     log_hash *hashes, fds_error *err) {
    memory_store *store = context;
    assert_true(width >= 1 && width <= LOG_TILE);
    if (++store->reads == store->fail_read)
        return fds__fail(err, FDS_ERR_IO, "reading fails");
    if (level >= STORE_LEVELS || n >= STORE_TILES || store->width[level][n] < width)
        return fds__fail(err, FDS_ERR_NOT_FOUND, "no such tile");
    memcpy(hashes, store->tiles[level][n], width * sizeof *hashes);
    return FDS_OK;
}

static inline fds_status memory_write(void *context, unsigned level, uint64_t n, size_t width,
                                      const log_hash *hashes, fds_error *err) {
    memory_store *store = context;
    assert_true(width >= 1 && width <= LOG_TILE && level < STORE_LEVELS && n < STORE_TILES);
    if (++store->writes == store->fail_write)
        return fds__fail(err, FDS_ERR_IO, "writing fails");
    if (!store->tiles[level][n])
        store->tiles[level][n] = need(LOG_TILE, sizeof *hashes);
    memset(store->tiles[level][n], 0, LOG_TILE * sizeof *hashes);
    memcpy(store->tiles[level][n], hashes, width * sizeof *hashes);
    store->width[level][n] = width;
    return FDS_OK;
}

static inline log_store memory_open(memory_store *memory) {
    return (log_store){memory, memory_read, memory_write};
}

static inline void memory_clear(memory_store *memory) {
    for (size_t i = 0; i < (size_t)STORE_LEVELS * STORE_TILES; i++)
        free(memory->tiles[i / STORE_TILES][i % STORE_TILES]);
    *memory = (memory_store){.reads = 0};
}

#endif
