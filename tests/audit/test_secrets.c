/* SPDX-License-Identifier: Apache-2.0
 * The check of a ledger: secrets, what they select, and the rows that they vouch for. */
#include "audit_fixture.h"

#define DAY_A "2096-10-03"
#define DAY_B "2096-10-04"
enum { PREDICTIONS = 200 };

static int64_t clock_ms;
static int64_t fake_now(void) { return clock_ms; }
static const uint8_t secret[32] = {1, 2, 3};

static void note(fds_ledger *l, json_t *what) {
    fds_error err = {0};
    char *text = fds__json_text(what, JSON_COMPACT);
    json_decref(what);
    expect_ok(fds_ledger_note(l, text, NULL, NULL, &err), &err);
    fds__free(text);
}

static void commit_to(fds_ledger *l, const char *day, const uint8_t *of) {
    uint8_t digest[32];
    char hex[65];
    fds__sha256(&(fds__bytes){of, 32}, 1, digest);
    ledger_hex(digest, 32, hex);
    note(l, json_pack("{s:s, s:s, s:s, s:i}", "audit", "commit", "day", day, "hash", hex,
                      "share_ppm", 250000));
}

static void reveal(fds_ledger *l, const char *day, const uint8_t *of, int64_t ppm) {
    fds_error err = {0};
    uint64_t rows;
    uint8_t digest[32];
    char hex[65], hash[65];
    expect_ok(fds_ledger_audited_day(l, day, &rows, digest, &err), &err);
    ledger_hex(of, 32, hex);
    ledger_hex(digest, 32, hash);
    note(l, json_pack("{s:s, s:s, s:s, s:I, s:I, s:s}", "audit", "reveal", "day", day, "secret",
                      hex, "share_ppm", (json_int_t)ppm, "rows", (json_int_t)rows, "sha256", hash));
}

/* By the definition of docs/ledger.md. */
static bool selects(const uint8_t *of, uint64_t entry, double share) {
    uint8_t bytes[40], digest[32];
    double number = 0;
    memcpy(bytes, of, 32);
    for (int i = 0; i < 8; i++)
        bytes[32 + i] = (uint8_t)(entry >> (56 - 8 * i));
    fds__sha256(&(fds__bytes){bytes, 40}, 1, digest);
    for (int i = 0; i < 8; i++)
        number = number * 256 + digest[i];
    return number < share * 0x1p64;
}

/* Predictions of day A; those that the secret selects (or, every: all) have rows. */
static fds_ledger *make_day(bool is_committed, uint64_t but, uint64_t also) {
    fds_error err = {0};
    fds_ledger *l = small_ledger();
    static const float bank[PAYEES] = {0.5F, 0.25F, 0.125F}, errors[PAYEES] = {0.1F, 0.1F, 0.1F};
    clock_ms = 4000060800000 + 1000;
    l->now_ms = fake_now;
    if (is_committed)
        commit_to(l, DAY_A, secret);
    uint64_t first = fds_ledger_size(l);
    for (uint64_t i = 0; i < PREDICTIONS; i++) {
        fds_charge c = charge_of(l, 0, "acme", 100, NULL);
        clock_ms += 1000;
        assert_int_equal(charge(l, &c), FDS_OK);
    }
    uint64_t chosen = 0, left = 0;
    for (uint64_t i = first; i < first + PREDICTIONS; i++) {
        bool is_chosen = selects(secret, i, 0.25);
        bool has_row = is_chosen ? ++chosen != but : ++left == also;
        fds_audited row = {.entry = i, .values = bank, .errors = errors, .score = 1};
        if (has_row)
            expect_ok(fds_ledger_add_audited(l, &row, 1, &err), &err);
    }
    assert_in_range(chosen, 30, 70);
    clock_ms = 4000060800000 + LEDGER_DAY_MS + 1000;
    return l;
}

