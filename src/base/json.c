/* SPDX-License-Identifier: Apache-2.0
 * JSON in memory: complete, or an error. */
#include "base/base.h"

#include <math.h>
#include <string.h>

char *fds__json_text(const json_t *value, size_t flags) {
    size_t size = json_dumpb(value, NULL, 0, flags);
    char *text = size ? fds__alloc(size + 1) : NULL;
    if (!text || json_dumpb(value, text, size, flags) != size) {
        fds__free(text);
        return NULL;
    }
    text[size] = 0;
    return text;
}

const char *fds__json_once(char **place, const json_t *value) {
    char *text = __atomic_load_n(place, __ATOMIC_ACQUIRE), *none = NULL;
    if (text)
        return text;
    text = value ? fds__json_text(value, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
    if (text && !__atomic_compare_exchange_n(place, &none, text, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE)) {
        fds__free(text); /* another thread was first */
        return none;
    }
    return text ? text : "{}";
}

/* Jansson's reader drops characters that it has no memory for: two equal results are complete. */
fds_status fds__json_parse(const char *where, const char *text, size_t size, json_t **out,
                           fds_error *err) {
    json_error_t mistake = {.line = 0};
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &mistake);
    json_t *again = json ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    fds_status status = FDS_OK;
    if (!json && mistake.text[0])
        status =
            fds__fail(err, FDS_ERR_FORMAT, "%s: line %d: %s", where, mistake.line, mistake.text);
    else if (!json_equal(json, again))
        status = fds__fail(err, FDS_ERR_NOMEM, "out of memory while reading %s", where);
    json_decref(again);
    if (status != FDS_OK)
        json_decref(json);
    else
        *out = json;
    return status;
}

fds_status fds__json_read(const char *path, size_t limit, json_t **out, fds_error *err) {
    OWNED uint8_t *data = NULL;
    size_t size;
    TRY(fds__file_read(path, limit, &data, &size, err));
    return fds__json_parse(path, (const char *)data, size, out, err);
}

json_t *fds__json_string(const char *text) {
    if (!text)
        return json_null();
    if (fds__is_utf8(text))
        return json_string(text);
    OWNED char *plain = fds__strdup(text);
    for (char *at = plain; at && *at; at++)
        *at = (unsigned char)*at < 0x80 ? *at : '?';
    return plain ? json_string(plain) : NULL;
}

json_t *fds__json_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

fds_status fds__fail_json(fds_error *err) {
    return fds__fail(err, FDS_ERR_NOMEM, "out of memory for JSON");
}

fds_status fds__json_write(const char *dir, const char *name, const json_t *json, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, dir, name, err));
    TRY(fds__out_sweep(path, err));
    OWNED char *text = json ? fds__json_text(json, JSON_INDENT(1)) : NULL;
    return text ? fds__file_write(path, text, strlen(text), err) : fds__fail_json(err);
}

/* ---- differences ---- */

/* A value for a message: 0.1, not 0.10000000000000001. */
static void show(const json_t *json, char *text, size_t size) {
    size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15);
    OWNED char *dump = json ? fds__json_text(json, flags) : NULL;
    snprintf(text, size, "%s", dump ? dump : "absent");
    if (strlen(text) == size - 1)
        strcpy(text + size - 4, "...");
}

/* A different checksum does not say what differs. */
static bool is_checksum(const char *key) {
    size_t length = strlen(key);
    return length > 7 && strcmp(key + length - 7, "_sha256") == 0;
}

/* Describes the first difference; false when there is none. where: the keys that lead here. */
static bool difference(const char *where, const json_t *before, const json_t *now,
                       const char *holder, char *text, size_t size) {
    if (json_equal(before, now))
        return false;
    if (json_is_object(before) && json_is_object(now)) {
        /* keys that only the old one has come second, checksums last */
        const json_t *sides[] = {now, before, now, before};
        for (int side = 0; side < 4; side++) {
            const char *key;
            json_t *unused;
            json_object_foreach((json_t *)(uintptr_t)sides[side], key, unused) {
                char below[200];
                if (is_checksum(key) != (side >= 2))
                    continue;
                snprintf(below, sizeof below, "%s%s%s", where, *where ? "." : "", key);
                if (difference(below, json_object_get(before, key), json_object_get(now, key),
                               holder, text, size))
                    return true;
            }
        }
        return false;
    }
    char was[100], is[100];
    if (json_is_array(before) && json_is_array(now)) {
        size_t old = json_array_size(before), new = json_array_size(now), i = 0;
        if (old != new) {
            snprintf(text, size, "%s are %zu in the %s, %zu now", where, old, holder, new);
            return true;
        }
        while (json_equal(json_array_get(before, i), json_array_get(now, i)))
            i++;
        char below[200];
        snprintf(below, sizeof below, "%s[%zu]", where, i);
        return difference(below, json_array_get(before, i), json_array_get(now, i), holder, text,
                          size);
    }
    show(before, was, sizeof was);
    show(now, is, sizeof is);
    snprintf(text, size, "%s is %s in the %s, %s now", where, was, holder, is);
    return true;
}

bool fds__json_difference(const json_t *before, const json_t *now, const char *holder, char *text,
                          size_t size) {
    return difference("", before, now, holder, text, size);
}

void fds_text_free(char *text) { fds__free(text); }

/* ---- checksums ---- */

fds_status fds__json_checksum(const json_t *json, uint64_t *sum, fds_error *err) {
    OWNED char *text = fds__json_text(json, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return fds__fail_json(err);
    *sum = fds_checksum(text, strlen(text));
    return FDS_OK;
}

static void write_hex(uint64_t sum, char hex[17]) {
    snprintf(hex, 17, "%016llx", (unsigned long long)sum);
}

bool fds__json_seal(json_t *object) {
    uint64_t sum = 0;
    char hex[17];
    json_object_del(object, "checksum");
    if (fds__json_checksum(object, &sum, NULL) != FDS_OK)
        return false;
    write_hex(sum, hex);
    return fds__json_put(object, "checksum", json_string(hex));
}

fds_status fds__json_unseal(const char *path, json_t *object, fds_error *err) {
    char stored[17] = "", hex[17];
    uint64_t sum = 0;
    const char *text = json_string_value(json_object_get(object, "checksum"));
    snprintf(stored, sizeof stored, "%s", text && strlen(text) == 16 ? text : "");
    json_object_del(object, "checksum");
    TRY(fds__json_checksum(object, &sum, err));
    write_hex(sum, hex);
    return strcmp(stored, hex) == 0 ? FDS_OK
                                    : fds__fail(err, FDS_ERR_CORRUPT,
                                                "%s is damaged: its checksum does not agree", path);
}
