/* SPDX-License-Identifier: Apache-2.0
 *
 * Audits of data: values, errors, votes and providers against a brute force over all coalitions,
 * written from the definition; files; failures that leave nothing half-written. */
#include "../base/faults.h"
#include "eval/audit.h"

#include <math.h>

enum { N = 12, F = 2, K = 2, FOLDS = 3, OWNERS = 3, CLASSES = 2 };

/* Two clouds, with two wrong labels and, of samples 0 and 11, equal values. */
static void fill_cloud(float values[N][F], uint16_t labels[N], uint32_t owners[N]) {
    for (uint32_t i = 0; i < N; i++) {
        labels[i] = (uint16_t)(i % 2);
        values[i][0] = (float)(4 * labels[i]) + 0.37f * (float)((i * 7) % 5) - 0.011f * (float)i;
        values[i][1] = 10.0f * (float)labels[i] - 1.3f * (float)((i * 5) % 7);
        owners[i] = i % OWNERS;
    }
    labels[4] = 1;
    labels[7] = 0;
    memcpy(values[11], values[0], sizeof values[0]);
}

static fds_dataset *cloud(void) {
    float values[N][F];
    uint16_t labels[N];
    uint32_t owners[N];
    static const char *const classes[] = {"no", "yes"}, *const names[] = {"North", "=South",
                                                                          "West"};
    fds_dataset *ds;
    fds_error err = {0};
    fill_cloud(values, labels, owners);
    const fds_arrays arrays = {.count = N,
                               .shape = {F, 1, 1},
                               .floats = &values[0][0],
                               .labels = labels,
                               .classes = CLASSES,
                               .class_names = classes,
                               .providers = owners,
                               .provider_count = OWNERS,
                               .provider_names = names};
    expect_ok(fds_dataset_create(&arrays, &ds, &err), &err);
    return ds;
}

static fds_params audit_params(void) {
    fds_params p = fds__params_default(FDS__JOB_AUDIT);
    p.utility = "knn:2";
    p.folds = FOLDS;
    p.given[FDS__PLACE_folds] = true;
    p.threads = 1;
    return p;
}

static fds_audit *make_audit(const fds_dataset *ds, const fds_params *params) {
    fds_audit *a = NULL;
    fds_error err = {0};
    expect_ok(fds_audit_create(ds, params, NULL, &a, &err), &err);
    return a;
}

/* ---- by brute force ---- */

/* Squared distances from a test sample to all others, standardised by the players. */
static void distances(const fds_dataset *ds, const bool *is_player, size_t test, double out[N]) {
    double mean[F] = {0}, square[F] = {0}, players = 0;
    for (size_t i = 0; i < N; i++)
        players += is_player[i];
    for (size_t i = 0; i < N; i++)
        for (size_t f = 0; f < F && is_player[i]; f++)
            mean[f] += (double)ds->floats[i * F + f] / players;
    for (size_t i = 0; i < N; i++)
        for (size_t f = 0; f < F && is_player[i]; f++)
            square[f] += pow((double)ds->floats[i * F + f] - mean[f], 2) / players;
    for (size_t i = 0; i < N; i++) {
        out[i] = 0;
        for (size_t f = 0; f < F; f++)
            out[i] += pow((double)ds->floats[i * F + f] - (double)ds->floats[test * F + f], 2) /
                      square[f];
    }
}

/* The share of a label among the K members of a set nearest to a test sample; of equal distances the
 * lower number is nearer. */
static double utility(const fds_dataset *ds, const double *distance, uint32_t set, uint32_t label) {
    double votes = 0;
    for (int k = 0; k < K && set; k++) {
        int best = -1;
        for (int i = 0; i < N; i++)
            if (set >> i & 1 && (best < 0 || distance[i] < distance[best]))
                best = i;
        votes += ds->labels[best] == label;
        set &= ~(1u << best);
    }
    return votes / K;
}

