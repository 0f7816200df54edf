/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a training at the end of an epoch, as a file from which it continues to the same bits.
 *
 * safetensors. For each tensor of the network:
 *     value/NAME                  weight or running statistic
 *     moment1/NAME, moment2/NAME  Adam's; not for running statistics
 *     best/NAME                   as value, of the best epoch so far; not while warming up
 * Metadata:
 *     format    "fds-checkpoint 1"
 *     text      everything that the bits of the training depend on, line by line
 *     stage     "warm-up" or "explainer"
 *     epoch     completed epochs of the stage
 *     steps     of the optimiser
 *     metrics   the lines of metrics.jsonl so far
 *     checksum  over all of that, 16 hexadecimal digits
 */
#include "explain/learn.h"

#include <stdlib.h>
#include <string.h>

#define FORMAT "fds-checkpoint 1"
enum { PARTS = 4, BEST = 3, NAME = 80, KEYS = 6 };

static const struct {
    const char *name;
    fds__deep_part part;
} parts[PARTS] = {{"value", FDS__DEEP_VALUE},
                  {"moment1", FDS__DEEP_MOMENT1},
                  {"moment2", FDS__DEEP_MOMENT2},
                  {"best", FDS__DEEP_VALUE}};
static const char *const keys[KEYS] = {"format", "text", "stage", "epoch", "steps", "metrics"};

/* ---- weights in memory ---- */

static size_t count_values(const fds__deep *net) {
    size_t total = 0;
    for (size_t i = 0; i < fds__deep_tensor_count(net); i++)
        total += fds__deep_tensor_at(net, i).count;
    return total;
}

static fds_status weights_make(learn_weights *w, const fds__deep *net, fds_error *err) {
    size_t count = fds__deep_tensor_count(net);
    TRY(RESERVE(w->names, count, 1, err));
    TRY(RESERVE(w->offsets, count + 1, 1, err));
    TRY(RESERVE(w->values, count_values(net), 1, err));
    w->count = count;
    for (size_t i = 0; i < count; i++) {
        fds__deep_tensor t = fds__deep_tensor_at(net, i);
        snprintf(w->names[i], sizeof *w->names, "%s", t.name);
        w->offsets[i + 1] = w->offsets[i] + t.count;
    }
    return FDS_OK;
}

fds_status learn_weights_take(learn_weights *w, const fds__deep *net, fds_error *err) {
    if (!w->values)
        TRY(weights_make(w, net, err));
    for (size_t i = 0; i < w->count; i++)
        TRY(fds__deep_read(net, i, FDS__DEEP_VALUE, w->values + w->offsets[i], err));
    return FDS_OK;
}

fds_status learn_weights_give(const learn_weights *w, fds__deep *net, fds_error *err) {
    for (size_t i = 0; i < fds__deep_tensor_count(net); i++) {
        fds__deep_tensor t = fds__deep_tensor_at(net, i);
        for (size_t j = 0; j < w->count; j++)
            if (strcmp(t.name, w->names[j]) == 0 && t.count == w->offsets[j + 1] - w->offsets[j])
                TRY(fds__deep_write(net, i, FDS__DEEP_VALUE, w->values + w->offsets[j], err));
    }
    return FDS_OK;
}

void learn_weights_free(learn_weights *w) {
    fds__free(w->names);
    fds__free(w->offsets);
    fds__free(w->values);
    *w = (learn_weights){0};
}

/* ---- what a training depends on ---- */

/* The checksum of sum and data */
static uint64_t chain(uint64_t sum, const void *data, size_t size) {
    uint64_t both[2] = {sum, data ? fds_checksum(data, size) : 0};
    return fds_checksum(both, sizeof both);
}

static uint64_t chain_plan(uint64_t sum, const fds_plan *plan) {
    size_t words = fds_coalition_words(fds_plan_players(plan));
    for (size_t row = 0; row < fds_plan_rows(plan); row++) {
        double weight = fds_plan_weight(plan, row);
        sum = chain(sum, fds_plan_coalition(plan, row), words * sizeof(uint64_t));
        sum = chain(sum, &weight, sizeof weight);
    }
    return sum;
}

