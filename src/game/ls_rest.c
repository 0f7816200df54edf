/* SPDX-License-Identifier: Apache-2.0
 * How strongly to shrink what the fitted game g leaves, v - g: the strength of the least risk.
 *
 * The values are phi_l = P theta + Q_l b, with b = Z'W(U - D theta), and Q_l the solver of strength
 * l. Without shrinkage, l = 0, they have no bias (but for a ridge, where coalitions are few), so that
 * the risk of another strength, its expected squared error, can be estimated by its distance from
 * them (Stein):
 *
 *     risk(l) = |phi_l - phi_0|^2 + sum_i (2 a_l,i . a_0,i - |a_0,i|^2) e_i^2
 *
 * where a_l,i is the influence of pair i on the values, and e_i^2 the squared error of pair i when it
 * is left out, times the share of unseen coalitions of its size. Where all coalitions are known the
 * errors count nothing, and nothing is shrunk. (Held-out coalitions cannot choose: they are mostly of
 * middle sizes, whose prediction says little about the small and large ones that decide the values.)
 *
 * Only scalar products of these vectors count, so all of them are taken in the basis of ls_path.c, where
 * another strength costs little. */
#include "ls.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

const double fds__ls_rests[FDS__LS_RESTS] = {0, 10, 30, 100, 300, 1000};

/* For L pairs and C columns of the sample; all but squares in the basis of path. */
typedef struct {
    const fds__ls_rest *r;
    const fds__path *path;
    double *rows;        /* (n, L): Z' */
    double *through_fit; /* (n, L): influence on P theta */
    double *on_b, *b;    /* (n, L), reduced: influence on b; (n, C), reduced */
    double *plain;       /* (n, C): Q_0 b */
    double *influence;   /* (n, L): a_0 */
    double *squares;     /* (L): e_i^2, summed over the columns; for all pairs of its size */
    double start_s;
    double risks[FDS__LS_RESTS];
} search;

/* Between two products; their number is small. */
static fds_status report(const search *s, size_t done, fds_error *err) {
    enum { PRODUCTS = 2 };
    return fds__report(s->r->design->events, "shrinkage", "products", done, PRODUCTS, s->start_s,
                       err);
}

/* The influence of a strength, out (n, L), and what it makes of b, phi (n, C). */
static fds_status apply(const search *s, double strength, double *out, double *phi,
                        fds_error *err) {
    const size_t pairs = s->r->pairs, columns = s->r->columns, n = s->path->size;
    fds__path_point point;
    fds_status status = fds__path_at(s->path, strength, &point, err);
    if (status == FDS_OK) {
        memcpy(out, s->on_b, n * pairs * sizeof *out);
        memcpy(phi, s->b, n * columns * sizeof *phi);
        fds__path_solve(&point, NULL, pairs, out);
        fds__path_solve(&point, NULL, columns, phi);
        fds__path_return(s->path, pairs, out);
        fds__path_return(s->path, columns, phi);
        for (size_t i = 0; i < n * pairs; i++)
            out[i] += s->through_fit[i];
    }
    fds__path_point_free(&point);
    return status;
}

/* How theta, and with it b, depend on each pair: through_fit and on_b (n, L), not in the basis yet; of_fit
 * (L): the leverage of the pairs. */
static fds_status pass_through_fit(const search *s, double *through_fit, double *on_b,
                                   double *of_fit, fds_error *err) {
    const fds__ls_rest *r = s->r;
    const fds__design *d = r->design;
    const size_t pairs = r->pairs, n = d->players, f = d->features;
    OWNED double *weighted = NULL, *theta = NULL; /* (L, F), (F, L) */
    TRY(NEW(weighted, pairs * f, err));
    TRY(NEW(theta, f * pairs, err));
    fds__weigh(r->rows, pairs, f, d->mild, weighted);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)f, (int)pairs, (int)f, 1, r->fit->q,
                (int)f, weighted, (int)f, 0, theta, (int)pairs);
    TRY(report(s, 1, err));
    fds__ls_add_fit(d, theta, pairs, through_fit);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)pairs, (int)f, -1, r->cross,
                (int)f, theta, (int)pairs, 0, on_b, (int)pairs);
    for (size_t i = 0; i < pairs; i++) {
        of_fit[i] = cblas_ddot((int)f, r->rows + i * f, 1, theta + i, (int)pairs);
        for (size_t j = 0; j < n; j++)
            on_b[j * pairs + i] += d->kernel[i] * r->rows[i * f + j];
    }
    return FDS_OK;
}

static size_t pair_size(const fds__design *d, size_t pair) {
    size_t rows = d->plan->is_paired ? 2 : 1;
    size_t size = fds_coalition_size(fds_plan_coalition(d->plan, 2 + pair * rows), d->players);
    return d->plan->is_paired ? MIN(size, d->players - size) : size;
}

/* How many pairs of the plan each pair of the sample stands for. The first pairs of a plan have more
 * of the small sizes, of which there are few coalitions. */
static fds_status count_sizes(const fds__ls_rest *r, double *times, fds_error *err) {
    const fds__design *d = r->design;
    OWNED double *all = NULL, *sampled = NULL; /* (n + 1): pairs of each size */
    TRY(NEW(all, d->players + 1, err));
    TRY(NEW(sampled, d->players + 1, err));
    for (size_t i = 0; i < d->pairs; i++)
        all[pair_size(d, i)]++;
    for (size_t i = 0; i < r->pairs; i++)
        sampled[pair_size(d, i)]++;
    for (size_t i = 0; i < r->pairs; i++)
        times[i] = all[pair_size(d, i)] / sampled[pair_size(d, i)];
    return FDS_OK;
}

