/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations of a network in order, with their memory: forward node by node, backward in
 * reverse. Gradients by results are in a few slots, which are reused; an addition passes its
 * gradient on to both operands without a copy. */
#include "deep/program.h"

/* ---- operations and memory ---- */

static deep_op *push(deep_maker *m, deep_ops *ops) {
    void *items = ops->items;
    if (m->status == FDS_OK)
        deep_fail(m, fds__grow(&items, &ops->capacity, ops->count + 1, sizeof(deep_op), m->err));
    ops->items = items;
    if (m->status != FDS_OK)
        return &m->nowhere;
    deep_op *op = &ops->items[ops->count++];
    *op = (deep_op){0};
    return op;
}

static void arg(deep_maker *m, deep_op *op, int name, const dnnl_memory_desc_t *md,
                const void *data) {
    dnnl_memory_t memory = NULL;
    ONEDNN(m, dnnl_memory_create(&memory, md, m->p->engine, (void *)(uintptr_t)data));
    if (memory)
        op->args[op->arg_count++] = (dnnl_exec_arg_t){name, memory};
}

/* A primitive with its scratchpad. */
static deep_op *push_primitive(deep_maker *m, deep_ops *ops, dnnl_primitive_desc_t pd) {
    deep_op *op = push(m, ops);
    ONEDNN(m, dnnl_primitive_create(&op->primitive, pd));
    const dnnl_memory_desc_t *scratch = deep_md(pd, dnnl_query_scratchpad_md, 0);
    if (scratch && dnnl_memory_desc_get_size(scratch))
        arg(m, op, DNNL_ARG_SCRATCHPAD, scratch, m->p->scratchpad);
    return op;
}

void deep_push_reorder(deep_maker *m, deep_ops *ops, const dnnl_memory_desc_t *from_md,
                       const void *from, const dnnl_memory_desc_t *to_md, void *to) {
    dnnl_primitive_desc_t pd = NULL;
    ONEDNN(m, dnnl_reorder_primitive_desc_create(&pd, from_md, m->p->engine, to_md, m->p->engine,
                                                 NULL));
    deep_op *op = push_primitive(m, ops, pd);
    arg(m, op, DNNL_ARG_FROM, from_md, from);
    arg(m, op, DNNL_ARG_TO, to_md, to);
    dnnl_primitive_desc_destroy(pd);
}

static void push_loop(deep_maker *m, deep_ops *ops, deep_op_kind kind, void *d, const void *a,
                      const void *b, const void *y, const dnnl_memory_desc_t *md) {
    deep_op *op = push(m, ops);
    op->kind = kind;
    op->d = d;
    op->a = a;
    op->b = b;
    op->y = y;
    op->count = dnnl_memory_desc_get_size(md) / dnnl_data_type_size(md->data_type);
}

static void push_move(deep_maker *m, deep_ops *ops, deep_op_kind kind, void *d, const void *a,
                      const deep_move *move) {
    deep_op *op = push(m, ops);
    op->kind = kind;
    op->d = d;
    op->a = a;
    op->move = move;
    op->count = (size_t)move->images * move->blocks;
}

/* The first layer may read the caller's input as it is. */
static bool input_is_right(deep_maker *m) {
    return dnnl_memory_desc_equal(&m->p->image, &m->p->specs[0].result);
}

static void *result(deep_maker *m, uint32_t node) {
    if (node + 1 == m->exec->graph->count)
        return m->exec->output;
    if (node == 0 && input_is_right(m))
        return m->exec->input;
    return m->p->activations + m->p->specs[node].place;
}

/* A node's operand in the form that the node reads; forward makes it. */
static void *source(deep_maker *m, const deep_node *n, const deep_spec *spec) {
    return spec->is_moved ? m->p->activations + spec->source_place : result(m, deep_operand(n));
}

static float *value(deep_maker *m, uint32_t tensor) {
    return m->exec->values + m->exec->offsets[tensor];
}

static float *moment(deep_maker *m, uint32_t tensor) {
    return m->exec->moments + m->exec->offsets[tensor];
}

static float *gradient(deep_maker *m, uint32_t tensor) {
    return m->exec->gradients + m->exec->offsets[tensor];
}

/* The weight in the layout that a primitive wants: the weight itself, or a copy made first. */
static const void *weight(deep_maker *m, deep_ops *ops, uint32_t tensor,
                          const dnnl_memory_desc_t *wanted) {
    const dnnl_memory_desc_t *kept = &m->p->kept[tensor];
    if (dnnl_memory_desc_equal(kept, wanted))
        return value(m, tensor);
    deep_push_reorder(m, ops, kept, value(m, tensor), wanted, m->p->copy);
    return m->p->copy;
}

