/* SPDX-License-Identifier: Apache-2.0
 *
 * The players of a run and new ones in one game, from the data of both.
 *
 * The run's data is read again, and its players' samples must be those of the fit, by their checksum.
 * The samples of new players come after all rows of the run's data, so that those of the run keep their
 * numbers, which decide their places in mini-batches (of a run for changing data their identities do).
 * Samples are normalised as those of the fit were, whoever the new players are. So a coalition of known
 * players has, to the bit, the sub-model that it has in the run. */
#include "explain/new_game.h"
#include "explain/update.h"

#include <math.h>
#include <string.h>

void fds__new_game_free(fds__new_game *g) {
    fds_players_free(g->players);
    fds__identities_free(g->identities);
    fds_dataset_free(g->all);
    fds__free(g->mean);
    fds__free(g->std);
    *g = (fds__new_game){0};
}

/* While it is made. */
typedef struct {
    const fds_run *run;
    const fds_params *params;
    const fds_events *events;
    fds_dataset *parts[2];   /* of the run: training, test or NULL */
    const fds_dataset *more; /* of the new players */
    fds__update update;      /* of a run for changing data; else empty */
    fds_players *known;
    fds__identities *identities; /* of those */
    char **names;                /* (known + new): whose texts belong to others */
    size_t *first;               /* (known + new + 1) */
    uint32_t *samples;           /* (first[known + new]) */
    size_t count;                /* known + new */
    fds__new_game *game;
} opening;

static void opening_free(opening *o) {
    fds__identities_free(o->identities);
    fds_players_free(o->known);
    fds_dataset_free(o->parts[0]);
    fds_dataset_free(o->parts[1]);
    o->update.json = NULL; /* the run's */
    fds__update_free(&o->update);
    fds__free(o->names);
    fds__free(o->first);
    fds__free(o->samples);
}

/* ---- the run's data ---- */

/* Of a run for changing data its players' samples are found by who they are. */
static fds_status open_changing(opening *o, fds_error *err) {
    fds__update *u = &o->update;
    u->dir = o->run->dir;
    u->params = o->params;
    u->events = o->events;
    u->json = o->run->record.json;
    TRY(fds__changing_params(u->dir, u->json, &u->fit, err));
    if (o->params->data)
        TRY(fds_params_set(u->fit, "data", o->params->data, err));
    TRY(fds__changed_data(u, err));
    o->parts[0] = u->train;
    o->parts[1] = u->test;
    u->train = u->test = NULL;
    return FDS_OK;
}

static fds_status open_data(opening *o, fds_error *err) {
    const json_t *utility = json_object_get(o->run->record.json, "utility");
    if (json_integer_value(json_object_get(utility, "players")) !=
        (json_int_t)o->run->record.info.players)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`new_player`: the players of %s are clusters that were joined after the "
                         "fit; fit it with this `cluster`",
                         o->run->dir);
    return o->run->record.keys
               ? open_changing(o, err)
               : fds__run_open_data(o->run, o->params, true, o->events, o->parts, err);
}

/* ---- players ---- */

static bool is_by_provider(const opening *o) {
    const fds_params *fit = o->update.fit; /* NULL: data does not change */
    return fit && fit->players && !strcmp(fit->players, "providers") && fit->group_value != 1;
}

/* What became of a provider that has other samples than in the fit; or what is said otherwise. */
static const char *find_change(const opening *o, const char *otherwise, char *out, size_t size) {
    const fds_dataset *ds = o->parts[0];
    json_t *player;
    size_t p;
    json_array_foreach(json_object_get(o->run->record.json, "players"), p, player) {
        const char *name = json_string_value(json_object_get(player, "name")),
                   *provider = json_string_value(json_object_get(player, "provider"));
        const size_t then = json_array_size(json_object_get(player, "samples"));
        size_t now = 0;
        uint32_t id = 0;
        if (!ds->provider_ids || !name || !provider || strcmp(name, provider) != 0)
            continue;
        while (id < ds->providers && strcmp(ds->provider_names[id], name) != 0)
            id++;
        for (size_t i = 0; id < ds->providers && i < ds->count; i++)
            now += ds->provider_ids[i] == id;
        if (now < then || (now > then && o->parts[1])) { /* else tests may be set aside */
            snprintf(out, size, "provider \"%.60s\" has %zu samples there, and had %zu", name, now,
                     then);
            return out;
        }
    }
    return otherwise;
}

