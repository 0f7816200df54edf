/* SPDX-License-Identifier: Apache-2.0
 * Results in parts: every file and text is the one of the whole result, byte for byte; mistakes and
 * failures leave an old file alone; JSON is what jansson writes. */
#include "result_sample.h"

enum { MANY = 7 };

static void expect_failure(fds_status got, fds_status wanted, const fds_error *err,
                           const char *part) {
    assert_int_equal(got, wanted);
    expect_in(err->text, part);
}

/* Many predictions, of numbers of all magnitudes. */
static fds_result *many(void) {
    fds_rng rng = fds_rng_make(1, 98, 0, 0);
    fds_result *r = new_result(PLAYERS, MANY, CLASSES);
    name_all(r);
    r->checks = need((size_t)MANY * PLAYERS, sizeof *r->checks);
    r->check_errors = need((size_t)MANY * PLAYERS, sizeof *r->checks);
    for (size_t k = 0; k < MANY; k++) {
        char name[32];
        snprintf(name, sizeof name, "input %zu\n", k);
        name_input(r, k, name);
        r->samples[k] = k % 2 ? (uint32_t)k : FDS__UNKNOWN;
        r->labels[k] = r->predicted[k] = (uint32_t)(k % CLASSES);
        r->confidence[k] = 1.0 / (double)(k + 1);
    }
    for (size_t i = 0; i < (size_t)MANY * PLAYERS; i++) {
        r->values[i] = fds_rng_normal(&rng) * exp(20 * fds_rng_normal(&rng));
        r->errors[i] = i % 5 ? (double)i * 1e10 : (double)NAN;
        r->checks[i] = fds_rng_normal(&rng);
        r->check_errors[i] = (double)i;
    }
    r->values[0] = 0;
    r->values[1] = 1e-5;
    r->values[2] = 1e21;
    fds__result_average(r);
    return r;
}

static double *copy_of(const double *from, size_t count) {
    double *to = need(count, sizeof *to);
    memcpy(to, from, count * sizeof *to);
    return to;
}

/* Predictions first .. first+count-1. */
static fds_result *part_of(const fds_result *r, size_t first, size_t count) {
    fds_result *part = new_result(PLAYERS, count, CLASSES);
    name_all(part);
    for (size_t k = 0; k < count; k++) {
        name_input(part, k, r->input_names[first + k]);
        part->samples[k] = r->samples[first + k];
        part->labels[k] = r->labels[first + k];
        part->predicted[k] = r->predicted[first + k];
        part->confidence[k] = r->confidence[first + k];
    }
    memcpy(part->values, r->values + first * PLAYERS, count * PLAYERS * sizeof(double));
    memcpy(part->errors, r->errors + first * PLAYERS, count * PLAYERS * sizeof(double));
    part->checks = copy_of(r->checks + first * PLAYERS, count * PLAYERS);
    part->check_errors = copy_of(r->check_errors + first * PLAYERS, count * PLAYERS);
    json_object_update(part->about, r->about);
    return part;
}

static fds_status write_parts(fds_result_writer *w, const fds_result *r, size_t size,
                              fds_error *err) {
    fds_status status = FDS_OK;
    for (size_t first = 0; first < MANY && status == FDS_OK; first += size) {
        fds_result *part = part_of(r, first, MIN(size, MANY - first));
        status = fds_result_writer_add(w, part, err);
        fds_result_free(part);
    }
    return status == FDS_OK ? fds_result_writer_finish(w, err) : status;
}

static void files_in_parts_are_those_of_the_whole(void **state) {
    (void)state;
    static const char *const names[] = {"v.csv", "v.npy", "v.json"};
    fds_result *r = many();
    for (size_t i = 0; i < COUNT(names); i++) {
        size_t whole_size, size;
        char *whole = scratch_read(save(r, names[i]), &whole_size);
        for (size_t each = 1; each <= MANY; each += 2) {
            fds_result_writer *w = NULL;
            fds_error err = {0};
            expect_ok(fds_result_writer_open(scratch_path(names[i]), MANY, &w, &err), &err);
            expect_ok(write_parts(w, r, each, &err), &err);
            fds_result_writer_free(w);
            char *got = scratch_read(scratch_path(names[i]), &size);
            assert_int_equal(size, whole_size);
            assert_memory_equal(got, whole, size);
            free(got);
        }
        free(whole);
    }
    fds_result_free(r);
}

