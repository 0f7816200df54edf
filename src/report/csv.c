/* SPDX-License-Identifier: Apache-2.0
 *
 * report.csv: every number of report.json, one line each, RFC 4180 with a header.
 *
 *   data      "mnist"
 *   method    "afds"; empty for the loss with all players and for the truth
 *   measure   loss, loss_other_seed; lds, lds_other_seeds, of the truth truth_lds,
 *             truth_lds_other_seeds; correlation, class_correlation, relative_error, efficiency_gap, auc, sub_models,
 *             prepare_s, answer_ms; sampled: permutations; truth_coalitions, and truth_correlation
 *             of its halves; paper_loss, paper_seconds: what the paper reports
 *   utility   of a loss or the truth: the utility function
 *   removal   top, bottom, keep_top
 *   set       correct, all
 *   share     of the players removed or kept; 0 for the loss with all players
 *   seed      empty: over all seeds; else the mean of one
 *   mean, sd, error, count
 *   against   mean is the difference from this method; empty: it is the number itself
 *
 * Fields that do not apply or were not measured are empty; what was not measured at all has no line.
 * Numbers have the fewest digits that are read back as the same bits.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

/* What a line says. Texts may be "", numbers NaN. */
typedef struct line {
    const char *data, *method, *measure, *utility, *removal, *set;
    double share;
    const json_t *seed; /* NULL: all */
    report_stat stat;
    const char *against;
} line;

static void add_number(fds__text *csv, double value, char end) {
    if (isfinite(value))
        fds__text_double(csv, value);
    fds__text_add(csv, &end, 1);
}

static void add_line(fds__text *csv, const line *l) {
    if (!isfinite(l->stat.mean))
        return;
    const char *const texts[] = {l->data, l->method, l->measure, l->utility, l->removal, l->set};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fds__text_csv(csv, texts[i]);
        fds__text_add(csv, ",", 1);
    }
    add_number(csv, l->share, ',');
    if (l->seed)
        fds__text_print(csv, "%lld", (long long)json_integer_value(l->seed));
    fds__text_add(csv, ",", 1);
    const double numbers[] = {l->stat.mean, l->stat.sd, l->stat.error, l->stat.count};
    for (size_t i = 0; i < 4; i++)
        add_number(csv, numbers[i], ',');
    fds__text_csv(csv, l->against);
    fds__text_add(csv, "\n", 1);
}

static line make_line(const json_t *data, const json_t *row, const char *measure) {
    return (line){.data = report_text_of(data, "name"),
                  .method = report_text_of(row, "method"),
                  .measure = measure,
                  .utility = "",
                  .removal = "",
                  .set = "",
                  .share = NAN,
                  .stat = {NAN, NAN, NAN, NAN},
                  .against = ""};
}

static void add_stat(fds__text *csv, line l, const json_t *stat) {
    l.stat = report_stat_of(stat, 0);
    add_line(csv, &l);
}

/* Differences from the references. */
static void add_against(fds__text *csv, line l, const json_t *entry, size_t at) {
    const json_t *apart;
    for (size_t i = 0; (apart = json_array_get(report_at(entry, "against"), i)); i++) {
        l.against = report_text_of(apart, "method");
        l.stat = report_stat_of(apart, at);
        add_line(csv, &l);
    }
}

/* A loss or a score: over all seeds, and the mean of each seed; at: its place where there is one per
 * share. */
static void add_entry(fds__text *csv, line l, const json_t *data, const json_t *loss, size_t at) {
    const json_t *mean;
    l.stat = report_stat_of(loss, at);
    add_line(csv, &l);
    add_against(csv, l, loss, at);
    for (size_t i = 0; (mean = json_array_get(report_at(loss, "by_seed"), i)); i++) {
        l.seed = json_array_get(report_at(data, "seeds"), i);
        l.stat = (report_stat){
            NAN, json_is_array(mean) ? report_number_at(mean, at) : report_number_of(mean, ""), NAN,
            NAN};
        add_line(csv, &l);
    }
}

static void add_entries(fds__text *csv, const json_t *data, const json_t *row, const char *list,
                        const char *measure) {
    line l = make_line(data, row, measure);
    const json_t *entry;
    for (size_t i = 0; (entry = json_array_get(report_at(row, list), i)); i++) {
        size_t shares = json_array_size(report_at(entry, "mean"));
        l.utility = report_text_of(entry, "utility");
        l.removal = report_text_of(entry, "removal");
        l.set = report_text_of(entry, "set");
        for (size_t k = 0; k < MAX(shares, (size_t)1); k++) {
            if (shares)
                l.share = report_number_at(report_at(data, "settings/shares"), k);
            add_entry(csv, l, data, entry, k);
        }
    }
}

