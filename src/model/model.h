/* SPDX-License-Identifier: Apache-2.0
 *
 * model: service models, and samples brought to the scale that a network was trained on.
 *
 *   inputs.c  dataset to normalised inputs
 *   model.c   a trained model: training, predicting, its file
 */
#ifndef FDS_MODEL_H
#define FDS_MODEL_H

#include "data/data.h"
#include "lane/lane.h"

/* The model that fds_model_train makes, from weights that were trained so already. */
fds_status fds__model_create(const fds_dataset *ds, const uint32_t *index, size_t count,
                             const char *network, const fds_train_params *params,
                             const float *weights, const fds_train_report *report, fds_model **out,
                             fds_error *err);
/* A model's weights, as its network lays them out. */
const float *fds__model_weights(const fds_model *model);
/* A model from a file already in memory, for fuzzing; takes data over. */
fds_status fds__model_parse(const char *path, uint8_t *data, size_t size, fds_model **out,
                            fds_error *err);

typedef struct fds__model_info {
    const char *network; /* its text in full, e.g. "conv:6x5p2,relu,...,fc:10" */
    fds_shape shape;
    uint32_t classes;
    size_t weights;
    const float *mean, *std; /* [channels] */
    const char *sha256;      /* of the weights' bytes, 64 hexadecimal digits */
} fds__model_info;

fds__model_info fds__model_get_info(const fds_model *model);

typedef struct fds__score {
    size_t count;
    double loss; /* mean cross-entropy of the true label */
    double accuracy;
} fds__score;

fds_status fds__model_score(const fds_model *model, const fds_dataset *ds, const uint32_t *index,
                            size_t count, unsigned threads, fds__score *score,
                            const fds_events *events, fds_error *err);

#endif
