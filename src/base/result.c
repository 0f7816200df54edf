/* SPDX-License-Identifier: Apache-2.0
 * A result: values of players for predictions, and what they are of. result_json.c makes JSON of it,
 * result_file.c files. */
#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* All names are in one array that begins at player_names. */
static size_t name_count(const fds_result *r) {
    return 2 * r->players + r->class_count + r->predictions;
}

void fds_result_free(fds_result *r) {
    if (!r)
        return;
    for (size_t i = 0; r->player_names && i < name_count(r); i++)
        fds__free(r->player_names[i]);
    fds__free(r->player_names);
    fds__free(r->player_labels);
    fds__free(r->values);
    fds__free(r->numbers);
    fds__free(r->checks);
    fds__free(r->check_errors);
    fds__free(r->method);
    fds__free(r->text);
    json_decref(r->about);
    fds__free(r);
}

/* ---- making ---- */

/* One allocation each for names, 32-bit numbers and doubles. */
static fds_status make_arrays(fds_result *r, fds_error *err) {
    size_t n = r->players, k = r->predictions, all;
    if (!fds__mul(n, k, &all) || MAX(all, MAX(n, k)) > SIZE_MAX / 64)
        return fds__fail_nomem(err, SIZE_MAX);
    TRY(NEW(r->player_names, name_count(r), err));
    r->provider_names = r->player_names + n;
    r->class_names = r->provider_names + n;
    r->input_names = r->class_names + r->class_count;
    TRY(NEW(r->player_labels, 3 * n + 4 * k, err));
    r->player_sizes = r->player_labels + n;
    r->player_groups = r->player_sizes + n;
    r->samples = r->player_groups + n;
    r->labels = r->samples + k;
    r->predicted = r->labels + k;
    r->truth = r->predicted + k;
    TRY(NEW(r->values, 2 * all + 2 * n + 3 * k, err));
    r->errors = r->values + all;
    r->means = r->errors + all;
    r->mean_errors = r->means + n;
    r->confidence = r->mean_errors + n;
    r->empty = r->confidence + k;
    r->full = r->empty + k;
    return FDS_OK;
}

fds_status fds__result_create(const char *method, size_t players, size_t predictions,
                              uint32_t classes, fds_result **out, fds_error *err) {
    fds_result *r;
    TRY(NEW(r, 1, err));
    r->players = players;
    r->predictions = predictions;
    r->classes = classes;
    /* a regression has a number for each player, and three for each prediction */
    r->class_count = classes ? classes : players + 3 * predictions;
    r->method = fds__strdup(method);
    r->about = json_object();
    if (!r->method || !r->about || make_arrays(r, NULL) != FDS_OK) {
        fds_result_free(r);
        return fds__fail(err, FDS_ERR_NOMEM,
                         "out of memory for the values of %zu players and %zu predictions", players,
                         predictions);
    }
    memset(r->player_groups, 0xff, players * sizeof *r->player_groups); /* FDS__UNKNOWN */
    for (size_t i = 0; i < predictions; i++) {
        r->samples[i] = r->labels[i] = r->predicted[i] = r->truth[i] = FDS__UNKNOWN;
        r->confidence[i] = r->empty[i] = r->full[i] = NAN;
    }
    *out = r;
    return FDS_OK;
}

static fds_status set_name(char **at, const char *name, fds_error *err) {
    fds__free(*at);
    *at = name ? fds__strdup(name) : NULL;
    return *at || !name ? FDS_OK : fds__fail_nomem(err, strlen(name) + 1);
}

fds_status fds__result_name_player(fds_result *r, size_t player, const char *name,
                                   const char *provider, uint32_t label, size_t samples,
                                   fds_error *err) {
    r->player_labels[player] = label;
    r->player_sizes[player] = (uint32_t)samples;
    TRY(set_name(&r->provider_names[player], provider, err));
    return set_name(&r->player_names[player], name, err);
}

fds_status fds__result_name_class(fds_result *r, uint32_t label, const char *name, fds_error *err) {
    return set_name(&r->class_names[label], name, err);
}

