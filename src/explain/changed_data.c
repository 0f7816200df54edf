/* SPDX-License-Identifier: Apache-2.0
 *
 * The data of a run whose data changes. A run has the samples of its players: those of its origin, and
 * of what was added later, whose provider is a player or, where samples are players, which are
 * players themselves. What else is in those files, for example of a provider that was removed, is not
 * looked at. */
#include "explain/update.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SOURCES = 1000 };

typedef struct {
    const char *name;
    const json_t *sources; /* numbers of those that it has samples of; NULL: any */
} known;

typedef struct {
    fds__update *u;
    bool by_provider;
    fds_dataset *parts[MOST_SOURCES];
    bool *keep[MOST_SOURCES]; /* (samples) */
    size_t count, old;        /* sources: all, and those that the run has */
    uint8_t *contents;        /* (players, 32) of the run, sorted */
    bool *is_gone;            /* (players) of contents */
    bool *is_named;           /* (players) in the order of the run, to be removed */
    known *names;             /* (players) sorted */
    size_t players;
} changing;

static void changing_free(changing *c) {
    for (size_t i = 0; i < c->count; i++) {
        fds_dataset_free(c->parts[i]);
        fds__free(c->keep[i]);
    }
    fds__free(c->contents);
    fds__free(c->is_gone);
    fds__free(c->is_named);
    fds__free(c->names);
}

/* ---- reading ---- */

static fds_status open_source(changing *c, const char *path, fds_error *err) {
    fds_dataset *test = NULL;
    if (c->count == MOST_SOURCES)
        return fds__fail(err, FDS_ERR_LIMIT, "at most %d sources of data: join some files",
                         MOST_SOURCES);
    fds_params how = *c->u->fit;
    if (c->count) /* only its samples are added, and it names their providers itself */
        how.test_file = how.owners = NULL;
    TRY(fds_data_open(path, &how, c->u->events, &c->parts[c->count], &test, err));
    fds_dataset *part = c->parts[c->count++];
    if (c->count == 1)
        c->u->test = test;
    else
        fds_dataset_free(test);
    TRY(RESERVE(c->keep[c->count - 1], part->count, 1, err));
    return fds__preparation_learns(part->preparation)
               ? fds__fail(err, FDS_ERR_USAGE,
                           "%s: a run for changing data needs columns of numbers without missing "
                           "values",
                           part->source)
               : FDS_OK;
}

/* The lines of a parameter that may be given several times. */
static fds_status open_lines(changing *c, const char *lines, fds_error *err) {
    while (lines && *lines) {
        size_t length = strcspn(lines, "\n");
        char path[FDS__PATH_MAX];
        if (length >= sizeof path)
            return fds__fail(err, FDS_ERR_USAGE, "`add`: the path is too long");
        snprintf(path, sizeof path, "%.*s", (int)length, lines);
        TRY(open_source(c, path, err));
        lines += length + (lines[length] == '\n');
    }
    return FDS_OK;
}

static fds_status open_sources(changing *c, fds_error *err) {
    const json_t *origin = json_object_get(c->u->json, "origin"),
                 *added = json_object_get(origin, "added");
    TRY(open_source(c, c->u->fit->data, err));
    for (size_t i = 0; i < json_array_size(added); i++) {
        const char *path = json_string_value(json_array_get(added, i));
        TRY(open_source(c, path ? path : "", err));
    }
    c->old = c->count;
    return open_lines(c, c->u->params->job == FDS__JOB_UPDATE ? c->u->params->add : NULL, err);
}

/* ---- who stays ---- */

static int by_bytes(const void *a, const void *b) { return memcmp(a, b, 32); }
static int by_name(const void *a, const void *b) {
    return strcmp(((const known *)a)->name, ((const known *)b)->name);
}

static fds_status read_players(changing *c, fds_error *err) {
    const json_t *list = json_object_get(c->u->json, "players"),
                 *sources = json_object_get(json_object_get(c->u->json, "origin"), "sources");
    c->players = json_array_size(list);
    TRY(RESERVE(c->contents, c->players, 32, err));
    TRY(RESERVE(c->is_gone, c->players, 1, err));
    TRY(RESERVE(c->is_named, c->players, 1, err));
    TRY(RESERVE(c->names, c->players, 1, err));
    for (size_t p = 0; p < c->players; p++) {
        const json_t *player = json_array_get(list, p);
        c->names[p] =
            (known){json_string_value(json_object_get(player, "name")), json_array_get(sources, p)};
        if (!c->names[p].name ||
            !fds__hex_read(json_string_value(json_object_get(player, "content")),
                           c->contents + 32 * p))
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s/" FDS__RUN_JSON ": player %zu has no \"name\" or \"content\"",
                             c->u->dir, p);
        if (sources && !json_array_size(c->names[p].sources))
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s/" FDS__RUN_JSON ": origin.sources has none for player %zu",
                             c->u->dir, p);
    }
    qsort(c->contents, c->players, 32, by_bytes);
    qsort(c->names, c->players, sizeof *c->names, by_name);
    return FDS_OK;
}

