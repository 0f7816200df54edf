/* SPDX-License-Identifier: Apache-2.0
 * Shapley values by least squares: minimises sum_s w(s) (v(s) - v(0) - s'phi)^2 subject to
 * sum phi = v(1) - v(0), the paper's equation for KernelSHAP and the loss of its explainer, whose
 * minimiser over all coalitions is the Shapley value. Notation and model: ls.h.
 *
 * Nothing but sums over the cases is kept, so memory does not grow with their number. Columns are
 * solved for in chunks, each by one job; a chunk reads the rows twice, for the values and for the
 * errors. */
#include "ls.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

typedef struct {
    const fds_rows *rows;
    const fds_ls_params *params;
    fds_design design;
    fds_gram gram;
    fds_ls_choice choice;
    bool with_fit;
    fds_solver fit, rest;
    double *from_fit; /* (n, F): values = from_fit D'Wu + rest.q Z'Wu, weights mild and kernel */
    double *bias;     /* (n, n): squares of how a true deviation from the group is lost */
    double *kept;     /* (n): what shrinking keeps of a deviation from the group */
    double *leverage; /* (cases) */
    double *values, *errors;
    struct scratch *scratch; /* one a worker */
} ls;

/* What a worker needs for a chunk of columns. */
typedef struct scratch {
    double *design;                  /* (block, F) */
    double *u, *uw;                  /* (block, chunk) */
    double *b, *theta;               /* (F, chunk) */
    double *rest, *phi, *var, *work; /* (n, chunk) */
    double *total;                   /* (chunk) */
    double *influence;               /* (block, n) */
    double *lines;                   /* (3, chunk) */
    uint32_t *counts;
} scratch;

/* ---- before the columns ---- */

/* Where groups take part as wholes, plain least squares divide evenly within them. */
static const fds_groups *groups_of(const fds_plan *plan, const fds_ls_params *params) {
    return plan->groups && params->adjust == FDS_PLAIN ? plan->groups : params->groups;
}

fds_status fds_least_squares_check(const fds_plan *plan, const fds_ls_params *params,
                                   fds_error *err) {
    if (plan->is_exact)
        return fds_fail(err, FDS_USAGE, "least squares need a plan of sampled coalitions");
    if ((int)params->adjust < FDS_PLAIN || params->adjust > FDS_COUNTS)
        return fds_fail(err, FDS_USAGE, "there is no adjustment number %d, only 0 to %d",
                        (int)params->adjust, FDS_COUNTS);
    if (params->groups && fds_groups_players(params->groups) != plan->players)
        return fds_fail(err, FDS_SHAPE, "the groups are of %zu players, the plan of %zu",
                        fds_groups_players(params->groups), plan->players);
    if (plan->groups && params->adjust == FDS_COUNTS)
        return fds_fail(err, FDS_USAGE,
                        "the counts of groups explain nothing where groups take part as wholes: "
                        "choose plain or shrunk least squares");
    size_t features;
    return fds_design_count(plan, groups_of(plan, params), params->adjust == FDS_COUNTS, &features,
                            err);
}

static fds_status check_rows(const fds_rows *rows, const fds_ls_params *params, fds_error *err) {
    if (rows->columns == 0)
        return fds_fail(err, FDS_USAGE, "least squares of no columns");
    if (!params->control != !params->control_values ||
        (params->control && params->control->columns != rows->columns))
        return fds_fail(err, FDS_SHAPE, "the surrogate game does not fit the game");
    return FDS_OK;
}

/* values of theta's players and steps: (P theta), P' = (I, members / size) */
static void add_values_of_fit(const fds_design *d, const double *theta, size_t width, double *phi) {
    for (size_t i = 0; i < d->players * width; i++)
        phi[i] += theta[i];
    for (size_t j = d->players; j < d->features; j++) {
        const fds_step *step = &d->steps[j - d->players];
        const uint32_t *members = NULL;
        if (step->group != FDS_ALL)
            fds_groups_members(d->groups, step->group, &members);
        for (size_t k = 0; k < step->of; k++) {
            double *to = phi + (members ? members[k] : k) * width;
            for (size_t c = 0; c < width; c++)
                to[c] += theta[j * width + c] / step->of;
        }
    }
}