static void expect_verdict(const fds_ledger *l, const char *verdict, const char *says) {
    fds_error err = {0};
    char *text = NULL;
    json_t *report = NULL;
    fds_params *params = TRUST_PARAMS("alpha", "0.01");
    expect_ok(fds_audit_ledger(l, "ledger,provider", NULL, params, NULL, &text, &err), &err);
    expect_ok(fds__json_parse("report", text, strlen(text), &report, &err), &err);
    const char *answer = json_string_value(json_object_get(check_of(report, "ledger"), "answer"));
    assert_string_equal(verdict_of(report, "ledger"), verdict);
    if (!strstr(answer, says))
        fail_msg("\"%s\" lacks \"%s\"", answer, says);
    assert_null(check_of(report, "self"));
    assert_string_equal(verdict_of(report, "provider"), "ok"); /* also where the ledger alarms */
    json_decref(report);
    fds_text_free(text);
    fds_params_free(params);
}

static void a_right_choice_passes(void **state) {
    (void)state;
    fds_ledger *l = make_day(true, 0, 0);
    expect_verdict(l, "ok", "0 days"); /* not revealed yet */
    commit_to(l, DAY_B, secret);
    reveal(l, DAY_A, secret, 250000);
    expect_verdict(l, "ok", "1 days");
    clock_ms += LEDGER_DAY_MS;
    topup(l, "acme", 1);
    expect_verdict(l, "ok", "1 days");
    clock_ms += 2 * (int64_t)LEDGER_DAY_MS;
    topup(l, "acme", 1);
    expect_verdict(l, "alarm", DAY_B ": the secret is not revealed yet");
    fds_ledger_close(l);
}

static void a_row_that_is_missing_or_too_many_is_found(void **state) {
    (void)state;
    fds_ledger *l = make_day(true, 7, 0);
    reveal(l, DAY_A, secret, 250000);
    expect_verdict(l, "alarm", "which has no row");
    fds_ledger_close(l);
}

static void a_row_that_was_not_selected_is_found(void **state) {
    (void)state;
    fds_ledger *l = make_day(true, 0, 9);
    reveal(l, DAY_A, secret, 250000);
    expect_verdict(l, "alarm", "but the secret does not select it");
    fds_ledger_close(l);
}

static void another_secret_than_the_committed_one_is_found(void **state) {
    (void)state;
    const uint8_t other[32] = {4};
    fds_ledger *l = make_day(true, 0, 0);
    reveal(l, DAY_A, other, 250000);
    expect_verdict(l, "alarm", "not the one that entry");
    fds_ledger_close(l);
}

static void a_late_commitment_is_found(void **state) {
    (void)state;
    fds_ledger *l = make_day(false, 0, 0);
    reveal(l, DAY_A, secret, 250000);
    expect_verdict(l, "alarm", "nobody had committed");
    commit_to(l, DAY_A, secret);
    expect_verdict(l, "alarm", "came before the commitment");
    fds_ledger_close(l);
}

static void a_reveal_of_other_rows_is_found(void **state) {
    (void)state;
    char hex[65], zeros[65];
    fds_ledger *l = make_day(true, 0, 0);
    ledger_hex(secret, 32, hex);
    memset(zeros, '0', 64);
    zeros[64] = 0;
    note(l, json_pack("{s:s, s:s, s:s, s:i, s:i, s:s}", "audit", "reveal", "day", DAY_A, "secret",
                      hex, "share_ppm", 250000, "rows", 3, "sha256", zeros));
    expect_verdict(l, "alarm", "are not those of the reveal");
    fds_ledger_close(l);
}

static void an_early_reveal_is_found(void **state) {
    (void)state;
    fds_ledger *l = make_day(true, 0, 0);
    clock_ms -= 2000;
    reveal(l, DAY_A, secret, 250000);
    expect_verdict(l, "alarm", "was revealed before the day was over");
    fds_ledger_close(l);
}

static void a_malformed_reveal_is_found(void **state) {
    (void)state;
    fds_ledger *l = make_day(true, 0, 0);
    note(l, json_pack("{s:s, s:s}", "audit", "reveal", "day", DAY_A));
    expect_verdict(l, "alarm", "is malformed");
    fds_ledger_close(l);
}