static fds_status fail_changed(const opening *o, const char *otherwise, fds_error *err) {
    char change[160];
    return fds__fail(err, FDS_ERR_USAGE,
                     "`new_player`: the samples of the players of %s are no longer those in %s: "
                     "%s; bring them back, or fit again",
                     o->run->dir, o->parts[0]->source,
                     find_change(o, otherwise, change, sizeof change));
}

/* Player p of the run owns these rows. */
static fds_status list_known(opening *o, size_t p, bool *is_owned, fds_error *err) {
    const json_t *player = json_array_get(json_object_get(o->run->record.json, "players"), p),
                 *list = json_object_get(player, "samples");
    size_t at = o->first[p], count = json_array_size(list);
    o->names[p] = (char *)(uintptr_t)json_string_value(json_object_get(player, "name"));
    for (size_t i = 0; i < count; i++) {
        json_int_t row = json_integer_value(json_array_get(list, i));
        if (row < 0 || (size_t)row >= o->parts[0]->count || is_owned[row])
            return fail_changed(o, "samples are missing", err);
        is_owned[row] = true;
        o->samples[at + i] = (uint32_t)row;
    }
    fds__samples_sort(o->samples + at, count);
    o->first[p + 1] = at + count;
    return FDS_OK;
}

/* Rows of providers may have moved within a file. */
static fds_status find_rows(opening *o, size_t known, fds_error *err) {
    fds_players *found = NULL;
    TRY(fds_players_providers(o->parts[0], NULL, o->parts[0]->count, &found, err));
    for (size_t p = 0; p < known && fds_players_count(found) == known; p++) {
        const uint32_t *own;
        size_t count = fds_players_samples(found, p, &own);
        if (count == o->first[p + 1] - o->first[p])
            memcpy(o->samples + o->first[p], own, count * sizeof *own);
    }
    fds_players_free(found);
    return FDS_OK;
}

/* Known players, then new ones; of the new ones all samples of more are one if it names no providers. */
static fds_status list_players(opening *o, const fds_players *new_ones, fds_error *err) {
    const size_t known = o->run->record.info.players, rows = o->parts[0]->count;
    OWNED bool *is_owned = NULL;
    o->count = known + (new_ones ? fds_players_count(new_ones) : 1);
    TRY(RESERVE(is_owned, rows, 1, err));
    TRY(RESERVE(o->names, o->count, 1, err));
    TRY(RESERVE(o->first, o->count + 1, 1, err));
    TRY(RESERVE(o->samples, rows + o->more->count, 1, err));
    for (size_t p = 0; p < known; p++)
        TRY(list_known(o, p, is_owned, err));
    if (is_by_provider(o))
        TRY(find_rows(o, known, err));
    for (size_t p = known; p < o->count; p++) {
        const uint32_t *own = NULL;
        size_t at = o->first[p], count = o->more->count;
        if (new_ones)
            count = fds_players_samples(new_ones, p - known, &own);
        o->names[p] =
            (char *)(uintptr_t)(new_ones ? fds_players_name(new_ones, p - known) : o->more->source);
        for (size_t i = 0; i < count; i++)
            o->samples[at + i] = (uint32_t)(rows + (own ? own[i] : i));
        o->first[p + 1] = at + count;
    }
    return fds__players_create(known, (const char *const *)o->names, o->first, o->samples,
                               &o->known, err);
}

/* Of a run for changing data. */
static fds_status identify(const opening *o, const fds_dataset *ds, const fds_players *players,
                           fds__identities **out, fds_error *err) {
    return o->run->record.keys
               ? fds__identities_create(ds, players, is_by_provider(o), o->events, out, err)
               : FDS_OK;
}

/* ---- the utility function ---- */

static const char *text_at(const json_t *from, const char *key) {
    const char *text = json_string_value(json_object_get(from, key));
    return text ? text : "";
}

