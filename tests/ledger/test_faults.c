/* SPDX-License-Identifier: Apache-2.0
 * Every allocation and file operation of ours fails once, and the disk is full: the call fails, memory
 * and file agree, nothing leaks (under ASan), and the same call then succeeds. */
#include "ledger_fixture.h"

#include <signal.h>
#include <sys/resource.h>

static const char *const operators[2] = {"ann", "bob"};

/* The same calls each time: one fails where a fault is armed. Keys make each happen once. */
static fds_status use(fds_ledger *l, fds_error *err) {
    uint64_t account, number;
    int64_t units;
    TRY(fds_ledger_account(l, FDS_ACCOUNT_CUSTOMER, "acme", &account, err));
    TRY(fds_ledger_topup(l, account, 1000000, "r", "t", NULL, err));
    fds_ledger_run run = {
        .name = "mnist", .sha256 = SHA_A, .payees = payees, .count = PAYEES, .fee_ppm = 1000};
    TRY(fds_ledger_add_run(l, &run, &number, err));
    fds_charge c[3];
    for (int i = 0; i < 3; i++) {
        c[i] = (fds_charge){.run = number,
                            .customer = account,
                            .amount = 1001,
                            .label = "6",
                            .values = some_values,
                            .errors = some_errors,
                            .key = i == 1 ? "a" : "b",
                            .answer = "x",
                            .answer_size = 1};
    }
    fds_status status = fds_ledger_charge(l, c, 3, err);
    for (int i = 0; i < 3; i++) {
        if (status == FDS_OK && c[i].status != FDS_OK)
            fail_msg("%s", c[i].reason);
        if (status != FDS_OK)
            assert_null(c[i].first_answer);
        else
            fds_text_free(c[i].first_answer);
    }
    TRY(status);
    const fds_ledger_by by = {.operators = {"ann", "bob"}, .proposal = 1};
    const fds_posting some = {account, 10000};
    TRY(fds_ledger_set_by(l, &by, err));
    TRY(fds_ledger_pay(l, &some, 1, "r", "q", &number, err));
    TRY(fds_ledger_payout(l, account, 0, NULL, "p", &units, NULL, err));
    fds_posting p[] = {{1, -1}, {0, 1}};
    TRY(fds_ledger_correct(l, 0, p, 2, "reason", operators, "c", NULL, err));
    return fds_ledger_note(l, "{\"a\":1}", "n", NULL, err);
}

static fds_status look(fds_ledger *l, fds_error *err) {
    char *text = NULL;
    uint64_t last = fds_ledger_size(l) - 6; /* a prediction */
    const fds_ledger_listing some = {
        .account = 2, .before = UINT64_MAX, .limit = 3, .viewer = UINT64_MAX};
    fds_ledger_totals totals;
    TRY(fds_ledger_entries(l, &some, &text, err));
    fds_text_free(text);
    TRY(fds_ledger_sum(l, &totals, err));
    TRY(fds_ledger_verify(l, NULL, NULL, &text, err));
    fds_text_free(text);
    TRY(fds_ledger_entry(l, last, UINT64_MAX, &text, err));
    fds_text_free(text);
    TRY(fds_ledger_receipt(l, last, 2, &text, err));
    size_t size = strlen(text);
    char *json = NULL;
    fds_status status = fds_receipt_verify(text, size, fds_ledger_vkey(l), &json, err);
    fds_text_free(json);
    fds_text_free(text);
    TRY(status);
    TRY(fds_ledger_earnings(l, 3, &text, err));
    fds_text_free(text);
    TRY(fds_ledger_export(l, "beancount", scratch_path("out"), NULL, err));
    void *data;
    TRY(fds_ledger_log_file(l, "tile/entries/000.p/5", &data, &size, err));
    fds_text_free(data);
    return fds_ledger_backup(l, scratch_path("copy"), err);
}

static fds__fault_kind kind_of_fault;
static uint64_t calls; /* until the faults were over */

