/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures of a data set in report.html: removal curves with bands of 1.96 standard errors,
 * bars of the seconds to prepare, and the pictures of the largest contributors.
 *
 * Curves by one utility function share a chart if there are at most 8 besides the controls; else
 * the paper's methods, its baselines and all others have separate charts.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

enum { MOST_CURVES = 8, PARTS = 3 };
#define BAND 1.96 /* standard errors */
#define MAX_PICTURE ((size_t)64 << 20)

/* Which charts a row goes to: the paper's methods, its baselines, others; PARTS: to all. */
static size_t part_of(const json_t *row) {
    static const size_t parts[REPORT_KINDS] = {[REPORT_OURS] = 0,
                                               [REPORT_PAPER] = 1,
                                               [REPORT_BEYOND] = 2,
                                               [REPORT_OTHER] = 2,
                                               [REPORT_CONTROL] = PARTS};
    return parts[report_kind_of(row)];
}

/* The look that a row has in every chart, unless another curve there has it: its number among those
 * of its part, counted from different ends. */
static unsigned style_of(const json_t *rows, size_t r) {
    size_t part = part_of(json_array_get(rows, r)), before = 0;
    for (size_t i = 0; i < r; i++)
        before += part_of(json_array_get(rows, i)) == part;
    size_t at = before % MOST_CURVES;
    size_t styles[PARTS + 1] = {at, MOST_CURVES - 1 - at, at + MOST_CURVES / 2, 5 * at};
    return (unsigned)(styles[part] % MOST_CURVES);
}

/* ---- curves ---- */

/* What one chart shows: losses of the view's utility function, removal and set. */
typedef struct chart {
    report_view v;
    const char *heading; /* which methods it shows */
    const size_t *rows;  /* (count) places of rows */
    size_t count;
} chart;

static const json_t *row_at(const chart *c, size_t i) {
    return json_array_get(c->v.rows, c->rows[i]);
}

static size_t count_seeds(const chart *c) { return json_array_size(report_at(c->v.data, "seeds")); }

/* Whether a row (NULL: any row of the chart) has losses for a seed. */
static bool has_seed(const chart *c, const json_t *row, size_t seed) {
    bool has_it = false;
    if (row)
        return json_is_array(
            json_array_get(report_at(report_entry(&c->v, row, NULL), "by_seed"), seed));
    for (size_t i = 0; i < c->count; i++)
        has_it |= has_seed(c, row_at(c, i), seed);
    return has_it;
}

/* The loss with all players, over the seeds that a row (NULL: the chart) has. Where some are missing,
 * the others have equal weights. */
static double base_of(const chart *c, const json_t *row) {
    const json_t *of =
        report_find(report_at(c->v.data, "utilities"), "utility", c->v.utility, NULL);
    const json_t *entry = report_find(report_at(of, "losses"), "set", c->v.set, NULL);
    double sum = 0;
    size_t used = 0, missing = 0;
    for (size_t i = 0; i < count_seeds(c); i++) {
        double mean = report_number_at(report_at(entry, "by_seed"), i);
        if (!has_seed(c, row, i))
            missing++;
        else if (isfinite(mean)) {
            sum += mean;
            used++;
        }
    }
    return missing ? sum / (double)used : report_number_of(entry, "mean");
}

static bool is_removal(const chart *c, const char *removal) {
    return strcmp(c->v.removal, removal) == 0;
}

/* y, band and marks (points) of a row, from share 0 on. */
static void fill_curve(const chart *c, const json_t *row, double *y, double *band, double *marks) {
    const json_t *shares = c->v.shares, *entry = report_entry(&c->v, row, NULL);
    bool is_papers = is_removal(c, "top") && strcmp(c->v.set, "correct") == 0 &&
                     strcmp(report_text_of(row, "utility"), c->v.utility) == 0;
    y[0] = entry && !is_removal(c, "keep_top") ? base_of(c, row) : NAN; /* nobody removed */
    band[0] = y[0] - y[0];
    marks[0] = NAN;
    for (size_t k = 0; k < json_array_size(shares); k++) {
        report_stat stat = report_stat_of(entry, k);
        y[k + 1] = stat.mean;
        band[k + 1] = BAND * stat.error;
        marks[k + 1] = is_papers ? report_paper_at(row, report_number_at(shares, k), NULL) : NAN;
    }
}

/* No two curves of a chart look alike, except controls. */
static void choose_styles(const chart *c, draw_curve *curves) {
    bool is_taken[MOST_CURVES] = {false};
    for (size_t i = 0; i < c->count; i++) {
        unsigned style = style_of(c->v.rows, c->rows[i]);
        for (int tries = 0; !curves[i].is_control && is_taken[style] && tries < MOST_CURVES;
             tries++)
            style = (style + 1) % MOST_CURVES;
        if (!curves[i].is_control)
            is_taken[style] = true;
        curves[i].style = style;
    }
}

