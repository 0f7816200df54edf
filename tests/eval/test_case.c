/* SPDX-License-Identifier: Apache-2.0
 * Cases: what case.json holds, which mistakes are named before any work, and what may be small or
 * missing. */
#include "case_fixture.h"

/* ---- all of it ---- */

static void expect_lists(const json_t *entry, size_t shares, size_t count) {
    assert_int_equal(json_integer_value(json_object_get(entry, "count")), count);
    assert_int_equal(json_array_size(json_object_get(entry, "mean")), shares);
    assert_int_equal(json_array_size(json_object_get(entry, "sd")), shares);
    for (size_t k = 0; k < shares; k++) {
        double mean = json_number_value(json_array_get(json_object_get(entry, "mean"), k));
        assert_true(mean >= 0 && mean < 87.4);
    }
}

/* The number that the parameters set, before the method's own rule could stop it; FreeShap has no
 * such rule. */
static void expect_permutations(const json_t *row, const char *base) {
    const json_t *permutations = json_object_get(row, "permutations");
    bool is_free = strcmp(base, "freeshap") == 0;
    if (!is_free && strcmp(base, "tmc") != 0 && strcmp(base, "cs-shapley") != 0) {
        assert_true(json_is_null(permutations));
        return;
    }
    assert_true(number(permutations, "sampled") == (is_free ? 200 : 20));
    assert_true(json_object_get(permutations, "has_converged") ==
                (is_free ? json_null() : json_false()));
}

static void expect_machine(const json_t *json, unsigned threads) {
    const json_t *machine = json_object_get(json, "machine");
    assert_true(json_is_string(json_object_get(machine, "processor")));
    assert_true(number(machine, "processors") == fds_processors());
    assert_string_equal(json_string_value(json_object_get(machine, "instructions")), fds_isa());
    assert_true(number(machine, "threads") == threads);
}

static void expect_scores(const json_t *list, size_t count) {
    assert_int_equal(json_array_size(list), count);
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(list, i);
        assert_true(number(entry, "coalitions") == 12 && number(entry, "count") == TESTED);
        assert_true(fabs(number(entry, "mean")) <= 1);
        assert_int_equal(json_array_size(json_object_get(entry, "samples")), TESTED);
    }
}

static void expect_row(const json_t *json, size_t i, const char *name) {
    const json_t *row = json_array_get(json_object_get(json, "rows"), i);
    const json_t *agreement = json_object_get(row, "agreement");
    const json_t *timing = json_object_get(row, "timing");
    eval_method m;
    fds_error err;
    expect_ok(eval_method_find(name, &m, &err), &err);
    bool is_in_units = m.kind == REPORT_OURS || m.kind == REPORT_BEYOND; /* truly Shapley values */
    bool is_by_both = !is_in_units || m.is_converged;
    assert_string_equal(json_string_value(json_object_get(row, "method")), name);
    assert_string_equal(json_string_value(json_object_get(row, "title")), m.title);
    assert_string_equal(json_string_value(json_object_get(row, "kind")), report_kind_name(m.kind));
    assert_int_equal(json_is_true(json_object_get(row, "is_per_sample")), m.is_per_sample);
    assert_string_equal(json_string_value(json_object_get(row, "utility")),
                        m.is_converged ? "retrain" : "retrain:10");
    assert_int_equal(json_array_size(json_object_get(row, "losses")), 6 + 2 * is_by_both);
    static const char *const ways[] = {"top", "bottom", "keep_top"};
    for (size_t w = 0; w < COUNT(ways); w++)
        expect_lists(find_losses(row, "retrain:10", ways[w], "all"), 3, TESTED);
    assert_int_equal(find_losses(row, "retrain", "top", "all") != NULL, is_by_both);
    assert_null(find_losses(row, "retrain", "bottom", "all"));
    double correlation = number(agreement, "correlation"); /* none where all are worth the same */
    assert_true(m.is_per_sample ? fabs(correlation) <= 1 : !(fabs(correlation) > 1));
    assert_true(isnan(number(agreement, "relative_error")) == !is_in_units);
    assert_true(isnan(number(agreement, "efficiency_gap")) == !is_in_units);
    const json_t *area = json_object_get(row, "auc"), *terms = json_object_get(row, "auc_terms");
    assert_true(number(area, "mean") >= 0 && number(area, "mean") <= 1);
    assert_true(number(area, "count") == 2 && number(area, "sd") >= 0);
    assert_int_equal(json_array_size(json_object_get(area, "samples")), 2);
    assert_int_equal(json_is_true(json_object_get(terms, "is_equal")), eval_is_equal(&m));
    expect_scores(json_object_get(row, "lds"), 1 + is_by_both);
    expect_scores(json_object_get(row, "lds_other_seeds"), 1 + is_by_both);
    assert_int_equal(json_array_size(json_object_get(row, "losses_other_seed")),
                     2 * (1 + is_by_both));
    assert_true(number(row, "sub_models") >= 0);
    bool answers_alone = m.is_per_sample && strcmp(name, "ls") != 0; /* without training */
    bool is_prepared = is_in_units || !m.is_per_sample;
    assert_true(isnan(number(timing, "prepare_s")) == !is_prepared);
    assert_true(isnan(number(timing, "answer_ms")) == !answers_alone);
    expect_permutations(row, m.base);
    assert_true(json_is_false(json_object_get(timing, "was_resumed")));
}

