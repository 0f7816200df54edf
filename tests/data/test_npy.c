/* SPDX-License-Identifier: Apache-2.0
 * NPY. The files in npy/ were written by NumPy 1.24; their values are, with n, c, h, w counted
 * from 0 in an array of 2 x 3 x 4 x 5:   60 n + 20 c + 5 h + w   (features: of c = h = 0, over 8).
 */
#include "fixture.h"

static void open_files(const char *values, const char *labels, fds_dataset **ds) {
    char path[512];
    fds_dataset *test;
    fds__data_options options = {.labels_file = path};
    snprintf(path, sizeof path, "%s", kept_path(labels));
    open_ok(kept_path(values), &options, ds, &test);
    assert_null(test);
}

static void files_fail(const char *values, const char *labels, fds_status status,
                       const char *part) {
    char path[512];
    fds__data_options options = {.labels_file = path};
    snprintf(path, sizeof path, "%s", kept_path(labels));
    open_fails(kept_path(values), &options, status, part);
}

static void bytes_in_any_order_of_dimensions_are_the_same_images(void **state) {
    (void)state;
    static const char *const files[] = {"npy/nchw_u1.npy", "npy/nchw_u1_fortran.npy",
                                        "npy/nhwc_u1.npy"};
    for (size_t f = 0; f < COUNT(files); f++) {
        fds_dataset *ds;
        open_files(files[f], "npy/labels_i8.npy", &ds);
        expect_shape(ds, 2, 3, 4, 5);
        assert_true(fds__dataset_get_info(ds).is_bytes && fds__dataset_get_info(ds).is_image);
        for (int k = 0; k < 120; k++)
            assert_int_equal(ds->bytes[k], k);
        fds_dataset_free(ds);
    }
}

static void floats_of_either_byte_order_are_images_of_one_channel(void **state) {
    (void)state;
    static const char *const files[] = {"npy/nhw_f4.npy", "npy/nhw_f4_big.npy"};
    for (size_t f = 0; f < COUNT(files); f++) {
        fds_dataset *ds;
        open_files(files[f], "npy/labels_i8.npy", &ds);
        expect_shape(ds, 2, 1, 4, 5);
        assert_false(fds__dataset_get_info(ds).is_bytes);
        float values[20];
        for (size_t n = 0; n < 2; n++) {
            fds_dataset_sample(ds, n, values);
            for (int k = 0; k < 20; k++)
                assert_true(values[k] == (float)(60 * (int)n + k));
        }
        fds_dataset_free(ds);
    }
}

static void features_of_every_version_and_type(void **state) {
    (void)state;
    static const char *const files[] = {"npy/features_f8.npy", "npy/features_f8_big_fortran.npy",
                                        "npy/features_f4_v2.npy", "npy/features_f4_v3.npy"};
    for (size_t f = 0; f < COUNT(files); f++) {
        fds_dataset *ds;
        open_files(files[f], "npy/labels_i8.npy", &ds);
        expect_shape(ds, 2, 5, 1, 1);
        assert_false(fds__dataset_get_info(ds).is_image);
        for (int k = 0; k < 5; k++) {
            assert_true(ds->floats[k] == (float)k / 8.0f);
            assert_true(ds->floats[5 + k] == (float)(60 + k) / 8.0f);
        }
        fds_dataset_free(ds);
    }
}

static void labels_of_every_integer_type(void **state) {
    (void)state;
    static const char *const types[] = {"u1", "i1", "u2",     "i2",     "u4",     "i4",
                                        "u8", "i8", "i4_big", "i8_big", "u2_big", "column"};
    for (size_t t = 0; t < COUNT(types); t++) {
        char name[64];
        fds_dataset *ds;
        snprintf(name, sizeof name, "npy/labels_%s.npy", types[t]);
        open_files("npy/nhw_f4.npy", name, &ds);
        assert_int_equal(ds->labels[0], 2);
        assert_int_equal(ds->labels[1], 1);
        assert_int_equal(fds__dataset_get_info(ds).classes, 3);
        fds_dataset_free(ds);
    }
}

