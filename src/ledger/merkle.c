/* SPDX-License-Identifier: Apache-2.0
 *
 * The Merkle trees of RFC 6962, section 2.1, with SHA-256.
 *
 *   MTH({})      = SHA-256()
 *   MTH({d})     = SHA-256(0x00 | d)
 *   MTH(D[n])    = SHA-256(0x01 | MTH(D[0:k]) | MTH(D[k:n])), k the greatest power of two below n
 *
 * The first byte keeps leaves and nodes apart: without it, the two children of a node would also be
 * the content of a leaf with the same hash. The shape of a tree follows from its size alone, so a
 * proof is a list of hashes without directions. The verifiers compute the directions from the
 * numbers, and accept no proof that is longer or shorter than the numbers demand.
 */
#include "ledger/log.h"

enum {
    CHUNK = 64, /* leaves whose tree is computed row by row; a power of two */
    PEAKS = 65, /* complete subtrees side by side, of 2^64 leaves at most, and one more */
};

const char log_leaf_mark = 0;

log_hash log_leaf(const void *data, size_t size) {
    log_hash hash;
    fds__sha256((fds__bytes[]){{&log_leaf_mark, 1}, {data, size}}, 2, hash.bytes);
    return hash;
}

void log_marked(const fds__bytes *contents, size_t count, log_hash *out) {
    fds__sha256_each(contents, count, (uint8_t(*)[sizeof *out])out);
}

typedef struct {
    uint8_t bytes[1 + 2 * sizeof(log_hash)];
} node;

static void put_node(const log_hash *left, const log_hash *right, node *out) {
    out->bytes[0] = 1;
    memcpy(out->bytes + 1, left->bytes, sizeof *left);
    memcpy(out->bytes + 1 + sizeof *left, right->bytes, sizeof *right);
}

log_hash log_node(const log_hash *left, const log_hash *right) {
    node input;
    log_hash hash;
    put_node(left, right, &input);
    fds__sha256(&(fds__bytes){input.bytes, sizeof input.bytes}, 1, hash.bytes);
    return hash;
}

bool log_equal(const log_hash *a, const log_hash *b) { return memcmp(a, b, sizeof *a) == 0; }

uint64_t log_split(uint64_t count) {
    assert(count > 1);
    return UINT64_C(1) << (63 - __builtin_clzll(count - 1));
}

void log_reverse(log_hash *hashes, size_t count) {
    for (size_t i = 0; i < count / 2; i++) {
        log_hash kept = hashes[i];
        hashes[i] = hashes[count - 1 - i];
        hashes[count - 1 - i] = kept;
    }
}

/* ---- trees in memory ---- */

/* Of 1 to CHUNK leaves, row by row: nodes of one row do not need each other. The last hash of a row
 * without a partner stands in the next row as it is. */
static log_hash chunk_root(const log_hash *leaves, size_t count) {
    log_hash row[CHUNK];
    node inputs[CHUNK / 2];
    fds__bytes messages[CHUNK / 2];
    assert(count > 0 && count <= CHUNK);
    memcpy(row, leaves, count * sizeof *row);
    for (; count > 1; count = (count + 1) / 2) {
        for (size_t i = 0; i < count / 2; i++) {
            put_node(&row[2 * i], &row[2 * i + 1], &inputs[i]);
            messages[i] = (fds__bytes){inputs[i].bytes, sizeof inputs[i].bytes};
        }
        log_hash alone = row[count - 1];
        log_marked(messages, count / 2, row);
        if (count % 2)
            row[count / 2] = alone;
    }
    return row[0];
}

log_hash log_root(const log_hash *leaves, size_t count) {
    log_hash peaks[PEAKS];
    size_t used = 0;
    if (count == 0) {
        fds__sha256(NULL, 0, peaks[0].bytes);
        return peaks[0];
    }
    /* after i whole chunks there is one peak for each bit of i; two of equal size become one */
    for (size_t i = 0; i < count / CHUNK; i++) {
        peaks[used++] = chunk_root(leaves + i * CHUNK, CHUNK);
        for (size_t left = i + 1; left % 2 == 0; left /= 2, used--)
            peaks[used - 2] = log_node(&peaks[used - 2], &peaks[used - 1]);
    }
    if (count % CHUNK)
        peaks[used++] = chunk_root(leaves + count / CHUNK * CHUNK, count % CHUNK);
    for (; used > 1; used--)
        peaks[used - 2] = log_node(&peaks[used - 2], &peaks[used - 1]);
    return peaks[0];
}

size_t log_path(const log_hash *leaves, size_t count, size_t i, log_hash path[LOG_PATH]) {
    size_t from = 0, to = count, length = 0;
    assert(i < count);
    while (to - from > 1) {
        size_t middle = from + (size_t)log_split(to - from);
        bool is_left = i < middle;
        path[length++] = is_left ? log_root(leaves + middle, to - middle)
                                 : log_root(leaves + from, middle - from);
        *(is_left ? &to : &from) = middle;
    }
    log_reverse(path, length);
    return length;
}

/* ---- verifiers: RFC 9162, sections 2.1.3.2 and 2.1.4.2, for the same trees ---- */

/* A node of a tree and the last node of its row, as numbers in the row; climbing halves both. */
typedef struct climb {
    uint64_t node, last;
} climb;

static void climb_up(climb *at) {
    at->node /= 2;
    at->last /= 2;
}

/* Whether the next hash stands to the left. A node that is the last of its row and has an even
 * number has no sibling there; it climbs until it is a right child. */
static bool climb_is_right(climb *at) {
    if (at->node % 2 == 0 && at->node != at->last)
        return false;
    while (at->node % 2 == 0 && at->node != 0)
        climb_up(at);
    return true;
}

bool log_includes(const log_hash *leaf, uint64_t i, uint64_t size, const log_hash *path,
                  size_t length, const log_hash *root) {
    if (i >= size || size > LOG_SIZE_MAX)
        return false;
    climb at = {i, size - 1};
    log_hash hash = *leaf;
    for (size_t p = 0; p < length; p++) {
        if (at.last == 0)
            return false; /* the root is reached already */
        hash = climb_is_right(&at) ? log_node(&path[p], &hash) : log_node(&hash, &path[p]);
        climb_up(&at);
    }
    return at.last == 0 && log_equal(&hash, root);
}

bool log_extends(uint64_t old_size, const log_hash *old_root, uint64_t size, const log_hash *root,
                 const log_hash *proof, size_t length) {
    if (old_size > size || size > LOG_SIZE_MAX)
        return false;
    if (old_size == 0 || old_size == size) {
        log_hash same = old_size ? *root : log_root(NULL, 0);
        return length == 0 && log_equal(old_root, &same);
    }
    /* the proof begins with the greatest complete subtree that ends where the old tree ends; if
     * that is the whole old tree, its root is known */
    bool is_whole = (old_size & (old_size - 1)) == 0;
    if (!is_whole && length == 0)
        return false;
    climb at = {old_size - 1, size - 1};
    while (at.node % 2)
        climb_up(&at);
    log_hash before = is_whole ? *old_root : proof[0], now = before;
    for (size_t p = is_whole ? 0 : 1; p < length; p++) {
        if (at.last == 0)
            return false;
        if (climb_is_right(&at)) {
            before = log_node(&proof[p], &before);
            now = log_node(&proof[p], &now);
        } else
            now = log_node(&now, &proof[p]);
        climb_up(&at);
    }
    return at.last == 0 && log_equal(&before, old_root) && log_equal(&now, root);
}
