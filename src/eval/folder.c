/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of a case: who may use it, and what is written there besides tables and runs.
 *
 *   .lock          empty; whoever works on the case has it locked
 *   settings.json  format "fds bench case", version 1, data and settings as in case.json, methods,
 *                  is_both_ways, is_converged, value (what the sub-models' answers depend on, as in
 *                  table.json), and checksums of the test samples with their labels and of the
 *                  explainers' inputs: everything that the numbers depend on
 *   METHOD.json    {"begun": true} while a method is at work; then prepare_s, answer_ms (null: none
 *                  measured), sub_models, was_resumed, machine. '/', ':' and ',' in its name become
 *                  '-'. One that is damaged costs no more than the times of that method
 *
 * Each is written whole, aside, and put in place in one step. */
#include "eval/case.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

#define SETTINGS "settings.json"
#define FORMAT "fds bench case"
#define MAX_BYTES ((size_t)16 << 20)

/* ---- the lock ---- */

/* Looks before it locks, so that nothing is left in a folder that is not ours. */
static fds_status check_folder(const char *dir, fds_error *err) {
    char **names;
    size_t count;
    TRY(fds__dir_list(dir, &names, &count, err));
    bool is_ours = count == 0;
    for (size_t i = 0; i < count; i++)
        is_ours |= strcmp(names[i], SETTINGS) == 0;
    fds_status status = FDS_OK;
    if (!is_ours)
        status = fds__fail(err, FDS_ERR_USAGE,
                           "%s holds \"%.100s\" but no " SETTINGS
                           ": it is no case of a bench; name another folder",
                           dir, names[0]);
    fds__dir_list_free(names, count);
    return status;
}

fds_status eval_folder_lock(const char *dir, fds__file *lock, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__mkdirs(dir, err));
    TRY(check_folder(dir, err));
    TRY(fds__path_join(path, sizeof path, dir, ".lock", err));
    TRY(fds__file_open(lock, path, FDS__ACCESS_CREATE, err));
    return fds__file_lock(lock, dir, err);
}

/* ---- settings ---- */

json_t *eval_describe_data(const eval_game *g) {
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I}", "name", fds__json_string(g->data->name),
                     "source", fds__json_string(g->train->source), "classes",
                     (json_int_t)g->classes, "players", (json_int_t)g->players, "tests",
                     (json_int_t)g->tests, "inputs", (json_int_t)g->data->input_count);
}

json_t *eval_describe_settings(const eval_game *g) {
    const fds__bench_params *p = g->params;
    json_t *shares = json_array();
    bool is_whole = shares != NULL;
    for (size_t i = 0; i < p->share_count && is_whole; i++)
        is_whole = json_array_append_new(shares, json_real(p->shares[i])) == 0;
    if (!is_whole) {
        json_decref(shares);
        shares = NULL;
    }
    return json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:f, s:o}", "seed", (json_int_t)p->seed,
                     "network", p->network, "explainer", p->explainer ? p->explainer : "mlp",
                     "coalitions", (json_int_t)eval_coalitions(g), "permutations",
                     (json_int_t)p->permutations, "truth", (json_int_t)p->truth, "flipped",
                     p->flipped, "shares", shares);
}

json_t *eval_describe_machine(const eval_game *g) {
    return eval_machine(g->params->threads ? g->params->threads : fds_processors());
}

static json_t *describe_methods(const fds__bench_params *params) {
    json_t *list = json_array();
    bool is_whole = list != NULL;
    for (const char *const *name = eval_method_names(params); *name && is_whole; name++)
        is_whole = json_array_append_new(list, json_string(*name)) == 0;
    if (is_whole)
        return list;
    json_decref(list);
    return NULL;
}

/* Of samples: their values, labels and numbers. */
static fds_status hash_samples(const fds_dataset *ds, const uint32_t *index, size_t count,
                               char hex[65], fds_error *err) {
    typedef struct {
        uint64_t values;
        uint32_t sample, label;
    } mark;
    float *sample = fds__alloc_zero(ds->sample_size, sizeof *sample);
    mark *marks = fds__alloc_zero(count, sizeof *marks);
    fds_status status = sample && marks ? FDS_OK : fds__fail_nomem(err, count * sizeof *marks);
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        uint32_t at = index ? index[i] : (uint32_t)i;
        fds_dataset_sample(ds, at, sample);
        marks[i] =
            (mark){fds_checksum(sample, ds->sample_size * sizeof *sample), at, ds->labels[at]};
    }
    if (status == FDS_OK)
        fds_sha256_hex(marks, count * sizeof *marks, hex);
    fds__free(sample);
    fds__free(marks);
    return status;
}

