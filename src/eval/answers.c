/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of one method for the test samples of a case, and what they cost.
 *
 *   fds, afds, gfds, gfds+   a fit in dir/METHOD.run, then the answers of its explainer
 *   bank                     the answers of the sub-models that the fit of afds keeps
 *   ls                       least squares on the table of sub-models trained for 10 epochs
 *   outside                  a file
 *   all others               fds__baseline, on the same table
 *
 * The cost of a method is kept in METHOD.json: when a case is resumed, the values are computed again
 * from tables and runs, which is cheap, and the cost is the one that was measured. Sub-models are
 * those that the method needs, no matter which of them other methods have trained: for fits, bank
 * and ls the different ones, for baselines those that they requested. */
#include "eval/eval.h"

#include <math.h>
#include <stdlib.h>

enum {
    EXPLAINER_THREADS = 2,    /* always: the last bits of an explainer depend on them */
    TIMED = 50,               /* answers that are timed, at most */
    RANDOM_PERMUTATIONS = 10, /* for all test samples, so that equal remainders are trained once */
};

/* A method at work. */
typedef struct {
    const eval_game *game;
    const eval_method *method;
    const uint32_t *labels; /* (tests) */
    double *values;         /* (players, columns) */
    eval_cost *cost;        /* or NULL */
    eval_record record;     /* of an earlier process */
} work;

/* ---- by fits ---- */

/* Other coalitions for each seed and use. */
static uint64_t draw_of(const eval_game *g, eval_draw draw) {
    return g->params.seed + (uint64_t)draw;
}

static fds_status fit_params(const eval_game *g, const char *method, fds_params *p,
                             fds_error *err) {
    TRY(fds__fit_default(method, p, err));
    eval_set_params(g, p);
    p->draw = draw_of(g, EVAL_DRAW_METHODS);
    if (strcmp(method, "gfds+") != 0)
        p->coalitions = g->params.coalitions;
    p->explainer = g->params.explainer; /* the choices of a fit begin with those of a benchmark */
    p->keep_models = strcmp(method, "afds") == 0 && eval_has_method(g->lists, "bank");
    p->explainer_threads = EXPLAINER_THREADS;
    return FDS_OK;
}

static fds_status run_folder(const eval_game *g, const char *method, char dir[FDS__PATH_MAX],
                             fds_error *err) {
    char name[64];
    snprintf(name, sizeof name, "%.40s.run", method);
    return fds__path_join(dir, FDS__PATH_MAX, g->dir, name, err);
}

/* Fits the run, or what is left to do, and opens it. */
static fds_status open_fit(const eval_game *g, const char *method, fds__fit_report *report,
                           fds_run **out, fds_error *err) {
    fds_params params;
    char dir[FDS__PATH_MAX];
    TRY(fit_params(g, method, &params, err));
    TRY(run_folder(g, method, dir, err));
    TRY(fds__fit(dir, g->problem, &params, g->events, report, err));
    return fds__run_open(dir, EXPLAINER_THREADS, out, err);
}

static fds_status explain(const work *w, fds_run *run, fds__answerer by, fds_error *err) {
    const fds_problem *problem = w->game->problem;
    size_t n = w->game->players, tests = w->game->tests;
    double *values = fds__alloc_zero(tests * n, sizeof *values); /* (tests, players) */
    if (!values)
        return fds__fail_nomem(err, tests * n * sizeof *values);
    const fds__answers answers = {.labels = (uint32_t *)(uintptr_t)w->labels, /* only read */
                                  .values = values};
    fds_status status =
        fds__run_explain(run, by, problem->test, problem->tests, tests, true, &answers, err);
    if (status == FDS_OK)
        fds__transpose(values, tests, n, w->values);
    fds__free(values);
    return status;
}

