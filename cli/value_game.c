/* SPDX-License-Identifier: Apache-2.0
 * fds value, from the options to filled tables: groups of players, coalitions, and the tables of
 * what the coalitions are worth. */
#include "value.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PER_PLAYER = 20, /* coalitions, unless the options say */
    LEAST_COALITIONS = 200,
    SURROGATE_TIMES = 20, /* as many coalitions for a surrogate's own values */
};

bool value_is_retrain(const char *kind) { return strncmp(kind, "retrain", 7) == 0; }

bool value_has_training(const char *kind) {
    return kind &&
           (value_is_retrain(kind) || strncmp(kind, "entk:", 5) == 0 || strstr(kind, "@model"));
}

bool value_has_network(const char *kind) {
    return value_has_training(kind) || (kind && strcmp(kind, "entk") == 0);
}

/* ---- groups ---- */

static fds_status make_groups(value_job *j, fds_error *err) {
    const char *by = j->o->group ? j->o->group : "label";
    if (!j->is_grouped && (j->is_exact || j->adjust == FDS_ADJUST_NONE))
        return FDS_OK;
    CLI_TRY(cli_groups_make(by, &j->setup, &j->params, j->term, &j->groups, err));
    if (j->is_grouped && fds_groups_count(j->groups) == 1)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--sampler %s needs two groups or more, and --group %s makes one of all "
                        "players",
                        j->o->sampler, by);
    return FDS_OK;
}

/* ---- plans ---- */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* How many coalitions a sampler can give: leverage repeats none. */
static size_t most_coalitions(const value_job *j) {
    size_t n = fds_players_count(j->setup.players);
    return j->sampler == FDS_SAMPLER_LEVERAGE && n < 32 ? ((size_t)1 << n) - 2 : SIZE_MAX;
}

bool value_saw_all(const value_job *j) { return fds_plan_rows(j->plan) - 2 == most_coalitions(j); }

uint64_t value_draw(const value_job *j) { return j->o->draw == UINT64_MAX ? 0 : j->o->draw; }

uint64_t value_draw_seed(const value_job *j) {
    /* any odd number would do; this one keeps the seeds of neighbouring draws far apart */
    return j->o->common.seed + value_draw(j) * 0x9E3779B97F4A7C15u;
}

static fds_status sample(const value_job *j, size_t count, fds_plan **out, fds_error *err) {
    return fds_plan_sample(j->sampler, fds_players_count(j->setup.players),
                           j->is_grouped ? j->groups : NULL, count, value_draw_seed(j), out, err);
}

static fds_status sample_plans(value_job *j, fds_error *err) {
    size_t n = fds_players_count(j->setup.players), count = (size_t)j->o->coalitions;
    if (n == 1)
        return cli_fail(err, FDS_ERR_USAGE,
                        "there is only one player, and nothing to sample: use --method exact");
    if (!count) {
        count = n * PER_PLAYER > LEAST_COALITIONS ? n * PER_PLAYER : LEAST_COALITIONS;
        count = least(count, most_coalitions(j));
    }
    fds_status status = sample(j, count, &j->plan, err);
    if (status == FDS_ERR_LIMIT)
        return cli_fail(err, status, "--coalitions %zu: %s", count, err->text);
    CLI_TRY(status);
    const fds_ls_params params = {.adjust = j->adjust, .groups = j->groups};
    CLI_TRY(fds_least_squares_check(j->plan, &params, err));
    if (!j->surrogate.kind || strncmp(j->surrogate.kind, "knn:", 4) == 0)
        return FDS_OK;
    /* plans of one seed are nested: the shorter plan's coalitions are among these */
    count = least(count * SURROGATE_TIMES, MOST_COALITIONS);
    return sample(j, least(count, most_coalitions(j)), &j->values_plan, err);
}

static fds_status make_plans(value_job *j, fds_error *err) {
    if (!j->is_exact)
        return sample_plans(j, err);
    fds_status status = fds_plan_exact(j->sampler, fds_players_count(j->setup.players),
                                       j->is_grouped ? j->groups : NULL, &j->plan, err);
    if (status == FDS_ERR_LIMIT)
        return cli_fail(err, status, "--method exact: %s (--method ls)", err->text);
    return status;
}

/* ---- tables ---- */

/* Whether a folder has anything in it but hidden files. */
static bool holds_something(const char *path) {
    DIR *dir = opendir(path);
    bool found = false;
    for (struct dirent *entry; dir && !found && (entry = readdir(dir));)
        found = entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return found;
}

