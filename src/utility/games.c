/* SPDX-License-Identifier: Apache-2.0
 *
 * A game: the utility function of a problem's players, and the table of its answers. */
#include "utility/utility.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- which utility ---- */

/* Trains a network for each coalition. */
static bool is_retrain(const char *kind) { return kind && strncmp(kind, "retrain", 7) == 0; }

bool fds__has_training(const char *kind) {
    if (fds__command_of(kind))
        return false; /* whatever the program is called */
    return is_retrain(kind) || (kind && (strncmp(kind, "entk:", 5) == 0 || strstr(kind, "@model")));
}

bool fds__has_network(const char *kind) {
    return fds__has_training(kind) || (kind && strcmp(kind, "entk") == 0);
}

bool fds__is_by_provider(const fds_problem *problem, const fds_params *params) {
    return problem ? problem->by_provider
                   : params->players && strcmp(params->players, "providers") == 0 &&
                         params->group_value != 1;
}

fds_status fds__group_value_check(const fds_params *params, fds_error *err) {
    bool has_providers = params->players && strcmp(params->players, "providers") == 0;
    return fds__is_given(params, group_value) && !has_providers
               ? fds__fail(err, FDS_ERR_USAGE,
                           "`group_value` needs `players` providers: it says what the value of a "
                           "provider is")
               : FDS_OK;
}

const char *fds__network_of(const fds_problem *problem, const fds_params *params) {
    bool is_image = problem && problem->train->is_image;
    return params->model ? params->model : is_image ? "lenet5" : "mlp";
}

fds_status fds__network_check(const fds_problem *problem, const char *network, size_t *weights,
                              fds_error *err) {
    static const char *const presets[] = {"lenet5", "cnn", "mlp", "logistic", NULL};
    fds_net *net = NULL;
    if (!problem) /* its shape is not known yet */
        return FDS_OK;
    fds_status status = fds__net_for(network, problem->train, &net, err);
    if (status == FDS_OK && weights)
        *weights = fds_net_weights(net);
    fds_net_free(net);
    const char *nearest = status == FDS_ERR_USAGE ? fds_nearest(network, presets) : NULL;
    if (nearest && strcmp(nearest, network) != 0)
        return fds__fail(err, status, "`model` %.100s: did you mean \"%s\"?", network, nearest);
    return status;
}

/* The parameter "normalise", or its default. */
static fds__scaling normalise_by(const fds_problem *problem, const fds_params *params) {
    if (params->job == FDS__JOB_FIT && params->normalise >= 0)
        return (fds__scaling)params->normalise;
    if (!problem || !problem->identities)
        return FDS__NORMALISE_PLAYERS;
    return problem->train->bytes && !problem->train->targets ? FDS__NORMALISE_FIXED
                                                             : FDS__NORMALISE_PUBLIC;
}

fds__utility_params fds__utility_params_of(const fds_problem *problem, const fds_params *params,
                                           const char *kind) {
    fds__utility_params p = fds__utility_params_default();
    if (kind)
        p.kind = kind;
    p.network = fds__network_of(problem, params);
    p.train.lr = (float)params->lr;
    p.train.batch = (uint32_t)params->batch;
    p.train.optimizer = params->optimizer == 1 ? FDS_OPTIMIZER_SGD : FDS_OPTIMIZER_ADAM;
    p.train.seed = params->seed;
    p.beta = (float)params->beta;
    p.allow_noise = params->allow_noise;
    p.identities = problem ? problem->identities : NULL;
    p.normalise = normalise_by(problem, params);
    return p;
}

fds_status fds__utility_of(const fds_problem *problem, const fds__utility_params *params,
                           unsigned workers, fds_utility **out, fds_error *err) {
    return fds__utility_create(params, problem->train, problem->players, problem->test,
                               problem->tests, problem->test_count, workers, out, err);
}

fds_status fds_utility_create(const fds_problem *problem, const fds_params *params,
                              unsigned workers, fds_utility **out, fds_error *err) {
    const fds__utility_params p = fds__utility_params_of(problem, params, params->utility);
    return fds__utility_of(problem, &p, workers, out, err);
}

fds_status fds__check_even(const fds_params *params, fds_sampler sampler, fds_error *err) {
    if (sampler == FDS_SAMPLER_KERNEL || params->coalitions % 2 == 0)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_USAGE,
                     "`coalitions` must be even, because the sampler draws pairs of a coalition "
                     "and its complement (got %llu)",
                     (unsigned long long)params->coalitions);
}

