/* SPDX-License-Identifier: Apache-2.0
 * Damaged tables: whatever byte is changed and wherever a file is cut off, opening does not crash,
 * at most the record in question is lost, and filling makes the folder what it was. */
#include "table_tests.h"

static fds_plan *plan; /* 3 full segments and part of a fourth */
static snapshot whole;
static unsigned different;

static int damage_setup(void **state) {
    int status = table_setup(state);
    plan = plan_of(PLAYERS, 22);
    fill_ok("t", plan, 1);
    take(&whole, "t");
    different = atomic_exchange(&kept.calls, 0);
    return status;
}

static int damage_teardown(void **state) {
    fds_plan_free(plan);
    drop(&whole);
    return scratch_teardown(state);
}

static size_t file_named(const char *name) {
    for (size_t i = 0; i < whole.count; i++)
        if (strcmp(whole.names[i], name) == 0)
            return i;
    fail_msg("no file %s", name);
    return 0;
}

static const char *path_of(size_t file) {
    char name[200];
    snprintf(name, sizeof name, "t/%.150s", whole.names[file]);
    return scratch_path(name);
}

static bool is_segment(size_t file) { return strstr(whole.names[file], ".seg") != NULL; }

/* Fills again: so many sub-models are computed, with so many warnings, and all is as it was. */
static void expect_repair(unsigned lost, unsigned warned, const char *warning) {
    forget_warnings();
    atomic_store(&kept.calls, 0);
    fill_ok("t", plan, 1);
    if (atomic_load(&kept.calls) != lost || warning_count != warned)
        fail_msg("%u computed again, not %u; %u warnings, not %u: %s", atomic_load(&kept.calls),
                 lost, warning_count, warned, warnings);
    expect_in(warnings, warning);
    expect_same(&whole, "t");
}

/* ---- any byte ---- */

static void flip(size_t file, size_t at, char mask) {
    whole.data[file][at] ^= mask;
    scratch_write(path_of(file), whole.data[file], whole.sizes[file]);
    whole.data[file][at] ^= mask;
}

static void any_byte_of_a_segment_may_change(void **state) {
    (void)state;
    unsigned flips = 0;
    for (size_t file = 0; file < whole.count; file++)
        for (size_t at = 0; is_segment(file) && at < whole.sizes[file]; at++) {
            const char masks[] = {(char)(1 << (at % 8)), (char)0xff};
            for (size_t m = 0; m < COUNT(masks); m++, flips++) {
                flip(file, at, masks[m]);
                expect_repair(at < 64 ? 0 : 1, 1, at < 64 ? "header is damaged" : "is damaged");
            }
        }
    print_message("# %u changes\n", flips);
}

static void a_changed_table_json_is_an_error_or_makes_no_difference(void **state) {
    (void)state;
    size_t file = file_named("table.json");
    unsigned refused = 0;
    for (size_t at = 0; at < whole.sizes[file]; at++) {
        const char masks[] = {(char)(1 << (at % 8)), (char)0xff};
        for (size_t m = 0; m < COUNT(masks); m++) {
            fds_table *table = NULL;
            fds_error err = {0};
            flip(file, at, masks[m]);
            if (open_table("t", &table, &err) == FDS_OK) {
                assert_int_equal(table->index.count, different);
                assert_int_equal(table->layout.records, 5);
                fds_table_free(table);
                continue;
            }
            assert_true(err.status == FDS_ERR_FORMAT || err.status == FDS_ERR_CORRUPT ||
                        err.status == FDS_ERR_UNSUPPORTED);
            expect_in(err.text, "table.json");
            refused++;
        }
    }
    print_message("# %u of %zu changes refused\n", refused, 2 * whole.sizes[file]);
    assert_true(refused > whole.sizes[file]);
    scratch_write(path_of(file), whole.data[file], whole.sizes[file]);
    expect_repair(0, 0, "");
}

/* ---- any length ---- */

