/* SPDX-License-Identifier: Apache-2.0
 * The part of least squares that does not depend on the columns: the solved normal equations, and
 * what standard errors need. Notation: ls.h. */
#include "ls.h"

#include <cblas.h>
#include <string.h>

/* P theta, P' = (I, members / size) */
void fds__ls_add_fit(const fds__design *d, const double *theta, size_t width, double *phi) {
    for (size_t i = 0; i < d->players * width; i++)
        phi[i] += theta[i];
    for (size_t j = d->players; j < d->features; j++) {
        const fds__count_step *step = &d->steps[j - d->players];
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

/* c (rows, size) = plus c + times a b, with a (rows, inner) and b (inner, size), in blocks of rows that take a
 * fraction of a second each */
static fds_status multiply(const fds__design *d, size_t rows, size_t size, size_t inner,
                           double times, const double *a, const double *b, double plus, double *c,
                           fds_error *err) {
    const size_t most = ((size_t)1 << 32) / size / inner, block = MIN(MAX(most, (size_t)16), rows);
    const double start_s = fds__now_s();
    for (size_t at = 0; at < rows; at += block) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)MIN(rows - at, block),
                    (int)size, (int)inner, times, a + at * inner, (int)inner, b, (int)size, plus,
                    c + at * size, (int)size);
        TRY(fds__report(d->events, "leverage", "rows", MIN(at + block, rows), rows, start_s, err));
    }
    return FDS_OK;
}

/* from_fit = (P - rest.q cross) fit.q, by which a pair influences the values through the fit; inner
 * (n, F) = cross fit.q. */
static fds_status make_influence(fds__ls_parts *l, const double *inner, fds_error *err) {
    const fds__design *d = &l->design;
    const size_t n = d->players, f = d->features;
    TRY(NEW(l->from_fit, n * f, err));
    fds__ls_add_fit(d, l->fit.q, f, l->from_fit);
    return multiply(d, n, f, n, -1, l->rest.q, inner, 1, l->from_fit, err);
}

/* Sets kept to 1 - c for each player, where lost (n, n), the share of each true deviation that each
 * value lacks, is about c (I - group means) in its group. own: scratch (n) */
static void measure_kept(const fds__design *d, const double *lost, double *own, double *kept) {
    const double least = 0.05; /* kept is a divisor */
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

fds__design fds__design_around(const fds__design *d, fds__penalty penalty) {
    fds__design around = *d;
    if (penalty.ridge > 0) {
        around.groups = NULL;
        around.group_count = 1;
    }
    return around;
}

/* lost (n, n) += strength (I - group means) x; means: scratch (n, n) */
static void add_lost(const fds__design *d, double strength, const double *x, double *means,
                     double *lost) {
    const size_t n = d->players;
    fds__design_group_means(d, x, n, means);
    for (size_t i = 0; i < n * n; i++)
        lost[i] += strength * (x[i] - means[i]);
}

/* The equations are H theta = b with H - penalty for b's expectation, so the values lack the penalty's
 * product with what they make of b: from_fit, or rest.q. */
static fds_status make_bias(fds__ls_parts *l, fds_error *err) {
    const fds__design *d = &l->design, around = fds__design_around(d, fds__ls_penalty(l));
    const fds__penalty penalty = fds__ls_penalty(l);
    const size_t n = d->players, f = l->with_fit ? d->features : n;
    const double start_s = fds__now_s();
    OWNED double *transposed = NULL, *lost = NULL; /* (f, n), (n, n) */
    if (penalty.ridge == 0 && penalty.shrink == 0)
        return FDS_OK;
    TRY(NEW(transposed, f * n, err));
    TRY(NEW(lost, n * n, err));
    TRY(NEW(l->bias, n * n, err));
    TRY(NEW(l->kept, n, err));
    fds__transpose(l->with_fit ? l->from_fit : l->rest.q, n, f, transposed);
    TRY(fds__design_report(d, "leverage", d->pairs, start_s, err));
    if (penalty.shrink > 0)
        add_lost(d, penalty.shrink, transposed, l->bias, lost);
    if (penalty.ridge > 0)
        add_lost(&around, penalty.ridge, transposed, l->bias, lost);
    TRY(fds__design_report(d, "leverage", d->pairs, start_s, err));
    fds__transpose(lost, n, n, l->bias);
    measure_kept(&around, l->bias, transposed, l->kept);
    for (size_t i = 0; i < n * n; i++)
        l->bias[i] *= l->bias[i];
    return FDS_OK;
}

/* What a pair's own target adds to its prediction: through the fit, and through the rest, whose
 * target then lacks the fit's part. inner (n, F) = cross fit.q. */
static fds_status make_leverage(fds__ls_parts *l, const double *inner, fds_error *err) {
    const fds__design *d = &l->design;
    const int n = (int)d->players, f = (int)d->features;
    OWNED double *rows = NULL, *scratch = NULL, *less = NULL; /* (block, F), (block, n) */
    TRY(NEW(less, l->with_fit ? FDS__LS_BLOCK * d->players : 1, err));
    TRY(NEW(rows, FDS__LS_BLOCK * d->features, err));
    TRY(NEW(scratch, FDS__LS_BLOCK * d->features, err));
    TRY(NEW(l->leverage, d->pairs, err));
    double of_fit[FDS__LS_BLOCK], start_s = fds__now_s();
    for (size_t first = 0; first < d->pairs; first += FDS__LS_BLOCK) {
        size_t count = MIN(d->pairs - first, (size_t)FDS__LS_BLOCK);
        fds__design_rows(d, first, count, rows);
        fds__solver_leverage(&l->rest, rows, count, d->features, d->kernel + first, scratch,
                             l->leverage + first);
        TRY(fds__design_report(d, "leverage", first + count, start_s, err));
        if (!l->with_fit)
            continue;
        /* scratch has z' rest.q */
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, n, f, 1, rows, f, inner, f,
                    0, less, n);
        for (size_t i = 0; i < count; i++)
            l->leverage[first + i] -= d->mild[first + i] * cblas_ddot(n, scratch + i * d->players,
                                                                      1, less + i * d->players, 1);
        fds__solver_leverage(&l->fit, rows, count, d->features, d->mild + first, scratch, of_fit);
        for (size_t i = 0; i < count; i++)
            l->leverage[first + i] += of_fit[i];
    }
    return FDS_OK;
}

