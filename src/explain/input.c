/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs of a run, which are pictures, samples of a dataset, samples of the run's own data by
 * number, or new rows of a file. */
#include "explain/run.h"

#include <math.h>
#include <string.h>

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

static const char *class_name(const void *run, uint32_t label) {
    return fds__run_class_name(run, label);
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
    const fds__service_form form = {.rows = in->count,
                                    .classes = info.classes,
                                    .of = "inputs",
                                    .names = run,
                                    .name_of = class_name};
    return fds__service_load(path, &form, in->service, err);
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

uint32_t fds__run_find_class(const fds_run *run, const char *name) {
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
        in->truth[i] = fds__run_find_class(run, name);
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
static fds_status read_as(const fds_run *run, const fds_params *params, bool with_owners,
                          fds_params *how, fds_error *err) {
    for (const char *const *name = fds__run_reading; *name; name++) {
        const char *given = !strcmp(*name, "label")      ? params->label
                            : !strcmp(*name, "provider") ? params->provider
                            : !strcmp(*name, "labels")   ? params->labels
                                                         : NULL;
        const char *value = given ? given : fds__run_origin(run, *name);
        if (value && (with_owners || strcmp(*name, "owners") != 0))
            TRY(fds_params_set(how, *name, value, err));
    }
    return FDS_OK;
}

fds_status fds__run_open_data(const fds_run *run, const fds_params *params, bool with_owners,
                              const fds_events *events, fds_dataset *parts[2], fds_error *err) {
    const char *path = params->data ? params->data : fds__run_origin(run, "path");
    fds_error why = {0};
    fds_params *how = fds_params_create("show");
    fds_status status = how ? read_as(run, params, with_owners, how, &why)
                            : fds__fail_nomem(&why, sizeof(fds_params));
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
    TRY(fds__run_open_data(run, params, false, events, in->own, err));
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

fds_status fds__run_check_range(const fds_run *run, const fds_dataset *ds, fds_error *err) {
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
        status = fds__run_check_range(run, *out, err);
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
