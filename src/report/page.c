/* SPDX-License-Identifier: Apache-2.0
 *
 * report.html: what report.json says, for people. One file that needs nothing else: style, drawings
 * and pictures are in it, and it has no script and no link to other pages. Its text is in
 * assets/page.html; this file, tables.c and figures.c fill it.
 */
#include "report/report.h"

#include <string.h>

static const json_t *data_at(const report_view *v, size_t d) {
    return json_array_get(report_at(v->report, "data"), d);
}

/* ---- conditions ---- */

static bool is_in_paper(const report_view *v, const json_t *row) {
    (void)v;
    return json_is_object(report_at(row, "paper"));
}
static bool is_control(const report_view *v, const json_t *row) {
    (void)v;
    return report_kind_of(row) == REPORT_CONTROL;
}
static bool has_paper(const report_view *v) { return report_any_row(v, is_in_paper); }
static bool has_controls(const report_view *v) { return report_any_row(v, is_control); }

static bool has_one_seed(const report_view *v) {
    for (size_t d = 0; data_at(v, d); d++)
        if (json_array_size(report_at(data_at(v, d), "seeds")) == 1)
            return true;
    return false;
}

/* ---- the beginning ---- */

static void write_style(const report_view *v) { draw_markup(v->html, report_style_css); }

/* Different methods over all data. */
static void write_methods(const report_view *v) {
    const json_t *row;
    size_t count = 0;
    for (size_t d = 0; data_at(v, d); d++)
        for (size_t r = 0; (row = json_array_get(report_at(data_at(v, d), "rows"), r)); r++) {
            bool is_new = true;
            for (size_t k = 0; k < d; k++)
                is_new &= !report_find(report_at(data_at(v, k), "rows"), "method",
                                       report_text_of(row, "method"), NULL);
            count += is_new;
        }
    report_counted(v->html, count, "method");
}

/* Before item i of a list "A, B and C". */
static const char *separator(size_t i, size_t count) {
    return i == 0 ? "" : i + 1 < count ? ", " : " and ";
}

static void write_names(const report_view *v) {
    size_t count = json_array_size(report_at(v->report, "data"));
    for (size_t d = 0; d < count; d++) {
        fds__text_print(v->html, "%s<b>", separator(d, count));
        draw_text(v->html, report_text_of(data_at(v, d), "name"));
        draw_markup(v->html, "</b>");
    }
}

static void write_number(const report_view *v) { fds__text_print(v->html, "%zu", v->at); }

/* A part for each data set. */
static void fill_each(const report_view *v, const char *part) {
    report_view view = *v;
    for (view.at = 0; (view.data = data_at(v, view.at)); view.at++) {
        view.rows = report_at(view.data, "rows");
        view.shares = report_at(view.data, "settings/shares");
        report_fill(&view, part);
    }
}

static void write_links(const report_view *v) { fill_each(v, "link"); }
static void write_data(const report_view *v) { fill_each(v, "data"); }
static void write_heads(const report_view *v) { fill_each(v, "head"); }

/* ---- a utility function ---- */

/* Whether a row of the table has values from another utility function, own, by its sub-models. */
static bool is_other(const report_view *v, const json_t *row) {
    return !is_control(v, row) && report_number_of(row, "sub_models/mean") > 0 &&
           strcmp(report_text_of(row, "utility"), v->own) == 0 && report_entry(v, row, NULL);
}

static size_t count_others(const report_view *v) {
    size_t count = 0;
    for (size_t r = 0; r < json_array_size(v->rows); r++)
        count += is_other(v, json_array_get(v->rows, r));
    return count;
}

static bool has_several(const report_view *v) { return count_others(v) > 1; }
static void write_utility(const report_view *v) { report_utility(v->html, v->utility); }
static void write_removal(const report_view *v) {
    draw_markup(v->html, report_removal(v->removal));
}
static void write_own(const report_view *v) { report_utility(v->html, v->own); }

/* "A, B and C" */
static void write_titles(const report_view *v) {
    size_t count = count_others(v), i = 0;
    const json_t *row;
    for (size_t r = 0; (row = json_array_get(v->rows, r)); r++)
        if (is_other(v, row)) {
            draw_markup(v->html, separator(i++, count));
            draw_text(v->html, report_text_of(row, "title"));
        }
}

static void write_others(const report_view *v) {
    const json_t *entry;
    for (size_t u = 0; (entry = json_array_get(report_at(v->data, "utilities"), u)); u++) {
        report_view view = *v;
        view.own = report_text_of(entry, "utility");
        if (strcmp(view.own, v->utility) != 0 && count_others(&view) > 0)
            report_fill(&view, "others");
    }
}

/* The tables by each utility function: without the most valuable players where there are several
 * functions, then the other removals. */
static void write_utilities(const report_view *v) {
    static const char *const removals[] = {"top", "bottom", "keep_top"};
    const json_t *list = report_at(v->data, "utilities");
    size_t count = json_array_size(list);
    report_view view = *v;
    for (size_t i = 0; i < 3 * count; i++) {
        /* top for all functions, then the others for each */
        view.utility =
            report_text_of(json_array_get(list, i < count ? i : (i - count) / 2), "utility");
        view.removal = removals[i < count ? 0 : 1 + (i - count) % 2];
        if (report_has_losses(&view) && (i >= count || count > 1))
            report_fill(&view, i < count ? "utility" : "removal");
    }
}

/* The same, but training starts from the initial networks of other seeds. Returns how many tables
 * there are; is_look: writes none. */
