/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures of a set of data in report.html: removal curves with bands of 1.96 standard errors,
 * bars of the seconds to prepare, and the pictures of the greatest contributors.
 *
 * Curves by one value function share a chart where there are at most 8 besides the controls; else
 * the paper's methods, its baselines, and all others have charts of their own.
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

/* What one chart shows. */
typedef struct view {
    const report_section *section;
    const char *value, *set;
    const char *heading; /* who is in it */
    const size_t *rows;  /* (count) places of rows */
    size_t count;
} view;

static size_t count_seeds(const view *v) {
    return json_array_size(json_object_get(v->section->data, "seeds"));
}

/* Whether a row (NULL: any row of the chart) was measured in this way with a seed. */
static bool has_seed(const view *v, const json_t *row, const char *way, size_t seed) {
    bool has_it = false;
    if (row) {
        const json_t *entry = report_losses_find(row, v->value, way, v->set, NULL);
        return json_is_array(json_array_get(json_object_get(entry, "by_seed"), seed));
    }
    for (size_t i = 0; i < v->count; i++)
        has_it |= has_seed(v, json_array_get(v->section->rows, v->rows[i]), way, seed);
    return has_it;
}

/* The loss with all players, over the seeds that a row (NULL: the chart) has; of some seeds each
 * counts alike. */
static double base_of(const view *v, const json_t *row, const char *way) {
    const json_t *judged = json_object_get(v->section->data, "utilities");
    const json_t *judge = report_list_find(judged, "utility", v->value, NULL);
    const json_t *entry = report_list_find(json_object_get(judge, "losses"), "set", v->set, NULL);
    double sum = 0;
    size_t used = 0, left_out = 0;
    for (size_t i = 0; i < count_seeds(v); i++) {
        double mean = report_number_at(json_object_get(entry, "by_seed"), i);
        if (!has_seed(v, row, way, i))
            left_out++;
        else if (isfinite(mean)) {
            sum += mean;
            used++;
        }
    }
    return left_out ? sum / (double)used : report_number_of(entry, "mean");
}

/* y, band and marks (points) of a row, from share 0 on. */
static void fill_curve(const view *v, const json_t *row, const char *way, double *y, double *band,
                       double *marks) {
    const json_t *shares = v->section->shares;
    const json_t *entry = report_losses_find(row, v->value, way, v->set, NULL);
    bool is_top = strcmp(way, "top") == 0;
    bool is_papers = is_top && strcmp(v->set, "correct") == 0 &&
                     strcmp(report_text_of(row, "utility"), v->value) == 0;
    y[0] = entry && strcmp(way, "keep_top") != 0 ? base_of(v, row, way) : NAN; /* nobody removed */
    band[0] = y[0] - y[0];
    marks[0] = NAN;
    for (size_t k = 0; k < json_array_size(shares); k++) {
        y[k + 1] = report_number_at(json_object_get(entry, "mean"), k);
        band[k + 1] = BAND * report_number_at(json_object_get(entry, "error"), k);
        marks[k + 1] = is_papers ? report_paper_at(row, report_number_at(shares, k), NULL) : NAN;
    }
}

/* No two curves of a chart but the controls look alike. */
static void choose_styles(const view *v, draw_curve *curves) {
    bool is_taken[MOST_CURVES] = {false};
    for (size_t i = 0; i < v->count; i++) {
        unsigned style = style_of(v->section->rows, v->rows[i]);
        for (int tries = 0; !curves[i].is_control && is_taken[style] && tries < MOST_CURVES;
             tries++)
            style = (style + 1) % MOST_CURVES;
        if (!curves[i].is_control)
            is_taken[style] = true;
        curves[i].style = style;
    }
}

/* ", seed 0 only" where a chart is not of all seeds; and whether a curve is of fewer than it. */
static void name_seeds(const view *v, const char *way, fds__text *title) {
    const json_t *seeds = json_object_get(v->section->data, "seeds");
    size_t used = 0, named = 0;
    bool is_even = true;
    for (size_t i = 0; i < count_seeds(v); i++) {
        bool is_used = has_seed(v, NULL, way, i);
        used += is_used;
        for (size_t k = 0; k < v->count; k++) {
            const json_t *row = json_array_get(v->section->rows, v->rows[k]);
            is_even &= has_seed(v, row, way, i) == is_used ||
                       !report_losses_find(row, v->value, way, v->set, NULL);
        }
    }
    for (size_t i = 0; used < count_seeds(v) && i < count_seeds(v); i++)
        if (has_seed(v, NULL, way, i)) {
            draw_markup(title, named ? ", " : used > 1 ? ", seeds " : ", seed ");
            named++;
            fds__text_print(title, "%lld", (long long)json_integer_value(json_array_get(seeds, i)));
        }
    draw_markup(title, named ? " only" : "");
    draw_markup(title, is_even ? "" : ", some methods with fewer seeds");
}

