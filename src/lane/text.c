/* SPDX-License-Identifier: Apache-2.0
 *
 * A network's text to its plan. Grammar (fds.h, section 4):
 *
 *     network = preset | ["embed:" V "x" D ","] layer *("," layer)
 *     layer   = "conv:" O "x" K ["p" P] ["s" S] | "fc:" (O | "classes")
 *             | "maxpool" [":" K] | "avgpool" [":" K] | "globalpool" | "relu" | "tanh" | "gelu"
 *             | "batchnorm" | "dropout:0" ["." up to three digits]
 *             | "residual(" layer *("," layer) ")"
 *
 * Blanks around layers are allowed. A message gives the position of a mistake, counted from 1.
 */
#include "lane/lane.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

static const struct {
    const char *name, *text;
} presets[] = {
    {"logistic", "fc:classes"},
    {"mlp", "fc:64,relu,fc:classes"},
    {"lenet5", "conv:6x5p2,relu,maxpool,conv:16x5,relu,maxpool,fc:120,relu,fc:84,relu,fc:classes"},
    {"cnn", "conv:16x5p2,relu,maxpool,conv:32x5p2,relu,maxpool,fc:classes"},
};

/* ---- reading ---- */

typedef struct {
    const char *text, *at;
    fds_error *err;
    /* what the next layer is added to */
    fds_net *net;
    fds_shape shape;
    bool is_flat;        /* after fc */
    uint32_t module;     /* its number in the torch.nn.Sequential, in which a Flatten stands before
                          * the first fc */
    const char *block;   /* where the residual block begins; NULL: outside of one */
    uint32_t block_fork; /* the block's first layer */
    uint32_t block_module;
} reader;

/* A message that quotes the text and gives the position. */
__attribute__((format(printf, 3, 4))) static fds_status mistake(const reader *r, const char *at,
                                                                const char *format, ...) {
    char what[200];
    va_list values;
    va_start(values, format);
    vsnprintf(what, sizeof what, format, values);
    va_end(values);
    return fds__fail(r->err, FDS_ERR_USAGE, "network \"%.200s\": at character %zu: %s", r->text,
                     (size_t)(at - r->text) + 1, what);
}

static void skip_blanks(reader *r) {
    while (*r->at == ' ')
        r->at++;
}

static bool take(reader *r, const char *word) {
    size_t size = strlen(word);
    if (strncmp(r->at, word, size) != 0)
        return false;
    r->at += size;
    return true;
}

static fds_status number(reader *r, uint32_t least, uint32_t most, const char *what,
                         uint32_t *value) {
    const char *start = r->at;
    uint64_t n = 0;
    while (*r->at >= '0' && *r->at <= '9' && n <= most)
        n = n * 10 + (uint64_t)(*r->at++ - '0');
    if (r->at == start || n < least || n > most)
        return mistake(r, start, "expected %s, a number from %u to %u", what, least, most);
    *value = (uint32_t)n;
    return FDS_OK;
}

/* The names of the kinds, as they are written. */
static const char *const names[] = {
    [FDS__LAYER_CONV] = "conv",
    [FDS__LAYER_RELU] = "relu",
    [FDS__LAYER_MAXPOOL] = "maxpool",
    [FDS__LAYER_FC] = "fc",
    [FDS__LAYER_AVGPOOL] = "avgpool",
    [FDS__LAYER_GLOBALPOOL] = "globalpool",
    [FDS__LAYER_TANH] = "tanh",
    [FDS__LAYER_GELU] = "gelu",
    [FDS__LAYER_BATCHNORM] = "batchnorm",
    [FDS__LAYER_DROPOUT] = "dropout",
    [FDS__LAYER_EMBED] = "embed",
    [FDS__LAYER_FORK] = "residual(",
    [FDS__LAYER_JOIN] = ")",
};

bool fds__text_takes_tokens(const char *text) {
    reader r = {.at = text};
    skip_blanks(&r);
    return take(&r, names[FDS__LAYER_EMBED]);
}

