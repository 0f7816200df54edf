/* SPDX-License-Identifier: Apache-2.0
 *
 * A result as a file.
 *
 *   .csv   RFC 4180, with a header. One line for each prediction and player, the greatest value
 *          first:
 *              test,label,rank,player,player_label,provider,samples,value,standard_error
 *          and for a mean the same without test and label.
 *   .npy   NumPy's format, version 1.0, little-endian float64, C order: first all values, then
 *          all standard errors, players in their own order. Shape (2, predictions, players), with
 *          every label of each test sample (2, tests, classes, players), for a mean (2, players).
 *   .json  {"players": [{"name", "label", "provider", "samples"}, ...], "classes": [name, ...],
 *          "results": [...]}, where a result has "test" and "label" (unless it is a mean),
 *          "values" and "standard_errors", one number per player.
 *
 * The standard error of an exact value is 0; an unknown one is nan, in JSON null. Numbers are
 * written so that they are read back as the same bits.
 */
#include "base/base.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { BUFFER = 1 << 16 };

typedef struct {
    const fds_result *r;
    fds__out *out;
    fds__text text; /* not yet written */
    size_t *order;  /* (players) */
} writer;

/* Writes the text, if it has at least so many bytes. */
static fds_status flush(writer *w, size_t least, fds_error *err) {
    TRY(fds__text_check(&w->text, err));
    if (w->text.used < least)
        return FDS_OK;
    size_t used = w->text.used;
    w->text.used = 0;
    return used ? fds__out_write(w->out, w->text.data, used, err) : FDS_OK;
}

static fds_status check(const fds_result *r, fds_error *err) {
    if (!r->players || !r->predictions)
        return fds__fail(err, FDS_ERR_USAGE,
                         "there are no values to write: %zu players, %zu predictions", r->players,
                         r->predictions);
    for (size_t i = 0; i < r->players * r->predictions; i++)
        if (!isfinite(r->values[i]) || isinf(r->errors[i]))
            return fds__fail(
                err, FDS_ERR_DIVERGED,
                "the value of player %zu in prediction %zu is infinite or not a number, "
                "or its error is infinite",
                i % r->players, i / r->players);
    return FDS_OK;
}

/* ---- CSV ---- */

static void add_field(fds__text *text, const char *field) {
    fds__text_csv(text, field ? field : "");
    fds__text_add(text, ",", 1);
}

/* A number is none of the texts that a spreadsheet might take for a formula. */
static void add_label(fds__text *text, const fds_result *r, uint32_t label) {
    if (!r->is_regression) {
        add_field(text, label < r->classes && r->class_names[label] ? r->class_names[label] : "?");
        return;
    }
    if (label < r->classes)
        fds__text_double(text, r->numbers[label]);
    fds__text_add(text, ",", 1);
}

static void add_line(writer *w, size_t k, size_t rank) {
    const fds_result *r = w->r;
    size_t i = w->order[rank], at = k * r->players + i;
    fds__text *text = &w->text;
    if (!r->is_mean) {
        if (r->samples[k] != FDS__UNKNOWN)
            fds__text_print(text, "%u,", r->samples[k]);
        else
            add_field(text, r->input_names[k]);
        add_label(text, r, r->labels[k]);
    }
    fds__text_print(text, "%zu,", rank + 1);
    add_field(text, r->player_names[i]);
    add_label(text, r, r->player_labels[i]);
    add_field(text, r->provider_names[i]);
    fds__text_print(text, "%u,", r->player_sizes[i]);
    fds__text_double(text, r->values[at]);
    fds__text_add(text, ",", 1);
    fds__text_double(text, r->errors[at]);
    fds__text_add(text, "\n", 1);
}

static fds_status write_csv(writer *w, fds_error *err) {
    fds__text_print(&w->text, "%srank,player,player_label,provider,samples,value,standard_error\n",
                    w->r->is_mean ? "" : "test,label,");
    for (size_t k = 0; k < w->r->predictions; k++) {
        TRY(fds_result_rank(w->r, k, w->order, err));
        for (size_t rank = 0; rank < w->r->players; rank++) {
            add_line(w, k, rank);
            TRY(flush(w, BUFFER, err));
        }
    }
    return FDS_OK;
}

/* ---- NPY ---- */

static void add_shape(const fds_result *r, char *text, size_t size) {
    if (r->is_mean)
        snprintf(text, size, "(2, %zu)", r->players);
    else if (!r->has_all_labels)
        snprintf(text, size, "(2, %zu, %zu)", r->predictions, r->players);
    else
        snprintf(text, size, "(2, %zu, %u, %zu)", r->predictions / r->classes, r->classes,
                 r->players);
}

