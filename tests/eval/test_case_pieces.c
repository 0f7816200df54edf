/* SPDX-License-Identifier: Apache-2.0
 * The numbers of a case are those of the pieces that it is made of, called by hand. */
#include "case_fixture.h"

#define GOLDEN 0x9E3779B97F4A7C15u

/* ---- the pieces, by hand ---- */

/* The utility function of a case, with its own table. */
typedef struct {
    const trial *t;
    fds_utility *utility;
    fds_table *table;
    fds_groups *groups;
    uint32_t player_labels[OWNERS], labels[TESTED], predicted[TESTED];
    double rise[TESTED];
} reference;

static void reference_open(reference *h, const trial *t, const char *kind) {
    fds__utility_params p = fds__utility_params_default();
    fds_error err;
    float full[TESTED * CLASSES], empty[TESTED * CLASSES];
    const uint64_t nobody = 0, all = ((uint64_t)1 << OWNERS) - 1;
    *h = (reference){.t = t};
    p.kind = kind;
    p.network = "fc:classes";
    p.train.seed = t->params.seed;
    expect_ok(fds__utility_create(&p, t->train, t->players, t->test, t->tests, TESTED, 1,
                                  &h->utility, &err),
              &err);
    expect_ok(fds_table_open(scratch_path(kind), h->utility, FDS_STORE_F32, NULL, &h->table, &err),
              &err);
    expect_ok(fds_groups_by_label(t->train, t->players, &h->groups, &err), &err);
    expect_ok(fds_utility_eval(h->utility, 0, &all, full, &err), &err);
    expect_ok(fds_utility_eval(h->utility, 0, &nobody, empty, &err), &err);
    for (size_t i = 0; i < OWNERS; i++)
        h->player_labels[i] = fds__dataset_get_info(t->train).labels[i];
    for (size_t x = 0; x < TESTED; x++) {
        h->labels[x] = fds__dataset_get_info(t->test).labels[t->tests[x]];
        h->predicted[x] = fds__argmax_f32(full + x * CLASSES, CLASSES);
        size_t at = x * CLASSES + h->predicted[x];
        h->rise[x] = (double)full[at] - (double)empty[at];
    }
}

static void reference_close(reference *h) {
    fds_groups_free(h->groups);
    fds_table_free(h->table);
    fds_utility_free(h->utility);
}

static double reference_correlation(const reference *h, const double *values, const double *truth) {
    fds_agreement a;
    fds_error err;
    expect_ok(
        fds_agree(values, TESTED, truth, TESTED, OWNERS, h->player_labels, h->predicted, &a, &err),
        &err);
    return a.correlation;
}

static void reference_solve(const reference *h, size_t count, uint64_t draw, double *values) {
    const fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS, .groups = h->groups};
    uint64_t seed = h->t->params.seed;
    fds_plan *plan;
    fds_table_view *view;
    fds_error err;
    expect_ok(fds_plan_sample(FDS_SAMPLER_LEVERAGE, OWNERS, NULL, count,
                              seed + (seed + draw) * GOLDEN, &plan, &err),
              &err);
    expect_ok(fds_table_fill(h->table, plan, 1, NULL, &err), &err);
    expect_ok(fds_table_view_create(h->table, plan, h->predicted, false, 1, &view, &err), &err);
    fds_rows rows = fds_table_view_rows(view);
    expect_ok(fds_least_squares(plan, &rows, &params, 1, values, NULL, NULL, NULL, &err), &err);
    fds_table_view_free(view);
    fds_plan_free(plan);
}

/* The mean of two halves, and what the case says of them. */
static void reference_truth(const reference *h, const json_t *json, size_t scorer, size_t half,
                            double *truth) {
    const json_t *stated =
        json_object_get(json_array_get(json_object_get(json, "utilities"), scorer), "truth");
    double again[OWNERS * TESTED];
    reference_solve(h, half, 1, truth);
    reference_solve(h, half, 2, again);
    assert_memory_not_equal(truth, again, sizeof again);
    assert_true(number(stated, "coalitions") == 2 * (double)half);
    assert_true(number(stated, "correlation") == reference_correlation(h, again, truth));
    for (size_t i = 0; i < OWNERS * TESTED; i++)
        truth[i] = (truth[i] + again[i]) / 2;
}

