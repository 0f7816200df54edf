/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts and numbers in SVG and HTML, and what all charts share. Every text from outside goes
 * through draw_text, so that a browser cannot take it for markup.
 */
#include "draw/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void draw_markup(fds__text *html, const char *markup) {
    fds__text_add(html, markup, strlen(markup));
}

/* What replaces the character at text, of size bytes; NULL: the one byte stays as it is. XML and
 * HTML have no control characters, no U+FFFE and no U+FFFF. */
static const char *replacement(const char *text, size_t *size) {
    static const char special[] = "&<>\"'\t\n\r";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;",
                                           "&#39;", " ",    " ",    " "};
    const unsigned char *byte = (const unsigned char *)text;
    const char *found = strchr(special, *text);
    bool is_control = byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0; /* U+0080 to U+009F */
    bool is_none = byte[0] == 0xef && byte[1] == 0xbf && byte[2] >= 0xbe;
    *size = is_control ? 2 : is_none ? 3 : 1;
    if (found)
        return entities[found - special];
    return is_control || is_none || byte[0] < 0x20 || byte[0] == 0x7f ? "?" : NULL;
}

void draw_text(fds__text *html, const char *text) {
    for (size_t size; *text; text += size) {
        const char *instead = replacement(text, &size);
        if (instead)
            draw_markup(html, instead);
        else
            fds__text_add(html, text, 1);
    }
}

void draw_number(fds__text *html, int decimals, double value) {
    if (fabs(value) < 0.5 * pow(10, -decimals))
        value = 0;
    if (value < 0)
        draw_markup(html, "\xe2\x88\x92"); /* a minus sign, as long as a plus */
    fds__text_fixed(html, decimals, fabs(value));
}

int draw_decimals(double value) {
    double size = fabs(value);
    bool is_far = size >= 99.95 || size < 0.0005;
    return is_far ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
}

/* ---- for charts ---- */

draw_coordinate draw_at(double value) {
    draw_coordinate out;
    long tenths = lround(10 * value);
    const char *sign = tenths < 0 ? "-" : "";
    if (tenths % 10 == 0)
        snprintf(out.text, sizeof out.text, "%s%ld", sign, labs(tenths) / 10);
    else
        snprintf(out.text, sizeof out.text, "%s%ld.%ld", sign, labs(tenths) / 10,
                 labs(tenths) % 10);
    return out;
}

static void open_text(fds__text *svg, double x, double y, const char *anchor) {
    fds__text_print(svg, "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\">", draw_at(x).text,
                    draw_at(y).text, anchor);
}

void draw_svg_text(fds__text *svg, double x, double y, const char *anchor, const char *text) {
    open_text(svg, x, y, anchor);
    draw_text(svg, text);
    draw_markup(svg, "</text>");
}

void draw_svg_number(fds__text *svg, double x, double y, const char *anchor, int decimals,
                     double value) {
    open_text(svg, x, y, anchor);
    draw_number(svg, decimals, value);
    draw_markup(svg, "</text>");
}

void draw_figure_open(fds__text *svg, const char *classes, const char *title, double width,
                      double height) {
    fds__text_print(svg, "<figure class=\"%s\">\n<figcaption>", classes);
    draw_markup(svg, title);
    fds__text_print(svg,
                    "</figcaption>\n<div>\n"
                    "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 %s %s\">\n<title>",
                    draw_at(width).text, draw_at(height).text);
    draw_markup(svg, title);
    draw_markup(svg, "</title>\n");
}

void draw_group_open(fds__text *svg, unsigned style, bool is_control) {
    if (is_control)
        draw_markup(svg, "<g class=\"ctl\">");
    else
        fds__text_print(svg, "<g class=\"c%u\">", style % DRAW_STYLES);
}
