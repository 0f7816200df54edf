/* SPDX-License-Identifier: Apache-2.0
 *
 * Features of a model: what the last layer of a network sees that was trained on the samples of all
 * players. Its training is that of "retrain:10", so that it is, bit for bit, the network that
 * coalition of all players has there. The labels of the inputs have no part in it. */
#include "utility/utility.h"

enum { EPOCHS = 10 };

fds_status fds__features_check(const fds__utility_params *params, uint32_t number, fds_error *err) {
    (void)number; /* of neighbours */
    return fds__retrain_check(params, EPOCHS, err);
}

/* What training and reading need for a while. */
typedef struct {
    fds_net *net;
    fds_lane *lane;
    float *weights;
} own;

static fds_status train(own *d, const fds__utility_making *making, fds_error *err) {
    const fds_inputs *samples = making->data->samples;
    fds_train_params params = fds__retrain_training(making->params, EPOCHS);
    TRY(fds_net_create(making->params->network, samples->shape, making->data->classes, &d->net,
                       err));
    TRY(fds_lane_create(d->net, &d->lane, err));
    d->weights = fds__alloc_zero(d->net->weights, sizeof *d->weights);
    if (!d->weights)
        return fds__fail_nomem(err, d->net->weights * sizeof *d->weights);
    fds_net_init(d->net, params.seed, d->weights);
    TRY(fds__retrain_all(d->net, samples, &params, d->weights, err));
    return fds__retrain_describe(making->about, d->net, &params) ? FDS_OK : fds__fail_nomem(err, 1);
}

static fds_status read_one(const own *d, const fds_inputs *inputs, float **out, fds_error *err) {
    size_t numbers;
    if (!fds__mul(inputs->count, fds__net_features(d->net), &numbers) ||
        numbers > FDS__MAX_UTILITY_MEMORY / sizeof(float))
        return fds__fail(err, FDS_ERR_LIMIT, "%zu features of %zu samples take more than %zu bytes",
                         fds__net_features(d->net), inputs->count, FDS__MAX_UTILITY_MEMORY);
    *out = fds__alloc(numbers * sizeof **out);
    if (!*out)
        return fds__fail_nomem(err, numbers * sizeof **out);
    return fds__lane_features(d->lane, inputs, 0, inputs->count, d->weights, *out, err);
}

fds_status fds__features_make(const fds__utility_making *making, fds__features *out,
                              fds_error *err) {
    own d = {0};
    *out = (fds__features){0};
    fds_status status = train(&d, making, err);
    if (status == FDS_OK)
        status = read_one(&d, making->data->samples, &out->samples, err);
    if (status == FDS_OK)
        status = read_one(&d, making->data->inputs, &out->inputs, err);
    if (status == FDS_OK)
        out->size = fds__net_features(d.net);
    else
        fds__features_free(out);
    fds_lane_free(d.lane);
    fds_net_free(d.net);
    fds__free(d.weights);
    return status;
}

void fds__features_free(fds__features *features) {
    fds__free(features->samples);
    fds__free(features->inputs);
    *features = (fds__features){0};
}
