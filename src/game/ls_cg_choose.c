/* SPDX-License-Identifier: Apache-2.0
 * How strongly to shrink least squares of many unknowns: the criteria of ls_choose.c and ls_rest.c, on
 * fewer columns.
 *
 * Strengths are tried from the strongest to the weakest, each from the solution of the one before: the
 * equations become harder to solve as the strength falls. The search ends where the criterion rises,
 * or where conjugate gradients no longer converge: there the coalitions do not determine the values.
 * Leverage and influence come from traces, as in ls_cg_errors.c. The risk of the rest is measured
 * from the weakest strength that converges, in place of none. */
#include "game/ls_cg.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum {
    PROBES = FDS__CG_PROBES,
    WIDTH = FDS__CG_SAMPLE + 2 * PROBES, /* the sample, probes r, and for the rest M r */
    RUNS = 4,
    MOST = FDS__LS_CANDIDATES
};
static const double tolerance = 1e-2;

/* A game on the sample. */
typedef struct {
    double *u;           /* (pairs, WIDTH) */
    double total[WIDTH]; /* v(1) - v(0) */
} sampled;

typedef struct {
    const fds__cg *many;
    size_t columns;       /* of the sample, at most FDS__CG_SAMPLE */
    fds__cg_stage *stage; /* that is chosen for */
    fds__cg_scratch *t;
    const sampled *game;
    fds__penalty list[MOST]; /* strongest first */
    size_t count, tried;
    double scores[MOST], worse;
    bool is_over;
    double *r;             /* (F, WIDTH): probes, in columns FDS__CG_SAMPLE .. */
    double *b, *x, *theta; /* (F, WIDTH): the right side, H^-1 b, and x with the constraint */
    double *y;             /* (pairs, WIDTH): errors */
    double *forms;         /* (2, pairs): of the stage; while the rest is chosen, of the fit too */
    double trace;          /* of H^-1 on the fine part; while the rest is chosen, of the fit's */
    double *solutions;     /* (MOST, n, WIDTH): of each strength of the rest */
} search;

/* ---- the sample ---- */

static fds_status read_sample(const search *s, const fds_rows *rows, sampled *out, fds_error *err) {
    const fds__design *d = s->many->d;
    size_t runs = s->columns == rows->columns ? 1 : RUNS, run = s->columns / runs;
    double scratch[3 * FDS__CG_SAMPLE], empty[FDS__CG_SAMPLE], start_s = fds__now_s();
    TRY(NEW(out->u, d->pairs * WIDTH, err));
    for (size_t r = 0; r < runs; r++) {
        size_t column = runs > 1 ? r * (rows->columns - run) / (runs - 1) : 0;
        TRY(rows->read(rows->context, 0, 0, column, run, empty, err));
        TRY(rows->read(rows->context, 0, 1, column, run, out->total + r * run, err));
        for (size_t c = 0; c < run; c++)
            out->total[r * run + c] -= empty[c];
        for (size_t first = 0; first < d->pairs; first += FDS__LS_BLOCK) {
            size_t count = MIN(d->pairs - first, (size_t)FDS__LS_BLOCK);
            TRY(fds__design_values(d, rows, NULL, 0, 0, first, count, column, run, WIDTH, scratch,
                                   out->u + first * WIDTH + r * run, err));
            TRY(fds__design_report(d, "sample", (r * d->pairs + first + count) / runs, start_s,
                                   err));
        }
    }
    return FDS_OK;
}

/* Sum over the sample of w a b, each pair times its share of unseen coalitions. */
static double inner(const search *s, const double *weights, const double *a, const double *b) {
    double sum = 0;
    for (size_t p = 0; p < s->many->d->pairs; p++)
        sum += weights[p] * s->many->d->unseen[p] *
               cblas_ddot((int)s->columns, a + p * WIDTH, 1, b + p * WIDTH, 1);
    return sum;
}

enum { R = FDS__CG_SAMPLE, MR = R + PROBES }; /* where the probes are */

