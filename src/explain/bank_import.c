/* SPDX-License-Identifier: Apache-2.0
 *
 * Sub-models from the banks of other machines. The header of a bank names the network, the plan and
 * the training, so banks of one header have the same slots, and each record keeps its own. A record
 * that is there already must have the same bytes. */
#include "explain/run.h"

#include <inttypes.h>

#define MOST_BYTES ((uint64_t)64 << 30)

typedef struct {
    fds__file file;   /* the one that receives records */
    const char *from; /* the one that gives them; NULL: none yet */
    const fds__record_form *form;
    bool *is_good;   /* (records) */
    uint8_t *record; /* (record_size) */
    fds__imported *out;
} importer;

fds_status fds__bank_read_form(fds__file *file, fds__record_form *form, fds_error *err) {
    uint64_t size;
    *form = (fds__record_form){.header_size = FDS__BANK_HEADER, .permit = fds__bank_permit};
    TRY(fds__file_size(file, &size, err));
    if (size < FDS__BANK_HEADER)
        return FDS_OK; /* its process was killed before the header was written */
    TRY(fds__file_read_at(file, form->header, FDS__BANK_HEADER, 0, err));
    fds__record_form right = *form;
    fds__put32(right.header + 8, FDS__BANK_VERSION);
    TRY(fds__bank_permit(&right, file->path, form->header, FDS__FOUND_GOOD, err));
    uint64_t record_size = fds__get64(form->header + 24), records = fds__get64(form->header + 32);
    if (fds__record_check(form->header, FDS__BANK_HEADER) != FDS__FOUND_GOOD || record_size < 24 ||
        record_size % 8 || record_size > MOST_BYTES || !records ||
        records > MOST_BYTES / record_size)
        return fds__fail(err, FDS_ERR_CORRUPT,
                         "%s: its header is damaged; run the command that computed it again",
                         file->path);
    form->record_size = (size_t)record_size;
    form->records = records;
    return FDS_OK;
}

/* The header of a file, if it has a whole one. */
static fds_status read_header(const char *path, uint8_t header[FDS__BANK_HEADER], bool *is_there,
                              fds_error *err) {
    fds__file file;
    uint64_t size;
    *is_there = false;
    if (!fds__path_exists(path))
        return FDS_OK;
    TRY(fds__file_open(&file, path, FDS__ACCESS_READ, err));
    fds_status status = fds__file_size(&file, &size, err);
    if (status == FDS_OK && size >= FDS__BANK_HEADER) {
        status = fds__file_read_at(&file, header, FDS__BANK_HEADER, 0, err);
        *is_there =
            status == FDS_OK && fds__record_check(header, FDS__BANK_HEADER) == FDS__FOUND_GOOD;
    }
    fds__file_close(&file);
    return status;
}

fds_status fds__bank_compare(const char *first, const char *second, bool *is_there,
                             fds_error *err) {
    uint8_t a[FDS__BANK_HEADER], b[FDS__BANK_HEADER];
    bool is_first;
    int at;
    TRY(read_header(first, a, &is_first, err));
    TRY(read_header(second, b, is_there, err));
    const char *other = is_first && *is_there ? fds__bank_difference(a, b, &at) : NULL;
    return other ? fds__fail(err, FDS_ERR_CONFLICT,
                             "%s and %s do not go together: the sub-models of the second are %s",
                             first, second, other)
                 : FDS_OK;
}

/* A good record of the file that receives. */
static fds_status note_record(void *context, uint64_t number, const uint8_t *record,
                              const char **fault, fds_error *err) {
    importer *m = context;
    (void)record, (void)fault, (void)err;
    m->is_good[number] = true;
    return FDS_OK;
}

static fds_status take_record(void *context, uint64_t number, const uint8_t *record,
                              const char **fault, fds_error *err) {
    importer *m = context;
    (void)fault;
    size_t size = m->form->record_size;
    uint64_t at = fds__record_offset(m->form, number);
    if (!m->is_good[number]) {
        TRY(fds__file_write_at(&m->file, record, size, at, err));
        m->is_good[number] = true;
        m->out->taken++;
        return FDS_OK;
    }
    TRY(fds__file_read_at(&m->file, m->record, size, at, err));
    if (memcmp(m->record, record, size) == 0) {
        m->out->repeated++;
        return FDS_OK;
    }
    return fds__fail(err, FDS_ERR_CORRUPT,
                     "%s: record %" PRIu64 " (byte %" PRIu64 ") differs from that of %s: the two "
                     "were not computed alike; remove one of them",
                     m->from, number, at, m->file.path);
}

static fds_status merge(importer *m, fds__file *from, fds__record_form *form,
                        const fds_events *events, fds_error *err) {
    m->form = form;
    TRY(NEW(m->is_good, form->records, err));
    TRY(NEW(m->record, form->record_size, err));
    form->context = m;
    form->take = note_record;
    TRY(fds__record_repair(&m->file, form, events, err));
    form->take = take_record;
    return fds__record_read_all(from, form, events, err);
}

/* Into the file path, from one that is open and locked. */
static fds_status import_file(const char *path, fds__file *from, const fds_events *events,
                              fds__imported *out, fds_error *err) {
    fds__record_form form;
    importer m = {.from = from->path, .out = out};
    TRY(fds__bank_read_form(from, &form, err));
    if (!form.records)
        return FDS_OK;
    TRY(fds__file_open(&m.file, path, FDS__ACCESS_CREATE, err));
    fds_status status = fds__file_lock(&m.file, path, err);
    if (status == FDS_OK)
        status = merge(&m, from, &form, events, err);
    fds_status synced = fds__file_sync(&m.file, status == FDS_OK ? err : NULL);
    fds__file_close(&m.file);
    fds__free(m.is_good);
    fds__free(m.record);
    return status == FDS_OK ? synced : status;
}

fds_status fds__bank_import(const char *path, const char *from, const fds_events *events,
                            fds__imported *out, fds_error *err) {
    fds__file file;
    if (!fds__path_exists(from))
        return FDS_OK;
    TRY(fds__lock_source(from, from, &file, err)); /* a bank is its own lock */
    fds_status status = import_file(path, &file, events, out, err);
    fds__file_close(&file);
    return status;
}

/* ---- what a bank has ---- */

static fds_status count_record(void *context, uint64_t number, const uint8_t *record,
                               const char **fault, fds_error *err) {
    (void)number, (void)record, (void)fault, (void)err;
    ++*(json_int_t *)context;
    return FDS_OK;
}

fds_status fds__bank_describe(const char *path, const fds_events *events, json_t **out,
                              fds_error *err) {
    fds__file file;
    fds__record_form form;
    json_int_t records = 0;
    uint64_t size = 0, damaged = 0;
    *out = NULL;
    if (!fds__path_exists(path))
        return FDS_OK;
    TRY(fds__file_open(&file, path, FDS__ACCESS_READ, err));
    fds_status status = fds__bank_read_form(&file, &form, err);
    if (status == FDS_OK)
        status = fds__file_size(&file, &size, err);
    form.take = count_record;
    form.context = &records;
    form.damaged = &damaged;
    if (status == FDS_OK && form.records)
        status = fds__record_read_all(&file, &form, events, err);
    fds__file_close(&file);
    TRY(status);
    *out = json_pack("{s:I, s:I, s:I, s:I}", "records", records, "damaged", (json_int_t)damaged,
                     "slots", (json_int_t)form.records, "bytes", (json_int_t)size);
    return *out ? FDS_OK : fds__fail_json(err);
}
