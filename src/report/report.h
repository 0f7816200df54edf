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
#ifndef FDS_REPORT_H
#define FDS_REPORT_H

#include "draw/draw.h"

/* What a method is, for the order of rows. */
typedef enum report_kind {
    REPORT_OURS,
    REPORT_BEYOND,
    REPORT_PAPER,
    REPORT_OTHER,
    REPORT_CONTROL
} report_kind;
const char *report_kind_name(report_kind kind); /* "ours", ... as in case.json */

/* ---- paper.c ---- */

enum { REPORT_PAPER_SHARES = 4, REPORT_PAPER_PLAYERS = 100 };
extern const double report_paper_shares[REPORT_PAPER_SHARES]; /* 0.05, 0.1, 0.15, 0.2 */

typedef struct report_paper_row {
    const char *data, *method; /* "mnist", "afds" */
    double mean[REPORT_PAPER_SHARES], sd[REPORT_PAPER_SHARES];
    double seconds; /* 0: not given */
} report_paper_row;

/* What the paper reports for a method on a set of data, or NULL. */
const report_paper_row *report_paper_find(const char *data, const char *method);

/* ---- join.c, csv.c, page.c ---- */

/* report.json of the cases of dirs; pictures are named by their paths. */
fds_status report_join(const char *const *dirs, size_t count, const char *command, json_t **out,
                       fds_error *err);
/* Everything in report, one line a number. */
fds_status report_csv(const json_t *report, fds__text *csv, fds_error *err);
/* The whole page; pictures as in report_join. */
fds_status report_page(const json_t *report, fds__text *html, fds_error *err);

/* ---- check.c ---- */

/* Every member that is read later is of its kind; numbers are at most 1e15, so that sums stay
 * finite. FDS_ERR_FORMAT names the file and the place. The caller owns *out. */
fds_status report_case_read(const char *path, json_t **out, fds_error *err);
fds_status report_read(const char *path, json_t **out, fds_error *err);

/* ---- numbers.c ---- */

/* The entry of a row's losses, or NULL; at (or NULL) receives its place. */
const json_t *report_losses_find(const json_t *row, const char *value, const char *way,
                                 const char *set, size_t *at);
/* The entry of a list of objects whose member key is text, or NULL; at as above. */
const json_t *report_list_find(const json_t *list, const char *key, const char *text, size_t *at);
/* A member that is a text, "" where there is none; one that is a number, NaN where there is none.
 */
const char *report_text_of(const json_t *object, const char *key);
double report_number_of(const json_t *object, const char *key);
double report_number_at(const json_t *list, size_t at);

/* What the paper reports for a row at a share, NaN where it does not; at as above. */
double report_paper_at(const json_t *row, double share, size_t *at);

/* Of count samples; sd (n - 1) and error are NaN where unknown. */
typedef struct report_stat {
    double count, mean, sd, error;
} report_stat;

/* All samples of count parts together; parts without samples or mean are left out. error, the
 * standard error of the mean, is the greater of sd / sqrt(samples) and sd(means) / sqrt(parts). The
 * parts' own errors are not looked at. */
report_stat report_pool(const report_stat *parts, size_t count);

/* ---- join_rows.c ---- */

/* The cases of one set of data, and room for a number of each. */
typedef struct report_cases {
    const json_t **cases;
    const char **dirs;
    report_stat *parts;
    size_t count;
} report_cases;

/* "judged" and "rows" of report.json; NULL: no memory. */
json_t *report_join_judged(const report_cases *g);
json_t *report_join_rows(const report_cases *g);

/* ---- html.c ---- */

/* A key within a JSON pointer. */
void report_pointer(fds__text *html, const char *key);
/* A value function for people, "models trained until converged" or "models of 10 epochs", as it is
 * and as HTML. */
void report_utility_name(fds__text *name, const char *value);
void report_utility(fds__text *html, const char *value);
/* data:image/png;base64,... */
void report_png(fds__text *html, const uint8_t *data, size_t size);

/* ---- tables.c, figures.c, style.c: the parts of the page ---- */

/* A set of data in report.json, and where it goes. */
typedef struct report_section {
    fds__text *html;
    const json_t *data, *rows, *shares;
    size_t at; /* of data in report.json */
} report_section;

/* Rows stand by their kinds, which are in the order of the page. */
enum { REPORT_KINDS = REPORT_CONTROL + 1 };
report_kind report_kind_of(const json_t *row);

/* What a wide table stands in, to be scrolled by keys too. */
#define REPORT_SCROLL "<div class=\"scroll\" tabindex=\"0\">"

/* Losses at a few shares. value NULL: each row judged by its own value function. False, and nothing
 * is written, when nothing was measured. */
bool report_table_losses(const report_section *section, const char *value, const char *way,
                         const char *set);
void report_table_measures(const report_section *section);

fds_status report_figures_curves(const report_section *section, fds_error *err);
fds_status report_figures_overhead(const report_section *section, fds_error *err);
fds_status report_figures_pictures(const report_section *section, fds_error *err);

extern const char *const report_style[]; /* CSS, then NULL */

#endif
