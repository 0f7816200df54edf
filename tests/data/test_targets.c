/* SPDX-License-Identifier: Apache-2.0
 * Targets of a regression: read as they are from CSV and NPY, refused with the advice that helps. */
#include "fixture.h"

#include <math.h>

static const fds__data_options regression = {.is_regression = true};

static void expect_targets(const char *text, const fds__data_options *options, size_t count,
                           const double *wanted) {
    fds_dataset *train, *test;
    put_text("t.csv", text);
    open_ok(scratch_path("t.csv"), options, &train, &test);
    assert_true(fds_dataset_is_regression(train));
    assert_int_equal(fds_dataset_count(train), count);
    assert_int_equal(fds_dataset_classes(train), 1);
    for (size_t i = 0; i < count; i++) {
        assert_true(fds_dataset_target(train, i) == wanted[i]);
        assert_int_equal(fds_dataset_label(train, i), 0);
    }
    assert_true(isnan(fds_dataset_target(train, count)));
    fds_dataset_free(train);
}

static void numbers_of_a_table_keep_all_digits(void **state) {
    (void)state;
    expect_targets("x,label\n1,0.1\n2,-1e-3\n3,123456789.125\n", &regression, 3,
                   (const double[]){0.1, -1e-3, 123456789.125});
    expect_targets("x;label\n1;0,1\n2;2,5\n", &regression, 2, (const double[]){0.1, 2.5});
    const fds__data_options drop = {.is_regression = true, .missing = FDS__MISSING_DROP};
    expect_targets("x,label\n1,NA\n2,7\n,8\n4,\n5,9\n", &drop, 2, (const double[]){7, 9});
    const fds__data_options named = {.is_regression = true, .label_column = "price"};
    expect_targets("x,price,label\n1,3,a\n2,4,b\n3,5,a\n4,6,b\n", &named, 4,
                   (const double[]){3, 4, 5, 6});
}

static void a_test_table_has_targets_too(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_folder("d");
    put_text("d/train.csv", "x,label\n1,10\n2,20\n");
    put_text("d/test.csv", "label,x\n2.5,3\n");
    open_ok(scratch_path("d"), &regression, &train, &test);
    assert_true(fds_dataset_target(test, 0) == 2.5);
    double mean, std;
    fds__dataset_target_stats(train, NULL, 2, &mean, &std);
    assert_true(mean == 15 && std == 5);
    fds__dataset_target_stats(train, (const uint32_t[]){1}, 1, &mean, &std);
    assert_true(mean == 20 && std == 1); /* of one sample: it is only shifted */
    fds_dataset_free(train);
    fds_dataset_free(test);
}

static void what_is_no_number_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"x,label\n1,a\n2,b\n",
         "line 2, column \"label\": \"a\" is not a finite number, and --task"},
        {"x,label\n1,1\n2,inf\n", "line 3, column \"label\": \"inf\" is not a finite number"},
        {"x,label\n1,1\n2,\n", "line 3, column \"label\": the target is missing; --missing drop"},
        {"x,label\n1,1\n2,?\n", "the target is missing"},
        {"x,label\n1,1\n2,1e31\n", "sample 1 (from 0): the target 1e+31 is not a finite number"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        put_text("w.csv", wrong[i].text);
        open_fails(scratch_path("w.csv"), &regression, FDS_ERR_FORMAT, wrong[i].part);
    }
}

