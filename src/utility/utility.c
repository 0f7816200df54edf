/* SPDX-License-Identifier: Apache-2.0
 *
 * Utility functions by name, and what all kinds share: the checks, the players' samples and the
 * inputs, normalised, and the text that says what the answers depend on. */
#include "utility/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Part of every text. Increment it whenever the same parameters give other answers than before. */
enum { ANSWERS_VERSION = 1 };
enum { USUAL_EPOCHS = 10, NAMED_PLAYERS = 3 }; /* named in a message */

fds__utility_params fds__utility_params_default(void) {
    fds__utility_params params = {
        .kind = "retrain:10",
        .network = "lenet5",
        .train = fds_train_params_default(),
        .beta = 10.0f,
    };
    params.train.lr = 1e-4f;
    return params;
}

/* ---- kinds ---- */

static const fds__utility_row kinds[] = {
    {"retrain", "", true, true, false, &fds__retrain_kind, fds__retrain_check, fds__retrain_create},
    {"knn", "", true, false, false, &fds__knn_kind, NULL, fds__knn_create},
    {"knn", "@model", true, false, false, &fds__knn_kind, fds__features_check,
     fds__knn_model_create},
    {"tknn", "", true, true, true, &fds__tknn_kind, fds__tknn_check, fds__tknn_create},
    {"kernel", "", false, true, false, &fds__kernel_kind, NULL, fds__kernel_create},
    {"entk", "", true, true, false, &fds__entk_kind, fds__entk_check, fds__entk_create},
};
/* What follows "command:" is the program, whatever it looks like. */
static const fds__utility_row command_row = {
    "command",          "", false, false, false, &fds__command_kind, fds__command_check,
    fds__command_create};

/* The first length characters: digits and nothing else. */
static bool read_number(const char *text, size_t length, uint32_t *number) {
    if (length < 1 || length > 9 || strspn(text, "0123456789") < length)
        return false;
    *number = (uint32_t)strtoul(text, NULL, 10);
    return *number >= 1 && *number <= FDS__MAX_UTILITY_K;
}

static fds_status read_kind(const char *text, const fds__utility_row **row, uint32_t *number,
                            fds_error *err) {
    const size_t length = text ? strcspn(text, ":@") : 0, body = text ? strcspn(text, "@") : 0;
    const bool has_number = body > length;
    *row = fds__command_of(text) ? &command_row : NULL;
    *number = 0;
    if (*row)
        return FDS_OK;
    for (size_t i = 0; text && i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, text, length) == 0 &&
            strcmp(kinds[i].ending, text + body) == 0)
            *row = &kinds[i];
    if (!*row || !(has_number ? (*row)->with_number : (*row)->without_number))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "unknown utility function \"%.100s\"; there are \"retrain\", \"retrain:K\", "
            "\"knn:K\", \"knn:K@model\", \"tknn\", \"tknn:T\", \"kernel\", \"entk\", \"entk:K\" "
            "and "
            "\"command:PROGRAM\"",
            text ? text : "");
    if (has_number && !(*row)->is_real &&
        !read_number(text + length + 1, body - length - 1, number))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "utility function \"%.100s\": after the colon there must be a whole number "
            "from 1 to %u",
            text, FDS__MAX_UTILITY_K);
    return FDS_OK;
}

fds_status fds__utility_training(const fds__utility_params *params, fds_train_params *train,
                                 fds_error *err) {
    const fds__utility_row *row;
    uint32_t number;
    TRY(read_kind(params->kind, &row, &number, err));
    bool trains = row->kind == &fds__retrain_kind || (row->kind == &fds__entk_kind && number);
    *train = fds__retrain_training(params, trains ? number : USUAL_EPOCHS);
    return FDS_OK;
}

/* ---- checks ---- */

fds_status fds__players_check(const fds_dataset *ds, const fds_players *players, fds_error *err) {
    for (size_t p = 0; p < fds_players_count(players); p++) {
        const uint32_t *index;
        size_t count = fds_players_samples(players, p, &index);
        TRY(fds__samples_check(ds, index, count, err));
    }
    return FDS_OK;
}

