/* SPDX-License-Identifier: Apache-2.0
 * The deep reference network: forward and backward of each node side by side. */
#include "deep_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double EPSILON = 1e-5; /* of batch norm */

static double *zeros(size_t count) { return calloc(count ? count : 1, sizeof(double)); }

deep_ref *deep_ref_create(const deep_graph *graph, size_t batch) {
    deep_ref *ref = calloc(1, sizeof *ref);
    ref->graph = graph;
    ref->batch = batch;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        ref->values[i] = zeros(graph->tensors[i].count);
        ref->gradients[i] = zeros(graph->tensors[i].count);
        ref->moment1[i] = zeros(graph->tensors[i].count);
        ref->moment2[i] = zeros(graph->tensors[i].count);
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        const deep_node *n = &graph->nodes[i];
        ref->results[i] = zeros(batch * deep_node_size(n));
        ref->d_results[i] = zeros(batch * deep_node_size(n));
        ref->means[i] = zeros(n->shape.channels);
        ref->variances[i] = zeros(n->shape.channels);
    }
    return ref;
}

void deep_ref_free(deep_ref *ref) {
    for (uint32_t i = 0; i < ref->graph->tensor_count; i++) {
        free(ref->values[i]);
        free(ref->gradients[i]);
        free(ref->moment1[i]);
        free(ref->moment2[i]);
    }
    for (uint32_t i = 0; i < ref->graph->count; i++) {
        free(ref->results[i]);
        free(ref->d_results[i]);
        free(ref->means[i]);
        free(ref->variances[i]);
    }
    free(ref);
}

/* ---- products ---- */

/* Calls for every term of a convolution: y[at_y] += w[at_w] * x[at_x]. */
#define FOR_CONV(batch, s, n)                                                     \
    for (size_t b = 0; b < (batch); b++)                                          \
        for (size_t o = 0; o < (n)->shape.channels; o++)                          \
            for (size_t i = 0; i < (n)->shape.height; i++)                        \
                for (size_t j = 0; j < (n)->shape.width; j++)                     \
                    for (size_t c = 0; c < (s).channels; c++)                     \
                        for (size_t p = 0; p < (n)->kernel[0]; p++)               \
                            for (size_t q = 0, row = i * (n)->stride + p, column; \
                                 q < (n)->kernel[1]; q++)                         \
                                if (column = j * (n)->stride + q,                 \
                                    row >= (n)->padding[0] &&                     \
                                        row < (s).height + (n)->padding[0] &&     \
                                        column >= (n)->padding[1] &&              \
                                        column < (s).width + (n)->padding[1])
#define AT_Y(n) (((b * (n)->shape.channels + o) * (n)->shape.height + i) * (n)->shape.width + j)
#define AT_X(s, n)                                                                        \
    (((b * (s).channels + c) * (s).height + row - (n)->padding[0]) * (s).width + column - \
     (n)->padding[1])
#define AT_W(s, n) (((o * (s).channels + c) * (n)->kernel[0] + p) * (n)->kernel[1] + q)

/* A linear layer is a convolution whose filter covers the whole image. */
static deep_node as_conv(const deep_node *n, fds_shape in) {
    deep_node conv = *n;
    if (n->kind == DEEP_FC) {
        conv.kernel[0] = in.height;
        conv.kernel[1] = in.width;
        conv.stride = 1;
    }
    return conv;
}

static void product_forward(deep_ref *ref, const deep_node *n, const double *x, double *y) {
    fds_shape in = ref->graph->nodes[n->in].shape;
    deep_node conv = as_conv(n, in);
    const double *w = ref->values[n->tensor];
    size_t map = (size_t)n->shape.height * n->shape.width;
    for (size_t k = 0; k < ref->batch * n->shape.channels * map; k++)
        y[k] = n->has_bias ? ref->values[n->tensor + 1][k / map % n->shape.channels] : 0;
    FOR_CONV(ref->batch, in, &conv) y[AT_Y(&conv)] += w[AT_W(in, &conv)] * x[AT_X(in, &conv)];
}

static void product_backward(deep_ref *ref, const deep_node *n, const double *x, const double *dy,
                             double *dx) {
    fds_shape in = ref->graph->nodes[n->in].shape;
    deep_node conv = as_conv(n, in);
    const double *w = ref->values[n->tensor];
    double *dw = ref->gradients[n->tensor];
    size_t map = (size_t)n->shape.height * n->shape.width;
    for (size_t k = 0; n->has_bias && k < ref->batch * n->shape.channels * map; k++)
        ref->gradients[n->tensor + 1][k / map % n->shape.channels] += dy[k];
    FOR_CONV(ref->batch, in, &conv) {
        dw[AT_W(in, &conv)] += dy[AT_Y(&conv)] * x[AT_X(in, &conv)];
        dx[AT_X(in, &conv)] += dy[AT_Y(&conv)] * w[AT_W(in, &conv)];
    }
}

