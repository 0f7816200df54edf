/* SPDX-License-Identifier: Apache-2.0
 * The folder of a run: run.json, the service model, the explainer, the players' samples, the
 * errors, the bank. run.json has the sha256 of most of them, and a checksum of its own. All are put
 * right first: otherwise nearly all damage would end there. What opens must answer, or say why not.
 */
#include "small_run.h"

enum { ASKED = 2, MOST_COALITIONS = 4096 };

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    fuzz_dir_make();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    return fuzz_mutate_one(data, size, most, seed, RUN_FILES);
}

/* Where run.json has the sha256 of a file, that of part. */
static void repair(char *json, const char *name, const fuzz_part *part) {
    char key[64], hex[65];
    snprintf(key, sizeof key, "\"%s\": \"", name);
    char *at = strstr(json, key);
    if (!at || strlen(at) < strlen(key) + 64)
        return;
    fds_sha256_hex(part->data, part->size, hex);
    memcpy(at + strlen(key), hex, 64);
}

/* The checksum of run.json itself, where it is JSON that has one. */
static void repair_checksum(fds__blob *file) {
    static const char key[] = "\"checksum\": \"";
    char *at = strstr((char *)file->data, key);
    json_t *json = NULL;
    if (!at || strlen(at) < strlen(key) + 16 ||
        fds__json_parse(file->path, (char *)file->data, file->size, &json, NULL) != FDS_OK)
        return;
    if (json_is_object(json) && fds__json_seal(json))
        memcpy(at + strlen(key), json_string_value(json_object_get(json, "checksum")), 16);
    json_decref(json);
}

/* A plan of millions of coalitions is honest work, but too much of it to repeat here. */
static bool is_small(const fds_run *run) {
    json_t *json = json_loads(fds_run_describe(run), 0, NULL);
    const json_t *coalitions = json_object_get(json, "coalitions");
    json_int_t count = json_integer_value(json_object_get(coalitions, "count")) +
                       json_integer_value(json_object_get(coalitions, "validation"));
    json_decref(json);
    return count <= MOST_COALITIONS;
}

static void ask(fds_run *run, fds__answerer by) {
    fds__run_info info = fds__run_get_info(run);
    size_t count = MIN(info.players, (size_t)ASKED);
    uint32_t labels[ASKED];
    double full[ASKED], empty[ASKED];
    float *probs = malloc(count * info.classes * sizeof *probs);
    double *values = malloc(count * info.players * sizeof *values);
    double *errors = malloc(count * info.players * sizeof *errors);
    fds_error err = {0};
    if (!probs || !values || !errors)
        abort();
    const fds__answers answers = {.labels = labels,
                                  .probs = probs,
                                  .full = full,
                                  .empty = empty,
                                  .values = values,
                                  .errors = errors};
    fds_status status =
        fds__run_explain(run, by, fds_run_samples(run), NULL, count, false, &answers, &err);
    if (status != FDS_OK && !err.text[0])
        abort();
    for (size_t i = 0; status == FDS_OK && i < count; i++)
        if (labels[i] >= info.classes)
            abort();
    free(probs);
    free(values);
    free(errors);
}

static void use(fds_run *run) {
    fds__run_info info = fds__run_get_info(run);
    fds_error err;
    for (size_t i = 0; i < info.players; i++) {
        (void)fds__run_player_provider(run, i);
        if (!fds__run_player_name(run, i) || fds__run_player_label(run, i) >= info.classes)
            abort();
    }
    for (uint32_t c = 0; c < info.classes; c++)
        if (!fds__run_class_name(run, c))
            abort();
    (void)fds__run_check_data(run, fds_run_samples(run), &err);
    bool is_network = strcmp(info.explainer, "bank") != 0;
    if (is_network)
        ask(run, FDS__ANSWERER_EXPLAINER);
    if ((info.has_bank || !is_network) && is_small(run))
        ask(run, FDS__ANSWERER_BANK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_part parts[RUN_FILES];
    fds_run *run = NULL;
    fds_error err = {0};
    fuzz_unpack(data, size, parts, RUN_FILES);
    fds__blob json = fuzz_blob(FDS__RUN_JSON, parts[0].data, parts[0].size);
    for (size_t i = 1; i < RUN_FILES; i++)
        repair((char *)json.data, run_files[i], &parts[i]);
    repair_checksum(&json);
    parts[0].data = json.data;
    for (size_t i = 0; i < RUN_FILES; i++)
        if (parts[i].size)
            fuzz_write(fuzz_path(run_files[i]), parts[i].data, parts[i].size);
        else
            unlink(fuzz_path(run_files[i]));
    if (fds__run_open(fuzz_dir, 1, &run, &err) == FDS_OK)
        use(run);
    else if (!err.text[0])
        abort();
    fds_run_free(run);
    free(json.data);
    return 0;
}
