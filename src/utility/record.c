/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of records: the segments of a table (segment.c) and the bank (explain/bank_file.c).
 *
 * THE FORMAT. All numbers are little-endian, all checksums XXH3 of 64 bits.
 *
 *   header, 64 bytes in a segment, 72 in a bank
 *      0  8  which kind of file it is
 *        ... all that its records depend on: sizes, and checksums of the parameters
 *         8  checksum of the bytes before it
 *   records, all of one size, a multiple of 8, one after another
 *      0  8  id of the coalition
 *        ... what is kept of it, then zeros up to a multiple of 8
 *         8  checksum of the bytes before it
 *
 * Record i begins at byte header + i * size. A record whose id and checksum are both 0 was never
 * written: workers write records in any order, so a hole may precede a record.
 *
 * WHY IT IS SAFE. A record is a function of the parameters, which the header names, and of its
 * coalition. So nothing here is irreplaceable: it is enough to find out which records are whole.
 * All others count as empty, and the next fill computes them again, to the same bytes. No step
 * relies on the order in which writes reach the disk.
 *
 *   A torn write. A record of which only a part was written has a wrong checksum, or still has id
 *   and checksum 0; either way it counts as empty. A part of a record at the end of a file is cut
 *   off. A good record is never written again, so a process that dies cannot damage one.
 *
 *   A loss of power. Any block of the file may be old, zero or missing, and a record that shares a
 *   sector with a torn one may be lost with it. Checksums find all of that. A header of zeros, or
 *   the beginning of the right header at the end of a file, is that of a new file, and is
 *   completed. The folder is synced before a new file receives its header, so a file with a header
 *   stays. Workers sync their files every few seconds, so that little is lost; a fill that reports
 *   success has synced everything.
 *
 *   Two writers. A process that repairs or fills has an exclusive lock (flock), on the table's
 *   .lock or on the bank itself, which the system releases however the process ends. Within the
 *   process each slot belongs to one coalition, and each coalition to one worker. Readers of a bank
 *   take no lock: they check every record that they read.
 *
 *   Repair. A damaged header is written again, with a warning, if the name of the file or its first
 *   8 bytes say what it is (form->permit). A header that is whole but not the right one is an
 *   error, and nothing is changed: somebody put another file here. A damaged record and bytes after
 *   the last record cause a warning, since no crash explains them.
 *
 * It is not safe from damage to a file between checking and use, and not from people: a checksum of
 * 64 bits misses one accident in 2^64, but anybody can compute it.
 */
#include "utility/utility.h"

#define READ_BYTES ((size_t)1 << 20) /* records are read in runs of about so many bytes */

/* ---- bytes ---- */

void fds__record_seal(uint8_t *bytes, size_t size) {
    assert(size >= 16 && size % 8 == 0);
    fds__put64(bytes + size - 8, fds_checksum(bytes, size - 8));
}

fds__found fds__record_check(const uint8_t *record, size_t size) {
    uint64_t sum = fds__get64(record + size - 8);
    if (sum == 0 && fds__get64(record) == 0)
        return FDS__FOUND_EMPTY;
    return sum == fds_checksum(record, size - 8) ? FDS__FOUND_GOOD : FDS__FOUND_DAMAGED;
}

/* ---- repair ---- */

/* The first there bytes of a header are those of a file, the others 0. */
static fds__found check_header(const fds__record_form *form, const uint8_t *header, size_t there) {
    static const uint8_t zeros[FDS__RECORD_HEADER_MAX];
    if (memcmp(header, zeros, there) == 0)
        return FDS__FOUND_EMPTY;
    if (memcmp(header, form->header, there) == 0)
        return there == form->header_size ? FDS__FOUND_GOOD : FDS__FOUND_EMPTY;
    return fds__record_check(header, form->header_size) == FDS__FOUND_GOOD ? FDS__FOUND_FOREIGN
                                                                           : FDS__FOUND_DAMAGED;
}

fds_status fds__record_begin(fds__file *file, const fds__record_form *form, fds_error *err) {
    assert(fds__record_check(form->header, form->header_size) == FDS__FOUND_GOOD);
    TRY(fds__dir_sync_parent(file->path, err));
    return fds__file_write_at(file, form->header, form->header_size, 0, err);
}

static fds_status repair_header(fds__file *file, const fds__record_form *form, uint64_t *size,
                                const fds_events *events, fds_error *err) {
    uint8_t header[FDS__RECORD_HEADER_MAX] = {0};
    size_t there = (size_t)MIN(*size, (uint64_t)form->header_size);
    if (there)
        TRY(fds__file_read_at(file, header, there, 0, err));
    fds__found found = check_header(form, header, there);
    if (found == FDS__FOUND_GOOD)
        return FDS_OK;
    if (found != FDS__FOUND_EMPTY) {
        TRY(form->permit(form, file->path, header, found, err));
        fds__log(events, FDS_LOG_WARNING, "%s: the header is damaged; it is written again",
                 file->path);
    }
    TRY(fds__record_begin(file, form, err));
    *size = MAX(*size, (uint64_t)form->header_size);
    return fds__file_sync(file, err);
}

