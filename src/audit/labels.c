/* SPDX-License-Identifier: Apache-2.0
 *
 * Providers whose labels are worse than those of others.
 *
 * Of the K samples nearest to a sample, outside its fold, v have its label (fds_audit_create). So the
 * probability of its label is about p = (v + A) / (K + A C), with C classes, and its score
 *
 *     -ln(1 - W + W (1 - p) / ((C - 1) p))
 *
 * is the logarithm of a likelihood ratio: of labels that are as the neighbours say, to labels of which a
 * share W was replaced by others at random. The sum of scores is the best test between these two, if
 * samples are independent and p is right; whether the result is valid does not depend on that. The mean
 * score of its label is subtracted from each, so that hard classes are nobody's fault. The statistic of a
 * provider is the mean over its samples, over its jackknife error (the standard deviation of its scores
 * over the root of their number). Values of samples for the predictions of others, which fds data audit
 * shows, find half as much: a wrong label does little harm to many neighbours.
 *
 * The p-value is that of a permutation test: the owners of samples are shuffled within each label, and p
 * is the share of shuffles, the true one included, in which the provider's mean is as low. If a provider's
 * labels are as good as those of others, every shuffle is equally likely, so p is valid for any
 * distribution of scores. With P providers an alarm needs p at most alpha / P (Bonferroni), and that by
 * two standard errors of p, which the number of shuffles leaves: no alarm hangs on their seed. */
#include "audit/copies.h"

#include <math.h>
#include <stdlib.h>

static const double PRIOR = 0.2, WRONG = 0.1; /* A and W */
enum { LEAST_NEIGHBOURS = 5, MOST_NEIGHBOURS = 40, NEIGHBOURS_OF_CLASS = 3 };
enum { SHUFFLES_EACH = 20, LEAST_SHUFFLES = 2000, MOST_SHUFFLES = 200000, SAMPLES_SHOWN = 10 };

typedef struct {
    const fds_dataset *ds;
    double alpha;
    uint32_t peers; /* providers with samples */
    uint64_t seed;
    double *scores;          /* (samples) minus the mean of their label */
    uint32_t *order;         /* (samples) by label */
    size_t *first;           /* (classes + 1) in order */
    uint32_t *owner;         /* (samples) of order, shuffled within labels */
    double *sums, *sums_now; /* (providers) */
    double *squares;         /* (providers) */
    size_t *sizes, *lower;   /* (providers) lower: shuffles with as low a sum */
    size_t shuffles;
    unsigned neighbours;
    char utility[32];
} job;

static void centre(job *j) {
    const fds_dataset *ds = j->ds;
    size_t at = 0;
    for (uint32_t c = 0; c < ds->classes; c++) {
        double sum = 0;
        j->first[c] = at;
        for (size_t i = 0; i < ds->count; i++)
            if (ds->labels[i] == c) {
                j->order[at++] = (uint32_t)i;
                sum += j->scores[i];
            }
        for (size_t k = j->first[c]; k < at; k++)
            j->scores[j->order[k]] -= sum / (double)(at - j->first[c]);
    }
    j->first[ds->classes] = at;
    for (size_t k = 0; k < at; k++) {
        uint32_t p = ds->provider_ids[j->order[k]];
        double value = j->scores[j->order[k]];
        j->owner[k] = p;
        j->sums[p] += value;
        j->squares[p] += value * value;
        j->sizes[p]++;
    }
}

/* Whether so many shuffles were as low for every provider that all of them could not make an alarm. */
static bool is_decided(const job *j) {
    for (uint32_t p = 0; p < j->ds->providers; p++)
        if (j->sizes[p] && j->lower[p] <= 2 * SHUFFLES_EACH)
            return false;
    return (1 + 2.0 * SHUFFLES_EACH) / (1 + (double)j->shuffles) > j->alpha / j->peers;
}

