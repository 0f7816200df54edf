/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that know oneDNN share: describe.c turns nodes into descriptors of
 * primitives, onednn.c makes the memory, program.c puts the operations in order. */
#ifndef FDS_DEEP_PROGRAM_H
#define FDS_DEEP_PROGRAM_H

#include "deep/onednn.h"
#include "deep/parallel.h"

#include <dnnl.h>

/* One primitive, or one loop of ours (loops.h). */
typedef enum deep_op_kind {
    DEEP_PRIMITIVE,
    DEEP_ADD_RELU, /* d = relu(d + a) */
    DEEP_GRADIENT, /* d = a + b where y > 0 */
    DEEP_GATHER,   /* a to d */
    DEEP_SCATTER,  /* d = the gradient by images of columns a */
} deep_op_kind;

typedef struct deep_op {
    deep_op_kind kind;
    dnnl_primitive_t primitive;
    int arg_count;
    dnnl_exec_arg_t args[12];
    void *d;
    const void *a, *b, *y;
    const deep_move *move; /* gather, scatter */
    size_t count;          /* that the loop is cut by */
} deep_op;

typedef struct deep_ops {
    deep_op *items;
    size_t count, capacity;
} deep_ops;

/* What is known of a node before there is any memory.
 *
 * A result lies as images (batch, channels, height, width), or folded, as one tall image
 * (1, channels, batch * height, width): there a convolution of one tap is a matrix product without
 * an edge at every image, three times as fast on small maps. Others can be brought to that form
 * by columns (see deep_move). A linear layer's result is (batch, outputs). */
typedef struct deep_spec {
    dnnl_primitive_desc_t forward, backward, backward_weights;
    dnnl_memory_desc_t result;
    size_t place;     /* bytes, of the result within the activations */
    size_t workspace; /* of what forward leaves to backward; SIZE_MAX: nothing */
    bool is_folded;
    bool is_product; /* a convolution that runs on columns */

    /* The operand in another form than it has (an addition's second): copied by move to
     * source_place where is_moved, else read in place. */
    bool is_moved;
    dnnl_memory_desc_t source;
    deep_move move;
    size_t source_place;
} deep_spec;

enum { DEEP_MAX_SLOTS = 16 }; /* a chain of residual blocks needs a few */

typedef struct deep_program {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    const deep_loops *loops;
    dnnl_data_type_t type; /* of activations */
    dnnl_format_tag_t tag; /* of images between nodes */
    uint32_t chunk;        /* channels that lie side by side in it; 0: no folding */
    deep_spec specs[DEEP_MAX_NODES];
    dnnl_memory_desc_t kept[DEEP_MAX_TENSORS];  /* how a tensor lies in values */
    dnnl_memory_desc_t plain[DEEP_MAX_TENSORS]; /* as PyTorch has it */
    dnnl_memory_desc_t image;                   /* the input as it is given */

    deep_arena values, gradients, statistics, activations, ends;
    deep_arena scratchpad, copy;      /* copy: a weight in another layout, for one operation */
    deep_arena slots[DEEP_MAX_SLOTS]; /* gradients by results, each in use for a few operations */
    size_t slot_count, slot_size;

    dnnl_memory_t *memories; /* all that operations use */
    size_t memory_count, memory_capacity;
    deep_ops forward, backward;
} deep_program;

/* While a network is made: the first failure, after which calls do nothing. */
typedef struct deep_maker {
    deep_exec *exec;
    deep_program *p;
    fds_status status;
    fds_error *err;
    uint32_t node;   /* at work */
    bool is_unsafe;  /* a primitive of oneDNN 2.6 that is known to be wrong would be used */
    deep_op nowhere; /* after a failure, what would have been the next operation */
} deep_maker;

/* The node that a spec's source is about. */
static inline uint32_t deep_operand(const deep_node *n) {
    return n->kind == DEEP_ADD ? n->other : n->in;
}

/* FDS_OK, or why oneDNN could not do its work ("run the network"). */
fds_status deep_status(dnnl_status_t status, const char *work, fds_error *err);
void deep_check(deep_maker *m, dnnl_status_t status);
void deep_fail(deep_maker *m, fds_status status);

/* describe.c: the nodes */
void deep_describe(deep_maker *m);
/* program.c: the operations, after the memory is there */
void deep_order(deep_maker *m);
fds_status deep_run(deep_exec *exec, const deep_ops *ops, fds_error *err);

static inline const dnnl_memory_desc_t *deep_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what,
                                                int index) {
    return dnnl_primitive_desc_query_md(pd, what, index);
}

#endif
