/* SPDX-License-Identifier: Apache-2.0
 * A plan of coalitions that somebody else chose. */
#include "game/game.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const uint64_t *bits; /* (words) */
    size_t words, row;
} entry;

static int by_bits(const void *left, const void *right) {
    const entry *a = left, *b = right;
    return memcmp(a->bits, b->bits, a->words * sizeof *a->bits);
}

/* Where the complement of a coalition is in entries, or NULL. scratch (words). */
static const entry *find_complement(const entry *entries, size_t count, size_t players,
                                    const uint64_t *bits, uint64_t *scratch) {
    fds__coalition_complement(bits, players, scratch);
    const entry key = {scratch, entries->words, 0};
    return bsearch(&key, entries, count, sizeof key, by_bits);
}

/* Sets order to pairs, and returns whether every coalition has its complement. */
static bool make_pairs(const entry *entries, size_t count, size_t players, uint64_t *scratch,
                       size_t *order) {
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const entry *other = find_complement(entries, count, players, entries[i].bits, scratch);
        if (!other)
            return false;
        if (other > &entries[i]) { /* the first of the two brings both */
            order[used++] = entries[i].row;
            order[used++] = other->row;
        }
    }
    return true;
}

static fds_status fill(fds_plan *plan, const uint64_t *bits, size_t count, size_t *order,
                       fds_error *err) {
    OWNED entry *entries = NULL;
    OWNED uint64_t *scratch = NULL;
    TRY(NEW(entries, count, err));
    TRY(NEW(scratch, plan->words, err));
    for (size_t i = 0; i < count; i++)
        entries[i] = (entry){bits + i * plan->words, plan->words, i};
    qsort(entries, count, sizeof *entries, by_bits);
    plan->is_paired = make_pairs(entries, count, plan->players, scratch, order);
    for (size_t i = 0; !plan->is_paired && i < count; i++)
        order[i] = i;
    for (size_t i = 0; i < count; i++)
        memcpy(fds__plan_bits(plan, i + 2), bits + order[i] * plan->words,
               plan->words * sizeof *bits);
    return fds__plan_weigh(plan, err);
}

fds_status fds__plan_given(size_t players, const uint64_t *bits, size_t count, size_t *order,
                           fds_plan **out, fds_error *err) {
    assert(players > 1 && count > 0);
    if (count > FDS__MAX_ROWS - 2)
        return fds__fail(err, FDS_ERR_LIMIT, "a plan of %zu coalitions: at most %zu are possible",
                         count, FDS__MAX_ROWS - 2);
    fds_plan *plan;
    TRY(fds__plan_new(FDS_SAMPLER_LEVERAGE, players, NULL, &plan, err));
    fds_status status = fds__plan_reserve(plan, count + 2, err);
    if (status == FDS_OK)
        status = fill(plan, bits, count, order, err);
    return fds__plan_finish(plan, status, out);
}
