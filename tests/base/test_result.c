/* SPDX-License-Identifier: Apache-2.0
 * Results and their files: every format as its specification has it, numbers that survive, names
 * that need care, mistakes that are named, and old files that stand when writing fails. */
#include "result_fixture.h"

#include <pthread.h>

/* Two players, two predictions, three classes; names that need care. */
enum { PLAYERS = 2, TESTS = 2, CLASSES = 3, HUGE_NAME = 1 << 20 };
static const char odd_name[] = "a \"b\", c\nd";
static const double values[TESTS * PLAYERS] = {0.1, 2e-300, -1.0 / 3, 12345678.9};
static const double errors[TESTS * PLAYERS] = {0.01, 0, 1, 5e-324};

static void name_all(fds_result *r) {
    name_player(r, 0, "plain", NULL, 1, 1);
    if (r->players > 1)
        name_player(r, 1, odd_name, "M\xc3\xbcller, Ltd", 2, 3);
    name_class(r, 0, "zero");
    name_class(r, 1, "one, two");
    name_class(r, 2, "f\xc3\xbcnf");
}

static fds_result *sample(void) {
    fds_result *r = new_result(PLAYERS, TESTS, CLASSES);
    name_all(r);
    memcpy(r->values, values, sizeof values);
    memcpy(r->errors, errors, sizeof errors);
    r->samples[0] = 7;
    r->samples[1] = 40;
    r->labels[0] = 2;
    r->labels[1] = 0;
    fds__result_average(r);
    return r;
}

/* Every label of each test sample: value p.tl for player p, test sample t, label l; exact. */
static fds_result *sample_all(size_t players) {
    fds_result *r = new_result(players, TESTS * CLASSES, CLASSES);
    name_all(r);
    r->has_all_labels = r->is_exact = true;
    for (size_t k = 0; k < r->predictions; k++) {
        r->samples[k] = (uint32_t)(k / CLASSES);
        r->labels[k] = (uint32_t)(k % CLASSES);
        for (size_t i = 0; i < players; i++)
            r->values[k * players + i] =
                (double)i + (double)(k / CLASSES) / 10 + (double)(k % CLASSES) / 100;
    }
    fds__result_average(r);
    return r;
}

static fds_result *sample_mean(void) {
    fds_result *r = new_result(PLAYERS, 1, CLASSES);
    name_all(r);
    r->is_mean = true;
    memcpy(r->values, values, PLAYERS * sizeof *values);
    memcpy(r->errors, errors, PLAYERS * sizeof *errors);
    fds__result_average(r);
    return r;
}

static const char *save(const fds_result *r, const char *name) {
    fds_error err = {0};
    const char *path = scratch_path(name);
    expect_ok(fds_result_save(r, path, &err), &err);
    return path;
}

/* ---- CSV ---- */

#define HEAD "rank,player,player_label,provider,samples,value,standard_error\n"
#define ODD "\"a \"\"b\"\", c\nd\",f\xc3\xbcnf,\"M\xc3\xbcller, Ltd\",3,"

static void csv_has_the_players_of_each_prediction_by_falling_value(void **state) {
    (void)state;
    fds_result *r = sample();
    scratch_expect(save(r, "v.csv"),
                   "test,label," HEAD "7,f\xc3\xbcnf,1,plain,\"one, two\",,1,0.1,0.01\n"
                   "7,f\xc3\xbcnf,2," ODD "2e-300,0\n"
                   "40,zero,1," ODD "12345678.9,4.94065645841247e-324\n"
                   "40,zero,2,plain,\"one, two\",,1,-0.3333333333333333,1\n");
    fds_result_free(r);
}

static void csv_of_a_mean_has_neither_test_nor_label(void **state) {
    (void)state;
    fds_result *r = sample_mean();
    scratch_expect(save(r, "v.CSV"), HEAD "1,plain,\"one, two\",,1,0.1,0.01\n2," ODD "2e-300,0\n");
    fds_result_free(r);
}

static void csv_of_all_labels_names_each(void **state) {
    (void)state;
    fds_result *r = sample_all(1);
    scratch_expect(save(r, "v.csv"),
                   "test,label," HEAD "0,zero,1,plain,\"one, two\",,1,0,0\n"
                   "0,\"one, two\",1,plain,\"one, two\",,1,0.01,0\n"
                   "0,f\xc3\xbcnf,1,plain,\"one, two\",,1,0.02,0\n"
                   "1,zero,1,plain,\"one, two\",,1,0.1,0\n"
                   "1,\"one, two\",1,plain,\"one, two\",,1,0.11,0\n"
                   "1,f\xc3\xbcnf,1,plain,\"one, two\",,1,0.12000000000000001,0\n");
    fds_result_free(r);
}

