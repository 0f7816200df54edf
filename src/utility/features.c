/* SPDX-License-Identifier: Apache-2.0
 *
 * Features of a model: the inputs of the last layer of a network trained on the samples of all
 * players. The network is, bit for bit, that of the coalition of all players in "retrain:10". It
 * does not depend on the labels of the inputs. */
#include "utility/utility.h"

enum { EPOCHS = 10 };

fds_status fds__features_check(const fds__utility_params *params, uint32_t number, fds_error *err) {
    (void)number; /* K counts neighbours, not epochs */
    return fds__retrain_check(params, EPOCHS, err);
}

/* *out: (inputs, size) */
static fds_status compute(fds_lane *lane, const float *weights, const fds_inputs *inputs,
                          size_t size, float **out, fds_error *err) {
    size_t numbers;
    if (!fds__mul(inputs->count, size, &numbers) ||
        numbers > FDS__MAX_UTILITY_MEMORY / sizeof(float))
        return fds__fail(err, FDS_ERR_LIMIT, "%zu features of %zu samples take more than %zu bytes",
                         size, inputs->count, FDS__MAX_UTILITY_MEMORY);
    TRY(NEW(*out, numbers, err));
    return fds__lane_features(lane, inputs, 0, inputs->count, weights, *out, err);
}

fds_status fds__features_make(const fds__utility_making *making, fds__features *out,
                              fds_error *err) {
    fds_net *net = NULL;
    fds_lane *lane = NULL;
    OWNED float *weights = NULL;
    fds_status status = fds__retrain_network(making, EPOCHS, &net, &weights, err);
    if (status == FDS_OK)
        status = fds_lane_create(net, &lane, err);
    if (status == FDS_OK) {
        out->size = fds__net_features(net);
        status = compute(lane, weights, making->data->samples, out->size, &out->samples, err);
    }
    if (status == FDS_OK)
        status = compute(lane, weights, making->data->inputs, out->size, &out->inputs, err);
    fds_lane_free(lane);
    fds_net_free(net);
    return status;
}
