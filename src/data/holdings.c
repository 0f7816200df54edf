/* SPDX-License-Identifier: Apache-2.0
 * What each provider has: samples, classes, and samples that occur more than once. Samples are equal
 * when their values are, whatever their labels. */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t checksum;
    const uint8_t *values;
    size_t size;
    uint32_t provider;
} holding;

/* Equal values become neighbours, and among them those of one provider. */
static int compare_values(const holding *a, const holding *b) {
    if (a->checksum != b->checksum)
        return a->checksum < b->checksum ? -1 : 1;
    return memcmp(a->values, b->values, a->size);
}

static int by_values_then_provider(const void *left, const void *right) {
    const holding *a = left, *b = right;
    int order = compare_values(a, b);
    return order ? order : (a->provider > b->provider) - (a->provider < b->provider);
}

static void count_copies(const holding *list, size_t count, fds_holding *out) {
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && !compare_values(&list[first], &list[end]);)
            end++;
        bool is_shared = list[first].provider != list[end - 1].provider;
        for (size_t i = first; i < end; i++) {
            out[list[i].provider].shared += is_shared;
            out[list[i].provider].repeated += i > first && list[i - 1].provider == list[i].provider;
        }
    }
}

static fds_status count_classes(const fds_dataset *ds, fds_holding *out, fds_error *err) {
    OWNED bool *has = NULL;
    size_t size;
    if (!fds__mul(ds->providers, ds->classes, &size))
        return fds__fail(err, FDS_ERR_LIMIT, "%u providers times %u classes are too many",
                         ds->providers, ds->classes);
    TRY(NEW(has, size, err));
    for (size_t i = 0; i < ds->count; i++) {
        bool *at = &has[(size_t)ds->provider_ids[i] * ds->classes + ds->labels[i]];
        out[ds->provider_ids[i]].classes += !*at;
        *at = true;
    }
    return FDS_OK;
}

fds_status fds_dataset_holdings(const fds_dataset *ds, fds_holding *out, fds_error *err) {
    OWNED holding *list = NULL;
    if (!ds->provider_ids)
        return fds__fail(err, FDS_ERR_USAGE, "%s names no providers", ds->source);
    TRY(NEW(list, ds->count, err));
    memset(out, 0, ds->providers * sizeof *out);
    TRY(count_classes(ds, out, err));
    size_t size = ds->sample_size * (ds->bytes ? 1 : sizeof(float));
    const uint8_t *values = ds->bytes ? ds->bytes : (const uint8_t *)ds->floats;
    for (size_t i = 0; i < ds->count; i++) {
        list[i] = (holding){fds_checksum(values + i * size, size), values + i * size, size,
                            ds->provider_ids[i]};
        out[ds->provider_ids[i]].samples++;
    }
    qsort(list, ds->count, sizeof *list, by_values_then_provider);
    count_copies(list, ds->count, out);
    return FDS_OK;
}
