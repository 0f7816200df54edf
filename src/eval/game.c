/* SPDX-License-Identifier: Apache-2.0
 *
 * What is valued in a case: the problem, and the utility functions by which sub-models answer for
 * its test samples, each with its table:
 *
 *   retrain:10   dir/retrain-10/   networks trained for 10 epochs, as afds trains them
 *   retrain      dir/retrain/      and until they have converged, as fds does
 *
 * Each has a table for every other seed of its sub-models too, dir/retrain-10-other-1/ and so on.
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

/* Far from the seeds of other cases, though nothing depends on that. */
uint64_t eval_other_seed(const eval_game *g, size_t k) { return g->params.seed + 1000 * k; }

static size_t count_others(const eval_game *g) {
    return (size_t)MAX(g->params.lds ? g->params.lds_seeds : 0, g->params.loss_seeds);
}

static void side_free(eval_side *side) {
    fds_table_free(side->table);
    fds_utility_free(side->utility);
    fds__free(side->predicted);
    fds__free(side->rise);
}

void eval_game_free(eval_game *g) {
    for (int u = 0; u < EVAL_UTILITIES; u++) {
        side_free(&g->sides[u]);
        for (size_t k = 0; k < EVAL_OTHERS; k++)
            side_free(&g->others[u][k]);
    }
    fds_groups_free(g->groups);
}

/* ---- making ---- */

static fds_status make_utility(const eval_game *g, eval_utility which, uint64_t seed,
                               fds_utility **out, fds_error *err) {
    fds_params params = fds__params_default(FDS__JOB_VALUE);
    eval_set_params(g, &params);
    params.seed = seed;
    const fds__utility_params p = fds__utility_params_of(g->problem, &params, names[which]);
    return fds__utility_of(g->problem, &p, (unsigned)params.threads, out, err);
}

static fds_status make_side(eval_game *g, eval_utility which, fds_error *err) {
    TRY(make_utility(g, which, g->params.seed, &g->sides[which].utility, err));
    for (size_t k = 0; k < count_others(g); k++)
        TRY(make_utility(g, which, eval_other_seed(g, k + 1), &g->others[which][k].utility, err));
    return FDS_OK;
}

fds_status eval_game_make(eval_game *g, bool is_converged, fds_error *err) {
    g->players = fds_players_count(g->problem->players);
    g->tests = g->problem->test_count;
    g->params.model = fds__network_of(g->problem, &g->params);
    if (!g->params.coalitions)
        g->params.coalitions = PER_PLAYER * g->players;
    TRY(make_side(g, EVAL_UTILITY_EPOCHS, err));
    if (is_converged)
        TRY(make_side(g, EVAL_UTILITY_CONVERGED, err));
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

static fds_status open_other(eval_game *g, eval_utility which, size_t k, fds_error *err) {
    eval_side *side = &g->others[which][k];
    char name[64], path[FDS__PATH_MAX];
    snprintf(name, sizeof name, "%s-other-%zu", folders[which], k + 1);
    TRY(fds__path_join(path, sizeof path, g->dir, name, err));
    return fds_table_open(path, side->utility, FDS_STORE_F32, g->events, &side->table, err);
}

fds_status eval_game_open(eval_game *g, fds_error *err) {
    for (int u = 0; u < EVAL_UTILITIES; u++) {
        if (g->sides[u].utility)
            TRY(open_side(g, (eval_utility)u, err));
        for (size_t k = 0; k < EVAL_OTHERS && g->others[u][k].utility; k++)
            TRY(open_other(g, (eval_utility)u, k, err));
    }
    return FDS_OK;
}
