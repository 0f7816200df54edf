/* SPDX-License-Identifier: Apache-2.0
 *
 * run.json: the players of a run, every setting, and, once the run is complete, its results.
 *
 *   format, version   "fds run", 2
 *   method            a name for the record
 *   data              source, samples, shape, is_image, classes (names)
 *   players           name, label, provider (or null) and samples of each; in a regression also the
 *                     mean target
 *   score             of a regression
 *   adjust            how least squares adjust the values, which may need groups
 *   groups            the group of each player, or null
 *   inputs            count, validation
 *   explainer         network and training; network "auto": results.choice says what answers
 *   keep_models
 *   utility           what the sub-models' answers depend on, as in table.json
 *   coalitions        sampler, count, validation, seed
 *   origin            where the data is and how it is read; not part of the settings
 *                     (changing.c: what a run for changing data adds)
 *   machine           version, threads, those that the explainer was trained with, and
 *                     instruction sets; not part of the settings
 *   results           fds__fit_report, the strengths of the least squares, the choice between a
 *                     probe and a bank of the same sub-models, if there was one, and sha256 and xxh3
 *                     of the other files; only when complete
 *   forgetting        a provider that is being removed; forgot: what was; only in an incomplete run
 *                     (forget.c)
 *   checksum          of all above
 */
#include "explain/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)256 << 20)
enum { VERSION = 3, MOST_THREADS = 1024 }; /* the most that deep takes */

static const char *const samplers[] = {"kernel", "paired", "leverage", "gfds", "gfds+"};
static const char *const adjustments[] = {"none", "shrink", "counts", "control"};

const char *fds__sampler_name(const fds__fit_settings *s) {
    return s->keys ? FDS__NESTED : samplers[s->sampler];
}

/* ---- describing ---- */

