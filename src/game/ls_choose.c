/* SPDX-License-Identifier: Apache-2.0
 * How strongly to shrink, and which share of a surrogate game to subtract: the choice that best
 * predicts coalitions that the fit has not seen. What the fitted game leaves: ls_rest.c.
 *
 * Each pair is left out in turn. Least squares need no second fit for that: the pair's error is
 * then e / (1 - leverage). It counts by the share of coalitions of its size that are unseen. A
 * sample of columns and of pairs is enough for the choice. */
#include "ls.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

static const double fit_strengths[] = {0, 1, 2, 5, 10, 20, 40, 80, 160, 320, 1280};
static const double ridge_strengths[] = {0.01, 0.1, 1, 3, 10, 30, 100};
enum { RUNS = 16, RUN = FDS__LS_SAMPLE / RUNS, MOST_STRENGTHS = FDS__LS_CANDIDATES };

/* Errors of left-out pairs hardly depend on the shrinkage of the fit, but the bias of the greatest
 * values does: the weakest shrinkage is taken whose error is at most this many times the least.
 * With few coalitions noise is the greater danger, and the shrinkage of the least error is taken. */
double fds__ls_tolerance(const fds__design *d, fds_adjust adjust) {
    return adjust == FDS_ADJUST_NONE || fds__ls_are_few(d) ? 1 : 1.25;
}

/* Sums over the pairs of a game or of its surrogate, in one allocation. */
typedef struct {
    double *mild;   /* (F, C): D' W U, mild weights; the allocation begins here */
    double *kernel; /* (n, C): Z' W U, kernel weights */
    double *kept;   /* (left_out, C): U of the first pairs */
    double *total;  /* (C): v(1) - v(0) */
} sums;

/* What is fitted first: g or, without one, the values. */
typedef struct {
    size_t size;
    const double *gram, *weights, *kept, *total;
    const double *b;
} stage;

typedef struct {
    const fds__design *design;
    size_t columns, left_out;
    const double *rows; /* (left_out, F) */
    /* where there are several strengths to choose from: */
    const stage *stage;
    const fds__path *path;
    double strengths[MOST_STRENGTHS], scores[MOST_STRENGTHS];
    double *turned, *b; /* (size, left_out), (size, C): rows and stage->b, turned and reduced */
} search;

/* ---- the sample ---- */

/* The columns of the sample are runs at even distances, or one run where there are few columns. */
static size_t run_count(const search *s, const fds_rows *rows) {
    return s->columns == rows->columns ? 1 : RUNS;
}

static size_t run_start(const search *s, const fds_rows *rows, size_t run) {
    return s->columns == rows->columns ? 0 : run * (rows->columns - RUN) / (RUNS - 1);
}

static fds_status read_sample(const search *s, const fds_rows *rows, size_t first, size_t count,
                              double *scratch, double *u, fds_error *err) {
    size_t width = s->columns / run_count(s, rows);
    for (size_t r = 0; r < run_count(s, rows); r++)
        TRY(fds__design_values(s->design, rows, NULL, 0, 0, first, count, run_start(s, rows, r),
                               width, s->columns, scratch, u + r * width, err));
    return FDS_OK;
}

static fds_status read_totals(const search *s, const fds_rows *rows, double *total,
                              fds_error *err) {
    size_t width = s->columns / run_count(s, rows);
    double empty[FDS__LS_SAMPLE];
    for (size_t r = 0; r < run_count(s, rows); r++, total += width) {
        TRY(rows->read(rows->context, 0, 0, run_start(s, rows, r), width, empty, err));
        TRY(rows->read(rows->context, 0, 1, run_start(s, rows, r), width, total, err));
        for (size_t c = 0; c < width; c++)
            total[c] -= empty[c];
    }
    return FDS_OK;
}

