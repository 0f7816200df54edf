/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts, numbers and pictures as they stand in the page. Whatever comes from outside goes through
 * eval_html_text, so that it cannot be taken for markup.
 */
#include "eval/report.h"

#include <math.h>
#include <string.h>

void eval_html(fds_text *html, const char *markup) { fds_text_add(html, markup, strlen(markup)); }

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
static void add_one(fds_text *html, const char **text) {
    const char *entity = entity_of((unsigned char)**text);
    size_t skipped = forbidden(*text);
    if (skipped)
        eval_html(html, "?");
    else if (entity)
        eval_html(html, entity);
    else
        fds_text_add(html, *text, 1);
    *text += skipped ? skipped : 1;
}

void eval_html_text(fds_text *html, const char *text) {
    while (*text)
        add_one(html, &text);
}

void eval_html_pointer(fds_text *html, const char *key) {
    while (*key)
        if (*key == '/' || *key == '~')
            eval_html(html, *key++ == '/' ? "~1" : "~0");
        else
            add_one(html, &key);
}

void eval_html_number(fds_text *html, int decimals, double value) {
    if (fabs(value) < 0.5 * pow(10, -decimals))
        value = 0;
    if (value < 0)
        eval_html(html, "\xe2\x88\x92"); /* a minus sign, as long as a plus */
    fds_text_fixed(html, decimals, fabs(value));
}

int eval_html_decimals(double value) {
    double size = fabs(value);
    bool is_far = size >= 99.95 || size < 0.0005;
    return is_far ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
}

void eval_value_name(fds_text *name, const char *value) {
    if (strcmp(value, "retrain") == 0)
        eval_html(name, "models trained until converged");
    else if (strncmp(value, "retrain:", 8) == 0) {
        eval_html(name, "models of ");
        eval_html(name, value + 8);
        eval_html(name, " epochs");
    } else
        eval_html(name, value);
}

void eval_html_value(fds_text *html, const char *value) {
    fds_text name = {0};
    eval_value_name(&name, value);
    if (name.data)
        eval_html_text(html, name.data);
    html->is_failed |= name.is_failed;
    fds_free(name.data);
}

void eval_html_png(fds_text *html, const uint8_t *data, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    eval_html(html, "data:image/png;base64,");
    for (size_t i = 0; i < size; i += 3) {
        size_t left = FDS_MIN(size - i, (size_t)3);
        uint32_t bits = (uint32_t)data[i] << 16;
        bits |= left > 1 ? (uint32_t)data[i + 1] << 8 : 0;
        bits |= left > 2 ? data[i + 2] : 0;
        char four[4];
        for (size_t k = 0; k < 4; k++)
            four[k] = k <= left ? digits[bits >> (18 - 6 * k) & 63] : '=';
        fds_text_add(html, four, sizeof four);
    }
}
