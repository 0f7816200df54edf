/* SPDX-License-Identifier: Apache-2.0
 * A network's workspace, which the files of the engine share. */
#ifndef FDS_LANE_WORKSPACE_H
#define FDS_LANE_WORKSPACE_H

#include "lane/kernels.h"
#include "lane/lane.h"
#include "lane/layer_kernels.h"
#include "lane/winograd_kernels.h"

/* The numbers between two stages for a group of samples: (channels, height + 2 pad, width + 2 pad,
 * lanes). A row is rounded up to 16 floats. */
typedef struct fds__boundary {
    fds_shape shape;
    uint32_t pad;
    bool wide;                         /* 16 lanes for every group: fully connected layers */
    size_t column, row, plane, origin; /* strides in floats; origin: of the first pixel within */
    float *value, *grad;
    float *mask; /* after dropout: (channels, height, width, 16), what it multiplies with */
} fds__boundary;

typedef enum lane_stage_kind {
    LANE_STAGE_CONV,
    LANE_STAGE_MAP,
    LANE_STAGE_FC,
    LANE_STAGE_FOLD, /* from here on: layers.c */
    LANE_STAGE_AVERAGE,
    LANE_STAGE_TANH,
    LANE_STAGE_GELU,
    LANE_STAGE_NORM, /* batchnorm */
    LANE_STAGE_DROP,
    LANE_STAGE_EMBED,
    LANE_STAGE_FORK, /* the begin of a residual block: a copy */
    LANE_STAGE_JOIN, /* its end: a sum */
} lane_stage_kind;

#define LANE_NO_PLACE UINT32_MAX

/* One step of the plan. relu is part of the stage before it, after its maxpool: the two commute. */
typedef struct lane_stage {
    lane_stage_kind kind;
    uint32_t in; /* the boundary that it reads; it writes the one after its own number */
    /* The end of a residual block: the other boundary that it reads. Its begin: the boundary that
     * has the gradient of the skip. */
    uint32_t other;
    bool has_skip;           /* join: a projection writes what it reads */
    const fds__layer *layer; /* conv, fc: without a stride */
    fds_shape out;           /* map: see the boundary */
    uint32_t pool;           /* map: 1 for none */
    bool relu;               /* map, fc */
    bool input_grad;         /* a layer before it has weights */
    fds__tile forward, backward, weights, tail;
    /* A convolution with a stride (plan.c): unfolded is the layer of the text, layer is folded. Its
     * filters, then biases, and their gradient are weights_own and grad_own. */
    const fds__layer *unfolded; /* or NULL */
    fds__layer folded;
    uint32_t fold; /* fold, conv: F */
    float *weights_own, *grad_own;
    uint32_t *places; /* (filters of layer): which of the text's filters, LANE_NO_PLACE: a zero */
    /* Batchnorm: norm (4, channels) has the mean and 1 / the standard deviation that it normalises
     * with, and, after lane_norm_sum, the means of dy and of dy times the normalised x. is_batch:
     * these statistics are the mini-batch's. */
    double *norm;
    bool is_batch;
    uint32_t normalised_by; /* conv, fc: the batchnorm directly after it; 0: none */
    /* A wide convolution (winograd.c): tiles that go through it together, forward and for the
     * gradients of the input and of the filters. */
    bool is_wide;
    uint32_t run, run_input, run_filters;
} lane_stage;

enum { LANE_MAX_STAGES = 4 * FDS__MAX_LAYERS };

struct fds_lane {
    const fds_net *net;
    const fds__kernels *kernels;
    const lane_layer_kernels *layer_kernels;
    const lane_winograd_kernels *winograd;
    uint32_t stage_count, lanes; /* lanes: of the group that the boundaries are laid out for */
    bool keeps_values;           /* backward leaves all values as they are */
    lane_stage stages[LANE_MAX_STAGES];
    /* Stage i takes bounds[in] to bounds[i + 1], of the group at work. With batchnorm all groups of
     * a mini-batch go through the stages side by side: groups (group_count, stage_count + 1). */
    fds__boundary *bounds, *groups;
    size_t group_count;
    bool is_training; /* batchnorm takes the mini-batch's statistics, dropout drops */
    uint64_t seed;    /* of dropout, with the epoch */
    uint32_t epoch;
    float *more;      /* memory of all groups but the first */
    size_t more_size; /* in floats */
    float *arena;
    size_t arena_size;   /* in floats */
    float *grad, *m, *v; /* (weights) */
    float *scratch;
    void *places; /* train.c: scratch and order of an epoch's members */
    size_t place_capacity;
    uint16_t labels[FDS__LANES];
    float losses[FDS__LANES];
};