/* ---- forward ---- */

static void forward_product(deep_maker *m, const deep_node *n, const deep_spec *spec) {
    deep_ops *ops = &m->p->forward;
    const dnnl_memory_desc_t *wanted = deep_md(spec->forward, dnnl_query_weights_md, 0);
    const void *w = weight(m, ops, n->tensor, wanted);
    deep_op *op = push_primitive(m, ops, spec->forward);
    arg(m, op, DNNL_ARG_SRC, &spec->source, source(m, n, spec));
    arg(m, op, DNNL_ARG_WEIGHTS, wanted, w);
    if (n->has_bias)
        arg(m, op, DNNL_ARG_BIAS, &m->p->kept[n->tensor + 1], value(m, n->tensor + 1));
    arg(m, op, DNNL_ARG_DST, &spec->result, result(m, m->node));
}

/* What batch norm reads in both directions, beside its source. */
static void norm_args(deep_maker *m, deep_op *op, const deep_node *n) {
    const dnnl_memory_desc_t *each = &m->p->kept[n->tensor];
    arg(m, op, DNNL_ARG_SCALE, each, value(m, n->tensor));
    arg(m, op, DNNL_ARG_SHIFT, each, value(m, n->tensor + 1));
    arg(m, op, DNNL_ARG_MEAN, each, moment(m, n->tensor + 2));
    arg(m, op, DNNL_ARG_VARIANCE, each, moment(m, n->tensor + 3));
}

static void workspace_arg(deep_maker *m, deep_op *op, const deep_spec *spec) {
    if (spec->workspace != SIZE_MAX)
        arg(m, op, DNNL_ARG_WORKSPACE, deep_md(spec->forward, dnnl_query_workspace_md, 0),
            m->p->activations + spec->workspace);
}

static void forward_node(deep_maker *m, const deep_node *n, const deep_spec *spec) {
    deep_ops *ops = &m->p->forward;
    deep_op *op;
    if (spec->is_moved)
        push_move(m, ops, DEEP_GATHER, source(m, n, spec), result(m, deep_operand(n)), &spec->move);
    switch (n->kind) {
    case DEEP_CONV:
    case DEEP_FC:
        forward_product(m, n, spec);
        break;
    case DEEP_ADD:
        push_loop(m, ops, DEEP_ADD_RELU, result(m, m->node), source(m, n, spec), NULL, NULL,
                  &spec->result);
        break;
    case DEEP_NORM:
    case DEEP_MAXPOOL:
    case DEEP_AVGPOOL:
        op = push_primitive(m, ops, spec->forward);
        arg(m, op, DNNL_ARG_SRC, &spec->source, source(m, n, spec));
        if (n->kind == DEEP_NORM)
            norm_args(m, op, n);
        arg(m, op, DNNL_ARG_DST, &spec->result, result(m, m->node));
        workspace_arg(m, op, spec);
        break;
    case DEEP_INPUT:
        break;
    }
}

static void order_forward(deep_maker *m) {
    const deep_graph *g = m->exec->graph;
    if (!input_is_right(m))
        deep_push_reorder(m, &m->p->forward, &m->p->image, m->exec->input, &m->p->specs[0].result,
                          result(m, 0));
    for (m->node = 1; m->node < g->count; m->node++)
        forward_node(m, &g->nodes[m->node], &m->p->specs[m->node]);
}

/* ---- backward ---- */

enum { NONE = -1 };

typedef struct {
    deep_maker *m;
    unsigned holders[DEEP_MAX_SLOTS]; /* nodes that still need a slot */
    int slot[DEEP_MAX_NODES];         /* of the gradient by a node's result */
    unsigned readers[DEEP_MAX_NODES]; /* nodes that still have to add to that gradient */
} plan;

static int take(plan *q) {
    deep_program *p = q->m->p;
    size_t i = 0;
    while (i < p->slot_count && q->holders[i])
        i++;
    if (i == DEEP_MAX_SLOTS) {
        deep_fail(q->m, fds__fail(q->m->err, FDS_ERR_LIMIT, "the network branches too often"));
        return 0;
    }
    if (i == p->slot_count)
        p->slots[p->slot_count++] = deep_memory(q->m, p->slot_size);
    q->holders[i]++;
    return (int)i;
}

static void *slot(plan *q, int number) { return q->m->p->slots[number]; }

