/* SPDX-License-Identifier: Apache-2.0
 * Nearest neighbours against a naive count, and their Shapley values against the definition. */
#include "utility_fixture.h"

enum { MOST = 64 };

/* ---- the utility, naively ---- */

/* distances (samples) of one input, straight from the definition. */
static void distances_of(const game *g, size_t input, double *distances) {
    float mean[3], std[3], x[3], y[3];
    fds_error err;
    size_t count = fds__dataset_get_info(g->train).count;
    expect_ok(fds_dataset_stats(g->train, NULL, count, NULL, NULL, mean, std, &err), &err);
    for (int c = 0; c < 3; c++)
        std[c] = std[c] > 0 ? std[c] : 1;
    fds_dataset_sample(g->test, g->inputs[input], x);
    for (size_t i = 0; i < count; i++) {
        fds_dataset_sample(g->train, i, y);
        distances[i] = 0;
        for (int c = 0; c < 3; c++) { /* a sample is rounded once it is normalised */
            double a = (float)(((double)x[c] - (double)mean[c]) / (double)std[c]);
            double b = (float)(((double)y[c] - (double)mean[c]) / (double)std[c]);
            distances[i] += (a - b) * (a - b);
        }
    }
}

/* The share of each label among the k nearest of the samples that are in: k times, the nearest not
 * yet taken; of those alike the first. */
static void naive(const game *g, size_t input, size_t k, const bool *is_in, double *share) {
    fds__dataset_info info = fds__dataset_get_info(g->train);
    double distances[MOST];
    bool left[MOST];
    distances_of(g, input, distances);
    memcpy(left, is_in, info.count * sizeof *left);
    for (uint32_t y = 0; y < info.classes; y++)
        share[y] = 0;
    for (size_t round = 0; round < k; round++) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < info.count; i++)
            if (left[i] && (best == SIZE_MAX || distances[i] < distances[best]))
                best = i;
        if (best == SIZE_MAX)
            return;
        left[best] = false;
        share[info.labels[best]] += 1.0 / (double)k;
    }
}

static void expect_naive(const game *g, const fds_utility *value, size_t k, uint64_t coalition) {
    float probs[16 * 4];
    double share[4];
    bool is_in[MOST] = {false};
    uint32_t classes = fds__dataset_get_info(g->train).classes;
    for (size_t p = 0; p < fds_players_count(g->players); p++) {
        const uint32_t *own;
        size_t owned = fds_players_samples(g->players, p, &own);
        for (size_t i = 0; i < owned; i++)
            is_in[own[i]] = coalition >> p & 1;
    }
    eval(value, 0, coalition, probs);
    for (size_t x = 0; x < g->input_count; x++) {
        naive(g, x, k, is_in, share);
        for (uint32_t y = 0; y < classes; y++)
            assert_true(fabs((double)probs[x * classes + y] - share[y]) < 1e-6);
    }
}

static const struct {
    const char *kind;
    size_t k;
} kinds[] = {{"knn:1", 1}, {"knn:2", 2}, {"knn:3", 3}, {"knn:5", 5}, {"knn:9", 9}, {"knn:40", 40}};

static void the_utility_is_the_share_among_the_nearest(void **state) {
    (void)state;
    game g = game_vectors(40, 8, 4, 3);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        fds__utility_params p = smaller(kinds[i].kind);
        fds_utility *value = make_value(&g, &p, 1);
        fds_rng rng = fds_rng_make(8, 2003, i, 0);
        for (int trial = 0; trial < 20; trial++)
            expect_naive(&g, value, kinds[i].k, fds_rng_u64(&rng) & everyone(&g));
        expect_naive(&g, value, kinds[i].k, 0);
        expect_naive(&g, value, kinds[i].k, everyone(&g));
        fds_utility_free(value);
    }
    game_free(&g);
}

