/* SPDX-License-Identifier: Apache-2.0
 * Payments of results: shares that add up to the unit, who is paid, amounts as they are written,
 * files that say the same, and old files that stand when writing fails. */
#include "../base/result_fixture.h"

#include "pay/pay.h"

static fds_params *pay_params(const char *amount, const char *policy, const char *by) {
    fds_params *p = fds_params_create("pay");
    fds_error err = {0};
    assert_non_null(p);
    if (amount)
        expect_ok(fds_params_set(p, "amount", amount, &err), &err);
    if (policy)
        expect_ok(fds_params_set(p, "policy", policy, &err), &err);
    if (by)
        expect_ok(fds_params_set(p, "by", by, &err), &err);
    return p;
}

static fds_payment *pay(const fds_result *r, const char *amount, const char *policy,
                        const char *by) {
    fds_params *p = pay_params(amount, policy, by);
    fds_payment *payment = NULL;
    fds_error err = {0};
    expect_ok(fds_pay(r, p, &payment, &err), &err);
    fds_params_free(p); /* the payment does not need them any more */
    return payment;
}

static void refuse(const fds_result *r, const char *amount, const char *by, fds_status status,
                   const char *part) {
    fds_params *p = pay_params(amount, NULL, by);
    fds_payment *payment = NULL;
    fds_error err = {0};
    assert_int_equal(fds_pay(r, p, &payment, &err), status);
    assert_int_equal(err.status, status);
    expect_in(err.text, part);
    assert_null(payment);
    fds_params_free(p);
}

/* Three players of two providers and one test sample, one input of a name. */
static fds_result *sample(void) {
    static const double values[] = {0.5, -0.25, 0.25, 0, 1, 2};
    fds_result *r = new_result(3, 2, 2);
    name_player(r, 0, "sample 3", "north, \"A\"", 0, 1);
    name_player(r, 1, "sample 8", "south", 1, 1);
    name_player(r, 2, "sample 9", "north, \"A\"", 1, 1);
    name_class(r, 0, "cat");
    name_class(r, 1, "dog");
    name_input(r, 0, "test sample 7");
    name_input(r, 1, "a,b.png");
    r->samples[0] = 7;
    r->labels[0] = 1;
    r->labels[1] = 0;
    memcpy(r->values, values, sizeof values);
    fds__json_put(r->about, "run", json_string("folder"));
    return r;
}

static void expect_shares(const fds_payment *p, size_t k, const int64_t *shares) {
    for (size_t i = 0; i < fds_payment_payees(p); i++)
        if (fds_payment_share(p, k, i) != shares[i])
            fail_msg("payee %zu has %lld units, not %lld", i, (long long)fds_payment_share(p, k, i),
                     (long long)shares[i]);
}

/* ---- sums ---- */

static void shares_add_up_for_each_prediction_and_together(void **state) {
    (void)state;
    enum { N = 60, K = 25 };
    fds_result *r = new_result(N, K, 1);
    fds_rng rng = fds_rng_make(7, 0, 0, 0);
    char name[16];
    for (size_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "p%zu", (size_t)fds_rng_below(&rng, 9));
        name_player(r, i, "player", name, 0, 1);
    }
    for (size_t i = 0; i < N * K; i++)
        r->values[i] = fds_rng_normal(&rng) + 0.3;
    static const char *const amounts[] = {
        "0", "0.01", "0.07", "100", "1.000000001", "90071992547409.91", "9007199.254740991"};
    static const char *const policies[] = {"clip", "signed"}, *const by[] = {"player", "provider"};
    for (size_t a = 0; a < COUNT(amounts); a++)
        for (size_t way = 0; way < 4; way++) {
            fds_payment *p = pay(r, amounts[a], policies[way % 2], by[way / 2]);
            size_t payees = fds_payment_payees(p);
            int64_t all = 0;
            assert_int_equal(payees, way / 2 ? 9 : N);
            for (size_t k = 0; k < K; k++) {
                int64_t sum = 0;
                for (size_t i = 0; i < payees; i++)
                    sum += fds_payment_share(p, k, i);
                assert_true(sum == fds_payment_amount(p, k));
            }
            for (size_t i = 0; i < payees; i++) {
                int64_t of_payee = 0;
                double value = 0;
                for (size_t k = 0; k < K; k++) {
                    of_payee += fds_payment_share(p, k, i);
                    value += fds_payment_value(p, k, i);
                }
                assert_true(of_payee == fds_payment_share(p, SIZE_MAX, i));
                assert_true(value == fds_payment_value(p, SIZE_MAX, i));
                all += of_payee;
            }
            assert_true(all == fds_payment_amount(p, SIZE_MAX));
            fds_payment_free(p);
        }
    fds_result_free(r);
    fds_payment_free(NULL);
}

