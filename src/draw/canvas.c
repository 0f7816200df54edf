/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of data: light paper, rectangles, samples scaled up, and text.
 *
 * cairo draws the text, in DejaVu Sans or what fontconfig has in its place. It fills the outlines
 * of the letters, unhinted and with unrounded metrics, so that fontconfig's settings for screens do
 * not change a picture. Samples are copied, never resampled.
 */
#include "draw/draw.h"

#include <cairo.h>
#include <math.h>
#include <string.h>

enum { PAPER = 248, MAX_LINE = 256 /* bytes of a line of text */ };

const uint8_t draw_paper[3] = {PAPER, PAPER, PAPER}, draw_ink[3] = {40, 40, 40},
              draw_soft[3] = {110, 110, 110};

fds_status draw_canvas_create(uint64_t width, uint64_t height, fds__picture *out, fds_error *err) {
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

void draw_canvas_fill(fds__picture *canvas, uint32_t left, uint32_t top, uint32_t width,
                      uint32_t height, const uint8_t colour[3]) {
    for (uint32_t y = top; y < MIN(top + height, canvas->height); y++)
        for (uint32_t x = left; x < MIN(left + width, canvas->width); x++)
            put(canvas, x, y, colour);
}

/* ---- samples ---- */

/* Floats within 0..1 keep their shade; others go from the least to the greatest of all samples. */
static fds_status find_range(draw_brush *b, const uint32_t *index, size_t count, fds_error *err) {
    uint32_t channels = b->ds->shape.channels;
    OWNED float *range = NULL;
    TRY(NEW(range, 2 * (size_t)channels, err));
    TRY(fds_dataset_stats(b->ds, index, count, range, range + channels, NULL, NULL, err));
    for (uint32_t c = 0; c < channels; c++) {
        b->low = MIN(b->low, range[c]);
        b->high = MAX(b->high, range[channels + c]);
    }
    return FDS_OK;
}

fds_status draw_brush_make(const fds_dataset *ds, const uint32_t *index, size_t count,
                           uint32_t least, draw_brush *out, fds_error *err) {
    if (!ds->is_image)
        return fds__fail(err, FDS_ERR_USAGE, "%s has feature vectors, only images can be drawn",
                         ds->source);
    TRY(fds__samples_check(ds, index, count, err));
    uint32_t side = MIN(ds->shape.height, ds->shape.width);
    uint32_t scale = side >= least ? 1 : (least + side - 1) / side;
    *out = (draw_brush){ds, 0.0f, 1.0f, scale, ds->shape.width * scale, ds->shape.height * scale};
    return ds->bytes ? FDS_OK : find_range(out, index, count, err);
}

static uint8_t shade(const draw_brush *b, size_t value) {
    if (b->ds->bytes)
        return b->ds->bytes[value];
    double part = ((double)b->ds->floats[value] - b->low) / ((double)b->high - b->low);
    return (uint8_t)(part * 255.0 + 0.5);
}

/* Three channels or more: the first three are red, green, blue. Fewer: the first is gray. */
void draw_canvas_sample(fds__picture *canvas, const draw_brush *b, size_t sample, uint32_t left,
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

/* An empty mask for text of size pixels per em; mask_free reports a failure. */
static cairo_t *mask_create(uint32_t width, uint32_t height, uint32_t size) {
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_A8, (int)width, (int)height);
    cairo_t *mask = cairo_create(surface);
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_surface_destroy(surface); /* the mask keeps it */
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_set_font_options(mask, options);
    cairo_font_options_destroy(options);
    cairo_select_font_face(mask, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(mask, size);
    return mask;
}

/* Frees the mask. Fails if a cairo call on it failed. */
static fds_status mask_free(cairo_t *mask, fds_error *err) {
    cairo_status_t status = cairo_status(mask);
    cairo_destroy(mask);
    if (status == CAIRO_STATUS_SUCCESS)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_NOMEM, "cannot draw text: %s", cairo_status_to_string(status));
}

static double width_of(cairo_t *mask, const char *line) {
    cairo_text_extents_t extents;
    cairo_text_extents(mask, line, &extents);
    return extents.x_advance;
}

/* Replaces the last character by "…". False: no other character is left. */
static bool shorten(char line[MAX_LINE]) {
    static const char dots[] = "…";
    size_t length = strlen(line), mark = sizeof dots - 1;
    if (length >= mark && strcmp(line + length - mark, dots) == 0)
        length -= mark;
    while (length > 0 && ((unsigned char)line[--length] & 0xc0) == 0x80)
        continue; /* until the first byte of a character */
    strcpy(line + length, dots);
    return length > 0;
}

/* The text as UTF-8; a very long one is shortened. */
static fds_status copy_text(const char *text, char line[MAX_LINE], fds_error *err) {
    json_t *copy = fds__json_string(text);
    if (!copy)
        return fds__fail_json(err);
    bool is_long = snprintf(line, MAX_LINE - 4, "%s", json_string_value(copy)) >= MAX_LINE - 4;
    json_decref(copy);
    if (is_long) /* perhaps in the middle of a character, which shorten removes */
        shorten(line);
    return FDS_OK;
}

fds_status draw_text_width(const char *text, uint32_t size, uint32_t *width, fds_error *err) {
    char line[MAX_LINE];
    TRY(copy_text(text, line, err));
    cairo_t *mask = mask_create(1, 1, size);
    *width = (uint32_t)ceil(width_of(mask, line));
    return mask_free(mask, err);
}

/* Draws the mask's text in a colour. */
static void blend(fds__picture *canvas, cairo_t *mask, uint32_t left, uint32_t top,
                  const uint8_t colour[3]) {
    cairo_surface_t *surface = cairo_get_target(mask);
    cairo_surface_flush(surface);
    const uint8_t *cover = cairo_image_surface_get_data(surface);
    uint32_t width = (uint32_t)cairo_image_surface_get_width(surface);
    uint32_t height = (uint32_t)cairo_image_surface_get_height(surface);
    size_t stride = (size_t)cairo_image_surface_get_stride(surface);
    for (uint32_t y = 0; cover && y < MIN(height, canvas->height - top); y++)
        for (uint32_t x = 0; x < MIN(width, canvas->width - left); x++) {
            unsigned part = cover[y * stride + x];
            uint8_t *pixel = canvas->pixels + ((size_t)(top + y) * canvas->width + left + x) * 3;
            for (int c = 0; c < 3; c++)
                pixel[c] = (uint8_t)((pixel[c] * (255 - part) + colour[c] * part + 127) / 255);
        }
}

fds_status draw_canvas_text(fds__picture *canvas, const char *text, const draw_type *type,
                            uint32_t left, uint32_t top, uint32_t width, fds_error *err) {
    char line[MAX_LINE];
    TRY(copy_text(text, line, err));
    cairo_t *mask = mask_create(width, draw_line_height(type->size), type->size);
    while (width_of(mask, line) > width && shorten(line))
        continue;
    double gap = type->is_centred ? fmax(0, floor((width - width_of(mask, line)) / 2)) : 0;
    cairo_move_to(mask, gap, round(0.95 * type->size));
    cairo_text_path(mask, line);
    cairo_fill(mask);
    blend(canvas, mask, left, top, type->colour);
    return mask_free(mask, err);
}