static void reference_baseline(const reference *h, const char *method, fds__scorer scorer,
                               double *values, fds__baseline_report *report) {
    fds_params p;
    fds_error err;
    expect_ok(fds__baseline_default(method, &p, &err), &err);
    fds__utility_params value = fds__utility_params_default();
    value.network = "fc:classes";
    value.train.seed = p.seed = h->t->params.seed;
    p.scorer = scorer;
    if (strcmp(method, "freeshap") != 0)
        p.permutations = h->t->params.permutations;
    p.threads = 1;
    const fds_problem problem = {.train = h->t->train,
                                 .test = h->t->test,
                                 .players = h->t->players,
                                 .tests = (uint32_t *)(uintptr_t)h->t->tests,
                                 .test_count = TESTED};
    const fds__baseline_data data = {.problem = &problem,
                                     .labels = scorer == FDS__SCORER_EACH_SAMPLE ? h->predicted
                                                                                 : h->labels,
                                     .utility = &value,
                                     .table = h->table};
    expect_ok(fds__baseline(&p, &data, values, NULL, report, NULL, &err), &err);
}

/* One set's mean and standard deviation, from their definitions. */
static void expect_entry(const reference *h, const json_t *row, const char *way, const char *set,
                         const double *losses) {
    const char *kind = strstr(fds_utility_get_info(h->utility).text, "\"kind\":\"retrain:10\"")
                           ? "retrain:10"
                           : "retrain";
    const json_t *entry = find_losses(row, kind, way, set);
    for (size_t k = 0; k < 3; k++) {
        double n = 0, sum = 0, squares = 0;
        for (size_t x = 0; x < TESTED; x++)
            if (strcmp(set, "all") == 0 || h->predicted[x] == h->labels[x]) {
                n++;
                sum += losses[k * TESTED + x];
                squares += losses[k * TESTED + x] * losses[k * TESTED + x];
            }
        double sd = sqrt((squares - sum * sum / n) / (n - 1));
        assert_non_null(entry);
        assert_true(number(entry, "count") == n);
        double got = json_number_value(json_array_get(json_object_get(entry, "mean"), k));
        double got_sd = json_number_value(json_array_get(json_object_get(entry, "sd"), k));
        if (!(fabs(got - sum / n) <= 1e-12 * fabs(got)))
            fail_msg("%s, %s, share %zu: mean %.17g, not %.17g", way, set, k, got, sum / n);
        if (!(fabs(got_sd - sd) <= 1e-9 * (1 + sd)))
            fail_msg("%s, %s, share %zu: sd %.17g, not %.17g", way, set, k, got_sd, sd);
    }
}

/* A row's losses are those of its values. */
static void expect_losses(const reference *h, const json_t *row, fds_removal way, const char *name,
                          const double *values, size_t columns) {
    double losses[3 * TESTED];
    fds_error err;
    expect_ok(fds_value_loss(h->table, way, values, columns, h->labels,
                             ((const double[]){0.1, 0.5, 1}), 3, 1, losses, NULL, NULL, &err),
              &err);
    expect_entry(h, row, name, "correct", losses);
    expect_entry(h, row, name, "all", losses);
}

static void expect_number(double got, double wanted) {
    if (!(got == wanted || (isnan(got) && isnan(wanted))))
        fail_msg("%.17g, not %.17g", got, wanted);
}

/* is_estimate: of the Shapley values themselves, so that units can be compared. */
static void expect_agreement(const reference *h, const json_t *row, const double *values,
                             size_t columns, const double *truth, bool is_estimate) {
    const json_t *agreement = json_object_get(row, "agreement");
    fds_agreement a;
    fds_error err;
    expect_ok(
        fds_agree(values, columns, truth, TESTED, OWNERS, h->player_labels, h->predicted, &a, &err),
        &err);
    expect_number(number(agreement, "correlation"), a.correlation);
    expect_number(number(agreement, "class_correlation"), a.within);
    if (!is_estimate) {
        assert_true(json_is_null(json_object_get(agreement, "relative_error")));
        assert_true(json_is_null(json_object_get(agreement, "efficiency_gap")));
        return;
    }
    double missed = 0, all = 0;
    for (size_t x = 0; x < TESTED; x++) {
        double sum = 0;
        for (size_t i = 0; i < OWNERS; i++)
            sum += values[i * TESTED + x];
        missed += fabs(sum - h->rise[x]) / TESTED;
        all += fabs(h->rise[x]) / TESTED;
    }
    assert_true(number(agreement, "relative_error") == a.relative_error);
    assert_true(fabs(number(agreement, "efficiency_gap") - missed / all) < 1e-12);
}

