/* SPDX-License-Identifier: Apache-2.0
 * IDX, the format of MNIST. All numbers big-endian.
 *
 *   images   0  u32  0x00000803: bytes (08), three dimensions (03)
 *            4  u32  number of images, rows, columns
 *           16  u8   pixels, image after image, row after row
 *   labels   0  u32  0x00000801: bytes, one dimension
 *            4  u32  number of labels
 *            8  u8   labels */
#include "data/data.h"

#include <string.h>

enum { IMAGES_MAGIC = 0x803, LABELS_MAGIC = 0x801, IMAGES_START = 16, LABELS_START = 8 };

static uint32_t get_u32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static fds_status check_header(const fds__blob *file, uint32_t magic, size_t header,
                               const char *what, fds_error *err) {
    if (file->size < header)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: %zu bytes, the header of an IDX file of %s has %zu", file->path,
                         file->size, what, header);
    if (get_u32(file->data) != magic)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: byte 0: 0x%08x, an IDX file of %s begins with 0x%08x", file->path,
                         get_u32(file->data), what, magic);
    return FDS_OK;
}

fds_status fds__idx_parse(fds__blob *images, const fds__blob *labels, fds_dataset **out,
                          fds_error *err) {
    TRY(check_header(images, IMAGES_MAGIC, IMAGES_START, "images", err));
    TRY(check_header(labels, LABELS_MAGIC, LABELS_START, "labels", err));
    uint32_t count = get_u32(images->data + 4), label_count = get_u32(labels->data + 4);
    uint32_t rows = get_u32(images->data + 8), columns = get_u32(images->data + 12);
    size_t pixels, size;
    if (!fds__mul(rows, columns, &pixels) || !fds__mul(pixels, count, &size) ||
        size != images->size - IMAGES_START)
        return fds__fail(
            err, FDS_ERR_FORMAT,
            "%s: byte 4: the header says %u images of %u x %u, but %zu bytes follow it",
            images->path, count, rows, columns, images->size - IMAGES_START);
    if (label_count != labels->size - LABELS_START)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: byte 4: the header says %u labels, but %zu bytes follow it",
                         labels->path, label_count, labels->size - LABELS_START);
    if (count != label_count)
        return fds__fail(err, FDS_ERR_SHAPE, "%s has %u images, but %s has %u labels", images->path,
                         count, labels->path, label_count);
    TRY(fds__dataset_new(images->path, count, (fds_shape){1, rows, columns}, true, out, err));
    uint8_t *kept = fds__blob_keep(images, IMAGES_START, (*out)->bytes);
    if (kept)
        (*out)->bytes = kept;
    else
        memcpy((*out)->bytes, images->data + IMAGES_START, size);
    for (size_t i = 0; i < count; i++)
        (*out)->labels[i] = labels->data[LABELS_START + i];
    return FDS_OK;
}
