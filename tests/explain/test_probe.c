/* SPDX-License-Identifier: Apache-2.0
 *
 * The probing explainer: on values that are a linear map of the sub-models' answers, against the
 * normal equations of its ridge regression, and its file. */
#include "fixture.h"

enum { X = 300, HELD = 60, C = 3, N = 5, K = 16, ROWS = 20 };

typedef struct {
    double answers[ROWS][X * C];
    float targets[X * C * N];
    uint32_t predicted[X];
    fds_rows rows;
    fds__training data;
} book;

static fds_status read_answers(void *context, unsigned worker, size_t row, size_t first,
                               size_t count, double *out, fds_error *err) {
    const book *b = context;
    (void)worker, (void)err;
    memcpy(out, b->answers[row] + first, count * sizeof *out);
    return FDS_OK;
}

/* Values of label y and player i: (i + 1) a_0 - y a_1 + 0.1 a_7, and noise. */
static book *book_make(double noise) {
    book *b = need(1, sizeof *b);
    fds_rng rng = fds_rng_make(4, 5100, 0, 0);
    for (size_t k = 0; k < ROWS; k++)
        for (size_t c = 0; c < X * C; c++)
            b->answers[k][c] = fds_rng_unit(&rng);
    for (size_t c = 0; c < X * C; c++)
        for (size_t i = 0; i < N; i++)
            b->targets[c * N + i] =
                (float)((double)(i + 1) * b->answers[0][c] - (double)(c % C) * b->answers[1][c] +
                        0.1 * b->answers[7][c] + noise * fds_rng_normal(&rng));
    for (size_t x = 0; x < X; x++)
        b->predicted[x] = (uint32_t)fds_rng_below(&rng, C);
    b->rows = (fds_rows){X * C, read_answers, b};
    b->data = (fds__training){.inputs = X,
                              .validation = HELD,
                              .players = N,
                              .classes = C,
                              .targets = b->targets,
                              .rows = &b->rows};
    return b;
}

static fds__probe *learn(const book *b, unsigned threads) {
    fds__probe *probe = NULL;
    fds_error err;
    expect_ok(fds__probe_learn(&b->data, K, b->predicted, threads, NULL, &probe, &err), &err);
    return probe;
}

static void answers_of(const book *b, size_t column, double seen[K]) {
    for (size_t k = 0; k < K; k++)
        seen[k] = b->answers[k][column];
}

static void a_linear_map_is_found(void **state) {
    (void)state;
    book *b = book_make(0);
    fds__probe *probe = learn(b, 1);
    for (size_t c = 0; c < X * C; c++) {
        double seen[K], values[N], spread, mean = 0, wanted = 0;
        answers_of(b, c, seen);
        fds__probe_run(probe, seen, (uint32_t)(c % C), values, &spread);
        for (size_t k = 0; k < K; k++)
            mean += seen[k] / K;
        for (size_t k = 0; k < K; k++)
            wanted += pow(seen[k] - mean, 2) / K;
        assert_true(fabs(spread - wanted) < 1e-14);
        for (size_t i = 0; i < N; i++)
            assert_true(fabs(values[i] - (double)b->targets[c * N + i]) < 0.1);
    }
    fds__probe_free(probe);
    free(b);
}

/* At the minimum, the weighted residuals of the training inputs have no mean, and their products with
 * the answers are the ridge times the map: the same multiple for all labels, players and probes. */
