/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of a result as a PNG: for each prediction a heading, its picture if it is one, and a bar
 * for each of the players with the greatest values, with a line of 1.96 standard errors to either
 * side. All predictions have one scale. */
#include "draw/draw.h"

#include <math.h>
#include <stdlib.h>

enum {
    MARGIN = 16,
    NAMES = 200, /* widths of the columns */
    BARS = 420,
    NUMBERS = 150,
    TEXT = 13,
    ROW = 20,
    HEADING = 26,
    BAR = 12,
    PICTURE = 112, /* pictures are scaled up to at least this width */
};

static const uint8_t blue[3] = {60, 110, 170}, orange[3] = {230, 120, 20};

typedef struct {
    const fds_result *r;
    fds__picture canvas;
    double low, high; /* the ends of the scale */
    size_t shown;     /* players of a prediction */
    size_t *order;    /* (players) of the current prediction */
    draw_brush brush; /* of the inputs; width 0: they are not drawn */
    const uint32_t *index;
    uint32_t left, top;
} figure;

static double error_of(const figure *f, size_t k, size_t player) {
    double error = fds_result_error(f->r, k, player);
    return isfinite(error) ? 1.96 * error : 0;
}

static uint32_t x_of(const figure *f, double value) {
    double part = (value - f->low) / (f->high - f->low);
    return f->left + NAMES + (uint32_t)lround(part * BARS);
}

static fds_status find_scale(figure *f, fds_error *err) {
    for (size_t k = 0; k < fds_result_predictions(f->r); k++) {
        TRY(fds_result_rank(f->r, k, f->order, err));
        for (size_t i = 0; i < f->shown; i++) {
            double value = fds_result_value(f->r, k, f->order[i]),
                   error = error_of(f, k, f->order[i]);
            f->low = fmin(f->low, value - error);
            f->high = fmax(f->high, value + error);
        }
    }
    if (f->high == f->low)
        f->high = 1;
    return FDS_OK;
}

static fds_status add_bar(figure *f, size_t k, size_t player, fds_error *err) {
    static const draw_type ink = {TEXT, draw_ink, false}, soft = {TEXT, draw_soft, false};
    char number[64];
    double value = fds_result_value(f->r, k, player), error = error_of(f, k, player);
    uint32_t zero = x_of(f, 0), end = x_of(f, value), middle = f->top + ROW / 2;
    draw_canvas_fill(&f->canvas, MIN(zero, end), middle - BAR / 2,
                     MAX(zero, end) - MIN(zero, end) + 1, BAR, value < 0 ? orange : blue);
    if (error > 0)
        draw_canvas_fill(&f->canvas, x_of(f, value - error), middle - 1,
                         x_of(f, value + error) - x_of(f, value - error) + 1, 2, draw_ink);
    snprintf(number, sizeof number,
             fds_result_is_regression(f->r) ? "%.4g \u00b1 %.2g" : "%.4f \u00b1 %.4f", value,
             error / 1.96);
    TRY(draw_canvas_text(&f->canvas, fds_result_player(f->r, player), &ink, f->left, f->top + 2,
                         NAMES - 12, err));
    TRY(draw_canvas_text(&f->canvas, number, &soft, f->left + NAMES + BARS + 12, f->top + 2,
                         NUMBERS - 12, err));
    f->top += ROW;
    return FDS_OK;
}

/* Of the bars of a prediction, or of its picture if that is higher. */
static uint32_t rows_height(const figure *f) {
    return MAX((uint32_t)(f->shown * ROW), f->brush.height);
}

static fds_status add_prediction(figure *f, size_t k, fds_error *err) {
    static const draw_type type = {TEXT + 1, draw_ink, false};
    const char *truth = fds_result_truth(f->r, k);
    char heading[512];
    int used = snprintf(
        heading, sizeof heading,
        fds_result_is_regression(f->r) ? "%.200s: target %.100s, utility %.4g with all players"
                                       : "%.200s: label %.100s, probability %.3f with all players",
        fds_result_input(f->r, k), fds_result_label(f->r, k), fds_result_full(f->r, k));
    if (truth)
        snprintf(heading + used, sizeof heading - (size_t)used, "; true %s %.100s",
                 fds_result_is_regression(f->r) ? "target" : "label", truth);
    TRY(draw_canvas_text(&f->canvas, heading, &type, MARGIN, f->top + 2,
                         f->canvas.width - 2 * MARGIN, err));
    f->top += HEADING;
    if (f->brush.width)
        draw_canvas_sample(&f->canvas, &f->brush, f->index ? f->index[k] : k, MARGIN, f->top);
    uint32_t end = f->top + rows_height(f);
    draw_canvas_fill(&f->canvas, x_of(f, 0), f->top, 1, (uint32_t)(f->shown * ROW), draw_soft);
    TRY(fds_result_rank(f->r, k, f->order, err));
    for (size_t i = 0; i < f->shown; i++)
        TRY(add_bar(f, k, f->order[i], err));
    f->top = end + MARGIN;
    return FDS_OK;
}

static fds_status draw(figure *f, const char *png_path, fds_error *err) {
    size_t predictions = fds_result_predictions(f->r);
    uint64_t height = 2 * MARGIN + (uint64_t)predictions * (HEADING + rows_height(f) + MARGIN);
    TRY(find_scale(f, err));
    TRY(draw_canvas_create(f->left + NAMES + BARS + NUMBERS + MARGIN, height, &f->canvas, err));
    f->top = MARGIN;
    for (size_t k = 0; k < predictions; k++)
        TRY(add_prediction(f, k, err));
    return fds__png_write(&f->canvas, png_path, err);
}

fds_status draw_result(const fds_result *r, const fds_dataset *pictures, const uint32_t *index,
                       size_t most, const char *png_path, fds_error *err) {
    size_t players = fds_result_players(r);
    figure f = {
        .r = r, .index = index, .left = MARGIN, .shown = players <= 2 * most ? players : most};
    if (pictures) {
        TRY(draw_brush_make(pictures, index, fds_result_predictions(r), PICTURE, &f.brush, err));
        f.left += f.brush.width + MARGIN;
    }
    TRY(NEW(f.order, players, err));
    fds_status status = draw(&f, png_path, err);
    fds__free(f.order);
    fds__free(f.canvas.pixels);
    return status;
}
