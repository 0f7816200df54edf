/* SPDX-License-Identifier: Apache-2.0
 * Each check alarms for the fault that it is for, names who is concerned, and is quiet without it. */
#include "audit_fixture.h"

enum { CUSTOMERS = 4, LEARNING_STEPS = 64 };

static double scores[500];

static fds_auditor *make_auditor(const fds_params *params, double level, const char *policy) {
    fds_error err = {0};
    fds_auditor *a = NULL;
    fds_rng rng = fds_rng_make(3, 94, 0, 0);
    for (int i = 0; i < 500; i++)
        scores[i] = fds_rng_normal(&rng);
    fds_audit_payees paid = {.names = provider_names,
                             .count = PROVIDERS,
                             .policy = policy,
                             .level = level,
                             .score = scores,
                             .scores = 500};
    expect_ok(fds_auditor_create(params, &a, &err), &err);
    expect_ok(fds_auditor_add_payees(a, &paid, &err), &err);
    return a;
}

/* Takes predictions from first on as paid, and as audited. */
static void feed(fds_auditor *a, uint64_t seed, uint64_t first, uint64_t count, const fault *f) {
    fds_error err = {0};
    static const fault none;
    for (uint64_t i = first; i < first + count; i++) {
        uint64_t customer = i % CUSTOMERS;
        made_up m = make_up(seed, i, f->fed && customer ? &none : f);
        fds_audit_prediction p = {.entry = i,
                                  .customer = 100 + customer,
                                  .label = m.label,
                                  .amount = 1000000 + (int64_t)(i % 7) * 1000,
                                  .values = m.values,
                                  .errors = m.errors,
                                  .score = m.score};
        expect_ok(fds_auditor_add(a, &p, &err), &err);
        p.bank = m.bank;
        p.bank_errors = m.bank_errors;
        expect_ok(fds_auditor_add(a, &p, &err), &err);
    }
}

static char groups_path[600];

static fds_params *params_with_groups(void) {
    snprintf(groups_path, sizeof groups_path, "%s", scratch_path("groups.csv"));
    FILE *file = fopen(groups_path, "w");
    assert_non_null(file);
    fputs("name,group\nnorth,cold\nsouth,warm\nwest,warm\neast,warm\npolar,cold\n", file);
    fclose(file);
    return TRUST_PARAMS("groups", groups_path);
}

/* What fails of the seven, as the first letters of the checks that alarm. */
static json_t *audit_of(const fault *f, uint64_t count, char alarms[AUDIT_KINDS + 1]) {
    fds_params *params = params_with_groups();
    fds_auditor *a = make_auditor(params, 0.03, NULL);
    size_t used = 0;
    feed(a, 1, 0, count, f);
    json_t *report = report_of(a);
    for (size_t i = 0; i < AUDIT_KINDS; i++)
        if (strcmp(verdict_of(report, audit_names[i]), "alarm") == 0)
            alarms[used++] = audit_names[i][0];
    alarms[used] = 0;
    fds_auditor_free(a);
    fds_params_free(params);
    return report;
}

static void an_honest_history_raises_no_alarm(void **state) {
    (void)state;
    char alarms[AUDIT_KINDS + 1];
    json_t *report = audit_of(&(fault){0}, 3000, alarms);
    assert_string_equal(alarms, "");
    assert_string_equal(verdict_of(report, "ledger"), "unknown");
    for (size_t i = 1; i < AUDIT_KINDS; i++)
        assert_string_equal(verdict_of(report, audit_names[i]), "ok");
    assert_string_equal(json_string_value(json_object_get(report, "verdict")), "ok");
    assert_int_equal(json_integer_value(json_object_get(report, "audited")), 3000);
    json_decref(report);
}

