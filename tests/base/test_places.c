/* SPDX-License-Identifier: Apache-2.0
 * Files read and written in places: what fails is named, locks end with their holder, and what dead
 * processes left is swept away. */
#include "scratch.h"
#include "base/base.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

static void open_it(fds_file *file, const char *name, fds_access access) {
    fds_error err = {0};
    if (fds_file_open(file, scratch_path(name), access, &err) != FDS_OK)
        fail_msg("%s", err.text);
}

static void bytes_go_where_they_are_told(void **state) {
    (void)state;
    fds_file file;
    uint64_t size;
    char data[5] = {0};
    const uint8_t *map;
    fds_error err = {0};
    open_it(&file, "a", FDS_CREATE);
    assert_int_equal(fds_file_write_at(&file, "world", 5, 5, &err), FDS_OK);
    assert_int_equal(fds_file_write_at(&file, "hello", 5, 0, &err), FDS_OK);
    assert_int_equal(fds_file_size(&file, &size, &err), FDS_OK);
    assert_int_equal(size, 10);
    assert_int_equal(fds_file_read_at(&file, data, 5, 3, &err), FDS_OK);
    assert_memory_equal(data, "lowor", 5);
    assert_int_equal(fds_file_truncate(&file, 7, &err), FDS_OK);
    assert_int_equal(fds_file_sync(&file, &err), FDS_OK);
    assert_int_equal(fds_file_read_at(&file, data, 5, 3, &err), FDS_IO);
    expect_in(err.text, "ended at byte 7, 8 were expected");
    assert_int_equal(fds_file_map(&file, 7, &map, &err), FDS_OK);
    fds_file_close(&file);
    fds_file_close(&file);
    assert_memory_equal(map, "hellowo", 7);
    fds_file_unmap(map, 7);
    fds_file_unmap(NULL, 7);
    open_it(&file, "a", FDS_CREATE); /* what is there stays */
    assert_int_equal(fds_file_size(&file, &size, &err), FDS_OK);
    assert_int_equal(size, 7);
    fds_file_close(&file);
}

static void what_cannot_be_opened_is_named(void **state) {
    (void)state;
    fds_file file;
    fds_error err = {0};
    assert_int_equal(fds_file_open(&file, scratch_path("none"), FDS_READ, &err), FDS_NOT_FOUND);
    expect_in(err.text, scratch_path("none"));
    assert_int_equal(file.fd, -1);
    assert_int_equal(fds_file_open(&file, scratch_path("none"), FDS_UPDATE, &err), FDS_NOT_FOUND);
    assert_int_equal(fds_file_open(&file, scratch, FDS_READ, &err), FDS_FORMAT);
    expect_in(err.text, "not a regular file");
    assert_int_equal(file.fd, -1);
    assert_int_equal(mkfifo(scratch_path("pipe"), 0600), 0);
    assert_int_equal(fds_file_open(&file, scratch_path("pipe"), FDS_READ, &err), FDS_FORMAT);
    char path[FDS_PATH_MAX + 10];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = 0;
    assert_int_equal(fds_file_open(&file, path, FDS_READ, &err), FDS_USAGE);
    open_it(&file, "a", FDS_CREATE);
    fds_file_close(&file);
    open_it(&file, "a", FDS_READ);
    assert_int_equal(fds_file_write_at(&file, "x", 1, 0, &err), FDS_IO);
    expect_in(err.text, "cannot write");
    assert_false(file.is_disk_full);
    assert_int_equal(fds_file_truncate(&file, 0, &err), FDS_IO);
    fds_file_close(&file);
}

static void a_full_disk_is_told_from_other_failures(void **state) {
    (void)state;
    fds_file file = {.fd = -1, .path = "/dev/full"};
    fds_error err = {0};
    FILE *full = fopen(file.path, "r+"); /* a device that has no room, where there is one */
    if (!full)
        return;
    file.fd = fileno(full);
    assert_int_equal(fds_file_write_at(&file, "x", 1, 0, &err), FDS_IO);
    expect_in(err.text, "No space left");
    assert_true(file.is_disk_full);
    fclose(full);
}

static void a_lock_has_one_holder(void **state) {
    (void)state;
    fds_file one, two;
    fds_error err = {0};
    open_it(&one, "lock", FDS_CREATE);
    open_it(&two, "lock", FDS_CREATE);
    assert_int_equal(fds_file_lock(&one, "the table", &err), FDS_OK);
    assert_int_equal(fds_file_lock(&two, "the table", &err), FDS_IO);
    assert_string_equal(err.text, "the table is in use by another process");
    fds_file_close(&one);
    assert_int_equal(fds_file_lock(&two, "the table", &err), FDS_OK);
    fds_file_close(&two);
}

static void folders_and_disks(void **state) {
    (void)state;
    uint64_t bytes = 0;
    fds_error err = {0};
    assert_int_equal(fds_disk_free(scratch, &bytes, &err), FDS_OK);
    assert_true(bytes > 0);
    assert_int_equal(fds_disk_free(scratch_path("none"), &bytes, &err), FDS_NOT_FOUND);
    assert_int_equal(fds_dir_sync(scratch, &err), FDS_OK);
    assert_int_equal(fds_dir_sync(scratch_path("none"), &err), FDS_NOT_FOUND);
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
    assert_int_equal(fds_out_sweep(scratch_path("a.json"), &err), FDS_OK);
    assert_int_equal(scratch_entries(), COUNT(stay));
    for (size_t i = 0; i < COUNT(stay); i++)
        scratch_expect(scratch_path(stay[i]), "x");
    assert_int_equal(fds_out_sweep(scratch_path("none/a"), &err), FDS_NOT_FOUND);
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
