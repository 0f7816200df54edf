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
    const size_t players = d->players, features = d->features;
    const int n = (int)players, f = (int)features;
    const bool with_steps = features > players;
    const double start_s = fds__now_s();
    OWNED double *rows = NULL, *weighted = NULL; /* (block, F) */
    TRY(NEW(rows, FDS__LS_BLOCK * features, err));
    TRY(NEW(weighted, FDS__LS_BLOCK * features, err));
    TRY(NEW(out->kernel, players * players, err));
    if (with_steps) {
        TRY(NEW(out->mild, features * features, err));
        TRY(NEW(out->cross, players * features, err));
    }
    for (size_t first = 0; first < d->pairs; first += FDS__LS_BLOCK) {
        size_t count = MIN(d->pairs - first, (size_t)FDS__LS_BLOCK);
        int b = (int)count;
        fds__design_rows(d, first, count, rows);
        fds__weigh(rows, count, features, d->kernel + first, weighted);
        TRY(fds__design_report(d, "normal equations", first + count, start_s, err));
        if (!with_steps) {
            cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, n, b, 1, rows, f, weighted, f,
                        1, out->kernel, n);
            continue;
        }
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, f, b, 1, rows, f, weighted, f, 1,
                    out->cross, f);
        fds__weigh(rows, count, features, d->mild + first, weighted);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, f, f, b, 1, rows, f, weighted, f, 1,
                    out->mild, f);
    }
    for (size_t i = 0; with_steps && i < players; i++) /* the players come first in D */
        memcpy(out->kernel + i * players, out->cross + i * features, players * sizeof *out->kernel);
    return FDS_OK;
}

void fds__gram_free(fds__gram *g) {
    fds__free(g->kernel);
    fds__free(g->mild);
    fds__free(g->cross);
}

/* ---- one solution for all columns ---- */

/* Adds ridge (I - 1/n) and shrink (I - group means) on the players, and 1 on the steps. A group that is
 * one player has the sum of its members' equal values, which nothing shrinks towards each other. */
static void add_penalty(const fds__design *d, fds__penalty penalty, size_t size, double *h) {
    size_t n = d->players;
    for (size_t i = 0; penalty.ridge > 0 && i < n; i++) {
        double own = 1 / fds__design_share(d, i);
        for (size_t j = 0; j < n; j++)
            h[i * size + j] += penalty.ridge * ((i == j ? own : 0) - 1.0 / (double)d->real);
    }
    for (size_t g = 0; penalty.shrink > 0 && !d->wholes && g < d->group_count; g++) {
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

double fds__solver_penalise(const fds__design *d, fds__penalty penalty, size_t size, double *h) {
    double trace = 0;
    add_penalty(d, penalty, size, h);
    for (size_t i = 0; i < size; i++)
        trace += h[i * size + i];
    for (size_t i = 0; i < size * size; i++)
        h[i] += trace / (double)size / (double)size;
    return trace / (double)size;
}

fds_status fds__solver_fail(fds_error *err) {
    return fds__fail(err, FDS_ERR_DIVERGED,
                     "least squares: the coalitions do not distinguish all players; use more "
                     "coalitions");
}

/* q becomes its inverse, by LAPACK's dpotrf, dtrtri and dlauum in blocks of at most a fraction of a second
 * each; FDS_ERR_DIVERGED if a pivot is not above the bound. Of q (size, size), the upper triangle by rows
 * counts, which is the lower one by columns. */
static fds_status invert(const fds__design *d, double *q, size_t size, double bound,
                         fds_error *err) {
    const size_t most = ((size_t)1 << 34) / size / size, block = MIN(MAX(most, 64), 1024);
    const size_t blocks = (size + block - 1) / block;
    const double start_s = fds__now_s();
    const int f = (int)size;
    for (size_t pass = 0; pass < 3; pass++)
        for (size_t job = 0; job < blocks; job++) {
            size_t at = (pass == 1 ? blocks - 1 - job : job) * block;
            const int b = (int)MIN(size - at, block), rest = f - (int)at - b;
            double *own = q + at * (size + 1), *below = own + b, *left = q + at;
            double *last = below + (size_t)b * size; /* what follows on the diagonal */
            if (pass == 0) {                         /* L L' */
                bool is_solved = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', b, own, f) == 0;
                for (int i = 0; is_solved && i < b; i++)
                    is_solved = own[i * (size + 1)] * own[i * (size + 1)] > bound;
                if (!is_solved)
                    return fds__solver_fail(err);
                cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, rest,
                            b, 1, own, f, below, f);
                cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, rest, b, -1, below, f, 1, last,
                            f);
            } else if (pass == 1) { /* L^-1 */
                cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, rest,
                            b, 1, last, f, below, f);
                cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, rest,
                            b, -1, own, f, below, f);
                if (LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, 'L', 'N', b, own, f) != 0)
                    return fds__solver_fail(err);
            } else { /* L^-T L^-1 */
                cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, b,
                            (int)at, 1, own, f, left, f);
                LAPACKE_dlauum_work(LAPACK_COL_MAJOR, 'L', b, own, f);
                cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, b, (int)at, rest, 1, below, f,
                            left + b, f, 1, left, f);
                cblas_dsyrk(CblasColMajor, CblasLower, CblasTrans, b, rest, 1, below, f, 1, own, f);
            }
            TRY(fds__report(d->events, "shrinkage", "blocks", pass * blocks + job + 1, 3 * blocks,
                            start_s, err));
        }
    return FDS_OK;
}

fds_status fds__solver_create(const fds__design *d, const double *h, size_t size,
                              fds__penalty penalty, fds__solver *out, fds_error *err) {
    double total = 0;
    out->size = size;
    TRY(NEW(out->q, size * size, err));
    TRY(NEW(out->g, size, err));
    double *q = out->q, *g = out->g;
    memcpy(q, h, size * size * sizeof *h);
    double mean = fds__solver_penalise(d, penalty, size, q);
    TRY(invert(d, q, size, FDS__LS_PIVOT * mean, err));
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < i; j++)
            q[i * size + j] = q[j * size + i];
    for (size_t i = 0; i < size; i++) {
        for (size_t j = 0; j < size; j++)
            g[i] += q[i * size + j];
        total += g[i];
    }
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < size; j++)
            q[i * size + j] -= g[i] * g[j] / total;
    for (size_t i = 0; i < size; i++)
        g[i] /= total;
    return FDS_OK;
}

void fds__solver_free(fds__solver *s) {
    fds__free(s->q);
    fds__free(s->g);
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
