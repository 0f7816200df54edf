/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that other programs have computed, as a method of a benchmark: the parameter "values",
 * "NAME=PATH" in each of its lines. A file has the values of one case; a folder has a file for each
 * case, CASE.npy or CASE.csv, "mnist-0.npy". Values of the game with wrong labels are in a file
 * whose name goes on with "-flipped" (of the k-th repetition, "-flipped-k"); without one, mislabel
 * detection is not measured.
 *
 *   .npy  numbers, of shape (players), (tests, players), or as fds value writes them: (2, players)
 *         and (2, tests, players), values before standard errors
 *   .csv  a line per player, with or without a header. The column "value", or the only one, or the
 *         last; the column "player" (or the first of several) has names or numbers of players;
 *         without it, lines are in the order of the players
 *
 * Values of each test sample stand for the label that is explained, whichever it is. */
#include "eval/eval.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#define MAX_BYTES ((size_t)1 << 30)

/* ---- which file ---- */

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Of the game in the folder dir of a case, or in CASE/flipped-1 within it. */
static fds_status name_file(const eval_game *g, const eval_method *m, char out[FDS__PATH_MAX],
                            fds_error *err) {
    char dir[FDS__PATH_MAX], suffix[32] = "", stem[FDS__PATH_MAX];
    const char *ending = strrchr(m->path, '.');
    snprintf(dir, sizeof dir, "%s", g->dir);
    if (strncmp(last_part(dir), "flipped", 7) == 0) {
        snprintf(suffix, sizeof suffix, "-%.24s", last_part(dir));
        *strrchr(dir, '/') = 0;
    }
    if (!fds__path_is_dir(m->path)) {
        snprintf(out, FDS__PATH_MAX, "%.*s%s%s", (int)(ending - m->path), m->path, suffix, ending);
        return FDS_OK;
    }
    snprintf(stem, sizeof stem, "%.200s%s.npy", last_part(dir), suffix);
    TRY(fds__path_join(out, FDS__PATH_MAX, m->path, stem, err));
    if (!fds__path_exists(out))
        strcpy(out + strlen(out) - 4, ".csv");
    return FDS_OK;
}

fds_status eval_outside_find(const eval_game *g, const eval_method *m, bool *is_there,
                             fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(name_file(g, m, path, err));
    *is_there = fds__path_exists(path);
    return FDS_OK;
}

/* ---- arrays ---- */

static fds_status read_npy(const eval_game *g, const fds__blob *file, double **values,
                           bool *is_per_sample, fds_error *err) {
    size_t dims[4] = {0}, n = g->players, tests = g->tests;
    unsigned rank;
    TRY(fds__npy_doubles(file, dims, &rank, values, err));
    bool is_flat = rank == 1 || (rank == 2 && dims[1] == 1);
    bool is_global = (is_flat && dims[0] == n) || (rank == 2 && dims[0] == 2 && dims[1] == n);
    *is_per_sample = (rank == 2 && dims[0] == tests && dims[1] == n && n > 1) ||
                     (rank == 3 && dims[0] == 2 && dims[1] == tests && dims[2] == n);
    if (is_global && *is_per_sample && rank == 2)
        *is_per_sample = false; /* two test samples: as fds value writes them */
    if (is_global || *is_per_sample)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_SHAPE,
                     "%s: an array of %zu%s; it must have the shape (%zu), one value per player, "
                     "or (%zu, %zu), test samples times players",
                     file->path, dims[0], rank > 1 ? " and more dimensions" : " numbers", n, tests,
                     n);
}

/* ---- tables ---- */

/* The player of a text: a number from 0, or a name. */
static bool find_player(const eval_game *g, const char *text, size_t *out) {
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    *out = number;
    if (isdigit((unsigned char)*text) && !*end && number < g->players)
        return true;
    for (*out = 0; *out < g->players; ++*out)
        if (strcmp(fds_players_name(g->problem->players, *out), text) == 0)
            return true;
    return false;
}

static bool read_number(const char *text, double *out) {
    char *end;
    *out = fds__read_double(text, &end);
    return *text && !*end;
}

typedef struct {
    size_t value, player; /* columns; player SIZE_MAX: none */
    size_t count;
} columns;

/* Reads a line into texts; the first of them is at the scanner. */
static fds_status read_line(fds__scanner *s, char *texts[EVAL_MOST], size_t *count,
                            fds_error *err) {
    fds__field fields[EVAL_MOST];
    bool is_last = false;
    size_t line = s->line;
    for (*count = 0; !is_last; ++*count) {
        if (*count == EVAL_MOST)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: more than %d fields", s->path,
                             line, EVAL_MOST);
        TRY(fds__scan_field(s, &fields[*count], &is_last, err));
    }
    for (size_t i = 0; i < *count; i++)
        texts[i] = fds__field_text(&fields[i]);
    return FDS_OK;
}

/* Whether the line is a header, whose names say which column is which. */
static bool read_header(char *const *texts, size_t count, columns *out) {
    double number;
    *out = (columns){count - 1, count > 1 ? 0 : SIZE_MAX, count};
    bool is_header = !read_number(texts[count - 1], &number);
    bool has_value = false, has_player = false;
    for (size_t i = 0; i < count; i++) {
        has_value |= strcmp(texts[i], "value") == 0;
        has_player |= strcmp(texts[i], "player") == 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (has_value && strcmp(texts[i], "value") == 0)
            out->value = i;
        if (has_player && strcmp(texts[i], "player") == 0)
            out->player = i;
    }
    return is_header || has_value;
}

