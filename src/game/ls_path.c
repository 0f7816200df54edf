/* SPDX-License-Identifier: Apache-2.0
 *
 * The normal equations for all strengths of one penalty, from one factorisation.
 *
 * Strengths l differ in l P, where P projects the players on their deviations from the means of groups.
 * In an orthonormal basis whose first m coordinates are those means and the steps, and whose last r
 * are the deviations,
 *
 *     H(l) = | E   C       |      E = U'U,   G = U^-T C,   B - G'G = Q T Q'
 *            | C'  B + l I |
 *
 * with a tridiagonal T. So once the vectors x of a problem are turned, x_r <- Q'x_r, and reduced,
 *
 *     y_m = U^-T x_m,   y_r = x_r - J'y_m,   J = G Q,
 *     x'H(l)^-1 x = |y_m|^2 + y_r'(T + l I)^-1 y_r
 *
 * each strength costs a few operations per number, not a product of matrices. With the constraint that
 * the unknowns sum to a total, the solution is that of ls_solver.c in these coordinates. */
#include "ls.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

enum { TILE = 64, COLUMNS = 256 }; /* columns: per tile of a solution, and per job */

/* The panel of LAPACK's dsytrd, for which LAPACKE has no name: dsytrd itself cannot be interrupted. */
extern void LAPACK_GLOBAL(dlatrd, DLATRD)(const char *uplo, const lapack_int *n,
                                          const lapack_int *nb, double *a, const lapack_int *lda,
                                          double *e, double *tau, double *w, const lapack_int *ldw,
                                          size_t uplo_length);

/* ---- the basis ---- */

static size_t group_members(const fds__path *p, size_t g, const uint32_t **members) {
    *members = NULL;
    return p->groups ? fds_groups_members(p->groups, g, members) : p->design->players;
}

static void place_features(fds__path *p) {
    const size_t n = p->design->players;
    size_t fine = p->coarse;
    for (size_t g = 0; g < p->group_count; g++) {
        const uint32_t *members;
        size_t of = group_members(p, g, &members);
        for (size_t k = 0; k < of; k++)
            p->place[members ? members[k] : k] = k == 0 ? g : fine++;
    }
    for (size_t i = n; i < p->size; i++)
        p->place[i] = p->group_count + i - n;
}

/* Columns first .. first+count-1 of out (size, width): x in the basis, before Q. Number i of column c is
 * x[i * row + c * column]. In each group a reflection along v = u + (1, 0, ...) takes the unit vector
 * u of equal values to the first coordinate, with the sign changed. */
static void fold(const fds__path *p, const double *x, size_t row, size_t column, size_t first,
                 size_t count, size_t width, double *out) {
    for (size_t i = 0; i < p->size; i++) {
        double scale = i < p->design->players ? sqrt(fds__design_share(p->design, i)) : 1;
        for (size_t c = first; c < first + count; c++)
            out[p->place[i] * width + c] = scale * x[i * row + c * column];
    }
    for (size_t g = 0; g < p->group_count; g++) {
        const uint32_t *members;
        size_t of = group_members(p, g, &members);
        double whole = 0, along[COLUMNS] = {0};
        for (size_t k = 0; k < of; k++)
            whole += fds__design_share(p->design, members ? members[k] : k);
        double lead = 1 + sqrt(fds__design_share(p->design, members ? members[0] : 0) / whole);
        for (int pass = 0; pass < 2; pass++)
            for (size_t k = 0; k < of; k++) {
                size_t i = members ? members[k] : k;
                double v = k ? sqrt(fds__design_share(p->design, i) / whole) : lead;
                double *to = out + p->place[i] * width + first;
                for (size_t c = 0; c < count; c++)
                    if (pass == 0)
                        along[c] += v * to[c] / lead;
                    else
                        to[c] -= along[c] * v;
            }
    }
}

static fds_status report(const fds__path *p, size_t done, double start_s, fds_error *err) {
    return fds__report(p->design->events, "shrinkage", "unknowns", done, 3 * (p->size - p->coarse),
                       start_s, err);
}

