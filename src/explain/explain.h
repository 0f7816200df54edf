/* SPDX-License-Identifier: Apache-2.0
 *
 * explain: the explainer of the paper, from coalitions' utilities to an answer in milliseconds.
 *
 *   fit.c         the whole job, and its values; fit_utilities.c, fit_explainer.c: its other stages;
 *                 fit_rounds.c: more coalitions until the values are exact enough
 *   values.c      values of an unfinished fit, on disk
 *   parts.c       a part of a fit's sub-models; bank_import.c brings parts together
 *   update.c      a run on changed data, from sub-models that stay valid; forget.c without a provider
 *   settings.c    the four methods, defaults, mistakes
 *   training.c    which inputs and coalitions train the explainer, and which validate it
 *   factors.c     the few ways in which players differ; an explainer of many learns these
 *   newcomers.c   factors of players that the run has never seen, from their samples
 *   new_game.c    such players and those of the run in one game; new_models.c values from sub-models
 *                 that are trained in it; new_players.c their data
 *   objective.c   losses and their gradients with respect to the network's outputs
 *   validation.c  the loss on validation inputs and coalitions
 *   learn.c       the training loop: order, learning rate, early stop; checkpoint.c what it saves
 *   explainer.c   the trained network as an object and as a file
 *   curves.c      metrics.jsonl and the picture of the curves
 *   bank.c        stored sub-models, and answers from them
 *   probe.c       an explainer that sees the answers of a few hundred sub-models
 *   program.c     a program of the user's as the service model
 *   comparison.c  an explainer's values on validation inputs beside those of least squares
 *   calibrate.c   standard errors from them
 *   validate.c    validation.json: what the explainer is worth, for those who may serve it
 *   run.c         a fitted run, and its answers; run_json.c its run.json; draw.c the paper's figure
 *   joined.c      clusters of providers as players of a run that was fitted without them
 *   estimate.c    what a fit would take
 *
 * Order of outputs: values of input x for label y and player i lie at (x, y, i), players last. A
 * network by groups has (y, group) instead.
 */
#ifndef FDS_EXPLAIN_H
#define FDS_EXPLAIN_H

#include "deep/deep.h"
#include "draw/draw.h"
#include "utility/utility.h"

/* Makes the pointer one to rows x columns new items, all zero, which fds__free frees:
 *     TRY(RESERVE(values, players, classes, err)); */
#define RESERVE(pointer, rows, columns, err)                              \
    (((pointer) = fds__alloc_zero((rows), (columns) * sizeof *(pointer))) \
         ? FDS_OK                                                         \
         : fds__fail_nomem((err), (rows) * (columns) * sizeof *(pointer)))

/* ---- fits ---- */

/* What the explainer's training minimises. With FDS_ADJUST_NONE both have the same minimiser; the
 * other adjustments change the least-squares values alone:
 *   FDS__OBJECTIVE_CLOSED  the distance to the least-squares values, which are solved for first
 *   FDS__OBJECTIVE_PAPER   the paper's loss (v(s) - v(0) - s'phi)^2 on coalitions drawn in each step */
typedef enum fds__objective { FDS__OBJECTIVE_CLOSED, FDS__OBJECTIVE_PAPER } fds__objective;

/* The parameters of a method, "fds", "afds", "gfds" or "gfds+", with every default. */
fds_status fds__fit_default(const char *method, fds_params *params, fds_error *err);

typedef enum fds__fit_stage {
    FDS__FIT_STAGE_UTILITIES, /* sub-models; that of all players is the service model */
    FDS__FIT_STAGE_VALUES,    /* least squares */
    FDS__FIT_STAGE_EXPLAINER, /* training the explainer */
    FDS__FIT_STAGE_CHECK,     /* its errors on validation inputs */
    FDS__FIT_STAGES
} fds__fit_stage;
const char *fds__fit_stage_name(fds__fit_stage stage);

/* Of explainer auto, where not all sub-models answer in time: the probe and the bank of the same first
 * sub-models were measured, and the better one answers. */
typedef struct fds__fit_choice {
    double probe, bank; /* share of the money that each misallocates on validation inputs; 0..1 */
    bool is_measured, is_bank;
    fds_ls_report strengths; /* of the bank's least squares */
} fds__fit_choice;

