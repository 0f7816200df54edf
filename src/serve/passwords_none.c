/* SPDX-License-Identifier: Apache-2.0
 * In the place of passwords.c, where libsodium is missing: nobody logs in by a password. */
#include "serve/serve.h"

fds_status serve_password_hash(const char *password, char out[SERVE_HASH], fds_error *err) {
    (void)password;
    *out = 0;
    return fds__fail(err, FDS_ERR_UNSUPPORTED,
                     "fds was built without passwords: install libsodium-dev and libsqlite3-dev "
                     "(scripts/deps build), and build it again");
}

bool serve_password_check(const char *hash, const char *password) {
    (void)hash;
    (void)password;
    return false;
}

void serve_forget(void *secret, size_t size) {
    for (volatile char *at = secret; size > 0; size--)
        *at++ = 0;
}
