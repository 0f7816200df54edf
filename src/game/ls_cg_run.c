/* SPDX-License-Identifier: Apache-2.0
 * Values and errors of least squares of many unknowns, in chunks of columns: ls_cg.h. */
#include "game/ls_cg.h"

#include <math.h>
#include <string.h>

static const double tolerance = 1e-6; /* of values, against their errors of some per cent */

typedef struct {
    fds__cg many;
    fds__cg_stage fit, rest;
    bool with_fit, with_prior;
    fds__ls_choice choice;
    fds__cg_errors errors;
    const fds_rows *rows;
    const fds_ls_params *params;
    double *values, *standard; /* (n, columns): standard errors, or NULL */
    fds__cg_scratch first;     /* of what one thread does */
    struct chunk *chunks;      /* (workers) */
} solving;

/* A worker's scratch for a chunk of columns. */
typedef struct chunk {
    fds__cg_scratch t;
    double *u;          /* (pairs, W); the allocation begins here */
    double *b, *theta;  /* (F, W) */
    double *rest, *var; /* (n, W) */
    double *lines;      /* (3, W) */
    double *total;      /* (W) */
} chunk;

enum { W = FDS__CG_CHUNK };

static fds_status chunk_create(const fds__cg *m, size_t width, chunk *c, fds_error *err) {
    const size_t f = m->d->features * width, n = m->d->players * width;
    TRY(fds__cg_scratch_create(m, width, &c->t, err));
    TRY(NEW(c->u, m->d->pairs * width + 2 * f + 2 * n + 4 * width, err));
    c->b = c->u + m->d->pairs * width;
    c->theta = c->b + f;
    c->rest = c->theta + f;
    c->var = c->rest + n;
    c->lines = c->var + n;
    c->total = c->lines + 3 * width;
    return FDS_OK;
}

/* u and total of columns column .. column+count-1; the others of the chunk are 0. */
static fds_status read_chunk(const solving *s, chunk *t, unsigned worker, size_t column,
                             size_t count, size_t width, fds_error *err) {
    const fds__design *d = s->many.d;
    memset(t->u, 0, d->pairs * width * sizeof *t->u);
    memset(t->total, 0, width * sizeof *t->total);
    for (size_t first = 0; first < d->pairs; first += FDS__LS_BLOCK) {
        size_t pairs = MIN(d->pairs - first, (size_t)FDS__LS_BLOCK);
        TRY(fds__design_values(d, s->rows, s->params->control, s->choice.control, worker, first,
                               pairs, column, count, width, t->lines, t->u + first * width, err));
        TRY(fds__pool_check(err));
    }
    return fds__ls_total(s->rows, s->params->control, s->choice.control, worker, column, count,
                         t->lines, t->total, err);
}

/* x (size, width) solves the stage for b, and sums to total. */
static fds_status solve_stage(const fds__cg_stage *stage, const double *b, const double *total,
                              size_t width, fds__cg_scratch *t, double *x, fds_error *err) {
    memset(x, 0, stage->size * width * sizeof *x);
    TRY(fds__cg_solve(stage, b, width, tolerance, t, x, err));
    fds__cg_constrain(stage, total, width, x);
    return FDS_OK;
}

/* u -= D x */
static fds_status subtract_prediction(const fds__cg_stage *stage, const double *x, size_t width,
                                      chunk *t, fds_error *err) {
    TRY(fds__cg_predict(stage, x, width, &t->t, t->t.y, err));
    for (size_t i = 0; i < stage->many->d->pairs * width; i++)
        t->u[i] -= t->t.y[i];
    return FDS_OK;
}

static fds_status solve_chunk(void *context, size_t job, unsigned worker, fds_error *err) {
    solving *s = context;
    chunk *t = &s->chunks[worker];
    const fds__design *d = s->many.d;
    const size_t n = d->players, column = job * W,
                 count = MIN(s->rows->columns - column, (size_t)W),
                 width = (count + FDS__BITS_TILE - 1) / FDS__BITS_TILE * FDS__BITS_TILE;
    TRY(read_chunk(s, t, worker, column, count, width, err));
    if (s->with_fit) {
        TRY(fds__cg_sum(&s->fit, t->u, width, &t->t, t->b, err));
        TRY(solve_stage(&s->fit, t->b, t->total, width, &t->t, t->theta, err));
        TRY(subtract_prediction(&s->fit, t->theta, width, t, err));
    }
    TRY(fds__cg_sum(&s->rest, t->u, width, &t->t, t->b, err));
    TRY(solve_stage(&s->rest, t->b, s->with_fit ? NULL : t->total, width, &t->t, t->rest, err));
    TRY(subtract_prediction(&s->rest, t->rest, width, t, err));
    /* theta is all that depends on single players, then phi */
    for (size_t i = 0; i < n * width; i++)
        t->theta[i] = t->rest[i] + (s->with_fit ? t->theta[i] : 0);
    if (s->errors.scale)
        TRY(fds__cg_variances(&s->many, &s->errors, t->theta, width, &t->t, t->u, t->var, err));
    if (s->with_fit) {
        memset(t->b, 0, n * width * sizeof *t->b);
        fds__ls_add_fit(d, t->theta, width, t->b);
        memcpy(t->theta, t->b, n * width * sizeof *t->b);
    }
    if (s->with_prior)
        fds__ls_shrink_noise(d, width, t->theta, t->var);
    for (size_t i = 0; s->errors.scale && i < n * width; i++)
        t->var[i] += t->t.residual[i];
    if (s->with_prior)
        TRY(fds__ls_add_winners_curse(n, width, t->theta, t->var, err));
    const fds__ls_store store = {
        n, s->rows->columns, s->choice.control, s->params->control_values, s->values, s->standard};
    fds__ls_store_chunk(&store, t->total, t->theta, t->var, width, column, count);
    return FDS_OK;
}

