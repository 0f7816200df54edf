/* SPDX-License-Identifier: Apache-2.0
 * Empirical Bayes within groups: against its formula, and on values whose truth is known. */
#include "ls_fixture.h"

#include "game/ls.h"

enum { PLAYERS = 23, WIDTH = 3 };

static double normal(fds_rng *rng) {
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += fds_rng_unit(rng);
    return sum;
}

/* Groups of 10, 10 and 3 players. */
static fds_groups *three_groups(void) {
    uint32_t group_of[PLAYERS];
    for (uint32_t i = 0; i < PLAYERS; i++)
        group_of[i] = i < 20 ? i % 2 : 2;
    return make_groups(group_of, PLAYERS);
}

static fds__design design_of(const fds_groups *groups) {
    return (fds__design){.players = PLAYERS, .groups = groups, .group_count = 3};
}

static void values_are_drawn_towards_the_mean_by_their_errors(void **state) {
    (void)state;
    fds_groups *groups = three_groups();
    fds__design design = design_of(groups);
    double phi[PLAYERS * WIDTH], var[PLAYERS * WIDTH], old[PLAYERS * WIDTH], old_var[COUNT(var)];
    fds_rng rng = fds_rng_make(1, 3300, 0, 0);
    for (size_t i = 0; i < COUNT(phi); i++) {
        old[i] = phi[i] = normal(&rng);
        old_var[i] = var[i] = 0.3 * fds_rng_unit(&rng);
    }
    fds__ls_shrink_noise(&design, WIDTH, phi, var);
    for (size_t i = 0; i < 20; i++)
        for (size_t c = 0; c < WIDTH; c++) {
            double mean = 0, noise = 0, squares = 0, lost = 0;
            for (size_t j = i % 2; j < 20; j += 2) {
                mean += old[j * WIDTH + c] / 10;
                noise += old_var[j * WIDTH + c] / 10;
            }
            for (size_t j = i % 2; j < 20; j += 2)
                squares += pow(old[j * WIDTH + c] - mean, 2) / 9;
            double spread = fmax(squares - noise, 0), v = old_var[i * WIDTH + c];
            double careful = spread + 0.75 * noise * sqrt(2.0 / 9), kept = careful / (careful + v);
            for (size_t j = i % 2; j < 20; j += 2) /* what shrinking takes from the sum */
                lost += (old[j * WIDTH + c] - mean) * old_var[j * WIDTH + c] /
                        (spread + old_var[j * WIDTH + c]);
            double wanted = mean + spread / (spread + v) * (old[i * WIDTH + c] - mean) + lost / 10;
            assert_true(fabs(phi[i * WIDTH + c] - wanted) < 1e-14);
            double off = old[i * WIDTH + c] - mean, moves = v / (spread + v);
            double excess = fmax(off * off - v - careful, 0);
            assert_true(fabs(var[i * WIDTH + c] - v * (kept + (1 - kept) / 10) -
                             moves * moves * excess) < 1e-14);
        }
    /* three values say too little of their spread */
    assert_memory_equal(phi + 20 * WIDTH, old + 20 * WIDTH, 3 * WIDTH * sizeof *phi);
    assert_memory_equal(var + 20 * WIDTH, old_var + 20 * WIDTH, 3 * WIDTH * sizeof *var);
    fds_groups_free(groups);
}

static void exact_values_stay(void **state) {
    (void)state;
    fds_groups *groups = three_groups();
    fds__design design = design_of(groups);
    double phi[PLAYERS] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, old[PLAYERS], var[PLAYERS] = {0};
    memcpy(old, phi, sizeof phi);
    fds__ls_shrink_noise(&design, 1, phi, var);
    assert_memory_equal(phi, old, sizeof phi);
    for (size_t i = 0; i < PLAYERS; i++)
        assert_true(var[i] == 0);
    fds_groups_free(groups);
}

/* Values of spread 1 and errors of 0.1 to 3: the squared error falls, the intervals still hold. */
static void noise_goes_and_intervals_hold(void **state) {
    (void)state;
    static const double errors[] = {0.1, 0.5, 1, 3};
    enum { DRAWS = 2000 };
    fds_groups *groups = three_groups();
    fds__design design = design_of(groups);
    fds_rng rng = fds_rng_make(2, 3300, 0, 0);
    for (size_t e = 0; e < COUNT(errors); e++) {
        double before = 0, after = 0;
        size_t held = 0;
        for (size_t draw = 0; draw < DRAWS; draw++) {
            double truth[PLAYERS], phi[PLAYERS], var[PLAYERS];
            for (size_t i = 0; i < PLAYERS; i++) {
                truth[i] = 5 + normal(&rng);
                phi[i] = truth[i] + errors[e] * normal(&rng);
                var[i] = errors[e] * errors[e];
                before += i < 20 ? pow(phi[i] - truth[i], 2) : 0;
            }
            fds__ls_shrink_noise(&design, 1, phi, var);
            for (size_t i = 0; i < 20; i++) {
                after += pow(phi[i] - truth[i], 2);
                held += fabs(phi[i] - truth[i]) <= 1.96 * sqrt(var[i]);
            }
        }
        double share = (double)held / (20 * DRAWS);
        print_message("# errors of %.1f: mean square falls to %.3f, %.3f within 1.96 errors\n",
                      errors[e], after / before, share);
        assert_true(after < before && share > 0.92 && share < 0.995);
    }
    fds_groups_free(groups);
}

