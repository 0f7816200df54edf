/* SPDX-License-Identifier: Apache-2.0
 * Private ledgers: statements are drawn once and are in the payment, their sums change by a bounded
 * amount, and providers see nothing else. */
#include "private_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

/* 100 predictions of a cent in October, and one in November. */
static fds_ledger *october(void) {
    set_day("2096-10-05");
    fds_ledger *l = private_ledger("l.db", A_CENT);
    for (int i = 0; i < 100; i++)
        predict(l, i % 2 ? "acme" : "bolt", 10000, 1, 2, 1);
    set_day("2096-11-03");
    predict(l, "acme", 10000, 1, 1, 2);
    return l;
}

static int64_t sum_of_balances(const fds_ledger *l) {
    int64_t sum = 0;
    for (uint64_t i = 0; i < fds_ledger_accounts(l); i++)
        sum += fds_ledger_balance(l, i);
    return sum;
}

static void a_statement_is_what_was_earned_plus_noise(void **state) {
    (void)state;
    fds_error err = {0};
    uint64_t first = 0, second = 0;
    fds_ledger *l = october();
    assert_true(fds_ledger_released(l, find(l, "north")) == 0);
    expect_ok(fds_ledger_release(l, "2096-10", NULL, &first, &err), &err);
    int64_t north = stated(l, "north", "2096-10"), south = stated(l, "south", "2096-10"),
            west = stated(l, "west", "2096-10");
    /* earned: 250000, 500000, 250000; the scale of the noise is a cent, 10000 units */
    assert_true(llabs(north - 250000) < 150000 && llabs(south - 500000) < 150000);
    assert_true(north != 250000 && south != 500000 && west != 250000);
    /* balances: what may be seen, and what November has earned */
    assert_true(fds_ledger_released(l, find(l, "north")) == north);
    assert_true(balance(l, "north") == north + 2500);
    assert_true(balance(l, "west") == west + 5000);
    assert_true(balance(l, "reserve") == 1000000 - north - south - west);
    assert_true(sum_of_balances(l) == 0);
    verify(l);
    /* again, and after opening it again: nothing is drawn */
    uint64_t size = fds_ledger_size(l);
    expect_ok(fds_ledger_release(l, "2096-10", NULL, &second, &err), &err);
    assert_true(second == first && fds_ledger_size(l) == size);
    l = again(l, "l.db");
    assert_true(stated(l, "north", "2096-10") == north);
    assert_true(fds_ledger_released(l, find(l, "north")) == north);
    expect_ok(fds_ledger_release(l, "2096-10", NULL, &second, &err), &err);
    assert_true(second == first && fds_ledger_size(l) == size);
    /* the next period has what this one left */
    set_day("2096-12-01");
    expect_ok(fds_ledger_release(l, "2096-11", NULL, NULL, &err), &err);
    assert_true(fds_ledger_released(l, find(l, "north")) == north + stated(l, "north", "2096-11"));
    assert_true(balance(l, "north") == fds_ledger_released(l, find(l, "north")));
    verify(l);
    fds_ledger_close(l);
}

