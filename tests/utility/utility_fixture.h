/* SPDX-License-Identifier: Apache-2.0
 * What the tests of utility functions share: digits, made-up samples, players, coalitions. */
#ifndef FDS_TEST_VALUE_FIXTURE_H
#define FDS_TEST_VALUE_FIXTURE_H

#include "../base/scratch.h"
#include "utility/utility.h"

#include <math.h>

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

static inline void expect_failure(fds_status got, fds_status wanted, const fds_error *err,
                                  const char *part) {
    if (got != wanted)
        fail_msg("%s, not %s: %s", fds_status_name(got), fds_status_name(wanted), err->text);
    expect_in(err->text, part);
}

/* ---- a game: who plays, with which data, for which inputs ---- */

typedef struct {
    fds_dataset *train, *test;
    fds_players *players;
    uint32_t inputs[64];
    size_t input_count;
} game;

static inline void game_free(game *g) {
    fds_players_free(g->players);
    fds_dataset_free(g->train);
    fds_dataset_free(g->test);
}

/* Digits of the MNIST sample, a player each, and inputs spread over its test part. */
static inline game game_digits(size_t players, size_t inputs) {
    game g = {.input_count = inputs};
    fds_error err;
    uint32_t index[128];
    char path[512];
    assert_non_null(getenv("FDS_TEST_DATA"));
    snprintf(path, sizeof path, "%s/mnist", getenv("FDS_TEST_DATA"));
    expect_ok(fds__data_open(path, NULL, NULL, &g.train, &g.test, &err), &err);
    expect_ok(fds_split_balanced(g.train, players, 5, index, &err), &err);
    expect_ok(fds_players_points(g.train, index, players, &g.players, &err), &err);
    for (size_t i = 0; i < inputs; i++)
        g.inputs[i] = (uint32_t)(7 * i % 200);
    return g;
}

/* Vectors of 3 small whole numbers, so that many distances are alike. */
static inline fds_dataset *vectors(size_t count, uint32_t classes, uint64_t seed) {
    float values[3 * 64];
    uint16_t labels[64];
    fds_dataset *ds = NULL;
    fds_error err;
    fds_rng rng = fds_rng_make(seed, 2000, 0, 0);
    for (size_t i = 0; i < 3 * count; i++)
        values[i] = (float)fds_rng_below(&rng, 3);
    for (size_t i = 0; i < count; i++)
        labels[i] = (uint16_t)fds_rng_below(&rng, classes);
    expect_ok(fds__dataset_create(count, (fds_shape){3, 1, 1}, NULL, values, labels, classes, NULL,
                                  &ds, &err),
              &err);
    return ds;
}

static inline game game_vectors(size_t players, size_t inputs, uint32_t classes, uint64_t seed) {
    game g = {.train = vectors(players, classes, seed),
              .test = vectors(inputs, classes, seed + 1),
              .input_count = inputs};
    fds_error err;
    expect_ok(fds_players_points(g.train, NULL, players, &g.players, &err), &err);
    for (size_t i = 0; i < inputs; i++)
        g.inputs[i] = (uint32_t)i;
    return g;
}

/* The same kind of vectors from a file that says whose they are: providers b, a, c in turn. Needs
 * the scratch folder. */
static inline game game_providers(size_t samples, size_t inputs, uint32_t classes, uint64_t seed) {
    game g = {.test = vectors(inputs, classes, seed + 1), .input_count = inputs};
    fds_error err;
    fds_rng rng = fds_rng_make(seed, 2001, 0, 0);
    FILE *file = fopen(scratch_path("providers.csv"), "w");
    assert_non_null(file);
    fprintf(file, "u,v,w,label,provider\n");
    for (size_t i = 0; i < samples; i++)
        fprintf(file, "%u,%u,%u,%zu,%c\n", (unsigned)fds_rng_below(&rng, 3),
                (unsigned)fds_rng_below(&rng, 3), (unsigned)fds_rng_below(&rng, 3), i % classes,
                "bac"[fds_rng_below(&rng, 3)]);
    fclose(file);
    fds_dataset *none = NULL;
    expect_ok(fds__data_open(scratch_path("providers.csv"), NULL, NULL, &g.train, &none, &err),
              &err);
    fds_dataset_free(none);
    expect_ok(fds_players_providers(g.train, NULL, samples, &g.players, &err), &err);
    for (size_t i = 0; i < inputs; i++)
        g.inputs[i] = (uint32_t)i;
    return g;
}

/* ---- utility functions ---- */

/* A small network, trained fast. */
static inline fds__utility_params small(const char *kind) {
    fds__utility_params p = fds__utility_params_default();
    p.kind = kind;
    p.network = "maxpool:4,fc:8,relu,fc:classes";
    p.train.lr = 1e-3f;
    p.train.seed = 9;
    return p;
}

/* The same for vectors. */
static inline fds__utility_params smaller(const char *kind) {
    fds__utility_params p = small(kind);
    p.network = "fc:5,relu,fc:classes";
    return p;
}

