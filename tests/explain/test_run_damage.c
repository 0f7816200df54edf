/* SPDX-License-Identifier: Apache-2.0
 * Every file of a run damaged: missing, torn, with wrong bytes, with members that no fit writes,
 * and of another run. Each is told with the file's name, and nothing breaks. */
#include "fixture.h"

static fds_status open_status(const char *dir, fds_error *err) {
    static answers a;
    const fds__answers to = places(&a);
    fds_run *run = NULL;
    *err = (fds_error){0};
    fds_status status = fds__run_open(dir, 1, &run, err);
    if (status == FDS_OK) { /* whatever it has taken in, it answers or refuses */
        fds_dataset *ds = clouds(3, 9);
        if (fds__run_get_info(run).players <= MOST_PLAYERS &&
            fds__run_get_info(run).classes == CLASSES)
            status = fds__run_explain(run, FDS__ANSWERER_EXPLAINER, ds, NULL, 3, false, &to, err);
        fds_dataset_free(ds);
    }
    fds_run_free(run);
    return status;
}

/* The files of a run that is read; each whole in memory. */
typedef struct {
    const char *name;
    char path[600];
    char *data;
    size_t size;
} part_file;

static const char *const part_names[] = {FDS__RUN_JSON, FDS__RUN_SERVICE, FDS__RUN_EXPLAINER,
                                         FDS__RUN_PLAYERS, FDS__RUN_ERRORS};

static part_file take(const char *dir, const char *name) {
    part_file f = {.name = name};
    snprintf(f.path, sizeof f.path, "%s/%s", dir, name);
    f.data = scratch_read(f.path, &f.size);
    return f;
}

static void put_back(part_file *f) {
    scratch_write(f->path, f->data, f->size);
    free(f->data);
}

static void expect_refused(const char *dir, const part_file *f) {
    fds_error err;
    fds_status status = open_status(dir, &err);
    if (status == FDS_OK || status == FDS_ERR_NOMEM || err.status != status)
        fail_msg("%s: %s: %s", f->name, fds_status_name(status), err.text);
    expect_in(err.text, f->name);
}

static void missing_files_are_named(void **state) {
    (void)state;
    task t = task_make("afds");
    fds_error err;
    fit(&t, scratch_path("run"));
    for (size_t i = 0; i < COUNT(part_names); i++) {
        part_file f = take(scratch_path("run"), part_names[i]);
        assert_int_equal(unlink(f.path), 0);
        expect_failure(open_status(scratch_path("run"), &err), FDS_ERR_NOT_FOUND, &err,
                       part_names[i]);
        assert_int_equal(mkdir(f.path, 0777), 0); /* a folder in its place */
        expect_refused(scratch_path("run"), &f);
        assert_int_equal(rmdir(f.path), 0);
        put_back(&f);
    }
    expect_ok(open_status(scratch_path("run"), &err), &err);
    expect_failure(open_status(scratch_path("none"), &err), FDS_ERR_NOT_FOUND, &err, "none");
    expect_failure(open_status(scratch_path("run/utilities"), &err), FDS_ERR_NOT_FOUND, &err,
                   "is not a run: it has no run.json");
    task_free(&t);
}

static void torn_files_are_named(void **state) {
    (void)state;
    enum { LENGTHS = IS_SLOW_BUILD ? 25 : 100 };
    task t = task_make("afds");
    fds_error err;
    fit(&t, scratch_path("run"));
    for (size_t i = 0; i < COUNT(part_names); i++) {
        part_file f = take(scratch_path("run"), part_names[i]);
        for (size_t k = 0; k < LENGTHS; k++) {
            scratch_write(f.path, f.data, k < 10 ? k : k * (f.size - 3) / LENGTHS);
            expect_refused(scratch_path("run"), &f);
        }
        /* and with more behind its end */
        char *longer = need(f.size + 8, 1);
        memcpy(longer, f.data, f.size);
        memset(longer + f.size, 'x', 8);
        scratch_write(f.path, longer, f.size + 8);
        expect_refused(scratch_path("run"), &f);
        free(longer);
        put_back(&f);
    }
    expect_ok(open_status(scratch_path("run"), &err), &err);
    task_free(&t);
}

