/* SPDX-License-Identifier: Apache-2.0
 * A log with a key that everybody knows (of the documentation of Go's note package), so that seeds
 * stay valid. */
#ifndef FDS_TEST_FUZZ_LOG_H
#define FDS_TEST_FUZZ_LOG_H

#include "fuzz_files.h"
#include "ledger/log.h"

#include <sys/stat.h>

#define FUZZ_VKEY "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
#define FUZZ_PRIVATE \
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz\n"

static inline const log_key *fuzz_key(void) {
    static log_key key;
    fds_error err = {0};
    if (!key.name[0]) {
        if (!fuzz_dir[0])
            fuzz_dir_make();
        fuzz_write(fuzz_path("key"), FUZZ_PRIVATE, strlen(FUZZ_PRIVATE));
        if (chmod(fuzz_path("key"), 0600) != 0)
            abort();
        fuzz_ok(log_key_load(fuzz_path("key"), &key, &err), &err);
    }
    return &key;
}

/* The caller fds__frees it. */
static inline char *fuzz_note(uint64_t size, const log_hash *root) {
    fds_error err = {0};
    char *note = NULL;
    fuzz_ok(log_checkpoint_sign(fuzz_key(), size, root, &note, &err), &err);
    return note;
}

#endif
