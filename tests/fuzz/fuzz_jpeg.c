/* SPDX-License-Identifier: Apache-2.0
 * JPEG. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fds__blob file = fuzz_blob("file", data, size);
    fds__picture picture;
    fds_error err = {0};
    if (size >= 2)
        memcpy(file.data, "\xff\xd8", 2);
    if (fds__picture_decode(&file, &picture, &err) == FDS_OK && (!picture.width || !picture.height))
        abort();
    fds__free(picture.pixels);
    free(file.data);
    return 0;
}
