/* SPDX-License-Identifier: Apache-2.0
 * Values and errors of the columns, in chunks of one job each. A chunk reads the rows twice, for the
 * values and for the errors. Notation: ls.h. */
#include "ls.h"

#include <cblas.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* A worker's scratch for a chunk of columns, in one allocation. */
typedef struct {
    double *design;                  /* (block, F); the allocation begins here */
    double *u, *uw;                  /* (block, chunk) */
    double *b, *theta;               /* (F, chunk) */
    double *own;                     /* (n, chunk): in place of b, which is then no longer needed */
    double *rest, *phi, *var, *work; /* (n, chunk) */
    double *total;                   /* (chunk) */
    double *influence;               /* (block, n) */
    double *lines;                   /* (3, chunk) */
    double *members; /* (2, real players, chunk), where groups are players: phi, var */
} scratch;

typedef struct {
    const fds__ls_parts *parts;
    const fds_rows *rows;
    const fds_ls_params *params;
    double *values, *errors;
    scratch *scratch; /* (workers) */
    size_t blocks;    /* of pairs, in all chunks */
    atomic_size_t done;
} ls;

/* Counts a block of pairs. */
static fds_status report(ls *l, fds_error *err) {
    atomic_fetch_add(&l->done, 1);
    return fds__pool_check(err);
}

/* Tells of blocks, where the pool counts chunks. */
static bool tell(void *user, const fds_progress *progress) {
    const ls *l = user;
    const fds_events *events = l->parts->design.events;
    fds_progress blocks = *progress;
    blocks.done = atomic_load(&l->done);
    blocks.total = l->blocks;
    return events && events->progress && events->progress(events->user, &blocks);
}

static fds_status scratch_alloc(const fds__design *d, size_t width, scratch *t, fds_error *err) {
    const size_t block = FDS__LS_BLOCK, n = d->players * width, f = d->features * width;
    size_t members = d->wholes ? 2 * d->real * width : 0;
    size_t size =
        block * (d->features + 2 * width + d->players) + 2 * f + 4 * n + 4 * width + members;
    TRY(NEW(t->design, size, err));
    t->u = t->design + block * d->features;
    t->uw = t->u + block * width;
    t->b = t->uw + block * width;
    t->own = t->b;
    t->theta = t->b + f;
    t->rest = t->theta + f;
    t->phi = t->rest + n;
    t->var = t->phi + n;
    t->work = t->var + n;
    t->total = t->work + n;
    t->lines = t->total + width;
    t->influence = t->lines + 3 * width;
    t->members = t->influence + block * d->players;
    return FDS_OK;
}

/* Reads a block of pairs: t->u, and *design, which is t->design unless all rows are kept. */
static fds_status read_block(const ls *l, scratch *t, unsigned worker, size_t first, size_t count,
                             size_t column, size_t width, const double **design, fds_error *err) {
    const fds__ls_parts *parts = l->parts;
    if (!parts->rows)
        fds__design_rows(&parts->design, first, count, t->design);
    *design = parts->rows ? parts->rows + first * parts->design.features : t->design;
    return fds__design_values(&parts->design, l->rows, l->params->control, l->parts->choice.control,
                              worker, first, count, column, width, width, t->lines, t->u, err);
}

/* b = D'Wu with mild weights, rest = Z'Wu with the kernel's. */
static fds_status sum_pairs(ls *l, scratch *t, unsigned worker, size_t column, size_t width,
                            fds_error *err) {
    const fds__design *d = &l->parts->design;
    int n = (int)d->players, f = (int)d->features, w = (int)width;
    memset(t->b, 0, d->features * width * sizeof *t->b);
    memset(t->rest, 0, d->players * width * sizeof *t->rest);
    for (size_t first = 0; first < d->pairs; first += FDS__LS_BLOCK) {
        size_t count = MIN(d->pairs - first, (size_t)FDS__LS_BLOCK);
        const double *design;
        TRY(read_block(l, t, worker, first, count, column, width, &design, err));
        fds__weigh(t->u, count, width, d->kernel + first, t->uw);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, w, (int)count, 1, design, f, t->uw,
                    w, 1, t->rest, w);
        TRY(report(l, err));
        if (!l->parts->with_fit)
            continue;
        fds__weigh(t->u, count, width, d->mild + first, t->uw);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, f, w, (int)count, 1, design, f, t->uw,
                    w, 1, t->b, w);
    }
    return FDS_OK;
}

