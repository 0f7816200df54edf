/* SPDX-License-Identifier: Apache-2.0
 *
 * usage: reseal RUN [quick]
 * Lets a run vouch for the files that it now has; quick: by the quick checksums alone, as a forger might. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

static fds_status set(json_t *sums, const char *name, const char *hex, fds_error *err) {
    return json_object_set_new(sums, name, json_string(hex)) == 0 ? FDS_OK : fds__fail_json(err);
}

/* The checksums of a file. */
static fds_status sum(const char *run, const char *name, bool is_quick, json_t *results,
                      fds_error *err) {
    char path[FDS__PATH_MAX], hex[65];
    TRY(fds__path_join(path, sizeof path, run, name, err));
    TRY(fds__file_sha256(path, hex, err));
    if (!is_quick)
        TRY(set(json_object_get(results, "sha256"), name, hex, err));
    TRY(fds__file_checksum(path, hex, err));
    return set(json_object_get(results, "xxh3"), name, hex, err);
}

static fds_status reseal(const char *run, bool is_quick, fds_error *err) {
    char path[FDS__PATH_MAX];
    json_t *record = NULL;
    const char *name;
    json_t *old;
    TRY(fds__path_join(path, sizeof path, run, "run.json", err));
    TRY(fds__json_read(path, 1 << 24, &record, err));
    json_t *results = json_object_get(record, "results");
    fds_status status = sum(run, "validation.json", is_quick, results, err);
    json_object_foreach(json_object_get(results, "sha256"), name, old) {
        if (status == FDS_OK)
            status = sum(run, name, is_quick, results, err);
    }
    if (status == FDS_OK)
        status = fds__json_seal(record) ? fds__json_write(run, "run.json", record, err)
                                        : fds__fail_json(err);
    json_decref(record);
    return status;
}

int main(int argc, char **argv) {
    fds_error err;
    bool is_right = argc == 2 || (argc == 3 && strcmp(argv[2], "quick") == 0);
    if (is_right && reseal(argv[1], argc == 3, &err) == FDS_OK)
        return 0;
    fprintf(stderr, "reseal: %s\n", is_right ? err.text : "usage: reseal RUN [quick]");
    return 1;
}
