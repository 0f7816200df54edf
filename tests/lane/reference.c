/* SPDX-License-Identifier: Apache-2.0
 * The reference network: forward and backward of each layer side by side, one sample at a time.
 * Ties and kinks as in PyTorch: a pooling window passes its gradient to the first of its greatest
 * values in row-major order, relu's derivative at 0 is 0. */
#include "reference.h"

#include <fds/engine.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the text ---- */

/* Takes a word and, after a colon, a number; returns how many characters, 0 for none. */
static int read_word(const char *text, const char *word, size_t *number) {
    const size_t length = strlen(word);
    int used = 0;
    if (strncmp(text, word, length) != 0)
        return 0;
    if (number && text[length] == ':' && sscanf(text + length, ":%zu%n", number, &used) != 1)
        return 0;
    return (int)length + used;
}

/* One layer's text, up to a comma or the end; returns its length, 0 for a mistake. */
static int read_layer(const char *text, ref_layer *l) {
    static const struct {
        const char *word;
        ref_kind kind;
        bool has_number;
    } words[] = {{"relu", REF_RELU, false},           {"tanh", REF_TANH, false},
                 {"gelu", REF_GELU, false},           {"globalpool", REF_GLOBALPOOL, false},
                 {"batchnorm", REF_BATCHNORM, false}, {"residual(", REF_FORK, false},
                 {"maxpool", REF_MAXPOOL, true},      {"avgpool", REF_AVGPOOL, true}};
    int used = 0, more = 0;
    if (sscanf(text, "conv:%zux%zu%n", &l->out_c, &l->kernel, &used) == 2) {
        l->kind = REF_CONV;
        l->stride = 1;
        if (sscanf(text + used, "p%zu%n", &l->padding, &more) == 1)
            used += more;
        if (sscanf(text + used, "s%zu%n", &l->stride, &more) == 1)
            used += more;
        return used;
    }
    if (sscanf(text, "fc:%zu%n", &l->out_c, &used) == 1) {
        l->kind = REF_FC;
        return used;
    }
    if (sscanf(text, "dropout:%lf%n", &l->rate, &used) == 1) {
        l->kind = REF_DROPOUT;
        return used;
    }
    if (sscanf(text, "embed:%zux%zu%n", &l->tokens, &l->out_c, &used) == 2) {
        l->kind = REF_EMBED;
        return used;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words && !used; i++) {
        l->kind = words[i].kind;
        l->kernel = 2;
        used = read_word(text, words[i].word, words[i].has_number ? &l->kernel : NULL);
    }
    return used;
}

static void shape_layer(ref_net *net, ref_layer *l, size_t c, size_t h, size_t w) {
    l->in_c = c, l->in_h = h, l->in_w = w;
    size_t fan_in = 0;
    switch (l->kind) {
    case REF_CONV:
    case REF_SKIP:
        l->out_h = (h + 2 * l->padding - l->kernel) / l->stride + 1;
        l->out_w = (w + 2 * l->padding - l->kernel) / l->stride + 1;
        fan_in = c * l->kernel * l->kernel;
        break;
    case REF_GLOBALPOOL:
        l->out_c = c, l->out_h = l->out_w = 1;
        break;
    case REF_MAXPOOL:
    case REF_AVGPOOL:
        l->out_c = c, l->out_h = h / l->kernel, l->out_w = w / l->kernel;
        break;
    case REF_FC:
        l->out_h = l->out_w = 1;
        fan_in = c * h * w;
        break;
    case REF_EMBED: /* features are a row of tokens */
        l->out_h = h * w > 1 ? h : 1;
        l->out_w = h * w > 1 ? w : c;
        break;
    default:
        l->out_c = c, l->out_h = h, l->out_w = w;
    }
    for (const ref_layer *other = net->layer; other < l; other++)
        l->drop += l->kind == REF_DROPOUT && other->kind == REF_DROPOUT;
    l->weight = net->weights;
    l->bias = l->weight + l->out_c * fan_in;
    if (fan_in)
        net->weights = l->bias + l->out_c;
    if (l->kind == REF_EMBED)
        net->weights += l->tokens * l->out_c;
    if (l->kind == REF_BATCHNORM) {
        l->bias = l->weight + c;
        net->weights += 2 * c;
        l->mean = net->statistics; /* for now */
        net->statistics += 2 * c;
    }
    l->out = calloc(REF_MAX_BATCH * l->out_c * l->out_h * l->out_w, sizeof(double));
    l->d_out = calloc(REF_MAX_BATCH * l->out_c * l->out_h * l->out_w, sizeof(double));
}

