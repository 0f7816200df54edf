/* SPDX-License-Identifier: Apache-2.0
 *
 * "entk" and "entk:K": kernel regression (regression.c) with a network's own kernel, what FreeShap
 * values data by: Wang et al., "Helpful or harmful data? Fine-tuning-free Shapley attribution for
 * explaining language model predictions", ICML 2024. K is the empirical tangent kernel, one for all
 * outputs, of the network as it is initialised or, for "entk:K", as it is once trained on all
 * players' samples as "retrain:K" trains. With Y 1 at a sample's label and 0 elsewhere,
 *
 *     (K_SS + 1e-6 I) B = Y_S        v(s) = softmax(K_xS B)        v(nobody) = 1/classes
 *
 * A network trained by gradient descent that stays near where it started ends there. The authors'
 * program takes the gradient of output 0 alone for the kernel, this one the mean over all outputs,
 * of which none is first.
 *
 * Where samples outnumber what a small network can tell apart, K_SS has eigenvalues of 0 which, in
 * single precision, are as often below it, and by more than 1e-6: the ridge is then 1e-5, 1e-4,
 * ..., the first with which the matrix of all samples is positive definite by half of it, and with
 * it that of every coalition. */
#include "utility/utility.h"

#include <math.h>
#include <string.h>

static const double RIDGE = 1e-6;

fds_status fds__entk_check(const fds__utility_params *params, uint32_t number, fds_error *err) {
    if (number)
        return fds__retrain_check(params, number, err);
    if (!params->network)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a tangent kernel needs a network, for example \"lenet5\"");
    return FDS_OK;
}

/* ---- making ---- */

/* What the kernel depends on besides the data. */
static fds_status describe(json_t *about, const fds_net *net, const fds_train_params *train,
                           uint32_t number, fds_error *err) {
    json_t *part =
        json_pack("{s:s, s:s, s:f, s:I}", "similarity", "tangent kernel, mean over outputs",
                  "network", fds_net_text(net), "ridge", RIDGE, "seed", (json_int_t)train->seed);
    bool right = part && json_object_update(about, part) == 0;
    json_decref(part);
    if (right && number)
        right = fds__retrain_describe(about, net, train);
    return right ? FDS_OK : fds__fail_nomem(err, 1);
}

/* Whether K + shift I, of all samples, has a Cholesky factor; a (n, n) is scratch. */
static bool is_positive(const fds__regression *r, double shift, double *a) {
    const size_t n = r->data->samples->count;
    memcpy(a, r->between, n * n * sizeof *a);
    for (size_t k = 0; k < n; k++) {
        double *row = a + k * n;
        if (!(row[k] + shift > 0))
            return false;
        const double root = sqrt(row[k] + shift);
        for (size_t j = k; j < n; j++)
            row[j] /= root;
        for (size_t i = k + 1; i < n; i++)
            fds__utility_add(n - i, -row[i], row + i, a + i * n + i);
    }
    return true;
}

static fds_status find_ridge(fds__regression *r, fds_error *err) {
    const size_t n = r->data->samples->count;
    double *scratch = fds__alloc_zero(n * n, sizeof *scratch);
    if (!scratch)
        return fds__fail_nomem(err, n * n * sizeof *scratch);
    for (r->ridge = RIDGE; isfinite(r->ridge) && !is_positive(r, r->ridge / 2, scratch);)
        r->ridge *= 10;
    fds__free(scratch);
    return FDS_OK;
}

static fds_status fill(fds__regression *r, const fds_net *net, const float *weights, float *floats,
                       fds_error *err) {
    const fds__utility_data *data = r->data;
    const size_t n = data->samples->count, m = data->inputs->count;
    TRY(fds__net_tangent(net, weights, data->samples, data->samples, data->workers, floats, NULL,
                         err));
    for (size_t i = 0; i < n * n; i++)
        r->between[i] = (double)floats[i];
    TRY(fds__net_tangent(net, weights, data->samples, data->inputs, data->workers, floats, NULL,
                         err));
    for (size_t i = 0; i < n * m; i++) /* (samples, inputs) to (inputs, samples) */
        r->inputs[i % m * n + i / m] = (double)floats[i];
    r->sharpness = 1;
    return find_ridge(r, err);
}

static fds_status make(fds__regression *r, const fds__utility_making *making, const fds_net *net,
                       fds_error *err) {
    const fds_inputs *samples = r->data->samples;
    fds_train_params params = fds__retrain_training(making->params, making->number);
    float *weights = fds__alloc_zero(net->weights, sizeof *weights);
    float *floats = fds__alloc_zero(samples->count * MAX(samples->count, r->data->inputs->count),
                                    sizeof *floats);
    fds_status status = weights && floats ? FDS_OK : fds__fail_nomem(err, net->weights);
    if (status == FDS_OK)
        status = describe(making->about, net, &params, making->number, err);
    if (status == FDS_OK)
        fds_net_init(net, params.seed, weights);
    if (status == FDS_OK && making->number)
        status = fds__retrain_all(net, samples, &params, weights, err);
    if (status == FDS_OK)
        status = fill(r, net, weights, floats, err);
    fds__free(weights);
    fds__free(floats);
    return status;
}

fds_status fds__entk_create(fds__utility_making *making, fds_error *err) {
    const fds__utility_data *data = making->data;
    fds__regression *r = NULL;
    fds_net *net = NULL;
    TRY(fds_net_create(making->params->network, data->samples->shape, data->classes, &net, err));
    fds_status status = fds__regression_create(data, &r, &making->memory, err);
    if (status == FDS_OK)
        status = make(r, making, net, err);
    fds_net_free(net);
    if (status != FDS_OK) {
        fds__regression_free(r);
        return status;
    }
    making->self = r;
    return FDS_OK;
}

const fds__utility_kind fds__entk_kind = {.eval = fds__regression_eval,
                                          .free = fds__regression_free};
