/* SPDX-License-Identifier: Apache-2.0
 *
 * What the members of a cluster earn apart, and what it earns as one player: the mean of their shares
 * over test samples, under the rule clip. Two games, in this order:
 *
 *   bank    what the run pays, against the values of the cluster by its sub-models (explain/joined.c)
 *   knn:5   of data without a run, and of a run that cannot value the cluster: providers are the players
 *           of a game of nearest neighbours, with and without the cluster. It shows what copying earns
 *           where only neighbours count, and not what that run would pay. */
#include "audit/copies.h"

#include <math.h>

static const char GAME[] = "knn:5";
enum { MOST_INPUTS = 200, MOST_ENUMERATED = 12 };

typedef struct {
    const fds_dataset *train, *test;
    const uint32_t *part_of;
    const fds_params *params;
    const fds_events *events;
    copies_paid *paid;
} job;

void copies_paid_free(copies_paid *paid) {
    fds__free(paid->apart);
    fds__free(paid->as_one);
    *paid = (copies_paid){0};
}

/* Adds the clipped shares of one prediction to sums. */
static void add_shares(const double *values, size_t players, double *sums) {
    double total = 0;
    for (size_t i = 0; i < players; i++)
        total += MAX(values[i], 0);
    for (size_t i = 0; i < players; i++)
        sums[i] += total > 0 ? MAX(values[i], 0) / total : 1 / (double)players;
}

/* Where shares of players by name go: to providers, or to the first members of clusters. */
static void keep(const job *j, bool is_joined, const char *name, double share) {
    for (uint32_t p = 0; p < j->train->providers; p++) {
        char joined[FDS__CLUSTER_NAME];
        const char *own = is_joined ? fds__cluster_name(j->train->provider_names, j->part_of,
                                                        j->train->providers, p, joined)
                                    : j->train->provider_names[p];
        if ((!is_joined || j->part_of[p] == p) && strcmp(own, name) == 0)
            (is_joined ? j->paid->as_one : j->paid->apart)[p] = share;
    }
}

static void forget(const job *j) {
    for (uint32_t p = 0; p < j->train->providers; p++)
        j->paid->apart[p] = j->paid->as_one[p] = NAN;
}

/* Whether all clusters, and all their members, have shares. */
static bool is_complete(const job *j) {
    bool is_whole = true;
    for (uint32_t p = 0; p < j->train->providers; p++)
        if (j->part_of[p] != p)
            is_whole &= isfinite(j->paid->apart[p]) && isfinite(j->paid->apart[j->part_of[p]]) &&
                        isfinite(j->paid->as_one[j->part_of[p]]);
    return is_whole;
}

/* ---- by the run ---- */

static fds_status ask(const job *j, fds_run *run, bool is_joined, fds_error *err) {
    const size_t count = MIN(j->test->count, (size_t)MOST_INPUTS),
                 players = fds__run_get_info(run).players;
    OWNED uint32_t *index = NULL, *labels = NULL;
    OWNED double *values = NULL, *sums = NULL;
    TRY(NEW(index, count, err));
    TRY(NEW(labels, count, err));
    TRY(NEW(values, count * players, err));
    TRY(NEW(sums, players, err));
    for (size_t i = 0; i < count; i++) /* all over the test part, which may be in order */
        index[i] = (uint32_t)(i * j->test->count / count);
    const fds__answers answers = {.labels = labels, .values = values};
    TRY(fds__run_explain(run, FDS__ANSWERER_EXPLAINER, j->test, index, count, false, &answers,
                         err));
    for (size_t i = 0; i < count; i++)
        add_shares(values + i * players, players, sums);
    for (size_t i = 0; i < players; i++)
        keep(j, is_joined, fds__run_player_name(run, i), sums[i] / (double)count);
    j->paid->inputs = count;
    return FDS_OK;
}

