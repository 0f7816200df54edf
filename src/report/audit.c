/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of an audit: audit.json as one HTML file that needs nothing else. Its text is in
 * assets/audit.html.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

enum {
    MOST_ROWS = 100,
    FIRST_ROWS = 20,
    MOST_PROVIDERS = 40,
    MOST_BARS = 25,
    MOST_CONFUSIONS = 8,
    BINS = 48
};

static const json_t *rows_of(const report_view *v) { return report_at(v->report, "rows"); }
static const json_t *providers_of(const report_view *v) {
    return report_at(v->report, "providers");
}
static size_t suspects_of(const report_view *v) {
    return (size_t)json_integer_value(report_at(v->report, "suspects"));
}

static void write_audit_style(const report_view *v) { draw_markup(v->html, report_audit_css); }

/* Two figures that matter. */
static void add_value(fds__text *html, double value) {
    double size = fabs(value);
    int decimals = size > 0 ? (int)MIN(MAX(1 - floor(log10(size)), 0), 12) : 0;
    if (isfinite(value))
        draw_number(html, decimals, value);
    else
        draw_markup(html, "–");
}

static void add_share(fds__text *html, double share) {
    draw_number(html, share > 0 && share < 0.00995 ? 1 : 0, 100 * share);
    draw_markup(html, " %");
}

/* ---- the beginning ---- */

static void write_lead(const report_view *v) {
    size_t suspects = suspects_of(v);
    double samples = report_number_of(v->report, "samples");
    if (!suspects) {
        draw_markup(v->html, "None: every one of them has a value above 0.");
        return;
    }
    size_t clear = (size_t)json_integer_value(report_at(v->report, "clear_suspects"));
    fds__text_print(v->html, "<b>%zu</b> of %.0f samples (", clear, samples);
    add_share(v->html, (double)clear / samples);
    draw_markup(v->html, clear == 1 ? ") has a value more than two standard errors below 0: "
                                      "predictions are better without it."
                         : clear    ? ") have values more than two standard errors below 0: "
                                      "predictions are better without them."
                                    : ") have values more than two standard errors below 0.");
    if (suspects > clear)
        fds__text_print(v->html, " %zu %s%s below 0 by less, which may be chance.",
                        suspects - clear, clear ? "more " : "",
                        suspects - clear == 1 ? "is" : "are");
}

static bool has_rows(const report_view *v) { return suspects_of(v) > 0; }
static bool has_providers(const report_view *v) { return json_array_size(providers_of(v)) > 0; }
static bool has_confusions(const report_view *v) {
    return json_array_size(report_at(v->report, "confusions")) > 0;
}
static bool has_thumbs(const report_view *v) { return v->picture_count > 0; }

static void write_accuracy(const report_view *v) {
    add_share(v->html, report_number_of(v->report, "accuracy"));
}

/* ---- tables ---- */

static void write_shown(const report_view *v) {
    size_t suspects = suspects_of(v);
    if (suspects > MOST_ROWS)
        fds__text_print(v->html,
                        "The %d with the lowest values; <code>rows.csv</code> has all %.0f, in "
                        "this order.",
                        MOST_ROWS, report_number_of(v->report, "samples"));
    else
        draw_markup(v->html, "From the lowest value.");
}

static void open_cell(fds__text *html, const char *classes) {
    fds__text_print(html, "<td class=\"%s\">", classes);
}

/* "line 17", an id, or "sample 3"; in small print what else is known. */
static void add_place(const report_view *v, const json_t *row) {
    const char *id = report_text_of(row, "id"), *provider = report_text_of(row, "provider");
    const json_t *line = json_object_get(row, "line");
    open_cell(v->html, "place");
    if (*id)
        draw_text(v->html, id);
    else if (json_is_integer(line))
        fds__text_print(v->html, "line %.0f", json_number_value(line));
    else
        fds__text_print(v->html, "sample %.0f", report_number_of(row, "sample"));
    if ((*id && json_is_integer(line)) || *provider)
        draw_markup(v->html, "<small>");
    if (*id && json_is_integer(line))
        fds__text_print(v->html, "line %.0f%s", json_number_value(line), *provider ? ", " : "");
    draw_text(v->html, provider);
    if ((*id && json_is_integer(line)) || *provider)
        draw_markup(v->html, "</small>");
    draw_markup(v->html, "</td>");
}

