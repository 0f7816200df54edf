/* SPDX-License-Identifier: Apache-2.0
 * Standard errors of least squares of many unknowns: the jackknife of ls_columns.c, without the
 * influence of each pair on each player.
 *
 * On the fine part the values are, with M and K the inverses of H of the fit and of the rest,
 *     phi = v b_mild + u b_kernel,   v = rest K M,   u = K,
 * because K (cross M b) = (1 - rest K) M b. The influence of a pair with fine part z is (alpha v + beta u)
 * z, alpha and beta being its weights divided by 1 + x for each inverse that has seen the pair
 * (Sherman and Morrison). z is a random direction, and independent of inverses that have not seen it, so
 * that the square of the influence on player i is
 *     (alpha tr v + beta tr u)^2 z_i^2 + what goes through other players,
 * and its sum over the players is |z|^2 tr (alpha v + beta u)'(alpha v + beta u); tr is the trace over the
 * number of players. Random vectors estimate the traces: of thousands of players, within a per cent.
 * What a pair moves through the means of the groups and the steps is computed as it is. */
#include "game/ls_cg.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

/* ---- traces ---- */

double fds__cg_ratio(size_t n, size_t width, const double *x, const double *y, const double *r) {
    double sum = 0;
    for (size_t c = 0; c < FDS__CG_PROBES; c++) {
        double own = cblas_ddot((int)n, r + c, (int)width, r + c, (int)width);
        sum += own > 0 ? cblas_ddot((int)n, x + c, (int)width, y + c, (int)width) / own : 0;
    }
    return sum / FDS__CG_PROBES;
}

void fds__cg_probes(const fds__cg *m, size_t width, size_t first, double *r) {
    for (size_t i = 0; i < m->d->players; i++) {
        fds_rng rng = fds_rng_make(0, FDS__PURPOSE_PROBE, i, 0);
        uint64_t bits = fds_rng_u64(&rng);
        for (size_t c = 0; c < FDS__CG_PROBES; c++)
            r[i * width + first + c] = bits >> c & 1 ? 1 : -1;
    }
}

static fds_status solve_fine(const fds__cg_stage *s, const double *b, size_t width,
                             fds__cg_scratch *t, double *x, fds_error *err) {
    const double tolerance = 1e-2; /* the error of a trace is its square */
    memset(x, 0, s->size * width * sizeof *x);
    TRY(fds__cg_solve(s, b, width, tolerance, t, x, err));
    fds__cg_make_fine(s->many, width, t, x);
    return FDS_OK;
}

fds_status fds__cg_trace(const fds__cg_stage *fit, const fds__cg_stage *rest, fds__cg_scratch *t,
                         fds__cg_traces *out, fds_error *err) {
    enum { W = FDS__BITS_TILE };
    const fds__cg *m = rest->many;
    const size_t n = m->d->players, size = m->d->features * W;
    OWNED double *r = NULL, *of_fit = NULL, *u = NULL, *v = NULL; /* (F, W) */
    TRY(NEW(r, size, err));
    TRY(NEW(of_fit, size, err));
    TRY(NEW(u, size, err));
    TRY(NEW(v, size, err));
    fds__cg_probes(m, W, 0, r);
    fds__cg_make_fine(m, W, t, r);
    *out = (fds__cg_traces){0};
    TRY(solve_fine(rest, r, W, t, u, err));
    if (fit) {
        double strength = rest->penalty.ridge + rest->penalty.shrink;
        TRY(solve_fine(fit, r, W, t, of_fit, err));
        TRY(solve_fine(rest, of_fit, W, t, v, err));
        out->fit = fds__cg_ratio(n, W, of_fit, r, r);
        out->fit2 = fds__cg_ratio(n, W, of_fit, of_fit, r);
        cblas_dscal((int)size, strength, v, 1);
    }
    out->rest = out->u = fds__cg_ratio(n, W, u, r, r);
    out->uu = fds__cg_ratio(n, W, u, u, r);
    out->v = fds__cg_ratio(n, W, v, r, r);
    out->vv = fds__cg_ratio(n, W, v, v, r);
    out->vu = fds__cg_ratio(n, W, v, u, r);
    return FDS_OK;
}

/* ---- the coarse part ---- */

