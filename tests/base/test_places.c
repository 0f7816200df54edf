/* SPDX-License-Identifier: Apache-2.0
 * Files read and written in places: what fails is named, locks end with their holder, and what dead
 * processes left is swept away. */
#include "scratch.h"
#include "base/base.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

static void open_it(fds__file *file, const char *name, fds__access access) {
    fds_error err = {0};
    if (fds__file_open(file, scratch_path(name), access, &err) != FDS_OK)
        fail_msg("%s", err.text);
}

static void bytes_go_where_they_are_told(void **state) {
    (void)state;
    fds__file file;
    uint64_t size;
    char data[5] = {0};
    const uint8_t *map;
    fds_error err = {0};
    open_it(&file, "a", FDS__ACCESS_CREATE);
    assert_int_equal(fds__file_write_at(&file, "world", 5, 5, &err), FDS_OK);
    assert_int_equal(fds__file_write_at(&file, "hello", 5, 0, &err), FDS_OK);
    assert_int_equal(fds__file_size(&file, &size, &err), FDS_OK);
    assert_int_equal(size, 10);
    assert_int_equal(fds__file_read_at(&file, data, 5, 3, &err), FDS_OK);
    assert_memory_equal(data, "lowor", 5);
    assert_int_equal(fds__file_truncate(&file, 7, &err), FDS_OK);
    assert_int_equal(fds__file_sync(&file, &err), FDS_OK);
    assert_int_equal(fds__file_read_at(&file, data, 5, 3, &err), FDS_ERR_IO);
    expect_in(err.text, "ends at byte 7, but must have 8");
    assert_int_equal(fds__file_map(&file, 7, &map, &err), FDS_OK);
    fds__file_close(&file);
    fds__file_close(&file);
    assert_memory_equal(map, "hellowo", 7);
    fds__file_unmap(map, 7);
    fds__file_unmap(NULL, 7);
    open_it(&file, "a", FDS__ACCESS_CREATE); /* what is there stays */
    assert_int_equal(fds__file_size(&file, &size, &err), FDS_OK);
    assert_int_equal(size, 7);
    fds__file_close(&file);
}

static void what_cannot_be_opened_is_named(void **state) {
    (void)state;
    fds__file file;
    fds_error err = {0};
    assert_int_equal(fds__file_open(&file, scratch_path("none"), FDS__ACCESS_READ, &err),
                     FDS_ERR_NOT_FOUND);
    expect_in(err.text, scratch_path("none"));
    assert_int_equal(file.fd, -1);
    assert_int_equal(fds__file_open(&file, scratch_path("none"), FDS__ACCESS_UPDATE, &err),
                     FDS_ERR_NOT_FOUND);
    assert_int_equal(fds__file_open(&file, scratch, FDS__ACCESS_READ, &err), FDS_ERR_FORMAT);
    expect_in(err.text, "not a regular file");
    assert_int_equal(file.fd, -1);
    assert_int_equal(mkfifo(scratch_path("pipe"), 0600), 0);
    assert_int_equal(fds__file_open(&file, scratch_path("pipe"), FDS__ACCESS_READ, &err),
                     FDS_ERR_FORMAT);
    char path[FDS__PATH_MAX + 10];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = 0;
    assert_int_equal(fds__file_open(&file, path, FDS__ACCESS_READ, &err), FDS_ERR_USAGE);
    open_it(&file, "a", FDS__ACCESS_CREATE);
    fds__file_close(&file);
    open_it(&file, "a", FDS__ACCESS_READ);
    assert_int_equal(fds__file_write_at(&file, "x", 1, 0, &err), FDS_ERR_IO);
    expect_in(err.text, "cannot write");
    assert_false(file.is_disk_full);
    assert_int_equal(fds__file_truncate(&file, 0, &err), FDS_ERR_IO);
    fds__file_close(&file);
}

static void a_full_disk_is_told_from_other_failures(void **state) {
    (void)state;
    fds__file file = {.fd = -1, .path = "/dev/full"};
    fds_error err = {0};
    FILE *full = fopen(file.path, "r+"); /* a device that has no room, where there is one */
    if (!full)
        SKIP_CASE("there is no /dev/full");
    file.fd = fileno(full);
    assert_int_equal(fds__file_write_at(&file, "x", 1, 0, &err), FDS_ERR_IO);
    expect_in(err.text, "No space left");
    assert_true(file.is_disk_full);
    fclose(full);
}

static void a_lock_has_one_holder(void **state) {
    (void)state;
    fds__file one, two;
    fds_error err = {0};
    open_it(&one, "lock", FDS__ACCESS_CREATE);
    open_it(&two, "lock", FDS__ACCESS_CREATE);
    assert_int_equal(fds__file_lock(&one, "the table", &err), FDS_OK);
    assert_int_equal(fds__file_lock(&two, "the table", &err), FDS_ERR_IO);
    assert_string_equal(err.text, "the table is in use by another process");
    fds__file_close(&one);
    assert_int_equal(fds__file_lock(&two, "the table", &err), FDS_OK);
    fds__file_close(&two);
}

static void folders_and_disks(void **state) {
    (void)state;
    uint64_t bytes = 0;
    fds_error err = {0};
    assert_int_equal(fds__disk_free(scratch, &bytes, &err), FDS_OK);
    assert_true(bytes > 0);
    assert_int_equal(fds__disk_free(scratch_path("none"), &bytes, &err), FDS_ERR_NOT_FOUND);
    assert_int_equal(fds__dir_sync(scratch, &err), FDS_OK);
    assert_int_equal(fds__dir_sync(scratch_path("none"), &err), FDS_ERR_NOT_FOUND);
}

static void only_what_was_left_of_the_file_is_swept_away(void **state) {
    (void)state;
    static const char *const stay[] = {"a.json", ".a.json",        ".a.json.tm",    ".a.json.tmp",
                                       ".b.tmp", "a.json.1-1.tmp", ".a.jso.1-1.tmp"};
    for (size_t i = 0; i < COUNT(stay); i++)
        scratch_write(scratch_path(stay[i]), "x", 1);
    scratch_write(scratch_path(".a.json.12-0.tmp"), "x", 1);
    scratch_write(scratch_path(".a.json.12-1.tmp"), "x", 1);
    fds_error err = {0};
    assert_int_equal(fds__out_sweep(scratch_path("a.json"), &err), FDS_OK);
    assert_int_equal(scratch_entries(), COUNT(stay));
    for (size_t i = 0; i < COUNT(stay); i++)
        scratch_expect(scratch_path(stay[i]), "x");
    assert_int_equal(fds__out_sweep(scratch_path("none/a"), &err), FDS_ERR_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(bytes_go_where_they_are_told),
        TEST(what_cannot_be_opened_is_named),
        TEST(a_full_disk_is_told_from_other_failures),
        TEST(a_lock_has_one_holder),
        TEST(folders_and_disks),
        TEST(only_what_was_left_of_the_file_is_swept_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
