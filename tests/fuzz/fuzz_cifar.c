/* SPDX-License-Identifier: Apache-2.0
 * CIFAR-10: two batches. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fds__blob batches[2];
    fds_dataset *ds = NULL;
    fds_error err = {0};
    fuzz_pair(data, size, &batches[0], &batches[1]);
    fds_status status = fds__cifar_parse(batches, batches[1].size ? 2 : 1, &ds, &err);
    fuzz_use(status, ds, NULL);
    free(batches[0].data);
    free(batches[1].data);
    return 0;
}
