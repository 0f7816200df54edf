/* SPDX-License-Identifier: Apache-2.0
 *
 * FreeShap: Wang et al., "Helpful or harmful data? Fine-tuning-free Shapley attribution for
 * explaining language model predictions", ICML 2024. The Shapley value by random permutations, as TMC
 * computes it, in the game whose sub-models are not trained: what a coalition knows is kernel
 * regression on its samples with the network's own tangent kernel ("entk" or, where the value
 * function asks for it, "entk:K"; utility/entk.c, which takes the mean over the network's outputs
 * where the authors' program takes output 0 alone).
 *
 * Nobody at all finds all labels alike: judged by accuracy that is worth 1/classes, as in the
 * authors' program, and not what the lowest label would be right in.
 *
 * Along an order nothing is solved anew. With the Cholesky factor L of K_SS + ridge I, kept are
 *
 *     U = L^-1 K_Sx  for all test inputs and all samples x,     W = L^-1 Y_S,     scores = U' W.
 *
 * A sample t that joins has its row of L in column t of U, l = L^-1 K_St, and adds one row to both:
 *
 *     d^2 = K_tt + ridge - |l|^2     u = (K_tx - l'U) / d     w = (y_t - l'W) / d
 *
 * and u w' to the scores, which costs |S| operations an input; sums go over S in the order of
 * joining. As in tmc, an order ends when more than five prefixes running were worth about as much
 * as everyone: |v - v(N)| <= truncate |v(N)|, for several games the means over them of both sides.
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
    size_t asked;   /* coalitions judged so far */
} desk;

typedef struct {
    const baseline_job *job;
    const fds__regression *game;
    size_t samples, inputs, classes, width; /* width: of a row of U */
    double *kernel;                         /* (samples, width) */
    uint32_t *members;                      /* samples by player: those of p are */
    size_t *first;                          /* members[first[p] .. first[p+1]-1] */
    double *full;                           /* (columns): v(N) */
    desk *desks;                            /* (workers) */
    unsigned workers;
} freeshap;

/* ---- joining ---- */

static void divide(size_t count, double by, double *x) {
    for (size_t i = 0; i < count; i++)
        x[i] /= by;
}

static void start(const freeshap *f, desk *d) {
    d->size = 0;
    memset(d->scores, 0, f->classes * f->inputs * sizeof *d->scores);
}

static void join(const freeshap *f, desk *d, uint32_t t) {
    const fds__regression *game = f->game;
    double *u = d->u + d->size * f->width, *w = d->w + d->size * f->classes;
    memcpy(u, f->kernel + t * f->width, f->width * sizeof *u);
    for (size_t c = 0; c < f->classes; c++)
        w[c] = -game->shift;
    w[game->data->samples->labels[t]] += 1.0;
    for (size_t j = 0; j < d->size; j++) {
        const double l = d->u[j * f->width + f->inputs + t];
        fds__utility_add(f->width, -l, d->u + j * f->width, u);
        fds__utility_add(f->classes, -l, d->w + j * f->classes, w);
    }
    /* column t is now K_tt - |l|^2, below 0 by rounding alone */
    const double root = sqrt(MAX(u[f->inputs + t], 0.0) + game->ridge);
    divide(f->width, root, u);
    divide(f->classes, root, w);
    for (size_t c = 0; c < f->classes; c++)
        fds__utility_add(f->inputs, w[c], u, d->scores + c * f->inputs);
    d->size++;
}

static void join_player(const freeshap *f, desk *d, uint32_t player) {
    for (size_t i = f->first[player]; i < f->first[player + 1]; i++)
        join(f, d, f->members[i]);
}

static void scorer(const freeshap *f, desk *d, double *value) {
    for (size_t x = 0; x < f->inputs; x++) {
        double *probs = d->probs + x * f->classes;
        for (size_t c = 0; c < f->classes; c++)
            probs[c] = d->scores[c * f->inputs + x];
        fds__regression_probs(f->game, probs);
    }
    baseline_score(f->job->params->scorer, d->probs, f->job->data->labels, f->inputs,
                   f->job->classes, value);
    if (!d->size && f->job->params->scorer == FDS__SCORER_ACCURACY)
        *value = 1.0 / (double)f->classes;
    d->asked++;
}

/* ---- an order ---- */

