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
#include "report/report.h"

/* ---- methods.c ---- */

/* A method as a bench names it: "afds", "ls", "tmc", "freeshap/sample". */
typedef struct eval_method {
    char name[48];  /* as it was given */
    char title[64]; /* for people: "FreeShap, per sample" */
    char base[40];  /* without "/sample": for fds_fit or fds_baseline */
    report_kind kind;
    bool is_fit;        /* by fds_fit: fds, afds, gfds, gfds+ */
    bool is_per_sample; /* values differ from test sample to test sample */
    bool is_converged;  /* its own value function is "retrain", else "retrain:10" */
} eval_method;

/* FDS_ERR_USAGE, with what would be right, for a name that there is not. */
fds_status eval_method_find(const char *name, eval_method *out, fds_error *err);

/* ---- machine.c ---- */

/* "machine" of case.json; NULL: no memory. */
json_t *eval_machine(unsigned threads);

#endif
