/* SPDX-License-Identifier: Apache-2.0
 *
 * One data set with one seed: every method's values for the same test samples, their value losses
 * by retraining without the most valuable players, how close they come to the truth, and whether
 * they find wrong labels.
 *
 * Every step finds in the folder what earlier processes have left there: sub-models in tables, fits
 * in their runs, costs in METHOD.json. Everything else is computed again, and is a function of the
 * data and the settings. case.json is written last: a case that has one is finished, unless it is
 * damaged.
 *
 * Which models evaluate which rows:
 *
 *   retrain:10   every row; bottom and keep_top too, unless top_only is set
 *   retrain      if fds is among the methods: fds, the baselines and the controls
 *
 * Values per sample are those for the label that these models predict.
 *
 * The truth is the mean of two least-squares solutions on independently sampled coalitions; their
 * agreement tells how far it can be trusted.
 */
#include "eval/eval.h"

#include <math.h>

#define RESULT "case.json"

typedef struct {
    eval_game game;
    eval_lists lists;
    fds__file lock;
    eval_row rows[EVAL_MOST];
    size_t count;
    eval_truth truth[EVAL_UTILITIES];
    eval_halves halves[EVAL_UTILITIES];
    json_t *utilities, *json_rows, *pictures;
} job;

static void job_free(job *j) {
    eval_game_free(&j->game);
    for (size_t i = 0; i < j->count; i++) {
        fds__free(j->rows[i].values);
        json_decref(j->rows[i].precision);
        json_decref(j->rows[i].recall);
    }
    for (int u = 0; u < EVAL_UTILITIES; u++) {
        fds__free(j->truth[u].values);
        eval_halves_free(&j->halves[u]);
    }
    json_decref(j->utilities);
    json_decref(j->json_rows);
    json_decref(j->pictures);
    fds__file_close(&j->lock);
}

/* ---- before any work ---- */

/* Whether a method can value these players. */
static fds_status check_method(const eval_method *m, const eval_game *g, fds_error *err) {
    const fds_players *players = g->problem->players;
    fds_params params;
    fds_error why;
    const uint32_t *index;
    uint32_t k;
    double threshold;
    if (eval_lacks_groups(g, m))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "method \"%s\": all players have the same label, and it compares groups of "
            "players by label; leave it out",
            m->name);
    if (m->is_outside || fds__baseline_default(m->base, &params, &why) != FDS_OK)
        return FDS_OK; /* ours, or already computed */
    if (m->is_per_sample)
        params.scorer = FDS__SCORER_EACH_SAMPLE;
    TRY(fds__baseline_check(&params, g->players, err));
    bool is_by_formula = baseline_read_knn(m->base, &k) || fds__tknn_read(m->base, &threshold);
    for (size_t p = 0; is_by_formula && p < g->players; p++)
        if (fds_players_samples(players, p, &index) != 1)
            return fds__fail(err, FDS_ERR_USAGE,
                             "method \"%s\": player \"%s\" has %zu samples, and its values are "
                             "known only where each player has one; leave it out",
                             m->name, fds_players_name(players, p),
                             fds_players_samples(players, p, &index));
    return FDS_OK;
}

/* Reads the file once, before any work, and learns from it which values there are. */
static fds_status check_outside(const eval_game *g, eval_method *m, fds_error *err) {
    OWNED double *values = NULL;
    uint64_t unused;
    return eval_outside_read(g, m, &values, &m->is_per_sample, &unused, err);
}

/* A row for each method; of the default methods, for those that can value these players. */
static fds_status choose_rows(job *j, fds_error *err) {
    const eval_game *g = &j->game;
    const fds_dataset *train = g->problem->train;
    for (size_t i = 0; i < j->lists.method_count; i++) {
        eval_method *m = &j->lists.methods[i];
        fds_error why;
        if (m->is_outside)
            TRY(check_outside(g, m, err));
        fds_status status = check_method(m, g, &why);
        if (status != FDS_OK && g->params.methods)
            return fds__fail(err, status, "%s", why.text);
        if (status != FDS_OK)
            continue;
        j->rows[j->count++] = (eval_row){.method = m};
        if ((m->is_fit || strcmp(m->base, "bank") == 0) && !g->problem->input_count)
            return fds__fail(err, FDS_ERR_USAGE, "the explainers need inputs to learn from");
    }
    if (g->params.flipped > 0 && train->classes < 2)
        return fds__fail(err, FDS_ERR_USAGE, "%s has one class: no label can be wrong",
                         train->source);
    return FDS_OK;
}

