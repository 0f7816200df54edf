/* SPDX-License-Identifier: Apache-2.0
 * A model's file: the safetensors format, and the metadata that makes it a model. */
#include "fuzz_files.h"
#include "model/model.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    return fuzz_mutate_file(data, size, most, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fds_model *model = NULL;
    fds_error err = {0};
    fds__blob file = fuzz_blob("model", data, size);
    if (fds__model_parse(file.path, file.data, file.size, &model, &err) == FDS_OK) {
        fds__model_info info = fds__model_get_info(model);
        if (!fds_model_class_name(model, info.classes - 1) || !info.weights)
            abort();
    }
    fds_model_free(model);
    return 0;
}
