/* SPDX-License-Identifier: Apache-2.0
 * Plans of random coalitions.
 *
 * Draw j has its own random stream, so it depends on (seed, sampler, j) only (for
 * FDS_SAMPLER_LEVERAGE, also on the draws before it): a longer plan begins with the shorter one.
 *
 * Kernel, the paper's P(s): size k with weight 1/(k(m-k)), k = 1 .. m-1, then a uniform subset. m is
 * the number of players in the sampler's game: fewer than the real ones where a group is one player.
 *
 * Leverage: all sizes are equally frequent. Every run of n-1 pairs has each size once, in random
 * order; no coalition is repeated. */
#include "game/game.h"

#include <string.h>

/* The stream of a run's order, apart from those of the draws: b = run. */
#define RUN_STREAM ((uint64_t)1 << 32 | FDS_SAMPLER_LEVERAGE)

/* Uniform among the subsets of 0 .. players-1 of the given size: Floyd's method, which needs no
 * list of the players. For a large subset it draws the complement. */
static void draw_subset(fds_rng *rng, size_t players, size_t size, uint64_t *bits) {
    size_t drawn = MIN(size, players - size);
    memset(bits, 0, fds_coalition_words(players) * sizeof *bits);
    for (size_t top = players - drawn; top < players; top++) {
        size_t player = fds_rng_below(rng, top + 1);
        fds__coalition_add(bits, fds_coalition_has(bits, player) ? top : player);
    }
    if (drawn != size)
        fds__coalition_complement(bits, players, bits);
}

static void draw_complement(fds_plan *plan, size_t row) {
    fds__coalition_complement(fds__plan_bits(plan, row), plan->players,
                              fds__plan_bits(plan, row + 1));
}

/* ---- kernel ---- */

/* 1/(k(m-k)) is 1/k + 1/(m-k) over m: draw k with weight 1/k, then k or m-k with equal probability.
 * So the sums harmonic[k] = 1 + 1/2 + ... + 1/k serve games of every size. */
static size_t draw_size(fds_rng *rng, const double *harmonic, size_t m) {
    double target = fds_rng_unit(rng) * harmonic[m - 1];
    size_t low = 1, high = m - 1; /* the lowest k with harmonic[k] > target */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (harmonic[middle] > target)
            high = middle;
        else
            low = middle + 1;
    }
    return fds_rng_below(rng, 2) ? low : m - low;
}

/* Draws a coalition of the sampler's game, and adds its real players to row. drawn: scratch. */
static void draw_kernel(const fds_plan *plan, uint64_t seed, size_t draw, const double *harmonic,
                        uint64_t *drawn, uint64_t *row) {
    size_t owner = plan->sampler == FDS_SAMPLER_GFDS ? draw % fds_groups_count(plan->groups) : 0;
    size_t m = fds__plan_game_size(plan, owner);
    fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_COALITION, plan->sampler, draw);
    size_t size = draw_size(&rng, harmonic, m);
    if (!plan->groups) {
        draw_subset(&rng, m, size, row);
        return;
    }
    draw_subset(&rng, m, size, drawn);
    for (size_t player = 0; player < m; player++)
        if (fds_coalition_has(drawn, player))
            fds__plan_add(plan, owner, player, row);
}

/* Tells progress, and hears a cancellation, after every few milliseconds of drawing. */
static fds_status report(const fds_plan *plan, size_t row, double start_s, const fds_events *events,
                         fds_error *err) {
    const size_t pair = (row - 2) / 2, each = MAX((1 << 20) / plan->players, (size_t)1);
    return pair && pair % each == 0
               ? fds__report(events, "plan", "coalitions", row, plan->rows, start_s, err)
               : FDS_OK;
}

static fds_status sample_kernel(fds_plan *plan, uint64_t seed, const fds_events *events,
                                fds_error *err) {
    const double start_s = fds__now_s();
    OWNED double *harmonic = NULL;
    OWNED uint64_t *drawn = NULL;
    TRY(NEW(harmonic, plan->players, err));
    TRY(NEW(drawn, plan->words, err));
    for (size_t k = 1; k < plan->players; k++)
        harmonic[k] = harmonic[k - 1] + 1 / (double)k;
    size_t step = plan->is_paired ? 2 : 1;
    for (size_t row = 2; row < plan->rows; row += step) {
        TRY(report(plan, row, start_s, events, err));
        draw_kernel(plan, seed, (row - 2) / step, harmonic, drawn, fds__plan_bits(plan, row));
        if (plan->is_paired)
            draw_complement(plan, row);
    }
    /* the distribution has the kernel's weights already */
    for (size_t row = 2; row < plan->rows; row++)
        plan->weights[row] = 1;
    return FDS_OK;
}

/* ---- leverage ---- */

typedef struct {
    uint32_t *order; /* (n-1): sizes of the current run */
    size_t *left;    /* (n/2 + 1): pairs of sizes k and n-k that have not been drawn */
    uint32_t *slots; /* (mask + 1): hash table of rows in the plan, 0 for none */
    size_t mask;     /* a power of two minus 1 */
} leverage;

/* How many pairs there are of each size; SIZE_MAX for more than any plan has. */
static void count_pairs(size_t n, size_t *left) {
    size_t choose = 1;
    for (size_t k = 1; k <= n / 2; k++) {
        choose = choose > FDS__MAX_ROWS ? SIZE_MAX : choose * (n - k + 1) / k;
        left[k] = choose == SIZE_MAX ? SIZE_MAX : 2 * k == n ? choose / 2 : choose;
    }
}

