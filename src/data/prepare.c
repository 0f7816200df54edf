/* SPDX-License-Identifier: Apache-2.0
 * From the columns of a CSV file to the features of samples; sheet.h says which features a column
 * has. Levels with under 1 % of the rows are rare. All of it is learnt from the training samples,
 * and applied to others as it is. */
#include "data/sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double rare_share = 0.01;
enum { FEW_ROWS = 20 }; /* too few to say that nearly all values differ */

bool fds__preparation_learns(const fds__preparation *p) {
    for (size_t c = 0; p && c < p->count; c++)
        if (p->columns[c].is_text || p->columns[c].has_missing)
            return true;
    return false;
}

void fds__preparation_free(fds__preparation *p) {
    if (!p)
        return;
    for (size_t c = 0; c < p->count; c++) {
        fds__free(p->columns[c].name);
        fds__names_free(&p->columns[c].levels);
    }
    fds__free(p->columns);
    fds__free(p->id);
    fds__free(p);
}

static size_t feature_count(const prepared_column *p) {
    return (p->is_text ? p->levels.count + p->has_rare : 1) + p->has_missing;
}

/* ---- learning ---- */

static void learn_numbers(const sheet_column *column, size_t rows, prepared_column *p) {
    double sum = 0;
    size_t count = 0;
    for (size_t r = 0; r < rows; r++) {
        bool is_there = !isnan(column->values[r]);
        sum += is_there ? (double)column->values[r] : 0;
        count += is_there;
    }
    p->mean = count ? (float)(sum / (double)count) : 0;
    p->has_missing = count < rows;
}

/* names: all levels; counts: how many rows each has. */
static fds_status keep_levels(const fds__names *names, const size_t *counts, size_t rows,
                              prepared_column *p, fds_error *err) {
    for (size_t k = 0; k < names->count; k++) {
        if ((double)counts[k] < rare_share * (double)rows)
            p->has_rare = true;
        else
            TRY(fds__names_add(&p->levels, names->items[k], err));
    }
    return FDS_OK;
}

static fds_status check_levels(const sheet *s, const char *name, size_t levels, size_t rows,
                               fds_error *err) {
    if (rows < FEW_ROWS || levels <= rows / 2)
        return FDS_OK;
    return fds__fail(
        err, FDS_ERR_FORMAT,
        "%s: column \"%.60s\" is text with %zu different values in %zu rows, of which a "
        "network learns nothing; leave it out with --drop, or carry it along with --id",
        s->path, name, levels, rows);
}

static fds_status learn_levels(const sheet *s, const sheet_column *column, const fds_events *events,
                               prepared_column *p, fds_error *err) {
    const fds__numbering how = {.by_value = true,
                                .limit = FDS__MAX_PROVIDERS,
                                .what = "level",
                                .source = s->path,
                                .events = events};
    OWNED const char **texts = NULL;
    OWNED uint32_t *ids = NULL;
    OWNED size_t *counts = NULL;
    fds__names names = {0};
    size_t there = 0;
    TRY(NEW(texts, s->rows, err));
    TRY(NEW(ids, s->rows, err));
    TRY(NEW(counts, s->rows, err));
    for (size_t r = 0; r < s->rows; r++)
        if (*column->texts.items[r])
            texts[there++] = column->texts.items[r];
    fds_status status = fds__names_number(texts, there, &how, ids, &names, err);
    for (size_t r = 0; r < there && status == FDS_OK; r++)
        counts[ids[r]]++;
    p->has_missing = there < s->rows;
    if (status == FDS_OK)
        status = check_levels(s, column->name, names.count, there, err);
    if (status == FDS_OK)
        status = keep_levels(&names, counts, s->rows, p, err);
    fds__names_free(&names);
    return status;
}

static fds_status learn_column(const sheet *s, const sheet_column *column, const fds_events *events,
                               prepared_column *p, fds_error *err) {
    p->name = fds__strdup(column->name);
    p->is_text = column->is_text;
    if (!p->name)
        return fds__fail_nomem(err, strlen(column->name) + 1);
    if (p->is_text)
        return learn_levels(s, column, events, p, err);
    learn_numbers(column, s->rows, p);
    return FDS_OK;
}

static fds_status learn(const sheet *s, const fds_events *events, fds__preparation *p,
                        fds_error *err) {
    const sheet_column *id = sheet_find(s, SHEET_ID);
    p->separator = s->start.separator;
    if (id && !(p->id = fds__strdup(id->name)))
        return fds__fail_nomem(err, strlen(id->name) + 1);
    TRY(NEW(p->columns, s->count, err));
    for (size_t c = 0; c < s->count; c++) {
        if (s->columns[c].role != SHEET_FEATURE)
            continue;
        TRY(learn_column(s, &s->columns[c], events, &p->columns[p->count++], err));
        p->features += feature_count(&p->columns[p->count - 1]);
    }
    return p->features <= FDS__MAX_SIDE
               ? FDS_OK
               : fds__fail(err, FDS_ERR_LIMIT, "%s: %zu features, at most %u are allowed", s->path,
                           p->features, FDS__MAX_SIDE);
}

