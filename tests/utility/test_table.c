/* SPDX-License-Identifier: Apache-2.0
 * The table: the same bytes for any threads and after any interruption, nothing computed twice,
 * nothing mixed up, and no more memory for more coalitions. */
#include "table_tests.h"

#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- the format ---- */

/* tests/data/records has tables of an earlier build (91d59f5): they are read as they are, and the
 * same answers make the same bytes. */
static void files_of_an_earlier_build_are_read_and_written_to_the_byte(void **state) {
    (void)state;
    static const char *const names[] = {"table_f32", "table_f16"};
    fds_plan *plan = plan_of(PLAYERS, 8);
    for (int store = 0; store < 2; store++) {
        snapshot old;
        char from[512];
        kept_store = store ? FDS_STORE_F16 : FDS_STORE_F32;
        snprintf(from, sizeof from, "%s/records/%s", getenv("FDS_TEST_DATA"), names[store]);
        take_path(&old, from);
        assert_int_equal(old.count, 4); /* .lock, two segments, table.json */
        restore(&old, "read");
        atomic_store(&kept.calls, 0);
        fill_ok("read", plan, 1);
        assert_int_equal(atomic_load(&kept.calls), 0);
        expect_same(&old, "read");
        fill_ok("written", plan, 2);
        expect_same(&old, "written");
        remove_tree("read");
        remove_tree("written");
        drop(&old);
    }
    assert_int_equal(warning_count, 0);
    fds_plan_free(plan);
}

/* ---- the same bytes ---- */

static void bytes_do_not_depend_on_threads(void **state) {
    (void)state;
    snapshot one;
    char name[16];
    for (int store = 0; store < 2; store++) {
        kept_store = store ? FDS_STORE_F16 : FDS_STORE_F32;
        fds_plan *plan = plan_of(PLAYERS, 60);
        fill_ok("t1", plan, 1);
        take(&one, "t1");
        for (unsigned threads = 2; threads <= 8; threads++) {
            kept.dawdle_us = 300; /* so that they finish in another order each time */
            snprintf(name, sizeof name, "t%u", threads);
            fill_ok(name, plan, threads);
            expect_same(&one, name);
            remove_tree(name);
        }
        remove_tree("t1");
        drop(&one);
        fds_plan_free(plan);
    }
    assert_int_equal(warning_count, 0);
}

/* Cancelled after each number of sub-models, by one thread and by three. */
static void an_interrupted_table_is_completed_to_the_same_bytes(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 30);
    snapshot whole;
    fill_ok("whole", plan, 1);
    take(&whole, "whole");
    unsigned different = atomic_load(&kept.calls);
    for (unsigned threads = 1; threads <= 3; threads += 2)
        for (unsigned k = 1; k < different; k++) {
            fds_error err = {0};
            atomic_store(&kept.calls, 0);
            cancel_at = k;
            kept.dawdle_us = threads > 1 ? 100 : 0;
            fds_status status = fill_table("part", plan, threads, &err);
            assert_true(status == FDS_ERR_CANCELLED || (threads > 1 && status == FDS_OK));
            if (threads == 1)
                assert_int_equal(atomic_load(&kept.calls), k);
            cancel_at = 0;
            fill_ok("part", plan, threads);
            assert_int_equal(atomic_load(&kept.calls), different);
            expect_same(&whole, "part");
            remove_tree("part");
        }
    assert_int_equal(warning_count, 0);
    drop(&whole);
    fds_plan_free(plan);
}

