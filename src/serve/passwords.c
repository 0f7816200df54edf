/* SPDX-License-Identifier: Apache-2.0
 * Passwords, as argon2id with 19 MiB and two passes: what OWASP recommends at least. */
#include "serve/serve.h"

#include <sodium.h>

enum { MEMORY = 19 << 20, PASSES = 2 };
_Static_assert(SERVE_HASH >= crypto_pwhash_STRBYTES, "room for a hash");

/* Of no password: who asks for an unknown name waits as long as for a known one. */
static const char nobody[] = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$"
                             "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fds_status serve_password_hash(const char *password, char out[SERVE_HASH], fds_error *err) {
    if (sodium_init() < 0 || crypto_pwhash_str_alg(out, password, strlen(password), PASSES, MEMORY,
                                                   crypto_pwhash_ALG_ARGON2ID13) != 0)
        return fds__fail_nomem(err, MEMORY);
    return FDS_OK;
}

bool serve_password_check(const char *hash, const char *password) {
    if (sodium_init() < 0)
        return false;
    bool is_right = crypto_pwhash_str_verify(hash ? hash : nobody, password, strlen(password)) == 0;
    return is_right && hash;
}

void serve_forget(void *secret, size_t size) { sodium_memzero(secret, size); }
