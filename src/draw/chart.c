/* SPDX-License-Identifier: Apache-2.0
 *
 * Curves as inline SVG. The page's style gives the colours, so that a chart follows light and dark
 * themes: a curve is drawn in currentColor within an element of class c0 to c7, or ctl for a
 * control. Curves differ by dashes and markers too, not by colour alone. Axes begin at 0; ticks are
 * 1, 2 or 5 times a power of ten. The legend is a list beside the drawing; on a narrow page it is
 * below.
 */
#include "draw/draw.h"

#include <math.h>

double draw_round_step(double value) {
    double power = pow(10, floor(log10(value))), digit = value / power;
    return power * (digit <= 1.000001 ? 1 : digit <= 2.000001 ? 2 : digit <= 5.000001 ? 5 : 10);
}

/* ---- how curves look ---- */

static const char *const dashes[DRAW_STYLES] = {"none", "8 3",     "3 3",         "10 3 2 3",
                                                "14 4", "1.5 2.5", "6 2 2 2 2 2", "5 2"};

/* Paths around the current point; the last three are lines. */
static const char *const markers[DRAW_STYLES] = {
    "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "m-3.2-3.2h6.4v6.4h-6.4z",
    "m0-4.5l4.2 7.5h-8.4z",
    "m0-4.8l4.2 4.8l-4.2 4.8l-4.2-4.8z",
    "m0 4.5l4.2-7.5h-8.4z",
    "m-4.5 0h9m-4.5-4.5v9",
    "m-3.5-3.5l7 7m0-7l-7 7",
    "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
};
enum { FIRST_LINE_MARKER = 5, MARKED_EVERY = 4 };

/* Attributes of a curve's line. */
static void add_stroke(fds__text *svg, const draw_curve *c) {
    fds__text_print(svg,
                    " fill=\"none\" stroke=\"currentColor\" stroke-width=\"%s\" "
                    "stroke-linejoin=\"round\" stroke-dasharray=\"%s\"/>",
                    c->is_control ? "1.5" : "2.2", dashes[c->style % DRAW_STYLES]);
}

static void add_marker_paint(fds__text *svg, const draw_curve *c) {
    bool is_line = c->style % DRAW_STYLES >= FIRST_LINE_MARKER;
    fds__text_print(svg, " fill=\"%s\" stroke=\"currentColor\" stroke-width=\"%s\"/>",
                    is_line ? "none" : "currentColor", is_line ? "1.6" : "0");
}

/* ---- the plane ---- */

typedef struct plane {
    const draw_chart *chart;
    double width, height, left, right, top, bottom; /* of the drawing, and of its plane */
    double x_high, y_high, x_step, y_step;
    bool is_cut; /* a control leaves the plane at the top */
} plane;

/* A control more than this many times as high as all other curves is cut off: it would press them
 * against the axis. */
#define MOST_ABOVE 2.5

static double x_of(const plane *p, double x) {
    return p->left + (p->right - p->left) * x / p->x_high;
}
static double y_of(const plane *p, double y) {
    return p->bottom - (p->bottom - p->top) * MAX(y, 0) / p->y_high;
}

static bool has_band(const draw_curve *c, size_t i) { return c->band && isfinite(c->band[i]); }

/* The height of a curve with its band and marks. */
static double height_of(const draw_chart *chart, const draw_curve *c) {
    double high = 0;
    for (size_t i = 0; i < chart->points; i++) {
        high = fmax(high, c->y[i] + (has_band(c, i) ? c->band[i] : 0));
        high = fmax(high, c->marks ? c->marks[i] : 0);
    }
    return high;
}

static plane make_plane(const draw_chart *chart) {
    plane p = {.chart = chart, .left = 42, .top = 38};
    p.width = chart->is_small ? 420 : 720;
    p.height = chart->is_small ? 270 : 420;
    p.right = p.width - 12;
    p.bottom = p.height - 50;
    p.y_high = fmax(0, chart->base); /* fmax ignores NaN */
    for (size_t i = 0; i < chart->points; i++)
        p.x_high = fmax(p.x_high, chart->x[i]);
    double controls = 0;
    for (size_t k = 0; k < chart->count; k++)
        if (chart->curves[k].is_control)
            controls = fmax(controls, height_of(chart, &chart->curves[k]));
        else
            p.y_high = fmax(p.y_high, height_of(chart, &chart->curves[k]));
    p.is_cut = controls > MOST_ABOVE * p.y_high && p.y_high > 0;
    p.y_high = p.is_cut ? p.y_high : fmax(p.y_high, controls);
    p.x_high = p.x_high > 0 ? p.x_high : 1;
    p.y_high = p.y_high > 0 ? p.y_high : 1;
    p.x_step = draw_round_step(p.x_high / 6);
    p.y_step = draw_round_step(p.y_high / 6);
    p.y_high = ceil(p.y_high / p.y_step - 1e-9) * p.y_step;
    return p;
}