static bool has_mask(const deep_node *n) { return n->has_relu && n->kind != DEEP_NORM; }

/* One reader of a node is done and hands over the slot with its part of the gradient by the node's
 * result. After the last reader the sum is complete and has passed back through the node's relu. */
static void contribute(plan *q, uint32_t node, int part) {
    deep_maker *m = q->m;
    const deep_node *n = &m->exec->graph->nodes[node];
    const dnnl_memory_desc_t *md = &m->p->specs[node].result;
    int before = q->slot[node], target = part;
    bool is_last = --q->readers[node] == 0;
    const void *mask = is_last && has_mask(n) ? result(m, node) : NULL;
    if (before == NONE && !mask) {
        q->slot[node] = part;
        return;
    }
    if (q->holders[part] > 1)
        target = take(q);
    push_loop(m, &m->p->backward, DEEP_GRADIENT, slot(q, target), slot(q, part),
              before == NONE ? NULL : slot(q, before), mask, md);
    if (target != part)
        q->holders[part]--;
    if (before != NONE)
        q->holders[before]--;
    q->slot[node] = target;
}

/* Turns the gradient by a node's source into the operand's own form. Returns its slot, which the
 * caller hands over. */
static int unmove(plan *q, const deep_spec *spec, int part, bool is_kept) {
    if (!spec->is_moved) {
        q->holders[part] += is_kept;
        return part;
    }
    int moved = take(q);
    push_move(q->m, &q->m->p->backward, DEEP_SCATTER, slot(q, moved), slot(q, part), &spec->move);
    q->holders[part] -= !is_kept;
    return moved;
}

static void backward_product(plan *q, const deep_node *n, const deep_spec *spec, int d) {
    deep_maker *m = q->m;
    deep_ops *ops = &m->p->backward;
    const dnnl_memory_desc_t *d_md = deep_md(spec->backward_weights, dnnl_query_diff_dst_md, 0);
    const dnnl_memory_desc_t *x = &spec->source;
    deep_op *op = push_primitive(m, ops, spec->backward_weights);
    arg(m, op, DNNL_ARG_SRC, x, source(m, n, spec));
    arg(m, op, DNNL_ARG_DIFF_DST, d_md, slot(q, d));
    arg(m, op, DNNL_ARG_DIFF_WEIGHTS, &m->p->kept[n->tensor], gradient(m, n->tensor));
    if (n->has_bias)
        arg(m, op, DNNL_ARG_DIFF_BIAS, &m->p->kept[n->tensor + 1], gradient(m, n->tensor + 1));
    if (n->in) {
        int part = take(q);
        const dnnl_memory_desc_t *wanted = deep_md(spec->backward, dnnl_query_weights_md, 0);
        const void *w = weight(m, ops, n->tensor, wanted);
        op = push_primitive(m, ops, spec->backward);
        arg(m, op, DNNL_ARG_DIFF_DST, d_md, slot(q, d));
        arg(m, op, DNNL_ARG_WEIGHTS, wanted, w);
        arg(m, op, DNNL_ARG_DIFF_SRC, x, slot(q, part));
        q->holders[d]--;
        contribute(q, n->in, unmove(q, spec, part, false));
    } else {
        q->holders[d]--;
    }
}

static void backward_norm(plan *q, const deep_node *n, const deep_spec *spec, int d) {
    deep_maker *m = q->m;
    const dnnl_memory_desc_t *each = &m->p->kept[n->tensor];
    int part = q->holders[d] > 1 ? take(q) : d; /* in place, unless another node still reads it */
    deep_op *op = push_primitive(m, &m->p->backward, spec->backward);
    arg(m, op, DNNL_ARG_SRC, &spec->source, source(m, n, spec));
    norm_args(m, op, n);
    workspace_arg(m, op, spec);
    arg(m, op, DNNL_ARG_DIFF_DST, &spec->result, slot(q, d));
    arg(m, op, DNNL_ARG_DIFF_SRC, &spec->result, slot(q, part));
    arg(m, op, DNNL_ARG_DIFF_SCALE, each, gradient(m, n->tensor));
    arg(m, op, DNNL_ARG_DIFF_SHIFT, each, gradient(m, n->tensor + 1));
    if (part != d)
        q->holders[d]--;
    contribute(q, n->in, part);
}

