/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of players and their standard errors, written to a file.
 *
 *   .csv   RFC 4180, with a header. One line for each test sample, target label and player:
 *              test,label,player,player_label,value,standard_error
 *          and for a mean one for each player:
 *              player,player_label,value,standard_error
 *          A name that a spreadsheet would run as a formula has a ' in front (fds__text_csv).
 *   .npy   NumPy's format, version 1.0, little-endian float64, C order: first all values, then
 *          all standard errors. Shape (2, tests, players), with every label of each test sample
 *          (2, tests, classes, players), for a mean (2, players).
 *   .json  {"players": [{"name", "label"}, ...], "classes": [name, ...], "results": [...]}, where a
 *          result has "test" and "label" (unless it is a mean), "values" and "standard_errors", one
 *          number a player.
 *
 * A standard error of 0 is that of an exact value; one that is not known is nan, in JSON null.
 *
 * Numbers are written so that they are read back as the same bits. Text that is not UTF-8 has "?"
 * for its bytes above 127 in JSON.
 */
#include "utility/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { BUFFER = 1 << 16, NPY_ALIGN = 64 };

typedef struct {
    const fds_values *v;
    size_t columns, per_test;
    fds__out *out;
    char *buffer;
    size_t used;
    fds__text field; /* the last field of a CSV file */
} writer;

/* ---- bytes ---- */

static fds_status flush(writer *w, fds_error *err) {
    size_t used = w->used;
    w->used = 0;
    return used ? fds__out_write(w->out, w->buffer, used, err) : FDS_OK;
}

static fds_status put(writer *w, const void *data, size_t size, fds_error *err) {
    const char *at = data;
    while (size > 0) {
        size_t part = MIN(size, BUFFER - w->used);
        memcpy(w->buffer + w->used, at, part);
        w->used += part;
        at += part;
        size -= part;
        if (w->used == BUFFER)
            TRY(flush(w, err));
    }
    return FDS_OK;
}

static fds_status put_text(writer *w, const char *text, fds_error *err) {
    return put(w, text, strlen(text), err);
}

/* ---- what there is ---- */

static size_t test_of(const writer *w, size_t column) {
    size_t test = column / w->per_test;
    return w->v->test_samples ? w->v->test_samples[test] : test;
}

static uint32_t label_of(const writer *w, size_t column) {
    const uint32_t *labels = w->v->target_labels;
    return labels ? labels[column] : (uint32_t)(column % w->per_test);
}

static double value_of(const writer *w, size_t player, size_t column) {
    return w->v->values[player * w->columns + column];
}

static double error_of(const writer *w, size_t player, size_t column) {
    return w->v->errors ? w->v->errors[player * w->columns + column] : 0;
}

static fds_status check(const writer *w, fds_error *err) {
    const fds_values *v = w->v;
    if (!v->players || !w->columns)
        return fds__fail(err, FDS_ERR_USAGE,
                         "there are no values to write: %zu players, %zu columns", v->players,
                         w->columns);
    for (size_t p = 0; p < v->players; p++)
        if (v->player_labels[p] >= v->classes)
            return fds__fail(err, FDS_ERR_USAGE, "player %zu: label %u, there are %u classes", p,
                             v->player_labels[p], v->classes);
    for (size_t c = 0; !v->is_mean && c < w->columns; c++)
        if (label_of(w, c) >= v->classes)
            return fds__fail(err, FDS_ERR_USAGE, "test %zu: label %u, there are %u classes",
                             c / w->per_test, label_of(w, c), v->classes);
    for (size_t p = 0; p < v->players; p++)
        for (size_t c = 0; c < w->columns; c++)
            if (!isfinite(value_of(w, p, c)) || isinf(error_of(w, p, c)))
                return fds__fail(err, FDS_ERR_DIVERGED,
                                 "the value of player %zu in column %zu is infinite or no number, "
                                 "or its error is infinite",
                                 p, c);
    return FDS_OK;
}

/* ---- CSV ---- */

static fds_status put_field(writer *w, const char *text, const char *after, fds_error *err) {
    w->field.used = 0;
    fds__text_csv(&w->field, text);
    TRY(fds__text_check(&w->field, err));
    TRY(put(w, w->field.data, w->field.used, err));
    return put_text(w, after, err);
}

static fds_status put_line(writer *w, size_t column, size_t player, fds_error *err) {
    const fds_values *v = w->v;
    char text[2 * FDS__NUMBER + 2], value[FDS__NUMBER], error[FDS__NUMBER];
    if (!v->is_mean) {
        snprintf(text, sizeof text, "%zu,", test_of(w, column));
        TRY(put_text(w, text, err));
        TRY(put_field(w, v->class_names[label_of(w, column)], ",", err));
    }
    TRY(put_field(w, v->player_names[player], ",", err));
    TRY(put_field(w, v->class_names[v->player_labels[player]], ",", err));
    fds__write_double(value_of(w, player, column), value);
    fds__write_double(error_of(w, player, column), error);
    snprintf(text, sizeof text, "%s,%s\n", value, error);
    return put_text(w, text, err);
}

static fds_status write_csv(writer *w, fds_error *err) {
    if (!w->v->is_mean)
        TRY(put_text(w, "test,label,", err));
    TRY(put_text(w, "player,player_label,value,standard_error\n", err));
    for (size_t column = 0; column < w->columns; column++)
        for (size_t player = 0; player < w->v->players; player++)
            TRY(put_line(w, column, player, err));
    return FDS_OK;
}

/* ---- NPY ---- */

