/* SPDX-License-Identifier: Apache-2.0
 * The dataset: creation, the checks that all sources share, access, statistics. */
#include "data/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Squared errors stay far from infinity. */
static const double MOST_TARGET = 1e30;

/* ---- creating and freeing ---- */

static fds_status check_shape(const char *source, size_t count, fds_shape s, fds_error *err) {
    bool fits = MAX(MAX(s.channels, s.height), s.width) <= FDS__MAX_SIDE;
    if (!s.channels || !s.height || !s.width)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: samples of %u x %u x %u have no values", source,
                         s.channels, s.height, s.width);
    if (!fits || fds__shape_size(s) > FDS__MAX_SAMPLE)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "%s: samples of %u x %u x %u, at most %u per side and %zu values", source,
                         s.channels, s.height, s.width, FDS__MAX_SIDE, FDS__MAX_SAMPLE);
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
    ds->sample_size = fds__shape_size(shape);
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

void *fds__blob_keep(fds__blob *file, size_t start, void *instead) {
    uint8_t *data = file->data;
    if (!file->is_given)
        return NULL;
    memmove(data, data + start, file->size - start);
    fds__free(instead);
    file->data = NULL;
    return data;
}

void fds_dataset_free(fds_dataset *ds) {
    if (!ds)
        return;
    fds__free(ds->source);
    fds__free(ds->bytes);
    fds__free(ds->floats);
    fds__free(ds->labels);
    fds__free(ds->targets);
    fds__free(ds->provider_ids);
    fds__dir_list_free(ds->class_names, ds->class_names ? ds->classes : 0);
    fds__dir_list_free(ds->provider_names, ds->provider_names ? ds->providers : 0);
    fds__free(ds->member_ids);
    fds__dir_list_free(ds->member_names, ds->members);
    fds__dir_list_free(ds->feature_names, ds->feature_names ? ds->shape.channels : 0);
    fds__dir_list_free(ds->sample_names, ds->sample_names ? ds->count : 0);
    fds__free(ds->sample_lines);
    fds__preparation_free(ds->preparation);
    fds__dir_list_free(ds->added, ds->added_count);
    fds__free(ds->added_first);
    fds__free(ds->left_out.rows);
    fds__dir_list_free(ds->left_out.names, ds->left_out.names ? ds->left_out.count : 0);
    fds__free(ds);
}

void fds__dataset_drop(fds_dataset **ds) {
    fds_dataset_free(*ds);
    *ds = NULL;
}

/* ---- checks that all sources share ---- */

fds_status fds__dataset_check_pair(const fds_dataset *train, const fds_dataset *test,
                                   fds_error *err) {
    fds_shape a = train->shape, b = test->shape;
    if (!fds__shape_equal(a, b))
        return fds__fail(
            err, FDS_ERR_SHAPE, "%s: training samples are %u x %u x %u, test samples %u x %u x %u",
            train->source, a.channels, a.height, a.width, b.channels, b.height, b.width);
    if (!train->bytes != !test->bytes)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: training samples are %s, test samples %s",
                         train->source, train->bytes ? "bytes" : "floats",
                         test->bytes ? "bytes" : "floats");
    if (!train->targets != !test->targets)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: %s samples have targets, %s samples have labels",
                         train->source, train->targets ? "training" : "test",
                         train->targets ? "test" : "training");
    return FDS_OK;
}

static uint32_t greatest_label(const fds_dataset *ds) {
    uint32_t greatest = 0;
    for (size_t i = 0; ds && i < ds->count; i++)
        greatest = MAX(greatest, ds->labels[i]);
    return greatest;
}

fds_status fds__dataset_set_classes(fds_dataset *ds, char *const *names, size_t count,
                                    fds_error *err) {
    TRY(fds__names_copy(names, count, &ds->class_names, err));
    ds->classes = (uint32_t)count;
    return FDS_OK;
}

fds_status fds__dataset_set_providers(fds_dataset *ds, const uint32_t *ids, char *const *names,
                                      uint32_t count, fds_error *err) {
    ds->provider_ids = fds__alloc(ds->count * sizeof *ids);
    if (!ds->provider_ids)
        return fds__fail_nomem(err, ds->count * sizeof *ids);
    memcpy(ds->provider_ids, ids, ds->count * sizeof *ids);
    TRY(fds__names_copy(names, count, &ds->provider_names, err));
    ds->providers = count;
    return FDS_OK;
}

