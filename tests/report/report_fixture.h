/* SPDX-License-Identifier: Apache-2.0
 * Hand-made case.json files: one method and one control by one utility function, whose losses are
 * known sample by sample. */
#ifndef FDS_TEST_REPORT_FIXTURE_H
#define FDS_TEST_REPORT_FIXTURE_H

#include "../base/scratch.h"

#include "report/report.h"

#include <math.h>

enum { SAMPLES = 40, PARTS = 2 }; /* test samples of a seed, at most; shares */

/* Losses of a seed's test samples, a function of its numbers alone. */
static inline double sample_loss(size_t seed, size_t share, size_t sample) {
    fds_rng rng = fds_rng_make(seed, 99, share, sample);
    return 10 * fds_rng_unit(&rng) + (double)seed;
}

/* How many test samples a seed has. */
static inline size_t sample_count(size_t seed) { return SAMPLES - 3 * seed; }

static inline void naive(const double *x, size_t count, double *mean, double *sd) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        sum += x[i];
    *mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (x[i] - *mean) * (x[i] - *mean);
    *sd = count > 1 ? sqrt(squares / (double)(count - 1)) : NAN;
}

static inline json_t *fixture_losses(size_t seed) {
    json_t *means = json_array(), *sds = json_array(), *samples = json_array();
    for (size_t share = 0; share < PARTS; share++) {
        double x[SAMPLES], mean, sd;
        for (size_t i = 0; i < sample_count(seed); i++)
            x[i] = sample_loss(seed, share, i);
        naive(x, sample_count(seed), &mean, &sd);
        json_array_append_new(means, json_real(mean));
        json_array_append_new(sds, json_real(sd));
        json_array_append_new(samples, report_numbers(x, sample_count(seed)));
    }
    return json_pack("[{s:s, s:s, s:s, s:i, s:o, s:o, s:o}]", "utility", "retrain:10", "removal",
                     "top", "set", "correct", "count", (int)sample_count(seed), "mean", means, "sd",
                     sds, "samples", samples);
}

/* Linear datamodeling scores: 1/4 or, of the method, 3/4, for all but the last sample, which has
 * none. */
static inline json_t *fixture_scores(size_t seed, double score) {
    json_t *samples = json_array();
    for (size_t i = 0; i + 1 < sample_count(seed); i++)
        json_array_append_new(samples, json_real(score));
    return json_pack("[{s:s, s:i, s:i, s:f, s:f, s:o}]", "utility", "retrain:10", "coalitions", 100,
                     "count", (int)sample_count(seed) - 1, "mean", score, "sd", 0.0, "samples",
                     samples);
}

static inline json_t *fixture_row(size_t seed, const char *method, const char *kind) {
    bool is_control = strcmp(kind, "control") == 0;
    return json_pack(
        "{s:s, s:s, s:s, s:b, s:s, s:o, s:o, s:o, s:o, s:{s:f, s:n, s:n, s:n}, s:{s:i, s:f, s:n, "
        "s:[f]}, s:{s:b, s:i}, s:i, s:{s:i, s:b}, s:{s:f, s:f, s:b}}",
        "method", method, "title", method, "kind", kind, "is_per_sample", 1, "utility",
        "retrain:10", "losses", fixture_losses(seed), "losses_other_seed", fixture_losses(seed),
        "lds", fixture_scores(seed, is_control ? 0.25 : 0.75), "lds_other_seeds", json_array(),
        "agreement", "correlation", 0.5 + 0.125 * (double)seed, "class_correlation",
        "relative_error", "efficiency_gap", "auc", "count", 1, "mean", 0.75, "sd", "samples", 0.75,
        "auc_terms", "is_equal", !is_control, "sub_models", 52, "sub_models", 100 + (int)seed,
        "permutations", "sampled", 40 + 20 * (int)seed, "has_converged", seed == 0, "timing",
        "prepare_s", 10.0 + (double)seed, "answer_ms", 0.5, "was_resumed", 0);
}

static inline json_t *fixture_case(const char *name, size_t seed) {
    json_t *json = json_pack(
        "{s:s, s:{s:s, s:i, s:s, s:i}, s:s, s:{s:s, s:s, s:i, s:i, s:i, s:i}, "
        "s:{s:i, s:s, s:i, s:f, s:i, s:[f, f]}, s:[{s:s, s:[{s:s, s:i, s:f, s:f}], s:o}], s:[o, "
        "o], "
        "s:[]}",
        "fds", FDS_VERSION, "machine", "processor", "Quick", "processors", 2, "instructions",
        "avx2", "threads", 2, "kind", "fds bench case", "data", "name", name, "source", name,
        "classes", 10, "players", 100, "tests", 40, "inputs", 300, "settings", "seed", (int)seed,
        "network", "lenet5", "truth", seed == 0 ? 800 : 0, "flipped", 0.1, "flipped_seeds",
        1 + (int)seed, "shares", 0.05, 0.5, "utilities", "utility", "retrain:10", "losses", "set",
        "correct", "count", (int)sample_count(seed), "mean", 0.5 + (double)seed, "sd", 0.25,
        "truth",
        seed == 0 ? json_pack("{s:i, s:f}", "coalitions", 800, "correlation", 0.75) : json_null(),
        "rows", fixture_row(seed, "afds", "ours"), fixture_row(seed, "random", "control"),
        "pictures");
    assert_non_null(json);
    return json;
}

/* Writes a case into a folder of the scratch; json is taken over. */
static inline void put_case(const char *folder, json_t *json) {
    char path[600];
    mkdir(scratch_path(folder), 0777);
    snprintf(path, sizeof path, "%s/case.json", scratch_path(folder));
    assert_int_equal(json_dump_file(json, path, 0), 0);
    json_decref(json);
}

/* The folders "a" and "b" with seeds 0 and 1 of mnist. */
static inline void put_two(void) {
    put_case("a", fixture_case("mnist", 0));
    put_case("b", fixture_case("mnist", 1));
}

/* Joins folders of the scratch. */
static inline fds_status join(const char *const *folders, size_t count, json_t **out,
                              fds_error *err) {
    char paths[8][512];
    const char *dirs[8] = {NULL};
    for (size_t i = 0; i < count; i++) {
        snprintf(paths[i], sizeof paths[i], "%s", scratch_path(folders[i]));
        dirs[i] = paths[i];
    }
    return report_join(dirs, count, "fds bench", out, err);
}

/* What a JSON pointer without escapes leads to. */
static inline json_t *at(const json_t *json, const char *path) {
    char copy[200], *rest = copy;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *key; (key = strsep(&rest, "/"));)
        json = json_is_array(json) ? json_array_get(json, strtoul(key, NULL, 10))
                                   : json_object_get(json, key);
    return (json_t *)(uintptr_t)json;
}

static inline double number(const json_t *json, const char *path) {
    if (!json_is_number(at(json, path)))
        fail_msg("%s is not a number", path);
    return json_number_value(at(json, path));
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

#endif
