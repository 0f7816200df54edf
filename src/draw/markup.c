/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts and numbers as they stand in SVG and HTML. Whatever comes from outside goes through
 * draw_text, so that it cannot be taken for markup.
 */
#include "draw/draw.h"

#include <math.h>
#include <string.h>

void draw_markup(fds__text *html, const char *markup) {
    fds__text_add(html, markup, strlen(markup));
}

/* What a byte must be written as, NULL for itself. Control characters are none in XML. */
static const char *entity_of(unsigned char byte) {
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\t':
    case '\n':
    case '\r':
        return " ";
    default:
        return byte < 0x20 || byte == 0x7f ? "?" : NULL;
    }
}

/* Bytes of a character beyond ASCII that XML or HTML does not have: U+0080 to U+009F, U+FFFE and
 * U+FFFF; 0 for any other. */
static size_t forbidden(const char *at) {
    const unsigned char *byte = (const unsigned char *)at;
    if (byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0)
        return 2;
    return byte[0] == 0xef && byte[1] == 0xbf && byte[2] >= 0xbe ? 3 : 0;
}

/* The byte or forbidden character at *text, which is moved on. */
static void add_one(fds__text *html, const char **text) {
    const char *entity = entity_of((unsigned char)**text);
    size_t skipped = forbidden(*text);
    if (skipped)
        draw_markup(html, "?");
    else if (entity)
        draw_markup(html, entity);
    else
        fds__text_add(html, *text, 1);
    *text += skipped ? skipped : 1;
}

void draw_text(fds__text *html, const char *text) {
    while (*text)
        add_one(html, &text);
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
