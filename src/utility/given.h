/* SPDX-License-Identifier: Apache-2.0
 * Games of the user's own: coalitions and what they are worth, from a file.
 *
 *   given.c         reads the file
 *   given_values.c  Shapley values of what it holds */
#ifndef FDS_GIVEN_H
#define FDS_GIVEN_H

#include "utility/utility.h"

enum { FDS__GIVEN_PLAYERS = 4096 }; /* at most */

/* One game: rows are coalitions of the players of the file, each at most once. */
typedef struct fds__given_game {
    char *name;
    size_t rows, capacity, utility_capacity, place_capacity;
    uint64_t *bits;    /* (rows, words) */
    double *utilities; /* (rows), finite */
    uint32_t *places;  /* (rows) line of a CSV file, or entry of a JSON list, from 1 */
} fds__given_game;

typedef struct fds__given {
    const char *path;
    bool is_json;
    fds__names players;
    size_t words; /* of a coalition */
    fds__given_game *games;
    size_t count, capacity;
} fds__given;

/* Reads CSV or JSON; file->data[file->size] is NUL, and the bytes are overwritten. FDS_ERR_FORMAT
 * names the line, or the game and the entry. The caller frees it after a failure too. */
fds_status fds__given_parse(const fds__blob *file, fds__given *out, fds_error *err);
void fds__given_free(fds__given *given);
/* "line 7", or "game "google": entry 7"; returns out. */
enum { FDS__GIVEN_PLACE = 400 };
const char *fds__given_place(const fds__given *given, const fds__given_game *game, size_t place,
                             char out[FDS__GIVEN_PLACE]);

#endif
