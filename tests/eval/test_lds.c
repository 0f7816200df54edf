/* SPDX-License-Identifier: Apache-2.0
 * The linear datamodeling score: games whose score is known, ties, and half coalitions that no
 * method has learnt from. */
#include "case_fixture.h"

enum { MANY = 20, ROWS = 300, XS = 4 };

/* A plan of random halves. */
static fds_plan *halves(uint64_t seed) {
    fds_plan *plan;
    fds_error err;
    expect_ok(fds__plan_blank(MANY, ROWS, &plan, &err), &err);
    for (size_t r = 0; r < ROWS; r++) {
        uint32_t players[MANY];
        fds_rng rng = fds_rng_make(seed, 3000, r, 0);
        for (uint32_t p = 0; p < MANY; p++)
            players[p] = p;
        fds_rng_shuffle(&rng, players, MANY);
        for (size_t i = 0; i < MANY / 2; i++)
            fds__coalition_add(fds__plan_bits(plan, r), players[i]);
    }
    return plan;
}

static void draw_values(uint64_t seed, double values[MANY * XS]) {
    fds_rng rng = fds_rng_make(seed, 3001, 0, 0);
    for (size_t i = 0; i < MANY * XS; i++)
        values[i] = fds_rng_normal(&rng);
}

/* given: a rising function of the sums of values (players, XS). */
static void answer(const fds_plan *plan, const double *values, double given[ROWS * XS]) {
    for (size_t r = 0; r < ROWS; r++)
        for (size_t x = 0; x < XS; x++) {
            double sum = 0;
            for (size_t p = 0; p < MANY; p++)
                if (fds_coalition_has(fds_plan_coalition(plan, r), p))
                    sum += values[p * XS + x];
            given[r * XS + x] = 1 / (1 + exp(-sum));
        }
}

static void an_additive_game_has_a_score_of_one(void **state) {
    (void)state;
    fds_plan *plan = halves(1);
    double values[MANY * XS], given[ROWS * XS], scores[XS];
    fds_error err;
    draw_values(1, values);
    answer(plan, values, given);
    expect_ok(fds_datamodeling_scores(plan, values, XS, given, XS, scores, &err), &err);
    for (size_t x = 0; x < XS; x++)
        assert_float_equal(scores[x], 1, 1e-12);
    for (size_t i = 0; i < MANY * XS; i++)
        values[i] = -7 * values[i];
    expect_ok(fds_datamodeling_scores(plan, values, XS, given, XS, scores, &err), &err);
    for (size_t x = 0; x < XS; x++)
        assert_float_equal(scores[x], -1, 1e-12);
    fds_plan_free(plan);
}

/* One of 300 rows has a standard error of 0.058; the mean of 40 seeds is that over sqrt(160). */
static void random_values_have_a_score_near_zero(void **state) {
    (void)state;
    double sum = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        fds_plan *plan = halves(seed);
        double truth[MANY * XS], values[MANY * XS], given[ROWS * XS], scores[XS];
        fds_error err;
        draw_values(2 * seed, truth);
        draw_values(2 * seed + 1, values);
        answer(plan, truth, given);
        expect_ok(fds_datamodeling_scores(plan, values, XS, given, XS, scores, &err), &err);
        for (size_t x = 0; x < XS; x++)
            sum += scores[x];
        fds_plan_free(plan);
    }
    assert_true(fabs(sum / (40 * XS)) < 0.08); /* values of 20 players correlate by chance */
}

/* One value per player scores like the same values for each input. */
static void one_column_serves_all_inputs(void **state) {
    (void)state;
    fds_plan *plan = halves(2);
    double values[MANY * XS], one[MANY], given[ROWS * XS], scores[XS], same[XS];
    fds_error err;
    draw_values(3, values);
    answer(plan, values, given);
    for (size_t p = 0; p < MANY; p++) {
        one[p] = values[p * XS];
        for (size_t x = 0; x < XS; x++)
            values[p * XS + x] = one[p];
    }
    expect_ok(fds_datamodeling_scores(plan, one, 1, given, XS, scores, &err), &err);
    expect_ok(fds_datamodeling_scores(plan, values, XS, given, XS, same, &err), &err);
    assert_memory_equal(scores, same, sizeof scores);
    assert_float_equal(scores[0], 1, 1e-12);
    fds_plan_free(plan);
}

