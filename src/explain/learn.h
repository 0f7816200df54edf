/* SPDX-License-Identifier: Apache-2.0
 * What the files that train an explainer share. */
#ifndef FDS_LEARN_H
#define FDS_LEARN_H

#include "explain/explain.h"

/* ---- objective.c ---- */

/* A coalition drawn for an input of the batch. */
typedef struct learn_draw {
    size_t row, slot; /* slot: place in the batch * draws + draw */
} learn_draw;

/* From a network's outputs u to values phi:
 *     phi_hat = scale u, or scale u_g / |D_g| for each member of a group g,
 *     phi     = phi_hat + (v(1) - v(0) - sum phi_hat) / players.
 * The losses are functions of phi; their gradients go through all of that, back to u.
 *
 * With factors H (factors.c) the outputs are coefficients, phi = (v(1) - v(0)) / players + H scale u.
 * Losses then need no values of players: the distance of values is that of coefficients, and
 *     s'phi = |s| (v(1) - v(0)) / players + (s'H) scale u.
 * So "values" are then coefficients c = scale u, the membership of a coalition is s'H, and its utility
 * is counted without the equal shares of its members. width: players, or factors. */
typedef struct learn_objective {
    const fds__training *training;
    fds__objective kind;
    bool is_by_group, takes_all;
    uint32_t batch;
    uint64_t seed;
    size_t each, outputs; /* outputs per label: players, groups or factors; of all labels */
    size_t width;         /* values per label */
    double gamma, scale, divisor;
    float *start;        /* (classes, width) initial bias of the last layer: mean targets, or 0 */
    double *phi, *slope; /* (classes, width) of one input */
    /* FDS__OBJECTIVE_PAPER */
    size_t draws, units; /* units: pairs or single rows, whichever the plan has */
    double *cumulative;  /* (units) sums of their weights */
    learn_draw *drawn;   /* (batch, draws) */
    double *members;     /* (draws, width) of one input */
    double *weights;     /* (draws), they add up to 1 */
    double *v;           /* (batch, draws, classes) */
    double *rest;        /* (classes, draws) */
} learn_objective;

/* Computes all scales, from the training inputs alone. The training must outlive the objective;
 * learn_objective_free is needed after a failure too. */
fds_status learn_objective_init(learn_objective *objective, const fds__training *training,
                                const fds__explainer_params *params, uint32_t batch,
                                fds_error *err);
void learn_objective_free(learn_objective *objective);
/* phi (classes, width) of an input, from u (outputs). */
void learn_values(const learn_objective *objective, size_t input, const float *u, double *phi);
/* s (players) as 0 and 1, or with factors s'H: out (width). */
void learn_members(const fds__training *training, const uint64_t *s, double *out);
/* What s would have of v(1) - v(0), of one label and input, if all players had equal shares: 0 without
 * factors. */
double learn_equal_share(const fds__training *training, const uint64_t *s, size_t input,
                         size_t label);
/* The loss of a step on inputs[batch], from u (batch, outputs), and its gradient with respect to u.
 * The coalitions drawn depend on seed, epoch and step alone. */
fds_status learn_objective_apply(learn_objective *objective, const uint32_t *inputs, uint32_t epoch,
                                 uint32_t step, const float *u, double *loss, float *gradient,
                                 fds_error *err);

/* Mean cross-entropy of the labels of inputs[count] under softmax(u), u (count, classes), and its
 * gradient with respect to u. */
double learn_cross_entropy(const fds__training *training, const uint32_t *inputs, size_t count,
                           const float *u, float *gradient);

/* ---- validation.c ---- */

/* The paper's loss on validation inputs and validation coalitions, whose utilities are in memory. */
typedef struct learn_validation {
    const fds__training *training;
    size_t rows, first; /* first: number of the first validation input */
    double weights_sum;
    size_t width;       /* as in the objective */
    float *members;     /* (rows, width) */
    float *v;           /* (validation, classes, rows) v(s) - v(0), without equal shares */
    double *read, *phi; /* (validation, classes) of one row; (classes, width) of one input */
    float *phi32, *fit; /* (classes, width), (classes, rows) of one input */
} learn_validation;

