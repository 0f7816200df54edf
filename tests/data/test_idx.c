/* SPDX-License-Identifier: Apache-2.0
 * IDX: every spelling of the names, gzip, the official digits, class names, and what is refused. */
#include "fixture.h"

static void reads_images_and_labels_in_every_spelling(void **state) {
    (void)state;
    static const char *const spellings[][2] = {
        {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
        {"train-images.idx3-ubyte", "train-labels.idx1-ubyte"},
        {"train-images-idx3-ubyte.gz",
         "train-labels.idx1-ubyte.gz"}, /* not packed, though named so */
    };
    for (size_t s = 0; s < COUNT(spellings); s++) {
        fds_dataset *train, *test;
        put_idx(spellings[s][0], spellings[s][1], 5, 3, 4, 3);
        open_ok(scratch, NULL, &train, &test);
        assert_null(test);
        expect_shape(train, 5, 1, 3, 4);
        fds__dataset_info info = fds__dataset_get_info(train);
        assert_true(info.is_bytes && info.is_image);
        assert_int_equal(info.classes, 3);
        assert_string_equal(fds_dataset_class_name(train, 2), "2");
        assert_int_equal(info.labels[4], 1);
        float values[12];
        fds_dataset_sample(train, 4, values);
        for (int k = 0; k < 12; k++)
            assert_true(values[k] == (float)(7 * 4 + k) / 255.0f);
        fds_dataset_free(train);
        unlink(scratch_path(spellings[s][0]));
        unlink(scratch_path(spellings[s][1]));
    }
}

static void reads_the_official_digits_packed(void **state) {
    (void)state;
    static const uint16_t first[10] = {5, 0, 4, 1, 9, 2, 1, 3, 1, 4};
    static const uint16_t first_test[10] = {7, 2, 1, 0, 4, 1, 4, 9, 5, 9};
    fds_dataset *train, *test;
    open_ok(kept_path("mnist"), NULL, &train, &test);
    assert_non_null(test);
    expect_shape(train, 300, 1, 28, 28);
    expect_shape(test, 200, 1, 28, 28);
    assert_int_equal(fds__dataset_get_info(train).classes, 10);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(train->labels[i], first[i]);
        assert_int_equal(test->labels[i], first_test[i]);
    }
    uint64_t sum = 0, test_sum = 0; /* counted outside, from the official files */
    for (size_t k = 0; k < 300 * 784; k++)
        sum += train->bytes[k];
    for (size_t k = 0; k < 200 * 784; k++)
        test_sum += test->bytes[k];
    assert_int_equal(sum, 7648383);
    assert_int_equal(test_sum, 4757429);
    fds_dataset_free(train);
    fds_dataset_free(test);
}

static void reads_a_single_file_with_its_labels_beside_it(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_idx("my-images-idx3-ubyte", "my-labels-idx1-ubyte", 4, 2, 2, 2);
    open_ok(scratch_path("my-images-idx3-ubyte"), NULL, &train, &test);
    expect_shape(train, 4, 1, 2, 2);
    fds_dataset_free(train);
    put_idx("other", "answers", 3, 2, 2, 2);
    fds__data_options options = {.labels_file = scratch_path("answers")};
    open_fails(scratch_path("other"), &options, FDS_ERR_USAGE, "--labels is only for a single NPY");
    open_fails(scratch_path("other"), NULL, FDS_ERR_USAGE, "labels");
}

static void takes_class_names_from_classes_txt(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 5, 2, 2, 3);
    put_text("classes.txt", "\xef\xbb\xbfT-shirt/top\r\n  Trouser \n\nAnkle boot\nBag");
    open_ok(scratch, NULL, &train, &test);
    assert_int_equal(fds__dataset_get_info(train).classes, 4);
    assert_string_equal(fds_dataset_class_name(train, 0), "T-shirt/top");
    assert_string_equal(fds_dataset_class_name(train, 1), "Trouser");
    assert_string_equal(fds_dataset_class_name(train, 3), "Bag");
    assert_string_equal(fds_dataset_class_name(train, 4), "?");
    assert_null(fds_dataset_feature_name(train, 0));
    fds_dataset_free(train);
    put_text("classes.txt", "one\ntwo\n");
    open_fails(scratch, NULL, FDS_ERR_FORMAT,
               "sample 2 (from 0): label 2, but there are 2 classes");
    put_text("classes.txt", "\n\n");
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "no names");
    put_text("classes.txt", "one\n\nGr\xfcn\n");
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "classes.txt: line 3: the name is not UTF-8");
    put_file("classes.txt", "a\0b", 3);
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "byte 1");
}

static void classes_of_both_parts_are_counted_together(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 5, 2, 2, 2);
    put_idx("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte", 5, 2, 2, 5);
    open_ok(scratch, NULL, &train, &test);
    assert_int_equal(fds__dataset_get_info(train).classes, 5);
    assert_int_equal(fds__dataset_get_info(test).classes, 5);
    fds_dataset_free(train);
    fds_dataset_free(test);
    put_idx("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte", 5, 2, 3, 5);
    open_fails(scratch, NULL, FDS_ERR_SHAPE, "1 x 2 x 2, test samples 1 x 2 x 3");
}

static void damage_is_named_with_its_place(void **state) {
    (void)state;
    uint8_t data[64];
    put_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 2, 2, 2, 2);
    put_file("train-labels-idx1-ubyte", data, make_idx_labels(data, 3, 2));
    open_fails(scratch, NULL, FDS_ERR_SHAPE, "2 images, but");
    unlink(scratch_path("train-labels-idx1-ubyte"));
    open_fails(scratch, NULL, FDS_ERR_NOT_FOUND, "train-labels-idx1-ubyte");
    put_file("train-labels-idx1-ubyte", data, make_idx_images(data, 2, 2, 2));
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "byte 0: 0x00000803");
    put_file("train-images-idx3-ubyte", data, 9);
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "9 bytes");
    put_file("train-images-idx3-ubyte", data, make_idx_images(data, 0, 2, 2));
    put_file("train-labels-idx1-ubyte", data, make_idx_labels(data, 0, 2));
    open_fails(scratch, NULL, FDS_ERR_SHAPE, "no samples");
    put_file("train-images-idx3-ubyte", data, make_idx_images(data, 2, 0, 7));
    put_file("train-labels-idx1-ubyte", data, make_idx_labels(data, 2, 2));
    open_fails(scratch, NULL, FDS_ERR_SHAPE, "no values");
}

/* 2^31 images of 2^31 x 4 pixels are 2^64 bytes, which is 0 in 64 bits. */
static void sizes_that_overflow_are_refused(void **state) {
    (void)state;
    uint8_t images[16], labels[8];
    put_u32(put_u32(put_u32(put_u32(images, 0x803), 0x80000000u), 0x80000000u), 4);
    put_u32(put_u32(labels, 0x801), 0);
    fds__blob x = {"x", images, sizeof images, false}, y = {"y", labels, sizeof labels, false};
    fds_dataset *ds = NULL;
    fds_error err = {0};
    assert_int_equal(fds__idx_parse(&x, &y, &ds, &err), FDS_ERR_FORMAT);
    assert_null(ds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(reads_images_and_labels_in_every_spelling),
        TEST(reads_the_official_digits_packed),
        TEST(reads_a_single_file_with_its_labels_beside_it),
        TEST(takes_class_names_from_classes_txt),
        TEST(classes_of_both_parts_are_counted_together),
        TEST(damage_is_named_with_its_place),
        TEST(sizes_that_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
