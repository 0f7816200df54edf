/* SPDX-License-Identifier: Apache-2.0
 *
 * lane: the engine for thousands of small networks. A thread trains one network; the samples of a
 * mini-batch are side by side in the processor's vector lanes.
 *
 *   text.c      a network's text to its layers, tensors and shapes
 *   plan.c      one network's workspace: stages and memory
 *   lane.c      forward and backward of the stages for a mini-batch
 *   winograd.c  convolutions with many channels
 *   layers.c    the stages of layers that are neither products nor maps
 *   train.c     epochs, their order, optimizer, stopping rule; prediction
 *   tangent.c   the neural tangent kernel
 *   dense.c     a fully connected layer of a large network, for any number of samples
 *   many.c      a few inputs, many networks; many_kernel.c its arithmetic
 *   kernels.c   the arithmetic, compiled for each instruction set; layer_kernels.c that of layers.c,
 *               winograd_kernels.c that of winograd.c
 */
#ifndef FDS_LANE_H
#define FDS_LANE_H

#include "base/base.h"

#define FDS__MAX_LAYERS 64u
#define FDS__MAX_TENSORS (4 * FDS__MAX_LAYERS) /* batchnorm has four */

typedef enum fds__layer_kind {
    FDS__LAYER_CONV,
    FDS__LAYER_RELU,
    FDS__LAYER_MAXPOOL,
    FDS__LAYER_FC, /* the kinds up to here may be part of a plain network */
    FDS__LAYER_AVGPOOL,
    FDS__LAYER_GLOBALPOOL,
    FDS__LAYER_TANH,
    FDS__LAYER_GELU,
    FDS__LAYER_BATCHNORM,
    FDS__LAYER_DROPOUT,
    FDS__LAYER_EMBED,
    FDS__LAYER_FORK, /* begin and end of a residual block; before the end may come the projection */
    FDS__LAYER_JOIN
} fds__layer_kind;

typedef struct fds__layer {
    fds__layer_kind kind;
    fds_shape in, out;                /* fc: in and out are features x 1 x 1 */
    uint32_t kernel, padding, stride; /* conv; pools: kernel */
    size_t weight, bias;              /* conv, fc, batchnorm: offsets into the weights, in floats;
                                       * embed: weight */
    size_t mean, variance;            /* batchnorm: the same, of the running statistics */
    uint32_t rate;                    /* dropout: in thousandths */
    uint32_t tokens;                  /* embed: how many there are */
    bool is_skip;                     /* conv, fc: projects the input of the block */
} fds__layer;

/* A convolution that Winograd's algorithm computes (winograd.c). With fewer channels the transforms
 * take what it saves. */
static inline bool fds__layer_is_wide(const fds__layer *l) {
    return l->kind == FDS__LAYER_CONV && l->kernel == 3 && l->stride == 1 && l->in.channels >= 32 &&
           l->out.channels >= 32;
}

/* Whether a network's text begins with embed: its inputs are numbers of tokens, which must not be
 * normalised. */
bool fds__text_takes_tokens(const char *text);

struct fds_net {
    char *text;
    fds_shape input;
    uint32_t classes, layer_count, tensor_count;
    fds__layer layers[FDS__MAX_LAYERS];
    fds_tensor_info tensors[FDS__MAX_TENSORS];
    char names[FDS__MAX_TENSORS][32]; /* of the tensors */
    struct {
        size_t fan_in; /* uniform in +-1/sqrt(fan in); 0: all have the value */
        float value;
        bool is_statistic;
    } starts[FDS__MAX_TENSORS]; /* how the tensors are initialised */
    size_t weights;
    size_t trained; /* the optimizer's weights; the running statistics come behind them */
    bool has_batchnorm;
    bool is_regression; /* one output, which is the prediction: no softmax, mean squared error */
    /* conv without strides that is not wide, relu, maxpool and fc only: fewer than 16 samples take
     * fewer lanes, and many.c has 16 networks side by side */
    bool is_plain;
};

