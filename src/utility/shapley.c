/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapley values of a problem: makes groups and a plan, fills the table, finds the labels to
 * explain, and computes the values of each test sample and of their mean. With a surrogate (`adjust`
 * knn:K, kernel, entk) it does the same for a cheap game over the same plan. */
#include "utility/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SURROGATE_TIMES = 20,      /* as many coalitions for the surrogate's values, */
    SURROGATE_PER_PLAYER = 20, /* but times this many at most */
    MOST_COALITIONS = 1 << 24  /* two days of sub-models, a gigabyte of plan */
};

typedef struct {
    const fds_problem *problem;
    const fds_params *params;
    const fds_events *events;
    bool is_exact, is_grouped, is_all; /* is_all: every label of a test sample */
    bool use_truth, is_mean;
    fds_sampler sampler;
    fds_adjust adjust;
    const char *adjust_name;
    fds_groups *groups;           /* NULL: none are needed */
    fds_plan *plan, *values_plan; /* values_plan: for those of "kernel" and "entk" */
    fds__game game, surrogate;    /* surrogate.kind NULL: none */
    size_t weights;               /* of the network; 0: there is none */
    fds__labels labels;
    double *ends; /* (2, tests, classes): of no and of all players */
    double noise; /* variance of a program's answers; 0: it has none */
    fds__until until;
    fds_ls_report report;
} job;

static void labels_free(job *j) {
    fds__free(j->labels.labels);
    fds__free(j->labels.predicted);
    fds__aim_free(&j->labels.aim);
    fds__free(j->ends);
    j->labels.labels = j->labels.predicted = NULL;
    j->ends = NULL;
}

static void job_free(job *j) {
    fds__game_close(&j->game);
    fds__game_close(&j->surrogate);
    fds_plan_free(j->plan);
    fds_plan_free(j->values_plan);
    fds_groups_free(j->groups);
    labels_free(j);
    fds__free(j->labels.service);
}

static unsigned threads(const job *j) { return (unsigned)j->params->threads; }
static size_t players(const job *j) { return fds_players_count(j->problem->players); }

/* Before there is a problem, as the parameters say. */
static bool is_regression(const job *j) {
    return j->problem ? j->problem->train->targets != NULL : j->params->task == 1;
}

/* ---- before any work ---- */

static fds_status read_sampler(job *j, fds_error *err) {
    const fds_params *p = j->params;
    j->sampler = p->sampler < 0 ? FDS_SAMPLER_LEVERAGE : (fds_sampler)p->sampler;
    j->is_grouped = j->sampler == FDS_SAMPLER_GFDS || j->sampler == FDS_SAMPLER_GFDS_PLUS;
    if (j->is_exact && p->sampler >= 0 && !j->is_grouped)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`sampler` %s: exact values use every coalition; with method exact it "
                         "must be gfds or gfds+",
                         fds__choice(p, sampler));
    return j->is_exact ? FDS_OK : fds__check_even(p, j->sampler, err);
}

static fds_status read_adjust(job *j, fds_error *err) {
    TRY(fds__adjust_read(j->is_exact ? "none" : j->params->adjust, j->sampler, &j->adjust,
                         &j->adjust_name, &j->surrogate.kind, err));
    if (fds__is_by_provider(j->problem, j->params) && j->surrogate.kind &&
        strncmp(j->surrogate.kind, "knn:", 4) == 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`adjust` %s needs players of one sample each, not providers; use counts, "
                         "kernel or entk",
                         j->adjust_name);
    if (is_regression(j) && j->surrogate.kind && strncmp(j->surrogate.kind, "knn:", 4) == 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`adjust` %s needs classes, and `task` regression has none; use counts, "
                         "kernel or entk",
                         j->adjust_name);
    return FDS_OK;
}

