/* SPDX-License-Identifier: Apache-2.0
 * What a fit's settings come to, once defaults are filled in; shared by fit.c, estimate.c and
 * run.c. */
#ifndef FDS_EXPLAIN_SETTINGS_H
#define FDS_EXPLAIN_SETTINGS_H

#include "explain/explain.h"

typedef struct fds__fit_settings {
    const char *method;
    char kind[32];             /* the utility function of sub-models */
    fds__utility_params value; /* how they are trained, except for its kind */
    fds_sampler sampler;
    fds_adjust adjust;
    const char *adjust_name;
    fds__explainer_params explainer;
    bool is_bank, keeps_models, has_groups;
    size_t coalitions, validation_coalitions; /* to learn from, to validate by */
    size_t validation_inputs;
    uint64_t plan_seed, seed;
    unsigned threads, explainer_threads; /* none is 0 */
} fds__fit_settings;

/* All that needs no groups; names the first mistake. The texts that params points to must outlive
 * it. */
fds_status fds__fit_read(const fds_params *params, const fds_problem *problem,
                         fds__fit_settings *out, fds_error *err);
/* The rest, once the groups are known (NULL: none). */
fds_status fds__fit_settle(const fds_params *params, const fds_problem *problem,
                           const fds_groups *groups, fds__fit_settings *settings, fds_error *err);
/* As the sub-models are trained. */
static inline fds__utility_params fds__fit_utility(const fds__fit_settings *settings) {
    fds__utility_params params = settings->value;
    params.kind = settings->kind;
    return params;
}
/* gfds and gfds+ */
bool fds__is_grouped(fds_sampler sampler);
/* Both, with groups as the parameters ask for them; the caller frees *groups. */
fds_status fds__fit_prepare(const fds_problem *problem, const fds_params *params,
                            const fds_events *events, fds__fit_settings *settings,
                            fds_groups **groups, fds_error *err);
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

/* The inputs in the order of the training, those that validate last: order[count]. */
void fds__fit_order(const fds__fit_settings *settings, const uint32_t *inputs, size_t count,
                    uint32_t *order);
/* The utility function of the inputs in that order. The caller frees both, after a failure too. */
fds_status fds__fit_utility_create(const fds__fit_settings *settings, const fds_problem *problem,
                                   uint32_t **order, fds_utility **out, fds_error *err);

#endif