/* plan NULL: whatever the baseline will ask for. */
static fds_status find_need(const value_job *j, value_game *g, const fds_plan *plan,
                            fds_error *err) {
    return plan ? fds_table_estimate(g->table, plan, value_threads(j), &g->need, err)
                : fds_baseline_estimate(&j->baseline, g->table, &g->need, err);
}

/* A table that is opened only to be looked at, in a folder which is removed again: so a table that
 * does not exist yet can say what it would take, on the disk where it would lie. */
static fds_status open_for_a_look(const value_job *j, value_game *g, const fds_plan *plan,
                                  fds_error *err) {
    char folder[VALUE_PATH_SIZE], path[VALUE_PATH_SIZE + 32];
    struct stat about;
    snprintf(folder, sizeof folder, "%s", g->dir);
    while (stat(folder, &about) != 0 && strcmp(folder, ".") != 0) {
        char *slash = strrchr(folder, '/');
        if (!slash)
            strcpy(folder, ".");
        else
            slash[slash == folder] = 0;
    }
    snprintf(path, sizeof path, "%s/.fds-XXXXXX", folder);
    if (!mkdtemp(path))
        return cli_fail(err, FDS_ERR_IO, "no table can be written in the folder %s", folder);
    fds_status status = fds_table_open(path, g->value, j->store, &j->term->events, &g->table, err);
    if (status == FDS_OK)
        status = find_need(j, g, plan, err);
    fds_table_free(g->table);
    g->table = NULL;
    static const char *const names[] = {"table.json", ".lock"};
    for (size_t i = 0; i < CLI_COUNT(names); i++) {
        char file[sizeof path + 16];
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        unlink(file);
    }
    rmdir(path);
    return status;
}

static fds_status open_table(value_job *j, value_game *g, fds_error *err) {
    fds_status status =
        fds_table_open(g->dir, g->value, j->store, &j->term->events, &g->table, err);
    if (status == FDS_ERR_USAGE)
        return cli_fail(err, status, "%s (--table DIR)", err->text);
    return status;
}

static fds_status open_and_plan(value_job *j, value_game *g, const fds_plan *plan, fds_error *err) {
    if (j->o->dry_run && !holds_something(g->dir))
        return open_for_a_look(j, g, plan, err);
    CLI_TRY(open_table(j, g, err));
    return find_need(j, g, plan, err);
}

const char *value_need_text(const value_job *j, const value_game *g, char out[VALUE_NEED_SIZE]) {
    char missing[CLI_NUMBER_SIZE], there[CLI_NUMBER_SIZE], all[CLI_NUMBER_SIZE];
    bool trains = value_is_retrain(g->kind);
    cli_count(g->need.missing, missing);
    cli_count(g->need.coalitions - g->need.missing, there);
    cli_count(g->need.coalitions, all);
    if (j->is_baseline)
        snprintf(out, VALUE_NEED_SIZE, "at most %s %s (the table has %s already)", all,
                 trains ? "sub-models to train" : "coalitions to compute", there);
    else
        snprintf(out, VALUE_NEED_SIZE, "%s %s (%s of %s are there already)", missing,
                 trains ? "sub-models to train" : "coalitions to compute", there, all);
    return out;
}

uint64_t value_memory(const value_job *j) {
    size_t columns = value_columns(j);
    uint64_t results = 2 * sizeof(double) * fds_players_count(j->setup.players) * columns;
    fds_ls_params params = {.adjust = j->adjust, .groups = j->groups};
    uint64_t solving =
        j->is_exact ? 0 : fds_least_squares_memory(j->plan, &params, columns, value_threads(j));
    uint64_t peak, resident = cli_resident_bytes(&peak); /* reading the data may have been more */
    uint64_t later = resident + results + solving + j->game.need.memory;
    return later > peak ? later : peak;
}

/* States what the work will take, and refuses what the disk cannot hold. */
static fds_status announce(const value_job *j, value_game *g, fds_error *err) {
    char what[VALUE_NEED_SIZE], disk[CLI_NUMBER_SIZE], left[CLI_NUMBER_SIZE];
    char memory[CLI_NUMBER_SIZE];
    const char *most = j->is_baseline ? "up to " : "";
    if (g == &j->surrogate) /* what the game's own table will have taken by then */
        g->need.disk_free -= j->game.need.disk;
    cli_bytes(g->need.disk, disk);
    cli_bytes(g->need.disk_free, left);
    if (g->need.disk > g->need.disk_free)
        return cli_fail(err, FDS_ERR_IO,
                        "%s: %s%s are needed, but the disk has only %s left; free some space, or "
                        "name a folder on another disk (--table DIR)",
                        g->dir, most, disk, left);
    if (!g->need.missing || j->o->dry_run)
        return FDS_OK;
    value_need_text(j, g, what);
    if (g == &j->surrogate)
        cli_note(j->term, "%s: %s", g->kind, what);
    else
        cli_note(j->term, "%s", what);
    if (g == &j->surrogate || j->is_baseline)
        cli_note(j->term, "%s%s on disk (%s free)", most, disk, left);
    else
        cli_note(j->term, "%s on disk (%s free), %s of memory", disk, left,
                 cli_bytes(value_memory(j), memory));
    return FDS_OK;
}