/* Shapley's formula over all subsets of the players without i. */
static double shapley(const fds_dataset *ds, const double *distance, uint32_t players, int i,
                      uint32_t label) {
    static const double factorial[] = {1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880};
    int n = __builtin_popcount(players);
    double phi = 0;
    uint32_t others = players & ~(1u << i), set = others;
    for (;; set = (set - 1) & others) {
        int size = __builtin_popcount(set);
        phi += factorial[size] * factorial[n - size - 1] / factorial[n] *
               (utility(ds, distance, set | 1u << i, label) - utility(ds, distance, set, label));
        if (!set)
            return phi;
    }
}

typedef struct {
    double phi[N][N]; /* (test, player), NaN within a fold */
    double own[N];    /* share of its own label among the nearest */
} brute;

static void compute(const fds_dataset *ds, const uint32_t *fold, brute *b) {
    for (size_t t = 0; t < N; t++) {
        bool is_player[N];
        double distance[N];
        uint32_t players = 0;
        for (size_t i = 0; i < N; i++) {
            is_player[i] = fold[i] != fold[t];
            players |= (uint32_t)is_player[i] << i;
        }
        distances(ds, is_player, t, distance);
        b->own[t] = utility(ds, distance, players, ds->labels[t]);
        for (int i = 0; i < N; i++)
            b->phi[t][i] = is_player[i] ? shapley(ds, distance, players, i, ds->labels[t]) : NAN;
    }
}

static void values_errors_and_votes_are_those_of_the_definition(void **state) {
    (void)state;
    fds_dataset *ds = cloud();
    const fds_params params = audit_params();
    fds_audit *a = make_audit(ds, &params);
    brute b;
    compute(ds, a->fold, &b);
    for (size_t i = 0; i < N; i++) {
        double sum = 0, squares = 0, tests = 0;
        for (size_t t = 0; t < N; t++)
            if (!isnan(b.phi[t][i])) {
                sum += b.phi[t][i];
                tests++;
            }
        for (size_t t = 0; t < N; t++)
            squares += isnan(b.phi[t][i]) ? 0 : pow(b.phi[t][i] - sum / tests, 2);
        assert_int_equal(a->tests[i], (size_t)tests);
        assert_true(fabs(a->values[i] - sum / tests) < 1e-12);
        assert_true(fabs(a->errors[i] - sqrt(squares / (tests - 1) / tests)) < 1e-12);
        assert_true(fabs(a->own_probability[i] - b.own[i]) < 1e-12);
        bool is_other = b.own[i] < 0.5; /* of two classes and two neighbours */
        assert_int_equal(a->predicted[i] != ds->labels[i], is_other);
        assert_true(a->probability[i] >= b.own[i]);
    }
    fds_audit_free(a);
    fds_dataset_free(ds);
}

static void a_provider_has_the_sum_of_its_samples(void **state) {
    (void)state;
    fds_dataset *ds = cloud();
    const fds_params params = audit_params();
    fds_audit *a = make_audit(ds, &params);
    brute b;
    compute(ds, a->fold, &b);
    for (uint32_t p = 0; p < OWNERS; p++) {
        double value = 0, x[N] = {0}, mean = 0, squares = 0;
        size_t suspects = 0;
        for (size_t i = p; i < N; i += OWNERS) {
            value += a->values[i];
            suspects += a->values[i] < 0;
            for (size_t t = 0; t < N; t++)
                x[t] += isnan(b.phi[t][i]) ? 0 : b.phi[t][i] / (double)a->tests[i];
        }
        for (size_t t = 0; t < N; t++)
            mean += x[t] / N;
        for (size_t t = 0; t < N; t++)
            squares += pow(x[t] - mean, 2);
        assert_true(fabs(a->providers[p].value - value) < 1e-12);
        assert_true(fabs(a->providers[p].error - sqrt(squares * N / (N - 1))) < 1e-12);
        assert_int_equal(a->providers[p].samples, N / OWNERS);
        assert_int_equal(a->providers[p].suspects, suspects);
    }
    fds_audit_free(a);
    fds_dataset_free(ds);
}

/* ---- rows ---- */

