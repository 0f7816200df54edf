/* SPDX-License-Identifier: Apache-2.0
 *
 * utility: the utility of coalitions, and the table that keeps it.
 *
 *   utility.c     utility functions by name; the parts that all kinds share
 *   retrain.c     a network trained on the coalition's samples
 *   knn.c         nearest neighbours, with their exact Shapley values
 *   tknn.c        all neighbours within a distance, the same
 *   features.c    features of samples, by a network trained on all players
 *   kernel.c      kernel regression, a cheap surrogate
 *   entk.c        kernel regression with a network's tangent kernel
 *   regression.c  the part that these two share
 *   command.c     answers of a program of the user's; external.h lists its files
 *   custom.c      answers of a callback
 *   given.c       games of the user's own; declared in given.h
 *   grouping.c    groups of players from labels, providers, models and files
 *   ranks.c       tables filled by the processes of an MPI job (ranks_lead.c, ranks_serve.c); ranks.h: what its
 *                 plugin needs
 *   reuse.c       records of a table of other players
 *   record.c      files of records, for the table and the bank; declared in record.h
 *   table.c       the table of utilities on disk; table.h lists its files
 *   games.c       a utility function with its table; checks of parameters
 *   export.c      the game in files for other programs
 *   labels.c      which labels values are for
 *   until.c       how many coalitions values need for a standard error
 *   service.c     predictions of a service model that was trained elsewhere
 *   shapley.c     Shapley values of a problem
 *   targets.c     regression: the score of a prediction, and targets in results
 */
#ifndef FDS_UTILITY_H
#define FDS_UTILITY_H

#include "data/data.h"
#include "game/game.h"
#include "model/model.h"
#include "utility/record.h"

typedef struct fds__utility_params {
    /* "retrain"     a network trained until it has converged (the paper's v)
     * "retrain:K"   a network trained for K epochs (AFDS)
     * "knn:K"       the share of the label among the K nearest samples
     * "knn:K@model" the same on the inputs of a network's last layer; the network is trained on all
     *               players as in "retrain:10"
     * "tknn:T"      the share of the label among all samples within the distance T; "tknn": within
     *               one that inputs have from each other
     * "kernel"      kernel regression on the samples; a cheap surrogate
     * "entk"        the same with the tangent kernel of the initial network
     * "entk:K"      the same with the network trained on all players as in "retrain:K"
     * "command:..." what a program of the user's answers */
    const char *kind;
    const char *network;     /* retrain, @model, entk: as in fds_model_train */
    fds_train_params train;  /* retrain: all but epochs and converge, which kind decides */
    float beta;              /* every network is trained at beta times lr */
    bool allow_noise;        /* command: its answers may differ when it is asked again */
    fds__scaling normalise;  /* by what */
    const fds__scale *scale; /* found before: nothing is looked at to normalise; or NULL */
    const fds__identities *identities; /* order mini-batches by them; NULL: by numbers of samples */
    bool is_private; /* normalise by the inputs, so that no sample affects another's distances */
    const fds_events *events; /* of making it: starting a program, finding neighbours; or NULL */
    fds_utility_callback callback; /* answers instead of a kind; or NULL */
    void *callback_context;
    const char *callback_name;
} fds__utility_params;

/* "retrain:10", lenet5, Adam, lr 1e-4 and beta 10 as in the paper. */
fds__utility_params fds__utility_params_default(void);
/* How kind trains, so that a service model can be trained in the same way; kinds that train no
 * network count as "retrain:10". lr is lr times beta in decimal: 0.0001 times 10 is 0.001f. */
fds_status fds__utility_training(const fds__utility_params *params, fds_train_params *train,
                                 fds_error *err);

/* The utility of coalitions of the players' samples in train, for the samples
 * inputs[0 .. input_count-1] of test. workers: how many threads evaluate at the same time (0: one
 * per processor). The datasets and players must outlive it. */
fds_status fds__utility_create(const fds__utility_params *params, const fds_dataset *train,
                               const fds_players *players, const fds_dataset *test,
                               const uint32_t *inputs, size_t input_count, unsigned workers,
                               fds_utility **out, fds_error *err);
