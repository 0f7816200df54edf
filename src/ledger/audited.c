/* SPDX-License-Identifier: Apache-2.0
 *
 * What the bank of a run says about predictions that were paid: rows beside the entries, written later
 * and never changed. The log does not have them; a note that reveals the secret of a day vouches for
 * the rows of its predictions by a SHA-256 over them, in the order of entries:
 *
 *   entry     as a byte 1 and a whole number in 8 bytes
 *   vals      as a byte 3, the length in 8 bytes, and floats of 4 bytes
 *   errors    the same
 *   score     as a byte 4 and a double in 8 bytes; or a byte 0, where it is not known
 *
 * as columns of entries are hashed (entry.c). Numbers are little-endian. */
#include "ledger/ledger.h"

#include <nettle/sha2.h>

enum { ROWS_AT_ONCE = 256 };

/* ---- adding ---- */

static fds_status check_row(const fds_ledger *l, const fds_audited *row, size_t *count,
                            fds_error *err) {
    ledger_entry e;
    db_query *q;
    unsigned long long number = row->entry;
    TRY(ledger_entry_get(l, row->entry, &e, &q, err));
    bool is_prediction = e.kind == LEDGER_PREDICTION && e.run < l->state.run_count;
    *count = is_prediction ? l->state.runs[e.run]->count : 0;
    db_end(q);
    if (!is_prediction || !row->values || !row->errors)
        return fds__fail(err, FDS_ERR_USAGE,
                         is_prediction ? "entry %llu: values and errors are needed"
                                       : "entry %llu is no prediction",
                         number);
    for (size_t i = 0; i < *count; i++)
        if (!isfinite(row->values[i]) || row->errors[i] < 0)
            return fds__fail(err, FDS_ERR_USAGE,
                             "entry %llu: value %zu (from 0) is not finite, or its error is "
                             "negative",
                             number, i);
    return FDS_OK;
}

static fds_status refuse_second(const fds_ledger *l, uint64_t entry, fds_error *err) {
    db_query *q;
    bool has_row;
    TRY(ledger_query(l, LEDGER_Q_AUDITED, &q, err));
    db_bind_int(q, 1, (int64_t)entry);
    db_bind_int(q, 2, 1);
    fds_status status = db_next(q, &has_row, err);
    if (status == FDS_OK && has_row && db_int(q, 0) == (int64_t)entry)
        status = fds__fail(err, FDS_ERR_CONFLICT, "%s: entry %llu is audited already", l->path,
                           (unsigned long long)entry);
    db_end(q);
    return status;
}

static fds_status add_row(fds_ledger *l, const fds_audited *row, fds_error *err) {
    db_query *q;
    size_t count;
    TRY(check_row(l, row, &count, err));
    TRY(refuse_second(l, row->entry, err));
    TRY(ledger_query(l, LEDGER_Q_ADD_AUDITED, &q, err));
    db_bind_int(q, 1, (int64_t)row->entry);
    db_bind_blob(q, 2, row->values, count * sizeof *row->values);
    db_bind_blob(q, 3, row->errors, count * sizeof *row->errors);
    if (!isnan(row->score))
        db_bind_real(q, 4, row->score + 0.0);
    TRY(db_do(q, err));
    return ledger_end_waiting(l, row->entry, err);
}

/* A ledger that was made before there were any. */
static fds_status make_table(fds_ledger *l, fds_error *err) {
    TRY(ledger_make_audited(l->db, err));
    return ledger_put_meta(l, "audited", "1", err);
}

fds_status fds_ledger_add_audited(fds_ledger *l, const fds_audited *rows, size_t count,
                                  fds_error *err) {
    bool had_table = l->has_audited;
    TRY(ledger_begin(l, err));
    fds_status status = had_table ? FDS_OK : make_table(l, err);
    for (size_t i = 0; status == FDS_OK && i < count; i++)
        status = add_row(l, &rows[i], err);
    status = ledger_end_rows(l, status, err);
    l->has_audited = had_table || status == FDS_OK;
    return status;
}

/* ---- reading ---- */

static fds_status check_blobs(const fds_ledger *l, uint64_t entry, size_t values, size_t errors,
                              fds_error *err) {
    ledger_entry e;
    db_query *q;
    TRY(ledger_entry_get(l, entry, &e, &q, err));
    bool is_right = e.kind == LEDGER_PREDICTION && e.values.size == values && errors == values;
    db_end(q);
    return is_right ? FDS_OK
                    : ledger_fail(l, err, "the audited row of entry %llu is malformed",
                                  (unsigned long long)entry);
}

/* Who takes rows, and the numbers of one: those of the database need not be aligned. */
typedef struct {
    const fds_ledger *ledger;
    fds_audited_function take;
    void *user;
    void *numbers;
    size_t capacity; /* bytes */
} reader;