static void add_row(const report_view *v, const json_t *row, size_t rank) {
    const char *label = report_text_of(row, "label"), *said = report_text_of(row, "predicted");
    fds__text_print(v->html, "<tr><th scope=\"row\">%zu</th>", rank + 1);
    if (rank < v->picture_count) {
        draw_markup(v->html, "<td class=\"picture\"><img alt=\"\" src=\"");
        report_png(v->html, v->pictures[rank].data, v->pictures[rank].size);
        draw_markup(v->html, "\"></td>");
    } else if (v->picture_count)
        draw_markup(v->html, "<td class=\"picture\"></td>");
    add_place(v, row);
    open_cell(v->html, "label");
    draw_text(v->html, label);
    draw_markup(v->html, "</td>");
    open_cell(v->html, "said");
    draw_markup(v->html, strcmp(label, said) ? "<span class=\"says\">" : "<span class=\"agrees\">");
    draw_text(v->html, said);
    draw_markup(v->html, "</span> <small>");
    add_share(v->html, report_number_of(row, "probability"));
    draw_markup(v->html, "</small></td>");
    open_cell(v->html, "number");
    add_value(v->html, report_number_of(row, "value"));
    draw_markup(v->html, "<small>± ");
    add_value(v->html, report_number_of(row, "standard_error"));
    draw_markup(v->html, "</small></td>");
    open_cell(v->html, "why");
    draw_text(v->html, report_text_of(row, "reason"));
    draw_markup(v->html, "</td></tr>\n");
}

static void add_rows(const report_view *v, size_t first, size_t end) {
    report_fill(v, "audit_table");
    for (size_t i = first; i < end; i++)
        add_row(v, json_array_get(rows_of(v), i), i);
    draw_markup(v->html, "</tbody>\n</table>\n");
}

/* The first ones at once, the others when they are asked for. */
static void write_rows(const report_view *v) {
    size_t count = MIN(suspects_of(v), (size_t)MOST_ROWS), first = MIN(count, (size_t)FIRST_ROWS);
    add_rows(v, 0, first);
    if (count == first)
        return;
    fds__text_print(v->html, "<details><summary>Numbers %zu to %zu</summary>\n", first + 1, count);
    add_rows(v, first, count);
    draw_markup(v->html, "</details>\n");
}

static void write_confusions(const report_view *v) {
    const json_t *entry;
    for (size_t i = 0; i < MOST_CONFUSIONS; i++) {
        entry = json_array_get(report_at(v->report, "confusions"), i);
        if (!entry)
            break;
        draw_markup(v->html, "<tr><th scope=\"row\">");
        draw_text(v->html, report_text_of(entry, "label"));
        draw_markup(v->html, "</th><td>");
        draw_text(v->html, report_text_of(entry, "predicted"));
        fds__text_print(v->html, "</td><td>%.0f</td></tr>\n", report_number_of(entry, "suspects"));
    }
}

static void write_providers(const report_view *v) {
    const json_t *p;
    for (size_t i = 0; i < MOST_PROVIDERS && (p = json_array_get(providers_of(v), i)); i++) {
        draw_markup(v->html, "<tr><th scope=\"row\">");
        draw_text(v->html, report_text_of(p, "name"));
        fds__text_print(v->html, "</th><td>%.0f</td><td>%.0f</td><td>",
                        report_number_of(p, "samples"), report_number_of(p, "suspects"));
        add_share(v->html, report_number_of(p, "share_of_suspects"));
        draw_markup(v->html, "</td><td>");
        add_value(v->html, report_number_of(p, "value_per_sample"));
        draw_markup(v->html, " <i>± ");
        add_value(v->html, report_number_of(p, "value_per_sample_error"));
        draw_markup(v->html, "</i></td><td>");
        add_value(v->html, report_number_of(p, "value"));
        draw_markup(v->html, " <i>± ");
        add_value(v->html, report_number_of(p, "standard_error"));
        draw_markup(v->html, "</i></td></tr>\n");
    }
}

