/* SPDX-License-Identifier: Apache-2.0
 * What the tests of fits and runs share: a small task with all that a fit needs, made anew or read
 * from a file that names providers, and ways to look at the folder of a run. */
#ifndef FDS_TEST_EXPLAIN_FIXTURE_H
#define FDS_TEST_EXPLAIN_FIXTURE_H

#include "../base/scratch.h"
#include "explain/learn.h"
#include "explain/run.h"

#include <math.h>

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

enum { PLAYERS = 16, GROUPS = 6, INPUTS = 60, ASKED = 10, FEATURES = 4, CLASSES = 3 };
enum { SAMPLES = PLAYERS + INPUTS + ASKED }; /* in this order */

static inline void expect_failure(fds_status got, fds_status wanted, const fds_error *err,
                                  const char *part) {
    if (got != wanted || err->status != wanted)
        fail_msg("%s, not %s: %s", fds_status_name(got), fds_status_name(wanted), err->text);
    expect_in(err->text, part);
}

/* A failure that was armed is told as what it is. */
static inline void expect_told(fds__fault_kind kind, uint64_t nth, fds_status status,
                               const fds_error *err) {
    bool is_told = kind == FDS__FAULT_ALLOC ? status == FDS_ERR_NOMEM : status == FDS_ERR_IO;
    if (kind ==
        FDS__FAULT_ALLOC) /* without memory jansson's reader may find mistakes in the text */
        is_told |= status == FDS_ERR_FORMAT;
    if (!is_told || err->status != status || !err->text[0])
        fail_msg("%s %llu fails: %s: %s", kind == FDS__FAULT_IO ? "file operation" : "allocation",
                 (unsigned long long)nth, fds_status_name(status), err->text);
}

/* ---- what is fitted ---- */

typedef struct {
    fds_dataset *train;
    fds_players *players;
    fds_groups *groups;
    uint32_t inputs[INPUTS];
    size_t input_count;
    fds_params params;
    fds_events events;
} task;

/* Three clouds of points that overlap, so that every player matters a little. */
static inline void cloud(fds_rng *rng, size_t i, float *x, uint16_t *label) {
    *label = (uint16_t)(i % CLASSES);
    for (size_t f = 0; f < FEATURES; f++)
        x[f] = (float)((f == *label ? 1.5 : 0) + fds_rng_normal(rng));
}

static inline fds_dataset *clouds(size_t count, uint64_t seed) {
    float *values = need(count * FEATURES, sizeof *values);
    uint16_t *labels = need(count, sizeof *labels);
    fds_rng rng = fds_rng_make(seed, 3000, 0, 0);
    fds_dataset *ds = NULL;
    fds_error err;
    for (size_t i = 0; i < count; i++)
        cloud(&rng, i, values + i * FEATURES, &labels[i]);
    expect_ok(fds__dataset_create(count, (fds_shape){FEATURES, 1, 1}, NULL, values, labels, CLASSES,
                                  NULL, &ds, &err),
              &err);
    free(values);
    free(labels);
    return ds;
}

/* Places in the choices of the parameter explainer. */
enum { AUTO, PROBE, BANK, MLP, CNN, RESNET18, RESNET50, LINEAR };
static const char *const fit_methods[] = {"fds", "afds", "gfds", "gfds+", NULL};

/* Settings of a method for which a fit takes a fraction of a second. */
static inline fds_params quick(const char *method) {
    fds_params p;
    fds_error err;
    expect_ok(fds__fit_default(method, &p, &err), &err);
    p.epochs = 4;
    p.model = "fc:classes";
    p.lr = 1e-3;
    p.coalitions = 60;
    p.explainer = LINEAR;
    p.explainer_epochs = 4;
    p.explainer_batch = 16;
    p.seed = 3;
    p.threads = 1;
    return p;
}

static inline void task_players(task *t) {
    uint32_t group_of[PLAYERS];
    fds_error err;
    expect_ok(fds_players_points(t->train, NULL, PLAYERS, &t->players, &err), &err);
    for (uint32_t i = 0; i < PLAYERS; i++)
        group_of[i] = i % GROUPS;
    expect_ok(fds_groups_create(group_of, PLAYERS, NULL, &t->groups, &err), &err);
}

static inline task task_make(const char *method) {
    task t = {.input_count = INPUTS, .params = quick(method)};
    t.train = clouds(SAMPLES, 1);
    task_players(&t);
    for (uint32_t i = 0; i < INPUTS; i++)
        t.inputs[i] = PLAYERS + i;
    return t;
}