static void name_chart(const view *v, const char *way, fds__text *title) {
    draw_markup(title, strcmp(way, "top") == 0      ? "Without the most valuable players"
                       : strcmp(way, "bottom") == 0 ? "Without the least valuable players"
                                                    : "With the most valuable players alone");
    if (strcmp(way, "top") != 0) {
        draw_markup(title, ", curves as above");
    } else {
        fds__text_print(title, ": %s judged by ", v->heading);
        report_utility_name(title, v->value);
    }
    name_seeds(v, way, title);
}

static bool has_way(const view *v, const char *way) {
    bool has_any = false;
    for (size_t i = 0; i < v->count; i++)
        has_any |= report_losses_find(json_array_get(v->section->rows, v->rows[i]), v->value, way,
                                      v->set, NULL) != NULL;
    return has_any;
}

static void fill_chart(const view *v, const char *way, const char *title, double *numbers,
                       draw_curve *curves) {
    const json_t *shares = v->section->shares;
    size_t points = json_array_size(shares) + 1;
    bool is_add = strcmp(way, "keep_top") == 0;
    for (size_t k = 0; k + 1 < points; k++)
        numbers[k + 1] = 100 * report_number_at(shares, k);
    for (size_t i = 0; i < v->count; i++) {
        const json_t *row = json_array_get(v->section->rows, v->rows[i]);
        double *y = numbers + points * (3 * i + 1), *band = y + points, *marks = band + points;
        fill_curve(v, row, way, y, band, marks);
        curves[i] = (draw_curve){.name = report_text_of(row, "title"),
                                 .y = y,
                                 .band = band,
                                 .marks = marks,
                                 .is_control = report_kind_of(row) == REPORT_CONTROL};
    }
    choose_styles(v, curves);
    const draw_chart chart = {.title = title,
                              .x_name = is_add ? "share of players trained on, %"
                                               : "share of players removed, %",
                              .y_name = "cross-entropy of the true label, nats",
                              .x = numbers,
                              .points = points,
                              .curves = curves,
                              .count = v->count,
                              .base = base_of(v, NULL, way),
                              .base_name = "with all players",
                              .is_small = strcmp(way, "top") != 0};
    draw_curves(&chart, v->section->html);
}

/* One chart of the rows that were measured in this way; none where no row was. */
static fds_status draw_way(const view *v, const char *way, fds_error *err) {
    if (!has_way(v, way))
        return FDS_OK;
    /* x, then y, band and marks of each row */
    size_t count = (json_array_size(v->section->shares) + 1) * (3 * v->count + 1);
    double *numbers = fds__alloc_zero(count, sizeof *numbers);
    draw_curve *curves = fds__alloc_zero(v->count, sizeof *curves);
    fds__text title = {0};
    name_chart(v, way, &title);
    fds_status status = numbers && curves ? fds__text_check(&title, err)
                                          : fds__fail_nomem(err, count * sizeof *numbers);
    if (status == FDS_OK)
        fill_chart(v, way, title.data, numbers, curves);
    fds__free(title.data);
    fds__free(numbers);
    fds__free(curves);
    return status;
}

static fds_status draw_view(const view *v, fds_error *err) {
    TRY(draw_way(v, "top", err));
    if (!has_way(v, "bottom") && !has_way(v, "keep_top"))
        return FDS_OK;
    draw_markup(v->section->html, "<div class=\"pair\">\n");
    TRY(draw_way(v, "bottom", err));
    TRY(draw_way(v, "keep_top", err));
    draw_markup(v->section->html, "</div>\n");
    return FDS_OK;
}

/* The rows of a part (PARTS: of all parts), eight at a time, each time with the controls. chosen:
 * room for the places of all rows. */
static fds_status draw_part(view *v, size_t part, size_t *chosen, fds_error *err) {
    const json_t *rows = v->section->rows;
    size_t count = json_array_size(rows), next = 0;
    bool is_first = part == PARTS; /* the controls have a chart even where they are alone */
    v->rows = chosen;
    do {
        size_t curves = 0;
        v->count = 0;
        for (; next < count && curves < MOST_CURVES; next++) {
            const json_t *row = json_array_get(rows, next);
            if (part_of(row) < PARTS && (part == PARTS || part_of(row) == part) &&
                report_losses_find(row, v->value, "top", v->set, NULL)) {
                chosen[v->count++] = next;
                curves++;
            }
        }
        for (size_t r = 0; (curves || is_first) && r < count; r++)
            if (part_of(json_array_get(rows, r)) == PARTS &&
                report_losses_find(json_array_get(rows, r), v->value, "top", v->set, NULL))
                chosen[v->count++] = r;
        if (v->count)
            TRY(draw_view(v, err));
        is_first = false;
    } while (next < count);
    return FDS_OK;
}

