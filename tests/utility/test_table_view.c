/* SPDX-License-Identifier: Apache-2.0
 * Reading a table: the columns that were asked for, from whatever segment, with little memory. */
#include "table_tests.h"

#include <pthread.h>

static fds_plan *plan;
static fds_table *table;
static const uint32_t labels[INPUTS] = {1, 0, 1};

static int view_setup(void **state) {
    int status = table_setup(state);
    plan = plan_of(PLAYERS, 40);
    return status;
}

static int view_teardown(void **state) {
    fds_table_free(table);
    table = NULL;
    fds_plan_free(plan);
    return scratch_teardown(state);
}

static void fill_it(void) {
    table = open_ok("t");
    fds_error err = {0};
    assert_int_equal(fds_table_fill(table, plan, 2, NULL, &err), FDS_OK);
}

static fds_table_view *view_of(const uint32_t *chosen, bool is_mean, unsigned workers) {
    fds_table_view *view = NULL;
    fds_error err = {0};
    if (fds_table_view_create(table, plan, chosen, is_mean, workers, &view, &err) != FDS_OK)
        fail_msg("%s", err.text);
    return view;
}

static double right(size_t row, size_t input, size_t label) {
    return (double)fake_prob(&kept.value, fds_plan_coalition(plan, row), input * CLASSES + label);
}

static void read_ok(fds_rows rows, size_t row, size_t first, size_t count, double *out) {
    fds_error err = {0};
    if (rows.read(rows.context, 0, row, first, count, out, &err) != FDS_OK)
        fail_msg("%s", err.text);
}

/* Every row, and every run of columns of it, after and before reopening. */
static void all_labels(void **state) {
    (void)state;
    fill_it();
    for (int again = 0; again < 2; again++) {
        fds_table_view *view = view_of(NULL, false, 1);
        fds_rows rows = fds_table_view_rows(view);
        assert_int_equal(rows.columns, INPUTS * CLASSES);
        for (size_t row = 0; row < fds_plan_rows(plan); row++)
            for (size_t first = 0; first <= rows.columns; first++)
                for (size_t count = 0; first + count <= rows.columns; count++) {
                    double out[INPUTS * CLASSES + 1];
                    out[count] = -7;
                    read_ok(rows, row, first, count, out);
                    for (size_t i = 0; i < count; i++)
                        assert_true(out[i] ==
                                    right(row, (first + i) / CLASSES, (first + i) % CLASSES));
                    assert_true(out[count] == -7);
                }
        fds_table_view_free(view);
        fds_table_free(table);
        table = open_ok("t");
    }
}

static void one_label_an_input_and_their_mean(void **state) {
    (void)state;
    fill_it();
    fds_table_view *view = view_of(labels, false, 1), *mean = view_of(labels, true, 1);
    fds_rows rows = fds_table_view_rows(view), means = fds_table_view_rows(mean);
    assert_int_equal(rows.columns, INPUTS);
    assert_int_equal(means.columns, 1);
    for (size_t row = 0; row < fds_plan_rows(plan); row++) {
        double out[INPUTS], average, sum = 0;
        read_ok(rows, row, 0, INPUTS, out);
        for (size_t i = 0; i < INPUTS; i++) {
            assert_true(out[i] == right(row, i, labels[i]));
            sum += out[i];
        }
        read_ok(rows, row, 1, 1, out);
        assert_true(out[0] == right(row, 1, labels[1]));
        read_ok(means, row, 0, 1, &average);
        assert_true(average == sum / INPUTS);
        read_ok(means, row, 1, 0, NULL);
    }
    fds_table_view_free(view);
    fds_table_view_free(mean);
}

static void halves_are_near(void **state) {
    (void)state;
    kept_store = FDS_STORE_F16;
    fill_it();
    fds_table_view *view = view_of(NULL, false, 1);
    fds_rows rows = fds_table_view_rows(view);
    for (size_t row = 0; row < fds_plan_rows(plan); row++) {
        double out[INPUTS * CLASSES];
        read_ok(rows, row, 0, rows.columns, out);
        for (size_t i = 0; i < rows.columns; i++) {
            double exact = right(row, i / CLASSES, i % CLASSES);
            assert_true(fabs(out[i] - exact) <= fmax(exact * 0x1p-11, 0x1p-25));
            assert_true(out[i] == fds__half_to_double(fds__half_from_float((float)exact)));
        }
    }
    fds_table_view_free(view);
}

static void what_makes_no_view_is_refused(void **state) {
    (void)state;
    fill_it();
    fds_table_view *view = NULL;
    fds_error err = {0};
    const uint32_t wrong[INPUTS] = {0, CLASSES, 0};
    assert_int_equal(fds_table_view_create(table, plan, wrong, false, 1, &view, &err),
                     FDS_ERR_USAGE);
    expect_in(err.text, "input 1: label 2, there are 2 classes");
    assert_int_equal(fds_table_view_create(table, plan, NULL, true, 1, &view, &err), FDS_ERR_USAGE);
    fds_plan *other = plan_of(PLAYERS + 1, 4), *larger = plan_of(PLAYERS, 120);
    assert_int_equal(fds_table_view_create(table, other, NULL, false, 1, &view, &err),
                     FDS_ERR_SHAPE);
    assert_int_equal(fds_table_view_create(table, larger, NULL, false, 1, &view, &err),
                     FDS_ERR_NOT_FOUND);
    expect_in(err.text, "fill the table first");
    fds_plan_free(other);
    fds_plan_free(larger);
    view = view_of(NULL, false, 2);
    fds_rows rows = fds_table_view_rows(view);
    double out[INPUTS * CLASSES];
    assert_int_equal(rows.read(rows.context, 2, 0, 0, 1, out, &err), FDS_ERR_USAGE);
    assert_int_equal(rows.read(rows.context, 0, fds_plan_rows(plan), 0, 1, out, &err),
                     FDS_ERR_USAGE);
    assert_int_equal(rows.read(rows.context, 0, 0, 6, 1, out, &err), FDS_ERR_USAGE);
    assert_int_equal(rows.read(rows.context, 0, 0, 1, SIZE_MAX, out, &err), FDS_ERR_USAGE);
    fds_table_view_free(view);
    fds_table_view_free(NULL);
}