/* ", seed 0 only" where a chart does not have all seeds; and whether a curve has fewer than it. */
static void name_seeds(const chart *c, fds__text *title) {
    size_t used = 0, named = 0, seeds = count_seeds(c);
    bool is_even = true;
    for (size_t i = 0; i < seeds; i++) {
        bool is_used = has_seed(c, NULL, i);
        used += is_used;
        for (size_t k = 0; k < c->count; k++)
            is_even &=
                has_seed(c, row_at(c, k), i) == is_used || !report_entry(&c->v, row_at(c, k), NULL);
    }
    for (size_t i = 0; used < seeds && i < seeds; i++)
        if (has_seed(c, NULL, i)) {
            draw_markup(title, named++ ? ", " : used > 1 ? ", seeds " : ", seed ");
            fds__text_print(
                title, "%lld",
                (long long)json_integer_value(json_array_get(report_at(c->v.data, "seeds"), i)));
        }
    draw_markup(title, named ? " only" : "");
    draw_markup(title, is_even ? "" : ", some methods with fewer seeds");
}

static void name_chart(const chart *c, fds__text *title) {
    fds__text_print(title, "Value loss %s", report_removal(c->v.removal));
    if (is_removal(c, "top")) {
        fds__text_print(title, ": %s, evaluated with ", c->heading);
        report_utility(title, c->v.utility);
    } else
        draw_markup(title, ", curves as above");
    name_seeds(c, title);
}

static bool has_chart(const chart *c, const char *removal) {
    for (size_t i = 0; i < c->count; i++)
        if (report_find_entry(row_at(c, i), "losses", c->v.utility, removal, c->v.set, NULL))
            return true;
    return false;
}

static void fill_chart(const chart *c, const char *title, double *numbers, draw_curve *curves) {
    const json_t *shares = c->v.shares;
    size_t points = json_array_size(shares) + 1;
    for (size_t k = 0; k + 1 < points; k++)
        numbers[k + 1] = 100 * report_number_at(shares, k);
    for (size_t i = 0; i < c->count; i++) {
        const json_t *row = row_at(c, i);
        double *y = numbers + points * (3 * i + 1), *band = y + points, *marks = band + points;
        fill_curve(c, row, y, band, marks);
        curves[i] = (draw_curve){.name = report_text_of(row, "title"),
                                 .y = y,
                                 .band = band,
                                 .marks = marks,
                                 .is_control = report_kind_of(row) == REPORT_CONTROL};
    }
    choose_styles(c, curves);
    const draw_chart drawn = {.title = title,
                              .x_name = is_removal(c, "keep_top") ? "share of players trained on, %"
                                                                  : "share of players removed, %",
                              .y_name = "cross-entropy of the true label, nats",
                              .x = numbers,
                              .points = points,
                              .curves = curves,
                              .count = c->count,
                              .base = base_of(c, NULL),
                              .base_name = "with all players",
                              .is_small = !is_removal(c, "top")};
    draw_curves(&drawn, c->v.html);
}

/* One chart of a removal, if any row has it. */
static void add_chart(const chart *of, const char *removal) {
    chart c = *of;
    c.v.removal = removal;
    if (!has_chart(of, removal))
        return;
    /* x, then y, band and marks of each row */
    size_t count = (json_array_size(c.v.shares) + 1) * (3 * c.count + 1);
    double *numbers = fds__alloc_zero(count, sizeof *numbers);
    draw_curve *curves = fds__alloc_zero(c.count, sizeof *curves);
    fds__text title = {0};
    name_chart(&c, &title);
    if (numbers && curves && !title.is_failed)
        fill_chart(&c, title.data, numbers, curves);
    else
        c.v.html->is_failed = true;
    fds__free(title.data);
    fds__free(numbers);
    fds__free(curves);
}

static void add_charts(const chart *c) {
    add_chart(c, "top");
    if (!has_chart(c, "bottom") && !has_chart(c, "keep_top"))
        return;
    draw_markup(c->v.html, "<div class=\"pair\">\n");
    add_chart(c, "bottom");
    add_chart(c, "keep_top");
    draw_markup(c->v.html, "</div>\n");
}

/* The rows of a part (PARTS: of all parts), eight at a time, each time with the controls. chosen:
 * scratch for the places of all rows. */
static void add_part(chart *c, size_t part, size_t *chosen) {
    size_t next = 0;
    bool is_first = part == PARTS; /* the controls have a chart even where they are alone */
    const json_t *row;
    c->rows = chosen;
    do {
        c->count = 0;
        for (; c->count < MOST_CURVES && (row = json_array_get(c->v.rows, next)); next++)
            if (part_of(row) < PARTS && (part == PARTS || part_of(row) == part) &&
                report_entry(&c->v, row, NULL))
                chosen[c->count++] = next;
        bool has_controls = c->count || is_first;
        for (size_t r = 0; has_controls && (row = json_array_get(c->v.rows, r)); r++)
            if (part_of(row) == PARTS && report_entry(&c->v, row, NULL))
                chosen[c->count++] = r;
        if (c->count)
            add_charts(c);
        is_first = false;
    } while (next < json_array_size(c->v.rows));
}

