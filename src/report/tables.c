/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of report.html: value losses at a few shares, and everything else that is one number a
 * method. Every number in a cell stands in an element that says where in
 * report.json it comes from (see report.h).
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = 4 }; /* shares that a table has, at most */

static const char *const headings[REPORT_KINDS] = {"The paper’s methods", "Beyond the paper",
                                                   "The paper’s baselines", "Others", "Controls"};

/* ---- cells ---- */

/* path: within the section's data. */
static void add_number(const report_section *s, const char *path, int decimals, double value) {
    fds__text_print(s->html, "<span data-path=\"/data/%zu/%s\">", s->at, path);
    draw_number(s->html, decimals, value);
    draw_markup(s->html, "</span>");
}

static void add_empty(fds__text *html) { draw_markup(html, "<td class=\"none\">–</td>"); }

/* Left open, for more to be said about the row. */
static void open_row(const report_section *s, const json_t *row) {
    draw_markup(s->html, "<tr><th scope=\"row\">");
    draw_text(s->html, report_text_of(row, "title"));
}

/* The same with its name; note: a value function that the reader would not expect, or NULL. */
static void open_loss_row(const report_section *s, const json_t *row, const char *note) {
    open_row(s, row);
    draw_markup(s->html, " <code>");
    draw_text(s->html, report_text_of(row, "method"));
    draw_markup(s->html, "</code>");
    if (note) {
        draw_markup(s->html, "<small>by ");
        report_utility(s->html, note);
        draw_markup(s->html, "</small>");
    }
    draw_markup(s->html, "</th>");
}

static void open_kind(const report_section *s, report_kind kind, size_t columns) {
    fds__text_print(
        s->html,
        "<tbody>\n<tr class=\"kind\"><th colspan=\"%zu\" scope=\"rowgroup\">%s</th></tr>\n",
        columns, headings[kind]);
}

/* ---- losses ---- */

/* A table of losses: who is in it, and what is best. */
typedef struct losses {
    const report_section *section;
    const char *value, *way, *set;   /* value NULL: each row's own */
    const char *usual;               /* the value function that most rows are judged by */
    size_t shares[COLUMNS], columns; /* places in the list of shares */
    double best[COLUMNS];            /* of the rows that are ranked; NaN: none */
} losses;

/* Of the value functions that rows of the table are judged by, the one of most rows. */
static const char *find_usual(const report_section *s, const char *set) {
    const char *usual = "";
    size_t most = 0;
    for (size_t r = 0; r < json_array_size(s->rows); r++) {
        const char *value = report_text_of(json_array_get(s->rows, r), "utility");
        size_t count = 0;
        for (size_t k = 0; k < json_array_size(s->rows); k++) {
            const json_t *row = json_array_get(s->rows, k);
            count += strcmp(report_text_of(row, "utility"), value) == 0 &&
                     report_losses_find(row, value, "top", set, NULL);
        }
        if (count > most) {
            most = count;
            usual = value;
        }
    }
    return usual;
}

static bool is_papers(double share) {
    bool is_one = false;
    for (size_t k = 0; k < REPORT_PAPER_SHARES; k++)
        is_one |= fabs(share - report_paper_shares[k]) < 1e-9;
    return is_one;
}

/* The paper's shares where they were measured, and the first of the others where there is room. */
static void find_shares(losses *t) {
    const json_t *shares = t->section->shares;
    size_t count = json_array_size(shares), others = COLUMNS;
    for (size_t i = 0; i < count; i++)
        others -= is_papers(report_number_at(shares, i));
    for (size_t i = 0; i < count && t->columns < COLUMNS; i++)
        if (is_papers(report_number_at(shares, i)) || others > 0) {
            others -= !is_papers(report_number_at(shares, i));
            t->shares[t->columns++] = i;
        }
}

static const json_t *find_entry(const losses *t, const json_t *row, size_t *at) {
    const char *value = t->value ? t->value : report_text_of(row, "utility");
    return report_losses_find(row, value, t->way, t->set, at);
}

static bool is_top(const losses *t) { return strcmp(t->way, "top") == 0; }

/* Losses by different models do not compare, and controls are no methods. */
static bool is_ranked(const losses *t, const json_t *row, const json_t *entry) {
    return report_kind_of(row) != REPORT_CONTROL &&
           strcmp(report_text_of(entry, "utility"), t->usual) == 0;
}