static void a_providers_samples_enter_together(void **state) {
    (void)state;
    game g = game_providers(30, 5, 3, 6);
    fds__utility_params p = smaller("knn:4");
    fds_utility *value = make_value(&g, &p, 1);
    for (uint64_t s = 0; s < 8; s++)
        expect_naive(&g, value, 4, s);
    double values[5 * 3 * 3];
    fds_error err = {0};
    expect_failure(fds_utility_knn_shapley(value, values, &err), FDS_ERR_USAGE, &err,
                   "one sample per player; these 3 players have 30");
    fds_utility_free(value);
    game_free(&g);
}

static void nobody_is_worth_nothing(void **state) {
    (void)state;
    game g = game_vectors(6, 3, 2, 3);
    fds__utility_params p = smaller("knn:2");
    fds_utility *value = make_value(&g, &p, 1);
    float probs[3 * 2];
    eval(value, 0, 0, probs);
    for (size_t i = 0; i < COUNT(probs); i++)
        assert_true(probs[i] == 0);
    fds_utility_free(value);
    game_free(&g);
}

/* ---- Shapley values ---- */

/* phi_i = sum over s without i of |s|! (n - |s| - 1)! / n! (v(s + i) - v(s)). */
static void enumerate(const double *v, size_t n, double *phi) {
    double factorial[12] = {1};
    for (size_t i = 1; i <= n; i++)
        factorial[i] = factorial[i - 1] * (double)i;
    for (size_t i = 0; i < n; i++) {
        phi[i] = 0;
        for (size_t s = 0; s < (size_t)1 << n; s++) {
            size_t size = (size_t)__builtin_popcountll(s);
            if (!(s >> i & 1))
                phi[i] += factorial[size] * factorial[n - size - 1] / factorial[n] *
                          (v[s | (size_t)1 << i] - v[s]);
        }
    }
}

static void expect_exact(const game *g, const fds_utility *value, size_t k) {
    enum { N = 10, X = 16, C = 4 };
    static double v[X * C][1 << N], values[X * C * N];
    size_t n = fds_players_count(g->players);
    uint32_t classes = fds__dataset_get_info(g->train).classes;
    double phi[N], share[C];
    fds_error err;
    expect_ok(fds_utility_knn_shapley(value, values, &err), &err);
    for (size_t s = 0; s < (size_t)1 << n; s++) {
        bool is_in[N];
        for (size_t i = 0; i < n; i++)
            is_in[i] = s >> i & 1;
        for (size_t x = 0; x < g->input_count; x++) {
            naive(g, x, k, is_in, share);
            for (uint32_t y = 0; y < classes; y++)
                v[x * classes + y][s] = share[y];
        }
    }
    for (size_t column = 0; column < g->input_count * classes; column++) {
        enumerate(v[column], n, phi);
        for (size_t i = 0; i < n; i++)
            assert_true(fabs(values[column * n + i] - phi[i]) < 1e-12);
    }
}

static void the_recursion_is_the_definition(void **state) {
    (void)state;
    const size_t players[] = {1, 2, 3, 6, 10};
    for (size_t j = 0; j < COUNT(players); j++)
        for (size_t i = 0; i < COUNT(kinds); i++) {
            game g = game_vectors(players[j], players[j] == 10 ? 2 : 5, 3, 10 * j + i);
            fds__utility_params p = smaller(kinds[i].kind);
            fds_utility *value = make_value(&g, &p, 1);
            expect_exact(&g, value, kinds[i].k);
            fds_utility_free(value);
            game_free(&g);
        }
}