static fds_status read_conv(reader *r, const char *start, fds__layer *layer) {
    layer->stride = 1;
    TRY(number(r, 1, 65535, "how many filters", &layer->out.channels));
    if (!take(r, "x"))
        return mistake(r, r->at, "expected \"x\" and the filter's size, as in conv:6x5p2");
    TRY(number(r, 1, 255, "the filter's size", &layer->kernel));
    if (take(r, "p"))
        TRY(number(r, 0, 254, "the padding", &layer->padding));
    if (take(r, "s"))
        TRY(number(r, 1, 255, "the stride", &layer->stride));
    if (layer->padding >= layer->kernel)
        return mistake(r, start, "the padding must be smaller than the filter");
    return FDS_OK;
}

static fds_status read_embed(reader *r, const char *start, fds__layer *layer) {
    if (r->net->layer_count)
        return mistake(r, start, "embed must be the first layer: it takes numbers of tokens");
    TRY(number(r, 1, 1u << 20, "how many tokens there are", &layer->tokens));
    if (!take(r, "x"))
        return mistake(r, r->at, "expected \"x\" and the numbers per token, as in embed:5000x16");
    return number(r, 1, 65535, "the numbers per token", &layer->out.channels);
}

/* A decimal number below 1, with at most three digits after the point. */
static fds_status read_rate(reader *r, fds__layer *layer) {
    const char *start = r->at;
    uint32_t place = 1000;
    bool is_right = take(r, "0");
    if (is_right && take(r, ".")) {
        is_right = *r->at >= '0' && *r->at <= '9';
        for (; *r->at >= '0' && *r->at <= '9'; r->at++) {
            is_right &= place > 1;
            layer->rate += (place /= 10) * (uint32_t)(*r->at - '0');
        }
    }
    if (!is_right)
        return mistake(r, start,
                       "expected the share to drop, from 0 to 0.999 with at most three decimals");
    return FDS_OK;
}

/* What follows the name of a layer. Whether it takes more: see the grammar. */
static fds_status read_rest(reader *r, const char *start, fds__layer *layer) {
    const bool has_rest = take(r, ":");
    switch (layer->kind) {
    case FDS__LAYER_CONV:
        if (!has_rest)
            return mistake(r, start, "expected filters and their size, as in conv:6x5p2");
        return read_conv(r, start, layer);
    case FDS__LAYER_FC:
        if (!has_rest)
            return mistake(r, start, "expected a number of outputs, as in fc:120 or fc:classes");
        if (take(r, "classes"))
            return FDS_OK;
        return number(r, 1, 1u << 20, "how many outputs or \"classes\"", &layer->out.channels);
    case FDS__LAYER_MAXPOOL:
    case FDS__LAYER_AVGPOOL:
        layer->kernel = 2;
        return has_rest ? number(r, 1, 255, "the window's size", &layer->kernel) : FDS_OK;
    case FDS__LAYER_DROPOUT:
        if (!has_rest)
            return mistake(r, start, "expected the share to drop, as in dropout:0.5");
        return read_rate(r, layer);
    case FDS__LAYER_EMBED:
        if (!has_rest)
            return mistake(r, start, "expected tokens and numbers per token, as in embed:5000x16");
        return read_embed(r, start, layer);
    default:
        return has_rest ? mistake(r, r->at - 1, "%s takes no number", names[layer->kind]) : FDS_OK;
    }
}

/* One layer's text; shapes come later. For fc, out.channels 0 stands for "classes". */
static fds_status read_layer(reader *r, fds__layer *layer) {
    const char *start = r->at;
    int kind = 0;
    while (kind < FDS__LAYER_FORK && !take(r, names[kind]))
        kind++;
    if (kind == FDS__LAYER_FORK)
        return mistake(
            r, start,
            "expected a layer (conv:6x5p2s1, maxpool, avgpool, globalpool, relu, tanh, "
            "gelu, batchnorm, dropout:0.5, residual(...), fc:120; embed:5000x16 first) or a "
            "preset (logistic, mlp, lenet5, cnn) alone");
    *layer = (fds__layer){.kind = (fds__layer_kind)kind};
    return read_rest(r, start, layer);
}