static inline fds_status try_value(const game *g, const fds__utility_params *p, unsigned workers,
                                   fds_utility **value, fds_error *err) {
    return fds__utility_create(p, g->train, g->players, g->test, g->inputs, g->input_count, workers,
                               value, err);
}

static inline fds_utility *make_value(const game *g, const fds__utility_params *p,
                                      unsigned workers) {
    fds_utility *value = NULL;
    fds_error err;
    expect_ok(try_value(g, p, workers, &value, &err), &err);
    return value;
}

/* Into probs, whose size is that of the answer. */
static inline void eval(const fds_utility *value, unsigned worker, uint64_t coalition,
                        float *probs) {
    fds_error err;
    expect_ok(fds_utility_eval(value, worker, &coalition, probs, &err), &err);
}

static inline uint64_t everyone(const game *g) {
    size_t n = fds_players_count(g->players);
    return n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

/* ---- what several kinds do alike ---- */

/* Without players all labels are alike. */
static inline void expect_nobody_to_know(const char *kind) {
    enum { INPUTS_ASKED = 10 };
    game g = game_digits(20, INPUTS_ASKED);
    fds__utility_params p = small(kind);
    fds_utility *value = make_value(&g, &p, 1);
    float probs[INPUTS_ASKED * 10];
    eval(value, 0, 0, probs);
    for (size_t i = 0; i < COUNT(probs); i++)
        assert_true(probs[i] == 0.1f);
    fds_utility_free(value);
    game_free(&g);
}

/* The same digits as players in another order, asked on other workers: the same bits. */
static inline void expect_no_order_of_players(const char *kind, uint64_t trials) {
    enum { DIGITS = 20, INPUTS_ASKED = 10 };
    game g = game_digits(DIGITS, INPUTS_ASKED), h = g;
    uint32_t index[DIGITS];
    fds_error err;
    for (size_t i = 0; i < DIGITS; i++) {
        const uint32_t *own;
        fds_players_samples(g.players, (7 * i + 3) % DIGITS, &own);
        index[i] = *own;
    }
    expect_ok(fds_players_points(g.train, index, DIGITS, &h.players, &err), &err);
    fds__utility_params p = small(kind);
    fds_utility *one = make_value(&g, &p, 1), *two = make_value(&h, &p, 3);
    for (uint64_t trial = 0; trial < trials; trial++) {
        fds_rng rng = fds_rng_make(2, 2005, trial, 0);
        uint64_t s = fds_rng_below(&rng, 1u << DIGITS), turned = 0;
        float a[INPUTS_ASKED * 10], b[INPUTS_ASKED * 10];
        for (size_t i = 0; i < DIGITS; i++)
            turned |= (s >> (7 * i + 3) % DIGITS & 1) << i;
        eval(one, 0, s, a);
        eval(two, (unsigned)trial % 3, turned, b);
        assert_memory_equal(a, b, sizeof a);
    }
    fds_utility_free(one);
    fds_utility_free(two);
    fds_players_free(h.players);
    game_free(&g);
}

/* Of 60 test digits a hundred players get most right; by chance it would be 6. */
static inline void expect_digits_to_be_learnt(const char *kind, const char *network) {
    enum { INPUTS_ASKED = 60 };
    game g = game_digits(100, INPUTS_ASKED);
    fds__utility_params p = small(kind);
    p.network = network;
    fds_utility *value = make_value(&g, &p, 1);
    static float probs[INPUTS_ASKED * 10];
    const uint64_t all[2] = {UINT64_MAX, ((uint64_t)1 << 36) - 1};
    fds_error err;
    expect_ok(fds_utility_eval(value, 0, all, probs, &err), &err);
    size_t right = 0;
    for (size_t x = 0; x < INPUTS_ASKED; x++) {
        const float *q = probs + x * 10;
        size_t top = 0;
        for (size_t y = 1; y < 10; y++)
            top = q[y] > q[top] ? y : top;
        right += top == fds__dataset_get_info(g.test).labels[g.inputs[x]];
    }
    assert_true(right >= 36);
    fds_utility_free(value);
    game_free(&g);
}

/* Every allocation of making it fails once. */
static inline void expect_failed_allocations_survived(const game *g, const fds__utility_params *p,
                                                      unsigned workers) {
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    fds_utility_free(make_value(g, p, workers));
    uint64_t calls = fds__fault_arm(FDS__FAULT_ALLOC, 0);
    assert_true(calls > 10);
    for (uint64_t n = 1; n <= calls; n++) {
        fds_utility *value = NULL;
        fds_error err = {0};
        fds__fault_arm(FDS__FAULT_ALLOC, n);
        fds_status status = try_value(g, p, workers, &value, &err);
        fds__fault_arm(FDS__FAULT_ALLOC, 0);
        assert_int_equal(status, FDS_ERR_NOMEM);
        assert_int_equal(err.status, FDS_ERR_NOMEM);
        assert_null(value);
    }
}

#endif
