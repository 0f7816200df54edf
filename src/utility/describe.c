/* SPDX-License-Identifier: Apache-2.0
 *
 * table.json: the description of a table, written once, before any segment.
 *
 *   format               "fds table"
 *   version              1
 *   parameters           everything that the utility function's answers depend on
 *   players, inputs, classes, store ("f32" or "f16")
 *   record_size          in bytes, a function of those
 *   records_per_segment
 *   checksum             XXH3 in 16 hexadecimal digits of all other members, written as JSON
 *                        without blanks and with keys sorted
 *
 * The headers of segments have the checksum of "parameters" alone, written in the same way.
 */
#include "utility/table.h"

#include <string.h>

#define NAME "table.json"
#define FORMAT "fds table"
#define VERSION 1
#define MAX_BYTES ((size_t)16 << 20)

/* The content of table.json without its checksum; sets layout->parameters. The caller frees *out. */
static fds_status describe(const fds_utility *utility, fds__layout *layout, json_t **out,
                           fds_error *err) {
    json_t *parameters;
    TRY(fds__json_parse("the utility function's parameters are not JSON", utility->text,
                        strlen(utility->text), &parameters, err));
    fds_status status = fds__json_checksum(parameters, &layout->parameters, err);
    if (status != FDS_OK) {
        json_decref(parameters);
        return status;
    }
    *out = json_pack("{s:s, s:i, s:o, s:I, s:I, s:I, s:s, s:I, s:I}", "format", FORMAT, "version",
                     VERSION, "parameters", parameters, "players", (json_int_t)layout->players,
                     "inputs", (json_int_t)layout->inputs, "classes", (json_int_t)layout->classes,
                     "store", layout->store == FDS_STORE_F16 ? "f16" : "f32", "record_size",
                     (json_int_t)layout->record_size, "records_per_segment",
                     (json_int_t)layout->records);
    return *out ? FDS_OK : fds__fail_json(err);
}

fds_status fds__describe_write(const char *dir, const fds_utility *utility, fds__layout *layout,
                               fds_error *err) {
    char path[FDS__PATH_MAX];
    json_t *json;
    TRY(fds__path_join(path, sizeof path, dir, NAME, err));
    TRY(describe(utility, layout, &json, err));
    OWNED char *text = fds__json_seal(json) ? fds__json_text(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!text)
        return fds__fail_json(err);
    size_t size = strlen(text);
    text[size] = '\n'; /* in place of the NUL */
    return fds__file_write(path, text, size + 1, err);
}

/* ---- checking ---- */

static fds_status compare(const char *path, const json_t *table, const fds_utility *utility,
                          fds__layout *layout, fds_error *err) {
    char text[400];
    json_t *now;
    TRY(describe(utility, layout, &now, err));
    /* a parameter first, if one differs: the other members depend on them */
    bool differs =
        fds__json_difference(json_object_get(table, "parameters"),
                             json_object_get(now, "parameters"), "table", text, sizeof text) ||
        fds__json_difference(table, now, "table", text, sizeof text);
    json_decref(now);
    return differs ? fds__fail(err, FDS_ERR_CONFLICT,
                               "%s: %s; use another folder, or remove this one", path, text)
                   : FDS_OK;
}

/* Format, version and checksum, which it removes. */
static fds_status unseal(const char *path, json_t *json, fds_error *err) {
    const char *format = json_string_value(json_object_get(json, "format"));
    const json_t *version = json_object_get(json, "version");
    if (!format || strcmp(format, FORMAT) != 0)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: not a table of utilities: \"format\" must be \"%s\"", path, FORMAT);
    if (json_integer_value(version) != VERSION)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%s: version %lld, this program reads version %d", path,
                         (long long)json_integer_value(version), VERSION);
    fds_status status = fds__json_unseal(path, json, err);
    if (status == FDS_ERR_CORRUPT)
        return fds__fail(err, status,
                         "%s is damaged: its checksum is wrong; restore it, or remove the folder "
                         "to compute everything again",
                         path);
    return status;
}

