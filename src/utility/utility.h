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

/* All samples player by player: those of p are at the positions (*members)[(*first)[p] ..
 * (*first)[p + 1] - 1], ascending. The caller frees both, even after a failure. */
fds_status fds_value_by_player(const fds_value_data *data, uint32_t **members, size_t **first,
                               fds_error *err);

/* Every player has samples, and all are samples of the dataset. */
fds_status fds_players_check(const fds_dataset *ds, const fds_players *players, fds_error *err);

/* The inner product of two runs of floats in double, and their squared distance. Both are added up
 * in one order on every machine. */
double fds_value_dot(const float *a, const float *b, size_t count);
double fds_value_distance2(const float *a, const float *b, size_t count);
/* y += a x, in which the compiler's vectors change no bit. */
static inline void fds_value_add(size_t count, double a, const double *restrict x,
                                 double *restrict y) {
    for (size_t i = 0; i < count; i++)
        y[i] += a * x[i];
}

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

extern const fds_value_kind fds_retrain_kind, fds_knn_kind, fds_kernel_kind, fds_entk_kind;
/* The decimal number that a float of at most 7 digits was written as: 0.1f gives 0.1. */
double fds_decimal(float value);
/* How number epochs are trained, or, for 0, until converged. */
fds_train_params fds_retrain_training(const fds_value_params *params, uint32_t number);
fds_status fds_retrain_check(const fds_value_params *params, uint32_t number, fds_error *err);
/* Trains weights (in: initial) on all samples. */
fds_status fds_retrain_all(const fds_net *net, const fds_inputs *samples,
                           const fds_train_params *params, float *weights, fds_error *err);
fds_status fds_retrain_create(fds_value_making *making, fds_error *err);
/* Everything that training depends on, added to about; false: no memory. */
bool fds_retrain_describe(json_t *about, const fds_net *net, const fds_train_params *train);
fds_status fds_knn_create(fds_value_making *making, fds_error *err);
fds_status fds_knn_model_create(fds_value_making *making, fds_error *err); /* on features */
fds_status fds_kernel_create(fds_value_making *making, fds_error *err);
fds_status fds_entk_check(const fds_value_params *params, uint32_t number, fds_error *err);
fds_status fds_entk_create(fds_value_making *making, fds_error *err);

/* Kernel regression, the self of the kinds "kernel" and "entk". Whoever creates one fills in what
 * stands before the desks, which are made when each worker first asks. */
typedef struct fds_regression {
    const fds_value_data *data;
    double ridge, sharpness;
    double shift;                       /* taken from all targets */
    double *between;                    /* (samples, samples) */
    double *inputs;                     /* (inputs, samples) */
    struct fds_regression_desk **desks; /* (workers) */
} fds_regression;

/* memory: the bytes that it will hold once all workers have asked. */
fds_status fds_regression_create(const fds_value_data *data, fds_regression **out, size_t *memory,
                                 fds_error *err);
void fds_regression_free(void *self);
fds_status fds_regression_eval(const void *self, unsigned worker, const uint64_t *coalition,
                               float *probs, fds_error *err);
/* scores (classes) to probabilities, in place. */
void fds_regression_probs(const fds_regression *regression, double *scores);
/* Of a value function, where it is of such a kind; else NULL. */
const fds_regression *fds_value_regression(const fds_value *value);

/* As fds_value_knn_shapley, for one input and one of its labels: values[players]. */
fds_status fds_value_knn_label(const fds_value *value, size_t input, uint32_t label, double *values,
                               fds_error *err);

/* Of samples and inputs: (count, size), what the last layer of a network sees that was trained on
 * all players as "retrain:10" trains. Adds what it depends on to making->about. */
typedef struct fds_features {
    size_t size;
    float *samples, *inputs;
} fds_features;

fds_status fds_features_check(const fds_value_params *params, uint32_t number, fds_error *err);
fds_status fds_features_make(const fds_value_making *making, fds_features *out, fds_error *err);
void fds_features_free(fds_features *features);

/* The network that coalitions are retrained with; NULL for the other kinds. */
const fds_net *fds_value_network(const fds_value *value);
/* From now on, until it is called with NULL; while nobody evaluates. For values with a network. */
void fds_value_set_sink(const fds_value *value, const fds_sink *sink);

#define FDS_MAX_VALUE_K (1u << 20) /* the K of "retrain:K" and "knn:K" */
#define FDS_MAX_VALUE_WORKERS 1024u
#define FDS_MAX_VALUE_MEMORY ((size_t)16 << 30) /* bytes of neighbour lists or kernel matrices */

/* ---- table.c ---- */

const fds_value *fds_table_value(const fds_table *table); /* whose answers it holds */
size_t fds_table_count(const fds_table *table);           /* coalitions that it has */
fds_store fds_table_store(const fds_table *table);
/* fds_table_fill for many small plans in a row: what it has written may still be on its way to the
 * disk, what several such calls wrote for some seconds, until fds_table_sync. */
fds_status fds_table_fill_more(fds_table *table, const fds_plan *plan, unsigned threads,
                               const fds_events *events, fds_error *err);
fds_status fds_table_sync(fds_table *table, fds_error *err);
/* What a table of so many coalitions takes on disk. */
fds_status fds_table_bytes(const fds_value *value, fds_store store, size_t coalitions,
                           uint64_t *bytes, fds_error *err);

/* What a record on disk turned out to be. */
typedef enum fds_found {
    FDS_FOUND_EMPTY, /* never written */
    FDS_FOUND_GOOD,
    FDS_FOUND_DAMAGED,
    FDS_FOUND_FOREIGN, /* a header that is whole, but of another segment or table */
} fds_found;

/* ---- half.c ---- */

uint16_t fds_half_from_float(float value); /* to nearest, ties to even */
double fds_half_to_double(uint16_t half);

/* ---- index.c ---- */

/* Slots by coalition id: open addressing, at most 3/4 full, 16 bytes an entry. */
typedef struct fds_index {
    struct fds_index_entry *entries;
    size_t count, capacity; /* capacity: 0 or a power of two */
} fds_index;

/* Room for count entries in all, so that so many can be added without failure. */
fds_status fds_index_reserve(fds_index *index, size_t count, fds_error *err);
/* False, and nothing is changed, when the id is there already. */
bool fds_index_add(fds_index *index, uint64_t id, uint32_t slot);
bool fds_index_find(const fds_index *index, uint64_t id, uint32_t *slot);
void fds_index_free(fds_index *index);

/* ---- grouping.c ---- */

/* The label that most of a player's samples have, the lowest where several do; counts[classes] must
 * be zero, and is again on return. */
uint32_t fds_player_label(const fds_dataset *ds, const uint32_t *index, size_t count,
                          size_t *counts);

/* Groups from the bytes of a file, which are cut up in place; data[size] must be NUL. */
fds_status fds_groups_parse(const char *path, char *data, size_t size, const fds_players *players,
                            fds_groups **out, fds_error *err);

#endif
