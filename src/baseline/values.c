/* SPDX-License-Identifier: Apache-2.0
 * Baselines as results: from parameters to a game, the labels to explain, the values. */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

typedef struct {
    const fds_problem *problem;
    const baseline_method *method;
    fds_params params; /* complete; seed: of the draws */
    const fds_events *events;
    fds__utility_params utility;
    fds__game game;     /* kind NULL: the method needs no model */
    bool is_for_labels; /* the game only gives the predicted labels */
    bool use_truth;
    fds__labels labels;
    double *ends; /* (2, tests, classes): probabilities without and with all players; or NULL */
    fds__baseline_report report;
    size_t weights;
} job;

static void job_free(job *j) {
    fds__game_close(&j->game);
    fds__free(j->labels.labels);
    fds__free(j->labels.predicted);
    fds__aim_free(&j->labels.aim);
    fds__free(j->labels.service);
    fds__free(j->ends);
}

/* Before there is a problem, as the parameters say. */
static bool is_regression(const job *j) {
    return j->problem ? j->problem->train->targets != NULL : j->params.task == 1;
}

static bool is_each(const job *j) { return j->params.scorer == FDS__SCORER_EACH_SAMPLE; }

/* ---- before any work ---- */

/* Methods that are the exact values of a utility function of the same name. */
static bool is_by_formula(const job *j) {
    return j->method == &baseline_knn || j->method == &baseline_tknn;
}

/* The utility function of the coalitions and of the predicted labels. */
static void choose_utility(job *j) {
    const fds_params *p = &j->params;
    bool is_freeshap = j->method == &baseline_freeshap, is_knn = is_by_formula(j);
    const char *usual = p->utility ? p->utility : "retrain:10";
    bool has_own = j->method->most || is_freeshap || is_knn;
    j->is_for_labels = !has_own && is_each(j) && !j->use_truth;
    j->game.kind = is_knn                        ? p->method
                   : is_freeshap && !p->utility  ? "entk"
                   : has_own || j->is_for_labels ? usual
                                                 : NULL;
}

static fds_status check_target(job *j, fds_error *err) {
    const fds_params *p = &j->params;
    if (p->target == 2)
        return fds__fail(err, FDS_ERR_USAGE, "`target` all needs method ls or exact");
    if (p->target == 0 && !is_each(j))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`target` predicted needs `per_sample`: %s uses the true labels",
                         fds__choice(p, scorer));
    j->use_truth = p->target == 1 || (p->target < 0 && (!is_each(j) || is_regression(j)));
    return FDS_OK;
}

static fds_status check_scoring(const fds_params *p, fds_error *err) {
    if (p->per_sample && p->global)
        return fds__fail(err, FDS_ERR_USAGE, "`global` and `per_sample` exclude each other");
    if (p->per_sample && p->scorer >= 0 && p->scorer != FDS__SCORER_CONFIDENCE)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`scorer` %s needs many test samples; `per_sample` scores each by the "
                         "confidence in its label",
                         fds__choice(p, scorer));
    return FDS_OK;
}

/* The game of a regression has no scorer but the score. */
static fds_status check_regression(job *j, fds_error *err) {
    if (j->method->needs_classes)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`method` %s needs classes, and `task` regression has none; use ls, exact, "
            "loo, tmc, beta:A,B, banzhaf, ame, group-testing or random",
            j->params.method);
    if (fds__is_given(&j->params, scorer))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`scorer` needs classes, and `task` regression has none; use `score`");
    if (j->method->epsilon > 0 && !j->params.coalitions && j->params.score == 0)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "%s needs `coalitions` with `score` squared, which has no bound from which "
            "their number would follow; or use `score` kernel",
            j->params.method);
    if (!is_each(j))
        j->params.scorer = FDS__SCORER_CONFIDENCE; /* the mean over the test samples */
    return FDS_OK;
}

/* What differential privacy needs besides noise: nothing that is released or chosen may depend on the
 * samples of players by any other way than the counts that get it. */
static fds_status check_private(const job *j, fds_error *err) {
    const fds_params *p = &j->params;
    if (!p->is_private && (fds__is_given(p, private_epsilon) || fds__is_given(p, private_delta)))
        return fds__fail(err, FDS_ERR_USAGE, "`%s` needs `private`",
                         fds__is_given(p, private_epsilon) ? "private_epsilon" : "private_delta");
    if (!p->is_private)
        return FDS_OK;
    if (!j->use_truth)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`private` needs `target` true: predicted labels depend on every player's "
                         "sample");
    if (!p->players || strcmp(p->players, "all") != 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`private` needs `players` all: a choice of some, balanced by class, "
                         "depends on the labels of the others");
    if (!j->problem)
        return FDS_OK;
    if (!j->problem->has_test_part)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`private`: %s has no test part; test samples must be public and apart "
                         "from the players'",
                         j->problem->train->source);
    return fds__preparation_learns(j->problem->train->preparation)
               ? fds__fail(err, FDS_ERR_USAGE,
                           "`private`: %s has columns of text or missing values, whose features "
                           "are learnt from all samples",
                           j->problem->train->source)
               : FDS_OK;
}