static void a_case_has_everything(void **state) {
    (void)state;
    trial t = trial_make(NULL);
    trial_point(&t);
    t.params.top_only = false;
    t.params.truth = 80;
    t.params.flipped = 0.2;
    t.params.flipped_seeds = 2;
    t.params.lds = 12;
    t.params.lds_seeds = 2;
    t.params.loss_seeds = 1;
    run_case(&t, scratch_path("case"));
    json_t *json = read_case(scratch_path("case"));
    const json_t *data = json_object_get(json, "data"), *s = json_object_get(json, "settings");
    assert_string_equal(json_string_value(json_object_get(json, "fds")), FDS_VERSION);
    assert_string_equal(json_string_value(json_object_get(json, "kind")), "fds bench case");
    assert_string_equal(json_string_value(json_object_get(data, "name")), "clouds");
    assert_string_equal(json_string_value(json_object_get(data, "source")), "memory");
    assert_true(number(data, "classes") == CLASSES && number(data, "players") == OWNERS);
    assert_true(number(data, "tests") == TESTED && number(data, "inputs") == LEARNT);
    assert_true(number(s, "seed") == 4 && number(s, "coalitions") == 60);
    assert_true(number(s, "permutations") == 20 && number(s, "truth") == 80);
    assert_true(number(s, "flipped") == 0.2);
    assert_string_equal(json_string_value(json_object_get(s, "network")), "fc:classes");
    assert_string_equal(json_string_value(json_object_get(s, "explainer")), "linear");
    assert_int_equal(json_array_size(json_object_get(s, "shares")), 3);
    assert_int_equal(json_array_size(json_object_get(json, "utilities")), 2);
    for (size_t i = 0; i < 2; i++) { /* as many for converged models */
        const json_t *truth =
            json_object_get(json_array_get(json_object_get(json, "utilities"), i), "truth");
        assert_true(number(truth, "coalitions") == 80);
        assert_true(fabs(number(truth, "correlation")) <= 1);
        const json_t *of = json_array_get(json_object_get(json, "utilities"), i);
        expect_scores(json_object_get(of, "lds"), 1);
        expect_scores(json_object_get(of, "lds_other_seeds"), 1);
        /* better than chance: it is an estimate of this very game */
        assert_true(number(json_array_get(json_object_get(of, "lds"), 0), "mean") > 0.3);
    }
    expect_machine(json, 1);
    assert_int_equal(json_array_size(json_object_get(json, "rows")), 15);
    assert_int_equal(json_array_size(json_object_get(json, "pictures")), 0); /* no images */
    for (size_t i = 0; fds_bench_methods()[i]; i++)
        expect_row(json, i, fds_bench_methods()[i]);
    json_decref(json);
    trial_free(&t);
}

/* There are no 5 neighbours among 4 players: left out, and no error is left behind. */
static void methods_that_players_are_not_made_for_are_left_out(void **state) {
    (void)state;
    trial t = trial_make(NULL);
    fds_error err;
    fds_players_free(t.players);
    expect_ok(fds_players_points(t.train, NULL, 4, &t.players, &err), &err);
    trial_point(&t);
    t.params.coalitions = 10;
    t.params.permutations = 2;
    err = (fds_error){.text = "untouched"};
    expect_ok(try_case(&t, scratch_path("case"), &err), &err);
    assert_string_equal(err.text, "untouched");
    json_t *json = read_case(scratch_path("case"));
    assert_int_equal(json_array_size(json_object_get(json, "rows")), 14);
    json_decref(json);
    trial_free(&t);
}

