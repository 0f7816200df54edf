/* SPDX-License-Identifier: Apache-2.0
 * Normalised inputs, and the order in which an epoch visits them. */
#include "net/net.h"
#include "net/lane.h"

#include <math.h>
#include <string.h>

/* (sample - mean) / std by channel, in double: rounded once. */
static void normalise(float *values, fds_shape shape, const float *mean, const float *std) {
    size_t plane = (size_t)shape.height * shape.width;
    for (uint32_t c = 0; c < shape.channels; c++)
        for (size_t i = 0; i < plane; i++, values++)
            *values = (float)(((double)*values - mean[c]) / std[c]);
}

fds_status fds_inputs_create(const fds_dataset *ds, const uint32_t *index, size_t count,
                             const float *mean, const float *std, fds_inputs **out,
                             fds_error *err) {
    fds_dataset_info info = fds_dataset_get_info(ds);
    size_t size = fds_shape_size(info.shape), bytes;
    for (uint32_t c = 0; c < info.shape.channels; c++)
        if (!isfinite(mean[c]) || !isfinite(std[c]) || std[c] <= 0)
            return fds_fail(err, FDS_USAGE, "channel %u: cannot normalise by mean %g, std %g", c,
                            (double)mean[c], (double)std[c]);
    for (size_t i = 0; i < count; i++)
        if ((index ? index[i] : i) >= info.count)
            return fds_fail(err, FDS_USAGE, "sample %zu: there are only %zu",
                            index ? (size_t)index[i] : i, info.count);
    if (!fds_mul(count, size * sizeof(float), &bytes))
        return fds_fail(err, FDS_LIMIT, "%zu samples of %zu numbers are too many", count, size);
    fds_inputs *in = fds_alloc_zero(1, sizeof *in);
    if (!in)
        return fds_fail_nomem(err, sizeof *in);
    *in = (fds_inputs){.count = count, .size = size, .shape = info.shape, .classes = info.classes};
    in->values = fds_alloc(bytes);
    in->labels = fds_alloc(count * sizeof *in->labels);
    in->ids = fds_alloc(count * sizeof *in->ids);
    if (!in->values || !in->labels || !in->ids) {
        fds_inputs_free(in);
        return fds_fail_nomem(err, bytes);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t id = index ? index[i] : (uint32_t)i;
        in->ids[i] = id;
        in->labels[i] = info.labels[id];
        fds_dataset_sample(ds, id, in->values + i * size);
        normalise(in->values + i * size, info.shape, mean, std);
    }
    *out = in;
    return FDS_OK;
}

void fds_inputs_free(fds_inputs *inputs) {
    if (!inputs)
        return;
    fds_free(inputs->values);
    fds_free(inputs->labels);
    fds_free(inputs->ids);
    fds_free(inputs);
}

size_t fds_inputs_count(const fds_inputs *inputs) { return inputs->count; }

/* ---- order ---- */

static bool before(const fds_place *a, const fds_place *b) {
    return a->key != b->key ? a->key < b->key : a->id < b->id;
}

static void sift_down(fds_place *heap, size_t at, size_t count) {
    fds_place moved = heap[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(&heap[child], &heap[child + 1]))
            child++;
        if (!before(&moved, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Heap sort: in place, and never slow. */
void fds_order(const fds_inputs *inputs, const uint32_t *members, size_t count, uint64_t seed,
               uint32_t epoch, fds_place *places) {
    for (size_t i = 0; i < count; i++) {
        fds_rng rng = fds_rng_make(seed, FDS_PURPOSE_ORDER, epoch, inputs->ids[members[i]]);
        places[i] = (fds_place){fds_rng_u64(&rng), inputs->ids[members[i]], members[i]};
    }
    for (size_t i = count / 2; i-- > 0;)
        sift_down(places, i, count);
    for (size_t last = count; last-- > 1;) {
        fds_place top = places[0];
        places[0] = places[last];
        places[last] = top;
        sift_down(places, 0, last);
    }
}

fds_status fds_inputs_order(const fds_inputs *inputs, const uint32_t *members, size_t count,
                            uint64_t seed, uint32_t epoch, uint32_t *order, fds_error *err) {
    for (size_t i = 0; i < count; i++)
        if (members[i] >= inputs->count)
            return fds_fail(err, FDS_USAGE, "member %u: there are only %zu inputs", members[i],
                            inputs->count);
    fds_place *places = fds_alloc(count * sizeof *places);
    if (!places)
        return fds_fail_nomem(err, count * sizeof *places);
    fds_order(inputs, members, count, seed, epoch, places);
    for (size_t i = 0; i < count; i++)
        order[i] = places[i].position;
    fds_free(places);
    return FDS_OK;
}
