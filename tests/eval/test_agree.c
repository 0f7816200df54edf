/* SPDX-License-Identifier: Apache-2.0
 * Agreement with the truth and the area of a ranking: closed forms, textbook formulas, what is left
 * out, and mistakes. */
#include "../base/scratch.h"
#include "eval/eval.h"

#include <math.h>

enum { PLAYERS = 12, COLUMNS = 5, CLASSES = 3, SIZE = PLAYERS * COLUMNS };

static void draw(fds_rng *rng, double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = 0.3 + fds_rng_normal(rng);
}

/* Players and columns of all classes in turn. */
static void set_labels(uint32_t *player_labels, uint32_t *labels) {
    for (uint32_t p = 0; p < PLAYERS; p++)
        player_labels[p] = p % CLASSES;
    for (uint32_t c = 0; c < COLUMNS; c++)
        labels[c] = (c + 1) % CLASSES;
}

static fds_agreement agree(const double *values, size_t columns, const double *truth,
                           size_t truth_columns, size_t players) {
    uint32_t player_labels[PLAYERS], labels[COLUMNS];
    fds_agreement out;
    fds_error err = {0};
    assert_true(players <= PLAYERS && truth_columns <= COLUMNS);
    set_labels(player_labels, labels);
    expect_ok(fds_agree(values, columns, truth, truth_columns, players, player_labels, labels, &out,
                        &err),
              &err);
    return out;
}

static void expect_near(double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-12))
        fail_msg("%.17g, not %.17g", got, wanted);
}

/* ---- closed forms ---- */

static void values_that_are_the_truth_agree_wholly(void **state) {
    (void)state;
    double truth[SIZE], values[SIZE];
    fds_rng rng = fds_rng_make(1, 4000, 0, 0);
    draw(&rng, truth, SIZE);
    fds_agreement a = agree(truth, COLUMNS, truth, COLUMNS, PLAYERS);
    expect_near(a.correlation, 1);
    expect_near(a.within, 1);
    assert_true(a.relative_error == 0);
    for (size_t i = 0; i < SIZE; i++)
        values[i] = -1.5 * truth[i];
    a = agree(values, COLUMNS, truth, COLUMNS, PLAYERS);
    expect_near(a.correlation, -1);
    expect_near(a.within, -1);
    expect_near(a.relative_error, 2.5);
    for (size_t i = 0; i < SIZE; i++)
        values[i] = 3 + 1000 * truth[i]; /* other units: only the error minds */
    a = agree(values, COLUMNS, truth, COLUMNS, PLAYERS);
    expect_near(a.correlation, 1);
    expect_near(a.within, 1);
    assert_true(a.relative_error > 998);
}

/* Four players: r = 3 / sqrt(5 * 5) in the first column, 0 in the second. */
static void columns_by_hand(void **state) {
    (void)state;
    const double values[] = {1, 1, 2, 2, 3, 3, 4, 4}, truth[] = {2, 0, 1, 1, 4, 1, 3, 0};
    fds_agreement a = agree(values, 2, truth, 2, 4);
    expect_near(a.correlation, 0.6 / 2);
    assert_true(isnan(a.within)); /* no class has three of four players */
    double wrong = 1 + 1 + 1 + 1 + 1 + 4 + 1 + 16, all = 4 + 0 + 1 + 1 + 16 + 1 + 9 + 0;
    expect_near(a.relative_error, sqrt(wrong / all));
}

/* ---- the textbook ---- */

/* One formula for all players or those of a class, from plain sums in long double. */
static double textbook(const double *values, size_t columns, size_t at, const double *truth,
                       size_t truth_columns, size_t column, int64_t label) {
    long double n = 0, a = 0, b = 0, aa = 0, bb = 0, ab = 0;
    for (size_t p = 0; p < PLAYERS; p++) {
        if (label >= 0 && p % CLASSES != (size_t)label)
            continue;
        long double x = values[p * columns + at], y = truth[p * truth_columns + column];
        n++, a += x, b += y, aa += x * x, bb += y * y, ab += x * y;
    }
    return (double)((n * ab - a * b) / sqrtl((n * aa - a * a) * (n * bb - b * b)));
}

