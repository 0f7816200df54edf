/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of networks to graphs: torchvision's resnets with its names and shapes, a small
 * convolutional network, a multilayer perceptron. */
#include "deep/graph.h"

#include <math.h>
#include <string.h>

#define MAX_SAMPLE ((size_t)1 << 26) /* floats of one node's result for one sample */
#define MAX_BATCH ((size_t)1 << 31)  /* and for the whole batch */

/* ---- the networks as tables ---- */

/* A row of cnn: a convolution of 3 x 3, or a residual block of two, each with batch norm. */
static const struct {
    bool is_block;
    uint32_t channels, stride;
} cnn_rows[] = {{false, 32, 1}, {false, 64, 2}, {true, 64, 1}, {false, 128, 2}, {true, 128, 1}};
enum { CNN_HEAD = 32, RESNET_HEAD = 512 }; /* channels of head.conv */

/* mlp is narrower on inputs so large that the first layer would be most of the network. */
enum { MLP_LAYERS = 2, MLP_WIDTH = 1024, MLP_NARROW = 512, MLP_LARGE_INPUT = 1024 };

typedef struct {
    const char *name;
    uint32_t blocks[4], widening; /* widening 4: bottlenecks of three convolutions */
} resnet;

static const resnet resnets[] = {{"resnet18", {2, 2, 2, 2}, 1}, {"resnet50", {3, 4, 6, 3}, 4}};

static const char *const networks[] = {"resnet18", "resnet50", "cnn", "mlp", "linear", NULL};

const char *const *fds__deep_networks(void) { return networks; }

/* ---- adding nodes; each returns the new node's number ---- */

typedef struct {
    deep_graph *g;
    bool he; /* convolutions start by He's rule */
    bool failed;
} builder;

static uint32_t add_node(builder *b, deep_node node) {
    deep_graph *g = b->g;
    fds_shape s = node.shape;
    /* factors are below 2^32 and 2^16: no overflow */
    if (!s.height || !s.width || s.height > 65535 || s.width > 65535 || s.channels > MAX_SAMPLE ||
        (size_t)s.channels * s.height > MAX_SAMPLE || deep_node_size(&node) > MAX_SAMPLE ||
        g->count == DEEP_MAX_NODES)
        b->failed = true;
    if (b->failed)
        return 0;
    g->nodes[g->count] = node;
    return g->count++;
}

static void add_tensor(builder *b, const char *layer, const char *part, deep_init init,
                       double scale, uint32_t rank, const uint32_t *dims) {
    deep_graph *g = b->g;
    if (b->failed || g->tensor_count == DEEP_MAX_TENSORS) {
        b->failed = true;
        return;
    }
    uint32_t i = g->tensor_count++;
    fds__deep_tensor *t = &g->tensors[i];
    *t = (fds__deep_tensor){.name = g->names[i], .rank = rank, .count = 1};
    for (uint32_t d = 0; d < rank; d++) {
        t->dims[d] = dims[d];
        if (!fds__mul(t->count, dims[d], &t->count))
            b->failed = true;
    }
    b->failed |= t->count > FDS__MAX_WEIGHTS;
    t->is_statistic = strncmp(part, "running", 7) == 0;
    snprintf(g->names[i], sizeof g->names[i], "%.24s.%.13s", layer, part);
    g->init[i] = init;
    g->scale[i] = scale;
}

/* A node that moves a window over its input, padded by half a window. */
static deep_node slide(const builder *b, deep_kind kind, uint32_t in, uint32_t channels,
                       uint32_t kernel, uint32_t stride) {
    fds_shape s = b->g->nodes[in].shape;
    uint32_t padding = kernel / 2;
    return (deep_node){.kind = kind,
                       .in = in,
                       .shape = {channels, (s.height + 2 * padding - kernel) / stride + 1,
                                 (s.width + 2 * padding - kernel) / stride + 1},
                       .kernel = {kernel, kernel},
                       .stride = stride,
                       .padding = {padding, padding}};
}

