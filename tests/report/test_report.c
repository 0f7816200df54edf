/* SPDX-License-Identifier: Apache-2.0
 * Cases joined: statistics against those of the single samples, what is refused and what is said
 * then, and every allocation and file operation failing. */
#include "eval/eval.h"
#include "report_fixture.h"

static const char *const both[] = {"a", "b"};

static json_t *joined(const char *const *folders, size_t count) {
    fds_error err;
    json_t *report = NULL;
    expect_ok(join(folders, count, &report, &err), &err);
    return report;
}

/* ---- statistics ---- */

static void losses_are_those_of_all_samples_of_all_seeds(void **state) {
    (void)state;
    const char *const three[] = {"a", "b", "c"};
    put_two();
    put_case("c", fixture_case("mnist", 2));
    json_t *report = joined(three, 3), *loss = at(report, "data/0/rows/0/losses/0");
    for (size_t share = 0; share < PARTS; share++) {
        double all[3 * SAMPLES], means[3], unused, mean, sd, scatter;
        size_t count = 0;
        for (size_t seed = 0; seed < 3; seed++) {
            size_t first = count;
            for (size_t i = 0; i < sample_count(seed); i++)
                all[count++] = sample_loss(seed, share, i);
            naive(all + first, count - first, &means[seed], &unused);
            assert_float_equal(
                json_number_value(json_array_get(json_array_get(at(loss, "by_seed"), seed), share)),
                means[seed], 1e-12);
        }
        naive(all, count, &mean, &sd);
        naive(means, 3, &unused, &scatter);
        assert_int_equal(json_integer_value(at(loss, "count")), count);
        assert_float_equal(report_number_at(at(loss, "mean"), share), mean, 1e-12);
        assert_float_equal(report_number_at(at(loss, "sd"), share), sd, 1e-12);
        double error = fmax(sd / sqrt((double)count), scatter / sqrt(3));
        assert_float_equal(report_number_at(at(loss, "error"), share), error, 1e-12);
    }
    json_decref(report);
}

/* Seeds whose means scatter more than their samples would make them. */
static void seeds_that_scatter_widen_the_error(void **state) {
    (void)state;
    const report_stat parts[] = {{100, 1, 0.1, NAN}, {100, 3, 0.1, NAN}};
    report_stat all = report_pool(parts, 2);
    assert_float_equal(all.mean, 2, 1e-15);
    assert_float_equal(all.error, 1, 1e-12); /* sd sqrt(2), over sqrt(2) */
    const report_stat alike[] = {{50, 1, 2, NAN}, {50, 1, 2, NAN}};
    assert_float_equal(report_pool(alike, 2).error, sqrt(98.0 * 4 / 99) / 10, 1e-12);
}

static void what_is_not_there_does_not_count(void **state) {
    (void)state;
    const report_stat parts[] = {{0, 5, 1, NAN}, {10, NAN, 1, NAN}, {4, 2, 1, NAN}};
    report_stat all = report_pool(parts, 3), none = report_pool(parts, 2);
    assert_true(all.count == 4 && all.mean == 2 && all.sd == 1 && all.error == 0.5);
    assert_true(none.count == 0 && isnan(none.mean) && isnan(none.sd) && isnan(none.error));
    const report_stat one[] = {{1, 7, NAN, NAN}};
    all = report_pool(one, 1);
    assert_true(all.count == 1 && all.mean == 7 && isnan(all.sd) && isnan(all.error));
}

static void single_numbers_are_averaged_over_seeds(void **state) {
    (void)state;
    put_two();
    json_t *report = joined(both, 2), *row = at(report, "data/0/rows/0");
    assert_float_equal(number(row, "agreement/correlation/mean"), 0.5625, 1e-15);
    assert_float_equal(number(row, "agreement/correlation/sd"), 0.125 / sqrt(2), 1e-15);
    assert_int_equal(json_integer_value(at(row, "agreement/correlation/count")), 2);
    assert_true(json_is_null(at(row, "agreement/class_correlation")));
    assert_float_equal(number(row, "sub_models/mean"), 100.5, 0);
    assert_float_equal(number(row, "timing/prepare_s/mean"), 10.5, 0);
    assert_float_equal(number(row, "auc/sd"), 0, 0);
    assert_int_equal(json_array_size(at(report, "data/0/seeds")), 2);
    assert_null(at(report, "data/0/settings/seed"));
    assert_int_equal(json_integer_value(at(report, "data/0/settings/truth")), 800);
    json_decref(report);
    /* one seed tells nothing about the spread */
    report = joined(both + 1, 1);
    assert_true(json_is_null(at(report, "data/0/rows/0/auc/sd")));
    assert_int_equal(json_integer_value(at(report, "data/0/settings/truth")), 0);
    json_decref(report);
}