fds_status fds__check_training(const fds_params *params, const char *kind, bool has_network,
                               bool has_training, fds_error *err) {
    const char *wrong = fds__is_given(params, model) && !has_network ? "model"
                        : has_training                               ? NULL
                        : fds__is_given(params, lr)                  ? "lr"
                        : fds__is_given(params, beta)                ? "beta"
                        : fds__is_given(params, batch)               ? "batch"
                        : fds__is_given(params, optimizer)           ? "optimizer"
                                                                     : NULL;
    if (wrong)
        return fds__fail(err, FDS_ERR_USAGE, "`%s` does not apply: %s%s trains no network", wrong,
                         kind ? "`utility` " : "method ", kind ? kind : params->method);
    if (params->allow_noise && !fds__command_of(kind))
        return fds__fail(err, FDS_ERR_USAGE, "`allow_noise` needs `utility` command:PROGRAM");
    if (fds__command_of(kind))
        TRY(fds__command_check(&(fds__utility_params){.kind = kind}, 0, err));
    if (fds__command_of(kind) && fds__is_by_model(params->group))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`group` %.60s needs a network as the service model, and `utility` command "
            "has none; use label, provider, all or a file",
            params->group);
    return FDS_OK;
}

fds_status fds__adjust_read(const char *text, fds_sampler sampler, fds_adjust *adjust,
                            const char **name, const char **surrogate, fds_error *err) {
    static const char *const words[] = {"none",   "shrink", "counts", "control",
                                        "kernel", "entk",   NULL};
    bool is_grouped = sampler == FDS_SAMPLER_GFDS || sampler == FDS_SAMPLER_GFDS_PLUS;
    char hint[FDS__HINT];
    if (!text)
        text = !is_grouped ? "counts" : sampler == FDS_SAMPLER_GFDS ? "shrink" : "none";
    bool is_knn = strncmp(text, "knn:", 4) == 0 && text[4] >= '1' && text[4] <= '9' &&
                  strlen(text + 4) < 8 && strspn(text + 4, "0123456789") == strlen(text + 4);
    *name = text;
    *surrogate = is_knn || strcmp(text, "kernel") == 0 || strcmp(text, "entk") == 0 ? text : NULL;
    *adjust = strcmp(text, "none") == 0      ? FDS_ADJUST_NONE
              : strcmp(text, "shrink") == 0  ? FDS_ADJUST_SHRINK
              : strcmp(text, "control") == 0 ? FDS_ADJUST_CONTROL
                                             : FDS_ADJUST_COUNTS;
    if (*adjust == FDS_ADJUST_COUNTS && !*surrogate && strcmp(text, "counts") != 0)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`adjust` must be none, shrink, counts, control, knn:K, kernel or entk (got %.60s)%s",
            text, fds__hint(text, words, hint));
    if (is_grouped && *adjust >= FDS_ADJUST_COUNTS)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`adjust` %s does not apply where whole groups are players; use none or shrink", text);
    return FDS_OK;
}

/* ---- how many coalitions ---- */

/* Seconds in which one core trains a sub-model on half of the players' samples and asks it about the
 * inputs. A model of the time, not a measurement, so that the same parameters give the same
 * coalitions on every machine. */
static fds_status sub_model_seconds(const fds_problem *problem, const fds__utility_params *params,
                                    size_t inputs, double *seconds, fds_error *err) {
    enum { CONVERGED = 60 };                        /* epochs until a sub-model has, about */
    const double flops_per_s = 60e9, step_s = 2e-6; /* each mini-batch takes a little longer */
    fds_train_params train;
    fds_net *net;
    TRY(fds__utility_training(params, &train, err));
    TRY(fds__net_for(params->network, problem->train, &net, err));
    double epochs = train.converge ? CONVERGED : train.epochs;
    double passes = epochs * (double)problem->sample_count / 2;
    *seconds = (passes * (double)fds_net_flops_train(net) +
                (double)inputs * (double)fds_net_flops_forward(net)) /
                   flops_per_s +
               passes / train.batch * step_s;
    fds_net_free(net);
    return FDS_OK;
}

size_t fds__most_coalitions(fds_sampler sampler, size_t players) {
    return sampler == FDS_SAMPLER_LEVERAGE && players < 32 ? ((size_t)1 << players) - 2
                                                           : FDS__MAX_ROWS - 2;
}