/* Gives ds the names or, where there are none, the numbers 0 .. classes-1 as names. */
static fds_status name_classes(fds_dataset *ds, char *const *names, size_t count, uint32_t classes,
                               fds_error *err) {
    for (size_t i = 0; i < count; i++) {
        const char *fault = fds__name_fault(names[i]);
        if (fault)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: class %zu: %s", ds->source, i, fault);
    }
    if (count)
        return fds__dataset_set_classes(ds, names, count, err);
    fds__names numbers = {0};
    fds_status status = FDS_OK;
    for (uint32_t i = 0; i < classes && status == FDS_OK; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        status = fds__names_add(&numbers, text, err);
    }
    if (status == FDS_OK)
        status = fds__dataset_set_classes(ds, numbers.items, classes, err);
    fds__names_free(&numbers);
    return status;
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

static void copy_values(fds_dataset *ds, const uint8_t *bytes, const float *floats,
                        const uint16_t *labels) {
    size_t values = ds->count * ds->sample_size;
    if (bytes)
        memcpy(ds->bytes, bytes, values);
    else
        memcpy(ds->floats, floats, values * sizeof *floats);
    memcpy(ds->labels, labels, ds->count * sizeof *labels);
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
            TRY(name_classes(parts[i], names ? names->items : NULL, names ? names->count : 0,
                             classes, err));
        TRY(check_values(parts[i], err));
    }
    return FDS_OK;
}

fds_status fds_dataset_create(const fds_arrays *a, fds_dataset **out, fds_error *err) {
    if (!a->labels || !a->bytes == !a->floats)
        return fds__fail(err, FDS_ERR_USAGE, "a dataset needs labels and either bytes or floats");
    if (a->classes == 0 || a->classes > FDS__MAX_CLASSES)
        return fds__fail(err, FDS_ERR_USAGE, "%u classes: must be 1 to %u", a->classes,
                         FDS__MAX_CLASSES);
    if (a->providers && (!a->provider_names || !a->provider_count))
        return fds__fail(err, FDS_ERR_USAGE, "providers need their number and their names");
    for (size_t i = 0; a->providers && i < a->count; i++)
        if (a->providers[i] >= a->provider_count)
            return fds__fail(err, FDS_ERR_USAGE, "sample %zu: provider %u, there are %u", i,
                             a->providers[i], a->provider_count);
    TRY(fds__dataset_new("memory", a->count, a->shape, a->bytes != NULL, out, err));
    fds_dataset *ds = *out;
    copy_values(ds, a->bytes, a->floats, a->labels);
    fds_status status = name_classes(ds, (char *const *)(uintptr_t)a->class_names,
                                     a->class_names ? a->classes : 0, a->classes, err);
    if (status == FDS_OK)
        status = check_values(ds, err);
    if (status == FDS_OK && a->providers)
        status = fds__dataset_set_providers(
            ds, a->providers, (char *const *)(uintptr_t)a->provider_names, a->provider_count, err);
    if (status != FDS_OK)
        fds__dataset_drop(out);
    return status;
}

fds_status fds_dataset_name_samples(fds_dataset *ds, const char *const *names, fds_error *err) {
    char **copy;
    for (size_t i = 0; i < ds->count; i++) {
        const char *fault = fds__name_fault(names[i]);
        if (fault)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: name of sample %zu (from 0): %s", ds->source,
                             i, fault);
    }
    TRY(fds__names_copy((char *const *)(uintptr_t)names, ds->count, &copy, err));
    fds__dir_list_free(ds->sample_names, ds->sample_names ? ds->count : 0);
    ds->sample_names = copy;
    return FDS_OK;
}

fds_status fds__dataset_create(size_t count, fds_shape shape, const uint8_t *bytes,
                               const float *floats, const uint16_t *labels, uint32_t classes,
                               const char *const *class_names, fds_dataset **out, fds_error *err) {
    const fds_arrays arrays = {.count = count,
                               .shape = shape,
                               .bytes = bytes,
                               .floats = floats,
                               .labels = labels,
                               .classes = classes,
                               .class_names = class_names};
    return fds_dataset_create(&arrays, out, err);
}