/* ---- policies ---- */

static void policies_clip_or_let_negative_values_owe(void **state) {
    (void)state;
    fds_result *r = sample();
    fds_payment *p = pay(r, "1.00", NULL, NULL);
    assert_string_equal(fds_payment_rule(p, 0), "clip");
    expect_shares(p, 0, (int64_t[]){67, 0, 33});
    expect_shares(p, 1, (int64_t[]){0, 33, 67});
    expect_shares(p, SIZE_MAX, (int64_t[]){67, 33, 100});
    fds_payment_free(p);
    p = pay(r, "1.00", "signed", NULL);
    assert_string_equal(fds_payment_rule(p, 0), "signed");
    expect_shares(p, 0, (int64_t[]){100, -50, 50});
    assert_string_equal(fds_payment_rule_text(p, SIZE_MAX),
                        fds__pay_rule_text(FDS__PAY_RULE_SIGNED));
    fds_payment_free(p);
    r->values[0] = 0.001; /* the sum is nearly 0; then nothing is above 0 */
    memset(r->values + 3, 0, 3 * sizeof *r->values);
    p = pay(r, "1.00", "signed", NULL);
    assert_string_equal(fds_payment_rule(p, 0), "clip-for-signed");
    expect_shares(p, 0, (int64_t[]){1, 0, 99}); /* 0.4, 0, 99.6: payee 0 ends with 33.7 */
    assert_string_equal(fds_payment_rule(p, 1), "evenly");
    assert_string_equal(fds_payment_rule_text(p, 1), fds__pay_rule_text(FDS__PAY_RULE_EVENLY));
    expect_shares(p, 1, (int64_t[]){33, 33, 34});
    expect_shares(p, SIZE_MAX, (int64_t[]){34, 33, 133});
    fds_payment_free(p);
    fds_result_free(r);
}

/* ---- who is paid ---- */

static void providers_are_paid_for_the_sum_of_their_players(void **state) {
    (void)state;
    fds_result *r = sample();
    fds_payment *p = pay(r, "10", NULL, "provider");
    assert_int_equal(fds_payment_payees(p), 2);
    assert_string_equal(fds_payment_payee(p, 0), "north, \"A\"");
    assert_string_equal(fds_payment_payee(p, 1), "south");
    assert_true(fds_payment_value(p, 0, 0) == 0.75 && fds_payment_value(p, 0, 1) == -0.25);
    expect_shares(p, 0, (int64_t[]){1000, 0});
    expect_shares(p, 1, (int64_t[]){667, 333});
    assert_true(fds_payment_value(p, SIZE_MAX, 0) == 2.75);
    fds_payment_free(p);
    fds_result_free(r);
}

