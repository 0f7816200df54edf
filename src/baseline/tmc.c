/* SPDX-License-Identifier: Apache-2.0
 *
 * Truncated Monte Carlo Shapley: Ghorbani and Zou, "Data Shapley: Equitable valuation of data for
 * machine learning", ICML 2019, Algorithm 1. Over random permutations pi of the players,
 *
 *     phi_i = mean of  v(S and i) - v(S),  S being the players before i in pi,
 *
 * where what is left of an order counts as 0 once S is worth about as much as everyone:
 * |v(S) - v(N)| <= truncate * |v(N)|, for several games the means over them of both sides. As in
 * the authors' program an order ends when that was so at more than five places running, that is
 * after the sixth; a single one may be chance. Unlike that program, coalitions in which a label is
 * missing are looked at like all others.
 *
 * "beta:A,B": Beta Shapley, Kwon and Zou, AISTATS 2022. The same walk, with the marginal at place j
 * = 1 .. n, before which there are j - 1 players, weighted by
 *
 *     w_j = n C(n-1, j-1) B(j + B - 1, n - j + A) / B(A, B).
 *
 * The w_j have the mean 1. A = B = 1 makes all of them 1, the Shapley value; a large A puts the
 * weight on small coalitions, a large B on large ones. Only w_(j+1) / w_j, a simple fraction, and
 * the mean are used: nothing overflows, and the bits depend on no machine's logarithms.
 *
 * The permutations of a round are walked side by side: at each place all that go on are asked for at
 * once, so that their sub-models are trained in parallel. The marginals of an order are its own, so
 * how many permutations a round has changes no bit.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

#define ROUND_BYTES ((size_t)256 << 20) /* of marginals, unless one order has more */

/* ---- weights of Beta Shapley ---- */

/* "12.5": digits with at most one point among them, above 0, whatever the locale. */
static const char *read_decimal(const char *text, double *value) {
    double number = 0, unit = 1;
    unsigned digits = 0;
    bool has_point = false;
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !has_point); text++) {
        if (*text == '.') {
            has_point = true;
            continue;
        }
        number = 10 * number + (*text - '0');
        unit *= has_point ? 10 : 1;
        digits++;
    }
    *value = number / unit;
    return digits >= 1 && digits <= 9 && *value > 0 ? text : NULL;
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

/* weights[n], of mean 1. A running product as mantissa and exponent first, its scale at last. */
static fds_status beta_weights(size_t n, double alpha, double beta, double *weights,
                               fds_error *err) {
    int *powers = fds__alloc_zero(n, sizeof *powers);
    if (!powers)
        return fds__fail_nomem(err, n * sizeof *powers);
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
    fds__free(powers);
    return FDS_OK;
}

/* ---- a round of permutations ---- */

typedef struct {
    baseline_job *job;
    size_t words, round; /* round: permutations at the most */
    double *weights;     /* (players): of places */
    double *empty;       /* (columns): v(0), then (columns): v(N) */
    double *full;
    uint32_t *permutations; /* (round, players) */
    uint64_t *bits;         /* (round, words): the players so far */
    double *now;            /* (round, columns): what they are worth */
    unsigned *near;         /* (round): places running that were near v(N) */
    uint32_t *going;        /* (round): the permutations that go on */
    uint64_t *asked;        /* (round, words): of these */
    double *answers;        /* (round, columns) */
    double *marginals;      /* (round, players, columns) */
    size_t going_count, skipped;
} tmc;

static void tmc_free(tmc *t) {
    void *all[] = {t->weights, t->empty, t->permutations, t->bits,    t->now,
                   t->near,    t->going, t->asked,        t->answers, t->marginals};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        fds__free(all[i]);
}

static fds_status tmc_make(tmc *t, fds_error *err) {
    size_t n = t->job->players, columns = t->job->columns, size;
    if (!fds__mul(n, columns, &size) || size > SIZE_MAX / sizeof(double) / BASELINE_ROUND)
        return fds__fail_nomem(err, SIZE_MAX);
    size_t fitting = ROUND_BYTES / (size * sizeof(double));
    t->round = MIN(MAX(fitting, (size_t)1), (size_t)BASELINE_ROUND);
    t->words = fds_coalition_words(n);
    t->weights = fds__alloc_zero(n, sizeof *t->weights);
    t->empty = fds__alloc_zero(columns, 2 * sizeof *t->empty);
    t->permutations = fds__alloc_zero(t->round * n, sizeof *t->permutations);
    t->bits = fds__alloc_zero(t->round * t->words, sizeof *t->bits);
    t->now = fds__alloc_zero(t->round * columns, sizeof *t->now);
    t->near = fds__alloc_zero(t->round, sizeof *t->near);
    t->going = fds__alloc_zero(t->round, sizeof *t->going);
    t->asked = fds__alloc_zero(t->round * t->words, sizeof *t->asked);
    t->answers = fds__alloc_zero(t->round * columns, sizeof *t->answers);
    t->marginals = fds__alloc_zero(t->round * size, sizeof *t->marginals);
    if (!t->weights || !t->empty || !t->permutations || !t->bits || !t->now || !t->near ||
        !t->going || !t->asked || !t->answers || !t->marginals)
        return fds__fail_nomem(err, t->round * size * sizeof *t->marginals);
    t->full = t->empty + columns;
    return FDS_OK;
}