/* Cuts off what is not a whole record. */
static fds_status repair_end(fds__file *file, const fds__record_form *form, uint64_t size,
                             uint64_t *records, const fds_events *events, fds_error *err) {
    *records = MIN((size - form->header_size) / form->record_size, form->records);
    uint64_t end = fds__record_offset(form, *records);
    if (end == size)
        return FDS_OK;
    if (*records == form->records)
        fds__log(events, FDS_LOG_WARNING, "%s: %llu bytes after the last record are cut off",
                 file->path, (unsigned long long)(size - end));
    return fds__file_truncate(file, end, err);
}

static fds_status check_record(const fds__file *file, const fds__record_form *form, uint64_t number,
                               const uint8_t *record, const fds_events *events, fds_error *err) {
    const char *fault = NULL;
    fds__found found = fds__record_check(record, form->record_size);
    if (found == FDS__FOUND_GOOD)
        TRY(form->take(form->context, number, record, &fault, err));
    else if (found == FDS__FOUND_DAMAGED)
        fault = FDS__RECORD_DAMAGED;
    if (fault)
        fds__log(events, FDS_LOG_WARNING, "%s: record %llu (byte %llu) %s", file->path,
                 (unsigned long long)number, (unsigned long long)fds__record_offset(form, number),
                 fault);
    return FDS_OK;
}

static fds_status check_records(fds__file *file, const fds__record_form *form, uint64_t records,
                                uint8_t *buffer, size_t run, const fds_events *events,
                                fds_error *err) {
    const double start_s = fds__now_s();
    uint64_t reported = 0;
    for (uint64_t first = 0; first < records; first += run) {
        size_t count = (size_t)MIN(records - first, (uint64_t)run);
        TRY(fds__file_read_at(file, buffer, count * form->record_size,
                              fds__record_offset(form, first), err));
        for (size_t i = 0; i < count; i++)
            TRY(check_record(file, form, first + i, buffer + i * form->record_size, events, err));
        if ((first + count - reported) * form->record_size < FDS__RECORD_REPORT_BYTES)
            continue;
        reported = first + count;
        TRY(fds__report(events, "check", "records", reported, records, start_s, err));
    }
    return FDS_OK;
}

fds_status fds__record_repair(fds__file *file, const fds__record_form *form,
                              const fds_events *events, fds_error *err) {
    assert(form->header_size % 8 == 0 && form->header_size <= sizeof form->header);
    assert(form->record_size % 8 == 0 && form->records > 0);
    uint64_t size, records;
    TRY(fds__file_size(file, &size, err));
    TRY(repair_header(file, form, &size, events, err));
    TRY(repair_end(file, form, size, &records, events, err));
    size_t run = (size_t)MIN(MAX(READ_BYTES / form->record_size, (size_t)1), records);
    OWNED uint8_t *buffer = NULL;
    TRY(NEW(buffer, run * form->record_size, err));
    return check_records(file, form, records, buffer, run, events, err);
}

/* ---- writing ---- */

fds_status fds__record_writers_create(unsigned count, size_t record_size, size_t values,
                                      fds__record_writer **out, fds_error *err) {
    TRY(NEW(*out, count, err));
    fds__record_writer *writers = *out;
    for (unsigned i = 0; i < count; i++)
        writers[i].file.fd = -1;
    for (unsigned i = 0; i < count; i++) {
        writers[i].record = fds__alloc_aligned(record_size);
        writers[i].probs = fds__alloc_aligned(values * sizeof(float));
        if (!writers[i].record || !writers[i].probs)
            return fds__fail_nomem(err, record_size + values * sizeof(float));
    }
    return FDS_OK;
}

bool fds__record_writers_free(fds__record_writer *writers, unsigned count) {
    bool is_disk_full = false;
    for (unsigned i = 0; writers && i < count; i++) {
        is_disk_full |= writers[i].file.is_disk_full;
        fds__file_close(&writers[i].file);
        fds__free(writers[i].record);
        fds__free(writers[i].probs);
    }
    fds__free(writers);
    return is_disk_full;
}

fds_status fds__record_writer_open(fds__record_writer *writer, const char *path, fds__access access,
                                   uint32_t number, fds_error *err) {
    if (writer->file.fd >= 0)
        TRY(fds__file_sync(&writer->file, err));
    fds__file_close(&writer->file);
    TRY(fds__file_open(&writer->file, path, access, err));
    writer->number = number;
    writer->synced_s = fds__now_s();
    writer->unsynced = 0;
    return FDS_OK;
}

fds_status fds__record_writer_put(fds__record_writer *writer, size_t record_size, uint64_t offset,
                                  double sync_s, bool *is_written, fds_error *err) {
    assert(fds__record_check(writer->record, record_size) == FDS__FOUND_GOOD);
    TRY(fds__file_write_at(&writer->file, writer->record, record_size, offset, err));
    *is_written = true;
    writer->unsynced += record_size;
    if (fds__now_s() - writer->synced_s < sync_s && writer->unsynced < FDS__SYNC_BYTES)
        return FDS_OK;
    TRY(fds__file_sync(&writer->file, err));
    writer->synced_s = fds__now_s();
    writer->unsynced = 0;
    return FDS_OK;
}

fds_status fds__record_fail_full(const char *path, size_t kept, size_t total, fds_error *err) {
    return fds__fail(err, FDS_ERR_IO,
                     "%s: the disk is full: %zu of %zu sub-models are kept; free some space and "
                     "run the same command again",
                     path, kept, total);
}