static fds_status read_target(job *j, fds_error *err) {
    const fds_params *p = j->params;
    j->is_mean = p->global;
    j->use_truth = p->target == 1 || (p->target < 0 && (p->global || is_regression(j)));
    j->is_all = p->target == 2;
    if (j->is_all && is_regression(j))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`target` all needs classes, and `task` regression has none; use true or "
                         "predicted");
    if (j->is_all && p->global)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`target` all does not apply with `global`: the probabilities of all labels "
            "sum to 1, so that their mean says nothing; use predicted or true");
    return FDS_OK;
}

static fds_status check(job *j, fds_error *err) {
    const fds_params *p = j->params;
    const char *method = p->method ? p->method : "ls";
    j->is_exact = strcmp(method, "exact") == 0;
    if (!j->is_exact && strcmp(method, "ls") != 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`method` must be ls or exact for Shapley values (got %.60s)", method);
    TRY(fds__params_check(p, method, NULL, err));
    if (fds_ranks_count() > 1)
        TRY(fds__until_refuse(p, err));
    TRY(read_sampler(j, err));
    TRY(read_adjust(j, err));
    TRY(read_target(j, err));
    bool has_groups = j->is_grouped || (!j->is_exact && j->adjust != FDS_ADJUST_NONE);
    if (p->group && !has_groups)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`group` needs `sampler` gfds or gfds+, or `adjust` other than none");
    j->game.kind = p->utility ? p->utility : "retrain:10";
    bool by_model = has_groups && fds__is_by_model(p->group);
    bool has_network =
        fds__has_network(j->game.kind) || fds__has_network(j->surrogate.kind) || by_model;
    TRY(fds__check_training(
        p, j->game.kind, has_network,
        fds__has_training(j->game.kind) || fds__has_training(j->surrogate.kind) || by_model, err));
    return has_network
               ? fds__network_check(j->problem, fds__network_of(j->problem, p), &j->weights, err)
               : FDS_OK;
}

fds_status fds__shapley_check(const fds_params *params, fds_error *err) {
    job j = {.params = params};
    return check(&j, err);
}

/* ---- groups and plans ---- */

static fds_status make_groups(job *j, fds_error *err) {
    if (!j->is_grouped && (j->is_exact || j->adjust == FDS_ADJUST_NONE))
        return FDS_OK;
    const fds__utility_params p = fds__utility_params_of(j->problem, j->params, j->game.kind);
    TRY(fds__groups_for(j->problem, fds__group_by(j->problem, j->params, j->sampler), &p, j->events,
                        &j->groups, err));
    if (j->is_grouped && fds_groups_count(j->groups) == 1)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`sampler` %s needs two groups or more, and `group` %s makes one of all players",
            fds__choice(j->params, sampler), fds__group_by(j->problem, j->params, j->sampler));
    return FDS_OK;
}

static fds_status sample(const job *j, size_t count, fds_plan **out, fds_error *err) {
    return fds__plan_sample(j->sampler, players(j), j->is_grouped ? j->groups : NULL, count,
                            fds__draw_seed(j->params->seed, j->params->draw), j->events, out, err);
}

static fds_status sample_plans(job *j, fds_error *err) {
    size_t n = players(j), count = j->until.count;
    if (n == 1)
        return fds__fail(err, FDS_ERR_USAGE,
                         "there is only one player, and nothing to sample: use `method` exact");
    fds_status status = sample(j, count, &j->plan, err);
    if (status == FDS_ERR_LIMIT && err)
        return fds__fail(err, status, "`coalitions` %zu: %s", count, err->text);
    TRY(status);
    const fds_ls_params ls = {.adjust = j->adjust, .groups = j->groups};
    TRY(fds_least_squares_check(j->plan, &ls, err));
    if (!j->surrogate.kind || strncmp(j->surrogate.kind, "knn:", 4) == 0)
        return FDS_OK;
    /* plans of one seed are nested: the shorter plan's coalitions are among these */
    size_t usual = MIN(count, n * SURROGATE_PER_PLAYER);
    count = MAX(count, MIN(usual * SURROGATE_TIMES, (size_t)MOST_COALITIONS));
    return sample(j, MIN(count, fds__most_coalitions(j->sampler, n)), &j->values_plan, err);
}