/* The caller frees out->mild, even after a failure. */
static fds_status sums_read(const search *s, const fds_rows *rows, sums *out, fds_error *err) {
    const fds__design *d = s->design;
    const size_t columns = s->columns;
    const int n = (int)d->players, f = (int)d->features, w = (int)columns;
    const double start_s = fds__now_s();
    OWNED double *u = NULL, *weighted = NULL, *design = NULL, *scratch = NULL;
    TRY(NEW(u, FDS__LS_BLOCK * columns, err));
    TRY(NEW(weighted, FDS__LS_BLOCK * columns, err));
    TRY(NEW(design, FDS__LS_BLOCK * d->features, err));
    TRY(NEW(scratch, 3 * columns, err));
    TRY(NEW(out->mild, (d->features + d->players + s->left_out + 1) * columns, err));
    out->kernel = out->mild + d->features * columns;
    out->kept = out->kernel + d->players * columns;
    out->total = out->kept + s->left_out * columns;
    TRY(read_totals(s, rows, out->total, err));
    for (size_t first = 0; first < d->pairs; first += FDS__LS_BLOCK) {
        size_t count = MIN(d->pairs - first, (size_t)FDS__LS_BLOCK);
        TRY(read_sample(s, rows, first, count, scratch, u, err));
        if (first < s->left_out)
            memcpy(out->kept + first * columns, u,
                   MIN(count, s->left_out - first) * columns * sizeof *u);
        fds__design_rows(d, first, count, design);
        fds__weigh(u, count, columns, d->kernel + first, weighted);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, w, (int)count, 1, design, f,
                    weighted, w, 1, out->kernel, w);
        fds__weigh(u, count, columns, d->mild + first, weighted);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, f, w, (int)count, 1, design, f,
                    weighted, w, 1, out->mild, w);
        TRY(fds__design_report(d, "normal equations", first + count, start_s, err));
    }
    return FDS_OK;
}

/* ---- errors of pairs left out ---- */

/* errors (left_out, C) become those of a fit that had not seen the pair. */
static void leave_out(const search *s, const double *leverage, double *errors) {
    for (size_t i = 0; i < s->left_out; i++)
        for (size_t c = 0; c < s->columns; c++)
            errors[i * s->columns + c] /= MAX(1 - leverage[i], 1e-6);
}

/* errors (left_out, C) of a stage: U - D theta. */
static void stage_errors(const search *s, const stage *g, const double *theta, double *errors) {
    int w = (int)s->columns, f = (int)s->design->features;
    memcpy(errors, g->kept, s->left_out * s->columns * sizeof *errors);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)s->left_out, w, (int)g->size, -1,
                s->rows, f, theta, w, 1, errors, w);
}

/* Sum of w a b over columns and pairs, each pair times its share of unseen coalitions. */
static double inner(const search *s, const double *weights, const double *a, const double *b) {
    double sum = 0;
    for (size_t i = 0; i < s->left_out; i++) {
        double row = 0;
        for (size_t c = 0; c < s->columns; c++)
            row += a[i * s->columns + c] * b[i * s->columns + c];
        sum += weights[i] * s->design->unseen[i] * row;
    }
    return sum;
}

/* errors (left_out, C) of a solved stage, each pair left out. */
static fds_status solved_errors(const search *s, const stage *g, const fds__solver *solver,
                                double *errors, fds_error *err) {
    OWNED double *theta = NULL, *scratch = NULL, *leverage = NULL;
    TRY(NEW(theta, g->size * s->columns, err));
    TRY(NEW(scratch, g->size * s->left_out, err));
    TRY(NEW(leverage, s->left_out, err));
    fds__solver_apply(solver, g->b, g->total, s->columns, theta);
    stage_errors(s, g, theta, errors);
    fds__solver_leverage(solver, s->rows, s->left_out, s->design->features, g->weights, scratch,
                         leverage);
    leave_out(s, leverage, errors);
    return FDS_OK;
}

static fds_status score_solved(const search *s, const stage *g, const fds__solver *solver,
                               double *score, fds_error *err) {
    OWNED double *errors = NULL;
    TRY(NEW(errors, s->left_out * s->columns, err));
    TRY(solved_errors(s, g, solver, errors, err));
    *score = inner(s, g->weights, errors, errors);
    return FDS_OK;
}