/* ones (coarse) = the coarse part of H^-1 1; returns its sum */
static double solve_ones(const fds__cg_stage *s, double *ones) {
    const fds__cg *m = s->many;
    const int q = (int)s->coarse;
    double sum = 0;
    for (size_t j = 0; j < s->coarse; j++)
        ones[j] = j < m->groups ? m->root[j] : 1;
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, q, s->factor, q, ones, 1);
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasTrans, CblasNonUnit, q, s->factor, q, ones, 1);
    for (size_t j = 0; j < s->coarse; j++)
        sum += ones[j] * (j < m->groups ? m->root[j] : 1);
    return sum;
}

/* x (count, coarse) = x Q; ones and sum: of solve_ones */
static void apply_coarse(const fds__cg_stage *s, size_t count, const double *ones, double sum,
                         double *x) {
    const fds__cg *m = s->many;
    const int q = (int)s->coarse, rows = (int)count;
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, rows, q, 1,
                s->factor, q, x, q);
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, rows, q, 1,
                s->factor, q, x, q);
    for (size_t p = 0; p < count; p++) {
        double all = 0;
        for (size_t j = 0; j < s->coarse; j++)
            all += x[p * s->coarse + j] * (j < m->groups ? m->root[j] : 1);
        cblas_daxpy(q, -all / sum, ones, 1, x + p * s->coarse, 1);
    }
}

fds_status fds__cg_forms(const fds__cg_stage *s, size_t count, double *forms, fds_error *err) {
    const fds__cg *m = s->many;
    const size_t q = s->coarse;
    OWNED double *ones = NULL, *x = NULL;
    TRY(NEW(ones, q, err));
    TRY(NEW(x, FDS__LS_BLOCK * q, err));
    double sum = solve_ones(s, ones);
    for (size_t first = 0; first < count; first += FDS__LS_BLOCK) {
        size_t rows = MIN(count - first, (size_t)FDS__LS_BLOCK);
        for (size_t p = 0; p < rows; p++)
            memcpy(x + p * q, m->rows + (first + p) * m->coarse, q * sizeof *x);
        apply_coarse(s, rows, ones, sum, x);
        for (size_t p = 0; p < rows; p++)
            forms[first + p] =
                cblas_ddot((int)q, x + p * q, 1, m->rows + (first + p) * m->coarse, 1);
        TRY(fds__pool_check(err));
    }
    return FDS_OK;
}

/* Scratch and matrices for the influence through the coarse part. */
typedef struct {
    const fds__cg_stage *fit, *rest;
    double *of_fit, *of_rest;     /* (block, q), (block, groups) */
    double *ones_fit, *ones_rest; /* (q), (groups) */
    double sum_fit, sum_rest;
    double *cross; /* (groups, q): of the rest's rows with the fit's, kernel weights */
} coarse_part;

static fds_status coarse_create(coarse_part *c, fds_error *err) {
    const fds__cg *m = c->rest->many;
    const size_t q = m->coarse, g = m->groups, block = FDS__LS_BLOCK;
    TRY(NEW(c->of_fit, block * (q + g) + q + g + g * q, err));
    c->of_rest = c->of_fit + block * q;
    c->ones_fit = c->of_rest + block * g;
    c->ones_rest = c->ones_fit + q;
    c->cross = c->ones_rest + g;
    c->sum_rest = solve_ones(c->rest, c->ones_rest);
    if (!c->fit)
        return FDS_OK;
    c->sum_fit = solve_ones(c->fit, c->ones_fit);
    for (size_t first = 0; first < m->d->pairs; first += block) {
        size_t count = MIN(m->d->pairs - first, block);
        const double *rows = m->rows + first * q;
        fds__weigh(rows, count, q, m->d->kernel + first, c->of_fit);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)g, (int)q, (int)count, 1, rows,
                    (int)q, c->of_fit, (int)q, 1, c->cross, (int)q);
        TRY(fds__pool_check(err));
    }
    return FDS_OK;
}

/* What the coarse unknowns x of the fit mean for a member of each group: values (groups) += */
static void add_values(const fds__cg *m, const double *x, double *values) {
    double all = 0;
    for (size_t j = m->groups; j < m->coarse; j++) {
        const fds__count_step *step = &m->d->steps[j - m->groups];
        if (step->group == FDS__ALL)
            all += x[j] / step->of;
        else
            values[step->group] += x[j] / step->of;
    }
    for (size_t g = 0; g < m->groups; g++)
        values[g] += x[g] / m->root[g] + all;
}