/* from_fit = (P - rest.q cross) fit.q, so that the influence of a case on the values is known. */
static fds_status make_influence(ls *l, fds_error *err) {
    const fds_design *d = &l->design;
    int n = (int)d->players, f = (int)d->features;
    double *inner = fds_alloc_zero(d->players * d->features, sizeof *inner);
    l->from_fit = fds_alloc_zero(d->players * d->features, sizeof *l->from_fit);
    if (!inner || !l->from_fit) {
        fds_free(inner);
        return fds_fail_nomem(err, d->players * d->features * sizeof *inner);
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, f, f, 1, l->gram.cross, f, l->fit.q,
                f, 0, inner, f);
    add_values_of_fit(d, l->fit.q, d->features, l->from_fit);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, f, n, -1, l->rest.q, n, inner, f, 1,
                l->from_fit, f);
    fds_free(inner);
    return FDS_OK;
}

/* What is kept of the deviations in each player's group: 1 - c where lost, how much of each true
 * deviation each value lacks, is about c (I - group means). own: (n) */
static void measure_kept(const fds_design *d, const double *lost, double *own, double *kept) {
    const double least = 0.05; /* to divide by */
    size_t n = d->players;
    for (size_t j = 0; j < n; j++)
        own[j] = lost[j * n + j];
    fds_design_group_means(d, own, 1, kept);
    for (size_t j = 0; j < n; j++) {
        const uint32_t *members;
        size_t of =
            d->groups ? fds_groups_members(d->groups, fds_groups_of(d->groups, j), &members) : n;
        double c = of > 1 ? kept[j] * (double)of / (double)(of - 1) : 0;
        kept[j] = FDS_MAX(1 - c, least);
    }
}

/* Shrinking loses strength * (values of solver.q) (I - group means) of the true deviations. */
static fds_status make_bias(ls *l, fds_error *err) {
    const fds_design *d = &l->design;
    size_t n = d->players;
    const fds_solver *solver = l->with_fit ? &l->fit : &l->rest;
    double strength = l->with_fit ? l->choice.fit.shrink : l->choice.rest.shrink;
    double *all = fds_alloc_zero(n * solver->size, sizeof *all);
    double *transposed = fds_alloc_zero(2 * n * n, sizeof *transposed);
    l->bias = fds_alloc_zero(n * n, sizeof *l->bias);
    l->kept = fds_alloc_zero(n, sizeof *l->kept);
    fds_status status = FDS_OK;
    if (!all || !transposed || !l->bias || !l->kept) {
        status = fds_fail_nomem(err, n * n * sizeof *all);
    } else {
        double *means = transposed + n * n;
        if (l->with_fit)
            add_values_of_fit(d, solver->q, solver->size, all);
        else
            memcpy(all, solver->q, n * n * sizeof *all);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                transposed[j * n + i] = all[i * solver->size + j];
        fds_design_group_means(d, transposed, n, means);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                l->bias[i * n + j] = strength * (transposed[j * n + i] - means[j * n + i]);
        measure_kept(d, l->bias, all, l->kept);
        for (size_t i = 0; i < n * n; i++)
            l->bias[i] *= l->bias[i];
    }
    fds_free(all);
    fds_free(transposed);
    return status;
}

