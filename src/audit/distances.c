/* SPDX-License-Identifier: Apache-2.0
 * Nearest neighbours across providers.
 *
 * The distance of two samples is the root mean square of their differences, in standard deviations of
 * each channel. Pictures are compared at every shift of up to COPIES_SHIFT pixels, over the part where
 * both have pixels, and the least distance counts: a copy that was moved is as near as one that was
 * not. A sum is given up as soon as it exceeds the least one so far. */
#include "audit/copies.h"

#include <math.h>

typedef struct {
    const fds_dataset *train, *test;
    size_t size;
    fds_shape shape;
    bool is_image;
    const float *values; /* (count, size) in standard deviations */
    copies_near *near;
} search;

/* The sum of squares over the common part of a and of b, moved by (dx, dy); at most `most`. */
static float sum_squares(const search *s, const float *a, const float *b, int dx, int dy,
                         float most) {
    const int height = (int)s->shape.height, width = (int)s->shape.width;
    const int top = MAX(0, dy), bottom = MIN(height, height + dy), left = MAX(0, dx),
              right = MIN(width, width + dx);
    float sum = 0;
    for (uint32_t c = 0; c < s->shape.channels; c++)
        for (int k = 0; k < bottom - top; k++) { /* from the middle, where pictures differ most */
            const int y = top + ((bottom - top) / 2 + k) % (bottom - top);
            const float *p = a + ((size_t)c * s->shape.height + (size_t)y) * s->shape.width,
                        *q = b + ((size_t)c * s->shape.height + (size_t)(y - dy)) * s->shape.width;
            for (int x = left; x < right; x++)
                sum += (p[x] - q[x - dx]) * (p[x] - q[x - dx]);
            if (sum > most)
                return sum;
        }
    return sum;
}

/* The mean square difference, or something above most. */
static float distance2(const search *s, const float *a, const float *b, float most) {
    const int reach_x = s->is_image && s->shape.width > 8 ? COPIES_SHIFT : 0,
              reach_y = s->is_image && s->shape.height > 8 ? COPIES_SHIFT : 0;
    float best = most;
    for (int dy = -reach_y; dy <= reach_y; dy++)
        for (int dx = -reach_x; dx <= reach_x; dx++) {
            float cells = (float)s->shape.channels * (float)((int)s->shape.height - abs(dy)) *
                          (float)((int)s->shape.width - abs(dx));
            float mean = sum_squares(s, a, b, dx, dy, best * cells) / cells;
            best = MIN(best, mean);
        }
    return best;
}

static fds_status find_one(void *context, size_t i, unsigned worker, fds_error *err) {
    const search *s = context;
    copies_near *n = s->near;
    const float *x = s->values + i * s->size;
    float *to = n->distance + i * n->providers;
    (void)worker;
    for (uint32_t p = 0; p < n->providers; p++)
        to[p] = INFINITY;
    for (size_t j = 0; j < n->owned; j++) {
        uint32_t p = s->train->provider_ids[j];
        float d = j == i ? INFINITY : distance2(s, x, s->values + j * s->size, to[p]);
        if (d < to[p]) {
            to[p] = d;
            n->which[i * n->providers + p] = (uint32_t)j;
        }
    }
    float reference = INFINITY;
    for (size_t j = n->owned; j < n->count; j++)
        if (j != i)
            reference = MIN(reference, distance2(s, x, s->values + j * s->size, reference));
    if (n->reference)
        n->reference[i] = sqrtf(reference);
    for (uint32_t p = 0; p < n->providers; p++)
        to[p] = sqrtf(to[p]);
    return fds__pool_check(err);
}

/* All samples in standard deviations of the training part's channels. */
static fds_status scale(const search *s, float *values, fds_error *err) {
    const fds_dataset *train = s->train;
    size_t plane = (size_t)s->shape.height * s->shape.width;
    OWNED float *std = NULL;
    TRY(NEW(std, s->shape.channels, err));
    TRY(fds_dataset_stats(train, NULL, train->count, NULL, NULL, NULL, std, err));
    for (size_t i = 0; i < s->near->count; i++) {
        float *x = values + i * s->size;
        fds_dataset_sample(i < train->count ? train : s->test,
                           i < train->count ? i : i - train->count, x);
        for (size_t k = 0; k < s->size; k++)
            x[k] /= std[k / plane] > 0 ? std[k / plane] : 1;
    }
    return FDS_OK;
}

void copies_near_free(copies_near *near) {
    fds__free(near->distance);
    fds__free(near->which);
    fds__free(near->reference);
}

fds_status copies_find(const fds_dataset *train, const fds_dataset *test, unsigned threads,
                       const fds_events *events, copies_near *out, fds_error *err) {
    OWNED float *values = NULL;
    search s = {.train = train,
                .test = test,
                .size = fds__shape_size(train->shape),
                .shape = train->shape,
                .is_image = train->is_image,
                .near = out};
    *out = (copies_near){.owned = train->count,
                         .count = train->count + (test ? test->count : 0),
                         .providers = train->providers};
    if (test && !fds__shape_equal(train->shape, test->shape))
        return fds__fail(err, FDS_ERR_SHAPE, "%s and %s have samples of different shapes",
                         train->source, test->source);
    TRY(NEW(values, out->count * s.size, err));
    TRY(NEW(out->distance, out->count * out->providers, err));
    TRY(NEW(out->which, out->count * out->providers, err));
    if (test)
        TRY(NEW(out->reference, out->count, err));
    TRY(scale(&s, values, err));
    s.values = values;
    return fds__pool_run(threads, out->count, find_one, &s, "neighbours", "samples", events, err);
}