static uint32_t conv(builder *b, const char *name, uint32_t in, uint32_t channels, uint32_t kernel,
                     uint32_t stride, bool has_bias) {
    fds_shape s = b->g->nodes[in].shape;
    uint32_t dims[4] = {channels, s.channels, kernel, kernel};
    deep_node node = slide(b, DEEP_CONV, in, channels, kernel, stride);
    node.has_bias = node.has_relu = has_bias;
    node.tensor = b->g->tensor_count;
    double bound = 1 / sqrt((double)s.channels * kernel * kernel);
    if (b->he && !has_bias)
        add_tensor(b, name, "weight", DEEP_NORMAL, sqrt(2.0 / channels / kernel / kernel), 4, dims);
    else
        add_tensor(b, name, "weight", DEEP_UNIFORM, bound, 4, dims);
    if (has_bias)
        add_tensor(b, name, "bias", DEEP_UNIFORM, bound, 1, dims);
    return add_node(b, node);
}

static uint32_t norm(builder *b, const char *name, uint32_t in, bool has_relu) {
    fds_shape s = b->g->nodes[in].shape;
    deep_node node = {.kind = DEEP_NORM,
                      .in = in,
                      .shape = s,
                      .has_relu = has_relu,
                      .tensor = b->g->tensor_count};
    add_tensor(b, name, "weight", DEEP_CONSTANT, 1, 1, &s.channels);
    add_tensor(b, name, "bias", DEEP_CONSTANT, 0, 1, &s.channels);
    add_tensor(b, name, "running_mean", DEEP_CONSTANT, 0, 1, &s.channels);
    add_tensor(b, name, "running_var", DEEP_CONSTANT, 1, 1, &s.channels);
    return add_node(b, node);
}

/* in is a batch norm; the sum goes through a relu */
static uint32_t add(builder *b, uint32_t in, uint32_t other) {
    return add_node(b, (deep_node){.kind = DEEP_ADD,
                                   .in = in,
                                   .other = other,
                                   .shape = b->g->nodes[in].shape,
                                   .has_relu = true});
}

static uint32_t maxpool(builder *b, uint32_t in, uint32_t kernel, uint32_t stride) {
    uint32_t channels = b->g->nodes[in].shape.channels;
    return add_node(b, slide(b, DEEP_MAXPOOL, in, channels, kernel, stride));
}

static uint32_t avgpool(builder *b, uint32_t in) {
    fds_shape s = b->g->nodes[in].shape;
    if (s.height == 1 && s.width == 1)
        return in;
    return add_node(b, (deep_node){.kind = DEEP_AVGPOOL, .in = in, .shape = {s.channels, 1, 1}});
}

static uint32_t fc(builder *b, const char *name, uint32_t in, uint32_t outputs, bool has_relu,
                   bool is_zero) {
    size_t size = deep_node_size(&b->g->nodes[in]);
    uint32_t dims[2] = {outputs, (uint32_t)size};
    double bound = is_zero ? 0 : 1 / sqrt((double)size);
    deep_init init = is_zero ? DEEP_CONSTANT : DEEP_UNIFORM;
    deep_node node = {.kind = DEEP_FC,
                      .in = in,
                      .shape = {outputs, 1, 1},
                      .has_bias = true,
                      .has_relu = has_relu,
                      .tensor = b->g->tensor_count};
    add_tensor(b, name, "weight", init, bound, 2, dims);
    add_tensor(b, name, "bias", init, bound, 1, dims);
    return add_node(b, node);
}

/* ---- networks ---- */

/* "layer1.0" + ".conv" + 1 */
static const char *join(char out[DEEP_MAX_NAME], const char *prefix, const char *part, int number) {
    if (number < 0)
        snprintf(out, DEEP_MAX_NAME, "%.20s%s", prefix, part);
    else
        snprintf(out, DEEP_MAX_NAME, "%.20s%s%d", prefix, part, number);
    return out;
}

static uint32_t conv_norm(builder *b, const char *prefix, int number, uint32_t in,
                          uint32_t channels, uint32_t kernel, uint32_t stride, bool has_relu) {
    char name[DEEP_MAX_NAME];
    uint32_t y = conv(b, join(name, prefix, "conv", number), in, channels, kernel, stride, false);
    return norm(b, join(name, prefix, "bn", number), y, has_relu);
}

