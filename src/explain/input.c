/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs of a run, which are pictures, samples of a dataset, samples of the run's own data by
 * number, or new rows of a file, and its answers for them as a result. */
#include "explain/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 }; /* inputs between two reports of progress, which may cancel */

struct fds_input {
    const fds_dataset *ds;
    fds_dataset *own[2]; /* what it owns: the data and its test part, if any */
    uint32_t *index;     /* (count) samples of ds */
    uint32_t *truth;     /* (count) true labels as the run numbers them; NULL: not known */
    double *targets;     /* (count) of a regression; NULL: not known */
    char **names;        /* (count) of pictures; NULL: samples */
    uint32_t classes;    /* of service */
    double *service;     /* (count, classes) what a model trained elsewhere predicts; or NULL */
    bool is_test;        /* samples of a test part */
    bool has_ids;        /* names of samples have the ids or paths that ds has */
    size_t count;
};

void fds_input_free(fds_input *in) {
    if (!in)
        return;
    for (size_t i = 0; in->names && i < in->count; i++)
        fds__free(in->names[i]);
    fds__free(in->names);
    fds__free(in->index);
    fds__free(in->truth);
    fds__free(in->service);
    fds__free(in->targets);
    fds_dataset_free(in->own[0]);
    fds_dataset_free(in->own[1]);
    fds__free(in);
}

size_t fds_input_count(const fds_input *in) { return in->count; }

/* The caller frees *out after a failure too. */
static fds_status create(size_t count, fds_input **out, fds_error *err) {
    TRY(RESERVE(*out, 1, 1, err));
    (*out)->count = count;
    return RESERVE((*out)->index, count, 1, err);
}

/* The parameter "service_probs". */
static fds_status read_service(fds_input *in, const fds_run *run, const fds_params *params,
                               fds_error *err) {
    const fds__run_info info = fds__run_get_info(run);
    const char *path = params ? params->service_probs : NULL;
    if (!path)
        return FDS_OK;
    if (info.is_regression)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`service_probs` needs classes, and the run is a regression");
    in->classes = info.classes;
    TRY(RESERVE(in->service, in->count, info.classes, err));
    return fds__service_load(path, in->count, info.classes, "inputs", in->service, err);
}

/* Gives the input to the caller, or frees it. */
static fds_status finish(fds_status status, fds_input *in, fds_input **out) {
    if (status == FDS_OK)
        *out = in;
    else
        fds_input_free(in);
    return status;
}

/* ---- pictures ---- */

static fds_status fill_pictures(fds_input *in, const fds_run *run, const char *const *paths,
                                bool is_scaled, fds_error *err) {
    const fds__run_info info = fds__run_get_info(run);
    if (!info.is_image)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "the run was fitted on feature vectors, not on images: give new ones by `rows`, or "
            "choose samples of the data by `index`");
    TRY(RESERVE(in->names, in->count, 1, err));
    for (size_t i = 0; i < in->count; i++) {
        in->index[i] = (uint32_t)i;
        in->names[i] = fds__strdup(paths[i]);
        if (!in->names[i])
            return fds__fail_nomem(err, strlen(paths[i]) + 1);
    }
    is_scaled |= fds__run_origin(run, "resize") != NULL;
    TRY(fds__data_pictures(paths, in->count, info.shape, info.classes, is_scaled, &in->own[0],
                           err));
    in->ds = in->own[0];
    return FDS_OK;
}

fds_status fds_input_pictures(const fds_run *run, const char *const *paths, size_t count,
                              const fds_params *params, fds_input **out, fds_error *err) {
    fds_input *in = NULL;
    if (!count)
        return fds__fail(err, FDS_ERR_USAGE, "nothing to explain: give an image or `index`");
    fds_status status = create(count, &in, err);
    if (status == FDS_OK)
        status = fill_pictures(in, run, paths, params && params->is_scaled, err);
    if (status == FDS_OK)
        status = read_service(in, run, params, err);
    return finish(status, in, out);
}

/* ---- samples ---- */

/* The run's number of a class; its number of classes: it has none of that name. */
static uint32_t find_class(const fds_run *run, const char *name) {
    uint32_t classes = fds__run_get_info(run).classes, label = 0;
    while (label < classes && strcmp(fds__run_class_name(run, label), name) != 0)
        label++;
    return label;
}