/* The same object goes on after it was cancelled. */
static void a_cancelled_fill_can_go_on(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 30);
    snapshot whole;
    fill_ok("whole", plan, 1);
    take(&whole, "whole");
    unsigned different = atomic_exchange(&kept.calls, 0);
    fds_table *table = open_ok("part");
    cancel_at = 4;
    fds_error err = {0};
    assert_int_equal(fds_table_fill(table, plan, 1, &noting, &err), FDS_ERR_CANCELLED);
    expect_in(err.text, "utilities: cancelled after 4 of");
    cancel_at = 0;
    fds_table_cost cost;
    assert_int_equal(fds_table_estimate(table, plan, 1, &cost, &err), FDS_OK);
    assert_int_equal(cost.missing, different - 4);
    assert_int_equal(fds_table_fill(table, plan, 2, &noting, &err), FDS_OK);
    assert_int_equal(atomic_load(&kept.calls), different);
    fds_table_free(table);
    expect_same(&whole, "part");
    drop(&whole);
    fds_plan_free(plan);
}

/* A larger plan of the same seed begins with the smaller one. */
static void a_table_that_grew_is_the_same_as_one_made_at_once(void **state) {
    (void)state;
    fds_plan *large = plan_of(PLAYERS, 64);
    snapshot whole;
    fill_ok("whole", large, 2);
    take(&whole, "whole");
    unsigned different = atomic_exchange(&kept.calls, 0);
    for (size_t count = 2; count <= 64; count += 2) {
        fds_plan *plan = plan_of(PLAYERS, count);
        fill_ok("grown", plan, 1 + (unsigned)(count % 3));
        fds_plan_free(plan);
    }
    assert_int_equal(atomic_load(&kept.calls), different);
    expect_same(&whole, "grown");
    fill_ok("grown", large, 1);
    assert_int_equal(atomic_load(&kept.calls), different);
    drop(&whole);
    fds_plan_free(large);
}

static void a_failed_sub_model_is_named_and_the_others_are_kept(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 30);
    snapshot whole;
    fds_error err = {0};
    fill_ok("whole", plan, 1);
    take(&whole, "whole");
    unsigned different = atomic_exchange(&kept.calls, 0);
    kept.fail_at = 6;
    assert_int_equal(fill_table("part", plan, 1, &err), FDS_ERR_DIVERGED);
    expect_in(err.text, "call 6 was told to fail");
    fill_ok("part", plan, 1);
    assert_int_equal(atomic_load(&kept.calls), different + 1);
    expect_same(&whole, "part");
    remove_tree("part");
    kept.is_nan = true;
    assert_int_equal(fill_table("part", plan, 1, &err), FDS_ERR_DIVERGED);
    expect_in(err.text, "input 0: the answer for label 0 is not a finite number");
    kept.is_nan = false;
    fill_ok("part", plan, 1);
    expect_same(&whole, "part");
    drop(&whole);
    fds_plan_free(plan);
}

/* Grows a table by a few coalitions at a time, up to 30. */
static void fill_bit_by_bit(fds_table *table) {
    for (size_t count = 6; count <= 30; count += 6) {
        fds_plan *plan = plan_of(PLAYERS, count);
        fds_error err = {0};
        expect_ok(fds__table_fill_more(table, plan, 2, &noting, &err), &err);
        fds_plan_free(plan);
    }
}

static uint64_t operations_of_sync(fds_table *table) {
    fds_error err = {0};
    fds__fault_arm(FDS__FAULT_IO, 0);
    expect_ok(fds__table_sync(table, &err), &err);
    return fds__fault_arm(FDS__FAULT_IO, 0);
}

/* As methods that walk permutations fill. */
static void small_fills_in_a_row_are_synced_together(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 30);
    snapshot whole;
    fds_error err = {0};
    fill_ok("whole", plan, 1);
    take(&whole, "whole");
    fds_table *table = open_ok("t");
    table->sync_every_s = 1e9;
    fill_bit_by_bit(table);
    assert_true(table->unsynced_end == table->segments);
    fds__fault_arm(FDS__FAULT_IO, 3); /* the first two are of opening the file */
    assert_int_equal(fds__table_sync(table, &err), FDS_ERR_IO);
    fds__fault_arm(FDS__FAULT_IO, 0);
    expect_in(err.text, "sync");
    assert_int_equal(operations_of_sync(table), 0);
    expect_same(&whole, "t");
    fds_table_free(table);
    remove_tree("t");

    table = open_ok("t");
    table->sync_every_s = 1e9;
    fill_bit_by_bit(table);
    uint32_t unsynced = table->unsynced_end - table->unsynced;
    assert_int_equal(operations_of_sync(table), 3 * unsynced);
    fds_table_free(table);
    remove_tree("t");

    table = open_ok("t");
    table->sync_every_s = 0; /* it is time whenever it is asked */
    fill_bit_by_bit(table);
    assert_int_equal(operations_of_sync(table), 0);
    fds_table_free(table);
    expect_same(&whole, "t");
    drop(&whole);
    fds_plan_free(plan);
}