/* All curves by one value function. */
static fds_status draw_value(view *v, size_t *chosen, fds_error *err) {
    static const char *const headings[PARTS] = {"the paper’s methods", "the paper’s baselines",
                                                "others"};
    size_t curves = 0;
    for (size_t r = 0; r < json_array_size(v->section->rows); r++) {
        const json_t *row = json_array_get(v->section->rows, r);
        curves += part_of(row) < PARTS && report_losses_find(row, v->value, "top", v->set, NULL);
    }
    v->heading = "all methods";
    if (curves <= MOST_CURVES)
        return draw_part(v, PARTS, chosen, err);
    for (size_t part = 0; part < PARTS; part++) {
        v->heading = headings[part];
        TRY(draw_part(v, part, chosen, err));
    }
    return FDS_OK;
}

fds_status report_figures_curves(const report_section *s, fds_error *err) {
    const json_t *judged = json_object_get(s->data, "utilities");
    size_t *chosen = fds__alloc_zero(json_array_size(s->rows), sizeof *chosen);
    if (!chosen)
        return fds__fail_nomem(err, json_array_size(s->rows) * sizeof *chosen);
    const char *set = "all"; /* unless some sample is predicted rightly */
    for (size_t r = 0; r < json_array_size(s->rows); r++)
        if (report_list_find(json_object_get(json_array_get(s->rows, r), "losses"), "set",
                             "correct", NULL))
            set = "correct";
    fds_status status = FDS_OK;
    for (size_t j = 0; status == FDS_OK && j < json_array_size(judged); j++) {
        view v = {.section = s,
                  .value = report_text_of(json_array_get(judged, j), "utility"),
                  .set = set};
        status = draw_value(&v, chosen, err);
    }
    fds__free(chosen);
    return status;
}

/* ---- overhead ---- */

fds_status report_figures_overhead(const report_section *s, fds_error *err) {
    size_t count = json_array_size(s->rows), used = 0;
    draw_bar *bars = fds__alloc_zero(count, sizeof *bars);
    if (!bars)
        return fds__fail_nomem(err, count * sizeof *bars);
    for (unsigned kind = 0; kind < REPORT_KINDS; kind++)
        for (size_t r = 0; r < count; r++) {
            const json_t *row = json_array_get(s->rows, r);
            const json_t *stat = json_object_get(json_object_get(row, "timing"), "prepare_s");
            double value = report_number_of(stat, "mean");
            if (report_kind_of(row) != kind || !isfinite(value))
                continue;
            bars[used++] = (draw_bar){
                .name = report_text_of(row, "title"),
                .value = value,
                .error = report_number_of(stat, "sd") / sqrt(report_number_of(stat, "count")),
                .mark = report_number_of(json_object_get(row, "paper"), "seconds"),
                .style = kind,
                .is_control = kind == REPORT_CONTROL};
        }
    if (used) {
        draw_markup(s->html, "<h3>Seconds to prepare</h3>\n");
        draw_bars("Time before the first answer, by method", "seconds, on a logarithmic scale",
                  bars, used, s->html);
    }
    fds__free(bars);
    return FDS_OK;
}

/* ---- pictures ---- */

static fds_status add_picture(const report_section *s, const char *path, const char *title,
                              fds_error *err) {
    static const char signature[] = "\x89PNG\r\n\x1a\n";
    uint8_t *data;
    size_t size;
    TRY(fds__file_read(path, MAX_PICTURE, &data, &size, err));
    if (size < 8 || memcmp(data, signature, 8) != 0) {
        fds__free(data);
        return fds__fail(err, FDS_ERR_FORMAT, "%s: not a PNG", path);
    }
    draw_markup(s->html, "<figure class=\"picture\">\n<img alt=\"Test samples, each followed by "
                         "training samples\" src=\"");
    report_png(s->html, data, size);
    draw_markup(s->html, "\">\n<figcaption>");
    draw_text(s->html, title);
    draw_markup(s->html, ": each row a test sample, then its greatest contributors, with original "
                         "label o, predicted label p and value s; framed where the label is not "
                         "the one predicted for the test sample.</figcaption>\n</figure>\n");
    fds__free(data);
    return FDS_OK;
}

fds_status report_figures_pictures(const report_section *s, fds_error *err) {
    const json_t *pictures = json_object_get(s->data, "pictures");
    if (json_array_size(pictures))
        draw_markup(s->html, "<h3>The greatest contributors</h3>\n");
    for (size_t i = 0; i < json_array_size(pictures); i++) {
        const json_t *picture = json_array_get(pictures, i);
        const char *file = report_text_of(picture, "file"),
                   *method = report_text_of(picture, "method");
        const json_t *row = report_list_find(s->rows, "method", method, NULL);
        TRY(add_picture(s, file, row ? report_text_of(row, "title") : method, err));
    }
    return FDS_OK;
}
