/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of an audit as one HTML file that needs nothing else: the verdicts, and for each check what
 * was found, the evidence over time and who is concerned. Everything in it is in the JSON. */
#include "audit/audit.h"

#include "report/report.h"

#include <math.h>

enum { MOST_BARS = 40, MOST_ROWS = 100 };

static const char css[] =
    ".verdict{font-weight:600;white-space:nowrap}.alarm{color:#b3261e}.ok{color:#1b7a3d}"
    ".unknown{color:#6b6b6b}td.name{text-align:left;white-space:normal}.limit{stroke:#b3261e;"
    "stroke-dasharray:5 4}"
    ".line{fill:none;stroke:currentColor;stroke-width:1.6}";

static const char *const titles[AUDIT_KINDS] = {
    "Is the ledger right?",         "Is the explainer as exact as at fit time?",
    "Is each provider paid right?", "Do the stated intervals hold?",
    "Are groups paid alike?",       "Are inputs like the calibrated ones?",
    "Do customers feed providers?"};

static const char *const meanings[AUDIT_KINDS] = {
    "Everything is computed again from the entries; the audited predictions are those that the "
    "committed secrets select.",
    "The share of the money that goes elsewhere than the sub-models say, in audited predictions.",
    "What each provider was owed by the sub-models minus what it was paid, with an interval that "
    "holds at all times and for all providers at once. It is wider than the test needs: a check "
    "may "
    "alarm while the interval still contains 0.",
    "How often the true values are within 1.96 standard errors of those that were paid by, given "
    "what "
    "the sub-models say and their own error.",
    "Paid over owed, by group of providers.",
    "The rank of an input's score among those of the calibrated inputs; 0.5 on average if nothing "
    "has "
    "changed, lower if inputs are stranger.",
    "The share of a provider in the predictions of one customer, against all predictions of the "
    "same "
    "label."};

static const char *sign_of(const char *verdict) {
    return strcmp(verdict, "alarm") == 0 ? "✗ alarm"
           : strcmp(verdict, "ok") == 0  ? "✓ ok"
                                         : "– unknown";
}

static void add_verdict(fds__text *html, const char *verdict) {
    const char *kind = strcmp(verdict, "alarm") == 0 ? "alarm"
                       : strcmp(verdict, "ok") == 0  ? "ok"
                                                     : "unknown";
    fds__text_print(html, "<span class=\"verdict %s\">%s</span>", kind, sign_of(verdict));
}

/* ---- evidence over time ---- */

/* The logarithm of e over what an alarm needs, between 10^-6 and 10^6. */
static double height_of(const json_t *list, size_t i) {
    double e = json_number_value(json_array_get(list, i));
    return e > 0 ? fmin(fmax(log10(e), -6), 6) : -6;
}

static void add_series(fds__text *html, const json_t *check) {
    const double left = 60, right = 700, top = 24, bottom = 230;
    const json_t *entry = report_at(check, "series/entry"),
                 *e = report_at(check, "series/evidence");
    size_t count = json_array_size(e);
    double low = -1, high = 1;
    if (count < 2)
        return;
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, floor(height_of(e, i)));
        high = fmax(high, ceil(height_of(e, i)));
    }
    double first = json_number_value(json_array_get(entry, 0)),
           last = json_number_value(json_array_get(entry, count - 1));
    draw_figure_open(html, "chart", "Evidence over time, as a share of what an alarm needs", 720,
                     270);
    for (double k = low; k <= high; k++) {
        double y = bottom - (bottom - top) * (k - low) / (high - low);
        char text[24];
        snprintf(text, sizeof text, k == 0 ? "alarm" : "10^%d", (int)k);
        fds__text_print(html, "<path class=\"%s\" d=\"M%s %sH%s\"/>", k == 0 ? "limit" : "grid",
                        draw_at(left).text, draw_at(y).text, draw_at(right).text);
        draw_svg_text(html, left - 7, y + 4.5, "end", text);
    }
    draw_svg_number(html, left, bottom + 19, "start", 0, first);
    draw_svg_number(html, right, bottom + 19, "end", 0, last);
    draw_svg_text(html, (left + right) / 2, bottom + 34, "middle", "entry");
    draw_markup(html, "<path class=\"line\" d=\"");
    for (size_t i = 0; i < count; i++) {
        double at = json_number_value(json_array_get(entry, i));
        double x = last > first ? left + (right - left) * (at - first) / (last - first) : left;
        double y = bottom - (bottom - top) * (height_of(e, i) - low) / (high - low);
        fds__text_print(html, "%s%s %s", i ? "L" : "M", draw_at(x).text, draw_at(y).text);
    }
    draw_markup(html, "\"/>\n</svg>\n</div>\n</figure>\n");
}