/* A kind of utility function; self is the kind's object, and free accepts NULL. */
typedef struct fds__utility_kind {
    fds_status (*eval)(const void *self, unsigned worker, const uint64_t *coalition, float *probs,
                       fds_error *err);
    void (*free)(void *self);
    /* The exact Shapley values of one input and label, where they are known: values (players), which
     * have one sample each. Or NULL. */
    void (*values)(const void *self, size_t input, uint32_t label, double *values);
} fds__utility_kind;

typedef struct fds__utility_data fds__utility_data;

/* Receives the weights of every network that is trained for a coalition, on the worker's own
 * thread; when it fails, the evaluation fails. */
typedef struct fds__sink {
    fds_status (*take)(void *context, unsigned worker, const uint64_t *coalition,
                       const float *weights, fds_error *err);
    void *context;
} fds__sink;

/* Receives the network of all players, which is the service model, when it is trained. */
typedef struct fds__service_sink {
    fds_status (*take)(void *context, const float *weights, const fds_train_report *report,
                       fds_error *err);
    void *context;
} fds__service_sink;

struct fds_utility {
    const fds__utility_kind *kind;
    void *self;
    size_t players, inputs, memory;
    uint32_t classes;
    unsigned workers;
    char *text;
    fds__utility_data *data;
};

/* ---- utility functions: utility.c and one file per kind ---- */

/* The data of every kind. Samples are in ascending order of their numbers, so nothing depends on
 * the order of the players. */
struct fds__utility_data {
    const fds_players *players;
    const fds_dataset *train, *test;
    fds_inputs *samples; /* of all players, normalised */
    float *mean, *std;   /* (channels) by which they are */
    uint32_t *owner;     /* (samples->count): the player of each */
    fds_inputs *inputs;  /* normalised in the same way */
    uint32_t classes;    /* 1 in a regression: answers are standardised predictions */
    bool is_regression;
    double target_mean, target_std; /* of the samples that normalise */
    unsigned workers;
    const fds__sink *sink;            /* or NULL */
    const fds__service_sink *service; /* or NULL */
};

/* The positions within samples of those of a coalition's players, ascending; returns how many. */
size_t fds__utility_members(const fds__utility_data *data, const uint64_t *coalition,
                            uint32_t *members);

/* All samples player by player: those of p are at the positions (*members)[(*first)[p] ..
 * (*first)[p + 1] - 1], ascending. The caller frees both, even after a failure. */
fds_status fds__utility_by_player(const fds__utility_data *data, uint32_t **members, size_t **first,
                                  fds_error *err);

/* Predictions (inputs) in the units of the targets become standardised; nothing for classes. */
void fds__utility_standardise(const fds__utility_data *data, float *predictions);

/* Every player has samples, and all are samples of the dataset. */
fds_status fds__players_check(const fds_dataset *ds, const fds_players *players, fds_error *err);

/* The inner product and the squared distance of two vectors, in double; every machine adds in the
 * same order. */
double fds__utility_dot(const float *a, const float *b, size_t count);
double fds__utility_distance2(const float *a, const float *b, size_t count);
/* y += a x; vectorisation changes no bit. */
static inline void fds__utility_add(size_t count, double a, const double *restrict x,
                                    double *restrict y) {
    for (size_t i = 0; i < count; i++)
        y[i] += a * x[i];
}

/* The argument of the function that makes a kind. The function sets self, which the caller frees
 * even after a failure, and memory in bytes. It adds to about everything that the answers depend on
 * besides the data. number is the K of "kind:K", or 0. */
typedef struct fds__utility_making {
    const fds__utility_params *params;
    const fds__utility_data *data;
    const fds_dataset *train, *test; /* what data was made from */
    uint32_t number;
    void *self;
    size_t memory;
    json_t *about;
} fds__utility_making;

/* Adds the members of part to about, and frees part; part NULL: out of memory. */
fds_status fds__utility_about(json_t *about, json_t *part, fds_error *err);

