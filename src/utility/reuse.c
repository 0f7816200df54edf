/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of a table of other players or of more inputs, where these are the same sub-models.
 *
 * A coalition's record is taken if the other table has every member, with the same samples. Its bits
 * become those of this table's players, its answers those for this table's inputs. It goes to the slot
 * that a fill of an empty table gives it (fill.c), so that the bytes in the end are those of a table
 * that was filled alone. */
#include "utility/table.h"

/* The segment of a table that is open. */
typedef struct {
    const fds_table *table;
    fds__file file;
    uint32_t number;
} cursor;

typedef struct {
    fds_table *into;
    cursor from, to;
    const fds__reuse *map;
    uint64_t *bits;        /* (words of from) */
    uint8_t *old, *record; /* records of from and of into */
    float *probs;          /* (values of into) */
    double *values;        /* (values of from) */
} copier;

bool fds__reuse_coalition(const fds__reuse *map, size_t players, const uint64_t *bits,
                          uint64_t *out) {
    memset(out, 0, fds_coalition_words(map->from_players) * sizeof *out);
    for (size_t p = 0; p < players; p++) {
        if (!fds_coalition_has(bits, p))
            continue;
        if (map->players[p] == FDS__UNKNOWN)
            return false;
        fds__coalition_add(out, map->players[p]);
    }
    return true;
}

static fds_status enter(cursor *c, uint64_t slot, fds__access access, fds_error *err) {
    const fds__layout *layout = &c->table->layout;
    uint32_t number = (uint32_t)(slot / layout->records);
    char path[FDS__PATH_MAX];
    uint64_t size;
    if (c->file.fd >= 0 && c->number == number)
        return FDS_OK;
    fds__file_close(&c->file);
    TRY(fds__table_segment_path(c->table, number, path, err));
    TRY(fds__file_open(&c->file, path, access, err));
    c->number = number;
    if (access == FDS__ACCESS_READ)
        return FDS_OK;
    TRY(fds__file_size(&c->file, &size, err));
    if (size >= FDS__SEGMENT_HEADER)
        return FDS_OK;
    fds__record_form form = fds__segment_form(layout, number);
    return fds__record_begin(&c->file, &form, err);
}

/* The record of from, with the coalition and the inputs of into. */
static fds_status convert(copier *c, const uint64_t *coalition, uint32_t slot, fds_error *err) {
    const fds__layout *from = &c->from.table->layout, *to = &c->into->layout;
    TRY(enter(&c->from, slot, FDS__ACCESS_READ, err));
    TRY(fds__file_read_at(&c->from.file, c->old, from->record_size, fds__layout_offset(from, slot),
                          err));
    if (fds__record_check(c->old, from->record_size) != FDS__FOUND_GOOD ||
        memcmp(fds__segment_coalition(c->old), c->bits, from->words * sizeof *c->bits) != 0)
        return fds__fail(err, FDS_ERR_CORRUPT, "%s: record %zu has changed since it was opened",
                         c->from.file.path, slot % from->records);
    fds__segment_get(from, c->old, 0, from->values, c->values);
    for (size_t x = 0; x < to->inputs; x++)
        for (uint32_t y = 0; y < to->classes; y++)
            c->probs[x * to->classes + y] =
                (float)c->values[(c->map->inputs ? c->map->inputs[x] : x) * to->classes + y];
    return fds__segment_put(to, coalition, c->probs, c->record, err);
}

static fds_status copy(copier *c, const uint64_t *coalition, uint64_t id, uint32_t slot,
                       uint64_t to, fds_error *err) {
    fds_table *into = c->into;
    const fds__layout *layout = &into->layout;
    if (fds__table_is_filled(into, to))
        return FDS_OK; /* by another plan: the fill finds a place */
    TRY(convert(c, coalition, slot, err));
    TRY(fds__table_reserve(into, to + 1, err));
    TRY(fds__slot_map_reserve(&into->index, into->index.count + 1, err));
    TRY(enter(&c->to, to, FDS__ACCESS_CREATE, err));
    TRY(fds__file_write_at(&c->to.file, c->record, layout->record_size,
                           fds__layout_offset(layout, to), err));
    fds__slot_map_add(&into->index, id, (uint32_t)to);
    fds__table_mark(into, to);
    into->segments = MAX(into->segments, c->to.number + 1);
    into->unsynced = into->unsynced_end ? MIN(into->unsynced, c->to.number) : c->to.number;
    into->unsynced_end = MAX(into->unsynced_end, c->to.number + 1);
    return FDS_OK;
}

static fds_status prepare(copier *c, fds_error *err) {
    const fds__layout *from = &c->from.table->layout, *to = &c->into->layout;
    TRY(NEW(c->bits, from->words, err));
    TRY(NEW(c->probs, to->values, err));
    TRY(NEW(c->values, from->values, err));
    c->old = fds__alloc_aligned(from->record_size);
    c->record = fds__alloc_aligned(to->record_size);
    return c->old && c->record ? FDS_OK : fds__fail_nomem(err, from->record_size);
}

/* is_look: only counts. */
static fds_status take(copier *c, const fds_plan *plan, bool is_look, fds__slot_map *seen,
                       const fds_events *events, size_t *reused, fds_error *err) {
    const size_t players = fds_plan_players(plan), rows = fds_plan_rows(plan);
    const double start_s = fds__now_s();
    TRY(fds__slot_map_reserve(seen, rows, err));
    for (size_t row = 0; row < rows; row++) {
        const uint64_t *coalition = fds_plan_coalition(plan, row);
        uint64_t id = fds_coalition_id(coalition, players), to = seen->count;
        uint32_t slot, there;
        if (!fds__slot_map_add(seen, id, 0) ||
            !fds__reuse_coalition(c->map, players, coalition, c->bits) ||
            !fds__slot_map_find(&c->from.table->index,
                                fds_coalition_id(c->bits, c->map->from_players), &slot))
            continue;
        ++*reused;
        if (!is_look && !fds__slot_map_find(&c->into->index, id, &there))
            TRY(copy(c, coalition, id, slot, to, err));
        TRY(fds__report(events, "reuse", "sub-models", row + 1, rows, start_s, err));
    }
    return FDS_OK;
}

fds_status fds__table_reuse(fds_table *into, const fds_plan *plan, const fds_table *from,
                            const fds__reuse *map, bool is_look, const fds_events *events,
                            size_t *reused, fds_error *err) {
    assert(map->from_players == from->layout.players);
    assert(map->inputs || into->layout.inputs == from->layout.inputs);
    copier c = {.into = into, .from = {.table = from}, .to = {.table = into}, .map = map};
    fds__slot_map seen = {0};
    c.from.file.fd = c.to.file.fd = -1;
    *reused = 0;
    fds_status status = prepare(&c, err);
    if (status == FDS_OK)
        status = take(&c, plan, is_look, &seen, events, reused, err);
    fds_status synced = fds__table_sync(into, status == FDS_OK ? err : NULL);
    fds__file_close(&c.from.file);
    fds__file_close(&c.to.file);
    fds__slot_map_free(&seen);
    fds__free(c.bits);
    fds__free(c.old);
    fds__free(c.record);
    fds__free(c.probs);
    fds__free(c.values);
    return status == FDS_OK ? synced : status;
}