static void means_are_those_of_the_textbook(void **state) {
    (void)state;
    double values[SIZE], truth[SIZE];
    fds_rng rng = fds_rng_make(2, 4000, 0, 0);
    for (int round = 0; round < 50; round++) {
        size_t columns = round % 2 ? COLUMNS : 1;
        double all = 0, within = 0, wrong = 0, size = 0;
        draw(&rng, values, SIZE);
        draw(&rng, truth, SIZE);
        for (size_t c = 0; c < COLUMNS; c++) {
            size_t at = columns == 1 ? 0 : c;
            all += textbook(values, columns, at, truth, COLUMNS, c, -1) / COLUMNS;
            within += textbook(values, columns, at, truth, COLUMNS, c, (c + 1) % CLASSES) / COLUMNS;
        }
        for (size_t i = 0; i < SIZE; i++) {
            wrong += (values[i] - truth[i]) * (values[i] - truth[i]);
            size += truth[i] * truth[i];
        }
        fds_agreement a = agree(values, columns, truth, COLUMNS, PLAYERS);
        expect_near(a.correlation, all);
        expect_near(a.within, within);
        if (columns == 1)
            assert_true(isnan(a.relative_error)); /* its units are others */
        else
            expect_near(a.relative_error, sqrt(wrong / size));
    }
}