fds_status fds__default_coalitions(const fds_problem *problem, const fds__utility_params *params,
                                   fds_sampler sampler, size_t inputs, size_t *count,
                                   fds_error *err) {
    enum { PER_PLAYER = 20, LEAST = 1000, MOST_QUICK = 4096 };
    const double quick_s = 36; /* of one core */
    size_t players = fds_players_count(problem->players);
    double seconds = INFINITY;
    bool is_grouped = sampler == FDS_SAMPLER_GFDS || sampler == FDS_SAMPLER_GFDS_PLUS;
    if (is_retrain(params->kind) && !is_grouped)
        TRY(sub_model_seconds(problem, params, inputs, &seconds, err));
    size_t quick = (size_t)MIN(quick_s / seconds, (double)MOST_QUICK) / 2 * 2;
    size_t least = MAX(PER_PLAYER * players, (size_t)LEAST);
    *count = MIN(MAX(least, quick), fds__most_coalitions(sampler, players));
    return FDS_OK;
}

/* ---- groups ---- */

bool fds__is_by_model(const char *by) {
    return by && (strcmp(by, "model") == 0 || strncmp(by, "model:", 6) == 0);
}

/* By a service model, trained as the utility function trains the network of all players. */
static fds_status group_by_model(const char *number, const fds_problem *problem,
                                 const fds__utility_params *params, const fds_events *events,
                                 fds_groups **out, fds_error *err) {
    char *end = NULL;
    unsigned long count = number ? strtoul(number, &end, 10) : 0;
    if (number && (*number < '0' || *number > '9' || *end || count < 1 || count > UINT32_MAX))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`group` model:N needs a whole number from 1 (got model:%.60s)", number);
    fds_train_params train;
    fds_model *model = NULL;
    TRY(fds__utility_training(params, &train, err));
    TRY(fds_model_train(problem->train, problem->samples, problem->sample_count, params->network,
                        &train, events, &model, NULL, err));
    fds_status status = fds_groups_by_model(model, problem->train, problem->players, count,
                                            params->train.seed, out, err);
    fds_model_free(model);
    return status;
}

const char *fds__group_by(const fds_problem *problem, const fds_params *params,
                          fds_sampler sampler) {
    bool are_players = sampler == FDS_SAMPLER_GFDS || sampler == FDS_SAMPLER_GFDS_PLUS;
    if (params->group)
        return params->group;
    bool is_regression = problem && problem->train->targets;
    return (fds__is_by_provider(problem, params) || is_regression) && !are_players ? "all"
                                                                                   : "label";
}

/* One group of all players. */
static fds_status group_all(size_t players, fds_groups **out, fds_error *err) {
    static const char *const names[] = {"all"};
    OWNED uint32_t *group_of = NULL;
    TRY(NEW(group_of, players, err));
    return fds_groups_create(group_of, players, names, out, err);
}

fds_status fds__groups_for(const fds_problem *problem, const char *by,
                           const fds__utility_params *params, const fds_events *events,
                           fds_groups **out, fds_error *err) {
    static const char *const words[] = {"label", "provider", "model", "all", NULL};
    char hint[FDS__HINT];
    if (problem->groups)
        return fds__groups_copy(problem->groups, out, err);
    if (strcmp(by, "all") == 0)
        return group_all(fds_players_count(problem->players), out, err);
    if (strcmp(by, "label") == 0 && problem->train->targets)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`group` label needs classes, and `task` regression has none; use "
                         "provider, model, all or a file");
    if (strcmp(by, "label") == 0)
        return fds_groups_by_label(problem->train, problem->players, out, err);
    if (strcmp(by, "provider") == 0)
        return fds_groups_by_provider(problem->train, problem->players, out, err);
    if (fds__is_by_model(by))
        return group_by_model(by[5] ? by + 6 : NULL, problem, params, events, out, err);
    fds_status status = fds_groups_read(by, problem->players, out, err);
    if (status == FDS_ERR_NOT_FOUND)
        return fds__fail(err, FDS_ERR_NOT_FOUND,
                         "`group` must be label, provider, model, model:N, all or a file of lines "
                         "PLAYER,GROUP; there is no file %.100s%s",
                         by, fds__hint(by, words, hint));
    return status;
}

/* ---- tables ---- */

void fds__temporary_remove(const char *dir) {
    DIR *folder = opendir(dir);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[FDS__PATH_MAX + 300];
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        unlink(path); /* "." and ".." stay */
    }
    if (folder)
        closedir(folder);
    rmdir(dir);
}