static fds_status make_leverage(ls *l, scratch *t, fds_error *err) {
    const fds_design *d = &l->design;
    l->leverage = fds_alloc_zero(d->cases, sizeof *l->leverage);
    double *work = fds_alloc_zero(FDS_LS_BLOCK * d->features, sizeof *work);
    if (!l->leverage || !work) {
        fds_free(work);
        return fds_fail_nomem(err, d->cases * sizeof *l->leverage);
    }
    double own[FDS_LS_BLOCK];
    for (size_t first = 0; first < d->cases; first += FDS_LS_BLOCK) {
        size_t count = FDS_MIN(d->cases - first, (size_t)FDS_LS_BLOCK);
        fds_design_rows(d, first, count, t->counts, t->design);
        fds_solver_leverage(&l->rest, t->design, count, d->features, d->kernel + first, work,
                            l->leverage + first);
        if (!l->with_fit)
            continue;
        fds_solver_leverage(&l->fit, t->design, count, d->features, d->mild + first, work, own);
        for (size_t i = 0; i < count; i++)
            l->leverage[first + i] += own[i];
    }
    fds_free(work);
    return FDS_OK;
}

static fds_status prepare(ls *l, const fds_plan *plan, unsigned threads, fds_error *err) {
    const fds_ls_params *p = l->params;
    l->with_fit = p->adjust == FDS_COUNTS;
    FDS_TRY(fds_design_create(plan, groups_of(plan, p), l->with_fit, &l->design, err));
    FDS_TRY(fds_gram_create(&l->design, &l->gram, err));
    FDS_TRY(fds_ls_choose(&l->design, &l->gram, l->rows, p, threads, &l->choice, err));
    if (l->with_fit)
        FDS_TRY(fds_solver_create(&l->design, l->gram.mild, l->design.features, l->choice.fit,
                                  &l->fit, err));
    return fds_solver_create(&l->design, l->gram.kernel, l->design.players, l->choice.rest,
                             &l->rest, err);
}

/* ---- a chunk of columns ---- */

static void scratch_free(scratch *t) {
    fds_free(t->design);
    fds_free(t->u);
    fds_free(t->b);
    fds_free(t->rest);
    fds_free(t->influence);
    fds_free(t->counts);
}

static fds_status scratch_alloc(const fds_design *d, size_t width, scratch *t, fds_error *err) {
    size_t n = d->players * width, f = d->features * width;
    t->design = fds_alloc_zero(FDS_LS_BLOCK * d->features, sizeof(double));
    t->u = fds_alloc_zero((2 * FDS_LS_BLOCK + 4) * width, sizeof(double));
    t->b = fds_alloc_zero(2 * f, sizeof(double));
    t->rest = fds_alloc_zero(4 * n, sizeof(double));
    t->influence = fds_alloc_zero(FDS_LS_BLOCK * d->players, sizeof(double));
    t->counts = fds_alloc_zero(d->group_count, sizeof *t->counts);
    if (!t->design || !t->u || !t->b || !t->rest || !t->influence || !t->counts)
        return fds_fail_nomem(err, (4 * n + 2 * f) * sizeof(double));
    t->uw = t->u + FDS_LS_BLOCK * width;
    t->total = t->uw + FDS_LS_BLOCK * width;
    t->lines = t->total + width;
    t->theta = t->b + f;
    t->phi = t->rest + n;
    t->var = t->phi + n;
    t->work = t->var + n;
    return FDS_OK;
}

/* Reads a block of cases: t->design and t->u. */
static fds_status read_block(const ls *l, scratch *t, unsigned worker, size_t first, size_t count,
                             size_t column, size_t width, fds_error *err) {
    fds_design_rows(&l->design, first, count, t->counts, t->design);
    return fds_design_values(&l->design, l->rows, l->params->control, l->choice.control, worker,
                             first, count, column, width, width, t->lines, t->u, err);
}

