/* SPDX-License-Identifier: Apache-2.0
 * Verification: a right ledger passes; a change of any column of any row is found. */
#include "ledger_fixture.h"

#include <sqlite3.h>

static const char *const operators[2] = {"ann", "bob"};

/* A ledger with entries of every kind, over several days. */
static int64_t clock_ms;
static int64_t fake_now(void) { return clock_ms += 40000000; }

static void make_ledger(void) {
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    int64_t units;
    uint64_t index;
    clock_ms = (l->state.at_ms / LEDGER_DAY_MS + 1) * LEDGER_DAY_MS + 9000000; /* a day ends at 9 */
    l->now_ms = fake_now;
    expect_ok(fds_ledger_topup(l, find(l, "acme"), 77, "invoice 7", "t1", NULL, &err), &err);
    for (int i = 0; i < 4; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        fds_charge c = charge_of(l, 0, "acme", 100000 + i, i % 2 ? key : NULL);
        c.label = i % 2 ? "6" : "four";
        c.answer = "an answer";
        c.answer_size = i == 1 ? 9 : 0;
        c.confidence = i == 2 ? NAN : 0.5;
        c.errors = i == 3 ? NULL : some_errors;
        assert_int_equal(charge(l, &c), FDS_OK);
    }
    expect_ok(fds_ledger_payout(l, find(l, "north"), 0, "May", "p", &units, &index, &err), &err);
    assert_true(units > 0);
    fds_posting p[] = {{find(l, "south"), -1}, {find(l, "west"), 1}};
    expect_ok(fds_ledger_correct(l, 8, p, 2, "reason", operators, "c", NULL, &err), &err);
    expect_ok(fds_ledger_note(l, "{\"a\":\"a\"}", "n", NULL, &err), &err);
    const fds_posting paid = {find(l, "south"), l->unit.minor};
    expect_ok(fds_ledger_pay(l, &paid, 1, NULL, "p", &index, &err), &err);
    verify(l);
    fds_ledger_close(l);
}

/* Whether opening or verifying finds something; what in err. */
static bool is_found(const char *path, fds_error *err) {
    fds_ledger *l = NULL;
    *err = (fds_error){0};
    fds_status status = fds_ledger_open(path, FDS_LEDGER_READ, NULL, &l, err);
    if (status == FDS_OK)
        status = fds_ledger_verify(l, NULL, NULL, NULL, err);
    fds_ledger_close(l);
    return status != FDS_OK;
}

