/* SPDX-License-Identifier: Apache-2.0
 *
 * report.html: what report.json says, for people. One file that needs nothing else:
 * style, drawings and pictures are in it, there is no script and no link to anywhere but to its own
 * parts. tables.c and figures.c write what stands in its sections.
 */
#include "report/report.h"

#include <string.h>

/* ---- the beginning ---- */

static const char how_to_read[] =
    "<h2>How to read this</h2>\n"
    "<p>For each test sample a method tells how much every player, an owner of training data, "
    "contributed to the prediction. The players whom it values most are taken away, the model is "
    "trained again on the others, and the loss on that sample is measured. <em>The greater the "
    "loss, the better the method has found who mattered.</em> Numbers are means over test samples "
    "and seeds, ± one standard error.";

static const char about_one_seed[] =
    " Test samples of one seed share its models: where there is a single seed, ± does not tell how "
    "far another one may lie.";

static const char about_paper[] =
    " The paper’s own, of 100 players, stand small beneath, and as thin marks in charts.";

static const char about_controls[] =
    "<p>Two controls keep the measure honest. <em>Random order</em> is what taking away "
    "anybody does. <em>Same label first</em> takes players of the predicted label and knows "
    "nothing else: a method that is not above it has found little more than the label.</p>\n";

static void count_of(fds__text *html, size_t count, const char *one, const char *many) {
    fds__text_print(html, "%zu %s", count, count == 1 ? one : many);
}

/* Whether the paper has figures for any of the rows. */
static bool has_paper(const json_t *rows) {
    bool has_any = false;
    for (size_t r = 0; r < json_array_size(rows); r++)
        has_any |= json_is_object(json_object_get(json_array_get(rows, r), "paper"));
    return has_any;
}

static bool has_paper_anywhere(const json_t *list) {
    bool has_any = false;
    for (size_t d = 0; d < json_array_size(list); d++)
        has_any |= has_paper(json_object_get(json_array_get(list, d), "rows"));
    return has_any;
}

static bool has_controls(const json_t *list) {
    bool has_any = false;
    for (size_t d = 0; d < json_array_size(list); d++) {
        const json_t *rows = json_object_get(json_array_get(list, d), "rows");
        has_any |= report_list_find(rows, "kind", report_kind_name(REPORT_CONTROL), NULL) != NULL;
    }
    return has_any;
}

static bool has_single_seed(const json_t *list) {
    bool has_any = false;
    for (size_t d = 0; d < json_array_size(list); d++)
        has_any |= json_array_size(json_object_get(json_array_get(list, d), "seeds")) == 1;
    return has_any;
}

/* Different methods over all data. */
static size_t count_methods(const json_t *list) {
    size_t count = 0;
    for (size_t d = 0; d < json_array_size(list); d++) {
        const json_t *rows = json_object_get(json_array_get(list, d), "rows");
        for (size_t r = 0; r < json_array_size(rows); r++) {
            const char *method = report_text_of(json_array_get(rows, r), "method");
            bool is_new = true;
            for (size_t k = 0; k < d; k++)
                is_new &= !report_list_find(json_object_get(json_array_get(list, k), "rows"),
                                            "method", method, NULL);
            count += is_new;
        }
    }
    return count;
}

static void open_page(const json_t *report, fds__text *html) {
    const json_t *list = json_object_get(report, "data");
    size_t count = json_array_size(list);
    draw_markup(html,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<title>Who contributed to a prediction: methods compared</title>\n<style>\n");
    for (size_t i = 0; report_style[i]; i++)
        draw_markup(html, report_style[i]);
    draw_markup(html, "</style>\n</head>\n<body>\n<header>\n<h1>Who contributed to a prediction: "
                      "methods compared</h1>\n<p class=\"lead\">");
    count_of(html, count_methods(list), "method", "methods");
    draw_markup(html, " that value training data, on ");
    for (size_t d = 0; d < count; d++) {
        draw_markup(html, d == 0 ? "<b>" : d + 1 < count ? ", <b>" : " and <b>");
        draw_text(html, report_text_of(json_array_get(list, d), "name"));
        draw_markup(html, "</b>");
    }
    draw_markup(html, ".</p>\n<nav>");
    for (size_t d = 0; d < count; d++) {
        fds__text_print(html, "<a href=\"#data-%zu\">", d);
        draw_text(html, report_text_of(json_array_get(list, d), "name"));
        draw_markup(html, "</a> ");
    }
    draw_markup(html, "<a href=\"#meaning\">What the columns mean</a> "
                      "<a href=\"#made\">How it was made</a></nav>\n");
    draw_markup(html, how_to_read);
    draw_markup(html, has_single_seed(list) ? about_one_seed : "");
    draw_markup(html, has_paper_anywhere(list) ? about_paper : "");
    draw_markup(html, "</p>\n");
    draw_markup(html, has_controls(list) ? about_controls : "");
    draw_markup(html, "</header>\n<main>\n");
}

/* ---- a set of data ---- */

static void add_facts(const report_section *s) {
    static const struct {
        const char *key, *one, *many;
    } facts[] = {{"players", "player", "players"},
                 {"classes", "class", "classes"},
                 {"tests", "test sample", "test samples"},
                 {"inputs", "input of explainers", "inputs of explainers"}};
    draw_markup(s->html, "<p class=\"facts\">");
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        json_int_t count = json_integer_value(json_object_get(s->data, facts[i].key));
        count_of(s->html, (size_t)count, facts[i].one, facts[i].many);
        draw_markup(s->html, i == 2 ? " a seed · " : " · ");
    }
    count_of(s->html, json_array_size(json_object_get(s->data, "seeds")), "seed", "seeds");
    draw_markup(s->html, " · network ");
    draw_text(s->html, report_text_of(json_object_get(s->data, "settings"), "network"));
    draw_markup(s->html, "</p>\n");
}

