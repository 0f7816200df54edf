/* SPDX-License-Identifier: Apache-2.0
 * Coalitions to rows of numbers: indicators of the players, then steps over the counts of groups.
 *
 * A step over k players from t on is f(s) = (1[c >= t] + 1[c >= k+1-t]) / 2 of their number c in s.
 * The two halves have the same odd part, so that for pairs nothing is fitted twice. By symmetry its
 * Shapley value is 1/k for each of the k players. */
#include "ls.h"

#include <math.h>
#include <string.h>

enum { MOST_FEATURES = 16384 };

/* Steps from 1 to half of the members: all where there are few, else ever wider apart. */
static uint32_t next_step(uint32_t at, uint32_t of) {
    enum { ALL_STEPS = 16 };
    uint32_t wider = at + at * 2 / 5;
    return of <= ALL_STEPS || wider <= at ? at + 1 : wider;
}

/* Writes the steps over a group to steps (where it is not NULL) and returns their number. */
static size_t add_steps(uint32_t group, size_t of, fds__optimizer_step *steps) {
    size_t count = 0;
    for (uint32_t at = 1; at <= of / 2; at = next_step(at, (uint32_t)of)) {
        if (steps)
            steps[count] = (fds__optimizer_step){.group = group, .at = at, .of = (uint32_t)of};
        count++;
    }
    return count;
}

/* One group is all players: then the steps over all are enough. */
static size_t make_steps(size_t players, const fds_groups *groups, fds__optimizer_step *steps) {
    size_t count = 0, group_count = groups ? fds_groups_count(groups) : 1;
    for (size_t g = 0; group_count > 1 && g < group_count; g++) {
        const uint32_t *members;
        size_t of = fds_groups_members(groups, g, &members);
        count += add_steps((uint32_t)g, of, steps ? steps + count : NULL);
    }
    return count + add_steps(FDS__ALL, players, steps ? steps + count : NULL);
}

fds_status fds__design_count(const fds_plan *plan, const fds_groups *groups, bool with_steps,
                             size_t *features, fds_error *err) {
    size_t players = fds_plan_players(plan);
    *features = players + (with_steps ? make_steps(players, groups, NULL) : 0);
    if (*features > MOST_FEATURES)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "least squares with %zu unknowns: at most %d are possible; put players "
                         "together into providers",
                         *features, MOST_FEATURES);
    return FDS_OK;
}

/* Coalitions of k of n players, as far as a double reaches. */
static double choose(size_t n, size_t k) {
    double ways = 1;
    for (size_t i = 1; i <= MIN(k, n - k) && isfinite(ways); i++)
        ways = ways * (double)(n + 1 - i) / (double)i;
    return ways;
}

/* drawn[k]: rows of size k; room for players + 1 */
static void make_unseen(fds__design *d, double *drawn) {
    size_t per_case = fds_plan_is_paired(d->plan) ? 2 : 1;
    bool without_replacement = d->plan->sampler == FDS_SAMPLER_LEVERAGE;
    for (size_t row = 2; row < fds_plan_rows(d->plan); row++)
        drawn[fds_coalition_size(fds_plan_coalition(d->plan, row), d->players)]++;
    for (size_t k = 0; k <= d->players; k++)
        drawn[k] = drawn[k] > 0 ? MAX(0, 1 - drawn[k] / round(choose(d->players, k))) : 1;
    for (size_t i = 0; i < d->pairs; i++) {
        const uint64_t *s = fds_plan_coalition(d->plan, 2 + i * per_case);
        d->unseen[i] = without_replacement ? drawn[fds_coalition_size(s, d->players)] : 1;
    }
}

static void make_weights(fds__design *d) {
    size_t per_case = fds_plan_is_paired(d->plan) ? 2 : 1;
    double kernel = 0, mild = 0;
    for (size_t i = 0; i < d->pairs; i++) {
        size_t row = 2 + i * per_case;
        double k = (double)fds_coalition_size(fds_plan_coalition(d->plan, row), d->players);
        d->kernel[i] = fds_plan_weight(d->plan, row);
        /* the Shapley kernel over sizes is 1/(k(n-k)): this leaves its square root */
        d->mild[i] = d->kernel[i] * sqrt(k * ((double)d->players - k));
        kernel += d->kernel[i];
        mild += d->mild[i];
    }
    for (size_t i = 0; i < d->pairs; i++) {
        d->kernel[i] *= (double)d->pairs / kernel;
        d->mild[i] *= (double)d->pairs / mild;
    }
}

fds_status fds__design_create(const fds_plan *plan, const fds_groups *groups, bool with_steps,
                              const fds_events *events, fds__design *out, fds_error *err) {
    size_t per_case = fds_plan_is_paired(plan) ? 2 : 1;
    fds__design d = {.plan = plan,
                     .groups = groups,
                     .events = events,
                     .players = fds_plan_players(plan),
                     .pairs = (fds_plan_rows(plan) - 2) / per_case,
                     .group_count = groups ? fds_groups_count(groups) : 1};
    TRY(fds__design_count(plan, groups, with_steps, &d.features, err));
    size_t step_count = d.features - d.players;
    d.steps = fds__alloc_zero(step_count, sizeof *d.steps);
    d.kernel = fds__alloc_zero(d.pairs, sizeof *d.kernel);
    d.mild = fds__alloc_zero(d.pairs, sizeof *d.mild);
    d.unseen = fds__alloc_zero(d.pairs, sizeof *d.unseen);
    double *drawn = fds__alloc_zero(d.players + 1, sizeof *drawn);
    if (!d.steps || !d.kernel || !d.mild || !d.unseen || !drawn) {
        fds__free(drawn);
        fds__design_free(&d);
        return fds__fail_nomem(err, 3 * d.pairs * sizeof *d.kernel);
    }
    if (with_steps)
        make_steps(d.players, groups, d.steps);
    make_weights(&d);
    make_unseen(&d, drawn);
    fds__free(drawn);
    *out = d;
    return FDS_OK;
}

