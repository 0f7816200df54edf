/* SPDX-License-Identifier: Apache-2.0
 *
 * Banzhaf values by maximum sample reuse: Wang and Jia, "Data Banzhaf", AISTATS 2023.
 *
 *     phi_i = mean over all coalitions S without i of v(S and i) - v(S)
 *
 * is the mean of v over the coalitions with i less its mean over those without. Coalitions are
 * drawn with each player in or out by an even chance, and every one of them serves all players. The
 * two means are of independent draws: the square of the standard error is the sum of theirs.
 *
 * A player who is in all the coalitions drawn, or in none, has no estimate. As the coalitions are
 * drawn before any is asked for, this is an error that costs nothing; it happens with a chance of
 * n * 2^(1-m). With one coalition on a side there is a value but no standard error.
 *
 * How many, where only epsilon and delta are given: utilities are within an interval of length 1.
 * Given who is in which coalitions, Hoeffding's inequality for a difference of means of m_1 and m_2
 * draws is P(|off_i| >= t) <= 2 exp(-2 t^2 / (1/m_1 + 1/m_2)); with m/4 <= m_1 <= 3m/4, of which
 * the contrary has a chance of at most 2 exp(-m/8), that is at most 2 exp(-3 m t^2 / 8). With t =
 * epsilon / sqrt(n) for each of n players,
 *
 *     m = ln(4 n / delta) * max(8 n / (3 epsilon^2), 8)
 *
 * makes the Euclidean norm of all errors at most epsilon with a chance of 1 - delta.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 256 }; /* coalitions asked for at a time */

/* v over the coalitions of one side. */
typedef struct {
    double mean, squares; /* squared deviations from the mean, summed */
} side;

typedef struct {
    size_t players, columns, words, drawn;
    size_t *with;   /* (players): coalitions that each is in */
    size_t *seen;   /* (players, 2): coalitions added so far, without and with */
    side *sides;    /* (players, 2, columns) */
    uint64_t *some; /* (CHUNK, words) */
    double *values; /* (CHUNK, columns) */
} banzhaf;

static void banzhaf_free(banzhaf *b) {
    fds__free(b->with);
    fds__free(b->seen);
    fds__free(b->sides);
    fds__free(b->some);
    fds__free(b->values);
}

static fds_status banzhaf_make(banzhaf *b, fds_error *err) {
    size_t n = b->players, cells;
    if (!fds__mul(2 * n, b->columns, &cells))
        return fds__fail_nomem(err, SIZE_MAX);
    b->words = fds_coalition_words(n);
    b->with = fds__alloc_zero(n, sizeof *b->with);
    b->seen = fds__alloc_zero(2 * n, sizeof *b->seen);
    b->sides = fds__alloc_zero(cells, sizeof *b->sides);
    b->some = fds__alloc_zero(CHUNK * b->words, sizeof *b->some);
    b->values = fds__alloc_zero(CHUNK, b->columns * sizeof *b->values);
    return b->with && b->seen && b->sides && b->some && b->values
               ? FDS_OK
               : fds__fail_nomem(err, cells * sizeof *b->sides);
}

/* ---- drawing ---- */

static void draw(uint64_t seed, uint64_t number, size_t players, uint64_t *coalition) {
    fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_SUBSET, number, 0);
    size_t words = fds_coalition_words(players);
    for (size_t w = 0; w < words; w++)
        coalition[w] = fds_rng_u64(&rng);
    if (players % 64)
        coalition[words - 1] &= ((uint64_t)1 << (players % 64)) - 1;
}

static fds_status most(const fds_params *params, size_t players, uint32_t classes, size_t *most,
                       fds_error *err) {
    (void)classes;
    double n = (double)players, epsilon = params->epsilon;
    double needed = ceil(log(4 * n / params->delta) * fmax(8 * n / (3 * epsilon * epsilon), 8));
    *most = params->coalitions;
    if (*most)
        return FDS_OK;
    if (!(needed <= (double)FDS__MAX_ROWS))
        return fds__fail(err, FDS_ERR_LIMIT,
                         "values within epsilon = %g need %.3g coalitions, at most %zu are "
                         "possible: take a greater epsilon, or say how many",
                         epsilon, needed, FDS__MAX_ROWS);
    *most = (size_t)needed;
    return FDS_OK;
}

