/* SPDX-License-Identifier: Apache-2.0
 * Names of classes and providers: checking, numbering the distinct ones, copying, reading lists. */
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

fds_status fds__names_copy(const fds__names *names, char ***out, fds_error *err) {
    char **copy = fds__alloc_zero(names->count, sizeof *copy);
    if (!copy)
        return fds__fail_nomem(err, names->count * sizeof *copy);
    for (size_t i = 0; i < names->count; i++) {
        copy[i] = fds__strdup(names->items[i]);
        if (!copy[i]) {
            fds__dir_list_free(copy, i);
            return fds__fail_nomem(err, strlen(names->items[i]) + 1);
        }
    }
    *out = copy;
    return FDS_OK;
}

/* A text and its position before sorting. */
typedef struct {
    const char *text;
    long long value;
    size_t position;
} entry;

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

fds_status fds__names_number(const char *const *texts, size_t count, bool numeric, uint32_t limit,
                             const char *what, const char *source, uint32_t *ids, fds__names *names,
                             fds_error *err) {
    entry *entries = fds__alloc_zero(count, sizeof *entries);
    if (!entries)
        return fds__fail_nomem(err, count * sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        entries[i] = (entry){texts[i], 0, i};
        numeric = numeric && whole_number(texts[i], &entries[i].value);
    }
    for (size_t i = 0; i < count && !numeric; i++)
        entries[i].value = 0;
    qsort(entries, count, sizeof *entries, by_value_then_text);

    fds__names found = {0};
    void *items = NULL;
    size_t capacity = 0;
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        if (i == 0 || strcmp(entries[i].text, entries[i - 1].text) != 0) {
            if (found.count == limit)
                status = fds__fail(err, FDS_ERR_LIMIT, "%s: more than %u different %s names",
                                   source, limit, what);
            else
                status = fds__grow(&items, &capacity, found.count + 1, sizeof(char *), err);
            found.items = items;
            if (status == FDS_OK && !(found.items[found.count] = fds__strdup(entries[i].text)))
                status = fds__fail_nomem(err, strlen(entries[i].text) + 1);
            if (status != FDS_OK)
                break;
            found.count++;
        }
        ids[entries[i].position] = (uint32_t)(found.count - 1);
    }
    fds__free(entries);
    if (status != FDS_OK) {
        fds__names_free(&found);
        return status;
    }
    *names = found;
    return FDS_OK;
}

static fds_status add_name(fds__names *names, size_t *capacity, const char *name, const char *path,
                           size_t line, fds_error *err) {
    const char *fault = fds__name_fault(name);
    if (fault)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: %s", path, line, fault);
    if (names->count == FDS__MAX_CLASSES)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: more than %u names", path, FDS__MAX_CLASSES);
    void *items = names->items;
    fds_status status = fds__grow(&items, capacity, names->count + 1, sizeof(char *), err);
    names->items = items;
    TRY(status);
    if (!(names->items[names->count] = fds__strdup(name)))
        return fds__fail_nomem(err, strlen(name) + 1);
    names->count++;
    return FDS_OK;
}

size_t fds__utf8_mark(const uint8_t *data, size_t size) {
    return size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

fds_status fds__names_read(const char *path, fds__names *names, fds_error *err) {
    uint8_t *data;
    size_t size, capacity = 0;
    fds__names found = {0};
    TRY(fds__file_read(path, FDS__MAX_TEXT, &data, &size, err));
    fds_status status = FDS_OK;
    if (strlen((char *)data) != size)
        status = fds__fail(err, FDS_ERR_FORMAT, "%s: byte %zu: NUL in a list of names", path,
                           strlen((char *)data));
    char *rest = (char *)data + fds__utf8_mark(data, size);
    for (size_t line = 1; status == FDS_OK && rest; line++) {
        const char *name = fds__name_trim(strsep(&rest, "\n"));
        if (*name)
            status = add_name(&found, &capacity, name, path, line, err);
    }
    if (status == FDS_OK && found.count == 0)
        status = fds__fail(err, FDS_ERR_FORMAT, "%s: no names; write one per line", path);
    fds__free(data);
    if (status != FDS_OK) {
        fds__names_free(&found);
        return status;
    }
    *names = found;
    return FDS_OK;
}
