/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods by name, their checks before any work, and the call itself. A method is described at
 * the end of its own file; values.c turns values into results.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

static const baseline_method *const methods[] = {
#define X(name) &baseline_##name,
    BASELINE_METHODS(X)
#undef X
};
enum { METHODS = sizeof methods / sizeof *methods };

/* ---- by name ---- */

const char *const *fds_baseline_methods(void) {
    static const char *names[METHODS + 1];
    for (size_t i = 0; i < METHODS; i++)
        names[i] = methods[i]->name;
    return names;
}

const char *fds_baseline_about(const char *name) {
    for (size_t i = 0; i < METHODS; i++)
        if (strcmp(methods[i]->name, name) == 0)
            return methods[i]->about;
    return NULL;
}

const baseline_method *baseline_find(const char *text) {
    for (size_t i = 0; text && i < METHODS; i++) {
        const baseline_method *m = methods[i];
        if (m->is_named ? m->is_named(text) : strcmp(m->name, text) == 0)
            return m;
    }
    return NULL;
}

/* Whether text is "knn", or begins with "knn:", for the method "knn:K". */
static bool begins_as(const char *text, const baseline_method *m) {
    size_t length = strcspn(m->name, ":");
    return strncmp(text, m->name, length) == 0 && (!text[length] || text[length] == ':');
}

static fds_status fail_name(const char *text, fds_error *err) {
    const char *names[METHODS + 3] = {"ls", "exact"};
    char list[256] = "ls, exact", hint[FDS__HINT];
    text = text ? text : "";
    for (size_t i = 0; i < METHODS; i++) {
        const baseline_method *m = methods[i];
        if (m->numbers && begins_as(text, m))
            return fds__fail(err, FDS_ERR_USAGE, "`method` %s needs %s (got %.64s)", m->name,
                             m->numbers, text);
        names[i + 2] = m->name;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                 i + 1 == METHODS ? " or " : ", ", m->name);
    }
    return fds__fail(err, FDS_ERR_USAGE, "`method` must be %s (got %.64s)%s", list, text,
                     fds__hint(text, names, hint));
}

fds_status fds__baseline_default(const char *name, fds_params *params, fds_error *err) {
    const baseline_method *m = baseline_find(name);
    if (!m)
        return fail_name(name, err);
    *params = fds__params_default(FDS__JOB_VALUE);
    params->method = name;
    params->seed = 1;
    *params = baseline_complete(m, params);
    return FDS_OK;
}

static bool can_score(const baseline_method *m, int scorer) {
    return !m->scorers || m->scorers & 1u << scorer;
}

fds_params baseline_complete(const baseline_method *m, const fds_params *params) {
    fds_params p = *params;
    if (p.per_sample)
        p.scorer = FDS__SCORER_EACH_SAMPLE;
    else if (p.scorer < 0)
        p.scorer =
            can_score(m, FDS__SCORER_ACCURACY) ? FDS__SCORER_ACCURACY : FDS__SCORER_CONFIDENCE;
    if (!p.permutations)
        p.permutations = m->permutations;
    if (p.job == FDS__JOB_VALUE && !fds__is_given(&p, until) && p.until == 0)
        p.until = m->until;
    if (p.job == FDS__JOB_VALUE && !fds__is_given(&p, truncate) && p.truncate == 0)
        p.truncate = m->truncate;
    if (p.epsilon == 0)
        p.epsilon = m->epsilon;
    return p;
}

bool fds__baseline_needs_table(const char *name) {
    const baseline_method *m = baseline_find(name);
    return m && m->most;
}

/* ---- checks ---- */

static fds_status check_scorer(const baseline_method *m, int scorer, fds_error *err) {
    static const char *const names[] = {"accuracy", "confidence", "cross-entropy", "`per_sample`"};
    if (scorer < 0 || scorer > FDS__SCORER_EACH_SAMPLE)
        return fds__fail(err, FDS_ERR_USAGE, "`scorer` %d: there are 0 to %d", scorer,
                         FDS__SCORER_EACH_SAMPLE);
    if (!can_score(m, scorer))
        return fds__fail(err, FDS_ERR_USAGE, "%s cannot be scored by %s: %s", m->name,
                         names[scorer], m->why);
    return FDS_OK;
}

/* The table of parameters has checked what each of them may be. */
static fds_status check_coalitions(const baseline_method *m, const fds_params *p, fds_error *err) {
    if (p->coalitions && p->coalitions < m->least_coalitions)
        return fds__fail(err, FDS_ERR_USAGE, "`coalitions` must be at least %zu for %s (got %zu)",
                         m->least_coalitions, m->name, (size_t)p->coalitions);
    if (p->coalitions || m->epsilon == 0)
        return FDS_OK;
    if (p->delta >= 1)
        return fds__fail(err, FDS_ERR_USAGE, "`delta` must be above 0 and below 1 (got %g)",
                         p->delta);
    if (p->scorer == FDS__SCORER_CROSS_ENTROPY)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "%s needs `coalitions` with cross-entropy: cross-entropy has no bound from "
            "which their number would follow",
            m->name);
    return FDS_OK;
}

