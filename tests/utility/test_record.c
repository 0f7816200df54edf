/* SPDX-License-Identifier: Apache-2.0
 * Files of records by themselves: what a header may look like, which records count, what is cut
 * off, and when a writer syncs. */
#include "../base/scratch.h"
#include "utility/utility.h"

enum { HEADER = 64, SIZE = 32, RECORDS = 4, WHOLE = HEADER + RECORDS * SIZE };

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

static unsigned warning_count;
static bool is_taken[RECORDS], is_refused;

static void note(void *user, fds_log_level level, const char *text) {
    (void)user, (void)text;
    warning_count += level == FDS_LOG_WARNING;
}

static fds_status permit(const fds__record_form *form, const char *path, const uint8_t *header,
                         fds__found found, fds_error *err) {
    (void)form, (void)header;
    is_refused = found == FDS__FOUND_FOREIGN;
    return is_refused ? fds__fail(err, FDS_ERR_FORMAT, "%s is another", path) : FDS_OK;
}

static fds_status take(void *context, uint64_t number, const uint8_t *record, const char **fault,
                       fds_error *err) {
    (void)context, (void)err;
    assert_true(number < RECORDS);
    is_taken[number] = fds__get64(record) == number + 1;
    if (!is_taken[number])
        *fault = "has another id";
    return FDS_OK;
}

static fds__record_form make_form(uint8_t kind) {
    fds__record_form form = {.header = {'k', kind},
                             .header_size = HEADER,
                             .record_size = SIZE,
                             .records = RECORDS,
                             .permit = permit,
                             .take = take};
    fds__record_seal(form.header, HEADER);
    return form;
}

/* All records, record i with the id i + 1. */
static void make_file(uint8_t *file) {
    memset(file, 0, WHOLE);
    memcpy(file, make_form(1).header, HEADER);
    for (size_t i = 0; i < RECORDS; i++) {
        uint8_t *record = file + HEADER + i * SIZE;
        fds__put64(record, i + 1);
        memset(record + 8, 'x', 16);
        fds__record_seal(record, SIZE);
    }
}

/* Writes the file and repairs it; returns the status, sets the counts above and *size. */
static fds_status repair(const uint8_t *data, size_t size, char **now, size_t *now_size) {
    const fds_events events = {.log = note};
    fds__record_form form = make_form(1);
    fds__file file;
    fds_error err;
    scratch_write(scratch_path("file"), data, size);
    warning_count = 0;
    memset(is_taken, 0, sizeof is_taken);
    expect_ok(fds__file_open(&file, scratch_path("file"), FDS__ACCESS_UPDATE, &err), &err);
    fds_status status = fds__record_repair(&file, &form, &events, &err);
    fds__file_close(&file);
    *now = scratch_read(scratch_path("file"), now_size);
    return status;
}

/* Repairs a file: so many warnings, and these records (a bit each) count. It then has right bytes
 * up to its size. */
static void expect_repair(const uint8_t *data, size_t size, unsigned warned, unsigned taken,
                          size_t right_size) {
    uint8_t right[WHOLE];
    char *now;
    size_t now_size;
    unsigned found = 0;
    make_file(right);
    assert_int_equal(repair(data, size, &now, &now_size), FDS_OK);
    for (size_t i = 0; i < RECORDS; i++)
        found |= (unsigned)is_taken[i] << i;
    assert_int_equal(warning_count, warned);
    assert_int_equal(found, taken);
    assert_int_equal(now_size, right_size);
    assert_memory_equal(now, right, HEADER);
    free(now);
}

static void a_header_is_completed_written_again_or_refused(void **state) {
    (void)state;
    uint8_t file[WHOLE];
    char *now;
    size_t now_size;
    make_file(file);
    expect_repair(file, WHOLE, 0, 15, WHOLE);
    for (size_t size = 0; size < HEADER; size++)
        expect_repair(file, size, 0, 0, HEADER);
    memset(file, 0, HEADER);
    expect_repair(file, WHOLE, 0, 15, WHOLE);
    file[5] = 1;
    expect_repair(file, WHOLE, 1, 15, WHOLE);
    expect_repair(file, 10, 1, 0, HEADER);
    memcpy(file, make_form(2).header, HEADER);
    assert_int_equal(repair(file, WHOLE, &now, &now_size), FDS_ERR_FORMAT);
    assert_true(is_refused);
    assert_int_equal(now_size, WHOLE);
    assert_memory_equal(now, file, WHOLE);
    free(now);
}

/* A file that has a header is in its folder after a loss of power: whatever fails before, the next
 * repair syncs the folder. */
