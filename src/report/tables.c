/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of report.html: value losses at a few shares, and everything else that is one number
 * per method. Every number in a cell stands in an element that says where in report.json it comes
 * from (see report.h).
 */
#include "report/report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { COLUMNS = 4 }; /* shares that a table has, at most */

static const char *const headings[REPORT_KINDS] = {"The paper’s methods", "Beyond the paper",
                                                   "The paper’s baselines", "Other baselines",
                                                   "Controls"};

/* ---- cells ---- */

/* The number at a path within the data, between two pieces of markup; nothing where there is none.
 * decimals -1: about three digits. */
__attribute__((format(printf, 5, 6))) static void add_number(const report_view *v,
                                                             const char *before, const char *after,
                                                             int decimals, const char *format,
                                                             ...) {
    char path[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    double value = report_number_of(v->data, path);
    if (!isfinite(value))
        return;
    fds__text_print(v->html, "%s<span data-path=\"/data/%zu/%s\">", before, v->at, path);
    draw_number(v->html, decimals < 0 ? draw_decimals(value) : decimals, value);
    fds__text_print(v->html, "</span>%s", after);
}

/* Opens a cell; the standard deviation shows where the pointer rests. */
static void open_cell(fds__text *html, const char *what, int decimals, double sd) {
    draw_markup(html, "<td");
    if (isfinite(sd)) {
        fds__text_print(html, " title=\"%s ", what);
        draw_number(html, decimals < 0 ? draw_decimals(sd) : decimals, sd);
        draw_markup(html, "\"");
    }
    draw_markup(html, ">");
}

static void add_empty(fds__text *html) { draw_markup(html, "<td class=\"none\">–</td>"); }

/* The rows of each kind under a heading: those for which has is true (NULL: all). add writes what
 * follows the title. */
static void add_rows(const report_view *v, size_t columns, const void *table,
                     bool (*has)(const report_view *v, const json_t *row),
                     void (*add)(const void *table, const json_t *row, size_t r)) {
    for (int kind = 0; kind < REPORT_KINDS; kind++) {
        const json_t *row;
        bool is_open = false;
        for (size_t r = 0; (row = json_array_get(v->rows, r)); r++) {
            if ((int)report_kind_of(row) != kind || (has && !has(v, row)))
                continue;
            if (!is_open)
                fds__text_print(v->html,
                                "<tbody>\n<tr class=\"kind\"><th colspan=\"%zu\" "
                                "scope=\"rowgroup\">%s</th></tr>\n",
                                columns + 1, headings[kind]);
            is_open = true;
            draw_markup(v->html, "<tr><th scope=\"row\">");
            draw_text(v->html, report_text_of(row, "title"));
            add(table, row, r);
            draw_markup(v->html, "</tr>\n");
        }
        draw_markup(v->html, is_open ? "</tbody>\n" : "");
    }
}

/* ---- losses ---- */

/* A table of losses. */
typedef struct losses {
    const report_view *v;
    const char *usual;               /* the utility function of most rows */
    size_t shares[COLUMNS], columns; /* places in the list of shares */
} losses;

static bool has_entry(const report_view *v, const json_t *row) {
    return report_entry(v, row, NULL) && json_array_size(v->shares) > 0;
}

bool report_has_losses(const report_view *v) { return report_any_row(v, has_entry); }

/* Of the utility functions that rows of the table have, the one of most rows. */
static const char *find_usual(const report_view *v) {
    const char *usual = v->utility ? v->utility : "";
    size_t most = 0;
    const json_t *row, *other;
    for (size_t r = 0; !v->utility && (row = json_array_get(v->rows, r)); r++) {
        const char *utility = report_text_of(row, "utility");
        size_t count = 0;
        for (size_t k = 0; (other = json_array_get(v->rows, k)); k++)
            count += strcmp(report_text_of(other, "utility"), utility) == 0 &&
                     report_entry(v, other, NULL);
        usual = count > most ? utility : usual;
        most = MAX(most, count);
    }
    return usual;
}

static bool is_papers(double share) {
    bool is_one = false;
    for (size_t k = 0; k < REPORT_PAPER_SHARES; k++)
        is_one |= fabs(share - report_paper_shares[k]) < 1e-9;
    return is_one;
}

/* The paper's shares if they were measured; then the first others, while columns are left. */
static void find_shares(losses *t) {
    size_t count = json_array_size(t->v->shares), others = COLUMNS;
    for (size_t i = 0; i < count; i++)
        others -= is_papers(report_number_at(t->v->shares, i));
    for (size_t i = 0; i < count && t->columns < COLUMNS; i++)
        if (is_papers(report_number_at(t->v->shares, i)) || others > 0) {
            others -= !is_papers(report_number_at(t->v->shares, i));
            t->shares[t->columns++] = i;
        }
}

static bool is_top(const report_view *v) { return strcmp(v->removal, "top") == 0; }

static losses make_losses(const report_view *v) {
    losses t = {.v = v, .usual = find_usual(v)};
    find_shares(&t);
    return t;
}

static void add_loss(const losses *t, const json_t *row, size_t r, const json_t *entry, size_t at,
                     size_t column) {
    const report_view *v = t->v;
    size_t share = t->shares[column], k = 0;
    double mean = report_number_at(report_at(entry, "mean"), share);
    if (!isfinite(mean)) {
        add_empty(v->html);
        return;
    }
    const char *list = report_list(v);
    bool is_ahead = report_is_ahead(v->rows, list, row, entry, share);
    open_cell(v->html, "standard deviation", 2, report_number_at(report_at(entry, "sd"), share));
    add_number(v, is_ahead ? "<b>" : "", is_ahead ? "</b>" : "", 2, "rows/%zu/%s/%zu/mean/%zu", r,
               list, at, share);
    add_number(v, "<i> ± ", "</i>", 2, "rows/%zu/%s/%zu/error/%zu", r, list, at, share);
    /* the paper reports losses of a row's own models, on samples classified correctly */
    if (!v->list && isfinite(report_paper_at(row, report_number_at(v->shares, share), &k)) &&
        is_top(v) && strcmp(v->set, "correct") == 0 &&
        strcmp(report_text_of(entry, "utility"), report_text_of(row, "utility")) == 0)
        add_number(v, "<small>paper ", "</small>", 2, "rows/%zu/paper/mean/%zu", r, k);
    draw_markup(v->html, "</td>");
}

static void add_loss_row(const void *table, const json_t *row, size_t r) {
    const losses *t = table;
    fds__text *html = t->v->html;
    size_t at = 0;
    const json_t *entry = report_entry(t->v, row, &at);
    draw_markup(html, " <code>");
    draw_text(html, report_text_of(row, "method"));
    draw_markup(html, "</code>");
    if (strcmp(report_text_of(entry, "utility"), t->usual) != 0) {
        draw_markup(html, "<small>with ");
        report_utility(html, report_text_of(entry, "utility"));
        draw_markup(html, "</small>");
    }
    draw_markup(html, "</th>");
    for (size_t c = 0; c < t->columns; c++)
        add_loss(t, row, r, entry, at, c);
}

/* Whether a row of the table has losses by a utility function. */
static bool is_used(const report_view *v, const char *utility) {
    const json_t *row;
    for (size_t r = 0; (row = json_array_get(v->rows, r)); r++)
        if (strcmp(report_text_of(report_entry(v, row, NULL), "utility"), utility) == 0)
            return true;
    return false;
}

/* The loss before anything is removed, for each utility function of the table. */
static void add_bases(const losses *t) {
    const report_view *v = t->v;
    const json_t *of;
    bool is_open = false;
    for (size_t u = 0; (of = json_array_get(report_at(v->data, "utilities"), u)); u++) {
        size_t at = 0;
        const char *list = report_list(v);
        const json_t *entry = report_find(report_at(of, list), "set", v->set, &at);
        if (!is_used(v, report_text_of(of, "utility")) ||
            !isfinite(report_number_of(entry, "mean")) ||
            !isfinite(report_number_of(entry, "count")))
            continue;
        draw_markup(v->html, is_open ? "" : "<tfoot>\n");
        is_open = true;
        draw_markup(v->html, "<tr><th scope=\"row\">With all players<small>with ");
        report_utility(v->html, report_text_of(of, "utility"));
        fds__text_print(v->html, "</small></th><td colspan=\"%zu\">", t->columns);
        add_number(v, "", "", 2, "utilities/%zu/%s/%zu/mean", u, list, at);
        add_number(v, "<i> ± ", "</i>", 2, "utilities/%zu/%s/%zu/error", u, list, at);
        add_number(v, "<small>test samples: ", "</small>", 0, "utilities/%zu/%s/%zu/count", u, list,
                   at);
        draw_markup(v->html, "</td></tr>\n");
    }
    draw_markup(v->html, is_open ? "</tfoot>\n" : "");
}

static bool is_mixed(const report_view *v) { return !v->utility; }
static void write_usual(const report_view *v) { report_utility(v->html, find_usual(v)); }

static bool is_restarted(const report_view *v) { return v->list != NULL; }
static bool is_kept(const report_view *v) { return strcmp(v->removal, "keep_top") == 0; }

/* ", 1 of 3 seeds" where no row has more. */
static void write_seeds(const report_view *v) {
    size_t seeds = json_array_size(report_at(v->data, "seeds")), most = 0;
    const json_t *row, *means;
    for (size_t r = 0; (row = json_array_get(v->rows, r)); r++) {
        const json_t *entry = report_entry(v, row, NULL);
        size_t count = 0;
        for (size_t i = 0; (means = json_array_get(report_at(entry, "by_seed"), i)); i++)
            count += json_is_array(means);
        most = MAX(most, count);
    }
    if (most < seeds)
        fds__text_print(v->html, ", %zu of %zu seeds", most, seeds);
}

static void write_shares(const report_view *v) {
    const losses t = make_losses(v);
    for (size_t c = 0; c < t.columns; c++) {
        draw_markup(v->html, "<th scope=\"col\">");
        fds__text_digits(v->html, 4, 100 * report_number_at(v->shares, t.shares[c]));
        draw_markup(v->html, " %</th>");
    }
}

static void write_loss_rows(const report_view *v) {
    const losses t = make_losses(v);
    add_rows(v, t.columns, &t, has_entry, add_loss_row);
    if (is_top(v))
        add_bases(&t);
}

static void write_loss_table(const report_view *v) { report_fill(v, "losses"); }

/* ---- linear datamodeling scores ---- */

/* A column for each utility function and list that any row has. */
static bool has_score(const report_view *v, const json_t *row) {
    return report_find_entry(row, v->list, v->utility, "", "", NULL) != NULL;
}

/* Calls add for each column, with a view of its list and utility function; returns how many. */
static size_t each_score(const report_view *v, void (*add)(const report_view *v)) {
    const json_t *of;
    report_view view = *v;
    size_t count = 0;
    for (size_t u = 0; (of = json_array_get(report_at(v->data, "utilities"), u)); u++)
        for (size_t l = 2; report_lists[l]; l++) {
            view.list = report_lists[l];
            view.utility = report_text_of(of, "utility");
            if (!report_any_row(&view, has_score))
                continue;
            count++;
            if (add)
                add(&view);
        }
    return count;
}

static bool is_other_seeds(const report_view *v) { return strcmp(v->list, report_lists[2]) != 0; }

static void add_score_head(const report_view *v) {
    draw_markup(v->html, "<th scope=\"col\">");
    draw_markup(v->html, is_other_seeds(v) ? "Other seeds" : "Same seed");
    draw_markup(v->html, "<small>");
    draw_text(v->html, report_models(v->utility));
    draw_markup(v->html, "</small></th>");
}

static void add_score(const report_view *v) {
    const json_t *row = json_array_get(v->rows, v->place);
    size_t at = 0;
    const json_t *entry = report_find_entry(row, v->list, v->utility, "", "", &at);
    if (!isfinite(report_number_of(entry, "mean"))) {
        add_empty(v->html);
        return;
    }
    bool is_ahead = report_is_ahead(v->rows, v->list, row, entry, 0);
    open_cell(v->html, "standard deviation", 3, report_number_of(entry, "sd"));
    add_number(v, is_ahead ? "<b>" : "", is_ahead ? "</b>" : "", 3, "rows/%zu/%s/%zu/mean",
               v->place, v->list, at);
    add_number(v, "<i> ± ", "</i>", 3, "rows/%zu/%s/%zu/error", v->place, v->list, at);
    draw_markup(v->html, "</td>");
}

static void add_score_row(const void *table, const json_t *row, size_t r) {
    (void)row;
    report_view view = *(const report_view *)table;
    view.place = r;
    draw_markup(view.html, "</th>");
    each_score(&view, add_score);
}

/* The score of the values that stand for the truth. */
static void add_truth_score(const report_view *v) {
    size_t u = 0, at = 0;
    const json_t *of = report_find(report_at(v->data, "utilities"), "utility", v->utility, &u);
    const json_t *entry = report_find_entry(of, v->list, v->utility, "", "", &at);
    if (!isfinite(report_number_of(entry, "mean"))) {
        add_empty(v->html);
        return;
    }
    draw_markup(v->html, "<td>");
    add_number(v, "", "", 3, "utilities/%zu/%s/%zu/mean", u, v->list, at);
    add_number(v, "<i> ± ", "</i>", 3, "utilities/%zu/%s/%zu/error", u, v->list, at);
    draw_markup(v->html, "</td>");
}

static bool has_scores(const report_view *v) { return v->data && each_score(v, NULL) > 0; }
static void write_scores(const report_view *v) { report_fill(v, "scores"); }
static void write_score_heads(const report_view *v) { each_score(v, add_score_head); }
static void write_score_rows(const report_view *v) {
    bool has_truth = false;
    const json_t *of;
    add_rows(v, each_score(v, NULL), v, NULL, add_score_row);
    for (size_t u = 0; (of = json_array_get(report_at(v->data, "utilities"), u)); u++)
        has_truth |= json_array_size(report_at(of, "lds")) > 0;
    if (!has_truth)
        return;
    draw_markup(v->html, "<tfoot>\n<tr><th scope=\"row\">Values that stand for the truth</th>");
    each_score(v, add_truth_score);
    draw_markup(v->html, "</tr>\n</tfoot>\n");
}

/* The number of half coalitions, of the first entry. */
static void write_halves(const report_view *v) {
    const json_t *row;
    for (size_t r = 0; (row = json_array_get(v->rows, r)); r++)
        if (isfinite(report_number_of(row, "lds/0/coalitions"))) {
            add_number(v, "", "", 0, "rows/%zu/lds/0/coalitions", r);
            return;
        }
}

/* ---- one number per method ---- */

typedef struct measure {
    const char *path, *heading, *unit;
    int decimals;
    bool has_spread; /* show the standard deviation over seeds */
} measure;

static const measure measures[] = {
    {"agreement/correlation", "Correlation", "with the truth", 3, true},
    {"agreement/class_correlation", "Correlation", "within the class", 3, true},
    {"agreement/relative_error", "Error", "relative", 3, true},
    {"agreement/efficiency_gap", "Efficiency gap", "relative", 3, false},
    {"auc", "Mislabel detection", "AUC", 3, true},
    {"sub_models", "Sub-models", "trained", 0, false},
    {"timing/prepare_s", "Prepare", "seconds", -1, false},
    {"timing/answer_ms", "New sample", "ms", -1, false},
};
enum { MEASURES = sizeof measures / sizeof *measures };

/* Labels are flipped several times per seed. */
static bool is_by_flips(const measure *m) { return strcmp(m->path, "auc") == 0; }

/* The most seeds, or flips, that a row of the column has; -1: no row has the measure. */
static double seeds_of(const report_view *v, const measure *m) {
    double most = -1;
    const json_t *row;
    for (size_t r = 0; (row = json_array_get(v->rows, r)); r++) {
        const json_t *stat = report_at(row, m->path);
        most = fmax(most, json_is_object(stat) ? fmax(0, report_number_of(stat, "count")) : -1);
    }
    return most;
}

/* Small print: baselines count every sub-model that they request, and a row may have fewer seeds
 * than its column. */
static void add_remarks(const report_view *v, const json_t *row, size_t r, const measure *m) {
    const json_t *stat = report_at(row, m->path);
    bool is_baseline = report_kind_of(row) == REPORT_PAPER || report_kind_of(row) == REPORT_OTHER;
    if (strcmp(m->path, "sub_models") == 0 && is_baseline && report_number_of(stat, "mean") > 0)
        draw_markup(v->html, "<small>requested</small>");
    if (m->has_spread)
        add_number(v, "<small>sd ", "</small>", 3, "rows/%zu/%s/sd", r, m->path);
    if (is_by_flips(m) && report_kind_of(row) != REPORT_CONTROL &&
        json_is_false(report_at(row, "auc_terms/is_equal")))
        draw_markup(v->html, "<small>own terms</small>");
    if (report_number_of(stat, "count") < seeds_of(v, m))
        add_number(v, is_by_flips(m) ? "<small>flips: " : "<small>seeds: ", "</small>", 0,
                   "rows/%zu/%s/count", r, m->path);
}

static void add_measure(const report_view *v, const json_t *row, size_t r, const measure *m) {
    const json_t *stat = report_at(row, m->path);
    bool is_seconds = strcmp(m->path, "timing/prepare_s") == 0;
    bool has_mean = isfinite(report_number_of(stat, "mean"));
    bool has_paper = is_seconds && isfinite(report_number_of(row, "paper/seconds"));
    if (strcmp(m->path, "timing/answer_ms") == 0 &&
        json_is_false(report_at(row, "is_per_sample"))) {
        draw_markup(v->html, "<td class=\"none\">same for all</td>");
        return;
    }
    if (!has_mean && !has_paper) {
        add_empty(v->html);
        return;
    }
    open_cell(v->html, "standard deviation over seeds", m->decimals, report_number_of(stat, "sd"));
    if (has_mean) {
        /* of an interrupted method only the last part was timed */
        bool is_part = is_seconds && json_is_true(report_at(row, "timing/was_resumed"));
        add_number(v, is_part ? "≥ " : "", "", m->decimals, "rows/%zu/%s/mean", r, m->path);
        add_remarks(v, row, r, m);
    }
    if (has_paper)
        add_number(v, "<small>paper ", "</small>", -1, "rows/%zu/paper/seconds", r);
    draw_markup(v->html, "</td>");
}

static void add_measure_row(const void *table, const json_t *row, size_t r) {
    const report_view *v = table;
    draw_markup(v->html, "</th>");
    for (size_t m = 0; m < MEASURES; m++)
        if (seeds_of(v, &measures[m]) >= 0)
            add_measure(v, row, r, &measures[m]);
}

static void write_measure_rows(const report_view *v) {
    size_t columns = 0;
    for (size_t m = 0; m < MEASURES; m++)
        columns += seeds_of(v, &measures[m]) >= 0;
    add_rows(v, columns, v, NULL, add_measure_row);
}

static void write_measure_heads(const report_view *v) {
    double all = (double)json_array_size(report_at(v->data, "seeds"));
    for (const measure *m = measures; m < measures + MEASURES; m++) {
        double seeds = seeds_of(v, m);
        if (seeds < 0)
            continue;
        fds__text_print(v->html, "<th scope=\"col\">%s<small>%s</small>", m->heading, m->unit);
        if (is_by_flips(m)) {
            draw_markup(v->html, "<small>");
            report_counted(v->html, (size_t)seeds, "flip");
            draw_markup(v->html, "</small>");
        } else if (seeds < all)
            fds__text_print(v->html, "<small>%.0f of %.0f seeds</small>", seeds, all);
        draw_markup(v->html, "</th>");
    }
}

/* ---- how far the truth can be trusted ---- */

static void write_coalitions(const report_view *v) {
    add_number(v, "", "", 0, "utilities/%zu/truth/coalitions", v->place);
}
static void write_correlation(const report_view *v) {
    add_number(v, "", "", 3, "utilities/%zu/truth/correlation/mean", v->place);
}

static void write_truths(const report_view *v) {
    const json_t *of;
    report_view view = *v;
    for (; (of = json_array_get(report_at(v->data, "utilities"), view.place)); view.place++) {
        view.utility = report_text_of(of, "utility");
        if (isfinite(report_number_of(of, "truth/coalitions")) &&
            isfinite(report_number_of(of, "truth/correlation/mean")))
            report_fill(&view, "truth");
    }
}

/* ---- methods stopped by the number of permutations, not by their own rule ---- */

static bool was_stopped(const report_view *v, const json_t *row) {
    (void)v;
    return json_is_false(report_at(row, "permutations/has_converged")) &&
           isfinite(report_number_of(row, "permutations/sampled/mean"));
}

static bool has_stopped(const report_view *v) { return report_any_row(v, was_stopped); }

static void write_title(const report_view *v) {
    draw_text(v->html, report_text_of(json_array_get(v->rows, v->place), "title"));
}

static void write_sampled(const report_view *v) {
    double sampled =
        report_number_of(json_array_get(v->rows, v->place), "permutations/sampled/mean");
    add_number(v, "", "", sampled != floor(sampled), "rows/%zu/permutations/sampled/mean",
               v->place);
}

static void write_stopped(const report_view *v) {
    report_view view = *v;
    for (; view.place < json_array_size(v->rows); view.place++)
        if (was_stopped(v, json_array_get(v->rows, view.place)))
            report_fill(&view, "stopped");
}

static bool has_measures(const report_view *v) {
    double most = -1;
    for (size_t m = 0; m < MEASURES; m++)
        most = fmax(most, seeds_of(v, &measures[m]));
    return most >= 0;
}

static void write_measures(const report_view *v) { report_fill(v, "measures"); }

const report_slot report_table_slots[] = {
    {"correct", write_loss_table, report_has_losses, "correct"},
    {"all", write_loss_table, report_has_losses, "all"},
    {"losses", write_loss_table, NULL, NULL},
    {"usual", write_usual, NULL, NULL},
    {"mixed", NULL, is_mixed, NULL},
    {"restarted", NULL, is_restarted, NULL},
    {"seeds", write_seeds, NULL, NULL},
    {"top", NULL, is_top, NULL},
    {"kept", NULL, is_kept, NULL},
    {"shares", write_shares, NULL, NULL},
    {"loss_rows", write_loss_rows, NULL, NULL},
    {"scores", write_scores, has_scores, NULL},
    {"score_heads", write_score_heads, NULL, NULL},
    {"score_rows", write_score_rows, NULL, NULL},
    {"halves", write_halves, NULL, NULL},
    {"measures", write_measures, has_measures, NULL},
    {"truths", write_truths, NULL, NULL},
    {"coalitions", write_coalitions, NULL, NULL},
    {"correlation", write_correlation, NULL, NULL},
    {"measure_heads", write_measure_heads, NULL, NULL},
    {"measure_rows", write_measure_rows, NULL, NULL},
    {"stopped", write_stopped, has_stopped, NULL},
    {"title", write_title, NULL, NULL},
    {"sampled", write_sampled, NULL, NULL},
    {.name = NULL}};
