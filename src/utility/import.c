/* SPDX-License-Identifier: Apache-2.0
 *
 * Records from other tables: the parts of a plan that other processes or machines computed.
 *
 * Every record goes to the slot that it has in its own table. Parts write to the slots that one
 * process would use (fill.c), so the table has the bytes of that process's in whatever order parts
 * come, and however often. All tables must have the same table.json,
 * and parts be of one plan (part.c). A record is taken as it is,
 * after its checksum, id and players were checked; one whose coalition the table has must be equal
 * to the bit, because utilities are functions of the coalition: a difference means that two machines
 * do not compute alike, and that is an error.
 *
 * An import that was interrupted or failed leaves whole records, and is run again.
 */
#include "utility/table.h"

#include <inttypes.h>

#define READ_BYTES ((size_t)1 << 20)

bool fds__is_table(const char *dir) {
    char path[FDS__PATH_MAX];
    return fds__path_join(path, sizeof path, dir, "table.json", NULL) == FDS_OK &&
           fds__path_exists(path);
}

fds_status fds__lock_source(const char *lock, const char *user, fds__file *out, fds_error *err) {
    out->fd = -1;
    if (!fds__path_exists(lock))
        return FDS_OK; /* a copy without hidden files */
    TRY(fds__file_open(out, lock, FDS__ACCESS_READ, err));
    fds_status status = fds__file_lock_shared(out, user, err);
    if (status != FDS_OK)
        fds__file_close(out);
    return status;
}

/* ---- reading a file of records ---- */

static fds_status check_header(fds__file *file, const fds__record_form *form, uint64_t size,
                               fds_error *err) {
    uint8_t header[FDS__RECORD_HEADER_MAX];
    if (size < form->header_size)
        return FDS_OK; /* its process was killed before the header was written */
    TRY(fds__file_read_at(file, header, form->header_size, 0, err));
    if (memcmp(header, form->header, form->header_size) == 0)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_CORRUPT,
                     "%s: its header is damaged or of another table; compute this part again",
                     file->path);
}

static fds_status read_records(fds__file *file, const fds__record_form *form, uint64_t records,
                               uint8_t *buffer, size_t run, const fds_events *events,
                               fds_error *err) {
    const double start_s = fds__now_s();
    uint64_t reported = 0;
    for (uint64_t first = 0; first < records; first += run) {
        size_t count = (size_t)MIN(records - first, (uint64_t)run);
        TRY(fds__file_read_at(file, buffer, count * form->record_size,
                              fds__record_offset(form, first), err));
        for (size_t i = 0; i < count; i++) {
            const uint8_t *record = buffer + i * form->record_size;
            const char *fault = NULL;
            fds__found found = fds__record_check(record, form->record_size);
            if (found == FDS__FOUND_GOOD)
                TRY(form->take(form->context, first + i, record, &fault, err));
            else if (found == FDS__FOUND_DAMAGED)
                fault = "is damaged";
            if (fault && form->damaged)
                ++*form->damaged;
            else if (fault)
                return fds__fail(err, FDS_ERR_CORRUPT,
                                 "%s: record %" PRIu64 " (byte %" PRIu64
                                 ") %s; run the command that computed it again",
                                 file->path, first + i, fds__record_offset(form, first + i), fault);
        }
        if ((first + count - reported) * form->record_size < FDS__RECORD_REPORT_BYTES)
            continue;
        reported = first + count;
        TRY(fds__report(events, "read", "records", reported, records, start_s, err));
    }
    return FDS_OK;
}

fds_status fds__record_read_all(fds__file *file, const fds__record_form *form,
                                const fds_events *events, fds_error *err) {
    uint64_t size;
    TRY(fds__file_size(file, &size, err));
    TRY(check_header(file, form, size, err));
    if (size < form->header_size)
        return FDS_OK;
    /* the beginning of a record at the end of the file is that of a killed process */
    uint64_t records = MIN((size - form->header_size) / form->record_size, form->records);
    if (!records)
        return FDS_OK;
    size_t run = (size_t)MIN(MAX(READ_BYTES / form->record_size, (size_t)1), records);
    OWNED uint8_t *buffer = NULL;
    TRY(NEW(buffer, run * form->record_size, err));
    return read_records(file, form, records, buffer, run, events, err);
}