/* A residual block: width channels inside, widening times as many in the result. */
static uint32_t block(builder *b, const char *prefix, uint32_t in, uint32_t width,
                      uint32_t widening, uint32_t stride) {
    uint32_t channels = width * widening, shortcut = in, y;
    if (widening == 1) {
        y = conv_norm(b, prefix, 1, in, width, 3, stride, true);
        y = conv_norm(b, prefix, 2, y, width, 3, 1, false);
    } else {
        y = conv_norm(b, prefix, 1, in, width, 1, 1, true);
        y = conv_norm(b, prefix, 2, y, width, 3, stride, true);
        y = conv_norm(b, prefix, 3, y, channels, 1, 1, false);
    }
    if (stride != 1 || b->g->nodes[in].shape.channels != channels) {
        char name[DEEP_MAX_NAME];
        shortcut = conv(b, join(name, prefix, "downsample.", 0), in, channels, 1, stride, false);
        shortcut = norm(b, join(name, prefix, "downsample.", 1), shortcut, false);
    }
    return add(b, y, shortcut);
}

static uint32_t build_resnet(builder *b, const resnet *r, uint32_t in) {
    char prefix[DEEP_MAX_NAME];
    b->he = true;
    uint32_t y = conv(b, "conv1", in, 64, 7, 2, false);
    y = norm(b, "bn1", y, true);
    y = maxpool(b, y, 3, 2);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t j = 0; j < r->blocks[i]; j++) {
            snprintf(prefix, sizeof prefix, "layer%u.%u.", i + 1, j);
            y = block(b, prefix, y, 64u << i, r->widening, i && !j ? 2 : 1);
        }
    return y;
}

static uint32_t build_cnn(builder *b, uint32_t y) {
    char prefix[DEEP_MAX_NAME];
    for (uint32_t i = 0; i < sizeof cnn_rows / sizeof *cnn_rows; i++) {
        uint32_t channels = cnn_rows[i].channels, stride = cnn_rows[i].stride;
        snprintf(prefix, sizeof prefix, "layers.%u.", i);
        y = cnn_rows[i].is_block ? block(b, prefix, y, channels, 1, stride)
                                 : conv_norm(b, prefix, -1, y, channels, 3, stride, true);
    }
    return y;
}

static uint32_t build_mlp(builder *b, uint32_t y) {
    char name[DEEP_MAX_NAME];
    uint32_t width = deep_node_size(&b->g->nodes[y]) > MLP_LARGE_INPUT ? MLP_NARROW : MLP_WIDTH;
    for (int i = 0; i < MLP_LAYERS; i++)
        y = fc(b, join(name, "layers.", "", i), y, width, true, false);
    return y;
}

/* The head as deep.h describes it; cnn's FDS__HEAD_EXPLAIN does not pool, so that it sees where in
 * the image something is. is_flat: the features are a vector. */
static void build_head(builder *b, uint32_t y, bool is_resnet, bool is_flat, fds__head head,
                       uint32_t outputs) {
    bool is_explain = head == FDS__HEAD_EXPLAIN;
    if (is_explain && !is_flat)
        y = conv(b, "head.conv", y, is_resnet ? RESNET_HEAD : CNN_HEAD, 1, 1, true);
    if (is_resnet || (!is_flat && !is_explain))
        y = avgpool(b, y);
    fc(b, is_explain ? "head.fc" : "fc", y, outputs, false, is_explain);
}

static const resnet *find_resnet(const char *name) {
    for (size_t i = 0; i < sizeof resnets / sizeof *resnets; i++)
        if (strcmp(resnets[i].name, name) == 0)
            return &resnets[i];
    return NULL;
}

