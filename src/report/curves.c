/* SPDX-License-Identifier: Apache-2.0
 *
 * Curves in the form of pyDVL: accuracy against the share of players removed, precision and recall
 * of wrong labels against the share inspected. They are joined here over cases, and drawn.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

enum { MOST_CURVES = 8 };
#define BAND 1.96 /* standard errors */

/* ---- joined over cases ---- */

static const json_t *find_curve(const json_t *row, const char *measure, const char *removal) {
    const json_t *entry;
    for (size_t i = 0; (entry = json_array_get(report_at(row, "curves"), i)); i++)
        if (strcmp(report_text_of(entry, "measure"), measure) == 0 &&
            strcmp(report_text_of(entry, "removal"), removal) == 0)
            return entry;
    return NULL;
}

/* Of the samples of one share in all cases. */
static report_stat pool_share(const report_cases *g, const char *method, const json_t *like,
                              size_t k) {
    double count = 0, sum = 0, squares = 0;
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < g->count; i++) {
            const json_t *row = report_find(report_at(g->cases[i], "rows"), "method", method, NULL);
            const json_t *curve =
                find_curve(row, report_text_of(like, "measure"), report_text_of(like, "removal"));
            const json_t *samples = json_array_get(report_at(curve, "samples"), k);
            for (size_t s = 0; s < json_array_size(samples); s++) {
                double sample = report_number_at(samples, s);
                if (turn)
                    squares += pow(sample - sum / count, 2);
                else {
                    sum += sample;
                    count++;
                }
            }
        }
    double sd = count > 1 ? sqrt(squares / (count - 1)) : NAN;
    return (report_stat){count, sum / count, sd, sd / sqrt(count)};
}

json_t *report_join_curves(const report_cases *g, const char *method, const json_t *first) {
    json_t *out = json_array();
    const json_t *like;
    bool is_whole = out != NULL;
    for (size_t i = 0; is_whole && (like = json_array_get(report_at(first, "curves"), i)); i++) {
        json_t *mean = json_array(), *sd = json_array(), *error = json_array();
        double count = 0;
        for (size_t k = 0; k < json_array_size(report_at(like, "samples")); k++) {
            const report_stat stat = pool_share(g, method, like, k);
            is_whole &= fds__json_append(mean, fds__json_real(stat.mean)) &&
                        fds__json_append(sd, fds__json_real(stat.sd)) &&
                        fds__json_append(error, fds__json_real(stat.error));
            count = stat.count;
        }
        is_whole &= fds__json_append(out, json_pack("{s:s, s:s, s:I, s:o, s:o, s:o}", "measure",
                                                    report_text_of(like, "measure"), "removal",
                                                    report_text_of(like, "removal"), "count",
                                                    (json_int_t)count, "mean", mean, "sd", sd,
                                                    "error", error));
    }
    return fds__json_keep_if(out, is_whole);
}

/* ---- drawn ---- */

typedef struct {
    const char *measure, *removal, *title, *x_name, *y_name;
    double at_zero; /* what is true of a share of 0; NaN: no point */
} plot;

static bool has_curve(const report_view *v, const plot *p) {
    for (size_t r = 0; r < json_array_size(v->rows); r++)
        if (find_curve(json_array_get(v->rows, r), p->measure, p->removal))
            return true;
    return false;
}

/* numbers: x, then y and band of each row. */
static void fill_plot(const report_view *v, const plot *p, const size_t *rows, size_t count,
                      double *numbers, draw_curve *curves) {
    size_t points = json_array_size(v->shares) + 1;
    for (size_t k = 1; k < points; k++)
        numbers[k] = 100 * report_number_at(v->shares, k - 1);
    for (size_t i = 0; i < count; i++) {
        const json_t *row = json_array_get(v->rows, rows[i]);
        const json_t *entry = find_curve(row, p->measure, p->removal);
        double *y = numbers + points * (2 * i + 1), *band = y + points;
        y[0] = p->at_zero;
        band[0] = NAN;
        for (size_t k = 1; k < points; k++) {
            report_stat stat = report_stat_of(entry, k - 1);
            y[k] = stat.mean;
            band[k] = stat.count > 1 ? BAND * stat.error : NAN;
        }
        curves[i] = (draw_curve){.name = report_text_of(row, "title"),
                                 .y = y,
                                 .band = band,
                                 .style = (unsigned)(i % MOST_CURVES),
                                 .is_control = report_kind_of(row) == REPORT_CONTROL};
    }
    draw_curves(&(draw_chart){.title = p->title,
                              .x_name = p->x_name,
                              .y_name = p->y_name,
                              .x = numbers,
                              .points = points,
                              .curves = curves,
                              .count = count,
                              .base = NAN},
                v->html);
}