/* b = D'Wu with mild weights, rest = Z'Wu with the kernel's. */
static fds_status sum_cases(const ls *l, scratch *t, unsigned worker, size_t column, size_t width,
                            fds_error *err) {
    const fds_design *d = &l->design;
    int n = (int)d->players, f = (int)d->features, w = (int)width;
    memset(t->b, 0, d->features * width * sizeof *t->b);
    memset(t->rest, 0, d->players * width * sizeof *t->rest);
    for (size_t first = 0; first < d->cases; first += FDS_LS_BLOCK) {
        size_t count = FDS_MIN(d->cases - first, (size_t)FDS_LS_BLOCK);
        FDS_TRY(read_block(l, t, worker, first, count, column, width, err));
        fds_weigh(t->u, count, width, d->kernel + first, t->uw);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, w, (int)count, 1, t->design, f,
                    t->uw, w, 1, t->rest, w);
        if (!l->with_fit)
            continue;
        fds_weigh(t->u, count, width, d->mild + first, t->uw);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, f, w, (int)count, 1, t->design, f,
                    t->uw, w, 1, t->b, w);
    }
    return FDS_OK;
}

/* total = v(1) - v(0), less the surrogate's part. */
static fds_status read_total(const ls *l, scratch *t, unsigned worker, size_t column, size_t width,
                             fds_error *err) {
    const fds_rows *games[] = {l->rows, l->choice.control != 0 ? l->params->control : NULL};
    double share[] = {1, -l->choice.control};
    memset(t->total, 0, width * sizeof *t->total);
    for (int g = 0; g < 2 && games[g]; g++) {
        for (size_t row = 0; row < 2; row++) {
            FDS_TRY(games[g]->read(games[g]->context, worker, row, column, width, t->lines, err));
            for (size_t c = 0; c < width; c++)
                t->total[c] += (row ? share[g] : -share[g]) * t->lines[c];
        }
    }
    return FDS_OK;
}

/* phi, and theta such that D theta is what the fit and the rest say of the cases. */
static void solve(const ls *l, scratch *t, size_t width) {
    const fds_design *d = &l->design;
    int n = (int)d->players, f = (int)d->features, w = (int)width;
    size_t size = d->players * width;
    if (l->with_fit) {
        fds_solver_apply(&l->fit, t->b, t->total, width, t->theta);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, w, f, -1, l->gram.cross, f,
                    t->theta, w, 1, t->rest, w);
    }
    fds_solver_apply(&l->rest, t->rest, l->with_fit ? NULL : t->total, width, t->phi);
    if (!l->with_fit) {
        memcpy(t->theta, t->phi, size * sizeof *t->phi);
        return;
    }
    memcpy(t->work, t->phi, size * sizeof *t->phi);
    add_values_of_fit(d, t->theta, width, t->phi);
    for (size_t i = 0; i < size; i++)
        t->theta[i] += t->work[i];
}

/* Leaving case i out changes the values by its influence times e / (1 - leverage): the sum of the
 * squares, less for sizes of which few coalitions are unseen, is the jackknife's variance. */
static fds_status sum_errors(const ls *l, scratch *t, unsigned worker, size_t column, size_t width,
                             fds_error *err) {
    const fds_design *d = &l->design;
    int n = (int)d->players, f = (int)d->features, w = (int)width;
    memset(t->var, 0, d->players * width * sizeof *t->var);
    for (size_t first = 0; first < d->cases; first += FDS_LS_BLOCK) {
        size_t count = FDS_MIN(d->cases - first, (size_t)FDS_LS_BLOCK);
        int b = (int)count;
        FDS_TRY(read_block(l, t, worker, first, count, column, width, err));
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, b, w, f, -1, t->design, f, t->theta,
                    w, 1, t->u, w);
        for (size_t i = 0; i < count; i++) {
            /* shrinkage of both fits is never so weak that one case is all that a value rests on */
            double rest = FDS_MAX(1 - l->leverage[first + i], 0.1);
            double share = d->unseen[first + i] / (rest * rest);
            for (size_t c = 0; c < width; c++)
                t->u[i * width + c] *= t->u[i * width + c] * share;
        }
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, b, n, n, 1, t->design, f, l->rest.q,
                    n, 0, t->influence, n);
        fds_weigh(t->influence, count, d->players, d->kernel + first, t->influence);
        if (l->with_fit) {
            for (size_t i = 0; i < count; i++)
                cblas_dscal(f, d->mild[first + i], t->design + i * d->features, 1);
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, b, n, f, 1, t->design, f,
                        l->from_fit, f, 1, t->influence, n);
        }
        for (size_t i = 0; i < count * d->players; i++)
            t->influence[i] *= t->influence[i];
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, w, b, 1, t->influence, n, t->u, w,
                    1, t->var, w);
    }
    return FDS_OK;
}

