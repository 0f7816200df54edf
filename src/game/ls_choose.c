/* SPDX-License-Identifier: Apache-2.0
 * How strongly to shrink, and how much of a surrogate game to take off: whatever foretells
 * coalitions best that the fit has not seen.
 *
 * Each case is left out in turn, which for least squares needs no second fit: its error is then
 * e / (1 - leverage). Errors count by how many coalitions like the case have not been seen. A
 * sample of columns and of pairs is enough for the choice. */
#include "ls.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

static const double fit_strengths[] = {0, 1, 2, 5, 10, 20, 40, 80, 160, 320, 1280};
static const double rest_strengths[] = {0, 10, 30, 100, 300, 1000};
static const double ridge_strengths[] = {0.01, 0.1, 1, 3, 10, 30, 100};
enum { RUNS = 16, RUN = FDS__LS_SAMPLE / RUNS, MOST_STRENGTHS = 11 };

/* What one of the two games, the one to be valued and its surrogate, shows of itself. */
typedef struct {
    double *mild;   /* (F, C): D' W U, mild weights */
    double *kernel; /* (n, C): Z' W U, kernel weights */
    double *kept;   /* (left_out, C): U of the first pairs */
    double *total;  /* (C): v(1) - v(0) */
} sums;

/* One of the two fits: of g, or of the rest. */
typedef struct {
    size_t size;
    const double *gram, *weights, *kept, *total; /* total NULL: 0 */
    const double *b;
} stage;

typedef struct {
    const fds__design *design;
    size_t columns, left_out;
    const double *rows; /* (left_out, F) */
    const stage *stage;
    const fds__penalty *candidates;
    double scores[MOST_STRENGTHS];
} search;

/* ---- the sample ---- */

static void sums_free(sums *s) {
    fds__free(s->mild);
    fds__free(s->kernel);
    fds__free(s->kept);
    fds__free(s->total);
}

static fds_status sums_alloc(const search *s, sums *out, fds_error *err) {
    const fds__design *d = s->design;
    out->mild = fds__alloc_zero(d->features * s->columns, sizeof(double));
    out->kernel = fds__alloc_zero(d->players * s->columns, sizeof(double));
    out->kept = fds__alloc_zero(s->left_out * s->columns, sizeof(double));
    out->total = fds__alloc_zero(s->columns, sizeof(double));
    if (out->mild && out->kernel && out->kept && out->total)
        return FDS_OK;
    return fds__fail_nomem(err, (d->features + s->left_out) * s->columns * sizeof(double));
}

/* Columns of the sample are runs at even distances; all where there are not many. */
static fds_status read_sample(const search *s, const fds_rows *rows, size_t first, size_t count,
                              double *scratch, double *u, fds_error *err) {
    if (s->columns == rows->columns)
        return fds__design_values(s->design, rows, NULL, 0, 0, first, count, 0, s->columns,
                                  s->columns, scratch, u, err);
    for (size_t r = 0; r < RUNS; r++)
        TRY(fds__design_values(s->design, rows, NULL, 0, 0, first, count,
                               r * (rows->columns - RUN) / (RUNS - 1), RUN, s->columns, scratch,
                               u + r * RUN, err));
    return FDS_OK;
}

static fds_status read_totals(const search *s, const fds_rows *rows, double *total,
                              fds_error *err) {
    size_t runs = s->columns == rows->columns ? 1 : RUNS, run = s->columns / runs;
    double empty[FDS__LS_SAMPLE];
    for (size_t r = 0; r < runs; r++) {
        size_t at = runs == 1 ? 0 : r * (rows->columns - RUN) / (RUNS - 1);
        TRY(rows->read(rows->context, 0, 0, at, run, empty, err));
        TRY(rows->read(rows->context, 0, 1, at, run, total + r * run, err));
        for (size_t c = 0; c < run; c++)
            total[r * run + c] -= empty[c];
    }
    return FDS_OK;
}

