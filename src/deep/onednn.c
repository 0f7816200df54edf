/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of a network for oneDNN, its making and its end; weights to and from PyTorch's
 * layout. */
#include "deep/program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

/* ---- the processor ---- */

/* A virtual machine may offer AMX and yet hide its tiles (CPUID leaf 0x1d). oneDNN 2.6 then sets
 * the tiles up with palette 0, which is none, and its first tile instruction is illegal. */
static bool has_hidden_tiles(void) {
#ifdef __x86_64__
    unsigned a, b, c, d;
    bool has_amx = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1);
    return has_amx && !(__get_cpuid_count(0x1d, 0, &a, &b, &c, &d) && a > 0);
#else
    return false;
#endif
}

/* Settings that oneDNN takes only before its first use. */
static void set_up(void) {
    /* It would print to stdout. Where only dnnl_set_verbose was called, the host means it. */
    if (getenv("ONEDNN_VERBOSE") || getenv("DNNL_VERBOSE"))
        (void)dnnl_set_verbose(0);
    bool is_chosen = getenv("ONEDNN_MAX_CPU_ISA") || getenv("DNNL_MAX_CPU_ISA");
    if (has_hidden_tiles() && !is_chosen)
        (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16); /* fails after a first use */
}

static void onednn_begin(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
}

static dnnl_cpu_isa_t get_isa(void) {
    onednn_begin();
    return dnnl_get_effective_cpu_isa();
}

const char *fds__deep_isa(void) {
    switch (get_isa()) {
    case dnnl_cpu_isa_avx512_core_amx:
        return "AVX512_CORE_AMX";
    case dnnl_cpu_isa_avx512_core_bf16:
        return "AVX512_CORE_BF16";
    case dnnl_cpu_isa_avx512_core_vnni:
        return "AVX512_CORE_VNNI";
    case dnnl_cpu_isa_avx512_core:
        return "AVX512_CORE";
    case dnnl_cpu_isa_avx2_vnni:
        return "AVX2_VNNI";
    case dnnl_cpu_isa_avx2:
        return "AVX2";
    case dnnl_cpu_isa_avx:
        return "AVX";
    case dnnl_cpu_isa_sse41:
        return "SSE41";
    default:
        return "GENERIC";
    }
}

fds_status fds__deep_bf16_check(fds_error *err) {
    dnnl_cpu_isa_t isa = get_isa();
    /* newer sets contain the bits of older ones */
    if ((isa & dnnl_cpu_isa_avx512_core_bf16) != dnnl_cpu_isa_avx512_core_bf16)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "this processor (%s) has no bf16 instructions: use f32", fds__deep_isa());
    if (isa == dnnl_cpu_isa_avx512_core_amx && has_hidden_tiles())
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "bf16: this virtual machine offers AMX but does not describe its tiles, "
                         "and oneDNN would crash: set DNNL_MAX_CPU_ISA=AVX512_CORE_BF16 before the "
                         "program starts, or use f32");
    return FDS_OK;
}

/* ---- failures ---- */

void deep_fail(deep_maker *m, fds_status status) {
    if (m->status == FDS_OK)
        m->status = status;
}

fds_status deep_status(dnnl_status_t status, const char *work, fds_error *err) {
    if (status == dnnl_success)
        return FDS_OK;
    if (status == dnnl_out_of_memory)
        return fds__fail(err, FDS_ERR_NOMEM, "oneDNN has not enough memory to %s", work);
    return fds__fail(err, FDS_ERR_UNSUPPORTED, "oneDNN cannot %s: %s", work,
                     status == dnnl_unimplemented ? "not implemented" : "failure");
}

void deep_check(deep_maker *m, dnnl_status_t status) {
    char work[48];
    if (status == dnnl_success || m->status != FDS_OK)
        return;
    snprintf(work, sizeof work, "make node %u of the network", m->node);
    m->status = deep_status(status, work, m->err);
}

/* ---- memory ---- */

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

static void arena(deep_maker *m, deep_arena *a, size_t size) {
    if (m->status != FDS_OK)
        return;
    deep_fail(m, deep_arena_make(a, size, m->err));
    m->exec->bytes += a->size;
}

