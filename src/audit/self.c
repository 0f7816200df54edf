/* SPDX-License-Identifier: Apache-2.0
 *
 * Customers who feed their own providers: inputs made so that a provider gets more of the money.
 *
 * Under the hypothesis, whose customer a prediction is of says nothing about the shares of its payees,
 * among predictions of one run and one label (a Mondrian conformal test: what is compared has the same
 * label, because customers may well ask for different things). So the rank of a payee's share among
 * those of all earlier predictions of that label is uniform, whoever asks, and each pair of a customer
 * and a provider is a gambler who bets that the ranks at this customer's predictions are high. This is
 * the permutation test of customers against shares, made valid at all times.
 *
 * Shares are rounded to AUDIT_BINS places on the scale of their square roots. Customer number u, in the
 * order in which they come, has the share 1/(u (u + 1)) of alpha, divided among the providers as in the
 * check of providers: those that later runs add do not change what an earlier alarm means. */
#include "audit/audit.h"

#include <math.h>

enum {
    MOST_LABELS = 256,
    MOST_CUSTOMERS = 1 << 20,
    FIRST_BET = 16, /* prediction of a customer: most have fewer, and take no memory for pairs */
    MOST_PAIRS = 1 << 18 /* of all customers, some 90 MB; beyond them nobody else is tested */
};

void audit_self_free(fds_auditor *a) {
    for (size_t i = 0; i < a->customer_count; i++) {
        fds__free(a->customers[i].pairs);
        fds__free(a->customers[i].name);
    }
    fds__free(a->customers);
    fds__free(a->slots);
}

/* ---- labels ---- */

/* Beyond MOST_LABELS of them, the others share the last one. */
static fds_status find_label(audit_run *run, const char *name, audit_label **out, fds_error *err) {
    for (size_t i = 0; i < run->label_count; i++)
        if (strcmp(run->labels[i].name, name) == 0 || i == MOST_LABELS - 1) {
            *out = &run->labels[i];
            return FDS_OK;
        }
    void *labels = run->labels;
    fds_status status =
        fds__grow(&labels, &run->label_capacity, run->label_count + 1, sizeof *run->labels, err);
    run->labels = labels;
    TRY(status);
    audit_label *label = &run->labels[run->label_count];
    *label = (audit_label){.name = fds__strdup(name)};
    if (!label->name)
        return fds__fail_nomem(err, strlen(name) + 1);
    run->label_count++;
    TRY(NEW(label->bins, run->count * AUDIT_BINS, err));
    TRY(NEW(label->sums, run->count, err));
    *out = label;
    return FDS_OK;
}

/* ---- customers ---- */

static size_t slot_of(const fds_auditor *a, uint64_t account) {
    size_t at = (size_t)(account * 0x9E3779B97F4A7C15U >> 20) & (a->slot_count - 1);
    while (a->slots[at] && a->customers[a->slots[at] - 1].account != account)
        at = (at + 1) & (a->slot_count - 1);
    return at;
}

static fds_status grow_slots(fds_auditor *a, fds_error *err) {
    size_t count = MAX(a->slot_count * 2, (size_t)64);
    if (a->slot_count > 2 * (a->customer_count + 1))
        return FDS_OK;
    fds__free(a->slots);
    a->slot_count = 0;
    TRY(NEW(a->slots, count, err));
    a->slot_count = count;
    for (size_t i = 0; i < a->customer_count; i++)
        a->slots[slot_of(a, a->customers[i].account)] = i + 1;
    return FDS_OK;
}

/* Pairs of all providers, once the customer has enough predictions, and if there is room. */
static fds_status grow_pairs(fds_auditor *a, audit_customer *c, fds_error *err) {
    audit_pair *pairs;
    size_t more = a->provider_count - c->pair_count;
    if (c->predictions < FIRST_BET || !more || a->pair_count + more > MOST_PAIRS)
        return FDS_OK;
    TRY(NEW(pairs, a->provider_count, err));
    a->pair_count += more;
    if (c->pair_count)
        memcpy(pairs, c->pairs, c->pair_count * sizeof *pairs);
    fds__free(c->pairs);
    c->pairs = pairs;
    c->pair_count = a->provider_count;
    return FDS_OK;
}

