/* SPDX-License-Identifier: Apache-2.0
 *
 * Leave one out: what is lost when a player alone is missing,
 *
 *     phi_i = v(N) - v(N without i).
 *
 * Cook, "Detection of influential observation in linear regression", Technometrics 1977. It is
 * exact from n + 1 coalitions: standard errors are 0. Every sub-model starts from the same initial
 * network: a difference is never one of seeds.
 */
#include "baseline/baseline.h"

#include <string.h>

typedef struct {
    const baseline_job *job;
    double *full; /* (columns): v(N) */
} loo;

/* Coalition 0 is N; coalition i + 1 is N without player i. */
static void draw(void *context, size_t number, uint64_t *bits) {
    size_t n = ((const loo *)context)->job->players;
    if (number > 0)
        fds__coalition_add(bits, number - 1);
    fds__coalition_complement(bits, n, bits);
}

static void add(void *context, size_t number, const uint64_t *bits, const double *v) {
    (void)bits;
    const loo *l = context;
    size_t columns = l->job->columns;
    if (number == 0)
        memcpy(l->full, v, columns * sizeof *v);
    for (size_t c = 0; number > 0 && c < columns; c++)
        l->job->values[(number - 1) * columns + c] = l->full[c] - v[c];
}

static double most(const fds_params *params, size_t players, uint32_t classes) {
    (void)params, (void)classes;
    return (double)players + 1;
}

static fds_status run(baseline_job *job, fds_error *err) {
    loo l = {job, baseline_alloc(job, job->columns, 1, sizeof *l.full)};
    return baseline_ask_all(job, job->players + 1, draw, add, &l, err);
}

const baseline_method baseline_loo = {
    .name = "loo",
    .about = "leave one out",
    .is_exact = true,
    .run = run,
    .most = most,
};
