/* SPDX-License-Identifier: Apache-2.0
 *
 * eval: how good values are.
 *
 *   removal.c   the value loss H_eta: who is removed, what remains, the loss
 *   agree.c     agreement with the truth, and the area under the ROC curve
 *   methods.c   the methods that are compared, by name
 *   case.c      one set of data with one seed: every method valued, removed, compared; case.h
 *               names the files that it is made of
 *   answers.c   the values of one method, whatever it takes
 *   flipped.c   the game with wrong labels
 *   paper.c     the figures of the paper's tables
 *   machine.c   the machine that a case is measured on
 *   report.c    report.json, report.csv, report.html; report.h names the files that make them
 *   compare.c   two reports
 *
 * case.json is all that a report is made from; docs/bench.md has its keys.
 */
#ifndef FDS_EVAL_H
#define FDS_EVAL_H

#include "baseline/baseline.h"
#include "explain/explain.h"

/* ---- methods.c ---- */

typedef enum eval_kind { EVAL_OURS, EVAL_BEYOND, EVAL_PAPER, EVAL_OTHER, EVAL_CONTROL } eval_kind;

/* A method as a bench names it: "afds", "ls", "tmc", "freeshap/sample". */
typedef struct eval_method {
    char name[48];  /* as it was given */
    char title[64]; /* for people: "FreeShap, per sample" */
    char base[40];  /* without "/sample": for fds_fit or fds_baseline */
    eval_kind kind;
    bool is_fit;        /* by fds_fit: fds, afds, gfds, gfds+ */
    bool is_per_sample; /* values differ from test sample to test sample */
    bool is_converged;  /* its own value function is "retrain", else "retrain:10" */
} eval_method;

/* FDS_USAGE, with what would be right, for a name that there is not. */
fds_status eval_method_find(const char *name, eval_method *out, fds_error *err);
const char *eval_kind_name(eval_kind kind); /* "ours", ... as in case.json */

/* ---- paper.c ---- */

enum { EVAL_PAPER_SHARES = 4, EVAL_PAPER_PLAYERS = 100 };
extern const double eval_paper_shares[EVAL_PAPER_SHARES]; /* 0.05, 0.1, 0.15, 0.2 */

typedef struct eval_paper_row {
    const char *data, *method; /* "mnist", "afds" */
    double mean[EVAL_PAPER_SHARES], sd[EVAL_PAPER_SHARES];
    double seconds; /* 0: not given */
} eval_paper_row;

/* What the paper reports for a method on a set of data, or NULL. */
const eval_paper_row *eval_paper_find(const char *data, const char *method);

/* ---- machine.c ---- */

/* "machine" of case.json; NULL: no memory. */
json_t *eval_machine(unsigned threads);

/* ---- join.c, csv.c, page.c ---- */

/* report.json of the cases of dirs; pictures are named by their paths. */
fds_status eval_join(const char *const *dirs, size_t count, const char *command, json_t **out,
                     fds_error *err);
/* Everything in report, one line a number. */
fds_status eval_csv(const json_t *report, fds_text *csv, fds_error *err);
/* The whole page; pictures as in eval_join. */
fds_status eval_page(const json_t *report, fds_text *html, fds_error *err);

/* ---- chart.c, bars.c ---- */

/* One curve: y (and half the height of its band, or NULL) over the chart's x; NaN: no point. */
typedef struct eval_curve {
    const char *name;
    const double *y, *band;
    unsigned style;      /* colour, dashes and marker */
    bool is_control;     /* drawn grey and thin */
    const double *marks; /* y of thin marks, the paper's values, NaN: none; or NULL */
} eval_curve;

typedef struct eval_chart {
    const char *title, *x_name, *y_name; /* with units */
    const double *x;
    size_t points;
    const eval_curve *curves;
    size_t count;
    double base; /* a dashed line at this y, or NaN */
    const char *base_name;
    bool is_small; /* without a legend: curves look as in another chart */
} eval_chart;

/* A figure with inline SVG that follows the page's colours, and a legend beside the curves. Both
 * axes begin at 0. */
void eval_chart_curves(const eval_chart *chart, fds_text *svg);

typedef struct eval_bar {
    const char *name;
    double value, error; /* NaN: none */
    double mark;         /* the paper's value, or NaN */
    unsigned style;
    bool is_control;
} eval_bar;

/* Horizontal bars on a logarithmic scale, each with its number. */
void eval_chart_bars(const char *title, const char *x_name, const eval_bar *bars, size_t count,
                     fds_text *svg);

#endif
