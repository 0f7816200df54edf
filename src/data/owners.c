/* SPDX-License-Identifier: Apache-2.0
 * Who owns which training sample, in a file apart from the data.
 *
 *   CSV   sample,provider       a line per sample: its number (from 0), its id, or the path or name
 *         0,Clinic A            of its picture; then its provider. The first line may be a header:
 *         cat/7.png,Clinic B    it is one if it names no sample.
 *   NPY   an array of integers or texts, one per sample in the order of the data
 *
 * Every training sample must have an owner. Rows of a table that were left out because values are
 * missing may have one: who writes the list need not know which these are. So numbers count all rows,
 * and an array may have an entry for each. */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

/* A name of a sample; base: without the folders before it. */
typedef struct {
    const char *name;
    uint32_t sample;
} entry;

typedef struct {
    const char *path;
    fds_dataset *ds;
    entry *full, *base; /* (count) by name, where samples have names */
    entry *left;        /* (left out) the same */
    const char **owner; /* (count) in the file's bytes; or NULL */
    size_t *line;       /* (count) where that stands */
} owners;

static int by_name(const void *left, const void *right) {
    const entry *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->sample > b->sample) - (a->sample < b->sample);
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static fds_status sort_names(owners *o, fds_error *err) {
    const fds__left_out *left = &o->ds->left_out;
    if (!o->ds->sample_names)
        return FDS_OK;
    TRY(NEW(o->left, left->count, err));
    for (size_t i = 0; i < left->count; i++)
        o->left[i] = (entry){left->names[i], left->rows[i]};
    qsort(o->left, left->count, sizeof *o->left, by_name);
    TRY(NEW(o->full, o->ds->count, err));
    TRY(NEW(o->base, o->ds->count, err));
    for (uint32_t i = 0; i < o->ds->count; i++) {
        o->full[i] = (entry){o->ds->sample_names[i], i};
        o->base[i] = (entry){base_of(o->ds->sample_names[i]), i};
    }
    qsort(o->full, o->ds->count, sizeof *o->full, by_name);
    qsort(o->base, o->ds->count, sizeof *o->base, by_name);
    return FDS_OK;
}

/* The place of the first entry with that name, or count. */
static size_t find_first(const entry *list, size_t count, const char *name) {
    size_t first = 0, end = count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (strcmp(list[middle].name, name) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    return first < count && strcmp(list[first].name, name) == 0 ? first : count;
}

static size_t all_rows(const fds_dataset *ds) { return ds->count + ds->left_out.count; }

/* How many rows before that one were left out; is_sample: it was not. */
static size_t left_out_before(const fds_dataset *ds, size_t row, bool *is_sample) {
    const fds__left_out *left = &ds->left_out;
    size_t first = 0, end = left->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (left->rows[middle] < row)
            first = middle + 1;
        else
            end = middle;
    }
    *is_sample = first == left->count || left->rows[first] != row;
    return first;
}

/* The row of a sample. */
static size_t row_of(const fds_dataset *ds, size_t sample) {
    size_t row = sample;
    for (size_t i = 0; i < ds->left_out.count && ds->left_out.rows[i] <= row; i++)
        row++;
    return row;
}

typedef enum { UNKNOWN, FOUND, AMBIGUOUS, LEFT_OUT } finding;

/* What a key stands for: the whole name of a sample, its name without folders, or its number.
 * sample[2]: the second is another one that an ambiguous name may mean. */
static finding find_sample(const owners *o, const char *key, uint32_t sample[2]) {
    size_t count = o->ds->count, left = o->ds->left_out.count, at;
    bool is_sample;
    if (o->full && (at = find_first(o->full, count, key)) < count) {
        sample[0] = o->full[at].sample;
        return FOUND;
    }
    if (o->left && *key && find_first(o->left, left, key) < left)
        return LEFT_OUT;
    if (o->base && (at = find_first(o->base, count, key)) < count) {
        sample[0] = o->base[at].sample;
        if (at + 1 == count || strcmp(o->base[at + 1].name, key) != 0)
            return FOUND;
        sample[1] = o->base[at + 1].sample;
        return AMBIGUOUS;
    }
    size_t digits = strspn(key, "0123456789");
    unsigned long long number = digits && digits <= 10 ? strtoull(key, NULL, 10) : 0;
    if (!digits || digits > 10 || key[digits] || number >= all_rows(o->ds))
        return UNKNOWN;
    sample[0] = (uint32_t)(number - left_out_before(o->ds, number, &is_sample));
    return is_sample ? FOUND : LEFT_OUT;
}

static fds_status fail_unknown(const owners *o, size_t line, const char *key, fds_error *err) {
    char example[200] = "";
    if (o->ds->sample_names)
        snprintf(example, sizeof example, ", or by name, such as \"%.150s\"",
                 o->ds->sample_names[0]);
    return fds__fail(err, FDS_ERR_FORMAT,
                     "%s: line %zu: \"%.100s\" is no training sample of %s; samples are known by "
                     "number, 0 to %zu%s",
                     o->path, line, key, o->ds->source, all_rows(o->ds) - 1, example);
}

