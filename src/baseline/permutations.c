/* SPDX-License-Identifier: Apache-2.0
 *
 * Random permutations of the players, and the means of the players' marginals over them.
 *
 * A player's value is the mean of its marginals over the permutations; its standard error is the
 * standard deviation of one marginal over the square root of their number. Permutations are
 * independent, so both are right whatever the game.
 *
 * When to stop is the rule of Ghorbani and Zou, "Data Shapley", ICML 2019, section 3: the mean over
 * the players of |phi_t - phi_(t-100)| / |phi_t| is below a bound. Their program adds 1e-12 to the
 * denominator, so that a player who never adds anything does not divide by 0; so does this one.
 *
 * Permutations are walked in rounds and added up in the order of their numbers: the sums depend
 * neither on threads nor on how many permutations a round has.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

enum { LOOK_BACK = 100 }; /* permutations between two looks at the change */
/* A permutation is truncated when more places than this in a row were near v(N). */
enum { NEAR_PLACES = 5 };
/* of the prefixes' values in a round; more only where one permutation per worker needs more */
#define ROUND_BYTES ((size_t)64 << 20)

void baseline_permutation(uint64_t seed, uint64_t number, size_t players, uint32_t *permutation) {
    fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_PERMUTE, number, 0);
    for (size_t i = 0; i < players; i++)
        permutation[i] = (uint32_t)i;
    fds_rng_shuffle(&rng, permutation, players);
}

/* ---- running means ---- */

baseline_means baseline_means_make(baseline_job *job) {
    return (baseline_means){
        .size = job->players * job->columns,
        .change = NAN,
        .mean = baseline_alloc(job, job->players, job->columns, sizeof(double)),
        .squares = baseline_alloc(job, job->players, job->columns, sizeof(double)),
        .earlier = baseline_alloc(job, job->players, job->columns, sizeof(double)),
    };
}

/* Every game has the same number of players, so the mean over players and games is one mean. */
static double relative_change(const baseline_means *m) {
    double sum = 0;
    for (size_t i = 0; i < m->size; i++)
        sum += fabs(m->mean[i] - m->earlier[i]) / (fabs(m->mean[i]) + 1e-12);
    return sum / (double)m->size;
}

/* Welford's recurrence: no cancellation, however small the spread. */
void baseline_means_add(baseline_means *means, const double *marginals) {
    double share = 1 / (double)++means->count;
    for (size_t i = 0; i < means->size; i++) {
        double off = marginals[i] - means->mean[i];
        means->mean[i] += off * share;
        means->squares[i] += off * (marginals[i] - means->mean[i]);
    }
    if (means->count % LOOK_BACK)
        return;
    if (means->count > LOOK_BACK)
        means->change = relative_change(means);
    memcpy(means->earlier, means->mean, means->size * sizeof *means->mean);
}

static bool has_converged(const baseline_means *means, const fds_params *params) {
    return params->until > 0 && means->change < params->until; /* NaN is not */
}

/* No round goes beyond a look at the change. */
size_t baseline_means_next(const baseline_means *means, const fds_params *params, size_t most) {
    size_t left = params->permutations - means->count;
    return has_converged(means, params)
               ? 0
               : MIN(MIN(left, most), LOOK_BACK - means->count % LOOK_BACK);
}

void baseline_means_finish(const baseline_means *means, baseline_job *job, size_t players,
                           size_t skipped) {
    double t = (double)means->count, places = t * (double)players;
    memcpy(job->values, means->mean, means->size * sizeof *job->values);
    for (size_t i = 0; job->errors && i < means->size; i++)
        job->errors[i] = means->count > 1 ? sqrt(means->squares[i] / (t * (t - 1))) : NAN;
    job->report->permutations = means->count;
    job->report->change = means->change;
    job->report->has_converged = has_converged(means, job->params);
    job->report->truncated = places > 0 ? (double)skipped / places : 0;
}

bool baseline_walks_on(const fds_params *params, size_t columns, const double *value,
                       const double *full, unsigned *near) {
    double off = 0, size = 0;
    for (size_t c = 0; c < columns; c++) {
        off += fabs(value[c] - full[c]);
        size += fabs(full[c]);
    }
    bool is_near = params->truncate > 0 && off <= params->truncate * size;
    *near = is_near ? *near + 1 : 0;
    return *near <= NEAR_PLACES;
}

/* ---- walking ---- */

typedef struct {
    const baseline_job *job;
    baseline_walker walk;
    void *context;
    uint64_t first;         /* the number of the round's first permutation */
    uint32_t *permutations; /* (round, players) */
    double *values;         /* (round, players + 1, columns) */
    size_t *ends;           /* (round) */
    double *marginals;      /* (players, columns) */
} walking;

static fds_status walk_one(void *context, size_t i, unsigned worker, fds_error *err) {
    walking *w = context;
    size_t n = w->job->players;
    uint32_t *permutation = w->permutations + i * n;
    baseline_permutation(w->job->params->seed, w->first + i, n, permutation);
    return w->walk(w->context, worker, permutation, w->values + i * (n + 1) * w->job->columns,
                   &w->ends[i], err);
}

/* Sets the marginals of one permutation, by player; returns how many places were skipped. */
static size_t take_marginals(walking *w, size_t i) {
    size_t n = w->job->players, columns = w->job->columns, end = w->ends[i];
    const uint32_t *permutation = w->permutations + i * n;
    const double *value = w->values + i * (n + 1) * columns;
    assert(end <= n);
    for (size_t place = 0; place < n; place++, value += columns) {
        double *marginal = w->marginals + permutation[place] * columns;
        for (size_t c = 0; c < columns; c++)
            marginal[c] = place < end ? value[columns + c] - value[c] : 0;
    }
    return n - end;
}

fds_status baseline_walk(baseline_job *job, baseline_walker walk, void *context, fds_error *err) {
    const fds_params *params = job->params;
    size_t n = job->players, columns = job->columns, skipped = 0, count;
    size_t most = MAX(ROUND_BYTES / ((n + 1) * columns * sizeof(double)),
                      fds__pool_workers(params->threads, BASELINE_ROUND));
    most = MIN(most, (size_t)BASELINE_ROUND);
    walking w = {
        .job = job,
        .walk = walk,
        .context = context,
        .permutations = baseline_alloc(job, most, n, sizeof *w.permutations),
        .values = baseline_alloc(job, most * (n + 1), columns, sizeof *w.values),
        .ends = baseline_alloc(job, most, 1, sizeof *w.ends),
        .marginals = baseline_alloc(job, n, columns, sizeof *w.marginals),
    };
    baseline_means means = baseline_means_make(job);
    TRY(baseline_check_memory(job, err));
    double start_s = fds__now_s();
    while ((count = baseline_means_next(&means, params, most)) > 0) {
        w.first = means.count;
        TRY(fds__pool_run(params->threads, count, walk_one, &w, "permutations", "permutations",
                          NULL, err));
        for (size_t i = 0; i < count; i++) {
            skipped += take_marginals(&w, i);
            baseline_means_add(&means, w.marginals);
        }
        TRY(fds__report(job->events, "permutations", "permutations", means.count,
                        params->permutations, start_s, err));
    }
    baseline_means_finish(&means, job, n, skipped);
    return FDS_OK;
}