static void values_that_are_no_finite_numbers_name_the_sample(void **state) {
    (void)state;
    files_fail("npy/features_nan.npy", "npy/labels_i8.npy", FDS_ERR_FORMAT, "sample 1, value 1");
    files_fail("npy/features_inf.npy", "npy/labels_i8.npy", FDS_ERR_FORMAT, "sample 1, value 0");
    files_fail("npy/features_huge.npy", "npy/labels_i8.npy", FDS_ERR_FORMAT, "infinity");
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    files_fail("npy/nhw_f4.npy", "npy/labels_negative.npy", FDS_ERR_FORMAT, "label 1 (from 0)");
    files_fail("npy/nhw_f4.npy", "npy/labels_large.npy", FDS_ERR_FORMAT, "label 1 (from 0)");
    files_fail("npy/nhw_f4.npy", "npy/labels_three.npy", FDS_ERR_SHAPE, "2 samples, but");
    files_fail("npy/nhw_f4.npy", "npy/labels_float.npy", FDS_ERR_SHAPE, "integers");
    files_fail("npy/nhw_f4.npy", "npy/missing.npy", FDS_ERR_NOT_FOUND, "missing.npy");
    files_fail("npy/values_c8.npy", "npy/labels_i8.npy", FDS_ERR_UNSUPPORTED, "<c8");
    files_fail("npy/values_i4.npy", "npy/labels_i8.npy", FDS_ERR_UNSUPPORTED, "i4");
    files_fail("npy/values_rank5.npy", "npy/labels_i8.npy", FDS_ERR_SHAPE, "more than 4");
    files_fail("npy/values_rank1.npy", "npy/labels_i8.npy", FDS_ERR_SHAPE, "1 dimensions");
    files_fail("npy/values_empty.npy", "npy/labels_i8.npy", FDS_ERR_SHAPE, "0 samples");
    files_fail("npy/values_zero_side.npy", "npy/labels_i8.npy", FDS_ERR_SHAPE, "no values");
    files_fail("npy/values_record.npy", "npy/labels_i8.npy", FDS_ERR_UNSUPPORTED, "records");
    open_fails(kept_path("npy/nhw_f4.npy"), NULL, FDS_ERR_USAGE, "labels");
}

static void copy_kept(const char *from, const char *to) {
    size_t size;
    char *data = scratch_read(kept_path(from), &size);
    put_file(to, data, size);
    free(data);
}

static void folders_and_siblings_by_name(void **state) {
    (void)state;
    fds_dataset *train, *test;
    copy_kept("npy/nhw_f4.npy", "x.npy");
    copy_kept("npy/labels_i8.npy", "y.npy");
    open_ok(scratch, NULL, &train, &test);
    assert_null(test);
    fds_dataset_free(train);
    open_ok(scratch_path("x.npy"), NULL, &train, &test);
    fds_dataset_free(train);
    copy_kept("npy/nchw_u1.npy", "x_train.npy");
    copy_kept("npy/labels_u1.npy", "y_train.npy");
    copy_kept("npy/nhwc_u1.npy", "x_test.npy");
    copy_kept("npy/labels_u1.npy", "y_test.npy");
    put_text("classes.txt", "a\nb\nc\n");
    open_ok(scratch, NULL, &train, &test);
    expect_shape(train, 2, 3, 4, 5);
    expect_shape(test, 2, 3, 4, 5);
    assert_string_equal(fds_dataset_class_name(test, 2), "c");
    fds_dataset_free(train);
    fds_dataset_free(test);
    copy_kept("npy/nhw_f4.npy", "x_test.npy");
    open_fails(scratch, NULL, FDS_ERR_SHAPE, "test samples");
}

