/* SPDX-License-Identifier: Apache-2.0
 * Every allocation and every file operation of the table fails once: the call fails, nothing leaks
 * (under ASan), and a clean run then ends with the same bytes. */
#include "table_tests.h"

static fds_plan *plan;
static snapshot whole;

/* Opens, plans, fills and reads all rows. */
static fds_status use_table(fds_error *err) {
    fds_table *table = NULL;
    fds_table_view *view = NULL;
    fds_table_cost cost;
    double row[INPUTS * CLASSES];
    fds_status status = open_table("t", &table, err);
    if (status == FDS_OK)
        status = fds_table_estimate(table, plan, 1, &cost, err);
    if (status == FDS_OK)
        status = fds_table_fill(table, plan, 1, &noting, err);
    if (status == FDS_OK)
        status = fds_table_view_create(table, plan, NULL, false, 1, &view, err);
    for (size_t i = 0; status == FDS_OK && i < fds_plan_rows(plan); i++) {
        fds_rows rows = fds_table_view_rows(view);
        status = rows.read(rows.context, 0, i, 0, rows.columns, row, err);
    }
    fds_table_view_free(view);
    fds_table_free(table);
    return status;
}

/* before puts the folder into the state that each attempt starts from. */
static void each_fault(const char *name, void (*before)(void)) {
    static const char *const kinds[] = {"allocations", "file operations"};
    uint64_t counts[2] = {0};
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t nth = 1;; nth++) {
            fds_error err = {0};
            before();
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status = use_table(&err);
            if (fds__fault_arm((fds__fault_kind)kind, 0) < nth) {
                assert_int_equal(status, FDS_OK);
                break;
            }
            if (status == FDS_OK)
                fail_msg("%s: %s number %lu fails, yet all is said to be well", name, kinds[kind],
                         (unsigned long)nth);
            assert_int_equal(err.status, status);
            assert_true(strlen(err.text) > 0);
            counts[kind]++;
            err.text[0] = 0;
            if (use_table(&err) != FDS_OK)
                fail_msg("%s: after %s number %lu failed: %s", name, kinds[kind],
                         (unsigned long)nth, err.text);
            expect_same(&whole, "t");
        }
    print_message("# %s: %lu allocations and %lu file operations failed, one at a time\n", name,
                  (unsigned long)counts[0], (unsigned long)counts[1]);
}

static void start_with_nothing(void) { remove_tree("t"); }

static void start_with_damage(void) {
    restore(&whole, "t");
    scratch_write(scratch_path("t/.table.json.1-1.tmp"), "x", 1);
    for (size_t i = 0; i < whole.count; i++) {
        char name[200];
        snprintf(name, sizeof name, "t/%.150s", whole.names[i]);
        if (strcmp(whole.names[i], "00000.seg") == 0) { /* a damaged header and record */
            whole.data[i][20] ^= 1;
            whole.data[i][100] ^= 1;
            scratch_write(scratch_path(name), whole.data[i], whole.sizes[i]);
            whole.data[i][20] ^= 1;
            whole.data[i][100] ^= 1;
        }
        if (strcmp(whole.names[i], "00001.seg") == 0) /* cut off within a record */
            scratch_write(scratch_path(name), whole.data[i], 64 + 48 + 20);
    }
}

static void make_whole(void) {
    fds_error err = {0};
    plan = plan_of(PLAYERS, 14);
    assert_int_equal(use_table(&err), FDS_OK);
    take(&whole, "t");
}

static void a_new_table(void **state) {
    (void)state;
    make_whole();
    each_fault("a new table", start_with_nothing);
    drop(&whole);
    fds_plan_free(plan);
}

static void a_damaged_table(void **state) {
    (void)state;
    make_whole();
    each_fault("a damaged table", start_with_damage);
    drop(&whole);
    fds_plan_free(plan);
}

/* With the sync after every record, and two threads at work. */
static void a_table_filled_by_two(void **state) {
    (void)state;
    make_whole();
    uint64_t nth = 1;
    for (bool fired = true; fired; nth++) {
        fds_error err = {0};
        fds_table *table = NULL;
        remove_tree("t");
        assert_int_equal(open_table("t", &table, &err), FDS_OK);
        table->sync_every_s = 0;
        fds__fault_arm(FDS__FAULT_IO, nth);
        fds_status status = fds_table_fill(table, plan, 2, NULL, &err);
        fired = fds__fault_arm(FDS__FAULT_IO, 0) >= nth;
        assert_int_equal(status == FDS_OK, !fired);
        assert_int_equal(fds_table_fill(table, plan, 2, NULL, &err), FDS_OK);
        fds_table_free(table);
        expect_same(&whole, "t");
    }
    print_message("# %lu file operations failed, one at a time\n", (unsigned long)nth - 2);
    drop(&whole);
    fds_plan_free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_new_table),
        TEST(a_damaged_table),
        TEST(a_table_filled_by_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
