/* SPDX-License-Identifier: Apache-2.0
 *
 * A fully connected layer for any number of samples: y = w x + b, each number one chain of
 * multiply-adds in the order of the inputs. Here the lanes hold outputs, so one sample fills them as
 * well as many do.
 *
 * Weights are kept in panels of 64 outputs, (panels, inputs, 64). A panel fits the second-level cache,
 * and all samples are multiplied with it before the next one is read. */
#include "base/isa.h"
#include "lane/kernels.h"
#include "lane/lane.h"

#include <string.h>

enum { VECTORS = 4, PANEL = VECTORS * FDS__LANES };

struct fds__dense {
    const fds__kernels *kernels;
    size_t inputs, width; /* width: outputs, rounded up to whole vectors */
    bool is_relu;
    float *weights, *bias; /* bias (width) */
};

void fds__dense_free(fds__dense *layer) {
    if (!layer)
        return;
    fds__free(layer->weights);
    fds__free(layer->bias);
    fds__free(layer);
}

static size_t panel_width(const fds__dense *layer, size_t first) {
    return MIN(layer->width - first, (size_t)PANEL);
}

static void pack(fds__dense *layer, size_t outputs, const float *w) {
    float *out = layer->weights;
    for (size_t first = 0; first < layer->width; first += PANEL)
        for (size_t i = 0; i < layer->inputs; i++)
            for (size_t o = first; o < first + panel_width(layer, first); o++)
                *out++ = o < outputs ? w[o * layer->inputs + i] : 0;
}

static fds_status make(fds__dense *layer, size_t outputs, const float *w, const float *bias,
                       fds_error *err) {
    size_t count;
    fds__isa_set isa;
    TRY(fds__isa_choose(&isa, err));
    layer->kernels = FDS__ISA_PICK(isa, fds__kernels);
    if (!fds__mul(layer->inputs, layer->width, &count) || !fds__mul(count, sizeof(float), &count))
        return fds__fail(err, FDS_ERR_LIMIT, "a layer of %zu inputs and %zu outputs is too large",
                         layer->inputs, outputs);
    layer->weights = fds__alloc_aligned(count);
    if (!layer->weights)
        return fds__fail_nomem(err, count);
    TRY(NEW(layer->bias, layer->width, err));
    memcpy(layer->bias, bias, outputs * sizeof *bias);
    pack(layer, outputs, w);
    return FDS_OK;
}

size_t fds__dense_round(size_t outputs) {
    return (outputs + FDS__LANES - 1) / FDS__LANES * FDS__LANES;
}

fds_status fds__dense_create(size_t inputs, size_t outputs, const float *w, const float *bias,
                             bool is_relu, fds__dense **out, fds_error *err) {
    fds__dense *layer;
    TRY(NEW(layer, 1, err));
    *layer = (fds__dense){.inputs = inputs, .width = fds__dense_round(outputs), .is_relu = is_relu};
    fds_status status = make(layer, outputs, w, bias, err);
    if (status == FDS_OK)
        *out = layer;
    else
        fds__dense_free(layer);
    return status;
}

size_t fds__dense_width(const fds__dense *layer) { return layer->width; }

void fds__dense_run(const fds__dense *layer, const float *x, size_t x_row, size_t count, float *y) {
    const float *w = layer->weights;
    fds__tile tile = {0};
    for (size_t r = 0; r < count; r++)
        memcpy(y + r * layer->width, layer->bias, layer->width * sizeof *y);
    for (size_t first = 0, width; first < layer->width; first += width) {
        width = panel_width(layer, first);
        uint32_t vectors = (uint32_t)(width / FDS__LANES);
        if (first == 0 || vectors < VECTORS)
            tile = layer->kernels->tile((uint32_t)count, vectors);
        const fds__product p = {.tile = tile,
                                .rows = (uint32_t)count,
                                .vectors = vectors,
                                .w = x, /* the samples are the rows, and the weights the vectors */
                                .w_row = x_row,
                                .x = w,
                                .y = y + first,
                                .y_row = layer->width,
                                .taps = {1, 1, (uint32_t)layer->inputs},
                                .w_tap = {0, 0, 1},
                                .x_tap = {0, 0, width},
                                .start = FDS__START_Y,
                                .repeat = {1, 1, 1}};
        layer->kernels->product(&p);
        w += width * layer->inputs;
    }
    if (layer->is_relu)
        layer->kernels->relu_forward(y, count * layer->width);
}
