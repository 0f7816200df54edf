/* SPDX-License-Identifier: Apache-2.0
 * Texts that grow. Numbers have a point in every locale, and as few digits as bring the same bits
 * back. */
#include "base/base.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void fds__text_add(fds__text *text, const char *part, size_t size) {
    void *data = text->data;
    if (text->is_failed ||
        fds__grow(&data, &text->capacity, text->used + size + 1, 1, NULL) != FDS_OK) {
        text->is_failed = true;
        return;
    }
    text->data = data;
    memcpy(text->data + text->used, part, size);
    text->used += size;
    text->data[text->used] = 0;
}

void fds__text_print(fds__text *text, const char *format, ...) {
    char part[1024];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(part, sizeof part, format, args);
    va_end(args);
    if (size < 0 || (size_t)size >= sizeof part)
        text->is_failed = true;
    else
        fds__text_add(text, part, (size_t)size);
}

/* Of a number that printf has written in some locale. */
static void put_point(char *number) {
    char *comma = strchr(number, ',');
    if (comma)
        *comma = '.';
}

static void add_number(fds__text *text, char *number, int size) {
    put_point(number);
    fds__text_add(text, number, (size_t)size);
}

void fds__text_digits(fds__text *text, int digits, double value) {
    char number[64];
    add_number(text, number, snprintf(number, sizeof number, "%.*g", digits, value));
}

void fds__text_fixed(fds__text *text, int decimals, double value) {
    char number[352]; /* the greatest double has 309 digits */
    add_number(text, number, snprintf(number, sizeof number, "%.*f", decimals, value));
}

void fds__write_double(double value, char text[FDS__NUMBER]) {
    value = isnan(value) ? NAN : value; /* whatever its sign */
    int digits = 15;
    do
        snprintf(text, FDS__NUMBER, "%.*g", digits, value);
    while (strtod(text, NULL) != value && ++digits <= 17);
    put_point(text);
}

double fds__read_double(const char *text, char **end) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* takes no memory */
    double value = strtod_l(text, end, plain);
    freelocale(plain);
    return value;
}

void fds__text_double(fds__text *text, double value) {
    char number[FDS__NUMBER];
    fds__write_double(value, number);
    fds__text_add(text, number, strlen(number));
}

void fds__text_float(fds__text *text, float value) {
    char part[64];
    int digits = 6;
    do
        snprintf(part, sizeof part, "%.*g", digits, (double)value);
    while (strtof(part, NULL) != value && ++digits < 9);
    fds__text_digits(text, digits, (double)value);
}

bool fds__csv_is_quoted(const char *field) {
    size_t size = strlen(field);
    return field[strcspn(field, ",\"\r\n")] != 0 ||
           (size && (field[0] == ' ' || field[size - 1] == ' '));
}

void fds__text_csv(fds__text *text, const char *field) {
    bool is_quoted = fds__csv_is_quoted(field);
    if (is_quoted)
        fds__text_add(text, "\"", 1);
    for (; *field; field++)
        fds__text_add(text, *field == '"' ? "\"\"" : field, *field == '"' ? 2 : 1);
    if (is_quoted)
        fds__text_add(text, "\"", 1);
}

fds_status fds__text_check(const fds__text *text, fds_error *err) {
    return text->is_failed || !text->data ? fds__fail_nomem(err, text->used + 1024) : FDS_OK;
}