static void least_squares_are_made_of_their_pieces(void **state) {
    (void)state;
    double values[OWNERS * TESTED], truth[OWNERS * TESTED];
    trial t = trial_make("ls");
    reference h;
    trial_point(&t);
    t.params.top_only = false;
    t.params.truth = 100;
    run_case(&t, scratch_path("case"));
    reference_open(&h, &t, "retrain:10");
    json_t *json = read_case(scratch_path("case"));
    reference_solve(&h, 60, 0, values);
    reference_truth(&h, json, 0, 50, truth);
    const json_t *row = find_row(json, "ls");
    expect_losses(&h, row, FDS_REMOVAL_TOP, "top", values, TESTED);
    expect_losses(&h, row, FDS_REMOVAL_BOTTOM, "bottom", values, TESTED);
    expect_losses(&h, row, FDS_REMOVAL_KEEP_TOP, "keep_top", values, TESTED);
    expect_agreement(&h, row, values, TESTED, truth, true);
    assert_true(number(row, "sub_models") == 62);
    assert_true(json_is_null(json_object_get(row, "auc")));
    /* before anything is removed */
    const json_t *utility = json_array_get(json_object_get(json, "utilities"), 0);
    const json_t *all = json_array_get(json_object_get(utility, "losses"), 1);
    double sum = 0, losses[TESTED], zero = 0;
    fds_error err;
    expect_ok(fds_value_loss(h.table, FDS_REMOVAL_KEEP_TOP, values, TESTED, h.labels, &(double){1},
                             1, 1, losses, NULL, NULL, &err),
              &err);
    for (size_t x = 0; x < TESTED; x++) {
        sum += losses[x];
        zero += h.predicted[x] == h.labels[x];
    }
    assert_int_equal(json_array_size(json_object_get(json, "utilities")), 1);
    assert_true(fabs(number(all, "mean") - sum / TESTED) < 1e-12);
    assert_true(number(utility, "correct") == zero);
    json_decref(json);
    reference_close(&h);
    trial_free(&t);
}

static void baselines_are_made_of_their_pieces(void **state) {
    (void)state;
    static const char *const methods[] = {
        "tmc",        "knn:3",      "knn:3/sample", "freeshap/sample",      "loo",
        "loo/sample", "cs-shapley", "tmc/sample",   "group-testing/sample", "gshapley",
        "beta:4,1",   NULL};
    static const fds__scorer scorers[] = {
        FDS__SCORER_ACCURACY,    FDS__SCORER_CONFIDENCE,  FDS__SCORER_EACH_SAMPLE,
        FDS__SCORER_EACH_SAMPLE, FDS__SCORER_ACCURACY,    FDS__SCORER_EACH_SAMPLE,
        FDS__SCORER_ACCURACY,    FDS__SCORER_EACH_SAMPLE, FDS__SCORER_EACH_SAMPLE,
        FDS__SCORER_ACCURACY,    FDS__SCORER_ACCURACY};
    double values[OWNERS * TESTED], truth[OWNERS * TESTED];
    trial t = trial_make("tmc,knn:3,knn:3/sample,freeshap/sample,loo,loo/sample,cs-shapley,tmc/"
                         "sample,group-testing/sample,gshapley,beta:4,1");
    reference h;
    trial_point(&t);
    t.params.truth = 100;
    run_case(&t, scratch_path("case"));
    json_t *json = read_case(scratch_path("case"));
    reference_open(&h, &t, "retrain:10");
    reference_truth(&h, json, 0, 50, truth);
    for (size_t i = 0; methods[i]; i++) {
        fds__baseline_report report;
        bool is_estimate = strcmp(methods[i], "tmc/sample") == 0 ||
                           strcmp(methods[i], "group-testing/sample") == 0;
        eval_method m;
        fds_error err;
        expect_ok(eval_method_find(methods[i], &m, &err), &err);
        reference_baseline(&h, m.base, scorers[i], values, &report);
        const json_t *row = find_row(json, methods[i]);
        size_t columns = scorers[i] == FDS__SCORER_EACH_SAMPLE ? TESTED : 1;
        expect_losses(&h, row, FDS_REMOVAL_TOP, "top", values, columns);
        expect_agreement(&h, row, values, columns, truth, is_estimate);
        const json_t *permutations = json_object_get(row, "permutations");
        assert_int_equal(report.permutations > 0, json_is_object(permutations));
        assert_true(!report.permutations ||
                    number(permutations, "sampled") == (double)report.permutations);
        size_t asked = fds__baseline_needs_table(m.base) ? report.asked : 0;
        assert_true(number(row, "sub_models") == (double)asked);
    }
    json_decref(json);
    reference_close(&h);
    trial_free(&t);
}

