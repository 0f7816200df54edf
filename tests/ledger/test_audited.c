/* SPDX-License-Identifier: Apache-2.0
 * Rows of what the bank says about predictions: kept as they are, one per prediction, hashed by day. */
#include "ledger_fixture.h"

static const float bank_values[PAYEES] = {0.5F, -0.25F, 0.125F},
                   bank_errors[PAYEES] = {0.01F, 0.02F, NAN};

static int64_t clock_ms;
static int64_t fake_now(void) { return clock_ms; }

/* Eight predictions from entry *first on; two on the first day, then three a day. */
static fds_ledger *ledger_with_predictions(uint64_t *first) {
    fds_ledger *l = small_ledger();
    clock_ms = 4000060800000; /* begins a day */
    l->now_ms = fake_now;
    *first = fds_ledger_size(l);
    for (int i = 0; i < 8; i++) {
        fds_charge c = charge_of(l, 0, "acme", 100, NULL);
        clock_ms += 30000000;
        assert_int_equal(charge(l, &c), FDS_OK);
    }
    return l;
}

static fds_audited row_of(uint64_t entry, double score) {
    return (fds_audited){
        .entry = entry, .values = bank_values, .errors = bank_errors, .score = score};
}

typedef struct {
    uint64_t entries[8];
    double scores[8];
    size_t count;
} taken;

static fds_status take(void *user, const fds_audited *row, fds_error *err) {
    taken *t = user;
    (void)err;
    assert_memory_equal(row->values, bank_values, sizeof bank_values);
    assert_memory_equal(row->errors, bank_errors, sizeof bank_errors);
    t->entries[t->count] = row->entry;
    t->scores[t->count++] = row->score;
    return FDS_OK;
}

static taken read_from(const fds_ledger *l, uint64_t from) {
    fds_error err = {0};
    taken t = {0};
    expect_ok(fds_ledger_audited(l, from, take, &t, &err), &err);
    return t;
}

static void rows_come_back_in_the_order_of_entries(void **state) {
    (void)state;
    fds_error err = {0};
    uint64_t first;
    fds_ledger *l = ledger_with_predictions(&first);
    fds_audited rows[] = {row_of(first + 5, 1.5), row_of(first + 1, (double)NAN)};
    assert_int_equal(read_from(l, 0).count, 0);
    expect_ok(fds_ledger_add_audited(l, rows, 2, &err), &err);
    l = reopen(l);
    taken t = read_from(l, 0);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.entries[0], first + 1);
    assert_int_equal(t.entries[1], first + 5);
    assert_true(isnan(t.scores[0]) && t.scores[1] == 1.5);
    assert_int_equal(read_from(l, first + 2).count, 1);
    assert_int_equal(read_from(l, UINT64_MAX).count, 0);
    verify(l);
    fds_ledger_close(l);
}

static void a_second_row_of_an_entry_is_refused_with_all_that_came_with_it(void **state) {
    (void)state;
    fds_error err = {0};
    uint64_t first;
    fds_ledger *l = ledger_with_predictions(&first);
    fds_audited twice[] = {row_of(first, 1), row_of(first + 2, 1), row_of(first, 2)};
    assert_int_equal(fds_ledger_add_audited(l, twice, 3, &err), FDS_ERR_CONFLICT);
    assert_int_equal(read_from(l, 0).count, 0);
    expect_ok(fds_ledger_add_audited(l, twice, 2, &err), &err);
    assert_int_equal(fds_ledger_add_audited(l, twice + 2, 1, &err), FDS_ERR_CONFLICT);
    assert_int_equal(read_from(l, 0).count, 2);
    topup(l, "acme", 5); /* entries go on */
    verify(l);
    fds_ledger_close(l);
}

static void rows_of_what_is_no_prediction_are_refused(void **state) {
    (void)state;
    fds_error err = {0};
    uint64_t first;
    const float wrong[PAYEES] = {1, INFINITY, 0}, negative[PAYEES] = {0, -1, 0};
    fds_ledger *l = ledger_with_predictions(&first);
    fds_audited rows[] = {row_of(0, 1), row_of(fds_ledger_size(l), 1), row_of(first, 1),
                          row_of(first, 1)};
    const fds_status wanted[] = {FDS_ERR_USAGE, FDS_ERR_NOT_FOUND, FDS_ERR_USAGE, FDS_ERR_USAGE};
    rows[2].values = wrong;
    rows[3].errors = negative;
    for (int i = 0; i < 4; i++)
        assert_int_equal(fds_ledger_add_audited(l, &rows[i], 1, &err), wanted[i]);
    fds_ledger_close(l);
    l = open_as(scratch_path("l.db"), FDS_LEDGER_READ);
    fds_audited right = row_of(first, 1);
    assert_int_equal(fds_ledger_add_audited(l, &right, 1, &err), FDS_ERR_USAGE);
    fds_ledger_close(l);
}

