/* SPDX-License-Identifier: Apache-2.0
 *
 * Wide convolutions of 3 x 3 by Winograd's algorithm, F(2 x 2, 3 x 3): four outputs take 16
 * products per pair of channels instead of 36. winograd_kernels.h has the transforms. Between them,
 * each of the 16 positions of a tile is one product of matrices:
 *
 *     forward             M[o][tile, lane] = sum over c            of U[o][c] V[c][tile, lane]
 *     gradient of input   M[c][tile, lane] = sum over o            of U[o][c] V[o][tile, lane]
 *     gradient of filters U[o][c]          = sum over (tile, lane) of S[o][tile, lane] V[tile, lane][c]
 *
 * For the gradient of the input, V is that of dy, and the filters are turned by 180 degrees. For
 * that of the filters, V has the channels last, so that a vector holds 16 of them and the sum over
 * the samples needs no sum over lanes.
 *
 * Tiles go through this in runs, whose positions stay in the second-level cache. Each number is one
 * chain of operations whose order does not depend on the length of the runs.
 */
#include "lane/workspace.h"

#include <string.h>

/* Floats of a run's positions before and after the product, or of both factors: 512 KB. */
enum { RUN_FLOATS = 1 << 17 };

static size_t padded(size_t channels) { return lane_round_up(channels); }

static uint32_t tiles_of(uint32_t pixels) { return (pixels + 1) / 2; }

/* The most tiles of a run, at most those of a row, in parts that are as equal as possible. */
static uint32_t run_of(size_t channels, uint32_t width) {
    const uint32_t tiles = tiles_of(width);
    const uint32_t most = (uint32_t)MAX(RUN_FLOATS / (LANE_POSITIONS * FDS__LANES * channels), 1u);
    const uint32_t parts = (tiles + most - 1) / most;
    return (tiles + parts - 1) / parts;
}

/* Positions are a little more than a power of two apart: they would compete for few places of the
 * first-level cache. */
static size_t apart(size_t size) { return size + FDS__LANES; }

static size_t filters_size(const fds__layer *l) {
    return LANE_POSITIONS * apart(l->out.channels * padded(l->in.channels));
}

static size_t run_size(size_t channels, uint32_t run) {
    return LANE_POSITIONS * apart(channels * run * FDS__LANES);
}

static size_t row_size(const fds__layer *l) {
    return (l->in.width + 2 * l->padding) * padded(l->in.channels) * FDS__LANES;
}

void lane_winograd_plan(const fds_lane *lane, lane_stage *s) {
    const fds__layer *l = s->layer;
    const uint32_t in = l->in.channels, out = l->out.channels;
    fds__tile (*tile)(uint32_t, uint32_t) = lane->kernels->tile;
    s->run = run_of(in + out, l->out.width);
    s->run_input = run_of(in + out, l->in.width);
    s->run_filters = run_of(padded(in) + out, l->out.width);
    s->forward = tile(out, s->run);
    s->backward = tile(in, s->run_input);
    s->weights = tile(out, (uint32_t)padded(in) / FDS__LANES);
}

size_t lane_winograd_scratch(const lane_stage *s) {
    const fds__layer *l = s->layer;
    const uint32_t in = l->in.channels, out = l->out.channels;
    const uint32_t run = MAX(s->run, s->run_input);
    const size_t forward = run_size(in, run) + run_size(out, run);
    const size_t backward =
        4 * row_size(l) + run_size(padded(in), s->run_filters) + run_size(out, s->run_filters);
    return filters_size(l) + MAX(forward, backward);
}

void lane_winograd_filters(fds_lane *lane, const lane_stage *s, const float *weights) {
    const fds__layer *l = s->layer;
    const size_t row = padded(l->in.channels);
    lane->winograd->filters(weights + l->weight, l->out.channels, l->in.channels, lane->scratch,
                            row, apart(l->out.channels * row));
}

/* One row of tiles of y, from x by the filters in scratch. shift: the pixel of x, in each direction,
 * at which the window of y's first pixel begins. */
static void convolve_row(fds_lane *lane, const lane_stage *s, const lane_image *x, int32_t shift,
                         bool is_turned, const float *bias, uint32_t number, const lane_image *y) {
    const size_t row = padded(s->layer->in.channels);
    const uint32_t run = is_turned ? s->run_input : s->run, from = (uint32_t)x->channels,
                   to = (uint32_t)y->channels;
    float *v = lane->scratch + filters_size(s->layer), *m = v + run_size(from, run);
    const uint32_t all = tiles_of((uint32_t)y->columns);
    for (uint32_t t = 0; t < all; t += run) {
        const uint32_t count = MIN(all - t, run);
        const lane_tiles tiles = {2 * (int32_t)number, 2 * (int32_t)t, count};
        const size_t v_row = (size_t)count * FDS__LANES;
        lane->winograd->input(x, (lane_tiles){tiles.row + shift, tiles.column + shift, count},
                              is_turned, v, apart(from * v_row));
        lane->kernels->product(&(fds__product){
            .tile = is_turned ? s->backward : s->forward,
            .rows = to,
            .vectors = count,
            .w = lane->scratch,
            .w_row = is_turned ? 1 : row,
            .x = v,
            .y = m,
            .y_row = v_row,
            .taps = {1, 1, from},
            .w_tap = {0, 0, is_turned ? row : 1},
            .x_tap = {0, 0, v_row},
            .start = FDS__START_ZERO,
            .repeat = {1, 1, LANE_POSITIONS},
            .w_repeat = {0, 0, apart(s->layer->out.channels * row)},
            .x_repeat = {0, 0, apart(from * v_row)},
            .y_repeat = {0, 0, apart(to * v_row)},
        });
        lane->winograd->output(m, apart(to * v_row), is_turned, bias, tiles, y);
    }
}