typedef struct fds__fit_report {
    size_t sub_models; /* in the table: training and validation coalitions, v(0) and v(1) */
    /* on the explainer's inputs, which it has not seen; of a regression R2 */
    double service_accuracy;
    uint32_t epochs, best_epoch;
    /* Of the explainer; NaN without one, and the correlations where all values are equal. */
    double loss;      /* the paper's, on validation inputs and coalitions */
    double agreement; /* correlation with least squares on validation inputs, predicted label */
    double within;    /* the same over the players of the predicted label's class */
    double energy;    /* share of the values' squares that the factors hold; NaN: it has none */
    double seconds[FDS__FIT_STAGES];
    size_t probes; /* the first sub-models, if only they answer; 0: all do, or a network */
    fds__fit_choice choice;
    char reason[320]; /* why this explainer; "": it was named */
    bool was_resumed; /* an earlier process began the fit */
    fds__until until; /* wanted 0: the number of coalitions was given */
} fds__fit_report;

/* fds_fit, with its report as a struct; report may be NULL. */
fds_status fds__fit(const char *dir, const fds_problem *problem, const fds_params *params,
                    const fds_events *events, fds__fit_report *report, fds_error *err);

/* What a fit would take, from trials of about two seconds. */
typedef struct fds__fit_cost {
    size_t sub_models;
    double seconds[FDS__FIT_STAGES];
    uint64_t memory, disk;
    double accuracy; /* expected correlation with the true values (docs/accuracy.md); 0: unknown */
    const char *accuracy_of; /* what was measured, for people; NULL: nothing */
} fds__fit_cost;
fds_status fds__fit_estimate(const fds_problem *problem, const fds_params *params,
                             const fds_events *events, fds__fit_cost *out, fds_error *err);

/* ---- runs ---- */

typedef struct fds__run_info {
    const char *method, *source; /* source: the data's name or path */
    const char *explainer;       /* "mlp", ...; "bank": sub-models answer, and no network */
    bool asks_all;               /* the bank of all sub-models is the only explainer */
    size_t players, groups;
    uint32_t classes;
    fds_shape shape;
    bool is_image, has_bank;
    bool is_regression;
    fds__aim aim; /* of a regression, without targets */
} fds__run_info;

/* threads: 0 for those of the fit. A run belongs to one thread. */
fds_status fds__run_open(const char *dir, unsigned threads, fds_run **out, fds_error *err);
/* The same in less time: files are compared by checksums that find damage but not forgery. */
fds_status fds__run_open_quickly(const char *dir, unsigned threads, fds_run **out, fds_error *err);
/* Compares them by SHA-256, as fds__run_open does: FDS_ERR_CORRUPT. */
fds_status fds__run_verify(const fds_run *run, fds_error *err);
fds__run_info fds__run_get_info(const fds_run *run);
const char *fds__run_player_name(const fds_run *run, size_t i);
uint32_t fds__run_player_label(const fds_run *run, size_t i);       /* of most of its samples */
const char *fds__run_player_provider(const fds_run *run, size_t i); /* or NULL */
const char *fds__run_class_name(const fds_run *run, uint32_t label);
/* Values the providers that a file of clusters puts together as one player from then on, by the bank; a
 * run that has no sub-models, or samples as players, cannot: FDS_ERR_USAGE. */
fds_status fds__run_join(fds_run *run, const fds__blob *clusters, fds_error *err);
/* The training and the test part (or NULL) of the data that the run was fitted on, where it is now:
 * params->data, or NULL for where it was. with_owners: providers as when it was fitted; else an owners
 * file is not read. The caller frees both, after a failure too. */
fds_status fds__run_open_data(const fds_run *run, const fds_params *params, bool with_owners,
                              const fds_events *events, fds_dataset *parts[2], fds_error *err);
/* FDS_ERR_USAGE when train is not the data that the run was fitted on. */
fds_status fds__run_check_data(const fds_run *run, const fds_dataset *train, fds_error *err);

/* Who answers: the network, or the stored sub-models. */
typedef enum fds__answerer { FDS__ANSWERER_EXPLAINER, FDS__ANSWERER_BANK } fds__answerer;