fds_status fds__dataset_relabel(const fds_dataset *ds, const uint16_t *labels, fds_dataset **out,
                                fds_error *err) {
    TRY(fds__dataset_new(ds->source, ds->count, ds->shape, ds->bytes != NULL, out, err));
    fds_dataset *copy = *out;
    copy_values(copy, ds->bytes, ds->floats, labels);
    copy->is_image = ds->is_image;
    fds_status status = fds__dataset_set_classes(copy, ds->class_names, ds->classes, err);
    if (status == FDS_OK && ds->feature_names)
        status = fds__names_copy(ds->feature_names, ds->shape.channels, &copy->feature_names, err);
    if (status == FDS_OK && ds->sample_names)
        status = fds__names_copy(ds->sample_names, ds->count, &copy->sample_names, err);
    if (status == FDS_OK && ds->provider_ids)
        status = fds__dataset_set_providers(copy, ds->provider_ids, ds->provider_names,
                                            ds->providers, err);
    if (status == FDS_OK)
        status = check_values(copy, err);
    if (status != FDS_OK)
        fds__dataset_drop(out);
    return status;
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

const char *fds_dataset_source(const fds_dataset *ds) { return ds->source; }
size_t fds_dataset_count(const fds_dataset *ds) { return ds->count; }
fds_shape fds_dataset_shape(const fds_dataset *ds) { return ds->shape; }
bool fds_dataset_is_image(const fds_dataset *ds) { return ds->is_image; }
bool fds_dataset_is_bytes(const fds_dataset *ds) { return ds->bytes != NULL; }
uint32_t fds_dataset_classes(const fds_dataset *ds) { return ds->classes; }
uint32_t fds_dataset_providers(const fds_dataset *ds) { return ds->providers; }

uint32_t fds_dataset_label(const fds_dataset *ds, size_t i) {
    return i < ds->count ? ds->labels[i] : 0;
}

uint32_t fds_dataset_provider(const fds_dataset *ds, size_t i) {
    return i < ds->count && ds->provider_ids ? ds->provider_ids[i] : 0;
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

const char *fds_dataset_sample_name(const fds_dataset *ds, size_t i) {
    return ds->sample_names && i < ds->count ? ds->sample_names[i] : NULL;
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

bool fds__samples_has(const uint32_t *index, size_t count, uint32_t sample) {
    return count && bsearch(&sample, index, count, sizeof *index, by_number);
}

/* ---- targets ---- */

fds_status fds_dataset_set_targets(fds_dataset *ds, const double *targets, fds_error *err) {
    static const char *const names[] = {"target"};
    for (size_t i = 0; i < ds->count; i++)
        if (!isfinite(targets[i]) || fabs(targets[i]) > MOST_TARGET)
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: sample %zu (from 0): the target %g is not a finite number of at "
                             "most %g",
                             ds->source, i, targets[i], MOST_TARGET);
    double *copy = fds__alloc_zero(ds->count, sizeof *copy);
    if (!copy)
        return fds__fail_nomem(err, ds->count * sizeof *copy);
    memcpy(copy, targets, ds->count * sizeof *copy);
    memset(ds->labels, 0, ds->count * sizeof *ds->labels);
    fds__free(ds->targets);
    ds->targets = copy;
    fds__dir_list_free(ds->class_names, ds->class_names ? ds->classes : 0);
    ds->class_names = NULL;
    return fds__dataset_set_classes(ds, (char *const *)(uintptr_t)names, 1, err);
}

bool fds_dataset_is_regression(const fds_dataset *ds) { return ds->targets != NULL; }

double fds_dataset_target(const fds_dataset *ds, size_t i) {
    return ds->targets && i < ds->count ? ds->targets[i] : (double)NAN;
}

void fds__dataset_target_stats(const fds_dataset *ds, const uint32_t *index, size_t count,
                               double *mean, double *std) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        sum += ds->targets[index ? index[i] : i];
    *mean = sum / (double)count;
    for (size_t i = 0; i < count; i++) {
        double away = ds->targets[index ? index[i] : i] - *mean;
        squares += away * away;
    }
    *std = sqrt(squares / (double)count);
    if (!(*std > 0))
        *std = 1;
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
