/* SPDX-License-Identifier: Apache-2.0
 * What a log publishes besides hashes. The first byte says what the rest is: 0 a checkpoint, 1 a
 * public key, 2 the file of a signing key, 3 the name of a file. What is accepted must be what is
 * written. */
#include "fuzz_log.h"

#include <sodium.h>

enum { KINDS = 4 };

/* Signs a changed text again: otherwise no change would ever pass the signature. */
static size_t sign_again(uint8_t *note, size_t size, size_t most) {
    const log_key *key = fuzz_key();
    uint8_t signature[4 + crypto_sign_BYTES] = {0xc7, 0x4f, 0x20, 0xa3};
    char line[256], base64[128];
    const uint8_t *empty = memmem(note, size, "\n\n", 2);
    size_t text = empty ? (size_t)(empty - note) + 1 : 0;
    crypto_sign_detached(signature + 4, NULL, note, text, key->secret);
    log_base64_encode(signature, sizeof signature, base64);
    size_t length =
        (size_t)snprintf(line, sizeof line, "\n\xe2\x80\x94 %s %s\n", key->name, base64);
    if (!empty || text + length > most)
        return size;
    memcpy(note + text, line, length);
    return text + length;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, most);
    if (size > 1 && data[0] % KINDS == 0 && seed % 2)
        return 1 + sign_again(data + 1, size - 1, most - 1);
    return size;
}

static void use_checkpoint(const char *note, size_t length) {
    uint64_t size;
    log_hash root;
    if (log_checkpoint_open(note, length, FUZZ_VKEY, &size, &root, NULL) != FDS_OK)
        return;
    char *again = fuzz_note(size, &root);
    size_t text = (size_t)(strstr(again, "\n\n") - again) + 2;
    if (length < text || memcmp(note, again, text) != 0)
        abort();
    fds__free(again);
}

static void use_key(const uint8_t *data, size_t size) {
    fds_error err = {0};
    log_key key;
    fuzz_key();
    fuzz_write(fuzz_path("other"), data, size);
    chmod(fuzz_path("other"), 0600);
    if (log_key_load(fuzz_path("other"), &key, &err) != FDS_OK)
        return;
    unlink(fuzz_path("again"));
    fuzz_ok(log_key_save(&key, fuzz_path("again"), &err), &err);
    fds__blob again = fuzz_read(fuzz_path("again"));
    if (again.size != size || memcmp(again.data, data, size) != 0)
        abort();
    free(again.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char name[LOG_FILE_NAME];
    uint64_t count;
    log_hash root;
    log_file file;
    if (size == 0)
        return 0;
    fds__blob rest = fuzz_blob("rest", data + 1, size - 1);
    const char *text = (const char *)rest.data;
    switch (data[0] % KINDS) {
    case 0: {
        char *exact = malloc(rest.size ? rest.size : 1); /* nothing behind it */
        if (!exact)
            abort();
        memcpy(exact, text, rest.size);
        use_checkpoint(exact, rest.size);
        free(exact);
        break;
    }
    case 1:
        log_checkpoint_open("", 0, text, &count, &root, NULL);
        break;
    case 2:
        use_key(rest.data, rest.size);
        break;
    default:
        if (!log_file_parse(text, &file))
            break;
        log_file_name(&file, name);
        if (strcmp(name, text) != 0)
            abort();
    }
    free(rest.data);
    return 0;
}
