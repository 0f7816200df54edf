/* SPDX-License-Identifier: Apache-2.0
 *
 * What is valued in a case: the problem, and the utility functions by which sub-models answer for
 * its test samples, each with its table:
 *
 *   retrain:10   dir/retrain-10/   networks trained for 10 epochs, as afds trains them
 *   retrain      dir/retrain/      and until they have converged, as fds does
 *
 * So v(N) of each is, to the bit, what the service model of such a fit answers. */
#include "eval/eval.h"

enum { PER_PLAYER = 20 }; /* coalitions, by default */

static const char *const names[EVAL_UTILITIES] = {"retrain:10", "retrain"};
static const char *const folders[EVAL_UTILITIES] = {"retrain-10", "retrain"};

const char *eval_utility_name(eval_utility utility) { return names[utility]; }

eval_utility eval_own_utility(const eval_method *m) {
    return m->is_converged ? EVAL_UTILITY_CONVERGED : EVAL_UTILITY_EPOCHS;
}

void eval_set_params(const eval_game *g, fds_params *params) {
    params->model = g->params.model;
    params->seed = g->params.seed;
    params->threads = g->params.threads;
}

void eval_game_free(eval_game *g) {
    for (int u = 0; u < EVAL_UTILITIES; u++) {
        fds_table_free(g->sides[u].table);
        fds_utility_free(g->sides[u].utility);
        fds__free(g->sides[u].predicted);
        fds__free(g->sides[u].rise);
    }
    fds_groups_free(g->groups);
}

/* ---- making ---- */

static fds_status make_utility(eval_game *g, eval_utility which, fds_error *err) {
    fds_params params = fds__params_default(FDS__JOB_VALUE);
    eval_set_params(g, &params);
    const fds__utility_params p = fds__utility_params_of(g->problem, &params, names[which]);
    return fds__utility_of(g->problem, &p, (unsigned)params.threads, &g->sides[which].utility, err);
}

fds_status eval_game_make(eval_game *g, bool is_converged, fds_error *err) {
    g->players = fds_players_count(g->problem->players);
    g->tests = g->problem->test_count;
    g->params.model = fds__network_of(g->problem, &g->params);
    if (!g->params.coalitions)
        g->params.coalitions = PER_PLAYER * g->players;
    TRY(make_utility(g, EVAL_UTILITY_EPOCHS, err));
    if (is_converged)
        TRY(make_utility(g, EVAL_UTILITY_CONVERGED, err));
    return fds_groups_by_label(g->problem->train, g->problem->players, &g->groups, err);
}

/* ---- opening ---- */

/* ends (2, tests, classes): of no player, then of all. */
static fds_status read_ends(const eval_game *g, fds_table *table, double *ends, fds_error *err) {
    fds_plan *plan;
    TRY(fds__plan_ends(g->players, &plan, err));
    fds_status status = fds_table_fill(table, plan, (unsigned)g->params.threads, g->events, err);
    if (status == FDS_OK)
        status =
            fds__table_ends(table, plan, ends, ends + g->tests * g->problem->train->classes, err);
    fds_plan_free(plan);
    return status;
}

static fds_status open_side(eval_game *g, eval_utility which, fds_error *err) {
    eval_side *side = &g->sides[which];
    char path[FDS__PATH_MAX];
    uint32_t classes = g->problem->train->classes;
    TRY(fds__path_join(path, sizeof path, g->dir, folders[which], err));
    TRY(fds_table_open(path, side->utility, FDS_STORE_F32, g->events, &side->table, err));
    double *ends = fds__alloc_zero(g->tests * classes, 2 * sizeof *ends);
    side->predicted = fds__alloc_zero(g->tests, sizeof *side->predicted);
    side->rise = fds__alloc_zero(g->tests, sizeof *side->rise);
    fds_status status = ends && side->predicted && side->rise
                            ? read_ends(g, side->table, ends, err)
                            : fds__fail_nomem(err, g->tests * classes * 2 * sizeof *ends);
    for (size_t x = 0; x < g->tests && status == FDS_OK; x++) {
        const double *empty = ends + x * classes, *full = empty + g->tests * classes;
        uint32_t best = fds__argmax(full, classes);
        side->predicted[x] = best;
        side->rise[x] = full[best] - empty[best];
    }
    fds__free(ends);
    return status;
}

fds_status eval_game_open(eval_game *g, fds_error *err) {
    for (int u = 0; u < EVAL_UTILITIES; u++)
        if (g->sides[u].utility)
            TRY(open_side(g, (eval_utility)u, err));
    return FDS_OK;
}