/* v(0) and v(N), once. */
static fds_status ask_ends(tmc *t, fds_error *err) {
    const baseline_game *game = &t->job->game;
    uint64_t *both = fds__alloc_zero(2 * t->words, sizeof *both);
    if (!both)
        return fds__fail_nomem(err, 2 * t->words * sizeof *both);
    fds__coalition_complement(both, t->job->players, both + t->words);
    fds_status status = game->ask(game->context, both, 2, t->empty, err);
    fds__free(both);
    return status;
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

/* What order k's player at place adds, now that its prefix is worth value; false when the order
 * ends here. */
static bool take_step(tmc *t, size_t k, size_t place, const double *value) {
    size_t n = t->job->players, columns = t->job->columns;
    double *now = t->now + k * columns;
    double *marginal = t->marginals + (k * n + t->permutations[k * n + place]) * columns;
    for (size_t c = 0; c < columns; c++)
        marginal[c] = t->weights[place] * (value[c] - now[c]);
    memcpy(now, value, columns * sizeof *now);
    bool is_near = baseline_is_near(t->job->params, columns, value, t->full);
    t->near[k] = is_near ? t->near[k] + 1 : 0;
    return t->near[k] <= BASELINE_NEAR_PLACES;
}

static fds_status walk_place(tmc *t, size_t place, fds_error *err) {
    const baseline_game *game = &t->job->game;
    size_t n = t->job->players, going = 0;
    bool is_last = place + 1 == n; /* everyone: already known */
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

static fds_status walk_all(tmc *t, baseline_means *means, fds_error *err) {
    const fds_params *params = t->job->params;
    double start_s = fds__now_s();
    TRY(ask_ends(t, err));
    while (baseline_goes_on(params, means)) {
        size_t first = baseline_means_count(means);
        size_t count = MIN(t->round, params->permutations - first);
        /* not beyond where the change is looked at, whatever the size of a round */
        count = MIN(count, BASELINE_ROUND - first % BASELINE_ROUND);
        TRY(walk_round(t, first, count, start_s, err));
        for (size_t k = 0; k < count; k++)
            baseline_means_add(means, t->marginals + k * t->job->players * t->job->columns);
    }
    return FDS_OK;
}

static void tell(const tmc *t, const baseline_means *means) {
    baseline_job *job = t->job;
    fds__baseline_report *report = job->report;
    baseline_means_get(means, job->values, job->errors);
    baseline_means_tell(job->params, means, report);
    report->truncated = (double)t->skipped / ((double)report->permutations * (double)job->players);
}

static fds_status most(const fds_params *params, size_t players, uint32_t classes, size_t *most,
                       fds_error *err) {
    (void)classes, (void)err;
    *most = 2 + params->permutations * (players - 1);
    return FDS_OK;
}

static fds_status run(baseline_job *job, fds_error *err) {
    tmc t = {.job = job};
    baseline_means *means = NULL;
    double alpha = 1, beta = 1; /* all weights are then 1 to the bit */
    baseline_read_beta(job->params->method, &alpha, &beta);
    fds_status status = tmc_make(&t, err);
    if (status == FDS_OK)
        status = beta_weights(job->players, alpha, beta, t.weights, err);
    if (status == FDS_OK)
        status = baseline_means_create(job->players, job->columns, &means, err);
    if (status == FDS_OK)
        status = walk_all(&t, means, err);
    if (status == FDS_OK)
        tell(&t, means);
    baseline_means_free(means);
    tmc_free(&t);
    return status;
}

#define TAKES "permutations until truncate draw utility table store model lr beta batch optimizer"

/* until and truncate are those of Data Shapley's authors; 1,000 permutations are our bound. */
const baseline_method baseline_tmc = {
    .name = "tmc",
    .about = "Data Shapley, by truncated permutations",
    .takes = TAKES,
    .has_table = true,
    .scorers = BASELINE_ANY_SCORER,
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
    .takes = TAKES,
    .is_named = is_beta,
    .has_table = true,
    .scorers = BASELINE_ANY_SCORER,
    .permutations = 1000,
    .until = 0.05,
    .run = run,
    .most = most,
};