/* The end of a block: where it changes the shape, a 1x1 convolution of the block's input with the
 * smallest stride that gives the shape; of features that is a fully connected layer. */
static void close_block(ref_net *net, size_t fork) {
    const ref_layer *from = &net->layer[fork], *last = &net->layer[net->layers - 1];
    const size_t c = last->out_c, h = last->out_h, w = last->out_w;
    if (from->in_c != c || from->in_h != h || from->in_w != w) {
        ref_layer *skip = &net->layer[net->layers++];
        *skip = (ref_layer){.kind = REF_SKIP, .out_c = c, .kernel = 1, .stride = 1, .fork = fork};
        while ((from->in_h - 1) / skip->stride + 1 != h || (from->in_w - 1) / skip->stride + 1 != w)
            skip->stride++;
        shape_layer(net, skip, from->in_c, from->in_h, from->in_w);
    }
    ref_layer *join = &net->layer[net->layers++];
    *join = (ref_layer){.kind = REF_JOIN, .fork = fork};
    shape_layer(net, join, c, h, w);
}

ref_net *ref_create(const char *text, size_t channels, size_t height, size_t width) {
    ref_net *net = calloc(1, sizeof *net);
    if (!net)
        return NULL;
    net->input = channels * height * width;
    for (size_t fork = 0;; text++) { /* over the comma */
        ref_layer *l = &net->layer[net->layers];
        int used = net->layers + 4 < REF_MAX_LAYERS ? read_layer(text, l) : 0;
        text += used;
        if (used) {
            shape_layer(net, l, channels, height, width);
            net->layers++;
        }
        if (used && l->kind == REF_FORK) {
            fork = net->layers - 1;
            text--; /* no comma after the parenthesis */
            continue;
        }
        if (used && *text == ')') {
            close_block(net, fork);
            text++;
        }
        if (!used || (*text && *text != ',')) {
            ref_free(net);
            return NULL;
        }
        l = &net->layer[net->layers - 1];
        channels = l->out_c, height = l->out_h, width = l->out_w;
        if (!*text)
            break;
    }
    net->classes = channels;
    for (size_t n = 0; n < net->layers; n++)
        net->layer[n].mean += net->weights;
    net->weights += net->statistics;
    return net;
}

void ref_free(ref_net *net) {
    if (!net)
        return;
    for (size_t i = 0; i < net->layers; i++) {
        free(net->layer[i].out);
        free(net->layer[i].d_out);
    }
    free(net);
}

/* ---- the layers: forward, then backward ---- */

/* Calls for every term of a convolution: y[at_y] += weights[at_w] * x[at_x]. */
#define FOR_CONV(l)                                              \
    for (size_t o = 0; o < (l)->out_c; o++)                      \
        for (size_t i = 0; i < (l)->out_h; i++)                  \
            for (size_t j = 0; j < (l)->out_w; j++)              \
                for (size_t c = 0; c < (l)->in_c; c++)           \
                    for (size_t a = 0; a < (l)->kernel; a++)     \
                        for (size_t b = 0; b < (l)->kernel; b++) \
                            if (ROW(l) < (l)->in_h && COLUMN(l) < (l)->in_w)
#define ROW(l) (i * (l)->stride + a - (l)->padding) /* wraps below 0 */
#define COLUMN(l) (j * (l)->stride + b - (l)->padding)
#define AT_Y(l) ((o * (l)->out_h + i) * (l)->out_w + j)
#define AT_X(l) ((c * (l)->in_h + ROW(l)) * (l)->in_w + COLUMN(l))
#define AT_W(l) ((l)->weight + ((o * (l)->in_c + c) * (l)->kernel + a) * (l)->kernel + b)

