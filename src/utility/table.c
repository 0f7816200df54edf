/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of utilities on disk: opening it, and checking all that is there.
 *
 * A folder: table.json (describe.c), segments (segment.c), and .lock, an empty file that whoever
 * uses the table has locked. Every record is read once on opening. What is whole is entered in the
 * index; all else is an empty slot, and an empty slot is filled as if it had never been written:
 *
 *   a hole, a file that ends before the record, a missing file      silently
 *   a record whose checksum, id or bits do not agree                with a warning
 *   a record of a coalition that an earlier slot has                with a warning
 *
 * Part of a record at the end of a file is what a dying process leaves, and is cut off. A damaged
 * header is written again. Only a header that is whole, but of another table, is an error: that
 * file was put there by somebody, and is not ours to overwrite.
 */
#include "utility/table.h"

#include <string.h>

#define READ_BYTES ((size_t)1 << 20) /* records are checked in runs of about so many bytes */
#define SYNC_EVERY_S 5.0

/* ---- slots ---- */

bool fds__table_is_filled(const fds_table *table, uint64_t slot) {
    return slot < table->filled_slots && (table->filled[slot / 64] >> (slot % 64) & 1);
}

fds_status fds__table_reserve(fds_table *table, uint64_t slots, fds_error *err) {
    if (slots > FDS__MAX_SLOTS)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: %llu records, at most %llu are allowed",
                         table->dir, (unsigned long long)slots, (unsigned long long)FDS__MAX_SLOTS);
    size_t words = table->filled_slots / 64, needed = (size_t)(slots + 63) / 64;
    void *filled = table->filled;
    if (needed <= words)
        return FDS_OK;
    size_t capacity = words;
    TRY(fds__grow(&filled, &capacity, needed, sizeof *table->filled, err));
    table->filled = filled;
    memset(table->filled + words, 0, (capacity - words) * sizeof *table->filled);
    table->filled_slots = capacity * 64;
    return FDS_OK;
}

void fds__table_mark(fds_table *table, uint64_t slot) {
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
    const fds_events *events;
    fds__file file;
    uint32_t number;
    uint64_t size;
    uint8_t *buffer;
    size_t buffer_records;
} checker;

static fds_status check_header(checker *c, fds_error *err) {
    uint8_t header[FDS__SEGMENT_HEADER] = {0};
    if (c->size >= sizeof header)
        TRY(fds__file_read_at(&c->file, header, sizeof header, 0, err));
    fds__found found = fds__segment_check_header(&c->table->layout, c->number, header);
    if (found == FDS__FOUND_GOOD)
        return FDS_OK;
    if (found == FDS__FOUND_FOREIGN)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s is not segment %u of this table: its header is whole, but of another; "
                         "take it out of the folder",
                         c->file.path, c->number);
    if (found == FDS__FOUND_DAMAGED)
        fds__log(c->events, FDS_LOG_WARNING, "%s: the header is damaged; written again",
                 c->file.path);
    fds__segment_header(&c->table->layout, c->number, header);
    TRY(fds__file_write_at(&c->file, header, sizeof header, 0, err));
    c->size = MAX(c->size, sizeof header);
    return fds__file_sync(&c->file, err);
}

/* Cuts off what is no whole record. */
static fds_status check_size(checker *c, uint64_t *records, fds_error *err) {
    const fds__layout *layout = &c->table->layout;
    *records = MIN((c->size - FDS__SEGMENT_HEADER) / layout->record_size, layout->records);
    uint64_t end = FDS__SEGMENT_HEADER + *records * layout->record_size;
    if (end == c->size)
        return FDS_OK;
    if (*records == layout->records)
        fds__log(c->events, FDS_LOG_WARNING, "%s: %llu bytes after the last record; cut off",
                 c->file.path, (unsigned long long)(c->size - end));
    return fds__file_truncate(&c->file, end, err);
}

static void check_record(checker *c, uint64_t record, const uint8_t *bytes) {
    fds_table *table = c->table;
    uint64_t id, slot = (uint64_t)c->number * table->layout.records + record;
    fds__found found = fds__record_check(&table->layout, bytes, &id);
    if (found == FDS__FOUND_EMPTY)
        return;
    if (found == FDS__FOUND_GOOD && fds__slot_map_add(&table->index, id, (uint32_t)slot)) {
        fds__table_mark(table, slot);
        return;
    }
    fds__log(c->events, FDS_LOG_WARNING, "%s: record %llu (byte %llu) %s", c->file.path,
             (unsigned long long)record,
             (unsigned long long)fds__layout_offset(&table->layout, slot),
             found == FDS__FOUND_GOOD ? "repeats an earlier one; not used"
                                      : "is damaged; computed again when asked for");
}

static fds_status check_records(checker *c, fds_error *err) {
    fds_table *table = c->table;
    size_t size = table->layout.record_size;
    uint64_t records;
    TRY(check_size(c, &records, err));
    TRY(fds__table_reserve(table, (uint64_t)c->number * table->layout.records + records, err));
    TRY(fds__slot_map_reserve(&table->index, table->index.count + (size_t)records, err));
    for (uint64_t first = 0; first < records; first += c->buffer_records) {
        size_t count = (size_t)MIN(records - first, (uint64_t)c->buffer_records);
        TRY(fds__file_read_at(&c->file, c->buffer, count * size, FDS__SEGMENT_HEADER + first * size,
                              err));
        for (size_t i = 0; i < count; i++)
            check_record(c, first + i, c->buffer + i * size);
    }
    return FDS_OK;
}

