/* SPDX-License-Identifier: Apache-2.0
 * The dataset: creation, the checks that all sources share, access, statistics. */
#include "data/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- creating and freeing ---- */

static fds_status check_shape(const char *source, size_t count, fds_shape shape, fds_error *err) {
    uint32_t sides[3] = {shape.channels, shape.height, shape.width};
    for (int i = 0; i < 3; i++) {
        if (sides[i] == 0)
            return fds__fail(err, FDS_ERR_SHAPE, "%s: samples of %u x %u x %u have no values",
                             source, sides[0], sides[1], sides[2]);
        if (sides[i] > FDS__MAX_SIDE)
            return fds__fail(err, FDS_ERR_LIMIT, "%s: samples of %u x %u x %u, at most %u per side",
                             source, sides[0], sides[1], sides[2], FDS__MAX_SIDE);
    }
    if ((uint64_t)sides[0] * sides[1] * sides[2] > FDS__MAX_SAMPLE)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: samples of %u x %u x %u, at most %zu values",
                         source, sides[0], sides[1], sides[2], FDS__MAX_SAMPLE);
    if (count == 0)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: no samples", source);
    if (count > UINT32_MAX)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: %zu samples, at most %u are allowed", source,
                         count, UINT32_MAX);
    return FDS_OK;
}

fds_status fds__dataset_new(const char *source, size_t count, fds_shape shape, bool is_bytes,
                            fds_dataset **out, fds_error *err) {
    TRY(check_shape(source, count, shape, err));
    fds_dataset *ds = fds__alloc_zero(1, sizeof *ds);
    if (!ds)
        return fds__fail_nomem(err, sizeof *ds);
    ds->count = count;
    ds->shape = shape;
    ds->sample_size = (size_t)shape.channels * shape.height * shape.width;
    ds->is_image = shape.height > 1 || shape.width > 1;
    ds->source = fds__strdup(source);
    ds->labels = fds__alloc_zero(count, sizeof *ds->labels);
    size_t values = count * ds->sample_size; /* < 2^32 * 2^28: no overflow */
    if (is_bytes)
        ds->bytes = fds__alloc_zero(values, 1);
    else
        ds->floats = fds__alloc_zero(values, sizeof(float));
    if (!ds->source || !ds->labels || (!ds->bytes && !ds->floats)) {
        fds_dataset_free(ds);
        return fds__fail_nomem(err, values * (is_bytes ? 1 : sizeof(float)));
    }
    *out = ds;
    return FDS_OK;
}

void fds_dataset_free(fds_dataset *ds) {
    if (!ds)
        return;
    fds__free(ds->source);
    fds__free(ds->bytes);
    fds__free(ds->floats);
    fds__free(ds->labels);
    fds__free(ds->provider_ids);
    fds__dir_list_free(ds->class_names, ds->class_names ? ds->classes : 0);
    fds__dir_list_free(ds->provider_names, ds->provider_names ? ds->providers : 0);
    fds__dir_list_free(ds->feature_names, ds->feature_names ? ds->shape.channels : 0);
    fds__free(ds);
}

/* ---- checks that all sources share ---- */

fds_status fds__dataset_check_pair(const fds_dataset *train, const fds_dataset *test,
                                   fds_error *err) {
    fds_shape a = train->shape, b = test->shape;
    if (a.channels != b.channels || a.height != b.height || a.width != b.width)
        return fds__fail(
            err, FDS_ERR_SHAPE, "%s: training samples are %u x %u x %u, test samples %u x %u x %u",
            train->source, a.channels, a.height, a.width, b.channels, b.height, b.width);
    if (!train->bytes != !test->bytes)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: training samples are %s, test samples %s",
                         train->source, train->bytes ? "bytes" : "floats",
                         test->bytes ? "bytes" : "floats");
    return FDS_OK;
}

static uint32_t greatest_label(const fds_dataset *ds) {
    uint32_t greatest = 0;
    for (size_t i = 0; ds && i < ds->count; i++)
        greatest = MAX(greatest, ds->labels[i]);
    return greatest;
}

/* Gives ds the names, or the numbers 0 .. classes-1 as names. */
static fds_status name_classes(fds_dataset *ds, const fds__names *names, uint32_t classes,
                               fds_error *err) {
    if (names && names->count) {
        for (size_t i = 0; i < names->count; i++) {
            const char *fault = fds__name_fault(names->items[i]);
            if (fault)
                return fds__fail(err, FDS_ERR_FORMAT, "%s: class %zu: %s", ds->source, i, fault);
        }
        TRY(fds__names_copy(names, &ds->class_names, err));
        ds->classes = (uint32_t)names->count;
        return FDS_OK;
    }
    char **numbers = fds__alloc_zero(classes, sizeof *numbers);
    if (!numbers)
        return fds__fail_nomem(err, classes * sizeof *numbers);
    for (uint32_t i = 0; i < classes; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        numbers[i] = fds__strdup(text);
        if (!numbers[i]) {
            fds__dir_list_free(numbers, i);
            return fds__fail_nomem(err, sizeof text);
        }
    }
    ds->class_names = numbers;
    ds->classes = classes;
    return FDS_OK;
}