static void inputs_without_a_number_stand_by_their_names(void **state) {
    (void)state;
    fds_result *r = sample();
    r->samples[0] = FDS__UNKNOWN;
    name_input(r, 0, "folder, new/\"a\".png");
    name_input(r, 1, "test sample 40"); /* its number is known, and stands */
    csv table = csv_read(save(r, "v.csv"));
    assert_string_equal(csv_at(&table, 1, "test"), "folder, new/\"a\".png");
    assert_string_equal(csv_at(&table, 3, "test"), "40");
    csv_free(&table);
    json_t *root = load_file(save(r, "v.json"));
    const json_t *results = json_object_get(root, "results");
    assert_string_equal(text_of(json_array_get(results, 0), "test"), "folder, new/\"a\".png");
    assert_int_equal(int_of(json_array_get(results, 1), "test"), 40);
    json_decref(root);
    fds_result_free(r);
}

static void names_of_any_kind_are_read_back(void **state) {
    (void)state;
    char *huge = need(HUGE_NAME + 1, 1);
    memset(huge, '"', HUGE_NAME);
    const char *const names[] = {"",  " ", "a ", " a",   "\"", ",",   "\n",   "x\r\n",
                                 "a", "A", "á",  "x\ty", "'",  "x=1", "\x01", huge};
    fds_result *r = new_result(COUNT(names), 1, 1);
    for (size_t i = 0; i < COUNT(names); i++) {
        name_player(r, i, names[i], names[COUNT(names) - 1 - i], 0, UINT32_MAX);
        r->values[i] = -(double)i;
    }
    name_class(r, 0, huge);
    r->samples[0] = r->labels[0] = 0;
    csv table = csv_read(save(r, "v.csv"));
    json_t *root = load_file(save(r, "v.json"));
    const json_t *players = json_object_get(root, "players");
    assert_int_equal(table.rows, 1 + COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_string_equal(csv_at(&table, 1 + i, "player"), names[i]);
        assert_string_equal(csv_at(&table, 1 + i, "provider"), names[COUNT(names) - 1 - i]);
        assert_string_equal(csv_at(&table, 1 + i, "player_label"), huge);
        assert_string_equal(csv_at(&table, 1 + i, "samples"), "4294967295");
        assert_string_equal(text_of(json_array_get(players, i), "name"), names[i]);
        assert_int_equal(int_of(json_array_get(players, i), "samples"), UINT32_MAX);
    }
    csv_free(&table);
    json_decref(root);
    fds_result_free(r);
    free(huge);
}

static int by_falling_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a > b ? -1 : a < b;
}

/* Numbers of all magnitudes come back as the same bits, and a file of many buffers is whole. */
static void numbers_in_csv_are_read_back_as_the_same_bits(void **state) {
    (void)state;
    enum { COUNT_OF = 5000 };
    double *numbers = need(COUNT_OF, sizeof *numbers);
    fds_rng rng = fds_rng_make(1, 99, 0, 0);
    fds_result *r = sample_mean();
    fds_result_free(r);
    r = new_result(COUNT_OF, 1, 1);
    r->is_mean = true;
    for (size_t i = 0; i < COUNT_OF; i++) {
        numbers[i] = fds_rng_normal(&rng) * exp(20 * fds_rng_normal(&rng));
        r->values[i] = r->errors[i] = numbers[i];
    }
    qsort(numbers, COUNT_OF, sizeof *numbers, by_falling_value);
    csv table = csv_read(save(r, "v.csv"));
    assert_int_equal(table.rows, 1 + COUNT_OF);
    for (size_t i = 0; i < COUNT_OF; i++) {
        assert_true(strtod(csv_at(&table, 1 + i, "value"), NULL) == numbers[i]);
        assert_true(strtod(csv_at(&table, 1 + i, "standard_error"), NULL) == numbers[i]);
        assert_int_equal(strtoul(csv_at(&table, 1 + i, "rank"), NULL, 10), 1 + i);
    }
    csv_free(&table);
    fds_result_free(r);
    free(numbers);
}

/* ---- NPY ---- */

/* Checks the header and gives the numbers after it, put together byte by byte; the caller frees
 * them. */
