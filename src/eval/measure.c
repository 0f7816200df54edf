/* SPDX-License-Identifier: Apache-2.0
 *
 * What a case measures of values, as the JSON of docs/bench.md.
 *
 * Losses are those of fds_value_loss for the true labels, over two sets of test samples: those that
 * the model of all players classifies correctly under the same utility function, and all of them. A
 * set without samples is left out. Means and standard deviations (n - 1) are taken in the order of
 * the test samples. The numbers of the single samples are written too, so that a report can compare
 * two methods sample by sample.
 *
 * gap = sum over test samples of |sum phi - (v(N) - v(0))|, divided by the sum of |v(N) - v(0)|.
 */
#include "eval/eval.h"

#include <math.h>

/* ---- sets of test samples ---- */

typedef enum { SET_CORRECT, SET_ALL, SETS } set;

static const char *const set_names[SETS] = {"correct", "all"};

/* The test samples of a set by a utility function. */
typedef struct {
    const eval_game *game;
    eval_utility utility;
    set set;
} subset;

static bool is_in(const subset *s, size_t test) {
    return s->set == SET_ALL ||
           s->game->sides[s->utility].predicted[test] == s->game->problem->test_labels[test];
}

static size_t count_in(const subset *s) {
    size_t count = 0;
    for (size_t x = 0; x < s->game->tests; x++)
        count += is_in(s, x);
    return count;
}

/* sd of one is NaN. */
static void summarise(const double *samples, size_t count, double *mean, double *sd) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        sum += samples[i];
    *mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (samples[i] - *mean) * (samples[i] - *mean);
    *sd = count > 1 ? sqrt(squares / (double)(count - 1)) : NAN;
}

/* Moves the losses (tests) of a set to the front, in the order of the test samples. */
static void gather(const subset *s, const double *losses, double *out) {
    for (size_t x = 0, count = 0; x < s->game->tests; x++)
        if (is_in(s, x))
            out[count++] = losses[x];
}

fds_status eval_add_summary(json_t *list, json_t *entry, const double *samples, size_t count,
                            fds_error *err) {
    double mean, sd;
    summarise(samples, count, &mean, &sd);
    bool is_whole = fds__json_put(entry, "count", json_integer((json_int_t)count)) &&
                    fds__json_put(entry, "mean", fds__json_real(mean)) &&
                    fds__json_put(entry, "sd", fds__json_real(sd)) &&
                    fds__json_put(entry, "samples", report_numbers(samples, count));
    entry = fds__json_keep_if(entry, is_whole);
    return fds__json_append(list, entry) ? FDS_OK : fds__fail_json(err);
}

/* ---- losses ---- */

/* losses (shares, tests), the mean over the models' seeds. again: scratch of the same size. */
static fds_status find_losses(const eval_game *g, eval_utility utility, eval_models models,
                              fds_removal removal, const double *values, size_t columns,
                              const double *shares, size_t share_count, double *losses,
                              double *again, fds_error *err) {
    size_t seeds = models == EVAL_MODELS_OWN ? 1 : (size_t)g->params.loss_seeds;
    for (size_t k = 0; k < seeds; k++) {
        const eval_side *side =
            models == EVAL_MODELS_OWN ? &g->sides[utility] : &g->others[utility][k];
        TRY(fds_value_loss(side->table, removal, values, columns, g->problem->test_labels, shares,
                           share_count, (unsigned)g->params.threads, again, NULL, g->events, err));
        for (size_t i = 0; i < share_count * g->tests; i++)
            losses[i] = k ? losses[i] + again[i] : again[i];
    }
    for (size_t i = 0; seeds > 1 && i < share_count * g->tests; i++)
        losses[i] /= (double)seeds;
    return FDS_OK;
}

/* Of the models of all players. */
static fds_status measure_base(const eval_game *g, eval_utility utility, eval_models models,
                               json_t *list, fds_error *err) {
    const double none = 0; /* share removed, so the values do not matter */
    OWNED double *losses = NULL, *again = NULL, *values = NULL;
    TRY(NEW(losses, g->tests, err));
    TRY(NEW(again, g->tests, err));
    TRY(NEW(values, g->players, err));
    TRY(find_losses(g, utility, models, FDS_REMOVAL_TOP, values, 1, &none, 1, losses, again, err));
    for (subset s = {g, utility, SET_CORRECT}; s.set < SETS; s.set++)
        if (count_in(&s)) {
            gather(&s, losses, again);
            TRY(eval_add_summary(list, json_pack("{s:s}", "set", set_names[s.set]), again,
                                 count_in(&s), err));
        }
    return FDS_OK;
}

