/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of fits and runs share. The folder of a run:
 *
 *   run.json               players, every setting, versions, and, once complete, the results
 *   service.safetensors    the service model; where a program is one (program.c), what it learns from
 *   utilities/             the table of utilities
 *   explainer.safetensors  the maps of a probe, or the network; missing where a bank answers
 *   players.safetensors    the first sample of each player ("samples"), for pictures
 *   newcomers.safetensors  how factors follow from samples, of a fit with rank_from samples
 *   errors.safetensors     standard errors calibrated on validation inputs
 *   validation.json        what the explainer is worth (validate.c)
 *   metrics.jsonl, curves.svg   how the explainer's training went
 *   models.bank            stored sub-models: all, the first that answer, or none
 *   checkpoint.safetensors during the fit
 *
 * Each is written whole, aside, and put in place in one step (the table and the bank: record by
 * record); run.json gets its results last, so a run with results is complete. */
#ifndef FDS_EXPLAIN_RUN_H
#define FDS_EXPLAIN_RUN_H

#include "explain/explain.h"

#include <string.h>

#define FDS__RUN_JSON "run.json"
#define FDS__RUN_SERVICE "service.safetensors"
#define FDS__RUN_TABLE "utilities"
#define FDS__RUN_EXPLAINER "explainer.safetensors"
#define FDS__RUN_PLAYERS "players.safetensors"
#define FDS__RUN_ERRORS "errors.safetensors"
#define FDS__RUN_BANK "models.bank"
#define FDS__RUN_NEWCOMERS "newcomers.safetensors"
#define FDS__RUN_VALIDATION "validation.json"

/* ---- values.c ---- */

/* Keeps the values and errors (players, columns) of an unfinished fit in its folder; key: a checksum of
 * what they depend on. Writes nothing where the disk has little space. */
fds_status fds__values_keep(const char *dir, uint64_t key, size_t players, size_t columns,
                            const fds_ls_report *report, const double *values, const double *errors,
                            const fds_events *events, fds_error *err);
/* Reads what was kept under this key; *is_found is false for none, another key or damage. */
fds_status fds__values_find(const char *dir, uint64_t key, size_t players, size_t columns,
                            fds_ls_report *report, double *values, double *errors, bool *is_found,
                            fds_error *err);
fds_status fds__values_forget(const char *dir, fds_error *err);
/* Values that took fewer seconds are not kept. */
extern double fds__values_kept_s;

/* ---- settings.c ---- */

/* The parameters of a fit with defaults filled in. */
typedef struct fds__fit_settings {
    const char *method;
    char kind[1024];             /* the utility function of sub-models */
    fds__utility_params utility; /* how they are trained, except for its kind */
    fds_sampler sampler;
    fds_adjust adjust;
    const char *adjust_name;
    fds__explainer_params explainer;
    bool is_bank, keeps_models, has_groups;
    size_t probes;    /* first rows of the plan, if only they answer; 0: all do, or a network */
    char reason[160]; /* why this explainer, if it was not named */
    size_t coalitions, validation_coalitions; /* to train on, to validate by */
    fds__until until;                         /* of rounds with more of them */
    size_t validation_inputs;
    uint64_t plan_seed, seed;
    const uint64_t *keys; /* (players) of a run for changing data, which nests its plans; or NULL */
    unsigned threads, explainer_threads; /* at least 1 */
    const fds_events *events;            /* while plans are made; or NULL */
} fds__fit_settings;

/* Everything that needs no groups; the error is the first mistake. The texts that params points to
 * must outlive the settings. */
fds_status fds__fit_read(const fds_params *params, const fds_problem *problem,
                         fds__fit_settings *out, fds_error *err);
/* The rest, once the groups are known (NULL: none). */
fds_status fds__fit_settle(const fds_params *params, const fds_problem *problem,
                           const fds_groups *groups, fds__fit_settings *settings, fds_error *err);