/* A kind by its name: "knn" "@model" for "knn:K@model". */
typedef struct fds__utility_row {
    const char *name, *ending;        /* what stands before and after ":K" */
    bool with_number, without_number; /* which are allowed */
    bool is_real; /* what stands after the colon is no whole number: check reads it */
    const fds__utility_kind *kind;
    fds_status (*check)(const fds__utility_params *params, uint32_t number, fds_error *err);
    fds_status (*create)(fds__utility_making *making, fds_error *err);
} fds__utility_row;

/* Puts the coalition in front of the error: "the coalition of 2 players (a, b): ...". */
fds_status fds__utility_fail(const fds__utility_data *data, const uint64_t *coalition,
                             fds_status status, fds_error *err);

extern const fds__utility_row fds__custom_row;
extern const fds__utility_kind fds__command_kind;
/* The program and its arguments; NULL for another kind. */
const char *fds__command_of(const char *kind);
fds_status fds__command_check(const fds__utility_params *params, uint32_t number, fds_error *err);
fds_status fds__command_create(fds__utility_making *making, fds_error *err);
/* After a failure: what the program wrote to its standard error goes to events. Nothing for other
 * kinds. */
void fds__utility_log(const fds_utility *utility, const fds_events *events);
/* Whether it is a program whose answers may differ from one time to the next. */
bool fds__utility_is_noisy(const fds_utility *utility);
/* The variance of a program's answers from one time to the next, where noise is allowed: asks for
 * rows of a filled table again. Else 0. */
fds_status fds__utility_noise(const fds_utility *utility, const fds_table *table,
                              const fds_plan *plan, const fds_events *events, double *variance,
                              fds_error *err);

extern const fds__utility_kind fds__retrain_kind, fds__knn_kind, fds__tknn_kind, fds__kernel_kind,
    fds__entk_kind;
/* Training for number epochs or, with 0, until it converges. */
fds_train_params fds__retrain_training(const fds__utility_params *params, uint32_t number);
fds_status fds__retrain_check(const fds__utility_params *params, uint32_t number, fds_error *err);
fds_status fds__retrain_create(fds__utility_making *making, fds_error *err);
/* A network and its weights: initial or, with number > 0, trained on all samples as in
 * "retrain:number". The caller frees both, even after a failure. */
fds_status fds__retrain_network(const fds__utility_making *making, uint32_t number, fds_net **net,
                                float **weights, fds_error *err);
fds_status fds__knn_create(fds__utility_making *making, fds_error *err);
fds_status fds__knn_model_create(fds__utility_making *making, fds_error *err); /* on features */
fds_status fds__kernel_create(fds__utility_making *making, fds_error *err);
/* The T of "tknn:T", 0 for "tknn"; false: not of that form. */
bool fds__tknn_read(const char *text, double *threshold);
fds_status fds__tknn_check(const fds__utility_params *params, uint32_t number, fds_error *err);
fds_status fds__tknn_create(fds__utility_making *making, fds_error *err);
/* The samples within T of an input: of the label, and of others. */
typedef struct fds__tknn_counts {
    int64_t same, other;
} fds__tknn_counts;
void fds__tknn_count(const fds_utility *utility, size_t input, uint32_t label,
                     fds__tknn_counts *out);
/* Values (players) by such counts, which may have noise: each player knows that it is there itself. */
void fds__tknn_values(const fds_utility *utility, size_t input, uint32_t label,
                      fds__tknn_counts counts, double *values);
fds_status fds__entk_check(const fds__utility_params *params, uint32_t number, fds_error *err);
fds_status fds__entk_create(fds__utility_making *making, fds_error *err);

/* Kernel regression, the self of the kinds "kernel" and "entk", which set all but data and workers.
 * A worker's scratch is made when it first evaluates. */
typedef struct fds__regression {
    const fds__utility_data *data;
    double ridge, sharpness;
    double shift;                            /* subtracted from all targets */
    double *between;                         /* (samples, samples) */
    double *inputs;                          /* (inputs, samples) */
    struct fds__regression_worker **workers; /* (workers) */
} fds__regression;

/* Sets making->self and making->memory, which includes the scratch of all workers. */
fds_status fds__regression_create(fds__utility_making *making, fds__regression **out,
                                  fds_error *err);
