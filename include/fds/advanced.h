/* SPDX-License-Identifier: Apache-2.0
 *
 * What fds.h is made of: players and groups, utility functions, tables of utilities, plans of
 * coalitions, exact values and least squares. Stable within a minor version.
 */
#ifndef FDS_ADVANCED_H
#define FDS_ADVANCED_H

#include "../fds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Samples, players, groups ============================================================== */

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

/* Makes ds a dataset of a regression: targets[count] are to be predicted, in place of labels. */
FDS_API fds_status fds_dataset_set_targets(fds_dataset *ds, const double *targets, fds_error *err);
FDS_API bool fds_dataset_is_regression(const fds_dataset *ds);
FDS_API double fds_dataset_target(const fds_dataset *ds, size_t i); /* NaN: there is none */

/* Whether the labels of a result are targets, as text; values are of a score, not of a probability. */
FDS_API bool fds_result_is_regression(const fds_result *result);
/* The same targets with all digits: the mean of a player's samples; of a prediction the one that is
 * explained, what is predicted, and the true one. NaN: not known, or no regression. */
FDS_API double fds_result_player_target(const fds_result *result, size_t player);
FDS_API double fds_result_target(const fds_result *result, size_t prediction);
FDS_API double fds_result_predicted_target(const fds_result *result, size_t prediction);
FDS_API double fds_result_true_target(const fds_result *result, size_t prediction);

/* What a provider has. */
typedef struct fds_holding {
    size_t samples, classes;
    size_t repeated; /* samples with the values of an earlier one of the same provider */
    size_t shared;   /* samples whose values another provider has too */
} fds_holding;
/* out[providers]. */
FDS_API fds_status fds_dataset_holdings(const fds_dataset *ds, fds_holding *out, fds_error *err);
/* What is in a set, as JSON: source, count, shape, kind, values; classes with counts, or the range of
 * the targets; providers with what they have; the range of every channel. To be freed by
 * fds_text_free. */
FDS_API fds_status fds_dataset_describe(const fds_dataset *ds, char **json, fds_error *err);

/* Draws the samples of index (images only) as a PNG of the given number of columns, each scaled up
 * to at least 80 pixels, with its class name below. */
FDS_API fds_status fds_dataset_draw(const fds_dataset *ds, const uint32_t *index, size_t count,
                                    uint32_t columns, const char *png_path, fds_error *err);

/* Names for the samples of a dataset in memory, names[count], which are copied: players and results
 * then have them. */
FDS_API fds_status fds_dataset_name_samples(fds_dataset *ds, const char *const *names,
                                            fds_error *err);
/* Its name, or NULL: the data names none. */
FDS_API const char *fds_dataset_sample_name(const fds_dataset *ds, size_t i);

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
/* By k-means on a model's predictions for the players' samples (the paper's Psi_N; for players of
 * several samples, on the mean). count: of groups; 0: the square root of the number of players. */
FDS_API fds_status fds_groups_by_model(const fds_model *model, const fds_dataset *ds,
                                       const fds_players *players, size_t count, uint64_t seed,
                                       fds_groups **out, fds_error *err);
/* From a text file with one line "PLAYER,GROUP" for each player, by the players' names. */
FDS_API fds_status fds_groups_read(const char *path, const fds_players *players, fds_groups **out,
                                   fds_error *err);

/* The samples of a problem, by number instead of by params. All belong to train and are ascending;
 * none may be both. */
typedef struct fds_selection {
    const uint32_t
        *samples; /* of the players: each is one, or each owner is ("players" providers) */
    size_t sample_count;
    const uint32_t *inputs; /* training inputs of an explainer, for fds_fit; else NULL */
    size_t input_count;
    const fds_groups *groups; /* of the players, copied; NULL: as the parameter "group" says */
} fds_selection;
/* As fds_problem_create. All samples of test are test samples; test may be NULL for fds_fit, whose
 * report then has no scores. */
FDS_API fds_status fds_problem_select(const fds_dataset *train, const fds_dataset *test,
                                      const fds_selection *chosen, const fds_params *params,
                                      const fds_events *events, fds_problem **out, fds_error *err);

/* ==== Utilities ============================================================================= */

