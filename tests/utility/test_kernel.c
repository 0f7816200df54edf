/* SPDX-License-Identifier: Apache-2.0
 * Kernel regression: the answers are those of the formula, solved in another way, and behave like
 * those of a model that learns. */
#include "utility_fixture.h"

enum { PLAYERS = 20, INPUTS = 10, CLASSES = 10, SIZE = 784 };

static void expect_probabilities(const float *probs) {
    for (size_t x = 0; x < INPUTS; x++) {
        double sum = 0;
        for (size_t y = 0; y < CLASSES; y++) {
            assert_true(probs[x * CLASSES + y] > 0);
            sum += (double)probs[x * CLASSES + y];
        }
        assert_true(fabs(sum - 1) < 1e-6);
    }
}

static void nobody_knows_nothing(void **state) {
    (void)state;
    expect_nobody_to_know("kernel");
}

/* ---- the formula ---- */

/* x = A^-1 b by elimination with pivoting, n equations, for all columns of b. */
static void eliminate(double *a, double *b, size_t n, size_t columns) {
    for (size_t k = 0; k < n; k++) {
        size_t pivot = k;
        for (size_t i = k + 1; i < n; i++)
            pivot = fabs(a[i * n + k]) > fabs(a[pivot * n + k]) ? i : pivot;
        for (size_t j = 0; j < n; j++) {
            double kept = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = kept;
        }
        for (size_t j = 0; j < columns; j++) {
            double kept = b[k * columns + j];
            b[k * columns + j] = b[pivot * columns + j];
            b[pivot * columns + j] = kept;
        }
        for (size_t i = 0; i < n; i++) {
            double factor = i == k ? 0 : a[i * n + k] / a[k * n + k];
            for (size_t j = 0; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
            for (size_t j = 0; j < columns; j++)
                b[i * columns + j] -= factor * b[k * columns + j];
        }
    }
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < columns; j++)
            b[k * columns + j] /= a[k * n + k];
}

/* The tangent kernel of one hidden layer, from the two arc-cosine kernels it is made of. */
static double tangent_kernel(const double *a, const double *b) {
    double aa = 0, ab = 0, bb = 0;
    for (size_t i = 0; i < SIZE; i++) {
        aa += a[i] * a[i];
        ab += a[i] * b[i];
        bb += b[i] * b[i];
    }
    double u = fmin(1, ab / sqrt(aa * bb)), angle = acos(u), pi = acos(-1);
    double order0 = (pi - angle) / pi, order1 = (sin(angle) + (pi - angle) * cos(angle)) / pi;
    return u * order0 + order1;
}

static void load(const game *g, const fds_dataset *ds, uint32_t sample, double *out) {
    float mean, std, x[SIZE];
    uint32_t index[PLAYERS];
    fds_error err;
    for (size_t i = 0; i < PLAYERS; i++) {
        const uint32_t *own;
        fds_players_samples(g->players, i, &own);
        index[i] = *own;
    }
    expect_ok(fds_dataset_stats(g->train, index, PLAYERS, NULL, NULL, &mean, &std, &err), &err);
    fds_dataset_sample(ds, sample, x);
    for (size_t i = 0; i < SIZE; i++)
        out[i] = ((double)x[i] - (double)mean) / (double)std;
}

static double constant(const fds_utility *value, const char *name) {
    json_t *object = json_loads(fds_utility_get_info(value).text, 0, NULL);
    double number = json_real_value(json_object_get(object, name));
    json_decref(object);
    assert_true(number > 0);
    return number;
}

static void the_answers_solve_the_regression(void **state) {
    (void)state;
    static double z[PLAYERS][SIZE], x[SIZE];
    game g = game_digits(PLAYERS, INPUTS);
    fds__utility_params p = small("kernel");
    fds_utility *value = make_value(&g, &p, 1);
    double ridge = constant(value, "ridge") * 2 /* the diagonal */,
           sharp = constant(value, "sharpness");
    float probs[INPUTS * CLASSES];
    for (int trial = 0; trial < 6; trial++) {
        fds_rng rng = fds_rng_make(2, 2004, (uint64_t)trial, 0);
        uint64_t s = trial ? fds_rng_below(&rng, 1u << PLAYERS) : everyone(&g);
        double a[PLAYERS * PLAYERS], b[PLAYERS * CLASSES];
        size_t n = 0;
        for (size_t i = 0; i < PLAYERS; i++) {
            const uint32_t *own;
            fds_players_samples(g.players, i, &own);
            if (!(s >> i & 1))
                continue;
            load(&g, g.train, *own, z[n]);
            for (size_t y = 0; y < CLASSES; y++)
                b[n * CLASSES + y] =
                    (fds__dataset_get_info(g.train).labels[*own] == y ? 1.0 : 0.0) - 1.0 / CLASSES;
            n++;
        }
        for (size_t i = 0; i < n * n; i++)
            a[i] = tangent_kernel(z[i / n], z[i % n]) + (i / n == i % n ? ridge : 0);
        eliminate(a, b, n, CLASSES);
        eval(value, 0, s, probs);
        expect_probabilities(probs);
        for (size_t t = 0; t < INPUTS; t++) {
            double e[CLASSES], sum = 0;
            load(&g, g.test, g.inputs[t], x);
            for (size_t y = 0; y < CLASSES; y++) {
                double score = 0;
                for (size_t i = 0; i < n; i++)
                    score += tangent_kernel(x, z[i]) * b[i * CLASSES + y];
                sum += e[y] = exp(sharp * score);
            }
            for (size_t y = 0; y < CLASSES; y++)
                assert_true(fabs((double)probs[t * CLASSES + y] - e[y] / sum) < 1e-5);
        }
    }
    fds_utility_free(value);
    game_free(&g);
}