static void draw_tick(const plane *p, double value, double step, bool is_x, fds__text *svg) {
    double at = is_x ? x_of(p, value) : y_of(p, value);
    int decimals = (int)fmax(0, -floor(log10(step) + 1e-9));
    if (is_x)
        fds__text_print(svg, "<path class=\"grid\" d=\"M%s %sV%s\"/>", draw_at(at).text,
                        draw_at(p->top).text, draw_at(p->bottom).text);
    else
        fds__text_print(svg, "<path class=\"grid\" d=\"M%s %sH%s\"/>", draw_at(p->left).text,
                        draw_at(at).text, draw_at(p->right).text);
    draw_svg_number(svg, is_x ? at : p->left - 7, is_x ? p->bottom + 19 : at + 4.5,
                    is_x ? "middle" : "end", decimals, value);
    draw_markup(svg, "\n");
}

static void draw_axes(const plane *p, fds__text *svg) {
    for (double k = 0; k * p->y_step <= p->y_high * 1.000001; k++)
        draw_tick(p, k * p->y_step, p->y_step, false, svg);
    for (double k = 0; k * p->x_step <= p->x_high * 1.000001; k++)
        draw_tick(p, k * p->x_step, p->x_step, true, svg);
    fds__text_print(svg, "<path class=\"axis\" d=\"M%s %sV%sH%s\"/>\n", draw_at(p->left).text,
                    draw_at(p->top).text, draw_at(p->bottom).text, draw_at(p->right).text);
    draw_svg_text(svg, 2, 16, "start", p->chart->y_name);
    draw_svg_text(svg, p->right, p->height - 8, "end", p->chart->x_name);
    draw_markup(svg, "\n");
}

/* ---- curves ---- */

/* " L12.5 7", with a move instead of a line where a run of points begins. */
static void add_point(const plane *p, bool is_first, double x, double y, fds__text *svg) {
    fds__text_print(svg, "%s%s %s", is_first ? "M" : "L", draw_at(x_of(p, x)).text,
                    draw_at(y_of(p, y)).text);
}

/* For each run of points that have a band: along its upper edge, and back along the lower one. */
static void draw_band(const plane *p, const draw_curve *c, fds__text *svg) {
    const double *x = p->chart->x;
    draw_markup(svg, "<path class=\"band\" d=\"");
    for (size_t first = 0, end; first < p->chart->points; first = end + 1) {
        for (end = first; end < p->chart->points && isfinite(c->y[end]) && has_band(c, end); end++)
            add_point(p, end == first, x[end], c->y[end] + c->band[end], svg);
        for (size_t i = end; i > first; i--)
            add_point(p, false, x[i - 1], c->y[i - 1] - c->band[i - 1], svg);
        if (end > first)
            draw_markup(svg, "Z");
    }
    draw_markup(svg, "\"/>");
}

/* The line is cut off where it leaves the plane. */
static void draw_line(const plane *p, const draw_curve *c, fds__text *svg) {
    const double *x = p->chart->x, *y = c->y;
    bool is_down = false; /* the pen */
    draw_markup(svg, "<path d=\"");
    for (size_t i = 0; i < p->chart->points; i++) {
        bool is_in = y[i] <= p->y_high, has_line = i > 0 && isfinite(y[i]) && isfinite(y[i - 1]);
        if (has_line && is_in != (y[i - 1] <= p->y_high)) {
            double part = (p->y_high - y[i - 1]) / (y[i] - y[i - 1]);
            add_point(p, !is_down, x[i - 1] + part * (x[i] - x[i - 1]), p->y_high, svg);
            is_down = true;
        }
        if (is_in)
            add_point(p, !is_down, x[i], y[i], svg);
        is_down = is_in;
    }
    draw_markup(svg, "\"");
    add_stroke(svg, c);
}