/* ---- shapes ---- */

/* The shapes of a layer with input in. */
static fds_status shape_layer(const reader *r, const char *start, fds_shape in, fds__layer *layer) {
    uint32_t height = in.height + 2 * layer->padding, width = in.width + 2 * layer->padding;
    layer->in = in;
    switch (layer->kind) {
    case FDS__LAYER_CONV:
    case FDS__LAYER_MAXPOOL:
    case FDS__LAYER_AVGPOOL:
        if (r->is_flat)
            return mistake(r, start, "an image layer cannot come after fc");
        if (layer->kernel > height || layer->kernel > width)
            return mistake(r, start, "a window of %ux%u does not fit its input of %ux%u",
                           layer->kernel, layer->kernel, height, width);
        if (layer->kind == FDS__LAYER_CONV)
            layer->out =
                (fds_shape){layer->out.channels, (height - layer->kernel) / layer->stride + 1,
                            (width - layer->kernel) / layer->stride + 1};
        else
            layer->out = (fds_shape){in.channels, height / layer->kernel, width / layer->kernel};
        break;
    case FDS__LAYER_EMBED: /* features are a row of tokens */
        if (in.channels > 1 && (in.height > 1 || in.width > 1))
            return mistake(r, start,
                           "embed takes features or images of one channel, not images of %u",
                           in.channels);
        layer->out = in.height * in.width > 1
                         ? (fds_shape){layer->out.channels, in.height, in.width}
                         : (fds_shape){layer->out.channels, 1, in.channels};
        break;
    case FDS__LAYER_GLOBALPOOL:
        if (r->is_flat)
            return mistake(r, start, "an image layer cannot come after fc");
        layer->out = (fds_shape){in.channels, 1, 1};
        break;
    case FDS__LAYER_RELU:
    case FDS__LAYER_TANH:
    case FDS__LAYER_GELU:
    case FDS__LAYER_BATCHNORM:
    case FDS__LAYER_DROPOUT:
    case FDS__LAYER_FORK:
    case FDS__LAYER_JOIN:
        layer->out = in;
        break;
    case FDS__LAYER_FC: {
        size_t features = fds__shape_size(in);
        if (r->block && !r->is_flat)
            return mistake(r, start, "fc in a residual block needs an fc before the block");
        if (features > UINT32_MAX)
            return mistake(r, start, "its input is too large");
        layer->in = (fds_shape){(uint32_t)features, 1, 1};
        layer->out = (fds_shape){layer->out.channels ? layer->out.channels : r->net->classes, 1, 1};
        break;
    }
    }
    if (fds__shape_size(layer->out) > FDS__MAX_ACTIVATIONS)
        return mistake(r, start, "its output is too large");
    return FDS_OK;
}

/* A tensor and how it starts; module: its name in PyTorch, "3" or "3.body.0". The offsets of
 * statistics are counted from the first of them until all layers are read. */
static void add_tensor(fds_net *net, const char *module, const char *what, uint32_t rank,
                       const uint32_t dims[4], size_t fan_in, float value, size_t *offset) {
    const bool is_statistic = strncmp(what, "running", 7) == 0;
    uint32_t i = net->tensor_count++;
    size_t count = 1;
    for (uint32_t d = 0; d < rank; d++)
        count *= dims[d];
    *offset = is_statistic ? net->weights - net->trained : net->trained;
    snprintf(net->names[i], sizeof net->names[i], "%s.%s", module, what);
    net->tensors[i] = (fds_tensor_info){net->names[i], rank, {0}, *offset, count};
    memcpy(net->tensors[i].dims, dims, rank * sizeof *dims);
    net->starts[i].fan_in = fan_in;
    net->starts[i].value = value;
    net->starts[i].is_statistic = is_statistic;
    net->weights += count;
    net->trained += is_statistic ? 0 : count;
}