void fds__design_free(fds__design *d) {
    fds__free(d->steps);
    fds__free(d->kernel);
    fds__free(d->mild);
    fds__free(d->unseen);
}

fds_status fds__design_tell(const fds__design *d, const char *stage, size_t pairs, double start_s,
                            fds_error *err) {
    return fds__report(d->events, stage, "pairs", pairs, d->pairs, start_s, err);
}

/* ---- the left side ---- */

static double step_value(const fds__optimizer_step *step, uint32_t count) {
    return 0.5 * ((count >= step->at) + (count >= step->of + 1 - step->at));
}

static void design_row(const fds__design *d, const uint64_t *s, uint32_t *counts, double *row) {
    bool paired = fds_plan_is_paired(d->plan);
    uint32_t all = 0;
    memset(counts, 0, d->group_count * sizeof *counts);
    for (size_t i = 0; i < d->players; i++) {
        bool is_in = fds_coalition_has(s, i);
        row[i] = paired ? is_in - 0.5 : is_in;
        counts[d->groups ? fds_groups_of(d->groups, i) : 0] += is_in;
        all += is_in;
    }
    for (size_t j = d->players; j < d->features; j++) {
        const fds__optimizer_step *step = &d->steps[j - d->players];
        uint32_t count = step->group == FDS__ALL ? all : counts[step->group];
        row[j] = step_value(step, count);
        if (paired)
            row[j] = 0.5 * (row[j] - step_value(step, step->of - count));
    }
}

void fds__design_rows(const fds__design *d, size_t first, size_t count, uint32_t *counts,
                      double *rows) {
    size_t per_case = fds_plan_is_paired(d->plan) ? 2 : 1;
    for (size_t i = 0; i < count; i++)
        design_row(d, fds_plan_coalition(d->plan, 2 + (first + i) * per_case), counts,
                   rows + i * d->features);
}

/* ---- the right side ---- */

/* One game's contrast of case i: (v(s) - v(1-s)) / 2, or v(s) - v(0). other: (width); without pairs
 * it holds v(0). */
static fds_status contrast(const fds__design *d, const fds_rows *rows, unsigned worker, size_t i,
                           size_t column, size_t width, double *other, double *u, fds_error *err) {
    bool paired = fds_plan_is_paired(d->plan);
    size_t row = 2 + i * (paired ? 2 : 1);
    TRY(rows->read(rows->context, worker, row, column, width, u, err));
    if (paired)
        TRY(rows->read(rows->context, worker, row + 1, column, width, other, err));
    double half = paired ? 0.5 : 1;
    for (size_t c = 0; c < width; c++)
        u[c] = half * (u[c] - other[c]);
    return FDS_OK;
}

fds_status fds__design_values(const fds__design *d, const fds_rows *rows, const fds_rows *control,
                              double share, unsigned worker, size_t first, size_t count,
                              size_t column, size_t width, size_t stride, double *scratch,
                              double *u, fds_error *err) {
    double *other = scratch, *other_control = scratch + width, *surrogate = scratch + 2 * width;
    bool paired = fds_plan_is_paired(d->plan);
    if (!paired)
        TRY(rows->read(rows->context, worker, 0, column, width, other, err));
    if (!paired && share != 0)
        TRY(control->read(control->context, worker, 0, column, width, other_control, err));
    for (size_t i = 0; i < count; i++) {
        double *to = u + i * stride;
        TRY(contrast(d, rows, worker, first + i, column, width, other, to, err));
        if (share == 0)
            continue;
        TRY(contrast(d, control, worker, first + i, column, width, other_control, surrogate, err));
        for (size_t c = 0; c < width; c++)
            to[c] -= share * surrogate[c];
    }
    return FDS_OK;
}

void fds__weigh(const double *x, size_t rows, size_t width, const double *weights, double *out) {
    for (size_t i = 0; i < rows; i++)
        for (size_t c = 0; c < width; c++)
            out[i * width + c] = weights[i] * x[i * width + c];
}

/* ---- groups ---- */

void fds__design_group_means(const fds__design *d, const double *x, size_t width, double *means) {
    for (size_t g = 0; g < d->group_count; g++) {
        const uint32_t *members = NULL;
        size_t of = d->groups ? fds_groups_members(d->groups, g, &members) : d->players;
        double *mean = means + (members ? members[0] : 0) * width;
        for (size_t c = 0; c < width; c++) {
            double sum = 0;
            for (size_t k = 0; k < of; k++)
                sum += x[(members ? members[k] : k) * width + c];
            mean[c] = sum / (double)of;
        }
        for (size_t k = 1; k < of; k++)
            memcpy(means + (members ? members[k] : k) * width, mean, width * sizeof *mean);
    }
}
