/* SPDX-License-Identifier: Apache-2.0
 *
 * Factors of the players. The least-squares values of n players, without their equal shares, are a
 * matrix A (n, columns) of low rank: players differ from each other in few ways. Its first left
 * singular vectors, H (n, rank), are what an explainer needs to know of the players:
 *
 *     phi_i(x, y) = (v(1) - v(0)) / n + sum_k h_ik c_k(x, y),
 *
 * and its network has a coefficient c_k as output instead of a value per player. The columns of H are
 * orthonormal and orthogonal to 1. So the coefficients nearest to given values are H' phi, the distance
 * of coefficients is that of values, and values add up to v(1) - v(0) whatever the coefficients are.
 *
 * Subspace iteration: Q <- orth([1, A A' Q]) without its first column, from a random Q that is a
 * function of the seed. Q has SPARE columns more than H. The energy that H holds, the sum of the squared
 * coefficients, never falls from pass to pass; it ends when a pass adds less than TOLERANCE of the
 * energy of A, or after PASSES. A itself is not formed: Q is orthogonal to 1, and so A'Q is values' Q.
 * Memory is that of Q, and of its products with some thousand columns. Jobs write to places of their
 * own, and sums are in the order of the columns: the bits do not depend on the threads. */
#include "explain/explain.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#define TOLERANCE 1e-4
enum { SPARE = 16, PASSES = 20 };
enum {
    BLOCK = 4096,
    COLUMNS = 128,
    PLAYERS = 128
}; /* columns together; columns, players of a job */

typedef struct {
    const double *values; /* (n, stride), of which the first columns count */
    size_t n, stride, columns;
    size_t k;             /* directions */
    double *q;            /* (k + 1, n) the first row is 1 or of no use */
    double *y;            /* (k, n) A A' Q, but for multiples of 1 */
    double *product;      /* (k, BLOCK) Q' A for a block of columns */
    double *energies;     /* (jobs of a block) */
    double *small, *work; /* (k, k), and what LAPACK needs */
    double *spectrum;     /* (k) ascending */
    int work_size;
    size_t first, count; /* columns of the block */
} finder;

void fds__factors_free(fds__factors *f) {
    fds__free(f->h);
    *f = (fds__factors){0};
}

/* ---- products with A, in parallel ---- */

static fds_status multiply_columns(void *context, size_t job, unsigned worker, fds_error *err) {
    finder *f = context;
    size_t first = job * COLUMNS, count = MIN((size_t)COLUMNS, f->count - first);
    const double *a = f->values + f->first + first;
    (void)worker;
    (void)err;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)f->k, (int)count, (int)f->n, 1,
                f->q + f->n, (int)f->n, a, (int)f->stride, 0, f->product + first, BLOCK);
    double sums[COLUMNS] = {0}, squares = 0;
    for (size_t i = 0; i < f->n; i++)
        for (size_t j = 0; j < count; j++) {
            sums[j] += a[i * f->stride + j];
            squares += a[i * f->stride + j] * a[i * f->stride + j];
        }
    for (size_t j = 0; j < count; j++)
        squares -= sums[j] * sums[j] / (double)f->n;
    f->energies[job] = squares;
    return FDS_OK;
}

static fds_status multiply_players(void *context, size_t job, unsigned worker, fds_error *err) {
    finder *f = context;
    size_t first = job * PLAYERS, count = MIN((size_t)PLAYERS, f->n - first);
    (void)worker;
    (void)err;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)f->k, (int)count, (int)f->count, 1,
                f->product, BLOCK, f->values + first * f->stride + f->first, (int)f->stride, 1,
                f->y + first, (int)f->n);
    return FDS_OK;
}

static size_t jobs_of(size_t count, size_t each) { return (count + each - 1) / each; }