static size_t fill_other_seeds(const report_view *v, bool is_look) {
    const json_t *list = report_at(v->data, "utilities");
    report_view view = *v;
    size_t count = 0;
    view.list = report_lists[1];
    for (size_t u = 0; u < json_array_size(list); u++) {
        view.utility = report_text_of(json_array_get(list, u), "utility");
        if (!report_has_losses(&view))
            continue;
        count++;
        if (!is_look)
            report_fill(&view, "losses");
    }
    return count;
}

static void write_other_seeds(const report_view *v) { fill_other_seeds(v, false); }
static bool has_other_seeds(const report_view *v) { return fill_other_seeds(v, true) > 0; }

/* ---- what was found ---- */

/* Names of methods stand between backquotes. */
static void add_sentences(fds__text *html, const char *text) {
    bool is_code = false;
    while (*text) {
        char part[1024];
        size_t length = MIN(strcspn(text, "`"), sizeof part - 1);
        while (length && length == sizeof part - 1 && (text[length] & 0xC0) == 0x80)
            length--; /* not within a character */
        snprintf(part, sizeof part, "%.*s", (int)length, text);
        draw_text(html, part);
        text += length;
        if (*text == '`') {
            is_code = !is_code;
            draw_markup(html, is_code ? "<code>" : "</code>");
            text++;
        }
    }
    draw_markup(html, is_code ? "</code>" : "");
}

static void write_findings(const report_view *v) {
    const json_t *finding;
    for (size_t i = 0; (finding = json_array_get(report_at(v->data, "findings"), i)); i++) {
        draw_markup(v->html, "<li><b>");
        draw_text(v->html, report_text_of(finding, "about"));
        draw_markup(v->html, ".</b> ");
        add_sentences(v->html, report_text_of(finding, "text"));
        draw_markup(v->html, "</li>\n");
    }
}

static void write_found(const report_view *v) { fill_each(v, "found"); }

/* ---- settings ---- */

/* A setting for people: lists with commas, texts without quotes. */
static void add_value(fds__text *html, const json_t *value) {
    const json_t *item;
    if (json_is_string(value))
        draw_text(html, json_string_value(value));
    else if (json_is_number(value))
        fds__text_double(html, json_number_value(value));
    else if (!json_is_array(value))
        draw_markup(html, "–");
    for (size_t i = 0; (item = json_array_get(value, i)); i++) {
        draw_markup(html, i ? ", " : "");
        add_value(html, item);
    }
}

/* A key within a JSON pointer. */
static void add_key(fds__text *html, const char *key) {
    for (; *key; key++) {
        const char one[2] = {*key, 0};
        draw_text(html, *key == '/' ? "~1" : *key == '~' ? "~0" : one);
    }
}

/* One line per key, one column per data set. outer: the object that has the key, with a slash
 * after it, or "". */
static void add_setting(const report_view *v, const char *outer, const char *key) {
    draw_markup(v->html, "<tr><th scope=\"row\">");
    draw_text(v->html, key);
    draw_markup(v->html, "</th>");
    for (size_t d = 0; data_at(v, d); d++) {
        fds__text_print(v->html, "<td data-path=\"/data/%zu/%s", d, outer);
        add_key(v->html, key);
        draw_markup(v->html, "\">");
        add_value(v->html, json_object_get(report_at(data_at(v, d), outer), key));
        draw_markup(v->html, "</td>");
    }
    draw_markup(v->html, "</tr>\n");
}

static void write_settings(const report_view *v) {
    static const char *const keys[] = {"source", "classes", "players", "tests", "inputs", "seeds"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        add_setting(v, "", keys[k]);
    for (size_t d = 0; data_at(v, d); d++) {
        const char *key;
        json_t *unused;
        json_object_foreach((json_t *)(uintptr_t)report_at(data_at(v, d), "settings"), key,
                            unused) {
            bool is_new = true;
            for (size_t k = 0; k < d; k++)
                is_new &= !json_object_get(report_at(data_at(v, k), "settings"), key);
            if (is_new)
                add_setting(v, "settings/", key);
        }
    }
}

const report_slot report_page_slots[] = {
    {"style", write_style, NULL, NULL},
    {"methods", write_methods, NULL, NULL},
    {"names", write_names, NULL, NULL},
    {"links", write_links, NULL, NULL},
    {"one_seed", NULL, has_one_seed, NULL},
    {"paper", NULL, has_paper, NULL},
    {"controls", NULL, has_controls, NULL},
    {"data", write_data, NULL, NULL},
    {"number", write_number, NULL, NULL},
    {"found", write_found, NULL, NULL},
    {"findings", write_findings, NULL, NULL},
    {"other_seeds", write_other_seeds, has_other_seeds, "correct"},
    {"utilities", write_utilities, NULL, "correct"},
    {"utility", write_utility, NULL, NULL},
    {"removal", write_removal, NULL, NULL},
    {"others", write_others, NULL, NULL},
    {"titles", write_titles, NULL, NULL},
    {"own", write_own, NULL, NULL},
    {"several", NULL, has_several, NULL},
    {"heads", write_heads, NULL, NULL},
    {"settings", write_settings, NULL, NULL},
    {.name = NULL}};

fds_status report_page(const json_t *report, fds__text *html, fds_error *err) {
    fds_status status = FDS_OK;
    const report_view view = {.html = html, .report = report, .status = &status, .err = err};
    report_fill(&view, "page");
    return status == FDS_OK ? fds__text_check(html, err) : status;
}
