/* SPDX-License-Identifier: Apache-2.0
 *
 * The stages that are neither products nor maps. Networks that have them always compute 16 lanes, so
 * a row of a boundary is contiguous: (width, 16).
 */
#include "lane/workspace.h"

#include <string.h>

/* Where row h of channel c is, from the first pixel on. */
static float *row_at(const fds__boundary *b, float *buffer, uint32_t c, uint32_t h) {
    return buffer + b->origin + c * b->plane + h * b->row;
}

/* ---- folds: see plan.c ---- */

/* The pixel of the input at which (row, column) of a folded channel is; false in the padding. */
static bool fold_place(const lane_stage *s, uint32_t place, uint32_t offset, uint32_t size,
                       uint32_t *at) {
    *at = place * s->layer->stride + offset - s->layer->padding; /* wraps below 0 */
    return *at < size;
}

void lane_fold_forward(const lane_stage *s, const fds__boundary *in, const fds__boundary *out) {
    const uint32_t f = s->fold, height = in->shape.height, width = in->shape.width;
    for (uint32_t c = 0; c < out->shape.channels; c++)
        for (uint32_t i = 0; i < out->shape.height; i++) {
            float *to = row_at(out, out->value, c, i);
            uint32_t h, w;
            if (!fold_place(s, i, c / f % f, height, &h)) {
                memset(to, 0, out->row * sizeof *to);
                continue;
            }
            const float *from = row_at(in, in->value, c / f / f, h);
            for (uint32_t j = 0; j < out->shape.width; j++, to += FDS__LANES)
                if (fold_place(s, j, c % f, width, &w))
                    memcpy(to, from + w * FDS__LANES, FDS__LANES * sizeof *to);
                else
                    memset(to, 0, FDS__LANES * sizeof *to);
        }
}

/* A pixel is at one place of the folded channels at most: nothing adds up. */
void lane_fold_backward(const lane_stage *s, const fds__boundary *in, const fds__boundary *out) {
    const uint32_t f = s->fold, height = in->shape.height, width = in->shape.width;
    memset(in->grad, 0, in->shape.channels * in->plane * sizeof(float));
    for (uint32_t c = 0; c < out->shape.channels; c++)
        for (uint32_t i = 0; i < out->shape.height; i++) {
            const float *from = row_at(out, out->grad, c, i);
            uint32_t h, w;
            if (!fold_place(s, i, c / f % f, height, &h))
                continue;
            float *to = row_at(in, in->grad, c / f / f, h);
            for (uint32_t j = 0; j < out->shape.width; j++)
                if (fold_place(s, j, c % f, width, &w))
                    memcpy(to + w * FDS__LANES, from + j * FDS__LANES, FDS__LANES * sizeof *to);
        }
}

void lane_fold_plan(lane_stage *s) {
    const uint32_t k = s->folded.kernel, f = s->fold, stride = s->unfolded->stride;
    const uint32_t kernel = s->unfolded->kernel;
    for (uint32_t n = 0; n < s->folded.bias; n++) {
        const uint32_t j = n % k, i = n / k % k, b = n / k / k % f, a = n / k / k / f % f;
        const uint32_t filter = n / k / k / f / f; /* (o, c) */
        const uint32_t row = i * stride + a, column = j * stride + b;
        s->places[n] = row < kernel && column < kernel ? (filter * kernel + row) * kernel + column
                                                       : LANE_NO_PLACE;
    }
}

void lane_fold_weights(const lane_stage *s, const float *weights) {
    const fds__layer *l = s->unfolded;
    for (size_t n = 0; n < s->folded.bias; n++)
        s->weights_own[n] =
            s->places[n] == LANE_NO_PLACE ? 0.0f : weights[l->weight + s->places[n]];
    memcpy(s->weights_own + s->folded.bias, weights + l->bias, l->out.channels * sizeof(float));
}

void lane_unfold_grad(const lane_stage *s, bool add, float *grad) {
    const fds__layer *l = s->unfolded;
    float *filters = grad + l->weight, *biases = grad + l->bias;
    for (size_t n = 0; n < s->folded.bias; n++)
        if (s->places[n] != LANE_NO_PLACE)
            filters[s->places[n]] = (add ? filters[s->places[n]] : 0.0f) + s->grad_own[n];
    for (size_t o = 0; o < l->out.channels; o++)
        biases[o] = (add ? biases[o] : 0.0f) + s->grad_own[s->folded.bias + o];
}

void lane_fold_clear(const lane_stage *s, float *each) {
    for (size_t n = 0; n < s->folded.bias; n++)
        if (s->places[n] == LANE_NO_PLACE)
            memset(each + n * FDS__LANES, 0, FDS__LANES * sizeof *each);
}
