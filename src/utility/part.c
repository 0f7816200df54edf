/* SPDX-License-Identifier: Apache-2.0
 *
 * Which plan the parts in a folder are of: part.json, beside table.json.
 *
 *   sampler    "leverage", ...
 *   is_exact   whether the plan has all coalitions
 *   draw       which repetition of the plan
 *   first      ids of the first rows, at most 16, in 16 hexadecimal digits each
 *   checksum   of all other members, as in table.json
 *
 * Plans of one seed are nested, so parts of a longer plan begin alike and go with those of a shorter
 * one. Parts of another plan would take places between the records, mostly unseen: record by record
 * only those are found whose place is taken already.
 */
#include "utility/utility.h"

#include <inttypes.h>

#define NAME "part.json"

enum { FIRST_ROWS = 16, MAX_BYTES = 1 << 16 };

fds_status fds__part_check(const fds_part *part, fds_error *err) {
    if (part->number >= 1 && part->number <= part->count && part->count <= FDS__MAX_PARTS)
        return FDS_OK;
    return fds__fail(
        err, FDS_ERR_USAGE,
        "part %zu of %zu: a part is a number from 1 to the number of parts, at most %u",
        part->number, part->count, FDS__MAX_PARTS);
}

fds_status fds__part_report(const char *dir, fds_part part, const fds_table_cost *before,
                            double seconds, char **out, fds_error *err) {
    json_t *json = json_pack("{s:o, s:I, s:I, s:I, s:I, s:o}", "folder", fds__json_string(dir),
                             "part", (json_int_t)part.number, "parts", (json_int_t)part.count,
                             "sub_models", (json_int_t)before->coalitions, "computed",
                             (json_int_t)before->missing, "seconds", fds__json_real(seconds));
    *out = json ? fds__json_text(json, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(json);
    return *out ? FDS_OK : fds__fail_json(err);
}

fds_status fds__fail_part(const char *dir, fds_error *err) {
    return fds__fail(err, FDS_ERR_CANCELLED,
                     "finished work is kept in %s; run the same command again to resume", dir);
}

/* ---- part.json ---- */

static json_t *describe(const fds_plan *plan, uint64_t draw) {
    static const char *const samplers[] = {"kernel", "paired", "leverage", "gfds", "gfds+"};
    size_t rows = MIN(fds_plan_rows(plan), (size_t)FIRST_ROWS);
    json_t *first = json_array();
    for (size_t row = 0; row < rows; row++)
        json_array_append_new(
            first, json_sprintf("%016" PRIx64, fds_coalition_id(fds_plan_coalition(plan, row),
                                                                fds_plan_players(plan))));
    json_t *json = json_pack("{s:s, s:b, s:I, s:o}", "sampler", samplers[plan->sampler], "is_exact",
                             plan->is_exact, "draw", (json_int_t)draw, "first", first);
    bool is_whole = json && json_array_size(first) == rows && fds__json_seal(json);
    return fds__json_keep_if(json, is_whole);
}

/* NULL: the folder has none. */
static fds_status read(const char *dir, json_t **out, fds_error *err) {
    char path[FDS__PATH_MAX];
    OWNED uint8_t *data = NULL;
    size_t size;
    *out = NULL;
    TRY(fds__path_join(path, sizeof path, dir, NAME, err));
    if (!fds__path_exists(path))
        return FDS_OK;
    TRY(fds__file_read(path, MAX_BYTES, &data, &size, err));
    TRY(fds__json_parse(path, (const char *)data, size, out, err));
    fds_status status = fds__json_unseal(path, *out, err);
    if (status != FDS_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

/* Whether two differ, in more than the length of their plans; text ends with "now". */
static bool differ(json_t *first, json_t *second, const char *holder, char *text, size_t size) {
    json_t *a = json_object_get(first, "first"), *b = json_object_get(second, "first");
    while (json_array_size(a) > json_array_size(b) && json_array_size(b))
        json_array_remove(a, json_array_size(a) - 1);
    while (json_array_size(b) > json_array_size(a) && json_array_size(a))
        json_array_remove(b, json_array_size(b) - 1);
    return fds__json_difference(first, second, holder, text, size);
}

fds_status fds__part_note(const char *dir, const fds_plan *plan, uint64_t draw, fds_error *err) {
    char text[400];
    json_t *before, *now = describe(plan, draw);
    if (!now)
        return fds__fail_json(err);
    fds_status status = read(dir, &before, err);
    if (status == FDS_OK && !before)
        status = fds__json_write(dir, NAME, now, err);
    json_object_del(now, "checksum");
    if (before && differ(before, now, "folder", text, sizeof text))
        status = fds__fail(err, FDS_ERR_CONFLICT,
                           "%s has parts of another plan: %s; compute the parts of another plan in "
                           "another folder",
                           dir, text);
    json_decref(before);
    json_decref(now);
    return status;
}

fds_status fds__part_compare(const char *first, const char *second, bool *is_noted,
                             fds_error *err) {
    char text[400];
    json_t *a, *b = NULL;
    TRY(read(first, &a, err));
    fds_status status = read(second, &b, err);
    *is_noted = b != NULL;
    if (a && b && differ(a, b, "first", text, sizeof text)) {
        text[strlen(text) - strlen("now")] = 0;
        status = fds__fail(err, FDS_ERR_CONFLICT,
                           "%s and %s have parts of different plans: %sin the second", first,
                           second, text);
    }
    json_decref(a);
    json_decref(b);
    return status;
}