/* All samples alike: every distance is a tie, and the lower sample number is nearer. */
static void ties_go_by_the_number_of_the_sample(void **state) {
    (void)state;
    const float values[6 * 3] = {0};
    const uint16_t labels[6] = {1, 0, 1, 2, 0, 1};
    const uint32_t turned[6] = {5, 4, 3, 2, 1, 0};
    game g = {.input_count = 1};
    fds_error err;
    expect_ok(
        fds__dataset_create(6, (fds_shape){3, 1, 1}, NULL, values, labels, 3, NULL, &g.train, &err),
        &err);
    expect_ok(
        fds__dataset_create(1, (fds_shape){3, 1, 1}, NULL, values, labels, 3, NULL, &g.test, &err),
        &err);
    expect_ok(fds_players_points(g.train, turned, 6, &g.players, &err), &err);
    fds__utility_params p = smaller("knn:2");
    fds_utility *value = make_value(&g, &p, 1);
    float probs[3];
    eval(value, 0, everyone(&g), probs); /* samples 0 and 1 */
    assert_true(probs[0] == 0.5f && probs[1] == 0.5f && probs[2] == 0);
    eval(value, 0, 1 << 3 | 1 << 2 | 1 << 0, probs); /* samples 2 and 3, before 5 */
    assert_true(probs[0] == 0 && probs[1] == 0.5f && probs[2] == 0.5f);
    /* player 2 is sample 3, the only one of label 2: it is worth 1/2 to those before it if at most
     * one of samples 0, 1, 2 is among them, which is so in half of all orders */
    double phi[3 * 6];
    expect_ok(fds_utility_knn_shapley(value, phi, &err), &err);
    assert_true(fabs(phi[2 * 6 + 2] - 0.25) < 1e-12);
    fds_utility_free(value);
    game_free(&g);
}

/* For every input and label the values sum to v(N) - v(no one), however many the samples are. */
static void the_values_sum_to_the_whole(void **state) {
    (void)state;
    game g = game_digits(100, 20);
    fds__utility_params p = small("knn:5");
    fds_utility *value = make_value(&g, &p, 1);
    static double values[20 * 10 * 100];
    static float probs[20 * 10];
    const uint64_t all[2] = {UINT64_MAX, ((uint64_t)1 << 36) - 1};
    fds_error err;
    expect_ok(fds_utility_knn_shapley(value, values, &err), &err);
    expect_ok(fds_utility_eval(value, 0, all, probs, &err), &err);
    for (size_t column = 0; column < COUNT(probs); column++) {
        double sum = 0;
        for (size_t i = 0; i < 100; i++)
            sum += values[column * 100 + i];
        assert_true(fabs(sum - (double)probs[column]) < 1e-6);
    }
    fds_utility_free(value);
    game_free(&g);
}

/* Neighbours are sorted by as many threads as there will be workers. */
static void threads_change_no_neighbour(void **state) {
    (void)state;
    enum { N = 40, X = 30, C = 3 };
    game g = game_vectors(N, X, C, 4);
    fds__utility_params p = smaller("knn:5");
    static double one[X * C * N], many[X * C * N], single[N];
    fds_error err;
    for (unsigned workers = 1; workers <= 4; workers++) {
        fds_utility *value = make_value(&g, &p, workers);
        expect_ok(fds_utility_knn_shapley(value, workers == 1 ? one : many, &err), &err);
        expect_ok(fds__utility_knn_label(value, 7, 2, single, &err), &err);
        fds_utility_free(value);
        assert_memory_equal(single, one + (7 * C + 2) * N, sizeof single);
        if (workers > 1)
            assert_memory_equal(one, many, sizeof one);
    }
    game_free(&g);
}

static void other_kinds_have_no_recursion(void **state) {
    (void)state;
    game g = game_vectors(4, 2, 3, 1);
    const char *const others[] = {"retrain:2", "kernel"};
    for (size_t i = 0; i < COUNT(others); i++) {
        fds__utility_params p = smaller(others[i]);
        fds_utility *value = make_value(&g, &p, 1);
        double values[2 * 3 * 4];
        fds_error err = {0};
        expect_failure(fds_utility_knn_shapley(value, values, &err), FDS_ERR_USAGE, &err,
                       "\"knn:K\"");
        fds_utility_free(value);
    }
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_utility_is_the_share_among_the_nearest),
        IN_SCRATCH(a_providers_samples_enter_together),
        cmocka_unit_test(nobody_is_worth_nothing),
        cmocka_unit_test(the_recursion_is_the_definition),
        cmocka_unit_test(ties_go_by_the_number_of_the_sample),
        cmocka_unit_test(the_values_sum_to_the_whole),
        cmocka_unit_test(threads_change_no_neighbour),
        cmocka_unit_test(other_kinds_have_no_recursion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
