/* SPDX-License-Identifier: Apache-2.0
 *
 * draw: pictures as PNG, charts as SVG.
 *
 *   canvas.c  a picture to draw on
 *   sheet.c   samples of a dataset as one picture
 *   result.c  values of a result as bars
 *   chart.c   curves as SVG; bars.c bars
 *   markup.c  texts and numbers in SVG and HTML
 */
#ifndef FDS_DRAW_H
#define FDS_DRAW_H

#include "data/data.h"

/* ---- canvas.c ---- */

/* An empty picture, as light as paper. FDS_ERR_LIMIT when it would be too large. */
fds_status draw_canvas_create(uint64_t width, uint64_t height, fds__picture *out, fds_error *err);
/* Draws only what lies within the canvas. */
void draw_canvas_fill(fds__picture *canvas, uint32_t left, uint32_t top, uint32_t width,
                      uint32_t height, const uint8_t colour[3]);

extern const uint8_t draw_paper[3], draw_ink[3], draw_soft[3]; /* soft: grey text */

typedef struct draw_type {
    uint32_t size; /* pixels per em */
    const uint8_t *colour;
    bool is_centred; /* else it begins at the left */
} draw_type;

static inline uint32_t draw_line_height(uint32_t size) { return size + (size + 2) / 4; }
/* One line, whose left top corner is within the canvas. Text wider than width ends in "…". */
fds_status draw_canvas_text(fds__picture *canvas, const char *text, const draw_type *type,
                            uint32_t left, uint32_t top, uint32_t width, fds_error *err);
fds_status draw_text_width(const char *text, uint32_t size, uint32_t *width, fds_error *err);

/* How to draw samples: the same for all samples of a picture. */
typedef struct draw_brush {
    const fds_dataset *ds;
    float low, high;        /* drawn black, drawn white (floats only) */
    uint32_t scale;         /* pixels of the picture per pixel of a sample, along a side */
    uint32_t width, height; /* of a sample in the picture */
} draw_brush;

/* A brush for the samples of index, with both sides at least least pixels long. FDS_ERR_USAGE for
 * data that is not images. */
fds_status draw_brush_make(const fds_dataset *ds, const uint32_t *index, size_t count,
                           uint32_t least, draw_brush *out, fds_error *err);
/* The sample must lie within the canvas. */
void draw_canvas_sample(fds__picture *canvas, const draw_brush *brush, size_t sample, uint32_t left,
                        uint32_t top);

/* ---- result.c ---- */

/* A PNG with the most greatest values of each prediction, or with all if there are at most twice as
 * many. pictures: the inputs, beside their bars, or NULL; index: which samples they are, or NULL. */
fds_status draw_result(const fds_result *r, const fds_dataset *pictures, const uint32_t *index,
                       size_t most, const char *png_path, fds_error *err);

/* ---- chart.c, bars.c ---- */

/* One curve: y over the chart's x, with half the height of its band (or NULL); NaN: no point. */
typedef struct draw_curve {
    const char *name;
    const double *y, *band;
    unsigned style;      /* colour, dashes and marker */
    bool is_control;     /* drawn grey and thin */
    const double *marks; /* y of thin marks, the paper's values, NaN: none; or NULL */
} draw_curve;

typedef struct draw_chart {
    const char *title;           /* markup */
    const char *x_name, *y_name; /* with units */
    const double *x;
    size_t points;
    const draw_curve *curves;
    size_t count;
    double base; /* a dashed line at this y, or NaN */
    const char *base_name;
    bool is_small; /* without a legend: another chart has the same curves */
} draw_chart;

/* The least of 1, 2 or 5 times a power of ten that is not below value, which is above 0. */
double draw_round_step(double value);

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

/* A figure of horizontal bars on a logarithmic scale, each with its number. title: markup. */
void draw_bars(const char *title, const char *x_name, const draw_bar *bars, size_t count,
               fds__text *svg);

/* ---- markup.c ---- */

void draw_markup(fds__text *html, const char *markup);
/* A text from outside, escaped for HTML, XML and attributes. */
void draw_text(fds__text *html, const char *text);
/* A number with that many decimals, a true minus sign, and no "-0". */
void draw_number(fds__text *html, int decimals, double value);
/* The decimals for about three digits, at most 3; 0 for a value that would become 0.000. */
int draw_decimals(double value);

/* For charts: a coordinate below 1e9, with at most one decimal. */
typedef struct draw_coordinate {
    char text[32];
} draw_coordinate;
draw_coordinate draw_at(double value);
/* A text or a number at a point; anchor: "start", "middle" or "end". */
void draw_svg_text(fds__text *svg, double x, double y, const char *anchor, const char *text);
void draw_svg_number(fds__text *svg, double x, double y, const char *anchor, int decimals,
                     double value);
/* A figure with its caption up to the beginning of the drawing in its SVG. title: markup. */
void draw_figure_open(fds__text *svg, const char *classes, const char *title, double width,
                      double height);
/* A group in the colour of a curve or bar. */
void draw_group_open(fds__text *svg, unsigned style, bool is_control);
enum { DRAW_STYLES = 8 };

#endif
