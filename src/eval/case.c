/* SPDX-License-Identifier: Apache-2.0
 *
 * One set of data with one seed: every method's values for the same test samples, the value loss of
 * each by retraining without those whom it values most, how near it comes to the truth, and whether
 * it finds wrong labels.
 *
 * Every step finds in the folder what earlier processes have left there: sub-models in tables, fits
 * in their runs, costs in METHOD.json. All else is computed again, and is a function of the data
 * and of the settings. case.json is written last: a case that has one is finished, unless it is
 * damaged.
 *
 * Who is judged by which models:
 *
 *   retrain:10   every row; bottom and add too, where both ways are asked for
 *   retrain      fds, the controls, and rows with one value a player, when fds is among the methods
 *                or converged models are asked for
 *
 * Values by sample are those for the label that the scorer's own model predicts.
 *
 * What is taken for the truth is the mean of two least-squares solutions on coalitions drawn apart;
 * how well the two agree tells how much it can be trusted.
 */
#include "eval/case.h"
#include "report/report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define RESULT "case.json"

typedef struct {
    double *values; /* (players, eval_columns) */
    eval_cost cost;
} row;

typedef struct {
    eval_game game;
    fds__file lock;
    size_t count;
    eval_method *methods; /* (count) */
    row *rows;            /* (count) */
    double *areas;        /* (count); NaN where there are no wrong labels */
    eval_truth truth[EVAL_UTILITIES];
    json_t *judged, *json_rows, *pictures;
} bench;

static void bench_free(bench *b) {
    eval_game_free(&b->game);
    for (size_t i = 0; b->rows && i < b->count; i++)
        fds__free(b->rows[i].values);
    fds__free(b->rows);
    fds__free(b->methods);
    fds__free(b->areas);
    for (int scorer = 0; scorer < EVAL_UTILITIES; scorer++)
        fds__free(b->truth[scorer].values);
    json_decref(b->judged);
    json_decref(b->json_rows);
    json_decref(b->pictures);
    fds__file_close(&b->lock);
}

/* Where it is, for people. */
__attribute__((format(printf, 2, 3))) static void tell(const bench *b, const char *format, ...) {
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fds__log(b->game.events, FDS_LOG_INFO, "%s, seed %llu: %s", b->game.data->name,
             (unsigned long long)b->game.params->seed, text);
}

/* ---- before any work ---- */

static fds_status check_data(const fds__bench_data *data, fds_error *err) {
    if (!data || !data->name || !data->train || !data->players || !data->test)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a case needs a name, training data, players and test data");
    if (!data->test_count)
        return fds__fail(err, FDS_ERR_USAGE, "no test samples: at least one is needed");
    if (fds_players_count(data->players) < 2)
        return fds__fail(err, FDS_ERR_USAGE, "there is only one player, and nothing to compare");
    /* what is not looked at by anything else before it is used */
    return data->input_count ? fds__samples_check(data->train, data->inputs, data->input_count, err)
                             : FDS_OK;
}

static bool has_fits(const bench *b) {
    for (size_t i = 0; i < b->count; i++)
        if (b->methods[i].is_fit || strcmp(b->methods[i].base, "bank") == 0)
            return true;
    return false;
}

/* What a method cannot do with these players. */
static fds_status check_method(const eval_method *m, const eval_game *game, fds_error *err) {
    const fds_players *players = game->data->players;
    fds_params params;
    fds_error why;
    const uint32_t *index;
    uint32_t k;
    if (eval_lacks_groups(game, m))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "method \"%s\": all players have the same label, and it compares groups of "
            "players by label; leave it out",
            m->name);
    if (fds__baseline_default(m->base, &params, &why) != FDS_OK)
        return FDS_OK; /* ours */
    if (m->is_per_sample)
        params.scorer = FDS__SCORER_EACH_SAMPLE;
    TRY(fds__baseline_check(&params, fds_players_count(players), err));
    for (size_t p = 0; baseline_read_knn(m->base, &k) && p < fds_players_count(players); p++)
        if (fds_players_samples(players, p, &index) != 1)
            return fds__fail(err, FDS_ERR_USAGE,
                             "method \"%s\": player \"%s\" has %zu samples, and its values are "
                             "known only where each player has one; leave it out",
                             m->name, fds_players_name(players, p),
                             fds_players_samples(players, p, &index));
    return FDS_OK;
}