/* What nobody synced is synced when the table is let go. */
static void a_table_is_synced_before_it_is_closed(void **state) {
    (void)state;
    fds_table *table = open_ok("t");
    table->sync_every_s = 1e9;
    fill_bit_by_bit(table);
    fds__fault_arm(FDS__FAULT_IO, 0);
    fds_table_free(table);
    assert_true(fds__fault_arm(FDS__FAULT_IO, 0) >= 2);
}

/* ---- what it takes ---- */

static uint64_t bytes_in(const char *name) {
    snapshot s;
    uint64_t sum = 0;
    take(&s, name);
    for (size_t i = 0; i < s.count; i++)
        sum += strstr(s.names[i], ".seg") ? s.sizes[i] : 0;
    drop(&s);
    return sum;
}

static void costs_are_estimated_before(void **state) {
    (void)state;
    fds_plan *small = plan_of(PLAYERS, 12), *large = plan_of(PLAYERS, 60);
    fds_table *table = open_ok("t");
    fds_table_cost cost;
    fds_error err = {0};
    assert_int_equal(fds_table_estimate(table, small, 2, &cost, &err), FDS_OK);
    assert_int_equal(cost.missing, cost.coalitions);
    assert_true(cost.coalitions > 4 && cost.coalitions <= 14);
    /* answers, a record and a window for each of two threads, and the index */
    size_t windows = cost.memory - 2 * (INPUTS * CLASSES * 4 + 48) - 60 * cost.missing;
    assert_true(windows >= 2 * 48 && windows <= 2 * (64 + cost.coalitions * 48));
    assert_true(cost.disk_free > 0);
    size_t first = cost.coalitions;
    assert_int_equal(fds_table_fill(table, small, 2, NULL, &err), FDS_OK);
    assert_int_equal(atomic_load(&kept.calls), cost.missing);
    assert_int_equal(bytes_in("t"), cost.disk);
    assert_int_equal(fds_table_estimate(table, large, 8, &cost, &err), FDS_OK);
    assert_int_equal(cost.missing, cost.coalitions - first);
    uint64_t before = bytes_in("t");
    assert_int_equal(fds_table_fill(table, large, 8, NULL, &err), FDS_OK);
    assert_int_equal(bytes_in("t"), before + cost.disk);
    assert_int_equal(fds_table_estimate(table, large, 8, &cost, &err), FDS_OK);
    assert_int_equal(cost.missing, 0);
    assert_int_equal(cost.disk, 0);
    fds_table_free(table);
    fds_plan_free(small);
    fds_plan_free(large);
}

static size_t most_bytes;
static void watch_memory(void) {
    struct mallinfo2 now = mallinfo2();
    most_bytes = MAX(most_bytes, now.uordblks + now.hblkhd);
}