static fds_status check(job *j, const fds_params *params, fds_error *err) {
    char takes[256];
    TRY(fds__baseline_default(params->method, &j->params, err)); /* or lists the methods */
    j->method = baseline_find(params->method);
    TRY(check_scoring(params, err));
    j->params = baseline_complete(j->method, params);
    if (is_regression(j))
        TRY(check_regression(j, err));
    TRY(check_target(j, err));
    choose_utility(j);
    snprintf(takes, sizeof takes, "scorer per_sample %s %s %s",
             j->method->takes ? j->method->takes : "", j->method->most ? "utility table store" : "",
             j->method->most || j->is_for_labels ? BASELINE_TRAINING : "");
    TRY(fds__params_check(params, params->method, takes, err));
    TRY(check_private(j, err));
    if (j->method == &baseline_freeshap && strncmp(j->game.kind, "entk", 4) != 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`utility` must be entk or entk:K for freeshap (got %.60s)", j->game.kind);
    if (fds__is_by_provider(j->problem, params) && is_by_formula(j))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`method` %s needs players of one sample each, not providers",
                         params->method);
    bool has_network = fds__has_network(j->game.kind) || j->method == &baseline_gshapley;
    TRY(fds__check_training(params, j->game.kind, has_network, fds__has_training(j->game.kind),
                            err));
    j->utility = fds__utility_params_of(j->problem, params, j->game.kind);
    j->utility.is_private = params->is_private;
    if (has_network)
        TRY(fds__network_check(j->problem, j->utility.network, &j->weights, err));
    j->params.seed = fds__draw_seed(params->seed, params->draw);
    /* before there is a problem, as many players as are possible */
    return fds__baseline_check(
        &j->params, j->problem ? fds_players_count(j->problem->players) : FDS__MAX_PLAYERS, err);
}

/* The game, with a table where the method needs one; an estimate (is_look) leaves no table. */
static fds_status open_game(job *j, const fds_params *params, const char *table, bool is_look,
                            fds_error *err) {
    double start_s = fds__now_s();
    if (j->method->most) {
        TRY(fds__game_open(&j->game, j->problem, params, table, is_look, j->events, err));
        TRY(fds__baseline_estimate(&j->params, j->game.table, &j->game.cost, err));
        return is_look ? FDS_OK : fds__game_announce(&j->game, true, 0, j->events, err);
    }
    j->utility.events = j->events;
    if (j->game.kind)
        TRY(fds__utility_of(j->problem, &j->utility, (unsigned)params->threads, &j->game.utility,
                            err));
    j->game.seconds = fds__now_s() - start_s;
    return FDS_OK;
}

/* ---- labels ---- */

/* The probabilities with no and with all players, by a utility function without a table. */
static fds_status ask_ends(const job *j, const fds_plan *plan, double *ends, fds_error *err) {
    const fds_utility *u = j->game.utility;
    size_t size = u->inputs * u->classes;
    float *probs = fds__alloc_zero(2 * size, sizeof *probs);
    if (!probs)
        return fds__fail_nomem(err, 2 * size * sizeof *probs);
    fds_status status = fds_utility_eval(u, 0, fds_plan_coalition(plan, 0), probs, err);
    if (status == FDS_OK)
        status = fds_utility_eval(u, 0, fds_plan_coalition(plan, 1), probs + size, err);
    for (size_t i = 0; i < 2 * size; i++)
        ends[i] = (double)probs[i];
    fds__free(probs);
    return status;
}