/* The number of coalitions, or where it begins. */
static fds_status count_coalitions(job *j, fds_error *err) {
    const fds_params *p = j->params;
    const fds__utility_params utility = fds__utility_params_of(j->problem, p, j->game.kind);
    size_t count = p->until_error > 0 ? 0 : (size_t)p->coalitions;
    if (!count)
        TRY(fds__default_coalitions(j->problem, &utility, j->sampler, j->problem->test_count,
                                    &count, err));
    j->until.count = count;
    if (p->until_error > 0)
        fds__until_begin(&j->until, p, fds__until_first(players(j), count),
                         fds__most_coalitions(j->sampler, players(j)));
    return FDS_OK;
}

static fds_status make_plans(job *j, fds_error *err) {
    if (!j->is_exact) {
        TRY(count_coalitions(j, err));
        return sample_plans(j, err);
    }
    fds_status status =
        fds_plan_exact(j->sampler, players(j), j->is_grouped ? j->groups : NULL, &j->plan, err);
    if (status == FDS_ERR_LIMIT && err)
        return fds__fail(err, status, "`method` exact: %s; use ls", err->text);
    return status;
}

/* ---- games ---- */

static const fds_plan *surrogate_plan(const job *j) {
    return j->values_plan ? j->values_plan : j->plan;
}

static size_t columns(const job *j) {
    return j->is_mean ? 1 : j->problem->test_count * (j->is_all ? j->problem->train->classes : 1);
}

static uint64_t memory(const job *j) {
    const fds_ls_params ls = {.adjust = j->adjust, .groups = j->groups};
    uint64_t results = 4 * sizeof(double) * players(j) * columns(j);
    uint64_t solving =
        j->is_exact ? 0 : fds_least_squares_memory(j->plan, &ls, columns(j), threads(j));
    uint64_t peak, resident = fds__memory_resident(&peak); /* reading the data may have been more */
    return MAX(peak, resident + results + solving + j->game.cost.memory);
}

/* The folder of the surrogate "knn:5" of TABLE or TABLE/ is "TABLE.knn5". */
static void name_surrogate(const char *table, const char *kind, char out[FDS__PATH_MAX]) {
    size_t length = strlen(table), word = strcspn(kind, ":");
    while (length > 1 && table[length - 1] == '/')
        length--;
    snprintf(out, FDS__PATH_MAX, "%.*s.%.*s%s", (int)length, table, (int)word, kind,
             kind + word + (kind[word] == ':'));
}

/* What this round takes. */
static fds_status estimate_games(job *j, fds_error *err) {
    TRY(fds_table_estimate(j->game.table, j->plan, threads(j), &j->game.cost, err));
    if (!j->surrogate.kind)
        return FDS_OK;
    TRY(fds_table_estimate(j->surrogate.table, surrogate_plan(j), threads(j), &j->surrogate.cost,
                           err));
    j->surrogate.cost.disk_free -= MIN(j->game.cost.disk, j->surrogate.cost.disk_free);
    return FDS_OK;
}

static fds_status open_games(job *j, const char *table, bool is_look, fds_error *err) {
    char beside[FDS__PATH_MAX];
    TRY(fds__game_open(&j->game, j->problem, j->params, table, is_look, j->events, err));
    if (!j->surrogate.kind)
        return estimate_games(j, err);
    if (table)
        name_surrogate(table, j->surrogate.kind, beside);
    TRY(fds__game_open(&j->surrogate, j->problem, j->params, table ? beside : NULL, is_look,
                       j->events, err));
    return estimate_games(j, err);
}

