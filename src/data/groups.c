/* SPDX-License-Identifier: Apache-2.0
 * Partitions of the players into groups. */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

struct fds_groups {
    size_t players, count;
    uint32_t *of;      /* (players) */
    size_t *first;     /* (count + 1); group g is members[first[g]] .. members[first[g + 1] - 1] */
    uint32_t *members; /* (players), ascending within a group */
    char **names;      /* (count) */
};

void fds_groups_free(fds_groups *groups) {
    if (!groups)
        return;
    fds__dir_list_free(groups->names, groups->names ? groups->count : 0);
    fds__free(groups->of);
    fds__free(groups->first);
    fds__free(groups->members);
    fds__free(groups);
}

static int by_number(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Fills in of and count. Players sorted by (number, player) show the first player of each group;
 * in the players' own order those then get the numbers 0, 1, 2, ... */
static fds_status number_groups(fds_groups *groups, const uint32_t *group_of, fds_error *err) {
    size_t n = groups->players;
    uint64_t *keys = fds__alloc_zero(n, sizeof *keys);
    if (!keys)
        return fds__fail_nomem(err, n * sizeof *keys);
    for (size_t i = 0; i < n; i++)
        keys[i] = (uint64_t)group_of[i] << 32 | i;
    qsort(keys, n, sizeof *keys, by_number);
    uint32_t *leader = groups->of, first = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t player = (uint32_t)keys[i];
        if (i == 0 || keys[i] >> 32 != keys[i - 1] >> 32)
            first = player;
        leader[player] = first;
    }
    fds__free(keys);
    /* a leader comes before the other members, so its number is known by then */
    for (size_t i = 0; i < n; i++)
        groups->of[i] = leader[i] == i ? (uint32_t)groups->count++ : groups->of[leader[i]];
    return FDS_OK;
}

/* Fills in first and members, by counting. */
static fds_status list_members(fds_groups *groups, fds_error *err) {
    size_t n = groups->players, count = groups->count;
    groups->first = fds__alloc_zero(count + 2, sizeof *groups->first);
    groups->members = fds__alloc_zero(n, sizeof *groups->members);
    if (!groups->first || !groups->members)
        return fds__fail_nomem(err, n * sizeof *groups->members);
    size_t *place = groups->first + 1; /* where group g begins; at the end, where it ends */
    for (size_t i = 0; i < n; i++)
        place[groups->of[i] + 1]++;
    for (size_t g = 0; g < count; g++)
        place[g + 1] += place[g];
    for (size_t i = 0; i < n; i++)
        groups->members[place[groups->of[i]]++] = (uint32_t)i;
    return FDS_OK;
}

static fds_status name_groups(fds_groups *groups, const uint32_t *group_of,
                              const char *const *names, fds_error *err) {
    groups->names = fds__alloc_zero(groups->count, sizeof *groups->names);
    if (!groups->names)
        return fds__fail_nomem(err, groups->count * sizeof *groups->names);
    for (size_t g = 0; g < groups->count; g++) {
        char numbered[32];
        snprintf(numbered, sizeof numbered, "group %zu", g);
        const char *name = names ? names[group_of[groups->members[groups->first[g]]]] : numbered;
        groups->names[g] = fds__strdup(name);
        if (!groups->names[g])
            return fds__fail_nomem(err, strlen(name) + 1);
    }
    return FDS_OK;
}

/* Only the names of the numbers in group_of are read. */
fds_status fds_groups_create(const uint32_t *group_of, size_t players, const char *const *names,
                             fds_groups **out, fds_error *err) {
    if (players == 0)
        return fds__fail(err, FDS_ERR_USAGE, "groups of no players: there must be at least one");
    if (players > FDS__MAX_PLAYERS)
        return fds__fail(err, FDS_ERR_LIMIT, "groups of %zu players: at most %zu are possible",
                         players, FDS__MAX_PLAYERS);
    fds_groups *groups = fds__alloc_zero(1, sizeof *groups);
    if (!groups)
        return fds__fail_nomem(err, sizeof *groups);
    groups->players = players;
    groups->of = fds__alloc_zero(players, sizeof *groups->of);
    fds_status status = groups->of ? number_groups(groups, group_of, err)
                                   : fds__fail_nomem(err, players * sizeof *groups->of);
    if (status == FDS_OK)
        status = list_members(groups, err);
    if (status == FDS_OK)
        status = name_groups(groups, group_of, names, err);
    if (status != FDS_OK)
        fds_groups_free(groups);
    else
        *out = groups;
    return status;
}

fds_status fds__groups_copy(const fds_groups *groups, fds_groups **out, fds_error *err) {
    return fds_groups_create(groups->of, groups->players, (const char *const *)groups->names, out,
                             err);
}

size_t fds_groups_count(const fds_groups *groups) { return groups->count; }
size_t fds_groups_players(const fds_groups *groups) { return groups->players; }

uint32_t fds_groups_of(const fds_groups *groups, size_t player) {
    return player < groups->players ? groups->of[player] : UINT32_MAX;
}

size_t fds_groups_members(const fds_groups *groups, size_t group, const uint32_t **members) {
    if (group >= groups->count)
        return 0;
    *members = groups->members + groups->first[group];
    return groups->first[group + 1] - groups->first[group];
}

const char *fds_groups_name(const fds_groups *groups, size_t group) {
    return group < groups->count ? groups->names[group] : "?";
}