static fds_status whole(fds_error *err) {
    fds_ledger *l = NULL;
    if (access(scratch_path("l.db"), F_OK) != 0)
        TRY(create_with(scratch_path("l.db"), NULL, err));
    TRY(fds_ledger_open(scratch_path("l.db"), FDS_LEDGER_WRITE, NULL, &l, err));
    fds_status status = use(l, err);
    if (status != FDS_OK && status != FDS_ERR_CONFLICT) {
        /* memory is what the file is; and nothing stands in the way of doing it again */
        fds_error second = {0};
        verify(l);
        expect_ok(use(l, &second), &second);
        verify(l);
    } else if (status == FDS_OK) {
        status = look(l, err);
    }
    uint64_t size = fds_ledger_size(l);
    int64_t acme = status == FDS_OK ? balance(l, "acme") : 0;
    fds_ledger_close(l);
    calls = fds__fault_arm(kind_of_fault, 0);
    if (status == FDS_OK) {
        l = open_as(scratch_path("l.db"), FDS_LEDGER_READ);
        assert_int_equal(fds_ledger_size(l), size);
        assert_int_equal(balance(l, "acme"), acme);
        assert_int_equal(size, 14);
        verify(l);
        fds_ledger_close(l);
    }
    return status;
}

static void each(fds__fault_kind kind) {
    uint64_t faults = 0;
    for (uint64_t nth = 1;; nth++) {
        fds_error err = {0};
        scratch_setup(NULL);
        kind_of_fault = kind;
        fds__fault_arm(kind, nth);
        fds_status status = whole(&err);
        fds__fault_arm(kind, 0);
        bool is_over = status == FDS_OK && calls < nth;
        if (status != FDS_OK) {
            faults++;
            assert_true(err.text[0] || status == FDS_ERR_NOMEM);
            if (access(scratch_path("l.db"), F_OK) != 0) /* a key that was saved may be there */
                remove(scratch_path("l.db.key"));
            expect_ok(whole(&err), &err);
        }
        scratch_teardown(NULL);
        if (is_over)
            break;
        nth += nth / (IS_SLOW_BUILD ? 20 : 100); /* later ones are more alike */
    }
    print_message("# %llu faults\n", (unsigned long long)faults);
    assert_true(faults > 20);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    each(FDS__FAULT_ALLOC);
}

static void every_file_operation_may_fail(void **state) {
    (void)state;
    each(FDS__FAULT_IO);
}

/* The file may not grow beyond a limit: a batch fails as a whole, and works when there is room. */
static void a_full_disk_loses_nothing(void **state) {
    (void)state;
    struct rlimit old, few;
    assert_int_equal(scratch_setup(NULL), 0);
    fds_ledger *l = small_ledger();
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    int failures = 0;
    for (rlim_t limit = 1 << 16; limit < 1 << 20; limit += 12345) {
        few = (struct rlimit){limit, old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
        for (int batch = 0; batch < 200; batch++) {
            fds_error err = {0};
            fds_charge c[4];
            int64_t before = balance(l, "acme");
            uint64_t size = fds_ledger_size(l);
            for (int i = 0; i < 4; i++)
                c[i] = charge_of(l, 0, "acme", 10, NULL);
            fds_status status = fds_ledger_charge(l, c, 4, &err);
            bool is_paid = status == FDS_OK;
            assert_int_equal(balance(l, "acme"), before - (is_paid ? 40 : 0));
            assert_int_equal(fds_ledger_size(l), size + (is_paid ? 4 : 0));
            if (!is_paid) {
                failures++;
                assert_int_equal(status, FDS_ERR_IO);
                break;
            }
        }
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        topup(l, "acme", 1); /* there is room again */
        verify(l);
        if (limit % 5 == 0)
            l = reopen(l);
    }
    l = reopen(l);
    verify(l);
    fds_ledger_close(l);
    print_message("# the disk was full %d times\n", failures);
    assert_true(failures > 3);
    scratch_teardown(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_file_operation_may_fail),
        cmocka_unit_test(a_full_disk_loses_nothing),
    };
    if (access("/dev/shm", W_OK) == 0) /* thousands of syncs, which are not what is tested here */
        setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