fds_status fds__temporary_make(const char *path, char out[FDS__PATH_MAX], fds_error *err) {
    char folder[FDS__PATH_MAX];
    const char *home = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s", path ? path : home && *home ? home : "/tmp");
    while (!fds__path_is_dir(folder) && strcmp(folder, ".") != 0) {
        char *slash = strrchr(folder, '/');
        if (!slash)
            strcpy(folder, ".");
        else
            slash[slash == folder] = 0;
    }
    if ((size_t)snprintf(out, FDS__PATH_MAX, "%s/.fds-XXXXXX", folder) >= FDS__PATH_MAX ||
        !mkdtemp(out))
        return fds__fail(err, FDS_ERR_IO, "cannot write a table in the folder %s", folder);
    return FDS_OK;
}

/* Whether a folder has files other than hidden ones. */
static bool has_files(const char *path) {
    char **names;
    size_t count;
    if (!fds__path_is_dir(path) || fds__dir_list(path, &names, &count, NULL) != FDS_OK)
        return false;
    fds__dir_list_free(names, count);
    return count > 0;
}

/* Whoever has the table knows whose answers it has, and for which samples. */
static fds_status export_game(const fds__game *g, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, g->dir, FDS__EXPORT_SAMPLES, err));
    if (fds__path_exists(path))
        return FDS_OK;
    TRY(fds__export_initial(g->dir, g->utility, err));
    return fds__export_samples(g->dir, g->utility, "test", 0, err);
}

void fds__game_close(fds__game *g) {
    fds_table_free(g->table);
    fds_utility_free(g->utility);
    if (g->is_temporary)
        fds__temporary_remove(g->dir);
    *g = (fds__game){.kind = g->kind};
}

fds_status fds__game_open(fds__game *g, const fds_problem *problem, const fds_params *params,
                          const char *table, bool is_look, const fds_events *events,
                          fds_error *err) {
    fds__utility_params p = fds__utility_params_of(problem, params, g->kind);
    p.events = events;
    fds_store store = params->store == 1 ? FDS_STORE_F16 : FDS_STORE_F32;
    double start_s = fds__now_s();
    TRY(fds__utility_of(problem, &p, (unsigned)params->threads, &g->utility, err));
    g->seconds = fds__now_s() - start_s;
    if (table && (!is_look || has_files(table))) {
        if ((size_t)snprintf(g->dir, sizeof g->dir, "%s", table) >= sizeof g->dir)
            return fds__fail(err, FDS_ERR_USAGE, "path too long: %.100s...", table);
    } else {
        TRY(fds__temporary_make(table, g->dir, err));
        g->is_temporary = true;
    }
    TRY(fds_table_open(g->dir, g->utility, store, events, &g->table, err));
    return g->is_temporary ? FDS_OK : export_game(g, err);
}

/* ---- the estimate ---- */

uint64_t fds__memory_resident(uint64_t *peak) {
    unsigned long size = 0, resident = 0;
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    *peak = (uint64_t)usage.ru_maxrss * 1024;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static const char *show_bytes(uint64_t bytes, char out[32]) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.5; unit++)
        value /= 1000;
    snprintf(out, 32, "%.*f %s", unit && value < 99.95, value, units[unit]);
    return out;
}

fds_status fds__game_announce(const fds__game *g, bool is_most, uint64_t memory,
                              const fds_events *events, fds_error *err) {
    const fds_table_cost *c = &g->cost;
    char disk[32], left[32], space[48] = "";
    const char *what = is_retrain(g->kind) ? "sub-models to train" : "coalitions to compute";
    show_bytes(c->disk, disk);
    show_bytes(c->disk_free, left);
    if (c->disk > c->disk_free)
        return fds__fail(err, FDS_ERR_IO,
                         "%s: needs %s%s, the disk has only %s left; free some space, or "
                         "choose a `table` on another disk",
                         g->dir, is_most ? "up to " : "", disk, left);
    if (!c->missing)
        return FDS_OK;
    if (memory)
        snprintf(space, sizeof space, ", %s of memory", show_bytes(memory, (char[32]){0}));
    fds__log(events, FDS_LOG_INFO, "%s: %s%zu %s (%zu are there already)", g->kind,
             is_most ? "at most " : "", is_most ? c->coalitions : c->missing, what,
             c->coalitions - c->missing);
    fds__log(events, FDS_LOG_INFO, "%s%s on disk (%s free)%s", is_most ? "up to " : "", disk, left,
             space);
    return FDS_OK;
}