/* Of many honest histories few alarm, over their whole length. */
static void honest_histories_alarm_no_more_often_than_alpha(void **state) {
    (void)state;
    size_t alarms[AUDIT_KINDS] = {0};
    fds_params *params = TRUST_PARAMS("alpha", "0.1");
    for (uint64_t s = 0; s < 100; s++) {
        fds_auditor *a = make_auditor(params, 0.03, NULL);
        uint64_t at;
        feed(a, 10 + s, 0, 300, &(fault){0});
        for (size_t i = 0; i < AUDIT_KINDS; i++)
            alarms[i] += fds_auditor_evidence(a, audit_names[i], &at) >= 1;
        fds_auditor_free(a);
    }
    for (size_t i = 0; i < AUDIT_KINDS; i++)
        assert_in_range(alarms[i], 0, 19); /* 10, plus three standard errors */
    fds_params_free(params);
}

static const char *first_name(const json_t *report, const char *check, const char *key) {
    const json_t *list = json_object_get(check_of(report, check), "evidence");
    return json_string_value(json_object_get(json_array_get(list, 0), key));
}

static double number_of(const json_t *report, const char *check, const char *key) {
    return json_number_value(json_object_get(check_of(report, check), key));
}

static void money_that_is_diverted_is_found_and_named(void **state) {
    (void)state;
    char alarms[AUDIT_KINDS + 1];
    json_t *report = audit_of(&(fault){.robbed = 3, .share = 0.1}, 2000, alarms);
    assert_non_null(strchr(alarms, 'p'));
    const char *name = first_name(report, "provider", "name");
    assert_true(strcmp(name, "west") == 0 || strcmp(name, "east") == 0);
    /* the correction gives west what it lacks, and takes it from who got it; it sums to 0 */
    const json_t *postings =
        json_object_get(json_object_get(check_of(report, "provider"), "correction"), "postings");
    int64_t sum = 0, west = 0;
    assert_true(json_array_size(postings) >= 2);
    for (size_t i = 0; i < json_array_size(postings); i++) {
        const json_t *one = json_array_get(postings, i);
        int64_t units = atoll(json_string_value(json_object_get(one, "amount")));
        sum += units;
        if (strcmp(json_string_value(json_object_get(one, "account")), "west") == 0)
            west = units;
    }
    assert_int_equal(sum, 0);
    assert_in_range(west, 30000000, 60000000); /* a tenth of about 0.22 of 2003 million */
    json_decref(report);
}

static void a_group_that_is_underpaid_is_found(void **state) {
    (void)state;
    char alarms[AUDIT_KINDS + 1];
    json_t *report =
        audit_of(&(fault){.robbed = 5, .share = 0.15}, 2000, alarms); /* to north: cold */
    assert_null(strchr(alarms, 'g'));                                 /* within the group */
    json_decref(report);
    report = audit_of(&(fault){.robbed = 4, .share = 0.15}, 2000, alarms); /* from warm to cold */
    assert_non_null(strchr(alarms, 'g'));
    assert_true(json_is_object(json_object_get(check_of(report, "groups"), "correction")));
    json_decref(report);
}

static void an_explainer_that_became_worse_is_found(void **state) {
    (void)state;
    char alarms[AUDIT_KINDS + 1];
    json_t *report = audit_of(&(fault){.noise = 4}, 500, alarms);
    assert_non_null(strchr(alarms, 't'));
    assert_true(number_of(report, "truth", "statistic") > 0.06);
    assert_true(number_of(report, "truth", "alarm_at") < 300);
    json_decref(report);
}

static void error_bars_that_are_too_small_are_found(void **state) {
    (void)state;
    char alarms[AUDIT_KINDS + 1];
    json_t *report = audit_of(&(fault){.errors = 0.5}, 300, alarms);
    assert_string_equal(alarms, "c");
    assert_true(number_of(report, "coverage", "statistic") < 0.8);
    json_decref(report);
}

