/* SPDX-License-Identifier: Apache-2.0
 *
 * Regression: what a prediction is worth, and the targets of results.
 *
 * A table keeps standardised predictions z, of the prediction f = mean + std z, with the mean and
 * the standard deviation of the players' targets. The utility of a coalition for an input with the
 * target y is, as the parameter "score" says,
 *
 *     squared   v(s) = -(f - y)^2                          in squared units of the target
 *     kernel    v(s) = exp(-(f - y)^2 / (2 std^2))         from 0 to 1
 */
#include "utility/utility.h"

#include <math.h>

double fds__aim_score(const fds__aim *aim, size_t input, double prediction) {
    double away = prediction - aim->targets[input], square = away * away;
    return aim->is_kernel ? exp(-square / 2) : 0 - aim->std * aim->std * square; /* no -0 */
}

static double unit(const fds__aim *aim, double z) { return aim->mean + aim->std * z; }

fds_status fds__aim_make(const fds_problem *problem, const fds_params *params,
                         const fds_utility *utility, fds__labels *labels, fds_error *err) {
    const fds_dataset *test = problem->test;
    fds__aim *aim = &labels->aim;
    *aim = (fds__aim){.is_kernel = params->score == 1};
    if (utility) {
        aim->mean = utility->data->target_mean;
        aim->std = utility->data->target_std;
    } else {
        fds__dataset_target_stats(problem->train, problem->samples, problem->sample_count,
                                  &aim->mean, &aim->std);
    }
    TRY(NEW(aim->targets, problem->test_count, err));
    for (size_t i = 0; i < problem->test_count; i++)
        aim->targets[i] = (test->targets[problem->tests[i]] - aim->mean) / aim->std;
    return FDS_OK;
}

void fds__aim_free(fds__aim *aim) {
    fds__free(aim->targets);
    *aim = (fds__aim){0};
}

void fds__aim_result(const fds_problem *problem, bool use_truth, const double *empty,
                     const double *full, fds__labels *out) {
    const double tests = (double)problem->test_count;
    fds__aim *aim = &out->aim;
    out->empty = out->full = out->error = 0;
    for (size_t i = 0; i < problem->test_count; i++) {
        double away = aim->std * (full[i] - aim->targets[i]);
        out->error += away * away / tests;
        if (!use_truth)
            aim->targets[i] = full[i];
        out->empty += fds__aim_score(aim, i, empty[i]) / tests;
        out->full += fds__aim_score(aim, i, full[i]) / tests;
    }
}

/* ---- results ---- */

fds_status fds__aim_predictions(const fds_problem *problem, const fds__labels *labels,
                                bool use_truth, const double *ends, fds_result *r, fds_error *err) {
    const fds__aim *aim = &labels->aim;
    for (size_t k = 0; !r->is_mean && k < r->predictions; k++) {
        double truth = problem->test->targets[problem->tests[k]];
        r->samples[k] = problem->tests[k];
        TRY(fds__result_number(r, truth, &r->truth[k], err));
        if (ends) {
            double predicted = unit(aim, ends[problem->test_count + k]);
            TRY(fds__result_number(r, predicted, &r->predicted[k], err));
            r->empty[k] = fds__aim_score(aim, k, ends[k]);
            r->full[k] = fds__aim_score(aim, k, ends[problem->test_count + k]);
        }
        r->labels[k] = use_truth ? r->truth[k] : r->predicted[k];
    }
    return FDS_OK;
}
