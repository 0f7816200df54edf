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
 *   forget.made     the same, whole: everything else in the folder is removed but run.json, which keeps
 *                   every other command away
 *   forget.done     all else is removed: its files are moved up, run.json last, over the marked one
 *
 * Then the fit goes on in the folder as after any interruption, and trains what is missing. A command
 * that was killed finds out by these names where it stopped. Before forget.made is there, the copy is
 * made again; after that, nothing of the provider is needed any more. Before that, no other provider can be
 * forgotten, as the first one would stay. What cannot be fitted without the provider is refused before
 * the run is marked, and a lock of the folder keeps other such commands out. Until the run is complete,
 * "forgot" in run.json says what was removed:
 *
 *   provider                            SHA-256 of its name, by which the same command is known again
 *   players, samples, records, models   of the provider
 *   reused                              sub-models that stayed */
#include "explain/update.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
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

/* All names in a folder, hidden ones too, but its run.json; the caller frees *out. */
static fds_status list_all(const char *dir, fds__names *out, fds_error *err) {
    DIR *folder = io_fails() ? NULL : opendir(dir);
    if (!folder)
        return fail_at("open", dir, err);
    fds_status status = FDS_OK;
    while (status == FDS_OK) {
        errno = 0;
        const struct dirent *entry = io_fails() ? NULL : readdir(folder);
        if (!entry && errno)
            status = fail_at("read", dir, err);
        if (!entry)
            break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, FDS__RUN_JSON) != 0)
            status = fds__names_add(out, entry->d_name, err);
    }
    closedir(folder);
    return status;
}

/* Of a link, not of what it leads to. */
static bool has_type(const char *path, mode_t type) {
    struct stat about;
    return lstat(path, &about) == 0 && (about.st_mode & S_IFMT) == type;
}

static fds_status remove_tree(const char *path, fds_error *err);

/* What is in a folder, except its run.json and one more name. */
static fds_status remove_contents(const char *dir, const char *except, fds_error *err) {
    fds__names names = {0};
    char path[FDS__PATH_MAX];
    fds_status status = list_all(dir, &names, err);
    for (size_t i = 0; i < names.count && status == FDS_OK; i++) {
        if (except && strcmp(names.items[i], except) == 0)
            continue;
        status = fds__path_join(path, sizeof path, dir, names.items[i], err);
        if (status == FDS_OK)
            status = remove_tree(path, err);
    }
    fds__names_free(&names);
    return status == FDS_OK ? fds__dir_sync(dir, err) : status;
}

static fds_status remove_file(const char *path, fds_error *err) {
    return !io_fails() && (unlink(path) == 0 || errno == ENOENT) ? FDS_OK
                                                                 : fail_at("remove", path, err);
}

/* A link is removed, not followed. */
static fds_status remove_tree(const char *path, fds_error *err) {
    char json[FDS__PATH_MAX];
    if (!has_type(path, S_IFDIR))
        return remove_file(path, err);
    TRY(remove_contents(path, NULL, err));
    TRY(fds__path_join(json, sizeof json, path, FDS__RUN_JSON, err));
    TRY(remove_file(json, err));
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
    fds_status status = list_all(done, &names, err);
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

/* forget.made: everything else goes, but for run.json. */
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
    if (has_type(path, S_IFDIR))
        return move_up(dir, err);
    TRY(path_of(dir, MADE_FOLDER, path, err));
    return has_type(path, S_IFDIR) ? replace(dir, err) : FDS_OK;
}

/* ---- what stays ---- */

typedef struct {
    const char *provider;
    size_t players, samples, records, models;
    bool is_done; /* by an earlier command, and the run is not complete yet */
} removal;

/* What a link leads to would stay, and may belong to others. */
static fds_status check_links(const char *dir, fds_error *err) {
    fds__names names = {0};
    char path[FDS__PATH_MAX];
    fds_status status = list_all(dir, &names, err);
    if (status == FDS_OK)
        status = fds__names_add(&names, FDS__RUN_JSON, err);
    for (size_t i = 0; i < names.count && status == FDS_OK; i++) {
        status = path_of(dir, names.items[i], path, err);
        if (status == FDS_OK && has_type(path, S_IFLNK))
            status = fds__fail(err, FDS_ERR_USAGE,
                               "%s is a link, and what it leads to would stay: put that in its "
                               "place, or remove the link",
                               path);
    }
    fds__names_free(&names);
    return status;
}

/* The run looks incomplete from now on. */
static fds_status mark(const char *dir, json_t *json, const char *provider, fds_error *err) {
    json_object_del(json, "results");
    json_object_del(json, "checksum");
    bool is_whole =
        fds__json_put(json, "forgetting", fds__json_string(provider)) && fds__json_seal(json);
    return fds__json_write(dir, FDS__RUN_JSON, is_whole ? json : NULL, err);
}

static json_t *describe_forgot(const fds__update *u, const removal *gone) {
    char hex[65];
    fds_sha256_hex(gone->provider, strlen(gone->provider), hex);
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "provider", hex, "players",
                     (json_int_t)gone->players, "samples", (json_int_t)gone->samples, "records",
                     (json_int_t)gone->records, "models", (json_int_t)gone->models, "reused",
                     (json_int_t)u->reused);
}

