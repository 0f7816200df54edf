/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of fds fit: cmd_fit.c reads the options and does the work, fit_show.c shows it. */
#ifndef FDS_CLI_FIT_H
#define FDS_CLI_FIT_H

#include "cli.h"

typedef struct fit_options {
    cli_common common;
    fds_data_options data;
    const char *output, *method, *players, *sampler, *adjust, *group, *model, *optimizer;
    const char *explainer, *weights, *objective, *form, *precision;
    bool warm_up, keep_models, plan;
    uint64_t inputs, coalitions, k, batch, explainer_batch, explainer_epochs, draws; /* 0: not */
    uint64_t draw, patience;       /* UINT64_MAX: not given */
    double lr, beta, explainer_lr; /* 0: not given */
    double gamma;                  /* -1: not given */
} fit_options;

typedef struct fit_job {
    const fit_options *o;
    cli_term *term;
    cli_setup setup;
    const char *method;
    fds_fit_params params;
    char kind[32];      /* "retrain:10" */
    bool is_grouped;    /* by gfds or gfds+ */
    fds_groups *groups; /* NULL: none are needed */

    fds_fit_estimate estimate; /* with --plan */
    fds_fit_report report;
    fds_run *run;
    fds_score on_test;
} fit_job;

static inline unsigned fit_threads(const fit_job *j) { return (unsigned)j->o->common.threads; }

fds_status fit_show(const fit_job *j, fds_error *err);
fds_status fit_show_plan(const fit_job *j, fds_error *err);

#endif
