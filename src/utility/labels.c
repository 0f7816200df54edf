/* SPDX-License-Identifier: Apache-2.0
 * Which label of each test sample values are for, and what all players together give it. */
#include "utility/utility.h"

#include <math.h>

bool fds__labels_describe(const fds__labels *labels, const fds_params *params, bool is_known,
                          json_t *about) {
    double empty = is_known ? labels->empty : NAN, full = is_known ? labels->full : NAN;
    if (labels->aim.targets)
        return fds__json_put(about, "score", json_string(fds__choice(params, score))) &&
               fds__json_put(about, "mean_squared_error",
                             fds__json_real(is_known ? labels->error : NAN)) &&
               fds__json_put(about, "utility_with_none", fds__json_real(empty)) &&
               fds__json_put(about, "utility_with_all", fds__json_real(full));
    if (labels->service &&
        !fds__json_put(about, "service_probs", fds__json_string(params->service_probs)))
        return false;
    return fds__json_put(about, "correctly_classified",
                         is_known ? json_integer((json_int_t)labels->right) : json_null()) &&
           fds__json_put(about, "probability_with_none", fds__json_real(empty)) &&
           fds__json_put(about, "probability_with_all", fds__json_real(full));
}

void fds__label_result(const fds_problem *problem, bool use_truth, const double *empty,
                       const double *full, fds__labels *out) {
    uint32_t classes = problem->train->classes;
    assert(!problem->train->targets);
    out->right = 0;
    out->empty = out->full = 0;
    for (size_t i = 0; i < problem->test_count; i++) {
        uint32_t truth = problem->test_labels[i];
        out->labels[i] = truth;
        if (!full)
            continue;
        const double *answers = out->service ? out->service : full;
        uint32_t predicted = fds__argmax(answers + i * classes, classes);
        out->right += predicted == truth;
        out->predicted[i] = predicted;
        out->labels[i] = use_truth ? truth : predicted;
        out->empty += empty[i * classes + out->labels[i]] / (double)problem->test_count;
        out->full += full[i * classes + out->labels[i]] / (double)problem->test_count;
    }
}

enum { FEWEST_TESTS = 20 }; /* to say that a model is poor */

void fds__labels_warn(const fds_problem *problem, const fds__labels *labels,
                      const fds_events *events) {
    size_t most = 0;
    for (uint32_t c = 0; c < problem->train->classes; c++) {
        size_t count = 0;
        for (size_t i = 0; i < problem->test_count; i++)
            count += problem->test_labels[i] == c;
        most = MAX(most, count);
    }
    bool is_telling = problem->test_count >= FEWEST_TESTS && most < problem->test_count;
    if (is_telling && labels->right <= most && !labels->service)
        fds__log(events, FDS_LOG_WARNING,
                 "the model of all players classifies %zu of %zu test samples correctly, and the "
                 "commonest label alone %zu: values of such a model say little. Another `model` or "
                 "`utility`, more epochs or a higher `lr` may help",
                 labels->right, problem->test_count, most);
}

void fds__label_predictions(const fds_problem *problem, const fds__labels *labels,
                            const double *ends, fds_result *r) {
    size_t classes = problem->train->classes, tests = problem->test_count,
           each = r->predictions / tests;
    for (size_t k = 0; !r->is_mean && k < r->predictions; k++) {
        size_t x = k / each;
        r->samples[k] = problem->tests[x];
        r->labels[k] = each > 1 ? (uint32_t)(k % each) : labels->labels[x];
        r->truth[k] = problem->test_labels[x];
        if (!ends)
            continue;
        r->predicted[k] = labels->predicted[x];
        r->empty[k] = ends[x * classes + r->labels[k]];
        r->full[k] = ends[(tests + x) * classes + r->labels[k]];
        r->confidence[k] = labels->service ? labels->service[x * classes + r->predicted[k]]
                                           : ends[(tests + x) * classes + r->predicted[k]];
    }
}
