/* SPDX-License-Identifier: Apache-2.0
 * Players: who is paid, and which samples each one owns. */
#include "data/data.h"

#include <string.h>

struct fds_players {
    size_t count;
    size_t *first;     /* (count + 1); player i owns samples[first[i]] .. samples[first[i + 1]-1] */
    uint32_t *samples; /* (first[count]) */
    char **names;      /* (count) */
};

void fds_players_free(fds_players *players) {
    if (!players)
        return;
    fds__free(players->first);
    fds__free(players->samples);
    fds__dir_list_free(players->names, players->names ? players->count : 0);
    fds__free(players);
}

static fds_status new_players(size_t count, size_t samples, fds_players **out, fds_error *err) {
    fds_players *p = fds__alloc_zero(1, sizeof *p);
    if (!p)
        return fds__fail_nomem(err, sizeof *p);
    p->count = count;
    p->first = fds__alloc_zero(count + 1, sizeof *p->first);
    p->samples = fds__alloc_zero(samples, sizeof *p->samples);
    p->names = fds__alloc_zero(count, sizeof *p->names);
    if (!p->first || !p->samples || !p->names) {
        fds_players_free(p);
        return fds__fail_nomem(err, samples * sizeof *p->samples);
    }
    *out = p;
    return FDS_OK;
}

static fds_status name_player(fds_players *p, size_t i, const char *name, fds_error *err) {
    p->names[i] = fds__strdup(name);
    return p->names[i] ? FDS_OK : fds__fail_nomem(err, strlen(name) + 1);
}

fds_status fds__players_create(size_t count, const char *const *names, const size_t *first,
                               const uint32_t *samples, fds_players **out, fds_error *err) {
    fds_players *p;
    TRY(new_players(count, first[count], &p, err));
    memcpy(p->first, first, (count + 1) * sizeof *first);
    memcpy(p->samples, samples, first[count] * sizeof *samples);
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++)
        status = name_player(p, i, names[i], err);
    if (status != FDS_OK)
        fds_players_free(p);
    else
        *out = p;
    return status;
}

/* A sorted copy of index (NULL: 0 .. count-1); checks that each is a sample and occurs once. */
static fds_status sorted_index(const fds_dataset *ds, const uint32_t *index, size_t count,
                               uint32_t **out, fds_error *err) {
    TRY(fds__samples_check(ds, index, count, err));
    uint32_t *sorted = fds__alloc_zero(count, sizeof *sorted);
    if (!sorted)
        return fds__fail_nomem(err, count * sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = index ? index[i] : (uint32_t)i;
    fds__samples_sort(sorted, count);
    for (size_t i = 1; i < count; i++)
        if (sorted[i] == sorted[i - 1]) {
            fds_status status = fds__fail(err, FDS_ERR_USAGE, "%s: sample %u is chosen twice",
                                          ds->source, sorted[i]);
            fds__free(sorted);
            return status;
        }
    *out = sorted;
    return FDS_OK;
}

fds_status fds_players_points(const fds_dataset *ds, const uint32_t *index, size_t count,
                              fds_players **out, fds_error *err) {
    uint32_t *sorted;
    TRY(sorted_index(ds, index, count, &sorted, err));
    fds__free(sorted); /* only the checks are needed: players keep the caller's order */
    fds_players *p;
    TRY(new_players(count, count, &p, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        char name[32];
        p->samples[i] = index ? index[i] : (uint32_t)i;
        snprintf(name, sizeof name, "sample %u", p->samples[i]);
        p->first[i + 1] = i + 1;
        status = name_player(p, i, ds->sample_names ? ds->sample_names[p->samples[i]] : name, err);
    }
    if (status != FDS_OK)
        fds_players_free(p);
    else
        *out = p;
    return status;
}

/* Fills in the players from the sorted samples; place[provider] is where the provider's next sample
 * goes. */
static fds_status deal_out(const fds_dataset *ds, const uint32_t *sorted, size_t count,
                           size_t *place, fds_players *p, fds_error *err) {
    size_t player = 0, at = 0;
    for (uint32_t id = 0; id < ds->providers; id++) {
        size_t owned = place[id];
        if (owned == 0)
            continue;
        place[id] = at;
        at += owned;
        p->first[player + 1] = at;
        TRY(name_player(p, player++, ds->provider_names[id], err));
    }
    for (size_t i = 0; i < count; i++)
        p->samples[place[ds->provider_ids[sorted[i]]]++] = sorted[i];
    return FDS_OK;
}

fds_status fds_players_providers(const fds_dataset *ds, const uint32_t *index, size_t count,
                                 fds_players **out, fds_error *err) {
    if (!ds->provider_ids)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "%s has no providers; a CSV file names them in a column \"provider\", folders of "
            "pictures as PROVIDER/CLASS/NAME.png, and any data with --owners FILE",
            ds->source);
    uint32_t *sorted = NULL;
    TRY(sorted_index(ds, index, count, &sorted, err));
    size_t *place = fds__alloc_zero(ds->providers, sizeof *place); /* first: samples owned */
    size_t players = 0;
    for (size_t i = 0; place && i < count; i++)
        players += place[ds->provider_ids[sorted[i]]]++ == 0;
    fds_players *p = NULL;
    fds_status status = place ? new_players(players, count, &p, err)
                              : fds__fail_nomem(err, ds->providers * sizeof *place);
    if (status == FDS_OK)
        status = deal_out(ds, sorted, count, place, p, err);
    fds__free(sorted);
    fds__free(place);
    if (status != FDS_OK)
        fds_players_free(p);
    else
        *out = p;
    return status;
}

size_t fds_players_count(const fds_players *players) { return players->count; }

size_t fds_players_samples(const fds_players *players, size_t i, const uint32_t **index) {
    if (i >= players->count)
        return 0;
    *index = players->samples + players->first[i];
    return players->first[i + 1] - players->first[i];
}

size_t fds__players_all_samples(const fds_players *players, const uint32_t **index) {
    *index = players->samples;
    return players->first[players->count];
}

const char *fds_players_name(const fds_players *players, size_t i) {
    return i < players->count ? players->names[i] : "?";
}