fds_status fds__ls_total(const fds_rows *rows, const fds_rows *control, double share,
                         unsigned worker, size_t column, size_t width, double *line, double *total,
                         fds_error *err) {
    const fds_rows *games[] = {rows, share != 0 ? control : NULL};
    const double times[] = {1, -share};
    memset(total, 0, width * sizeof *total);
    for (int g = 0; g < 2 && games[g]; g++) {
        for (size_t row = 0; row < 2; row++) {
            TRY(games[g]->read(games[g]->context, worker, row, column, width, line, err));
            for (size_t c = 0; c < width; c++)
                total[c] += (row ? times[g] : -times[g]) * line[c];
        }
    }
    return FDS_OK;
}

/* phi, and theta such that D theta is what the fit and the rest together predict for the pairs. */
static void solve(const ls *l, scratch *t, size_t width) {
    const fds__design *d = &l->parts->design;
    int n = (int)d->players, f = (int)d->features, w = (int)width;
    size_t size = d->players * width;
    if (l->parts->with_fit) {
        fds__solver_apply(&l->parts->fit, t->b, t->total, width, t->theta);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, w, f, -1, l->parts->gram.cross, f,
                    t->theta, w, 1, t->rest, w);
    }
    fds__solver_apply(&l->parts->rest, t->rest, l->parts->with_fit ? NULL : t->total, width,
                      t->phi);
    if (!l->parts->with_fit) {
        memcpy(t->theta, t->phi, size * sizeof *t->phi);
        return;
    }
    memcpy(t->work, t->phi, size * sizeof *t->phi);
    fds__ls_add_fit(d, t->theta, width, t->phi);
    for (size_t i = 0; i < size; i++)
        t->theta[i] += t->work[i];
}

/* Leaving pair i out changes the values by its influence times e / (1 - leverage). The sum of the
 * squares, each times the share of unseen coalitions of its size, is the jackknife's variance. */
static fds_status sum_errors(ls *l, scratch *t, unsigned worker, size_t column, size_t width,
                             fds_error *err) {
    const fds__design *d = &l->parts->design;
    int n = (int)d->players, f = (int)d->features, w = (int)width;
    memset(t->var, 0, d->players * width * sizeof *t->var);
    for (size_t first = 0; first < d->pairs; first += FDS__LS_BLOCK) {
        size_t count = MIN(d->pairs - first, (size_t)FDS__LS_BLOCK);
        int b = (int)count;
        const double *design, *influence;
        TRY(read_block(l, t, worker, first, count, column, width, &design, err));
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, b, w, f, -1, design, f, t->theta, w,
                    1, t->u, w);
        for (size_t i = 0; i < count; i++) {
            /* a value hardly depends on one pair alone; if it does, this keeps it finite */
            double rest = MAX(1 - l->parts->leverage[first + i], 0.1);
            double share = d->unseen[first + i] / (rest * rest);
            for (size_t c = 0; c < width; c++)
                t->u[i * width + c] *= t->u[i * width + c] * share;
        }
        if (!l->parts->influence)
            fds__ls_influence(l->parts, first, count, t->design, t->influence);
        influence = l->parts->influence ? l->parts->influence + first * d->players : t->influence;
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, w, b, 1, influence, n, t->u, w, 1,
                    t->var, w);
        TRY(report(l, err));
    }
    return FDS_OK;
}

/* Adds the square of what shrinking probably loses. Averaged over a group, the squared deviations
 * found are kept^2 times the true ones, plus their variance. A value whose own deviation is larger than
 * that average loses more of its own: t->own, which must not draw it closer to the mean. */
static void add_bias(const ls *l, scratch *t, size_t width) {
    const fds__ls_parts *parts = l->parts;
    const fds__design d = fds__design_around(&parts->design, fds__ls_penalty(parts));
    size_t n = d.players;
    if (!parts->bias)
        return;
    double *found = t->work, *squares = t->rest,
           *variance = t->own; /* t->rest is no longer needed */
    fds__design_group_means(&d, t->theta, width, found);
    for (size_t i = 0; i < n * width; i++)
        squares[i] = (t->theta[i] - found[i]) * (t->theta[i] - found[i]);
    fds__design_group_means(&d, squares, width, found);
    fds__design_group_means(&d, t->var, width, variance);
    for (size_t i = 0; i < n * width; i++) {
        double kept = parts->kept[i / width], of_own = parts->bias[i / width * (n + 1)];
        found[i] = MAX(found[i], (found[i] - variance[i]) / (kept * kept));
        t->own[i] = of_own * MAX((squares[i] - t->var[i]) / (kept * kept) - found[i], 0);
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)width, (int)n, 1,
                parts->bias, (int)n, found, (int)width, 1, t->var, (int)width);
}

