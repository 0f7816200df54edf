/* SPDX-License-Identifier: Apache-2.0
 * Statistics that are looked at all the time: under the hypothesis they rarely ever alarm, else soon. */
#include "../base/scratch.h"

#include "audit/audit.h"

#include <math.h>

enum { HISTORIES = 1000, STEPS = 2000 };

/* Skewed, of mean mean, from 0 to 1: mean / (1 - ...) rarely large. */
static double draw(fds_rng *rng, double mean) {
    double u = fds_rng_unit(rng);
    return u < 0.9 ? mean * 0.5 : MIN(mean * 5.5, 1.0);
}

static double greatest_bet(uint64_t seed, double mean, double limit, uint64_t from) {
    fds_rng rng = fds_rng_make(seed, 99, 0, 0);
    audit_bet bet = {0};
    double most = 0;
    for (uint64_t i = 0; i < STEPS; i++) {
        double x = draw(&rng, i < from ? limit : mean);
        audit_bet_mean(&bet, x - limit, limit);
        most = MAX(most, audit_bet_value(&bet));
    }
    return most;
}

/* Ville's inequality: the share of histories that ever reach 1/p is at most p. */
static void bets_on_a_mean_that_holds_rarely_ever_win(void **state) {
    (void)state;
    size_t tenfold = 0, hundredfold = 0;
    for (uint64_t s = 0; s < HISTORIES; s++) {
        double most = greatest_bet(s, 0.1, 0.1, 0);
        tenfold += most >= 10;
        hundredfold += most >= 100;
    }
    assert_in_range(tenfold, 0, 130); /* 100 are allowed, plus three standard errors */
    assert_in_range(hundredfold, 0, 19);
    assert_true(tenfold > 5); /* nor are they so careful that they never win */
}

static void bets_on_a_mean_that_is_higher_win(void **state) {
    (void)state;
    size_t won = 0, late = 0;
    for (uint64_t s = 0; s < 100; s++) {
        won += greatest_bet(s, 0.13, 0.1, 0) >= 100;
        late += greatest_bet(s, 0.15, 0.1, STEPS / 2) >= 100; /* honest at first */
    }
    assert_true(won >= 95);
    assert_true(late >= 95);
}

static void nothing_is_lost_beyond_the_capital(void **state) {
    (void)state;
    audit_bet bet = {0};
    for (int i = 0; i < 100; i++)
        audit_bet_mean(&bet, -0.1 * i, 0.1 * i); /* the worst each time */
    assert_true(audit_bet_value(&bet) > 0 && audit_bet_value(&bet) < 1);
    for (int i = 0; i < 100000; i++)
        audit_bet_mean(&bet, 1e6, 0.1);
    assert_true(isfinite(audit_bet_value(&bet)) && audit_bet_value(&bet) > 1e20);
}

/* The bound holds at all times at once, and comes near. */
static void bounds_of_a_mean_hold_at_all_times(void **state) {
    (void)state;
    size_t broken = 0;
    double width = 0;
    for (uint64_t s = 0; s < HISTORIES; s++) {
        fds_rng rng = fds_rng_make(s, 98, 0, 0);
        audit_bound bound = {0};
        bool is_broken = false;
        for (int i = 0; i < STEPS; i++) {
            audit_bound_step(&bound, draw(&rng, 0.1) - 0.3, 0.3, 0.05);
            is_broken |= audit_bound_low(&bound, 0.05) > -0.2;
        }
        broken += is_broken;
        width += (-0.2 - audit_bound_low(&bound, 0.05)) / HISTORIES;
    }
    assert_in_range(broken, 0, 70);
    assert_true(width > 0 &&
                width < 0.03); /* the standard deviation is 0.15, 1.96 errors are 0.0066 */
}

