/* SPDX-License-Identifier: Apache-2.0
 *
 * What an auditor knows, and how one audited prediction changes it.
 *
 * c_i is the share of payee i of the amount as it was paid, o_i as the bank says, both by the rule of
 * payments and without what rounding carries. Each prediction counts with the weight w: its amount over
 * the mean of those before, at most MOST_WEIGHT, so that a dear one does not make all others small.
 *
 *   truth     1/2 sum |c_i - o_i|, against the level at fit time
 *   provider  o_i - c_i, for each payee in both directions; tolerated: a share of 1/payees. Differences
 *             are cut off at CUT times the greatest of the last WINDOW to 2 WINDOW predictions: so what
 *             a bet can lose is known before, whatever the payee got
 *   groups    the same for sums over the members of a group
 *   coverage  the probability that the true values are within the stated intervals
 *   drift     the rank of the input's score among those of the calibrated inputs and later ones
 *
 * Providers of the first run share the probability 0.9 alpha of a false alarm, those that a second run
 * adds 0.09 alpha, and so on: later runs do not change what an earlier alarm means. */
#include "audit/audit.h"
#include "explain/explain.h"

#include <math.h>

const char *const audit_names[AUDIT_KINDS] = {"ledger", "truth", "provider", "coverage",
                                              "groups", "drift", "self"};

const char *fds_audit_check_name(size_t i) { return i < AUDIT_KINDS ? audit_names[i] : NULL; }

#define FIRST_BATCH 0.9      /* of alpha */
#define NOMINAL_Z 1.959964   /* of a 95 % interval */
#define LEAST_COVERAGE 0.9   /* that is no reason for an alarm: docs/accuracy.md has 92 to 99 % */
#define LEAST_SIGNED (-20.0) /* share by the policy signed (pay/divide.c) */
#define MOST_WEIGHT 4.0
#define CUT 1.5
enum {
    WINDOW = 512,
    LEARNING = 64
}; /* predictions; the first ones only show how large differences are */

/* ---- creating ---- */

static void free_run(audit_run *r) {
    for (size_t i = 0; i < r->label_count; i++) {
        fds__free(r->labels[i].name);
        fds__free(r->labels[i].bins);
        fds__free(r->labels[i].sums);
    }
    fds__free(r->labels);
    fds__free(r->providers);
    fds__free(r->bag.tree);
}

void fds_auditor_free(fds_auditor *a) {
    if (!a)
        return;
    for (size_t i = 0; i < a->run_count; i++)
        free_run(&a->runs[i]);
    for (size_t i = 0; i < a->provider_count; i++)
        fds__free(a->providers[i].name);
    for (size_t i = 0; i < a->group_count; i++)
        fds__free(a->groups[i].name);
    for (size_t i = 0; i < a->validation_count; i++)
        fds__free(a->validations[i].scores);
    audit_self_free(a);
    json_decref(a->group_of);
    json_decref(a->provider_of);
    void *all[] = {a->runs,        a->providers, a->groups, a->group_of_provider,
                   a->validations, a->values,    a->paid,   a->owed,
                   a->weights,     a->shares,    a->parts,  a->ledger_fault};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        fds__free(all[i]);
    fds__free(a);
}

static fds_status configure(fds_auditor *a, const fds_params *params, fds_error *err) {
    a->alpha = params->alpha;
    a->tolerance = params->tolerance;
    a->seed = params->seed;
    a->first_audited = a->last_audited = LEDGER_NONE;
    for (int i = 0; i < AUDIT_KINDS; i++)
        a->checks[i] = (audit_check){.is_wanted = true, .needed = NAN, .alarm_at = LEDGER_NONE};
    a->group_of = json_object();
    a->provider_of = json_object();
    if (!a->group_of || !a->provider_of)
        return fds__fail_json(err);
    if (params->provider_groups)
        TRY(audit_read_groups(a, params->provider_groups, err));
    return params->run ? audit_read_runs(a, params->run, err) : FDS_OK;
}

fds_status fds_auditor_create(const fds_params *params, fds_auditor **out, fds_error *err) {
    fds_auditor *a;
    if (!params || params->job != FDS__JOB_TRUST)
        return fds__fail(err, FDS_ERR_USAGE, "an audit needs parameters of the job \"trust\"");
    TRY(NEW(a, 1, err));
    fds_status status = configure(a, params, err);
    if (status == FDS_OK)
        *out = a;
    else
        fds_auditor_free(a);
    return status;
}

/* ---- runs and their payees ---- */

