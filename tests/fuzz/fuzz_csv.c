/* SPDX-License-Identifier: Apache-2.0
 * CSV: a training table, then a test table; an empty second one means that there is none. The size
 * of the input chooses the options. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fds__blob tables[2];
    fds_dataset *parts[2] = {NULL, NULL};
    fds_error err = {0};
    const fds__data_options options = {.id_column = size % 5 == 1 ? "id" : NULL,
                                       .drop = size % 5 == 2 ? "x,y" : NULL,
                                       .categorical = size % 5 == 3 ? "x" : NULL,
                                       .missing = (fds__missing)(size % 3)};
    fuzz_pair(data, size, &tables[0], &tables[1]);
    fds_status status = fds__csv_parse(tables, tables[1].size ? 2 : 1, &options, NULL, parts, &err);
    fuzz_use(status, parts[0], parts[1]);
    free(tables[0].data);
    free(tables[1].data);
    return 0;
}
