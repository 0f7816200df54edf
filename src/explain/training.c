/* SPDX-License-Identifier: Apache-2.0
 * Which coalitions and inputs train the explainer, and which validate it: the last coalitions drawn,
 * and inputs chosen at random. */
#include "explain/run.h"

#include <string.h>

void fds__fit_plans_free(fds__fit_plans *plans) {
    fds_plan_free(plans->all);
    fds_plan_free(plans->plan);
    fds_plan_free(plans->validation);
    fds_plan_free(plans->probes);
    *plans = (fds__fit_plans){0};
}

static fds_status sample(const fds__fit_settings *s, size_t players, const fds_groups *groups,
                         size_t count, fds_plan **out, fds_error *err) {
    return s->keys ? fds_plan_nested(s->keys, players, count, s->plan_seed, s->events, out, err)
                   : fds__plan_sample(s->sampler, players, groups, count, s->plan_seed, s->events,
                                      out, err);
}

static fds_status make_plans(const fds__fit_settings *s, size_t players, const fds_groups *groups,
                             fds__fit_plans *out, fds_error *err) {
    fds_sampler sampler = s->sampler;
    bool is_grouped = sampler == FDS_SAMPLER_GFDS || sampler == FDS_SAMPLER_GFDS_PLUS;
    const fds_groups *own = is_grouped ? groups : NULL;
    /* plans of one seed are nested: the shorter plan is the beginning of the longer one */
    TRY(sample(s, players, own, s->coalitions + s->validation_coalitions, &out->all, err));
    TRY(sample(s, players, own, s->coalitions, &out->plan, err));
    if (s->probes)
        TRY(sample(s, players, own, s->probes - 2, &out->probes, err));
    fds_error why;
    fds_status status = fds__plan_tail(out->all, 2 + s->coalitions, &out->validation, &why);
    /* few groups have few coalitions: when all of them train, all of them validate too */
    if (status == FDS_ERR_USAGE)
        return fds__plan_tail(out->all, 2, &out->validation, err);
    return status == FDS_OK ? FDS_OK : fds__fail(err, status, "%s", why.text);
}

fds_status fds__fit_plans_make(const fds__fit_settings *s, size_t players, const fds_groups *groups,
                               fds__fit_plans *out, fds_error *err) {
    *out = (fds__fit_plans){0};
    fds_status status = make_plans(s, players, groups, out, err);
    if (status != FDS_OK)
        fds__fit_plans_free(out);
    return status;
}

void fds__fit_order(const fds__fit_settings *s, const uint32_t *inputs, size_t count,
                    uint32_t *order) {
    for (size_t i = 0; i < count; i++)
        order[i] = inputs ? inputs[i] : (uint32_t)i;
    fds_rng rng = fds_rng_make(s->seed, FDS__PURPOSE_VALIDATION, 0, 0);
    fds_rng_shuffle(&rng, order, count);
    /* the training shuffles its inputs anyway; ascending numbers are easier to read */
    fds__samples_sort(order, count - s->validation_inputs);
    fds__samples_sort(order + count - s->validation_inputs, s->validation_inputs);
}

fds_status fds__fit_utility_create(const fds__fit_settings *s, const fds_problem *problem,
                                   const fds_events *events, uint32_t **order, fds_utility **out,
                                   fds_error *err) {
    fds__utility_params params = fds__fit_utility(s);
    params.events = events;
    TRY(RESERVE(*order, problem->input_count, 1, err));
    fds__fit_order(s, problem->inputs, problem->input_count, *order);
    return fds__utility_create(&params, problem->train, problem->players,
                               fds__problem_input_data(problem), *order, problem->input_count,
                               s->threads, out, err);
}
