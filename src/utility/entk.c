/* SPDX-License-Identifier: Apache-2.0
 *
 * "entk" and "entk:K": kernel regression (regression.c) with a network's own kernel, the utility
 * function of FreeShap: Wang et al., "Helpful or harmful data? Fine-tuning-free Shapley attribution
 * for explaining language model predictions", ICML 2024. K is the empirical tangent kernel, one for
 * all outputs, of the network as it is initialised or, for "entk:K", as it is once trained on all
 * players' samples as "retrain:K" trains. With Y 1 at a sample's label and 0 elsewhere,
 *
 *     (K_SS + 1e-6 I) B = Y_S        v(s) = softmax(K_xS B)        v(nobody) = 1/classes
 *
 * Gradient descent on a network that stays near its initial weights ends there. The authors'
 * program takes the gradient of output 0 alone for the kernel; this one takes the mean over all
 * outputs, which prefers none.
 *
 * Where a small network cannot distinguish all samples, K_SS has eigenvalues of 0, which rounding to
 * single precision may make less than -1e-6. The ridge is then the first of 1e-5, 1e-4, ... with
 * half of which the matrix of all samples, and so that of every coalition, is positive definite. The
 * parameters of the table record it. */
#include "utility/utility.h"

#include <math.h>
#include <string.h>

static const double RIDGE = 1e-6;

fds_status fds__entk_check(const fds__utility_params *params, uint32_t number, fds_error *err) {
    if (number)
        return fds__retrain_check(params, number, err);
    if (!params->network)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a tangent kernel takes a network, for example \"lenet5\"");
    return FDS_OK;
}

/* ---- making ---- */

/* Whether K + shift I, of all samples, has a Cholesky factor; a (n, n) is scratch. */
static bool is_positive(const fds__regression *r, double shift, double *a) {
    const size_t n = r->data->samples->count;
    memcpy(a, r->between, n * n * sizeof *a);
    for (size_t k = 0; k < n; k++) {
        double pivot = a[k * n + k] + shift;
        if (!(pivot > 0))
            return false;
        fds__regression_step(a, n, k, pivot);
    }
    return true;
}

static fds_status find_ridge(fds__regression *r, fds_error *err) {
    const size_t n = r->data->samples->count;
    OWNED double *scratch = NULL;
    TRY(NEW(scratch, n * n, err));
    for (r->ridge = RIDGE; isfinite(r->ridge) && !is_positive(r, r->ridge / 2, scratch);)
        r->ridge *= 10;
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

fds_status fds__entk_create(fds__utility_making *making, fds_error *err) {
    const size_t n = making->data->samples->count, m = making->data->inputs->count;
    fds__regression *r;
    TRY(fds__regression_create(making, &r, err));
    fds_net *net = NULL;
    OWNED float *weights = NULL, *floats = NULL;
    TRY(NEW(floats, n * MAX(n, m), err));
    fds_status status = fds__retrain_network(making, making->number, &net, &weights, err);
    if (status == FDS_OK)
        status = fill(r, net, weights, floats, err);
    if (status == FDS_OK)
        status = fds__utility_about(making->about,
                                    json_pack("{s:s, s:s, s:f, s:I}", "similarity",
                                              "tangent kernel, mean over outputs", "network",
                                              fds_net_text(net), "ridge", r->ridge, "seed",
                                              (json_int_t)making->params->train.seed),
                                    err);
    fds_net_free(net);
    return status;
}

const fds__utility_kind fds__entk_kind = {.eval = fds__regression_eval,
                                          .free = fds__regression_free};