static fds_status pay_run(const job *j, const char *dir, fds_error *err) {
    fds_run *run;
    fds__text text = {0};
    if (!j->test || j->train->targets)
        return fds__fail(err, FDS_ERR_USAGE, "the data has no test part with labels");
    TRY(fds__run_open(dir, (unsigned)j->params->threads, &run, err));
    fds_status status = ask(j, run, false, err);
    if (status == FDS_OK)
        status = copies_clusters(j->train, j->part_of, &text, err);
    if (status == FDS_OK)
        status = fds__run_join(
            run,
            &(fds__blob){.path = "these clusters", .data = (uint8_t *)text.data, .size = text.used},
            err);
    if (status == FDS_OK)
        status = ask(j, run, true, err);
    fds__free(text.data);
    fds_run_free(run);
    if (status == FDS_OK && !is_complete(j))
        return fds__fail(err, FDS_ERR_USAGE, "%s does not have these providers as players", dir);
    return status;
}

/* ---- by neighbours ---- */

static fds_status solve(const job *j, const fds_dataset *train, const fds_params *params,
                        bool is_joined, fds_error *err) {
    fds_problem *problem = NULL;
    fds_result *result = NULL;
    OWNED double *sums = NULL;
    TRY(NEW(sums, train->providers, err));
    fds_status status = fds_problem_create(train, j->test, params, j->events, &problem, err);
    if (status == FDS_OK)
        status = fds_shapley(problem, params, NULL, j->events, &result, err);
    if (status == FDS_OK) {
        const size_t players = fds_problem_players(problem), count = result->predictions;
        for (size_t k = 0; k < count; k++)
            add_shares(result->values + k * players, players, sums);
        for (size_t i = 0; i < players; i++)
            keep(j, is_joined, fds_problem_player(problem, i), sums[i] / (double)count);
        j->paid->inputs = count;
    }
    fds_result_free(result);
    fds_problem_free(problem);
    return status;
}

static fds_status set_params(const job *j, fds_params *params, fds_error *err) {
    char seed[32], threads[32], tests[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)j->params->seed);
    snprintf(threads, sizeof threads, "%llu", (unsigned long long)j->params->threads);
    snprintf(tests, sizeof tests, "%zu",
             MIN(j->test ? j->test->count : (size_t)MOST_INPUTS, (size_t)MOST_INPUTS));
    const char *const all[][2] = {
        {"players", "providers"},
        {"utility", GAME},
        {"seed", seed},
        {"threads", threads},
        {"method", j->train->providers <= MOST_ENUMERATED ? "exact" : "ls"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        TRY(fds_params_set(params, all[i][0], all[i][1], err));
    return j->test ? fds_params_set(params, "test", tests, err) : FDS_OK;
}

static fds_status pay_neighbours(const job *j, fds_error *err) {
    fds_dataset *joined = NULL;
    fds_params *params = fds_params_create("value");
    fds_status status =
        params ? set_params(j, params, err) : fds__fail_nomem(err, sizeof(fds_params));
    if (status == FDS_OK)
        status = solve(j, j->train, params, false, err);
    if (status == FDS_OK)
        status = fds__dataset_relabel(j->train, j->train->labels, &joined, err);
    if (status == FDS_OK)
        status = fds__clusters_join(joined, j->part_of, err);
    if (status == FDS_OK)
        status = solve(j, joined, params, true, err);
    fds_dataset_free(joined);
    fds_params_free(params);
    return status;
}

/* ---- either ---- */

fds_status copies_pay(const char *run, const fds_dataset *train, const fds_dataset *test,
                      const uint32_t *part_of, const fds_params *params, const fds_events *events,
                      copies_paid *out, fds_error *err) {
    fds_events silent = events ? *events : (fds_events){0}; /* its notes are of no use here */
    silent.log = NULL;
    const job j = {train, test, part_of, params, &silent, out};
    fds_error why = {.text = "no run was named"};
    TRY(NEW(out->apart, train->providers, err));
    TRY(NEW(out->as_one, train->providers, err));
    forget(&j);
    fds_status status = run ? pay_run(&j, run, &why) : FDS_ERR_USAGE;
    if (status != FDS_OK && status != FDS_ERR_USAGE)
        return fds__fail(err, status, "%s", why.text);
    if (status == FDS_OK) {
        strcpy(out->game, "bank");
        return FDS_OK;
    }
    snprintf(out->reason, sizeof out->reason, "%s", why.text);
    forget(&j);
    if (train->targets)
        return FDS_OK; /* votes of neighbours need labels */
    strcpy(out->game, GAME);
    return pay_neighbours(&j, err);
}
