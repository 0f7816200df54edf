/* SPDX-License-Identifier: Apache-2.0
 *
 * Average marginal effects: Lin, Zhang, Lecuyer, Li, Panda and Sen, "Measuring the effect of
 * training data on deep learning predictions via randomized experiments", ICML 2022.
 *
 *     phi_i = mean over p in {0.2, 0.4, 0.6, 0.8} of E[v(S and i) - v(S)],
 *
 * where S has every player except i with probability p. Coalitions are drawn in the same way, with
 * each p in turn, and every one of them serves all players. With V the mean of 1 / (p (1 - p)), the
 * features
 *
 *     x_i(S) = 1 / (sqrt(V) p) if i is in S, else -1 / (sqrt(V) (1 - p))
 *
 * have mean 0, variance 1 and no correlation, so that the best linear fit of v on them has the
 * coefficients b_i = E[x_i v] = phi_i / sqrt(V). They are estimated by Lasso,
 *
 *     min over b_0, b of  1 / (2 m) sum_S (v(S) - b_0 - sum_i b_i x_i(S))^2 + lambda sum_i |b_i|,
 *
 * which needs few coalitions where few players matter. It is solved by coordinate descent for 100
 * lambdas, from the least at which all b_i are 0 down to a thousandth of it; the one with the least
 * squared error in cross-validation is taken.
 *
 * Standard errors are the jackknife over the folds of the cross-validation, at that lambda: with
 * b_i(f) the coefficients without fold f, (F - 1) / F sum_f (b_i(f) - mean)^2 is the squared
 * error. They do not include the bias of the penalty, which shrinks values towards 0.
 *
 * Coalition number k has p number k mod 4 and is in fold k / 4 mod 10. So it is in cell k mod 40:
 * every cell has one p and one fold. As all folds have all p, no x_i is constant, even for a player
 * who is in no coalition.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

enum { CHANCES = 4, FOLDS = 10, CELLS = CHANCES * FOLDS, FITS = FOLDS + 1 };
enum { PER_PLAYER = 20, LEAST = 200 }; /* coalitions, unless the caller says */
enum { LAMBDAS = 100, MOST_SWEEPS = 1000 };

static const double spread = 125.0 / 24; /* V */

/* Fit f is without fold f; fit FOLDS has all coalitions. */
typedef struct {
    const baseline_job *job;
    size_t players, columns, words, drawn, cell_words;
    uint64_t *coalitions; /* (drawn, words) */
    uint64_t *members;    /* (players, CELLS, cell_words): a bit per coalition of the cell */
    double *v;            /* (drawn, columns) */
    double *means;        /* (FITS, players) of the features */
    double *products;     /* (FITS, players, players): their covariances */
    double *scratch;      /* (workers, 3, FITS, players) */
} ame;

static double chance_of(size_t number) { return (double)(number % CHANCES + 1) / (CHANCES + 1); }
static double scale_of(double p) { return 1 / (sqrt(spread) * p * (1 - p)); }
static size_t fold_of(size_t number) { return number / CHANCES % FOLDS; }
static size_t cell_size(const ame *a, size_t cell) { return (a->drawn + CELLS - 1 - cell) / CELLS; }

/* Coalitions of a fit. */
static double fit_size(const ame *a, size_t fit) {
    size_t size = a->drawn;
    for (size_t p = 0; fit < FOLDS && p < CHANCES; p++)
        size -= cell_size(a, fit * CHANCES + p);
    return (double)size;
}

static fds_status ame_make(ame *a, baseline_job *job, fds_error *err) {
    size_t n = a->players, workers = fds__pool_workers((unsigned)job->params->threads, a->columns);
    a->words = fds_coalition_words(n);
    a->cell_words = (cell_size(a, 0) + 63) / 64;
    a->coalitions = baseline_alloc(job, a->drawn, a->words, sizeof *a->coalitions);
    a->members = baseline_alloc(job, n, CELLS * a->cell_words, sizeof *a->members);
    a->v = baseline_alloc(job, a->drawn, a->columns, sizeof *a->v);
    a->means = baseline_alloc(job, FITS, n, sizeof *a->means);
    a->products = baseline_alloc(job, FITS * n, n, sizeof *a->products);
    a->scratch = baseline_alloc(job, workers, 3 * FITS * n, sizeof *a->scratch);
    return baseline_check_memory(job, err);
}

/* ---- coalitions ---- */