/* Squares of the influence of a block of pairs through the coarse part, groups (count, groups), and
 * leverage (count). */
static void influence_coarse(const coarse_part *c, size_t first, size_t count, double *groups,
                             double *leverage) {
    const fds__cg *m = c->rest->many;
    const fds__design *d = m->d;
    const size_t q = m->coarse, g = m->groups;
    const double *rows = m->rows + first * q;
    for (size_t p = 0; p < count; p++)
        for (size_t j = 0; j < g; j++)
            c->of_rest[p * g + j] = d->kernel[first + p] * rows[p * q + j];
    if (c->fit) {
        fds__weigh(rows, count, q, d->mild + first, c->of_fit);
        apply_coarse(c->fit, count, c->ones_fit, c->sum_fit, c->of_fit);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, (int)g, (int)q, -1,
                    c->of_fit, (int)q, c->cross, (int)q, 1, c->of_rest, (int)g);
    }
    apply_coarse(c->rest, count, c->ones_rest, c->sum_rest, c->of_rest);
    for (size_t p = 0; p < count; p++) {
        double *to = groups + p * g;
        leverage[p] = cblas_ddot((int)g, c->of_rest + p * g, 1, rows + p * q, 1);
        for (size_t j = 0; j < g; j++)
            to[j] = c->of_rest[p * g + j] / m->root[j];
        if (c->fit) {
            leverage[p] += cblas_ddot((int)q, c->of_fit + p * q, 1, rows + p * q, 1);
            add_values(m, c->of_fit + p * q, to);
        }
        for (size_t j = 0; j < g; j++)
            to[j] *= to[j];
    }
}

/* ---- all of it ---- */

/* through: the leverage through the coarse part; forms: d'Qd of the coarse parts */
static void influence_fine(const fds__cg_stage *fit, const fds__cg_stage *rest,
                           const fds__cg_traces *tr, size_t p, double through, const double *of_fit,
                           const double *of_rest, fds__cg_errors *e) {
    const fds__cg *m = rest->many;
    const double deviations = (double)(m->d->players - m->groups), fine = m->fine[p];
    double by_rest = 1 + fds__cg_weight(rest, tr->rest, of_rest[p], p), alpha = 0;
    double beta = rest->weights[p] / by_rest;
    if (fit)
        alpha = fit->weights[p] / (by_rest * (1 + fds__cg_weight(fit, tr->fit, of_fit[p], p)));
    double direct = alpha * tr->v + beta * tr->u;
    double all = alpha * alpha * tr->vv + 2 * alpha * beta * tr->vu + beta * beta * tr->uu;
    double left = MAX(1 - fine * direct - through, 0.1); /* as in ls_columns.c */
    e->scale[p] = m->d->unseen[p] / (left * left);
    e->own[p] = direct * direct;
    e->all[p] = deviations > 0 ? MAX(all - direct * direct, 0) * fine / deviations : 0;
    /* where whole groups are players, only members of one group differ, and which is not kept */
    if (m->d->plan->groups) {
        e->all[p] += deviations > 0 ? e->own[p] * fine / deviations : 0;
        e->own[p] = 0;
    }
}

static fds_status fill(const coarse_part *c, const fds__cg_traces *tr, double *forms,
                       fds__cg_errors *e, fds_error *err) {
    const fds__cg *m = c->rest->many;
    const size_t pairs = m->d->pairs;
    double through[FDS__LS_BLOCK];
    TRY(fds__cg_forms(c->rest, pairs, forms, err));
    if (c->fit)
        TRY(fds__cg_forms(c->fit, pairs, forms + pairs, err));
    for (size_t first = 0; first < pairs; first += FDS__LS_BLOCK) {
        size_t count = MIN(pairs - first, (size_t)FDS__LS_BLOCK);
        influence_coarse(c, first, count, e->groups + first * m->groups, through);
        for (size_t p = 0; p < count; p++)
            influence_fine(c->fit, c->rest, tr, first + p, through[p], forms + pairs, forms, e);
        TRY(fds__pool_check(err));
    }
    return FDS_OK;
}