static fds_status check_values(const fds_dataset *ds, fds_error *err) {
    for (size_t i = 0; i < ds->count; i++)
        if (ds->labels[i] >= ds->classes)
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: sample %zu (from 0): label %u, but there are %u classes",
                             ds->source, i, ds->labels[i], ds->classes);
    size_t values = ds->floats ? ds->count * ds->sample_size : 0;
    for (size_t i = 0; i < values; i++)
        if (!isfinite(ds->floats[i]))
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: sample %zu, value %zu (from 0): %s is not a finite number",
                             ds->source, i / ds->sample_size, i % ds->sample_size,
                             isnan(ds->floats[i]) ? "NaN" : "infinity");
    return FDS_OK;
}

fds_status fds__dataset_finish(fds_dataset *train, fds_dataset *test, const fds__names *names,
                               fds_error *err) {
    assert(train && !train->bytes != !train->floats);
    fds_dataset *parts[2] = {train, test};
    uint32_t classes = MAX(greatest_label(train), greatest_label(test)) + 1;
    classes = MAX(classes, train->classes);
    if (test)
        TRY(fds__dataset_check_pair(train, test, err));
    if (classes > FDS__MAX_CLASSES)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: label %u, at most %u are allowed", train->source,
                         classes - 1, FDS__MAX_CLASSES - 1);
    for (int i = 0; i < 2 && parts[i]; i++) {
        if (!parts[i]->class_names)
            TRY(name_classes(parts[i], names, classes, err));
        TRY(check_values(parts[i], err));
    }
    return FDS_OK;
}

fds_status fds__dataset_create(size_t count, fds_shape shape, const uint8_t *bytes,
                               const float *floats, const uint16_t *labels, uint32_t classes,
                               const char *const *class_names, fds_dataset **out, fds_error *err) {
    if (!labels || !bytes == !floats)
        return fds__fail(err, FDS_ERR_USAGE, "a dataset needs labels and either bytes or floats");
    if (classes == 0 || classes > FDS__MAX_CLASSES)
        return fds__fail(err, FDS_ERR_USAGE, "%u classes: must be 1 to %u", classes,
                         FDS__MAX_CLASSES);
    fds_dataset *ds;
    TRY(fds__dataset_new("memory", count, shape, bytes != NULL, &ds, err));
    if (bytes)
        memcpy(ds->bytes, bytes, count * ds->sample_size);
    else
        memcpy(ds->floats, floats, count * ds->sample_size * sizeof *floats);
    memcpy(ds->labels, labels, count * sizeof *labels);
    fds__names names = {(char **)class_names, class_names ? classes : 0};
    fds_status status = name_classes(ds, &names, classes, err);
    if (status == FDS_OK)
        status = check_values(ds, err);
    if (status != FDS_OK) {
        fds_dataset_free(ds);
        return status;
    }
    *out = ds;
    return FDS_OK;
}

/* Copies providers and names; values and labels are done. */
static fds_status copy_names(const fds_dataset *ds, fds_dataset *copy, fds_error *err) {
    const fds__names classes = {ds->class_names, ds->classes};
    const fds__names providers = {ds->provider_names, ds->providers};
    const fds__names features = {ds->feature_names, ds->shape.channels};
    TRY(name_classes(copy, &classes, ds->classes, err));
    if (features.items)
        TRY(fds__names_copy(&features, &copy->feature_names, err));
    if (!ds->provider_ids)
        return FDS_OK;
    copy->provider_ids = fds__alloc_zero(ds->count, sizeof *copy->provider_ids);
    if (!copy->provider_ids)
        return fds__fail_nomem(err, ds->count * sizeof *copy->provider_ids);
    memcpy(copy->provider_ids, ds->provider_ids, ds->count * sizeof *copy->provider_ids);
    TRY(fds__names_copy(&providers, &copy->provider_names, err));
    copy->providers = ds->providers;
    return FDS_OK;
}

fds_status fds__dataset_relabel(const fds_dataset *ds, const uint16_t *labels, fds_dataset **out,
                                fds_error *err) {
    fds_dataset *copy;
    TRY(fds__dataset_new(ds->source, ds->count, ds->shape, ds->bytes != NULL, &copy, err));
    size_t values = ds->count * ds->sample_size;
    if (ds->bytes)
        memcpy(copy->bytes, ds->bytes, values);
    else
        memcpy(copy->floats, ds->floats, values * sizeof *copy->floats);
    memcpy(copy->labels, labels, ds->count * sizeof *labels);
    copy->is_image = ds->is_image;
    fds_status status = copy_names(ds, copy, err);
    if (status == FDS_OK)
        status = check_values(copy, err);
    if (status != FDS_OK) {
        fds_dataset_free(copy);
        return status;
    }
    *out = copy;
    return FDS_OK;
}