/* fds__cg_ratio of columns a of x with columns b of y (n, WIDTH) */
static double ratio(const search *s, const double *x, size_t a, const double *y, size_t b) {
    return fds__cg_ratio(s->many->d->players, WIDTH, x + a, y + b, s->r + R);
}

/* ---- a stage by pairs left out ---- */

/* Solves the stage for b, from x as it is. */
static fds_status solve(search *s, fds__penalty penalty, fds_error *err) {
    TRY(fds__cg_stage_penalise(s->stage, penalty, 0, s->t, err));
    return fds__cg_solve(s->stage, s->b, WIDTH, tolerance, s->t, s->x, err);
}

static fds_status make_sides(search *s, const double *u, fds_error *err) {
    TRY(fds__cg_sum(s->stage, u, WIDTH, s->t, s->b, err));
    cblas_daxpy((int)(s->stage->size * WIDTH), 1, s->r, 1, s->b, 1);
    return FDS_OK;
}

/* theta and y = errors of the pairs; with is_left_out as if the fit had not seen the pair. */
static fds_status make_errors(search *s, const sampled *game, bool is_left_out, fds_error *err) {
    const fds__design *d = s->many->d;
    s->trace = ratio(s, s->x, R, s->r, R);
    memcpy(s->theta, s->x, s->stage->size * WIDTH * sizeof *s->x);
    fds__cg_constrain(s->stage, game->total, WIDTH, s->theta);
    TRY(fds__cg_predict(s->stage, s->theta, WIDTH, s->t, s->y, err));
    TRY(fds__cg_forms(s->stage, d->pairs, s->forms, err));
    for (size_t p = 0; p < d->pairs; p++) {
        double times = is_left_out ? 1 + fds__cg_weight(s->stage, s->trace, s->forms[p], p) : 1;
        for (size_t c = 0; c < WIDTH; c++)
            s->y[p * WIDTH + c] =
                c < s->columns ? times * (game->u[p * WIDTH + c] - s->y[p * WIDTH + c]) : 0;
    }
    return FDS_OK;
}

/* Solves with a strength; the search is over where it has no unique solution. One is needed. */
static fds_status attempt(search *s, size_t job, fds_error *err) {
    fds_error why = {0};
    s->stage->most = job ? FDS__CG_TRIAL : FDS__CG_FIRST;
    fds_status status = s->is_over ? FDS_ERR_DIVERGED : solve(s, s->list[job], &why);
    s->is_over = status == FDS_ERR_DIVERGED;
    return status == FDS_OK || s->is_over ? FDS_OK : fds__fail(err, status, "%s", why.text);
}

static double least_score(const search *s) {
    double least = INFINITY;
    for (size_t i = 0; i < s->tried; i++)
        least = MIN(least, s->scores[i]);
    return least;
}

static fds_status try_strength(void *context, size_t job, unsigned worker, fds_error *err) {
    search *s = context;
    (void)worker;
    TRY(attempt(s, job, err));
    if (s->is_over)
        return FDS_OK;
    TRY(make_errors(s, s->game, true, err));
    s->scores[job] = inner(s, s->stage->weights, s->y, s->y);
    s->tried = job + 1;
    s->is_over = s->scores[job] > s->worse * least_score(s);
    return FDS_OK;
}

/* Tries all strengths; adds a ridge when none makes the solution unique. */
static fds_status try_all(search *s, fds__job work, fds_error *err) {
    const size_t size = s->stage->size * WIDTH;
    s->tried = 0;
    for (int ridge = 0; ridge < 2 && s->tried == 0; ridge++) {
        s->is_over = false;
        memset(s->x, 0, size * sizeof *s->x);
        for (size_t i = 0; i < s->count; i++)
            s->list[i].ridge = MAX(s->list[i].ridge, ridge);
        TRY(fds__pool_run(1, s->count, work, s, "shrinkage", "strengths", s->many->d->events, err));
    }
    return s->tried ? FDS_OK
                    : fds__fail(err, FDS_ERR_DIVERGED,
                                "least squares: the coalitions do not distinguish all players; "
                                "use more coalitions");
}