static void add_npy_header(writer *w) {
    char shape[100], header[FDS__NPY_HEADER];
    add_shape(w->r, shape, sizeof shape);
    fds__text_add(&w->text, header, fds__npy_header("<f8", shape, header));
}

static fds_status write_npy(writer *w, fds_error *err) {
    size_t size = w->r->players * w->r->predictions * sizeof(double);
    add_npy_header(w);
    TRY(flush(w, 0, err));
    TRY(fds__out_write(w->out, w->r->values, size, err));
    return fds__out_write(w->out, w->r->errors, size, err);
}

/* ---- JSON ---- */

static json_t *json_players(const fds_result *r) {
    json_t *list = json_array();
    bool is_whole = list;
    for (size_t i = 0; i < r->players && is_whole; i++)
        is_whole = fds__json_append(
            list, json_pack("{s:o, s:o, s:o, s:I}", "name", fds__json_string(r->player_names[i]),
                            "label", fds__result_json_label(r, r->player_labels[i]), "provider",
                            fds__json_string(r->provider_names[i]), "samples",
                            (json_int_t)r->player_sizes[i]));
    return fds__json_keep_if(list, is_whole);
}

static json_t *json_classes(const fds_result *r) {
    json_t *list = json_array();
    bool is_whole = list;
    for (uint32_t c = 0; c < r->classes && !r->is_regression && is_whole; c++)
        is_whole = fds__json_append(list, fds__json_string(r->class_names[c]));
    return fds__json_keep_if(list, is_whole);
}

static json_t *json_numbers(const double *numbers, size_t count) {
    json_t *list = json_array();
    bool is_whole = list;
    for (size_t i = 0; i < count && is_whole; i++)
        is_whole = fds__json_append(list, fds__json_real(numbers[i]));
    return fds__json_keep_if(list, is_whole);
}

static json_t *json_prediction(const fds_result *r, size_t k) {
    json_t *values = json_numbers(r->values + k * r->players, r->players);
    json_t *errors = json_numbers(r->errors + k * r->players, r->players);
    if (r->is_mean)
        return json_pack("{s:o, s:o}", "values", values, "standard_errors", errors);
    return json_pack("{s:o, s:o, s:o, s:o}", "test",
                     r->samples[k] == FDS__UNKNOWN ? fds__json_string(r->input_names[k])
                                                   : json_integer(r->samples[k]),
                     "label", fds__result_json_label(r, r->labels[k]), "values", values,
                     "standard_errors", errors);
}

/* Adds a value and frees it; NULL: out of memory. */
static fds_status add_json(writer *w, const char *before, json_t *json, fds_error *err) {
    OWNED char *text = json ? fds__json_text(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text)
        return fds__fail_json(err);
    fds__text_add(&w->text, before, strlen(before));
    fds__text_add(&w->text, text, strlen(text));
    return flush(w, BUFFER, err);
}

/* Predictions are made one at a time: memory does not grow with their number. */
static fds_status write_json(writer *w, fds_error *err) {
    TRY(add_json(w, "{\"players\": ", json_players(w->r), err));
    TRY(add_json(w, ",\n\"classes\": ", json_classes(w->r), err));
    for (size_t k = 0; k < w->r->predictions; k++)
        TRY(add_json(w, k ? ",\n" : ",\n\"results\": [\n", json_prediction(w->r, k), err));
    fds__text_add(&w->text, "]}\n", 3);
    return FDS_OK;
}

/* ---- by the ending of the name ---- */

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

fds_status fds__result_check_path(const char *path, fds_error *err) {
    return function_for(path)
               ? FDS_OK
               : fds__fail(err, FDS_ERR_USAGE,
                           "%s: a file of values must end in .csv, .npy or .json", path);
}

static fds_status write_all(writer *w, const char *path, fds_error *err) {
    TRY(fds__out_open(path, &w->out, err));
    fds_status status = function_for(path)(w, err);
    if (status == FDS_OK)
        status = flush(w, 0, err);
    if (status == FDS_OK)
        return fds__out_commit(w->out, err);
    fds__out_abort(w->out);
    return status;
}

fds_status fds_result_save(const fds_result *r, const char *path, fds_error *err) {
    TRY(fds__result_check_path(path, err));
    TRY(check(r, err));
    OWNED size_t *order = NULL;
    TRY(NEW(order, r->players, err));
    writer w = {.r = r, .order = order};
    fds_status status = write_all(&w, path, err);
    fds__free(w.text.data);
    return status;
}