fds_status fds__result_name_input(fds_result *r, size_t prediction, const char *name,
                                  fds_error *err) {
    return set_name(&r->input_names[prediction], name, err);
}

/* ---- regression ---- */

fds_status fds__result_regression(fds_result *r, fds_error *err) {
    assert(!r->classes && !r->numbers);
    r->is_regression = true;
    return NEW(r->numbers, r->class_count, err);
}

fds_status fds__result_number(fds_result *r, double number, uint32_t *label, fds_error *err) {
    enum { DIGITS = 7 }; /* in texts; files have all of them */
    fds__text text = {0};
    assert(r->is_regression && r->classes < r->class_count);
    fds__text_digits(&text, DIGITS, number);
    fds__text_add(&text, "", 1);
    fds_status status = fds__text_check(&text, err);
    if (status == FDS_OK)
        status = set_name(&r->class_names[r->classes], text.data, err);
    fds__free(text.data);
    TRY(status);
    r->numbers[r->classes] = number;
    *label = r->classes++;
    return FDS_OK;
}

bool fds_result_is_regression(const fds_result *r) { return r->is_regression; }

void fds__result_average(fds_result *r) {
    for (size_t i = 0; i < r->players; i++) {
        r->means[i] = 0;
        for (size_t k = 0; k < r->predictions; k++)
            r->means[i] += r->values[k * r->players + i] / (double)r->predictions;
        r->mean_errors[i] = r->predictions == 1 ? r->errors[i] : r->is_exact ? 0 : (double)NAN;
    }
}

static fds_status name_labels(const fds_values *v, fds_result *r, fds_error *err) {
    for (uint32_t c = 0; c < r->classes; c++)
        TRY(fds__result_name_class(r, c, v->class_names[c], err));
    for (size_t i = 0; i < v->players; i++)
        r->player_labels[i] = v->player_labels[i];
    for (size_t k = 0; v->labels && k < v->predictions; k++)
        r->labels[k] = v->labels[k];
    return FDS_OK;
}

static fds_status number_targets(const fds_values *v, fds_result *r, fds_error *err) {
    TRY(fds__result_regression(r, err));
    for (size_t i = 0; i < v->players; i++)
        TRY(fds__result_number(r, v->player_targets[i], &r->player_labels[i], err));
    for (size_t k = 0; v->targets && k < v->predictions; k++)
        if (!isnan(v->targets[k]))
            TRY(fds__result_number(r, v->targets[k], &r->labels[k], err));
    return FDS_OK;
}

static fds_status name_values(const fds_values *v, fds_result *r, fds_error *err) {
    TRY(v->player_targets ? number_targets(v, r, err) : name_labels(v, r, err));
    for (size_t i = 0; i < v->players; i++) {
        TRY(fds__result_name_player(r, i, v->player_names[i], v->providers ? v->providers[i] : NULL,
                                    r->player_labels[i],
                                    v->player_samples ? v->player_samples[i] : 1, err));
        if (v->player_groups)
            r->player_groups[i] = v->player_groups[i];
    }
    for (size_t k = 0; k < v->predictions; k++)
        TRY(fds__result_name_input(r, k, v->inputs ? v->inputs[k] : NULL, err));
    return FDS_OK;
}

static fds_status check_values(const fds_values *v, fds_error *err) {
    bool has_labels = v->player_targets || (v->classes && v->class_names && v->player_labels);
    if (!v->method || !v->players || !v->predictions || !v->player_names || !v->values ||
        !has_labels)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a result needs a method, players with names and labels, classes (of a "
                         "regression: targets), and at least one prediction with values");
    for (size_t i = 0; i < v->players; i++)
        if (!v->player_targets && v->player_labels[i] >= v->classes)
            return fds__fail(err, FDS_ERR_USAGE, "player %zu: label %u, there are %u classes", i,
                             v->player_labels[i], v->classes);
    return FDS_OK;
}

