/* SPDX-License-Identifier: Apache-2.0
 * What pictures of data are drawn with: light paper, samples scaled up, text, frames. */
#include "draw/draw.h"

#include <string.h>

enum { PAPER = 248 };

const uint8_t fds__ink[3] = {60, 60, 60};

fds_status fds__canvas_create(uint64_t width, uint64_t height, fds__picture *out, fds_error *err) {
    if (width > FDS__MAX_SIDE || height > FDS__MAX_SIDE || width * height > FDS__MAX_PICTURE)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "a picture of %llu x %llu pixels would be too large; draw fewer samples",
                         (unsigned long long)width, (unsigned long long)height);
    size_t size = (size_t)width * height * 3;
    *out = (fds__picture){(uint32_t)width, (uint32_t)height, 3, fds__alloc(size)};
    if (!out->pixels)
        return fds__fail_nomem(err, size);
    memset(out->pixels, PAPER, size);
    return FDS_OK;
}

static void put(fds__picture *canvas, uint32_t x, uint32_t y, const uint8_t colour[3]) {
    memcpy(canvas->pixels + ((size_t)y * canvas->width + x) * 3, colour, 3);
}

void fds__canvas_fill(fds__picture *canvas, uint32_t left, uint32_t top, uint32_t width,
                      uint32_t height, const uint8_t colour[3]) {
    for (uint32_t y = top; y < MIN(top + height, canvas->height); y++)
        for (uint32_t x = left; x < MIN(left + width, canvas->width); x++)
            put(canvas, x, y, colour);
}

/* ---- samples ---- */

/* Floats within 0..1 are drawn as they are, others from the least to the greatest drawn. */
static fds_status find_range(fds__brush *b, const uint32_t *index, size_t count, fds_error *err) {
    uint32_t channels = b->ds->shape.channels;
    float *range = fds__alloc_zero(2 * (size_t)channels, sizeof *range);
    if (!range)
        return fds__fail_nomem(err, 2 * channels * sizeof *range);
    fds_status status =
        fds_dataset_stats(b->ds, index, count, range, range + channels, NULL, NULL, err);
    for (uint32_t c = 0; c < channels; c++) {
        b->low = MIN(b->low, range[c]);
        b->high = MAX(b->high, range[channels + c]);
    }
    fds__free(range);
    return status;
}

fds_status fds__brush_make(const fds_dataset *ds, const uint32_t *index, size_t count,
                           uint32_t least, fds__brush *out, fds_error *err) {
    if (!ds->is_image)
        return fds__fail(err, FDS_ERR_USAGE, "%s has feature vectors, only images can be drawn",
                         ds->source);
    TRY(fds__samples_check(ds, index, count, err));
    uint32_t side = MIN(ds->shape.height, ds->shape.width);
    uint32_t scale = side >= least ? 1 : (least + side - 1) / side;
    *out = (fds__brush){ds, 0.0f, 1.0f, scale, ds->shape.width * scale, ds->shape.height * scale};
    return ds->bytes ? FDS_OK : find_range(out, index, count, err);
}

static uint8_t shade(const fds__brush *b, size_t value) {
    if (b->ds->bytes)
        return b->ds->bytes[value];
    double part = ((double)b->ds->floats[value] - b->low) / ((double)b->high - b->low);
    return (uint8_t)(part * 255.0 + 0.5);
}

/* Three channels or more: the first three are red, green, blue. Fewer: the first is gray. */
void fds__canvas_sample(fds__picture *canvas, const fds__brush *b, size_t sample, uint32_t left,
                        uint32_t top) {
    fds_shape s = b->ds->shape;
    size_t plane = (size_t)s.height * s.width, step = s.channels >= 3 ? plane : 0;
    for (uint32_t y = 0; y < b->height; y++)
        for (uint32_t x = 0; x < b->width; x++) {
            size_t at =
                sample * b->ds->sample_size + (size_t)(y / b->scale) * s.width + x / b->scale;
            uint8_t colour[3] = {shade(b, at), shade(b, at + step), shade(b, at + 2 * step)};
            put(canvas, left + x, top + y, colour);
        }
}

/* ---- text ---- */

void fds__canvas_text(fds__picture *canvas, const char *text, uint32_t scale, uint32_t left,
                      uint32_t top, uint32_t width) {
    uint32_t step = FDS__FONT_WIDTH * scale, room = width / step;
    size_t full = strlen(text), length = MIN(full, room);
    left += (width - (uint32_t)length * step) / 2;
    for (size_t i = 0; i < length; i++) {
        char character = i + 1 == length && full > room ? '.' : text[i];
        for (uint32_t y = 0; y < FDS__FONT_HEIGHT; y++)
            for (uint32_t x = 0; x < FDS__FONT_WIDTH; x++)
                if (fds__font_ink(character, x, y))
                    fds__canvas_fill(canvas, left + (uint32_t)i * step + x * scale, top + y * scale,
                                     scale, scale, fds__ink);
    }
}
