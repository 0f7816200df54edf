/* SPDX-License-Identifier: Apache-2.0
 *
 * Controls: a method that knows something of the data must do better than these.
 *
 *   random      independent standard normal numbers: player i's are a function of (seed, i)
 *   same-label  1 where the player's label is that of the test sample, else 0; over all test
 *               samples, the share of those whose label is the player's
 *
 * Neither uses a sub-model, and neither has standard errors. */
#include "baseline/baseline.h"

static fds_status run_random(baseline_job *job, fds_error *err) {
    (void)err;
    for (size_t i = 0; i < job->players; i++) {
        fds_rng rng = fds_rng_make(job->params->seed, FDS__PURPOSE_CONTROL, i, 0);
        for (size_t c = 0; c < job->columns; c++)
            job->values[i * job->columns + c] = fds_rng_normal(&rng);
    }
    return FDS_OK;
}

static fds_status run_same_label(baseline_job *job, fds_error *err) {
    (void)err;
    const fds__baseline_data *data = job->data;
    for (size_t i = 0; i < job->players; i++) {
        double *values = job->values + i * job->columns;
        size_t same = 0;
        for (size_t x = 0; x < data->problem->test_count; x++) {
            bool is_same = data->labels[x] == job->player_labels[i];
            same += is_same;
            if (job->params->scorer == FDS__SCORER_EACH_SAMPLE)
                values[x] = is_same;
        }
        if (job->params->scorer != FDS__SCORER_EACH_SAMPLE)
            values[0] = (double)same / (double)data->problem->test_count;
    }
    return FDS_OK;
}

const baseline_method baseline_random = {
    .name = "random",
    .about = "random numbers, a control",
    .takes = "draw",
    .run = run_random,
};

const baseline_method baseline_same_label = {
    .name = "same-label",
    .about = "whether the labels agree, a control",
    .needs_classes = true,
    .run = run_same_label,
};
