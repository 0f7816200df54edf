/* SPDX-License-Identifier: Apache-2.0
 * Payers: results in parts pay the same as a whole, sums divided over predictions, currencies,
 * outputs as they are written, and the file that carries what is owed. */
#include "../base/result_fixture.h"

#include "pay/pay.h"

enum { N = 7, K = 60 };

static fds_params *pay_params(const char *const *pairs) {
    fds_params *p = fds_params_create("pay");
    fds_error err = {0};
    for (; pairs && *pairs; pairs += 2)
        expect_ok(fds_params_set(p, pairs[0], pairs[1], &err), &err);
    return p;
}
#define PARAMS(...) pay_params((const char *const[]){__VA_ARGS__, NULL})

static fds_payer *new_payer(fds_params *params, size_t predictions) {
    fds_payer *payer = NULL;
    fds_error err = {0};
    expect_ok(fds_payer_create(params, predictions, &payer, &err), &err);
    fds_params_free(params); /* the payer does not need them any more */
    return payer;
}

/* Predictions first .. first+count-1 of one long sequence, of players with providers. */
static fds_result *some(size_t first, size_t count) {
    fds_result *r = new_result(N, count, 2);
    char name[32];
    name_class(r, 0, "cat");
    name_class(r, 1, "dog");
    for (size_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "sample %zu", i);
        name_player(r, i, name, i % 3 ? "north" : "south", i % 2, 1);
    }
    for (size_t k = 0; k < count; k++) {
        fds_rng rng = fds_rng_make(21, 0, (uint32_t)(first + k), 0);
        snprintf(name, sizeof name, "input %zu", first + k);
        name_input(r, k, name);
        r->labels[k] = 0;
        for (size_t i = 0; i < N; i++) {
            r->values[k * N + i] = fds_rng_normal(&rng) + 0.3;
            r->errors[k * N + i] = 0.1;
        }
    }
    fds__json_put(r->about, "seconds", json_real(0.5));
    return r;
}

static void pay_some(fds_payer *payer, size_t first, size_t count) {
    fds_result *r = some(first, count);
    fds_error err = {0};
    expect_ok(fds_payer_pay(payer, r, NULL, &err), &err);
    fds_result_free(r);
}

static void foresee_some(fds_payer *payer, size_t first, size_t count) {
    fds_result *r = some(first, count);
    fds_error err = {0};
    expect_ok(fds_payer_foresee(payer, r, &err), &err);
    fds_result_free(r);
}

/* ---- parts and wholes ---- */

static void parts_pay_the_same_as_the_whole(void **state) {
    (void)state;
    static const char *const policies[] = {"clip", "signed"};
    for (int way = 0; way < 2; way++) {
        fds_params *params = PARAMS("amount", "0.01", "policy", policies[way]);
        fds_result *all = some(0, K);
        fds_payment *whole = NULL;
        fds_error err = {0};
        expect_ok(fds_pay(all, params, &whole, &err), &err);
        fds_payer *payer = new_payer(params, K);
        for (size_t k = 0; k < K; k += 10)
            foresee_some(payer, k, 10);
        for (size_t k = 0; k < K; k += 20)
            pay_some(payer, k, 20);
        const fds_payment *total = fds_payer_total(payer);
        assert_int_equal(fds_payer_paid(payer), K);
        assert_int_equal(fds_payment_amount(total, SIZE_MAX), K);
        for (size_t i = 0; i < N; i++) {
            assert_int_equal(fds_payment_share(total, SIZE_MAX, i),
                             fds_payment_share(whole, SIZE_MAX, i));
            assert_true(fabs(fds_payer_owed(payer, i)) < 1);
        }
        assert_true(isnan(fds_payer_owed(payer, N)));
        fds_payer_free(payer);
        fds_payment_free(whole);
        fds_result_free(all);
    }
    fds_payer_free(NULL);
}