/* The loss with all players, and the truth. */
static void add_utility(fds__text *csv, const json_t *data, const json_t *of) {
    line l = make_line(data, NULL, "truth_coalitions");
    const json_t *loss;
    l.utility = report_text_of(of, "utility");
    line base = l;
    base.measure = "loss";
    base.share = 0;
    for (size_t k = 0; (loss = json_array_get(report_at(of, "losses"), k)); k++) {
        base.set = report_text_of(loss, "set");
        add_entry(csv, base, data, loss, 0);
    }
    base.measure = "loss_other_seed";
    for (size_t k = 0; (loss = json_array_get(report_at(of, "losses_other_seed"), k)); k++) {
        base.set = report_text_of(loss, "set");
        add_entry(csv, base, data, loss, 0);
    }
    add_entries(csv, data, of, "lds", "truth_lds");
    add_entries(csv, data, of, "lds_other_seeds", "truth_lds_other_seeds");
    l.stat.mean = report_number_of(of, "truth/coalitions");
    add_line(csv, &l);
    l.measure = "truth_correlation";
    add_stat(csv, l, report_at(of, "truth/correlation"));
}

/* Accuracy, precision, recall. */
static void add_curves(fds__text *csv, const json_t *data, const json_t *row) {
    const json_t *entry;
    for (size_t i = 0; (entry = json_array_get(report_at(row, "curves"), i)); i++) {
        line l = make_line(data, row, report_text_of(entry, "measure"));
        l.removal = report_text_of(entry, "removal");
        for (size_t k = 0; k < json_array_size(report_at(entry, "mean")); k++) {
            l.share = report_number_at(report_at(data, "settings/shares"), k);
            l.stat = report_stat_of(entry, k);
            add_line(csv, &l);
        }
    }
}

static void add_paper(fds__text *csv, const json_t *data, const json_t *row) {
    line l = make_line(data, row, "paper_seconds");
    const json_t *paper = report_at(row, "paper");
    l.stat.mean = report_number_of(paper, "seconds");
    add_line(csv, &l);
    l.measure = "paper_loss";
    l.removal = "top";
    for (size_t k = 0; k < json_array_size(report_at(paper, "mean")); k++) {
        l.share = report_number_at(report_at(paper, "shares"), k);
        l.stat = report_stat_of(paper, k);
        add_line(csv, &l);
    }
}

fds_status report_csv(const json_t *report, fds__text *csv, fds_error *err) {
    static const char *const stats[] = {"agreement/correlation",
                                        "agreement/class_correlation",
                                        "agreement/relative_error",
                                        "agreement/efficiency_gap",
                                        "auc",
                                        "sub_models",
                                        "permutations/sampled",
                                        "timing/prepare_s",
                                        "timing/answer_ms"};
    /* of report_lists */
    static const char *const measures[] = {"loss", "loss_other_seed", "lds", "lds_other_seeds"};
    const json_t *data, *of, *row;
    draw_markup(csv,
                "data,method,measure,utility,removal,set,share,seed,mean,sd,error,count,against\n");
    for (size_t d = 0; (data = json_array_get(report_at(report, "data"), d)); d++) {
        for (size_t u = 0; (of = json_array_get(report_at(data, "utilities"), u)); u++)
            add_utility(csv, data, of);
        for (size_t r = 0; (row = json_array_get(report_at(data, "rows"), r)); r++) {
            for (size_t k = 0; report_lists[k]; k++)
                add_entries(csv, data, row, report_lists[k], measures[k]);
            for (size_t k = 0; k < sizeof stats / sizeof *stats; k++) {
                const char *slash = strchr(stats[k], '/');
                line l = make_line(data, row, slash ? slash + 1 : stats[k]);
                add_stat(csv, l, report_at(row, stats[k]));
                add_against(csv, l, report_at(row, stats[k]), 0);
            }
            add_curves(csv, data, row);
            add_stat(csv, make_line(data, row, "auc_sub_models"),
                     report_at(row, "auc_terms/sub_models"));
            add_paper(csv, data, row);
        }
    }
    return fds__text_check(csv, err);
}