typedef struct fds__new_models fds__new_models; /* new_models.c */
void fds__new_models_free(fds__new_models *models);
size_t fds__new_models_drawn(const fds__new_models *models); /* coalitions, with repeated ones */
/* Those that are trained, with each new player and without. */
size_t fds__new_models_trained(const fds__new_models *models);
/* No coalition of the run's players is missing: values are exact. */
bool fds__new_models_are_all(const fds__new_models *models);
/* The answers of a program have noise, which the errors contain. */
bool fds__new_models_are_noisy(const fds__new_models *models);

/* Players that the run has not seen. */
typedef struct fds__new_players {
    size_t count;
    char **names;
    size_t *sizes;           /* samples */
    uint32_t *labels;        /* of most of them */
    double *targets;         /* of a regression: their means */
    double *h;               /* (count, rank) predicted factors; or */
    fds__new_models *models; /* trained with them; NULL: they are not */
    size_t strata;           /* as many for each were asked for */
} fds__new_players;

/* The providers of a labelled data set, or all of it as one new player if it names none, with predicted
 * factors. FDS_ERR_USAGE where the run has learnt no map to these. The caller frees *out after a failure too. */
fds_status fds__run_open_new(fds_run *run, const char *path, const fds_events *events,
                             fds__new_players *out, fds_error *err);
void fds__new_players_free(fds__new_players *players);

/* Whether the run can explain these samples; index may be NULL. */
fds_status fds__run_check_inputs(const fds_run *run, const fds_dataset *ds, const uint32_t *index,
                                 size_t count, fds_error *err);

/* The caller's arrays. */
typedef struct fds__answers {
    uint32_t *labels;     /* (count) the label of each input that the values are for */
    float *probs;         /* (count, classes) the service model's; may be NULL */
    double *full, *empty; /* (count) v(1) and v(0) of that label; may be NULL */
    double *values;       /* (count, players) they add up to full - empty */
    double *errors;       /* (count, players) standard errors; may be NULL */
    double *targets;      /* (count) of a regression: standardised, given or what is predicted */
} fds__answers;

/* Values of the samples of index (NULL: all count) of ds. is_given: for the labels in answers, which
 * must be below the run's classes; else for the predicted labels, which it writes there.
 * FDS_ERR_SHAPE when ds does not have the run's shape. */
fds_status fds__run_explain(fds_run *run, fds__answerer by, const fds_dataset *ds,
                            const uint32_t *index, size_t count, bool is_given,
                            const fds__answers *answers, fds_error *err);
/* As fds__run_explain, but values and errors (count, players->count) are predictions for new players. */
fds_status fds__run_explain_new(fds_run *run, const fds__new_players *players,
                                const fds_dataset *ds, const uint32_t *index, size_t count,
                                bool is_given, const fds__answers *answers, fds_error *err);
/* Where the standard errors come from, for people: "calibrated on 300 validation inputs". */
const char *fds__run_error_source(const fds_run *run, fds__answerer by);

/* How unlike the data of the players each sample of ds is: scores (count). It is the distance to the
 * nearest first sample of a player, so it sees inputs of another kind, noise, or other scales, and not
 * that the labels of like inputs have changed. validation.json has those of validation inputs. */
fds_status fds__run_scores(fds_run *run, const fds_dataset *ds, double *scores, fds_error *err);

/* P(|value - t| <= half), where t is normal around target with a standard error. */
double fds__chance_inside(double value, double half, double target, double error);

/* What validation.json says; NaN: it could not be measured. */
typedef struct fds__validation {
    bool is_there; /* earlier fits wrote none */
    double agreement, misallocation, coverage;
    double misallocation_error; /* its standard error over the validation inputs */
} fds__validation;
fds_status fds__run_validation(const fds_run *run, fds__validation *out, fds_error *err);
/* The scores of the validation inputs, (count) to be freed by fds__free; none if they were not kept. */
fds_status fds__validation_scores(const char *dir, double **scores, size_t *count, fds_error *err);

/* The paper's figure as a PNG: a row per input, with the input and its greatest contributors, as
 * many as there are columns. true_labels may be NULL. */
fds_status fds__run_draw(fds_run *run, const fds_dataset *ds, const uint32_t *index, size_t count,
                         const uint32_t *true_labels, const fds__answers *answers, uint32_t columns,
                         const char *png_path, fds_error *err);

/* ---- factors.c ---- */

typedef struct fds__factors {
    size_t players, rank;
    float *h;        /* (players, rank) columns are orthonormal, and orthogonal to 1 */
    double energy;   /* share of the values' squares, without equal shares, that they hold; 0..1 */
    uint32_t passes; /* over the values */
} fds__factors;

