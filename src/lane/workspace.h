/* SPDX-License-Identifier: Apache-2.0
 * A network's workspace: shared by lane.c, train.c and tangent.c. */
#ifndef FDS_LANE_WORKSPACE_H
#define FDS_LANE_WORKSPACE_H

#include "lane/kernels.h"
#include "lane/lane.h"

/* The numbers between two stages for a group of samples: (channels, height + 2 pad, width + 2 pad,
 * lanes). A row is rounded up to 16 floats. */
typedef struct fds__boundary {
    fds_shape shape;
    uint32_t pad;
    bool wide;                         /* 16 lanes for every group: fully connected layers */
    size_t column, row, plane, origin; /* strides in floats; origin: of the first pixel within */
    float *value, *grad;
} fds__boundary;

/* One step of the plan. relu is part of the stage before it, after its maxpool: the two commute. */
typedef struct lane_stage {
    enum { LANE_STAGE_CONV, LANE_STAGE_MAP, LANE_STAGE_FC } kind;
    const fds__layer *layer; /* conv, fc */
    uint32_t pool;           /* map: 1 for none */
    bool relu;               /* map, fc */
    bool input_grad;         /* a layer before it has weights */
    fds__tile forward, backward, weights, tail;
} lane_stage;

struct fds_lane {
    const fds_net *net;
    const fds__kernels *kernels;
    uint32_t stage_count, lanes; /* lanes: of the group that the boundaries are laid out for */
    bool keeps_values;           /* backward leaves all values as they are */
    lane_stage stages[2 * FDS__MAX_LAYERS];
    fds__boundary bounds[2 * FDS__MAX_LAYERS + 1]; /* stage i takes bounds[i] to bounds[i + 1] */
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
/* Forward for at most 16 inputs: the logits are in the last boundary's value, (classes, 16). */
void fds__lane_forward(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                       uint32_t count, const float *weights);
/* lane->grad becomes the gradient of a mini-batch's mean loss. Returns the sum of the losses. */
double fds__lane_backprop(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                          size_t count, const float *weights);
/* The gradients of one output of the network, for each input apart, after a forward of 16 inputs in
 * a lane that keeps values. The gradients by a convolution's filters and biases go to each[stage]
 * (weights, then biases, 16). The gradients by a fully connected layer's weights are the products
 * of the grad of the boundary after it (outputs, 16) and the value of the one before it (inputs,
 * 16). */
void fds__lane_backward_each(fds_lane *lane, uint32_t output, const float *weights,
                             float *const *each);

/* FDS_ERR_SHAPE unless the network takes samples of the shape that the inputs have. */
fds_status lane_check_shape(const fds_net *net, const fds_inputs *inputs, fds_error *err);

#endif
