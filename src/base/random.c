/* SPDX-License-Identifier: Apache-2.0
 * Random numbers on Random123's Philox 4x64-10: key = (seed, purpose), counter = (a, b, 0, block).
 * Not for secrets, which come from the system (fds__random_secret). */
#include "base.h"

#include <Random123/philox.h>
#include <errno.h>
#include <math.h>
#include <sys/random.h>

fds_rng fds_rng_make(uint64_t seed, uint64_t purpose, uint64_t a, uint64_t b) {
    return (fds_rng){.key = {seed, purpose}, .counter = {a, b, 0, 0}, .used = 4};
}

uint64_t fds_rng_u64(fds_rng *rng) {
    if (rng->used == 4) {
        philox4x64_ctr_t counter = {
            {rng->counter[0], rng->counter[1], rng->counter[2], rng->counter[3]++}};
        philox4x64_key_t key = {{rng->key[0], rng->key[1]}};
        philox4x64_ctr_t block = philox4x64(counter, key);
        for (int i = 0; i < 4; i++)
            rng->block[i] = block.v[i];
        rng->used = 0;
    }
    return rng->block[rng->used++];
}

double fds_rng_unit(fds_rng *rng) { return (double)(fds_rng_u64(rng) >> 11) * 0x1p-53; }

/* Lemire's multiply-and-reject: no bias for any bound. */
uint64_t fds_rng_below(fds_rng *rng, uint64_t bound) {
    if (bound < 2)
        return 0;
    __extension__ typedef unsigned __int128 u128;
    u128 product = (u128)fds_rng_u64(rng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = -bound % bound;
        while ((uint64_t)product < threshold)
            product = (u128)fds_rng_u64(rng) * bound;
    }
    return (uint64_t)(product >> 64);
}

/* Leva's ratio of uniforms. The logarithm only decides rare doubtful cases, so the value is the
 * same on every machine, whatever the last bit of its libm. */
double fds_rng_normal(fds_rng *rng) {
    for (;;) {
        double u = 1.0 - fds_rng_unit(rng), v = 1.7156 * (fds_rng_unit(rng) - 0.5);
        double x = u - 0.449871, y = fabs(v) + 0.386595;
        double q = x * x + y * (0.19600 * y - 0.25472 * x);
        if (q < 0.27597 || (q <= 0.27846 && v * v <= -4.0 * u * u * log(u)))
            return v / u;
    }
}

void fds_rng_shuffle(fds_rng *rng, uint32_t *items, size_t count) {
    for (size_t i = count; i > 1; i--) {
        size_t j = fds_rng_below(rng, i);
        uint32_t kept = items[i - 1];
        items[i - 1] = items[j];
        items[j] = kept;
    }
}

fds_status fds__random_secret(void *bytes, size_t size, fds_error *err) {
    ssize_t got = -1;
    assert(size <= 256); /* getrandom gives so many at once, or none */
    if (fds__fault(FDS__FAULT_IO))
        errno = EIO;
    else
        do
            got = getrandom(bytes, size, 0);
        while (got < 0 && errno == EINTR);
    return got == (ssize_t)size ? FDS_OK : fds__fail_errno(err, "read", "random bytes");
}
