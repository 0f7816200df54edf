/* SPDX-License-Identifier: Apache-2.0
 * What the fuzz targets share. A target takes any bytes; the reader must return, free all it took,
 * and touch nothing else (built with ASan and UBSan). */
#ifndef FDS_TEST_FUZZ_H
#define FDS_TEST_FUZZ_H

#include "data/data.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of exactly size bytes and the NUL that every file read has after it. */
static inline fds__blob fuzz_blob(const char *name, const uint8_t *data, size_t size) {
    fds__blob blob = {.path = name, .data = malloc(size + 1), .size = size, .is_given = true};
    if (!blob.data)
        abort();
    if (size)
        memcpy(blob.data, data, size);
    blob.data[size] = 0;
    return blob;
}

/* Two files in one input: u16 little-endian size of the first, the first, the second. */
static inline void fuzz_pair(const uint8_t *data, size_t size, fds__blob *first,
                             fds__blob *second) {
    size_t wanted = size < 2 ? 0 : data[0] | (size_t)data[1] << 8, rest = size < 2 ? 0 : size - 2;
    const uint8_t *start = size < 2 ? data : data + 2;
    wanted = MIN(wanted, rest);
    *first = fuzz_blob("first", start, wanted);
    *second = fuzz_blob("second", start + wanted, rest - wanted);
}

/* What every dataset goes through, whatever reader made it. */
static inline void fuzz_use(fds_status status, fds_dataset *train, fds_dataset *test) {
    fds_error err = {0};
    if (status == FDS_OK && fds__dataset_finish(train, test, NULL, &err) == FDS_OK) {
        fds__dataset_info info = fds__dataset_get_info(train);
        size_t size = (size_t)info.shape.channels * info.shape.height * info.shape.width;
        float *values = malloc(size * sizeof *values);
        if (!values)
            abort();
        fds_dataset_sample(train, info.count - 1, values);
        if (!*fds_dataset_class_name(train, info.labels[info.count - 1]) && !info.classes)
            abort();
        free(values);
    }
    fds_dataset_free(train);
    fds_dataset_free(test);
}

#endif
