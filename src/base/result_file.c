/* SPDX-License-Identifier: Apache-2.0
 *
 * A result as a file, whole or in parts: memory does not grow with the number of predictions.
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

typedef struct format format;

struct fds_result_writer {
    const format *format;
    fds__out *out; /* or write */
    fds_write_function write;
    void *user;
    fds__text text; /* not yet written, but of a ranking */
    fds__result_text ranking;
    size_t *order; /* (players) */
    size_t players, predictions;
    size_t begun, written; /* parts, predictions */
    bool is_finished;
    double seconds;   /* of all parts; NaN: not known */
    uint64_t numbers; /* of NPY: where they begin */
};

struct format {
    const char *ending; /* NULL: a ranking */
    fds_status (*begin)(fds_result_writer *w, const fds_result *first, fds_error *err);
    fds_status (*add)(fds_result_writer *w, const fds_result *part, fds_error *err);
    fds_status (*end)(fds_result_writer *w, fds_error *err);
};

/* Writes the text, if it has at least so many bytes. */
static fds_status flush(fds_result_writer *w, size_t least, fds_error *err) {
    fds__text *text = w->format->ending ? &w->text : &w->ranking.text;
    TRY(fds__text_check(text, err));
    size_t used = text->used;
    if (used < least || !used)
        return FDS_OK;
    text->used = 0;
    if (w->out)
        return fds__out_write(w->out, text->data, used, err);
    return w->write(w->user, text->data, used) ? FDS_OK
                                               : fds__fail(err, FDS_ERR_IO, "cannot write values");
}

