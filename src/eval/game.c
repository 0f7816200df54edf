/* SPDX-License-Identifier: Apache-2.0
 *
 * What is valued in a case: the players, the test samples with their labels, and the value
 * functions by which sub-models answer for them, each with a table of its own:
 *
 *   retrain:10   dir/retrain-10/   networks trained for 10 epochs, as afds trains them
 *   retrain      dir/retrain/      and until they have converged, as fds does
 *
 * So v(N) of each is, to the bit, what the service model of such a fit answers. */
#include "eval/case.h"

#include <string.h>

enum { PER_PLAYER = 20 }; /* coalitions, unless the caller says */

static const struct {
    const char *name, *method, *folder;
} scorers[EVAL_UTILITIES] = {{"retrain:10", "afds", "retrain-10"}, {"retrain", "fds", "retrain"}};

const char *eval_utility_name(eval_utility scorer) { return scorers[scorer].name; }

size_t eval_coalitions(const eval_game *game) {
    return game->params->coalitions ? game->params->coalitions : PER_PLAYER * game->players;
}

uint32_t eval_test(const eval_game *game, size_t i) {
    return game->data->tests ? game->data->tests[i] : (uint32_t)i;
}

void eval_game_free(eval_game *g) {
    for (int scorer = 0; scorer < EVAL_UTILITIES; scorer++) {
        eval_side *side = &g->sides[scorer];
        fds_table_free(side->table);
        fds_utility_free(side->value);
        fds__free(side->predicted);
        fds__free(side->rise);
        *side = (eval_side){0};
    }
    fds_groups_free(g->groups);
    fds__free(g->player_labels);
    fds__free(g->labels);
    g->groups = NULL;
    g->player_labels = g->labels = NULL;
}

/* ---- making ---- */

static fds_status label_players(eval_game *g, fds_error *err) {
    g->player_labels = fds__alloc_zero(g->players, sizeof *g->player_labels);
    if (!g->player_labels)
        return fds__fail_nomem(err, g->players * sizeof *g->player_labels);
    return fds__players_labels(g->train, g->data->players, g->player_labels, err);
}

static fds_status label_tests(eval_game *g, fds_error *err) {
    g->labels = fds__alloc_zero(g->tests, sizeof *g->labels);
    if (!g->labels)
        return fds__fail_nomem(err, g->tests * sizeof *g->labels);
    for (size_t i = 0; i < g->tests; i++)
        g->labels[i] = g->data->test->labels[eval_test(g, i)];
    return FDS_OK;
}

static void list_problem(eval_game *g) {
    g->problem = (fds_problem){.train = g->train,
                               .test = g->data->test,
                               .has_test_part = true,
                               .players = (fds_players *)(uintptr_t)g->data->players,
                               .player_labels = g->player_labels,
                               .samples = (uint32_t *)(uintptr_t)g->data->samples,
                               .sample_count = g->data->sample_count,
                               .inputs = (uint32_t *)(uintptr_t)g->data->inputs,
                               .input_count = g->data->input_count,
                               .tests = (uint32_t *)(uintptr_t)g->data->tests,
                               .test_count = g->tests,
                               .test_labels = g->labels};
}

static fds_status make_value(eval_game *g, eval_utility scorer, fds_error *err) {
    fds__utility_params p = fds__utility_params_default();
    p.kind = scorers[scorer].name;
    p.network = g->params->network;
    p.train.seed = g->params->seed;
    if (scorer ==
        EVAL_UTILITY_CONVERGED) /* as fds_fit does: all its sub-models learn at beta times lr */
        p.train.lr = fds__decimal_product(p.train.lr, p.beta);
    return fds__utility_create(&p, g->train, g->data->players, g->data->test, g->data->tests,
                               g->tests, g->params->threads, &g->sides[scorer].value, err);
}

static fds_status make(eval_game *g, bool is_converged, fds_error *err) {
    /* value functions first: they check that players, tests and labels fit together */
    TRY(make_value(g, EVAL_UTILITY_EPOCHS, err));
    if (is_converged)
        TRY(make_value(g, EVAL_UTILITY_CONVERGED, err));
    TRY(label_players(g, err));
    TRY(label_tests(g, err));
    list_problem(g);
    return fds_groups_by_label(g->train, g->data->players, &g->groups, err);
}

fds_status eval_game_make(eval_game *g, const char *dir, bool is_converged, fds_error *err) {
    if ((size_t)snprintf(g->dir, sizeof g->dir, "%s", dir) >= sizeof g->dir)
        return fds__fail(err, FDS_ERR_USAGE, "path too long: %.100s...", dir);
    g->players = fds_players_count(g->data->players);
    g->tests = g->data->test_count;
    g->classes = g->train->classes;
    fds_status status = make(g, is_converged, err);
    if (status != FDS_OK)
        eval_game_free(g);
    return status;
}

/* ---- opening ---- */

/* From (tests, classes) of no player, then of all: the likeliest label, of several the lowest. */
static void predict(const eval_game *g, eval_side *side, const double *ends) {
    const double *full = ends + g->tests * g->classes;
    for (size_t x = 0; x < g->tests; x++) {
        uint32_t best = fds__argmax(full + x * g->classes, g->classes);
        side->predicted[x] = best;
        side->rise[x] = full[x * g->classes + best] - ends[x * g->classes + best];
    }
}

static fds_status read_ends(const eval_game *g, const eval_side *side, const fds_plan *plan,
                            double *ends, fds_error *err) {
    TRY(fds_table_fill(side->table, plan, g->params->threads, g->events, err));
    return fds__table_ends(side->table, plan, ends, ends + g->tests * g->classes, err);
}

static fds_status open_side(eval_game *g, eval_utility scorer, fds_error *err) {
    eval_side *side = &g->sides[scorer];
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, g->dir, scorers[scorer].folder, err));
    TRY(fds_table_open(path, side->value, FDS_STORE_F32, g->events, &side->table, err));
    fds_plan *plan;
    TRY(fds__plan_ends(g->players, &plan, err));
    double *ends = fds__alloc_zero(g->tests * g->classes, 2 * sizeof *ends);
    side->predicted = fds__alloc_zero(g->tests, sizeof *side->predicted);
    side->rise = fds__alloc_zero(g->tests, sizeof *side->rise);
    fds_status status = ends && side->predicted && side->rise
                            ? read_ends(g, side, plan, ends, err)
                            : fds__fail_nomem(err, g->tests * g->classes * 2 * sizeof *ends);
    if (status == FDS_OK)
        predict(g, side, ends);
    fds__free(ends);
    fds_plan_free(plan);
    return status;
}

fds_status eval_game_open(eval_game *g, fds_error *err) {
    for (int scorer = 0; scorer < EVAL_UTILITIES; scorer++)
        if (g->sides[scorer].value)
            TRY(open_side(g, (eval_utility)scorer, err));
    return FDS_OK;
}
