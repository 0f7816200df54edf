/* SPDX-License-Identifier: Apache-2.0
 * Pictures scaled to another size, without regard to the ratio of their sides.
 *
 * Each new pixel is a weighted mean of old ones: a triangle around its place whose half width is one
 * old pixel, or one new pixel where the picture shrinks. That is bilinear interpolation upwards,
 * and downwards every old pixel counts. Columns first, then rows; rounded once, at the end. */
#include "data/data.h"

#include <math.h>
#include <stdlib.h>

/* The old pixels of a new one. */
typedef struct {
    uint32_t first, count;
    const double *weights; /* they sum to 1 */
} window;

/* The windows of one direction, and the memory of their weights. */
static fds_status make_windows(uint32_t from, uint32_t to, window **out, double **memory,
                               fds_error *err) {
    double scale = (double)from / to, reach = MAX(scale, 1.0);
    size_t most = (size_t)(2 * reach) + 3;
    TRY(NEW(*out, to, err));
    TRY(NEW(*memory, to * most, err));
    for (uint32_t i = 0; i < to; i++) {
        double middle = (i + 0.5) * scale, *weights = *memory + i * most, sum = 0;
        uint32_t first = (uint32_t)MAX(floor(middle - reach), 0.0);
        uint32_t end = (uint32_t)MIN(ceil(middle + reach), (double)from);
        assert(end > first && end - first <= most);
        for (uint32_t k = first; k < end; k++)
            sum += weights[k - first] = MAX(1 - fabs(k + 0.5 - middle) / reach, 0.0);
        for (uint32_t k = first; k < end; k++)
            weights[k - first] /= sum;
        (*out)[i] = (window){first, end - first, weights};
    }
    return FDS_OK;
}

/* between[height * to * channels]: the columns of a picture scaled. */
static void scale_columns(const fds__picture *p, const window *across, uint32_t to,
                          float *between) {
    size_t channels = p->channels;
    for (size_t y = 0; y < p->height; y++)
        for (size_t x = 0; x < to; x++) {
            const window *w = &across[x];
            const uint8_t *from = p->pixels + (y * p->width + w->first) * channels;
            for (size_t c = 0; c < channels; c++) {
                double sum = 0;
                for (size_t k = 0; k < w->count; k++)
                    sum += w->weights[k] * from[k * channels + c];
                between[(y * to + x) * channels + c] = (float)sum;
            }
        }
}

/* stride: numbers of a row. */
static void scale_rows(const float *between, const window *down, uint32_t to, size_t stride,
                       uint8_t *out) {
    for (size_t y = 0; y < to; y++) {
        const window *w = &down[y];
        for (size_t i = 0; i < stride; i++) {
            double sum = 0;
            for (size_t k = 0; k < w->count; k++)
                sum += w->weights[k] * (double)between[(w->first + k) * stride + i];
            out[y * stride + i] = (uint8_t)MIN(MAX(sum + 0.5, 0.0), 255.0);
        }
    }
}

fds_status fds__picture_resize(fds__picture *picture, fds__size size, fds_error *err) {
    OWNED window *across = NULL, *down = NULL;
    OWNED double *across_weights = NULL, *down_weights = NULL;
    OWNED float *between = NULL;
    uint8_t *pixels = NULL;
    size_t stride = (size_t)size.width * picture->channels;
    if (!size.width || (picture->width == size.width && picture->height == size.height))
        return FDS_OK;
    TRY(make_windows(picture->width, size.width, &across, &across_weights, err));
    TRY(make_windows(picture->height, size.height, &down, &down_weights, err));
    TRY(NEW(between, picture->height * stride, err));
    TRY(NEW(pixels, size.height * stride, err));
    scale_columns(picture, across, size.width, between);
    scale_rows(between, down, size.height, stride, pixels);
    fds__free(picture->pixels);
    *picture = (fds__picture){size.width, size.height, picture->channels, pixels};
    return FDS_OK;
}

/* A side at text, up to stop; 0: it is none. */
static uint32_t side_of(const char *text, char stop, const char **end) {
    char *after;
    unsigned long side = *text >= '1' && *text <= '9' ? strtoul(text, &after, 10) : 0;
    if (side < 1 || side > FDS__MAX_SIDE || *after != stop)
        return 0;
    *end = after + 1;
    return (uint32_t)side;
}

fds_status fds__size_parse(const char *text, fds__size *out, fds_error *err) {
    const char *rest, *end;
    *out = (fds__size){0};
    if (!text)
        return FDS_OK;
    uint32_t width = side_of(text, 'x', &rest), height = width ? side_of(rest, 0, &end) : 0;
    if (!height || (size_t)width * height > FDS__MAX_PICTURE)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`resize` must be WIDTHxHEIGHT in pixels, for example 32x32 (got %.40s)",
                         text);
    *out = (fds__size){width, height};
    return FDS_OK;
}