static void only_what_is_over_is_released_and_in_order(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = october();
    assert_int_equal(fds_ledger_release(l, "2096-11", NULL, NULL, &err), FDS_ERR_USAGE);
    assert_non_null(strstr(err.text, "is not over"));
    assert_int_equal(fds_ledger_release(l, "2096-09", NULL, NULL, &err), FDS_ERR_CONFLICT);
    assert_int_equal(fds_ledger_release(l, "2096-10-05", NULL, NULL, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_ledger_release(l, "2096-13", NULL, NULL, &err), FDS_ERR_USAGE);
    uint64_t size = fds_ledger_size(l);
    set_day("2096-12-01"); /* November covers October, which nobody has asked for */
    expect_ok(fds_ledger_release(l, "2096-11", NULL, NULL, &err), &err);
    assert_true(fds_ledger_size(l) == size + 2);
    assert_true(llabs(stated(l, "south", "2096-11") - 502500) < 150000);
    assert_int_equal(fds_ledger_release(l, "2096-10", NULL, NULL, &err), FDS_ERR_CONFLICT);
    verify(l);
    fds_ledger_close(l);
}

static void payouts_pay_what_was_released(void **state) {
    (void)state;
    fds_error err = {0};
    int64_t units;
    uint64_t index;
    fds_ledger *l = october();
    uint64_t north = find(l, "north");
    expect_ok(fds_ledger_payout(l, north, 0, NULL, NULL, &units, &index, &err), &err);
    assert_true(units == 0); /* earned, but not released */
    fds_posting too_much = {north, 10000};
    assert_int_equal(fds_ledger_pay(l, &too_much, 1, NULL, NULL, &index, &err), FDS_ERR_LIMIT);
    expect_ok(fds_ledger_release(l, "2096-10", NULL, NULL, &err), &err);
    int64_t statement = stated(l, "north", "2096-10");
    expect_ok(fds_ledger_payout(l, north, 0, NULL, NULL, &units, &index, &err), &err);
    assert_true(units == statement - statement % 10000);
    assert_true(fds_ledger_released(l, north) == statement - units);
    verify(l);
    fds_ledger_close(l);
}

/* With little money and much noise statements fall below 0: they are owed, not forgotten. */
static void negative_statements_are_carried_over(void **state) {
    (void)state;
    fds_error err = {0};
    int64_t total = 0, units;
    uint64_t index;
    set_day("2096-10-05");
    fds_ledger *l = private_ledger(
        "l.db", (const char *const[]){"price_limit", "0.01", "periods", "day", NULL});
    bool has_negative = false;
    for (int day = 5; day < 15; day++) {
        char text[16];
        snprintf(text, sizeof text, "2096-10-%02d", day);
        set_day(text);
        predict(l, "acme", 100, 1, 0, 0);
        clock_ms += LEDGER_DAY_MS;
        expect_ok(fds_ledger_release(l, text, NULL, NULL, &err), &err);
        total += stated(l, "west", text);
        has_negative |= stated(l, "west", text) < 0;
        assert_true(fds_ledger_released(l, find(l, "west")) == total);
    }
    assert_true(has_negative);
    for (size_t i = 0; i < PAYEES; i++) {
        uint64_t account = find(l, payees[i]);
        int64_t owed = fds_ledger_released(l, account);
        expect_ok(fds_ledger_payout(l, account, 0, NULL, NULL, &units, &index, &err), &err);
        assert_true(units == (owed > 0 ? owed - owed % 10000 : 0));
    }
    verify(l);
    fds_ledger_close(l);
}

/* ---- what sums depend on ---- */

static void sums_of(const fds_ledger *l, int64_t out[PAYEES]) {
    fds_error err = {0};
    int64_t sums[64], from = 0, to = 0;
    assert_true(ledger_day_read("2096-10-01", &from) && ledger_day_read("2096-10-31", &to));
    assert_true(fds_ledger_accounts(l) <= 64);
    expect_ok(ledger_private_sums(l, from, to, NULL, sums, &err), &err);
    for (size_t i = 0; i < PAYEES; i++)
        out[i] = sums[find(l, payees[i])];
}

/* L1 distance of the sums of two ledgers, in 2^-16 units. */
static int64_t distance(const int64_t *a, const int64_t *b) {
    int64_t sum = 0;
    for (size_t i = 0; i < PAYEES; i++)
        sum += llabs(a[i] - b[i]);
    return sum;
}

/* Values that do not divide. */
static fds_ledger *awkward(const char *name, int left_out, const char *const *pairs) {
    set_day("2096-10-05");
    fds_ledger *l = private_ledger(name, pairs);
    fds_rng rng = fds_rng_make(3, 1, 0, 0);
    for (int i = 0; i < 60; i++) {
        double a = fds_rng_unit(&rng), b = fds_rng_unit(&rng), c = fds_rng_unit(&rng) - 0.5;
        if (i != left_out)
            predict(l, i % 3 ? "acme" : "bolt", 1 + i % 3, a, b, c);
    }
    return l;
}

static void one_prediction_moves_the_sums_by_its_price(void **state) {
    (void)state;
    int64_t all[PAYEES], without[PAYEES];
    fds_ledger *l = awkward("all.db", -1, A_CENT);
    sums_of(l, all);
    fds_ledger_close(l);
    for (int i = 0; i < 60; i += 4) {
        char name[16];
        snprintf(name, sizeof name, "%d.db", i);
        l = awkward(name, i, A_CENT);
        sums_of(l, without);
        fds_ledger_close(l);
        int64_t price = 1 + i % 3, moved = distance(all, without);
        assert_true(moved <= price << LEDGER_GRID && moved > (price << LEDGER_GRID) - PAYEES);
    }
}

/* What the ledger's own shares add up to, by the carry that it uses. */
static void carried(uint64_t seed, int left_out, int64_t out[PAYEES]) {
    fds_error err = {0};
    fds__carry *carry;
    fds_rng rng = fds_rng_make(seed, 1, 0, 0);
    expect_ok(fds__carry_create(PAYEES, &carry, &err), &err);
    memset(out, 0, PAYEES * sizeof *out);
    for (int i = 0; i < 20; i++) {
        double values[PAYEES];
        int64_t shares[PAYEES];
        fds__pay_rule rule;
        for (size_t k = 0; k < PAYEES; k++)
            values[k] = fds_rng_unit(&rng);
        if (i == left_out)
            continue;
        expect_ok(fds__carry_pay(carry, values, 1, FDS__POLICY_CLIP, shares, &rule, &err), &err);
        for (size_t k = 0; k < PAYEES; k++)
            out[k] += shares[k];
    }
    fds__carry_free(carry);
}

/* So statements must not be made from them, although each divides a price. */
static void shares_that_carry_move_by_more_than_the_price(void **state) {
    (void)state;
    int64_t worst = 0, all[PAYEES], without[PAYEES];
    for (uint64_t seed = 0; seed < 50; seed++) {
        carried(seed, -1, all);
        for (int i = 0; i < 20; i++) {
            carried(seed, i, without);
            int64_t moved = distance(all, without);
            worst = worst < moved ? moved : worst;
        }
    }
    print_message("# a prediction of 1 unit moves carried shares by up to %lld\n",
                  (long long)worst);
    assert_true(worst > 1);
}

/* Nor may they be floating-point numbers: once the sum is large, what was added first decides how all
 * that follows is rounded. The mutant sums shares of at most one unit as floats. */
static void sums_in_floating_point_move_by_more_than_the_price(void **state) {
    (void)state;
    enum { COUNT_OF_SHARES = 1 << 24, UNIT = 1 << LEDGER_GRID };
    fds_rng rng = fds_rng_make(5, 1, 0, 0);
    float all_rounded = 0, rounded = 0;
    int64_t all = 0, sum = 0;
    for (int i = 0; i < COUNT_OF_SHARES; i++) {
        int64_t share = i ? (int64_t)fds_rng_below(&rng, UNIT + 1) : UNIT;
        all += share;
        all_rounded += (float)share;
        if (i == 0)
            continue; /* the one that is left out */
        sum += share;
        rounded += (float)share;
    }
    assert_true(all - sum == UNIT);
    print_message("# as floats: %.0f units\n", (double)fabsf(all_rounded - rounded) / UNIT);
    assert_true(fabsf(all_rounded - rounded) > (float)UNIT);
}

/* The first m predictions of a customer count: more of them change nothing, nor do others' orders. */
static void a_customer_moves_the_sums_by_m_prices(void **state) {
    (void)state;
    const char *const pairs[] = {"price_limit", "0.01", "per_customer", "5", NULL};
    int64_t with[PAYEES], without[PAYEES], none[PAYEES] = {0};
    set_day("2096-10-05");
    fds_ledger *l = private_ledger("a.db", pairs);
    for (int i = 0; i < 20; i++) {
        predict(l, "bolt", 10000, 1, 1, 2);
        predict(l, "acme", 10000, i, 1, 20 - i);
    }
    sums_of(l, with);
    fds_ledger_close(l);
    l = private_ledger("b.db", pairs);
    for (int i = 0; i < 20; i++)
        predict(l, "bolt", 10000, 1, 1, 2);
    sums_of(l, without);
    fds_ledger_close(l);
    assert_true(distance(without, none) == INT64_C(50000) << LEDGER_GRID);
    int64_t moved = distance(with, without), most = INT64_C(50000) << LEDGER_GRID;
    assert_true(moved <= most && moved > most - 5 * PAYEES);
}

/* ---- what is refused ---- */

static void what_breaks_the_guarantee_is_refused(void **state) {
    (void)state;
    fds_error err = {0};
    set_day("2096-10-05");
    fds_ledger *l = private_ledger("l.db", A_CENT);
    fds_charge dear = charge_of(l, 0, "acme", 10001, NULL);
    assert_int_equal(charge(l, &dear), FDS_ERR_USAGE);
    predict(l, "acme", 10000, 1, 1, 1);
    fds_ledger_run run = {
        .name = "m", .sha256 = SHA_B, .payees = payees, .count = PAYEES, .policy = "signed"};
    uint64_t number;
    assert_int_equal(fds_ledger_add_run(l, &run, &number, &err), FDS_ERR_USAGE);
    assert_int_equal(MAKE_PRIVATE(l, "price_limit", "1"), FDS_ERR_CONFLICT);
    /* a correction of a prediction would show a provider its share */
    fds_posting shown[] = {{find(l, "acme"), 3333}, {find(l, "north"), -3333}};
    fds_posting hidden[] = {{find(l, "acme"), 10000}, {find(l, "reserve"), -10000}};
    const char *const operators[2] = {"ann", "bob"};
    uint64_t of = fds_ledger_size(l) - 1;
    assert_int_equal(fds_ledger_correct(l, of, shown, 2, "r", operators, NULL, NULL, &err),
                     FDS_ERR_USAGE);
    expect_ok(fds_ledger_correct(l, of, hidden, 2, "r", operators, NULL, NULL, &err), &err);
    /* nor may a note take the place of a release */
    assert_int_equal(fds_ledger_note(l, "{}", "privacy release 2096-10", NULL, &err),
                     FDS_ERR_USAGE);
    assert_int_equal(
        fds_ledger_correct(l, of, hidden, 2, "r", operators, "privacy spend 2096-10", NULL, &err),
        FDS_ERR_USAGE);
    verify(l);
    fds_ledger_close(l);
    expect_ok(CREATE(scratch_path("m.db"), "debts", "true"), &err);
    l = open_as(scratch_path("m.db"), FDS_LEDGER_WRITE);
    assert_int_equal(fds_ledger_release(l, "2096-10", NULL, NULL, &err), FDS_ERR_USAGE);
    assert_int_equal(MAKE_PRIVATE(l, "epsilon", "1"), FDS_ERR_USAGE); /* no limit of prices */
    assert_int_equal(
        MAKE_PRIVATE(l, "price_limit", "0.01", "per_customer", "1000000", "epsilon", "1e-9"),
        FDS_ERR_USAGE);
    topup(l, "acme", 1000);
    add_run(l, SHA_A, NULL, 0);
    fds_charge c = charge_of(l, 0, "acme", 10, NULL);
    assert_int_equal(charge(l, &c), FDS_OK);
    assert_int_equal(MAKE_PRIVATE(l, "price_limit", "0.01"), FDS_ERR_CONFLICT);
    assert_non_null(strstr(err.text, "has predictions already"));
    fds_ledger_close(l);
}

/* ---- what providers see ---- */

static bool keep_text(void *user, const char *text, size_t size) {
    fds__text_add(user, text, size);
    return true;
}

static void providers_see_releases_only(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = october();
    uint64_t north = find(l, "north"), index, count;
    int64_t units;
    char *json;
    /* before a release: nothing */
    expect_ok(fds_ledger_earnings(l, north, &json, &err), &err);
    assert_string_equal(json, "{\"earnings\":[]}");
    fds_text_free(json);
    expect_ok(fds_ledger_release(l, "2096-10", NULL, &index, &err), &err);
    int64_t statement = stated(l, "north", "2096-10");
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"units\":%lld,", (long long)statement);
    expect_ok(fds_ledger_earnings(l, north, &json, &err), &err);
    assert_non_null(strstr(json, wanted));
    assert_non_null(strstr(json, "\"period\":\"2096-10\""));
    fds_text_free(json);
    expect_ok(fds_ledger_earned(l, north, &units, &count, &err), &err);
    assert_true(units == statement && count == 1);
    /* CSV: one line */
    fds__text csv = {0};
    expect_ok(fds_ledger_statement(l, north, NULL, NULL, keep_text, &csv, &err), &err);
    fds__text_add(&csv, "", 1);
    assert_null(strstr(csv.data, "prediction"));
    assert_non_null(strstr(csv.data, "release"));
    assert_true(strstr(strstr(csv.data, "release") + 1, "release") == NULL);
    fds__free(csv.data);
    /* a prediction, and lists */
    expect_ok(fds_ledger_entry(l, 12, north, &json, &err), &err);
    assert_non_null(strstr(json, "\"kind\":\"prediction\""));
    assert_null(strstr(json, "label"));
    assert_null(strstr(json, "amount"));
    assert_non_null(strstr(json, "\"postings\":[]"));
    fds_text_free(json);
    expect_ok(fds_ledger_entry(l, 12, UINT64_MAX, &json, &err), &err);
    assert_non_null(strstr(json, "\"units\":2500"));
    fds_text_free(json);
    fds_ledger_listing what = {
        .account = north, .before = UINT64_MAX, .limit = 100, .viewer = north};
    expect_ok(fds_ledger_entries(l, &what, &json, &err), &err);
    assert_null(strstr(json, "prediction"));
    assert_non_null(strstr(json, "\"kind\":\"release\""));
    assert_null(strstr(json, "250000")); /* nor what it has earned */
    fds_text_free(json);
    /* receipts: of the statement, not of predictions */
    assert_int_equal(fds_ledger_receipt(l, 12, north, &json, &err), FDS_ERR_USAGE);
    expect_ok(fds_ledger_receipt(l, index, north, &json, &err), &err);
    char *told;
    expect_ok(fds_receipt_verify(json, strlen(json), fds_ledger_vkey(l), &told, &err), &err);
    snprintf(wanted, sizeof wanted, "\"units\":%lld,", (long long)statement);
    assert_non_null(strstr(told, wanted));
    fds_text_free(told);
    fds_text_free(json);
    /* a customer still sees and proves what it has paid */
    expect_ok(fds_ledger_receipt(l, 12, find(l, "bolt"), &json, &err), &err);
    fds_text_free(json);
    /* the public log says nothing of labels and amounts */
    void *data;
    size_t size;
    char path[64];
    snprintf(path, sizeof path, "tile/entries/000.p/%llu", (unsigned long long)fds_ledger_size(l));
    expect_ok(fds_ledger_log_file(l, path, &data, &size, &err), &err);
    assert_null(memmem(data, size, "label", 5));
    assert_null(memmem(data, size, "amount", 6));
    fds_text_free(data);
    fds_ledger_close(l);
}

