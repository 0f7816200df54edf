/* SPDX-License-Identifier: Apache-2.0
 * A deep network in double precision with naive loops, written from the definition of the nodes:
 * the tests compare the deep engine with it. It shares nothing with the engine but the
 * description of the graph. */
#ifndef FDS_TEST_DEEP_REFERENCE_H
#define FDS_TEST_DEEP_REFERENCE_H

#include "deep/graph.h"

typedef struct {
    const deep_graph *graph;
    size_t batch;
    double *values[DEEP_MAX_TENSORS], *gradients[DEEP_MAX_TENSORS]; /* in PyTorch's layout */
    double *moment1[DEEP_MAX_TENSORS], *moment2[DEEP_MAX_TENSORS];
    double *results[DEEP_MAX_NODES]; /* (batch, channels, height, width) */
    double *d_results[DEEP_MAX_NODES];
    double *means[DEEP_MAX_NODES], *variances[DEEP_MAX_NODES]; /* of a batch norm's last forward */
    /* how near the last forward came to where it has no derivative: a relu's input to 0, or the two
     * greatest values of a pooling window to each other */
    double kink;
    unsigned steps;
} deep_ref;

deep_ref *deep_ref_create(const deep_graph *graph, size_t batch);
void deep_ref_free(deep_ref *ref);
/* Outputs (batch, outputs) of x (batch, ...). Training: batch norm takes the batch's statistics and
 * moves the running ones, unless is_still. */
const double *deep_ref_forward(deep_ref *ref, const float *x, bool is_training, bool is_still);
/* The derivative of sum(d * outputs) by every weight, after a forward pass in training. */
void deep_ref_backward(deep_ref *ref, const float *d);
void deep_ref_adam(deep_ref *ref, const fds__adam *adam);

#endif