/* Wrong bytes, one at a time: they are found, but for those that say the same, as E for e in a
 * number; and nothing breaks. */
static void wrong_bytes_are_found(void **state) {
    (void)state;
    enum { PLACES = IS_SLOW_BUILD ? 60 : 300 };
    static const unsigned char masks[] = {0x01, 0x20, 0x80, 0xff};
    task t = task_make("gfds+");
    fds_rng rng = fds_rng_make(1, 6000, 0, 0);
    fds_error err;
    fit(&t, scratch_path("run"));
    for (size_t i = 0; i < COUNT(part_names); i++) {
        part_file f = take(scratch_path("run"), part_names[i]);
        size_t refused = 0;
        for (size_t k = 0; k < PLACES; k++) {
            size_t at = fds_rng_below(&rng, f.size);
            char kept = f.data[at];
            f.data[at] = (char)(kept ^ masks[k % COUNT(masks)]);
            scratch_write(f.path, f.data, f.size);
            fds_status status = open_status(scratch_path("run"), &err);
            assert_true(status != FDS_ERR_NOMEM && status == err.status);
            refused += status != FDS_OK;
            f.data[at] = kept;
        }
        print_message("# %s: %zu of %d wrong bytes found\n", f.name, refused, PLACES);
        assert_true(refused + 3 >= PLACES);
        put_back(&f);
    }
    expect_ok(open_status(scratch_path("run"), &err), &err);
    task_free(&t);
}

/* Values that no fit writes, in places of run.json that are read. */
static void wrong_members_of_the_record_are_refused(void **state) {
    (void)state;
    static const char *const changes[] = {
        "{\"format\": \"fds table\"}",
        "{\"version\": 1}",
        "{\"method\": 3}",
        "{\"data\": {}}",
        "{\"data\": {\"source\": \"x\", \"shape\": [4, 1, 1], \"classes\": []}}",
        "{\"data\": {\"source\": \"x\", \"shape\": [4, 1], \"classes\": [\"a\", \"b\", \"c\"]}}",
        "{\"data\": {\"source\": \"x\", \"shape\": [4, 0, 1], \"classes\": [\"a\", \"b\", \"c\"]}}",
        "{\"data\": {\"source\": \"x\", \"shape\": [4, 1, 70000], \"classes\": [\"a\"]}}",
        "{\"data\": {\"source\": \"x\", \"shape\": [4, 1, 1], \"classes\": [\"a\", \"b\"]}}",
        "{\"data\": {\"source\": \"x\", \"shape\": [5, 1, 1], \"classes\": [\"a\",\"b\",\"c\"]}}",
        "{\"data\": {\"shape\": [4, 1, 1], \"classes\": [\"a\", \"b\", \"c\"]}}",
        "{\"players\": []}",
        "{\"players\": {}}",
        "{\"players\": [{\"name\": \"a\", \"label\": 0, \"provider\": null, \"samples\": [0]}]}",
        "{\"players\": [{\"name\": \"a\", \"label\": 3, \"provider\": null, \"samples\": [0]}]}",
        "{\"players\": [{\"name\": \"a\", \"label\": -1, \"provider\": null, \"samples\": [0]}]}",
        "{\"players\": [{\"label\": 1}]}",
        "{\"players\": [7]}",
        "{\"groups\": [0, 1]}",
        "{\"groups\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]}",
        "{\"groups\": null}",
        "{\"coalitions\": null}",
        "{\"coalitions\": {\"sampler\": \"gfds+\", \"count\": 0}}",
        "{\"coalitions\": {\"sampler\": \"gfds+\", \"count\": -4}}",
        "{\"coalitions\": {\"sampler\": \"uniform\", \"count\": 60}}",
        "{\"adjust\": \"most\"}",
        "{\"explainer\": {}}",
        "{\"results\": null, \"method\": null}",
    };
    task t = task_make("gfds+");
    fds_error err;
    fit(&t, scratch_path("run"));
    part_file f = take(scratch_path("run"), FDS__RUN_JSON);
    for (size_t i = 0; i < COUNT(changes); i++) {
        json_t *json = json_loadb(f.data, f.size, 0, NULL);
        json_t *change = json_loads(changes[i], 0, NULL);
        assert_non_null(change);
        assert_int_equal(json_object_update(json, change), 0);
        write_run(scratch_path("run"), json);
        json_decref(change);
        fds_status status = open_status(scratch_path("run"), &err);
        if (status == FDS_OK || !err.text[0])
            fail_msg("%s: %s: %s", changes[i], fds_status_name(status), err.text);
    }
    put_back(&f);
    expect_ok(open_status(scratch_path("run"), &err), &err);
    task_free(&t);
}