/* The greatest loss where the most valuable are removed, the least in the two other ways; false: no
 * row has anything. */
static bool find_best(losses *t) {
    bool has_any = false;
    for (size_t c = 0; c < t->columns; c++)
        t->best[c] = NAN;
    for (size_t r = 0; r < json_array_size(t->section->rows); r++) {
        const json_t *row = json_array_get(t->section->rows, r), *entry = find_entry(t, row, NULL);
        has_any |= entry != NULL;
        for (size_t c = 0; c < t->columns && is_ranked(t, row, entry); c++) {
            double mean = report_number_at(json_object_get(entry, "mean"), t->shares[c]);
            t->best[c] = is_top(t) ? fmax(t->best[c], mean) : fmin(t->best[c], mean);
        }
    }
    return has_any;
}

static void add_loss(const losses *t, const json_t *row, size_t r, const json_t *entry, size_t at,
                     size_t column) {
    const report_section *s = t->section;
    size_t share = t->shares[column];
    double mean = report_number_at(json_object_get(entry, "mean"), share);
    double error = report_number_at(json_object_get(entry, "error"), share);
    double sd = report_number_at(json_object_get(entry, "sd"), share);
    char path[160];
    if (!isfinite(mean)) {
        add_empty(s->html);
        return;
    }
    draw_markup(s->html, "<td");
    if (isfinite(sd)) {
        draw_markup(s->html, " title=\"standard deviation ");
        draw_number(s->html, 2, sd);
        draw_markup(s->html, "\"");
    }
    bool is_best = mean == t->best[column] && is_ranked(t, row, entry);
    draw_markup(s->html, is_best ? "><b>" : ">");
    snprintf(path, sizeof path, "rows/%zu/losses/%zu/mean/%zu", r, at, share);
    add_number(s, path, 2, mean);
    draw_markup(s->html, is_best ? "</b>" : "");
    if (isfinite(error)) {
        draw_markup(s->html, "<i> ± ");
        snprintf(path, sizeof path, "rows/%zu/losses/%zu/error/%zu", r, at, share);
        add_number(s, path, 2, error);
        draw_markup(s->html, "</i>");
    }
    /* the paper judges by a row's own models, on samples predicted rightly */
    size_t k = 0;
    double paper = report_paper_at(row, report_number_at(s->shares, share), &k);
    if (isfinite(paper) && is_top(t) && strcmp(t->set, "correct") == 0 &&
        strcmp(report_text_of(entry, "utility"), report_text_of(row, "utility")) == 0) {
        draw_markup(s->html, "<small>paper ");
        snprintf(path, sizeof path, "rows/%zu/paper/mean/%zu", r, k);
        add_number(s, path, 2, paper);
        draw_markup(s->html, "</small>");
    }
    draw_markup(s->html, "</td>");
}

static void add_kind_losses(const losses *t, report_kind kind) {
    const report_section *s = t->section;
    bool is_open = false;
    for (size_t r = 0; r < json_array_size(s->rows); r++) {
        const json_t *row = json_array_get(s->rows, r);
        size_t at = 0;
        const json_t *entry = find_entry(t, row, &at);
        if (!entry || report_kind_of(row) != kind)
            continue;
        if (!is_open)
            open_kind(s, kind, t->columns + 1);
        is_open = true;
        const char *value = report_text_of(entry, "utility");
        open_loss_row(s, row, strcmp(value, t->usual) == 0 ? NULL : value);
        for (size_t c = 0; c < t->columns; c++)
            add_loss(t, row, r, entry, at, c);
        draw_markup(s->html, "</tr>\n");
    }
    if (is_open)
        draw_markup(s->html, "</tbody>\n");
}