static fds_status find_labels(job *j, fds_error *err) {
    size_t size = j->problem->test_count * j->problem->train->classes;
    fds_plan *plan;
    if (!j->game.utility || j->params.is_private)
        return FDS_OK;
    j->ends = fds__alloc_zero(2 * size, sizeof *j->ends);
    if (!j->ends)
        return fds__fail_nomem(err, 2 * size * sizeof *j->ends);
    TRY(fds__plan_ends(fds_players_count(j->problem->players), &plan, err));
    fds_status status = j->game.table ? fds_table_fill(j->game.table, plan,
                                                       (unsigned)j->params.threads, j->events, err)
                                      : ask_ends(j, plan, j->ends, err);
    if (status == FDS_OK && j->game.table)
        status = fds__table_ends(j->game.table, plan, j->ends, j->ends + size, err);
    fds_plan_free(plan);
    if (status == FDS_OK && is_regression(j))
        fds__aim_result(j->problem, j->use_truth, j->ends, j->ends + size, &j->labels);
    if (status != FDS_OK || is_regression(j))
        return status;
    fds__label_result(j->problem, j->use_truth, j->ends, j->ends + size, &j->labels);
    fds__labels_warn(j->problem, &j->labels, j->events);
    return FDS_OK;
}

/* ---- the values ---- */

static fds_status compute(job *j, fds_result *r, fds_error *err) {
    size_t n = r->players, size = n * r->predictions;
    const fds__baseline_data data = {.problem = j->problem,
                                     .labels = j->labels.labels,
                                     .aim = is_regression(j) ? &j->labels.aim : NULL,
                                     .utility = &j->utility,
                                     .table = j->game.table,
                                     .made = j->game.utility};
    double *scratch = fds__alloc_zero(2 * size, sizeof *scratch);
    if (!scratch)
        return fds__fail_nomem(err, 2 * size * sizeof *scratch);
    fds_status status =
        fds__baseline(&j->params, &data, scratch, scratch + size, &j->report, j->events, err);
    if (status == FDS_OK) {
        fds__transpose(scratch, n, r->predictions, r->values);
        fds__transpose(scratch + size, n, r->predictions, r->errors);
    }
    fds__free(scratch);
    return status;
}

static json_t *describe_settings(const job *j) {
    static const char *const scorers[] = {"accuracy", "confidence", "cross-entropy", "confidence"};
    const fds_params *p = &j->params;
    const char *scorer = is_regression(j) ? fds__choice(p, score) : scorers[p->scorer];
    bool has_bound = j->method->epsilon > 0 && !p->coalitions;
    return json_pack(
        "{s:s, s:b, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:I}", "scorer", scorer, "per_sample",
        is_each(j), "permutations", (json_int_t)(j->method->permutations ? p->permutations : 0),
        "until", fds__json_real(p->until), "truncate", fds__json_real(p->truncate), "coalitions",
        (json_int_t)(j->method->least_coalitions ? p->coalitions : 0), "epsilon",
        fds__json_real(has_bound ? p->epsilon : NAN), "delta",
        fds__json_real(has_bound ? p->delta : NAN), "form",
        fds__json_string(j->method == &baseline_group_testing ? fds__choice(p, form) : NULL),
        "draw", (json_int_t)p->draw);
}

static json_t *describe_report(const fds__baseline_report *r) {
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:b, s:o, s:o}", "asked", (json_int_t)r->asked,
                     "trained", (json_int_t)r->trained, "permutations", (json_int_t)r->permutations,
                     "truncated", fds__json_real(r->truncated), "change", fds__json_real(r->change),
                     "converged", r->has_converged, "lr", fds__json_real(r->lr > 0 ? r->lr : NAN),
                     "seconds", fds__json_real(r->seconds));
}

/* Checksums of samples and seconds are no part of what may be known. */
static json_t *describe_game(const job *j, bool is_done) {
    return j->params.is_private ? json_pack("{s:s}", "utility", j->game.kind)
                                : fds__game_json(&j->game, is_done);
}

static json_t *describe(const job *j, uint64_t seed, bool is_done) {
    bool is_known = j->game.utility && is_done && !j->params.is_private;
    json_t *about =
        json_pack("{s:s, s:o, s:I, s:s, s:s, s:b, s:b, s:I, s:o, s:{s:o, s:o}}", "version",
                  FDS_VERSION, "network", fds__json_string(j->weights ? j->utility.network : NULL),
                  "weights", (json_int_t)j->weights, "method", j->params.method, "target",
                  j->use_truth ? "true" : "predicted", "global", !is_each(j), "is_for_labels",
                  j->is_for_labels, "seed", (json_int_t)seed, "game", describe_game(j, is_done),
                  "baseline", "settings", describe_settings(j), "found",
                  is_done ? describe_report(&j->report) : json_null());
    json_t *problem = fds__problem_json(j->problem);
    bool is_whole = about && problem && json_object_update(about, problem) == 0 &&
                    fds__labels_describe(&j->labels, &j->params, is_known, about) &&
                    (!j->params.is_private ||
                     fds__json_put(about, "privacy",
                                   baseline_tknn_privacy(&j->params, j->problem->test_count)));
    json_decref(problem);
    return fds__json_keep_if(about, is_whole);
}