static fds_status shuffle(job *j, const fds_events *events, fds_error *err) {
    const fds_dataset *ds = j->ds;
    const double start = fds__now_s();
    for (size_t t = 0; t < j->shuffles; t++) {
        if (is_decided(j)) {
            j->shuffles = t;
            break;
        }
        if (t % 1000 == 0)
            TRY(fds__report(events, "labels", "shuffles", t, j->shuffles, start, err));
        fds_rng rng = fds_rng_make(j->seed, FDS__PURPOSE_PERMUTE, t, UINT64_MAX);
        memset(j->sums_now, 0, ds->providers * sizeof *j->sums_now);
        for (uint32_t c = 0; c < ds->classes; c++)
            fds_rng_shuffle(&rng, j->owner + j->first[c], j->first[c + 1] - j->first[c]);
        for (size_t k = 0; k < ds->count; k++)
            j->sums_now[j->owner[k]] += j->scores[j->order[k]];
        for (uint32_t p = 0; p < ds->providers; p++) /* sums of the same numbers, in other orders */
            j->lower[p] += j->sums_now[p] <= j->sums[p] + 1e-12 * fabs(j->sums[p]);
    }
    return FDS_OK;
}

/* ---- the report ---- */

static double p_of(const job *j, uint32_t p) {
    return (1 + (double)j->lower[p]) / (1 + (double)j->shuffles);
}

/* p and two standard errors of it. */
static double most_p_of(const job *j, uint32_t p) {
    return p_of(j, p) + 2 * sqrt(p_of(j, p) / (1 + (double)j->shuffles));
}

