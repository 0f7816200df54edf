/* SPDX-License-Identifier: Apache-2.0
 * Datasets as programs outside see them: opened by parameters, made from arrays, asked. */
#include "data/data.h"

#include <string.h>

fds_status fds_data_open(const char *where, const fds_params *params, const fds_events *events,
                         fds_dataset **train, fds_dataset **test, fds_error *err) {
    fds__data_options options = {0};
    char hint[FDS__HINT];
    if (params)
        options = (fds__data_options){params->label, params->provider, params->labels};
    fds_status status = fds__data_open(where, &options, events, train, test, err);
    if (status == FDS_ERR_NOT_FOUND && !strchr(where, '/'))
        return fds__fail(err, status, "%s%s", err ? err->text : "",
                         fds__hint(where, fds_data_known(), hint));
    return status;
}

static fds_status add_providers(fds_dataset *ds, const fds_arrays *a, fds_error *err) {
    for (size_t i = 0; i < a->count; i++)
        if (a->providers[i] >= a->provider_count)
            return fds__fail(err, FDS_ERR_USAGE, "sample %zu: provider %u, there are %u", i,
                             a->providers[i], a->provider_count);
    const fds__names names = {(char **)(uintptr_t)a->provider_names, a->provider_count};
    ds->provider_ids = fds__alloc_zero(a->count, sizeof *ds->provider_ids);
    if (!ds->provider_ids)
        return fds__fail_nomem(err, a->count * sizeof *ds->provider_ids);
    memcpy(ds->provider_ids, a->providers, a->count * sizeof *ds->provider_ids);
    TRY(fds__names_copy(&names, &ds->provider_names, err));
    ds->providers = a->provider_count;
    return FDS_OK;
}

fds_status fds_dataset_create(const fds_arrays *a, fds_dataset **out, fds_error *err) {
    if (a->providers && (!a->provider_names || !a->provider_count))
        return fds__fail(err, FDS_ERR_USAGE, "providers need their number and their names");
    fds_dataset *ds;
    TRY(fds__dataset_create(a->count, a->shape, a->bytes, a->floats, a->labels, a->classes,
                            a->class_names, &ds, err));
    fds_status status = a->providers ? add_providers(ds, a, err) : FDS_OK;
    if (status != FDS_OK)
        fds_dataset_free(ds);
    else
        *out = ds;
    return status;
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
