/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapley values of games that a file gives (given.c): no data, no training.
 *
 * With groups there are two games to choose from. "player": a group is one player, so the coalitions
 * count that have each group whole or not at all. "points": the players of the file play, and the
 * value of a group is the sum over its members, which no splitting of a group changes.
 *
 * A game of all 2^n coalitions (n up to 20) has exact values. Of another one they are estimated by
 * least squares over the coalitions that are there: sizes are strata, so that it does not matter how
 * often each size occurs, as long as the coalitions of a size were chosen at random. The empty and
 * the full coalition must be there. */
#include "utility/given.h"

#include <math.h>
#include <stdlib.h>

static const size_t MAX_FILE = (size_t)512 << 20; /* bytes */
enum { BY_PLAYER, BY_POINTS };                    /* group_value */

typedef struct {
    const fds_params *params;
    const fds_events *events;
    fds__given file;
    fds_groups *groups; /* of the file's players; NULL: none */
    size_t *chosen;     /* (chosen_count) numbers of games */
    size_t chosen_count;
    bool is_exact; /* all of them */
    json_t *games; /* how each was valued */
} job;

/* A game as it is played: by the players of the file or by groups. */
typedef struct {
    size_t players, words, rows;
    uint64_t *bits;    /* (rows, words) */
    double *utilities; /* (rows) */
    double empty, full;
    fds_ls_report report;
} played;

static void played_free(played *p) {
    fds__free(p->bits);
    fds__free(p->utilities);
}

static bool is_merged(const job *j) { return j->groups && j->params->group_value != BY_POINTS; }

/* ---- parameters ---- */

static fds_status check(const fds_params *p, fds_error *err) {
    TRY(fds__params_only(p, "utilities game group group_value method seed threads", "utilities",
                         err));
    if (p->method && strcmp(p->method, "ls") != 0 && strcmp(p->method, "exact") != 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`method` must be ls or exact with `utilities` (got %.60s)", p->method);
    if (fds__is_given(p, group_value) && !p->group)
        return fds__fail(err, FDS_ERR_USAGE, "`group_value` needs `group` with `utilities`");
    return FDS_OK;
}

fds_status fds__given_check(const fds_params *params, fds_error *err) { return check(params, err); }

/* ---- groups ---- */

static size_t find_player(const job *j, const char *name) {
    for (size_t i = 0; i < j->file.players.count; i++)
        if (strcmp(j->file.players.items[i], name) == 0)
            return i;
    return SIZE_MAX;
}

/* "NAME=PLAYER+PLAYER": its members get the name. */
static fds_status add_group(const job *j, char *text, const char **of, fds_error *err) {
    char *equals = strchr(text, '='), *at = equals ? equals + 1 : NULL;
    if (!equals || equals == text)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`group` must be NAME=PLAYER+PLAYER,... or a file of lines PLAYER,GROUP "
                         "(got %.100s)",
                         text);
    *equals = 0;
    const char *name = fds__name_trim(text);
    while (at) {
        char *plus = strchr(at, '+'), *member = at;
        if (plus)
            *plus = 0;
        member = fds__name_trim(member);
        size_t player = find_player(j, member);
        if (player == SIZE_MAX)
            return fds__fail(err, FDS_ERR_USAGE, "`group` %.60s: %s has no player \"%.100s\"", name,
                             j->file.path, member);
        if (of[player])
            return fds__fail(err, FDS_ERR_USAGE, "`group`: \"%.100s\" is in %.60s and in %.60s",
                             member, of[player], name);
        of[player] = name;
        at = plus ? plus + 1 : NULL;
    }
    return FDS_OK;
}

/* Players that no group has are groups of their own. */
static fds_status read_groups(job *j, char *text, fds_error *err) {
    const size_t n = j->file.players.count;
    const fds__numbering by_bytes = {.limit = UINT32_MAX, .what = "group", .source = "`group`"};
    OWNED const char **of = NULL;
    OWNED uint32_t *ids = NULL;
    fds__names names = {0};
    TRY(NEW(of, n, err));
    TRY(NEW(ids, n, err));
    for (char *next; text; text = next) {
        next = strchr(text, ',');
        if (next)
            *next++ = 0;
        TRY(add_group(j, text, of, err));
    }
    for (size_t i = 0; i < n; i++)
        of[i] = of[i] ? of[i] : j->file.players.items[i];
    fds_status status = fds__names_number(of, n, &by_bytes, ids, &names, err);
    if (status == FDS_OK)
        status = fds_groups_create(ids, n, (const char *const *)names.items, &j->groups, err);
    fds__names_free(&names);
    return status;
}