/* Takes a line; is_first: it may be a header. */
static fds_status take_line(owners *o, fds__scanner *scan, bool is_first, fds_error *err) {
    fds__field fields[2];
    size_t line = scan->line;
    uint32_t found[2];
    TRY(fds__scan_pair(scan, "a sample and its provider", fields, err));
    char *key = fds__field_text(&fields[0]), *owner = fds__field_text(&fields[1]);
    const char *fault = *owner ? fds__name_fault(owner) : "no provider after the sample";
    finding is = find_sample(o, key, found);
    if (is == AMBIGUOUS)
        return fds__fail(
            err, FDS_ERR_FORMAT,
            "%s: line %zu: \"%.100s\" is ambiguous: it may be \"%.100s\" or \"%.100s\"; "
            "give the folder as well",
            o->path, line, key, o->ds->sample_names[found[0]], o->ds->sample_names[found[1]]);
    if (is == UNKNOWN)
        return is_first ? FDS_OK : fail_unknown(o, line, key, err);
    if (is == LEFT_OUT)
        return FDS_OK;
    const uint32_t sample = found[0];
    if (fault)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: %s", o->path, line, fault);
    if (o->owner[sample] && strcmp(o->owner[sample], owner) != 0)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu: \"%.100s\" belongs to \"%.100s\", but line %zu gives it to "
                         "\"%.100s\"",
                         o->path, line, key, owner, o->line[sample], o->owner[sample]);
    o->owner[sample] = owner;
    o->line[sample] = line;
    return FDS_OK;
}

static fds_status read_lines(owners *o, const fds__blob *file, fds_error *err) {
    fds__scanner scan;
    TRY(sort_names(o, err));
    TRY(fds__scan_begin(file, 0, &scan, err));
    for (bool is_first = true; fds__scan_line(&scan); is_first = false)
        TRY(take_line(o, &scan, is_first, err));
    return FDS_OK;
}

static fds_status check_owners(const owners *o, fds_error *err) {
    size_t missing = 0, first = 0;
    char number[32];
    for (size_t i = o->ds->count; i-- > 0;)
        if (!o->owner[i]) {
            missing++;
            first = i;
        }
    snprintf(number, sizeof number, "sample %zu", row_of(o->ds, first));
    return missing ? fds__fail(err, FDS_ERR_FORMAT,
                               "%s: %zu of %zu training samples have no provider, the first is %s",
                               o->path, missing, o->ds->count,
                               o->ds->sample_names ? o->ds->sample_names[first] : number)
                   : FDS_OK;
}

static fds_status set_providers(const owners *o, const fds_events *events, fds_error *err) {
    const fds__numbering how = {.by_value = true,
                                .limit = FDS__MAX_PROVIDERS,
                                .what = "provider",
                                .source = o->path,
                                .events = events};
    OWNED uint32_t *ids = NULL;
    fds__names names = {0};
    TRY(NEW(ids, o->ds->count, err));
    fds_status status = fds__names_number(o->owner, o->ds->count, &how, ids, &names, err);
    if (status == FDS_OK)
        status = fds__dataset_set_providers(o->ds, ids, names.items, (uint32_t)names.count, err);
    fds__names_free(&names);
    return status;
}

static fds_status read_array(owners *o, const fds__blob *file, fds__names *texts, fds_error *err) {
    TRY(fds__npy_texts(file, texts, err));
    const bool has_all = texts->count == all_rows(o->ds);
    if (texts->count != o->ds->count && !has_all)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "%s has %zu providers, but %s has %zu training samples", o->path,
                         texts->count, o->ds->source, o->ds->count);
    const fds__left_out *left = &o->ds->left_out;
    for (size_t i = 0, before = 0; i < o->ds->count; i++) {
        while (has_all && before < left->count && left->rows[before] == i + before)
            before++;
        o->owner[i] = texts->items[i + before];
    }
    return FDS_OK;
}

static fds_status read_owners(owners *o, const fds__blob *file, const fds_events *events,
                              fds_error *err) {
    bool is_npy = file->size >= 6 && memcmp(file->data, "\x93NUMPY", 6) == 0;
    fds__names texts = {0};
    TRY(NEW(o->owner, o->ds->count, err));
    TRY(NEW(o->line, o->ds->count, err));
    fds_status status = is_npy ? read_array(o, file, &texts, err) : read_lines(o, file, err);
    if (status == FDS_OK)
        status = check_owners(o, err);
    if (status == FDS_OK)
        status = set_providers(o, events, err);
    fds__names_free(&texts);
    return status;
}

fds_status fds__owners_parse(const fds__blob *file, const fds_events *events, fds_dataset *ds,
                             fds_error *err) {
    if (ds->provider_ids)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s names the providers of its samples itself; leave out --owners",
                         ds->source);
    owners o = {.path = file->path, .ds = ds};
    fds_status status = read_owners(&o, file, events, err);
    fds__free(o.full);
    fds__free(o.left);
    fds__free(o.base);
    fds__free(o.owner);
    fds__free(o.line);
    return status;
}