/* ---- faults ---- */

/* A disk that fails, or memory that runs out, at any moment: one charge, one release, right sums. */
static void a_fault_at_any_moment_charges_once(void **state) {
    (void)state;
    set_day("2096-10-05");
    fds_ledger *l = private_ledger("l.db", A_CENT);
    fds_ledger_close(l);
    for (uint64_t nth = 1, faults = 0;; nth++) {
        fds_error err = {0};
        l = again(NULL, "l.db");
        char text[LEDGER_TIME];
        set_day("2096-10-05");
        clock_ms += (int64_t)nth * 100 * LEDGER_DAY_MS; /* each time another month */
        predict(l, "acme", 10000, 1, 1, 1);
        ledger_day_text(clock_ms / LEDGER_DAY_MS, text);
        text[7] = 0;
        clock_ms += INT64_C(40) * LEDGER_DAY_MS;
        uint64_t size = fds_ledger_size(l);
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        fds_status status = fds_ledger_release(l, text, NULL, NULL, &err);
        uint64_t made = fds__fault_arm(FDS__FAULT_ALLOC, 0);
        if (status != FDS_OK) {
            faults++;
            assert_int_equal(status, FDS_ERR_NOMEM);
            assert_true(fds_ledger_size(l) <= size + 1); /* charged, or not */
            expect_ok(fds_ledger_release(l, text, NULL, NULL, &err), &err);
        }
        assert_true(fds_ledger_size(l) == size + 2);
        if (status == FDS_OK && made < nth) {
            verify(l);
            fds_ledger_close(l);
            print_message("# %llu faults\n", (unsigned long long)faults);
            assert_true(faults > 5);
            return;
        }
        fds_ledger_close(l);
    }
}

