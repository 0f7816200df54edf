/* SPDX-License-Identifier: Apache-2.0
 *
 * What run.json says of a run for changing data, besides what other runs have:
 *
 *   players[i].key, .content   who a player is, and what it has (data/identity.c), hexadecimal
 *   origin.parameters          the parameters of the fit that were given, as texts
 *   origin.added               where samples are that were added to those of origin.path
 *   origin.sources             if there are such, where players are providers: for each player, the
 *                              numbers of those that it has samples of, 0 for origin.path
 *   coalitions.sampler         "nested" */
#include "explain/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

static bool describe_players(const fds__identities *who, json_t *players) {
    bool is_whole = true;
    for (size_t p = 0; is_whole && p < json_array_size(players); p++) {
        json_t *player = json_array_get(players, p);
        char key[17], content[65];
        snprintf(key, sizeof key, "%016" PRIx64, who->players[p]);
        fds__hex_write(who->contents[p], content);
        is_whole = fds__json_put(player, "key", json_string(key)) &&
                   fds__json_put(player, "content", json_string(content));
    }
    return is_whole;
}

/* Without those that say how data is read, which the origin has, and those that change no bits. */
static json_t *describe_parameters(const fds_params *params) {
    json_t *given = fds__params_given(params);
    char *weights = params->weights ? realpath(params->weights, NULL) : NULL;
    if (weights && json_object_get(given, "weights"))
        json_object_set_new(given, "weights", fds__json_string(weights));
    free(weights);
    for (const char *const *name = fds__run_reading; given && *name; name++)
        json_object_del(given, *name);
    json_object_del(given, "data");
    json_object_del(given, "threads");
    return given;
}

static json_t *describe_added(const fds_dataset *train) {
    json_t *list = json_array();
    bool is_whole = list;
    for (size_t i = 0; is_whole && i < train->added_count; i++) {
        char *path = realpath(train->added[i], NULL);
        is_whole = fds__json_append(list, fds__json_string(path ? path : train->added[i]));
        free(path);
    }
    return fds__json_keep_if(list, is_whole);
}

/* samples[count] ascend, and those of each source follow each other. */
static json_t *describe_sources_of(const fds_dataset *train, const uint32_t *samples,
                                   size_t count) {
    json_t *list = json_array();
    bool is_whole = list;
    for (size_t i = 0, next = 0, row = 0; is_whole && i < count; i++, row = next) {
        while (next < train->added_count && train->added_first[next] <= samples[i])
            next++;
        if (!i || next != row)
            is_whole = fds__json_append(list, json_integer((json_int_t)next));
    }
    return fds__json_keep_if(list, is_whole);
}

static json_t *describe_sources(const fds_problem *problem) {
    json_t *list = json_array();
    bool is_whole = list;
    for (size_t p = 0; is_whole && p < fds_players_count(problem->players); p++) {
        const uint32_t *samples;
        size_t count = fds_players_samples(problem->players, p, &samples);
        is_whole = fds__json_append(list, describe_sources_of(problem->train, samples, count));
    }
    return fds__json_keep_if(list, is_whole);
}

bool fds__changing_describe(const fds_problem *problem, const fds_params *params,
                            json_t *description) {
    if (!problem->identities)
        return true;
    json_t *origin = json_object_get(description, "origin");
    return describe_players(problem->identities, json_object_get(description, "players")) &&
           fds__json_put(origin, "parameters", describe_parameters(params)) &&
           fds__json_put(origin, "added", describe_added(problem->train)) &&
           (!problem->by_provider || !problem->train->added_count ||
            fds__json_put(origin, "sources", describe_sources(problem)));
}

/* ---- reading ---- */

static const char *text_at(const json_t *from, const char *key) {
    return json_string_value(json_object_get(from, key));
}

static int by_number(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Players of one key are in the same coalitions, so that there may not be enough different ones. */
static fds_status check_keys(const char *path, const uint64_t *keys, size_t count, fds_error *err) {
    OWNED uint64_t *sorted = NULL;
    TRY(RESERVE(sorted, count, 1, err));
    memcpy(sorted, keys, count * sizeof *keys);
    qsort(sorted, count, sizeof *sorted, by_number);
    for (size_t i = 1; i < count; i++)
        if (sorted[i] == sorted[i - 1])
            return fds__fail(err, FDS_ERR_FORMAT, "%s: two players have the \"key\" %016" PRIx64,
                             path, sorted[i]);
    return FDS_OK;
}

fds_status fds__changing_keys(const char *path, const json_t *json, uint64_t **keys,
                              fds_error *err) {
    const json_t *players = json_object_get(json, "players");
    const char *sampler = text_at(json_object_get(json, "coalitions"), "sampler");
    if (!sampler || strcmp(sampler, FDS__NESTED) != 0)
        return FDS_OK;
    TRY(RESERVE(*keys, json_array_size(players), 1, err));
    for (size_t p = 0; p < json_array_size(players); p++) {
        const char *key = text_at(json_array_get(players, p), "key");
        if (!key || strlen(key) != 16 || strspn(key, "0123456789abcdef") != 16)
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: player %zu: \"key\" must be 16 hexadecimal digits", path, p);
        (*keys)[p] = strtoull(key, NULL, 16);
    }
    return check_keys(path, *keys, json_array_size(players), err);
}

/* ---- the fit again ---- */

static fds_status set_all(fds_params *params, const json_t *texts, fds_error *err) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)texts, name, value)
        TRY(fds_params_set(params, name, json_string_value(value), err));
    return FDS_OK;
}

static void fix_coalitions(fds_params *params, const json_t *coalitions) {
    params->until_error = 0;
    params->coalitions = (uint64_t)json_integer_value(json_object_get(coalitions, "count"));
    params->given[FDS__PLACE_until_error] = false;
    params->given[FDS__PLACE_coalitions] = true;
}

fds_status fds__changing_params(const char *dir, const json_t *json, fds_params **out,
                                fds_error *err) {
    const json_t *origin = json_object_get(json, "origin");
    if (!json_is_object(json_object_get(origin, "parameters")))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "%s was not fitted with `changing` yes: its sub-models are normalised by the samples "
            "of "
            "all players, and their mini-batches follow the numbers of rows, so that each depends "
            "on "
            "everybody and all would have to be trained again; fit it anew with `changing` yes",
            dir);
    fds_params *params = fds_params_create("fit");
    if (!params)
        return fds__fail_nomem(err, sizeof(fds_params));
    fds_status status = set_all(params, json_object_get(origin, "parameters"), err);
    for (const char *const *name = fds__run_reading; *name && status == FDS_OK; name++)
        if (text_at(origin, *name))
            status = fds_params_set(params, *name, text_at(origin, *name), err);
    if (status == FDS_OK)
        status = fds_params_set(params, "data", text_at(origin, "path"), err);
    if (params->until_error > 0) /* the number that it has led to stays */
        fix_coalitions(params, json_object_get(json, "coalitions"));
    if (status == FDS_OK)
        *out = params;
    else
        fds_params_free(params);
    return status;
}