/* Step k of the Cholesky factorisation of a (n, n), upper half, by a pivot above 0. */
void fds__regression_step(double *a, size_t n, size_t k, double pivot);
void fds__regression_free(void *self);
fds_status fds__regression_eval(const void *self, unsigned worker, const uint64_t *coalition,
                                float *probs, fds_error *err);
/* scores (classes) to probabilities, in place. */
void fds__regression_probs(const fds__regression *regression, double *scores);
/* The regression of a utility function, or NULL for another kind. */
const fds__regression *fds__utility_regression(const fds_utility *utility);

/* As fds_utility_knn_shapley, for one input and one of its labels: values[players]. */
fds_status fds__utility_knn_label(const fds_utility *utility, size_t input, uint32_t label,
                                  double *values, fds_error *err);

/* The inputs of the last layer, (count, size), of a network trained on all players as in
 * "retrain:10". Adds to making->about what they depend on; the caller frees both arrays, even after
 * a failure. */
typedef struct fds__features {
    size_t size;
    float *samples, *inputs;
} fds__features;

fds_status fds__features_check(const fds__utility_params *params, uint32_t number, fds_error *err);
fds_status fds__features_make(const fds__utility_making *making, fds__features *out,
                              fds_error *err);

/* The network that is trained for each coalition; NULL for kinds without one. */
const fds_net *fds__utility_network(const fds_utility *utility);
/* Sets or, with NULL, removes the sink of a utility function with a network, while no worker
 * evaluates. */
void fds__utility_set_sink(const fds_utility *utility, const fds__sink *sink);

#define FDS__MAX_UTILITY_K (1u << 20) /* the K of "retrain:K" and "knn:K" */
#define FDS__MAX_UTILITY_WORKERS 1024u
#define FDS__MAX_UTILITY_MEMORY ((size_t)16 << 30) /* bytes of neighbour lists or kernel matrices */

/* ---- games.c ---- */

/* Whether a kind trains a network, and whether it has one; false for NULL. */
bool fds__has_training(const char *kind);
bool fds__has_network(const char *kind);
/* Whether providers are the players; problem NULL: not made yet. */
bool fds__is_by_provider(const fds_problem *problem, const fds_params *params);
/* FDS_ERR_USAGE when `group_value` is given and no providers are players. */
fds_status fds__group_value_check(const fds_params *params, fds_error *err);
/* The parameter "model", or the default for the problem's data. */
const char *fds__network_of(const fds_problem *problem, const fds_params *params);
/* Its number of weights; the error for an unknown network names the nearest preset. */
fds_status fds__network_check(const fds_problem *problem, const char *network, size_t *weights,
                              fds_error *err);
/* How sub-models are trained; kind NULL: "retrain:10". */
fds__utility_params fds__utility_params_of(const fds_problem *problem, const fds_params *params,
                                           const char *kind);
/* The utility for the problem's test samples. */
fds_status fds__utility_of(const fds_problem *problem, const fds__utility_params *params,
                           unsigned workers, fds_utility **out, fds_error *err);
/* FDS_ERR_USAGE for an odd number of coalitions with a sampler that draws pairs. */
fds_status fds__check_even(const fds_params *params, fds_sampler sampler, fds_error *err);
/* FDS_ERR_USAGE for parameters of training where no network is trained, and for those of a program
 * where there is none. */
fds_status fds__check_training(const fds_params *params, const char *kind, bool has_network,
                               bool has_training, fds_error *err);
/* "none", "shrink", "counts", or a surrogate with "counts"; text NULL: the default of a sampler. */
fds_status fds__adjust_read(const char *text, fds_sampler sampler, fds_adjust *adjust,
                            const char **name, const char **surrogate, fds_error *err);
/* How many coalitions a sampler can draw: leverage repeats none. */
size_t fds__most_coalitions(fds_sampler sampler, size_t players);
/* How many are drawn unless the caller says: 20 per player, at least 1,000, and up to 4,096 if
 * sub-models are quick to train and to ask about so many inputs. */
fds_status fds__default_coalitions(const fds_problem *problem, const fds__utility_params *params,
                                   fds_sampler sampler, size_t inputs, size_t *count,
                                   fds_error *err);
