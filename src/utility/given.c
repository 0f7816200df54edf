/* SPDX-License-Identifier: Apache-2.0
 *
 * Games of the user's own, from a file.
 *
 *   CSV   coalition,utility        a line per coalition, its players joined by "+"; of the empty
 *         ,0.1                     coalition the field is empty. Every name that occurs is a player.
 *         ann,0.4
 *         ann+bob,0.9
 *
 *   CSV   ann,bob,utility          a column per player, 1 for a member and 0 for the others
 *         1,0,0.4
 *
 *         A column "game" of either names the game of a line, where a file has several.
 *
 *   JSON  {"players": ["ann", "bob"], "coalitions": [{"coalition": ["ann"], "utility": 0.4}, ...]}
 *         {"players": ["ann", "bob"], "games": {"NAME": [{"coalition": [], "utility": 0.1}, ...]}}
 *
 * A name that ends with .json or .csv (before .gz or .zst) decides which it is; else the first character
 * does, { or [ for JSON.
 *
 * A coalition may be given once per game. Utilities are finite numbers. What is not there is not
 * assumed: given_values.c says what a game needs. */
#include "utility/given.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_GAMES = 10000 };
static const size_t NOWHERE = SIZE_MAX;

void fds__given_free(fds__given *given) {
    for (size_t g = 0; g < given->count; g++) {
        fds__free(given->games[g].name);
        fds__free(given->games[g].bits);
        fds__free(given->games[g].utilities);
        fds__free(given->games[g].places);
    }
    fds__free(given->games);
    fds__names_free(&given->players);
}

const char *fds__given_place(const fds__given *given, const fds__given_game *game, size_t place,
                             char out[FDS__GIVEN_PLACE]) {
    if (given->is_json)
        snprintf(out, FDS__GIVEN_PLACE, "game \"%.100s\": entry %zu", game->name, place);
    else
        snprintf(out, FDS__GIVEN_PLACE, "line %zu", place);
    return out;
}

/* ---- players by name ---- */

/* A hash table of the players' numbers plus 1; 0: a free slot. */
typedef struct {
    uint32_t slots[2 * FDS__GIVEN_PLAYERS];
} roster;

/* The slot of a name, or the free one where it belongs. */
static uint32_t *slot_of(roster *r, const fds__names *players, const char *name) {
    size_t slots = sizeof r->slots / sizeof *r->slots;
    size_t at = fds_checksum(name, strlen(name)) % slots;
    while (r->slots[at] && strcmp(players->items[r->slots[at] - 1], name) != 0)
        at = (at + 1) % slots;
    return &r->slots[at];
}

/* Adds a player; FDS_ERR_FORMAT for one that is there. where: "line 1". */
static fds_status add_player(fds__given *given, roster *r, const char *name, const char *where,
                             fds_error *err) {
    const char *fault = *name ? fds__name_fault(name) : "a player without a name";
    uint32_t *slot = slot_of(r, &given->players, name);
    if (fault)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %s: %s", given->path, where, fault);
    if (*slot)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %s: the player \"%.100s\" is there twice",
                         given->path, where, name);
    if (given->players.count >= FDS__GIVEN_PLAYERS)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: %s: more than %d players", given->path, where,
                         FDS__GIVEN_PLAYERS);
    TRY(fds__names_add(&given->players, name, err));
    *slot = (uint32_t)given->players.count;
    return FDS_OK;
}

/* ---- rows ---- */

static fds_status add_game(fds__given *given, const char *name, fds__given_game **out,
                           fds_error *err) {
    if (given->count >= MOST_GAMES)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: more than %d games", given->path, MOST_GAMES);
    TRY(fds__grow((void **)&given->games, &given->capacity, given->count + 1, sizeof *given->games,
                  err));
    fds__given_game *game = &given->games[given->count];
    *game = (fds__given_game){.name = fds__strdup(name)};
    if (!game->name)
        return fds__fail_nomem(err, strlen(name) + 1);
    given->count++;
    *out = game;
    return FDS_OK;
}

