/* SPDX-License-Identifier: Apache-2.0
 *
 * The value loss of each input, the terms of the paper's
 *
 *     H_eta(T) = 1/|T| sum over x in T of -ln softmax(f_D'(x))_y,
 *
 * where y is the true label of x, and D' are the players that remain without the share eta of them
 * that is most valuable for x. Also without the least valuable players, and with the most valuable
 * alone.
 *
 * Every share of every column of values is a coalition. All are put into one plan, share by share,
 * and the table is filled for the whole plan: equal coalitions, of this call or an earlier one, are
 * trained once, and all threads are busy until the end. Only the probability of the true label is
 * read, for one input where each input has its own column.
 */
#include "eval/eval.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
    fds_table *table;
    fds_removal removal;
    const double *values; /* (players, columns) */
    size_t players, inputs, columns;
    const uint32_t *labels; /* (inputs) */
    const double *shares;   /* (share_count) */
    size_t share_count;
} job;

/* ---- checks ---- */

static fds_status check(const job *j, fds_error *err) {
    uint32_t classes = fds__table_utility(j->table)->classes;
    if ((int)j->removal < FDS_REMOVAL_TOP || j->removal > FDS_REMOVAL_KEEP_TOP)
        return fds__fail(err, FDS_ERR_USAGE, "there is no removal number %d, only 0 to %d",
                         (int)j->removal, FDS_REMOVAL_KEEP_TOP);
    if (fds__table_store(j->table) != FDS_STORE_F32)
        return fds__fail(err, FDS_ERR_USAGE,
                         "the table keeps 16-bit floats, which have no numbers below 6e-8, so "
                         "losses above 16 would become equal; it must keep 32-bit floats");
    if (j->columns != 1 && j->columns != j->inputs)
        return fds__fail(
            err, FDS_ERR_SHAPE,
            "values have %zu columns, but the table has %zu inputs: there must be one column "
            "for all inputs, or one for each",
            j->columns, j->inputs);
    for (size_t k = 0; k < j->share_count; k++)
        if (!(j->shares[k] >= 0 && j->shares[k] <= 1))
            return fds__fail(err, FDS_ERR_USAGE,
                             "share %zu of the players must be from 0 to 1 (got %g)", k,
                             j->shares[k]);
    for (size_t i = 0; i < j->inputs; i++)
        if (j->labels[i] >= classes)
            return fds__fail(err, FDS_ERR_USAGE, "input %zu: label %u, but there are %u classes", i,
                             j->labels[i], classes);
    for (size_t i = 0; i < j->players * j->columns; i++)
        if (isnan(j->values[i]))
            return fds__fail(
                err, FDS_ERR_USAGE,
                "the value of player %zu in column %zu is not a number: players cannot be "
                "ranked by it",
                i / j->columns, i % j->columns);
    return FDS_OK;
}

/* ---- who remains ---- */

typedef struct {
    double value;
    uint32_t player;
} place;

/* The most valuable first; of equal values the player with the lower number. */
static int compare_places(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return (x->player > y->player) - (x->player < y->player);
}

static void sort_players(const job *j, size_t column, place *ranking) {
    for (size_t p = 0; p < j->players; p++)
        ranking[p] = (place){j->values[p * j->columns + column], (uint32_t)p};
    qsort(ranking, j->players, sizeof *ranking, compare_places);
}

/* Halves are rounded up, also those that the binary form of a share misses (0.29 of 50). */
size_t eval_whole_players(double share, size_t players) {
    return (size_t)floor(share * (double)players + 0.5 + 1e-9);
}

/* Adds to row the players of ranking that remain. */
static void keep(const job *j, const place *ranking, double share, uint64_t *row) {
    size_t count = eval_whole_players(share, j->players), first = 0, end = j->players;
    if (j->removal == FDS_REMOVAL_TOP)
        first = count;
    else
        end = j->removal == FDS_REMOVAL_KEEP_TOP ? count : j->players - count;
    for (size_t i = first; i < end; i++)
        fds__coalition_add(row, ranking[i].player);
}

/* Row k * columns + c: share k by column c. */
static fds_status make_plan(const job *j, fds_plan **out, fds_error *err) {
    size_t rows;
    if (!fds__mul(j->share_count, j->columns, &rows))
        return fds__fail(err, FDS_ERR_LIMIT, "%zu shares times %zu columns are too many",
                         j->share_count, j->columns);
    place *ranking = fds__alloc_zero(j->players, sizeof *ranking);
    if (!ranking)
        return fds__fail_nomem(err, j->players * sizeof *ranking);
    fds_status status = fds__plan_blank(j->players, rows, out, err);
    for (size_t c = 0; c < j->columns && status == FDS_OK; c++) {
        sort_players(j, c, ranking);
        for (size_t k = 0; k < j->share_count; k++)
            keep(j, ranking, j->shares[k], fds__plan_bits(*out, k * j->columns + c));
    }
    fds__free(ranking);
    return status;
}