static fds_status take_line(const eval_game *g, const char *path, size_t line, char *const *texts,
                            size_t count, const columns *c, size_t number, double *values,
                            bool *is_known, fds_error *err) {
    size_t player = number;
    double value;
    if (count != c->count)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: %zu fields, the first line has %zu",
                         path, line, count, c->count);
    if ((c->player != SIZE_MAX && !find_player(g, texts[c->player], &player)) ||
        player >= g->players)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu: \"%.60s\" is no player; there are %zu, from 0, the first "
                         "is \"%.60s\"",
                         path, line, c->player != SIZE_MAX ? texts[c->player] : "one more line",
                         g->players, fds_players_name(g->problem->players, 0));
    if (!read_number(texts[c->value], &value))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: \"%.60s\" is not a number", path, line,
                         texts[c->value]);
    if (is_known[player])
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: \"%.60s\" has two values", path, line,
                         fds_players_name(g->problem->players, player));
    is_known[player] = true;
    values[player] = value;
    return FDS_OK;
}

static fds_status read_csv(const eval_game *g, const fds__blob *file, double **values,
                           fds_error *err) {
    OWNED bool *is_known = NULL;
    fds__scanner s;
    columns c = {0};
    char *texts[EVAL_MOST];
    size_t number = 0, count;
    TRY(NEW(*values, g->players, err));
    TRY(NEW(is_known, g->players, err));
    TRY(fds__scan_begin(file, 0, &s, err));
    while (fds__scan_line(&s)) {
        size_t line = s.line;
        TRY(read_line(&s, texts, &count, err));
        if (!c.count && read_header(texts, count, &c))
            continue;
        TRY(take_line(g, file->path, line, texts, count, &c, number, *values, is_known, err));
        number++;
    }
    if (number != g->players)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %zu values; there are %zu players", file->path,
                         number, g->players);
    return FDS_OK;
}

/* ---- either ---- */

static fds_status check_finite(const eval_game *g, const char *path, const double *values,
                               size_t rows, fds_error *err) {
    for (size_t i = 0; i < rows * g->players; i++)
        if (!isfinite(values[i]))
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: the value of player %zu%s is not a finite number", path,
                             i % g->players, rows > 1 ? " for a test sample" : "");
    return FDS_OK;
}

fds_status eval_outside_read(const eval_game *g, const eval_method *m, double **values,
                             bool *is_per_sample, uint64_t *checksum, fds_error *err) {
    char path[FDS__PATH_MAX];
    fds__blob file = {.path = path};
    *values = NULL;
    *is_per_sample = false;
    TRY(name_file(g, m, path, err));
    TRY(fds__file_read(path, MAX_BYTES, &file.data, &file.size, err));
    size_t length = strlen(path);
    *checksum = fds_checksum(file.data, file.size); /* the reader of CSV changes bytes */
    fds_status status = strcmp(path + length - 4, ".csv") == 0
                            ? read_csv(g, &file, values, err)
                            : read_npy(g, &file, values, is_per_sample, err);
    if (status == FDS_OK)
        status = check_finite(g, path, *values, *is_per_sample ? g->tests : 1, err);
    fds__free(file.data);
    if (status != FDS_OK) {
        fds__free(*values);
        *values = NULL;
    }
    return status;
}

fds_status eval_outside_answer(const eval_game *g, const eval_method *m, double *values,
                               fds_error *err) {
    OWNED double *found = NULL; /* (players) or (tests, players) */
    bool is_per_sample;
    uint64_t unused;
    TRY(eval_outside_read(g, m, &found, &is_per_sample, &unused, err));
    if (is_per_sample != m->is_per_sample) /* of flipped labels: the mean, or the same for all */
        return fds__fail(err, FDS_ERR_SHAPE,
                         "`values` %s: all its files must have values of the same kind, one per "
                         "player, or one per player and test sample",
                         m->name);
    if (is_per_sample)
        fds__transpose(found, g->tests, g->players, values);
    else
        memcpy(values, found, g->players * sizeof *values);
    return FDS_OK;
}

/* ---- by name ---- */

/* The name becomes part of file names, and must not be that of another method. */
fds_status eval_outside_add(eval_lists *lists, const char *text, size_t length, fds_error *err) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-";
    eval_method m = {.kind = REPORT_OTHER, .is_outside = true}, known;
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : 0, path = equals ? length - name - 1 : 0;
    if (!name || !path || name >= sizeof m.base || path >= sizeof m.path ||
        strspn(text, letters) != name || text[0] == '.')
        return fds__fail(err, FDS_ERR_USAGE,
                         "`values` must be NAME=FILE, the name of at most 39 letters, digits or "
                         "_.+-, for example mine=values.npy (got %.*s)",
                         (int)MIN(length, (size_t)100), text);
    snprintf(m.name, sizeof m.name, "%.*s", (int)name, text);
    snprintf(m.title, sizeof m.title, "%.*s", (int)name, text);
    snprintf(m.path, sizeof m.path, "%.*s", (int)path, equals + 1);
    if (eval_method_find(m.name, &known, NULL) == FDS_OK || eval_has_method(lists, m.name))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`values` %s: another method has this name; choose another one", m.name);
    const char *ending = strrchr(m.path, '.');
    bool is_file = ending && (strcmp(ending, ".npy") == 0 || strcmp(ending, ".csv") == 0);
    if (!fds__path_exists(m.path))
        return fds__fail(err, FDS_ERR_NOT_FOUND, "`values` %s: there is no file %s", m.name,
                         m.path);
    if (!is_file && !fds__path_is_dir(m.path))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`values` %s: %s must end in .npy or .csv, or be a folder of such files",
                         m.name, m.path);
    if (lists->method_count == EVAL_MOST)
        return fds__fail(err, FDS_ERR_USAGE, "`methods` must be at most %d", EVAL_MOST);
    lists->methods[lists->method_count++] = m;
    return FDS_OK;
}
