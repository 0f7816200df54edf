/* SPDX-License-Identifier: Apache-2.0
 * The file of a bank, as it is or, when the first byte is odd, with all its checksums put right. It
 * is opened and asked; then it is filled, which repairs it to the very bytes of a good one or
 * refuses to touch it. */
#include "small_run.h"

enum { HEADER = 72, RECORD_SIZE_AT = 24 };

static small_task task;
static small_game game;
static fds__blob right; /* the good one */

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    fds_error err;
    fuzz_dir_make();
    task = small_task_make();
    game = small_game_make(&task);
    fuzz_ok(fds__bank_fill(fuzz_path("bank"), game.value, game.table, game.plan, 1, NULL, &err),
            &err);
    right = fuzz_read(fuzz_path("bank"));
    return 0;
}

static void put_checksum(uint8_t *from, size_t size) {
    uint64_t sum = fds_checksum(from, size);
    memcpy(from + size, &sum, sizeof sum);
}

/* The header's, and those of records of the size that they must have. */
static void repair(uint8_t *file, size_t size) {
    uint64_t record;
    memcpy(&record, right.data + RECORD_SIZE_AT, sizeof record);
    if (size >= HEADER)
        put_checksum(file, HEADER - 8);
    for (size_t at = HEADER; at + record <= size; at += record)
        put_checksum(file + at, record - 8);
}

static void ask(void) {
    const fds_ls_params params = {.adjust = FDS_ADJUST_NONE};
    const fds_ls_report strengths = {0};
    float x[FEATURES] = {0.5f, -2};
    const fds_inputs inputs = {
        .count = 1, .size = FEATURES, .shape = SHAPE, .classes = CLASSES, .values = x};
    uint32_t label = 1;
    double values[PLAYERS], errors[PLAYERS];
    fds__bank *bank = NULL;
    fds_error err = {0};
    const char *text = game.value->text;
    const fds__bank_file file = {fuzz_path("bank"), fds__utility_network(game.value),
                                 fds_checksum(text, strlen(text))};
    fds_status status = fds__bank_open(&file, game.plan, &params, &strengths, 1, &bank, &err);
    if (status == FDS_OK)
        status = fds__bank_explain(bank, &inputs, &label, NULL, values, errors, &err);
    if (status != FDS_OK && !err.text[0])
        abort();
    fds__bank_free(bank);
}

static void fill(bool is_repaired) {
    fds_error err = {0};
    if (fds__bank_fill(fuzz_path("bank"), game.value, game.table, game.plan, 1, NULL, &err) !=
        FDS_OK)
        return;
    fds__blob now = fuzz_read(fuzz_path("bank"));
    if (now.size != right.size || (!is_repaired && memcmp(now.data, right.data, now.size) != 0))
        abort();
    free(now.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size)
        return 0;
    bool is_repaired = data[0] % 2;
    fds__blob file = fuzz_blob("bank", data + 1, size - 1);
    if (is_repaired)
        repair(file.data, file.size);
    fuzz_write(fuzz_path("bank"), file.data, file.size);
    ask();
    fill(is_repaired);
    free(file.data);
    return 0;
}
