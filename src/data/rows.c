/* SPDX-License-Identifier: Apache-2.0
 * New samples, which have no labels: rows of a CSV file with the columns of the training data, an NPY
 * array of samples of the same shape, or one sample as JSON. */
#include "data/sheet.h"

#include <math.h>
#include <string.h>

/* That of the training table, unless the first line has others and not that. */
static char separator_of(const fds__blob *file, char usual) {
    const char *text = (const char *)file->data;
    size_t length = strcspn(text, "\r\n");
    bool has_usual = memchr(text, usual, length),
         has_other = strcspn(text, FDS__SEPARATORS) < length;
    return has_usual || !has_other ? usual : 0;
}

static fds_status read_sheet(const fds__blob *file, const fds__preparation *p,
                             const fds_events *events, sheet *s, fds_dataset **out,
                             fds_error *err) {
    fds_shape shape = {(uint32_t)p->features, 1, 1};
    TRY(sheet_open(file, separator_of(file, p->separator), s, err));
    TRY(sheet_prepare(s, p, err));
    TRY(sheet_read(s, FDS__MISSING_MEAN, events, err));
    TRY(fds__dataset_new(file->path, s->rows, shape, false, out, err));
    fds__prepare_apply(p, s, (*out)->floats);
    fds__prepare_warn(p, s, events);
    const sheet_column *id = sheet_find(s, SHEET_ID);
    return id ? fds__names_copy(id->texts.items, s->rows, &(*out)->sample_names, err) : FDS_OK;
}

static fds_status read_rows(fds__blob *file, const fds__preparation *p, const fds_events *events,
                            fds_dataset **out, fds_error *err) {
    sheet s = {0};
    if (file->size >= 6 && memcmp(file->data, "\x93NUMPY", 6) == 0)
        return fds__npy_values(file, out, err);
    if (!p)
        return fds__fail(
            err, FDS_ERR_FORMAT,
            "%s: not an NPY file; the run was not fitted on a CSV file, so it knows no "
            "columns by name",
            file->path);
    fds_status status = read_sheet(file, p, events, &s, out, err);
    sheet_free(&s);
    return status;
}

/* Gives the dataset its number of classes and checks its shape; drops it after a failure. */
static fds_status finish(fds_status status, const char *path, fds_shape shape, uint32_t classes,
                         fds_dataset **out, fds_error *err) {
    if (status == FDS_OK) {
        fds_shape is = (*out)->shape;
        (*out)->classes = classes;
        if (memcmp(&is, &shape, sizeof is) != 0)
            status = fds__fail(
                err, FDS_ERR_SHAPE, "%s: samples of %u x %u x %u, but the run has %u x %u x %u",
                path, is.channels, is.height, is.width, shape.channels, shape.height, shape.width);
    }
    if (status == FDS_OK)
        status = fds__dataset_finish(*out, NULL, NULL, err);
    if (status != FDS_OK)
        fds__dataset_drop(out);
    return status;
}

fds_status fds__data_rows(const char *path, const fds__preparation *p, fds_shape shape,
                          uint32_t classes, const fds_events *events, fds_dataset **out,
                          fds_error *err) {
    fds__blob file = {.path = strcmp(path, "-") == 0 ? "standard input" : path, .is_given = true};
    TRY(fds__file_read_gz(path, FDS__MAX_FILE, events, &file.data, &file.size, err));
    *out = NULL;
    fds_status status = read_rows(&file, p, events, out, err);
    fds__free(file.data);
    return finish(status, file.path, shape, classes, out, err);
}

/* ---- JSON ---- */

/* The numbers of an array, one after another. */
static fds_status read_array(const json_t *json, fds_shape shape, fds_dataset **out,
                             fds_error *err) {
    TRY(fds__dataset_new("JSON", 1, shape, false, out, err));
    fds_dataset *ds = *out; /* the caller frees it on failure */
    if (json_array_size(json) != ds->sample_size)
        return fds__fail(err, FDS_ERR_SHAPE, "JSON: %zu numbers, but a sample of the run has %zu",
                         json_array_size(json), ds->sample_size);
    for (size_t i = 0; i < ds->sample_size; i++) {
        const json_t *number = json_array_get(json, i);
        if (!json_is_number(number))
            return fds__fail(err, FDS_ERR_FORMAT, "JSON: item %zu (from 0) is not a number", i);
        ds->floats[i] = (float)json_number_value(number);
    }
    return FDS_OK;
}

/* A member as a column of one row: number, text or null. */
static fds_status read_member(const json_t *json, const prepared_column *p, float *number,
                              sheet_column *column, fds_error *err) {
    const json_t *value = json_object_get(json, p->name);
    *column = (sheet_column){.name = p->name, .is_text = p->is_text, .values = number};
    if (!value)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "JSON: \"%.60s\" is missing; give null if it is not known", p->name);
    bool is_missing = json_is_null(value);
    bool fits = is_missing || (p->is_text ? json_is_string(value) : json_is_number(value));
    if (!fits)
        return fds__fail(err, FDS_ERR_FORMAT, "JSON: \"%.60s\" must be a %s or null", p->name,
                         p->is_text ? "text" : "number");
    *number = is_missing || p->is_text ? NAN : (float)json_number_value(value);
    return p->is_text
               ? fds__names_add(&column->texts, is_missing ? "" : json_string_value(value), err)
               : FDS_OK;
}

/* A text or an integer. */
static fds_status read_id(const json_t *id, fds_dataset *ds, fds_error *err) {
    char number[32], *name = number;
    const char *text = json_string_value(id);
    if (!text && !json_is_integer(id))
        return FDS_OK;
    snprintf(number, sizeof number, "%lld", (long long)json_integer_value(id));
    if (text)
        name = (char *)(uintptr_t)text;
    return fds__names_copy(&name, 1, &ds->sample_names, err);
}

static fds_status read_object(const json_t *json, const fds__preparation *p, fds_dataset **out,
                              fds_error *err) {
    OWNED sheet_column *columns = NULL;
    OWNED float *numbers = NULL;
    TRY(NEW(columns, p->count, err));
    TRY(NEW(numbers, p->count, err));
    const sheet s = {.columns = columns, .count = p->count, .rows = 1};
    fds_status status =
        fds__dataset_new("JSON", 1, (fds_shape){(uint32_t)p->features, 1, 1}, false, out, err);
    for (size_t c = 0; c < p->count && status == FDS_OK; c++)
        status = read_member(json, &p->columns[c], &numbers[c], &columns[c], err);
    if (status == FDS_OK)
        fds__prepare_apply(p, &s, (*out)->floats);
    for (size_t c = 0; c < p->count; c++)
        fds__names_free(&columns[c].texts);
    return status == FDS_OK && p->id ? read_id(json_object_get(json, p->id), *out, err) : status;
}

fds_status fds__data_json(const char *text, const fds__preparation *p, fds_shape shape,
                          uint32_t classes, fds_dataset **out, fds_error *err) {
    json_t *json = NULL;
    *out = NULL;
    TRY(fds__json_parse("JSON", text, strlen(text), &json, err));
    fds_status status =
        json_is_array(json) ? read_array(json, shape, out, err)
        : p && json_is_object(json)
            ? read_object(json, p, out, err)
            : fds__fail(err, FDS_ERR_FORMAT,
                        p ? "JSON: must be an object with the columns of the run's data, or an "
                            "array of numbers"
                          : "JSON: must be an array of numbers; the run knows no columns by name");
    json_decref(json);
    return finish(status, "JSON", shape, classes, out, err);
}
