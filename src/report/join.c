/* SPDX-License-Identifier: Apache-2.0
 *
 * report.json (docs/bench.md) from case.json files. Cases of one set of data, which differ in their
 * seeds only, become one entry, with the mean, the standard deviation and the standard error of
 * every number over all their test samples, or over the seeds for what is one number per seed.
 * Data, rows and utility functions keep the order in which they first appear. This file has what
 * holds for a set of data as a whole; join_rows.c has its numbers.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

/* ---- a set of data ---- */

/* Pictures of the first case that has any; only those whose files are there. */
static json_t *join_pictures(report_cases *g) {
    json_t *out = json_array();
    const json_t *picture;
    for (size_t i = 0; i < g->count && json_array_size(out) == 0; i++)
        for (size_t k = 0; (picture = json_array_get(report_at(g->cases[i], "pictures"), k)); k++) {
            char path[FDS__PATH_MAX];
            if (fds__path_join(path, sizeof path, g->dirs[i], report_text_of(picture, "file"),
                               NULL) != FDS_OK)
                continue;
            json_t *file = fds__json_string(path);
            if (file && !fds__path_exists(json_string_value(file)))
                json_decref(file);
            else
                g->is_failed |= !fds__json_append(out, json_pack("{s:s, s:o}", "method",
                                                                 report_text_of(picture, "method"),
                                                                 "file", file));
        }
    return out;
}

/* The settings of a case without its seed. Truth and flipped labels may be 0 in some seeds: then
 * they are those of the first case that has them. */
static json_t *join_settings(report_cases *g, size_t i) {
    json_t *out = json_object(), *value;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)report_at(g->cases[i], "settings"), key, value) {
        bool may_be_zero = strcmp(key, "truth") == 0 || strcmp(key, "flipped") == 0;
        for (size_t k = 0; may_be_zero && json_number_value(value) == 0 && k < g->count; k++) {
            json_t *other = json_object_get(report_at(g->cases[k], "settings"), key);
            value = other ? other : value;
        }
        if (strcmp(key, "seed") != 0)
            g->is_failed |= !fds__json_share(out, key, value);
    }
    g->is_failed |= !out;
    return out;
}

static fds_status fail_difference(const report_cases *g, size_t i, const char *what,
                                  fds_error *err) {
    return fds__fail(err, FDS_ERR_USAGE,
                     "%s/case.json: %s; cases of \"%.60s\" in one report may differ in their seeds "
                     "alone",
                     g->dirs[i], what, report_text_of(g->cases[i], "data/name"));
}

static fds_status check_settings(report_cases *g, size_t i, fds_error *err) {
    json_t *before = join_settings(g, 0), *now = join_settings(g, i);
    char what[300];
    fds_status status = FDS_OK;
    if (g->is_failed)
        status = fds__fail_json(err);
    else if (fds__json_difference(before, now, "first case", what, sizeof what))
        status = fail_difference(g, i, what, err);
    json_decref(before);
    json_decref(now);
    return status;
}

/* Rows of one method say the same about it in all cases. */
static fds_status check_rows(const report_cases *g, size_t i, size_t before, fds_error *err) {
    static const char *const same[] = {"title", "kind", "is_per_sample", "utility"};
    const json_t *row;
    for (size_t r = 0; (row = json_array_get(report_at(g->cases[i], "rows"), r)); r++) {
        const char *method = report_text_of(row, "method");
        const json_t *other =
            report_find(report_at(g->cases[before], "rows"), "method", method, NULL);
        for (size_t k = 0; other && k < sizeof same / sizeof *same; k++)
            if (!json_equal(json_object_get(row, same[k]), json_object_get(other, same[k]))) {
                char what[300];
                snprintf(what, sizeof what, "rows[%zu].%s is not that of \"%.60s\" in %.100s", r,
                         same[k], method, g->dirs[before]);
                return fail_difference(g, i, what, err);
            }
    }
    return FDS_OK;
}

static json_int_t seed_of(const json_t *of_case) {
    return json_integer_value(report_at(of_case, "settings/seed"));
}

static fds_status check_group(report_cases *g, fds_error *err) {
    for (size_t i = 1; i < g->count; i++) {
        char what[300];
        for (size_t before = 0; before < i; before++)
            if (seed_of(g->cases[before]) == seed_of(g->cases[i])) {
                snprintf(what, sizeof what, "seed %lld is also that of %.200s",
                         (long long)seed_of(g->cases[i]), g->dirs[before]);
                return fail_difference(g, i, what, err);
            }
        if (fds__json_difference(report_at(g->cases[0], "data"), report_at(g->cases[i], "data"),
                                 "first case", what, sizeof what))
            return fail_difference(g, i, what, err);
        TRY(check_settings(g, i, err));
        for (size_t before = 0; before < i; before++)
            TRY(check_rows(g, i, before, err));
    }
    return FDS_OK;
}