static double most(const fds_params *params, size_t players, uint32_t classes) {
    (void)classes;
    return (double)(params->coalitions ? params->coalitions
                                       : MAX(PER_PLAYER * players, (size_t)LEAST));
}

static void draw(void *context, size_t number, uint64_t *bits) {
    const ame *a = context;
    fds_rng rng = fds_rng_make(a->job->params->seed, FDS__PURPOSE_SUBSET, number, 0);
    for (size_t i = 0; i < a->players; i++)
        if (fds_rng_below(&rng, CHANCES + 1) <= number % CHANCES)
            fds__coalition_add(bits, i);
}

static void add(void *context, size_t number, const uint64_t *bits, const double *v) {
    const ame *a = context;
    size_t cell = number % CELLS, place = number / CELLS;
    memcpy(a->coalitions + number * a->words, bits, a->words * sizeof *bits);
    memcpy(a->v + number * a->columns, v, a->columns * sizeof *v);
    for (size_t i = 0; i < a->players; i++)
        if (fds_coalition_has(bits, i))
            fds__coalition_add(a->members + (i * CELLS + cell) * a->cell_words, place);
}

/* ---- features ---- */

/* Coalitions of the cell that have both players. */
static double both(const ame *a, size_t i, size_t j, size_t cell) {
    const uint64_t *one = a->members + (i * CELLS + cell) * a->cell_words;
    const uint64_t *other = a->members + (j * CELLS + cell) * a->cell_words;
    size_t count = 0;
    for (size_t w = 0; w < a->cell_words; w++)
        count += (size_t)__builtin_popcountll(one[w] & other[w]);
    return (double)count;
}

static void find_means(ame *a, size_t i) {
    double parts[FOLDS] = {0}, sum = 0;
    for (size_t cell = 0; cell < CELLS; cell++) {
        double p = chance_of(cell), size = (double)cell_size(a, cell);
        parts[fold_of(cell)] += scale_of(p) * (both(a, i, i, cell) - p * size);
    }
    for (size_t f = 0; f < FOLDS; f++)
        sum += parts[f];
    for (size_t f = 0; f < FITS; f++)
        a->means[f * a->players + i] = (sum - (f < FOLDS ? parts[f] : 0)) / fit_size(a, f);
}

static void find_products(ame *a, size_t i, size_t j) {
    double parts[FOLDS] = {0}, sum = 0;
    size_t n = a->players;
    for (size_t cell = 0; cell < CELLS; cell++) {
        double p = chance_of(cell), scale = scale_of(p), size = (double)cell_size(a, cell);
        double singly = both(a, i, i, cell) + both(a, j, j, cell);
        parts[fold_of(cell)] += scale * scale * (both(a, i, j, cell) - p * singly + p * p * size);
    }
    for (size_t f = 0; f < FOLDS; f++)
        sum += parts[f];
    for (size_t f = 0; f < FITS; f++) {
        const double *means = a->means + f * n;
        double *out = a->products + f * n * n;
        out[i * n + j] = out[j * n + i] =
            (sum - (f < FOLDS ? parts[f] : 0)) / fit_size(a, f) - means[i] * means[j];
    }
}

/* ---- Lasso ---- */

/* Relative to the first coalition, so that a game without differences gives exact zeros. */
static double response(const ame *a, size_t column, size_t number) {
    return a->v[number * a->columns + column] - a->v[column];
}

/* Sum of b over the members. */
static double sum_members(const ame *a, size_t number, const double *b) {
    double sum = 0;
    for (size_t w = 0; w < a->words; w++)
        for (uint64_t left = a->coalitions[number * a->words + w]; left; left &= left - 1)
            sum += b[w * 64 + (size_t)__builtin_ctzll(left)];
    return sum;
}

/* slopes (players): covariances of features and responses. Returns the mean response. */
static double begin(const ame *a, size_t column, size_t fit, double *slopes) {
    double mean = 0, size = fit_size(a, fit), all = 0;
    memset(slopes, 0, a->players * sizeof *slopes);
    for (size_t k = 0; k < a->drawn; k++)
        mean += fold_of(k) == fit ? 0 : response(a, column, k) / size;
    for (size_t k = 0; k < a->drawn; k++) {
        if (fold_of(k) == fit)
            continue;
        double p = chance_of(k), part = scale_of(p) * (response(a, column, k) - mean) / size;
        all += p * part;
        for (size_t i = 0; i < a->players; i++)
            slopes[i] += fds_coalition_has(a->coalitions + k * a->words, i) ? part : 0;
    }
    for (size_t i = 0; i < a->players; i++)
        slopes[i] -= all;
    return mean;
}