static fds_status check_segment(checker *c, const char *name, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, c->table->dir, name, err));
    TRY(fds__file_open(&c->file, path, FDS__ACCESS_UPDATE, err));
    fds_status status = fds__file_size(&c->file, &c->size, err);
    if (status == FDS_OK)
        status = check_header(c, err);
    if (status == FDS_OK)
        status = check_records(c, err);
    fds__file_close(&c->file);
    c->table->segments = c->number + 1;
    return status;
}

/* All segments among the names, which are sorted; five digits each, so by number as well. */
static fds_status check_segments(fds_table *table, char **names, size_t count,
                                 const fds_events *events, fds_error *err) {
    size_t size = table->layout.record_size, run = MAX(READ_BYTES / size, (size_t)1);
    checker c = {.table = table, .events = events, .buffer_records = run};
    c.buffer = fds__alloc(run * size);
    if (!c.buffer)
        return fds__fail_nomem(err, run * size);
    fds_status status = FDS_OK;
    double start_s = fds__now_s();
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        if (fds__segment_number(names[i], &c.number))
            status = check_segment(&c, names[i], err);
        if (status == FDS_OK)
            status = fds__report(events, "check", "files", i + 1, count, start_s, err);
    }
    fds__free(c.buffer);
    return status;
}

/* ---- opening ---- */

/* FDS_ERR_USAGE for a folder with things in it, none of which is table.json. */
static fds_status list_folder(const char *dir, char ***names, size_t *count, bool *is_new,
                              fds_error *err) {
    TRY(fds__dir_list(dir, names, count, err));
    *is_new = *count == 0;
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*names)[i], "table.json") == 0)
            return FDS_OK;
    if (*is_new)
        return FDS_OK;
    fds_status status = fds__fail(err, FDS_ERR_USAGE,
                                  "%s holds \"%.100s\" but no table.json: it is no table of "
                                  "utilities; name another folder",
                                  dir, (*names)[0]);
    fds__dir_list_free(*names, *count);
    return status;
}

/* Looks before it locks, so that nothing is left in a folder that is not ours. */
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
    return fds__describe_write(table->dir, table->value, &table->layout, err);
}

static fds_status open_locked(fds_table *table, const fds_events *events, fds_error *err) {
    char **names, path[FDS__PATH_MAX];
    size_t count;
    bool is_new;
    TRY(fds__path_join(path, sizeof path, table->dir, "table.json", err));
    TRY(fds__out_sweep(path, err));
    TRY(list_folder(table->dir, &names, &count, &is_new, err));
    fds_status status = is_new ? begin(table, err)
                               : fds__describe_check(table->dir, table->value, &table->layout, err);
    if (status == FDS_OK)
        status = check_segments(table, names, count, events, err);
    fds__dir_list_free(names, count);
    return status;
}

fds_status fds__table_open_sized(const char *dir, const fds_utility *value, fds_store store,
                                 size_t segment_bytes, const fds_events *events, fds_table **out,
                                 fds_error *err) {
    fds__layout layout;
    if (!*dir || strlen(dir) >= FDS__PATH_MAX)
        return fds__fail(err, FDS_ERR_USAGE, "\"%.100s\" is not the name of a folder", dir);
    TRY(fds__layout_make(value->players, value->inputs, value->classes, store, &layout, err));
    size_t room = MAX(segment_bytes, (size_t)FDS__SEGMENT_HEADER) - FDS__SEGMENT_HEADER;
    layout.records = MAX(room / layout.record_size, (size_t)1);
    fds_table *table = fds__alloc_zero(1, sizeof *table);
    if (!table)
        return fds__fail_nomem(err, sizeof *table);
    table->value = value;
    table->layout = layout;
    table->lock.fd = -1;
    table->synced_s = fds__now_s();
    table->sync_every_s = SYNC_EVERY_S;
    strcpy(table->dir, dir);
    fds_status status = lock_folder(table, err);
    if (status == FDS_OK)
        status = open_locked(table, events, err);
    if (status != FDS_OK) {
        fds_table_free(table);
        return status;
    }
    *out = table;
    return FDS_OK;
}

fds_status fds_table_open(const char *dir, const fds_utility *value, fds_store store,
                          const fds_events *events, fds_table **out, fds_error *err) {
    return fds__table_open_sized(dir, value, store, FDS__SEGMENT_BYTES, events, out, err);
}

void fds_table_free(fds_table *table) {
    if (!table)
        return;
    fds__table_sync(table, NULL); /* only what a failure left: whoever fills syncs as well */
    fds__file_close(&table->lock);
    fds__slot_map_free(&table->index);
    fds__free(table->filled);
    fds__free(table);
}

const fds_utility *fds__table_utility(const fds_table *table) { return table->value; }
size_t fds__table_count(const fds_table *table) { return table->index.count; }
fds_store fds__table_store(const fds_table *table) { return table->layout.store; }

fds_status fds__table_bytes(const fds_utility *value, fds_store store, size_t coalitions,
                            uint64_t *bytes, fds_error *err) {
    fds__layout layout;
    TRY(fds__layout_make(value->players, value->inputs, value->classes, store, &layout, err));
    *bytes = FDS__SEGMENT_HEADER + (uint64_t)coalitions * layout.record_size;
    return FDS_OK;
}
