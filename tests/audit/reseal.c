/* SPDX-License-Identifier: Apache-2.0
 *
 * usage: reseal RUN
 * Lets a run vouch for the validation.json that it now has. */
#include "base/base.h"

#include <stdio.h>

static fds_status reseal(const char *run, fds_error *err) {
    char path[FDS__PATH_MAX], hex[65];
    OWNED uint8_t *data = NULL;
    size_t size;
    json_t *record = NULL;
    TRY(fds__path_join(path, sizeof path, run, "validation.json", err));
    TRY(fds__file_read(path, 1 << 20, &data, &size, err));
    fds_sha256_hex(data, size, hex);
    TRY(fds__path_join(path, sizeof path, run, "run.json", err));
    TRY(fds__json_read(path, 1 << 24, &record, err));
    json_t *sums = json_object_get(json_object_get(record, "results"), "sha256");
    json_object_set_new(sums, "validation.json", json_string(hex));
    fds_status status = fds__json_seal(record) ? fds__json_write(run, "run.json", record, err)
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