/* *out is NULL beyond MOST_CUSTOMERS. */
static fds_status find_customer(fds_auditor *a, uint64_t account, audit_customer **out,
                                fds_error *err) {
    TRY(grow_slots(a, err));
    size_t at = slot_of(a, account), number = a->customer_count;
    *out = a->slots[at] ? &a->customers[a->slots[at] - 1] : NULL;
    if (*out || number == MOST_CUSTOMERS)
        return FDS_OK;
    void *list = a->customers;
    fds_status status =
        fds__grow(&list, &a->customer_capacity, number + 1, sizeof *a->customers, err);
    a->customers = list;
    TRY(status);
    *out = &a->customers[number];
    **out = (audit_customer){.account = account, .alarm_at = LEDGER_NONE};
    (*out)->weight = 1 / ((double)(number + 1) * (double)(number + 2));
    a->slots[at] = ++a->customer_count;
    return FDS_OK;
}

/* ---- one prediction ---- */

static size_t bin_of(double share) {
    double place = share > 0 ? sqrt(share) * AUDIT_BINS : 0;
    return place < AUDIT_BINS - 1 ? (size_t)place : AUDIT_BINS - 1;
}

/* The share of earlier predictions with more, those with as much in random order. */
static double rank(const uint32_t *bins, uint32_t seen, size_t bin, double u) {
    uint32_t below = 0;
    for (size_t i = 0; i < bin; i++)
        below += bins[i];
    return ((double)(seen - below - bins[bin]) + u * (double)(bins[bin] + 1)) / ((double)seen + 1);
}

static void take_pair(fds_auditor *a, audit_customer *c, const audit_run *run, const audit_label *l,
                      size_t i, double u) {
    size_t bin = bin_of(a->paid[i]), provider = run->providers[i];
    audit_pair *pair = &c->pairs[provider];
    audit_bet_rank(&pair->bet, rank(l->bins + i * AUDIT_BINS, l->seen, bin, u));
    pair->shares += a->paid[i];
    pair->usual += l->seen ? l->sums[i] / l->seen : a->paid[i];
}

/* The pair with the most evidence. */
static void conclude(fds_auditor *a, audit_customer *c, const audit_run *run, uint64_t entry) {
    double most = 0, needed = INFINITY;
    size_t best = 0;
    for (size_t i = 0; i < run->count; i++) {
        size_t provider = run->providers[i];
        double e = audit_bet_value(&c->pairs[provider].bet),
               own = a->providers[provider].needed / c->weight;
        if (e / own > most / needed) {
            most = e;
            needed = own;
            best = provider;
        }
    }
    if (most / needed > c->best) {
        c->best = most / needed;
        c->provider = best;
    }
    if (most >= needed && c->alarm_at == LEDGER_NONE)
        c->alarm_at = entry;
    audit_check_note(&a->checks[AUDIT_SELF], entry, most, needed);
}

fds_status audit_self(fds_auditor *a, audit_run *run, const fds_audit_prediction *p,
                      fds_error *err) {
    audit_label *label = NULL;
    audit_customer *c = NULL;
    a->predictions++;
    a->paid_units += (double)p->amount;
    if (!a->checks[AUDIT_SELF].is_wanted)
        return FDS_OK;
    TRY(find_label(run, p->label ? p->label : "", &label, err));
    TRY(find_customer(a, p->customer, &c, err));
    if (!c)
        return FDS_OK;
    c->predictions++;
    TRY(grow_pairs(a, c, err));
    bool is_tested = c->pair_count == a->provider_count;
    fds_rng rng = fds_rng_make(a->seed, FDS__PURPOSE_RANK, p->entry, AUDIT_SELF);
    for (size_t i = 0; is_tested && i < run->count; i++)
        take_pair(a, c, run, label, i, 1 - fds_rng_unit(&rng));
    for (size_t i = 0; i < run->count; i++) {
        label->bins[i * AUDIT_BINS + bin_of(a->paid[i])]++;
        label->sums[i] += a->paid[i];
    }
    label->seen++;
    if (is_tested) {
        c->tested++;
        a->checks[AUDIT_SELF].predictions++;
        conclude(a, c, run, p->entry);
    }
    return FDS_OK;
}