/* ---- behaviour ---- */

static void the_order_of_the_players_does_not_matter(void **state) {
    (void)state;
    expect_no_order_of_players("kernel", 50);
}

/* The inputs are the players' own samples: whoever joins makes its label likelier for itself. */
static void a_sample_speaks_for_its_own_label(void **state) {
    (void)state;
    game g = game_digits(PLAYERS, INPUTS), h = g;
    h.test = g.train;
    for (size_t i = 0; i < INPUTS; i++) {
        const uint32_t *own;
        fds_players_samples(g.players, i, &own);
        h.inputs[i] = *own;
    }
    fds__utility_params p = small("kernel");
    fds_utility *value = make_value(&h, &p, 1);
    for (uint64_t trial = 0; trial < 20; trial++) {
        fds_rng rng = fds_rng_make(2, 2006, trial, 0);
        uint64_t s = fds_rng_below(&rng, 1u << PLAYERS);
        for (size_t i = 0; i < INPUTS; i++) {
            float without[INPUTS * CLASSES], with[INPUTS * CLASSES];
            size_t at = i * CLASSES + fds__dataset_get_info(g.train).labels[h.inputs[i]];
            eval(value, 0, s & ~((uint64_t)1 << i), without);
            eval(value, 0, s | (uint64_t)1 << i, with);
            assert_true(with[at] > without[at]);
        }
    }
    fds_utility_free(value);
    game_free(&g);
}

/* Two samples alike make K_SS singular but for the ridge; samples of no length have no angle. */
static void twins_and_zeros_are_no_trouble(void **state) {
    (void)state;
    const float values[6 * 3] = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 1, 1, -1, -1, -1, 0, 1, 2};
    const uint16_t labels[6] = {0, 0, 1, 2, 1, 0};
    game g = {.input_count = 6, .inputs = {0, 1, 2, 3, 4, 5}};
    fds_error err;
    for (size_t count = 1; count <= 6; count++) { /* 1 to 3: all normalised to nothing */
        expect_ok(fds__dataset_create(6, (fds_shape){3, 1, 1}, NULL, values, labels, 3, NULL,
                                      &g.train, &err),
                  &err);
        expect_ok(fds__dataset_create(6, (fds_shape){3, 1, 1}, NULL, values, labels, 3, NULL,
                                      &g.test, &err),
                  &err);
        expect_ok(fds_players_points(g.train, NULL, count, &g.players, &err), &err);
        fds__utility_params p = smaller("kernel");
        fds_utility *value = make_value(&g, &p, 1);
        for (uint64_t s = 0; s < (uint64_t)1 << count; s++) {
            float probs[6 * 3];
            eval(value, 0, s, probs);
            for (size_t i = 0; i < COUNT(probs); i++)
                assert_true(probs[i] > 0 && probs[i] < 1);
            assert_memory_equal(probs, probs + 3, 3 * sizeof *probs); /* inputs 0 and 1 are twins */
            if (count == 1 && s == 1) /* what has no length is like its kind, unlike the rest */
                assert_true(probs[0] > probs[3 * 3] + 0.1f && probs[3 * 3] > probs[3 * 3 + 1]);
        }
        fds_utility_free(value);
        game_free(&g);
    }
}

static void a_hundred_digits_teach_something(void **state) {
    (void)state;
    expect_digits_to_be_learnt("kernel", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_knows_nothing),
        cmocka_unit_test(the_answers_solve_the_regression),
        cmocka_unit_test(the_order_of_the_players_does_not_matter),
        cmocka_unit_test(a_sample_speaks_for_its_own_label),
        cmocka_unit_test(twins_and_zeros_are_no_trouble),
        cmocka_unit_test(a_hundred_digits_teach_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