/* The hash by hand, over the columns as docs/ledger.md has them. */
static void the_rows_of_a_day_are_hashed_as_documented(void **state) {
    (void)state;
    fds_error err = {0};
    uint64_t first, rows;
    uint8_t found[32], wanted[32], other[32], bytes[2][9 + 2 * (9 + sizeof bank_values) + 9];
    fds_ledger *l = ledger_with_predictions(&first);
    fds_audited all[] = {row_of(first + 1, 0.5), row_of(first + 3, 2), row_of(first + 4, 3)};
    size_t used[2] = {0};
    expect_ok(fds_ledger_add_audited(l, all, 3, &err), &err);
    for (int i = 1; i < 3; i++) { /* the second day has entries first + 2 to first + 4 */
        uint8_t *at = bytes[i - 1];
        uint64_t size = sizeof bank_values;
        const void *parts[] = {&all[i].entry, &size,       bank_values,
                               &size,         bank_errors, &all[i].score};
        const size_t sizes[] = {8, 8, size, 8, size, 8};
        const uint8_t types[] = {1, 3, 0, 3, 0, 4};
        for (int k = 0; k < 6; k++) {
            if (types[k])
                *at++ = types[k];
            memcpy(at, parts[k], sizes[k]);
            at += sizes[k];
        }
        used[i - 1] = (size_t)(at - bytes[i - 1]);
    }
    fds__sha256((fds__bytes[]){{bytes[0], used[0]}, {bytes[1], used[1]}}, 2, wanted);
    expect_ok(fds_ledger_audited_day(l, "2096-10-04", &rows, found, &err), &err);
    assert_int_equal(rows, 2);
    assert_memory_equal(found, wanted, 32);
    fds__sha256(NULL, 0, wanted);
    expect_ok(fds_ledger_audited_day(l, "2097-01-01", &rows, other, &err), &err);
    assert_int_equal(rows, 0);
    assert_memory_equal(other, wanted, 32);
    assert_int_equal(fds_ledger_audited_day(l, "soon", &rows, other, &err), FDS_ERR_USAGE);
    fds_ledger_close(l);
}

static void the_database_refuses_to_change_rows(void **state) {
    (void)state;
    fds_error err = {0};
    uint64_t first;
    fds_ledger *l = ledger_with_predictions(&first);
    fds_audited row = row_of(first, 1);
    expect_ok(fds_ledger_add_audited(l, &row, 1, &err), &err);
    assert_int_not_equal(db_run(l->db, "UPDATE audited SET score = 0", &err), FDS_OK);
    assert_int_not_equal(db_run(l->db, "DELETE FROM audited", &err), FDS_OK);
    assert_int_equal(read_from(l, 0).count, 1);
    fds_ledger_close(l);
}