/* As fds_lane_create; with keeps_values (more memory) one forward serves several backward passes. */
fds_status lane_create(const fds_net *net, bool keeps_values, fds_lane **out, fds_error *err);
static inline size_t lane_round_up(size_t n) {
    return (n + FDS__LANES - 1) / FDS__LANES * FDS__LANES;
}
/* Memory for the groups of a mini-batch, for networks with batchnorm. */
fds_status lane_reserve_groups(fds_lane *lane, size_t batch, fds_error *err);
static inline void lane_use_group(fds_lane *lane, size_t group) {
    lane->bounds = lane->groups + group * (lane->stage_count + 1);
}
/* Strides for a number of lanes, and zeros around the input of convolutions. */
void lane_lay_out(fds_lane *lane, uint32_t lanes);
/* Zeroes all but the first rows x columns of every channel: borders and the ends of rows. */
void lane_clear_around(const fds__boundary *b, float *buffer, size_t rows, size_t columns);

/* Forward for at most 16 inputs: the logits are in the last boundary's value, (classes, 16). */
void fds__lane_forward(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                       uint32_t count, const float *weights);
/* lane->grad becomes the gradient of a mini-batch's mean loss, and has the mini-batch's statistics
 * at the places of running ones. Returns the sum of the losses. With batchnorm, the members must
 * have been reserved (fds__lane_reserve). */
double fds__lane_backprop(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                          size_t count, const float *weights);
/* The gradients of one output of the network, for each input apart, after a forward of 16 inputs in
 * a lane that keeps values. The gradients by a convolution's filters and biases go to each[stage]
 * (weights, then biases, 16). The gradients by a fully connected layer's weights are the products
 * of the grad of the boundary after it (outputs, 16) and the value of the one before it (inputs,
 * 16). */
void fds__lane_backward_each(fds_lane *lane, uint32_t output, const float *weights,
                             float *const *each);

/* ---- layers.c ---- */

/* Stage number i, of a group of count samples. Backward writes the gradient of the boundary that it reads. */
void lane_layer_forward(fds_lane *lane, uint32_t i, const float *weights);
void lane_layer_backward(fds_lane *lane, uint32_t i, const float *weights, uint32_t count);
/* The gradient of an embedding's weights, of a group of count samples. */
void lane_embed_backward(fds_lane *lane, uint32_t i, uint32_t count, bool add);
/* Draws the masks of the group at work, for count members in training. */
void lane_drop_draw(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                    uint32_t count);
/* Batchnorm, before its forward and backward: the mean and deviation that it normalises with, and
 * the gradients of its weights, of all count samples in the groups. */
void lane_norm_measure(fds_lane *lane, uint32_t i, const float *weights, size_t count);
void lane_norm_sum(fds_lane *lane, uint32_t i, size_t count);
/* Fills places. */
void lane_fold_plan(lane_stage *s);
/* Filters and biases of the text's layer to those of the folded one, zeros in between. */
void lane_fold_weights(const lane_stage *s, const float *weights);
/* The gradient of the folded layer to that of the text's. */
void lane_unfold_grad(const lane_stage *s, bool add, float *grad);
/* Zeroes the gradients (filters, 16) by weights that the text's layer does not have. */
void lane_fold_clear(const lane_stage *s, float *each);

/* ---- winograd.c: wide convolutions ---- */

/* Chooses runs and tiles; the floats of scratch that the stage then needs. */
void lane_winograd_plan(const fds_lane *lane, lane_stage *s);
size_t lane_winograd_scratch(const lane_stage *s);
/* Forward: first the filters, then rows of tiles, each two rows of the output. */
void lane_winograd_filters(fds_lane *lane, const lane_stage *s, const float *weights);
void lane_winograd_forward(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                           const fds__boundary *out, const float *weights, uint32_t row);
void lane_winograd_backward_filters(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                                    const fds__boundary *out, bool add);
void lane_winograd_backward_input(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                                  const fds__boundary *out, const float *weights);

/* FDS_ERR_SHAPE unless the network takes samples of the shape that the inputs have; of tokens, unless
 * they are whole numbers that it knows (in lane_check_tokens, for one sample). */
fds_status lane_check_shape(const fds_net *net, const fds_inputs *inputs, fds_error *err);
fds_status lane_check_tokens(const fds_net *net, const fds_inputs *inputs, size_t input,
                             fds_error *err);

#endif