/* Enters the pair at row, unless one with the same two coalitions is there. */
static bool enter(leverage *l, const fds_plan *plan, size_t row) {
    const uint64_t *pair = fds__plan_bits(plan, row);
    size_t bytes = plan->words * sizeof *pair;
    uint64_t key = fds_coalition_id(pair, plan->players) ^
                   fds_coalition_id(pair + plan->words, plan->players); /* in either order */
    size_t slot = key & l->mask;
    for (; l->slots[slot]; slot = (slot + 1) & l->mask) {
        const uint64_t *other = fds__plan_bits(plan, l->slots[slot]);
        if (memcmp(other, pair, bytes) == 0 || memcmp(other, pair + plan->words, bytes) == 0)
            return false;
    }
    l->slots[slot] = (uint32_t)row;
    return true;
}

static size_t pair_class(size_t n, size_t size) { return MIN(size, n - size); }

/* The size of a pair: that of its place in the run, or the next size that has pairs left. */
static size_t leverage_size(leverage *l, const fds_plan *plan, uint64_t seed, size_t pair) {
    size_t n = plan->players, place = pair % (n - 1);
    if (place == 0) {
        for (uint32_t k = 1; k < n; k++)
            l->order[k - 1] = k;
        fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_COALITION, RUN_STREAM, pair / (n - 1));
        fds_rng_shuffle(&rng, l->order, n - 1);
    }
    while (l->left[pair_class(n, l->order[place])] == 0)
        place = (place + 1) % (n - 1);
    return l->order[place];
}

fds_status fds__plan_weigh(fds_plan *plan, fds_error *err) {
    size_t n = plan->players;
    double sum = 0;
    OWNED size_t *drawn = NULL; /* rows of each size */
    TRY(NEW(drawn, n, err));
    for (size_t row = 2; row < plan->rows; row++)
        drawn[fds_coalition_size(fds__plan_bits(plan, row), n)]++;
    for (size_t k = 1; k < n; k++)
        sum += drawn[k] ? 1 / ((double)k * (double)(n - k)) : 0;
    for (size_t row = 2; row < plan->rows; row++) {
        size_t k = fds_coalition_size(fds__plan_bits(plan, row), n);
        plan->weights[row] =
            (double)(plan->rows - 2) / sum / ((double)k * (double)(n - k) * (double)drawn[k]);
    }
    return FDS_OK;
}

static fds_status sample_leverage(fds_plan *plan, uint64_t seed, const fds_events *events,
                                  fds_error *err) {
    const double start_s = fds__now_s();
    size_t n = plan->players, slot_count = 2;
    while (slot_count < plan->rows) /* at most half of them are used: one per pair */
        slot_count *= 2;
    OWNED uint32_t *order = NULL, *slots = NULL;
    OWNED size_t *left = NULL;
    TRY(NEW(order, n - 1, err));
    TRY(NEW(left, n / 2 + 1, err));
    TRY(NEW(slots, slot_count, err));
    leverage l = {order, left, slots, slot_count - 1};
    count_pairs(n, left);
    for (size_t row = 2; row < plan->rows; row += 2) {
        TRY(report(plan, row, start_s, events, err));
        size_t pair = (row - 2) / 2, size = leverage_size(&l, plan, seed, pair);
        fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_COALITION, FDS_SAMPLER_LEVERAGE, pair);
        do {
            draw_subset(&rng, n, size, fds__plan_bits(plan, row));
            draw_complement(plan, row);
        } while (!enter(&l, plan, row));
        left[pair_class(n, size)]--;
    }
    return fds__plan_weigh(plan, err);
}

/* ---- checks ---- */

static fds_status check(const fds_plan *plan, size_t count, fds_error *err) {
    size_t n = plan->players;
    if (n == 1)
        return fds__fail(err, FDS_ERR_USAGE,
                         "there is nothing to sample: the value of a single player is v(all) - "
                         "v(none)");
    if (plan->sampler == FDS_SAMPLER_GFDS_PLUS && fds_groups_count(plan->groups) == 1)
        return fds__fail(err, FDS_ERR_USAGE,
                         "there is nothing to sample: one group is one player, of value v(all) - "
                         "v(none)");
    if (count == 0)
        return fds__fail(err, FDS_ERR_USAGE, "a plan of 0 coalitions: there must be at least one");
    if (plan->is_paired && count % 2)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%zu coalitions cannot be pairs: this sampler needs an even number",
                         count);
    if (count > FDS__MAX_ROWS - 2)
        return fds__fail(err, FDS_ERR_LIMIT, "a plan of %zu coalitions: at most %zu are possible",
                         count, FDS__MAX_ROWS - 2);
    if (plan->sampler == FDS_SAMPLER_LEVERAGE && n < 32 && count > ((size_t)1 << n) - 2)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "%zu different coalitions of %zu players: there are only %zu besides none "
                         "and all",
                         count, n, ((size_t)1 << n) - 2);
    return FDS_OK;
}

fds_status fds__plan_sample(fds_sampler sampler, size_t players, const fds_groups *groups,
                            size_t count, uint64_t seed, const fds_events *events, fds_plan **out,
                            fds_error *err) {
    fds_plan *plan;
    TRY(fds__plan_new(sampler, players, groups, &plan, err));
    plan->is_paired = sampler != FDS_SAMPLER_KERNEL;
    fds_status status = check(plan, count, err);
    if (status == FDS_OK)
        status = fds__plan_reserve(plan, count + 2, err);
    if (status == FDS_OK)
        status = sampler == FDS_SAMPLER_LEVERAGE ? sample_leverage(plan, seed, events, err)
                                                 : sample_kernel(plan, seed, events, err);
    return fds__plan_finish(plan, status, out);
}

fds_status fds_plan_sample(fds_sampler sampler, size_t players, const fds_groups *groups,
                           size_t count, uint64_t seed, fds_plan **out, fds_error *err) {
    return fds__plan_sample(sampler, players, groups, count, seed, NULL, out, err);
}