bool fds__is_by_model(const char *by); /* "model" or "model:N" */
/* The parameter "group", or its default: one group of all where providers are the players, because
 * their commonest label says little of them, unless groups are players; "label" otherwise. */
const char *fds__group_by(const fds_problem *problem, const fds_params *params,
                          fds_sampler sampler);
/* The problem's groups, or groups by "label", "provider", "model", "model:N", "all" or a file. */
fds_status fds__groups_for(const fds_problem *problem, const char *by,
                           const fds__utility_params *params, const fds_events *events,
                           fds_groups **out, fds_error *err);

/* ---- until.c: coalitions are added until errors are small enough ---- */

typedef struct fds__until {
    double wanted;      /* `until_error`; 0: the number of coalitions is fixed */
    size_t count, most; /* coalitions of this round, and of the last one */
    size_t rounds;      /* measured so far */
    double floor;       /* of errors, from the noise of a program: more coalitions lower it not */
    double error;       /* measured: in 95 of 100 predictions no standard error is above it */
    bool is_reached;
} fds__until;

/* Coalitions of the first round, where a fixed number would usually be so many. */
size_t fds__until_first(size_t players, size_t usual);
void fds__until_begin(fds__until *until, const fds_params *params, size_t first, size_t most);
/* The greatest of a prediction's errors: (players) at this stride. */
double fds__until_greatest(const double *errors, size_t players, size_t stride);
/* From the greatest error of each prediction, which it sorts: whether this was the last round; else
 * count is that of the next. is_ridged: errors are too small, because coalitions are few. */
bool fds__until_measure(fds__until *until, double *greatest, size_t predictions, bool is_ridged,
                        const fds_events *events);
json_t *fds__until_json(const fds__until *until);
/* FDS_ERR_USAGE where several processes would have to agree on a number that none of them knows. */
fds_status fds__until_refuse(const fds_params *params, fds_error *err);

/* A utility function, and the table of its answers. */
typedef struct fds__game {
    const char *kind; /* the caller's; NULL: none */
    fds_utility *utility;
    fds_table *table;
    fds_table_cost cost; /* before it was filled */
    size_t earlier;      /* computed in earlier rounds of `until_error` */
    double seconds;      /* of filling; before that, of making the utility function */
    char dir[FDS__PATH_MAX];
    bool is_temporary; /* closing the game removes the folder */
} fds__game;

/* table NULL: a temporary folder. is_look: does not make a table where there is none. */
fds_status fds__game_open(fds__game *game, const fds_problem *problem, const fds_params *params,
                          const char *table, bool is_look, const fds_events *events,
                          fds_error *err);
void fds__game_close(fds__game *game);
/* A new folder in the nearest existing folder above path (NULL: that of temporary files); and the
 * removal of a folder that has files only. */
fds_status fds__temporary_make(const char *path, char out[FDS__PATH_MAX], fds_error *err);
void fds__temporary_remove(const char *dir);
/* Logs what filling will take (memory 0: not known); FDS_ERR_IO when the disk is too small. */
fds_status fds__game_announce(const fds__game *game, bool is_most, uint64_t memory,
                              const fds_events *events, fds_error *err);
/* fds_table_fill; the error of a cancelled one says what is kept. */
fds_status fds__game_fill(fds__game *game, const fds_plan *plan, unsigned threads,
                          const fds_events *events, fds_error *err);
json_t *fds__game_json(const fds__game *game, bool is_filled);
/* The memory of the process in bytes now, and its peak. */
uint64_t fds__memory_resident(uint64_t *peak);

/* ---- export.c ---- */

#define FDS__EXPORT_SAMPLES "samples.csv"
#define FDS__EXPORT_INITIAL "initial.safetensors"
#define FDS__EXPORT_COALITIONS "coalitions.csv"

/* Writes these files of a folder. role: what the inputs are for, except the last ones, which are for
 * validation. */
fds_status fds__export_samples(const char *dir, const fds_utility *utility, const char *role,
                               size_t validation, fds_error *err);
