/* SPDX-License-Identifier: Apache-2.0
 * Samples of a dataset as normalised inputs of a network. */
#include "model/model.h"

#include <math.h>
#include <string.h>

/* (sample - mean) / std by channel, in double: rounded once. */
static void normalise(float *values, fds_shape shape, const float *mean, const float *std) {
    size_t plane = (size_t)shape.height * shape.width;
    for (uint32_t c = 0; c < shape.channels; c++)
        for (size_t i = 0; i < plane; i++, values++)
            *values = (float)(((double)*values - mean[c]) / std[c]);
}

fds_status fds__inputs_scale(const fds_dataset *ds, const uint32_t *index, size_t count,
                             const char *network, float *mean, float *std, fds_error *err) {
    const bool takes_tokens = network && fds__text_takes_tokens(network);
    TRY(fds_dataset_stats(ds, index, count, NULL, NULL, mean, std, err));
    for (uint32_t c = 0; c < ds->shape.channels; c++)
        if (takes_tokens) {
            mean[c] = 0.0f;
            std[c] = ds->bytes ? 1.0f / 255.0f : 1.0f;
        } else if (!(std[c] > 0)) { /* a constant channel is only shifted */
            std[c] = 1.0f;
        }
    return FDS_OK;
}

void fds__inputs_scale_fixed(const fds_dataset *ds, const char *network, float *mean, float *std) {
    const bool takes_tokens = network && fds__text_takes_tokens(network);
    for (uint32_t c = 0; c < ds->shape.channels; c++) {
        mean[c] = ds->bytes && !takes_tokens ? 0.5f : 0.0f;
        std[c] = !ds->bytes ? 1.0f : takes_tokens ? 1.0f / 255.0f : 0.5f;
    }
}

fds_status fds_inputs_create(const fds_dataset *ds, const uint32_t *index, size_t count,
                             const float *mean, const float *std, fds_inputs **out,
                             fds_error *err) {
    size_t size = ds->sample_size, bytes;
    for (uint32_t c = 0; c < ds->shape.channels; c++)
        if (!isfinite(mean[c]) || !isfinite(std[c]) || std[c] <= 0)
            return fds__fail(err, FDS_ERR_USAGE, "channel %u: cannot normalise by mean %g, std %g",
                             c, (double)mean[c], (double)std[c]);
    if (count)
        TRY(fds__samples_check(ds, index, count, err));
    if (!fds__mul(count, size * sizeof(float), &bytes))
        return fds__fail(err, FDS_ERR_LIMIT, "%zu samples of %zu numbers are too many", count,
                         size);
    fds_inputs *in;
    TRY(NEW(in, 1, err));
    *in = (fds_inputs){.count = count, .size = size, .shape = ds->shape, .classes = ds->classes};
    in->values = fds__alloc(bytes);
    in->labels = fds__alloc(count * sizeof *in->labels);
    in->ids = fds__alloc(count * sizeof *in->ids);
    if (!in->values || !in->labels || !in->ids) {
        fds_inputs_free(in);
        return fds__fail_nomem(err, bytes);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t id = index ? index[i] : (uint32_t)i;
        in->ids[i] = id;
        in->labels[i] = ds->labels[id];
        fds_dataset_sample(ds, id, in->values + i * size);
        normalise(in->values + i * size, ds->shape, mean, std);
    }
    *out = in;
    return FDS_OK;
}

fds_status fds__inputs_set_targets(fds_inputs *inputs, const fds_dataset *ds, double mean,
                                   double std, fds_error *err) {
    if (!ds->targets)
        return FDS_OK;
    TRY(NEW(inputs->targets, inputs->count, err));
    for (size_t i = 0; i < inputs->count; i++)
        inputs->targets[i] = (float)((ds->targets[inputs->ids[i]] - mean) / std);
    return FDS_OK;
}

void fds_inputs_free(fds_inputs *inputs) {
    if (!inputs)
        return;
    fds__free(inputs->values);
    fds__free(inputs->labels);
    fds__free(inputs->ids);
    fds__free(inputs->targets);
    fds__free(inputs->keys);
    fds__free(inputs);
}

size_t fds_inputs_count(const fds_inputs *inputs) { return inputs->count; }
