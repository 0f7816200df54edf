/* SPDX-License-Identifier: Apache-2.0
 * What others see: receipts, the files of the log, entries and statements by viewer, copies. */
#include "ledger_fixture.h"

static void pay(fds_ledger *l, int count) {
    for (int i = 0; i < count; i++) {
        fds_charge c = charge_of(l, 0, "acme", 1000 + i, NULL);
        assert_int_equal(charge(l, &c), FDS_OK);
    }
}

static char *receipt(const fds_ledger *l, uint64_t index, const char *name) {
    char *proof = NULL;
    fds_error err = {0};
    expect_ok(fds_ledger_receipt(l, index, find(l, name), &proof, &err), &err);
    return proof;
}

static void a_receipt_proves_a_share_and_shows_nobody_elses(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    uint64_t first = fds_ledger_size(l);
    pay(l, 5);
    static const char *const names[] = {"acme", "north", "south", "west", "fees"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char *proof = receipt(l, first + 2, names[i]), *json = NULL, part[64];
        expect_ok(fds_receipt_verify(proof, strlen(proof), fds_ledger_vkey(l), &json, &err), &err);
        snprintf(part, sizeof part, "\"account\":\"%s\"", names[i]);
        expect_in(json, part);
        expect_in(json, "\"label\":\"6\"");
        expect_in(json, "\"amount\":1002");
        expect_in(json, "\"currency\":\"USD\"");
        for (size_t k = 0; k < COUNT(names); k++) /* base64: look at what is proven */
            if (k != i && strstr(json, names[k]))
                fail_msg("the receipt of %s names %s", names[i], names[k]);
        fds_text_free(json);
        fds_text_free(proof);
    }
    fds_ledger_close(l);
}

static void a_receipt_stays_valid_when_the_log_grows(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    uint64_t first = fds_ledger_size(l);
    pay(l, 1);
    char *old = receipt(l, first, "north"), vkey[LOG_VKEY];
    snprintf(vkey, sizeof vkey, "%s", fds_ledger_vkey(l));
    pay(l, 300);
    char *now = receipt(l, first, "north");
    fds_ledger_close(l);
    expect_ok(fds_receipt_verify(old, strlen(old), vkey, NULL, &err), &err);
    expect_ok(fds_receipt_verify(now, strlen(now), vkey, NULL, &err), &err);
    fds_text_free(old);
    fds_text_free(now);
}

/* No byte can be changed. */
static void a_changed_receipt_is_refused(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    uint64_t first = fds_ledger_size(l);
    pay(l, 3);
    char *proof = receipt(l, first + 1, "north");
    size_t size = strlen(proof);
    for (size_t i = 0; i < size; i++) {
        for (unsigned bit = 0; bit < 8; bit += 1 + i % 3) {
            proof[i] ^= (char)(1U << bit);
            fds_status status = fds_receipt_verify(proof, size, fds_ledger_vkey(l), NULL, &err);
            if (status == FDS_OK)
                fail_msg("byte %zu, bit %u: still valid", i, bit);
            proof[i] ^= (char)(1U << bit);
        }
        assert_int_not_equal(fds_receipt_verify(proof, i, fds_ledger_vkey(l), NULL, &err), FDS_OK);
    }
    expect_ok(fds_receipt_verify(proof, size, fds_ledger_vkey(l), NULL, &err), &err);
    assert_int_equal(fds_receipt_verify(proof, size, NULL, NULL, &err), FDS_ERR_USAGE);
    fds_text_free(proof);
    fds_ledger_close(l);
}