static fds_status make_groups(job *j, fds_error *err) {
    const char *how = j->params->group;
    if (!how)
        return FDS_OK;
    if (!strchr(how, '='))
        return fds__groups_read_names(how, (const char *const *)j->file.players.items,
                                      j->file.players.count, &j->groups, err);
    OWNED char *text = fds__strdup(how);
    return text ? read_groups(j, text, err) : fds__fail_nomem(err, strlen(how) + 1);
}

/* ---- which games ---- */

static fds_status choose_games(job *j, fds_error *err) {
    const char *wanted = j->params->game;
    TRY(NEW(j->chosen, j->file.count, err));
    for (size_t g = 0; g < j->file.count; g++)
        if (!wanted || strcmp(j->file.games[g].name, wanted) == 0)
            j->chosen[j->chosen_count++] = g;
    return j->chosen_count ? FDS_OK
                           : fds__fail(err, FDS_ERR_USAGE,
                                       "`game` %.100s: %s has no such game, the first is "
                                       "\"%.100s\"",
                                       wanted, j->file.path, j->file.games[0].name);
}

/* ---- a game as it is played ---- */

/* Groups in place of players; false: a group is there in part. */
static bool merge_row(const job *j, const uint64_t *bits, uint64_t *out) {
    for (size_t g = 0; g < fds_groups_count(j->groups); g++) {
        const uint32_t *members;
        size_t count = fds_groups_members(j->groups, g, &members), there = 0;
        for (size_t m = 0; m < count; m++)
            there += fds_coalition_has(bits, members[m]);
        if (there != 0 && there != count)
            return false;
        if (there)
            fds__coalition_add(out, g);
    }
    return true;
}

/* Rows of p: those of the file, or of groups that are whole. */
static fds_status take_rows(const job *j, const fds__given_game *game, played *p, fds_error *err) {
    p->players = is_merged(j) ? fds_groups_count(j->groups) : j->file.players.count;
    p->words = fds_coalition_words(p->players);
    TRY(NEW(p->bits, game->rows * p->words, err));
    TRY(NEW(p->utilities, game->rows, err));
    for (size_t row = 0; row < game->rows; row++) {
        const uint64_t *bits = game->bits + row * j->file.words;
        uint64_t *out = p->bits + p->rows * p->words;
        memset(out, 0, p->words * sizeof *out);
        if (!is_merged(j))
            memcpy(out, bits, p->words * sizeof *out);
        else if (!merge_row(j, bits, out))
            continue;
        p->utilities[p->rows++] = game->utilities[row];
    }
    return FDS_OK;
}

/* The name of a player that the largest coalition lacks: one that was misspelt is often it. */
static const char *lacking(const job *j, const played *p, size_t largest) {
    for (size_t i = 0; i < p->players; i++)
        if (!fds_coalition_has(p->bits + largest * p->words, i))
            return is_merged(j) ? fds_groups_name(j->groups, i) : j->file.players.items[i];
    return "?";
}

/* Finds the utilities of the empty and of the full coalition. */
static fds_status find_ends(const job *j, const fds__given_game *game, played *p, fds_error *err) {
    char of[200] = "";
    size_t largest = 0, most = 0;
    bool has_empty = false, has_full = false;
    if (*game->name)
        snprintf(of, sizeof of, ": game \"%.100s\"", game->name);
    for (size_t row = 0; row < p->rows; row++) {
        size_t size = fds_coalition_size(p->bits + row * p->words, p->players);
        largest = size > most ? row : largest;
        most = MAX(most, size);
        has_empty |= size == 0;
        has_full |= size == p->players;
        p->empty = size == 0 ? p->utilities[row] : p->empty;
        p->full = size == p->players ? p->utilities[row] : p->full;
    }
    if (!has_empty)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s%s: the empty coalition is missing; values need its utility",
                         j->file.path, of);
    return has_full ? FDS_OK
                    : fds__fail(err, FDS_ERR_FORMAT,
                                "%s%s: the coalition of all %zu players is missing; the largest "
                                "has %zu, without \"%.100s\"",
                                j->file.path, of, p->players, most, lacking(j, p, largest));
}

/* Least squares know these two by themselves. */
static void drop_ends(played *p) {
    size_t kept = 0;
    for (size_t row = 0; row < p->rows; row++) {
        size_t size = fds_coalition_size(p->bits + row * p->words, p->players);
        if (size == 0 || size == p->players)
            continue;
        memmove(p->bits + kept * p->words, p->bits + row * p->words, p->words * sizeof *p->bits);
        p->utilities[kept++] = p->utilities[row];
    }
    p->rows = kept;
}

/* ---- values ---- */

typedef struct {
    const fds_plan *plan;
    const double *utilities; /* by mask, or by row of the plan */
    bool by_mask;
} reader;

