/* SPDX-License-Identifier: Apache-2.0
 * Growing texts, UTF-8, fields of CSV files. Numbers have a point in every locale and the fewest
 * digits that read back as the same bits. */
#include "base/base.h"

#include <locale.h>
#include <float.h>
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

char *fds__digits(uint64_t value, char digits[FDS__DIGITS]) {
    char *at = digits + FDS__DIGITS;
    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    return at;
}

void fds__text_int(fds__text *text, int64_t value) {
    char digits[FDS__DIGITS];
    char *at = fds__digits(value < 0 ? -(uint64_t)value : (uint64_t)value, digits);
    if (value < 0)
        fds__text_add(text, "-", 1);
    fds__text_add(text, at, (size_t)(digits + sizeof digits - at));
}

/* printf writes a comma in some locales. */
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
    assert(digits >= 0 && digits <= 40);
    add_number(text, number, snprintf(number, sizeof number, "%.*g", digits, value));
}

/* Writes 10^(count-1) <= m < 10^count, whose first digit stands for 10^e, as "%.*g" would with so many
 * digits; returns the end. */
static char *put_digits(char *at, uint64_t m, int count, int e) {
    static const char pairs[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char digits[17];
    int kept = count, i = count;
    int point = e < -4 || e >= count ? 1 : e + 1; /* digits before the point */
    for (; i >= 2; i -= 2, m /= 100)
        memcpy(digits + i - 2, pairs + m % 100 * 2, 2);
    if (i)
        digits[0] = (char)('0' + m);
    while (kept > 1 && digits[kept - 1] == '0')
        kept--;
    if (point <= 0) {
        memcpy(at, "0.0000", (size_t)(2 - point));
        at += 2 - point;
    }
    const int before = point > 0 ? point : kept; /* digits up to a point within them */
    memcpy(at, digits, (size_t)before);
    at += before;
    if (kept > before) {
        *at++ = '.';
        memcpy(at, digits + before, (size_t)(kept - before));
        at += kept - before;
    }
    if (e < -4 || e >= count)
        at += sprintf(at, "e%c%02d", e < 0 ? '-' : '+', abs(e));
    return at;
}

void fds__text_nine(fds__text *text, double value) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}; /* all exact */
    enum { SMALLEST = -14 };
    char number[40], *at = number;
    double size = fabs(value);
    int e = SMALLEST;
    if (!(size >= 1e-14 && size < 1e9)) {
        if (size == 0)
            fds__text_add(text, "0", 1);
        else
            fds__text_digits(text, 9, value);
        return;
    }
    while (e < 8 && size >= (e < -1 ? 1 / tens[-e - 1] : tens[e + 1]))
        e++;
    double scaled = size * tens[8 - e];
    uint32_t m = (uint32_t)(scaled + 0.5);
    if (m < 100000000) { /* 1/10^k is rounded, so e may be one too large */
        e--;
        m = (uint32_t)(size * tens[8 - e] + 0.5);
    }
    if (m >= 1000000000) {
        e++;
        m /= 10;
    }
    if (value < 0)
        *at++ = '-';
    at = put_digits(at, m, 9, e);
    fds__text_add(text, number, (size_t)(at - number));
}

void fds__text_fixed(fds__text *text, int decimals, double value) {
    char number[352]; /* the greatest double has 309 digits */
    assert(decimals >= 0 && decimals <= 30);
    add_number(text, number, snprintf(number, sizeof number, "%.*f", decimals, value));
}

/* Powers of ten that a long double of 64 bits has exactly. */
static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                     1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                     1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                     1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

/* m: size, whose first digit stands for 10^e, rounded to so many digits. Whether that is certain, and
 * whether m reads back as size; -1: not certain. */
static int round_digits(double size, int digits, int e, uint64_t *m) {
    const long double power = powers[digits - 1 - e], scaled = (long double)size * power;
    *m = (uint64_t)scaled;
    const long double rest = scaled - (long double)*m;
    *m += rest > 0.5L;
    if (fabsl(rest - 0.5L) <= scaled * 0x1p-63L || *m >= (uint64_t)powers[digits])
        return -1;
    if (digits == 17)
        return 1;
    const long double back = (long double)*m / power;
    const double low = (double)(back * (1 - 0x1p-62L)), high = (double)(back * (1 + 0x1p-62L));
    return low == high ? low == size : -1;
}

/* The fewest digits that read back, as printf would find them, and how many characters; 0: it must. */
static size_t write_quickly(double value, char *text) {
    const double size = fabs(value);
    uint64_t m;
    int e = -10, digits = 15, is_found;
    if (LDBL_MANT_DIG < 64 || !(size >= 1e-10 && size < 1e14))
        return 0;
    while (e < 13 && (e < -1 ? (long double)size * powers[-e - 1] >= 1 : size >= powers[e + 1]))
        e++;
    while (!(is_found = round_digits(size, digits, e, &m)))
        digits++;
    if (is_found < 0)
        return 0;
    *text = '-';
    char *end = put_digits(text + (value < 0), m, digits, e);
    *end = 0;
    return (size_t)(end - text);
}