static void conv_forward(const ref_layer *l, const double *w, const double *x) {
    size_t map = l->out_h * l->out_w;
    for (size_t i = 0; i < l->out_c * map; i++)
        l->out[i] = w[l->bias + i / map];
    FOR_CONV(l) l->out[AT_Y(l)] += w[AT_W(l)] * x[AT_X(l)];
}

static void conv_backward(const ref_layer *l, const double *w, const double *x, double scale,
                          double *d_w, double *d_x) {
    size_t map = l->out_h * l->out_w;
    for (size_t i = 0; i < l->out_c * map; i++)
        d_w[l->bias + i / map] += scale * l->d_out[i];
    FOR_CONV(l) d_w[AT_W(l)] += scale * l->d_out[AT_Y(l)] * x[AT_X(l)];
    if (d_x)
        FOR_CONV(l) d_x[AT_X(l)] += l->d_out[AT_Y(l)] * w[AT_W(l)];
}

static void fc_forward(const ref_layer *l, const double *w, const double *x) {
    size_t in = l->in_c * l->in_h * l->in_w;
    for (size_t o = 0; o < l->out_c; o++) {
        l->out[o] = w[l->bias + o];
        for (size_t i = 0; i < in; i++)
            l->out[o] += w[l->weight + o * in + i] * x[i];
    }
}

static void fc_backward(const ref_layer *l, const double *w, const double *x, double scale,
                        double *d_w, double *d_x) {
    size_t in = l->in_c * l->in_h * l->in_w;
    for (size_t o = 0; o < l->out_c; o++) {
        d_w[l->bias + o] += scale * l->d_out[o];
        for (size_t i = 0; i < in; i++) {
            d_w[l->weight + o * in + i] += scale * l->d_out[o] * x[i];
            if (d_x)
                d_x[i] += l->d_out[o] * w[l->weight + o * in + i];
        }
    }
}

static void relu_forward(const ref_layer *l, const double *x, double *kink) {
    for (size_t i = 0; i < l->in_c * l->in_h * l->in_w; i++) {
        l->out[i] = x[i] > 0 ? x[i] : 0;
        if (x[i] != 0)
            *kink = fmin(*kink, fabs(x[i]));
    }
}

static void relu_backward(const ref_layer *l, const double *x, double *d_x) {
    for (size_t i = 0; i < l->in_c * l->in_h * l->in_w; i++)
        if (x[i] > 0)
            d_x[i] += l->d_out[i];
}

/* Where in x the greatest value of the window of output at lies, the first of equals. */
static size_t pool_place(const ref_layer *l, const double *x, size_t at, double *kink) {
    size_t c = at / (l->out_h * l->out_w), i = at / l->out_w % l->out_h, j = at % l->out_w,
           k = l->kernel;
    size_t best = (c * l->in_h + i * k) * l->in_w + j * k;
    for (size_t a = 0; a < k; a++)
        for (size_t b = 0; b < k; b++) {
            size_t here = (c * l->in_h + i * k + a) * l->in_w + j * k + b;
            if (kink && x[here] != x[best])
                *kink = fmin(*kink, fabs(x[here] - x[best]));
            if (x[here] > x[best])
                best = here;
        }
    return best;
}

static void pool_forward(const ref_layer *l, const double *x, double *kink) {
    for (size_t at = 0; at < l->out_c * l->out_h * l->out_w; at++)
        l->out[at] = x[pool_place(l, x, at, kink)];
}

static void pool_backward(const ref_layer *l, const double *x, double *d_x) {
    for (size_t at = 0; at < l->out_c * l->out_h * l->out_w; at++)
        d_x[pool_place(l, x, at, NULL)] += l->d_out[at];
}

/* Adds to every output the share of the input at (c, row, column) of its window, or to the input
 * the share of the output's gradient. */
static void average(const ref_layer *l, const double *x, double *d_x) {
    const bool is_global = l->kind == REF_GLOBALPOOL;
    const size_t kh = is_global ? l->in_h : l->kernel, kw = is_global ? l->in_w : l->kernel;
    for (size_t at = 0; at < l->out_c * l->out_h * l->out_w; at++) {
        size_t c = at / (l->out_h * l->out_w), i = at / l->out_w % l->out_h, j = at % l->out_w;
        if (!d_x)
            l->out[at] = 0;
        for (size_t n = 0; n < kh * kw; n++) {
            size_t from = (c * l->in_h + i * kh + n / kw) * l->in_w + j * kw + n % kw;
            if (d_x)
                d_x[from] += l->d_out[at] / (double)(kh * kw);
            else
                l->out[at] += x[from] / (double)(kh * kw);
        }
    }
}

