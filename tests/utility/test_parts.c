/* SPDX-License-Identifier: Apache-2.0
 * Parts of a plan and their import: whatever their number and order, the table has the bytes of one
 * that a single process filled; and every failure leaves something from which the next attempt ends
 * with the same bytes. */
#include "table_tests.h"

static void fill_part(const char *name, const fds_plan *plan, size_t number, size_t count) {
    fds_error err = {0};
    fds_table *table = open_ok(name);
    if (fds_table_fill_part(table, plan, (fds_part){number, count}, 2, &noting, &err) != FDS_OK)
        fail_msg("%s", err.text);
    fds_table_free(table);
}

static fds_status import(const char *into, size_t count, const char *const *names,
                         fds__imported *out, fds_error *err) {
    static char paths[64][1024];
    const char *from[64];
    for (size_t i = 0; i < count; i++) {
        snprintf(paths[i], sizeof paths[i], "%s", scratch_path(names[i]));
        from[i] = paths[i];
    }
    char dir[1024];
    snprintf(dir, sizeof dir, "%s", scratch_path(into));
    return fds__table_import(dir, from, count, &noting, out, err);
}

/* For every number of parts: in a shuffled order, the first of them twice. */
static void parts_in_any_order_have_the_bytes_of_one_process(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 60);
    snapshot whole;
    fill_ok("one", plan, 2);
    take(&whole, "one");
    for (size_t count = 1; count <= 9; count++) {
        char names[10][16];
        const char *order[10];
        fds_rng rng = fds_rng_make(count, 1, 0, 0);
        uint32_t shuffled[9];
        size_t records = 0;
        for (size_t i = 0; i < count; i++) {
            shuffled[i] = (uint32_t)i;
            snprintf(names[i], sizeof names[i], "part.%zu", i + 1);
            fill_part(names[i], plan, i + 1, count);
        }
        fds_rng_shuffle(&rng, shuffled, count);
        for (size_t i = 0; i < count; i++)
            order[i] = names[shuffled[i]];
        order[count] = names[0];
        fds__imported done;
        fds_error err = {0};
        assert_int_equal(import("all", count + 1, order, &done, &err), FDS_OK);
        assert_true(done.repeated >= done.taken / count);
        records = done.taken;
        fds_table *table = open_ok("all");
        assert_int_equal(fds__table_count(table), records);
        unsigned calls = atomic_load(&kept.calls);
        assert_int_equal(fds_table_fill(table, plan, 2, NULL, &err), FDS_OK);
        assert_int_equal(atomic_load(&kept.calls), calls); /* nothing was missing */
        fds_table_free(table);
        expect_same(&whole, "all");
        for (size_t i = 0; i < count; i++)
            remove_tree(names[i]);
        remove_tree("all");
    }
    assert_int_equal(warning_count, 0);
    drop(&whole);
    fds_plan_free(plan);
}

static void a_part_computes_its_own_coalitions_only(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 60);
    fill_ok("one", plan, 1);
    unsigned all = atomic_load(&kept.calls);
    for (size_t i = 1; i <= 4; i++) {
        unsigned before = atomic_load(&kept.calls);
        fill_part("p", plan, i, 4); /* several parts may share a folder */
        unsigned own = atomic_load(&kept.calls) - before;
        assert_true(own == all / 4 || own == all / 4 + 1);
    }
    assert_int_equal(atomic_load(&kept.calls), 2 * all);
    snapshot whole;
    take(&whole, "one");
    expect_same(&whole, "p");
    drop(&whole);
    fds_plan_free(plan);
}

static void parts_that_do_not_exist_are_refused(void **state) {
    (void)state;
    static const fds_part wrong[] = {{0, 3}, {4, 3}, {1, 0}, {1, 1000001}};
    fds_plan *plan = plan_of(PLAYERS, 10);
    fds_table *table = open_ok("t");
    for (size_t i = 0; i < COUNT(wrong); i++) {
        fds_error err = {0};
        assert_int_equal(fds_table_fill_part(table, plan, wrong[i], 1, NULL, &err), FDS_ERR_USAGE);
    }
    assert_int_equal(atomic_load(&kept.calls), 0);
    fds_table_free(table);
    fds_plan_free(plan);
}

