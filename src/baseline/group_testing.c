/* SPDX-License-Identifier: Apache-2.0
 *
 * Group testing: Shapley values from the utilities of T random coalitions, each of which tells
 * something about all players at once.
 *
 * Coalition t of N players has k members with probability q_k = (1/k + 1/(N-k)) / Z, where
 * Z = 2 (1 + 1/2 + ... + 1/(N-1)), and is uniform among those of its size. With u_t its utility and
 * b_ti = 1 when i is a member, the mean of Z u_t (b_ti - b_tj) is phi_i - phi_j.
 *
 * The original form (Jia et al., "Towards efficient data valuation based on the Shapley value",
 * AISTATS 2019, Algorithm 1) estimates all differences D_ij = Z/T sum_t u_t (b_ti - b_tj) and
 * accepts any values s with
 *     sum_i s_i = U(N) - U(0)   and   |s_i - s_j - D_ij| <= epsilon / (2 sqrt N) for all i, j.
 * No solver is needed: D_ij = g_i - g_j with g_i = Z/T sum_t u_t b_ti, so that
 *     s_i = g_i - (mean of g) + (U(N) - U(0)) / N
 * has s_i - s_j = D_ij for all pairs at once. It meets every constraint, whatever epsilon is, and
 * is the one least-squares solution, because differences and sum together fix all s_i. When each
 * D_ij is as near to the truth as the constraints allow, the error of s_i is the mean over j of
 * such errors, and that of s is at most epsilon / 2 in Euclidean norm.
 *
 * The improved form (Wang and Jia, "A note on 'Towards efficient data valuation based on the
 * Shapley value'", 2023, Algorithm 2) draws from N = n + 1 players, the last a dummy who adds
 * nothing to any coalition, so its value is 0: s_i = Z/T sum_t u_t (b_ti - b_t,dummy). These
 * need not add up to U(N) - U(0).
 *
 * Both are means over t of Z u_t (b_ti - base_t), with base_t = k_t / N (and the constant added) or
 * b_t,dummy; the spread of these numbers gives the standard errors.
 *
 * How many coalitions, for a utility within 0 .. r: Z u_t (b_ti - b_tj) is at most Z r, and not 0
 * with probability sum_k q_k 2k(N-k) / (N(N-1)) = 2/Z, which the papers write 1 - q_tot. By
 * Bennett's inequality the mean of T such is off by more than x with a probability of at most
 *     2 exp(-T (2/Z) h(x / 2r)),   h(u) = (1 + u) log(1 + u) - u.
 * So all differences (original) or all values (improved) are near enough with probability 1 - delta
 * when
 *     original:  T >= Z/2 log(n(n-1) / delta) / h(epsilon / (4 r sqrt n))
 *     improved:  T >= Z/2 log(2n / delta) / h(epsilon / (2 r sqrt n))
 * The first is Theorem 4 of the note. It replaces Theorem 3 of the first paper,
 *     T >= 8 log(n(n-1) / 2 delta) / ((1 - q_tot^2) h(2 epsilon / (Z r sqrt n (1 - q_tot^2)))),
 * which needs a seventh fewer for n = 100, but does not follow from Bennett's inequality.
 *
 * For n = 100, r = 1 and delta = 0.1, epsilon = 1, 2, 5 and 10 need 192,157, 48,432, 7,935 and
 * 2,059 coalitions (original), 32,065, 8,145, 1,363 and 365 (improved). Values of an accuracy are
 * of the order of 1/n and real errors are far below the bound: in practice, give T, or an epsilon
 * of this size. The standard errors say what was reached. */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

typedef struct {
    baseline_job *job;
    size_t drawn_from;  /* players, with the dummy */
    double harmonic;    /* 1 + 1/2 + ... + 1/(drawn_from - 1) = Z/2 */
    size_t tests;       /* T */
    double *base;       /* (T) */
    double *sum, *sum2; /* (players, columns): of Z u (b - base), and of its square */
} testing;

/* ---- how many ---- */

static double bennett_h(double u) { return (1 + u) * log1p(u) - u; }

static double harmonic_number(size_t drawn_from) {
    double sum = 0;
    for (size_t k = 1; k < drawn_from; k++)
        sum += 1 / (double)k;
    return sum;
}

/* A single player of the original form needs no tests. */
static double count_tests(const fds_params *p, size_t players) {
    double n = (double)players;
    if (players + p->form == 1)
        return 0;
    if (p->coalitions > 0)
        return (double)p->coalitions;
    double events = p->form ? 2 * n : n * (n - 1);
    double u = p->epsilon / ((p->form ? 2 : 4) * sqrt(n));
    return ceil(harmonic_number(players + p->form) * log(events / p->delta) / bennett_h(u));
}

