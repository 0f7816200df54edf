/* SPDX-License-Identifier: Apache-2.0
 *
 * Audits of data for cheating: copies across providers, wrong labels of a provider.
 *
 *   distances.c   nearest neighbours across providers, whatever pixels pictures are shifted by
 *   duplicates.c  copies: the test, its evidence as JSON and as a picture
 *   clusters.c    providers that copies join, as a file for `cluster`
 *   paid.c        what they earn apart, and as one
 *   labels.c      providers whose labels are worse than chance allows
 */
#ifndef FDS_AUDIT_COPIES_H
#define FDS_AUDIT_COPIES_H

#include "data/data.h"
#include "draw/draw.h"
#include "eval/eval.h"
#include "explain/explain.h"

/* ---- distances.c ---- */

enum { COPIES_SHIFT = 2 }; /* pixels that pictures may be shifted by, in each direction */

/* The nearest sample of each provider to each sample, owned or not. */
typedef struct copies_near {
    size_t owned, count; /* samples of providers; all, with those of the test part behind them */
    uint32_t providers;
    float *distance;  /* (count, providers) root mean square difference; infinite: none */
    uint32_t *which;  /* (count, providers) its number */
    float *reference; /* (count) to the nearest unowned sample; or NULL: there are none */
} copies_near;

/* test NULL: no unowned samples. Values count in standard deviations of their channel. */
fds_status copies_find(const fds_dataset *train, const fds_dataset *test, unsigned threads,
                       const fds_events *events, copies_near *out, fds_error *err);
void copies_near_free(copies_near *near);

/* ---- duplicates.c ---- */

/* The probability that at least k of n owned samples come before the r-th of u unowned ones in a random
 * order of all. */
double copies_tail(size_t n, size_t u, size_t r, size_t k);

/* ---- clusters.c ---- */

/* Numbers the parts that joined pairs (a, b) of count providers make: part_of[count], each the lowest
 * number of its members. */
void copies_join(const uint32_t *pairs, size_t pair_count, uint32_t count, uint32_t *part_of);
/* Lines "provider,cluster" of the providers that are not alone; nothing if there are none. */
fds_status copies_clusters(const fds_dataset *ds, const uint32_t *part_of, fds__text *text,
                           fds_error *err);
fds_status copies_write_clusters(const char *path, const fds_dataset *ds, const uint32_t *part_of,
                                 fds_error *err);

/* ---- paid.c ---- */

/* Shares of all money, means over inputs under the rule clip. */
typedef struct copies_paid {
    char game[16];    /* "bank": the sub-models of the run; "knn:5"; "": not computed */
    char reason[512]; /* why not the bank; "": it was */
    size_t inputs;
    double *apart;  /* (providers) */
    double *as_one; /* (providers) of the cluster, at its first member; NaN elsewhere */
} copies_paid;

/* What members of clusters earn. run: whose bank values them if it can, or NULL. The caller frees the
 * arrays, after a failure too. */
fds_status copies_pay(const char *run, const fds_dataset *train, const fds_dataset *test,
                      const uint32_t *part_of, const fds_params *params, const fds_events *events,
                      copies_paid *out, fds_error *err);
void copies_paid_free(copies_paid *paid);

#endif
