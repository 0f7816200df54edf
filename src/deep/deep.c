/* SPDX-License-Identifier: Apache-2.0
 *
 * A deep network in memory: creating it, reading and writing its tensors, training it.
 */
#include "deep/onednn.h"

#include <math.h>
#include <string.h>

/* ---- creation ---- */

/* Bytes that oneDNN needs beside tensors: scratch of its kernels, a weight's copy. */
#define ONEDNN_BYTES ((size_t)48 << 20)

static size_t padded(size_t channels) { return (channels + 15) / 16 * 16; }

/* An estimate from the shapes, with channels rounded up to whole blocks: not below the truth. */
static size_t memory_needed(const fds__deep_params *p, const deep_graph *g) {
    size_t floats = 0, greatest = 0;
    for (uint32_t i = 0; i < g->tensor_count; i++) {
        const fds__deep_tensor *t = &g->tensors[i];
        size_t block = t->rank > 1 ? padded(t->dims[0]) * padded(t->dims[1]) : padded(t->count);
        floats += 4 * (t->rank == 4 ? block * t->dims[2] * t->dims[3] : block);
    }
    for (uint32_t i = 0; i < g->count; i++) {
        fds_shape s = g->nodes[i].shape;
        size_t size = p->batch * padded(s.channels) * s.height * s.width;
        greatest = MAX(greatest, size);
        if (g->nodes[i].kind != DEEP_ADD)
            floats += g->nodes[i].kind == DEEP_NORM ? size + size / 4 : size;
    }
    return sizeof(fds__deep) + (floats + 5 * greatest) * sizeof(float) + ONEDNN_BYTES;
}

static unsigned resolve(unsigned threads) { return threads ? threads : fds_processors(); }

fds_status fds__deep_check(const fds__deep_params *params, size_t *memory, fds_error *err) {
    if (memory)
        *memory = 0;
    OWNED deep_graph *graph = NULL;
    TRY(NEW(graph, 1, err));
    TRY(deep_graph_build(params, graph, err));
    deep_team team; /* can OpenMP give that many threads? */
    TRY(deep_team_enter(resolve(params->threads), &team, err));
    deep_team_leave(team);
    if (memory)
        *memory = memory_needed(params, graph);
    return FDS_OK;
}

static void draw(const deep_graph *g, uint32_t tensor, uint64_t seed, float *values) {
    fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_INIT, tensor, 0);
    for (size_t i = 0; i < g->tensors[tensor].count; i++) {
        double factor = g->init[tensor] == DEEP_UNIFORM  ? 2 * fds_rng_unit(&rng) - 1
                        : g->init[tensor] == DEEP_NORMAL ? fds_rng_normal(&rng)
                                                         : 1;
        values[i] = (float)(g->scale[tensor] * factor);
    }
}

static fds_status set_initial(fds__deep *net, fds_error *err) {
    size_t most = 0;
    for (uint32_t i = 0; i < net->graph.tensor_count; i++)
        most = MAX(most, net->graph.tensors[i].count);
    OWNED float *values = NULL;
    TRY(NEW(values, most, err));
    for (uint32_t i = 0; i < net->graph.tensor_count; i++) {
        draw(&net->graph, i, net->params.seed, values);
        TRY(fds__deep_write(net, i, FDS__DEEP_VALUE, values, err));
    }
    return FDS_OK;
}

static fds_status make(fds__deep *net, const fds__deep_params *params, fds_error *err) {
    TRY(deep_graph_build(params, &net->graph, err));
    net->params = *params;
    snprintf(net->network, sizeof net->network, "%s", params->network);
    net->params.network = net->network;
    net->params.threads = resolve(params->threads);
    net->loops = deep_loops_choose();
    if (params->use == FDS__DEEP_FORM)
        return FDS_OK;
    TRY(deep_exec_create(&net->graph, params->batch, net->params.threads, params->precision, true,
                         &net->exec, err));
    if (params->use == FDS__DEEP_FROZEN)
        return FDS_OK;
    TRY(deep_arena_make(&net->moment1, net->exec->weights * sizeof(float), err));
    TRY(deep_arena_make(&net->moment2, net->exec->weights * sizeof(float), err));
    return set_initial(net, err);
}

fds_status fds__deep_create(const fds__deep_params *params, fds__deep **out, fds_error *err) {
    fds__deep *net;
    TRY(NEW(net, 1, err));
    fds_status status = make(net, params, err);
    if (status == FDS_OK)
        *out = net;
    else
        fds__deep_free(net);
    return status;
}