/* A new row without players. */
static fds_status add_row(const fds__given *given, fds__given_game *game, size_t place,
                          double utility, uint64_t **bits, fds_error *err) {
    size_t rows = game->rows + 1;
    if (rows > FDS__MAX_ROWS / given->words)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: more than %zu coalitions", given->path,
                         game->rows);
    TRY(fds__grow((void **)&game->bits, &game->capacity, rows * given->words, sizeof *game->bits,
                  err));
    TRY(fds__grow((void **)&game->utilities, &game->utility_capacity, rows, sizeof *game->utilities,
                  err));
    TRY(fds__grow((void **)&game->places, &game->place_capacity, rows, sizeof *game->places, err));
    *bits = game->bits + game->rows * given->words;
    memset(*bits, 0, given->words * sizeof **bits);
    game->utilities[game->rows] = utility;
    game->places[game->rows] = (uint32_t)place;
    game->rows = rows;
    return FDS_OK;
}

static fds_status fail_twice(const fds__given *given, const char *where, const char *player,
                             fds_error *err) {
    return fds__fail(err, FDS_ERR_FORMAT, "%s: %s: the player \"%.100s\" is in the coalition twice",
                     given->path, where, player);
}

typedef struct {
    const uint64_t *bits; /* (words) */
    size_t words;
    uint32_t place;
} sorted_row;

static int by_bits(const void *left, const void *right) {
    const sorted_row *a = left, *b = right;
    int order = memcmp(a->bits, b->bits, a->words * sizeof *a->bits);
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

static fds_status check_duplicates(const fds__given *given, const fds__given_game *game,
                                   fds_error *err) {
    OWNED sorted_row *rows = NULL;
    char first[FDS__GIVEN_PLACE];
    TRY(NEW(rows, game->rows, err));
    for (size_t i = 0; i < game->rows; i++)
        rows[i] = (sorted_row){game->bits + i * given->words, given->words, game->places[i]};
    qsort(rows, game->rows, sizeof *rows, by_bits);
    for (size_t i = 1; i < game->rows; i++)
        if (memcmp(rows[i].bits, rows[i - 1].bits, given->words * sizeof *rows->bits) == 0)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: %s: the same coalition is in %s %u already",
                             given->path, fds__given_place(given, game, rows[i].place, first),
                             given->is_json ? "entry" : "line", rows[i - 1].place);
    return FDS_OK;
}

/* ---- CSV ---- */

typedef struct {
    fds__given *given;
    roster *roster;
    size_t columns, coalition, utility, game; /* columns, or NOWHERE */
    uint32_t *player_of;                      /* (columns) of those that are players */
    char **texts;                             /* (columns) the fields of a line */
    size_t line;
} sheet_reading;

static fds_status read_fields(sheet_reading *s, fds__scanner *scan, fds__field *fields,
                              fds_error *err) {
    size_t count = 0;
    s->line = scan->line;
    for (bool is_last = false; !is_last; count++) {
        fds__field field;
        TRY(fds__scan_field(scan, &field, &is_last, err));
        if (count < s->columns)
            fields[count] = field;
    }
    if (count != s->columns)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: %zu fields, the header has %zu",
                         s->given->path, s->line, count, s->columns);
    for (size_t c = 0; c < count; c++)
        s->texts[c] = fds__field_text(&fields[c]);
    return FDS_OK;
}

static size_t *special_column(sheet_reading *s, const char *name) {
    return strcmp(name, "coalition") == 0 ? &s->coalition
           : strcmp(name, "utility") == 0 ? &s->utility
           : strcmp(name, "game") == 0    ? &s->game
                                          : NULL;
}