/* NaN stays NaN. */
static double shrink(double value, double by) {
    double left = fabs(value) - by;
    return left <= 0 ? 0 : copysign(left, value);
}

/* slopes: covariances of the features and the residuals. */
static void descend(const ame *a, size_t fit, double lambda, double tolerance, double *b,
                    double *slopes) {
    size_t n = a->players;
    double change = INFINITY;
    for (size_t sweep = 0; sweep < MOST_SWEEPS && change > tolerance; sweep++) {
        change = 0;
        for (size_t i = 0; i < n; i++) {
            const double *products = a->products + (fit * n + i) * n;
            double step = shrink(slopes[i] + products[i] * b[i], lambda) / products[i] - b[i];
            if (step == 0)
                continue;
            b[i] += step;
            for (size_t j = 0; j < n; j++)
                slopes[j] -= step * products[j];
            change = MAX(change, fabs(step));
        }
    }
}

/* The sum of squared errors of one fold, predicted with b from the other folds. */
static double fold_error(const ame *a, size_t column, size_t fold, double mean, const double *b) {
    double all = 0, squares = 0;
    for (size_t i = 0; i < a->players; i++) {
        mean -= b[i] * a->means[fold * a->players + i];
        all += b[i];
    }
    for (size_t k = 0; k < a->drawn; k++)
        if (fold_of(k) == fold) {
            double p = chance_of(k);
            double predicted = mean + scale_of(p) * (sum_members(a, k, b) - p * all);
            squares += pow(response(a, column, k) - predicted, 2);
        }
    return squares;
}

static void set_values(const ame *a, size_t column, const double *b) {
    size_t n = a->players;
    for (size_t i = 0; i < n; i++) {
        double mean = 0, squares = 0;
        for (size_t f = 0; f < FOLDS; f++)
            mean += b[f * n + i] / FOLDS;
        for (size_t f = 0; f < FOLDS; f++)
            squares += pow(b[f * n + i] - mean, 2);
        a->job->values[i * a->columns + column] = sqrt(spread) * b[FOLDS * n + i];
        if (a->job->errors)
            a->job->errors[i * a->columns + column] = sqrt(spread * (FOLDS - 1) / FOLDS * squares);
    }
}

/* All fits go down the lambdas side by side; each starts from its solution at the last lambda. */
static fds_status solve(void *context, size_t column, unsigned worker, fds_error *err) {
    (void)err;
    const ame *a = context;
    size_t n = a->players;
    double *b = a->scratch + worker * 3 * FITS * n, *slopes = b + FITS * n,
           *best = slopes + FITS * n;
    double means[FITS], most = 0, least = 0;
    memset(b, 0, FITS * n * sizeof *b);
    for (size_t f = 0; f < FITS; f++)
        means[f] = begin(a, column, f, slopes + f * n);
    for (size_t i = 0; i < n; i++)
        most = MAX(fabs(slopes[FOLDS * n + i]), most);
    for (size_t l = 0; l < LAMBDAS; l++) {
        double lambda = most * pow(10, -3.0 * (double)l / (LAMBDAS - 1)), squares = 0;
        for (size_t f = 0; f < FITS; f++) {
            descend(a, f, lambda, 1e-7 * most, b + f * n, slopes + f * n);
            squares += f < FOLDS ? fold_error(a, column, f, means[f], b + f * n) : 0;
        }
        if (l == 0 || squares < least) {
            least = squares;
            memcpy(best, b, FITS * n * sizeof *b);
        }
    }
    set_values(a, column, best);
    return FDS_OK;
}

static fds_status run(baseline_job *job, fds_error *err) {
    ame a = {.job = job, .players = job->players, .columns = job->columns};
    TRY(baseline_count(&baseline_ame, job->params, job->players, job->classes, &a.drawn, err));
    TRY(ame_make(&a, job, err));
    TRY(baseline_ask_all(job, a.drawn, draw, add, &a, err));
    for (size_t i = 0; i < a.players; i++) {
        find_means(&a, i);
        for (size_t j = 0; j <= i; j++)
            find_products(&a, i, j);
    }
    return fds__pool_run((unsigned)job->params->threads, a.columns, solve, &a, "lasso", "games",
                         job->events, err);
}

const baseline_method baseline_ame = {
    .name = "ame",
    .about = "average marginal effects, by Lasso",
    .takes = "coalitions draw",
    .least_coalitions = CELLS,
    .run = run,
    .most = most,
};