static double *read_npy(const char *path, const char *shape, size_t count) {
    char expected[160];
    size_t size;
    char *data = scratch_read(path, &size);
    double *numbers = need(count, sizeof *numbers);
    assert_memory_equal(data, "\x93NUMPY\x01\x00", 8);
    size_t length = (uint8_t)data[8] + 256u * (uint8_t)data[9];
    assert_int_equal((10 + length) % 64, 0);
    snprintf(expected, sizeof expected, "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }",
             shape);
    assert_memory_equal(data + 10, expected, strlen(expected));
    for (size_t i = 10 + strlen(expected); i < 10 + length - 1; i++)
        assert_int_equal(data[i], ' ');
    assert_int_equal(data[10 + length - 1], '\n');
    assert_int_equal(size, 10 + length + count * 8);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = 0;
        for (size_t k = 8; k-- > 0;)
            bits = bits << 8 | (uint8_t)data[10 + length + 8 * i + k];
        memcpy(&numbers[i], &bits, sizeof bits);
    }
    free(data);
    return numbers;
}

static void npy_has_values_then_errors_in_the_players_order(void **state) {
    (void)state;
    fds_result *r = sample();
    double *got = read_npy(save(r, "v.npy"), "(2, 2, 2)", 8);
    assert_memory_equal(got, values, sizeof values);
    assert_memory_equal(got + 4, errors, sizeof errors);
    free(got);
    fds_result_free(r);
}

static void npy_of_all_labels_has_four_dimensions(void **state) {
    (void)state;
    fds_result *r = sample_all(PLAYERS);
    double *got = read_npy(save(r, "v.NPY"), "(2, 2, 3, 2)", 24);
    for (size_t t = 0; t < TESTS; t++)
        for (size_t l = 0; l < CLASSES; l++)
            for (size_t p = 0; p < PLAYERS; p++) {
                size_t at = (t * CLASSES + l) * PLAYERS + p;
                double expected = (double)p + (double)t / 10 + (double)l / 100;
                assert_true(got[at] == expected && got[12 + at] == 0);
            }
    free(got);
    fds_result_free(r);
}

static void npy_of_a_mean_has_two_dimensions(void **state) {
    (void)state;
    fds_result *r = sample_mean();
    double *got = read_npy(save(r, "v.npy"), "(2, 2)", 4);
    assert_memory_equal(got, values, 2 * sizeof *values);
    assert_memory_equal(got + 2, errors, 2 * sizeof *errors);
    free(got);
    fds_result_free(r);
}