/* Sets results.xxh3[name] to sum, or removes all of results.xxh3 (name: NULL). */
static void change_sums(const part_file *record, const char *name, const char *sum) {
    json_t *json = json_loadb(record->data, record->size, 0, NULL),
           *results = json_object_get(json, "results");
    if (name)
        json_object_set_new(json_object_get(results, "xxh3"), name, json_string(sum));
    else
        json_object_del(results, "xxh3");
    write_run(scratch_path("run"), json);
}

static fds_status open_for(const char *job, fds_error *err) {
    fds_run *run = NULL;
    fds_params *params = fds_params_create(job);
    fds_status status = fds_run_open(scratch_path("run"), params, &run, err);
    fds_params_free(params);
    fds_run_free(run);
    return status;
}

/* Who pays by a run compares what nobody can forge. */
static void a_forged_file_is_found_by_its_sha256(void **state) {
    (void)state;
    task t = task_make("gfds+");
    fds_error err;
    fds_run *run;
    char hex[65];
    fit(&t, scratch_path("run"));
    part_file record = take(scratch_path("run"), FDS__RUN_JSON),
              forged =
                  take(scratch_path("run"), FDS__EXPORT_COALITIONS); /* which no reader reads */
    expect_ok(open_for("explain", &err), &err);
    expect_ok(open_for("pay", &err), &err);
    scratch_write(forged.path, forged.data, forged.size - 1);
    expect_failure(open_for("explain", &err), FDS_ERR_CORRUPT, &err, "xxh3");
    expect_ok(fds__file_checksum(forged.path, hex, &err), &err);
    change_sums(&record, FDS__EXPORT_COALITIONS, hex);
    expect_ok(open_for("explain", &err), &err);
    expect_failure(open_for("pay", &err), FDS_ERR_CORRUPT, &err, "sha256");
    expect_failure(open_status(scratch_path("run"), &err), FDS_ERR_CORRUPT, &err, "sha256");
    expect_ok(fds__run_open_quickly(scratch_path("run"), 1, &run, &err),
              &err); /* as a server does */
    expect_failure(fds__run_verify(run, &err), FDS_ERR_CORRUPT, &err, "sha256");
    fds_run_free(run);
    /* runs of earlier versions have no other sums */
    change_sums(&record, NULL, NULL);
    expect_failure(open_for("explain", &err), FDS_ERR_CORRUPT, &err, "sha256");
    put_back(&forged);
    expect_ok(open_for("explain", &err), &err);
    put_back(&record);
    task_free(&t);
}

