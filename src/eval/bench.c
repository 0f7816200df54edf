/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole benchmark: a case for each set of data and seed, one after the other, then the report.
 * Every mistake in the data shows before hours of work on another set. */
#include "eval/case.h"

#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = 3,
    TRUTH = 4000,
    QUICK_COALITIONS = 300,
    QUICK_PERMUTATIONS = 10,
    QUICK_TRUTH = 600,
    MOST = 64 /* methods, shares */
};

typedef struct {
    const char *dir;
    const char *const *sets;
    size_t set_count, seeds;
    const fds_params *params;
    const fds_events *events;
    char *text; /* what methods point into */
    const char *methods[MOST + 1];
    double shares[MOST];
    fds__bench_params settings;  /* as for the first seed */
    char (*dirs)[FDS__PATH_MAX]; /* (set_count * seeds) */
} bench;

static size_t case_count(const bench *b) { return b->set_count * b->seeds; }

/* ---- lists ---- */

/* "afds,beta:4,1 random": names, by commas or blanks; a comma within a name stays. */
static fds_status read_methods(bench *b, const char *text, fds_error *err) {
    size_t count = 0;
    char *at = b->text = fds__strdup(text);
    if (!at)
        return fds__fail_nomem(err, strlen(text) + 1);
    while (*(at += strspn(at, ", "))) {
        if (count == MOST)
            return fds__fail(err, FDS_ERR_USAGE, "`methods` must be at most %d", MOST);
        b->methods[count++] = at;
        at += strcspn(at, ", ");
        while (at[0] == ',' && at[1] >= '0' && at[1] <= '9') /* "beta:4,1" */
            at += 1 + strcspn(at + 1, ", ");
        if (*at)
            *at++ = 0;
    }
    if (!count)
        return fds__fail(err, FDS_ERR_USAGE, "`methods` names none (got \"%.60s\")", text);
    b->settings.methods = b->methods;
    return FDS_OK;
}

/* "5,10,20": per cent. */
static fds_status read_shares(bench *b, const char *text, fds_error *err) {
    double last = 0;
    size_t count = 0;
    for (const char *at = text; *at;) {
        char *end;
        double share = fds__read_double(at, &end);
        if (end == at || (*end && *end != ',') || !(share > last && share <= 100) || count == MOST)
            return fds__fail(err, FDS_ERR_USAGE,
                             "`remove` must be up to %d rising numbers above 0, at most 100, "
                             "separated by commas, for "
                             "example 5,10,20 (got %.60s)",
                             MOST, text);
        b->shares[count++] = share / 100;
        last = share;
        at = *end ? end + 1 : end;
    }
    b->settings.shares = b->shares;
    b->settings.share_count = count;
    return FDS_OK;
}

/* ---- what the parameters say ---- */

static fds_status read_params(bench *b, fds_error *err) {
    static const char *const explainers[] = {"mlp", "cnn", "resnet18", "resnet50", "linear"};
    const fds_params *p = b->params;
    fds__bench_params *s = &b->settings;
    const char *remove = p->remove ? p->remove : p->quick ? "5,10,15,20,50,100" : NULL;
    *s = fds__bench_params_default();
    b->seeds = p->seeds ? (size_t)p->seeds : p->quick ? 1 : SEEDS;
    if (p->methods)
        TRY(read_methods(b, p->methods, err));
    if (remove)
        TRY(read_shares(b, remove, err));
    s->is_both_ways = !p->top_only;
    s->explainer = explainers[p->explainer < 0 ? 0 : p->explainer];
    s->coalitions = p->coalitions ? (size_t)p->coalitions : p->quick ? QUICK_COALITIONS : 0;
    s->permutations = p->permutations ? (size_t)p->permutations
                      : p->quick      ? QUICK_PERMUTATIONS
                                      : s->permutations;
    s->truth = fds__is_given(p, truth) ? (size_t)p->truth : p->quick ? QUICK_TRUTH : TRUTH;
    s->flipped = p->flipped;
    s->threads = (unsigned)p->threads;
    return fds__bench_check(s, err);
}

/* The name that a set's folders and tables go by: the last part of a path, without what a file name ends in. */
static int name_of(const char *set, const char **start) {
    size_t length = strlen(set);
    while (length > 1 && set[length - 1] == '/')
        length--;
    const char *from = set + length;
    while (from > set && from[-1] != '/')
        from--;
    size_t size = (size_t)(set + length - from);
    const char *dot = memchr(from, '.', size);
    *start = from;
    return (int)(dot && dot > from ? (size_t)(dot - from) : size);
}

