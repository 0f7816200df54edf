/* SPDX-License-Identifier: Apache-2.0
 *
 * A cluster is one payee; its members divide what it gets by the number of their samples. Whole units,
 * rounded towards zero; the first members get a unit more each until nothing is left. */
#include "pay/pay.h"

/* The payee of that name; the number of payees: there is none. */
static size_t find_payee(const fds__payees *p, const char *name) {
    int which = p->by == FDS__PAY_BY_PLAYER ? FDS__NAME_PLAYER : FDS__NAME_PROVIDER;
    for (size_t i = 0; name && p->by != FDS__PAY_BY_GROUP && i < p->count; i++)
        if (fds__payees_name(p, which, i) && strcmp(fds__payees_name(p, which, i), name) == 0)
            return i;
    return p->count;
}

static int64_t samples_of(const json_t *member) {
    return json_integer_value(json_object_get(member, "samples"));
}

static json_t *json_members(const fds_payment *p, json_t *members, int64_t units) {
    json_t *list = json_array(), *member;
    bool is_whole = list;
    size_t i;
    int64_t all = 0, left = units;
    json_array_foreach(members, i, member) all += samples_of(member);
    json_array_foreach(members, i, member) left -=
        (int64_t)((fds__fixed)units * samples_of(member) / MAX(all, 1));
    json_array_foreach(members, i, member) {
        char text[32];
        int64_t own = (int64_t)((fds__fixed)units * samples_of(member) / MAX(all, 1));
        int64_t more = (left > 0) - (left < 0);
        left -= more;
        is_whole =
            is_whole &&
            fds__json_append(list, json_pack("{s:O, s:I, s:I, s:s}", "name",
                                             json_object_get(member, "name"), "samples",
                                             (json_int_t)samples_of(member), "units",
                                             (json_int_t)(own + more), "amount",
                                             fds_money_text(own + more, p->unit.decimals, text)));
    }
    return fds__json_keep_if(list, is_whole);
}

json_t *fds__payment_clusters_json(const fds_payment *p) {
    json_t *list = json_array(), *cluster;
    bool is_whole = list;
    size_t i;
    json_array_foreach(p->payees->clusters, i, cluster) {
        json_t *name = json_object_get(cluster, "player");
        size_t payee = find_payee(p->payees, json_string_value(name));
        int64_t units = fds_payment_share(p, SIZE_MAX, payee);
        char text[32];
        if (payee < p->payees->count && is_whole)
            is_whole = fds__json_append(
                list, json_pack("{s:O, s:I, s:s, s:o}", "player", name, "units", (json_int_t)units,
                                "amount", fds_money_text(units, p->unit.decimals, text), "members",
                                json_members(p, json_object_get(cluster, "members"), units)));
    }
    return fds__json_keep_if(list, is_whole);
}

fds_status fds_payment_clusters(const fds_payment *p, char **json, fds_error *err) {
    json_t *about = json_pack("{s:o}", "clusters", fds__payment_clusters_json(p));
    *json = about ? fds__json_text(about, JSON_INDENT(1)) : NULL;
    json_decref(about);
    return *json ? FDS_OK : fds__fail_json(err);
}
