/* SPDX-License-Identifier: Apache-2.0
 * A table's files: a segment's header and records for a layout of the input's choosing, or, when
 * the first byte is '{', table.json. */
#include "fuzz.h"
#include "utility/table.h"

static void use_segment(const fds__layout *layout, const uint8_t *data, size_t size) {
    double *values = malloc(layout->values * sizeof *values);
    uint64_t *record = malloc(layout->record_size); /* aligned, as records are in a segment */
    if (!values || !record)
        abort();
    for (size_t at = FDS__SEGMENT_HEADER; at + layout->record_size <= size;
         at += layout->record_size) {
        memcpy(record, data + at, layout->record_size);
        fds__found found = fds__record_check((uint8_t *)record, layout->record_size);
        bool is_right = fds__segment_check(layout, (uint8_t *)record);
        fds__segment_get(layout, (uint8_t *)record, 0, layout->values, values);
        /* what counts as good is really of its coalition */
        if (found == FDS__FOUND_GOOD && is_right &&
            record[0] != fds_coalition_id(record + 1, layout->players))
            abort();
    }
    free(values);
    free(record);
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
        use_segment(&layout, data + 4, size - 4);
    }
    return 0;
}