/* Parts of other runs in the places of its own. */
static void parts_of_other_runs_are_refused(void **state) {
    (void)state;
    task t = task_make("afds");
    fds_error err;
    fit(&t, scratch_path("run"));
    task_free(&t);
    t = task_providers("afds"); /* other players */
    t.params.adjust = "none";
    t.params.coalitions = 20;
    t.params.lr = 1e-4;
    fit(&t, scratch_path("other"));
    task_free(&t);
    static const char *const names[] = {FDS__RUN_EXPLAINER, FDS__RUN_PLAYERS, FDS__RUN_ERRORS};
    for (size_t i = 0; i < COUNT(names); i++) {
        part_file f = take(scratch_path("run"), names[i]);
        part_file g = take(scratch_path("other"), names[i]);
        scratch_write(f.path, g.data, g.size);
        expect_failure(open_status(scratch_path("run"), &err), FDS_ERR_SHAPE, &err, names[i]);
        free(g.data);
        put_back(&f);
    }
}

static void a_bank_that_is_damaged_is_named(void **state) {
    (void)state;
    task t = task_make("afds");
    fds_error err;
    t.params.explainer = BANK;
    fit(&t, scratch_path("run"));
    part_file f = take(scratch_path("run"), FDS__RUN_BANK);
    /* sub-models that are only for checking come last, and are not read */
    size_t end = f.size - 20 * ((f.size - 72) / 82);
    for (size_t k = 0; k < 20; k++) {
        scratch_write(f.path, f.data, k * (end - 1) / 19);
        expect_refused(scratch_path("run"), &f);
        size_t at = k < 9 ? 8 * k : k * (end - 1) / 19;
        f.data[at] ^= 0x10;
        scratch_write(f.path, f.data, f.size);
        expect_refused(scratch_path("run"), &f);
        f.data[at] ^= 0x10;
    }
    assert_int_equal(unlink(f.path), 0);
    expect_refused(scratch_path("run"), &f);
    put_back(&f);
    expect_ok(open_status(scratch_path("run"), &err), &err);
    task_free(&t);
}

/* Files of a complete run that are lost or damaged, and what killed processes left beside them. */
static void the_same_fit_repairs_a_run_to_the_bit(void **state) {
    (void)state;
    static const char *const names[] = {FDS__RUN_SERVICE, FDS__RUN_EXPLAINER, FDS__RUN_PLAYERS,
                                        FDS__RUN_ERRORS,  FDS__RUN_BANK,      FDS__RUN_VALIDATION};
    task t = task_make("afds");
    fds_error err;
    t.params.keep_models = true;
    fit(&t, scratch_path("run"));
    for (size_t i = 0; i < 2 * COUNT(names); i++) {
        part_file f = take(scratch_path("run"), names[i / 2]);
        assert_int_equal(unlink(f.path), 0);
        f.data[f.size / 2] ^= 1;
        if (i % 2)
            scratch_write(f.path, f.data, f.size);
        f.data[f.size / 2] ^= 1;
        const char *left = in_run(scratch_path("run"), ".explainer.safetensors.1.tmp");
        scratch_write(left, "x", 1);
        if (strcmp(f.name, FDS__RUN_BANK) != 0) { /* which this answerer does not need */
            assert_true(open_status(scratch_path("run"), &err) != FDS_OK);
            expect_in(err.text, "run the same fit again");
        }
        assert_true(fit(&t, scratch_path("run")).was_resumed);
        part_file repaired = take(scratch_path("run"), f.name);
        assert_true(repaired.size == f.size && memcmp(repaired.data, f.data, f.size) == 0);
        assert_int_equal(access(left, F_OK), -1);
        expect_ok(open_status(scratch_path("run"), &err), &err);
        free(repaired.data);
        free(f.data);
    }
    task_free(&t);
}

/* Where the value of a key begins, after the first place of another text. */
static char *value_of(char *text, const char *after, const char *key) {
    char *at = strstr(text, after);
    assert_non_null(at);
    at = strstr(at, key);
    assert_non_null(at);
    return at + strlen(key);
}

static void count_warnings(void *user, fds_log_level level, const char *text) {
    if (level == FDS_LOG_WARNING && strstr(text, FDS__RUN_JSON))
        ++*(unsigned *)user;
}