/* One value in twenty is far from the others: drawn to their mean, it is not nearer to its own truth. */
static void intervals_of_outliers_hold(void **state) {
    (void)state;
    enum { DRAWS = 4000 };
    const fds__design design = {.players = 20, .group_count = 1};
    fds_rng rng = fds_rng_make(4, 3300, 0, 0);
    size_t held = 0, others = 0;
    for (size_t draw = 0; draw < DRAWS; draw++) {
        double phi[20], var[20];
        for (size_t i = 0; i < 20; i++) {
            phi[i] = (i ? 0 : 4) + normal(&rng);
            var[i] = 1;
        }
        fds__ls_shrink_noise(&design, 1, phi, var);
        held += fabs(phi[0] - 4) <= 1.96 * sqrt(var[0]);
        for (size_t i = 1; i < 20; i++)
            others += fabs(phi[i]) <= 1.96 * sqrt(var[i]);
    }
    print_message("# %.3f of outliers within 1.96 errors, %.3f of the others\n",
                  (double)held / DRAWS, (double)others / DRAWS / 19);
    assert_true(held > 0.85 * DRAWS && others > 0.95 * 19 * DRAWS);
}

/* Six equal values far above the rest, which leave the shrinkage little to do: the greatest is the
 * luckiest of the six, and its interval holds too rarely. Nobody else's variance changes. */
static void the_greatest_value_allows_for_its_luck(void **state) {
    (void)state;
    enum { DRAWS = 4000 };
    fds_rng rng = fds_rng_make(3, 3300, 0, 0);
    const fds__design design = {.players = PLAYERS, .group_count = 1};
    size_t plain = 0, widened = 0;
    for (size_t draw = 0; draw < DRAWS; draw++) {
        double truth[PLAYERS], phi[PLAYERS], var[PLAYERS], old[PLAYERS];
        size_t top = 0;
        for (size_t i = 0; i < PLAYERS; i++) {
            truth[i] = i < 6 ? 100 : (double)i;
            phi[i] = truth[i] + normal(&rng);
            var[i] = 1;
        }
        fds__ls_shrink_noise(&design, 1, phi, var);
        memcpy(old, var, sizeof old);
        assert_int_equal(fds__ls_add_winners_curse(PLAYERS, 1, phi, var, NULL), FDS_OK);
        for (size_t i = 0; i < PLAYERS; i++)
            top = phi[i] > phi[top] ? i : top;
        plain += fabs(phi[top] - truth[top]) <= 1.96 * sqrt(old[top]);
        widened += fabs(phi[top] - truth[top]) <= 1.96 * sqrt(var[top]);
        for (size_t i = 0; i < PLAYERS; i++)
            assert_true(i == top ? var[i] > old[i] : var[i] == old[i]);
    }
    print_message("# the greatest of six equal values: %.3f within 1.96 errors, %.3f without the "
                  "addition\n",
                  (double)widened / DRAWS, (double)plain / DRAWS);
    assert_true(plain < 0.89 * DRAWS && widened > 0.90 * DRAWS);
}

/* Thousands of equal values: weights would underflow. */
static void the_luck_among_thousands_is_finite(void **state) {
    (void)state;
    enum { MANY = 5000 };
    double *phi = need(MANY, sizeof *phi), *var = need(MANY, sizeof *var);
    for (int is_exact = 0; is_exact < 2; is_exact++) {
        for (size_t i = 0; i < MANY; i++)
            var[i] = i || !is_exact ? 1 : 0;
        assert_int_equal(fds__ls_add_winners_curse(MANY, 1, phi, var, NULL), FDS_OK);
        assert_true(is_exact ? var[0] == 0 : var[0] > 5 && var[0] < 17);
    }
    free(phi);
    free(var);
}

/* Of two estimates it has a closed form: a^2 / s f(lead / s) / F(lead / s), where a^2 is the variance
 * of the greater one and s^2 the sum of both. */
static void the_luck_of_the_greater_of_two_is_exact(void **state) {
    (void)state;
    const double phi[] = {3, 1, 0, 3.5, 0, 100}, pi = acos(-1);
    double var[] = {0.25, 0, 1, 1, 0, 1}; /* columns: near, without errors, far */
    assert_int_equal(fds__ls_add_winners_curse(2, 3, phi, var, NULL), FDS_OK);
    double s = sqrt(1.25), x = 0.5 / s, luck = exp(-x * x / 2) / sqrt(2 * pi) / s;
    luck /= erfc(-x / sqrt(2)) / 2;
    assert_true(fabs(var[3] - 1 - luck * luck) < 1e-3 && var[0] == 0.25);
    assert_true(var[1] == 0 && var[4] == 0);
    assert_true(fabs(var[5] - 1) < 1e-9 && var[2] == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_drawn_towards_the_mean_by_their_errors),
        cmocka_unit_test(exact_values_stay),
        cmocka_unit_test(noise_goes_and_intervals_hold),
        cmocka_unit_test(intervals_of_outliers_hold),
        cmocka_unit_test(the_greatest_value_allows_for_its_luck),
        cmocka_unit_test(the_luck_among_thousands_is_finite),
        cmocka_unit_test(the_luck_of_the_greater_of_two_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
