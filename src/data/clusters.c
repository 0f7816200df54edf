/* SPDX-License-Identifier: Apache-2.0
 * Providers that count as one. The file is what fds audit duplicates writes:
 *
 *     provider,cluster        the first line is a header
 *     clinic A,clinic A       providers with the same cluster become one, "clinic A + clinic B";
 *     clinic B,clinic A       those that are not listed stay as they are */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

static const size_t MAX_FILE = (size_t)64 << 20; /* bytes */
enum { MOST_NAME = 200 };

typedef struct {
    const char *path;
    fds_dataset *ds;
    const char **cluster; /* (providers) in the file's bytes; or NULL */
    size_t *line;         /* (providers) where that stands */
} reading;

static uint32_t find_provider(const fds_dataset *ds, const char *name) {
    uint32_t p = 0;
    while (p < ds->providers && strcmp(ds->provider_names[p], name) != 0)
        p++;
    return p;
}

static fds_status take_line(reading *r, fds__scanner *scan, bool is_first, fds_error *err) {
    fds__field fields[2];
    size_t line = scan->line;
    TRY(fds__scan_pair(scan, "a provider and its cluster", fields, err));
    const char *name = fds__field_text(&fields[0]), *cluster = fds__field_text(&fields[1]);
    uint32_t p = find_provider(r->ds, name);
    if (p == r->ds->providers && is_first && strcmp(name, "provider") == 0)
        return FDS_OK;
    if (p == r->ds->providers)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: %s has no provider \"%.100s\"",
                         r->path, line, r->ds->source, name);
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

/* "A + B", or "A + 5 others" where that is long. */
static void name_cluster(const reading *r, uint32_t first, char out[MOST_NAME + 64]) {
    size_t used = 0, count = 0;
    for (uint32_t q = first; q < r->ds->providers; q++) {
        if (q != first &&
            (!r->cluster[first] || !r->cluster[q] || strcmp(r->cluster[q], r->cluster[first]) != 0))
            continue;
        const char *name = r->ds->provider_names[q];
        if (used + strlen(name) + 3 <= MOST_NAME)
            used += (size_t)snprintf(out + used, MOST_NAME + 1 - used, "%s%s", count ? " + " : "",
                                     name);
        count++;
    }
    if (count > 1 && used == strlen(r->ds->provider_names[first]))
        snprintf(out + used, 64, " + %zu others", count - 1);
}

static fds_status apply(const reading *r, fds_error *err) {
    fds_dataset *ds = r->ds;
    OWNED uint32_t *new_of = NULL;
    char **copy = NULL;
    fds__names names = {0};
    TRY(NEW(new_of, ds->providers, err));
    fds_status status = FDS_OK;
    for (uint32_t p = 0; p < ds->providers && status == FDS_OK; p++) {
        char name[MOST_NAME + 64];
        uint32_t q = 0;
        while (q < p &&
               (!r->cluster[p] || !r->cluster[q] || strcmp(r->cluster[p], r->cluster[q]) != 0))
            q++;
        new_of[p] = q < p ? new_of[q] : (uint32_t)names.count;
        if (q < p)
            continue;
        name_cluster(r, p, name);
        status = fds__names_add(&names, name, err);
    }
    if (status == FDS_OK)
        status = fds__names_copy(names.items, names.count, &copy, err);
    if (status == FDS_OK) {
        for (size_t i = 0; i < ds->count; i++)
            ds->provider_ids[i] = new_of[ds->provider_ids[i]];
        fds__dir_list_free(ds->provider_names, ds->providers);
        ds->provider_names = copy;
        ds->providers = (uint32_t)names.count;
    }
    fds__names_free(&names);
    return status;
}

fds_status fds__clusters_apply(const char *path, fds_dataset *ds, fds_error *err) {
    OWNED uint8_t *data = NULL;
    OWNED const char **cluster = NULL;
    OWNED size_t *line = NULL;
    size_t size;
    fds__scanner scan;
    if (!ds->provider_ids)
        return fds__fail(err, FDS_ERR_USAGE, "`cluster`: %s names no providers", ds->source);
    TRY(fds__file_read(path, MAX_FILE, &data, &size, err));
    TRY(NEW(cluster, ds->providers, err));
    TRY(NEW(line, ds->providers, err));
    reading r = {path, ds, cluster, line};
    const fds__blob file = {path, data, size};
    TRY(fds__scan_begin(&file, ',', &scan, err));
    for (bool is_first = true; fds__scan_line(&scan); is_first = false)
        TRY(take_line(&r, &scan, is_first, err));
    return apply(&r, err);
}
