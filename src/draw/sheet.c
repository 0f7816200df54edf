/* SPDX-License-Identifier: Apache-2.0
 * A contact sheet: samples as small pictures in rows, each with its class name below. */
#include "draw/draw.h"

enum {
    MARGIN = 12,  /* around the sheet */
    GAP = 10,     /* between cells */
    CAPTION = 4,  /* between a picture and its name */
    TEXT = 13,    /* size of a name */
    PICTURE = 80, /* least width of a picture, which is scaled up by a whole factor */
};

static fds_status draw(const draw_brush *brush, const uint32_t *index, size_t count,
                       uint32_t columns, fds__picture *sheet, fds_error *err) {
    const fds_dataset *ds = brush->ds;
    const draw_type type = {.size = TEXT, .colour = draw_ink, .is_centred = true};
    uint32_t cell_width = brush->width + GAP;
    uint32_t cell_height = brush->height + CAPTION + draw_line_height(TEXT) + GAP;
    uint64_t rows = (count + columns - 1) / columns;
    TRY(draw_canvas_create((uint64_t)columns * cell_width - GAP + 2 * MARGIN,
                           rows * cell_height - GAP + 2 * MARGIN, sheet, err));
    for (size_t i = 0; i < count; i++) {
        size_t sample = index ? index[i] : i;
        uint32_t left = MARGIN + (uint32_t)(i % columns) * cell_width;
        uint32_t top = MARGIN + (uint32_t)(i / columns) * cell_height;
        draw_canvas_sample(sheet, brush, sample, left, top);
        TRY(draw_canvas_text(sheet, fds_dataset_class_name(ds, ds->labels[sample]), &type, left,
                             top + brush->height + CAPTION, brush->width, err));
    }
    return FDS_OK;
}

fds_status fds_dataset_draw(const fds_dataset *ds, const uint32_t *index, size_t count,
                            uint32_t columns, const char *png_path, fds_error *err) {
    draw_brush brush;
    fds__picture sheet = {0};
    TRY(fds__path_check_ending(png_path, ".png", err)); /* before any work */
    if (columns == 0)
        return fds__fail(err, FDS_ERR_USAGE, "a sheet needs at least one column");
    TRY(draw_brush_make(ds, index, count, PICTURE, &brush, err));
    fds_status status =
        draw(&brush, index, count, (uint32_t)MIN((size_t)columns, count), &sheet, err);
    if (status == FDS_OK)
        status = fds__png_write(&sheet, png_path, err);
    fds__free(sheet.pixels);
    return status;
}
