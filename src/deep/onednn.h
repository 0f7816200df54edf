/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph made ready to run: memory, and oneDNN's primitives in the order of execution. Training
 * runs forward and backward; answering runs a folded graph forward only.
 *
 * Everything is made once. The number of threads is that of the creation. */
#ifndef FDS_DEEP_ONEDNN_H
#define FDS_DEEP_ONEDNN_H

#include "deep/graph.h"

typedef struct deep_exec {
    const deep_graph *graph; /* the caller's, outlives this */
    uint32_t batch;
    unsigned threads;
    fds__precision
        precision; /* FDS__PRECISION_F32 also where bf16 was asked for and oneDNN's is wrong */
    bool is_training;
    size_t bytes; /* of memory that it holds */

    /* Weights lie in the layouts that the primitives want, padded with zeros, one after the other;
     * so do their gradients. Statistics of batch norms have an area of their own. */
    size_t offsets[DEEP_MAX_TENSORS]; /* floats, within values or statistics */
    size_t weights, statistics;       /* floats */
    /* Taps of a filter that never see the image have no gradient. They lie behind the others. */
    size_t active;                 /* floats before them */
    size_t idle[DEEP_MAX_TENSORS]; /* where they begin, as a whole tensor in PyTorch's layout with
                                    * the other taps 0; 0: there are none */
    float *values, *gradients;     /* (weights) */
    float *running, *moments;      /* (statistics): running ones, and those of the last batch */

    float *input;    /* (batch, channels, height, width) */
    float *output;   /* (batch, outputs) */
    float *d_output; /* the gradient by it */

    struct deep_program *program;
} deep_exec;

fds_status deep_exec_create(const deep_graph *graph, uint32_t batch, unsigned threads,
                            fds__precision precision, bool is_training, deep_exec **out,
                            fds_error *err);
void deep_exec_free(deep_exec *exec);

/* input to output; training: with the batch's statistics, which go to moments */
fds_status deep_exec_forward(deep_exec *exec, fds_error *err);
/* d_output to gradients */
fds_status deep_exec_backward(deep_exec *exec, fds_error *err);

/* A weight from its place within area (values, gradients, or another of that size) to PyTorch's
 * layout, and back. */
fds_status deep_exec_read(const deep_exec *exec, uint32_t tensor, const float *area, float *plain,
                          fds_error *err);
fds_status deep_exec_write(const deep_exec *exec, uint32_t tensor, const float *plain, float *area,
                           fds_error *err);

#endif