static void npy_is_larger_than_one_buffer(void **state) {
    (void)state;
    enum { MANY = 30000 };
    fds_result *r = new_result(MANY, 1, 1);
    r->samples[0] = 0;
    for (size_t i = 0; i < MANY; i++)
        r->values[i] = r->errors[MANY - 1 - i] = (double)i;
    double *got = read_npy(save(r, "v.npy"), "(2, 1, 30000)", 2 * MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_true(got[i] == (double)i && got[MANY + i] == (double)(MANY - 1 - i));
    free(got);
    fds_result_free(r);
}

/* ---- JSON ---- */

static void json_says_the_same(void **state) {
    (void)state;
    static const char *const class_names[] = {"zero", "one, two", "f\xc3\xbcnf"};
    fds_result *r = sample();
    json_t *root = load_file(save(r, "v.json"));
    const json_t *players = json_object_get(root, "players"),
                 *classes = json_object_get(root, "classes"),
                 *results = json_object_get(root, "results");
    assert_int_equal(json_object_size(root), 3);
    assert_int_equal(json_array_size(players), PLAYERS);
    assert_string_equal(text_of(json_array_get(players, 1), "name"), odd_name);
    assert_string_equal(text_of(json_array_get(players, 0), "label"), "one, two");
    assert_true(json_is_null(json_object_get(json_array_get(players, 0), "provider")));
    assert_string_equal(text_of(json_array_get(players, 1), "provider"), "M\xc3\xbcller, Ltd");
    assert_int_equal(int_of(json_array_get(players, 1), "samples"), 3);
    assert_int_equal(json_array_size(classes), CLASSES);
    for (size_t c = 0; c < CLASSES; c++)
        assert_string_equal(json_string_value(json_array_get(classes, c)), class_names[c]);
    assert_int_equal(json_array_size(results), TESTS);
    for (size_t k = 0; k < TESTS; k++) {
        const json_t *result = json_array_get(results, k);
        assert_int_equal(int_of(result, "test"), r->samples[k]);
        assert_string_equal(text_of(result, "label"), class_names[r->labels[k]]);
        for (size_t i = 0; i < PLAYERS; i++) {
            const json_t *value = json_array_get(json_object_get(result, "values"), i),
                         *error = json_array_get(json_object_get(result, "standard_errors"), i);
            assert_true(json_real_value(value) == values[k * PLAYERS + i]);
            assert_true(json_real_value(error) == errors[k * PLAYERS + i]);
        }
    }
    json_decref(root);
    fds_result_free(r);
}

static void json_of_a_mean_has_one_result_without_a_test(void **state) {
    (void)state;
    fds_result *r = sample_mean();
    json_t *root = load_file(save(r, "v.json"));
    const json_t *results = json_object_get(root, "results");
    assert_int_equal(json_array_size(results), 1);
    assert_int_equal(json_object_size(json_array_get(results, 0)), 2);
    json_decref(root);
    fds_result_free(r);
}

static void json_of_names_that_are_no_text_has_question_marks(void **state) {
    (void)state;
    fds_result *r = sample();
    name_player(r, 0, "a\xff\xfe", NULL, 0, 1);
    name_player(r, 1, "b\x01", "\xed\xa0\x80", 0, 1);
    json_t *root = load_file(save(r, "v.json"));
    const json_t *players = json_object_get(root, "players");
    assert_string_equal(text_of(json_array_get(players, 0), "name"), "a??");
    assert_string_equal(text_of(json_array_get(players, 1), "name"), "b\x01");
    assert_string_equal(text_of(json_array_get(players, 1), "provider"), "???");
    json_decref(root);
    fds_result_free(r);
}

/* ---- errors that are not known ---- */

static void unknown_errors_are_nan_and_null(void **state) {
    (void)state;
    fds_result *r = sample_mean();
    r->errors[0] = -(double)NAN;
    r->errors[1] = 0.5;
    scratch_expect(save(r, "v.csv"), HEAD "1,plain,\"one, two\",,1,0.1,nan\n2," ODD "2e-300,0.5\n");
    double *got = read_npy(save(r, "v.npy"), "(2, 2)", 4);
    assert_true(isnan(got[2]) && got[3] == 0.5);
    free(got);
    json_t *root = load_file(save(r, "v.json"));
    const json_t *result = json_array_get(json_object_get(root, "results"), 0),
                 *list = json_object_get(result, "standard_errors");
    assert_true(json_is_null(json_array_get(list, 0)));
    assert_true(json_real_value(json_array_get(list, 1)) == 0.5);
    json_decref(root);
    fds_result_free(r);
}

/* ---- mistakes ---- */

static void refuse(const fds_result *r, fds_status status, const char *part) {
    static const char *const names[] = {"v.csv", "v.npy", "v.json"};
    for (size_t i = 0; i < COUNT(names); i++) {
        fds_error err = {0};
        assert_int_equal(fds_result_save(r, scratch_path(names[i]), &err), status);
        expect_in(err.text, part);
    }
    assert_int_equal(scratch_entries(), 0);
}

static void mistakes_are_named_and_nothing_is_written(void **state) {
    (void)state;
    fds_result *none = new_result(0, 2, 1), *empty = new_result(2, 0, 1), *r = sample();
    refuse(none, FDS_ERR_USAGE, "0 players, 2 predictions");
    refuse(empty, FDS_ERR_USAGE, "2 players, 0 predictions");
    r->values[3] = NAN;
    refuse(r, FDS_ERR_DIVERGED, "player 1 in prediction 1");
    r->values[3] = 1;
    r->values[2] = -INFINITY;
    refuse(r, FDS_ERR_DIVERGED, "player 0 in prediction 1");
    r->values[2] = 1;
    r->errors[0] = NAN; /* an unknown one is fine, an infinite one is not */
    r->errors[1] = INFINITY;
    refuse(r, FDS_ERR_DIVERGED, "player 1 in prediction 0");
    fds_result_free(none);
    fds_result_free(empty);
    fds_result_free(r);
    fds_result_free(NULL);
}

static void only_known_endings_are_taken(void **state) {
    (void)state;
    static const char *const wrong[] = {"v", "v.txt", "csv", "v.csv.gz", "v.csv/", "a.csv/v", ""};
    static const char *const right[] = {"v.csv", ".npy", "a.b/v.JSON"};
    fds_result *r = sample();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        fds_error err = {0};
        assert_int_equal(fds__result_check_path(wrong[i], &err), FDS_ERR_USAGE);
        expect_in(err.text, ".csv, .npy or .json");
        assert_int_equal(fds_result_save(r, wrong[i], NULL), FDS_ERR_USAGE);
    }
    for (size_t i = 0; i < COUNT(right); i++)
        assert_int_equal(fds__result_check_path(right[i], NULL), FDS_OK);
    assert_int_equal(fds_result_save(r, scratch_path("no/such/v.csv"), NULL), FDS_ERR_NOT_FOUND);
    fds_result_free(r);
}