static fds_status chain_rows(uint64_t *sum, const fds__training *training, fds_error *err) {
    size_t columns = training->inputs * training->classes;
    double *row;
    TRY(RESERVE(row, columns, 1, err));
    fds_status status = FDS_OK;
    for (size_t i = 2; status == FDS_OK && i < fds_plan_rows(training->plan); i++) {
        status = training->rows->read(training->rows->context, 0, i, 0, columns, row, err);
        *sum = chain(*sum, row, columns * sizeof *row);
    }
    fds__free(row);
    return status;
}

/* Of everything that the training reads, validation utilities excepted. */
static fds_status training_checksum(const fds__training *training,
                                    const fds__explainer_params *params, uint64_t *sum,
                                    fds_error *err) {
    size_t columns = training->inputs * training->classes;
    *sum = chain(0, training->x,
                 training->inputs * fds__shape_size(training->shape) * sizeof *training->x);
    *sum = chain(*sum, training->empty, columns * sizeof *training->empty);
    *sum = chain(*sum, training->full, columns * sizeof *training->full);
    if (params->warm_up)
        *sum = chain(*sum, training->labels, training->inputs * sizeof *training->labels);
    for (size_t i = 0; training->groups && i < training->players; i++) {
        uint32_t group = fds_groups_of(training->groups, i);
        *sum = chain(*sum, &group, sizeof group);
    }
    *sum = chain_plan(*sum, training->validation_plan);
    size_t width = training->rank ? training->rank : training->players;
    if (training->rank)
        *sum = chain(*sum, training->factors,
                     training->players * training->rank * sizeof *training->factors);
    if (params->objective == FDS__OBJECTIVE_CLOSED) {
        *sum = chain(*sum, training->targets, columns * width * sizeof *training->targets);
        return FDS_OK;
    }
    *sum = chain_plan(*sum, training->plan);
    return chain_rows(sum, training, err);
}

fds_status learn_describe(const fds__training *training, const fds__explainer_params *p,
                          uint64_t weights_checksum, uint64_t validation_checksum, fds__text *text,
                          fds_error *err) {
    uint64_t sum;
    char lr[FDS__NUMBER], gamma[FDS__NUMBER];
    TRY(training_checksum(training, p, &sum, err));
    fds__write_double((double)p->lr, lr);
    fds__write_double((double)p->gamma, gamma);
    fds__text_print(text,
                    "fds %s, %s\nthreads %u\nnetwork %.100s\nprecision %d\nseed %llu\n"
                    "objective %d, by group %d, gamma %s\nwarm-up %d\nlr %s\nbatch %u\n"
                    "epochs %u\npatience %u\ndraws %u\n",
                    FDS_VERSION, fds__deep_isa(), p->threads ? p->threads : fds_processors(),
                    p->network, (int)p->precision, (unsigned long long)p->seed, (int)p->objective,
                    p->is_by_group, gamma, p->warm_up, lr, p->batch, p->epochs, p->patience,
                    p->draws);
    fds__text_print(text,
                    "inputs %zu, validation %zu, %ux%ux%u\nplayers %zu\nclasses %u\n"
                    "training %016llx\nweights %016llx\nvalidation %016llx\n",
                    training->inputs, training->validation, training->shape.channels,
                    training->shape.height, training->shape.width, training->players,
                    training->classes, (unsigned long long)sum,
                    (unsigned long long)weights_checksum, (unsigned long long)validation_checksum);
    return fds__text_check(text, err);
}

/* ---- the file's parts ---- */

static bool has_part(const fds__deep_tensor *tensor, size_t part, bool is_warm_up) {
    if (part == BEST)
        return !is_warm_up;
    return parts[part].part == FDS__DEEP_VALUE || !tensor->is_statistic;
}

