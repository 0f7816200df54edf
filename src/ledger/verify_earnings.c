/* SPDX-License-Identifier: Apache-2.0
 *
 * What each account earned by each label, computed again day by day from the predictions, and compared
 * with the table of earnings. One day is in memory. */
#include "ledger/ledger.h"

enum { EARNINGS_AT_ONCE = 1 << 17, DENSE_LABELS = 256 };

/* Earnings by one label: (capacity) by account. */
typedef struct {
    ledger_earning *of;
    size_t capacity;
} dense_sums;

struct ledger_earnings_check {
    const fds_ledger *ledger;
    int64_t day;
    ledger_state labels; /* of the day: kept and found as names of accounts are */
    dense_sums sums[DENSE_LABELS];
    ledger_earning *list;
    size_t count, capacity, limit; /* above the limit, the list is merged first */
    uint64_t rows;                 /* of the days before */
};

static fds_status fail_earnings(const ledger_earnings_check *c, fds_error *err) {
    char day[LEDGER_TIME];
    return ledger_fail(c->ledger, err, "the earnings of %s are not those of its predictions",
                       ledger_day_text(c->day, day));
}

static fds_status reserve(ledger_earnings_check *c, size_t more, fds_error *err) {
    void *grown = c->list;
    fds_status status = fds__grow(&grown, &c->capacity, c->count + more, sizeof *c->list, err);
    c->list = grown;
    return status;
}

/* ---- predictions ---- */

/* Sums by account, for the first labels of a day; the others are listed and sorted. */
static fds_status add_dense(ledger_earnings_check *c, size_t label, const ledger_run *run,
                            size_t accounts, fds_error *err) {
    dense_sums *sums = &c->sums[label];
    size_t old = sums->capacity;
    void *grown = sums->of;
    fds_status status = fds__grow(&grown, &sums->capacity, accounts, sizeof *sums->of, err);
    sums->of = grown;
    TRY(status);
    if (sums->capacity > old)
        memset(sums->of + old, 0, (sums->capacity - old) * sizeof *sums->of);
    for (size_t i = 0; i < run->count; i++) {
        ledger_earning *sum = &sums->of[run->payees[i]];
        if (__builtin_add_overflow(sum->units, run->shares[i], &sum->units))
            return fail_earnings(c, err);
        sum->count += run->shares[i] != 0;
    }
    return FDS_OK;
}

fds_status ledger_earnings_check_add(ledger_earnings_check *c, const char *label_name,
                                     const ledger_run *run, size_t accounts, fds_error *err) {
    uint64_t label = ledger_state_find(&c->labels, label_name);
    if (label == LEDGER_NONE) {
        TRY(ledger_state_add_account(&c->labels, FDS_ACCOUNT_PLATFORM, label_name, err));
        label = c->labels.account_count - 1;
    }
    if (label < DENSE_LABELS)
        return add_dense(c, label, run, accounts, err);
    if (c->count + run->count > c->limit) {
        if (!ledger_earnings_merge(c->list, &c->count))
            return fail_earnings(c, err);
        c->limit = MAX(c->limit, 2 * (c->count + run->count));
    }
    TRY(reserve(c, run->count, err));
    for (size_t i = 0; i < run->count; i++)
        if (run->shares[i])
            c->list[c->count++] = (ledger_earning){
                run->payees[i], c->day, c->labels.accounts[label].name, run->shares[i], 1};
    return FDS_OK;
}

/* ---- the end of a day ---- */

/* The sums of a day, listed. */
static fds_status list_dense(ledger_earnings_check *c, fds_error *err) {
    for (size_t label = 0; label < MIN(c->labels.account_count, (size_t)DENSE_LABELS); label++) {
        dense_sums *sums = &c->sums[label];
        TRY(reserve(c, sums->capacity, err));
        for (size_t i = 0; i < sums->capacity; i++) {
            if (sums->of[i].count)
                c->list[c->count++] = (ledger_earning){i, c->day, c->labels.accounts[label].name,
                                                       sums->of[i].units, sums->of[i].count};
            sums->of[i] = (ledger_earning){0};
        }
    }
    return FDS_OK;
}

static fds_status compare(const ledger_earnings_check *c, db_query *q, fds_error *err) {
    bool has_row;
    for (size_t i = 0;; i++) {
        TRY(db_next(q, &has_row, err));
        if (has_row != (i < c->count))
            return fail_earnings(c, err);
        if (!has_row)
            return FDS_OK;
        const ledger_earning *e = &c->list[i];
        const char *label = db_text(q, 1, NULL);
        if (db_int(q, 0) != (int64_t)e->account || !label || strcmp(label, e->label) != 0 ||
            db_int(q, 2) != e->units || db_int(q, 3) != e->count)
            return fail_earnings(c, err);
    }
}

static fds_status end_day(ledger_earnings_check *c, fds_error *err) {
    db_query *q;
    TRY(list_dense(c, err));
    if (!ledger_earnings_merge(c->list, &c->count))
        return fail_earnings(c, err);
    TRY(ledger_query(c->ledger, LEDGER_Q_EARNINGS_OF_DAY, &q, err));
    db_bind_int(q, 1, c->day);
    fds_status status = compare(c, q, err);
    db_end(q);
    c->rows += c->count;
    c->count = 0;
    c->limit = EARNINGS_AT_ONCE;
    ledger_state_free(&c->labels);
    return status;
}

fds_status ledger_earnings_check_day(ledger_earnings_check *c, int64_t day, fds_error *err) {
    if (day == c->day)
        return FDS_OK;
    TRY(end_day(c, err));
    c->day = day;
    return FDS_OK;
}

fds_status ledger_earnings_check_end(ledger_earnings_check *c, fds_error *err) {
    uint64_t rows;
    TRY(end_day(c, err));
    TRY(ledger_count_rows(c->ledger, LEDGER_Q_COUNT_EARNINGS, &rows, err));
    return rows == c->rows
               ? FDS_OK
               : ledger_fail(c->ledger, err, "there are earnings of days without predictions");
}

/* ---- making and freeing ---- */

fds_status ledger_earnings_check_create(const fds_ledger *l, ledger_earnings_check **out,
                                        fds_error *err) {
    TRY(NEW(*out, 1, err));
    (*out)->ledger = l;
    (*out)->limit = EARNINGS_AT_ONCE;
    return FDS_OK;
}

void ledger_earnings_check_free(ledger_earnings_check *c) {
    if (!c)
        return;
    ledger_state_free(&c->labels);
    fds__free(c->list);
    for (size_t i = 0; i < DENSE_LABELS; i++)
        fds__free(c->sums[i].of);
    fds__free(c);
}
