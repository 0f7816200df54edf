/* SPDX-License-Identifier: Apache-2.0
 *
 * deep: one large network at a time, on oneDNN. Forward, backward, Adam; batch norm with running
 * statistics, residual connections; f32, or bf16 with f32 master weights.
 *
 *   deep_graph.c   network names to a graph of nodes with torchvision's tensor names and shapes
 *   deep.c         the network in memory: weights, moments, statistics; forward, backward, step
 *   deep_infer.c   a frozen copy for answering: batch norm folded into the convolutions
 *   deep_loops.c   our own loops, for each instruction set; deep_parallel.c their threads
 *
 * oneDNN stays behind deep_onednn.h, in three files:
 *   deep_describe.c  nodes to primitives and layouts
 *   deep_onednn.c    their memory; weights to and from PyTorch's layout
 *   deep_program.c   the operations in order, and their execution
 *
 * Bits depend on the number of threads and on the instruction set: both are to be recorded with
 * whatever a network made. With both the same, the same calls give the same bits.
 *
 * Networks
 *   resnet18, resnet50   torchvision's, names and shapes
 *   cnn                  a small one that is quick to train
 *   mlp                  for feature vectors and images alike: two hidden layers of 1,024, or of
 * 512 on inputs of more than 1,024 numbers linear               a linear layer alone Images have 3
 * channels in the resnets: a single channel is repeated.
 */
#ifndef FDS_DEEP_H
#define FDS_DEEP_H

#include "base/base.h"

typedef enum fds_precision { FDS_FP32, FDS_BF16 } fds_precision;

/* What stands after the last layer of features:
 *   FDS_HEAD_EXPLAIN   the paper's: a convolution ("head.conv"), pooling over the image, and a
 *                      linear layer ("head.fc"); mlp, linear: the linear layer alone
 *   FDS_HEAD_CLASSIFY  torchvision's: pooling over the image and a linear layer ("fc") */
typedef enum fds_head { FDS_HEAD_EXPLAIN, FDS_HEAD_CLASSIFY } fds_head;

typedef struct fds_deep_params {
    const char *network;
    fds_head head;
    fds_shape input;
    uint32_t outputs;
    uint32_t batch;   /* samples of a training step */
    unsigned threads; /* 0: one a processor */
    fds_precision precision;
    uint64_t seed; /* initial weights */
} fds_deep_params;

/* A network that can be trained. Belongs to one thread, and works on several. */
typedef struct fds_deep fds_deep;

/* The names above, NULL-terminated. */
const char *const *fds_deep_networks(void);
/* FDS_UNSUPPORTED, saying why, where the processor computes no bf16 of its own. */
fds_status fds_deep_bf16_check(fds_error *err);
/* Names the first mistake; what bytes it would hold (0 on a mistake) goes to memory, may be NULL */
fds_status fds_deep_check(const fds_deep_params *params, size_t *memory, fds_error *err);

/* Weights start as PyTorch's do (He's rule for the resnets' convolutions), the last linear layer at
 * 0 in FDS_HEAD_EXPLAIN: an explainer begins with the efficient share for everyone. */
fds_status fds_deep_create(const fds_deep_params *params, fds_deep **out, fds_error *err);
void fds_deep_free(fds_deep *net);
const fds_deep_params *fds_deep_get_params(const fds_deep *net); /* threads: as resolved */
/* Multiplications and additions of a training step, for one sample. */
uint64_t fds_deep_flops_train(const fds_deep *net);
const char *fds_deep_isa(void); /* what oneDNN runs on: "AVX512_CORE", ... */

/* ---- its tensors, in PyTorch's layout ---- */

typedef enum fds_deep_part {
    FDS_DEEP_VALUE,
    FDS_DEEP_GRADIENT, /* of the last backward call */
    FDS_DEEP_MOMENT1,
    FDS_DEEP_MOMENT2
} fds_deep_part;

typedef struct fds_deep_tensor {
    const char *name; /* "layer1.0.conv1.weight" */
    uint32_t rank;
    uint32_t dims[4];
    size_t count;
    bool is_statistic; /* running_mean, running_var: FDS_DEEP_VALUE is all it has */
} fds_deep_tensor;

size_t fds_deep_tensor_count(const fds_deep *net);
fds_deep_tensor fds_deep_tensor_at(const fds_deep *net, size_t i);
fds_status fds_deep_read(const fds_deep *net, size_t i, fds_deep_part part, float *out,
                         fds_error *err);
fds_status fds_deep_write(fds_deep *net, size_t i, fds_deep_part part, const float *values,
                          fds_error *err);
uint64_t fds_deep_steps(const fds_deep *net); /* optimiser steps made; Adam's t */
void fds_deep_set_steps(fds_deep *net, uint64_t steps);

/* Takes the tensors of a file by name. A missing, misshapen or non-finite one is named. With
 * features_only those of the head are left as they are and need not be there; tensors of the file
 * that the network lacks are then passed over, else they are a mistake ("num_batches_tracked"
 * never is). After such a failure the network is as it was. */
struct fds_safetensors;
fds_status fds_deep_load(fds_deep *net, const char *path, const struct fds_safetensors *file,
                         bool features_only, fds_error *err);

/* ---- training ---- */

/* x (batch, channels, height, width) of params.input; out (batch, outputs). Batch norm takes the
 * batch's own statistics and moves the running ones, by PyTorch's rule (momentum 0.1). */
fds_status fds_deep_forward(fds_deep *net, const float *x, float *out, fds_error *err);
/* After forward: gradient (batch, outputs) of the loss by out; leaves that by every weight. */
fds_status fds_deep_backward(fds_deep *net, const float *gradient, fds_error *err);

typedef struct fds_adam {
    float lr, beta1, beta2, epsilon, weight_decay;
    bool decoupled; /* AdamW */
} fds_adam;
/* FDS_DIVERGED when a weight is no longer finite. */
fds_status fds_deep_step(fds_deep *net, const fds_adam *adam, fds_error *err);

/* ---- answering ---- */

/* A frozen copy. Belongs to one thread. */
typedef struct fds_deep_infer fds_deep_infer;
/* batch: how many samples are computed at once. */
fds_status fds_deep_infer_create(const fds_deep *net, uint32_t batch, fds_deep_infer **out,
                                 fds_error *err);
/* Takes the weights and running statistics anew. */
fds_status fds_deep_infer_update(fds_deep_infer *infer, const fds_deep *net, fds_error *err);
/* x (count, channels, height, width), any count; out (count, outputs). The bits of a sample do not
 * depend on which others are asked for with it. */
fds_status fds_deep_infer_run(fds_deep_infer *infer, const float *x, size_t count, float *out,
                              fds_error *err);
void fds_deep_infer_free(fds_deep_infer *infer);

#endif