/* Labels of ds by their names in the run: two data sets may number them differently. */
static fds_status map_labels(const fds_run *run, const fds_dataset *ds, fds_input *in,
                             fds_error *err) {
    bool is_regression = fds__run_get_info(run).is_regression;
    if (is_regression != (ds->targets != NULL))
        return fds__fail(err, FDS_ERR_USAGE, "%s has %s, but the run explains %s", ds->source,
                         ds->targets ? "targets" : "labels",
                         is_regression ? "a regression" : "classes");
    if (is_regression) {
        TRY(RESERVE(in->targets, in->count, 1, err));
        for (size_t i = 0; i < in->count; i++)
            in->targets[i] = ds->targets[in->index[i]];
        return FDS_OK;
    }
    TRY(RESERVE(in->truth, in->count, 1, err));
    for (size_t i = 0; i < in->count; i++) {
        const char *name = fds_dataset_class_name(ds, ds->labels[in->index[i]]);
        in->truth[i] = find_class(run, name);
        if (in->truth[i] == fds__run_get_info(run).classes)
            return fds__fail(
                err, FDS_ERR_USAGE,
                "%s: sample %u has the class \"%s\", which the run does not have: it was "
                "fitted on other data",
                ds->source, in->index[i], name);
    }
    return FDS_OK;
}

static fds_status fill_samples(fds_input *in, const fds_run *run, const fds_dataset *ds,
                               const uint32_t *index, fds_error *err) {
    in->ds = ds;
    for (size_t i = 0; i < in->count; i++) {
        in->index[i] = index ? index[i] : (uint32_t)i;
        if (in->index[i] >= ds->count)
            return fds__fail(err, FDS_ERR_USAGE, "`index` %u: %s has samples 0 to %zu",
                             in->index[i], in->is_test ? "the test part" : "the data",
                             ds->count - 1);
    }
    return map_labels(run, ds, in, err);
}

fds_status fds_input_samples(const fds_run *run, const fds_dataset *ds, const uint32_t *index,
                             size_t count, fds_input **out, fds_error *err) {
    fds_input *in = NULL;
    fds_status status = create(count, &in, err);
    if (status == FDS_OK)
        status = fill_samples(in, run, ds, index, err);
    return finish(status, in, out);
}

/* ---- some of them ---- */

static fds_status fill_part(fds_input *in, const fds_input *whole, size_t first, fds_error *err) {
    in->ds = whole->ds;
    in->is_test = whole->is_test;
    in->has_ids = whole->has_ids;
    memcpy(in->index, whole->index + first, in->count * sizeof *in->index);
    if (whole->truth) {
        TRY(RESERVE(in->truth, in->count, 1, err));
        memcpy(in->truth, whole->truth + first, in->count * sizeof *in->truth);
    }
    if (whole->targets) {
        TRY(RESERVE(in->targets, in->count, 1, err));
        memcpy(in->targets, whole->targets + first, in->count * sizeof *in->targets);
    }
    if (whole->service) {
        in->classes = whole->classes;
        TRY(RESERVE(in->service, in->count, in->classes, err));
        memcpy(in->service, whole->service + first * in->classes,
               in->count * in->classes * sizeof *in->service);
    }
    if (!whole->names)
        return FDS_OK;
    TRY(RESERVE(in->names, in->count, 1, err));
    for (size_t i = 0; i < in->count; i++)
        if (!(in->names[i] = fds__strdup(whole->names[first + i])))
            return fds__fail_nomem(err, strlen(whole->names[first + i]) + 1);
    return FDS_OK;
}

fds_status fds_input_part(const fds_input *whole, size_t first, size_t count, fds_input **out,
                          fds_error *err) {
    fds_input *in = NULL;
    if (!count || first > whole->count || count > whole->count - first)
        return fds__fail(err, FDS_ERR_USAGE, "%zu inputs from number %zu: there are %zu", count,
                         first, whole->count);
    fds_status status = create(count, &in, err);
    if (status == FDS_OK)
        status = fill_part(in, whole, first, err);
    return finish(status, in, out);
}

/* ---- samples of the run's own data ---- */

