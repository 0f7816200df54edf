/* SPDX-License-Identifier: Apache-2.0
 * Shapley values by least squares: minimises sum_s w(s) (v(s) - v(0) - s'phi)^2 subject to
 * sum phi = v(1) - v(0), the paper's equation for KernelSHAP and the loss of its explainer, whose
 * minimiser over all coalitions is the Shapley value. Notation and model: ls.h.
 *
 * Only sums over the pairs are kept, so memory does not grow with their number; where columns come in
 * several chunks, the influence of the pairs as well, unless it is large. */
#include "ls.h"

const fds_groups *fds__ls_groups(const fds_plan *plan, const fds_ls_params *params) {
    return plan->groups && params->adjust == FDS_ADJUST_NONE ? plan->groups : params->groups;
}

bool fds__ls_is_many(const fds_plan *plan, const fds_groups *groups, size_t features,
                     size_t columns) {
    size_t coarse = features - fds_plan_players(plan) + (groups ? fds_groups_count(groups) : 1);
    double f = (double)features, m = (double)(plan->rows / (plan->is_paired ? 2 : 1));
    if (fds__design_wholes(plan, groups))
        return false;
    return features > FDS__LS_MOST_DIRECT ||
           (features > FDS__LS_MANY && coarse <= FDS__LS_MOST_COARSE &&
            6 * m * (double)columns < f * f + 0.6 * m * f);
}

fds_status fds_least_squares_check(const fds_plan *plan, const fds_ls_params *params,
                                   fds_error *err) {
    if (plan->is_exact)
        return fds__fail(err, FDS_ERR_USAGE, "least squares need a plan of sampled coalitions");
    assert(plan->players > 1); /* fds_plan_sample has checked that */
    if ((int)params->adjust < FDS_ADJUST_NONE || params->adjust > FDS_ADJUST_CONTROL)
        return fds__fail(err, FDS_ERR_USAGE, "there is no adjustment number %d, only 0 to %d",
                         (int)params->adjust, FDS_ADJUST_CONTROL);
    if (params->groups && fds_groups_players(params->groups) != plan->players)
        return fds__fail(err, FDS_ERR_SHAPE, "the groups are of %zu players, the plan of %zu",
                         fds_groups_players(params->groups), plan->players);
    if (plan->groups && fds__ls_with_fit(params->adjust))
        return fds__fail(err, FDS_ERR_USAGE,
                         "counts of groups do not apply where whole groups are players: choose "
                         "plain or shrunk least squares");
    size_t features;
    return fds__design_count(plan, fds__ls_groups(plan, params), fds__ls_with_fit(params->adjust),
                             &features, err);
}

static fds_status check_rows(const fds_rows *rows, const fds_ls_params *params, fds_error *err) {
    if (rows->columns == 0)
        return fds__fail(err, FDS_ERR_USAGE, "least squares of no columns");
    if (!params->control != !params->control_values ||
        (params->control && params->control->columns != rows->columns))
        return fds__fail(err, FDS_ERR_SHAPE, "the surrogate game does not fit the game");
    return FDS_OK;
}

/* With matrices of all unknowns. */
static uint64_t direct_memory(uint64_t n, uint64_t f, uint64_t pairs, uint64_t members,
                              uint64_t columns, const fds_ls_params *params, uint64_t workers) {
    bool with_fit = fds__ls_with_fit(params->adjust);
    uint64_t width = MIN(columns, (uint64_t)FDS__LS_CHUNK);
    uint64_t sample = MIN(columns, (uint64_t)FDS__LS_SAMPLE);
    uint64_t left_out = MIN(pairs, (uint64_t)FDS__LS_LEFT_OUT);
    uint64_t gram = n * n + (with_fit ? f * f + n * f : 0);
    /* while choosing: the path of strengths, made in two copies, and what several of them hold */
    uint64_t sums = (f + n + left_out) * sample * (params->control ? 2 : 1) + left_out * f;
    uint64_t strength = (f + left_out) * sample + left_out + 3 * f;
    uint64_t path = f * (left_out + sample) + f * f +
                    MAX(f * f, MIN(workers, (uint64_t)11) * strength) + workers * 21000;
    uint64_t risk = n * (left_out + sample + 3), turned = 4 * n * left_out + 2 * n * sample;
    uint64_t turning = 2 * n * left_out + MAX(2 * left_out * f, turned);
    uint64_t rest = f * f + (f + left_out) * sample + n * n + workers * 21000 +
                    MAX(n * n, MAX(turning, turned + MIN(workers, (uint64_t)6) * risk));
    uint64_t choosing = sums + MAX(path, with_fit ? rest : 0);
    /* then the solvers, from_fit and bias; a chunk of columns */
    uint64_t solvers = n * n + (with_fit ? f * f + n * f : 0);
    uint64_t chunk = FDS__LS_BLOCK * (f + 2 * width + n) + (2 * f + 4 * n + 2 * members) * width;
    uint64_t bias = n * f + 2 * n * n, jobs = (columns + FDS__LS_CHUNK - 1) / FDS__LS_CHUNK;
    uint64_t influence = jobs > 1 ? fds__ls_kept(pairs, n) : 0;
    uint64_t solving = solvers + MAX(bias, n * n + influence + MIN(workers, jobs) * chunk);
    return sizeof(double) * (gram + MAX(choosing, solving) + 4 * pairs);
}

