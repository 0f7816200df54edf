/* SPDX-License-Identifier: Apache-2.0
 * What a problem has, as numbers, names and JSON; results with its names. */
#include "data/data.h"

/* ---- access ---- */

size_t fds_problem_players(const fds_problem *p) { return fds_players_count(p->players); }
const char *fds_problem_player(const fds_problem *p, size_t i) {
    return fds_players_name(p->players, i);
}
size_t fds_problem_tests(const fds_problem *p) { return p->test_count; }
const fds_dataset *fds_problem_train(const fds_problem *p) { return p->train; }
const fds_dataset *fds_problem_test(const fds_problem *p) { return p->test; }

json_t *fds__problem_json(const fds_problem *p) {
    return json_pack("{s:s, s:o, s:{s:s, s:I, s:I}, s:I, s:b, s:b, s:I}", "task",
                     p->train->targets ? "regression" : "classification", "data",
                     fds__json_string(p->train->source), "players", "kind",
                     p->by_provider ? "providers" : "samples", "count",
                     (json_int_t)fds_players_count(p->players), "samples",
                     (json_int_t)p->sample_count, "tests", (json_int_t)p->test_count,
                     "tests_set_aside", !p->has_test_part && !p->has_named_tests, "tests_balanced",
                     !p->is_proportional, "inputs", (json_int_t)p->input_count);
}

const char *fds_problem_describe(const fds_problem *problem) {
    fds_problem *p = (fds_problem *)(uintptr_t)problem;
    json_t *json = fds__problem_json(p);
    const char *text = fds__json_once(&p->text, json);
    json_decref(json);
    return text;
}

const char *fds__player_provider(const fds_problem *p, size_t player) {
    const uint32_t *index;
    if (p->by_provider || !p->train->provider_ids ||
        !fds_players_samples(p->players, player, &index))
        return NULL;
    return fds_dataset_provider_name(p->train, p->train->provider_ids[index[0]]);
}

/* ---- results ---- */

static double mean_target(const fds_dataset *ds, const uint32_t *index, size_t count) {
    double mean, std;
    fds__dataset_target_stats(ds, index, count, &mean, &std);
    return mean;
}

static fds_status name_result(const fds_problem *p, fds_result *r, fds_error *err) {
    if (p->train->targets)
        TRY(fds__result_regression(r, err));
    for (size_t i = 0; i < r->players; i++) {
        const uint32_t *index;
        uint32_t label = p->player_labels[i];
        size_t samples = fds_players_samples(p->players, i, &index);
        if (p->train->targets) /* one sample: its own */
            TRY(fds__result_number(r, mean_target(p->train, index, samples), &label, err));
        const char *name = fds_players_name(p->players, i);
        TRY(fds__result_name_player(r, i, name, p->by_provider ? name : fds__player_provider(p, i),
                                    label, samples, err));
    }
    for (uint32_t c = 0; c < r->classes && !r->is_regression; c++)
        TRY(fds__result_name_class(r, c, fds_dataset_class_name(p->train, c), err));
    return FDS_OK;
}

fds_status fds__problem_result(const fds_problem *p, const char *method, size_t predictions,
                               fds_result **out, fds_error *err) {
    fds_result *r;
    TRY(fds__result_create(method, fds_players_count(p->players), predictions,
                           p->train->targets ? 0 : p->train->classes, &r, err));
    fds_status status = name_result(p, r, err);
    if (status != FDS_OK)
        fds_result_free(r);
    else
        *out = r;
    return status;
}