/* Records of 80 kB: 32 of them or 320 of them take the same memory but for the index. */
static void memory_does_not_grow_with_coalitions(void **state) {
    (void)state;
    size_t most[2], rows[2];
    fake_make(&kept, 60, 1000, 20, 1);
    kept.watch = watch_memory;
    for (int i = 0; i < 2; i++) {
        fds_plan *plan = plan_of(60, i ? 320 : 32);
        most_bytes = 0;
        rows[i] = fds_plan_rows(plan);
        fds_table *table = NULL;
        assert_int_equal(
            fds_table_open(scratch_path("t"), &kept.value, FDS_STORE_F32, NULL, &table, NULL),
            FDS_OK);
        assert_int_equal(fds_table_fill(table, plan, 1, NULL, NULL), FDS_OK);
        fds_table_free(table);
        most[i] = most_bytes;
        fds_plan_free(plan);
    }
    print_message("# %zu rows: %zu bytes, %zu rows: %zu bytes\n", rows[0], most[0], rows[1],
                  most[1]);
    assert_true(most[1] < most[0] + 128 * (rows[1] - rows[0]) + 4096);
}

/* ---- whose table it is ---- */

static void other_parameters_are_refused_by_name(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 4);
    fill_ok("t", plan, 1);
    fds_plan_free(plan);
    snapshot before;
    take(&before, "t");
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"kind\":\"fake\",\"seed\":2,\"train\":{\"lr\":0.001,\"epochs\":10}}",
         "seed is 1 in the table, 2 now"},
        {"{\"kind\":\"fake\",\"seed\":1,\"train\":{\"lr\":0.5,\"epochs\":10}}",
         "train.lr is 0.001 in the table, 0.5 now"},
        {"{\"kind\":\"real\",\"seed\":1,\"train\":{\"lr\":0.001,\"epochs\":10}}",
         "kind is \"fake\" in the table, \"real\" now"},
        {"{\"kind\":\"fake\",\"seed\":1}",
         "train is {\"lr\":0.001,\"epochs\":10} in the table, absent now"},
        {"{\"kind\":\"fake\",\"seed\":1,\"beta\":3,\"train\":{\"lr\":0.001,\"epochs\":"
         "10}}",
         "beta is absent in the table, 3 now"},
        {"{\"a_sha256\":\"0f\",\"kind\":\"fake\",\"seed\":2,\"train\":{\"lr\":0.001,\"epochs\":10}"
         "}",
         "seed is 1 in the table, 2 now"}, /* a checksum says less */
        {"{\"a_sha256\":\"0f\",\"kind\":\"fake\",\"seed\":1,\"train\":{\"lr\":0.001,\"epochs\":10}"
         "}",
         "a_sha256 is absent in the table, \"0f\" now"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(kept.text, sizeof kept.text, "%s", cases[i].text);
        expect_open("t", FDS_ERR_CONFLICT, cases[i].message);
        expect_open("t", FDS_ERR_CONFLICT, "use another folder, or remove this one");
        expect_open("t", FDS_ERR_CONFLICT, scratch_path("t"));
    }
    fake_make(&kept, PLAYERS + 1, INPUTS, CLASSES, 1);
    expect_open("t", FDS_ERR_CONFLICT, "players is 7 in the table, 8 now");
    fake_make(&kept, PLAYERS, INPUTS + 1, CLASSES, 1);
    expect_open("t", FDS_ERR_CONFLICT, "inputs is 3 in the table, 4 now");
    fake_make(&kept, PLAYERS, INPUTS, CLASSES + 1, 1);
    expect_open("t", FDS_ERR_CONFLICT, "classes is 2 in the table, 3 now");
    fake_make(&kept, PLAYERS, INPUTS, CLASSES, 1);
    kept_store = FDS_STORE_F16;
    expect_open("t", FDS_ERR_CONFLICT, "store is \"f32\" in the table, \"f16\" now");
    kept_store = FDS_STORE_F32;
    snprintf(kept.text, sizeof kept.text, "not JSON");
    expect_open("t", FDS_ERR_FORMAT, "not JSON");
    expect_same(&before, "t");
    drop(&before);
}