static fds_status score_point(const search *s, const fds__path_point *point, double *score,
                              fds_error *err) {
    const stage *g = s->stage;
    const int w = (int)s->columns, pairs = (int)s->left_out;
    OWNED double *theta = NULL, *errors = NULL, *leverage = NULL;
    TRY(NEW(theta, g->size * s->columns, err));
    TRY(NEW(errors, s->left_out * s->columns, err));
    TRY(NEW(leverage, s->left_out, err));
    memcpy(theta, s->b, g->size * s->columns * sizeof *theta);
    memcpy(errors, g->kept, s->left_out * s->columns * sizeof *errors);
    fds__path_solve(point, g->total, s->columns, theta);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, pairs, w, (int)g->size, -1, s->turned,
                pairs, theta, w, 1, errors, w);
    fds__path_leverage(point, s->turned, s->left_out, g->weights, leverage);
    leave_out(s, leverage, errors);
    *score = inner(s, g->weights, errors, errors);
    return FDS_OK;
}

static fds_status score_strength(void *context, size_t i, unsigned worker, fds_error *err) {
    search *s = context;
    fds__path_point point;
    (void)worker;
    fds_status status = fds__path_at(s->path, s->strengths[i], &point, err);
    if (status == FDS_OK)
        status = score_point(s, &point, &s->scores[i], err);
    fds__path_point_free(&point);
    if (status != FDS_ERR_DIVERGED)
        return status;
    s->scores[i] = INFINITY; /* too weak to make the solution unique: not a candidate */
    return FDS_OK;
}

/* Scores of several penalties that differ in one strength. */
static fds_status score_all(search *s, const stage *g, const fds__penalty *candidates, size_t count,
                            unsigned threads, fds_error *err) {
    bool is_ridge = candidates[1].ridge != candidates[0].ridge;
    fds__penalty fixed = candidates[0];
    fds__path path = {0};
    *(is_ridge ? &fixed.ridge : &fixed.shrink) = 0;
    for (size_t i = 0; i < count; i++)
        s->strengths[i] = is_ridge ? candidates[i].ridge : candidates[i].shrink;
    OWNED double *turned = NULL, *b = NULL;
    TRY(NEW(turned, g->size * s->left_out, err));
    TRY(NEW(b, g->size * s->columns, err));
    s->stage = g;
    s->path = &path;
    s->turned = turned;
    s->b = b;
    fds_status status = fds__path_create(s->design, g->gram, g->size, fixed, is_ridge, &path, err);
    if (status == FDS_OK)
        status = fds__path_turn(&path, s->rows, 1, s->design->features, s->left_out, true, threads,
                                turned, err);
    if (status == FDS_OK)
        status = fds__path_turn(&path, g->b, s->columns, 1, s->columns, true, threads, b, err);
    if (status == FDS_OK)
        status = fds__pool_run(threads, count, score_strength, s, "shrinkage", "strengths",
                               s->design->events, err);
    fds__path_free(&path);
    return status;
}

/* The first of several penalties for a stage, the weakest first, whose error is at most worse times
 * the least, and its solver, which is zero before; INFINITY in *score when none can be used. */
static fds_status choose(search *s, const stage *g, const fds__penalty *candidates, size_t count,
                         double worse, unsigned threads, fds__penalty *best, fds__solver *solver,
                         double *score, fds_error *err) {
    if (count > 1)
        TRY(score_all(s, g, candidates, count, threads, err));
    else
        s->scores[0] = 0; /* there is no choice */
    for (;;) {
        double least = INFINITY;
        for (size_t i = 0; i < count; i++)
            least = MIN(least, s->scores[i]);
        size_t first = 0;
        while (s->scores[first] > worse * least)
            first++;
        *best = candidates[first];
        *score = s->scores[first];
        if (isinf(*score))
            return FDS_OK;
        fds_status status = fds__solver_create(s->design, g->gram, g->size, *best, solver, err);
        if (status == FDS_OK)
            return count > 1 ? FDS_OK : score_solved(s, g, solver, score, err);
        if (status != FDS_ERR_DIVERGED)
            return status;
        fds__solver_free(solver);
        *solver = (fds__solver){0};
        s->scores[first] = INFINITY;
    }
}

/* ---- the choices ---- */