static int by_score(const void *left, const void *right, void *context) {
    const double *scores = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    if (scores[a] != scores[b])
        return scores[a] < scores[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* The samples of a provider with the lowest scores. */
static json_t *json_samples(const job *j, uint32_t p, uint32_t *scratch) {
    size_t count = 0;
    json_t *list = json_array();
    bool is_whole = list;
    for (size_t i = 0; i < j->ds->count; i++)
        if (j->ds->provider_ids[i] == p)
            scratch[count++] = (uint32_t)i;
    qsort_r(scratch, count, sizeof *scratch, by_score, j->scores);
    for (size_t i = 0; i < MIN(count, (size_t)SAMPLES_SHOWN) && is_whole; i++)
        is_whole = fds__json_append(
            list,
            json_pack("{s:I, s:o, s:o, s:o}", "sample", (json_int_t)scratch[i], "id",
                      fds__json_string(fds_dataset_sample_name(j->ds, scratch[i])), "label",
                      fds__json_string(fds_dataset_class_name(j->ds, j->ds->labels[scratch[i]])),
                      "score", fds__json_real(j->scores[scratch[i]])));
    return fds__json_keep_if(list, is_whole);
}

static json_t *json_provider(const job *j, uint32_t p, bool is_alarm, uint32_t *scratch) {
    double n = (double)j->sizes[p], mean = n > 0 ? j->sums[p] / n : 0;
    double variance = n > 1 ? MAX(j->squares[p] - n * mean * mean, 0) / (n - 1) : NAN;
    double error = sqrt(variance / n);
    return json_pack(
        "{s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "provider",
        fds__json_string(fds_dataset_provider_name(j->ds, p)), "samples", (json_int_t)j->sizes[p],
        "mean_score", fds__json_real(mean), "standard_error", fds__json_real(error), "statistic",
        fds__json_real(error > 0 ? mean / error : NAN), "p", fds__json_real(p_of(j, p)),
        "p_at_most", fds__json_real(most_p_of(j, p)), "verdict", is_alarm ? "alarm" : "ok",
        "lowest", is_alarm ? json_samples(j, p, scratch) : json_null());
}

static json_t *describe(const job *j, uint32_t *scratch) {
    json_t *list = json_array();
    bool is_whole = list;
    size_t alarms = 0;
    double threshold = j->alpha / j->peers;
    for (uint32_t p = 0; p < j->ds->providers && is_whole; p++) {
        bool is_alarm = most_p_of(j, p) <= threshold;
        if (!j->sizes[p])
            continue;
        alarms += is_alarm;
        is_whole = fds__json_append(list, json_provider(j, p, is_alarm, scratch));
    }
    list = fds__json_keep_if(list, is_whole);
    return json_pack("{s:s, s:s, s:s, s:o, s:f, s:f, s:I, s:I, s:I, s:o}", "format", "fds-labels 2",
                     "check", "labels", "verdict", alarms ? "alarm" : "ok", "data",
                     fds__json_string(j->ds->source), "alpha", j->alpha, "threshold", threshold,
                     "samples", (json_int_t)j->ds->count, "neighbours", (json_int_t)j->neighbours,
                     "shuffles", (json_int_t)j->shuffles, "providers", list);
}

/* ---- all of it ---- */

/* A third of the samples of a class, from 5 to 40, unless a number is given. */
static void choose_neighbours(job *j, fds_params *params) {
    const size_t third = j->ds->count / (NEIGHBOURS_OF_CLASS * (size_t)j->ds->classes);
    if (fds__is_given(params, utility)) {
        j->neighbours =
            (unsigned)strtoul(params->utility + strcspn(params->utility, ":") + 1, NULL, 10);
        return; /* fds_audit_create says what is wrong with it */
    }
    j->neighbours = (unsigned)MAX(MIN(third, (size_t)MOST_NEIGHBOURS), (size_t)LEAST_NEIGHBOURS);
    snprintf(j->utility, sizeof j->utility, "knn:%u", j->neighbours);
    params->utility = j->utility;
}

static fds_status score_samples(job *j, const fds_params *given, const fds_events *events,
                                fds_error *err) {
    fds_audit *audit;
    fds_audit_row row;
    fds_params params = *given;
    const double classes = MAX(j->ds->classes, 2u);
    choose_neighbours(j, &params);
    TRY(fds_audit_create(j->ds, &params, events, &audit, err));
    for (size_t rank = 0; fds_audit_row_at(audit, rank, &row); rank++) {
        double p =
            (row.label_probability * j->neighbours + PRIOR) / (j->neighbours + PRIOR * classes);
        j->scores[row.sample] = -log(1 - WRONG + WRONG * (1 - p) / ((classes - 1) * p));
    }
    fds_audit_free(audit);
    return FDS_OK;
}

static fds_status choose_shuffles(job *j, fds_error *err) {
    for (uint32_t p = 0; p < j->ds->providers; p++)
        j->peers += j->sizes[p] > 0;
    const double least = 3; /* (1 + lower) + 2 sqrt(1 + lower) where no shuffle is as low */
    double wanted = SHUFFLES_EACH * (double)j->peers / j->alpha;
    j->shuffles = (size_t)MIN(MAX(wanted, LEAST_SHUFFLES), MOST_SHUFFLES);
    if (j->alpha * (1 + (double)MOST_SHUFFLES) >= least * j->peers)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_USAGE,
                     "`alpha` %g is too small for %u providers: %d shuffles of the owners show it "
                     "from %.2g on",
                     j->alpha, j->peers, MOST_SHUFFLES,
                     least * j->peers / (1 + (double)MOST_SHUFFLES));
}

static fds_status run(const fds_dataset *ds, const fds_params *params, const fds_events *events,
                      char **json, fds_error *err) {
    OWNED double *numbers = NULL; /* (samples + 3 providers) */
    OWNED uint32_t *places = NULL;
    OWNED size_t *counts = NULL;
    if (!ds->provider_ids || ds->providers < 2)
        return fds__fail(err, FDS_ERR_USAGE, "%s names %s: there is nobody to compare with",
                         ds->source, ds->provider_ids ? "one provider" : "no providers");
    TRY(NEW(numbers, ds->count + 3 * (size_t)ds->providers, err));
    TRY(NEW(places, 3 * ds->count, err));
    TRY(NEW(counts, 2 * (size_t)ds->providers + ds->classes + 1, err));
    job j = {.ds = ds,
             .alpha = params->copies_alpha,
             .seed = params->seed,
             .scores = numbers,
             .sums = numbers + ds->count,
             .sums_now = numbers + ds->count + ds->providers,
             .squares = numbers + ds->count + 2 * (size_t)ds->providers,
             .order = places,
             .owner = places + ds->count,
             .sizes = counts,
             .lower = counts + ds->providers,
             .first = counts + 2 * (size_t)ds->providers};
    TRY(score_samples(&j, params, events, err));
    centre(&j);
    TRY(choose_shuffles(&j, err));
    TRY(shuffle(&j, events, err));
    json_t *about = describe(&j, places + 2 * ds->count);
    *json = about ? fds__json_text(about, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(about);
    return *json ? FDS_OK : fds__fail_json(err);
}

fds_status fds_audit_labels(const fds_params *params, const fds_events *events, char **json,
                            fds_error *err) {
    fds_dataset *train = NULL, *test = NULL;
    if (!params->data)
        return fds__fail(err, FDS_ERR_USAGE, "`data` is missing: name a fetched set or a path");
    if (fds__is_given(params, part))
        return fds__fail(err, FDS_ERR_USAGE, "`part`: training samples are what is paid for");
    TRY(fds_data_open(params->data, params, events, &train, &test, err));
    fds_status status = run(train, params, events, json, err);
    fds_dataset_free(train);
    fds_dataset_free(test);
    return status;
}