/* ---- values ---- */

static fds_status value_row(const job *j, eval_row *row, size_t number, fds_error *err) {
    const eval_game *g = &j->game;
    const eval_method *m = row->method;
    size_t size = g->players * eval_columns(g, m);
    eval_tell(g, "%s (%zu of %zu)", m->name, number, j->count);
    row->values = fds__alloc_zero(size, sizeof *row->values);
    if (!row->values)
        return fds__fail_nomem(err, size * sizeof *row->values);
    return eval_answers(g, m, g->sides[eval_own_utility(m)].predicted, row->values, &row->cost,
                        err);
}

/* ls last: baselines would find many of its sub-models, and seem to need less time. */
static fds_status value_all(job *j, fds_error *err) {
    size_t number = 0;
    for (int is_last = 0; is_last < 2; is_last++)
        for (size_t i = 0; i < j->count; i++)
            if ((strcmp(j->rows[i].method->base, "ls") == 0) == is_last)
                TRY(value_row(j, &j->rows[i], ++number, err));
    return FDS_OK;
}

/* The mean of two solutions on half of the coalitions each. again: scratch for the second one. */
static fds_status solve_truth(const eval_game *g, eval_utility utility, eval_truth *truth,
                              double *again, fds_error *err) {
    const uint32_t *labels = g->sides[utility].predicted;
    size_t half = eval_truth_half(g);
    fds_agreement agreement;
    TRY(eval_least_squares(g, utility, EVAL_DRAW_TRUTH, half, labels, truth->values, NULL, err));
    TRY(eval_least_squares(g, utility, EVAL_DRAW_TRUTH_AGAIN, half, labels, again, NULL, err));
    TRY(fds_agree(again, g->tests, truth->values, g->tests, g->players, g->problem->player_labels,
                  labels, &agreement, err));
    for (size_t i = 0; i < g->players * g->tests; i++)
        truth->values[i] = (truth->values[i] + again[i]) / 2;
    truth->coalitions = 2 * eval_drawn(g, half);
    truth->correlation = agreement.correlation;
    return FDS_OK;
}

/* The truth of a utility function that is some row's own. */
static fds_status find_truth(job *j, eval_utility utility, fds_error *err) {
    const eval_game *g = &j->game;
    eval_truth *truth = &j->truth[utility];
    size_t size = g->players * g->tests;
    bool is_wanted = false;
    for (size_t i = 0; i < j->count; i++)
        is_wanted |= eval_own_utility(j->rows[i].method) == utility;
    if (!is_wanted || !g->params.truth)
        return FDS_OK;
    eval_tell(g, "the truth by %s, %zu coalitions", eval_utility_name(utility),
              (size_t)g->params.truth);
    double *again = fds__alloc_zero(size, sizeof *again);
    truth->values = fds__alloc_zero(size, sizeof *truth->values);
    fds_status status = again && truth->values ? solve_truth(g, utility, truth, again, err)
                                               : fds__fail_nomem(err, size * sizeof *again);
    fds__free(again);
    return status;
}

/* ---- measures ---- */

/* The half coalitions of each utility function. */
static fds_status make_halves(job *j, fds_error *err) {
    const eval_game *g = &j->game;
    for (int u = 0; u < EVAL_UTILITIES && g->params.lds; u++) {
        if (!g->sides[u].utility)
            continue;
        eval_tell(g, "half coalitions by %s", eval_utility_name((eval_utility)u));
        TRY(eval_halves_make(g, (eval_utility)u, &j->halves[u], err));
    }
    return FDS_OK;
}

/* What is measured of a row by each utility function: lists of JSON. */
typedef struct {
    json_t *losses, *losses_other_seed, *lds, *lds_other_seeds, *curves;
} measured;

