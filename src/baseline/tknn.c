/* SPDX-License-Identifier: Apache-2.0
 *
 * "tknn:T": the exact Shapley values of a vote among all samples within a distance T. Wang, Zhu, Wang,
 * Jia and Mittal, "Threshold KNN-Shapley: a linear-time and privacy-friendly approach to data
 * valuation", 2023. utility/tknn.c has the formula, for one test sample and its label; over several
 * the value is the mean.
 *
 * With `private`, the two counts of each test sample (its neighbours of the label, and of other labels)
 * get discrete Gaussian noise, and each player's value is computed from these noisy counts and from its
 * own sample. A sample changes one of the two counts by 1, so their L2 sensitivity is 1; rho is divided
 * evenly among the test samples. What one sample changes in the values of all others is then
 * (epsilon, delta)-differentially private. docs/tknn.md has the proof, and what must be public. */
#include "baseline/baseline.h"
#include "privacy/privacy.h"

#include <math.h>
#include <string.h>

/* The noise of the counts of one of so many test samples. */
static fds_status make_noise(const fds_params *p, size_t queries, fds__dp_noise *out,
                             fds_error *err) {
    const uint64_t rho = fds__zcdp_rho_nano(p->private_epsilon, p->private_delta);
    *out = (fds__dp_noise){FDS__GAUSS, 1, rho / queries};
    if (!out->cost_nano)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`private_epsilon` %g and `private_delta` %g are too small for %zu test "
                         "samples",
                         p->private_epsilon, p->private_delta, queries);
    return fds__dp_check(out, err);
}

json_t *baseline_tknn_privacy(const fds_params *p, size_t queries) {
    fds__dp_noise noise;
    if (make_noise(p, queries, &noise, NULL) != FDS_OK)
        return json_null();
    double rho = (double)noise.cost_nano * (double)queries / (double)FDS__NANO;
    return json_pack("{s:f, s:f, s:f, s:f, s:I, s:s, s:f}", "epsilon", p->private_epsilon, "delta",
                     p->private_delta, "epsilon_spent", fds__zcdp_epsilon(rho, p->private_delta),
                     "rho", rho, "queries", (json_int_t)queries, "mechanism", "gauss", "sigma",
                     fds__dp_deviation(&noise));
}

/* Counts below the noise say little but would weigh most, by 1/c: they are filled up to one standard
 * deviation with samples of random labels. This reads noisy counts only, and so costs nothing. */
static fds_status add_noise(const fds__dp_noise *noise, uint32_t classes, fds__tknn_counts *counts,
                            fds_error *err) {
    int64_t both[2] = {counts->same, counts->other};
    TRY(fds__dp_add(noise, &fds__system_bits, both, both, 2, err));
    const int64_t same = MAX(both[0], 0), other = MAX(both[1], 0);
    const int64_t lack = MAX((int64_t)ceil(fds__dp_deviation(noise)) - same - other, 0);
    *counts = (fds__tknn_counts){same + lack / classes, other + lack - lack / classes};
    return FDS_OK;
}

/* Of one test sample: phi (players). noise NULL: exact. */
static fds_status value_one(const fds_utility *utility, size_t x, uint32_t label,
                            const fds__dp_noise *noise, double *phi, fds_error *err) {
    fds__tknn_counts counts;
    if (!noise)
        return fds__utility_knn_label(utility, x, label, phi, err);
    fds__tknn_count(utility, x, label, &counts);
    TRY(add_noise(noise, utility->classes, &counts, err));
    fds__tknn_values(utility, x, label, counts, phi);
    return FDS_OK;
}

/* The mean over all test samples, or a column for each. */
static fds_status run(baseline_job *job, fds_error *err) {
    const fds__baseline_data *data = job->data;
    const size_t tests = data->problem->test_count;
    bool is_each = job->params->scorer == FDS__SCORER_EACH_SAMPLE;
    const double start = fds__now_s();
    const fds_utility *utility;
    fds__dp_noise noise;
    double *phi = baseline_alloc(job, job->players, 1, sizeof *phi);
    TRY(baseline_check_memory(job, err));
    TRY(baseline_utility(job, job->params->method, &utility, err));
    if (job->params->is_private)
        TRY(make_noise(job->params, tests, &noise, err));
    memset(job->values, 0, job->players * job->columns * sizeof *job->values);
    for (size_t x = 0; x < tests; x++) {
        TRY(fds__report(job->events, "values", "test samples", x, tests, start, err));
        TRY(value_one(utility, x, data->labels[x], job->params->is_private ? &noise : NULL, phi,
                      err));
        for (size_t i = 0; i < job->players; i++)
            job->values[i * job->columns + (is_each ? x : 0)] += phi[i];
    }
    for (size_t i = 0; !is_each && i < job->players; i++)
        job->values[i] /= (double)tests;
    for (size_t i = 0; job->params->is_private && job->errors && i < job->players * job->columns;
         i++)
        job->errors[i] = NAN;
    return FDS_OK;
}

static bool is_named(const char *text) {
    double threshold;
    return fds__tknn_read(text, &threshold);
}

const baseline_method baseline_tknn = {
    .name = "tknn:T",
    .about = "exact values of a vote among all samples within the distance T; tknn: a tenth of the "
             "test samples are that close to each other; --private adds noise",
    .is_named = is_named,
    .numbers = "a distance above 0, for example tknn:2.5, or nothing",
    .is_exact = true,
    .scorers = 1 << FDS__SCORER_CONFIDENCE | 1 << FDS__SCORER_EACH_SAMPLE,
    .why = "the utility of a coalition is the share of the label among its neighbours; use "
           "confidence, or per_sample",
    .needs_classes = true,
    .run = run,
};
