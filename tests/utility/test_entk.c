/* SPDX-License-Identifier: Apache-2.0
 * "entk" and "entk:K": the kernel is that of the right network, the answers solve the regression,
 * and samples that are alike do no harm. */
#include "utility_fixture.h"

enum { PLAYERS = 20, INPUTS = 10, CLASSES = 10 };

static void nobody_knows_nothing(void **state) {
    (void)state;
    expect_nobody_to_know("entk");
}

/* ---- the kernel ---- */

static void expect_kernel(const fds_utility *value, const fds_net *net, const float *weights) {
    const fds__regression *r = fds__utility_regression(value);
    float between[PLAYERS * PLAYERS], inputs[PLAYERS * INPUTS];
    fds_error err;
    assert_non_null(r);
    expect_ok(
        fds__net_tangent(net, weights, r->data->samples, r->data->samples, 1, between, NULL, &err),
        &err);
    expect_ok(
        fds__net_tangent(net, weights, r->data->samples, r->data->inputs, 1, inputs, NULL, &err),
        &err);
    for (size_t i = 0; i < PLAYERS * PLAYERS; i++)
        assert_true(r->between[i] == (double)between[i]);
    for (size_t i = 0; i < PLAYERS * INPUTS; i++)
        assert_true(r->inputs[i % INPUTS * PLAYERS + i / INPUTS] == (double)inputs[i]);
}

static fds_status take_weights(void *context, unsigned worker, const uint64_t *coalition,
                               const float *weights, fds_error *err) {
    (void)worker, (void)coalition, (void)err;
    float **out = context;
    memcpy(out[0], weights, (size_t)(out[1] - out[0]) * sizeof *weights);
    return FDS_OK;
}

static void the_kernel_is_the_networks(void **state) {
    (void)state;
    game g = game_digits(PLAYERS, INPUTS);
    fds__utility_params p = small("entk");
    fds_utility *value = make_value(&g, &p, 2);
    fds_net *net = NULL;
    fds_error err;
    expect_ok(fds_net_create(p.network, (fds_shape){1, 28, 28}, CLASSES, &net, &err), &err);
    float *weights = need(fds_net_weights(net), sizeof *weights);
    fds_net_init(net, p.train.seed, weights);
    expect_kernel(value, net, weights);
    fds_utility_free(value);

    p.kind = "retrain:3"; /* what everyone's network is there, "entk:3" must have as well */
    fds_utility *retrain = make_value(&g, &p, 1);
    float *ends[] = {weights, weights + fds_net_weights(net)}, probs[INPUTS * CLASSES];
    fds__sink sink = {take_weights, ends};
    fds__utility_set_sink(retrain, &sink);
    eval(retrain, 0, everyone(&g), probs);
    assert_null(fds__utility_regression(retrain));
    p.kind = "entk:3";
    value = make_value(&g, &p, 2);
    expect_kernel(value, net, weights);
    fds_utility_free(value);
    fds_utility_free(retrain);
    free(weights);
    fds_net_free(net);
    game_free(&g);
}

/* ---- the regression ---- */

/* Whether U solves (K_SS + 1e-6 I) B = Y and the answers are the softmax of K_xS B, with B found by
 * steps of conjugate gradients: another way than the one tested. */
