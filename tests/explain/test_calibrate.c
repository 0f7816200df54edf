/* SPDX-License-Identifier: Apache-2.0
 *
 * Calibrated standard errors against a slow computation from the definition: the root of the mean,
 * over inputs for which the label is predicted (or is not), of (value - target)^2 + error^2, with
 * five inputs' worth of the mean over all players in the same relation to the label; and the file
 * that they are kept in. */
#include "fixture.h"

enum { X = 23, C = 4, N = 9, SIZE = X * C * N, PRIOR = 5 };

typedef struct {
    double values[SIZE], targets[SIZE], errors[SIZE];
    uint32_t predicted[X], labels[N];
} sheet;

/* labels below used are predicted, the others never */
static sheet *sheet_make(uint64_t seed, uint32_t used) {
    sheet *s = need(1, sizeof *s);
    fds_rng rng = fds_rng_make(seed, 5000, 0, 0);
    for (size_t i = 0; i < SIZE; i++) {
        s->targets[i] = fds_rng_normal(&rng);
        s->values[i] = s->targets[i] + 0.1 * fds_rng_normal(&rng);
        s->errors[i] = 0.2 * fds_rng_unit(&rng);
    }
    for (size_t x = 0; x < X; x++)
        s->predicted[x] = (uint32_t)fds_rng_below(&rng, used);
    for (size_t i = 0; i < N; i++)
        s->labels[i] = (uint32_t)(i % (C - 1)); /* no player is of the last class */
    return s;
}

static fds__comparison comparison(sheet *s) {
    return (fds__comparison){.inputs = X,
                             .players = N,
                             .classes = C,
                             .values = s->values,
                             .targets = s->targets,
                             .errors = s->errors,
                             .predicted = s->predicted,
                             .player_labels = s->labels};
}

static fds__calibration calibrate(sheet *s) {
    fds__calibration c;
    fds_error err;
    const fds__comparison made = comparison(s);
    expect_ok(fds__calibrate(&made, NULL, &c, &err), &err);
    return c;
}

static double square_at(const sheet *s, size_t x, size_t y, size_t i) {
    size_t at = (x * C + y) * N + i;
    return pow(s->values[at] - s->targets[at], 2) + pow(s->errors[at], 2);
}

/* Mean square over the inputs in which the label has the role, and the players for whom (label of
 * the player == label) is same; any label where y is C. NAN: none. */
static double mean_square(const sheet *s, size_t y, bool is_other, bool same) {
    double sum = 0, count = 0;
    for (size_t x = 0; x < X; x++)
        for (size_t z = 0; z < C; z++)
            for (size_t i = 0; i < N; i++)
                if ((y == C || y == z) && (s->predicted[x] != z) == is_other &&
                    (s->labels[i] == z) == same) {
                    sum += square_at(s, x, z, i);
                    count++;
                }
    return sum / count;
}

static double wanted(const sheet *s, bool is_other, size_t y, size_t i) {
    bool same = s->labels[i] == y;
    double prior = mean_square(s, y, is_other, same), sum = 0, count = PRIOR;
    if (isnan(prior))
        prior = mean_square(s, C, is_other, same);
    for (size_t x = 0; x < X; x++)
        if ((s->predicted[x] != y) == is_other) {
            sum += square_at(s, x, y, i);
            count++;
        }
    return sqrt((sum + PRIOR * (isnan(prior) ? 0 : prior)) / count);
}

static void errors_are_those_of_the_definition(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        sheet *s = sheet_make(seed, 1 + (uint32_t)seed % C);
        fds__calibration c = calibrate(s);
        assert_int_equal(c.inputs, X);
        for (size_t other = 0; other < 2; other++)
            for (size_t y = 0; y < C; y++)
                for (size_t i = 0; i < N; i++) {
                    double got = c.errors[(other * C + y) * N + i], want = wanted(s, other, y, i);
                    assert_true(isfinite(got) && fabs(got - want) <= 1e-12 * (1 + want));
                }
        fds__calibration_free(&c);
        free(s);
    }
}

