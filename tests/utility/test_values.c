/* SPDX-License-Identifier: Apache-2.0
 * Files of values: every format as its specification has it, numbers that survive, mistakes that
 * are named, and old files that stand when writing fails. */
#include "../base/scratch.h"

#include "base/base.h"

#include <jansson.h>
#include <math.h>

/* Two players, two test samples, three classes; names that need care. */
enum { PLAYERS = 2, TESTS = 2, CLASSES = 3 };
static const char *const player_names[] = {"plain", "a \"b\", c\nd"};
static const char *const class_names[] = {"zero", "one, two", "f\xc3\xbcnf"};
static const uint32_t player_labels[] = {1, 2}, test_samples[] = {7, 40}, labels[] = {2, 0};
static const double values[PLAYERS * TESTS] = {0.1, -1.0 / 3, 2e-300, 12345678.9};
static const double errors[PLAYERS * TESTS] = {0.01, 1, 0, 5e-324};

static fds__values sample(void) {
    return (fds__values){.players = PLAYERS,
                        .player_names = player_names,
                        .player_labels = player_labels,
                        .classes = CLASSES,
                        .class_names = class_names,
                        .tests = TESTS,
                        .test_samples = test_samples,
                        .target_labels = labels,
                        .values = values,
                        .errors = errors};
}

/* Every label of each test sample: value p.tl for player p, test sample t, label l. */
static const double all_values[PLAYERS * TESTS * CLASSES] = {0.00, 0.01, 0.02, 0.10, 0.11, 0.12,
                                                             1.00, 1.01, 1.02, 1.10, 1.11, 1.12};

static fds__values sample_all(void) {
    fds__values v = sample();
    v.target_labels = NULL;
    v.test_samples = NULL;
    v.values = all_values;
    v.errors = NULL;
    return v;
}

static fds__values sample_mean(void) {
    fds__values v = sample();
    v.is_mean = true;
    v.tests = 0;
    return v;
}

static const char *save(const fds__values *v, const char *name) {
    fds_error err = {0};
    const char *path = scratch_path(name);
    if (fds__values_save(v, path, &err) != FDS_OK)
        fail_msg("%s: %s", name, err.text);
    return path;
}

/* ---- CSV ---- */

static void csv_has_a_line_for_each_test_label_and_player(void **state) {
    (void)state;
    const fds__values v = sample();
    scratch_expect(save(&v, "v.csv"),
                   "test,label,player,player_label,value,standard_error\n"
                   "7,f\xc3\xbcnf,plain,\"one, two\",0.1,0.01\n"
                   "7,f\xc3\xbcnf,\"a \"\"b\"\", c\nd\",f\xc3\xbcnf,2e-300,0\n"
                   "40,zero,plain,\"one, two\",-0.3333333333333333,1\n"
                   "40,zero,\"a \"\"b\"\", c\nd\",f\xc3\xbcnf,12345678.9,4.94065645841247e-324\n");
}

static void csv_of_a_mean_has_a_line_for_each_player(void **state) {
    (void)state;
    const fds__values v = sample_mean();
    scratch_expect(save(&v, "v.CSV"), "player,player_label,value,standard_error\n"
                                      "plain,\"one, two\",0.1,0.01\n"
                                      "\"a \"\"b\"\", c\nd\",f\xc3\xbcnf,-0.3333333333333333,1\n");
}

static void csv_names_are_never_run_as_formulas(void **state) {
    (void)state;
    static const char *const odd[] = {"=1+1", "-1"};
    fds_values v = sample_mean();
    v.player_names = odd;
    size_t size;
    char *text = scratch_read(save(&v, "v.csv"), &size);
    expect_in(text, "\n\"'=1+1\",");
    expect_in(text, "\n-1,");
    free(text);
}