/* out = the basis times the transpose of x (size, size) */
static fds_status fold_matrix(const fds__path *p, const double *x, double start_s, double *out,
                              fds_error *err) {
    for (size_t c = 0; c < p->size; c += COLUMNS) {
        fold(p, x, 1, p->size, c, MIN(p->size - c, (size_t)COLUMNS), p->size, out);
        TRY(report(p, 0, start_s, err));
    }
    return FDS_OK;
}

/* x (rows, count), rows at a distance of stride: Q'x for is_left, else x Q. */
static fds_status multiply_q(const fds__path *p, bool is_left, size_t count, double *x,
                             size_t stride, fds_error *err) {
    const size_t r = p->size - p->coarse, wide = (count + 65) * 64;
    OWNED double *work = NULL;
    if (r < 2 || count == 0)
        return FDS_OK;
    TRY(NEW(work, wide, err));
    /* LAPACK sees the transposes */
    lapack_int rows = (lapack_int)(is_left ? count : r),
               columns = (lapack_int)(is_left ? r : count);
    lapack_int info =
        LAPACKE_dormtr_work(LAPACK_COL_MAJOR, is_left ? 'R' : 'L', 'L', is_left ? 'N' : 'T', rows,
                            columns, p->matrix + p->coarse * (p->size + 1), (lapack_int)p->size,
                            p->reflectors, x, (lapack_int)stride, work, (lapack_int)wide);
    assert(info == 0);
    (void)info;
    return FDS_OK;
}

/* ---- the factorisation ---- */

/* U in place of E, G in place of C, B - G'G in place of B; triangles are the upper ones by rows. */
static fds_status eliminate(fds__path *p, double start_s, fds_error *err) {
    const size_t m = p->coarse, f = p->size, r = f - m;
    const int im = (int)m, lead = (int)f;
    double *u = p->matrix, *g = u + m, *b = u + m * (f + 1);
    if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', im, u, lead) != 0)
        return FDS_OK; /* no pivot is known to be positive */
    p->least = INFINITY;
    for (size_t i = 0; i < m; i++)
        p->least = MIN(p->least, u[i * (f + 1)] * u[i * (f + 1)]);
    for (size_t at = 0; at < r; at += COLUMNS) {
        size_t count = MIN(r - at, (size_t)COLUMNS);
        cblas_dtrsm(CblasRowMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit, im, (int)count,
                    1, u, lead, g + at, lead);
        TRY(report(p, at + count, start_s, err));
    }
    for (size_t at = 0; at < r; at += COLUMNS) {
        size_t count = MIN(r - at, (size_t)COLUMNS);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)count, (int)(r - at), im, -1,
                    g + at, lead, g + at, lead, 1, b + at * (f + 1), lead);
        TRY(report(p, r + at + count, start_s, err));
    }
    return FDS_OK;
}

/* Q T Q' in place of B: LAPACK's dsytrd, with a report after each panel. */
static fds_status make_tridiagonal(fds__path *p, double start_s, fds_error *err) {
    const size_t m = p->coarse, f = p->size, r = f - m;
    /* a panel reads what remains of the matrix once per column */
    const size_t panel = r > 2048 ? 8 : 32, last = 2 * panel;
    double *b = p->matrix + m * (f + 1);
    OWNED double *w = NULL; /* (panel, r) */
    TRY(NEW(w, panel * MAX(r, (size_t)1), err));
    size_t at = 0;
    const lapack_int lead = (lapack_int)f, columns = (lapack_int)panel, ldw = (lapack_int)r;
    for (; r > at + last; at += panel) {
        const lapack_int rest = (lapack_int)(r - at);
        double *a = b + at * (f + 1);
        LAPACK_GLOBAL(dlatrd, DLATRD)
        ("L", &rest, &columns, a, &lead, p->off + at, p->reflectors + at, w, &ldw, 1);
        cblas_dsyr2k(CblasColMajor, CblasLower, CblasNoTrans, rest - columns, columns, -1,
                     a + panel, lead, w + panel, ldw, 1, a + panel * (f + 1), lead);
        for (size_t i = at; i < at + panel; i++)
            p->diagonal[i] = b[i * (f + 1)];
        TRY(report(p, 2 * r + at + panel, start_s, err));
    }
    lapack_int info = LAPACKE_dsytrd_work(LAPACK_COL_MAJOR, 'L', (lapack_int)(r - at),
                                          b + at * (f + 1), lead, p->diagonal + at, p->off + at,
                                          p->reflectors + at, w, (lapack_int)(panel * r));
    assert(info == 0);
    (void)info;
    /* LAPACK puts 1 there while it multiplies by a small Q, and then what was there: 1 for all threads */
    for (size_t i = 0; i + 1 < r; i++)
        b[i * (f + 1) + 1] = 1;
    for (size_t i = 0; i < m; i += COLUMNS) /* J */
        TRY(multiply_q(p, false, MIN(m - i, (size_t)COLUMNS), p->matrix + i * f + m, f, err));
    return report(p, 3 * r, start_s, err);
}