static fds_status find_methods(bench *b, fds_error *err) {
    const char *const *names = eval_method_names(b->game.params);
    while (names[b->count])
        b->count++;
    b->methods = fds__alloc_zero(b->count, sizeof *b->methods);
    b->rows = fds__alloc_zero(b->count, sizeof *b->rows);
    b->areas = fds__alloc_zero(b->count, sizeof *b->areas);
    if (!b->methods || !b->rows || !b->areas)
        return fds__fail_nomem(err, b->count * sizeof *b->methods);
    size_t kept = 0;
    for (size_t i = 0; i < b->count; i++) {
        TRY(eval_method_find(names[i], &b->methods[kept], err));
        fds_error why; /* of all methods, those are compared that there are for such players */
        fds_status status = check_method(&b->methods[kept], &b->game, &why);
        if (status != FDS_OK && b->game.params->methods)
            return fds__fail(err, status, "%s", why.text);
        b->areas[kept] = NAN;
        kept += status == FDS_OK;
    }
    b->count = kept;
    if (has_fits(b) && !b->game.data->input_count)
        return fds__fail(err, FDS_ERR_USAGE, "the explainers need inputs to learn from");
    if (b->game.params->flipped > 0 && b->game.data->train->classes < 2)
        return fds__fail(err, FDS_ERR_USAGE, "%s has one class: no label can be wrong",
                         b->game.data->train->source);
    return FDS_OK;
}

/* ---- values ---- */

static eval_utility own_utility(const eval_method *m) {
    return m->is_converged ? EVAL_UTILITY_CONVERGED : EVAL_UTILITY_EPOCHS;
}

static fds_status value_row(bench *b, size_t i, size_t number, fds_error *err) {
    const eval_game *g = &b->game;
    const eval_method *m = &b->methods[i];
    size_t size = g->players * eval_columns(g, m);
    tell(b, "%s (%zu of %zu)", m->name, number, b->count);
    b->rows[i].values = fds__alloc_zero(size, sizeof *b->rows[i].values);
    if (!b->rows[i].values)
        return fds__fail_nomem(err, size * sizeof *b->rows[i].values);
    return eval_answers(g, m, g->sides[own_utility(m)].predicted, b->rows[i].values,
                        &b->rows[i].cost, err);
}

/* ls last: baselines would find many of its sub-models, and seem to need less time. */
static fds_status value_all(bench *b, fds_error *err) {
    size_t number = 0;
    for (int is_last = 0; is_last < 2; is_last++)
        for (size_t i = 0; i < b->count; i++)
            if ((strcmp(b->methods[i].base, "ls") == 0) == is_last)
                TRY(value_row(b, i, ++number, err));
    return FDS_OK;
}

/* The mean of two solutions on half of the coalitions each; again: room for the second one. */
static fds_status solve_truth(const eval_game *g, eval_utility scorer, eval_truth *truth,
                              double *again, fds_error *err) {
    const uint32_t *labels = g->sides[scorer].predicted;
    size_t half = MAX(g->params->truth / 4 * 2, (size_t)2);
    fds_agreement agreement;
    TRY(eval_least_squares(g, scorer, EVAL_DRAW_TRUTH, half, labels, truth->values, NULL, err));
    TRY(eval_least_squares(g, scorer, EVAL_DRAW_TRUTH_AGAIN, half, labels, again, NULL, err));
    TRY(fds_agree(again, g->tests, truth->values, g->tests, g->players, g->player_labels, labels,
                  &agreement, err));
    for (size_t i = 0; i < g->players * g->tests; i++)
        truth->values[i] = (truth->values[i] + again[i]) / 2;
    truth->coalitions = 2 * eval_drawn(g, half);
    truth->correlation = agreement.correlation;
    return FDS_OK;
}

/* The truth of a value function that is some row's own. */
static fds_status find_truth(bench *b, eval_utility scorer, fds_error *err) {
    const eval_game *g = &b->game;
    size_t size = g->players * g->tests;
    bool is_wanted = false;
    for (size_t i = 0; i < b->count; i++)
        is_wanted |= own_utility(&b->methods[i]) == scorer;
    if (!is_wanted || !g->params->truth)
        return FDS_OK;
    tell(b, "the truth by %s, %zu coalitions", eval_utility_name(scorer), g->params->truth);
    double *again = fds__alloc_zero(size, sizeof *again);
    b->truth[scorer].values = fds__alloc_zero(size, sizeof *again);
    fds_status status = again && b->truth[scorer].values
                            ? solve_truth(g, scorer, &b->truth[scorer], again, err)
                            : fds__fail_nomem(err, size * sizeof *again);
    fds__free(again);
    return status;
}