static void strange_inputs_are_found(void **state) {
    (void)state;
    char alarms[AUDIT_KINDS + 1];
    json_t *report = audit_of(&(fault){.strange = 1}, 300, alarms);
    assert_string_equal(alarms, "d");
    assert_true(number_of(report, "drift", "statistic") < 0.4);
    json_decref(report);
}

static void a_customer_that_feeds_a_provider_is_found_and_named(void **state) {
    (void)state;
    char alarms[AUDIT_KINDS + 1];
    json_t *report = audit_of(&(fault){.fed = 2}, 400, alarms);
    assert_non_null(strchr(alarms, 's'));
    const json_t *pair = json_array_get(json_object_get(check_of(report, "self"), "evidence"), 0);
    assert_int_equal(json_integer_value(json_object_get(pair, "customer")), 100);
    assert_string_equal(json_string_value(json_object_get(pair, "provider")), "south");
    json_decref(report);
}

static void a_fault_that_begins_late_is_found(void **state) {
    (void)state;
    fds_params *params = TRUST_PARAMS("alpha", "0.01");
    fds_auditor *a = make_auditor(params, 0.03, NULL);
    uint64_t at;
    feed(a, 1, 0, 3000, &(fault){0});
    assert_true(fds_auditor_evidence(a, "provider", &at) < 1);
    feed(a, 1, 3000, 2000, &(fault){.robbed = 3, .share = 0.1});
    assert_true(fds_auditor_evidence(a, "provider", &at) >= 1);
    assert_in_range(at, 3000, 5000);
    fds_auditor_free(a);
    fds_params_free(params);
}

/* Takes an audited prediction that paid north c of its amount, where o was owed; the others share the rest. */
static void take_shares(fds_auditor *a, uint64_t entry, int64_t amount, double c, double o) {
    fds_error err = {0};
    float values[PROVIDERS], bank[PROVIDERS];
    for (int k = 0; k < PROVIDERS; k++) {
        values[k] = (float)(k ? (1 - c) / (PROVIDERS - 1) : c);
        bank[k] = (float)(k ? (1 - o) / (PROVIDERS - 1) : o);
    }
    fds_audit_prediction p = {.entry = entry,
                              .label = "1",
                              .amount = amount,
                              .values = values,
                              .bank = bank,
                              .score = (double)NAN};
    expect_ok(fds_auditor_add(a, &p, &err), &err);
}

/* Paid right on average: too much in the few predictions in which it gets most, too little in others. */
static void errors_that_cancel_out_raise_no_alarm(void **state) {
    (void)state;
    fds_params *params = TRUST_PARAMS("alpha", "0.01");
    for (uint64_t s = 0; s < 20; s++) {
        fds_auditor *a = make_auditor(params, (double)NAN, NULL);
        fds_rng rng = fds_rng_make(s, 96, 0, 0);
        uint64_t at;
        for (uint64_t i = 0; i < 2000; i++) {
            bool is_peak = fds_rng_unit(&rng) < 0.1;
            take_shares(a, i, 1000, is_peak ? 0.6 : 0.1, is_peak ? 0.51 : 0.11);
        }
        assert_true(fds_auditor_evidence(a, "provider", &at) < 1);
        fds_auditor_free(a);
    }
    fds_params_free(params);
}

