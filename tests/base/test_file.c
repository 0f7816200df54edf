/* SPDX-License-Identifier: Apache-2.0
 * Files: what cannot be read is named, what is half-written never takes a good file's place. */
#include "scratch.h"
#include "base/base.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <zlib.h>

enum { BIG = 100000 };

/* ---- reading ---- */

static fds_status try_read(const char *path, size_t limit, bool gz, fds_error *err) {
    uint8_t *data = NULL;
    size_t size = 0;
    fds_status status = gz ? fds__file_read_gz(path, limit, NULL, &data, &size, err)
                           : fds__file_read(path, limit, &data, &size, err);
    if (status == FDS_OK) {
        assert_int_equal(data[size], 0);
        assert_true(size <= limit);
    }
    fds__free(data);
    return status;
}

static void expect_read(const char *path, bool gz, const void *content, size_t content_size) {
    uint8_t *data = NULL;
    size_t size = 0;
    fds_error err = {0};
    fds_status status = gz ? fds__file_read_gz(path, 1 << 20, NULL, &data, &size, &err)
                           : fds__file_read(path, 1 << 20, &data, &size, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(status, FDS_OK);
    assert_int_equal(size, content_size);
    assert_memory_equal(data, content, content_size);
    assert_int_equal(data[size], 0);
    fds__free(data);
}

static void a_file_is_read_whole_with_a_nul_after_it(void **state) {
    (void)state;
    char content[BIG];
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (char)(i * 31);
    const size_t sizes[] = {0, 1, 2, 3, 4095, 4096, 4097, BIG};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const char *path = scratch_path("plain");
        scratch_write(path, content, sizes[i]);
        expect_read(path, false, content, sizes[i]);
        expect_read(path, true, content, sizes[i]);
    }
}

static void what_cannot_be_read_is_named(void **state) {
    (void)state;
    for (int gz = 0; gz < 2; gz++) {
        fds_error err = {0};
        assert_int_equal(try_read(scratch_path("none"), 99, gz, &err), FDS_ERR_NOT_FOUND);
        expect_in(err.text, scratch_path("none"));
        assert_int_equal(try_read(scratch, 99, gz, &err), FDS_ERR_FORMAT);
        expect_in(err.text, "not a regular file");
        assert_int_equal(mkfifo(scratch_path("pipe"), 0600), 0);
        assert_int_equal(try_read(scratch_path("pipe"), 99, gz, &err), FDS_ERR_FORMAT);
        unlink(scratch_path("pipe"));
        scratch_write(scratch_path("file"), "x", 1);
        assert_int_not_equal(try_read(scratch_path("file/below"), 99, gz, &err), FDS_OK);
    }
}

static void a_file_over_the_limit_is_refused(void **state) {
    (void)state;
    const char *path = scratch_path("ten");
    scratch_write(path, "0123456789", 10);
    fds_error err = {0};
    for (int gz = 0; gz < 2; gz++) {
        assert_int_equal(try_read(path, 10, gz, &err), FDS_OK);
        assert_int_equal(try_read(path, SIZE_MAX, gz, &err), FDS_OK);
        assert_int_equal(try_read(path, 9, gz, &err), FDS_ERR_LIMIT);
        expect_in(err.text, "at most 9");
        assert_int_equal(try_read(path, 0, gz, &err), FDS_ERR_LIMIT);
    }
}

static void every_read_call_that_fails_is_reported(void **state) {
    (void)state;
    const char *path = scratch_path("file");
    scratch_write(path, "content", 7);
    fds__fault_arm(FDS__FAULT_IO, 0);
    assert_int_equal(try_read(path, 99, false, NULL), FDS_OK);
    uint64_t calls = fds__fault_arm(FDS__FAULT_IO, 0);
    assert_true(calls >= 2);
    for (uint64_t n = 1; n <= calls; n++) {
        fds_error err = {0};
        fds__fault_arm(FDS__FAULT_IO, n);
        assert_int_equal(try_read(path, 99, false, &err), FDS_ERR_IO);
        expect_in(err.text, path);
    }
    fds__fault_arm(FDS__FAULT_IO, 0);
}

/* ---- gzip ---- */

