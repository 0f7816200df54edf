/* SPDX-License-Identifier: Apache-2.0
 * CIFAR-10's binary format: records of 3,073 bytes, no header.
 *
 *      0  u8  label, 0 .. 9
 *      1  u8  32 x 32 red, row after row; then green; then blue
 *
 * A file has any whole number of records, so a part of an official file is valid too. */
#include "data/data.h"

#include <string.h>

enum { SIDE = 32, PIXELS = 3 * SIDE * SIDE, RECORD = 1 + PIXELS, CLASSES = 10 };

fds_status fds__cifar_parse(const fds__blob *batches, size_t count, fds_dataset **out,
                            fds_error *err) {
    size_t records = 0;
    for (size_t b = 0; b < count; b++) {
        if (batches[b].size == 0 || batches[b].size % RECORD != 0)
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: %zu bytes are not a whole number of CIFAR-10 records of %d bytes",
                             batches[b].path, batches[b].size, RECORD);
        records += batches[b].size / RECORD;
    }
    const char *source = count ? batches[0].path : "no file";
    TRY(fds__dataset_new(source, records, (fds_shape){3, SIDE, SIDE}, true, out, err));
    fds_dataset *ds = *out;
    ds->classes = CLASSES; /* also when a class has no picture in these files */
    size_t i = 0;
    for (size_t b = 0; b < count; b++) {
        for (size_t at = 0; at < batches[b].size; at += RECORD, i++) {
            const uint8_t *record = batches[b].data + at;
            if (record[0] >= CLASSES) {
                fds__dataset_drop(out);
                return fds__fail(err, FDS_ERR_FORMAT,
                                 "%s: byte %zu (record %zu): label %u, CIFAR-10 has 0 to %d",
                                 batches[b].path, at, at / RECORD, record[0], CLASSES - 1);
            }
            ds->labels[i] = record[0];
            memcpy(ds->bytes + i * PIXELS, record + 1, PIXELS);
        }
    }
    return FDS_OK;
}
