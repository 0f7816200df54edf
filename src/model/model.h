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

/* A model's weights, as its network lays them out. */
const float *fds__model_weights(const fds_model *model);
/* A model from a file already in memory, for fuzzing; takes data over. */
fds_status fds__model_parse(const char *path, uint8_t *data, size_t size, fds_model **out,
                            fds_error *err);

#endif