static fds_status fill_games(job *j, fds_error *err) {
    TRY(fds__game_announce(&j->game, false, memory(j), j->events, err));
    if (j->surrogate.kind)
        TRY(fds__game_announce(&j->surrogate, false, 0, j->events, err));
    TRY(fds__ranks_bind(j->game.utility, j->plan, fds__table_store(j->game.table), err));
    fds_status status = fds__game_fill(&j->game, j->plan, threads(j), j->events, err);
    fds__ranks_bind(NULL, NULL, FDS_STORE_F32, NULL);
    TRY(status);
    return j->surrogate.kind
               ? fds__game_fill(&j->surrogate, surrogate_plan(j), threads(j), j->events, err)
               : FDS_OK;
}

static fds_status find_labels(job *j, fds_error *err) {
    size_t tests = j->problem->test_count, size = tests * j->problem->train->classes;
    TRY(NEW(j->labels.labels, tests, err));
    TRY(NEW(j->labels.predicted, tests, err));
    TRY(NEW(j->ends, 2 * size, err));
    TRY(fds__table_ends(j->game.table, j->plan, j->ends, j->ends + size, err));
    if (is_regression(j)) {
        TRY(fds__aim_make(j->problem, j->params, j->game.utility, &j->labels, err));
        fds__aim_result(j->problem, j->use_truth, j->ends, j->ends + size, &j->labels);
        return FDS_OK;
    }
    fds__label_result(j->problem, j->use_truth, j->ends, j->ends + size, &j->labels);
    fds__labels_warn(j->problem, &j->labels, j->events);
    return FDS_OK;
}

/* ---- the surrogate's values ---- */

/* The exact values of "knn:K" for the labels of each input, NULL for all labels, or their mean. */
static fds_status knn_values(const job *j, const uint32_t *labels, bool is_mean, size_t count,
                             double *values, fds_error *err) {
    const fds_utility *u = j->surrogate.utility;
    size_t n = u->players, classes = u->classes;
    OWNED double *all = NULL; /* (inputs, classes, players) */
    TRY(NEW(all, u->inputs * classes * n, err));
    TRY(fds_utility_knn_shapley(u, all, err));
    for (size_t at = 0; at < u->inputs * classes; at++) {
        size_t input = at / classes;
        if (labels && at % classes != labels[input])
            continue;
        size_t column = is_mean ? 0 : labels ? input : at;
        for (size_t p = 0; p < n; p++)
            values[p * count + column] += all[at * n + p] / (is_mean ? (double)u->inputs : 1);
    }
    return FDS_OK;
}

/* ---- solving ---- */

static fds__solving solving(const job *j, fds_table *table, const fds_plan *plan) {
    return (fds__solving){
        .table = table,
        .plan = plan,
        .is_exact = j->is_exact,
        .ls = {.adjust = j->adjust, .groups = j->adjust == FDS_ADJUST_NONE ? NULL : j->groups},
        .aim = &j->labels.aim,
        .threads = threads(j),
        .events = j->events};
}

static fds_status solve_with_surrogate(job *j, const uint32_t *labels, bool is_mean, size_t count,
                                       double *known, double *values, double *errors,
                                       fds_ls_report *report, fds_error *err) {
    fds__solving own = solving(j, j->surrogate.table, j->values_plan),
                 s = solving(j, j->game.table, j->plan);
    fds_table_view *view;
    own.ls.adjust = FDS_ADJUST_COUNTS;
    TRY(j->values_plan ? fds__table_solve(&own, labels, is_mean, known, NULL, NULL, err)
                       : knn_values(j, labels, is_mean, count, known, err));
    TRY(fds_table_view_create(j->surrogate.table, j->plan, labels, is_mean, threads(j), &view,
                              err));
    fds__table_view_aim(view, &j->labels.aim);
    const fds_rows control = fds_table_view_rows(view);
    s.ls.control = &control;
    s.ls.control_values = known;
    fds_status status = fds__table_solve(&s, labels, is_mean, values, errors, report, err);
    fds_table_view_free(view);
    return status;
}