static void permutations_and_the_truth_are_joined(void **state) {
    (void)state;
    put_two();
    json_t *report = joined(both, 2);
    assert_float_equal(number(report, "data/0/rows/0/permutations/sampled/mean"), 50, 0);
    assert_true(json_is_false(at(report, "data/0/rows/0/permutations/has_converged")));
    assert_int_equal(json_integer_value(at(report, "data/0/utilities/0/truth/coalitions")), 800);
    assert_float_equal(number(report, "data/0/utilities/0/truth/correlation/mean"), 0.75, 0);
    assert_int_equal(json_integer_value(at(report, "data/0/utilities/0/truth/correlation/count")),
                     1);
    json_decref(report);
    report = joined(both, 1);
    assert_true(json_is_true(at(report, "data/0/rows/0/permutations/has_converged")));
    json_decref(report);
    report = joined(both + 1, 1);
    assert_true(json_is_null(at(report, "data/0/utilities/0/truth")));
    json_decref(report);
    /* without permutations, without a rule of its own, without preparation */
    json_t *plain = fixture_case("mnist", 0);
    json_object_set_new(at(plain, "rows/0"), "permutations", json_null());
    json_object_set_new(at(plain, "rows/1/permutations"), "has_converged", json_null());
    json_object_set_new(at(plain, "rows/0/timing"), "prepare_s", json_null());
    put_case("a", plain);
    report = joined(both, 1);
    assert_true(json_is_null(at(report, "data/0/rows/0/permutations")));
    assert_true(json_is_null(at(report, "data/0/rows/1/permutations/has_converged")));
    assert_true(json_is_null(at(report, "data/0/rows/0/timing/prepare_s")));
    assert_float_equal(number(report, "data/0/rows/0/timing/answer_ms/mean"), 0.5, 0);
    json_decref(report);
}

static void the_machine_is_that_of_the_first_case(void **state) {
    (void)state;
    put_two();
    json_t *report = joined(both, 2);
    assert_string_equal(json_string_value(at(report, "machine/processor")), "Quick");
    assert_int_equal(json_integer_value(at(report, "machine/threads")), 2);
    assert_true(json_is_false(at(report, "machine/is_mixed")));
    json_decref(report);
    static const char *const changed[][3] = {{"machine", "threads", "1"}, {"", "fds", "\"0.0.9\""}};
    for (size_t i = 0; i < COUNT(changed); i++) {
        json_t *other = fixture_case("mnist", 1);
        json_object_set_new(i ? other : at(other, changed[i][0]), changed[i][1],
                            json_loads(changed[i][2], JSON_DECODE_ANY, NULL));
        put_case("b", other);
        report = joined(both, 2);
        assert_int_equal(json_integer_value(at(report, "machine/threads")), 2);
        assert_true(json_is_true(at(report, "machine/is_mixed")));
        json_decref(report);
    }
    put_two();
    json_t *resumed = fixture_case("mnist", 0);
    json_object_set_new(at(resumed, "machine"), "is_mixed", json_true());
    put_case("a", resumed);
    report = joined(both, 1);
    assert_true(json_is_true(at(report, "machine/is_mixed")));
    json_decref(report);
    json_t *here = eval_describe_machine(&(eval_game){.params = {.threads = 3}}, false);
    assert_true(strlen(report_text_of(here, "processor")) > 0);
    assert_int_equal(json_integer_value(at(here, "threads")), 3);
    json_decref(here);
}

