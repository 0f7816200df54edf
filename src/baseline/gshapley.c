/* SPDX-License-Identifier: Apache-2.0
 *
 * G-Shapley: Ghorbani and Zou, "Data Shapley: Equitable valuation of data for machine learning",
 * ICML 2019, Algorithm 2. No sub-model is trained: one epoch of gradient descent goes through the
 * players in a random order pi, from the initial network w_0 on,
 *
 *     w_j   = w_(j-1) - lr * gradient at w_(j-1) of the mean loss of player pi(j)'s samples
 *     phi_i = mean over permutations of  V(w_j) - V(w_(j-1)),  where i = pi(j),
 *
 * V being what the scorer says of the network. Every step is looked at; nothing is truncated. The
 * values sum to the mean of V(w_n) - V(w_0).
 *
 * The learning rate is found as in the authors' own program: for each of 10^-1, 10^-1.5 ... 10^-4.5
 * ten epochs, each from w_0 in another order; the rate with the highest mean minus standard
 * deviation of V(w_n) is taken, of several the largest. V here is the scorer's too, where that has a
 * game for every test sample the mean over them. A rate at which the network diverges in any of
 * these permutations is out. The permutations of the search are none of those that are walked.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

/* 10^-1, 10^-1.5, ... in seven digits: what the report says is what was used, to the bit. */
static const float rates[] = {1e-1f, 3.162278e-2f, 1e-2f, 3.162278e-3f,
                              1e-3f, 3.162278e-4f, 1e-4f, 3.162278e-5f};
enum { RATES = sizeof rates / sizeof *rates, TRIES = 10 };
static const uint64_t first_try = (uint64_t)1 << 63; /* its order: far from those that are walked */

/* A worker's own. */
typedef struct {
    fds_lane *lane;
    float *weights;  /* (net) */
    float *probs;    /* (inputs, classes) */
    double *answers; /* the same */
    uint32_t *order; /* (players): of a try */
    double *verdict; /* (columns): of a try */
} desk;

typedef struct {
    baseline_job *job;
    fds_utility *value; /* for its samples and inputs, normalised, and its network */
    float *start;       /* (net): w_0 */
    uint32_t *members;  /* (samples): positions within the samples, player by player */
    size_t *first;      /* (players + 1): where each player's members begin */
    size_t most;        /* members of one player */
    double *empty;      /* (columns): V(w_0) */
    float lr;           /* of the walk */
    double *scores;     /* (RATES, TRIES): NaN where it diverged */
    unsigned workers;
    desk *desks; /* (workers) */
} gshapley;

/* ---- making and freeing ---- */

static void free_all(gshapley *g) {
    for (unsigned w = 0; g->desks && w < g->workers; w++) {
        desk *d = &g->desks[w];
        fds_lane_free(d->lane);
        fds__free(d->weights);
        fds__free(d->probs);
        fds__free(d->answers);
        fds__free(d->order);
        fds__free(d->verdict);
    }
    fds__free(g->desks);
    fds__free(g->start);
    fds__free(g->members);
    fds__free(g->first);
    fds__free(g->empty);
    fds__free(g->scores);
    fds_utility_free(g->value);
}

/* The samples, the inputs and the network as the value function "retrain" has them. */
static fds_status make_value(gshapley *g, fds_error *err) {
    const fds__baseline_data *data = g->job->data;
    fds__utility_params params = fds__utility_params_default();
    params.kind = "retrain:1";
    if (data->value) {
        params.network = data->value->network;
        params.train.seed = data->value->train.seed;
    }
    TRY(fds__utility_create(&params, data->problem->train, data->problem->players,
                            data->problem->test, data->problem->tests, data->problem->test_count, 1,
                            &g->value, err));
    const fds_net *net = fds__utility_network(g->value);
    g->start = fds__alloc_zero(net->weights, sizeof *g->start);
    if (!g->start)
        return fds__fail_nomem(err, net->weights * sizeof *g->start);
    fds_net_init(net, params.train.seed, g->start);
    return FDS_OK;
}

static fds_status list_members(gshapley *g, fds_error *err) {
    TRY(fds__utility_by_player(g->value->data, &g->members, &g->first, err));
    for (size_t p = 0; p < g->job->players; p++)
        g->most = MAX(g->most, g->first[p + 1] - g->first[p]);
    return FDS_OK;
}

static fds_status set_worker(const gshapley *g, desk *d, fds_error *err) {
    const fds_net *net = fds__utility_network(g->value);
    const size_t answers = g->value->inputs * g->value->classes;
    TRY(fds_lane_create(net, &d->lane, err));
    TRY(fds__lane_reserve(d->lane, g->most, err));
    d->weights = fds__alloc_zero(net->weights, sizeof *d->weights);
    d->probs = fds__alloc_zero(answers, sizeof *d->probs);
    d->answers = fds__alloc_zero(answers, sizeof *d->answers);
    d->order = fds__alloc_zero(g->job->players, sizeof *d->order);
    d->verdict = fds__alloc_zero(g->job->columns, sizeof *d->verdict);
    if (!d->weights || !d->probs || !d->answers || !d->order || !d->verdict)
        return fds__fail_nomem(err, net->weights * sizeof *d->weights + answers * sizeof(double));
    return FDS_OK;
}

