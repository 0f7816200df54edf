/* SPDX-License-Identifier: Apache-2.0
 * From a coalition's id to its slot. Ids are checksums, so their low bits serve as the hash. */
#include "utility/utility.h"

typedef struct fds__slot_map_entry {
    uint64_t id;
    uint32_t slot;
    bool used;
} entry;

/* The entry of an id, or the free one where it would be. */
static entry *place_of(const fds__slot_map *map, uint64_t id) {
    size_t mask = map->capacity - 1, at = (size_t)id & mask;
    while (map->entries[at].used && map->entries[at].id != id)
        at = (at + 1) & mask;
    return &map->entries[at];
}

fds_status fds__slot_map_reserve(fds__slot_map *map, size_t count, fds_error *err) {
    size_t capacity = MAX(map->capacity, (size_t)16);
    while (capacity / 4 * 3 < count)
        capacity *= 2;
    if (capacity == map->capacity)
        return FDS_OK;
    fds__slot_map grown = {fds__alloc_zero(capacity, sizeof(entry)), 0, capacity};
    if (!grown.entries)
        return fds__fail_nomem(err, capacity * sizeof(entry));
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].used)
            fds__slot_map_add(&grown, map->entries[i].id, map->entries[i].slot);
    fds__slot_map_free(map);
    *map = grown;
    return FDS_OK;
}

bool fds__slot_map_add(fds__slot_map *map, uint64_t id, uint32_t slot) {
    entry *place = place_of(map, id);
    if (place->used)
        return false;
    *place = (entry){id, slot, true};
    map->count++;
    return true;
}

bool fds__slot_map_find(const fds__slot_map *map, uint64_t id, uint32_t *slot) {
    if (!map->capacity)
        return false;
    const entry *place = place_of(map, id);
    if (place->used)
        *slot = place->slot;
    return place->used;
}

void fds__slot_map_free(fds__slot_map *map) {
    fds__free(map->entries);
    *map = (fds__slot_map){0};
}

fds_status fds__slot_map_number(fds__slot_map *map, const fds_plan *plan, uint32_t *of_row,
                                fds_error *err) {
    size_t rows = fds_plan_rows(plan);
    assert(!map->count && rows <= FDS__MAX_ROWS);
    TRY(fds__slot_map_reserve(map, rows, err));
    for (size_t row = 0; row < rows; row++) {
        uint64_t id = fds_coalition_id(fds_plan_coalition(plan, row), fds_plan_players(plan));
        uint32_t slot = (uint32_t)map->count;
        if (!fds__slot_map_add(map, id, slot))
            fds__slot_map_find(map, id, &slot);
        if (of_row)
            of_row[row] = slot;
    }
    return FDS_OK;
}