static void results_too_large_for_memory_are_refused(void **state) {
    (void)state;
    fds_result *r = NULL;
    fds_error err = {0};
    assert_int_equal(fds__result_create("ls", SIZE_MAX / 4, 8, 1, &r, &err), FDS_ERR_NOMEM);
    expect_in(err.text, "8 predictions");
    assert_int_equal(fds__result_create("ls", 8, SIZE_MAX / 4, 1, &r, NULL), FDS_ERR_NOMEM);
    assert_null(r);
}

/* ---- getters ---- */

static void getters_answer_for_any_index(void **state) {
    (void)state;
    fds_result *r = sample();
    const size_t far[] = {2, 3, SIZE_MAX - 1, SIZE_MAX};
    r->predicted[0] = 1;
    r->truth[0] = CLASSES; /* no such class */
    r->confidence[0] = 0.75;
    r->empty[1] = 0.25;
    r->full[1] = 0.5;
    assert_int_equal(fds_result_players(r), PLAYERS);
    assert_int_equal(fds_result_predictions(r), TESTS);
    assert_string_equal(fds_result_method(r), "ls");
    assert_false(fds_result_is_mean(r) || fds_result_is_exact(r));
    assert_string_equal(fds_result_player(r, 1), odd_name);
    assert_null(fds_result_provider(r, 0));
    assert_string_equal(fds_result_provider(r, 1), "M\xc3\xbcller, Ltd");
    assert_string_equal(fds_result_player_label(r, 0), "one, two");
    assert_string_equal(fds_result_input(r, 0), "?");
    assert_string_equal(fds_result_label(r, 1), "zero");
    assert_string_equal(fds_result_predicted(r, 0), "one, two");
    assert_null(fds_result_predicted(r, 1));
    assert_null(fds_result_truth(r, 0));
    assert_true(fds_result_confidence(r, 0) == 0.75 && isnan(fds_result_confidence(r, 1)));
    assert_true(fds_result_empty(r, 1) == 0.25 && fds_result_full(r, 1) == 0.5);
    assert_true(fds_result_value(r, 1, 0) == values[2] && fds_result_error(r, 1, 0) == errors[2]);
    assert_true(isnan(fds_result_check(r, 0, 0)) && isnan(fds_result_check_error(r, 0, 0)));
    for (size_t i = 0; i < COUNT(far); i++) {
        assert_string_equal(fds_result_player(r, far[i]), "?");
        assert_null(fds_result_provider(r, far[i]));
        assert_string_equal(fds_result_player_label(r, far[i]), "?");
        assert_string_equal(fds_result_input(r, far[i]), "?");
        assert_string_equal(fds_result_label(r, far[i]), "?");
        assert_null(fds_result_predicted(r, far[i]));
        assert_null(fds_result_truth(r, far[i]));
        assert_true(isnan(fds_result_confidence(r, far[i])) && isnan(fds_result_full(r, far[i])));
        assert_true(isnan(fds_result_value(r, far[i], 0)) && isnan(fds_result_value(r, 0, far[i])));
        assert_true(isnan(fds_result_error(r, far[i], 0)) && isnan(fds_result_error(r, 0, far[i])));
        assert_true(isnan(fds_result_mean(r, far[i])) && isnan(fds_result_mean_error(r, far[i])));
        assert_true(isnan(fds_result_check_correlation(r, far[i])));
    }
    fds_result_free(r);
}

static void names_are_copied_and_may_change(void **state) {
    (void)state;
    fds_result *r = sample();
    char name[] = "first";
    name_player(r, 0, name, name, 0, 1);
    name[0] = 'F';
    assert_string_equal(fds_result_player(r, 0), "first");
    name_player(r, 0, "second", NULL, 2, 5);
    assert_string_equal(fds_result_player(r, 0), "second");
    assert_null(fds_result_provider(r, 0));
    assert_string_equal(fds_result_player_label(r, 0), "f\xc3\xbcnf");
    fds_result_free(r);
}

static void means_are_over_all_predictions(void **state) {
    (void)state;
    fds_result *r = sample(), *all = sample_all(PLAYERS), *mean = sample_mean();
    for (size_t i = 0; i < PLAYERS; i++) {
        assert_true(fds_result_mean(r, i) == values[i] / 2 + values[2 + i] / 2);
        assert_true(isnan(fds_result_mean_error(r, i))); /* the predictions share sub-models */
        assert_true(fabs(fds_result_mean(all, i) - ((double)i + 0.06)) < 1e-15);
        assert_true(fds_result_mean_error(all, i) == 0); /* exact */
        assert_true(fds_result_mean(mean, i) == values[i]);
        assert_true(fds_result_mean_error(mean, i) == errors[i]);
    }
    fds_result_free(r);
    fds_result_free(all);
    fds_result_free(mean);
}