/* Whether an earlier command has removed the provider. */
static void read_forgot(fds__update *u, const json_t *json, removal *gone) {
    const json_t *forgot = json_object_get(json, FDS__FORGOT);
    const char *provider = json_string_value(json_object_get(forgot, "provider"));
    char hex[65];
    fds_sha256_hex(gone->provider, strlen(gone->provider), hex);
    gone->is_done = provider && strcmp(provider, hex) == 0;
    if (!gone->is_done)
        return;
    gone->players = (size_t)json_integer_value(json_object_get(forgot, "players"));
    gone->samples = (size_t)json_integer_value(json_object_get(forgot, "samples"));
    gone->records = (size_t)json_integer_value(json_object_get(forgot, "records"));
    gone->models = (size_t)json_integer_value(json_object_get(forgot, "models"));
    u->reused = (size_t)json_integer_value(json_object_get(forgot, "reused"));
}

static fds_status describe(fds__update *u, const char *dir, const removal *gone, fds_error *err) {
    json_t *description;
    TRY(fds__run_record_describe(&u->settings, u->problem, u->fit, u->groups, u->utility,
                                 &description, err));
    fds_status status = fds__json_put(description, FDS__FORGOT, describe_forgot(u, gone))
                            ? fds__run_record_write(dir, description, &u->settings, NULL, NULL, err)
                            : fds__fail_json(err);
    json_decref(description);
    return status;
}

/* Copies what stays, then puts it in the place of all else. The old table stays locked. */
static fds_status separate(fds__update *u, removal *gone, fds_error *err) {
    char new[FDS__PATH_MAX], made[FDS__PATH_MAX];
    TRY(path_of(u->dir, NEW_FOLDER, new, err));
    TRY(path_of(u->dir, MADE_FOLDER, made, err));
    TRY(fds__update_compare(u, err));
    TRY(fds__fit_check_explainer(&u->settings, u->problem, u->groups, err));
    TRY(check_links(u->dir, err));
    TRY(mark(u->dir, u->json, u->forgotten, err));
    TRY(remove_tree(new, err));
    TRY(fds__update_reuse(u, new, err));
    fds_table_free(u->table);
    u->table = NULL;
    gone->records = u->records - u->reused;
    gone->models = u->models > u->models_kept ? u->models - u->models_kept : 0;
    TRY(describe(u, new, gone, err));
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
static void count_owned(const json_t *json, removal *gone) {
    const json_t *list = json_object_get(json, "players");
    for (size_t p = 0; p < json_array_size(list); p++) {
        const json_t *player = json_array_get(list, p);
        const char *name = fds__update_owner(player);
        if (!name || strcmp(name, gone->provider) != 0)
            continue;
        gone->players++;
        gone->samples += json_array_size(json_object_get(player, "samples"));
    }
}

static json_t *describe_removed(const removal *gone) {
    return json_pack("{s:o, s:{s:I, s:I, s:I, s:I}}", "provider", fds__json_string(gone->provider),
                     "removed", "players", (json_int_t)gone->players, "samples",
                     (json_int_t)gone->samples, "records", (json_int_t)gone->records, "models",
                     (json_int_t)gone->models);
}

static fds_status fail_unknown(const char *dir, const json_t *json, const char *provider,
                               fds_error *err) {
    const char *near = fds__update_nearest(json, provider);
    return fds__fail(
        err, FDS_ERR_NOT_FOUND, "%s has no provider \"%.100s\": nothing of it is there%s%.100s%s",
        dir, provider, near ? " (the nearest name is \"" : "", near ? near : "", near ? "\")" : "");
}

/* Whether the provider can be forgotten now: how much of it there is. */
static fds_status find(fds__update *u, removal *gone, fds_error *err) {
    json_t *json;
    TRY(fds__run_record_json(u->dir, &json, err));
    const char *begun = json_string_value(json_object_get(json, "forgetting"));
    fds_status status = FDS_OK;
    read_forgot(u, json, gone);
    if (!gone->is_done)
        count_owned(json, gone);
    if (begun && strcmp(begun, gone->provider) != 0)
        status =
            fds__fail(err, FDS_ERR_CONFLICT,
                      "%s: the removal of \"%.100s\" was interrupted: run fds forget with that "
                      "provider again first",
                      u->dir, begun);
    else if (!gone->players)
        status = fail_unknown(u->dir, json, gone->provider, err);
    json_decref(json);
    return status;
}

static fds_status run(fds__update *u, const char *provider, char **report, fds_error *err) {
    removal gone = {.provider = provider};
    char *text = NULL;
    TRY(resume(u->dir, err));
    TRY(find(u, &gone, err));
    if (!gone.is_done)
        u->forgotten = provider;
    TRY(fds__update_open(u, err));
    if (!gone.is_done)
        TRY(separate(u, &gone, err));
    TRY(fds_fit(u->dir, u->problem, u->fit, u->events, report ? &text : NULL, err));
    if (!report)
        return FDS_OK;
    *report = text;
    return fds__update_report(u, describe_removed(&gone), report, err);
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
