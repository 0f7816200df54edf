/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans for players who come and go.
 *
 * Draw j is the pair (s, N∖s) with s = {i : u(j, i) < t(j)}. u(j, i), uniform in (0, 1), is a function
 * of the seed, the draw and who player i is; t(j) of the seed and the draw. So the draws of other
 * players, restricted to those that both plans have, are the same sets: a coalition of this plan is
 * one of the plan without player p if p is not in it, and one of the plan with player q if q's u is
 * not below t.
 *
 * Given t, sizes are binomial; over a uniform t they are uniform in 0..n, as leverage sampling has
 * them in 1..n-1. The t of draws follow each other in steps of the golden ratio from a random start,
 * which spreads them more evenly than independent ones. Sizes are strata of the weights
 * (fds__plan_weigh). A draw of no and all players, and one of a pair that the plan has, is left out
 * and the next taken: which draws a plan has depends on its players, but no draw depends on others.
 */
#include "game/game.h"

#include <string.h>

#define STREAM ((uint64_t)1 << 33) /* of the start of t, apart from the draws of samplers.c */

/* Open addressing: rows of the plan by the ids of both coalitions, 0 for none. */
typedef struct {
    uint32_t *slots;
    size_t mask;
} pairs;

/* Enters the pair at row, unless the plan has it. */
static bool enter(pairs *p, const fds_plan *plan, size_t row) {
    const uint64_t *pair = fds__plan_bits(plan, row);
    size_t bytes = plan->words * sizeof *pair;
    uint64_t key = fds_coalition_id(pair, plan->players) ^
                   fds_coalition_id(pair + plan->words, plan->players); /* in either order */
    size_t slot = key & p->mask;
    for (; p->slots[slot]; slot = (slot + 1) & p->mask) {
        const uint64_t *other = fds__plan_bits(plan, p->slots[slot]);
        if (memcmp(other, pair, bytes) == 0 || memcmp(other, pair + plan->words, bytes) == 0)
            return false;
    }
    p->slots[slot] = (uint32_t)row;
    return true;
}

/* t(j) in 64 bits: multiples of the golden ratio's fraction, modulo 1. */
static uint64_t threshold(uint64_t start, uint64_t draw) {
    return start + draw * UINT64_C(0x9e3779b97f4a7c15);
}

/* False: none or all. */
static bool draw_pair(fds_plan *plan, const uint64_t *keys, uint64_t seed, uint64_t start,
                      uint64_t draw, size_t row) {
    uint64_t *bits = fds__plan_bits(plan, row), below = threshold(start, draw);
    size_t size = 0;
    memset(bits, 0, plan->words * sizeof *bits);
    for (size_t i = 0; i < plan->players; i++) {
        fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_MEMBER, draw, keys[i]);
        if (fds_rng_u64(&rng) >= below)
            continue;
        fds__coalition_add(bits, i);
        size++;
    }
    fds__coalition_complement(bits, plan->players, fds__plan_bits(plan, row + 1));
    return size && size < plan->players;
}

static fds_status sample(fds_plan *plan, const uint64_t *keys, uint64_t seed,
                         const fds_events *events, fds_error *err) {
    const uint64_t each = MAX((1 << 20) / plan->players, (size_t)1); /* some milliseconds */
    const double start_s = fds__now_s();
    size_t slot_count = 2;
    while (slot_count < plan->rows) /* at most half of them are used: one per pair */
        slot_count *= 2;
    OWNED uint32_t *slots = NULL;
    TRY(NEW(slots, slot_count, err));
    pairs p = {slots, slot_count - 1};
    fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_COALITION, STREAM, 0);
    uint64_t start = fds_rng_u64(&rng), draw = 0;
    for (size_t row = 2; row < plan->rows; draw++) {
        if (draw % each == 0)
            TRY(fds__report(events, "plan", "coalitions", row, plan->rows, start_s, err));
        if (draw_pair(plan, keys, seed, start, draw, row) && enter(&p, plan, row))
            row += 2;
    }
    return fds__plan_weigh(plan, err);
}

static fds_status check(size_t players, size_t count, fds_error *err) {
    if (players < 2)
        return fds__fail(err, FDS_ERR_USAGE,
                         "there is nothing to sample: the value of a single player is v(all) - "
                         "v(none)");
    if (!count || count % 2)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%zu coalitions cannot be pairs: there must be an even number of them",
                         count);
    if (count > FDS__MAX_ROWS - 2)
        return fds__fail(err, FDS_ERR_LIMIT, "a plan of %zu coalitions: at most %zu are possible",
                         count, FDS__MAX_ROWS - 2);
    if (players < 32 && count > ((size_t)1 << players) - 2)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "%zu different coalitions of %zu players: there are only %zu besides none "
                         "and all",
                         count, players, ((size_t)1 << players) - 2);
    return FDS_OK;
}

fds_status fds_plan_nested(const uint64_t *keys, size_t players, size_t count, uint64_t seed,
                           const fds_events *events, fds_plan **out, fds_error *err) {
    fds_plan *plan;
    TRY(check(players, count, err));
    TRY(fds__plan_new(FDS_SAMPLER_LEVERAGE, players, NULL, &plan, err));
    plan->is_paired = true;
    fds_status status = fds__plan_reserve(plan, count + 2, err);
    if (status == FDS_OK)
        status = sample(plan, keys, seed, events, err);
    return fds__plan_finish(plan, status, out);
}