static void csv_of_all_labels_names_each(void **state) {
    (void)state;
    fds__values v = sample_all();
    v.players = 1;
    scratch_expect(save(&v, "v.csv"), "test,label,player,player_label,value,standard_error\n"
                                      "0,zero,plain,\"one, two\",0,0\n"
                                      "0,\"one, two\",plain,\"one, two\",0.01,0\n"
                                      "0,f\xc3\xbcnf,plain,\"one, two\",0.02,0\n"
                                      "1,zero,plain,\"one, two\",0.1,0\n"
                                      "1,\"one, two\",plain,\"one, two\",0.11,0\n"
                                      "1,f\xc3\xbcnf,plain,\"one, two\",0.12,0\n");
}

/* Numbers of all magnitudes come back as the same bits, and a file of many buffers is whole. */
static void numbers_in_csv_are_read_back_as_the_same_bits(void **state) {
    (void)state;
    enum { COUNT_OF = 5000 };
    double *numbers = calloc(COUNT_OF, sizeof *numbers);
    const char **names = calloc(COUNT_OF, sizeof *names);
    uint32_t *of = calloc(COUNT_OF, sizeof *of);
    assert_true(numbers && names && of);
    fds_rng rng = fds_rng_make(1, 99, 0, 0);
    for (size_t i = 0; i < COUNT_OF; i++) {
        numbers[i] = fds_rng_normal(&rng) * exp(20 * fds_rng_normal(&rng));
        names[i] = "p";
    }
    fds__values v = sample_mean();
    v.players = COUNT_OF;
    v.player_names = names;
    v.player_labels = of;
    v.values = v.errors = numbers;
    size_t size, i = 0;
    char *text = scratch_read(save(&v, "v.csv"), &size);
    assert_true(size > 1 << 16);
    for (char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1, i++) {
        char *end;
        assert_int_equal(strncmp(line, "p,zero,", 7), 0);
        double value = strtod(line + 7, &end), error = strtod(end + 1, &end);
        assert_true(value == numbers[i] && error == numbers[i] && *end == '\n');
    }
    assert_int_equal(i, COUNT_OF);
    free(text);
    free(numbers);
    free(names);
    free(of);
}

/* ---- NPY ---- */

/* Checks the header and gives the numbers after it; the caller frees *data. */
static const double *read_npy(const char *path, const char *shape, size_t count, char **data) {
    char expected[128];
    size_t size;
    *data = scratch_read(path, &size);
    assert_memory_equal(*data, "\x93NUMPY\x01\x00", 8);
    size_t length = (uint8_t)(*data)[8] + 256u * (uint8_t)(*data)[9];
    assert_int_equal((10 + length) % 64, 0);
    snprintf(expected, sizeof expected, "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }",
             shape);
    assert_memory_equal(*data + 10, expected, strlen(expected));
    for (size_t i = 10 + strlen(expected); i < 10 + length - 1; i++)
        assert_int_equal((*data)[i], ' ');
    assert_int_equal((*data)[10 + length - 1], '\n');
    assert_int_equal(size, 10 + length + count * sizeof(double));
    return (const double *)(const void *)(*data + 10 + length);
}

static void npy_has_values_then_errors_by_test_and_player(void **state) {
    (void)state;
    const fds__values v = sample();
    char *data;
    const double *got = read_npy(save(&v, "v.npy"), "(2, 2, 2)", 8, &data);
    for (size_t t = 0; t < TESTS; t++)
        for (size_t p = 0; p < PLAYERS; p++) {
            assert_true(got[t * PLAYERS + p] == values[p * TESTS + t]);
            assert_true(got[TESTS * PLAYERS + t * PLAYERS + p] == errors[p * TESTS + t]);
        }
    free(data);
}

static void npy_of_all_labels_has_four_dimensions(void **state) {
    (void)state;
    const fds__values v = sample_all();
    char *data;
    const double *got = read_npy(save(&v, "v.npy"), "(2, 2, 3, 2)", 24, &data);
    for (size_t t = 0; t < TESTS; t++)
        for (size_t l = 0; l < CLASSES; l++)
            for (size_t p = 0; p < PLAYERS; p++) {
                size_t at = (t * CLASSES + l) * PLAYERS + p;
                double expected = (double)p + (double)t / 10 + (double)l / 100;
                assert_true(fabs(got[at] - expected) < 1e-15 && got[12 + at] == 0);
            }
    free(data);
}