static void a_segment_may_end_anywhere(void **state) {
    (void)state;
    for (size_t file = 0; file < whole.count; file++)
        for (size_t size = 0; is_segment(file) && size < whole.sizes[file]; size++) {
            size_t records = size < 64 ? 0 : (size - 64) / 48;
            scratch_write(path_of(file), whole.data[file], size);
            expect_repair((unsigned)((whole.sizes[file] - 64) / 48 - records), 0, "");
        }
}

/* The torn part goes at once, even when nothing is filled. */
static void a_torn_record_is_cut_off_on_opening(void **state) {
    (void)state;
    size_t size, file = file_named("00000.seg");
    scratch_write(path_of(file), whole.data[file], 64 + 2 * 48 + 47);
    fds_table_free(open_ok("t"));
    free(scratch_read(path_of(file), &size));
    assert_int_equal(size, 64 + 2 * 48);
    assert_int_equal(warning_count, 0);
}

static void bytes_after_the_last_record_are_cut_off(void **state) {
    (void)state;
    size_t file = file_named("00001.seg");
    char longer[2000] = {0};
    memcpy(longer, whole.data[file], whole.sizes[file]);
    scratch_write(path_of(file), longer, whole.sizes[file] + 100);
    expect_repair(0, 1, "00001.seg: 100 bytes after the last record are cut off");
}

static void table_json_may_end_anywhere(void **state) {
    (void)state;
    size_t file = file_named("table.json");
    for (size_t size = 0; size + 1 < whole.sizes[file]; size++) {
        scratch_write(path_of(file), whole.data[file], size);
        expect_open("t", FDS_ERR_FORMAT, "table.json: line");
    }
}

/* ---- whole files ---- */

static void missing_segments_are_made_again(void **state) {
    (void)state;
    for (size_t file = 0; file < whole.count; file++) {
        if (!is_segment(file))
            continue;
        unlink(path_of(file));
        expect_repair((unsigned)((whole.sizes[file] - 64) / 48), 0, "");
    }
    for (size_t file = 0; file < whole.count; file++)
        if (is_segment(file))
            unlink(path_of(file));
    expect_repair(different, 0, "");
}

static void zeroed_segments_are_filled_again(void **state) {
    (void)state;
    static const char zeros[1000];
    for (size_t file = 0; file < whole.count; file++)
        if (is_segment(file)) {
            scratch_write(path_of(file), zeros, whole.sizes[file]);
            expect_repair((unsigned)((whole.sizes[file] - 64) / 48), 0, "");
        }
}

static void a_segment_of_another_table_is_not_overwritten(void **state) {
    (void)state;
    size_t first = file_named("00000.seg"), second = file_named("00001.seg");
    scratch_write(path_of(second), whole.data[first], whole.sizes[first]);
    expect_open("t", FDS_ERR_FORMAT, "00001.seg is not segment 1 of this table");
    scratch_write(path_of(second), whole.data[second], whole.sizes[second]);
    fake_make(&kept, PLAYERS, INPUTS, CLASSES, 2);
    fill_ok("other", plan, 1);
    size_t size;
    char *other = scratch_read(scratch_path("other/00001.seg"), &size);
    scratch_write(path_of(second), other, size);
    free(other);
    fake_make(&kept, PLAYERS, INPUTS, CLASSES, 1);
    expect_open("t", FDS_ERR_FORMAT, "move it out of the folder");
}

static void a_folder_in_a_segments_place_is_an_error(void **state) {
    (void)state;
    size_t file = file_named("00001.seg");
    unlink(path_of(file));
    assert_int_equal(mkdir(path_of(file), 0777), 0);
    fds_table *table = NULL;
    fds_error err = {0};
    assert_int_not_equal(open_table("t", &table, &err), FDS_OK);
    expect_in(err.text, "00001.seg");
}