/* The list with one more item, which it owns; NULL: out of memory. */
static json_t *append(json_t *list, json_t *item) {
    if (json_array_append_new(list, item) == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *describe_data(const fds_dataset *train) {
    json_t *names = json_array();
    for (uint32_t c = 0; names && c < train->classes; c++)
        names = append(names, fds__json_string(fds_dataset_class_name(train, c)));
    return json_pack("{s:o, s:I, s:[I,I,I], s:b, s:o}", "source", fds__json_string(train->source),
                     "samples", (json_int_t)train->count, "shape",
                     (json_int_t)train->shape.channels, (json_int_t)train->shape.height,
                     (json_int_t)train->shape.width, "is_image", train->is_image, "classes", names);
}

/* The providers that `cluster` has joined to this player, with the number of their samples; NULL: none,
 * or out of memory. */
static json_t *describe_members(const fds_dataset *train, const uint32_t *index, size_t count) {
    json_t *list = train->member_ids ? json_array() : NULL;
    for (uint32_t m = 0; list && m < train->members; m++) {
        size_t samples = 0;
        for (size_t i = 0; i < count; i++)
            samples += train->member_ids[index[i]] == m;
        if (samples)
            list = append(list,
                          json_pack("{s:o, s:I}", "name", fds__json_string(train->member_names[m]),
                                    "samples", (json_int_t)samples));
    }
    if (list && json_array_size(list) > 1)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *describe_player(const fds_problem *problem, size_t p) {
    const fds_dataset *train = problem->train;
    const uint32_t *index;
    size_t count = fds_players_samples(problem->players, p, &index);
    json_t *samples = json_array();
    for (size_t i = 0; samples && i < count; i++)
        samples = append(samples, json_integer(index[i]));
    double target = NAN, std;
    if (train->targets)
        fds__dataset_target_stats(train, index, count, &target, &std);
    const char *provider = train->provider_ids
                               ? fds_dataset_provider_name(train, train->provider_ids[index[0]])
                               : NULL;
    return json_pack(
        "{s:o, s:o*, s:o*, s:I, s:o, s:o, s:o}", "name",
        fds__json_string(fds_players_name(problem->players, p)), "members",
        problem->by_provider ? describe_members(train, index, count) : NULL, "target",
        train->targets ? json_real(target) : NULL, "label", (json_int_t)problem->player_labels[p],
        "provider", fds__json_string(provider), "provider_id",
        provider ? json_integer(train->provider_ids[index[0]]) : json_null(), "samples", samples);
}

static json_t *describe_players(const fds_problem *problem) {
    json_t *list = json_array();
    for (size_t p = 0; list && p < fds_players_count(problem->players); p++)
        list = append(list, describe_player(problem, p));
    return list;
}

/* A parameter as text, of files the whole path; null: not set. */
static json_t *describe_setting(const fds_params *params, const char *name, bool is_file) {
    char text[FDS__PATH_MAX];
    if (fds_params_get(params, name, text, sizeof text, NULL) != FDS_OK || !strcmp(text, "auto"))
        return json_null();
    char *path = is_file ? realpath(text, NULL) : NULL;
    json_t *json = fds__json_string(path ? path : text);
    free(path);
    return json;
}

/* Where the data is and how it is read: samples of it can then be explained later. */
static json_t *describe_origin(const fds_dataset *train, const fds_params *params) {
    char *path = realpath(train->source, NULL);
    json_t *origin = json_pack("{s:o}", "path", fds__json_string(path ? path : train->source));
    for (const char *const *name = fds__run_reading; *name; name++) {
        bool is_file =
            !strcmp(*name, "labels") || !strcmp(*name, "owners") || !strcmp(*name, "test_file");
        json_object_set_new(origin, *name, describe_setting(params, *name, is_file));
    }
    json_object_set_new(origin, "test_balance", describe_setting(params, "test_balance", false));
    free(path);
    return origin;
}

static json_t *describe_groups(const fds_groups *groups) {
    if (!groups)
        return json_null();
    json_t *list = json_array();
    for (size_t p = 0; list && p < fds_groups_players(groups); p++)
        list = append(list, json_integer(fds_groups_of(groups, p)));
    return list;
}

static json_t *describe_explainer(const fds__explainer_params *p, size_t probes) {
    return json_pack(
        "{s:s, s:I, s:o, s:b, s:b, s:o*, s:s*, s:f, s:s, s:f, s:I, s:I, s:I, s:I, s:s, s:I}",
        "network", p->network, "probes", (json_int_t)probes, "weights",
        fds__json_string(p->weights), "warm_up", p->warm_up, "by_group", p->is_by_group, "rank",
        p->rank ? json_integer((json_int_t)p->rank) : NULL, "rank_from",
        p->learns_new ? "samples" : NULL, "gamma", fds__decimal(p->gamma), "objective",
        p->objective == FDS__OBJECTIVE_PAPER ? "paper" : "closed", "lr", fds__decimal(p->lr),
        "batch", (json_int_t)p->batch, "epochs", (json_int_t)p->epochs, "patience",
        (json_int_t)p->patience, "draws", (json_int_t)p->draws, "precision",
        p->precision == FDS__PRECISION_BF16 ? "bf16" : "f32", "seed", (json_int_t)p->seed);
}

fds_status fds__run_record_describe(const fds__fit_settings *s, const fds_problem *problem,
                                    const fds_params *params, const fds_groups *groups,
                                    const fds_utility *utility, json_t **out, fds_error *err) {
    json_t *about;
    bool has_rounds = params->until_error > 0;
    TRY(fds__json_parse("the utility function's parameters", utility->text, strlen(utility->text),
                        &about, err));
    json_t *coalitions = json_pack(
        "{s:s, s:o*, s:o*, s:I, s:I, s:I}", "sampler", fds__sampler_name(s), "until_error",
        has_rounds ? json_real(params->until_error) : NULL, "most",
        has_rounds && params->coalitions ? json_integer((json_int_t)params->coalitions) : NULL,
        "count", (json_int_t)s->coalitions, "validation", (json_int_t)s->validation_coalitions,
        "seed", (json_int_t)s->plan_seed);
    /* differences are reported in this order: causes before their consequences */
    *out = json_pack("{s:s, s:i, s:s, s:s*, s:o, s:o, s:s, s:o, s:{s:I, s:I, s:s*}, s:o, s:b, s:o, "
                     "s:o, s:o, s:o}",
                     "format", "fds run", "version", VERSION, "method", s->method, "score",
                     problem->train->targets ? fds__choice(params, score) : NULL, "data",
                     describe_data(problem->train), "players", describe_players(problem), "adjust",
                     adjustments[s->adjust], "groups", describe_groups(groups), "inputs", "count",
                     (json_int_t)utility->inputs, "validation", (json_int_t)s->validation_inputs,
                     "from", problem->inputs_of_test ? "test" : NULL, "explainer",
                     describe_explainer(&s->explainer, s->probes), "keep_models", s->keeps_models,
                     "utility", about, "coalitions", coalitions, "origin",
                     describe_origin(problem->train, params), "preparation",
                     fds__preparation_json(problem->train->preparation));
    *out = fds__json_keep_if(*out, *out && fds__changing_describe(problem, params, *out));
    return *out ? FDS_OK : fds__fail_json(err);
}

/* ---- writing ---- */

fds_status fds__run_lists_write(const char *dir, const fds__fit_settings *s,
                                const fds_utility *utility, const fds__fit_plans *plans,
                                fds_error *err) {
    TRY(fds__export_samples(dir, utility, "training", s->validation_inputs, err));
    TRY(fds__export_initial(dir, utility, err));
    return fds__export_coalitions(dir, plans->plan, plans->validation, err);
}

json_t *fds__fit_seconds_json(const double seconds[FDS__FIT_STAGES]) {
    json_t *object = json_object();
    bool is_whole = object;
    for (int i = 0; i < FDS__FIT_STAGES && is_whole; i++)
        is_whole = fds__json_put(object, fds__fit_stage_name((fds__fit_stage)i),
                                 fds__json_real(seconds[i]));
    return fds__json_keep_if(object, is_whole);
}

static json_t *describe_strengths(const fds_ls_report *r) {
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "ridge_fit", r->ridge_fit, "ridge_rest",
                     r->ridge_rest, "shrink", r->shrink, "shrink_rest", r->shrink_rest, "explained",
                     r->explained);
}

static json_t *describe_choice(const fds__fit_choice *c) {
    return json_pack("{s:s, s:{s:f, s:f}, s:o}", "explainer", c->is_bank ? "bank" : "probe",
                     "misallocated", "bank", c->bank, "probe", c->probe, "least_squares",
                     describe_strengths(&c->strengths));
}

static json_t *describe_results(const fds__fit_report *r, const fds_ls_report *strengths) {
    return json_pack("{s:I, s:f, s:I, s:I, s:o, s:o, s:o, s:o*, s:o, s:o, s:o*, s:o*}",
                     "sub_models", (json_int_t)r->sub_models, "service_accuracy",
                     r->service_accuracy, "epochs", (json_int_t)r->epochs, "best_epoch",
                     (json_int_t)r->best_epoch, "loss", fds__json_real(r->loss), "agreement",
                     fds__json_real(r->agreement), "within", fds__json_real(r->within), "energy",
                     isfinite(r->energy) ? json_real(r->energy) : NULL, "seconds",
                     fds__fit_seconds_json(r->seconds), "least_squares",
                     describe_strengths(strengths), "choice",
                     r->choice.is_measured ? describe_choice(&r->choice) : NULL, "until_error",
                     r->until.wanted > 0 ? fds__until_json(&r->until) : NULL);
}

/* Files with checksums, where they are part of the run: what answers depend on, and what says how the
 * sub-models were trained. */
static const char *const kept[] = {
    FDS__RUN_NEWCOMERS,  FDS__RUN_SERVICE,       FDS__RUN_EXPLAINER,
    FDS__RUN_PLAYERS,    FDS__RUN_ERRORS,        FDS__EXPORT_SAMPLES,
    FDS__EXPORT_INITIAL, FDS__EXPORT_COALITIONS, FDS__RUN_VALIDATION};

/* Two sums of each file: one that nobody can forge, and a fast one. */
static const struct {
    const char *key;
    fds_status (*of)(const char *path, char hex[65], fds_error *err);
} sums[] = {{"sha256", fds__file_sha256}, {"xxh3", fds__file_checksum}};

enum { SHA256, XXH3, SUMS };

static fds_status file_sum(const char *dir, const char *name, int which, char path[FDS__PATH_MAX],
                           char hex[65], fds_error *err) {
    TRY(fds__path_join(path, FDS__PATH_MAX, dir, name, err));
    hex[0] = 0;
    return fds__path_exists(path) ? sums[which].of(path, hex, err) : FDS_OK;
}

static fds_status add_checksums(const char *dir, json_t *results, fds_error *err) {
    bool is_whole = true;
    for (int which = 0; is_whole && which < SUMS; which++) {
        json_t *list = json_object();
        is_whole = json_object_set_new(results, sums[which].key, list) == 0;
        for (size_t i = 0; is_whole && i < sizeof kept / sizeof *kept; i++) {
            char path[FDS__PATH_MAX], hex[65];
            TRY(file_sum(dir, kept[i], which, path, hex, err));
            is_whole = !hex[0] || json_object_set_new(list, kept[i], json_string(hex)) == 0;
        }
    }
    return is_whole ? FDS_OK : fds__fail_json(err);
}

static fds_status check_sums(const char *dir, const fds__run_record *record, int which,
                             fds_error *err) {
    const json_t *results = json_object_get(record->json, "results"),
                 *list = json_object_get(results, sums[which].key);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        char path[FDS__PATH_MAX], hex[65];
        const char *recorded = json_string_value(json_object_get(list, kept[i]));
        TRY(file_sum(dir, kept[i], which, path, hex, err));
        if (strcmp(recorded ? recorded : "", hex) != 0)
            return fds__fail(err, FDS_ERR_CORRUPT,
                             "%s was lost, damaged or changed: its %s is not the one in %s", path,
                             sums[which].key, FDS__RUN_JSON);
    }
    return FDS_OK;
}

fds_status fds__run_record_check(const char *dir, const fds__run_record *record, bool is_quick,
                                 fds_error *err) {
    const json_t *results = json_object_get(record->json, "results");
    bool has_quick = json_object_get(results, sums[XXH3].key); /* earlier runs have none */
    return check_sums(dir, record, is_quick && has_quick ? XXH3 : SHA256, err);
}

fds_status fds__run_record_check_fit(const char *dir, const fds__run_record *record,
                                     fds_error *err) {
    const json_t *results = json_object_get(record->json, "results");
    TRY(fds__run_record_check(dir, record, false, err));
    return json_object_get(json_object_get(results, sums[SHA256].key), FDS__RUN_VALIDATION)
               ? FDS_OK
               : fds__fail(err, FDS_ERR_CORRUPT, "%s has no %s", dir, FDS__RUN_VALIDATION);
}

/* What fds forget has removed stays there until the run is complete. */
static fds_status keep_forgot(const char *dir, json_t *json, fds_error *err) {
    json_t *old;
    fds_error why;
    fds_status status = fds__run_record_json(dir, &old, &why);
    if (status == FDS_ERR_NOT_FOUND || status == FDS_ERR_CORRUPT || status == FDS_ERR_FORMAT)
        return FDS_OK; /* there is none yet, or a damaged one, which is written again */
    if (status != FDS_OK)
        return fds__fail(err, status, "%s", why.text);
    json_t *forgot = json_object_get(old, FDS__FORGOT);
    if (forgot && json_object_set(json, FDS__FORGOT, forgot) != 0)
        status = fds__fail_json(err);
    json_decref(old);
    return status;
}

fds_status fds__run_record_write(const char *dir, const json_t *description,
                                 const fds__fit_settings *settings, const fds__fit_report *report,
                                 const fds_ls_report *strengths, fds_error *err) {
    json_t *json = json_deep_copy(description);
    json_t *machine = json_pack("{s:s, s:I, s:I, s:s, s:s}", "fds", FDS_VERSION, "threads",
                                (json_int_t)settings->threads, "explainer_threads",
                                (json_int_t)settings->explainer_threads, "isa", fds_isa(),
                                "onednn_isa", fds__deep_isa());
    bool is_whole = json_equal(json, description); /* a copy drops what it has no memory for */
    is_whole &= fds__json_put(json, "machine", machine);
    fds_status status = FDS_OK;
    if (report) {
        json_t *results = describe_results(report, strengths);
        is_whole &= fds__json_put(json, "results", results);
        if (is_whole)
            status = add_checksums(dir, results, err);
    } else {
        status = keep_forgot(dir, json, err);
    }
    is_whole = is_whole && fds__json_seal(json);
    if (status == FDS_OK)
        status = fds__json_write(dir, FDS__RUN_JSON, is_whole ? json : NULL, err);
    json_decref(json);
    return status;
}

/* ---- reading ---- */

static fds_status read_json(const char *path, json_t **out, fds_error *err) {
    TRY(fds__json_read(path, MAX_BYTES, out, err));
    fds_status status = FDS_OK;
    const char *format = json_string_value(json_object_get(*out, "format"));
    json_int_t version = json_integer_value(json_object_get(*out, "version"));
    if (!format || strcmp(format, "fds run") != 0)
        status = fds__fail(err, FDS_ERR_FORMAT, "%s: \"format\" must be \"fds run\"", path);
    else if (version != VERSION)
        status =
            fds__fail(err, FDS_ERR_UNSUPPORTED, "%s: version %lld, this program reads version %d",
                      path, (long long)version, VERSION);
    else
        status = fds__json_unseal(path, *out, err);
    if (status != FDS_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

/* A fit creates the table of utilities first. */
static bool has_table(const char *dir) {
    char path[FDS__PATH_MAX];
    return fds__path_join(path, sizeof path, dir, FDS__RUN_TABLE "/table.json", NULL) == FDS_OK &&
           fds__path_exists(path);
}

/* A folder without run.json may hold the remains of a run, and nothing else. */
static fds_status check_folder(const char *dir, fds_error *err) {
    char **names;
    size_t count;
    if (!fds__path_is_dir(dir) || has_table(dir))
        return FDS_OK;
    TRY(fds__dir_list(dir, &names, &count, err));
    fds_status status = FDS_OK;
    if (count > 1 || (count && strcmp(names[0], FDS__RUN_TABLE) != 0))
        status = fds__fail(err, FDS_ERR_CONFLICT,
                           "%s holds \"%.100s\" but no run: name an empty folder or a new one", dir,
                           names[0]);
    fds__dir_list_free(names, count);
    return status;
}

/* Of a fit with `until_error` the record may be of an earlier round, with fewer coalitions and, because
 * of that, another explainer. True: it was, and is now as the description. */
static bool take_round(json_t *record, const json_t *description) {
    static const char *const follow[] = {"coalitions", "explainer", "keep_models"};
    json_t *from = json_object_get(record, "coalitions"),
           *to = json_object_get(description, "coalitions");
    bool is_earlier =
        json_object_get(to, "until_error") &&
        json_equal(json_object_get(from, "until_error"), json_object_get(to, "until_error")) &&
        json_integer_value(json_object_get(from, "count")) <
            json_integer_value(json_object_get(to, "count"));
    for (size_t i = 0; is_earlier && i < sizeof follow / sizeof *follow; i++)
        is_earlier =
            json_object_set(record, follow[i], json_object_get(description, follow[i])) == 0;
    return is_earlier;
}

/* Copies from a description what may differ between fits with the same bits: where the data is.
 * False: out of memory. */
static bool take_place(json_t *record, const json_t *description) {
    json_t *data = json_object_get(record, "data");
    return json_object_set(record, "origin", json_object_get(description, "origin")) == 0 &&
           (!data ||
            json_object_set(data, "source",
                            json_object_get(json_object_get(description, "data"), "source")) == 0);
}

fds_status fds__run_record_compare(const char *dir, const json_t *description,
                                   const fds_events *events, bool *is_there, bool *is_done,
                                   fds_error *err) {
    char path[FDS__PATH_MAX], text[400];
    fds_error why;
    json_t *json;
    *is_there = *is_done = false;
    TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_JSON, err));
    if (!fds__path_exists(path))
        return check_folder(dir, err);
    fds_status status = read_json(path, &json, &why);
    if (status == FDS_ERR_CORRUPT || (status == FDS_ERR_FORMAT && has_table(dir))) {
        fds__log(events, FDS_LOG_WARNING, "%s; written again", why.text);
        *is_there = true;
        return FDS_OK;
    }
    if (status != FDS_OK)
        return fds__fail(err, status, "%s", why.text);
    *is_there = true;
    const char *forgotten = json_string_value(json_object_get(json, "forgetting"));
    if (forgotten) {
        fds__fail(
            err, FDS_ERR_CONFLICT,
            "%s: the removal of \"%.100s\" was interrupted: run fds forget with that provider "
            "again first",
            path, forgotten);
        json_decref(json);
        return FDS_ERR_CONFLICT;
    }
    *is_done = json_object_get(json, "results") != NULL;
    json_object_del(json, "results");
    json_object_del(json, "machine");
    json_object_del(json, FDS__FORGOT);
    bool is_whole = take_place(json, description);
    *is_done &= !take_round(json, description);
    bool differs = is_whole && fds__json_difference(json, description, "run", text, sizeof text);
    json_decref(json);
    if (!is_whole)
        return fds__fail_json(err);
    if (differs)
        return fds__fail(err, FDS_ERR_CONFLICT, "%s: %s; use another folder, or remove this one",
                         path, text);
    return FDS_OK;
}

static json_int_t whole_at(const json_t *from, const char *key) {
    return json_integer_value(json_object_get(from, key));
}

static double real_at(const json_t *from, const char *key) {
    return json_number_value(json_object_get(from, key));
}

static const char *text_at(const json_t *from, const char *key) {
    return json_string_value(json_object_get(from, key));
}

/* The place of a member's text among names; count: it is none of them. */
static size_t choice_at(const json_t *from, const char *key, const char *const *names,
                        size_t count) {
    const char *text = text_at(from, key);
    size_t i = 0;
    while (i < count && (!text || strcmp(text, names[i]) != 0))
        i++;
    return i;
}

static bool read_coalitions(const json_t *json, fds__fit_settings *s) {
    enum { SAMPLERS = sizeof samplers / sizeof *samplers };
    enum { ADJUSTMENTS = sizeof adjustments / sizeof *adjustments };
    const json_t *c = json_object_get(json, "coalitions");
    size_t sampler = s->keys ? FDS_SAMPLER_LEVERAGE : choice_at(c, "sampler", samplers, SAMPLERS);
    size_t adjust = choice_at(json, "adjust", adjustments, ADJUSTMENTS);
    s->sampler = (fds_sampler)sampler;
    s->adjust = (fds_adjust)adjust;
    s->coalitions = (size_t)whole_at(c, "count");
    s->validation_coalitions = (size_t)whole_at(c, "validation");
    s->plan_seed = (uint64_t)whole_at(c, "seed");
    s->probes = (size_t)whole_at(json_object_get(json, "explainer"), "probes");
    return s->probes <= s->coalitions + 2 && s->probes != 1 && sampler < SAMPLERS &&
           adjust < ADJUSTMENTS && s->coalitions > 0 && s->coalitions < FDS__MAX_ROWS &&
           s->validation_coalitions < FDS__MAX_ROWS;
}

static bool read_data(const json_t *json, fds__run_info *r) {
    const json_t *data = json_object_get(json, "data"), *shape = json_object_get(data, "shape");
    uint32_t *sides[] = {&r->shape.channels, &r->shape.height, &r->shape.width};
    r->source = text_at(data, "source");
    r->classes = (uint32_t)json_array_size(json_object_get(data, "classes"));
    r->is_image = json_is_true(json_object_get(data, "is_image"));
    for (size_t i = 0; i < 3; i++) {
        json_int_t side = json_integer_value(json_array_get(shape, i));
        if (side < 1 || side > FDS__MAX_SIDE)
            return false;
        *sides[i] = (uint32_t)side;
    }
    return r->source && r->classes;
}

/* A regression has one class; false: its utility function has no mean and deviation of targets. */
static bool read_task(const json_t *json, fds__run_info *r) {
    const char *score = text_at(json, "score");
    const json_t *utility = json_object_get(json, "utility");
    const char *task = text_at(utility, "task");
    r->is_regression = task && strcmp(task, "regression") == 0;
    if (!r->is_regression)
        return !score;
    r->aim = (fds__aim){.mean = real_at(utility, "target_mean"),
                        .std = real_at(utility, "target_std"),
                        .is_kernel = score && strcmp(score, "kernel") == 0};
    return score && r->classes == 1 && isfinite(r->aim.mean) && r->aim.std > 0 &&
           isfinite(r->aim.std);
}

static bool read_players(const json_t *json, fds__run_info *r) {
    const json_t *list = json_object_get(json, "players");
    r->players = json_array_size(list);
    for (size_t p = 0; p < r->players; p++) {
        const json_t *player = json_array_get(list, p), *label = json_object_get(player, "label");
        if (!text_at(player, "name") || !json_is_integer(label) || json_integer_value(label) < 0 ||
            json_integer_value(label) >= r->classes)
            return false;
    }
    return r->players > 0;
}

/* NaN for null, and for anything else that is not a number. */
static double real_or_nan(const json_t *from, const char *key) {
    return json_is_number(json_object_get(from, key)) ? real_at(from, key) : NAN;
}

static fds_ls_report read_strengths(const json_t *ls) {
    fds_ls_report r = {.ridge_fit = real_at(ls, "ridge_fit"),
                       .ridge_rest = real_at(ls, "ridge_rest"),
                       .shrink = real_at(ls, "shrink"),
                       .shrink_rest = real_at(ls, "shrink_rest"),
                       .explained = real_at(ls, "explained")};
    r.ridge = MAX(r.ridge_fit, r.ridge_rest);
    return r;
}

/* What was chosen, if it was measured. */
static void read_choice(const json_t *choice, fds__run_record *r) {
    const json_t *misallocated = json_object_get(choice, "misallocated");
    const char *explainer = text_at(choice, "explainer");
    if (!explainer || !fds__fit_measures(&r->settings))
        return;
    r->info.explainer = explainer;
    r->report.choice =
        (fds__fit_choice){.probe = real_at(misallocated, "probe"),
                          .bank = real_at(misallocated, "bank"),
                          .is_measured = true,
                          .is_bank = strcmp(explainer, "bank") == 0,
                          .strengths = read_strengths(json_object_get(choice, "least_squares"))};
}

static void read_results(const json_t *json, fds__run_record *r) {
    const json_t *results = json_object_get(json, "results");
    const json_t *seconds = json_object_get(results, "seconds");
    r->report = (fds__fit_report){.sub_models = (size_t)whole_at(results, "sub_models"),
                                  .service_accuracy = real_at(results, "service_accuracy"),
                                  .epochs = (uint32_t)whole_at(results, "epochs"),
                                  .best_epoch = (uint32_t)whole_at(results, "best_epoch"),
                                  .loss = real_or_nan(results, "loss"),
                                  .agreement = real_or_nan(results, "agreement"),
                                  .within = real_or_nan(results, "within"),
                                  .energy = real_or_nan(results, "energy")};
    for (int s = 0; s < FDS__FIT_STAGES; s++)
        r->report.seconds[s] = real_at(seconds, fds__fit_stage_name((fds__fit_stage)s));
    r->strengths = read_strengths(json_object_get(results, "least_squares"));
    read_choice(json_object_get(results, "choice"), r);
    const json_t *until = json_object_get(results, "until_error");
    r->report.until =
        (fds__until){.wanted = real_at(until, "wanted"),
                     .most = (size_t)whole_at(until, "most"),
                     .count = r->settings.coalitions,
                     .error = real_at(until, "greatest"),
                     .is_reached = json_is_true(json_object_get(until, "is_reached"))};
}

static fds_status read_groups(const char *path, const json_t *list, size_t players,
                              fds_groups **out, fds_error *err) {
    uint32_t *group_of;
    if (!json_is_array(list))
        return FDS_OK;
    if (json_array_size(list) != players)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: \"groups\" has %zu entries for %zu players",
                         path, json_array_size(list), players);
    TRY(RESERVE(group_of, players, 1, err));
    fds_status status = FDS_OK;
    for (size_t p = 0; p < players && status == FDS_OK; p++) {
        const json_t *group = json_array_get(list, p);
        group_of[p] = (uint32_t)json_integer_value(group);
        if (!json_is_integer(group) || json_integer_value(group) != group_of[p])
            status = fds__fail(err, FDS_ERR_FORMAT,
                               "%s: \"groups\", entry %zu: not the number of a group", path, p);
    }
    if (status == FDS_OK)
        status = fds_groups_create(group_of, players, NULL, out, err);
    fds__free(group_of);
    return status;
}