/* The same parameters in another order of keys and with other blanks are the same. */
static void the_order_of_parameters_does_not_matter(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 4);
    fill_ok("t", plan, 1);
    snprintf(kept.text, sizeof kept.text,
             "{\"train\":{\"epochs\":10,\"lr\":0.001},\"seed\":1,\"kind\":\"fake\"}");
    unsigned calls = atomic_load(&kept.calls);
    fill_ok("t", plan, 1);
    assert_int_equal(atomic_load(&kept.calls), calls);
    fds_plan_free(plan);
}

/* A table says itself how many records its segments have. */
static void another_segment_size_is_the_tables_own(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 30);
    snapshot whole;
    fill_ok("t", plan, 1);
    take(&whole, "t");
    fds_table *table = NULL;
    assert_int_equal(
        fds_table_open(scratch_path("t"), &kept.value, FDS_STORE_F32, &noting, &table, NULL),
        FDS_OK);
    assert_int_equal(table->layout.records, 5);
    assert_int_equal(fds_table_fill(table, plan, 1, NULL, NULL), FDS_OK);
    fds_table_free(table);
    expect_same(&whole, "t");
    drop(&whole);
    fds_plan_free(plan);
}

static void a_folder_that_is_no_table_is_left_alone(void **state) {
    (void)state;
    snapshot before;
    assert_int_equal(mkdir(scratch_path("t"), 0777), 0);
    scratch_write(scratch_path("t/notes.txt"), "mine", 4);
    take(&before, "t");
    expect_open("t", FDS_ERR_CONFLICT, "has \"notes.txt\" but no table.json");
    expect_same(&before, "t");
    drop(&before);
    scratch_write(scratch_path("file"), "mine", 4);
    fds_table *table = NULL;
    assert_int_not_equal(open_table("file", &table, NULL), FDS_OK);
    assert_int_not_equal(open_table("file/below", &table, NULL), FDS_OK);
}

static void other_files_in_a_tables_folder_stay(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 30);
    assert_int_equal(mkdir(scratch_path("t"), 0777), 0); /* an empty folder will do */
    scratch_write(scratch_path("t/.table.json.123-0.tmp"), "half", 4);
    scratch_write(scratch_path("t/.hidden"), "x", 1);
    fill_ok("t", plan, 1);
    scratch_write(scratch_path("t/notes.txt"), "mine", 4);
    scratch_write(scratch_path("t/000000.seg"), "mine", 4);
    scratch_write(scratch_path("t/1.seg"), "mine", 4);
    unsigned calls = atomic_load(&kept.calls);
    fill_ok("t", plan, 1);
    assert_int_equal(atomic_load(&kept.calls), calls);
    scratch_expect(scratch_path("t/notes.txt"), "mine");
    scratch_expect(scratch_path("t/000000.seg"), "mine");
    scratch_expect(scratch_path("t/.hidden"), "x");
    assert_int_not_equal(access(scratch_path("t/.table.json.123-0.tmp"), F_OK), 0);
    assert_int_equal(warning_count, 0);
    fds_plan_free(plan);
}

static void one_process_at_a_time(void **state) {
    (void)state;
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fds_table *table = NULL;
        byte = open_table("t", &table, NULL) == FDS_OK;
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 1);
    expect_open("t", FDS_ERR_IO, "is in use by another process");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    fds_table *table = open_ok("t"); /* a lock ends with its process */
    expect_open("t", FDS_ERR_IO, "is in use by another process");
    fds_table_free(table);
    close(ready[0]);
    close(ready[1]);
}

/* ---- refusals ---- */