static json_t *read_fit(const char *dir, const char *run) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, run);
    return read_run(path);
}

/* Values of a fitted run for labels, in the order of a case. */
static void ask_run(const char *dir, const trial *t, fds__answerer by, const uint32_t *labels,
                    double *values) {
    static answers a;
    fds_run *run;
    fds_error err;
    memcpy(a.labels, labels, TESTED * sizeof *labels);
    expect_ok(fds__run_open(dir, 2, &run, &err), &err);
    ask(run, by, t->test, t->tests, TESTED, true, &a);
    for (size_t x = 0; x < TESTED; x++)
        for (size_t i = 0; i < OWNERS; i++)
            values[i * TESTED + x] = a.values[x * OWNERS + i];
    fds_run_free(run);
}

static void fits_are_made_of_their_pieces(void **state) {
    (void)state;
    static const char *const methods[] = {"afds", "gfds", "gfds+", "bank", NULL};
    static const char *const runs[] = {"afds.run", "gfds.run", "gfds+.run", "afds.run"};
    double values[OWNERS * TESTED], truth[OWNERS * TESTED];
    char dir[300];
    trial t = trial_make("afds,gfds,gfds+,bank");
    reference h;
    trial_point(&t);
    t.params.truth = 100;
    snprintf(dir, sizeof dir, "%s", scratch_path("case"));
    run_case(&t, dir);
    json_t *json = read_case(dir);
    reference_open(&h, &t, "retrain:10");
    reference_truth(&h, json, 0, 50, truth);
    for (size_t i = 0; methods[i]; i++) {
        const json_t *row = find_row(json, methods[i]);
        bool is_bank = strcmp(methods[i], "bank") == 0;
        ask_run(in_run(dir, runs[i]), &t, is_bank ? FDS__ANSWERER_BANK : FDS__ANSWERER_EXPLAINER,
                h.predicted, values);
        expect_losses(&h, row, FDS_REMOVAL_TOP, "top", values, TESTED);
        expect_agreement(&h, row, values, TESTED, truth, true);
        assert_true(number(json_object_get(row, "agreement"), "efficiency_gap") < 1e-6);
        json_t *record = read_fit(dir, runs[i]), *results = json_object_get(record, "results");
        assert_true(number(row, "sub_models") == number(results, "sub_models"));
        const json_t *seconds = json_object_get(results, "seconds");
        double prepared = number(seconds, "sub-models");
        if (!is_bank)
            prepared +=
                number(seconds, "values") + number(seconds, "explainer") + number(seconds, "check");
        const json_t *timing = json_object_get(row, "timing");
        assert_true(fabs(number(timing, "prepare_s") - prepared) < 1e-9);
        assert_true(number(timing, "answer_ms") > 0);
        json_decref(record);
    }
    /* 60 to learn from and 20 for validation, unless the method draws groups; v(0) and v(1) */
    assert_true(number(find_row(json, "afds"), "sub_models") == 82);
    json_decref(json);
    reference_close(&h);
    trial_free(&t);
}

