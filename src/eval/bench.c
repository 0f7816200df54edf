/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole benchmark: a case for each data set and seed, one after the other, then the report. All
 * data sets are opened and checked before the first case begins. The ranks of an MPI job take cases in
 * turn, and rank 0 writes the report. */
#include "eval/eval.h"

enum {
    SEEDS = 3,
    PERMUTATIONS = 40,
    TRUTH = 4000,
    LDS = 100,
    LDS_SEEDS = 3,
    LOSS_SEEDS = 1,
    FLIPPED_SEEDS = 5,
    QUICK_COALITIONS = 300,
    QUICK_PERMUTATIONS = 10,
    QUICK_TRUTH = 600,
    QUICK_LDS = 40,
    QUICK_LDS_SEEDS = 2,
    QUICK_FLIPPED_SEEDS = 1,
    NAME = 256
};

typedef struct {
    const char *dir;
    const char *const *sets;
    size_t set_count;
    fds_params params; /* of the first seed */
    const fds_events *events;
    char (*dirs)[FDS__PATH_MAX]; /* (case_count) */
} bench;

static size_t case_count(const bench *b) { return b->set_count * b->params.seeds; }
static const char *set_of(const bench *b, size_t number) {
    return b->sets[number / b->params.seeds];
}

/* ---- parameters ---- */

static fds_params complete(const fds_params *params) {
    fds_params p = *params;
    if (!p.seeds)
        p.seeds = p.quick ? 1 : SEEDS;
    if (!p.remove)
        p.remove = p.quick ? "5,10,15,20,50,100" : "5,10,15,20,40,70,100";
    if (!p.coalitions && p.quick)
        p.coalitions = QUICK_COALITIONS;
    if (!p.permutations)
        p.permutations = p.quick ? QUICK_PERMUTATIONS : PERMUTATIONS;
    if (!fds__is_given(&p, truth))
        p.truth = p.quick ? QUICK_TRUTH : TRUTH;
    if (!fds__is_given(&p, lds))
        p.lds = p.quick ? QUICK_LDS : LDS;
    if (!fds__is_given(&p, lds_seeds))
        p.lds_seeds = p.quick ? QUICK_LDS_SEEDS : LDS_SEEDS;
    if (!fds__is_given(&p, loss_seeds))
        p.loss_seeds = LOSS_SEEDS;
    if (!p.flipped_seeds)
        p.flipped_seeds = p.quick ? QUICK_FLIPPED_SEEDS : FLIPPED_SEEDS;
    return p;
}

/* The other removals, and the loss from other initial networks, take long and need no repetition:
 * they are measured with the first seed only. Flipped labels are spread over the seeds, so that the
 * first ones may have one more. */
static fds_params params_of(const bench *b, size_t number) {
    fds_params p = b->params;
    uint64_t seed = number % p.seeds;
    p.data = set_of(b, number);
    p.seed += seed;
    p.top_only |= seed > 0;
    p.loss_seeds = seed > 0 ? 0 : p.loss_seeds;
    p.flipped_seeds = (b->params.flipped_seeds + p.seeds - 1 - seed) / p.seeds;
    if (!p.flipped_seeds)
        p.flipped = 0;
    return p;
}

/* The name of a data set in folders and tables: the last part of its path, without extensions. */
static const char *name_of(const char *set, char name[NAME]) {
    size_t length = strlen(set), start;
    while (length > 1 && set[length - 1] == '/')
        length--;
    for (start = length; start > 0 && set[start - 1] != '/';)
        start--;
    snprintf(name, NAME, "%.*s", (int)(length - start), set + start);
    char *dot = strchr(name, '.');
    if (dot && dot > name)
        *dot = 0;
    return name;
}

static fds_status name_folders(bench *b, fds_error *err) {
    char name[NAME], other[NAME];
    if (strlen(b->dir) > FDS__PATH_MAX / 2)
        return fds__fail(err, FDS_ERR_USAGE, "path too long: %.100s...", b->dir);
    for (size_t i = 0; i < b->set_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(name_of(b->sets[i], name), name_of(b->sets[k], other)) == 0)
                return fds__fail(
                    err, FDS_ERR_USAGE,
                    "%s and %s have the same name, \"%s\": compare them in two reports", b->sets[k],
                    b->sets[i], name);
    b->dirs = fds__alloc_zero(case_count(b), sizeof *b->dirs);
    if (!b->dirs)
        return fds__fail_nomem(err, case_count(b) * sizeof *b->dirs);
    for (size_t i = 0; i < case_count(b); i++)
        snprintf(b->dirs[i], sizeof b->dirs[i], "%s/%s-%llu", b->dir, name_of(set_of(b, i), name),
                 (unsigned long long)params_of(b, i).seed);
    return FDS_OK;
}

/* ---- cases ---- */

/* The number of players of a case whose data and network are right. */
static fds_status check_case(const bench *b, size_t number, size_t *players, fds_error *err) {
    const fds_params params = params_of(b, number);
    fds_problem *problem;
    TRY(fds_problem_open(&params, NULL, &problem, err));
    fds_status status = fds__network_check(problem, fds__network_of(problem, &params), NULL, err);
    *players = fds_problem_players(problem);
    fds_problem_free(problem);
    return status;
}