/* How to read the data: as the parameters say, else as when the run was fitted. */
static fds_status read_as(const fds_run *run, const fds_params *params, fds_params *how,
                          fds_error *err) {
    for (const char *const *name = fds__run_reading; *name; name++) {
        const char *given = !strcmp(*name, "label")      ? params->label
                            : !strcmp(*name, "provider") ? params->provider
                            : !strcmp(*name, "labels")   ? params->labels
                                                         : NULL;
        const char *value = given ? given : fds__run_origin(run, *name);
        if (value && strcmp(*name, "owners") != 0) /* the run knows its providers */
            TRY(fds_params_set(how, *name, value, err));
    }
    return FDS_OK;
}

/* The data that the run was fitted on, where it is now. */
static fds_status open_data(const fds_run *run, const fds_params *params, const fds_events *events,
                            fds_dataset *parts[2], fds_error *err) {
    const char *path = params->data ? params->data : fds__run_origin(run, "path");
    fds_error why = {0};
    fds_params *how = fds_params_create("show");
    fds_status status =
        how ? read_as(run, params, how, &why) : fds__fail_nomem(&why, sizeof(fds_params));
    if (status == FDS_OK)
        status = fds_data_open(path ? path : fds__run_get_info(run).source, how, events, &parts[0],
                               &parts[1], &why);
    fds_params_free(how);
    if (status == FDS_OK)
        return fds__run_check_data(run, parts[0], err);
    bool has_moved = status == FDS_ERR_NOT_FOUND && !params->data;
    return fds__fail(err, status, "%s%s", why.text,
                     has_moved ? "; if the data has moved, say where it is: `data`" : "");
}

static fds_status fill_numbered(fds_input *in, const fds_run *run, const fds_params *params,
                                const fds_events *events, const uint32_t *index, fds_error *err) {
    TRY(open_data(run, params, events, in->own, err));
    in->is_test = in->own[1] != NULL;
    in->has_ids = in->own[in->is_test]->sample_names != NULL;
    if (!in->is_test)
        fds__log(events, FDS_LOG_INFO,
                 "the data has no test part: `index` counts all of its samples");
    return fill_samples(in, run, in->own[in->is_test], index, err);
}

/* ---- new rows ---- */

static float greatest(const fds_dataset *ds) {
    float most = 0;
    for (size_t i = 0; ds->floats && i < ds->count * ds->sample_size; i++)
        most = fmaxf(most, ds->floats[i]);
    return most;
}

/* Bytes 0 to 255 saved as floats would be other pictures. */
static fds_status check_range(const fds_run *run, const fds_dataset *ds, fds_error *err) {
    float most = greatest(ds);
    return most > 1 && greatest(fds_run_samples(run)) <= 1
               ? fds__fail(
                     err, FDS_ERR_FORMAT,
                     "%s: values up to %g, but those of the run are from 0 to 1; save pictures "
                     "as uint8, or divide by 255",
                     ds->source, (double)most)
               : FDS_OK;
}

/* text: one sample as JSON, or NULL for the file at path. */
static fds_status read_rows(const fds_run *run, const char *path, const char *text,
                            const fds_events *events, fds_dataset **out, fds_error *err) {
    const fds__run_info info = fds__run_get_info(run);
    const json_t *json = fds__run_preparation(run);
    fds__preparation *preparation = NULL;
    if (json_is_object(json))
        TRY(fds__preparation_parse(json, fds__run_folder(run), &preparation, err));
    fds_status status =
        text ? fds__data_json(text, preparation, info.shape, info.classes, out, err)
             : fds__data_rows(path, preparation, info.shape, info.classes, events, out, err);
    fds__preparation_free(preparation);
    if (status == FDS_OK && info.is_image)
        status = check_range(run, *out, err);
    if (status != FDS_OK)
        fds_dataset_free(*out);
    return status;
}

static fds_status name_rows(fds_input *in, fds_error *err) {
    TRY(RESERVE(in->names, in->count, 1, err));
    for (size_t i = 0; i < in->count; i++) {
        char number[32];
        snprintf(number, sizeof number, "row %zu", i + 1);
        const char *name = in->ds->sample_names ? in->ds->sample_names[i] : number;
        in->index[i] = (uint32_t)i;
        if (!(in->names[i] = fds__strdup(name)))
            return fds__fail_nomem(err, strlen(name) + 1);
    }
    return FDS_OK;
}