/* Both, with the groups that the parameters name; the caller frees *groups. */
fds_status fds__fit_prepare(const fds_problem *problem, const fds_params *params,
                            const fds_events *events, fds__fit_settings *settings,
                            fds_groups **groups, fds_error *err);
/* Writes the report's reason: what is known before any work, and what was measured. */
void fds__fit_give_reason(const fds__fit_settings *settings, fds__fit_report *report);
/* How the sub-models are trained. */
static inline fds__utility_params fds__fit_utility(const fds__fit_settings *settings) {
    fds__utility_params params = settings->utility;
    params.kind = settings->kind;
    return params;
}

/* Whether validation inputs choose between the probe and the bank of the same sub-models. */
static inline bool fds__fit_measures(const fds__fit_settings *settings) {
    return settings->probes && strcmp(settings->explainer.network, "auto") == 0;
}
/* Whether the explainer can be trained: finds mistakes that would otherwise appear after all sub-models
 * are trained. */
fds_status fds__fit_check_explainer(const fds__fit_settings *s, const fds_problem *problem,
                                    const fds_groups *groups, fds_error *err);
/* With `until_error`: the round that an earlier process had come to in the run dir, if there is one. */
fds_status fds__fit_round(const char *dir, const fds_params *params, uint64_t *round,
                          fds_error *err);
/* Whether least squares can solve the plan and, where sub-models answer, can be prepared for that. */
fds_status fds__fit_check_plan(const fds__fit_settings *s, const fds_plan *plan,
                               const fds_groups *groups, fds_error *err);

/* ---- training.c ---- */

/* The coalitions of a fit: all of them, those that train, those that validate; and the first of
 * those that train, if only their sub-models answer. */
typedef struct fds__fit_plans {
    fds_plan *all, *plan, *validation;
    fds_plan *probes; /* NULL: there are none */
} fds__fit_plans;

fds_status fds__fit_plans_make(const fds__fit_settings *settings, size_t players,
                               const fds_groups *groups, fds__fit_plans *out, fds_error *err);
void fds__fit_plans_free(fds__fit_plans *plans);

/* The inputs in the order of the training, validation inputs last: order[count]. */
void fds__fit_order(const fds__fit_settings *settings, const uint32_t *inputs, size_t count,
                    uint32_t *order);
/* The utility function of the inputs in that order. The caller frees both, after a failure too. */
fds_status fds__fit_utility_create(const fds__fit_settings *settings, const fds_problem *problem,
                                   const fds_events *events, uint32_t **order, fds_utility **out,
                                   fds_error *err);

/* ---- bank_file.c ---- */

enum {
    FDS__BANK_HEADER = 72,
    FDS__BANK_PLAN = 48,
    FDS__BANK_PARAMETERS = 56,
    FDS__BANK_VERSION = 1
};

/* One slot for each different coalition of the plan, in its order. The plan must outlive it. */
typedef struct fds__bank_slots {
    const fds_plan *plan;
    size_t count;
    uint32_t *of_row;    /* (rows of the plan) */
    uint32_t *first;     /* (count): the first row of each */
    fds__slot_map index; /* from coalition id to slot */
    size_t weights;      /* of a sub-model */
    size_t record_size;
} fds__bank_slots;

/* fds__bank_slots_free is needed after a failure too. */
fds_status fds__bank_slots_init(fds__bank_slots *out, const fds_net *net, const fds_plan *plan,
                                fds_error *err);
void fds__bank_slots_free(fds__bank_slots *slots);
/* Reads and checks all sub-models of a file: groups (groups, weights, 16) in the given order. */
fds_status fds__bank_read(const fds__bank_file *what, const fds__bank_slots *slots,
                          const uint32_t *order, unsigned threads, uint16_t *groups,
                          fds_error *err);

/* How the sub-models of a header differ from those of the first, "of another network", and at which
 * byte; NULL: they do not. */
