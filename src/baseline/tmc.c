/* SPDX-License-Identifier: Apache-2.0
 *
 * Truncated Monte Carlo Shapley: Ghorbani and Zou, "Data Shapley: Equitable valuation of data for
 * machine learning", ICML 2019, Algorithm 1. Over random permutations pi of the players,
 *
 *     phi_i = mean of  v(S and i) - v(S),  S being the players before i in pi,
 *
 * where the rest of a permutation counts as 0 once v(S) is near v(N):
 * |v(S) - v(N)| <= truncate * |v(N)|, for several games the means over them of both sides. As in
 * the authors' program a permutation ends when that was so at more than five places in a row, that
 * is after the sixth; a single one may be chance. Unlike in that program, coalitions in which a
 * label is missing are treated like all others.
 *
 * "beta:A,B": Beta Shapley, Kwon and Zou, AISTATS 2022. The same, with the marginal at place j
 * = 1 .. n, before which there are j - 1 players, weighted by
 *
 *     w_j = n C(n-1, j-1) B(j + B - 1, n - j + A) / B(A, B).
 *
 * The w_j have the mean 1. A = B = 1 makes all of them 1, the Shapley value; a large A puts the
 * weight on small coalitions, a large B on large ones. Only w_(j+1) / w_j, a simple fraction, and
 * the mean are used: nothing overflows, and the bits depend on no machine's logarithms.
 *
 * The permutations of a round are walked side by side: at each place the coalitions of all that go
 * on are asked for at once, so that their sub-models are trained in parallel. Permutations do not
 * depend on each other, so the number of permutations in a round changes no bit.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

#define ROUND_BYTES ((size_t)256 << 20) /* of marginals, unless one permutation has more */

/* ---- weights of Beta Shapley ---- */

/* "12.5": at most 9 digits and a point, above 0; returns what follows, or NULL. */
static const char *read_decimal(const char *text, double *value) {
    char *end;
    size_t length = strspn(text, ".0123456789"), points = memchr(text, '.', length) ? 1 : 0;
    *value = fds__read_double(text, &end);
    return end == text + length && length - points <= 9 && *value > 0 ? end : NULL;
}

bool baseline_read_beta(const char *text, double *alpha, double *beta) {
    if (strncmp(text, "beta:", 5) != 0)
        return false;
    const char *end = read_decimal(text + 5, alpha);
    if (!end || *end != ',')
        return false;
    end = read_decimal(end + 1, beta);
    return end && *end == 0;
}

/* weights[n], of mean 1: a running product, first as mantissa and exponent (powers[n]). */
static void beta_weights(size_t n, double alpha, double beta, int *powers, double *weights) {
    double mantissa = 0.5, sum = 0;
    int power = 0, most = 0;
    for (size_t j = 1; j <= n; j++) {
        weights[j - 1] = mantissa;
        powers[j - 1] = power;
        most = MAX(most, power);
        double left = (double)(n - j), before = (double)j;
        int step = 0;
        if (j < n)
            mantissa = frexp(
                mantissa * (left * (before + beta - 1) / (before * (left + alpha - 1))), &step);
        power += step;
    }
    for (size_t j = 0; j < n; j++)
        sum += weights[j] = ldexp(weights[j], powers[j] - most);
    for (size_t j = 0; j < n; j++)
        weights[j] *= (double)n / sum;
}

/* ---- a round of permutations ---- */

typedef struct {
    baseline_job *job;
    size_t words;
    double *weights;        /* (players): of places */
    double *empty, *full;   /* (columns): v(0), then v(N) */
    uint32_t *permutations; /* (round, players) */
    uint64_t *bits;         /* (round, words): the players so far */
    double *now;            /* (round, columns): v of these */
    unsigned *near;         /* (round): places in a row that were near v(N) */
    uint32_t *going;        /* (round): the permutations that go on */
    uint64_t *asked;        /* (round, words): their coalitions */
    double *answers;        /* (round, columns) */
    double *marginals;      /* (round, players, columns) */
    size_t going_count, skipped;
} tmc;

static fds_status tmc_make(tmc *t, size_t round, fds_error *err) {
    baseline_job *job = t->job;
    size_t n = job->players, columns = job->columns;
    double alpha = 1, beta = 1; /* all weights are then 1 to the bit */
    baseline_read_beta(job->params->method, &alpha, &beta);
    int *powers = baseline_alloc(job, n, 1, sizeof *powers);
    t->words = fds_coalition_words(n);
    t->weights = baseline_alloc(job, n, 1, sizeof *t->weights);
    t->empty = baseline_alloc(job, 2, columns, sizeof *t->empty);
    t->permutations = baseline_alloc(job, round, n, sizeof *t->permutations);
    t->bits = baseline_alloc(job, round, t->words, sizeof *t->bits);
    t->now = baseline_alloc(job, round, columns, sizeof *t->now);
    t->near = baseline_alloc(job, round, 1, sizeof *t->near);
    t->going = baseline_alloc(job, round, 1, sizeof *t->going);
    t->asked = baseline_alloc(job, round, t->words, sizeof *t->asked);
    t->answers = baseline_alloc(job, round, columns, sizeof *t->answers);
    t->marginals = baseline_alloc(job, round * n, columns, sizeof *t->marginals);
    TRY(baseline_check_memory(job, err));
    t->full = t->empty + columns;
    beta_weights(n, alpha, beta, powers, t->weights);
    return baseline_ask_ends(job, t->empty, err);
}

