/* SPDX-License-Identifier: Apache-2.0
 * What the least squares of a plan need whatever the columns: the equations' solutions once their
 * strengths are known, and what standard errors are made of. Notation: ls.h. */
#include "ls.h"

#include <cblas.h>
#include <string.h>

/* P theta, P' = (I, members / size) */
void fds__ls_add_fit(const fds__design *d, const double *theta, size_t width, double *phi) {
    for (size_t i = 0; i < d->players * width; i++)
        phi[i] += theta[i];
    for (size_t j = d->players; j < d->features; j++) {
        const fds__optimizer_step *step = &d->steps[j - d->players];
        const uint32_t *members = NULL;
        if (step->group != FDS__ALL)
            fds_groups_members(d->groups, step->group, &members);
        for (size_t k = 0; k < step->of; k++) {
            double *to = phi + (members ? members[k] : k) * width;
            for (size_t c = 0; c < width; c++)
                to[c] += theta[j * width + c] / step->of;
        }
    }
}

/* from_fit = (P - rest.q cross) fit.q, so that the influence of a case on the values is known. */
static fds_status make_influence(fds__ls_parts *l, fds_error *err) {
    const fds__design *d = &l->design;
    int n = (int)d->players, f = (int)d->features;
    double *inner = fds__alloc_zero(d->players * d->features, sizeof *inner);
    l->from_fit = fds__alloc_zero(d->players * d->features, sizeof *l->from_fit);
    if (!inner || !l->from_fit) {
        fds__free(inner);
        return fds__fail_nomem(err, d->players * d->features * sizeof *inner);
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, f, f, 1, l->gram.cross, f, l->fit.q,
                f, 0, inner, f);
    fds__ls_add_fit(d, l->fit.q, d->features, l->from_fit);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, f, n, -1, l->rest.q, n, inner, f, 1,
                l->from_fit, f);
    fds__free(inner);
    return FDS_OK;
}

/* What is kept of the deviations in each player's group: 1 - c where lost, how much of each true
 * deviation each value lacks, is about c (I - group means). own: (n) */
static void measure_kept(const fds__design *d, const double *lost, double *own, double *kept) {
    const double least = 0.05; /* to divide by */
    size_t n = d->players;
    for (size_t j = 0; j < n; j++)
        own[j] = lost[j * n + j];
    fds__design_group_means(d, own, 1, kept);
    for (size_t j = 0; j < n; j++) {
        const uint32_t *members;
        size_t of =
            d->groups ? fds_groups_members(d->groups, fds_groups_of(d->groups, j), &members) : n;
        double c = of > 1 ? kept[j] * (double)of / (double)(of - 1) : 0;
        kept[j] = MAX(1 - c, least);
    }
}

/* Shrinking loses strength * (values of solver.q) (I - group means) of the true deviations. */
static fds_status make_bias(fds__ls_parts *l, fds_error *err) {
    const fds__design *d = &l->design;
    size_t n = d->players;
    const fds__solver *solver = l->with_fit ? &l->fit : &l->rest;
    double strength = l->with_fit ? l->choice.fit.shrink : l->choice.rest.shrink;
    double *all = fds__alloc_zero(n * solver->size, sizeof *all);
    double *transposed = fds__alloc_zero(2 * n * n, sizeof *transposed);
    l->bias = fds__alloc_zero(n * n, sizeof *l->bias);
    l->kept = fds__alloc_zero(n, sizeof *l->kept);
    fds_status status = FDS_OK;
    if (!all || !transposed || !l->bias || !l->kept) {
        status = fds__fail_nomem(err, n * n * sizeof *all);
    } else {
        double *means = transposed + n * n;
        if (l->with_fit)
            fds__ls_add_fit(d, solver->q, solver->size, all);
        else
            memcpy(all, solver->q, n * n * sizeof *all);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                transposed[j * n + i] = all[i * solver->size + j];
        fds__design_group_means(d, transposed, n, means);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                l->bias[i * n + j] = strength * (transposed[j * n + i] - means[j * n + i]);
        measure_kept(d, l->bias, all, l->kept);
        for (size_t i = 0; i < n * n; i++)
            l->bias[i] *= l->bias[i];
    }
    fds__free(all);
    fds__free(transposed);
    return status;
}

