/* SPDX-License-Identifier: Apache-2.0
 *
 * What a case measures of values, as the JSON of docs/bench.md.
 *
 * Losses are those of fds_value_loss, by the true labels, over two sets of test samples: those that
 * the model of all players predicts rightly under the same value function, and all of them. A set
 * without samples is left out. Means and standard deviations (n - 1) are taken in the order of the
 * test samples.
 *
 * gap = sum over test samples of |sum phi - (v(N) - v(0))|, in shares of the sum of |v(N) - v(0)|.
 */
#include "eval/case.h"

#include <math.h>
#include <string.h>

/* ---- sets of test samples ---- */

typedef enum { SET_RIGHT, SET_ALL, SETS } set;

static const char *const set_names[SETS] = {"correct", "all"};

static bool is_in(const eval_game *g, const eval_side *side, set s, size_t test) {
    return s == SET_ALL || side->predicted[test] == g->labels[test];
}

static size_t set_size(const eval_game *g, const eval_side *side, set s) {
    size_t count = 0;
    for (size_t x = 0; x < g->tests; x++)
        count += is_in(g, side, s, x);
    return count;
}

/* Of losses (tests), over a set of at least one. sd of one is NaN. */
static void summarise(const eval_game *g, const eval_side *side, set s, const double *losses,
                      double *mean, double *sd) {
    double count = (double)set_size(g, side, s), sum = 0, squares = 0;
    for (size_t x = 0; x < g->tests; x++)
        if (is_in(g, side, s, x))
            sum += losses[x];
    *mean = sum / count;
    for (size_t x = 0; x < g->tests; x++)
        if (is_in(g, side, s, x))
            squares += (losses[x] - *mean) * (losses[x] - *mean);
    *sd = count > 1 ? sqrt(squares / (count - 1)) : NAN;
}

/* ---- losses ---- */

static json_t *describe_truth(const eval_truth *truth) {
    if (!truth->values)
        return json_null();
    return json_pack("{s:I, s:o}", "coalitions", (json_int_t)truth->coalitions, "correlation",
                     fds__json_real(truth->correlation));
}

fds_status eval_measure_utility(const eval_game *g, eval_utility scorer, const eval_truth *truth,
                                json_t **out, fds_error *err) {
    const eval_side *side = &g->sides[scorer];
    const double none = 0;
    double *losses = fds__alloc_zero(g->tests + g->players, sizeof *losses);
    if (!losses)
        return fds__fail_nomem(err, (g->tests + g->players) * sizeof *losses);
    /* nobody is removed, whatever the values */
    fds_status status =
        fds_value_loss(side->table, FDS_REMOVAL_TOP, losses + g->tests, 1, g->labels, &none, 1,
                       g->params->threads, losses, NULL, g->events, err);
    json_t *list = json_array();
    bool is_whole = list != NULL;
    for (int s = 0; s < SETS && is_whole && status == FDS_OK; s++) {
        size_t count = set_size(g, side, (set)s);
        double mean, sd;
        if (!count)
            continue;
        summarise(g, side, (set)s, losses, &mean, &sd);
        is_whole = json_array_append_new(list, json_pack("{s:s, s:I, s:o, s:o}", "set",
                                                         set_names[s], "count", (json_int_t)count,
                                                         "mean", fds__json_real(mean), "sd",
                                                         fds__json_real(sd))) == 0;
    }
    fds__free(losses);
    if (status != FDS_OK || !is_whole) {
        json_decref(list);
        return status != FDS_OK ? status : fds__fail_json(err);
    }
    *out = json_pack("{s:s, s:I, s:o, s:o}", "utility", eval_utility_name(scorer), "correct",
                     (json_int_t)set_size(g, side, SET_RIGHT), "losses", list, "truth",
                     describe_truth(truth));
    return *out ? FDS_OK : fds__fail_json(err);
}