static fds_status create_value(value_job *j, value_game *g, fds_error *err) {
    const cli_setup *s = &j->setup;
    fds_utility_params params = j->params;
    params.kind = g->kind;
    params.network = s->network;
    return fds_utility_create(&params, s->train, s->players, cli_setup_tested(s), s->test_samples,
                              s->test_count, value_threads(j), &g->value, err);
}

static fds_status open_game(value_job *j, value_game *g, const fds_plan *plan, fds_error *err) {
    CLI_TRY(create_value(j, g, err));
    CLI_TRY(open_and_plan(j, g, plan, err));
    return announce(j, g, err);
}

/* Where the tables are: as --table says, or beside the output; that of "knn:5" in "TABLE.knn5". */
static void name_tables(value_job *j) {
    const value_options *o = j->o;
    if (o->table)
        snprintf(j->game.dir, sizeof j->game.dir, "%s", o->table);
    else
        snprintf(j->game.dir, sizeof j->game.dir, "%s.table", o->output ? o->output : "fds");
    if (!j->surrogate.kind)
        return;
    size_t len = strlen(j->game.dir); /* TABLE and TABLE/ are the same */
    while (len > 1 && j->game.dir[len - 1] == '/')
        len--;
    size_t word = strcspn(j->surrogate.kind, ":");
    const char *number = j->surrogate.kind + word + (j->surrogate.kind[word] == ':');
    snprintf(j->surrogate.dir, sizeof j->surrogate.dir, "%.*s.%.*s%s", (int)len, j->game.dir,
             (int)word, j->surrogate.kind, number);
}

fds_status value_open_game(value_job *j, bool is_kept, fds_error *err) {
    if (!is_kept)
        return j->game.kind ? create_value(j, &j->game, err) : FDS_OK;
    name_tables(j);
    return open_game(j, &j->game, NULL, err);
}

static const fds_plan *surrogate_plan(const value_job *j) {
    return j->values_plan ? j->values_plan : j->plan;
}

fds_status value_open_games(value_job *j, fds_error *err) {
    CLI_TRY(make_groups(j, err));
    CLI_TRY(make_plans(j, err));
    name_tables(j);
    CLI_TRY(open_game(j, &j->game, j->plan, err));
    if (!j->surrogate.kind)
        return FDS_OK;
    return open_game(j, &j->surrogate, surrogate_plan(j), err);
}

/* ---- filling ---- */

static fds_status fill(value_job *j, value_game *g, const fds_plan *plan, fds_error *err) {
    double start_s = cli_now_s();
    unsigned threads = value_threads(j);
    fds_status status = fds_table_fill(g->table, plan, threads, &j->term->events, err);
    g->seconds = cli_now_s() - start_s;
    fds_table_cost now;
    fds_error unused;
    if (status != FDS_ERR_CANCELLED ||
        fds_table_estimate(g->table, plan, threads, &now, &unused) != FDS_OK)
        return status;
    char kept[CLI_NUMBER_SIZE], all[CLI_NUMBER_SIZE];
    return cli_fail(err, status, "%s of %s are kept in %s; the same command goes on from there",
                    cli_count(now.coalitions - now.missing, kept), cli_count(now.coalitions, all),
                    g->dir);
}

fds_status value_fill_games(value_job *j, fds_error *err) {
    CLI_TRY(fill(j, &j->game, j->plan, err));
    return j->surrogate.kind ? fill(j, &j->surrogate, surrogate_plan(j), err) : FDS_OK;
}

static void close_game(value_game *g) {
    fds_table_free(g->table);
    fds_utility_free(g->value);
}

void value_close_games(value_job *j) {
    close_game(&j->game);
    close_game(&j->surrogate);
    fds_plan_free(j->plan);
    fds_plan_free(j->values_plan);
    fds_groups_free(j->groups);
}
