/* SPDX-License-Identifier: Apache-2.0
 *
 * A provider is forgotten: nothing that its data had a part in stays in the folder of the run.
 *
 * No file is changed in its place. What stays is copied to a folder within the run, which then takes
 * the place of everything else; each step begins with one rename or one new run.json:
 *
 *   run.json without results, "forgetting": its name    the run is not complete from now on
 *   forget.new      being made: a table and a bank of the sub-models without the provider, and a
 *                   run.json without results
 *   forget.made     the same, whole: everything else in the folder is removed
 *   forget.done     all else is removed: its files are moved up, run.json last
 *
 * Then the fit goes on in the folder as after any interruption, and trains what is missing. A command
 * that was killed finds out by these names where it stopped. Before forget.made is there, the copy is
 * made again; after that, nothing of the provider is needed any more. Before that, no other provider can be
 * forgotten, as the first one would stay. What cannot be fitted without the provider is refused before
 * the run is marked, and a lock of the folder keeps other such commands out. */
#include "explain/update.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define NEW_FOLDER "forget.new"
#define MADE_FOLDER "forget.made"
#define DONE_FOLDER "forget.done"

/* ---- folders ---- */

static fds_status fail_at(const char *verb, const char *path, fds_error *err) {
    return fds__fail_errno(err, verb, path);
}

static bool io_fails(void) {
    if (!fds__fault(FDS__FAULT_IO))
        return false;
    errno = EIO;
    return true;
}

static fds_status remove_folder(const char *path, fds_error *err) {
    return !io_fails() && rmdir(path) == 0 ? FDS_OK : fail_at("remove", path, err);
}

/* Two of these commands at once would remove each other's files. File systems that cannot lock a folder
 * go without. *fd is -1 or to be closed. */
static fds_status lock(const char *dir, int *fd, fds_error *err) {
    *fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return fds__fail(err, FDS_ERR_IO, "%s is in use by another process", dir);
    return FDS_OK;
}

/* All names in a folder, hidden ones too, except one; the caller frees *out. */
static fds_status list_all(const char *dir, const char *except, fds__names *out, fds_error *err) {
    DIR *folder = io_fails() ? NULL : opendir(dir);
    if (!folder)
        return fail_at("open", dir, err);
    fds_status status = FDS_OK;
    for (struct dirent *entry; status == FDS_OK && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            (!except || strcmp(entry->d_name, except) != 0))
            status = fds__names_add(out, entry->d_name, err);
    closedir(folder);
    return status;
}

static fds_status remove_tree(const char *path, fds_error *err);

/* What is in a folder, except one name. */
static fds_status remove_contents(const char *dir, const char *except, fds_error *err) {
    fds__names names = {0};
    char path[FDS__PATH_MAX];
    fds_status status = list_all(dir, except, &names, err);
    for (size_t i = 0; i < names.count && status == FDS_OK; i++) {
        status = fds__path_join(path, sizeof path, dir, names.items[i], err);
        if (status == FDS_OK)
            status = remove_tree(path, err);
    }
    fds__names_free(&names);
    return status == FDS_OK ? fds__dir_sync(dir, err) : status;
}

static fds_status remove_tree(const char *path, fds_error *err) {
    if (!fds__path_is_dir(path))
        return !io_fails() && (unlink(path) == 0 || errno == ENOENT) ? FDS_OK
                                                                     : fail_at("remove", path, err);
    TRY(remove_contents(path, NULL, err));
    return remove_folder(path, err);
}

/* ---- from one folder to the other ---- */

static fds_status path_of(const char *dir, const char *name, char out[FDS__PATH_MAX],
                          fds_error *err) {
    return fds__path_join(out, FDS__PATH_MAX, dir, name, err);
}

