/* SPDX-License-Identifier: Apache-2.0
 *
 * What is kept of paid predictions until the bank has answered them: whatever an audit needs, as bytes
 * that the ledger does not understand. They are written by the transaction that pays, so a crash loses
 * neither or both, and go with the one that adds the audited row: at all times a prediction that was
 * chosen has its bytes or its row. Nothing of this is in the log. */
#include "ledger/ledger.h"

/* ---- within a transaction ---- */

fds_status ledger_add_waiting(fds_ledger *l, uint64_t entry, const void *data, size_t size,
                              fds_error *err) {
    db_query *q;
    if (!l->has_waiting) { /* made by an earlier version */
        TRY(ledger_make_waiting(l->db, err));
        TRY(ledger_put_meta(l, "waiting", "1", err));
        l->has_waiting = true;
    }
    TRY(ledger_query(l, LEDGER_Q_ADD_WAITING, &q, err));
    db_bind_int(q, 1, (int64_t)entry);
    db_bind_blob(q, 2, data, size);
    return db_do(q, err);
}

fds_status ledger_end_waiting(fds_ledger *l, uint64_t entry, fds_error *err) {
    db_query *q;
    if (!l->has_waiting)
        return FDS_OK;
    TRY(ledger_query(l, LEDGER_Q_END_WAITING, &q, err));
    db_bind_int(q, 1, (int64_t)entry);
    return db_do(q, err);
}

/* ---- for those who audit ---- */

fds_status fds_ledger_waiting(const fds_ledger *l, uint64_t from, size_t most,
                              fds_waiting_function take, void *user, fds_error *err) {
    db_query *q;
    bool has_row = true;
    if (!l->has_waiting)
        return FDS_OK;
    TRY(ledger_query(l, LEDGER_Q_WAITING, &q, err));
    db_bind_int(q, 1, (int64_t)MIN(from, (uint64_t)INT64_MAX));
    db_bind_int(q, 2, (int64_t)MIN(most, (size_t)INT32_MAX));
    fds_status status = FDS_OK;
    while (status == FDS_OK) {
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        size_t size;
        const void *data = db_blob(q, 1, &size);
        status = take(user, (uint64_t)db_int(q, 0), data, size, err);
    }
    db_end(q);
    return status;
}

fds_status fds_ledger_waiting_count(const fds_ledger *l, uint64_t *count, fds_error *err) {
    db_query *q;
    bool has_row;
    *count = 0;
    if (!l->has_waiting)
        return FDS_OK;
    TRY(ledger_query(l, LEDGER_Q_COUNT_WAITING, &q, err));
    fds_status status = db_next(q, &has_row, err);
    *count = status == FDS_OK && has_row ? (uint64_t)db_int(q, 0) : 0;
    db_end(q);
    return status;
}

static fds_status drop(fds_ledger *l, uint64_t below, fds_error *err) {
    db_query *q;
    TRY(ledger_query(l, LEDGER_Q_DROP_WAITING, &q, err));
    db_bind_int(q, 1, (int64_t)below);
    return db_do(q, err);
}

fds_status fds_ledger_drop_waiting(fds_ledger *l, const char *before_day, uint64_t *count,
                                   fds_error *err) {
    int64_t day;
    uint64_t below, before, after;
    *count = 0;
    if (!before_day || !ledger_day_read(before_day, &day))
        return fds__fail(err, FDS_ERR_USAGE, "a day must be such as 2026-11-17 (got %.60s)",
                         before_day ? before_day : "none");
    if (!l->has_waiting)
        return FDS_OK;
    TRY(ledger_first_at(l, day * LEDGER_DAY_MS, &below, err));
    TRY(fds_ledger_waiting_count(l, &before, err));
    TRY(ledger_begin(l, err));
    TRY(ledger_end_rows(l, drop(l, below, err), err));
    TRY(fds_ledger_waiting_count(l, &after, err));
    *count = before - after;
    return FDS_OK;
}