/* Every token becomes its row of weights; or the gradient of the rows. */
static void embed(const ref_layer *l, const double *w, const double *x, double scale, double *d_w) {
    const size_t tokens = l->out_h * l->out_w;
    for (size_t t = 0; t < tokens; t++)
        for (size_t d = 0; d < l->out_c; d++) {
            const size_t at = l->weight + (size_t)x[t] * l->out_c + d;
            if (d_w)
                d_w[at] += scale * l->d_out[d * tokens + t];
            else
                l->out[d * tokens + t] = w[at];
        }
}

static double activation(ref_kind kind, double x) {
    const double scale = sqrt(2 / acos(-1));
    return kind == REF_TANH ? tanh(x) : x / 2 * (1 + tanh(scale * (x + 0.044715 * x * x * x)));
}

static double activation_slope(ref_kind kind, double x) {
    const double scale = sqrt(2 / acos(-1)), t = tanh(scale * (x + 0.044715 * x * x * x));
    return kind == REF_TANH
               ? 1 - tanh(x) * tanh(x)
               : (1 + t) / 2 + x / 2 * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}

static void activate(const ref_layer *l, const double *x, double *d_x) {
    for (size_t i = 0; i < l->in_c * l->in_h * l->in_w; i++)
        if (d_x)
            d_x[i] += l->d_out[i] * activation_slope(l->kind, x[i]);
        else
            l->out[i] = activation(l->kind, x[i]);
}

/* What dropout multiplies the units of sample b with: 0, or 1 / (1 - rate). */
static void drop(const ref_net *net, const ref_layer *l, size_t b, const double *from, double *to,
                 bool adds) {
    fds_rng rng = fds_rng_make(net->seed, 14, 256 * (uint64_t)net->epoch + l->drop,
                               net->ids ? net->ids[b] : b);
    for (size_t i = 0; i < l->in_c * l->in_h * l->in_w; i++) {
        bool is_dropped = net->is_training && fds_rng_unit(&rng) < l->rate;
        double factor = is_dropped ? 0 : net->is_training ? 1 / (1 - l->rate) : 1;
        to[i] = (adds ? to[i] : 0) + factor * from[i];
    }
}

/* ---- the network ---- */

/* The layer as sample number b sees it. */
static ref_layer layer_of(const ref_net *net, size_t n, size_t b) {
    ref_layer l = net->layer[n];
    l.out += b * l.out_c * l.out_h * l.out_w;
    l.d_out += b * l.out_c * l.out_h * l.out_w;
    return l;
}

/* The layer whose output layer n takes; SIZE_MAX: the sample itself. A block's projection takes
 * what the block takes. The other one that the end of a block takes: see other_of. */
static size_t input_of(const ref_net *net, size_t n) {
    return (net->layer[n].kind == REF_SKIP ? net->layer[n].fork : n) - 1;
}

static size_t other_of(const ref_net *net, size_t join) {
    return net->layer[join - 1].kind == REF_SKIP ? join - 2 : net->layer[join].fork - 1;
}

static double *values_of(const ref_net *net, size_t n, const double *x, size_t b) {
    return n == SIZE_MAX ? (double *)x + b * net->input : layer_of(net, n, b).out;
}

static void forward_one(ref_net *net, size_t n, const double *weights, const double *x, size_t b) {
    const ref_layer l = layer_of(net, n, b);
    const double *in = values_of(net, input_of(net, n), x, b);
    const size_t size = l.in_c * l.in_h * l.in_w;
    switch (l.kind) {
    case REF_CONV:
    case REF_SKIP:
        conv_forward(&l, weights, in);
        break;
    case REF_RELU:
        relu_forward(&l, in, &net->kink);
        break;
    case REF_MAXPOOL:
        pool_forward(&l, in, &net->kink);
        break;
    case REF_FC:
        fc_forward(&l, weights, in);
        break;
    case REF_AVGPOOL:
    case REF_GLOBALPOOL:
        average(&l, in, NULL);
        break;
    case REF_TANH:
    case REF_GELU:
        activate(&l, in, NULL);
        break;
    case REF_BATCHNORM: /* not one by one */
        break;
    case REF_EMBED:
        embed(&l, weights, in, 0, NULL);
        break;
    case REF_DROPOUT:
        drop(net, &l, b, in, l.out, false);
        break;
    case REF_FORK:
    case REF_JOIN:
        for (size_t i = 0; i < size; i++)
            l.out[i] = in[i] + (l.kind == REF_JOIN ? values_of(net, other_of(net, n), x, b)[i] : 0);
        break;
    }
}

