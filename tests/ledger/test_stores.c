/* SPDX-License-Identifier: Apache-2.0
 * The same operations on a file and on a database make the same ledger, hash by hash. */
#include "ledger_fixture.h"

static const char *const operators[2] = {"ann", "bob"};
static const char *uri; /* of the database */

/* ---- the same time and the same salts for both ---- */

static int64_t clock_ms;
static uint8_t salt;
static int64_t fake_now(void) { return clock_ms += 7000000; }
static fds_status fake_random(void *out, size_t size, fds_error *err) {
    (void)err;
    memset(out, ++salt, size);
    return FDS_OK;
}

/* Entries of every kind, numbers at their limits, texts of several scripts. */
static fds_ledger *make(const char *where) {
    fds_error err = {0};
    const char *name = where ? "database" : "file";
    database = where;
    expect_ok(CREATE(scratch_path(name), "origin", "example.com/test", "debts", "true"), &err);
    fds_ledger *l = open_as(scratch_path(name), FDS_LEDGER_WRITE);
    clock_ms = 4000000000000;
    salt = 0;
    l->now_ms = fake_now;
    l->random = fake_random;
    topup(l, "acme", 1000000000);
    topup(l, "b\xc3\xb6lt \xe3\x81\x82 ' \" \\ $1", 77);
    add_run(l, SHA_A, NULL, 100000);
    add_run(l, SHA_B, "signed", 1);
    static const char *const labels[] = {"6", "Zebra", "apple", "\xc3\xa9t\xc3\xa9", "\\x00"};
    for (int i = 0; i < 40; i++) {
        double values[PAYEES] = {0.5, i % 3 ? -0.25 : -0.0, i == 7 ? 3.4e38 : 1e-45 * i},
               errors[PAYEES] = {NAN, 0, 1e30};
        char key[16];
        snprintf(key, sizeof key, "k%d", i / 2);
        fds_charge c = charge_of(l, (uint64_t)i % 2, "acme", 100000 + i, i % 4 ? key : NULL);
        c.label = labels[i % 5];
        c.values = values;
        c.errors = i % 3 ? errors : NULL;
        c.confidence = i % 5 ? 1.0 / (i + 1) : (double)NAN;
        c.answer = "\0\1\377";
        c.answer_size = (size_t)i % 4;
        fds_status status = charge(l, &c);
        assert_true(status == FDS_OK || status == FDS_ERR_CONFLICT);
        fds_text_free(c.first_answer);
    }
    int64_t units;
    expect_ok(fds_ledger_payout(l, find(l, "north"), 0, "May", "p", &units, NULL, &err), &err);
    fds_posting p[] = {{find(l, "south"), -1}, {find(l, "west"), 1}};
    expect_ok(fds_ledger_correct(l, 8, p, 2, "reason", operators, "c", NULL, &err), &err);
    verify(l);
    return l;
}

static char *entry_of(const fds_ledger *l, uint64_t index) {
    fds_error err = {0};
    char *json = NULL;
    expect_ok(fds_ledger_entry(l, index, UINT64_MAX, &json, &err), &err);
    return json;
}

static void a_file_and_a_database_say_the_same(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *a = make(NULL), *b = make(uri);
    assert_int_equal(fds_ledger_size(a), fds_ledger_size(b));
    assert_int_equal(fds_ledger_accounts(a), fds_ledger_accounts(b));
    for (uint64_t i = 2; i < fds_ledger_size(a); i++) { /* two are there since they were made */
        char *in_a = entry_of(a, i), *in_b = entry_of(b, i);
        assert_string_equal(in_a, in_b);
        fds_text_free(in_a);
        fds_text_free(in_b);
    }
    for (uint64_t i = 0; i < fds_ledger_accounts(a); i++) {
        char *in_a = NULL, *in_b = NULL;
        assert_string_equal(fds_ledger_account_name(a, i), fds_ledger_account_name(b, i));
        assert_int_equal(fds_ledger_balance(a, i), fds_ledger_balance(b, i));
        expect_ok(fds_ledger_earnings(a, i, &in_a, &err), &err);
        expect_ok(fds_ledger_earnings(b, i, &in_b, &err), &err);
        assert_string_equal(in_a, in_b);
        fds_text_free(in_a);
        fds_text_free(in_b);
    }
    fds_ledger_close(a);
    fds_ledger_close(b);
}

/* The leaves of the log, from the first that both have. */
static void their_logs_have_the_same_hashes(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *a = make(NULL), *b = make(uri);
    char path[64];
    void *in_a, *in_b;
    size_t size_a, size_b;
    snprintf(path, sizeof path, "tile/0/000.p/%d", (int)fds_ledger_size(a));
    expect_ok(fds_ledger_log_file(a, path, &in_a, &size_a, &err), &err);
    expect_ok(fds_ledger_log_file(b, path, &in_b, &size_b, &err), &err);
    assert_int_equal(size_a, size_b);
    assert_true(size_a > 40 * sizeof(log_hash));
    log_hash *leaves_a = in_a, *leaves_b = in_b;
    size_t count = size_a / sizeof *leaves_a;
    assert_memory_equal(leaves_a + 2, leaves_b + 2, size_a - 2 * sizeof *leaves_a);
    memcpy(leaves_b, leaves_a, 2 * sizeof *leaves_b);
    log_hash root_a = log_tree_root(a->tree), root_b = log_root(leaves_b, count);
    assert_true(log_equal(&root_a, &root_b));
    fds_text_free(in_a);
    fds_text_free(in_b);
    fds_ledger_close(a);
    fds_ledger_close(b);
}

/* All columns: the copy can be written on with the key of the database. */
static void a_copy_of_a_database_is_a_ledger_in_a_file(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *b = make(uri), *copy = NULL;
    expect_ok(fds_ledger_backup(b, scratch_path("copy"), &err), &err);
    expect_ok(fds_ledger_open(scratch_path("copy"), FDS_LEDGER_WRITE,
                              key_of(scratch_path("database")), &copy, &err),
              &err);
    log_hash root = log_tree_root(b->tree), of_copy = log_tree_root(copy->tree);
    assert_true(log_equal(&root, &of_copy));
    for (uint64_t i = 0; i < fds_ledger_size(b); i++) {
        char *in_b = entry_of(b, i), *in_copy = entry_of(copy, i);
        assert_string_equal(in_b, in_copy);
        fds_text_free(in_b);
        fds_text_free(in_copy);
    }
    topup(copy, "acme", 1);
    verify(copy);
    fds_ledger_close(b);
    fds_ledger_close(copy);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_file_and_a_database_say_the_same),
        TEST(their_logs_have_the_same_hashes),
        TEST(a_copy_of_a_database_is_a_ledger_in_a_file),
    };
    uri = getenv("FDS_TEST_POSTGRES");
    if (!uri) {
        printf("1..0 # SKIP run it by postgres.py\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