/* Every player must be in some coalitions, but not in all. */
static fds_status check_draws(banzhaf *b, uint64_t seed, fds_error *err) {
    for (size_t k = 0; k < b->drawn; k++) {
        draw(seed, k, b->players, b->some);
        for (size_t i = 0; i < b->players; i++)
            b->with[i] += fds_coalition_has(b->some, i);
    }
    for (size_t i = 0; i < b->players; i++)
        if (b->with[i] == 0 || b->with[i] == b->drawn)
            return fds__fail(err, FDS_ERR_USAGE,
                             "player %zu is in %s of the %zu coalitions that were drawn, so that "
                             "there is nothing to compare: take more coalitions, or another seed",
                             i, b->with[i] ? "all" : "none", b->drawn);
    return FDS_OK;
}

/* ---- adding up, in the order of the coalitions' numbers ---- */

static void add(banzhaf *b, const uint64_t *coalition, const double *v) {
    for (size_t i = 0; i < b->players; i++) {
        size_t which = 2 * i + fds_coalition_has(coalition, i);
        double share = 1 / (double)++b->seen[which];
        side *sides = b->sides + which * b->columns;
        for (size_t c = 0; c < b->columns; c++) {
            double off = v[c] - sides[c].mean;
            sides[c].mean += off * share;
            sides[c].squares += off * (v[c] - sides[c].mean);
        }
    }
}

static fds_status ask_all(banzhaf *b, const baseline_job *job, fds_error *err) {
    double start_s = fds__now_s();
    for (size_t first = 0; first < b->drawn; first += CHUNK) {
        size_t count = MIN(b->drawn - first, (size_t)CHUNK);
        for (size_t k = 0; k < count; k++)
            draw(job->params->seed, first + k, b->players, b->some + k * b->words);
        TRY(job->game.ask(job->game.context, b->some, count, b->values, err));
        for (size_t k = 0; k < count; k++)
            add(b, b->some + k * b->words, b->values + k * b->columns);
        TRY(fds__report(job->events, "banzhaf", "coalitions", first + count, b->drawn, start_s,
                        err));
    }
    return FDS_OK;
}

/* Squared standard error of a side's mean; NaN for one coalition. */
static double variance(const side *s, size_t count) {
    return count > 1 ? s->squares / ((double)count * (double)(count - 1)) : NAN;
}

static void get(const banzhaf *b, double *values, double *errors) {
    for (size_t i = 0; i < b->players; i++) {
        const side *without = b->sides + 2 * i * b->columns, *with = without + b->columns;
        for (size_t c = 0; c < b->columns; c++) {
            size_t at = i * b->columns + c;
            values[at] = with[c].mean - without[c].mean;
            if (errors)
                errors[at] = sqrt(variance(&without[c], b->seen[2 * i]) +
                                  variance(&with[c], b->seen[2 * i + 1]));
        }
    }
}

static fds_status run(baseline_job *job, fds_error *err) {
    banzhaf b = {.players = job->players, .columns = job->columns};
    TRY(most(job->params, job->players, job->classes, &b.drawn, err));
    fds_status status = banzhaf_make(&b, err);
    if (status == FDS_OK)
        status = check_draws(&b, job->params->seed, err);
    if (status == FDS_OK)
        status = ask_all(&b, job, err);
    if (status == FDS_OK)
        get(&b, job->values, job->errors);
    banzhaf_free(&b);
    return status;
}

/* Our bound is wide: this epsilon makes about 2,000 coalitions for 100 players. */
const baseline_method baseline_banzhaf = {
    .name = "banzhaf",
    .about = "Banzhaf values",
    .takes = "coalitions epsilon delta draw utility table store model lr beta batch optimizer",
    .has_table = true,
    .scorers = BASELINE_ANY_SCORER,
    .epsilon = 1,
    .least_coalitions = 2, /* nothing can be compared in one */
    .run = run,
    .most = most,
};