static bool keep(void *user, const char *text, size_t size) {
    fds__text_add(user, text, size);
    return true;
}

static char *print_parts(const fds_result *r, size_t each) {
    fds_result_writer *w = NULL;
    fds_error err = {0};
    fds__text text = {0};
    expect_ok(fds_result_writer_print(MANY, keep, &text, &w, &err), &err);
    expect_ok(write_parts(w, r, each, &err), &err);
    expect_failure(fds_result_writer_finish(w, &err), FDS_ERR_USAGE, &err, "written already");
    fds_result_writer_free(w);
    return text.data;
}

/* Jansson reads it, and writes the same text again. */
static void json_is_what_jansson_writes(void **state) {
    (void)state;
    fds_result *r = many();
    for (int is_empty = 1; is_empty >= 0; is_empty--) {
        char *text = print_parts(r, MANY);
        json_t *root = load_text(text);
        char *again = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
        assert_string_equal(text, again);
        assert_int_equal(json_array_size(json_object_get(root, "inputs")), MANY);
        assert_int_equal(json_object_size(root), is_empty ? 1 : 3);
        fds__free(again);
        fds__free(text);
        json_decref(root);
        fds__json_put(r->about, "b", json_pack("{s:[i,i]}", "c", 1, 2));
        fds__json_put(r->about, "seconds", json_real(0.25));
    }
    r->has_shares = true;
    for (size_t k = 0; k < MANY; k++) /* the mean alone */
        name_input(r, k, NULL);
    char *text = NULL;
    fds_error err = {0};
    expect_ok(fds_result_json(r, &text, &err), &err);
    json_t *root = load_text(text);
    char *again = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    assert_string_equal(text, again);
    fds__free(again);
    fds_text_free(text);
    json_decref(root);
    fds_result_free(r);
}

static void seconds_of_parts_are_added_up_at_the_end(void **state) {
    (void)state;
    fds_result *r = many();
    fds__json_put(r->about, "seconds", json_real(0.25));
    fds__json_put(r->about, "a", json_true());
    char *whole = print_parts(r, MANY), *parts = print_parts(r, 2);
    json_t *one = load_text(whole), *other = load_text(parts);
    assert_true(real_of(one, "seconds") == 0.25 && real_of(other, "seconds") == 1);
    expect_in(parts + strlen(parts) - 18, "\"seconds\": 1.0\n}");
    json_object_del(one, "seconds");
    json_object_del(other, "seconds");
    assert_true(json_equal(one, other));
    json_decref(one);
    json_decref(other);
    fds__free(whole);
    fds__free(parts);
    fds_result_free(r);
}

static void parts_that_do_not_fit_are_refused(void **state) {
    (void)state;
    fds_result *r = many(), *other = new_result(PLAYERS + 1, 1, 1), *none = new_result(2, 0, 1);
    fds_result_writer *w = NULL;
    fds_error err = {0};
    const char *path = scratch_path("v.csv");
    assert_int_equal(fds_result_writer_open("v.txt", 1, &w, NULL), FDS_ERR_USAGE);
    expect_ok(fds_result_writer_open(path, MANY + 1, &w, &err), &err);
    expect_failure(fds_result_writer_finish(w, &err), FDS_ERR_USAGE, &err, "0 of 8 predictions");
    expect_failure(fds_result_writer_add(w, none, &err), FDS_ERR_USAGE, &err, "0 predictions");
    expect_ok(fds_result_writer_add(w, r, &err), &err);
    expect_failure(fds_result_writer_add(w, r, &err), FDS_ERR_USAGE, &err, "7 of 8 predictions");
    expect_failure(fds_result_writer_add(w, other, &err), FDS_ERR_USAGE, &err, "3 players");
    expect_failure(fds_result_writer_finish(w, &err), FDS_ERR_USAGE, &err, "7 of 8 predictions");
    fds_result *last = part_of(r, 0, 1);
    last->values[1] = NAN;
    expect_failure(fds_result_writer_add(w, last, &err), FDS_ERR_DIVERGED, &err,
                   "player 1 in prediction 7");
    fds_result_free(last);
    fds_result_writer_free(w);
    assert_int_equal(scratch_entries(), 0);
    fds_result_writer_free(NULL);
    fds_result_free(r);
    fds_result_free(other);
    fds_result_free(none);
}