static void write_more(const report_view *v) {
    size_t count = json_array_size(providers_of(v));
    if (count > MOST_PROVIDERS)
        fds__text_print(v->html, "<p>%zu more are in <code>providers.csv</code>.</p>\n",
                        count - MOST_PROVIDERS);
}

/* ---- charts ---- */

/* An axis of values from low to high, both multiples of step; 0 is within. */
typedef struct {
    double low, high, step, left, right;
    int decimals;
} axis;

static axis make_axis(double low, double high, double left, double right) {
    axis a = {.left = left, .right = right};
    low = MIN(low, 0);
    high = MAX(high, 0);
    a.step = draw_round_step(high > low ? (high - low) / 6 : 1);
    a.low = floor(low / a.step + 1e-9) * a.step;
    a.high = MAX(ceil(high / a.step - 1e-9) * a.step, a.low + a.step);
    a.decimals = (int)MAX(0, -floor(log10(a.step) + 1e-9));
    return a;
}

static double place(const axis *a, double value) {
    return a->left + (a->right - a->left) * (value - a->low) / (a->high - a->low);
}

/* Lines from top to bottom with their numbers, and the line of 0. */
static void add_ticks(fds__text *svg, const axis *a, double top, double bottom, const char *name) {
    for (double k = round(a->low / a->step); k * a->step <= a->high + a->step * 1e-6; k++) {
        double x = place(a, k * a->step);
        fds__text_print(svg, "<path class=\"%s\" d=\"M%s %sV%s\"/>",
                        fabs(k) < 0.5 ? "zero" : "grid", draw_at(x).text, draw_at(top).text,
                        draw_at(bottom).text);
        draw_svg_number(svg, x, bottom + 19, "middle", a->decimals, k * a->step);
    }
    draw_svg_text(svg, a->right, bottom + 40, "end", name);
    draw_markup(svg, "\n");
}

static void add_bar(fds__text *svg, bool is_suspect, double x, double y, double width,
                    double height) {
    draw_group_open(svg, is_suspect ? 1 : 0, false);
    fds__text_print(svg, "<rect class=\"bar\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"/></g>",
                    draw_at(x).text, draw_at(y).text, draw_at(width).text, draw_at(height).text);
}

/* Rows are sorted by value. The middle 98 % decide the scale; the others are in the outer bars. */
static void write_histogram(const report_view *v) {
    const double left = 46, right = 708, top = 30, bottom = 250;
    size_t rows = json_array_size(rows_of(v)), bars[BINS] = {0}, most = 1;
    double low = report_number_of(json_array_get(rows_of(v), rows / 100), "value");
    double high = report_number_of(json_array_get(rows_of(v), rows - 1 - rows / 100), "value");
    axis a = make_axis(low, high, left, right);
    double width = (a.high - a.low) / BINS;
    /* a bar begins at 0, so that none has both kinds */
    double begin = -ceil(-a.low / width - 1e-9) * width;
    for (size_t i = 0; i < rows; i++) {
        double at = report_number_of(json_array_get(rows_of(v), i), "value");
        double bin = floor((at - begin) / width + 1e-12);
        size_t place_of = (size_t)MIN(MAX(bin, 0), BINS - 1);
        most = MAX(most, ++bars[place_of]);
    }
    draw_figure_open(v->html, "chart",
                     "How many samples have which value: suspicious ones on the "
                     "left of 0",
                     720, 300);
    double step = draw_round_step((double)most / 4);
    for (double k = 0; k * step <= (double)most; k++) {
        double y = bottom - (bottom - top) * k * step / (double)most;
        fds__text_print(v->html, "<path class=\"grid\" d=\"M%s %sH%s\"/>", draw_at(left).text,
                        draw_at(y).text, draw_at(right).text);
        if (step >= 1)
            draw_svg_number(v->html, left - 7, y + 4.5, "end", 0, k * step);
    }
    draw_svg_text(v->html, 2, 14, "start", "samples");
    add_ticks(v->html, &a, top, bottom, "value");
    for (size_t b = 0; b < BINS; b++) {
        double at = begin + width * (double)b;
        double height = (bottom - top) * (double)bars[b] / (double)most;
        if (bars[b])
            add_bar(v->html, at < -width / 2, place(&a, MAX(at, a.low)) + 0.5, bottom - height,
                    place(&a, at + width) - place(&a, MAX(at, a.low)) - 1, height);
    }
    draw_markup(v->html, "\n</svg>\n</div>\n</figure>\n");
}

