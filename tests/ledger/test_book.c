/* SPDX-License-Identifier: Apache-2.0
 * New entries: what is paid to whom, keys, floors, limits, mistakes that leave no trace. */
#include "ledger_fixture.h"

#include <sys/wait.h>

/* ---- opening ---- */

static void a_new_ledger_has_cash_and_fees(void **state) {
    (void)state;
    fds_error err = {0};
    expect_ok(CREATE(scratch_path("l.db"), "currency", "EUR", "decimals", "4"), &err);
    fds_ledger *l = open_as(scratch_path("l.db"), FDS_LEDGER_READ);
    assert_string_equal(fds_ledger_currency(l), "EUR");
    assert_int_equal(fds_ledger_decimals(l), 4);
    assert_int_equal(fds_ledger_accounts(l), 2);
    assert_int_equal(fds_ledger_size(l), 2);
    assert_string_equal(fds_ledger_account_name(l, LEDGER_CASH), "cash");
    assert_string_equal(fds_ledger_account_name(l, LEDGER_FEES), "fees");
    assert_string_equal(fds_ledger_account_name(l, 2), "?");
    assert_int_equal(fds_ledger_account_kind(l, 1), FDS_ACCOUNT_PLATFORM);
    assert_memory_equal(fds_ledger_vkey(l), "fds.local/ledger+", 17);
    verify(l);
    fds_ledger_close(l);
    fds_ledger_close(NULL);
}

static void a_ledger_is_never_replaced(void **state) {
    (void)state;
    fds_error err = {0};
    NEED_A_FILE;
    fds_ledger_close(small_ledger());
    assert_int_equal(CREATE(scratch_path("l.db"), "currency", "USD"), FDS_ERR_CONFLICT);
    expect_in(err.text, "exists already");
    scratch_write(scratch_path("m.db.key"), "x", 1); /* somebody's key */
    assert_int_equal(CREATE(scratch_path("m.db"), "currency", "USD"), FDS_ERR_CONFLICT);
    assert_int_equal(access(scratch_path("m.db"), F_OK), -1);
    scratch_expect(scratch_path("m.db.key"), "x");
    fds_ledger_close(open_as(scratch_path("l.db"), FDS_LEDGER_WRITE));
}

static void decimals_below_the_currencys_own_are_refused(void **state) {
    (void)state;
    fds_error err = {0};
    assert_int_equal(CREATE(scratch_path("l.db"), "currency", "BHD", "decimals", "2"),
                     FDS_ERR_USAGE);
    expect_in(err.text, "at least 3, as BHD has");
    assert_int_equal(CREATE(scratch_path("l.db"), "currency", "USB"), FDS_ERR_USAGE);
    assert_int_equal(CREATE(scratch_path("l.db"), "origin", "a b"), FDS_ERR_USAGE);
    fds_params *other = fds_params_create("pay");
    assert_int_equal(fds_ledger_create(scratch_path("l.db"), other, &err), FDS_ERR_USAGE);
    fds_params_free(other);
    assert_int_equal(scratch_entries(), 0);
}

static void only_one_writes_and_nobody_reads_meanwhile(void **state) {
    (void)state;
    fds_error err = {0};
    NEED_A_FILE;
    fds_ledger *l = small_ledger(), *other = NULL;
    assert_int_equal(fds_ledger_open(scratch_path("l.db"), FDS_LEDGER_WRITE, NULL, &other, &err),
                     FDS_ERR_CONFLICT);
    expect_in(err.text, "is open in another process");
    assert_int_equal(fds_ledger_open(scratch_path("l.db"), FDS_LEDGER_READ, NULL, &other, &err),
                     FDS_ERR_CONFLICT);
    expect_in(err.text, "open for writing in another process");
    /* these attempts have not released the lock against other processes */
    pid_t child = fork();
    if (child == 0)
        _exit(fds_ledger_open(scratch_path("l.db"), FDS_LEDGER_WRITE, NULL, &other, NULL) !=
              FDS_ERR_CONFLICT);
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    topup(l, "acme", 1);
    fds_ledger_close(l);
    l = open_as(scratch_path("l.db"), FDS_LEDGER_READ);
    other = open_as(scratch_path("l.db"), FDS_LEDGER_READ); /* readers beside each other */
    verify(other);
    fds_ledger *third = NULL;
    assert_int_equal(fds_ledger_open(scratch_path("l.db"), FDS_LEDGER_WRITE, NULL, &third, &err),
                     FDS_ERR_CONFLICT);
    assert_int_equal(fds_ledger_topup(l, 2, 1, NULL, NULL, NULL, &err), FDS_ERR_USAGE);
    expect_in(err.text, "reading only");
    fds_ledger_close(l);
    fds_ledger_close(other);
}