/* The file decides how many records a segment has. */
static fds_status read_records(const char *path, const json_t *json, fds__layout *layout,
                               fds_error *err) {
    json_int_t records = json_integer_value(json_object_get(json, "records_per_segment"));
    if (records < 1 || (uint64_t)records > FDS__MAX_RECORD / layout->record_size + 1)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: records_per_segment is %lld, not from 1 to %zu",
                         path, (long long)records, FDS__MAX_RECORD / layout->record_size + 1);
    layout->records = (size_t)records;
    return FDS_OK;
}

static fds_status check_members(const char *path, json_t *json, const fds_utility *utility,
                                fds__layout *layout, fds_error *err) {
    TRY(unseal(path, json, err));
    TRY(read_records(path, json, layout, err));
    return compare(path, json, utility, layout, err);
}

fds_status fds__describe_parse(const char *path, const uint8_t *data, size_t size,
                               const fds_utility *utility, fds__layout *layout, fds_error *err) {
    json_t *json;
    TRY(fds__json_parse(path, (const char *)data, size, &json, err));
    fds_status status = json_is_object(json)
                            ? check_members(path, json, utility, layout, err)
                            : fds__fail(err, FDS_ERR_FORMAT,
                                        "%s: not a table of utilities: it must be an object", path);
    json_decref(json);
    return status;
}

fds_status fds__describe_check(const char *dir, const fds_utility *utility, fds__layout *layout,
                               fds_error *err) {
    char path[FDS__PATH_MAX];
    OWNED uint8_t *data = NULL;
    size_t size;
    TRY(fds__path_join(path, sizeof path, dir, NAME, err));
    TRY(fds__file_read(path, MAX_BYTES, &data, &size, err));
    return fds__describe_parse(path, data, size, utility, layout, err);
}

/* ---- without a utility function ---- */

static fds_status read_layout(const char *path, json_t *json, fds__layout *layout, fds_error *err) {
    TRY(unseal(path, json, err));
    json_int_t players = json_integer_value(json_object_get(json, "players")),
               inputs = json_integer_value(json_object_get(json, "inputs")),
               classes = json_integer_value(json_object_get(json, "classes"));
    const char *store = json_string_value(json_object_get(json, "store"));
    bool is_half = store && strcmp(store, "f16") == 0;
    if (players < 0 || inputs < 0 || classes < 0 || classes > UINT32_MAX || !store ||
        (!is_half && strcmp(store, "f32") != 0))
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: players, inputs, classes or store is not what a table has", path);
    TRY(fds__layout_make((size_t)players, (size_t)inputs, (uint32_t)classes,
                         is_half ? FDS_STORE_F16 : FDS_STORE_F32, layout, err));
    json_int_t size = json_integer_value(json_object_get(json, "record_size"));
    if (size < 0 || (size_t)size != layout->record_size)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: record_size is %lld instead of %zu", path,
                         (long long)size, layout->record_size);
    TRY(read_records(path, json, layout, err));
    return fds__json_checksum(json_object_get(json, "parameters"), &layout->parameters, err);
}

fds_status fds__describe_read(const char *dir, fds__layout *layout, json_t **out, fds_error *err) {
    char path[FDS__PATH_MAX];
    OWNED uint8_t *data = NULL;
    size_t size;
    json_t *json;
    TRY(fds__path_join(path, sizeof path, dir, NAME, err));
    TRY(fds__file_read(path, MAX_BYTES, &data, &size, err));
    TRY(fds__json_parse(path, (const char *)data, size, &json, err));
    fds_status status = json_is_object(json)
                            ? read_layout(path, json, layout, err)
                            : fds__fail(err, FDS_ERR_FORMAT,
                                        "%s: not a table of utilities: it must be an object", path);
    if (status == FDS_OK && out)
        *out = json_incref(json);
    json_decref(json);
    return status;
}