/* values and errors (count, players). */
static fds_status solve(job *j, const uint32_t *labels, bool is_mean, size_t count, double *values,
                        double *errors, fds_ls_report *report, fds_error *err) {
    size_t n = players(j), size = n * count;
    const fds__solving s = solving(j, j->game.table, j->plan);
    OWNED double *scratch = NULL;
    TRY(NEW(scratch, 3 * size, err));
    TRY(j->surrogate.kind
            ? solve_with_surrogate(j, labels, is_mean, count, scratch + 2 * size, scratch,
                                   scratch + size, report, err)
            : fds__table_solve(&s, labels, is_mean, scratch, scratch + size, report, err));
    fds__transpose(scratch, n, count, values);
    fds__transpose(scratch + size, n, count, errors);
    fds__noise_add(j->noise, j->is_exact, j->is_grouped, n, size, errors);
    return FDS_OK;
}

/* ---- the result ---- */

static json_t *json_fit(const job *j) {
    const fds_ls_report *r = &j->report;
    if (j->is_exact)
        return json_null();
    return json_pack("{s:I, s:I, s:b, s:o, s:o, s:o, s:o, s:o}", "pairs", (json_int_t)r->pairs,
                     "features", (json_int_t)r->features, "is_complete",
                     fds_plan_rows(j->plan) - 2 == fds__most_coalitions(j->sampler, players(j)),
                     "explained", fds__json_real(r->explained), "shrink", fds__json_real(r->shrink),
                     "shrink_rest", fds__json_real(r->shrink_rest), "surrogate_share",
                     fds__json_real(r->control), "ridge", fds__json_real(r->ridge));
}

static json_t *json_sampling(const job *j) {
    if (j->is_exact)
        return json_null();
    const char *sampler = j->params->sampler < 0 ? "leverage" : fds__choice(j->params, sampler);
    return json_pack("{s:s, s:I, s:b, s:I, s:o, s:o*}", "sampler", sampler, "coalitions",
                     (json_int_t)(fds_plan_rows(j->plan) - 2), "is_paired",
                     fds_plan_is_paired(j->plan), "draw", (json_int_t)j->params->draw, "adjust",
                     fds__json_string(j->adjust_name), "until_error",
                     j->until.wanted > 0 ? json_pack("{s:f}", "wanted", j->until.wanted) : NULL);
}

static json_t *json_groups(const job *j) {
    if (!j->groups)
        return json_null();
    return json_pack("{s:o, s:I}", "by",
                     fds__json_string(fds__group_by(j->problem, j->params, j->sampler)), "count",
                     (json_int_t)fds_groups_count(j->groups));
}

static json_t *describe(const job *j, bool is_filled) {
    json_t *about = json_pack(
        "{s:s, s:o, s:o, s:s, s:o, s:o, s:s, s:b, s:I, s:o, s:o, s:I}", "version", FDS_VERSION,
        "network",
        j->weights ? fds__json_string(fds__network_of(j->problem, j->params)) : json_null(),
        "groups", json_groups(j), "method", j->is_exact ? "exact" : "ls", "group_wise",
        j->is_exact && j->is_grouped ? json_string(fds__choice(j->params, sampler)) : json_null(),
        "sampling", json_sampling(j), "target",
        j->is_all      ? "all"
        : j->use_truth ? "true"
                       : "predicted",
        "global", j->is_mean, "seed", (json_int_t)j->params->seed, "game",
        fds__game_json(&j->game, is_filled), "surrogate",
        j->surrogate.kind ? fds__game_json(&j->surrogate, is_filled) : json_null(), "memory",
        (json_int_t)memory(j));
    json_t *problem = fds__problem_json(j->problem);
    bool is_whole = about && problem && json_object_update(about, problem) == 0 &&
                    fds__json_put(about, "weights", json_integer((json_int_t)j->weights));
    json_decref(problem);
    return fds__json_keep_if(about, is_whole);
}

