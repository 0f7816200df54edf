/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 of many messages, one in each lane of the vectors: hash.c asks, hash_lanes.c computes. */
#ifndef FDS_HASH_LANES_H
#define FDS_HASH_LANES_H

#include "base/isa.h"

typedef struct fds__sha256_lanes {
    size_t lanes; /* 0: no vectors here */
    /* of at most so many messages */
    void (*digest)(const fds__bytes *messages, size_t count, uint8_t (*digests)[32]);
} fds__sha256_lanes;

extern const fds__sha256_lanes fds__sha256_generic;
#ifdef __x86_64__
extern const fds__sha256_lanes fds__sha256_avx2, fds__sha256_avx512;
#endif

#endif