/* The same points from a file that says whose they are: providers red, green and blue in turn, who
 * are the players. Needs the scratch folder. */
static inline task task_providers(const char *method) {
    static const char *const names[] = {"red", "green", "blue", "grey", "pink"};
    task t = {.input_count = INPUTS, .params = quick(method)};
    FILE *file = fopen(scratch_path("providers.csv"), "w");
    fds_rng rng = fds_rng_make(1, 3000, 0, 0);
    fds_dataset *none = NULL;
    fds_error err;
    assert_non_null(file);
    fprintf(file, "a,b,c,d,label,provider\n");
    for (size_t i = 0; i < SAMPLES; i++) {
        float x[FEATURES];
        uint16_t label;
        cloud(&rng, i, x, &label);
        fprintf(file, "%.9g,%.9g,%.9g,%.9g,class %c,%s\n", (double)x[0], (double)x[1], (double)x[2],
                (double)x[3], 'x' + label, names[i % COUNT(names)]);
    }
    assert_int_equal(fclose(file), 0);
    expect_ok(fds__data_open(scratch_path("providers.csv"), NULL, NULL, &t.train, &none, &err),
              &err);
    assert_null(none);
    expect_ok(fds_players_providers(t.train, NULL, PLAYERS, &t.players, &err), &err);
    for (uint32_t i = 0; i < INPUTS; i++)
        t.inputs[i] = PLAYERS + i;
    return t;
}

static inline void task_free(task *t) {
    fds_groups_free(t->groups);
    fds_players_free(t->players);
    fds_dataset_free(t->train);
}

/* The problem of a task, until the next call. Its memory is not the library's. */
static inline const fds_problem *problem_of(const task *t) {
    static uint32_t labels[SAMPLES], samples[SAMPLES], inputs[INPUTS];
    static fds_problem p;
    bool is_owned[SAMPLES] = {false};
    memcpy(inputs, t->inputs, sizeof inputs);
    p = (fds_problem){.train = t->train,
                      .test = t->train,
                      .players = t->players,
                      .player_labels = labels,
                      .samples = samples,
                      .inputs = inputs,
                      .input_count = t->input_count,
                      .groups = t->groups};
    for (size_t i = 0; i < fds_players_count(t->players); i++) {
        const uint32_t *index;
        size_t counts[CLASSES] = {0}, count = fds_players_samples(t->players, i, &index);
        for (size_t s = 0; s < count; s++) {
            is_owned[index[s]] = true;
            counts[t->train->labels[index[s]] % CLASSES]++;
        }
        labels[i] = 0;
        for (uint32_t c = 1; c < CLASSES; c++)
            labels[i] = counts[c] > counts[labels[i]] ? c : labels[i];
    }
    for (uint32_t s = 0; s < SAMPLES; s++)
        if (is_owned[s])
            samples[p.sample_count++] = s;
    return &p;
}

static inline fds_status try_fit(const task *t, const char *dir, fds__fit_report *report,
                                 fds_error *err) {
    return fds__fit(dir, problem_of(t), &t->params, &t->events, report, err);
}

static inline fds_status settle(const task *t, fds__fit_settings *out, fds_error *err) {
    TRY(fds__fit_read(&t->params, problem_of(t), out, err));
    return fds__fit_settle(&t->params, problem_of(t), t->groups, out, err);
}

static inline fds__fit_settings settled(const task *t) {
    fds__fit_settings s;
    fds_error err;
    expect_ok(settle(t, &s, &err), &err);
    return s;
}

/* The utility of the inputs in their order, which order[] receives, as the fit has it. */
static inline fds_utility *utility_of(const task *t, uint32_t order[INPUTS]) {
    const fds__fit_settings s = settled(t);
    const fds__utility_params params = fds__fit_utility(&s);
    fds_utility *value = NULL;
    fds_error err;
    fds__fit_order(&s, t->inputs, t->input_count, order);
    expect_ok(fds__utility_create(&params, t->train, t->players, t->train, order, t->input_count, 1,
                                  &value, &err),
              &err);
    return value;
}

static inline fds__fit_report fit(const task *t, const char *dir) {
    fds__fit_report report;
    fds_error err;
    memset(&report, 0xa5, sizeof report);
    expect_ok(try_fit(t, dir, &report, &err), &err);
    return report;
}

