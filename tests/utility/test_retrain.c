/* SPDX-License-Identifier: Apache-2.0
 * Retraining: the answers are those of networks trained in the plain way, and a function of the
 * coalition alone. */
#include "utility_fixture.h"

enum { PLAYERS = 20, INPUTS = 17, CLASSES = 10 };

/* What fds_model_train makes of all the players' samples, in the way of a kind. */
static void service_answers(const game *g, const fds__utility_params *p, uint32_t epochs,
                            float *probs) {
    uint32_t index[128];
    size_t count = 0;
    for (size_t i = 0; i < fds_players_count(g->players); i++) {
        const uint32_t *own;
        size_t owned = fds_players_samples(g->players, i, &own);
        memcpy(index + count, own, owned * sizeof *own);
        count += owned;
    }
    fds__samples_sort(index, count);
    fds_train_params train = p->train;
    train.converge = epochs == 0;
    train.epochs = epochs ? epochs : 1000;
    train.lr = 0.01f; /* 10 times 0.001 */
    fds_model *model = NULL;
    fds_error err;
    expect_ok(fds_model_train(g->train, index, count, p->network, &train, NULL, &model, NULL, &err),
              &err);
    expect_ok(fds_model_predict(model, g->test, g->inputs, g->input_count, 2, probs, NULL, &err),
              &err);
    fds_model_free(model);
}

static void all_players_together_are_the_service_model(void **state) {
    (void)state;
    game g = game_digits(PLAYERS, INPUTS);
    float got[INPUTS * CLASSES], wanted[INPUTS * CLASSES];
    const struct {
        const char *kind;
        uint32_t epochs;
    } cases[] = {{"retrain", 0}, {"retrain:1", 1}, {"retrain:7", 7}};
    const char *const networks[] = {"maxpool:4,fc:8,relu,fc:classes",
                                    "conv:2x5,relu,maxpool:4,fc:classes"};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t n = 0; n < COUNT(networks); n++) {
            fds__utility_params p = small(cases[i].kind);
            p.network = networks[n];
            fds_utility *value = make_value(&g, &p, 1);
            eval(value, 0, everyone(&g), got);
            service_answers(&g, &p, cases[i].epochs, wanted);
            assert_memory_equal(got, wanted, sizeof got);
            fds_utility_free(value);
        }
    game_free(&g);
}

/* Providers own several samples each, in an order that is not that of the samples. */
static void all_providers_together_are_the_service_model(void **state) {
    (void)state;
    game g = game_providers(30, 5, 3, 4);
    assert_int_equal(fds_players_count(g.players), 3);
    fds__utility_params p = smaller("retrain:5");
    fds_utility *value = make_value(&g, &p, 1);
    float got[5 * 3], wanted[5 * 3];
    eval(value, 0, 7, got);
    service_answers(&g, &p, 5, wanted);
    assert_memory_equal(got, wanted, sizeof got);
    fds_utility_free(value);
    game_free(&g);
}

/* A channel without spread among the players' samples has some among the inputs. */
static void a_constant_channel_is_treated_as_the_service_model_does(void **state) {
    (void)state;
    float values[8 * 3];
    const uint16_t labels[8] = {0, 1, 2, 0, 1, 2, 0, 1};
    game g = game_vectors(8, 5, 3, 2);
    fds_error err;
    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = i % 3 == 1 ? 7.0f : (float)(i * i % 11);
    fds_dataset_free(g.train);
    expect_ok(
        fds__dataset_create(8, (fds_shape){3, 1, 1}, NULL, values, labels, 3, NULL, &g.train, &err),
        &err);
    fds__utility_params p = smaller("retrain:5");
    fds_utility *value = make_value(&g, &p, 1);
    float got[5 * 3], wanted[5 * 3];
    eval(value, 0, everyone(&g), got);
    service_answers(&g, &p, 5, wanted);
    assert_memory_equal(got, wanted, sizeof got);
    fds_utility_free(value);
    game_free(&g);
}

/* Any coalition: its members' samples, normalised as those of all players are, trained on a lane
 * from the common initial weights. No players: those weights as they are. */
static void a_coalition_is_a_network_trained_on_its_samples(void **state) {
    (void)state;
    game g = game_providers(30, 5, 3, 4);
    fds__utility_params p = smaller("retrain:5");
    fds_utility *value = make_value(&g, &p, 1);
    float mean[3], std[3], got[5 * 3], wanted[5 * 3], weights[5 * 3 + 5 + 3 * 5 + 3];
    fds_error err;
    fds_net *net = NULL;
    fds_lane *lane = NULL;
    fds_inputs *samples = NULL, *inputs = NULL;
    expect_ok(fds_dataset_stats(g.train, NULL, 30, NULL, NULL, mean, std, &err), &err);
    expect_ok(fds_inputs_create(g.train, NULL, 30, mean, std, &samples, &err), &err);
    expect_ok(fds_inputs_create(g.test, g.inputs, 5, mean, std, &inputs, &err), &err);
    expect_ok(fds_net_create(p.network, (fds_shape){3, 1, 1}, 3, &net, &err), &err);
    expect_ok(fds_lane_create(net, &lane, &err), &err);
    assert_int_equal(fds_net_weights(net), COUNT(weights));
    fds_train_params train = p.train;
    train.epochs = 5;
    train.lr = 0.01f;
    for (uint64_t s = 0; s < 8; s++) {
        uint32_t members[30];
        size_t count = 0;
        for (size_t i = 3; i-- > 0;) { /* in an order of their own */
            const uint32_t *own;
            size_t owned = fds_players_samples(g.players, i, &own);
            for (size_t j = 0; j < owned && s >> i & 1; j++)
                members[count++] = own[j];
        }
        fds_net_init(net, p.train.seed, weights);
        expect_ok(fds_lane_train(lane, samples, members, count, &train, weights, NULL, NULL, &err),
                  &err);
        expect_ok(fds_lane_predict(lane, inputs, 0, 5, weights, wanted, &err), &err);
        eval(value, 0, s, got);
        assert_memory_equal(got, wanted, sizeof got);
    }
    fds_lane_free(lane);
    fds_inputs_free(samples);
    fds_inputs_free(inputs);
    fds_net_free(net);
    fds_utility_free(value);
    game_free(&g);
}

