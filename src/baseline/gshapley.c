/* SPDX-License-Identifier: Apache-2.0
 *
 * G-Shapley: Ghorbani and Zou, "Data Shapley: Equitable valuation of data for machine learning",
 * ICML 2019, Algorithm 2. No sub-model is trained: one epoch of gradient descent goes through the
 * players in a random permutation pi, from the initial network w_0 on,
 *
 *     w_j   = w_(j-1) - lr * gradient at w_(j-1) of the mean loss of player pi(j)'s samples
 *     phi_i = mean over permutations of  V(w_j) - V(w_(j-1)),  where i = pi(j),
 *
 * V being the score of the network. Every step is scored; nothing is truncated. The values sum to
 * the mean of V(w_n) - V(w_0).
 *
 * The learning rate is found as in the authors' own program: ten epochs for each of 10^-1, 10^-1.5
 * ... 10^-4.5, each from w_0 in another permutation; the rate with the highest mean minus standard
 * deviation of V(w_n) is taken, the largest of several. V is the score here too; where each test
 * sample is a game, the mean over them. A rate at which the network diverges in any of these
 * permutations is excluded. The search shares no permutation with the walk.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

/* 10^-1, 10^-1.5, ... in seven digits: the report has exactly the rate that was used. */
static const float rates[] = {1e-1f, 3.162278e-2f, 1e-2f, 3.162278e-3f,
                              1e-3f, 3.162278e-4f, 1e-4f, 3.162278e-5f};
enum { RATES = sizeof rates / sizeof *rates, TRIES = 10 };
static const uint64_t first_try = (uint64_t)1 << 63; /* number of its permutation */

/* The scratch of one thread. */
typedef struct {
    fds_lane *lane;
    float *weights;        /* (net) */
    float *probs;          /* (inputs, classes) */
    double *answers;       /* the same */
    uint32_t *permutation; /* (players): of a try */
    double *score;         /* (columns): of a try */
} worker;

typedef struct {
    baseline_job *job;
    const fds_utility *utility; /* for its samples and inputs, normalised, and its network */
    float *start;               /* (net): w_0 */
    uint32_t *members;          /* (samples): positions within the samples, player by player */
    size_t *first;              /* (players + 1): where each player's members begin */
    double *empty;              /* (columns): V(w_0) */
    float lr;                   /* of the walk */
    double *scores;             /* (RATES, TRIES): NaN where it diverged */
    unsigned worker_count;
    worker *workers; /* (worker_count) */
} gshapley;

/* ---- making and freeing ---- */

static void free_all(gshapley *g) {
    for (unsigned w = 0; g->workers && w < g->worker_count; w++)
        fds_lane_free(g->workers[w].lane);
    fds__free(g->members);
    fds__free(g->first);
}

/* The samples, the inputs and the network as the utility function "retrain" has them. */
static fds_status make_utility(gshapley *g, fds_error *err) {
    baseline_job *job = g->job;
    fds__utility_params params = fds__utility_params_default();
    params.kind = "retrain:1";
    if (job->data->utility) {
        params.network = job->data->utility->network;
        params.train.seed = job->data->utility->train.seed;
    }
    TRY(fds__utility_of(job->data->problem, &params, 1, &job->own, err));
    g->utility = job->own;
    const fds_net *net = fds__utility_network(g->utility);
    g->start = baseline_alloc(job, net->weights, 1, sizeof *g->start);
    TRY(baseline_check_memory(job, err));
    fds_net_init(net, params.train.seed, g->start);
    return fds__utility_by_player(g->utility->data, &g->members, &g->first, err);
}

static fds_status make_workers(gshapley *g, fds_error *err) {
    baseline_job *job = g->job;
    const fds_net *net = fds__utility_network(g->utility);
    const size_t inputs = g->utility->inputs;
    const unsigned threads = (unsigned)job->params->threads;
    size_t most = 0; /* samples of one player */
    for (size_t p = 0; p < job->players; p++)
        most = MAX(most, g->first[p + 1] - g->first[p]);
    g->worker_count =
        MAX(fds__pool_workers(threads, BASELINE_ROUND), fds__pool_workers(threads, RATES * TRIES));
    g->empty = baseline_alloc(job, job->columns, 1, sizeof *g->empty);
    g->scores = baseline_alloc(job, RATES, TRIES, sizeof *g->scores);
    g->workers = baseline_alloc(job, g->worker_count, 1, sizeof *g->workers);
    TRY(baseline_check_memory(job, err));
    for (worker *w = g->workers; w < g->workers + g->worker_count; w++) {
        TRY(fds_lane_create(net, &w->lane, err));
        TRY(fds__lane_reserve(w->lane, most, most, err));
        w->weights = baseline_alloc(job, net->weights, 1, sizeof *w->weights);
        w->probs = baseline_alloc(job, inputs, job->classes, sizeof *w->probs);
        w->answers = baseline_alloc(job, inputs, job->classes, sizeof *w->answers);
        w->permutation = baseline_alloc(job, job->players, 1, sizeof *w->permutation);
        w->score = baseline_alloc(job, job->columns, 1, sizeof *w->score);
    }
    return baseline_check_memory(job, err);
}