/* Of the first columns of values (players, stride). rank: below players. The caller frees *out after a
 * failure too. */
fds_status fds__factors_find(const double *values, size_t players, size_t stride, size_t columns,
                             size_t rank, uint64_t seed, unsigned threads, const fds_events *events,
                             fds__factors *out, fds_error *err);
/* The coefficients (columns, rank) of values (players, columns). */
fds_status fds__factors_project(const fds__factors *factors, const double *values, size_t columns,
                                unsigned threads, const fds_events *events, float *out,
                                fds_error *err);
void fds__factors_free(fds__factors *factors);

/* ---- objective.c ---- */

/* Additive efficient normalisation: adds the same to all so that values[count] sum to total. */
void fds__normalise(double total, size_t count, double *values);

/* What trains an explainer. It owns nothing. The last validation inputs validate, all others train. */
typedef struct fds__training {
    size_t inputs, validation;
    fds_shape shape;
    const float *x;         /* (inputs, shape) normalised */
    const uint16_t *labels; /* (inputs) true labels, for warming up */
    size_t players;
    uint32_t classes;
    const fds_groups *groups;   /* or NULL */
    const double *empty, *full; /* (inputs, classes) v(0) and v(1) */
    const float *factors;       /* (players, rank), of fds__factors; or NULL */
    size_t rank;
    /* (inputs, classes, players) least-squares values; with factors (inputs, classes, rank) their
     * coefficients. NULL with FDS__OBJECTIVE_PAPER */
    const float *targets;
    /* Rows have columns input * classes + label over all inputs. */
    const fds_plan *plan, *validation_plan;
    const fds_rows *rows, *validation_rows;
} fds__training;

/* ---- explainer.c ---- */

/* A network from inputs to values. Belongs to one thread. */
typedef struct fds__explainer fds__explainer;

typedef struct fds__explainer_params {
    const char *network; /* a name of deep.h */
    const char *weights; /* or NULL */
    bool warm_up, is_by_group;
    size_t rank;     /* of the factors of the players; 0: none, an output is a value */
    bool learns_new; /* factors of new players too */
    float gamma;
    fds__objective objective;
    float lr;
    uint32_t batch, epochs, patience, draws;
    fds__precision precision;
    uint64_t seed;
    unsigned threads;
} fds__explainer_params;

/* Outputs of the network for each label. */
size_t fds__explainer_each(const fds__explainer_params *params, size_t players,
                           const fds_groups *groups);
/* The network with that many outputs, for training. */
fds__deep_params fds__explainer_net(const fds__explainer_params *params, fds_shape shape,
                                    size_t outputs, size_t batch);
/* Values of count inputs before normalisation, per player also where the network's outputs are
 * groups or coefficients of factors. x (count, shape) normalised; values (count, players) of the labels, (count, classes, players)
 * if labels is NULL. */
fds_status fds__explainer_run(fds__explainer *explainer, const float *x, size_t count,
                              const uint32_t *labels, float *values, fds_error *err);
/* With factors: the coefficients (count, rank) of inputs for their labels. */
fds_status fds__explainer_coefficients(fds__explainer *explainer, const float *x, size_t count,
                                       const uint32_t *labels, float *coefficients, fds_error *err);
size_t fds__explainer_rank(const fds__explainer *explainer); /* 0: no factors */
/* safetensors: the network's tensors, with everything needed to use it in the metadata. */
fds_status fds__explainer_save(const fds__explainer *explainer, const char *path,
                               const fds_events *events, fds_error *err);
/* groups: of the players; may be NULL unless the network's outputs are groups. FDS_ERR_SHAPE when
 * the file does not fit players, classes, shape and groups. */
fds_status fds__explainer_load(const char *path, size_t players, uint32_t classes, fds_shape shape,
                               const fds_groups *groups, unsigned threads, fds__explainer **out,
                               fds_error *err);
void fds__explainer_free(fds__explainer *explainer);

/* ---- learn.c ---- */

typedef struct fds__metric {
    uint32_t epoch;
    float lr;
    double loss;            /* of the objective, mean over the epoch's steps */
    double validation_loss; /* the paper's loss on validation inputs and coalitions */
} fds__metric;

