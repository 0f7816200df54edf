/* SPDX-License-Identifier: Apache-2.0
 *
 * report: finished cases become report.json, report.csv and report.html.
 *
 *   check.c      reads and checks case.json and report.json
 *   numbers.c    numbers in them, and statistics over seeds
 *   join.c       report.json from cases; entries.c what is measured on test samples, and how far
 *                methods are apart; findings.c what was found, in sentences
 *   csv.c        the same as CSV
 *   page.c       report.html; tables.c its tables, figures.c its charts and pictures, html.c what
 *                fills the parts of assets/page.html
 *   curves.c     accuracy, precision and recall against shares of players
 *   paper.c      what the paper reports
 *   report.c     writes the three files
 *   audit.c      the page of an audit of data, from audit.json; assets/audit.html has its text
 *   compare.c    differences between two report.json
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
    const char *method; /* "afds" */
    double mean[REPORT_PAPER_SHARES], sd[REPORT_PAPER_SHARES];
    double seconds; /* 0: not given */
} report_paper_row;

/* What the paper reports for a method on a data set, or NULL. */
const report_paper_row *report_paper_find(const char *data, const char *method);

/* ---- entries.c ---- */

/* The cases of one data set, and scratch for a number of each. */
typedef struct report_cases {
    const json_t **cases;
    const char **dirs;
    struct report_stat *parts;
    size_t count;
    bool is_failed; /* memory ran out: a result lacks something */
} report_cases;

/* What has entries in a case: the item of the list kind whose member key is name. */
typedef struct report_holder {
    const char *kind, *key, *name;
} report_holder;

static inline report_holder report_row_of(const char *method) {
    return (report_holder){"rows", "method", method};
}
static inline report_holder report_utility_of(const char *utility) {
    return (report_holder){"utilities", "utility", utility};
}

/* The lists of a row that have entries, and the methods that others should beat: NULL-terminated. */
extern const char *const report_lists[], *const report_references[];
bool report_is_reference(const char *method);

/* Every entry of a list that any case has, once. */
json_t *report_join_entries(report_cases *cases, const report_holder *of, const char *list);
/* Adds "against" and "behind" to the entries of joined rows. */
void report_join_differences(report_cases *cases, json_t *rows);
/* Whether a joined row is ahead of all others, at a place in its entry of a list: by more than
 * REPORT_ERRORS standard errors of each difference. */
enum { REPORT_ERRORS = 2 };
bool report_is_ahead(const json_t *rows, const char *list, const json_t *row, const json_t *entry,
                     size_t at);

/* ---- findings.c ---- */

/* What was found on a joined data set: a list of {"about", "text"}; NULL: out of memory. */
json_t *report_findings(const json_t *data);

/* ---- join.c, csv.c, page.c ---- */

/* report.json of the cases of dirs; pictures are named by their paths. */
fds_status report_join(const char *const *dirs, size_t count, const char *command, json_t **out,
                       fds_error *err);
/* Everything in report, one line per number. */
fds_status report_csv(const json_t *report, fds__text *csv, fds_error *err);
/* The whole page; pictures as in report_join. */
fds_status report_page(const json_t *report, fds__text *html, fds_error *err);

/* ---- check.c ---- */

/* Every member that is read later is of its kind; numbers are at most 1e15, so that sums stay
 * finite. FDS_ERR_FORMAT names the file and the place. The caller owns *out. */
fds_status report_case_read(const char *path, json_t **out, fds_error *err);
fds_status report_read(const char *path, json_t **out, fds_error *err);

/* ---- numbers.c ---- */

/* The value at a path such as "rows/3/timing", or NULL; the text there, or ""; the number there, or
 * NaN. */
const json_t *report_at(const json_t *json, const char *path);
const char *report_text_of(const json_t *json, const char *path);
double report_number_of(const json_t *json, const char *path);
double report_number_at(const json_t *list, size_t at);

/* Of count samples; sd (n - 1) and error are NaN where unknown. */
typedef struct report_stat {
    double count, mean, sd, error;
} report_stat;

/* The members count, mean, sd and error of an object; of lists their entries at a place. error is
 * sd / sqrt(count) where there is no such member. */
