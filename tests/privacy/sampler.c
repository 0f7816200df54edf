/* SPDX-License-Identifier: Apache-2.0
 * Draws from the bytes of standard input: sampler MECHANISM SENSITIVITY COST_NANO COUNT prints a number
 * and the bits taken so far per line, until the bytes end. */
#include "privacy/privacy.h"

#include <stdlib.h>

static fds_status read_bytes(void *context, void *out, size_t size, fds_error *err) {
    (void)context;
    if (fread(out, 1, size, stdin) != size)
        return fds__fail(err, FDS_ERR_IO, "the bytes are over");
    return FDS_OK;
}

int main(int argc, char **argv) {
    fds__dp_noise noise;
    fds_error err = {0};
    if (argc != 5 || !fds__mechanism_find(argv[1], &noise.mechanism))
        return 2;
    noise.sensitivity = strtoull(argv[2], NULL, 10);
    noise.cost_nano = strtoull(argv[3], NULL, 10);
    const fds__bits bits = {.fill = read_bytes};
    privacy_stream stream;
    privacy_stream_begin(&stream, &bits, &err);
    for (long count = strtol(argv[4], NULL, 10); count > 0; count--) {
        int64_t drawn;
        if (privacy_draw(&stream, &noise, &drawn, &err) != FDS_OK)
            break;
        printf("%lld %llu\n", (long long)drawn, (unsigned long long)stream.taken);
    }
    privacy_stream_end(&stream);
    return 0;
}
