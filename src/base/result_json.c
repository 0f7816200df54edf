/* SPDX-License-Identifier: Apache-2.0
 *
 * A result as JSON, with the players of each prediction by rank:
 *
 *     {"version": ..., how it was computed,
 *      "inputs": [{"input", "sample", ..., "ranking": [{"rank", "player", ...}, ...]}, ...]}
 *
 * or, where inputs have no names, "ranking" of the mean over all predictions. The text is made part by
 * part, as a result in parts comes, and is what jansson writes with an indentation of one; a tree of a
 * thousand players takes a megabyte for each input. */
#include "base/base.h"

#include <math.h>
#include <string.h>

enum { DIGITS = 12, FLAGS = JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS) };
/* depth of a player in the ranking of an input, and of the mean */
enum { OF_INPUT = 4, OF_MEAN = 2 };

json_t *fds__result_json_label(const fds_result *r, uint32_t label) {
    if (r->is_regression)
        return label < r->classes ? fds__json_real(r->numbers[label]) : json_null();
    return fds__json_string(label < r->classes && r->class_names[label] ? r->class_names[label]
                                                                        : NULL);
}

json_t *fds__result_json_prediction(const fds_result *r, size_t k) {
    const char *none = r->is_regression ? "utility_with_none" : "probability_with_none";
    const char *all = r->is_regression ? "utility_with_all" : "probability_with_all";
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "input",
                     fds__json_string(fds_result_input(r, k)), "sample",
                     r->samples[k] == FDS__UNKNOWN ? json_null() : json_integer(r->samples[k]),
                     "predicted", fds__result_json_label(r, r->predicted[k]), "confidence",
                     fds__json_real(r->confidence[k]), "true",
                     fds__result_json_label(r, r->truth[k]), "label",
                     fds__result_json_label(r, r->labels[k]), none, fds__json_real(r->empty[k]),
                     all, fds__json_real(r->full[k]));
}

/* ---- pieces ---- */

/* As jansson does: a point or an exponent, and this without needless characters. */
static void add_real(fds__text *text, double value) {
    char number[FDS__NUMBER];
    if (!isfinite(value)) {
        fds__text_add(text, "null", 4);
        return;
    }
    snprintf(number, sizeof number, "%.*g", DIGITS, value);
    char *comma = strchr(number, ','), *e = strchr(number, 'e');
    if (comma) /* of the locale */
        *comma = '.';
    if (e) {
        char *to = e + 1 + (e[1] == '-'), *from = e + 2 + strspn(e + 2, "0");
        memmove(to, from, strlen(from) + 1);
    } else if (!strchr(number, '.')) {
        strcat(number, ".0");
    }
    fds__text_add(text, number, strlen(number));
}

static void add_line(fds__text *text, size_t depth) {
    static const char blanks[] = "\n      ";
    assert(depth < sizeof blanks - 1);
    fds__text_add(text, blanks, depth + 1);
}

/* Begins a member of an object. */
static void add_key(fds__text *text, bool is_first, size_t depth, const char *key) {
    fds__text_add(text, ",", !is_first);
    add_line(text, depth);
    fds__text_print(text, "\"%s\": ", key);
}

/* Adds a value and frees it, NULL: out of memory; without the end of an object that goes on. */
static fds_status add_json(fds__text *text, json_t *json, size_t depth, bool goes_on,
                           fds_error *err) {
    OWNED char *dump = json ? fds__json_text(json, FLAGS | JSON_ENCODE_ANY) : NULL;
    bool is_empty = json_is_object(json) && !json_object_size(json);
    json_decref(json);
    if (!dump)
        return fds__fail_json(err);
    const char *at = dump, *end = dump + strlen(dump) - (goes_on ? is_empty ? 1 : 2 : 0), *line;
    while ((line = memchr(at, '\n', (size_t)(end - at)))) {
        fds__text_add(text, at, (size_t)(line - at));
        add_line(text, depth);
        at = line + 1;
    }
    fds__text_add(text, at, (size_t)(end - at));
    return FDS_OK;
}

/* What is the same of a player in each ranking, between rank and value. */
static fds_status add_player(fds__text *text, const fds_result *r, size_t i, size_t depth,
                             fds_error *err) {
    add_key(text, false, depth, "player");
    TRY(add_json(text, fds__json_string(r->player_names[i]), depth, false, err));
    add_key(text, false, depth, "label");
    TRY(add_json(text, fds__result_json_label(r, r->player_labels[i]), depth, false, err));
    add_key(text, false, depth, "provider");
    TRY(add_json(text, fds__json_string(r->provider_names[i]), depth, false, err));
    add_key(text, false, depth, "samples");
    fds__text_print(text, "%u", r->player_sizes[i]);
    add_key(text, false, depth, "value");
    return FDS_OK;
}

static fds_status name_players(fds__result_text *t, const fds_result *r, fds_error *err) {
    size_t depth = t->has_inputs ? OF_INPUT + 1 : OF_MEAN + 1;
    TRY(NEW(t->order, r->players, err));
    TRY(NEW(t->player_ends, r->players, err));
    for (size_t i = 0; i < r->players; i++) {
        TRY(add_player(&t->players, r, i, depth, err));
        t->player_ends[i] = t->players.used;
    }
    return r->players ? fds__text_check(&t->players, err) : FDS_OK;
}