/* Writes nothing for a utility function without a network. */
fds_status fds__export_initial(const char *dir, const fds_utility *utility, fds_error *err);
/* plan: those that train. */
fds_status fds__export_coalitions(const char *dir, const fds_plan *plan, const fds_plan *validation,
                                  fds_error *err);

/* ---- targets.c ---- */

/* What the predictions of a regression are compared with. */
typedef struct fds__aim {
    double *targets;  /* (inputs) standardised; NULL: labels are classes */
    double mean, std; /* by which they are */
    bool is_kernel;   /* the score */
} fds__aim;

/* v(s) of an input, from the standardised prediction of s. */
double fds__aim_score(const fds__aim *aim, size_t input, double prediction);
void fds__aim_free(fds__aim *aim);

/* ---- games.c: from a table to values ---- */

/* How a filled table becomes values. */
typedef struct fds__solving {
    fds_table *table;
    const fds_plan *plan;
    bool is_exact;
    fds_ls_params ls;
    const fds__aim *aim; /* of a regression; or NULL */
    unsigned threads;
    const fds_events *events;
} fds__solving;

/* values and errors (players, columns), columns as fds_table_view_create has them. */
fds_status fds__table_solve(const fds__solving *solving, const uint32_t *labels, bool is_mean,
                            double *values, double *errors, fds_ls_report *report, fds_error *err);
/* Adds to standard errors what answers whose variance is noise make of the values: to those of exact
 * values all of it, to those of least squares that of v(N), because the jackknife over the pairs sees
 * the rest. is_grouped: whole groups are players, for which it adds the greatest that it can be. */
void fds__noise_add(double noise, bool is_exact, bool is_grouped, size_t players, size_t count,
                    double *errors);
/* The standard error that this alone makes. */
double fds__noise_floor(double noise, bool is_exact, bool is_grouped, size_t players);
/* The utilities of no and of all players, (inputs, classes) each: rows 0 and 1 of a plan. */
fds_status fds__table_ends(fds_table *table, const fds_plan *plan, double *empty, double *full,
                           fds_error *err);
/* A plan of those two rows alone. */
fds_status fds__plan_ends(size_t players, fds_plan **out, fds_error *err);

/* Which labels of the test samples are explained, and the results of all players together. */
typedef struct fds__labels {
    uint32_t *labels, *predicted; /* (tests) */
    size_t right;                 /* test samples that are correctly classified */
    double empty, full;           /* mean utility of the labels with no and with all players */
    fds__aim aim;                 /* of a regression, where all labels are 0 */
    double *service;              /* (tests, classes) of a model trained elsewhere; or NULL */
    double error;                 /* mean squared error of all players together */
} fds__labels;

/* What a file of probabilities must have. */
typedef struct fds__service_form {
    size_t rows;
    uint32_t classes;
    const char *of;    /* what rows stand for */
    const void *names; /* of name_of, the name of a class */
    const char *(*name_of)(const void *names, uint32_t label);
} fds__service_form;

/* Reads and checks an NPY or CSV file of probabilities to out[rows * classes]. */
fds_status fds__service_load(const char *path, const fds__service_form *form, double *out,
                             fds_error *err);
/* The same of a file in memory, whose bytes are split in place. */
fds_status fds__service_parse(fds__blob *file, const fds__service_form *form, double *out,
                              fds_error *err);
/* Reads the parameter "service_probs" to out->service, which the caller frees. */
fds_status fds__service_read(const fds_problem *problem, const fds_params *params, fds__labels *out,
                             fds_error *err);
/* From (tests, classes) of no and of all players; full NULL: the true labels are explained. */
void fds__label_result(const fds_problem *problem, bool use_truth, const double *empty,
                       const double *full, fds__labels *out);
/* Warns if the model of all players is no better than the commonest label of the test samples. */
void fds__labels_warn(const fds_problem *problem, const fds__labels *labels,
                      const fds_events *events);
/* Adds what all players together reach; false: out of memory. */
bool fds__labels_describe(const fds__labels *labels, const fds_params *params, bool is_known,
                          json_t *about);
/* Samples, labels and, with ends (2, tests, classes), probabilities of a result's predictions. */
void fds__label_predictions(const fds_problem *problem, const fds__labels *labels,
                            const double *ends, fds_result *result);