/* Takes back what was written since before. */
static void take_back(fds__text *html, size_t before) {
    if (!html->is_failed)
        html->data[html->used = before] = 0;
}

/* A table over all test samples, folded up unless is_open; nothing where it would be empty. */
static void add_all(const report_section *s, bool is_open) {
    size_t before = s->html->used;
    draw_markup(s->html, is_open ? "<details open>" : "<details>");
    draw_markup(s->html, "\n<summary>");
    draw_markup(s->html, is_open ? "Over all test samples, as none is predicted rightly"
                                 : "The same over all test samples, rightly predicted or not");
    draw_markup(s->html, "</summary>\n");
    if (report_table_losses(s, NULL, "top", "all"))
        draw_markup(s->html, "</details>\n");
    else
        take_back(s->html, before);
}

/* Methods that a value function judges, though another one is their own and valued the players:
 * "The values of A and B themselves come from models of 10 epochs, their own setting." */
static void add_strangers(const report_section *s, const char *judge, const char *own) {
    size_t count = 0, left;
    for (int is_told = 0; is_told < 2; is_told++) {
        left = count;
        for (size_t r = 0; r < json_array_size(s->rows); r++) {
            const json_t *row = json_array_get(s->rows, r);
            if (report_kind_of(row) == REPORT_CONTROL ||
                strcmp(report_text_of(row, "utility"), own) != 0 ||
                !report_losses_find(row, judge, "top", "correct", NULL))
                continue;
            count += !is_told;
            if (!is_told)
                continue;
            draw_markup(s->html, left == count ? " The values of " : left == 1 ? " and " : ", ");
            draw_text(s->html, report_text_of(row, "title"));
            left--;
        }
    }
    if (count == 0)
        return;
    draw_markup(s->html, " themselves come from ");
    report_utility(s->html, own);
    draw_markup(s->html, count == 1 ? ", its own setting." : ", their own setting.");
}

/* The table by one value function. */
static void add_judge(const report_section *s, const char *value) {
    const json_t *judged = json_object_get(s->data, "utilities");
    size_t before = s->html->used;
    draw_markup(s->html, "<h4>Methods judged by ");
    report_utility(s->html, value);
    draw_markup(s->html, "</h4>\n<p>The methods whose removals were judged by these models.");
    for (size_t j = 0; j < json_array_size(judged); j++) {
        const char *own = report_text_of(json_array_get(judged, j), "utility");
        if (strcmp(own, value) != 0)
            add_strangers(s, value, own);
    }
    draw_markup(s->html, "</p>\n");
    if (!report_table_losses(s, value, "top", "correct"))
        take_back(s->html, before);
}