/* y = A A' q; *energy: of A. */
static fds_status pass_over(finder *f, unsigned threads, fds__pass *pass, double *energy,
                            fds_error *err) {
    const fds_events events = fds__pass_events(pass);
    memset(f->y, 0, f->k * f->n * sizeof *f->y);
    *energy = 0;
    for (f->first = 0; f->first < f->columns; f->first += BLOCK) {
        f->count = MIN((size_t)BLOCK, f->columns - f->first);
        size_t jobs = jobs_of(f->count, COLUMNS), others = jobs_of(f->n, PLAYERS);
        TRY(fds__pool_run(threads, jobs, multiply_columns, f, "factors", "products", &events, err));
        pass->done += jobs;
        for (size_t job = 0; job < jobs; job++)
            *energy += f->energies[job];
        TRY(fds__pool_run(threads, others, multiply_players, f, "factors", "products", &events,
                          err));
        pass->done += others;
    }
    return FDS_OK;
}

/* ---- small matrices ---- */

static fds_status fail_lapack(const char *what, fds_error *err) {
    return fds__fail(err, FDS_ERR_DIVERGED,
                     "the values of the players have no factors (%s): are they finite?", what);
}

/* q = orth([1, y]), q and y as columns. The first one is then a multiple of 1. */
static fds_status orthogonalise(finder *f, fds_error *err) {
    int n = (int)f->n, columns = (int)f->k + 1;
    double *tau = f->small; /* (k + 1) */
    for (size_t i = 0; i < f->n; i++)
        f->q[i] = 1;
    memcpy(f->q + f->n, f->y, f->k * f->n * sizeof *f->q);
    if (LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, n, columns, f->q, n, tau, f->work, f->work_size) ||
        LAPACKE_dorgqr_work(LAPACK_COL_MAJOR, n, columns, columns, f->q, n, tau, f->work,
                            f->work_size))
        return fail_lapack("QR", err);
    return FDS_OK;
}

/* small: eigenvectors of Q'AA'Q as rows, spectrum: its eigenvalues, ascending. */
static fds_status find_spectrum(finder *f, fds_error *err) {
    int k = (int)f->k, n = (int)f->n;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, k, k, n, 1, f->q + f->n, n, f->y, n, 0,
                f->small, k);
    if (LAPACKE_dsyev_work(LAPACK_COL_MAJOR, 'V', 'L', k, f->small, k, f->spectrum, f->work,
                           f->work_size))
        return fail_lapack("eigenvalues", err);
    return FDS_OK;
}

/* The greatest so many eigenvalues. */
static double held(const finder *f, size_t rank) {
    double sum = 0;
    for (size_t i = f->k - rank; i < f->k; i++)
        sum += fmax(f->spectrum[i], 0);
    return sum;
}

/* ---- all of it ---- */

static fds_status reserve(finder *f, fds_error *err) {
    f->work_size = (int)(64 * (f->k + 1)); /* blocks of LAPACK have at most 64 columns */
    TRY(RESERVE(f->q, f->k + 1, f->n, err));
    TRY(RESERVE(f->y, f->k, f->n, err));
    TRY(RESERVE(f->product, f->k, (size_t)BLOCK, err));
    TRY(RESERVE(f->energies, BLOCK / COLUMNS, 1, err));
    TRY(RESERVE(f->small, f->k + 1, f->k + 1, err));
    TRY(RESERVE(f->work, (size_t)f->work_size, 1, err));
    return RESERVE(f->spectrum, f->k, 1, err);
}

static void draw(finder *f, uint64_t seed) {
    for (size_t j = 0; j < f->k; j++) {
        fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_FACTORS, j, 0);
        for (size_t i = 0; i < f->n; i++)
            f->y[j * f->n + i] = fds_rng_normal(&rng);
    }
}

typedef struct {
    const finder *f;
    fds__factors *out;
} keeping;

/* h (n, rank) = q' times the eigenvectors, the greatest directions first. */
static fds_status keep_players(void *context, size_t job, unsigned worker, fds_error *err) {
    const keeping *k = context;
    const finder *f = k->f;
    const size_t rank = k->out->rank, first = job * PLAYERS,
                 count = MIN((size_t)PLAYERS, f->n - first);
    OWNED double *h = NULL; /* (rank, count), the smallest direction first */
    (void)worker;
    TRY(RESERVE(h, rank, count, err));
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rank, (int)count, (int)f->k, 1,
                f->small + (f->k - rank) * f->k, (int)f->k, f->q + f->n + first, (int)f->n, 0, h,
                (int)count);
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < rank; r++)
            k->out->h[(first + i) * rank + r] = (float)h[(rank - 1 - r) * count + i];
    return FDS_OK;
}