/* The utility of a coalition s for a prediction: v(s) = the probability that a model trained on
 * the samples of the players in s gives to label y of input x. A utility function answers for all
 * inputs and labels at once. It depends on the set s alone. */
typedef struct fds_utility fds_utility;

/* The utility function that params name ("utility", "model", ...) of the problem's players for its
 * test samples. workers: how many threads will call it at the same time (0: one per processor). The
 * problem must outlive it. */
FDS_API fds_status fds_utility_create(const fds_problem *problem, const fds_params *params,
                                      unsigned workers, fds_utility **out, fds_error *err);
FDS_API void fds_utility_free(fds_utility *utility);

/* A utility function of one's own: eval writes probs[inputs * classes] for the problem's test
 * samples, by a model of the coalition's samples, which are numbers of samples of the training data,
 * ascending; none for the empty coalition. worker is below the number of workers, and each number is
 * used by one thread at a time. Equal samples must give equal bits. A failure is a status other than
 * FDS_OK, with the reason in err->text. */
typedef fds_status (*fds_utility_callback)(void *context, unsigned worker, const uint32_t *samples,
                                           size_t count, float *probs, fds_error *err);
/* Makes one. text says what the answers depend on besides the data: it goes into the description of
 * tables, so that results of different functions do not mix. workers, problem: as above. */
FDS_API fds_status fds_utility_custom(const fds_problem *problem, const char *text,
                                      fds_utility_callback eval, void *context, unsigned workers,
                                      fds_utility **out, fds_error *err);

typedef struct fds_utility_info {
    size_t players, inputs;
    uint32_t classes;
    size_t memory; /* bytes that it holds */
    /* Everything that its answers depend on, as JSON: kind, network, training, seed, and checksums
     * of the samples. Equal texts, equal answers. */
    const char *text;
} fds_utility_info;
FDS_API fds_utility_info fds_utility_get_info(const fds_utility *utility);

/* probs[inputs * classes] of one coalition (a set of bits, as under Games), on worker number
 * worker: each number is used by one thread at a time. Without players: the network as initialised
 * (retrain), 0 for every label (knn), equal probabilities (tknn, kernel, entk), or the shares of
 * the classes among all players' samples (command). */
FDS_API fds_status fds_utility_eval(const fds_utility *utility, unsigned worker,
                                    const uint64_t *coalition, float *probs, fds_error *err);

/* Exact Shapley values of "knn:K" and "knn:K@model", by the recursion of Jia et al. (2019), and of
 * "tknn" and "tknn:T", by the formula of Wang et al. (2023): values[input_count * classes * players], by input, then label, then player. FDS_ERR_USAGE for
 * other kinds and for players of several samples. */
FDS_API fds_status fds_utility_knn_shapley(const fds_utility *utility, double *values,
                                           fds_error *err);

/* Utilities on disk: for every computed coalition, the probabilities of all inputs and
 * labels. A folder of table.json and *.seg; see docs/table.md. A process that dies at any point
 * loses only what it was computing. */
typedef struct fds_table fds_table;

typedef enum fds_store { FDS_STORE_F32, FDS_STORE_F16 } fds_store;

/* Opens the folder dir for a utility function, or creates it. FDS_ERR_CONFLICT, naming the
 * difference, if the folder belongs to another utility function or holds other files; FDS_ERR_IO if
 * another process uses it. Checks every record: events report damaged ones, which count as missing. */
FDS_API fds_status fds_table_open(const char *dir, const fds_utility *utility, fds_store store,
                                  const fds_events *events, fds_table **out, fds_error *err);
FDS_API void fds_table_free(fds_table *table);

typedef struct fds_plan fds_plan;

/* What filling would take, before it begins. */
typedef struct fds_table_cost {
    size_t coalitions;  /* different ones in the plan */
    size_t missing;     /* of them, still to compute */
    uint64_t disk;      /* bytes that they will take */
    uint64_t disk_free; /* bytes that the disk has left */
    uint64_t memory;    /* bytes of memory to fill and to read them, besides the utility's */
} fds_table_cost;
FDS_API fds_status fds_table_estimate(const fds_table *table, const fds_plan *plan,
                                      unsigned threads, fds_table_cost *need, fds_error *err);