/* The values of a boundary with the zeros around them, and its gradient without. */
static lane_image padded_image(const fds__boundary *b) {
    return (lane_image){b->value,
                        b->plane,
                        b->row,
                        (int32_t)b->shape.channels,
                        (int32_t)(b->shape.height + 2 * b->pad),
                        (int32_t)(b->shape.width + 2 * b->pad)};
}

static lane_image image(const fds__boundary *b, float *buffer) {
    return (lane_image){buffer + b->origin,
                        b->plane,
                        b->row,
                        (int32_t)b->shape.channels,
                        (int32_t)b->shape.height,
                        (int32_t)b->shape.width};
}

void lane_winograd_forward(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                           const fds__boundary *out, const float *weights, uint32_t row) {
    const lane_image x = padded_image(in), y = image(out, out->value);
    convolve_row(lane, s, &x, 0, false, weights + s->layer->bias, row, &y);
}

/* Pixel h of dx sees the pixels h + padding - 2 to h + padding of dy. */
void lane_winograd_backward_input(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                                  const fds__boundary *out, const float *weights) {
    const lane_image dy = image(out, out->grad), dx = image(in, in->grad);
    lane_winograd_filters(lane, s, weights);
    for (uint32_t row = 0; row < tiles_of(in->shape.height); row++)
        convolve_row(lane, s, &dy, (int32_t)s->layer->padding - 2, true, NULL, row, &dx);
}

/* One row of tiles adds to the gradient of u. rows: the four rows of x, channels last. */
static void filters_row(fds_lane *lane, const lane_stage *s, const float *const rows[4],
                        int32_t columns, const lane_image *dy, uint32_t number, float *u, float *v,
                        float *g) {
    const fds__layer *l = s->layer;
    const size_t u_row = padded(l->in.channels), column = u_row * FDS__LANES;
    const uint32_t all = tiles_of(l->out.width), out = l->out.channels;
    for (uint32_t t = 0; t < all; t += s->run_filters) {
        const uint32_t count = MIN(all - t, s->run_filters);
        const lane_tiles tiles = {2 * (int32_t)number, 2 * (int32_t)t, count};
        const size_t taps = (size_t)count * FDS__LANES;
        lane->winograd->input_last(rows, columns, column, tiles, v, apart(count * column));
        lane->winograd->gradient(dy, tiles, g, apart(out * taps));
        lane->kernels->product(&(fds__product){
            .tile = s->weights,
            .rows = out,
            .vectors = (uint32_t)u_row / FDS__LANES,
            .w = g,
            .w_row = taps,
            .x = v,
            .y = u,
            .y_row = u_row,
            .taps = {1, 1, (uint32_t)taps},
            .w_tap = {0, 0, 1},
            .x_tap = {0, 0, u_row},
            .start = FDS__START_Y,
            .repeat = {1, 1, LANE_POSITIONS},
            .w_repeat = {0, 0, apart(out * taps)},
            .x_repeat = {0, 0, apart(count * column)},
            .y_repeat = {0, 0, apart(out * u_row)},
        });
    }
}

void lane_winograd_backward_filters(fds_lane *lane, const lane_stage *s, const fds__boundary *in,
                                    const fds__boundary *out, bool add) {
    const fds__layer *l = s->layer;
    const lane_image x = padded_image(in), dy = image(out, out->grad);
    const size_t size = row_size(l), u_row = padded(l->in.channels);
    float *u = lane->scratch, *ring = u + filters_size(l), *v = ring + 4 * size,
          *g = v + run_size(u_row, s->run_filters);
    memset(u, 0, filters_size(l) * sizeof *u);
    int32_t known = 0; /* rows of x that were in the ring */
    for (uint32_t n = 0; n < tiles_of(l->out.height); n++) {
        const float *rows[4];
        for (int32_t i = 0; i < 4; i++) {
            const int32_t h = 2 * (int32_t)n + i;
            float *slot = ring + (size_t)(h % 4) * size;
            rows[i] = h < x.rows ? slot : NULL;
            if (h >= known && h < x.rows) {
                lane->winograd->channels_last(&x, h, slot);
                known = h + 1;
            }
        }
        filters_row(lane, s, rows, x.columns, &dy, n, u, v, g);
    }
    lane->winograd->filters_backward(u, u_row, apart(l->out.channels * u_row), l->out.channels,
                                     l->in.channels, add, lane->grad + l->weight);
}
