/* SPDX-License-Identifier: Apache-2.0
 *
 * New players of a run: reading their data, and predicting their factors (newcomers.c) or training
 * sub-models with them (new_models.c). */
#include "explain/new_game.h"

#include <string.h>

void fds__new_players_free(fds__new_players *p) {
    for (size_t i = 0; p->names && i < p->count; i++)
        fds__free(p->names[i]);
    fds__free(p->names);
    fds__free(p->sizes);
    fds__free(p->labels);
    fds__free(p->targets);
    fds__free(p->h);
    fds__new_models_free(p->models);
    *p = (fds__new_players){0};
}

/* The fit has learnt how factors follow from samples. */
static bool can_predict(const fds_run *run) {
    const json_t *about = json_object_get(run->record.json, "explainer");
    return run->explainer && fds__explainer_rank(run->explainer) &&
           json_object_get(about, "rank_from");
}

/* The map from samples to factors, once. */
static fds_status open_map(fds_run *run, fds_error *err) {
    const fds__run_info *info = &run->record.info;
    char path[FDS__PATH_MAX];
    if (run->newcomers)
        return FDS_OK;
    if (!can_predict(run))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`new_player`: %s cannot predict the values of new players: fit it with "
                         "`rank_from` samples, or train `new_models`",
                         run->dir);
    TRY(fds__path_join(path, sizeof path, run->dir, FDS__RUN_NEWCOMERS, err));
    fds__newcomers *map = NULL;
    fds_status status =
        fds__newcomers_load(path, info->players, fds__explainer_rank(run->explainer), info->classes,
                            fds__net_features(run->net), &map, err);
    if (status == FDS_OK)
        run->newcomers = map;
    else
        fds__newcomers_free(map);
    return status;
}

/* Samples must be of the run's kind. */
static fds_status check_data(const fds_run *run, const fds_dataset *ds, fds_error *err) {
    fds_shape ours = run->record.info.shape, theirs = ds->shape;
    const bool has_columns = json_is_object(fds__run_preparation(run));
    if (has_columns != (ds->preparation != NULL))
        return fds__fail(err, FDS_ERR_USAGE, "`new_player`: %s is %s, but the run was fitted on %s",
                         ds->source, ds->preparation ? "CSV data" : "no CSV data",
                         has_columns ? "such data" : "other data");
    if (!fds__shape_equal(ours, theirs))
        return fds__fail(err, FDS_ERR_SHAPE,
                         "`new_player`: %s has samples of %ux%ux%u (channels, rows, columns), but "
                         "the run explains %ux%ux%u",
                         ds->source, theirs.channels, theirs.height, theirs.width, ours.channels,
                         ours.height, ours.width);
    return run->record.info.is_image ? fds__run_check_range(run, ds, err) : FDS_OK;
}

static fds_status check_task(const fds_run *run, const fds_dataset *ds, fds_error *err) {
    bool is_regression = run->record.info.is_regression;
    return is_regression == (ds->targets != NULL)
               ? FDS_OK
               : fds__fail(err, FDS_ERR_USAGE, "`new_player`: %s has %s, but the run has %s",
                           ds->source, ds->targets ? "targets" : "labels",
                           is_regression ? "targets" : "labels");
}

/* The labels of samples as the run numbers them, (samples of ds). */
static fds_status map_labels(const fds_run *run, const fds_dataset *ds, uint32_t *labels,
                             fds_error *err) {
    for (size_t i = 0; i < ds->count && !ds->targets; i++) {
        const char *name = fds_dataset_class_name(ds, ds->labels[i]);
        labels[i] = fds__run_find_class(run, name);
        if (labels[i] == run->record.info.classes)
            return fds__fail(err, FDS_ERR_USAGE,
                             "`new_player`: %s: sample %zu has the class \"%s\", which the run "
                             "does not have",
                             ds->source, i, name);
    }
    return FDS_OK;
}

/* Player number i owns these samples; labels: of all samples. */
static fds_status add_player(fds_run *run, const fds_dataset *ds, const uint32_t *index,
                             size_t count, const uint32_t *labels, size_t i, fds__new_players *out,
                             fds_error *err) {
    OWNED uint32_t *own = NULL;
    OWNED size_t *counts = NULL;
    double std;
    TRY(RESERVE(own, count, 1, err));
    TRY(RESERVE(counts, run->record.info.classes, 1, err));
    for (size_t s = 0; s < count; s++) {
        own[s] = labels[index[s]];
        counts[own[s]]++;
        if (counts[own[s]] > counts[out->labels[i]])
            out->labels[i] = own[s];
    }
    out->sizes[i] = count;
    if (ds->targets)
        fds__dataset_target_stats(ds, index, count, &out->targets[i], &std);
    if (!out->h)
        return FDS_OK;
    return fds__newcomers_predict(run->newcomers, run->service, run->net, run->lane, ds, index,
                                  count, own, out->h + i * fds__newcomers_rank(run->newcomers),
                                  err);
}

static fds_status add_players(fds_run *run, const fds_dataset *ds, const fds_players *players,
                              const uint32_t *labels, const fds_events *events,
                              fds__new_players *out, fds_error *err) {
    double start_s = fds__now_s();
    OWNED uint32_t *all = NULL;
    TRY(RESERVE(all, ds->count, 1, err));
    for (size_t i = 0; i < ds->count; i++)
        all[i] = (uint32_t)i;
    for (size_t i = 0; i < out->count; i++) {
        const uint32_t *index = all;
        size_t owned = players ? fds_players_samples(players, i, &index) : ds->count;
        out->names[i] = fds__strdup(players ? fds_players_name(players, i) : ds->source);
        if (!out->names[i])
            return fds__fail_nomem(err, 1);
        TRY(add_player(run, ds, index, owned, labels, i, out, err));
        TRY(fds__report(events, "new players", "players", i + 1, out->count, start_s, err));
    }
    return FDS_OK;
}

