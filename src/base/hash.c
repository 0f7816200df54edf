/* SPDX-License-Identifier: Apache-2.0
 * Checksums: XXH3 against accidental damage, SHA-256 for checksums that people compare
 * and for logs that nobody can change. */
#include "base/hash_lanes.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

uint64_t fds_checksum(const void *data, size_t size) { return XXH3_64bits(data, size); }

void fds__sha256(const fds__bytes *parts, size_t count, uint8_t digest[32]) {
    struct sha256_ctx context;
    sha256_init(&context);
    for (size_t i = 0; i < count; i++)
        if (parts[i].size)
            sha256_update(&context, parts[i].size, parts[i].data);
    sha256_digest(&context, SHA256_DIGEST_SIZE, digest);
}

/* Instructions for SHA-256, which nettle uses: faster than eight lanes, slower than sixteen. Asked
 * once, because a virtual machine's host answers it. */
static bool has_sha(void) {
#ifdef __x86_64__
    static _Atomic int known = -1;
    if (known < 0) {
        unsigned a, b = 0, c, d;
        known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 29 & 1;
    }
    return known;
#else
    return false;
#endif
}

static const fds__sha256_lanes *choose_lanes(void) {
    fds__isa_set set;
    if (fds__isa_choose(&set, NULL) != FDS_OK || (set == FDS__ISA_AVX2 && has_sha()))
        set = FDS__ISA_GENERIC;
    return FDS__ISA_PICK(set, fds__sha256);
}

void fds__sha256_each(const fds__bytes *messages, size_t count, uint8_t (*digests)[32]) {
    const fds__sha256_lanes *many = choose_lanes();
    size_t least = MAX(many->lanes / 4, (size_t)2); /* fewer are faster one by one */
    for (size_t i = 0, n; i < count; i += n) {
        n = MIN(count - i, MAX(many->lanes, (size_t)1));
        if (many->lanes && n >= least)
            many->digest(messages + i, n, digests + i);
        else
            for (size_t k = i; k < i + n; k++)
                fds__sha256(&messages[k], 1, digests[k]);
    }
}

void fds__hex_write(const uint8_t digest[32], char hex[65]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = 0;
}

void fds_sha256_hex(const void *data, size_t size, char hex[65]) {
    uint8_t digest[SHA256_DIGEST_SIZE];
    fds__sha256(&(fds__bytes){data, size}, 1, digest);
    fds__hex_write(digest, hex);
}

/* Gives a file to take(state, bytes, data), piece by piece. */
static fds_status read_open(fds__file *file, void (*take)(void *, size_t, const uint8_t *),
                            void *state, fds_error *err) {
    enum { PIECE = 1 << 18 };
    uint64_t size = 0;
    OWNED uint8_t *piece = NULL;
    TRY(fds__file_size(file, &size, err));
    TRY(NEW(piece, PIECE, err));
    for (uint64_t at = 0; at < size; at += PIECE) {
        size_t count = (size_t)MIN(size - at, (uint64_t)PIECE);
        TRY(fds__file_read_at(file, piece, count, at, err));
        take(state, count, piece);
    }
    return FDS_OK;
}

static fds_status read_pieces(const char *path, void (*take)(void *, size_t, const uint8_t *),
                              void *state, fds_error *err) {
    fds__file file;
    TRY(fds__file_open(&file, path, FDS__ACCESS_READ, err));
    fds_status status = read_open(&file, take, state, err);
    fds__file_close(&file);
    return status;
}

static void take_sha256(void *state, size_t size, const uint8_t *data) {
    sha256_update(state, size, data);
}

fds_status fds__file_sha256(const char *path, char hex[65], fds_error *err) {
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&context);
    TRY(read_pieces(path, take_sha256, &context, err));
    sha256_digest(&context, SHA256_DIGEST_SIZE, digest);
    fds__hex_write(digest, hex);
    return FDS_OK;
}

static void take_checksum(void *state, size_t size, const uint8_t *data) {
    XXH3_64bits_update(state, data, size);
}

fds_status fds__file_checksum(const char *path, char hex[65], fds_error *err) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    TRY(read_pieces(path, take_checksum, &state, err));
    snprintf(hex, 65, "%016llx", (unsigned long long)XXH3_64bits_digest(&state));
    return FDS_OK;
}

bool fds__hex_read(const char *hex, uint8_t bytes[32]) {
    static const char digits[] = "0123456789abcdef";
    if (!hex || strlen(hex) != 64 || strspn(hex, digits) != 64)
        return false;
    for (size_t i = 0; i < 32; i++)
        bytes[i] = (uint8_t)((strchr(digits, hex[2 * i]) - digits) << 4 |
                             (strchr(digits, hex[2 * i + 1]) - digits));
    return true;
}
