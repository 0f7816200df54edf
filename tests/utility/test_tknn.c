/* SPDX-License-Identifier: Apache-2.0
 * Neighbours within a distance: the utility against a naive count, the values against enumeration and
 * against the formula of its authors, noisy counts against exact ones. */
#include "utility_fixture.h"

#include <math.h>

enum { MOST = 64, CLASSES = 3 };

/* Squared distances (samples) of one input, straight from the definition. */
static void distances_of(const game *g, size_t input, double *distances) {
    float mean[3], std[3], x[3], y[3];
    fds_error err;
    size_t count = fds__dataset_get_info(g->train).count;
    expect_ok(fds_dataset_stats(g->train, NULL, count, NULL, NULL, mean, std, &err), &err);
    fds_dataset_sample(g->test, g->inputs[input], x);
    for (size_t i = 0; i < count; i++) {
        fds_dataset_sample(g->train, i, y);
        distances[i] = 0;
        for (int c = 0; c < 3; c++) {
            double scale = std[c] > 0 ? (double)std[c] : 1;
            double a = (float)(((double)x[c] - (double)mean[c]) / scale);
            double b = (float)(((double)y[c] - (double)mean[c]) / scale);
            distances[i] += (a - b) * (a - b);
        }
    }
}

static double naive(const game *g, size_t input, uint32_t label, double threshold, uint64_t s) {
    fds__dataset_info info = fds__dataset_get_info(g->train);
    double distances[MOST], a = 0, c = 0;
    distances_of(g, input, distances);
    for (size_t i = 0; i < info.count; i++)
        if ((s >> i & 1) && distances[i] <= threshold * threshold) {
            c++;
            a += info.labels[i] == label;
        }
    return c > 0 ? a / c : 1.0 / info.classes;
}

static void the_utility_is_the_share_within_the_distance(void **state) {
    (void)state;
    game g = game_vectors(20, 6, CLASSES, 3);
    fds__utility_params p = smaller("tknn:1.25");
    fds_utility *value = make_value(&g, &p, 2);
    float probs[6 * CLASSES];
    for (uint64_t trial = 0; trial < 40; trial++) {
        fds_rng rng = fds_rng_make(4, 2011, trial, 0);
        uint64_t s = trial ? fds_rng_u64(&rng) & everyone(&g) : 0;
        eval(value, trial % 2, s, probs);
        for (size_t x = 0; x < 6; x++)
            for (uint32_t y = 0; y < CLASSES; y++)
                assert_true(fabs((double)probs[x * CLASSES + y] - naive(&g, x, y, 1.25, s)) < 1e-6);
    }
    fds_utility_free(value);
    game_free(&g);
}

/* The sum over all orders, by sizes. */
static double enumerate(const game *g, size_t input, uint32_t label, double threshold, size_t i,
                        size_t n) {
    double factorial[16] = {1}, phi = 0;
    for (size_t k = 1; k <= n; k++)
        factorial[k] = factorial[k - 1] * (double)k;
    for (uint64_t s = 0; s < (uint64_t)1 << n; s++) {
        size_t size = (size_t)__builtin_popcountll(s);
        if (s >> i & 1)
            continue;
        phi += factorial[size] * factorial[n - size - 1] / factorial[n] *
               (naive(g, input, label, threshold, s | (uint64_t)1 << i) -
                naive(g, input, label, threshold, s));
    }
    return phi;
}

/* (m - 1/C)/c + [c >= 2] (m/c - (a - m)/(c (c - 1))) (H_c - 1), for a sample within the distance. */
static double authors_formula(double m, double a, double c, double classes) {
    double harmonic = 0;
    for (double k = 1; k <= c; k++)
        harmonic += 1 / k;
    double phi = (m - 1 / classes) / c;
    return c >= 2 ? phi + (m / c - (a - m) / (c * (c - 1))) * (harmonic - 1) : phi;
}

static void values_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *kind;
        double threshold;
    } kinds[] = {{"tknn:0.4", 0.4}, {"tknn:1", 1}, {"tknn:1.8", 1.8}, {"tknn:100", 100}};
    for (size_t n = 1; n <= 12; n += n == 1 ? 4 : 7) {
        game g = game_vectors(n, 3, CLASSES, n);
        double values[3 * CLASSES * 12], distances[MOST];
        fds__dataset_info info = fds__dataset_get_info(g.train);
        fds_error err = {0};
        for (size_t k = 0; k < COUNT(kinds); k++) {
            fds__utility_params p = smaller(kinds[k].kind);
            fds_utility *value = make_value(&g, &p, 1);
            expect_ok(fds_utility_knn_shapley(value, values, &err), &err);
            for (size_t at = 0; at < 3 * CLASSES; at++) {
                size_t x = at / CLASSES;
                uint32_t y = at % CLASSES;
                double a = 0, c = 0;
                distances_of(&g, x, distances);
                for (size_t i = 0; i < n; i++) {
                    bool is_near = distances[i] <= kinds[k].threshold * kinds[k].threshold;
                    c += is_near;
                    a += is_near && info.labels[i] == y;
                }
                for (size_t i = 0; i < n; i++) {
                    bool is_near = distances[i] <= kinds[k].threshold * kinds[k].threshold;
                    double theirs =
                        is_near ? authors_formula(info.labels[i] == y, a, c, CLASSES) : 0;
                    double truth =
                        n < 12 || at == 0 ? enumerate(&g, x, y, kinds[k].threshold, i, n) : theirs;
                    assert_true(fabs(values[at * n + i] - truth) < 1e-12);
                    assert_true(fabs(values[at * n + i] - theirs) < 1e-12);
                }
            }
            fds_utility_free(value);
        }
        game_free(&g);
    }
}