static int by_size(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The median over test samples that are explained one at a time. */
static fds_status time_answers(const work *w, fds_run *run, fds__answerer by, double *answer_ms,
                               fds_error *err) {
    const fds_problem *problem = w->game->problem;
    size_t count = MIN(w->game->tests, (size_t)TIMED);
    double times[TIMED], *values = fds__alloc_zero(w->game->players, sizeof *values);
    if (!values)
        return fds__fail_nomem(err, w->game->players * sizeof *values);
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        uint32_t label;
        const fds__answers answers = {.labels = &label, .values = values};
        double start_s = fds__now_s();
        status =
            fds__run_explain(run, by, problem->test, &problem->tests[i], 1, false, &answers, err);
        times[i] = 1e3 * (fds__now_s() - start_s);
    }
    fds__free(values);
    if (status != FDS_OK)
        return status;
    qsort(times, count, sizeof *times, by_size);
    *answer_ms = (times[(count - 1) / 2] + times[count / 2]) / 2;
    return FDS_OK;
}

/* Whether only a part of the fit was timed. afds and bank share a run, which is complete for the
 * one that comes later. */
static fds_status find_resumed(const work *w, const fds__fit_report *report, bool *was_resumed,
                               fds_error *err) {
    const char *other = strcmp(w->method->name, "afds") == 0   ? "bank"
                        : strcmp(w->method->name, "bank") == 0 ? "afds"
                                                               : NULL;
    eval_record record = {0};
    *was_resumed = w->record.is_begun;
    if (*was_resumed || !report->was_resumed)
        return FDS_OK;
    if (other)
        TRY(eval_record_read(w->game, other, &record, err));
    *was_resumed = !record.is_done || record.cost.was_resumed;
    return FDS_OK;
}

static fds_status answer_by_fit(const work *w, fds_error *err) {
    bool is_bank = strcmp(w->method->base, "bank") == 0;
    fds__answerer by = is_bank ? FDS__ANSWERER_BANK : FDS__ANSWERER_EXPLAINER;
    fds__fit_report report;
    fds_run *run;
    TRY(open_fit(w->game, is_bank ? "afds" : w->method->base, &report, &run, err));
    fds_status status = explain(w, run, by, err);
    if (status == FDS_OK && w->cost && !w->record.is_done) {
        eval_cost *cost = w->cost;
        cost->sub_models = report.sub_models;
        cost->prepare_s = 0;
        for (int stage = 0; stage <= (is_bank ? FDS__FIT_STAGE_UTILITIES : FDS__FIT_STAGE_CHECK);
             stage++)
            cost->prepare_s += report.seconds[stage];
        status = find_resumed(w, &report, &cost->was_resumed, err);
        if (status == FDS_OK)
            status = time_answers(w, run, by, &cost->answer_ms, err);
    }
    fds_run_free(run);
    return status;
}

/* ---- by least squares ---- */

size_t eval_truth_half(const eval_game *g) {
    return MAX((size_t)g->params.truth / 4 * 2, (size_t)2);
}

/* No coalition is drawn twice. */
size_t eval_drawn(const eval_game *g, size_t count) {
    return g->players < 32 ? MIN(count, ((size_t)1 << g->players) - 2) : count;
}

uint64_t eval_plan_seed(const eval_game *g, eval_draw draw) {
    return fds__draw_seed(g->params.seed, draw_of(g, draw));
}

fds_status eval_least_squares(const eval_game *g, eval_utility utility, eval_draw draw,
                              size_t count, const uint32_t *labels, double *values, size_t *used,
                              fds_error *err) {
    fds_plan *plan;
    TRY(fds_plan_sample(FDS_SAMPLER_LEVERAGE, g->players, NULL, eval_drawn(g, count),
                        eval_plan_seed(g, draw), &plan, err));
    const fds__solving solving = {.table = g->sides[utility].table,
                                  .plan = plan,
                                  .ls = {.adjust = FDS_ADJUST_COUNTS, .groups = g->groups},
                                  .threads = (unsigned)g->params.threads,
                                  .events = g->events};
    fds_table_cost need = {0};
    fds_status status = fds_table_fill(solving.table, plan, solving.threads, g->events, err);
    if (status == FDS_OK)
        status = fds__table_solve(&solving, labels, false, values, NULL, NULL, err);
    if (status == FDS_OK && used)
        status = fds_table_estimate(solving.table, plan, solving.threads, &need, err);
    if (used)
        *used = need.coalitions;
    fds_plan_free(plan);
    return status;
}