static fds_status read_row(void *context, unsigned worker, size_t row, size_t first, size_t count,
                           double *out, fds_error *err) {
    (void)worker, (void)first, (void)count, (void)err;
    const reader *r = context;
    *out = r->utilities[r->by_mask ? *fds_plan_coalition(r->plan, row) : row];
    return FDS_OK;
}

static fds_status solve_exactly(const job *j, const played *p, double *values, fds_error *err) {
    OWNED double *by_mask = NULL;
    fds_plan *plan;
    TRY(NEW(by_mask, p->rows, err));
    for (size_t row = 0; row < p->rows; row++)
        by_mask[p->bits[row]] = p->utilities[row];
    TRY(fds_plan_exact(FDS_SAMPLER_KERNEL, p->players, NULL, &plan, err));
    reader r = {plan, by_mask, true};
    const fds_rows rows = {1, read_row, &r};
    fds_status status = fds_exact(plan, &rows, 1, values, j->events, err);
    fds_plan_free(plan);
    return status;
}

static fds_status solve_squares(const job *j, played *p, double *values, double *errors,
                                fds_error *err) {
    const fds_ls_params ls = {.adjust = FDS_ADJUST_NONE};
    OWNED double *utilities = NULL;
    OWNED size_t *order = NULL;
    fds_plan *plan;
    TRY(NEW(order, p->rows, err));
    TRY(NEW(utilities, p->rows + 2, err));
    TRY(fds__plan_given(p->players, p->bits, p->rows, order, &plan, err));
    utilities[0] = p->empty;
    utilities[1] = p->full;
    for (size_t row = 0; row < p->rows; row++)
        utilities[row + 2] = p->utilities[order[row]];
    reader r = {plan, utilities, false};
    const fds_rows rows = {1, read_row, &r};
    fds_status status = fds_least_squares(plan, &rows, &ls, (unsigned)j->params->threads, values,
                                          errors, &p->report, j->events, err);
    fds_plan_free(plan);
    if (status == FDS_OK)
        fds__ls_warn(&p->report, p->rows, p->players, j->events);
    return status;
}

/* Whether to enumerate. */
static fds_status choose_method(const job *j, const fds__given_game *game, const played *p,
                                bool *is_exact, fds_error *err) {
    bool is_complete = p->players <= FDS__MAX_EXACT && p->rows == (size_t)1 << p->players;
    bool is_asked = fds__is_given(j->params, method);
    bool wants_exact = is_asked && strcmp(j->params->method, "exact") == 0;
    *is_exact = is_complete && (wants_exact || !is_asked || p->players == 1);
    if (wants_exact && !is_complete)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`method` exact: %s has %zu coalitions of %zu players%s%s, and exact "
                         "values need all 2^%zu%s; use ls",
                         j->file.path, p->rows, p->players, *game->name ? " in game " : "",
                         game->name, p->players,
                         p->players > FDS__MAX_EXACT ? " (of at most 20 players)" : "");
    return *is_exact || p->rows > 2
               ? FDS_OK
               : fds__fail(err, FDS_ERR_FORMAT,
                           "%s: of %zu players there are the empty and the full coalition alone, "
                           "which say nothing about single players",
                           j->file.path, p->players);
}

static json_t *describe_game(const fds__given_game *game, const played *p, bool is_exact,
                             size_t used) {
    json_t *fit =
        is_exact ? json_null()
                 : json_pack("{s:o, s:o, s:I}", "explained", fds__json_real(p->report.explained),
                             "ridge", fds__json_real(p->report.ridge), "pairs",
                             (json_int_t)p->report.pairs);
    return json_pack("{s:o, s:s, s:I, s:I, s:o, s:o, s:o}", "game", fds__json_string(game->name),
                     "method", is_exact ? "exact" : "ls", "coalitions", (json_int_t)game->rows,
                     "used", (json_int_t)used, "utility_with_none", fds__json_real(p->empty),
                     "utility_with_all", fds__json_real(p->full), "fit", fit);
}

/* Values of the file's players become those of groups. */
static void add_up(const job *j, const double *values, const double *errors, double *sums,
                   double *sum_errors) {
    for (size_t g = 0; g < fds_groups_count(j->groups); g++) {
        const uint32_t *members;
        size_t count = fds_groups_members(j->groups, g, &members);
        double square = 0;
        sums[g] = 0;
        for (size_t m = 0; m < count; m++) {
            sums[g] += values[members[m]];
            square += errors[members[m]] * errors[members[m]];
        }
        sum_errors[g] = sqrt(square);
    }
}

