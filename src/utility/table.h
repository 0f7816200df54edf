/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of utilities, inside: for the files below and for tests.
 *
 *   describe.c  table.json, the description of the table
 *   segment.c   the bytes of a segment and of its records
 *   record.c    how records are checked, repaired and written; slot_map.c: where each one is
 *   table.c     opening and checking; fill.c computing what is missing; view.c reading; import.c
 *               taking records from other tables; part.c: which plan a part is of
 *
 * Slots are numbered from 0 over all segments: slot s is record s % records of segment s / records.
 */
#ifndef FDS_TABLE_H
#define FDS_TABLE_H

#include "utility/utility.h"

#define FDS__SEGMENT_BYTES ((size_t)16 << 20) /* at most, but at least one record */
#define FDS__MAX_SEGMENTS 100000u             /* five digits */
#define FDS__MAX_RECORD ((size_t)1 << 30)
#define FDS__MAX_SLOTS ((uint64_t)2 * FDS__MAX_ROWS)

/* ---- segment.c ---- */

enum { FDS__SEGMENT_HEADER = 64 };

/* Everything that the offsets of bytes depend on. */
typedef struct fds__layout {
    size_t players, words, inputs, values; /* values: inputs * classes */
    uint32_t classes;
    fds_store store;
    size_t record_size;
    size_t records;      /* of a full segment */
    uint64_t parameters; /* checksum of the utility function's parameters */
} fds__layout;

/* FDS_ERR_USAGE for sizes of 0, FDS_ERR_LIMIT for too large ones. records is left 0. */
fds_status fds__layout_make(size_t players, size_t inputs, uint32_t classes, fds_store store,
                            fds__layout *layout, fds_error *err);
/* Where a slot's record begins in its segment. layout->records must be set. */
static inline uint64_t fds__layout_offset(const fds__layout *layout, uint64_t slot) {
    assert(layout->records);
    return FDS__SEGMENT_HEADER + slot % layout->records * layout->record_size;
}

/* name[16] receives "00012.seg". */
void fds__segment_name(uint32_t number, char name[16]);
bool fds__segment_number(const char *name, uint32_t *number);

/* The form of one segment; take and context are left NULL. */
fds__record_form fds__segment_form(const fds__layout *layout, uint32_t number);

/* record[record_size] from a coalition and its probs[values]. FDS_ERR_DIVERGED when one of them is
 * not a finite number. */
fds_status fds__segment_put(const fds__layout *layout, const uint64_t *coalition,
                            const float *probs, uint8_t *record, fds_error *err);
/* Whether a good record has the id of its coalition, and only players that exist. */
bool fds__segment_check(const fds__layout *layout, const uint8_t *record);
/* The coalition of a record, which must be at a multiple of 8 bytes. */
static inline const uint64_t *fds__segment_coalition(const uint8_t *record) {
    assert((uintptr_t)record % 8 == 0);
    return (const uint64_t *)(const void *)(record + 8);
}
/* Values first .. first + count - 1. */
void fds__segment_get(const fds__layout *layout, const uint8_t *record, size_t first, size_t count,
                      double *out);

/* ---- describe.c ---- */

/* Writes dir/table.json for a new table; sets layout->parameters. */
fds_status fds__describe_write(const char *dir, const fds_utility *utility, fds__layout *layout,
                               fds_error *err);
/* Compares dir/table.json with utility and layout, and sets layout->records and
 * layout->parameters. */
fds_status fds__describe_check(const char *dir, const fds_utility *utility, fds__layout *layout,
                               fds_error *err);
/* The same without a utility function: everything of layout, and, unless NULL, the members. */
fds_status fds__describe_read(const char *dir, fds__layout *layout, json_t **out, fds_error *err);
/* The same for a file's bytes. */
fds_status fds__describe_parse(const char *path, const uint8_t *data, size_t size,
                               const fds_utility *utility, fds__layout *layout, fds_error *err);

/* ---- table.c ---- */

struct fds_table {
    const fds_utility *utility; /* NULL: opened bare */
    fds__layout layout;
    fds__file lock;
    fds__slot_map index;
    uint64_t *filled;                /* one bit per slot; from filled_slots on all are empty */
    size_t filled_slots;             /* a multiple of 64 */
    uint32_t segments;               /* one more than the highest number of a file */
    uint32_t unsynced, unsynced_end; /* segments that may have to be synced; 0 to 0: none */
    uint64_t unsynced_bytes;         /* at most, of records */
    double synced_s, sync_every_s;   /* when all were last synced; how often that is due */
    char dir[FDS__PATH_MAX];
};

/* fds_table_open with segments of at most segment_bytes, for tests. */
fds_status fds__table_open_sized(const char *dir, const fds_utility *utility, fds_store store,
                                 size_t segment_bytes, const fds_events *events, fds_table **out,
                                 fds_error *err);
/* FDS_ERR_SHAPE for a plan of another number of players. */
fds_status fds__table_check_plan(const fds_table *table, const fds_plan *plan, fds_error *err);
fds_status fds__table_segment_path(const fds_table *table, uint32_t number, char *path,
                                   fds_error *err);
bool fds__table_is_filled(const fds_table *table, uint64_t slot);
/* Makes space for slots 0 .. slots - 1, which can then be marked as filled. */
fds_status fds__table_reserve(fds_table *table, uint64_t slots, fds_error *err);
void fds__table_mark(fds_table *table, uint64_t slot);

#endif
