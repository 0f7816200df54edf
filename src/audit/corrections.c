/* SPDX-License-Identifier: Apache-2.0
 *
 * What would mend a payment: postings that sum to 0, for operators to look at, and to propose and agree to.
 *
 * Audited predictions are a random sample of all. What a party was paid too little or too much in the
 * sample, times all money over the money of the sample, is the estimate for all of them. A party that
 * alarms gets it; those who differ in the other direction pay for it, each in proportion to its own
 * difference. What earlier corrections of audits gave is taken off. A private ledger takes no correction
 * that names single payments. */
#include "audit/audit.h"

#include <math.h>

void audit_units_text(const fds_auditor *a, int64_t units, char out[AUDIT_MONEY]) {
    uint64_t size = units < 0 ? 0 - (uint64_t)units : (uint64_t)units, whole = size, scale = 1;
    for (int i = 0; i < a->decimals; i++)
        scale *= 10;
    whole = size / scale;
    if (a->decimals)
        snprintf(out, AUDIT_MONEY, "%s%llu.%0*llu", units < 0 ? "-" : "", (unsigned long long)whole,
                 a->decimals, (unsigned long long)(size % scale));
    else
        snprintf(out, AUDIT_MONEY, "%s%llu", units < 0 ? "-" : "", (unsigned long long)size);
}

/* What a provider lacks in all predictions: an estimate. */
static double lacks(const fds_auditor *a, const audit_party *p) {
    double scale = a->audited_units > 0 ? MAX(a->paid_units / a->audited_units, 1) : 1;
    return scale * (p->owed - p->paid) - p->corrected;
}

/* Of a check of groups, the members of those that alarm. */
static bool is_accused(const fds_auditor *a, audit_kind kind, size_t i) {
    size_t group = a->group_of_provider[i];
    if (kind == AUDIT_PROVIDER)
        return a->providers[i].alarm_at != LEDGER_NONE;
    return group != SIZE_MAX && a->groups[group].alarm_at != LEDGER_NONE;
}

/* Units of each provider; their sum is 0. False: there is nothing to mend. */
static bool balance(const fds_auditor *a, audit_kind kind, int64_t *units) {
    double wanted = 0, others = 0;
    int64_t sum = 0;
    size_t greatest = SIZE_MAX;
    for (size_t i = 0; i < a->provider_count; i++)
        wanted += is_accused(a, kind, i) ? lacks(a, &a->providers[i]) : 0;
    for (size_t i = 0; i < a->provider_count; i++)
        if (!is_accused(a, kind, i) && lacks(a, &a->providers[i]) * wanted < 0)
            others += lacks(a, &a->providers[i]);
    for (size_t i = 0; i < a->provider_count; i++) {
        double own = lacks(a, &a->providers[i]);
        bool pays = !is_accused(a, kind, i) && own * wanted < 0;
        double exact = is_accused(a, kind, i) ? own
                       : pays && others != 0  ? -wanted * own / others
                                              : 0;
        if (!(fabs(exact) < FDS__EXACT_MAX))
            return false;
        units[i] = (int64_t)llround(exact);
        sum += units[i];
        if (pays && (greatest == SIZE_MAX || llabs(units[i]) > llabs(units[greatest])))
            greatest = i;
    }
    if (greatest == SIZE_MAX)
        return sum == 0 && wanted != 0;
    units[greatest] -= sum; /* what rounding leaves */
    return true;
}

static json_t *list_postings(const fds_auditor *a, const int64_t *units) {
    json_t *list = json_array();
    bool is_whole = list != NULL;
    for (size_t i = 0; is_whole && i < a->provider_count; i++) {
        char amount[AUDIT_MONEY];
        audit_units_text(a, units[i], amount);
        if (units[i])
            is_whole = fds__json_append(
                list, json_pack("{s:s, s:s}", "account", a->providers[i].name, "amount", amount));
    }
    return fds__json_keep_if(list, is_whole);
}

json_t *audit_correction(const fds_auditor *a, audit_kind kind) {
    OWNED int64_t *units = NULL;
    char reason[200];
    if (a->checks[kind].alarm_at == LEDGER_NONE || !a->provider_count || a->is_private)
        return json_null();
    units = fds__alloc_zero(a->provider_count, sizeof *units);
    if (!units)
        return NULL;
    if (!balance(a, kind, units))
        return json_null();
    snprintf(reason, sizeof reason,
             AUDIT_REASON "%s: what %llu audited predictions (entries %llu to %llu) show for all",
             audit_names[kind], (unsigned long long)a->audited,
             (unsigned long long)a->first_audited, (unsigned long long)a->last_audited);
    json_t *postings = list_postings(a, units);
    if (!postings)
        return NULL;
    if (json_array_size(postings) < 2) {
        json_decref(postings);
        return json_null();
    }
    return json_pack("{s:I, s:o, s:s}", "of", (json_int_t)a->last_audited, "postings", postings,
                     "reason", reason);
}