static float real_at(const json_t *from, const char *key) {
    const json_t *value = json_object_get(from, key);
    return json_is_string(value) ? INFINITY : (float)json_number_value(value);
}

/* As run.json describes that of the run, in retrain.c's words. Its learning rate has beta in it. */
static void read_utility(const fds_run *run, fds__utility_params *out) {
    const json_t *about = json_object_get(run->record.json, "utility");
    const char *normalisation = text_at(about, "normalisation");
    *out = fds__utility_params_default();
    out->kind = text_at(about, "kind");
    out->beta = 1;
    out->normalise = !strcmp(normalisation, "constants")         ? FDS__NORMALISE_FIXED
                     : strstr(normalisation, "of the test part") ? FDS__NORMALISE_PUBLIC
                                                                 : FDS__NORMALISE_PLAYERS;
    out->train.seed = run->record.settings.utility.train.seed;
    if (run->program)
        return;
    fds_train_params *t = &out->train;
    out->network = text_at(about, "network");
    t->lr = real_at(about, "lr");
    t->weight_decay = real_at(about, "weight_decay");
    t->batch = (uint32_t)json_integer_value(json_object_get(about, "batch"));
    t->optimizer =
        strcmp(text_at(about, "optimizer"), "sgd") ? FDS_OPTIMIZER_ADAM : FDS_OPTIMIZER_SGD;
    if (t->optimizer == FDS_OPTIMIZER_SGD)
        t->momentum = real_at(about, "momentum");
    else {
        t->beta1 = real_at(about, "beta1");
        t->beta2 = real_at(about, "beta2");
        t->epsilon = real_at(about, "epsilon");
    }
    if (!json_object_get(about, "loss_bound"))
        return;
    t->loss_bound = real_at(about, "loss_bound");
    t->min_delta = real_at(about, "min_delta");
    t->patience = (uint32_t)json_integer_value(json_object_get(about, "patience"));
}

/* It stands for the run's utility function, of which only the data is wanted. */
static fds_status never(void *context, unsigned worker, const uint32_t *samples, size_t count,
                        float *probs, fds_error *err) {
    (void)context, (void)worker, (void)samples, (void)count, (void)probs;
    return fds__fail(err, FDS_ERR_UNSUPPORTED, "no answers");
}

static fds_status check_samples(const opening *o, const char *text, fds_error *err) {
    static const char *const same[] = {"samples_sha256", "scale_sha256"};
    const json_t *then = json_object_get(o->run->record.json, "utility");
    json_t *now;
    bool is_same = true;
    TRY(fds__json_parse("the players' samples", text, strlen(text), &now, err));
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        is_same &= strcmp(text_at(then, same[i]), text_at(now, same[i])) == 0;
    json_decref(now);
    return is_same ? FDS_OK : fail_changed(o, "their checksum differs", err);
}

static fds_status take_scale(const opening *o, const fds_utility *known, fds_error *err) {
    const fds__utility_data *data = known->data;
    const size_t channels = data->samples->shape.channels;
    fds__new_game *g = o->game;
    TRY(check_samples(o, known->text, err));
    TRY(RESERVE(g->mean, channels, 1, err));
    TRY(RESERVE(g->std, channels, 1, err));
    memcpy(g->mean, data->mean, channels * sizeof *g->mean);
    memcpy(g->std, data->std, channels * sizeof *g->std);
    g->scale = (fds__scale){g->mean, g->std, data->target_mean, data->target_std};
    return FDS_OK;
}

/* What the samples of the run are normalised by; they must be those of the fit. */
static fds_status find_scale(opening *o, fds_error *err) {
    const uint32_t any = 0;
    const fds_dataset *test = o->parts[1] ? o->parts[1] : o->parts[0];
    fds_utility *known = NULL;
    TRY(identify(o, o->parts[0], o->known, &o->identities, err));
    fds__utility_params params = o->game->utility;
    params.callback = never;
    params.callback_name = "the players' samples";
    params.identities = o->identities;
    TRY(fds__utility_create(&params, o->parts[0], o->known, test, &any, 1, 1, &known, err));
    fds_status status = take_scale(o, known, err);
    fds_utility_free(known);
    return status;
}