static fds_status make_all(gshapley *g, fds_error *err) {
    TRY(make_value(g, err));
    TRY(list_members(g, err));
    const unsigned threads = g->job->params->threads;
    g->workers =
        MAX(fds__pool_workers(threads, BASELINE_ROUND), fds__pool_workers(threads, RATES * TRIES));
    g->empty = fds__alloc_zero(g->job->columns, sizeof *g->empty);
    g->scores = fds__alloc_zero(RATES * TRIES, sizeof *g->scores);
    g->desks = fds__alloc_zero(g->workers, sizeof *g->desks);
    if (!g->empty || !g->scores || !g->desks)
        return fds__fail_nomem(err, g->workers * sizeof *g->desks);
    for (unsigned w = 0; w < g->workers; w++)
        TRY(set_worker(g, &g->desks[w], err));
    return FDS_OK;
}

/* ---- one epoch ---- */

static void begin(const gshapley *g, desk *d) {
    memcpy(d->weights, g->start, fds__utility_network(g->value)->weights * sizeof *d->weights);
}

/* A player's samples as one mini-batch. */
static fds_status step(const gshapley *g, desk *d, uint32_t player, float lr, fds_error *err) {
    const size_t first = g->first[player], count = g->first[player + 1] - first;
    fds_train_params params = fds_train_params_default();
    params.optimizer = FDS_OPTIMIZER_SGD;
    params.lr = lr;
    params.epochs = 1;
    params.batch = (uint32_t)count;
    return fds_lane_train(d->lane, g->value->data->samples, g->members + first, count, &params,
                          d->weights, NULL, NULL, err);
}

/* What the scorer says of the network now: out[columns]. */
static fds_status look(const gshapley *g, desk *d, double *out, fds_error *err) {
    const fds_utility *value = g->value;
    TRY(fds_lane_predict(d->lane, value->data->inputs, 0, value->inputs, d->weights, d->probs,
                         err));
    for (size_t i = 0; i < value->inputs * value->classes; i++)
        d->answers[i] = d->probs[i];
    baseline_score(g->job->params->scorer, d->answers, g->job->data->labels, value->inputs,
                   value->classes, out);
    return FDS_OK;
}

/* ---- the learning rate ---- */

static double mean_of(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static fds_status try_rate(void *context, size_t run, unsigned worker, fds_error *err) {
    const gshapley *g = context;
    const size_t players = g->job->players;
    desk *d = &g->desks[worker];
    fds_status status = FDS_OK;
    baseline_permutation(g->job->params->seed, first_try + run % TRIES, players, d->order);
    begin(g, d);
    for (size_t j = 0; status == FDS_OK && j < players; j++)
        status = step(g, d, d->order[j], rates[run / TRIES], err);
    if (status == FDS_OK)
        status = look(g, d, d->verdict, err);
    g->scores[run] = status == FDS_OK ? mean_of(d->verdict, g->job->columns) : NAN;
    return status == FDS_ERR_DIVERGED ? FDS_OK : status;
}

/* Mean minus standard deviation of one rate's tries; NaN where one is. */
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

static fds_status take_walk(const gshapley *g, desk *d, const uint32_t *order, double *values,
                            fds_error *err) {
    const size_t columns = g->job->columns;
    begin(g, d);
    memcpy(values, g->empty, columns * sizeof *values);
    for (size_t j = 0; j < g->job->players; j++) {
        TRY(step(g, d, order[j], g->lr, err));
        TRY(look(g, d, values + (j + 1) * columns, err));
    }
    return FDS_OK;
}

static fds_status walk(void *context, unsigned worker, const uint32_t *order, double *values,
                       size_t *end, fds_error *err) {
    const gshapley *g = context;
    fds_status status = take_walk(g, &g->desks[worker], order, values, err);
    *end = g->job->players;
    if (status == FDS_ERR_DIVERGED)
        return fds__fail(
            err, status,
            "gshapley: the network diverged in one of the permutations, at the learning rate "
            "%g that %d others had found best; take a smaller network or another seed",
            fds__decimal(g->lr), TRIES);
    return status;
}

static fds_status work(gshapley *g, fds_error *err) {
    baseline_job *job = g->job;
    TRY(make_all(g, err));
    begin(g, &g->desks[0]);
    TRY(look(g, &g->desks[0], g->empty, err));
    TRY(find_rate(g, err));
    const baseline_walker walker = {job->players, job->columns, walk, g};
    TRY(baseline_walk(&walker, job->params, job->values, job->errors, job->report, job->events,
                      err));
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
    .scorers = BASELINE_ANY_SCORER,
    .permutations = 1000,
    .until = 0.05,
    .run = run,
};
