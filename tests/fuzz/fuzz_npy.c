/* SPDX-License-Identifier: Apache-2.0
 * NPY: values, then labels. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fds__blob values, labels;
    fds_dataset *ds = NULL;
    fds_error err = {0};
    fuzz_pair(data, size, &values, &labels);
    fds_status status = fds__npy_parse(&values, &labels, &ds, &err);
    fuzz_use(status, ds, NULL);
    free(values.data);
    free(labels.data);
    return 0;
}