/* The other ways by one value function, folded up. */
static void add_ways(const report_section *s, const char *value) {
    static const char *const ways[][2] = {{"bottom", "Without the least valuable players"},
                                          {"keep_top", "With the most valuable players alone"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        size_t before = s->html->used;
        fds__text_print(s->html, "<details>\n<summary>%s, judged by ", ways[i][1]);
        report_utility(s->html, value);
        draw_markup(s->html, "</summary>\n");
        if (report_table_losses(s, value, ways[i][0], "correct"))
            draw_markup(s->html, "</details>\n");
        else
            take_back(s->html, before);
    }
}

static void add_losses(const report_section *s) {
    const json_t *judged = json_object_get(s->data, "utilities");
    draw_markup(s->html, "<h3>Value loss</h3>\n");
    size_t before = s->html->used;
    draw_markup(s->html, "<p>Over the test samples that the model of all players predicts rightly");
    draw_markup(s->html, has_paper(s->rows) ? ": the paper’s own figures fit only these, though it "
                                              "does not say so.</p>\n"
                                            : ".</p>\n");
    bool has_right = report_table_losses(s, NULL, "top", "correct");
    if (!has_right)
        take_back(s->html, before);
    add_all(s, !has_right);
    for (size_t j = 0; json_array_size(judged) > 1 && j < json_array_size(judged); j++)
        add_judge(s, report_text_of(json_array_get(judged, j), "utility"));
    for (size_t j = 0; j < json_array_size(judged); j++)
        add_ways(s, report_text_of(json_array_get(judged, j), "utility"));
}

static fds_status add_data(const json_t *report, size_t at, fds__text *html, fds_error *err) {
    const json_t *data = json_array_get(json_object_get(report, "data"), at);
    const report_section s = {.html = html,
                              .data = data,
                              .rows = json_object_get(data, "rows"),
                              .shares =
                                  json_object_get(json_object_get(data, "settings"), "shares"),
                              .at = at};
    fds__text_print(html, "<section id=\"data-%zu\">\n<h2>", at);
    draw_text(html, report_text_of(data, "name"));
    draw_markup(html, "</h2>\n");
    add_facts(&s);
    add_losses(&s);
    draw_markup(html, "<h3>Removal curves</h3>\n<p>Bands are ± 1.96 standard errors.");
    if (report_list_find(s.rows, "kind", report_kind_name(REPORT_CONTROL), NULL))
        draw_markup(html, " Grey: the controls.");
    draw_markup(html, "</p>\n");
    TRY(report_figures_curves(&s, err));
    draw_markup(html, "<h3>Agreement, wrong labels and cost</h3>\n");
    report_table_measures(&s);
    TRY(report_figures_overhead(&s, err));
    TRY(report_figures_pictures(&s, err));
    draw_markup(html, "</section>\n");
    return FDS_OK;
}

/* ---- the end ---- */

static const char meanings[] =
    "<section id=\"meaning\">\n<h2>What the columns mean</h2>\n<dl>\n"
    "<dt>Value loss</dt><dd>Cross-entropy of the true label, in nats, once the given share of the "
    "players was removed, those of greatest value for the predicted label first, and the model "
    "was trained anew from the same start. At most 87.3. Models of so many epochs or models "
    "trained until converged judge it; converged ones are surer of themselves, so their losses "
    "are greater: compare rows by the same models.</dd>\n"
    "<dt>± </dt><dd>Standard error of the mean: the greater of what the test samples tell and of "
    "how far the means of single seeds scatter.</dd>\n"
    "<dt>Correlation with the truth</dt><dd>Of a method’s values with those by least squares on "
    "many coalitions drawn apart, over all players, and over the players of the predicted class "
    "alone, which is the harder question. The truth is an estimate too: how well values from two "
    "halves of its coalitions agree stands above the table.</dd>\n"
    "<dt>Relative error</dt><dd>Length of the difference to the truth, in lengths of the "
    "truth.</dd>\n"
    "<dt>Gap</dt><dd>By how much the values miss the sum that they should have, as a share of "
    "it.</dd>\n"
    "<dt>Wrong labels</dt><dd>Some players’ labels were made wrong and everything valued anew. The "
    "area under the ROC curve tells how well the lowest values find them: 1 is all of them first, "
    "0.5 is chance.</dd>\n"
    "<dt>Sub-models</dt><dd>Models that the method had to train. “Asked for”: those that a "
    "method of others wanted, one that it wanted again counted again.</dd>\n"
    "<dt>To prepare, a new sample</dt><dd>Seconds before the first answer, and milliseconds for "
    "each further sample. Methods with one value a player for all samples answer with that. "
    "≥ stands where a method was interrupted and only its last part was timed. A sub-model is "
    "trained once for all methods: of those that draw alike, as <code>tmc</code> and "
    "<code>beta:4,1</code> do, the first one’s time is whole.</dd>\n"
    "</dl>\n</section>\n";

/* A setting as people write it: lists with commas, texts without quotes. */
static void add_value(fds__text *html, const json_t *value) {
    const char *key;
    json_t *item;
    if (json_is_string(value))
        draw_text(html, json_string_value(value));
    else if (json_is_number(value))
        fds__text_double(html, json_number_value(value));
    else if (json_is_boolean(value))
        draw_markup(html, json_is_true(value) ? "yes" : "no");
    else if (json_is_array(value))
        for (size_t i = 0; i < json_array_size(value); i++) {
            draw_markup(html, i ? ", " : "");
            add_value(html, json_array_get(value, i));
        }
    else if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, item) {
            draw_text(html, key);
            draw_markup(html, " ");
            add_value(html, item);
            draw_markup(html, "; ");
        }
    } else
        draw_markup(html, "–");
}

