/* SPDX-License-Identifier: Apache-2.0
 * What a fit's settings come to, once defaults are filled in; shared by fit.c, estimate.c and
 * run.c. */
#ifndef FDS_EXPLAIN_SETTINGS_H
#define FDS_EXPLAIN_SETTINGS_H

#include "explain/explain.h"

typedef struct fds_fit_settings {
    fds_fit_params params;  /* the caller's, with defaults filled in */
    fds_value_params value; /* as the sub-models are trained */
    bool is_bank, keeps_models;
    size_t coalitions, held_coalitions; /* to learn from, kept out */
    size_t held_inputs;
    uint64_t plan_seed;
    unsigned threads, explainer_threads; /* none is 0 */
} fds_fit_settings;

/* Names the first mistake. The texts that params points to must outlive it. */
fds_status fds_fit_settle(const fds_fit_params *params, const fds_dataset *train,
                          const fds_players *players, const fds_groups *groups,
                          const uint32_t *inputs, size_t input_count, fds_fit_settings *out,
                          fds_error *err);
fds_explainer_params fds_fit_explainer(const fds_fit_settings *settings);
/* How many coalitions there are to learn from where the caller does not say. */
size_t fds_fit_coalitions(fds_sampler sampler, size_t players, size_t groups);

/* ---- lesson.c ---- */

/* The coalitions of a fit: all of them, those to learn from, those kept out. */
typedef struct fds_fit_plans {
    fds_plan *all, *plan, *held;
} fds_fit_plans;

fds_status fds_fit_plans_make(const fds_fit_settings *settings, size_t players,
                              const fds_groups *groups, fds_fit_plans *out, fds_error *err);
void fds_fit_plans_free(fds_fit_plans *plans);

/* The inputs in the order of the lesson, those kept out last: order[count]. */
void fds_fit_order(const fds_fit_settings *settings, const uint32_t *inputs, size_t count,
                   uint32_t *order);

#endif