/* ---- ranks ---- */

static void players_are_ranked_by_value_then_by_number(void **state) {
    (void)state;
    static const double mixed[] = {0, 3, -0.0, INFINITY, 3, -INFINITY, 0, 1e-320};
    static const size_t expected[] = {3, 1, 4, 7, 0, 2, 6, 5};
    size_t order[COUNT(mixed)];
    fds_error err = {0};
    expect_ok(fds__rank(mixed, COUNT(mixed), order, &err), &err);
    assert_memory_equal(order, expected, sizeof expected);
    static const double unknown[] = {NAN, 1, -(double)NAN, 2, NAN};
    static const size_t last[] = {3, 1, 0, 2, 4};
    expect_ok(fds__rank(unknown, COUNT(unknown), order, &err), &err);
    assert_memory_equal(order, last, sizeof last);
    expect_ok(fds__rank(mixed, 0, order, &err), &err);
    enum { MANY = 300 };
    double many[MANY];
    size_t ranked[MANY];
    fds_rng rng = fds_rng_make(2, 0, 0, 0);
    for (size_t i = 0; i < MANY; i++)
        many[i] = fds_rng_below(&rng, 3) ? fds_rng_normal(&rng) : (double)NAN;
    expect_ok(fds__rank(many, MANY, ranked, &err), &err);
    for (size_t i = 1; i < MANY; i++) {
        double before = many[ranked[i - 1]], after = many[ranked[i]];
        assert_true(before >= after || (isnan(after) && !isnan(before)) ||
                    (isnan(before) && isnan(after) && ranked[i - 1] < ranked[i]));
    }
}

static void a_prediction_or_the_mean_is_ranked(void **state) {
    (void)state;
    fds_result *r = sample();
    fds_error err = {0};
    size_t order[PLAYERS];
    expect_ok(fds_result_rank(r, 0, order, &err), &err);
    assert_true(order[0] == 0 && order[1] == 1);
    expect_ok(fds_result_rank(r, SIZE_MAX, order, &err), &err);
    assert_true(order[0] == 1 && order[1] == 0);
    order[0] = 9;
    assert_int_equal(fds_result_rank(r, 2, order, &err), FDS_ERR_USAGE);
    expect_in(err.text, "prediction 2: there are 2");
    assert_int_equal(order[0], 9);
    fds_result_free(r);
}

/* ---- the ranking as JSON ---- */

static json_t *ranking(const fds_result *r) {
    fds_error err = {0};
    char *text = NULL;
    expect_ok(fds_result_json(r, &text, &err), &err);
    json_t *root = load_text(text);
    fds_text_free(text);
    return root;
}

static void json_of_inputs_ranks_the_players_of_each(void **state) {
    (void)state;
    fds_result *r = sample();
    name_input(r, 0, "test sample 7");
    name_input(r, 1, "b.png");
    r->samples[1] = FDS__UNKNOWN;
    r->truth[0] = 1;
    r->predicted[0] = 2;
    r->confidence[0] = 0.5;
    fds__json_put(r->about, "run", json_string("folder"));
    json_t *root = ranking(r);
    const json_t *inputs = json_object_get(root, "inputs"), *first = json_array_get(inputs, 0),
                 *second = json_array_get(inputs, 1);
    assert_string_equal(text_of(root, "run"), "folder");
    assert_null(json_object_get(root, "ranking"));
    assert_int_equal(json_array_size(inputs), TESTS);
    assert_string_equal(text_of(first, "input"), "test sample 7");
    assert_int_equal(int_of(first, "sample"), 7);
    assert_string_equal(text_of(first, "predicted"), "f\xc3\xbcnf");
    assert_string_equal(text_of(first, "true"), "one, two");
    assert_string_equal(text_of(first, "label"), "f\xc3\xbcnf");
    assert_true(real_of(first, "confidence") == 0.5);
    assert_true(json_is_null(json_object_get(first, "probability_with_none")));
    assert_true(json_is_null(json_object_get(second, "sample")));
    assert_true(json_is_null(json_object_get(second, "predicted")));
    assert_null(json_object_get(first, "correlation"));
    const json_t *best = json_array_get(json_object_get(second, "ranking"), 0);
    assert_int_equal(int_of(best, "rank"), 1);
    assert_string_equal(text_of(best, "player"), odd_name);
    assert_string_equal(text_of(best, "label"), "f\xc3\xbcnf");
    assert_string_equal(text_of(best, "provider"), "M\xc3\xbcller, Ltd");
    assert_int_equal(int_of(best, "samples"), 3);
    assert_true(real_of(best, "value") == 12345678.9);
    assert_null(json_object_get(best, "bank_value"));
    json_decref(root);
    fds_result_free(r);
}