struct fds_inputs {
    size_t count, size; /* size: floats of a sample */
    fds_shape shape;
    uint32_t classes;
    float *values;    /* (count, size) */
    uint16_t *labels; /* (count) */
    float *targets;   /* (count) of a regression; or NULL */
    uint32_t *ids;    /* (count) */
    uint64_t *keys;   /* (count) by which mini-batches are ordered; NULL: by ids */
};
/* What the random numbers of a sample depend on. */
static inline uint64_t fds__inputs_key(const fds_inputs *inputs, size_t i) {
    return inputs->keys ? inputs->keys[i] : inputs->ids[i];
}

/* fds_net_create; a regression has one output, which "classes" then stands for. */
fds_status fds__net_create(const char *text, fds_shape input, uint32_t classes, bool is_regression,
                           fds_net **out, fds_error *err);

/* The empirical neural tangent kernel of all a with all b, kernel (a, b), a mean over outputs:
 *     K(x, x') = 1/classes * sum over outputs c of <d f_c(x) / d weights, d f_c(x') / d weights>
 * f_c are the outputs before the softmax. The bits do not depend on threads. */
fds_status fds__net_tangent(const fds_net *net, const float *weights, const fds_inputs *a,
                            const fds_inputs *b, unsigned threads, float *kernel,
                            const fds_events *events, fds_error *err);

/* The activations before the last layer: features[count * fds__net_features]. A network of one
 * layer gives the inputs themselves. FDS_ERR_DIVERGED as for fds_lane_predict. */
fds_status fds__lane_features(fds_lane *lane, const fds_inputs *inputs, size_t first, size_t count,
                              const float *weights, float *features, fds_error *err);
static inline size_t fds__net_features(const fds_net *net) {
    return fds__shape_size(net->layers[net->layer_count - 1].in);
}

/* Allocates what training on that many members needs: training then allocates nothing. */
fds_status fds__lane_reserve(fds_lane *lane, size_t members, size_t batch, fds_error *err);
size_t fds__lane_bytes(const fds_lane *lane); /* of memory that it has allocated */

/* ---- dense.c: a fully connected layer of a large network ----
 *
 * What a sample gives depends neither on the others nor on the instruction set. */
typedef struct fds__dense fds__dense;

/* w (outputs, inputs), bias (outputs): copied. */
fds_status fds__dense_create(size_t inputs, size_t outputs, const float *w, const float *bias,
                             bool is_relu, fds__dense **out, fds_error *err);
void fds__dense_free(fds__dense *layer); /* NULL is fine */
/* Floats of a row of y: the outputs, and what fills the last vector. */
size_t fds__dense_width(const fds__dense *layer);
size_t fds__dense_round(size_t outputs); /* the width of a layer of so many outputs */
/* Rows of x are x_row floats apart. Rows of y are side by side. */
void fds__dense_run(const fds__dense *layer, const float *x, size_t x_row, size_t count, float *y);

/* ---- many.c: a few inputs for thousands of networks of one architecture ----
 *
 * One input must not cost more than reading all weights once. So the vector lanes hold 16 networks,
 * not samples: (weight, 16) and (channel, row, column, 16). Weights are halves (IEEE 754, 16 bits,
 * all finite), which are half as much to read as floats. Networks that are not plain are evaluated
 * one after another by the lane engine. The bits are those of the lane engine with the same
 * weights, in either case. */
enum {
    FDS__MANY_NETS = 16,   /* networks of a group */
    FDS__MANY_INPUTS = 12, /* the most inputs at a time */
};

typedef struct fds__many fds__many;

/* net must outlive the result. Each of the workers, numbered from 0, has its own memory. */
fds_status fds__many_create(const fds_net *net, unsigned workers, fds__many **out, fds_error *err);
void fds__many_free(fds__many *many);
/* (weights): which of the network's weights is at each place of a group's weights. */
const uint32_t *fds__many_order(const fds__many *many);
/* Floats of one spread input. */
size_t fds__many_input_size(const fds__many *many);
/* A sample to wide (input_size, zeroed before its first use). */
void fds__many_spread(const fds__many *many, const float *sample, float *wide);
/* Probabilities, or predictions of a regression, (count, classes, 16) of count <= FDS__MANY_INPUTS inputs (count, input_size) by one
 * group's weights (weights, 16), valid until the worker's next call. NULL when an output is
 * infinite or not a number. */
const float *fds__many_run(const fds__many *many, unsigned worker, const uint16_t *weights,
                           const float *inputs, size_t count);

#endif