static void npy_shape(const writer *w, char *text, size_t size) {
    const fds_values *v = w->v;
    if (v->is_mean)
        snprintf(text, size, "(2, %zu)", v->players);
    else if (v->target_labels)
        snprintf(text, size, "(2, %zu, %zu)", v->tests, v->players);
    else
        snprintf(text, size, "(2, %zu, %u, %zu)", v->tests, v->classes, v->players);
}

/* Magic number, version 1.0, length of the rest in two bytes; then a dictionary, padded with blanks
 * and a newline so that the numbers begin at a multiple of 64. */
static fds_status put_npy_header(writer *w, fds_error *err) {
    char shape[100], header[4 * NPY_ALIGN];
    npy_shape(w, shape, sizeof shape);
    int used = snprintf(header, sizeof header,
                        "\x93NUMPY%c%c%c%c{'descr': '<f8', 'fortran_order': False, 'shape': %s, }",
                        1, 0, 0, 0, shape);
    size_t size = ((size_t)used + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    memset(header + used, ' ', size - (size_t)used);
    header[size - 1] = '\n';
    header[8] = (char)((size - 10) & 0xff);
    header[9] = (char)((size - 10) >> 8);
    return put(w, header, size, err);
}

static fds_status put_double(writer *w, double value, fds_error *err) {
    uint64_t bits;
    uint8_t bytes[8];
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    return put(w, bytes, sizeof bytes, err);
}

static fds_status write_npy(writer *w, fds_error *err) {
    double (*const parts[])(const writer *, size_t, size_t) = {value_of, error_of};
    TRY(put_npy_header(w, err));
    for (int part = 0; part < 2; part++)
        for (size_t column = 0; column < w->columns; column++)
            for (size_t player = 0; player < w->v->players; player++)
                TRY(put_double(w, parts[part](w, player, column), err));
    return FDS_OK;
}

/* ---- JSON ---- */

static json_t *json_players(const fds_values *v) {
    json_t *list = json_array();
    for (size_t p = 0; p < v->players; p++) {
        json_t *player = json_pack("{s:o, s:o}", "name", fds__json_string(v->player_names[p]),
                                   "label", fds__json_string(v->class_names[v->player_labels[p]]));
        if (json_array_append_new(list, player) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *json_classes(const fds_values *v) {
    json_t *list = json_array();
    for (uint32_t c = 0; c < v->classes; c++)
        if (json_array_append_new(list, fds__json_string(v->class_names[c])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *json_column(const writer *w, size_t column,
                           double (*get)(const writer *, size_t, size_t)) {
    json_t *list = json_array();
    for (size_t p = 0; p < w->v->players; p++) {
        double number = get(w, p, column);
        if (json_array_append_new(list, isnan(number) ? json_null() : json_real(number)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *json_result(const writer *w, size_t column) {
    json_t *values = json_column(w, column, value_of), *errors = json_column(w, column, error_of);
    if (w->v->is_mean)
        return json_pack("{s:o, s:o}", "values", values, "standard_errors", errors);
    return json_pack("{s:I, s:o, s:o, s:o}", "test", (json_int_t)test_of(w, column), "label",
                     fds__json_string(w->v->class_names[label_of(w, column)]), "values", values,
                     "standard_errors", errors);
}

/* Writes a value and lets go of it; NULL stands for no memory. */
static fds_status put_json(writer *w, json_t *json, fds_error *err) {
    char *text = json ? fds__json_text(json, JSON_COMPACT) : NULL;
    json_decref(json);
    fds_status status = text ? put_text(w, text, err) : fds__fail_nomem(err, w->v->players);
    fds__free(text);
    return status;
}

/* Results are made one at a time: their memory does not grow with the test samples. */
static fds_status write_json(writer *w, fds_error *err) {
    TRY(put_text(w, "{\"players\": ", err));
    TRY(put_json(w, json_players(w->v), err));
    TRY(put_text(w, ",\n\"classes\": ", err));
    TRY(put_json(w, json_classes(w->v), err));
    TRY(put_text(w, ",\n\"results\": [", err));
    for (size_t column = 0; column < w->columns; column++) {
        TRY(put_text(w, column ? ",\n" : "\n", err));
        TRY(put_json(w, json_result(w, column), err));
    }
    return put_text(w, "]}\n", err);
}

/* ---- which of them ---- */

typedef fds_status (*write_function)(writer *w, fds_error *err);

static write_function function_for(const char *path) {
    static const struct {
        const char *ending;
        write_function write;
    } formats[] = {{".csv", write_csv}, {".npy", write_npy}, {".json", write_json}};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof formats / sizeof *formats; i++)
        if (strcasecmp(dot, formats[i].ending) == 0)
            return formats[i].write;
    return NULL;
}

fds_status fds_values_check_path(const char *path, fds_error *err) {
    if (function_for(path))
        return FDS_OK;
    return fds__fail(err, FDS_ERR_USAGE,
                     "%s: the name of a file of values must end in .csv, .npy or "
                     ".json",
                     path);
}

fds_status fds_values_save(const fds_values *values, const char *path, fds_error *err) {
    size_t per_test = values->is_mean || values->target_labels ? 1 : values->classes;
    writer w = {.v = values, .per_test = per_test};
    w.columns = values->is_mean ? 1 : values->tests * per_test;
    TRY(fds_values_check_path(path, err));
    TRY(check(&w, err));
    w.buffer = fds__alloc(BUFFER);
    if (!w.buffer)
        return fds__fail_nomem(err, BUFFER);
    fds_status status = fds__out_open(path, &w.out, err);
    if (status == FDS_OK) {
        status = function_for(path)(&w, err);
        if (status == FDS_OK)
            status = flush(&w, err);
        if (status == FDS_OK)
            status = fds__out_commit(w.out, err);
        else
            fds__out_abort(w.out);
    }
    fds__free(w.buffer);
    fds__free(w.field.data);
    return status;
}
