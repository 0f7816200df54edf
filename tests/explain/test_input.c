/* SPDX-License-Identifier: Apache-2.0
 * What a run is asked about: pictures, without any data; samples of its own data, wherever the
 * question is asked; samples of other data, whose labels are the run's by name. */
#include "fixture.h"

#include <fcntl.h>

/* ---- fits and questions as a program outside makes them ---- */

/* The parameters of a job, given as name, text, name, text, ..., NULL. */
static fds_params *params_of(const char *job, const char *const *pairs) {
    fds_params *params = fds_params_create(job);
    fds_error err;
    assert_non_null(params);
    for (; pairs && *pairs; pairs += 2)
        expect_ok(fds_params_set(params, pairs[0], pairs[1], &err), &err);
    return params;
}

static void fit_run(const char *dir, const char *const *pairs) {
    fds_params *params = params_of("fit", pairs);
    fds_problem *problem = NULL;
    fds_error err;
    params->coalitions = 60;
    params->inputs = 20;
    params->epochs = 2;
    params->method = "afds";
    params->players = "16";
    params->model = "fc:classes";
    params->explainer = LINEAR;
    params->explainer_epochs = 2;
    params->threads = 1;
    expect_ok(fds_problem_open(params, NULL, &problem, &err), &err);
    expect_ok(fds_fit(dir, problem, params, NULL, NULL, &err), &err);
    fds_problem_free(problem);
    fds_params_free(params);
}

static fds_result *explain(fds_run *run, const fds_input *input, const char *target) {
    const char *const pairs[] = {"target", target, NULL};
    fds_params *params = params_of("explain", pairs);
    fds_result *result = NULL;
    fds_error err;
    expect_ok(fds_run_explain(run, input, params, NULL, &result, &err), &err);
    fds_params_free(params);
    return result;
}

static fds_status try_index(const fds_run *run, const char *const *pairs, fds_input **input,
                            fds_error *err) {
    fds_params *params = params_of("explain", pairs);
    fds_status status = fds_input_open(run, params, NULL, input, err);
    fds_params_free(params);
    return status;
}

/* Asks about samples 0 to 9, whose classes are x, y and z in turn. */
static void expect_answers(const fds_run *run, const char *const *pairs) {
    fds_input *input = NULL;
    fds_error err;
    expect_ok(try_index(run, pairs, &input, &err), &err);
    assert_int_equal(fds_input_count(input), ASKED);
    fds_result *result = explain((fds_run *)(uintptr_t)run, input, "true");
    for (size_t i = 0; i < ASKED; i++) {
        const char name[] = {"xyz"[i % CLASSES], 0};
        assert_string_equal(fds_result_truth(result, i), name);
        assert_string_equal(fds_result_label(result, i), name);
    }
    fds_result_free(result);
    fds_input_free(input);
}

/* ---- another working directory ---- */

static int home;

static void enter(const char *dir) {
    if (!home)
        home = open(".", O_RDONLY | O_DIRECTORY);
    assert_true(home > 0);
    assert_int_equal(chdir(dir), 0);
}

static int leave(void **state) { return (home ? fchdir(home) : 0) + scratch_teardown(state); }

#define ELSEWHERE(test) cmocka_unit_test_setup_teardown(test, scratch_setup, leave)

static void write_csv(const char *path) {
    FILE *file = fopen(path, "w");
    fds_rng rng = fds_rng_make(1, 3000, 0, 0);
    assert_non_null(file);
    fprintf(file, "kind,a,b,c,d,owner\n");
    for (size_t i = 0; i < SAMPLES; i++) {
        float x[FEATURES];
        uint16_t label;
        cloud(&rng, i, x, &label);
        fprintf(file, "%c,%.9g,%.9g,%.9g,%.9g,who%zu\n", 'x' + label, (double)x[0], (double)x[1],
                (double)x[2], (double)x[3], i % 4);
    }
    assert_int_equal(fclose(file), 0);
}

/* Path and columns are the run's to remember, not the asker's. */
static void a_run_finds_its_data_from_elsewhere(void **state) {
    (void)state;
    static const char *const data[] = {"data",     "table.csv", "label", "kind",
                                       "provider", "owner",     NULL};
    static const char *const asked[] = {"index", "0..9", NULL};
    fds_run *run = NULL;
    fds_error err;
    enter(scratch);
    write_csv("table.csv");
    fit_run("run", data);
    enter("/");
    expect_ok(fds_run_open(scratch_path("run"), NULL, &run, &err), &err);
    expect_answers(run, asked);
    for (size_t i = 0; i < PLAYERS; i++) {
        assert_non_null(fds__run_player_provider(run, i));
        expect_in(fds__run_player_provider(run, i), "who");
    }
    fds_run_free(run);
}