const char *fds__bank_difference(const uint8_t *first, const uint8_t *second, int *at);
/* The failure of a header that does not fit the form. FDS_OK: it is damaged. */
fds_status fds__bank_permit(const fds__record_form *form, const char *path, const uint8_t *header,
                            fds__found found, fds_error *err);

/* The form of a plan's file; take and context are left NULL. */
fds_status fds__bank_form(const fds_net *net, const fds__bank_slots *slots, uint64_t parameters,
                          fds__record_form *form, fds_error *err);

/* ---- bank_reuse.c ---- */

/* Makes a bank of fewer coalitions of the same utility function, in its own place, one of this plan, with
 * what it has. Does nothing to one of this plan, or if there is none. */
fds_status fds__bank_extend(const char *path, const fds_utility *utility, const fds_plan *plan,
                            const fds_events *events, fds_error *err);

/* Takes the sub-models of coalitions of plan that another run's bank has into the file path. parameters:
 * the checksum of that run's utility function. *records: how many that has; *kept: how many of them the
 * plan has. Does nothing if it does not exist. */
fds_status fds__bank_reuse(const char *path, const char *from, uint64_t parameters,
                           const fds_utility *utility, const fds_plan *plan, const fds__reuse *map,
                           const fds_events *events, size_t *records, size_t *kept, fds_error *err);

/* ---- bank_import.c ---- */

/* The form that a file's header gives. FDS_ERR_FORMAT: it is no bank; records 0: it is empty. */
fds_status fds__bank_read_form(fds__file *file, fds__record_form *form, fds_error *err);

/* FDS_ERR_CONFLICT, and what differs, if two files have headers of different plans or trainings.
 * *is_there: whether the second one has a header. */
fds_status fds__bank_compare(const char *first, const char *second, bool *is_there, fds_error *err);
/* Takes the sub-models of another file, which may not exist, into the file path. */
fds_status fds__bank_import(const char *path, const char *from, const fds_events *events,
                            fds__imported *out, fds_error *err);
/* "records", "damaged", "slots" and "bytes" of a file; NULL: there is none. */
fds_status fds__bank_describe(const char *path, const fds_events *events, json_t **out,
                              fds_error *err);

/* ---- newcomers.c: players that a run has never seen ---- */

typedef struct fds__newcomers fds__newcomers;

/* What a fit knows. Validation inputs are the last ones. */
typedef struct fds__newcomer_job {
    const fds_problem *problem;
    const fds_model *service;
    const fds__factors *factors;
    const float *coefficients; /* (columns, rank) of training inputs */
    size_t columns;
    fds__explainer *explainer;
    size_t validation;         /* inputs */
    const float *x;            /* (validation, shape) */
    const uint32_t *predicted; /* (validation) */
    const double *totals;      /* (validation, classes) v(1) - v(0) */
    const double *values;      /* (players, stride) of least squares */
    size_t stride, first_column;
    const fds_events *events;
} fds__newcomer_job;

/* The caller frees *out after a failure too. */
fds_status fds__newcomers_learn(const fds__newcomer_job *job, fds__newcomers **out, fds_error *err);
/* The mean correlation of predicted with least-squares values, over players left out. */
double fds__newcomers_agreement(const fds__newcomers *newcomers);
/* h (rank) of a player with these samples, whose labels are those of the run. */
fds_status fds__newcomers_predict(const fds__newcomers *newcomers, const fds_model *service,
                                  const fds_net *net, fds_lane *lane, const fds_dataset *ds,
                                  const uint32_t *index, size_t count, const uint32_t *labels,
                                  double *h, fds_error *err);
/* The standard error of a predicted value. */
double fds__newcomers_error(const fds__newcomers *newcomers, double value);
size_t fds__newcomers_rank(const fds__newcomers *newcomers);
fds_status fds__newcomers_save(const fds__newcomers *newcomers, const char *path, fds_error *err);
/* FDS_ERR_SHAPE when the file does not fit. features: fds__net_features of the service model. The
 * caller frees *out after a failure too. */