static void fds_and_its_comparisons_are_evaluated_with_converged_models(void **state) {
    (void)state;
    double values[OWNERS * TESTED], truth[OWNERS * TESTED];
    char dir[300];
    trial t = trial_make("fds,ls,loo,same-label");
    reference h, quickly;
    trial_point(&t);
    t.params.truth = 60;
    snprintf(dir, sizeof dir, "%s", scratch_path("case"));
    run_case(&t, dir);
    json_t *json = read_case(dir);
    reference_open(&h, &t, "retrain");
    reference_open(&quickly, &t, "retrain:10");
    assert_memory_not_equal(h.predicted, quickly.predicted, sizeof h.predicted);
    reference_truth(&h, json, 1, 30, truth);
    ask_run(in_run(dir, "fds.run"), &t, FDS__ANSWERER_EXPLAINER, h.predicted, values);
    const json_t *row = find_row(json, "fds");
    assert_string_equal(json_string_value(json_object_get(row, "utility")), "retrain");
    expect_losses(&h, row, FDS_REMOVAL_TOP, "top", values, TESTED);
    expect_agreement(&h, row, values, TESTED, truth, true);
    /* values are those for the label that the evaluating model predicts */
    ask_run(in_run(dir, "fds.run"), &t, FDS__ANSWERER_EXPLAINER, quickly.predicted, values);
    expect_losses(&quickly, row, FDS_REMOVAL_TOP, "top", values, TESTED);
    /* the table's models are those of the fit: v(N) and v(0) are the same */
    assert_true(number(json_object_get(row, "agreement"), "efficiency_gap") < 1e-6);
    assert_null(find_losses(find_row(json, "ls"), "retrain", "top", "all"));
    reference_baseline(&quickly, "loo", FDS__SCORER_ACCURACY, values, NULL);
    expect_losses(&h, find_row(json, "loo"), FDS_REMOVAL_TOP, "top", values, 1);
    /* and of controls */
    for (size_t i = 0; i < OWNERS; i++)
        for (size_t x = 0; x < TESTED; x++)
            values[i * TESTED + x] = h.player_labels[i] == h.predicted[x];
    expect_losses(&h, find_row(json, "same-label"), FDS_REMOVAL_TOP, "top", values, TESTED);
    for (size_t i = 0; i < OWNERS; i++)
        for (size_t x = 0; x < TESTED; x++)
            values[i * TESTED + x] = h.player_labels[i] == quickly.predicted[x];
    expect_losses(&quickly, find_row(json, "same-label"), FDS_REMOVAL_TOP, "top", values, TESTED);
    json_decref(json);
    reference_close(&h);
    reference_close(&quickly);
    trial_free(&t);
}

/* ---- wrong labels ---- */

static void wrong_labels_are_found_by_the_lowest_values(void **state) {
    (void)state;
    const size_t wanted = 2; /* 0.23 of 10 players */
    double values[OWNERS * TESTED], means[OWNERS], same[OWNERS];
    char dir[300];
    trial t = trial_make("afds,loo,same-label");
    trial_point(&t);
    t.params.flipped = 0.23;
    snprintf(dir, sizeof dir, "%s", scratch_path("case"));
    run_case(&t, dir);
    json_t *json = read_case(dir), *run = read_fit(dir, "flipped/afds.run"), *player;
    const fds__dataset_info info = fds__dataset_get_info(t.train);
    /* who has another label now */
    uint16_t labels[OWNERS + LEARNT];
    bool is_wrong[OWNERS];
    size_t i, wrong = 0;
    memcpy(labels, info.labels, sizeof labels);
    json_array_foreach(json_object_get(run, "players"), i, player) {
        labels[i] = (uint16_t)json_integer_value(json_object_get(player, "label"));
        is_wrong[i] = labels[i] != info.labels[i];
        wrong += is_wrong[i];
    }
    assert_int_equal(wrong, wanted);
    fds_dataset *flipped;
    fds_error err;
    expect_ok(fds__dataset_relabel(t.train, labels, &flipped, &err), &err);
    trial other = t;
    reference h;
    other.train = flipped;
    reference_open(&h, &other, "retrain:10");
    ask_run(in_run(dir, "flipped/afds.run"), &t, FDS__ANSWERER_EXPLAINER, h.labels, values);
    for (i = 0; i < OWNERS; i++) {
        means[i] = same[i] = 0;
        for (size_t x = 0; x < TESTED; x++) {
            means[i] += values[i * TESTED + x];
            same[i] += labels[i] == h.labels[x];
        }
    }
    assert_true(number(json_object_get(find_row(json, "afds"), "auc"), "mean") ==
                fds_ranking_area(means, is_wrong, OWNERS));
    assert_true(number(json_object_get(find_row(json, "same-label"), "auc"), "mean") ==
                fds_ranking_area(same, is_wrong, OWNERS));
    reference_baseline(&h, "loo", FDS__SCORER_ACCURACY, values, NULL);
    assert_true(number(json_object_get(find_row(json, "loo"), "auc"), "mean") ==
                fds_ranking_area(values, is_wrong, OWNERS));
    json_decref(run);
    json_decref(json);
    reference_close(&h);
    fds_dataset_free(flipped);
    trial_free(&t);
}

