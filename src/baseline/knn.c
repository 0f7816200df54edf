/* SPDX-License-Identifier: Apache-2.0
 *
 * "knn:K": the exact Shapley values of K nearest neighbours, by the recursion of Jia et al.,
 * "Efficient task-specific data valuation for nearest neighbor algorithms", VLDB 2019, Theorem 1.
 *
 * The game is not the sub-models': a coalition is worth the share of the label among the K nearest
 * of its samples, and nothing is trained. utility/knn.c has the recursion; here the label asked
 * about is picked out, and over several test samples the mean is taken (the value is additive),
 * never within the recursion. Exact: there are no standard errors. */
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

/* all (inputs, classes, players) */
static void pick(const baseline_job *job, const double *all) {
    const fds_baseline_data *data = job->data;
    bool is_each = job->params->judge == FDS_EACH_SAMPLE;
    for (size_t i = 0; i < job->players; i++) {
        double sum = 0;
        for (size_t x = 0; x < data->input_count; x++) {
            double phi = all[(x * job->classes + data->labels[x]) * job->players + i];
            if (is_each)
                job->values[i * job->columns + x] = phi;
            sum += phi;
        }
        if (!is_each)
            job->values[i] = sum / (double)data->input_count;
    }
}

fds_status baseline_knn(baseline_job *job, fds_error *err) {
    const fds_baseline_data *data = job->data;
    fds_value_params params = data->value ? *data->value : fds_value_params_default();
    fds_value *value;
    size_t size;
    params.kind = job->params->method;
    if (!fds_mul(data->input_count, job->classes, &size) || !fds_mul(size, job->players, &size))
        return fds_fail_nomem(err, SIZE_MAX);
    FDS_TRY(fds_value_create(&params, data->train, data->players, data->test, data->inputs,
                             data->input_count, 1, &value, err));
    double *all = fds_alloc_zero(size, sizeof *all);
    fds_status status =
        all ? fds_value_knn_shapley(value, all, err) : fds_fail_nomem(err, size * sizeof *all);
    if (status == FDS_OK)
        pick(job, all);
    fds_free(all);
    fds_value_free(value);
    return status;
}
