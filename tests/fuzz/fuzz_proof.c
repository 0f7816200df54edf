/* SPDX-License-Identifier: Apache-2.0
 * A proof whose extra bytes are the entry. What is accepted must begin as it would be written. */
#include "fuzz_log.h"

/* Changes what stands above the checkpoint, which stays signed. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    const uint8_t *empty = memmem(data, size, "\n\n", 2);
    size_t head = empty ? (size_t)(empty - data) + 1 : 0, rest = size - head;
    if (!empty || seed % 4 == 0)
        return LLVMFuzzerMutate(data, size, most);
    uint8_t *note = malloc(rest);
    if (!note)
        abort();
    memcpy(note, data + head, rest);
    head = LLVMFuzzerMutate(data, head, most - rest);
    memcpy(data + head, note, rest);
    free(note);
    return head + rest;
}

typedef struct seen {
    char *text; /* of a proof with the same extra bytes and number, and nothing more */
} seen;

static fds_status get_leaf(void *context, const uint8_t *extra, size_t size, uint64_t index,
                           log_hash *leaf, fds_error *err) {
    seen *s = context;
    if (size && extra[size] != 0)
        abort();
    *leaf = log_leaf(extra, size);
    return log_proof_write(extra, size, index, NULL, 0, "", &s->text, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    seen s = {NULL};
    fds_error err = {0};
    char *exact = malloc(size ? size : 1);
    if (!exact)
        abort();
    memcpy(exact, data, size);
    if (log_proof_open(exact, size, FUZZ_VKEY, get_leaf, &s, &err) == FDS_OK) {
        size_t head = strlen(s.text) - 1; /* without the empty line */
        if (head > size || memcmp(s.text, exact, head) != 0)
            abort();
    }
    fds__free(s.text);
    free(exact);
    return 0;
}
