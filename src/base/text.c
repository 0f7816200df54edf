/* SPDX-License-Identifier: Apache-2.0
 * Texts that grow. Numbers have a point in every locale, and as few digits as bring the same bits
 * back. */
#include "base/base.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void fds_text_add(fds_text *text, const char *part, size_t size) {
    void *data = text->data;
    if (text->is_failed ||
        fds_grow(&data, &text->capacity, text->used + size + 1, 1, NULL) != FDS_OK) {
        text->is_failed = true;
        return;
    }
    text->data = data;
    memcpy(text->data + text->used, part, size);
    text->used += size;
    text->data[text->used] = 0;
}

void fds_text_print(fds_text *text, const char *format, ...) {
    char part[1024];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(part, sizeof part, format, args);
    va_end(args);
    if (size < 0 || (size_t)size >= sizeof part)
        text->is_failed = true;
    else
        fds_text_add(text, part, (size_t)size);
}

/* Of a number that printf has written in some locale. */
static void put_point(char *number) {
    char *comma = strchr(number, ',');
    if (comma)
        *comma = '.';
}

static void add_number(fds_text *text, char *number, int size) {
    put_point(number);
    fds_text_add(text, number, (size_t)size);
}

void fds_text_digits(fds_text *text, int digits, double value) {
    char number[64];
    add_number(text, number, snprintf(number, sizeof number, "%.*g", digits, value));
}

void fds_text_fixed(fds_text *text, int decimals, double value) {
    char number[352]; /* the greatest double has 309 digits */
    add_number(text, number, snprintf(number, sizeof number, "%.*f", decimals, value));
}

void fds_write_double(double value, char text[FDS_NUMBER]) {
    value = isnan(value) ? NAN : value; /* whatever its sign */
    int digits = 15;
    do
        snprintf(text, FDS_NUMBER, "%.*g", digits, value);
    while (strtod(text, NULL) != value && ++digits <= 17);
    put_point(text);
}

void fds_text_double(fds_text *text, double value) {
    char number[FDS_NUMBER];
    fds_write_double(value, number);
    fds_text_add(text, number, strlen(number));
}

void fds_text_float(fds_text *text, float value) {
    char part[64];
    int digits = 6;
    do
        snprintf(part, sizeof part, "%.*g", digits, (double)value);
    while (strtof(part, NULL) != value && ++digits < 9);
    fds_text_digits(text, digits, (double)value);
}

bool fds_csv_is_quoted(const char *field) {
    size_t size = strlen(field);
    return field[strcspn(field, ",\"\r\n")] != 0 ||
           (size && (field[0] == ' ' || field[size - 1] == ' '));
}

fds_status fds_text_check(const fds_text *text, fds_error *err) {
    return text->is_failed || !text->data ? fds_fail_nomem(err, text->used + 1024) : FDS_OK;
}