/* ---- both together ---- */

/* Names of samples do not matter, and of providers only where samples are known by them. */
static fds_status join(opening *o, fds_error *err) {
    const bool has_owners = o->run->record.keys && o->parts[0]->provider_ids;
    fds_dataset views[2] = {*o->parts[0], *o->more};
    OWNED uint32_t *zeros = NULL;
    OWNED bool *all = NULL;
    TRY(RESERVE(zeros, o->more->count, 1, err));
    TRY(RESERVE(all, MAX(views[0].count, views[1].count), 1, err));
    memset(all, true, MAX(views[0].count, views[1].count));
    for (int i = 0; i < 2; i++) {
        views[i].sample_names = NULL;
        if (has_owners && views[i].provider_ids)
            continue;
        views[i].provider_ids = has_owners ? zeros : NULL;
        views[i].provider_names = &views[i].source;
        views[i].providers = has_owners;
    }
    TRY(fds__dataset_select((const fds_dataset *const[]){&views[0], &views[1]},
                            (const bool *const[]){all, all}, 2, &o->game->all, err));
    TRY(fds__players_create(o->count, (const char *const *)o->names, o->first, o->samples,
                            &o->game->players, err));
    return identify(o, o->game->all, o->game->players, &o->game->identities, err);
}

static fds_status open_all(opening *o, const fds_players *new_ones, fds_error *err) {
    fds__new_game *g = o->game;
    TRY(open_data(o, err));
    TRY(list_players(o, new_ones, err));
    read_utility(o->run, &g->utility);
    TRY(find_scale(o, err));
    TRY(join(o, err));
    g->known = o->run->record.info.players;
    g->utility.identities = g->identities;
    g->utility.scale = &g->scale;
    return FDS_OK;
}

fds_status fds__new_game_open(const fds_run *run, const fds_params *params, const fds_dataset *more,
                              const fds_players *new_ones, const fds_events *events,
                              fds__new_game *out, fds_error *err) {
    opening o = {.run = run, .params = params, .events = events, .more = more, .game = out};
    *out = (fds__new_game){0};
    fds_status status = open_all(&o, new_ones, err);
    opening_free(&o);
    return status;
}

/* Whatever differs from the run's utility function but players and inputs: a mistake of read_utility, or
 * a run of another version. */
static fds_status compare(const fds_run *run, const fds_utility *now, fds_error *err) {
    static const char *const may_differ[] = {"players", "samples", "samples_sha256", "inputs",
                                             "inputs_sha256"};
    json_t *then = json_deep_copy(json_object_get(run->record.json, "utility")), *about = NULL;
    char text[160];
    fds_status status =
        then ? fds__json_parse("parameters", now->text, strlen(now->text), &about, err)
             : fds__fail_json(err);
    for (size_t i = 0; i < sizeof may_differ / sizeof *may_differ && status == FDS_OK; i++) {
        json_object_del(then, may_differ[i]);
        json_object_del(about, may_differ[i]);
    }
    if (status == FDS_OK && fds__json_difference(then, about, "run", text, sizeof text))
        status = fds__fail(err, FDS_ERR_CONFLICT,
                           "`new_player`: %s: sub-models like those of the fit cannot be trained: "
                           "%s",
                           run->dir, text);
    json_decref(then);
    json_decref(about);
    return status;
}

fds_status fds__new_game_utility(const fds_run *run, const fds__new_game *g, const fds_dataset *ds,
                                 const uint32_t *index, size_t count, const fds_events *events,
                                 unsigned workers, fds_utility **out, fds_error *err) {
    fds__utility_params params = g->utility;
    params.scale = &g->scale;
    params.events = events;
    params.allow_noise = true; /* the fit has checked a program */
    if (run->program)
        TRY(fds__service_program_kind(run->program, &params.kind, err));
    TRY(fds__utility_create(&params, g->all, g->players, ds, index, count, workers, out, err));
    fds_status status = run->program ? FDS_OK : compare(run, *out, err);
    if (status != FDS_OK) {
        fds_utility_free(*out);
        *out = NULL;
    }
    return status;
}