fds_status fds__baseline_check(const fds_params *params, size_t players, fds_error *err) {
    const baseline_method *m = baseline_find(params->method);
    uint32_t k;
    if (!m)
        return fail_name(params->method, err);
    if (!players)
        return fds__fail(err, FDS_ERR_USAGE, "%s: there are no players", m->name);
    if (players > FDS__MAX_PLAYERS)
        return fds__fail(err, FDS_ERR_LIMIT, "%zu players, at most %zu are possible", players,
                         FDS__MAX_PLAYERS);
    TRY(check_scorer(m, params->scorer, err));
    if (baseline_read_knn(params->method, &k) && k > players)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`method` %s: K must be at most %zu, the number of players",
                         params->method, players);
    return m->least_coalitions ? check_coalitions(m, params, err) : FDS_OK;
}

static fds_status check_shape(const char *what, const fds_utility *of, const fds_problem *p,
                              fds_error *err) {
    size_t players = fds_players_count(p->players);
    uint32_t classes = p->train->classes;
    if (of->players == players && of->inputs == p->test_count && of->classes == classes)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_SHAPE,
                     "the %s has %zu players, %zu test samples and %u classes, the data has %zu, "
                     "%zu and %u",
                     what, of->players, of->inputs, of->classes, players, p->test_count, classes);
}

/* Whether the parts fit together; nothing else checks that. */
static fds_status check_data(const baseline_method *m, const fds__baseline_data *data,
                             fds_error *err) {
    const fds_problem *p = data ? data->problem : NULL;
    if (!p || !p->train || !p->players || !p->test || !data->labels)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s needs training data, players, test data and labels", m->name);
    TRY(fds__players_check(p->train, p->players, err));
    TRY(fds__samples_check(p->test, p->tests, p->test_count, err));
    for (size_t i = 0; i < p->test_count; i++)
        if (data->labels[i] >= p->train->classes)
            return fds__fail(err, FDS_ERR_USAGE, "test sample %zu: label %u, there are %u classes",
                             i, data->labels[i], p->train->classes);
    if (data->made)
        TRY(check_shape("utility function", data->made, p, err));
    if (!m->most)
        return FDS_OK;
    if (!data->table)
        return fds__fail(err, FDS_ERR_USAGE, "%s needs a table of sub-models", m->name);
    return check_shape("table", fds__table_utility(data->table), p, err);
}

/* ---- the cost ---- */

fds_status baseline_count(const baseline_method *m, const fds_params *params, size_t players,
                          uint32_t classes, size_t *most, fds_error *err) {
    double count = m->most(params, players, classes);
    if (m->epsilon > 0 && !(count <= (double)FDS__MAX_ROWS))
        return fds__fail(err, FDS_ERR_LIMIT,
                         "%s: `epsilon` %g and `delta` %g need %.3g coalitions of %zu players, at "
                         "most %zu are possible: give a greater `epsilon`, or `coalitions`",
                         m->name, params->epsilon, params->delta, count, players, FDS__MAX_ROWS);
    *most = (size_t)count;
    return FDS_OK;
}

fds_status fds__baseline_most(const fds_params *params, size_t players, uint32_t classes,
                              size_t *coalitions, fds_error *err) {
    TRY(fds__baseline_check(params, players, err));
    const baseline_method *m = baseline_find(params->method);
    *coalitions = 0;
    if (!m->most)
        return FDS_OK;
    const fds_params whole = baseline_complete(m, params);
    TRY(baseline_count(m, &whole, players, classes, coalitions, err));
    if (players < 32) /* there are no more */
        *coalitions = MIN(*coalitions, (size_t)1 << players);
    return FDS_OK;
}

fds_status fds__baseline_estimate(const fds_params *params, const fds_table *table,
                                  fds_table_cost *cost, fds_error *err) {
    const fds_utility *of = fds__table_utility(table);
    fds_plan *none;
    size_t most;
    TRY(fds__baseline_most(params, of->players, of->classes, &most, err));
    TRY(fds__plan_blank(of->players, 0, &none, err));
    fds_status status = fds_table_estimate(table, none, (unsigned)params->threads, cost, err);
    fds_plan_free(none);
    TRY(status); /* cost has what the disk has left */
    cost->coalitions = most;
    cost->missing = most - MIN(most, fds__table_count(table));
    cost->memory = 0;
    return cost->missing
               ? fds__table_bytes(of, fds__table_store(table), cost->missing, &cost->disk, err)
               : FDS_OK;
}