/* forget.done: its files go up, run.json last. */
static fds_status move_up(const char *dir, fds_error *err) {
    char done[FDS__PATH_MAX], from[FDS__PATH_MAX], to[FDS__PATH_MAX];
    fds__names names = {0};
    TRY(path_of(dir, DONE_FOLDER, done, err));
    fds_status status = list_all(done, FDS__RUN_JSON, &names, err);
    if (status == FDS_OK)
        status = fds__names_add(&names, FDS__RUN_JSON, err);
    for (size_t i = 0; i < names.count && status == FDS_OK; i++) {
        if (path_of(done, names.items[i], from, err) != FDS_OK || !fds__path_exists(from))
            continue;
        if (i + 1 == names.count) /* all others are there for good */
            status = fds__dir_sync(dir, err);
        if (status == FDS_OK)
            status = path_of(dir, names.items[i], to, err);
        if (status == FDS_OK)
            status = fds__file_rename(from, to, err);
    }
    fds__names_free(&names);
    TRY(status);
    TRY(remove_folder(done, err));
    return fds__dir_sync(dir, err);
}

/* forget.made: everything else goes. */
static fds_status replace(const char *dir, fds_error *err) {
    char made[FDS__PATH_MAX], done[FDS__PATH_MAX];
    TRY(path_of(dir, MADE_FOLDER, made, err));
    TRY(path_of(dir, DONE_FOLDER, done, err));
    TRY(remove_contents(dir, MADE_FOLDER, err));
    TRY(fds__file_rename(made, done, err));
    TRY(fds__dir_sync(dir, err));
    return move_up(dir, err);
}

/* Ends what an interrupted command has begun, if that was whole. */
static fds_status resume(const char *dir, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(path_of(dir, DONE_FOLDER, path, err));
    if (fds__path_is_dir(path))
        return move_up(dir, err);
    TRY(path_of(dir, MADE_FOLDER, path, err));
    return fds__path_is_dir(path) ? replace(dir, err) : FDS_OK;
}

/* ---- what stays ---- */

/* The run looks incomplete from now on. */
static fds_status mark(const char *dir, json_t *json, const char *provider, fds_error *err) {
    json_object_del(json, "results");
    json_object_del(json, "checksum");
    bool is_whole =
        fds__json_put(json, "forgetting", fds__json_string(provider)) && fds__json_seal(json);
    return fds__json_write(dir, FDS__RUN_JSON, is_whole ? json : NULL, err);
}

static fds_status describe(fds__update *u, const char *dir, fds_error *err) {
    json_t *description;
    TRY(fds__run_record_describe(&u->settings, u->problem, u->fit, u->groups, u->utility,
                                 &description, err));
    fds_status status = fds__run_record_write(dir, description, &u->settings, NULL, NULL, err);
    json_decref(description);
    return status;
}

/* Copies what stays, then puts it in the place of all else. The old table stays locked. */
static fds_status separate(fds__update *u, fds_error *err) {
    char new[FDS__PATH_MAX], made[FDS__PATH_MAX];
    TRY(path_of(u->dir, NEW_FOLDER, new, err));
    TRY(path_of(u->dir, MADE_FOLDER, made, err));
    TRY(fds__update_compare(u, err));
    TRY(mark(u->dir, u->json, u->forgotten, err));
    TRY(remove_tree(new, err));
    TRY(fds__update_reuse(u, new, err));
    fds_table_free(u->table);
    u->table = NULL;
    TRY(describe(u, new, err));
    TRY(fds__dir_sync(new, err));
    TRY(fds__file_rename(new, made, err));
    TRY(fds__dir_sync(u->dir, err));
    TRY(replace(u->dir, err));
    fds_table_free(u->from);
    u->from = NULL;
    return FDS_OK;
}

/* ---- who goes ---- */

/* Players and samples of the provider; of data without providers, of the player of that name. */
static void count_owned(const json_t *json, const char *provider, size_t *players,
                        size_t *samples) {
    const json_t *list = json_object_get(json, "players");
    *players = *samples = 0;
    for (size_t p = 0; p < json_array_size(list); p++) {
        const json_t *player = json_array_get(list, p);
        const char *name = fds__update_owner(player);
        if (!name || strcmp(name, provider) != 0)
            continue;
        ++*players;
        *samples += json_array_size(json_object_get(player, "samples"));
    }
}