static fds_status add_weights(const reader *r, const char *start, fds__layer *layer) {
    fds_net *net = r->net;
    uint32_t out = layer->out.channels, k = layer->kernel, in = layer->in.channels;
    const bool is_conv = layer->kind == FDS__LAYER_CONV,
               is_norm = layer->kind == FDS__LAYER_BATCHNORM;
    const bool is_embed = layer->kind == FDS__LAYER_EMBED;
    const uint32_t dims[4] = {is_embed ? layer->tokens : out, is_embed ? out : in, k, k};
    uint64_t count = is_norm ? 4 : (uint64_t)dims[0] * dims[1]; /* each below 2^32 */
    char module[24];
    if (count > FDS__MAX_WEIGHTS || count * (is_conv   ? k * k
                                             : is_norm ? out
                                                       : 1) +
                                            net->weights >
                                        FDS__MAX_WEIGHTS)
        return mistake(r, start, "the network has too many weights (more than 2^28)");
    if (layer->is_skip)
        snprintf(module, sizeof module, "%u.skip", r->block_module);
    else if (r->block)
        snprintf(module, sizeof module, "%u.body.%u", r->block_module, r->module);
    else
        snprintf(module, sizeof module, "%u", r->module);
    if (is_norm) {
        add_tensor(net, module, "weight", 1, dims, 0, 1, &layer->weight);
        add_tensor(net, module, "bias", 1, dims, 0, 0, &layer->bias);
        add_tensor(net, module, "running_mean", 1, dims, 0, 0, &layer->mean);
        add_tensor(net, module, "running_var", 1, dims, 0, 1, &layer->variance);
        return FDS_OK;
    }
    if (is_embed) {
        add_tensor(net, module, "weight", 2, dims, 1, 0, &layer->weight);
        return FDS_OK;
    }
    const size_t fan_in = (size_t)in * (is_conv ? k * k : 1);
    add_tensor(net, module, "weight", is_conv ? 4 : 2, dims, fan_in, 0, &layer->weight);
    add_tensor(net, module, "bias", 1, dims, fan_in, 0, &layer->bias);
    return FDS_OK;
}

/* The running statistics lie behind all trained weights. */
static void place_statistics(fds_net *net) {
    for (uint32_t i = 0; i < net->tensor_count; i++)
        net->tensors[i].offset += net->starts[i].is_statistic ? net->trained : 0;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        net->layers[i].mean += net->trained;
        net->layers[i].variance += net->trained;
    }
}

/* ---- layer by layer ---- */

/* Adds a layer that takes input in. */
static fds_status add_layer(reader *r, const char *start, fds_shape in, fds__layer layer) {
    fds_net *net = r->net;
    if (net->layer_count == FDS__MAX_LAYERS)
        return mistake(r, start, "more than 64 layers");
    TRY(shape_layer(r, start, in, &layer));
    if (layer.kind == FDS__LAYER_FC && !r->is_flat) {
        r->is_flat = true;
        r->module++;
    }
    if (layer.kind == FDS__LAYER_CONV || layer.kind == FDS__LAYER_FC ||
        layer.kind == FDS__LAYER_BATCHNORM || layer.kind == FDS__LAYER_EMBED)
        TRY(add_weights(r, start, &layer));
    net->has_batchnorm |= layer.kind == FDS__LAYER_BATCHNORM;
    net->is_plain &=
        layer.kind <= FDS__LAYER_FC && layer.stride <= 1 && !fds__layer_is_wide(&layer);
    net->layers[net->layer_count++] = layer;
    r->shape = layer.out;
    return FDS_OK;
}

static fds_status open_block(reader *r, const char *start) {
    if (r->block)
        return mistake(r, start, "a residual block cannot contain another");
    r->block = start;
    r->block_fork = r->net->layer_count;
    r->block_module = r->module;
    r->module = 0;
    return add_layer(r, start, r->shape, (fds__layer){.kind = FDS__LAYER_FORK});
}