/* Has the tensor taps that no product needs? */
static bool has_idle(const deep_maker *m, uint32_t tensor) {
    const dnnl_memory_desc_t *plain = &m->p->plain[tensor];
    size_t count = 1;
    for (int d = 0; d < plain->ndims; d++)
        count *= (size_t)plain->dims[d];
    return count < m->exec->graph->tensors[tensor].count;
}

static void make_weights(deep_maker *m) {
    deep_exec *e = m->exec;
    for (uint32_t i = 0; i < e->graph->tensor_count; i++) {
        size_t *area = e->graph->tensors[i].is_statistic ? &e->statistics : &e->weights;
        e->offsets[i] = *area;
        *area += rounded(dnnl_memory_desc_get_size(&m->p->kept[i])) / sizeof(float);
    }
    e->active = e->weights;
    for (uint32_t i = 0; i < e->graph->tensor_count; i++)
        if (has_idle(m, i)) {
            e->idle[i] = e->weights;
            e->weights += rounded(e->graph->tensors[i].count * sizeof(float)) / sizeof(float);
        }
    arena(m, &m->p->values, e->weights * sizeof(float));
    e->values = m->p->values.data;
    if (!e->is_training)
        return;
    arena(m, &m->p->gradients, e->weights * sizeof(float));
    e->gradients = m->p->gradients.data;
    arena(m, &m->p->statistics, 2 * e->statistics * sizeof(float));
    e->running = m->p->statistics.data;
    e->moments = e->running ? e->running + e->statistics : NULL;
}

/* Results of nodes, one after the other. An addition takes the place of its first operand; a
 * convolution that adds, that of what it adds. */
static void make_activations(deep_maker *m) {
    const deep_graph *g = m->exec->graph;
    size_t at = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        deep_spec *spec = &m->p->specs[i];
        const deep_node *n = &g->nodes[i];
        size_t size = rounded(dnnl_memory_desc_get_size(&spec->result));
        m->p->slot_size = MAX(m->p->slot_size, size);
        if (n->kind == DEEP_ADD || (n->kind == DEEP_CONV && n->other)) {
            spec->place = m->p->specs[n->kind == DEEP_ADD ? n->in : n->other].place;
        } else {
            spec->place = at;
            at += size;
        }
        if (spec->is_moved) {
            size = rounded(dnnl_memory_desc_get_size(&spec->source));
            m->p->slot_size = MAX(m->p->slot_size, size);
            spec->source_place = at;
            at += size;
        }
        const dnnl_memory_desc_t *workspace =
            m->exec->is_training && spec->forward
                ? deep_md(spec->forward, dnnl_query_workspace_md, 0)
                : NULL;
        spec->workspace = SIZE_MAX;
        if (workspace && dnnl_memory_desc_get_size(workspace)) {
            spec->workspace = at;
            at += rounded(dnnl_memory_desc_get_size(workspace));
        }
    }
    arena(m, &m->p->activations, at);
}

static void make_scratch(deep_maker *m) {
    size_t scratch = 0, copy = 0;
    for (uint32_t i = 0; i < m->exec->graph->count; i++) {
        const deep_spec *spec = &m->p->specs[i];
        const dnnl_primitive_desc_t pds[] = {spec->forward, spec->backward, spec->backward_weights};
        for (int k = 0; k < 3; k++) {
            if (!pds[k])
                continue;
            scratch = MAX(scratch,
                          dnnl_memory_desc_get_size(deep_md(pds[k], dnnl_query_scratchpad_md, 0)));
            deep_kind kind = m->exec->graph->nodes[i].kind;
            if ((kind == DEEP_CONV || kind == DEEP_FC) && k < 2)
                copy =
                    MAX(copy, dnnl_memory_desc_get_size(deep_md(pds[k], dnnl_query_weights_md, 0)));
        }
    }
    arena(m, &m->p->scratchpad, scratch);
    arena(m, &m->p->copy, m->exec->is_training ? copy : 0);
}

static void make_ends(deep_maker *m) {
    deep_exec *e = m->exec;
    const deep_graph *g = e->graph;
    size_t in = rounded(e->batch * deep_node_size(&g->nodes[0]) * sizeof(float));
    size_t out = rounded(e->batch * deep_node_size(&g->nodes[g->count - 1]) * sizeof(float));
    arena(m, &m->p->ends, in + 2 * out);
    if (m->status != FDS_OK)
        return;
    e->input = m->p->ends.data;
    e->output = e->input + in / sizeof(float);
    e->d_output = e->output + out / sizeof(float);
}