/* Computes the coalitions of the plan that the table lacks, on at most as many threads as the
 * utility function has workers. The bytes of the folder depend neither on threads nor on
 * interruptions. */
FDS_API fds_status fds_table_fill(fds_table *table, const fds_plan *plan, unsigned threads,
                                  const fds_events *events, fds_error *err);

/* One of count parts of a plan: number 1 .. count. It has every count-th of the plan's different
 * coalitions, so parts take about the same time. */
typedef struct fds_part {
    size_t number, count;
} fds_part;

/* Computes what the table lacks of a part. Each record has the place in its files that it has when
 * one process fills an empty table; the places between are holes. FDS_ERR_CONFLICT if another
 * coalition has such a place. */
FDS_API fds_status fds_table_fill_part(fds_table *table, const fds_plan *plan, fds_part part,
                                       unsigned threads, const fds_events *events, fds_error *err);
/* Computes the part of the sub-models that fds_fit or fds_shapley with the same parameters would
 * train: in dir a folder "utilities" and, where a run keeps sub-models, "models.bank"; in table a
 * table. Goes on with what was interrupted. *report (or NULL): JSON, to be freed by fds_text_free. */
FDS_API fds_status fds_fit_part(const char *dir, const fds_problem *problem,
                                const fds_params *params, fds_part part, const fds_events *events,
                                char **report, fds_error *err);
FDS_API fds_status fds_shapley_part(const fds_problem *problem, const fds_params *params,
                                    const char *table, fds_part part, const fds_events *events,
                                    char **report, fds_error *err);
/* Takes the records of from[count] into dir: all are runs, or parts of them, or all are tables. dir
 * may be new. Checks first that the tables are of one utility function. A record that is there
 * already must have the same bytes. FDS_ERR_CONFLICT or FDS_ERR_CORRUPT names the file and the record;
 * what was taken before that stays. A fit or values in dir then compute only what is still missing. */
FDS_API fds_status fds_table_import(const char *dir, const char *const *from, size_t count,
                                    const fds_events *events, char **report, fds_error *err);
/* What a table, or that of a run, is and how much it has, as JSON; damaged records are counted. Changes
 * nothing. */
FDS_API fds_status fds_table_describe(const char *dir, const fds_events *events, char **json,
                                      fds_error *err);

/* One job of several processes, by MPI (docs/parts.md). begin loads the module fds-mpi.so and starts
 * MPI; FDS_ERR_UNSUPPORTED without it. Rank 0 then calls fds_fit or fds_shapley, the others the
 * function of that name with _serve and the same problem and parameters: they train sub-models for
 * rank 0 until it ends. The bits are those of one process. All call end, with their exit code; with
 * one other than 0, or if another rank does not answer, it ends the job and does not return. Only one
 * thread of a process may call these and the jobs. */
FDS_API fds_status fds_ranks_begin(fds_error *err);
FDS_API unsigned fds_ranks_number(void); /* 0 without MPI */
FDS_API unsigned fds_ranks_count(void);  /* 1 without MPI */
FDS_API void fds_ranks_end(int code);
FDS_API fds_status fds_fit_serve(const fds_problem *problem, const fds_params *params,
                                 const fds_events *events, fds_error *err);
FDS_API fds_status fds_shapley_serve(const fds_problem *problem, const fds_params *params,
                                     const fds_events *events, fds_error *err);

/* ---- runs whose data changes (docs/update.md) ---- */

/* Makes in out the run that fds_fit with the parameters of the run in dir gives on changed data: with
 * the samples of "add", without the providers of "remove", with other numbers of "inputs" or
 * "coalitions"; params: of the job "update". Sub-models whose coalitions stay valid are copied, others
 * trained. FDS_ERR_USAGE, and why, for a run that was not fitted with "changing" yes. Goes on with what
 * was interrupted. *report (or NULL): that of fds_fit with "reused", "trained" and "reason" (why
 * nothing could be reused, or null). */
FDS_API fds_status fds_update(const char *dir, const fds_params *params, const char *out,
                              const fds_events *events, char **report, fds_error *err);
/* Removes a provider from the run in dir, which becomes the run without it: afterwards the folder has
 * nothing that the provider's data had a part in. params: of the job "forget". A call that was
 * interrupted, even by a kill, is ended by the same call; until then the run is not complete.
 * FDS_ERR_NOT_FOUND: there is no such provider. *report: that of fds_update with "provider" and
 * "removed" (players, samples, records, models). */
