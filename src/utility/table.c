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

bool fds_table_is_filled(const fds_table *table, uint64_t slot) {
    return slot < table->filled_slots && (table->filled[slot / 64] >> (slot % 64) & 1);
}

fds_status fds_table_reserve(fds_table *table, uint64_t slots, fds_error *err) {
    if (slots > FDS_MAX_SLOTS)
        return fds_fail(err, FDS_LIMIT, "%s: %llu records, at most %llu are allowed", table->dir,
                        (unsigned long long)slots, (unsigned long long)FDS_MAX_SLOTS);
    size_t words = table->filled_slots / 64, needed = (size_t)(slots + 63) / 64;
    void *filled = table->filled;
    if (needed <= words)
        return FDS_OK;
    size_t capacity = words;
    FDS_TRY(fds_grow(&filled, &capacity, needed, sizeof *table->filled, err));
    table->filled = filled;
    memset(table->filled + words, 0, (capacity - words) * sizeof *table->filled);
    table->filled_slots = capacity * 64;
    return FDS_OK;
}

void fds_table_mark(fds_table *table, uint64_t slot) {
    table->filled[slot / 64] |= (uint64_t)1 << (slot % 64);
}

fds_status fds_table_segment_path(const fds_table *table, uint32_t number, char *path,
                                  fds_error *err) {
    char name[16];
    fds_segment_name(number, name);
    return fds_path_join(path, FDS_PATH_MAX, table->dir, name, err);
}

/* ---- checking ---- */

typedef struct {
    fds_table *table;
    const fds_events *events;
    fds_file file;
    uint32_t number;
    uint64_t size;
    uint8_t *buffer;
    size_t buffer_records;
} checker;

static fds_status check_header(checker *c, fds_error *err) {
    uint8_t header[FDS_SEGMENT_HEADER] = {0};
    if (c->size >= sizeof header)
        FDS_TRY(fds_file_read_at(&c->file, header, sizeof header, 0, err));
    fds_found found = fds_segment_check_header(&c->table->layout, c->number, header);
    if (found == FDS_FOUND_GOOD)
        return FDS_OK;
    if (found == FDS_FOUND_FOREIGN)
        return fds_fail(err, FDS_FORMAT,
                        "%s is not segment %u of this table: its header is whole, but of another; "
                        "take it out of the folder",
                        c->file.path, c->number);
    if (found == FDS_FOUND_DAMAGED)
        fds_log(c->events, FDS_LOG_WARNING, "%s: the header is damaged; written again",
                c->file.path);
    fds_segment_header(&c->table->layout, c->number, header);
    FDS_TRY(fds_file_write_at(&c->file, header, sizeof header, 0, err));
    c->size = FDS_MAX(c->size, sizeof header);
    return fds_file_sync(&c->file, err);
}

/* Cuts off what is no whole record. */
static fds_status check_size(checker *c, uint64_t *records, fds_error *err) {
    const fds_layout *layout = &c->table->layout;
    *records = FDS_MIN((c->size - FDS_SEGMENT_HEADER) / layout->record_size, layout->records);
    uint64_t end = FDS_SEGMENT_HEADER + *records * layout->record_size;
    if (end == c->size)
        return FDS_OK;
    if (*records == layout->records)
        fds_log(c->events, FDS_LOG_WARNING, "%s: %llu bytes after the last record; cut off",
                c->file.path, (unsigned long long)(c->size - end));
    return fds_file_truncate(&c->file, end, err);
}

static void check_record(checker *c, uint64_t record, const uint8_t *bytes) {
    fds_table *table = c->table;
    uint64_t id, slot = (uint64_t)c->number * table->layout.records + record;
    fds_found found = fds_record_check(&table->layout, bytes, &id);
    if (found == FDS_FOUND_EMPTY)
        return;
    if (found == FDS_FOUND_GOOD && fds_index_add(&table->index, id, (uint32_t)slot)) {
        fds_table_mark(table, slot);
        return;
    }
    fds_log(c->events, FDS_LOG_WARNING, "%s: record %llu (byte %llu) %s", c->file.path,
            (unsigned long long)record, (unsigned long long)fds_layout_offset(&table->layout, slot),
            found == FDS_FOUND_GOOD ? "repeats an earlier one; not used"
                                    : "is damaged; computed again when asked for");
}

static fds_status check_records(checker *c, fds_error *err) {
    fds_table *table = c->table;
    size_t size = table->layout.record_size;
    uint64_t records;
    FDS_TRY(check_size(c, &records, err));
    FDS_TRY(fds_table_reserve(table, (uint64_t)c->number * table->layout.records + records, err));
    FDS_TRY(fds_index_reserve(&table->index, table->index.count + (size_t)records, err));
    for (uint64_t first = 0; first < records; first += c->buffer_records) {
        size_t count = (size_t)FDS_MIN(records - first, (uint64_t)c->buffer_records);
        FDS_TRY(fds_file_read_at(&c->file, c->buffer, count * size,
                                 FDS_SEGMENT_HEADER + first * size, err));
        for (size_t i = 0; i < count; i++)
            check_record(c, first + i, c->buffer + i * size);
    }
    return FDS_OK;
}

static fds_status check_segment(checker *c, const char *name, fds_error *err) {
    char path[FDS_PATH_MAX];
    FDS_TRY(fds_path_join(path, sizeof path, c->table->dir, name, err));
    FDS_TRY(fds_file_open(&c->file, path, FDS_UPDATE, err));
    fds_status status = fds_file_size(&c->file, &c->size, err);
    if (status == FDS_OK)
        status = check_header(c, err);
    if (status == FDS_OK)
        status = check_records(c, err);
    fds_file_close(&c->file);
    c->table->segments = c->number + 1;
    return status;
}

