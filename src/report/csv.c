/* SPDX-License-Identifier: Apache-2.0
 *
 * report.csv: every number of report.json, one line each, RFC 4180 with a header.
 *
 *   data      "mnist"
 *   method    "afds"; empty for the loss with all players and for the truth
 *   measure   loss; correlation, class_correlation, relative_error, efficiency_gap, auc, sub_models,
 *             prepare_s, answer_ms; sampled: permutations; truth_coalitions, and truth_correlation
 *             of its halves; paper_loss, paper_seconds: what the paper reports
 *   utility   of a loss or the truth: the utility function
 *   removal   top, bottom, keep_top
 *   set       correct, all
 *   share     of the players removed or kept; 0 for the loss with all players
 *   seed      empty: over all seeds; else the mean of one
 *   mean, sd, error, count
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
    double mean, sd, error, count;
} line;

static void add_text(fds__text *csv, const char *text) {
    fds__text_csv(csv, text);
    fds__text_add(csv, ",", 1);
}

static void add_number(fds__text *csv, double value, char end) {
    if (isfinite(value))
        fds__text_double(csv, value);
    fds__text_add(csv, &end, 1);
}

static void add_line(fds__text *csv, const line *l) {
    if (!isfinite(l->mean))
        return;
    const char *const texts[] = {l->data, l->method, l->measure, l->utility, l->removal, l->set};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        add_text(csv, texts[i]);
    add_number(csv, l->share, ',');
    if (l->seed)
        fds__text_print(csv, "%lld", (long long)json_integer_value(l->seed));
    fds__text_add(csv, ",", 1);
    add_number(csv, l->mean, ',');
    add_number(csv, l->sd, ',');
    add_number(csv, l->error, ',');
    add_number(csv, l->count, '\n');
}

static line make_line(const json_t *data, const json_t *row, const char *measure) {
    return (line){.data = report_text_of(data, "name"),
                  .method = report_text_of(row, "method"),
                  .measure = measure,
                  .utility = "",
                  .removal = "",
                  .set = "",
                  .share = NAN,
                  .mean = NAN,
                  .sd = NAN,
                  .error = NAN,
                  .count = NAN};
}

/* The same line for each seed by itself; means: those of the seeds, at place at where each is a
 * list of its own. */
static void add_seeds(fds__text *csv, line l, const json_t *seeds, const json_t *means, size_t at) {
    l.sd = l.error = l.count = NAN;
    for (size_t i = 0; i < json_array_size(means); i++) {
        const json_t *mean = json_array_get(means, i);
        l.seed = json_array_get(seeds, i);
        l.mean = json_is_array(mean) ? report_number_at(mean, at) : report_number_at(means, i);
        add_line(csv, &l);
    }
}

/* A statistic over seeds. */
static void add_stat(fds__text *csv, line l, const json_t *stat) {
    l.mean = report_number_of(stat, "mean");
    l.sd = report_number_of(stat, "sd");
    l.count = report_number_of(stat, "count");
    l.error = l.sd / sqrt(l.count);
    add_line(csv, &l);
}

/* The loss with all players, and the truth. */
static void add_utility(fds__text *csv, const json_t *data, const json_t *of) {
    line l = make_line(data, NULL, "loss");
    const json_t *loss;
    l.utility = report_text_of(of, "utility");
    line truth = l;
    l.share = 0;
    for (size_t k = 0; (loss = json_array_get(report_at(of, "losses"), k)); k++) {
        l.set = report_text_of(loss, "set");
        l.mean = report_number_of(loss, "mean");
        l.sd = report_number_of(loss, "sd");
        l.error = report_number_of(loss, "error");
        l.count = report_number_of(loss, "count");
        add_line(csv, &l);
        add_seeds(csv, l, report_at(data, "seeds"), report_at(loss, "by_seed"), 0);
    }
    truth.measure = "truth_coalitions";
    truth.mean = report_number_of(of, "truth/coalitions");
    add_line(csv, &truth);
    truth.measure = "truth_correlation";
    add_stat(csv, truth, report_at(of, "truth/correlation"));
}

static void add_losses(fds__text *csv, const json_t *data, const json_t *row) {
    line l = make_line(data, row, "loss");
    const json_t *loss;
    for (size_t i = 0; (loss = json_array_get(report_at(row, "losses"), i)); i++) {
        l.utility = report_text_of(loss, "utility");
        l.removal = report_text_of(loss, "removal");
        l.set = report_text_of(loss, "set");
        l.count = report_number_of(loss, "count");
        for (size_t k = 0; k < json_array_size(report_at(loss, "mean")); k++) {
            l.share = report_number_at(report_at(data, "settings/shares"), k);
            l.mean = report_number_at(report_at(loss, "mean"), k);
            l.sd = report_number_at(report_at(loss, "sd"), k);
            l.error = report_number_at(report_at(loss, "error"), k);
            add_line(csv, &l);
            add_seeds(csv, l, report_at(data, "seeds"), report_at(loss, "by_seed"), k);
        }
    }
}

static void add_paper(fds__text *csv, const json_t *data, const json_t *row) {
    line l = make_line(data, row, "paper_seconds");
    l.mean = report_number_of(row, "paper/seconds");
    add_line(csv, &l);
    l.measure = "paper_loss";
    l.removal = "top";
    for (size_t k = 0; k < json_array_size(report_at(row, "paper/mean")); k++) {
        l.share = report_number_at(report_at(row, "paper/shares"), k);
        l.mean = report_number_at(report_at(row, "paper/mean"), k);
        l.sd = report_number_at(report_at(row, "paper/sd"), k);
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
    const json_t *data, *of, *row;
    draw_markup(csv, "data,method,measure,utility,removal,set,share,seed,mean,sd,error,count\n");
    for (size_t d = 0; (data = json_array_get(report_at(report, "data"), d)); d++) {
        for (size_t u = 0; (of = json_array_get(report_at(data, "utilities"), u)); u++)
            add_utility(csv, data, of);
        for (size_t r = 0; (row = json_array_get(report_at(data, "rows"), r)); r++) {
            add_losses(csv, data, row);
            for (size_t k = 0; k < sizeof stats / sizeof *stats; k++) {
                const char *slash = strchr(stats[k], '/');
                add_stat(csv, make_line(data, row, slash ? slash + 1 : stats[k]),
                         report_at(row, stats[k]));
            }
            add_paper(csv, data, row);
        }
    }
    return fds__text_check(csv, err);
}