static fds_status walk(void *context, unsigned worker, const uint32_t *order, double *values,
                       size_t *end, fds_error *err) {
    (void)err;
    const freeshap *f = context;
    desk *d = &f->desks[worker];
    size_t near = 0, place = 0;
    start(f, d);
    scorer(f, d, values);
    while (place < f->job->players && near <= BASELINE_NEAR_PLACES) {
        join_player(f, d, order[place++]);
        double *value = values + place * f->job->columns;
        scorer(f, d, value);
        near = baseline_is_near(f->job->params, f->job->columns, value, f->full) ? near + 1 : 0;
    }
    *end = place;
    return FDS_OK;
}

/* ---- making and freeing ---- */

static void freeshap_free(freeshap *f) {
    for (unsigned w = 0; f->desks && w < f->workers; w++) {
        fds__free(f->desks[w].u);
        fds__free(f->desks[w].w);
        fds__free(f->desks[w].scores);
        fds__free(f->desks[w].probs);
    }
    fds__free(f->desks);
    fds__free(f->kernel);
    fds__free(f->members);
    fds__free(f->first);
    fds__free(f->full);
}

/* That of samples with inputs and among each other fits memory: it is there already. */
static fds_status allocate(freeshap *f, fds_error *err) {
    const size_t n = f->samples, answers = f->inputs * f->classes;
    f->kernel = fds__alloc_zero(n * f->width, sizeof *f->kernel);
    f->full = fds__alloc_zero(f->job->columns, sizeof *f->full);
    f->desks = fds__alloc_zero(f->workers, sizeof *f->desks);
    bool right = f->kernel && f->full && f->desks;
    for (unsigned w = 0; right && w < f->workers; w++) {
        desk *d = &f->desks[w];
        d->u = fds__alloc_zero(n * f->width, sizeof *d->u);
        d->w = fds__alloc_zero(n * f->classes, sizeof *d->w);
        d->scores = fds__alloc_zero(answers, sizeof *d->scores);
        d->probs = fds__alloc_zero(answers, sizeof *d->probs);
        right = d->u && d->w && d->scores && d->probs;
    }
    return right ? FDS_OK : fds__fail_nomem(err, n * f->width * sizeof *f->kernel);
}

static void fill(freeshap *f) {
    const size_t n = f->samples, m = f->inputs;
    for (size_t i = 0; i < n; i++) {
        for (size_t x = 0; x < m; x++)
            f->kernel[i * f->width + x] = f->game->inputs[x * n + i];
        memcpy(f->kernel + i * f->width + m, f->game->between + i * n, n * sizeof *f->kernel);
    }
}

static void score_everyone(freeshap *f) {
    start(f, f->desks);
    for (uint32_t p = 0; p < f->job->players; p++)
        join_player(f, f->desks, p);
    scorer(f, f->desks, f->full);
}

static fds_status work(freeshap *f, baseline_job *job, fds_error *err) {
    TRY(allocate(f, err));
    TRY(fds__utility_by_player(f->game->data, &f->members, &f->first, err));
    fill(f);
    score_everyone(f);
    const baseline_walker walker = {job->players, job->columns, walk, f};
    TRY(baseline_walk(&walker, job->params, job->values, job->errors, job->report, job->events,
                      err));
    for (unsigned w = 0; w < f->workers; w++)
        job->report->asked += f->desks[w].asked;
    return FDS_OK;
}

static fds_status run(baseline_job *job, fds_error *err) {
    const fds__baseline_data *data = job->data;
    const char *kind = data->value ? data->value->kind : NULL;
    const fds_utility *value;
    fds_utility *own;
    TRY(baseline_utility(job, kind && strncmp(kind, "entk", 4) == 0 ? kind : "entk", &own, &value,
                         err));
    const fds__regression *game = fds__utility_regression(value);
    freeshap f = {
        .job = job,
        .game = game,
        .samples = game->data->samples->count,
        .inputs = data->problem->test_count,
        .classes = job->classes,
        .width = data->problem->test_count + game->data->samples->count,
        .workers = fds__pool_workers(job->params->threads, BASELINE_ROUND),
    };
    fds_status status = work(&f, job, err);
    freeshap_free(&f);
    fds_utility_free(own);
    return status;
}

/* It trains nothing: 200 permutations are walked to their ends. */
const baseline_method baseline_freeshap = {
    .name = "freeshap",
    .about = "Shapley values of kernel regression",
    .takes = "permutations until truncate draw utility model lr beta batch optimizer",
    .scorers = BASELINE_ANY_SCORER,
    .permutations = 200,
    .run = run,
};