/* The weakest strength that is at most so many times worse than the best. */
static fds_status choose(search *s, fds__penalty *best, double *score, fds_error *err) {
    TRY(make_sides(s, s->game->u, err));
    TRY(try_all(s, try_strength, err));
    size_t at = s->tried - 1;
    while (at > 0 && s->scores[at] > s->worse * least_score(s))
        at--;
    *best = s->list[at];
    *score = s->scores[at];
    return FDS_OK;
}

/* The strongest first. */
static void list_strengths(search *s, fds_adjust adjust) {
    fds__penalty list[MOST];
    s->count = fds__ls_candidates(s->many->d, adjust, list);
    for (size_t i = 0; i < s->count; i++)
        s->list[i] = list[s->count - 1 - i];
}

/* ---- what the fit leaves, by its risk ---- */

static double *solution(const search *s, size_t i) {
    return s->solutions + i * s->many->d->players * WIDTH;
}

static fds_status try_rest(void *context, size_t job, unsigned worker, fds_error *err) {
    search *s = context;
    (void)worker;
    TRY(attempt(s, job, err));
    if (s->is_over)
        return FDS_OK;
    double *to = solution(s, job);
    memcpy(to, s->x, s->many->d->players * WIDTH * sizeof *to);
    fds__cg_make_fine(s->many, WIDTH, s->t, to);
    s->tried = job + 1;
    return FDS_OK;
}

/* The influence of a pair is alpha v + beta u, on its fine part; v is strength times K M. */
typedef struct {
    double alpha, beta;
} shares;

/* trace_fit, trace: of M and K */
static shares shares_of(const search *s, const fds__cg_stage *fit, double trace_fit,
                        fds__penalty penalty, double trace, size_t p) {
    const size_t pairs = s->many->d->pairs;
    double by_rest = 1 + fds__cg_weight(s->stage, trace, s->forms[p], p);
    double by_fit = 1 + fds__cg_weight(fit, trace_fit, s->forms[pairs + p], p);
    return (shares){(penalty.ridge + penalty.shrink) * fit->weights[p] / (by_rest * by_fit),
                    s->stage->weights[p] / by_rest};
}

/* sum over pairs of squares times the product of the influence of strengths a and b */
static double noise(const search *s, const fds__cg_stage *fit, double trace_fit, size_t a, size_t b,
                    const double *squares) {
    const double *x = solution(s, a), *y = solution(s, b);
    double vv = ratio(s, x, MR, y, MR), vu = ratio(s, x, MR, y, R), uv = ratio(s, x, R, y, MR),
           uu = ratio(s, x, R, y, R), sum = 0;
    double trace_a = ratio(s, x, R, s->r, R), trace_b = ratio(s, y, R, s->r, R);
    for (size_t p = 0; p < s->many->d->pairs; p++) {
        shares of_a = shares_of(s, fit, trace_fit, s->list[a], trace_a, p),
               of_b = shares_of(s, fit, trace_fit, s->list[b], trace_b, p);
        sum += squares[p] * s->many->fine[p] *
               (of_a.alpha * of_b.alpha * vv + of_a.alpha * of_b.beta * vu +
                of_a.beta * of_b.alpha * uv + of_a.beta * of_b.beta * uu);
    }
    return sum;
}

/* squares (pairs): squared errors of the reference, strength number at, as if each pair were left
 * out; s->y has the errors of the fit */