/* ---- what a job owns ---- */

typedef struct baseline_block {
    struct baseline_block *next;
    max_align_t items[];
} baseline_block;

void *baseline_alloc(baseline_job *job, size_t rows, size_t columns, size_t item_size) {
    size_t count, size = SIZE_MAX;
    bool fits = fds__mul(rows, columns, &count) && fds__mul(count, item_size, &size) &&
                size < SIZE_MAX - sizeof(baseline_block);
    baseline_block *block = fits ? fds__alloc_zero(1, sizeof *block + size) : NULL;
    if (!block) {
        job->missing_bytes = MAX(size, (size_t)1);
        return NULL;
    }
    block->next = job->memory;
    job->memory = block;
    return block->items;
}

fds_status baseline_check_memory(const baseline_job *job, fds_error *err) {
    return job->missing_bytes ? fds__fail_nomem(err, job->missing_bytes) : FDS_OK;
}

void baseline_job_free(baseline_job *job) {
    for (baseline_block *block = job->memory, *next; block; block = next) {
        next = block->next;
        fds__free(block);
    }
    fds_utility_free(job->own);
}

/* Whether it is of that kind, or of that kind with a number; its text says so. */
static bool is_of_kind(const fds_utility *utility, const char *kind) {
    char start[80];
    int length = snprintf(start, sizeof start, "\"kind\":\"%.64s", kind);
    const char *at = strstr(utility->text, start);
    return at && (at[length] == '"' || at[length] == ':');
}

fds_status baseline_utility(baseline_job *job, const char *kind, const fds_utility **out,
                            fds_error *err) {
    const fds__baseline_data *data = job->data;
    fds__utility_params params = data->utility ? *data->utility : fds__utility_params_default();
    *out = data->made;
    if (data->made && is_of_kind(data->made, kind))
        return FDS_OK;
    params.kind = kind;
    TRY(fds__utility_of(data->problem, &params,
                        fds__pool_workers((unsigned)job->params->threads, BASELINE_ROUND),
                        &job->own, err));
    *out = job->own;
    return FDS_OK;
}

/* ---- the call ---- */

static fds_status run_with_table(const baseline_method *m, baseline_job *job, fds_error *err) {
    TRY(baseline_open_game(job, m->by_class, err));
    fds_status status = m->run(job, err);
    fds_status synced = fds__table_sync(job->data->table, status == FDS_OK ? err : NULL);
    return status == FDS_OK ? synced : status;
}

static fds_status run(const baseline_method *m, baseline_job *job, fds_error *err) {
    const fds_problem *problem = job->data->problem;
    uint32_t *labels = baseline_alloc(job, job->players, 1, sizeof *labels);
    TRY(baseline_check_memory(job, err));
    TRY(fds__players_labels(problem->train, problem->players, labels, err));
    job->player_labels = labels;
    for (size_t i = 0; job->errors && i < job->players * job->columns; i++)
        job->errors[i] = m->is_exact && !job->params->allow_noise ? 0 : NAN;
    TRY(m->most ? run_with_table(m, job, err) : m->run(job, err));
    for (size_t i = 0; i < job->players * job->columns; i++)
        if (!isfinite(job->values[i]))
            return fds__fail(err, FDS_ERR_DIVERGED,
                             "%s: the value of player %zu is not a finite number", m->name,
                             i / job->columns);
    return FDS_OK;
}

fds_status fds__baseline(const fds_params *params, const fds__baseline_data *data, double *values,
                         double *errors, fds__baseline_report *report, const fds_events *events,
                         fds_error *err) {
    const baseline_method *m = baseline_find(params->method);
    double start_s = fds__now_s();
    if (!m)
        return fail_name(params->method, err);
    TRY(check_data(m, data, err));
    TRY(fds__baseline_check(params, fds_players_count(data->problem->players), err));
    const fds_params whole = baseline_complete(m, params);
    fds__baseline_report found = {.change = NAN};
    baseline_job job = {
        .params = &whole,
        .data = data,
        .classes = data->problem->train->classes,
        .players = fds_players_count(data->problem->players),
        .columns = params->scorer == FDS__SCORER_EACH_SAMPLE ? data->problem->test_count : 1,
        .values = values,
        .errors = errors,
        .report = &found,
        .events = events,
    };
    fds_status status = run(m, &job, err);
    baseline_job_free(&job);
    found.seconds = fds__now_s() - start_s;
    if (status == FDS_OK && report)
        *report = found;
    return status;
}
