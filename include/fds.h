/* SPDX-License-Identifier: Apache-2.0
 *
 * fds: what every training-data provider contributed to a prediction.
 *
 * The one public header, in sections from simple to advanced:
 *   1. status, errors, events     every fallible call returns fds_status and fills an fds_error
 *   2. data                       datasets, splits, players, pictures of data
 *   3. models                     train a service model, use it, keep it in a file
 *   4. utilities                  what coalitions of players are worth, in a table on disk
 *   5. games                      coalitions, groups, Shapley values exact and by least squares
 *   6. explainers                 fit a run once, then values and payments in milliseconds
 *   7. baselines                  the methods that others value data by, on the same utilities
 *   8. evaluation                 how good values are; methods compared, with a report
 *   9. networks, many at a time   the engine under section 3, for thousands of small networks
 *  10. the machine                random numbers, checksums, instruction sets
 *
 * Ownership: *_create, *_open, *_load and *_train hand over a new object; the matching *_free takes
 * it back and accepts NULL. Pointers that a getter returns belong to the object. Objects marked
 * "shareable" are immutable once made and may be read by many threads; all others belong to
 * one thread at a time. The library never prints and never exits.
 */
#ifndef FDS_H
#define FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fds/version.h" /* FDS_VERSION, "0.1.0" */