static void add_place(fds__result_text *t, const fds_result *r, size_t k, size_t rank, size_t i) {
    fds__text *text = &t->text;
    bool is_mean = k == SIZE_MAX;
    size_t at = k * r->players + i, depth = is_mean ? OF_MEAN : OF_INPUT,
           begin = i ? t->player_ends[i - 1] : 0;
    fds__text_add(text, ",", rank > 0);
    add_line(text, depth);
    fds__text_add(text, "{", 1);
    add_key(text, true, depth + 1, "rank");
    fds__text_int(text, (int64_t)rank + 1);
    fds__text_add(text, t->players.data + begin, t->player_ends[i] - begin);
    add_real(text, is_mean ? r->means[i] : r->values[at]);
    add_key(text, false, depth + 1, "standard_error");
    add_real(text, is_mean ? r->mean_errors[i] : r->errors[at]);
    if (r->has_shares) {
        add_key(text, false, depth + 1, "share");
        add_real(text, fds_result_share(r, k, i));
    }
    if (!is_mean && r->checks) {
        add_key(text, false, depth + 1, "bank_value");
        add_real(text, r->checks[at]);
        add_key(text, false, depth + 1, "bank_standard_error");
        add_real(text, r->check_errors[at]);
    }
    add_line(text, depth);
    fds__text_add(text, "}", 1);
}

static fds_status add_ranking(fds__result_text *t, const fds_result *r, size_t k, bool is_first,
                              fds_error *err) {
    size_t depth = k == SIZE_MAX ? OF_MEAN - 1 : OF_INPUT - 1;
    add_key(&t->text, is_first, depth, "ranking");
    fds__text_add(&t->text, "[", 1);
    TRY(fds_result_rank(r, k, t->order, err));
    for (size_t rank = 0; rank < r->players; rank++)
        add_place(t, r, k, rank, t->order[rank]);
    if (r->players)
        add_line(&t->text, depth);
    fds__text_add(&t->text, "]", 1);
    return FDS_OK;
}

/* ---- in order ---- */

void fds__result_text_free(fds__result_text *t) {
    fds__free(t->text.data);
    fds__free(t->players.data);
    fds__free(t->player_ends);
    fds__free(t->order);
}

/* seconds: of a result in parts they are known at the end. */
fds_status fds__result_text_begin(fds__result_text *t, const fds_result *r, size_t predictions,
                                  fds_error *err) {
    t->has_inputs = r->predictions && r->input_names[0];
    t->is_in_parts = predictions > r->predictions;
    TRY(name_players(t, r, err));
    json_t *about = json_deep_copy(r->about);
    json_object_del(about, t->has_inputs ? "inputs" : "ranking");
    if (t->is_in_parts)
        json_object_del(about, "seconds");
    bool is_empty = !json_object_size(about);
    TRY(add_json(&t->text, about, 0, true, err));
    if (!t->has_inputs)
        return add_ranking(t, r, SIZE_MAX, is_empty, err);
    add_key(&t->text, is_empty, 1, "inputs");
    fds__text_add(&t->text, "[", 1);
    return FDS_OK;
}

fds_status fds__result_text_add(fds__result_text *t, const fds_result *r, size_t k,
                                fds_error *err) {
    if (!t->has_inputs)
        return FDS_OK;
    fds__text_add(&t->text, ",", t->written++ > 0);
    add_line(&t->text, OF_MEAN);
    TRY(add_json(&t->text, fds__result_json_prediction(r, k), OF_MEAN, true, err));
    TRY(add_ranking(t, r, k, false, err));
    if (r->checks) {
        add_key(&t->text, false, OF_INPUT - 1, "correlation");
        add_real(&t->text, fds_result_check_correlation(r, k));
    }
    add_line(&t->text, OF_MEAN);
    fds__text_add(&t->text, "}", 1);
    return FDS_OK;
}

void fds__result_text_end(fds__result_text *t, double seconds) {
    if (t->has_inputs) {
        add_line(&t->text, 1);
        fds__text_add(&t->text, "]", 1);
    }
    if (t->is_in_parts && !isnan(seconds)) {
        add_key(&t->text, false, 1, "seconds");
        add_real(&t->text, seconds);
    }
    fds__text_add(&t->text, "\n}", 2);
}

fds_status fds_result_json(const fds_result *r, char **out, fds_error *err) {
    fds__result_text t = {0};
    fds_status status = fds__result_text_begin(&t, r, r->predictions, err);
    for (size_t k = 0; k < r->predictions && status == FDS_OK; k++)
        status = fds__result_text_add(&t, r, k, err);
    if (status == FDS_OK)
        fds__result_text_end(&t, (double)NAN);
    if (status == FDS_OK)
        status = fds__text_check(&t.text, err);
    if (status == FDS_OK) {
        *out = t.text.data;
        t.text.data = NULL; /* the caller's now */
    }
    fds__result_text_free(&t);
    return status;
}