static void rows_come_from_the_lowest_value_with_a_reason(void **state) {
    (void)state;
    fds_dataset *ds = cloud();
    const fds_params params = audit_params();
    fds_audit *a = make_audit(ds, &params);
    fds_audit_row row, before = {.value = -INFINITY};
    bool is_seen[N] = {false};
    size_t suspects = 0;
    for (size_t rank = 0; rank < N; rank++, before = row) {
        assert_true(fds_audit_row_at(a, rank, &row));
        assert_true(row.value >= before.value);
        assert_false(is_seen[row.sample]);
        is_seen[row.sample] = true;
        assert_int_equal(row.is_suspect, row.value < 0);
        suspects += row.is_suspect;
        expect_in(row.reason, "of the 2 nearest samples have label");
        assert_null(row.id);
        assert_int_equal(row.line, 0);
        if (row.sample == 0) {
            assert_int_equal(row.twin, 11);
            expect_in(row.reason, "; sample 11 has the same values and label yes");
        } else if (row.sample == 11)
            expect_in(row.reason, "; sample 0 has the same values and label no");
        else
            assert_int_equal(row.twin, row.sample);
    }
    assert_false(fds_audit_row_at(a, N, &row));
    assert_int_equal(fds_audit_count(a), N);
    assert_int_equal(fds_audit_suspects(a), suspects);
    fds_audit_free(a);
    fds_dataset_free(ds);
}

static void the_result_does_not_depend_on_threads_but_on_the_seed(void **state) {
    (void)state;
    fds_dataset *ds = cloud();
    fds_params params = audit_params();
    fds_audit *one = make_audit(ds, &params);
    params.threads = 4;
    fds_audit *four = make_audit(ds, &params);
    params.seed = 1;
    fds_audit *other = make_audit(ds, &params);
    assert_memory_equal(one->values, four->values, N * sizeof *one->values);
    assert_memory_equal(one->errors, four->errors, N * sizeof *one->errors);
    assert_memory_not_equal(one->values, other->values, N * sizeof *one->values);
    fds_audit_free(one);
    fds_audit_free(four);
    fds_audit_free(other);
    fds_dataset_free(ds);
}

/* ---- mistakes ---- */

static void refuse(const fds_dataset *ds, const fds_params *params, const char *text) {
    fds_audit *a = NULL;
    fds_error err = {0};
    assert_int_equal(fds_audit_create(ds, params, NULL, &a, &err), FDS_ERR_USAGE);
    expect_in(err.text, text);
    assert_null(a);
}

static void mistakes_are_named(void **state) {
    (void)state;
    fds_dataset *ds = cloud();
    fds_params params = audit_params();
    params.utility = "retrain:10";
    refuse(ds, &params,
           "`utility` must be knn:K or knn:K@model, for example knn:5 (got retrain:10)");
    params.utility = "knn:x";
    refuse(ds, &params, "whole number");
    params.utility = "knn:5";
    params.model = "mlp";
    refuse(ds, &params, "`model` does not apply");
    params.model = NULL;
    params.folds = N + 1;
    refuse(ds, &params, "`folds` must be at most 12");
    params.folds = FOLDS;
    memset(ds->labels, 0, N * sizeof *ds->labels);
    refuse(ds, &params, "one label");
    const double targets[N] = {0.5};
    fds_error err = {0};
    assert_int_equal(fds_dataset_set_targets(ds, targets, &err), FDS_OK);
    refuse(ds, &params, "an audit needs classes");
    fds_dataset_free(ds);
}

static bool stop(void *user, const fds_progress *progress) {
    (void)progress;
    return ++*(int *)user == 2;
}

static void an_audit_stops_when_it_is_told(void **state) {
    (void)state;
    fds_dataset *ds = cloud();
    const fds_params params = audit_params();
    int calls = 0;
    const fds_events events = {.progress = stop, .user = &calls};
    fds_audit *a = NULL;
    fds_error err = {0};
    assert_int_equal(fds_audit_create(ds, &params, &events, &a, &err), FDS_ERR_CANCELLED);
    assert_int_equal(calls, 2);
    fds_dataset_free(ds);
}

/* ---- files ---- */

