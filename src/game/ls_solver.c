/* SPDX-License-Identifier: Apache-2.0
 * The normal equations, factorised once for all columns.
 *
 * With H the penalised gram matrix and the constraint 1'theta = total, Lagrange's conditions give
 *   theta = Q b + g total,   g = H^-1 1 / (1'H^-1 1),   Q = H^-1 - g (H^-1 1)'. */
#include "ls.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* ---- sums over the pairs ---- */

fds_status fds__gram_create(const fds__design *d, fds__gram *out, fds_error *err) {
    int n = (int)d->players, f = (int)d->features;
    bool with_steps = d->features > d->players;
    size_t size = (size_t)f * FDS__LS_BLOCK;
    fds__gram g = {.kernel = fds__alloc_zero((size_t)n * (size_t)n, sizeof(double))};
    double *rows = fds__alloc_zero(2 * size, sizeof *rows);
    uint32_t *counts = fds__alloc_zero(d->group_count, sizeof *counts);
    double start_s = fds__now_s();
    if (with_steps) {
        g.mild = fds__alloc_zero((size_t)f * (size_t)f, sizeof(double));
        g.cross = fds__alloc_zero((size_t)n * (size_t)f, sizeof(double));
    }
    bool ok = g.kernel && rows && counts && (!with_steps || (g.mild && g.cross));
    fds_status status = ok ? FDS_OK : fds__fail_nomem(err, (size_t)f * (size_t)f * sizeof(double));
    for (size_t first = 0; status == FDS_OK && first < d->pairs; first += FDS__LS_BLOCK) {
        size_t count = MIN(d->pairs - first, (size_t)FDS__LS_BLOCK);
        int b = (int)count;
        double *weighted = rows + size;
        fds__design_rows(d, first, count, counts, rows);
        fds__weigh(rows, count, (size_t)f, d->kernel + first, weighted);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, n, b, 1, rows, f, weighted, f, 1,
                    g.kernel, n);
        status = fds__design_tell(d, "normal equations", first + count, start_s, err);
        if (!with_steps)
            continue;
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, f, b, 1, rows, f, weighted, f, 1,
                    g.cross, f);
        fds__weigh(rows, count, (size_t)f, d->mild + first, weighted);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, f, f, b, 1, rows, f, weighted, f, 1,
                    g.mild, f);
    }
    fds__free(rows);
    fds__free(counts);
    if (status == FDS_OK)
        *out = g;
    else
        fds__gram_free(&g);
    return status;
}

void fds__gram_free(fds__gram *g) {
    fds__free(g->kernel);
    fds__free(g->mild);
    fds__free(g->cross);
}

/* ---- one solution for all columns ---- */

/* Adds ridge (I - 1/n) and shrink (I - group means) on the players, and 1 on the steps. */
static void add_penalty(const fds__design *d, fds__penalty penalty, size_t size, double *h) {
    size_t n = d->players;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; penalty.ridge > 0 && j < n; j++)
            h[i * size + j] += penalty.ridge * ((i == j) - 1.0 / (double)n);
    for (size_t g = 0; penalty.shrink > 0 && g < d->group_count; g++) {
        const uint32_t *members = NULL;
        size_t of = d->groups ? fds_groups_members(d->groups, g, &members) : n;
        for (size_t a = 0; a < of; a++)
            for (size_t b = 0; b < of; b++)
                h[(members ? members[a] : a) * size + (members ? members[b] : b)] +=
                    penalty.shrink * ((a == b) - 1.0 / (double)of);
    }
    for (size_t i = n; i < size; i++)
        h[i * size + i] += 1;
}

fds_status fds__solver_create(const fds__design *d, const double *h, size_t size,
                              fds__penalty penalty, fds__solver *out, fds_error *err) {
    int f = (int)size;
    fds__solver s = {.size = size,
                     .q = fds__alloc_zero(size * size, sizeof(double)),
                     .g = fds__alloc_zero(size, sizeof(double))};
    if (!s.q || !s.g) {
        fds__solver_free(&s);
        return fds__fail_nomem(err, size * size * sizeof(double));
    }
    memcpy(s.q, h, size * size * sizeof *h);
    add_penalty(d, penalty, size, s.q);
    double trace = 0, total = 0;
    for (size_t i = 0; i < size; i++)
        trace += s.q[i * size + i];
    /* the sum is fixed, so a penalty on it changes no solution; without one, pairs of equal halves,
     * whose rows sum to 0, would leave the equations open */
    for (size_t i = 0; i < size * size; i++)
        s.q[i] += trace / (double)size / (double)size;
    /* the upper triangle by rows is the lower one by columns */
    bool solved = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', f, s.q, f) == 0;
    /* a pivot near the rounding of the sums means that the pairs do not tell the players apart */
    for (size_t i = 0; solved && i < size; i++)
        solved = s.q[i * size + i] * s.q[i * size + i] > 1e-11 * trace / (double)size;
    solved = solved && LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'L', f, s.q, f) == 0;
    if (!solved) {
        fds__solver_free(&s);
        return fds__fail(err, FDS_ERR_DIVERGED,
                         "least squares: the coalitions do not tell all players apart; more "
                         "coalitions are needed");
    }
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < i; j++)
            s.q[i * size + j] = s.q[j * size + i];
    for (size_t i = 0; i < size; i++) {
        for (size_t j = 0; j < size; j++)
            s.g[i] += s.q[i * size + j];
        total += s.g[i];
    }
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < size; j++)
            s.q[i * size + j] -= s.g[i] * s.g[j] / total;
    for (size_t i = 0; i < size; i++)
        s.g[i] /= total;
    *out = s;
    return FDS_OK;
}

void fds__solver_free(fds__solver *s) {
    fds__free(s->q);
    fds__free(s->g);
    *s = (fds__solver){0};
}

void fds__solver_leverage(const fds__solver *s, const double *d, size_t count, size_t stride,
                          const double *weights, double *scratch, double *leverage) {
    int f = (int)s->size;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)count, f, f, 1, d, (int)stride,
                s->q, f, 0, scratch, f);
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (size_t j = 0; j < s->size; j++)
            sum += d[i * stride + j] * scratch[i * s->size + j];
        leverage[i] = weights[i] * sum;
    }
}

void fds__solver_apply(const fds__solver *s, const double *b, const double *total, size_t width,
                       double *theta) {
    int f = (int)s->size, w = (int)width;
    for (size_t i = 0; i < s->size; i++)
        for (size_t c = 0; c < width; c++)
            theta[i * width + c] = total ? s->g[i] * total[c] : 0;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, f, w, f, 1, s->q, f, b, w, 1, theta, w);
}