static void a_foreign_key_and_other_files_are_refused(void **state) {
    (void)state;
    fds_error err = {0};
    NEED_A_FILE;
    fds_ledger *l = NULL;
    fds_ledger_close(small_ledger());
    expect_ok(CREATE(scratch_path("m.db"), "origin", "example.com/test"), &err);
    assert_int_equal(
        fds_ledger_open(scratch_path("l.db"), FDS_LEDGER_WRITE, scratch_path("m.db.key"), &l, &err),
        FDS_ERR_CONFLICT);
    expect_in(err.text, "is not the key of");
    assert_int_equal(fds_ledger_open(scratch_path("none"), FDS_LEDGER_READ, NULL, &l, &err),
                     FDS_ERR_NOT_FOUND);
    scratch_write(scratch_path("empty"), "", 0);
    assert_int_equal(fds_ledger_open(scratch_path("empty"), FDS_LEDGER_READ, NULL, &l, &err),
                     FDS_ERR_FORMAT);
    scratch_write(scratch_path("text"), "not a database, but long enough to be one", 41);
    assert_int_equal(fds_ledger_open(scratch_path("text"), FDS_LEDGER_READ, NULL, &l, &err),
                     FDS_ERR_CORRUPT);
}

static void a_uri_is_refused_where_it_cannot_be_opened(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = NULL;
    fds_status status = fds_ledger_open("postgresql:x", FDS_LEDGER_READ, NULL, &l, &err);
#ifdef FDS_POSTGRES
    assert_int_equal(status, FDS_ERR_USAGE);
    expect_in(err.text, "postgresql://host/database");
#else
    assert_int_equal(status, FDS_ERR_UNSUPPORTED);
    expect_in(err.text, "libpq-dev");
#endif
}

static void passwords_are_not_in_names(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"shop.db", "shop.db"},
        {"a:b@c?password=x", "a:b@c?password=x"}, /* a file */
        {"postgresql://host/db", "postgresql://host/db"},
        {"postgresql://host:5432/db", "postgresql://host:5432/db"},
        {"postgres://u:secret@host:1/db", "postgres://u:***@host:1/db"},
        {"postgresql://u@host/db?sslmode=require", "postgresql://u@host/db?sslmode=require"},
        {"postgresql://u:a@b:c@host/db", "postgresql://u:***@host/db"},
        {"postgresql:///db?user=u&password=p&host=h",
         "postgresql:///db?user=u&password=***&host=h"},
        {"postgresql:///db?sslpassword=p", "postgresql:///db?sslpassword=***"},
        {"postgresql:///db?pass%77ord=p&x", "postgresql:///db?pass%77ord=***&x"},
        {"postgresql://u:p@h/db?password=q", "postgresql://u:***@h/db?password=***"},
        {"postgresql:password=p", "postgresql:..."},
    };
    char name[256], small[16];
    for (size_t i = 0; i < COUNT(names); i++) {
        db_name(names[i][0], name, sizeof name);
        assert_string_equal(name, names[i][1]);
        db_name(names[i][0], small, sizeof small); /* cut, not overrun */
        assert_memory_equal(small, name, strlen(small));
    }
}

/* ---- accounts and runs ---- */