static void a_folder_is_written_and_replaced(void **state) {
    (void)state;
    fds_dataset *ds = cloud();
    const fds_params params = audit_params();
    fds_audit *a = make_audit(ds, &params);
    fds_error err = {0};
    size_t size;
    char dir[512];
    snprintf(dir, sizeof dir, "%s", scratch_path("a.audit"));
    for (int turn = 0; turn < 2; turn++)
        expect_ok(fds_audit_save(a, dir, "fds data audit <it>", &err), &err);
    char *rows = scratch_read(scratch_path("a.audit/rows.csv"), &size);
    size_t lines = 0;
    for (const char *at = rows; *at; at++)
        lines += *at == '\n';
    assert_int_equal(lines, N + 1);
    free(rows);
    char *providers = scratch_read(scratch_path("a.audit/providers.csv"), &size);
    expect_in(providers, "\n\"'=South\","); /* no spreadsheet runs it */
    free(providers);
    char *page = scratch_read(scratch_path("a.audit/report.html"), &size);
    expect_in(page, "fds data audit &lt;it&gt;");
    expect_in(page, "=South");
    assert_null(strstr(page, "{{"));
    assert_null(strstr(page, "<script"));
    free(page);
    json_error_t error;
    json_t *json = json_load_file(scratch_path("a.audit/audit.json"), 0, &error);
    assert_int_equal(json_array_size(json_object_get(json, "rows")), N);
    json_decref(json);
    /* without providers there is no file of them */
    ds->providers = 0;
    expect_ok(fds_audit_save(a, dir, NULL, &err), &err);
    ds->providers = OWNERS;
    assert_int_equal(access(scratch_path("a.audit/providers.csv"), F_OK), -1);
    assert_int_equal(unlink(scratch_path("a.audit/audit.json")), 0);
    assert_int_equal(fds_audit_save(a, dir, NULL, &err), FDS_ERR_CONFLICT);
    expect_in(err.text, "it is not the folder of an audit");
    fds_audit_free(a);
    fds_dataset_free(ds);
}

static fds_status audit_and_save(void *with, fds_error *err) {
    const fds_dataset *ds = with;
    const fds_params params = audit_params();
    fds_audit *a = NULL;
    TRY(fds_audit_create(ds, &params, NULL, &a, err));
    fds_status status = fds_audit_save(a, scratch_path("a.audit"), NULL, err);
    fds_audit_free(a);
    return status;
}

/* Of a folder that was not there, nothing stays. */
static fds_status save_anew(void *with, fds_error *err) {
    static const char *const names[] = {"rows.csv", "providers.csv", "report.html", "audit.json"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[64];
        snprintf(path, sizeof path, "a.audit/%s", names[i]);
        unlink(scratch_path(path));
    }
    rmdir(scratch_path("a.audit"));
    return audit_and_save(with, err);
}

static void expect_nothing(void *with, bool is_last) {
    (void)with;
    if (!is_last) /* the last is to put the complete folder on the disk */
        assert_int_equal(access(scratch_path("a.audit/rows.csv"), F_OK), -1);
}

static void failures_are_reported_and_leave_nothing(void **state) {
    (void)state;
    fds_dataset *ds = cloud();
    json_set_alloc_funcs(fds__alloc, fds__free);
    assert_true(each_fault(FDS__FAULT_ALLOC, save_anew, expect_nothing, ds) > 100);
    assert_true(each_fault(FDS__FAULT_IO, save_anew, expect_nothing, ds) > 8);
    json_set_alloc_funcs(malloc, free);
    fds_dataset_free(ds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_errors_and_votes_are_those_of_the_definition),
        cmocka_unit_test(a_provider_has_the_sum_of_its_samples),
        cmocka_unit_test(rows_come_from_the_lowest_value_with_a_reason),
        cmocka_unit_test(the_result_does_not_depend_on_threads_but_on_the_seed),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(an_audit_stops_when_it_is_told),
        cmocka_unit_test_setup_teardown(a_folder_is_written_and_replaced, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(failures_are_reported_and_leave_nothing, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests_name("eval/audit", tests, NULL, NULL);
}