fds_status fds__prepare_learn(const sheet *s, const fds_events *events, fds__preparation **out,
                              fds_error *err) {
    fds__preparation *p = fds__alloc_zero(1, sizeof *p);
    if (!p)
        return fds__fail_nomem(err, sizeof *p);
    fds_status status = learn(s, events, p, err);
    if (status == FDS_OK)
        *out = p;
    else
        fds__preparation_free(p);
    return status;
}

/* ---- names ---- */

/* depth: of the parentheses around the level. */
static fds_status add_level(const char *column, const char *level, size_t depth, fds__names *out,
                            fds_error *err) {
    size_t length = strlen(column), size = length + strlen(level) + 2 * depth + 2;
    char *name = fds__alloc_zero(size, 1);
    if (!name)
        return fds__fail_nomem(err, size);
    snprintf(name, size, "%s=%*s%s", column, (int)depth, "", level);
    memset(name + length + 1, '(', depth);
    memset(name + size - 1 - depth, ')', depth);
    fds_status status = fds__names_push(out, name, err);
    if (status != FDS_OK)
        fds__free(name);
    return status;
}

/* A name in that many parentheses? */
static bool is_within(const char *name, const char *inner, size_t depth) {
    size_t length = strlen(inner);
    return strlen(name) == length + 2 * depth && strspn(name, "(") == depth &&
           strncmp(name + depth, inner, length) == 0 && strspn(name + depth + length, ")") == depth;
}

/* Adds a feature that is no level of the column. If a level has its name, it gets parentheses: (other);
 * and so on. */
static fds_status add_special(const prepared_column *p, const char *name, fds__names *out,
                              fds_error *err) {
    size_t depth = 0;
    for (bool is_taken = true; is_taken;) {
        is_taken = false;
        for (size_t k = 0; k < p->levels.count && !is_taken; k++)
            is_taken = is_within(p->levels.items[k], name, depth);
        depth += is_taken;
    }
    return add_level(p->name, name, depth, out, err);
}

fds_status fds__prepare_names(const fds__preparation *p, fds__names *out, fds_error *err) {
    for (size_t c = 0; c < p->count; c++) {
        const prepared_column *column = &p->columns[c];
        if (!column->is_text)
            TRY(fds__names_add(out, column->name, err));
        for (size_t k = 0; k < column->levels.count; k++)
            TRY(add_level(column->name, column->levels.items[k], 0, out, err));
        if (column->has_rare)
            TRY(add_special(column, "other", out, err));
        if (column->has_missing)
            TRY(add_special(column, "missing", out, err));
    }
    return FDS_OK;
}

/* ---- applying ---- */

/* The place of a text among the features of its column, or one beyond them. */
static size_t find_level(const prepared_column *p, const char *text) {
    size_t k = 0;
    if (!*text)
        return p->levels.count + p->has_rare; /* missing */
    while (k < p->levels.count && strcmp(p->levels.items[k], text) != 0)
        k++;
    return k < p->levels.count || p->has_rare ? k : SIZE_MAX;
}

static void apply_column(const prepared_column *p, const sheet_column *from, size_t rows,
                         size_t features, float *out) {
    size_t own = feature_count(p);
    for (size_t r = 0; r < rows; r++, out += features) {
        if (p->is_text) {
            size_t level = find_level(p, from->texts.items[r]);
            if (level < own)
                out[level] = 1;
            continue;
        }
        bool is_missing = isnan(from->values[r]);
        out[0] = is_missing ? p->mean : from->values[r];
        if (p->has_missing)
            out[1] = is_missing;
    }
}

static const sheet_column *find_feature(const sheet *s, const char *name) {
    for (size_t k = 0; k < s->count; k++)
        if (s->columns[k].role == SHEET_FEATURE && strcmp(s->columns[k].name, name) == 0)
            return &s->columns[k];
    return NULL;
}

void fds__prepare_apply(const fds__preparation *p, const sheet *s, float *out) {
    size_t at = 0;
    memset(out, 0, s->rows * p->features * sizeof *out);
    for (size_t c = 0; c < p->count; c++) {
        const sheet_column *from = find_feature(s, p->columns[c].name);
        assert(from);
        apply_column(&p->columns[c], from, s->rows, p->features, out + at);
        at += feature_count(&p->columns[c]);
    }
}