/* The loss before anything is removed, for each value function that judges in the table. */
static void add_bases(const losses *t) {
    const report_section *s = t->section;
    const json_t *judged = json_object_get(s->data, "utilities");
    draw_markup(s->html, "<tfoot>\n");
    for (size_t j = 0; j < json_array_size(judged); j++) {
        const json_t *judge = json_array_get(judged, j);
        const char *value = report_text_of(judge, "utility");
        bool judges = t->value && strcmp(t->value, value) == 0;
        for (size_t r = 0; !t->value && r < json_array_size(s->rows); r++) {
            const json_t *row = json_array_get(s->rows, r);
            judges |=
                find_entry(t, row, NULL) && strcmp(report_text_of(row, "utility"), value) == 0;
        }
        size_t at = 0;
        const json_t *entry =
            report_list_find(json_object_get(judge, "losses"), "set", t->set, &at);
        double mean = report_number_of(entry, "mean"), error = report_number_of(entry, "error");
        double count = report_number_of(entry, "count");
        char path[160];
        if (!judges || !isfinite(mean) || !isfinite(count))
            continue;
        draw_markup(s->html, "<tr><th scope=\"row\">With all players<small>by ");
        report_utility(s->html, value);
        fds__text_print(s->html, "</small></th><td colspan=\"%zu\">", t->columns);
        snprintf(path, sizeof path, "utilities/%zu/losses/%zu/mean", j, at);
        add_number(s, path, 2, mean);
        if (isfinite(error)) {
            draw_markup(s->html, "<i> ± ");
            snprintf(path, sizeof path, "utilities/%zu/losses/%zu/error", j, at);
            add_number(s, path, 2, error);
            draw_markup(s->html, "</i>");
        }
        draw_markup(s->html, "<small>test samples ");
        snprintf(path, sizeof path, "utilities/%zu/losses/%zu/count", j, at);
        add_number(s, path, 0, count);
        draw_markup(s->html, "</small></td></tr>\n");
    }
    draw_markup(s->html, "</tfoot>\n");
}

/* Seeds that rows of the table are of, at most. */
static size_t count_seeds(const losses *t) {
    size_t most = 0;
    for (size_t r = 0; r < json_array_size(t->section->rows); r++) {
        const json_t *entry = find_entry(t, json_array_get(t->section->rows, r), NULL);
        const json_t *means = json_object_get(entry, "by_seed");
        size_t count = 0;
        for (size_t i = 0; i < json_array_size(means); i++)
            count += json_is_array(json_array_get(means, i));
        most = MAX(most, count);
    }
    return most;
}

static void add_caption(const losses *t) {
    fds__text *html = t->section->html;
    size_t seeds = json_array_size(json_object_get(t->section->data, "seeds"));
    draw_markup(html, "<caption><span>Value loss ");
    draw_markup(html, is_top(t)                       ? "without the most valuable players"
                      : strcmp(t->way, "bottom") == 0 ? "without the least valuable players"
                                                      : "with the most valuable players alone");
    draw_markup(html, ": mean ± standard error, judged by ");
    report_utility(html, t->usual);
    draw_markup(html, t->value ? "" : " unless a row says otherwise");
    if (count_seeds(t) < seeds)
        fds__text_print(html, ", %zu of %zu seeds", count_seeds(t), seeds);
    fds__text_print(html, ". Bold: the %s of a column%s, controls aside.</span></caption>\n",
                    is_top(t) ? "greatest" : "least", t->value ? "" : " by these models");
}

bool report_table_losses(const report_section *s, const char *value, const char *way,
                         const char *set) {
    losses t = {.section = s, .value = value, .way = way, .set = set};
    t.usual = value ? value : find_usual(s, set);
    find_shares(&t);
    if (!find_best(&t) || t.columns == 0)
        return false;
    draw_markup(s->html, REPORT_SCROLL "<table class=\"losses\">\n");
    add_caption(&t);
    fds__text_print(s->html, "<thead><tr><th scope=\"col\">Players %s</th>",
                    strcmp(way, "keep_top") == 0 ? "trained on" : "removed");
    for (size_t c = 0; c < t.columns; c++) {
        draw_markup(s->html, "<th scope=\"col\">");
        fds__text_digits(s->html, 4, 100 * report_number_at(s->shares, t.shares[c]));
        draw_markup(s->html, " %</th>");
    }
    draw_markup(s->html, "</tr></thead>\n");
    for (int kind = 0; kind < REPORT_KINDS; kind++)
        add_kind_losses(&t, (report_kind)kind);
    if (is_top(&t))
        add_bases(&t);
    draw_markup(s->html, "</table></div>\n");
    return true;
}

/* ---- one number a method ---- */

typedef struct measure {
    const char *outer, *key, *heading, *unit;
    int decimals; /* -1: about three digits */
} measure;

