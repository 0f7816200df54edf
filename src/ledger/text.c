/* SPDX-License-Identifier: Apache-2.0
 *
 * What the texts of the log consist of: lines that end in a newline, base64, decimal numbers. There
 * is one way to write each value, and nothing else is read. */
#include "ledger/log.h"

#include <sodium.h>

/* ---- base64, without branches that depend on the data: keys go through it ---- */

size_t log_base64_encode(const void *data, size_t size, char *out) {
    size_t length = (size + 2) / 3 * 4;
    sodium_bin2base64(out, length + 1, data, size, sodium_base64_VARIANT_ORIGINAL);
    return length;
}

/* Encodes again and compares: libsodium 1.0.18 takes some bytes above 127 for letters. */
static bool is_encoding_of(const char *text, const uint8_t *data, size_t size) {
    enum { STEP = 192 }; /* a multiple of 3: only the last part has padding */
    char part[STEP / 3 * 4 + 1];
    bool is_same = true;
    for (size_t used = 0; used < size; used += STEP) {
        size_t length = log_base64_encode(data + used, MIN(size - used, STEP), part);
        is_same &= sodium_memcmp(text + used / 3 * 4, part, length) == 0;
    }
    sodium_memzero(part, sizeof part);
    return is_same;
}

bool log_base64_decode(const char *text, size_t length, uint8_t *out, size_t *size) {
    *size = 0;
    return length % 4 == 0 &&
           sodium_base642bin(out, length / 4 * 3, text, length, NULL, size, NULL,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
           (*size + 2) / 3 * 4 == length && is_encoding_of(text, out, *size);
}

bool log_hash_decode(const char *text, size_t length, log_hash *out) {
    uint8_t bytes[LOG_HASH64 / 4 * 3];
    size_t size;
    if (length != LOG_HASH64 || !log_base64_decode(text, length, bytes, &size) ||
        size != sizeof *out)
        return false;
    memcpy(out->bytes, bytes, sizeof *out);
    return true;
}

/* ---- lines ---- */

bool log_line_next(log_lines *lines) {
    size_t rest = (size_t)(lines->end - lines->at);
    const char *newline = rest ? memchr(lines->at, '\n', rest) : NULL;
    if (!newline)
        return false;
    lines->line = lines->at;
    lines->length = (size_t)(newline - lines->at);
    lines->at = newline + 1;
    return true;
}

bool log_line_is(const log_lines *lines, const char *text) {
    return lines->length == strlen(text) && memcmp(lines->line, text, lines->length) == 0;
}

bool log_line_skip(log_lines *lines, const char *text) {
    size_t length = strlen(text);
    if (lines->length < length || memcmp(lines->line, text, length) != 0)
        return false;
    lines->line += length;
    lines->length -= length;
    return true;
}

/* ---- numbers ---- */

bool log_number_parse(const char *text, size_t length, uint64_t *out) {
    uint64_t value = 0;
    if (length == 0 || (length > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (value > (LOG_SIZE_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}