/* ---- taking records ---- */

typedef struct {
    fds_table *table;
    fds__file own;       /* the segment of the table that is open */
    uint32_t own_number; /* its number */
    uint8_t *record;     /* (record_size) of the table, to compare */
    const char *path;    /* of the source's segment */
    uint64_t first;      /* slot of its first record */
    fds__imported *out;
} importer;

/* Opens a segment of the table, or makes it. */
static fds_status enter_own(importer *m, uint64_t slot, fds_error *err) {
    const fds__layout *layout = &m->table->layout;
    uint32_t number = (uint32_t)(slot / layout->records);
    char path[FDS__PATH_MAX];
    uint64_t size;
    if (m->own.fd >= 0 && m->own_number == number)
        return FDS_OK;
    fds__file_close(&m->own);
    TRY(fds__table_segment_path(m->table, number, path, err));
    TRY(fds__file_open(&m->own, path, FDS__ACCESS_CREATE, err));
    m->own_number = number;
    TRY(fds__file_size(&m->own, &size, err));
    if (size >= FDS__SEGMENT_HEADER)
        return FDS_OK;
    fds__record_form form = fds__segment_form(layout, number);
    return fds__record_begin(&m->own, &form, err);
}

/* The coalition is in the table: its record must be the same. */
static fds_status compare(importer *m, uint64_t number, uint32_t slot, const uint8_t *record,
                          fds_error *err) {
    const fds__layout *layout = &m->table->layout;
    TRY(enter_own(m, slot, err));
    TRY(fds__file_read_at(&m->own, m->record, layout->record_size, fds__layout_offset(layout, slot),
                          err));
    if (memcmp(m->record, record, layout->record_size) == 0) {
        m->out->repeated++;
        return FDS_OK;
    }
    return fds__fail(err, FDS_ERR_CORRUPT,
                     "%s: record %" PRIu64 " is of the same coalition as record %zu of %s, but its "
                     "bytes differ: the two were not computed alike; remove one of them",
                     m->path, number, slot % layout->records, m->own.path);
}

static fds_status take_record(void *context, uint64_t number, const uint8_t *record,
                              const char **fault, fds_error *err) {
    importer *m = context;
    fds_table *table = m->table;
    const fds__layout *layout = &table->layout;
    uint64_t id = fds__get64(record), slot = m->first + number;
    uint32_t there;
    if (!fds__segment_check(layout, record)) {
        *fault = "is damaged";
        return FDS_OK;
    }
    if (fds__slot_map_find(&table->index, id, &there))
        return compare(m, number, there, record, err);
    if (fds__table_is_filled(table, slot))
        return fds__fail(err, FDS_ERR_CONFLICT,
                         "%s: record %" PRIu64 " is of another coalition than the one that %s has "
                         "there: the two are of different plans",
                         m->path, number, table->dir);
    TRY(fds__table_reserve(table, slot + 1, err));
    TRY(fds__slot_map_reserve(&table->index, table->index.count + 1, err));
    TRY(enter_own(m, slot, err));
    TRY(fds__file_write_at(&m->own, record, layout->record_size, fds__layout_offset(layout, slot),
                           err));
    fds__slot_map_add(&table->index, id, (uint32_t)slot);
    fds__table_mark(table, slot);
    uint32_t segment = m->own_number;
    table->segments = MAX(table->segments, segment + 1);
    table->unsynced = table->unsynced_end ? MIN(table->unsynced, segment) : segment;
    table->unsynced_end = MAX(table->unsynced_end, segment + 1);
    m->out->taken++;
    return FDS_OK;
}

static fds_status import_segment(importer *m, const char *dir, uint32_t number, fds_error *err) {
    char name[16], path[FDS__PATH_MAX];
    fds__file file;
    fds__segment_name(number, name);
    TRY(fds__path_join(path, sizeof path, dir, name, err));
    fds__record_form form = fds__segment_form(&m->table->layout, number);
    form.take = take_record;
    form.context = m;
    m->path = path;
    m->first = (uint64_t)number * m->table->layout.records;
    TRY(fds__file_open(&file, path, FDS__ACCESS_READ, err));
    fds_status status = fds__record_read_all(&file, &form, NULL, err);
    fds__file_close(&file);
    return status;
}

