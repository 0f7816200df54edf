/* SPDX-License-Identifier: Apache-2.0
 * JSON in memory, whole or not at all. */
#include "base/json.h"

char *fds_json_text(const json_t *value, size_t flags) {
    size_t size = json_dumpb(value, NULL, 0, flags);
    char *text = size ? fds_alloc(size + 1) : NULL;
    if (!text || json_dumpb(value, text, size, flags) != size) {
        fds_free(text);
        return NULL;
    }
    text[size] = 0;
    return text;
}

/* Jansson's reader drops characters that it has no memory for: what is read twice alike is whole.
 */
fds_status fds_json_parse(const char *where, const char *text, size_t size, json_t **out,
                          fds_error *err) {
    json_error_t mistake = {.line = 0};
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &mistake);
    json_t *again = json ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    fds_status status = FDS_OK;
    if (!json && mistake.text[0])
        status = fds_fail(err, FDS_FORMAT, "%s: line %d: %s", where, mistake.line, mistake.text);
    else if (!json_equal(json, again))
        status = fds_fail(err, FDS_NOMEM, "out of memory to read %s", where);
    json_decref(again);
    if (status != FDS_OK)
        json_decref(json);
    else
        *out = json;
    return status;
}

fds_status fds_json_read(const char *path, size_t limit, json_t **out, fds_error *err) {
    uint8_t *data;
    size_t size;
    FDS_TRY(fds_file_read(path, limit, &data, &size, err));
    fds_status status = fds_json_parse(path, (const char *)data, size, out, err);
    fds_free(data);
    return status;
}

json_t *fds_json_string(const char *text) {
    if (!text)
        return json_null();
    json_t *json = json_string(text);
    char *plain = json ? NULL : fds_strdup(text);
    for (char *at = plain; at && *at; at++)
        *at = (unsigned char)*at < 0x80 ? *at : '?';
    if (plain)
        json = json_string(plain);
    fds_free(plain);
    return json;
}
