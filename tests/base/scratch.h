/* SPDX-License-Identifier: Apache-2.0
 * What the tests share: cmocka with what it needs, cases that do not apply, and a folder to write
 * in. */
#ifndef FDS_TEST_SCRATCH_H
#define FDS_TEST_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fds.h>

#include <dirent.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Under a sanitizer the engine is twenty times slower: tests then take smaller networks and fewer
 * draws, which reach the same code. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { IS_SLOW_BUILD = 1 };
#else
enum { IS_SLOW_BUILD = 0 };
#endif

/* Ends a case that does not apply here. tests/summary.py counts the line as one case skipped;
 * cmocka 1.1.5 writes its own skip() as "not ok", which readers of TAP count as a failure. */
#define SKIP_CASE(reason)              \
    do {                               \
        printf("# SKIP %s\n", reason); \
        return;                        \
    } while (0)

/* Called where a test passes an instruction set over: fails where CI is set although Linux lists
 * the set's flag in /proc/cpuinfo. */
static inline void expect_no_cpu_flag(const char *flag) {
    char word[32], line[8192];
    FILE *file = getenv("CI") ? fopen("/proc/cpuinfo", "r") : NULL;
    snprintf(word, sizeof word, " %s ", flag);
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = ' ';
        if (strncmp(line, "flags", 5) == 0 && strstr(line, word))
            fail_msg("this processor has %s, but the test did not use it", flag);
    }
    if (file)
        fclose(file);
}

/* Memory that is always there. */
static inline void *need(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    assert_non_null(memory);
    return memory;
}

static inline void expect_ok(fds_status status, const fds_error *err) {
    if (status != FDS_OK)
        fail_msg("%s: %s", fds_status_name(status), err->text);
}

/* The folder of the running test, and a path in it. */
static char scratch[256];

static inline const char *scratch_path(const char *name) {
    static char paths[4][512];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof *paths, "%s/%s", scratch, name);
    return path;
}

static inline int scratch_setup(void **state) {
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/fds-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int scratch_remove_one(const char *path, const struct stat *about, int kind,
                                     struct FTW *where) {
    (void)about, (void)kind, (void)where;
    return remove(path);
}

static inline int scratch_teardown(void **state) {
    (void)state;
    return nftw(scratch, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void scratch_write(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The file's bytes with a NUL after them; the caller frees them. */
static inline char *scratch_read(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    char *data = calloc(*size + 1, 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, file), *size);
    fclose(file);
    return data;
}

static inline void scratch_expect(const char *path, const char *text) {
    size_t size;
    char *data = scratch_read(path, &size);
    assert_string_equal(data, text);
    assert_int_equal(size, strlen(text));
    free(data);
}

/* How many entries the folder has, hidden ones too. */
static inline size_t scratch_entries(void) {
    DIR *dir = opendir(scratch);
    assert_non_null(dir);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

static inline void expect_in(const char *text, const char *part) {
    assert_non_null(text);
    if (!text || !strstr(text, part))
        fail_msg("\"%s\" does not say \"%s\"", text ? text : "", part);
}

#endif