/* The way to regression is shown where labels are no classes. */
static void numbers_taken_for_classes_point_to_regression(void **state) {
    (void)state;
    char text[1024] = "x,label\n";
    for (int i = 0; i < 30; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%d.5\n", i, i);
    put_text("n.csv", text);
    open_fails(scratch_path("n.csv"), NULL, FDS_ERR_FORMAT,
               "take them as numbers to predict with --task regression");
    fds_dataset *train, *test;
    open_ok(scratch_path("n.csv"), &regression, &train, &test);
    assert_true(fds_dataset_target(train, 29) == 29.5);
    fds_dataset_free(train);
}

/* The committed files are of NumPy. */
static void arrays_of_any_numbers_are_targets(void **state) {
    (void)state;
    static const char *const types[] = {"i1", "u1", "i2", "u2", "i4", "i8", "i8_big", "u2_big"};
    char x[512], y[512];
    assert_non_null(getenv("FDS_TEST_DATA"));
    snprintf(x, sizeof x, "%s/npy/features_f8.npy", getenv("FDS_TEST_DATA"));
    for (size_t t = 0; t < COUNT(types); t++) {
        fds_dataset *train, *test, *labelled;
        snprintf(y, sizeof y, "%s/npy/labels_%s.npy", getenv("FDS_TEST_DATA"), types[t]);
        const fds__data_options how = {.labels_file = y, .is_regression = true},
                                as = {.labels_file = y};
        open_ok(x, &how, &train, &test);
        open_ok(x, &as, &labelled, &test);
        for (size_t i = 0; i < fds_dataset_count(train); i++)
            assert_true(fds_dataset_target(train, i) == (double)fds_dataset_label(labelled, i));
        fds_dataset_free(train);
        fds_dataset_free(labelled);
    }
    snprintf(y, sizeof y, "%s/npy/labels_negative.npy", getenv("FDS_TEST_DATA"));
    const fds__data_options negative = {.labels_file = y, .is_regression = true};
    fds_dataset *train, *test;
    open_ok(x, &negative, &train, &test);
    bool is_negative = false;
    for (size_t i = 0; i < fds_dataset_count(train); i++)
        is_negative = is_negative || fds_dataset_target(train, i) < 0;
    assert_true(is_negative);
    fds_dataset_free(train);
    snprintf(y, sizeof y, "%s/npy/labels_float.npy", getenv("FDS_TEST_DATA"));
    const fds__data_options classes = {.labels_file = y};
    open_fails(x, &classes, FDS_ERR_SHAPE, "--task regression takes floats as numbers to predict");
}

static void pictures_with_classes_have_no_targets(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/mnist", getenv("FDS_TEST_DATA"));
    open_fails(path, &regression, FDS_ERR_USAGE,
               "--task regression needs targets that are numbers");
}

static void datasets_in_memory_get_targets(void **state) {
    (void)state;
    const float x[] = {1, 2, 3, 4};
    const uint16_t labels[] = {0, 1};
    fds_dataset *ds = NULL, *other = NULL;
    fds_error err;
    expect_ok(fds__dataset_create(2, (fds_shape){2, 1, 1}, NULL, x, labels, 2, NULL, &ds, &err),
              &err);
    expect_ok(fds__dataset_create(2, (fds_shape){2, 1, 1}, NULL, x, labels, 2, NULL, &other, &err),
              &err);
    assert_false(fds_dataset_is_regression(ds));
    assert_int_equal(fds_dataset_set_targets(ds, (const double[]){1, NAN}, &err), FDS_ERR_FORMAT);
    assert_false(fds_dataset_is_regression(ds)); /* nothing was changed */
    assert_int_equal(fds_dataset_label(ds, 1), 1);
    for (int twice = 0; twice < 2; twice++)
        expect_ok(fds_dataset_set_targets(ds, (const double[]){1, 2.5}, &err), &err);
    assert_true(fds_dataset_target(ds, 1) == 2.5 && fds_dataset_classes(ds) == 1);
    assert_int_equal(fds__dataset_check_pair(ds, other, &err), FDS_ERR_SHAPE);
    expect_in(err.text, "training samples have targets, test samples have labels");
    fds_dataset_free(ds);
    fds_dataset_free(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(numbers_of_a_table_keep_all_digits),
        TEST(a_test_table_has_targets_too),
        TEST(what_is_no_number_is_refused),
        TEST(numbers_taken_for_classes_point_to_regression),
        TEST(arrays_of_any_numbers_are_targets),
        TEST(pictures_with_classes_have_no_targets),
        TEST(datasets_in_memory_get_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