static void an_account_is_added_once(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    uint64_t a = customer(l, "bolt"), b;
    uint64_t size = fds_ledger_size(l);
    assert_int_equal(customer(l, "bolt"), a);
    assert_int_equal(fds_ledger_size(l), size);
    assert_int_equal(fds_ledger_account(l, FDS_ACCOUNT_PROVIDER, "bolt", &b, &err),
                     FDS_ERR_CONFLICT);
    assert_int_equal(fds_ledger_account(l, FDS_ACCOUNT_PLATFORM, "x", &b, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_account(l, FDS_ACCOUNT_CUSTOMER, "a\nb", &b, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_account(l, FDS_ACCOUNT_CUSTOMER, "", &b, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_account(l, FDS_ACCOUNT_CUSTOMER, "\xff", &b, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_find(l, "acmee", &b, &err), FDS_ERR_NOT_FOUND);
    expect_in(err.text, "did you mean \"acme\"?");
    l = reopen(l);
    assert_int_equal(find(l, "bolt"), a);
    assert_int_equal(fds_ledger_size(l), size);
    verify(l);
    fds_ledger_close(l);
}

static void thousands_of_accounts_are_found_by_name(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    enum { MANY = 3000 };
    static char names[MANY][16];
    const char *list[MANY];
    uint64_t number;
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "provider %d", i);
        list[i] = names[i];
    }
    fds_ledger_run run = {.name = "m", .sha256 = SHA_B, .payees = list, .count = MANY};
    expect_ok(fds_ledger_add_run(l, &run, &number, &err), &err);
    assert_int_equal(fds_ledger_accounts(l), 6 + MANY);
    l = reopen(l);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(find(l, names[i]), 6 + i);
    verify(l);
    fds_ledger_close(l);
}

static void a_run_is_frozen(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    uint64_t size = fds_ledger_size(l), number = 9;
    assert_int_equal(add_run(l, SHA_A, "clip", 100000), 0);
    assert_int_equal(fds_ledger_size(l), size);
    fds_ledger_run run = {
        .name = "mnist", .sha256 = SHA_A, .payees = payees, .count = PAYEES, .fee_ppm = 1};
    assert_int_equal(fds_ledger_add_run(l, &run, &number, &err), FDS_ERR_CONFLICT);
    expect_in(err.text, "another fee");
    run.fee_ppm = 100000;
    run.count = 2;
    assert_int_equal(fds_ledger_add_run(l, &run, &number, &err), FDS_ERR_CONFLICT);
    const char *others[] = {"north", "west", "south"};
    run.payees = others;
    run.count = 3;
    assert_int_equal(fds_ledger_add_run(l, &run, &number, &err), FDS_ERR_CONFLICT);
    expect_in(err.text, "other payees");
    run.sha256 = SHA_B;
    run.policy = "signed";
    assert_int_equal(fds_ledger_add_run(l, &run, &number, &err), FDS_ERR_USAGE);
    expect_in(err.text, "debts");
    run.policy = "sign";
    assert_int_equal(fds_ledger_add_run(l, &run, &number, &err), FDS_ERR_USAGE);
    run.policy = NULL;
    const char *twice[] = {"new", "south", "new"};
    run.payees = twice;
    assert_int_equal(fds_ledger_add_run(l, &run, &number, &err), FDS_ERR_USAGE);
    expect_in(err.text, "stands twice");
    const char *buyer[] = {"acme", "south", "new"};
    run.payees = buyer;
    assert_int_equal(fds_ledger_add_run(l, &run, &number, &err), FDS_ERR_CONFLICT);
    run.sha256 = "AB";
    assert_int_equal(fds_ledger_add_run(l, &run, &number, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_size(l), size); /* no account "new" is left either */
    uint64_t account;
    assert_int_equal(fds_ledger_find(l, "new", &account, NULL), FDS_ERR_NOT_FOUND);
    verify(l);
    fds_ledger_close(l);
}

/* ---- predictions ---- */

static void a_charge_pays_providers_and_fees(void **state) {
    (void)state;
    fds_ledger *l = small_ledger();
    fds_charge c = charge_of(l, 0, "acme", 1000000, NULL);
    assert_int_equal(charge(l, &c), FDS_OK);
    assert_int_equal(c.index, fds_ledger_size(l) - 1);
    assert_false(c.is_repeated);
    assert_int_equal(balance(l, "acme"), 9000000);
    assert_int_equal(balance(l, "fees"), 100000);
    /* 900,000 in the proportion 4 : 2 : 1; the unit left goes to the payee that is owed most */
    assert_int_equal(balance(l, "north"), 514286);
    assert_int_equal(balance(l, "south"), 257143);
    assert_int_equal(balance(l, "west"), 128571);
    assert_int_equal(balance(l, "cash"), -10000000);
    l = reopen(l);
    assert_int_equal(balance(l, "north"), 514286);
    verify(l);
    fds_ledger_close(l);
}

/* What rounding leaves is carried from one prediction to the next, also over a restart. */
static void fractions_are_never_lost(void **state) {
    (void)state;
    fds_ledger *l = small_ledger();
    for (int i = 0; i < 700; i++) {
        fds_charge c = charge_of(l, 0, "acme", 1, NULL);
        assert_int_equal(charge(l, &c), FDS_OK);
        if (i % 100 == 50)
            l = reopen(l);
    }
    assert_in_range(balance(l, "north"), 399, 401);
    assert_in_range(balance(l, "south"), 199, 201);
    assert_in_range(balance(l, "west"), 99, 101);
    assert_int_equal(balance(l, "fees"), 0); /* a tenth of one unit, rounded down */
    verify(l);
    fds_ledger_close(l);
}

static void a_charge_that_fails_leaves_no_trace_and_others_proceed(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    double bad[PAYEES] = {1, NAN, 1}, huge[PAYEES] = {1, 1e39, 1}, minus[PAYEES] = {1, -1, 1};
    enum { N = 12 };
    fds_charge c[N];
    for (int i = 0; i < N; i++)
        c[i] = charge_of(l, 0, "acme", 100, NULL);
    c[1].values = bad;
    c[2].values = huge;
    c[3].amount = 20000000;
    c[4].amount = -1;
    c[5].run = 1;
    c[6].customer = find(l, "north");
    c[7].label = "a\nb";
    c[8].errors = minus;
    c[9].customer = 1000;
    c[10].confidence = 1.5;
    uint64_t size = fds_ledger_size(l);
    expect_ok(fds_ledger_charge(l, c, N, &err), &err);
    for (int i = 0; i < N; i++) {
        fds_status wanted = i == 0 || i == N - 1 ? FDS_OK : i == 3 ? FDS_ERR_LIMIT : FDS_ERR_USAGE;
        if (c[i].status != wanted)
            fail_msg("charge %d: %s: %s", i, fds_status_name(c[i].status), c[i].reason);
        assert_int_equal(*c[i].reason != 0, wanted != FDS_OK);
    }
    expect_in(c[3].reason, "balance of acme is too low");
    assert_int_equal(c[0].index, size);
    assert_int_equal(c[N - 1].index, size + 1);
    assert_int_equal(fds_ledger_size(l), size + 2);
    assert_int_equal(balance(l, "acme"), 10000000 - 200);
    verify(l);
    l = reopen(l);
    verify(l);
    fds_ledger_close(l);
}

/* Databases treat some numbers in their own way: whole ones, NaN, negative zeros. */
static void odd_numbers_are_kept_exactly(void **state) {
    (void)state;
    fds_ledger *l = small_ledger();
    double odd[] = {0, -0.0, 1, NAN, 0.1, 5e-324};
    double errors[] = {NAN, 1e30, 0}, values[] = {-0.0, 1e-45, 3.4e38}, none[] = {-0.0, 0, -1};
    for (size_t i = 0; i < COUNT(odd); i++) {
        fds_charge c = charge_of(l, 0, "acme", 1000, NULL);
        c.confidence = odd[i];
        c.errors = errors;
        c.values = i % 2 ? values : none;
        assert_int_equal(charge(l, &c), FDS_OK);
    }
    l = reopen(l);
    verify(l);
    fds_ledger_close(l);
}

static void one_key_is_one_payment(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    topup(l, "bolt", 1000);
    for (int round = 0; round < 3; round++) {
        fds_charge c[5];
        for (int i = 0; i < 5; i++) {
            c[i] = charge_of(l, 0, i == 3 ? "bolt" : "acme", 100, i == 1 ? NULL : "order 1");
            c[i].answer = round || i == 2 ? "changed" : "the answer";
            c[i].answer_size = strlen(c[i].answer);
        }
        c[4].fingerprint[31] = 1;
        expect_ok(fds_ledger_charge(l, c, 5, &err), &err);
        for (int i = 0; i < 4; i++)
            assert_int_equal(c[i].status, FDS_OK);
        assert_int_equal(c[0].is_repeated, round > 0);
        assert_false(c[1].is_repeated); /* without a key every one is paid */
        assert_true(c[2].is_repeated);
        assert_int_equal(c[2].index, c[0].index);
        assert_int_equal(c[2].first_answer_size, 10);
        assert_memory_equal(c[2].first_answer, "the answer", 10);
        assert_int_equal(c[3].is_repeated, round > 0); /* another customer's key */
        assert_int_equal(c[4].status, FDS_ERR_CONFLICT);
        expect_in(c[4].reason, "order 1");
        for (int i = 0; i < 5; i++)
            fds_text_free(c[i].first_answer);
        if (round == 1)
            l = reopen(l);
    }
    assert_int_equal(balance(l, "acme"), 10000000 - 400);
    assert_int_equal(balance(l, "bolt"), 900);
    verify(l);
    fds_ledger_close(l);
}

static void balances_never_fall_below_zero_within_a_batch(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    fds_charge c[4];
    for (int i = 0; i < 4; i++)
        c[i] = charge_of(l, 0, "acme", 4000000, NULL);
    c[3].amount = 2000000;
    expect_ok(fds_ledger_charge(l, c, 4, &err), &err);
    assert_int_equal(c[1].status, FDS_OK);
    assert_int_equal(c[2].status, FDS_ERR_LIMIT);
    assert_int_equal(c[3].status, FDS_OK);
    assert_int_equal(balance(l, "acme"), 0);
    fds_charge free_one = charge_of(l, 0, "acme", 0, NULL);
    assert_int_equal(charge(l, &free_one), FDS_OK); /* nothing to pay, but an entry */
    verify(l);
    fds_ledger_close(l);
}

static void signed_values_owe_where_there_are_debts(void **state) {
    (void)state;
    fds_error err = {0};
    expect_ok(CREATE(scratch_path("l.db"), "debts", "true"), &err);
    fds_ledger *l = open_as(scratch_path("l.db"), FDS_LEDGER_WRITE);
    topup(l, "acme", 1000);
    uint64_t run = add_run(l, SHA_A, "signed", 0);
    double values[PAYEES] = {1.0, -0.5, 0.5};
    fds_charge c = charge_of(l, run, "acme", 1000, NULL);
    c.values = values;
    assert_int_equal(charge(l, &c), FDS_OK);
    assert_int_equal(balance(l, "north"), 1000);
    assert_int_equal(balance(l, "south"), -500);
    assert_int_equal(balance(l, "west"), 500);
    l = reopen(l);
    verify(l);
    fds_ledger_close(l);
}

static int64_t early(void) { return 1000; }

static void time_never_goes_back(void **state) {
    (void)state;
    fds_ledger *l = small_ledger();
    int64_t before = l->state.at_ms;
    l->now_ms = early;
    topup(l, "acme", 1);
    assert_int_equal(l->state.at_ms, before);
    verify(l);
    fds_ledger_close(l);
}

/* ---- other entries ---- */

static void a_topup_has_a_key_and_a_reference(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    uint64_t acme = find(l, "acme"), first, again;
    expect_ok(fds_ledger_topup(l, acme, 500, "invoice 7", "k", &first, &err), &err);
    expect_ok(fds_ledger_topup(l, acme, 500, "invoice 7", "k", &again, &err), &err);
    assert_int_equal(first, again);
    assert_int_equal(balance(l, "acme"), 10000500);
    assert_int_equal(fds_ledger_topup(l, acme, 501, "invoice 7", "k", &again, &err),
                     FDS_ERR_CONFLICT);
    assert_int_equal(fds_ledger_topup(l, acme, 0, NULL, NULL, NULL, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_topup(l, acme, -5, NULL, NULL, NULL, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_topup(l, acme, INT64_MAX, NULL, NULL, NULL, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_topup(l, find(l, "north"), 5, NULL, NULL, NULL, &err),
                     FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_topup(l, 99, 5, NULL, NULL, NULL, &err), FDS_ERR_USAGE);
    verify(l);
    fds_ledger_close(l);
}

static void no_balance_overflows(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    fds_status status = FDS_OK;
    uint64_t acme = find(l, "acme");
    int rounds = 0;
    for (; status == FDS_OK && rounds < 2000; rounds++)
        status = fds_ledger_topup(l, acme, LEDGER_MOST_AMOUNT, NULL, NULL, NULL, &err);
    assert_int_equal(status, FDS_ERR_LIMIT);
    expect_in(err.text, "too large");
    assert_in_range(rounds, 1000, 1100);
    assert_int_equal(balance(l, "acme"), -balance(l, "cash"));
    topup(l, "acme", 1);
    verify(l);
    fds_ledger_close(l);
}

static void a_payout_is_in_whole_cents_and_the_rest_stays(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    fds_charge c = charge_of(l, 0, "acme", 1000000, NULL);
    int64_t units = -1;
    uint64_t index = 0, north = find(l, "north");
    charge(l, &c);
    expect_ok(fds_ledger_payout(l, north, 520000, NULL, NULL, &units, &index, &err), &err);
    assert_int_equal(units, 0); /* below the minimum */
    assert_true(index == UINT64_MAX);
    expect_ok(fds_ledger_payout(l, north, 0, "May", "p1", &units, &index, &err), &err);
    assert_int_equal(units, 510000);
    assert_int_equal(balance(l, "north"), 4286);
    charge(l, &(fds_charge){0});
    uint64_t again;
    l = reopen(l);
    expect_ok(fds_ledger_payout(l, north, 0, "May", "p1", &units, &again, &err), &err);
    assert_int_equal(units, 510000); /* the first time's */
    assert_int_equal(again, index);
    assert_int_equal(balance(l, "north"), 4286);
    expect_ok(fds_ledger_payout(l, north, 0, NULL, NULL, &units, &index, &err), &err);
    assert_int_equal(units, 0); /* less than a cent */
    expect_ok(fds_ledger_payout(l, LEDGER_FEES, 0, NULL, NULL, &units, &index, &err), &err);
    assert_int_equal(units, 100000);
    assert_int_equal(fds_ledger_payout(l, LEDGER_CASH, 0, NULL, NULL, &units, &index, &err),
                     FDS_ERR_USAGE);
    assert_int_equal(balance(l, "cash"), -10000000 + 610000);
    verify(l);
    fds_ledger_close(l);
}

static void a_currency_without_decimals_pays_out_whole_units(void **state) {
    (void)state;
    fds_error err = {0};
    int64_t units;
    uint64_t index;
    expect_ok(CREATE(scratch_path("l.db"), "currency", "JPY", "decimals", "2"), &err);
    fds_ledger *l = open_as(scratch_path("l.db"), FDS_LEDGER_WRITE);
    topup(l, "acme", 12345);
    expect_ok(fds_ledger_payout(l, find(l, "acme"), 0, NULL, NULL, &units, &index, &err), &err);
    assert_int_equal(units, 12300);
    verify(l);
    fds_ledger_close(l);
}

static void a_correction_needs_two_operators_and_sums_to_zero(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    fds_charge c = charge_of(l, 0, "acme", 1000000, NULL);
    charge(l, &c);
    uint64_t north = find(l, "north"), west = find(l, "west"), index, again;
    const char *both[2] = {"ann", "bob"}, *one[2] = {"ann", "ann"}, *none[2] = {"ann", ""};
    fds_posting p[] = {{north, -1000}, {west, 1000}};
    expect_ok(fds_ledger_correct(l, c.index, p, 2, "swapped labels", both, "c1", &index, &err),
              &err);
    expect_ok(fds_ledger_correct(l, c.index, p, 2, "swapped labels", both, "c1", &again, &err),
              &err);
    assert_int_equal(index, again);
    assert_int_equal(balance(l, "north"), 513286);
    assert_int_equal(balance(l, "west"), 129571);
    uint64_t size = fds_ledger_size(l);
    assert_int_equal(fds_ledger_correct(l, 1, p, 2, "swapped labels", both, "c1", &again, &err),
                     FDS_ERR_CONFLICT);
    assert_int_equal(fds_ledger_correct(l, 0, p, 2, "r", one, NULL, &index, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_correct(l, 0, p, 2, "r", none, NULL, &index, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_correct(l, 0, p, 2, "", both, NULL, &index, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_correct(l, size, p, 2, "r", both, NULL, &index, &err),
                     FDS_ERR_NOT_FOUND);
    assert_int_equal(fds_ledger_correct(l, 0, p, 1, "r", both, NULL, &index, &err), FDS_ERR_USAGE);
    fds_posting bad[][2] = {{{north, -1000}, {west, 999}},
                            {{north, -1000}, {north, 1000}},
                            {{north, 0}, {west, 0}},
                            {{north, INT64_MIN}, {west, INT64_MAX}},
                            {{99, -1}, {west, 1}}};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(fds_ledger_correct(l, 0, bad[i], 2, "r", both, NULL, &index, &err),
                         FDS_ERR_USAGE);
    fds_posting deep[] = {{north, -600000}, {west, 600000}};
    assert_int_equal(fds_ledger_correct(l, 0, deep, 2, "r", both, NULL, &index, &err),
                     FDS_ERR_LIMIT);
    expect_in(err.text, "balance of north is too low");
    assert_int_equal(fds_ledger_size(l), size);
    verify(l);
    fds_ledger_close(l);
}

static void amounts_are_read_exactly(void **state) {
    (void)state;
    fds_error err = {0};
    int64_t units;
    fds_ledger *l = small_ledger();
    static const struct {
        const char *text;
        int64_t units;
    } right[] = {{"10", 10000000},
                 {"10.00", 10000000},
                 {"0.000001", 1},
                 {"-0.5", -500000},
                 {"9223372036854.775807", INT64_MAX}};
    for (size_t i = 0; i < COUNT(right); i++) {
        expect_ok(fds_ledger_units(l, right[i].text, &units, &err), &err);
        assert_true(units == right[i].units);
    }
    static const char *const wrong[] = {"",    "x",         "1.", ".5", "1e3", "1,0", "+1",
                                        "--1", "0.0000001", "1 ", "-",  "0x1", NULL};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(fds_ledger_units(l, wrong[i], &units, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_units(l, "9223372036854.775808", &units, &err), FDS_ERR_LIMIT);
    fds_ledger_close(l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_new_ledger_has_cash_and_fees),
        TEST(a_ledger_is_never_replaced),
        TEST(decimals_below_the_currencys_own_are_refused),
        TEST(only_one_writes_and_nobody_reads_meanwhile),
        TEST(a_foreign_key_and_other_files_are_refused),
        TEST(a_uri_is_refused_where_it_cannot_be_opened),
        TEST(passwords_are_not_in_names),
        TEST(an_account_is_added_once),
        TEST(thousands_of_accounts_are_found_by_name),
        TEST(a_run_is_frozen),
        TEST(a_charge_pays_providers_and_fees),
        TEST(fractions_are_never_lost),
        TEST(a_charge_that_fails_leaves_no_trace_and_others_proceed),
        TEST(odd_numbers_are_kept_exactly),
        TEST(one_key_is_one_payment),
        TEST(balances_never_fall_below_zero_within_a_batch),
        TEST(signed_values_owe_where_there_are_debts),
        TEST(time_never_goes_back),
        TEST(a_topup_has_a_key_and_a_reference),
        TEST(no_balance_overflows),
        TEST(a_payout_is_in_whole_cents_and_the_rest_stays),
        TEST(a_currency_without_decimals_pays_out_whole_units),
        TEST(a_correction_needs_two_operators_and_sums_to_zero),
        TEST(amounts_are_read_exactly),
    };
    choose_store();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