/* ---- who is concerned ---- */

static bool is_of_parties(const json_t *check) {
    const char *name = report_text_of(check, "check");
    return strcmp(name, "provider") == 0 || strcmp(name, "groups") == 0;
}

/* What each party lacks, as a share of what it was owed, with the interval. */
static void add_intervals(fds__text *html, const json_t *check) {
    const double left = 200, right = 700, line = 22, top = 8;
    const json_t *list = report_at(check, "evidence");
    size_t count = MIN(json_array_size(list), (size_t)MOST_BARS);
    double most = 0.05, bottom = top + line * (double)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *p = json_array_get(list, i);
        double owed = report_number_of(p, "owed");
        double low = report_number_of(p, "lacks_low") / owed,
               high = report_number_of(p, "lacks_high") / owed;
        if (isfinite(low) && isfinite(high))
            most = fmin(fmax(most, fmax(fabs(low), fabs(high))), 2);
    }
    most = draw_round_step(most);
    draw_figure_open(html, "chart", "Owed minus paid, in per cent of what is owed", 720,
                     bottom + 40);
    for (int k = -2; k <= 2; k++) {
        double x = (left + right) / 2 + (right - left) / 4 * k;
        fds__text_print(html, "<path class=\"%s\" d=\"M%s %sV%s\"/>", k ? "grid" : "zero",
                        draw_at(x).text, draw_at(top).text, draw_at(bottom).text);
        draw_svg_number(html, x, bottom + 19, "middle", most < 0.1 ? 1 : 0, 50 * most * k);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *p = json_array_get(list, i);
        double owed = report_number_of(p, "owed"), y = top + line * ((double)i + 0.5), ends[3];
        double lacks = owed - report_number_of(p, "paid");
        double low = report_number_of(p, "lacks_low"), high = report_number_of(p, "lacks_high");
        const double shares[3] = {(isfinite(low) ? low : lacks) / owed, lacks / owed,
                                  (isfinite(high) ? high : lacks) / owed}; /* or no interval */
        char name[40];
        for (int k = 0; k < 3; k++)
            ends[k] =
                (left + right) / 2 +
                (right - left) / 2 * fmin(fmax(isfinite(shares[k]) ? shares[k] / most : 0, -1), 1);
        snprintf(name, sizeof name, "%.30s", report_text_of(p, "name"));
        fds__text_sanitize(name);
        draw_svg_text(html, left - 8, y + 4.5, "end", name);
        draw_group_open(html, json_is_integer(json_object_get(p, "alarm_at")) ? 1 : 0, false);
        fds__text_print(html,
                        "<path class=\"whisker\" d=\"M%s %sH%s\"/><circle class=\"bar\" cx=\"%s\" "
                        "cy=\"%s\" r=\"3.5\"/></g>\n",
                        draw_at(ends[0]).text, draw_at(y).text, draw_at(ends[2]).text,
                        draw_at(ends[1]).text, draw_at(y).text);
    }
    draw_markup(html, "</svg>\n</div>\n</figure>\n");
}

static void add_cell(fds__text *html, const json_t *value) {
    double number = json_number_value(value), size = fabs(number);
    draw_markup(html, json_is_string(value) ? "<td class=\"name\">" : "<td>");
    if (json_is_string(value))
        draw_text(html, json_string_value(value));
    else if (json_is_integer(value))
        draw_number(html, 0, number);
    else if (json_is_number(value) && (size >= 1e15 || (size > 0 && size < 1e-3)))
        fds__text_digits(html, 3, number);
    else if (json_is_number(value))
        draw_number(html, draw_decimals(number), number);
    else
        draw_markup(html, "–");
    draw_markup(html, "</td>");
}

/* A line per piece of evidence, a column per member of the first. */
static void add_table(fds__text *html, const json_t *check) {
    const json_t *list = report_at(check, "evidence");
    size_t count = MIN(json_array_size(list), (size_t)MOST_ROWS);
    json_t *first = json_array_get(list, 0);
    const char *key;
    json_t *value;
    if (!count)
        return;
    draw_markup(html, "<div class=\"scroll\"><table class=\"providers\">\n<thead><tr>");
    json_object_foreach(first, key, value) {
        draw_markup(html, "<th scope=\"col\">");
        draw_text(html, key);
        draw_markup(html, "</th>");
    }
    draw_markup(html, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < count; i++) {
        draw_markup(html, "<tr>");
        json_object_foreach(first, key, value) {
            add_cell(html, json_object_get(json_array_get(list, i), key));
        }
        draw_markup(html, "</tr>\n");
    }
    draw_markup(html, "</tbody></table></div>\n");
}