static fds_status value_rows(job *j, const fds__given_game *game, played *p, fds_result *r,
                             size_t k, fds_error *err) {
    OWNED double *values = NULL, *errors = NULL;
    bool is_exact;
    TRY(take_rows(j, game, p, err));
    TRY(find_ends(j, game, p, err));
    TRY(choose_method(j, game, p, &is_exact, err));
    const size_t used = p->rows;
    if (!is_exact)
        drop_ends(p);
    TRY(NEW(values, p->players, err));
    TRY(NEW(errors, p->players, err));
    TRY(is_exact ? solve_exactly(j, p, values, err) : solve_squares(j, p, values, errors, err));
    j->is_exact &= is_exact;
    double *to = r->values + k * r->players, *to_errors = r->errors + k * r->players;
    if (j->groups && !is_merged(j)) {
        add_up(j, values, errors, to, to_errors);
    } else {
        memcpy(to, values, p->players * sizeof *to);
        memcpy(to_errors, errors, p->players * sizeof *to);
    }
    r->empty[k] = p->empty;
    r->full[k] = p->full;
    return fds__json_append(j->games, describe_game(game, p, is_exact, used)) ? FDS_OK
                                                                              : fds__fail_json(err);
}

static fds_status value_game(job *j, size_t k, fds_result *r, fds_error *err) {
    const fds__given_game *game = &j->file.games[j->chosen[k]];
    played p = {0};
    fds_status status = value_rows(j, game, &p, r, k, err);
    played_free(&p);
    return status;
}

/* ---- the result ---- */

static fds_status name_players(const job *j, fds_result *r, fds_error *err) {
    for (size_t i = 0; i < r->players; i++) {
        const uint32_t *members;
        const char *name = j->groups ? fds_groups_name(j->groups, i) : j->file.players.items[i];
        size_t size = j->groups ? fds_groups_members(j->groups, i, &members) : 1;
        TRY(fds__result_name_player(r, i, name, NULL, FDS__UNKNOWN, size, err));
    }
    for (size_t k = 0; k < r->predictions; k++) {
        const char *name = j->file.games[j->chosen[k]].name;
        TRY(fds__result_name_input(r, k, *name ? name : "the game", err));
    }
    return FDS_OK;
}

static json_t *describe(const job *j, const fds_result *r) {
    return json_pack(
        "{s:o, s:s, s:I, s:I, s:o, s:o, s:O}", "utilities", fds__json_string(j->file.path),
        "method", j->is_exact ? "exact" : "ls", "players", (json_int_t)r->players, "file_players",
        (json_int_t)j->file.players.count, "group", fds__json_string(j->params->group),
        "group_value", j->groups ? json_string(is_merged(j) ? "player" : "points") : json_null(),
        "games", j->games);
}

static fds_status fill_result(job *j, fds_result *r, fds_error *err) {
    const double start = fds__now_s();
    TRY(fds__result_regression(r, err)); /* values are of any size, and there are no labels */
    TRY(name_players(j, r, err));
    for (size_t k = 0; k < r->predictions; k++) {
        TRY(fds__report(j->events, "values", "games", k, r->predictions, start, err));
        TRY(value_game(j, k, r, err));
    }
    r->is_exact = j->is_exact;
    r->has_shares = true;
    fds__result_average(r);
    json_decref(r->about);
    r->about = describe(j, r);
    return r->about ? FDS_OK : fds__fail_json(err);
}

static fds_status make_result(job *j, const fds__blob *file, fds_result **out, fds_error *err) {
    fds_result *r;
    TRY(fds__given_parse(file, &j->file, err));
    TRY(make_groups(j, err));
    TRY(choose_games(j, err));
    j->games = json_array();
    if (!j->games)
        return fds__fail_json(err);
    size_t players = j->groups ? fds_groups_count(j->groups) : j->file.players.count;
    TRY(fds__result_create("utilities", players, j->chosen_count, 0, &r, err));
    fds_status status = fill_result(j, r, err);
    if (status == FDS_OK)
        *out = r;
    else
        fds_result_free(r);
    return status;
}

fds_status fds_shapley_utilities(const fds_params *params, const fds_events *events,
                                 fds_result **out, fds_error *err) {
    job j = {.params = params, .events = events, .is_exact = true};
    OWNED uint8_t *data = NULL;
    size_t size;
    TRY(check(params, err));
    TRY(fds__file_read_gz(params->utilities, MAX_FILE, events, &data, &size, err));
    const fds__blob file = {.path = params->utilities, .data = data, .size = size};
    fds_status status = make_result(&j, &file, out, err);
    fds__given_free(&j.file);
    fds_groups_free(j.groups);
    fds__free(j.chosen);
    json_decref(j.games);
    return status;
}