static fds_status check(const fds_result_writer *w, const fds_result *r, fds_error *err) {
    for (size_t i = 0; i < r->players * r->predictions; i++)
        if (!isfinite(r->values[i]) || isinf(r->errors[i]))
            return fds__fail(
                err, FDS_ERR_DIVERGED,
                "the value of player %zu in prediction %zu is infinite or not a number, "
                "or its error is infinite",
                i % r->players, w->written + i / r->players);
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

static void add_count(fds__text *text, size_t count) {
    fds__text_int(text, (int64_t)count);
    fds__text_add(text, ",", 1);
}

static void add_line(fds_result_writer *w, const fds_result *r, size_t k, size_t rank) {
    size_t i = w->order[rank], at = k * r->players + i;
    fds__text *text = &w->text;
    if (!r->is_mean) {
        if (r->samples[k] != FDS__UNKNOWN)
            add_count(text, r->samples[k]);
        else
            add_field(text, r->input_names[k]);
        add_label(text, r, r->labels[k]);
    }
    add_count(text, rank + 1);
    add_field(text, r->player_names[i]);
    add_label(text, r, r->player_labels[i]);
    add_field(text, r->provider_names[i]);
    add_count(text, r->player_sizes[i]);
    fds__text_double(text, r->values[at]);
    fds__text_add(text, ",", 1);
    fds__text_double(text, r->errors[at]);
    fds__text_add(text, "\n", 1);
}

static fds_status begin_csv(fds_result_writer *w, const fds_result *r, fds_error *err) {
    fds__text_print(&w->text, "%srank,player,player_label,provider,samples,value,standard_error\n",
                    r->is_mean ? "" : "test,label,");
    return NEW(w->order, r->players, err);
}

static fds_status add_csv(fds_result_writer *w, const fds_result *r, fds_error *err) {
    for (size_t k = 0; k < r->predictions; k++) {
        TRY(fds_result_rank(r, k, w->order, err));
        for (size_t rank = 0; rank < r->players; rank++) {
            add_line(w, r, k, rank);
            TRY(flush(w, BUFFER, err));
        }
    }
    return FDS_OK;
}

static fds_status end_csv(fds_result_writer *w, fds_error *err) { return flush(w, 0, err); }

/* ---- NPY ---- */

static void add_shape(const fds_result_writer *w, const fds_result *r, char *text, size_t size) {
    if (r->is_mean)
        snprintf(text, size, "(2, %zu)", r->players);
    else if (!r->has_all_labels)
        snprintf(text, size, "(2, %zu, %zu)", w->predictions, r->players);
    else
        snprintf(text, size, "(2, %zu, %u, %zu)", w->predictions / r->classes, r->classes,
                 r->players);
}

static fds_status begin_npy(fds_result_writer *w, const fds_result *r, fds_error *err) {
    char shape[100], header[FDS__NPY_HEADER];
    add_shape(w, r, shape, sizeof shape);
    w->numbers = fds__npy_header("<f8", shape, header);
    return fds__out_write(w->out, header, (size_t)w->numbers, err);
}

/* Values and errors each go where all of them will be. */
static fds_status add_npy(fds_result_writer *w, const fds_result *r, fds_error *err) {
    const uint64_t row = r->players * sizeof(double), at = w->numbers + w->written * row;
    const size_t size = r->predictions * (size_t)row;
    TRY(fds__out_write_at(w->out, r->values, size, at, err));
    return fds__out_write_at(w->out, r->errors, size, at + w->predictions * row, err);
}

static fds_status end_npy(fds_result_writer *w, fds_error *err) {
    (void)w, (void)err;
    return FDS_OK;
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

/* Adds a value and frees it; NULL: out of memory. */
static fds_status add_json(fds_result_writer *w, const char *before, json_t *json, fds_error *err) {
    OWNED char *text = json ? fds__json_text(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    json_decref(json);
    if (!text)
        return fds__fail_json(err);
    fds__text_add(&w->text, before, strlen(before));
    fds__text_add(&w->text, text, strlen(text));
    return flush(w, BUFFER, err);
}

static fds_status begin_json(fds_result_writer *w, const fds_result *r, fds_error *err) {
    TRY(add_json(w, "{\"players\": ", json_players(r), err));
    return add_json(w, ",\n\"classes\": ", json_classes(r), err);
}

/* As jansson writes an array of reals, in fewer digits and a fraction of the time. */
static void add_numbers(fds__text *text, const double *numbers, size_t count) {
    fds__text_add(text, "[", 1);
    for (size_t i = 0; i < count; i++) {
        char number[FDS__NUMBER] = "null";
        bool is_number = isfinite(numbers[i]);
        size_t size = is_number ? fds__write_double(numbers[i], number) : strlen(number);
        fds__text_add(text, ",", i > 0);
        fds__text_add(text, number, size);
        if (is_number && !memchr(number, '.', size) && !memchr(number, 'e', size))
            fds__text_add(text, ".0", 2);
    }
    fds__text_add(text, "]", 1);
}

static fds_status add_prediction(fds_result_writer *w, const fds_result *r, size_t k,
                                 fds_error *err) {
    const size_t at = k * r->players;
    if (!r->is_mean) {
        TRY(add_json(w, "\"test\":",
                     r->samples[k] == FDS__UNKNOWN ? fds__json_string(r->input_names[k])
                                                   : json_integer(r->samples[k]),
                     err));
        TRY(add_json(w, ",\"label\":", fds__result_json_label(r, r->labels[k]), err));
        fds__text_add(&w->text, ",", 1);
    }
    fds__text_print(&w->text, "\"values\":");
    add_numbers(&w->text, r->values + at, r->players);
    fds__text_print(&w->text, ",\"standard_errors\":");
    add_numbers(&w->text, r->errors + at, r->players);
    fds__text_add(&w->text, "}", 1);
    return flush(w, BUFFER, err);
}

static fds_status add_predictions(fds_result_writer *w, const fds_result *r, fds_error *err) {
    for (size_t k = 0; k < r->predictions; k++) {
        fds__text_print(&w->text, w->written + k ? ",\n{" : ",\n\"results\": [\n{");
        TRY(add_prediction(w, r, k, err));
    }
    return FDS_OK;
}

static fds_status end_json(fds_result_writer *w, fds_error *err) {
    fds__text_add(&w->text, "]}\n", 3);
    return flush(w, 0, err);
}

/* ---- the ranking of fds_result_json ---- */

static fds_status begin_ranking(fds_result_writer *w, const fds_result *r, fds_error *err) {
    return fds__result_text_begin(&w->ranking, r, w->predictions, err);
}

static fds_status add_rankings(fds_result_writer *w, const fds_result *r, fds_error *err) {
    const json_t *seconds = json_object_get(r->about, "seconds");
    w->seconds += json_is_number(seconds) ? json_number_value(seconds) : (double)NAN;
    for (size_t k = 0; k < r->predictions; k++) {
        TRY(fds__result_text_add(&w->ranking, r, k, err));
        TRY(flush(w, BUFFER, err));
    }
    return FDS_OK;
}

static fds_status end_ranking(fds_result_writer *w, fds_error *err) {
    fds__result_text_end(&w->ranking, w->seconds);
    return flush(w, 0, err);
}

/* ---- by the ending of the name ---- */

static const format formats[] = {{".csv", begin_csv, add_csv, end_csv},
                                 {".npy", begin_npy, add_npy, end_npy},
                                 {".json", begin_json, add_predictions, end_json}};
static const format of_ranking = {NULL, begin_ranking, add_rankings, end_ranking};

static const format *format_of(const char *path) {
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof formats / sizeof *formats; i++)
        if (strcasecmp(dot, formats[i].ending) == 0)
            return &formats[i];
    return NULL;
}

fds_status fds__result_check_path(const char *path, fds_error *err) {
    return format_of(path)
               ? FDS_OK
               : fds__fail(err, FDS_ERR_USAGE,
                           "%s: a file of values must end in .csv, .npy or .json", path);
}

/* ---- writers ---- */

void fds_result_writer_free(fds_result_writer *w) {
    if (!w)
        return;
    fds__out_abort(w->out);
    fds__free(w->text.data);
    fds__free(w->order);
    fds__result_text_free(&w->ranking);
    fds__free(w);
}

fds_status fds_result_writer_open(const char *path, size_t predictions, fds_result_writer **out,
                                  fds_error *err) {
    fds_result_writer *w;
    TRY(fds__result_check_path(path, err));
    TRY(NEW(w, 1, err));
    w->format = format_of(path);
    w->predictions = predictions;
    fds_status status = fds__out_open(path, &w->out, err);
    if (status == FDS_OK)
        *out = w;
    else
        fds_result_writer_free(w);
    return status;
}

fds_status fds_result_writer_print(size_t predictions, fds_write_function write, void *user,
                                   fds_result_writer **out, fds_error *err) {
    TRY(NEW(*out, 1, err));
    **out = (fds_result_writer){
        .format = &of_ranking, .predictions = predictions, .write = write, .user = user};
    return FDS_OK;
}

fds_status fds_result_writer_add(fds_result_writer *w, const fds_result *r, fds_error *err) {
    if (!r->players || !r->predictions)
        return fds__fail(err, FDS_ERR_USAGE,
                         "there are no values to write: %zu players, %zu predictions", r->players,
                         r->predictions);
    if (r->predictions > w->predictions - w->written || (w->begun && r->players != w->players))
        return fds__fail(err, FDS_ERR_USAGE,
                         "a part of %zu predictions and %zu players does not fit: %zu of %zu "
                         "predictions are written, of %zu players",
                         r->predictions, r->players, w->written, w->predictions, w->players);
    if (w->format->ending)
        TRY(check(w, r, err));
    w->players = r->players;
    if (!w->begun++)
        TRY(w->format->begin(w, r, err));
    TRY(w->format->add(w, r, err));
    w->written += r->predictions;
    return FDS_OK;
}

fds_status fds_result_writer_finish(fds_result_writer *w, fds_error *err) {
    if (!w->begun || w->written != w->predictions)
        return fds__fail(err, FDS_ERR_USAGE, "%zu of %zu predictions are written", w->written,
                         w->predictions);
    if (w->is_finished)
        return fds__fail(err, FDS_ERR_USAGE, "the result is written already");
    w->is_finished = true;
    TRY(w->format->end(w, err));
    fds__out *out = w->out;
    w->out = NULL;
    return out ? fds__out_commit(out, err) : FDS_OK;
}

fds_status fds_result_save(const fds_result *r, const char *path, fds_error *err) {
    fds_result_writer *w, none = {.predictions = r->predictions};
    TRY(fds__result_check_path(path, err));
    if (r->players && r->predictions)
        TRY(check(&none, r, err)); /* before any file is made */
    TRY(fds_result_writer_open(path, r->predictions, &w, err));
    fds_status status = fds_result_writer_add(w, r, err);
    if (status == FDS_OK)
        status = fds_result_writer_finish(w, err);
    fds_result_writer_free(w);
    return status;
}
