/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that make a report share, from case.json to the page.
 *
 *   check.c      case.json and report.json read and checked
 *   numbers.c    numbers out of them, and statistics over seeds
 *   join.c       report.json from cases; join_rows.c its numbers
 *   csv.c        the same as CSV
 *   page.c       report.html; tables.c its tables, figures.c its charts and pictures, style.c how
 *                it looks, html.c texts and numbers as HTML
 *   chart.c      curves as SVG; bars.c bars
 *   report.c     the three files written
 *
 * Paths within report.json are JSON pointers: every number in a table of the page stands in an
 * element whose data-path says where it comes from, "/data/0/rows/3/losses/0/mean/1".
 */
#ifndef FDS_EVAL_REPORT_H
#define FDS_EVAL_REPORT_H

#include "eval/eval.h"

/* ---- check.c ---- */

/* Every member that is read later is of its kind; numbers are at most 1e15, so that sums stay
 * finite. FDS_FORMAT names the file and the place. The caller owns *out. */
fds_status eval_case_read(const char *path, json_t **out, fds_error *err);
fds_status eval_report_read(const char *path, json_t **out, fds_error *err);

/* ---- numbers.c ---- */

/* The entry of a row's losses, or NULL; at (or NULL) receives its place. */
const json_t *eval_losses_find(const json_t *row, const char *value, const char *way,
                               const char *set, size_t *at);
/* The entry of a list of objects whose member key is text, or NULL; at as above. */
const json_t *eval_list_find(const json_t *list, const char *key, const char *text, size_t *at);
/* A member that is a text, "" where there is none; one that is a number, NaN where there is none.
 */
const char *eval_text_of(const json_t *object, const char *key);
double eval_number_of(const json_t *object, const char *key);
double eval_number_at(const json_t *list, size_t at);

/* What the paper reports for a row at a share, NaN where it does not; at as above. */
double eval_paper_at(const json_t *row, double share, size_t *at);

/* Of count samples; sd (n - 1) and error are NaN where unknown. */
typedef struct eval_stat {
    double count, mean, sd, error;
} eval_stat;

/* All samples of count parts together; parts without samples or mean are left out. error, the
 * standard error of the mean, is the greater of sd / sqrt(samples) and sd(means) / sqrt(parts). The
 * parts' own errors are not looked at. */
eval_stat eval_pool(const eval_stat *parts, size_t count);

/* ---- join_rows.c ---- */

/* The cases of one set of data, and room for a number of each. */
typedef struct eval_cases {
    const json_t **cases;
    const char **dirs;
    eval_stat *parts;
    size_t count;
} eval_cases;

/* "judged" and "rows" of report.json; NULL: no memory. */
json_t *eval_join_judged(const eval_cases *g);
json_t *eval_join_rows(const eval_cases *g);

/* Jansson with one way to fail. The first two take the value over; false: there was no memory for
 * it, or for what it was put into. */
static inline bool eval_append(json_t *list, json_t *value) {
    return json_array_append_new(list, value) == 0;
}
static inline bool eval_put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0;
}
/* The same with a value that has other owners. */
static inline bool eval_share(json_t *object, const char *key, const json_t *value) {
    return json_object_set(object, key, (json_t *)(uintptr_t)value) == 0;
}
/* The value, or NULL after it was freed. */
static inline json_t *eval_keep_if(json_t *value, bool is_whole) {
    if (is_whole)
        return value;
    json_decref(value);
    return NULL;
}

/* ---- html.c ---- */

void eval_html(fds_text *html, const char *markup);
/* A text from outside, so that it is a text again in HTML, XML and attributes. */
void eval_html_text(fds_text *html, const char *text);
/* The same for a key within a JSON pointer. */
void eval_html_pointer(fds_text *html, const char *key);
/* A number with so many decimals, a true minus sign, and no "-0". */
void eval_html_number(fds_text *html, int decimals, double value);
/* Decimals that leave about three digits, at most 3; none for what would be 0.000. */
int eval_html_decimals(double value);
/* A value function for people, "models trained until converged" or "models of 10 epochs", as it is
 * and as HTML. */
void eval_value_name(fds_text *name, const char *value);
void eval_html_value(fds_text *html, const char *value);
/* data:image/png;base64,... */
void eval_html_png(fds_text *html, const uint8_t *data, size_t size);

/* ---- tables.c, figures.c, style.c: the parts of the page ---- */

/* A set of data in report.json, and where it goes. */
typedef struct eval_section {
    fds_text *html;
    const json_t *data, *rows, *shares;
    size_t at; /* of data in report.json */
} eval_section;

/* Rows stand by their kinds, which are in the order of the page. */
enum { EVAL_KINDS = EVAL_CONTROL + 1 };
eval_kind eval_kind_of(const json_t *row);

/* What a wide table stands in, to be scrolled by keys too. */
#define EVAL_SCROLL "<div class=\"scroll\" tabindex=\"0\">"

/* Losses at a few shares. value NULL: each row judged by its own value function. False, and nothing
 * is written, when nothing was measured. */
bool eval_table_losses(const eval_section *section, const char *value, const char *way,
                       const char *set);
void eval_table_measures(const eval_section *section);

fds_status eval_figures_curves(const eval_section *section, fds_error *err);
fds_status eval_figures_overhead(const eval_section *section, fds_error *err);
fds_status eval_figures_pictures(const eval_section *section, fds_error *err);

extern const char *const eval_style[]; /* CSS, then NULL */

#endif
