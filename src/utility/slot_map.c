/* SPDX-License-Identifier: Apache-2.0
 * Which coalition lies in which slot. Ids are checksums, so their low bits serve as the hash. */
#include "utility/table.h"

typedef struct fds__slot_map_entry {
    uint64_t id;
    uint32_t slot;
    bool used;
} entry;

/* The entry of an id, or the free one where it would be. */
static entry *place_of(const fds__slot_map *index, uint64_t id) {
    size_t mask = index->capacity - 1, at = (size_t)id & mask;
    while (index->entries[at].used && index->entries[at].id != id)
        at = (at + 1) & mask;
    return &index->entries[at];
}

fds_status fds__slot_map_reserve(fds__slot_map *index, size_t count, fds_error *err) {
    size_t capacity = MAX(index->capacity, (size_t)16);
    while (capacity / 4 * 3 < count)
        capacity *= 2;
    if (capacity == index->capacity)
        return FDS_OK;
    fds__slot_map grown = {fds__alloc_zero(capacity, sizeof(entry)), 0, capacity};
    if (!grown.entries)
        return fds__fail_nomem(err, capacity * sizeof(entry));
    for (size_t i = 0; i < index->capacity; i++)
        if (index->entries[i].used)
            fds__slot_map_add(&grown, index->entries[i].id, index->entries[i].slot);
    fds__slot_map_free(index);
    *index = grown;
    return FDS_OK;
}

bool fds__slot_map_add(fds__slot_map *index, uint64_t id, uint32_t slot) {
    entry *place = place_of(index, id);
    if (place->used)
        return false;
    *place = (entry){id, slot, true};
    index->count++;
    return true;
}

bool fds__slot_map_find(const fds__slot_map *index, uint64_t id, uint32_t *slot) {
    if (!index->capacity)
        return false;
    const entry *place = place_of(index, id);
    if (place->used)
        *slot = place->slot;
    return place->used;
}

void fds__slot_map_free(fds__slot_map *index) {
    fds__free(index->entries);
    *index = (fds__slot_map){0};
}
