/* SPDX-License-Identifier: Apache-2.0
 * The files of results: every format as its specification has it, numbers that survive, names that
 * need care, mistakes that are named, and old files that stand when writing fails. */
#include "result_sample.h"

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
        assert_true(each_fault(FDS__FAULT_ALLOC, write_over, check_memory, &w) >= 2);
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
        TEST(files_have_a_point_in_every_locale),
        TEST(a_failure_leaves_the_old_file),
        TEST(failing_allocations_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