size_t fds__write_double(double value, char text[FDS__NUMBER]) {
    const size_t size = write_quickly(value, text);
    if (size)
        return size;
    value = isnan(value) ? NAN : value; /* drops the sign */
    int digits = 15;
    do
        snprintf(text, FDS__NUMBER, "%.*g", digits, value);
    while (strtod(text, NULL) != value && ++digits <= 17);
    put_point(text);
    return strlen(text);
}

double fds__read_double(const char *text, char **end) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* takes no memory */
    double value = strtod_l(text, end, plain);
    freelocale(plain);
    return value;
}

void fds__text_double(fds__text *text, double value) {
    char number[FDS__NUMBER];
    fds__text_add(text, number, fds__write_double(value, number));
}

void fds__text_float(fds__text *text, float value) {
    char part[64];
    int digits = 6;
    do
        snprintf(part, sizeof part, "%.*g", digits, (double)value);
    while (strtof(part, NULL) != value && ++digits < 9);
    fds__text_digits(text, digits, (double)value);
}

size_t fds__utf8(const char *text, uint32_t *code) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    size_t size = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if ((at[0] >= 0x80 && at[0] < 0xc0) || at[0] >= 0xf8)
        return 0;
    *code = size == 1 ? at[0] : at[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3fu);
    }
    bool is_surrogate = *code >= 0xd800 && *code < 0xe000;
    return *code < smallest[size] || *code > 0x10ffff || is_surrogate ? 0 : size;
}

bool fds__is_control(uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

void fds__text_sanitize(char *text) {
    char *to = text;
    uint32_t code = 0;
    for (size_t size; *text; text += MAX(size, 1)) {
        size = fds__utf8(text, &code);
        bool is_shown = size && (!fds__is_control(code) || code == '\n' || code == '\t');
        memmove(to, is_shown ? text : "?", is_shown ? size : 1);
        to += is_shown ? size : 1;
    }
    *to = 0;
}

bool fds__is_utf8(const char *text) {
    uint32_t code;
    size_t size = 1;
    for (; *text && size; text += size)
        size = fds__utf8(text, &code);
    return size > 0;
}

static bool is_number(const char *text) {
    static const char digits[] = "0123456789";
    const char *start = text += *text == '-' || *text == '+';
    text += strspn(text, digits);
    text += *text == '.' ? 1 + strspn(text + 1, digits) : 0;
    if (text > start && (*text == 'e' || *text == 'E')) {
        text += 1 + (text[1] == '-' || text[1] == '+');
        text += strspn(text, digits);
    }
    return text > start && !*text;
}

void fds__text_csv(fds__text *text, const char *field) {
    size_t size = strlen(field);
    bool is_formula = *field && strchr("=+-@\t\r", *field) && !is_number(field);
    bool is_quoted = is_formula || field[strcspn(field, ",\"\r\n")] ||
                     (size && (field[0] == ' ' || field[size - 1] == ' '));
    if (is_quoted)
        fds__text_add(text, is_formula ? "\"'" : "\"", is_formula ? 2 : 1);
    for (const char *quote; (quote = strchr(field, '"')); field = quote + 1) {
        fds__text_add(text, field, (size_t)(quote + 1 - field));
        fds__text_add(text, "\"", 1);
    }
    fds__text_add(text, field, strlen(field));
    if (is_quoted)
        fds__text_add(text, "\"", 1);
}

fds_status fds__text_check(const fds__text *text, fds_error *err) {
    return text->is_failed || !text->data ? fds__fail_nomem(err, text->used + 1024) : FDS_OK;
}

/* ---- NPY ---- */

/* Magic number, version 1.0, length of the rest in two bytes; then a dictionary, padded with blanks
 * and a newline so that the numbers begin at a multiple of 64. */
size_t fds__npy_header(const char *descr, const char *shape, char out[FDS__NPY_HEADER]) {
    enum { ALIGN = 64 };
    int used = snprintf(out, FDS__NPY_HEADER,
                        "\x93NUMPY%c%c%c%c{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                        1, 0, 0, 0, descr, shape);
    size_t size = ((size_t)used + 1 + ALIGN - 1) / ALIGN * ALIGN;
    assert(size <= FDS__NPY_HEADER);
    memset(out + used, ' ', size - (size_t)used);
    out[size - 1] = '\n';
    out[8] = (char)((size - 10) & 0xff);
    out[9] = (char)((size - 10) >> 8);
    return size;
}