static uint64_t tensor_checksum(const fds__tensor *t) {
    size_t count = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        count *= t->dims[d];
    return chain(fds_checksum(t->name, strlen(t->name)), t->values, count * sizeof *t->values);
}

/* The order of the tensors in a file does not matter. */
static void print_checksum(uint64_t tensors, const char *const values[KEYS], char hex[17]) {
    uint64_t sum = tensors;
    for (size_t i = 0; i < KEYS; i++)
        sum = chain(sum, values[i], strlen(values[i]));
    snprintf(hex, 17, "%016llx", (unsigned long long)sum);
}

/* ---- writing ---- */

typedef struct {
    size_t count;
    fds__tensor *tensors;
    char (*names)[NAME];
    float *values[PARTS]; /* owned, except for BEST */
    fds__text metrics;
} contents;

static fds_status add_part(contents *c, const learn_state *state, size_t part, fds_error *err) {
    size_t offset = 0;
    for (size_t i = 0; i < fds__deep_tensor_count(state->net); i++) {
        fds__deep_tensor t = fds__deep_tensor_at(state->net, i);
        float *values = c->values[part] + offset;
        offset += t.count;
        if (!has_part(&t, part, state->is_warm_up))
            continue;
        if (part != BEST)
            TRY(fds__deep_read(state->net, i, parts[part].part, values, err));
        char *name = c->names[c->count];
        snprintf(name, NAME, "%s/%s", parts[part].name, t.name);
        fds__tensor *tensor = &c->tensors[c->count++];
        *tensor = (fds__tensor){.name = name, .rank = t.rank, .values = values};
        memcpy(tensor->dims, t.dims, sizeof t.dims);
    }
    return FDS_OK;
}

static fds_status gather(contents *c, const learn_state *state, fds_error *err) {
    size_t count = fds__deep_tensor_count(state->net), total = count_values(state->net);
    TRY(RESERVE(c->tensors, PARTS, count, err));
    TRY(RESERVE(c->names, PARTS, count, err));
    for (size_t part = 0; part < BEST; part++)
        TRY(RESERVE(c->values[part], total, 1, err));
    c->values[BEST] = state->best->values;
    for (size_t part = 0; part < PARTS; part++)
        TRY(add_part(c, state, part, err));
    fds__text_print(&c->metrics, "%s", "");
    if (!state->is_warm_up)
        learn_metrics_print(state->metrics, state->epoch, &c->metrics);
    return fds__text_check(&c->metrics, err);
}

static fds_status write(const char *path, const learn_state *state, contents *c,
                        const fds_events *events, fds_error *err) {
    char epoch[32], steps[32], checksum[17];
    uint64_t sum = 0;
    TRY(gather(c, state, err));
    snprintf(epoch, sizeof epoch, "%u", state->epoch);
    snprintf(steps, sizeof steps, "%llu", (unsigned long long)fds__deep_steps(state->net));
    const char *values[KEYS] = {FORMAT, state->text, state->is_warm_up ? "warm-up" : "explainer",
                                epoch,  steps,       c->metrics.data};
    for (size_t i = 0; i < c->count; i++)
        sum += tensor_checksum(&c->tensors[i]);
    print_checksum(sum, values, checksum);
    fds__meta meta[KEYS + 1] = {[KEYS] = {"checksum", checksum}};
    for (size_t i = 0; i < KEYS; i++)
        meta[i] = (fds__meta){keys[i], values[i]};
    return fds__safetensors_write(path, c->tensors, c->count, meta, KEYS + 1, events, err);
}

fds_status learn_checkpoint_write(const char *path, const learn_state *state,
                                  const fds_events *events, fds_error *err) {
    contents c = {0};
    fds_status status = write(path, state, &c, events, err);
    for (size_t part = 0; part < BEST; part++)
        fds__free(c.values[part]);
    fds__free(c.tensors);
    fds__free(c.names);
    fds__free(c.metrics.data);
    return status;
}

