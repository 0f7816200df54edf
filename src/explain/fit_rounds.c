/* SPDX-License-Identifier: Apache-2.0
 *
 * `until_error` in a fit: rounds of more and more coalitions (utility/until.c), until the values have
 * the standard error that is asked for; only then an explainer is trained. Plans of one seed are nested,
 * so a round trains only what it has more. In the end the folder has the bytes of a fit with
 * `coalitions`, but for what run.json says of `until_error`.
 *
 * run.json has the number of coalitions of its round from the round's beginning on: a killed fit, started
 * again, goes on with that round. */
#include "explain/fit_inside.h"

fds_status fds__fit_round(const char *dir, const fds_params *params, uint64_t *round,
                          fds_error *err) {
    char path[FDS__PATH_MAX];
    json_t *json;
    if (fds_ranks_count() > 1)
        TRY(fds__until_refuse(params, err));
    TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_JSON, err));
    if (!fds__path_exists(path) || fds__run_record_json(dir, &json, NULL) != FDS_OK)
        return FDS_OK; /* a folder that is something else is found later */
    const json_t *c = json_object_get(json, "coalitions");
    json_int_t count = json_integer_value(json_object_get(c, "count"));
    if (json_number_value(json_object_get(c, "until_error")) == params->until_error && count > 0)
        *round = (uint64_t)count;
    json_decref(json);
    return FDS_OK;
}

/* For the predicted label of each input, because that is what is paid for. */
fds_status fds__fit_measure_round(fds__fit_job *f, fds_error *err) {
    OWNED double *greatest = NULL;
    fds__until *until = &f->settings.until;
    TRY(RESERVE(greatest, f->inputs, 1, err));
    for (size_t x = 0; x < f->inputs; x++)
        greatest[x] =
            fds__until_greatest(f->errors + x * f->classes + f->predicted[x], f->n, f->columns);
    f->needs_more =
        !fds__until_measure(until, greatest, f->inputs, f->strengths.ridge > 0, f->events);
    f->report.until = *until;
    return FDS_OK;
}