static fds_status check_sets(const fds_dataset *train, const fds_players *players,
                             const fds_dataset *test, const uint32_t *inputs, size_t input_count,
                             fds_error *err) {
    fds_shape a = train->shape, b = test->shape;
    if (!fds__shape_equal(a, b))
        return fds__fail(err, FDS_ERR_SHAPE, "%s has samples of %ux%ux%u, but %s of %ux%ux%u",
                         train->source, a.channels, a.height, a.width, test->source, b.channels,
                         b.height, b.width);
    if (fds_players_count(players) > FDS__MAX_PLAYERS)
        return fds__fail(err, FDS_ERR_LIMIT, "%zu players, at most %zu are allowed",
                         fds_players_count(players), FDS__MAX_PLAYERS);
    TRY(fds__players_check(train, players, err));
    if (!input_count)
        return fds__fail(err, FDS_ERR_USAGE, "no inputs: choose at least one sample of %s",
                         test->source);
    TRY(fds__samples_check(test, inputs, input_count, err));
    for (size_t i = 0; i < input_count; i++) {
        size_t sample = inputs ? inputs[i] : i;
        if (test->labels[sample] >= train->classes)
            return fds__fail(err, FDS_ERR_SHAPE,
                             "%s: sample %zu has label %u, but %s only %u classes", test->source,
                             sample, test->labels[sample], train->source, train->classes);
    }
    return FDS_OK;
}

/* ---- the data ---- */

/* Distances from an infinite value have no meaning. */
static fds_status check_finite(const fds_inputs *inputs, const char *source, fds_error *err) {
    for (size_t i = 0; i < inputs->count * inputs->size; i++)
        if (!isfinite(inputs->values[i]))
            return fds__fail(err, FDS_ERR_LIMIT,
                             "%s: sample %u: value %zu is infinite once it is normalised by the "
                             "players' samples",
                             source, inputs->ids[i / inputs->size], i % inputs->size);
    return FDS_OK;
}

/* What samples are normalised by. index (count): those of all players. */
static fds_status set_scale(fds__utility_data *data, const uint32_t *index, size_t count,
                            const uint32_t *inputs, size_t input_count,
                            const fds__utility_params *params, fds_error *err) {
    const fds_dataset *train = data->train, *test = data->test;
    const bool is_public = params->normalise == FDS__NORMALISE_PUBLIC;
    TRY(NEW(data->mean, train->shape.channels, err));
    TRY(NEW(data->std, train->shape.channels, err));
    if (params->scale) {
        const size_t size = train->shape.channels * sizeof *data->mean;
        memcpy(data->mean, params->scale->mean, size);
        memcpy(data->std, params->scale->std, size);
        data->target_mean = params->scale->target_mean;
        data->target_std = params->scale->target_std;
        return FDS_OK;
    }
    if (train->targets)
        fds__dataset_target_stats(is_public ? test : train, is_public ? NULL : index,
                                  is_public ? test->count : count, &data->target_mean,
                                  &data->target_std);
    if (params->is_private)
        return fds__inputs_scale(test, inputs, input_count, params->network, data->mean, data->std,
                                 err);
    if (is_public)
        return fds__inputs_scale(test, NULL, test->count, params->network, data->mean, data->std,
                                 err);
    if (params->normalise == FDS__NORMALISE_PLAYERS)
        return fds__inputs_scale(train, index, count, params->network, data->mean, data->std, err);
    fds__inputs_scale_fixed(train, params->network, data->mean, data->std);
    return FDS_OK;
}

/* Random numbers of samples by who they are. */
static fds_status set_keys(fds_inputs *samples, const fds__identities *identities, fds_error *err) {
    if (!identities)
        return FDS_OK;
    TRY(NEW(samples->keys, samples->count, err));
    for (size_t i = 0; i < samples->count; i++)
        samples->keys[i] = identities->samples[samples->ids[i]];
    return FDS_OK;
}