/* What happens to the files behind the table's back is an error, and no crash. */
static void files_that_change_in_use_are_errors(void **state) {
    (void)state;
    fill_it();
    fds_table_view *view = view_of(NULL, false, 1);
    fds_rows rows = fds_table_view_rows(view);
    double out[INPUTS * CLASSES];
    fds_error err = {0};
    assert_int_equal(truncate(scratch_path("t/00001.seg"), 64 + 48 + 10), 0);
    size_t failed = 0;
    for (size_t row = 0; row < fds_plan_rows(plan); row++)
        if (rows.read(rows.context, 0, row, 0, 1, out, &err) != FDS_OK) {
            assert_int_equal(err.status, FDS_ERR_IO);
            expect_in(err.text, "it was cut off while in use");
            failed++;
        }
    assert_true(failed >= 4);
    unlink(scratch_path("t/00002.seg"));
    failed = 0;
    for (size_t row = 0; row < fds_plan_rows(plan); row++)
        failed += rows.read(rows.context, 0, row, 0, 1, out, &err) == FDS_ERR_NOT_FOUND;
    assert_true(failed >= 5);
    size_t size;
    char *third = scratch_read(scratch_path("t/00003.seg"), &size);
    scratch_write(scratch_path("t/00002.seg"), third, size);
    free(third);
    failed = 0;
    for (size_t row = 0; row < fds_plan_rows(plan); row++)
        failed += rows.read(rows.context, 0, row, 0, 1, out, &err) == FDS_ERR_CORRUPT;
    assert_true(failed >= 1);
    fds_table_view_free(view);
}

/* A table may grow while a view of its older rows is there. */
static void a_view_outlives_a_fill(void **state) {
    (void)state;
    fds_plan *small = plan_of(PLAYERS, 6), *large = plan;
    plan = small;
    fill_it();
    fds_table_view *view = view_of(NULL, false, 1);
    fds_rows rows = fds_table_view_rows(view);
    double out[INPUTS * CLASSES];
    read_ok(rows, 0, 0, 1, out);
    assert_int_equal(fds_table_fill(table, large, 1, NULL, NULL), FDS_OK);
    for (size_t row = 0; row < fds_plan_rows(plan); row++) {
        read_ok(rows, row, 0, 1, out);
        assert_true(out[0] == right(row, 0, 0));
    }
    fds_table_view_free(view);
    plan = large;
    view = view_of(NULL, false, 1);
    fds_table_view_free(view);
    fds_plan_free(small);
}

/* ---- memory and threads ---- */

static size_t mapped_segments(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1000];
    size_t count = 0;
    while (maps && fgets(line, sizeof line, maps))
        count += strstr(line, scratch) && strstr(line, ".seg");
    if (maps)
        fclose(maps);
    return count;
}

static void a_worker_maps_one_segment_at_a_time(void **state) {
    (void)state;
    fill_it();
    assert_true(table->segments > 5);
    fds_table_view *view = view_of(labels, true, 2);
    fds_rows rows = fds_table_view_rows(view);
    size_t most = 0;
    double out;
    for (size_t row = 0; row < fds_plan_rows(plan); row++) {
        assert_int_equal(rows.read(rows.context, (unsigned)(row % 2), row, 0, 1, &out, NULL),
                         FDS_OK);
        most = MAX(most, mapped_segments());
    }
    assert_true(most <= 2);
    fds_table_view_free(view);
    assert_int_equal(mapped_segments(), 0);
}

typedef struct {
    fds_rows rows;
    unsigned number;
    size_t wrong;
} reader;

static void *read_all(void *argument) {
    reader *r = argument;
    for (size_t turn = 0; turn < 20; turn++)
        for (size_t row = 0; row < fds_plan_rows(plan); row++) {
            double out[INPUTS * CLASSES];
            r->wrong += r->rows.read(r->rows.context, r->number, row, 0, r->rows.columns, out,
                                     NULL) != FDS_OK ||
                        out[3] != right(row, 1, 1);
        }
    return NULL;
}

static void workers_read_side_by_side(void **state) {
    (void)state;
    fill_it();
    fds_table_view *view = view_of(NULL, false, 4);
    pthread_t threads[4];
    reader readers[4];
    for (unsigned i = 0; i < 4; i++) {
        readers[i] = (reader){fds_table_view_rows(view), i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].wrong, 0);
    }
    fds_table_view_free(view);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, view_setup, view_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(all_labels),
        CASE(one_label_an_input_and_their_mean),
        CASE(halves_are_near),
        CASE(what_makes_no_view_is_refused),
        CASE(files_that_change_in_use_are_errors),
        CASE(a_view_outlives_a_fill),
        CASE(a_worker_maps_one_segment_at_a_time),
        CASE(workers_read_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
