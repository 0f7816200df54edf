/* SPDX-License-Identifier: Apache-2.0
 * What an audit says of each sample and provider, in words and as JSON. */
#include "eval/audit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CONFUSIONS = 20 };

/* ---- equal values with different labels ---- */

typedef struct {
    uint64_t checksum;
    const uint8_t *values;
    size_t size;
    uint32_t sample;
} entry;

static int compare_values(const entry *a, const entry *b) {
    if (a->checksum != b->checksum)
        return a->checksum < b->checksum ? -1 : 1;
    return memcmp(a->values, b->values, a->size);
}

static int by_values_then_sample(const void *left, const void *right) {
    const entry *a = left, *b = right;
    int order = compare_values(a, b);
    return order ? order : (a->sample > b->sample) - (a->sample < b->sample);
}

/* Of equal values, the first sample with another label; only two of them are needed for all. */
static void pair_twins(fds_audit *a, const entry *list, size_t count) {
    const uint16_t *labels = a->ds->labels;
    size_t other = 1;
    while (other < count && labels[list[other].sample] == labels[list[0].sample])
        other++;
    for (size_t i = 0; i < count && other < count; i++) {
        bool is_first = labels[list[i].sample] == labels[list[0].sample];
        a->twin[list[i].sample] = list[is_first ? other : 0].sample;
    }
}

fds_status audit_find_twins(fds_audit *a, fds_error *err) {
    const fds_dataset *ds = a->ds;
    size_t size = ds->sample_size * (ds->bytes ? 1 : sizeof(float));
    const uint8_t *values = ds->bytes ? ds->bytes : (const uint8_t *)ds->floats;
    OWNED entry *list = NULL;
    TRY(NEW(list, a->count, err));
    for (uint32_t i = 0; i < a->count; i++) {
        const uint8_t *own = values + i * size;
        list[i] = (entry){fds_checksum(own, size), own, size, i};
        a->twin[i] = i;
    }
    qsort(list, a->count, sizeof *list, by_values_then_sample);
    for (size_t first = 0, end; first < a->count; first = end) {
        for (end = first + 1; end < a->count && !compare_values(&list[first], &list[end]);)
            end++;
        pair_twins(a, list + first, end - first);
    }
    return FDS_OK;
}

/* ---- rows ---- */

/* "line 17", "sample 3", or its id. */
static void name_sample(const fds_audit *a, size_t sample, char *out, size_t size) {
    const fds_dataset *ds = a->ds;
    if (ds->sample_names)
        snprintf(out, size, "%.60s", ds->sample_names[sample]);
    else if (ds->sample_lines)
        snprintf(out, size, "line %u", ds->sample_lines[sample]);
    else
        snprintf(out, size, "sample %zu", sample);
}

static void explain(const fds_audit *a, size_t sample, char *out, size_t size) {
    const char *label = fds_dataset_class_name(a->ds, a->ds->labels[sample]);
    const char *said = fds_dataset_class_name(a->ds, a->predicted[sample]);
    bool is_suspect = a->values[sample] < 0, agrees = a->predicted[sample] == a->ds->labels[sample];
    long votes = lround(a->probability[sample] * a->neighbours);
    long own = lround(a->own_probability[sample] * a->neighbours);
    int used = snprintf(out, size, "%ld of the %u nearest samples have label %.40s", votes,
                        a->neighbours, said);
    char *at = out + used;
    size -= (size_t)used;
    if (agrees && is_suspect)
        snprintf(at, size, " too, but the samples that it is near to have others");
    else if (agrees)
        snprintf(at, size, " too");
    else if (own)
        snprintf(at, size, ", %ld ha%s %.40s%s", own, own == 1 ? "s" : "ve", label,
                 is_suspect ? "" : "; it helps others of its label");
    else
        snprintf(at, size, ", none has %.40s%s", label,
                 is_suspect ? "" : "; it helps others of its label");
    if (a->twin[sample] != sample) {
        char name[80];
        name_sample(a, a->twin[sample], name, sizeof name);
        used = (int)strlen(at);
        snprintf(at + used, size - (size_t)used, "; %s has the same values and label %.40s", name,
                 fds_dataset_class_name(a->ds, a->ds->labels[a->twin[sample]]));
    }
}