/* A provider is who has exactly that name: no folding of case, blanks or accents. */
static void providers_are_told_apart_byte_by_byte(void **state) {
    (void)state;
    char long_a[301], long_b[301];
    memset(long_a, 'x', 300);
    memset(long_b, 'x', 300);
    long_a[299] = 'a';
    long_b[299] = 'b';
    long_a[300] = long_b[300] = 0;
    const char *const names[] = {"M\xc3\xbcller",
                                 "M\xc3\xb6ller",
                                 "Mu\xcc\x88ller",
                                 "M?ller",
                                 "M\xfcller",
                                 "M\xf6ller",
                                 "A",
                                 "A ",
                                 " A",
                                 "a",
                                 "\xc3\xa4",
                                 "\xc3\x84",
                                 "",
                                 "x\ty",
                                 "\xff",
                                 "\xfe",
                                 long_a,
                                 long_b};
    fds_result *r = new_result(2 * COUNT(names), 1, 1);
    for (size_t i = 0; i < 2 * COUNT(names); i++) {
        name_player(r, i, "same name", names[i % COUNT(names)], 0, 1);
        r->values[i] = 1 + (double)(i % COUNT(names));
    }
    name_class(r, 0, "c");
    name_input(r, 0, "i");
    fds_payment *p = pay(r, "3.42", NULL, "provider"); /* 2 units for each 1 of value */
    assert_int_equal(fds_payment_payees(p), COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_string_equal(fds_payment_payee(p, i), names[i]);
        assert_int_equal(fds_payment_share(p, 0, i), 2 * (i + 1));
    }
    fds_error err = {0};
    const char *path = scratch_path("p.csv");
    expect_ok(fds_payment_save(p, path, &err), &err);
    csv table = csv_read(path);
    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(csv_at(&table, 1 + i, "provider"), names[COUNT(names) - 1 - i]);
    csv_free(&table);
    fds_payment_free(p);
    p = pay(r, "1", NULL, NULL); /* players of one name stay apart */
    assert_int_equal(fds_payment_payees(p), 2 * COUNT(names));
    fds_payment_free(p);
    fds_result_free(r);
}

static void players_without_providers_cannot_be_paid_by_provider(void **state) {
    (void)state;
    fds_result *r = sample();
    name_player(r, 2, "sample 9", NULL, 1, 1);
    refuse(r, "1", "provider", FDS_ERR_USAGE, "`by` provider");
    refuse(r, "1", "provider", FDS_ERR_USAGE, "the data names no providers");
    fds_result_free(r);
}

/* ---- amounts ---- */

static void amounts_are_read_to_the_unit(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t units;
        int decimals;
    } cases[] = {
        {"0", 0, 2},
        {"0.0", 0, 2},
        {"0.01", 1, 2},
        {"100", 10000, 2},
        {"100.5", 10050, 2},
        {"0000000000000000000000000000007", 700, 2},
        {"1.234", 1234, 3},
        {"0.000000001", 1, 9},
        {"1.000000000", 1000000000, 9},
        {"90071992547409.91", 9007199254740991, 2},
        {"9007199.254740991", 9007199254740991, 9},
    };
    fds_result *r = sample();
    for (size_t i = 0; i < COUNT(cases); i++) {
        fds_payment *p = pay(r, cases[i].text, NULL, NULL);
        assert_true(fds_payment_amount(p, 0) == cases[i].units);
        assert_int_equal(fds_payment_decimals(p), cases[i].decimals);
        fds_payment_free(p);
    }
    fds_result_free(r);
}

static void other_amounts_are_refused_before_any_work(void **state) {
    (void)state;
    static const char *const malformed[] = {
        "-1",    "+1",   "1.",           ".5",  ".",   "1,5", "1e3", "0x10",         "1 ",    " 1",
        "1.2.3", "1.-2", "1.0000000000", "one", "nan", "inf", "1\n", "\xef\xbc\x91", "1_000", "$5"};
    static const char *const large[] = {"90071992547409.92", "9007199.254740992",
                                        "100000000000000000000000000000", "9223372036854775807"};
    fds_result *r = sample();
    for (size_t i = 0; i < COUNT(malformed); i++)
        refuse(r, malformed[i], NULL, FDS_ERR_USAGE,
               "`amount` must be money such as 100 or 100.00, with at most 9 decimals (got ");
    refuse(r, large[0], NULL, FDS_ERR_USAGE, "at most 90071992547409.91 (got 90071992547409.92)");
    refuse(r, large[1], NULL, FDS_ERR_USAGE, "at most 9007199.254740991 (got");
    for (size_t i = 0; i < COUNT(large); i++) {
        fds_params *p = pay_params(large[i], NULL, NULL);
        assert_int_equal(fds_pay_check(p, NULL), FDS_ERR_USAGE);
        fds_params_free(p);
    }
    refuse(r, NULL, NULL, FDS_ERR_USAGE, "`amount` is missing");
    fds_error err = {0};
    assert_int_equal(fds_pay_check(NULL, &err), FDS_ERR_USAGE);
    fds_params *fine = pay_params("1", NULL, NULL);
    expect_ok(fds_pay_check(fine, &err), &err);
    fds_params_free(fine);
    fds_result_free(r);
}

