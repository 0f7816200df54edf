/* SPDX-License-Identifier: Apache-2.0
 *
 * A segment: a file NNNNN.seg of a table's folder, numbered from 00000. It is a file of records as
 * record.c specifies them.
 *
 *   header, 64 bytes
 *      0  8  "fds-seg\n"
 *      8  4  version, 1
 *     12  4  store: 0 f32, 1 f16
 *     16  4  number of the segment
 *     20  4  players
 *     24  4  inputs
 *     28  4  classes
 *     32  8  size of a record
 *     40  8  records of a full segment
 *     48  8  checksum of the utility function's parameters, as table.json has them
 *     56  8  checksum of bytes 0 to 55
 *   record; W = ceil(players / 64)
 *      0  8      id of the coalition
 *      8  8 W    the coalition: player i is bit i % 64 of word i / 64
 *        ...     probabilities, f32 or f16: [inputs][classes]
 *        ...     zeros up to a multiple of 8
 *        8       checksum of the bytes before it
 */
#include "utility/table.h"

#include <math.h>
#include <stdlib.h>

#define MAGIC "fds-seg\n"
#define VERSION 1u

/* ---- layout ---- */

fds_status fds__layout_make(size_t players, size_t inputs, uint32_t classes, fds_store store,
                            fds__layout *layout, fds_error *err) {
    size_t values, size;
    if (!players || !inputs || !classes)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a table must have players, inputs and classes, not %zu, %zu and %u",
                         players, inputs, classes);
    if (store != FDS_STORE_F32 && store != FDS_STORE_F16)
        return fds__fail(err, FDS_ERR_USAGE, "a table stores f32 (0) or f16 (1), not %d",
                         (int)store);
    if (players > FDS__MAX_PLAYERS)
        return fds__fail(err, FDS_ERR_LIMIT, "%zu players, at most %zu are allowed", players,
                         FDS__MAX_PLAYERS);
    if (inputs > UINT32_MAX || !fds__mul(inputs, classes, &values) ||
        !fds__mul(values, store == FDS_STORE_F16 ? 2 : 4, &size) || size > FDS__MAX_RECORD)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "%zu inputs of %u classes make a record of more than %zu bytes", inputs,
                         classes, FDS__MAX_RECORD);
    size_t words = fds_coalition_words(players);
    *layout = (fds__layout){.players = players,
                            .words = words,
                            .inputs = inputs,
                            .values = values,
                            .classes = classes,
                            .store = store,
                            .record_size = 8 + 8 * words + (size + 7) / 8 * 8 + 8};
    return FDS_OK;
}

/* ---- names and headers ---- */

void fds__segment_name(uint32_t number, char name[16]) { snprintf(name, 16, "%05u.seg", number); }

bool fds__segment_number(const char *name, uint32_t *number) {
    char right[16];
    *number = (uint32_t)strtoul(name, NULL, 10);
    fds__segment_name(*number, right);
    return *number < FDS__MAX_SEGMENTS && strcmp(name, right) == 0;
}

/* A damaged header is written again: the name of the file says what it is. */
static fds_status permit(const fds__record_form *form, const char *path, const uint8_t *header,
                         fds__found found, fds_error *err) {
    (void)header;
    uint32_t number;
    if (found == FDS__FOUND_DAMAGED)
        return FDS_OK;
    memcpy(&number, form->header + 16, 4);
    return fds__fail(err, FDS_ERR_FORMAT,
                     "%s is not segment %u of this table: it has the header of another; move it "
                     "out of the folder",
                     path, number);
}

fds__record_form fds__segment_form(const fds__layout *layout, uint32_t number) {
    fds__record_form form = {.header_size = FDS__SEGMENT_HEADER,
                             .record_size = layout->record_size,
                             .records = layout->records,
                             .permit = permit};
    uint8_t *header = form.header;
    memcpy(header, MAGIC, 8);
    fds__put32(header + 8, VERSION);
    fds__put32(header + 12, layout->store);
    fds__put32(header + 16, number);
    fds__put32(header + 20, layout->players);
    fds__put32(header + 24, layout->inputs);
    fds__put32(header + 28, layout->classes);
    fds__put64(header + 32, layout->record_size);
    fds__put64(header + 40, layout->records);
    fds__put64(header + 48, layout->parameters);
    fds__record_seal(header, FDS__SEGMENT_HEADER);
    return form;
}

/* ---- records ---- */

static size_t values_at(const fds__layout *layout) { return 8 + 8 * layout->words; }

fds_status fds__segment_put(const fds__layout *layout, const uint64_t *coalition,
                            const float *probs, uint8_t *record, fds_error *err) {
    uint8_t *values = record + values_at(layout);
    fds__put64(record, fds_coalition_id(coalition, layout->players));
    memcpy(record + 8, coalition, 8 * layout->words);
    fds__put64(record + layout->record_size - 16, 0); /* the padding, if there is any */
    for (size_t i = 0; i < layout->values; i++) {
        if (!isfinite(probs[i]))
            return fds__fail(err, FDS_ERR_DIVERGED,
                             "input %zu: the answer for label %zu is not a finite number",
                             i / layout->classes, i % layout->classes);
        if (layout->store == FDS_STORE_F32)
            memcpy(values + 4 * i, &probs[i], 4);
        else
            memcpy(values + 2 * i, &(uint16_t){fds__half_from_float(probs[i])}, 2);
    }
    fds__record_seal(record, layout->record_size);
    return FDS_OK;
}

bool fds__segment_check(const fds__layout *layout, const uint8_t *record) {
    size_t tail = layout->players % 64;
    const uint64_t *bits = fds__segment_coalition(record);
    return fds__get64(record) == fds_coalition_id(bits, layout->players) &&
           !(tail && bits[layout->words - 1] >> tail);
}

void fds__segment_get(const fds__layout *layout, const uint8_t *record, size_t first, size_t count,
                      double *out) {
    assert(first <= layout->values && count <= layout->values - first);
    const void *values = record + values_at(layout);
    const float *singles = values;
    const uint16_t *halves = values;
    if (layout->store == FDS_STORE_F32)
        for (size_t i = 0; i < count; i++)
            out[i] = (double)singles[first + i];
    else
        for (size_t i = 0; i < count; i++)
            out[i] = fds__half_to_double(halves[first + i]);
}