static fds_status describe(const eval_game *g, json_t **out, fds_error *err) {
    const fds__bench_data *data = g->data;
    const fds__bench_params *p = g->params;
    const char *text = fds_utility_get_info(g->sides[EVAL_UTILITY_EPOCHS].value).text;
    char tests[65], inputs[65];
    json_t *value;
    TRY(hash_samples(data->test, data->tests, g->tests, tests, err));
    TRY(hash_samples(g->train, data->inputs, data->input_count, inputs, err));
    TRY(fds__json_parse("the value function's parameters", text, strlen(text), &value, err));
    *out =
        json_pack("{s:s, s:i, s:o, s:o, s:o, s:b, s:b, s:o, s:s, s:s}", "format", FORMAT, "version",
                  1, "data", eval_describe_data(g), "settings", eval_describe_settings(g),
                  "methods", describe_methods(p), "is_both_ways", p->is_both_ways, "is_converged",
                  p->is_converged, "value", value, "tests_sha256", tests, "inputs_sha256", inputs);
    return *out ? FDS_OK : fds__fail_json(err);
}

static fds_status compare(const char *path, const json_t *before, const json_t *now,
                          fds_error *err) {
    const char *format = json_string_value(json_object_get(before, "format"));
    char text[400];
    if (!format || strcmp(format, FORMAT) != 0)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: \"format\" must be \"" FORMAT "\"", path);
    if (!fds__json_difference(before, now, "case", text, sizeof text))
        return FDS_OK;
    return fds__fail(err, FDS_ERR_USAGE, "%s: %s; use another folder, or remove this one", path,
                     text);
}

fds_status eval_folder_settle(const eval_game *g, fds_error *err) {
    char path[FDS__PATH_MAX];
    json_t *now, *before = NULL;
    TRY(fds__path_join(path, sizeof path, g->dir, SETTINGS, err));
    TRY(describe(g, &now, err));
    fds_status status;
    if (fds__path_exists(path)) {
        status = fds__json_read(path, MAX_BYTES, &before, err);
        if (status == FDS_OK)
            status = compare(path, before, now, err);
    } else {
        status = fds__json_write(g->dir, SETTINGS, now, err);
    }
    json_decref(before);
    json_decref(now);
    return status;
}

/* ---- records ---- */

static void file_of(const char *method, char name[80]) {
    snprintf(name, 80, "%.64s.json", method);
    for (char *at = name; *at; at++)
        if (strchr("/:,", *at))
            *at = '-';
}

static fds_status read_record(const eval_game *game, const char *path, eval_record *out,
                              fds_error *err) {
    json_t *json, *here = eval_describe_machine(game);
    json_int_t sub_models;
    int was_resumed;
    fds_status status = here ? fds__json_read(path, MAX_BYTES, &json, err) : fds__fail_json(err);
    if (status != FDS_OK) {
        json_decref(here);
        return status;
    }
    const json_t *machine = json_object_get(json, "machine");
    out->is_begun = json_is_true(json_object_get(json, "begun"));
    out->is_done = json_unpack(json, "{s:I, s:b}", "sub_models", &sub_models, "was_resumed",
                               &was_resumed) == 0 &&
                   sub_models >= 0;
    if (out->is_done)
        out->cost = (eval_cost){.prepare_s = report_number_of(json, "prepare_s"),
                                .answer_ms = report_number_of(json, "answer_ms"),
                                .sub_models = (size_t)sub_models,
                                .was_resumed = was_resumed,
                                .is_elsewhere = machine && !json_equal(machine, here)};
    json_decref(json);
    json_decref(here);
    if (out->is_begun || out->is_done)
        return FDS_OK;
    return fds__fail(
        err, FDS_ERR_FORMAT,
        "%s: neither \"begun\" nor \"sub_models\", from 0, with \"was_resumed\" is there", path);
}

fds_status eval_record_read(const eval_game *game, const char *method, eval_record *out,
                            fds_error *err) {
    char name[80], path[FDS__PATH_MAX];
    fds_error why;
    *out = (eval_record){0};
    file_of(method, name);
    TRY(fds__path_join(path, sizeof path, game->dir, name, err));
    if (!fds__path_exists(path))
        return FDS_OK;
    fds_status status = read_record(game, path, out, &why);
    if (status == FDS_OK)
        return FDS_OK;
    if (status == FDS_ERR_NOMEM)
        return fds__fail(err, status, "%s", why.text);
    fds__log(game->events, FDS_LOG_WARNING, "%s; %s is measured again", why.text, method);
    *out = (eval_record){.is_begun = true};
    return FDS_OK;
}

fds_status eval_record_write(const eval_game *game, const char *method, const eval_cost *cost,
                             fds_error *err) {
    char name[80];
    file_of(method, name);
    json_t *json =
        cost ? json_pack("{s:o, s:o, s:I, s:b, s:o}", "prepare_s", fds__json_real(cost->prepare_s),
                         "answer_ms", fds__json_real(cost->answer_ms), "sub_models",
                         (json_int_t)cost->sub_models, "was_resumed", cost->was_resumed, "machine",
                         eval_describe_machine(game))
             : json_pack("{s:b}", "begun", true);
    fds_status status = fds__json_write(game->dir, name, json, err);
    json_decref(json);
    return status;
}