/* Players of many samples: all that a chosen one has are made wrong. */
static void all_samples_of_a_player_get_wrong_labels(void **state) {
    (void)state;
    task from = task_providers("afds");
    fds_params params = quick_bench("loo,afds");
    uint32_t owned[PLAYERS], tests[] = {80, 81, 82}, player_labels[PLAYERS], test_labels[3];
    fds_error err;
    for (uint32_t i = 0; i < PLAYERS; i++)
        owned[i] = i;
    for (size_t i = 0; i < COUNT(tests); i++)
        test_labels[i] = from.train->labels[tests[i]];
    expect_ok(fds__players_labels(from.train, from.players, player_labels, &err), &err);
    const fds_problem problem = {.train = from.train,
                                 .test = from.train, /* which has no test part */
                                 .players = from.players,
                                 .player_labels = player_labels,
                                 .samples = owned,
                                 .sample_count = PLAYERS,
                                 .inputs = from.inputs,
                                 .input_count = INPUTS,
                                 .tests = tests,
                                 .test_count = COUNT(tests),
                                 .test_labels = test_labels};
    size_t players = fds_players_count(from.players), changed = 0, samples = 0;
    char dir[300];
    params.flipped = 0.01;
    params.coalitions = 20;
    snprintf(dir, sizeof dir, "%s", scratch_path("case"));
    expect_ok(eval_case(dir, "providers", &problem, &params, NULL, &err), &err);
    json_t *before = read_fit(dir, "afds.run"), *row = read_case(dir);
    json_t *after = read_fit(dir, "flipped/afds.run");
    for (size_t p = 0; p < players; p++) {
        const json_t *a = json_array_get(json_object_get(before, "players"), p);
        const json_t *b = json_array_get(json_object_get(after, "players"), p);
        samples += json_array_size(json_object_get(a, "samples"));
        assert_true(json_equal(json_object_get(a, "samples"), json_object_get(b, "samples")));
        changed += !json_equal(json_object_get(a, "label"), json_object_get(b, "label"));
    }
    assert_true(samples == PLAYERS && changed <= 1); /* of most samples; all of them are wrong */
    double area = number(json_object_get(find_row(row, "loo"), "auc"), "mean");
    assert_true(area >= 0 && area <= 1);
    params.methods = "knn:1";
    expect_failure(eval_case(scratch_path("knn"), "providers", &problem, &params, NULL, &err),
                   FDS_ERR_USAGE, &err, "\"knn:1\": player \"blue\" has 3 samples");
    assert_false(fds__path_exists(scratch_path("knn")));
    json_decref(before);
    json_decref(after);
    json_decref(row);
    task_free(&from);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(least_squares_are_made_of_their_pieces),
        IN_SCRATCH(baselines_are_made_of_their_pieces),
        IN_SCRATCH(fits_are_made_of_their_pieces),
        IN_SCRATCH(fds_and_its_comparisons_are_evaluated_with_converged_models),
        IN_SCRATCH(wrong_labels_are_found_by_the_lowest_values),
        IN_SCRATCH(all_samples_of_a_player_get_wrong_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