static void other_players_are_refused(void **state) {
    (void)state;
    fds_payer *payer = new_payer(PARAMS("amount", "1"), 0);
    fds_result *r = some(0, 1), *fewer = new_result(N - 1, 1, 2);
    fds_error err = {0};
    pay_some(payer, 0, 3);
    name_player(r, 2, "sample 2", "north", 1, 1); /* another label */
    assert_int_equal(fds_payer_pay(payer, r, NULL, &err), FDS_ERR_USAGE);
    expect_in(err.text, "other players");
    assert_int_equal(fds_payer_pay(payer, fewer, NULL, &err), FDS_ERR_USAGE);
    fds_payer_free(payer);
    fds_result_free(r);
    fds_result_free(fewer);
}

/* ---- money ---- */

static void a_sum_is_divided_evenly_over_the_predictions(void **state) {
    (void)state;
    fds_params *params = PARAMS("total", "1.00", "currency", "EUR");
    fds_result *r = some(0, 7);
    fds_payment *p = NULL;
    fds_error err = {0};
    int64_t sum = 0;
    expect_ok(fds_pay(r, params, &p, &err), &err);
    for (size_t k = 0; k < 7; k++) {
        int64_t amount = fds_payment_amount(p, k), shares = 0;
        sum += amount;
        assert_true(amount == 14 || amount == 15);
        assert_true(sum == (int64_t)(100 * (k + 1) / 7)); /* nobody runs ahead or falls behind */
        for (size_t i = 0; i < N; i++)
            shares += fds_payment_share(p, k, i);
        assert_true(shares == amount);
    }
    assert_string_equal(fds_payment_currency(p), "EUR");
    fds_payment_free(p);
    fds_payer *payer = new_payer(params, 2);
    pay_some(payer, 0, 1);
    assert_int_equal(fds_payer_finish(payer, &err), FDS_ERR_USAGE);
    expect_in(err.text, "2 predictions, but 1");
    assert_int_equal(fds_payer_pay(payer, r, NULL, &err), FDS_ERR_USAGE);
    fds_payer_free(payer);
    fds_result_free(r);
}

static void expect_refusal(fds_params *params, const char *part) {
    fds_error err = {0};
    fds_payer *payer = NULL;
    assert_int_equal(fds_payer_create(params, 0, &payer, &err), FDS_ERR_USAGE);
    expect_in(err.text, part);
    assert_null(payer);
    fds_params_free(params);
}

static void mistakes_are_told_before_any_work(void **state) {
    (void)state;
    expect_refusal(PARAMS("policy", "clip"), "`amount` is missing");
    expect_refusal(PARAMS("amount", "1", "total", "1"), "not both");
    expect_refusal(PARAMS("total", "1"), "needs the number of predictions");
    expect_refusal(PARAMS("total", "1.5x"), "`total` must be money");
    expect_refusal(PARAMS("amount", "1.5", "currency", "JPY"), "at most 0 decimals, as JPY has");
    expect_refusal(PARAMS("amount", "1.505", "currency", "usd"), "at most 2 decimals, as USD has");
    expect_refusal(PARAMS("amount", "1.0005", "currency", "BHD"), "at most 3 decimals");
    expect_refusal(PARAMS("amount", "1", "currency", "JPJ"), "did you mean \"JPY\"?");
    expect_refusal(PARAMS("amount", "1", "currency", "XAU"), "ISO 4217");
    expect_refusal(PARAMS("amount", "9007199254740992", "currency", "JPY"),
                   "at most 9007199254740991 (got");
}

static void currencies_say_how_many_decimals_there_are(void **state) {
    (void)state;
    static const struct {
        const char *code, *amount, *text;
        int64_t units;
    } cases[] = {{"JPY", "12", "12", 12},       {"USD", "12", "12.00", 1200},
                 {"eur", "1.5", "1.50", 150},   {"BHD", "0.005", "0.005", 5},
                 {"CLF", "1", "1.0000", 10000}, {"UYW", "1.25", "1.2500", 12500}};
    char text[32];
    for (size_t i = 0; i < COUNT(cases); i++) {
        fds_payer *payer =
            new_payer(PARAMS("amount", cases[i].amount, "currency", cases[i].code), 0);
        pay_some(payer, 0, 1);
        const fds_payment *total = fds_payer_total(payer);
        assert_true(fds_payment_amount(total, SIZE_MAX) == cases[i].units);
        assert_string_equal(fds_money_text(cases[i].units, fds_payment_decimals(total), text),
                            cases[i].text);
        fds_payer_free(payer);
    }
}