/* The stride that turns images of from into images of to; 0: there is none. */
static uint32_t projection_stride(fds_shape from, fds_shape to) {
    for (uint32_t s = 1; s <= 255; s++)
        if ((from.height - 1) / s + 1 == to.height && (from.width - 1) / s + 1 == to.width)
            return s;
    return 0;
}

/* After ")". Where the block changes the shape, its input is projected. */
static fds_status close_block(reader *r) {
    const fds_shape from = r->net->layers[r->block_fork].in, to = r->shape;
    if (!fds__shape_equal(from, to)) {
        fds__layer skip = {.kind = r->is_flat ? FDS__LAYER_FC : FDS__LAYER_CONV,
                           .out = to,
                           .kernel = r->is_flat ? 0 : 1,
                           .stride = r->is_flat ? 0 : projection_stride(from, to),
                           .is_skip = true};
        if (!r->is_flat && !skip.stride)
            return mistake(r, r->block,
                           "the block turns images of %ux%u into %ux%u, which no stride of a 1x1 "
                           "convolution does for its input",
                           from.height, from.width, to.height, to.width);
        TRY(add_layer(r, r->block, from, skip));
    }
    TRY(add_layer(r, r->block, to, (fds__layer){.kind = FDS__LAYER_JOIN}));
    r->block = NULL;
    r->module = r->block_module + 1;
    return FDS_OK;
}

static fds_status read_network(reader *r) {
    for (;;) {
        skip_blanks(r);
        const char *start = r->at;
        fds__layer layer;
        if (take(r, names[FDS__LAYER_FORK])) {
            TRY(open_block(r, start));
            continue;
        }
        TRY(read_layer(r, &layer));
        TRY(add_layer(r, start, r->shape, layer));
        r->module++;
        skip_blanks(r);
        if (r->block && take(r, names[FDS__LAYER_JOIN])) {
            TRY(close_block(r));
            skip_blanks(r);
        }
        if (!*r->at && !r->block) {
            const fds__layer *last = &r->net->layers[r->net->layer_count - 1];
            if (last->kind == FDS__LAYER_FC && last->out.channels == r->net->classes) {
                place_statistics(r->net);
                return FDS_OK;
            }
            if (r->net->is_regression)
                return mistake(r, start,
                               "the last layer of a regression must have one output: fc:1");
            return mistake(
                r, start,
                "the last layer must be fc with one output per class: fc:%u or fc:classes",
                r->net->classes);
        }
        if (*r->at != ',')
            return mistake(r, r->at, "expected a comma or %s",
                           r->block ? "\")\", the end of the residual block" : "the end");
        r->at++;
    }
}

/* ---- writing: the text with presets and "classes" written out ---- */

static fds_status write_text(fds_net *net, fds_error *err) {
    fds__text text = {0};
    for (uint32_t i = 0; i < net->layer_count; i++) {
        const fds__layer *l = &net->layers[i];
        if (l->is_skip)
            continue;
        bool has_comma = i && l[-1].kind != FDS__LAYER_FORK && l->kind != FDS__LAYER_JOIN;
        fds__text_print(&text, "%s%s", has_comma ? "," : "", names[l->kind]);
        if (l->kind == FDS__LAYER_CONV)
            fds__text_print(&text, ":%ux%u", l->out.channels, l->kernel);
        if (l->kind == FDS__LAYER_EMBED)
            fds__text_print(&text, ":%ux%u", l->tokens, l->out.channels);
        if (l->kind == FDS__LAYER_FC)
            fds__text_print(&text, ":%u", l->out.channels);
        if (l->kind == FDS__LAYER_DROPOUT)
            fds__text_print(&text, ":%g", l->rate / 1000.0);
        if (l->padding)
            fds__text_print(&text, "p%u", l->padding);
        if (l->stride > 1)
            fds__text_print(&text, "s%u", l->stride);
        if ((l->kind == FDS__LAYER_MAXPOOL || l->kind == FDS__LAYER_AVGPOOL) && l->kernel != 2)
            fds__text_print(&text, ":%u", l->kernel);
    }
    net->text = text.data;
    return fds__text_check(&text, err);
}