/* One bit of a player's name, of a seed, of a result: the record still reads well, and says what
 * was not so. */
static void a_flipped_bit_of_the_record_is_told_and_repaired(void **state) {
    (void)state;
    static const struct {
        const char *after, *key;
    } places[] = {{"\"players\"", "\"name\": \""},
                  {"\"utility\"", "\"seed\": "},
                  {"\"coalitions\"", "\"seed\": "},
                  {"\"results\"", "\"explained\": 0."}};
    task t = task_make("afds");
    unsigned warnings = 0;
    fds_error err;
    fit(&t, scratch_path("whole"));
    fit(&t, scratch_path("run"));
    t.events = (fds_events){.log = count_warnings, .user = &warnings};
    for (size_t i = 0; i < COUNT(places); i++) {
        part_file f = take(scratch_path("run"), FDS__RUN_JSON);
        f.data = realloc(f.data, f.size + 1);
        f.data[f.size] = 0;
        *value_of(f.data, places[i].after, places[i].key) ^= 1;
        put_back(&f);
        expect_failure(open_status(scratch_path("run"), &err), FDS_ERR_CORRUPT, &err,
                       "run.json is damaged");
        expect_in(err.text, "run the same fit again");
        assert_true(fit(&t, scratch_path("run")).was_resumed);
        assert_int_equal(warnings, i + 1);
        expect_ok(open_status(scratch_path("run"), &err), &err);
        expect_same_record(scratch_path("run"), scratch_path("whole"));
    }
    task_free(&t);
}

/* What is left tells that it was a run. */
static void a_record_that_is_torn_or_lost_is_written_again(void **state) {
    (void)state;
    task t = task_make("afds");
    fds_error err;
    fit(&t, scratch_path("whole"));
    fit(&t, scratch_path("run"));
    for (int i = 0; i < 3; i++) {
        part_file f = take(scratch_path("run"), FDS__RUN_JSON);
        if (i == 0)
            assert_int_equal(unlink(f.path), 0);
        else
            scratch_write(f.path, f.data, i == 1 ? 0 : f.size / 2);
        free(f.data);
        assert_true(open_status(scratch_path("run"), &err) != FDS_OK);
        fit(&t, scratch_path("run"));
        expect_ok(open_status(scratch_path("run"), &err), &err);
        expect_same_record(scratch_path("run"), scratch_path("whole"));
    }
    task_free(&t);
}

static bool stop_at_ten(void *user, const fds_progress *progress) {
    (void)progress;
    return ++*(unsigned *)user == 10;
}

static void a_run_that_is_not_finished_is_refused(void **state) {
    (void)state;
    task t = task_make("afds");
    unsigned calls = 0;
    fds_error err;
    t.events = (fds_events){.progress = stop_at_ten, .user = &calls};
    assert_int_equal(try_fit(&t, scratch_path("run"), NULL, &err), FDS_ERR_CANCELLED);
    expect_failure(open_status(scratch_path("run"), &err), FDS_ERR_USAGE, &err, "interrupted");
    expect_in(err.text, "run.json");
    fit(&t, scratch_path("run"));
    expect_ok(open_status(scratch_path("run"), &err), &err);
    task_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(missing_files_are_named),
        IN_SCRATCH(torn_files_are_named),
        IN_SCRATCH(wrong_bytes_are_found),
        IN_SCRATCH(wrong_members_of_the_record_are_refused),
        IN_SCRATCH(a_forged_file_is_found_by_its_sha256),
        IN_SCRATCH(parts_of_other_runs_are_refused),
        IN_SCRATCH(a_bank_that_is_damaged_is_named),
        IN_SCRATCH(the_same_fit_repairs_a_run_to_the_bit),
        IN_SCRATCH(a_flipped_bit_of_the_record_is_told_and_repaired),
        IN_SCRATCH(a_record_that_is_torn_or_lost_is_written_again),
        IN_SCRATCH(a_run_that_is_not_finished_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
