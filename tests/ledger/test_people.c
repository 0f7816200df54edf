/* SPDX-License-Identifier: Apache-2.0
 * What people add and look at: notes, payouts of given amounts, who is named; lists and sums. */
#include "ledger_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

static json_t *entry_of(const fds_ledger *l, uint64_t index, uint64_t viewer) {
    char *text = NULL;
    fds_error err = {0};
    expect_ok(fds_ledger_entry(l, index, viewer, &text, &err), &err);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    fds_text_free(text);
    return root;
}

static json_t *list_of(const fds_ledger *l, fds_ledger_listing what) {
    char *text = NULL;
    fds_error err = {0};
    expect_ok(fds_ledger_entries(l, &what, &text, &err), &err);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    fds_text_free(text);
    return root;
}

static uint64_t index_at(const json_t *list, size_t i) {
    return (uint64_t)json_integer_value(
        json_object_get(json_array_get(json_object_get(list, "entries"), i), "index"));
}

static size_t count_of(const json_t *list) {
    return json_array_size(json_object_get(list, "entries"));
}

static void predict(fds_ledger *l, const char *customer_name, const char *label, const char *key) {
    fds_charge c = charge_of(l, 0, customer_name, 1000000, key);
    c.label = label;
    c.answer = key ? "an answer" : NULL;
    c.answer_size = key ? 9 : 0;
    assert_int_equal(charge(l, &c), FDS_OK);
}

/* ---- notes ---- */

static void a_note_moves_no_money_and_is_private(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    uint64_t first, again, other, size = fds_ledger_size(l);
    expect_ok(fds_ledger_note(l, "{\"propose\":\"x\"}", "n", &first, &err), &err);
    expect_ok(fds_ledger_note(l, "{\"propose\":\"x\"}", "n", &again, &err), &err);
    assert_int_equal(first, size);
    assert_int_equal(again, first);
    assert_int_equal(fds_ledger_note(l, "{\"propose\":\"y\"}", "n", &other, &err),
                     FDS_ERR_CONFLICT);
    expect_ok(fds_ledger_note(l, "{\"propose\":\"x\"}", NULL, &other, &err), &err);
    assert_int_equal(other, first + 1);
    static const char *const wrong[] = {"", "[]", "1", "{", "\"a\""};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_not_equal(fds_ledger_note(l, wrong[i], NULL, &other, &err), FDS_OK);
    assert_int_not_equal(fds_ledger_note(l, NULL, NULL, &other, &err), FDS_OK);
    l = reopen(l);
    json_t *all = entry_of(l, first, UINT64_MAX), *seen = entry_of(l, first, find(l, "acme"));
    assert_string_equal(json_string_value(json_object_get(all, "kind")), "audit");
    assert_string_equal(json_string_value(json_object_get(json_object_get(all, "text"), "propose")),
                        "x");
    assert_int_equal(json_array_size(json_object_get(all, "postings")), 0);
    assert_null(json_object_get(seen, "text"));
    assert_null(json_object_get(seen, "key"));
    json_decref(all);
    json_decref(seen);
    verify(l);
    void *data;
    size_t bytes;
    expect_ok(fds_ledger_log_file(l, "tile/entries/000.p/9", &data, &bytes, &err), &err);
    assert_null(memmem(data, bytes, "propose", 7));
    assert_non_null(memmem(data, bytes, "kind audit", 10));
    fds_text_free(data);
    char *proof;
    assert_int_equal(fds_ledger_receipt(l, first, find(l, "acme"), &proof, &err),
                     FDS_ERR_NOT_FOUND);
    fds_ledger_close(l);
}

static void a_note_is_at_most_a_mebibyte(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    size_t size = (1 << 20) + 1;
    char *text = malloc(size + 1);
    memset(text, 'a', size);
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + size - 2, "\"}", 3);
    assert_int_equal(fds_ledger_note(l, text, NULL, NULL, &err), FDS_ERR_LIMIT);
    memcpy(text + size - 3, "\"}", 3);
    expect_ok(fds_ledger_note(l, text, NULL, NULL, &err), &err);
    free(text);
    verify(l);
    fds_ledger_close(l);
}

/* ---- payouts of given amounts ---- */

