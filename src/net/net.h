/* SPDX-License-Identifier: Apache-2.0
 *
 * net: the network engines. `lane` trains and evaluates thousands of small networks, one a thread,
 * with the samples of a mini-batch side by side in the processor's vector lanes.
 *
 *   text.c         a network's text to its plan
 *   inputs.c       dataset to normalised inputs; the order of mini-batches
 *   lane.c         one network's workspace: forward and backward for a group of samples
 *   train.c        epochs, optimiser, stopping rule; prediction
 *   kernels.c      the arithmetic, compiled for each instruction set; isa.c chooses
 *   safetensors.c  the file format; model.c what a trained model is
 */
#ifndef FDS_NET_H
#define FDS_NET_H

#include "base/json.h"

#define FDS_MAX_LAYERS 64u
#define FDS_MAX_WEIGHTS ((size_t)1 << 28)     /* 1 GiB of floats */
#define FDS_MAX_ACTIVATIONS ((size_t)1 << 24) /* floats between two layers, of one sample */

typedef enum fds_layer_kind { FDS_CONV, FDS_RELU, FDS_MAXPOOL, FDS_FC } fds_layer_kind;

typedef struct fds_layer {
    fds_layer_kind kind;
    fds_shape in, out;        /* fc: in and out are features x 1 x 1 */
    uint32_t kernel, padding; /* conv; maxpool: kernel */
    size_t weight, bias;      /* conv, fc: offsets into the weights, in floats */
} fds_layer;

struct fds_net {
    char *text;
    fds_shape input;
    uint32_t classes, layer_count, tensor_count;
    fds_layer layers[FDS_MAX_LAYERS];
    fds_tensor_info tensors[2 * FDS_MAX_LAYERS];
    char names[2 * FDS_MAX_LAYERS][16]; /* of the tensors */
    size_t weights;
};

static inline bool fds_shape_equal(fds_shape a, fds_shape b) {
    return a.channels == b.channels && a.height == b.height && a.width == b.width;
}
static inline size_t fds_shape_size(fds_shape s) { return (size_t)s.channels * s.height * s.width; }

struct fds_inputs {
    size_t count, size; /* size: floats in a sample */
    fds_shape shape;
    uint32_t classes;
    float *values;    /* (count, size) */
    uint16_t *labels; /* (count) */
    uint32_t *ids;    /* (count) */
};

/* The mean loss of the members, taken as one mini-batch, and its gradient (weights). */
fds_status fds_lane_gradient(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                             size_t count, const float *weights, float *gradient, double *loss,
                             fds_error *err);

/* The empirical neural tangent kernel of a network at some weights, one for all outputs:
 *     K(x, x') = 1/classes * sum over outputs c of <d f_c(x) / d weights, d f_c(x') / d weights>
 * of all a with all b: kernel (a, b). f_c are the outputs before the softmax. The bits do not
 * depend on threads. */
fds_status fds_net_tangent(const fds_net *net, const float *weights, const fds_inputs *a,
                           const fds_inputs *b, unsigned threads, float *kernel,
                           const fds_events *events, fds_error *err);

/* What the last layer sees: the activations before it, features[count * fds_net_features]. Of a
 * network of one layer they are the inputs themselves. FDS_DIVERGED as for fds_lane_predict. */
fds_status fds_lane_features(fds_lane *lane, const fds_inputs *inputs, size_t first, size_t count,
                             const float *weights, float *features, fds_error *err);
static inline size_t fds_net_features(const fds_net *net) {
    return fds_shape_size(net->layers[net->layer_count - 1].in);
}

/* Makes room for training on that many members, so that it will allocate nothing. */
fds_status fds_lane_reserve(fds_lane *lane, size_t members, fds_error *err);
size_t fds_lane_bytes(const fds_lane *lane); /* that it holds */

/* ---- safetensors ---- */

/* One tensor of f32 in a file, or to be written to one. */
typedef struct fds_tensor {
    const char *name;
    uint32_t rank;
    uint32_t dims[4];
    const float *values;
} fds_tensor;

/* A pair of the file's metadata. */
typedef struct fds_meta {
    const char *key, *value;
} fds_meta;

/* A file read whole and checked: every tensor lies within it, none overlap, none is missing a byte.
 */
typedef struct fds_safetensors fds_safetensors;

fds_status fds_safetensors_parse(const char *path, uint8_t *data, size_t size,
                                 fds_safetensors **out, fds_error *err); /* takes data over */
fds_status fds_safetensors_read(const char *path, fds_safetensors **out, fds_error *err);
void fds_safetensors_free(fds_safetensors *file);
size_t fds_safetensors_count(const fds_safetensors *file);
const fds_tensor *fds_safetensors_tensor(const fds_safetensors *file, size_t i);
const fds_tensor *fds_safetensors_find(const fds_safetensors *file, const char *name);
const char *fds_safetensors_meta(const fds_safetensors *file, const char *key); /* or NULL */
fds_status fds_safetensors_write(const char *path, const fds_tensor *tensors, size_t count,
                                 const fds_meta *meta, size_t meta_count, fds_error *err);

/* A model's weights, as its network lays them out. */
const float *fds_model_weights(const fds_model *model);
/* A model from a file already in memory, for fuzzing; takes data over. */
fds_status fds_model_parse(const char *path, uint8_t *data, size_t size, fds_model **out,
                           fds_error *err);

#endif