FDS_API fds_status fds_forget(const char *dir, const char *provider, const fds_params *params,
                              const fds_events *events, char **report, fds_error *err);
/* What the other ranks of an MPI job call. */
FDS_API fds_status fds_update_serve(const char *dir, const fds_params *params,
                                    const fds_events *events, fds_error *err);

/* ==== Games ================================================================================= */

/* A coalition of n players is a set of bits: player i is bit i % 64 of word i / 64, and the bits
 * from n on are 0. */
static inline size_t fds_coalition_words(size_t players) { return (players + 63) / 64; }
static inline bool fds_coalition_has(const uint64_t *bits, size_t player) {
    return bits[player / 64] >> (player % 64) & 1;
}
FDS_API size_t fds_coalition_size(const uint64_t *bits, size_t players);
/* A number that depends on the set alone. */
FDS_API uint64_t fds_coalition_id(const uint64_t *bits, size_t players);

/* The coalitions to evaluate, with their weights. Rows 0 and 1 are always the empty and the
 * full coalition, of weight 0: their values enter exactly. Shareable. */
typedef enum fds_sampler {
    FDS_SAMPLER_KERNEL, /* the paper's P(s): size k with weight 1/(k(n-k)), then a uniform subset */
    FDS_SAMPLER_PAIRED, /* the same, each followed by its complement */
    FDS_SAMPLER_LEVERAGE, /* sizes uniform in 1..n-1, complements, without replacement, weighted */
    FDS_SAMPLER_GFDS, /* for each group: its members are players, every other group is one player */
    FDS_SAMPLER_GFDS_PLUS /* groups are players */
} fds_sampler;

/* The first count coalitions of a sampler (besides rows 0 and 1): plans of one seed are nested.
 * groups: for the last two, else NULL. Samplers that pair need an even count. FDS_ERR_LIMIT when
 * FDS_SAMPLER_LEVERAGE is asked for more coalitions than there are. */
FDS_API fds_status fds_plan_sample(fds_sampler sampler, size_t players, const fds_groups *groups,
                                   size_t count, uint64_t seed, fds_plan **out, fds_error *err);
/* The same for players who come and go: the draws of two lists of players, restricted to those that are
 * in both, are the same sets (docs/update.md). keys[players] say who they are, and are all different.
 * Sizes are uniform, as of FDS_SAMPLER_LEVERAGE; coalitions come in pairs, without repetition. */
FDS_API fds_status fds_plan_nested(const uint64_t *keys, size_t players, size_t count,
                                   uint64_t seed, const fds_events *events, fds_plan **out,
                                   fds_error *err);
/* All coalitions that the exact values need; FDS_ERR_LIMIT above 20 players at a time. groups NULL:
 * the Shapley value. Else, as sampler says (FDS_SAMPLER_GFDS or FDS_SAMPLER_GFDS_PLUS), the paper's
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
 * the same coalitions, for example one per input. read gives columns first .. first+count-1 of a
 * row, on worker number worker, which is below the number of threads that the estimator was given
 * (0: of processors): each number is used by one thread at a time. */
typedef struct fds_rows {
    size_t columns;
    fds_status (*read)(void *context, unsigned worker, size_t row, size_t first, size_t count,
                       double *out, fds_error *err);
    void *context;
} fds_rows;

/* The rows of a plan as a filled table has them. labels NULL: column input * classes + label; else
 * one column per input, of its label labels[input]; with is_mean (labels must be given), one
 * column, the mean of those. The table, the plan and labels must outlive it. */
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

/* What is fitted besides plain least squares (docs/accuracy.md compares them):
 *   FDS_ADJUST_NONE     minimises sum_s w(s) (v(s) - v(0) - s'phi)^2 with sum phi = v(1) - v(0)
 *   FDS_ADJUST_SHRINK   and values are shrunk towards the mean of their group
 *   FDS_ADJUST_COUNTS   and a fitted game of known values is a control variate: functions of how
 *                       many members of each group, and how many players, a coalition has
 *   FDS_ADJUST_CONTROL  the same control variate, and nothing is shrunk: a reference to compare
 *                       estimates with
 * How strongly is estimated from the coalitions. */