/* Adds to the gradients of what layer n takes, and to those of its weights. */
static void backward_one(const ref_net *net, size_t n, const double *weights, const double *x,
                         size_t b, double scale, double *gradient) {
    const ref_layer l = layer_of(net, n, b);
    const size_t from = input_of(net, n), size = l.in_c * l.in_h * l.in_w;
    const double *in = values_of(net, from, x, b);
    double *d_in = from == SIZE_MAX ? NULL : layer_of(net, from, b).d_out;
    if (l.kind == REF_CONV || l.kind == REF_SKIP)
        conv_backward(&l, weights, in, scale, gradient, d_in);
    else if (l.kind == REF_FC)
        fc_backward(&l, weights, in, scale, gradient, d_in);
    else if (l.kind == REF_EMBED)
        embed(&l, weights, in, scale, gradient);
    else if (l.kind == REF_RELU && d_in)
        relu_backward(&l, in, d_in);
    else if (l.kind == REF_MAXPOOL && d_in)
        pool_backward(&l, in, d_in);
    else if ((l.kind == REF_AVGPOOL || l.kind == REF_GLOBALPOOL) && d_in)
        average(&l, in, d_in);
    else if ((l.kind == REF_TANH || l.kind == REF_GELU) && d_in)
        activate(&l, in, d_in);
    else if (l.kind == REF_DROPOUT && d_in)
        drop(net, &l, b, l.d_out, d_in, true);
    for (size_t i = 0; d_in && (l.kind == REF_FORK || l.kind == REF_JOIN) && i < size; i++)
        d_in[i] += l.d_out[i];
    const size_t other = l.kind == REF_JOIN ? other_of(net, n) : SIZE_MAX;
    for (size_t i = 0; other != SIZE_MAX && i < size; i++)
        layer_of(net, other, b).d_out[i] += l.d_out[i];
}

/* The mean and variance that channel c of a batchnorm normalises with, and how many numbers there
 * are. One alone has no variance: the running statistics serve. */
static size_t norm_of(const ref_net *net, size_t n, const double *weights, const double *x,
                      size_t count, size_t c, double *mean, double *variance) {
    const ref_layer *l = &net->layer[n];
    const size_t map = l->in_h * l->in_w, all = count * map;
    *mean = weights[l->mean + c];
    *variance = weights[l->mean + l->in_c + c];
    if (!net->is_training || all == 1)
        return 0;
    *mean = *variance = 0;
    for (size_t i = 0; i < all; i++)
        *mean += values_of(net, n - 1, x, i / map)[c * map + i % map] / (double)all;
    for (size_t i = 0; i < all; i++)
        *variance +=
            pow(values_of(net, n - 1, x, i / map)[c * map + i % map] - *mean, 2) / (double)all;
    return all;
}

static void norm_forward(const ref_net *net, size_t n, const double *weights, const double *x,
                         size_t count) {
    const ref_layer *l = &net->layer[n];
    const size_t map = l->in_h * l->in_w;
    for (size_t c = 0; c < l->in_c; c++) {
        double mean, variance;
        norm_of(net, n, weights, x, count, c, &mean, &variance);
        for (size_t i = 0; i < count * map; i++) {
            double value = values_of(net, n - 1, x, i / map)[c * map + i % map];
            layer_of(net, n, i / map).out[c * map + i % map] =
                (value - mean) / sqrt(variance + 1e-5) * weights[l->weight + c] +
                weights[l->bias + c];
        }
    }
}

