/* SPDX-License-Identifier: Apache-2.0
 * The sampler where fds was built without GMP: it says so. */
#include "privacy/privacy.h"

fds_status fds__dp_draw(const fds__dp_noise *noise, const fds__bits *bits, int64_t *out,
                        size_t count, fds_error *err) {
    (void)noise, (void)bits, (void)out, (void)count;
    return fds__fail(err, FDS_ERR_UNSUPPORTED,
                     "fds was built without exact noise: install libgmp-dev (scripts/deps build), "
                     "and build it again");
}
