/* SPDX-License-Identifier: Apache-2.0
 *
 * Curves in the form of pyDVL and OpenDataVal, for one value per player: of methods with values for
 * each test sample, the mean over the test samples for their true labels.
 *
 *   accuracy           of the model (10 epochs) that is trained without the share of players with
 *                      the highest values (removal "top") or the lowest ("bottom"), on the test
 *                      samples
 *   precision, recall  of wrong labels, when the share of players with the lowest values is
 *                      inspected: found / inspected, found / all wrong ones; for each flip of labels
 *
 * Shares are those of `remove`, rounded to whole players as in removal.c; at least one player is
 * inspected. */
#include "eval/eval.h"

#include <math.h>

fds_status eval_global_values(const eval_game *g, const eval_method *m, eval_cost *cost,
                              double *values, fds_error *err) {
    size_t columns = eval_columns(g, m);
    TRY(eval_answers(g, m, g->problem->test_labels, values, cost, err));
    for (size_t i = 0; i < g->players; i++) {
        double sum = 0;
        for (size_t c = 0; c < columns; c++)
            sum += values[i * columns + c];
        values[i] = sum / (double)columns; /* in place: row i is not before i */
    }
    return FDS_OK;
}

/* A curve: the samples of each share, a list of lists. */
static json_t *describe(const char *measure, const char *removal, json_t *samples) {
    return json_pack("{s:s, s:s, s:o}", "measure", measure, "removal", removal, "samples", samples);
}

static fds_status add_accuracy(const eval_game *g, const double *values, fds_removal removal,
                               json_t *list, fds_error *err) {
    double accuracy[EVAL_MOST];
    const eval_lists *l = g->lists;
    json_t *samples = json_array();
    fds_status status = eval_removal_accuracy(
        g->sides[EVAL_UTILITY_EPOCHS].table, removal, values, g->problem->test_labels, l->shares,
        l->share_count, (unsigned)g->params.threads, accuracy, g->events, err);
    bool is_whole = samples != NULL;
    for (size_t k = 0; status == FDS_OK && k < l->share_count; k++)
        is_whole &= fds__json_append(samples, report_numbers(&accuracy[k], 1));
    json_t *entry = describe("accuracy", removal == FDS_REMOVAL_TOP ? "top" : "bottom", samples);
    if (status != FDS_OK || !is_whole) {
        json_decref(entry);
        return status != FDS_OK ? status : fds__fail_json(err);
    }
    return fds__json_append(list, entry) ? FDS_OK : fds__fail_json(err);
}

fds_status eval_measure_curves(const eval_game *g, const eval_row *row, json_t *list,
                               fds_error *err) {
    OWNED double *values = NULL;
    TRY(NEW(values, g->players * eval_columns(g, row->method), err));
    TRY(eval_global_values(g, row->method, NULL, values, err));
    TRY(add_accuracy(g, values, FDS_REMOVAL_TOP, list, err));
    TRY(add_accuracy(g, values, FDS_REMOVAL_BOTTOM, list, err));
    if (!row->precision)
        return FDS_OK;
    bool is_whole =
        fds__json_append(list, describe("precision", "", json_incref(row->precision))) &&
        fds__json_append(list, describe("recall", "", json_incref(row->recall)));
    return is_whole ? FDS_OK : fds__fail_json(err);
}

/* Adds a number to item k of a list of lists, which it makes. */
static bool add_number(json_t **list, size_t k, double number) {
    if (!*list && !(*list = json_array()))
        return false;
    if (json_array_size(*list) <= k && !fds__json_append(*list, json_array()))
        return false;
    return fds__json_append(json_array_get(*list, k), fds__json_real(number));
}

fds_status eval_measure_detection(const eval_game *g, const double *values, const bool *is_flipped,
                                  eval_row *row, fds_error *err) {
    OWNED size_t *order = NULL;
    size_t wrong = 0;
    TRY(NEW(order, g->players, err));
    TRY(fds__rank(values, g->players, order, err)); /* the highest first */
    for (size_t i = 0; i < g->players; i++)
        wrong += is_flipped[i];
    for (size_t k = 0; k < g->lists->share_count; k++) {
        size_t found = 0,
               looked = MAX(eval_whole_players(g->lists->shares[k], g->players), (size_t)1);
        for (size_t i = 0; i < looked; i++)
            found += is_flipped[order[g->players - 1 - i]];
        if (!add_number(&row->precision, k, (double)found / (double)looked) ||
            !add_number(&row->recall, k, (double)found / (double)wrong))
            return fds__fail_json(err);
    }
    return FDS_OK;
}