/* ---- life ---- */

static void make(deep_maker *m) {
    deep_check(m, dnnl_engine_create(&m->p->engine, dnnl_cpu, 0));
    if (m->status == FDS_OK)
        deep_check(m, dnnl_stream_create(&m->p->stream, m->p->engine, dnnl_stream_default_flags));
    if (m->status == FDS_OK)
        deep_describe(m);
    if (m->status != FDS_OK || m->is_unsafe)
        return;
    make_weights(m);
    make_activations(m);
    make_scratch(m);
    make_ends(m);
    if (m->status == FDS_OK)
        deep_order(m);
}

fds_status deep_exec_create(const deep_graph *graph, uint32_t batch, unsigned threads,
                            fds__precision precision, bool is_training, deep_exec **out,
                            fds_error *err) {
    deep_exec *exec = fds__alloc_zero(1, sizeof *exec);
    deep_program *p = fds__alloc_zero(1, sizeof *p);
    if (!exec || !p) {
        fds__free(exec);
        fds__free(p);
        return fds__fail_nomem(err, sizeof *p);
    }
    *exec = (deep_exec){.graph = graph,
                        .batch = batch,
                        .threads = threads,
                        .precision = precision,
                        .is_training = is_training,
                        .bytes = sizeof *exec + sizeof *p,
                        .program = p};
    p->type = precision == FDS__PRECISION_BF16 ? dnnl_bf16 : dnnl_f32;
    p->loops = deep_loops_choose();
    onednn_begin();
    deep_maker m = {.exec = exec, .p = p, .err = err};
    deep_team team;
    m.status = deep_team_enter(threads, &team, err);
    if (m.status == FDS_OK) {
        make(&m);
        deep_team_leave(team);
    }
    if (m.status != FDS_OK || m.is_unsafe)
        deep_exec_free(exec);
    else
        *out = exec;
    if (m.status == FDS_OK && m.is_unsafe) /* which f32 never is */
        return deep_exec_create(graph, batch, threads, FDS__PRECISION_F32, is_training, out, err);
    return m.status;
}

static void free_ops(deep_ops *ops) {
    for (size_t i = 0; i < ops->count; i++)
        dnnl_primitive_destroy(ops->items[i].primitive);
    fds__free(ops->items);
}

void deep_exec_free(deep_exec *exec) {
    if (!exec)
        return;
    deep_program *p = exec->program;
    free_ops(&p->forward);
    free_ops(&p->backward);
    for (size_t i = 0; i < p->memory_count; i++)
        dnnl_memory_destroy(p->memories[i]);
    fds__free(p->memories);
    for (uint32_t i = 0; i < DEEP_MAX_NODES; i++) {
        dnnl_primitive_desc_destroy(p->specs[i].forward);
        dnnl_primitive_desc_destroy(p->specs[i].backward);
        dnnl_primitive_desc_destroy(p->specs[i].backward_weights);
    }
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
    deep_arena *arenas[] = {&p->values, &p->gradients,  &p->statistics, &p->activations,
                            &p->ends,   &p->scratchpad, &p->copy};
    for (size_t i = 0; i < sizeof arenas / sizeof *arenas; i++)
        deep_arena_free(arenas[i]);
    for (size_t i = 0; i < p->slot_count; i++)
        deep_arena_free(&p->slots[i]);
    fds__free(p);
    fds__free(exec);
}

/* ---- weights in PyTorch's layout ---- */

