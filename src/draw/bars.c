/* SPDX-License-Identifier: Apache-2.0
 *
 * Horizontal bars on a logarithmic scale as inline SVG, each with its number and, where there is
 * one, the paper's number. A logarithmic scale has no 0: bars begin at the power of ten below the
 * least value, but not below a hundredth. Colours as in chart.c.
 */
#include "draw/draw.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 860,
    LEFT = 250,
    RIGHT = 660,
    HERE = 740, /* right ends of the columns: our numbers, the paper's */
    PAPER = 830,
    TOP = 40,
    ROW = 28,
    BAR = 16,
    MOST_LETTERS = 32,
};
#define LEAST 0.01

typedef struct scale {
    double low, high; /* powers of ten */
} scale;

static scale make_scale(const draw_bar *bars, size_t count) {
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < count; i++) {
        const double values[] = {bars[i].value, bars[i].mark};
        for (size_t k = 0; k < 2; k++)
            if (values[k] > 0) {
                least = fmin(least, values[k]);
                most = fmax(most, values[k]);
            }
    }
    if (!(most > 0))
        least = most = 1;
    int low = (int)floor(log10(fmax(least, LEAST)) + 1e-9);
    int high = (int)ceil(log10(fmax(most, LEAST)) - 1e-9);
    return (scale){pow(10, low), pow(10, high > low ? high : low + 1)};
}

static double x_of(scale s, double value) {
    double part = log(fmin(fmax(value, s.low), s.high) / s.low) / log(s.high / s.low);
    return LEFT + (RIGHT - LEFT) * part;
}

static void draw_grid(scale s, double bottom, fds__text *svg) {
    int first = (int)lround(log10(s.low)), last = (int)lround(log10(s.high));
    for (int power = first; power <= last; power++) {
        double value = pow(10, power), x = x_of(s, value);
        fds__text_print(svg, "<path class=\"grid\" d=\"M%s %dV%s\"/>", draw_at(x).text, TOP,
                        draw_at(bottom).text);
        draw_svg_number(svg, x, bottom + 18, "middle", power < 0 ? -power : 0, value);
        draw_markup(svg, "\n");
    }
}

/* A name; a long one ends in "…" and has all of it as its title. */
static void draw_name(double y, const char *name, fds__text *svg) {
    char start[4 * MOST_LETTERS + 8];
    size_t bytes = 0;
    for (size_t letters = 0; name[bytes]; bytes++) {
        letters += ((unsigned char)name[bytes] & 0xc0) != 0x80; /* bytes that begin a character */
        if (letters > MOST_LETTERS || bytes >= 4 * MOST_LETTERS)
            break;
        start[bytes] = name[bytes];
    }
    strcpy(start + bytes, name[bytes] ? "…" : "");
    draw_markup(svg, "<g><title>");
    draw_text(svg, name);
    draw_markup(svg, "</title>");
    draw_svg_text(svg, LEFT - 10, y, "end", start);
    draw_markup(svg, "</g>");
}

static void add_number(double x, double y, double value, fds__text *svg) {
    if (isfinite(value))
        draw_svg_number(svg, x, y, "end", draw_decimals(value), value);
}

static void add_bar(scale s, const draw_bar *bar, double middle, fds__text *svg) {
    double text_y = middle + 4.5;
    draw_name(text_y, bar->name, svg);
    draw_group_open(svg, bar->style, bar->is_control);
    if (isfinite(bar->value))
        fds__text_print(svg, "<path class=\"bar\" d=\"M%d %sH%sv%dH%dz\"/>", LEFT,
                        draw_at(middle - BAR / 2.0).text, draw_at(x_of(s, bar->value)).text, BAR,
                        LEFT);
    draw_markup(svg, "</g>");
    if (isfinite(bar->value) && bar->error > 0)
        fds__text_print(svg, "<path class=\"whisker\" d=\"M%s %sH%s\"/>",
                        draw_at(x_of(s, bar->value - bar->error)).text, draw_at(middle).text,
                        draw_at(x_of(s, bar->value + bar->error)).text);
    if (isfinite(bar->mark))
        fds__text_print(svg, "<path class=\"mark\" d=\"M%s %sv%d\"/>",
                        draw_at(x_of(s, bar->mark)).text, draw_at(middle - BAR / 2.0 - 3).text,
                        BAR + 6);
    add_number(HERE, text_y, bar->value, svg);
    draw_markup(svg, "<g class=\"soft\">");
    add_number(PAPER, text_y, bar->mark, svg);
    draw_markup(svg, "</g>\n");
}

void draw_bars(const char *title, const char *x_name, const draw_bar *bars, size_t count,
               fds__text *svg) {
    scale s = make_scale(bars, count);
    double bottom = TOP + ROW * (double)count;
    bool has_marks = false;
    for (size_t i = 0; i < count; i++)
        has_marks |= isfinite(bars[i].mark);
    draw_figure_open(svg, "bars", title, WIDTH, bottom + 46);
    draw_grid(s, bottom, svg);
    draw_svg_text(svg, HERE, TOP - 12, "end", "here");
    if (has_marks) {
        draw_markup(svg, "<g class=\"soft\">");
        draw_svg_text(svg, PAPER, TOP - 12, "end", "paper");
        fds__text_print(svg, "<path class=\"mark\" d=\"M%d %dv14\"/></g>\n", PAPER - 46, TOP - 23);
    }
    for (size_t i = 0; i < count; i++)
        add_bar(s, &bars[i], TOP + ROW * ((double)i + 0.5), svg);
    draw_svg_text(svg, RIGHT, bottom + 40, "end", x_name);
    draw_markup(svg, "</svg>\n</div>\n</figure>\n");
}