/* content as a gzip file's bytes; the caller frees them */
static unsigned char *pack(const void *content, size_t size, int level, size_t *packed_size) {
    size_t room = compressBound((uLong)size) + 64;
    unsigned char *packed = calloc(room, 1);
    assert_non_null(packed);
    z_stream z = {.next_in = (Bytef *)content,
                  .avail_in = (uInt)size,
                  .next_out = packed,
                  .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *packed_size = z.total_out;
    deflateEnd(&z);
    return packed;
}

static void gzip_is_undone(void **state) {
    (void)state;
    char *content = malloc(BIG * 4);
    assert_non_null(content);
    for (size_t i = 0; i < BIG * 4; i++)
        content[i] = (char)(i * i / 77);
    /* around the steps in which the result grows */
    const size_t sizes[] = {0, 1, 100, 65535, 65536, 65537, 65538, 98304, 98305, 98306, BIG * 4};
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int level = 0; level <= 9; level += 3) {
            size_t packed_size;
            unsigned char *packed = pack(content, sizes[i], level, &packed_size);
            scratch_write(scratch_path("a.gz"), packed, packed_size);
            expect_read(scratch_path("a.gz"), true, content, sizes[i]);
            expect_read(scratch_path("a.gz"), false, packed, packed_size);
            /* the limit is of the result, to the byte, also where packing made it larger */
            fds_error err = {0};
            assert_int_equal(try_read(scratch_path("a.gz"), sizes[i], true, &err), FDS_OK);
            assert_int_equal(try_read(scratch_path("a.gz"), SIZE_MAX, true, &err), FDS_OK);
            if (sizes[i] > 0)
                assert_int_equal(try_read(scratch_path("a.gz"), sizes[i] - 1, true, &err),
                                 FDS_ERR_LIMIT);
            free(packed);
        }
    free(content);
}

static void gzip_cut_off_anywhere_is_refused(void **state) {
    (void)state;
    char content[3000];
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (char)(i * i % 251);
    size_t size;
    unsigned char *packed = pack(content, sizeof content, 6, &size);
    for (size_t cut = 2; cut < size; cut++) { /* shorter, it does not look like gzip */
        fds_error err = {0};
        scratch_write(scratch_path("cut.gz"), packed, cut);
        assert_int_equal(try_read(scratch_path("cut.gz"), 1 << 20, true, &err), FDS_ERR_FORMAT);
        expect_in(err.text, scratch_path("cut.gz"));
        expect_in(err.text, "cut off");
    }
    free(packed);
}

/* A flipped bit after the header is noticed, or changes nothing: the last block ends within a byte,
 * whose other bits mean nothing. */
static void gzip_that_is_damaged_is_refused(void **state) {
    (void)state;
    char content[500];
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (char)(i * i % 251);
    size_t size;
    unsigned char *packed = pack(content, sizeof content, 6, &size);
    size_t refused = 0;
    for (size_t i = 10; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            fds_error err = {0};
            packed[i] ^= (unsigned char)(1 << bit);
            scratch_write(scratch_path("bad.gz"), packed, size);
            fds_status status = try_read(scratch_path("bad.gz"), 1 << 20, true, &err);
            if (status == FDS_OK)
                expect_read(scratch_path("bad.gz"), true, content, sizeof content);
            else
                assert_int_equal(status, FDS_ERR_FORMAT);
            refused += status != FDS_OK;
            packed[i] ^= (unsigned char)(1 << bit);
        }
    assert_true(refused + 7 >= 8 * (size - 10));
    free(packed);
}

static void gzip_with_bytes_after_it_is_refused(void **state) {
    (void)state;
    size_t size;
    unsigned char *packed = pack("content", 7, 6, &size);
    for (size_t more = 1; more < 5; more++) {
        fds_error err = {0};
        scratch_write(scratch_path("long.gz"), packed, size + more); /* zeros: room was calloc'ed */
        assert_int_equal(try_read(scratch_path("long.gz"), 1 << 20, true, &err), FDS_ERR_FORMAT);
        expect_in(err.text, "after the end of the gzip data");
    }
    free(packed);
}

static void a_gzip_bomb_stops_at_the_limit(void **state) {
    (void)state;
    size_t bomb_size = (size_t)64 << 20, size;
    char *zeros = calloc(bomb_size, 1);
    assert_non_null(zeros);
    unsigned char *packed = pack(zeros, bomb_size, 9, &size);
    free(zeros);
    assert_true(size < 100000);
    scratch_write(scratch_path("bomb.gz"), packed, size);
    free(packed);
    fds_error err = {0};
    assert_int_equal(try_read(scratch_path("bomb.gz"), 200000, true, &err), FDS_ERR_LIMIT);
    expect_in(err.text, "more than 200000 bytes");
}