static fds_status reorder(const deep_exec *exec, const dnnl_memory_desc_t *from_md,
                          const float *from, const dnnl_memory_desc_t *to_md, float *to,
                          fds_error *err) {
    dnnl_engine_t engine = exec->program->engine;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_memory_t source = NULL, target = NULL;
    deep_team team;
    TRY(deep_team_enter(exec->threads, &team, err));
    dnnl_status_t status =
        dnnl_reorder_primitive_desc_create(&pd, from_md, engine, to_md, engine, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&primitive, pd);
    if (status == dnnl_success)
        status = dnnl_memory_create(&source, from_md, engine, (void *)(uintptr_t)from);
    if (status == dnnl_success)
        status = dnnl_memory_create(&target, to_md, engine, to);
    if (status == dnnl_success) {
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
        status = dnnl_primitive_execute(primitive, exec->program->stream, 2, args);
    }
    dnnl_memory_destroy(source);
    dnnl_memory_destroy(target);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
    deep_team_leave(team);
    return deep_status(status, "change the layout of a tensor", err);
}

/* The convolution on columns that owns a weight whose taps lie otherwise than in PyTorch, or NULL.
 */
static const deep_node *find_product(const deep_exec *exec, uint32_t tensor) {
    for (uint32_t i = 0; i < exec->graph->count; i++) {
        const deep_node *n = &exec->graph->nodes[i];
        if (n->kind == DEEP_CONV && n->tensor == tensor && exec->program->specs[i].is_product &&
            n->kernel[0] * n->kernel[1] > 1)
            return n;
    }
    return NULL;
}

/* Between a filter as PyTorch has it, plain (out, in, row, column), and those of its taps that a
 * product uses, in its order, taps (out, row, column, in). */
static void move_taps(const deep_exec *exec, const deep_node *n, float *plain, float *taps,
                      bool to_plain) {
    const deep_move *move = &exec->program->specs[n - exec->graph->nodes].move;
    size_t in = exec->graph->nodes[n->in].shape.channels;
    size_t top = n->padding[0] - move->padding[0], left = n->padding[1] - move->padding[1];
    for (size_t o = 0; o < n->shape.channels; o++)
        for (size_t i = top; i < top + move->kernel[0]; i++)
            for (size_t j = left; j < left + move->kernel[1]; j++)
                for (size_t c = 0; c < in; c++, taps++) {
                    float *at = &plain[((o * in + c) * n->kernel[0] + i) * n->kernel[1] + j];
                    if (to_plain)
                        *at = *taps;
                    else
                        *taps = *at;
                }
}

/* A tensor between its place within area and PyTorch's layout: is_read, from area to plain. */
static fds_status move_tensor(const deep_exec *exec, uint32_t tensor, float *area, float *plain,
                              bool is_read, fds_error *err) {
    const dnnl_memory_desc_t *kept_md = &exec->program->kept[tensor];
    const dnnl_memory_desc_t *plain_md = &exec->program->plain[tensor];
    const deep_node *product = find_product(exec, tensor);
    size_t size = exec->graph->tensors[tensor].count * sizeof(float);
    float *kept = area + exec->offsets[tensor];
    float *idle = exec->idle[tensor] ? area + exec->idle[tensor] : NULL;
    float *taps = product ? fds__alloc(size) : plain;
    if (!taps)
        return fds__fail_nomem(err, size);
    if (product && !is_read)
        move_taps(exec, product, plain, taps, false);
    fds_status status = is_read ? reorder(exec, kept_md, kept, plain_md, taps, err)
                                : reorder(exec, plain_md, taps, kept_md, kept, err);
    if (!product)
        return status;
    if (status == FDS_OK && is_read) {
        if (idle)
            memcpy(plain, idle, size);
        move_taps(exec, product, plain, taps, true);
    } else if (status == FDS_OK && idle) {
        memcpy(idle, plain, size);
        memset(taps, 0, size);
        move_taps(exec, product, idle, taps, true);
    }
    fds__free(taps);
    return status;
}

fds_status deep_exec_read(const deep_exec *exec, uint32_t tensor, const float *area, float *plain,
                          fds_error *err) {
    return move_tensor(exec, tensor, (float *)(uintptr_t)area, plain, true, err);
}

fds_status deep_exec_write(const deep_exec *exec, uint32_t tensor, const float *plain, float *area,
                           fds_error *err) {
    return move_tensor(exec, tensor, area, (float *)(uintptr_t)plain, false, err);
}

fds_status deep_exec_forward(deep_exec *exec, fds_error *err) {
    return deep_run(exec, &exec->program->forward, err);
}

fds_status deep_exec_backward(deep_exec *exec, fds_error *err) {
    return deep_run(exec, &exec->program->backward, err);
}