static json_t *describe_result(const job *j) {
    json_t *about = describe(j, true);
    bool is_whole =
        about && fds__labels_describe(&j->labels, j->params, true, about) &&
        fds__json_put(about, "fit", json_fit(j)) &&
        fds__json_put(about, "noise",
                      j->params->allow_noise ? fds__json_real(sqrt(j->noise)) : json_null());
    return fds__json_keep_if(about, is_whole);
}

static fds_status fill_result(job *j, fds_result *r, fds_error *err) {
    fds_ls_report of_mean;
    r->is_mean = j->is_mean;
    r->is_exact = j->is_exact && !j->params->allow_noise;
    r->has_all_labels = j->is_all;
    TRY(solve(j, j->labels.labels, true, 1, r->means, r->mean_errors, &of_mean, err));
    if (j->is_mean) {
        j->report = of_mean;
        memcpy(r->values, r->means, r->players * sizeof *r->values);
        memcpy(r->errors, r->mean_errors, r->players * sizeof *r->errors);
    } else {
        TRY(solve(j, j->is_all ? NULL : j->labels.labels, false, r->predictions, r->values,
                  r->errors, &j->report, err));
    }
    if (is_regression(j))
        TRY(fds__aim_predictions(j->problem, &j->labels, j->use_truth, j->ends, r, err));
    else
        fds__label_predictions(j->problem, &j->labels, j->ends, r);
    json_decref(r->about);
    r->about = describe_result(j);
    return r->about ? FDS_OK : fds__fail_json(err);
}

/* ---- all of it ---- */

static fds_status prepare(job *j, const char *table, bool is_look, fds_error *err) {
    TRY(check(j, err));
    TRY(fds__service_read(j->problem, j->params, &j->labels, err));
    TRY(make_groups(j, err));
    TRY(make_plans(j, err));
    return open_games(j, table, is_look, err);
}

/* The values by the coalitions of this round, and by providers where samples are players. */
static fds_status run_round(job *j, fds_result **out, fds_error *err) {
    TRY(fill_games(j, err));
    TRY(fds__utility_noise(j->game.utility, j->game.table, j->plan, j->events, &j->noise, err));
    TRY(find_labels(j, err));
    TRY(fds__problem_result(j->problem, j->is_exact ? "exact" : "ls", columns(j), out, err));
    TRY(fill_result(j, *out, err));
    return j->problem->by_points ? fds__result_by_provider(out, err) : FDS_OK;
}

/* The standard error that the noise of answers makes of the greatest value. */
static double noise_floor(const job *j, const fds_result *r) {
    size_t most = 1; /* samples, whose values a provider's value adds up */
    for (size_t p = 0; p < r->players && j->problem->by_points; p++)
        most = MAX(most, (size_t)r->player_sizes[p]);
    return sqrt((double)most) * fds__noise_floor(j->noise, j->is_exact, j->is_grouped, players(j));
}

/* Whether errors are small enough, or there can be no more coalitions. */
static fds_status is_last_round(job *j, const fds_result *r, bool *is_last, fds_error *err) {
    OWNED double *greatest = NULL;
    *is_last = j->until.wanted == 0;
    if (*is_last)
        return FDS_OK;
    TRY(NEW(greatest, r->predictions, err));
    j->until.floor = noise_floor(j, r);
    for (size_t k = 0; k < r->predictions; k++)
        greatest[k] = fds__until_greatest(r->errors + k * r->players, r->players, 1);
    *is_last =
        fds__until_measure(&j->until, greatest, r->predictions, j->report.ridge > 0, j->events);
    return *is_last && !fds__json_put(json_object_get(r->about, "sampling"), "until_error",
                                      fds__until_json(&j->until))
               ? fds__fail_json(err)
               : FDS_OK;
}

/* More coalitions; what was computed stays in the tables. */
static fds_status begin_round(job *j, fds_error *err) {
    fds_plan_free(j->plan);
    fds_plan_free(j->values_plan);
    j->plan = j->values_plan = NULL;
    labels_free(j);
    j->game.earlier += j->game.cost.missing;
    j->surrogate.earlier += j->surrogate.cost.missing;
    TRY(sample_plans(j, err));
    return estimate_games(j, err);
}