static void expect_solved(const fds_utility *value, uint64_t coalition) {
    const fds__regression *r = fds__utility_regression(value);
    uint32_t members[PLAYERS];
    size_t n = fds__utility_members(r->data, &coalition, members);
    double scores[INPUTS][CLASSES] = {{0}};
    float probs[INPUTS * CLASSES];
    for (size_t c = 0; c < CLASSES; c++) {
        double b[PLAYERS] = {0}, rest[PLAYERS], step[PLAYERS], square = 0;
        for (size_t i = 0; i < n; i++) {
            step[i] = rest[i] = r->data->samples->labels[members[i]] == c ? 1.0 : 0.0;
            square += rest[i] * rest[i];
        }
        for (int turn = 0; turn < 2000 && square > 1e-26; turn++) {
            double moved[PLAYERS], along = 0, before = square;
            for (size_t i = 0; i < n; i++) {
                moved[i] = 1e-6 * step[i];
                for (size_t j = 0; j < n; j++)
                    moved[i] += r->between[members[i] * PLAYERS + members[j]] * step[j];
                along += moved[i] * step[i];
            }
            square = 0;
            for (size_t i = 0; i < n; i++) {
                b[i] += before / along * step[i];
                rest[i] -= before / along * moved[i];
                square += rest[i] * rest[i];
            }
            for (size_t i = 0; i < n; i++)
                step[i] = rest[i] + square / before * step[i];
        }
        for (size_t x = 0; x < INPUTS; x++)
            for (size_t i = 0; i < n; i++)
                scores[x][c] += r->inputs[x * PLAYERS + members[i]] * b[i];
    }
    eval(value, 0, coalition, probs);
    for (size_t x = 0; x < INPUTS; x++) {
        double sum = 0;
        for (size_t c = 0; c < CLASSES; c++)
            sum += exp(scores[x][c]);
        for (size_t c = 0; c < CLASSES; c++)
            assert_true(fabs((double)probs[x * CLASSES + c] - exp(scores[x][c]) / sum) < 1e-6);
    }
}

static void the_answers_solve_the_regression(void **state) {
    (void)state;
    game g = game_digits(PLAYERS, INPUTS);
    static const char *const both[] = {"entk", "entk:2"};
    for (size_t k = 0; k < COUNT(both); k++) {
        fds__utility_params p = small(both[k]);
        fds_utility *value = make_value(&g, &p, 1);
        expect_solved(value, everyone(&g));
        for (uint64_t trial = 0; trial < 6; trial++) {
            fds_rng rng = fds_rng_make(2, 2014, trial, 0);
            expect_solved(value, fds_rng_below(&rng, 1u << PLAYERS));
        }
        fds_utility_free(value);
    }
    game_free(&g);
}

static void the_order_of_the_players_does_not_matter(void **state) {
    (void)state;
    expect_no_order_of_players("entk", 20);
}

/* Vectors of three numbers have many twins, with labels that contradict each other, and the
 * kernel of a network of one layer has no rank above 4: but for the ridge nothing could be solved,
 * and the kernel's own rounding is of the ridge's size. */
static void what_cannot_be_told_apart_is_no_trouble(void **state) {
    (void)state;
    static const char *const networks[] = {"fc:5,relu,fc:classes", "logistic"};
    game g = game_vectors(40, 8, 3, 4);
    for (size_t k = 0; k < COUNT(networks); k++) {
        fds__utility_params p = smaller("entk");
        p.network = networks[k];
        fds_utility *value = make_value(&g, &p, 1);
        for (uint64_t trial = 0; trial < 50; trial++) {
            fds_rng rng = fds_rng_make(2, 2016, trial, 0);
            float probs[8 * 3];
            eval(value, 0, trial ? fds_rng_below(&rng, 1ull << 40) : everyone(&g), probs);
            for (size_t x = 0; x < 8; x++) {
                double sum = 0;
                for (size_t y = 0; y < 3; y++) {
                    assert_true(probs[x * 3 + y] >= 0 && probs[x * 3 + y] <= 1);
                    sum += (double)probs[x * 3 + y];
                }
                assert_true(fabs(sum - 1) < 1e-6);
            }
        }
        fds_utility_free(value);
    }
    game_free(&g);
}

/* Two numbers a sample, all samples nearly on three points: the kernel's rounding is far above the
 * ridge, and an unsteady factor would grow from row to row. */
