/* SPDX-License-Identifier: Apache-2.0
 * Probabilities of two samples and three classes: CSV lines or an NPY array. */
#include "fuzz.h"

#include "utility/utility.h"

static const char *name_of(const void *names, uint32_t label) {
    return ((const char *const *)names)[label];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"0", "1", "cat"};
    const fds__service_form form = {
        .rows = 2, .classes = 3, .of = "samples", .names = names, .name_of = name_of};
    fds__blob file = fuzz_blob("probabilities", data, size);
    fds_error err = {0};
    double out[2 * 3] = {0};
    if (fds__service_parse(&file, &form, out, &err) == FDS_OK)
        for (size_t i = 0; i < 2; i++)
            if (!(out[3 * i] + out[3 * i + 1] + out[3 * i + 2] < 1.001))
                abort();
    free(file.data);
    return 0;
}
