/* SPDX-License-Identifier: Apache-2.0
 *
 * A segment: a file NNNNN.seg of a table's folder, numbered from 00000. All numbers little-endian.
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
 *     48  8  checksum of the value function's parameters, as table.json explains
 *     56  8  checksum of bytes 0 to 55
 *   records, each of the same size, a multiple of 8; W = ceil(players / 64)
 *      0  8      id of the coalition
 *      8  8 W    the coalition: player i is bit i % 64 of word i / 64
 *        ...     probabilities, f32 or f16: [inputs][classes]
 *        ...     zeros up to a multiple of 8
 *        8       checksum of the record's bytes before it
 *
 * Checksums are XXH3, 64 bits. A record whose id and checksum are both 0 was never written: records
 * are written in any order, and what lies before one may still be a hole.
 */
#include "utility/table.h"

#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "segments are written as memory is");

#define MAGIC "fds-seg\n"
#define VERSION 1u

/* ---- layout ---- */

fds_status fds__layout_make(size_t players, size_t inputs, uint32_t classes, fds_store store,
                            fds__layout *layout, fds_error *err) {
    size_t values, size;
    if (!players || !inputs || !classes)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a table needs players, inputs and classes, not %zu, %zu and %u", players,
                         inputs, classes);
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
    uint32_t value = 0;
    for (int i = 0; i < 5; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(name[i] - '0');
    }
    *number = value;
    return strcmp(name + 5, ".seg") == 0;
}

static void put32(uint8_t *at, size_t value) {
    uint32_t narrow = (uint32_t)value;
    memcpy(at, &narrow, sizeof narrow);
}
static void put64(uint8_t *at, uint64_t value) { memcpy(at, &value, sizeof value); }
static uint64_t get64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

void fds__segment_header(const fds__layout *layout, uint32_t number, uint8_t *header) {
    memcpy(header, MAGIC, 8);
    put32(header + 8, VERSION);
    put32(header + 12, layout->store);
    put32(header + 16, number);
    put32(header + 20, layout->players);
    put32(header + 24, layout->inputs);
    put32(header + 28, layout->classes);
    put64(header + 32, layout->record_size);
    put64(header + 40, layout->records);
    put64(header + 48, layout->parameters);
    put64(header + 56, fds_checksum(header, 56));
}

fds__found fds__segment_check_header(const fds__layout *layout, uint32_t number,
                                     const uint8_t *header) {
    static const uint8_t zeros[FDS__SEGMENT_HEADER];
    uint8_t right[FDS__SEGMENT_HEADER];
    fds__segment_header(layout, number, right);
    if (memcmp(header, right, sizeof right) == 0)
        return FDS__FOUND_GOOD;
    if (memcmp(header, zeros, sizeof zeros) == 0)
        return FDS__FOUND_EMPTY;
    return get64(header + 56) == fds_checksum(header, 56) ? FDS__FOUND_FOREIGN : FDS__FOUND_DAMAGED;
}

/* ---- records ---- */

static size_t values_at(const fds__layout *layout) { return 8 + 8 * layout->words; }

fds_status fds__record_write(const fds__layout *layout, const uint64_t *coalition,
                             const float *probs, uint8_t *record, fds_error *err) {
    uint8_t *values = record + values_at(layout);
    put64(record, fds_coalition_id(coalition, layout->players));
    memcpy(record + 8, coalition, 8 * layout->words);
    put64(record + layout->record_size - 16, 0); /* what of it is no value is padding */
    for (size_t i = 0; i < layout->values; i++) {
        if (!isfinite(probs[i]))
            return fds__fail(err, FDS_ERR_DIVERGED,
                             "input %zu: the answer for label %zu is no number",
                             i / layout->classes, i % layout->classes);
        if (layout->store == FDS_STORE_F32)
            memcpy(values + 4 * i, &probs[i], 4);
        else
            memcpy(values + 2 * i, &(uint16_t){fds__half_from_float(probs[i])}, 2);
    }
    size_t end = layout->record_size - 8;
    put64(record + end, fds_checksum(record, end));
    return FDS_OK;
}

fds__found fds__record_check(const fds__layout *layout, const uint8_t *record, uint64_t *id) {
    size_t end = layout->record_size - 8, tail = layout->players % 64;
    uint64_t sum = get64(record + end);
    *id = get64(record);
    if (*id == 0 && sum == 0)
        return FDS__FOUND_EMPTY;
    const uint64_t *bits = fds__record_coalition(record);
    if (sum != fds_checksum(record, end) || *id != fds_coalition_id(bits, layout->players))
        return FDS__FOUND_DAMAGED;
    if (tail && bits[layout->words - 1] >> tail)
        return FDS__FOUND_DAMAGED;
    return FDS__FOUND_GOOD;
}

void fds__record_read(const fds__layout *layout, const uint8_t *record, size_t first, size_t count,
                      double *out) {
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
