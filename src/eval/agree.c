/* SPDX-License-Identifier: Apache-2.0
 *
 * How near values come to those that are taken for the truth, and how well they find players that
 * were marked.
 *
 *   correlation     Pearson's, over the players, of each column; then the mean over the columns. It
 *                   is not defined, and a column is left out, where there are fewer than three
 *                   players, or where values or truth are all alike (see fds__correlation).
 *   within          the same over the players whose label is the column's: who of the right class
 *                   matters. A method that knows the classes alone gets nothing here.
 *   relative_error  sqrt(sum (values - truth)^2 / sum truth^2), over all players and columns, added
 *                   up player by player.
 *   area            of the ROC curve by which players of the lowest values are called marked:
 *                   P(marked < other) + P(marked = other) / 2 over all pairs, counted.
 */
#include "eval/eval.h"

#include <math.h>

/* ---- agreement ---- */

/* A mean over those that are numbers. */
typedef struct {
    double sum;
    size_t count;
} mean;

static void mean_add(mean *m, double value) {
    if (!isnan(value)) {
        m->sum += value;
        m->count++;
    }
}

static double mean_get(const mean *m) { return m->count ? m->sum / (double)m->count : NAN; }

/* Values by column, and what is compared of one. */
typedef struct {
    const double *values, *truth; /* (players, columns), (players, truth_columns) */
    size_t players, columns, truth_columns;
    double *a, *b; /* (players) */
    bool *same;    /* (players): the player's label is the column's */
} comparison;

static void take_column(const comparison *c, size_t column, const uint32_t *player_labels,
                        uint32_t label) {
    for (size_t p = 0; p < c->players; p++) {
        c->a[p] = c->values[p * c->columns + (c->columns == 1 ? 0 : column)];
        c->b[p] = c->truth[p * c->truth_columns + column];
        c->same[p] = player_labels[p] == label;
    }
}

static double relative_error(const comparison *c) {
    double wrong = 0, all = 0;
    for (size_t i = 0; i < c->players * c->truth_columns; i++) {
        double difference = c->values[i] - c->truth[i];
        wrong += difference * difference;
        all += c->truth[i] * c->truth[i];
    }
    return all > 0 ? sqrt(wrong / all) : NAN;
}

static fds_status check_finite(const char *what, const double *values, size_t players,
                               size_t columns, fds_error *err) {
    for (size_t i = 0; i < players * columns; i++)
        if (!isfinite(values[i]))
            return fds__fail(err, FDS_ERR_USAGE,
                             "the %s of player %zu in column %zu is infinite or no number", what,
                             i / columns, i % columns);
    return FDS_OK;
}

static fds_status check(const comparison *c, fds_error *err) {
    if (!c->players || !c->truth_columns)
        return fds__fail(err, FDS_ERR_USAGE,
                         "there is nothing to compare: %zu players, %zu columns", c->players,
                         c->truth_columns);
    if (c->columns != 1 && c->columns != c->truth_columns)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "values of %zu columns against a truth of %zu: there must be as many, or "
                         "one for all of them",
                         c->columns, c->truth_columns);
    TRY(check_finite("value", c->values, c->players, c->columns, err));
    return check_finite("true value", c->truth, c->players, c->truth_columns, err);
}

fds_status fds_agree(const double *values, size_t columns, const double *truth,
                     size_t truth_columns, size_t players, const uint32_t *player_labels,
                     const uint32_t *labels, fds_agreement *out, fds_error *err) {
    comparison c = {.values = values,
                    .truth = truth,
                    .players = players,
                    .columns = columns,
                    .truth_columns = truth_columns};
    TRY(check(&c, err));
    c.a = fds__alloc_zero(players, 2 * sizeof *c.a);
    c.same = fds__alloc_zero(players, sizeof *c.same);
    if (!c.a || !c.same) {
        fds__free(c.a);
        fds__free(c.same);
        return fds__fail_nomem(err, players * 2 * sizeof *c.a);
    }
    c.b = c.a + players;
    mean all = {0}, within = {0};
    for (size_t column = 0; column < truth_columns; column++) {
        take_column(&c, column, player_labels, labels[column]);
        mean_add(&all, fds__correlation(c.a, c.b, NULL, players));
        mean_add(&within, fds__correlation(c.a, c.b, c.same, players));
    }
    *out = (fds_agreement){.correlation = mean_get(&all),
                           .within = mean_get(&within),
                           .relative_error = columns == truth_columns ? relative_error(&c) : NAN};
    fds__free(c.a);
    fds__free(c.same);
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