static fds_status sums_read(const search *s, const fds_rows *rows, sums *out, fds_error *err) {
    const fds__design *d = s->design;
    int n = (int)d->players, f = (int)d->features, w = (int)s->columns;
    size_t block = FDS__LS_BLOCK * s->columns;
    double *u = fds__alloc_zero(2 * block + 3 * s->columns, sizeof *u);
    double *design = fds__alloc_zero(FDS__LS_BLOCK * d->features, sizeof *design);
    uint32_t *counts = fds__alloc_zero(d->group_count, sizeof *counts);
    double start_s = fds__now_s();
    fds_status status = FDS_OK;
    if (!u || !design || !counts)
        status = fds__fail_nomem(err, 2 * block * sizeof *u);
    if (status == FDS_OK)
        status = read_totals(s, rows, out->total, err);
    for (size_t first = 0; status == FDS_OK && first < d->pairs; first += FDS__LS_BLOCK) {
        size_t count = MIN(d->pairs - first, (size_t)FDS__LS_BLOCK);
        double *weighted = u + block;
        status = read_sample(s, rows, first, count, u + 2 * block, u, err);
        if (status != FDS_OK)
            break;
        if (first < s->left_out)
            memcpy(out->kept + first * s->columns, u,
                   MIN(count, s->left_out - first) * s->columns * sizeof *u);
        fds__design_rows(d, first, count, counts, design);
        fds__weigh(u, count, s->columns, d->kernel + first, weighted);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, w, (int)count, 1, design, f,
                    weighted, w, 1, out->kernel, w);
        fds__weigh(u, count, s->columns, d->mild + first, weighted);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, f, w, (int)count, 1, design, f,
                    weighted, w, 1, out->mild, w);
        status = fds__design_tell(d, "normal equations", first + count, start_s, err);
    }
    fds__free(u);
    fds__free(design);
    fds__free(counts);
    return status;
}

/* ---- errors of pairs left out ---- */

/* errors (left_out, C) of a stage: U - D theta, where is_left_out as if the fit had not seen the
 * case. scratch: (left_out, size). */
static void stage_errors(const search *s, const stage *g, const fds__solver *solver,
                         const double *theta, bool is_left_out, double *scratch, double *leverage,
                         double *errors) {
    int w = (int)s->columns, f = (int)s->design->features;
    memcpy(errors, g->kept, s->left_out * s->columns * sizeof *errors);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)s->left_out, w, (int)g->size, -1,
                s->rows, f, theta, w, 1, errors, w);
    if (!is_left_out)
        return;
    fds__solver_leverage(solver, s->rows, s->left_out, s->design->features, g->weights, scratch,
                         leverage);
    for (size_t i = 0; i < s->left_out; i++)
        for (size_t c = 0; c < s->columns; c++)
            errors[i * s->columns + c] /= MAX(1 - leverage[i], 1e-6);
}

/* Sum of w a b over columns and pairs, as far as there are others like them. */
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

/* Errors of a penalty; *theta (size, C) and *errors (left_out, C) are the caller's to free. */
static fds_status try_penalty(const search *s, const stage *g, fds__penalty penalty,
                              bool is_left_out, double **theta, double **errors, fds_error *err) {
    fds__solver solver;
    TRY(fds__solver_create(s->design, g->gram, g->size, penalty, &solver, err));
    size_t size = g->size * (s->columns + s->left_out) + s->left_out;
    *theta = fds__alloc_zero(size, sizeof **theta);
    *errors = fds__alloc_zero(s->left_out * s->columns, sizeof **errors);
    fds_status status = *theta && *errors ? FDS_OK : fds__fail_nomem(err, size * sizeof **theta);
    if (status == FDS_OK) {
        double *scratch = *theta + g->size * s->columns;
        fds__solver_apply(&solver, g->b, g->total, s->columns, *theta);
        stage_errors(s, g, &solver, *theta, is_left_out, scratch, scratch + g->size * s->left_out,
                     *errors);
    }
    fds__solver_free(&solver);
    return status;
}

static fds_status score_candidate(void *context, size_t i, unsigned worker, fds_error *err) {
    search *s = context;
    double *theta = NULL, *errors = NULL;
    (void)worker;
    fds_status status = try_penalty(s, s->stage, s->candidates[i], true, &theta, &errors, err);
    if (status == FDS_OK)
        s->scores[i] = inner(s, s->stage->weights, errors, errors);
    if (status == FDS_ERR_DIVERGED) { /* too weak to make the solution unique: not a candidate */
        s->scores[i] = INFINITY;
        status = FDS_OK;
    }
    fds__free(theta);
    fds__free(errors);
    return status;
}

/* The best of several penalties for a stage; INFINITY in *score when none can be used. */
static fds_status choose(search *s, const stage *g, const fds__penalty *candidates, size_t count,
                         unsigned threads, fds__penalty *best, double *score, fds_error *err) {
    s->stage = g;
    s->candidates = candidates;
    TRY(fds__pool_run(threads, count, score_candidate, s, "shrinkage", "strengths",
                      s->design->events, err));
    size_t least = 0;
    for (size_t i = 1; i < count; i++)
        if (s->scores[i] < s->scores[least])
            least = i;
    *best = candidates[least];
    *score = s->scores[least];
    return FDS_OK;
}

