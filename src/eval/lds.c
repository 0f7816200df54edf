/* SPDX-License-Identifier: Apache-2.0
 *
 * The linear datamodeling score (Park et al., TRAK, 2023): do values predict what a model trained
 * on other data answers?
 *
 *     LDS(x) = Spearman's correlation over coalitions S of  sum of phi_i(x), i in S   and   v_x(S),
 *
 * where v_x(S) is the probability that the model trained on S gives to the label that the model of
 * all players predicts for x. S are random coalitions of about half of the players, which no method
 * has learnt from: floor(n / 2) of them, and up to n / 50 more or less.
 *
 * Two forms, because they answer different questions:
 *
 *   own     v_x(S) by this seed's models: does the value predict this game, whose models all start
 *           from one initial network?
 *   other   v_x(S) is the mean over other seeds of the sub-models: does it predict what the data
 *           does, whatever network the training starts from?
 *
 * Sums that differ by less than rounding are ties. Where all sums are equal the values predict
 * nothing, and the score is 0; where all answers are equal there is nothing to predict, and it is
 * NaN.
 */
#include "eval/eval.h"

#include <math.h>
#include <stdlib.h>

/* ---- the score ---- */

/* sums[rows], each a multiple of 1e-12 of the sum of all |phi|: members of a class that are worth
 * the same may be added in another order. */
static void add_up(const fds_plan *plan, const double *values, size_t columns, size_t column,
                   double *sums) {
    size_t players = fds_plan_players(plan);
    double all = 0;
    for (size_t p = 0; p < players; p++)
        all += fabs(values[p * columns + column]);
    for (size_t r = 0; r < fds_plan_rows(plan); r++) {
        const uint64_t *coalition = fds_plan_coalition(plan, r);
        double sum = 0;
        for (size_t p = 0; p < players; p++)
            if (fds_coalition_has(coalition, p))
                sum += values[p * columns + column];
        sums[r] = all > 0 ? round(sum / all * 1e12) : 0;
    }
}

static bool are_equal(const double *numbers, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (numbers[i] != numbers[0])
            return false;
    return true;
}

fds_status fds_datamodeling_scores(const fds_plan *plan, const double *values, size_t columns,
                                   const double *answers, size_t inputs, double *scores,
                                   fds_error *err) {
    size_t rows = fds_plan_rows(plan);
    if (columns != 1 && columns != inputs)
        return fds__fail(
            err, FDS_ERR_SHAPE,
            "values have %zu columns, but there are answers for %zu inputs: there must "
            "be one column for all inputs, or one for each",
            columns, inputs);
    for (size_t i = 0; i < fds_plan_players(plan) * columns; i++)
        if (!isfinite(values[i]))
            return fds__fail(err, FDS_ERR_USAGE,
                             "the value of player %zu in column %zu is infinite or not a number",
                             i / columns, i % columns);
    OWNED double *sums = NULL, *given = NULL;
    TRY(NEW(sums, rows, err));
    TRY(NEW(given, rows, err));
    for (size_t x = 0; x < inputs; x++) {
        if (x < columns)
            add_up(plan, values, columns, x, sums);
        for (size_t r = 0; r < rows; r++)
            given[r] = answers[r * inputs + x];
        TRY(fds__spearman(sums, given, rows, &scores[x], err));
        if (are_equal(sums, rows) && !are_equal(given, rows))
            scores[x] = 0;
    }
    return FDS_OK;
}

/* ---- half coalitions ---- */

/* Coalitions that may not be drawn, by their ids. */
typedef struct {
    uint64_t *ids;
    size_t count, capacity;
} taken;

static fds_status take(taken *t, uint64_t id, fds_error *err) {
    TRY(fds__grow((void **)&t->ids, &t->capacity, t->count + 1, sizeof *t->ids, err));
    t->ids[t->count++] = id;
    return FDS_OK;
}

static fds_status take_plan(const eval_game *g, eval_draw draw, size_t count, taken *t,
                            fds_error *err) {
    fds_plan *plan;
    TRY(fds_plan_sample(FDS_SAMPLER_LEVERAGE, g->players, NULL, eval_drawn(g, count),
                        eval_plan_seed(g, draw), &plan, err));
    fds_status status = FDS_OK;
    for (size_t r = 0; r < fds_plan_rows(plan) && status == FDS_OK; r++)
        status = take(t, fds_coalition_id(fds_plan_coalition(plan, r), g->players), err);
    fds_plan_free(plan);
    return status;
}

/* Of plans of one seed, the shorter is the beginning of the longer: more than a fit draws for its
 * validation includes what it draws. */
static fds_status take_others(const eval_game *g, taken *t, fds_error *err) {
    size_t count = (size_t)g->params.coalitions, half = eval_truth_half(g);
    TRY(take_plan(g, EVAL_DRAW_METHODS, count + count / 20 * 2 + 200, t, err));
    if (!g->params.truth)
        return FDS_OK;
    TRY(take_plan(g, EVAL_DRAW_TRUTH, half, t, err));
    return take_plan(g, EVAL_DRAW_TRUTH_AGAIN, half, t, err);
}

