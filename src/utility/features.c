/* SPDX-License-Identifier: Apache-2.0
 *
 * Features of a model: the inputs of the last layer of a network trained on the samples of all
 * players. The network is, bit for bit, that of the coalition of all players in "retrain:10". It
 * does not depend on the labels of the inputs. */
#include "utility/utility.h"

enum { EPOCHS = 10 };

fds_status fds__features_check(const fds__utility_params *params, uint32_t number, fds_error *err) {
    (void)number; /* of neighbours */
    return fds__retrain_check(params, EPOCHS, err);
}

typedef struct {
    fds_net *net;
    fds_lane *lane;
    float *weights;
} trained;

static fds_status read_one(const trained *d, const fds_inputs *inputs, float **out,
                           fds_error *err) {
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
    trained d = {0};
    *out = (fds__features){0};
    fds_status status = fds__retrain_network(making, EPOCHS, &d.net, &d.weights, err);
    if (status == FDS_OK)
        status = fds_lane_create(d.net, &d.lane, err);
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