static fds_status make_leverage(fds__ls_parts *l, fds_error *err) {
    const fds__design *d = &l->design;
    l->leverage = fds__alloc_zero(d->pairs, sizeof *l->leverage);
    double *work = fds__alloc_zero(2 * FDS__LS_BLOCK * d->features, sizeof *work);
    uint32_t *counts = fds__alloc_zero(d->group_count, sizeof *counts);
    if (!l->leverage || !work || !counts) {
        fds__free(work);
        fds__free(counts);
        return fds__fail_nomem(err, d->pairs * sizeof *l->leverage);
    }
    double *rows = work + FDS__LS_BLOCK * d->features;
    double own[FDS__LS_BLOCK], start_s = fds__now_s();
    fds_status status = FDS_OK;
    for (size_t first = 0; status == FDS_OK && first < d->pairs; first += FDS__LS_BLOCK) {
        size_t count = MIN(d->pairs - first, (size_t)FDS__LS_BLOCK);
        fds__design_rows(d, first, count, counts, rows);
        fds__solver_leverage(&l->rest, rows, count, d->features, d->kernel + first, work,
                             l->leverage + first);
        status = fds__design_tell(d, "leverage", first + count, start_s, err);
        if (!l->with_fit)
            continue;
        fds__solver_leverage(&l->fit, rows, count, d->features, d->mild + first, work, own);
        for (size_t i = 0; i < count; i++)
            l->leverage[first + i] += own[i];
    }
    fds__free(work);
    fds__free(counts);
    return status;
}

fds_status fds__ls_parts_begin(const fds_plan *plan, const fds_ls_params *params,
                               const fds_events *events, fds__ls_parts *l, fds_error *err) {
    l->with_fit = params->adjust == FDS_ADJUST_COUNTS;
    TRY(fds__design_create(plan, fds__ls_groups(plan, params), l->with_fit, events, &l->design,
                           err));
    return fds__gram_create(&l->design, &l->gram, err);
}

fds_status fds__ls_parts_solve(fds__ls_parts *l, fds_error *err) {
    if (l->with_fit)
        TRY(fds__solver_create(&l->design, l->gram.mild, l->design.features, l->choice.fit, &l->fit,
                               err));
    return fds__solver_create(&l->design, l->gram.kernel, l->design.players, l->choice.rest,
                              &l->rest, err);
}

fds_status fds__ls_parts_errors(fds__ls_parts *l, fds_error *err) {
    TRY(make_leverage(l, err));
    TRY(make_bias(l, err));
    return l->with_fit ? make_influence(l, err) : FDS_OK;
}

void fds__ls_influence(const fds__ls_parts *l, size_t first, size_t count, double *rows,
                       double *influence) {
    const fds__design *d = &l->design;
    int n = (int)d->players, f = (int)d->features, b = (int)count;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, b, n, n, 1, rows, f, l->rest.q, n, 0,
                influence, n);
    fds__weigh(influence, count, d->players, d->kernel + first, influence);
    if (l->with_fit) {
        for (size_t i = 0; i < count; i++)
            cblas_dscal(f, d->mild[first + i], rows + i * d->features, 1);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, b, n, f, 1, rows, f, l->from_fit, f, 1,
                    influence, n);
    }
    for (size_t i = 0; i < count * d->players; i++)
        influence[i] *= influence[i];
}

void fds__ls_parts_free(fds__ls_parts *l) {
    fds__design_free(&l->design);
    fds__gram_free(&l->gram);
    fds__solver_free(&l->fit);
    fds__solver_free(&l->rest);
    fds__free(l->from_fit);
    fds__free(l->bias);
    fds__free(l->kept);
    fds__free(l->leverage);
    fds__free(l->rows);
    fds__free(l->influence);
}
