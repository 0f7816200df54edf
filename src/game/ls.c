/* SPDX-License-Identifier: Apache-2.0
 * Shapley values by least squares: minimises sum_s w(s) (v(s) - v(0) - s'phi)^2 subject to
 * sum phi = v(1) - v(0), the paper's equation for KernelSHAP and the loss of its explainer, whose
 * minimiser over all coalitions is the Shapley value. Notation and model: ls.h.
 *
 * Nothing but sums over the cases is kept, so memory does not grow with their number. */
#include "ls.h"

#include <cblas.h>
#include <string.h>

const fds_groups *fds_ls_groups(const fds_plan *plan, const fds_ls_params *params) {
    return plan->groups && params->adjust == FDS_PLAIN ? plan->groups : params->groups;
}

fds_status fds_least_squares_check(const fds_plan *plan, const fds_ls_params *params,
                                   fds_error *err) {
    if (plan->is_exact)
        return fds_fail(err, FDS_USAGE, "least squares need a plan of sampled coalitions");
    if ((int)params->adjust < FDS_PLAIN || params->adjust > FDS_COUNTS)
        return fds_fail(err, FDS_USAGE, "there is no adjustment number %d, only 0 to %d",
                        (int)params->adjust, FDS_COUNTS);
    if (params->groups && fds_groups_players(params->groups) != plan->players)
        return fds_fail(err, FDS_SHAPE, "the groups are of %zu players, the plan of %zu",
                        fds_groups_players(params->groups), plan->players);
    if (plan->groups && params->adjust == FDS_COUNTS)
        return fds_fail(err, FDS_USAGE,
                        "the counts of groups explain nothing where groups take part as wholes: "
                        "choose plain or shrunk least squares");
    size_t features;
    return fds_design_count(plan, fds_ls_groups(plan, params), params->adjust == FDS_COUNTS,
                            &features, err);
}

static fds_status check_rows(const fds_rows *rows, const fds_ls_params *params, fds_error *err) {
    if (rows->columns == 0)
        return fds_fail(err, FDS_USAGE, "least squares of no columns");
    if (!params->control != !params->control_values ||
        (params->control && params->control->columns != rows->columns))
        return fds_fail(err, FDS_SHAPE, "the surrogate game does not fit the game");
    return FDS_OK;
}

uint64_t fds_least_squares_memory(const fds_plan *plan, const fds_ls_params *params, size_t columns,
                                  unsigned threads) {
    bool with_fit = params->adjust == FDS_COUNTS;
    uint64_t n = plan->players, cases = plan->rows / (plan->is_paired ? 2 : 1);
    size_t f = 0;
    if (fds_design_count(plan, fds_ls_groups(plan, params), with_fit, &f, NULL) != FDS_OK)
        return UINT64_MAX;
    uint64_t width = FDS_MIN(columns, (size_t)FDS_LS_CHUNK);
    uint64_t sample = FDS_MIN(columns, (size_t)FDS_LS_SAMPLE);
    uint64_t left_out = FDS_MIN(cases, (uint64_t)FDS_LS_LEFT_OUT);
    uint64_t workers = threads ? threads : fds_processors();
    /* gram matrices and, once chosen, solvers, influences and bias */
    uint64_t fixed = 2 * n * n + (with_fit ? 2 * f * f + 2 * n * f : 0) + 4 * n * n;
    /* a candidate while choosing; a chunk of columns while solving */
    uint64_t choosing = f * f + (f + left_out) * sample + f * left_out;
    uint64_t solving = FDS_LS_BLOCK * (f + 2 * width + n) + (2 * f + 4 * n) * width;
    uint64_t sums = (f + n + left_out) * sample * (params->control ? 2 : 1) + left_out * f;
    return sizeof(double) * (fixed + sums + workers * FDS_MAX(choosing, solving) + 4 * cases);
}

static fds_status run(fds_ls_parts *parts, const fds_plan *plan, const fds_rows *rows,
                      const fds_ls_params *params, unsigned threads, double *values, double *errors,
                      const fds_events *events, fds_error *err) {
    /* OpenBLAS would start threads of its own beside ours, and its sums depend on their number */
    openblas_set_num_threads(1);
    FDS_TRY(fds_ls_parts_begin(plan, params, parts, err));
    FDS_TRY(
        fds_ls_choose(&parts->design, &parts->gram, rows, params, threads, &parts->choice, err));
    FDS_TRY(fds_ls_parts_solve(parts, err));
    if (errors)
        FDS_TRY(fds_ls_parts_errors(parts, err));
    return fds_ls_columns(parts, rows, params, threads, values, errors, events, err);
}

fds_status fds_ls_one_player(const fds_rows *rows, double *values, double *errors, fds_error *err) {
    double empty[FDS_LS_SAMPLE];
    for (size_t first = 0; first < rows->columns; first += FDS_LS_SAMPLE) {
        size_t count = FDS_MIN(rows->columns - first, (size_t)FDS_LS_SAMPLE);
        FDS_TRY(rows->read(rows->context, 0, 0, first, count, empty, err));
        FDS_TRY(rows->read(rows->context, 0, 1, first, count, values + first, err));
        for (size_t c = 0; c < count; c++)
            values[first + c] -= empty[c];
    }
    if (errors)
        memset(errors, 0, rows->columns * sizeof *errors);
    return FDS_OK;
}

fds_status fds_least_squares(const fds_plan *plan, const fds_rows *rows,
                             const fds_ls_params *params, unsigned threads, double *values,
                             double *errors, fds_ls_report *report, const fds_events *events,
                             fds_error *err) {
    FDS_TRY(fds_least_squares_check(plan, params, err));
    FDS_TRY(check_rows(rows, params, err));
    fds_ls_parts l = {0};
    fds_status status = plan->players == 1
                            ? fds_ls_one_player(rows, values, errors, err)
                            : run(&l, plan, rows, params, threads, values, errors, events, err);
    if (report)
        *report = (fds_ls_report){.cases = l.design.cases,
                                  .features = l.design.features,
                                  .ridge = FDS_MAX(l.choice.fit.ridge, l.choice.rest.ridge),
                                  .ridge_fit = l.choice.fit.ridge,
                                  .ridge_rest = l.choice.rest.ridge,
                                  .shrink = l.with_fit ? l.choice.fit.shrink : l.choice.rest.shrink,
                                  .shrink_rest = l.with_fit ? l.choice.rest.shrink : 0,
                                  .control = l.choice.control,
                                  .explained = l.choice.explained};
    fds_ls_parts_free(&l);
    return status;
}