/* ---- groups ---- */

static void groups_are_those_of_the_run_or_the_labels(void **state) {
    (void)state;
    fds_result *r = some(0, 1);
    fds_params *params = PARAMS("amount", "1", "by", "group");
    fds_payment *p = NULL;
    fds_error err = {0};
    expect_ok(fds_pay(r, params, &p, &err), &err);
    assert_int_equal(fds_payment_payees(p), 2);
    assert_string_equal(fds_payment_payee(p, 0), "cat");
    assert_string_equal(fds_payment_payee(p, 1), "dog");
    assert_true(fabs(fds_payment_value(p, 0, 1) - (r->values[1] + r->values[3] + r->values[5])) <
                1e-12);
    fds_payment_free(p);
    for (size_t i = 0; i < N; i++)
        r->player_groups[i] = i < 2 ? 4 : (uint32_t)(i % 2); /* one group of both labels */
    expect_ok(fds_pay(r, params, &p, &err), &err);
    assert_int_equal(fds_payment_payees(p), 3);
    assert_string_equal(fds_payment_payee(p, 0), "group 4");
    assert_string_equal(fds_payment_payee(p, 1), "group 0");
    fds_payment_free(p);
    fds_params_free(params);
    fds_result_free(r);
}

/* ---- outputs ---- */

static bool collect(void *user, const char *text, size_t size) {
    fds__text_add(user, text, size);
    return true;
}

static bool refuse_text(void *user, const char *text, size_t size) {
    (void)user, (void)text, (void)size;
    return false;
}

static void outputs_say_the_same_in_every_format(void **state) {
    (void)state;
    fds_error err = {0};
    fds__text lines = {0};
    fds_payer *payer = new_payer(PARAMS("amount", "0.05", "by", "provider", "currency", "USD"), 0);
    const char *path = scratch_path("p.csv");
    expect_ok(fds_payer_save(payer, path, &err), &err);
    expect_ok(fds_payer_print(payer, "jsonl", collect, &lines, &err), &err);
    assert_int_equal(fds_payer_save(payer, path, &err), FDS_ERR_USAGE); /* two are enough */
    pay_some(payer, 0, 3);
    pay_some(payer, 3, 2);
    assert_false(access(path, F_OK) == 0); /* only when all is done */
    expect_ok(fds_payer_finish(payer, &err), &err);
    csv table = csv_read(path);
    assert_int_equal(table.rows, 1 + 5 * 2);
    char *at = lines.data;
    int64_t totals[2] = {0}; /* north, south */
    for (size_t k = 0; k < 5; k++) {
        *strchr(at, '\n') = 0;
        json_t *input = load_text(at), *shares = json_object_get(input, "shares");
        at += strlen(at) + 1;
        assert_int_equal(int_of(input, "units"), 5);
        assert_true(real_of(input, "misallocated") > 0);
        for (size_t rank = 0; rank < 2; rank++) {
            const json_t *share = json_array_get(shares, rank);
            size_t row = 1 + 2 * k + rank;
            assert_string_equal(csv_at(&table, row, "input"), text_of(input, "input"));
            assert_string_equal(csv_at(&table, row, "provider"), text_of(share, "provider"));
            assert_string_equal(csv_at(&table, row, "amount"), text_of(share, "amount"));
            assert_string_equal(csv_at(&table, row, "currency"), "USD");
            totals[strcmp(text_of(share, "provider"), "south") == 0] += int_of(share, "units");
        }
        json_decref(input);
    }
    json_t *end = load_text(at);
    assert_int_equal(int_of(end, "predictions"), 5);
    assert_string_equal(text_of(end, "total_amount"), "0.25");
    assert_string_equal(text_of(end, "currency"), "USD");
    assert_true(real_of(end, "seconds") == 1); /* of both results */
    for (size_t i = 0; i < 2; i++) {
        const json_t *share = json_array_get(json_object_get(end, "together"), i);
        assert_int_equal(int_of(share, "units"),
                         totals[strcmp(text_of(share, "provider"), "south") == 0]);
    }
    json_decref(end);
    csv_free(&table);
    fds__free(lines.data);
    fds_payer_free(payer);
}