static fds_status square_errors(search *s, const fds__cg_stage *fit, double trace_fit, size_t at,
                                double *squares, fds_error *err) {
    const double *x = solution(s, at);
    double trace = ratio(s, x, R, s->r, R);
    double v = ratio(s, x, MR, s->r, R), u = trace;
    TRY(fds__cg_predict(s->stage, x, WIDTH, s->t, s->t->y, err));
    for (size_t p = 0; p < s->many->d->pairs; p++) {
        double sum = 0;
        for (size_t c = 0; c < s->columns; c++) {
            double e = s->y[p * WIDTH + c] - s->t->y[p * WIDTH + c];
            sum += e * e;
        }
        shares of = shares_of(s, fit, trace_fit, s->list[at], trace, p);
        double left = MAX(1 - s->many->fine[p] * (of.alpha * v + of.beta * u), 0.1);
        squares[p] = s->many->d->unseen[p] * sum / (left * left);
    }
    return FDS_OK;
}

/* fit has its penalty, and s->x, s->y its solution and errors. */
static fds_status choose_rest(search *s, const fds__cg_stage *fit, fds__cg_stage *rest,
                              bool are_few, bool is_shrunk, fds__penalty *best, fds_error *err) {
    const fds__design *d = s->many->d;
    const size_t n = d->players;
    const double trace_fit = s->trace;
    OWNED double *squares = NULL;
    TRY(NEW(squares, d->pairs, err));
    TRY(NEW(s->solutions, MOST * n * WIDTH, err));
    s->count = 0;
    for (size_t i = FDS__LS_RESTS; i > 0; i--)
        if (is_shrunk || i == 1)
            s->list[s->count++] = (fds__penalty){are_few, fds__ls_rests[i - 1]};
    memcpy(s->forms + d->pairs, s->forms, d->pairs * sizeof *s->forms);
    fds__cg_make_fine(s->many, WIDTH, s->t, s->x);
    s->stage = rest;
    TRY(make_sides(s, s->y, err));
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < PROBES; c++)
            s->b[i * WIDTH + MR + c] = s->x[i * WIDTH + R + c];
    TRY(try_all(s, try_rest, err));
    size_t reference = s->tried - 1, chosen = reference;
    TRY(fds__cg_forms(rest, d->pairs, s->forms, err));
    TRY(square_errors(s, fit, trace_fit, reference, squares, err));
    double own = noise(s, fit, trace_fit, reference, reference, squares), least = INFINITY;
    for (size_t i = s->tried; i-- > 0;) {
        double risk = 2 * noise(s, fit, trace_fit, i, reference, squares) - own;
        for (size_t j = 0; j < n; j++)
            for (size_t c = 0; c < s->columns; c++) {
                double off = solution(s, i)[j * WIDTH + c] - solution(s, reference)[j * WIDTH + c];
                risk += off * off;
            }
        chosen = risk < least ? i : chosen;
        least = MIN(least, risk);
    }
    *best = s->list[chosen];
    return FDS_OK;
}

/* ---- all choices ---- */

/* The error of dividing v(1) - v(0) evenly. */
static double even_error(const search *s) {
    const fds__cg *m = s->many;
    double sum = 0;
    for (size_t p = 0; p < m->d->pairs; p++) {
        double share = 0, row = 0;
        for (size_t g = 0; g < m->groups; g++)
            share += m->rows[p * m->coarse + g] * m->root[g] / (double)m->d->players;
        for (size_t c = 0; c < s->columns; c++) {
            double e = s->game->u[p * WIDTH + c] - share * s->game->total[c];
            row += e * e;
        }
        sum += s->stage->weights[p] * m->d->unseen[p] * row;
    }
    return sum;
}

typedef struct {
    search *s;
    fds__penalty penalty;
    const sampled *game;
} one_solution;

/* The solution and the errors of a game, with nothing left out. */
static fds_status solve_once(void *context, size_t job, unsigned worker, fds_error *err) {
    const one_solution *o = context;
    (void)job, (void)worker;
    memset(o->s->x, 0, o->s->stage->size * WIDTH * sizeof *o->s->x);
    o->s->stage->most = FDS__CG_ITERATIONS;
    TRY(make_sides(o->s, o->game->u, err));
    TRY(solve(o->s, o->penalty, err));
    return make_errors(o->s, o->game, false, err);
}