/* Which column is what; those that are nothing else are players. */
static fds_status read_header(sheet_reading *s, fds_error *err) {
    const char *path = s->given->path;
    char where[64];
    snprintf(where, sizeof where, "line %zu", s->line);
    for (size_t c = 0; c < s->columns; c++) {
        size_t *special = special_column(s, s->texts[c]);
        if (special && *special != NOWHERE)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: %s: two columns \"%s\"", path, where,
                             s->texts[c]);
        if (special)
            *special = c;
    }
    if (s->utility == NOWHERE)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: %s: there is no column \"utility\"; the header must be "
                         "coalition,utility, or a column per player and utility",
                         path, where);
    for (size_t c = 0; c < s->columns; c++) {
        if (special_column(s, s->texts[c]))
            continue;
        if (s->coalition != NOWHERE)
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: %s: the column \"%.100s\" is neither coalition, utility nor game",
                             path, where, s->texts[c]);
        TRY(add_player(s->given, s->roster, s->texts[c], where, err));
        s->player_of[c] = (uint32_t)s->given->players.count - 1;
    }
    return FDS_OK;
}

/* Every name of a coalition's field, cut out of it; NULL: no more. */
static char *next_name(char **at) {
    char *name = *at;
    if (!name)
        return NULL;
    char *plus = strchr(name, '+');
    *at = plus ? plus + 1 : NULL;
    if (plus)
        *plus = 0;
    return fds__name_trim(name);
}

/* The players of a field, which stays as it is. */
static fds_status collect_players(sheet_reading *s, fds_error *err) {
    const char *text = s->texts[s->coalition];
    OWNED char *copy = fds__strdup(text);
    char where[64], *at = *text ? copy : NULL;
    if (!copy)
        return fds__fail_nomem(err, strlen(text) + 1);
    snprintf(where, sizeof where, "line %zu", s->line);
    for (char *name; (name = next_name(&at));)
        if (!*slot_of(s->roster, &s->given->players, name))
            TRY(add_player(s->given, s->roster, name, where, err));
    return FDS_OK;
}

static fds_status read_utility(const sheet_reading *s, double *out, fds_error *err) {
    const char *text = s->texts[s->utility];
    char *end;
    *out = fds__read_double(text, &end);
    return end != text && !*end && isfinite(*out)
               ? FDS_OK
               : fds__fail(err, FDS_ERR_FORMAT,
                           "%s: line %zu: the utility must be a finite number, not \"%.60s\"",
                           s->given->path, s->line, text);
}

static fds_status find_game(const sheet_reading *s, fds__given_game **out, fds_error *err) {
    const char *name = s->game == NOWHERE ? "" : s->texts[s->game], *fault = fds__name_fault(name);
    for (size_t g = s->given->count; g-- > 0;) /* that of the last line comes first */
        if (strcmp(s->given->games[g].name, name) == 0) {
            *out = &s->given->games[g];
            return FDS_OK;
        }
    if (s->game != NOWHERE && (!*name || fault))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: %s", s->given->path, s->line,
                         *name ? fault : "no game");
    return add_game(s->given, name, out, err);
}

static fds_status set_members(const sheet_reading *s, uint64_t *bits, fds_error *err) {
    bool has_names = s->coalition != NOWHERE && *s->texts[s->coalition];
    char where[64], *at = has_names ? s->texts[s->coalition] : NULL;
    snprintf(where, sizeof where, "line %zu", s->line);
    for (char *name; (name = next_name(&at));) {
        uint32_t player = *slot_of(s->roster, &s->given->players, name) - 1;
        if (fds_coalition_has(bits, player))
            return fail_twice(s->given, where, name, err);
        fds__coalition_add(bits, player);
    }
    for (size_t c = 0; s->coalition == NOWHERE && c < s->columns; c++) {
        const char *text = s->texts[c];
        if (c == s->utility || c == s->game)
            continue;
        if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: line %zu: the player \"%.100s\" must be 0 or 1, not \"%.60s\"",
                             s->given->path, s->line, s->given->players.items[s->player_of[c]],
                             text);
        if (*text == '1')
            fds__coalition_add(bits, s->player_of[c]);
    }
    return FDS_OK;
}