static void data_that_has_moved_is_asked_for(void **state) {
    (void)state;
    static const char *const data[] = {"data",     "table.csv", "label", "kind",
                                       "provider", "owner",     NULL};
    static const char *const asked[] = {"index", "0..9", NULL};
    static const char *const told[] = {"index", "0..9", "data", "moved.csv", NULL};
    fds_run *run = NULL;
    fds_input *input = NULL;
    fds_error err;
    enter(scratch);
    write_csv("table.csv");
    fit_run("run", data);
    expect_ok(fds_run_open("run", NULL, &run, &err), &err);
    assert_int_equal(rename("table.csv", "moved.csv"), 0);
    expect_failure(try_index(run, asked, &input, &err), FDS_ERR_NOT_FOUND, &err, "`data`");
    expect_in(err.text, "table.csv");
    expect_answers(run, told);
    fds_run_free(run);
}

/* A .npy file of count rows of numbers. */
static void write_npy(const char *path, const char *type, size_t rows, size_t columns,
                      const void *values, size_t size) {
    char header[128], shape[40];
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    snprintf(shape, sizeof shape, columns ? "(%zu, %zu)" : "(%zu,)", rows, columns);
    snprintf(header, sizeof header,
             "%c%s%c%c%c%c{'descr': '%s', 'fortran_order': False, 'shape': %s}", 0x93, "NUMPY", 1,
             'v', 118, 'v', type, shape);
    header[7] = header[9] = 0;
    size_t used = strlen(header + 10) + 10;
    memset(header + used, ' ', sizeof header - used);
    header[127] = '\n';
    assert_int_equal(fwrite(header, 1, sizeof header, file), sizeof header);
    assert_int_equal(fwrite(values, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The file of labels has a name of its own, relative to where the fit was made. */
static void a_run_finds_its_labels_from_elsewhere(void **state) {
    (void)state;
    static const char *const data[] = {"data", "values.npy", "labels", "truth.npy", NULL};
    static const char *const asked[] = {"index", "5", NULL};
    static float values[SAMPLES * FEATURES];
    int64_t labels[SAMPLES];
    fds_rng rng = fds_rng_make(1, 3000, 0, 0);
    fds_run *run = NULL;
    fds_input *input = NULL;
    fds_error err;
    for (size_t i = 0; i < SAMPLES; i++) {
        uint16_t label;
        cloud(&rng, i, values + i * FEATURES, &label);
        labels[i] = label;
    }
    enter(scratch);
    write_npy("values.npy", "<f4", SAMPLES, FEATURES, values, sizeof values);
    write_npy("truth.npy", "<i8", SAMPLES, 0, labels, sizeof labels);
    fit_run("run", data);
    enter("/");
    expect_ok(fds_run_open(scratch_path("run"), NULL, &run, &err), &err);
    expect_ok(try_index(run, asked, &input, &err), &err);
    fds_input_free(input);
    fds_run_free(run);
}

/* ---- pictures ---- */

enum { SIDE = 4 };

static void write_picture(const char *path, size_t number) {
    uint8_t pixels[SIDE * SIDE];
    const fds__picture picture = {SIDE, SIDE, 1, pixels};
    fds_error err;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)((number * 11 + i * 15 + number % CLASSES * 40) % 250);
    expect_ok(fds__png_write(&picture, path, &err), &err);
}

/* A picture of another size is refused, or scaled if that is asked for. */
static void scale_picture(const fds_run *run) {
    static const char *const paths[] = {"large.png"};
    uint8_t pixels[4 * SIDE * SIDE] = {0};
    const fds__picture picture = {2 * SIDE, 2 * SIDE, 1, pixels};
    fds_params *params = fds_params_create("explain");
    fds_input *input = NULL;
    fds_error err;
    expect_ok(fds__png_write(&picture, paths[0], &err), &err);
    expect_failure(fds_input_pictures(run, paths, 1, params, &input, &err), FDS_ERR_SHAPE, &err,
                   "large.png: 8 x 8 pixels");
    expect_ok(fds_params_set(params, "resize", "true", &err), &err);
    expect_ok(fds_input_pictures(run, paths, 1, params, &input, &err), &err);
    fds_input_free(input);
    fds_params_free(params);
}

/* No data is opened for them: there need not be any. */
static void pictures_are_explained_without_data(void **state) {
    (void)state;
    static const char *const data[] = {"data", "pictures", NULL};
    static const char *const asked[] = {"index", "0", NULL};
    static const char *const paths[] = {"a.png", "b.png"};
    fds_run *run = NULL;
    fds_input *input = NULL;
    fds_error err;
    enter(scratch);
    assert_int_equal(mkdir("pictures", 0777), 0);
    for (size_t i = 0; i < SAMPLES; i++) {
        char path[64];
        snprintf(path, sizeof path, "pictures/%c", (char)('x' + i % CLASSES));
        if (i < CLASSES)
            assert_int_equal(mkdir(path, 0777), 0);
        snprintf(path, sizeof path, "pictures/%c/%02zu.png", (char)('x' + i % CLASSES), i);
        write_picture(path, i);
    }
    write_picture(paths[0], 3);
    write_picture(paths[1], 400);
    fit_run("run", data);
    remove_run("pictures");
    expect_ok(fds_run_open("run", NULL, &run, &err), &err);
    expect_ok(fds_input_pictures(run, paths, COUNT(paths), NULL, &input, &err), &err);
    fds_result *result = explain(run, input, "predicted");
    assert_int_equal(fds_result_predictions(result), COUNT(paths));
    for (size_t k = 0; k < COUNT(paths); k++) {
        double sum = 0;
        assert_string_equal(fds_result_input(result, k), paths[k]);
        assert_null(fds_result_truth(result, k));
        for (size_t i = 0; i < PLAYERS; i++)
            sum += fds_result_value(result, k, i);
        assert_true(fabs(sum - (fds_result_full(result, k) - fds_result_empty(result, k))) < 1e-12);
    }
    expect_ok(fds_run_draw(run, input, result, 3, "figure.png", &err), &err);
    fds_result_free(result);
    fds_input_free(input);
    scale_picture(run);
    expect_failure(try_index(run, asked, &input, &err), FDS_ERR_NOT_FOUND, &err, "pictures");
    fds_run_free(run);
}

/* ---- other data ---- */

/* The samples of ds with classes of the given names, numbered so that each keeps its name. */
static fds_dataset *renumbered(const fds_dataset *ds, const char *const *names, uint32_t classes) {
    float *values = need(ds->count * FEATURES, sizeof *values);
    uint16_t *labels = need(ds->count, sizeof *labels);
    fds_dataset *out = NULL;
    fds_error err;
    for (size_t i = 0; i < ds->count; i++) {
        fds_dataset_sample(ds, i, values + i * FEATURES);
        const char *name = fds_dataset_class_name(ds, ds->labels[i]);
        while (labels[i] < classes - 1 && strcmp(names[labels[i]], name) != 0)
            labels[i]++;
    }
    const fds_arrays arrays = {.count = ds->count,
                               .shape = {FEATURES, 1, 1},
                               .floats = values,
                               .labels = labels,
                               .classes = classes,
                               .class_names = names};
    expect_ok(fds_dataset_create(&arrays, &out, &err), &err);
    free(values);
    free(labels);
    return out;
}

static fds_result *ask_samples(fds_run *run, const fds_dataset *ds) {
    fds_input *input = NULL;
    fds_error err;
    expect_ok(fds_input_samples(run, ds, NULL, ASKED, &input, &err), &err);
    fds_result *result = explain(run, input, "true");
    fds_input_free(input);
    return result;
}

/* Values for the true label are those of the class of that name, whatever its number. */
static void labels_are_taken_by_name(void **state) {
    (void)state;
    static const char *const turned[] = {"class z", "class x", "class w", "class y"};
    task t = task_providers("afds");
    t.params.adjust = "none";
    t.params.coalitions = 20;
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    fds_dataset *other = renumbered(t.train, turned, COUNT(turned));
    assert_int_not_equal(other->labels[0], t.train->labels[0]);
    fds_result *own = ask_samples(run, t.train), *asked = ask_samples(run, other);
    for (size_t k = 0; k < ASKED; k++) {
        assert_string_equal(fds_result_truth(asked, k), fds_result_truth(own, k));
        assert_string_equal(fds_result_label(asked, k),
                            fds_dataset_class_name(other, other->labels[k]));
        for (size_t i = 0; i < fds_result_players(own); i++)
            assert_true(fds_result_value(asked, k, i) == fds_result_value(own, k, i));
    }
    fds_result_free(own);
    fds_result_free(asked);
    fds_dataset_free(other);
    fds_run_free(run);
    task_free(&t);
}

static void classes_that_the_run_does_not_have_are_refused(void **state) {
    (void)state;
    static const char *const names[] = {"class x", "class y", "class q"};
    task t = task_providers("afds");
    const uint32_t known[] = {0, 1, 3}, unknown[] = {0, 2};
    fds_input *input = NULL;
    fds_error err;
    t.params.adjust = "none";
    t.params.coalitions = 20;
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    fds_dataset *other = renumbered(t.train, names, COUNT(names));
    expect_failure(fds_input_samples(run, other, unknown, COUNT(unknown), &input, &err),
                   FDS_ERR_USAGE, &err, "sample 2 has the class \"class q\"");
    expect_ok(fds_input_samples(run, other, known, COUNT(known), &input, &err), &err);
    fds_input_free(input);
    fds_dataset_free(other);
    fds_run_free(run);
    task_free(&t);
}

/* Answers do not depend on which inputs are asked about together. */
static void a_part_is_answered_as_the_whole(void **state) {
    (void)state;
    enum { FIRST = 3, COUNT_OF_PART = 4 };
    task t = task_providers("afds");
    fds_input *input = NULL, *part = NULL;
    fds_error err;
    t.params.adjust = "none";
    t.params.coalitions = 20;
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    expect_ok(fds_input_samples(run, t.train, NULL, ASKED, &input, &err), &err);
    expect_ok(fds_input_part(input, FIRST, COUNT_OF_PART, &part, &err), &err);
    fds_result *whole = explain(run, input, "true"), *some = explain(run, part, "true");
    assert_int_equal(fds_result_predictions(some), COUNT_OF_PART);
    for (size_t k = 0; k < COUNT_OF_PART; k++) {
        assert_string_equal(fds_result_input(some, k), fds_result_input(whole, FIRST + k));
        assert_string_equal(fds_result_truth(some, k), fds_result_truth(whole, FIRST + k));
        for (size_t i = 0; i < fds_result_players(whole); i++)
            assert_true(fabs(fds_result_value(some, k, i) - fds_result_value(whole, FIRST + k, i)) <
                        1e-6);
    }
    fds_input_free(part);
    part = NULL;
    expect_failure(fds_input_part(input, ASKED - 1, 2, &part, &err), FDS_ERR_USAGE, &err,
                   "there are 10");
    expect_failure(fds_input_part(input, 0, 0, &part, &err), FDS_ERR_USAGE, &err, "there are");
    expect_failure(fds_input_part(input, SIZE_MAX, 2, &part, &err), FDS_ERR_USAGE, &err, "there");
    fds_result_free(whole);
    fds_result_free(some);
    fds_input_free(input);
    fds_run_free(run);
    task_free(&t);
}

/* ---- batch by batch ---- */

typedef struct {
    const fds_result *whole;
    size_t done, calls, reported;
    bool is_full; /* takes no more */
} batches;

static fds_status take(void *user, fds_result *part, fds_error *err) {
    batches *b = user;
    size_t n = fds_result_players(part), count = fds_result_predictions(part);
    assert_memory_equal(part->values, b->whole->values + b->done * n, n * count * sizeof(double));
    assert_memory_equal(part->errors, b->whole->errors + b->done * n, n * count * sizeof(double));
    assert_string_equal(fds_result_input(part, 0), fds_result_input(b->whole, b->done));
    b->done += count;
    b->calls++;
    fds_result_free(part);
    return b->is_full ? fds__fail(err, FDS_ERR_IO, "full") : FDS_OK;
}

static bool count_inputs(void *user, const fds_progress *progress) {
    batches *b = user;
    assert_int_equal(progress->total, SAMPLES);
    assert_true(progress->done >= b->reported && progress->done <= SAMPLES);
    b->reported = progress->done;
    return false;
}

static void answers_come_in_batches_with_the_same_bits(void **state) {
    (void)state;
    task t = task_providers("afds");
    fds_input *input = NULL;
    fds_error err;
    t.params.adjust = "none";
    t.params.coalitions = 20;
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    expect_ok(fds_input_samples(run, t.train, NULL, SAMPLES, &input, &err), &err);
    fds_result *whole = explain(run, input, "predicted");
    batches b = {.whole = whole}, full = {.whole = whole, .is_full = true};
    const fds_events events = {.progress = count_inputs, .user = &b};
    expect_ok(fds_run_explain_each(run, input, NULL, take, &b, &events, &err), &err);
    assert_int_equal(b.done, SAMPLES);
    assert_int_equal(b.reported, SAMPLES);
    assert_true(b.calls > 1);
    expect_failure(fds_run_explain_each(run, input, NULL, take, &full, NULL, &err), FDS_ERR_IO,
                   &err, "full");
    assert_int_equal(full.calls, 1);
    fds_result_free(whole);
    fds_input_free(input);
    fds_run_free(run);
    task_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ELSEWHERE(a_run_finds_its_data_from_elsewhere),
        ELSEWHERE(data_that_has_moved_is_asked_for),
        ELSEWHERE(a_run_finds_its_labels_from_elsewhere),
        ELSEWHERE(pictures_are_explained_without_data),
        IN_SCRATCH(labels_are_taken_by_name),
        IN_SCRATCH(classes_that_the_run_does_not_have_are_refused),
        IN_SCRATCH(a_part_is_answered_as_the_whole),
        IN_SCRATCH(answers_come_in_batches_with_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
