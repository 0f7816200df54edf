/* SPDX-License-Identifier: Apache-2.0
 * Checksums: XXH3 against accidental damage, SHA-256 for checksums that people compare
 * and for logs that nobody can change. */
#include "base.h"

#include <nettle/sha2.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t fds_checksum(const void *data, size_t size) { return XXH3_64bits(data, size); }

void fds__sha256(const fds__bytes *parts, size_t count, uint8_t digest[32]) {
    struct sha256_ctx context;
    sha256_init(&context);
    for (size_t i = 0; i < count; i++)
        if (parts[i].size)
            sha256_update(&context, parts[i].size, parts[i].data);
    sha256_digest(&context, SHA256_DIGEST_SIZE, digest);
}

void fds_sha256_hex(const void *data, size_t size, char hex[65]) {
    uint8_t digest[SHA256_DIGEST_SIZE];
    fds__sha256(&(fds__bytes){data, size}, 1, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
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
