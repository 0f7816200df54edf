/* SPDX-License-Identifier: Apache-2.0
 *
 * Random permutations of the players, and the mean of what each player adds over them.
 *
 * A player's value is the mean of its marginals over the permutations, its standard error the standard
 * deviation of one marginal over the square root of their number. Orders are independent, so both
 * are right whatever the game.
 *
 * When to stop is the rule of Ghorbani and Zou, "Data Shapley", ICML 2019, section 3: the mean over
 * the players of |phi_t - phi_(t-100)| / |phi_t| is below a bound. To the denominator their program
 * adds 1e-12, so that a player who never adds anything does not divide by 0; so does this one.
 *
 * Orders are walked in rounds and added up one after the other by their numbers: the sums do not
 * depend on threads, nor on how many permutations a round has.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

enum { LOOK_BACK = 100 }; /* permutations between two looks at the change */
/* of the prefixes' values in a round; more only where the workers' first permutations have more */
#define ROUND_BYTES ((size_t)64 << 20)

void baseline_permutation(uint64_t seed, uint64_t number, size_t players, uint32_t *order) {
    fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_PERMUTE, number, 0);
    for (size_t i = 0; i < players; i++)
        order[i] = (uint32_t)i;
    fds_rng_shuffle(&rng, order, players);
}

/* ---- running means ---- */

struct baseline_means {
    size_t size, count; /* players * columns; permutations */
    double change;
    double *mean;    /* (players, columns) */
    double *squares; /* (players, columns): sums of squared deviations from the mean */
    double *earlier; /* (players, columns): the means at the last multiple of LOOK_BACK */
};

fds_status baseline_means_create(size_t players, size_t columns, baseline_means **out,
                                 fds_error *err) {
    size_t size;
    baseline_means *m = fds__alloc_zero(1, sizeof *m);
    double *scratch =
        fds__mul(players, columns, &size) ? fds__alloc_zero(size, 3 * sizeof *scratch) : NULL;
    if (!m || !scratch) {
        fds__free(m);
        fds__free(scratch);
        return fds__fail_nomem(err, size);
    }
    *m = (baseline_means){.size = size,
                          .change = NAN,
                          .mean = scratch,
                          .squares = scratch + size,
                          .earlier = scratch + 2 * size};
    *out = m;
    return FDS_OK;
}

void baseline_means_free(baseline_means *means) {
    if (means)
        fds__free(means->mean);
    fds__free(means);
}

/* Players and games all have as many terms, so the mean over both is one mean. */
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

size_t baseline_means_count(const baseline_means *means) { return means->count; }

void baseline_means_get(const baseline_means *means, double *values, double *errors) {
    double t = (double)means->count;
    memcpy(values, means->mean, means->size * sizeof *values);
    for (size_t i = 0; errors && i < means->size; i++)
        errors[i] = means->count > 1 ? sqrt(means->squares[i] / (t * (t - 1))) : NAN;
}

static bool has_converged(const fds_params *params, const baseline_means *means) {
    return params->until > 0 && means->change < params->until; /* NaN is not */
}

void baseline_means_tell(const fds_params *params, const baseline_means *means,
                         fds__baseline_report *report) {
    report->permutations = means->count;
    report->change = means->change;
    report->has_converged = has_converged(params, means);
}

bool baseline_goes_on(const fds_params *params, const baseline_means *means) {
    return means->count < params->permutations && !has_converged(params, means);
}

bool baseline_is_near(const fds_params *params, size_t columns, const double *value,
                      const double *full) {
    double off = 0, size = 0;
    for (size_t c = 0; c < columns; c++) {
        off += fabs(value[c] - full[c]);
        size += fabs(full[c]);
    }
    return params->truncate > 0 && off <= params->truncate * size;
}

/* ---- walking ---- */

typedef struct {
    const baseline_walker *walker;
    const fds_params *params;
    uint64_t first;         /* the number of the round's first order */
    size_t round;           /* permutations at the most */
    uint32_t *permutations; /* (round, players) */
    double *values;         /* (round, players + 1, columns) */
    size_t *ends;           /* (round) */
    double *marginals;      /* (players, columns) */
} walking;