/* All segments among the names, which are sorted; five digits each, so by number as well. */
static fds_status check_segments(fds_table *table, char **names, size_t count,
                                 const fds_events *events, fds_error *err) {
    size_t size = table->layout.record_size, run = FDS_MAX(READ_BYTES / size, (size_t)1);
    checker c = {.table = table, .events = events, .buffer_records = run};
    c.buffer = fds_alloc(run * size);
    if (!c.buffer)
        return fds_fail_nomem(err, run * size);
    fds_status status = FDS_OK;
    double start_s = fds_now_s();
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        if (fds_segment_number(names[i], &c.number))
            status = check_segment(&c, names[i], err);
        if (status == FDS_OK)
            status = fds_report(events, "check", "files", i + 1, count, start_s, err);
    }
    fds_free(c.buffer);
    return status;
}

/* ---- opening ---- */

/* FDS_USAGE for a folder with things in it, none of which is table.json. */
static fds_status list_folder(const char *dir, char ***names, size_t *count, bool *is_new,
                              fds_error *err) {
    FDS_TRY(fds_dir_list(dir, names, count, err));
    *is_new = *count == 0;
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*names)[i], "table.json") == 0)
            return FDS_OK;
    if (*is_new)
        return FDS_OK;
    fds_status status = fds_fail(err, FDS_USAGE,
                                 "%s holds \"%.100s\" but no table.json: it is no table of "
                                 "utilities; name another folder",
                                 dir, (*names)[0]);
    fds_dir_list_free(*names, *count);
    return status;
}

/* Looks before it locks, so that nothing is left in a folder that is not ours. */
static fds_status lock_folder(fds_table *table, fds_error *err) {
    char **names, path[FDS_PATH_MAX];
    size_t count;
    bool is_new;
    FDS_TRY(fds_mkdirs(table->dir, err));
    FDS_TRY(list_folder(table->dir, &names, &count, &is_new, err));
    fds_dir_list_free(names, count);
    FDS_TRY(fds_path_join(path, sizeof path, table->dir, ".lock", err));
    FDS_TRY(fds_file_open(&table->lock, path, FDS_CREATE, err));
    return fds_file_lock(&table->lock, table->dir, err);
}

static fds_status begin(fds_table *table, fds_error *err) {
    char path[FDS_PATH_MAX];
    FDS_TRY(fds_path_join(path, sizeof path, table->dir, "..", err));
    FDS_TRY(fds_dir_sync(path, err)); /* the folder itself may be new */
    return fds_describe_write(table->dir, table->value, &table->layout, err);
}

static fds_status open_locked(fds_table *table, const fds_events *events, fds_error *err) {
    char **names, path[FDS_PATH_MAX];
    size_t count;
    bool is_new;
    FDS_TRY(fds_path_join(path, sizeof path, table->dir, "table.json", err));
    FDS_TRY(fds_out_sweep(path, err));
    FDS_TRY(list_folder(table->dir, &names, &count, &is_new, err));
    fds_status status = is_new ? begin(table, err)
                               : fds_describe_check(table->dir, table->value, &table->layout, err);
    if (status == FDS_OK)
        status = check_segments(table, names, count, events, err);
    fds_dir_list_free(names, count);
    return status;
}

fds_status fds_table_open_sized(const char *dir, const fds_value *value, fds_store store,
                                size_t segment_bytes, const fds_events *events, fds_table **out,
                                fds_error *err) {
    fds_layout layout;
    if (!*dir || strlen(dir) >= FDS_PATH_MAX)
        return fds_fail(err, FDS_USAGE, "\"%.100s\" is not the name of a folder", dir);
    FDS_TRY(fds_layout_make(value->players, value->inputs, value->classes, store, &layout, err));
    size_t room = FDS_MAX(segment_bytes, (size_t)FDS_SEGMENT_HEADER) - FDS_SEGMENT_HEADER;
    layout.records = FDS_MAX(room / layout.record_size, (size_t)1);
    fds_table *table = fds_alloc_zero(1, sizeof *table);
    if (!table)
        return fds_fail_nomem(err, sizeof *table);
    table->value = value;
    table->layout = layout;
    table->lock.fd = -1;
    table->synced_s = fds_now_s();
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

fds_status fds_table_open(const char *dir, const fds_value *value, fds_store store,
                          const fds_events *events, fds_table **out, fds_error *err) {
    return fds_table_open_sized(dir, value, store, FDS_SEGMENT_BYTES, events, out, err);
}

void fds_table_free(fds_table *table) {
    if (!table)
        return;
    fds_table_sync(table, NULL); /* only what a failure left: whoever fills syncs as well */
    fds_file_close(&table->lock);
    fds_index_free(&table->index);
    fds_free(table->filled);
    fds_free(table);
}

const fds_value *fds_table_value(const fds_table *table) { return table->value; }
size_t fds_table_count(const fds_table *table) { return table->index.count; }
fds_store fds_table_store(const fds_table *table) { return table->layout.store; }

fds_status fds_table_bytes(const fds_value *value, fds_store store, size_t coalitions,
                           uint64_t *bytes, fds_error *err) {
    fds_layout layout;
    FDS_TRY(fds_layout_make(value->players, value->inputs, value->classes, store, &layout, err));
    *bytes = FDS_SEGMENT_HEADER + (uint64_t)coalitions * layout.record_size;
    return FDS_OK;
}