/* Players of one label make no groups: gfds and gfds+ are left out, unless they are named. */
static void players_of_one_label_have_no_groups(void **state) {
    (void)state;
    trial t = trial_make(NULL);
    uint32_t same[4];
    size_t count = 0;
    fds_error err;
    for (uint32_t i = 0; count < COUNT(same); i++)
        if (t.train->labels[i] == t.train->labels[0])
            same[count++] = i;
    fds_players_free(t.players);
    expect_ok(fds_players_points(t.train, same, count, &t.players, &err), &err);
    trial_point(&t);
    t.params.coalitions = 10;
    t.params.permutations = 2;
    run_case(&t, scratch_path("case"));
    json_t *json = read_case(scratch_path("case"));
    const json_t *rows = json_object_get(json, "rows");
    assert_int_equal(json_array_size(rows), 12);
    for (size_t i = 0; i < json_array_size(rows); i++)
        assert_null(
            strstr(json_string_value(json_object_get(json_array_get(rows, i), "method")), "gfds"));
    json_decref(json);
    t.params.methods = "gfds+";
    expect_failure(try_case(&t, scratch_path("asked"), &err), FDS_ERR_USAGE, &err,
                   "all players have the same label");
    trial_free(&t);
}

/* One of three players gets a wrong label, with some seeds the one that the two others have. */
static void wrong_labels_may_leave_one_group(void **state) {
    (void)state;
    static const uint32_t owned[] = {0, 1, 4}; /* labels 0, 1, 1 */
    trial t = trial_make("gfds+,same-label");
    size_t with = 0, without = 0;
    fds_error err;
    fds_players_free(t.players);
    expect_ok(fds_players_points(t.train, owned, COUNT(owned), &t.players, &err), &err);
    trial_point(&t);
    t.params.flipped = 0.3;
    for (uint64_t seed = 0; seed < 12; seed++) {
        char name[40];
        snprintf(name, sizeof name, "case %llu", (unsigned long long)seed);
        t.params.seed = seed;
        run_case(&t, scratch_path(name));
        json_t *json = read_case(scratch_path(name));
        bool has_area = !json_is_null(json_object_get(find_row(json, "gfds+"), "auc"));
        assert_true(number(json_object_get(find_row(json, "same-label"), "auc"), "mean") >= 0);
        with += has_area;
        without += !has_area;
        json_decref(json);
    }
    assert_true(with > 0 && without > 0);
    trial_free(&t);
}

/* ---- mistakes ---- */

static void other_settings_are_refused_by_name(void **state) {
    (void)state;
    trial t = trial_make("ls,random");
    char dir[300];
    fds_error err;
    trial_point(&t);
    snprintf(dir, sizeof dir, "%s", scratch_path("case"));
    run_case(&t, dir);
    const trial good = t;
#define REFUSED(change, part)           \
    (t = good, trial_point(&t), change, \
     expect_failure(try_case(&t, dir, &err), FDS_ERR_CONFLICT, &err, part))
    REFUSED(t.params.seed = 5, "settings.seed is 4 in the case, 5 now");
    REFUSED(t.params.coalitions = 80, "settings.coalitions is 60 in the case, 80 now");
    REFUSED(t.params.permutations = 30, "settings.permutations is 20");
    REFUSED(t.params.truth = 2, "settings.truth is 0 in the case, 2 now");
    REFUSED(t.params.flipped = 0.25, "settings.flipped");
    REFUSED(t.params.lds = 20, "settings.lds is 0 in the case, 20 now");
    REFUSED(t.params.loss_seeds = 1, "settings.loss_seeds is 0 in the case, 1 now");
    REFUSED(t.params.remove = "10,60,100", "settings.shares[1] is 0.5 in the case, 0.6 now");
    REFUSED(t.params.model = "mlp", "settings.network is \"fc:classes\"");
    REFUSED(t.params.explainer = MLP, "settings.explainer is \"linear\" in the case, \"mlp\" now");
    REFUSED(t.params.methods = "ls", "methods are 2 in the case, 1 now");
    REFUSED(t.params.top_only = false, "is_both_ways is false in the case, true now");
    REFUSED(t.name = "other", "data.name is \"clouds\"");
    REFUSED(t.problem.test_count--, "data.tests is 6 in the case, 5 now");
    REFUSED(t.problem.input_count--, "data.inputs is 24");
    REFUSED(t.tests[0]++, "inputs_sha256");
    REFUSED(t.inputs[3] = 20, "inputs_sha256");
    REFUSED(t.problem.test = good.train, "inputs_sha256");
#undef REFUSED
    t = good;
    trial_point(&t);
    t.params.threads = 2; /* no number depends on it */
    run_case(&t, dir);
    t.params.threads = 0; /* as many as there are processors */
    run_case(&t, scratch_path("all"));
    json_t *json = read_case(scratch_path("all"));
    expect_machine(json, fds_processors());
    json_decref(json);
    t.params.coalitions = 0; /* 20 per player, given or by default */
    run_case(&t, scratch_path("twenty"));
    t.params.coalitions = 20 * OWNERS;
    run_case(&t, scratch_path("twenty"));
    trial_free(&t);
}

