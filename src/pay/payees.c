/* SPDX-License-Identifier: Apache-2.0
 * Who is paid. Two providers are the same when their names in the data agree byte by byte. The
 * groups are those of the run; where it has none, players of one label are a group. */
#include "pay/pay.h"

const char *fds__pay_by_name(fds__pay_by by) {
    static const char *const names[] = {"player", "provider", "group"};
    return names[by];
}

fds__payees *fds__payees_share(fds__payees *p) {
    __atomic_add_fetch(&p->users, 1, __ATOMIC_RELAXED);
    return p;
}

void fds__payees_free(fds__payees *p) {
    if (!p || __atomic_sub_fetch(&p->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; p->names && i < FDS__NAMES * p->count; i++)
        fds__free(p->names[i]);
    fds__free(p->names);
    fds__free(p->samples);
    fds__free(p->payee_of);
    json_decref(p->clusters);
    fds__free(p);
}

/* ---- telling them apart ---- */

static uint32_t group_of(const fds_result *r, size_t player) {
    return r->player_groups[player] != FDS__UNKNOWN ? r->player_groups[player]
                                                    : r->player_labels[player];
}

static bool is_same(const fds_result *r, fds__pay_by by, size_t a, size_t b) {
    if (by == FDS__PAY_BY_PROVIDER)
        return strcmp(r->provider_names[a], r->provider_names[b]) == 0;
    return by == FDS__PAY_BY_GROUP ? group_of(r, a) == group_of(r, b) : a == b;
}

/* Sets payee_of and count; first (players): the first player of each payee. */
static fds_status find(fds__payees *p, const fds_result *r, size_t *first, fds_error *err) {
    for (size_t i = 0; i < r->players; i++) {
        if (p->by == FDS__PAY_BY_PROVIDER && !r->provider_names[i])
            return fds__fail(err, FDS_ERR_USAGE, "`by` provider: the data names no providers");
        if (p->by == FDS__PAY_BY_GROUP && r->is_regression && r->player_groups[i] == FDS__UNKNOWN)
            return fds__fail(err, FDS_ERR_USAGE,
                             "`by` group: the run has no groups, and a regression has no labels");
        size_t payee = p->by == FDS__PAY_BY_PLAYER ? p->count : 0;
        while (payee < p->count && !is_same(r, p->by, first[payee], i))
            payee++;
        if (payee == p->count)
            first[p->count++] = i;
        p->payee_of[i] = payee;
    }
    if (p->by == FDS__PAY_BY_GROUP && p->count == 1 && r->players > 1)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`by` group: all players are one group, which would get everything; use "
                         "player or provider");
    return FDS_OK;
}

static uint64_t checksum(const fds_result *r) {
    uint64_t sum = 0;
    for (size_t i = 0; i < r->players; i++) {
        const char *name = r->player_names[i] ? r->player_names[i] : "",
                   *provider = r->provider_names[i] ? r->provider_names[i] : "";
        const uint64_t all[] = {sum, fds_checksum(name, strlen(name)),
                                fds_checksum(provider, strlen(provider)), group_of(r, i),
                                r->player_labels[i]};
        sum = fds_checksum(all, sizeof all);
    }
    return sum;
}

fds_status fds__payees_check(const fds__payees *p, const fds_result *r, fds_error *err) {
    return r->players == p->players && checksum(r) == p->checksum
               ? FDS_OK
               : fds__fail(err, FDS_ERR_USAGE,
                           "these predictions have other players than those paid before");
}

/* ---- names ---- */

static bool has_provider(const fds_result *r, size_t player, const char *provider) {
    const char *own = r->provider_names[player];
    return own && provider && strcmp(own, provider) == 0;
}

/* A group is called by its label or provider if it has all players of that and no others. */
static void name_group(const fds_result *r, size_t player, char *out, size_t size) {
    const char *provider = r->provider_names[player];
    bool is_label = true, is_provider = provider;
    for (size_t i = 0; i < r->players; i++) {
        bool is_member = group_of(r, i) == group_of(r, player);
        is_label = is_label && is_member == (r->player_labels[i] == r->player_labels[player]);
        is_provider = is_provider && is_member == has_provider(r, i, provider);
    }
    if (is_label || is_provider)
        snprintf(out, size, "%s", is_label ? fds_result_player_label(r, player) : provider);
    else
        snprintf(out, size, "group %u", group_of(r, player));
}

static fds_status copy(const char *name, char **to, fds_error *err) {
    *to = name ? fds__strdup(name) : NULL;
    return *to || !name ? FDS_OK : fds__fail_nomem(err, strlen(name) + 1);
}

static fds_status name(fds__payees *p, const fds_result *r, const size_t *first, fds_error *err) {
    char group[256] = "";
    TRY(NEW(p->names, FDS__NAMES * p->count, err));
    TRY(NEW(p->samples, p->count, err));
    for (size_t i = 0; i < p->count; i++) {
        size_t player = first[i];
        bool is_player = p->by == FDS__PAY_BY_PLAYER, is_group = p->by == FDS__PAY_BY_GROUP;
        if (is_group)
            name_group(r, player, group, sizeof group);
        const char *const names[FDS__NAMES] = {
            [FDS__NAME_PLAYER] = is_player ? fds_result_player(r, player) : NULL,
            [FDS__NAME_LABEL] = is_player ? fds_result_player_label(r, player) : NULL,
            [FDS__NAME_PROVIDER] = is_group ? NULL : r->provider_names[player],
            [FDS__NAME_GROUP] = is_group ? group : NULL};
        for (size_t which = 0; which < FDS__NAMES; which++)
            TRY(copy(names[which], &p->names[which * p->count + i], err));
        p->samples[i] = r->player_sizes[player];
    }
    return FDS_OK;
}

static fds_status fill(fds__payees *p, const fds_result *r, fds_error *err) {
    OWNED size_t *first = NULL;
    TRY(NEW(first, r->players, err));
    TRY(NEW(p->payee_of, r->players, err));
    TRY(find(p, r, first, err));
    return name(p, r, first, err);
}

fds_status fds__payees_create(const fds_result *r, fds__pay_by by, fds__payees **out,
                              fds_error *err) {
    fds__payees *p;
    TRY(NEW(p, 1, err));
    *p = (fds__payees){.by = by,
                       .players = r->players,
                       .clusters = json_incref(json_object_get(r->about, "clusters")),
                       .checksum = checksum(r),
                       .users = 1};
    fds_status status = fill(p, r, err);
    if (status == FDS_OK)
        *out = p;
    else
        fds__payees_free(p);
    return status;
}
