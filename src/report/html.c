/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of assets/page.html filled in, and names as they stand in the page. The build makes C
 * arrays of the files in assets/.
 */
#include "report/report.h"

#include <assert.h>
#include <string.h>

/* ---- parts of the page ---- */

static const report_slot *find_slot(const report_slot *slots, const char *name, size_t length) {
    while (strlen(slots->name) != length || memcmp(slots->name, name, length) != 0) {
        slots++;
        assert(slots->name); /* page.html names what there is not */
    }
    return slots;
}

/* {{@path}} and {{+path word}}: what the path leads to in report.json, or, after a point, in the
 * view's data. Lists are counted by their entries. */
static void fill_path(const report_view *v, char mark, const char *path) {
    char word[32] = "", key[64];
    sscanf(path, "%63[^ ] %31[^}]", key, word);
    const json_t *json = key[0] == '.' ? report_at(v->data, key + 1) : report_at(v->report, key);
    if (mark == '@')
        draw_text(v->html, report_text_of(json, ""));
    else
        report_counted(
            v->html, json_is_array(json) ? json_array_size(json) : (size_t)json_integer_value(json),
            word);
}

/* Up to {{/name}} or the end of the part; returns where it goes on. */
static const char *fill(const report_view *v, const char *text, const report_slot *slots,
                        bool is_shown) {
    for (const char *open; (open = strstr(text, "{{")) && open[2] != '=';) {
        bool is_path = strchr("@+", open[2]) != NULL, is_mark = strchr("#^/", open[2]) != NULL;
        const char *name = open + 2 + (is_path || is_mark), *end = strstr(name, "}}");
        if (is_shown)
            fds__text_add(v->html, text, (size_t)(open - text));
        text = end + 2;
        if (open[2] == '/')
            return text;
        if (is_path) {
            char path[96];
            snprintf(path, sizeof path, "%.*s", (int)(end - name), name);
            if (is_shown)
                fill_path(v, open[2], path);
            continue;
        }
        const report_slot *slot = find_slot(slots, name, (size_t)(end - name));
        report_view view = *v;
        view.removal = slot->set ? "top" : v->removal;
        view.set = slot->set ? slot->set : v->set;
        if (is_mark)
            text = fill(v, text, slots, is_shown && slot->has(&view) == (open[2] == '#'));
        else if (is_shown)
            slot->write(&view);
    }
    const char *end = strstr(text, "{{=");
    fds__text_add(v->html, text, end ? (size_t)(end - text) : strlen(text));
    return NULL;
}

void report_fill(const report_view *v, const char *part, const report_slot *slots) {
    char head[32];
    snprintf(head, sizeof head, "{{=%s}}\n", part);
    const char *text = strstr(report_page_html, head);
    assert(text); /* there is such a part */
    fill(v, text + strlen(head), slots, true);
}

bool report_any_row(const report_view *v, bool (*is)(const report_view *v, const json_t *row)) {
    const json_t *data, *row;
    for (size_t d = 0; (data = json_array_get(report_at(v->report, "data"), d)); d++)
        for (size_t r = 0; (row = json_array_get(report_at(data, "rows"), r)); r++)
            if ((!v->data || v->data == data) && is(v, row))
                return true;
    return false;
}

/* ---- names ---- */

void report_pointer(fds__text *html, const char *key) {
    for (; *key; key++) {
        const char one[2] = {*key, 0};
        draw_text(html, *key == '/' ? "~1" : *key == '~' ? "~0" : one);
    }
}

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

const char *report_removal(const char *removal) {
    return strcmp(removal, "top") == 0      ? "without the most valuable players"
           : strcmp(removal, "bottom") == 0 ? "without the least valuable players"
                                            : "with the most valuable players alone";
}

void report_write_utility(const report_view *v) { report_utility(v->html, v->utility); }
void report_write_removal(const report_view *v) {
    draw_markup(v->html, report_removal(v->removal));
}

void report_counted(fds__text *html, size_t count, const char *one) {
    fds__text_print(html, "%zu %s", count, one);
    if (count != 1)
        draw_markup(html, one[strlen(one) - 1] == 's' ? "es" : "s");
}

const char *report_separator(size_t i, size_t count) {
    return i == 0 ? "" : i + 1 < count ? ", " : " and ";
}