static void the_ridge_is_above_the_rounding(void **state) {
    (void)state;
    enum { SAMPLES = 60 };
    float values[2 * SAMPLES], probs[SAMPLES * 3];
    uint16_t labels[SAMPLES];
    fds_error err;
    for (size_t i = 0; i < SAMPLES; i++) {
        labels[i] = (uint16_t)(i % 3);
        values[2 * i] = (float)labels[i] + (float)i / 1000;
        values[2 * i + 1] = -(float)labels[i] + (float)i / 700;
    }
    game g = {.input_count = 3};
    expect_ok(fds__dataset_create(SAMPLES, (fds_shape){2, 1, 1}, NULL, values, labels, 3, NULL,
                                  &g.train, &err),
              &err);
    expect_ok(
        fds__dataset_create(3, (fds_shape){2, 1, 1}, NULL, values, labels, 3, NULL, &g.test, &err),
        &err);
    expect_ok(fds_players_points(g.train, NULL, SAMPLES, &g.players, &err), &err);
    for (uint32_t i = 0; i < 3; i++)
        g.inputs[i] = i;
    fds__utility_params p = smaller("entk");
    p.network = "logistic";
    fds_utility *value = make_value(&g, &p, 1);
    assert_true(fds__utility_regression(value)->ridge > 1e-6);
    json_t *about = json_loads(fds_utility_get_info(value).text, 0, NULL);
    assert_true(json_real_value(json_object_get(about, "ridge")) ==
                fds__utility_regression(value)->ridge); /* the table records it */
    json_decref(about);
    eval(value, 0, everyone(&g), probs);
    for (size_t i = 0; i < 9; i++) /* scores near 0 and 1, not what rounding makes of them */
        assert_true(probs[i] > 0.1f && probs[i] < 0.9f);
    fds_utility_free(value);
    game_free(&g);
    g = game_digits(PLAYERS, INPUTS); /* where all samples differ, it is the authors' */
    p = small("entk");
    p.network = "lenet5";
    value = make_value(&g, &p, 1);
    assert_true(fds__utility_regression(value)->ridge == 1e-6);
    fds_utility_free(value);
    game_free(&g);
}

static void a_hundred_digits_teach_something(void **state) {
    (void)state;
    expect_digits_to_be_learnt("entk", "lenet5");
}

/* ---- parameters ---- */

static bool same_text(const game *g, const fds__utility_params *p, const fds__utility_params *q) {
    fds_utility *one = make_value(g, p, 1), *two = make_value(g, q, 1);
    bool same = strcmp(fds_utility_get_info(one).text, fds_utility_get_info(two).text) == 0;
    fds_utility_free(one);
    fds_utility_free(two);
    return same;
}

static void the_text_says_what_matters(void **state) {
    (void)state;
    game g = game_vectors(6, 2, 3, 1);
    static const char *const both[] = {"entk", "entk:2"};
    for (size_t k = 0; k < COUNT(both); k++) {
        fds__utility_params p = smaller(both[k]), q = p;
        q.train.seed++;
        assert_false(same_text(&g, &p, &q));
        q = p;
        q.network = "fc:6,relu,fc:classes";
        assert_false(same_text(&g, &p, &q));
        q = p;
        q.train.lr *= 2;
        q.train.batch = 3;
        assert_true(same_text(&g, &p, &q) == (k == 0)); /* nothing is trained there */
        q.kind = "entk:3";
        assert_false(same_text(&g, &p, &q));
    }
    game_free(&g);
}

static void wrong_parameters_are_refused(void **state) {
    (void)state;
    game g = game_vectors(6, 2, 3, 1);
    fds_utility *value = NULL;
    fds_error err = {0};
    fds__utility_params p = smaller("entk");
    p.network = NULL;
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err, "takes a network");
    p.network = "nonsense";
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err, "nonsense");
    p = smaller("entk:0");
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err, "from 1 to");
    p = smaller("entk:2");
    p.beta = 0;
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err,
                   "beta must be above 0 (got 0)");
    fds_train_params train;
    expect_ok(fds__utility_training(&p, &train, &err), &err);
    assert_int_equal(train.epochs, 2);
    p.kind = "entk";
    expect_ok(fds__utility_training(&p, &train, &err), &err);
    assert_true(train.epochs == 10 && !train.converge);
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_knows_nothing),
        cmocka_unit_test(the_kernel_is_the_networks),
        cmocka_unit_test(the_answers_solve_the_regression),
        cmocka_unit_test(the_order_of_the_players_does_not_matter),
        cmocka_unit_test(what_cannot_be_told_apart_is_no_trouble),
        cmocka_unit_test(the_ridge_is_above_the_rounding),
        cmocka_unit_test(a_hundred_digits_teach_something),
        cmocka_unit_test(the_text_says_what_matters),
        cmocka_unit_test(wrong_parameters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