#if !defined __SANITIZE_ADDRESS__ && \
    !defined __SANITIZE_THREAD__ /* its shadow needs the address space */
/* A process that may have 512 MiB stands for a small machine. */
static void what_takes_over_half_of_the_memory_is_refused(void **state) {
    (void)state;
    struct rlimit was, small;
    fds_error err = {0};
    size_t size, half = (size_t)256 << 20;
    char *zeros = calloc(half + 1, 1);
    assert_non_null(zeros);
    unsigned char *packed = pack(zeros, half + 1, 1, &size);
    free(zeros);
    scratch_write(scratch_path("bomb.gz"), packed, size);
    free(packed);
    scratch_write(scratch_path("plain"), "", 0);
    assert_int_equal(truncate(scratch_path("plain"), (off_t)half + (off_t)half / 8), 0);
    assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
    small = was;
    small.rlim_cur = 2 * half;
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
    fds_status status = try_read(scratch_path("bomb.gz"), SIZE_MAX, true, &err);
    fds_status plain = try_read(scratch_path("plain"), SIZE_MAX, true, NULL);
    assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
    assert_int_equal(status, FDS_ERR_LIMIT);
    expect_in(err.text, "bomb.gz: more than 268435456 bytes when unpacked");
    expect_in(err.text, "half of this machine's memory: split the file");
    assert_int_equal(plain, FDS_ERR_LIMIT);
}
#endif

/* Ends reading at the n-th report. */
static bool stop_at(void *user, const fds_progress *progress) {
    assert_string_equal(progress->stage, "read");
    assert_true(progress->done <= progress->total);
    return --*(int *)user == 0;
}

static void reading_and_unpacking_can_be_cancelled(void **state) {
    (void)state;
    size_t size, whole = 4 * FDS__READ_STEP;
    char *zeros = calloc(whole, 1);
    assert_non_null(zeros);
    unsigned char *packed = pack(zeros, whole, 1, &size);
    scratch_write(scratch_path("a"), zeros, whole);
    scratch_write(scratch_path("a.gz"), packed, size);
    free(zeros);
    free(packed);
    static const char *const names[] = {"a", "a.gz"};
    for (size_t i = 0; i < COUNT(names); i++) {
        int reports = 4; /* not at once */
        fds_events events = {.progress = stop_at, .user = &reports};
        fds_error err = {0};
        uint8_t *data = NULL;
        assert_int_equal(
            fds__file_read_gz(scratch_path(names[i]), whole, &events, &data, &size, &err),
            FDS_ERR_CANCELLED);
        expect_in(err.text, "read: cancelled after");
        assert_null(data);
    }
}

static void every_allocation_of_unpacking_may_fail(void **state) {
    (void)state;
    char *content = calloc(BIG * 4, 1);
    assert_non_null(content);
    size_t size;
    unsigned char *packed = pack(content, BIG * 4, 6, &size);
    scratch_write(scratch_path("a.gz"), packed, size);
    free(packed);
    free(content);
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    assert_int_equal(try_read(scratch_path("a.gz"), 1 << 20, true, NULL), FDS_OK);
    uint64_t calls = fds__fault_arm(FDS__FAULT_ALLOC, 0);
    assert_true(calls >= 4);
    for (uint64_t n = 1; n <= calls; n++) {
        fds__fault_arm(FDS__FAULT_ALLOC, n);
        assert_int_equal(try_read(scratch_path("a.gz"), 1 << 20, true, NULL), FDS_ERR_NOMEM);
    }
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
}

/* ---- replacing ---- */

static fds_status replace(const char *path, const char *text, fds_error *err) {
    fds__out *out;
    TRY(fds__out_open(path, &out, err));
    size_t half = strlen(text) / 2;
    fds_status status = fds__out_write(out, text, half, err);
    if (status == FDS_OK)
        status = fds__out_write(out, text + half, strlen(text) - half, err);
    if (status == FDS_OK)
        return fds__out_commit(out, err);
    fds__out_abort(out);
    return status;
}

