/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods by name: what each asks, how it may be judged and what it is started with, all in one
 * table; the checks before any work, and the call itself.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

typedef enum { NO_TABLE, SCORED, BY_CLASS } asks; /* what its table's columns are */

enum {
    ANY_SCORER = 1 << FDS_SCORER_ACCURACY | 1 << FDS_SCORER_CONFIDENCE |
                 1 << FDS_SCORER_CROSS_ENTROPY | 1 << FDS_SCORER_EACH_SAMPLE,
};

typedef struct {
    const char *name;
    asks asks;
    unsigned scorers;    /* a bit each */
    const char *why;     /* no others */
    size_t permutations; /* 0: it walks none */
    double until, truncate;
    double epsilon; /* 0: it draws no coalitions by number */
    fds_status (*run)(baseline_job *job, fds_error *err);
    fds_status (*most)(const fds_baseline_params *params, size_t players, uint32_t classes,
                       size_t *most, fds_error *err); /* of those that ask */
} method;

#define CLASS_WISE \
    "its value is made of the accuracies in one class and in the others: judge by accuracy"
#define NEIGHBOURS                                                                      \
    "its values are exact because a coalition is worth the share of the label among K " \
    "neighbours: judge by confidence, the mean of that share, or each test sample by itself"

/* until and truncate are those of Data Shapley's authors, for whom 1,000 permutations are our bound;
 * FreeShap, which trains nothing, walks 200 to their ends. The bounds of the two methods that draw
 * coalitions are wide: their epsilon is what makes about 2,000 for 100 players. */
#define METHOD_TABLE(X)                                                                           \
    X("loo", SCORED, ANY_SCORER, NULL, 0, 0, 0, 0, baseline_loo, baseline_loo_most)               \
    X("tmc", SCORED, ANY_SCORER, NULL, 1000, 0.05, 0.01, 0, baseline_tmc, baseline_tmc_most)      \
    X("gshapley", NO_TABLE, ANY_SCORER, NULL, 1000, 0.05, 0, 0, baseline_gshapley, NULL)          \
    X("group-testing", SCORED, ANY_SCORER, NULL, 0, 0, 0, 10, baseline_group_testing,             \
      baseline_group_testing_most)                                                                \
    X("cs-shapley", BY_CLASS, 1 << FDS_SCORER_ACCURACY, CLASS_WISE, 1000, 0.05, 0.01, 0,          \
      baseline_cs_shapley, baseline_cs_shapley_most)                                              \
    X("freeshap", NO_TABLE, ANY_SCORER, NULL, 200, 0, 0, 0, baseline_freeshap, NULL)              \
    X("knn:K", NO_TABLE, 1 << FDS_SCORER_CONFIDENCE | 1 << FDS_SCORER_EACH_SAMPLE, NEIGHBOURS, 0, \
      0, 0, 0, baseline_knn, NULL)                                                                \
    X("banzhaf", SCORED, ANY_SCORER, NULL, 0, 0, 0, 1, baseline_banzhaf, baseline_banzhaf_most)   \
    X("beta:A,B", SCORED, ANY_SCORER, NULL, 1000, 0.05, 0, 0, baseline_tmc, baseline_tmc_most)    \
    X("random", NO_TABLE, ANY_SCORER, NULL, 0, 0, 0, 0, baseline_random, NULL)                    \
    X("same-label", NO_TABLE, ANY_SCORER, NULL, 0, 0, 0, 0, baseline_same_label, NULL)

#define ROW(...) {__VA_ARGS__},
static const method methods[] = {METHOD_TABLE(ROW)};
enum { METHODS = sizeof methods / sizeof *methods };

static const double usual_delta = 0.1;

/* ---- by name ---- */

#define NAME(name, ...) name,
const char *const *fds_baseline_methods(void) {
    static const char *const names[] = {METHOD_TABLE(NAME) NULL};
    return names;
}

/* Whether text names the method; "knn:K" and "beta:A,B" stand for all that can be read as such. */
static bool is_named(const method *m, const char *text) {
    uint32_t k;
    double alpha, beta;
    if (m->run == baseline_knn)
        return baseline_read_knn(text, &k);
    if (strncmp(m->name, "beta:", 5) == 0)
        return baseline_read_beta(text, &alpha, &beta);
    return strcmp(m->name, text) == 0;
}

static const method *find(const char *text) {
    for (size_t i = 0; text && i < METHODS; i++)
        if (is_named(&methods[i], text))
            return &methods[i];
    return NULL;
}