static fds_status answer_by_ls(const work *w, fds_error *err) {
    double start_s = fds__now_s();
    size_t used;
    TRY(eval_least_squares(w->game, EVAL_UTILITY_EPOCHS, EVAL_DRAW_METHODS,
                           (size_t)w->game->params.coalitions, w->labels, w->values, &used, err));
    if (w->cost && !w->record.is_done)
        *w->cost = (eval_cost){.prepare_s = fds__now_s() - start_s,
                               .answer_ms = NAN,
                               .sub_models = used,
                               .was_resumed = w->record.is_begun};
    return FDS_OK;
}

/* ---- by baselines ---- */

static void repeat_permutations(const work *w) {
    size_t tests = w->game->tests;
    for (size_t i = 0; i < w->game->players; i++)
        for (size_t x = RANDOM_PERMUTATIONS; x < tests; x++)
            w->values[i * tests + x] = w->values[i * tests + x % RANDOM_PERMUTATIONS];
}

/* A baseline per sample without sub-models has nothing to prepare. */
static void set_cost(const work *w, const fds_params *params, const fds__baseline_report *report) {
    bool has_table = fds__baseline_needs_table(w->method->base);
    bool is_prepared = has_table || !w->method->is_per_sample;
    double each_ms = 1e3 * report->seconds / (double)w->game->tests;
    if (!w->record.is_done)
        *w->cost = (eval_cost){.prepare_s = is_prepared ? report->seconds : NAN,
                               .answer_ms = is_prepared ? NAN : each_ms,
                               .sub_models = has_table ? report->asked : 0,
                               .was_resumed = has_table && w->record.is_begun};
    w->cost->permutations = report->permutations;
    w->cost->has_rule = params->until > 0;
    w->cost->has_converged = report->has_converged;
}

/* The permutations that fit into a budget, at least one: their number of sub-models is linear. */
static fds_status fit_permutations(const eval_game *g, fds_params *params, fds_error *err) {
    size_t one, two;
    params->permutations = 1;
    TRY(fds__baseline_most(params, g->players, g->problem->train->classes, &one, err));
    params->permutations = 2;
    TRY(fds__baseline_most(params, g->players, g->problem->train->classes, &two, err));
    params->permutations = 1;
    if (two > one && g->budget > one)
        params->permutations += (g->budget - one) / (two - one);
    return FDS_OK;
}

/* On equal terms: the budget's sub-models, all of which are used, scored by their confidence. */
static fds_status set_terms(const work *w, fds_params *params, fds_error *err) {
    fds_params scored = *params;
    fds_error why;
    scored.scorer = FDS__SCORER_CONFIDENCE;
    if (!w->method->is_per_sample && fds__baseline_check(&scored, w->game->players, &why) == FDS_OK)
        params->scorer = FDS__SCORER_CONFIDENCE;
    params->coalitions = w->game->budget;
    params->truncate = params->until = 0;
    return params->permutations ? fit_permutations(w->game, params, err) : FDS_OK;
}

bool eval_is_equal(const eval_method *m) {
    if (m->is_outside)
        return false;
    if (m->kind == REPORT_OURS || m->kind == REPORT_BEYOND)
        return !m->is_converged;
    return fds__baseline_needs_table(m->base) && strcmp(m->base, "cs-shapley") != 0;
}