/* losses (shares, tests) over one set, added to list; false: no memory. */
static bool append_set(const eval_game *g, eval_utility scorer, const char *way, set s,
                       const double *losses, json_t *list) {
    const eval_side *side = &g->sides[scorer];
    size_t count = set_size(g, side, s);
    json_t *means = json_array(), *sds = json_array();
    bool is_whole = means && sds;
    for (size_t k = 0; k < g->params->share_count && is_whole; k++) {
        double mean, sd;
        summarise(g, side, s, losses + k * g->tests, &mean, &sd);
        is_whole = json_array_append_new(means, fds__json_real(mean)) == 0 &&
                   json_array_append_new(sds, fds__json_real(sd)) == 0;
    }
    if (!is_whole) {
        json_decref(means);
        json_decref(sds);
        return false;
    }
    json_t *entry =
        json_pack("{s:s, s:s, s:s, s:I, s:o, s:o}", "utility", eval_utility_name(scorer), "removal",
                  way, "set", set_names[s], "count", (json_int_t)count, "mean", means, "sd", sds);
    return json_array_append_new(list, entry) == 0;
}

fds_status eval_measure_losses(const eval_game *g, eval_utility scorer, fds_removal way,
                               const double *values, size_t columns, json_t *list, fds_error *err) {
    static const char *const ways[] = {"top", "bottom", "keep_top"};
    const fds__bench_params *p = g->params;
    double *losses = fds__alloc_zero(p->share_count * g->tests, sizeof *losses);
    if (!losses)
        return fds__fail_nomem(err, p->share_count * g->tests * sizeof *losses);
    fds_status status =
        fds_value_loss(g->sides[scorer].table, way, values, columns, g->labels, p->shares,
                       p->share_count, p->threads, losses, NULL, g->events, err);
    for (int s = 0; s < SETS && status == FDS_OK; s++)
        if (set_size(g, &g->sides[scorer], (set)s) &&
            !append_set(g, scorer, ways[way], (set)s, losses, list))
            status = fds__fail_json(err);
    fds__free(losses);
    return status;
}

/* ---- agreement ---- */

static double gap_of(const eval_game *g, const eval_side *side, const double *values) {
    double missed = 0, all = 0;
    for (size_t x = 0; x < g->tests; x++) {
        double sum = 0;
        for (size_t i = 0; i < g->players; i++)
            sum += values[i * g->tests + x];
        missed += fabs(sum - side->rise[x]);
        all += fabs(side->rise[x]);
    }
    return missed / all; /* no number where nothing rises */
}

/* Whether it estimates the Shapley values of its value function, sample by sample. Of all others,
 * which value another game or something else, only the order can agree. */
static bool is_estimate(const eval_method *m) {
    return m->kind == REPORT_OURS || m->kind == REPORT_BEYOND ||
           (m->is_per_sample &&
            (strcmp(m->base, "tmc") == 0 || strcmp(m->base, "group-testing") == 0));
}

fds_status eval_measure_agreement(const eval_game *g, const eval_method *method,
                                  const double *values, const double *truth, json_t **out,
                                  fds_error *err) {
    const eval_side *side =
        &g->sides[method->is_converged ? EVAL_UTILITY_CONVERGED : EVAL_UTILITY_EPOCHS];
    bool is_same_unit = is_estimate(method);
    fds_agreement agreement = {NAN, NAN, NAN};
    if (truth)
        TRY(fds_agree(values, eval_columns(g, method), truth, g->tests, g->players,
                      g->player_labels, side->predicted, &agreement, err));
    *out =
        json_pack("{s:o, s:o, s:o, s:o}", "correlation", fds__json_real(agreement.correlation),
                  "class_correlation", fds__json_real(agreement.within), "relative_error",
                  fds__json_real(is_same_unit ? agreement.relative_error : NAN), "efficiency_gap",
                  fds__json_real(is_same_unit ? gap_of(g, side, values) : NAN));
    return *out ? FDS_OK : fds__fail_json(err);
}