static bool refuse(void *user, const char *text, size_t size) {
    (void)user, (void)text, (void)size;
    return false;
}

static void a_text_that_nobody_takes_is_an_error(void **state) {
    (void)state;
    fds_result *r = many();
    fds_result_writer *w = NULL;
    fds_error err = {0};
    expect_ok(fds_result_writer_print(MANY, refuse, NULL, &w, &err), &err);
    expect_failure(write_parts(w, r, 3, &err), FDS_ERR_IO, &err, "cannot write");
    fds_result_writer_free(w);
    fds_result_free(r);
}

typedef struct {
    fds_result *parts[2];
    char path[512];
} written;

static fds_status write_over(void *with, fds_error *err) {
    written *w = with;
    fds_result_writer *writer = NULL;
    scratch_write(w->path, "old", 3);
    fds_status status = fds_result_writer_open(w->path, 4, &writer, err);
    for (size_t i = 0; i < 2 && status == FDS_OK; i++)
        status = fds_result_writer_add(writer, w->parts[i], err);
    if (status == FDS_OK)
        status = fds_result_writer_finish(writer, err);
    fds_result_writer_free(writer);
    return status;
}

static fds_status print_over(void *with, fds_error *err) {
    written *w = with;
    fds_result_writer *writer = NULL;
    fds__text text = {0};
    fds_status status = fds_result_writer_print(4, keep, &text, &writer, err);
    for (size_t i = 0; i < 2 && status == FDS_OK; i++)
        status = fds_result_writer_add(writer, w->parts[i], err);
    if (status == FDS_OK)
        status = fds_result_writer_finish(writer, err);
    fds_result_writer_free(writer);
    if (status == FDS_OK)
        status = fds__text_check(&text, err);
    fds__free(text.data);
    return status;
}

/* The last file operation syncs the folder: by then the new file stands, complete. */
static void check_old(void *with, bool is_last) {
    if (!is_last)
        scratch_expect(((written *)with)->path, "old");
    assert_int_equal(scratch_entries(), 1);
}

static void check_memory(void *with, bool is_last) {
    (void)is_last;
    scratch_expect(((written *)with)->path, "old");
    assert_int_equal(scratch_entries(), 1);
}

static void a_failure_leaves_the_old_file(void **state) {
    (void)state;
    static const char *const names[] = {"v.csv", "v.npy", "v.json"};
    fds_result *r = many();
    written w = {.parts = {part_of(r, 0, 3), part_of(r, 3, 1)}};
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(w.path, sizeof w.path, "%s", scratch_path(names[i]));
        assert_true(each_fault(FDS__FAULT_ALLOC, write_over, check_memory, &w) >= 2);
        assert_true(each_fault(FDS__FAULT_IO, write_over, check_old, &w) > 3);
        unlink(w.path);
    }
    assert_true(each_fault(FDS__FAULT_ALLOC, print_over, NULL, &w) > 10);
    fds_result_free(w.parts[0]);
    fds_result_free(w.parts[1]);
    fds_result_free(r);
}

int main(void) {
    json_set_alloc_funcs(fds__alloc, fds__free);
    const struct CMUnitTest tests[] = {
        TEST(files_in_parts_are_those_of_the_whole),    TEST(json_is_what_jansson_writes),
        TEST(seconds_of_parts_are_added_up_at_the_end), TEST(parts_that_do_not_fit_are_refused),
        TEST(a_text_that_nobody_takes_is_an_error),     TEST(a_failure_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
