/* SPDX-License-Identifier: Apache-2.0
 * Two reports compared: what differs is listed with its size in standard errors, what does not is
 * not, and files that are no reports are refused. */
#include "report_fixture.h"

typedef struct {
    size_t count;
    fds_bench_change last;
    char data[64], method[64], what[128];
} heard;

static void hear(void *user, const fds_bench_change *change) {
    heard *h = user;
    h->count++;
    h->last = *change;
    snprintf(h->data, sizeof h->data, "%s", change->data);
    snprintf(h->method, sizeof h->method, "%s", change->method);
    snprintf(h->what, sizeof h->what, "%s", change->what);
}

static json_t *two_seeds(void) {
    static const char *const both[] = {"a", "b"};
    fds_error err;
    json_t *report = NULL;
    put_two();
    expect_ok(join(both, 2, &report, &err), &err);
    return report;
}

/* Writes both and compares them; both are taken over. */
static size_t compare(json_t *before, json_t *after, double sigmas, heard *h) {
    char paths[2][512];
    json_t *sides[] = {before, after};
    fds_error err;
    size_t compared = 0;
    for (size_t i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s", scratch_path(i ? "after.json" : "before.json"));
        assert_int_equal(json_dump_file(sides[i], paths[i], 0), 0);
        json_decref(sides[i]);
    }
    *h = (heard){0};
    expect_ok(fds_bench_compare(paths[0], paths[1], sigmas, hear, h, &compared, &err), &err);
    return compared;
}

/* Players, tests, inputs, seeds, truth, flipped, flipped_seeds and the network; of two rows 2 losses
 * by each seed's models, LDS, correlation, area and sub-models each; and the loss with all players.
 */
enum { SCOPE = 8, ALL = SCOPE + 2 * (2 * PARTS + 4) + 1 };

static void equal_reports_differ_in_nothing(void **state) {
    (void)state;
    heard h;
    assert_int_equal(compare(two_seeds(), two_seeds(), 0, &h), ALL);
    assert_int_equal(h.count, 0);
}

/* Moves a number by so many standard errors of one report. */
static json_t *moved(const char *path, double by) {
    json_t *report = two_seeds();
    json_real_set(at(report, path), number(report, path) + by);
    return report;
}

static void a_loss_is_reported_in_errors_of_both(void **state) {
    (void)state;
    heard h;
    json_t *before = two_seeds();
    double error = number(before, "data/0/rows/0/losses/0/error/1");
    double mean = number(before, "data/0/rows/0/losses/0/mean/1");
    json_t *after = moved("data/0/rows/0/losses/0/mean/1", 3 * error);
    assert_int_equal(compare(json_incref(before), json_incref(after), 2, &h), ALL);
    assert_int_equal(h.count, 1);
    assert_string_equal(h.data, "mnist");
    assert_string_equal(h.method, "afds");
    assert_string_equal(h.what, "loss by retrain:10, top 50 %, correct");
    assert_float_equal(h.last.before, mean, 1e-12);
    assert_float_equal(h.last.after, mean + 3 * error, 1e-12);
    assert_float_equal(h.last.sigmas, 3 / sqrt(2), 1e-9);
    /* less than the limit */
    compare(before, after, 2.2, &h);
    assert_int_equal(h.count, 0);
}

static void numbers_a_seed_have_errors_by_their_spread(void **state) {
    (void)state;
    heard h;
    /* sd 0.125 / sqrt(2) over two seeds: an error of 0.0625 */
    compare(two_seeds(), moved("data/0/rows/0/agreement/correlation/mean", 0.25), 1, &h);
    assert_int_equal(h.count, 1);
    assert_string_equal(h.what, "correlation with the truth");
    assert_float_equal(h.last.sigmas, 0.25 / 0.0625 / sqrt(2), 1e-9);
}

/* Both sides must know theirs; one of 0 is known. */
static void numbers_without_an_error_are_reported_when_much_differs(void **state) {
    (void)state;
    static const double by[] = {1e-9, 0.03, -0.03, 0.05, -0.05}; /* of an area of 0.75 */
    heard h;
    for (size_t i = 0; i < COUNT(by); i++) {
        json_t *after = moved("data/0/rows/1/auc/mean", by[i]);
        json_object_set_new(at(after, "data/0/rows/1/auc"), "sd", json_null());
        assert_int_equal(compare(two_seeds(), after, 1000, &h), ALL);
        assert_int_equal(h.count, fabs(by[i]) > 0.04);
        assert_true(!h.count || isnan(h.last.sigmas));
    }
    json_t *before = two_seeds();
    json_array_set_new(at(before, "data/0/rows/0/losses/0/error"), 1, json_null());
    compare(before, moved("data/0/rows/0/losses/0/mean/1", 100), 1000, &h);
    assert_int_equal(h.count, 1);
    compare(two_seeds(), moved("data/0/rows/1/auc/mean", 1e-9), 1000, &h);
    assert_int_equal(h.count, 1);
    assert_string_equal(h.method, "random");
    assert_string_equal(h.what, "AUC of mislabel detection");
    assert_true(isinf(h.last.sigmas) && h.last.sigmas > 0);
}

