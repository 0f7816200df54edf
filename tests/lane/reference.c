/* SPDX-License-Identifier: Apache-2.0
 * The reference network: forward and backward of each layer side by side, one sample at a time.
 * Ties and kinks as in PyTorch: a pooling window passes its gradient to the first of its greatest
 * values in row-major order, relu's derivative at 0 is 0. */
#include "reference.h"

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
    } words[] = {{"relu", REF_RELU, false},      {"tanh", REF_TANH, false},
                 {"gelu", REF_GELU, false},      {"globalpool", REF_GLOBALPOOL, false},
                 {"maxpool", REF_MAXPOOL, true}, {"avgpool", REF_AVGPOOL, true}};
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
        l->out_h = (h + 2 * l->padding - l->kernel) / l->stride + 1;
        l->out_w = (w + 2 * l->padding - l->kernel) / l->stride + 1;
        fan_in = c * l->kernel * l->kernel;
        break;
    case REF_RELU:
    case REF_TANH:
    case REF_GELU:
        l->out_c = c, l->out_h = h, l->out_w = w;
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
    }
    l->weight = net->weights;
    l->bias = l->weight + l->out_c * fan_in;
    if (fan_in)
        net->weights = l->bias + l->out_c;
    l->out = calloc(l->out_c * l->out_h * l->out_w, sizeof(double));
    l->d_out = calloc(l->out_c * l->out_h * l->out_w, sizeof(double));
}

ref_net *ref_create(const char *text, size_t channels, size_t height, size_t width) {
    ref_net *net = calloc(1, sizeof *net);
    if (!net)
        return NULL;
    net->input = channels * height * width;
    for (;; text++) { /* over the comma */
        ref_layer *l = &net->layer[net->layers];
        int used = net->layers < REF_MAX_LAYERS ? read_layer(text, l) : 0;
        text += used;
        if (!used || (*text && *text != ',')) {
            ref_free(net);
            return NULL;
        }
        shape_layer(net, l, channels, height, width);
        channels = l->out_c, height = l->out_h, width = l->out_w;
        net->layers++;
        if (!*text)
            break;
    }
    net->classes = channels;
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

/* ---- the network ---- */

const double *ref_forward(ref_net *net, const double *weights, const double *x) {
    net->kink = INFINITY;
    for (size_t n = 0; n < net->layers; n++) {
        const ref_layer *l = &net->layer[n];
        switch (l->kind) {
        case REF_CONV:
            conv_forward(l, weights, x);
            break;
        case REF_RELU:
            relu_forward(l, x, &net->kink);
            break;
        case REF_MAXPOOL:
            pool_forward(l, x, &net->kink);
            break;
        case REF_FC:
            fc_forward(l, weights, x);
            break;
        case REF_AVGPOOL:
        case REF_GLOBALPOOL:
            average(l, x, NULL);
            break;
        case REF_TANH:
        case REF_GELU:
            activate(l, x, NULL);
            break;
        }
        x = l->out;
    }
    return x;
}

double ref_loss(ref_net *net, const double *weights, const double *x, size_t label, double scale,
                double *gradient) {
    const double *logits = ref_forward(net, weights, x);
    double most = logits[0], sum = 0;
    for (size_t i = 0; i < net->classes; i++)
        most = fmax(most, logits[i]);
    for (size_t i = 0; i < net->classes; i++)
        sum += exp(logits[i] - most);
    double loss = log(sum) + most - logits[label];
    if (!gradient)
        return loss;
    for (size_t i = 0; i < net->classes; i++) /* softmax minus the label's indicator */
        net->layer[net->layers - 1].d_out[i] = exp(logits[i] - most) / sum - (i == label);
    for (size_t n = net->layers; n-- > 0;) {
        const ref_layer *l = &net->layer[n];
        const double *in = n ? net->layer[n - 1].out : x;
        double *d_in = n ? net->layer[n - 1].d_out : NULL;
        if (d_in)
            memset(d_in, 0, l->in_c * l->in_h * l->in_w * sizeof *d_in);
        if (l->kind == REF_CONV)
            conv_backward(l, weights, in, scale, gradient, d_in);
        else if (l->kind == REF_FC)
            fc_backward(l, weights, in, scale, gradient, d_in);
        else if (l->kind == REF_RELU && d_in)
            relu_backward(l, in, d_in);
        else if (l->kind == REF_MAXPOOL && d_in)
            pool_backward(l, in, d_in);
        else if ((l->kind == REF_AVGPOOL || l->kind == REF_GLOBALPOOL) && d_in)
            average(l, in, d_in);
        else if (d_in)
            activate(l, in, d_in);
    }
    return loss;
}