static void walking_free(walking *w) {
    fds__free(w->permutations);
    fds__free(w->values);
    fds__free(w->ends);
    fds__free(w->marginals);
}

static fds_status walking_make(walking *w, fds_error *err) {
    size_t n = w->walker->players, columns = w->walker->columns, size;
    if (!fds__mul(n + 1, columns, &size) || size > SIZE_MAX / sizeof(double) / BASELINE_ROUND)
        return fds__fail_nomem(err, SIZE_MAX);
    size_t workers = fds__pool_workers(w->params->threads, BASELINE_ROUND);
    w->round = MAX(ROUND_BYTES / (size * sizeof(double)), workers);
    w->round = MIN(w->round, (size_t)BASELINE_ROUND);
    w->permutations = fds__alloc_zero(w->round * n, sizeof *w->permutations);
    w->values = fds__alloc_zero(w->round * size, sizeof *w->values);
    w->ends = fds__alloc_zero(w->round, sizeof *w->ends);
    w->marginals = fds__alloc_zero(n * columns, sizeof *w->marginals);
    return w->permutations && w->values && w->ends && w->marginals
               ? FDS_OK
               : fds__fail_nomem(err, w->round * size * sizeof *w->values);
}

static fds_status walk_one(void *context, size_t job, unsigned worker, fds_error *err) {
    walking *w = context;
    size_t n = w->walker->players;
    uint32_t *order = w->permutations + job * n;
    baseline_permutation(w->params->seed, w->first + job, n, order);
    TRY(w->walker->walk(w->walker->context, worker, order,
                        w->values + job * (n + 1) * w->walker->columns, &w->ends[job], err));
    return w->ends[job] <= n
               ? FDS_OK
               : fds__fail(err, FDS_ERR_LIMIT, "order %llu: %zu places of %zu players",
                           (unsigned long long)w->first + job, w->ends[job], n);
}

/* The marginals of one order, by player; returns how many places were not looked at. */
static size_t take_marginals(walking *w, size_t job) {
    size_t n = w->walker->players, columns = w->walker->columns, end = w->ends[job];
    const uint32_t *order = w->permutations + job * n;
    const double *value = w->values + job * (n + 1) * columns;
    for (size_t place = 0; place < n; place++, value += columns) {
        double *marginal = w->marginals + order[place] * columns;
        for (size_t c = 0; c < columns; c++)
            marginal[c] = place < end ? value[columns + c] - value[c] : 0;
    }
    return n - end;
}

/* All rounds; skipped counts the places that were not looked at. */
static fds_status walk_rounds(walking *w, baseline_means *means, size_t *skipped,
                              const fds_events *events, fds_error *err) {
    const fds_params *params = w->params;
    double start_s = fds__now_s();
    while (baseline_goes_on(params, means)) {
        w->first = means->count;
        size_t count = MIN(w->round, params->permutations - means->count);
        /* not beyond a look at the change, whatever the size of a round */
        count = MIN(count, LOOK_BACK - means->count % LOOK_BACK);
        TRY(fds__pool_run(params->threads, count, walk_one, w, "permutations", "permutations", NULL,
                          err));
        for (size_t i = 0; i < count; i++) {
            *skipped += take_marginals(w, i);
            baseline_means_add(means, w->marginals);
        }
        TRY(fds__report(events, "permutations", "permutations", means->count, params->permutations,
                        start_s, err));
    }
    return FDS_OK;
}

fds_status baseline_walk(const baseline_walker *walker, const fds_params *params, double *values,
                         double *errors, fds__baseline_report *report, const fds_events *events,
                         fds_error *err) {
    walking w = {.walker = walker, .params = params};
    baseline_means *means = NULL;
    size_t skipped = 0;
    fds_status status = walking_make(&w, err);
    if (status == FDS_OK)
        status = baseline_means_create(walker->players, walker->columns, &means, err);
    if (status == FDS_OK)
        status = walk_rounds(&w, means, &skipped, events, err);
    if (status == FDS_OK) {
        baseline_means_get(means, values, errors);
        baseline_means_tell(params, means, report);
        report->truncated = (double)skipped / ((double)means->count * (double)walker->players);
    }
    baseline_means_free(means);
    walking_free(&w);
    return status;
}