fds_status fds__newcomers_load(const char *path, size_t players, size_t rank, uint32_t classes,
                               size_t features, fds__newcomers **out, fds_error *err);
void fds__newcomers_free(fds__newcomers *newcomers);

/* ---- program.c: a program of the user's as the service model ---- */

typedef struct fds__service_program fds__service_program;

/* Writes the samples of all players, with their labels and players. */
fds_status fds__service_program_save(const char *path, const fds_utility *utility,
                                     const fds_problem *problem, fds_error *err);
/* about: the utility function's parameters in run.json, whose texts must outlive it. It starts nothing
 * before it is told a program: what a file names is not run. */
fds_status fds__service_program_load(const char *path, const json_t *about, size_t players,
                                     uint32_t classes, fds_shape shape, fds__service_program **out,
                                     fds_error *err);
void fds__service_program_free(fds__service_program *program);
/* kind: "command:PROGRAM" */
fds_status fds__service_program_use(fds__service_program *program, const char *kind,
                                    fds_error *err);
/* What it was told; FDS_ERR_USAGE when it was told nothing yet. */
fds_status fds__service_program_kind(const fds__service_program *program, const char **kind,
                                     fds_error *err);
/* Starts the program and asks it about samples of ds, without and with the data of all players:
 * empty and full (count, classes). *x: the samples, normalised; the caller frees *owner, which has
 * them. FDS_ERR_CONFLICT when it is not the program of the fit. */
fds_status fds__service_program_ask(const fds__service_program *program, const fds_dataset *ds,
                                    const uint32_t *index, size_t count, const fds_events *events,
                                    float *empty, float *full, const fds_inputs **x,
                                    fds_utility **owner, fds_error *err);

/* ---- run_json.c ---- */

/* What a run is, as run.json has it. Texts belong to json. */
typedef struct fds__run_record {
    json_t *json;
    fds__run_info info;
    fds_groups *groups;         /* or NULL */
    fds__fit_settings settings; /* of the plan and the bank: sampler, coalitions, seed, adjust */
    uint64_t *keys;             /* those of the settings */
    fds_ls_report strengths;
    uint64_t parameters; /* checksum of those of the utility function */
    unsigned threads;
    fds__fit_report report;
} fds__run_record;

const char *fds__sampler_name(const fds__fit_settings *settings);
json_t *fds__fit_seconds_json(const double seconds[FDS__FIT_STAGES]); /* NULL: out of memory */
/* A fit's description without results. */
fds_status fds__run_record_describe(const fds__fit_settings *settings, const fds_problem *problem,
                                    const fds_params *params, const fds_groups *groups,
                                    const fds_utility *utility, json_t **out, fds_error *err);
/* Whether dir has a run.json with the same description: *is_there, *is_done. FDS_ERR_CONFLICT, with
 * the difference, for another description, and for a folder with other contents. A damaged run.json is
 * logged to events and counts as one of an incomplete run. */
fds_status fds__run_record_compare(const char *dir, const json_t *description,
                                   const fds_events *events, bool *is_there, bool *is_done,
                                   fds_error *err);
/* Writes which samples and coalitions train and validate, and the initial network. */
fds_status fds__run_lists_write(const char *dir, const fds__fit_settings *settings,
                                const fds_utility *utility, const fds__fit_plans *plans,
                                fds_error *err);
/* Writes run.json; report NULL: not complete yet. */
fds_status fds__run_record_write(const char *dir, const json_t *description,
                                 const fds__fit_settings *settings, const fds__fit_report *report,
                                 const fds_ls_report *strengths, fds_error *err);
