/* SPDX-License-Identifier: Apache-2.0
 * The fields of a CSV file (RFC 4180), and of what spreadsheets write instead of it.
 *
 * Fields are separated by one of , ; tab |, which is found by looking: of those that the first line
 * has, the one that the next lines have as often, and then the commonest. A first line "sep=;" says
 * it. A field with a separator, quote or new line is quoted, and its quotes are doubled. Lines end
 * in LF, CRLF or CR; blank lines do not count.
 *
 * A scan does not change the file's bytes, so that it can be repeated; fds__field_text does. */
#include "data/data.h"

#include <string.h>

/* The end of a line that begins at `at`, quotes considered; counts[k] receives how often
 * separator k is outside of quotes. */
static const char *count_separators(const char *at, const char *end, size_t counts[4]) {
    bool is_quoted = false;
    memset(counts, 0, 4 * sizeof *counts);
    for (; at < end && (is_quoted || (*at != '\n' && *at != '\r')); at++) {
        const char *found = *at ? strchr(FDS__SEPARATORS, *at) : NULL;
        is_quoted ^= *at == '"';
        if (found && !is_quoted)
            counts[found - FDS__SEPARATORS]++;
    }
    return at;
}

/* How many of the next lines have separator k as often as the first one. */
static size_t count_alike(const char *at, const char *end, size_t k) {
    enum { LINES = 20 };
    size_t first[4], next[4], alike = 0;
    at = count_separators(at, end, first);
    for (size_t line = 0; line < LINES && at < end; line++) {
        while (at < end && (*at == '\n' || *at == '\r'))
            at++;
        if (at == end)
            break;
        at = count_separators(at, end, next);
        alike += next[k] == first[k];
    }
    return alike;
}

/* The comma last: where others are as good, it is in the numbers. */
static char find_separator(const char *at, const char *end) {
    static const size_t order[] = {1, 2, 3, 0};
    size_t counts[4], best = 0, best_alike = 0;
    bool is_found = false;
    count_separators(at, end, counts);
    for (size_t i = 0; i < 4; i++) {
        size_t k = order[i], alike = counts[k] ? count_alike(at, end, k) : 0;
        bool is_better = alike > best_alike || (alike == best_alike && counts[k] > counts[best]);
        if (counts[k] && (!is_found || is_better)) {
            best = k;
            best_alike = alike;
            is_found = true;
        }
    }
    return FDS__SEPARATORS[best];
}

/* "sep=;", as spreadsheets write it for themselves. */
static void skip_declaration(fds__scanner *s) {
    if (s->end - s->at < 6 || memcmp(s->at, "sep=", 4) != 0 || !strchr(FDS__SEPARATORS, s->at[4]) ||
        (s->at[5] != '\n' && s->at[5] != '\r'))
        return;
    s->separator = s->at[4];
    s->at += 5;
    fds__scan_line(s);
}

fds_status fds__scan_begin(const fds__blob *file, char separator, fds__scanner *s, fds_error *err) {
    char *text = (char *)file->data;
    size_t length = strlen(text);
    if (file->size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: byte 0: the text is UTF-16; save it as \"CSV UTF-8\"", file->path);
    if (length != file->size)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: byte %zu: NUL in a text file", file->path,
                         length);
    *s = (fds__scanner){.path = file->path, .at = text, .end = text + file->size, .line = 1};
    s->at += fds__utf8_mark(file->data, file->size);
    fds__scan_line(s);
    skip_declaration(s);
    if (!s->separator)
        s->separator = find_separator(s->at, s->end);
    if (separator)
        s->separator = separator;
    return FDS_OK;
}

bool fds__scan_line(fds__scanner *s) {
    for (; s->at < s->end && (*s->at == '\n' || *s->at == '\r'); s->at++)
        s->line += *s->at == '\n' || s->at[1] != '\n';
    return s->at < s->end;
}

static fds_status scan_quoted(fds__scanner *s, fds__field *field, fds_error *err) {
    size_t opened = s->line;
    field->text = ++s->at;
    field->is_quoted = true;
    for (; s->at < s->end; s->at++) {
        if (*s->at == '"' && s->at[1] != '"')
            break;
        s->at += *s->at == '"';
        s->line += *s->at == '\n';
    }
    if (s->at >= s->end)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: a quoted field is not closed", s->path,
                         opened);
    field->length = (size_t)(s->at++ - field->text);
    return FDS_OK;
}

static fds_status scan_plain(fds__scanner *s, fds__field *field, fds_error *err) {
    field->text = s->at;
    while (s->at < s->end && *s->at != s->separator && !strchr("\n\r\"", *s->at))
        s->at++;
    field->length = (size_t)(s->at - field->text);
    if (s->at < s->end && *s->at == '"')
        return fds__fail(
            err, FDS_ERR_FORMAT,
            "%s: line %zu: a quote inside a field; quote the whole field and double the quote",
            s->path, s->line);
    return FDS_OK;
}

fds_status fds__scan_field(fds__scanner *s, fds__field *field, bool *is_last, fds_error *err) {
    *field = (fds__field){.text = s->at};
    TRY(s->at < s->end && *s->at == '"' ? scan_quoted(s, field, err) : scan_plain(s, field, err));
    char stop = s->at < s->end ? *s->at : '\n';
    if (stop != s->separator && stop != '\n' && stop != '\r')
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu: byte 0x%02x after a field; it must end in %s or a new line",
                         s->path, s->line, (unsigned char)stop, fds__separator_name(s->separator));
    *is_last = stop != s->separator;
    s->line += *is_last;
    bool is_crlf = stop == '\r' && s->at + 1 < s->end && s->at[1] == '\n';
    s->at += s->at < s->end ? 1 + is_crlf : 0;
    return FDS_OK;
}

fds_status fds__scan_pair(fds__scanner *s, const char *what, fds__field fields[2], fds_error *err) {
    size_t line = s->line, count = 0;
    for (bool is_last = false; !is_last; count++) {
        fds__field field;
        TRY(fds__scan_field(s, &field, &is_last, err));
        if (count < 2)
            fields[count] = field;
    }
    return count == 2 ? FDS_OK
                      : fds__fail(err, FDS_ERR_FORMAT,
                                  "%s: line %zu: %zu fields; a line must have two: %s", s->path,
                                  line, count, what);
}

char *fds__field_text(const fds__field *field) {
    char *write = field->text;
    for (size_t i = 0; i < field->length; i++) {
        *write++ = field->text[i];
        i += field->is_quoted && field->text[i] == '"'; /* of two quotes one remains */
    }
    *write = 0; /* where a separator, a quote, a new line or the file's own NUL was */
    return fds__name_trim(field->text);
}

const char *fds__separator_name(char separator) {
    static const char *const names[] = {"a comma", "a semicolon", "a tab", "a vertical bar"};
    const char *at = separator ? strchr(FDS__SEPARATORS, separator) : NULL;
    return at ? names[at - FDS__SEPARATORS] : "?";
}