static void times_of_interrupted_methods_count_only_alone(void **state) {
    (void)state;
    json_t *broken = fixture_case("mnist", 1);
    json_object_set_new(at(broken, "rows/0/timing"), "was_resumed", json_true());
    put_two();
    put_case("b", broken);
    json_t *report = joined(both, 2);
    assert_float_equal(number(report, "data/0/rows/0/timing/prepare_s/mean"), 10, 0);
    assert_int_equal(json_integer_value(at(report, "data/0/rows/0/timing/prepare_s/count")), 1);
    assert_true(json_is_false(at(report, "data/0/rows/0/timing/was_resumed")));
    /* answers are always timed as a whole */
    assert_int_equal(json_integer_value(at(report, "data/0/rows/0/timing/answer_ms/count")), 2);
    json_decref(report);
    report = joined(both + 1, 1);
    assert_float_equal(number(report, "data/0/rows/0/timing/prepare_s/mean"), 11, 0);
    assert_true(json_is_true(at(report, "data/0/rows/0/timing/was_resumed")));
    json_decref(report);
}

static void rows_of_some_seeds_only_are_kept(void **state) {
    (void)state;
    json_t *other = fixture_case("mnist", 1);
    json_array_set_new(at(other, "rows"), 0, fixture_row(1, "tmc", "paper"));
    put_two();
    put_case("b", other);
    json_t *report = joined(both, 2), *rows = at(report, "data/0/rows");
    static const char *const names[] = {"afds", "random", "tmc"};
    assert_int_equal(json_array_size(rows), 3);
    for (size_t r = 0; r < 3; r++)
        assert_string_equal(report_text_of(json_array_get(rows, r), "method"), names[r]);
    assert_int_equal(json_integer_value(at(rows, "0/losses/0/count")), sample_count(0));
    assert_true(json_is_null(at(rows, "0/losses/0/by_seed/1")));
    assert_true(json_is_null(at(rows, "2/losses/0/by_seed/0")));
    assert_int_equal(json_integer_value(at(rows, "1/losses/0/count")),
                     sample_count(0) + sample_count(1));
    json_decref(report);
}

static void data_stand_in_the_order_given(void **state) {
    (void)state;
    const char *const folders[] = {"b", "c", "a"};
    put_two();
    put_case("c", fixture_case("cifar10", 0));
    json_t *report = joined(folders, 3);
    assert_int_equal(json_array_size(at(report, "data")), 2);
    assert_string_equal(json_string_value(at(report, "data/0/name")), "mnist");
    assert_int_equal(json_integer_value(at(report, "data/0/seeds/0")), 1);
    assert_string_equal(json_string_value(at(report, "data/1/name")), "cifar10");
    /* the paper's figures are those of the set */
    assert_float_equal(number(report, "data/0/rows/0/paper/mean/1"), 0.9221, 0);
    assert_float_equal(number(report, "data/1/rows/0/paper/seconds"), 1120, 0);
    assert_true(json_is_null(at(report, "data/0/rows/1/paper")));
    json_decref(report);
    /* and of 100 players */
    json_t *few = fixture_case("cifar10", 0);
    json_object_set_new(at(few, "data"), "players", json_integer(99));
    put_case("c", few);
    report = joined(folders + 1, 1);
    assert_true(json_is_null(at(report, "data/0/rows/0/paper")));
    json_decref(report);
}

static void the_paper_has_nine_methods_on_two_sets(void **state) {
    (void)state;
    static const char *const methods[] = {"loo", "tmc",  "group-testing", "cs-shapley", "freeshap",
                                          "fds", "afds", "gfds",          "gfds+"};
    static const char *const data[] = {"mnist", "cifar10"};
    for (size_t d = 0; d < 2; d++)
        for (size_t m = 0; m < COUNT(methods); m++) {
            const report_paper_row *row = report_paper_find(data[d], methods[m]);
            assert_non_null(row);
            assert_true((row->seconds > 0) == (m > 0)); /* none for leave one out */
            for (size_t k = 0; k < REPORT_PAPER_SHARES; k++)
                assert_true(row->mean[k] > 0.4 && row->sd[k] > 0.1);
        }
    assert_null(report_paper_find("mnist", "freeshap/sample"));
    assert_null(report_paper_find("fashion-mnist", "fds"));
    assert_float_equal(report_paper_find("cifar10", "fds")->mean[3], 10.2148, 0);
    assert_float_equal(report_paper_find("mnist", "gfds+")->sd[3], 1.1251, 0);
}

/* ---- refusals ---- */

static void expect_refused(const char *const *folders, size_t count, fds_status status,
                           const char *const *phrases) {
    fds_error err = {0};
    json_t *report = NULL;
    fds_status got = join(folders, count, &report, &err);
    if (got != status)
        fail_msg("%s: %s", fds_status_name(got), err.text);
    assert_null(report);
    for (; *phrases; phrases++)
        expect_in(err.text, *phrases);
}
#define EXPECT_REFUSED(folders, count, status, ...) \
    expect_refused(folders, count, status, (const char *const[]){__VA_ARGS__, NULL})