/* What all predictions cost together must be a number of units too. */
static void sums_too_large_for_a_number_are_refused(void **state) {
    (void)state;
    fds_result *r = new_result(2, 1025, 1); /* each of the two would have a number of units */
    refuse(r, "90071992547409.91", NULL, FDS_ERR_LIMIT,
           "`amount` 90071992547409.91 for 1025 inputs: the sum is too large");
    fds_result_free(r);
    r = new_result(2, 1000, 1); /* the sum fits, but not what the one earns and the other owes */
    for (size_t k = 0; k < 1000; k++) {
        r->values[2 * k] = 21;
        r->values[2 * k + 1] = -19;
    }
    fds_params *p = pay_params("90071992547409.91", "signed", NULL);
    fds_payment *payment = NULL;
    fds_error err = {0};
    assert_int_equal(fds_pay(r, p, &payment, &err), FDS_ERR_LIMIT);
    assert_null(payment);
    fds_params_free(p);
    fds_result_free(r);
}

static void values_that_are_no_numbers_are_refused(void **state) {
    (void)state;
    fds_result *r = sample(), *none = new_result(0, 1, 1);
    r->values[4] = NAN;
    refuse(r, "1", NULL, FDS_ERR_USAGE, "player 1");
    r->values[4] = INFINITY;
    refuse(r, "1", "provider", FDS_ERR_USAGE, "is not finite");
    refuse(none, "1", NULL, FDS_ERR_USAGE, "no players");
    fds_result_free(r);
    fds_result_free(none);
}

static void money_is_written_with_its_decimals(void **state) {
    (void)state;
    static const struct {
        int64_t units;
        int decimals;
        const char *text;
    } cases[] = {
        {0, 2, "0.00"},
        {5, 2, "0.05"},
        {-5, 2, "-0.05"},
        {-105, 2, "-1.05"},
        {100, 2, "1.00"},
        {1, 9, "0.000000001"},
        {INT64_MAX, 2, "92233720368547758.07"},
        {INT64_MIN, 2, "-92233720368547758.08"},
        {INT64_MIN, 9, "-9223372036.854775808"},
    };
    char text[32];
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(fds_money_text(cases[i].units, cases[i].decimals, text), cases[i].text);
}

/* ---- ranks and indices ---- */

static void payees_are_ranked_by_value_and_together_by_share(void **state) {
    (void)state;
    fds_result *r = sample();
    fds_payment *p = pay(r, "1.00", NULL, NULL);
    fds_error err = {0};
    size_t order[3];
    expect_ok(fds_payment_rank(p, 0, order, &err), &err);
    assert_memory_equal(order, ((size_t[]){0, 2, 1}), sizeof order);
    expect_ok(fds_payment_rank(p, 1, order, &err), &err);
    assert_memory_equal(order, ((size_t[]){2, 1, 0}), sizeof order);
    expect_ok(fds_payment_rank(p, SIZE_MAX, order, &err), &err);
    assert_memory_equal(order, ((size_t[]){2, 0, 1}), sizeof order); /* 100, 67, 33 */
    assert_int_equal(fds_payment_rank(p, 2, order, &err), FDS_ERR_USAGE);
    expect_in(err.text, "prediction 2: there are 2");
    fds_payment_free(p);
    fds_result_free(r);
}

static void getters_answer_for_any_index(void **state) {
    (void)state;
    const size_t far[] = {3, 1000000, SIZE_MAX - 1, SIZE_MAX};
    fds_result *r = sample();
    fds_payment *p = pay(r, "1.00", NULL, NULL);
    for (size_t i = 0; i < COUNT(far); i++) {
        assert_string_equal(fds_payment_payee(p, far[i]), "?");
        assert_int_equal(fds_payment_share(p, 0, far[i]), 0);
        assert_true(isnan(fds_payment_value(p, 0, far[i])));
        assert_string_equal(fds_payment_rule(p, far[i]), "?");
        if (far[i] == SIZE_MAX)
            continue;
        assert_int_equal(fds_payment_share(p, far[i], 0), 0);
        assert_true(isnan(fds_payment_value(p, far[i], 0)));
    }
    fds_payment_free(p);
    fds_result_free(r);
}

/* ---- files ---- */

