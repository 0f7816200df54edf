/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files that know oneDNN: describe.c turns nodes into descriptors of primitives,
 * onednn.c makes the memory, program.c puts the operations in order. */
#ifndef FDS_DEEP_PROGRAM_H
#define FDS_DEEP_PROGRAM_H

#include "deep/onednn.h"

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
    size_t count;          /* iterations of the loop, which the threads share */
} deep_op;

typedef struct deep_ops {
    deep_op *items;
    size_t count, capacity;
} deep_ops;

/* The plan of a node, made before there is any memory.
 *
 * A result is stored as images (batch, channels, height, width), or folded, as one tall image
 * (1, channels, batch * height, width): there a convolution of one tap is a matrix product without
 * an edge at every image, three times as fast on small maps. Other convolutions take that form on
 * columns (see deep_move). A linear layer's result is (batch, outputs). */
typedef struct deep_spec {
    dnnl_primitive_desc_t forward, backward, backward_weights;
    dnnl_memory_desc_t result;
    size_t place;     /* offset of the result within the activations, in bytes */
    size_t workspace; /* of what forward leaves for backward; SIZE_MAX: nothing */
    bool is_folded;
    bool is_product; /* a convolution that runs on columns */

    /* The operand (an addition's second) in the form that the node reads: with is_moved, a copy
     * made by move at source_place; else the operand itself. */
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
    dnnl_memory_desc_t kept[DEEP_MAX_TENSORS];  /* a tensor's layout in values */
    dnnl_memory_desc_t plain[DEEP_MAX_TENSORS]; /* and in PyTorch */
    dnnl_memory_desc_t image;                   /* the caller's input */

    char *activations;
    void *scratchpad, *copy;     /* copy: a weight in another layout, for one operation */
    void *slots[DEEP_MAX_SLOTS]; /* gradients by results, each in use for a few operations */
    size_t slot_count, slot_size;
    deep_arena arenas[10 + DEEP_MAX_SLOTS]; /* own all of the network's memory (deep_memory) */
    size_t arena_count;

    deep_ops forward, backward;
} deep_program;

/* While a network is made: the first failure, after which calls do nothing. */
typedef struct deep_maker {
    deep_exec *exec;
    deep_program *p;
    fds_status status;
    fds_error *err;
    const char *work; /* for messages; NULL: making the node */
    uint32_t node;
    bool is_unsafe;  /* the network would use a primitive of oneDNN 2.6 that is known to be wrong */
    deep_op nowhere; /* after a failure, stands for the next operation */
} deep_maker;

/* The node whose result a spec's source is. */
static inline uint32_t deep_operand(const deep_node *n) {
    return n->kind == DEEP_ADD ? n->other : n->in;
}

/* FDS_OK, or why oneDNN could not do its work ("run the network"). */
fds_status deep_status(dnnl_status_t status, const char *work, fds_error *err);
void deep_check(deep_maker *m, dnnl_status_t status);
void deep_fail(deep_maker *m, fds_status status);
/* A call of oneDNN, left out after a failure. */
#define ONEDNN(m, call)              \
    do {                             \
        if ((m)->status == FDS_OK)   \
            deep_check((m), (call)); \
    } while (0)

/* Zeroed memory that lives as long as the network; NULL after a failure. */
void *deep_memory(deep_maker *m, size_t size);

/* describe.c: the nodes */
void deep_describe(deep_maker *m);
/* program.c: the operations, once the memory is there */
void deep_order(deep_maker *m);
void deep_push_reorder(deep_maker *m, deep_ops *ops, const dnnl_memory_desc_t *from_md,
                       const void *from, const dnnl_memory_desc_t *to_md, void *to);
fds_status deep_run(const deep_exec *exec, const deep_ops *ops, fds_error *err);
void deep_ops_free(deep_ops *ops);

static inline const dnnl_memory_desc_t *deep_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what,
                                                int index) {
    return dnnl_primitive_desc_query_md(pd, what, index);
}

#endif