/* What was measured on has no error; texts have no numbers. */
static void other_players_samples_seeds_and_settings_are_reported(void **state) {
    (void)state;
    static const struct {
        const char *holder, *key, *value, *what;
        double before, after;
    } other[] = {
        {"data/0", "players", "50", "players", 100, 50},
        {"data/0", "tests", "41", "tests", 40, 41},
        {"data/0", "inputs", "0", "inputs", 300, 0},
        {"data/0", "seeds", "[0, 1, 2]", "seeds", 2, 3},
        {"data/0", "seeds", "[0, 7]", "seed", 1, 7},
        {"data/0", "seeds", "[3, 1]", "seed", 0, 3},
        {"data/0/settings", "truth", "400", "truth", 800, 400},
        {"data/0/settings", "flipped", "0.2", "flipped", 0.1, 0.2},
        {"data/0/settings", "network", "\"mlp\"", "network lenet5 before, mlp after", NAN, NAN}};
    for (size_t i = 0; i < COUNT(other); i++) {
        heard h;
        json_t *after = two_seeds();
        json_object_set_new(at(after, other[i].holder), other[i].key,
                            json_loads(other[i].value, JSON_DECODE_ANY, NULL));
        assert_int_equal(compare(two_seeds(), after, 1000, &h), ALL);
        assert_int_equal(h.count, 1);
        assert_string_equal(h.data, "mnist");
        assert_string_equal(h.method, "");
        assert_string_equal(h.what, other[i].what);
        bool is_text = isnan(other[i].before);
        assert_true(is_text ? isnan(h.last.before) && isnan(h.last.after)
                            : h.last.before == other[i].before && h.last.after == other[i].after);
        assert_true(isinf(h.last.sigmas));
    }
}

static void the_loss_with_all_players_is_compared_too(void **state) {
    (void)state;
    heard h;
    compare(two_seeds(), moved("data/0/utilities/0/losses/0/mean", 2), 2, &h);
    assert_int_equal(h.count, 1);
    assert_string_equal(h.method, "(all players)");
    assert_string_equal(h.what, "loss by retrain:10, correct");
}

static void times_are_not_compared(void **state) {
    (void)state;
    heard h;
    assert_int_equal(compare(two_seeds(), moved("data/0/rows/0/timing/prepare_s/mean", 100), 0, &h),
                     ALL);
    assert_int_equal(h.count, 0);
}

/* Methods and data that only one report has are reported as such. */
static void what_only_one_has_is_reported(void **state) {
    (void)state;
    heard h;
    json_t *other = two_seeds();
    json_object_set_new(at(other, "data/0/rows/1"), "method", json_string("tmc"));
    assert_int_equal(compare(json_incref(other), two_seeds(), 0, &h), SCOPE + 2 * PARTS + 5 + 2);
    assert_int_equal(h.count, 2);
    assert_string_equal(h.method, "random");
    assert_string_equal(h.what, "only after");
    assert_true(isnan(h.last.before) && isnan(h.last.after));
    json_array_remove(at(other, "data/0/rows"), 1);
    compare(two_seeds(), other, 0, &h);
    assert_int_equal(h.count, 1);
    assert_string_equal(h.method, "random");
    assert_string_equal(h.what, "only before");
    other = two_seeds();
    json_object_set_new(at(other, "data/0"), "name", json_string("cifar10"));
    assert_int_equal(compare(two_seeds(), other, 0, &h), 2);
    assert_int_equal(h.count, 2);
    assert_string_equal(h.data, "cifar10");
    assert_string_equal(h.method, "");
    assert_string_equal(h.what, "only after");
}

/* Other shares, and what was not measured, are passed over. */
static void only_what_both_have_is_compared(void **state) {
    (void)state;
    heard h;
    json_t *other = two_seeds();
    json_array_set_new(at(other, "data/0/settings/shares"), 1, json_real(0.6));
    assert_int_equal(compare(two_seeds(), other, 0, &h), ALL - 4);
    other = two_seeds();
    json_array_set_new(at(other, "data/0/rows/0/losses/0/mean"), 0, json_null());
    json_object_set_new(at(other, "data/0/rows/0"), "auc", json_null());
    assert_int_equal(compare(two_seeds(), other, 0, &h), ALL - 2);
    assert_int_equal(h.count, 0);
}

/* ---- refusals ---- */