void fds__deep_free(fds__deep *net) {
    if (!net)
        return;
    deep_exec_free(net->exec);
    deep_arena_free(&net->moment1);
    deep_arena_free(&net->moment2);
    fds__free(net);
}

const fds__deep_params *fds__deep_get_params(const fds__deep *net) { return &net->params; }

uint64_t fds__deep_flops_train(const fds__deep *net) {
    uint64_t flops = 0;
    for (uint32_t i = 0; i < net->graph.count; i++) /* the input's own gradient is not needed */
        flops += (net->graph.nodes[i].in ? 3 : 2) * deep_node_flops(&net->graph, i);
    return flops;
}

/* ---- tensors ---- */

size_t fds__deep_tensor_count(const fds__deep *net) { return net->graph.tensor_count; }

fds__deep_tensor fds__deep_tensor_at(const fds__deep *net, size_t i) {
    return net->graph.tensors[i];
}

static fds_status find_area(const fds__deep *net, size_t i, fds__deep_part part, float **area,
                            fds_error *err) {
    if (i >= net->graph.tensor_count)
        return fds__fail(err, FDS_ERR_USAGE, "no tensor %zu: the network has %u", i,
                         net->graph.tensor_count);
    bool is_statistic = net->graph.tensors[i].is_statistic;
    if (is_statistic && part != FDS__DEEP_VALUE)
        return fds__fail(err, FDS_ERR_USAGE, "%s has neither gradient nor moments",
                         net->graph.names[i]);
    bool has_moments = net->params.use == FDS__DEEP_TRAIN;
    if (!net->exec || (!has_moments && part != FDS__DEEP_VALUE))
        return fds__fail(err, FDS_ERR_USAGE, "%s has no such values: the network cannot be trained",
                         net->graph.names[i]);
    float *const areas[] = {
        [FDS__DEEP_VALUE] = is_statistic ? net->exec->running : net->exec->values,
        [FDS__DEEP_GRADIENT] = net->exec->gradients,
        [FDS__DEEP_MOMENT1] = net->moment1.data,
        [FDS__DEEP_MOMENT2] = net->moment2.data,
    };
    if ((unsigned)part >= sizeof areas / sizeof *areas)
        return fds__fail(err, FDS_ERR_USAGE, "a tensor has no part %d", (int)part);
    *area = areas[part];
    return FDS_OK;
}

fds_status fds__deep_read(const fds__deep *net, size_t i, fds__deep_part part, float *out,
                          fds_error *err) {
    float *area = NULL;
    TRY(find_area(net, i, part, &area, err));
    return deep_exec_read(net->exec, (uint32_t)i, area, out, err);
}

fds_status fds__deep_write(fds__deep *net, size_t i, fds__deep_part part, const float *values,
                           fds_error *err) {
    float *area = NULL;
    TRY(find_area(net, i, part, &area, err));
    TRY(deep_exec_write(net->exec, (uint32_t)i, values, area, err));
    size_t idle = net->exec->idle[i];
    for (size_t j = 0; idle && part != FDS__DEEP_VALUE && j < net->graph.tensors[i].count; j++)
        net->has_idle_moments |= area[idle + j] != 0;
    return FDS_OK;
}

uint64_t fds__deep_steps(const fds__deep *net) { return net->steps; }
void fds__deep_set_steps(fds__deep *net, uint64_t steps) { net->steps = steps; }

/* ---- a file's tensors ---- */

/* Is it a tensor of the network, PyTorch's counter of batches, or of what its outputs are for? */
static bool is_known(const fds__deep *net, const char *name) {
    const char *end = strrchr(name, '.');
    bool is_known = strcmp(end ? end + 1 : name, "num_batches_tracked") == 0 ||
                    strncmp(name, "players.", 8) == 0;
    for (uint32_t i = 0; i < net->graph.tensor_count; i++)
        is_known |= strcmp(net->graph.names[i], name) == 0;
    return is_known;
}

fds_status fds__deep_load(fds__deep *net, const char *path, const struct fds__safetensors *file,
                          bool features_only, fds_error *err) {
    const deep_graph *g = &net->graph;
    for (uint32_t i = 0; i < g->tensor_count; i++)
        if (!features_only || !deep_is_head(g->names[i]))
            TRY(fds__safetensors_check(path, file, net->network, g->names[i], g->tensors[i].rank,
                                       g->tensors[i].dims, err));
    for (size_t i = 0; !features_only && i < fds__safetensors_count(file); i++) {
        const char *name = fds__safetensors_tensor(file, i)->name;
        if (!is_known(net, name))
            return fds__fail(err, FDS_ERR_FORMAT, "%s: tensor \"%.100s\" does not belong to %s",
                             path, name, net->network);
    }
    for (uint32_t i = 0; i < g->tensor_count && net->exec; i++)
        if (!features_only || !deep_is_head(g->names[i]))
            TRY(fds__deep_write(net, i, FDS__DEEP_VALUE,
                                fds__safetensors_find(file, g->names[i])->values, err));
    return FDS_OK;
}

