/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of assets/page.html and audit.html filled in, and names as they stand in the page. The build makes C
 * arrays of the files in assets/.
 */
#include "report/report.h"

#include <assert.h>
#include <string.h>

/* ---- parts of the page ---- */

static const report_slot *find_slot(const char *name, size_t length) {
    static const report_slot *const lists[] = {report_page_slots, report_table_slots,
                                               report_figure_slots, report_audit_slots,
                                               report_curve_slots};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const report_slot *slot = lists[i]; slot->name; slot++)
            if (strlen(slot->name) == length && memcmp(slot->name, name, length) == 0)
                return slot;
    assert(!"page.html has a name that no slot has");
    return NULL;
}

/* The value at a path in report.json, or, after a point, in the view's data set. */
static const json_t *find_path(const report_view *v, const char *path) {
    return *path == '.' ? report_at(v->data, path + 1) : report_at(v->report, path);
}

/* "path word": the number at the path, or the length of a list there, with its unit. */
static void write_count(const report_view *v, const char *path) {
    char key[64], word[32] = "";
    sscanf(path, "%63[^ ] %31[^}]", key, word);
    const json_t *json = find_path(v, key);
    report_counted(v->html,
                   json_is_array(json) ? json_array_size(json) : (size_t)json_integer_value(json),
                   word);
}

/* True, a text or a list that is not empty. */
static bool is_there(const json_t *json) {
    return json_is_true(json) || json_array_size(json) || *report_text_of(json, "");
}

/* Fills text up to {{/name}} or the end of the part; returns what follows. */
static const char *fill(const report_view *v, const char *text, bool is_shown) {
    for (const char *open; (open = strstr(text, "{{")) && open[2] != '=';) {
        const char *start = open + 2 + strspn(open + 2, "#^/"), *end = strstr(start, "}}");
        bool is_section = start > open + 2, is_path = strchr("@+", *start) != NULL;
        char path[96];
        snprintf(path, sizeof path, "%.*s", (int)(end - start - is_path), start + is_path);
        if (is_shown)
            fds__text_add(v->html, text, (size_t)(open - text));
        text = end + 2;
        if (open[2] == '/')
            return text;
        const report_slot *slot = is_path ? NULL : find_slot(start, (size_t)(end - start));
        report_view view = *v;
        if (slot && slot->set) {
            view.removal = "top";
            view.set = slot->set;
        }
        if (is_section) {
            bool has_it = is_path ? is_there(find_path(v, path)) : slot->has(&view);
            text = fill(v, text, is_shown && has_it == (open[2] == '#'));
        } else if (is_shown && *start == '@')
            draw_text(v->html, report_text_of(find_path(v, path), ""));
        else if (is_shown && is_path)
            write_count(v, path);
        else if (is_shown)
            slot->write(&view);
    }
    const char *end = strstr(text, "{{=");
    fds__text_add(v->html, text, end ? (size_t)(end - text) : strlen(text));
    return NULL;
}

void report_fill(const report_view *v, const char *part) {
    char head[32];
    snprintf(head, sizeof head, "{{=%s}}\n", part);
    const char *text = strstr(report_page_html, head);
    text = text ? text : strstr(report_audit_html, head);
    assert(text); /* there is such a part */
    fill(v, text + strlen(head), true);
}

bool report_any_row(const report_view *v, bool (*is)(const report_view *v, const json_t *row)) {
    const json_t *data, *row;
    for (size_t d = 0; (data = json_array_get(report_at(v->report, "data"), d)); d++)
        for (size_t r = 0; (row = json_array_get(report_at(data, "rows"), r)); r++)
            if ((!v->data || v->data == data) && is(v, row))
                return true;
    return false;
}

const char *report_list(const report_view *v) { return v->list ? v->list : "losses"; }

const json_t *report_entry(const report_view *v, const json_t *row, size_t *at) {
    const char *utility = v->utility ? v->utility : report_text_of(row, "utility");
    return report_find_entry(row, report_list(v), utility, v->removal, v->set, at);
}

/* ---- names ---- */

void report_utility(fds__text *html, const char *utility) {
    if (strcmp(utility, "retrain") == 0)
        draw_text(html, "models trained to convergence");
    else if (strncmp(utility, "retrain:", 8) == 0) {
        draw_text(html, "models trained for ");
        draw_text(html, utility + 8);
        draw_text(html, " epochs");
    } else
        draw_text(html, utility);
}

const char *report_models(const char *utility) {
    return strcmp(utility, "retrain") == 0      ? "converged models"
           : strcmp(utility, "retrain:10") == 0 ? "models of 10 epochs"
                                                : utility;
}

const char *report_removal(const char *removal) {
    return strcmp(removal, "top") == 0      ? "without the most valuable players"
           : strcmp(removal, "bottom") == 0 ? "without the least valuable players"
                                            : "with the most valuable players alone";
}

void report_counted(fds__text *html, size_t count, const char *one) {
    fds__text_print(html, "%zu %s", count, one);
    if (count != 1)
        draw_markup(html, one[strlen(one) - 1] == 's' ? "es" : "s");
}