static void add_correction(fds__text *html, const json_t *check) {
    const json_t *postings = report_at(check, "correction/postings");
    size_t count = json_array_size(postings);
    if (!count)
        return;
    fds__text_print(
        html,
        "<h3>What would mend it</h3>\n<p>An estimate, for two operators to look at: one "
        "proposes it, another one agrees. It corrects entry %.0f.</p>\n"
        "<div class=\"scroll\"><table class=\"providers\">\n<tbody>\n",
        fmax(report_number_of(check, "correction/of"), 0));
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(postings, i);
        draw_markup(html, "<tr><th scope=\"row\">");
        draw_text(html, report_text_of(one, "account"));
        draw_markup(html, "</th><td>");
        draw_text(html, report_text_of(one, "amount"));
        draw_markup(html, "</td></tr>\n");
    }
    draw_markup(html, "</tbody></table></div>\n<p>Reason: ");
    draw_text(html, report_text_of(check, "correction/reason"));
    draw_markup(html, "</p>\n");
}

/* ---- the page ---- */

static size_t kind_of(const json_t *check) {
    const char *name = report_text_of(check, "check");
    size_t kind = 0;
    while (kind < AUDIT_KINDS - 1 && strcmp(audit_names[kind], name) != 0)
        kind++;
    return kind;
}

static void add_check(fds__text *html, const json_t *check) {
    size_t kind = kind_of(check);
    fds__text_print(html, "<section id=\"%s\">\n<h2>%s ", audit_names[kind], titles[kind]);
    add_verdict(html, report_text_of(check, "verdict"));
    draw_markup(html, "</h2>\n<p><b>");
    draw_text(html, report_text_of(check, "answer"));
    fds__text_print(html, "</b></p>\n<p>%s</p>\n", meanings[kind]);
    add_series(html, check);
    if (is_of_parties(check) && json_array_size(report_at(check, "evidence")))
        add_intervals(html, check);
    add_table(html, check);
    add_correction(html, check);
    draw_markup(html, "</section>\n");
}

static void add_head(fds__text *html, const json_t *root) {
    draw_markup(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
        "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Audit of ");
    draw_text(html, report_text_of(root, "ledger"));
    draw_markup(html, "</title>\n<style>\n");
    draw_markup(html, report_style_css);
    draw_markup(html, report_audit_css);
    draw_markup(html, css);
    draw_markup(html, "</style>\n</head>\n<body>\n<header>\n<h1>Audit: ");
    add_verdict(html, report_text_of(root, "verdict"));
    fds__text_print(html, "</h1>\n<p class=\"lead\">%.0f entries, %.0f audited predictions, alpha ",
                    fmax(report_number_of(root, "entries"), 0),
                    fmax(report_number_of(root, "audited"), 0));
    fds__text_double(html, report_number_of(root, "alpha"));
    draw_markup(html, ": the probability that a check alarms falsely in the whole "
                      "history.</p>\n</header>\n<main>\n");
}

static void add_summary(fds__text *html, const json_t *checks) {
    draw_markup(html, "<div class=\"scroll\"><table class=\"providers\">\n<tbody>\n");
    for (size_t i = 0; i < json_array_size(checks); i++) {
        const json_t *check = json_array_get(checks, i);
        const char *name = audit_names[kind_of(check)];
        fds__text_print(html, "<tr><th scope=\"row\"><a href=\"#%s\">%s</a></th><td>", name, name);
        add_verdict(html, report_text_of(check, "verdict"));
        draw_markup(html, "</td><td class=\"name\">");
        draw_text(html, report_text_of(check, "answer"));
        draw_markup(html, "</td></tr>\n");
    }
    draw_markup(html, "</tbody></table></div>\n");
}

fds_status fds_audit_html(const char *json, char **out, fds_error *err) {
    json_t *root = NULL;
    fds__text html = {0};
    TRY(fds__json_parse("audit", json, strlen(json), &root, err));
    const json_t *checks = json_object_get(root, "checks");
    fds_status status = FDS_OK;
    if (strcmp(report_text_of(root, "format"), "fds-audit 1") != 0 || !json_is_array(checks))
        status = fds__fail(err, FDS_ERR_FORMAT, "this is no report of fds audit");
    if (status == FDS_OK) {
        add_head(&html, root);
        add_summary(&html, checks);
        for (size_t i = 0; i < json_array_size(checks); i++)
            add_check(&html, json_array_get(checks, i));
        draw_markup(&html, "</main>\n</body>\n</html>\n");
        fds__text_add(&html, "", 1);
        status = fds__text_check(&html, err);
    }
    json_decref(root);
    if (status == FDS_OK)
        *out = html.data;
    else
        fds__free(html.data);
    return status;
}
