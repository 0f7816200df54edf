/* SPDX-License-Identifier: Apache-2.0
 *
 * "knn:K": the exact Shapley values of K nearest neighbours, by the recursion of Jia et al.,
 * "Efficient task-specific data valuation for nearest neighbor algorithms", VLDB 2019, Theorem 1.
 *
 * The utility of a coalition is the share of the label among the K nearest of its samples; nothing
 * is trained. utility/knn.c has the recursion, for one test sample and its label; over several
 * test samples the value is the mean (values are additive). Exact: standard errors are 0. */
#include "baseline/baseline.h"

#include <stdlib.h>
#include <string.h>

/* "knn:K", or "knn:K@" and the features for the distances, which the utility function reads. */
bool baseline_read_knn(const char *text, uint32_t *k) {
    if (strncmp(text, "knn:", 4) != 0)
        return false;
    size_t digits = strspn(text + 4, "0123456789");
    if (digits < 1 || digits > 9 || (text[4 + digits] && text[4 + digits] != '@'))
        return false;
    *k = (uint32_t)strtoul(text + 4, NULL, 10);
    return *k >= 1;
}

/* The mean over all test samples, or a column for each. */
static fds_status run(baseline_job *job, fds_error *err) {
    const fds__baseline_data *data = job->data;
    bool is_each = job->params->scorer == FDS__SCORER_EACH_SAMPLE;
    const fds_utility *utility;
    double *phi = baseline_alloc(job, job->players, 1, sizeof *phi); /* of one test sample */
    TRY(baseline_check_memory(job, err));
    TRY(baseline_utility(job, job->params->method, &utility, err));
    memset(job->values, 0, job->players * job->columns * sizeof *job->values);
    for (size_t x = 0; x < data->problem->test_count; x++) {
        TRY(fds__utility_knn_label(utility, x, data->labels[x], phi, err));
        for (size_t i = 0; i < job->players; i++)
            job->values[i * job->columns + (is_each ? x : 0)] += phi[i];
    }
    for (size_t i = 0; !is_each && i < job->players; i++)
        job->values[i] /= (double)data->problem->test_count;
    return FDS_OK;
}

static bool is_named(const char *text) {
    uint32_t k;
    return baseline_read_knn(text, &k);
}

const baseline_method baseline_knn = {
    .name = "knn:K",
    .about = "exact values of K nearest neighbours; knn:K@model on features of the service model",
    .takes = BASELINE_TRAINING,
    .is_named = is_named,
    .numbers = "the number of neighbours, from 1, for example knn:5",
    .is_exact = true,
    .scorers = 1 << FDS__SCORER_CONFIDENCE | 1 << FDS__SCORER_EACH_SAMPLE,
    .why =
        "the utility of a coalition is the share of the label among K neighbours; use confidence, "
        "or per_sample",
    .needs_classes = true,
    .run = run,
};