static fds_status find(finder *f, uint64_t seed, unsigned threads, const fds_events *events,
                       fds__factors *out, fds_error *err) {
    size_t blocks = jobs_of(f->columns, BLOCK),
           products = jobs_of(f->columns, COLUMNS) + blocks * jobs_of(f->n, PLAYERS);
    double energy, before = -1;
    fds__pass pass = fds__pass_begin(events, PASSES * products);
    TRY(reserve(f, err));
    TRY(RESERVE(out->h, f->n, out->rank, err));
    draw(f, seed);
    for (out->passes = 1; out->passes <= PASSES; out->passes++) {
        TRY(orthogonalise(f, err));
        TRY(pass_over(f, threads, &pass, &energy, err));
        TRY(find_spectrum(f, err));
        double now = held(f, out->rank);
        if (!isfinite(now) || !isfinite(energy))
            return fail_lapack("energy", err);
        out->energy = energy > 0 ? fmin(now / energy, 1) : 1;
        if (now - before <= TOLERANCE * energy || out->passes == PASSES)
            break;
        before = now;
    }
    keeping k = {f, out};
    return fds__pool_run(threads, jobs_of(f->n, PLAYERS), keep_players, &k, "factors", "players",
                         events, err);
}

fds_status fds__factors_find(const double *values, size_t players, size_t stride, size_t columns,
                             size_t rank, uint64_t seed, unsigned threads, const fds_events *events,
                             fds__factors *out, fds_error *err) {
    assert(rank && rank < players && columns && columns <= stride);
    finder f = {.values = values,
                .n = players,
                .stride = stride,
                .columns = columns,
                .k = MIN(rank + SPARE, players - 1)};
    *out = (fds__factors){.players = players, .rank = rank};
    fds__blas_begin();
    fds_status status = find(&f, seed, threads, events, out, err);
    fds__blas_end();
    fds__free(f.q);
    fds__free(f.y);
    fds__free(f.product);
    fds__free(f.energies);
    fds__free(f.small);
    fds__free(f.work);
    fds__free(f.spectrum);
    return status;
}

/* ---- coefficients ---- */

typedef struct {
    const fds__factors *factors;
    const double *values; /* (players, stride) */
    size_t stride;
    double *h; /* (players, rank) */
    float *out;
} projection;

static fds_status project_columns(void *context, size_t job, unsigned worker, fds_error *err) {
    const projection *p = context;
    size_t n = p->factors->players, rank = p->factors->rank, first = job * COLUMNS,
           count = MIN((size_t)COLUMNS, p->stride - first);
    OWNED double *part = NULL;
    (void)worker;
    TRY(RESERVE(part, count, rank, err));
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)count, (int)rank, (int)n, 1,
                p->values + first, (int)p->stride, p->h, (int)rank, 0, part, (int)rank);
    for (size_t i = 0; i < count * rank; i++)
        p->out[first * rank + i] = (float)part[i];
    return FDS_OK;
}

fds_status fds__factors_project(const fds__factors *factors, const double *values, size_t columns,
                                unsigned threads, const fds_events *events, float *out,
                                fds_error *err) {
    size_t size = factors->players * factors->rank;
    OWNED double *h = NULL;
    TRY(RESERVE(h, size, 1, err));
    for (size_t i = 0; i < size; i++)
        h[i] = (double)factors->h[i];
    projection p = {factors, values, columns, h, out};
    fds__blas_begin();
    fds_status status = fds__pool_run(threads, jobs_of(columns, COLUMNS), project_columns, &p,
                                      "factors", "projections", events, err);
    fds__blas_end();
    return status;
}