static fds_status answer_by_baseline(const work *w, fds_error *err) {
    const eval_game *g = w->game;
    const char *base = w->method->base;
    fds_params params;
    TRY(fds__baseline_default(base, &params, err));
    eval_set_params(g, &params);
    if (w->method->is_per_sample)
        params.scorer = FDS__SCORER_EACH_SAMPLE;
    if (params.permutations && strcmp(base, "freeshap") != 0) /* whose permutations are cheap */
        params.permutations = g->params.permutations;
    if (g->budget && fds__baseline_needs_table(base))
        TRY(set_terms(w, &params, err));
    const fds__utility_params utility = fds__utility_params_of(g->problem, &params, NULL);
    const fds__baseline_data data = {.problem = g->problem,
                                     .labels = w->method->is_per_sample ? w->labels
                                                                        : g->problem->test_labels,
                                     .utility = &utility,
                                     .table = g->sides[EVAL_UTILITY_EPOCHS].table};
    fds__baseline_report report;
    TRY(fds__baseline(&params, &data, w->values, NULL, &report, g->events, err));
    if (strcmp(base, "random") == 0)
        repeat_permutations(w);
    if (w->cost)
        set_cost(w, &params, &report);
    return FDS_OK;
}

/* ---- any ---- */

static fds_status answer(const work *w, fds_error *err) {
    if (w->method->is_outside) {
        if (w->cost)
            *w->cost = (eval_cost){.prepare_s = NAN, .answer_ms = NAN};
        return eval_outside_answer(w->game, w->method, w->values, err);
    }
    if (w->method->is_fit || strcmp(w->method->base, "bank") == 0)
        return answer_by_fit(w, err);
    return strcmp(w->method->base, "ls") == 0 ? answer_by_ls(w, err) : answer_by_baseline(w, err);
}

fds_status eval_answers(const eval_game *game, const eval_method *method, const uint32_t *labels,
                        double *values, eval_cost *cost, fds_error *err) {
    work w = {.game = game, .method = method, .labels = labels, .values = values, .cost = cost};
    if (!cost)
        return answer(&w, err);
    TRY(eval_record_read(game, method->name, &w.record, err));
    *cost = w.record.cost;
    if (w.record.is_done)
        return answer(&w, err);
    if (!w.record.is_begun)
        TRY(eval_record_write(game, method->name, NULL, err));
    TRY(answer(&w, err));
    return eval_record_write(game, method->name, cost, err);
}

/* ---- pictures ---- */

enum { PICTURED = 5, CONTRIBUTORS = 10 };

/* The first test samples of different labels. */
static size_t choose_pictured(const fds_problem *problem, uint32_t samples[PICTURED]) {
    const uint16_t *labels = problem->test->labels;
    size_t count = 0;
    for (size_t i = 0; i < problem->test_count && count < PICTURED; i++) {
        bool is_new = true;
        for (size_t j = 0; j < count; j++)
            is_new &= labels[samples[j]] != labels[problem->tests[i]];
        samples[count] = problem->tests[i];
        count += is_new;
    }
    return count;
}

fds_status eval_picture(const eval_game *g, const char *method, const char *name, fds_error *err) {
    char dir[FDS__PATH_MAX], path[FDS__PATH_MAX];
    uint32_t samples[PICTURED];
    size_t count = choose_pictured(g->problem, samples);
    fds_run *run;
    fds_input *input = NULL;
    fds_result *result = NULL;
    TRY(fds__path_join(path, sizeof path, g->dir, name, err));
    TRY(run_folder(g, method, dir, err));
    TRY(fds__run_open(dir, EXPLAINER_THREADS, &run, err));
    fds_status status = fds_input_samples(run, g->problem->test, samples, count, &input, err);
    if (status == FDS_OK)
        status = fds_run_explain(run, input, NULL, NULL, &result, err);
    if (status == FDS_OK)
        status = fds_run_draw(run, input, result, CONTRIBUTORS, path, err);
    fds_result_free(result);
    fds_input_free(input);
    fds_run_free(run);
    return status;
}