/* ---- their losses ---- */

/* 0 - x: -x would give a loss of -0 for a probability of 1. */
static double loss_of(double probability) { return 0 - log(fmax(probability, (double)FLT_MIN)); }

static fds_status read_losses(const job *j, const fds_plan *plan, double *losses, fds_error *err) {
    size_t each = j->inputs / j->columns; /* inputs that a row is for */
    fds_table_view *view;
    TRY(fds_table_view_create(j->table, plan, j->labels, false, 1, &view, err));
    fds_rows rows = fds_table_view_rows(view);
    fds_status status = FDS_OK;
    for (size_t r = 0; r < fds_plan_rows(plan) && status == FDS_OK; r++) {
        double *out = losses + r * each;
        status = rows.read(rows.context, 0, r, r % j->columns, each, out, err);
        for (size_t i = 0; i < each && status == FDS_OK; i++)
            out[i] = loss_of(out[i]);
    }
    fds_table_view_free(view);
    return status;
}

/* ---- accuracy ---- */

static fds_status read_accuracy(const job *j, const fds_plan *plan, double *accuracy,
                                fds_error *err) {
    size_t classes = fds__table_utility(j->table)->classes;
    OWNED double *probs = NULL;
    fds_table_view *view;
    TRY(NEW(probs, j->inputs * classes, err));
    TRY(fds_table_view_create(j->table, plan, NULL, false, 1, &view, err));
    fds_rows rows = fds_table_view_rows(view);
    fds_status status = FDS_OK;
    for (size_t r = 0; r < fds_plan_rows(plan) && status == FDS_OK; r++) {
        size_t correct = 0;
        status = rows.read(rows.context, 0, r, 0, j->inputs * classes, probs, err);
        for (size_t i = 0; i < j->inputs; i++)
            correct += fds__argmax(probs + i * classes, (uint32_t)classes) == j->labels[i];
        accuracy[r] = (double)correct / (double)j->inputs;
    }
    fds_table_view_free(view);
    return status;
}

/* ---- both ---- */

typedef fds_status (*reader)(const job *j, const fds_plan *plan, double *out, fds_error *err);

/* Trains what the table lacks, and reads. trained: how many those were; or NULL. */
static fds_status measure(const job *j, unsigned threads, reader read, double *out, size_t *trained,
                          const fds_events *events, fds_error *err) {
    fds_plan *plan;
    TRY(check(j, err));
    TRY(make_plan(j, &plan, err));
    size_t before = fds__table_count(j->table);
    fds_status status = fds_table_fill(j->table, plan, threads, events, err);
    if (status == FDS_OK)
        status = read(j, plan, out, err);
    fds_plan_free(plan);
    if (status == FDS_OK && trained)
        *trained = fds__table_count(j->table) - before;
    return status;
}

static job make_job(fds_table *table, fds_removal removal, const double *values, size_t columns,
                    const uint32_t *labels, const double *shares, size_t share_count) {
    const fds_utility *of = fds__table_utility(table);
    return (job){.table = table,
                 .removal = removal,
                 .values = values,
                 .players = of->players,
                 .inputs = of->inputs,
                 .columns = columns,
                 .labels = labels,
                 .shares = shares,
                 .share_count = share_count};
}

fds_status fds_value_loss(fds_table *table, fds_removal removal, const double *values,
                          size_t columns, const uint32_t *labels, const double *shares,
                          size_t share_count, unsigned threads, double *losses, size_t *trained,
                          const fds_events *events, fds_error *err) {
    const job j = make_job(table, removal, values, columns, labels, shares, share_count);
    return measure(&j, threads, read_losses, losses, trained, events, err);
}

fds_status eval_removal_accuracy(fds_table *table, fds_removal removal, const double *values,
                                 const uint32_t *labels, const double *shares, size_t share_count,
                                 unsigned threads, double *accuracy, const fds_events *events,
                                 fds_error *err) {
    const job j = make_job(table, removal, values, 1, labels, shares, share_count);
    return measure(&j, threads, read_accuracy, accuracy, NULL, events, err);
}