/* Its members, of a run that need not be complete. The caller frees *out. */
fds_status fds__run_record_json(const char *dir, json_t **out, fds_error *err);
/* FDS_ERR_NOT_FOUND: there is no run; FDS_ERR_USAGE: it is not complete. */
fds_status fds__run_record_read(const char *dir, fds__run_record *out, fds_error *err);
/* Whether the files with checksums are as the fit left them: FDS_ERR_CORRUPT. is_quick: by sums that
 * find damage but not forgery. */
fds_status fds__run_record_check(const char *dir, const fds__run_record *record, bool is_quick,
                                 fds_error *err);
/* The same, and the explainer was validated, as it was not always: FDS_ERR_CORRUPT. */
fds_status fds__run_record_check_fit(const char *dir, const fds__run_record *record,
                                     fds_error *err);
/* Makes the players of one cluster one player: part_of (players so far) 0 .. info.players-1, the
 * caller's, after a failure too. */
fds_status fds__run_record_join(fds__run_record *record, const char *dir, const fds__blob *file,
                                uint32_t **part_of, fds_error *err);
void fds__run_record_free(fds__run_record *record);

/* ---- run.c ---- */

double fds__run_player_target(const fds_run *run, size_t i); /* mean, of a regression */
size_t fds__run_player_size(const fds_run *run, size_t i);   /* its samples */
/* Of a cluster: [{"name", "samples"}...]; else NULL. */
json_t *fds__run_player_members(const fds_run *run, size_t i);
uint32_t fds__run_player_group(const fds_run *run,
                               size_t i); /* or FDS__UNKNOWN: it has no groups */
const char *fds__run_folder(const fds_run *run);
bool fds__run_has_program(const fds_run *run); /* as its service model */
/* The program, as the parameter "utility" has it; NULL changes nothing. */
fds_status fds__run_use_program(fds_run *run, const char *utility, fds_error *err);
/* Of starting a program, until it is set again; NULL: none. */
void fds__run_set_events(fds_run *run, const fds_events *events);
/* The service model's probabilities (count, classes). */
fds_status fds__run_predict(fds_run *run, const fds_dataset *ds, const uint32_t *index,
                            size_t count, unsigned threads, float *probs, const fds_events *events,
                            fds_error *err);

/* The parameters that say how data is read; ends with NULL. */
extern const char *const fds__run_reading[];
/* Where the data was, "path", or one of these; NULL: default. */
const char *fds__run_origin(const fds_run *run, const char *key);
/* How rows become features; null in JSON: the run was not fitted on a CSV file. */
const json_t *fds__run_preparation(const fds_run *run);

/* ---- changing.c: runs for changing data ---- */

#define FDS__NESTED "nested" /* the name of their sampler */
#define FDS__FORGOT "forgot" /* in run.json: what fds forget has removed (forget.c) */

/* Adds to a description who the players are and how the fit was asked for; nothing for other runs.
 * False: no memory. */
bool fds__changing_describe(const fds_problem *problem, const fds_params *params,
                            json_t *description);
/* The keys of a run.json's players, which the caller frees, after a failure too; of another run NULL. */
fds_status fds__changing_keys(const char *path, const json_t *json, uint64_t **keys,
                              fds_error *err);
/* The parameters of the fit of a run.json; FDS_ERR_USAGE, and why, for another run. */
fds_status fds__changing_params(const char *dir, const json_t *json, fds_params **out,
                                fds_error *err);

/* ---- comparison.c ---- */

/* An explainer's values on validation inputs beside those of least squares. */
typedef struct fds__comparison {
    size_t inputs, players;
    uint32_t classes;
    double *values;                /* (inputs, classes, players) the explainer's */
    double *targets, *errors;      /* the same of least squares, with standard errors */
    double *spreads;               /* (inputs, classes) variance of the probes' answers; or NULL */
    double *stated;                /* (inputs, players) the explainer's own standard errors, for the
                                    * predicted label */
    const uint32_t *predicted;     /* (inputs) */
    const uint32_t *player_labels; /* (players) */
} fds__comparison;

