/* SPDX-License-Identifier: Apache-2.0
 * CIFAR-10 binary: any whole number of records, several batches, class names. */
#include "fixture.h"

static void reads_batches_in_the_order_of_their_names(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_cifar("data_batch_2.bin", 20, 1);
    put_cifar("data_batch_1.bin", 13, 3);
    put_cifar("test_batch.bin", 7, 2);
    put_text("batches.meta.txt",
             "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
    open_ok(scratch, NULL, &train, &test);
    expect_shape(train, 4, 3, 32, 32);
    expect_shape(test, 2, 3, 32, 32);
    static const unsigned numbers[4] = {13, 14, 15, 20};
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(train->labels[i], numbers[i] % 10);
        float values[3072];
        fds_dataset_sample(train, i, values);
        for (unsigned k = 0; k < 3072; k++)
            assert_true(values[k] == (float)((numbers[i] + k) % 256) / 255.0f);
    }
    assert_string_equal(fds_dataset_class_name(test, test->labels[1]), "ship");
    assert_string_equal(fds__dataset_get_info(train).source, scratch);
    fds_dataset_free(train);
    fds_dataset_free(test);
}

static void there_are_ten_classes_even_when_some_have_no_picture(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_cifar("data_batch_1.bin", 0, 2);
    open_ok(scratch, NULL, &train, &test);
    assert_null(test);
    assert_int_equal(fds__dataset_get_info(train).classes, 10);
    assert_string_equal(fds_dataset_class_name(train, 9), "9");
    fds_dataset_free(train);
    open_ok(scratch_path("data_batch_1.bin"), NULL, &train, &test);
    expect_shape(train, 2, 3, 32, 32);
    fds_dataset_free(train);
}

static void damage_is_named_with_its_place(void **state) {
    (void)state;
    static uint8_t data[3 * CIFAR_RECORD];
    size_t size = make_cifar(data, 0, 3);
    put_file("data_batch_1.bin", data, size - 1);
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "9218 bytes are not a whole number");
    put_file("data_batch_1.bin", data, 0);
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "0 bytes");
    data[2 * CIFAR_RECORD] = 10;
    put_file("data_batch_1.bin", data, size);
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "byte 6146 (record 2): label 10");
    put_cifar("data_batch_1.bin", 0, 2);
    put_text("batches.meta.txt", "a\n");
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "label 1, but there are 1 classes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(reads_batches_in_the_order_of_their_names),
        TEST(there_are_ten_classes_even_when_some_have_no_picture),
        TEST(damage_is_named_with_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