/* A bar for the value per sample of each provider, with 1.96 standard errors. */
static void write_provider_bars(const report_view *v) {
    const double left = 200, right = 700, line = 24, top = 8;
    size_t count = MIN(json_array_size(providers_of(v)), (size_t)MOST_BARS);
    double low = 0, high = 0, bottom = top + line * (double)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *p = json_array_get(providers_of(v), i);
        double value = report_number_of(p, "value_per_sample");
        double error = 1.96 * report_number_of(p, "value_per_sample_error");
        low = fmin(low, value - error);
        high = fmax(high, value + error);
    }
    axis a = make_axis(low, high, left, right);
    draw_figure_open(v->html, "chart", "Value per sample of each provider ± 1.96 standard errors",
                     720, bottom + 48);
    add_ticks(v->html, &a, top, bottom, "value per sample");
    for (size_t i = 0; i < count; i++) {
        const json_t *p = json_array_get(providers_of(v), i);
        double value = report_number_of(p, "value_per_sample");
        double error = 1.96 * report_number_of(p, "value_per_sample_error");
        double y = top + line * (double)i;
        char name[64]; /* 26 characters of at most 4 bytes would not fit: cut within bytes */
        size_t used = 0, letters = 0;
        for (const char *at = report_text_of(p, "name"); *at && letters < 24 && used < 56;) {
            uint32_t code;
            size_t size = fds__utf8(at, &code);
            memcpy(name + used, at, MAX(size, 1));
            used += MAX(size, 1);
            at += MAX(size, 1);
            letters++;
        }
        name[used] = 0;
        draw_svg_text(v->html, left - 8, y + 17, "end", name);
        add_bar(v->html, value < 0, MIN(place(&a, value), place(&a, 0)), y + 4,
                fabs(place(&a, value) - place(&a, 0)), line - 8);
        if (isfinite(error))
            fds__text_print(v->html, "<path class=\"whisker\" d=\"M%s %sH%s\"/>\n",
                            draw_at(place(&a, value - error)).text, draw_at(y + line / 2).text,
                            draw_at(place(&a, value + error)).text);
    }
    draw_markup(v->html, "</svg>\n</div>\n</figure>\n");
}

const report_slot report_audit_slots[] = {{"audit_style", write_audit_style, NULL, NULL},
                                          {"audit_lead", write_lead, NULL, NULL},
                                          {"audit_accuracy", write_accuracy, NULL, NULL},
                                          {"audit_shown", write_shown, NULL, NULL},
                                          {"audit_rows", write_rows, NULL, NULL},
                                          {"audit_confusions", write_confusions, NULL, NULL},
                                          {"audit_providers", write_providers, NULL, NULL},
                                          {"providers_more", write_more, NULL, NULL},
                                          {"histogram", write_histogram, NULL, NULL},
                                          {"provider_bars", write_provider_bars, NULL, NULL},
                                          {"rows_shown", NULL, has_rows, NULL},
                                          {"providers_shown", NULL, has_providers, NULL},
                                          {"confusions_shown", NULL, has_confusions, NULL},
                                          {"thumbs", NULL, has_thumbs, NULL},
                                          {.name = NULL}};

fds_status report_audit(const json_t *audit, const report_picture *pictures, size_t count,
                        fds__text *html, fds_error *err) {
    fds_status status = FDS_OK;
    const report_view view = {.html = html,
                              .report = audit,
                              .status = &status,
                              .err = err,
                              .pictures = pictures,
                              .picture_count = count};
    report_fill(&view, "audit");
    return status == FDS_OK ? fds__text_check(html, err) : status;
}
