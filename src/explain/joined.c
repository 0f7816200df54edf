/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters of a run's providers: the list of players in which those of one cluster are one. A run may
 * have been fitted with clusters (members in run.json); then a file must say the same of these. */
#include "explain/run.h"

/* Providers, each with the player that it is, or that it was joined to by the fit. */
typedef struct {
    const char *dir;
    const fds__blob *file;
    json_t *players;
    fds__names names;
    uint32_t *player_of; /* (names) */
    uint32_t *first_of;  /* (names) the first of the same cluster */
    uint32_t *part_of;   /* (players) */
    size_t parts;
} joining;

static const char *text_at(const json_t *player, const char *key) {
    return json_string_value(json_object_get(player, key));
}

static fds_status list_names(joining *j, fds_error *err) {
    size_t p, m;
    json_t *player, *member;
    json_array_foreach(j->players, p, player) {
        const json_t *members = json_object_get(player, "members");
        const char *name = text_at(player, "name"), *provider = text_at(player, "provider");
        if (!provider || strcmp(name, provider) != 0)
            return fds__fail(
                err, FDS_ERR_USAGE,
                "`cluster`: the players of %s are samples, and each copy is one of them; "
                "fit with `players` providers and `cluster` to value a cluster as one",
                j->dir);
        if (!members)
            TRY(fds__names_add(&j->names, name, err));
        json_array_foreach(members, m, member)
            TRY(fds__names_add(&j->names, text_at(member, "name"), err));
    }
    TRY(RESERVE(j->player_of, j->names.count, 1, err));
    TRY(RESERVE(j->first_of, j->names.count, 1, err));
    size_t at = 0;
    json_array_foreach(j->players, p, player) {
        size_t members = json_array_size(json_object_get(player, "members"));
        for (m = 0; m < MAX(members, (size_t)1); m++)
            j->player_of[at++] = (uint32_t)p;
    }
    return FDS_OK;
}

/* What the fit has joined, the file must join. */
static fds_status number_parts(joining *j, fds_error *err) {
    for (size_t n = 0; n < j->names.count; n++) {
        uint32_t first = j->first_of[n], player = j->player_of[n];
        if (n && j->player_of[n - 1] == player && first != j->first_of[n - 1])
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s: \"%s\" and \"%s\" are one player of %s, but not one cluster; fit "
                             "with this `cluster`",
                             j->file->path, j->names.items[n - 1], j->names.items[n], j->dir);
        j->part_of[player] = first < n ? j->part_of[j->player_of[first]] : (uint32_t)j->parts++;
    }
    return FDS_OK;
}

/* ---- the new players ---- */

static bool append_members(json_t *to, const json_t *player) {
    const json_t *members = json_object_get(player, "members");
    if (members)
        return json_array_extend(to, (json_t *)(uintptr_t)members) == 0;
    json_t *samples = json_object_get(player, "samples");
    return json_array_append_new(to, json_pack("{s:s, s:I}", "name", text_at(player, "name"),
                                               "samples", (json_int_t)json_array_size(samples))) ==
           0;
}

/* Everything of its first player, and the samples and members of all; the label is that of the player
 * with most samples, the target the mean. NULL: out of memory. */
static json_t *join_part(const joining *j, uint32_t part, const char *name) {
    json_t *joined = NULL, *samples = json_array(), *members = json_array(), *player;
    size_t p, most = 0;
    double target = 0;
    bool is_whole = samples && members;
    json_array_foreach(j->players, p, player) {
        json_t *own = json_object_get(player, "samples");
        size_t count = json_array_size(own);
        if (j->part_of[p] != part || !is_whole)
            continue;
        if (!joined)
            joined = json_copy(player);
        is_whole =
            joined && json_array_extend(samples, own) == 0 && append_members(members, player);
        if (is_whole && count > most)
            is_whole = json_object_set(joined, "label", json_object_get(player, "label")) == 0;
        most = MAX(most, count);
        target += (double)count * json_number_value(json_object_get(player, "target"));
    }
    target /= (double)MAX(json_array_size(samples), (size_t)1);
    is_whole =
        is_whole && fds__json_put(joined, "name", fds__json_string(name)) &&
        fds__json_put(joined, "provider", fds__json_string(name)) &&
        json_object_set(joined, "samples", samples) == 0 &&
        (json_array_size(members) < 2 || json_object_set(joined, "members", members) == 0) &&
        (!json_object_get(joined, "target") || fds__json_put(joined, "target", json_real(target)));
    json_decref(samples);
    json_decref(members);
    return fds__json_keep_if(joined, is_whole);
}

static fds_status join_players(const joining *j, fds__run_record *record, fds_error *err) {
    json_t *list = json_array();
    bool is_whole = list;
    for (size_t n = 0, part = 0; n < j->names.count && is_whole; n++) {
        char name[FDS__CLUSTER_NAME];
        if (j->first_of[n] != n || j->part_of[j->player_of[n]] != part)
            continue;
        is_whole = fds__json_append(list, join_part(j, (uint32_t)part,
                                                    fds__cluster_name(j->names.items, j->first_of,
                                                                      j->names.count, n, name)));
        part++;
    }
    if (!is_whole || json_object_set(record->json, "players", list) != 0) {
        json_decref(list);
        return fds__fail_json(err);
    }
    json_decref(list);
    record->info.players = j->parts;
    return FDS_OK;
}

static fds_status join(joining *j, fds__run_record *record, fds_error *err) {
    TRY(list_names(j, err));
    TRY(fds__clusters_parse(j->file, j->dir, j->names.items, j->names.count, j->first_of, err));
    TRY(RESERVE(j->part_of, record->info.players, 1, err));
    TRY(number_parts(j, err));
    if (j->parts == 1)
        return fds__fail(err, FDS_ERR_USAGE, "%s: all providers of %s are one cluster",
                         j->file->path, j->dir);
    return j->parts < record->info.players ? join_players(j, record, err) : FDS_OK;
}

fds_status fds__run_record_join(fds__run_record *record, const char *dir, const fds__blob *file,
                                uint32_t **part_of, fds_error *err) {
    joining j = {.dir = dir, .file = file, .players = json_object_get(record->json, "players")};
    json_incref(j.players);
    fds_status status = join(&j, record, err);
    fds__names_free(&j.names);
    json_decref(j.players);
    fds__free(j.player_of);
    fds__free(j.first_of);
    *part_of = j.part_of; /* the caller's, after a failure too */
    return status;
}