/* ---- the choices ---- */

/* Few coalitions: least squares would follow their every accident. Where they are all that there
 * are, nothing is accident. */
static bool are_few(const fds__design *d) {
    bool are_groups = d->plan->sampler == FDS_SAMPLER_GFDS_PLUS;
    size_t count = fds_plan_rows(d->plan) - 2;
    size_t n = are_groups ? fds_groups_count(d->plan->groups) : d->players;
    bool are_all =
        d->plan->sampler == FDS_SAMPLER_LEVERAGE && n < 32 && count == ((size_t)1 << n) - 2;
    return count < 3 * n && !are_all;
}

static size_t list_candidates(const fds__design *d, fds_adjust adjust, fds__penalty *list) {
    size_t count = 0;
    if (adjust == FDS_ADJUST_NONE) {
        /* Where groups take part as wholes, their members are told apart by nothing: share evenly.
         * For GFDS+ any strength does that, and one like the sums' own keeps all digits. */
        double even = d->plan->groups ? (double)d->pairs : 0;
        if (d->plan->sampler == FDS_SAMPLER_GFDS)
            even *= 1e-9;
        if (!are_few(d))
            list[count++] = (fds__penalty){.shrink = even};
        for (size_t i = 0; are_few(d) && i < sizeof ridge_strengths / sizeof *ridge_strengths; i++)
            list[count++] = (fds__penalty){.ridge = ridge_strengths[i], .shrink = even};
        return count;
    }
    for (size_t i = 0; i < sizeof fit_strengths / sizeof *fit_strengths; i++)
        list[count++] = (fds__penalty){.shrink = fit_strengths[i]};
    return count;
}

/* Chooses for a stage; when even the strongest shrinkage leaves the solution open, adds a ridge. */
static fds_status choose_or_ridge(search *s, const stage *g, const fds__penalty *list, size_t count,
                                  unsigned threads, fds__penalty *best, double *score,
                                  fds_error *err) {
    TRY(choose(s, g, list, count, threads, best, score, err));
    if (!isinf(*score))
        return FDS_OK;
    fds__penalty ridged[MOST_STRENGTHS];
    for (size_t i = 0; i < count; i++)
        ridged[i] = (fds__penalty){.ridge = 1, .shrink = list[i].shrink};
    return choose(s, g, ridged, count, threads, best, score, err);
}

/* The share of the surrogate which, taken off, leaves the smallest errors: those of v and of the
 * surrogate are both linear in what they are errors of. */
static fds_status choose_control(const search *s, const stage *g, const sums *game,
                                 const sums *surrogate, fds__penalty penalty, double *share,
                                 fds_error *err) {
    double *theta[2] = {NULL}, *errors[2] = {NULL};
    const sums *of[2] = {game, surrogate};
    fds_status status = FDS_OK;
    for (int i = 0; i < 2 && status == FDS_OK; i++) {
        stage one = *g;
        one.kept = of[i]->kept;
        one.total = of[i]->total;
        one.b = g->b == game->mild ? of[i]->mild : of[i]->kernel;
        status = try_penalty(s, &one, penalty, true, &theta[i], &errors[i], err);
    }
    if (status == FDS_OK) {
        double own = inner(s, g->weights, errors[1], errors[1]);
        double all = inner(s, g->weights, surrogate->kept, surrogate->kept);
        /* errors of a surrogate that least squares foretell in full are rounding: of no use */
        *share = own > 1e-20 * all ? inner(s, g->weights, errors[0], errors[1]) / own : 0;
    }
    for (int i = 0; i < 2; i++) {
        fds__free(theta[i]);
        fds__free(errors[i]);
    }
    return status;
}

static void subtract(double *a, const double *b, double share, size_t count) {
    for (size_t i = 0; i < count; i++)
        a[i] -= share * b[i];
}

static void take_off(const search *s, sums *game, const sums *surrogate, double share) {
    subtract(game->mild, surrogate->mild, share, s->design->features * s->columns);
    subtract(game->kernel, surrogate->kernel, share, s->design->players * s->columns);
    subtract(game->kept, surrogate->kept, share, s->left_out * s->columns);
    subtract(game->total, surrogate->total, share, s->columns);
}

