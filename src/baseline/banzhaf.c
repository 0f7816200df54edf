/* SPDX-License-Identifier: Apache-2.0
 *
 * Banzhaf values by maximum sample reuse: Wang and Jia, "Data Banzhaf", AISTATS 2023.
 *
 *     phi_i = mean over all coalitions S without i of v(S and i) - v(S)
 *
 * is the mean of v over the coalitions with i minus its mean over those without. Coalitions are
 * drawn with each player in or out with probability 1/2, and each serves all players. The two means
 * are of independent draws: the square of the standard error is the sum of theirs.
 *
 * A player who is in all coalitions drawn, or in none, has no estimate. All coalitions are drawn
 * before the first is trained, so this error costs nothing; its probability is n * 2^(1-m). With
 * one coalition on a side there is a value but no standard error.
 *
 * How many, where only epsilon and delta are given: utilities are within an interval of length 1.
 * Given who is in which coalitions, Hoeffding's inequality for a difference of means of m_1 and m_2
 * draws is P(|off_i| >= t) <= 2 exp(-2 t^2 / (1/m_1 + 1/m_2)). This is at most 2 exp(-3 m t^2 / 8)
 * if m/4 <= m_1 <= 3m/4, which fails with probability at most 2 exp(-m/8). With t = epsilon /
 * sqrt(n) for each of n players,
 *
 *     m = ln(4 n / delta) * max(8 n / (3 epsilon^2), 8)
 *
 * makes the Euclidean norm of all errors at most epsilon with probability 1 - delta.
 */
#include "baseline/baseline.h"

#include <math.h>

/* v over the coalitions of one side. */
typedef struct {
    double mean, squares; /* squares: sum of squared deviations from the mean */
} side;

typedef struct {
    const baseline_job *job;
    size_t drawn;
    size_t *with; /* (players): coalitions that each is in */
    size_t *seen; /* (players, 2): coalitions added so far, without and with the player */
    side *sides;  /* (players, 2, columns) */
} banzhaf;

/* ---- drawing ---- */

static void draw(void *context, size_t number, uint64_t *bits) {
    const baseline_job *job = ((const banzhaf *)context)->job;
    fds_rng rng = fds_rng_make(job->params->seed, FDS__PURPOSE_SUBSET, number, 0);
    size_t words = fds_coalition_words(job->players);
    for (size_t w = 0; w < words; w++)
        bits[w] = fds_rng_u64(&rng);
    if (job->players % 64)
        bits[words - 1] &= ((uint64_t)1 << (job->players % 64)) - 1;
}

static double most(const fds_params *params, size_t players, uint32_t classes) {
    (void)classes;
    double n = (double)players, epsilon = params->epsilon;
    return params->coalitions
               ? (double)params->coalitions
               : ceil(log(4 * n / params->delta) * fmax(8 * n / (3 * epsilon * epsilon), 8));
}

/* Every player must be in some coalitions, but not in all; bits: scratch for one coalition. */
static fds_status check_draws(banzhaf *b, uint64_t *bits, fds_error *err) {
    for (size_t k = 0; k < b->drawn; k++) {
        draw(b, k, bits);
        for (size_t i = 0; i < b->job->players; i++)
            b->with[i] += fds_coalition_has(bits, i);
    }
    for (size_t i = 0; i < b->job->players; i++)
        if (b->with[i] == 0 || b->with[i] == b->drawn)
            return fds__fail(err, FDS_ERR_USAGE,
                             "player %zu is in %s of the %zu coalitions that were drawn, so there "
                             "is nothing to compare: give more `coalitions`, or another `seed`",
                             i, b->with[i] ? "all" : "none", b->drawn);
    return FDS_OK;
}

/* ---- adding up, in the order of the coalitions' numbers ---- */

static void add(void *context, size_t number, const uint64_t *bits, const double *v) {
    (void)number;
    banzhaf *b = context;
    size_t columns = b->job->columns;
    for (size_t i = 0; i < b->job->players; i++) {
        size_t which = 2 * i + fds_coalition_has(bits, i);
        double share = 1 / (double)++b->seen[which];
        side *sides = b->sides + which * columns;
        for (size_t c = 0; c < columns; c++) {
            double off = v[c] - sides[c].mean;
            sides[c].mean += off * share;
            sides[c].squares += off * (v[c] - sides[c].mean);
        }
    }
}

/* Squared standard error of a side's mean; NaN for one coalition. */
static double variance(const side *s, size_t count) {
    return count > 1 ? s->squares / ((double)count * (double)(count - 1)) : NAN;
}

static void finish(const banzhaf *b) {
    size_t columns = b->job->columns;
    for (size_t i = 0; i < b->job->players; i++) {
        const side *without = b->sides + 2 * i * columns, *with = without + columns;
        for (size_t c = 0; c < columns; c++) {
            size_t at = i * columns + c;
            b->job->values[at] = with[c].mean - without[c].mean;
            if (b->job->errors)
                b->job->errors[at] = sqrt(variance(&without[c], b->seen[2 * i]) +
                                          variance(&with[c], b->seen[2 * i + 1]));
        }
    }
}

static fds_status run(baseline_job *job, fds_error *err) {
    size_t n = job->players;
    banzhaf b = {
        .job = job,
        .with = baseline_alloc(job, n, 1, sizeof *b.with),
        .seen = baseline_alloc(job, n, 2, sizeof *b.seen),
        .sides = baseline_alloc(job, 2 * n, job->columns, sizeof *b.sides),
    };
    uint64_t *bits = baseline_alloc(job, fds_coalition_words(n), 1, sizeof *bits);
    TRY(baseline_check_memory(job, err));
    TRY(baseline_count(&baseline_banzhaf, job->params, n, job->classes, &b.drawn, err));
    TRY(check_draws(&b, bits, err));
    TRY(baseline_ask_all(job, b.drawn, draw, add, &b, err));
    finish(&b);
    return FDS_OK;
}

/* Our bound is wide: this epsilon makes about 2,000 coalitions for 100 players. */
const baseline_method baseline_banzhaf = {
    .name = "banzhaf",
    .about = "Banzhaf values",
    .takes = "coalitions epsilon delta draw",
    .epsilon = 1,
    .least_coalitions = 2, /* nothing can be compared in one */
    .run = run,
    .most = most,
};
