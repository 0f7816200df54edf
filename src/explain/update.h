/* SPDX-License-Identifier: Apache-2.0
 * A run and what it becomes when its data changes: update.c, changed_data.c, forget.c. */
#ifndef FDS_EXPLAIN_UPDATE_H
#define FDS_EXPLAIN_UPDATE_H

#include "explain/run.h"

typedef struct fds__update {
    const char *dir; /* of the run */
    const fds_params *params;
    const char *forgotten; /* a provider to leave out besides those of params; or NULL */
    const fds_events *events;
    json_t *json;    /* run.json */
    fds_params *fit; /* of the fit to come */
    fds_dataset *train, *test;
    fds_problem *problem;
    fds__fit_settings settings;
    fds__fit_plans plans;
    fds_groups *groups;
    uint32_t *order;
    fds_utility *utility;
    size_t old_inputs, old_validation;
    fds_table *from, *table; /* the old one, the new one */
    uint32_t *players, *inputs;
    fds__reuse map;
    size_t kept;            /* players that the old run has, with the same samples */
    size_t records, models; /* of the old table and bank */
    size_t models_kept;     /* of those models */
    size_t reused, trained; /* different coalitions */
    char reason[300];       /* why nothing can be reused; "": something can */
} fds__update;

/* run.json, the parameters, the changed data and the problem. */
fds_status fds__update_open(fds__update *update, fds_error *err);
/* Finds what stays valid, and locks the old table; writes nothing. What cannot be fitted is refused
 * here. */
fds_status fds__update_compare(fds__update *update, fds_error *err);
/* Copies what stays valid to a table and bank in the folder into. */
fds_status fds__update_reuse(fds__update *update, const char *into, fds_error *err);
/* Adds reused, trained, reason and the members of more, which it frees, to a fit's report. */
fds_status fds__update_report(const fds__update *update, json_t *more, char **report,
                              fds_error *err);
void fds__update_free(fds__update *update);

/* Of a player of run.json: its provider, or its name if it has none. */
const char *fds__update_owner(const json_t *player);
/* The one of these that a wrong name is most like, which belongs to json (of run.json); or NULL. */
const char *fds__update_nearest(const json_t *json, const char *name);

/* ---- changed_data.c ---- */

/* Reads the samples of the run's players that stay, and those that are added: train and test. */
fds_status fds__changed_data(fds__update *update, fds_error *err);

#endif