static void payouts_of_given_amounts_are_all_or_none(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    uint64_t indexes[2], again[2], size;
    for (int i = 0; i < 3; i++)
        predict(l, "acme", "6", NULL);
    fds_posting some[] = {{find(l, "north"), 500000}, {find(l, "south"), 10000}};
    int64_t north = balance(l, "north"), south = balance(l, "south");
    assert_true(north > 500000 && south > 10000);
    expect_ok(fds_ledger_pay(l, some, 2, "May", "p", indexes, &err), &err);
    expect_ok(fds_ledger_pay(l, some, 2, "May", "p", again, &err), &err);
    assert_memory_equal(indexes, again, sizeof indexes);
    assert_int_equal(balance(l, "north"), north - 500000);
    assert_int_equal(balance(l, "south"), south - 10000);
    size = fds_ledger_size(l);
    const fds_posting wrong[][2] = {
        {some[0], {find(l, "cash"), 10000}},   {some[0], some[0]},
        {some[0], {find(l, "south"), 10001}},  {some[0], {find(l, "south"), 0}},
        {some[0], {find(l, "south"), -10000}}, {some[0], {99, 10000}}};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(fds_ledger_pay(l, wrong[i], 2, NULL, NULL, indexes, &err), FDS_ERR_USAGE);
    some[1].units = 100000000000;
    assert_int_equal(fds_ledger_pay(l, some, 2, NULL, NULL, indexes, &err), FDS_ERR_LIMIT);
    some[1].units = 20000; /* another amount under that key */
    assert_int_equal(fds_ledger_pay(l, some, 2, "May", "p", indexes, &err), FDS_ERR_CONFLICT);
    assert_int_equal(fds_ledger_size(l), size);
    assert_int_equal(balance(l, "north"), north - 500000);
    l = reopen(l);
    verify(l);
    uint64_t found;
    expect_ok(fds_ledger_find_key(l, find(l, "south"), "p", &found, &err), &err);
    assert_int_equal(found, again[1]);
    assert_int_equal(fds_ledger_find_key(l, find(l, "west"), "p", &found, &err), FDS_ERR_NOT_FOUND);
    fds_ledger_close(l);
}

static void entries_name_who_is_answerable(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    uint64_t index;
    const fds_ledger_by one = {.operators = {"ann"}, .proposal = UINT64_MAX},
                        two = {.operators = {"ann", "bob"}, .proposal = 7};
    char *text = NULL;
    expect_ok(fds_ledger_set_by(l, &one, &err), &err);
    expect_ok(fds_ledger_topup(l, find(l, "acme"), 5, NULL, NULL, &index, &err), &err);
    expect_ok(fds_ledger_entry(l, index, UINT64_MAX, &text, &err), &err);
    expect_in(text, "\"text\":{\"operators\":[\"ann\"]}");
    fds_text_free(text);
    predict(l, "acme", "6", NULL);
    expect_ok(fds_ledger_set_by(l, &two, &err), &err);
    expect_ok(fds_ledger_payout(l, find(l, "north"), 0, "May", NULL, NULL, &index, &err), &err);
    expect_ok(fds_ledger_entry(l, index, UINT64_MAX, &text, &err), &err);
    expect_in(text, "\"text\":{\"ref\":\"May\",\"operators\":[\"ann\",\"bob\"],\"proposal\":7}");
    fds_text_free(text);
    expect_ok(fds_ledger_set_by(l, NULL, &err), &err);
    expect_ok(fds_ledger_topup(l, find(l, "acme"), 5, NULL, NULL, &index, &err), &err);
    expect_ok(fds_ledger_entry(l, index, UINT64_MAX, &text, &err), &err);
    assert_null(strstr(text, "operators"));
    fds_text_free(text);
    assert_int_equal(
        fds_ledger_set_by(l, &(fds_ledger_by){.operators = {"a\nb"}, .proposal = 0}, &err),
        FDS_ERR_USAGE);
    verify(l);
    fds_ledger_close(l);
}

/* ---- lists ---- */

#define ALL                                                                           \
    (fds_ledger_listing) {                                                            \
        .account = UINT64_MAX, .before = UINT64_MAX, .limit = 5, .viewer = UINT64_MAX \
    }