static fds_status no_bits(void *context, void *out, size_t size, fds_error *err) {
    (void)context, (void)out, (void)size;
    return fds__fail(err, FDS_ERR_IO, "no bits");
}

/* Without random bits nothing is released, and the charge stays for the next call. */
static void a_charge_without_release_is_used_by_the_next_call(void **state) {
    (void)state;
    fds_error err = {0};
    char *json;
    fds_ledger *l = october();
    uint64_t size = fds_ledger_size(l);
    const fds__bits none = {.fill = no_bits};
    l->bits = &none;
    assert_int_equal(fds_ledger_release(l, "2096-10", NULL, NULL, &err), FDS_ERR_IO);
    assert_true(fds_ledger_size(l) == size + 1);
    expect_ok(fds_ledger_budget(l, 1e-6, &json, &err), &err);
    assert_non_null(strstr(json, "\"released\":false"));
    fds_text_free(json);
    set_day("2096-12-01"); /* another period has to wait */
    l = again(l, "l.db");
    assert_int_equal(fds_ledger_release(l, "2096-11", NULL, NULL, &err), FDS_ERR_CONFLICT);
    expect_ok(fds_ledger_release(l, "2096-10", NULL, NULL, &err), &err);
    assert_true(fds_ledger_size(l) == size + 2);
    expect_ok(fds_ledger_budget(l, 1e-6, &json, &err), &err);
    assert_null(strstr(json, "\"released\":false"));
    json_t *root = json_loads(json, 0, NULL), *together = json_object_get(root, "together");
    assert_true(json_array_size(json_object_get(root, "releases")) == 1); /* charged once */
    assert_true(json_number_value(json_object_get(together, "epsilon")) == 1);
    assert_true(json_number_value(json_object_get(together, "epsilon_at_delta")) == 1);
    json_decref(root);
    fds_text_free(json);
    verify(l);
    fds_ledger_close(l);
}