static void what_cannot_be_a_table_is_refused(void **state) {
    (void)state;
    static const struct {
        size_t players, inputs;
        uint32_t classes;
        fds_status status;
        const char *message;
    } cases[] = {
        {0, 3, 2, FDS_ERR_USAGE, "not 0, 3 and 2"},
        {7, 0, 2, FDS_ERR_USAGE, "not 7, 0 and 2"},
        {7, 3, 0, FDS_ERR_USAGE, "not 7, 3 and 0"},
        {FDS__MAX_PLAYERS + 1, 3, 2, FDS_ERR_LIMIT, "players, at most"},
        {7, SIZE_MAX, 2, FDS_ERR_LIMIT, "make a record of more than"},
        {7, (size_t)1 << 28, 2, FDS_ERR_LIMIT, "make a record of more than"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        fake_make(&kept, cases[i].players, cases[i].inputs, cases[i].classes, 1);
        expect_open("t", cases[i].status, cases[i].message);
    }
    fake_make(&kept, PLAYERS, INPUTS, CLASSES, 1);
    kept_store = (fds_store)7;
    expect_open("t", FDS_ERR_USAGE, "f32 (0) or f16 (1), not 7");
    kept_store = FDS_STORE_F32;
    assert_int_equal(scratch_entries(), 0);
    fds_plan *other = plan_of(PLAYERS + 1, 4);
    fds_table *table = open_ok("t");
    fds_table_cost cost;
    fds_error err = {0};
    assert_int_equal(fds_table_fill(table, other, 1, NULL, &err), FDS_ERR_SHAPE);
    expect_in(err.text, "the plan has 8 players");
    assert_int_equal(fds_table_estimate(table, other, 1, &cost, &err), FDS_ERR_SHAPE);
    fds_table_free(table);
    fds_table_free(NULL);
    fds_plan_free(other);
}

/* A limit on the size of files stands in for a full disk: the error says so, all that was written
 * is kept, and the same call goes on once there is space. */
static void a_full_disk_loses_nothing(void **state) {
    (void)state;
    fake_make(&kept, PLAYERS, 100, 10, 1); /* records of 4,024 bytes, one segment */
    fds_plan *plan = plan_of(PLAYERS, 30);
    snapshot whole = {0};
    for (int round = 0; round < 2; round++) {
        fds_table *table = NULL;
        fds_error err = {0};
        struct rlimit old, small = {20000, 20000};
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        small.rlim_max = old.rlim_max;
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(fds_table_open(scratch_path(round ? "part" : "whole"), &kept.value,
                                        FDS_STORE_F32, &noting, &table, &err),
                         FDS_OK);
        atomic_store(&kept.calls, 0);
        if (round) {
            setrlimit(RLIMIT_FSIZE, &small);
            assert_int_equal(fds_table_fill(table, plan, 1, NULL, &err), FDS_ERR_IO);
            setrlimit(RLIMIT_FSIZE, &old);
            expect_in(err.text, "00000.seg: File too large");
            fds_table_cost cost;
            assert_int_equal(fds_table_estimate(table, plan, 1, &cost, &err), FDS_OK);
            assert_int_equal(cost.coalitions - cost.missing, 4);
        }
        assert_int_equal(fds_table_fill(table, plan, 1, NULL, &err), FDS_OK);
        fds_table_free(table);
        if (!round)
            take(&whole, "whole");
    }
    expect_same(&whole, "part");
    drop(&whole);
    fds_plan_free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(files_of_an_earlier_build_are_read_and_written_to_the_byte),
        TEST(bytes_do_not_depend_on_threads),
        TEST(an_interrupted_table_is_completed_to_the_same_bytes),
        TEST(a_cancelled_fill_can_go_on),
        TEST(a_table_that_grew_is_the_same_as_one_made_at_once),
        TEST(small_fills_in_a_row_are_synced_together),
        TEST(a_table_is_synced_before_it_is_closed),
        TEST(a_failed_sub_model_is_named_and_the_others_are_kept),
        TEST(costs_are_estimated_before),
        TEST(memory_does_not_grow_with_coalitions),
        TEST(other_parameters_are_refused_by_name),
        TEST(the_order_of_parameters_does_not_matter),
        TEST(another_segment_size_is_the_tables_own),
        TEST(a_folder_that_is_no_table_is_left_alone),
        TEST(other_files_in_a_tables_folder_stay),
        TEST(one_process_at_a_time),
        TEST(what_cannot_be_a_table_is_refused),
        TEST(a_full_disk_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