static void expect_refused(json_t *after, fds_status status, const char *said) {
    char before_path[512], after_path[512];
    fds_error err = {0};
    size_t compared = 7;
    json_t *before = two_seeds();
    snprintf(before_path, sizeof before_path, "%s", scratch_path("before.json"));
    snprintf(after_path, sizeof after_path, "%s", scratch_path("after.json"));
    json_dump_file(before, before_path, 0);
    json_dump_file(after, after_path, 0);
    json_decref(before);
    json_decref(after);
    assert_int_equal(fds_bench_compare(before_path, after_path, 2, NULL, NULL, &compared, &err),
                     status);
    expect_in(err.text, "after.json: ");
    expect_in(err.text, said);
    assert_int_equal(compared, 7);
}

static void malformed_reports_are_refused_by_place(void **state) {
    (void)state;
    static const struct {
        const char *holder, *key, *value, *said;
    } wrong[] = {
        {"", "kind", "\"fds bench case\"", "\"kind\" must be \"fds bench report\""},
        {"", "data", "{}", "data must be a list"},
        {"data/0", "name", "1", "data[0].name must be a text"},
        {"data/0", "players", "null", "data[0].players must be a whole number"},
        {"data/0", "seeds", "[0.5]", "data[0].seeds[0] must be a whole number"},
        {"data/0", "utilities", "null", "data[0].utilities must be a list"},
        {"data/0/settings", "shares", "[0.5, 0.1]", "data[0].settings.shares[1]"},
        {"data/0/rows/1", "method", "\"afds\"",
         "data[0].rows[1] has the method of data[0].rows[0]"},
        {"data/0/rows/1", "auc", "0.5", "data[0].rows[1].auc must be an object or null"},
        {"data/0/rows/1/auc", "count", "null", "data[0].rows[1].auc.count must be a whole"},
        {"data/0/rows/1/losses/0", "error", "[1]", "data[0].rows[1].losses[0].error has 1 numbers"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        json_t *report = two_seeds();
        json_object_set_new(*wrong[i].holder ? at(report, wrong[i].holder) : report, wrong[i].key,
                            json_loads(wrong[i].value, JSON_DECODE_ANY, NULL));
        expect_refused(report, FDS_ERR_FORMAT, wrong[i].said);
    }
    json_t *report = two_seeds();
    json_array_append(at(report, "data"), at(report, "data/0"));
    expect_refused(report, FDS_ERR_FORMAT, "data[1] has the name of data[0]");
}

static void missing_files_and_sigmas_below_0_are_refused(void **state) {
    (void)state;
    fds_error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path("nowhere.json"));
    assert_int_equal(fds_bench_compare(path, path, 2, NULL, NULL, NULL, &err), FDS_ERR_NOT_FOUND);
    expect_in(err.text, "nowhere.json");
    assert_int_equal(fds_bench_compare(path, path, -1, NULL, NULL, NULL, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_bench_compare(path, path, NAN, NULL, NULL, NULL, &err), FDS_ERR_USAGE);
}

static void every_failure_is_reported(void **state) {
    (void)state;
    heard h;
    char paths[2][512];
    snprintf(paths[0], sizeof *paths, "%s", scratch_path("before.json"));
    snprintf(paths[1], sizeof *paths, "%s", scratch_path("after.json"));
    compare(two_seeds(), moved("data/0/rows/0/losses/0/mean/1", 100), 0, &h);
    for (int round = 0; round < 2; round++) {
        fds__fault_kind kind = round ? FDS__FAULT_ALLOC : FDS__FAULT_IO;
        fds__fault_arm(kind, 0);
        assert_int_equal(fds_bench_compare(paths[0], paths[1], 0, hear, &h, NULL, NULL), FDS_OK);
        uint64_t calls = fds__fault_arm(kind, 0);
        for (uint64_t n = 1; n <= calls; n++) {
            fds_error err = {0};
            fds__fault_arm(kind, n);
            fds_status status = fds_bench_compare(paths[0], paths[1], 0, hear, &h, NULL, &err);
            fds__fault_arm(kind, 0);
            assert_true(status != FDS_OK && err.text[0]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(equal_reports_differ_in_nothing),
        IN_SCRATCH(a_loss_is_reported_in_errors_of_both),
        IN_SCRATCH(numbers_a_seed_have_errors_by_their_spread),
        IN_SCRATCH(numbers_without_an_error_are_reported_when_much_differs),
        IN_SCRATCH(other_players_samples_seeds_and_settings_are_reported),
        IN_SCRATCH(the_loss_with_all_players_is_compared_too),
        IN_SCRATCH(times_are_not_compared),
        IN_SCRATCH(what_only_one_has_is_reported),
        IN_SCRATCH(only_what_both_have_is_compared),
        IN_SCRATCH(malformed_reports_are_refused_by_place),
        IN_SCRATCH(missing_files_and_sigmas_below_0_are_refused),
        IN_SCRATCH(every_failure_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
