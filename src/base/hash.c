/* SPDX-License-Identifier: Apache-2.0
 * Checksums: XXH3 against accidental damage, SHA-256 for checksums that people compare. */
#include "base.h"

#include <nettle/sha2.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t fds_checksum(const void *data, size_t size) { return XXH3_64bits(data, size); }

void fds_sha256_hex(const void *data, size_t size, char hex[65]) {
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&context);
    sha256_update(&context, size, data);
    sha256_digest(&context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}