static void npy_of_a_mean_has_two_dimensions(void **state) {
    (void)state;
    const fds__values v = sample_mean();
    char *data;
    const double *got = read_npy(save(&v, "v.npy"), "(2, 2)", 4, &data);
    assert_true(got[0] == values[0] && got[1] == values[1] && got[3] == errors[1]);
    free(data);
}

/* ---- JSON ---- */

static json_t *load(const char *path) {
    json_error_t mistake;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &mistake);
    if (!root)
        fail_msg("%s: line %d: %s", path, mistake.line, mistake.text);
    return root;
}

static const char *text_at(const json_t *list, size_t i, const char *key) {
    return json_string_value(json_object_get(json_array_get(list, i), key));
}

static void json_says_the_same(void **state) {
    (void)state;
    const fds__values v = sample();
    json_t *root = load(save(&v, "v.json"));
    const json_t *players = json_object_get(root, "players"),
                 *results = json_object_get(root, "results");
    assert_int_equal(json_array_size(players), PLAYERS);
    assert_string_equal(text_at(players, 1, "name"), player_names[1]);
    assert_string_equal(text_at(players, 0, "label"), "one, two");
    assert_int_equal(json_array_size(json_object_get(root, "classes")), CLASSES);
    assert_int_equal(json_array_size(results), TESTS);
    for (size_t t = 0; t < TESTS; t++) {
        const json_t *result = json_array_get(results, t);
        assert_int_equal(json_integer_value(json_object_get(result, "test")), test_samples[t]);
        assert_string_equal(text_at(results, t, "label"), class_names[labels[t]]);
        for (size_t p = 0; p < PLAYERS; p++) {
            const json_t *value = json_array_get(json_object_get(result, "values"), p),
                         *error = json_array_get(json_object_get(result, "standard_errors"), p);
            assert_true(json_real_value(value) == values[p * TESTS + t]);
            assert_true(json_real_value(error) == errors[p * TESTS + t]);
        }
    }
    json_decref(root);
}

static void json_of_a_mean_has_one_result_without_a_test(void **state) {
    (void)state;
    const fds__values v = sample_mean();
    json_t *root = load(save(&v, "v.json"));
    const json_t *results = json_object_get(root, "results");
    assert_int_equal(json_array_size(results), 1);
    assert_int_equal(json_object_size(json_array_get(results, 0)), 2);
    json_decref(root);
}

static void json_of_names_that_are_no_text_has_question_marks(void **state) {
    (void)state;
    static const char *const odd[] = {"a\xff\xfe", "b\x01"};
    fds__values v = sample();
    v.player_names = odd;
    json_t *root = load(save(&v, "v.json"));
    assert_string_equal(text_at(json_object_get(root, "players"), 0, "name"), "a??");
    assert_string_equal(text_at(json_object_get(root, "players"), 1, "name"), "b\x01");
    json_decref(root);
}

/* ---- errors that are not known ---- */

static void unknown_errors_are_nan_and_null(void **state) {
    (void)state;
    const double unknown[] = {-(double)NAN, 0.5};
    fds__values v = sample_mean();
    v.errors = unknown;
    scratch_expect(save(&v, "v.csv"),
                   "player,player_label,value,standard_error\n"
                   "plain,\"one, two\",0.1,nan\n"
                   "\"a \"\"b\"\", c\nd\",f\xc3\xbcnf,-0.3333333333333333,0.5\n");
    char *data;
    const double *got = read_npy(save(&v, "v.npy"), "(2, 2)", 4, &data);
    assert_true(isnan(got[2]) && got[3] == 0.5);
    free(data);
    json_t *root = load(save(&v, "v.json"));
    const json_t *result = json_array_get(json_object_get(root, "results"), 0),
                 *list = json_object_get(result, "standard_errors");
    assert_true(json_is_null(json_array_get(list, 0)));
    assert_true(json_real_value(json_array_get(list, 1)) == 0.5);
    json_decref(root);
}

/* ---- mistakes ---- */

static void refuse(fds__values v, fds_status status, const char *part) {
    fds_error err = {0};
    assert_int_equal(fds__values_save(&v, scratch_path("v.csv"), &err), status);
    expect_in(err.text, part);
    assert_int_equal(scratch_entries(), 0);
}