static void it_solves_the_normal_equations(void **state) {
    (void)state;
    book *b = book_make(0.3);
    fds__probe *probe = learn(b, 1);
    double ridge = NAN;
    for (uint32_t y = 0; y < C; y++) {
        double left[N] = {0}, product[N] = {0}, zero[K] = {0}, one[K] = {1}, at_zero[N], at_one[N];
        double spread;
        fds__probe_run(probe, zero, y, at_zero, &spread);
        fds__probe_run(probe, one, y, at_one, &spread);
        for (size_t x = 0; x < X - HELD; x++) {
            double seen[K], values[N], weight = b->predicted[x] == y ? 1 : 0.1;
            answers_of(b, x * C + y, seen);
            fds__probe_run(probe, seen, y, values, &spread);
            for (size_t i = 0; i < N; i++) {
                double off = weight * ((double)b->targets[(x * C + y) * N + i] - values[i]);
                left[i] += off;
                product[i] += off * seen[0];
            }
        }
        for (size_t i = 0; i < N; i++) {
            double strength = product[i] / (at_one[i] - at_zero[i]);
            ridge = isnan(ridge) ? strength : ridge;
            assert_true(fabs(left[i]) < 1e-4);
            assert_true(fabs(strength - ridge) < 1e-3 * ridge + 1e-4);
        }
    }
    assert_true(fabs(ridge - 0.1) < 1e-3 || fabs(ridge - 0.3) < 1e-3 || fabs(ridge - 1) < 1e-3 ||
                fabs(ridge - 3) < 1e-2 || fabs(ridge - 10) < 1e-1);
    fds__probe_free(probe);
    free(b);
}

static void the_bits_do_not_depend_on_threads(void **state) {
    (void)state;
    book *b = book_make(0.3);
    fds__probe *one = learn(b, 1), *four = learn(b, 4);
    for (size_t c = 0; c < X * C; c++) {
        double seen[K], values[2][N], spread[2];
        answers_of(b, c, seen);
        fds__probe_run(one, seen, (uint32_t)(c % C), values[0], &spread[0]);
        fds__probe_run(four, seen, (uint32_t)(c % C), values[1], &spread[1]);
        assert_memory_equal(values[0], values[1], sizeof values[0]);
    }
    fds__probe_free(one);
    fds__probe_free(four);
    free(b);
}

/* ---- the file ---- */

static void a_file_keeps_it(void **state) {
    (void)state;
    book *b = book_make(0.3);
    fds__probe *probe = learn(b, 1), *again = NULL, *other = NULL;
    const char *path = scratch_path("explainer.safetensors");
    double seen[K], values[2][N], spread;
    fds_error err;
    expect_ok(fds__probe_save(probe, path, &err), &err);
    expect_ok(fds__probe_load(path, K, N, C, &again, &err), &err);
    answers_of(b, 7, seen);
    fds__probe_run(probe, seen, 1, values[0], &spread);
    fds__probe_run(again, seen, 1, values[1], &spread);
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    expect_failure(fds__probe_load(path, K, N + 1, C, &other, &err), FDS_ERR_SHAPE, &err,
                   "a tensor \"maps\" for 3 classes, 6 players and 16 sub-models");
    fds__probe_free(other);
    fds__probe_free(again);
    fds__probe_free(probe);
    free(b);
}

static void every_failure_is_told(void **state) {
    (void)state;
    book *b = book_make(0.3);
    const char *path = scratch_path("explainer.safetensors");
    for (int kind = FDS__FAULT_ALLOC; kind <= FDS__FAULT_IO; kind++)
        for (uint64_t nth = 1;; nth++) {
            fds__probe *probe = NULL, *again = NULL;
            fds_error err;
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status = fds__probe_learn(&b->data, K, b->predicted, 1, NULL, &probe, &err);
            if (status == FDS_OK)
                status = fds__probe_save(probe, path, &err);
            if (status == FDS_OK)
                status = fds__probe_load(path, K, N, C, &again, &err);
            fds__probe_free(probe);
            fds__probe_free(again);
            if (fds__fault_arm((fds__fault_kind)kind, 0) < nth) {
                expect_ok(status, &err);
                assert_true(nth > 1);
                break;
            }
            expect_told((fds__fault_kind)kind, nth, status, &err);
        }
    free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_map_is_found),
        cmocka_unit_test(it_solves_the_normal_equations),
        cmocka_unit_test(the_bits_do_not_depend_on_threads),
        IN_SCRATCH(a_file_keeps_it),
        IN_SCRATCH(every_failure_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