static void lists_go_back_from_the_newest(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    uint64_t note, size;
    topup(l, "bolt", 10000000);
    expect_ok(fds_ledger_note(l, "{}", NULL, &note, &err), &err);
    for (int i = 0; i < 8; i++)
        predict(l, i % 2 ? "acme" : "bolt", "6", i == 1 ? "k" : NULL);
    size = fds_ledger_size(l);
    fds_ledger_listing what = ALL;
    uint64_t expected = size;
    for (;;) {
        json_t *list = list_of(l, what);
        for (size_t i = 0; i < count_of(list); i++)
            assert_int_equal(index_at(list, i), --expected);
        bool has_more = json_is_true(json_object_get(list, "more"));
        what.before = (uint64_t)json_integer_value(json_object_get(list, "before"));
        json_decref(list);
        if (!has_more)
            break;
    }
    assert_int_equal(expected, 0);
    what = ALL;
    what.account = what.viewer = find(l, "acme");
    json_t *own = list_of(l, what); /* four predictions and the top-up */
    assert_int_equal(count_of(own), 5);
    for (size_t i = 0; i < 5; i++) {
        const json_t *e = json_array_get(json_object_get(own, "entries"), i);
        assert_int_equal(json_array_size(json_object_get(e, "postings")), 1);
        assert_null(json_object_get(e, "answer_base64"));
    }
    json_decref(own);
    what = ALL;
    what.kind = "audit";
    own = list_of(l, what);
    assert_int_equal(count_of(own), 1);
    assert_int_equal(index_at(own, 0), note);
    assert_false(json_is_true(json_object_get(own, "more")));
    json_decref(own);
    what.kind = "topup";
    what.account = find(l, "bolt");
    own = list_of(l, what);
    assert_int_equal(count_of(own), 1);
    json_decref(own);
    char *text;
    what.kind = "king";
    assert_int_equal(fds_ledger_entries(l, &what, &text, &err), FDS_ERR_USAGE);
    what = ALL;
    what.limit = 0;
    assert_int_equal(fds_ledger_entries(l, &what, &text, &err), FDS_ERR_USAGE);
    what.limit = 1001;
    assert_int_equal(fds_ledger_entries(l, &what, &text, &err), FDS_ERR_USAGE);
    what = ALL;
    what.account = 999;
    assert_int_equal(fds_ledger_entries(l, &what, &text, &err), FDS_ERR_USAGE);
    fds_ledger_close(l);
}

/* Beyond what one call looks at. */
static void a_list_goes_on_where_the_last_one_stopped(void **state) {
    (void)state;
    enum { MANY = 10000, AT_ONCE = 500 };
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    fds_charge charges[AT_ONCE];
    topup(l, "bolt", 10);
    for (int k = 0; k < MANY / AT_ONCE; k++) {
        for (int i = 0; i < AT_ONCE; i++)
            charges[i] = charge_of(l, 0, "acme", 10, NULL);
        expect_ok(fds_ledger_charge(l, charges, AT_ONCE, &err), &err);
    }
    fds_ledger_listing what = ALL;
    what.account = find(l, "bolt");
    json_t *list = list_of(l, what);
    assert_int_equal(count_of(list), 0);
    assert_true(json_is_true(json_object_get(list, "more")));
    what.before = (uint64_t)json_integer_value(json_object_get(list, "before"));
    assert_int_equal(what.before, fds_ledger_size(l) - 8192);
    json_decref(list);
    list = list_of(l, what);
    assert_int_equal(count_of(list), 1);
    assert_false(json_is_true(json_object_get(list, "more")));
    json_decref(list);
    fds_ledger_close(l);
}

/* ---- statements, earnings and sums ---- */

static bool collect(void *user, const char *text, size_t size) {
    fds__text_add(user, text, size);
    return true;
}

static void a_statement_in_parts_is_the_statement(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    for (int i = 0; i < 5; i++)
        predict(l, "acme", "6", NULL);
    uint64_t acme = find(l, "acme");
    fds__text whole = {0};
    expect_ok(fds_ledger_statement(l, acme, NULL, NULL, collect, &whole, &err), &err);
    for (size_t most = 1; most < 20; most += 3) {
        fds__text parts = {0};
        fds_ledger_cursor at = {0};
        while (!at.is_over)
            expect_ok(
                fds_ledger_statement_part(l, acme, NULL, NULL, &at, most, collect, &parts, &err),
                &err);
        assert_int_equal(parts.used, whole.used);
        assert_memory_equal(parts.data, whole.data, whole.used);
        assert_int_equal(at.balance, fds_ledger_balance(l, acme));
        fds__free(parts.data);
    }
    fds__free(whole.data);
    fds_ledger_close(l);
}

