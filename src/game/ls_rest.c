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
 * middle sizes, whose prediction says little about the small and large ones that decide the values.) */
#include "ls.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

static const double strengths[] = {0, 10, 30, 100, 300, 1000};
enum { STRENGTHS = sizeof strengths / sizeof *strengths };

/* For L pairs and C columns of the sample. */
typedef struct {
    const fds__ls_rest *r;
    double ridge;
    double *through_fit; /* (n, L): influence on P theta */
    double *on_b;        /* (n, L): influence on b */
    double *plain;       /* (n, C): Q_0 b */
    double *influence;   /* (n, L): a_0 */
    double *squares;     /* (L): e_i^2, summed over the columns; for all pairs of its size */
    double start_s;
    double risks[STRENGTHS];
} search;

/* Between two products; their number is small. */
static fds_status report(const search *s, size_t done, fds_error *err) {
    enum { PRODUCTS = 3 };
    return fds__report(s->r->design->events, "shrinkage", "products", done, PRODUCTS, s->start_s,
                       err);
}

/* The influence of a solver, out (n, L), and what it makes of b, phi (n, C). */
static void apply(const search *s, const fds__solver *q, double *out, double *phi) {
    const fds__ls_rest *r = s->r;
    int n = (int)r->design->players, pairs = (int)r->pairs, w = (int)r->columns;
    memcpy(out, s->through_fit, r->design->players * r->pairs * sizeof *out);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, pairs, n, 1, q->q, n, s->on_b, pairs,
                1, out, pairs);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, w, n, 1, q->q, n, r->b, w, 0, phi, w);
}

/* How theta, and with it b, depend on each pair; of_fit (L): the leverage of the pairs. */
static fds_status pass_through_fit(search *s, double *of_fit, fds_error *err) {
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
    fds__ls_add_fit(d, theta, pairs, s->through_fit);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)pairs, (int)f, -1, r->cross,
                (int)f, theta, (int)pairs, 0, s->on_b, (int)pairs);
    for (size_t i = 0; i < pairs; i++) {
        of_fit[i] = cblas_ddot((int)f, r->rows + i * f, 1, theta + i, (int)pairs);
        for (size_t j = 0; j < n; j++)
            s->on_b[j * pairs + i] += d->kernel[i] * r->rows[i * f + j];
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
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)r->pairs, (int)r->columns, (int)n,
                -1, r->rows, (int)d->features, s->plain, (int)r->columns, 1, r->errors,
                (int)r->columns);
    for (size_t i = 0; i < r->pairs; i++) {
        const double *e = r->errors + i * r->columns, *row = r->rows + i * d->features;
        double own = of_fit[i]; /* its leverage; a_0 - through_fit is Q_0 times what b gets */
        for (size_t j = 0; j < n; j++)
            own += row[j] * (s->influence[j * r->pairs + i] - s->through_fit[j * r->pairs + i]);
        double rest = MAX(1 - own, 0.1); /* as in ls_columns.c */
        s->squares[i] *= d->unseen[i] * cblas_ddot((int)r->columns, e, 1, e, 1) / (rest * rest);
    }
    return FDS_OK;
}

static fds_status make_solver(const search *s, double strength, fds__solver *out, fds_error *err) {
    const fds__penalty penalty = {.ridge = s->ridge, .shrink = strength};
    return fds__solver_create(s->r->design, s->r->kernel, s->r->design->players, penalty, out, err);
}

static fds_status estimate_risk(void *context, size_t job, unsigned worker, fds_error *err) {
    search *s = context;
    const size_t n = s->r->design->players, pairs = s->r->pairs, columns = s->r->columns;
    OWNED double *influence = NULL, *phi = NULL;
    fds__solver solver = {0};
    (void)worker;
    TRY(NEW(influence, n * pairs, err));
    TRY(NEW(phi, n * columns, err));
    fds_status status = make_solver(s, strengths[job], &solver, err);
    if (status == FDS_OK)
        apply(s, &solver, influence, phi);
    fds__solver_free(&solver);
    TRY(status);
    double distance = 0, noise = 0;
    for (size_t i = 0; i < n * columns; i++)
        distance += (phi[i] - s->plain[i]) * (phi[i] - s->plain[i]);
    for (size_t i = 0; i < n * pairs; i++)
        noise += (2 * influence[i] - s->influence[i]) * s->influence[i] * s->squares[i % pairs];
    s->risks[job] = distance + noise;
    return FDS_OK;
}

/* Everything that the risks of all strengths have in common. */
static fds_status prepare(search *s, const fds__solver *plain, fds_error *err) {
    const size_t n = s->r->design->players, pairs = s->r->pairs;
    OWNED double *of_fit = NULL;
    TRY(NEW(of_fit, pairs, err));
    TRY(NEW(s->through_fit, n * pairs, err));
    TRY(NEW(s->on_b, n * pairs, err));
    TRY(NEW(s->influence, n * pairs, err));
    TRY(NEW(s->plain, n * s->r->columns, err));
    TRY(NEW(s->squares, pairs, err));
    TRY(pass_through_fit(s, of_fit, err));
    TRY(report(s, 2, err));
    apply(s, plain, s->influence, s->plain);
    TRY(report(s, 3, err));
    return square_errors(s, of_fit, err);
}

/* Without a penalty if that has a unique solution, else with a ridge. */
static fds_status make_plain(search *s, fds__solver *plain, fds_error *err) {
    fds_error why;
    fds_status status = make_solver(s, 0, plain, &why);
    if (status == FDS_ERR_DIVERGED && s->ridge == 0) {
        fds__solver_free(plain);
        *plain = (fds__solver){0};
        s->ridge = 1;
        return make_solver(s, 0, plain, err);
    }
    return status == FDS_OK ? FDS_OK : fds__fail(err, status, "%s", why.text);
}

fds_status fds__ls_choose_rest(const fds__ls_rest *rest, bool are_few, bool is_shrunk,
                               unsigned threads, fds__penalty *out, fds_error *err) {
    search s = {.r = rest, .ridge = are_few, .start_s = fds__now_s()};
    fds__solver plain = {0};
    fds_status status = make_plain(&s, &plain, err);
    if (status == FDS_OK && is_shrunk)
        status = prepare(&s, &plain, err);
    if (status == FDS_OK && is_shrunk)
        status = fds__pool_run(threads, STRENGTHS, estimate_risk, &s, "shrinkage", "strengths",
                               rest->design->events, err);
    size_t best = 0;
    for (size_t i = 1; i < STRENGTHS; i++)
        best = s.risks[i] < s.risks[best] ? i : best;
    *out = (fds__penalty){.ridge = s.ridge, .shrink = strengths[best]};
    fds__solver_free(&plain);
    fds__free(s.through_fit);
    fds__free(s.on_b);
    fds__free(s.influence);
    fds__free(s.plain);
    fds__free(s.squares);
    return status;
}
