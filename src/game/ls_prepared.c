/* SPDX-License-Identifier: Apache-2.0
 * Least squares for many games over the same coalitions with given strengths: each game then costs
 * a few products with vectors only. The rows of the design and the influence of the pairs are kept
 * as well, unless they are too large. */
#include "ls.h"

#include <math.h>
#include <string.h>

struct fds__ls_prepared {
    fds_ls_params params;
    fds__ls_parts parts;
};

/* ---- strengths ---- */

static bool is_strength(double value) { return value >= 0 && isfinite(value); }

static fds_status take_strengths(const fds_ls_report *r, bool with_fit, fds__ls_choice *choice,
                                 fds_error *err) {
    if (r->control != 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "least squares prepared once cannot subtract a surrogate game (share %g)",
                         r->control);
    if (!is_strength(r->shrink) || !is_strength(r->shrink_rest) || !is_strength(r->ridge_fit) ||
        !is_strength(r->ridge_rest) || r->ridge != MAX(r->ridge_fit, r->ridge_rest))
        return fds__fail(err, FDS_ERR_USAGE,
                         "shrink %g and %g, ridge %g (%g and %g) are not strengths that least "
                         "squares have chosen",
                         r->shrink, r->shrink_rest, r->ridge, r->ridge_fit, r->ridge_rest);
    *choice = (fds__ls_choice){
        .fit = {.ridge = r->ridge_fit, .shrink = with_fit ? r->shrink : 0},
        .rest = {.ridge = r->ridge_rest, .shrink = with_fit ? r->shrink_rest : r->shrink},
    };
    return FDS_OK;
}

/* ---- making one ---- */

fds_status fds__ls_prepared_check(const fds_plan *plan, const fds_ls_params *params,
                                  fds_error *err) {
    size_t features;
    TRY(fds_least_squares_check(plan, params, err));
    TRY(fds__design_count(plan, fds__ls_groups(plan, params), fds__ls_with_fit(params->adjust),
                          &features, err));
    if (features > FDS__LS_MOST_DIRECT)
        return fds__fail(
            err, FDS_ERR_LIMIT,
            "sub-models cannot answer for so many players: that takes least squares with %zu "
            "unknowns, at most %d are possible; choose a network, for example `explainer` mlp",
            features, FDS__LS_MOST_DIRECT);
    return FDS_OK;
}

static fds_status prepare(fds__ls_prepared *p, const fds_plan *plan, const fds_ls_report *strengths,
                          fds_error *err) {
    TRY(take_strengths(strengths, fds__ls_with_fit(p->params.adjust), &p->parts.choice, err));
    TRY(fds__ls_parts_begin(plan, &p->params, NULL, &p->parts, err));
    TRY(fds__gram_create(&p->parts.design, &p->parts.gram, err));
    TRY(fds__ls_parts_solve(&p->parts, err));
    TRY(fds__ls_parts_errors(&p->parts, err));
    return fds__ls_parts_keep(&p->parts, true, err);
}

fds_status fds__ls_prepared_create(const fds_plan *plan, const fds_ls_params *params,
                                   const fds_ls_report *strengths, fds__ls_prepared **out,
                                   fds_error *err) {
    TRY(fds__ls_prepared_check(plan, params, err));
    if (params->control || params->control_values)
        return fds__fail(err, FDS_ERR_USAGE, "least squares prepared once take no surrogate game");
    fds__ls_prepared *p;
    TRY(NEW(p, 1, err));
    p->params = *params;
    fds__blas_begin();
    fds_status status = prepare(p, plan, strengths, err);
    fds__blas_end();
    if (status == FDS_OK)
        *out = p;
    else
        fds__ls_prepared_free(p);
    return status;
}

void fds__ls_prepared_free(fds__ls_prepared *p) {
    if (!p)
        return;
    fds__ls_parts_free(&p->parts);
    fds__free(p);
}

/* ---- solving ---- */

typedef struct {
    const double *v;
    size_t columns;
} array;

static fds_status read_array(void *context, unsigned worker, size_t row, size_t first, size_t count,
                             double *out, fds_error *err) {
    const array *a = context;
    (void)worker, (void)err;
    memcpy(out, a->v + row * a->columns + first, count * sizeof *out);
    return FDS_OK;
}

fds_status fds__ls_prepared_solve(const fds__ls_prepared *p, const double *v, size_t columns,
                                  double *values, double *errors, fds_error *err) {
    array a = {v, columns};
    fds_rows rows = {columns, read_array, &a};
    if (columns == 0)
        return fds__fail(err, FDS_ERR_USAGE, "least squares of no columns");
    fds__blas_begin();
    fds_status status = fds__ls_columns(&p->parts, &rows, &p->params, 1, values, errors, err);
    fds__blas_end();
    return status;
}
