/* SPDX-License-Identifier: Apache-2.0
 * An explainer's two files: the network, and the standard errors of its values. What was read,
 * written and read again answers with the same bits. */
#include "small_run.h"

enum { FILES = 2, VALUES = CLASSES * PLAYERS };

static fds_groups *groups;

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    const uint32_t group_of[PLAYERS] = {0, 1, 0, 1};
    fds_error err;
    fuzz_ok(fds_groups_create(group_of, PLAYERS, NULL, &groups, &err), &err);
    fuzz_dir_make();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    return fuzz_mutate_one(data, size, most, seed, FILES);
}

static fds_status load(const char *path, fds__explainer **out, fds_error *err) {
    return fds__explainer_load(path, PLAYERS, CLASSES, SHAPE, groups, 1, out, err);
}

static void use_explainer(fds__explainer *explainer) {
    const float x[FEATURES] = {0.5f, -2};
    float values[VALUES], values_again[VALUES];
    const char *path = fuzz_path("again.safetensors");
    fds__explainer *again = NULL;
    fds_error err;
    fuzz_ok(fds__explainer_run(explainer, x, 1, NULL, values, &err), &err);
    fuzz_ok(fds__explainer_save(explainer, path, NULL, &err), &err);
    fuzz_ok(load(path, &again, &err), &err);
    fuzz_ok(fds__explainer_run(again, x, 1, NULL, values_again, &err), &err);
    if (memcmp(values, values_again, sizeof values) != 0)
        abort();
    fds__explainer_free(again);
}

static void use_calibration(const fds__calibration *calibration) {
    for (size_t i = 0; i < 2 * VALUES; i++)
        if (!(calibration->errors[i] >= 0))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_part parts[FILES];
    fds__explainer *explainer = NULL;
    fds__calibration calibration;
    fds_error err = {0};
    fuzz_unpack(data, size, parts, FILES);
    fuzz_write(fuzz_path(FDS__RUN_EXPLAINER), parts[0].data, parts[0].size);
    if (load(fuzz_path(FDS__RUN_EXPLAINER), &explainer, &err) == FDS_OK)
        use_explainer(explainer);
    else if (!err.text[0])
        abort();
    fds__explainer_free(explainer);
    fuzz_write(fuzz_path(FDS__RUN_ERRORS), parts[1].data, parts[1].size);
    if (fds__calibration_load(fuzz_path(FDS__RUN_ERRORS), CLASSES, PLAYERS, &calibration, &err) ==
        FDS_OK)
        use_calibration(&calibration);
    fds__calibration_free(&calibration);
    return 0;
}
