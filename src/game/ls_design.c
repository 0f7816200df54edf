/* SPDX-License-Identifier: Apache-2.0
 * Rows of the regression: indicators of the players, then steps over the counts of groups.
 *
 * A step at t over k players is f(s) = (1[c >= t] + 1[c >= k+1-t]) / 2, where c of them are in s.
 * The two halves have the same odd part, so that pairs fit nothing twice. By symmetry its Shapley
 * value is 1/k for each of the k players. */
#include "ls.h"

#include <math.h>
#include <string.h>

/* Steps go from 1 to half of the members: all of them in a small group, else ever wider apart. */
static uint32_t next_step(uint32_t at, uint32_t of) {
    enum { ALL_STEPS = 16 };
    uint32_t wider = at + at * 2 / 5;
    return of <= ALL_STEPS || wider <= at ? at + 1 : wider;
}

/* Writes the steps over a group to steps, unless it is NULL, and returns their number. */
static size_t add_steps(uint32_t group, size_t of, fds__count_step *steps) {
    size_t count = 0;
    for (uint32_t at = 1; at <= of / 2; at = next_step(at, (uint32_t)of)) {
        if (steps)
            steps[count] = (fds__count_step){.group = group, .at = at, .of = (uint32_t)of};
        count++;
    }
    return count;
}

/* One group is all players: then the steps over all are enough. */
static size_t make_steps(size_t players, const fds_groups *groups, fds__count_step *steps) {
    size_t count = 0, group_count = groups ? fds_groups_count(groups) : 1;
    for (size_t g = 0; group_count > 1 && g < group_count; g++) {
        const uint32_t *members;
        size_t of = fds_groups_members(groups, g, &members);
        count += add_steps((uint32_t)g, of, steps ? steps + count : NULL);
    }
    return count + add_steps(FDS__ALL, players, steps ? steps + count : NULL);
}

const fds_groups *fds__design_wholes(const fds_plan *plan, const fds_groups *groups) {
    if (plan->sampler != FDS_SAMPLER_GFDS_PLUS || !plan->groups || !groups ||
        fds_groups_count(groups) != fds_groups_count(plan->groups))
        return NULL;
    for (size_t i = 0; groups != plan->groups && i < plan->players; i++)
        if (fds_groups_of(groups, i) != fds_groups_of(plan->groups, i))
            return NULL;
    return plan->groups;
}

static size_t count_unknowns(size_t units, const fds_groups *groups, bool with_steps) {
    return units + (with_steps ? make_steps(units, groups, NULL) : 0);
}

size_t fds__ls_unknowns(fds_sampler sampler, size_t players, const fds_groups *groups,
                        fds_adjust adjust) {
    bool has_wholes = sampler == FDS_SAMPLER_GFDS_PLUS && groups;
    return count_unknowns(has_wholes ? fds_groups_count(groups) : players, groups,
                          fds__ls_with_fit(adjust));
}

fds_status fds__design_count(const fds_plan *plan, const fds_groups *groups, bool with_steps,
                             size_t *features, fds_error *err) {
    const fds_groups *wholes = fds__design_wholes(plan, groups);
    size_t players = wholes ? fds_groups_count(wholes) : fds_plan_players(plan);
    *features = count_unknowns(players, groups, with_steps);
    if (wholes && players > FDS__LS_MOST_DIRECT)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "least squares with %zu whole groups as players, at most %d are possible; "
                         "make fewer groups",
                         players, FDS__LS_MOST_DIRECT);
    size_t coarse = *features - players + (groups ? fds_groups_count(groups) : 1);
    if (*features > FDS__LS_MOST_DIRECT && coarse > FDS__LS_MOST_COARSE)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "least squares with %zu unknowns, of them %zu for groups, at most %d are "
                         "possible; make fewer groups, or providers the players",
                         *features, coarse, FDS__LS_MOST_COARSE);
    return FDS_OK;
}

/* The number of coalitions of k of n players; infinite where a double cannot hold it. */
static double choose(size_t n, size_t k) {
    double ways = 1;
    for (size_t i = 1; i <= MIN(k, n - k) && isfinite(ways); i++)
        ways = ways * (double)(n + 1 - i) / (double)i;
    return ways;
}

/* How many rows of the plan a pair has. */
static size_t rows_per_pair(const fds_plan *plan) { return plan->is_paired ? 2 : 1; }

static const uint64_t *first_of_pair(const fds__design *d, size_t pair) {
    return fds__plan_bits(d->plan, 2 + pair * rows_per_pair(d->plan));
}

/* drawn (real + 1) is zero; receives the number of rows of each size. */
static void make_unseen(fds__design *d, double *drawn) {
    bool without_replacement = d->plan->sampler == FDS_SAMPLER_LEVERAGE;
    for (size_t row = 2; row < fds_plan_rows(d->plan); row++)
        drawn[fds_coalition_size(fds_plan_coalition(d->plan, row), d->real)]++;
    for (size_t k = 0; k <= d->real; k++)
        drawn[k] = drawn[k] > 0 ? MAX(0, 1 - drawn[k] / round(choose(d->real, k))) : 1;
    for (size_t i = 0; i < d->pairs; i++) {
        size_t size = fds_coalition_size(first_of_pair(d, i), d->real);
        d->unseen[i] = without_replacement ? drawn[size] : 1;
    }
}