/* One line a key, one column a set of data. outer: the object in which it lies, or "". */
static void add_setting(const json_t *list, const char *outer, const char *key, fds__text *html) {
    draw_markup(html, "<tr><th scope=\"row\">");
    draw_text(html, key);
    draw_markup(html, "</th>");
    for (size_t d = 0; d < json_array_size(list); d++) {
        const json_t *data = json_array_get(list, d);
        const json_t *value = json_object_get(*outer ? json_object_get(data, outer) : data, key);
        fds__text_print(html, "<td data-path=\"/data/%zu/%s", d, outer);
        draw_markup(html, *outer ? "/" : "");
        report_pointer(html, key);
        draw_markup(html, "\">");
        add_value(html, value);
        draw_markup(html, "</td>");
    }
    draw_markup(html, "</tr>\n");
}

static void add_settings(const json_t *list, fds__text *html) {
    static const char *const keys[] = {"source", "classes", "players", "tests", "inputs", "seeds"};
    draw_markup(html, REPORT_SCROLL
                "<table class=\"settings\">\n<caption><span>Settings</span></caption>\n"
                "<thead><tr><th scope=\"col\">Setting</th>");
    for (size_t d = 0; d < json_array_size(list); d++) {
        draw_markup(html, "<th scope=\"col\">");
        draw_text(html, report_text_of(json_array_get(list, d), "name"));
        draw_markup(html, "</th>");
    }
    draw_markup(html, "</tr></thead>\n<tbody>\n");
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        add_setting(list, "", keys[k], html);
    for (size_t d = 0; d < json_array_size(list); d++) {
        const char *key;
        json_t *unused;
        json_t *settings = json_object_get(json_array_get(list, d), "settings");
        json_object_foreach(settings, key, unused) {
            bool is_new = true;
            for (size_t k = 0; k < d; k++)
                is_new &=
                    !json_object_get(json_object_get(json_array_get(list, k), "settings"), key);
            if (is_new)
                add_setting(list, "settings", key, html);
        }
    }
    draw_markup(html, "</tbody>\n</table></div>\n");
}

static void close_page(const json_t *report, fds__text *html) {
    const json_t *machine = json_object_get(report, "machine"),
                 *list = json_object_get(report, "data");
    const char *command = report_text_of(report, "command");
    draw_markup(html, meanings);
    draw_markup(html, "<section id=\"made\">\n<h2>How it was made</h2>\n");
    if (*command) {
        draw_markup(html, "<p>To repeat it:</p>\n<pre><code>");
        draw_text(html, command);
        draw_markup(html, "</code></pre>\n");
    }
    draw_markup(html, "<p>By fds ");
    draw_text(html, report_text_of(report, "fds"));
    draw_markup(html, ", on ");
    draw_text(html, report_text_of(machine, "processor"));
    draw_markup(html, ", ");
    count_of(html, (size_t)json_integer_value(json_object_get(machine, "processors")), "processor",
             "processors");
    draw_markup(html, ", instructions ");
    draw_text(html, report_text_of(machine, "instructions"));
    draw_markup(html, ", ");
    count_of(html, (size_t)json_integer_value(json_object_get(machine, "threads")), "thread",
             "threads");
    draw_markup(html, ". ");
    if (json_is_true(json_object_get(machine, "is_mixed")))
        draw_markup(html,
                    "<b>Some cases were measured on another machine, with other threads or "
                    "by another version; this is the first one’s: do not compare times.</b> ");
    draw_markup(html,
                "Explainers learn and answer on two threads in any case. All numbers but times "
                "depend on the settings alone. ");
    if (has_paper_anywhere(list))
        draw_markup(html, "The paper’s times are of 4 cores of an EPYC 7543 and an A30 GPU. ");
    draw_markup(html, "Beside this page, <code>report.json</code> and <code>report.csv</code> have "
                      "every number in full.</p>\n");
    add_settings(list, html);
    draw_markup(html, "</section>\n</main>\n</body>\n</html>\n");
}

fds_status report_page(const json_t *report, fds__text *html, fds_error *err) {
    open_page(report, html);
    for (size_t d = 0; d < json_array_size(json_object_get(report, "data")); d++)
        TRY(add_data(report, d, html, err));
    close_page(report, html);
    return fds__text_check(html, err);
}
