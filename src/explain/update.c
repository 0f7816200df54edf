/* SPDX-License-Identifier: Apache-2.0
 *
 * A run whose players, inputs or coalitions have changed, from the sub-models that stay valid.
 *
 * The new run is, to the bit, that of a fit with the same parameters on the changed data. First the
 * samples of the run's players are found again (changed_data.c). Then records of the old table and
 * bank go to the places that the new fit gives them, and the fit trains what is missing. Everything
 * after the sub-models (service model, values, explainer) is computed anew. */
#include "explain/update.h"

#include <stdlib.h>
#include <string.h>

void fds__update_free(fds__update *u) {
    fds_table_free(u->from);
    fds_table_free(u->table);
    fds_utility_free(u->utility);
    fds__free(u->order);
    fds__free(u->players);
    fds__free(u->inputs);
    fds__fit_plans_free(&u->plans);
    fds_groups_free(u->groups);
    fds_problem_free(u->problem);
    fds_dataset_free(u->train);
    fds_dataset_free(u->test);
    fds_params_free(u->fit);
    json_decref(u->json);
}

const char *fds__update_nearest(const json_t *json, const char *name) {
    const json_t *list = json_object_get(json, "players");
    const size_t count = json_array_size(list);
    OWNED const char **names = NULL;
    size_t used = 0;
    if (RESERVE(names, count + 1, 1, NULL) != FDS_OK)
        return NULL; /* only a hint */
    for (size_t p = 0; p < count; p++) {
        const char *owner = fds__update_owner(json_array_get(list, p));
        if (owner)
            names[used++] = owner;
    }
    names[used] = NULL;
    return fds_nearest(name, names);
}

const char *fds__update_owner(const json_t *player) {
    const json_t *owner = json_object_get(player, "provider");
    return json_string_value(json_is_string(owner) ? owner : json_object_get(player, "name"));
}

/* ---- the fit to come ---- */

static fds_status set_count(fds_params *fit, const char *name, uint64_t value, fds_error *err) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return value ? fds_params_set(fit, name, text, err) : FDS_OK;
}

/* The first round has the coalitions of the run. */
static void begin_rounds(fds__update *u) {
    const json_t *coalitions = json_object_get(u->json, "coalitions");
    fds_params *fit = u->fit;
    fit->until_error = u->params->until_error;
    fit->coalitions = u->params->coalitions;
    fit->round = (uint64_t)json_integer_value(json_object_get(coalitions, "count"));
    fit->given[FDS__PLACE_until_error] = true;
    fit->given[FDS__PLACE_coalitions] = fit->coalitions > 0;
}

fds_status fds__update_open(fds__update *u, fds_error *err) {
    const fds_params *p = u->params;
    TRY(fds__run_record_json(u->dir, &u->json, err));
    TRY(fds__changing_params(u->dir, u->json, &u->fit, err));
    TRY(fds__changed_data(u, err));
    const json_t *inputs = json_object_get(u->json, "inputs");
    u->old_inputs = (size_t)json_integer_value(json_object_get(inputs, "count"));
    u->old_validation = (size_t)json_integer_value(json_object_get(inputs, "validation"));
    if (!u->old_validation || u->old_validation >= u->old_inputs)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s/" FDS__RUN_JSON
                         ": %zu of %zu inputs validate: there must be some, and "
                         "others",
                         u->dir, u->old_validation, u->old_inputs);
    if (p->job == FDS__JOB_UPDATE) {
        TRY(set_count(u->fit, "inputs", p->inputs, err));
        TRY(set_count(u->fit, "coalitions", p->coalitions, err));
        if (p->until_error > 0)
            begin_rounds(u);
    }
    TRY(set_count(u->fit, "threads", p->threads, err));
    TRY(fds_fit_check(u->fit, err));
    return fds_problem_create(u->train, u->test, u->fit, u->events, &u->problem, err);
}

/* Everything but the tables. */
static fds_status prepare(fds__update *u, fds_error *err) {
    fds__fit_settings *s = &u->settings;
    const fds_problem *problem = u->problem;
    TRY(fds__fit_prepare(problem, u->fit, u->events, s, &u->groups, err));
    TRY(fds__fit_plans_make(s, fds_players_count(problem->players), u->groups, &u->plans, err));
    TRY(fds__fit_check_plan(s, u->plans.plan, u->groups, err));
    return fds__fit_utility_create(s, problem, u->events, &u->order, &u->utility, err);
}

/* ---- what can be reused ---- */

