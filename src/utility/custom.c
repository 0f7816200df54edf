/* SPDX-License-Identifier: Apache-2.0
 * A utility function that the caller computes: fds_utility_custom. */
#include "utility/utility.h"

#include <math.h>
#include <string.h>

typedef struct {
    const fds__utility_data *data;
    fds_utility_callback eval;
    void *context;
    uint32_t **members; /* (workers, samples) */
} custom;

static void custom_free(void *self) {
    custom *c = self;
    for (unsigned w = 0; c && c->members && w < c->data->workers; w++)
        fds__free(c->members[w]);
    if (c)
        fds__free(c->members);
    fds__free(c);
}

static fds_status custom_create(fds__utility_making *making, fds_error *err) {
    const fds__utility_params *p = making->params;
    const size_t samples = making->data->samples->count;
    custom *c;
    TRY(NEW(c, 1, err));
    making->self = c;
    *c = (custom){.data = making->data, .eval = p->callback, .context = p->callback_context};
    TRY(NEW(c->members, c->data->workers, err));
    for (unsigned w = 0; w < c->data->workers; w++)
        TRY(NEW(c->members[w], samples, err));
    making->memory = sizeof *c + c->data->workers * samples * sizeof **c->members;
    return fds__utility_about(making->about,
                              json_pack("{s:o}", "name", fds__json_string(p->callback_name)), err);
}

static fds_status custom_eval(const void *self, unsigned worker, const uint64_t *coalition,
                              float *probs, fds_error *err) {
    const custom *c = self;
    const size_t values = c->data->inputs->count * c->data->classes;
    uint32_t *members = c->members[worker];
    size_t count = fds__utility_members(c->data, coalition, members);
    for (size_t i = 0; i < count; i++)
        members[i] = c->data->samples->ids[members[i]];
    fds_error why = {0};
    fds_status status = c->eval(c->context, worker, members, count, probs, &why);
    if (status != FDS_OK) {
        fds__fail(err, status, "%s", why.text[0] ? why.text : fds_status_text(status));
        return fds__utility_fail(c->data, coalition, status, err);
    }
    for (size_t i = 0; i < values; i++)
        if (!isfinite(probs[i])) {
            fds__fail(err, FDS_ERR_EXTERNAL,
                      "the callback answered %g for input %zu, class %zu; it must be a finite "
                      "number",
                      (double)probs[i], i / c->data->classes, i % c->data->classes);
            return fds__utility_fail(c->data, coalition, FDS_ERR_EXTERNAL, err);
        }
    fds__utility_standardise(c->data, probs);
    return FDS_OK;
}

static const fds__utility_kind custom_kind = {.eval = custom_eval, .free = custom_free};
const fds__utility_row fds__custom_row = {
    .name = "custom", .ending = "", .kind = &custom_kind, .create = custom_create};

fds_status fds_utility_custom(const fds_problem *problem, const char *text,
                              fds_utility_callback eval, void *context, unsigned workers,
                              fds_utility **out, fds_error *err) {
    fds__utility_params params = fds__utility_params_default();
    if (!eval || !text || !*text)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a utility function of one's own needs a callback and a text that says "
                         "what its answers depend on");
    params.callback = eval;
    params.callback_context = context;
    params.callback_name = text;
    return fds__utility_of(problem, &params, workers, out, err);
}