static fds_status name_folders(bench *b, fds_error *err) {
    if (strlen(b->dir) > FDS__PATH_MAX / 2)
        return fds__fail(err, FDS_ERR_USAGE, "path too long: %.100s...", b->dir);
    b->dirs = fds__alloc_zero(case_count(b), sizeof *b->dirs);
    if (!b->dirs)
        return fds__fail_nomem(err, case_count(b) * sizeof *b->dirs);
    for (size_t i = 0; i < b->set_count; i++)
        for (size_t k = 0; k < i; k++) {
            const char *one, *two;
            int size = name_of(b->sets[i], &one), other = name_of(b->sets[k], &two);
            if (size == other && memcmp(one, two, (size_t)size) == 0)
                return fds__fail(
                    err, FDS_ERR_USAGE,
                    "%s and %s go by the same name, \"%.*s\": compare them in two reports",
                    b->sets[k], b->sets[i], size, one);
        }
    for (size_t i = 0; i < case_count(b); i++) {
        const char *name;
        int size = name_of(b->sets[i / b->seeds], &name);
        snprintf(b->dirs[i], sizeof b->dirs[i], "%s/%.*s-%llu", b->dir,
                 MIN(size, FDS__PATH_MAX / 4), name,
                 (unsigned long long)(b->params->seed + i % b->seeds));
    }
    return FDS_OK;
}

/* ---- cases ---- */

/* The data, players and samples of a case. */
static fds_status open_case(const bench *b, size_t number, const fds_events *events,
                            fds_problem **out, fds_error *err) {
    fds_params p = *b->params;
    p.data = b->sets[number / b->seeds];
    p.seed += number % b->seeds;
    return fds_problem_open(&p, events, out, err);
}

/* Small providers may have nothing left with one seed and something with another, and then there is no common
 * report. */
static fds_status check_cases(const bench *b, fds_error *err) {
    size_t first = 0;
    for (size_t i = 0; i < case_count(b); i++) {
        const char *set = b->sets[i / b->seeds];
        fds_problem *problem = NULL;
        fds_error why = {0};
        fds_status status = open_case(b, i, NULL, &problem, &why);
        if (status == FDS_OK)
            status = fds__network_check(problem, fds__network_of(problem, b->params), NULL, &why);
        size_t players = status == FDS_OK ? fds_problem_players(problem) : 0;
        fds_problem_free(problem);
        if (status != FDS_OK) /* whose mistake is it? */
            return fds__fail(err, status, "%s%s%s", strstr(why.text, set) ? "" : set,
                             strstr(why.text, set) ? "" : ": ", why.text);
        first = i % b->seeds == 0 ? players : first;
        if (players != first)
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s: %zu providers have samples to learn from with the first seed, "
                             "%zu with another, and "
                             "their results cannot be joined; use `seeds` 1, or fewer `inputs`",
                             set, first, players);
    }
    return FDS_OK;
}

static fds_status run_case(const bench *b, size_t number, const fds_problem *problem,
                           fds_error *err) {
    char name[256];
    const char *start;
    int size = name_of(b->sets[number / b->seeds], &start);
    snprintf(name, sizeof name, "%.*s", size, start);
    fds__bench_params settings = b->settings;
    settings.network = fds__network_of(problem, b->params);
    settings.seed = b->params->seed + number % b->seeds;
    if (number % b->seeds) { /* what takes long and needs no repetition */
        settings.is_both_ways = false;
        settings.truth = 0;
        settings.flipped = 0;
    }
    const fds__bench_data data = {.name = name,
                                  .train = problem->train,
                                  .players = problem->players,
                                  .samples = problem->samples,
                                  .sample_count = problem->sample_count,
                                  .inputs = problem->inputs,
                                  .input_count = problem->input_count,
                                  .test = problem->test,
                                  .tests = problem->tests,
                                  .test_count = problem->test_count};
    fds_status status = fds__bench_case(b->dirs[number], &data, &settings, b->events, err);
    if (status == FDS_ERR_CANCELLED)
        return fds__fail(err, status,
                         "what is done is kept in %s; the same command goes on from there", b->dir);
    return status;
}

static fds_status run_cases(const bench *b, fds_error *err) {
    double start_s = fds__now_s();
    for (size_t i = 0; i < case_count(b); i++) {
        char so_far[32] = "";
        fds_problem *problem;
        if (i)
            snprintf(so_far, sizeof so_far, "; %.0f min so far", (fds__now_s() - start_s) / 60);
        fds__log(b->events, FDS_LOG_INFO, "case %zu of %zu: %s, seed %llu%s", i + 1, case_count(b),
                 b->sets[i / b->seeds], (unsigned long long)(b->params->seed + i % b->seeds),
                 so_far);
        TRY(open_case(b, i, b->events, &problem, err));
        fds_status status = run_case(b, i, problem, err);
        fds_problem_free(problem);
        TRY(status);
    }
    return FDS_OK;
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

static fds_status run(bench *b, const char *command, fds_error *err) {
    TRY(read_params(b, err));
    TRY(name_folders(b, err));
    TRY(check_cases(b, err));
    TRY(run_cases(b, err));
    return write_report(b, command, err);
}

fds_status fds_bench(const char *dir, const char *const *data, size_t count,
                     const fds_params *params, const char *command, const fds_events *events,
                     fds_error *err) {
    bench b = {.dir = dir, .sets = data, .set_count = count, .params = params, .events = events};
    fds_status status = run(&b, command, err);
    fds__free(b.text);
    fds__free(b.dirs);
    return status;
}