/* learn_validation_free is needed after a failure too. */
fds_status learn_validation_init(learn_validation *validation, const fds__training *training,
                                 fds_error *err);
void learn_validation_free(learn_validation *validation);
uint64_t learn_validation_checksum(const learn_validation *validation);
fds_status learn_validation_loss(learn_validation *validation, const learn_objective *objective,
                                 fds__deep_infer *infer, double *loss, fds_error *err);

/* ---- curves.c ---- */

/* Appends one JSON object per line: {"epoch", "lr", "loss", "validation_loss"}. */
void learn_metrics_print(const fds__metric *metrics, size_t count, fds__text *text);
/* Reads exactly count such lines back, to the bit; the caller fds__frees *metrics. FDS_ERR_FORMAT. */
fds_status learn_metrics_parse(const char *where, const char *text, size_t count,
                               fds__metric **metrics, fds_error *err);
/* metrics.jsonl and curves.svg in dir. */
fds_status learn_curves_write(const char *dir, const fds__metric *metrics, size_t count,
                              uint32_t best_epoch, fds_error *err);

/* ---- checkpoint.c ---- */

/* A copy of a network's tensors: weights and running statistics. */
typedef struct learn_weights {
    size_t count;
    char (*names)[64];
    size_t *offsets; /* (count + 1) within values */
    float *values;
} learn_weights;

fds_status learn_weights_take(learn_weights *weights, const fds__deep *net, fds_error *err);
/* Writes the tensors of the network whose names weights has. */
fds_status learn_weights_give(const learn_weights *weights, fds__deep *net, fds_error *err);
void learn_weights_free(learn_weights *weights);

/* Appends everything that the bits of a training depend on. */
fds_status learn_describe(const fds__training *training, const fds__explainer_params *params,
                          uint64_t weights_checksum, uint64_t validation_checksum, fds__text *text,
                          fds_error *err);

/* A training at the end of an epoch. */
typedef struct learn_state {
    const char *text; /* of learn_describe */
    bool is_warm_up;
    uint32_t epoch; /* completed epochs of the stage */
    fds__deep *net;
    learn_weights *best;        /* not while warming up */
    const fds__metric *metrics; /* (epoch), not while warming up */
} learn_state;

fds_status learn_checkpoint_write(const char *path, const learn_state *state,
                                  const fds_events *events, fds_error *err);

/* A checkpoint as read from its file. */
typedef struct learn_checkpoint {
    fds__safetensors *file;
    bool is_warm_up;
    uint32_t epoch;
    uint64_t steps;
    fds__metric *metrics; /* (epoch), or NULL */
} learn_checkpoint;

/* text: of learn_describe. FDS_ERR_NOT_FOUND: there is none, FDS_ERR_USAGE: it is of another
 * training. */
fds_status learn_checkpoint_read(const char *path, const char *text, learn_checkpoint *checkpoint,
                                 fds_error *err);
/* Copies its tensors into the network and into best, which has the network's names (NULL while
 * warming up). */
fds_status learn_checkpoint_restore(const char *path, const learn_checkpoint *checkpoint,
                                    fds__deep *net, learn_weights *best, fds_error *err);
void learn_checkpoint_free(learn_checkpoint *checkpoint);

/* ---- learn.c ---- */

enum { LEARN_WARM_UP = 10 }; /* epochs */

/* The least seconds between two checkpoints; a shorter training leaves none. Tests set it to 0: one
 * after every epoch. */
extern double learn_checkpoint_s;

/* ---- explainer.c ---- */

/* A network for answers; the caller writes its weights into learn_explainer_net. groups, which are
 * copied: where outputs are groups, else NULL. factors (players, rank), which are copied: where they
 * are coefficients, else NULL. */
fds_status learn_explainer_create(const char *network, fds__precision precision, size_t players,
                                  uint32_t classes, fds_shape shape, const fds_groups *groups,
                                  const float *factors, size_t rank, double scale, unsigned threads,
                                  fds__explainer **out, fds_error *err);
fds__deep *learn_explainer_net(fds__explainer *explainer);

#endif
