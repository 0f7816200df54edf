/* SPDX-License-Identifier: Apache-2.0
 * Providers that count as one. The file is what fds audit duplicates writes:
 *
 *     provider,cluster        the first line is a header
 *     clinic A,clinic A       providers with the same cluster become one, "clinic A + clinic B";
 *     clinic B,clinic A       those that are not listed stay as they are */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NAME = FDS__CLUSTER_NAME - 64 };

typedef struct {
    const char *path, *source;
    char *const *names; /* (count) */
    size_t count;
    const char **cluster; /* (count) in the file's bytes; or NULL */
    size_t *line;         /* (count) where that stands */
} reading;

static fds_status take_line(reading *r, fds__scanner *scan, bool is_first, fds_error *err) {
    fds__field fields[2];
    size_t line = scan->line, p = 0;
    TRY(fds__scan_pair(scan, "a provider and its cluster", fields, err));
    const char *name = fds__field_text(&fields[0]), *cluster = fds__field_text(&fields[1]);
    while (p < r->count && strcmp(r->names[p], name) != 0)
        p++;
    if (p == r->count && is_first && strcmp(name, "provider") == 0)
        return FDS_OK;
    if (p == r->count)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: %s has no provider \"%.100s\"",
                         r->path, line, r->source, name);
    if (r->cluster[p])
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: \"%.100s\" is in line %zu already",
                         r->path, line, name, r->line[p]);
    if (!*cluster)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: \"%.100s\" has no cluster", r->path,
                         line, name);
    r->cluster[p] = cluster;
    r->line[p] = line;
    return FDS_OK;
}

fds_status fds__clusters_parse(const fds__blob *file, const char *source, char *const *names,
                               size_t count, uint32_t *first_of, fds_error *err) {
    OWNED const char **cluster = NULL;
    OWNED size_t *line = NULL;
    fds__scanner scan;
    TRY(NEW(cluster, count, err));
    TRY(NEW(line, count, err));
    reading r = {file->path, source, names, count, cluster, line};
    TRY(fds__scan_begin(file, ',', &scan, err));
    for (bool is_first = true; fds__scan_line(&scan); is_first = false)
        TRY(take_line(&r, &scan, is_first, err));
    for (size_t p = 0; p < count; p++) {
        size_t q = 0;
        while (q < p && (!cluster[p] || !cluster[q] || strcmp(cluster[p], cluster[q]) != 0))
            q++;
        first_of[p] = (uint32_t)q;
    }
    return FDS_OK;
}

const char *fds__cluster_name(char *const *names, const uint32_t *first_of, size_t count,
                              size_t first, char out[FDS__CLUSTER_NAME]) {
    size_t used = 0, members = 0;
    bool is_short = true;
    for (size_t p = first; p < count; p++) {
        if (first_of[p] != first)
            continue;
        is_short &= used + strlen(names[p]) + 3 <= MOST_NAME;
        if (is_short)
            used += (size_t)snprintf(out + used, MOST_NAME + 1 - used, "%s%s", members ? " + " : "",
                                     names[p]);
        members++;
    }
    if (!is_short)
        snprintf(out, FDS__CLUSTER_NAME, "%.*s + %zu others", MOST_NAME, names[first], members - 1);
    return members > 1 ? out : names[first];
}

/* ---- of a dataset ---- */

fds_status fds__clusters_join(fds_dataset *ds, const uint32_t *first_of, fds_error *err) {
    OWNED uint32_t *new_of = NULL, *ids = NULL;
    fds__names names = {0};
    TRY(NEW(new_of, ds->providers, err));
    TRY(NEW(ids, ds->count, err));
    fds_status status = FDS_OK;
    for (uint32_t p = 0; p < ds->providers && status == FDS_OK; p++) {
        char name[FDS__CLUSTER_NAME];
        new_of[p] = first_of[p] < p ? new_of[first_of[p]] : (uint32_t)names.count;
        if (first_of[p] < p)
            continue;
        status = fds__names_add(
            &names, fds__cluster_name(ds->provider_names, first_of, ds->providers, p, name), err);
    }
    if (status != FDS_OK) {
        fds__names_free(&names);
        return status;
    }
    for (size_t i = 0; i < ds->count; i++)
        ids[i] = new_of[ds->provider_ids[i]];
    ds->member_ids = ds->provider_ids;
    ds->member_names = ds->provider_names;
    ds->members = ds->providers;
    ds->provider_ids = ids;
    ds->provider_names = names.items;
    ds->providers = (uint32_t)names.count;
    ids = NULL;
    return FDS_OK;
}

fds_status fds__clusters_apply(const char *path, fds_dataset *ds, fds_error *err) {
    OWNED uint32_t *first_of = NULL;
    OWNED uint8_t *data = NULL;
    size_t size;
    if (!ds->provider_ids)
        return fds__fail(err, FDS_ERR_USAGE, "`cluster`: %s names no providers", ds->source);
    TRY(NEW(first_of, ds->providers, err));
    TRY(fds__file_read(path, FDS__MAX_CLUSTERS, &data, &size, err));
    const fds__blob file = {.path = path, .data = data, .size = size};
    TRY(fds__clusters_parse(&file, ds->source, ds->provider_names, ds->providers, first_of, err));
    return fds__clusters_join(ds, first_of, err);
}
