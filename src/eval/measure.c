/* SPDX-License-Identifier: Apache-2.0
 *
 * What a case measures of values, as the JSON of docs/bench.md.
 *
 * Losses are those of fds_value_loss for the true labels, over two sets of test samples: those that
 * the model of all players classifies correctly under the same utility function, and all of them. A
 * set without samples is left out. Means and standard deviations (n - 1) are taken in the order of
 * the test samples.
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

/* Of losses (tests), over a set of at least one. sd of one is NaN. */
static void summarise(const subset *s, const double *losses, double *mean, double *sd) {
    double count = (double)count_in(s), sum = 0, squares = 0;
    for (size_t x = 0; x < s->game->tests; x++)
        if (is_in(s, x))
            sum += losses[x];
    *mean = sum / count;
    for (size_t x = 0; x < s->game->tests; x++)
        if (is_in(s, x))
            squares += (losses[x] - *mean) * (losses[x] - *mean);
    *sd = count > 1 ? sqrt(squares / (count - 1)) : NAN;
}

/* ---- losses ---- */

/* With all players. */
static json_t *describe_base(const subset *s, const double *losses) {
    double mean, sd;
    summarise(s, losses, &mean, &sd);
    return json_pack("{s:s, s:I, s:o, s:o}", "set", set_names[s->set], "count",
                     (json_int_t)count_in(s), "mean", fds__json_real(mean), "sd",
                     fds__json_real(sd));
}

fds_status eval_measure_utility(const eval_game *g, eval_utility utility, const eval_truth *truth,
                                json_t *list, fds_error *err) {
    const double none = 0; /* share removed, so the values do not matter */
    double *losses = fds__alloc_zero(g->tests + g->players, sizeof *losses);
    if (!losses)
        return fds__fail_nomem(err, (g->tests + g->players) * sizeof *losses);
    fds_status status = fds_value_loss(g->sides[utility].table, FDS_REMOVAL_TOP, losses + g->tests,
                                       1, g->problem->test_labels, &none, 1,
                                       (unsigned)g->params.threads, losses, NULL, g->events, err);
    json_t *bases = json_array();
    subset s = {g, utility, SET_CORRECT};
    size_t correct = count_in(&s);
    for (; s.set < SETS && status == FDS_OK; s.set++)
        if (count_in(&s) && !fds__json_append(bases, describe_base(&s, losses)))
            status = fds__fail_json(err);
    fds__free(losses);
    if (status != FDS_OK) {
        json_decref(bases);
        return status;
    }
    json_t *known = json_null();
    if (truth->values)
        known = json_pack("{s:I, s:o}", "coalitions", (json_int_t)truth->coalitions, "correlation",
                          fds__json_real(truth->correlation));
    json_t *item = json_pack("{s:s, s:I, s:o, s:o}", "utility", eval_utility_name(utility),
                             "correct", (json_int_t)correct, "losses", bases, "truth", known);
    return fds__json_append(list, item) ? FDS_OK : fds__fail_json(err);
}

/* losses (shares, tests) */
static json_t *describe_losses(const subset *s, const char *removal, const double *losses) {
    double means[EVAL_MOST], sds[EVAL_MOST];
    size_t shares = s->game->lists->share_count;
    for (size_t k = 0; k < shares; k++)
        summarise(s, losses + k * s->game->tests, &means[k], &sds[k]);
    return json_pack("{s:s, s:s, s:s, s:I, s:o, s:o}", "utility", eval_utility_name(s->utility),
                     "removal", removal, "set", set_names[s->set], "count", (json_int_t)count_in(s),
                     "mean", report_numbers(means, shares), "sd", report_numbers(sds, shares));
}

fds_status eval_measure_losses(const eval_game *g, eval_utility utility, fds_removal removal,
                               const double *values, size_t columns, json_t *list, fds_error *err) {
    static const char *const removals[] = {"top", "bottom", "keep_top"};
    const eval_lists *l = g->lists;
    double *losses = fds__alloc_zero(l->share_count * g->tests, sizeof *losses);
    if (!losses)
        return fds__fail_nomem(err, l->share_count * g->tests * sizeof *losses);
    fds_status status = fds_value_loss(g->sides[utility].table, removal, values, columns,
                                       g->problem->test_labels, l->shares, l->share_count,
                                       (unsigned)g->params.threads, losses, NULL, g->events, err);
    for (subset s = {g, utility, SET_CORRECT}; s.set < SETS && status == FDS_OK; s.set++)
        if (count_in(&s) && !fds__json_append(list, describe_losses(&s, removals[removal], losses)))
            status = fds__fail_json(err);
    fds__free(losses);
    return status;
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
