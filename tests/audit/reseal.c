/* SPDX-License-Identifier: Apache-2.0
 *
 * usage: reseal RUN
 * Lets a run vouch for the files that it now has. */
#include "base/base.h"

#include <stdio.h>

static fds_status sum(const char *run, const char *name, json_t *sums, fds_error *err) {
    char path[FDS__PATH_MAX], hex[65];
    OWNED uint8_t *data = NULL;
    size_t size;
    TRY(fds__path_join(path, sizeof path, run, name, err));
    TRY(fds__file_read(path, 1 << 24, &data, &size, err));
    fds_sha256_hex(data, size, hex);
    return json_object_set_new(sums, name, json_string(hex)) == 0 ? FDS_OK : fds__fail_json(err);
}

static fds_status reseal(const char *run, fds_error *err) {
    char path[FDS__PATH_MAX];
    json_t *record = NULL;
    const char *name;
    json_t *old;
    TRY(fds__path_join(path, sizeof path, run, "run.json", err));
    TRY(fds__json_read(path, 1 << 24, &record, err));
    json_t *sums = json_object_get(json_object_get(record, "results"), "sha256");
    fds_status status = sum(run, "validation.json", sums, err);
    json_object_foreach(sums, name, old) {
        if (status == FDS_OK)
            status = sum(run, name, sums, err);
    }
    if (status == FDS_OK)
        status = fds__json_seal(record) ? fds__json_write(run, "run.json", record, err)
                                        : fds__fail_json(err);
    json_decref(record);
    return status;
}

int main(int argc, char **argv) {
    fds_error err;
    if (argc == 2 && reseal(argv[1], &err) == FDS_OK)
        return 0;
    fprintf(stderr, "reseal: %s\n", argc == 2 ? err.text : "usage: reseal RUN");
    return 1;
}