#define HEAD                                                                                      \
    "input,label,rule,rank,player,player_label,provider,group,samples,value,units,amount,amount_" \
    "error,"                                                                                      \
    "currency\n"

static void csv_has_every_payee_of_every_prediction(void **state) {
    (void)state;
    fds_result *r = sample();
    fds_payment *p = pay(r, "1.00", "signed", NULL);
    fds_error err = {0};
    expect_ok(fds_payment_save(p, scratch_path("p.csv"), &err), &err);
    scratch_expect(
        scratch_path("p.csv"),
        HEAD "test sample 7,dog,signed,1,sample 3,cat,\"north, \"\"A\"\"\",,1,0.5,100,1.00,0,\n"
             "test sample 7,dog,signed,2,sample 9,dog,\"north, \"\"A\"\"\",,1,0.25,50,0.50,0,\n"
             "test sample 7,dog,signed,3,sample 8,dog,south,,1,-0.25,-50,-0.50,0,\n"
             "\"a,b.png\",cat,signed,1,sample 9,dog,\"north, \"\"A\"\"\",,1,2,67,0.67,0,\n"
             "\"a,b.png\",cat,signed,2,sample 8,dog,south,,1,1,33,0.33,0,\n"
             "\"a,b.png\",cat,signed,3,sample 3,cat,\"north, \"\"A\"\"\",,1,0,0,0.00,0,\n");
    fds_payment_free(p);
    p = pay(r, "1.000", NULL, "provider");
    expect_ok(fds_payment_save(p, scratch_path("p.CSV"), &err), &err);
    scratch_expect(scratch_path("p.CSV"),
                   HEAD "test sample 7,dog,clip,1,,,\"north, \"\"A\"\"\",,,0.75,1000,1.000,0,\n"
                        "test sample 7,dog,clip,2,,,south,,,-0.25,0,0.000,0,\n"
                        "\"a,b.png\",cat,clip,1,,,\"north, \"\"A\"\"\",,,2,667,0.667,0,\n"
                        "\"a,b.png\",cat,clip,2,,,south,,,1,333,0.333,0,\n");
    fds_payment_free(p);
    fds_result_free(r);
}

/* As of fds_shapley: its predictions are test samples without a name of their own. */
static void csv_names_test_samples_by_their_number(void **state) {
    (void)state;
    fds_result *r = new_result(1, 2, 1);
    name_player(r, 0, "a", NULL, 0, 4);
    name_class(r, 0, "c");
    r->samples[0] = 3;
    r->samples[1] = 12;
    r->labels[0] = r->labels[1] = 0;
    fds_payment *p = pay(r, "1", NULL, NULL);
    fds_error err = {0};
    expect_ok(fds_payment_save(p, scratch_path("p.csv"), &err), &err);
    scratch_expect(scratch_path("p.csv"), HEAD "test sample 3,c,evenly,1,a,c,,,4,0,100,1.00,0,\n"
                                               "test sample 12,c,evenly,1,a,c,,,4,0,100,1.00,0,\n");
    fds_payment_free(p);
    fds_result_free(r);
}

static void expect_json_shares(const json_t *list, const fds_payment *p, size_t k,
                               bool by_provider) {
    size_t payees = fds_payment_payees(p), *order = need(payees, sizeof *order);
    fds_error err = {0};
    char money[32];
    expect_ok(fds_payment_rank(p, k, order, &err), &err);
    assert_int_equal(json_array_size(list), payees);
    for (size_t rank = 0; rank < payees; rank++) {
        const json_t *share = json_array_get(list, rank);
        size_t who = order[rank];
        assert_string_equal(text_of(share, by_provider ? "provider" : "player"),
                            fds_payment_payee(p, who));
        assert_true(json_is_null(json_object_get(share, "player")) == by_provider);
        assert_true(json_is_null(json_object_get(share, "label")) == by_provider);
        assert_true(int_of(share, "units") == fds_payment_share(p, k, who));
        assert_true(real_of(share, "value") == fds_payment_value(p, k, who));
        assert_string_equal(
            text_of(share, "amount"),
            fds_money_text(fds_payment_share(p, k, who), fds_payment_decimals(p), money));
    }
    free(order);
}

