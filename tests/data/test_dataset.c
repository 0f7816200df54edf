/* SPDX-License-Identifier: Apache-2.0
 * The dataset itself: made from memory, what is refused, statistics against exact values, and how a
 * name or path is resolved. */
#include "fixture.h"

#include <math.h>

static void is_a_copy_of_the_callers_arrays(void **state) {
    (void)state;
    uint8_t bytes[12] = {0, 51, 102, 153, 204, 255};
    uint16_t labels[2] = {1, 0};
    const char *names[2] = {"no", "yes"};
    fds_dataset *ds = NULL;
    fds_error err = {0};
    assert_int_equal(
        fds__dataset_create(2, (fds_shape){1, 2, 3}, bytes, NULL, labels, 2, names, &ds, &err),
        FDS_OK);
    memset(bytes, 9, sizeof bytes);
    labels[0] = 0;
    float values[6];
    fds_dataset_sample(ds, 0, values);
    assert_true(values[1] == 0.2f && values[5] == 1.0f);
    fds__dataset_info info = fds__dataset_get_info(ds);
    assert_true(info.is_image && info.is_bytes && info.labels[0] == 1 && !info.provider_ids);
    assert_string_equal(fds_dataset_class_name(ds, 1), "yes");
    fds_dataset_free(ds);
    fds_dataset_free(NULL);
}

static void create_fails(size_t count, fds_shape shape, const uint8_t *bytes, const float *floats,
                         const uint16_t *labels, uint32_t classes, fds_status status,
                         const char *part) {
    fds_dataset *ds = NULL;
    fds_error err = {0};
    assert_int_equal(
        fds__dataset_create(count, shape, bytes, floats, labels, classes, NULL, &ds, &err), status);
    expect_in(err.text, part);
    assert_null(ds);
}

static void class_names_that_are_not_utf8_are_refused(void **state) {
    (void)state;
    static const char *const names[] = {"plain", "caf\xe9"};
    uint8_t bytes[2] = {0};
    uint16_t labels[2] = {0, 1};
    fds_dataset *ds = NULL;
    fds_error err = {0};
    assert_int_equal(
        fds__dataset_create(2, (fds_shape){1, 1, 1}, bytes, NULL, labels, 2, names, &ds, &err),
        FDS_ERR_FORMAT);
    expect_in(err.text, "class 1: the name is not UTF-8");
}

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    uint8_t bytes[4] = {0};
    float floats[4] = {0, 0, NAN, 0};
    uint16_t labels[2] = {0, 3};
    fds_shape pair = {2, 1, 1};
    create_fails(2, pair, NULL, NULL, labels, 4, FDS_ERR_USAGE, "bytes or floats");
    create_fails(2, pair, bytes, floats, labels, 4, FDS_ERR_USAGE, "bytes or floats");
    create_fails(2, pair, bytes, NULL, NULL, 4, FDS_ERR_USAGE, "labels");
    create_fails(2, pair, bytes, NULL, labels, 0, FDS_ERR_USAGE, "0 classes");
    create_fails(2, pair, bytes, NULL, labels, 65536, FDS_ERR_USAGE, "65536 classes");
    create_fails(2, pair, bytes, NULL, labels, 3, FDS_ERR_FORMAT, "sample 1 (from 0): label 3");
    create_fails(2, pair, NULL, floats, labels, 4, FDS_ERR_FORMAT,
                 "sample 1, value 0 (from 0): NaN");
    floats[2] = -INFINITY;
    create_fails(2, pair, NULL, floats, labels, 4, FDS_ERR_FORMAT, "infinity");
    create_fails(0, pair, bytes, NULL, labels, 4, FDS_ERR_SHAPE, "no samples");
    create_fails(2, (fds_shape){2, 0, 1}, bytes, NULL, labels, 4, FDS_ERR_SHAPE, "no values");
    create_fails(2, (fds_shape){65536, 1, 1}, bytes, NULL, labels, 4, FDS_ERR_LIMIT,
                 "65535 per side");
    create_fails(2, (fds_shape){1, 65535, 65535}, bytes, NULL, labels, 4, FDS_ERR_LIMIT, "values");
    create_fails((size_t)1 << 33, pair, bytes, NULL, labels, 4, FDS_ERR_LIMIT, "samples");
}