static fds_status fill_result(job *j, uint64_t seed, fds_result *r, fds_error *err) {
    r->is_mean = !is_each(j);
    /* noise has no known error here */
    r->is_exact = j->method->is_exact && !j->params.allow_noise && !j->params.is_private;
    TRY(compute(j, r, err));
    if (!j->game.table && !j->is_for_labels)
        j->report.seconds += j->game.seconds;
    fds__result_average(r);
    if (j->use_truth) /* only for the report: most of what it needs is in the table now */
        TRY(find_labels(j, err));
    if (is_regression(j))
        TRY(fds__aim_predictions(j->problem, &j->labels, j->use_truth, j->ends, r, err));
    else
        fds__label_predictions(j->problem, &j->labels, j->ends, r);
    json_decref(r->about);
    r->about = describe(j, seed, true);
    return r->about ? FDS_OK : fds__fail_json(err);
}

static fds_status run(job *j, const fds_params *params, const char *table, fds_result **out,
                      fds_error *err) {
    size_t tests = j->problem->test_count;
    fds_result *r;
    TRY(check(j, params, err));
    TRY(fds__service_read(j->problem, params, &j->labels, err));
    TRY(open_game(j, params, table, false, err));
    j->labels.labels = fds__alloc_zero(tests, sizeof *j->labels.labels);
    j->labels.predicted = fds__alloc_zero(tests, sizeof *j->labels.predicted);
    if (!j->labels.labels || !j->labels.predicted)
        return fds__fail_nomem(err, tests * sizeof *j->labels.labels);
    if (is_regression(j))
        TRY(fds__aim_make(j->problem, params, j->game.utility, &j->labels, err));
    else
        fds__label_result(j->problem, true, NULL, NULL, &j->labels);
    if (!j->use_truth)
        TRY(find_labels(j, err));
    TRY(fds__problem_result(j->problem, params->method, is_each(j) ? tests : 1, &r, err));
    fds_status status = fill_result(j, params->seed, r, err);
    if (status == FDS_OK && j->problem->by_points)
        status = fds__result_by_provider(&r, err);
    if (status != FDS_OK)
        fds_result_free(r);
    else
        *out = r;
    if (status == FDS_ERR_CANCELLED && j->game.table && !j->game.is_temporary)
        return fds__fail(err, status,
                         "its sub-models are kept in %s; run the same command again to resume",
                         j->game.dir);
    return status;
}

fds_status fds_baseline(const fds_problem *problem, const fds_params *params, const char *table,
                        const fds_events *events, fds_result **out, fds_error *err) {
    job j = {.problem = problem, .events = events};
    fds_status status = run(&j, params, table, out, err);
    job_free(&j);
    return status;
}

/* ---- the cost ---- */

static fds_status estimate(const fds_problem *problem, const fds_params *params, const char *table,
                           const fds_events *events, json_t **out, fds_error *err) {
    job j = {.problem = problem, .events = events};
    fds_status status = check(&j, params, err);
    if (status == FDS_OK)
        status = open_game(&j, params, table, true, err);
    if (status == FDS_OK) {
        *out = describe(&j, params->seed, false);
        status = *out ? FDS_OK : fds__fail_json(err);
    }
    job_free(&j);
    return status;
}

static bool is_shapley(const fds_params *params) {
    return !params->method || strcmp(params->method, "ls") == 0 ||
           strcmp(params->method, "exact") == 0;
}

fds_status fds_value_check(const fds_params *params, const char *table, fds_error *err) {
    job j = {0};
    if (params->utilities)
        return table ? fds__fail(err, FDS_ERR_USAGE, "`table` does not apply with `utilities`")
                     : fds__given_check(params, err);
    if (params->game)
        return fds__fail(err, FDS_ERR_USAGE, "`game` needs `utilities`");
    TRY(fds__group_value_check(params, err));
    if (is_shapley(params))
        return fds__shapley_check(params, err);
    TRY(check(&j, params, err));
    if (table && !j.method->most)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`table` does not apply to method %s, which uses no sub-models",
                         params->method);
    return FDS_OK;
}

fds_status fds_value_estimate(const fds_problem *problem, const fds_params *params,
                              const char *table, const fds_events *events, char **json,
                              fds_error *err) {
    json_t *about;
    TRY((is_shapley(params) ? fds__shapley_estimate : estimate)(problem, params, table, events,
                                                                &about, err));
    *json = fds__json_text(about, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    json_decref(about);
    return *json ? FDS_OK : fds__fail_json(err);
}