static void make_weights(fds__design *d) {
    double kernel = 0, mild = 0;
    for (size_t i = 0; i < d->pairs; i++) {
        double k = (double)fds_coalition_size(first_of_pair(d, i), d->real);
        d->kernel[i] = d->plan->weights[2 + i * rows_per_pair(d->plan)];
        /* the Shapley kernel over sizes is 1/(k(n-k)): this leaves its square root */
        d->mild[i] = d->kernel[i] * sqrt(k * ((double)d->real - k));
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
    OWNED double *drawn = NULL;
    *out = (fds__design){.plan = plan,
                         .groups = groups,
                         .wholes = fds__design_wholes(plan, groups),
                         .events = events,
                         .real = plan->players,
                         .players = plan->players,
                         .pairs = (plan->rows - 2) / rows_per_pair(plan),
                         .group_count = groups ? fds_groups_count(groups) : 1};
    if (out->wholes)
        out->players = fds_groups_count(out->wholes);
    TRY(fds__design_count(plan, groups, with_steps, &out->features, err));
    TRY(NEW(out->steps, out->features - out->players, err));
    TRY(NEW(out->kernel, out->pairs, err));
    TRY(NEW(out->mild, out->pairs, err));
    TRY(NEW(out->unseen, out->pairs, err));
    TRY(NEW(drawn, out->real + 1, err));
    if (with_steps)
        make_steps(out->players, groups, out->steps);
    make_weights(out);
    make_unseen(out, drawn);
    return FDS_OK;
}

void fds__design_free(fds__design *d) {
    fds__free(d->steps);
    fds__free(d->kernel);
    fds__free(d->mild);
    fds__free(d->unseen);
}

fds_status fds__design_report(const fds__design *d, const char *stage, size_t pairs, double start_s,
                              fds_error *err) {
    return fds__report(d->events, stage, "pairs", pairs, d->pairs, start_s, err);
}

/* ---- features ---- */

static double step_value(const fds__count_step *step, uint32_t count) {
    return 0.5 * ((count >= step->at) + (count >= step->of + 1 - step->at));
}

/* How many of the players that a step counts are in s. */
static uint32_t count_in(const fds__design *d, const fds__count_step *step, const uint64_t *s) {
    const uint32_t *members;
    uint32_t count = 0;
    if (step->group == FDS__ALL)
        return (uint32_t)fds_coalition_size(s, d->players);
    fds_groups_members(d->groups, step->group, &members);
    for (size_t i = 0; i < step->of; i++)
        count += fds_coalition_has(s, members[i]);
    return count;
}

void fds__design_steps(const fds__design *d, const uint64_t *s, double *row) {
    uint32_t count = 0;
    for (size_t j = 0; j < d->features - d->players; j++) {
        const fds__count_step *step = &d->steps[j];
        if (j == 0 || step->group != step[-1].group)
            count = count_in(d, step, s);
        row[j] = step_value(step, count);
        if (d->plan->is_paired)
            row[j] = 0.5 * (row[j] - step_value(step, step->of - count));
    }
}

static void design_row(const fds__design *d, const uint64_t *s, double *row) {
    for (size_t i = 0; i < d->players; i++) {
        const uint32_t *members;
        if (d->wholes)
            fds_groups_members(d->wholes, i, &members);
        row[i] = fds_coalition_has(s, d->wholes ? members[0] : i) - (d->plan->is_paired ? 0.5 : 0);
    }
    fds__design_steps(d, s, row + d->players);
}

void fds__design_rows(const fds__design *d, size_t first, size_t count, double *rows) {
    for (size_t i = 0; i < count; i++)
        design_row(d, first_of_pair(d, first + i), rows + i * d->features);
}

/* ---- targets ---- */

/* u of pair i in one game: (v(s) - v(1-s)) / 2, or v(s) - v(0). other: (width); without pairs it
 * holds v(0). */
static fds_status read_target(const fds__design *d, const fds_rows *rows, unsigned worker, size_t i,
                              size_t column, size_t width, double *other, double *u,
                              fds_error *err) {
    bool paired = d->plan->is_paired;
    size_t row = 2 + i * rows_per_pair(d->plan);
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
    bool paired = d->plan->is_paired;
    if (!paired)
        TRY(rows->read(rows->context, worker, 0, column, width, other, err));
    if (!paired && share != 0)
        TRY(control->read(control->context, worker, 0, column, width, other_control, err));
    for (size_t i = 0; i < count; i++) {
        double *to = u + i * stride;
        TRY(read_target(d, rows, worker, first + i, column, width, other, to, err));
        if (share == 0)
            continue;
        TRY(read_target(d, control, worker, first + i, column, width, other_control, surrogate,
                        err));
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
        for (size_t c = 0; c < width; c++)
            mean[c] = 0;
        for (size_t k = 0; k < of; k++)
            for (size_t c = 0; c < width; c++)
                mean[c] += x[(members ? members[k] : k) * width + c];
        for (size_t c = 0; c < width; c++)
            mean[c] /= (double)of;
        for (size_t k = 1; k < of; k++)
            memcpy(means + (members ? members[k] : k) * width, mean, width * sizeof *mean);
    }
}
