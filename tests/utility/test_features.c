/* SPDX-License-Identifier: Apache-2.0
 * "knn:K@model": neighbours by the features of a network that was trained on all players. */
#include "utility_fixture.h"

enum { PLAYERS = 30, INPUTS = 12, CLASSES = 10, HIDDEN = 8, PIXELS = 49 };

/* ---- the definition, naively ---- */

/* Features (HIDDEN) of one sample in double: the network of small() up to its last layer. */
static void features_of(const fds_model *model, const fds_dataset *ds, uint32_t sample,
                        double *features) {
    fds__model_info info = fds__model_get_info(model);
    const float *w = fds__model_weights(model), *bias = w + (size_t)HIDDEN * PIXELS;
    float image[784];
    double pooled[PIXELS];
    fds_dataset_sample(ds, sample, image);
    for (size_t i = 0; i < PIXELS; i++) {
        pooled[i] = -INFINITY;
        for (size_t j = 0; j < 16; j++) {
            size_t at = (i / 7 * 4 + j / 4) * 28 + i % 7 * 4 + j % 4;
            pooled[i] =
                fmax(pooled[i], ((double)image[at] - (double)info.mean[0]) / (double)info.std[0]);
        }
    }
    for (size_t h = 0; h < HIDDEN; h++) {
        features[h] = (double)bias[h];
        for (size_t i = 0; i < PIXELS; i++)
            features[h] += (double)w[h * PIXELS + i] * pooled[i];
        features[h] = fmax(features[h], 0);
    }
}

/* The network of all players as fds_model_train makes it. */
static fds_model *train_all(const game *g, const fds__utility_params *p) {
    fds__utility_params as_retrained = *p;
    as_retrained.kind = "retrain:10";
    uint32_t index[PLAYERS];
    for (size_t i = 0; i < PLAYERS; i++) {
        const uint32_t *own;
        assert_int_equal(fds_players_samples(g->players, i, &own), 1);
        index[i] = own[0];
    }
    fds__samples_sort(index, PLAYERS);
    fds_train_params train;
    fds_model *model = NULL;
    fds_error err;
    expect_ok(fds__utility_training(&as_retrained, &train, &err), &err);
    expect_ok(
        fds_model_train(g->train, index, PLAYERS, p->network, &train, NULL, &model, NULL, &err),
        &err);
    return model;
}

static void neighbours_are_those_of_the_features(void **state) {
    (void)state;
    enum { K = 3 };
    game g = game_digits(PLAYERS, INPUTS);
    fds__utility_params p = small("knn:3@model");
    fds_utility *value = make_value(&g, &p, 1);
    fds_model *model = train_all(&g, &p);
    fds__dataset_info info = fds__dataset_get_info(g.train);
    double of[PLAYERS][HIDDEN], x[HIDDEN], distance[PLAYERS];
    float probs[INPUTS * CLASSES];
    uint32_t sample[PLAYERS];
    for (size_t i = 0; i < PLAYERS; i++) {
        const uint32_t *own;
        fds_players_samples(g.players, i, &own);
        sample[i] = own[0];
        features_of(model, g.train, sample[i], of[i]);
    }
    const uint64_t coalitions[] = {everyone(&g), everyone(&g) / 3, 1, 0x2a5a5a5, 0};
    for (size_t c = 0; c < COUNT(coalitions); c++) {
        eval(value, 0, coalitions[c], probs);
        for (size_t t = 0; t < INPUTS; t++) {
            double share[CLASSES] = {0};
            features_of(model, g.test, g.inputs[t], x);
            for (size_t i = 0; i < PLAYERS; i++) {
                distance[i] = coalitions[c] >> i & 1 ? 0 : INFINITY;
                for (size_t h = 0; h < HIDDEN; h++)
                    distance[i] += (of[i][h] - x[h]) * (of[i][h] - x[h]);
            }
            for (size_t k = 0; k < K; k++) {
                size_t best = 0;
                for (size_t i = 1; i < PLAYERS; i++)
                    best = distance[i] < distance[best] ? i : best;
                if (isfinite(distance[best]))
                    share[info.labels[sample[best]]] += 1.0 / K;
                distance[best] = INFINITY;
            }
            for (size_t y = 0; y < CLASSES; y++)
                assert_true(fabs((double)probs[t * CLASSES + y] - share[y]) < 1e-6);
        }
    }
    fds_model_free(model);
    fds_utility_free(value);
    game_free(&g);
}