static void must(sqlite3 *file, const char *sql) {
    char *message = NULL;
    if (sqlite3_exec(file, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

static void copy_ledger(const char *to) {
    size_t size;
    char *data = scratch_read(scratch_path("l.db"), &size);
    scratch_write(scratch_path(to), data, size);
    free(data);
}

/* Runs SQL on a copy, as somebody would who owns the file: triggers are taken away and put back. */
static void tamper(const char *sql) {
    sqlite3 *file;
    copy_ledger("t.db");
    assert_int_equal(sqlite3_open(scratch_path("t.db"), &file), SQLITE_OK);
    sqlite3_stmt *read;
    char triggers[2][512];
    assert_int_equal(sqlite3_prepare_v2(file,
                                        "SELECT sql FROM sqlite_schema WHERE type = 'trigger'", -1,
                                        &read, NULL),
                     SQLITE_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sqlite3_step(read), SQLITE_ROW);
        snprintf(triggers[i], sizeof triggers[i], "%s", (const char *)sqlite3_column_text(read, 0));
    }
    sqlite3_finalize(read);
    must(file, "DROP TRIGGER entry_update; DROP TRIGGER entry_delete");
    must(file, sql);
    must(file, triggers[0]);
    must(file, triggers[1]);
    sqlite3_close(file);
}

static void expect_found(const char *sql, const char *part) {
    fds_error err;
    tamper(sql);
    if (!is_found(scratch_path("t.db"), &err))
        fail_msg("not found: %s", sql);
    if (part)
        expect_in(err.text, part);
}

static void a_right_ledger_passes(void **state) {
    (void)state;
    fds_error err = {0};
    char *report = NULL;
    make_ledger();
    fds_ledger *l = open_as(scratch_path("l.db"), FDS_LEDGER_READ);
    expect_ok(fds_ledger_verify(l, fds_ledger_vkey(l), NULL, &report, &err), &err);
    expect_in(report, "\"prediction\":4");
    expect_in(report, "\"audit\":1");
    expect_in(report, "\"entries\":17");
    fds_text_free(report);
    fds_ledger_close(l);
    tamper("SELECT 1"); /* the test's own way of changing it is not what is found */
    assert_false(is_found(scratch_path("t.db"), &err));
}

static void triggers_refuse_changes_of_entries(void **state) {
    (void)state;
    sqlite3 *file;
    make_ledger();
    assert_int_equal(sqlite3_open(scratch_path("l.db"), &file), SQLITE_OK);
    assert_int_equal(sqlite3_exec(file, "UPDATE entry SET amount = 1", NULL, NULL, NULL),
                     SQLITE_CONSTRAINT);
    assert_int_equal(sqlite3_exec(file, "DELETE FROM entry", NULL, NULL, NULL), SQLITE_CONSTRAINT);
    sqlite3_close(file);
}

/* Every column of every entry: another number, a longer text, a flipped bit, a null or not. */
static void a_change_of_any_column_of_any_entry_is_found(void **state) {
    (void)state;
    static const struct {
        const char *name, *changes[3];
    } columns[] = {
        {"kind", {"'topup'", "kind || 'x'"}},
        {"at", {"at + 1", "at - 1"}},
        {"run", {"coalesce(run, -1) + 1", "CASE WHEN run IS NULL THEN 0 END"}},
        {"customer", {"coalesce(customer, 0) + 1", "CASE WHEN customer IS NULL THEN 2 END"}},
        {"amount", {"coalesce(amount, 0) + 1", "CASE WHEN amount IS NULL THEN 0 END"}},
        {"fee", {"coalesce(fee, 0) + 1", "CASE WHEN fee IS NULL THEN 0 END"}},
        {"label",
         {"coalesce(label, '') || 'x'", "CASE WHEN label IS NULL THEN '' END",
          "label || char(0) || 'x'"}},
        {"confidence", {"coalesce(confidence, 0.0) + 0.125"}},
        {"rule", {"coalesce(rule, '') || 'x'", "CASE rule WHEN 'clip' THEN 'evenly' END"}},
        {"ref", {"coalesce(ref, 0) + 1", "CASE WHEN ref IS NULL THEN 0 END"}},
        {"text", {"coalesce(text, '{}') || ' '", "replace(text, 'a', 'b')"}},
        {"key", {"coalesce(key, '') || 'x'"}},
        {"fingerprint", {"randomblob(32)", "randomblob(31)"}},
        {"answer",
         {"CAST(coalesce(answer, x'') || x'00' AS BLOB)", "CASE WHEN answer IS NULL THEN x'' END"}},
        {"postings",
         {"CAST(coalesce(postings, x'') || x'00' AS BLOB)",
          "CASE WHEN postings IS NULL THEN x'00' "
          "ELSE randomblob(length(postings)) END"}},
        {"vals",
         {"CAST(coalesce(vals, x'') || x'00' AS BLOB)", "CASE WHEN vals IS NOT NULL THEN "
                                                        "x'0000803f0000803f0000803f' END"}},
        {"errors",
         {"CAST(coalesce(errors, x'') || x'00' AS BLOB)", "CASE WHEN errors IS NOT NULL THEN "
                                                          "x'003c003c003c' END"}},
        {"input",
         {"CAST(coalesce(input, x'') || x'00' AS BLOB)",
          "CASE WHEN input IS NOT NULL THEN randomblob(32) END"}},
        {"salt", {"randomblob(32)"}},
        {"leaf", {"randomblob(32)"}},
    };
    make_ledger();
    char sql[512], name[32];
    for (int entry = 0; entry < 17; entry++)
        for (size_t i = 0; i < COUNT(columns); i++)
            for (int k = 0; k < 3 && columns[i].changes[k]; k++) {
                fds_error err;
                snprintf(sql, sizeof sql,
                         "UPDATE OR IGNORE entry SET %s = %s WHERE idx = %d AND (%s) IS NOT %s AND "
                         "(%s) IS NOT NULL",
                         columns[i].name, columns[i].changes[k], entry, columns[i].changes[k],
                         columns[i].name, columns[i].changes[k]);
                tamper(sql);
                bool found = is_found(scratch_path("t.db"), &err);
                /* only a change that did not happen may pass: compare the rows themselves */
                sqlite3 *file;
                sqlite3_stmt *q;
                assert_int_equal(sqlite3_open(scratch_path("t.db"), &file), SQLITE_OK);
                snprintf(sql, sizeof sql, "ATTACH '%s' AS o", scratch_path("l.db"));
                must(file, sql);
                snprintf(
                    sql, sizeof sql,
                    "SELECT count(*) FROM entry a JOIN o.entry b ON a.idx = b.idx WHERE a.%s IS "
                    "NOT b.%s",
                    columns[i].name, columns[i].name);
                assert_int_equal(sqlite3_prepare_v2(file, sql, -1, &q, NULL), SQLITE_OK);
                assert_int_equal(sqlite3_step(q), SQLITE_ROW);
                bool has_changed = sqlite3_column_int(q, 0) != 0;
                sqlite3_finalize(q);
                sqlite3_close(file);
                snprintf(name, sizeof name, "entry %d", entry);
                if (found != has_changed)
                    fail_msg("entry %d, column %s, change %d: changed %d, found %d: %s", entry,
                             columns[i].name, k, has_changed, found, err.text);
                if (found && !strstr(err.text, name) && !strstr(err.text, "run ") &&
                    !strstr(err.text, "malformed"))
                    fail_msg("%s of entry %d: \"%s\" does not name it", columns[i].name, entry,
                             err.text);
            }
}

static void a_change_of_what_follows_from_entries_is_found(void **state) {
    (void)state;
    make_ledger();
    expect_found("UPDATE account SET balance = balance + 1 WHERE name = 'north'", "of north is");
    expect_found("UPDATE account SET name = 'south2' WHERE name = 'south'", "account");
    expect_found("UPDATE account SET kind = 'customer' WHERE name = 'south'", "account");
    expect_found("INSERT INTO account VALUES(6, 'customer', 'x', 0)", NULL);
    expect_found("DELETE FROM account WHERE id = 5", NULL);
    expect_found("UPDATE run SET carry = zeroblob(48)", "run 0");
    expect_found("UPDATE run SET entry = 0", NULL);
    expect_found("UPDATE earning SET units = units + 1 WHERE label = '6'", "earnings of");
    expect_found("UPDATE earning SET n = n + 1 WHERE label = '6'", "earnings of");
    expect_found("DELETE FROM earning WHERE label = '6'", "earnings of");
    expect_found("INSERT INTO earning VALUES(2, 1, 'x', 1, 1)", "earnings");
    expect_found("UPDATE tile SET hashes = randomblob(length(hashes))", NULL);
    expect_found("UPDATE tile SET hashes = CAST(hashes || zeroblob(32) AS BLOB)", "tile");
    expect_found("DELETE FROM tile", "tile");
    expect_found("INSERT INTO tile VALUES(1, 0, zeroblob(32))", "tile");
    expect_found("DELETE FROM checkpoint", "checkpoint");
    expect_found("DELETE FROM checkpoint WHERE day = (SELECT max(day) FROM checkpoint)", NULL);
    expect_found("UPDATE checkpoint SET size = size + 1", NULL);
    expect_found("UPDATE checkpoint SET note = replace(note, 'example', 'exanple')", NULL);
    expect_found("UPDATE meta SET value = 'EUR' WHERE name = 'currency'", "currency");
    expect_found("UPDATE meta SET value = '5' WHERE name = 'decimals'", NULL);
    expect_found("UPDATE meta SET value = '1' WHERE name = 'debts'", "debts");
    expect_found("UPDATE meta SET value = '2' WHERE name = 'format'", "format 2");
    expect_found("DELETE FROM meta WHERE name = 'vkey'", NULL);
    expect_found("CREATE INDEX more ON entry(at)", "were changed");
    expect_found("CREATE TRIGGER more AFTER INSERT ON entry BEGIN DELETE FROM tile; END",
                 "were changed");
}

static void removed_and_reordered_entries_are_found(void **state) {
    (void)state;
    make_ledger();
    expect_found("DELETE FROM entry WHERE idx = 16", NULL);
    expect_found("DELETE FROM entry WHERE idx = 9", "entry 9 is missing");
    expect_found("UPDATE entry SET idx = 100 WHERE idx = 9; UPDATE entry SET idx = 9 WHERE idx = "
                 "10; UPDATE entry SET idx = 10 WHERE idx = 100",
                 "entry 9");
    expect_found("DELETE FROM entry WHERE idx = 16; DELETE FROM checkpoint WHERE day = (SELECT "
                 "max(day) FROM checkpoint)",
                 NULL);
}

/* Somebody with the file, but not the key, changes an entry and everything that follows from it. */
static void a_consistent_forgery_is_found_by_the_signature(void **state) {
    (void)state;
    fds_error err = {0};
    make_ledger();
    expect_ok(CREATE(scratch_path("f.db"), "origin", "example.com/test"), &err);
    fds_ledger *f = open_as(scratch_path("f.db"), FDS_LEDGER_WRITE);
    topup(f, "acme", 5);
    char *vkey = strdup(fds_ledger_vkey(f));
    fds_ledger_close(f);
    fds_ledger *l = open_as(scratch_path("l.db"), FDS_LEDGER_READ);
    assert_int_equal(fds_ledger_verify(l, vkey, NULL, NULL, &err), FDS_ERR_CORRUPT);
    assert_int_equal(fds_ledger_verify(l, "nonsense", NULL, NULL, &err), FDS_ERR_USAGE);
    verify(l);
    fds_ledger_close(l);
    free(vkey);
}

/* ---- events ---- */

static bool stop_at_once(void *user, const fds_progress *progress) {
    uint64_t *calls = user;
    assert_string_equal(progress->unit, "entries");
    return ++*calls >= 2;
}

static void verification_can_be_cancelled(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    uint64_t calls = 0;
    fds_events events = {.progress = stop_at_once, .user = &calls};
    fds_charge c[600];
    for (int i = 0; i < 600; i++)
        c[i] = charge_of(l, 0, "acme", 7, NULL);
    expect_ok(fds_ledger_charge(l, c, 600, &err), &err);
    assert_int_equal(fds_ledger_verify(l, NULL, &events, NULL, &err), FDS_ERR_CANCELLED);
    assert_int_equal(calls, 2);
    verify(l); /* full tiles of two levels */
    l = reopen(l);
    topup(l, "acme", 1);
    verify(l);
    fds_ledger_close(l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_right_ledger_passes),
        TEST(triggers_refuse_changes_of_entries),
        TEST(a_change_of_any_column_of_any_entry_is_found),
        TEST(a_change_of_what_follows_from_entries_is_found),
        TEST(removed_and_reordered_entries_are_found),
        TEST(a_consistent_forgery_is_found_by_the_signature),
        TEST(verification_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