/* ---- losses ---- */

static fds_status measure_by(const bench *b, size_t i, eval_utility scorer, json_t *list,
                             fds_error *err) {
    const eval_game *g = &b->game;
    const eval_method *m = &b->methods[i];
    double *values = b->rows[i].values;
    bool is_both_ways = scorer == EVAL_UTILITY_EPOCHS && g->params->is_both_ways;
    if (m->is_per_sample && scorer != own_utility(m))
        TRY(eval_answers(g, m, g->sides[scorer].predicted, values, NULL, err));
    for (int way = FDS_REMOVAL_TOP; way <= (is_both_ways ? FDS_REMOVAL_KEEP_TOP : FDS_REMOVAL_TOP);
         way++)
        TRY(eval_measure_losses(g, scorer, (fds_removal)way, values, eval_columns(g, m), list,
                                err));
    return FDS_OK;
}

/* By its own value function first: for the other one the row's values are overwritten. */
static fds_status measure_losses(const bench *b, size_t i, json_t *list, fds_error *err) {
    const eval_method *m = &b->methods[i];
    eval_utility own = own_utility(m),
                 other = own == EVAL_UTILITY_EPOCHS ? EVAL_UTILITY_CONVERGED : EVAL_UTILITY_EPOCHS;
    bool is_by_both = m->is_converged || !m->is_per_sample || m->kind == REPORT_CONTROL;
    TRY(measure_by(b, i, own, list, err));
    return is_by_both && b->game.sides[other].value ? measure_by(b, i, other, list, err) : FDS_OK;
}

/* ---- the result ---- */

static json_t *describe_row(const bench *b, size_t i, json_t *losses, json_t *agreement) {
    const eval_method *m = &b->methods[i];
    const eval_cost *cost = &b->rows[i].cost;
    json_t *timing =
        json_pack("{s:o, s:o, s:b}", "prepare_s", fds__json_real(cost->prepare_s), "answer_ms",
                  fds__json_real(cost->answer_ms), "was_resumed", cost->was_resumed);
    json_t *permutations = json_null();
    if (cost->permutations)
        permutations =
            json_pack("{s:I, s:o}", "sampled", (json_int_t)cost->permutations, "has_converged",
                      cost->has_rule ? json_boolean(cost->has_converged) : json_null());
    return json_pack("{s:s, s:s, s:s, s:b, s:s, s:o, s:o, s:o, s:I, s:o, s:o}", "method", m->name,
                     "title", m->title, "kind", report_kind_name(m->kind), "is_per_sample",
                     m->is_per_sample, "utility", eval_utility_name(own_utility(m)), "losses",
                     losses, "agreement", agreement, "auc", fds__json_real(b->areas[i]),
                     "sub_models", (json_int_t)cost->sub_models, "permutations", permutations,
                     "timing", timing);
}

static fds_status measure_row(const bench *b, size_t i, fds_error *err) {
    const eval_method *m = &b->methods[i];
    json_t *losses = json_array(), *agreement = NULL;
    fds_status status = losses ? FDS_OK : fds__fail_json(err);
    if (status == FDS_OK)
        status = eval_measure_agreement(&b->game, m, b->rows[i].values,
                                        b->truth[own_utility(m)].values, &agreement, err);
    if (status == FDS_OK)
        status = measure_losses(b, i, losses, err);
    if (status != FDS_OK) {
        json_decref(losses);
        json_decref(agreement);
        return status;
    }
    json_t *json = describe_row(b, i, losses, agreement);
    return json_array_append_new(b->json_rows, json) == 0 ? FDS_OK : fds__fail_json(err);
}

static fds_status measure_all(bench *b, fds_error *err) {
    b->judged = json_array();
    b->json_rows = json_array();
    if (!b->judged || !b->json_rows)
        return fds__fail_json(err);
    for (int scorer = 0; scorer < EVAL_UTILITIES; scorer++) {
        json_t *item;
        if (!b->game.sides[scorer].value)
            continue;
        TRY(eval_measure_utility(&b->game, (eval_utility)scorer, &b->truth[scorer], &item, err));
        if (json_array_append_new(b->judged, item) != 0)
            return fds__fail_json(err);
    }
    for (size_t i = 0; i < b->count; i++) {
        tell(b, "removals by %s (%zu of %zu)", b->methods[i].name, i + 1, b->count);
        TRY(measure_row(b, i, err));
    }
    return FDS_OK;
}