static void counts_give_the_values_and_noise_cannot_break_them(void **state) {
    (void)state;
    game g = game_vectors(12, 4, CLASSES, 9);
    fds__utility_params p = smaller("tknn:1.5");
    fds_utility *value = make_value(&g, &p, 1);
    double exact[12], noisy[12];
    fds_error err = {0};
    for (size_t x = 0; x < 4; x++) {
        fds__tknn_counts counts;
        fds__tknn_count(value, x, 1, &counts);
        assert_true(counts.same >= 0 && counts.other >= 0 && counts.same + counts.other <= 12);
        fds__tknn_values(value, x, 1, counts, noisy);
        expect_ok(fds__utility_knn_label(value, x, 1, exact, &err), &err);
        for (size_t i = 0; i < 12; i++)
            assert_true(noisy[i] == exact[i]);
        const fds__tknn_counts odd[] = {{0, 0}, {INT64_C(1) << 60, 0}, {0, INT64_C(1) << 60}};
        for (size_t k = 0; k < COUNT(odd); k++) {
            fds__tknn_values(value, x, 1, odd[k], noisy);
            for (size_t i = 0; i < 12; i++)
                assert_true(isfinite(noisy[i]) && fabs(noisy[i]) <= 1 && !noisy[i] == !exact[i]);
        }
    }
    fds_utility_free(value);
    game_free(&g);
}

static void without_a_distance_a_tenth_of_the_inputs_are_near(void **state) {
    (void)state;
    game g = game_vectors(12, 16, CLASSES, 5);
    fds__utility_params p = smaller("tknn");
    fds_utility *value = make_value(&g, &p, 1);
    const char *at = strstr(fds_utility_get_info(value).text, "\"threshold\":");
    assert_non_null(at);
    double threshold = strtod(at + strlen("\"threshold\":"), NULL);
    size_t below = 0, within = 0, pairs = 0; /* of those alike the order does not matter */
    const fds_inputs *in = value->data->inputs;
    for (size_t i = 0; i < in->count; i++)
        for (size_t j = 0; j < i; j++, pairs++) {
            double distance = sqrt(fds__utility_distance2(in->values + i * in->size,
                                                          in->values + j * in->size, in->size));
            below += distance < threshold - 1e-12;
            within += distance < threshold + 1e-12;
        }
    assert_true(below <= pairs / 10 && within > pairs / 10);
    fds_utility_free(value);
    game_free(&g);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"tknn:",    "tknn:0",   "tknn:-1",
                                        "tknn:x",   "tknn:1x",  "tknn:inf",
                                        "tknn:nan", "tknn:0x2", "tknn:1@model"};
    game g = game_vectors(5, 1, 2, 3);
    fds_utility *value = NULL;
    fds_error err = {0};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        fds__utility_params p = smaller(wrong[i]);
        expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err, wrong[i]);
    }
    fds__utility_params p = smaller("tknn");
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err, "there is one input");
    game_free(&g);
}

/* In private mode no sample affects another's distances: the scale is that of the inputs. */
static void a_private_scale_is_that_of_the_inputs(void **state) {
    (void)state;
    game g = game_vectors(10, 6, CLASSES, 5);
    fds__utility_params p = smaller("tknn:1");
    p.is_private = true;
    fds_utility *value = make_value(&g, &p, 1);
    float mean[3], std[3], x[3];
    fds_error err = {0};
    uint32_t inputs[6];
    for (size_t i = 0; i < 6; i++)
        inputs[i] = g.inputs[i];
    expect_ok(fds_dataset_stats(g.test, inputs, 6, NULL, NULL, mean, std, &err), &err);
    for (size_t i = 0; i < 10; i++) {
        fds_dataset_sample(g.train, i, x);
        for (size_t c = 0; c < 3; c++)
            assert_true(fabs((double)value->data->samples->values[i * 3 + c] -
                             ((double)x[c] - (double)mean[c]) / (double)std[c]) < 1e-6);
    }
    assert_non_null(strstr(fds_utility_get_info(value).text, "of the inputs"));
    fds_utility_free(value);
    game_free(&g);
}

static bool cancel_neighbours(void *user, const fds_progress *progress) {
    *(bool *)user |= strcmp(progress->stage, "neighbours") == 0;
    return *(bool *)user;
}

static void finding_neighbours_is_reported_and_can_be_cancelled(void **state) {
    (void)state;
    game g = game_vectors(10, 6, CLASSES, 3);
    const char *const kinds[] = {"tknn:1.25", "knn:3"};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        fds__utility_params p = smaller(kinds[i]);
        bool is_told = false;
        fds_utility *value = NULL;
        fds_error err = {0};
        const fds_events events = {.progress = cancel_neighbours, .user = &is_told};
        p.events = &events;
        assert_int_equal(try_value(&g, &p, 2, &value, &err), FDS_ERR_CANCELLED);
        assert_true(is_told);
    }
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_utility_is_the_share_within_the_distance),
        cmocka_unit_test(values_are_exact),
        cmocka_unit_test(counts_give_the_values_and_noise_cannot_break_them),
        cmocka_unit_test(without_a_distance_a_tenth_of_the_inputs_are_near),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_private_scale_is_that_of_the_inputs),
        cmocka_unit_test(finding_neighbours_is_reported_and_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