static void mistakes_leave_no_folder(void **state) {
    (void)state;
    trial t = trial_make("afds");
    char dir[300];
    fds_error err;
    snprintf(dir, sizeof dir, "%s", scratch_path("case"));
    trial_point(&t);
    const trial good = t;
#define REFUSED(change, part)                                            \
    (t = good, trial_point(&t), change,                                  \
     expect_failure(try_case(&t, dir, &err), FDS_ERR_USAGE, &err, part), \
     assert_false(fds__path_exists(dir)))
    REFUSED(t.problem.input_count = 0, "explainers need inputs");
    REFUSED(t.tests[0] = 1000, "sample 1000 requested");
    REFUSED(t.params.methods = "knn:11", "K must be at most 10");
    REFUSED(t.params.model = "fc:7", "7");
#undef REFUSED
    t = good;
    trial_point(&t);
    scratch_write(scratch_path("letter.txt"), "dear", 4);
    expect_failure(try_case(&t, scratch, &err), FDS_ERR_CONFLICT, &err,
                   "holds \"letter.txt\" but no");
    assert_int_equal(scratch_entries(), 1);
    trial_free(&t);
}

static void two_at_a_time_are_refused(void **state) {
    (void)state;
    trial t = trial_make("random");
    char dir[300];
    fds__file lock;
    fds_error err;
    trial_point(&t);
    snprintf(dir, sizeof dir, "%s", scratch_path("case"));
    run_case(&t, dir);
    expect_ok(fds__file_open(&lock, in_run(dir, ".lock"), FDS__ACCESS_UPDATE, &err), &err);
    expect_ok(fds__file_lock(&lock, dir, &err), &err);
    expect_failure(try_case(&t, dir, &err), FDS_ERR_IO, &err, "is in use by another process");
    fds__file_close(&lock);
    run_case(&t, dir);
    trial_free(&t);
}

/* ---- what is small or missing ---- */

/* One test sample: nothing to deviate from; and where it is classified wrongly, no correct ones. */
static void a_single_test_sample_is_enough(void **state) {
    (void)state;
    trial t = trial_make("ls,tmc,cs-shapley,knn:2/sample,random");
    size_t sets[3] = {0};
    trial_point(&t);
    t.problem.test_count = 1;
    t.params.truth = 60;
    for (uint32_t sample = 0; sample < 8; sample++) {
        char name[20];
        snprintf(name, sizeof name, "case %u", sample);
        t.tests[0] = sample;
        t.test_labels[0] = t.test->labels[sample];
        run_case(&t, scratch_path(name));
        json_t *json = read_case(scratch_path(name));
        const json_t *utility = json_array_get(json_object_get(json, "utilities"), 0);
        const json_t *row = find_row(json, "tmc");
        const json_t *all = find_losses(row, "retrain:10", "top", "all");
        bool is_right = number(utility, "correct") == 1;
        assert_int_equal(json_array_size(json_object_get(utility, "losses")), 1 + is_right);
        assert_int_equal(json_array_size(json_object_get(row, "losses")), 1 + is_right);
        assert_true(json_is_null(json_array_get(json_object_get(all, "sd"), 0)));
        assert_true(json_is_number(json_array_get(json_object_get(all, "mean"), 0)));
        /* one column, but not the truth's unit */
        assert_true(
            json_is_null(json_object_get(json_object_get(row, "agreement"), "relative_error")));
        sets[is_right]++;
        json_decref(json);
    }
    assert_true(sets[0] > 0 && sets[1] > 0);
    trial_free(&t);
}