typedef enum fds_adjust {
    FDS_ADJUST_NONE,
    FDS_ADJUST_SHRINK,
    FDS_ADJUST_COUNTS,
    FDS_ADJUST_CONTROL
} fds_adjust;

typedef struct fds_ls_params {
    fds_adjust adjust;
    const fds_groups *groups; /* NULL: all players are one group. FDS_ADJUST_NONE needs none */
    /* A surrogate game over the same plan, with its values [players * columns], as a control
     * variate: the least squares estimate the difference to a multiple of it, which
     * cross-validation chooses. Both NULL: none. */
    const fds_rows *control;
    const double *control_values;
} fds_ls_params;

typedef struct fds_ls_report {
    size_t pairs;    /* pairs, or single coalitions where the plan does not pair */
    size_t features; /* fitted numbers per column */
    double ridge;    /* added because there are few coalitions; 0: none. The greater of */
    double ridge_fit,
        ridge_rest; /* that of the fitted game (FDS_ADJUST_COUNTS, _CONTROL), and that of the rest */
    double shrink, shrink_rest; /* strength for the fitted game, and for the rest */
    double control;             /* multiple of the surrogate game; 0: none */
    double explained; /* share of the variance of held-out coalitions that the fit predicts */
} fds_ls_report;

/* Checks, before a table is filled, that fds_least_squares can solve it: FDS_ERR_LIMIT for too many
 * unknowns. Ignores the surrogate game. */
FDS_API fds_status fds_least_squares_check(const fds_plan *plan, const fds_ls_params *params,
                                           fds_error *err);
/* The most bytes that it holds, besides the rows and the results; UINT64_MAX when it cannot be
 * done. */
FDS_API uint64_t fds_least_squares_memory(const fds_plan *plan, const fds_ls_params *params,
                                          size_t columns, unsigned threads);
/* values and errors [players * columns], player by player: Shapley values and their standard
 * errors (jackknife over the pairs; for shrunk values with an estimate of the bias as well). errors
 * and report may be NULL. Memory grows by 32 bytes per coalition; for more than 512 columns, at most
 * 256 MiB are kept besides. Sets OpenBLAS to one thread
 * while it works, for the whole process. */
FDS_API fds_status fds_least_squares(const fds_plan *plan, const fds_rows *rows,
                                     const fds_ls_params *params, unsigned threads, double *values,
                                     double *errors, fds_ls_report *report,
                                     const fds_events *events, fds_error *err);

/* ---- games of one's own ---- */

/* Shapley values of the games in the file of the parameter "utilities": coalitions and what they are
 * worth, as CSV or JSON (docs/utilities.md). Each game is a prediction of the result, named by the
 * file; nothing is trained. Parameters: "game", "group", "group_value", "method", "threads". */
FDS_API fds_status fds_shapley_utilities(const fds_params *params, const fds_events *events,
                                         fds_result **out, fds_error *err);

/* ==== Results =============================================================================== */

/* All values and standard errors of a result: values and errors [predictions * players], prediction
 * by prediction; either may be NULL. */
FDS_API void fds_result_copy(const fds_result *result, double *values, double *errors);
/* The samples of a player, and its group in the run, UINT32_MAX: it has none. */
FDS_API size_t fds_result_player_samples(const fds_result *result, size_t player);
FDS_API uint32_t fds_result_player_group(const fds_result *result, size_t player);

/* Its share of what is paid for a prediction (SIZE_MAX: for the mean) under the policy clip of
 * docs/pay.md: max(value, 0) over the sum of these, or the same for all if no value is above 0. */
FDS_API double fds_result_share(const fds_result *result, size_t prediction, size_t player);

