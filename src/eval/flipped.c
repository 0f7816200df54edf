/* SPDX-License-Identifier: Apache-2.0
 *
 * Mislabel detection: which methods find wrong labels?
 *
 * All samples of some players, chosen at random, get wrong labels, uniform among the other classes,
 * on a copy of the training data; test samples and training inputs keep theirs. Every method values
 * the new game in the folder dir/flipped, methods per sample for the TRUE labels of the test
 * samples, and a player's value is the mean over these. The area under the ROC curve says how well
 * the lowest values find the players with wrong labels.
 *
 * Methods are compared on equal terms: every method that trains sub-models gets as many of them,
 * trained for 10 epochs, and scores them by their confidence in the true labels. Means over test
 * samples vary less than single values, so half of `coalitions` are enough.
 *
 * All of it is repeated with other seeds: other players have wrong labels, and coalitions, initial
 * network and mini-batches are others too. */
#include "eval/eval.h"

#include <math.h>

#define FOLDER "flipped"

typedef struct {
    eval_game game;
    fds_problem problem; /* the original one, except for train and player_labels */
    fds_dataset *train;  /* with wrong labels */
    bool *is_flipped;    /* (players) */
    double *values;      /* (players, tests), then their means (players) */
} flipped;

static void flipped_free(flipped *f) {
    eval_game_free(&f->game);
    fds_dataset_free(f->train);
    fds__free(f->problem.player_labels);
    fds__free(f->is_flipped);
    fds__free(f->values);
}

/* ---- wrong labels ---- */

static fds_status choose_players(const eval_game *of, uint64_t seed, bool *is_flipped,
                                 fds_error *err) {
    uint32_t *permutation = fds__alloc_zero(of->players, sizeof *permutation);
    if (!permutation)
        return fds__fail_nomem(err, of->players * sizeof *permutation);
    double wanted = round(of->params.flipped * (double)of->players);
    size_t count = MAX((size_t)wanted, (size_t)1);
    fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_FLIP, 0, 0);
    for (size_t i = 0; i < of->players; i++)
        permutation[i] = (uint32_t)i;
    fds_rng_shuffle(&rng, permutation, of->players);
    for (size_t i = 0; i < count; i++)
        is_flipped[permutation[i]] = true;
    fds__free(permutation);
    return FDS_OK;
}

static uint16_t wrong_label(uint64_t seed, uint32_t sample, uint16_t label, uint32_t classes) {
    fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_FLIP, 1, sample);
    uint16_t other = (uint16_t)fds_rng_below(&rng, classes - 1);
    return (uint16_t)(other + (other >= label));
}

fds_status eval_flip(const eval_game *of, size_t k, bool *is_flipped, fds_dataset **train,
                     fds_error *err) {
    const fds_dataset *ds = of->problem->train;
    uint64_t seed = eval_other_seed(of, k);
    TRY(choose_players(of, seed, is_flipped, err));
    uint16_t *labels = fds__alloc_zero(ds->count, sizeof *labels);
    if (!labels)
        return fds__fail_nomem(err, ds->count * sizeof *labels);
    memcpy(labels, ds->labels, ds->count * sizeof *labels);
    for (size_t p = 0; p < of->players; p++) {
        const uint32_t *index;
        size_t count = fds_players_samples(of->problem->players, p, &index);
        for (size_t i = 0; is_flipped[p] && i < count; i++)
            labels[index[i]] = wrong_label(seed, index[i], labels[index[i]], ds->classes);
    }
    fds_status status = fds__dataset_relabel(ds, labels, train, err);
    fds__free(labels);
    return status;
}

/* ---- the game ---- */

/* k: the number of the seed. */
static fds_status open_game(flipped *f, const eval_game *of, size_t k, fds_error *err) {
    char name[32];
    f->problem = *of->problem;
    f->problem.train = f->train;
    f->problem.player_labels = fds__alloc_zero(of->players, sizeof *f->problem.player_labels);
    if (!f->problem.player_labels)
        return fds__fail_nomem(err, of->players * sizeof *f->problem.player_labels);
    TRY(fds__players_labels(f->train, f->problem.players, f->problem.player_labels, err));
    f->game = (eval_game){.name = of->name,
                          .problem = &f->problem,
                          .params = of->params,
                          .lists = of->lists,
                          .events = of->events};
    f->game.params.seed = eval_other_seed(of, k);
    f->game.params.coalitions = MAX(of->params.coalitions / 4 * 2, (uint64_t)2);
    f->game.params.lds = f->game.params.loss_seeds = 0;
    f->game.budget = (size_t)f->game.params.coalitions;
    snprintf(name, sizeof name, k ? FOLDER "-%zu" : FOLDER, k);
    TRY(fds__path_join(f->game.dir, sizeof f->game.dir, of->dir, name, err));
    TRY(eval_game_make(&f->game, false, err));
    return eval_game_open(&f->game, err);
}

static fds_status measure(flipped *f, eval_row *row, size_t k, fds_error *err) {
    const eval_game *g = &f->game;
    eval_cost cost;
    row->areas[k] = NAN;
    row->area_count = k + 1;
    row->is_equal = eval_is_equal(row->method);
    if (eval_lacks_groups(g, row->method)) /* wrong labels may be the same for all */
        return FDS_OK;
    if (row->method->is_outside) {
        bool is_there;
        TRY(eval_outside_find(g, row->method, &is_there, err));
        if (!is_there)
            return FDS_OK;
    }
    TRY(eval_global_values(g, row->method, &cost, f->values, err));
    row->areas[k] = fds_ranking_area(f->values, f->is_flipped, g->players);
    row->area_models = cost.sub_models;
    return eval_measure_detection(g, f->values, f->is_flipped, row, err);
}

static fds_status run(flipped *f, const eval_game *of, size_t k, eval_row *rows, size_t count,
                      fds_error *err) {
    f->is_flipped = fds__alloc_zero(of->players, sizeof *f->is_flipped);
    f->values = fds__alloc_zero(of->players * of->tests, sizeof *f->values);
    if (!f->is_flipped || !f->values)
        return fds__fail_nomem(err, of->players * of->tests * sizeof *f->values);
    TRY(eval_flip(of, k, f->is_flipped, &f->train, err));
    TRY(open_game(f, of, k, err));
    for (size_t i = 0; i < count; i++) {
        eval_tell(of, "%s with wrong labels %zu (%zu of %zu)", rows[i].method->name, k + 1, i + 1,
                  count);
        TRY(measure(f, &rows[i], k, err));
    }
    return FDS_OK;
}

fds_status eval_flipped(const eval_game *of, eval_row *rows, size_t count, fds_error *err) {
    size_t seeds = MAX((size_t)of->params.flipped_seeds, (size_t)1);
    for (size_t k = 0; k < seeds; k++) {
        flipped f = {.train = NULL};
        fds_status status = run(&f, of, k, rows, count, err);
        flipped_free(&f);
        TRY(status);
    }
    return FDS_OK;
}
