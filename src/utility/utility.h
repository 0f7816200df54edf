/* SPDX-License-Identifier: Apache-2.0
 *
 * utility: the utility of coalitions, and the table that keeps it.
 *
 *   utility.c     utility functions by name; the parts that all kinds share
 *   retrain.c     a network trained on the coalition's samples
 *   knn.c         nearest neighbours, with their exact Shapley values
 *   features.c    features of samples, by a network trained on all players
 *   kernel.c      kernel regression, a cheap surrogate
 *   entk.c        kernel regression with a network's tangent kernel
 *   regression.c  what these two share
 *   grouping.c    groups of players from labels, providers, models and files
 *   record.c      files of records, for the table and the bank; record.h declares them
 *   table.c       the table of utilities on disk; table.h names its files
 *   values.c      values of players, written to a file
 */
#ifndef FDS_UTILITY_H
#define FDS_UTILITY_H

#include "data/data.h"
#include "game/game.h"
#include "model/model.h"
#include "utility/record.h"

/* A kind of utility function; self is the kind's own object, and NULL is fine for free. */
typedef struct fds__utility_kind {
    fds_status (*eval)(const void *self, unsigned worker, const uint64_t *coalition, float *probs,
                       fds_error *err);
    void (*free)(void *self);
} fds__utility_kind;

typedef struct fds__utility_data fds__utility_data;

/* Receives the weights of every network that is trained for a coalition, on the worker's own
 * thread; when it fails, the evaluation fails. */
typedef struct fds__sink {
    fds_status (*take)(void *context, unsigned worker, const uint64_t *coalition,
                       const float *weights, fds_error *err);
    void *context;
} fds__sink;

struct fds_utility {
    const fds__utility_kind *kind;
    void *self;
    size_t players, inputs, memory;
    uint32_t classes;
    unsigned workers;
    char *text;
    fds__utility_data *data; /* what the kinds work on */
};

/* ---- utility functions: utility.c and one file per kind ---- */

/* What every kind works on. Samples are in ascending order of their numbers: nothing depends on the
 * order of the players. */
struct fds__utility_data {
    const fds_players *players;
    fds_inputs *samples; /* of all players, normalised by their own channel statistics */
    uint32_t *owner;     /* (samples->count): the player of each */
    fds_inputs *inputs;  /* normalised in the same way */
    uint32_t classes;
    unsigned workers;
    const fds__sink *sink; /* receives the weights of trained networks; may be NULL */
};

/* The positions within samples of those of a coalition's players, ascending; returns how many. */
size_t fds__utility_members(const fds__utility_data *data, const uint64_t *coalition,
                            uint32_t *members);

/* All samples player by player: those of p are at the positions (*members)[(*first)[p] ..
 * (*first)[p + 1] - 1], ascending. The caller frees both, even after a failure. */
fds_status fds__utility_by_player(const fds__utility_data *data, uint32_t **members, size_t **first,
                                  fds_error *err);

/* Every player has samples, and all are samples of the dataset. */
fds_status fds__players_check(const fds_dataset *ds, const fds_players *players, fds_error *err);

/* The inner product and the squared distance of two vectors, in double, added up in the same order
 * on every machine. */
double fds__utility_dot(const float *a, const float *b, size_t count);
double fds__utility_distance2(const float *a, const float *b, size_t count);
/* y += a x; vectors of the compiler change no bit. */
static inline void fds__utility_add(size_t count, double a, const double *restrict x,
                                    double *restrict y) {
    for (size_t i = 0; i < count; i++)
        y[i] += a * x[i];
}

/* Given to the function that makes a kind. It sets self, which the caller frees even after a
 * failure, and memory in bytes, and adds to about what the answers depend on besides the data.
 * number is the K of "kind:K", or 0. */
typedef struct fds__utility_making {
    const fds_utility_params *params;
    const fds__utility_data *data;
    uint32_t number;
    void *self;
    size_t memory;
    json_t *about;
} fds__utility_making;

/* Adds the members of part to about, and frees part; NULL stands for out of memory. */
fds_status fds__utility_about(json_t *about, json_t *part, fds_error *err);

extern const fds__utility_kind fds__retrain_kind, fds__knn_kind, fds__kernel_kind, fds__entk_kind;
/* The decimal number that a float of at most 7 digits was written as: 0.1f gives 0.1. */
double fds__decimal(float value);
/* How to train for number epochs or, with 0, until converged. */
fds_train_params fds__retrain_training(const fds_utility_params *params, uint32_t number);
fds_status fds__retrain_check(const fds_utility_params *params, uint32_t number, fds_error *err);
fds_status fds__retrain_create(fds__utility_making *making, fds_error *err);
/* A network and its weights, initial or, with number > 0, trained on all samples as
 * "retrain:number" trains. The caller frees both, even after a failure. */