/* ---- all of it ---- */

/* With the chosen strengths. */
static fds_status finish(void *context, size_t job, unsigned worker, fds_error *err) {
    solving *s = context;
    (void)job, (void)worker;
    s->fit.most = s->rest.most = FDS__CG_ITERATIONS;
    if (s->with_fit)
        TRY(fds__cg_stage_penalise(&s->fit, s->choice.fit, tolerance, &s->first, err));
    TRY(fds__cg_stage_penalise(&s->rest, s->choice.rest, tolerance, &s->first, err));
    if (!s->standard && !s->with_prior)
        return FDS_OK;
    return fds__cg_errors_create(s->with_fit ? &s->fit : NULL, &s->rest, &s->first, &s->errors,
                                 err);
}

static fds_status solve(solving *s, const fds__design *d, unsigned threads, fds_error *err) {
    enum { FIRST = (FDS__CG_SAMPLE + 2 * FDS__CG_PROBES) };
    size_t jobs = (s->rows->columns + W - 1) / W;
    unsigned workers = fds__pool_workers(threads, jobs);
    TRY(fds__cg_create(d, &s->many, err));
    TRY(fds__cg_scratch_create(&s->many, FIRST, &s->first, err));
    if (s->with_fit)
        TRY(fds__cg_stage_create(&s->many, true, &s->fit, err));
    TRY(fds__cg_stage_create(&s->many, false, &s->rest, err));
    TRY(fds__cg_choose(&s->many, s->rows, s->params, s->with_fit ? &s->fit : NULL, &s->rest,
                       &s->first, &s->choice, err));
    TRY(fds__pool_run(1, 1, finish, s, "leverage", "solutions", d->events, err));
    size_t width =
        MIN((size_t)W, (s->rows->columns + FDS__BITS_TILE - 1) / FDS__BITS_TILE * FDS__BITS_TILE);
    TRY(NEW(s->chunks, workers, err));
    for (unsigned i = 0; i < workers; i++)
        TRY(chunk_create(&s->many, width, &s->chunks[i], err));
    return fds__pool_run(threads, jobs, solve_chunk, s, "least squares", "chunks", d->events, err);
}

uint64_t fds__ls_cg_memory(uint64_t n, uint64_t f, uint64_t pairs, uint64_t groups,
                           uint64_t columns, bool with_control, uint64_t workers) {
    enum { FIRST = FDS__CG_SAMPLE + 2 * FDS__CG_PROBES };
    uint64_t q = groups + f - n, width = MIN(columns, (uint64_t)W), jobs = (columns + W - 1) / W;
    width = (width + FDS__BITS_TILE - 1) / FDS__BITS_TILE * FDS__BITS_TILE;
    uint64_t bits = n * pairs / 4;
    uint64_t fixed = pairs * (q + 4) + 2 * (q * q + groups * groups) + FIRST * (pairs + 3 * f);
    uint64_t surrogate = with_control ? 2 * FIRST * pairs : 0;
    uint64_t choosing = FIRST * (4 * f + 2 * pairs + FDS__LS_CANDIDATES * n) + surrogate;
    uint64_t errors = pairs * (5 + groups), traces = 4 * FDS__BITS_TILE * f;
    uint64_t cross = groups * q + FDS__LS_BLOCK * (q + groups); /* of the coarse part */
    uint64_t each = width * (2 * pairs + 5 * f + 2 * n + 2 * q) + FDS__BITS_TABLE;
    uint64_t values = errors + MAX(MAX(traces, cross), MIN(workers, jobs) * each);
    return bits + sizeof(double) * (fixed + MAX(choosing, values));
}

fds_status fds__ls_cg(const fds__design *d, bool with_prior, const fds_rows *rows,
                      const fds_ls_params *params, unsigned threads, double *values, double *errors,
                      fds__ls_choice *choice, fds_error *err) {
    solving s = {.with_fit = fds__ls_with_fit(params->adjust),
                 .with_prior = with_prior,
                 .rows = rows,
                 .params = params,
                 .values = values,
                 .standard = errors};
    unsigned workers = fds__pool_workers(threads, (rows->columns + W - 1) / W);
    fds_status status = solve(&s, d, threads, err);
    *choice = s.choice;
    for (unsigned i = 0; s.chunks && i < workers; i++) {
        fds__free(s.chunks[i].t.y);
        fds__free(s.chunks[i].u);
    }
    fds__free(s.chunks);
    fds__free(s.first.y);
    fds__cg_errors_free(&s.errors);
    fds__cg_stage_free(&s.fit);
    fds__cg_stage_free(&s.rest);
    fds__cg_free(&s.many);
    return status;
}
