/* SPDX-License-Identifier: Apache-2.0
 *
 * An audit of data, inside the room.
 *
 *   audit.c        values by folds
 *   audit_rows.c   what is said of each sample and provider: reasons, JSON
 *   audit_files.c  the folder: rows.csv, providers.csv, report.html, audit.json
 */
#ifndef FDS_EVAL_AUDIT_H
#define FDS_EVAL_AUDIT_H

#include "eval/eval.h"

typedef struct audit_provider {
    size_t samples, suspects;
    double value, error; /* of all its samples together */
} audit_provider;

struct fds_audit {
    const fds_dataset *ds;
    fds_dataset *own; /* the same, where the audit opened it */
    size_t count, suspects;
    size_t clear_suspects;      /* with values more than two standard errors below 0 */
    uint32_t folds, neighbours; /* neighbours: the K of knn:K */
    uint64_t seed;
    char *utility;
    bool has_network;
    double accuracy, seconds; /* accuracy: share of samples whose label the model says */
    uint32_t *fold;           /* (count), as everything below */
    size_t *tests;            /* test samples of each sample's value */
    double *values, *errors;
    uint32_t *predicted;
    double *probability, *own_probability; /* of the predicted label, of the sample's own */
    uint32_t *twin;            /* a sample of equal values and another label; itself: none */
    size_t *order;             /* the lowest value first */
    audit_provider *providers; /* (providers) */
};

/* ---- audit_rows.c ---- */

fds_status audit_find_twins(fds_audit *a, fds_error *err);
/* What was asked and what came out in total; NULL: out of memory. */
json_t *audit_describe(const fds_audit *a);
/* The same with providers, confusions and rows: audit.json. */
json_t *audit_json(const fds_audit *a);
/* Providers from the lowest value per sample: order[providers]. */
fds_status audit_rank_providers(const fds_audit *a, size_t *order, fds_error *err);

#endif