static fds_status open_rows(const fds_run *run, const char *path, const char *text,
                            const fds_events *events, fds_input **out, fds_error *err) {
    fds_dataset *ds = NULL;
    fds_input *in = NULL;
    TRY(read_rows(run, path, text, events, &ds, err));
    fds_status status = create(ds->count, &in, err);
    if (status != FDS_OK) {
        fds_dataset_free(ds);
        return finish(status, in, out);
    }
    in->ds = in->own[0] = ds;
    return finish(name_rows(in, err), in, out);
}

fds_status fds_input_open(const fds_run *run, const fds_params *params, const fds_events *events,
                          fds_input **out, fds_error *err) {
    uint32_t *index = NULL;
    size_t count;
    fds_input *in = NULL;
    if (params->index && params->rows)
        return fds__fail(err, FDS_ERR_USAGE, "`index` and `rows` exclude each other");
    if (params->rows) {
        TRY(open_rows(run, params->rows, NULL, events, &in, err));
        return finish(read_service(in, run, params, err), in, out);
    }
    if (!params->index)
        return fds__fail(err, FDS_ERR_USAGE,
                         "nothing to explain: give an image, `index` or `rows`");
    fds_status status = fds__samples_list(params->index, &index, &count, err);
    if (status == FDS_OK)
        status = create(count, &in, err);
    if (status == FDS_OK)
        status = fill_numbered(in, run, params, events, index, err);
    if (status == FDS_OK)
        status = read_service(in, run, params, err);
    fds__free(index);
    return finish(status, in, out);
}

fds_status fds_input_json(const fds_run *run, const char *json, fds_input **out, fds_error *err) {
    return open_rows(run, NULL, json, NULL, out, err);
}

/* ---- answers ---- */

typedef struct {
    fds_run *run;
    const fds_input *in;
    fds__answerer by;
    bool is_given, has_check;
    uint32_t *labels; /* (count) */
    float *probs;     /* (count, classes); of a regression standardised predictions */
    double *targets;  /* (count) of a regression: standardised; or NULL */
} question;

static fds_status fail_target(const fds_run *run, uint32_t classes, const char *target,
                              fds_error *err) {
    const char **names;
    char hint[FDS__HINT];
    TRY(RESERVE(names, (size_t)classes + 3, 1, err));
    for (uint32_t c = 0; c < classes; c++)
        names[c] = fds__run_class_name(run, c);
    names[classes] = "predicted";
    names[classes + 1] = "true";
    fds_status status =
        fds__fail(err, FDS_ERR_USAGE,
                  "`target` must be predicted, true or one of the run's %u classes (got %.60s)%s",
                  classes, target, fds__hint(target, names, hint));
    fds__free(names);
    return status;
}

/* The targets of a regression that are explained: what is predicted, the true ones, or a number. */
static fds_status choose_targets(question *q, const char *target, fds_error *err) {
    const fds__aim aim = fds__run_get_info(q->run).aim;
    char *end = NULL;
    double number = fds__read_double(target, &end);
    bool is_true = strcmp(target, "true") == 0;
    if (is_true && !q->in->targets)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`target` true: the true targets of these inputs are not known");
    if (!is_true && (end == target || *end || !isfinite(number)))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`target` must be predicted, true or a number in a regression (got %.60s)",
                         target);
    for (size_t i = 0; i < q->in->count; i++)
        q->targets[i] = ((is_true ? q->in->targets[i] : number) - aim.mean) / aim.std;
    return FDS_OK;
}

static fds_status choose_labels(question *q, const char *target, fds_error *err) {
    uint32_t classes = fds__run_get_info(q->run).classes;
    q->is_given = target && strcmp(target, "predicted") != 0;
    if (!q->is_given && q->in->service) {
        q->is_given = true;
        for (size_t i = 0; i < q->in->count; i++)
            q->labels[i] = fds__argmax(q->in->service + i * classes, classes);
        return FDS_OK;
    }
    if (!q->is_given)
        return FDS_OK;
    if (q->targets)
        return choose_targets(q, target, err);
    if (strcmp(target, "true") == 0) {
        if (!q->in->truth)
            return fds__fail(
                err, FDS_ERR_USAGE,
                "`target` true: the true labels of these inputs are not known (those of "
                "samples by `index` are); name a label");
        memcpy(q->labels, q->in->truth, q->in->count * sizeof *q->labels);
        return FDS_OK;
    }
    uint32_t label = find_class(q->run, target);
    if (label == classes)
        return fail_target(q->run, classes, target, err);
    for (size_t i = 0; i < q->in->count; i++)
        q->labels[i] = label;
    return FDS_OK;
}

