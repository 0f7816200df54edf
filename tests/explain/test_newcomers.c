/* SPDX-License-Identifier: Apache-2.0
 * Players that a run has never seen: their values follow from their samples; files that lie and
 * questions that cannot be answered are refused. */
#include "explain/run_inside.h"
#include "fixture.h"

enum { RANK = 8 };

static void write_npy(const char *path, const char *type, const char *shape, const void *data,
                      size_t size) {
    char header[128];
    int used = snprintf(header + 10, sizeof header - 10,
                        "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    memset(header + 10 + used, ' ', sizeof header - 10 - (size_t)used);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    header[127] = '\n';
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(header, 1, sizeof header, file), sizeof header);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The samples of all players of a task as data whose providers, 10, 11, ..., are these players. */
static const char *write_copies(const task *t) {
    static float x[PLAYERS * FEATURES];
    static int64_t labels[PLAYERS], owners[PLAYERS];
    static char folder[500], path[600];
    char shape[32];
    fds_error err;
    snprintf(folder, sizeof folder, "%s", scratch_path("copies"));
    expect_ok(fds__mkdirs(folder, &err), &err);
    for (size_t i = 0; i < PLAYERS; i++) {
        fds_dataset_sample(t->train, i, x + i * FEATURES);
        labels[i] = t->train->labels[i];
        owners[i] = (int64_t)i + 10;
    }
    snprintf(shape, sizeof shape, "%d, %d", PLAYERS, FEATURES);
    snprintf(path, sizeof path, "%s/x.npy", folder);
    write_npy(path, "<f4", shape, x, sizeof x);
    snprintf(shape, sizeof shape, "%d,", PLAYERS);
    snprintf(path, sizeof path, "%s/y.npy", folder);
    write_npy(path, "<i8", shape, labels, sizeof labels);
    snprintf(path, sizeof path, "%s/provider.npy", folder);
    write_npy(path, "<i8", shape, owners, sizeof owners);
    return folder;
}

static task newcomer_task(void) {
    task t = task_make("afds");
    t.params.rank = "8";
    t.params.rank_from = 1;
    t.params.explainer_epochs = 60;
    t.params.explainer_lr = 0.02;
    return t;
}

static void copies_of_old_players_get_about_their_values(void **state) {
    (void)state;
    static answers old, copy;
    task t = newcomer_task();
    const char *folder = write_copies(&t);
    uint32_t asked[ASKED];
    double mean = 0;
    fds__new_players who;
    fds_error err;
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    for (uint32_t i = 0; i < ASKED; i++)
        asked[i] = PLAYERS + INPUTS + i;
    expect_ok(fds__run_open_new(run, folder, NULL, &who, &err), &err);
    assert_int_equal(who.count, PLAYERS);
    assert_string_equal(who.names[0], "10");
    const fds__answers to = places(&copy);
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, asked, ASKED, false, &old);
    expect_ok(fds__run_explain_new(run, &who, t.train, asked, ASKED, false, &to, &err), &err);
    for (size_t x = 0; x < ASKED; x++) {
        assert_int_equal(old.labels[x], copy.labels[x]);
        assert_true(old.full[x] == copy.full[x] && old.empty[x] == copy.empty[x]);
        mean +=
            fds__correlation(old.values + x * PLAYERS, copy.values + x * PLAYERS, NULL, PLAYERS) /
            ASKED;
        for (size_t i = 0; i < PLAYERS; i++)
            assert_true(copy.errors[x * PLAYERS + i] > 0);
    }
    print_message("# values of copies correlate with those of the players by %.3f\n", mean);
    assert_true(mean > 0.7);
    fds__new_players_free(&who);
    fds_run_free(run);
    task_free(&t);
}

static void data_without_providers_is_one_player(void **state) {
    (void)state;
    task t = newcomer_task();
    const char *folder = write_copies(&t);
    fds__new_players who;
    fds_error err;
    fit(&t, scratch_path("run"));
    assert_int_equal(remove(in_run(folder, "provider.npy")), 0);
    fds_run *run = open_run(scratch_path("run"));
    expect_ok(fds__run_open_new(run, folder, NULL, &who, &err), &err);
    assert_int_equal(who.count, 1);
    assert_int_equal(who.sizes[0], PLAYERS);
    fds__new_players_free(&who);
    fds_run_free(run);
    task_free(&t);
}

