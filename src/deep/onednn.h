/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph made ready to run: memory, and oneDNN's primitives in the order of execution. Training
 * runs forward and backward; prediction runs a folded graph forward only. */
#ifndef FDS_DEEP_ONEDNN_H
#define FDS_DEEP_ONEDNN_H

#include "deep/graph.h"
#include "deep/parallel.h"

typedef struct deep_exec {
    const deep_graph *graph; /* the caller's, outlives this */
    uint32_t batch;
    unsigned threads;
    fds__precision precision; /* f32 where oneDNN's bf16 would be wrong */
    bool is_training;
    size_t bytes; /* of memory that it has allocated */

    /* Weights are stored one after the other in the layouts that the primitives want, padded with
     * zeros, and so are their gradients. Statistics of batch norms are apart. */
    size_t offsets[DEEP_MAX_TENSORS]; /* floats, within values or statistics */
    size_t weights, statistics;       /* floats */
    /* Idle taps of a filter never see the image and have no gradient. They come last. */
    size_t active;                 /* floats before the idle taps */
    size_t idle[DEEP_MAX_TENSORS]; /* offset of a tensor's idle taps, stored as a whole tensor in
                                    * PyTorch's layout with the other taps 0; 0: none */
    float *values, *gradients;     /* (weights) */
    float *running, *moments;      /* (statistics): running, and of the last batch */

    float *input;    /* (batch, channels, height, width) */
    float *output;   /* (batch, outputs) */
    float *d_output; /* the gradient by it */

    struct deep_program *program;
} deep_exec;

fds_status deep_exec_create(const deep_graph *graph, uint32_t batch, unsigned threads,
                            fds__precision precision, bool is_training, deep_exec **out,
                            fds_error *err);
void deep_exec_free(deep_exec *exec);

/* input to output; in training with the batch's statistics, which go to moments */
fds_status deep_exec_forward(deep_exec *exec, fds_error *err);
/* d_output to gradients */
fds_status deep_exec_backward(deep_exec *exec, fds_error *err);

/* Copies a tensor from its place in area (values, gradients, or another of that size) to PyTorch's
 * layout, and back. */
fds_status deep_exec_read(const deep_exec *exec, uint32_t tensor, const float *area, float *plain,
                          fds_error *err);
fds_status deep_exec_write(const deep_exec *exec, uint32_t tensor, const float *plain, float *area,
                           fds_error *err);

/* ---- the network around it: deep.c, infer.c ---- */

struct fds__deep {
    fds__deep_params params;
    char network[16];
    deep_graph graph;
    deep_exec *exec;
    deep_arena moment1, moment2; /* laid out as exec->values */
    const deep_loops *loops;
    uint64_t steps;
    bool has_idle_moments; /* a moment other than 0 was written to an idle tap (see deep_exec) */
};

/* Copies the samples index[count] of x (NULL: the first ones), each of shape (channels, height,
 * width), to the network's input; a single channel is repeated where the network takes more. The
 * samples up to the batch become 0. */
void deep_gather(deep_exec *exec, fds_shape shape, const float *x, const uint32_t *index,
                 size_t count);

#endif
