/* SPDX-License-Identifier: Apache-2.0
 *
 * What the table of utilities and the bank of sub-models share on disk: files of records with
 * checksums (record.c, which specifies them), and the index from coalitions to slots (slot_map.c).
 */
#ifndef FDS_RECORD_H
#define FDS_RECORD_H

#include "game/game.h"

#include <assert.h>
#include <string.h>

/* ---- bytes: record.c ---- */

static inline void fds__put32(uint8_t *at, size_t value) {
    assert(value <= UINT32_MAX);
    memcpy(at, &(uint32_t){(uint32_t)value}, 4);
}
static inline void fds__put64(uint8_t *at, uint64_t value) { memcpy(at, &value, 8); }
static inline uint64_t fds__get64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return value;
}

/* The state of a header or a record on disk. */
typedef enum fds__found {
    FDS__FOUND_EMPTY, /* never written */
    FDS__FOUND_GOOD,
    FDS__FOUND_DAMAGED,
    FDS__FOUND_FOREIGN, /* whole, but of another file or coalition */
} fds__found;

/* Puts the checksum of a header or record into its last 8 bytes. */
void fds__record_seal(uint8_t *bytes, size_t size);
/* Empty, good or damaged. */
fds__found fds__record_check(const uint8_t *record, size_t size);

/* ---- files: record.c ---- */

#define FDS__RECORD_DAMAGED "is damaged; it will be computed again"
#define FDS__RECORD_SYNC_S 5.0 /* seconds between two syncs of a worker's file */

enum { FDS__RECORD_HEADER_MAX = 72 };

/* A cancellation is heard once for so many bytes that are read. */
#define FDS__RECORD_REPORT_BYTES ((uint64_t)32 << 20)

/* The form of a file, and the functions that use its records. */
typedef struct fds__record_form {
    uint8_t header[FDS__RECORD_HEADER_MAX]; /* the right one, sealed */
    size_t header_size, record_size;        /* in bytes, multiples of 8 */
    uint64_t records;                       /* of a full file */
    /* Called for a damaged or foreign header: FDS_OK permits its replacement. */
    fds_status (*permit)(const struct fds__record_form *form, const char *path,
                         const uint8_t *header, fds__found found, fds_error *err);
    /* Uses a good record, or sets *fault to the reason why not, for a warning. */
    fds_status (*take)(void *context, uint64_t number, const uint8_t *record, const char **fault,
                       fds_error *err);
    void *context;
    uint64_t *damaged; /* fds__record_read_all counts faulty records here; NULL: they are errors */
} fds__record_form;

/* Where a record begins; that of number records is the end of the file. */
static inline uint64_t fds__record_offset(const fds__record_form *form, uint64_t number) {
    return form->header_size + number * form->record_size;
}

/* Syncs the folder of a new file, then writes the header. */
fds_status fds__record_begin(fds__file *file, const fds__record_form *form, fds_error *err);
/* Repairs a file that is open for updates, and gives each good record to form->take. The caller has
 * the lock. */
fds_status fds__record_repair(fds__file *file, const fds__record_form *form,
                              const fds_events *events, fds_error *err);

/* Written at most between two syncs: a signal is heard only after one. */
enum { FDS__SYNC_BYTES = 2 << 20 };

/* A worker's file, and its scratch for a record and for answers. */
typedef struct fds__record_writer {
    fds__file file;
    uint32_t number; /* of the segment that is open */
    double synced_s;
    size_t unsynced; /* bytes */
    uint8_t *record; /* (record_size) */
    float *probs;    /* (values) */
} fds__record_writer;

/* No file is open yet. The caller frees *out, even after a failure. */
fds_status fds__record_writers_create(unsigned count, size_t record_size, size_t values,
                                      fds__record_writer **out, fds_error *err);
/* Closes the files; true when the disk was full for one of them. NULL is fine. */
bool fds__record_writers_free(fds__record_writer *writers, unsigned count);
/* Syncs and closes the file that is open, if any, and opens another. */
fds_status fds__record_writer_open(fds__record_writer *writer, const char *path, fds__access access,
                                   uint32_t number, fds_error *err);
/* Writes writer->record, sets *is_written, and syncs the file when sync_s have passed since the
 * last sync. */
fds_status fds__record_writer_put(fds__record_writer *writer, size_t record_size, uint64_t offset,
                                  double sync_s, bool *is_written, fds_error *err);
/* The error of a fill when the disk is full. */
fds_status fds__record_fail_full(const char *path, size_t kept, size_t total, fds_error *err);

/* ---- slot_map.c ---- */

/* Slots by coalition id: open addressing, at most 3/4 full, 16 bytes per entry. */
typedef struct fds__slot_map {
    struct fds__slot_map_entry *entries;
    size_t count, capacity; /* capacity: 0 or a power of two */
} fds__slot_map;

/* Makes space for count entries in total: so many can then be added without failure. */
fds_status fds__slot_map_reserve(fds__slot_map *map, size_t count, fds_error *err);
/* Returns false and changes nothing when the id is there already. */
bool fds__slot_map_add(fds__slot_map *map, uint64_t id, uint32_t slot);
bool fds__slot_map_find(const fds__slot_map *map, uint64_t id, uint32_t *slot);
void fds__slot_map_free(fds__slot_map *map);
/* Numbers the different coalitions of a plan from 0, in its order. of_row[rows], or NULL, receives
 * each row's number. *map must be empty; the caller frees it even after a failure. */
fds_status fds__slot_map_number(fds__slot_map *map, const fds_plan *plan, uint32_t *of_row,
                                fds_error *err);

#endif