static void norm_backward(const ref_net *net, size_t n, const double *weights, const double *x,
                          size_t count, double scale, double *gradient) {
    const ref_layer *l = &net->layer[n];
    const size_t map = l->in_h * l->in_w;
    for (size_t c = 0; c < l->in_c; c++) {
        double mean, variance, sum = 0, product = 0;
        size_t all = norm_of(net, n, weights, x, count, c, &mean, &variance);
        const double deviation = sqrt(variance + 1e-5);
        for (size_t i = 0; i < count * map; i++) {
            double d = layer_of(net, n, i / map).d_out[c * map + i % map];
            sum += d;
            product +=
                d * (values_of(net, n - 1, x, i / map)[c * map + i % map] - mean) / deviation;
        }
        gradient[l->bias + c] += scale * sum;
        gradient[l->weight + c] += scale * product;
        if (net->is_training) {
            gradient[l->mean + c] = mean;
            gradient[l->mean + l->in_c + c] =
                all ? variance * (double)all / (double)(all - 1) : variance;
        }
        for (size_t i = 0; n && i < count * map; i++) {
            size_t at = c * map + i % map;
            double d = layer_of(net, n, i / map).d_out[at];
            if (all)
                d -= (sum + product * (layer_of(net, n - 1, i / map).out[at] - mean) / deviation) /
                     (double)all;
            layer_of(net, n - 1, i / map).d_out[at] += d * weights[l->weight + c] / deviation;
        }
    }
}

static void forward(ref_net *net, const double *weights, const double *x, size_t count) {
    net->kink = INFINITY;
    for (size_t n = 0; n < net->layers; n++) {
        if (net->layer[n].kind == REF_BATCHNORM)
            norm_forward(net, n, weights, x, count);
        for (size_t b = 0; b < count; b++)
            forward_one(net, n, weights, x, b);
    }
}

/* The sum of the losses, and its gradient by the outputs. */
static double losses(ref_net *net, const uint16_t *labels, size_t count) {
    double all = 0;
    for (size_t b = 0; b < count; b++) {
        const ref_layer l = layer_of(net, net->layers - 1, b);
        double most = l.out[0], sum = 0;
        for (size_t i = 0; i < net->classes; i++)
            most = fmax(most, l.out[i]);
        for (size_t i = 0; i < net->classes; i++)
            sum += exp(l.out[i] - most);
        all += log(sum) + most - l.out[labels[b]];
        for (size_t i = 0; i < net->classes; i++) /* softmax minus the label's indicator */
            l.d_out[i] = exp(l.out[i] - most) / sum - (i == labels[b]);
    }
    return all;
}

static void backward(ref_net *net, const double *weights, const double *x, size_t count,
                     double scale, double *gradient) {
    for (size_t n = 0; n + 1 < net->layers; n++) {
        const ref_layer *l = &net->layer[n];
        memset(l->d_out, 0, count * l->out_c * l->out_h * l->out_w * sizeof(double));
    }
    for (size_t n = net->layers; n-- > 0;) {
        if (net->layer[n].kind == REF_BATCHNORM)
            norm_backward(net, n, weights, x, count, scale, gradient);
        for (size_t b = 0; b < count; b++)
            backward_one(net, n, weights, x, b, scale, gradient);
    }
}

const double *ref_forward(ref_net *net, const double *weights, const double *x) {
    net->is_training = false;
    forward(net, weights, x, 1);
    return net->layer[net->layers - 1].out;
}

double ref_loss(ref_net *net, const double *weights, const double *x, size_t label, double scale,
                double *gradient) {
    net->is_training = false;
    forward(net, weights, x, 1);
    const uint16_t only = (uint16_t)label;
    const double loss = losses(net, &only, 1);
    if (gradient)
        backward(net, weights, x, 1, scale, gradient);
    return loss;
}

double ref_batch(ref_net *net, const double *weights, const double *x, const uint16_t *labels,
                 const uint32_t *ids, size_t count, double *gradient) {
    net->ids = ids;
    net->is_training = true;
    forward(net, weights, x, count);
    const double loss = losses(net, labels, count);
    if (gradient) {
        memset(gradient, 0, net->weights * sizeof *gradient);
        backward(net, weights, x, count, 1 / (double)count, gradient);
    }
    return loss / (double)count;
}
