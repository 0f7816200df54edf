/* SPDX-License-Identifier: Apache-2.0
 * Samples of several datasets as one, as if a reader had found them in one file in this order. */
#include "data/sheet.h"

#include <string.h>

typedef struct {
    const fds_dataset *const *parts;
    const bool *const *keep;
    size_t count, rows;
} choice;

/* ---- whether they fit ---- */

static fds_status check_features(const fds_dataset *first, const fds_dataset *part,
                                 fds_error *err) {
    const fds_shape a = first->shape, b = part->shape;
    const uint32_t named = MIN(a.channels, b.channels);
    for (uint32_t c = 0; first->feature_names && c < named; c++)
        if (!part->feature_names || strcmp(first->feature_names[c], part->feature_names[c]) != 0)
            return fds__fail(err, FDS_ERR_SHAPE, "%s: feature %u is \"%.60s\", but in %s \"%.60s\"",
                             part->source, c,
                             part->feature_names ? part->feature_names[c] : "without a name",
                             first->source, first->feature_names[c]);
    if (first->feature_names && a.channels != b.channels)
        return fds__fail(err, FDS_ERR_SHAPE, "%s has %u features, but %s has %u", part->source,
                         b.channels, first->source, a.channels);
    if (!fds__shape_equal(a, b))
        return fds__fail(err, FDS_ERR_SHAPE,
                         "%s: samples are %u x %u x %u, but those of %s are %u x %u x %u",
                         part->source, b.channels, b.height, b.width, first->source, a.channels,
                         a.height, a.width);
    if (!first->bytes != !part->bytes)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: samples are %s, but those of %s are %s",
                         part->source, part->bytes ? "bytes" : "floats", first->source,
                         first->bytes ? "bytes" : "floats");
    if (!first->targets != !part->targets)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: samples have %s, but those of %s have %s",
                         part->source, part->targets ? "targets" : "labels", first->source,
                         first->targets ? "targets" : "labels");
    if (!first->provider_ids != !part->provider_ids)
        return fds__fail(err, FDS_ERR_SHAPE, "%s names %s, but %s does%s", part->source,
                         part->provider_ids ? "providers" : "no providers", first->source,
                         part->provider_ids ? " not" : "");
    if (!first->sample_names != !part->sample_names)
        return fds__fail(err, FDS_ERR_SHAPE, "%s names %s, but %s does%s", part->source,
                         part->sample_names ? "its samples" : "no samples", first->source,
                         part->sample_names ? " not" : "");
    return FDS_OK;
}

/* The first part's number of each class of a part; its number of classes: it has none of that name. */
static void map_classes(const fds_dataset *first, const fds_dataset *part, uint16_t *to) {
    for (uint32_t c = 0; c < part->classes; c++) {
        uint32_t label = 0;
        while (label < first->classes &&
               strcmp(first->class_names[label], part->class_names[c]) != 0)
            label++;
        to[c] = (uint16_t)label;
    }
}

/* ---- copying ---- */

static void copy_sample(const fds_dataset *from, size_t i, fds_dataset *to, size_t row) {
    size_t size = to->sample_size;
    if (to->bytes)
        memcpy(to->bytes + row * size, from->bytes + i * size, size);
    else
        memcpy(to->floats + row * size, from->floats + i * size, size * sizeof *to->floats);
    if (to->targets)
        to->targets[row] = from->targets[i];
}

static fds_status copy_part(const choice *c, size_t p, fds_dataset *to, size_t *row,
                            fds_error *err) {
    const fds_dataset *from = c->parts[p];
    OWNED uint16_t *class_of = NULL;
    TRY(NEW(class_of, from->classes, err));
    map_classes(c->parts[0], from, class_of);
    for (size_t i = 0; i < from->count; i++) {
        if (!c->keep[p][i])
            continue;
        uint16_t label = class_of[from->labels[i]];
        if (label == c->parts[0]->classes)
            return fds__fail(err, FDS_ERR_SHAPE,
                             "%s: sample %zu is of class \"%.60s\", which %s does not have: all "
                             "sub-models would get another output; fit such data anew",
                             from->source, i, from->class_names[from->labels[i]],
                             c->parts[0]->source);
        to->labels[*row] = label;
        copy_sample(from, i, to, *row);
        if (to->sample_names && !(to->sample_names[*row] = fds__strdup(from->sample_names[i])))
            return fds__fail_nomem(err, strlen(from->sample_names[i]) + 1);
        ++*row;
    }
    return FDS_OK;
}

