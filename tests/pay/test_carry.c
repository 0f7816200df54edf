/* SPDX-License-Identifier: Apache-2.0
 *
 * Carried shares against exact arithmetic. All values of a prediction are whole numbers whose sum
 * divides SCALE, so every exact share, and what a payee is owed, is a whole number of 1/SCALE units:
 * the test computes it with 64-bit integers. It knows nothing of how the carry keeps its fractions.
 *
 * After every prediction a payee must be within 1 + ln n units of its exact total; after a batch that
 * was foreseen, within one. */
#include "../base/scratch.h"

#include "pay/pay.h"

#include <math.h>

enum { MOST = 100 };
#define SCALE INT64_C(720720) /* divisible by 1 .. 16 */

typedef struct {
    size_t n;
    fds__policy policy;
    fds__carry *carry;
    int64_t owed[MOST]; /* 1/SCALE units, exactly */
    double worst;       /* greatest difference so far, in units */
} game;

static game start(size_t n, fds__policy policy) {
    game g = {.n = n, .policy = policy};
    fds_error err = {0};
    expect_ok(fds__carry_create(n, &g.carry, &err), &err);
    return g;
}

/* The rule as the documentation has it, on whole numbers. */
static void exact_shares(const game *g, const int64_t *values, int64_t amount, int64_t *exact) {
    int64_t total = 0, sizes = 0, above = 0;
    for (size_t i = 0; i < g->n; i++) {
        total += values[i];
        sizes += llabs(values[i]);
        above += values[i] > 0 ? values[i] : 0;
    }
    bool is_signed = g->policy == FDS__POLICY_SIGNED && total > 0 && 20 * total >= sizes;
    for (size_t i = 0; i < g->n; i++) {
        int64_t weight = is_signed ? values[i] : above == 0 ? 1 : values[i] > 0 ? values[i] : 0;
        int64_t sum = is_signed ? total : above ? above : (int64_t)g->n;
        __extension__ __int128 product = (__extension__(__int128) amount) * weight * SCALE;
        assert_true(product % sum == 0);
        exact[i] = (int64_t)(product / sum);
    }
}

static int64_t floor_units(int64_t exact) { return exact / SCALE - (exact % SCALE < 0); }

static void pay(game *g, const int64_t *values, int64_t amount) {
    double as_doubles[MOST];
    int64_t shares[MOST], exact[MOST], sum = 0;
    fds__pay_rule rule;
    fds_error err = {0};
    for (size_t i = 0; i < g->n; i++)
        as_doubles[i] = (double)values[i];
    expect_ok(fds__carry_pay(g->carry, as_doubles, amount, g->policy, shares, &rule, &err), &err);
    exact_shares(g, values, amount, exact);
    for (size_t i = 0; i < g->n; i++) {
        assert_true(shares[i] >= floor_units(exact[i]));
        assert_true(rule == FDS__PAY_RULE_SIGNED || shares[i] >= 0);
        sum += shares[i];
        g->owed[i] += exact[i] - shares[i] * SCALE;
        double difference = fabs((double)g->owed[i] / (double)SCALE);
        g->worst = fmax(g->worst, difference);
        double kept = (double)fds__carry_owed(g->carry, i) / (double)FDS__UNIT;
        assert_true(fabs(kept - (double)g->owed[i] / (double)SCALE) < 1e-12);
    }
    assert_true(sum == amount);
    if (g->worst > 1 + log((double)g->n))
        fail_msg("%zu payees: a total is %.3f units from the exact one", g->n, g->worst);
}

static void foresee(game *g, const int64_t *values, int64_t amount) {
    double as_doubles[MOST];
    fds_error err = {0};
    for (size_t i = 0; i < g->n; i++)
        as_doubles[i] = (double)values[i];
    expect_ok(fds__carry_foresee(g->carry, as_doubles, amount, g->policy, &err), &err);
}

static void expect_end(const game *g, double most) {
    for (size_t i = 0; i < g->n; i++)
        if (fabs((double)g->owed[i]) >= most * (double)SCALE)
            fail_msg("%zu payees: payee %zu ends %.3f units from its exact total", g->n, i,
                     (double)g->owed[i] / (double)SCALE);
}

/* ---- sequences ---- */

/* Whole numbers with a sum that divides SCALE: total tokens thrown at payees, in signed games some
 * of them once more with the other sign. */