static fds_status reserve_scratch(fds_auditor *a, size_t count, fds_error *err) {
    if (count <= a->scratch)
        return FDS_OK;
    void *old[] = {a->values, a->paid, a->owed, a->weights, a->shares, a->parts};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        fds__free(old[i]);
    a->values = a->paid = a->owed = NULL;
    a->weights = a->shares = NULL;
    a->parts = NULL;
    a->scratch = 0;
    TRY(NEW(a->values, count, err));
    TRY(NEW(a->paid, count, err));
    TRY(NEW(a->owed, count, err));
    TRY(NEW(a->weights, count, err));
    TRY(NEW(a->shares, count, err));
    TRY(NEW(a->parts, count, err));
    a->scratch = count;
    return FDS_OK;
}

fds_status audit_party_init(audit_party *p, const char *name, fds_error *err) {
    *p = (audit_party){.needed = INFINITY, .alarm_at = LEDGER_NONE};
    p->name = fds__strdup(name);
    return p->name ? FDS_OK : fds__fail_nomem(err, strlen(name) + 1);
}

/* The place of a provider in the list; it is added if it is new. */
static fds_status find_provider(fds_auditor *a, const char *name, size_t *out, fds_error *err) {
    const json_t *known = json_object_get(a->provider_of, name),
                 *group = json_object_get(a->group_of, name);
    size_t count = a->provider_count;
    *out = (size_t)json_integer_value(known);
    if (known)
        return FDS_OK;
    void *list = a->providers, *groups = a->group_of_provider;
    fds_status status =
        fds__grow(&list, &a->provider_capacity, count + 1, sizeof *a->providers, err);
    a->providers = list;
    TRY(status);
    status = fds__grow(&groups, &a->group_capacity, count + 1, sizeof *a->group_of_provider, err);
    a->group_of_provider = groups;
    TRY(status);
    if (!fds__json_put(a->provider_of, name, json_integer((json_int_t)count)))
        return fds__fail_json(err);
    TRY(audit_party_init(&a->providers[count], name, err));
    a->group_of_provider[count] = group ? (size_t)json_integer_value(group) : SIZE_MAX;
    *out = a->provider_count++;
    return FDS_OK;
}

/* What a new batch of providers must reach: together they alarm falsely with a share of alpha. */
static void set_needed(fds_auditor *a, size_t first) {
    size_t fresh = a->provider_count - first;
    double share = FIRST_BATCH * pow(1 - FIRST_BATCH, (double)a->batches);
    for (size_t i = first; i < a->provider_count; i++)
        a->providers[i].needed = (double)fresh / (share * a->alpha);
    a->batches += fresh > 0;
}