bool fds__ls_are_few(const fds__design *d) {
    bool are_groups = d->plan->sampler == FDS_SAMPLER_GFDS_PLUS;
    size_t count = fds_plan_rows(d->plan) - 2;
    size_t n = are_groups ? fds_groups_count(d->plan->groups) : d->real;
    bool are_all =
        d->plan->sampler == FDS_SAMPLER_LEVERAGE && n < 32 && count == ((size_t)1 << n) - 2;
    return count < 3 * n && !are_all;
}

size_t fds__ls_candidates(const fds__design *d, fds_adjust adjust, fds__penalty *list) {
    size_t count = 0;
    if (adjust == FDS_ADJUST_NONE) {
        /* Where whole groups are players, nothing distinguishes their members: share evenly. For
         * GFDS+ any strength does that, and one as large as the sums keeps all digits. */
        double even = d->plan->groups ? (double)d->pairs : 0;
        if (d->plan->sampler == FDS_SAMPLER_GFDS)
            even *= 1e-9;
        if (!fds__ls_are_few(d))
            list[count++] = (fds__penalty){.shrink = even};
        for (size_t i = 0;
             fds__ls_are_few(d) && i < sizeof ridge_strengths / sizeof *ridge_strengths; i++)
            list[count++] = (fds__penalty){.ridge = ridge_strengths[i], .shrink = even};
        return count;
    }
    /* members of a group that is one player have nothing to shrink */
    bool is_fixed = adjust == FDS_ADJUST_CONTROL || d->wholes;
    size_t strengths = is_fixed ? 1 : sizeof fit_strengths / sizeof *fit_strengths;
    for (size_t i = 0; i < strengths; i++)
        list[count++] = (fds__penalty){.shrink = fit_strengths[i]};
    return count;
}

/* Chooses for a stage; adds a ridge when no shrinkage makes the solution unique. */
static fds_status choose_or_ridge(search *s, const stage *g, const fds__penalty *list, size_t count,
                                  double worse, unsigned threads, fds__penalty *best,
                                  fds__solver *solver, double *score, fds_error *err) {
    TRY(choose(s, g, list, count, worse, threads, best, solver, score, err));
    if (!isinf(*score))
        return FDS_OK;
    fds__penalty ridged[MOST_STRENGTHS];
    for (size_t i = 0; i < count; i++)
        ridged[i] = (fds__penalty){.ridge = 1, .shrink = list[i].shrink};
    return choose(s, g, ridged, count, worse, threads, best, solver, score, err);
}

/* The share of the surrogate whose subtraction leaves the smallest errors, which are linear in the
 * game. */
static fds_status choose_control(const search *s, const stage *g, const sums *game,
                                 const sums *surrogate, const fds__solver *solver, double *share,
                                 fds_error *err) {
    OWNED double *errors = NULL, *surrogate_errors = NULL;
    stage of_surrogate = *g;
    of_surrogate.kept = surrogate->kept;
    of_surrogate.total = surrogate->total;
    of_surrogate.b = g->b == game->mild ? surrogate->mild : surrogate->kernel;
    TRY(NEW(errors, s->left_out * s->columns, err));
    TRY(NEW(surrogate_errors, s->left_out * s->columns, err));
    TRY(solved_errors(s, g, solver, errors, err));
    TRY(solved_errors(s, &of_surrogate, solver, surrogate_errors, err));
    double own = inner(s, g->weights, surrogate_errors, surrogate_errors);
    double all = inner(s, g->weights, surrogate->kept, surrogate->kept);
    /* where least squares predict the surrogate exactly, its errors are rounding and of no use */
    *share = own > 1e-20 * all ? inner(s, g->weights, errors, surrogate_errors) / own : 0;
    return FDS_OK;
}

static void subtract(const search *s, sums *game, const sums *surrogate, double share) {
    size_t rows = s->design->features + s->design->players + s->left_out + 1;
    for (size_t i = 0; i < rows * s->columns; i++)
        game->mild[i] -= share * surrogate->mild[i];
}