fds_status fds__ls_parts_begin(const fds_plan *plan, const fds_ls_params *params,
                               const fds_events *events, fds__ls_parts *l, fds_error *err) {
    l->with_fit = fds__ls_with_fit(params->adjust);
    TRY(fds__design_create(plan, fds__ls_groups(plan, params), l->with_fit, events, &l->design,
                           err));
    /* with fewer pairs, standard errors say too little; members of a group that is one player are alike */
    l->with_prior = !l->design.wholes &&
                    (params->adjust == FDS_ADJUST_SHRINK || params->adjust == FDS_ADJUST_COUNTS) &&
                    l->design.pairs >= 2 * l->design.real;
    return FDS_OK;
}

/* Makes the solvers that fds__ls_choose has not left. */
fds_status fds__ls_parts_solve(fds__ls_parts *l, fds_error *err) {
    if (l->with_fit && !l->fit.q)
        TRY(fds__solver_create(&l->design, l->gram.mild, l->design.features, l->choice.fit, &l->fit,
                               err));
    return l->rest.q ? FDS_OK
                     : fds__solver_create(&l->design, l->gram.kernel, l->design.players,
                                          l->choice.rest, &l->rest, err);
}

static fds_status make_jackknife(fds__ls_parts *l, fds_error *err) {
    const fds__design *d = &l->design;
    const size_t n = d->players, f = d->features;
    OWNED double *inner = NULL;
    if (!l->with_fit)
        return make_leverage(l, NULL, err);
    TRY(NEW(inner, n * f, err));
    TRY(multiply(d, n, f, f, 1, l->gram.cross, l->fit.q, 0, inner, err));
    TRY(make_leverage(l, inner, err));
    return make_influence(l, inner, err);
}

fds_status fds__ls_parts_errors(fds__ls_parts *l, fds_error *err) {
    TRY(make_jackknife(l, err));
    /* members of a group that is one player have no deviations to lose */
    return l->design.wholes ? FDS_OK : make_bias(l, err);
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

fds_status fds__ls_parts_keep(fds__ls_parts *l, bool with_rows, fds_error *err) {
    const fds__design *d = &l->design;
    const double start_s = fds__now_s();
    size_t f = d->features, n = d->players;
    if (fds__ls_kept(d->pairs, with_rows ? f + n : n) == 0)
        return FDS_OK;
    OWNED double *rows = NULL;
    TRY(NEW(rows, FDS__LS_BLOCK * f, err));
    if (with_rows)
        TRY(NEW(l->rows, d->pairs * f, err));
    TRY(NEW(l->influence, d->pairs * n, err));
    for (size_t first = 0; first < d->pairs; first += FDS__LS_BLOCK) {
        size_t count = MIN(d->pairs - first, (size_t)FDS__LS_BLOCK);
        fds__design_rows(d, first, count, rows);
        if (with_rows)
            memcpy(l->rows + first * f, rows, count * f * sizeof *rows);
        fds__ls_influence(l, first, count, rows, l->influence + first * n);
        TRY(fds__design_report(d, "influence", first + count, start_s, err));
    }
    return FDS_OK;
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