static void json_says_the_same(void **state) {
    (void)state;
    fds_result *r = sample();
    r->values[0] = 1.0 / 3;
    for (int way = 0; way < 4; way++) {
        bool by_provider = way / 2;
        fds_payment *p =
            pay(r, "2.500", way % 2 ? "signed" : "clip", by_provider ? "provider" : "player");
        fds_error err = {0};
        const char *path = scratch_path("p.json");
        expect_ok(fds_payment_save(p, path, &err), &err);
        json_t *root = load_file(path);
        assert_string_equal(text_of(root, "run"), "folder"); /* how the result was computed */
        assert_int_equal(int_of(root, "units"), 2500);
        assert_int_equal(int_of(root, "total_units"), 5000);
        assert_string_equal(text_of(root, "amount"), "2.500");
        assert_int_equal(int_of(root, "decimals"), 3);
        assert_string_equal(text_of(root, "policy"), way % 2 ? "signed" : "clip");
        assert_string_equal(text_of(root, "paid_by"), by_provider ? "provider" : "player");
        const json_t *inputs = json_object_get(root, "inputs");
        assert_int_equal(json_array_size(inputs), 2);
        for (size_t k = 0; k < 2; k++) {
            const json_t *input = json_array_get(inputs, k);
            assert_string_equal(text_of(input, "input"), fds_result_input(r, k));
            assert_string_equal(text_of(input, "label"), fds_result_label(r, k));
            assert_string_equal(text_of(input, "rule"), fds_payment_rule(p, k));
            expect_json_shares(json_object_get(input, "shares"), p, k, by_provider);
        }
        expect_json_shares(json_object_get(root, "together"), p, SIZE_MAX, by_provider);
        char *text = NULL;
        expect_ok(fds_payment_json(p, &text, &err), &err);
        scratch_expect(path, text);
        fds_text_free(text);
        json_decref(root);
        fds_payment_free(p);
    }
    assert_null(json_object_get(r->about, "units")); /* the result's own description stands */
    fds_result_free(r);
}

/* One value without an error leaves the others' in doubt too: they share one sum. */
static void errors_that_are_not_known_are_told(void **state) {
    (void)state;
    fds_result *r = sample();
    fds_error err = {0};
    r->errors[1] = NAN;
    fds_payment *p = pay(r, "1.00", NULL, NULL);
    assert_true(isnan(fds_payment_misallocated(p, 0)) && isnan(fds_payment_error(p, 0, 2)));
    assert_true(fds_payment_misallocated(p, 1) == 0 && fds_payment_error(p, 1, 2) == 0);
    assert_true(isnan(fds_payment_misallocated(p, SIZE_MAX)));
    expect_ok(fds_payment_save(p, scratch_path("p.csv"), &err), &err);
    expect_ok(fds_payment_save(p, scratch_path("p.json"), &err), &err);
    csv table = csv_read(scratch_path("p.csv"));
    assert_string_equal(csv_at(&table, 1, "amount_error"), "nan");
    assert_string_equal(csv_at(&table, 4, "amount_error"), "0");
    csv_free(&table);
    json_t *root = load_file(scratch_path("p.json"));
    const json_t *first = json_array_get(json_object_get(root, "inputs"), 0);
    assert_true(json_is_null(json_object_get(root, "misallocated")));
    assert_true(json_is_null(json_object_get(first, "misallocated")));
    json_decref(root);
    fds_payment_free(p);
    fds_result_free(r);
}

static void files_have_a_point_in_every_locale(void **state) {
    (void)state;
    if (!comma_begin())
        return;
    fds_result *r = sample();
    fds_payment *p = pay(r, "1.50", NULL, NULL);
    fds_error err = {0};
    expect_ok(fds_payment_save(p, scratch_path("p.csv"), &err), &err);
    expect_ok(fds_payment_save(p, scratch_path("p.json"), &err), &err);
    comma_end();
    csv table = csv_read(scratch_path("p.csv"));
    assert_int_equal(table.columns, 14);
    assert_string_equal(csv_at(&table, 1, "value"), "0.5");
    assert_string_equal(csv_at(&table, 1, "amount"), "1.00");
    csv_free(&table);
    json_decref(load_file(scratch_path("p.json")));
    fds_payment_free(p);
    fds_result_free(r);
}