/* How strongly to shrink what the fitted game leaves. */
static fds_status choose_rest(const search *s, fds__ls_parts *l, sums *game, unsigned threads,
                              const stage *fit, bool is_shrunk, fds_error *err) {
    const fds__design *d = s->design;
    const size_t n = d->players, f = d->features, w = s->columns;
    OWNED double *theta = NULL, *errors = NULL;
    TRY(NEW(theta, f * w, err));
    TRY(NEW(errors, s->left_out * w, err));
    fds__solver_apply(&l->fit, fit->b, fit->total, w, theta);
    stage_errors(s, fit, theta, errors);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)w, (int)f, -1,
                l->gram.cross, (int)f, theta, (int)w, 1, game->kernel, (int)w);
    const fds__ls_rest rest = {.design = d,
                               .fit = &l->fit,
                               .kernel = l->gram.kernel,
                               .cross = l->gram.cross,
                               .pairs = s->left_out,
                               .columns = w,
                               .rows = s->rows,
                               .errors = errors,
                               .b = game->kernel};
    return fds__ls_choose_rest(&rest, fds__ls_are_few(d), is_shrunk, threads, &l->choice.rest,
                               &l->rest, err);
}

/* The error of dividing v(1) - v(0) evenly, against which "explained" is measured. */
static double even_error(const search *s, const stage *g) {
    double sum = 0;
    for (size_t i = 0; i < s->left_out; i++) {
        double share = 0, row = 0;
        for (size_t j = 0; j < s->design->players; j++)
            share += s->rows[i * s->design->features + j] * fds__design_share(s->design, j) /
                     (double)s->design->real;
        for (size_t c = 0; c < s->columns; c++) {
            double e = g->kept[i * s->columns + c] - share * g->total[c];
            row += e * e;
        }
        sum += g->weights[i] * s->design->unseen[i] * row;
    }
    return sum;
}

static fds_status choose_all(search *s, fds__ls_parts *l, const fds_ls_params *params, sums *game,
                             const sums *surrogate, unsigned threads, fds_error *err) {
    const fds__design *d = s->design;
    fds__ls_choice *out = &l->choice;
    stage first = {.size = l->with_fit ? d->features : d->players,
                   .gram = l->with_fit ? l->gram.mild : l->gram.kernel,
                   .weights = l->with_fit ? d->mild : d->kernel,
                   .kept = game->kept,
                   .total = game->total,
                   .b = l->with_fit ? game->mild : game->kernel};
    fds__penalty list[MOST_STRENGTHS], *chosen = l->with_fit ? &out->fit : &out->rest;
    fds__solver *solver = l->with_fit ? &l->fit : &l->rest;
    double score, even = even_error(s, &first);
    size_t count = fds__ls_candidates(d, params->adjust, list);
    TRY(choose_or_ridge(s, &first, list, count, fds__ls_tolerance(d, params->adjust), threads,
                        chosen, solver, &score, err));
    if (!solver->q)
        return fds__solver_fail(err);
    if (surrogate) {
        TRY(choose_control(s, &first, game, surrogate, solver, &out->control, err));
        subtract(s, game, surrogate, out->control);
        TRY(score_solved(s, &first, solver, &score, err));
    }
    out->explained = even > 0 ? 1 - score / even : 1;
    return l->with_fit
               ? choose_rest(s, l, game, threads, &first, params->adjust != FDS_ADJUST_CONTROL, err)
               : FDS_OK;
}

fds_status fds__ls_choose(fds__ls_parts *l, const fds_rows *rows, const fds_ls_params *params,
                          unsigned threads, fds_error *err) {
    const fds__design *d = &l->design;
    search s = {.design = d,
                .columns = MIN(rows->columns, (size_t)FDS__LS_SAMPLE),
                .left_out = MIN(d->pairs, (size_t)FDS__LS_LEFT_OUT)};
    OWNED double *left_out = NULL;
    sums game = {0}, surrogate = {0};
    TRY(NEW(left_out, s.left_out * d->features, err));
    fds__design_rows(d, 0, s.left_out, left_out);
    s.rows = left_out;
    fds_status status = sums_read(&s, rows, &game, err);
    if (status == FDS_OK && params->control)
        status = sums_read(&s, params->control, &surrogate, err);
    if (status == FDS_OK)
        status =
            choose_all(&s, l, params, &game, params->control ? &surrogate : NULL, threads, err);
    fds__free(game.mild);
    fds__free(surrogate.mild);
    return status;
}