/* An explainer that says what least squares say is as good as they are, and no better. */
static void a_perfect_explainer_keeps_the_least_squares_errors(void **state) {
    (void)state;
    sheet *s = sheet_make(1, C);
    memcpy(s->values, s->targets, sizeof s->values);
    for (size_t i = 0; i < SIZE; i++)
        s->errors[i] = 0.25;
    fds__calibration c = calibrate(s);
    for (size_t i = 0; i < 2 * C * N; i++)
        assert_true(fabs(c.errors[i] - 0.25) < 1e-15);
    fds__calibration_free(&c);
    free(s);
}

/* Errors whose size depends on the value and on the input are told for each value: intervals hold as
 * often among the largest values, and on the inputs of the widest spread, as among all. */
static void intervals_hold_for_large_values_and_wide_spreads(void **state) {
    (void)state;
    enum { MANY = 500, CLASS = 2, EACH = 10 };
    size_t size = MANY * CLASS * EACH;
    double *all = need(4 * size + MANY * CLASS, sizeof *all), *spreads = all + 4 * size;
    uint32_t predicted[MANY], labels[EACH];
    fds_rng rng = fds_rng_make(9, 5000, 0, 0);
    for (size_t i = 0; i < EACH; i++)
        labels[i] = (uint32_t)(i % CLASS);
    for (int by_spread = 0; by_spread < 2; by_spread++) {
        for (size_t x = 0; x < MANY; x++)
            predicted[x] = (uint32_t)(x % CLASS);
        for (size_t i = 0; i < size; i++) {
            double spread = spreads[i / EACH] = i % EACH ? spreads[i / EACH] : fds_rng_unit(&rng);
            double value = fds_rng_normal(&rng);
            double sd = sqrt(0.01 + 0.1 * value * value + (by_spread ? 0.5 * spread : 0));
            all[i] = value;
            all[size + i] = value + sd * fds_rng_normal(&rng);
        }
        const fds__comparison made = {.inputs = MANY,
                                      .players = EACH,
                                      .classes = CLASS,
                                      .values = all,
                                      .targets = all + size,
                                      .errors = all + 2 * size, /* 0 */
                                      .spreads = by_spread ? spreads : NULL,
                                      .predicted = predicted,
                                      .player_labels = labels};
        fds__calibration c;
        fds_error err;
        size_t held = 0, large = 0, large_held = 0, wide = 0, wide_held = 0;
        expect_ok(fds__calibrate(&made, NULL, &c, &err), &err);
        for (size_t at = 0; at < MANY * CLASS; at++) {
            double errors[EACH];
            uint32_t y = (uint32_t)(at % CLASS);
            fds__calibration_errors(&c, CLASS, EACH, labels, predicted[at / CLASS] != y, y,
                                    spreads[at], all + at * EACH, errors);
            for (size_t i = 0; i < EACH; i++) {
                size_t k = at * EACH + i;
                bool holds = fabs(all[k] - all[size + k]) <= 1.96 * errors[i];
                held += holds;
                large += fabs(all[k]) > 1.5;
                large_held += fabs(all[k]) > 1.5 && holds;
                wide += spreads[at] > 0.9;
                wide_held += spreads[at] > 0.9 && holds;
            }
        }
        double shares[] = {(double)held / (double)size, (double)large_held / (double)large,
                           (double)wide_held / (double)wide};
        print_message("# %.3f of all intervals hold, %.3f of large values, %.3f of wide spreads\n",
                      shares[0], shares[1], shares[2]);
        for (size_t i = 0; i < COUNT(shares); i++)
            assert_true(shares[i] > 0.93 && shares[i] < 0.97);
        fds__calibration_free(&c);
    }
    free(all);
}

/* ---- the file ---- */

/* A calibration, also in a file. */
static fds__calibration saved(const char **path) {
    sheet *s = sheet_make(2, C);
    fds__calibration c = calibrate(s);
    fds_error err;
    free(s);
    *path = scratch_path("errors.safetensors");
    expect_ok(fds__calibration_save(&c, C, N, *path, &err), &err);
    return c;
}