fds_status fds__path_create(const fds__design *d, const double *h, size_t size, fds__penalty fixed,
                            bool is_ridge, fds__path *out, fds_error *err) {
    const double start_s = fds__now_s();
    bool is_one = is_ridge || !d->groups;
    out->design = d;
    out->groups = is_one ? NULL : d->groups;
    out->group_count = is_one ? 1 : d->group_count;
    out->size = size;
    out->coarse = size - d->players + out->group_count;
    OWNED double *turned = NULL;
    TRY(NEW(out->place, size, err));
    TRY(NEW(out->matrix, size * size, err));
    TRY(NEW(turned, size * size, err));
    TRY(NEW(out->diagonal, 4 * size, err));
    out->off = out->diagonal + size;
    out->reflectors = out->off + size;
    out->ones = out->reflectors + size;
    place_features(out);
    memcpy(out->matrix, h, size * size * sizeof *h);
    fds__solver_penalise(d, fixed, size, out->matrix);
    TRY(fold_matrix(out, out->matrix, start_s, turned, err));
    TRY(fold_matrix(out, turned, start_s, out->matrix, err));
    for (size_t i = 0; i < size; i++)
        out->trace += out->matrix[i * (size + 1)];
    TRY(eliminate(out, start_s, err));
    if (out->least > 0 && out->coarse < size)
        TRY(make_tridiagonal(out, start_s, err));
    for (size_t i = 0; i < size; i++)
        turned[i] = 1;
    return fds__path_turn(out, turned, 1, 1, 1, true, 1, out->ones, err);
}

void fds__path_free(fds__path *p) {
    fds__free(p->place);
    fds__free(p->matrix);
    fds__free(p->diagonal);
}

/* ---- vectors ---- */

typedef struct {
    const fds__path *path;
    const double *x;
    size_t row, column, width;
    bool is_reduced;
    double *out;
} turning;

static fds_status turn_block(void *context, size_t job, unsigned worker, fds_error *err) {
    const turning *t = context;
    const fds__path *p = t->path;
    const size_t first = job * COLUMNS, count = MIN(t->width - first, (size_t)COLUMNS);
    const int m = (int)p->coarse, r = (int)(p->size - p->coarse), f = (int)p->size,
              w = (int)t->width, c = (int)count;
    double *coarse = t->out + first, *fine = coarse + p->coarse * t->width;
    (void)worker;
    fold(p, t->x, t->row, t->column, first, count, t->width, t->out);
    if (p->least > 0)
        TRY(multiply_q(p, true, count, fine, t->width, err));
    if (!t->is_reduced || p->least <= 0)
        return FDS_OK;
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit, m, c, 1, p->matrix,
                f, coarse, w);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, r, c, m, -1, p->matrix + m, f, coarse, w,
                1, fine, w);
    return FDS_OK;
}

fds_status fds__path_turn(const fds__path *path, const double *x, size_t row, size_t column,
                          size_t width, bool is_reduced, unsigned threads, double *out,
                          fds_error *err) {
    turning t = {path, x, row, column, width, is_reduced, out};
    return fds__pool_run(threads, (width + COLUMNS - 1) / COLUMNS, turn_block, &t, "shrinkage",
                         "blocks", path->design->events, err);
}

void fds__path_return(const fds__path *p, size_t width, double *z) {
    const int m = (int)p->coarse, r = (int)(p->size - p->coarse), f = (int)p->size, w = (int)width;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, w, r, -1, p->matrix + m, f,
                z + p->coarse * width, w, 1, z, w);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit, m, w, 1,
                p->matrix, f, z, w);
}