static void add_curve(const plane *p, const draw_curve *c, fds__text *svg) {
    const draw_chart *chart = p->chart;
    draw_group_open(svg, c->style, c->is_control);
    if (c->band && !(p->is_cut && height_of(chart, c) > p->y_high))
        draw_band(p, c, svg);
    draw_line(p, c, svg);
    if (!c->is_control) {
        /* few markers, those of different curves at different points */
        size_t every = chart->points > 2 * MARKED_EVERY ? MARKED_EVERY : 1;
        draw_markup(svg, "<path d=\"");
        for (size_t i = 0; i < chart->points; i++)
            if (isfinite(c->y[i]) && i % every == c->style % every) {
                add_point(p, true, chart->x[i], c->y[i], svg);
                draw_markup(svg, markers[c->style % DRAW_STYLES]);
            }
        draw_markup(svg, "\"");
        add_marker_paint(svg, c);
    }
    draw_markup(svg, "</g>\n");
}

static bool has_marks(const draw_chart *chart, const draw_curve *c) {
    bool has_any = false;
    for (size_t i = 0; c->marks && i < chart->points; i++)
        has_any |= isfinite(c->marks[i]);
    return has_any;
}

static void draw_marks(const plane *p, const draw_curve *c, fds__text *svg) {
    draw_group_open(svg, c->style, c->is_control);
    draw_markup(svg, "<path class=\"mark\" d=\"");
    for (size_t i = 0; i < p->chart->points; i++)
        if (isfinite(c->marks[i]))
            fds__text_print(svg, "M%s %sh16", draw_at(x_of(p, p->chart->x[i]) - 8).text,
                            draw_at(y_of(p, c->marks[i])).text);
    draw_markup(svg, "\"/></g>\n");
}

/* ---- the legend ---- */

static void open_key(fds__text *svg) {
    draw_markup(svg, "<li><svg class=\"key\" viewBox=\"0 0 40 14\" aria-hidden=\"true\">");
}

static void add_key(fds__text *svg, const draw_curve *c, bool is_cut) {
    open_key(svg);
    draw_group_open(svg, c->style, c->is_control);
    draw_markup(svg, "<path d=\"M1 7H39\"");
    add_stroke(svg, c);
    if (!c->is_control) {
        fds__text_print(svg, "<path d=\"M20 7%s\"", markers[c->style % DRAW_STYLES]);
        add_marker_paint(svg, c);
    }
    draw_markup(svg, "</g></svg><span>");
    draw_text(svg, c->name);
    draw_markup(svg, is_cut ? ", off the scale</span></li>\n" : "</span></li>\n");
}

static void add_legend(const plane *p, fds__text *svg) {
    const draw_chart *chart = p->chart;
    bool has_any_marks = false;
    draw_markup(svg, "<ul class=\"legend\">\n");
    for (size_t i = 0; i < chart->count; i++) {
        const draw_curve *c = &chart->curves[i];
        add_key(svg, c, p->is_cut && height_of(chart, c) > p->y_high);
        has_any_marks |= has_marks(chart, c);
    }
    if (isfinite(chart->base)) {
        open_key(svg);
        draw_markup(svg, "<path class=\"base\" d=\"M1 7H39\"/></svg><span>");
        draw_text(svg, chart->base_name);
        draw_markup(svg, "</span></li>\n");
    }
    if (has_any_marks) {
        open_key(svg);
        draw_markup(svg, "<path class=\"mark\" d=\"M12 7h16\"/></svg><span>"
                         "the paper’s value, in the colour of its method</span></li>\n");
    }
    draw_markup(svg, "</ul>\n");
}

void draw_curves(const draw_chart *chart, fds__text *svg) {
    plane p = make_plane(chart);
    draw_figure_open(svg, chart->is_small ? "chart small" : "chart", chart->title, p.width,
                     p.height);
    draw_axes(&p, svg);
    if (isfinite(chart->base))
        fds__text_print(svg, "<path class=\"base\" d=\"M%s %sH%s\"/>\n", draw_at(p.left).text,
                        draw_at(y_of(&p, chart->base)).text, draw_at(p.right).text);
    for (int turn = 0; turn < 2; turn++) /* controls first: the others cover them */
        for (size_t i = 0; i < chart->count; i++)
            if (chart->curves[i].is_control == (turn == 0))
                add_curve(&p, &chart->curves[i], svg);
    for (size_t i = 0; i < chart->count; i++)
        if (has_marks(chart, &chart->curves[i]))
            draw_marks(&p, &chart->curves[i], svg);
    draw_markup(svg, "</svg>\n");
    if (!chart->is_small)
        add_legend(&p, svg);
    draw_markup(svg, "</div>\n</figure>\n");
}