static inline fds_run *open_run(const char *dir) {
    fds_run *run = NULL;
    fds_error err;
    expect_ok(fds__run_open(dir, 0, &run, &err), &err);
    return run;
}

/* ---- answers ---- */

enum { MOST = 64, MOST_PLAYERS = 20 };

typedef struct {
    uint32_t labels[MOST];
    float probs[MOST * CLASSES];
    double full[MOST], empty[MOST], values[MOST * MOST_PLAYERS], errors[MOST * MOST_PLAYERS];
} answers;

static inline fds__answers places(answers *a) {
    return (fds__answers){a->labels, a->probs, a->full, a->empty, a->values, a->errors, NULL};
}

static inline void ask(fds_run *run, fds__answerer by, const fds_dataset *ds, const uint32_t *index,
                       size_t count, bool is_given, answers *a) {
    const fds__answers to = places(a);
    fds_error err;
    expect_ok(fds__run_explain(run, by, ds, index, count, is_given, &to, &err), &err);
}

/* For predicted labels and for each given one, values add up to v(1) - v(0), to rounding. */
static inline void expect_efficient(const task *t, const char *dir, fds__answerer by) {
    static answers a;
    fds_run *run = open_run(dir);
    uint32_t asked[ASKED];
    size_t n = fds_players_count(t->players);
    for (uint32_t i = 0; i < ASKED; i++)
        asked[i] = PLAYERS + INPUTS + i;
    for (uint32_t given = 0; given <= CLASSES; given++) {
        for (size_t i = 0; i < ASKED; i++)
            a.labels[i] = given;
        ask(run, by, t->train, asked, ASKED, given < CLASSES, &a);
        for (size_t x = 0; x < ASKED; x++) {
            double sum = 0;
            for (size_t i = 0; i < n; i++) {
                sum += a.values[x * n + i];
                assert_true(isfinite(a.values[x * n + i]));
                assert_true(isfinite(a.errors[x * n + i]) && a.errors[x * n + i] >= 0);
            }
            if (fabs(sum - (a.full[x] - a.empty[x])) > 1e-12)
                fail_msg("input %zu: values sum to %.17g, not %.17g", x, sum,
                         a.full[x] - a.empty[x]);
        }
    }
    fds_run_free(run);
}

/* ---- stopping ---- */

/* Progress that asks a fit to stop at its stop_at-th call; 0: never. */
typedef struct {
    uint64_t calls, stop_at;
} stopper;

static inline bool stop(void *user, const fds_progress *progress) {
    stopper *s = user;
    assert_true(progress->done <= progress->total && progress->stage && progress->unit);
    return ++s->calls == s->stop_at;
}

/* ---- the folder of a run ---- */

/* A file of the run in the folder dir. */
static inline const char *in_run(const char *dir, const char *name) {
    static char paths[4][600];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof *paths, "%s/%s", dir, name);
    return path;
}

static inline void sha256_of(const char *path, char hex[65]) {
    size_t size;
    char *data = scratch_read(path, &size);
    fds_sha256_hex(data, size, hex);
    free(data);
}

static inline json_t *read_run(const char *dir) {
    json_t *json = json_load_file(in_run(dir, FDS__RUN_JSON), 0, NULL);
    assert_non_null(json);
    return json;
}

/* With the checksum of what it now says; frees json. */
static inline void write_run(const char *dir, json_t *json) {
    assert_true(fds__json_seal(json));
    assert_int_equal(json_dump_file(json, in_run(dir, FDS__RUN_JSON), 0), 0);
    json_decref(json);
}

/* Two run.json say the same but for times. */
static inline void expect_same_record(const char *dir, const char *other) {
    json_t *a = read_run(dir), *b = read_run(other);
    assert_int_equal(json_object_del(json_object_get(a, "results"), "seconds"), 0);
    assert_int_equal(json_object_del(json_object_get(b, "results"), "seconds"), 0);
    json_object_del(a, "checksum");
    json_object_del(b, "checksum");
    if (!json_equal(a, b)) {
        char *first = json_dumps(json_object_get(a, "results"), 0);
        char *second = json_dumps(json_object_get(b, "results"), 0);
        fail_msg("%s and %s differ: %s %s", dir, other, first, second);
    }
    json_decref(a);
    json_decref(b);
}

static inline void remove_run(const char *dir) {
    nftw(dir, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