static void ranks_of_alike_numbers_are_uniform(void **state) {
    (void)state;
    fds_error err = {0};
    audit_bag bag;
    double sum = 0, squares = 0;
    size_t low = 0;
    expect_ok(audit_bag_create(&bag, &err), &err);
    fds_rng rng = fds_rng_make(1, 97, 0, 0);
    for (int i = 0; i < 20000; i++) {
        double score = floor(10 * fds_rng_normal(&rng)); /* many are equal */
        double p = audit_bag_rank(&bag, score, 1 - fds_rng_unit(&rng));
        audit_bag_add(&bag, score);
        assert_true(p > 0 && p <= 1);
        sum += p;
        squares += p * p;
        low += p < 0.1;
    }
    assert_true(fabs(sum / 20000 - 0.5) < 0.01 && fabs(squares / 20000 - 1.0 / 3) < 0.01);
    assert_in_range(low, 1880, 2120);
    assert_true(audit_bag_rank(&bag, 1e9, 0.5) < 0.001);
    assert_true(audit_bag_rank(&bag, -1e9, 0.5) > 0.999);
    fds__free(bag.tree);
}

/* The naive count, numbers that the rounding leaves apart. */
static void ranks_agree_with_counting(void **state) {
    (void)state;
    fds_error err = {0};
    audit_bag bag;
    double numbers[300];
    expect_ok(audit_bag_create(&bag, &err), &err);
    fds_rng rng = fds_rng_make(2, 97, 0, 0);
    for (int i = 0; i < 300; i++) {
        int above = 0, equal = 0;
        numbers[i] = (double)(int)fds_rng_below(&rng, 41) - 20;
        for (int k = 0; k < i; k++) {
            above += numbers[k] > numbers[i];
            equal += numbers[k] == numbers[i];
        }
        double wanted = (above + 0.25 * (equal + 1)) / (i + 1);
        assert_true(fabs(audit_bag_rank(&bag, numbers[i], 0.25) - wanted) < 1e-12);
        audit_bag_add(&bag, numbers[i]);
    }
    fds__free(bag.tree);
}

static void bets_on_ranks_are_fair(void **state) {
    (void)state;
    double linear = 0, power = 0;
    size_t reached = 0;
    for (uint64_t s = 0; s < HISTORIES; s++) {
        fds_rng rng = fds_rng_make(s, 96, 0, 0);
        audit_bet a = {0}, b = {0};
        double most = 0;
        for (int i = 0; i < 500; i++) {
            double p = 1 - fds_rng_unit(&rng);
            audit_bet_rank(&a, p);
            audit_bet_power(&b, p);
            most = MAX(most, MAX(audit_bet_value(&a), audit_bet_value(&b)));
        }
        linear += audit_bet_value(&a) / HISTORIES;
        power += audit_bet_value(&b) / HISTORIES;
        reached += most >= 40; /* one of two, so with 1/20 at most */
    }
    assert_in_range(reached, 0, 70);
    assert_true(linear < 1.5 && power < 1.5);
    audit_bet found = {0};
    for (int i = 0; i < 20; i++)
        audit_bet_power(&found, 0.01);
    assert_true(audit_bet_value(&found) > 1e6);
}

static void a_series_keeps_its_ends_in_little_memory(void **state) {
    (void)state;
    audit_series s = {0};
    for (uint64_t i = 0; i < 100000; i++)
        audit_series_note(&s, i, (double)i);
    assert_in_range(s.count, AUDIT_POINTS / 2, AUDIT_POINTS);
    assert_int_equal(s.points[0].entry, 0);
    for (size_t i = 1; i < s.count; i++)
        assert_true(s.points[i].entry == s.points[i - 1].entry + s.stride);
    assert_true(s.points[s.count - 1].entry > 99000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bets_on_a_mean_that_holds_rarely_ever_win),
        cmocka_unit_test(bets_on_a_mean_that_is_higher_win),
        cmocka_unit_test(nothing_is_lost_beyond_the_capital),
        cmocka_unit_test(bounds_of_a_mean_hold_at_all_times),
        cmocka_unit_test(ranks_of_alike_numbers_are_uniform),
        cmocka_unit_test(ranks_agree_with_counting),
        cmocka_unit_test(bets_on_ranks_are_fair),
        cmocka_unit_test(a_series_keeps_its_ends_in_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
