/* SPDX-License-Identifier: Apache-2.0
 * Writes JPEG files for the tests: smooth, at the best quality, so that pixels come back nearly. */
#include "fixture.h"

#include <jpeglib.h>

uint8_t *make_jpeg(uint32_t width, uint32_t height, int channels, bool progressive, size_t *size) {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    uint8_t *data = NULL, row[256 * 3];
    unsigned long length = 0;
    assert_true(width <= 256);
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &data, &length);
    jpeg.image_width = width;
    jpeg.image_height = height;
    jpeg.input_components = channels;
    jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    if (progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                row[x * (uint32_t)channels + (uint32_t)c] =
                    (uint8_t)(40 + x * 4 + y * 2 + 30 * (uint32_t)c);
        JSAMPROW rows[1] = {row};
        jpeg_write_scanlines(&jpeg, rows, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    *size = length;
    return data;
}