size_t fds_audit_count(const fds_audit *a) { return a->count; }
size_t fds_audit_suspects(const fds_audit *a) { return a->suspects; }

bool fds_audit_row_at(const fds_audit *a, size_t rank, fds_audit_row *out) {
    if (rank >= a->count)
        return false;
    const fds_dataset *ds = a->ds;
    size_t i = a->order[rank];
    *out = (fds_audit_row){
        .sample = i,
        .line = ds->sample_lines ? ds->sample_lines[i] : 0,
        .id = ds->sample_names ? ds->sample_names[i] : NULL,
        .provider = ds->provider_ids ? fds_dataset_provider_name(ds, ds->provider_ids[i]) : NULL,
        .label = fds_dataset_class_name(ds, ds->labels[i]),
        .predicted = fds_dataset_class_name(ds, a->predicted[i]),
        .probability = a->probability[i],
        .label_probability = a->own_probability[i],
        .value = a->values[i],
        .standard_error = a->errors[i],
        .is_suspect = a->values[i] < 0,
        .twin = a->twin[i],
    };
    explain(a, i, out->reason, sizeof out->reason);
    return true;
}

fds_status audit_rank_providers(const fds_audit *a, size_t *order, fds_error *err) {
    OWNED double *means = NULL;
    TRY(NEW(means, a->ds->providers, err));
    for (uint32_t p = 0; p < a->ds->providers; p++) /* the test part may lack some providers */
        means[p] = -a->providers[p].value / (double)MAX(a->providers[p].samples, 1);
    return fds__rank(means, a->ds->providers, order, err);
}

/* ---- JSON ---- */

json_t *audit_describe(const fds_audit *a) {
    const char *slash = strrchr(a->ds->source, '/');
    const char *name = slash && slash[1] ? slash + 1 : a->ds->source;
    return json_pack("{s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:s, s:I, s:b, s:I}", "fds", FDS_VERSION,
                     "kind", "fds data audit", "name", fds__json_string(name), "data",
                     fds__json_string(a->ds->source), "samples", (json_int_t)a->count, "classes",
                     (json_int_t)a->ds->classes, "folds", (json_int_t)a->folds, "utility",
                     a->utility, "neighbours", (json_int_t)a->neighbours, "has_network",
                     a->has_network, "seed", (json_int_t)a->seed);
}

static json_t *json_providers(const fds_audit *a) {
    json_t *list = json_array();
    OWNED size_t *order = NULL;
    bool is_whole = list && NEW(order, a->ds->providers, NULL) == FDS_OK &&
                    audit_rank_providers(a, order, NULL) == FDS_OK;
    for (size_t k = 0; is_whole && k < a->ds->providers; k++) {
        const audit_provider *p = &a->providers[order[k]];
        double samples = (double)MAX(p->samples, 1);
        is_whole = fds__json_append(
            list,
            json_pack("{s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "name",
                      fds__json_string(fds_dataset_provider_name(a->ds, (uint32_t)order[k])),
                      "samples", (json_int_t)p->samples, "suspects", (json_int_t)p->suspects,
                      "share_of_suspects", fds__json_real((double)p->suspects / samples), "value",
                      fds__json_real(p->value), "standard_error", fds__json_real(p->error),
                      "value_per_sample", fds__json_real(p->value / samples),
                      "value_per_sample_error", fds__json_real(p->error / samples)));
    }
    return fds__json_keep_if(list, is_whole);
}

typedef struct {
    uint64_t pair; /* label * classes + predicted */
    size_t count;
} confusion;