/* Players by what they have. */
static fds_status map_players(fds__update *u, fds_error *err) {
    const json_t *old = json_object_get(u->json, "players");
    const size_t n = fds_players_count(u->problem->players), from = json_array_size(old);
    OWNED uint8_t(*contents)[32] = NULL;
    TRY(RESERVE(u->players, n, 1, err));
    TRY(RESERVE(contents, from, 1, err));
    for (size_t i = 0; i < from; i++) {
        const char *hex = json_string_value(json_object_get(json_array_get(old, i), "content"));
        if (!fds__hex_read(hex, contents[i]))
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s/" FDS__RUN_JSON ": player %zu has no \"content\"", u->dir, i);
    }
    for (size_t p = 0; p < n; p++) {
        size_t i = 0;
        while (i < from && memcmp(contents[i], u->problem->identities->contents[p], 32) != 0)
            i++;
        u->players[p] = i < from ? (uint32_t)i : FDS__UNKNOWN;
        u->kept += i < from;
    }
    u->map = (fds__reuse){.players = u->players, .from_players = from};
    return FDS_OK;
}

/* The old inputs in their order, from the same test part. */
static fds_status list_old_inputs(const fds__update *u, uint32_t **order, fds_error *err) {
    fds__fit_settings s = u->settings;
    fds__split_how how = {.seed = u->fit->seed};
    OWNED uint32_t *inputs = NULL;
    s.validation_inputs = u->old_validation;
    TRY(RESERVE(inputs, u->old_inputs, 1, err));
    TRY(RESERVE(*order, u->old_inputs, 1, err));
    TRY(fds__split(u->problem->test, &how, 0, u->old_inputs, inputs, err));
    fds__fit_order(&s, inputs, u->old_inputs, *order);
    return FDS_OK;
}

/* Whether the old table answers for these inputs; its values are what its description says. */
static fds_status check_inputs(fds__update *u, const uint32_t *order, const char *sha256,
                               fds_error *err) {
    const fds__utility_data *data = u->utility->data;
    fds_inputs *x;
    char hex[65];
    TRY(fds_inputs_create(u->problem->test, order, u->old_inputs, data->mean, data->std, &x, err));
    fds_sha256_hex(x->values, x->count * x->size * sizeof *x->values, hex);
    fds_inputs_free(x);
    if (!sha256 || strcmp(hex, sha256) != 0)
        snprintf(u->reason, sizeof u->reason, "the test part has changed since the run was fitted");
    return FDS_OK;
}

static fds_status map_inputs(fds__update *u, const char *sha256, fds_error *err) {
    const size_t count = u->problem->input_count;
    OWNED uint32_t *old = NULL;
    if (u->old_inputs > u->problem->test->count) {
        snprintf(u->reason, sizeof u->reason, "the test part has changed since the run was fitted");
        return FDS_OK;
    }
    TRY(list_old_inputs(u, &old, err));
    TRY(check_inputs(u, old, sha256, err));
    if (u->reason[0])
        return FDS_OK;
    OWNED uint32_t *place = NULL; /* (samples of the test part) in the old order, from 1; 0: none */
    TRY(RESERVE(place, u->problem->test->count, 1, err));
    TRY(RESERVE(u->inputs, count, 1, err));
    for (size_t x = 0; x < u->old_inputs; x++)
        place[old[x]] = (uint32_t)x + 1;
    size_t missing = 0;
    for (size_t x = 0; x < count; x++) {
        const uint32_t at = place[u->order[x]];
        u->inputs[x] = at - (at > 0);
        missing += !at;
    }
    u->map.inputs = u->inputs;
    if (missing)
        snprintf(u->reason, sizeof u->reason,
                 "%zu training inputs are new, for which the sub-models have not answered; kept "
                 "sub-models have 16 bits per weight, and would answer with other last digits",
                 missing);
    return FDS_OK;
}

/* Everything else that answers depend on must be the same. */
static fds_status compare_parameters(fds__update *u, json_t *old, fds_error *err) {
    static const char *const may_differ[] = {"players", "samples", "samples_sha256", "inputs",
                                             "inputs_sha256"};
    json_t *now;
    char text[160];
    TRY(fds__json_parse("parameters", u->utility->text, strlen(u->utility->text), &now, err));
    for (size_t i = 0; i < sizeof may_differ / sizeof *may_differ; i++) {
        json_object_del(old, may_differ[i]);
        json_object_del(now, may_differ[i]);
    }
    if (fds__json_difference(old, now, "run", text, sizeof text))
        snprintf(u->reason, sizeof u->reason, "%s", text);
    json_decref(now);
    return FDS_OK;
}