/* With another seed a small provider may have no samples left: such cases cannot be joined. */
static fds_status check_cases(const bench *b, fds_error *err) {
    size_t first = 0, players;
    for (size_t i = 0; i < case_count(b); i++) {
        const char *set = set_of(b, i);
        fds_error why = {0};
        fds_status status = check_case(b, i, &players, &why);
        if (status != FDS_OK) { /* the message names the data set */
            bool is_named = strstr(why.text, set) != NULL;
            return fds__fail(err, status, "%s%s%s", is_named ? "" : set, is_named ? "" : ": ",
                             why.text);
        }
        first = i % b->params.seeds == 0 ? players : first;
        if (players != first)
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s: %zu providers have samples to learn from with the first seed, "
                             "%zu with another, and their results cannot be joined; use `seeds` 1, "
                             "or fewer `inputs`",
                             set, first, players);
    }
    return FDS_OK;
}

static fds_status run_case(const bench *b, size_t number, fds_error *err) {
    const fds_params params = params_of(b, number);
    char name[NAME];
    fds_problem *problem;
    TRY(fds_problem_open(&params, b->events, &problem, err));
    fds_status status =
        eval_case(b->dirs[number], name_of(params.data, name), problem, &params, b->events, err);
    fds_problem_free(problem);
    if (status == FDS_ERR_CANCELLED)
        return fds__fail(err, status,
                         "finished work is kept in %s; run the same command again to resume",
                         b->dir);
    return status;
}

static fds_status run_cases(const bench *b, fds_error *err) {
    double start_s = fds__now_s();
    fds__ranks_divide();
    for (size_t i = fds_ranks_number(); i < case_count(b); i += fds_ranks_count()) {
        char so_far[32] = "";
        if (i != fds_ranks_number())
            snprintf(so_far, sizeof so_far, "; %.0f min so far", (fds__now_s() - start_s) / 60);
        fds__log(b->events, FDS_LOG_INFO, "case %zu of %zu: %s, seed %llu%s", i + 1, case_count(b),
                 set_of(b, i), (unsigned long long)params_of(b, i).seed, so_far);
        TRY(run_case(b, i, err));
    }
    return fds__ranks_meet(b->events, err);
}

static fds_status write_report(const bench *b, const char *command, fds_error *err) {
    const char **dirs = fds__alloc_zero(case_count(b), sizeof *dirs);
    if (!dirs)
        return fds__fail_nomem(err, case_count(b) * sizeof *dirs);
    for (size_t i = 0; i < case_count(b); i++)
        dirs[i] = b->dirs[i];
    fds_status status = fds_bench_report(b->dir, dirs, case_count(b), command, err);
    fds__free(dirs);
    return status;
}

/* A file has the values of one case. */
static fds_status check_outside(const bench *b, const eval_lists *lists, fds_error *err) {
    char name[NAME];
    for (size_t i = 0; i < lists->method_count && case_count(b) > 1; i++)
        if (lists->methods[i].is_outside && !fds__path_is_dir(lists->methods[i].path))
            return fds__fail(err, FDS_ERR_USAGE,
                             "`values` %s: %s has the values of one case, and there are %zu; use "
                             "`seeds` 1 and one data set, or a folder with %s-%llu.npy and so on",
                             lists->methods[i].name, lists->methods[i].path, case_count(b),
                             name_of(set_of(b, 0), name), (unsigned long long)b->params.seed);
    return FDS_OK;
}

static fds_status run(bench *b, const char *command, fds_error *err) {
    eval_lists unused;
    TRY(eval_lists_read(&b->params, &unused, err));
    TRY(check_outside(b, &unused, err));
    TRY(name_folders(b, err));
    TRY(check_cases(b, err));
    TRY(run_cases(b, err));
    return fds_ranks_number() ? FDS_OK : write_report(b, command, err);
}

static fds_status export_case(const bench *b, size_t number, fds_error *err) {
    const fds_params params = params_of(b, number);
    char name[NAME];
    fds_problem *problem;
    TRY(fds_problem_open(&params, b->events, &problem, err));
    eval_game g = {.name = name_of(params.data, name), .problem = problem, .params = params};
    snprintf(g.dir, sizeof g.dir, "%s", b->dirs[number]);
    fds_status status = eval_game_make(&g, false, err);
    if (status == FDS_OK)
        status = eval_task_write(&g, err);
    eval_game_free(&g);
    fds_problem_free(problem);
    return status;
}

fds_status fds_bench_export(const char *dir, const char *const *data, size_t count,
                            const fds_params *params, const fds_events *events, fds_error *err) {
    bench b = {
        .dir = dir, .sets = data, .set_count = count, .params = complete(params), .events = events};
    fds_status status = name_folders(&b, err);
    if (status == FDS_OK)
        status = check_cases(&b, err);
    for (size_t i = 0; status == FDS_OK && i < case_count(&b); i++) {
        fds__log(events, FDS_LOG_INFO, "task %zu of %zu: %s", i + 1, case_count(&b), b.dirs[i]);
        status = export_case(&b, i, err);
    }
    fds__free(b.dirs);
    return status;
}

fds_status fds_bench(const char *dir, const char *const *data, size_t count,
                     const fds_params *params, const char *command, const fds_events *events,
                     fds_error *err) {
    bench b = {
        .dir = dir, .sets = data, .set_count = count, .params = complete(params), .events = events};
    fds_status status = run(&b, command, err);
    fds__free(b.dirs);
    return status;
}
