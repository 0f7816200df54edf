/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of a run:
 *
 *   run.json               who takes part, every setting, versions, and once it is done the results
 *   service.safetensors    the service model
 *   utilities/             the table of utilities
 *   explainer.safetensors  the network; not there where the bank answers alone
 *   players.safetensors    the first sample of each player ("samples"), for pictures
 *   errors.safetensors     standard errors calibrated on validation inputs
 *   metrics.jsonl, curves.svg   how the explainer's training went
 *   models.bank            sub-models, where they were kept
 *   checkpoint.safetensors while it is being fitted
 *
 * Each is written whole, aside, and put in place in one step (the table and the bank: record by
 * record); run.json gets its results last, so that a run with results is complete. */
#ifndef FDS_EXPLAIN_RUN_H
#define FDS_EXPLAIN_RUN_H

#include "explain/settings.h"

#define FDS__RUN_JSON "run.json"
#define FDS__RUN_SERVICE "service.safetensors"
#define FDS__RUN_TABLE "utilities"
#define FDS__RUN_EXPLAINER "explainer.safetensors"
#define FDS__RUN_PLAYERS "players.safetensors"
#define FDS__RUN_ERRORS "errors.safetensors"
#define FDS__RUN_BANK "models.bank"

/* ---- run_json.c ---- */

/* What a run is, as run.json has it. Texts belong to json. */
typedef struct fds__run_record {
    json_t *json;
    fds__run_info info;
    fds_groups *groups;         /* or NULL */
    fds__fit_settings settings; /* of the plan and the bank: sampler, coalitions, seed, adjust */
    fds_ls_report strengths;
    unsigned threads;
    fds__fit_report report;
} fds__run_record;

const char *fds__sampler_name(fds_sampler sampler);
json_t *fds__fit_seconds_json(const double seconds[FDS__FIT_STAGES]); /* NULL: out of memory */
/* A fit's description without results. */
fds_status fds__run_record_describe(const fds__fit_settings *settings, const fds_problem *problem,
                                    const fds_params *params, const fds_groups *groups,
                                    const fds_utility *value, json_t **out, fds_error *err);
/* Whether dir has a run.json of the same description: *is_there, *is_done. FDS_ERR_USAGE, naming the
 * difference, when it has another, and for a folder with something else in it. A damaged run.json is
 * told to events, and counts as that of a run that is not done. */
fds_status fds__run_record_compare(const char *dir, const json_t *description,
                                   const fds_events *events, bool *is_there, bool *is_done,
                                   fds_error *err);
/* Writes run.json; report NULL: not done yet. */
fds_status fds__run_record_write(const char *dir, const json_t *description,
                                 const fds__fit_settings *settings, const fds__fit_report *report,
                                 const fds_ls_report *strengths, fds_error *err);
/* FDS_ERR_NOT_FOUND where there is no run, FDS_ERR_USAGE where it is not finished. */
fds_status fds__run_record_read(const char *dir, fds__run_record *out, fds_error *err);
/* Whether the files that answers depend on are as the fit left them. */
fds_status fds__run_record_check(const char *dir, const fds__run_record *record, fds_error *err);
void fds__run_record_free(fds__run_record *record);

/* ---- run.c ---- */

size_t fds__run_player_size(const fds_run *run, size_t i); /* its samples */
const char *fds__run_folder(const fds_run *run);

/* Where the data was and how it was read; NULL: as by default. */
typedef struct fds__run_origin {
    const char *path, *label, *provider, *labels;
} fds__run_origin;
fds__run_origin fds__run_get_origin(const fds_run *run);

/* ---- calibrate.c ---- */

/* Standard errors by label and player: of the label that is predicted, and of others. */
typedef struct fds__calibration {
    size_t inputs;  /* validation inputs that it comes from */
    double *errors; /* (2, classes, players); [0]: the label is the predicted one */
} fds__calibration;

/* An explainer's values on validation inputs beside those of least squares. */
typedef struct fds__comparison {
    size_t inputs, players;
    uint32_t classes;
    double *values;                /* (inputs, classes, players) the explainer's */
    double *targets, *errors;      /* the same of least squares, with standard errors */
    const uint32_t *predicted;     /* (inputs) */
    const uint32_t *player_labels; /* (players) */
} fds__comparison;

fds_status fds__calibrate(const fds__comparison *comparison, fds__calibration *out, fds_error *err);
void fds__calibration_free(fds__calibration *calibration);
fds_status fds__calibration_save(const fds__calibration *calibration, uint32_t classes,
                                 size_t players, const char *path, fds_error *err);
fds_status fds__calibration_load(const char *path, uint32_t classes, size_t players,
                                 fds__calibration *out, fds_error *err);

#endif