static void draw_values(fds_rng *rng, const game *g, int64_t *values) {
    static const int64_t totals[] = {1, 2, 3, 5, 7, 11, 13, 16, 30, 77, 100 - 9, 143, 720, 5005};
    int64_t total = totals[fds_rng_below(rng, COUNT(totals))];
    size_t among = 1 + fds_rng_below(rng, g->n); /* few or many payees */
    memset(values, 0, g->n * sizeof *values);
    for (int64_t t = 0; t < total; t++)
        values[fds_rng_below(rng, among)]++;
    size_t a = fds_rng_below(rng, g->n), b = fds_rng_below(rng, g->n);
    int64_t moved = (int64_t)fds_rng_below(rng, (uint64_t)total + 1);
    if (g->policy == FDS__POLICY_SIGNED && values[a] >= 0 && values[b] - moved < 0 && a != b) {
        int64_t above = 0; /* clip-for-signed may replace the rule: its sum must divide SCALE too */
        values[a] += moved;
        values[b] -= moved;
        for (size_t i = 0; i < g->n; i++)
            above += values[i] > 0 ? values[i] : 0;
        if (SCALE % above) {
            values[a] -= moved;
            values[b] += moved;
        }
    } else if (g->policy == FDS__POLICY_CLIP && values[a] == 0) {
        values[a] = -moved;
    }
}

/* Amounts of up to 9 decimals are whole numbers of units: what matters is how many units. */
static int64_t draw_amount(fds_rng *rng) {
    static const int64_t scales[] = {1, 2, 100, 10000, 1000000000};
    return (int64_t)fds_rng_below(rng, (uint64_t)scales[fds_rng_below(rng, COUNT(scales))] + 1);
}

static void random_sequences_stay_within_the_bound_and_end_within_one(void **state) {
    (void)state;
    enum { SEQUENCES = 1000, LONGEST = 120 };
    static int64_t values[LONGEST][MOST], amounts[LONGEST];
    for (unsigned s = 0; s < SEQUENCES; s++) {
        fds_rng rng = fds_rng_make(11, 0, s, 0);
        size_t n = 1 + fds_rng_below(&rng, s % 4 ? 12 : MOST),
               steps = 1 + fds_rng_below(&rng, LONGEST);
        game online = start(n, (fds__policy)(s % 2)), batch = start(n, online.policy);
        for (size_t t = 0; t < steps; t++) {
            draw_values(&rng, &online, values[t]);
            amounts[t] = s % 3 ? draw_amount(&rng) : 1;
            pay(&online, values[t], amounts[t]);
            foresee(&batch, values[t], amounts[t]);
        }
        for (size_t t = 0; t < steps; t++)
            pay(&batch, values[t], amounts[t]);
        expect_end(&batch, 1);
        for (size_t t = 0; t < steps; t++) /* more may follow a batch */
            pay(&batch, values[t], amounts[t]);
        fds__carry_free(online.carry);
        fds__carry_free(batch.carry);
    }
}

/* The adversary of the cup game: a unit is divided evenly among the payees owed most, of which the
 * one that gets it drops out. It drives the last to nearly ln n, whatever the rule. */
static size_t adversary(game *g, size_t least, int64_t steps[][MOST]) {
    size_t count = 0;
    for (size_t active = g->n; active >= least; active--) {
        size_t chosen[MOST];
        if (SCALE % (int64_t)active)
            continue;
        for (size_t i = 0; i < g->n; i++)
            chosen[i] = i;
        for (size_t i = 1; i < g->n; i++) /* by falling debt */
            for (size_t j = i; j > 0 && g->owed[chosen[j]] > g->owed[chosen[j - 1]]; j--) {
                size_t moved = chosen[j];
                chosen[j] = chosen[j - 1];
                chosen[j - 1] = moved;
            }
        memset(steps[count], 0, g->n * sizeof **steps);
        for (size_t i = 0; i < active; i++)
            steps[count][chosen[i]] = 1;
        pay(g, steps[count++], 1);
    }
    return count;
}

static void the_worst_adversary_stays_within_the_bound(void **state) {
    (void)state;
    static int64_t steps[4000][MOST];
    for (size_t n = 2; n <= MOST; n += n < 20 ? 1 : 7)
        for (int policy = 0; policy < 2; policy++) {
            game online = start(n, (fds__policy)policy), batch = start(n, online.policy);
            size_t count = 0;
            for (int round = 0; round < 40; round++)
                count += adversary(&online, 1, steps + count);
            for (size_t t = 0; t < count; t++)
                foresee(&batch, steps[t], 1);
            for (size_t t = 0; t < count; t++)
                pay(&batch, steps[t], 1);
            expect_end(&batch, 1);
            if (n == 16) /* it does its worst */
                assert_true(online.worst > 1.5);
            fds__carry_free(online.carry);
            fds__carry_free(batch.carry);
        }
}

