/* SPDX-License-Identifier: Apache-2.0
 *
 * How close values come to those that are taken for the truth, and how well they find marked
 * players.
 *
 *   correlation     Pearson's, over the players, of each column; then the mean over the columns. A
 *                   column with fewer than three players, or with equal values or truth for all, has
 *                   no correlation (see fds__correlation) and is left out.
 *   within          the same over the players whose label is the column's: who of the right class
 *                   matters. A method that knows only the classes gets nothing here.
 *   relative_error  sqrt(sum (values - truth)^2 / sum truth^2), over all players and columns, added
 *                   up player by player.
 *   area            under the ROC curve of the rule that players with the lowest values are marked:
 *                   P(marked < other) + P(marked = other) / 2 over all pairs, counted.
 */
#include "eval/eval.h"

#include <math.h>

/* ---- agreement ---- */

static double relative_error(const double *values, const double *truth, size_t count) {
    double wrong = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = values[i] - truth[i];
        wrong += difference * difference;
        all += truth[i] * truth[i];
    }
    return all > 0 ? sqrt(wrong / all) : NAN;
}

static fds_status check_finite(const char *what, const double *values, size_t players,
                               size_t columns, fds_error *err) {
    for (size_t i = 0; i < players * columns; i++)
        if (!isfinite(values[i]))
            return fds__fail(err, FDS_ERR_USAGE,
                             "the %s of player %zu in column %zu is infinite or not a number", what,
                             i / columns, i % columns);
    return FDS_OK;
}

fds_status fds_agree(const double *values, size_t columns, const double *truth,
                     size_t truth_columns, size_t players, const uint32_t *player_labels,
                     const uint32_t *labels, fds_agreement *out, fds_error *err) {
    if (!players || !truth_columns)
        return fds__fail(err, FDS_ERR_USAGE,
                         "there is nothing to compare: %zu players, %zu columns", players,
                         truth_columns);
    if (columns != 1 && columns != truth_columns)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "values have %zu columns and the truth has %zu: values must have as many, "
                         "or one for all of them",
                         columns, truth_columns);
    TRY(check_finite("value", values, players, columns, err));
    TRY(check_finite("true value", truth, players, truth_columns, err));
    double *a = fds__alloc_zero(players, sizeof *a), *b = fds__alloc_zero(players, sizeof *b);
    bool *is_same = fds__alloc_zero(players, sizeof *is_same); /* the label is the column's */
    double sums[2] = {0}, counts[2] = {0}; /* of all players, of the same label */
    bool is_whole = a && b && is_same;
    for (size_t c = 0; is_whole && c < truth_columns; c++) {
        for (size_t p = 0; p < players; p++) {
            a[p] = values[p * columns + (columns == 1 ? 0 : c)];
            b[p] = truth[p * truth_columns + c];
            is_same[p] = player_labels[p] == labels[c];
        }
        for (int k = 0; k < 2; k++) {
            double correlation = fds__correlation(a, b, k ? is_same : NULL, players);
            sums[k] += isnan(correlation) ? 0 : correlation;
            counts[k] += !isnan(correlation);
        }
    }
    fds__free(a);
    fds__free(b);
    fds__free(is_same);
    if (!is_whole)
        return fds__fail_nomem(err, players * 2 * sizeof *a);
    *out = (fds_agreement){.correlation = sums[0] / counts[0], /* 0 / 0 without any: NaN */
                           .within = sums[1] / counts[1],
                           .relative_error = columns == truth_columns
                                                 ? relative_error(values, truth, players * columns)
                                                 : NAN};
    return FDS_OK;
}

/* ---- marked players ---- */

double fds_ranking_area(const double *values, const bool *is_marked, size_t players) {
    uint64_t halves = 0, pairs = 0;
    for (size_t m = 0; m < players; m++) {
        if (isnan(values[m]))
            return NAN;
        for (size_t o = 0; is_marked[m] && o < players; o++) {
            if (is_marked[o])
                continue;
            halves += values[m] < values[o] ? 2 : values[m] == values[o];
            pairs++;
        }
    }
    return pairs ? (double)halves / (2 * (double)pairs) : NAN;
}
