/* SPDX-License-Identifier: Apache-2.0
 *
 * A network for oneDNN: creation and memory; weights to and from PyTorch's layout. */
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
    /* It would print to stdout. A program that called dnnl_set_verbose itself wants that. */
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
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } names[] = {
        {dnnl_cpu_isa_avx512_core_amx, "AVX512_CORE_AMX"},
        {dnnl_cpu_isa_avx512_core_bf16, "AVX512_CORE_BF16"},
        {dnnl_cpu_isa_avx512_core_vnni, "AVX512_CORE_VNNI"},
        {dnnl_cpu_isa_avx512_core, "AVX512_CORE"},
        {dnnl_cpu_isa_avx2_vnni, "AVX2_VNNI"},
        {dnnl_cpu_isa_avx2, "AVX2"},
        {dnnl_cpu_isa_avx, "AVX"},
        {dnnl_cpu_isa_sse41, "SSE41"},
    };
    dnnl_cpu_isa_t isa = get_isa();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].isa == isa)
            return names[i].name;
    return "GENERIC";
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
        return fds__fail(err, FDS_ERR_NOMEM, "oneDNN has too little memory to %s", work);
    return fds__fail(err, FDS_ERR_UNSUPPORTED, "oneDNN cannot %s: %s", work,
                     status == dnnl_unimplemented ? "not implemented" : "failure");
}

void deep_check(deep_maker *m, dnnl_status_t status) {
    char work[48];
    if (status == dnnl_success || m->status != FDS_OK)
        return;
    snprintf(work, sizeof work, "make node %u of the network", m->node);
    m->status = deep_status(status, m->work ? m->work : work, m->err);
}

/* ---- memory ---- */

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

void *deep_memory(deep_maker *m, size_t size) {
    deep_arena *arena = &m->p->arenas[m->p->arena_count];
    if (m->status != FDS_OK)
        return NULL;
    m->status = deep_arena_make(arena, size, m->err);
    m->exec->bytes += arena->size;
    m->p->arena_count++;
    return arena->data;
}

/* Does the tensor have taps that no product needs? */
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
    e->values = deep_memory(m, e->weights * sizeof(float));
    if (!e->is_training)
        return;
    e->gradients = deep_memory(m, e->weights * sizeof(float));
    e->running = deep_memory(m, e->statistics * sizeof(float));
    e->moments = deep_memory(m, e->statistics * sizeof(float));
}

/* Results of nodes, one after the other. An addition overwrites its first operand; a convolution
 * that adds overwrites what it adds. */
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
    m->p->activations = deep_memory(m, at);
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
    m->p->scratchpad = deep_memory(m, scratch);
    m->p->copy = deep_memory(m, m->exec->is_training ? copy : 0);
}

static void make_ends(deep_maker *m) {
    deep_exec *e = m->exec;
    const deep_node *first = e->graph->nodes, *last = first + e->graph->count - 1;
    e->input = deep_memory(m, e->batch * deep_node_size(first) * sizeof(float));
    e->output = deep_memory(m, e->batch * deep_node_size(last) * sizeof(float));
    e->d_output = deep_memory(m, e->batch * deep_node_size(last) * sizeof(float));
}

/* ---- creation ---- */

static void make(deep_maker *m) {
    ONEDNN(m, dnnl_engine_create(&m->p->engine, dnnl_cpu, 0));
    ONEDNN(m, dnnl_stream_create(&m->p->stream, m->p->engine, dnnl_stream_default_flags));
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
    if (m.status == FDS_OK && m.is_unsafe) /* f32 is always safe */
        return deep_exec_create(graph, batch, threads, FDS__PRECISION_F32, is_training, out, err);
    return m.status;
}

void deep_exec_free(deep_exec *exec) {
    if (!exec)
        return;
    deep_program *p = exec->program;
    deep_ops_free(&p->forward);
    deep_ops_free(&p->backward);
    for (uint32_t i = 0; i < DEEP_MAX_NODES; i++) {
        dnnl_primitive_desc_destroy(p->specs[i].forward);
        dnnl_primitive_desc_destroy(p->specs[i].backward);
        dnnl_primitive_desc_destroy(p->specs[i].backward_weights);
    }
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
    for (size_t i = 0; i < p->arena_count; i++)
        deep_arena_free(&p->arenas[i]);
    fds__free(p);
    fds__free(exec);
}

/* ---- weights in PyTorch's layout ---- */

static fds_status reorder(const deep_exec *exec, const dnnl_memory_desc_t *from_md,
                          const float *from, const dnnl_memory_desc_t *to_md, float *to,
                          fds_error *err) {
    deep_maker m = {.p = exec->program, .err = err, .work = "change the layout of a tensor"};
    deep_ops ops = {0};
    deep_team team;
    TRY(deep_team_enter(exec->threads, &team, err));
    deep_push_reorder(&m, &ops, from_md, from, to_md, to);
    if (m.status == FDS_OK)
        m.status = deep_run(exec, &ops, err);
    deep_ops_free(&ops);
    deep_team_leave(team);
    return m.status;
}

/* The convolution on columns that owns a weight, if its taps are in another order than PyTorch's;
 * else NULL. */
static const deep_node *find_product(const deep_exec *exec, uint32_t tensor) {
    for (uint32_t i = 0; i < exec->graph->count; i++) {
        const deep_node *n = &exec->graph->nodes[i];
        if (n->kind == DEEP_CONV && n->tensor == tensor && exec->program->specs[i].is_product &&
            n->kernel[0] * n->kernel[1] > 1)
            return n;
    }
    return NULL;
}

/* Copies between PyTorch's filter, plain (out, in, row, column), and the taps of it that a product
 * uses, in the product's order, taps (out, row, column, in). */
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

/* Copies a tensor from its place in area to PyTorch's layout (is_read), or back. */
static fds_status move_tensor(const deep_exec *exec, uint32_t tensor, float *area, float *plain,
                              bool is_read, fds_error *err) {
    const dnnl_memory_desc_t *kept_md = &exec->program->kept[tensor];
    const dnnl_memory_desc_t *plain_md = &exec->program->plain[tensor];
    const deep_node *product = find_product(exec, tensor);
    size_t count = exec->graph->tensors[tensor].count, size = count * sizeof(float);
    float *kept = area + exec->offsets[tensor];
    float *idle = exec->idle[tensor] ? area + exec->idle[tensor] : NULL;
    if (!product)
        return is_read ? reorder(exec, kept_md, kept, plain_md, plain, err)
                       : reorder(exec, plain_md, plain, kept_md, kept, err);
    OWNED float *taps = NULL;
    TRY(NEW(taps, count, err));
    if (is_read) {
        TRY(reorder(exec, kept_md, kept, plain_md, taps, err));
        if (idle)
            memcpy(plain, idle, size);
        move_taps(exec, product, plain, taps, true);
        return FDS_OK;
    }
    move_taps(exec, product, plain, taps, false);
    TRY(reorder(exec, plain_md, taps, kept_md, kept, err));
    if (idle) {
        memcpy(idle, plain, size);
        memset(taps, 0, size);
        move_taps(exec, product, idle, taps, true);
    }
    return FDS_OK;
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