/* The name of a class, and its output of every sub-model, may be the provider's alone. */
static fds_status check_classes(const fds__update *u, fds_error *err) {
    const fds_dataset *parts[] = {u->train, u->test};
    OWNED bool *has_samples = NULL;
    TRY(RESERVE(has_samples, u->train->classes, 1, err));
    for (size_t i = 0; i < 2 && parts[i]; i++)
        for (size_t k = 0; k < parts[i]->count; k++)
            has_samples[parts[i]->labels[k]] = true;
    for (uint32_t c = 0; c < u->train->classes; c++)
        if (!has_samples[c])
            return fds__fail(err, FDS_ERR_USAGE,
                             "class \"%.60s\" is known from samples of \"%.60s\" alone, and every "
                             "sub-model has an output for it: remove its rows from %s first; all "
                             "sub-models are then trained again",
                             fds_dataset_class_name(u->train, c), u->forgotten, u->train->source);
    return FDS_OK;
}

static json_t *describe_removed(const fds__update *u, const char *provider, size_t players,
                                size_t samples) {
    return json_pack(
        "{s:o, s:{s:I, s:I, s:I, s:I}}", "provider", fds__json_string(provider), "removed",
        "players", (json_int_t)players, "samples", (json_int_t)samples, "records",
        players ? (json_int_t)(u->records - u->reused) : (json_int_t)0, "models",
        players && u->models > u->models_kept ? (json_int_t)(u->models - u->models_kept)
                                              : (json_int_t)0);
}

static fds_status fail_unknown(const char *dir, const json_t *json, const char *provider,
                               fds_error *err) {
    const char *near = fds__update_nearest(json, provider);
    return fds__fail(
        err, FDS_ERR_NOT_FOUND, "%s has no provider \"%.100s\": nothing of it is there%s%.100s%s",
        dir, provider, near ? " (the nearest name is \"" : "", near ? near : "", near ? "\")" : "");
}

/* Whether the provider can be forgotten now: how much of it there is. */
static fds_status find(const char *dir, const char *provider, size_t *players, size_t *samples,
                       fds_error *err) {
    json_t *json;
    TRY(fds__run_record_json(dir, &json, err));
    count_owned(json, provider, players, samples);
    const char *begun = json_string_value(json_object_get(json, "forgetting"));
    fds_status status = FDS_OK;
    if (begun && strcmp(begun, provider) != 0)
        status =
            fds__fail(err, FDS_ERR_CONFLICT,
                      "%s: the removal of \"%.100s\" was interrupted: run fds forget with that "
                      "provider again first",
                      dir, begun);
    else if (!*players && json_object_get(json, "results"))
        status = fail_unknown(dir, json, provider, err);
    json_decref(json);
    return status;
}

static fds_status run(fds__update *u, const char *provider, char **report, fds_error *err) {
    size_t players, samples;
    char *text = NULL;
    TRY(resume(u->dir, err));
    TRY(find(u->dir, provider, &players, &samples, err));
    if (players)
        u->forgotten = provider;
    TRY(fds__update_open(u, err));
    if (players) {
        TRY(check_classes(u, err));
        TRY(separate(u, err));
    }
    TRY(fds_fit(u->dir, u->problem, u->fit, u->events, report ? &text : NULL, err));
    if (!report)
        return FDS_OK;
    *report = text;
    return fds__update_report(u, describe_removed(u, provider, players, samples), report, err);
}

fds_status fds_forget(const char *dir, const char *provider, const fds_params *params,
                      const fds_events *events, char **report, fds_error *err) {
    fds__update u = {.dir = dir, .params = params, .events = events};
    int fd = -1;
    if (!provider || !*provider)
        return fds__fail(err, FDS_ERR_USAGE, "name the provider that is to be forgotten");
    const char *fault = fds__name_fault(provider);
    if (fault) /* it may not be printed */
        return fds__fail(err, FDS_ERR_USAGE, "the provider that is to be forgotten: %s", fault);
    fds_status status = lock(dir, &fd, err);
    if (status == FDS_OK)
        status = run(&u, provider, report, err);
    if (fd >= 0)
        close(fd);
    fds__update_free(&u);
    return status;
}
