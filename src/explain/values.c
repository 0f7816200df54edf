/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of an unfinished fit, so that a killed process does not solve again. Little-endian:
 *
 *     16 bytes  "fds-values 1", padded with 0
 *      8        key: a checksum of everything that the values depend on
 *      8        players, then 8: columns
 *     80        the report of least squares: pairs and features, then eight doubles
 *      8        checksum of all that is before it and of what follows
 *               values (players, columns), errors (players, columns): doubles
 *
 * The file is written beside its name and renamed, so it is whole or not there; one with another key or
 * checksum is computed again. It is removed when the fit is complete. */
#include "explain/run.h"

#include <string.h>

#define NAME "values.part"
double fds__values_kept_s = 2;

typedef struct {
    char format[16];
    uint64_t key, players, columns;
    uint64_t counts[2];
    double strengths[8];
    uint64_t checksum;
} header;

static header header_of(uint64_t key, size_t players, size_t columns, const fds_ls_report *r) {
    return (header){.format = "fds-values 1",
                    .key = key,
                    .players = players,
                    .columns = columns,
                    .counts = {r->pairs, r->features},
                    .strengths = {r->ridge, r->ridge_fit, r->ridge_rest, r->shrink, r->shrink_rest,
                                  r->control, r->explained, 0}};
}

static uint64_t checksum(const header *h, const double *values, const double *errors) {
    size_t size = (size_t)h->players * (size_t)h->columns * sizeof *values;
    const uint64_t sums[] = {fds_checksum(h, offsetof(header, checksum)),
                             fds_checksum(values, size), fds_checksum(errors, size)};
    return fds_checksum(sums, sizeof sums);
}

static fds_status write_all(const char *path, const header *h, const double *values,
                            const double *errors, const fds_events *events, fds_error *err) {
    size_t size = (size_t)h->players * (size_t)h->columns * sizeof *values;
    fds__out *out;
    TRY(fds__out_open(path, &out, err));
    fds__out_hear(out, sizeof *h + 2 * size, events);
    fds_status status = fds__out_write(out, h, sizeof *h, err);
    if (status == FDS_OK)
        status = fds__out_write(out, values, size, err);
    if (status == FDS_OK)
        status = fds__out_write(out, errors, size, err);
    if (status == FDS_OK)
        return fds__out_commit(out, err);
    fds__out_abort(out);
    return status;
}

fds_status fds__values_keep(const char *dir, uint64_t key, size_t players, size_t columns,
                            const fds_ls_report *report, const double *values, const double *errors,
                            const fds_events *events, fds_error *err) {
    char path[FDS__PATH_MAX];
    uint64_t disk_free;
    header h = header_of(key, players, columns, report);
    TRY(fds__path_join(path, sizeof path, dir, NAME, err));
    TRY(fds__disk_free(dir, &disk_free, err));
    if (disk_free / 2 < 2 * players * columns * sizeof *values) {
        fds__log(events, FDS_LOG_INFO, "%s: not written, the disk has little space left", path);
        return FDS_OK;
    }
    h.checksum = checksum(&h, values, errors);
    return write_all(path, &h, values, errors, events, err);
}

/* Whether the file is what header and key say. */
static bool is_whole(const header *h, uint64_t key, size_t players, size_t columns, uint64_t size,
                     const uint8_t *map) {
    size_t bytes = players * columns * sizeof(double);
    if (size != sizeof *h + 2 * bytes)
        return false;
    const double *values = (const double *)(const void *)(map + sizeof *h);
    return memcmp(h->format, "fds-values 1\0\0\0", sizeof h->format) == 0 && h->key == key &&
           h->players == players && h->columns == columns &&
           h->checksum == checksum(h, values, values + players * columns);
}

static fds_status read_all(fds__file *file, uint64_t key, size_t players, size_t columns,
                           fds_ls_report *report, double *values, double *errors, bool *is_found,
                           fds_error *err) {
    size_t bytes = players * columns * sizeof *values;
    const uint8_t *map = NULL;
    uint64_t size;
    header h;
    TRY(fds__file_size(file, &size, err));
    if (size < sizeof h)
        return FDS_OK;
    TRY(fds__file_map(file, (size_t)size, &map, err));
    memcpy(&h, map, sizeof h);
    *is_found = is_whole(&h, key, players, columns, size, map);
    if (*is_found) {
        memcpy(values, map + sizeof h, bytes);
        memcpy(errors, map + sizeof h + bytes, bytes);
        *report = (fds_ls_report){.pairs = (size_t)h.counts[0],
                                  .features = (size_t)h.counts[1],
                                  .ridge = h.strengths[0],
                                  .ridge_fit = h.strengths[1],
                                  .ridge_rest = h.strengths[2],
                                  .shrink = h.strengths[3],
                                  .shrink_rest = h.strengths[4],
                                  .control = h.strengths[5],
                                  .explained = h.strengths[6]};
    }
    fds__file_unmap(map, (size_t)size);
    return FDS_OK;
}

fds_status fds__values_find(const char *dir, uint64_t key, size_t players, size_t columns,
                            fds_ls_report *report, double *values, double *errors, bool *is_found,
                            fds_error *err) {
    char path[FDS__PATH_MAX];
    fds__file file;
    *is_found = false;
    TRY(fds__path_join(path, sizeof path, dir, NAME, err));
    TRY(fds__out_sweep(path, err));
    if (!fds__path_exists(path))
        return FDS_OK;
    TRY(fds__file_open(&file, path, FDS__ACCESS_READ, err));
    fds_status status =
        read_all(&file, key, players, columns, report, values, errors, is_found, err);
    fds__file_close(&file);
    return status;
}

fds_status fds__values_forget(const char *dir, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, dir, NAME, err));
    return fds__path_exists(path) ? fds__file_remove(path, err) : FDS_OK;
}