static int by_id(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Draws row after row until there are enough, or nearly every draw is a coalition that is taken.
 * players[players]: scratch. Returns how many rows it has filled in. */
static size_t draw_rows(const eval_game *g, taken *t, fds_plan *plan, uint32_t *players) {
    size_t wanted = fds_plan_rows(plan), rows = 0, before = t->count, spread = g->players / 50;
    qsort(t->ids, before, sizeof *t->ids, by_id);
    for (size_t draw = 0; draw < 50 * wanted + 1000 && rows < wanted; draw++) {
        uint64_t *bits = fds__plan_bits(plan, rows);
        fds_rng rng = fds_rng_make(g->params.seed, FDS__PURPOSE_HALF, draw, 0);
        memset(bits, 0, plan->words * sizeof *bits);
        for (size_t p = 0; p < g->players; p++)
            players[p] = (uint32_t)p;
        fds_rng_shuffle(&rng, players, g->players);
        size_t size = g->players / 2 - spread + fds_rng_below(&rng, (uint32_t)(2 * spread + 1));
        for (size_t i = 0; i < size; i++)
            fds__coalition_add(bits, players[i]);
        uint64_t id = fds_coalition_id(bits, g->players);
        bool is_taken = bsearch(&id, t->ids, before, sizeof id, by_id) != NULL;
        for (size_t i = before; i < before + rows; i++)
            is_taken |= t->ids[i] == id;
        if (!is_taken)
            t->ids[before + rows++] = id;
    }
    return rows;
}

fds_status eval_halves_plan(const eval_game *g, fds_plan **out, fds_error *err) {
    enum { LEAST = 3 }; /* a correlation needs three */
    taken t = {0};
    uint32_t *players = NULL;
    fds_plan *plan = NULL;
    size_t wanted = (size_t)g->params.lds, rows = 0;
    *out = NULL;
    fds_status status = take_others(g, &t, err);
    if (status == FDS_OK)
        status = fds__grow((void **)&t.ids, &t.capacity, t.count + wanted, sizeof *t.ids, err);
    if (status == FDS_OK)
        status = NEW(players, g->players, err);
    if (status == FDS_OK)
        status = fds__plan_blank(g->players, wanted, &plan, err);
    if (status == FDS_OK) {
        rows = draw_rows(g, &t, plan, players);
        plan->rows = rows;
        if (rows >= LEAST)
            *out = plan;
    }
    if (!*out)
        fds_plan_free(plan);
    fds__free(players);
    fds__free(t.ids);
    return status;
}

/* ---- what the models answer ---- */

void eval_halves_free(eval_halves *h) {
    fds_plan_free(h->plan);
    fds__free(h->own);
    fds__free(h->other);
    *h = (eval_halves){0};
}

/* Adds share times the answers of a table to answers (rows, tests). row[tests]: scratch. */
static fds_status add_answers(const eval_game *g, fds_table *table, const fds_plan *plan,
                              const uint32_t *labels, double share, double *row, double *answers,
                              fds_error *err) {
    fds_table_view *view;
    TRY(fds_table_fill(table, plan, (unsigned)g->params.threads, g->events, err));
    TRY(fds_table_view_create(table, plan, labels, false, 1, &view, err));
    fds_rows rows = fds_table_view_rows(view);
    fds_status status = FDS_OK;
    for (size_t r = 0; r < fds_plan_rows(plan) && status == FDS_OK; r++) {
        status = rows.read(rows.context, 0, r, 0, g->tests, row, err);
        for (size_t x = 0; x < g->tests && status == FDS_OK; x++)
            answers[r * g->tests + x] += share * row[x];
    }
    fds_table_view_free(view);
    return status;
}

fds_status eval_halves_make(const eval_game *g, eval_utility utility, eval_halves *out,
                            fds_error *err) {
    const uint32_t *labels = g->sides[utility].predicted;
    size_t seeds = (size_t)g->params.lds_seeds;
    OWNED double *row = NULL;
    TRY(eval_halves_plan(g, &out->plan, err));
    if (!out->plan) {
        eval_tell(g, "%s", "no LDS: methods have seen nearly all halves of the players");
        return FDS_OK;
    }
    size_t size = fds_plan_rows(out->plan) * g->tests;
    TRY(NEW(row, g->tests, err));
    TRY(NEW(out->own, size, err));
    TRY(add_answers(g, g->sides[utility].table, out->plan, labels, 1, row, out->own, err));
    if (seeds)
        TRY(NEW(out->other, size, err));
    for (size_t k = 0; k < seeds; k++)
        TRY(add_answers(g, g->others[utility][k].table, out->plan, labels, 1 / (double)seeds, row,
                        out->other, err));
    return FDS_OK;
}

/* ---- as JSON ---- */

/* scores[tests]: samples without a score do not count. */
static fds_status describe(const eval_game *g, eval_utility utility, const eval_halves *h,
                           double *scores, json_t *list, fds_error *err) {
    size_t count = 0;
    for (size_t x = 0; x < g->tests; x++)
        if (!isnan(scores[x]))
            scores[count++] = scores[x];
    if (!count)
        return FDS_OK;
    json_t *entry = json_pack("{s:s, s:I}", "utility", eval_utility_name(utility), "coalitions",
                              (json_int_t)fds_plan_rows(h->plan));
    return eval_add_summary(list, entry, scores, count, err);
}

fds_status eval_measure_lds(const eval_game *g, eval_utility utility, const eval_halves *h,
                            const double *values, size_t columns, json_t *own, json_t *other,
                            fds_error *err) {
    OWNED double *scores = NULL;
    if (!h->plan)
        return FDS_OK;
    TRY(NEW(scores, g->tests, err));
    TRY(fds_datamodeling_scores(h->plan, values, columns, h->own, g->tests, scores, err));
    TRY(describe(g, utility, h, scores, own, err));
    if (!h->other)
        return FDS_OK;
    TRY(fds_datamodeling_scores(h->plan, values, columns, h->other, g->tests, scores, err));
    return describe(g, utility, h, scores, other, err);
}
