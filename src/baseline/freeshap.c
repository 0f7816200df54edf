/* SPDX-License-Identifier: Apache-2.0
 *
 * FreeShap: Wang et al., "Helpful or harmful data? Fine-tuning-free Shapley attribution for
 * explaining language model predictions", ICML 2024. The Shapley value by random permutations, as
 * TMC computes it, in a game without training: a sub-model is kernel regression on the samples of
 * the coalition with the network's own tangent kernel ("entk" or, where the parameters say so,
 * "entk:K"; utility/entk.c, which takes the mean over the network's outputs where the authors'
 * program takes output 0 alone).
 *
 * For the empty coalition all labels are equally likely: its accuracy is 1/classes, as in the
 * authors' program, not the accuracy of always predicting the lowest label.
 *
 * Along a permutation nothing is solved again. With the Cholesky factor L of K_SS + ridge I, the
 * walk keeps
 *
 *     U = L^-1 K_Sx  for all test inputs and all samples x,     W = L^-1 Y_S,     scores = U' W.
 *
 * A sample t that joins has its row of L in column t of U, l = L^-1 K_St, and adds one row to both:
 *
 *     d^2 = K_tt + ridge - |l|^2     u = (K_tx - l'U) / d     w = (y_t - l'W) / d
 *
 * and u w' to the scores, which costs |S| operations per input; sums go over S in the order of
 * joining. Permutations are truncated as in tmc.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

typedef struct {
    double *u;      /* (samples, inputs + samples) */
    double *w;      /* (samples, classes) */
    double *scores; /* (classes, inputs) */
    double *probs;  /* (inputs, classes) */
    size_t size;    /* samples that have joined */
    size_t asked;   /* coalitions scored so far */
} worker;

typedef struct {
    const baseline_job *job;
    const fds__regression *game;
    size_t samples, inputs, classes, width; /* width: of a row of U */
    double *kernel;                         /* (samples, width) */
    uint32_t *members;                      /* samples by player: those of p are */
    size_t *first;                          /* members[first[p] .. first[p+1]-1] */
    double *full;                           /* (columns): v(N) */
    worker *workers;                        /* (worker_count) */
    unsigned worker_count;
} freeshap;

/* ---- joining ---- */

static void divide(size_t count, double by, double *x) {
    for (size_t i = 0; i < count; i++)
        x[i] /= by;
}

static void start(const freeshap *f, worker *me) {
    me->size = 0;
    memset(me->scores, 0, f->classes * f->inputs * sizeof *me->scores);
}

static void join(const freeshap *f, worker *me, uint32_t t) {
    const fds__regression *game = f->game;
    double *u = me->u + me->size * f->width, *w = me->w + me->size * f->classes;
    memcpy(u, f->kernel + t * f->width, f->width * sizeof *u);
    for (size_t c = 0; c < f->classes; c++)
        w[c] = -game->shift;
    w[game->data->samples->labels[t]] += 1.0;
    for (size_t j = 0; j < me->size; j++) {
        const double l = me->u[j * f->width + f->inputs + t];
        fds__utility_add(f->width, -l, me->u + j * f->width, u);
        fds__utility_add(f->classes, -l, me->w + j * f->classes, w);
    }
    /* column t is now K_tt - |l|^2, below 0 by rounding alone */
    const double root = sqrt(MAX(u[f->inputs + t], 0.0) + game->ridge);
    divide(f->width, root, u);
    divide(f->classes, root, w);
    for (size_t c = 0; c < f->classes; c++)
        fds__utility_add(f->inputs, w[c], u, me->scores + c * f->inputs);
    me->size++;
}

static void join_player(const freeshap *f, worker *me, uint32_t player) {
    for (size_t i = f->first[player]; i < f->first[player + 1]; i++)
        join(f, me, f->members[i]);
}