/* ---- one epoch ---- */

static void begin(const gshapley *g, worker *w) {
    memcpy(w->weights, g->start, fds__utility_network(g->utility)->weights * sizeof *w->weights);
}

/* A player's samples as one mini-batch. */
static fds_status step(const gshapley *g, worker *w, uint32_t player, float lr, fds_error *err) {
    const size_t first = g->first[player], count = g->first[player + 1] - first;
    fds_train_params params = fds_train_params_default();
    params.optimizer = FDS_OPTIMIZER_SGD;
    params.lr = lr;
    params.epochs = 1;
    params.batch = (uint32_t)count;
    return fds_lane_train(w->lane, g->utility->data->samples, g->members + first, count, &params,
                          w->weights, NULL, NULL, err);
}

/* out[columns]: the score of the network now. */
static fds_status score(const gshapley *g, worker *w, double *out, fds_error *err) {
    const fds_utility *u = g->utility;
    TRY(fds_lane_predict(w->lane, u->data->inputs, 0, u->inputs, w->weights, w->probs, err));
    for (size_t i = 0; i < u->inputs * u->classes; i++)
        w->answers[i] = w->probs[i];
    baseline_score(g->job->params->scorer, w->answers, g->job->data->labels, u->inputs, u->classes,
                   out);
    return FDS_OK;
}

/* ---- the learning rate ---- */

static double mean_of(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static fds_status try_rate(void *context, size_t run, unsigned number, fds_error *err) {
    const gshapley *g = context;
    const size_t players = g->job->players;
    worker *w = &g->workers[number];
    fds_status status = FDS_OK;
    baseline_permutation(g->job->params->seed, first_try + run % TRIES, players, w->permutation);
    begin(g, w);
    for (size_t j = 0; status == FDS_OK && j < players; j++)
        status = step(g, w, w->permutation[j], rates[run / TRIES], err);
    if (status == FDS_OK)
        status = score(g, w, w->score, err);
    g->scores[run] = status == FDS_OK ? mean_of(w->score, g->job->columns) : NAN;
    return status == FDS_ERR_DIVERGED ? FDS_OK : status;
}

/* Mean minus standard deviation of one rate's tries; NaN where one is NaN. */
static double grade(const double *scores) {
    double mean = mean_of(scores, TRIES), squares = 0;
    for (size_t i = 0; i < TRIES; i++)
        squares += (scores[i] - mean) * (scores[i] - mean);
    return mean - sqrt(squares / TRIES);
}

static fds_status find_rate(gshapley *g, fds_error *err) {
    TRY(fds__pool_run(g->job->params->threads, RATES * TRIES, try_rate, g, "search", "epochs",
                      g->job->events, err));
    double best = -INFINITY;
    for (size_t r = 0; r < RATES; r++) {
        double found = grade(g->scores + r * TRIES);
        if (found > best) {
            best = found;
            g->lr = rates[r];
        }
    }
    if (!(g->lr > 0))
        return fds__fail(err, FDS_ERR_DIVERGED,
                         "gshapley: the network diverges at every learning rate from %g to %g",
                         (double)rates[0], (double)rates[RATES - 1]);
    return FDS_OK;
}

/* ---- the walk ---- */

static fds_status take_walk(const gshapley *g, worker *w, const uint32_t *permutation,
                            double *values, fds_error *err) {
    const size_t columns = g->job->columns;
    begin(g, w);
    memcpy(values, g->empty, columns * sizeof *values);
    for (size_t j = 0; j < g->job->players; j++) {
        TRY(step(g, w, permutation[j], g->lr, err));
        TRY(score(g, w, values + (j + 1) * columns, err));
    }
    return FDS_OK;
}

static fds_status walk(void *context, unsigned number, const uint32_t *permutation, double *values,
                       size_t *end, fds_error *err) {
    const gshapley *g = context;
    fds_status status = take_walk(g, &g->workers[number], permutation, values, err);
    *end = g->job->players;
    if (status == FDS_ERR_DIVERGED)
        return fds__fail(
            err, status,
            "gshapley: the network diverged in one of the permutations, at the learning rate "
            "%g that was the best in %d others; use a smaller network or another seed",
            fds__decimal(g->lr), TRIES);
    return status;
}

static fds_status work(gshapley *g, fds_error *err) {
    baseline_job *job = g->job;
    TRY(make_utility(g, err));
    TRY(make_workers(g, err));
    begin(g, &g->workers[0]);
    TRY(score(g, &g->workers[0], g->empty, err));
    TRY(find_rate(g, err));
    TRY(baseline_walk(job, walk, g, err));
    job->report->lr = fds__decimal(g->lr);
    job->report->asked = job->report->permutations * job->players;
    return FDS_OK;
}

static fds_status run(baseline_job *job, fds_error *err) {
    gshapley g = {.job = job};
    fds_status status = work(&g, err);
    free_all(&g);
    return status;
}

const baseline_method baseline_gshapley = {
    .name = "gshapley",
    .about = "Data Shapley, by one pass of gradient descent",
    .takes = "permutations until draw model",
    .permutations = 1000,
    .until = 0.05,
    .needs_classes = true,
    .run = run,
};