static void no_cases_are_refused(void **state) {
    (void)state;
    EXPECT_REFUSED(both, 0, FDS_ERR_USAGE, "at least one");
}

static void unfinished_cases_are_refused(void **state) {
    (void)state;
    put_two();
    remove(scratch_path("b/case.json"));
    EXPECT_REFUSED(both, 2, FDS_ERR_NOT_FOUND, "b/case.json");
}

/* A member at a path (its holder, its key) replaced by something else. */
static void members_of_a_wrong_kind_are_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *holder, *key, *value, *place;
    } wrong[] = {
        {"", "kind", "\"fds bench report\"", "\"kind\" must be \"fds bench case\""},
        {"", "rows", "{}", "rows must be a list"},
        {"", "data", "[]", "data must be an object"},
        {"", "pictures", "null", "pictures must be a list"},
        {"data", "name", "7", "data.name must be a text"},
        {"data", "tests", "-1", "data.tests must be a whole number"},
        {"data", "players", "1.5", "data.players must be a whole number"},
        {"settings", "seed", "\"0\"", "settings.seed must be a whole number"},
        {"settings", "shares", "[0.1, 0.05]", "settings.shares[1]: shares must ascend"},
        {"settings", "shares", "[0.5, 1.5]", "settings.shares[1]"},
        {"settings", "shares", "[0, 0.5]", "settings.shares[0]"},
        {"settings", "shares", "[0.1]", "rows[0].losses[0].mean has 2 numbers; there are 1"},
        {"settings", "shares", "[0.1, null]", "settings.shares[1] must be a number"},
        {"utilities/0", "utility", "null", "utilities[0].utility must be a text"},
        {"utilities/0/losses/0", "set", "\"wrong\"",
         "utilities[0].losses[0].set must be \"correct\" or \"all\""},
        {"utilities/0/losses/0", "set", "\"correct|all\"",
         "utilities[0].losses[0].set must be \"correct\" or \"all\""},
        {"utilities/0/losses/0", "mean", "\"1\"", "utilities[0].losses[0].mean must be a number"},
        {"rows/1", "kind", "\"best\"", "rows[1].kind must be \"ours\" or"},
        {"rows/1", "is_per_sample", "1", "rows[1].is_per_sample must be true or false"},
        {"rows/1", "method", "\"afds\"", "rows[1] has the method of rows[0]"},
        {"rows/1", "auc", "0.5", "rows[1].auc must be an object or null"},
        {"rows/1/auc", "samples", "[\"1\"]", "rows[1].auc.samples must be a list of at most"},
        {"rows/1/losses/0", "samples", "[[1]]", "rows[1].losses[0].samples has 1 numbers"},
        {"rows/1/lds/0", "mean", "true", "rows[1].lds[0].mean must be a number"},
        {"rows/1", "losses_other_seed", "{}", "rows[1].losses_other_seed must be a list"},
        {"rows/1", "timing", "1", "rows[1].timing must be an object or null"},
        {"rows/1", "permutations", "50", "rows[1].permutations must be an object or null"},
        {"rows/1/permutations", "sampled", "-1",
         "rows[1].permutations.sampled must be a whole number"},
        {"rows/1/permutations", "has_converged", "0",
         "rows[1].permutations.has_converged must be true or"},
        {"utilities/0", "truth", "1", "utilities[0].truth must be an object or null"},
        {"utilities/0", "truth", "{\"coalitions\": 1.5}", "utilities[0].truth.coalitions must be"},
        {"machine", "processor", "1", "machine.processor must be a text"},
        {"machine", "threads", "null", "machine.threads must be a whole number"},
        {"rows/1/timing", "was_resumed", "null", "rows[1].timing.was_resumed must be"},
        {"rows/1/agreement", "efficiency_gap", "\"\"",
         "rows[1].agreement.efficiency_gap must be a number"},
        {"rows/1/losses/0", "removal", "\"side\"", "rows[1].losses[0].removal must be \"top\""},
        {"rows/1/losses/0", "mean", "[1]", "rows[1].losses[0].mean has 1 numbers"},
        {"rows/1/losses/0", "sd", "[1, 2, 3]", "rows[1].losses[0].sd has 3 numbers"},
        {"rows/1/losses/0", "mean", "[1, \"2\"]", "rows[1].losses[0].mean[1] must be a number"},
        {"rows/1/losses/0", "mean", "[1, 1e300]", "rows[1].losses[0].mean[1] must be a number"},
        {"rows/1/losses/0", "count", "99999999999", "rows[1].losses[0].count must be"},
        {"", "pictures", "[{\"method\": \"afds\", \"file\": \"../x.png\"}]", "pictures[0].file"},
        {"", "pictures", "[{\"method\": \"afds\", \"file\": \"/x.png\"}]", "pictures[0].file"},
    };
    put_two();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        json_t *json = fixture_case("mnist", 1);
        json_t *holder = *wrong[i].holder ? at(json, wrong[i].holder) : json;
        json_t *value = json_loads(wrong[i].value, JSON_DECODE_ANY, NULL);
        assert_non_null(value);
        assert_int_equal(json_object_set_new(holder, wrong[i].key, value), 0);
        put_case("b", json);
        EXPECT_REFUSED(both, 2, FDS_ERR_FORMAT, "b/case.json: ", wrong[i].place);
    }
}