static int by_pair(const void *left, const void *right) {
    const confusion *a = left, *b = right;
    return (a->pair > b->pair) - (a->pair < b->pair);
}

static int by_count(const void *left, const void *right) {
    const confusion *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return by_pair(left, right);
}

/* Which labels the suspects have, and which the model says instead; the most frequent first. */
static json_t *json_confusions(const fds_audit *a) {
    json_t *list = json_array();
    OWNED confusion *found = NULL;
    size_t count = 0, used = 0;
    bool is_whole = list && NEW(found, a->suspects, NULL) == FDS_OK;
    for (size_t i = 0; is_whole && i < a->count; i++)
        if (a->values[i] < 0 && a->predicted[i] != a->ds->labels[i])
            found[count++] =
                (confusion){(uint64_t)a->ds->labels[i] * a->ds->classes + a->predicted[i], 1};
    if (count)
        qsort(found, count, sizeof *found, by_pair);
    for (size_t i = 0; i < count; i++)
        if (used && found[used - 1].pair == found[i].pair)
            found[used - 1].count++;
        else
            found[used++] = found[i];
    if (used)
        qsort(found, used, sizeof *found, by_count);
    for (size_t k = 0; is_whole && k < MIN(used, (size_t)MOST_CONFUSIONS); k++)
        is_whole = fds__json_append(
            list, json_pack("{s:o, s:o, s:I}", "label",
                            fds__json_string(fds_dataset_class_name(
                                a->ds, (uint32_t)(found[k].pair / a->ds->classes))),
                            "predicted",
                            fds__json_string(fds_dataset_class_name(
                                a->ds, (uint32_t)(found[k].pair % a->ds->classes))),
                            "suspects", (json_int_t)found[k].count));
    return fds__json_keep_if(list, is_whole);
}

static json_t *json_row(const fds_audit_row *r) {
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:b, s:o, s:o}", "sample",
                     (json_int_t)r->sample, "line",
                     r->line ? json_integer((json_int_t)r->line) : json_null(), "id",
                     fds__json_string(r->id), "provider", fds__json_string(r->provider), "label",
                     fds__json_string(r->label), "predicted", fds__json_string(r->predicted),
                     "probability", r->probability, "label_probability", r->label_probability,
                     "value", fds__json_real(r->value), "standard_error",
                     fds__json_real(r->standard_error), "is_suspect", r->is_suspect, "contradicts",
                     r->twin == r->sample ? json_null() : json_integer((json_int_t)r->twin),
                     "reason", fds__json_string(r->reason));
}

static json_t *json_rows(const fds_audit *a) {
    json_t *list = json_array();
    fds_audit_row row;
    bool is_whole = list != NULL;
    for (size_t rank = 0; is_whole && fds_audit_row_at(a, rank, &row); rank++)
        is_whole = fds__json_append(list, json_row(&row));
    return fds__json_keep_if(list, is_whole);
}

json_t *audit_json(const fds_audit *a) {
    json_t *all = audit_describe(a);
    bool is_whole =
        all && fds__json_put(all, "seconds", fds__json_real(a->seconds)) &&
        fds__json_put(all, "suspects", json_integer((json_int_t)a->suspects)) &&
        fds__json_put(all, "clear_suspects", json_integer((json_int_t)a->clear_suspects)) &&
        fds__json_put(all, "accuracy", fds__json_real(a->accuracy)) &&
        fds__json_put(all, "confusions", json_confusions(a)) &&
        fds__json_put(all, "providers", json_providers(a)) &&
        fds__json_put(all, "rows", json_rows(a));
    return fds__json_keep_if(all, is_whole);
}

fds_status fds_audit_json(const fds_audit *a, char **out, fds_error *err) {
    json_t *all = audit_json(a);
    *out = all ? fds__json_text(all, JSON_INDENT(1)) : NULL;
    json_decref(all);
    return *out ? FDS_OK : fds__fail_json(err);
}