static fds_status choose_answerer(question *q, const fds_params *params, fds_error *err) {
    const fds__run_info info = fds__run_get_info(q->run);
    bool is_bank = strcmp(info.explainer, "bank") == 0;
    int by = params ? params->answer_by : -1;
    q->has_check = params && params->check;
    q->by = by == 1 || is_bank ? FDS__ANSWERER_BANK : FDS__ANSWERER_EXPLAINER;
    if (is_bank && by == 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`by` explainer: the run has none, its sub-models answer");
    if (q->has_check && is_bank)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`check`: the run's sub-models answer, there is no explainer to check");
    if (q->has_check && by == 1)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`check` compares the explainer with the bank: it does not apply to `by` bank");
    if ((q->has_check || q->by == FDS__ANSWERER_BANK) && !info.has_bank)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`%s: the run has no sub-models to answer; fit it with `keep_models`",
                         q->has_check ? "check`" : "by` bank");
    return FDS_OK;
}

static fds_status solve(question *q, fds_result *r, const fds_events *events, fds_error *err) {
    size_t n = r->players;
    size_t chunk = fds__run_has_program(q->run) ? q->in->count : CHUNK; /* it starts for each */
    double start_s = fds__now_s();
    for (size_t done = 0; done < q->in->count;) {
        size_t count = MIN(q->in->count - done, chunk);
        fds__answers part = {.labels = q->labels + done,
                             .targets = q->targets ? q->targets + done : NULL,
                             .probs = q->probs + done * (q->targets ? 1 : r->classes),
                             .full = r->full + done,
                             .empty = r->empty + done,
                             .values = r->values + done * n,
                             .errors = r->errors + done * n};
        TRY(fds__run_explain(q->run, q->by, q->in->ds, q->in->index + done, count, q->is_given,
                             &part, err));
        if (q->has_check) {
            part = (fds__answers){.labels = q->labels + done,
                                  .values = r->checks + done * n,
                                  .errors = r->check_errors + done * n};
            TRY(fds__run_explain(q->run, FDS__ANSWERER_BANK, q->in->ds, q->in->index + done, count,
                                 true, &part, err));
        }
        done += count;
        TRY(fds__report(events, "explain", "inputs", done, q->in->count, start_s, err));
    }
    return FDS_OK;
}

/* The numbers of a prediction. */
static fds_status name_targets(const question *q, size_t k, fds_result *r, fds_error *err) {
    const fds__aim aim = fds__run_get_info(q->run).aim;
    double predicted = aim.mean + aim.std * (double)q->probs[k];
    TRY(fds__result_number(r, predicted, &r->predicted[k], err));
    if (q->in->targets)
        TRY(fds__result_number(r, q->in->targets[k], &r->truth[k], err));
    r->labels[k] = r->predicted[k];
    return q->is_given
               ? fds__result_number(r, aim.mean + aim.std * q->targets[k], &r->labels[k], err)
               : FDS_OK;
}

static fds_status name_result(const question *q, fds_result *r, fds_error *err) {
    const fds_run *run = q->run;
    if (q->targets)
        TRY(fds__result_regression(r, err));
    for (size_t i = 0; i < r->players; i++) {
        uint32_t label = fds__run_player_label(run, i);
        if (q->targets)
            TRY(fds__result_number(r, fds__run_player_target(run, i), &label, err));
        TRY(fds__result_name_player(r, i, fds__run_player_name(run, i),
                                    fds__run_player_provider(run, i), label,
                                    fds__run_player_size(run, i), err));
    }
    for (size_t i = 0; i < r->players; i++)
        r->player_groups[i] = fds__run_player_group(run, i);
    for (uint32_t c = 0; !q->targets && c < r->classes; c++)
        TRY(fds__result_name_class(r, c, fds__run_class_name(run, c), err));
    for (size_t k = 0; k < r->predictions; k++) {
        char name[512];
        uint32_t sample = q->in->index[k];
        bool has_id = q->in->has_ids;
        snprintf(name, sizeof name, "%ssample %u%s%.400s", q->in->is_test ? "test " : "", sample,
                 has_id ? ", " : "", has_id ? q->in->ds->sample_names[sample] : "");
        TRY(fds__result_name_input(r, k, q->in->names ? q->in->names[k] : name, err));
        r->samples[k] = q->in->names ? FDS__UNKNOWN : sample;
        if (q->targets) {
            TRY(name_targets(q, k, r, err));
            continue;
        }
        r->labels[k] = q->labels[k];
        r->truth[k] = q->in->truth ? q->in->truth[k] : FDS__UNKNOWN;
        for (uint32_t c = 0; q->in->service && c < r->classes; c++)
            q->probs[k * r->classes + c] = (float)q->in->service[k * r->classes + c];
        r->predicted[k] = fds__argmax_f32(q->probs + k * r->classes, r->classes);
        r->confidence[k] = (double)q->probs[k * r->classes + r->predicted[k]];
    }
    return FDS_OK;
}

static json_t *describe(const question *q, const fds_result *r, double seconds) {
    const fds__run_info info = fds__run_get_info(q->run);
    return json_pack(
        "{s:s, s:s, s:o, s:s, s:s, s:s, s:I, s:s, s:s, s:o, s:f}", "version", FDS_VERSION, "task",
        info.is_regression ? "regression" : "classification", "run",
        fds__json_string(fds__run_folder(q->run)), "method", info.method, "data", info.source,
        "explainer", info.explainer, "players", (json_int_t)r->players, "by",
        q->by == FDS__ANSWERER_BANK ? "bank" : "explainer", "errors",
        fds__run_error_source(q->run, q->by), "check_errors",
        fds__json_string(q->has_check ? fds__run_error_source(q->run, FDS__ANSWERER_BANK) : NULL),
        "seconds", seconds);
}

static fds_status fill(question *q, const fds_params *params, const fds_events *events,
                       fds_result *r, fds_error *err) {
    size_t count = q->in->count;
    double start_s = fds__now_s();
    TRY(RESERVE(q->labels, count, 1, err));
    TRY(RESERVE(q->probs, count, fds__run_get_info(q->run).classes, err));
    if (fds__run_get_info(q->run).is_regression)
        TRY(RESERVE(q->targets, count, 1, err));
    if (q->has_check) {
        TRY(RESERVE(r->checks, count, r->players, err));
        TRY(RESERVE(r->check_errors, count, r->players, err));
    }
    TRY(choose_labels(q, params ? params->explained_label : NULL, err));
    TRY(solve(q, r, events, err));
    TRY(name_result(q, r, err));
    fds__result_average(r);
    json_decref(r->about);
    r->about = describe(q, r, fds__now_s() - start_s);
    return r->about ? FDS_OK : fds__fail_json(err);
}

fds_status fds_run_explain(fds_run *run, const fds_input *in, const fds_params *params,
                           const fds_events *events, fds_result **out, fds_error *err) {
    const fds__run_info info = fds__run_get_info(run);
    question q = {.run = run, .in = in};
    fds_result *r;
    TRY(choose_answerer(&q, params, err));
    TRY(fds__result_create(info.method, info.players, in->count,
                           info.is_regression ? 0 : info.classes, &r, err));
    fds__run_set_events(run, events);
    fds_status status = fill(&q, params, events, r, err);
    fds__run_set_events(run, NULL);
    fds__free(q.labels);
    fds__free(q.probs);
    fds__free(q.targets);
    if (status != FDS_OK)
        fds_result_free(r);
    else
        *out = r;
    return status;
}

/* ---- the figure ---- */

fds_status fds_run_draw(fds_run *run, const fds_input *in, const fds_result *r, uint32_t columns,
                        const char *png_path, fds_error *err) {
    const fds__run_info info = fds__run_get_info(run);
    bool are_single = true; /* a picture of one sample says nothing of a provider */
    for (size_t i = 0; i < info.players; i++)
        are_single &= fds__run_player_size(run, i) == 1;
    if (!info.is_image || info.is_regression || !are_single)
        return draw_result(r, info.is_image ? in->ds : NULL, in->index, columns, png_path, err);
    float *probs;
    TRY(RESERVE(probs, in->count, info.classes, err));
    /* the figure shows the probability of the predicted label alone */
    for (size_t k = 0; k < in->count; k++)
        probs[k * info.classes + r->predicted[k]] = (float)r->confidence[k];
    const fds__answers answers = {.labels = r->labels, .probs = probs, .values = r->values};
    fds_status status = fds__run_draw(run, in->ds, in->index, in->count, in->truth, &answers,
                                      columns, png_path, err);
    fds__free(probs);
    return status;
}
