/* SPDX-License-Identifier: Apache-2.0
 *
 * A deep network as a list of nodes, each after those it reads, and the tensors that they own.
 *
 * A relu is not a node: it is a flag of the node that it follows. An addition's first operand is a
 * batch norm that no other node reads, so that the sum can overwrite it.
 */
#ifndef FDS_DEEP_GRAPH_H
#define FDS_DEEP_GRAPH_H

#include "deep/deep.h"

enum { DEEP_MAX_NODES = 160, DEEP_MAX_TENSORS = 320, DEEP_MAX_NAME = 40 };

typedef enum deep_kind {
    DEEP_INPUT, /* node 0 */
    DEEP_CONV,  /* in a folded graph, + other before the relu */
    DEEP_NORM,  /* batch norm */
    DEEP_ADD,   /* in + other */
    DEEP_MAXPOOL,
    DEEP_AVGPOOL, /* over the whole map, where that is more than a pixel */
    DEEP_FC,      /* of the flattened input */
} deep_kind;

typedef struct deep_node {
    deep_kind kind;
    uint32_t in, other;                     /* nodes; other 0: none */
    fds_shape shape;                        /* of its result */
    uint32_t kernel[2], stride, padding[2]; /* rows, columns; conv, maxpool */
    bool has_bias, has_relu;
    uint32_t tensor; /* its first: conv, fc: weight, bias; norm: weight, bias, mean, variance */
} deep_node;

/* How a tensor starts, with its scale: all values equal to it, uniform in +-scale, or normal with
 * that standard deviation. */
typedef enum deep_init { DEEP_CONSTANT, DEEP_UNIFORM, DEEP_NORMAL } deep_init;

typedef struct deep_graph {
    uint32_t count, tensor_count;
    deep_node nodes[DEEP_MAX_NODES];
    fds__deep_tensor tensors[DEEP_MAX_TENSORS];
    char names[DEEP_MAX_TENSORS][DEEP_MAX_NAME];
    deep_init init[DEEP_MAX_TENSORS];
    double scale[DEEP_MAX_TENSORS];
} deep_graph;

fds_status deep_graph_build(const fds__deep_params *params, deep_graph *graph, fds_error *err);
/* The same network for prediction alone: batch norms and additions become part of the convolutions,
 * which get a bias; filters lose the rows and columns that only ever see padding. Tensors keep
 * their names; batch norms have none. Node i of folded was node from[i] of graph. */
void deep_graph_fold(const deep_graph *graph, deep_graph *folded, uint32_t *from);

/* The part of a convolution's filter that ever sees the image, and the padding that remains. */
void deep_graph_crop(const deep_graph *graph, const deep_node *node, uint32_t kernel[2],
                     uint32_t padding[2]);

/* Does the tensor belong to the head, after the features? */
bool deep_is_head(const char *name);
/* Floats of one sample in a node's result. */
size_t deep_node_size(const deep_node *node);
/* Multiplications and additions of a node's forward pass for one sample, none by padding. */
uint64_t deep_node_flops(const deep_graph *graph, uint32_t node);

#endif