static void statistics_are_those_of_the_definition(void **state) {
    (void)state;
    /* two channels of 1 x 2: {1, 2} {10, 10}; {3, 6} {10, 30}; {-100, 7} {0, 0} */
    float floats[12] = {1, 2, 10, 10, 3, 6, 10, 30, -100, 7, 0, 0};
    uint16_t labels[3] = {0};
    fds_dataset *ds = NULL;
    fds_error err = {0};
    float min[2], max[2], mean[2], std[2];
    assert_int_equal(
        fds__dataset_create(3, (fds_shape){2, 1, 2}, NULL, floats, labels, 1, NULL, &ds, &err),
        FDS_OK);
    uint32_t index[2] = {1, 0};
    assert_int_equal(fds_dataset_stats(ds, index, 2, min, max, mean, std, &err), FDS_OK);
    assert_true(min[0] == 1 && max[0] == 6 && mean[0] == 3);
    assert_true(min[1] == 10 && max[1] == 30 && mean[1] == 15);
    assert_true(std[0] == sqrtf(3.5f) && std[1] == sqrtf(75.0f));
    assert_int_equal(fds_dataset_stats(ds, NULL, 3, min, NULL, NULL, NULL, &err), FDS_OK);
    assert_true(min[0] == -100 && min[1] == 0);
    index[1] = 3;
    assert_int_equal(fds_dataset_stats(ds, index, 2, min, max, mean, std, &err), FDS_ERR_USAGE);
    expect_in(err.text, "sample 3");
    assert_int_equal(fds_dataset_stats(ds, NULL, 4, min, max, mean, std, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_dataset_stats(ds, NULL, 0, min, max, mean, std, &err), FDS_ERR_USAGE);
    fds_dataset_free(ds);
}

/* Computed outside, in exact integers, from the same 300 digits: the sum of the pixels is 7648383,
 * that of their squares 1665441227. */
static void statistics_of_bytes_see_them_as_0_to_1(void **state) {
    (void)state;
    fds_dataset *train, *test;
    fds_error err = {0};
    float min, max, mean, std;
    open_ok(kept_path("mnist"), NULL, &train, &test);
    assert_int_equal(fds_dataset_stats(train, NULL, 300, &min, &max, &mean, &std, &err), FDS_OK);
    double n = 300.0 * 784.0, average = 7648383.0 / n / 255.0;
    double deviation = sqrt(1665441227.0 / n / 255.0 / 255.0 - average * average);
    assert_true(min == 0.0f && max == 1.0f);
    assert_true(fabs(mean - average) < 1e-7 && fabs(std - deviation) < 1e-7);
    fds_dataset_free(train);
    fds_dataset_free(test);
}

static void names_stand_for_fetched_sets_and_paths_come_first(void **state) {
    (void)state;
    fds_dataset *train, *test;
    setenv("FDS_DATA", scratch, 1);
    open_fails("mnist", NULL, FDS_ERR_NOT_FOUND, "run: fds data get mnist");
    open_fails("no-such-set", NULL, FDS_ERR_NOT_FOUND, "fashion-mnist");
    open_fails("", NULL, FDS_ERR_USAGE, "no data");
    open_fails(scratch, NULL, FDS_ERR_NOT_FOUND, "train-images-idx3-ubyte");
    open_fails(scratch_path("mnist"), NULL, FDS_ERR_NOT_FOUND, "no such file");
    put_folder("mnist");
    put_idx("mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte", 3, 2, 2, 2);
    open_ok("mnist", NULL, &train, &test);
    assert_string_equal(fds__dataset_get_info(train).source, scratch_path("mnist"));
    fds_dataset_free(train);
    put_text("data.xyz", "what is this");
    open_fails(scratch_path("data.xyz"), NULL, FDS_ERR_FORMAT, "unknown format");
    unsetenv("FDS_DATA");
}

static void the_test_part_may_be_left_aside(void **state) {
    (void)state;
    fds_dataset *train = NULL;
    assert_int_equal(fds__data_open(kept_path("mnist"), NULL, NULL, &train, NULL, NULL), FDS_OK);
    expect_shape(train, 300, 1, 28, 28);
    fds_dataset_free(train);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(is_a_copy_of_the_callers_arrays),
        TEST(class_names_that_are_not_utf8_are_refused),
        TEST(what_makes_no_sense_is_refused),
        TEST(statistics_are_those_of_the_definition),
        TEST(statistics_of_bytes_see_them_as_0_to_1),
        TEST(names_stand_for_fetched_sets_and_paths_come_first),
        TEST(the_test_part_may_be_left_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
