/* SPDX-License-Identifier: Apache-2.0
 * A table's files. When the first byte is '{': table.json. Else a segment, for a layout that the
 * first four bytes choose: it is repaired, and what counts as good is read; a second repair then
 * finds nothing to do and the same records. */
#include "fuzz_files.h"
#include "utility/table.h"

typedef struct {
    const fds__layout *layout;
    double *values; /* (values) */
    size_t taken;
} use;

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    fuzz_dir_make();
    return 0;
}

static fds_status take(void *context, uint64_t number, const uint8_t *record, const char **fault,
                       fds_error *err) {
    (void)number, (void)fault, (void)err;
    use *u = context;
    if (fds__segment_check(u->layout, record) &&
        fds__get64(record) != fds_coalition_id(fds__segment_coalition(record), u->layout->players))
        abort();
    fds__segment_get(u->layout, record, 0, u->layout->values, u->values);
    u->taken++;
    return FDS_OK;
}

static fds_status repair(const fds__layout *layout, use *u, uint64_t *size) {
    fds__record_form form = fds__segment_form(layout, 0);
    fds__file file;
    fds_error err = {0};
    form.take = take;
    form.context = u;
    u->taken = 0;
    if (fds__file_open(&file, fuzz_path("00000.seg"), FDS__ACCESS_UPDATE, &err) != FDS_OK)
        abort();
    fds_status status = fds__record_repair(&file, &form, NULL, &err);
    if (fds__file_size(&file, size, &err) != FDS_OK)
        abort();
    fds__file_close(&file);
    return status;
}

static void use_segment(const fds__layout *layout, const uint8_t *data, size_t size) {
    use u = {layout, malloc(layout->values * sizeof *u.values), 0};
    uint64_t before, after;
    if (!u.values)
        abort();
    fuzz_write(fuzz_path("00000.seg"), data, size);
    if (repair(layout, &u, &before) == FDS_OK) {
        size_t taken = u.taken;
        if (repair(layout, &u, &after) != FDS_OK || u.taken != taken || before != after ||
            (after - FDS__SEGMENT_HEADER) % layout->record_size != 0)
            abort();
    }
    free(u.values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fds__layout layout;
    fds_error err = {0};
    char text[] = "{\"kind\":\"fake\"}";
    fds_utility value = {.players = 7, .inputs = 3, .classes = 2, .text = text};
    if (size < 4)
        return 0;
    if (data[0] == '{') {
        if (fds__layout_make(7, 3, 2, FDS_STORE_F32, &layout, &err) == FDS_OK)
            (void)fds__describe_parse("table.json", data, size, &value, &layout, &err);
        return 0;
    }
    if (fds__layout_make(data[0], data[1], data[2], data[3] % 2 ? FDS_STORE_F16 : FDS_STORE_F32,
                         &layout, &err) == FDS_OK) {
        layout.records = 5;
        if (size >= 4 + FDS__SEGMENT_HEADER) /* so that the header may be right */
            layout.parameters = fds__get64(data + 4 + 48);
        use_segment(&layout, data + 4, size - 4);
    }
    return 0;
}