static void backward_pool(plan *q, const deep_node *n, const deep_spec *spec, int d) {
    deep_maker *m = q->m;
    int part = take(q);
    deep_op *op = push_primitive(m, &m->p->backward, spec->backward);
    workspace_arg(m, op, spec);
    arg(m, op, DNNL_ARG_DIFF_DST, &spec->result, slot(q, d));
    arg(m, op, DNNL_ARG_DIFF_SRC, &spec->source, slot(q, part));
    q->holders[d]--;
    contribute(q, n->in, unmove(q, spec, part, false));
}

static void backward_node(plan *q, const deep_node *n, const deep_spec *spec, int d) {
    switch (n->kind) {
    case DEEP_CONV:
    case DEEP_FC:
        backward_product(q, n, spec, d);
        break;
    case DEEP_NORM:
        backward_norm(q, n, spec, d);
        break;
    case DEEP_ADD:
        contribute(q, n->other, unmove(q, spec, d, true));
        contribute(q, n->in, d);
        break;
    case DEEP_MAXPOOL:
    case DEEP_AVGPOOL:
        backward_pool(q, n, spec, d);
        break;
    case DEEP_INPUT:
        break;
    }
}

static void order_backward(deep_maker *m) {
    const deep_graph *g = m->exec->graph;
    uint32_t last = g->count - 1;
    plan q = {.m = m};
    for (uint32_t i = 0; i < g->count; i++) {
        q.slot[i] = NONE;
        q.readers[g->nodes[i].in]++;
        q.readers[g->nodes[i].other]++; /* 0 for none: nothing uses the input's count */
    }
    q.slot[last] = take(&q);
    deep_push_reorder(m, &m->p->backward, &m->p->specs[last].result, m->exec->d_output,
                      deep_md(m->p->specs[last].backward_weights, dnnl_query_diff_dst_md, 0),
                      slot(&q, q.slot[last]));
    for (m->node = last; m->node > 0 && m->status == FDS_OK; m->node--)
        backward_node(&q, &g->nodes[m->node], &m->p->specs[m->node], q.slot[m->node]);
}

void deep_order(deep_maker *m) {
    order_forward(m);
    if (m->exec->is_training && m->status == FDS_OK)
        order_backward(m);
}

/* ---- running ---- */

typedef struct {
    const deep_loops_of *loops;
    const deep_op *op;
    size_t size; /* bytes of an element */
} loop;

/* NULL stays NULL. */
static const void *from(const void *data, size_t bytes) {
    return data ? (const char *)data + bytes : NULL;
}

static void loop_part(void *context, size_t begin, size_t end) {
    const loop *l = context;
    const deep_op *o = l->op;
    size_t skip = begin * l->size, count = end - begin;
    switch (o->kind) {
    case DEEP_ADD_RELU:
        l->loops->add_relu((char *)o->d + skip, from(o->a, skip), count);
        break;
    case DEEP_GRADIENT:
        l->loops->gradient((char *)o->d + skip, from(o->a, skip), from(o->b, skip),
                           from(o->y, skip), count);
        break;
    case DEEP_GATHER:
        l->loops->gather(o->move, o->a, o->d, begin, end);
        break;
    case DEEP_SCATTER:
        l->loops->scatter(o->move, o->a, o->d, begin, end);
        break;
    case DEEP_PRIMITIVE:
        break;
    }
}

void deep_ops_free(deep_ops *ops) {
    for (size_t i = 0; i < ops->count; i++) {
        for (int k = 0; k < ops->items[i].arg_count; k++)
            dnnl_memory_destroy(ops->items[i].args[k].memory);
        dnnl_primitive_destroy(ops->items[i].primitive);
    }
    fds__free(ops->items);
}

fds_status deep_run(const deep_exec *exec, const deep_ops *ops, fds_error *err) {
    deep_program *p = exec->program;
    dnnl_status_t status = dnnl_success;
    bool is_bf16 = exec->precision == FDS__PRECISION_BF16;
    deep_team team;
    TRY(deep_team_enter(exec->threads, &team, err));
    for (size_t i = 0; i < ops->count && status == dnnl_success; i++) {
        const deep_op *op = &ops->items[i];
        if (op->kind == DEEP_PRIMITIVE) {
            status = dnnl_primitive_execute(op->primitive, p->stream, op->arg_count, op->args);
        } else {
            loop l = {is_bf16 ? &p->loops->bf16 : &p->loops->f32, op,
                      is_bf16 ? sizeof(uint16_t) : sizeof(float)};
            deep_parallel(op->count, loop_part, &l);
        }
    }
    if (status == dnnl_success)
        status = dnnl_stream_wait(p->stream);
    deep_team_leave(team);
    return deep_status(status, "run the network", err);
}