static bool begins(const char *text, const char *name) {
    size_t length = strlen(name);
    return text && strncmp(text, name, length) == 0 && (!text[length] || text[length] == ':');
}

static fds_status fail_name(const char *text, fds_error *err) {
    char list[256] = "";
    if (begins(text, "knn"))
        return fds__fail(err, FDS_ERR_USAGE,
                         "method \"%.64s\": a colon and the number of neighbours, at least 1, are "
                         "needed after knn, as in \"knn:5\"",
                         text);
    if (begins(text, "beta"))
        return fds__fail(err, FDS_ERR_USAGE,
                         "method \"%.64s\": a colon and two numbers above 0, of at most 9 digits, "
                         "are needed after beta, as in \"beta:4,1\"",
                         text);
    for (size_t i = 0; i < METHODS; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                 i == 0             ? ""
                 : i + 1 == METHODS ? " and "
                                    : ", ",
                 methods[i].name);
    return fds__fail(err, FDS_ERR_USAGE, "there is no method \"%.64s\"; there are %s",
                     text ? text : "", list);
}

fds_status fds_baseline_params_default(const char *name, fds_baseline_params *params,
                                       fds_error *err) {
    const method *m = find(name);
    if (!m)
        return fail_name(name, err);
    *params = (fds_baseline_params){
        .method = name,
        .scorer =
            m->scorers & 1 << FDS_SCORER_ACCURACY ? FDS_SCORER_ACCURACY : FDS_SCORER_CONFIDENCE,
        .permutations = m->permutations,
        .until = m->until,
        .truncate = m->truncate,
        .epsilon = m->epsilon,
        .delta = usual_delta,
        .seed = 1,
    };
    return FDS_OK;
}

bool fds_baseline_needs_table(const char *name) {
    const method *m = find(name);
    return m && m->asks != NO_TABLE;
}

/* ---- checks ---- */

static fds_status check_scorer(const method *m, fds_scorer scorer, fds_error *err) {
    static const char *const names[] = {"accuracy", "confidence", "cross-entropy",
                                        "each test sample by itself"};
    if ((int)scorer < FDS_SCORER_ACCURACY || scorer > FDS_SCORER_EACH_SAMPLE)
        return fds__fail(err, FDS_ERR_USAGE, "there is no judge number %d, only 0 to %d",
                         (int)scorer, FDS_SCORER_EACH_SAMPLE);
    if (!(m->scorers & 1u << scorer))
        return fds__fail(err, FDS_ERR_USAGE, "%s cannot be judged by %s: %s", m->name,
                         names[scorer], m->why);
    return FDS_OK;
}

static fds_status check_orders(const fds_baseline_params *p, fds_error *err) {
    if (p->permutations > FDS__MAX_ROWS)
        return fds__fail(err, FDS_ERR_LIMIT, "%zu orders, at most %zu are possible",
                         p->permutations, FDS__MAX_ROWS);
    if (!(p->until >= 0) || !isfinite(p->until))
        return fds__fail(err, FDS_ERR_USAGE,
                         "until is %g: a share of change above 0 is needed, as 0.05, or 0 to walk "
                         "all orders",
                         p->until);
    if (!(p->truncate >= 0) || !isfinite(p->truncate))
        return fds__fail(err, FDS_ERR_USAGE,
                         "truncate is %g: a share of v(N) above 0 is needed, as 0.01, or 0 to look "
                         "at every place",
                         p->truncate);
    return FDS_OK;
}

static fds_status check_coalitions(const method *m, const fds_baseline_params *p, fds_error *err) {
    if (p->coalitions > FDS__MAX_ROWS)
        return fds__fail(err, FDS_ERR_LIMIT, "%zu coalitions, at most %zu are possible",
                         p->coalitions, FDS__MAX_ROWS);
    if (p->coalitions == 1 && m->run == baseline_banzhaf)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "banzhaf: nothing can be compared in one coalition, at least 2 are needed");
    if (p->coalitions)
        return FDS_OK;
    if (!(p->epsilon > 0) || !isfinite(p->epsilon))
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s: epsilon is %g: the error that is allowed must be above 0", m->name,
                         p->epsilon);
    if (!(p->delta > 0 && p->delta < 1))
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s: delta is %g: the chance of a greater error must be above 0 and below "
                         "1",
                         m->name, p->delta);
    if (p->scorer == FDS_SCORER_CROSS_ENTROPY)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s: how many coalitions epsilon and delta need depends on the range of "
                         "the values, and that of cross-entropy has no useful bound: say how many",
                         m->name);
    return FDS_OK;
}

