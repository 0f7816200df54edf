/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys, utility functions and pictures as they stand in the page.
 */
#include "report/report.h"

#include <string.h>

void report_pointer(fds__text *html, const char *key) {
    for (; *key; key++) {
        const char one[2] = {*key, 0};
        draw_text(html, *key == '/' ? "~1" : *key == '~' ? "~0" : one);
    }
}

void report_utility_name(fds__text *name, const char *value) {
    if (strcmp(value, "retrain") == 0)
        draw_markup(name, "models trained until converged");
    else if (strncmp(value, "retrain:", 8) == 0) {
        draw_markup(name, "models of ");
        draw_markup(name, value + 8);
        draw_markup(name, " epochs");
    } else
        draw_markup(name, value);
}

void report_utility(fds__text *html, const char *value) {
    fds__text name = {0};
    report_utility_name(&name, value);
    if (name.data)
        draw_text(html, name.data);
    html->is_failed |= name.is_failed;
    fds__free(name.data);
}

void report_png(fds__text *html, const uint8_t *data, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    draw_markup(html, "data:image/png;base64,");
    for (size_t i = 0; i < size; i += 3) {
        size_t left = MIN(size - i, (size_t)3);
        uint32_t bits = (uint32_t)data[i] << 16;
        bits |= left > 1 ? (uint32_t)data[i + 1] << 8 : 0;
        bits |= left > 2 ? data[i + 2] : 0;
        char four[4];
        for (size_t k = 0; k < 4; k++)
            four[k] = k <= left ? digits[bits >> (18 - 6 * k) & 63] : '=';
        fds__text_add(html, four, sizeof four);
    }
}