/* The last layer of a network of one layer sees the sample itself. */
static void one_layer_has_the_samples_as_features(void **state) {
    (void)state;
    game g = game_digits(PLAYERS, INPUTS);
    fds__utility_params p = small("knn:5@model"), q = small("knn:5");
    p.network = "logistic";
    fds_utility *value = make_value(&g, &p, 1), *plain = make_value(&g, &q, 1);
    static double values[INPUTS * CLASSES * PLAYERS], wanted[INPUTS * CLASSES * PLAYERS];
    fds_error err;
    expect_ok(fds_utility_knn_shapley(value, values, &err), &err);
    expect_ok(fds_utility_knn_shapley(plain, wanted, &err), &err);
    assert_memory_equal(values, wanted, sizeof values);
    fds_utility_free(value);
    fds_utility_free(plain);
    game_free(&g);
}

/* For every input and label the values sum to v(N) - v(no one). */
static void the_recursion_holds_on_features(void **state) {
    (void)state;
    game g = game_digits(PLAYERS, INPUTS);
    fds__utility_params p = small("knn:4@model");
    fds_utility *value = make_value(&g, &p, 1);
    static double values[INPUTS * CLASSES * PLAYERS];
    float probs[INPUTS * CLASSES];
    fds_error err;
    expect_ok(fds_utility_knn_shapley(value, values, &err), &err);
    eval(value, 0, everyone(&g), probs);
    for (size_t column = 0; column < COUNT(probs); column++) {
        double sum = 0;
        for (size_t i = 0; i < PLAYERS; i++)
            sum += values[column * PLAYERS + i];
        assert_true(fabs(sum - (double)probs[column]) < 1e-6);
    }
    fds_utility_free(value);
    game_free(&g);
}

/* ---- what it depends on ---- */

static void expect_text(const game *g, const fds__utility_params *p, const char *part,
                        bool is_there) {
    fds_utility *value = make_value(g, p, 1);
    const char *text = fds_utility_get_info(value).text;
    if ((strstr(text, part) != NULL) != is_there)
        fail_msg("%s: %s", part, text);
    fds_utility_free(value);
}

static void the_text_says_how_the_network_was_trained(void **state) {
    (void)state;
    game g = game_vectors(6, 3, 3, 1);
    fds__utility_params p = smaller("knn:2@model");
    const char *const parts[] = {"\"kind\":\"knn:2@model\"", "\"network\":\"fc:5,relu,fc:3\"",
                                 "\"epochs\":10", "\"lr\":0.01", "\"seed\":9"};
    for (size_t i = 0; i < COUNT(parts); i++)
        expect_text(&g, &p, parts[i], true);
    p.train.seed = 10;
    expect_text(&g, &p, "\"seed\":10", true);
    p.kind = "knn:2";
    expect_text(&g, &p, "network", false);
    expect_text(&g, &p, "@model", false);
    game_free(&g);
}

static void wrong_networks_and_training_are_refused(void **state) {
    (void)state;
    game g = game_vectors(6, 3, 3, 1);
    fds_utility *value = NULL;
    fds_error err = {0};
    fds__utility_params p = smaller("knn:2@model");
    p.network = NULL;
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err, "network");
    p = smaller("knn:2@model");
    p.network = "fc:4,nonsense";
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err, "nonsense");
    p = smaller("knn:2@model");
    p.beta = 0;
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err,
                   "beta must be above 0 (got 0)");
    p = smaller("knn:2@model");
    p.train.optimizer = FDS_OPTIMIZER_SGD;
    p.train.lr = 1e30f;
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_DIVERGED, &err, "learning rate");
    assert_null(value);
    game_free(&g);
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    game g = game_vectors(5, 2, 3, 1);
    fds__utility_params p = smaller("knn:2@model");
    expect_failed_allocations_survived(&g, &p, 1);
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_are_those_of_the_features),
        cmocka_unit_test(one_layer_has_the_samples_as_features),
        cmocka_unit_test(the_recursion_holds_on_features),
        cmocka_unit_test(the_text_says_how_the_network_was_trained),
        cmocka_unit_test(wrong_networks_and_training_are_refused),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