static fds_status check_params(const fds__deep_params *p, fds_error *err) {
    bool is_known = false;
    for (const char *const *name = networks; p->network && *name; name++)
        is_known |= strcmp(*name, p->network) == 0;
    if (!is_known)
        return fds__fail(err, FDS_ERR_USAGE,
                         "unknown network \"%.40s\": use resnet18, resnet50, cnn, mlp or linear",
                         p->network ? p->network : "");
    fds_shape s = p->input;
    if (find_resnet(p->network) && s.channels != 1 && s.channels != 3)
        return fds__fail(err, FDS_ERR_SHAPE, "%s takes images of 1 or 3 channels, not %u",
                         p->network, s.channels);
    if (!s.channels || !s.height || !s.width || s.height > 65535 || s.width > 65535 ||
        s.channels > FDS__MAX_ACTIVATIONS || (size_t)s.channels * s.height > FDS__MAX_ACTIVATIONS ||
        fds__shape_size(s) > FDS__MAX_ACTIVATIONS)
        return fds__fail(err, FDS_ERR_SHAPE, "a network cannot take inputs of %u x %u x %u",
                         s.channels, s.height, s.width);
    if (!p->outputs || !p->batch || p->batch > 65536)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%u outputs, batch %u: both must be at least 1, batch at most 65536",
                         p->outputs, p->batch);
    if (p->threads > 1024)
        return fds__fail(err, FDS_ERR_USAGE, "%u threads are too many: at most 1024", p->threads);
    if ((unsigned)p->head > FDS__HEAD_CLASSIFY || (unsigned)p->precision > FDS__PRECISION_BF16)
        return fds__fail(err, FDS_ERR_USAGE, "no such head or precision");
    return FDS_OK;
}

/* Limits that only a complete network can break. */
static fds_status check_sizes(const fds__deep_params *p, const deep_graph *g, bool failed,
                              fds_error *err) {
    size_t weights = 0;
    for (uint32_t i = 0; i < g->tensor_count; i++)
        weights += g->tensors[i].count;
    for (uint32_t i = 0; i < g->count; i++)
        failed |= deep_node_size(&g->nodes[i]) * p->batch > MAX_BATCH;
    if (failed || weights > FDS__MAX_WEIGHTS)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "%s on inputs of %u x %u x %u with %u outputs and batch %u is too large",
                         p->network, p->input.channels, p->input.height, p->input.width, p->outputs,
                         p->batch);
    for (uint32_t i = 0; i < g->count; i++) {
        fds_shape s = g->nodes[i].shape;
        if (g->nodes[i].kind == DEEP_NORM && (size_t)p->batch * s.height * s.width < 2)
            return fds__fail(err, FDS_ERR_USAGE,
                             "batch 1 is too small for %s on %u x %u images: batch norm needs two "
                             "values per channel",
                             p->network, p->input.height, p->input.width);
    }
    return FDS_OK;
}

fds_status deep_graph_build(const fds__deep_params *params, deep_graph *graph, fds_error *err) {
    TRY(check_params(params, err));
    memset(graph, 0, sizeof *graph);
    builder b = {.g = graph};
    fds_shape input = params->input;
    const resnet *r = find_resnet(params->network);
    bool is_linear = strcmp(params->network, "linear") == 0; /* the input is the features */
    bool is_mlp = strcmp(params->network, "mlp") == 0, is_flat = is_mlp || is_linear;
    if (r)
        input.channels = 3;
    if (is_flat) /* oneDNN is faster on a vector than on an image */
        input = (fds_shape){(uint32_t)fds__shape_size(input), 1, 1};
    uint32_t y = add_node(&b, (deep_node){.kind = DEEP_INPUT, .shape = input});
    if (!is_linear)
        y = r ? build_resnet(&b, r, y) : is_mlp ? build_mlp(&b, y) : build_cnn(&b, y);
    build_head(&b, y, r != NULL, is_flat, params->head, params->outputs);
    return check_sizes(params, graph, b.failed, err);
}

/* ---- the folded graph ---- */

/* The first and last+1 of a filter's rows (or columns) that see the image for at least one output.
 * Returns how often they see it, over all outputs. */