static fds_status read_line(sheet_reading *s, fds_error *err) {
    fds__given_game *game;
    uint64_t *bits;
    double utility;
    TRY(read_utility(s, &utility, err));
    TRY(find_game(s, &game, err));
    TRY(add_row(s->given, game, s->line, utility, &bits, err));
    return set_members(s, bits, err);
}

/* Once to find the players of the coalitions, once to read them: texts are made of the bytes the
 * first time, so the second begins with a copy of the file. */
static fds_status read_lines(sheet_reading *s, const fds__blob *file, fds__field *fields,
                             fds_error *err) {
    OWNED uint8_t *copy = fds__alloc(file->size + 1);
    const fds__blob second = {.path = file->path, .data = copy, .size = file->size};
    fds__scanner scan;
    if (!copy)
        return fds__fail_nomem(err, file->size + 1);
    memcpy(copy, file->data, file->size + 1);
    TRY(fds__scan_begin(file, 0, &scan, err));
    TRY(read_fields(s, &scan, fields, err));
    TRY(read_header(s, err));
    while (s->coalition != NOWHERE && fds__scan_line(&scan)) {
        TRY(read_fields(s, &scan, fields, err));
        TRY(collect_players(s, err));
    }
    s->given->words = MAX(fds_coalition_words(s->given->players.count), (size_t)1);
    TRY(fds__scan_begin(&second, 0, &scan, err));
    TRY(read_fields(s, &scan, fields, err));
    while (fds__scan_line(&scan)) {
        TRY(read_fields(s, &scan, fields, err));
        TRY(read_line(s, err));
    }
    return FDS_OK;
}

/* How many fields the header has. */
static fds_status count_columns(const fds__blob *file, size_t *out, fds_error *err) {
    fds__scanner scan;
    fds__field field;
    TRY(fds__scan_begin(file, 0, &scan, err));
    if (!fds__scan_line(&scan))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: the file is empty", file->path);
    *out = 0;
    for (bool is_last = false; !is_last; ++*out)
        TRY(fds__scan_field(&scan, &field, &is_last, err));
    return FDS_OK;
}

static fds_status read_csv(fds__given *given, roster *players, const fds__blob *file,
                           fds_error *err) {
    sheet_reading s = {.given = given,
                       .roster = players,
                       .coalition = NOWHERE,
                       .utility = NOWHERE,
                       .game = NOWHERE};
    OWNED uint32_t *player_of = NULL;
    OWNED char **texts = NULL;
    OWNED fds__field *fields = NULL;
    TRY(count_columns(file, &s.columns, err));
    TRY(NEW(player_of, s.columns, err));
    TRY(NEW(texts, s.columns, err));
    TRY(NEW(fields, s.columns, err));
    s.player_of = player_of;
    s.texts = texts;
    return read_lines(&s, file, fields, err);
}

/* ---- JSON ---- */

static fds_status read_members(const fds__given *given, roster *players, const json_t *list,
                               const char *where, uint64_t *bits, fds_error *err) {
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) {
        const char *name = json_string_value(item);
        uint32_t number = name ? *slot_of(players, &given->players, name) : 0;
        if (!name)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: %s: a player must be a text", given->path,
                             where);
        if (!number)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: %s: there is no player \"%.100s\"",
                             given->path, where, name);
        if (fds_coalition_has(bits, number - 1))
            return fail_twice(given, where, name, err);
        fds__coalition_add(bits, number - 1);
    }
    return FDS_OK;
}

