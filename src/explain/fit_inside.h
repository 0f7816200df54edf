/* SPDX-License-Identifier: Apache-2.0
 * What the files of a fit share: fit.c the whole job and the values, fit_utilities.c sub-models and the service
 * model, fit_explainer.c the explainer and its check on validation inputs, fit_rounds.c `until_error`. */
#ifndef FDS_FIT_INSIDE_H
#define FDS_FIT_INSIDE_H

#include "explain/run.h"

/* Problem, parameters and events belong to the caller. */
typedef struct fds__fit_job {
    const char *dir;
    const fds_problem *problem;
    const fds_params *params;
    const fds_dataset *train;
    const fds_players *players;
    fds_groups *groups; /* or NULL */
    const fds_events *events;
    fds__fit_settings settings;
    fds__fit_plans plans;
    size_t n, inputs, columns; /* columns: inputs * classes */
    uint32_t classes;
    uint32_t *order; /* (inputs) samples, validation inputs last */
    fds_utility *utility;
    fds_model *service;
    fds_table *table;
    fds_table_view *view, *validation_view;
    json_t *description;
    uint32_t *predicted;          /* (inputs) */
    double *empty, *full;         /* (inputs, classes) */
    double *values, *errors;      /* (n, columns), by least squares */
    double *first, *first_errors; /* (n, columns), by the first sub-models, if these answer */
    fds__aim aim;                 /* of a regression: at what all players predict */
    uint32_t *zeros;              /* (inputs) its labels */
    float *targets;               /* (inputs, classes, n): the values, transposed; or */
    fds__factors factors;         /* with rank: (inputs, classes, rank), their coefficients */
    fds__explainer *explainer;    /* or */
    fds__probe *probe;
    fds_ls_report strengths;
    fds__fit_report report;
    bool is_done;
    bool needs_more; /* coalitions, for `until_error`: settings.until.count */
} fds__fit_job;

/* ---- fit_utilities.c ---- */

/* The stage: all sub-models, the service model among them, and what they say of the inputs. */
fds_status fds__fit_fill(fds__fit_job *f, fds_error *err);
/* Sub-models that are missing in the table or in the bank. */
fds_status fds__fit_train_sub_models(fds__fit_job *f, fds_error *err);

/* ---- fit.c ---- */

/* Values by the coalitions of one plan; errors may be NULL. */
fds_status fds__fit_solve_plan(const fds__fit_job *f, const fds_plan *plan, double *values,
                               double *errors, fds_ls_report *strengths, fds_error *err);

/* ---- fit_rounds.c: `until_error` ---- */

/* Whether the values need more coalitions. */
fds_status fds__fit_measure_round(fds__fit_job *f, fds_error *err);

/* ---- fit_explainer.c ---- */

/* The stages: training and saving the explainer; its answers for validation inputs against least squares. */
fds_status fds__fit_learn(fds__fit_job *f, fds_error *err);
fds_status fds__fit_check_answers(fds__fit_job *f, fds_error *err);

#endif