/* Folders of pictures are numbered by the bytes of names, all others by value where all are numbers. */
static fds_status number_providers(const choice *c, fds_dataset *to, fds_error *err) {
    const fds_dataset *first = c->parts[0];
    const fds__numbering how = {.by_value = first->preparation || !first->sample_names,
                                .limit = FDS__MAX_PROVIDERS,
                                .what = "provider",
                                .source = first->source};
    OWNED const char **texts = NULL;
    OWNED uint32_t *ids = NULL;
    OWNED bool *has_samples = NULL; /* (providers of the first part) */
    size_t row = 0;
    fds__names names = {0};
    if (!first->provider_ids)
        return FDS_OK;
    TRY(NEW(texts, to->count + first->providers, err));
    TRY(NEW(ids, to->count + first->providers, err));
    TRY(NEW(has_samples, first->providers, err));
    for (size_t p = 0; p < c->count; p++)
        for (size_t i = 0; i < c->parts[p]->count; i++)
            if (c->keep[p][i])
                texts[row++] = fds_dataset_provider_name(c->parts[p], c->parts[p]->provider_ids[i]);
    for (size_t i = 0; i < first->count; i++)
        has_samples[first->provider_ids[i]] = true;
    for (uint32_t i = 0; i < first->providers; i++) /* those of the test part have numbers too */
        if (!has_samples[i])
            texts[row++] = first->provider_names[i];
    fds_status status = fds__names_number(texts, row, &how, ids, &names, err);
    if (status == FDS_OK)
        status = fds__dataset_set_providers(to, ids, names.items, (uint32_t)names.count, err);
    fds__names_free(&names);
    return status;
}

/* Of columns of numbers without missing values, as fds__preparation_learns finds them: the means, which
 * stand for missing values of new rows, are those of the samples. */
static fds_status prepare(const fds_dataset *first, fds_dataset *to, fds_error *err) {
    if (!first->preparation)
        return FDS_OK;
    TRY(fds__preparation_copy(first->preparation, &to->preparation, err));
    for (size_t c = 0; c < to->preparation->count && !fds__preparation_learns(to->preparation);
         c++) {
        double sum = 0;
        for (size_t i = 0; i < to->count; i++)
            sum += (double)to->floats[i * to->sample_size + c];
        to->preparation->columns[c].mean = (float)(sum / (double)to->count);
    }
    return FDS_OK;
}

/* The sources of later parts that have samples in it. */
static fds_status name_sources(const choice *c, fds_dataset *to, fds_error *err) {
    fds__names names = {0};
    size_t row = 0;
    fds_status status = NEW(to->added_first, c->count, err);
    for (size_t p = 0; p < c->count && status == FDS_OK; p++) {
        if (p && memchr(c->keep[p], true, c->parts[p]->count)) {
            to->added_first[names.count] = row;
            status = fds__names_add(&names, c->parts[p]->source, err);
        }
        for (size_t i = 0; i < c->parts[p]->count; i++)
            row += c->keep[p][i];
    }
    if (status == FDS_OK && names.count) {
        status = fds__names_copy(names.items, names.count, &to->added, err);
        to->added_count = status == FDS_OK ? names.count : 0;
    }
    fds__names_free(&names);
    return status;
}

static fds_status fill(const choice *c, fds_dataset *to, fds_error *err) {
    const fds_dataset *first = c->parts[0];
    size_t row = 0;
    to->is_image = first->is_image;
    if (first->targets)
        TRY(NEW(to->targets, to->count, err));
    if (first->sample_names)
        TRY(NEW(to->sample_names, to->count, err));
    for (size_t p = 0; p < c->count; p++)
        TRY(copy_part(c, p, to, &row, err));
    TRY(fds__dataset_set_classes(to, first->class_names, first->classes, err));
    if (first->feature_names)
        TRY(fds__names_copy(first->feature_names, first->shape.channels, &to->feature_names, err));
    TRY(number_providers(c, to, err));
    TRY(name_sources(c, to, err));
    return prepare(first, to, err);
}

fds_status fds__dataset_select(const fds_dataset *const *parts, const bool *const *keep,
                               size_t count, fds_dataset **out, fds_error *err) {
    choice c = {parts, keep, count, 0};
    for (size_t p = 0; p < count; p++) {
        TRY(check_features(parts[0], parts[p], err));
        for (size_t i = 0; i < parts[p]->count; i++)
            c.rows += keep[p][i];
    }
    TRY(fds__dataset_new(parts[0]->source, c.rows, parts[0]->shape, parts[0]->bytes != NULL, out,
                         err));
    fds_status status = fill(&c, *out, err);
    if (status != FDS_OK)
        fds__dataset_drop(out);
    return status;
}
