/* SPDX-License-Identifier: Apache-2.0
 * cmocka tests of the table: opening, filling and comparing whole folders. */
#ifndef FDS_TEST_TABLE_TESTS_H
#define FDS_TEST_TABLE_TESTS_H

#include "../base/scratch.h"
#include "table_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, table_setup, scratch_teardown)

enum { PLAYERS = 7, INPUTS = 3, CLASSES = 2, SEGMENT = 64 + 5 * 48 }; /* five records each */

static fake kept; /* the utility function of most tests */
static fds_store kept_store = FDS_STORE_F32;

/* ---- events ---- */

static char warnings[4000];
static unsigned warning_count;
static uint64_t cancel_at; /* so many sub-models done ask to stop; 0: never */

static inline void note_log(void *user, fds_log_level level, const char *text) {
    (void)user;
    assert_int_equal(level, FDS_LOG_WARNING);
    size_t used = strlen(warnings);
    snprintf(warnings + used, sizeof warnings - used, "%s\n", text);
    warning_count++;
}

static inline bool note_progress(void *user, const fds_progress *progress) {
    (void)user;
    return cancel_at && strcmp(progress->stage, "utilities") == 0 && progress->done == cancel_at;
}

static const fds_events noting = {.log = note_log, .progress = note_progress};

static inline void forget_warnings(void) {
    warnings[0] = 0;
    warning_count = 0;
}

static inline int table_setup(void **state) {
    fake_make(&kept, PLAYERS, INPUTS, CLASSES, 1);
    kept_store = FDS_STORE_F32;
    cancel_at = 0;
    forget_warnings();
    return scratch_setup(state);
}

/* ---- tables ---- */

static inline fds_plan *plan_of(size_t players, size_t count) {
    fds_plan *plan = NULL;
    fds_error err = {0};
    assert_int_equal(fds_plan_sample(FDS_SAMPLER_KERNEL, players, NULL, count, 1, &plan, &err),
                     FDS_OK);
    return plan;
}

static inline fds_status open_table(const char *name, fds_table **table, fds_error *err) {
    return fds__table_open_sized(scratch_path(name), &kept.value, kept_store, SEGMENT, &noting,
                                 table, err);
}

static inline fds_table *open_ok(const char *name) {
    fds_table *table = NULL;
    fds_error err = {0};
    if (open_table(name, &table, &err) != FDS_OK)
        fail_msg("%s", err.text);
    return table;
}

/* Opens, fills, closes. */
static inline fds_status fill_table(const char *name, const fds_plan *plan, unsigned threads,
                                    fds_error *err) {
    fds_table *table = NULL;
    TRY(open_table(name, &table, err));
    fds_status status = fds_table_fill(table, plan, threads, &noting, err);
    fds_table_free(table);
    return status;
}

static inline void fill_ok(const char *name, const fds_plan *plan, unsigned threads) {
    fds_error err = {0};
    if (fill_table(name, plan, threads, &err) != FDS_OK)
        fail_msg("%s", err.text);
}

static inline void expect_open(const char *name, fds_status status, const char *part) {
    fds_table *table = NULL;
    fds_error err = {0};
    assert_int_equal(open_table(name, &table, &err), status);
    assert_int_equal(err.status, status);
    expect_in(err.text, part);
    assert_null(table);
}

static inline void remove_tree(const char *name) {
    nftw(scratch_path(name), scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- folders ---- */

typedef struct snapshot {
    size_t count;
    char *names[64], *data[64];
    size_t sizes[64];
} snapshot;

static inline int visible_or_not(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* All files of a folder, hidden ones too, by name. */
static inline void take_path(snapshot *s, const char *folder) {
    struct dirent **entries;
    char path[1024];
    int count = scandir(folder, &entries, visible_or_not, alphasort);
    assert_true(count >= 0 && (size_t)count <= COUNT(s->names));
    s->count = (size_t)count;
    for (size_t i = 0; i < s->count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        s->names[i] = strdup(entries[i]->d_name);
        s->data[i] = scratch_read(path, &s->sizes[i]);
        free(entries[i]);
    }
    free(entries);
}

static inline void take(snapshot *s, const char *name) { take_path(s, scratch_path(name)); }

static inline void drop(snapshot *s) {
    for (size_t i = 0; i < s->count; i++) {
        free(s->names[i]);
        free(s->data[i]);
    }
    s->count = 0;
}

/* Puts a folder back as it was. */
static inline void restore(const snapshot *s, const char *name) {
    char path[1024];
    remove_tree(name);
    assert_int_equal(mkdir(scratch_path(name), 0777), 0);
    for (size_t i = 0; i < s->count; i++) {
        snprintf(path, sizeof path, "%s/%s", scratch_path(name), s->names[i]);
        scratch_write(path, s->data[i], s->sizes[i]);
    }
}

static inline void expect_same(const snapshot *s, const char *name) {
    snapshot now;
    take(&now, name);
    if (now.count != s->count)
        fail_msg("%zu files, not %zu", now.count, s->count);
    for (size_t i = 0; i < s->count; i++) {
        assert_string_equal(now.names[i], s->names[i]);
        if (now.sizes[i] != s->sizes[i] || memcmp(now.data[i], s->data[i], s->sizes[i]) != 0)
            fail_msg("%s differs (%zu bytes, %zu before)", s->names[i], now.sizes[i], s->sizes[i]);
    }
    drop(&now);
}

#endif