static fds_status fill_data(fds__utility_data *data, const fds_dataset *train,
                            const fds_dataset *test, const uint32_t *inputs, size_t input_count,
                            const fds__utility_params *params, fds_error *err) {
    const uint32_t *own;
    size_t count = 0, at = 0;
    OWNED uint32_t *owner_of = NULL, *index = NULL; /* owner_of: 0 for none, else the player + 1 */
    TRY(NEW(owner_of, train->count, err));
    TRY(NEW(index, train->count, err)); /* ascending */
    for (size_t p = 0; p < fds_players_count(data->players); p++)
        for (size_t i = 0; i < fds_players_samples(data->players, p, &own); i++, count++)
            owner_of[own[i]] = (uint32_t)p + 1;
    TRY(NEW(data->owner, count, err));
    for (size_t i = 0; i < train->count; i++)
        if (owner_of[i]) {
            index[at] = (uint32_t)i;
            data->owner[at++] = owner_of[i] - 1;
        }
    assert(at == count); /* no sample has two owners */
    TRY(set_scale(data, index, count, inputs, input_count, params, err));
    TRY(fds_inputs_create(train, index, count, data->mean, data->std, &data->samples, err));
    TRY(fds_inputs_create(test, inputs, input_count, data->mean, data->std, &data->inputs, err));
    TRY(set_keys(data->samples, params->identities, err));
    data->is_regression = train->targets != NULL;
    TRY(fds__inputs_set_targets(data->samples, train, data->target_mean, data->target_std, err));
    TRY(check_finite(data->samples, train->source, err));
    return check_finite(data->inputs, test->source, err);
}

static size_t data_bytes(const fds__utility_data *data) {
    const fds_inputs *both[] = {data->samples, data->inputs};
    size_t bytes = sizeof *data + data->samples->count * sizeof *data->owner;
    for (int i = 0; i < 2; i++)
        bytes += sizeof **both + both[i]->count * (both[i]->size * sizeof *both[i]->values +
                                                   sizeof *both[i]->labels + sizeof *both[i]->ids);
    return bytes;
}

fds_status fds__utility_by_player(const fds__utility_data *data, uint32_t **members, size_t **first,
                                  fds_error *err) {
    const size_t players = fds_players_count(data->players), samples = data->samples->count;
    TRY(NEW(*members, samples, err));
    TRY(NEW(*first, players + 2, err));
    for (size_t i = 0; i < samples; i++) /* counts, two places on, then sums */
        (*first)[data->owner[i] + 2]++;
    for (size_t p = 0; p < players; p++)
        (*first)[p + 2] += (*first)[p + 1];
    for (size_t i = 0; i < samples; i++) /* moves each beginning to that of the next player */
        (*members)[(*first)[data->owner[i] + 1]++] = (uint32_t)i;
    return FDS_OK;
}

size_t fds__utility_members(const fds__utility_data *data, const uint64_t *coalition,
                            uint32_t *members) {
    size_t count = 0;
    for (size_t i = 0; i < data->samples->count; i++)
        if (fds_coalition_has(coalition, data->owner[i]))
            members[count++] = (uint32_t)i;
    return count;
}

/* ---- arithmetic ---- */

enum { SUMS = 8 }; /* side by side: the compiler may use vectors without changing a bit */

static inline double term(float a, float b, bool is_distance) {
    double x = (double)a, y = (double)b;
    return is_distance ? (x - y) * (x - y) : x * y;
}

static inline double sum_terms(const float *a, const float *b, size_t count, bool is_distance) {
    double sums[SUMS] = {0}, total = 0;
    size_t i = 0;
    for (; i + SUMS <= count; i += SUMS)
        for (size_t j = 0; j < SUMS; j++)
            sums[j] += term(a[i + j], b[i + j], is_distance);
    for (; i < count; i++)
        sums[i % SUMS] += term(a[i], b[i], is_distance);
    for (size_t j = 0; j < SUMS; j++)
        total += sums[j];
    return total;
}

double fds__utility_dot(const float *a, const float *b, size_t count) {
    return sum_terms(a, b, count, false);
}

double fds__utility_distance2(const float *a, const float *b, size_t count) {
    return sum_terms(a, b, count, true);
}

void fds__utility_standardise(const fds__utility_data *data, float *predictions) {
    for (size_t i = 0; data->is_regression && i < data->inputs->count; i++)
        predictions[i] = (float)(((double)predictions[i] - data->target_mean) / data->target_std);
}

/* ---- the text ---- */