static void json_of_test_samples_ranks_the_mean_alone(void **state) {
    (void)state;
    fds_result *r = sample();
    json_t *root = ranking(r);
    const json_t *list = json_object_get(root, "ranking");
    assert_null(json_object_get(root, "inputs"));
    assert_int_equal(json_array_size(list), PLAYERS);
    assert_string_equal(text_of(json_array_get(list, 0), "player"), odd_name);
    assert_true(json_is_null(json_object_get(json_array_get(list, 0), "standard_error")));
    json_decref(root);
    fds_result_free(r);
}

static void checked_values_stand_beside_the_others(void **state) {
    (void)state;
    fds_result *r = new_result(4, 1, 1);
    for (size_t i = 0; i < 4; i++)
        r->values[i] = (double)i;
    name_input(r, 0, "a");
    name_class(r, 0, "c");
    r->checks = fds__alloc_zero(4, sizeof *r->checks);
    r->check_errors = fds__alloc_zero(4, sizeof *r->check_errors);
    assert_true(r->checks && r->check_errors);
    for (size_t i = 0; i < 4; i++)
        r->checks[i] = 2 * (double)i + 1;
    r->check_errors[3] = 0.5;
    assert_true(fabs(fds_result_check_correlation(r, 0) - 1) < 1e-15);
    assert_true(fds_result_check(r, 0, 3) == 7 && fds_result_check_error(r, 0, 3) == 0.5);
    json_t *root = ranking(r);
    const json_t *input = json_array_get(json_object_get(root, "inputs"), 0),
                 *best = json_array_get(json_object_get(input, "ranking"), 0);
    assert_true(fabs(real_of(input, "correlation") - 1) < 1e-12);
    assert_true(real_of(best, "bank_value") == 7 && real_of(best, "bank_standard_error") == 0.5);
    json_decref(root);
    fds_result_free(r);
}

/* ---- the description, from several threads ---- */

static void *describe(void *result) { return (void *)(uintptr_t)fds_result_describe(result); }

static void threads_share_one_description(void **state) {
    (void)state;
    enum { THREADS = 8, ROUNDS = 50 };
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        void *texts[THREADS];
        fds_result *r = new_result(1, 1, 1);
        fds__json_put(r->about, "share", json_real(0.1));
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, describe, r), 0);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], &texts[i]), 0);
        for (int i = 0; i < THREADS; i++)
            assert_ptr_equal(texts[i], texts[0]);
        assert_string_equal(texts[0], "{\n \"share\": 0.1\n}");
        fds_result_free(r);
    }
}

/* ---- a locale with a comma ---- */

static void files_have_a_point_in_every_locale(void **state) {
    (void)state;
    if (!comma_begin())
        return;
    fds_result *r = sample();
    csv table = csv_read(save(r, "v.csv"));
    assert_int_equal(table.columns, 9);
    assert_string_equal(csv_at(&table, 1, "value"), "0.1");
    assert_string_equal(csv_at(&table, 4, "value"), "-0.3333333333333333");
    csv_free(&table);
    fds__json_put(r->about, "share", json_real(0.1));
    assert_string_equal(fds_result_describe(r), "{\n \"share\": 0.1\n}");
    json_t *root = ranking(r);
    assert_true(real_of(json_array_get(json_object_get(root, "ranking"), 1), "value") ==
                -0.116666666667);
    json_decref(root);
    size_t size;
    char *text = scratch_read(save(r, "v.json"), &size);
    comma_end();
    root = load_text(text);
    const json_t *result = json_array_get(json_object_get(root, "results"), 1);
    assert_true(json_real_value(json_array_get(json_object_get(result, "values"), 1)) ==
                12345678.9);
    json_decref(root);
    free(text);
    fds_result_free(r);
}

/* ---- failures ---- */

typedef struct {
    fds_result *r;
    char path[512];
} written;

static fds_status write_over(void *with, fds_error *err) {
    written *w = with;
    scratch_write(w->path, "old", 3);
    return fds_result_save(w->r, w->path, err);
}