static fds_status import_segments(importer *m, const char *dir, const fds_events *events,
                                  fds_error *err) {
    char **names;
    size_t count;
    uint32_t number;
    double start_s = fds__now_s();
    TRY(fds__dir_list(dir, &names, &count, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; status == FDS_OK && i < count; i++) {
        if (fds__segment_number(names[i], &number))
            status = import_segment(m, dir, number, err);
        if (status == FDS_OK)
            status = fds__report(events, "import", "files", i + 1, count, start_s, err);
    }
    fds__dir_list_free(names, count);
    return status;
}

static fds_status import_folder(importer *m, const char *dir, const fds_events *events,
                                fds_error *err) {
    char path[FDS__PATH_MAX];
    fds__file lock;
    TRY(fds__path_join(path, sizeof path, dir, ".lock", err));
    TRY(fds__lock_source(path, dir, &lock, err));
    fds_status status = import_segments(m, dir, events, err);
    fds__file_close(&lock);
    return status;
}

/* ---- all of it ---- */

/* text ends with "now", which is the second's. */
static fds_status fail_different(const char *first, const char *second, char *text,
                                 fds_error *err) {
    size_t length = strlen(text);
    if (length > 4 && strcmp(text + length - 4, " now") == 0)
        text[length - 4] = 0;
    return fds__fail(err, FDS_ERR_CONFLICT, "%s and %s are of different tables: %s in the second",
                     first, second, text);
}

/* Whether all descriptions are those of the first: names the difference. */
static fds_status check_same(const char *const *dirs, size_t count, fds_error *err) {
    json_t *first = NULL;
    fds__layout layout;
    char text[400];
    TRY(fds__describe_read(dirs[0], &layout, &first, err));
    fds_status status = FDS_OK;
    for (size_t i = 1; status == FDS_OK && i < count; i++) {
        json_t *other = NULL;
        status = fds__describe_read(dirs[i], &layout, &other, err);
        if (status == FDS_OK && (fds__json_difference(json_object_get(first, "parameters"),
                                                      json_object_get(other, "parameters"), "first",
                                                      text, sizeof text) ||
                                 fds__json_difference(first, other, "first", text, sizeof text)))
            status = fail_different(dirs[0], dirs[i], text, err);
        json_decref(other);
    }
    json_decref(first);
    return status;
}

/* Whether all folders that say of which plan their parts are say the same; the table may be a part too. */
static fds_status check_plans(const char *dir, const char *const *from, size_t count,
                              fds_error *err) {
    const char *noted = NULL; /* the first one that says it */
    for (size_t i = 0; i <= count; i++) {
        const char *next = i ? from[i - 1] : dir;
        bool is_noted;
        TRY(fds__part_compare(noted ? noted : next, next, &is_noted, err));
        if (!noted && is_noted)
            noted = next;
    }
    return FDS_OK;
}

/* With the description of another one, as it is. */
static fds_status create_table(const char *dir, const char *from, fds_error *err) {
    char path[FDS__PATH_MAX], **names;
    OWNED uint8_t *data = NULL;
    size_t files, size;
    TRY(fds__mkdirs(dir, err));
    TRY(fds__dir_list(dir, &names, &files, err));
    fds_status status =
        files ? fds__fail(err, FDS_ERR_CONFLICT,
                          "%s has \"%.100s\" but no table.json: it is not a table of utilities; "
                          "choose another folder",
                          dir, names[0])
              : FDS_OK;
    fds__dir_list_free(names, files);
    TRY(status);
    TRY(fds__dir_sync_parent(dir, err));
    TRY(fds__path_join(path, sizeof path, from, "table.json", err));
    TRY(fds__file_read(path, (size_t)16 << 20, &data, &size, err));
    TRY(fds__path_join(path, sizeof path, dir, "table.json", err));
    return fds__file_write(path, data, size, err);
}

fds_status fds__table_import_check(const char *dir, const char *const *from, size_t count,
                                   fds_error *err) {
    const char *both[2] = {from[0], dir};
    TRY(check_same(from, count, err));
    if (fds__is_table(dir))
        TRY(check_same(both, 2, err));
    return check_plans(dir, from, count, err);
}

/* A new table gets the description of its sources; an old one must have the same. */
static fds_status make_table(const char *dir, const char *const *from, size_t count,
                             fds_error *err) {
    TRY(fds__table_import_check(dir, from, count, err));
    return fds__is_table(dir) ? FDS_OK : create_table(dir, from[0], err);
}

fds_status fds__table_import(const char *dir, const char *const *from, size_t count,
                             const fds_events *events, fds__imported *out, fds_error *err) {
    *out = (fds__imported){0};
    assert(count > 0);
    TRY(make_table(dir, from, count, err));
    importer m = {.own.fd = -1, .out = out};
    TRY(fds__table_open_bare(dir, events, &m.table, err));
    m.record = fds__alloc_aligned(m.table->layout.record_size);
    fds_status status = m.record ? FDS_OK : fds__fail_nomem(err, m.table->layout.record_size);
    for (size_t i = 0; status == FDS_OK && i < count; i++)
        status = import_folder(&m, from[i], events, err);
    fds_status synced = fds__table_sync(m.table, status == FDS_OK ? err : NULL);
    fds__file_close(&m.own);
    fds__free(m.record);
    fds_table_free(m.table);
    return status == FDS_OK ? synced : status;
}

/* ---- what a table has ---- */

typedef struct {
    const fds__layout *layout;
    uint64_t first, records, damaged, end;
} counter;

static fds_status count_records(const char *dir, uint32_t number, counter *c, uint64_t *bytes,
                                fds_error *err) {
    char name[16], path[FDS__PATH_MAX];
    fds__file file;
    uint64_t size;
    OWNED uint8_t *record = NULL;
    TRY(NEW(record, c->layout->record_size, err));
    fds__segment_name(number, name);
    TRY(fds__path_join(path, sizeof path, dir, name, err));
    TRY(fds__file_open(&file, path, FDS__ACCESS_READ, err));
    fds_status status = fds__file_size(&file, &size, err);
    *bytes += status == FDS_OK ? size : 0;
    for (uint64_t i = 0; status == FDS_OK && i < c->layout->records; i++) {
        uint64_t at = FDS__SEGMENT_HEADER + i * c->layout->record_size;
        if (at + c->layout->record_size > size)
            break;
        status = fds__file_read_at(&file, record, c->layout->record_size, at, err);
        fds__found found =
            status == FDS_OK ? fds__record_check(record, c->layout->record_size) : FDS__FOUND_EMPTY;
        bool is_good = found == FDS__FOUND_GOOD && fds__segment_check(c->layout, record);
        c->records += is_good;
        c->damaged += found != FDS__FOUND_EMPTY && !is_good;
        if (is_good)
            c->end = (uint64_t)number * c->layout->records + i + 1;
    }
    fds__file_close(&file);
    return status;
}

fds_status fds__table_describe(const char *dir, const fds_events *events, json_t **out,
                               fds_error *err) {
    fds__layout layout;
    char **names;
    size_t count;
    uint32_t number;
    uint64_t bytes = 0;
    json_t *json = NULL;
    TRY(fds__describe_read(dir, &layout, &json, err));
    fds_status status = fds__dir_list(dir, &names, &count, err);
    if (status != FDS_OK) {
        json_decref(json);
        return status;
    }
    counter c = {.layout = &layout};
    const double start_s = fds__now_s();
    for (size_t i = 0; status == FDS_OK && i < count; i++) {
        if (fds__segment_number(names[i], &number))
            status = count_records(dir, number, &c, &bytes, err);
        if (status == FDS_OK)
            status = fds__report(events, "read", "files", i + 1, count, start_s, err);
    }
    fds__dir_list_free(names, count);
    bool is_whole = status == FDS_OK &&
                    fds__json_put(json, "records", json_integer((json_int_t)c.records)) &&
                    fds__json_put(json, "damaged", json_integer((json_int_t)c.damaged)) &&
                    fds__json_put(json, "slots", json_integer((json_int_t)c.end)) &&
                    fds__json_put(json, "bytes", json_integer((json_int_t)bytes));
    *out = fds__json_keep_if(json, is_whole);
    return status != FDS_OK ? status : *out ? FDS_OK : fds__fail_json(err);
}