/* Trains an explainer, with checkpoints in the folder dir: after a kill, the same call continues
 * from the last one and ends with the same bits. Leaves metrics.jsonl and curves.svg in dir, and the
 * last checkpoint, unless the training was quick. No other process may use dir meanwhile. The caller
 * frees *out after a failure too. Sets the report's epochs, best_epoch and loss. */
fds_status fds__learn(const fds__training *training, const fds__explainer_params *params,
                      const char *dir, const fds_events *events, fds__explainer **out,
                      fds__fit_report *report, fds_error *err);
/* Removes the checkpoint, once the explainer is saved. */
fds_status fds__learn_forget(const char *dir, fds_error *err);

/* ---- probe.c: linear maps from the answers of the first sub-models to values ---- */

typedef struct fds__probe fds__probe; /* shareable once it is made */

/* Learns from the first probes rows of data->rows and from data->targets. predicted (inputs): the
 * predicted label of each. The caller frees *out after a failure too. */
fds_status fds__probe_learn(const fds__training *data, size_t probes, const uint32_t *predicted,
                            unsigned threads, const fds_events *events, fds__probe **out,
                            fds_error *err);
/* Values (players) for a label from the probabilities (probes) that the sub-models give it, and the
 * variance of these. */
void fds__probe_run(const fds__probe *probe, const double *answers, uint32_t label, double *values,
                    double *spread);
fds_status fds__probe_save(const fds__probe *probe, const char *path, fds_error *err);
/* FDS_ERR_SHAPE when the file does not fit. The caller frees *out after a failure too. */
fds_status fds__probe_load(const char *path, size_t probes, size_t players, uint32_t classes,
                           fds__probe **out, fds_error *err);
void fds__probe_free(fds__probe *probe);

/* ---- bank.c: stored sub-models ---- */

typedef struct fds__bank fds__bank;

/* Fills the table, which is of this utility function, for plan, and stores the weights of each
 * sub-model, which must be a network, in the file path. Both are then complete, whatever they held
 * before. Crash-safe as the table is: the bytes depend neither on threads nor on interruptions. */
fds_status fds__bank_fill(const char *path, const fds_utility *utility, fds_table *table,
                          const fds_plan *plan, unsigned threads, const fds_events *events,
                          fds_error *err);
/* The same for a part of the plan; NULL: all of it. Each sub-model has its place in the whole file. */
fds_status fds__bank_fill_part(const char *path, const fds_utility *utility, fds_table *table,
                               const fds_plan *plan, const fds_part *part, unsigned threads,
                               const fds_events *events, fds_error *err);
/* A file of sub-models, and what they must be: their network, and the checksum of the parameters of
 * the utility function that trained them. */
typedef struct fds__bank_file {
    const char *path;
    const fds_net *net;
    uint64_t parameters;
} fds__bank_file;

/* Opens a file that was filled for plan, or for one that begins with it. params: as for least
 * squares, without a surrogate, or NULL for probes; strengths: what least squares reported in the
 * fit. plan and params->groups must outlive the bank. FDS_ERR_USAGE when the sub-models are others,
 * FDS_ERR_CORRUPT when part of the file is missing or damaged. */
fds_status fds__bank_open(const fds__bank_file *file, const fds_plan *plan,
                          const fds_ls_params *params, const fds_ls_report *strengths,
                          unsigned threads, fds__bank **out, fds_error *err);
/* From then on a bank without least squares values the parts of players, 0 .. parts-1, as players
 * (game/join.c): part_of (players of the plan). */
fds_status fds__bank_join(fds__bank *bank, const uint32_t *part_of, size_t parts, fds_error *err);
void fds__bank_free(fds__bank *bank);
/* Values and standard errors (count, players), errors may be NULL, of inputs for their labels, or of a
 * regression (aim not NULL) for its targets; x
 * normalised like the sub-models' samples. The bits of an input's values depend neither on threads
 * nor on the other inputs. */
fds_status fds__bank_explain(fds__bank *bank, const fds_inputs *x, const uint32_t *labels,
                             const fds__aim *aim, double *values, double *errors, fds_error *err);
/* Values (count, players) by a probe of all rows of the plan, and the variance of their answers
 * (count). */
fds_status fds__bank_probe(fds__bank *bank, const fds__probe *probe, const fds_inputs *x,
                           const uint32_t *labels, double *values, double *spreads, fds_error *err);

#endif