/* The original form asks for none and for all as well. */
static double most(const fds_params *params, size_t players, uint32_t classes) {
    (void)classes;
    return count_tests(params, players) + (params->form ? 0 : 2);
}

/* ---- drawing ---- */

/* 1/k + 1/(N-k): k with weight 1/k, then k or N-k with probability 1/2. */
static size_t draw_size(const testing *g, fds_rng *rng) {
    double target = fds_rng_unit(rng) * g->harmonic;
    size_t k = 1;
    while (k < g->drawn_from - 1 && (target -= 1 / (double)k) >= 0)
        k++;
    return fds_rng_below(rng, 2) ? k : g->drawn_from - k;
}

/* Coalition number t, a function of (seed, t) and the form alone. Each player in turn is taken with
 * probability (places left) / (players left); the dummy comes last. */
static void draw(void *context, size_t t, uint64_t *bits) {
    const testing *g = context;
    size_t n = g->job->players;
    fds_rng rng = fds_rng_make(g->job->params->seed, FDS__PURPOSE_SUBSET, t, 0);
    size_t size = draw_size(g, &rng), left = size;
    for (size_t i = 0; i < n; i++)
        if (fds_rng_below(&rng, g->drawn_from - i) < left) {
            fds__coalition_add(bits, i);
            left--;
        }
    bool has_dummy = left > 0;
    g->base[t] = g->job->params->form ? has_dummy : (double)size / (double)n;
}

/* ---- adding up ---- */

static void add(void *context, size_t t, const uint64_t *bits, const double *v) {
    const testing *g = context;
    size_t columns = g->job->columns;
    for (size_t i = 0; i < g->job->players; i++) {
        double weight = 2 * g->harmonic * ((double)fds_coalition_has(bits, i) - g->base[t]);
        double *sum = g->sum + i * columns, *sum2 = g->sum2 + i * columns;
        for (size_t c = 0; c < columns; c++) {
            double y = weight * v[c];
            sum[c] += y;
            sum2[c] += y * y;
        }
    }
}

/* Even shares of U(N) - U(0), to which the original form adds. */
static fds_status share_evenly(baseline_job *job, fds_error *err) {
    size_t n = job->players, columns = job->columns;
    double *ends = baseline_alloc(job, 2, columns, sizeof *ends);
    TRY(baseline_check_memory(job, err));
    TRY(baseline_ask_ends(job, ends, err));
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < columns; c++)
            job->values[i * columns + c] = (ends[columns + c] - ends[c]) / (double)n;
    return FDS_OK;
}

/* Adds the means to the values. */
static void finish(testing *g) {
    double tests = (double)g->tests;
    size_t count = g->job->players * g->job->columns;
    for (size_t i = 0; i < count && g->tests > 0; i++)
        g->job->values[i] += g->sum[i] / tests;
    for (size_t i = 0; i < count && g->job->errors; i++) {
        double variance = (g->sum2[i] - g->sum[i] * g->sum[i] / tests) / (tests - 1);
        g->job->errors[i] = g->tests > 1 ? sqrt(fmax(variance, 0) / tests) : g->tests ? NAN : 0;
    }
}

static fds_status run(baseline_job *job, fds_error *err) {
    size_t n = job->players, columns = job->columns, most;
    testing g = {.job = job, .drawn_from = n + job->params->form};
    TRY(baseline_count(&baseline_group_testing, job->params, n, job->classes, &most, err));
    g.tests = most - (job->params->form ? 0 : 2);
    g.harmonic = harmonic_number(g.drawn_from);
    g.base = baseline_alloc(job, g.tests, 1, sizeof *g.base);
    g.sum = baseline_alloc(job, n, columns, sizeof *g.sum);
    g.sum2 = baseline_alloc(job, n, columns, sizeof *g.sum2);
    TRY(baseline_check_memory(job, err));
    memset(job->values, 0, n * columns * sizeof *job->values);
    if (!job->params->form)
        TRY(share_evenly(job, err));
    TRY(baseline_ask_all(job, g.tests, draw, add, &g, err));
    finish(&g);
    return FDS_OK;
}

/* The authors' bound is wide: this epsilon makes about 2,000 coalitions for 100 players. */
const baseline_method baseline_group_testing = {
    .name = "group-testing",
    .about = "from random coalitions",
    .takes = "coalitions epsilon delta form draw",
    .epsilon = 10,
    .least_coalitions = 1,
    .run = run,
    .most = most,
};