/* Headers that NumPy would not write, or that lie. */
/* provider_train.npy beside the samples, or the option. */
static void providers_are_integers_or_texts(void **state) {
    (void)state;
    static const struct {
        const char *file, *first, *second;
    } files[] = {{"npy/owners_U.npy", "Z\xc3\xbcrich", "B"},
                 {"npy/owners_U_big.npy", "Z\xc3\xbcrich", "B"},
                 {"npy/owners_S.npy", "north", "B"},
                 {"npy/labels_i8.npy", NULL, NULL}};
    fds_dataset *train, *test;
    put_folder("set");
    copy_kept("npy/nhw_f4.npy", "set/x_train.npy");
    copy_kept("npy/labels_i8.npy", "set/y_train.npy");
    for (size_t f = 0; f < COUNT(files); f++) {
        copy_kept(files[f].file, "set/provider_train.npy");
        open_ok(scratch_path("set"), NULL, &train, &test);
        assert_int_equal(train->providers, 2);
        expect_shape(train, 2, 1, 4, 5);
        for (size_t i = 0; i < 2 && files[f].first; i++)
            assert_string_equal(fds_dataset_provider_name(train, train->provider_ids[i]),
                                i ? files[f].second : files[f].first);
        fds_dataset_free(train);
    }
    static const struct {
        const char *file, *part;
        fds_status status;
    } mistakes[] = {
        {"npy/owners_bad.npy", "item 1 (from 0): the name has a control", FDS_ERR_FORMAT},
        {"npy/owners_empty.npy", "item 1 (from 0): empty", FDS_ERR_FORMAT},
        {"npy/labels_float.npy", "must be integers or texts", FDS_ERR_SHAPE},
        {"npy/labels_three.npy", "has 3 providers, but", FDS_ERR_SHAPE},
    };
    for (size_t m = 0; m < COUNT(mistakes); m++) {
        copy_kept(mistakes[m].file, "set/provider_train.npy");
        open_fails(scratch_path("set"), NULL, mistakes[m].status, mistakes[m].part);
    }
    files_fail("npy/nhw_f4.npy", "npy/owners_U.npy", FDS_ERR_SHAPE, "labels must be integers");
}

static void headers_are_read_strictly(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool good;
    } headers[] = {
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", true},
        {"{\"shape\":(2L,3L),\"descr\":\"|u1\",\"fortran_order\":False}\n", true},
        {"{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", true},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4), }", false},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (-2, 3), }", false},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2 3), }", false},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1 2), }", false},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 03), }", false},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': 6, }", false},
        {"{'descr': '|u1', 'fortran_order': Maybe, 'shape': (2, 3), }", false},
        {"{'descr': '|u1', 'fortran_order': False, }", false},
        {"{'descr': '|u1', 'shape': (2, 3), }", false},
        {"{'fortran_order': False, 'shape': (2, 3), }", false},
        {"{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", false},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), 'more': 1}", false},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), } x", false},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)", false},
        {"{'descr': '|u1, 'fortran_order': False, 'shape': (2, 3)}", false},
        {"{'descr': 'u1', 'fortran_order': False, 'shape': (2, 3), }", false},
        {"{'descr': '', 'fortran_order': False, 'shape': (2, 3), }", false},
        {"{'descr': '|u1', 'fortran_order': False, "
         "'shape': (4294967296, 4294967296, 3, 2), }",
         false},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693953, 2), }", false},
        {"{'descr': '|u1', 'fortran_order': False, "
         "'shape': (99999999999999999999999999999999, 3), }",
         false},
        {"", false},
    };
    for (size_t h = 0; h < COUNT(headers); h++) {
        uint8_t x[256] = "\x93NUMPY\x01", y[256] = "\x93NUMPY\x01";
        const char labels[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }";
        size_t length = strlen(headers[h].text);
        x[8] = (uint8_t)length;
        memcpy(x + 10, headers[h].text, length);
        y[8] = sizeof labels - 1;
        memcpy(y + 10, labels, sizeof labels - 1);
        fds__blob values = {"x", x, 10 + length + 6, false},
                  answers = {"y", y, 10 + sizeof labels - 1 + 2, false};
        fds_error err = {0};
        fds_dataset *ds = NULL;
        fds_status status = fds__npy_parse(&values, &answers, &ds, &err);
        if ((status == FDS_OK) != headers[h].good)
            fail_msg("%s: %s", headers[h].text, err.text);
        fds_dataset_free(ds);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(bytes_in_any_order_of_dimensions_are_the_same_images),
        TEST(floats_of_either_byte_order_are_images_of_one_channel),
        TEST(features_of_every_version_and_type),
        TEST(labels_of_every_integer_type),
        TEST(values_that_are_no_finite_numbers_name_the_sample),
        TEST(what_does_not_fit_is_refused),
        TEST(folders_and_siblings_by_name),
        TEST(providers_are_integers_or_texts),
        TEST(headers_are_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