static void receipts_of_nothing_are_refused(void **state) {
    (void)state;
    fds_error err = {0};
    char *proof = NULL;
    fds_ledger *l = small_ledger();
    assert_int_equal(fds_ledger_receipt(l, 0, 0, &proof, &err),
                     FDS_ERR_NOT_FOUND); /* no postings */
    assert_int_equal(fds_ledger_receipt(l, 99, 0, &proof, &err), FDS_ERR_NOT_FOUND);
    assert_int_equal(fds_ledger_receipt(l, 3, 99, &proof, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_receipt(l, 3, find(l, "north"), &proof, &err), FDS_ERR_NOT_FOUND);
    expect_in(err.text, "no posting of north");
    fds_ledger_close(l);
}

/* ---- the log ---- */

static void the_log_has_its_entries_as_they_are_hashed(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    pay(l, 300);
    uint64_t size = fds_ledger_size(l);
    uint8_t *entries;
    log_hash *tile;
    size_t entry_bytes, tile_bytes;
    char path[64];
    expect_ok(fds_ledger_log_file(l, "tile/entries/000", (void **)&entries, &entry_bytes, &err),
              &err);
    expect_ok(fds_ledger_log_file(l, "tile/0/000", (void **)&tile, &tile_bytes, &err), &err);
    assert_int_equal(tile_bytes, 256 * 32);
    size_t at = 0;
    for (size_t i = 0; i < 256; i++) {
        size_t length = (size_t)entries[at] << 8 | entries[at + 1];
        log_hash leaf = log_leaf(entries + at + 2, length);
        assert_true(log_equal(&leaf, &tile[i]));
        at += 2 + length;
    }
    assert_int_equal(at, entry_bytes);
    expect_in((char *)entries + 2, "fds entry v1\nindex 0\nkind open\nat 20");
    fds_text_free((char *)entries);
    fds_text_free((char *)tile);
    static const char *const there[] = {"checkpoint", "tile/1/000.p/1", "tile/0/001.p/7",
                                        "tile/entries/001.p/3"};
    static const char *const absent[] = {"",           "tile/0/002",     "tile/1/000",
                                         "tile/0/001", "tile/2/000.p/1", "tile/entries/002",
                                         "x",          "tile/0/00"};
    for (size_t i = 0; i < COUNT(there); i++) {
        expect_ok(fds_ledger_log_file(l, there[i], (void **)&entries, &entry_bytes, &err), &err);
        fds_text_free((char *)entries);
    }
    for (size_t i = 0; i < COUNT(absent); i++)
        assert_int_equal(fds_ledger_log_file(l, absent[i], (void **)&entries, &entry_bytes, &err),
                         FDS_ERR_NOT_FOUND);
    snprintf(path, sizeof path, "tile/0/001.p/%llu", (unsigned long long)size - 256 + 1);
    assert_int_equal(fds_ledger_log_file(l, path, (void **)&entries, &entry_bytes, &err),
                     FDS_ERR_NOT_FOUND);
    fds_ledger_close(l);
}

/* ---- looking ---- */

static void a_viewer_sees_its_own_postings_only(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    char *json = NULL;
    fds_charge c = charge_of(l, 0, "acme", 1000000, "order 17");
    c.answer = "{\"label\":6}";
    c.answer_size = 11;
    charge(l, &c);
    expect_ok(fds_ledger_entry(l, c.index, UINT64_MAX, &json, &err), &err);
    static const char *const all[] = {"\"acme\"", "\"north\"",  "\"west\"",     "\"order 17\"",
                                      "514286",   "confidence", "answer_base64"};
    for (size_t i = 0; i < COUNT(all); i++)
        expect_in(json, all[i]);
    assert_null(strstr(json, "salt"));
    fds_text_free(json);
    expect_ok(fds_ledger_entry(l, c.index, find(l, "north"), &json, &err), &err);
    expect_in(json, "514286");
    expect_in(json, "\"value\":0.5");
    expect_in(json, "\"label\":\"6\"");
    for (size_t i = 0; i < COUNT(all); i++)
        if (i != 1 && i != 4 && strstr(json, all[i]))
            fail_msg("north sees %s: %s", all[i], json);
    fds_text_free(json);
    expect_ok(fds_ledger_entry(l, c.index, find(l, "acme"), &json, &err), &err);
    expect_in(json, "order 17");
    assert_null(strstr(json, "514286"));
    fds_text_free(json);
    expect_ok(fds_ledger_entry(l, 3, find(l, "north"), &json, &err), &err);
    assert_null(strstr(json, "acme")); /* somebody's top-up: not who, not how much */
    assert_null(strstr(json, "10000000"));
    fds_text_free(json);
    assert_int_equal(fds_ledger_entry(l, 99, UINT64_MAX, &json, &err), FDS_ERR_NOT_FOUND);
    fds_ledger_close(l);
}

typedef struct {
    char text[65536];
    size_t used;
} sink;

static bool into_sink(void *user, const char *text, size_t size) {
    sink *s = user;
    memcpy(s->text + s->used, text, size);
    s->used += size;
    s->text[s->used] = 0;
    return true;
}

static void a_statement_ends_with_the_balance(void **state) {
    (void)state;
    fds_error err = {0};
    static sink s;
    fds_ledger *l = small_ledger();
    pay(l, 20);
    uint64_t north = find(l, "north");
    char money[32], today[LEDGER_TIME];
    s.used = 0;
    expect_ok(fds_ledger_statement(l, north, NULL, NULL, into_sink, &s, &err), &err);
    assert_memory_equal(s.text, "date,entry,kind,label,amount,standard_error,balance\n", 52);
    fds_money_text(balance(l, "north"), 6, money);
    assert_string_equal(strrchr(s.text, ',') + 1, strcat(money, "\n"));
    size_t whole = s.used;
    ledger_day_text(l->state.at_ms / LEDGER_DAY_MS, today);
    s.used = 0;
    expect_ok(fds_ledger_statement(l, north, "2020-02-29", today, into_sink, &s, &err), &err);
    assert_int_equal(s.used, whole);
    s.used = 0;
    expect_ok(fds_ledger_statement(l, north, NULL, "2020-02-29", into_sink, &s, &err), &err);
    assert_int_equal(s.used, 52);
    assert_int_equal(fds_ledger_statement(l, north, "2021-02-29", NULL, into_sink, &s, &err),
                     FDS_ERR_USAGE);
    expect_in(err.text, "`from` must be a day");
    char *json = NULL;
    expect_ok(fds_ledger_earnings(l, north, &json, &err), &err);
    char part[96];
    snprintf(part, sizeof part, "\"units\":%lld,\"count\":20", (long long)balance(l, "north"));
    expect_in(json, part);
    fds_text_free(json);
    fds_ledger_close(l);
}

/* A file, also where the ledger is a database. */
static fds_ledger *open_copy(const char *name) {
    fds_ledger *l = NULL;
    fds_error err = {0};
    expect_ok(fds_ledger_open(scratch_path(name), FDS_LEDGER_READ, NULL, &l, &err), &err);
    return l;
}

static void a_copy_is_complete_while_the_ledger_is_open(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    pay(l, 10);
    uint64_t size = fds_ledger_size(l);
    expect_ok(fds_ledger_backup(l, scratch_path("copy.db"), &err), &err);
    pay(l, 1);
    fds_ledger *copy = open_copy("copy.db");
    assert_int_equal(fds_ledger_size(copy), size);
    verify(copy); /* every hash of it */
    /* one that reads may copy as well, and over an older copy */
    expect_ok(fds_ledger_backup(copy, scratch_path("again.db"), &err), &err);
    expect_ok(fds_ledger_backup(l, scratch_path("again.db"), &err), &err);
    fds_ledger_close(copy);
    copy = open_copy("again.db");
    assert_int_equal(fds_ledger_size(copy), size + 1);
    fds_ledger_close(copy);
    if (!database) {
        assert_int_equal(fds_ledger_backup(l, scratch_path("l.db"), &err), FDS_ERR_USAGE);
        assert_int_equal(link(scratch_path("l.db"), scratch_path("same.db")), 0);
        assert_int_equal(fds_ledger_backup(l, scratch_path("same.db"), &err), FDS_ERR_USAGE);
    }
    assert_int_not_equal(fds_ledger_backup(l, scratch_path("no/such.db"), &err), FDS_OK);
    verify(l);
    fds_ledger_close(l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_receipt_proves_a_share_and_shows_nobody_elses),
        TEST(a_receipt_stays_valid_when_the_log_grows),
        TEST(a_changed_receipt_is_refused),
        TEST(receipts_of_nothing_are_refused),
        TEST(the_log_has_its_entries_as_they_are_hashed),
        TEST(a_viewer_sees_its_own_postings_only),
        TEST(a_statement_ends_with_the_balance),
        TEST(a_copy_is_complete_while_the_ledger_is_open),
    };
    choose_store();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