/* The row's values are overwritten where the utility function is not its own. */
static fds_status measure_by(const job *j, const eval_row *row, eval_utility utility,
                             const measured *to, fds_error *err) {
    const eval_game *g = &j->game;
    const eval_method *m = row->method;
    bool is_top_only = utility == EVAL_UTILITY_CONVERGED || g->params.top_only;
    if (m->is_per_sample && utility != eval_own_utility(m))
        TRY(eval_answers(g, m, g->sides[utility].predicted, row->values, NULL, err));
    for (int removal = FDS_REMOVAL_TOP;
         removal <= (is_top_only ? FDS_REMOVAL_TOP : FDS_REMOVAL_KEEP_TOP); removal++)
        TRY(eval_measure_losses(g, utility, EVAL_MODELS_OWN, (fds_removal)removal, row->values,
                                eval_columns(g, m), to->losses, err));
    if (g->params.loss_seeds)
        TRY(eval_measure_losses(g, utility, EVAL_MODELS_OTHER, FDS_REMOVAL_TOP, row->values,
                                eval_columns(g, m), to->losses_other_seed, err));
    return eval_measure_lds(g, utility, &j->halves[utility], row->values, eval_columns(g, m),
                            to->lds, to->lds_other_seeds, err);
}

/* Over the seeds that have one. */
static json_t *describe_areas(const eval_row *row, json_t **terms) {
    report_stat parts[EVAL_FLIPS];
    for (size_t k = 0; k < row->area_count; k++)
        parts[k] = (report_stat){1, row->areas[k], NAN, NAN};
    const report_stat all = report_pool(parts, row->area_count);
    *terms = json_null();
    if (isnan(all.mean))
        return json_null();
    *terms = json_pack("{s:b, s:I}", "is_equal", row->is_equal, "sub_models",
                       (json_int_t)row->area_models);
    return json_pack("{s:I, s:f, s:o, s:o}", "count", (json_int_t)all.count, "mean", all.mean, "sd",
                     fds__json_real(all.sd), "samples",
                     report_numbers(row->areas, row->area_count));
}

/* Takes over what was measured. */
static json_t *describe_row(const eval_row *row, const measured *of, json_t *agreement) {
    const eval_method *m = row->method;
    const eval_cost *cost = &row->cost;
    json_t *timing =
        json_pack("{s:o, s:o, s:b}", "prepare_s", fds__json_real(cost->prepare_s), "answer_ms",
                  fds__json_real(cost->answer_ms), "was_resumed", cost->was_resumed);
    json_t *permutations = json_null(), *terms, *areas = describe_areas(row, &terms);
    if (cost->permutations)
        permutations =
            json_pack("{s:I, s:o}", "sampled", (json_int_t)cost->permutations, "has_converged",
                      cost->has_rule ? json_boolean(cost->has_converged) : json_null());
    return json_pack(
        "{s:s, s:s, s:s, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}",
        "method", m->name, "title", m->title, "kind", report_kind_name(m->kind), "is_per_sample",
        m->is_per_sample, "utility", eval_utility_name(eval_own_utility(m)), "losses", of->losses,
        "losses_other_seed", of->losses_other_seed, "lds", of->lds, "lds_other_seeds",
        of->lds_other_seeds, "curves", of->curves, "agreement", agreement, "auc", areas,
        "auc_terms", terms, "sub_models", (json_int_t)cost->sub_models, "permutations",
        permutations, "timing", timing);
}

static fds_status measure_row(const job *j, const eval_row *row, fds_error *err) {
    const eval_method *m = row->method;
    eval_utility own = eval_own_utility(m), other = (eval_utility)!own;
    bool is_by_both = j->game.sides[other].utility &&
                      (m->is_converged || (m->kind != REPORT_OURS && m->kind != REPORT_BEYOND));
    const measured to = {json_array(), json_array(), json_array(), json_array(), json_array()};
    json_t *agreement = NULL;
    fds_status status =
        eval_measure_agreement(&j->game, m, row->values, j->truth[own].values, &agreement, err);
    if (status == FDS_OK)
        status = measure_by(j, row, own, &to, err);
    if (status == FDS_OK && is_by_both)
        status = measure_by(j, row, other, &to, err);
    if (status == FDS_OK)
        status = eval_measure_curves(&j->game, row, to.curves, err);
    json_t *json = describe_row(row, &to, agreement);
    if (status != FDS_OK) {
        json_decref(json);
        return status;
    }
    return fds__json_append(j->json_rows, json) ? FDS_OK : fds__fail_json(err);
}

