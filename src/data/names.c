/* SPDX-License-Identifier: Apache-2.0
 * Names of classes and providers: checking, copying, numbering the distinct ones, reading lists. */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

char *fds__name_trim(char *name) {
    static const char blanks[] = " \t\r";
    name += strspn(name, blanks);
    size_t size = strlen(name);
    while (size && strchr(blanks, name[size - 1]))
        size--;
    name[size] = 0;
    return name;
}

size_t fds__name_quoted(const char *list, char *out, size_t size) {
    const char *at = list + strspn(list, " \t");
    size_t used = 0;
    if (*at++ != '"')
        return 0;
    for (; *at && (*at != '"' || at[1] == '"'); at++) {
        at += *at == '"'; /* of two quotes one remains */
        if (used + 1 < size)
            out[used++] = *at;
    }
    out[used] = 0;
    if (*at++ != '"')
        return 0;
    at += strspn(at, " \t");
    return *at == ',' || !*at ? (size_t)(at - list) : 0;
}

const char *fds__name_fault(const char *name) {
    uint32_t code = 0;
    for (size_t size; *name; name += size) {
        if (!(size = fds__utf8(name, &code)))
            return "the name is not UTF-8; convert it, for example: iconv -f latin1 -t utf8";
        if (fds__is_control(code) && code != '\t')
            return "the name has a control character; remove it";
    }
    return NULL;
}

void fds__names_free(fds__names *names) {
    fds__dir_list_free(names->items, names->count);
    *names = (fds__names){0};
}

fds_status fds__names_copy(char *const *names, size_t count, char ***out, fds_error *err) {
    fds__names copy = {0};
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++)
        status = fds__names_add(&copy, names[i], err);
    if (status != FDS_OK)
        fds__names_free(&copy);
    else
        *out = copy.items;
    return status;
}

fds_status fds__names_push(fds__names *names, char *name, fds_error *err) {
    void *items = names->items;
    fds_status status =
        fds__grow(&items, &names->capacity, names->count + 1, sizeof *names->items, err);
    names->items = items;
    if (status == FDS_OK)
        names->items[names->count++] = name;
    return status;
}

fds_status fds__names_add(fds__names *names, const char *name, fds_error *err) {
    char *copy = fds__strdup(name);
    fds_status status =
        copy ? fds__names_push(names, copy, err) : fds__fail_nomem(err, strlen(name) + 1);
    if (status != FDS_OK)
        fds__free(copy);
    return status;
}

/* ---- numbering ---- */

/* A text and its position before sorting. */
typedef struct {
    const char *text;
    long long value;
    size_t position;
} entry;

typedef struct {
    const fds__numbering *how;
    size_t count;
    entry *entries, *spare; /* (count); spare: to merge into */
    double start_s;
} sorting;

enum { STEP = 1 << 18 }; /* entries between two reports: well below a second */

/* At most 18 digits, so that the value fits. */
static bool whole_number(const char *text, long long *value) {
    size_t digits = strspn(text + (*text == '-'), "0123456789");
    if (digits < 1 || digits > 18 || text[(*text == '-') + digits])
        return false;
    *value = strtoll(text, NULL, 10);
    return true;
}

static int by_value_then_text(const void *left, const void *right) {
    const entry *a = left, *b = right;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return strcmp(a->text, b->text);
}

static fds_status report(const sorting *s, size_t done, fds_error *err) {
    return !done || done % STEP
               ? FDS_OK
               : fds__report(s->how->events, "sort", "names", done, s->count, s->start_s, err);
}

/* Merges sorted runs of width entries in pairs into spare, then swaps entries and spare. */
static fds_status merge_runs(sorting *s, size_t width, fds_error *err) {
    entry *from = s->entries;
    for (size_t start = 0; start < s->count; start += 2 * width) {
        size_t middle = MIN(start + width, s->count), end = MIN(middle + width, s->count);
        size_t left = start, right = middle;
        for (size_t i = start; i < end; i++) {
            bool is_left = left < middle &&
                           (right == end || by_value_then_text(&from[left], &from[right]) <= 0);
            s->spare[i] = from[is_left ? left++ : right++];
            TRY(report(s, i, err));
        }
    }
    s->entries = s->spare;
    s->spare = from;
    return FDS_OK;
}