static fds_status run(job *j, const char *table, fds_result **out, fds_error *err) {
    bool is_last = false;
    TRY(prepare(j, table, false, err));
    while (!is_last) {
        fds_result_free(*out);
        *out = NULL;
        if (j->until.rounds)
            TRY(begin_round(j, err));
        TRY(run_round(j, out, err));
        TRY(is_last_round(j, *out, &is_last, err));
    }
    if (!j->is_exact)
        fds__ls_warn(&j->report, fds_plan_rows(j->plan) - 2, players(j), j->events);
    return FDS_OK;
}

fds_status fds_shapley(const fds_problem *problem, const fds_params *params, const char *table,
                       const fds_events *events, fds_result **out, fds_error *err) {
    job j = {.problem = problem, .params = params, .events = events};
    fds_result *result = NULL;
    fds_status status = run(&j, table, &result, err);
    job_free(&j);
    if (status == FDS_OK)
        *out = result;
    else
        fds_result_free(result);
    return status;
}

/* The surrogate, which is cheap, is left to the process that computes the values. */
static fds_status fill_part(job *j, const char *table, fds_part part, char **report,
                            fds_error *err) {
    double start_s = fds__now_s();
    if (j->params->utilities)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`utilities` has no parts: nothing is trained for them");
    TRY(fds__part_check(&part, err));
    TRY(fds__until_refuse(j->params, err));
    TRY(check(j, err));
    TRY(make_groups(j, err));
    TRY(make_plans(j, err));
    TRY(fds__game_open(&j->game, j->problem, j->params, table, false, j->events, err));
    TRY(fds__part_note(table, j->plan, j->params->draw, err));
    TRY(fds__table_estimate_part(j->game.table, j->plan, &part, threads(j), &j->game.cost, err));
    TRY(fds_table_fill_part(j->game.table, j->plan, part, threads(j), j->events, err));
    return report
               ? fds__part_report(table, part, &j->game.cost, fds__now_s() - start_s, report, err)
               : FDS_OK;
}

fds_status fds_shapley_part(const fds_problem *problem, const fds_params *params, const char *table,
                            fds_part part, const fds_events *events, char **report,
                            fds_error *err) {
    job j = {.problem = problem, .params = params, .events = events};
    fds_status status = fill_part(&j, table, part, report, err);
    job_free(&j);
    return status == FDS_ERR_CANCELLED ? fds__fail_part(table, err) : status;
}

static fds_status serve(job *j, fds_error *err) {
    TRY(check(j, err));
    TRY(make_groups(j, err));
    TRY(make_plans(j, err));
    fds__utility_params p = fds__utility_params_of(j->problem, j->params, j->game.kind);
    p.events = j->events;
    TRY(fds__utility_of(j->problem, &p, threads(j), &j->game.utility, err));
    return fds__ranks_serve(j->game.utility, j->plan,
                            j->params->store == 1 ? FDS_STORE_F16 : FDS_STORE_F32, j->events, err);
}

fds_status fds_shapley_serve(const fds_problem *problem, const fds_params *params,
                             const fds_events *events, fds_error *err) {
    job j = {.problem = problem, .params = params, .events = events};
    fds_status status = serve(&j, err);
    job_free(&j);
    return status;
}

fds_status fds__shapley_estimate(const fds_problem *problem, const fds_params *params,
                                 const char *table, const fds_events *events, json_t **out,
                                 fds_error *err) {
    job j = {.problem = problem, .params = params, .events = events};
    fds_status status = prepare(&j, table, true, err);
    if (status == FDS_OK) {
        *out = describe(&j, false);
        status = *out ? FDS_OK : fds__fail_json(err);
    }
    job_free(&j);
    return status;
}