fds_status fds_baseline_check(const fds_baseline_params *params, size_t players, fds_error *err) {
    const method *m = find(params->method);
    uint32_t k;
    if (!m)
        return fail_name(params->method, err);
    if (!players)
        return fds__fail(err, FDS_ERR_USAGE, "%s: no players: at least one is needed", m->name);
    if (players > FDS__MAX_PLAYERS)
        return fds__fail(err, FDS_ERR_LIMIT, "%zu players, at most %zu are allowed", players,
                         FDS__MAX_PLAYERS);
    TRY(check_scorer(m, params->scorer, err));
    if (m->run == baseline_knn && baseline_read_knn(params->method, &k) && k > players)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s: %u neighbours among %zu players: at most as many as there are "
                         "players are possible",
                         params->method, k, players);
    if (m->permutations)
        TRY(check_orders(params, err));
    return m->epsilon > 0 ? check_coalitions(m, params, err) : FDS_OK;
}

static fds_status check_shape(const char *what, const fds_utility *of,
                              const fds_baseline_data *data, fds_error *err) {
    if (of->players != fds_players_count(data->players) || of->inputs != data->input_count ||
        of->classes != data->train->classes)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "the %s is of %zu players, %zu test samples and %u classes, the data of "
                         "%zu, %zu and %u",
                         what, of->players, of->inputs, of->classes,
                         fds_players_count(data->players), data->input_count, data->train->classes);
    return FDS_OK;
}

/* Whether the parts fit together, of which nothing else makes sure. */
static fds_status check_data(const method *m, const fds_baseline_data *data, fds_error *err) {
    if (!data || !data->train || !data->players || !data->test || !data->labels)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s needs training data, players, test data and labels", m->name);
    if (!data->input_count)
        return fds__fail(err, FDS_ERR_USAGE, "%s: no test samples: at least one is needed",
                         m->name);
    TRY(fds__players_check(data->train, data->players, err));
    TRY(fds__samples_check(data->test, data->inputs, data->input_count, err));
    for (size_t i = 0; i < data->input_count; i++)
        if (data->labels[i] >= data->train->classes)
            return fds__fail(err, FDS_ERR_USAGE, "test sample %zu: label %u, there are %u classes",
                             i, data->labels[i], data->train->classes);
    if (data->made)
        TRY(check_shape("value function", data->made, data, err));
    if (m->asks == NO_TABLE)
        return FDS_OK;
    if (!data->table)
        return fds__fail(err, FDS_ERR_USAGE, "%s needs a table of sub-models", m->name);
    return check_shape("table", fds__table_utility(data->table), data, err);
}

/* ---- what it takes ---- */

/* params with the permutations that will be walked. */
static fds_baseline_params complete(const method *m, const fds_baseline_params *params) {
    fds_baseline_params whole = *params;
    whole.permutations = params->permutations ? params->permutations : m->permutations;
    return whole;
}

fds_status fds_baseline_most(const fds_baseline_params *params, size_t players, uint32_t classes,
                             size_t *coalitions, fds_error *err) {
    TRY(fds_baseline_check(params, players, err));
    const method *m = find(params->method);
    *coalitions = 0;
    if (!m->most)
        return FDS_OK;
    const fds_baseline_params whole = complete(m, params);
    TRY(m->most(&whole, players, classes, coalitions, err));
    if (players < 32) /* there are no more */
        *coalitions = MIN(*coalitions, (size_t)1 << players);
    return FDS_OK;
}

fds_status fds_baseline_estimate(const fds_baseline_params *params, const fds_table *table,
                                 fds_table_cost *need, fds_error *err) {
    const fds_utility *of = fds__table_utility(table);
    fds_plan *none;
    size_t most;
    TRY(fds_baseline_most(params, of->players, of->classes, &most, err));
    TRY(fds__plan_blank(of->players, 0, &none, err));
    fds_status status = fds_table_estimate(table, none, params->threads, need, err);
    fds_plan_free(none);
    TRY(status); /* it has told what the disk has left */
    need->coalitions = most;
    need->missing = most - MIN(most, fds__table_count(table));
    need->memory = 0;
    return need->missing
               ? fds__table_bytes(of, fds__table_store(table), need->missing, &need->disk, err)
               : FDS_OK;
}

/* ---- the call ---- */

