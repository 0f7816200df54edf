/* SPDX-License-Identifier: Apache-2.0
 *
 * fds/audit.h: whether a platform pays what its sub-models say. docs/audit.md explains each check: what
 * it finds, how often it alarms falsely, what it cannot see. Stable within a minor version.
 *
 * An auditor takes predictions in the order of their entries, those that the bank has answered too and
 * others, and knows at any time what they prove. Its tests are valid at all times at once: over a whole
 * history, however long and however often it is looked at, the probability of a false alarm of a check
 * is at most alpha. Its memory does not grow with the number of predictions.
 */
#ifndef FDS_AUDIT_H
#define FDS_AUDIT_H

#include "ledger.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names of the checks: "ledger", "truth", "provider", "coverage", "groups", "drift", "self"; NULL beyond
 * the last one. */
FDS_API const char *fds_audit_check_name(size_t i);

/* ==== An auditor ============================================================================ */

/* Belongs to one thread at a time. */
typedef struct fds_auditor fds_auditor;

/* params, of job "trust": "alpha", "tolerance", "groups" (a CSV file with the columns name and group),
 * "run" (folders of runs, one per line: what their validation.json says). */
FDS_API fds_status fds_auditor_create(const fds_params *params, fds_auditor **out, fds_error *err);
FDS_API void fds_auditor_free(fds_auditor *auditor); /* NULL is fine */

/* Another run, as of "run" above: before predictions of it are taken. One that is known already is fine. */
FDS_API fds_status fds_auditor_add_run(fds_auditor *auditor, const char *folder, fds_error *err);

/* Takes what a ledger has beyond what was taken before, at most so many entries and as many audited
 * rows; all calls must be for the same ledger. *is_over: there was no more. So a server calls it now
 * and then, for some milliseconds each. Audited rows must have been added in the order of entries. */
FDS_API fds_status fds_auditor_take(fds_auditor *auditor, const fds_ledger *ledger, size_t most,
                                    bool *is_over, fds_error *err);

/* What all checks say, as JSON (docs/audit.md), to be freed by fds_text_free:
 * {"format":"fds-audit 1","verdict":"alarm","alpha":0.01,"entries":N,"predictions":N,"audited":N,
 *  "checks":[{"check":"truth","verdict":"ok","answer":TEXT,"statistic":X,"e":X,"needed":X,
 *             "predictions":N,"evidence":[...],"correction":{...}},...]}
 * A verdict is "ok", "alarm", or "unknown" where there is too little to say anything. The check "ledger"
 * is "unknown" until fds_audit_ledger or fds_auditor_verify was called. */
FDS_API fds_status fds_auditor_report(const fds_auditor *auditor, char **json, fds_error *err);

/* The check "ledger": fds_ledger_verify, that revealed secrets are those committed to, and that the audited
 * rows are exactly those that the secrets select. What is wrong becomes the verdict, and no failure. */
FDS_API fds_status fds_auditor_verify(fds_auditor *auditor, const fds_ledger *ledger,
                                      const char *vkey, const fds_events *events, fds_error *err);
/* The same verdict as another auditor's, which has verified the ledger, for example on a thread of its
 * own; nothing changes if that has not. */
FDS_API fds_status fds_auditor_share_verdict(fds_auditor *auditor, const fds_auditor *from,
                                             fds_error *err);

/* ==== Everything at once ==================================================================== */

/* All of the above for a whole ledger. checks: their names, separated by commas; NULL: all. vkey: of the
 * log, as its owner has published it; NULL: the one that the ledger names. *json: as of fds_auditor_report. */
FDS_API fds_status fds_audit_ledger(const fds_ledger *ledger, const char *checks, const char *vkey,
                                    const fds_params *params, const fds_events *events, char **json,
                                    fds_error *err);
/* The report as one HTML file that needs nothing else. To be freed by fds_text_free. */
FDS_API fds_status fds_audit_html(const char *json, char **html, fds_error *err);

/* ==== Without a ledger ====================================================================== */

/* Who is paid for the predictions of a run. */
typedef struct fds_audit_payees {
    const char *const *names; /* (count) */
    size_t count;
    const char *policy;  /* "clip" or "signed"; NULL: clip */
    double level;        /* share of the money misallocated at fit time; NaN: not known */
    const double *score; /* (scores) of the calibrated inputs, or NULL */
    size_t scores;
} fds_audit_payees;

/* Runs are numbered from 0. */
FDS_API fds_status fds_auditor_add_payees(fds_auditor *auditor, const fds_audit_payees *payees,
                                          fds_error *err);

typedef struct fds_audit_prediction {
    uint64_t entry;
    size_t run;
    uint64_t customer;
    const char *label;
    int64_t amount;                  /* units that the payees share */
    const float *values, *errors;    /* (payees) that were paid by; errors NaN or NULL: not known */
    const float *bank, *bank_errors; /* (payees); NULL: it was not audited */
    double score;                    /* of the input; NaN: not known */
} fds_audit_prediction;

/* One prediction as it was paid (bank NULL: for the check "self"), or as it was audited, for the other
 * checks; entries of each kind ascend. */
FDS_API fds_status fds_auditor_add(fds_auditor *auditor, const fds_audit_prediction *prediction,
                                   fds_error *err);
/* The evidence that a check has found so far: the greatest e-value as a share of what an alarm needs; 1 and
 * more is an alarm. *entry: of the prediction that made it one, UINT64_MAX: it is none. */
FDS_API double fds_auditor_evidence(const fds_auditor *auditor, const char *check, uint64_t *entry);

#ifdef __cplusplus
}
#endif
#endif
