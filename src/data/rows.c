/* SPDX-License-Identifier: Apache-2.0
 * New samples, which have no labels: rows of a CSV file with the columns of the training data, or an
 * NPY array of samples of the same shape. */
#include "data/sheet.h"

#include <string.h>

static fds_status read_sheet(const fds__blob *file, const fds__preparation *p,
                             const fds_events *events, sheet *s, fds_dataset **out,
                             fds_error *err) {
    fds_shape shape = {(uint32_t)p->features, 1, 1};
    TRY(sheet_open(file, 0, s, err));
    TRY(sheet_prepare(s, p, err));
    TRY(sheet_read(s, FDS__MISSING_MEAN, events, err));
    TRY(fds__dataset_new(file->path, s->rows, shape, false, out, err));
    fds__prepare_apply(p, s, (*out)->floats);
    const sheet_column *id = sheet_find(s, SHEET_ID);
    return id ? fds__names_copy(id->texts.items, s->rows, &(*out)->sample_names, err) : FDS_OK;
}

static fds_status read_rows(const fds__blob *file, const fds__preparation *p,
                            const fds_events *events, fds_dataset **out, fds_error *err) {
    sheet s = {0};
    if (file->size >= 6 && memcmp(file->data, "\x93NUMPY", 6) == 0)
        return fds__npy_values(file, out, err);
    if (!p)
        return fds__fail(
            err, FDS_ERR_FORMAT,
            "%s: not an NPY file; the run was not fitted on a CSV file, so it knows no "
            "columns by name",
            file->path);
    fds_status status = read_sheet(file, p, events, &s, out, err);
    sheet_free(&s);
    return status;
}

fds_status fds__data_rows(const char *path, const fds__preparation *p, fds_shape shape,
                          uint32_t classes, const fds_events *events, fds_dataset **out,
                          fds_error *err) {
    fds__blob file = {.path = strcmp(path, "-") == 0 ? "standard input" : path};
    TRY(fds__file_read_gz(path, FDS__MAX_FILE, events, &file.data, &file.size, err));
    *out = NULL;
    fds_status status = read_rows(&file, p, events, out, err);
    fds__free(file.data);
    if (status == FDS_OK) {
        fds_shape is = (*out)->shape;
        (*out)->classes = classes;
        if (memcmp(&is, &shape, sizeof is) != 0)
            status = fds__fail(err, FDS_ERR_SHAPE,
                               "%s: samples of %u x %u x %u, but the run has %u x %u x %u",
                               file.path, is.channels, is.height, is.width, shape.channels,
                               shape.height, shape.width);
    }
    if (status == FDS_OK)
        status = fds__dataset_finish(*out, NULL, NULL, err);
    if (status != FDS_OK)
        fds__dataset_drop(out);
    return status;
}