static void a_summary_has_the_sums_only(void **state) {
    (void)state;
    fds_error err = {0};
    fds__text text = {0};
    fds_payer *payer = new_payer(PARAMS("amount", "1", "summary", "true"), 0);
    expect_ok(fds_payer_save(payer, scratch_path("p.csv"), &err), &err);
    expect_ok(fds_payer_print(payer, "json", collect, &text, &err), &err);
    pay_some(payer, 0, 4);
    expect_ok(fds_payer_finish(payer, &err), &err);
    csv table = csv_read(scratch_path("p.csv"));
    assert_int_equal(table.rows, 1 + N);
    assert_string_equal(csv_at(&table, 1, "input"), "all");
    json_t *root = load_text(text.data);
    assert_null(json_object_get(root, "inputs"));
    assert_int_equal(json_array_size(json_object_get(root, "together")), N);
    assert_int_equal(int_of(root, "total_units"), 400);
    json_decref(root);
    csv_free(&table);
    fds__free(text.data);
    fds_payer_free(payer);
}

static void failures_leave_the_old_file(void **state) {
    (void)state;
    fds_error err = {0};
    const char *path = scratch_path("p.jsonl");
    scratch_write(path, "old", 3);
    fds_payer *payer = new_payer(PARAMS("amount", "1"), 0);
    expect_ok(fds_payer_save(payer, path, &err), &err);
    expect_ok(fds_payer_print(payer, "json", refuse_text, NULL, &err), &err);
    assert_int_equal(fds_payer_print(payer, "xml", collect, NULL, &err), FDS_ERR_USAGE);
    pay_some(payer, 0, 2);
    assert_int_equal(fds_payer_finish(payer, &err), FDS_ERR_IO);
    fds_payer_free(payer);
    scratch_expect(path, "old"); /* the file is only put in place when all has been written */
    payer = new_payer(PARAMS("amount", "1"), 0);
    expect_ok(fds_payer_save(payer, path, &err), &err);
    pay_some(payer, 0, 2);
    fds_payer_free(payer); /* not finished */
    scratch_expect(path, "old");
    assert_int_equal(scratch_entries(), 1);
    payer = new_payer(PARAMS("amount", "1"), 0);
    assert_int_equal(fds_payer_finish(payer, &err), FDS_ERR_USAGE);
    fds_payer_free(payer);
}

/* ---- the carry ---- */

static fds_payer *carrying(const char *path, const char *amount, const char *by) {
    return new_payer(PARAMS("amount", amount, "by", by, "carry", path), 0);
}

static void a_carry_goes_on_where_the_last_one_ended(void **state) {
    (void)state;
    fds_error err = {0};
    char path[512];
    int64_t sums[N] = {0};
    snprintf(path, sizeof path, "%s", scratch_path("carry.json"));
    fds_payer *straight = new_payer(PARAMS("amount", "0.01"), 0);
    pay_some(straight, 0, K);
    for (size_t k = 0; k < K; k += 12) {
        fds_payer *payer = carrying(path, "0.01", "player");
        pay_some(payer, k, 12);
        assert_int_equal(fds_payer_paid(payer), k + 12);
        for (size_t i = 0; i < N; i++)
            sums[i] += fds_payment_share(fds_payer_total(payer), SIZE_MAX, i);
        expect_ok(fds_payer_finish(payer, &err), &err);
        fds_payer_free(payer);
    }
    json_t *root = load_file(path);
    assert_int_equal(int_of(root, "predictions"), K);
    for (size_t i = 0; i < N; i++) {
        assert_true(sums[i] == fds_payment_share(fds_payer_total(straight), SIZE_MAX, i));
        assert_true(json_integer_value(json_array_get(json_object_get(root, "units"), i)) ==
                    sums[i]);
    }
    json_decref(root);
    fds_payer_free(straight);
}