fds_status fds_net_create(const char *text, fds_shape input, uint32_t classes, fds_net **out,
                          fds_error *err) {
    return fds__net_create(text, input, classes, false, out, err);
}

fds_status fds__net_create(const char *text, fds_shape input, uint32_t classes, bool is_regression,
                           fds_net **out, fds_error *err) {
    classes = is_regression ? 1 : classes;
    if (!input.channels || !input.height || !input.width ||
        (uint64_t)input.channels * input.height > FDS__MAX_ACTIVATIONS ||
        (uint64_t)input.channels * input.height * input.width > FDS__MAX_ACTIVATIONS)
        return fds__fail(err, FDS_ERR_SHAPE, "a network cannot take samples of %ux%ux%u",
                         input.channels, input.height, input.width);
    if (classes < 1 || classes > 65535)
        return fds__fail(err, FDS_ERR_SHAPE, "a network has 1 to 65535 classes, not %u", classes);
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strcmp(text, presets[i].name) == 0)
            text = presets[i].text;
    fds_net *net;
    TRY(NEW(net, 1, err));
    net->input = input;
    net->classes = classes;
    net->is_regression = is_regression;
    net->is_plain = true;
    reader r = {.text = text, .at = text, .err = err, .net = net, .shape = input};
    fds_status status = read_network(&r);
    if (status == FDS_OK)
        status = write_text(net, err);
    if (status == FDS_OK)
        *out = net;
    else
        fds_net_free(net);
    return status;
}

void fds_net_free(fds_net *net) {
    if (!net)
        return;
    fds__free(net->text);
    fds__free(net);
}

const char *fds_net_text(const fds_net *net) { return net->text; }
size_t fds_net_weights(const fds_net *net) { return net->weights; }
size_t fds_net_tensors(const fds_net *net) { return net->tensor_count; }
fds_tensor_info fds_net_tensor(const fds_net *net, size_t i) { return net->tensors[i]; }

/* Of one layer, without the bias: a filter's weights are used at every output position. */
static uint64_t layer_flops(const fds__layer *l) {
    if (l->kind == FDS__LAYER_FC)
        return 2ull * l->in.channels * l->out.channels;
    if (l->kind == FDS__LAYER_CONV)
        return 2ull * l->in.channels * l->kernel * l->kernel * fds__shape_size(l->out);
    return 0;
}

uint64_t fds_net_flops_forward(const fds_net *net) {
    uint64_t flops = 0;
    for (uint32_t i = 0; i < net->layer_count; i++)
        flops += layer_flops(&net->layers[i]);
    return flops;
}

/* Forward, gradient of the weights, and gradient of the input for all but the first layer with
 * weights. */
uint64_t fds_net_flops_train(const fds_net *net) {
    uint64_t forward = fds_net_flops_forward(net);
    for (uint32_t i = 0; i < net->layer_count && net->layers->kind != FDS__LAYER_EMBED; i++)
        if (layer_flops(&net->layers[i]))
            return 3 * forward - layer_flops(&net->layers[i]);
    return 3 * forward;
}

void fds_net_init(const fds_net *net, uint64_t seed, float *weights) {
    for (uint32_t i = 0; i < net->tensor_count; i++) {
        const fds_tensor_info *t = &net->tensors[i];
        const size_t fan_in = net->starts[i].fan_in;
        double bound = 1.0 / sqrt((double)fan_in);
        fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_INIT, i, 0);
        for (size_t j = 0; j < t->count; j++)
            weights[t->offset + j] =
                fan_in ? (float)(bound * (2.0 * fds_rng_unit(&rng) - 1.0)) : net->starts[i].value;
    }
}