static fds_status join_group(report_cases *g, json_t **out, fds_error *err) {
    TRY(check_group(g, err));
    json_t *data = json_object(), *seeds = json_array(), *value;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)report_at(g->cases[0], "data"), key, value)
        g->is_failed |= !fds__json_share(data, key, value);
    for (size_t i = 0; i < g->count; i++)
        g->is_failed |= !fds__json_append(seeds, json_integer(seed_of(g->cases[i])));
    bool is_whole = fds__json_put(data, "seeds", seeds) &&
                    fds__json_put(data, "settings", join_settings(g, 0)) &&
                    fds__json_put(data, "utilities", report_join_utilities(g)) &&
                    fds__json_put(data, "rows", report_join_rows(g)) &&
                    fds__json_put(data, "pictures", join_pictures(g));
    *out = fds__json_keep_if(data, is_whole && !g->is_failed);
    return *out ? FDS_OK : fds__fail_json(err);
}

/* ---- all of it ---- */

/* That of the first case, and whether another case is of another one, or of another version. */
static json_t *join_machine(json_t *const *cases, size_t count) {
    static const char *const keys[] = {"processor", "processors", "instructions", "threads"};
    const json_t *first = json_object_get(cases[0], "machine");
    json_t *out = json_object();
    bool is_whole = out != NULL, is_mixed = false;
    for (size_t k = 0; is_whole && k < sizeof keys / sizeof *keys; k++)
        is_whole = fds__json_share(out, keys[k], json_object_get(first, keys[k]));
    for (size_t i = 0; i < count; i++)
        is_mixed |= strcmp(report_text_of(cases[i], "fds"), FDS_VERSION) != 0 ||
                    !json_equal(json_object_get(cases[i], "machine"), first) ||
                    json_is_true(json_object_get(first, "is_mixed"));
    is_whole = is_whole && fds__json_put(out, "is_mixed", json_boolean(is_mixed));
    return fds__json_keep_if(out, is_whole);
}

static const char *name_of(const json_t *of_case) { return report_text_of(of_case, "data/name"); }

/* Joins the cases of each name. */
static fds_status join_cases(json_t *const *cases, const char *const *dirs, size_t count,
                             report_cases *g, json_t *list, fds_error *err) {
    for (size_t i = 0; i < count; i++) {
        json_t *data;
        g->count = 0;
        for (size_t k = 0; k < count; k++)
            if (strcmp(name_of(cases[k]), name_of(cases[i])) == 0) {
                g->cases[g->count] = cases[k];
                g->dirs[g->count++] = dirs[k];
            }
        if (g->cases[0] != cases[i]) /* joined with an earlier one */
            continue;
        TRY(join_group(g, &data, err));
        if (!fds__json_append(list, data))
            return fds__fail_json(err);
    }
    return FDS_OK;
}

static fds_status read_cases(const char *const *dirs, size_t count, json_t **cases,
                             fds_error *err) {
    for (size_t i = 0; i < count; i++) {
        char path[FDS__PATH_MAX];
        TRY(fds__path_join(path, sizeof path, dirs[i], "case.json", err));
        TRY(report_case_read(path, &cases[i], err));
    }
    return FDS_OK;
}

fds_status report_join(const char *const *dirs, size_t count, const char *command, json_t **out,
                       fds_error *err) {
    if (count == 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a report needs the folder of at least one finished case");
    json_t **cases = fds__alloc_zero(count, sizeof *cases), *list = json_array(), *report = NULL;
    report_cases g = {fds__alloc_zero(count, sizeof *g.cases),
                      fds__alloc_zero(count, sizeof *g.dirs),
                      fds__alloc_zero(count, sizeof *g.parts), 0, false};
    fds_status status = cases && list && g.cases && g.dirs && g.parts
                            ? read_cases(dirs, count, cases, err)
                            : fds__fail_json(err);
    if (status == FDS_OK)
        status = join_cases(cases, dirs, count, &g, list, err);
    if (status == FDS_OK) {
        report = json_pack("{s:s, s:s, s:o, s:o, s:O}", "fds", FDS_VERSION, "kind",
                           "fds bench report", "command", fds__json_string(command ? command : ""),
                           "machine", join_machine(cases, count), "data", list);
        status = report ? FDS_OK : fds__fail_json(err);
    }
    for (size_t i = 0; cases && i < count; i++)
        json_decref(cases[i]);
    json_decref(list);
    fds__free(cases);
    fds__free(g.cases);
    fds__free(g.dirs);
    fds__free(g.parts);
    *out = report;
    return status;
}