static void start_round(tmc *t, size_t first, size_t count) {
    size_t n = t->job->players, columns = t->job->columns;
    memset(t->bits, 0, count * t->words * sizeof *t->bits);
    memset(t->marginals, 0, count * n * columns * sizeof *t->marginals);
    for (size_t k = 0; k < count; k++) {
        baseline_permutation(t->job->params->seed, first + k, n, t->permutations + k * n);
        memcpy(t->now + k * columns, t->empty, columns * sizeof *t->now);
        t->near[k] = 0;
        t->going[k] = (uint32_t)k;
    }
    t->going_count = count;
}

/* Sets the marginal of permutation k at place, where the prefix has this value; false when the
 * permutation ends here. */
static bool take_step(tmc *t, size_t k, size_t place, const double *value) {
    size_t n = t->job->players, columns = t->job->columns;
    double *now = t->now + k * columns;
    double *marginal = t->marginals + (k * n + t->permutations[k * n + place]) * columns;
    for (size_t c = 0; c < columns; c++)
        marginal[c] = t->weights[place] * (value[c] - now[c]);
    memcpy(now, value, columns * sizeof *now);
    return baseline_walks_on(t->job->params, columns, value, t->full, &t->near[k]);
}

static fds_status walk_place(tmc *t, size_t place, fds_error *err) {
    const baseline_game *game = &t->job->game;
    size_t n = t->job->players, going = 0;
    bool is_last = place + 1 == n; /* v(N): already known */
    for (size_t i = 0; i < t->going_count; i++) {
        uint64_t *bits = t->bits + t->going[i] * t->words;
        fds__coalition_add(bits, t->permutations[t->going[i] * n + place]);
        memcpy(t->asked + i * t->words, bits, t->words * sizeof *bits);
    }
    if (!is_last)
        TRY(game->ask(game->context, t->asked, t->going_count, t->answers, err));
    for (size_t i = 0; i < t->going_count; i++) {
        uint32_t k = t->going[i];
        const double *value = is_last ? t->full : t->answers + i * t->job->columns;
        if (take_step(t, k, place, value))
            t->going[going++] = k;
        else
            t->skipped += n - place - 1;
    }
    t->going_count = going;
    return FDS_OK;
}

static fds_status walk_round(tmc *t, size_t first, size_t count, double start_s, fds_error *err) {
    size_t n = t->job->players, total = t->job->params->permutations * n;
    start_round(t, first, count);
    for (size_t place = 0; place < n && t->going_count; place++) {
        TRY(walk_place(t, place, err));
        TRY(fds__report(t->job->events, "permutations", "places", first * n + (place + 1) * count,
                        total, start_s, err));
    }
    return FDS_OK;
}

static double most(const fds_params *params, size_t players, uint32_t classes) {
    (void)classes;
    return 2 + (double)params->permutations * (double)(players - 1);
}

static fds_status run(baseline_job *job, fds_error *err) {
    tmc t = {.job = job};
    size_t size = job->players * job->columns, count;
    size_t round = MIN(MAX(ROUND_BYTES / (size * sizeof(double)), 1), (size_t)BASELINE_ROUND);
    double start_s = fds__now_s();
    baseline_means means = baseline_means_make(job);
    TRY(tmc_make(&t, round, err));
    while ((count = baseline_means_next(&means, job->params, round)) > 0) {
        TRY(walk_round(&t, means.count, count, start_s, err));
        for (size_t k = 0; k < count; k++)
            baseline_means_add(&means, t.marginals + k * size);
    }
    baseline_means_finish(&means, job, job->players, t.skipped);
    return FDS_OK;
}

/* until and truncate are those of Data Shapley's authors; 1,000 permutations are our bound. */
const baseline_method baseline_tmc = {
    .name = "tmc",
    .about = "Data Shapley, by truncated permutations",
    .takes = "permutations until truncate draw",
    .permutations = 1000,
    .until = 0.05,
    .truncate = 0.01,
    .run = run,
    .most = most,
};

static bool is_beta(const char *text) {
    double alpha, beta;
    return baseline_read_beta(text, &alpha, &beta);
}

const baseline_method baseline_beta = {
    .name = "beta:A,B",
    .about = "Beta Shapley; beta:1,1 is the Shapley value",
    .takes = "permutations until truncate draw",
    .is_named = is_beta,
    .numbers = "two numbers above 0, of at most 9 digits, for example beta:4,1",
    .permutations = 1000,
    .until = 0.05,
    .run = run,
    .most = most,
};