/* Divides the value of each group that is one player evenly among its members. */
static void divide_groups(const fds__design *d, const scratch *t, size_t width, double *phi,
                          double *var) {
    for (size_t i = 0; i < d->real; i++) {
        size_t g = fds_groups_of(d->wholes, i);
        double share = 1 / fds__design_share(d, g);
        for (size_t c = 0; c < width; c++) {
            phi[i * width + c] = share * t->phi[g * width + c];
            var[i * width + c] = share * share * t->var[g * width + c];
        }
    }
}

void fds__ls_store_chunk(const fds__ls_store *s, const double *total, const double *phi,
                         const double *var, size_t stride, size_t column, size_t width) {
    for (size_t c = 0; c < width; c++) {
        double sum = 0;
        for (size_t i = 0; i < s->players; i++)
            sum += phi[i * stride + c];
        double even = (total[c] - sum) / (double)s->players;
        for (size_t i = 0; i < s->players; i++) {
            size_t to = i * s->columns + column + c;
            s->values[to] = phi[i * stride + c] + even;
            if (s->control != 0)
                s->values[to] += s->control * s->control_values[to];
            if (s->errors)
                s->errors[to] = sqrt(var[i * stride + c]);
        }
    }
}

static fds_status solve_chunk(void *context, size_t job, unsigned worker, fds_error *err) {
    ls *l = context;
    scratch *t = &l->scratch[worker];
    size_t column = job * FDS__LS_CHUNK;
    size_t width = MIN(l->rows->columns - column, (size_t)FDS__LS_CHUNK);
    TRY(fds__ls_total(l->rows, l->params->control, l->parts->choice.control, worker, column, width,
                      t->lines, t->total, err));
    TRY(sum_pairs(l, t, worker, column, width, err));
    solve(l, t, width);
    if (l->errors || l->parts->with_prior) {
        TRY(sum_errors(l, t, worker, column, width, err));
        add_bias(l, t, width);
    }
    const fds__design *d = &l->parts->design;
    double *phi = d->wholes ? t->members : t->phi;
    double *var = d->wholes ? t->members + d->real * width : t->var;
    if (d->wholes)
        divide_groups(d, t, width, phi, var);
    if (l->parts->with_prior)
        fds__ls_shrink_noise(d, width, phi, var);
    for (size_t i = 0; l->parts->bias && i < d->players * width; i++)
        var[i] += t->own[i];
    if (l->parts->with_prior)
        TRY(fds__ls_add_winners_curse(d->real, width, phi, var, err));
    const fds__ls_store store = {
        d->real,   l->rows->columns, l->parts->choice.control, l->params->control_values,
        l->values, l->errors};
    fds__ls_store_chunk(&store, t->total, phi, var, width, column, width);
    return FDS_OK;
}

fds_status fds__ls_columns(const fds__ls_parts *parts, const fds_rows *rows,
                           const fds_ls_params *params, unsigned threads, double *values,
                           double *errors, fds_error *err) {
    size_t columns = rows->columns, jobs = (columns + FDS__LS_CHUNK - 1) / FDS__LS_CHUNK;
    unsigned workers = fds__pool_workers(threads, jobs);
    size_t blocks = (parts->design.pairs + FDS__LS_BLOCK - 1) / FDS__LS_BLOCK;
    ls l = {.parts = parts,
            .rows = rows,
            .params = params,
            .values = values,
            .errors = errors,
            .blocks = jobs * blocks * (errors || parts->with_prior ? 2 : 1)};
    const fds_events events = {.progress = tell, .user = &l};
    TRY(NEW(l.scratch, workers, err));
    fds_status status = FDS_OK;
    for (unsigned i = 0; i < workers && status == FDS_OK; i++)
        status =
            scratch_alloc(&parts->design, MIN(columns, (size_t)FDS__LS_CHUNK), &l.scratch[i], err);
    if (status == FDS_OK)
        status =
            fds__pool_run(threads, jobs, solve_chunk, &l, "least squares", "blocks", &events, err);
    for (unsigned i = 0; i < workers; i++)
        fds__free(l.scratch[i].design);
    fds__free(l.scratch);
    return status;
}