/* Gaussian noise of a budget (epsilon, delta), which twelve periods add up. */
static void a_gaussian_ledger_counts_rho(void **state) {
    (void)state;
    fds_error err = {0};
    char *json;
    set_day("2096-10-05");
    fds_ledger *l = private_ledger("l.db", (const char *const[]){"price_limit", "0.01", "mechanism",
                                                                 "gauss", "delta", "1e-6", NULL});
    predict(l, "acme", 10000, 1, 1, 1);
    fds_ledger_privacy p;
    fds_ledger_privacy_of(l, &p);
    assert_true(p.is_private && strcmp(p.mechanism, "gauss") == 0 && p.delta == 1e-6);
    assert_true(fds__zcdp_epsilon(p.rho, 1e-6) <= 1 && fds__zcdp_epsilon(p.rho, 1e-6) > 0.9999);
    assert_true(fabs(p.deviation - 10000 / sqrt(2 * p.rho)) < 1e-3);
    set_day("2096-12-05");
    expect_ok(fds_ledger_release(l, "2096-10", NULL, NULL, &err), &err);
    expect_ok(fds_ledger_release(l, "2096-11", NULL, NULL, &err), &err);
    expect_ok(fds_ledger_budget(l, 1e-6, &json, &err), &err);
    json_t *root = json_loads(json, 0, NULL);
    double rho = json_number_value(json_object_get(json_object_get(root, "together"), "rho"));
    assert_true(fabs(rho - 2 * p.rho) < 1e-12);
    json_decref(root);
    fds_text_free(json);
    verify(l);
    fds_ledger_close(l);
}

