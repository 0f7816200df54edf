/* SPDX-License-Identifier: Apache-2.0
 * A contact sheet: samples as small pictures in rows, each with its class name below. */
#include "data/data.h"

#include <string.h>

enum {
    MARGIN = 12,  /* around the sheet */
    GAP = 10,     /* between cells */
    CAPTION = 4,  /* between a picture and its name */
    PICTURE = 80, /* pictures are scaled up by a whole factor to at least this width */
    PAPER = 248,
    INK = 60,
};

typedef struct {
    const fds_dataset *ds;
    float low, high; /* floats in this range become black to white */
    uint32_t scale, columns;
    fds_picture sheet;
} drawing;

static void put(drawing *d, uint32_t x, uint32_t y, const uint8_t colour[3]) {
    memcpy(d->sheet.pixels + ((size_t)y * d->sheet.width + x) * 3, colour, 3);
}

static uint8_t shade(const drawing *d, size_t value) {
    if (d->ds->bytes)
        return d->ds->bytes[value];
    double part = ((double)d->ds->floats[value] - d->low) / ((double)d->high - d->low);
    return (uint8_t)(part * 255.0 + 0.5);
}

/* Three channels or more: the first three are red, green, blue. Fewer: the first is gray. */
static void draw_sample(drawing *d, size_t sample, uint32_t left, uint32_t top) {
    fds_shape s = d->ds->shape;
    size_t plane = (size_t)s.height * s.width, step = s.channels >= 3 ? plane : 0;
    for (uint32_t y = 0; y < s.height * d->scale; y++)
        for (uint32_t x = 0; x < s.width * d->scale; x++) {
            size_t at =
                sample * d->ds->sample_size + (size_t)(y / d->scale) * s.width + x / d->scale;
            uint8_t colour[3] = {shade(d, at), shade(d, at + step), shade(d, at + 2 * step)};
            put(d, left + x, top + y, colour);
        }
}

/* Centred in width; what does not fit is cut off, the last character becoming a dot. */
static void draw_text(drawing *d, const char *text, uint32_t left, uint32_t top, uint32_t width) {
    static const uint8_t ink[3] = {INK, INK, INK};
    uint32_t room = width / FDS_FONT_WIDTH;
    size_t full = strlen(text), length = FDS_MIN(full, room);
    left += (width - (uint32_t)length * FDS_FONT_WIDTH) / 2;
    for (size_t i = 0; i < length; i++) {
        char character = i + 1 == length && full > room ? '.' : text[i];
        for (uint32_t y = 0; y < FDS_FONT_HEIGHT; y++)
            for (uint32_t x = 0; x < FDS_FONT_WIDTH; x++)
                if (fds_font_ink(character, x, y))
                    put(d, left + (uint32_t)i * FDS_FONT_WIDTH + x, top + y, ink);
    }
}

static fds_status measure(drawing *d, size_t count, uint32_t cell[2], fds_error *err) {
    fds_shape s = d->ds->shape;
    uint32_t side = FDS_MIN(s.height, s.width);
    d->scale = side >= PICTURE ? 1 : (PICTURE + side - 1) / side;
    cell[0] = s.width * d->scale + GAP;
    cell[1] = s.height * d->scale + CAPTION + FDS_FONT_HEIGHT + GAP;
    uint64_t rows = (count + d->columns - 1) / d->columns;
    uint64_t width = (uint64_t)d->columns * cell[0] - GAP + 2 * MARGIN;
    uint64_t height = rows * cell[1] - GAP + 2 * MARGIN;
    if (width > FDS_MAX_SIDE || height > FDS_MAX_SIDE || width * height > FDS_MAX_PICTURE)
        return fds_fail(err, FDS_LIMIT,
                        "a sheet of %zu pictures in %u columns would be too large; draw fewer",
                        count, d->columns);
    d->sheet = (fds_picture){(uint32_t)width, (uint32_t)height, 3, NULL};
    return FDS_OK;
}

/* Floats within 0..1 are drawn as they are, others from the least to the greatest drawn. */
static fds_status find_range(drawing *d, const uint32_t *index, size_t count, fds_error *err) {
    uint32_t channels = d->ds->shape.channels;
    float *range = fds_alloc_zero(2 * (size_t)channels, sizeof *range);
    if (!range)
        return fds_fail_nomem(err, 2 * channels * sizeof *range);
    fds_status status =
        fds_dataset_stats(d->ds, index, count, range, range + channels, NULL, NULL, err);
    d->low = 0.0f;
    d->high = 1.0f;
    for (uint32_t c = 0; c < channels; c++) {
        d->low = FDS_MIN(d->low, range[c]);
        d->high = FDS_MAX(d->high, range[channels + c]);
    }
    fds_free(range);
    return status;
}

fds_status fds_dataset_draw(const fds_dataset *ds, const uint32_t *index, size_t count,
                            uint32_t columns, const char *png_path, fds_error *err) {
    drawing d = {.ds = ds, .columns = (uint32_t)FDS_MIN((size_t)columns, count)};
    uint32_t cell[2];
    if (!ds->is_image)
        return fds_fail(err, FDS_USAGE, "%s has feature vectors, only images can be drawn",
                        ds->source);
    if (columns == 0)
        return fds_fail(err, FDS_USAGE, "a sheet needs at least one column");
    FDS_TRY(fds_index_check(ds, index, count, err));
    FDS_TRY(measure(&d, count, cell, err));
    if (!ds->bytes)
        FDS_TRY(find_range(&d, index, count, err));
    size_t size = (size_t)d.sheet.width * d.sheet.height * 3;
    d.sheet.pixels = fds_alloc(size);
    if (!d.sheet.pixels)
        return fds_fail_nomem(err, size);
    memset(d.sheet.pixels, PAPER, size);
    for (size_t i = 0; i < count; i++) {
        size_t sample = index ? index[i] : i;
        uint32_t left = MARGIN + (uint32_t)(i % d.columns) * cell[0];
        uint32_t top = MARGIN + (uint32_t)(i / d.columns) * cell[1];
        draw_sample(&d, sample, left, top);
        draw_text(&d, fds_dataset_class_name(ds, ds->labels[sample]), left,
                  top + ds->shape.height * d.scale + CAPTION, ds->shape.width * d.scale);
    }
    fds_status status = fds_png_write(&d.sheet, png_path, err);
    fds_free(d.sheet.pixels);
    return status;
}