/* Of the methods that the paper draws. */
static fds_status draw_all(bench *b, fds_error *err) {
    b->pictures = json_array();
    if (!b->pictures)
        return fds__fail_json(err);
    for (size_t i = 0; b->game.train->is_image && i < b->count; i++) {
        const eval_method *m = &b->methods[i];
        char file[64];
        if (strcmp(m->name, "afds") != 0 && strcmp(m->name, "gfds") != 0)
            continue;
        TRY(eval_picture(&b->game, m, err));
        snprintf(file, sizeof file, "%.40s.png", m->base);
        if (json_array_append_new(b->pictures,
                                  json_pack("{s:s, s:s}", "method", m->name, "file", file)) != 0)
            return fds__fail_json(err);
    }
    return FDS_OK;
}

/* This machine; is_mixed where times of an earlier part are of another one. */
static json_t *describe_machine(const bench *b) {
    json_t *machine = eval_describe_machine(&b->game);
    bool is_mixed = false;
    for (size_t i = 0; i < b->count; i++)
        is_mixed |= b->rows[i].cost.is_elsewhere;
    return fds__json_keep_if(machine, !is_mixed || fds__json_put(machine, "is_mixed", json_true()));
}

static fds_status write_result(const bench *b, fds_error *err) {
    json_t *json =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:O, s:O, s:O}", "fds", FDS_VERSION, "kind",
                  "fds bench case", "machine", describe_machine(b), "data",
                  eval_describe_data(&b->game), "settings", eval_describe_settings(&b->game),
                  "utilities", b->judged, "rows", b->json_rows, "pictures", b->pictures);
    fds_status status = fds__json_write(b->game.dir, RESULT, json, err);
    json_decref(json);
    return status;
}

/* ---- all of it ---- */

/* A result that is damaged, or of a version with other members, is none: what it was made from is
 * still there. */
static fds_status find_result(const bench *b, const char *path, bool *is_there, fds_error *err) {
    json_t *json = NULL;
    fds_error why;
    *is_there = false;
    if (!fds__path_exists(path))
        return FDS_OK;
    fds_status status = report_case_read(path, &json, &why);
    json_decref(json);
    *is_there = status == FDS_OK;
    if (status == FDS_ERR_NOMEM)
        return fds__fail(err, status, "%s", why.text);
    if (status != FDS_OK)
        fds__log(b->game.events, FDS_LOG_WARNING, "%s; the case is measured again", why.text);
    return FDS_OK;
}

static fds_status run(bench *b, const char *dir, fds_error *err) {
    const fds__bench_params *p = b->game.params;
    char path[FDS__PATH_MAX];
    bool is_finished;
    TRY(eval_game_make(&b->game, dir, p->is_converged || eval_has_method(p, "fds"), err));
    TRY(find_methods(b, err));
    TRY(fds__path_join(path, sizeof path, dir, RESULT, err));
    TRY(eval_folder_lock(dir, &b->lock, err));
    TRY(eval_folder_settle(&b->game, err));
    TRY(find_result(b, path, &is_finished, err));
    if (is_finished)
        return FDS_OK;
    TRY(eval_game_open(&b->game, err));
    TRY(value_all(b, err));
    for (int scorer = 0; scorer < EVAL_UTILITIES; scorer++)
        TRY(find_truth(b, (eval_utility)scorer, err));
    if (p->flipped > 0)
        TRY(eval_flipped(&b->game, b->methods, b->count, b->areas, err));
    TRY(measure_all(b, err));
    TRY(draw_all(b, err));
    return write_result(b, err);
}

fds_status fds__bench_case(const char *dir, const fds__bench_data *data,
                           const fds__bench_params *params, const fds_events *events,
                           fds_error *err) {
    TRY(fds__bench_check(params, err));
    TRY(check_data(data, err));
    bench b = {.game = {.data = data, .params = params, .events = events, .train = data->train},
               .lock = {.fd = -1}};
    fds_status status = run(&b, dir, err);
    bench_free(&b);
    return status;
}