static fds_status read_members(const char *path, fds__run_record *r, fds_error *err) {
    const json_t *json = r->json;
    TRY(fds__changing_keys(path, json, &r->keys, err));
    r->settings.keys = r->keys;
    r->info.method = text_at(json, "method");
    r->info.explainer = r->settings.explainer.network =
        text_at(json_object_get(json, "explainer"), "network");
    r->info.has_bank = json_is_true(json_object_get(json, "keep_models"));
    r->threads = (unsigned)whole_at(json_object_get(json, "machine"), "threads");
    r->settings.utility.train.seed = (uint64_t)whole_at(json_object_get(json, "utility"), "seed");
    if (!r->info.method || !r->info.explainer || !read_data(json, &r->info) ||
        !read_task(json, &r->info) || !read_players(json, &r->info) ||
        !read_coalitions(json, &r->settings) || !json_is_object(json_object_get(json, "utility")) ||
        r->threads > MOST_THREADS)
        return fds__fail(
            err, FDS_ERR_FORMAT,
            "%s: data, players, utility, coalitions, threads or explainer are missing or "
            "wrong",
            path);
    const bool forgets = json_object_get(json, "forgetting") || json_object_get(json, FDS__FORGOT);
    if (!json_object_get(json, "results"))
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s: the %s was interrupted: run the same fds %s command again to resume",
                         path, forgets ? "removal of a provider" : "fit",
                         forgets ? "forget" : "fit");
    read_results(json, r);
    if (strcmp(r->info.explainer, "auto") == 0)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: results.choice must say what answers", path);
    r->info.asks_all = !r->settings.probes && strcmp(r->info.explainer, "bank") == 0;
    TRY(fds__json_checksum(json_object_get(json, "utility"), &r->parameters, err));
    TRY(read_groups(path, json_object_get(json, "groups"), r->info.players, &r->groups, err));
    r->info.groups = r->groups ? fds_groups_count(r->groups) : 0;
    return FDS_OK;
}

fds_status fds__run_record_json(const char *dir, json_t **out, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_JSON, err));
    if (!fds__path_exists(path))
        return fds__fail(err, FDS_ERR_NOT_FOUND, "%s is not a run: it has no %s", dir,
                         FDS__RUN_JSON);
    return read_json(path, out, err);
}

fds_status fds__run_record_read(const char *dir, fds__run_record *out, fds_error *err) {
    char path[FDS__PATH_MAX];
    *out = (fds__run_record){0};
    TRY(fds__run_record_json(dir, &out->json, err));
    TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_JSON, err));
    fds_status status = read_members(path, out, err);
    if (status != FDS_OK)
        fds__run_record_free(out);
    return status;
}

void fds__run_record_free(fds__run_record *record) {
    json_decref(record->json);
    fds_groups_free(record->groups);
    fds__free(record->keys);
    *record = (fds__run_record){0};
}