static void a_new_file_has_the_usual_mode(void **state) {
    (void)state;
    mode_t before = umask(027);
    assert_int_equal(replace(scratch_path("new"), "hello", NULL), FDS_OK);
    umask(before);
    struct stat about;
    assert_int_equal(stat(scratch_path("new"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    scratch_expect(scratch_path("new"), "hello");
    assert_int_equal(scratch_entries(), 1);
}

static void an_old_file_is_replaced_whole(void **state) {
    (void)state;
    scratch_write(scratch_path("file"), "a much longer old text", 22);
    assert_int_equal(replace(scratch_path("file"), "new", NULL), FDS_OK);
    scratch_expect(scratch_path("file"), "new");
    assert_int_equal(replace(scratch_path("file"), "", NULL), FDS_OK);
    scratch_expect(scratch_path("file"), "");
    assert_int_equal(scratch_entries(), 1);
}

/* The last call is the sync of the folder, after the new file took its place: it alone may fail
 * with the new file standing, complete. */
static void the_old_file_stands_when_any_call_fails(void **state) {
    (void)state;
    const char *path = scratch_path("file");
    fds__fault_arm(FDS__FAULT_IO, 0);
    assert_int_equal(replace(path, "old text", NULL), FDS_OK);
    uint64_t calls = fds__fault_arm(FDS__FAULT_IO, 0);
    assert_true(calls >= 6); /* open, 2 writes, sync, rename, sync of the folder */
    bool file_synced = false, folder_synced = false;
    for (uint64_t n = 1; n <= calls; n++) {
        fds_error err = {0};
        fds__fault_arm(FDS__FAULT_IO, n);
        assert_int_equal(replace(path, "new text", &err), FDS_ERR_IO);
        fds__fault_arm(FDS__FAULT_IO, 0);
        scratch_expect(path, n < calls ? "old text" : "new text");
        expect_in(err.text, scratch);
        file_synced |= strstr(err.text, "cannot sync /") != NULL;
        folder_synced |= strstr(err.text, "cannot sync folder /") != NULL;
        assert_int_equal(scratch_entries(), 1);
    }
    assert_true(file_synced && folder_synced);
}

static void a_failed_first_write_leaves_nothing(void **state) {
    (void)state;
    for (uint64_t n = 1; n <= 4; n++) {
        fds__fault_arm(FDS__FAULT_IO, n);
        assert_int_equal(replace(scratch_path("file"), "new text", NULL), FDS_ERR_IO);
        fds__fault_arm(FDS__FAULT_IO, 0);
        assert_int_equal(scratch_entries(), 0);
    }
    fds__fault_arm(FDS__FAULT_ALLOC, 1);
    assert_int_equal(replace(scratch_path("file"), "new text", NULL), FDS_ERR_NOMEM);
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    assert_int_equal(scratch_entries(), 0);
}

static void a_removed_file_is_gone_and_a_missing_one_is_named(void **state) {
    (void)state;
    fds_error err = {0};
    scratch_write(scratch_path("file"), "x", 1);
    scratch_write(scratch_path("other"), "x", 1);
    fds__fault_arm(FDS__FAULT_IO, 1);
    assert_int_equal(fds__file_remove(scratch_path("file"), &err), FDS_ERR_IO);
    fds__fault_arm(FDS__FAULT_IO, 0);
    assert_int_equal(scratch_entries(), 2);
    assert_int_equal(fds__file_remove(scratch_path("file"), &err), FDS_OK);
    assert_int_equal(scratch_entries(), 1);
    assert_int_equal(fds__file_remove(scratch_path("file"), &err), FDS_ERR_NOT_FOUND);
    expect_in(err.text, scratch_path("file"));
    assert_int_not_equal(fds__file_remove(scratch, &err), FDS_OK);
}

static void aborting_leaves_the_old_file(void **state) {
    (void)state;
    scratch_write(scratch_path("file"), "old", 3);
    fds__out *out;
    assert_int_equal(fds__out_open(scratch_path("file"), &out, NULL), FDS_OK);
    assert_int_equal(fds__out_write(out, "new", 3, NULL), FDS_OK);
    scratch_expect(scratch_path("file"), "old");
    fds__out_abort(out);
    fds__out_abort(NULL);
    scratch_expect(scratch_path("file"), "old");
    assert_int_equal(scratch_entries(), 1);
}

static void paths_that_name_no_file_are_refused(void **state) {
    (void)state;
    fds_error err = {0};
    fds__out *out;
    assert_int_equal(fds__out_open(scratch, &out, &err), FDS_ERR_IO);
    expect_in(err.text, "it is a folder");
    assert_int_equal(fds__out_open(scratch_path(""), &out, &err), FDS_ERR_USAGE);
    assert_int_equal(fds__out_open("", &out, &err), FDS_ERR_USAGE);
    assert_int_equal(fds__out_open(scratch_path("no/such/file"), &out, &err), FDS_ERR_NOT_FOUND);
    expect_in(err.text, "no/such/file");
    char longest[FDS__PATH_MAX + 10];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(fds__out_open(longest, &out, &err), FDS_ERR_USAGE);
    longest[300] = 0; /* longer than a name may be */
    assert_int_equal(fds__out_open(longest, &out, &err), FDS_ERR_IO);
    assert_int_equal(scratch_entries(), 0);
}

static void a_folder_without_permission_is_named(void **state) {
    (void)state;
    if (geteuid() == 0)
        SKIP_CASE("permissions do not bind root");
    assert_int_equal(mkdir(scratch_path("closed"), 0500), 0);
    fds_error err = {0};
    assert_int_equal(replace(scratch_path("closed/file"), "x", &err), FDS_ERR_IO);
    expect_in(err.text, "closed/file");
}

static void a_bare_name_is_written_to_the_current_folder(void **state) {
    (void)state;
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(scratch), 0);
    fds_status status = replace("bare", "text", NULL);
    assert_int_equal(chdir(before), 0);
    free(before);
    assert_int_equal(status, FDS_OK);
    scratch_expect(scratch_path("bare"), "text");
    assert_int_equal(scratch_entries(), 1);
}

/* ---- folders ---- */

static void mkdirs_makes_what_is_missing(void **state) {
    (void)state;
    fds_error err = {0};
    const char *paths[] = {"a", "a/b/c", "a/b/c", "x/y/", "x//z"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        assert_int_equal(fds__mkdirs(scratch_path(paths[i]), &err), FDS_OK);
        assert_true(fds__path_is_dir(scratch_path(paths[i])));
    }
    assert_int_equal(fds__mkdirs("/", &err), FDS_OK);
    assert_int_equal(fds__mkdirs(".", &err), FDS_OK);
}

static void mkdirs_refuses_what_cannot_be(void **state) {
    (void)state;
    fds_error err = {0};
    scratch_write(scratch_path("file"), "x", 1);
    assert_int_equal(fds__mkdirs(scratch_path("file"), &err), FDS_ERR_IO);
    expect_in(err.text, scratch_path("file"));
    assert_int_equal(fds__mkdirs(scratch_path("file/below"), &err), FDS_ERR_IO);
    assert_int_equal(fds__mkdirs("", &err), FDS_ERR_USAGE);
    char longest[FDS__PATH_MAX + 10];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(fds__mkdirs(longest, &err), FDS_ERR_USAGE);
    fds__fault_arm(FDS__FAULT_IO, 1);
    assert_int_equal(fds__mkdirs(scratch_path("new"), &err), FDS_ERR_IO);
    fds__fault_arm(FDS__FAULT_IO, 0);
}

static void a_folder_is_listed_sorted_by_bytes(void **state) {
    (void)state;
    const char *names[] = {"b", "a", "Z", "10", "9", ".hidden", "\xc3\xa9", "a b"};
    const char *sorted[] = {"10", "9", "Z", "a", "a b", "b", "\xc3\xa9"};
    char **list;
    size_t count;
    assert_int_equal(fds__dir_list(scratch, &list, &count, NULL), FDS_OK);
    assert_int_equal(count, 0);
    fds__dir_list_free(list, count);
    for (size_t i = 0; i < COUNT(names); i++)
        scratch_write(scratch_path(names[i]), "", 0);
    assert_int_equal(fds__dir_list(scratch, &list, &count, NULL), FDS_OK);
    assert_int_equal(count, COUNT(sorted));
    for (size_t i = 0; i < count; i++)
        assert_string_equal(list[i], sorted[i]);
    fds__dir_list_free(list, count);
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    assert_int_equal(fds__dir_list(scratch, &list, &count, NULL), FDS_OK);
    fds__dir_list_free(list, count);
    uint64_t calls = fds__fault_arm(FDS__FAULT_ALLOC, 0);
    for (uint64_t n = 1; n <= calls; n++) {
        fds__fault_arm(FDS__FAULT_ALLOC, n);
        assert_int_equal(fds__dir_list(scratch, &list, &count, NULL), FDS_ERR_NOMEM);
    }
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    fds_error err;
    assert_int_equal(fds__dir_list(scratch_path("none"), &list, &count, &err), FDS_ERR_NOT_FOUND);
    assert_int_equal(fds__dir_list(scratch_path("a"), &list, &count, &err), FDS_ERR_IO);
}

static void paths_are_joined_with_one_slash(void **state) {
    (void)state;
    char out[8];
    fds_error err;
    assert_int_equal(fds__path_join(out, sizeof out, "a", "b", &err), FDS_OK);
    assert_string_equal(out, "a/b");
    assert_int_equal(fds__path_join(out, sizeof out, "a/", "b", &err), FDS_OK);
    assert_string_equal(out, "a/b");
    assert_int_equal(fds__path_join(out, sizeof out, "abc", "def", &err), FDS_OK);
    assert_int_equal(fds__path_join(out, sizeof out, "abc", "defg", &err), FDS_ERR_USAGE);
    assert_true(fds__path_exists(scratch));
    assert_false(fds__path_exists(scratch_path("none")));
    assert_false(fds__path_is_dir(scratch_path("none")));
}

static void a_wrong_ending_is_refused(void **state) {
    (void)state;
    static const char *const right[] = {"a.png", "x/y.PNG", "a.jpg.png"};
    static const char *const wrong[] = {"a.jpg", "png", ".png", "a.png/", "a.png.gz", ""};
    fds_error err = {0};
    for (size_t i = 0; i < COUNT(right); i++)
        assert_int_equal(fds__path_check_ending(right[i], ".png", &err), FDS_OK);
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(fds__path_check_ending(wrong[i], ".png", &err), FDS_ERR_USAGE);
    assert_int_equal(fds__path_check_ending("a.jpg", ".png", &err), FDS_ERR_USAGE);
    assert_string_equal(err.text, "a.jpg: must end in .png");
}

/* ---- programs ---- */

static fds_status shell(const char *script, const char *cwd, fds_error *err) {
    return fds__run_program((const char *const[]){"sh", "-c", script, NULL}, cwd, err);
}

static void programs_answer_with_their_end(void **state) {
    (void)state;
    fds_error err = {0};
    assert_int_equal(shell("exit 0", scratch, &err), FDS_OK);
    assert_int_equal(shell("exit 3", scratch, &err), FDS_ERR_EXTERNAL);
    assert_string_equal(err.text, "sh ended with exit code 3");
    assert_int_equal(shell("kill -9 $$", scratch, &err), FDS_ERR_EXTERNAL);
    assert_string_equal(err.text, "sh was ended by signal 9");
    assert_int_equal(shell("exit 126", scratch, &err), FDS_ERR_EXTERNAL);
    /* the program is there: it was something else that was not */
    assert_int_equal(shell("exit 127", scratch, &err), FDS_ERR_EXTERNAL);
}

static void programs_that_cannot_start_are_named(void **state) {
    (void)state;
    fds_error err = {0};
    const char *const missing[] = {"fds-no-such-program", NULL};
    assert_int_equal(fds__run_program(missing, scratch, &err), FDS_ERR_NOT_FOUND);
    expect_in(err.text, "fds-no-such-program");
    assert_int_equal(shell("exit 0", scratch_path("none"), &err), FDS_ERR_NOT_FOUND);
    expect_in(err.text, scratch_path("none"));
}

static void programs_run_in_their_folder_and_keep_quiet(void **state) {
    (void)state;
    assert_int_equal(shell("echo noise; echo noise >&2; echo text > made", scratch, NULL), FDS_OK);
    scratch_expect(scratch_path("made"), "text\n");
}

/* ---- descriptors ---- */

/* In a process without standard descriptors: 0 when no file got one of theirs. */
static int open_without_standard_descriptors(void) {
    fds__file file;
    fds__out *out;
    char **names;
    size_t count;
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    if (fds__file_open(&file, scratch_path("places"), FDS__ACCESS_CREATE, NULL) != FDS_OK ||
        file.fd < 3)
        return 1;
    if (fds__out_open(scratch_path("whole"), &out, NULL) != FDS_OK || write(1, "noise", 5) == 5 ||
        write(2, "noise", 5) == 5 || fds__out_commit(out, NULL) != FDS_OK)
        return 2;
    if (fds__dir_list(scratch, &names, &count, NULL) != FDS_OK || count != 2)
        return 3;
    fds__dir_list_free(names, count);
    if (shell("echo noise; echo text > made", scratch, NULL) != FDS_OK ||
        shell("exit 0", scratch_path("none"), NULL) != FDS_ERR_NOT_FOUND)
        return 4;
    fds__file_close(&file);
    return fcntl(0, F_GETFD) >= 0 || fcntl(1, F_GETFD) >= 0 || fcntl(2, F_GETFD) >= 0 ? 5 : 0;
}

/* Daemons close them; what is then printed must not land in a file. */
static void files_never_get_a_standard_descriptor(void **state) {
    (void)state;
    int ended;
    pid_t child = fork();
    if (child == 0)
        _exit(open_without_standard_descriptors());
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 0);
    scratch_expect(scratch_path("whole"), "");
    scratch_expect(scratch_path("places"), "");
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

/* ---- large files ---- */

typedef struct {
    uint64_t last, total, stop_at; /* bytes */
    unsigned calls;
} hearing;

static bool hear(void *user, const fds_progress *progress) {
    hearing *h = user;
    assert_string_equal(progress->stage, "write");
    assert_true(progress->done > h->last && progress->done <= progress->total);
    h->last = progress->done;
    h->total = progress->total;
    h->calls++;
    return h->stop_at && progress->done >= h->stop_at;
}

static fds_status write_large(const char *path, const char *data, size_t size, hearing *h,
                              fds_error *err) {
    const fds_events events = {.user = h, .progress = hear};
    fds__out *out;
    TRY(fds__out_open(path, &out, err));
    fds__out_hear(out, size, &events);
    fds_status status = fds__out_write(out, data, 3, err);
    if (status == FDS_OK)
        status = fds__out_write(out, data + 3, size - 3, err);
    if (status == FDS_OK)
        return fds__out_commit(out, err);
    fds__out_abort(out);
    return status;
}

/* It reaches the disk in pieces, so that no one waits for all of it at the end. */
static void a_large_file_is_written_in_pieces_and_can_be_cancelled(void **state) {
    (void)state;
    const size_t size = (11 << 20) + 5;
    const char *path = scratch_path("large");
    size_t before = scratch_entries(), read;
    fds_error err = {0};
    char *data = need(size, 1);
    uint8_t *found = NULL;
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * i / 77);
    hearing h = {.stop_at = 5 << 20};
    assert_int_equal(write_large(path, data, size, &h, &err), FDS_ERR_CANCELLED);
    assert_int_equal(h.calls, 3);
    assert_int_equal(scratch_entries(), before);

    h = (hearing){0};
    fds__fault_arm(FDS__FAULT_IO, 0);
    expect_ok(write_large(path, data, size, &h, &err), &err);
    const uint64_t calls = fds__fault_arm(FDS__FAULT_IO, 0);
    assert_int_equal(h.calls, 5);
    assert_int_equal(h.total, size);

    char first = data[0]++;
    for (uint64_t nth = 1; nth < calls; nth++) { /* the last is the folder's sync */
        fds_error why = {0};
        fds__fault_arm(FDS__FAULT_IO, nth);
        assert_int_equal(write_large(path, data, size, &(hearing){0}, &why), FDS_ERR_IO);
        expect_in(why.text, scratch);
        assert_int_equal(scratch_entries(), before + 1);
    }
    fds__fault_arm(FDS__FAULT_IO, 0);
    data[0] = first;
    expect_ok(fds__file_read(path, size, &found, &read, &err), &err);
    assert_int_equal(read, size);
    assert_memory_equal(found, data, size);
    fds__free(found);
    free(data);
    unlink(path);
}

/* ---- secrets ---- */

static void a_secret_is_new_and_its_owners_alone(void **state) {
    (void)state;
    const char *path = scratch_path("secret");
    uint8_t *data = NULL;
    size_t size = 0, before = scratch_entries();
    struct stat about;
    fds_error err = {0};
    mode_t mask = umask(0);
    assert_int_equal(fds__file_write_secret(path, "psst", 4, &err), FDS_OK);
    umask(mask);
    assert_int_equal(scratch_entries(), before + 1);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(fds__file_read_secret(path, 4, &data, &size, &err), FDS_OK);
    assert_int_equal(size, 4);
    assert_memory_equal(data, "psst", 5);
    fds__free(data);
    assert_int_equal(fds__file_read_secret(path, 3, &data, &size, &err), FDS_ERR_LIMIT);
    assert_int_equal(fds__file_write_secret(path, "other", 5, &err), FDS_ERR_CONFLICT);
    scratch_expect(path, "psst");
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(fds__file_read_secret(path, 4, &data, &size, &err), FDS_ERR_USAGE);
    expect_in(err.text, "mode 640");
    assert_int_equal(fds__file_read_secret(scratch, 4, &data, &size, &err), FDS_ERR_FORMAT);
    assert_int_equal(scratch_entries(), before + 1);
    unlink(path);
}

static void a_secret_that_cannot_be_written_is_not_there(void **state) {
    (void)state;
    const char *path = scratch_path("secret");
    size_t before = scratch_entries();
    fds_error err = {0};
    for (uint64_t nth = 1, is_done = 0; !is_done; nth++) {
        fds__fault_arm(FDS__FAULT_IO, nth);
        is_done = fds__file_write_secret(path, "psst", 4, &err) == FDS_OK;
        bool is_all = fds__fault_arm(FDS__FAULT_IO, 0) == 7; /* only the folder's sync failed */
        assert_int_equal(is_done, nth == 8);
        assert_int_equal(fds__path_exists(path), is_all);
        if (is_all)
            scratch_expect(path, "psst");
        unlink(path);
        assert_int_equal(scratch_entries(), before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_file_is_read_whole_with_a_nul_after_it),
        IN_SCRATCH(what_cannot_be_read_is_named),
        IN_SCRATCH(a_file_over_the_limit_is_refused),
        IN_SCRATCH(every_read_call_that_fails_is_reported),
        IN_SCRATCH(gzip_is_undone),
        IN_SCRATCH(gzip_cut_off_anywhere_is_refused),
        IN_SCRATCH(gzip_that_is_damaged_is_refused),
        IN_SCRATCH(gzip_with_bytes_after_it_is_refused),
        IN_SCRATCH(a_gzip_bomb_stops_at_the_limit),
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
        IN_SCRATCH(what_takes_over_half_of_the_memory_is_refused),
#endif
        IN_SCRATCH(reading_and_unpacking_can_be_cancelled),
        IN_SCRATCH(every_allocation_of_unpacking_may_fail),
        IN_SCRATCH(a_new_file_has_the_usual_mode),
        IN_SCRATCH(an_old_file_is_replaced_whole),
        IN_SCRATCH(the_old_file_stands_when_any_call_fails),
        IN_SCRATCH(a_failed_first_write_leaves_nothing),
        IN_SCRATCH(a_removed_file_is_gone_and_a_missing_one_is_named),
        IN_SCRATCH(aborting_leaves_the_old_file),
        IN_SCRATCH(paths_that_name_no_file_are_refused),
        IN_SCRATCH(a_folder_without_permission_is_named),
        IN_SCRATCH(a_bare_name_is_written_to_the_current_folder),
        IN_SCRATCH(mkdirs_makes_what_is_missing),
        IN_SCRATCH(mkdirs_refuses_what_cannot_be),
        IN_SCRATCH(a_folder_is_listed_sorted_by_bytes),
        IN_SCRATCH(paths_are_joined_with_one_slash),
        IN_SCRATCH(a_wrong_ending_is_refused),
        IN_SCRATCH(programs_answer_with_their_end),
        IN_SCRATCH(programs_that_cannot_start_are_named),
        IN_SCRATCH(programs_run_in_their_folder_and_keep_quiet),
        IN_SCRATCH(files_never_get_a_standard_descriptor),
        IN_SCRATCH(a_large_file_is_written_in_pieces_and_can_be_cancelled),
        IN_SCRATCH(a_secret_is_new_and_its_owners_alone),
        IN_SCRATCH(a_secret_that_cannot_be_written_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