/* With predicted factors, or without. */
static fds_status fill(fds_run *run, const fds_dataset *ds, const fds_players *players,
                       const fds_events *events, bool is_trained, fds__new_players *out,
                       fds_error *err) {
    OWNED uint32_t *labels = NULL;
    size_t count = players ? fds_players_count(players) : 1;
    TRY(RESERVE(labels, ds->count, 1, err));
    TRY(RESERVE(out->names, count, 1, err));
    out->count = count;
    TRY(RESERVE(out->sizes, count, 1, err));
    TRY(RESERVE(out->labels, count, 1, err));
    if (ds->targets)
        TRY(RESERVE(out->targets, count, 1, err));
    if (!is_trained)
        TRY(RESERVE(out->h, count, fds__newcomers_rank(run->newcomers), err));
    TRY(map_labels(run, ds, labels, err));
    return add_players(run, ds, players, labels, events, out, err);
}

/* Labelled data, read as that of the run; columns become features by the run's levels and means. */
static fds_status read_data(const fds_run *run, const char *path, const fds_events *events,
                            fds_dataset *parts[2], fds_error *err) {
    const json_t *json = fds__run_preparation(run);
    fds__preparation *prepared = NULL;
    if (json_is_object(json))
        TRY(fds__preparation_parse(json, run->dir, &prepared, err));
    fds_params *how = fds_params_create("show");
    fds_status status = how ? FDS_OK : fds__fail_nomem(err, sizeof(fds_params));
    for (const char *const *name = fds__run_reading; *name && status == FDS_OK; name++) {
        const char *value = fds__run_origin(run, *name);
        bool is_file =
            !strcmp(*name, "labels") || !strcmp(*name, "owners") || !strcmp(*name, "test_file");
        if (value && !is_file) /* those are of the run's data */
            status = fds_params_set(how, *name, value, err);
    }
    if (status == FDS_OK)
        status = fds__data_open_prepared(path, how, prepared, events, &parts[0], &parts[1], err);
    fds_params_free(how);
    fds__preparation_free(prepared);
    return status;
}

/* As many sub-models for each new player; 0: their values are predicted. */
static size_t count_models(const fds_run *run, const fds_params *params) {
    size_t given = params ? (size_t)params->new_models : 0;
    return given || !params || can_predict(run) ? given : FDS__NEW_MODELS;
}

/* params NULL: predict. */
static fds_status open_new(fds_run *run, const char *path, const fds_params *params,
                           const fds_events *events, fds_dataset *parts[2], fds_players **players,
                           fds__new_players *out, fds_error *err) {
    const size_t strata = count_models(run, params);
    if (!strata)
        TRY(open_map(run, err));
    TRY(read_data(run, path, events, parts, err));
    TRY(check_task(run, parts[0], err));
    TRY(check_data(run, parts[0], err));
    if (parts[0]->provider_ids)
        TRY(fds_players_providers(parts[0], NULL, parts[0]->count, players, err));
    TRY(fill(run, parts[0], *players, events, strata > 0, out, err));
    out->strata = strata;
    return strata ? fds__new_models_train(run, params, strata, run->read_seed, parts[0], *players,
                                          events, &out->models, err)
                  : FDS_OK;
}

static fds_status open_players(fds_run *run, const char *path, const fds_params *params,
                               const fds_events *events, fds__new_players *out, fds_error *err) {
    fds_dataset *parts[2] = {NULL, NULL};
    fds_players *players = NULL;
    *out = (fds__new_players){0};
    fds_status status = open_new(run, path, params, events, parts, &players, out, err);
    fds_players_free(players);
    fds_dataset_free(parts[0]);
    fds_dataset_free(parts[1]);
    return status;
}

fds_status fds__run_open_new(fds_run *run, const char *path, const fds_events *events,
                             fds__new_players *out, fds_error *err) {
    return open_players(run, path, NULL, events, out, err);
}

fds_status run_check_new(const fds_run *run, const fds_params *params, fds_error *err) {
    if (params->check || params->answer_by == 1)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`new_player`: the sub-models of the run were trained without the new "
            "players, so that `by` bank and `check` do not apply; `new_models` trains some "
            "with them");
    return strlen(params->new_player) < sizeof run->read_path
               ? FDS_OK
               : fds__fail(err, FDS_ERR_USAGE, "`new_player`: the path is too long");
}

fds_status run_new_players(fds_run *run, const fds_params *params, const fds_events *events,
                           const fds__new_players **out, fds_error *err) {
    const char *path = params->new_player;
    const uint64_t seed =
        fds__is_given(params, seed) ? params->seed : run->record.settings.utility.train.seed;
    uint64_t stamp;
    *out = &run->read;
    TRY(fds__path_stamp(path, &stamp, err)); /* before: a change while it is read is seen later */
    if (run->read.count && !strcmp(run->read_path, path) && run->read_stamp == stamp &&
        run->read.strata == count_models(run, params) && run->read_seed == seed)
        return FDS_OK;
    fds__new_players_free(&run->read);
    run->read_seed = seed;
    fds_status status = open_players(run, path, params, events, &run->read, err);
    if (status != FDS_OK) {
        fds__new_players_free(&run->read);
        return status;
    }
    strcpy(run->read_path, path);
    run->read_stamp = stamp;
    return FDS_OK;
}