fds_status fds__cg_errors_create(const fds__cg_stage *fit, const fds__cg_stage *rest,
                                 fds__cg_scratch *t, fds__cg_errors *e, fds_error *err) {
    const fds__cg *m = rest->many;
    const size_t pairs = m->d->pairs;
    OWNED double *forms = NULL; /* (2, pairs) */
    fds__cg_traces tr;
    TRY(NEW(forms, 2 * pairs, err));
    TRY(NEW(e->scale, pairs, err));
    TRY(NEW(e->own, pairs, err));
    TRY(NEW(e->all, pairs, err));
    TRY(NEW(e->groups, pairs * m->groups, err));
    TRY(fds__cg_trace(fit, rest, t, &tr, err));
    const fds__penalty penalty = (fit ? fit : rest)->penalty;
    double strength = penalty.ridge + penalty.shrink, lost = strength * (fit ? tr.v : tr.u);
    e->around = fds__design_around(m->d, penalty);
    e->lost2 = strength * strength * (fit ? tr.vv : tr.uu);
    e->own_lost2 = lost * lost;
    e->kept = MAX(1 - lost, 0.05); /* as in ls_parts.c */
    coarse_part c = {.fit = fit, .rest = rest};
    fds_status status = coarse_create(&c, err);
    if (status == FDS_OK)
        status = fill(&c, &tr, forms, e, err);
    fds__free(c.of_fit);
    return status;
}

void fds__cg_errors_free(fds__cg_errors *e) {
    fds__free(e->scale);
    fds__free(e->own);
    fds__free(e->all);
    fds__free(e->groups);
}

/* Adds the square of what shrinking probably loses, as ls_columns.c does. work (3, n, width): its first
 * part receives what a value loses of its own large deviation. */
static void add_bias(const fds__cg_errors *e, const double *theta, size_t width, double *work,
                     double *var) {
    const size_t size = e->around.players * width;
    const double kept2 = e->kept * e->kept;
    double *found = work, *variance = work + size, *squares = work + 2 * size;
    fds__design_group_means(&e->around, theta, width, found);
    for (size_t i = 0; i < size; i++)
        squares[i] = (theta[i] - found[i]) * (theta[i] - found[i]);
    fds__design_group_means(&e->around, squares, width, found);
    fds__design_group_means(&e->around, var, width, variance);
    for (size_t i = 0; i < size; i++) {
        double usual = MAX(found[i], (found[i] - variance[i]) / kept2);
        found[i] = e->own_lost2 * MAX((squares[i] - var[i]) / kept2 - usual, 0);
        var[i] += e->lost2 * usual;
    }
}

fds_status fds__cg_variances(const fds__cg *m, const fds__cg_errors *e, const double *theta,
                             size_t width, fds__cg_scratch *t, double *pairs, double *var,
                             fds_error *err) {
    const fds__design *d = m->d;
    const size_t n = d->players, g = m->groups;
    double all[FDS__CG_CHUNK] = {0};
    for (size_t p = 0; p < d->pairs; p++) {
        double share = 0; /* of the players that are in the coalition */
        for (size_t j = 0; j < g; j++)
            share += m->rows[p * m->coarse + j] * m->root[j] / (double)n;
        share += m->centre;
        /* (z - mean)^2 is share^2 without the player, and 1 - 2 share more with it */
        double each = e->all[p] + e->own[p] * share * share, with = e->own[p] * (1 - 2 * share);
        for (size_t c = 0; c < width; c++) {
            double square = e->scale[p] * pairs[p * width + c] * pairs[p * width + c];
            pairs[p * width + c] = square;
            t->y[p * width + c] = with * square;
            all[c] += each * square;
        }
    }
    TRY(fds__bits_multiply(&m->by_player, m->kernel, t->y, width, t->table, var, err));
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)g, (int)width, (int)d->pairs, 1,
                e->groups, (int)g, pairs, (int)width, 0, t->coarse, (int)width);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < width; c++)
            var[i * width + c] =
                MAX(var[i * width + c] + all[c] + t->coarse[m->group_of[i] * width + c], 0);
    add_bias(e, theta, width, t->residual, var);
    return FDS_OK;
}
