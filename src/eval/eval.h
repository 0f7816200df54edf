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

/* ---- settings and data of a case ---- */

typedef struct fds__bench_params {
    const char *const *methods; /* NULL-terminated names of fds_bench_methods; NULL: all of them
                                 * that there are for these players */
    const double *shares;       /* [share_count] of the players, ascending, above 0, at most 1 */
    size_t share_count;
    bool is_both_ways;     /* also without the least valuable, and with the most valuable alone */
    bool is_converged;     /* also scorer by models trained until they have converged, not only by
                            * those trained for 10 epochs; fds is judged so in any case */
    const char *network;   /* of service model and sub-models */
    const char *explainer; /* NULL: "mlp" */
    size_t coalitions;     /* sub-models of fds, afds, gfds and ls; 0: 20 a player */
    size_t permutations;   /* of tmc, cs-shapley, beta and gshapley at the most */
    size_t truth;          /* coalitions of the values that are taken for the truth; 0: none */
    double flipped; /* share of players whose labels are made wrong, to see which methods find
                     * them; 0: none */
    uint64_t seed;
    unsigned threads; /* numbers do not depend on it */
} fds__bench_params;

/* Shares of 5 % to 100 %, 40 permutations, LeNet-5. */
fds__bench_params fds__bench_params_default(void);
fds_status fds__bench_check(const fds__bench_params *params, fds_error *err);

typedef struct fds__bench_data {
    const char *name; /* "mnist" */
    const fds_dataset *train;
    const fds_players *players;
    const uint32_t *samples; /* [sample_count] of all players, ascending */
    size_t sample_count;
    const uint32_t *inputs; /* [input_count] samples of train for explainers, none of a player's */
    size_t input_count;
    const fds_dataset *test;
    const uint32_t *tests; /* [test_count] samples of test; NULL: the first */
    size_t test_count;
} fds__bench_data;

/* Measures a case in the folder dir, or what is left of it to do; a finished one is left as it is.
 * dir/case.json has the result. FDS_ERR_USAGE, naming the difference, when dir holds a case of other
 * settings. */
fds_status fds__bench_case(const char *dir, const fds__bench_data *data,
                           const fds__bench_params *params, const fds_events *events,
                           fds_error *err);

/* ---- methods.c ---- */

/* A method as a bench names it: "afds", "ls", "tmc", "freeshap/sample". */
typedef struct eval_method {
    char name[48];  /* as it was given */
    char title[64]; /* for people: "FreeShap, per sample" */
    char base[40];  /* without "/sample": for fds__fit or fds__baseline */
    report_kind kind;
    bool is_fit;        /* by fds__fit: fds, afds, gfds, gfds+ */
    bool is_per_sample; /* values differ from test sample to test sample */
    bool is_converged;  /* its own value function is "retrain", else "retrain:10" */
} eval_method;

/* FDS_ERR_USAGE, with what would be right, for a name that there is not. */
fds_status eval_method_find(const char *name, eval_method *out, fds_error *err);

/* ---- machine.c ---- */

/* "machine" of case.json; NULL: no memory. */
json_t *eval_machine(unsigned threads);

#endif