static void earnings_have_the_errors_of_their_predictions(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    char *text = NULL;
    uint64_t count;
    int64_t units;
    for (int i = 0; i < 4; i++)
        predict(l, "acme", "6", NULL);
    predict(l, "acme", "7", NULL);
    json_t *entry = entry_of(l, fds_ledger_size(l) - 1, UINT64_MAX);
    double one = json_real_value(
        json_object_get(json_array_get(json_object_get(entry, "postings"), 1), "unit_error"));
    json_decref(entry);
    assert_true(one > 0);
    expect_ok(fds_ledger_earnings(l, find(l, "north"), &text, &err), &err);
    json_t *root = json_loads(text, 0, NULL), *list = json_object_get(root, "earnings");
    fds_text_free(text);
    assert_int_equal(json_array_size(list), 2);
    double six = json_real_value(json_object_get(json_array_get(list, 0), "error")),
           seven = json_real_value(json_object_get(json_array_get(list, 1), "error"));
    assert_true(fabs(six - 4 * one) < 1e-9 * one && fabs(seven - one) < 1e-9 * one);
    json_decref(root);
    fds_charge c = charge_of(l, 0, "acme", 1000000, NULL);
    c.errors = NULL;
    assert_int_equal(charge(l, &c), FDS_OK); /* a 6 whose error is not known */
    expect_ok(fds_ledger_earnings(l, find(l, "north"), &text, &err), &err);
    root = json_loads(text, 0, NULL);
    list = json_object_get(root, "earnings");
    fds_text_free(text);
    assert_true(json_is_null(json_object_get(json_array_get(list, 0), "error")));
    assert_true(json_is_real(json_object_get(json_array_get(list, 1), "error")));
    json_decref(root);
    expect_ok(fds_ledger_earned(l, find(l, "north"), &units, &count, &err), &err);
    assert_int_equal(units, balance(l, "north"));
    assert_int_equal(count, 6);
    expect_ok(fds_ledger_earned(l, find(l, "acme"), &units, &count, &err), &err);
    assert_int_equal(units, 0);
    fds_ledger_close(l);
}

static void expect_totals(fds_ledger *l, int64_t in, int64_t out) {
    fds_ledger_totals totals;
    fds_error err = {0};
    expect_ok(fds_ledger_sum(l, &totals, &err), &err);
    assert_int_equal(totals.in, in);
    assert_int_equal(totals.out, out);
    assert_int_equal(in - out, -balance(l, "cash"));
}

static void sums_follow_every_entry(void **state) {
    (void)state;
    static const char *const both[2] = {"ann", "bob"};
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    int64_t units;
    uint64_t index;
    expect_totals(l, 10000000, 0);
    predict(l, "acme", "6", NULL);
    topup(l, "acme", 77);
    expect_ok(fds_ledger_payout(l, find(l, "north"), 0, NULL, NULL, &units, &index, &err), &err);
    expect_totals(l, 10000077, units);
    const fds_posting in[] = {{find(l, "cash"), -5}, {find(l, "acme"), 5}},
                      out[] = {{find(l, "cash"), 3}, {find(l, "acme"), -3}},
                      low[] = {{find(l, "acme"), -1000000000}, {find(l, "cash"), 1000000000}};
    expect_ok(fds_ledger_correct(l, 0, in, 2, "r", both, NULL, NULL, &err), &err);
    expect_ok(fds_ledger_correct(l, 0, out, 2, "r", both, NULL, NULL, &err), &err);
    assert_int_equal(fds_ledger_correct(l, 0, low, 2, "r", both, NULL, NULL, &err), FDS_ERR_LIMIT);
    expect_totals(l, 10000082, units + 3);
    l = reopen(l);
    expect_totals(l, 10000082, units + 3);
    assert_int_equal(fds_ledger_minor(l), 10000);
    fds_ledger_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_note_moves_no_money_and_is_private),
        TEST(a_note_is_at_most_a_mebibyte),
        TEST(payouts_of_given_amounts_are_all_or_none),
        TEST(entries_name_who_is_answerable),
        TEST(lists_go_back_from_the_newest),
        TEST(a_list_goes_on_where_the_last_one_stopped),
        TEST(a_statement_in_parts_is_the_statement),
        TEST(earnings_have_the_errors_of_their_predictions),
        TEST(sums_follow_every_entry),
    };
    choose_store();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