/* The table must be the one of run.json, which says who its players are. */
static fds_status check_table(const fds__update *u, const json_t *about, fds_error *err) {
    const json_int_t players = json_integer_value(json_object_get(about, "players")),
                     inputs = json_integer_value(json_object_get(about, "inputs")),
                     classes = json_integer_value(json_object_get(about, "classes"));
    if (classes != (json_int_t)json_array_size(
                       json_object_get(json_object_get(u->json, "data"), "classes")) ||
        players != (json_int_t)u->map.from_players || inputs != (json_int_t)u->old_inputs ||
        !json_equal(json_object_get(about, "parameters"), json_object_get(u->json, "utility")))
        return fds__fail(err, FDS_ERR_CORRUPT,
                         "%s/" FDS__RUN_TABLE " is not the table of %s/" FDS__RUN_JSON
                         ": its players, inputs, classes or parameters are others",
                         u->dir, u->dir);
    return FDS_OK;
}

static fds_status find_reusable(fds__update *u, fds_error *err) {
    char path[FDS__PATH_MAX], sha256[65] = "";
    json_t *about;
    TRY(map_players(u, err));
    TRY(fds__path_join(path, sizeof path, u->dir, FDS__RUN_TABLE, err));
    TRY(fds__table_open_bare(path, u->events, &u->from, err));
    TRY(fds__table_describe(path, u->events, &about, err));
    fds_status status = check_table(u, about, err);
    json_t *old = json_object_get(about, "parameters");
    const char *inputs = json_string_value(json_object_get(old, "inputs_sha256"));
    snprintf(sha256, sizeof sha256, "%s", inputs ? inputs : "");
    u->records = (size_t)json_integer_value(json_object_get(about, "records"));
    if (status == FDS_OK)
        status = compare_parameters(u, old, err);
    json_decref(about);
    TRY(status);
    return u->reason[0] ? FDS_OK : map_inputs(u, sha256, err);
}

/* ---- taking it ---- */

static void announce(const fds__update *u) {
    if (u->reason[0])
        fds__log(u->events, FDS_LOG_WARNING,
                 "no sub-model can be reused, %zu are to be trained: %s", u->trained, u->reason);
    else
        fds__log(u->events, FDS_LOG_INFO,
                 "%zu sub-models: %zu of %s are reused, %zu are to be trained",
                 u->reused + u->trained, u->reused, u->dir, u->trained);
}

fds_status fds__update_compare(fds__update *u, fds_error *err) {
    TRY(prepare(u, err));
    return find_reusable(u, err);
}

/* into: the folder of the new run. */
fds_status fds__update_reuse(fds__update *u, const char *into, fds_error *err) {
    char path[FDS__PATH_MAX], old[FDS__PATH_MAX];
    fds_table_cost need;
    uint64_t parameters; /* a checksum of what the old sub-models' answers depend on */
    TRY(fds__mkdirs(into, err));
    TRY(fds__path_join(path, sizeof path, into, FDS__RUN_TABLE, err));
    TRY(fds_table_open(path, u->utility, FDS_STORE_F32, u->events, &u->table, err));
    TRY(fds_table_estimate(u->table, u->plans.all, u->settings.threads, &need, err));
    if (!u->reason[0])
        TRY(fds__table_reuse(u->table, u->plans.all, u->from, &u->map, true, u->events, &u->reused,
                             err));
    u->trained = need.coalitions - u->reused;
    announce(u);
    if (u->reason[0])
        return FDS_OK;
    const fds_plan *kept = u->settings.keeps_models ? u->plans.all : u->plans.probes;
    if (kept) { /* before the table: a record there without its sub-model would be trained again */
        TRY(fds__path_join(path, sizeof path, into, FDS__RUN_BANK, err));
        TRY(fds__path_join(old, sizeof old, u->dir, FDS__RUN_BANK, err));
        if (u->fit->until_error > 0)
            TRY(fds__bank_extend(path, u->utility, kept, u->events, err));
        TRY(fds__json_checksum(json_object_get(u->json, "utility"), &parameters, err));
        TRY(fds__bank_reuse(path, old, parameters, u->utility, kept, &u->map, u->events, &u->models,
                            &u->models_kept, err));
    }
    return fds__table_reuse(u->table, u->plans.all, u->from, &u->map, false, u->events, &u->reused,
                            err);
}

/* Gives the tables free. */
static void release(fds__update *u) {
    fds_table_free(u->from);
    fds_table_free(u->table);
    u->from = u->table = NULL;
}