#ifdef __cplusplus
extern "C" {
#endif

#define FDS_API __attribute__((visibility("default")))

FDS_API const char *fds_version(void); /* FDS_VERSION of the library, as the header's may differ */

/* ==== 1. Status, errors, events ============================================================= */

/* name, number (stable), exit code of the command, text */
#define FDS_STATUS_TABLE(X)                           \
    X(OK, 0, 0, "success")                            \
    X(ERR_USAGE, 1, 2, "wrong argument")              \
    X(ERR_NOMEM, 2, 1, "out of memory")               \
    X(ERR_IO, 3, 1, "file cannot be read or written") \
    X(ERR_NOT_FOUND, 4, 1, "not found")               \
    X(ERR_FORMAT, 5, 1, "file is malformed")          \
    X(ERR_SHAPE, 6, 1, "shapes do not agree")         \
    X(ERR_LIMIT, 7, 1, "too large")                   \
    X(ERR_CORRUPT, 8, 1, "checksum does not agree")   \
    X(ERR_UNSUPPORTED, 9, 1, "not supported")         \
    X(ERR_DIVERGED, 10, 1, "training diverged")       \
    X(ERR_CANCELLED, 11, 1, "cancelled")              \
    X(ERR_EXTERNAL, 12, 1, "a program that was called failed")

typedef enum fds_status {
#define FDS_X(name, number, exit_code, text) FDS_##name = number,
    FDS_STATUS_TABLE(FDS_X)
#undef FDS_X
} fds_status;

/* What went wrong, for people: the file, the place in it, what would be right. Owned by the caller;
 * every function accepts NULL. Untouched on success. */
typedef struct fds_error {
    fds_status status;
    char text[512];
} fds_error;

FDS_API const char *fds_status_name(fds_status status); /* "ERR_FORMAT" */
FDS_API const char *fds_status_text(fds_status status); /* "file is malformed" */
FDS_API int fds_status_exit_code(fds_status status);

typedef enum fds_log_level { FDS_LOG_INFO, FDS_LOG_WARNING } fds_log_level;

typedef struct fds_progress {
    const char *stage; /* "train", "evaluate", ... */
    const char *unit;  /* what is counted: "epochs", "images", ... */
    uint64_t done, total;
    double elapsed_s; /* since the stage began */
} fds_progress;

/* Callbacks of a long call, made only from the thread that made the call. Either may be NULL, and
 * so may the pointer to the whole. A progress callback that returns true asks the call to stop: it
 * then returns FDS_ERR_CANCELLED. */
typedef struct fds_events {
    void (*log)(void *user, fds_log_level level, const char *text);
    bool (*progress)(void *user, const fds_progress *progress);
    void *user;
} fds_events;

/* ==== 2. Data =============================================================================== */

/* Wherever samples are named by index and count, index NULL stands for samples 0 .. count-1, and
 * names asked for out of range are "?".
 *
 * One sample is channels x height x width numbers, row-major. A feature vector of length F is
 * F x 1 x 1, so that "per channel" means per feature. */
typedef struct fds_shape {
    uint32_t channels, height, width;
} fds_shape;

/* Samples, labels, names. Shareable. */
typedef struct fds_dataset fds_dataset;

typedef struct fds_dataset_info {
    const char *source; /* where it was read from */
    size_t count;       /* samples */
    fds_shape shape;
    bool is_bytes; /* values are bytes 0..255, seen by networks as 0..1; else floats as they are */
    bool is_image; /* false: feature vectors */
    uint32_t classes;             /* labels are 0 .. classes-1 */
    uint32_t providers;           /* 0: the data names no providers */
    const uint16_t *labels;       /* [count] */
    const uint32_t *provider_ids; /* [count], or NULL */
} fds_dataset_info;

typedef struct fds_data_options {
    const char *label_column;    /* CSV; NULL: "label" */
    const char *provider_column; /* CSV; NULL: "provider" where there is such a column */
    const char *labels_file;     /* NPY labels of a single NPY file; NULL: beside it by name */
} fds_data_options;

/* Opens data by the name of a fetched set ("mnist") or by path; see docs/data.md for the formats.
 * *test is NULL when the source has no test part of its own. options may be NULL. */
FDS_API fds_status fds_data_open(const char *where, const fds_data_options *options,
                                 fds_dataset **train, fds_dataset **test, fds_error *err);
FDS_API void fds_dataset_free(fds_dataset *ds);
FDS_API fds_dataset_info fds_dataset_get_info(const fds_dataset *ds);
FDS_API const char *fds_dataset_class_name(const fds_dataset *ds, uint32_t label);
FDS_API const char *fds_dataset_provider_name(const fds_dataset *ds, uint32_t provider);
/* Copies sample i as floats (bytes become 0..1) to out[channels * height * width]. */
FDS_API void fds_dataset_sample(const fds_dataset *ds, size_t i, float *out);

/* A dataset in memory, copied from the caller's arrays: bytes or floats, exactly one not NULL.
 * class_names may be NULL ("0", "1", ...). */
FDS_API fds_status fds_dataset_create(size_t count, fds_shape shape, const uint8_t *bytes,
                                      const float *floats, const uint16_t *labels, uint32_t classes,
                                      const char *const *class_names, fds_dataset **out,
                                      fds_error *err);

/* Fetches a known set ("mnist", "fashion-mnist", "cifar10"), checks it, and puts it into the data
 * folder ($FDS_DATA, else $XDG_DATA_HOME/fds, else ~/.local/share/fds). from: a folder that has the
 * files already, or NULL to fetch. path receives where the set now is. */
FDS_API fds_status fds_data_get(const char *name, const char *from, char *path, size_t path_size,
                                const fds_events *events, fds_error *err);
/* The names that fds_data_get knows, NULL-terminated. */
FDS_API const char *const *fds_data_known(void);

/* Chooses count samples, as equal a number of each class as there are (classes that run out give
 * what they have); index[count] receives them in ascending order. Sets of one seed are nested. */
FDS_API fds_status fds_split_balanced(const fds_dataset *ds, size_t count, uint64_t seed,
                                      uint32_t *index, fds_error *err);
/* Parts all samples into test[test_count], balanced by class, and train[the rest], ascending. */
FDS_API fds_status fds_split_test(const fds_dataset *ds, size_t test_count, uint64_t seed,
                                  uint32_t *train, uint32_t *test, fds_error *err);

/* Who is paid: n players, each owning one or many samples. Shareable. */
typedef struct fds_players fds_players;

/* Every sample of index is a player. */
FDS_API fds_status fds_players_points(const fds_dataset *ds, const uint32_t *index, size_t count,
                                      fds_players **out, fds_error *err);
/* Every provider with a sample in index is a player; FDS_ERR_USAGE when the data names none. */
FDS_API fds_status fds_players_providers(const fds_dataset *ds, const uint32_t *index, size_t count,
                                         fds_players **out, fds_error *err);
FDS_API void fds_players_free(fds_players *players);
FDS_API size_t fds_players_count(const fds_players *players);
/* The samples of player i, ascending; the return value is how many. */
FDS_API size_t fds_players_samples(const fds_players *players, size_t i, const uint32_t **index);
FDS_API const char *fds_players_name(const fds_players *players, size_t i);

/* Least and greatest value, mean and standard deviation of each channel over the samples of index
 * (NULL: all count of them), with bytes seen as 0..1. Each array [channels]; any may be NULL. */
FDS_API fds_status fds_dataset_stats(const fds_dataset *ds, const uint32_t *index, size_t count,
                                     float *min, float *max, float *mean, float *std,
                                     fds_error *err);

/* Draws the samples of index (images only) as a PNG of the given number of columns, each scaled up
 * to at least 80 pixels, with its class name below. */
FDS_API fds_status fds_dataset_draw(const fds_dataset *ds, const uint32_t *index, size_t count,
                                    uint32_t columns, const char *png_path, fds_error *err);

/* ==== 3. Models ============================================================================= */

typedef enum fds_optimizer { FDS_OPTIMIZER_ADAM, FDS_OPTIMIZER_SGD } fds_optimizer;

typedef struct fds_train_params {
    fds_optimizer optimizer;
    float lr;
    float momentum;              /* SGD */
    float beta1, beta2, epsilon; /* Adam */
    float weight_decay;          /* added to the gradient, times the weight, as PyTorch does */
    uint32_t batch;
    uint32_t epochs; /* how many; with converge, the cap */
    bool converge;   /* stop early: an epoch's mean training loss is below loss_bound, or has not
                      * fallen by more than min_delta below its best for patience epochs */
    float loss_bound, min_delta;
    uint32_t patience;
    uint64_t seed; /* initial weights and order of mini-batches */
} fds_train_params;

/* Adam, lr 1e-3, batch 16, 10 epochs; for converge: bound 0.01, delta 1e-4, patience 10. */
FDS_API fds_train_params fds_train_params_default(void);
/* Names the first mistake, before any work. */
FDS_API fds_status fds_train_params_check(const fds_train_params *params, fds_error *err);

typedef struct fds_train_report {
    uint32_t epochs;             /* run */
    bool converged;              /* stopped by the rule, not by the cap */
    float first_loss, last_loss; /* mean over the first and the last epoch, as training saw it */
} fds_train_report;

/* A trained network with everything needed to use it: its text, weights, normalisation and class
 * names. Shareable. */
typedef struct fds_model fds_model;

typedef struct fds_model_info {
    const char *network; /* its text in full, e.g. "conv:6x5p2,relu,...,fc:10" */
    fds_shape shape;
    uint32_t classes;
    size_t weights;
    const float *mean, *std; /* [channels] */
    const char *sha256;      /* of the weights' bytes, 64 hexadecimal digits */
} fds_model_info;

/* Trains a network ("lenet5", or a text as in section 9) on the samples of index, normalised by
 * their own channel statistics. One thread: many models are trained side by side, not one in many.
 */
FDS_API fds_status fds_model_train(const fds_dataset *ds, const uint32_t *index, size_t count,
                                   const char *network, const fds_train_params *params,
                                   const fds_events *events, fds_model **out,
                                   fds_train_report *report, fds_error *err);
FDS_API void fds_model_free(fds_model *model);
FDS_API fds_model_info fds_model_get_info(const fds_model *model);
FDS_API const char *fds_model_class_name(const fds_model *model, uint32_t label);

/* Class probabilities of the samples of index (NULL: all count): probs[count * classes]. The bits
 * do not depend on threads (0: all processors) nor on which samples are asked for together. */
FDS_API fds_status fds_model_predict(const fds_model *model, const fds_dataset *ds,
                                     const uint32_t *index, size_t count, unsigned threads,
                                     float *probs, const fds_events *events, fds_error *err);

typedef struct fds_score {
    size_t count;
    double loss; /* mean cross-entropy of the true label */
    double accuracy;
} fds_score;

FDS_API fds_status fds_model_score(const fds_model *model, const fds_dataset *ds,
                                   const uint32_t *index, size_t count, unsigned threads,
                                   fds_score *score, const fds_events *events, fds_error *err);

/* safetensors, tensors named as in the equivalent torch.nn.Sequential; see docs/models.md. Saving
 * replaces an old file only by a complete new one. */
FDS_API fds_status fds_model_save(const fds_model *model, const char *path, fds_error *err);
FDS_API fds_status fds_model_load(const char *path, fds_model **out, fds_error *err);

/* ==== 4. Utilities ========================================================================== */

/* The value of a coalition s for a prediction: v(s) = the probability that a model which learnt
 * from the samples of the players in s gives to label y of input x. A value function answers for
 * all inputs and all labels at once. It is a function of the set s alone. */
typedef struct fds_utility fds_utility;

typedef struct fds_utility_params {
    /* "retrain"     a network trained until it has converged (the paper's v)
     * "retrain:K"   a network trained for K epochs at beta times the learning rate (AFDS)
     * "knn:K"       the share of the label among the K nearest samples
     * "knn:K@model" the same by what the last layer of a network sees, trained on all players as
     *               "retrain:10" trains
     * "kernel"      kernel regression on the samples; cheap, meant as a surrogate
     * "entk"        the same with the tangent kernel of the network as it is initialised
     * "entk:K"      or as it is once trained on all players as "retrain:K" trains */
    const char *kind;
    const char *network;    /* retrain, @model, entk: as fds_model_train takes it */
    fds_train_params train; /* retrain: all but epochs and converge, which kind decides */
    float beta;             /* retrain:K, entk:K */
} fds_utility_params;

/* "retrain:10", lenet5, Adam, lr 1e-4 and beta 10 as in the paper. */
FDS_API fds_utility_params fds_utility_params_default(void);
/* How kind trains, so that a service model can be trained in the same way; kinds without a network
 * as "retrain:10". lr is lr times beta as decimal numbers: 0.0001 times 10 is 0.001 to the bit. */
FDS_API fds_status fds_utility_training(const fds_utility_params *params, fds_train_params *train,
                                        fds_error *err);

/* What the players' samples of train are worth for the samples inputs[0 .. input_count-1] of
 * test. workers: how many threads will ask at the same time (0: one a processor). The datasets and
 * players must outlive it. */
FDS_API fds_status fds_utility_create(const fds_utility_params *params, const fds_dataset *train,
                                      const fds_players *players, const fds_dataset *test,
                                      const uint32_t *inputs, size_t input_count, unsigned workers,
                                      fds_utility **out, fds_error *err);
FDS_API void fds_utility_free(fds_utility *value);

typedef struct fds_utility_info {
    size_t players, inputs;
    uint32_t classes;
    size_t memory; /* bytes that it holds */
    /* Everything that its answers depend on, as JSON: kind, network, training, seed, and checksums
     * of the samples. Equal texts, equal answers. */
    const char *text;
} fds_utility_info;
FDS_API fds_utility_info fds_utility_get_info(const fds_utility *value);

/* probs[inputs * classes] of one coalition (bits as in section 5), on worker number worker: each
 * number is used by one thread at a time. No players: the network as it was initialised (retrain),
 * 0 for every label (knn), or all labels alike (kernel, entk). */
FDS_API fds_status fds_utility_eval(const fds_utility *value, unsigned worker,
                                    const uint64_t *coalition, float *probs, fds_error *err);

/* Exact Shapley values of "knn:K" and "knn:K@model", by the recursion of Jia et al. (2019):
 * values[input_count * classes * players], by input, then label, then player. FDS_ERR_USAGE for other
 * kinds and for players of several samples. */
FDS_API fds_status fds_utility_knn_shapley(const fds_utility *value, double *values,
                                           fds_error *err);

/* Utilities on disk: for every coalition that was asked for, the probabilities of all inputs and
 * labels. A folder of table.json and *.seg; see docs/table.md. A process that dies at any point
 * loses only what it was just computing. */
typedef struct fds_table fds_table;

typedef enum fds_store { FDS_STORE_F32, FDS_STORE_F16 } fds_store;

/* Opens the folder dir for what value answers, or makes it. FDS_ERR_USAGE, naming the difference, when
 * the folder holds answers of another value function; FDS_ERR_IO when another process uses it. Every
 * record is checked: damaged ones are told to events and count as missing. */
FDS_API fds_status fds_table_open(const char *dir, const fds_utility *value, fds_store store,
                                  const fds_events *events, fds_table **out, fds_error *err);
FDS_API void fds_table_free(fds_table *table);

typedef struct fds_plan fds_plan;

/* What filling would take, before it begins. */
typedef struct fds_table_cost {
    size_t coalitions;  /* different ones in the plan */
    size_t missing;     /* of them, to be computed */
    uint64_t disk;      /* bytes that they will take */
    uint64_t disk_free; /* bytes that the disk has left */
    uint64_t memory;    /* bytes of memory for that and for reading them, besides value's own */
} fds_table_cost;
FDS_API fds_status fds_table_estimate(const fds_table *table, const fds_plan *plan,
                                      unsigned threads, fds_table_cost *need, fds_error *err);

/* Computes what the plan asks for and the table lacks, on at most as many threads as the value
 * function has workers. The bytes of the folder do not depend on threads nor on how often it was
 * interrupted. */
FDS_API fds_status fds_table_fill(fds_table *table, const fds_plan *plan, unsigned threads,
                                  const fds_events *events, fds_error *err);

/* ==== 5. Games ============================================================================== */

/* A coalition of n players is a set of bits: player i is bit i % 64 of word i / 64, and the bits
 * from n on are 0. */
static inline size_t fds_coalition_words(size_t players) { return (players + 63) / 64; }
static inline bool fds_coalition_has(const uint64_t *bits, size_t player) {
    return bits[player / 64] >> (player % 64) & 1;
}
FDS_API size_t fds_coalition_size(const uint64_t *bits, size_t players);
/* A number that depends on the set alone. */
FDS_API uint64_t fds_coalition_id(const uint64_t *bits, size_t players);

/* A partition of the players into groups 0 .. count-1, none empty. Shareable. */
typedef struct fds_groups fds_groups;

/* From the group of each player, any numbers; groups are numbered by their first player. names may
 * be NULL, else names[group_of[i]] is the name of player i's group. */
FDS_API fds_status fds_groups_create(const uint32_t *group_of, size_t players,
                                     const char *const *names, fds_groups **out, fds_error *err);
FDS_API void fds_groups_free(fds_groups *groups);
FDS_API size_t fds_groups_count(const fds_groups *groups);
FDS_API size_t fds_groups_players(const fds_groups *groups);
FDS_API uint32_t fds_groups_of(const fds_groups *groups, size_t player);
FDS_API size_t fds_groups_members(const fds_groups *groups, size_t group, const uint32_t **members);
FDS_API const char *fds_groups_name(const fds_groups *groups, size_t group);
/* By the label that most of a player's samples have; by the provider of a player's samples. */
FDS_API fds_status fds_groups_by_label(const fds_dataset *ds, const fds_players *players,
                                       fds_groups **out, fds_error *err);
FDS_API fds_status fds_groups_by_provider(const fds_dataset *ds, const fds_players *players,
                                          fds_groups **out, fds_error *err);
/* By k-means on what a model answers for the players' samples (the paper's Psi_N; for players of
 * several samples, on the mean): count groups, 0 for the square root of the number of players. */
FDS_API fds_status fds_groups_by_model(const fds_model *model, const fds_dataset *ds,
                                       const fds_players *players, size_t count, uint64_t seed,
                                       fds_groups **out, fds_error *err);
/* From a text file with one line "PLAYER,GROUP" for each player, by the players' names. */
FDS_API fds_status fds_groups_read(const char *path, const fds_players *players, fds_groups **out,
                                   fds_error *err);

/* Which coalitions are looked at, and what each weighs. Rows 0 and 1 are always the empty and the
 * full coalition, of weight 0: their values enter exactly. Shareable. */
typedef enum fds_sampler {
    FDS_SAMPLER_KERNEL, /* the paper's P(s): size k with weight 1/(k(n-k)), then a uniform subset */
    FDS_SAMPLER_PAIRED, /* the same, each followed by its complement */
    FDS_SAMPLER_LEVERAGE, /* sizes uniform in 1..n-1, complements, without replacement, weighted */
    FDS_SAMPLER_GFDS, /* for each group in turn: its members singly, every other group as one player */
    FDS_SAMPLER_GFDS_PLUS /* groups as players */
} fds_sampler;

/* The first count coalitions of a sampler (besides rows 0 and 1): plans of one seed are nested.
 * groups: for the last two, else NULL. Samplers that pair need an even count. FDS_ERR_LIMIT when
 * FDS_SAMPLER_LEVERAGE is asked for more coalitions than there are. */
FDS_API fds_status fds_plan_sample(fds_sampler sampler, size_t players, const fds_groups *groups,
                                   size_t count, uint64_t seed, fds_plan **out, fds_error *err);
/* All coalitions that the exact values need; FDS_ERR_LIMIT above 20 players at a time.
 * groups NULL: the Shapley value. Else, as sampler says (FDS_SAMPLER_GFDS or FDS_SAMPLER_GFDS_PLUS), the paper's
 * group-wise values. */
FDS_API fds_status fds_plan_exact(fds_sampler sampler, size_t players, const fds_groups *groups,
                                  fds_plan **out, fds_error *err);
FDS_API void fds_plan_free(fds_plan *plan);
FDS_API size_t fds_plan_players(const fds_plan *plan);
FDS_API size_t fds_plan_rows(const fds_plan *plan);    /* with rows 0 and 1 */
FDS_API bool fds_plan_is_paired(const fds_plan *plan); /* rows 2j and 2j+1 are complements */
FDS_API const uint64_t *fds_plan_coalition(const fds_plan *plan, size_t row);
FDS_API double fds_plan_weight(const fds_plan *plan, size_t row);

/* Where the estimators read the values of a plan's coalitions: columns are different games over
 * the same coalitions, for example one an input. read gives columns first .. first+count-1 of a
 * row, on worker number worker, which is below the number of threads that the estimator was given
 * (0: of processors): each number is used by one thread at a time. */
typedef struct fds_rows {
    size_t columns;
    fds_status (*read)(void *context, unsigned worker, size_t row, size_t first, size_t count,
                       double *out, fds_error *err);
    void *context;
} fds_rows;

/* The rows of a plan as a filled table has them. labels NULL: column input * classes + label; else
 * one column an input, of its label labels[input]; with is_mean (labels must be given), one column,
 * the mean of those. The table, the plan and labels must outlive it. */
typedef struct fds_table_view fds_table_view;
FDS_API fds_status fds_table_view_create(const fds_table *table, const fds_plan *plan,
                                         const uint32_t *labels, bool is_mean, unsigned workers,
                                         fds_table_view **out, fds_error *err);
FDS_API fds_rows fds_table_view_rows(fds_table_view *view);
FDS_API void fds_table_view_free(fds_table_view *view);

/* Exact values: values[players * columns], player by player. plan is of fds_plan_exact. */
FDS_API fds_status fds_exact(const fds_plan *plan, const fds_rows *rows, unsigned threads,
                             double *values, const fds_events *events, fds_error *err);

/* ---- Shapley values by least squares ---- */

/* What is fitted beside the plain least squares (docs/accuracy.md tells what each is worth):
 *   FDS_ADJUST_NONE   the minimiser of sum_s w(s) (v(s) - v(0) - s'phi)^2 with sum phi = v(1) - v(0)
 *   FDS_ADJUST_SHRINK  and a player's value is drawn towards the mean of its group
 *   FDS_ADJUST_COUNTS  and that for the difference between v and a fitted game of known values, which adds
 *               functions of how many members of each group, and how many players, take part
 * How strongly is chosen by how well coalitions that were left out are foretold. */
typedef enum fds_adjust { FDS_ADJUST_NONE, FDS_ADJUST_SHRINK, FDS_ADJUST_COUNTS } fds_adjust;

typedef struct fds_ls_params {
    fds_adjust adjust;
    const fds_groups *groups; /* NULL: all players are one group. FDS_ADJUST_NONE needs none */
    /* A surrogate game over the same plan, with its values [players * columns]: the least squares
     * then estimate the difference to as much of it as foretells left-out coalitions best. Both
     * NULL: none. */
    const fds_rows *control;
    const double *control_values;
} fds_ls_params;

typedef struct fds_ls_report {
    size_t pairs;    /* pairs, or single coalitions where the plan does not pair */
    size_t features; /* fitted numbers a column */
    double ridge;    /* added because there are few coalitions; 0: none. The greater of */
    double ridge_fit,
        ridge_rest; /* that of the fitted game (FDS_ADJUST_COUNTS), and that of the rest */
    double shrink, shrink_rest; /* strength for the fitted game, and for the rest */
    double control;             /* share of the surrogate game; 0: none */
    double explained;           /* share of the variance of left-out coalitions, by the fit */
} fds_ls_report;

/* Whether fds_least_squares can do it, before the work of filling a table: FDS_ERR_LIMIT for more
 * unknowns than it solves for. The surrogate game is not looked at. */
FDS_API fds_status fds_least_squares_check(const fds_plan *plan, const fds_ls_params *params,
                                           fds_error *err);
/* Bytes that it will hold at the most, besides the rows and the results; UINT64_MAX when it cannot
 * be done. */
FDS_API uint64_t fds_least_squares_memory(const fds_plan *plan, const fds_ls_params *params,
                                          size_t columns, unsigned threads);
/* values and errors [players * columns], player by player: Shapley values and their standard
 * errors (jackknife over the pairs; for shrunk values with an estimate of the bias as well). errors
 * and report may be NULL. Memory does not grow with the number of coalitions but for 32 bytes
 * each. Sets OpenBLAS to one thread, for the whole process. */
FDS_API fds_status fds_least_squares(const fds_plan *plan, const fds_rows *rows,
                                     const fds_ls_params *params, unsigned threads, double *values,
                                     double *errors, fds_ls_report *report,
                                     const fds_events *events, fds_error *err);

/* ---- Values in a file ---- */

/* What was estimated, for whom and for what. Columns are as in a table's view: a mean has one; else
 * one a test sample, or with target_labels NULL one a test sample and label. Nothing is copied. */
typedef struct fds_values {
    size_t players;
    const char *const *player_names; /* [players] */
    const uint32_t *player_labels;   /* [players] */
    uint32_t classes;
    const char *const *class_names; /* [classes] */
    bool is_mean;                   /* one value a player: tests and target_labels are not used */
    size_t tests;
    const uint32_t *test_samples;  /* [tests], their numbers; NULL: 0 .. tests-1 */
    const uint32_t *target_labels; /* [tests]; NULL: every label of each */
    /* [players * columns], player by player; errors NaN: not known; NULL: all 0 */
    const double *values, *errors;
} fds_values;

/* Writes .csv, .npy or .json, as the path ends; an old file is replaced only by a complete new one.
 * The formats are in docs/commands.md. */
FDS_API fds_status fds_values_save(const fds_values *values, const char *path, fds_error *err);
/* FDS_ERR_USAGE when a path ends in none of these, before any work. */
FDS_API fds_status fds_values_check_path(const char *path, fds_error *err);

/* ==== 6. Explainers ========================================================================= */

/* A run is a folder that holds everything needed to say, for any prediction of a service model,
 * what each player contributed: the service model, the utilities of sampled coalitions, and a
 * network, the explainer, that has learnt to turn an input into the Shapley values of all players
 * for all labels. It is fitted once; docs/run.md has its files. */

/* What the explainer's training minimises. With FDS_ADJUST_NONE both have the same minimiser; what the
 * other adjustments add is in the least-squares values alone:
 *   FDS_OBJECTIVE_CLOSED  the distance to the least-squares values of each input, which are solved for first
 *   FDS_OBJECTIVE_PAPER   the paper's loss (v(s) - v(0) - s'phi)^2 on coalitions drawn anew in each step */
typedef enum fds_objective { FDS_OBJECTIVE_CLOSED, FDS_OBJECTIVE_PAPER } fds_objective;

/* The paper's four methods are settings of these; fds_fit_params_default has them by name. */
typedef struct fds_fit_params {
    /* the game */
    fds_utility_params value;
    fds_sampler sampler; /* FDS_SAMPLER_GFDS and FDS_SAMPLER_GFDS_PLUS: GFDS and GFDS+ */
    size_t coalitions;   /* sub-models to learn from; 0: 20 a player, GFDS 10, GFDS+ 10 a group */
    fds_adjust adjust;   /* of the least squares */
    uint64_t draw;       /* which coalitions are drawn */
    /* the explainer */
    const char *explainer; /* "mlp", "cnn", "resnet18", "resnet50", "linear", or "bank": none, the
                            * sub-models answer themselves. NULL: "mlp" */
    const char *weights;   /* a safetensors file with torchvision's names to start from, or NULL */
    bool warm_up;          /* first train it as a classifier of the explainer's own inputs */
    bool is_by_group;      /* one output a group, divided evenly among its members (GFDS+) */
    float gamma;           /* else, of GFDS+: how strongly members are drawn to their mean */
    fds_objective objective;
    float lr;          /* 0: by explainer */
    uint32_t batch;    /* inputs a step; 0: by explainer */
    uint32_t epochs;   /* at the most; 0: by explainer */
    uint32_t patience; /* epochs without a better loss on what was kept out, then stop; 0: never */
    uint32_t draws;    /* FDS_OBJECTIVE_PAPER: coalitions an input and step, an even number */
    bool is_bf16;      /* bf16 arithmetic, where the processor has it */
    bool keep_models;  /* keep the sub-models: the bank */
    uint64_t seed;     /* of the explainer; the sub-models' is in value.train */
    unsigned threads;
    unsigned explainer_threads; /* of its training, on which its last bits depend; 0: threads */
} fds_fit_params;

/* By the name of a method: "fds", "afds", "gfds", "gfds+". */
FDS_API fds_status fds_fit_params_default(const char *method, fds_fit_params *params,
                                          fds_error *err);
FDS_API const char *const *fds_fit_methods(void);    /* NULL-terminated */
FDS_API const char *const *fds_fit_explainers(void); /* NULL-terminated */

typedef enum fds_fit_stage {
    FDS_FIT_STAGE_SERVICE,   /* the service model */
    FDS_FIT_STAGE_UTILITIES, /* sub-models */
    FDS_FIT_STAGE_VALUES,    /* least squares */
    FDS_FIT_STAGE_EXPLAINER, /* training the explainer */
    FDS_FIT_STAGE_CHECK,     /* its errors on what was kept out */
    FDS_FIT_STAGES
} fds_fit_stage;
FDS_API const char *fds_fit_stage_name(fds_fit_stage stage);

typedef struct fds_fit_report {
    size_t sub_models; /* in the table: those to learn from and those kept out, with v(0), v(1) */
    double service_accuracy; /* on the explainer's inputs, which it has not seen */
    uint32_t epochs, best_epoch;
    /* Of the explainer; NaN without one, and the correlations where no values differ. */
    double loss;      /* the paper's, on inputs and coalitions kept out */
    double agreement; /* correlation with the least squares on inputs kept out, label predicted */
    double within;    /* the same over the players of the predicted label's class */
    double seconds[FDS_FIT_STAGES];
    bool was_resumed; /* an earlier run of the same command had begun it */
} fds_fit_report;

/* Fits a run in the folder dir, or goes on with one that was broken off: the result has the same
 * bits as if it had not been (same threads and processor). A complete run is left as it is, but for
 * files that were damaged or lost: these are made again. inputs: samples of train that the
 * explainer learns from, none of a player's. groups: needed by GFDS, GFDS+ and FDS_ADJUST_COUNTS.
 * method: a name for the record. FDS_ERR_USAGE, naming the difference, when dir holds a run of other
 * settings. report may be NULL. */
FDS_API fds_status fds_fit(const char *dir, const char *method, const fds_dataset *train,
                           const fds_players *players, const fds_groups *groups,
                           const uint32_t *inputs, size_t input_count, const fds_fit_params *params,
                           const fds_events *events, fds_fit_report *report, fds_error *err);

/* What fitting would take, from about two seconds of trying. */
typedef struct fds_fit_estimate {
    size_t sub_models;
    double seconds[FDS_FIT_STAGES];
    uint64_t memory, disk;
    double accuracy; /* correlation with the true values to expect, from docs/accuracy.md; 0: no
                      * measurement is near */
    const char *accuracy_of; /* what was measured, for people: "explainers ..."; NULL: nothing */
} fds_fit_estimate;
FDS_API fds_status fds_fit_plan(const fds_dataset *train, const fds_players *players,
                                const fds_groups *groups, const uint32_t *inputs,
                                size_t input_count, const fds_fit_params *params,
                                fds_fit_estimate *out, fds_error *err);

/* A fitted run, ready to answer. Belongs to one thread. */
typedef struct fds_run fds_run;

typedef struct fds_run_info {
    const char *method, *source; /* the data's name or path */
    const char *explainer;       /* "mlp", ...; "bank" where there is no network */
    size_t players, groups;
    uint32_t classes;
    fds_shape shape;
    bool is_image, has_bank;
    const char *text; /* run.json */
} fds_run_info;

/* threads: 0 for those that it was fitted with. */
FDS_API fds_status fds_run_open(const char *dir, unsigned threads, fds_run **out, fds_error *err);
FDS_API void fds_run_free(fds_run *run);
FDS_API fds_run_info fds_run_get_info(const fds_run *run);
FDS_API const char *fds_run_player_name(const fds_run *run, size_t i);
FDS_API uint32_t fds_run_player_label(const fds_run *run, size_t i); /* of most of its samples */
FDS_API const char *fds_run_player_provider(const fds_run *run, size_t i); /* or NULL */
FDS_API const char *fds_run_class_name(const fds_run *run, uint32_t label);
/* The first sample of each player, with its label: for pictures. */
FDS_API const fds_dataset *fds_run_samples(const fds_run *run);
FDS_API const fds_model *fds_run_service(const fds_run *run);
/* FDS_ERR_USAGE when train is not the data that the run was fitted on. */
FDS_API fds_status fds_run_check_data(const fds_run *run, const fds_dataset *train, fds_error *err);

/* Who answers: the network, or the kept sub-models. */
typedef enum fds_answerer { FDS_ANSWERER_EXPLAINER, FDS_ANSWERER_BANK } fds_answerer;

/* The caller's arrays; labels is read where the caller says so, and written otherwise. */
typedef struct fds_answers {
    uint32_t *labels;     /* (count) which label of each input the values are for */
    float *probs;         /* (count, classes) the service model's; may be NULL */
    double *full, *empty; /* (count) v(1) and v(0) of that label; may be NULL */
    double *values;       /* (count, players) they add up to full - empty */
    double *errors;       /* (count, players) standard errors; may be NULL */
} fds_answers;

/* Values of the samples of index (NULL: all count) of ds; with is_given for the labels in answers,
 * else for those predicted, which it then writes there. FDS_ERR_SHAPE when ds is not of the run's
 * shape. */
FDS_API fds_status fds_run_explain(fds_run *run, fds_answerer by, const fds_dataset *ds,
                                   const uint32_t *index, size_t count, bool is_given,
                                   const fds_answers *answers, fds_error *err);
/* Where the standard errors come from, for people: "calibrated on 300 inputs kept out". */
FDS_API const char *fds_run_error_source(const fds_run *run, fds_answerer by);

/* Single picture files (PNG, JPEG) as a dataset of the given shape and number of classes; labels
 * are 0. Gray and colour are turned into each other; another size is FDS_ERR_SHAPE. */
FDS_API fds_status fds_data_pictures(const char *const *paths, size_t count, fds_shape shape,
                                     uint32_t classes, fds_dataset **out, fds_error *err);

/* The paper's figure as a PNG: a row an input, the input first, then its columns greatest
 * contributors with original label o, predicted label p and value s. true_labels may be NULL. */
FDS_API fds_status fds_run_draw(fds_run *run, const fds_dataset *ds, const uint32_t *index,
                                size_t count, const uint32_t *true_labels,
                                const fds_answers *answers, uint32_t columns, const char *png_path,
                                fds_error *err);

/* ---- Payments ---- */

/* How values become money:
 *   FDS_POLICY_CLIP    negative values earn nothing, the others share in proportion
 *   FDS_POLICY_SIGNED  c_i = phi_i / sum phi * c, the paper's: negative values owe */
typedef enum fds_policy { FDS_POLICY_CLIP, FDS_POLICY_SIGNED } fds_policy;

/* The rule that was followed in the end. */
typedef enum fds_pay_rule {
    FDS_PAY_RULE_CLIP,
    FDS_PAY_RULE_SIGNED,
    FDS_PAY_RULE_CLIP_FOR_SIGNED, /* asked for signed, but the sum is below 5 % of the sum of sizes */
    FDS_PAY_RULE_EVENLY           /* no value is above zero */
} fds_pay_rule;
FDS_API const char *fds_pay_rule_text(fds_pay_rule rule);

/* Divides amount, a whole number of the smallest unit of money, by the values: shares[count] add up
 * to it exactly (largest remainder; ties go to the lowest number). FDS_ERR_USAGE for no players, a
 * negative amount or values that are not finite; FDS_ERR_LIMIT for an amount above INT64_MAX / 32,
 * because a signed share may be 20 times as much. */
FDS_API fds_status fds_pay(const double *values, size_t count, int64_t amount, fds_policy policy,
                           int64_t *shares, fds_pay_rule *rule, fds_error *err);

/* ==== 7. Baselines ========================================================================== */

/* The methods that Fast-DataShapley is compared with, each as its authors define it. What a
 * coalition is worth is judged from the answers of one sub-model, the same for all methods, and all
 * ask the same table: whatever one of them has trained, no other trains again. docs/baselines.md
 * tells what each computes.
 *
 *   loo            leave one out: v(N) - v(N without i)
 *   tmc            truncated Monte Carlo Shapley (Ghorbani and Zou 2019)
 *   gshapley       one pass of gradient descent, a player a step (the same paper)
 *   group-testing  from random coalitions (Jia et al. 2019; improved: Wang and Jia 2023)
 *   cs-shapley     class-wise Shapley (Schoch et al. 2022)
 *   freeshap       tmc on kernel regression with the network's tangent kernel (Wang et al. 2024)
 *   knn:K          exact Shapley values of K nearest neighbours (Jia et al. 2019); knn:K@model
 *   banzhaf        Banzhaf values by maximum sample reuse (Wang and Jia 2023)
 *   beta:A,B       Beta Shapley (Kwon and Zou 2022); beta:1,1 is the Shapley value
 *   random         numbers that mean nothing; same-label: whether the labels agree. To compare with
 */

/* What a sub-model is judged by, from its answers for the test samples. */
typedef enum fds_scorer {
    FDS_SCORER_ACCURACY,      /* share of test samples whose label is the likeliest */
    FDS_SCORER_CONFIDENCE,    /* mean probability of the label */
    FDS_SCORER_CROSS_ENTROPY, /* mean logarithm of that probability, not below 1e-12 */
    FDS_SCORER_EACH_SAMPLE,   /* a game for every test sample: the probability of its label */
} fds_scorer;

typedef struct fds_baseline_params {
    const char *method;
    fds_scorer scorer;
    /* tmc, beta, gshapley, cs-shapley, freeshap */
    size_t permutations; /* random permutations of the players, at the most; 0: by method */
    double
        until; /* stop when, over the last 100 permutations, values changed by less than this share
                      * on average; 0: after all permutations only */
    double truncate; /* all of these but gshapley: what is left of an order counts as 0 once the
                      * value came this near to v(N), in shares of it, more than five times running;
                      * cs-shapley: to that of the whole class in the same company; 0: never */
    /* group-testing, banzhaf */
    size_t coalitions;     /* 0: as many as epsilon and delta need */
    double epsilon, delta; /* all values within epsilon (in Euclidean norm) with probability
                            * 1 - delta: group-testing by its authors' bound, banzhaf by one of
                            * ours (Hoeffding's); with FDS_SCORER_EACH_SAMPLE for each test sample */
    bool is_improved;      /* group-testing with a dummy player, the later form */
    uint64_t seed; /* of permutations and coalitions; the sub-models' is in the value function's */
    unsigned threads;
} fds_baseline_params;

/* What to start with. until 0.05 and, for tmc, truncate 0.01 are those of Data Shapley's authors,
 * which we take for cs-shapley too; beta and freeshap truncate nothing. Ours are 1,000 permutations at
 * the most, the 200 of freeshap, all of them walked, and epsilon, by which 100 players take some
 * 2,000 coalitions. FDS_ERR_USAGE for a method that there is not. */
FDS_API fds_status fds_baseline_params_default(const char *method, fds_baseline_params *params,
                                               fds_error *err);
FDS_API const char *const *fds_baseline_methods(void); /* NULL-terminated; "knn:K", "beta:A,B" */
/* Whether it asks a table of sub-models; the others need none. */
FDS_API bool fds_baseline_needs_table(const char *method);
/* FDS_ERR_USAGE, saying why, for a method that cannot be judged in this way or numbers that make no
 * sense, before any work. */
FDS_API fds_status fds_baseline_check(const fds_baseline_params *params, size_t players,
                                      fds_error *err);

/* How many different coalitions it will ask a table for at the most, before any work; 0 for a
 * method without one. */
FDS_API fds_status fds_baseline_most(const fds_baseline_params *params, size_t players,
                                     uint32_t classes, size_t *coalitions, fds_error *err);
/* What the table would have to take for that, as fds_table_estimate tells it of a plan. What it has
 * counts as if it were all among them; memory is left 0. */
FDS_API fds_status fds_baseline_estimate(const fds_baseline_params *params, const fds_table *table,
                                         fds_table_cost *need, fds_error *err);

/* The data of a baseline; the value function is that of the table, where there is one. */
typedef struct fds_baseline_data {
    const fds_dataset *train;
    const fds_players *players;
    const fds_dataset *test;
    const uint32_t *inputs; /* [input_count] samples of test; NULL: the first */
    size_t input_count;
    const uint32_t *labels; /* [input_count]: what the scorer asks about, usually the true ones */
    /* gshapley: the network and its seed; freeshap, knn: that of "entk" and "knn:K"; NULL: as
     * fds_utility_params_default has them */
    const fds_utility_params *value;
    fds_table *table; /* or NULL */
    /* freeshap, knn: such a value function on the same data, so that none has to be made, or NULL;
     * one of another kind is not used */
    const fds_utility *made;
} fds_baseline_data;

typedef struct fds_baseline_report {
    size_t asked;        /* coalitions that the method looked at, repetitions counted */
    size_t trained;      /* of them, sub-models that were not in the table before */
    size_t permutations; /* that were walked */
    double truncated;    /* share of their places that were not looked at */
    double change;       /* relative change over the last 100 permutations; NaN: fewer */
    bool has_converged;  /* change fell below until */
    double lr;           /* gshapley: the learning rate that was found */
    double seconds;
} fds_baseline_report;

/* values and errors [players * columns], player by player; columns: input_count for
 * FDS_SCORER_EACH_SAMPLE, else 1. errors are standard errors: 0 where nothing is drawn (loo, knn), NaN
 * where they are not known (of a single order or coalition; random and same-label). errors and
 * report may be NULL. Same seed, same bits, for any number of threads. */
FDS_API fds_status fds_baseline(const fds_baseline_params *params, const fds_baseline_data *data,
                                double *values, double *errors, fds_baseline_report *report,
                                const fds_events *events, fds_error *err);

/* ==== 8. Evaluation ========================================================================= */

/* ---- Single measures ---- */

/* Which players a model is trained without, by their values; of equal values the player of the
 * lower number counts as the greater. */
typedef enum fds_removal {
    FDS_REMOVAL_TOP,      /* without the most valuable: the paper's */
    FDS_REMOVAL_BOTTOM,   /* without the least valuable */
    FDS_REMOVAL_KEEP_TOP, /* with the most valuable alone */
} fds_removal;

/* The paper's value loss, input by input: for each share of the players (0 to 1), rounded to whole
 * players, that is removed or added, the cross-entropy -ln p(label) of a sub-model trained on the
 * others. values [players * columns], player by player, columns 1 (the same for all inputs) or one
 * an input of the table; losses[share_count * inputs], share by share. p is not taken below
 * FLT_MIN: a loss is at most 87.3. Sub-models come from the table, so equal coalitions are trained
 * once; the table must keep FDS_STORE_F32, as FDS_STORE_F16 has no numbers below 6e-8. trained (or NULL): how
 * many were not there yet. */
FDS_API fds_status fds_value_loss(fds_table *table, fds_removal way, const double *values,
                                  size_t columns, const uint32_t *labels, const double *shares,
                                  size_t share_count, unsigned threads, double *losses,
                                  size_t *trained, const fds_events *events, fds_error *err);

/* How near values come to those that are taken for the truth. NaN where it means nothing. */
typedef struct fds_agreement {
    double correlation;    /* over players; mean over the columns in which both differ */
    double within;         /* the same over the players whose label is the column's */
    double relative_error; /* |values - truth| / |truth| over all players and columns */
} fds_agreement;

/* values [players * columns] and truth [players * truth_columns], player by player; columns is
 * truth_columns, or 1 for values that are the same for every column of the truth (relative_error
 * is then NaN: their units differ). player_labels[players], labels[truth_columns]. */
FDS_API fds_status fds_agree(const double *values, size_t columns, const double *truth,
                             size_t truth_columns, size_t players, const uint32_t *player_labels,
                             const uint32_t *labels, fds_agreement *out, fds_error *err);

/* How well low values find marked players: the probability that a marked one is valued below
 * another, ties counting half; NaN when all or none are marked. values[players]. */
FDS_API double fds_ranking_area(const double *values, const bool *is_marked, size_t players);

/* ---- Methods compared ---- */

/* A case is one set of data with one seed: every method values the players for the same test
 * samples, the value loss of each is measured by retraining, and all of that is kept in a folder,
 * so that a case that was broken off goes on where it was. A report joins pairs. docs/bench.md has
 * the methods, the files and the keys of their JSON. */

typedef struct fds_bench_params {
    const char *const *methods; /* NULL-terminated names of fds_bench_methods; NULL: all of them
                                 * that there are for these players */
    const double *shares;       /* [share_count] of the players, ascending, above 0, at most 1 */
    size_t share_count;
    bool is_both_ways;     /* also without the least valuable, and with the most valuable alone */
    bool is_converged;     /* also scorer by models trained until they have converged, not only by
                            * those trained for 10 epochs; fds is judged so in any case */
    const char *network;   /* of service model and sub-models */
    const char *explainer; /* NULL: "mlp" */
    size_t coalitions;     /* sub-models of fds, afds, gfds and ls; 0: 20 a player */
    size_t permutations;   /* of tmc, cs-shapley, beta and gshapley at the most */
    size_t truth;          /* coalitions of the values that are taken for the truth; 0: none */
    double flipped; /* share of players whose labels are made wrong, to see which methods find
                     * them; 0: none */
    uint64_t seed;
    unsigned threads; /* numbers do not depend on it */
} fds_bench_params;

/* Shares of 5 % to 100 %, 40 permutations, LeNet-5. */
FDS_API fds_bench_params fds_bench_params_default(void);
/* "fds", ..., "freeshap/sample" (values for each test sample), ...: NULL-terminated. */
FDS_API const char *const *fds_bench_methods(void);
FDS_API fds_status fds_bench_check(const fds_bench_params *params, fds_error *err);

typedef struct fds_bench_data {
    const char *name; /* "mnist" */
    const fds_dataset *train;
    const fds_players *players;
    const uint32_t *inputs; /* [input_count] samples of train for explainers, none of a player's */
    size_t input_count;
    const fds_dataset *test;
    const uint32_t *tests; /* [test_count] samples of test; NULL: the first */
    size_t test_count;
} fds_bench_data;

/* Measures a case in the folder dir, or what is left of it to do; a finished one is left as it is.
 * dir/case.json has the result. FDS_ERR_USAGE, naming the difference, when dir holds a case of other
 * settings. */
FDS_API fds_status fds_bench_case(const char *dir, const fds_bench_data *data,
                                  const fds_bench_params *params, const fds_events *events,
                                  fds_error *err);

/* Joins the finished pairs of dirs (several seeds of one set of data become one) into the folder
 * out: report.html, which needs no other file, report.json and report.csv. command: how to repeat
 * it. */
FDS_API fds_status fds_bench_report(const char *out, const char *const *dirs, size_t count,
                                    const char *command, fds_error *err);

/* One number that differs between two reports. */
typedef struct fds_bench_change {
    const char *data, *method, *what; /* "mnist", "afds", "loss by retrain:10, top 10 %, right" */
    double before, after;
    /* the difference in standard errors of both; INFINITY where these are 0, NaN: not known */
    double sigmas;
} fds_bench_change;

/* Tells every number that two report.json have in common and that differs by more than sigmas
 * standard errors, or, where the error of one is not known, as of correlations of a single seed, by
 * more than a twentieth. Also what only one of them has: a set of data (method "") or a method,
 * with what "only before" or "only after" and both numbers NaN. *compared: how many were looked at.
 * Of each set of data, first: what was measured on, "players", "tests", "inputs", "seeds" (how
 * many) or "seed" (the first other one), then settings, with method "" and errors of 0; of texts
 * such as "network lenet5 before, mlp after" both numbers are NaN. Losses of a single seed have
 * errors over its test samples alone, which share its models. */
FDS_API fds_status fds_bench_compare(const char *before_path, const char *after_path, double sigmas,
                                     void (*on_change)(void *user, const fds_bench_change *change),
                                     void *user, size_t *compared, fds_error *err);

/* ==== 9. Networks, many at a time =========================================================== */

/* A network's plan: layers, shapes, where each weight lies. Shareable.
 *
 * Text: layers separated by commas; blanks around them are allowed.
 *   conv:OxK[pP]   O filters of K x K, zero padding P (0, below K), stride 1, with bias
 *   relu           max(0, x)
 *   maxpool[:K]    K x K windows (2), stride K, incomplete windows dropped
 *   fc:O           fully connected with bias; the first one flattens its input; O may be "classes"
 * It must end in fc with as many outputs as there are classes. The presets
 * logistic, mlp, lenet5 and cnn stand for such texts. */
typedef struct fds_net fds_net;

typedef struct fds_tensor_info {
    const char *name; /* as in torch.nn.Sequential: "0.weight" */
    uint32_t rank;
    uint32_t dims[4];
    size_t offset, count; /* in floats, within the weights */
} fds_tensor_info;

FDS_API fds_status fds_net_create(const char *text, fds_shape input, uint32_t classes,
                                  fds_net **out, fds_error *err);
FDS_API void fds_net_free(fds_net *net);
FDS_API const char *fds_net_text(const fds_net *net); /* presets and "classes" written out */
FDS_API size_t fds_net_weights(const fds_net *net);
FDS_API size_t fds_net_tensors(const fds_net *net);
FDS_API fds_tensor_info fds_net_tensor(const fds_net *net, size_t i);
/* Multiplications and additions that one sample needs, by definition of the layers. */
FDS_API uint64_t fds_net_flops_forward(const fds_net *net);
FDS_API uint64_t fds_net_flops_train(const fds_net *net);
/* Initial weights: uniform in +-1/sqrt(fan in), weights and biases, as PyTorch's layers start. */
FDS_API void fds_net_init(const fds_net *net, uint64_t seed, float *weights);

/* Normalised samples ready for the engine, with their labels. Shareable. The id of a sample is its
 * number in the dataset: it decides its place in the mini-batches. */
typedef struct fds_inputs fds_inputs;

FDS_API fds_status fds_inputs_create(const fds_dataset *ds, const uint32_t *index, size_t count,
                                     const float *mean, const float *std, fds_inputs **out,
                                     fds_error *err);
FDS_API void fds_inputs_free(fds_inputs *inputs);
FDS_API size_t fds_inputs_count(const fds_inputs *inputs);

/* One thread's workspace for a network: everything that training and evaluation need, allocated
 * once. The net must outlive it. */
typedef struct fds_lane fds_lane;

FDS_API fds_status fds_lane_create(const fds_net *net, fds_lane **out, fds_error *err);
FDS_API void fds_lane_free(fds_lane *lane);
/* Trains weights (in: initial, out: trained) on the given members of inputs: positions within
 * inputs, each once, in any order; no members leaves the weights as they are. events see epochs. */
FDS_API fds_status fds_lane_train(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                                  size_t count, const fds_train_params *params, float *weights,
                                  fds_train_report *report, const fds_events *events,
                                  fds_error *err);
/* Class probabilities of inputs first .. first+count-1: probs[count * classes]. FDS_ERR_DIVERGED when
 * an answer is infinite or not a number. */
FDS_API fds_status fds_lane_predict(fds_lane *lane, const fds_inputs *inputs, size_t first,
                                    size_t count, const float *weights, float *probs,
                                    fds_error *err);
/* The same before the softmax. */
FDS_API fds_status fds_lane_logits(fds_lane *lane, const fds_inputs *inputs, size_t first,
                                   size_t count, const float *weights, float *logits,
                                   fds_error *err);
/* The order in which an epoch visits members: a function of (seed, epoch, id of the sample) alone.
 * order[count] receives positions within inputs; mini-batches are consecutive runs of it. */
FDS_API fds_status fds_inputs_order(const fds_inputs *inputs, const uint32_t *members, size_t count,
                                    uint64_t seed, uint32_t epoch, uint32_t *order, fds_error *err);

/* ==== 10. The machine ======================================================================= */

/* "avx512", "avx2" or "generic": what the engine runs on, or "unsupported" when FDS_ISA in the
 * environment, which forces one, names another or one that the processor lacks. On a given kind of
 * processor all give the same bits. */
FDS_API const char *fds_isa(void);
FDS_API unsigned fds_processors(void);

/* Counter-based random numbers (Philox 4x64, 10 rounds): the numbers are a function of
 * (seed, purpose, a, b) and nothing else. Plain value; copy it freely. */
typedef struct fds_rng {
    uint64_t key[2], counter[4], block[4];
    unsigned used;
} fds_rng;

FDS_API fds_rng fds_rng_make(uint64_t seed, uint64_t purpose, uint64_t a, uint64_t b);
FDS_API uint64_t fds_rng_u64(fds_rng *rng);
FDS_API double fds_rng_unit(fds_rng *rng);                    /* in [0, 1), 53 bits */
FDS_API uint64_t fds_rng_below(fds_rng *rng, uint64_t bound); /* uniform in 0 .. bound-1 */
FDS_API double fds_rng_normal(fds_rng *rng);                  /* mean 0, variance 1 */
FDS_API void fds_rng_shuffle(fds_rng *rng, uint32_t *items, size_t count);

FDS_API uint64_t fds_checksum(const void *data, size_t size); /* XXH3, 64 bits */
FDS_API void fds_sha256_hex(const void *data, size_t size, char hex[65]);

#ifdef __cplusplus
}
#endif
#endif