/* In steps, because qsort cannot be cancelled. */
static fds_status sort(sorting *s, fds_error *err) {
    for (size_t i = 0; i < s->count; i += STEP) {
        qsort(s->entries + i, MIN(s->count - i, (size_t)STEP), sizeof(entry), by_value_then_text);
        TRY(report(s, i, err));
    }
    for (size_t width = STEP; width < s->count; width *= 2)
        TRY(merge_runs(s, width, err));
    return FDS_OK;
}

static fds_status number(sorting *s, const char *const *texts, uint32_t *ids, fds__names *names,
                         fds_error *err) {
    bool by_value = s->how->by_value;
    for (size_t i = 0; i < s->count; i++) {
        s->entries[i] = (entry){texts[i], 0, i};
        by_value = by_value && whole_number(texts[i], &s->entries[i].value);
        TRY(report(s, i, err));
    }
    for (size_t i = 0; i < s->count && !by_value; i++)
        s->entries[i].value = 0;
    TRY(sort(s, err));
    for (size_t i = 0; i < s->count; i++) {
        const entry *e = &s->entries[i];
        if (i == 0 || strcmp(e->text, e[-1].text) != 0) {
            if (names->count == s->how->limit)
                return fds__fail(err, FDS_ERR_LIMIT, "%s: more than %u different %s names",
                                 s->how->source, s->how->limit, s->how->what);
            TRY(fds__names_add(names, e->text, err));
        }
        ids[e->position] = (uint32_t)(names->count - 1);
        TRY(report(s, i, err));
    }
    return FDS_OK;
}

fds_status fds__names_number(const char *const *texts, size_t count, const fds__numbering *how,
                             uint32_t *ids, fds__names *names, fds_error *err) {
    sorting s = {how, count, fds__alloc_zero(count, sizeof(entry)),
                 fds__alloc_zero(count > STEP ? count : 0, sizeof(entry)), fds__now_s()};
    *names = (fds__names){0};
    fds_status status = s.entries && s.spare ? number(&s, texts, ids, names, err)
                                             : fds__fail_nomem(err, 2 * count * sizeof(entry));
    if (status != FDS_OK)
        fds__names_free(names);
    fds__free(s.entries);
    fds__free(s.spare);
    return status;
}

/* ---- lists in files ---- */

static fds_status add_line(fds__names *names, const char *name, const char *path, size_t line,
                           fds_error *err) {
    const char *fault = fds__name_fault(name);
    if (fault)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: %s", path, line, fault);
    if (names->count == FDS__MAX_CLASSES)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: more than %u names", path, FDS__MAX_CLASSES);
    return fds__names_add(names, name, err);
}

size_t fds__utf8_mark(const uint8_t *data, size_t size) {
    return size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

fds_status fds__names_read(const char *path, fds__names *names, fds_error *err) {
    uint8_t *data;
    size_t size;
    *names = (fds__names){0};
    TRY(fds__file_read(path, FDS__MAX_TEXT, &data, &size, err));
    fds_status status = FDS_OK;
    if (strlen((char *)data) != size)
        status = fds__fail(err, FDS_ERR_FORMAT, "%s: byte %zu: NUL in a list of names", path,
                           strlen((char *)data));
    char *rest = (char *)data + fds__utf8_mark(data, size);
    for (size_t line = 1; status == FDS_OK && rest; line++) {
        const char *name = fds__name_trim(strsep(&rest, "\n"));
        if (*name)
            status = add_line(names, name, path, line, err);
    }
    if (status == FDS_OK && names->count == 0)
        status = fds__fail(err, FDS_ERR_FORMAT, "%s: no names; write one per line", path);
    fds__free(data);
    if (status != FDS_OK)
        fds__names_free(names);
    return status;
}