static void mistakes_are_named_and_nothing_is_written(void **state) {
    (void)state;
    static const double bad[] = {0, NAN, 0, INFINITY};
    static const uint32_t far[] = {0, 3};
    fds__values v = sample();
    v.players = 0;
    refuse(v, FDS_ERR_USAGE, "no values");
    v = sample();
    v.tests = 0;
    refuse(v, FDS_ERR_USAGE, "no values");
    v = sample();
    v.player_labels = far;
    refuse(v, FDS_ERR_USAGE, "player 1: label 3, there are 3 classes");
    v = sample();
    v.target_labels = far;
    refuse(v, FDS_ERR_USAGE, "test 1: label 3, there are 3 classes");
    v = sample();
    v.values = bad;
    refuse(v, FDS_ERR_DIVERGED, "player 0 in column 1");
    v = sample();
    v.errors = bad; /* an infinite one; that it is not known is fine */
    refuse(v, FDS_ERR_DIVERGED, "player 1 in column 1");
}

static void only_known_endings_are_taken(void **state) {
    (void)state;
    static const char *const wrong[] = {"v", "v.txt", "csv", "v.csv.gz", "v.csv/", "a.csv/v", ""};
    static const char *const right[] = {"v.csv", ".npy", "a.b/v.JSON"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        fds_error err = {0};
        assert_int_equal(fds__values_check_path(wrong[i], &err), FDS_ERR_USAGE);
        expect_in(err.text, ".csv, .npy or .json");
    }
    for (size_t i = 0; i < COUNT(right); i++)
        assert_int_equal(fds__values_check_path(right[i], NULL), FDS_OK);
}

/* ---- failures ---- */

static void fail_each(fds__fault_kind kind, const char *name) {
    const fds__values v = sample();
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path(name));
    fds__fault_arm(kind, 0);
    save(&v, name);
    uint64_t calls = fds__fault_arm(kind, 0);
    assert_true(calls > 0);
    for (uint64_t n = 1; n <= calls; n++) {
        fds_error err = {0};
        scratch_write(path, "old", 3);
        fds__fault_arm(kind, n);
        fds_status status = fds__values_save(&v, path, &err);
        fds__fault_arm(kind, 0);
        assert_int_equal(status, kind == FDS__FAULT_ALLOC ? FDS_ERR_NOMEM : FDS_ERR_IO);
        assert_true(err.text[0]);
        /* the last file operation syncs the folder: by then the new file stands, complete */
        if (kind == FDS__FAULT_ALLOC || n < calls)
            scratch_expect(path, "old");
        assert_int_equal(scratch_entries(), 1);
    }
    unlink(path);
}

static void a_failure_leaves_the_old_file(void **state) {
    (void)state;
    static const char *const names[] = {"v.csv", "v.npy", "v.json"};
    for (size_t i = 0; i < COUNT(names); i++) {
        fail_each(FDS__FAULT_ALLOC, names[i]);
        fail_each(FDS__FAULT_IO, names[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void) {
    json_set_alloc_funcs(fds__alloc, fds__free);
    const struct CMUnitTest tests[] = {
        TEST(csv_has_a_line_for_each_test_label_and_player),
        TEST(csv_of_a_mean_has_a_line_for_each_player),
        TEST(csv_names_are_never_run_as_formulas),
        TEST(csv_of_all_labels_names_each),
        TEST(numbers_in_csv_are_read_back_as_the_same_bits),
        TEST(npy_has_values_then_errors_by_test_and_player),
        TEST(npy_of_all_labels_has_four_dimensions),
        TEST(npy_of_a_mean_has_two_dimensions),
        TEST(json_says_the_same),
        TEST(json_of_a_mean_has_one_result_without_a_test),
        TEST(json_of_names_that_are_no_text_has_question_marks),
        TEST(unknown_errors_are_nan_and_null),
        TEST(mistakes_are_named_and_nothing_is_written),
        TEST(only_known_endings_are_taken),
        TEST(a_failure_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
