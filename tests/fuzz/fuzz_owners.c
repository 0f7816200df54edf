/* SPDX-License-Identifier: Apache-2.0
 * Owners of three samples with names: CSV lines or an NPY array. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char names[][8] = {"a/1.png", "a/2.png", "b/1.png"};
    fds__blob file = fuzz_blob("owners", data, size);
    fds_dataset *ds = NULL;
    fds_error err = {0};
    char *items[] = {names[0], names[1], names[2]};
    const float values[] = {1, 2, 3};
    const uint16_t labels[] = {0, 1, 0};
    fds_status status =
        fds__dataset_create(3, (fds_shape){1, 1, 1}, NULL, values, labels, 2, NULL, &ds, &err);
    if (status == FDS_OK)
        status = fds__names_copy(items, 3, &ds->sample_names, &err);
    if (status == FDS_OK)
        fds__owners_parse(&file, NULL, ds, &err);
    fds_dataset_free(ds);
    free(file.data);
    return 0;
}
