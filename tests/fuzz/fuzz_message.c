/* SPDX-License-Identifier: Apache-2.0
 * What a program sends: a frame with its length, as `ready` and as `answer`. */
#include "fuzz_files.h"
#include "utility/external.h"

enum { INPUTS = 2, CLASSES = 3 };

/* The file behind the length of the frame, which is made right again. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    if (size < 16 || most < 16 || seed % 8 == 0)
        return LLVMFuzzerMutate(data, size, most);
    uint64_t length = fuzz_mutate_file(data + 8, size - 8, most - 8, seed);
    memcpy(data, &length, 8);
    return (size_t)length + 8;
}

static uint8_t *copy(const uint8_t *data, size_t size) {
    uint8_t *own = fds__alloc(size);
    if (!own)
        abort();
    memcpy(own, data, size);
    return own;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const bool has_class[CLASSES] = {true, false, true};
    const fds__answer_form form = {1, INPUTS, CLASSES, has_class, false};
    char name[FDS__PROGRAM_NAME], fingerprint[FDS__PROGRAM_NAME];
    float probs[INPUTS * CLASSES];
    bool is_fatal;
    fds_error err = {0};
    size_t length;
    if (size < 8 || fds__message_length(data, INPUTS * CLASSES, &length, &err) != FDS_OK)
        return 0;
    length = MIN(length, size - 8); /* a shorter one is waited for, never parsed */
    if (fds__message_ready(copy(data + 8, length), length, name, fingerprint, &err) == FDS_OK &&
        (!name[0] || !fingerprint[0]))
        abort();
    if (fds__message_answer(copy(data + 8, length), length, &form, probs, &is_fatal, &err) !=
        FDS_OK)
        return 0;
    for (size_t i = 0; i < INPUTS * CLASSES; i++)
        if (!(probs[i] >= 0 && probs[i] <= 1) || (i % CLASSES == 1 && probs[i] != 0))
            abort();
    return 0;
}