static fds_status take_row(reader *r, const db_query *q, fds_error *err) {
    size_t values, errors;
    const void *from_values = db_blob(q, 1, &values), *from_errors = db_blob(q, 2, &errors);
    fds_audited row = {
        .entry = (uint64_t)db_int(q, 0),
        .score = db_type_of(q, 3) == DB_REAL ? db_real(q, 3) : (double)NAN,
    };
    TRY(check_blobs(r->ledger, row.entry, values, errors, err));
    TRY(fds__grow(&r->numbers, &r->capacity, values + errors, 1, err));
    row.values = memcpy(r->numbers, from_values, values);
    row.errors = memcpy((char *)r->numbers + values, from_errors, errors);
    return r->take(r->user, &row, err);
}

/* At most so many rows; *count: how many there were, *next: the entry to go on from. */
static fds_status take_rows(reader *r, uint64_t *next, size_t *count, fds_error *err) {
    db_query *q;
    bool has_row = true;
    TRY(ledger_query(r->ledger, LEDGER_Q_AUDITED, &q, err));
    db_bind_int(q, 1, (int64_t)MIN(*next, (uint64_t)INT64_MAX));
    db_bind_int(q, 2, ROWS_AT_ONCE);
    fds_status status = FDS_OK;
    for (*count = 0; status == FDS_OK; ++*count) {
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        *next = (uint64_t)db_int(q, 0) + 1;
        status = take_row(r, q, err);
    }
    db_end(q);
    return status;
}

fds_status fds_ledger_audited(const fds_ledger *l, uint64_t from, fds_audited_function take,
                              void *user, fds_error *err) {
    reader r = {.ledger = l, .take = take, .user = user};
    size_t count = l->has_audited ? ROWS_AT_ONCE : 0;
    fds_status status = FDS_OK;
    while (status == FDS_OK && count == ROWS_AT_ONCE)
        status = take_rows(&r, &from, &count, err);
    fds__free(r.numbers);
    return status;
}

/* ---- the rows of a day ---- */

fds_status ledger_first_at(const fds_ledger *l, int64_t at_ms, uint64_t *index, fds_error *err) {
    uint64_t low = 0, high = l->state.size; /* times never decrease */
    while (low < high) {
        ledger_entry e;
        db_query *q;
        uint64_t middle = low + (high - low) / 2;
        TRY(ledger_entry_get(l, middle, &e, &q, err));
        if (e.at_ms < at_ms)
            low = middle + 1;
        else
            high = middle;
        db_end(q);
    }
    *index = low;
    return FDS_OK;
}

typedef struct {
    const fds_ledger *ledger;
    uint64_t end; /* the first entry of the next day */
    uint64_t rows;
    struct sha256_ctx hash;
} day_rows;

static void hash_blob(struct sha256_ctx *hash, const void *data, size_t size) {
    uint8_t head[9] = {3};
    uint64_t length = size;
    memcpy(head + 1, &length, sizeof length);
    sha256_update(hash, sizeof head, head);
    sha256_update(hash, size, data);
}

static fds_status hash_row(void *user, const fds_audited *row, fds_error *err) {
    day_rows *d = user;
    ledger_entry e;
    db_query *q;
    if (row->entry >= d->end)
        return FDS_ERR_CANCELLED;
    TRY(ledger_entry_get(d->ledger, row->entry, &e, &q, err));
    size_t size = e.values.size;
    db_end(q);
    uint8_t head[9] = {1};
    memcpy(head + 1, &row->entry, sizeof row->entry);
    sha256_update(&d->hash, sizeof head, head);
    hash_blob(&d->hash, row->values, size);
    hash_blob(&d->hash, row->errors, size);
    head[0] = isnan(row->score) ? 0 : 4;
    memcpy(head + 1, &row->score, sizeof row->score);
    sha256_update(&d->hash, isnan(row->score) ? 1 : sizeof head, head);
    d->rows++;
    return FDS_OK;
}

fds_status fds_ledger_audited_day(const fds_ledger *l, const char *day, uint64_t *rows,
                                  uint8_t sha256[32], fds_error *err) {
    int64_t number;
    uint64_t first;
    day_rows d = {.ledger = l};
    if (!day || !ledger_day_read(day, &number))
        return fds__fail(err, FDS_ERR_USAGE, "a day must be such as 2026-11-17 (got %.60s)",
                         day ? day : "none");
    TRY(ledger_first_at(l, number * LEDGER_DAY_MS, &first, err));
    TRY(ledger_first_at(l, (number + 1) * LEDGER_DAY_MS, &d.end, err));
    sha256_init(&d.hash);
    fds_status status = fds_ledger_audited(l, first, hash_row, &d, err);
    if (status != FDS_ERR_CANCELLED) /* beyond the day */
        TRY(status);
    sha256_digest(&d.hash, 32, sha256);
    *rows = d.rows;
    return FDS_OK;
}