json_t *fds__game_json(const fds__game *g, bool is_filled) {
    const fds_table_cost *c = &g->cost;
    json_t *parameters = NULL;
    if (g->utility && fds__json_parse("parameters", g->utility->text, strlen(g->utility->text),
                                      &parameters, NULL) != FDS_OK)
        return NULL;
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "utility",
                     fds__json_string(g->kind), "coalitions", (json_int_t)c->coalitions, "missing",
                     (json_int_t)(g->earlier + c->missing), "disk", (json_int_t)c->disk,
                     "disk_free", (json_int_t)c->disk_free, "memory", (json_int_t)c->memory,
                     "seconds", is_filled ? fds__json_real(g->seconds) : json_null(), "table",
                     fds__json_string(g->dir[0] && !g->is_temporary ? g->dir : NULL), "parameters",
                     parameters ? parameters : json_null());
}

fds_status fds__game_fill(fds__game *g, const fds_plan *plan, unsigned threads,
                          const fds_events *events, fds_error *err) {
    double start_s = fds__now_s();
    fds_status status = fds_table_fill(g->table, plan, threads, events, err);
    g->seconds = (g->earlier ? g->seconds : 0) + fds__now_s() - start_s;
    fds_table_cost now;
    if (status != FDS_ERR_CANCELLED || g->is_temporary ||
        fds_table_estimate(g->table, plan, threads, &now, NULL) != FDS_OK)
        return status;
    return fds__fail(err, status, "%zu of %zu are kept in %s; run the same command again to resume",
                     now.coalitions - now.missing, now.coalitions, g->dir);
}

/* ---- from a filled table to values ---- */

fds_status fds__table_solve(const fds__solving *s, const uint32_t *labels, bool is_mean,
                            double *values, double *errors, fds_ls_report *report, fds_error *err) {
    fds_table_view *view;
    TRY(fds_table_view_create(s->table, s->plan, labels, is_mean, s->threads, &view, err));
    fds__table_view_aim(view, s->aim);
    const fds_rows rows = fds_table_view_rows(view);
    fds_status status = s->is_exact ? fds_exact(s->plan, &rows, s->threads, values, s->events, err)
                                    : fds_least_squares(s->plan, &rows, &s->ls, s->threads, values,
                                                        errors, report, s->events, err);
    fds_table_view_free(view);
    return status;
}

/* The variance of an exact value over that of an answer, sum over s of the squared coefficient of
 * v(s): 1/(n C(n-1, |s|-1)) with player i, 1/(n C(n-1, |s|)) without. The answer for no players has
 * no noise. */
static double exact_share(size_t n) {
    double binomial = 1, sum = 0;
    for (size_t k = 0; k < n; k++) {
        sum += 1 / binomial;
        binomial *= (double)(n - 1 - k) / (double)(k + 1);
    }
    return (2 * sum - 1) / ((double)n * (double)n);
}

static double noise_share(bool is_exact, bool is_grouped, size_t players) {
    double n = (double)players;
    return is_grouped ? 1 : is_exact ? exact_share(players) : 1 / n / n;
}

double fds__noise_floor(double noise, bool is_exact, bool is_grouped, size_t players) {
    return sqrt(noise_share(is_exact, is_grouped, players) * noise);
}

void fds__noise_add(double noise, bool is_exact, bool is_grouped, size_t players, size_t count,
                    double *errors) {
    const double share = noise_share(is_exact, is_grouped, players);
    for (size_t i = 0; noise > 0 && i < count; i++)
        errors[i] = sqrt(errors[i] * errors[i] + share * noise);
}

fds_status fds__table_ends(fds_table *table, const fds_plan *plan, double *empty, double *full,
                           fds_error *err) {
    fds_table_view *view;
    TRY(fds_table_view_create(table, plan, NULL, false, 1, &view, err));
    const fds_rows rows = fds_table_view_rows(view);
    fds_status status = rows.read(rows.context, 0, 0, 0, rows.columns, empty, err);
    if (status == FDS_OK)
        status = rows.read(rows.context, 0, 1, 0, rows.columns, full, err);
    fds_table_view_free(view);
    return status;
}

fds_status fds__plan_ends(size_t players, fds_plan **out, fds_error *err) {
    TRY(fds__plan_blank(players, 2, out, err));
    fds__coalition_complement(fds__plan_bits(*out, 0), players, fds__plan_bits(*out, 1));
    return FDS_OK;
}
