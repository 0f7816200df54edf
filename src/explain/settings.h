/* SPDX-License-Identifier: Apache-2.0
 * What a fit's settings come to, once defaults are filled in; shared by fit.c, estimate.c and
 * run.c. */
#ifndef FDS_EXPLAIN_SETTINGS_H
#define FDS_EXPLAIN_SETTINGS_H

#include "explain/explain.h"

typedef struct fds__fit_settings {
    fds_fit_params params;    /* the caller's, with defaults filled in */
    fds_utility_params value; /* as the sub-models are trained */
    bool is_bank, keeps_models;
    size_t coalitions, validation_coalitions; /* to learn from, kept out */
    size_t validation_inputs;
    uint64_t plan_seed;
    unsigned threads, explainer_threads; /* none is 0 */
} fds__fit_settings;

/* Names the first mistake. The texts that params points to must outlive it. */
fds_status fds__fit_settle(const fds_fit_params *params, const fds_dataset *train,
                           const fds_players *players, const fds_groups *groups,
                           const uint32_t *inputs, size_t input_count, fds__fit_settings *out,
                           fds_error *err);
fds__explainer_params fds__fit_explainer(const fds__fit_settings *settings);
/* How many coalitions there are to learn from where the caller does not say. */
size_t fds__fit_coalitions(fds_sampler sampler, size_t players, size_t groups);

/* ---- training.c ---- */

/* The coalitions of a fit: all of them, those to learn from, those kept out. */
typedef struct fds__fit_plans {
    fds_plan *all, *plan, *validation;
} fds__fit_plans;

fds_status fds__fit_plans_make(const fds__fit_settings *settings, size_t players,
                               const fds_groups *groups, fds__fit_plans *out, fds_error *err);
void fds__fit_plans_free(fds__fit_plans *plans);

/* The inputs in the order of the training, those kept out last: order[count]. */
void fds__fit_order(const fds__fit_settings *settings, const uint32_t *inputs, size_t count,
                    uint32_t *order);

#endif
