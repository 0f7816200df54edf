/* SPDX-License-Identifier: Apache-2.0
 *
 * fds: what every training-data provider contributed to a prediction.
 *
 * This header is what most programs need, and is stable:
 *   1. status, errors, events   every fallible call returns fds_status and fills an fds_error
 *   2. parameters               by name, with defaults, ranges and help
 *   3. data                     datasets from files and from memory
 *   4. the problem              players, test samples, training inputs: chosen and checked once
 *   5. values                   Shapley values and baselines of a problem, with standard errors
 *   6. models                   a service model alone
 *   7. runs                     fit once, then explain any prediction in milliseconds
 *   8. payments                 values as money
 * fds/advanced.h has utilities, tables, plans and estimators; fds/engine.h networks and random
 * numbers, without a promise of stability; fds/eval.h methods compared; fds/ledger.h ledgers.
 *
 * Ownership: a function that hands over a new object has a matching *_free, which accepts NULL.
 * Pointers that a getter returns belong to the object. An object belongs to one thread at a time,
 * unless it is marked "shareable". The library never exits, and prints only through fds_events.
 * A process that forks after it has used the library must not use it in the child.
 */
#ifndef FDS_H
#define FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fds/version.h" /* FDS_VERSION, "0.2.0" */

#ifdef __cplusplus
extern "C" {
#endif

#define FDS_API __attribute__((visibility("default")))

/* ==== 1. Status, errors, events ============================================================= */

/* The version of the library in use, "0.2.0". */
FDS_API const char *fds_version(void);

/* name, number (stable), exit code of the command, text */
#define FDS_STATUS_TABLE(X)                                    \
    X(OK, 0, 0, "success")                                     \
    X(ERR_USAGE, 1, 2, "wrong argument")                       \
    X(ERR_NOMEM, 2, 1, "out of memory")                        \
    X(ERR_IO, 3, 1, "file cannot be read or written")          \
    X(ERR_NOT_FOUND, 4, 1, "not found")                        \
    X(ERR_FORMAT, 5, 1, "file is malformed")                   \
    X(ERR_SHAPE, 6, 1, "shapes do not agree")                  \
    X(ERR_LIMIT, 7, 1, "too large")                            \
    X(ERR_CORRUPT, 8, 1, "checksum does not agree")            \
    X(ERR_UNSUPPORTED, 9, 1, "not supported")                  \
    X(ERR_DIVERGED, 10, 1, "training diverged")                \
    X(ERR_CANCELLED, 11, 1, "cancelled")                       \
    X(ERR_EXTERNAL, 12, 1, "a program that was called failed") \
    X(ERR_CONFLICT, 13, 2, "folder belongs to other parameters or holds other files")

typedef enum fds_status {
#define FDS_X(name, number, exit_code, text) FDS_##name = number,
    FDS_STATUS_TABLE(FDS_X)
#undef FDS_X
} fds_status;

/* What went wrong, for people: the file, the place in it, what would be right. Parameters stand in
 * backquotes. Owned by the caller; every function accepts NULL. Untouched on success. */
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
 * then returns FDS_ERR_CANCELLED, within a second. */
typedef struct fds_events {
    void (*log)(void *user, fds_log_level level, const char *text);
    bool (*progress)(void *user, const fds_progress *progress);
    void *user;
} fds_events;

/* Events that show a bar, notes and warnings on standard error; for one thread of a process. */
FDS_API const fds_events *fds_events_terminal(void);
FDS_API void fds_terminal_clear(void); /* takes the bar away, before anything else is printed */

/* ==== 2. Parameters ========================================================================= */

/* The parameters of a job, every default set. docs/parameters.md lists them. */
typedef struct fds_params fds_params;

/* job: "train", "shapley", "baseline", "fit", "bench", "explain", "pay", "show", "audit",
 * "serve", "ledger", "value", "privacy", "trust", "update" or "forget". NULL for another one, or without memory. */
FDS_API fds_params *fds_params_create(const char *job);
FDS_API void fds_params_free(fds_params *params);
/* The text is copied. FDS_ERR_USAGE names the parameter, its range and what was given. */
FDS_API fds_status fds_params_set(fds_params *params, const char *name, const char *text,
                                  fds_error *err);
/* The value as text, cut to size; "auto" for what is chosen later. */
FDS_API fds_status fds_params_get(const fds_params *params, const char *name, char *out,
                                  size_t size, fds_error *err);

typedef enum fds_level {
    FDS_LEVEL_OPERAND, /* what the command takes without an option */
    FDS_LEVEL_COMMON,
    FDS_LEVEL_ADVANCED,
    FDS_LEVEL_EVERY /* that every job has */
} fds_level;

typedef struct fds_param_info {
    const char *name, *type;          /* type: "flag", "text", "choice", "count" or "real" */
    const char *value;                /* "N", "FILE", "adam|sgd"; NULL for a flag */
    const char *standard, *automatic; /* the default, or in words how it is chosen; or NULL */
    const char *help;
    const char *methods; /* that take it, separated by blanks; NULL: all */
    double min, max;     /* of numbers */
    bool is_above;       /* min itself is not allowed */
    fds_level level;
} fds_param_info;

/* Parameter number i (from 0) of a job; false after the last. */
FDS_API bool fds_params_describe(const char *job, size_t i, fds_param_info *info);
/* For "did you mean": the name most like word, or NULL when none is near; names ends with NULL. */
FDS_API const char *fds_nearest(const char *word, const char *const *names);

/* ==== 3. Data =============================================================================== */

/* Wherever samples are named by index and count, index NULL stands for samples 0 .. count-1. A
 * getter returns "?" for an index out of range.
 *
 * One sample is channels x height x width numbers, row-major. A feature vector of length F is
 * F x 1 x 1, so that "per channel" means per feature. */
typedef struct fds_shape {
    uint32_t channels, height, width;
} fds_shape;

/* Samples, labels, names. Shareable. */
typedef struct fds_dataset fds_dataset;

/* Opens data by the name of a fetched set ("mnist") or by path; docs/data.md has the formats.
 * params (or NULL): label, provider and labels say how. *test is NULL when the source has no test
 * part of its own. */
FDS_API fds_status fds_data_open(const char *where, const fds_params *params,
                                 const fds_events *events, fds_dataset **train, fds_dataset **test,
                                 fds_error *err);
FDS_API void fds_dataset_free(fds_dataset *ds);
FDS_API const char *fds_dataset_source(const fds_dataset *ds); /* where it was read from */
FDS_API size_t fds_dataset_count(const fds_dataset *ds);       /* samples */
FDS_API fds_shape fds_dataset_shape(const fds_dataset *ds);
FDS_API bool fds_dataset_is_image(const fds_dataset *ds); /* else feature vectors */
FDS_API bool fds_dataset_is_bytes(const fds_dataset *ds); /* 0..255, which networks see as 0..1 */
FDS_API uint32_t fds_dataset_classes(const fds_dataset *ds);   /* labels are 0 .. classes-1 */
FDS_API uint32_t fds_dataset_providers(const fds_dataset *ds); /* 0: the data names none */
FDS_API uint32_t fds_dataset_label(const fds_dataset *ds, size_t i);
/* The provider of sample i, 0 .. providers-1; 0 where the data names none. */
FDS_API uint32_t fds_dataset_provider(const fds_dataset *ds, size_t i);
FDS_API const char *fds_dataset_class_name(const fds_dataset *ds, uint32_t label);
FDS_API const char *fds_dataset_provider_name(const fds_dataset *ds, uint32_t provider);
/* The name of a CSV file's column of values, or NULL: images have none. */
FDS_API const char *fds_dataset_feature_name(const fds_dataset *ds, size_t feature);
/* Copies sample i as floats (bytes become 0..1) to out[channels * height * width]. */
FDS_API void fds_dataset_sample(const fds_dataset *ds, size_t i, float *out);

/* A dataset in memory. The arrays are the caller's and are copied. Of bytes and floats exactly one
 * is not NULL; class_names NULL: "0", "1", ...; providers[count] and its names may be NULL. */
typedef struct fds_arrays {
    size_t count;
    fds_shape shape;
    const uint8_t *bytes;
    const float *floats;
    const uint16_t *labels;
    uint32_t classes;
    const char *const *class_names;
    const uint32_t *providers;
    uint32_t provider_count;
    const char *const *provider_names;
} fds_arrays;
FDS_API fds_status fds_dataset_create(const fds_arrays *arrays, fds_dataset **out, fds_error *err);

/* Fetches a known set ("mnist", "fashion-mnist", "cifar10"), checks it, and puts it into the data
 * folder ($FDS_DATA, else $XDG_DATA_HOME/fds, else ~/.local/share/fds). from: a folder that has the
 * files already, or NULL to fetch. path receives where the set now is. */
FDS_API fds_status fds_data_get(const char *name, const char *from, char *path, size_t path_size,
                                const fds_events *events, fds_error *err);
/* The names that fds_data_get knows, NULL-terminated. */
FDS_API const char *const *fds_data_known(void);

/* ==== 4. The problem ======================================================================== */

/* Training data, players, groups, training inputs of an explainer, test samples: made once, checked
 * once, handed to every method. Shareable. */
typedef struct fds_problem fds_problem;

/* Opens the data that params name, and chooses players, test samples and training inputs. Warnings
 * about what is missing go to events. */
FDS_API fds_status fds_problem_open(const fds_params *params, const fds_events *events,
                                    fds_problem **out, fds_error *err);
/* The same from datasets in memory, which must outlive it; test may be NULL. */
FDS_API fds_status fds_problem_create(const fds_dataset *train, const fds_dataset *test,
                                      const fds_params *params, const fds_events *events,
                                      fds_problem **out, fds_error *err);
FDS_API void fds_problem_free(fds_problem *problem);
FDS_API size_t fds_problem_players(const fds_problem *problem);
FDS_API const char *fds_problem_player(const fds_problem *problem, size_t i);
FDS_API size_t fds_problem_tests(const fds_problem *problem);
FDS_API const fds_dataset *fds_problem_train(const fds_problem *problem);
FDS_API const fds_dataset *fds_problem_test(const fds_problem *problem); /* whose samples test */
/* What it holds, as JSON. The text belongs to the problem. */
FDS_API const char *fds_problem_describe(const fds_problem *problem);

/* ==== 5. Values ============================================================================= */

/* Values and standard errors of all players for one or many predictions, with everything that is
 * needed to read them. Shareable. */
typedef struct fds_result fds_result;

/* Shapley values of the problem's players for its test samples, by the method "ls" or "exact".
 * Sub-models are kept in the folder table (NULL: a new one that is removed): a call that was
 * interrupted goes on, and other questions use what is there. FDS_ERR_CONFLICT, naming the
 * difference, if the folder belongs to other parameters or holds other files. */
FDS_API fds_status fds_shapley(const fds_problem *problem, const fds_params *params,
                               const char *table, const fds_events *events, fds_result **out,
                               fds_error *err);
/* The same by a baseline: "loo", "tmc", "knn:5", ...; docs/baselines.md lists them. */
FDS_API fds_status fds_baseline(const fds_problem *problem, const fds_params *params,
                                const char *table, const fds_events *events, fds_result **out,
                                fds_error *err);
FDS_API const char *const *fds_baseline_methods(void);    /* NULL-terminated; "knn:K", "beta:A,B" */
FDS_API const char *fds_baseline_about(const char *name); /* of that list, in a line; or NULL */
/* The mistakes in the parameters of either that show before any data is read; table: the folder
 * that a user asks for, or NULL. */
FDS_API fds_status fds_value_check(const fds_params *params, const char *table, fds_error *err);
/* What either would take, as JSON; nothing is computed, and nothing is written. The caller frees
 * *json by fds_text_free. */
FDS_API fds_status fds_value_estimate(const fds_problem *problem, const fds_params *params,
                                      const char *table, const fds_events *events, char **json,
                                      fds_error *err);
FDS_API void fds_text_free(char *text);

/* What a result holds. */
FDS_API void fds_result_free(fds_result *result);
FDS_API size_t fds_result_players(const fds_result *result);
FDS_API size_t fds_result_predictions(const fds_result *result); /* 1 for a mean */
FDS_API const char *fds_result_method(const fds_result *result);
FDS_API bool fds_result_is_mean(const fds_result *result); /* one value per player for all tests */
FDS_API bool fds_result_is_exact(const fds_result *result);
FDS_API const char *fds_result_player(const fds_result *result, size_t player);
FDS_API const char *fds_result_provider(const fds_result *result, size_t player); /* or NULL */
FDS_API const char *fds_result_player_label(const fds_result *result, size_t player);
FDS_API const char *fds_result_input(const fds_result *result, size_t prediction);
FDS_API const char *fds_result_label(const fds_result *result, size_t prediction);
/* The label that the service model predicts and the true one, NULL where they are not known. */
FDS_API const char *fds_result_predicted(const fds_result *result, size_t prediction);
FDS_API const char *fds_result_truth(const fds_result *result, size_t prediction);
/* Probability of the predicted label; of the explained one with no and with all players; or NaN. */
FDS_API double fds_result_confidence(const fds_result *result, size_t prediction);
FDS_API double fds_result_empty(const fds_result *result, size_t prediction);
FDS_API double fds_result_full(const fds_result *result, size_t prediction);
FDS_API double fds_result_value(const fds_result *result, size_t prediction, size_t player);
/* The standard error: 0 for exact values, NaN where it is not known. */
FDS_API double fds_result_error(const fds_result *result, size_t prediction, size_t player);
/* The same by the kept sub-models, with the parameter "check"; else NaN. */
FDS_API double fds_result_check(const fds_result *result, size_t prediction, size_t player);
FDS_API double fds_result_check_error(const fds_result *result, size_t prediction, size_t player);
/* Of the two, over the players. */
FDS_API double fds_result_check_correlation(const fds_result *result, size_t prediction);
/* The mean over all predictions and its error. */
FDS_API double fds_result_mean(const fds_result *result, size_t player);
FDS_API double fds_result_mean_error(const fds_result *result, size_t player);
/* Players by falling value of a prediction (SIZE_MAX: of the mean), those of equal values by
 * number: order[players]. */
FDS_API fds_status fds_result_rank(const fds_result *result, size_t prediction, size_t *order,
                                   fds_error *err);
/* How it was computed, as JSON. The text belongs to the result. */
FDS_API const char *fds_result_describe(const fds_result *result);
/* That, with the players of each prediction by rank, to be freed by fds_text_free. */
FDS_API fds_status fds_result_json(const fds_result *result, char **out, fds_error *err);
/* Writes .csv, .npy or .json, as the path ends; an old file is replaced only by a complete new one.
 * docs/commands.md has the formats. */
FDS_API fds_status fds_result_save(const fds_result *result, const char *path, fds_error *err);

/* ==== 6. Models ============================================================================= */

/* A trained network with everything needed to use it: its text, weights, normalisation and class
 * names. Shareable. */
typedef struct fds_model fds_model;

/* Trains a service model on the samples of all players, and scores it on them and on the test
 * samples. *report (or NULL): what came out, as JSON, to be freed by fds_text_free. */
FDS_API fds_status fds_train(const fds_problem *problem, const fds_params *params,
                             const fds_events *events, fds_model **out, char **report,
                             fds_error *err);
FDS_API void fds_model_free(fds_model *model);
FDS_API const char *fds_model_network(const fds_model *model); /* "conv:6x5p2,relu,...,fc:10" */
FDS_API const char *fds_model_sha256(const fds_model *model);  /* of the weights, hexadecimal */
FDS_API size_t fds_model_weight_count(const fds_model *model);
FDS_API uint32_t fds_model_classes(const fds_model *model);
FDS_API const char *fds_model_class_name(const fds_model *model, uint32_t label);
/* Class probabilities of the samples of index: probs[count * classes]. The bits do not depend on
 * threads (0: all processors) nor on which samples are asked for together. */
FDS_API fds_status fds_model_predict(const fds_model *model, const fds_dataset *ds,
                                     const uint32_t *index, size_t count, unsigned threads,
                                     float *probs, const fds_events *events, fds_error *err);
/* Mean cross-entropy of the true label, and accuracy; both may be NULL. */
FDS_API fds_status fds_model_score(const fds_model *model, const fds_dataset *ds,
                                   const uint32_t *index, size_t count, unsigned threads,
                                   double *loss, double *accuracy, const fds_events *events,
                                   fds_error *err);
/* safetensors, tensors named as in the equivalent torch.nn.Sequential; see docs/models.md. */
FDS_API fds_status fds_model_save(const fds_model *model, const char *path, fds_error *err);
FDS_API fds_status fds_model_load(const char *path, fds_model **out, fds_error *err);

/* ==== 7. Runs =============================================================================== */

/* Fits a run in the folder dir: service model, sub-models, explainer. Goes on with one that was
 * interrupted: the result has the same bits (same threads and processor). A complete run is left as
 * it is, except for files that were damaged or lost. FDS_ERR_CONFLICT, naming the difference, if dir
 * holds a run with other parameters, or something else. *report (or NULL): what came out, as JSON,
 * to be freed by fds_text_free. */
FDS_API fds_status fds_fit(const char *dir, const fds_problem *problem, const fds_params *params,
                           const fds_events *events, char **report, fds_error *err);
/* The mistakes in the parameters that show before any data is read. */
FDS_API fds_status fds_fit_check(const fds_params *params, fds_error *err);
/* What fitting would take, as JSON, from about two seconds of trying. */
FDS_API fds_status fds_fit_estimate(const fds_problem *problem, const fds_params *params,
                                    const fds_events *events, char **report, fds_error *err);

/* A fitted run, ready to answer. */
typedef struct fds_run fds_run;

/* params (or NULL): threads, and the utility of a run whose service model is a program. Files are
 * compared with their SHA-256 in run.json; with params of the job explain by checksums that take a
 * fraction of the time and find damage, but not forgery. */
FDS_API fds_status fds_run_open(const char *dir, const fds_params *params, fds_run **out,
                                fds_error *err);
FDS_API void fds_run_free(fds_run *run);
FDS_API const char *fds_run_describe(const fds_run *run); /* run.json; the text is the run's */
/* NULL where a program is the service model. */
FDS_API const fds_model *fds_run_service(const fds_run *run);
/* The first sample of each player, with its label: for pictures. */
FDS_API const fds_dataset *fds_run_samples(const fds_run *run);

/* What is asked about: pictures, or samples of a dataset. */
typedef struct fds_input fds_input;

/* PNG or JPEG files of the run's size; gray and colour are turned into each other. params (or NULL):
 * "resize" scales pictures of other sizes. */
FDS_API fds_status fds_input_pictures(const fds_run *run, const char *const *paths, size_t count,
                                      const fds_params *params, fds_input **out, fds_error *err);
/* Samples of ds, which must outlive it. */
FDS_API fds_status fds_input_samples(const fds_run *run, const fds_dataset *ds,
                                     const uint32_t *index, size_t count, fds_input **out,
                                     fds_error *err);
/* Samples of the run's own data (parameters "index", "data"), or new ones of a file ("rows"). */
FDS_API fds_status fds_input_open(const fds_run *run, const fds_params *params,
                                  const fds_events *events, fds_input **out, fds_error *err);
/* Inputs first .. first+count-1 of another, which must outlive them. */
FDS_API fds_status fds_input_part(const fds_input *input, size_t first, size_t count,
                                  fds_input **out, fds_error *err);
FDS_API void fds_input_free(fds_input *input);
FDS_API size_t fds_input_count(const fds_input *input);

/* Values of all players for each input. params (or NULL): "target", "by". */
FDS_API fds_status fds_run_explain(fds_run *run, const fds_input *input, const fds_params *params,
                                   const fds_events *events, fds_result **out, fds_error *err);
/* A PNG: a row per input with its greatest contributors, or bars if inputs are no images. */
FDS_API fds_status fds_run_draw(fds_run *run, const fds_input *input, const fds_result *result,
                                uint32_t columns, const char *png_path, fds_error *err);

/* ==== 8. Payments =========================================================================== */

/* Money for every prediction of a result, divided among players, providers or groups. Shareable. */
typedef struct fds_payment fds_payment;

/* params: "amount" for each prediction or "total" for all, "currency", "policy", "by". The shares of
 * a prediction add up to its amount exactly, and those of all predictions are within one unit of the
 * exact ones (docs/pay.md). The result must outlive the payment. */
FDS_API fds_status fds_pay(const fds_result *result, const fds_params *params, fds_payment **out,
                           fds_error *err);
/* The mistakes that show before there is a result. */
FDS_API fds_status fds_pay_check(const fds_params *params, fds_error *err);
FDS_API void fds_payment_free(fds_payment *payment);
FDS_API size_t fds_payment_payees(const fds_payment *payment);
FDS_API const char *fds_payment_payee(const fds_payment *payment, size_t payee);
FDS_API int fds_payment_decimals(const fds_payment *payment);         /* of a unit of money */
FDS_API const char *fds_payment_currency(const fds_payment *payment); /* or NULL */
/* "-1.05" for -105 units of 2 decimals; returns out. */
FDS_API const char *fds_money_text(int64_t units, int decimals, char out[32]);
/* Units of a prediction (SIZE_MAX: of all together); errors of shares, and how much is expected to
 * go to others than the true values would pay, NaN where the errors of values are not known. */
FDS_API int64_t fds_payment_amount(const fds_payment *payment, size_t prediction);
FDS_API int64_t fds_payment_share(const fds_payment *payment, size_t prediction, size_t payee);
FDS_API double fds_payment_error(const fds_payment *payment, size_t prediction, size_t payee);
FDS_API double fds_payment_misallocated(const fds_payment *payment, size_t prediction);
FDS_API double fds_payment_value(const fds_payment *payment, size_t prediction, size_t payee);
/* The rule that was followed: "clip", "signed", "clip-for-signed" or "evenly"; and in words. */
FDS_API const char *fds_payment_rule(const fds_payment *payment, size_t prediction);
FDS_API const char *fds_payment_rule_text(const fds_payment *payment, size_t prediction);
/* Payees by falling value of a prediction (SIZE_MAX: by falling share of all): order[payees]. */
FDS_API fds_status fds_payment_rank(const fds_payment *payment, size_t prediction, size_t *order,
                                    fds_error *err);
/* All of it as JSON, to be freed by fds_text_free. */
FDS_API fds_status fds_payment_json(const fds_payment *payment, char **out, fds_error *err);
/* Writes .csv, .json or .jsonl, as the path ends. */
FDS_API fds_status fds_payment_save(const fds_payment *payment, const char *path, fds_error *err);

/* Pays for any number of predictions in constant memory. What rounding leaves is carried from one to
 * the next: each payee stays within 1 + ln payees units of its exact total. */
typedef struct fds_payer fds_payer;

/* predictions: how many there will be, 0: not known ("total" needs it). "carry" names a file of what
 * earlier payers left, which is read with the first result. After a failure, only free the payer. */
FDS_API fds_status fds_payer_create(const fds_params *params, size_t predictions, fds_payer **out,
                                    fds_error *err);
FDS_API void fds_payer_free(fds_payer *payer);
/* Optional first pass over a whole batch, which then ends within one unit. Not with "carry". */
FDS_API fds_status fds_payer_foresee(fds_payer *payer, const fds_result *result, fds_error *err);
/* Pays for the next predictions, of the same players. out: what was paid, or NULL. */
FDS_API fds_status fds_payer_pay(fds_payer *payer, const fds_result *result, fds_payment **out,
                                 fds_error *err);
/* The sums so far, as a payment without predictions; it belongs to the payer. */
FDS_API const fds_payment *fds_payer_total(const fds_payer *payer);
FDS_API double fds_payer_owed(const fds_payer *payer, size_t payee); /* units: exact minus paid */
FDS_API size_t fds_payer_paid(const fds_payer *payer); /* predictions, with those of the carry */
/* Before the first payment: all payments also go to a file, as of fds_payment_save, or as "csv",
 * "json" or "jsonl" to a function, which returns false when it fails. */
typedef bool (*fds_write_function)(void *user, const char *text, size_t size);
FDS_API fds_status fds_payer_save(fds_payer *payer, const char *path, fds_error *err);
FDS_API fds_status fds_payer_print(fds_payer *payer, const char *format, fds_write_function write,
                                   void *user, fds_error *err);
/* Ends the outputs and puts the files in place, that of the carry last. More may be paid afterwards:
 * each call replaces the carry, so that a server loses nothing when it is killed. */
FDS_API fds_status fds_payer_finish(fds_payer *payer, fds_error *err);

#ifdef __cplusplus
}
#endif
#endif