fds_status eval_measure_utility(const eval_game *g, eval_utility utility, const eval_truth *truth,
                                const eval_halves *halves, json_t *list, fds_error *err) {
    const subset correct = {g, utility, SET_CORRECT};
    json_t *known = json_null(), *losses = json_array(), *others = json_array();
    json_t *lds = json_array(), *lds_others = json_array(); /* of the truth */
    if (truth->values)
        known = json_pack("{s:I, s:o}", "coalitions", (json_int_t)truth->coalitions, "correlation",
                          fds__json_real(truth->correlation));
    fds_status status = measure_base(g, utility, EVAL_MODELS_OWN, losses, err);
    if (status == FDS_OK && g->params.loss_seeds)
        status = measure_base(g, utility, EVAL_MODELS_OTHER, others, err);
    if (status == FDS_OK && truth->values)
        status =
            eval_measure_lds(g, utility, halves, truth->values, g->tests, lds, lds_others, err);
    json_t *item =
        json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:o}", "utility", eval_utility_name(utility),
                  "correct", (json_int_t)count_in(&correct), "losses", losses, "losses_other_seed",
                  others, "lds", lds, "lds_other_seeds", lds_others, "truth", known);
    if (status != FDS_OK) {
        json_decref(item);
        return status;
    }
    return fds__json_append(list, item) ? FDS_OK : fds__fail_json(err);
}

/* losses (shares, tests); scratch[tests]. NULL: out of memory. */
static json_t *describe_losses(const subset *s, const char *removal, const double *losses,
                               double *scratch) {
    double means[EVAL_MOST], sds[EVAL_MOST];
    size_t shares = s->game->lists->share_count, count = count_in(s);
    json_t *samples = json_array();
    bool is_whole = true;
    for (size_t k = 0; k < shares; k++) {
        gather(s, losses + k * s->game->tests, scratch);
        summarise(scratch, count, &means[k], &sds[k]);
        is_whole &= fds__json_append(samples, report_numbers(scratch, count));
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o}", "utility",
                     eval_utility_name(s->utility), "removal", removal, "set", set_names[s->set],
                     "count", (json_int_t)count, "mean", report_numbers(means, shares), "sd",
                     report_numbers(sds, shares), "samples", fds__json_keep_if(samples, is_whole));
}

fds_status eval_measure_losses(const eval_game *g, eval_utility utility, eval_models models,
                               fds_removal removal, const double *values, size_t columns,
                               json_t *list, fds_error *err) {
    static const char *const removals[] = {"top", "bottom", "keep_top"};
    const eval_lists *l = g->lists;
    OWNED double *losses = NULL, *again = NULL;
    TRY(NEW(losses, l->share_count * g->tests, err));
    TRY(NEW(again, l->share_count * g->tests, err));
    TRY(find_losses(g, utility, models, removal, values, columns, l->shares, l->share_count, losses,
                    again, err));
    for (subset s = {g, utility, SET_CORRECT}; s.set < SETS; s.set++)
        if (count_in(&s) &&
            !fds__json_append(list, describe_losses(&s, removals[removal], losses, again)))
            return fds__fail_json(err);
    return FDS_OK;
}

/* ---- agreement ---- */

static double gap_of(const eval_game *g, const double *rise, const double *values) {
    double missed = 0, all = 0;
    for (size_t x = 0; x < g->tests; x++) {
        double sum = 0;
        for (size_t i = 0; i < g->players; i++)
            sum += values[i * g->tests + x];
        missed += fabs(sum - rise[x]);
        all += fabs(rise[x]);
    }
    return missed / all; /* NaN where v(N) is v(0) */
}

/* Whether it estimates the Shapley values of its utility function, sample by sample. Other methods
 * value another game or something else, so that only their order can agree. */
static bool is_estimate(const eval_method *m) {
    return m->kind == REPORT_OURS || m->kind == REPORT_BEYOND ||
           (m->is_per_sample &&
            (strcmp(m->base, "tmc") == 0 || strcmp(m->base, "group-testing") == 0));
}

fds_status eval_measure_agreement(const eval_game *g, const eval_method *method,
                                  const double *values, const double *truth, json_t **out,
                                  fds_error *err) {
    const eval_side *side = &g->sides[eval_own_utility(method)];
    bool is_same_unit = is_estimate(method);
    fds_agreement agreement = {NAN, NAN, NAN};
    if (truth)
        TRY(fds_agree(values, eval_columns(g, method), truth, g->tests, g->players,
                      g->problem->player_labels, side->predicted, &agreement, err));
    *out =
        json_pack("{s:o, s:o, s:o, s:o}", "correlation", fds__json_real(agreement.correlation),
                  "class_correlation", fds__json_real(agreement.within), "relative_error",
                  fds__json_real(is_same_unit ? agreement.relative_error : NAN), "efficiency_gap",
                  fds__json_real(is_same_unit ? gap_of(g, side->rise, values) : NAN));
    return *out ? FDS_OK : fds__fail_json(err);
}
