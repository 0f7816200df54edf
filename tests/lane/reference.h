/* SPDX-License-Identifier: Apache-2.0
 * A network in double precision with naive loops, written from the definition of the layers in
 * docs/models.md alone: the tests compare the engine with it. */
#ifndef FDS_TEST_REFERENCE_H
#define FDS_TEST_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REF_MAX_LAYERS = 48, REF_MAX_BATCH = 40 };

typedef enum {
    REF_CONV,
    REF_RELU,
    REF_MAXPOOL,
    REF_FC,
    REF_AVGPOOL,
    REF_GLOBALPOOL,
    REF_TANH,
    REF_GELU,
    REF_BATCHNORM,
    REF_DROPOUT,
    REF_EMBED,
    REF_FORK, /* the begin of a residual block */
    REF_SKIP, /* a projection: conv or fc of the block's input */
    REF_JOIN  /* its end */
} ref_kind;

typedef struct {
    ref_kind kind;
    size_t kernel, padding, stride;
    size_t in_c, in_h, in_w, out_c, out_h, out_w;
    size_t weight, bias; /* offsets within the weights */
    size_t mean;         /* batchnorm: of the running means, the running variances behind them */
    double rate;         /* dropout */
    size_t drop;         /* dropout: its number among the layers of this kind */
    size_t tokens;       /* embed: how many there are */
    size_t fork;         /* skip, join: the layer that begins the block */
    double *out;         /* (REF_MAX_BATCH, out_c, out_h, out_w) of the last samples */
    double *d_out;       /* gradient of the loss by it */
} ref_layer;

typedef struct {
    size_t input, classes, weights, layers;
    size_t statistics; /* of the weights, the last ones: not trained */
    bool is_training;  /* of the last samples */
    uint64_t seed;     /* of dropout, set by the caller */
    uint32_t epoch;
    const uint32_t *ids; /* of the last samples; NULL: 0, 1, ... */
    ref_layer layer[REF_MAX_LAYERS];
    /* of the last samples: how near they came to a point where the loss has no derivative, that is
     * a relu's input to 0 or the two greatest values of a pooling window to each other (exact
     * equality does not count: a rule decides it) */
    double kink;
} ref_net;

/* The text with numbers written out, as fds_net_text gives it. NULL for a mistake. */
ref_net *ref_create(const char *text, size_t channels, size_t height, size_t width);
void ref_free(ref_net *net);

/* Outputs of the last layer for one sample, valid until the next call: (classes). */
const double *ref_forward(ref_net *net, const double *weights, const double *x);
/* Cross-entropy of the softmax for one sample. With a gradient (weights), adds scale times the
 * derivative of the loss to it. */
double ref_loss(ref_net *net, const double *weights, const double *x, size_t label, double scale,
                double *gradient);
/* The mean loss of count samples as a mini-batch in training. With a gradient (weights): it becomes
 * that of the mean loss, and has the mini-batch's statistics in the places of running ones. */
double ref_batch(ref_net *net, const double *weights, const double *x, const uint16_t *labels,
                 const uint32_t *ids, size_t count, double *gradient);

#endif