static void score(const freeshap *f, worker *me, double *value) {
    for (size_t x = 0; x < f->inputs; x++) {
        double *probs = me->probs + x * f->classes;
        for (size_t c = 0; c < f->classes; c++)
            probs[c] = me->scores[c * f->inputs + x];
        fds__regression_probs(f->game, probs);
    }
    baseline_score(f->job->params->scorer, me->probs, f->job->data->labels, f->inputs,
                   f->job->classes, value);
    if (!me->size && f->job->params->scorer == FDS__SCORER_ACCURACY)
        *value = 1.0 / (double)f->classes;
    me->asked++;
}

/* ---- a permutation ---- */

static fds_status walk(void *context, unsigned number, const uint32_t *permutation, double *values,
                       size_t *end, fds_error *err) {
    (void)err;
    const freeshap *f = context;
    worker *me = &f->workers[number];
    unsigned near = 0;
    size_t place = 0;
    bool goes_on = true;
    start(f, me);
    score(f, me, values);
    while (place < f->job->players && goes_on) {
        join_player(f, me, permutation[place++]);
        double *value = values + place * f->job->columns;
        score(f, me, value);
        goes_on = baseline_walks_on(f->job->params, f->job->columns, value, f->full, &near);
    }
    *end = place;
    return FDS_OK;
}

/* ---- the whole ---- */

static fds_status allocate(freeshap *f, baseline_job *job, fds_error *err) {
    const size_t n = f->samples;
    f->kernel = baseline_alloc(job, n, f->width, sizeof *f->kernel);
    f->full = baseline_alloc(job, job->columns, 1, sizeof *f->full);
    f->workers = baseline_alloc(job, f->worker_count, 1, sizeof *f->workers);
    for (worker *me = f->workers; me && me < f->workers + f->worker_count; me++) {
        me->u = baseline_alloc(job, n, f->width, sizeof *me->u);
        me->w = baseline_alloc(job, n, f->classes, sizeof *me->w);
        me->scores = baseline_alloc(job, f->classes, f->inputs, sizeof *me->scores);
        me->probs = baseline_alloc(job, f->inputs, f->classes, sizeof *me->probs);
    }
    return baseline_check_memory(job, err);
}

static void fill(freeshap *f) {
    const size_t n = f->samples, m = f->inputs;
    for (size_t i = 0; i < n; i++) {
        for (size_t x = 0; x < m; x++)
            f->kernel[i * f->width + x] = f->game->inputs[x * n + i];
        memcpy(f->kernel + i * f->width + m, f->game->between + i * n, n * sizeof *f->kernel);
    }
}

static fds_status work(freeshap *f, baseline_job *job, fds_error *err) {
    TRY(allocate(f, job, err));
    TRY(fds__utility_by_player(f->game->data, &f->members, &f->first, err));
    fill(f);
    start(f, f->workers);
    for (uint32_t p = 0; p < job->players; p++)
        join_player(f, f->workers, p);
    score(f, f->workers, f->full);
    TRY(baseline_walk(job, walk, f, err));
    for (unsigned w = 0; w < f->worker_count; w++)
        job->report->asked += f->workers[w].asked;
    return FDS_OK;
}

static fds_status run(baseline_job *job, fds_error *err) {
    const char *kind = job->data->utility ? job->data->utility->kind : NULL;
    const fds_utility *utility;
    TRY(baseline_utility(job, kind && strncmp(kind, "entk", 4) == 0 ? kind : "entk", &utility,
                         err));
    const fds__regression *game = fds__utility_regression(utility);
    freeshap f = {
        .job = job,
        .game = game,
        .samples = game->data->samples->count,
        .inputs = utility->inputs,
        .classes = job->classes,
        .width = utility->inputs + game->data->samples->count,
        .worker_count = fds__pool_workers((unsigned)job->params->threads, BASELINE_ROUND),
    };
    fds_status status = work(&f, job, err);
    fds__free(f.members);
    fds__free(f.first);
    return status;
}

/* It trains nothing: 200 permutations are walked to their ends. */
const baseline_method baseline_freeshap = {
    .name = "freeshap",
    .about = "Shapley values of kernel regression",
    .takes = "permutations until truncate draw utility " BASELINE_TRAINING,
    .permutations = 200,
    .needs_classes = true,
    .run = run,
};
