/* SPDX-License-Identifier: Apache-2.0
 *
 * deep: one large network at a time, on oneDNN. Forward, backward, Adam; batch norm with running
 * statistics, residual connections; f32, or bf16 with f32 master weights.
 *
 *   graph.c   the name of a network to a graph of nodes and tensors
 *   deep.c    the network in memory: weights, moments, statistics; forward, backward, step
 *   infer.c   a frozen copy for prediction: batch norm folded into the convolutions
 *   loops.c   our own loops, for each instruction set; parallel.c their threads
 *
 * oneDNN stays behind onednn.h, in three files:
 *   describe.c  nodes to primitives and layouts
 *   onednn.c    their memory; weights to and from PyTorch's layout
 *   program.c   the operations in order, and their execution
 *
 * The same calls give the same bits for the same number of threads and instruction set. A caller
 * records both with its results.
 *
 * The networks:
 *   resnet18, resnet50  torchvision's, with its tensor names and shapes; for images of 3 channels
 *                       or 1, which is repeated
 *   cnn                 3 convolutions and 2 residual blocks; fast to train
 *   mlp                 2 hidden layers of 1,024, or of 512 on inputs of more than 1,024 numbers;
 *                       for images and feature vectors
 *   linear              a linear layer alone
 */
#ifndef FDS_DEEP_H
#define FDS_DEEP_H

#include "base/base.h"

typedef enum fds__precision { FDS__PRECISION_F32, FDS__PRECISION_BF16 } fds__precision;

/* The layers after the features:
 *   FDS__HEAD_EXPLAIN   the paper's: a convolution ("head.conv"), pooling over the image, and a
 *                      linear layer ("head.fc"); mlp, linear: the linear layer alone
 *   FDS__HEAD_CLASSIFY  torchvision's: pooling over the image and a linear layer ("fc") */
typedef enum fds__head { FDS__HEAD_EXPLAIN, FDS__HEAD_CLASSIFY } fds__head;

/* What a network is made for. */
typedef enum fds__deep_use {
    FDS__DEEP_TRAIN,
    FDS__DEEP_FROZEN, /* weights that a file has: no moments, nothing is drawn */
    FDS__DEEP_FORM,   /* names and shapes of tensors alone: no values, no oneDNN */
} fds__deep_use;

typedef struct fds__deep_params {
    const char *network;
    fds__head head;
    fds_shape input;
    uint32_t outputs;
    uint32_t batch;   /* samples per training step */
    unsigned threads; /* 0: one per processor */
    fds__precision precision;
    uint64_t seed; /* initial weights */
    fds__deep_use use;
} fds__deep_params;

/* A network that can be trained. Belongs to one thread, and computes on several. */
typedef struct fds__deep fds__deep;

/* The names above, NULL-terminated. */
const char *const *fds__deep_networks(void);
/* FDS_ERR_UNSUPPORTED, with the reason, where the processor has no bf16 instructions that work. */
fds_status fds__deep_bf16_check(fds_error *err);
/* Names the first mistake. memory (may be NULL) receives the bytes that the network would take, 0
 * on a mistake. */
fds_status fds__deep_check(const fds__deep_params *params, size_t *memory, fds_error *err);

/* Weights start as PyTorch's do (He's rule for the resnets' convolutions); with FDS__HEAD_EXPLAIN
 * the last linear layer starts at 0: an explainer first gives all players equal shares. */
fds_status fds__deep_create(const fds__deep_params *params, fds__deep **out, fds_error *err);
void fds__deep_free(fds__deep *net);
const fds__deep_params *fds__deep_get_params(const fds__deep *net); /* threads: as resolved */
/* Multiplications and additions of a training step, for one sample. */
uint64_t fds__deep_flops_train(const fds__deep *net);
const char *fds__deep_isa(void); /* the instruction set that oneDNN uses: "AVX512_CORE", ... */

/* ---- tensors, in PyTorch's layout ---- */

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
    bool is_statistic; /* running_mean, running_var: has FDS__DEEP_VALUE only */
} fds__deep_tensor;

size_t fds__deep_tensor_count(const fds__deep *net);
fds__deep_tensor fds__deep_tensor_at(const fds__deep *net, size_t i);
fds_status fds__deep_read(const fds__deep *net, size_t i, fds__deep_part part, float *out,
                          fds_error *err);
fds_status fds__deep_write(fds__deep *net, size_t i, fds__deep_part part, const float *values,
                           fds_error *err);
uint64_t fds__deep_steps(const fds__deep *net); /* optimizer steps made: Adam's t */
void fds__deep_set_steps(fds__deep *net, uint64_t steps);

/* Loads the tensors of a file by name. An error names a tensor that is missing, misshapen or not
 * finite, or unknown to the network (but not "num_batches_tracked" and "players.*"). With features_only the head
 * stays as it is and unknown tensors are ignored. After such an error the network is unchanged. With
 * FDS__DEEP_FORM it only checks the file. */
struct fds__safetensors;
fds_status fds__deep_load(fds__deep *net, const char *path, const struct fds__safetensors *file,
                          bool features_only, fds_error *err);

/* ---- training ---- */

/* The samples index[batch] of x (samples, channels, height, width) of params.input, or, if index is
 * NULL, the first ones; out (batch, outputs). Batch norm uses the batch's own statistics and moves
 * the running ones, by PyTorch's rule (momentum 0.1). */
fds_status fds__deep_forward(fds__deep *net, const float *x, const uint32_t *index, float *out,
                             fds_error *err);
/* After forward: from the gradient (batch, outputs) of the loss by out to the gradient by every
 * weight. */
fds_status fds__deep_backward(fds__deep *net, const float *gradient, fds_error *err);

typedef struct fds__adam {
    float lr, beta1, beta2, epsilon, weight_decay;
    bool decoupled; /* AdamW */
} fds__adam;
/* FDS_ERR_DIVERGED when a weight is no longer finite. */
fds_status fds__deep_step(fds__deep *net, const fds__adam *adam, fds_error *err);

/* ---- prediction ---- */

/* A frozen copy of a network. Belongs to one thread. */
typedef struct fds__deep_infer fds__deep_infer;
/* batch: samples computed at once. */
fds_status fds__deep_infer_create(const fds__deep *net, uint32_t batch, fds__deep_infer **out,
                                  fds_error *err);
/* Copies the weights and running statistics again. */
fds_status fds__deep_infer_update(fds__deep_infer *infer, const fds__deep *net, fds_error *err);
/* x (count, channels, height, width), any count; out (count, outputs). The bits of a sample do not
 * depend on the other samples of the call. */
fds_status fds__deep_infer_run(fds__deep_infer *infer, const float *x, size_t count, float *out,
                               fds_error *err);
void fds__deep_infer_free(fds__deep_infer *infer);

#endif
