/* SPDX-License-Identifier: Apache-2.0
 * PNG, and encoding again what was decoded. The chunks' checksums are put right first: otherwise
 * nearly all damage would end there, and nothing behind them would be tried. */
#include "fuzz.h"

#include <zlib.h>

/* A chunk: u32 big-endian size of its data, 4 bytes type, the data, u32 CRC of type and data. */
static void repair(uint8_t *file, size_t size) {
    for (size_t at = 8; at + 12 <= size;) {
        size_t length = (size_t)file[at] << 24 | (size_t)file[at + 1] << 16 |
                        (size_t)file[at + 2] << 8 | file[at + 3];
        if (length > size - at - 12)
            return;
        uint32_t crc = (uint32_t)crc32(0, file + at + 4, (uInt)length + 4);
        for (int i = 0; i < 4; i++)
            file[at + 8 + length + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += length + 12;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fds__blob file = fuzz_blob("file", data, size);
    fds__picture picture;
    fds_error err = {0};
    if (size >= 8)
        memcpy(file.data, "\x89PNG\r\n\x1a\n", 8);
    repair(file.data, size);
    if (fds__picture_decode(&file, &picture, &err) == FDS_OK) {
        uint8_t *again;
        size_t again_size;
        if (fds__png_encode(&picture, &again, &again_size, &err) != FDS_OK)
            abort();
        fds__free(again);
    }
    fds__free(picture.pixels);
    free(file.data);
    return 0;
}
