/* SPDX-License-Identifier: Apache-2.0
 * IDX: images, then labels. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fds__blob images, labels;
    fds_dataset *ds = NULL;
    fds_error err = {0};
    fuzz_pair(data, size, &images, &labels);
    fds_status status = fds__idx_parse(&images, &labels, &ds, &err);
    fuzz_use(status, ds, NULL);
    free(images.data);
    free(labels.data);
    return 0;
}
