/* SPDX-License-Identifier: Apache-2.0
 *
 * A frozen copy of a deep network for prediction. Batch norm with running statistics is a scale and
 * a shift per channel, which become part of the convolution before it:
 *     w' = w s,  b' = shift - mean s,  s = scale / sqrt(variance + 1e-5) */
#include "deep/onednn.h"

#include <math.h>
#include <string.h>

struct fds__deep_infer {
    deep_graph graph;              /* folded */
    uint32_t from[DEEP_MAX_NODES]; /* nodes of the network that it was made from */
    fds_shape input;
    uint32_t outputs;
    deep_exec *exec;
    float *filter, *folded, *norm; /* scratch: one weight, twice, and a batch norm's four tensors */
};

/* ---- weights ---- */

/* The batch norm that reads a node, or NULL. */
static const deep_node *norm_after(const deep_graph *g, uint32_t node) {
    for (uint32_t i = node + 1; i < g->count; i++)
        if (g->nodes[i].kind == DEEP_NORM && g->nodes[i].in == node)
            return &g->nodes[i];
    return NULL;
}

/* scale (channels) of the batch norm after a convolution, with its shift (channels) behind it; 1
 * and 0 where norm is NULL. scale has memory for the four tensors of the batch norm. */
static fds_status read_norm(const fds__deep *net, const deep_node *norm, uint32_t channels,
                            float *scale, fds_error *err) {
    float *shift = scale + channels, *mean = shift + channels, *variance = mean + channels;
    for (uint32_t i = 0; norm && i < 4; i++)
        TRY(fds__deep_read(net, norm->tensor + i, FDS__DEEP_VALUE, scale + i * channels, err));
    for (uint32_t c = 0; c < channels; c++) {
        double s = norm ? scale[c] / sqrt((double)variance[c] + 1e-5) : 1;
        shift[c] = norm ? (float)(shift[c] - mean[c] * s) : 0;
        scale[c] = (float)s;
    }
    return FDS_OK;
}

/* The part of a filter that the folded node uses, scaled. */
static void fold_filter(const deep_node *whole, const deep_node *part, size_t in_channels,
                        const float *scale, const float *filter, float *out) {
    size_t top = whole->padding[0] - part->padding[0], left = whole->padding[1] - part->padding[1];
    size_t rows = part->kernel[0], columns = part->kernel[1];
    for (size_t o = 0; o < part->shape.channels; o++)
        for (size_t c = 0; c < in_channels; c++)
            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < columns; j++)
                    *out++ =
                        scale[o] * filter[((o * in_channels + c) * whole->kernel[0] + top + i) *
                                              whole->kernel[1] +
                                          left + j];
}

static fds_status take_node(fds__deep_infer *infer, const fds__deep *net, uint32_t node,
                            fds_error *err) {
    const deep_node *part = &infer->graph.nodes[node];
    const deep_node *whole = &net->graph.nodes[infer->from[node]];
    uint32_t channels = part->shape.channels;
    float *values = infer->exec->values, *weight = infer->filter;
    float *scale = infer->norm, *bias = scale + channels;
    TRY(fds__deep_read(net, whole->tensor, FDS__DEEP_VALUE, infer->filter, err));
    if (part->kind == DEEP_CONV) {
        TRY(read_norm(net, norm_after(&net->graph, infer->from[node]), channels, scale, err));
        weight = infer->folded;
        fold_filter(whole, part, infer->graph.nodes[part->in].shape.channels, scale, infer->filter,
                    weight);
    }
    if (whole->has_bias) /* no batch norm follows */
        TRY(fds__deep_read(net, whole->tensor + 1, FDS__DEEP_VALUE, bias, err));
    TRY(deep_exec_write(infer->exec, part->tensor, weight, values, err));
    return deep_exec_write(infer->exec, part->tensor + 1, bias, values, err);
}

fds_status fds__deep_infer_update(fds__deep_infer *infer, const fds__deep *net, fds_error *err) {
    for (uint32_t i = 0; i < infer->graph.count; i++)
        if (infer->graph.nodes[i].kind == DEEP_CONV || infer->graph.nodes[i].kind == DEEP_FC)
            TRY(take_node(infer, net, i, err));
    return FDS_OK;
}

/* ---- creation ---- */

static fds_status make(fds__deep_infer *infer, const fds__deep *net, uint32_t batch,
                       fds_error *err) {
    size_t weight = 0, width = 0;
    if (!batch || batch > 65536)
        return fds__fail(err, FDS_ERR_USAGE, "batch is %u, but must be 1 to 65536", batch);
    infer->input = net->params.input;
    infer->outputs = net->params.outputs;
    deep_graph_fold(&net->graph, &infer->graph, infer->from);
    for (uint32_t i = 0; i < net->graph.tensor_count; i++) {
        weight = MAX(weight, net->graph.tensors[i].count);
        width = MAX(width, net->graph.tensors[i].dims[0]);
    }
    TRY(NEW(infer->filter, weight, err));
    TRY(NEW(infer->folded, weight, err));
    TRY(NEW(infer->norm, 4 * width, err));
    TRY(deep_exec_create(&infer->graph, batch, net->params.threads, net->params.precision, false,
                         &infer->exec, err));
    return fds__deep_infer_update(infer, net, err);
}

fds_status fds__deep_infer_create(const fds__deep *net, uint32_t batch, fds__deep_infer **out,
                                  fds_error *err) {
    fds__deep_infer *infer;
    TRY(NEW(infer, 1, err));
    fds_status status = make(infer, net, batch, err);
    if (status == FDS_OK)
        *out = infer;
    else
        fds__deep_infer_free(infer);
    return status;
}

void fds__deep_infer_free(fds__deep_infer *infer) {
    if (!infer)
        return;
    deep_exec_free(infer->exec);
    fds__free(infer->filter);
    fds__free(infer->folded);
    fds__free(infer->norm);
    fds__free(infer);
}

fds_status fds__deep_infer_run(fds__deep_infer *infer, const float *x, size_t count, float *out,
                               fds_error *err) {
    size_t sample = fds__shape_size(infer->input), batch = infer->exec->batch;
    for (size_t first = 0; first < count; first += batch) {
        size_t now = MIN(batch, count - first);
        deep_gather(infer->exec, infer->input, x + first * sample, NULL, now);
        TRY(deep_exec_forward(infer->exec, err));
        memcpy(out + first * infer->outputs, infer->exec->output,
               now * infer->outputs * sizeof *out);
    }
    return FDS_OK;
}