/* ---- verification ---- */

/* Whoever has the signing key writes a release that takes back less than was earned: `less` units of
 * the first provider, to the reserve. */
static void forge(int64_t less) {
    fds_error err = {0};
    fds_ledger *l = october();
    const fds__bits none = {.fill = no_bits};
    l->bits = &none;
    assert_int_equal(fds_ledger_release(l, "2096-10", NULL, NULL, &err), FDS_ERR_IO);
    const int64_t earned[PAYEES] = {250000, 500000, 250000};
    fds_posting postings[2 * PAYEES + 1];
    for (size_t i = 0; i < PAYEES; i++) {
        postings[i] = (fds_posting){find(l, payees[i]), -earned[i] + (i == 0 ? less : 0)};
        postings[PAYEES + i] = (fds_posting){find(l, payees[i]), 1000};
    }
    postings[2 * PAYEES] = (fds_posting){l->state.privacy.reserve, 1000000 - 3000 - less};
    ledger_entry e = LEDGER_ENTRY(LEDGER_RELEASE);
    e.customer = LEDGER_CASH;
    e.ref = l->state.privacy.spend;
    e.text = "{\"privacy\":\"release\",\"period\":\"2096-10\",\"from\":\"2096-10-05\","
             "\"to\":\"2096-10-31\"}";
    expect_ok(ledger_begin(l, &err), &err);
    expect_ok(ledger_end(l, ledger_add(l, &e, postings, COUNT(postings), &err), &err), &err);
    fds_status status = fds_ledger_verify(l, NULL, NULL, NULL, &err);
    assert_int_equal(status, less ? FDS_ERR_CORRUPT : FDS_OK);
    assert_true(!less || strstr(err.text, "not those of a release"));
    fds_ledger_close(l);
}

