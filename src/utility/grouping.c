/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of players: by the labels of their samples, by provider, by a model's answers, or from a
 * file. The file is text, with one line for each player in any order:
 *
 *     # a comment; blank lines are skipped too
 *     player,group            (an optional heading)
 *     sample 17,hospital A
 *     18,hospital B           (a number alone is the sample of that number)
 *
 * Blanks around names are skipped. The last comma of a line separates the names: that of a player
 * may contain commas, that of a group may not. */
#include "utility/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 255, KMEANS_STEPS = 300 };      /* bytes of a name; at most so many steps */
static const size_t MAX_FILE = (size_t)256 << 20; /* bytes */

/* ---- from the data ---- */

fds_status fds_groups_by_label(const fds_dataset *ds, const fds_players *players, fds_groups **out,
                               fds_error *err) {
    const size_t n = fds_players_count(players);
    OWNED uint32_t *group_of = NULL;
    TRY(fds__players_check(ds, players, err));
    TRY(NEW(group_of, n, err));
    TRY(fds__players_labels(ds, players, group_of, err));
    return fds_groups_create(group_of, n, (const char *const *)ds->class_names, out, err);
}

static fds_status find_providers(const fds_dataset *ds, const fds_players *players,
                                 uint32_t *group_of, fds_error *err) {
    for (size_t p = 0; p < fds_players_count(players); p++) {
        const uint32_t *index;
        size_t count = fds_players_samples(players, p, &index);
        group_of[p] = ds->provider_ids[index[0]];
        for (size_t i = 1; i < count; i++)
            if (ds->provider_ids[index[i]] != group_of[p])
                return fds__fail(err, FDS_ERR_USAGE,
                                 "%s: player %s has sample %u of provider %s and sample %u of %s",
                                 ds->source, fds_players_name(players, p), index[0],
                                 fds_dataset_provider_name(ds, group_of[p]), index[i],
                                 fds_dataset_provider_name(ds, ds->provider_ids[index[i]]));
    }
    return FDS_OK;
}

fds_status fds_groups_by_provider(const fds_dataset *ds, const fds_players *players,
                                  fds_groups **out, fds_error *err) {
    if (!ds->provider_ids)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s names no providers; a CSV file has them in a column \"provider\"",
                         ds->source);
    TRY(fds__players_check(ds, players, err));
    const size_t n = fds_players_count(players);
    OWNED uint32_t *group_of = NULL;
    TRY(NEW(group_of, n, err));
    TRY(find_providers(ds, players, group_of, err));
    return fds_groups_create(group_of, n, (const char *const *)ds->provider_names, out, err);
}

/* ---- from a model ---- */

/* Adds the mean of probs over each player's samples to points (players, classes). */
static void average(const fds_players *players, const float *probs, size_t classes,
                    double *points) {
    for (size_t p = 0; p < fds_players_count(players); p++, points += classes) {
        const uint32_t *index;
        size_t count = fds_players_samples(players, p, &index);
        for (size_t i = 0; i < count * classes; i++)
            points[i % classes] += (double)*probs++ / (double)count;
    }
}

fds_status fds_groups_by_model(const fds_model *model, const fds_dataset *ds,
                               const fds_players *players, size_t count, uint64_t seed,
                               fds_groups **out, fds_error *err) {
    const size_t n = fds_players_count(players), classes = fds__model_get_info(model).classes;
    const uint32_t *index;
    OWNED double *points = NULL; /* (players, classes) */
    OWNED float *probs = NULL;   /* (samples, classes) */
    OWNED uint32_t *group_of = NULL;
    TRY(fds__players_check(ds, players, err));
    if (count > n)
        return fds__fail(err, FDS_ERR_USAGE, "%zu groups for %zu players: some would be empty",
                         count, n);
    if (!count)
        count = (size_t)lround(sqrt((double)n));
    size_t samples = fds__players_all_samples(players, &index);
    TRY(NEW(points, n * classes, err));
    TRY(NEW(probs, samples * classes, err));
    TRY(NEW(group_of, n, err));
    TRY(fds_model_predict(model, ds, index, samples, 1, probs, NULL, err));
    average(players, probs, classes, points);
    TRY(fds__kmeans(points, n, classes, count, seed, KMEANS_STEPS, group_of, err));
    return fds_groups_create(group_of, n, NULL, out, err);
}

/* ---- from a file ---- */

typedef struct {
    const char *name;
    uint32_t player;
} entry;

/* The state of reading a file. */
typedef struct {
    const char *path;
    size_t line;
    size_t count;
    entry *by_name;      /* (count), sorted */
    const char **groups; /* (count): of each player, or NULL */
    size_t *lines;       /* (count): the line of each player */
} reading;

static int by_name(const void *left, const void *right) {
    return strcmp(((const entry *)left)->name, ((const entry *)right)->name);
}