static void the_folder_is_synced_before_a_file_has_its_header(void **state) {
    (void)state;
    fds__record_form form = make_form(1);
    fds__file file;
    fds_error err;
    size_t size;
    expect_ok(fds__file_open(&file, scratch_path("file"), FDS__ACCESS_CREATE, &err), &err);
    for (uint64_t nth = 1; nth <= 2; nth++) { /* opening the folder, syncing it */
        fds__fault_arm(FDS__FAULT_IO, nth);
        assert_int_equal(fds__record_begin(&file, &form, &err), FDS_ERR_IO);
        fds__fault_arm(FDS__FAULT_IO, 0);
        expect_in(err.text, "folder");
        free(scratch_read(scratch_path("file"), &size));
        assert_int_equal(size, 0);
    }
    expect_ok(fds__record_begin(&file, &form, &err), &err);
    fds__file_close(&file);
    free(scratch_read(scratch_path("file"), &size));
    assert_int_equal(size, HEADER);
}

static void records_count_when_they_are_whole(void **state) {
    (void)state;
    uint8_t file[WHOLE + 5] = {0};
    make_file(file);
    expect_repair(file, WHOLE + 5, 1, 15, WHOLE);       /* too long */
    expect_repair(file, WHOLE - 5, 0, 7, WHOLE - SIZE); /* torn */
    memset(file + HEADER, 0, SIZE);                     /* never written */
    expect_repair(file, WHOLE, 0, 14, WHOLE);
    memset(file + HEADER + 8, 'x', 8); /* only its middle was written */
    expect_repair(file, WHOLE, 0, 14, WHOLE);
    file[HEADER + SIZE + 10] ^= 1; /* damaged */
    expect_repair(file, WHOLE, 1, 12, WHOLE);
    fds__put64(file + HEADER + 2 * SIZE, 9); /* another id, damaged so far */
    expect_repair(file, WHOLE, 2, 8, WHOLE);
    fds__record_seal(file + HEADER + 2 * SIZE, SIZE); /* whole, but not used */
    expect_repair(file, WHOLE, 2, 8, WHOLE);
}

static void a_writer_syncs_when_it_is_time(void **state) {
    (void)state;
    static const double sync_s[] = {1e9, 0};
    static const uint64_t operations[] = {1, 2}; /* a write; a write and a sync */
    uint8_t file[WHOLE];
    fds_error err;
    fds__record_writer *writer;
    make_file(file);
    scratch_write(scratch_path("file"), file, WHOLE);
    expect_ok(fds__record_writers_create(1, SIZE, 1, &writer, &err), &err);
    expect_ok(fds__record_writer_open(writer, scratch_path("file"), FDS__ACCESS_UPDATE, 0, &err),
              &err);
    memcpy(writer->record, file + HEADER, SIZE);
    for (int i = 0; i < 2; i++) {
        bool is_written = false;
        fds__fault_arm(FDS__FAULT_IO, 0);
        expect_ok(fds__record_writer_put(writer, SIZE, HEADER, sync_s[i], &is_written, &err), &err);
        assert_int_equal(fds__fault_arm(FDS__FAULT_IO, 0), operations[i]);
        assert_true(is_written);
    }
    assert_false(fds__record_writers_free(writer, 1));
}

static void the_different_coalitions_of_a_plan_are_numbered_in_its_order(void **state) {
    (void)state;
    fds_plan *plan = NULL;
    fds_error err;
    uint32_t of_row[62], next = 0;
    fds__slot_map map = {0}, again = {0};
    expect_ok(fds_plan_sample(FDS_SAMPLER_KERNEL, 4, NULL, 60, 1, &plan, &err), &err);
    assert_int_equal(fds_plan_rows(plan), COUNT(of_row));
    expect_ok(fds__slot_map_number(&map, plan, of_row, &err), &err);
    for (size_t row = 0; row < COUNT(of_row); row++) {
        uint32_t slot = 99;
        assert_true(of_row[row] <= next);
        next += of_row[row] == next;
        assert_true(
            fds__slot_map_find(&map, fds_coalition_id(fds_plan_coalition(plan, row), 4), &slot));
        assert_int_equal(slot, of_row[row]);
    }
    assert_int_equal(map.count, next);
    assert_true(next > 2 && next <= 16);
    expect_ok(fds__slot_map_number(&again, plan, NULL, &err), &err);
    assert_int_equal(again.count, map.count);
    fds__slot_map_free(&map);
    fds__slot_map_free(&again);
    fds_plan_free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_header_is_completed_written_again_or_refused),
        IN_SCRATCH(the_folder_is_synced_before_a_file_has_its_header),
        IN_SCRATCH(records_count_when_they_are_whole),
        IN_SCRATCH(a_writer_syncs_when_it_is_time),
        IN_SCRATCH(the_different_coalitions_of_a_plan_are_numbered_in_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