static void verify_finds_a_forged_release(void **state) {
    (void)state;
    forge(1);
}
static void verify_takes_a_right_one(void **state) {
    (void)state;
    forge(0);
}

/* So does a correction that moves a provider's share of a prediction. */
static void verify_finds_a_correction_that_shows_a_share(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = october();
    const fds_posting postings[] = {{find(l, "north"), -2500}, {find(l, "acme"), 2500}};
    const char *const operators[2] = {"ada", "bob"};
    uint64_t prediction = fds_ledger_size(l) - 1;
    assert_int_equal(
        fds_ledger_correct(l, prediction, postings, 2, "refund", operators, NULL, NULL, &err),
        FDS_ERR_USAGE);
    ledger_entry e = LEDGER_ENTRY(LEDGER_CORRECTION);
    e.customer = LEDGER_CASH;
    e.ref = prediction;
    e.text = "{\"reason\":\"refund\",\"operators\":[\"ada\",\"bob\"]}";
    expect_ok(ledger_begin(l, &err), &err);
    expect_ok(ledger_end(l, ledger_add(l, &e, postings, 2, &err), &err), &err);
    assert_int_equal(fds_ledger_verify(l, NULL, NULL, NULL, &err), FDS_ERR_CORRUPT);
    assert_non_null(strstr(err.text, "corrects a prediction by a provider's account"));
    fds_ledger_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_statement_is_what_was_earned_plus_noise),
        TEST(only_what_is_over_is_released_and_in_order),
        TEST(payouts_pay_what_was_released),
        TEST(negative_statements_are_carried_over),
        TEST(one_prediction_moves_the_sums_by_its_price),
        TEST(shares_that_carry_move_by_more_than_the_price),
        TEST(sums_in_floating_point_move_by_more_than_the_price),
        TEST(a_customer_moves_the_sums_by_m_prices),
        TEST(what_breaks_the_guarantee_is_refused),
        TEST(providers_see_releases_only),
        TEST(a_fault_at_any_moment_charges_once),
        TEST(a_charge_without_release_is_used_by_the_next_call),
        TEST(a_gaussian_ledger_counts_rho),
        TEST(verify_finds_a_forged_release),
        TEST(verify_takes_a_right_one),
        TEST(verify_finds_a_correction_that_shows_a_share),
    };
    choose_store();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