/* ---- one strength ---- */

fds_status fds__path_at(const fds__path *p, double strength, fds__path_point *out, fds_error *err) {
    const size_t m = p->coarse, f = p->size, r = f - m;
    double bound = FDS__LS_PIVOT * (p->trace + strength * (double)r) / (double)f;
    bool is_solved = p->least > bound;
    *out = (fds__path_point){.path = p};
    TRY(NEW(out->pivots, 3 * f, err));
    out->ratios = out->pivots + f;
    out->ones = out->ratios + f;
    for (size_t i = 0; is_solved && i < r; i++) { /* T + l I = L D L' */
        out->pivots[i] = p->diagonal[i] + strength;
        if (i > 0) {
            out->ratios[i] = p->off[i - 1] / out->pivots[i - 1];
            out->pivots[i] -= out->ratios[i] * p->off[i - 1];
        }
        is_solved = out->pivots[i] > bound;
    }
    if (!is_solved)
        return fds__solver_fail(err);
    double *ones = out->ones;
    memcpy(ones, p->ones, f * sizeof *ones);
    for (size_t i = 1; i < r; i++)
        ones[m + i] -= out->ratios[i] * ones[m + i - 1];
    for (size_t i = r; i-- > 0;) {
        ones[m + i] /= out->pivots[i];
        if (i + 1 < r)
            ones[m + i] -= out->ratios[i + 1] * ones[m + i + 1];
    }
    for (size_t i = 0; i < f; i++)
        out->sum += ones[i] * p->ones[i];
    return FDS_OK;
}

void fds__path_point_free(fds__path_point *q) { fds__free(q->pivots); }

/* Columns c .. c+count-1, at most a tile of them. */
static void solve_tile(const fds__path_point *q, const double *total, size_t width, size_t c,
                       size_t count, double *x) {
    const size_t m = q->path->coarse, f = q->path->size, r = f - m;
    double along[TILE] = {0}, *fine = x + m * width;
    for (size_t i = 0; i < f; i++)
        for (size_t k = 0; k < count; k++)
            along[k] += q->ones[i] * x[i * width + c + k];
    for (size_t k = 0; k < count; k++)
        along[k] = ((total ? total[c + k] : 0) - along[k]) / q->sum;
    for (size_t i = 1; i < r; i++)
        for (size_t k = c; k < c + count; k++)
            fine[i * width + k] -= q->ratios[i] * fine[(i - 1) * width + k];
    for (size_t i = r; i-- > 0;)
        for (size_t k = c; k < c + count; k++)
            fine[i * width + k] = fine[i * width + k] / q->pivots[i] -
                                  (i + 1 < r ? q->ratios[i + 1] * fine[(i + 1) * width + k] : 0);
    for (size_t i = 0; i < f; i++)
        for (size_t k = 0; k < count; k++)
            x[i * width + c + k] += q->ones[i] * along[k];
}

void fds__path_solve(const fds__path_point *q, const double *total, size_t width, double *x) {
    for (size_t c = 0; c < width; c += TILE)
        solve_tile(q, total, width, c, MIN(width - c, (size_t)TILE), x);
}

void fds__path_leverage(const fds__path_point *q, const double *rows, size_t width,
                        const double *weights, double *leverage) {
    const size_t m = q->path->coarse, f = q->path->size;
    for (size_t c = 0; c < width; c += TILE) {
        size_t count = MIN(width - c, (size_t)TILE);
        double along[TILE] = {0}, square[TILE] = {0}, y[TILE] = {0};
        for (size_t i = 0; i < f; i++) {
            const double *row = rows + i * width + c;
            double ratio = i > m ? q->ratios[i - m] : 0, by = i < m ? 1 : 1 / q->pivots[i - m];
            for (size_t k = 0; k < count; k++) {
                y[k] = row[k] - ratio * y[k];
                square[k] += by * y[k] * y[k];
                along[k] += q->ones[i] * row[k];
            }
        }
        for (size_t k = 0; k < count; k++)
            leverage[c + k] = weights[c + k] * (square[k] - along[k] * along[k] / q->sum);
    }
}