/* Adds the square of what shrinking is likely to lose. The deviations found, squared, are on
 * average over a group kept^2 of the true ones, and their variance. */
static void add_bias(const ls *l, scratch *t, size_t width) {
    const fds_design *d = &l->design;
    size_t size = d->players * width;
    int n = (int)d->players, w = (int)width;
    double *found = t->work, *variance = t->rest; /* t->rest is no longer needed */
    fds_design_group_means(d, t->theta, width, found);
    for (size_t i = 0; i < size; i++) {
        double off = t->theta[i] - found[i];
        t->rest[i] = off * off;
    }
    fds_design_group_means(d, t->rest, width, found);
    fds_design_group_means(d, t->var, width, variance);
    for (size_t i = 0; i < size; i++) {
        double kept = l->kept[i / width];
        found[i] = FDS_MAX(found[i], (found[i] - variance[i]) / (kept * kept));
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, w, n, 1, l->bias, n, found, w, 1,
                t->var, w);
}

/* The surrogate's share is added again, and the values sum to v(1) - v(0) but for rounding. */
static void store(const ls *l, scratch *t, size_t column, size_t width) {
    size_t n = l->design.players, columns = l->rows->columns;
    for (size_t c = 0; c < width; c++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += t->phi[i * width + c];
        double even = (t->total[c] - sum) / (double)n;
        for (size_t i = 0; i < n; i++) {
            size_t to = i * columns + column + c;
            l->values[to] = t->phi[i * width + c] + even;
            if (l->choice.control != 0)
                l->values[to] += l->choice.control * l->params->control_values[to];
            if (l->errors)
                l->errors[to] = sqrt(t->var[i * width + c]);
        }
    }
}

static fds_status solve_chunk(void *context, size_t job, unsigned worker, fds_error *err) {
    ls *l = context;
    scratch *t = &l->scratch[worker];
    size_t column = job * FDS_LS_CHUNK;
    size_t width = FDS_MIN(l->rows->columns - column, (size_t)FDS_LS_CHUNK);
    FDS_TRY(read_total(l, t, worker, column, width, err));
    FDS_TRY(sum_cases(l, t, worker, column, width, err));
    solve(l, t, width);
    if (l->errors) {
        FDS_TRY(sum_errors(l, t, worker, column, width, err));
        add_bias(l, t, width);
    }
    store(l, t, column, width);
    return FDS_OK;
}

/* ---- all ---- */

uint64_t fds_least_squares_memory(const fds_plan *plan, const fds_ls_params *params, size_t columns,
                                  unsigned threads) {
    bool with_fit = params->adjust == FDS_COUNTS;
    uint64_t n = plan->players, cases = plan->rows / (plan->is_paired ? 2 : 1);
    size_t f = 0;
    if (fds_design_count(plan, groups_of(plan, params), with_fit, &f, NULL) != FDS_OK)
        return UINT64_MAX;
    uint64_t width = FDS_MIN(columns, (size_t)FDS_LS_CHUNK);
    uint64_t sample = FDS_MIN(columns, (size_t)FDS_LS_SAMPLE);
    uint64_t left_out = FDS_MIN(cases, (uint64_t)FDS_LS_LEFT_OUT);
    uint64_t workers = threads ? threads : fds_processors();
    /* gram matrices and, once chosen, solvers, influences and bias */
    uint64_t fixed = 2 * n * n + (with_fit ? 2 * f * f + 2 * n * f : 0) + 4 * n * n;
    /* a candidate while choosing; a chunk of columns while solving */
    uint64_t choosing = f * f + (f + left_out) * sample + f * left_out;
    uint64_t solving = FDS_LS_BLOCK * (f + 2 * width + n) + (2 * f + 4 * n) * width;
    uint64_t sums = (f + n + left_out) * sample * (params->control ? 2 : 1) + left_out * f;
    return sizeof(double) * (fixed + sums + workers * FDS_MAX(choosing, solving) + 4 * cases);
}