static void one_column_stands_for_all(void **state) {
    (void)state;
    double one[PLAYERS], many[SIZE], truth[SIZE];
    fds_rng rng = fds_rng_make(3, 4000, 0, 0);
    draw(&rng, one, PLAYERS);
    draw(&rng, truth, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        many[i] = one[i / COLUMNS];
    fds_agreement a = agree(one, 1, truth, COLUMNS, PLAYERS);
    fds_agreement b = agree(many, COLUMNS, truth, COLUMNS, PLAYERS);
    assert_true(a.correlation == b.correlation && a.within == b.within);
    assert_true(isnan(a.relative_error) && b.relative_error > 0);
}

/* ---- what is left out ---- */

/* A column in which values or truth do not differ says nothing: the mean is that of the others. */
static void columns_that_do_not_differ_are_left_out(void **state) {
    (void)state;
    double values[SIZE], truth[SIZE];
    fds_rng rng = fds_rng_make(4, 4000, 0, 0);
    draw(&rng, values, SIZE);
    draw(&rng, truth, SIZE);
    double wanted = 0, within = 0;
    for (size_t c = 2; c < COLUMNS; c++) {
        wanted += textbook(values, COLUMNS, c, truth, COLUMNS, c, -1) / (COLUMNS - 2);
        within += textbook(values, COLUMNS, c, truth, COLUMNS, c, (c + 1) % CLASSES);
    }
    for (size_t p = 0; p < PLAYERS; p++) {
        values[p * COLUMNS] = 1.0 / 3 + (double)p * 1e-17; /* alike but for rounding */
        truth[p * COLUMNS + 1] = 0;
    }
    fds_agreement a = agree(values, COLUMNS, truth, COLUMNS, PLAYERS);
    expect_near(a.correlation, wanted);
    expect_near(a.within, within / (COLUMNS - 2));
}

/* Values by class alone agree with the truth over all players, and with nothing within a class. */
static void values_by_class_have_nothing_within(void **state) {
    (void)state;
    double values[SIZE], truth[SIZE];
    fds_rng rng = fds_rng_make(5, 4000, 0, 0);
    draw(&rng, truth, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        values[i] = i / COLUMNS % CLASSES == (i % COLUMNS + 1) % CLASSES;
    fds_agreement a = agree(values, COLUMNS, truth, COLUMNS, PLAYERS);
    assert_true(fabs(a.correlation) < 1);
    assert_true(isnan(a.within));
}

static void where_nothing_is_left_there_is_no_number(void **state) {
    (void)state;
    double zero[SIZE] = {0}, values[SIZE];
    fds_rng rng = fds_rng_make(6, 4000, 0, 0);
    draw(&rng, values, SIZE);
    fds_agreement a = agree(values, COLUMNS, zero, COLUMNS, PLAYERS);
    assert_true(isnan(a.correlation) && isnan(a.within) && isnan(a.relative_error));
    a = agree(zero, COLUMNS, values, COLUMNS, PLAYERS);
    assert_true(isnan(a.correlation) && isnan(a.within) && a.relative_error == 1);
    a = agree(values, 1, values, 1, 2); /* two points always lie on a line */
    assert_true(isnan(a.correlation) && isnan(a.within));
    a = agree(values, 1, values, 1, 3);
    expect_near(a.correlation, 1);
}

/* Three of a label are enough, two are not, and a label may be nobody's. */
static void a_class_counts_from_three_players_on(void **state) {
    (void)state;
    const double truth[] = {1, 2, 4, 3, 5, 0}, values[] = {1, 2, 3, 9, 1, 1};
    const uint32_t three[] = {0, 0, 0, 1, 1, 2}, labels[] = {0};
    fds_agreement a;
    fds_error err = {0};
    expect_ok(fds_agree(values, 1, truth, 1, 6, three, labels, &a, &err), &err);
    expect_near(a.within, 3 / sqrt(2 * 14.0 / 3));
    const uint32_t two[] = {1}, none[] = {7};
    expect_ok(fds_agree(values, 1, truth, 1, 6, three, two, &a, &err), &err);
    assert_true(isnan(a.within) && !isnan(a.correlation));
    expect_ok(fds_agree(values, 1, truth, 1, 6, three, none, &a, &err), &err);
    assert_true(isnan(a.within) && !isnan(a.correlation));
}

/* ---- mistakes ---- */

static void expect_mistake(const double *values, size_t columns, const double *truth,
                           size_t truth_columns, size_t players, fds_status status,
                           const char *part) {
    uint32_t player_labels[PLAYERS], labels[COLUMNS];
    fds_agreement out;
    fds_error err = {0};
    set_labels(player_labels, labels);
    assert_int_equal(fds_agree(values, columns, truth, truth_columns, players, player_labels,
                               labels, &out, &err),
                     status);
    assert_int_equal(err.status, status);
    expect_in(err.text, part);
}

static void mistakes_are_named(void **state) {
    (void)state;
    double good[SIZE], bad[SIZE];
    fds_rng rng = fds_rng_make(7, 4000, 0, 0);
    draw(&rng, good, SIZE);
    memcpy(bad, good, sizeof bad);
    expect_mistake(good, 1, good, 1, 0, FDS_ERR_USAGE, "0 players, 1 columns");
    expect_mistake(good, 1, good, 0, PLAYERS, FDS_ERR_USAGE, "12 players, 0 columns");
    expect_mistake(good, 2, good, COLUMNS, PLAYERS, FDS_ERR_SHAPE,
                   "values have 2 columns and the truth has 5");
    expect_mistake(good, 0, good, COLUMNS, PLAYERS, FDS_ERR_SHAPE,
                   "values have 0 columns and the truth has 5");
    bad[3 * COLUMNS + 4] = NAN;
    expect_mistake(bad, COLUMNS, good, COLUMNS, PLAYERS, FDS_ERR_USAGE,
                   "the value of player 3 in column 4");
    bad[3 * COLUMNS + 4] = -INFINITY;
    expect_mistake(good, COLUMNS, bad, COLUMNS, PLAYERS, FDS_ERR_USAGE,
                   "the true value of player 3 in column 4");
}

static void running_out_of_memory_leaks_nothing(void **state) {
    (void)state;
    double values[SIZE];
    fds_rng rng = fds_rng_make(8, 4000, 0, 0);
    draw(&rng, values, SIZE);
    for (uint64_t nth = 1; nth <= 3; nth++) {
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        expect_mistake(values, COLUMNS, values, COLUMNS, PLAYERS, FDS_ERR_NOMEM, "memory");
    }
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    assert_false(isnan(agree(values, COLUMNS, values, COLUMNS, PLAYERS).correlation));
}

/* ---- the area of a ranking ---- */

static void areas_by_hand(void **state) {
    (void)state;
    const bool marked[] = {true, false, true, false, false};
    const struct {
        double values[5], area;
    } cases[] = {
        {{1, 3, 2, 4, 5}, 1},       /* all marked are below */
        {{5, 3, 4, 1, 2}, 0},       /* and above */
        {{2, 2, 2, 2, 2}, 0.5},     /* chance */
        {{1, 1, 2, 4, 2}, 4.0 / 6}, /* each of the marked ties once */
        {{-INFINITY, 0, INFINITY, 1, 2}, 0.5},
        {{0.0, -0.0, 1, 2, 2}, 4.5 / 6}, /* zero is zero */
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_true(fds_ranking_area(cases[i].values, marked, 5) == cases[i].area);
}

/* Mann and Whitney: from the sum of the marked players' ranks, with middle ranks for ties. */
static double area_by_ranks(const double *values, const bool *marked, size_t count) {
    double sum = 0, m = 0;
    for (size_t i = 0; i < count; i++) {
        if (!marked[i])
            continue;
        double rank = 0.5; /* half a place for itself, and it meets itself as a tie */
        for (size_t j = 0; j < count; j++)
            rank += values[j] < values[i] ? 1 : values[j] == values[i] ? 0.5 : 0;
        sum += rank;
        m++;
    }
    return 1 - (sum - m * (m + 1) / 2) / (m * ((double)count - m));
}

static void areas_are_those_of_mann_and_whitney(void **state) {
    (void)state;
    enum { MOST = 40 };
    fds_rng rng = fds_rng_make(9, 4000, 0, 0);
    for (int round = 0; round < 200; round++) {
        size_t count = 2 + fds_rng_below(&rng, MOST - 1);
        uint64_t kinds = 1 + fds_rng_below(&rng, 30); /* few kinds of values: many ties */
        double values[MOST];
        bool marked[MOST] = {true};
        for (size_t i = 0; i < count; i++)
            values[i] = (double)fds_rng_below(&rng, kinds) - 3;
        for (size_t i = 2; i < count; i++)
            marked[i] = fds_rng_below(&rng, 3) == 0;
        double area = fds_ranking_area(values, marked, count);
        expect_near(area, area_by_ranks(values, marked, count));
        for (size_t i = 0; i < count; i++)
            marked[i] = !marked[i];
        expect_near(fds_ranking_area(values, marked, count), 1 - area);
    }
}

static void an_area_of_nothing_is_no_number(void **state) {
    (void)state;
    const double values[] = {1, 2, 3}, bad[] = {1, 2, NAN};
    const bool none[] = {false, false, false}, all[] = {true, true, true};
    const bool first[] = {true, false, false};
    assert_true(isnan(fds_ranking_area(values, none, 3)));
    assert_true(isnan(fds_ranking_area(values, all, 3)));
    assert_true(isnan(fds_ranking_area(values, all, 0)));
    assert_true(isnan(fds_ranking_area(bad, first, 3)));
    assert_true(fds_ranking_area(values, first, 3) == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_are_the_truth_agree_wholly),
        cmocka_unit_test(columns_by_hand),
        cmocka_unit_test(means_are_those_of_the_textbook),
        cmocka_unit_test(one_column_stands_for_all),
        cmocka_unit_test(columns_that_do_not_differ_are_left_out),
        cmocka_unit_test(values_by_class_have_nothing_within),
        cmocka_unit_test(where_nothing_is_left_there_is_no_number),
        cmocka_unit_test(a_class_counts_from_three_players_on),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(running_out_of_memory_leaks_nothing),
        cmocka_unit_test(areas_by_hand),
        cmocka_unit_test(areas_are_those_of_mann_and_whitney),
        cmocka_unit_test(an_area_of_nothing_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
