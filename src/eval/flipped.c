/* SPDX-License-Identifier: Apache-2.0
 *
 * The game with wrong labels: who finds them?
 *
 * A share of the players, chosen at random, get other labels for all their samples, each uniform
 * among the others, on a copy of the training data; test samples and the explainers' inputs are as
 * they were. Every method values that game anew in the folder dir/flipped, methods by sample for
 * the TRUE labels of the test samples, and a player's value is the mean over these. The area under
 * the ROC curve tells how well the lowest values find the players with wrong labels. Means over
 * test samples are steadier than single values, so half of the coalitions and permutations do. */
#include "eval/case.h"

#include <math.h>
#include <string.h>

#define FOLDER "flipped"

typedef struct {
    eval_game game;
    fds__bench_params params;
    fds_dataset *train; /* with wrong labels */
    bool *is_flipped;   /* (players) */
    double *values;     /* (players, tests) */
    double *means;      /* (players) */
} flipped;

static void flipped_free(flipped *f) {
    eval_game_free(&f->game);
    fds_dataset_free(f->train);
    fds__free(f->is_flipped);
    fds__free(f->values);
    fds__free(f->means);
}

/* ---- wrong labels ---- */

static fds_status choose_players(flipped *f, const eval_game *of, fds_error *err) {
    uint32_t *order = fds__alloc_zero(of->players, sizeof *order);
    if (!order)
        return fds__fail_nomem(err, of->players * sizeof *order);
    double wanted = round(of->params->flipped * (double)of->players);
    size_t count = MAX((size_t)wanted, (size_t)1);
    fds_rng rng = fds_rng_make(of->params->seed, FDS__PURPOSE_FLIP, 0, 0);
    for (size_t i = 0; i < of->players; i++)
        order[i] = (uint32_t)i;
    fds_rng_shuffle(&rng, order, of->players);
    for (size_t i = 0; i < count; i++)
        f->is_flipped[order[i]] = true;
    fds__free(order);
    return FDS_OK;
}

static uint16_t wrong_label(uint64_t seed, uint32_t sample, uint16_t label, uint32_t classes) {
    fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_FLIP, 1, sample);
    uint16_t other = (uint16_t)fds_rng_below(&rng, classes - 1);
    return (uint16_t)(other + (other >= label));
}

static fds_status flip(flipped *f, const eval_game *of, fds_error *err) {
    const fds_dataset *ds = of->train;
    TRY(choose_players(f, of, err));
    uint16_t *labels = fds__alloc_zero(ds->count, sizeof *labels);
    if (!labels)
        return fds__fail_nomem(err, ds->count * sizeof *labels);
    memcpy(labels, ds->labels, ds->count * sizeof *labels);
    for (size_t p = 0; p < of->players; p++) {
        const uint32_t *index;
        size_t count = fds_players_samples(of->data->players, p, &index);
        for (size_t i = 0; f->is_flipped[p] && i < count; i++)
            labels[index[i]] =
                wrong_label(of->params->seed, index[i], labels[index[i]], of->classes);
    }
    fds_status status = fds__dataset_relabel(ds, labels, &f->train, err);
    fds__free(labels);
    return status;
}

/* ---- the game ---- */

static fds_status open_game(flipped *f, const eval_game *of, fds_error *err) {
    char dir[FDS__PATH_MAX];
    TRY(fds__path_join(dir, sizeof dir, of->dir, FOLDER, err));
    f->params = *of->params;
    f->params.coalitions = MAX(eval_coalitions(of) / 4 * 2, (size_t)2);
    f->params.permutations = (f->params.permutations + 1) / 2;
    f->game = (eval_game){
        .data = of->data, .params = &f->params, .events = of->events, .train = f->train};
    TRY(eval_game_make(&f->game, dir, false, err));
    return eval_game_open(&f->game, err);
}

static fds_status measure(flipped *f, const eval_method *method, double *area, fds_error *err) {
    const eval_game *g = &f->game;
    size_t columns = eval_columns(g, method);
    if (eval_lacks_groups(g, method)) /* wrong labels may be the same for all */
        return FDS_OK;
    TRY(eval_answers(g, method, g->labels, f->values, NULL, err));
    for (size_t i = 0; i < g->players; i++) {
        double sum = 0;
        for (size_t c = 0; c < columns; c++)
            sum += f->values[i * columns + c];
        f->means[i] = sum / (double)columns;
    }
    *area = fds_ranking_area(f->means, f->is_flipped, g->players);
    return FDS_OK;
}

static fds_status run(flipped *f, const eval_game *of, const eval_method *methods, size_t count,
                      double *areas, fds_error *err) {
    f->is_flipped = fds__alloc_zero(of->players, sizeof *f->is_flipped);
    f->means = fds__alloc_zero(of->players, sizeof *f->means);
    f->values = fds__alloc_zero(of->players * of->tests, sizeof *f->values);
    if (!f->is_flipped || !f->means || !f->values)
        return fds__fail_nomem(err, of->players * of->tests * sizeof *f->values);
    TRY(flip(f, of, err));
    TRY(open_game(f, of, err));
    for (size_t i = 0; i < count; i++) {
        fds__log(of->events, FDS_LOG_INFO, "%s, seed %llu: %s with wrong labels (%zu of %zu)",
                 of->data->name, (unsigned long long)of->params->seed, methods[i].name, i + 1,
                 count);
        TRY(measure(f, &methods[i], &areas[i], err));
    }
    return FDS_OK;
}

fds_status eval_flipped(const eval_game *of, const eval_method *methods, size_t count,
                        double *areas, fds_error *err) {
    flipped f = {0};
    fds_status status = run(&f, of, methods, count, areas, err);
    flipped_free(&f);
    return status;
}
