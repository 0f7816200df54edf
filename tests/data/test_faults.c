/* SPDX-License-Identifier: Apache-2.0
 * Every allocation and every file operation of every reader and writer fails once: the call fails,
 * nothing leaks (under ASan), nothing half-written is left. libjpeg allocates for itself, so its
 * own allocations are not among them. */
#include "fixture.h"

static char where[512];
static fds__data_options options;

static fds_status open_and_close(fds_error *err) {
    fds_dataset *train = NULL, *test = NULL;
    fds_status status = fds__data_open(where, &options, NULL, &train, &test, err);
    fds_dataset_free(train);
    fds_dataset_free(test);
    return status;
}

/* Runs with the 1st, 2nd, 3rd ... call failing, until there is no such call. */
static void each_fault(const char *name, fds_status (*run)(fds_error *)) {
    static const char *const kinds[] = {"allocations", "file operations"};
    uint64_t counts[2] = {0};
    for (int kind = 0; kind < 2; kind++) {
        for (uint64_t nth = 1;; nth++) {
            fds_error err = {0};
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status = run(&err);
            uint64_t calls = fds__fault_arm((fds__fault_kind)kind, 0);
            if (calls < nth) {
                if (status != FDS_OK)
                    fail_msg("%s: without a fault: %s", name, err.text);
                break;
            }
            if (status == FDS_OK)
                fail_msg("%s: %s number %lu fails, yet all is said to be well", name, kinds[kind],
                         (unsigned long)nth);
            assert_int_equal(err.status, status);
            counts[kind]++;
        }
    }
    print_message("# %s: %lu allocations and %lu file operations failed, one at a time\n", name,
                  (unsigned long)counts[0], (unsigned long)counts[1]);
}

static void expect_faults(const char *name, const char *path) {
    snprintf(where, sizeof where, "%s", path);
    each_fault(name, open_and_close);
}

static void idx_folder(void **state) {
    (void)state;
    put_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 5, 3, 4, 3);
    put_idx("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 5, 3, 4, 3);
    put_text("classes.txt", "a\nb\nc\n");
    expect_faults("IDX", scratch);
}

static void gzip_folder(void **state) {
    (void)state;
    expect_faults("IDX with gzip", kept_path("mnist"));
}

static void cifar_folder(void **state) {
    (void)state;
    put_cifar("data_batch_1.bin", 0, 2);
    put_cifar("data_batch_2.bin", 0, 1);
    put_cifar("test_batch.bin", 0, 1);
    put_text("batches.meta.txt", "a\nb\nc\n");
    expect_faults("CIFAR-10", scratch);
}

static void npy_file(void **state) {
    (void)state;
    static char labels[512];
    snprintf(labels, sizeof labels, "%s", kept_path("npy/labels_i8.npy"));
    options.labels_file = labels;
    expect_faults("NPY", kept_path("npy/nchw_u1.npy"));
    options.labels_file = NULL;
}

static void csv_folder(void **state) {
    (void)state;
    put_text("train.csv", "x,label,provider\n1,b,p2\n2,c,p1\n3,d,p1\n");
    put_text("test.csv", "x,label,provider\n3,a,p3\n4,c,p1\n");
    expect_faults("CSV", scratch);
}

static void picture_folder(void **state) {
    (void)state;
    size_t size;
    put_folder("train/a");
    put_folder("train/b");
    put_folder("test/b");
    put_png("train/a/1.png", 8, 8, 1);
    put_png("train/b/2.png", 8, 8, 3);
    uint8_t *jpeg = make_jpeg(8, 8, 3, true, &size);
    put_file("test/b/1.jpg", jpeg, size);
    free(jpeg);
    expect_faults("pictures", scratch);
}

/* ---- what is done with a dataset ---- */

static fds_dataset *kept;

static fds_status choose_and_own(fds_error *err) {
    uint32_t index[6], train[8], test[8];
    fds_players *players = NULL;
    TRY(fds_split_balanced(kept, 6, 1, index, err));
    TRY(fds_split_test(kept, 2, 1, train, test, err));
    TRY(fds_players_points(kept, index, 6, &players, err));
    fds_players_free(players);
    TRY(fds_players_providers(kept, index, 6, &players, err));
    fds_players_free(players);
    return FDS_OK;
}

