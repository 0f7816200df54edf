/* SPDX-License-Identifier: Apache-2.0
 *
 * The value loss of each input, the terms of the paper's
 *
 *     H_eta(T) = 1/|T| sum over x in T of -ln softmax(f_D'(x))_y,
 *
 * where y is the true label of x, and D' are the players that remain when the share eta of them
 * that is most valuable for x is taken away. Also with the least valuable taken away, and with the
 * most valuable alone.
 *
 * Every share of every column of values is a coalition. All are put into one plan, share by share,
 * and the table is filled for it at once: equal coalitions, of one call or of another before it,
 * are trained once, and all threads are busy until the end. Of each answer only what is asked for
 * is read: the true label's probability, of one input where each has values of its own.
 */
#include "eval/eval.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
    fds_table *table;
    fds_removal way;
    const double *values; /* (players, columns) */
    size_t players, inputs, columns;
    const uint32_t *labels; /* (inputs) */
    const double *shares;   /* (share_count) */
    size_t share_count;
} question;

/* ---- mistakes ---- */

static fds_status check_numbers(const question *q, fds_error *err) {
    uint32_t classes = fds__table_utility(q->table)->classes;
    for (size_t k = 0; k < q->share_count; k++)
        if (!(q->shares[k] >= 0 && q->shares[k] <= 1))
            return fds__fail(err, FDS_ERR_USAGE,
                             "share %zu of the players is %g, but must be 0 to 1", k, q->shares[k]);
    for (size_t i = 0; i < q->inputs; i++)
        if (q->labels[i] >= classes)
            return fds__fail(err, FDS_ERR_USAGE, "input %zu: label %u, there are %u classes", i,
                             q->labels[i], classes);
    for (size_t i = 0; i < q->players * q->columns; i++)
        if (isnan(q->values[i]))
            return fds__fail(
                err, FDS_ERR_USAGE,
                "the value of player %zu in column %zu is no number: players cannot be "
                "put in order by it",
                i / q->columns, i % q->columns);
    return FDS_OK;
}

static fds_status check(const question *q, fds_error *err) {
    if ((int)q->way < FDS_REMOVAL_TOP || q->way > FDS_REMOVAL_KEEP_TOP)
        return fds__fail(err, FDS_ERR_USAGE,
                         "there is no way number %d to remove players, only 0 to %d", (int)q->way,
                         FDS_REMOVAL_KEEP_TOP);
    if (fds__table_store(q->table) != FDS_STORE_F32)
        return fds__fail(err, FDS_ERR_USAGE,
                         "the table keeps 16-bit floats, which have no numbers below 6e-8: a loss "
                         "above 16 could not be told from others; it must keep 32-bit ones");
    if (q->columns != 1 && q->columns != q->inputs)
        return fds__fail(
            err, FDS_ERR_SHAPE,
            "values of %zu columns for a table of %zu inputs: there must be one column "
            "for all inputs, or one for each",
            q->columns, q->inputs);
    return check_numbers(q, err);
}

/* ---- who remains ---- */

typedef struct {
    double value;
    uint32_t player;
} place;

/* The most valuable first, of equal ones the lowest number. */
static int compare_places(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return (x->player > y->player) - (x->player < y->player);
}

static void sort_players(const question *q, size_t column, place *order) {
    for (size_t p = 0; p < q->players; p++)
        order[p] = (place){q->values[p * q->columns + column], (uint32_t)p};
    qsort(order, q->players, sizeof *order, compare_places);
}

/* Halves are rounded up; what is a half but for the binary form of a share (0.29 of 50) is one. */
static size_t whole_players(double share, size_t players) {
    return (size_t)floor(share * (double)players + 0.5 + 1e-9);
}

/* row receives the players that a share leaves of order. */
static void keep(const question *q, const place *order, double share, uint64_t *row) {
    size_t count = whole_players(share, q->players), first = 0, end = q->players;
    if (q->way == FDS_REMOVAL_TOP)
        first = count;
    else
        end = q->way == FDS_REMOVAL_KEEP_TOP ? count : q->players - count;
    for (size_t i = first; i < end; i++)
        fds__coalition_add(row, order[i].player);
}

/* Row k * columns + c: share k by column c. */
static fds_status make_plan(const question *q, fds_plan **out, fds_error *err) {
    size_t rows;
    if (!fds__mul(q->share_count, q->columns, &rows))
        return fds__fail(err, FDS_ERR_LIMIT, "%zu shares by %zu columns are too many",
                         q->share_count, q->columns);
    place *order = fds__alloc_zero(q->players, sizeof *order);
    if (!order)
        return fds__fail_nomem(err, q->players * sizeof *order);
    fds_status status = fds__plan_blank(q->players, rows, out, err);
    for (size_t c = 0; c < q->columns && status == FDS_OK; c++) {
        sort_players(q, c, order);
        for (size_t k = 0; k < q->share_count; k++)
            keep(q, order, q->shares[k], fds__plan_bits(*out, k * q->columns + c));
    }
    fds__free(order);
    return status;
}

/* ---- their losses ---- */

/* 0 - x: not -x, which makes a loss of -0 of certainty. */
static double loss_of(double probability) { return 0 - log(fmax(probability, (double)FLT_MIN)); }

static fds_status read_losses(const question *q, const fds_plan *plan, double *losses,
                              fds_error *err) {
    size_t each = q->inputs / q->columns; /* inputs that a row is for */
    fds_table_view *view;
    TRY(fds_table_view_create(q->table, plan, q->labels, false, 1, &view, err));
    fds_rows rows = fds_table_view_rows(view);
    fds_status status = FDS_OK;
    for (size_t r = 0; r < fds_plan_rows(plan) && status == FDS_OK; r++) {
        double *out = losses + r * each;
        status = rows.read(rows.context, 0, r, r % q->columns, each, out, err);
        for (size_t i = 0; i < each && status == FDS_OK; i++)
            out[i] = loss_of(out[i]);
    }
    fds_table_view_free(view);
    return status;
}

fds_status fds_value_loss(fds_table *table, fds_removal way, const double *values, size_t columns,
                          const uint32_t *labels, const double *shares, size_t share_count,
                          unsigned threads, double *losses, size_t *trained,
                          const fds_events *events, fds_error *err) {
    const fds_utility *of = fds__table_utility(table);
    const question q = {.table = table,
                        .way = way,
                        .values = values,
                        .players = of->players,
                        .inputs = of->inputs,
                        .columns = columns,
                        .labels = labels,
                        .shares = shares,
                        .share_count = share_count};
    fds_plan *plan;
    TRY(check(&q, err));
    TRY(make_plan(&q, &plan, err));
    size_t before = fds__table_count(table);
    fds_status status = fds_table_fill(table, plan, threads, events, err);
    if (status == FDS_OK)
        status = read_losses(&q, plan, losses, err);
    fds_plan_free(plan);
    if (status == FDS_OK && trained)
        *trained = fds__table_count(table) - before;
    return status;
}
