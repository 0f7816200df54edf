/* SPDX-License-Identifier: Apache-2.0
 * The checkpoint of an explainer's training. Its checksum is put right first, and it is asked for
 * with the settings that it says itself; a good one is put into a network, written and read again.
 */
#include "small_run.h"

enum { OUTPUTS = CLASSES * PLAYERS, KEYS = 6 };

static fds__deep *networks[2]; /* [1]: warming up */

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    fds_error err;
    for (int warm_up = 0; warm_up < 2; warm_up++) {
        const fds__deep_params params = {.network = "linear",
                                         .head = warm_up ? FDS__HEAD_CLASSIFY : FDS__HEAD_EXPLAIN,
                                         .input = SHAPE,
                                         .outputs = warm_up ? CLASSES : OUTPUTS,
                                         .batch = 2,
                                         .threads = 1};
        fuzz_ok(fds__deep_create(&params, &networks[warm_up], &err), &err);
    }
    fuzz_dir_make();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    return fuzz_mutate_file(data, size, most, seed);
}

/* ---- the checksum, as checkpoint.c has it ---- */

static uint64_t chain(uint64_t sum, const void *data, size_t size) {
    const uint64_t both[2] = {sum, fds_checksum(data, size)};
    return fds_checksum(both, sizeof both);
}

static uint64_t sum_tensor(const fds__tensor *t) {
    size_t size = sizeof(float);
    for (uint32_t d = 0; d < t->rank; d++)
        size *= t->dims[d];
    return chain(fds_checksum(t->name, strlen(t->name)), t->values, size);
}

/* false: a key is missing */
static bool sum_file(const fds__safetensors *file, uint64_t *sum) {
    static const char *const keys[KEYS] = {"format", "text", "stage", "epoch", "steps", "metrics"};
    *sum = 0;
    for (size_t i = 0; i < fds__safetensors_count(file); i++)
        *sum += sum_tensor(fds__safetensors_tensor(file, i));
    for (size_t i = 0; i < KEYS; i++) {
        const char *value = fds__safetensors_meta(file, keys[i]);
        if (!value)
            return false;
        *sum = chain(*sum, value, strlen(value));
    }
    return true;
}

/* Puts the checksum right, where the bytes are a safetensors file with one. Returns the text that
 * the checkpoint says it is of, for the caller to free. */
static char *repair(uint8_t *data, size_t size) {
    static const char key[] = "\"checksum\":\"";
    fds__safetensors *file = NULL;
    uint64_t sum;
    uint8_t *copy = fds__alloc(size + 1);
    if (!copy)
        abort();
    memcpy(copy, data, size + 1);
    if (fds__safetensors_parse("checkpoint", copy, size, &file, NULL) != FDS_OK)
        return strdup("");
    const char *text = fds__safetensors_meta(file, "text");
    char *result = strdup(text ? text : ""), hex[17];
    uint8_t *at = memmem(data, size, key, strlen(key));
    if (sum_file(file, &sum) && at && (size_t)(data + size - at) >= strlen(key) + 16) {
        snprintf(hex, sizeof hex, "%016llx", (unsigned long long)sum);
        memcpy(at + strlen(key), hex, 16);
    }
    fds__safetensors_free(file);
    return result;
}

/* ---- reading ---- */

static void use(const char *path, const char *text, const learn_checkpoint *c) {
    fds__deep *net = networks[c->is_warm_up];
    learn_weights best = {0};
    learn_checkpoint again;
    fds_error err = {0};
    fuzz_ok(learn_weights_take(&best, net, &err), &err);
    if (learn_checkpoint_restore(path, c, net, c->is_warm_up ? NULL : &best, &err) == FDS_OK) {
        const learn_state state = {text, c->is_warm_up, c->epoch, net, &best, c->metrics};
        fuzz_ok(learn_checkpoint_write(path, &state, NULL, &err), &err);
        fuzz_ok(learn_checkpoint_read(path, text, &again, &err), &err);
        if (again.epoch != c->epoch || again.steps != c->steps ||
            again.is_warm_up != c->is_warm_up ||
            (c->epoch && !c->is_warm_up &&
             memcmp(again.metrics, c->metrics, c->epoch * sizeof *c->metrics) != 0))
            abort();
        learn_checkpoint_free(&again);
    } else if (!err.text[0]) {
        abort();
    }
    learn_weights_free(&best);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fds__blob file = fuzz_blob("checkpoint", data, size);
    char *text = repair(file.data, size);
    const char *path = fuzz_path("checkpoint.safetensors");
    learn_checkpoint checkpoint;
    fds_error err = {0};
    if (!text)
        abort();
    fuzz_write(path, file.data, size);
    if (learn_checkpoint_read(path, text, &checkpoint, &err) == FDS_OK) {
        use(path, text, &checkpoint);
        learn_checkpoint_free(&checkpoint);
    } else if (!err.text[0]) {
        abort();
    }
    free(text);
    free(file.data);
    return 0;
}