static void test_samples_may_lack_a_class_and_players_too(void **state) {
    (void)state;
    trial t = trial_make("afds,gfds,ls,cs-shapley,same-label");
    uint32_t owned[OWNERS];
    fds_error err;
    fds_players_free(t.players);
    for (uint32_t i = 0; i < OWNERS; i++)
        owned[i] = i / 2 * 3 + i % 2; /* labels 0 and 1 */
    expect_ok(fds_players_points(t.train, owned, OWNERS, &t.players, &err), &err);
    for (uint32_t i = 0; i < LEARNT; i++)
        t.inputs[i] = i < 5 ? 3 * i + 2 : i + 10;
    for (uint32_t i = 0; i < TESTED; i++)
        t.tests[i] = 3 * i + i % 2; /* and so here */
    trial_point(&t);
    t.params.flipped = 0.5;
    t.params.truth = 60;
    run_case(&t, scratch_path("case"));
    json_t *json = read_case(scratch_path("case"));
    assert_int_equal(json_array_size(json_object_get(json, "rows")), 5);
    json_decref(json);
    trial_free(&t);
}

/* ---- pictures ---- */

static void images_are_drawn(void **state) {
    (void)state;
    enum { SIDE = 5, ALL = OWNERS + LEARNT };
    uint8_t bytes[ALL * SIDE * SIDE];
    uint16_t labels[ALL];
    trial t = trial_make("gfds,afds,ls");
    fds_error err;
    fds_rng rng = fds_rng_make(1, 3000, 9, 0);
    for (size_t i = 0; i < ALL; i++) {
        labels[i] = (uint16_t)(i % CLASSES);
        for (size_t k = 0; k < SIDE * SIDE; k++)
            bytes[i * SIDE * SIDE + k] =
                (uint8_t)(fds_rng_below(&rng, 200) + 50 * (k % 3 == labels[i]));
    }
    fds_dataset_free(t.train);
    fds_dataset_free(t.test);
    const fds_shape shape = {1, SIDE, SIDE};
    expect_ok(fds__dataset_create(ALL, shape, bytes, NULL, labels, CLASSES, NULL, &t.train, &err),
              &err);
    expect_ok(fds__dataset_create(ALL, shape, bytes, NULL, labels, CLASSES, NULL, &t.test, &err),
              &err);
    trial_point(&t);
    run_case(&t, scratch_path("case"));
    json_t *json = read_case(scratch_path("case"));
    const json_t *pictures = json_object_get(json, "pictures");
    static const char *const wanted[] = {"gfds", "afds"};
    assert_int_equal(json_array_size(pictures), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *picture = json_array_get(pictures, i);
        const char *file = json_string_value(json_object_get(picture, "file"));
        char path[400];
        fds__picture drawn;
        assert_string_equal(json_string_value(json_object_get(picture, "method")), wanted[i]);
        snprintf(path, sizeof path, "%s/%s", scratch_path("case"), file);
        expect_ok(fds__picture_read(path, &drawn, &err), &err);
        assert_true(drawn.width > 1000 && drawn.height > 300); /* 11 columns, 3 labels */
        fds__free(drawn.pixels);
    }
    json_decref(json);
    trial_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_case_has_everything),
        IN_SCRATCH(methods_that_players_are_not_made_for_are_left_out),
        IN_SCRATCH(players_of_one_label_have_no_groups),
        IN_SCRATCH(wrong_labels_may_leave_one_group),
        IN_SCRATCH(other_settings_are_refused_by_name),
        IN_SCRATCH(mistakes_leave_no_folder),
        IN_SCRATCH(two_at_a_time_are_refused),
        IN_SCRATCH(a_single_test_sample_is_enough),
        IN_SCRATCH(test_samples_may_lack_a_class_and_players_too),
        IN_SCRATCH(images_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
