/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of utilities on disk: opening it, and checking all of its records.
 *
 * A folder: table.json (describe.c), segments (segment.c), and .lock, an empty file that the
 * process using the table locks. Opening reads every record once, as record.c describes. The index
 * receives the good ones. All other slots are empty, and the next fill may use them:
 *
 *   a hole, the part of a file behind its end, a missing file           silently
 *   a record whose checksum, id or players are wrong                    with a warning
 *   a record of a coalition that an earlier slot has                    with a warning
 */
#include "utility/table.h"

/* ---- slots ---- */

bool fds__table_is_filled(const fds_table *table, uint64_t slot) {
    return slot < table->filled_slots && (table->filled[slot / 64] >> (slot % 64) & 1);
}

fds_status fds__table_reserve(fds_table *table, uint64_t slots, fds_error *err) {
    if (slots > FDS__MAX_SLOTS)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: %llu records, at most %llu are allowed",
                         table->dir, (unsigned long long)slots, (unsigned long long)FDS__MAX_SLOTS);
    size_t words = table->filled_slots / 64, capacity = words;
    void *filled = table->filled;
    TRY(fds__grow(&filled, &capacity, (size_t)(slots + 63) / 64, sizeof *table->filled, err));
    table->filled = filled;
    if (capacity > words)
        memset(table->filled + words, 0, (capacity - words) * sizeof *table->filled);
    table->filled_slots = capacity * 64;
    return FDS_OK;
}

void fds__table_mark(fds_table *table, uint64_t slot) {
    assert(slot < table->filled_slots);
    table->filled[slot / 64] |= (uint64_t)1 << (slot % 64);
}

fds_status fds__table_segment_path(const fds_table *table, uint32_t number, char *path,
                                   fds_error *err) {
    char name[16];
    fds__segment_name(number, name);
    return fds__path_join(path, FDS__PATH_MAX, table->dir, name, err);
}

/* ---- checking ---- */

typedef struct {
    fds_table *table;
    uint64_t first; /* slot of the segment's first record */
} checker;

static fds_status take_record(void *context, uint64_t number, const uint8_t *record,
                              const char **fault, fds_error *err) {
    const checker *c = context;
    fds_table *table = c->table;
    uint64_t slot = c->first + number;
    TRY(fds__table_reserve(table, slot + 1, err));
    TRY(fds__slot_map_reserve(&table->index, table->index.count + 1, err));
    if (!fds__segment_check(&table->layout, record))
        *fault = FDS__RECORD_DAMAGED;
    else if (!fds__slot_map_add(&table->index, fds__get64(record), (uint32_t)slot))
        *fault = "repeats an earlier record; it is not used";
    else
        fds__table_mark(table, slot);
    return FDS_OK;
}

static fds_status check_segment(fds_table *table, uint32_t number, const fds_events *events,
                                fds_error *err) {
    char path[FDS__PATH_MAX];
    fds__file file;
    checker c = {table, (uint64_t)number * table->layout.records};
    fds__record_form form = fds__segment_form(&table->layout, number);
    form.take = take_record;
    form.context = &c;
    TRY(fds__table_reserve(table, c.first, err));
    TRY(fds__table_segment_path(table, number, path, err));
    TRY(fds__file_open(&file, path, FDS__ACCESS_UPDATE, err));
    fds_status status = fds__record_repair(&file, &form, events, err);
    fds__file_close(&file);
    table->segments = number + 1;
    return status;
}

/* All segments among the names, which are sorted, and so ascend by number. */
static fds_status check_segments(fds_table *table, char **names, size_t count,
                                 const fds_events *events, fds_error *err) {
    double start_s = fds__now_s();
    uint32_t number;
    for (size_t i = 0; i < count; i++) {
        if (fds__segment_number(names[i], &number))
            TRY(check_segment(table, number, events, err));
        TRY(fds__report(events, "check", "files", i + 1, count, start_s, err));
    }
    return FDS_OK;
}

/* ---- opening ---- */

/* FDS_ERR_CONFLICT for a folder that has files, but no table.json. */
static fds_status list_folder(const char *dir, char ***names, size_t *count, bool *is_new,
                              fds_error *err) {
    TRY(fds__dir_list(dir, names, count, err));
    *is_new = *count == 0;
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*names)[i], "table.json") == 0)
            return FDS_OK;
    if (*is_new)
        return FDS_OK;
    fds_status status = fds__fail(err, FDS_ERR_CONFLICT,
                                  "%s has \"%.100s\" but no table.json: it is not a table of "
                                  "utilities; choose another folder",
                                  dir, (*names)[0]);
    fds__dir_list_free(*names, *count);
    return status;
}