/* Values of one's own, or of a result that was kept elsewhere. What may be NULL is not known. */
typedef struct fds_values {
    const char *method;
    size_t players, predictions;
    uint32_t classes;
    const char *const *class_names;  /* (classes) */
    const char *const *player_names; /* (players) */
    const char *const *providers;    /* (players), or NULL; each may be NULL */
    const char *const *inputs;       /* (predictions) names, or NULL */
    const uint32_t *player_labels;   /* (players) below classes */
    const uint32_t *player_samples;  /* (players) how many, or NULL: 1 each */
    const uint32_t *player_groups;   /* (players), or NULL */
    const uint32_t *labels;          /* (predictions) that the values explain, or NULL */
    const double *values;            /* (predictions, players) */
    const double *errors;            /* (predictions, players) standard errors, or NULL */
    bool is_exact;
    const double
        *player_targets;   /* (players) of a regression, which has no classes and labels; or NULL */
    const double *targets; /* (predictions) of a regression: explained; NaN, or NULL: not known */
} fds_values;
/* Everything is copied. */
FDS_API fds_status fds_result_create(const fds_values *values, fds_result **out, fds_error *err);

/* ==== Single inputs ========================================================================= */

/* One new sample: a JSON object with the columns of the CSV file that the run was fitted on, such as
 * {"price": 9.5, "colour": "red"}, or an array of all numbers of a sample. */
FDS_API fds_status fds_input_json(const fds_run *run, const char *json, fds_input **out,
                                  fds_error *err);
/* Before the first of many inputs without labels: finds the mistakes in params that do not depend on
 * inputs, reads the data of "new_player" and trains with it, as the first fds_run_explain would. */
FDS_API fds_status fds_run_explain_prepare(fds_run *run, const fds_params *params,
                                           const fds_events *events, fds_error *err);

/* ==== Clusters ============================================================================== */

/* What the members of clusters get of the sums of a payment, by the number of their samples:
 * {"clusters":[{"player":"A + B","units":N,"amount":TEXT,
 *               "members":[{"name","samples","units","amount"}...]}...]}, to be freed by
 * fds_text_free. The list is empty unless clusters are paid ("cluster"), as players or providers. */
FDS_API fds_status fds_payment_clusters(const fds_payment *payment, char **json, fds_error *err);

/* ==== Many answers ========================================================================== */

/* Answers to the next inputs, which become the callee's. */
typedef fds_status (*fds_answered_function)(void *user, fds_result *answers, fds_error *err);
/* fds_run_explain in batches, in memory that does not grow with the number of inputs. The answers have
 * the same bits; a failure of the function ends it. */
FDS_API fds_status fds_run_explain_each(fds_run *run, const fds_input *input,
                                        const fds_params *params, fds_answered_function answered,
                                        void *user, const fds_events *events, fds_error *err);

/* Writes a result that comes in parts, of the same players. predictions: of all parts together. */
typedef struct fds_result_writer fds_result_writer;
/* A file as of fds_result_save, which replaces an old one when it is complete. */
FDS_API fds_status fds_result_writer_open(const char *path, size_t predictions,
                                          fds_result_writer **out, fds_error *err);
/* The text of fds_result_json, piece by piece; "seconds" of several parts are its last member. write
 * returns false when it fails. */
FDS_API fds_status fds_result_writer_print(size_t predictions, fds_write_function write, void *user,
                                           fds_result_writer **out, fds_error *err);
FDS_API fds_status fds_result_writer_add(fds_result_writer *writer, const fds_result *part,
                                         fds_error *err);
/* Ends the text, and puts the file in place. */
FDS_API fds_status fds_result_writer_finish(fds_result_writer *writer, fds_error *err);
FDS_API void fds_result_writer_free(fds_result_writer *writer);

/* ==== Many payments ========================================================================= */

/* Answers for the inputs first .. first+count-1; *out becomes the asker's. events: of this call. */
typedef fds_status (*fds_answer_function)(void *user, size_t first, size_t count,
                                          const fds_events *events, fds_result **out,
                                          fds_error *err);
/* Called once these answers are paid. answers become the callee's, payment does not. */
typedef fds_status (*fds_paid_function)(void *user, fds_result *answers, const fds_payment *payment,
                                        fds_error *err);
/* Pays for all inputs, block by block, in memory that does not grow with their number. Without a carry
 * it goes through them twice, so that every payee ends within one unit of its exact total: answer may be
 * asked for a block again. fds_payer_finish comes after it. */
FDS_API fds_status fds_payer_run(fds_payer *payer, size_t inputs, fds_answer_function answer,
                                 fds_paid_function paid, void *user, const fds_events *events,
                                 fds_error *err);

#ifdef __cplusplus
}
#endif
#endif
