/* SPDX-License-Identifier: Apache-2.0
 * Single picture files as samples of a given shape. */
#include "data/data.h"

/* The luma weights of Rec. 601. */
static uint8_t gray_of(const uint8_t *pixel) {
    return (uint8_t)((299u * pixel[0] + 587u * pixel[1] + 114u * pixel[2] + 500u) / 1000u);
}

/* Interleaved pixels to planes; converts between gray and colour. */
static void copy_planes(const fds__picture *picture, uint32_t channels, uint8_t *out) {
    size_t plane = (size_t)picture->width * picture->height, from = picture->channels;
    for (size_t k = 0; k < plane; k++) {
        const uint8_t *pixel = picture->pixels + k * from;
        for (size_t c = 0; c < channels; c++)
            out[c * plane + k] = from == 1 ? pixel[0] : channels == 1 ? gray_of(pixel) : pixel[c];
    }
}

static fds_status read_one(const char *path, fds_dataset *ds, size_t i, fds_error *err) {
    fds__picture picture;
    TRY(fds__picture_read(path, &picture, err));
    fds_status status = FDS_OK;
    if (picture.width == ds->shape.width && picture.height == ds->shape.height)
        copy_planes(&picture, ds->shape.channels, ds->bytes + i * ds->sample_size);
    else
        status = fds__fail(err, FDS_ERR_SHAPE,
                           "%s: %u x %u pixels (width x height), but must have %u x %u", path,
                           picture.width, picture.height, ds->shape.width, ds->shape.height);
    fds__free(picture.pixels);
    return status;
}

fds_status fds__data_pictures(const char *const *paths, size_t count, fds_shape shape,
                              uint32_t classes, fds_dataset **out, fds_error *err) {
    if (shape.channels != 1 && shape.channels != 3)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "pictures have 1 channel or 3, but the samples must be %u x %u x %u",
                         shape.channels, shape.height, shape.width);
    fds_dataset *ds;
    TRY(fds__dataset_new(count == 1 ? paths[0] : "pictures", count, shape, true, &ds, err));
    ds->classes = classes;
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++)
        status = read_one(paths[i], ds, i, err);
    if (status == FDS_OK)
        status = fds__dataset_finish(ds, NULL, NULL, err);
    if (status == FDS_OK)
        *out = ds;
    else
        fds_dataset_free(ds);
    return status;
}
