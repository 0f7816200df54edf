/* SPDX-License-Identifier: Apache-2.0
 *
 * Features of a model: what the last layer of a network sees that was trained on the samples of all
 * players. Its training is that of "retrain:10", so that it is, bit for bit, the network that
 * coalition of all players has there. The labels of the inputs have no part in it. */
#include "utility/utility.h"

enum { EPOCHS = 10 };

fds_status fds_features_check(const fds_value_params *params, uint32_t number, fds_error *err) {
    (void)number; /* of neighbours */
    return fds_retrain_check(params, EPOCHS, err);
}

/* What training and reading need for a while. */
typedef struct {
    fds_net *net;
    fds_lane *lane;
    float *weights;
} desk;

static fds_status train(desk *d, const fds_value_making *making, fds_error *err) {
    const fds_inputs *samples = making->data->samples;
    fds_train_params params = fds_retrain_training(making->params, EPOCHS);
    FDS_TRY(fds_net_create(making->params->network, samples->shape, making->data->classes, &d->net,
                           err));
    FDS_TRY(fds_lane_create(d->net, &d->lane, err));
    d->weights = fds_alloc_zero(d->net->weights, sizeof *d->weights);
    if (!d->weights)
        return fds_fail_nomem(err, d->net->weights * sizeof *d->weights);
    fds_net_init(d->net, params.seed, d->weights);
    FDS_TRY(fds_retrain_all(d->net, samples, &params, d->weights, err));
    return fds_retrain_describe(making->about, d->net, &params) ? FDS_OK : fds_fail_nomem(err, 1);
}

static fds_status read_one(const desk *d, const fds_inputs *inputs, float **out, fds_error *err) {
    size_t numbers;
    if (!fds_mul(inputs->count, fds_net_features(d->net), &numbers) ||
        numbers > FDS_MAX_VALUE_MEMORY / sizeof(float))
        return fds_fail(err, FDS_LIMIT, "%zu features of %zu samples take more than %zu bytes",
                        fds_net_features(d->net), inputs->count, FDS_MAX_VALUE_MEMORY);
    *out = fds_alloc(numbers * sizeof **out);
    if (!*out)
        return fds_fail_nomem(err, numbers * sizeof **out);
    return fds_lane_features(d->lane, inputs, 0, inputs->count, d->weights, *out, err);
}

fds_status fds_features_make(const fds_value_making *making, fds_features *out, fds_error *err) {
    desk d = {0};
    *out = (fds_features){0};
    fds_status status = train(&d, making, err);
    if (status == FDS_OK)
        status = read_one(&d, making->data->samples, &out->samples, err);
    if (status == FDS_OK)
        status = read_one(&d, making->data->inputs, &out->inputs, err);
    if (status == FDS_OK)
        out->size = fds_net_features(d.net);
    else
        fds_features_free(out);
    fds_lane_free(d.lane);
    fds_net_free(d.net);
    fds_free(d.weights);
    return status;
}

void fds_features_free(fds_features *features) {
    fds_free(features->samples);
    fds_free(features->inputs);
    *features = (fds_features){0};
}