/* One prediction of a thousand times the price hides nothing, and does not change what others lack. */
static void a_dear_prediction_does_not_hide_others(void **state) {
    (void)state;
    fds_params *params = TRUST_PARAMS("alpha", "0.01");
    uint64_t found[2];
    for (int is_dear = 0; is_dear < 2; is_dear++) {
        fds_auditor *a = make_auditor(params, (double)NAN, NULL);
        fds_rng rng = fds_rng_make(1, 97, 0, 0);
        double lacks = 0;
        for (uint64_t i = 0; i < 1000; i++) {
            int64_t amount = is_dear && i == 100 ? 1000000 : 1000;
            double o = 0.15 + 0.1 * fds_rng_unit(&rng);
            double c = i == 100 ? o : o - 0.03 + 0.02 * fds_rng_normal(&rng);
            lacks += (double)amount * (o - c);
            take_shares(a, i, amount, c, o);
        }
        fds_auditor_evidence(a, "provider", &found[is_dear]);
        json_t *report = report_of(a);
        const json_t *north =
            json_array_get(json_object_get(check_of(report, "provider"), "evidence"), 0);
        assert_string_equal(json_string_value(json_object_get(north, "name")), "north");
        double low = json_number_value(json_object_get(north, "lacks_low")),
               high = json_number_value(json_object_get(north, "lacks_high"));
        assert_true(low < lacks && lacks < high && high - low < 3 * lacks);
        json_decref(report);
        fds_auditor_free(a);
    }
    assert_in_range(found[0], LEARNING_STEPS, 300);
    assert_in_range(found[1], LEARNING_STEPS, 300);
    fds_params_free(params);
}

static void what_is_not_known_is_said(void **state) {
    (void)state;
    fds_error err = {0};
    fds_params *params = TRUST_PARAMS("alpha", "0.01");
    fds_auditor *a = make_auditor(params, (double)NAN, NULL);
    json_t *report = report_of(a);
    for (size_t i = 0; i < AUDIT_KINDS; i++)
        assert_string_equal(verdict_of(report, audit_names[i]), "unknown");
    json_decref(report);
    feed(a, 1, 0, 50, &(fault){.noise = 20});
    report = report_of(a);
    assert_string_equal(verdict_of(report, "truth"), "unknown"); /* there is no level */
    assert_true(number_of(report, "truth", "statistic") > 0.1);
    assert_string_equal(verdict_of(report, "groups"), "unknown");
    json_decref(report);
    made_up m = make_up(1, 1, &(fault){0});
    fds_audit_prediction p = {.run = 1, .values = m.values, .amount = 1, .label = "1"};
    assert_int_equal(fds_auditor_add(a, &p, &err), FDS_ERR_USAGE);
    p = (fds_audit_prediction){.values = m.values, .amount = -1, .label = "1"};
    assert_int_equal(fds_auditor_add(a, &p, &err), FDS_ERR_USAGE);
    fds_auditor_free(a);
    fds_params_free(params);
    params = fds_params_create("pay");
    assert_int_equal(fds_auditor_create(params, &a, &err), FDS_ERR_USAGE);
    fds_params_free(params);
}

static void the_policy_signed_and_several_runs_are_audited(void **state) {
    (void)state;
    fds_error err = {0};
    fds_params *params = TRUST_PARAMS("alpha", "0.01");
    fds_auditor *a = make_auditor(params, 0.03, "signed");
    static const char *const others[2] = {"polar", "desert"};
    fds_audit_payees paid = {.names = others, .count = 2, .level = (double)NAN};
    expect_ok(fds_auditor_add_payees(a, &paid, &err), &err);
    assert_int_equal(a->provider_count, PROVIDERS + 1);
    feed(a, 1, 0, 200, &(fault){0});
    const float values[2] = {0.5F, -0.1F}, bank[2] = {0, 0};
    fds_audit_prediction p = {.entry = 300, .run = 1, .label = "x", .amount = 10, .values = values};
    expect_ok(fds_auditor_add(a, &p, &err), &err);
    p.bank = p.bank_errors = bank; /* evenly */
    expect_ok(fds_auditor_add(a, &p, &err), &err);
    json_t *report = report_of(a);
    assert_string_equal(verdict_of(report, "provider"), "ok");
    assert_true(a->providers[PROVIDERS].needed > a->providers[0].needed / PROVIDERS);
    json_decref(report);
    fds_auditor_free(a);
    fds_params_free(params);
}

