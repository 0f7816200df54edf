/* SPDX-License-Identifier: Apache-2.0
 * The order in which an epoch visits its members: a function of (seed, epoch, sample) alone. */
#include "lane/workspace.h"

void fds_inputs_free(fds_inputs *inputs) {
    if (!inputs)
        return;
    fds__free(inputs->values);
    fds__free(inputs->labels);
    fds__free(inputs->ids);
    fds__free(inputs);
}

size_t fds_inputs_count(const fds_inputs *inputs) { return inputs->count; }

/* ---- order ---- */

static bool before(const fds__place *a, const fds__place *b) {
    return a->key != b->key ? a->key < b->key : a->id < b->id;
}

static void sift_down(fds__place *heap, size_t at, size_t count) {
    fds__place moved = heap[at];
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
void lane_order(const fds_inputs *inputs, const uint32_t *members, size_t count, uint64_t seed,
                uint32_t epoch, fds__place *places) {
    for (size_t i = 0; i < count; i++) {
        fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_ORDER, epoch, inputs->ids[members[i]]);
        places[i] = (fds__place){fds_rng_u64(&rng), inputs->ids[members[i]], members[i]};
    }
    for (size_t i = count / 2; i-- > 0;)
        sift_down(places, i, count);
    for (size_t last = count; last-- > 1;) {
        fds__place top = places[0];
        places[0] = places[last];
        places[last] = top;
        sift_down(places, 0, last);
    }
}

fds_status fds_inputs_order(const fds_inputs *inputs, const uint32_t *members, size_t count,
                            uint64_t seed, uint32_t epoch, uint32_t *order, fds_error *err) {
    for (size_t i = 0; i < count; i++)
        if (members[i] >= inputs->count)
            return fds__fail(err, FDS_ERR_USAGE, "member %u: there are only %zu inputs", members[i],
                             inputs->count);
    fds__place *places = fds__alloc(count * sizeof *places);
    if (!places)
        return fds__fail_nomem(err, count * sizeof *places);
    lane_order(inputs, members, count, seed, epoch, places);
    for (size_t i = 0; i < count; i++)
        order[i] = places[i].position;
    fds__free(places);
    return FDS_OK;
}