/* Whether it is of that kind, or of that kind with a number; its text says so. */
static bool is_of_kind(const fds_utility *value, const char *kind) {
    char start[80];
    int length = snprintf(start, sizeof start, "\"kind\":\"%.64s", kind);
    const char *at = strstr(value->text, start);
    return at && (at[length] == '"' || at[length] == ':');
}

fds_status baseline_utility(const baseline_job *job, const char *kind, fds_utility **own,
                            const fds_utility **out, fds_error *err) {
    const fds_baseline_data *data = job->data;
    fds_utility_params params = data->value ? *data->value : fds_utility_params_default();
    *own = NULL;
    *out = data->made;
    if (data->made && is_of_kind(data->made, kind))
        return FDS_OK;
    params.kind = kind;
    TRY(fds_utility_create(&params, data->train, data->players, data->test, data->inputs,
                           data->input_count,
                           fds__pool_workers(job->params->threads, BASELINE_ROUND), own, err));
    *out = *own;
    return FDS_OK;
}

static fds_status find_labels(const fds_baseline_data *data, uint32_t *labels, fds_error *err) {
    size_t *counts = fds__alloc_zero(data->train->classes, sizeof *counts);
    if (!counts)
        return fds__fail_nomem(err, data->train->classes * sizeof *counts);
    for (size_t i = 0; i < fds_players_count(data->players); i++) {
        const uint32_t *index;
        size_t count = fds_players_samples(data->players, i, &index);
        labels[i] = fds__player_label(data->train, index, count, counts);
    }
    fds__free(counts);
    return FDS_OK;
}

static fds_status run_asking(const method *m, baseline_job *job, fds_error *err) {
    const fds_baseline_params *params = job->params;
    baseline_asker *asker;
    TRY(baseline_asker_create(
        job->data->table, m->asks == BY_CLASS ? BASELINE_BY_CLASS : BASELINE_SCORED, params->scorer,
        job->data->labels, params->threads, job->events, &asker, err));
    job->game = baseline_asker_game(asker);
    fds_status status = m->run(job, err);
    fds_status synced = fds__table_sync(job->data->table, status == FDS_OK ? err : NULL);
    status = status == FDS_OK ? synced : status;
    baseline_asker_count(asker, &job->report->asked, &job->report->trained);
    baseline_asker_free(asker);
    return status;
}

static fds_status check_finite(const method *m, const baseline_job *job, fds_error *err) {
    for (size_t i = 0; i < job->players * job->columns; i++)
        if (!isfinite(job->values[i]))
            return fds__fail(err, FDS_ERR_DIVERGED,
                             "%s: the value of player %zu is no finite number", m->name,
                             i / job->columns);
    return FDS_OK;
}

static fds_status run(const method *m, baseline_job *job, fds_error *err) {
    uint32_t *labels = fds__alloc_zero(job->players, sizeof *labels);
    if (!labels)
        return fds__fail_nomem(err, job->players * sizeof *labels);
    job->player_labels = labels;
    bool is_exact = m->run == baseline_loo || m->run == baseline_knn; /* nothing is drawn */
    for (size_t i = 0; job->errors && i < job->players * job->columns; i++)
        job->errors[i] = is_exact ? 0 : NAN;
    fds_status status = find_labels(job->data, labels, err);
    if (status == FDS_OK)
        status = m->asks == NO_TABLE ? m->run(job, err) : run_asking(m, job, err);
    if (status == FDS_OK)
        status = check_finite(m, job, err);
    fds__free(labels);
    return status;
}

fds_status fds_baseline(const fds_baseline_params *params, const fds_baseline_data *data,
                        double *values, double *errors, fds_baseline_report *report,
                        const fds_events *events, fds_error *err) {
    const method *m = find(params->method);
    double start_s = fds__now_s();
    if (!m)
        return fail_name(params->method, err);
    TRY(check_data(m, data, err));
    TRY(fds_baseline_check(params, fds_players_count(data->players), err));
    const fds_baseline_params whole = complete(m, params);
    fds_baseline_report told = {.change = NAN};
    baseline_job job = {
        .params = &whole,
        .data = data,
        .classes = data->train->classes,
        .players = fds_players_count(data->players),
        .columns = params->scorer == FDS_SCORER_EACH_SAMPLE ? data->input_count : 1,
        .values = values,
        .errors = errors,
        .report = &told,
        .events = events,
    };
    TRY(run(m, &job, err));
    told.seconds = fds__now_s() - start_s;
    if (report)
        *report = told;
    return FDS_OK;
}