/* The samples' values, labels, numbers and owners. */
static void hash_samples(const fds__utility_data *data, char hex[65]) {
    const fds_inputs *in = data->samples;
    char parts[4 * 64 + 1];
    fds_sha256_hex(in->values, in->count * in->size * sizeof *in->values, parts);
    if (in->targets)
        fds_sha256_hex(in->targets, in->count * sizeof *in->targets, parts + 64);
    else
        fds_sha256_hex(in->labels, in->count * sizeof *in->labels, parts + 64);
    fds_sha256_hex(in->ids, in->count * sizeof *in->ids, parts + 128);
    fds_sha256_hex(data->owner, in->count * sizeof *data->owner, parts + 192);
    fds_sha256_hex(parts, 4 * 64, hex);
}

/* What samples are normalised by. */
static void hash_scale(const fds__utility_data *data, char hex[65]) {
    size_t size = data->samples->shape.channels * sizeof *data->mean;
    char parts[2 * 64 + 1];
    fds_sha256_hex(data->mean, size, parts);
    fds_sha256_hex(data->std, size, parts + 64);
    fds_sha256_hex(parts, 2 * 64, hex);
}

static const char *normalisation(const fds__utility_params *p) {
    return p->is_private ? "channel mean and standard deviation of the inputs"
           : p->normalise == FDS__NORMALISE_FIXED ? "constants"
           : p->normalise == FDS__NORMALISE_PUBLIC
               ? "channel mean and standard deviation of the test part"
               : "channel mean and standard deviation of the players' samples";
}

static json_t *describe_data(const fds__utility_data *data, const char *kind,
                             const fds__utility_params *params) {
    char samples[65], inputs[65], scale[65];
    const fds_inputs *in = data->inputs;
    fds_shape shape = data->samples->shape;
    hash_scale(data, scale);
    if (params->identities) /* whatever rows they are in */
        fds_sha256_hex(params->identities->contents, fds_players_count(data->players) * 32,
                       samples);
    else
        hash_samples(data, samples);
    /* no answer depends on the inputs' labels or numbers */
    fds_sha256_hex(in->values, in->count * in->size * sizeof *in->values, inputs);
    return json_pack(
        "{s:i, s:s, s:I, s:[I, I, I], s:I, s:I, s:s, s:I, s:s, s:s, s:s*, s:s*}", "version",
        ANSWERS_VERSION, "kind", kind, "classes", (json_int_t)data->classes, "shape",
        (json_int_t)shape.channels, (json_int_t)shape.height, (json_int_t)shape.width, "players",
        (json_int_t)fds_players_count(data->players), "samples", (json_int_t)data->samples->count,
        "samples_sha256", samples, "inputs", (json_int_t)data->inputs->count, "inputs_sha256",
        inputs, "normalisation", normalisation(params), "order",
        params->identities ? "by the identity of samples" : NULL, "scale_sha256",
        params->identities ? scale : NULL);
}

static fds_status describe_targets(const fds__utility_data *data, json_t *about, fds_error *err) {
    if (!data->is_regression)
        return FDS_OK;
    return fds__utility_about(about,
                              json_pack("{s:s, s:f, s:f}", "task", "regression", "target_mean",
                                        data->target_mean, "target_std", data->target_std),
                              err);
}

fds_status fds__utility_about(json_t *about, json_t *part, fds_error *err) {
    bool is_added = part && json_object_update(about, part) == 0;
    json_decref(part);
    return is_added ? FDS_OK : fds__fail_json(err);
}

fds_status fds__utility_fail(const fds__utility_data *data, const uint64_t *coalition,
                             fds_status status, fds_error *err) {
    if (!err)
        return status;
    char names[200] = "";
    size_t size = 0;
    for (size_t p = 0, players = fds_players_count(data->players); p < players; p++) {
        if (!fds_coalition_has(coalition, p))
            continue;
        size_t used = strlen(names);
        if (size < NAMED_PLAYERS)
            snprintf(names + used, sizeof names - used, "%s%.50s", size ? ", " : "",
                     fds_players_name(data->players, p));
        size++;
    }
    return fds__fail(err, status, "the coalition of %zu players (%s%s): %s", size, names,
                     size > NAMED_PLAYERS ? ", ..." : "", err->text);
}

/* ---- utility functions ---- */