static void a_file_keeps_all_of_it(void **state) {
    (void)state;
    const char *path;
    fds__calibration c = saved(&path), again;
    fds_error err;
    expect_ok(fds__calibration_load(path, C, N, &again, &err), &err);
    assert_int_equal(again.inputs, X);
    for (size_t i = 0; i < 2 * C * N; i++)
        assert_true(again.errors[i] == (double)(float)c.errors[i]);
    for (size_t i = 0; i < 4 * FDS__PARTS; i++)
        assert_true(again.parts[i / FDS__PARTS][i % FDS__PARTS] ==
                    (double)(float)c.parts[i / FDS__PARTS][i % FDS__PARTS]);
    fds__calibration_free(&again);
    fds__calibration_free(&again); /* an empty one may be freed */
    fds__calibration_free(&c);
}

static void a_file_of_another_run_is_refused(void **state) {
    (void)state;
    const char *path;
    fds__calibration c = saved(&path), again;
    fds_error err;
    expect_failure(fds__calibration_load(path, C + 1, N, &again, &err), FDS_ERR_SHAPE, &err,
                   "errors.safetensors: it must have a tensor \"errors\" of 2x5x9");
    expect_failure(fds__calibration_load(path, C, N - 1, &again, &err), FDS_ERR_SHAPE, &err,
                   "2x4x8");
    assert_null(again.errors);
    expect_failure(fds__calibration_load(scratch_path("none"), C, N, &again, &err),
                   FDS_ERR_NOT_FOUND, &err, "none");
    fds__calibration_free(&c);
}

static void errors_that_are_none_are_refused(void **state) {
    (void)state;
    static const double wrong[] = {NAN, INFINITY, -INFINITY, -0.5};
    const char *path;
    fds__calibration c = saved(&path), again;
    fds_error err;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        c.errors[37] = wrong[i];
        expect_ok(fds__calibration_save(&c, C, N, path, &err), &err);
        expect_failure(fds__calibration_load(path, C, N, &again, &err), FDS_ERR_FORMAT, &err,
                       "errors.safetensors: error number 37");
        assert_null(again.errors);
    }
    fds__calibration_free(&c);
}

/* Values that are not finite have no errors that mean anything. */
static void values_that_are_none_are_refused(void **state) {
    (void)state;
    sheet *s = sheet_make(2, C);
    for (int which = 0; which < 3; which++) {
        double *place = which == 0   ? &s->values[123]
                        : which == 1 ? &s->targets[123]
                                     : &s->errors[123];
        double kept = *place;
        fds__calibration c;
        fds_error err = {0};
        *place = which == 1 ? INFINITY : NAN;
        const fds__comparison made = comparison(s);
        expect_failure(fds__calibrate(&made, NULL, &c, &err), FDS_ERR_DIVERGED, &err, "not finite");
        assert_null(c.errors);
        *place = kept;
    }
    free(s);
}

static void every_failure_is_told(void **state) {
    (void)state;
    const char *path;
    fds__calibration c = saved(&path), again;
    fds_error err;
    for (int kind = FDS__FAULT_ALLOC; kind <= FDS__FAULT_IO; kind++)
        for (uint64_t nth = 1;; nth++) {
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status = fds__calibration_load(path, C, N, &again, &err);
            if (status == FDS_OK)
                fds__calibration_free(&again);
            if (fds__fault_arm((fds__fault_kind)kind, 0) < nth) {
                expect_ok(status, &err);
                assert_true(nth > 1);
                break;
            }
            assert_int_equal(status, kind == FDS__FAULT_ALLOC ? FDS_ERR_NOMEM : FDS_ERR_IO);
        }
    fds__calibration_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_those_of_the_definition),
        cmocka_unit_test(a_perfect_explainer_keeps_the_least_squares_errors),
        cmocka_unit_test(intervals_hold_for_large_values_and_wide_spreads),
        IN_SCRATCH(a_file_keeps_all_of_it),
        IN_SCRATCH(a_file_of_another_run_is_refused),
        IN_SCRATCH(errors_that_are_none_are_refused),
        cmocka_unit_test(values_that_are_none_are_refused),
        IN_SCRATCH(every_failure_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