static bool has_source(const known *player, size_t source) {
    for (size_t i = 0; i < json_array_size(player->sources); i++)
        if (json_integer_value(json_array_get(player->sources, i)) == (json_int_t)source)
            return true;
    return !player->sources;
}

/* A provider that was removed and has come back with another file: its old rows stay out. */
static void keep_providers(changing *c) {
    for (size_t i = 0; i < c->old; i++)
        for (size_t k = 0; k < c->parts[i]->count && c->parts[i]->provider_ids; k++) {
            const known key = {
                .name = fds_dataset_provider_name(c->parts[i], c->parts[i]->provider_ids[k])};
            const known *player = bsearch(&key, c->names, c->players, sizeof key, by_name);
            c->keep[i][k] = player && has_source(player, i);
        }
}

/* Of samples as players: what each one is depends on all of them together, as equal ones are numbered.
 * contents (samples, 32) of the old sources together. */
static fds_status identify(const changing *c, fds_dataset **all, fds_players **players,
                           fds__identities **who, fds_error *err) {
    for (size_t i = 0; i < c->old; i++)
        memset(c->keep[i], true, c->parts[i]->count);
    TRY(fds__dataset_select((const fds_dataset *const *)c->parts, (const bool *const *)c->keep,
                            c->old, all, err));
    TRY(fds_players_points(*all, NULL, (*all)->count, players, err));
    return fds__identities_create(*all, *players, false, c->u->events, who, err);
}

static bool stays(const changing *c, const uint8_t content[32]) {
    const uint8_t *at = bsearch(content, c->contents, c->players, 32, by_bytes);
    return at && !c->is_gone[(size_t)(at - c->contents) / 32];
}

static fds_status keep_points(changing *c, fds_error *err) {
    fds_dataset *all = NULL;
    fds_players *players = NULL;
    fds__identities *who = NULL;
    fds_status status = identify(c, &all, &players, &who, err);
    size_t row = 0;
    for (size_t i = 0; i < c->old && status == FDS_OK; i++)
        for (size_t k = 0; k < c->parts[i]->count; k++, row++)
            c->keep[i][k] = stays(c, who->contents[row]);
    fds__identities_free(who);
    fds_players_free(players);
    fds_dataset_free(all);
    return status;
}

/* ---- who goes ---- */

/* The last of the equal samples that the one with this content is of. */
static uint8_t *last_equal(const changing *c, const uint8_t content[32]) {
    uint8_t *last = bsearch(content, c->contents, c->players, 32, by_bytes), numbered[32];
    uint32_t most = 0;
    for (size_t p = 0; p < c->players; p++) {
        uint8_t *at = c->contents + 32 * p, *end = c->is_gone[p] ? NULL : at;
        bool has = memcmp(at, content, 32) == 0;
        for (uint32_t number = 1; at; number++) {
            fds__identity_numbered(c->contents + 32 * p, number, numbered);
            at = bsearch(numbered, c->contents, c->players, 32, by_bytes);
            has |= at && memcmp(at, content, 32) == 0;
            if (at && !c->is_gone[(size_t)(at - c->contents) / 32])
                end = at;
            if (has && number > most && end) {
                most = number;
                last = end;
            }
        }
    }
    return last;
}

/* A single sample, of data without providers. Equal ones are numbered in the order of rows, which may
 * be gone from the files already: the last of them goes, whichever is named. */
static fds_status drop_sample(changing *c, size_t player, fds_error *err) {
    const json_t *about = json_array_get(json_object_get(c->u->json, "players"), player);
    uint8_t content[32];
    fds__hex_read(json_string_value(json_object_get(about, "content")), content);
    c->is_gone[(size_t)(last_equal(c, content) - c->contents) / 32] = true;
    return keep_points(c, err);
}

