/* SPDX-License-Identifier: Apache-2.0
 *
 * model: service models, and samples normalised as a network was trained on them.
 *
 *   inputs.c   samples of a dataset to normalised inputs
 *   model.c    a trained model: training, prediction, its file
 *   service.c  fds_train: a service model for a problem, and its report
 */
#ifndef FDS_MODEL_H
#define FDS_MODEL_H

#include "data/data.h"
#include "lane/lane.h"

/* What samples are normalised with before a network: mean and standard deviation of each channel of
 * the samples of index; the numbers of tokens (a text that begins with embed) stay as they are.
 * network may be NULL. */
fds_status fds__inputs_scale(const fds_dataset *ds, const uint32_t *index, size_t count,
                             const char *network, float *mean, float *std, fds_error *err);
/* The parameter "normalise": by the samples of all players, by constants, or by samples that belong to
 * nobody. With the last two a sub-model does not depend on players that it does not have. */
typedef enum fds__scaling {
    FDS__NORMALISE_PLAYERS,
    FDS__NORMALISE_FIXED,
    FDS__NORMALISE_PUBLIC
} fds__scaling;
/* The constants: bytes, seen as 0..1, become -1..1; floats and tokens stay as they are. */
void fds__inputs_scale_fixed(const fds_dataset *ds, const char *network, float *mean, float *std);
/* Gives inputs of a dataset of a regression their targets, (target - mean) / std; nothing for
 * another dataset. */
fds_status fds__inputs_set_targets(fds_inputs *inputs, const fds_dataset *ds, double mean,
                                   double std, fds_error *err);
/* The network for a dataset: with one output per class, or that of a regression. */
static inline fds_status fds__net_for(const char *text, const fds_dataset *ds, fds_net **out,
                                      fds_error *err) {
    return fds__net_create(text, ds->shape, ds->classes, ds->targets != NULL, out, err);
}
/* What a model normalises by. */
typedef struct fds__scale {
    const float *mean, *std; /* [channels] */
    double target_mean, target_std;
} fds__scale;
/* The model that fds_model_train would make, from weights already trained on samples of that scale. */
fds_status fds__model_create(const fds_dataset *ds, const uint32_t *index, size_t count,
                             const char *network, const fds_train_params *params,
                             const fds__scale *scale, const float *weights,
                             const fds_train_report *report, fds_model **out, fds_error *err);
/* (weights), in the order of the network's tensors. */
const float *fds__model_weights(const fds_model *model);
/* A model from a file in memory, for fuzzing; takes ownership of data. */
fds_status fds__model_parse(const char *path, uint8_t *data, size_t size, fds_model **out,
                            fds_error *err);

typedef struct fds__model_info {
    const char *network; /* its full text, e.g. "conv:6x5p2,relu,...,fc:10" */
    fds_shape shape;
    uint32_t classes;
    size_t weights;
    const float *mean, *std; /* [channels] */
    bool is_regression;
    double target_mean, target_std; /* a regression predicts mean + std times the output */
    const char *sha256;             /* of the weights' bytes, 64 hexadecimal digits */
} fds__model_info;

fds__model_info fds__model_get_info(const fds_model *model);

#endif