static void data_that_has_changed_is_read_again(void **state) {
    (void)state;
    task t = newcomer_task();
    const char *folder = write_copies(&t);
    const fds__new_players *who;
    fds_params asked = fds__params_default(FDS__JOB_EXPLAIN);
    fds_error err;
    asked.new_player = folder;
    t.params.explainer_epochs = 2;
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    expect_ok(run_new_players(run, &asked, NULL, &who, &err), &err);
    assert_int_equal(who->count, PLAYERS);
    const double *before = who->h;
    expect_ok(run_new_players(run, &asked, NULL, &who, &err), &err);
    assert_ptr_equal(who->h, before); /* nothing has changed */
    assert_int_equal(remove(in_run(folder, "provider.npy")), 0);
    expect_ok(run_new_players(run, &asked, NULL, &who, &err), &err);
    assert_int_equal(who->count, 1);
    int64_t labels[PLAYERS] = {1};
    uint32_t label = who->labels[0];
    for (size_t i = 0; i < PLAYERS; i++)
        labels[i] = label == 1 ? 2 : 1;
    write_npy(in_run(folder, "y.npy"), "<i8", "16,", labels, sizeof labels);
    expect_ok(run_new_players(run, &asked, NULL, &who, &err), &err);
    assert_int_equal(who->labels[0], labels[0]);
    fds_run_free(run);
    task_free(&t);
}

static void questions_without_an_answer_are_refused(void **state) {
    (void)state;
    task t = newcomer_task();
    const char *folder = write_copies(&t);
    const fds__new_players *who;
    fds__new_players none;
    fds_error err = {0};
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    fds_params asked = fds__params_default(FDS__JOB_EXPLAIN);
    asked.new_player = folder;
    asked.answer_by = 1;
    expect_failure(run_check_new(run, &asked, &err), FDS_ERR_USAGE, &err, "`by` bank");
    asked.answer_by = 0;
    asked.new_player = scratch_path("none");
    expect_failure(run_new_players(run, &asked, NULL, &who, &err), FDS_ERR_NOT_FOUND, &err, "none");
    asked.new_player = folder;
    const int64_t strange[PLAYERS] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8};
    write_npy(in_run(folder, "y.npy"), "<i8", "16,", strange, sizeof strange);
    expect_failure(run_new_players(run, &asked, NULL, &who, &err), FDS_ERR_USAGE, &err,
                   "class \"7\"");
    fds_run_free(run);
    t.params.rank_from = 0;
    fit(&t, scratch_path("plain"));
    run = open_run(scratch_path("plain"));
    expect_failure(fds__run_open_new(run, folder, NULL, &none, &err), FDS_ERR_USAGE, &err,
                   "`rank_from` samples");
    fds_run_free(run);
    fds__fit_settings s;
    t.params.rank = "full";
    t.params.rank_from = 1;
    expect_failure(settle(&t, &s, &err), FDS_ERR_USAGE, &err, "`rank`");
    task_free(&t);
}

static fds_status try_load(const char *path, fds_error *err) {
    fds__newcomers *c = NULL;
    *err = (fds_error){0};
    fds_status status = fds__newcomers_load(path, PLAYERS, RANK, CLASSES, FEATURES, &c, err);
    fds__newcomers_free(c);
    return status;
}

static void files_that_lie_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } lies[] = {{"fds-newcomers 1", "fds-newcomers 2", "format"},
                {"\"players\":\"16\"", "\"players\":\"17\"", "players"},
                {"\"scale\":\"", "\"scale\":\"-", "scale"},
                {"\"power\"", "\"pawer\"", "power"},
                {"[16,8]", "[8,16]", "map"},
                {"\"errors\"", "\"errers\"", "errors"}};
    task t = newcomer_task();
    size_t size;
    fds_error err;
    fit(&t, scratch_path("run"));
    char *good = scratch_read(in_run(scratch_path("run"), FDS__RUN_NEWCOMERS), &size),
         *bad = need(size, 1);
    scratch_write(scratch_path("bad"), good, size);
    expect_ok(try_load(scratch_path("bad"), &err), &err);
    for (size_t i = 0; i < COUNT(lies); i++) {
        memcpy(bad, good, size);
        char *at = memmem(bad, size, lies[i].from, strlen(lies[i].from));
        assert_non_null(at);
        memcpy(at, lies[i].to, strlen(lies[i].to));
        scratch_write(scratch_path("bad"), bad, size);
        assert_true(try_load(scratch_path("bad"), &err) != FDS_OK);
        expect_in(err.text, scratch_path("bad"));
        expect_in(err.text, lies[i].words);
    }
    for (size_t part = 0; part < size; part += 1 + part / 8) {
        scratch_write(scratch_path("bad"), good, part);
        assert_int_equal(try_load(scratch_path("bad"), &err), FDS_ERR_FORMAT);
    }
    free(bad);
    scratch_write(in_run(scratch_path("run"), FDS__RUN_NEWCOMERS), good, size - 1);
    fds_run *run = NULL;
    expect_failure(fds__run_open(scratch_path("run"), 1, &run, &err), FDS_ERR_CORRUPT, &err,
                   FDS__RUN_NEWCOMERS);
    free(good);
    task_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(copies_of_old_players_get_about_their_values),
        IN_SCRATCH(data_without_providers_is_one_player),
        IN_SCRATCH(data_that_has_changed_is_read_again),
        IN_SCRATCH(questions_without_an_answer_are_refused),
        IN_SCRATCH(files_that_lie_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