/* The number of units left changes from prediction to prediction, which defeats rules that give a
 * payee at most one of them. */
static void units_that_change_in_number_stay_within_the_bound(void **state) {
    (void)state;
    static int64_t steps[4000][MOST];
    for (size_t n = 4; n <= 96; n += 4) {
        game g = start(n, FDS__POLICY_CLIP);
        fds_rng rng = fds_rng_make(12, 0, n, 0);
        for (int round = 0; round < 200; round++) {
            adversary(&g, 1 + fds_rng_below(&rng, n), steps);
            int64_t values[MOST] = {0};
            for (size_t i = 0; i < n; i++) /* nearly one unit each for those owed most */
                values[i] = g.owed[i] > 0;
            int64_t count = 0;
            for (size_t i = 0; i < n; i++)
                count += values[i];
            if (count && SCALE % count == 0)
                pay(&g, values, count > 1 ? count - 1 : 1);
        }
        fds__carry_free(g.carry);
    }
}

/* 10,000 predictions at 0.01, 100 players: each in turn, evenly, or by shares of one hundredth. */
static void ten_thousand_cents_for_a_hundred_players(void **state) {
    (void)state;
    enum { N = 100, K = 10000 };
    game g = start(N, FDS__POLICY_CLIP);
    fds_rng rng = fds_rng_make(13, 0, 0, 0);
    static int64_t values[K][N];
    for (size_t k = 0; k < K; k++) {
        for (int t = 0; t < 143; t++) /* ten players of one class get most of it */
            values[k][fds_rng_below(&rng, 10) +
                      (t % 7 ? 10 * (k % 10) : 10 * fds_rng_below(&rng, 10))]++;
        foresee(&g, values[k], 1);
    }
    for (size_t k = 0; k < K; k++)
        pay(&g, values[k], 1);
    expect_end(&g, 1);
    print_message("# at most %.2f units from the exact total on the way\n", g.worst);
    fds__carry_free(g.carry);
}

static void nothing_paid_leaves_nothing_owed(void **state) {
    (void)state;
    game g = start(3, FDS__POLICY_SIGNED);
    pay(&g, (const int64_t[]){1, 2, 4 - 1}, 0);
    expect_end(&g, 1e-9);
    pay(&g, (const int64_t[]){1, 1, 0}, 1);
    pay(&g, (const int64_t[]){0, 0, 1}, 0); /* no money: what is owed stays owed */
    assert_true(g.owed[0] == -SCALE / 2 && g.owed[1] == SCALE / 2);
    pay(&g, (const int64_t[]){1, 0, 1}, 1); /* payee 1 has no share here, but is owed most */
    assert_true(g.owed[1] == -SCALE / 2 || g.owed[2] == -SCALE / 2);
    fds__carry_free(g.carry);
}

/* A payee without a share of a prediction gets a unit of it when it is owed most. */
static void old_debts_are_paid_from_new_money(void **state) {
    (void)state;
    game g = start(4, FDS__POLICY_CLIP);
    pay(&g, (const int64_t[]){1, 1, 0, 0}, 1);
    assert_true(g.owed[1] == SCALE / 2);
    pay(&g, (const int64_t[]){1, 0, 1, 1}, 1);
    assert_true(g.owed[1] == -SCALE / 2);
    fds__carry_free(g.carry);
}

static void foreseeing_comes_first(void **state) {
    (void)state;
    game g = start(2, FDS__POLICY_CLIP);
    fds_error err = {0};
    pay(&g, (const int64_t[]){1, 1}, 1);
    assert_int_equal(fds__carry_foresee(g.carry, (const double[]){1, 1}, 1, FDS__POLICY_CLIP, &err),
                     FDS_ERR_USAGE);
    expect_in(err.text, "before the first");
    fds__carry_free(g.carry);
    fds__carry_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sequences_stay_within_the_bound_and_end_within_one),
        cmocka_unit_test(the_worst_adversary_stays_within_the_bound),
        cmocka_unit_test(units_that_change_in_number_stay_within_the_bound),
        cmocka_unit_test(ten_thousand_cents_for_a_hundred_players),
        cmocka_unit_test(nothing_paid_leaves_nothing_owed),
        cmocka_unit_test(old_debts_are_paid_from_new_money),
        cmocka_unit_test(foreseeing_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