static void missing_members_are_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *holder, *key, *place;
    } gone[] = {
        {"", "settings", "settings is missing; it must be an object"},
        {"data", "source", "data.source is missing"},
        {"", "machine", "machine is missing; it must be an object"},
        {"utilities/0", "truth", "utilities[0].truth is missing; it must be an object or null"},
        {"rows/0", "permutations", "rows[0].permutations is missing; it must be an object or null"},
        {"rows/0", "title", "rows[0].title is missing; it must be a text"},
        {"rows/0/losses/0", "sd", "rows[0].losses[0].sd is missing"},
        {"pictures", NULL, NULL}};
    put_two();
    for (size_t i = 0; gone[i].key; i++) {
        json_t *json = fixture_case("mnist", 1);
        json_object_del(*gone[i].holder ? at(json, gone[i].holder) : json, gone[i].key);
        put_case("b", json);
        EXPECT_REFUSED(both, 2, FDS_ERR_FORMAT, "b/case.json: ", gone[i].place);
    }
}

static void files_that_are_not_json_are_refused_with_the_line(void **state) {
    (void)state;
    static const char *const wrong[] = {"",         "{\n\"kind\":",
                                        "[1, 2",    "{\"a\": 1, \"a\": 2}",
                                        "\xff\xfe", "{\"kind\": \"fds bench case\"} x"};
    put_two();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        scratch_write(scratch_path("b/case.json"), wrong[i], strlen(wrong[i]));
        EXPECT_REFUSED(both, 2, FDS_ERR_FORMAT, "b/case.json: line ");
    }
    scratch_write(scratch_path("b/case.json"), "[]", 2);
    EXPECT_REFUSED(both, 2, FDS_ERR_FORMAT, "b/case.json: \"kind\" must be");
}

/* Every beginning of a case is refused, none is read beyond its end. */
static void torn_cases_are_refused(void **state) {
    (void)state;
    put_two();
    size_t size;
    char *text = scratch_read(scratch_path("b/case.json"), &size);
    for (size_t i = 0; i < size; i += IS_SLOW_BUILD ? 29 : 7) {
        scratch_write(scratch_path("b/case.json"), text, i);
        EXPECT_REFUSED(both, 2, FDS_ERR_FORMAT, "b/case.json");
    }
    free(text);
}