/* Checks before it locks, so that a folder that is not a table stays unchanged. */
static fds_status lock_folder(fds_table *table, fds_error *err) {
    char **names, path[FDS__PATH_MAX];
    size_t count;
    bool is_new;
    TRY(fds__mkdirs(table->dir, err));
    TRY(list_folder(table->dir, &names, &count, &is_new, err));
    fds__dir_list_free(names, count);
    TRY(fds__path_join(path, sizeof path, table->dir, ".lock", err));
    TRY(fds__file_open(&table->lock, path, FDS__ACCESS_CREATE, err));
    return fds__file_lock(&table->lock, table->dir, err);
}

static fds_status begin(fds_table *table, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, table->dir, "..", err));
    TRY(fds__dir_sync(path, err)); /* the folder itself may be new */
    return fds__describe_write(table->dir, table->utility, &table->layout, err);
}

static fds_status open_locked(fds_table *table, const fds_events *events, fds_error *err) {
    char **names, path[FDS__PATH_MAX];
    size_t count;
    bool is_new;
    TRY(fds__path_join(path, sizeof path, table->dir, "table.json", err));
    TRY(fds__out_sweep(path, err));
    TRY(list_folder(table->dir, &names, &count, &is_new, err));
    fds_status status = !table->utility ? fds__describe_read(table->dir, &table->layout, NULL, err)
                        : is_new
                            ? begin(table, err)
                            : fds__describe_check(table->dir, table->utility, &table->layout, err);
    if (status == FDS_OK)
        status = check_segments(table, names, count, events, err);
    fds__dir_list_free(names, count);
    return status;
}

/* utility NULL: bare. layout: of a new table. */
static fds_status open_table(const char *dir, const fds_utility *utility, const fds__layout *layout,
                             const fds_events *events, fds_table **out, fds_error *err) {
    fds_table *table;
    if (!*dir || strlen(dir) >= FDS__PATH_MAX)
        return fds__fail(err, FDS_ERR_USAGE, "\"%.100s\" is not the name of a folder", dir);
    TRY(NEW(table, 1, err));
    table->utility = utility;
    table->layout = *layout;
    table->lock.fd = -1;
    table->synced_s = fds__now_s();
    table->sync_every_s = FDS__RECORD_SYNC_S;
    strcpy(table->dir, dir);
    fds_status status = lock_folder(table, err);
    if (status == FDS_OK)
        status = open_locked(table, events, err);
    if (status == FDS_OK)
        *out = table;
    else
        fds_table_free(table);
    return status;
}

fds_status fds__table_open_bare(const char *dir, const fds_events *events, fds_table **out,
                                fds_error *err) {
    fds__layout layout;
    TRY(fds__describe_read(dir, &layout, NULL, err));
    return open_table(dir, NULL, &layout, events, out, err);
}

fds_status fds__table_open_sized(const char *dir, const fds_utility *utility, fds_store store,
                                 size_t segment_bytes, const fds_events *events, fds_table **out,
                                 fds_error *err) {
    fds__layout layout;
    TRY(fds__layout_make(utility->players, utility->inputs, utility->classes, store, &layout, err));
    size_t space = MAX(segment_bytes, (size_t)FDS__SEGMENT_HEADER) - FDS__SEGMENT_HEADER;
    layout.records = MAX(space / layout.record_size, (size_t)1);
    return open_table(dir, utility, &layout, events, out, err);
}

fds_status fds_table_open(const char *dir, const fds_utility *utility, fds_store store,
                          const fds_events *events, fds_table **out, fds_error *err) {
    return fds__table_open_sized(dir, utility, store, FDS__SEGMENT_BYTES, events, out, err);
}

void fds_table_free(fds_table *table) {
    if (!table)
        return;
    fds__table_sync(table, NULL); /* what fds__table_fill_more left */
    fds__file_close(&table->lock);
    fds__slot_map_free(&table->index);
    fds__free(table->filled);
    fds__free(table);
}

fds_status fds__table_check_plan(const fds_table *table, const fds_plan *plan, fds_error *err) {
    if (fds_plan_players(plan) == table->layout.players)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_SHAPE, "the plan has %zu players, the table %s has %zu",
                     fds_plan_players(plan), table->dir, table->layout.players);
}

const fds_utility *fds__table_utility(const fds_table *table) { return table->utility; }
size_t fds__table_count(const fds_table *table) { return table->index.count; }
fds_store fds__table_store(const fds_table *table) { return table->layout.store; }

fds_status fds__table_bytes(const fds_utility *utility, fds_store store, size_t coalitions,
                            uint64_t *bytes, fds_error *err) {
    fds__layout layout;
    TRY(fds__layout_make(utility->players, utility->inputs, utility->classes, store, &layout, err));
    *bytes = FDS__SEGMENT_HEADER + (uint64_t)coalitions * layout.record_size;
    return FDS_OK;
}