static void drop_provider(changing *c, const char *name) {
    for (size_t i = 0; i < c->old; i++)
        for (size_t k = 0; k < c->parts[i]->count && c->parts[i]->provider_ids; k++) {
            const fds_dataset *part = c->parts[i];
            if (strcmp(fds_dataset_provider_name(part, part->provider_ids[k]), name) == 0)
                c->keep[i][k] = false;
        }
}

/* The run knows who is there: rows may be gone from the files already. */
static fds_status drop(changing *c, const char *name, fds_error *err) {
    const json_t *list = json_object_get(c->u->json, "players");
    const bool has_providers = c->parts[0]->provider_ids;
    bool is_found = false;
    for (size_t p = 0; p < c->players; p++) {
        const char *owner = fds__update_owner(json_array_get(list, p));
        if (!owner || strcmp(owner, name) != 0)
            continue;
        is_found = true;
        if (!has_providers && !c->is_named[p])
            TRY(drop_sample(c, p, err));
        c->is_named[p] = true;
    }
    drop_provider(c, name);
    if (is_found)
        return FDS_OK;
    const char *near = fds__update_nearest(c->u->json, name);
    return fds__fail(err, FDS_ERR_NOT_FOUND, "%s has no %s \"%.100s\"%s%.100s%s", c->u->dir,
                     has_providers ? "provider" : "player", name, near ? "; did you mean \"" : "",
                     near ? near : "", near ? "\"?" : "");
}

static fds_status drop_lines(changing *c, const char *lines, fds_error *err) {
    while (lines && *lines) {
        size_t length = strcspn(lines, "\n");
        OWNED char *name = fds__alloc(length + 1);
        if (!name)
            return fds__fail_nomem(err, length + 1);
        snprintf(name, length + 1, "%.*s", (int)length, lines);
        TRY(drop(c, name, err));
        lines += length + (lines[length] == '\n');
    }
    return FDS_OK;
}

static fds_status check_rest(const changing *c, fds_error *err) {
    for (size_t i = 0; i < c->count; i++)
        if (memchr(c->keep[i], true, c->parts[i]->count))
            return FDS_OK;
    return fds__fail(err, FDS_ERR_USAGE, "%s would have no player left%s", c->u->dir,
                     c->u->forgotten ? ": remove the whole folder instead"
                                     : ": keep some, or add others");
}

/* A class that the fit knew from rows of its data has an output of every sub-model; a fresh fit without
 * these rows would not know its name. */
static fds_status check_classes(const changing *c, fds_error *err) {
    const fds_dataset *first = c->parts[0], *stay[] = {c->u->train, c->u->test};
    OWNED bool *has_samples = NULL;
    TRY(RESERVE(has_samples, first->classes, 1, err));
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; stay[i] && k < stay[i]->count; k++)
            has_samples[stay[i]->labels[k]] = true;
    for (size_t k = 0; k < first->count; k++)
        if (!has_samples[first->labels[k]])
            return fds__fail(
                err, FDS_ERR_USAGE,
                "class \"%.60s\" would have no samples, and every sub-model has an "
                "output for it: remove its rows from %s first; all sub-models are then "
                "trained again",
                fds_dataset_class_name(first, first->labels[k]), first->source);
    return FDS_OK;
}

static fds_status choose(changing *c, fds_error *err) {
    const fds_params *fit = c->u->fit, *p = c->u->params;
    c->by_provider = fit->players && !strcmp(fit->players, "providers") && fit->group_value != 1;
    TRY(read_players(c, err));
    TRY(open_sources(c, err));
    if (c->by_provider)
        keep_providers(c);
    else
        TRY(keep_points(c, err));
    if (c->u->forgotten)
        TRY(drop(c, c->u->forgotten, err));
    TRY(drop_lines(c, p->job == FDS__JOB_UPDATE ? p->remove : NULL, err));
    for (size_t i = c->old; i < c->count; i++)
        memset(c->keep[i], true, c->parts[i]->count);
    TRY(check_rest(c, err));
    TRY(fds__dataset_select((const fds_dataset *const *)c->parts, (const bool *const *)c->keep,
                            c->count, &c->u->train, err));
    return check_classes(c, err);
}

fds_status fds__changed_data(fds__update *u, fds_error *err) {
    OWNED changing *c = NULL;
    TRY(RESERVE(c, 1, 1, err));
    c->u = u;
    fds_status status = choose(c, err);
    changing_free(c);
    return status;
}
