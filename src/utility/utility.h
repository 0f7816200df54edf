/* SPDX-License-Identifier: Apache-2.0
 *
 * utility: what coalitions are worth, and where that is kept.
 *
 *   value.c    value functions by name; the parts that all kinds share
 *   retrain.c  a network trained on the coalition's samples
 *   knn.c      nearest neighbours, with their exact Shapley values
 *   features.c what a network trained on all players makes of samples
 *   kernel.c   kernel regression, a cheap surrogate
 *   entk.c     kernel regression with a network's tangent kernel
 *   regression.c  what these two share
 *   grouping.c groups of players from labels, providers, models and files
 *   table.c    the table of utilities on disk; table.h names the files that it is made of
 *   values.c   values of players, written to a file
 */
#ifndef FDS_UTILITY_H
#define FDS_UTILITY_H

#include "data/data.h"
#include "game/game.h"
#include "model/model.h"
#include "utility/record.h"

/* What a kind of value function must do; self is the kind's own object. */
typedef struct fds__utility_kind {
    fds_status (*eval)(const void *self, unsigned worker, const uint64_t *coalition, float *probs,
                       fds_error *err);
    void (*free)(void *self);
} fds__utility_kind;

typedef struct fds__utility_data fds__utility_data;

/* Sees the weights of every network that is trained for a coalition, on the worker's own thread; a
 * failure is that of the evaluation. */
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
    fds__utility_data *data; /* what the kinds of value.c work on */
};

/* ---- value functions: value.c and one file a kind ---- */

/* What every kind works on. Samples stand in ascending order of their numbers, so that nothing
 * depends on the order of the players. */
struct fds__utility_data {
    const fds_players *players;
    fds_inputs *samples; /* of all players, normalised by their own channel statistics */
    uint32_t *owner;     /* (samples->count): whose each is */
    fds_inputs *inputs;  /* normalised in the same way */
    uint32_t classes;
    unsigned workers;
    const fds__sink *sink; /* or NULL: who wants the weights of trained networks */
};

/* The positions within samples of all that the players of a coalition own, ascending. */
size_t fds__utility_members(const fds__utility_data *data, const uint64_t *coalition,
                            uint32_t *members);

/* All samples player by player: those of p are at the positions (*members)[(*first)[p] ..
 * (*first)[p + 1] - 1], ascending. The caller frees both, even after a failure. */
fds_status fds__utility_by_player(const fds__utility_data *data, uint32_t **members, size_t **first,
                                  fds_error *err);

/* Every player has samples, and all are samples of the dataset. */
fds_status fds__players_check(const fds_dataset *ds, const fds_players *players, fds_error *err);

/* The inner product of two runs of floats in double, and their squared distance. Both are added up
 * in one order on every machine. */
double fds__utility_dot(const float *a, const float *b, size_t count);
double fds__utility_distance2(const float *a, const float *b, size_t count);
/* y += a x, in which the compiler's vectors change no bit. */
static inline void fds__utility_add(size_t count, double a, const double *restrict x,
                                    double *restrict y) {
    for (size_t i = 0; i < count; i++)
        y[i] += a * x[i];
}

/* A kind being made: it fills in self, which kind->free takes back, the bytes that it holds, and
 * in about what its answers depend on besides the data. number is the K of "kind:K", or 0. */
typedef struct fds__utility_making {
    const fds_utility_params *params;
    const fds__utility_data *data;
    uint32_t number;
    void *self;
    size_t memory;
    json_t *about;
} fds__utility_making;

extern const fds__utility_kind fds__retrain_kind, fds__knn_kind, fds__kernel_kind, fds__entk_kind;
/* The decimal number that a float of at most 7 digits was written as: 0.1f gives 0.1. */
double fds__decimal(float value);
/* How number epochs are trained, or, for 0, until converged. */
fds_train_params fds__retrain_training(const fds_utility_params *params, uint32_t number);
fds_status fds__retrain_check(const fds_utility_params *params, uint32_t number, fds_error *err);
/* Trains weights (in: initial) on all samples. */
fds_status fds__retrain_all(const fds_net *net, const fds_inputs *samples,
                            const fds_train_params *params, float *weights, fds_error *err);
fds_status fds__retrain_create(fds__utility_making *making, fds_error *err);
/* Everything that training depends on, added to about; false: no memory. */
bool fds__retrain_describe(json_t *about, const fds_net *net, const fds_train_params *train);
fds_status fds__knn_create(fds__utility_making *making, fds_error *err);
fds_status fds__knn_model_create(fds__utility_making *making, fds_error *err); /* on features */
fds_status fds__kernel_create(fds__utility_making *making, fds_error *err);
fds_status fds__entk_check(const fds_utility_params *params, uint32_t number, fds_error *err);
fds_status fds__entk_create(fds__utility_making *making, fds_error *err);

/* Kernel regression, the self of the kinds "kernel" and "entk". Whoever creates one fills in what
 * stands before the workers, which are made when each worker first asks. */
typedef struct fds__regression {
    const fds__utility_data *data;
    double ridge, sharpness;
    double shift;                            /* taken from all targets */
    double *between;                         /* (samples, samples) */
    double *inputs;                          /* (inputs, samples) */
    struct fds__regression_worker **workers; /* (workers) */
} fds__regression;

/* memory: the bytes that it will hold once all workers have asked. */
fds_status fds__regression_create(const fds__utility_data *data, fds__regression **out,
                                  size_t *memory, fds_error *err);
void fds__regression_free(void *self);
fds_status fds__regression_eval(const void *self, unsigned worker, const uint64_t *coalition,
                                float *probs, fds_error *err);
/* scores (classes) to probabilities, in place. */
void fds__regression_probs(const fds__regression *regression, double *scores);
/* Of a value function, where it is of such a kind; else NULL. */
const fds__regression *fds__utility_regression(const fds_utility *value);

/* As fds_utility_knn_shapley, for one input and one of its labels: values[players]. */
fds_status fds__utility_knn_label(const fds_utility *value, size_t input, uint32_t label,
                                  double *values, fds_error *err);

/* Of samples and inputs: (count, size), what the last layer of a network sees that was trained on
 * all players as "retrain:10" trains. Adds what it depends on to making->about. */
typedef struct fds__features {
    size_t size;
    float *samples, *inputs;
} fds__features;

fds_status fds__features_check(const fds_utility_params *params, uint32_t number, fds_error *err);
fds_status fds__features_make(const fds__utility_making *making, fds__features *out,
                              fds_error *err);
void fds__features_free(fds__features *features);

/* The network that coalitions are retrained with; NULL for the other kinds. */
const fds_net *fds__utility_network(const fds_utility *value);
/* From now on, until it is called with NULL; while nobody evaluates. For values with a network. */
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

/* The label that most of a player's samples have, the lowest where several do; counts[classes] must
 * be zero, and is again on return. */
uint32_t fds__player_label(const fds_dataset *ds, const uint32_t *index, size_t count,
                           size_t *counts);

/* Groups from the bytes of a file, which are cut up in place; data[size] must be NUL. */
fds_status fds__groups_parse(const char *path, char *data, size_t size, const fds_players *players,
                             fds_groups **out, fds_error *err);

#endif