static const entry *find(const reading *r, const char *name) {
    const entry key = {name, 0};
    return bsearch(&key, r->by_name, r->count, sizeof key, by_name);
}

/* A number alone is the name of a player that is one sample. */
static const entry *find_player(const reading *r, const char *name) {
    const entry *found = find(r, name);
    char sample[32];
    if (!found && (size_t)snprintf(sample, sizeof sample, "sample %s", name) < sizeof sample)
        found = find(r, sample);
    return found;
}

/* The text without the blanks around it, in place. */
static char *trim(char *text) {
    text += strspn(text, " \t\r");
    size_t length = strlen(text);
    while (length && strchr(" \t\r", text[length - 1]))
        length--;
    text[length] = 0;
    return text;
}

static fds_status read_line(reading *r, char *line, bool *may_be_heading, fds_error *err) {
    line = trim(line);
    if (!*line || *line == '#')
        return FDS_OK;
    char *comma = strrchr(line, ',');
    if (!comma)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu: expected \"PLAYER,GROUP\", not \"%.60s\"", r->path, r->line,
                         line);
    *comma = 0;
    const char *player = trim(line), *group = trim(comma + 1);
    const entry *found = find_player(r, player);
    bool is_heading =
        *may_be_heading && !found && strcmp(player, "player") == 0 && strcmp(group, "group") == 0;
    *may_be_heading = false;
    if (is_heading)
        return FDS_OK;
    if (!found)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: there is no player \"%.60s\"", r->path,
                         r->line, player);
    if (!*group || strlen(group) > MAX_NAME)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu: a group's name must have 1 to %d bytes, not %zu", r->path,
                         r->line, MAX_NAME, strlen(group));
    if (r->groups[found->player])
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu: player \"%.60s\" is already in line %zu", r->path, r->line,
                         found->name, r->lines[found->player]);
    r->groups[found->player] = group;
    r->lines[found->player] = r->line;
    return FDS_OK;
}

static fds_status read_lines(reading *r, char *data, size_t size, const char *const *names,
                             fds_error *err) {
    bool may_be_heading = true;
    size_t mark = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* of UTF-8 */
    for (char *line = data + mark, *end = data + size; line < end;) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next : end;
        *next = 0; /* after the last line there is a NUL already */
        r->line++;
        if (line + strlen(line) < next)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: a NUL byte in a text file",
                             r->path, r->line);
        TRY(read_line(r, line, &may_be_heading, err));
        line = next + 1;
    }
    for (size_t p = 0; p < r->count; p++)
        if (!r->groups[p])
            return fds__fail(err, FDS_ERR_FORMAT, "%s: player \"%.60s\" is missing", r->path,
                             names[p]);
    return FDS_OK;
}

static fds_status make_groups(const reading *r, fds_groups **out, fds_error *err) {
    OWNED uint32_t *ids = NULL;
    fds__names names = {0};
    const fds__numbering by_bytes = {.limit = UINT32_MAX, .what = "group", .source = r->path};
    TRY(NEW(ids, r->count, err));
    fds_status status = fds__names_number(r->groups, r->count, &by_bytes, ids, &names, err);
    if (status == FDS_OK)
        status = fds_groups_create(ids, r->count, (const char *const *)names.items, out, err);
    fds__names_free(&names);
    return status;
}

fds_status fds__groups_parse(const char *path, char *data, size_t size, const char *const *names,
                             size_t n, fds_groups **out, fds_error *err) {
    OWNED entry *entries = NULL;
    OWNED const char **groups = NULL;
    OWNED size_t *lines = NULL;
    TRY(NEW(entries, n, err));
    TRY(NEW(groups, n, err));
    TRY(NEW(lines, n, err));
    for (size_t p = 0; p < n; p++)
        entries[p] = (entry){names[p], (uint32_t)p};
    qsort(entries, n, sizeof *entries, by_name);
    reading r = {path, 0, n, entries, groups, lines};
    TRY(read_lines(&r, data, size, names, err));
    return make_groups(&r, out, err);
}

fds_status fds__groups_read_names(const char *path, const char *const *names, size_t count,
                                  fds_groups **out, fds_error *err) {
    OWNED uint8_t *data = NULL;
    size_t size;
    TRY(fds__file_read(path, MAX_FILE, &data, &size, err));
    return fds__groups_parse(path, (char *)data, size, names, count, out, err);
}

fds_status fds_groups_read(const char *path, const fds_players *players, fds_groups **out,
                           fds_error *err) {
    const size_t n = fds_players_count(players);
    OWNED const char **names = NULL;
    TRY(NEW(names, n, err));
    for (size_t p = 0; p < n; p++)
        names[p] = fds_players_name(players, p);
    return fds__groups_read_names(path, names, n, out, err);
}