fds_status fds_result_create(const fds_values *v, fds_result **out, fds_error *err) {
    fds_result *r;
    TRY(check_values(v, err));
    TRY(fds__result_create(v->method, v->players, v->predictions,
                           v->player_targets ? 0 : v->classes, &r, err));
    r->is_exact = v->is_exact;
    for (size_t i = 0; i < v->players * v->predictions; i++) {
        r->values[i] = v->values[i];
        r->errors[i] = v->errors ? v->errors[i] : v->is_exact ? 0 : (double)NAN;
    }
    fds_status status = name_values(v, r, err);
    fds__result_average(r);
    if (status == FDS_OK)
        *out = r;
    else
        fds_result_free(r);
    return status;
}

/* ---- reading ---- */

static const char *name_at(char *const *names, size_t i, size_t count) {
    return i < count && names[i] ? names[i] : "?";
}

size_t fds_result_players(const fds_result *r) { return r->players; }
size_t fds_result_predictions(const fds_result *r) { return r->predictions; }
const char *fds_result_method(const fds_result *r) { return r->method; }
bool fds_result_is_mean(const fds_result *r) { return r->is_mean; }
bool fds_result_is_exact(const fds_result *r) { return r->is_exact; }

const char *fds_result_player(const fds_result *r, size_t i) {
    return name_at(r->player_names, i, r->players);
}

const char *fds_result_provider(const fds_result *r, size_t i) {
    return i < r->players ? r->provider_names[i] : NULL;
}

const char *fds_result_player_label(const fds_result *r, size_t i) {
    return i < r->players ? name_at(r->class_names, r->player_labels[i], r->classes) : "?";
}

const char *fds_result_input(const fds_result *r, size_t k) {
    return name_at(r->input_names, k, r->predictions);
}

const char *fds_result_label(const fds_result *r, size_t k) {
    return k < r->predictions ? name_at(r->class_names, r->labels[k], r->classes) : "?";
}

/* NULL for an unknown label. */
static const char *label_at(const fds_result *r, const uint32_t *labels, size_t k) {
    bool is_known = k < r->predictions && labels[k] < r->classes;
    return is_known ? name_at(r->class_names, labels[k], r->classes) : NULL;
}

const char *fds_result_predicted(const fds_result *r, size_t k) {
    return label_at(r, r->predicted, k);
}
const char *fds_result_truth(const fds_result *r, size_t k) { return label_at(r, r->truth, k); }

static double number_at(const double *numbers, size_t i, size_t count) {
    return numbers && i < count ? numbers[i] : (double)NAN;
}

/* The number of a label of a regression. */
static double target_at(const fds_result *r, const uint32_t *labels, size_t i, size_t count) {
    return i < count && r->is_regression ? number_at(r->numbers, labels[i], r->classes)
                                         : (double)NAN;
}

double fds_result_player_target(const fds_result *r, size_t i) {
    return target_at(r, r->player_labels, i, r->players);
}
double fds_result_target(const fds_result *r, size_t k) {
    return target_at(r, r->labels, k, r->predictions);
}
double fds_result_predicted_target(const fds_result *r, size_t k) {
    return target_at(r, r->predicted, k, r->predictions);
}
double fds_result_true_target(const fds_result *r, size_t k) {
    return target_at(r, r->truth, k, r->predictions);
}

static double cell(const fds_result *r, const double *numbers, size_t k, size_t i) {
    return i < r->players && k < r->predictions ? number_at(numbers, k * r->players + i, SIZE_MAX)
                                                : (double)NAN;
}

