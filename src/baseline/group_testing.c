/* SPDX-License-Identifier: Apache-2.0
 *
 * Group testing: Shapley values from what T random coalitions are worth, each of which tells
 * something of all players at once.
 *
 * Coalition t of N players has k members with probability q_k = (1/k + 1/(N-k)) / Z, where
 * Z = 2 (1 + 1/2 + ... + 1/(N-1)), and is uniform among those of its size. With u_t its worth and
 * b_ti = 1 when i is a member, the mean of Z u_t (b_ti - b_tj) is phi_i - phi_j.
 *
 * The original form (Jia et al., "Towards efficient data valuation based on the Shapley value",
 * AISTATS 2019, Algorithm 1) estimates all differences D_ij = Z/T sum_t u_t (b_ti - b_tj) and asks
 * for any values s with
 *     sum_i s_i = U(N) - U(0)   and   |s_i - s_j - D_ij| <= epsilon / (2 sqrt N) for all i, j.
 * No solver is needed: D_ij = g_i - g_j with g_i = Z/T sum_t u_t b_ti, so that
 *     s_i = g_i - (mean of g) + (U(N) - U(0)) / N
 * has s_i - s_j = D_ij for all pairs at once. It meets every constraint, whatever epsilon is, and
 * is the one least-squares solution, because differences and sum together fix all s_i. When each
 * D_ij is as near to the truth as the constraints allow, s_i is off by the mean over j of such
 * errors, and s by at most epsilon / 2 in Euclidean norm.
 *
 * The improved form (Wang and Jia, "A note on 'Towards efficient data valuation based on the
 * Shapley value'", 2023, Algorithm 2) draws from N = n + 1 players, the last a dummy who adds
 * nothing to any coalition and so has the value 0: s_i = Z/T sum_t u_t (b_ti - b_t,dummy). These
 * need not add up to U(N) - U(0).
 *
 * Both are means over t of Z u_t (b_ti - base_t), with base_t = k_t / N (and the constant added) or
 * b_t,dummy; the spread of these numbers gives the standard errors.
 *
 * How many coalitions, for a worth within 0 .. r: Z u_t (b_ti - b_tj) is at most Z r, and not 0
 * with probability sum_k q_k 2k(N-k) / (N(N-1)) = 2/Z, which the papers write 1 - q_tot. By
 * Bennett's inequality the mean of T such is off by more than x with a probability of at most
 *     2 exp(-T (2/Z) h(x / 2r)),   h(u) = (1 + u) log(1 + u) - u.
 * So all differences (original) or all values (improved) are near enough, but for a chance of
 * delta, when
 *     original:  T >= Z/2 log(n(n-1) / delta) / h(epsilon / (4 r sqrt n))
 *     improved:  T >= Z/2 log(2n / delta) / h(epsilon / (2 r sqrt n))
 * The first is Theorem 4 of the note. It replaces Theorem 3 of the first paper,
 *     T >= 8 log(n(n-1) / 2 delta) / ((1 - q_tot^2) h(2 epsilon / (Z r sqrt n (1 - q_tot^2)))),
 * by which a seventh fewer would do for n = 100, but which Bennett's inequality does not give.
 *
 * For n = 100, r = 1 and delta = 0.1, epsilon = 1, 2, 5 and 10 ask for 192,157, 48,432, 7,935 and
 * 2,059 coalitions (original), 32,065, 8,145, 1,363 and 365 (improved). Values of an accuracy are
 * of the order of 1/n: the bound is far above what is seen, and a practical T is one that is given,
 * or that of an epsilon of this size. The standard errors tell what was reached. */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 512 }; /* coalitions that are asked for at once */