static fds_status measure_all(job *j, fds_error *err) {
    j->utilities = json_array();
    j->json_rows = json_array();
    for (int u = 0; u < EVAL_UTILITIES; u++)
        if (j->game.sides[u].utility)
            TRY(eval_measure_utility(&j->game, (eval_utility)u, &j->truth[u], &j->halves[u],
                                     j->utilities, err));
    for (size_t i = 0; i < j->count; i++) {
        eval_tell(&j->game, "removals by %s (%zu of %zu)", j->rows[i].method->name, i + 1,
                  j->count);
        TRY(measure_row(j, &j->rows[i], err));
    }
    return FDS_OK;
}

/* For the methods that the paper draws. */
static fds_status draw_all(job *j, fds_error *err) {
    j->pictures = json_array();
    for (size_t i = 0; j->game.problem->train->is_image && i < j->count; i++) {
        const char *method = j->rows[i].method->name;
        char file[64];
        if (strcmp(method, "afds") != 0 && strcmp(method, "gfds") != 0)
            continue;
        snprintf(file, sizeof file, "%s.png", method);
        TRY(eval_picture(&j->game, method, file, err));
        if (!fds__json_append(j->pictures, json_pack("{s:s, s:s}", "method", method, "file", file)))
            return fds__fail_json(err);
    }
    return FDS_OK;
}

/* ---- the result ---- */

static fds_status write_result(const job *j, fds_error *err) {
    bool is_mixed = false;
    for (size_t i = 0; i < j->count; i++)
        is_mixed |= j->rows[i].cost.is_elsewhere;
    json_t *json =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:O, s:O, s:O}", "fds", FDS_VERSION, "kind",
                  "fds bench case", "machine", eval_describe_machine(&j->game, is_mixed), "data",
                  eval_describe_data(&j->game), "settings", eval_describe_settings(&j->game),
                  "utilities", j->utilities, "rows", j->json_rows, "pictures", j->pictures);
    fds_status status = fds__json_write(j->game.dir, RESULT, json, err);
    json_decref(json);
    return status;
}

/* A result that is damaged, or of a version with other members, does not count: what it was made
 * from is still there. */
static fds_status find_result(const job *j, bool *is_there, fds_error *err) {
    char path[FDS__PATH_MAX];
    json_t *json = NULL;
    fds_error why;
    *is_there = false;
    TRY(fds__path_join(path, sizeof path, j->game.dir, RESULT, err));
    if (!fds__path_exists(path))
        return FDS_OK;
    fds_status status = report_case_read(path, &json, &why);
    json_decref(json);
    *is_there = status == FDS_OK;
    if (status == FDS_ERR_NOMEM)
        return fds__fail(err, status, "%s", why.text);
    if (status != FDS_OK)
        fds__log(j->game.events, FDS_LOG_WARNING, "%s; the case is measured again", why.text);
    return FDS_OK;
}

static fds_status run(job *j, fds_error *err) {
    eval_game *g = &j->game;
    bool is_finished;
    TRY(eval_lists_read(&g->params, &j->lists, err));
    if (fds_problem_players(g->problem) < 2)
        return fds__fail(err, FDS_ERR_USAGE, "there is only one player, and nothing to compare");
    TRY(eval_game_make(g, eval_has_method(&j->lists, "fds"), err));
    TRY(choose_rows(j, err));
    TRY(eval_folder_lock(g->dir, &j->lock, err));
    TRY(eval_folder_settle(g, err));
    TRY(find_result(j, &is_finished, err));
    if (is_finished)
        return FDS_OK;
    TRY(eval_game_open(g, err));
    TRY(value_all(j, err));
    for (int u = 0; u < EVAL_UTILITIES; u++)
        TRY(find_truth(j, (eval_utility)u, err));
    if (g->params.flipped > 0)
        TRY(eval_flipped(g, j->rows, j->count, err));
    TRY(make_halves(j, err));
    TRY(measure_all(j, err));
    TRY(draw_all(j, err));
    return write_result(j, err);
}

fds_status eval_case(const char *dir, const char *name, const fds_problem *problem,
                     const fds_params *params, const fds_events *events, fds_error *err) {
    job j = {.game = {.name = name, .problem = problem, .params = *params, .events = events},
             .lock = {.fd = -1}};
    j.game.lists = &j.lists;
    snprintf(j.game.dir, sizeof j.game.dir, "%s", dir);
    fds_status status = run(&j, err);
    job_free(&j);
    return status;
}