/* Rows could be changed, and revealed again. */
static void a_second_reveal_is_found(void **state) {
    (void)state;
    fds_ledger *l = make_day(true, 0, 0);
    reveal(l, DAY_A, secret, 250000);
    expect_verdict(l, "ok", "1 days");
    reveal(l, DAY_A, secret, 250000);
    expect_verdict(l, "alarm", "was revealed twice");
    fds_ledger_close(l);
}

/* It could be chosen afterwards. */
static void another_share_than_the_committed_one_is_found(void **state) {
    (void)state;
    fds_ledger *l = make_day(true, 0, 0);
    reveal(l, DAY_A, secret, 240000);
    expect_verdict(l, "alarm", "the share is not the one that entry");
    fds_ledger_close(l);
}

static void a_day_without_a_commitment_is_said_and_has_no_rows(void **state) {
    (void)state;
    fds_error err = {0};
    static const float bank[PAYEES] = {0.5F, 0.25F, 0.125F}, errors[PAYEES] = {0.1F, 0.1F, 0.1F};
    fds_ledger *l = make_day(true, 0, 0);
    reveal(l, DAY_A, secret, 250000);
    fds_charge c = charge_of(l, 0, "acme", 100, NULL);
    assert_int_equal(charge(l, &c), FDS_OK);
    expect_verdict(l, "ok", "On 1 days with predictions nobody had committed to audits");
    fds_audited row = {.entry = c.index, .values = bank, .errors = errors, .score = 1};
    expect_ok(fds_ledger_add_audited(l, &row, 1, &err), &err);
    expect_verdict(l, "alarm", "has a row, but nobody had committed to a secret");
    fds_ledger_close(l);
}

static void a_changed_entry_is_an_alarm_and_no_failure(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = make_day(true, 0, 0);
    expect_ok(db_run(l->db, "UPDATE account SET balance = balance + 1 WHERE id = 2", &err), &err);
    expect_verdict(l, "alarm", "the balance of acme");
    fds_ledger_close(l);
}

/* In parts, as a server does it, as at once. */
static void taking_a_ledger_in_parts_gives_the_same(void **state) {
    (void)state;
    fds_error err = {0};
    fds_ledger *l = make_day(true, 0, 0);
    fds_params *params = TRUST_PARAMS("alpha", "0.01");
    char *texts[2] = {NULL};
    for (size_t k = 0; k < 2; k++) {
        fds_auditor *a = NULL;
        size_t calls = 0;
        expect_ok(fds_auditor_create(params, &a, &err), &err);
        for (bool is_over = false; !is_over; calls++)
            expect_ok(fds_auditor_take(a, l, k ? 7 : 100000, &is_over, &err), &err);
        assert_true(k ? calls > 20 : calls == 1);
        expect_ok(fds_auditor_report(a, &texts[k], &err), &err);
        assert_int_equal(a->predictions, PREDICTIONS);
        fds_auditor_free(a);
    }
    assert_string_equal(texts[0], texts[1]);
    fds_text_free(texts[0]);
    fds_text_free(texts[1]);
    fds_params_free(params);
    fds_ledger_close(l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_right_choice_passes),
        TEST(a_row_that_is_missing_or_too_many_is_found),
        TEST(a_row_that_was_not_selected_is_found),
        TEST(another_secret_than_the_committed_one_is_found),
        TEST(a_late_commitment_is_found),
        TEST(a_reveal_of_other_rows_is_found),
        TEST(an_early_reveal_is_found),
        TEST(a_malformed_reveal_is_found),
        TEST(a_second_reveal_is_found),
        TEST(another_share_than_the_committed_one_is_found),
        TEST(a_day_without_a_commitment_is_said_and_has_no_rows),
        TEST(a_changed_entry_is_an_alarm_and_no_failure),
        TEST(taking_a_ledger_in_parts_gives_the_same),
    };
    choose_store();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