static void splits_and_players(void **state) {
    (void)state;
    fds_dataset *test;
    put_text("a.csv", "x,label,provider\n1,a,p\n2,b,q\n3,a,r\n4,b,p\n5,a,q\n6,b,r\n7,a,p\n8,b,q\n");
    open_ok(scratch_path("a.csv"), NULL, &kept, &test);
    each_fault("splits and players", choose_and_own);
    fds_dataset_free(kept);
}

static fds_status draw(fds_error *err) {
    return fds_dataset_draw(kept, NULL, 3, 2, scratch_path("sheet.png"), err);
}

static fds_status create(fds_error *err) {
    uint8_t bytes[4] = {0};
    uint16_t labels[2] = {0, 1};
    fds_dataset *ds = NULL;
    fds_status status =
        fds__dataset_create(2, (fds_shape){2, 1, 1}, bytes, NULL, labels, 2, NULL, &ds, err);
    fds_dataset_free(ds);
    return status;
}

static void sheet_and_dataset_from_memory(void **state) {
    (void)state;
    assert_int_equal(fds__data_open(kept_path("mnist"), NULL, NULL, &kept, NULL, NULL), FDS_OK);
    each_fault("sheet", draw);
    assert_int_equal(scratch_entries(), 1); /* the sheet, and nothing beside it */
    each_fault("dataset from memory", create);
    fds_dataset_free(kept);
}

/* ---- getting a set ---- */

static void fetched_sets_are_whole_or_absent(void **state) {
    (void)state;
    char path[512];
    put_folder("data");
    put_cifar_source();
    setenv("FDS_DATA", scratch_path("data"), 1);
    for (int kind = 0; kind < 2; kind++) {
        uint64_t nth = 1;
        for (;; nth++) {
            fds_error err = {0};
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status =
                fds_data_get("cifar10", scratch_path("from"), path, sizeof path, NULL, &err);
            bool fired = fds__fault_arm((fds__fault_kind)kind, 0) >= nth;
            assert_int_equal(status == FDS_OK, !fired);
            assert_int_equal(fds__path_exists(path), !fired);
            if (!fired)
                break;
        }
        print_message("# data get: %lu %s failed, one at a time\n", (unsigned long)nth - 1,
                      kind ? "file operations" : "allocations");
        char **names;
        size_t count;
        assert_int_equal(fds__dir_list(scratch_path("data"), &names, &count, NULL), FDS_OK);
        assert_int_equal(count, 1);
        fds__dir_list_free(names, count);
        nftw(path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    unsetenv("FDS_DATA");
}

/* Whatever fails while a set is replaced, the old one stands whole, and nothing is beside it. */
static void a_set_that_is_not_replaced_stands(void **state) {
    (void)state;
    char path[512];
    uint64_t nth = 1;
    put_cifar_source();
    setenv("FDS_DATA", scratch_path("data"), 1);
    assert_int_equal(fds_data_get("cifar10", scratch_path("from"), path, sizeof path, NULL, NULL),
                     FDS_OK);
    put_cifar_source_from(7);
    for (bool fired = true; fired; nth++) {
        size_t size;
        fds__fault_arm(FDS__FAULT_IO, nth);
        fds_status status =
            fds_data_get("cifar10", scratch_path("from"), path, sizeof path, NULL, NULL);
        fired = fds__fault_arm(FDS__FAULT_IO, 0) >= nth;
        assert_int_equal(status == FDS_OK, !fired);
        char *now = scratch_read(scratch_path("data/cifar10/test_batch.bin"), &size);
        assert_int_equal(now[1], fired ? 50 : 57);
        free(now);
        assert_int_equal(entries_in(scratch_path("data")), 1);
    }
    unsetenv("FDS_DATA");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(idx_folder),
        TEST(gzip_folder),
        TEST(cifar_folder),
        TEST(npy_file),
        TEST(csv_folder),
        TEST(picture_folder),
        TEST(splits_and_players),
        TEST(sheet_and_dataset_from_memory),
        TEST(fetched_sets_are_whole_or_absent),
        TEST(a_set_that_is_not_replaced_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
