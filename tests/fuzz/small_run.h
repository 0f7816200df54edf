/* SPDX-License-Identifier: Apache-2.0
 * What the targets of a run's files and the maker of their seeds agree on: a task so small that all
 * files of its run have a few hundred bytes each. */
#ifndef FDS_TEST_SMALL_RUN_H
#define FDS_TEST_SMALL_RUN_H

#include "explain/learn.h"
#include "explain/run.h"
#include "fuzz_files.h"

enum { FEATURES = 2, CLASSES = 2, PLAYERS = 4, INPUTS = 20, COALITIONS = 6 };
#define SHAPE ((fds_shape){FEATURES, 1, 1})

/* In the order in which an input has them. */
static const char *const run_files[] = {FDS__RUN_JSON,    FDS__RUN_SERVICE, FDS__RUN_EXPLAINER,
                                        FDS__RUN_PLAYERS, FDS__RUN_ERRORS,  FDS__RUN_BANK};
enum { RUN_FILES = sizeof run_files / sizeof *run_files };

typedef struct small_task {
    fds_dataset *train; /* players' samples, then inputs */
    fds_players *players;
    fds_groups *groups;
    uint32_t samples[PLAYERS], labels[PLAYERS], inputs[INPUTS];
} small_task;

static inline small_task small_task_make(void) {
    enum { SAMPLES = PLAYERS + INPUTS };
    small_task t = {0};
    float values[SAMPLES * FEATURES];
    uint16_t labels[SAMPLES];
    fds_error err;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        labels[i] = i % CLASSES;
        values[i * FEATURES] = (float)(labels[i] ? 1 : -1) + 0.125f * (float)(i * 5 % 7);
        values[i * FEATURES + 1] = 0.25f * (float)(i * 3 % 11) - 1;
    }
    for (uint32_t i = 0; i < PLAYERS; i++) {
        t.samples[i] = i;
        t.labels[i] = labels[i];
    }
    for (uint32_t i = 0; i < INPUTS; i++)
        t.inputs[i] = PLAYERS + i;
    fuzz_ok(
        fds__dataset_create(SAMPLES, SHAPE, NULL, values, labels, CLASSES, NULL, &t.train, &err),
        &err);
    fuzz_ok(fds_players_points(t.train, NULL, PLAYERS, &t.players, &err), &err);
    const uint32_t group_of[PLAYERS] = {0, 1, 0, 1};
    fuzz_ok(fds_groups_create(group_of, PLAYERS, NULL, &t.groups, &err), &err);
    return t;
}

static inline void small_task_free(small_task *t) {
    fds_groups_free(t->groups);
    fds_players_free(t->players);
    fds_dataset_free(t->train);
}

/* Borrows all of it; not to be freed. */
static inline fds_problem small_problem(small_task *t) {
    return (fds_problem){.train = t->train,
                         .test = t->train,
                         .players = t->players,
                         .player_labels = t->labels,
                         .samples = t->samples,
                         .sample_count = PLAYERS,
                         .inputs = t->inputs,
                         .input_count = INPUTS,
                         .groups = t->groups};
}

static inline fds_params small_params(const char *method, const char *explainer) {
    fds_params p;
    fds_error err;
    fuzz_ok(fds__fit_default(method, &p, &err), &err);
    p.epochs = 2;
    p.model = "fc:classes";
    p.coalitions = COALITIONS;
    p.adjust = "none";
    p.explainer = fds__choice_find("mlp|cnn|resnet18|resnet50|linear|bank", explainer);
    p.explainer_epochs = 3;
    p.explainer_batch = 8;
    p.threads = 1;
    return p;
}

/* ---- the bank ---- */

/* A utility function and coalitions that a bank is filled for. */
typedef struct small_game {
    fds_utility *value;
    fds_plan *plan;
    fds_table *table;
} small_game;

static inline small_game small_game_make(const small_task *t) {
    fds__utility_params params = fds__utility_params_default();
    small_game g = {0};
    fds_error err;
    params.kind = "retrain:2";
    params.network = "fc:classes";
    fuzz_ok(fds__utility_create(&params, t->train, t->players, t->train, t->inputs, INPUTS, 1,
                                &g.value, &err),
            &err);
    fuzz_ok(fds_plan_sample(FDS_SAMPLER_PAIRED, PLAYERS, NULL, COALITIONS, 1, &g.plan, &err), &err);
    fuzz_ok(fds_table_open(fuzz_path("table"), g.value, FDS_STORE_F32, NULL, &g.table, &err), &err);
    return g;
}

static inline void small_game_free(small_game *g) {
    fds_table_free(g->table);
    fds_plan_free(g->plan);
    fds_utility_free(g->value);
}

#endif