void fds__prepare_warn(const fds__preparation *p, const sheet *s, const fds_events *events) {
    for (size_t c = 0; c < p->count; c++) {
        const prepared_column *column = &p->columns[c];
        const sheet_column *from = find_feature(s, column->name);
        size_t missing = 0, unknown = 0;
        for (size_t r = 0; r < s->rows; r++) {
            bool is_missing = column->is_text ? !*from->texts.items[r] : isnan(from->values[r]);
            missing += is_missing;
            unknown += column->is_text && !is_missing &&
                       find_level(column, from->texts.items[r]) >= column->levels.count;
        }
        if (missing)
            fds__log(events, FDS_LOG_WARNING,
                     "%s: column \"%.60s\": %zu of %zu values are missing%s", s->path, column->name,
                     missing, s->rows, column->is_text ? "" : "; the mean takes their place");
        if (unknown)
            fds__log(events, FDS_LOG_WARNING,
                     "%s: column \"%.60s\": %zu of %zu values are rare or unknown to the run",
                     s->path, column->name, unknown, s->rows);
    }
}

/* ---- JSON ---- */

static json_t *column_json(const prepared_column *p) {
    json_t *levels = p->is_text ? json_array() : json_null();
    for (size_t k = 0; k < p->levels.count; k++)
        json_array_append_new(levels, json_string(p->levels.items[k]));
    return json_pack("{s:s, s:o, s:o, s:b, s:b}", "name", p->name, "mean",
                     p->is_text ? json_null() : json_real((double)p->mean), "levels", levels,
                     "has_rare", p->has_rare, "has_missing", p->has_missing);
}

json_t *fds__preparation_json(const fds__preparation *p) {
    if (!p)
        return json_null();
    json_t *columns = json_array();
    for (size_t c = 0; c < p->count; c++)
        json_array_append_new(columns, column_json(&p->columns[c]));
    const char separator[] = {p->separator, 0};
    return json_pack("{s:o, s:s, s:o}", "id", fds__json_string(p->id), "separator", separator,
                     "columns", columns);
}

static fds_status parse_levels(const json_t *levels, prepared_column *p, bool *is_good,
                               fds_error *err) {
    size_t k;
    json_t *level;
    json_array_foreach(levels, k, level) {
        *is_good = *is_good && json_is_string(level) && *json_string_value(level);
        if (*is_good)
            TRY(fds__names_add(&p->levels, json_string_value(level), err));
    }
    return FDS_OK;
}

static fds_status parse_column(const json_t *json, prepared_column *p, bool *is_good,
                               fds_error *err) {
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *mean = json_object_get(json, "mean"), *levels = json_object_get(json, "levels");
    p->is_text = json_is_array(levels);
    p->mean = (float)json_number_value(mean);
    p->has_rare = json_is_true(json_object_get(json, "has_rare"));
    p->has_missing = json_is_true(json_object_get(json, "has_missing"));
    *is_good = name && p->is_text != json_is_number(mean) && isfinite(p->mean) &&
               (p->is_text || !p->has_rare);
    if (*is_good && !(p->name = fds__strdup(name)))
        return fds__fail_nomem(err, strlen(name) + 1);
    return parse_levels(levels, p, is_good, err);
}

static fds_status parse(const json_t *json, const char *path, fds__preparation *p, fds_error *err) {
    const json_t *columns = json_object_get(json, "columns");
    const char *id = json_string_value(json_object_get(json, "id"));
    const char *separator = json_string_value(json_object_get(json, "separator"));
    p->separator = separator && strspn(separator, FDS__SEPARATORS) == 1 ? separator[0] : 0;
    if (id && !(p->id = fds__strdup(id)))
        return fds__fail_nomem(err, strlen(id) + 1);
    TRY(NEW(p->columns, json_array_size(columns), err));
    bool is_good = json_array_size(columns) > 0;
    for (; is_good && p->count < json_array_size(columns);) {
        prepared_column *column = &p->columns[p->count];
        TRY(parse_column(json_array_get(columns, p->count++), column, &is_good, err));
        p->features += feature_count(column);
    }
    return is_good ? FDS_OK
                   : fds__fail(err, FDS_ERR_FORMAT,
                               "%s: \"preparation\" does not say how rows become features", path);
}

fds_status fds__preparation_parse(const json_t *json, const char *path, fds__preparation **out,
                                  fds_error *err) {
    fds__preparation *p = fds__alloc_zero(1, sizeof *p);
    if (!p)
        return fds__fail_nomem(err, sizeof *p);
    fds_status status = parse(json, path, p, err);
    if (status == FDS_OK)
        *out = p;
    else
        fds__preparation_free(p);
    return status;
}

fds_status fds__preparation_copy(const fds__preparation *p, fds__preparation **out,
                                 fds_error *err) {
    json_t *json = fds__preparation_json(p);
    fds_status status =
        json ? fds__preparation_parse(json, "columns", out, err) : fds__fail_json(err);
    json_decref(json);
    return status;
}