/* Every bit of a record matters: a changed one is refused, by file and number. */
static void damaged_records_are_refused_by_name(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 20);
    static const char *const names[] = {"p"};
    fill_part("p", plan, 1, 2);
    size_t size;
    char *data = scratch_read(scratch_path("p/00000.seg"), &size);
    size_t record = 48; /* record 2 is at 64 + 2 * 48 */
    for (size_t at = 64 + 2 * record; at < 64 + 3 * record; at++) {
        fds_error err = {0};
        fds__imported done;
        data[at] ^= 4;
        scratch_write(scratch_path("p/00000.seg"), data, size);
        assert_int_equal(import("all", 1, names, &done, &err), FDS_ERR_CORRUPT);
        expect_in(err.text, "p/00000.seg: record 2 (byte 160)");
        data[at] ^= 4;
    }
    free(data);
    fds_plan_free(plan);
}

static bool stop(void *user, const fds_progress *progress) {
    (void)user, (void)progress;
    return true;
}

static void a_description_counts_damaged_records_and_can_be_cancelled(void **state) {
    (void)state;
    fds_plan *plan = plan_of(PLAYERS, 20);
    const fds_events stopping = {.progress = stop};
    fds_error err = {0};
    json_t *about = NULL;
    size_t size;
    fill_part("p", plan, 1, 2);
    char *data = scratch_read(scratch_path("p/00000.seg"), &size);
    data[64 + 20] ^= 4;
    scratch_write(scratch_path("p/00000.seg"), data, size);
    free(data);
    assert_int_equal(fds__table_describe(scratch_path("p"), NULL, &about, &err), FDS_OK);
    assert_int_equal(json_integer_value(json_object_get(about, "damaged")), 1);
    json_decref(about);
    assert_int_equal(fds__table_describe(scratch_path("p"), &stopping, &about, &err),
                     FDS_ERR_CANCELLED);
    fds_plan_free(plan);
}

static fds_plan *fault_plan;

/* Two parts into one table. */
static fds_status use_import(fds_error *err) {
    static const char *const names[] = {"b", "a"};
    fds__imported done;
    return import("t", 2, names, &done, err);
}

static void each_failure_can_be_repeated(void **state) {
    (void)state;
    fault_plan = plan_of(PLAYERS, 30);
    snapshot whole;
    fill_ok("one", fault_plan, 1);
    take(&whole, "one");
    fill_part("a", fault_plan, 1, 2);
    fill_part("b", fault_plan, 2, 2);
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t nth = 1;; nth++) {
            fds_error err = {0};
            remove_tree("t");
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status = use_import(&err);
            if (fds__fault_arm((fds__fault_kind)kind, 0) < nth) {
                assert_int_equal(status, FDS_OK);
                break;
            }
            if (status == FDS_OK)
                fail_msg("operation %lu of kind %d fails, yet all is said to be well",
                         (unsigned long)nth, kind);
            assert_true(strlen(err.text) > 0);
            if (use_import(&err) != FDS_OK)
                fail_msg("after operation %lu of kind %d failed: %s", (unsigned long)nth, kind,
                         err.text);
            expect_same(&whole, "t");
        }
    drop(&whole);
    fds_plan_free(fault_plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(parts_in_any_order_have_the_bytes_of_one_process),
        TEST(a_part_computes_its_own_coalitions_only),
        TEST(parts_that_do_not_exist_are_refused),
        TEST(damaged_records_are_refused_by_name),
        TEST(a_description_counts_damaged_records_and_can_be_cancelled),
        TEST(each_failure_can_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