static void a_number_far_too_high_is_an_error(void **state) {
    (void)state;
    fake_make(&kept, 3, 1, 1, 1); /* a full segment has half a million records */
    fds_table *table = NULL;
    fds_error err = {0};
    assert_int_equal(
        fds_table_open(scratch_path("u"), &kept.value, FDS_STORE_F16, NULL, &table, &err), FDS_OK);
    fds_table_free(table);
    scratch_write(scratch_path("u/99999.seg"), "", 0);
    assert_int_equal(
        fds_table_open(scratch_path("u"), &kept.value, FDS_STORE_F16, NULL, &table, &err),
        FDS_ERR_LIMIT);
    expect_in(err.text, "records, at most");
}

/* ---- records that are whole but wrong ---- */

/* Writes a record of these bits, with a right checksum, over record 2 of segment 1. */
static void plant(const uint64_t *id, uint64_t bits) {
    size_t file = file_named("00001.seg");
    fds__layout layout;
    float probs[INPUTS * CLASSES] = {0};
    assert_int_equal(fds__layout_make(PLAYERS, INPUTS, CLASSES, FDS_STORE_F32, &layout, NULL),
                     FDS_OK);
    assert_int_equal(layout.record_size, 48);
    char *data = malloc(whole.sizes[file]);
    memcpy(data, whole.data[file], whole.sizes[file]);
    uint64_t record[6], sum;
    assert_int_equal(fds__segment_put(&layout, &bits, probs, (uint8_t *)record, NULL), FDS_OK);
    if (id)
        record[0] = *id;
    sum = fds_checksum(record, 40);
    memcpy(record + 5, &sum, 8);
    memcpy(data + 64 + 2 * 48, record, 48);
    scratch_write(path_of(file), data, whole.sizes[file]);
    free(data);
}

static void a_coalition_that_is_not_its_id_is_damage(void **state) {
    (void)state;
    plant(&(uint64_t){12345}, 5);
    expect_repair(1, 1, "00001.seg: record 2 (byte 160) is damaged; it will be computed again");
}

static void players_beyond_the_last_are_damage(void **state) {
    (void)state;
    plant(NULL, (uint64_t)1 << PLAYERS);
    expect_repair(1, 1, "00001.seg: record 2 (byte 160) is damaged");
}

static void of_two_records_of_a_coalition_the_first_counts(void **state) {
    (void)state;
    plant(NULL, 0); /* the empty coalition, which is record 0 of segment 0 */
    expect_repair(1, 1, "00001.seg: record 2 (byte 160) repeats an earlier record; it is not used");
}

/* Warnings are no errors: a table with damage serves what it has. */
static void what_is_not_damaged_can_be_read(void **state) {
    (void)state;
    flip(file_named("00001.seg"), 170, 1);
    fds_table *table = open_ok("t");
    fds_table_view *view = NULL;
    fds_error err = {0};
    assert_int_equal(table->index.count, different - 1);
    assert_int_equal(fds_table_view_create(table, plan, NULL, false, 1, &view, &err),
                     FDS_ERR_NOT_FOUND);
    expect_in(err.text, "of the plan is not in the table");
    fds_plan *first = plan_of(PLAYERS, 2);
    assert_int_equal(fds_table_view_create(table, first, NULL, false, 1, &view, &err), FDS_OK);
    fds_table_view_free(view);
    fds_plan_free(first);
    fds_table_free(table);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, damage_setup, damage_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(any_byte_of_a_segment_may_change),
        CASE(a_changed_table_json_is_an_error_or_makes_no_difference),
        CASE(a_segment_may_end_anywhere),
        CASE(a_torn_record_is_cut_off_on_opening),
        CASE(bytes_after_the_last_record_are_cut_off),
        CASE(table_json_may_end_anywhere),
        CASE(missing_segments_are_made_again),
        CASE(zeroed_segments_are_filled_again),
        CASE(a_segment_of_another_table_is_not_overwritten),
        CASE(a_folder_in_a_segments_place_is_an_error),
        CASE(a_number_far_too_high_is_an_error),
        CASE(a_coalition_that_is_not_its_id_is_damage),
        CASE(players_beyond_the_last_are_damage),
        CASE(of_two_records_of_a_coalition_the_first_counts),
        CASE(what_is_not_damaged_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