double fds_result_confidence(const fds_result *r, size_t k) {
    return number_at(r->confidence, k, r->predictions);
}
double fds_result_empty(const fds_result *r, size_t k) {
    return number_at(r->empty, k, r->predictions);
}
double fds_result_full(const fds_result *r, size_t k) {
    return number_at(r->full, k, r->predictions);
}
double fds_result_value(const fds_result *r, size_t k, size_t i) {
    return cell(r, r->values, k, i);
}
double fds_result_error(const fds_result *r, size_t k, size_t i) {
    return cell(r, r->errors, k, i);
}
double fds_result_check(const fds_result *r, size_t k, size_t i) {
    return cell(r, r->checks, k, i);
}
double fds_result_check_error(const fds_result *r, size_t k, size_t i) {
    return cell(r, r->check_errors, k, i);
}
double fds_result_check_correlation(const fds_result *r, size_t k) {
    return r->checks && k < r->predictions
               ? fds__correlation(r->values + k * r->players, r->checks + k * r->players, NULL,
                                  r->players)
               : (double)NAN;
}
double fds_result_share(const fds_result *r, size_t k, size_t i) {
    const double *values = k == SIZE_MAX ? r->means : r->values + k * r->players;
    double sum = 0;
    if (i >= r->players || (k != SIZE_MAX && k >= r->predictions))
        return (double)NAN;
    for (size_t j = 0; j < r->players; j++)
        sum += MAX(values[j], 0);
    return sum > 0 ? MAX(values[i], 0) / sum : 1 / (double)r->players;
}
double fds_result_mean(const fds_result *r, size_t i) { return number_at(r->means, i, r->players); }
double fds_result_mean_error(const fds_result *r, size_t i) {
    return number_at(r->mean_errors, i, r->players);
}

void fds_result_copy(const fds_result *r, double *values, double *errors) {
    size_t size = r->players * r->predictions * sizeof *r->values;
    if (values && size)
        memcpy(values, r->values, size);
    if (errors && size)
        memcpy(errors, r->errors, size);
}

size_t fds_result_player_samples(const fds_result *r, size_t i) {
    return i < r->players ? r->player_sizes[i] : 0;
}

uint32_t fds_result_player_group(const fds_result *r, size_t i) {
    return i < r->players ? r->player_groups[i] : UINT32_MAX;
}

const char *fds_result_describe(const fds_result *result) {
    fds_result *r = (fds_result *)(uintptr_t)result;
    return fds__json_once(&r->text, r->about);
}

/* ---- by rank ---- */

typedef struct {
    uint64_t key;
    size_t player;
} place;

/* The greatest value has the smallest key; no number has the greatest. -0 is 0. */
static uint64_t key_of(double value) {
    const uint64_t sign = (uint64_t)1 << 63;
    uint64_t bits;
    value += 0.0;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? UINT64_MAX : bits & sign ? bits : ~bits & ~sign;
}

/* Radix sort by bytes, the lowest first; players of equal keys keep their order. */
fds_status fds__rank(const double *values, size_t count, size_t *order, fds_error *err) {
    enum { BYTES = 8, VALUES = 256 };
    size_t counts[BYTES][VALUES] = {{0}};
    OWNED place *own = NULL;
    TRY(NEW(own, MAX(count, (size_t)1) * 2, err));
    place *from = own, *to = own + count;
    for (size_t i = 0; i < count; i++) {
        from[i] = (place){key_of(values[i]), i};
        for (int b = 0; b < BYTES; b++)
            counts[b][from[i].key >> 8 * b & 0xff]++;
    }
    for (int b = 0; b < BYTES && count; b++) {
        size_t *places = counts[b], sum = 0;
        if (places[from[0].key >> 8 * b & 0xff] == count)
            continue;
        for (int v = 0; v < VALUES; v++) {
            size_t own_count = places[v];
            places[v] = sum;
            sum += own_count;
        }
        for (size_t i = 0; i < count; i++)
            to[places[from[i].key >> 8 * b & 0xff]++] = from[i];
        place *sorted = to;
        to = from;
        from = sorted;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = from[i].player;
    return FDS_OK;
}

fds_status fds_result_rank(const fds_result *r, size_t k, size_t *order, fds_error *err) {
    if (k != SIZE_MAX && k >= r->predictions)
        return fds__fail(err, FDS_ERR_USAGE, "prediction %zu: there are %zu", k, r->predictions);
    return fds__rank(k == SIZE_MAX ? r->means : r->values + k * r->players, r->players, order, err);
}