/* ---- access ---- */

fds__dataset_info fds__dataset_get_info(const fds_dataset *ds) {
    return (fds__dataset_info){.source = ds->source,
                               .count = ds->count,
                               .shape = ds->shape,
                               .is_bytes = ds->bytes != NULL,
                               .is_image = ds->is_image,
                               .classes = ds->classes,
                               .providers = ds->providers,
                               .labels = ds->labels,
                               .provider_ids = ds->provider_ids};
}

const char *fds_dataset_class_name(const fds_dataset *ds, uint32_t label) {
    return label < ds->classes ? ds->class_names[label] : "?";
}

const char *fds_dataset_provider_name(const fds_dataset *ds, uint32_t provider) {
    return provider < ds->providers ? ds->provider_names[provider] : "?";
}

const char *fds_dataset_feature_name(const fds_dataset *ds, size_t feature) {
    return ds->feature_names && feature < ds->shape.channels ? ds->feature_names[feature] : NULL;
}

void fds_dataset_sample(const fds_dataset *ds, size_t i, float *out) {
    size_t size = ds->sample_size;
    assert(i < ds->count);
    if (ds->floats)
        memcpy(out, ds->floats + i * size, size * sizeof *out);
    else
        for (size_t k = 0; k < size; k++)
            out[k] = (float)ds->bytes[i * size + k] / 255.0f;
}

fds_status fds__samples_check(const fds_dataset *ds, const uint32_t *index, size_t count,
                              fds_error *err) {
    if (count == 0)
        return fds__fail(err, FDS_ERR_USAGE, "%s: no samples chosen", ds->source);
    if (!index && count > ds->count)
        return fds__fail(err, FDS_ERR_USAGE, "%s: %zu samples requested, the data has %zu",
                         ds->source, count, ds->count);
    for (size_t i = 0; index && i < count; i++)
        if (index[i] >= ds->count)
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s: sample %u requested, the data has %zu (from 0)", ds->source,
                             index[i], ds->count);
    return FDS_OK;
}

static int by_number(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

void fds__samples_sort(uint32_t *index, size_t count) {
    qsort(index, count, sizeof *index, by_number);
}

/* ---- statistics ---- */

typedef struct {
    double min, max, sum, mean, squares; /* squares: of the differences from the mean */
} channel_sums;

/* Adds one channel of one sample in double, always in the same order: the same samples give the
 * same bits. Only the second pass knows the mean. */
static void add_channel(const fds_dataset *ds, size_t start, size_t count, int pass,
                        channel_sums *s) {
    for (size_t k = start; k < start + count; k++) {
        double value = (double)(ds->bytes ? (float)ds->bytes[k] / 255.0f : ds->floats[k]);
        if (pass == 1) {
            s->squares += (value - s->mean) * (value - s->mean);
            continue;
        }
        s->sum += value;
        s->min = MIN(s->min, value);
        s->max = MAX(s->max, value);
    }
}

static void add_samples(const fds_dataset *ds, const uint32_t *index, size_t count, int pass,
                        channel_sums *sums) {
    size_t plane = (size_t)ds->shape.height * ds->shape.width;
    for (size_t i = 0; i < count; i++) {
        size_t start = (index ? index[i] : i) * ds->sample_size;
        for (size_t c = 0; c < ds->shape.channels; c++)
            add_channel(ds, start + c * plane, plane, pass, &sums[c]);
    }
}

fds_status fds_dataset_stats(const fds_dataset *ds, const uint32_t *index, size_t count, float *min,
                             float *max, float *mean, float *std, fds_error *err) {
    TRY(fds__samples_check(ds, index, count, err));
    size_t channels = ds->shape.channels;
    double values = (double)count * ds->shape.height * ds->shape.width;
    channel_sums *sums = fds__alloc_zero(channels, sizeof *sums);
    if (!sums)
        return fds__fail_nomem(err, channels * sizeof *sums);
    for (size_t c = 0; c < channels; c++)
        sums[c] = (channel_sums){.min = INFINITY, .max = -INFINITY};
    add_samples(ds, index, count, 0, sums);
    for (size_t c = 0; c < channels; c++)
        sums[c].mean = sums[c].sum / values;
    add_samples(ds, index, count, 1, sums);
    for (size_t c = 0; c < channels; c++) {
        if (min)
            min[c] = (float)sums[c].min;
        if (max)
            max[c] = (float)sums[c].max;
        if (mean)
            mean[c] = (float)sums[c].mean;
        if (std)
            std[c] = (float)sqrt(sums[c].squares / values);
    }
    fds__free(sums);
    return FDS_OK;
}