/* The same of a regression: the aim at the true targets; then, from (tests) of no and of all players,
 * the results and, unless use_truth, the aim at what all players predict. utility may be NULL. */
fds_status fds__aim_make(const fds_problem *problem, const fds_params *params,
                         const fds_utility *utility, fds__labels *labels, fds_error *err);
void fds__aim_result(const fds_problem *problem, bool use_truth, const double *empty,
                     const double *full, fds__labels *out);
fds_status fds__aim_predictions(const fds_problem *problem, const fds__labels *labels,
                                bool use_truth, const double *ends, fds_result *result,
                                fds_error *err);

/* ---- shapley.c ---- */

/* The checks that need no problem. */
fds_status fds__shapley_check(const fds_params *params, fds_error *err);
fds_status fds__shapley_estimate(const fds_problem *problem, const fds_params *params,
                                 const char *table, const fds_events *events, json_t **out,
                                 fds_error *err);

/* ---- view.c ---- */

/* Makes the view one of a regression: columns of inputs are their scores. The aim must outlive it;
 * NULL: nothing is done. */
void fds__table_view_aim(fds_table_view *view, const fds__aim *aim);

/* ---- part.c, fill.c: parts ---- */

#define FDS__MAX_PARTS 1000000u

/* FDS_ERR_USAGE unless it is one of 1 .. count. */
fds_status fds__part_check(const fds_part *part, fds_error *err);
/* Whether a part has the coalition with this number among the different ones; NULL: all of them. */
static inline bool fds__part_has(const fds_part *part, size_t number) {
    return !part || number % part->count == part->number - 1;
}
/* What was computed, as JSON: folder, part, parts, sub_models, computed, seconds. */
fds_status fds__part_report(const char *dir, fds_part part, const fds_table_cost *before,
                            double seconds, char **out, fds_error *err);
/* FDS_ERR_CANCELLED, and how to go on. */
fds_status fds__fail_part(const char *dir, fds_error *err);
/* Notes in a table's folder which plan its parts are of: FDS_ERR_CONFLICT if it has those of another. */
fds_status fds__part_note(const char *dir, const fds_plan *plan, uint64_t draw, fds_error *err);
/* FDS_ERR_CONFLICT if two folders have notes that differ. *is_noted: whether the second has one. */
fds_status fds__part_compare(const char *first, const char *second, bool *is_noted, fds_error *err);
/* fds_table_estimate of a part; NULL: of the whole plan. */
fds_status fds__table_estimate_part(const fds_table *table, const fds_plan *plan,
                                    const fds_part *part, unsigned threads, fds_table_cost *cost,
                                    fds_error *err);

/* ---- ranks.c: the processes of an MPI job ---- */

/* Rows to compute, by rank 0 and the others. */
typedef struct fds__ranks_work {
    const fds_plan *plan;
    size_t count;
    const uint32_t *rows;     /* (count) */
    const uint32_t *segments; /* (count) where each record goes */
    unsigned workers;         /* of rank 0 */
    void *context;
    /* Computes record i on a worker; *record stays until the worker's next. */
    fds_status (*compute)(void *context, size_t i, unsigned worker, const uint8_t **record,
                          fds_error *err);
    /* Writes record i; worker may also be workers, for those of other ranks. One call at a time. */
    fds_status (*keep)(void *context, size_t i, unsigned worker, const uint8_t *record,
                       fds_error *err);
    /* Compares a second record i with the one that is kept. */
    fds_status (*compare)(void *context, size_t i, const uint8_t *record, fds_error *err);
} fds__ranks_work;

/* Other ranks compute the rows of plan for utility from now on; utility NULL: no longer. */
fds_status fds__ranks_bind(const fds_utility *utility, const fds_plan *plan, fds_store store,
                           fds_error *err);
/* Whether other ranks compute for this table and plan. */
bool fds__ranks_serve_table(const fds_table *table, const fds_plan *plan);
fds_status fds__ranks_run(const fds__ranks_work *work, const fds_events *events, fds_error *err);
/* What a rank other than 0 does, until rank 0 ends. */
fds_status fds__ranks_serve(const fds_utility *utility, const fds_plan *plan, fds_store store,
                            const fds_events *events, fds_error *err);

