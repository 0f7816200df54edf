/* SPDX-License-Identifier: Apache-2.0
 *
 * Leave one out: what is lost when a player alone is missing,
 *
 *     phi_i = v(N) - v(N without i).
 *
 * Cook, "Detection of influential observation in linear regression", Technometrics 1977. It is
 * exact from n + 1 coalitions: standard errors are 0. The sub-model of all players is
 * trained once and, as every sub-model, starts from the same initial network: a difference is never
 * one of seeds.
 */
#include "baseline/baseline.h"

#include <string.h>

enum { CHUNK = 256 }; /* coalitions asked for at a time */

typedef struct {
    size_t words;
    uint64_t *all, *some; /* (words); (CHUNK, words) */
    double *full, *rest;  /* (columns); (CHUNK, columns) */
} scratch;

static void scratch_free(scratch *r) {
    fds__free(r->all);
    fds__free(r->full);
}

static fds_status scratch_make(scratch *r, const baseline_game *game, fds_error *err) {
    r->words = fds_coalition_words(game->players);
    r->all = fds__alloc_zero((CHUNK + 1) * r->words, sizeof *r->all);
    r->full = fds__alloc_zero(CHUNK + 1, game->columns * sizeof *r->full);
    if (!r->all || !r->full)
        return fds__fail_nomem(err, (CHUNK + 1) * game->columns * sizeof *r->full);
    r->some = r->all + r->words;
    r->rest = r->full + game->columns;
    fds__coalition_complement(r->all, game->players, r->all);
    return FDS_OK;
}

/* Players first .. first + count - 1. */
static fds_status leave_out(const baseline_job *job, const scratch *r, size_t first, size_t count,
                            fds_error *err) {
    for (size_t i = 0; i < count; i++) {
        uint64_t *coalition = r->some + i * r->words;
        memcpy(coalition, r->all, r->words * sizeof *coalition);
        coalition[(first + i) / 64] ^= (uint64_t)1 << ((first + i) % 64);
    }
    TRY(job->game.ask(job->game.context, r->some, count, r->rest, err));
    double *values = job->values + first * job->columns;
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < job->columns; c++)
            values[i * job->columns + c] = r->full[c] - r->rest[i * job->columns + c];
    return FDS_OK;
}

static fds_status leave_out_all(const baseline_job *job, const scratch *r, fds_error *err) {
    double start_s = fds__now_s();
    TRY(job->game.ask(job->game.context, r->all, 1, r->full, err));
    for (size_t first = 0; first < job->players; first += CHUNK) {
        size_t count = MIN(job->players - first, (size_t)CHUNK);
        TRY(leave_out(job, r, first, count, err));
        TRY(fds__report(job->events, "loo", "players", first + count, job->players, start_s, err));
    }
    return FDS_OK;
}

static fds_status most(const fds_params *params, size_t players, uint32_t classes, size_t *most,
                       fds_error *err) {
    (void)params, (void)classes, (void)err;
    *most = players + 1;
    return FDS_OK;
}

static fds_status run(baseline_job *job, fds_error *err) {
    scratch r = {0};
    fds_status status = scratch_make(&r, &job->game, err);
    if (status == FDS_OK)
        status = leave_out_all(job, &r, err);
    scratch_free(&r);
    return status;
}

const baseline_method baseline_loo = {
    .name = "loo",
    .about = "leave one out",
    .takes = "utility table store model lr beta batch optimizer",
    .has_table = true,
    .is_exact = true,
    .scorers = BASELINE_ANY_SCORER,
    .run = run,
    .most = most,
};