/* Errors of the pairs, with no shrinkage, as if each were left out; errors (L, C) is U - D theta. */
static fds_status square_errors(search *s, const double *of_fit, fds_error *err) {
    const fds__ls_rest *r = s->r;
    const fds__design *d = r->design;
    const size_t n = d->players;
    TRY(count_sizes(r, s->squares, err));
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)r->pairs, (int)r->columns, (int)n, -1,
                s->rows, (int)r->pairs, s->plain, (int)r->columns, 1, r->errors, (int)r->columns);
    for (size_t i = 0; i < r->pairs; i++) {
        const double *e = r->errors + i * r->columns;
        double own = of_fit[i]; /* its leverage; a_0 - through_fit is Q_0 times what b gets */
        for (size_t j = 0; j < n; j++)
            own += s->rows[j * r->pairs + i] *
                   (s->influence[j * r->pairs + i] - s->through_fit[j * r->pairs + i]);
        double rest = MAX(1 - own, 0.1); /* as in ls_columns.c */
        s->squares[i] *= d->unseen[i] * cblas_ddot((int)r->columns, e, 1, e, 1) / (rest * rest);
    }
    return FDS_OK;
}

static fds_status estimate_risk(void *context, size_t job, unsigned worker, fds_error *err) {
    search *s = context;
    const size_t n = s->path->size, pairs = s->r->pairs, columns = s->r->columns;
    OWNED double *influence = NULL, *phi = NULL;
    (void)worker;
    TRY(NEW(influence, n * pairs, err));
    TRY(NEW(phi, n * columns, err));
    TRY(apply(s, fds__ls_rests[job], influence, phi, err));
    double distance = 0, noise = 0;
    for (size_t i = 0; i < n * columns; i++)
        distance += (phi[i] - s->plain[i]) * (phi[i] - s->plain[i]);
    for (size_t i = 0; i < n * pairs; i++)
        noise += (2 * influence[i] - s->influence[i]) * s->influence[i] * s->squares[i % pairs];
    s->risks[job] = distance + noise;
    return FDS_OK;
}

/* Everything that the risks of all strengths have in common. */
static fds_status prepare(search *s, unsigned threads, fds_error *err) {
    const fds__ls_rest *r = s->r;
    const size_t n = r->design->players, pairs = r->pairs, columns = r->columns;
    OWNED double *of_fit = NULL, *through_fit = NULL, *on_b = NULL;
    TRY(NEW(of_fit, pairs, err));
    TRY(NEW(through_fit, n * pairs, err));
    TRY(NEW(on_b, n * pairs, err));
    TRY(pass_through_fit(s, through_fit, on_b, of_fit, err));
    TRY(report(s, 2, err));
    TRY(NEW(s->rows, (4 * n + 1) * pairs + 2 * n * columns, err));
    s->through_fit = s->rows + n * pairs;
    s->on_b = s->through_fit + n * pairs;
    s->influence = s->on_b + n * pairs;
    s->squares = s->influence + n * pairs;
    s->b = s->squares + pairs;
    s->plain = s->b + n * columns;
    const fds__path *p = s->path;
    TRY(fds__path_turn(p, r->rows, 1, r->design->features, pairs, false, threads, s->rows, err));
    TRY(fds__path_turn(p, through_fit, pairs, 1, pairs, false, threads, s->through_fit, err));
    TRY(fds__path_turn(p, on_b, pairs, 1, pairs, true, threads, s->on_b, err));
    TRY(fds__path_turn(p, r->b, columns, 1, columns, true, threads, s->b, err));
    TRY(apply(s, 0, s->influence, s->plain, err));
    return square_errors(s, of_fit, err);
}

/* FDS_ERR_DIVERGED where the solution without shrinkage is not unique. */
static fds_status choose_strength(const fds__ls_rest *rest, double ridge, unsigned threads,
                                  double *strength, fds_error *err) {
    const fds__design *d = rest->design;
    fds__path path = {0};
    search s = {.r = rest, .path = &path, .start_s = fds__now_s()};
    fds_status status = fds__path_create(d, rest->kernel, d->players,
                                         (fds__penalty){.ridge = ridge}, false, &path, err);
    if (status == FDS_OK)
        status = prepare(&s, threads, err);
    if (status == FDS_OK)
        status = fds__pool_run(threads, FDS__LS_RESTS, estimate_risk, &s, "shrinkage", "strengths",
                               d->events, err);
    size_t best = 0;
    for (size_t i = 1; i < FDS__LS_RESTS; i++)
        best = s.risks[i] < s.risks[best] ? i : best;
    *strength = fds__ls_rests[best];
    fds__free(s.rows);
    fds__path_free(&path);
    return status;
}

/* Without a ridge if that has a unique solution, unless coalitions are few. */
fds_status fds__ls_choose_rest(const fds__ls_rest *rest, bool are_few, bool is_shrunk,
                               unsigned threads, fds__penalty *out, fds__solver *solver,
                               fds_error *err) {
    fds_status status = FDS_OK;
    for (*out = (fds__penalty){.ridge = are_few};; out->ridge = 1) {
        if (is_shrunk)
            status = choose_strength(rest, out->ridge, threads, &out->shrink, err);
        if (status == FDS_OK)
            status = fds__solver_create(rest->design, rest->kernel, rest->design->players, *out,
                                        solver, err);
        if (status != FDS_ERR_DIVERGED || out->ridge > 0)
            return status;
        fds__solver_free(solver);
        *solver = (fds__solver){0};
    }
}