/* ---- batch norm ---- */

/* Calls for every value of channel c, at being its place. */
#define FOR_CHANNEL(ref, n, c)                                                                    \
    for (size_t b = 0, map = (size_t)(n)->shape.height * (n)->shape.width; b < (ref)->batch; b++) \
        for (size_t at = (b * (n)->shape.channels + (c)) * map, end = at + map; at < end; at++)

static void norm_forward(deep_ref *ref, uint32_t node, const double *x, double *y, bool is_training,
                         bool is_still) {
    const deep_node *n = &ref->graph->nodes[node];
    double **t = &ref->values[n->tensor],
           count = (double)ref->batch * n->shape.height * n->shape.width;
    for (size_t c = 0; c < n->shape.channels; c++) {
        double mean = t[2][c], variance = t[3][c];
        if (is_training) {
            mean = variance = 0;
            FOR_CHANNEL(ref, n, c) mean += x[at] / count;
            FOR_CHANNEL(ref, n, c) variance += (x[at] - mean) * (x[at] - mean) / count;
            if (!is_still) {
                t[2][c] = 0.9 * t[2][c] + 0.1 * mean;
                t[3][c] = 0.9 * t[3][c] + 0.1 * variance * count / (count - 1);
            }
        }
        ref->means[node][c] = mean;
        ref->variances[node][c] = variance;
        FOR_CHANNEL(ref, n, c)
        y[at] = t[0][c] * (x[at] - mean) / sqrt(variance + EPSILON) + t[1][c];
    }
}

/* y = scale * z + shift with z = (x - mean) / deviation, where mean and deviation depend on x too:
 * dx = scale / deviation * (dy - mean(dy) - z * mean(dy * z)) */
static void norm_backward(deep_ref *ref, uint32_t node, const double *x, const double *dy,
                          double *dx) {
    const deep_node *n = &ref->graph->nodes[node];
    double count = (double)ref->batch * n->shape.height * n->shape.width;
    for (size_t c = 0; c < n->shape.channels; c++) {
        double mean = ref->means[node][c], deviation = sqrt(ref->variances[node][c] + EPSILON);
        double sum = 0, sum_z = 0, scale = ref->values[n->tensor][c];
        FOR_CHANNEL(ref, n, c) {
            sum += dy[at];
            sum_z += dy[at] * (x[at] - mean) / deviation;
        }
        ref->gradients[n->tensor][c] += sum_z;
        ref->gradients[n->tensor + 1][c] += sum;
        FOR_CHANNEL(ref, n, c)
        dx[at] +=
            scale / deviation * (dy[at] - sum / count - (x[at] - mean) / deviation * sum_z / count);
    }
}

/* ---- pooling ---- */

/* Where the greatest value of an output's window lies, the first of equals. */
static size_t pool_place(const deep_ref *ref, const deep_node *n, const double *x, size_t out,
                         double *kink) {
    fds_shape in = ref->graph->nodes[n->in].shape;
    size_t plane = out / n->shape.width / n->shape.height, best = SIZE_MAX;
    size_t i = out / n->shape.width % n->shape.height, j = out % n->shape.width;
    for (size_t p = 0; p < n->kernel[0]; p++)
        for (size_t q = 0; q < n->kernel[1]; q++) {
            size_t row = i * n->stride + p, column = j * n->stride + q;
            if (row < n->padding[0] || row >= in.height + n->padding[0] || column < n->padding[1] ||
                column >= in.width + n->padding[1])
                continue;
            size_t here =
                (plane * in.height + row - n->padding[0]) * in.width + column - n->padding[1];
            if (best != SIZE_MAX && x[here] != x[best] && kink)
                *kink = fmin(*kink, fabs(x[here] - x[best]));
            if (best == SIZE_MAX || x[here] > x[best])
                best = here;
        }
    return best;
}

/* ---- the network ---- */