/* The last file operation syncs the folder: by then the new file stands, complete. */
static void check_memory(void *with, bool is_last) {
    (void)is_last;
    scratch_expect(((written *)with)->path, "old");
    assert_int_equal(scratch_entries(), 1);
}

static void check_file(void *with, bool is_last) {
    if (!is_last)
        scratch_expect(((written *)with)->path, "old");
    assert_int_equal(scratch_entries(), 1);
}

static void a_failure_leaves_the_old_file(void **state) {
    (void)state;
    static const char *const names[] = {"v.csv", "v.npy", "v.json"};
    for (size_t i = 0; i < COUNT(names); i++) {
        written w = {.r = sample()};
        snprintf(w.path, sizeof w.path, "%s", scratch_path(names[i]));
        assert_true(each_fault(FDS__FAULT_ALLOC, write_over, check_memory, &w) >= 3);
        /* open, write, fsync, close, rename, and the folder's fsync */
        assert_true(each_fault(FDS__FAULT_IO, write_over, check_file, &w) > 3);
        unlink(w.path);
        fds_result_free(w.r);
    }
}

static fds_status make(void *with, fds_error *err) {
    (void)with;
    fds_result *r = NULL;
    fds_status status = fds__result_create("ls", 3, 2, 2, &r, err);
    if (status == FDS_OK)
        status = fds__result_name_player(r, 1, "a", "b", 0, 1, err);
    if (status == FDS_OK)
        status = fds__result_name_class(r, 1, "c", err);
    if (status == FDS_OK)
        status = fds__result_name_input(r, 1, "d", err);
    fds_result_free(r);
    return status;
}

static fds_status to_json(void *with, fds_error *err) {
    char *text = NULL;
    fds_status status = fds_result_json(with, &text, err);
    assert_true((status == FDS_OK) == (text != NULL));
    fds_text_free(text);
    return status;
}

static void failing_allocations_are_told(void **state) {
    (void)state;
    fds_result *r = sample(), *named = sample();
    name_input(named, 0, "a");
    named->checks = need(4, sizeof *named->checks);
    named->check_errors = need(4, sizeof *named->checks);
    assert_true(each_fault(FDS__FAULT_ALLOC, make, NULL, NULL) >= 9);
    assert_true(each_fault(FDS__FAULT_ALLOC, to_json, NULL, r) > 10);
    assert_true(each_fault(FDS__FAULT_ALLOC, to_json, NULL, named) > 10);
    fds__fault_arm(FDS__FAULT_ALLOC, 1);
    assert_string_equal(fds_result_describe(r), "{}"); /* and the next call tries again */
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    fds__json_put(r->about, "a", json_true());
    assert_string_equal(fds_result_describe(r), "{\n \"a\": true\n}");
    fds_result_free(r);
    fds_result_free(named);
}

int main(void) {
    json_set_alloc_funcs(fds__alloc, fds__free);
    const struct CMUnitTest tests[] = {
        TEST(csv_has_the_players_of_each_prediction_by_falling_value),
        TEST(csv_of_a_mean_has_neither_test_nor_label),
        TEST(csv_of_all_labels_names_each),
        TEST(inputs_without_a_number_stand_by_their_names),
        TEST(names_of_any_kind_are_read_back),
        TEST(numbers_in_csv_are_read_back_as_the_same_bits),
        TEST(npy_has_values_then_errors_in_the_players_order),
        TEST(npy_of_all_labels_has_four_dimensions),
        TEST(npy_of_a_mean_has_two_dimensions),
        TEST(npy_is_larger_than_one_buffer),
        TEST(json_says_the_same),
        TEST(json_of_a_mean_has_one_result_without_a_test),
        TEST(json_of_names_that_are_no_text_has_question_marks),
        TEST(unknown_errors_are_nan_and_null),
        TEST(mistakes_are_named_and_nothing_is_written),
        TEST(only_known_endings_are_taken),
        TEST(results_too_large_for_memory_are_refused),
        TEST(getters_answer_for_any_index),
        TEST(names_are_copied_and_may_change),
        TEST(means_are_over_all_predictions),
        TEST(players_are_ranked_by_value_then_by_number),
        TEST(a_prediction_or_the_mean_is_ranked),
        TEST(json_of_inputs_ranks_the_players_of_each),
        TEST(json_of_test_samples_ranks_the_mean_alone),
        TEST(checked_values_stand_beside_the_others),
        TEST(threads_share_one_description),
        TEST(files_have_a_point_in_every_locale),
        TEST(a_failure_leaves_the_old_file),
        TEST(failing_allocations_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