static fds_status read_entries(fds__given *given, roster *players, const char *name,
                               const json_t *list, fds_error *err) {
    fds__given_game *game;
    char where[FDS__GIVEN_PLACE];
    size_t i;
    json_t *entry;
    TRY(add_game(given, name, &game, err));
    if (!json_is_array(list))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: game \"%.100s\" must be a list of coalitions",
                         given->path, name);
    json_array_foreach(list, i, entry) {
        const json_t *members = json_object_get(entry, "coalition"),
                     *utility = json_object_get(entry, "utility");
        uint64_t *bits;
        fds__given_place(given, game, i + 1, where);
        if (!json_is_array(members) || !json_is_number(utility))
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: %s must be {\"coalition\": [PLAYER, ...], \"utility\": NUMBER}",
                             given->path, where);
        TRY(add_row(given, game, i + 1, json_number_value(utility), &bits, err));
        TRY(read_members(given, players, members, where, bits, err));
    }
    return FDS_OK;
}

static fds_status read_root(fds__given *given, roster *players, json_t *root, fds_error *err) {
    const json_t *names = json_object_get(root, "players"),
                 *list = json_object_get(root, "coalitions");
    json_t *games = json_object_get(root, "games"), *item;
    const char *name;
    size_t i;
    if (!json_is_array(names) || !json_array_size(names))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: \"players\" must be a list of names",
                         given->path);
    if (!list == !json_is_object(games))
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s must have either \"coalitions\", a list, or \"games\", an object",
                         given->path);
    json_array_foreach(names, i, item) {
        char where[64];
        snprintf(where, sizeof where, "player %zu", i + 1);
        TRY(add_player(given, players, json_is_string(item) ? json_string_value(item) : "", where,
                       err));
    }
    given->words = fds_coalition_words(given->players.count);
    if (list)
        return read_entries(given, players, "", list, err);
    json_object_foreach(games, name, item) {
        if (!*name || fds__name_fault(name))
            return fds__fail(err, FDS_ERR_FORMAT, "%s: a game's name: %s", given->path,
                             *name ? fds__name_fault(name) : "it is empty");
        TRY(read_entries(given, players, name, item, err));
    }
    return FDS_OK;
}

static fds_status read_json(fds__given *given, roster *players, const fds__blob *file,
                            fds_error *err) {
    json_t *root;
    char where[FDS__PATH_MAX];
    size_t mark = fds__utf8_mark(file->data, file->size);
    snprintf(where, sizeof where, "%.*s: JSON", FDS__PATH_MAX - 16, file->path);
    TRY(fds__json_parse(where, (const char *)file->data + mark, file->size - mark, &root, err));
    given->is_json = true;
    fds_status status = read_root(given, players, root, err);
    json_decref(root);
    return status;
}

/* ---- either ---- */

static bool is_json(const fds__blob *file) {
    const char *name = strrchr(file->path, '/');
    name = name ? name + 1 : file->path;
    size_t mark = fds__utf8_mark(file->data, file->size),
           blanks = strspn((const char *)file->data + mark, " \t\r\n"), length = strlen(name);
    for (size_t i = 0; i < 2; i++) {
        const char *packed = i ? ".zst" : ".gz";
        if (length > strlen(packed) && strcasecmp(name + length - strlen(packed), packed) == 0)
            length -= strlen(packed);
    }
    if (length >= 5 && strncasecmp(name + length - 5, ".json", 5) == 0)
        return true;
    if (length >= 4 && strncasecmp(name + length - 4, ".csv", 4) == 0)
        return false;
    return file->data[mark + blanks] == '{' || file->data[mark + blanks] == '[';
}

fds_status fds__given_parse(const fds__blob *file, fds__given *out, fds_error *err) {
    OWNED roster *players = NULL;
    *out = (fds__given){.path = file->path};
    TRY(NEW(players, 1, err));
    TRY((is_json(file) ? read_json : read_csv)(out, players, file, err));
    size_t rows = 0;
    for (size_t g = 0; g < out->count; g++) {
        TRY(check_duplicates(out, &out->games[g], err));
        rows += out->games[g].rows;
    }
    return rows && out->players.count ? FDS_OK
                                      : fds__fail(err, FDS_ERR_FORMAT, "%s has no %s", file->path,
                                                  rows ? "players" : "coalitions");
}