static void cases_of_one_set_differ_in_their_seeds_alone(void **state) {
    (void)state;
    static const struct {
        const char *holder, *key, *value, *said;
    } other[] = {
        {"settings", "network", "\"cnn\"", "network is \"lenet5\" in the first case, \"cnn\" now"},
        {"settings", "flipped", "0.2", "flipped is 0.1 in the first case, 0.2 now"},
        {"settings", "truth", "900", "truth is 800 in the first case, 900 now"},
        {"settings", "shares", "[0.05, 0.6]", "shares[1] is 0.5 in the first case, 0.6 now"},
        {"settings", "seed", "0", "seed 0 is also that of"},
        {"settings", "permutations", "5", "permutations is absent in the first case, 5 now"},
        {"data", "players", "50", "players is 100 in the first case, 50 now"},
        {"data", "source", "\"x\"", "source is \"mnist\" in the first case, \"x\" now"},
        {"rows/0", "utility", "\"retrain\"", "rows[0].utility is not that of \"afds\" in"},
    };
    put_two();
    for (size_t i = 0; i < COUNT(other); i++) {
        json_t *json = fixture_case("mnist", 1);
        json_object_set_new(at(json, other[i].holder), other[i].key,
                            json_loads(other[i].value, JSON_DECODE_ANY, NULL));
        put_case("b", json);
        EXPECT_REFUSED(both, 2, FDS_ERR_USAGE, "b/case.json: ", other[i].said, "mnist");
    }
    /* 0 is none */
    json_t *json = fixture_case("mnist", 1);
    json_object_set_new(at(json, "settings"), "flipped", json_integer(0));
    put_case("b", json);
    json_t *report = joined(both, 2);
    assert_float_equal(number(report, "data/0/settings/flipped"), 0.1, 0);
    json_decref(report);
}

/* ---- the whole report ---- */

static fds_status make_report(fds_error *err) {
    char a[512], b[512], out[512];
    snprintf(a, sizeof a, "%s", scratch_path("a"));
    snprintf(b, sizeof b, "%s", scratch_path("b"));
    snprintf(out, sizeof out, "%s", scratch_path("out"));
    const char *const dirs[] = {a, b};
    return fds_bench_report(out, dirs, 2, "fds bench", err);
}

static const char png[] = "\x89PNG\r\n\x1a\n and more";

/* Two cases with a picture each. */
static void put_pictures(void) {
    for (size_t seed = 0; seed < 2; seed++) {
        json_t *json = fixture_case("mnist", seed);
        json_object_set_new(json, "pictures",
                            json_pack("[{s:s, s:s}]", "method", "afds", "file", "afds.png"));
        put_case(both[seed], json);
        scratch_write(scratch_path(seed ? "b/afds.png" : "a/afds.png"), png, sizeof png);
    }
}

static json_t *read_report(void) {
    json_error_t mistake;
    json_t *json = json_load_file(scratch_path("out/report.json"), 0, &mistake);
    if (!json)
        fail_msg("line %d: %s", mistake.line, mistake.text);
    return json;
}

static void a_picture_that_is_gone_is_left_out(void **state) {
    (void)state;
    fds_error err;
    put_pictures();
    remove(scratch_path("a/afds.png"));
    expect_ok(make_report(&err), &err);
    json_t *json = read_report();
    /* of the first case that has one; outside the report's folder by its whole path */
    assert_string_equal(json_string_value(at(json, "data/0/pictures/0/file")),
                        scratch_path("b/afds.png"));
    json_decref(json);
    remove(scratch_path("b/afds.png"));
    expect_ok(make_report(&err), &err);
    json = read_report();
    assert_int_equal(json_array_size(at(json, "data/0/pictures")), 0);
    json_decref(json);
}

static void a_command_that_is_not_utf8_is_kept_as_far_as_it_is_ascii(void **state) {
    (void)state;
    fds_error err;
    json_t *report = NULL;
    char dir[512];
    put_two();
    snprintf(dir, sizeof dir, "%s", scratch_path("a"));
    const char *const dirs[] = {dir};
    expect_ok(report_join(dirs, 1, "fds \xff x", &report, &err), &err);
    assert_string_equal(json_string_value(at(report, "command")), "fds ? x");
    json_decref(report);
    expect_ok(report_join(dirs, 1, NULL, &report, &err), &err);
    assert_string_equal(json_string_value(at(report, "command")), "");
    json_decref(report);
}

/* A page can be made again from report.json. */
static void a_page_is_a_function_of_the_report(void **state) {
    (void)state;
    fds_error err;
    fds__text html = {0};
    size_t size;
    put_pictures();
    expect_ok(make_report(&err), &err);
    json_t *json = read_report();
    expect_ok(report_page(json, &html, &err), &err);
    char *page = scratch_read(scratch_path("out/report.html"), &size);
    assert_int_equal(html.used, size);
    assert_memory_equal(html.data, page, size);
    free(page);
    fds__free(html.data);
    json_decref(json);
}