static const measure measures[] = {
    {"agreement", "correlation", "Correlation", "with the truth", 3},
    {"agreement", "class_correlation", "Correlation", "within the class", 3},
    {"agreement", "relative_error", "Error", "relative", 3},
    {"agreement", "efficiency_gap", "Gap", "of the sum", 3},
    {NULL, "auc", "Wrong labels", "auc", 3},
    {NULL, "sub_models", "Sub-models", "trained", 0},
    {"timing", "prepare_s", "To prepare", "seconds", -1},
    {"timing", "answer_ms", "New sample", "ms", -1},
};
enum { MEASURES = sizeof measures / sizeof *measures };

static const json_t *stat_of(const json_t *row, const measure *m) {
    return json_object_get(m->outer ? json_object_get(row, m->outer) : row, m->key);
}

static void name_stat(char *path, size_t size, size_t r, const measure *m, const char *key) {
    snprintf(path, size, "rows/%zu/%s%s%s/%s", r, m->outer ? m->outer : "", m->outer ? "/" : "",
             m->key, key);
}

/* The greatest number of seeds that a row of the column is of. */
static double seeds_of(const report_section *s, const measure *m) {
    double most = 0;
    for (size_t r = 0; r < json_array_size(s->rows); r++)
        most = fmax(most, report_number_of(stat_of(json_array_get(s->rows, r), m), "count"));
    return most;
}

/* Small print: methods of others count every sub-model that they ask for, and a row may be of fewer
 * seeds than its column. */
static void add_remarks(const report_section *s, const json_t *row, size_t r, const measure *m) {
    const json_t *stat = stat_of(row, m);
    bool is_others = report_kind_of(row) == REPORT_PAPER || report_kind_of(row) == REPORT_OTHER;
    double count = report_number_of(stat, "count");
    char path[160];
    if (strcmp(m->key, "sub_models") == 0 && is_others && report_number_of(stat, "mean") > 0)
        draw_markup(s->html, "<small>asked for</small>");
    if (count < seeds_of(s, m)) {
        draw_markup(s->html, "<small>seeds: ");
        name_stat(path, sizeof path, r, m, "count");
        add_number(s, path, 0, count);
        draw_markup(s->html, "</small>");
    }
}

static void add_measure(const report_section *s, const json_t *row, size_t r, const measure *m) {
    const json_t *stat = stat_of(row, m);
    double mean = report_number_of(stat, "mean"), sd = report_number_of(stat, "sd");
    bool is_seconds = strcmp(m->key, "prepare_s") == 0;
    char path[160];
    if (strcmp(m->key, "answer_ms") == 0 && json_is_false(json_object_get(row, "is_per_sample"))) {
        draw_markup(s->html, "<td class=\"none\">the same for all</td>");
        return;
    }
    double paper = is_seconds ? report_number_of(json_object_get(row, "paper"), "seconds") : NAN;
    if (!isfinite(mean) && !isfinite(paper)) {
        add_empty(s->html);
        return;
    }
    draw_markup(s->html, "<td");
    if (isfinite(sd)) {
        draw_markup(s->html, " title=\"standard deviation over seeds ");
        draw_number(s->html, m->decimals < 0 ? draw_decimals(sd) : m->decimals, sd);
        draw_markup(s->html, "\"");
    }
    draw_markup(s->html, ">");
    if (isfinite(mean)) {
        if (is_seconds &&
            json_is_true(json_object_get(json_object_get(row, "timing"), "was_resumed")))
            draw_markup(s->html, "≥ "); /* an interrupted method: the last part alone was timed */
        name_stat(path, sizeof path, r, m, "mean");
        add_number(s, path, m->decimals < 0 ? draw_decimals(mean) : m->decimals, mean);
        add_remarks(s, row, r, m);
    }
    if (isfinite(paper)) {
        draw_markup(s->html, "<small>paper ");
        snprintf(path, sizeof path, "rows/%zu/paper/seconds", r);
        add_number(s, path, draw_decimals(paper), paper);
        draw_markup(s->html, "</small>");
    }
    draw_markup(s->html, "</td>");
}

