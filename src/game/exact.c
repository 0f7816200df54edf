/* SPDX-License-Identifier: Apache-2.0
 * Exact values by enumeration.
 *
 * A block of the plan has all coalitions s of a game of p players. The Shapley value of player i in
 * it is a sum over them with one coefficient per size k = |s|,
 *     phi_i = sum over s with i    of v(s) * (k-1)! (p-k)! / p!
 *           - sum over s without i of v(s) * k! (p-k-1)! / p!
 * so each row is read once and added to all players. The players of a block stand for: the real
 * players (Shapley value); the members of a group and the other groups, whose values belong to
 * other blocks (the paper's varphi); the groups, which divide their values evenly (varphi+).
 *
 * Up to 2^20 rows are added in runs of RUN, then the runs: the error is at most about 2 * RUN
 * roundings of max |v|, below 1e-12. Each job has its own columns, so that one thread computes each
 * sum in one order. */
#include "game/game.h"

#include <string.h>

enum { CHUNK = 256, RUN = 1024 };

typedef struct {
    double v[CHUNK], with[CHUNK], without[CHUNK]; /* a row, and times its coefficients */
    double run[FDS__MAX_EXACT][CHUNK], sum[FDS__MAX_EXACT][CHUNK]; /* (players, columns) */
} scratch;

typedef struct {
    const fds_plan *plan;
    const fds_rows *rows;
    double *values;   /* (players, columns) */
    scratch *scratch; /* (workers) */
} enumeration;

typedef struct {
    double with[FDS__MAX_EXACT + 1], without[FDS__MAX_EXACT + 1]; /* by size */
} coefficients;

/* (k-1)! (p-k)! / p! is 1 / (k C(p,k)), and k! (p-k-1)! / p! is 1 / ((p-k) C(p,k)). with[k+1] and
 * -without[k] are the same bits, so that the value of a player who changes nothing is rounding. */
static coefficients coefficients_of(uint32_t p) {
    coefficients c = {0};
    double choose = 1;
    for (uint32_t k = 0; k <= p; k++) {
        if (k > 0) {
            choose = choose * (p - k + 1) / k;
            c.with[k] = 1 / (k * choose);
        }
        if (k < p)
            c.without[k] = -1 / ((p - k) * choose);
    }
    return c;
}

static void add(double *restrict sum, const double *restrict terms, size_t count) {
    for (size_t c = 0; c < count; c++)
        sum[c] += terms[c];
}

static void add_row(scratch *s, const coefficients *by_size, size_t mask, uint32_t players,
                    size_t count) {
    int size = __builtin_popcountll(mask);
    for (size_t c = 0; c < count; c++) {
        s->with[c] = by_size->with[size] * s->v[c];
        s->without[c] = by_size->without[size] * s->v[c];
    }
    for (uint32_t i = 0; i < players; i++)
        add(s->run[i], mask >> i & 1 ? s->with : s->without, count);
}

/* Sets s->sum to the values of the block's players in columns first .. first+count-1. */
static fds_status sum_block(const enumeration *e, const fds__block *block, scratch *s,
                            unsigned worker, size_t first, size_t count, fds_error *err) {
    const coefficients by_size = coefficients_of(block->players);
    size_t masks = (size_t)1 << block->players;
    memset(s->sum, 0, sizeof s->sum);
    memset(s->run, 0, sizeof s->run);
    for (size_t mask = 0; mask < masks; mask++) {
        TRY(e->rows->read(e->rows->context, worker, block->first + mask, first, count, s->v, err));
        add_row(s, &by_size, mask, block->players, count);
        if ((mask + 1) % RUN && mask + 1 < masks)
            continue;
        for (uint32_t i = 0; i < block->players; i++) {
            add(s->sum[i], s->run[i], count);
            memset(s->run[i], 0, sizeof s->run[i]);
        }
    }
    return FDS_OK;
}

/* From the block's players to the real ones. */
static void assign_values(const enumeration *e, const fds__block *block, const scratch *s,
                          size_t first, size_t count) {
    const fds_plan *plan = e->plan;
    bool is_plus = plan->groups && plan->sampler == FDS_SAMPLER_GFDS_PLUS;
    const uint32_t *members = NULL;
    size_t singles = plan->groups && !is_plus
                         ? fds_groups_members(plan->groups, block->owner, &members)
                         : block->players;
    for (size_t i = 0; i < singles; i++) {
        size_t sharing = is_plus ? fds_groups_members(plan->groups, i, &members) : 1;
        for (size_t m = 0; m < sharing; m++) {
            size_t player = is_plus ? members[m] : members ? members[i] : i;
            double *value = e->values + player * e->rows->columns + first;
            for (size_t c = 0; c < count; c++)
                value[c] = s->sum[i][c] / (double)sharing;
        }
    }
}

static fds_status run_job(void *context, size_t job, unsigned worker, fds_error *err) {
    const enumeration *e = context;
    const fds__block *block = &e->plan->blocks[job % e->plan->block_count];
    size_t first = job / e->plan->block_count * CHUNK;
    size_t count = MIN((size_t)CHUNK, e->rows->columns - first);
    scratch *s = &e->scratch[worker];
    TRY(sum_block(e, block, s, worker, first, count, err));
    assign_values(e, block, s, first, count);
    return FDS_OK;
}

fds_status fds_exact(const fds_plan *plan, const fds_rows *rows, unsigned threads, double *values,
                     const fds_events *events, fds_error *err) {
    if (!plan->is_exact)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "exact values need a plan of all coalitions (fds_plan_exact), this one was "
            "sampled");
    if (rows->columns == 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "exact values of no columns: there must be at least one");
    size_t jobs = (rows->columns - 1) / CHUNK + 1;
    if (!fds__mul(jobs, plan->block_count, &jobs))
        return fds__fail(err, FDS_ERR_LIMIT, "exact values of %zu columns are too many",
                         rows->columns);
    unsigned workers = fds__pool_workers(threads, jobs);
    OWNED scratch *memory = NULL;
    TRY(NEW(memory, workers, err));
    enumeration e = {plan, rows, values, memory};
    return fds__pool_run(threads, jobs, run_job, &e, "exact values", "parts", events, err);
}