/* From now on each rank works for itself, until all meet. */
void fds__ranks_divide(void);
/* Rank 0 waits until all others have come here; the others wait until rank 0 ends. */
fds_status fds__ranks_meet(const fds_events *events, fds_error *err);

/* ---- import.c ---- */

/* What an import did: records taken, and found again with the same bytes. */
typedef struct fds__imported {
    size_t taken, repeated;
} fds__imported;

/* Takes the records of other tables' folders into the table in dir, which it creates if necessary.
 * Each keeps its slot. */
fds_status fds__table_import(const char *dir, const char *const *from, size_t count,
                             const fds_events *events, fds__imported *out, fds_error *err);
/* The checks that it begins with. */
fds_status fds__table_import_check(const char *dir, const char *const *from, size_t count,
                                   fds_error *err);
/* Whether a folder has a table. */
bool fds__is_table(const char *dir);
/* table.json, with "records", "damaged", "slots" and "bytes" added. The caller frees *out. */
fds_status fds__table_describe(const char *dir, const fds_events *events, json_t **out,
                               fds_error *err);
/* The same of one file of records, whose form has the right header: reads and checks all of them. take
 * receives the good ones; a damaged one is an error, or counted (form->damaged). */
fds_status fds__record_read_all(fds__file *file, const fds__record_form *form,
                                const fds_events *events, fds_error *err);
/* Locks what another process may be writing, by its existing lock file; none: nothing. */
fds_status fds__lock_source(const char *lock, const char *user, fds__file *out, fds_error *err);

/* ---- reuse.c ---- */

/* Who and what is where in another table. */
typedef struct fds__reuse {
    const uint32_t
        *players;           /* (players) numbers there; FDS__UNKNOWN: nobody has the same samples */
    size_t from_players;    /* how many it has */
    const uint32_t *inputs; /* (inputs) places there; NULL: the same */
} fds__reuse;

/* A coalition as the other table numbers players: out (words of its players). False: one of the members
 * is not there. */
bool fds__reuse_coalition(const fds__reuse *map, size_t players, const uint64_t *bits,
                          uint64_t *out);
/* Takes the records of the plan's coalitions that another table has; is_look: only counts them. */
fds_status fds__table_reuse(fds_table *into, const fds_plan *plan, const fds_table *from,
                            const fds__reuse *map, bool is_look, const fds_events *events,
                            size_t *reused, fds_error *err);
/* An existing table without its utility function, which can be read, but not filled. */
fds_status fds__table_open_bare(const char *dir, const fds_events *events, fds_table **out,
                                fds_error *err);

/* ---- table.c ---- */

const fds_utility *fds__table_utility(const fds_table *table);
size_t fds__table_count(const fds_table *table); /* of coalitions */
fds_store fds__table_store(const fds_table *table);
/* fds_table_fill for many small plans in a row: records of the last few seconds may not be on the
 * disk before fds__table_sync. */
fds_status fds__table_fill_more(fds_table *table, const fds_plan *plan, unsigned threads,
                                const fds_events *events, fds_error *err);
fds_status fds__table_sync(fds_table *table, fds_error *err);
/* The size of a table of so many coalitions on disk. */
fds_status fds__table_bytes(const fds_utility *utility, fds_store store, size_t coalitions,
                            uint64_t *bytes, fds_error *err);

/* ---- grouping.c ---- */

/* Groups of the players names[n] from the bytes of a file, which it overwrites; data[size] must be
 * NUL. */
fds_status fds__groups_parse(const char *path, char *data, size_t size, const char *const *names,
                             size_t n, fds_groups **out, fds_error *err);
/* The same from a file. */
fds_status fds__groups_read_names(const char *path, const char *const *names, size_t count,
                                  fds_groups **out, fds_error *err);

/* ---- given_values.c ---- */

/* The mistakes in the parameters of fds_shapley_utilities that show before the file is read. */
fds_status fds__given_check(const fds_params *params, fds_error *err);

#endif
