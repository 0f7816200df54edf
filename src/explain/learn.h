/* SPDX-License-Identifier: Apache-2.0
 * What the files that train an explainer share: objective.c, validation.c, learn.c, checkpoint.c,
 * explainer.c and curves.c. */
#ifndef FDS_LEARN_H
#define FDS_LEARN_H

#include "explain/explain.h"

/* ---- objective.c ---- */

/* From a network's outputs u to values phi:
 *     phi_hat = scale u, or scale u_g / |D_g| for each member of a group g,
 *     phi     = phi_hat + (v(1) - v(0) - sum phi_hat) / players.
 * The losses are functions of phi; their gradients go through all of that, back to u. */
typedef struct learn_objective learn_objective;

/* Computes all scales, from the inputs that are learnt from alone. The training must outlive it. */
fds_status learn_objective_create(const fds__training *training,
                                  const fds__explainer_params *params, uint32_t batch,
                                  learn_objective **out, fds_error *err);
void learn_objective_free(learn_objective *objective);
size_t learn_objective_outputs(const learn_objective *objective); /* of the network: all labels */
double learn_objective_scale(const learn_objective *objective);
/* (outputs) where the last layer's bias starts: the mean of the targets, else 0. */
const float *learn_objective_start(const learn_objective *objective);
/* phi (classes, players) of an input, from u (outputs). */
void learn_values(const learn_objective *objective, size_t input, const float *u, double *phi);
/* The loss of a step on inputs[batch], from u (batch, outputs), and its gradient by u. What is
 * drawn depends on seed, epoch and step alone. */
fds_status learn_objective_apply(learn_objective *objective, const uint32_t *inputs, uint32_t epoch,
                                 uint32_t step, const float *u, double *loss, float *gradient,
                                 fds_error *err);

/* Mean cross-entropy of the labels of inputs[count] under softmax(u), u (count, classes), and its
 * gradient by u. */
double learn_cross_entropy(const fds__training *training, const uint32_t *inputs, size_t count,
                           const float *u, float *gradient);

/* ---- validation.c ---- */

/* The paper's loss on inputs and coalitions kept out. Their utilities are validation in memory. */
typedef struct learn_validation learn_validation;

fds_status learn_validation_create(const fds__training *training, learn_validation **out,
                                   fds_error *err);
void learn_validation_free(learn_validation *validation);
uint64_t learn_validation_checksum(const learn_validation *validation);
fds_status learn_validation_loss(learn_validation *validation, const learn_objective *objective,
                                 fds__deep_infer *infer, double *loss, fds_error *err);

/* ---- curves.c ---- */

/* Appends one JSON object a line: {"epoch", "lr", "loss", "validation_loss"}. */
void learn_metrics_print(const fds__metric *metrics, size_t count, fds__text *text);
/* Reads exactly count such lines back, to the bit; the caller fds__frees *metrics. FDS_ERR_FORMAT. */
fds_status learn_metrics_parse(const char *where, const char *text, size_t count,
                               fds__metric **metrics, fds_error *err);
/* metrics.jsonl and curves.svg in dir. */
fds_status learn_curves_write(const char *dir, const fds__metric *metrics, size_t count,
                              uint32_t best_epoch, fds_error *err);

/* ---- checkpoint.c ---- */

/* All of a network's tensors in memory: weights and running statistics. */
typedef struct learn_weights {
    size_t count;
    char (*names)[64];
    size_t *offsets; /* (count + 1) within values */
    float *values;
} learn_weights;

fds_status learn_weights_take(learn_weights *weights, const fds__deep *net, fds_error *err);
/* Writes those tensors of the network that weights has by name. */
fds_status learn_weights_give(const learn_weights *weights, fds__deep *net, fds_error *err);
void learn_weights_free(learn_weights *weights);

/* Everything that the bits of a training depend on. */
fds_status learn_describe(const fds__training *training, const fds__explainer_params *params,
                          uint64_t weights_checksum, uint64_t validation_checksum, fds__text *text,
                          fds_error *err);

/* A training at the end of an epoch. */
typedef struct learn_state {
    const char *text; /* of learn_describe */
    bool is_warm_up;
    uint32_t epoch; /* of its stage, made so far */
    fds__deep *net;
    learn_weights *best;        /* not in warming up */
    const fds__metric *metrics; /* (epoch), not in warming up */
} learn_state;

fds_status learn_checkpoint_write(const char *path, const learn_state *state, fds_error *err);

/* A checkpoint that was read. */
typedef struct learn_checkpoint {
    fds__safetensors *file;
    bool is_warm_up;
    uint32_t epoch;
    uint64_t steps;
    fds__metric *metrics; /* (epoch), or NULL */
} learn_checkpoint;

/* One that fits the text; FDS_ERR_NOT_FOUND when there is none, FDS_ERR_USAGE when it is of another
 * training, else what is wrong with it. */
fds_status learn_checkpoint_read(const char *path, const char *text, learn_checkpoint *checkpoint,
                                 fds_error *err);
/* Puts its tensors into the network and best (NULL in warming up), which has the network's names.
 */
fds_status learn_checkpoint_restore(const char *path, const learn_checkpoint *checkpoint,
                                    fds__deep *net, learn_weights *best, fds_error *err);
void learn_checkpoint_free(learn_checkpoint *checkpoint);

/* ---- learn.c ---- */

enum { LEARN_WARM_UP = 10 }; /* epochs */

/* Seconds between two checkpoints at the least, and below which a training leaves none. Tests set
 * it to 0: one after every epoch. */
extern double learn_checkpoint_s;

/* ---- explainer.c ---- */

/* A new network for answers, its weights yet to be written into explainer_net. groups: where
 * outputs are groups, else NULL; they are copied. */
fds_status learn_explainer_create(const char *network, fds__precision precision, size_t players,
                                  uint32_t classes, fds_shape shape, const fds_groups *groups,
                                  double scale, unsigned threads, fds__explainer **out,
                                  fds_error *err);
fds__deep *learn_explainer_net(fds__explainer *explainer);

#endif