/* 0.1 three times and 0.2 are added in several orders; the sums differ in their last bits. */
static void sums_that_differ_by_rounding_are_ties(void **state) {
    (void)state;
    fds_plan *plan = halves(4);
    double values[MANY], given[ROWS], counts[ROWS], score, wanted;
    fds_error err;
    for (size_t p = 0; p < MANY; p++)
        values[p] = p % 2 ? 0.1 : 0.7;
    for (size_t r = 0; r < ROWS; r++) {
        fds_rng rng = fds_rng_make(9, 3002, r, 0);
        counts[r] = 0;
        for (size_t p = 0; p < MANY; p += 2)
            counts[r] += fds_coalition_has(fds_plan_coalition(plan, r), p);
        given[r] = counts[r] + 3 * fds_rng_normal(&rng);
    }
    expect_ok(fds_datamodeling_scores(plan, values, 1, given, 1, &score, &err), &err);
    expect_ok(fds__spearman(counts, given, ROWS, &wanted, &err), &err);
    assert_true(score == wanted && fabs(wanted) < 1);
    fds_plan_free(plan);
}

static void values_that_predict_nothing_score_zero(void **state) {
    (void)state;
    fds_plan *plan = halves(5);
    double values[MANY * XS], given[ROWS * XS], scores[XS];
    fds_error err;
    draw_values(5, values);
    answer(plan, values, given);
    for (size_t i = 0; i < MANY * XS; i++)
        values[i] = i % XS == 1 ? 0.1 : i % XS == 2 ? 0 : values[i]; /* all equal */
    for (size_t r = 0; r < ROWS; r++)
        given[r * XS + 3] = 0.5; /* nothing to predict */
    expect_ok(fds_datamodeling_scores(plan, values, XS, given, XS, scores, &err), &err);
    assert_float_equal(scores[0], 1, 1e-12);
    assert_true(scores[1] == 0 && scores[2] == 0 && isnan(scores[3]));
    values[7] = NAN;
    expect_failure(fds_datamodeling_scores(plan, values, XS, given, XS, scores, &err),
                   FDS_ERR_USAGE, &err, "player 1 in column 3");
    expect_failure(fds_datamodeling_scores(plan, values, 2, given, XS, scores, &err), FDS_ERR_SHAPE,
                   &err, "2 columns");
    fds_plan_free(plan);
}

/* ---- half coalitions ---- */

static bool has(const fds_plan *plan, const uint64_t *coalition) {
    for (size_t r = 0; r < fds_plan_rows(plan); r++)
        if (memcmp(fds_plan_coalition(plan, r), coalition, sizeof *coalition) == 0)
            return true;
    return false;
}

/* Of ten players there are few coalitions, so that many draws are refused. */
static void half_coalitions_occur_in_no_other_plan(void **state) {
    (void)state;
    trial t = trial_make("ls");
    eval_game g = {.problem = &t.problem, .params = t.params, .players = OWNERS, .tests = TESTED};
    size_t sizes[] = {1, 40, 1000}, found = 0;
    fds_error err;
    trial_point(&t);
    g.params.truth = 200;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        fds_plan *plan, *others[3];
        g.params.lds = sizes[i];
        expect_ok(eval_halves_plan(&g, &plan, &err), &err);
        if (i == 0) {
            assert_null(plan); /* a correlation needs three */
            continue;
        }
        for (int draw = 0; draw < 3; draw++)
            expect_ok(fds_plan_sample(FDS_SAMPLER_LEVERAGE, OWNERS, NULL, draw ? 100 : 120,
                                      eval_plan_seed(&g, (eval_draw)draw), &others[draw], &err),
                      &err);
        for (size_t r = 0; r < fds_plan_rows(plan); r++) {
            const uint64_t *coalition = fds_plan_coalition(plan, r);
            assert_int_equal(fds_coalition_size(coalition, OWNERS), OWNERS / 2);
            for (int draw = 0; draw < 3; draw++)
                assert_false(has(others[draw], coalition));
            for (size_t before = 0; before < r; before++)
                assert_true(*fds_plan_coalition(plan, before) != *coalition);
        }
        found = fds_plan_rows(plan);
        assert_true(i == 1 ? found == 40 : found > 100 && found < 252);
        fds_plan_free(plan);
        for (int draw = 0; draw < 3; draw++)
            fds_plan_free(others[draw]);
    }
    trial_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_additive_game_has_a_score_of_one),
        cmocka_unit_test(random_values_have_a_score_near_zero),
        cmocka_unit_test(one_column_serves_all_inputs),
        cmocka_unit_test(sums_that_differ_by_rounding_are_ties),
        cmocka_unit_test(values_that_predict_nothing_score_zero),
        cmocka_unit_test(half_coalitions_occur_in_no_other_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