static void add_kind_measures(const report_section *s, report_kind kind, const bool *is_shown,
                              size_t columns) {
    bool is_open = false;
    for (size_t r = 0; r < json_array_size(s->rows); r++) {
        const json_t *row = json_array_get(s->rows, r);
        if (report_kind_of(row) != kind)
            continue;
        if (!is_open)
            open_kind(s, kind, columns + 1);
        is_open = true;
        open_row(s, row);
        draw_markup(s->html, "</th>");
        for (size_t m = 0; m < MEASURES; m++)
            if (is_shown[m])
                add_measure(s, row, r, &measures[m]);
        draw_markup(s->html, "</tr>\n");
    }
    if (is_open)
        draw_markup(s->html, "</tbody>\n");
}

/* How far the truth itself can be trusted. */
static void add_truths(const report_section *s) {
    const json_t *judged = json_object_get(s->data, "utilities");
    for (size_t j = 0; j < json_array_size(judged); j++) {
        const json_t *judge = json_array_get(judged, j), *truth = json_object_get(judge, "truth");
        double coalitions = report_number_of(truth, "coalitions");
        double mean = report_number_of(json_object_get(truth, "correlation"), "mean");
        char path[160];
        if (!isfinite(coalitions) || !isfinite(mean))
            continue;
        draw_markup(s->html, " The truth by ");
        report_utility(s->html, report_text_of(judge, "utility"));
        draw_markup(s->html, " is of ");
        snprintf(path, sizeof path, "utilities/%zu/truth/coalitions", j);
        add_number(s, path, 0, coalitions);
        draw_markup(s->html, " coalitions; values from either half of them correlate by ");
        snprintf(path, sizeof path, "utilities/%zu/truth/correlation/mean", j);
        add_number(s, path, 3, mean);
        draw_markup(s->html, ".");
    }
}

/* Who was stopped by the number of orders, not by a rule of its own. */
static void add_stopped(const report_section *s) {
    bool is_open = false;
    for (size_t r = 0; r < json_array_size(s->rows); r++) {
        const json_t *row = json_array_get(s->rows, r),
                     *orders = json_object_get(row, "permutations");
        double walked = report_number_of(json_object_get(orders, "sampled"), "mean");
        char path[160];
        if (!json_is_false(json_object_get(orders, "has_converged")) || !isfinite(walked))
            continue;
        draw_markup(s->html, is_open ? "; " : "<p class=\"soft\">");
        is_open = true;
        draw_text(s->html, report_text_of(row, "title"));
        draw_markup(s->html, " stopped after ");
        snprintf(path, sizeof path, "rows/%zu/permutations/sampled/mean", r);
        add_number(s, path, walked != floor(walked), walked);
        draw_markup(s->html, " orders, before its own rule");
    }
    draw_markup(s->html, is_open ? ".</p>\n" : "");
}

static void add_measure_heading(const report_section *s, const measure *m) {
    size_t seeds = json_array_size(json_object_get(s->data, "seeds"));
    fds__text_print(s->html, "<th scope=\"col\">%s<small>%s</small>", m->heading, m->unit);
    if (seeds_of(s, m) < (double)seeds)
        fds__text_print(s->html, "<small>%.0f of %zu seeds</small>", seeds_of(s, m), seeds);
    draw_markup(s->html, "</th>");
}

void report_table_measures(const report_section *s) {
    bool is_shown[MEASURES] = {false};
    size_t columns = 0;
    for (size_t m = 0; m < MEASURES; m++) {
        for (size_t r = 0; r < json_array_size(s->rows); r++)
            is_shown[m] |= json_is_object(stat_of(json_array_get(s->rows, r), &measures[m]));
        columns += is_shown[m];
    }
    if (columns == 0)
        return;
    draw_markup(
        s->html, REPORT_SCROLL
        "<table class=\"measures\">\n<caption><span>Means over the seeds, or over as many as "
        "a column says.");
    add_truths(s);
    draw_markup(s->html, "</span></caption>\n<thead><tr><th scope=\"col\">Method</th>");
    for (size_t m = 0; m < MEASURES; m++)
        if (is_shown[m])
            add_measure_heading(s, &measures[m]);
    draw_markup(s->html, "</tr></thead>\n");
    for (int kind = 0; kind < REPORT_KINDS; kind++)
        add_kind_measures(s, (report_kind)kind, is_shown, columns);
    draw_markup(s->html, "</table></div>\n");
    add_stopped(s);
}