const double *deep_ref_forward(deep_ref *ref, const float *x, bool is_training, bool is_still) {
    const deep_graph *g = ref->graph;
    ref->kink = INFINITY;
    for (size_t k = 0; k < ref->batch * deep_node_size(&g->nodes[0]); k++)
        ref->results[0][k] = x[k];
    for (uint32_t node = 1; node < g->count; node++) {
        const deep_node *n = &g->nodes[node];
        const double *in = ref->results[n->in];
        double *y = ref->results[node];
        size_t count = ref->batch * deep_node_size(n);
        size_t map = deep_node_size(&g->nodes[n->in]) / g->nodes[n->in].shape.channels;
        switch (n->kind) {
        case DEEP_CONV:
        case DEEP_FC:
            product_forward(ref, n, in, y);
            break;
        case DEEP_NORM:
            norm_forward(ref, node, in, y, is_training, is_still);
            break;
        case DEEP_ADD:
            for (size_t k = 0; k < count; k++)
                y[k] = in[k] + ref->results[n->other][k];
            break;
        case DEEP_MAXPOOL:
            for (size_t k = 0; k < count; k++)
                y[k] = in[pool_place(ref, n, in, k, &ref->kink)];
            break;
        case DEEP_AVGPOOL:
            for (size_t k = 0; k < count; k++) {
                y[k] = 0;
                for (size_t p = 0; p < map; p++)
                    y[k] += in[k * map + p] / (double)map;
            }
            break;
        case DEEP_INPUT:
            break;
        }
        for (size_t k = 0; n->has_relu && k < count; k++) {
            ref->kink = fmin(ref->kink, fabs(y[k]));
            y[k] = fmax(y[k], 0);
        }
    }
    return ref->results[g->count - 1];
}

static void backward_node(deep_ref *ref, uint32_t node) {
    const deep_graph *g = ref->graph;
    const deep_node *n = &g->nodes[node];
    const double *in = ref->results[n->in];
    double *dy = ref->d_results[node], *dx = ref->d_results[n->in];
    size_t count = ref->batch * deep_node_size(n);
    size_t map = deep_node_size(&g->nodes[n->in]) / g->nodes[n->in].shape.channels;
    for (size_t k = 0; n->has_relu && k < count; k++)
        if (!(ref->results[node][k] > 0))
            dy[k] = 0;
    switch (n->kind) {
    case DEEP_CONV:
    case DEEP_FC:
        product_backward(ref, n, in, dy, dx);
        break;
    case DEEP_NORM:
        norm_backward(ref, node, in, dy, dx);
        break;
    case DEEP_ADD:
        for (size_t k = 0; k < count; k++) {
            dx[k] += dy[k];
            ref->d_results[n->other][k] += dy[k];
        }
        break;
    case DEEP_MAXPOOL:
        for (size_t k = 0; k < count; k++)
            dx[pool_place(ref, n, in, k, NULL)] += dy[k];
        break;
    case DEEP_AVGPOOL:
        for (size_t k = 0; k < count * map; k++)
            dx[k] += dy[k / map] / (double)map;
        break;
    case DEEP_INPUT:
        break;
    }
}

void deep_ref_backward(deep_ref *ref, const float *d) {
    const deep_graph *g = ref->graph;
    for (uint32_t i = 0; i < g->tensor_count; i++)
        memset(ref->gradients[i], 0, g->tensors[i].count * sizeof(double));
    for (uint32_t i = 0; i < g->count; i++)
        memset(ref->d_results[i], 0, ref->batch * deep_node_size(&g->nodes[i]) * sizeof(double));
    uint32_t last = g->count - 1;
    for (size_t k = 0; k < ref->batch * deep_node_size(&g->nodes[last]); k++)
        ref->d_results[last][k] = d[k];
    for (uint32_t node = last; node > 0; node--)
        backward_node(ref, node);
}

void deep_ref_adam(deep_ref *ref, const fds__adam *a) {
    double t = ++ref->steps;
    for (uint32_t i = 0; i < ref->graph->tensor_count; i++) {
        double *w = ref->values[i], *m = ref->moment1[i], *v = ref->moment2[i];
        for (size_t j = 0; !ref->graph->tensors[i].is_statistic && j < ref->graph->tensors[i].count;
             j++) {
            double g = ref->gradients[i][j] + (a->decoupled ? 0 : a->weight_decay * w[j]);
            if (a->decoupled)
                w[j] -= a->lr * a->weight_decay * w[j];
            m[j] = a->beta1 * m[j] + (1 - (double)a->beta1) * g;
            v[j] = a->beta2 * v[j] + (1 - (double)a->beta2) * g * g;
            w[j] -= a->lr * (m[j] / (1 - pow(a->beta1, t))) /
                    (sqrt(v[j] / (1 - pow(a->beta2, t))) + a->epsilon);
        }
    }
}
