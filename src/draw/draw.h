/* SPDX-License-Identifier: Apache-2.0
 *
 * draw: pictures as PNG, charts as SVG.
 *
 *   canvas.c, font.c  a picture to draw on
 *   sheet.c           samples of a dataset as one picture
 *   chart.c           curves as SVG; bars.c bars; markup.c texts and numbers
 */
#ifndef FDS_DRAW_H
#define FDS_DRAW_H

#include "data/data.h"

/* ---- font.c ---- */

#define FDS__FONT_WIDTH 6u
#define FDS__FONT_HEIGHT 10u
/* Bit x (from 0, left) of row y of a character's picture is set: ink. */
bool fds__font_ink(char character, unsigned x, unsigned y);

/* ---- canvas.c ---- */

extern const uint8_t fds__ink[3]; /* what text is drawn in */

/* A picture of light paper. FDS_ERR_LIMIT when it would be too large. */
fds_status fds__canvas_create(uint64_t width, uint64_t height, fds__picture *out, fds_error *err);
/* What lies outside of the canvas is not drawn. */
void fds__canvas_fill(fds__picture *canvas, uint32_t left, uint32_t top, uint32_t width,
                      uint32_t height, const uint8_t colour[3]);
/* Centred in width, scale times as large as the font; what does not fit is cut off, the last
 * character becoming a dot. */
void fds__canvas_text(fds__picture *canvas, const char *text, uint32_t scale, uint32_t left,
                      uint32_t top, uint32_t width);

/* How samples are drawn, so that all of a picture are drawn alike. */
typedef struct fds__brush {
    const fds_dataset *ds;
    float low, high;        /* floats in this range become black to white */
    uint32_t scale;         /* a whole number, so that no pixel is invented */
    uint32_t width, height; /* of a sample as drawn */
} fds__brush;

/* For the samples of index, to be drawn with both sides at least least pixels long. FDS_ERR_USAGE for
 * data that is no images. */
fds_status fds__brush_make(const fds_dataset *ds, const uint32_t *index, size_t count,
                           uint32_t least, fds__brush *out, fds_error *err);
/* It must lie within the canvas. */
void fds__canvas_sample(fds__picture *canvas, const fds__brush *brush, size_t sample, uint32_t left,
                        uint32_t top);

/* ---- chart.c, bars.c ---- */

/* One curve: y (and half the height of its band, or NULL) over the chart's x; NaN: no point. */
typedef struct draw_curve {
    const char *name;
    const double *y, *band;
    unsigned style;      /* colour, dashes and marker */
    bool is_control;     /* drawn grey and thin */
    const double *marks; /* y of thin marks, the paper's values, NaN: none; or NULL */
} draw_curve;

typedef struct draw_chart {
    const char *title, *x_name, *y_name; /* with units */
    const double *x;
    size_t points;
    const draw_curve *curves;
    size_t count;
    double base; /* a dashed line at this y, or NaN */
    const char *base_name;
    bool is_small; /* without a legend: curves look as in another chart */
} draw_chart;

/* A figure with inline SVG that follows the page's colours, and a legend beside the curves. Both
 * axes begin at 0. */
void draw_curves(const draw_chart *chart, fds__text *svg);

typedef struct draw_bar {
    const char *name;
    double value, error; /* NaN: none */
    double mark;         /* the paper's value, or NaN */
    unsigned style;
    bool is_control;
} draw_bar;

/* Horizontal bars on a logarithmic scale, each with its number. */
void draw_bars(const char *title, const char *x_name, const draw_bar *bars, size_t count,
               fds__text *svg);

/* ---- markup.c ---- */

void draw_markup(fds__text *html, const char *markup);
/* A text from outside, so that it is a text again in HTML, XML and attributes. */
void draw_text(fds__text *html, const char *text);
/* A number with so many decimals, a true minus sign, and no "-0". */
void draw_number(fds__text *html, int decimals, double value);
/* Decimals that leave about three digits, at most 3; none for what would be 0.000. */
int draw_decimals(double value);

#endif