/* All curves by one utility function. */
static void add_utility(chart *c, size_t *chosen) {
    static const char *const headings[PARTS] = {"the paper’s methods", "the paper’s baselines",
                                                "other methods"};
    size_t curves = 0;
    const json_t *row;
    for (size_t r = 0; (row = json_array_get(c->v.rows, r)); r++)
        curves += part_of(row) < PARTS && report_entry(&c->v, row, NULL);
    c->heading = "all methods";
    if (curves <= MOST_CURVES)
        add_part(c, PARTS, chosen);
    for (size_t part = 0; curves > MOST_CURVES && part < PARTS; part++) {
        c->heading = headings[part];
        add_part(c, part, chosen);
    }
}

static void write_curves(const report_view *v) {
    size_t *chosen = fds__alloc_zero(json_array_size(v->rows), sizeof *chosen);
    const json_t *row, *of;
    chart c = {.v = *v};
    c.v.removal = "top";
    c.v.set = "all"; /* unless some sample is classified correctly */
    for (size_t r = 0; (row = json_array_get(v->rows, r)); r++)
        if (report_find(report_at(row, "losses"), "set", "correct", NULL))
            c.v.set = "correct";
    v->html->is_failed |= !chosen;
    for (size_t u = 0; chosen && (of = json_array_get(report_at(v->data, "utilities"), u)); u++) {
        c.v.utility = report_text_of(of, "utility");
        add_utility(&c, chosen);
    }
    fds__free(chosen);
}

/* ---- seconds ---- */

static bool has_time(const report_view *v, const json_t *row) {
    (void)v;
    return isfinite(report_number_of(row, "timing/prepare_s/mean"));
}

static bool has_seconds(const report_view *v) { return report_any_row(v, has_time); }

static void write_seconds(const report_view *v) {
    size_t used = 0;
    const json_t *row;
    draw_bar *bars = fds__alloc_zero(json_array_size(v->rows), sizeof *bars);
    v->html->is_failed |= !bars;
    for (unsigned kind = 0; bars && kind < REPORT_KINDS; kind++)
        for (size_t r = 0; (row = json_array_get(v->rows, r)); r++) {
            report_stat stat = report_stat_of(report_at(row, "timing/prepare_s"), 0);
            if (report_kind_of(row) == kind && isfinite(stat.mean))
                bars[used++] = (draw_bar){.name = report_text_of(row, "title"),
                                          .value = stat.mean,
                                          .error = stat.error,
                                          .mark = report_number_of(row, "paper/seconds"),
                                          .style = kind,
                                          .is_control = kind == REPORT_CONTROL};
        }
    if (used)
        draw_bars("Time before the first answer", "seconds, on a logarithmic scale", bars, used,
                  v->html);
    fds__free(bars);
}

/* ---- pictures ---- */

void report_png(fds__text *html, const uint8_t *data, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    draw_markup(html, "data:image/png;base64,");
    for (size_t i = 0; i < size; i += 3) {
        size_t left = MIN(size - i, (size_t)3);
        uint32_t bits = (uint32_t)data[i] << 16;
        bits |= left > 1 ? (uint32_t)data[i + 1] << 8 : 0;
        bits |= left > 2 ? data[i + 2] : 0;
        char four[4];
        for (size_t k = 0; k < 4; k++)
            four[k] = k <= left ? digits[bits >> (18 - 6 * k) & 63] : '=';
        fds__text_add(html, four, sizeof four);
    }
}

static fds_status add_picture(const report_view *v, const json_t *picture) {
    static const char signature[] = "\x89PNG\r\n\x1a\n";
    const char *path = report_text_of(picture, "file"), *method = report_text_of(picture, "method");
    const json_t *row = report_find(v->rows, "method", method, NULL);
    uint8_t *data;
    size_t size;
    TRY(fds__file_read(path, MAX_PICTURE, &data, &size, v->err));
    if (size < 8 || memcmp(data, signature, 8) != 0) {
        fds__free(data);
        return fds__fail(v->err, FDS_ERR_FORMAT, "%s: not a PNG", path);
    }
    draw_markup(v->html, "<figure class=\"picture\">\n<div class=\"scroll\" tabindex=\"0\"><img "
                         "alt=\"Test samples, each followed by "
                         "training samples\" src=\"");
    report_png(v->html, data, size);
    draw_markup(v->html, "\"></div>\n<figcaption>");
    draw_text(v->html, row ? report_text_of(row, "title") : method);
    draw_markup(v->html, "</figcaption>\n</figure>\n");
    fds__free(data);
    return FDS_OK;
}

static void write_pictures(const report_view *v) {
    const json_t *picture;
    for (size_t i = 0; (picture = json_array_get(report_at(v->data, "pictures"), i)); i++)
        if (*v->status == FDS_OK)
            *v->status = add_picture(v, picture);
}

const report_slot report_figure_slots[] = {{"curves", write_curves, NULL, NULL},
                                           {"seconds", write_seconds, has_seconds, NULL},
                                           {"pictures", write_pictures, NULL, NULL},
                                           {.name = NULL}};