void fds__comparison_free(fds__comparison *comparison);
/* The mean correlation with least squares, for the predicted label of each input; over all players,
 * or over those of the label's class. NaN: no input has one. */
fds_status fds__comparison_agreement(const fds__comparison *comparison, bool is_within,
                                     double *agreement, fds_error *err);
/* The share of the money, 0 to 1, that the explainer gives to other players than least squares do:
 * paid for the predicted label, the same for each input, in proportion to positive values. */
double fds__comparison_misallocated(const fds__comparison *comparison);
/* As fds pay divides by default: negative values earn nothing; if there is no other, all earn the
 * same. total: of the positive values. */
double fds__clipped_share(double value, double total, size_t players);
double fds__positive_sum(const double *values, size_t count);

/* ---- calibrate.c ---- */

enum { FDS__PARTS = 3 };

/* Standard errors by label and player, for the predicted label and for others, and how the error of
 * a value depends on the input. */
typedef struct fds__calibration {
    size_t inputs;               /* validation inputs that it comes from */
    double *errors;              /* (2, classes, players); [0]: the label is the predicted one */
    bool by_spread;              /* the base of the parts is the variance of the probes' answers */
    double parts[4][FDS__PARTS]; /* of the squared error; see calibrate.c */
} fds__calibration;

fds_status fds__calibrate(const fds__comparison *comparison, const fds_events *events,
                          fds__calibration *out, fds_error *err);
/* Standard errors of an input's values (players) for a label; is_other: another one is predicted.
 * spread: of the probes' answers; 0 for a network. */
void fds__calibration_errors(const fds__calibration *calibration, uint32_t classes, size_t players,
                             const uint32_t *player_labels, bool is_other, uint32_t label,
                             double spread, const double *values, double *errors);
void fds__calibration_free(fds__calibration *calibration);
fds_status fds__calibration_save(const fds__calibration *calibration, uint32_t classes,
                                 size_t players, const char *path, fds_error *err);
fds_status fds__calibration_load(const char *path, uint32_t classes, size_t players,
                                 fds__calibration *out, fds_error *err);

/* ---- validate.c ---- */

typedef struct fds__validated {
    const fds_problem *problem;
    const fds__utility_data *data;
    const fds__comparison *comparison;
    bool is_own;      /* the targets are the values themselves: all sub-models answer */
    double agreement; /* as fds__comparison_agreement has it; of no meaning if is_own */
    uint64_t seed;
} fds__validated;

/* Writes validation.json. */
fds_status fds__validation_write(const char *dir, const fds__validated *what,
                                 const fds_events *events, fds_error *err);
/* Without the file, *out says so. */
fds_status fds__validation_read(const char *dir, fds__validation *out, fds_error *err);
/* How unlike the data of the players a normalised input x (size) is. reference (players, size): the
 * first sample of each, of which some hundred are looked at. */
double fds__drift_score(const float *reference, size_t players, const float *x, size_t size);

/* ---- input.c ---- */

struct fds_input {
    const fds_dataset *ds;
    fds_dataset *own[2]; /* what it owns: the data and its test part, if any */
    uint32_t *index;     /* (count) samples of ds */
    uint32_t *truth;     /* (count) true labels as the run numbers them; NULL: not known */
    double *targets;     /* (count) of a regression; NULL: not known */
    char **names;        /* (count) of pictures; NULL: samples */
    uint32_t classes;    /* of service */
    double *service;     /* (count, classes) what a model trained elsewhere predicts; or NULL */
    bool is_test;        /* samples of a test part */
    bool has_ids;        /* names of samples have the ids or paths that ds has */
    size_t count;
};

/* Bytes 0 to 255 that were saved as floats would be other pictures than the run's. FDS_ERR_FORMAT. */
fds_status fds__run_check_range(const fds_run *run, const fds_dataset *ds, fds_error *err);
/* The run's number of a class; its number of classes: it has none of that name. */
uint32_t fds__run_find_class(const fds_run *run, const char *name);

#endif