static void a_file_of_groups_with_a_mistake_is_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = {{"a,b\na,c\n", "line 2: \"a\" has a group already"},
                 {"a,b,c\n", "line 1: 3 fields"},
                 {"a,\n", "line 1: a name is missing"}};
    for (size_t i = 0; i < 3; i++) {
        fds_error err = {0};
        fds_auditor *a = NULL;
        fds_params *params = params_with_groups();
        FILE *file = fopen(groups_path, "w");
        fputs(wrong[i].text, file);
        fclose(file);
        assert_int_equal(fds_auditor_create(params, &a, &err), FDS_ERR_FORMAT);
        assert_non_null(strstr(err.text, wrong[i].says));
        fds_params_free(params);
    }
}

/* The page has every check, and nothing from outside. */
static void the_page_shows_every_check(void **state) {
    (void)state;
    fds_error err = {0};
    char alarms[AUDIT_KINDS + 1], *html = NULL;
    json_t *report = audit_of(&(fault){.robbed = 3, .share = 0.2}, 600, alarms);
    char *text = fds__json_text(report, JSON_COMPACT);
    expect_ok(fds_audit_html(text, &html, &err), &err);
    for (size_t i = 0; i < AUDIT_KINDS; i++) {
        char part[64];
        snprintf(part, sizeof part, "<section id=\"%s\">", audit_names[i]);
        assert_non_null(strstr(html, part));
    }
    assert_non_null(strstr(html, "What would mend it"));
    assert_null(strstr(html, "http://"));
    assert_null(strstr(html, "https://"));
    assert_null(strstr(html, "<script"));
    fds_text_free(html);
    assert_int_equal(fds_audit_html("{}", &html, &err), FDS_ERR_FORMAT);
    fds__free(text);
    json_decref(report);
}

/* Every allocation fails once. */
static void a_lack_of_memory_is_reported(void **state) {
    (void)state;
    fds_error err = {0};
    for (uint64_t nth = 1;; nth++) {
        fds_params *params = TRUST_PARAMS("alpha", "0.01");
        fds_auditor *a = NULL;
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        fds_status status = fds_auditor_create(params, &a, &err);
        const fds_audit_payees paid = {.names = provider_names, .count = PROVIDERS, .level = 0.1};
        if (status == FDS_OK)
            status = fds_auditor_add_payees(a, &paid, &err);
        for (uint64_t i = 0; i < 40 && status == FDS_OK; i++) {
            made_up m = make_up(1, i, &(fault){0});
            fds_audit_prediction p = {
                .entry = i, .customer = i % 2, .label = m.label, .amount = 5, .values = m.values};
            status = fds_auditor_add(a, &p, &err);
        }
        char *text = NULL;
        if (status == FDS_OK)
            status = fds_auditor_report(a, &text, &err);
        uint64_t calls = fds__fault_arm(FDS__FAULT_ALLOC, 0);
        fds_text_free(text);
        fds_auditor_free(a);
        fds_params_free(params);
        if (status == FDS_OK) {
            assert_true(calls < nth);
            return;
        }
        assert_int_equal(status, FDS_ERR_NOMEM);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_honest_history_raises_no_alarm),
        TEST(honest_histories_alarm_no_more_often_than_alpha),
        TEST(money_that_is_diverted_is_found_and_named),
        TEST(a_group_that_is_underpaid_is_found),
        TEST(an_explainer_that_became_worse_is_found),
        TEST(error_bars_that_are_too_small_are_found),
        TEST(strange_inputs_are_found),
        TEST(a_customer_that_feeds_a_provider_is_found_and_named),
        TEST(a_fault_that_begins_late_is_found),
        TEST(errors_that_cancel_out_raise_no_alarm),
        TEST(a_dear_prediction_does_not_hide_others),
        TEST(what_is_not_known_is_said),
        TEST(the_policy_signed_and_several_runs_are_audited),
        TEST(a_file_of_groups_with_a_mistake_is_named),
        TEST(the_page_shows_every_check),
        TEST(a_lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
