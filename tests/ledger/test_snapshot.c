/* SPDX-License-Identifier: Apache-2.0
 * A snapshot: the ledger as of one moment, for another thread, while entries are added between its parts. */
#include "ledger_fixture.h"

#include <sys/stat.h>

enum { MANY = 300, TIMES = 40 };

typedef struct {
    fds_ledger *ledger;
    int calls, stop_at; /* 0: not at all */
} pauses;

/* More than two parts of 1 MiB. */
static fds_ledger *large_ledger(void) {
    static fds_charge c[MANY];
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    for (int i = 0; i < TIMES; i++) {
        for (int k = 0; k < MANY; k++)
            c[k] = charge_of(l, 0, "acme", 100, NULL);
        expect_ok(fds_ledger_charge(l, c, MANY, &err), &err);
    }
    return l;
}

static bool pay_between(void *user, uint64_t done, uint64_t total) {
    pauses *p = user;
    assert_true(done > 0 && done < total);
    fds_charge c = charge_of(p->ledger, 0, "acme", 100, NULL);
    assert_int_equal(charge(p->ledger, &c), FDS_OK);
    return ++p->calls == p->stop_at;
}

static void entries_that_come_meanwhile_are_in_it(void **state) {
    (void)state;
    fds_error err = {0};
    struct stat about;
    fds_ledger *l = large_ledger(), *snapshot = NULL;
    pauses p = {.ledger = l};
    expect_ok(fds_ledger_snapshot(l, scratch_path("l.db"), pay_between, &p, &snapshot, &err), &err);
    assert_true(p.calls > 0);
    assert_int_not_equal(stat(scratch_path("l.db.snapshot"), &about), 0);
    uint64_t size = fds_ledger_size(l);
    for (int i = 0; i < 3; i++) { /* these are not */
        fds_charge c = charge_of(l, 0, "acme", 100, NULL);
        assert_int_equal(charge(l, &c), FDS_OK);
    }
    assert_int_equal(fds_ledger_size(snapshot), size);
    assert_string_equal(fds_ledger_name(snapshot), fds_ledger_name(l));
    verify(snapshot);
    fds_ledger_close(snapshot);
    verify(l);
    fds_ledger_close(l);
}

static void it_stops_when_asked_to(void **state) {
    (void)state;
    fds_error err = {0};
    struct stat about;
    fds_ledger *l = large_ledger(), *snapshot = NULL;
    pauses p = {.ledger = l, .stop_at = 1};
    assert_int_equal(fds_ledger_snapshot(l, scratch_path("l.db"), pay_between, &p, &snapshot, &err),
                     FDS_ERR_CANCELLED);
    assert_int_equal(p.calls, 1);
    assert_null(snapshot);
    assert_int_not_equal(stat(scratch_path("l.db.snapshot"), &about), 0);
    topup(l, "acme", 5);
    verify(l);
    fds_ledger_close(l);
}

/* Only its owner may read what only the owner may read. */
static void copies_are_for_the_owner_alone(void **state) {
    (void)state;
    fds_error err = {0};
    struct stat about;
    fds_ledger *l = small_ledger();
    expect_ok(fds_ledger_backup(l, scratch_path("copy"), &err), &err);
    assert_int_equal(stat(scratch_path("copy"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    fds_ledger_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(entries_that_come_meanwhile_are_in_it, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(it_stops_when_asked_to, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(copies_are_for_the_owner_alone, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
