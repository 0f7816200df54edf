/* SPDX-License-Identifier: Apache-2.0
 *
 * report.csv: every number of report.json, one line each, RFC 4180 with a header.
 *
 *   data            "mnist"
 *   method          "afds"; empty for the loss with all players and for the truth
 *   what            loss; correlation, within, relative_error, gap, area, sub_models, prepare_s,
 *                   answer_ms; walked: orders of the players; truth_coalitions, and
 *                   truth_correlation of its halves; paper_loss, paper_seconds: what the paper
 *                   reports
 *   value_function  of a loss or the truth: the models that judge
 *   way             top, bottom, add
 *   set             right, all
 *   share           of the players removed or added; 0 for the loss with all players
 *   seed            empty: over all seeds; else the mean of one
 *   mean, sd, error, count
 *
 * Fields that mean nothing or were not measured are empty; what was not measured at all has no
 * line. Numbers have as many digits as bring the same bits back.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

/* What a line begins with, and what it says. Texts may be "". */
typedef struct line {
    const char *data, *method, *what, *value, *way, *set;
    double share;       /* NaN: none */
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
    const char *const texts[] = {l->data, l->method, l->what, l->value, l->way, l->set};
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

/* The same line for each seed by itself; means: those of the seeds, at place at where each is a
 * list of its own. */
static void add_seeds(fds__text *csv, const line *of_all, const json_t *seeds, const json_t *means,
                      size_t at) {
    for (size_t i = 0; i < json_array_size(means); i++) {
        const json_t *mean = json_array_get(means, i);
        line l = *of_all;
        l.seed = json_array_get(seeds, i);
        l.mean = json_is_array(mean) ? report_number_at(mean, at) : report_number_at(means, i);
        l.sd = l.error = l.count = NAN;
        add_line(csv, &l);
    }
}

static void add_truth(fds__text *csv, const json_t *data, const json_t *judge) {
    const json_t *truth = json_object_get(judge, "truth");
    const json_t *stat = json_object_get(truth, "correlation");
    line l = {.data = report_text_of(data, "name"),
              .method = "",
              .what = "truth_coalitions",
              .value = report_text_of(judge, "value"),
              .way = "",
              .set = "",
              .share = NAN,
              .mean = report_number_of(truth, "coalitions"),
              .sd = NAN,
              .error = NAN,
              .count = NAN};
    add_line(csv, &l);
    l.what = "truth_correlation";
    l.mean = report_number_of(stat, "mean");
    l.sd = report_number_of(stat, "sd");
    l.count = report_number_of(stat, "count");
    l.error = l.sd / sqrt(l.count);
    add_line(csv, &l);
}

static void add_judged(fds__text *csv, const json_t *data) {
    const json_t *judged = json_object_get(data, "judged");
    for (size_t i = 0; i < json_array_size(judged); i++) {
        const json_t *judge = json_array_get(judged, i), *losses = json_object_get(judge, "losses");
        for (size_t k = 0; k < json_array_size(losses); k++) {
            const json_t *loss = json_array_get(losses, k);
            line l = {.data = report_text_of(data, "name"),
                      .method = "",
                      .what = "loss",
                      .value = report_text_of(judge, "value"),
                      .way = "",
                      .set = report_text_of(loss, "set"),
                      .mean = report_number_of(loss, "mean"),
                      .sd = report_number_of(loss, "sd"),
                      .error = report_number_of(loss, "error"),
                      .count = report_number_of(loss, "count")};
            add_line(csv, &l);
            add_seeds(csv, &l, json_object_get(data, "seeds"), json_object_get(loss, "by_seed"), 0);
        }
        add_truth(csv, data, judge);
    }
}

static void add_losses(fds__text *csv, const json_t *data, const json_t *row) {
    const json_t *shares = json_object_get(json_object_get(data, "settings"), "shares");
    const json_t *losses = json_object_get(row, "losses");
    for (size_t i = 0; i < json_array_size(losses); i++) {
        const json_t *loss = json_array_get(losses, i), *means = json_object_get(loss, "mean");
        for (size_t k = 0; k < json_array_size(means); k++) {
            line l = {.data = report_text_of(data, "name"),
                      .method = report_text_of(row, "method"),
                      .what = "loss",
                      .value = report_text_of(loss, "value"),
                      .way = report_text_of(loss, "way"),
                      .set = report_text_of(loss, "set"),
                      .share = report_number_at(shares, k),
                      .mean = report_number_at(means, k),
                      .sd = report_number_at(json_object_get(loss, "sd"), k),
                      .error = report_number_at(json_object_get(loss, "error"), k),
                      .count = report_number_of(loss, "count")};
            add_line(csv, &l);
            add_seeds(csv, &l, json_object_get(data, "seeds"), json_object_get(loss, "by_seed"), k);
        }
    }
}

/* A number that is one a seed: outer.key of the row, or key where outer is NULL. */
static void add_stat(fds__text *csv, const json_t *data, const json_t *row, const char *outer,
                     const char *key) {
    const json_t *stat = json_object_get(outer ? json_object_get(row, outer) : row, key);
    double sd = report_number_of(stat, "sd"), count = report_number_of(stat, "count");
    line l = {.data = report_text_of(data, "name"),
              .method = report_text_of(row, "method"),
              .what = key,
              .value = "",
              .way = "",
              .set = "",
              .share = NAN,
              .mean = report_number_of(stat, "mean"),
              .sd = sd,
              .error = sd / sqrt(count),
              .count = count};
    add_line(csv, &l);
}

static void add_paper(fds__text *csv, const json_t *data, const json_t *row) {
    const json_t *paper = json_object_get(row, "paper"), *means = json_object_get(paper, "mean");
    line l = {.data = report_text_of(data, "name"),
              .method = report_text_of(row, "method"),
              .what = "paper_loss",
              .value = "",
              .way = "top",
              .set = "",
              .error = NAN,
              .count = NAN};
    for (size_t k = 0; k < json_array_size(means); k++) {
        l.share = report_number_at(json_object_get(paper, "shares"), k);
        l.mean = report_number_at(means, k);
        l.sd = report_number_at(json_object_get(paper, "sd"), k);
        add_line(csv, &l);
    }
    l.what = "paper_seconds";
    l.way = "";
    l.share = l.sd = NAN;
    l.mean = report_number_of(paper, "seconds");
    add_line(csv, &l);
}

fds_status report_csv(const json_t *report, fds__text *csv, fds_error *err) {
    static const struct {
        const char *outer, *key;
    } stats[] = {
        {"agreement", "correlation"}, {"agreement", "within"}, {"agreement", "relative_error"},
        {"agreement", "gap"},         {NULL, "area"},          {NULL, "sub_models"},
        {"orders", "walked"},         {"timing", "prepare_s"}, {"timing", "answer_ms"}};
    const json_t *list = json_object_get(report, "data");
    fds__text_print(csv,
                    "data,method,what,value_function,way,set,share,seed,mean,sd,error,count\n");
    for (size_t d = 0; d < json_array_size(list); d++) {
        const json_t *data = json_array_get(list, d), *rows = json_object_get(data, "rows");
        add_judged(csv, data);
        for (size_t r = 0; r < json_array_size(rows); r++) {
            const json_t *row = json_array_get(rows, r);
            add_losses(csv, data, row);
            for (size_t k = 0; k < sizeof stats / sizeof *stats; k++)
                add_stat(csv, data, row, stats[k].outer, stats[k].key);
            add_paper(csv, data, row);
        }
    }
    return fds__text_check(csv, err);
}