fds_status fds__retrain_network(const fds__utility_making *making, uint32_t number, fds_net **net,
                                float **weights, fds_error *err);
fds_status fds__knn_create(fds__utility_making *making, fds_error *err);
fds_status fds__knn_model_create(fds__utility_making *making, fds_error *err); /* on features */
fds_status fds__kernel_create(fds__utility_making *making, fds_error *err);
fds_status fds__entk_check(const fds_utility_params *params, uint32_t number, fds_error *err);
fds_status fds__entk_create(fds__utility_making *making, fds_error *err);

/* Kernel regression, the self of the kinds "kernel" and "entk", which fill in all but data and
 * workers. Each worker's own is made when it first evaluates. */
typedef struct fds__regression {
    const fds__utility_data *data;
    double ridge, sharpness;
    double shift;                            /* subtracted from all targets */
    double *between;                         /* (samples, samples) */
    double *inputs;                          /* (inputs, samples) */
    struct fds__regression_worker **workers; /* (workers) */
} fds__regression;

/* Sets making->self, and making->memory to what it takes once all workers have evaluated. */
fds_status fds__regression_create(fds__utility_making *making, fds__regression **out,
                                  fds_error *err);
/* Step k of the Cholesky factorisation of a (n, n), upper half, by a pivot above 0. */
void fds__regression_step(double *a, size_t n, size_t k, double pivot);
void fds__regression_free(void *self);
fds_status fds__regression_eval(const void *self, unsigned worker, const uint64_t *coalition,
                                float *probs, fds_error *err);
/* scores (classes) to probabilities, in place. */
void fds__regression_probs(const fds__regression *regression, double *scores);
/* That of a utility function, or NULL when it is of another kind. */
const fds__regression *fds__utility_regression(const fds_utility *value);

/* As fds_utility_knn_shapley, for one input and one of its labels: values[players]. */
fds_status fds__utility_knn_label(const fds_utility *value, size_t input, uint32_t label,
                                  double *values, fds_error *err);

/* The inputs of the last layer, (count, size), of a network trained on all players as "retrain:10"
 * trains. Making them adds to making->about what they depend on. */
typedef struct fds__features {
    size_t size;
    float *samples, *inputs;
} fds__features;

fds_status fds__features_check(const fds_utility_params *params, uint32_t number, fds_error *err);
fds_status fds__features_make(const fds__utility_making *making, fds__features *out,
                              fds_error *err);
void fds__features_free(fds__features *features);

/* The network that is trained for each coalition; NULL for kinds without one. */
const fds_net *fds__utility_network(const fds_utility *value);
/* Sets or, with NULL, removes the sink of a utility function with a network, while no worker
 * evaluates. */
void fds__utility_set_sink(const fds_utility *value, const fds__sink *sink);

#define FDS__MAX_UTILITY_K (1u << 20) /* the K of "retrain:K" and "knn:K" */
#define FDS__MAX_UTILITY_WORKERS 1024u
#define FDS__MAX_UTILITY_MEMORY ((size_t)16 << 30) /* bytes of neighbour lists or kernel matrices */

/* ---- table.c ---- */

const fds_utility *fds__table_utility(const fds_table *table); /* whose answers it has */
size_t fds__table_count(const fds_table *table);               /* of coalitions that it has */
fds_store fds__table_store(const fds_table *table);
/* fds_table_fill for many small plans in a row: what the calls of the last few seconds wrote may
 * not be on the disk before fds__table_sync. */
fds_status fds__table_fill_more(fds_table *table, const fds_plan *plan, unsigned threads,
                                const fds_events *events, fds_error *err);
fds_status fds__table_sync(fds_table *table, fds_error *err);
/* What a table of so many coalitions takes on disk. */
fds_status fds__table_bytes(const fds_utility *value, fds_store store, size_t coalitions,
                            uint64_t *bytes, fds_error *err);

/* ---- grouping.c ---- */

/* The most frequent label of a player's samples, the lowest of several. counts[classes] must be
 * zero, and is zero again on return. */
uint32_t fds__player_label(const fds_dataset *ds, const uint32_t *index, size_t count,
                           size_t *counts);

/* Groups from the bytes of a file, which it overwrites; data[size] must be NUL. */
fds_status fds__groups_parse(const char *path, char *data, size_t size, const fds_players *players,
                             fds_groups **out, fds_error *err);

#endif