uint64_t fds_least_squares_memory(const fds_plan *plan, const fds_ls_params *params, size_t columns,
                                  unsigned threads) {
    const fds_groups *groups = fds__ls_groups(plan, params),
                     *wholes = fds__design_wholes(plan, groups);
    uint64_t n = wholes ? fds_groups_count(wholes) : plan->players;
    uint64_t pairs = plan->rows / (plan->is_paired ? 2 : 1);
    uint64_t workers = threads ? threads : fds_processors();
    size_t f = 0;
    if (fds__design_count(plan, groups, fds__ls_with_fit(params->adjust), &f, NULL) != FDS_OK)
        return UINT64_MAX;
    return fds__ls_is_many(plan, groups, f, columns)
               ? fds__ls_cg_memory(n, f, pairs, groups ? fds_groups_count(groups) : 1, columns,
                                   params->control, workers)
               : direct_memory(n, f, pairs, wholes ? plan->players : 0, columns, params, workers);
}

static fds_status run(fds__ls_parts *parts, const fds_plan *plan, const fds_rows *rows,
                      const fds_ls_params *params, unsigned threads, double *values, double *errors,
                      const fds_events *events, fds_error *err) {
    TRY(fds__ls_parts_begin(plan, params, events, parts, err));
    if (fds__ls_is_many(plan, parts->design.groups, parts->design.features, rows->columns))
        return fds__ls_cg(&parts->design, parts->with_prior, rows, params, threads, values, errors,
                          &parts->choice, err);
    TRY(fds__gram_create(&parts->design, &parts->gram, err));
    TRY(fds__ls_choose(parts, rows, params, threads, err));
    TRY(fds__ls_parts_solve(parts, err));
    if (errors || parts->with_prior)
        TRY(fds__ls_parts_errors(parts, err));
    if ((errors || parts->with_prior) && rows->columns > FDS__LS_CHUNK) /* of use to each chunk */
        TRY(fds__ls_parts_keep(parts, false, err));
    return fds__ls_columns(parts, rows, params, threads, values, errors, err);
}

fds_status fds_least_squares(const fds_plan *plan, const fds_rows *rows,
                             const fds_ls_params *params, unsigned threads, double *values,
                             double *errors, fds_ls_report *report, const fds_events *events,
                             fds_error *err) {
    TRY(fds_least_squares_check(plan, params, err));
    TRY(check_rows(rows, params, err));
    fds__ls_parts l = {0};
    fds__blas_begin();
    fds_status status = run(&l, plan, rows, params, threads, values, errors, events, err);
    fds__blas_end();
    if (report)
        *report = (fds_ls_report){.pairs = l.design.pairs,
                                  .features = l.design.features,
                                  .ridge = MAX(l.choice.fit.ridge, l.choice.rest.ridge),
                                  .ridge_fit = l.choice.fit.ridge,
                                  .ridge_rest = l.choice.rest.ridge,
                                  .shrink = l.with_fit ? l.choice.fit.shrink : l.choice.rest.shrink,
                                  .shrink_rest = l.with_fit ? l.choice.rest.shrink : 0,
                                  .control = l.choice.control,
                                  .explained = l.choice.explained};
    fds__ls_parts_free(&l);
    return status;
}

void fds__ls_warn(const fds_ls_report *report, size_t coalitions, size_t players,
                  const fds_events *events) {
    if (report->ridge > 0)
        fds__log(events, FDS_LOG_WARNING,
                 "%zu coalitions are few for %zu players: least squares needed a ridge (%g), which "
                 "shrinks the values, the largest most; use more coalitions",
                 coalitions, players, report->ridge);
}