static size_t count_in(const char *text, const char *part) {
    size_t count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* Eight curves fill a chart; the controls get none of their own. */
static void eight_methods_and_controls_share_a_chart(void **state) {
    (void)state;
    static const size_t methods[] = {7, 8, 9};
    for (size_t i = 0; i < COUNT(methods); i++) {
        fds_error err;
        fds__text html = {0};
        json_t *json = fixture_case("mnist", 0), *rows = at(json, "rows");
        for (size_t k = 1; k < methods[i]; k++) {
            char name[40];
            snprintf(name, sizeof name, "method %zu", k);
            json_array_insert_new(rows, 0, fixture_row(0, name, "ours"));
        }
        put_case("a", json);
        json_t *report = joined(both, 1);
        expect_ok(report_page(report, &html, &err), &err);
        assert_int_equal(count_in(html.data, "class=\"chart"), methods[i] > 8 ? 2 : 1);
        fds__free(html.data);
        json_decref(report);
    }
}

static void pictures_in_the_folder_are_named_from_there(void **state) {
    (void)state;
    fds_error err;
    put_pictures();
    mkdir(scratch_path("out"), 0777);
    rename(scratch_path("a"), scratch_path("out/a"));
    char out[512], a[520];
    snprintf(out, sizeof out, "%s", scratch_path("out"));
    snprintf(a, sizeof a, "%s//a", out);
    const char *const dirs[] = {a};
    expect_ok(fds_bench_report(out, dirs, 1, "fds bench", &err), &err);
    json_t *json = read_report();
    assert_string_equal(json_string_value(at(json, "data/0/pictures/0/file")), "a/afds.png");
    json_decref(json);
}

/* A process that was killed has left a part of each file. */
static void what_was_left_half_written_is_swept_away(void **state) {
    (void)state;
    static const char *const left[] = {"out/.report.html.1.tmp", "out/.report.csv.1.tmp",
                                       "out/.report.json.1.tmp"};
    fds_error err;
    put_two();
    mkdir(scratch_path("out"), 0777);
    for (size_t i = 0; i < COUNT(left); i++)
        scratch_write(scratch_path(left[i]), "half", 4);
    expect_ok(make_report(&err), &err);
    for (size_t i = 0; i < COUNT(left); i++)
        assert_false(fds__path_exists(scratch_path(left[i])));
}

/* Whatever a report lacks, neither page nor CSV reads what is not there. */
static void torn_reports_crash_nothing(void **state) {
    (void)state;
    put_two();
    json_t *whole = joined(both, 2);
    static const char *const holders[] = {"",
                                          "machine",
                                          "data/0",
                                          "data/0/settings",
                                          "data/0/utilities/0",
                                          "data/0/utilities/0/losses/0",
                                          "data/0/utilities/0/truth",
                                          "data/0/rows/0/permutations",
                                          "data/0/rows/0",
                                          "data/0/rows/0/losses/0",
                                          "data/0/rows/0/agreement",
                                          "data/0/rows/0/sub_models",
                                          "data/0/rows/0/timing",
                                          "data/0/rows/0/paper"};
    for (size_t i = 0; i < COUNT(holders); i++) {
        size_t members = json_object_size(*holders[i] ? at(whole, holders[i]) : whole);
        assert_true(members > 0);
        for (size_t k = 0; k < members; k++) {
            json_t *report = json_deep_copy(whole);
            json_t *holder = *holders[i] ? at(report, holders[i]) : report;
            void *member = json_object_iter(holder);
            for (size_t skip = 0; skip < k; skip++)
                member = json_object_iter_next(holder, member);
            json_object_del(holder, json_object_iter_key(member));
            fds__text html = {0}, csv = {0};
            assert_int_equal(report_page(report, &html, NULL), FDS_OK);
            assert_int_equal(report_csv(report, &csv, NULL), FDS_OK);
            if (strstr(html.data, "nan"))
                fail_msg("%s[%zu]: %.80s", holders[i], k, strstr(html.data, "nan") - 40);
            fds__free(html.data);
            fds__free(csv.data);
            json_decref(report);
        }
    }
    json_decref(whole);
}

/* ---- faults ---- */

static const char *const files[] = {"out/report.html", "out/report.csv", "out/report.json"};

/* Makes every call of a kind from number first on fail. The report then is the right one
 * nevertheless (a text may be copied in two ways), or a failure is told; and each file is the old
 * one or complete. */
static void fail_each(fds__fault_kind kind, uint64_t first, uint64_t stride, uint64_t least) {
    fds_error err;
    char *right[COUNT(files)];
    size_t size;
    expect_ok(make_report(&err), &err); /* the folder is there from now on */
    fds__fault_arm(kind, 0);
    expect_ok(make_report(&err), &err);
    uint64_t calls = fds__fault_arm(kind, 0), told = 0;
    for (size_t i = 0; i < COUNT(files); i++)
        right[i] = scratch_read(scratch_path(files[i]), &size);
    assert_true(calls > first + least);
    for (uint64_t n = first; n <= calls; n += stride) {
        for (size_t i = 0; i < COUNT(files); i++)
            scratch_write(scratch_path(files[i]), "old", 3);
        fds__fault_arm(kind, n);
        err.text[0] = 0;
        fds_status status = make_report(&err);
        fds__fault_arm(kind, 0);
        told += status != FDS_OK && err.text[0];
        for (size_t i = 0; i < COUNT(files); i++) {
            char *now = scratch_read(scratch_path(files[i]), &size);
            bool is_old = status != FDS_OK && strcmp(now, "old") == 0;
            if (!is_old && strcmp(now, right[i]) != 0)
                fail_msg("call %llu of %llu failed: %s is wrong", (unsigned long long)n,
                         (unsigned long long)calls, files[i]);
            free(now);
        }
    }
    assert_true(told + 7 > (calls - first) / stride + 1); /* three texts of two allocations each */
    for (size_t i = 0; i < COUNT(files); i++)
        free(right[i]);
}

/* Allocations while the cases are read, with a few around it. */
static uint64_t count_reading(void) {
    char path[512];
    fds_error err;
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    for (size_t i = 0; i < 2; i++) {
        json_t *json = NULL;
        snprintf(path, sizeof path, "%s", scratch_path(i ? "b/case.json" : "a/case.json"));
        expect_ok(report_case_read(path, &json, &err), &err);
        json_decref(json);
    }
    return fds__fault_arm(FDS__FAULT_ALLOC, 0) + 10;
}

/* Jansson's allocations fail too, but where it reads: its parser ends the program then. */
static void every_failure_is_reported_and_leaves_whole_files(void **state) {
    (void)state;
    put_pictures();
    fail_each(FDS__FAULT_IO, 1, 1, 20);
    fail_each(FDS__FAULT_ALLOC, 1, 1, 20);
    json_set_alloc_funcs(fds__alloc, fds__free);
    fail_each(FDS__FAULT_ALLOC, count_reading(), IS_SLOW_BUILD ? 7 : 1, 100);
    json_set_alloc_funcs(malloc, free);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(losses_are_those_of_all_samples_of_all_seeds),
        cmocka_unit_test(seeds_that_scatter_widen_the_error),
        cmocka_unit_test(what_is_not_there_does_not_count),
        IN_SCRATCH(single_numbers_are_averaged_over_seeds),
        IN_SCRATCH(permutations_and_the_truth_are_joined),
        IN_SCRATCH(the_machine_is_that_of_the_first_case),
        IN_SCRATCH(times_of_interrupted_methods_count_only_alone),
        IN_SCRATCH(rows_of_some_seeds_only_are_kept),
        IN_SCRATCH(data_stand_in_the_order_given),
        cmocka_unit_test(the_paper_has_nine_methods_on_two_sets),
        IN_SCRATCH(no_cases_are_refused),
        IN_SCRATCH(unfinished_cases_are_refused),
        IN_SCRATCH(members_of_a_wrong_kind_are_refused_by_name),
        IN_SCRATCH(missing_members_are_refused_by_name),
        IN_SCRATCH(files_that_are_not_json_are_refused_with_the_line),
        IN_SCRATCH(torn_cases_are_refused),
        IN_SCRATCH(cases_of_one_set_differ_in_their_seeds_alone),
        IN_SCRATCH(a_picture_that_is_gone_is_left_out),
        IN_SCRATCH(a_command_that_is_not_utf8_is_kept_as_far_as_it_is_ascii),
        IN_SCRATCH(a_page_is_a_function_of_the_report),
        IN_SCRATCH(eight_methods_and_controls_share_a_chart),
        IN_SCRATCH(pictures_in_the_folder_are_named_from_there),
        IN_SCRATCH(what_was_left_half_written_is_swept_away),
        IN_SCRATCH(torn_reports_crash_nothing),
        IN_SCRATCH(every_failure_is_reported_and_leaves_whole_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
