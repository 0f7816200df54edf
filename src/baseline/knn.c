/* SPDX-License-Identifier: Apache-2.0
 *
 * "knn:K": the exact Shapley values of K nearest neighbours, by the recursion of Jia et al.,
 * "Efficient task-specific data valuation for nearest neighbor algorithms", VLDB 2019, Theorem 1.
 *
 * The game is not the sub-models': a coalition is worth the share of the label among the K nearest
 * of its samples, and nothing is trained. utility/knn.c has the recursion, for one test
 * sample and the label asked about; over several the mean is taken (the value is additive). Exact:
 * standard errors are 0. */
#include "baseline/baseline.h"

#include <stdlib.h>
#include <string.h>

/* "knn:K", or "knn:K@" and where the distances are taken, which the value function looks at. */
bool baseline_read_knn(const char *text, uint32_t *k) {
    if (strncmp(text, "knn:", 4) != 0)
        return false;
    size_t digits = strspn(text + 4, "0123456789");
    if (digits < 1 || digits > 9 || (text[4 + digits] && text[4 + digits] != '@'))
        return false;
    *k = (uint32_t)strtoul(text + 4, NULL, 10);
    return *k >= 1;
}

/* The mean over all test samples, or a column each; phi (players): scratch for one of them. */
static fds_status add_up(const baseline_job *job, const fds_utility *value, double *phi,
                         fds_error *err) {
    const fds__baseline_data *data = job->data;
    bool is_each = job->params->scorer == FDS__SCORER_EACH_SAMPLE;
    memset(job->values, 0, job->players * job->columns * sizeof *job->values);
    for (size_t x = 0; x < data->problem->test_count; x++) {
        TRY(fds__utility_knn_label(value, x, data->labels[x], phi, err));
        for (size_t i = 0; i < job->players; i++)
            job->values[i * job->columns + (is_each ? x : 0)] += phi[i];
    }
    for (size_t i = 0; !is_each && i < job->players; i++)
        job->values[i] /= (double)data->problem->test_count;
    return FDS_OK;
}

static fds_status run(baseline_job *job, fds_error *err) {
    const fds_utility *value;
    fds_utility *own;
    TRY(baseline_utility(job, job->params->method, &own, &value, err));
    double *phi = fds__alloc_zero(job->players, sizeof *phi);
    fds_status status =
        phi ? add_up(job, value, phi, err) : fds__fail_nomem(err, job->players * sizeof *phi);
    fds__free(phi);
    fds_utility_free(own);
    return status;
}

static bool is_named(const char *text) {
    uint32_t k;
    return baseline_read_knn(text, &k);
}

const baseline_method baseline_knn = {
    .name = "knn:K",
    .about = "exact values of K nearest neighbours; knn:K@model on features of the service model",
    .takes = "model lr beta batch optimizer",
    .is_named = is_named,
    .is_exact = true,
    .scorers = 1 << FDS__SCORER_CONFIDENCE | 1 << FDS__SCORER_EACH_SAMPLE,
    .why =
        "its values are exact because the utility of a coalition is the share of the label among "
        "K neighbours; use confidence, or per_sample",
    .run = run,
};