/* How strongly to shrink what the fitted game leaves. */
static fds_status choose_rest(search *s, const fds__gram *gram, sums *game, unsigned threads,
                              const stage *fit, fds__ls_choice *out, fds_error *err) {
    const fds__design *d = s->design;
    int n = (int)d->players, f = (int)d->features, w = (int)s->columns;
    fds__penalty list[MOST_STRENGTHS];
    size_t count = sizeof rest_strengths / sizeof *rest_strengths;
    double *theta = NULL, *errors = NULL, score;
    for (size_t i = 0; i < count; i++)
        list[i] = (fds__penalty){.ridge = are_few(d), .shrink = rest_strengths[i]};
    fds_status status = try_penalty(s, fit, out->fit, false, &theta, &errors, err);
    if (status == FDS_OK) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, w, f, -1, gram->cross, f, theta,
                    w, 1, game->kernel, w);
        stage rest = {.size = d->players,
                      .gram = gram->kernel,
                      .weights = d->kernel,
                      .kept = errors,
                      .b = game->kernel};
        status = choose_or_ridge(s, &rest, list, count, threads, &out->rest, &score, err);
    }
    fds__free(theta);
    fds__free(errors);
    return status;
}

/* The error that an even division of v(1) - v(0) makes: what explaining is measured by. */
static double even_error(const search *s, const stage *g) {
    double sum = 0;
    for (size_t i = 0; i < s->left_out; i++) {
        double share = 0, row = 0;
        for (size_t j = 0; j < s->design->players; j++)
            share += s->rows[i * s->design->features + j] / (double)s->design->players;
        for (size_t c = 0; c < s->columns; c++) {
            double e = g->kept[i * s->columns + c] - share * g->total[c];
            row += e * e;
        }
        sum += g->weights[i] * s->design->unseen[i] * row;
    }
    return sum;
}

static fds_status choose_all(search *s, const fds__gram *gram, const fds_ls_params *params,
                             sums *game, const sums *surrogate, unsigned threads,
                             fds__ls_choice *out, fds_error *err) {
    const fds__design *d = s->design;
    bool with_fit = gram->mild;
    stage first = {.size = with_fit ? d->features : d->players,
                   .gram = with_fit ? gram->mild : gram->kernel,
                   .weights = with_fit ? d->mild : d->kernel,
                   .kept = game->kept,
                   .total = game->total,
                   .b = with_fit ? game->mild : game->kernel};
    fds__penalty list[MOST_STRENGTHS], *chosen = with_fit ? &out->fit : &out->rest;
    double score, even = even_error(s, &first);
    size_t count = list_candidates(d, params->adjust, list);
    TRY(choose_or_ridge(s, &first, list, count, threads, chosen, &score, err));
    if (surrogate) {
        TRY(choose_control(s, &first, game, surrogate, *chosen, &out->control, err));
        take_off(s, game, surrogate, out->control);
        TRY(choose(s, &first, chosen, 1, threads, chosen, &score, err));
    }
    out->explained = even > 0 ? 1 - score / even : 1;
    return with_fit ? choose_rest(s, gram, game, threads, &first, out, err) : FDS_OK;
}

fds_status fds__ls_choose(const fds__design *d, const fds__gram *gram, const fds_rows *rows,
                          const fds_ls_params *params, unsigned threads, fds__ls_choice *out,
                          fds_error *err) {
    search s = {.design = d,
                .columns = MIN(rows->columns, (size_t)FDS__LS_SAMPLE),
                .left_out = MIN(d->pairs, (size_t)FDS__LS_LEFT_OUT)};
    double *design = fds__alloc_zero(s.left_out * d->features, sizeof *design);
    uint32_t *counts = fds__alloc_zero(d->group_count, sizeof *counts);
    sums game = {0}, surrogate = {0};
    fds_status status = FDS_OK;
    *out = (fds__ls_choice){0};
    if (!design || !counts)
        status = fds__fail_nomem(err, s.left_out * d->features * sizeof *design);
    if (status == FDS_OK) {
        fds__design_rows(d, 0, s.left_out, counts, design);
        s.rows = design;
        status = sums_alloc(&s, &game, err);
    }
    if (status == FDS_OK)
        status = sums_read(&s, rows, &game, err);
    if (status == FDS_OK && params->control)
        status = sums_alloc(&s, &surrogate, err);
    if (status == FDS_OK && params->control)
        status = sums_read(&s, params->control, &surrogate, err);
    if (status == FDS_OK)
        status = choose_all(&s, gram, params, &game, params->control ? &surrogate : NULL, threads,
                            out, err);
    sums_free(&game);
    sums_free(&surrogate);
    fds__free(design);
    fds__free(counts);
    return status;
}
