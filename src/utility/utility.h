/* SPDX-License-Identifier: Apache-2.0
 *
 * utility: what coalitions are worth, and where that is kept.
 *
 *   value.c    value functions by name; the parts that all kinds share
 *   retrain.c  a network trained on the coalition's samples
 *   knn.c      nearest neighbours, with their exact Shapley values
 *   kernel.c   kernel regression, a cheap surrogate
 *   grouping.c groups of players from labels, providers, models and files
 *   table.c    the table of utilities on disk; table.h names the files that it is made of
 *   values.c   values of players, written to a file
 */
#ifndef FDS_UTILITY_H
#define FDS_UTILITY_H

#include "data/data.h"
#include "game/game.h"
#include "net/net.h"

/* What a kind of value function must do; self is the kind's own object. */
typedef struct fds_value_kind {
    fds_status (*eval)(const void *self, unsigned worker, const uint64_t *coalition, float *probs,
                       fds_error *err);
    void (*free)(void *self);
} fds_value_kind;

typedef struct fds_value_data fds_value_data;

/* Sees the weights of every network that is trained for a coalition, on the worker's own thread; a
 * failure is that of the evaluation. */
typedef struct fds_sink {
    fds_status (*take)(void *context, unsigned worker, const uint64_t *coalition,
                       const float *weights, fds_error *err);
    void *context;
} fds_sink;

struct fds_value {
    const fds_value_kind *kind;
    void *self;
    size_t players, inputs, memory;
    uint32_t classes;
    unsigned workers;
    char *text;
    fds_value_data *data; /* what the kinds of value.c work on */
};

/* ---- value functions: value.c and one file a kind ---- */

/* What every kind works on. Samples stand in ascending order of their numbers, so that nothing
 * depends on the order of the players. */
struct fds_value_data {
    const fds_players *players;
    fds_inputs *samples; /* of all players, normalised by their own channel statistics */
    uint32_t *owner;     /* (samples->count): whose each is */
    fds_inputs *inputs;  /* normalised in the same way */
    uint32_t classes;
    unsigned workers;
    const fds_sink *sink; /* or NULL: who wants the weights of trained networks */
};

/* The positions within samples of all that the players of a coalition own, ascending. */
size_t fds_value_members(const fds_value_data *data, const uint64_t *coalition, uint32_t *members);

/* Every player has samples, and all are samples of the dataset. */
fds_status fds_players_check(const fds_dataset *ds, const fds_players *players, fds_error *err);

/* The inner product of two runs of floats in double, and their squared distance. Both are added up
 * in one order on every machine. */
double fds_value_dot(const float *a, const float *b, size_t count);
double fds_value_distance2(const float *a, const float *b, size_t count);

/* A kind being made: it fills in self, which kind->free takes back, the bytes that it holds, and
 * in about what its answers depend on besides the data. number is the K of "kind:K", or 0. */
typedef struct fds_value_making {
    const fds_value_params *params;
    const fds_value_data *data;
    uint32_t number;
    void *self;
    size_t memory;
    json_t *about;
} fds_value_making;

extern const fds_value_kind fds_retrain_kind, fds_knn_kind, fds_kernel_kind;
/* The decimal number that a float of at most 7 digits was written as: 0.1f gives 0.1. */
double fds_decimal(float value);
/* How number epochs are trained, or, for 0, until converged. */
fds_train_params fds_retrain_training(const fds_value_params *params, uint32_t number);
fds_status fds_retrain_check(const fds_value_params *params, uint32_t number, fds_error *err);
fds_status fds_retrain_create(fds_value_making *making, fds_error *err);
fds_status fds_knn_create(fds_value_making *making, fds_error *err);
fds_status fds_kernel_create(fds_value_making *making, fds_error *err);

/* The network that coalitions are retrained with; NULL for the other kinds. */
const fds_net *fds_value_network(const fds_value *value);
/* From now on, until it is called with NULL; while nobody evaluates. For values with a network. */
void fds_value_set_sink(const fds_value *value, const fds_sink *sink);

#define FDS_MAX_VALUE_K (1u << 20) /* the K of "retrain:K" and "knn:K" */
#define FDS_MAX_VALUE_WORKERS 1024u
#define FDS_MAX_VALUE_MEMORY ((size_t)16 << 30) /* bytes of neighbour lists or kernel matrices */

/* ---- describe.c ---- */

/* The first difference between what a file (holder: "table") says and what is wanted now, in words;
 * false when there is none. */
bool fds_json_difference(const json_t *before, const json_t *now, const char *holder, char *text,
                         size_t size);

/* ---- grouping.c ---- */

/* The label that most of a player's samples have, the lowest where several do; counts[classes] must
 * be zero, and is again on return. */
uint32_t fds_player_label(const fds_dataset *ds, const uint32_t *index, size_t count,
                          size_t *counts);

/* Groups from the bytes of a file, which are cut up in place; data[size] must be NUL. */
fds_status fds_groups_parse(const char *path, char *data, size_t size, const fds_players *players,
                            fds_groups **out, fds_error *err);

#endif