/* As the ledgers of the version before. */
static void a_ledger_without_the_table_gets_it_with_its_first_row(void **state) {
    (void)state;
    fds_error err = {0};
    uint64_t first;
    fds_ledger *l = ledger_with_predictions(&first);
    fds_audited row = row_of(first, 1);
    expect_ok(db_run(l->db, "DROP TABLE audited; DELETE FROM meta WHERE name = 'audited'", &err),
              &err);
    if (database)
        expect_ok(db_run(l->db, "DROP FUNCTION audited_protect", &err), &err);
    l = reopen(l);
    assert_int_equal(read_from(l, 0).count, 0);
    verify(l);
    expect_ok(fds_ledger_add_audited(l, &row, 1, &err), &err);
    l = reopen(l);
    assert_int_equal(read_from(l, 0).count, 1);
    verify(l);
    expect_ok(fds_ledger_backup(l, scratch_path("copy"), &err), &err);
    fds_ledger_close(l);
    fds_ledger *copy = NULL;
    expect_ok(fds_ledger_open(scratch_path("copy"), FDS_LEDGER_READ, NULL, &copy, &err), &err);
    assert_int_equal(read_from(copy, 0).count, 1);
    verify(copy);
    fds_ledger_close(copy);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

/* ---- what waits ---- */

typedef struct {
    uint64_t entries[8];
    size_t count;
} waiting;

/* Two bytes for every second charge. */
static fds_status keep_some(void *user, size_t place, uint64_t entry, int64_t at_ms,
                            const void **data, size_t *size, fds_error *err) {
    static uint8_t bytes[2];
    fds_status *fails_at = user;
    (void)err;
    assert_int_equal(at_ms, clock_ms);
    if (fails_at && place == (size_t)*fails_at)
        return FDS_ERR_NOMEM;
    bytes[0] = (uint8_t)entry;
    bytes[1] = (uint8_t)place;
    *data = bytes;
    *size = place % 2 ? 2 : 0;
    return FDS_OK;
}

static fds_status take_waiting(void *user, uint64_t entry, const void *data, size_t size,
                               fds_error *err) {
    waiting *w = user;
    (void)err;
    assert_int_equal(size, 2);
    assert_int_equal(*(const uint8_t *)data, (uint8_t)entry);
    w->entries[w->count++] = entry;
    return FDS_OK;
}

static waiting what_waits(const fds_ledger *l, uint64_t from, size_t most) {
    waiting w = {0};
    fds_error err = {0};
    expect_ok(fds_ledger_waiting(l, from, most, take_waiting, &w, &err), &err);
    return w;
}

static fds_status buy_keeping(fds_ledger *l, fds_charge c[4], fds_status *fails_at) {
    fds_error err = {0};
    for (int i = 0; i < 4; i++)
        c[i] = charge_of(l, 0, i == 2 ? "nobody" : "acme", 100, NULL);
    return fds_ledger_charge_keeping(l, c, 4, keep_some, fails_at, &err);
}

static void what_is_kept_goes_with_its_row(void **state) {
    (void)state;
    fds_error err = {0};
    fds_charge c[4];
    uint64_t first, count;
    fds_ledger *l = ledger_with_predictions(&first);
    customer(l, "nobody"); /* cannot pay: the charge at place 2 keeps nothing */
    assert_int_equal(buy_keeping(l, c, NULL), FDS_OK);
    l = reopen(l);
    waiting w = what_waits(l, 0, 8);
    assert_int_equal(w.count, 2);
    assert_true(w.entries[0] == c[1].index && w.entries[1] == c[3].index);
    assert_int_equal(what_waits(l, 0, 1).count, 1);
    assert_int_equal(what_waits(l, c[1].index + 1, 8).count, 1);
    fds_audited row = row_of(c[1].index, 1);
    expect_ok(fds_ledger_add_audited(l, &row, 1, &err), &err);
    assert_int_equal(what_waits(l, 0, 8).count, 1);
    assert_int_equal(fds_ledger_add_audited(l, &row, 1, &err), FDS_ERR_CONFLICT);
    expect_ok(fds_ledger_waiting_count(l, &count, &err), &err);
    assert_int_equal(count, 1);
    verify(l);
    fds_ledger_close(l);
}

static void nothing_is_paid_where_something_cannot_be_kept(void **state) {
    (void)state;
    fds_charge c[4];
    uint64_t first;
    fds_status fails_at = 3;
    fds_ledger *l = ledger_with_predictions(&first);
    customer(l, "nobody");
    uint64_t size = fds_ledger_size(l);
    assert_true(buy_keeping(l, c, &fails_at) != FDS_OK);
    assert_int_equal(fds_ledger_size(l), size);
    assert_int_equal(what_waits(l, 0, 8).count, 0);
    verify(l);
    fds_ledger_close(l);
}

static void what_waits_is_forgotten_by_days(void **state) {
    (void)state;
    fds_error err = {0};
    fds_charge c[4];
    uint64_t first, count;
    fds_ledger *l = ledger_with_predictions(&first);
    customer(l, "nobody");
    char day[LEDGER_TIME], next[LEDGER_TIME];
    assert_int_equal(buy_keeping(l, c, NULL), FDS_OK);
    ledger_day_text(clock_ms / LEDGER_DAY_MS, day);
    ledger_day_text(clock_ms / LEDGER_DAY_MS + 1, next);
    expect_ok(fds_ledger_drop_waiting(l, day, &count, &err), &err);
    assert_true(count == 0 && what_waits(l, 0, 8).count == 2);
    expect_ok(fds_ledger_drop_waiting(l, next, &count, &err), &err);
    assert_true(count == 2 && what_waits(l, 0, 8).count == 0);
    assert_int_equal(fds_ledger_drop_waiting(l, "soon", &count, &err), FDS_ERR_USAGE);
    fds_ledger_close(l);
}

/* As ledgers of versions before; the one that it gets goes again with a transaction that fails. */
static void a_ledger_without_a_table_for_what_waits_gets_it_when_needed(void **state) {
    (void)state;
    fds_error err = {0};
    fds_charge c[4];
    uint64_t first, count;
    fds_status fails_at = 3;
    fds_ledger *l = ledger_with_predictions(&first);
    customer(l, "nobody");
    expect_ok(db_run(l->db, "DROP TABLE waiting; DELETE FROM meta WHERE name = 'waiting'", &err),
              &err);
    l = reopen(l);
    l->now_ms = fake_now;
    verify(l);
    assert_int_equal(what_waits(l, 0, 8).count, 0);
    expect_ok(fds_ledger_drop_waiting(l, "2096-10-04", &count, &err), &err);
    fds_audited row = row_of(first, 1);
    expect_ok(fds_ledger_add_audited(l, &row, 1, &err), &err);
    assert_true(buy_keeping(l, c, &fails_at) != FDS_OK);
    verify(l);
    assert_int_equal(buy_keeping(l, c, NULL), FDS_OK);
    l = reopen(l);
    assert_int_equal(what_waits(l, 0, 8).count, 2);
    verify(l);
    fds_ledger_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rows_come_back_in_the_order_of_entries),
        TEST(a_second_row_of_an_entry_is_refused_with_all_that_came_with_it),
        TEST(rows_of_what_is_no_prediction_are_refused),
        TEST(the_rows_of_a_day_are_hashed_as_documented),
        TEST(the_database_refuses_to_change_rows),
        TEST(a_ledger_without_the_table_gets_it_with_its_first_row),
        TEST(what_is_kept_goes_with_its_row),
        TEST(nothing_is_paid_where_something_cannot_be_kept),
        TEST(what_waits_is_forgotten_by_days),
        TEST(a_ledger_without_a_table_for_what_waits_gets_it_when_needed),
    };
    choose_store();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
