/* SPDX-License-Identifier: Apache-2.0
 *
 * deep: one large network at a time, on oneDNN. Forward, backward, Adam; batch norm with running
 * statistics, residual connections; f32, or bf16 with f32 master weights.
 *
 *   graph.c   network names to a graph of nodes with torchvision's tensor names and shapes
 *   deep.c    the network in memory: weights, moments, statistics; forward, backward, step
 *   infer.c   a frozen copy for answering: batch norm folded into the convolutions
 *   loops.c   our own loops, for each instruction set; parallel.c their threads
 *
 * oneDNN stays behind onednn.h, in three files:
 *   describe.c  nodes to primitives and layouts
 *   onednn.c    their memory; weights to and from PyTorch's layout
 *   program.c   the operations in order, and their execution
 *
 * Bits depend on the number of threads and on the instruction set: both are to be recorded with
 * whatever a network made. With both the same, the same calls give the same bits.
 *
 * | network            | what it is                                                      |
 * | ------------------ | --------------------------------------------------------------- |
 * | resnet18, resnet50 | torchvision's, names and shapes                                 |
 * | cnn                | a small one that is quick to train                              |
 * | mlp                | for feature vectors and images alike: two hidden layers of      |
 * |                    | 1,024, or of 512 on inputs of more than 1,024 numbers           |
 * | linear             | a linear layer alone                                            |
 *
 * Images have 3 channels in the resnets: a single channel is repeated.
 */
#ifndef FDS_DEEP_H
#define FDS_DEEP_H

#include "base/base.h"

typedef enum fds__precision { FDS__PRECISION_F32, FDS__PRECISION_BF16 } fds__precision;

/* What stands after the last layer of features:
 *   FDS__HEAD_EXPLAIN   the paper's: a convolution ("head.conv"), pooling over the image, and a
 *                      linear layer ("head.fc"); mlp, linear: the linear layer alone
 *   FDS__HEAD_CLASSIFY  torchvision's: pooling over the image and a linear layer ("fc") */
typedef enum fds__head { FDS__HEAD_EXPLAIN, FDS__HEAD_CLASSIFY } fds__head;

typedef struct fds__deep_params {
    const char *network;
    fds__head head;
    fds_shape input;
    uint32_t outputs;
    uint32_t batch;   /* samples of a training step */
    unsigned threads; /* 0: one a processor */
    fds__precision precision;
    uint64_t seed; /* initial weights */
} fds__deep_params;

/* A network that can be trained. Belongs to one thread, and works on several. */
typedef struct fds__deep fds__deep;

/* The names above, NULL-terminated. */
const char *const *fds__deep_networks(void);
/* FDS_ERR_UNSUPPORTED, saying why, where the processor has no bf16 instructions that work. */
fds_status fds__deep_bf16_check(fds_error *err);
/* Names the first mistake; what bytes it would hold (0 on a mistake) goes to memory, may be NULL */
fds_status fds__deep_check(const fds__deep_params *params, size_t *memory, fds_error *err);

/* Weights start as PyTorch's do (He's rule for the resnets' convolutions), the last linear layer at
 * 0 in FDS__HEAD_EXPLAIN: an explainer begins with the efficient share for everyone. */
fds_status fds__deep_create(const fds__deep_params *params, fds__deep **out, fds_error *err);
void fds__deep_free(fds__deep *net);
const fds__deep_params *fds__deep_get_params(const fds__deep *net); /* threads: as resolved */
/* Multiplications and additions of a training step, for one sample. */
uint64_t fds__deep_flops_train(const fds__deep *net);
const char *fds__deep_isa(void); /* what oneDNN runs on: "AVX512_CORE", ... */

/* ---- its tensors, in PyTorch's layout ---- */

typedef enum fds__deep_part {
    FDS__DEEP_VALUE,
    FDS__DEEP_GRADIENT, /* of the last backward call */
    FDS__DEEP_MOMENT1,
    FDS__DEEP_MOMENT2
} fds__deep_part;

typedef struct fds__deep_tensor {
    const char *name; /* "layer1.0.conv1.weight" */
    uint32_t rank;
    uint32_t dims[4];
    size_t count;
    bool is_statistic; /* running_mean, running_var: FDS__DEEP_VALUE is all it has */
} fds__deep_tensor;

size_t fds__deep_tensor_count(const fds__deep *net);
fds__deep_tensor fds__deep_tensor_at(const fds__deep *net, size_t i);
fds_status fds__deep_read(const fds__deep *net, size_t i, fds__deep_part part, float *out,
                          fds_error *err);
fds_status fds__deep_write(fds__deep *net, size_t i, fds__deep_part part, const float *values,
                           fds_error *err);
uint64_t fds__deep_steps(const fds__deep *net); /* optimiser steps made; Adam's t */
void fds__deep_set_steps(fds__deep *net, uint64_t steps);

/* Takes the tensors of a file by name. A missing, misshapen or non-finite one is named. With
 * features_only those of the head are left as they are and need not be there; tensors of the file
 * that the network lacks are then passed over, else they are a mistake ("num_batches_tracked"
 * never is). After such a failure the network is as it was. */
struct fds__safetensors;
fds_status fds__deep_load(fds__deep *net, const char *path, const struct fds__safetensors *file,
                          bool features_only, fds_error *err);

/* ---- training ---- */

/* x (batch, channels, height, width) of params.input; out (batch, outputs). Batch norm takes the
 * batch's own statistics and moves the running ones, by PyTorch's rule (momentum 0.1). */
fds_status fds__deep_forward(fds__deep *net, const float *x, float *out, fds_error *err);
/* After forward: gradient (batch, outputs) of the loss by out; leaves that by every weight. */
fds_status fds__deep_backward(fds__deep *net, const float *gradient, fds_error *err);

typedef struct fds__adam {
    float lr, beta1, beta2, epsilon, weight_decay;
    bool decoupled; /* AdamW */
} fds__adam;
/* FDS_ERR_DIVERGED when a weight is no longer finite. */
fds_status fds__deep_step(fds__deep *net, const fds__adam *adam, fds_error *err);

/* ---- answering ---- */

/* A frozen copy. Belongs to one thread. */
typedef struct fds__deep_infer fds__deep_infer;
/* batch: how many samples are computed at once. */
fds_status fds__deep_infer_create(const fds__deep *net, uint32_t batch, fds__deep_infer **out,
                                  fds_error *err);
/* Takes the weights and running statistics anew. */
fds_status fds__deep_infer_update(fds__deep_infer *infer, const fds__deep *net, fds_error *err);
/* x (count, channels, height, width), any count; out (count, outputs). The bits of a sample do not
 * depend on which others are asked for with it. */
fds_status fds__deep_infer_run(fds__deep_infer *infer, const float *x, size_t count, float *out,
                               fds_error *err);
void fds__deep_infer_free(fds__deep_infer *infer);

#endif