/* ---- training ---- */

void deep_gather(deep_exec *exec, fds_shape shape, const float *x, const uint32_t *index,
                 size_t count) {
    size_t given = fds__shape_size(shape), wanted = deep_node_size(&exec->graph->nodes[0]);
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at < wanted; at += given)
            memcpy(exec->input + i * wanted + at, x + (index ? index[i] : i) * given,
                   given * sizeof *x);
    memset(exec->input + count * wanted, 0, (exec->batch - count) * wanted * sizeof *x);
}

/* PyTorch's rule: the running statistics move a tenth of the way to the batch's mean and unbiased
 * variance. */
static void move_running(fds__deep *net) {
    const deep_exec *e = net->exec;
    for (uint32_t i = 0; i < net->graph.count; i++) {
        const deep_node *n = &net->graph.nodes[i];
        if (n->kind != DEEP_NORM)
            continue;
        double values = (double)e->batch * n->shape.height * n->shape.width;
        float unbiased = (float)(values / (values - 1));
        size_t mean = e->offsets[n->tensor + 2], variance = e->offsets[n->tensor + 3];
        for (size_t c = 0; c < n->shape.channels; c++) {
            e->running[mean + c] = 0.9f * e->running[mean + c] + 0.1f * e->moments[mean + c];
            e->running[variance + c] =
                0.9f * e->running[variance + c] + 0.1f * (unbiased * e->moments[variance + c]);
        }
    }
}

fds_status fds__deep_forward(fds__deep *net, const float *x, const uint32_t *index, float *out,
                             fds_error *err) {
    deep_exec *e = net->exec;
    deep_gather(e, net->params.input, x, index, e->batch);
    TRY(deep_exec_forward(e, err));
    move_running(net);
    memcpy(out, e->output, (size_t)e->batch * net->params.outputs * sizeof *out);
    return FDS_OK;
}

fds_status fds__deep_backward(fds__deep *net, const float *gradient, fds_error *err) {
    deep_exec *e = net->exec;
    memcpy(e->d_output, gradient, (size_t)e->batch * net->params.outputs * sizeof *gradient);
    return deep_exec_backward(e, err);
}

typedef struct {
    fds__deep *net;
    deep_adam constants;
    int is_diverged; /* set by any thread */
} step;

static void step_part(void *context, size_t begin, size_t end) {
    step *s = context;
    fds__deep *net = s->net;
    float *m = net->moment1.data, *v = net->moment2.data;
    if (!net->loops->adam(&s->constants, net->exec->values + begin, net->exec->gradients + begin,
                          m + begin, v + begin, end - begin))
        __atomic_store_n(&s->is_diverged, 1, __ATOMIC_RELAXED);
}

fds_status fds__deep_step(fds__deep *net, const fds__adam *adam, fds_error *err) {
    double t = (double)net->steps + 1;
    step s = {.net = net,
              .constants = {.beta1 = adam->beta1,
                            .beta2 = adam->beta2,
                            .rest1 = 1 - adam->beta1,
                            .rest2 = 1 - adam->beta2,
                            .epsilon = adam->epsilon,
                            .decay = adam->decoupled ? 0 : adam->weight_decay,
                            .keep = adam->decoupled ? 1 - adam->lr * adam->weight_decay : 1,
                            .rate = (float)(adam->lr / (1 - pow(adam->beta1, t))),
                            .root = (float)(1 / sqrt(1 - pow(adam->beta2, t)))}};
    /* idle taps have no gradient: only weight decay or a moment can move them */
    bool is_idle_still = adam->weight_decay == 0 && !net->has_idle_moments;
    deep_team team;
    TRY(deep_team_enter(net->params.threads, &team, err));
    net->steps++;
    deep_parallel(is_idle_still ? net->exec->active : net->exec->weights, step_part, &s);
    deep_team_leave(team);
    if (s.is_diverged)
        return fds__fail(
            err, FDS_ERR_DIVERGED,
            "a weight is no longer finite after step %llu: use a smaller learning rate",
            (unsigned long long)net->steps);
    return FDS_OK;
}