static fds_status run(ls *l, const fds_plan *plan, unsigned threads, const fds_events *events,
                      fds_error *err) {
    size_t columns = l->rows->columns, jobs = (columns + FDS_LS_CHUNK - 1) / FDS_LS_CHUNK;
    unsigned workers = fds_pool_workers(threads, jobs);
    /* OpenBLAS would start threads of its own beside ours, and its sums depend on their number */
    openblas_set_num_threads(1);
    FDS_TRY(prepare(l, plan, threads, err));
    l->scratch = fds_alloc_zero(workers, sizeof *l->scratch);
    if (!l->scratch)
        return fds_fail_nomem(err, workers * sizeof *l->scratch);
    fds_status status = FDS_OK;
    for (unsigned i = 0; i < workers && status == FDS_OK; i++)
        status =
            scratch_alloc(&l->design, FDS_MIN(columns, (size_t)FDS_LS_CHUNK), &l->scratch[i], err);
    if (status == FDS_OK && l->errors) {
        status = make_leverage(l, &l->scratch[0], err);
        if (status == FDS_OK)
            status = make_bias(l, err);
        if (status == FDS_OK && l->with_fit)
            status = make_influence(l, err);
    }
    if (status == FDS_OK)
        status =
            fds_pool_run(threads, jobs, solve_chunk, l, "least squares", "blocks", events, err);
    for (unsigned i = 0; i < workers; i++)
        scratch_free(&l->scratch[i]);
    return status;
}

/* A single player gets all. */
static fds_status one_player(const fds_rows *rows, double *values, double *errors, fds_error *err) {
    double empty[FDS_LS_SAMPLE];
    for (size_t first = 0; first < rows->columns; first += FDS_LS_SAMPLE) {
        size_t count = FDS_MIN(rows->columns - first, (size_t)FDS_LS_SAMPLE);
        FDS_TRY(rows->read(rows->context, 0, 0, first, count, empty, err));
        FDS_TRY(rows->read(rows->context, 0, 1, first, count, values + first, err));
        for (size_t c = 0; c < count; c++)
            values[first + c] -= empty[c];
    }
    if (errors)
        memset(errors, 0, rows->columns * sizeof *errors);
    return FDS_OK;
}

fds_status fds_least_squares(const fds_plan *plan, const fds_rows *rows,
                             const fds_ls_params *params, unsigned threads, double *values,
                             double *errors, fds_ls_report *report, const fds_events *events,
                             fds_error *err) {
    FDS_TRY(fds_least_squares_check(plan, params, err));
    FDS_TRY(check_rows(rows, params, err));
    ls l = {.rows = rows, .params = params, .values = values, .errors = errors};
    fds_status status = plan->players == 1 ? one_player(rows, values, errors, err)
                                           : run(&l, plan, threads, events, err);
    if (report)
        *report = (fds_ls_report){.cases = l.design.cases,
                                  .features = l.design.features,
                                  .ridge = FDS_MAX(l.choice.fit.ridge, l.choice.rest.ridge),
                                  .shrink = l.with_fit ? l.choice.fit.shrink : l.choice.rest.shrink,
                                  .shrink_rest = l.with_fit ? l.choice.rest.shrink : 0,
                                  .control = l.choice.control,
                                  .explained = l.choice.explained};
    fds_design_free(&l.design);
    fds_gram_free(&l.gram);
    fds_solver_free(&l.fit);
    fds_solver_free(&l.rest);
    fds_free(l.from_fit);
    fds_free(l.bias);
    fds_free(l.kept);
    fds_free(l.leverage);
    fds_free(l.scratch);
    return status;
}