/* Up to eight rows besides the controls, which come last. */
static size_t choose_rows(const report_view *v, const plot *p, size_t *next, size_t *chosen) {
    size_t count = 0;
    const json_t *row;
    for (; count < MOST_CURVES && (row = json_array_get(v->rows, *next)); ++*next)
        if (report_kind_of(row) != REPORT_CONTROL && find_curve(row, p->measure, p->removal))
            chosen[count++] = *next;
    for (size_t r = 0; count && (row = json_array_get(v->rows, r)); r++)
        if (report_kind_of(row) == REPORT_CONTROL && find_curve(row, p->measure, p->removal))
            chosen[count++] = r;
    return count;
}

/* Two charts for each eight methods. */
static void add_pairs(const report_view *v, const plot first, const plot second) {
    size_t rows = json_array_size(v->rows), next = 0;
    size_t points = json_array_size(v->shares) + 1;
    size_t *chosen = fds__alloc_zero(rows, sizeof *chosen);
    double *numbers = fds__alloc_zero(points * (2 * rows + 1), sizeof *numbers);
    draw_curve *curves = fds__alloc_zero(rows, sizeof *curves);
    v->html->is_failed |= !chosen || !numbers || !curves;
    while (!v->html->is_failed && next < rows) {
        size_t count = choose_rows(v, &first, &next, chosen);
        if (!count)
            continue;
        fill_plot(v, &first, chosen, count, numbers, curves);
        if (has_curve(v, &second))
            fill_plot(v, &second, chosen, count, numbers, curves);
    }
    fds__free(chosen);
    fds__free(numbers);
    fds__free(curves);
}

/* Of the model of all players, for its test samples of all seeds. */
static double full_accuracy(const report_view *v) {
    const json_t *of = json_array_get(report_at(v->data, "utilities"), 0);
    double all =
        report_number_of(report_find(report_at(of, "losses"), "set", "all", NULL), "count");
    double correct =
        report_number_of(report_find(report_at(of, "losses"), "set", "correct", NULL), "count");
    return all > 0 ? (isfinite(correct) ? correct : 0) / all : NAN;
}

static const plot highest = {"accuracy",
                             "top",
                             "Accuracy without the most valuable players: lower "
                             "is better",
                             "share of players removed, %",
                             "accuracy on the test samples",
                             NAN};
static const plot lowest = {"accuracy",
                            "bottom",
                            "Accuracy without the least valuable players: "
                            "higher is better",
                            "share of players removed, %",
                            "accuracy on the test samples",
                            NAN};
static const plot recalled = {"recall",
                              "",
                              "Share of the wrong labels that are found: higher is "
                              "better",
                              "share of players inspected, lowest values first, %",
                              "recall",
                              0};
static const plot precise = {"precision",
                             "",
                             "Share of the inspected labels that are wrong: higher "
                             "is better",
                             "share of players inspected, lowest values first, %",
                             "precision",
                             NAN};

static bool has_accuracy(const report_view *v) { return has_curve(v, &highest); }
static bool has_detection(const report_view *v) { return has_curve(v, &recalled); }

static void write_accuracy(const report_view *v) {
    plot first = highest, second = lowest;
    first.at_zero = second.at_zero = full_accuracy(v);
    add_pairs(v, first, second);
}

static void write_share(const report_view *v) {
    draw_number(v->html, 0, 100 * report_number_of(v->data, "settings/flipped"));
    draw_markup(v->html, " %");
}

static void write_detection(const report_view *v) { add_pairs(v, recalled, precise); }

const report_slot report_curve_slots[] = {
    {"accuracy_curves", write_accuracy, has_accuracy, NULL},
    {"flipped_share", write_share, NULL, NULL},
    {"detection_curves", write_detection, has_detection, NULL},
    {.name = NULL}};