static fds_status fill_run(fds_auditor *a, audit_run *r, const fds_audit_payees *p,
                           fds_error *err) {
    size_t first = a->provider_count;
    r->count = p->count;
    r->level = p->level;
    TRY(NEW(r->providers, p->count, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < p->count && status == FDS_OK; i++)
        status = find_provider(a, p->names[i], &r->providers[i], err);
    set_needed(a, first);
    TRY(status);
    r->has_scores = p->score && p->scores;
    if (r->has_scores)
        TRY(audit_bag_create(&r->bag, err));
    for (size_t i = 0; i < p->scores && r->has_scores; i++)
        audit_bag_add(&r->bag, p->score[i]);
    return reserve_scratch(a, p->count, err);
}

fds_status fds_auditor_add_payees(fds_auditor *a, const fds_audit_payees *p, fds_error *err) {
    fds__policy policy;
    if (!p->names || !p->count || !ledger_policy_find(p->policy ? p->policy : "clip", &policy))
        return fds__fail(err, FDS_ERR_USAGE,
                         "an audit needs payees, and the policy clip or signed");
    void *runs = a->runs;
    fds_status status = fds__grow(&runs, &a->run_capacity, a->run_count + 1, sizeof *a->runs, err);
    a->runs = runs;
    TRY(status);
    audit_run *r = &a->runs[a->run_count];
    *r = (audit_run){.policy = policy, .level = NAN};
    status = fill_run(a, r, p, err);
    if (status == FDS_OK)
        a->run_count++;
    else
        free_run(r);
    return status;
}

/* ---- one prediction ---- */

void audit_check_note(audit_check *c, uint64_t entry, double e, double needed) {
    double share = e / needed;
    if (!(share <= c->best)) {
        c->best = share;
        c->e = e;
        c->needed = needed;
    }
    if (isnan(c->needed))
        c->needed = needed;
    if (share >= 1 && c->alarm_at == LEDGER_NONE)
        c->alarm_at = entry;
    audit_series_note(&c->series, entry, share);
}

fds_status audit_divide(fds_auditor *a, const audit_run *run, const float *values, double *out,
                        fds_error *err) {
    const int64_t whole = (int64_t)1 << 40; /* shares have 64 bits more */
    fds__pay_rule rule;
    size_t left;
    for (size_t i = 0; i < run->count; i++)
        a->values[i] = (double)values[i];
    TRY(fds__divide(a->values, run->count, whole, run->policy, a->weights, a->shares, a->parts,
                    &left, &rule, err));
    for (size_t i = 0; i < run->count; i++)
        out[i] = ((double)a->shares[i] + (double)a->parts[i] * 0x1p-64) / (double)whole;
    return FDS_OK;
}

/* The same for ranks, which need less care: doubles where the policy is clip. */
static fds_status divide_quickly(fds_auditor *a, const audit_run *run, const float *values,
                                 double *out, fds_error *err) {
    double sum = 0;
    for (size_t i = 0; i < run->count; i++) {
        out[i] = MAX((double)values[i], 0.0);
        sum += out[i];
    }
    if (run->policy != FDS__POLICY_CLIP || !(sum > 0 && isfinite(sum)))
        return audit_divide(a, run, values, out, err);
    for (size_t i = 0; i < run->count; i++)
        out[i] /= sum;
    return FDS_OK;
}

static void take_truth(fds_auditor *a, const audit_run *run, uint64_t entry, double weight) {
    double moved = 0, limit = run->level + a->tolerance;
    audit_check *c = &a->checks[AUDIT_TRUTH];
    for (size_t i = 0; i < run->count; i++)
        moved += fabs(a->paid[i] - a->owed[i]) / 2;
    a->misallocated += moved;
    a->truth_count++;
    if (isnan(run->level))
        return;
    audit_bound_step(&a->truth_low, moved, 0, a->alpha);
    a->compared += moved;
    a->levels += run->level;
    c->predictions++;
    audit_bet_mean(&a->truth, weight * (moved - limit), weight * limit);
    audit_check_note(c, entry, audit_bet_value(&a->truth), 1 / a->alpha);
}

/* Bets that a party lacks more than the slack of each amount, and that it got more than that too much. */
static void bet_on(audit_party *p, double lacks, double slack, double weight) {
    double most = CUT * MAX(p->greatest, p->greatest_before);
    double cut = MAX(-most, MIN(lacks, most)), low = weight * (most + slack);
    if (p->predictions >= LEARNING) {
        audit_bet_mean(&p->under, weight * (cut - slack), low);
        audit_bet_mean(&p->over, weight * (-cut - slack), low);
    }
    p->greatest = MAX(p->greatest, fabs(lacks));
    if (++p->predictions % WINDOW == 0) {
        p->greatest_before = p->greatest;
        p->greatest = 0;
    }
}

/* A party that was owed o of the units and got c. */
static void take_party(fds_auditor *a, audit_party *p, double least, double weight, double units,
                       uint64_t entry) {
    double c = p->paid_share, o = p->owed_share, level = 1 / p->needed / 2;
    bet_on(p, o - c, a->tolerance * p->equal_share, weight);
    audit_bound_step(&p->low, units * (o - c), units * (c - least), level);
    audit_bound_step(&p->high, units * (c - o), units * (o - least), level);
    p->paid += c * units;
    p->owed += o * units;
    p->e = (audit_bet_value(&p->under) + audit_bet_value(&p->over)) / 2;
    p->best = MAX(p->best, p->e / p->needed);
    if (p->e >= p->needed && p->alarm_at == LEDGER_NONE)
        p->alarm_at = entry;
}

/* Those of a list that the run pays: the greatest e-value, and what it needs. */
static void take_parties(fds_auditor *a, audit_party *list, size_t count, audit_kind kind,
                         const audit_run *run, double weight, double units, uint64_t entry) {
    double e = 0, needed = INFINITY, least = run->policy == FDS__POLICY_SIGNED ? LEAST_SIGNED : 0;
    audit_check *check = &a->checks[kind];
    for (size_t i = 0; i < count; i++) {
        if (isnan(list[i].paid_share))
            continue;
        take_party(a, &list[i], least, weight, units, entry);
        if (list[i].e / list[i].needed > e / needed) {
            e = list[i].e;
            needed = list[i].needed;
        }
    }
    if (isinf(needed))
        return;
    check->predictions++;
    audit_check_note(check, entry, e, needed);
}

static void add_share(audit_party *p, double paid, double owed, double equal) {
    bool is_first = isnan(p->paid_share);
    p->paid_share = (is_first ? 0 : p->paid_share) + paid;
    p->owed_share = (is_first ? 0 : p->owed_share) + owed;
    p->equal_share = (is_first ? 0 : p->equal_share) + equal;
}

static void share_out(fds_auditor *a, const audit_run *run) {
    for (size_t i = 0; i < a->provider_count; i++)
        a->providers[i].paid_share = a->providers[i].owed_share = NAN;
    for (size_t i = 0; i < a->group_count; i++)
        a->groups[i].paid_share = a->groups[i].owed_share = NAN;
    for (size_t i = 0; i < run->count; i++) {
        size_t provider = run->providers[i], group = a->group_of_provider[provider];
        add_share(&a->providers[provider], a->paid[i], a->owed[i], 1 / (double)run->count);
        if (group != SIZE_MAX)
            add_share(&a->groups[group], a->paid[i], a->owed[i], 1 / (double)run->count);
    }
}

/* The bank's value has a normal error of its own: the calibration of explainers adds the same variances. */
static void take_coverage(fds_auditor *a, const audit_run *run, const fds_audit_prediction *p) {
    double inside = 0;
    size_t known = 0;
    audit_check *c = &a->checks[AUDIT_COVERAGE];
    for (size_t i = 0; p->errors && i < run->count; i++) {
        if (!(p->errors[i] > 0))
            continue;
        known++;
        inside +=
            fds__chance_inside((double)p->values[i], NOMINAL_Z * (double)p->errors[i],
                               (double)p->bank[i], p->bank_errors ? (double)p->bank_errors[i] : 0);
    }
    if (!known)
        return;
    double outside = 1 - inside / (double)known, limit = 1 - LEAST_COVERAGE;
    c->predictions++;
    a->inside += 1 - outside;
    audit_bet_mean(&a->coverage, outside - limit, limit);
    audit_check_note(c, p->entry, audit_bet_value(&a->coverage), 1 / a->alpha);
}

static void take_drift(fds_auditor *a, audit_run *run, const fds_audit_prediction *p) {
    audit_check *c = &a->checks[AUDIT_DRIFT];
    if (!run->has_scores || isnan(p->score))
        return;
    fds_rng rng = fds_rng_make(a->seed, FDS__PURPOSE_RANK, p->entry, AUDIT_DRIFT);
    double rank = audit_bag_rank(&run->bag, p->score, 1 - fds_rng_unit(&rng));
    audit_bag_add(&run->bag, p->score);
    c->predictions++;
    a->ranks += rank;
    audit_bet_power(&a->drift, rank);
    audit_check_note(c, p->entry, audit_bet_value(&a->drift), 1 / a->alpha);
}

static fds_status take_audited(fds_auditor *a, audit_run *run, const fds_audit_prediction *p,
                               fds_error *err) {
    TRY(audit_divide(a, run, p->bank, a->owed, err));
    double units = (double)p->amount,
           usual = a->audited ? a->audited_units / (double)a->audited : units;
    double weight = usual > 0 ? MIN(units / usual, MOST_WEIGHT) : 1;
    a->audited++;
    a->audited_units += units;
    a->first_audited = a->first_audited == LEDGER_NONE ? p->entry : a->first_audited;
    a->last_audited = p->entry;
    take_truth(a, run, p->entry, weight);
    share_out(a, run);
    take_parties(a, a->providers, a->provider_count, AUDIT_PROVIDER, run, weight, units, p->entry);
    take_parties(a, a->groups, a->group_count, AUDIT_GROUPS, run, weight, units, p->entry);
    take_coverage(a, run, p);
    take_drift(a, run, p);
    return FDS_OK;
}

fds_status fds_auditor_add(fds_auditor *a, const fds_audit_prediction *p, fds_error *err) {
    if (p->run >= a->run_count || !p->values || p->amount < 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "entry %llu: an audit needs a run that it knows, values, and an amount of "
                         "at least 0",
                         (unsigned long long)p->entry);
    audit_run *run = &a->runs[p->run];
    if (!p->bank) {
        TRY(divide_quickly(a, run, p->values, a->paid, err));
        return audit_self(a, run, p, err);
    }
    TRY(audit_divide(a, run, p->values, a->paid, err));
    return take_audited(a, run, p, err);
}

double fds_auditor_evidence(const fds_auditor *a, const char *check, uint64_t *entry) {
    for (int i = 0; i < AUDIT_KINDS; i++)
        if (strcmp(audit_names[i], check) == 0) {
            *entry = a->checks[i].alarm_at;
            return a->checks[i].best;
        }
    *entry = LEDGER_NONE;
    return NAN;
}