/* As a server does, which may be killed at any time. */
static void a_carry_is_replaced_as_often_as_asked(void **state) {
    (void)state;
    fds_error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path("carry.json"));
    fds_payer *payer = carrying(path, "0.01", "player");
    expect_ok(fds_payer_save(payer, scratch_path("p.csv"), &err), &err);
    for (size_t k = 0; k < 5; k++) {
        pay_some(payer, k, 1);
        expect_ok(fds_payer_finish(payer, &err), &err);
        json_t *root = load_file(path);
        assert_int_equal(int_of(root, "predictions"), k + 1);
        json_decref(root);
    }
    csv table = csv_read(scratch_path("p.csv")); /* ended by the first call */
    assert_int_equal(table.rows, 1 + N);
    csv_free(&table);
    fds_payer_free(payer);
}

static void expect_carry_refused(fds_payer *payer, fds_status status, const char *part) {
    fds_result *r = some(0, 1);
    fds_error err = {0};
    assert_int_equal(fds_payer_pay(payer, r, NULL, &err), status);
    expect_in(err.text, part);
    fds_result_free(r);
    fds_payer_free(payer);
}

static void a_carry_of_other_payments_is_refused(void **state) {
    (void)state;
    fds_error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path("carry.json"));
    fds_payer *payer = carrying(path, "0.01", "player");
    fds_result *one = some(0, 1);
    assert_int_equal(fds_payer_foresee(payer, one, &err), FDS_ERR_USAGE);
    fds_result_free(one);
    pay_some(payer, 0, 3);
    expect_ok(fds_payer_finish(payer, &err), &err);
    fds_payer *second = NULL; /* while the first one is at it */
    fds_params *params = PARAMS("amount", "0.01", "carry", path);
    assert_int_equal(fds_payer_create(params, 0, &second, &err), FDS_ERR_IO);
    fds_params_free(params);
    fds_payer_free(payer);
    expect_carry_refused(carrying(path, "0.001", "player"), FDS_ERR_USAGE,
                         "decimals is 2 in the carry, 3 now");
    expect_carry_refused(carrying(path, "0.01", "provider"), FDS_ERR_USAGE, "paid_by");
    expect_carry_refused(new_payer(PARAMS("amount", "1", "currency", "USD", "carry", path), 0),
                         FDS_ERR_USAGE, "currency is null in the carry, \"USD\" now");
    expect_carry_refused(new_payer(PARAMS("amount", "1", "policy", "signed", "carry", path), 0),
                         FDS_ERR_USAGE, "policy is \"clip\"");
    fds_result *r = some(0, 1);
    name_player(r, 3, "another", "south", 1, 1);
    payer = carrying(path, "0.01", "player");
    assert_int_equal(fds_payer_pay(payer, r, NULL, &err), FDS_ERR_USAGE);
    expect_in(err.text, "payees[3].player is \"sample 3\" in the carry, \"another\" now");
    fds_payer_free(payer);
    params = PARAMS("amount", "1", "carry", path);
    fds_payment *unused = NULL;
    assert_int_equal(fds_pay(r, params, &unused, &err), FDS_ERR_USAGE);
    fds_params_free(params);
    fds_result_free(r);
}