/* ---- a function of the coalition alone ---- */

enum { ASKED = 24 };

static uint64_t coalition_of(size_t i) {
    fds_rng rng = fds_rng_make(3, 2002, i, 0);
    return i == 0 ? 0 : fds_rng_below(&rng, 1u << PLAYERS);
}

typedef struct {
    const fds_utility *value;
    float (*probs)[INPUTS * CLASSES];
} asking;

static fds_status ask(void *context, size_t job, unsigned worker, fds_error *err) {
    asking *a = context;
    uint64_t s = coalition_of(job);
    return fds_utility_eval(a->value, worker, &s, a->probs[job], err);
}

static void expect_function_of_the_coalition(const char *network) {
    game g = game_digits(PLAYERS, INPUTS);
    fds__utility_params p = small("retrain:3");
    p.network = network ? network : p.network;
    static float first[ASKED][INPUTS * CLASSES], again[ASKED][INPUTS * CLASSES];
    fds_utility *value = make_value(&g, &p, 3), *other = make_value(&g, &p, 1);
    for (size_t i = 0; i < ASKED; i++)
        eval(value, 0, coalition_of(i), first[i]);
    for (size_t i = ASKED; i-- > 0;) /* in another order, on other workers */
        eval(value, i % 3, coalition_of(i), again[i]);
    assert_memory_equal(first, again, sizeof first);
    memset(again, 0, sizeof again);
    asking a = {value, again};
    fds_error err;
    expect_ok(fds__pool_run(3, ASKED, ask, &a, "", "", NULL, &err), &err); /* side by side */
    assert_memory_equal(first, again, sizeof first);
    for (size_t i = 0; i < ASKED; i++) /* from another one of the same text */
        eval(other, 0, coalition_of(i), again[i]);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first[1], first[2], sizeof first[1]);
    fds_utility_free(value);
    fds_utility_free(other);
    game_free(&g);
}

static void the_answer_depends_on_the_coalition_alone(void **state) {
    (void)state;
    expect_function_of_the_coalition(NULL);
}

static void so_it_does_with_batchnorm_and_dropout(void **state) {
    (void)state;
    expect_function_of_the_coalition("conv:3x3p1s2,batchnorm,relu,residual(conv:3x3p1,batchnorm),"
                                     "avgpool,dropout:0.25,fc:classes");
}

/* Nor on the order in which the players are named. */
static void the_order_of_the_players_does_not_matter(void **state) {
    (void)state;
    expect_no_order_of_players("retrain:3", 6);
}

/* ---- trouble ---- */

static void divergence_names_the_coalition(void **state) {
    (void)state;
    game g = game_digits(PLAYERS, INPUTS);
    fds__utility_params p = small("retrain:3");
    p.train.optimizer = FDS_OPTIMIZER_SGD;
    p.train.lr = 1e30f;
    p.beta = 1;
    fds_utility *value = make_value(&g, &p, 1);
    float probs[INPUTS * CLASSES];
    fds_error err = {0};
    uint64_t few = 6, many = everyone(&g), none = 0;
    char wanted[256];
    snprintf(wanted, sizeof wanted,
             "the coalition of 2 players (%s, %s): ", fds_players_name(g.players, 1),
             fds_players_name(g.players, 2));
    expect_failure(fds_utility_eval(value, 0, &few, probs, &err), FDS_ERR_DIVERGED, &err, wanted);
    expect_in(err.text, "try a learning rate below");
    snprintf(wanted, sizeof wanted,
             "the coalition of 20 players (%s, %s, %s, ...): ", fds_players_name(g.players, 0),
             fds_players_name(g.players, 1), fds_players_name(g.players, 2));
    expect_failure(fds_utility_eval(value, 0, &many, probs, &err), FDS_ERR_DIVERGED, &err, wanted);
    assert_int_equal(fds_utility_eval(value, 0, &many, probs, NULL), FDS_ERR_DIVERGED);
    expect_ok(fds_utility_eval(value, 0, &none, probs, &err), &err); /* and harms no later answer */
    fds_utility_free(value);
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_players_together_are_the_service_model),
        cmocka_unit_test(a_constant_channel_is_treated_as_the_service_model_does),
        IN_SCRATCH(all_providers_together_are_the_service_model),
        IN_SCRATCH(a_coalition_is_a_network_trained_on_its_samples),
        cmocka_unit_test(the_answer_depends_on_the_coalition_alone),
        cmocka_unit_test(so_it_does_with_batchnorm_and_dropout),
        cmocka_unit_test(the_order_of_the_players_does_not_matter),
        cmocka_unit_test(divergence_names_the_coalition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