static void other_endings_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"p", "p.txt", "p.npy", "a.csv/p", "csv", ""};
    fds_result *r = sample();
    fds_payment *p = pay(r, "1", NULL, NULL);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        fds_error err = {0};
        assert_int_equal(fds_payment_save(p, wrong[i], &err), FDS_ERR_USAGE);
        expect_in(err.text, ".csv, .json or .jsonl");
    }
    fds_payment_free(p);
    fds_result_free(r);
}

/* ---- failures ---- */

typedef struct {
    fds_payment *p;
    char path[512];
} written;

static fds_status write_over(void *with, fds_error *err) {
    written *w = with;
    scratch_write(w->path, "old", 3);
    return fds_payment_save(w->p, w->path, err);
}

static void check_memory(void *with, bool is_last) {
    (void)is_last;
    scratch_expect(((written *)with)->path, "old");
    assert_int_equal(scratch_entries(), 1);
}

/* The last file operation is the folder's fsync: by then the new file stands, complete. */
static void check_file(void *with, bool is_last) {
    size_t size;
    if (!is_last)
        scratch_expect(((written *)with)->path, "old");
    char *data = scratch_read(((written *)with)->path, &size);
    assert_true((size == 3) == !is_last);
    free(data);
    assert_int_equal(scratch_entries(), 1);
}

static void a_failure_leaves_the_old_file(void **state) {
    (void)state;
    static const char *const names[] = {"p.csv", "p.json"};
    fds_result *r = sample();
    for (size_t i = 0; i < COUNT(names); i++) {
        written w = {.p = pay(r, "1.00", NULL, i ? "provider" : NULL)};
        snprintf(w.path, sizeof w.path, "%s", scratch_path(names[i]));
        assert_true(each_fault(FDS__FAULT_ALLOC, write_over, check_memory, &w) > 3);
        assert_true(each_fault(FDS__FAULT_IO, write_over, check_file, &w) > 3);
        unlink(w.path);
        fds_payment_free(w.p);
    }
    fds_result_free(r);
}

typedef struct {
    fds_result *r;
    fds_params *params;
} question;

static fds_status pay_again(void *with, fds_error *err) {
    question *q = with;
    fds_payment *p = NULL;
    fds_status status = fds_pay(q->r, q->params, &p, err);
    assert_true((status == FDS_OK) == (p != NULL));
    fds_payment_free(p);
    return status;
}

static fds_status rank_again(void *with, fds_error *err) {
    size_t order[3];
    return fds_payment_rank(with, 0, order, err);
}

static void failing_allocations_are_told(void **state) {
    (void)state;
    question q = {sample(), pay_params("1", NULL, "provider")};
    fds_payment *p = pay(q.r, "1", NULL, NULL);
    assert_true(each_fault(FDS__FAULT_ALLOC, pay_again, NULL, &q) > 8);
    assert_int_equal(each_fault(FDS__FAULT_ALLOC, rank_again, NULL, p), 2);
    fds_payment_free(p);
    fds_params_free(q.params);
    fds_result_free(q.r);
}

int main(void) {
    json_set_alloc_funcs(fds__alloc, fds__free);
    const struct CMUnitTest tests[] = {
        TEST(shares_add_up_for_each_prediction_and_together),
        TEST(policies_clip_or_let_negative_values_owe),
        TEST(providers_are_paid_for_the_sum_of_their_players),
        TEST(providers_are_told_apart_byte_by_byte),
        TEST(players_without_providers_cannot_be_paid_by_provider),
        TEST(amounts_are_read_to_the_unit),
        TEST(other_amounts_are_refused_before_any_work),
        TEST(sums_too_large_for_a_number_are_refused),
        TEST(values_that_are_no_numbers_are_refused),
        TEST(money_is_written_with_its_decimals),
        TEST(payees_are_ranked_by_value_and_together_by_share),
        TEST(getters_answer_for_any_index),
        TEST(csv_has_every_payee_of_every_prediction),
        TEST(csv_names_test_samples_by_their_number),
        TEST(json_says_the_same),
        TEST(errors_that_are_not_known_are_told),
        TEST(files_have_a_point_in_every_locale),
        TEST(other_endings_are_refused),
        TEST(a_failure_leaves_the_old_file),
        TEST(failing_allocations_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