static void a_damaged_carry_is_refused(void **state) {
    (void)state;
    fds_error err = {0};
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s", scratch_path("carry.json"));
    fds_payer *payer = carrying(path, "0.01", "player");
    pay_some(payer, 0, 3);
    expect_ok(fds_payer_finish(payer, &err), &err);
    fds_payer_free(payer);
    char *text = scratch_read(path, &size);
    scratch_write(path, text, size / 2);
    expect_carry_refused(carrying(path, "0.01", "player"), FDS_ERR_FORMAT, "carry.json: line");
    char *digit = strstr(text, "\"predictions\": 3");
    assert_non_null(digit);
    digit[15] = '4';
    scratch_write(path, text, size);
    expect_carry_refused(carrying(path, "0.01", "player"), FDS_ERR_CORRUPT, "checksum");
    scratch_write(path, "{\"format\": \"fds run\"}", 21);
    expect_carry_refused(carrying(path, "0.01", "player"), FDS_ERR_FORMAT, "not a carry");
    static const char *const owed[] = {"0", "0.8", "x.0000000000000000", "1.8000000000000000",
                                       "-1.800000000000000g"};
    for (size_t i = 0; i < COUNT(owed); i++) { /* sealed, but not what a payer writes */
        digit[15] = '3';
        json_t *root = load_text(text);
        json_array_set_new(json_object_get(root, "owed"), 0, json_string(owed[i]));
        assert_true(fds__json_seal(root));
        char *sealed = fds__json_text(root, 0);
        scratch_write(path, sealed, strlen(sealed));
        fds__free(sealed);
        json_decref(root);
        expect_carry_refused(carrying(path, "0.01", "player"), FDS_ERR_FORMAT,
                             "\"owed\" must have");
    }
    free(text);
}

/* ---- faults ---- */

static fds_status pay_whole(const fds_result *r, const char *path, const char *carry,
                            fds_error *err) {
    fds_params *params = fds_params_create("pay");
    fds_payer *payer = NULL;
    fds_status status = params ? fds_params_set(params, "amount", "0.01", err) : FDS_ERR_NOMEM;
    if (status == FDS_OK)
        status = fds_params_set(params, "carry", carry, err);
    if (status == FDS_OK)
        status = fds_payer_create(params, 2, &payer, err);
    if (status == FDS_OK)
        status = fds_payer_save(payer, path, err);
    if (status == FDS_OK)
        status = fds_payer_pay(payer, r, NULL, err);
    if (status == FDS_OK)
        status = fds_payer_finish(payer, err);
    fds_payer_free(payer);
    fds_params_free(params);
    return status;
}

/* Makes every call of a kind fail in turn. */
static void fail_each(fds__fault_kind kind, const fds_result *r) {
    fds_error err = {0};
    char path[512], carry[512];
    size_t size;
    snprintf(path, sizeof path, "%s", scratch_path("p.csv"));
    snprintf(carry, sizeof carry, "%s", scratch_path("carry.json"));
    expect_ok(pay_whole(r, path, carry, &err), &err);
    char *old = scratch_read(carry, &size);
    fds__fault_arm(kind, 0);
    expect_ok(pay_whole(r, path, carry, &err), &err);
    uint64_t calls = fds__fault_arm(kind, 0);
    assert_true(calls > 10);
    for (uint64_t n = 1; n <= calls; n++) {
        scratch_write(carry, old, size);
        fds__fault_arm(kind, n);
        fds_status status = pay_whole(r, path, carry, &err);
        fds__fault_arm(kind, 0);
        assert_int_not_equal(status, FDS_OK);
        if (kind == FDS__FAULT_IO && n == calls) /* syncs the folder: the new carry stands */
            json_decref(load_file(carry));
        else
            scratch_expect(carry, old);
        assert_int_equal(scratch_entries(), 3); /* payments, carry, its lock */
    }
    free(old);
}

static void failures_leave_carry_and_payments_whole(void **state) {
    (void)state;
    fds_result *r = some(0, 2);
    fail_each(FDS__FAULT_IO, r);
    fail_each(FDS__FAULT_ALLOC, r);
    fds_result_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(parts_pay_the_same_as_the_whole),
        TEST(other_players_are_refused),
        TEST(a_sum_is_divided_evenly_over_the_predictions),
        TEST(mistakes_are_told_before_any_work),
        TEST(currencies_say_how_many_decimals_there_are),
        TEST(groups_are_those_of_the_run_or_the_labels),
        TEST(outputs_say_the_same_in_every_format),
        TEST(a_summary_has_the_sums_only),
        TEST(failures_leave_the_old_file),
        TEST(a_carry_goes_on_where_the_last_one_ended),
        TEST(a_carry_is_replaced_as_often_as_asked),
        TEST(a_carry_of_other_payments_is_refused),
        TEST(a_damaged_carry_is_refused),
        TEST(failures_leave_carry_and_payments_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