/* ---- reading ---- */

static bool whole(const char *text, uint64_t limit, uint64_t *number) {
    char *end;
    *number = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && *number <= limit;
}

static fds_status check(const char *path, const char *text, const fds__safetensors *file,
                        const char *values[KEYS], fds_error *err) {
    uint64_t sum = 0;
    char hex[17];
    for (size_t i = 0; i < KEYS; i++) {
        values[i] = fds__safetensors_meta(file, keys[i]);
        if (!values[i])
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: metadata \"%s\" is missing: not a checkpoint", path, keys[i]);
    }
    if (strcmp(values[0], FORMAT) != 0)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: format \"%.40s\" is not \"%s\"", path, values[0],
                         FORMAT);
    for (size_t i = 0; i < fds__safetensors_count(file); i++)
        sum += tensor_checksum(fds__safetensors_tensor(file, i));
    print_checksum(sum, values, hex);
    const char *checksum = fds__safetensors_meta(file, "checksum");
    if (!checksum || strcmp(checksum, hex) != 0)
        return fds__fail(err, FDS_ERR_CORRUPT, "%s: the checksum is wrong", path);
    if (strcmp(values[1], text) != 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s: a checkpoint of a training with other settings or data", path);
    return FDS_OK;
}

static fds_status read_state(const char *path, const char *text, learn_checkpoint *c,
                             fds_error *err) {
    const char *values[KEYS];
    uint64_t epoch;
    TRY(check(path, text, c->file, values, err));
    c->is_warm_up = strcmp(values[2], "warm-up") == 0;
    if (!whole(values[3], UINT32_MAX, &epoch) || !whole(values[4], UINT64_MAX, &c->steps))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: epoch and steps must be whole numbers", path);
    c->epoch = (uint32_t)epoch;
    return c->is_warm_up ? FDS_OK
                         : learn_metrics_parse(path, values[5], c->epoch, &c->metrics, err);
}

fds_status learn_checkpoint_read(const char *path, const char *text, learn_checkpoint *c,
                                 fds_error *err) {
    *c = (learn_checkpoint){0};
    TRY(fds__safetensors_read(path, &c->file, err));
    fds_status status = read_state(path, text, c, err);
    if (status != FDS_OK)
        learn_checkpoint_free(c);
    return status;
}

void learn_checkpoint_free(learn_checkpoint *c) {
    fds__safetensors_free(c->file);
    fds__free(c->metrics);
    *c = (learn_checkpoint){0};
}

static fds_status find(const char *path, const learn_checkpoint *c, const fds__deep_tensor *t,
                       size_t part, const fds__tensor **found, fds_error *err) {
    char name[NAME];
    snprintf(name, sizeof name, "%s/%s", parts[part].name, t->name);
    *found = fds__safetensors_find(c->file, name);
    if (!*found || (*found)->rank != t->rank ||
        memcmp((*found)->dims, t->dims, t->rank * sizeof *t->dims) != 0)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: tensor \"%s\" is missing or of another shape",
                         path, name);
    return FDS_OK;
}

fds_status learn_checkpoint_restore(const char *path, const learn_checkpoint *c, fds__deep *net,
                                    learn_weights *best, fds_error *err) {
    const fds__tensor *found;
    for (size_t i = 0; i < fds__deep_tensor_count(net); i++) {
        fds__deep_tensor t = fds__deep_tensor_at(net, i);
        for (size_t part = 0; part < PARTS; part++) {
            if (!has_part(&t, part, c->is_warm_up))
                continue;
            TRY(find(path, c, &t, part, &found, err));
            if (part == BEST)
                memcpy(best->values + best->offsets[i], found->values, t.count * sizeof(float));
            else
                TRY(fds__deep_write(net, i, parts[part].part, found->values, err));
        }
    }
    fds__deep_set_steps(net, c->steps);
    return FDS_OK;
}