static fds_status make_kind(fds_utility *utility, const fds__utility_row *row,
                            const fds__utility_params *params, const fds_dataset *train,
                            const fds_dataset *test, uint32_t number, fds_error *err) {
    char name[64];
    int at = snprintf(name, sizeof name, number ? "%s:%u" : "%s", row->name, number);
    snprintf(name + at, sizeof name - (size_t)at, "%s", row->ending);
    if (row->is_real)
        snprintf(name, sizeof name, "%s", params->kind);
    fds__utility_making making = {.params = params,
                                  .data = utility->data,
                                  .train = train,
                                  .test = test,
                                  .number = number,
                                  .about = describe_data(utility->data, name, params)};
    fds_status status =
        making.about ? describe_targets(utility->data, making.about, err) : fds__fail_json(err);
    if (status == FDS_OK)
        status = row->create(&making, err);
    utility->kind = row->kind;
    utility->self = making.self;
    if (status == FDS_OK &&
        !(utility->text = fds__json_text(making.about, JSON_COMPACT | JSON_SORT_KEYS)))
        status = fds__fail_json(err);
    json_decref(making.about);
    TRY(status);
    utility->memory =
        sizeof *utility + data_bytes(utility->data) + making.memory + strlen(utility->text) + 1;
    return FDS_OK;
}

fds_status fds__utility_create(const fds__utility_params *params, const fds_dataset *train,
                               const fds_players *players, const fds_dataset *test,
                               const uint32_t *inputs, size_t input_count, unsigned workers,
                               fds_utility **out, fds_error *err) {
    const fds__utility_row *row = &fds__custom_row;
    uint32_t number = 0;
    if (!params->callback)
        TRY(read_kind(params->kind, &row, &number, err));
    if (workers > FDS__MAX_UTILITY_WORKERS)
        return fds__fail(err, FDS_ERR_LIMIT, "%u workers, at most %u are allowed", workers,
                         FDS__MAX_UTILITY_WORKERS);
    if (row->check)
        TRY(row->check(params, number, err));
    TRY(check_sets(train, players, test, inputs, input_count, err));
    fds_utility *utility;
    TRY(NEW(utility, 1, err));
    utility->players = fds_players_count(players);
    utility->inputs = input_count;
    utility->classes = train->classes;
    utility->workers = workers ? workers : fds_processors();
    fds_status status = NEW(utility->data, 1, err);
    if (status == FDS_OK) {
        *utility->data = (fds__utility_data){.players = players,
                                             .train = train,
                                             .test = test,
                                             .classes = utility->classes,
                                             .workers = utility->workers};
        status = fill_data(utility->data, train, test, inputs, input_count, params, err);
    }
    if (status == FDS_OK)
        status = make_kind(utility, row, params, train, test, number, err);
    if (status == FDS_OK)
        *out = utility;
    else
        fds_utility_free(utility);
    return status;
}

void fds_utility_free(fds_utility *utility) {
    if (!utility)
        return;
    if (utility->kind)
        utility->kind->free(utility->self);
    if (utility->data) {
        fds_inputs_free(utility->data->samples);
        fds_inputs_free(utility->data->inputs);
        fds__free(utility->data->owner);
        fds__free(utility->data->mean);
        fds__free(utility->data->std);
    }
    fds__free(utility->data);
    fds__free(utility->text);
    fds__free(utility);
}

fds_utility_info fds_utility_get_info(const fds_utility *utility) {
    return (fds_utility_info){
        .players = utility->players,
        .inputs = utility->inputs,
        .classes = utility->classes,
        .memory = utility->memory,
        .text = utility->text,
    };
}

fds_status fds_utility_eval(const fds_utility *utility, unsigned worker, const uint64_t *coalition,
                            float *probs, fds_error *err) {
    if (worker >= utility->workers)
        return fds__fail(err, FDS_ERR_USAGE,
                         "worker %u: the utility function was made for %u workers, numbered from 0",
                         worker, utility->workers);
    if (utility->players % 64 && coalition[utility->players / 64] >> (utility->players % 64))
        return fds__fail(err, FDS_ERR_USAGE, "the coalition has players beyond the last, %zu",
                         utility->players - 1);
    return utility->kind->eval(utility->self, worker, coalition, probs, err);
}