static uint64_t seen(const deep_graph *g, const deep_node *n, int axis, uint32_t *first,
                     uint32_t *end) {
    fds_shape in = g->nodes[n->in].shape;
    int64_t size = axis ? in.width : in.height, outputs = axis ? n->shape.width : n->shape.height;
    int64_t least = n->kernel[axis], most = 0, padding = n->padding[axis];
    uint64_t times = 0;
    for (int64_t o = 0; o < outputs; o++)
        for (int64_t k = 0; k < n->kernel[axis]; k++) {
            int64_t at = o * n->stride - padding + k;
            if (at >= 0 && at < size) {
                least = MIN(least, k);
                most = MAX(most, k + 1);
                times++;
            }
        }
    *first = (uint32_t)MIN(least, padding); /* else the padding would be negative */
    *end = (uint32_t)most;
    return times;
}

void deep_graph_crop(const deep_graph *graph, const deep_node *node, uint32_t kernel[2],
                     uint32_t padding[2]) {
    for (int axis = 0; axis < 2; axis++) {
        uint32_t first, end;
        seen(graph, node, axis, &first, &end);
        kernel[axis] = end - first;
        padding[axis] = node->padding[axis] - first;
    }
}

/* The node's tensors with cropped shapes; a bias is added where there is none. */
static void fold_tensors(const deep_graph *g, const deep_node *n, deep_graph *f, deep_node *out) {
    builder b = {.g = f};
    char layer[DEEP_MAX_NAME];
    fds__deep_tensor t = g->tensors[n->tensor];
    if (n->kind == DEEP_CONV) {
        t.dims[2] = out->kernel[0];
        t.dims[3] = out->kernel[1];
    }
    snprintf(layer, sizeof layer, "%s", g->names[n->tensor]);
    *strrchr(layer, '.') = 0;
    out->tensor = f->tensor_count;
    out->has_bias = true;
    add_tensor(&b, layer, "weight", DEEP_CONSTANT, 0, t.rank, t.dims);
    add_tensor(&b, layer, "bias", DEEP_CONSTANT, 0, 1, t.dims);
}

void deep_graph_fold(const deep_graph *graph, deep_graph *folded, uint32_t *from) {
    uint32_t place[DEEP_MAX_NODES] = {0}; /* the folded node that has a node's result */
    memset(folded, 0, sizeof *folded);
    for (uint32_t i = 0; i < graph->count; i++) {
        const deep_node *n = &graph->nodes[i];
        if (n->kind == DEEP_NORM) {
            place[i] = place[n->in];
            folded->nodes[place[i]].has_relu |= n->has_relu;
        } else if (n->kind == DEEP_ADD) {
            /* the operand that is computed last adds the other */
            uint32_t a = place[n->in], b = place[n->other], last = MAX(a, b);
            place[i] = last;
            folded->nodes[last].other = MIN(a, b);
            folded->nodes[last].has_relu = n->has_relu;
        } else {
            deep_node out = *n;
            out.in = place[n->in];
            if (n->kind == DEEP_CONV)
                deep_graph_crop(graph, n, out.kernel, out.padding);
            if (n->kind == DEEP_CONV || n->kind == DEEP_FC)
                fold_tensors(graph, n, folded, &out);
            from[folded->count] = i;
            place[i] = folded->count;
            folded->nodes[folded->count++] = out;
        }
    }
}

/* ---- properties ---- */

bool deep_is_head(const char *name) {
    return strncmp(name, "head.", 5) == 0 || strncmp(name, "fc.", 3) == 0;
}

size_t deep_node_size(const deep_node *node) { return fds__shape_size(node->shape); }

uint64_t deep_node_flops(const deep_graph *graph, uint32_t node) {
    const deep_node *n = &graph->nodes[node];
    fds_shape in = graph->nodes[n->in].shape;
    uint32_t first, end;
    switch (n->kind) {
    case DEEP_CONV:
        return 2 * (uint64_t)in.channels * n->shape.channels * seen(graph, n, 0, &first, &end) *
               seen(graph, n, 1, &first, &end);
    case DEEP_FC:
        return 2 * (uint64_t)n->shape.channels * fds__shape_size(in);
    default:
        return 0;
    }
}