typedef struct {
    baseline_job *job;
    size_t drawn_from;  /* players, with the dummy */
    double harmonic;    /* 1 + 1/2 + ... + 1/(drawn_from - 1) = Z/2 */
    size_t tests;       /* T */
    uint64_t *bits;     /* (CHUNK, words) */
    double *base;       /* (CHUNK) */
    double *worth;      /* (CHUNK, columns) */
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
static fds_status count_tests(const fds_params *p, size_t players, size_t *out, fds_error *err) {
    double n = (double)players;
    *out = players + p->form == 1 ? 0 : p->coalitions;
    if (p->coalitions > 0)
        return FDS_OK;
    double events = p->form ? 2 * n : n * (n - 1);
    double u = p->epsilon / ((p->form ? 2 : 4) * sqrt(n));
    double half_z = harmonic_number(players + p->form);
    double tests = events > 0 ? ceil(half_z * log(events / p->delta) / bennett_h(u)) : 0;
    if (!(tests <= (double)FDS__MAX_ROWS))
        return fds__fail(
            err, FDS_ERR_LIMIT,
            "group-testing: epsilon %g and delta %g need %.3g coalitions of %zu "
            "players, and at most %zu are possible: ask for a greater epsilon, or give "
            "the number of coalitions",
            p->epsilon, p->delta, tests, players, FDS__MAX_ROWS);
    *out = (size_t)tests;
    return FDS_OK;
}

/* The original form asks for none and for all as well. */
static fds_status most(const fds_params *params, size_t players, uint32_t classes, size_t *most,
                       fds_error *err) {
    (void)classes;
    TRY(count_tests(params, players, most, err));
    *most += params->form ? 0 : 2;
    return FDS_OK;
}

/* ---- drawing ---- */

/* 1/k + 1/(N-k): k with weight 1/k and then, as a coin falls, k or N-k. */
static size_t draw_size(const testing *g, fds_rng *rng) {
    double target = fds_rng_unit(rng) * g->harmonic;
    size_t k = 1;
    while (k < g->drawn_from - 1 && (target -= 1 / (double)k) >= 0)
        k++;
    return fds_rng_below(rng, 2) ? k : g->drawn_from - k;
}

/* Coalition number t, a function of (seed, t) and the form alone. Each player in turn is taken with
 * probability (places left) / (players left); the dummy comes last. */
static double draw(const testing *g, size_t t, uint64_t *bits) {
    size_t n = g->job->players;
    fds_rng rng = fds_rng_make(g->job->params->seed, FDS__PURPOSE_SUBSET, t, 0);
    size_t size = draw_size(g, &rng), left = size;
    memset(bits, 0, fds_coalition_words(n) * sizeof *bits);
    for (size_t i = 0; i < n; i++)
        if (fds_rng_below(&rng, g->drawn_from - i) < left) {
            fds__coalition_add(bits, i);
            left--;
        }
    bool has_dummy = left > 0;
    return g->job->params->form ? has_dummy : (double)size / (double)n;
}

/* ---- adding up ---- */

static void add_test(testing *g, const uint64_t *bits, double base, const double *worth) {
    size_t columns = g->job->columns;
    for (size_t i = 0; i < g->job->players; i++) {
        double weight = 2 * g->harmonic * ((double)fds_coalition_has(bits, i) - base);
        double *sum = g->sum + i * columns, *sum2 = g->sum2 + i * columns;
        for (size_t c = 0; c < columns; c++) {
            double y = weight * worth[c];
            sum[c] += y;
            sum2[c] += y * y;
        }
    }
}

static fds_status add_chunk(testing *g, size_t first, size_t count, fds_error *err) {
    size_t words = fds_coalition_words(g->job->players);
    const baseline_game *game = &g->job->game;
    for (size_t t = 0; t < count; t++)
        g->base[t] = draw(g, first + t, g->bits + t * words);
    TRY(game->ask(game->context, g->bits, count, g->worth, err));
    for (size_t t = 0; t < count; t++)
        add_test(g, g->bits + t * words, g->base[t], g->worth + t * g->job->columns);
    return FDS_OK;
}

/* Even shares of U(N) - U(0), to which the original form adds. */
static fds_status share_evenly(testing *g, fds_error *err) {
    size_t n = g->job->players, columns = g->job->columns, words = fds_coalition_words(n);
    const baseline_game *game = &g->job->game;
    memset(g->bits, 0, words * sizeof *g->bits);
    fds__coalition_complement(g->bits, n, g->bits + words);
    TRY(game->ask(game->context, g->bits, 2, g->worth, err));
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < columns; c++)
            g->job->values[i * columns + c] = (g->worth[columns + c] - g->worth[c]) / (double)n;
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

static fds_status work(testing *g, fds_error *err) {
    memset(g->job->values, 0, g->job->players * g->job->columns * sizeof *g->job->values);
    if (!g->job->params->form)
        TRY(share_evenly(g, err));
    double start_s = fds__now_s();
    for (size_t done = 0; done < g->tests;) {
        size_t count = MIN(g->tests - done, (size_t)CHUNK);
        TRY(add_chunk(g, done, count, err));
        done += count;
        TRY(fds__report(g->job->events, "tests", "coalitions", done, g->tests, start_s, err));
    }
    finish(g);
    return FDS_OK;
}

static fds_status run(baseline_job *job, fds_error *err) {
    size_t n = job->players, columns = job->columns, words = fds_coalition_words(n), numbers;
    testing g = {.job = job, .drawn_from = n + job->params->form};
    g.harmonic = harmonic_number(g.drawn_from);
    TRY(count_tests(job->params, n, &g.tests, err));
    if (!fds__mul(n, columns, &numbers))
        return fds__fail_nomem(err, SIZE_MAX);
    g.bits = fds__alloc_zero(words, CHUNK * sizeof *g.bits);
    g.base = fds__alloc_zero(CHUNK, sizeof *g.base);
    g.worth = fds__alloc_zero(columns, CHUNK * sizeof *g.worth);
    g.sum = fds__alloc_zero(numbers, sizeof *g.sum);
    g.sum2 = fds__alloc_zero(numbers, sizeof *g.sum2);
    fds_status status = g.bits && g.base && g.worth && g.sum && g.sum2
                            ? work(&g, err)
                            : fds__fail_nomem(err, MAX(numbers, columns * CHUNK) * 8);
    fds__free(g.bits);
    fds__free(g.base);
    fds__free(g.worth);
    fds__free(g.sum);
    fds__free(g.sum2);
    return status;
}

/* The authors' bound is wide: this epsilon makes about 2,000 coalitions for 100 players. */
const baseline_method baseline_group_testing = {
    .name = "group-testing",
    .about = "from random coalitions",
    .takes = "coalitions epsilon delta form draw utility table store model lr beta batch optimizer",
    .has_table = true,
    .scorers = BASELINE_ANY_SCORER,
    .epsilon = 10,
    .least_coalitions = 1,
    .run = run,
    .most = most,
};