static fds_status solve_game(search *s, fds__penalty penalty, const sampled *game, fds_error *err) {
    one_solution o = {s, penalty, game};
    return fds__pool_run(1, 1, solve_once, &o, "shrinkage", "solutions", s->many->d->events, err);
}

/* The share of the surrogate whose subtraction leaves the smallest errors; subtracts it. */
static fds_status choose_control(search *s, fds__penalty penalty, sampled *game,
                                 const sampled *surrogate, double *share, fds_error *err) {
    const size_t size = s->many->d->pairs * WIDTH;
    OWNED double *errors = NULL;
    TRY(NEW(errors, size, err));
    TRY(solve_game(s, penalty, game, err));
    memcpy(errors, s->y, size * sizeof *errors);
    TRY(solve_game(s, penalty, surrogate, err));
    double own = inner(s, s->stage->weights, s->y, s->y);
    double all = inner(s, s->stage->weights, surrogate->u, surrogate->u);
    *share = own > 1e-12 * all ? inner(s, s->stage->weights, errors, s->y) / own : 0;
    cblas_daxpy((int)size, -*share, surrogate->u, 1, game->u, 1);
    for (size_t c = 0; c < WIDTH; c++)
        game->total[c] -= *share * surrogate->total[c];
    return FDS_OK;
}

static fds_status choose_all(search *s, const fds_ls_params *params, sampled *game,
                             const sampled *surrogate, fds__cg_stage *fit, fds__cg_stage *rest,
                             fds__ls_choice *out, fds_error *err) {
    const bool are_few = fds__ls_are_few(s->many->d);
    fds__penalty *chosen = fit ? &out->fit : &out->rest;
    double score, even;
    s->stage = fit ? fit : rest;
    s->game = game;
    s->worse = fds__ls_tolerance(s->many->d, params->adjust);
    list_strengths(s, params->adjust);
    even = even_error(s);
    TRY(choose(s, chosen, &score, err));
    if (surrogate) {
        TRY(choose_control(s, *chosen, game, surrogate, &out->control, err));
        s->list[0] = *chosen;
        s->count = 1;
        TRY(choose(s, chosen, &score, err));
    }
    out->explained = even > 0 ? 1 - score / even : 1;
    if (!fit)
        return FDS_OK;
    TRY(solve_game(s, *chosen, game, err));
    return choose_rest(s, fit, rest, are_few, params->adjust != FDS_ADJUST_CONTROL, &out->rest,
                       err);
}

fds_status fds__cg_choose(const fds__cg *m, const fds_rows *rows, const fds_ls_params *params,
                          fds__cg_stage *fit, fds__cg_stage *rest, fds__cg_scratch *t,
                          fds__ls_choice *out, fds_error *err) {
    const size_t size = m->d->features * WIDTH, pairs = m->d->pairs;
    search s = {.many = m, .t = t, .columns = MIN(rows->columns, (size_t)FDS__CG_SAMPLE)};
    sampled game = {0}, surrogate = {0};
    OWNED double *all = NULL;
    *out = (fds__ls_choice){0};
    TRY(NEW(all, 4 * size + pairs * WIDTH + 2 * pairs, err));
    s.r = all;
    s.b = s.r + size;
    s.x = s.b + size;
    s.theta = s.x + size;
    s.y = s.theta + size;
    s.forms = s.y + pairs * WIDTH;
    fds__cg_probes(m, WIDTH, R, s.r);
    fds__cg_make_fine(m, WIDTH, t, s.r);
    fds_status status = read_sample(&s, rows, &game, err);
    if (status == FDS_OK && params->control)
        status = read_sample(&s, params->control, &surrogate, err);
    if (status == FDS_OK)
        status =
            choose_all(&s, params, &game, params->control ? &surrogate : NULL, fit, rest, out, err);
    fds__free(game.u);
    fds__free(surrogate.u);
    fds__free(s.solutions);
    return status;
}