/* The report of the fit, with what was reused. */
fds_status fds__update_report(const fds__update *u, json_t *more, char **report, fds_error *err) {
    json_t *json = NULL;
    fds_status status = fds__json_parse("report", *report, strlen(*report), &json, err);
    fds_text_free(*report);
    *report = NULL;
    /* with `until_error` more than were announced */
    json_int_t trained =
        json_integer_value(json_object_get(json, "sub_models")) - (json_int_t)u->reused;
    bool is_whole =
        status == FDS_OK && fds__json_put(json, "reused", json_integer((json_int_t)u->reused)) &&
        fds__json_put(json, "trained", json_integer(trained)) &&
        fds__json_put(json, "reason", fds__json_string(u->reason[0] ? u->reason : NULL)) &&
        (!more || json_object_update(json, more) == 0);
    if (is_whole)
        *report = fds__json_text(json, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    json_decref(json);
    json_decref(more);
    TRY(status);
    return *report ? FDS_OK : fds__fail_json(err);
}

/* The real path of what is there of a path; the caller frees it. */
static char *real_place(const char *path) {
    char place[FDS__PATH_MAX];
    snprintf(place, sizeof place, "%s", path);
    for (;;) {
        char *real = realpath(place, NULL), *slash = strrchr(place, '/');
        if (real || strcmp(place, ".") == 0 || strcmp(place, "/") == 0)
            return real;
        if (slash)
            slash[slash == place] = 0;
        else
            strcpy(place, ".");
    }
}

/* The new run is neither the old one, by whatever name, nor within it. */
static fds_status check_place(const char *dir, const char *out, fds_error *err) {
    char *old = realpath(dir, NULL), *new = real_place(out);
    const size_t size = old ? strlen(old) : 0;
    bool is_within = old && new &&strncmp(old, new, size) == 0 && (!new[size] || new[size] == '/');
    bool is_same = is_within && !new[size] && fds__path_exists(out);
    free(old);
    free(new);
    if (!is_within)
        return FDS_OK;
    return is_same ? fds__fail(err, FDS_ERR_USAGE,
                               "%s cannot be updated in its own place: name another folder", dir)
                   : fds__fail(err, FDS_ERR_USAGE, "%s is within %s: name a folder outside it", out,
                               dir);
}

static fds_status check(const fds_params *params, const char *dir, const char *out,
                        fds_error *err) {
    char path[FDS__PATH_MAX];
    if (!params->add && !params->remove && !params->inputs && !params->coalitions &&
        !(params->until_error > 0))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "nothing changes: give `add`, `remove`, `inputs`, `coalitions` or `until_error`");
    if (fds_ranks_count() > 1)
        TRY(fds__until_refuse(params, err));
    TRY(check_place(dir, out, err));
    TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_JSON, err));
    fds__run_record record; /* complete and whole */
    TRY(fds__run_record_read(dir, &record, err));
    fds__run_record_free(&record);
    return FDS_OK;
}

/* The folder may have the beginning of the same run, and nothing else: nothing is written before that
 * is known. */
static fds_status check_output(const fds__update *u, const char *out, fds_error *err) {
    json_t *description;
    bool is_there, is_done;
    TRY(fds__run_record_describe(&u->settings, u->problem, u->fit, u->groups, u->utility,
                                 &description, err));
    fds_status status = fds__run_record_compare(out, description, NULL, &is_there, &is_done, err);
    json_decref(description);
    return status;
}

static fds_status run(fds__update *u, const char *out, char **report, fds_error *err) {
    char *text = NULL;
    TRY(check(u->params, u->dir, out, err));
    TRY(fds__update_open(u, err));
    if (u->fit->until_error > 0)
        TRY(fds__fit_round(out, u->fit, &u->fit->round, err));
    TRY(fds__update_compare(u, err));
    TRY(check_output(u, out, err));
    TRY(fds__update_reuse(u, out, err));
    release(u);
    TRY(fds_fit(out, u->problem, u->fit, u->events, report ? &text : NULL, err));
    if (!report)
        return FDS_OK;
    *report = text;
    return fds__update_report(u, NULL, report, err);
}

fds_status fds_update(const char *dir, const fds_params *params, const char *out,
                      const fds_events *events, char **report, fds_error *err) {
    fds__update u = {.dir = dir, .params = params, .events = events};
    fds_status status = run(&u, out, report, err);
    fds__update_free(&u);
    return status;
}

fds_status fds_update_serve(const char *dir, const fds_params *params, const fds_events *events,
                            fds_error *err) {
    fds__update u = {.dir = dir, .params = params, .events = events};
    fds_status status = fds__update_open(&u, err);
    if (status == FDS_OK)
        status = fds_fit_serve(u.problem, u.fit, events, err);
    fds__update_free(&u);
    return status;
}