report_stat report_stat_of(const json_t *json, size_t at);
/* A list of numbers, null for what is not finite; NULL: out of memory. */
json_t *report_numbers(const double *numbers, size_t count);

/* The entry of a list of objects whose member key is text, or NULL; at (or NULL) receives its
 * place. */
const json_t *report_find(const json_t *list, const char *key, const char *text, size_t *at);
/* The entry of a row's list, "losses", in the same way; removal and set are "" where it has none. */
const json_t *report_find_entry(const json_t *row, const char *list, const char *utility,
                                const char *removal, const char *set, size_t *at);
/* What the paper reports for a row at a share, NaN where it does not; at as above. */
double report_paper_at(const json_t *row, double share, size_t *at);

/* All samples of count parts together; parts without samples or mean do not count. error, the
 * standard error of the mean, is the greater of sd / sqrt(samples) and sd(means) / sqrt(parts). The
 * errors of the parts are ignored. */
report_stat report_pool(const report_stat *parts, size_t count);

/* ---- html.c ---- */

/* What a part of the page shows. */
typedef struct report_view {
    fds__text *html;
    const json_t *report;
    const json_t *data, *rows, *shares;  /* one data set; NULL: all */
    size_t at;                           /* of data in report.json */
    const char *list;                    /* of losses; NULL: "losses" */
    const char *utility, *removal, *set; /* of losses; utility NULL: each row's own */
    const char *own;                     /* another utility function */
    size_t place;                        /* of a row or a utility function */
    fds_status *status; /* becomes the first failure, except that html is out of memory */
    fds_error *err;
    const struct report_picture *pictures; /* (picture_count) of an audit */
    size_t picture_count;
} report_view;

/* What fills {{name}}, and whether {{#name}} is shown. With a set, both get a view of the losses of
 * that set without the most valuable players. */
typedef struct report_slot {
    const char *name;
    void (*write)(const report_view *v);
    bool (*has)(const report_view *v);
    const char *set; /* or NULL */
} report_slot;

/* Each ends with a slot without a name. */
extern const report_slot report_page_slots[], report_table_slots[], report_figure_slots[],
    report_audit_slots[], report_curve_slots[];
extern const char report_page_html[], report_style_css[], report_audit_html[],
    report_audit_css[]; /* assets/ */

/* Adds a part of page.html or audit.html. */
void report_fill(const report_view *v, const char *part);
/* Whether some row is so, among those of the view's data set, or of all where it has none. */
bool report_any_row(const report_view *v, bool (*is)(const report_view *v, const json_t *row));

/* The list of losses that the view shows; the entry of a row, or NULL, with at as for
 * report_find_entry. */
const char *report_list(const report_view *v);
const json_t *report_entry(const report_view *v, const json_t *row, size_t *at);

/* "models trained to convergence", "models trained for 10 epochs" */
void report_utility(fds__text *html, const char *utility);
const char *report_models(const char *utility);  /* "models of 10 epochs", "converged models" */
const char *report_removal(const char *removal); /* "without the most valuable players" */
void report_counted(fds__text *html, size_t count, const char *one); /* "3 players" */

/* ---- curves.c ---- */

/* The curves of a method that its row in the first case has. */
json_t *report_join_curves(const report_cases *cases, const char *method, const json_t *first);

/* ---- audit.c ---- */

/* A PNG. */
typedef struct report_picture {
    uint8_t *data;
    size_t size;
} report_picture;

/* pictures[count]: of the first rows; none where samples are no images. */
fds_status report_audit(const json_t *audit, const report_picture *pictures, size_t count,
                        fds__text *html, fds_error *err);

/* ---- figures.c ---- */

/* data:image/png;base64,... */
void report_png(fds__text *html, const uint8_t *data, size_t size);

/* ---- tables.c ---- */

/* The page groups rows by kind, in the order of report_kind. */
enum { REPORT_KINDS = REPORT_CONTROL + 1 };
report_kind report_kind_of(const json_t *row);

bool report_has_losses(const report_view *v); /* those of the view, at some share */

#endif
