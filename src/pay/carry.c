/* SPDX-License-Identifier: Apache-2.0
 *
 * Who gets the units left over by rounding down. The rule is greedy: each unit goes to the payee
 * that is owed most, whatever its share of this prediction is (of equals, to the first); a payee may
 * get several. This is the cup game: fractions of a unit flow into n cups, and each whole unit is
 * taken out of the fullest. After every prediction
 *
 *     1/n - 1  <=  owed  <=  1/2 + 1/3 + ... + 1/n  <=  ln n
 *
 * The k payees owed most are owed at most 1/(k+1) + ... + 1/n on average: let S be these k after a
 * prediction, and R the r others that got a unit in it. Each of R was owed most when it got its
 * last, so it is still owed at least the greatest minus 1. S and R together are owed no more than
 * before: all units went to them, and no more than that came in. So the average of S is at most that
 * of the k + r owed most before, plus r/(k+r), which is at most 1/(k+1) + ... + 1/(k+r). The average
 * of all n is 0. The lower bound holds because whoever gets a unit is owed at least the average, 1/n.
 *
 * A batch that is known in advance ends closer. `ahead` is what its exact totals, rounded by the
 * largest remainder, will leave owed: all between -1 and 1. The rule then takes owed - ahead for
 * owed. That is 0 at the end, because nobody above 0 before a unit is below 0 at the end; the
 * inequality above holds for it from the start, where the k greatest of -ahead are at most 1 - k/n
 * on average; and owed differs from it by less than 1.
 *
 * Fractions are rounded down to 64 bits, so owed is too low by less than 2^-64 units for each
 * prediction: by less than 1e-10 after a thousand million of them. */
#include "pay/pay.h"

struct fds__carry {
    size_t count;
    fds__fixed *owed;  /* (count) exact minus paid; the sum is 0 up to rounding */
    fds__fixed *ahead; /* (count) see above; while predictions are foreseen, their sum */
    fds__fixed *parts; /* (count) scratch */
    int64_t *weights;  /* (count) scratch */
    int64_t *wholes;   /* (count) scratch */
    size_t *heap;      /* (count) scratch: payees, the one owed most first */
    size_t foreseen;   /* predictions that are not paid yet */
    bool has_paid;
};

void fds__carry_free(fds__carry *c) {
    if (!c)
        return;
    fds__free(c->owed);
    fds__free(c->ahead);
    fds__free(c->parts);
    fds__free(c->weights);
    fds__free(c->wholes);
    fds__free(c->heap);
    fds__free(c);
}

static fds_status reserve(fds__carry *c, fds_error *err) {
    TRY(NEW(c->owed, c->count, err));
    TRY(NEW(c->ahead, c->count, err));
    TRY(NEW(c->parts, c->count, err));
    TRY(NEW(c->weights, c->count, err));
    TRY(NEW(c->wholes, c->count, err));
    return NEW(c->heap, c->count, err);
}

fds_status fds__carry_create(size_t count, fds__carry **out, fds_error *err) {
    fds__carry *c;
    TRY(NEW(c, 1, err));
    c->count = count;
    fds_status status = reserve(c, err);
    if (status == FDS_OK)
        *out = c;
    else
        fds__carry_free(c);
    return status;
}

/* ---- the greedy rule ---- */

typedef struct {
    fds__fixed *levels;      /* (count) */
    const fds__fixed *below; /* (count) a level counts from here; NULL: from 0 */
    size_t *heap, count;
} cups;

static bool is_fuller(const cups *c, size_t a, size_t b) {
    fds__fixed of_a = c->levels[a] - (c->below ? c->below[a] : 0),
               of_b = c->levels[b] - (c->below ? c->below[b] : 0);
    return of_a != of_b ? of_a > of_b : a < b;
}

static void sift_down(const cups *c, size_t at) {
    for (size_t child; (child = 2 * at + 1) < c->count; at = child) {
        if (child + 1 < c->count && is_fuller(c, c->heap[child + 1], c->heap[child]))
            child++;
        if (!is_fuller(c, c->heap[child], c->heap[at]))
            return;
        size_t moved = c->heap[at];
        c->heap[at] = c->heap[child];
        c->heap[child] = moved;
    }
}

/* Takes units out of the fullest cups; shares (count) grow by them, or NULL. */
static void take_out(const cups *c, size_t units, int64_t *shares) {
    for (size_t i = 0; i < c->count; i++)
        c->heap[i] = i;
    for (size_t i = c->count / 2; units && i-- > 0;)
        sift_down(c, i);
    for (; units; units--) {
        size_t fullest = c->heap[0];
        c->levels[fullest] -= FDS__UNIT;
        if (shares)
            shares[fullest]++;
        sift_down(c, 0);
    }
}

/* ---- a batch that is known in advance ---- */

fds_status fds__carry_foresee(fds__carry *c, const double *values, int64_t amount,
                              fds__policy policy, fds_error *err) {
    size_t left;
    fds__pay_rule rule;
    if (c->has_paid)
        return fds__fail(err, FDS_ERR_USAGE,
                         "predictions can only be foreseen before the first one is paid");
    TRY(fds__divide(values, c->count, amount, policy, c->weights, c->wholes, c->parts, &left, &rule,
                    err));
    for (size_t i = 0; i < c->count; i++)
        c->ahead[i] += c->parts[i];
    c->foreseen++;
    return FDS_OK;
}

/* From the sums of fractions to what they leave owed at the end. */
static void look_ahead(fds__carry *c) {
    fds__fixed left = 0;
    for (size_t i = 0; i < c->count; i++) {
        c->ahead[i] &= FDS__UNIT - 1;
        left += c->ahead[i];
    }
    /* the exact sum is whole: what rounding down has taken from it is far below half a unit */
    size_t units = (size_t)((left + FDS__UNIT / 2) / FDS__UNIT);
    take_out(&(cups){c->ahead, NULL, c->heap, c->count}, units, NULL);
}

/* ---- paying ---- */

fds_status fds__carry_pay(fds__carry *c, const double *values, int64_t amount, fds__policy policy,
                          int64_t *shares, fds__pay_rule *rule, fds_error *err) {
    size_t left;
    TRY(fds__divide(values, c->count, amount, policy, c->weights, c->wholes, c->parts, &left, rule,
                    err));
    if (!c->has_paid)
        look_ahead(c);
    c->has_paid = true;
    memcpy(shares, c->wholes, c->count * sizeof *shares);
    for (size_t i = 0; i < c->count; i++)
        c->owed[i] += c->parts[i];
    take_out(&(cups){c->owed, c->ahead, c->heap, c->count}, left, shares);
    if (c->foreseen && --c->foreseen == 0) /* the batch is over; more may follow */
        memset(c->ahead, 0, c->count * sizeof *c->ahead);
    return FDS_OK;
}

fds__fixed fds__carry_owed(const fds__carry *c, size_t payee) { return c->owed[payee]; }

void fds__carry_set(fds__carry *c, const fds__fixed *owed) {
    memcpy(c->owed, owed, c->count * sizeof *owed);
    c->has_paid = true;
}
