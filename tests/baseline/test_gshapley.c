/* SPDX-License-Identifier: Apache-2.0
 * G-Shapley against a plain loop over the engine: the search for a learning rate, the walks, and
 * data of every odd kind. */
#include "game_problem.h"

enum { RATES = 8, TRIES = 10, MOST_PLAYERS = 64, MOST_INPUTS = 64, MOST_CLASSES = 10 };

static const fds__scorer scorers[] = {FDS__SCORER_ACCURACY, FDS__SCORER_CONFIDENCE,
                                      FDS__SCORER_CROSS_ENTROPY, FDS__SCORER_EACH_SAMPLE};

/* ---- running it ---- */

/* One call and what comes of it. */
typedef struct {
    size_t players, columns;
    uint32_t labels[MOST_INPUTS];
    double values[MOST_PLAYERS * MOST_INPUTS], errors[MOST_PLAYERS * MOST_INPUTS];
    fds__baseline_report report;
} outcome;

static fds_params walks(fds__scorer scorer, size_t permutations) {
    return (fds_params){.method = "gshapley",
                        .scorer = scorer,
                        .permutations = permutations,
                        .seed = 4,
                        .threads = 1};
}

static fds_status try_gshapley(const game *g, const fds__utility_params *value,
                               const fds_params *params, outcome *o, fds_error *err) {
    fds__dataset_info test = fds__dataset_get_info(g->test);
    *o = (outcome){.players = fds_players_count(g->players)};
    o->columns = params->scorer == FDS__SCORER_EACH_SAMPLE ? g->input_count : 1;
    for (size_t i = 0; i < g->input_count; i++)
        o->labels[i] = test.labels[g->inputs[i]];
    const fds_problem problem = game_problem(g);
    fds__baseline_data data = {.problem = &problem, .labels = o->labels, .utility = value};
    baseline_job job = {.params = params,
                        .data = &data,
                        .classes = fds__dataset_get_info(g->train).classes,
                        .players = o->players,
                        .columns = o->columns,
                        .values = o->values,
                        .errors = o->errors,
                        .report = &o->report};
    return run_job(&baseline_gshapley, &job, err);
}

static outcome *gshapley(const game *g, const fds__utility_params *value,
                         const fds_params *params) {
    outcome *o = need(1, sizeof *o);
    fds_error err;
    expect_ok(try_gshapley(g, value, params, o, &err), &err);
    return o;
}

/* ---- the same as a plain loop ---- */

typedef struct {
    fds_net *net;
    fds_lane *lane;
    fds_inputs *samples,
        *inputs; /* samples: all of the training set, so that positions are numbers */
    float *start, *weights;
    uint32_t classes;
    fds__scorer scorer;
} plain;

static plain plain_make(const game *g, const fds__utility_params *value, fds__scorer scorer) {
    plain p = {.classes = fds__dataset_get_info(g->train).classes, .scorer = scorer};
    uint32_t index[4 * MOST_PLAYERS];
    size_t count = 0;
    float mean[64], std[64];
    fds_error err;
    fds_shape shape = fds__dataset_get_info(g->train).shape;
    for (size_t i = 0; i < fds_players_count(g->players); i++) {
        const uint32_t *own;
        size_t owned = fds_players_samples(g->players, i, &own);
        memcpy(index + count, own, owned * sizeof *own);
        count += owned;
    }
    expect_ok(fds_dataset_stats(g->train, index, count, NULL, NULL, mean, std, &err), &err);
    for (uint32_t c = 0; c < shape.channels; c++)
        std[c] = std[c] > 0 ? std[c] : 1;
    expect_ok(fds_inputs_create(g->train, NULL, fds__dataset_get_info(g->train).count, mean, std,
                                &p.samples, &err),
              &err);
    expect_ok(fds_inputs_create(g->test, g->inputs, g->input_count, mean, std, &p.inputs, &err),
              &err);
    expect_ok(fds_net_create(value->network, shape, p.classes, &p.net, &err), &err);
    expect_ok(fds_lane_create(p.net, &p.lane, &err), &err);
    p.start = need(fds_net_weights(p.net), sizeof *p.start);
    p.weights = need(fds_net_weights(p.net), sizeof *p.weights);
    fds_net_init(p.net, value->train.seed, p.start);
    return p;
}

static void plain_free(plain *p) {
    fds_inputs_free(p->samples);
    fds_inputs_free(p->inputs);
    fds_lane_free(p->lane);
    fds_net_free(p->net);
    free(p->start);
    free(p->weights);
}

static void restart(plain *p) {
    memcpy(p->weights, p->start, fds_net_weights(p->net) * sizeof *p->weights);
}

static fds_status plain_step(plain *p, const game *g, uint32_t player, double lr) {
    const uint32_t *own;
    size_t count = fds_players_samples(g->players, player, &own);
    fds_train_params train = fds_train_params_default();
    train.optimizer = FDS_OPTIMIZER_SGD;
    train.lr = (float)lr;
    train.epochs = 1;
    train.batch = (uint32_t)count;
    return fds_lane_train(p->lane, p->samples, own, count, &train, p->weights, NULL, NULL, NULL);
}

/* scores (columns), written from the definitions in fds.h. */
static fds_status plain_score(plain *p, const uint32_t *labels, double *scores) {
    float probs[MOST_INPUTS * MOST_CLASSES];
    const size_t inputs = fds_inputs_count(p->inputs);
    fds_status status = fds_lane_predict(p->lane, p->inputs, 0, inputs, p->weights, probs, NULL);
    double sum = 0;
    for (size_t i = 0; status == FDS_OK && i < inputs; i++) {
        const float *x = probs + i * p->classes;
        bool is_likeliest = true;
        for (uint32_t y = 0; y < p->classes; y++)
            is_likeliest &= y < labels[i] ? x[y] < x[labels[i]] : x[y] <= x[labels[i]];
        double own = (double)x[labels[i]];
        if (p->scorer == FDS__SCORER_EACH_SAMPLE)
            scores[i] = own;
        sum += p->scorer == FDS__SCORER_ACCURACY        ? is_likeliest
               : p->scorer == FDS__SCORER_CROSS_ENTROPY ? log(own > 1e-12 ? own : 1e-12)
                                                        : own;
    }
    if (p->scorer != FDS__SCORER_EACH_SAMPLE)
        scores[0] = sum / (double)inputs;
    return status;
}

/* Mean minus standard deviation at the end of TRIES epochs; NaN: one of them diverged. */
static double plain_grade(plain *p, const game *g, const outcome *o, uint64_t seed, double lr) {
    double sum = 0, squares = 0;
    for (uint64_t run = 0; run < TRIES; run++) {
        uint32_t order[MOST_PLAYERS];
        double scores[MOST_INPUTS], score = 0;
        baseline_permutation(seed, ((uint64_t)1 << 63) + run, o->players, order);
        restart(p);
        for (size_t j = 0; j < o->players; j++)
            if (plain_step(p, g, order[j], lr) != FDS_OK)
                return NAN;
        if (plain_score(p, o->labels, scores) != FDS_OK)
            return NAN;
        for (size_t c = 0; c < o->columns; c++)
            score += scores[c] / (double)o->columns;
        sum += score;
        squares += score * score;
    }
    double mean = sum / TRIES;
    return mean - sqrt(fmax(squares / TRIES - mean * mean, 0));
}

/* How much worse than the best of all rates the one is that was found. */
static double regret(plain *p, const game *g, const outcome *o, uint64_t seed) {
    double best = -INFINITY, of_found = NAN;
    for (int r = 0; r < RATES; r++) {
        double lr = pow(10, -1 - r / 2.0), found = plain_grade(p, g, o, seed, lr);
        best = found > best ? found : best;
        if (fabs(o->report.lr / lr - 1) < 1e-6)
            of_found = found;
    }
    return best - of_found;
}

/* values (players, columns): the mean over the permutations of what each step changes. */
static void plain_values(plain *p, const game *g, const outcome *o, uint64_t seed, double *values) {
    memset(values, 0, o->players * o->columns * sizeof *values);
    for (uint64_t t = 0; t < o->report.permutations; t++) {
        uint32_t order[MOST_PLAYERS];
        double before[MOST_INPUTS], after[MOST_INPUTS];
        baseline_permutation(seed, t, o->players, order);
        restart(p);
        assert_int_equal(plain_score(p, o->labels, before), FDS_OK);
        for (size_t j = 0; j < o->players; j++) {
            assert_int_equal(plain_step(p, g, order[j], o->report.lr), FDS_OK);
            assert_int_equal(plain_score(p, o->labels, after), FDS_OK);
            for (size_t c = 0; c < o->columns; c++)
                values[order[j] * o->columns + c] +=
                    (after[c] - before[c]) / (double)o->report.permutations;
            memcpy(before, after, sizeof before);
        }
    }
}

static void expect_plain(const game *g, const fds__utility_params *value, fds__scorer scorer,
                         size_t permutations) {
    fds_params params = walks(scorer, permutations);
    outcome *o = gshapley(g, value, &params);
    plain p = plain_make(g, value, scorer);
    double *wanted = need(o->players * o->columns, sizeof *wanted);
    assert_int_equal(o->report.permutations, permutations);
    assert_int_equal(o->report.asked, permutations * o->players);
    assert_int_equal(o->report.trained, 0);
    assert_true(o->report.truncated == 0);
    double worse = regret(&p, g, o, params.seed);
    if (!(worse < 1e-9))
        fail_msg("scorer %d: learning rate %g is worse than the best by %g", (int)scorer,
                 o->report.lr, worse);
    plain_values(&p, g, o, params.seed, wanted);
    for (size_t i = 0; i < o->players * o->columns; i++)
        if (!(fabs(o->values[i] - wanted[i]) < 1e-9))
            fail_msg("scorer %d: value %zu is %g, not %g", (int)scorer, i, o->values[i], wanted[i]);
    free(wanted);
    free(o);
    plain_free(&p);
}

static void values_are_those_of_a_plain_loop(void **state) {
    (void)state;
    game g = game_digits(12, 20);
    fds__utility_params value = small("retrain:3");
    for (size_t i = 0; i < COUNT(scorers); i++)
        expect_plain(&g, &value, scorers[i], 7);
    game_free(&g);
}

static void a_convolution_changes_nothing_about_that(void **state) {
    (void)state;
    game g = game_digits(10, 10);
    fds__utility_params value = small("retrain:3");
    value.network = "conv:2x5,relu,maxpool:4,fc:classes";
    expect_plain(&g, &value, FDS__SCORER_CONFIDENCE, 3);
    game_free(&g);
}

/* The kind of utility function does not matter, only its network and seed. */
static void the_network_alone_is_taken_from_the_utility_function(void **state) {
    (void)state;
    game g = game_vectors(9, 8, 3, 2);
    fds_params params = walks(FDS__SCORER_CONFIDENCE, 5);
    fds__utility_params a = smaller("retrain:3"), b = smaller("kernel"), c = a;
    b.train.lr = -1;
    b.beta = 0;
    c.train.seed++;
    outcome *one = gshapley(&g, &a, &params), *same = gshapley(&g, &b, &params),
            *other = gshapley(&g, &c, &params);
    assert_memory_equal(one->values, same->values, sizeof one->values);
    assert_memory_not_equal(one->values, other->values, sizeof one->values);
    free(one);
    free(same);
    free(other);
    game_free(&g);
}

/* ---- threads ---- */

static void bits_do_not_depend_on_threads(void **state) {
    (void)state;
    game g = game_digits(15, 12);
    fds__utility_params value = small("retrain:3");
    for (size_t i = 0; i < COUNT(scorers); i += 3) {
        fds_params params = walks(scorers[i], IS_SLOW_BUILD ? 20 : 60);
        outcome *one = gshapley(&g, &value, &params);
        const unsigned threads[] = {2, 3, 0};
        for (size_t t = 0; t < COUNT(threads); t++) {
            params.threads = threads[t];
            outcome *many = gshapley(&g, &value, &params);
            assert_memory_equal(one->values, many->values, sizeof one->values);
            assert_memory_equal(one->errors, many->errors, sizeof one->errors);
            assert_true(one->report.lr == many->report.lr);
            free(many);
        }
        params.seed++;
        outcome *other = gshapley(&g, &value, &params);
        assert_memory_not_equal(one->values, other->values, sizeof one->values);
        free(one);
        free(other);
    }
    game_free(&g);
}

/* ---- players and data of every kind ---- */

/* In every order its marginal is the same: that of the one step there is. */
static void one_player_gets_all(void **state) {
    (void)state;
    game g = game_vectors(1, 6, 3, 2);
    fds__utility_params value = smaller("retrain:3");
    expect_plain(&g, &value, FDS__SCORER_CONFIDENCE, 3);
    fds_params params = walks(FDS__SCORER_CONFIDENCE, 5);
    outcome *o = gshapley(&g, &value, &params);
    assert_true(o->values[0] != 0 && o->errors[0] == 0);
    free(o);
    game_free(&g);
}

/* A provider's samples are one mini-batch, also when there are more than 16 of them. */
static void a_players_samples_are_one_step(void **state) {
    (void)state;
    game g = game_providers(64, 9, 3, 4);
    fds__utility_params value = smaller("retrain:3");
    const uint32_t *own;
    size_t most = 0;
    assert_int_equal(fds_players_count(g.players), 3);
    for (size_t i = 0; i < 3; i++)
        most = MAX(most, fds_players_samples(g.players, i, &own));
    assert_true(most > 16);
    expect_plain(&g, &value, FDS__SCORER_CROSS_ENTROPY, 6);
    expect_plain(&g, &value, FDS__SCORER_EACH_SAMPLE, 6);
    game_free(&g);
}

/* 40 vectors of three numbers from 0 to 2: most of them occur twice. */
static void duplicates_do_no_harm(void **state) {
    (void)state;
    game g = game_vectors(40, 10, 2, 6);
    fds__utility_params value = smaller("retrain:3");
    expect_plain(&g, &value, FDS__SCORER_CONFIDENCE, 4);
    game_free(&g);
}

/* Where there is one class, every network is right at once, and no player adds anything. */
static void with_one_class_all_are_worth_nothing(void **state) {
    (void)state;
    game g = game_vectors(5, 4, 1, 2);
    fds__utility_params value = smaller("retrain:3");
    for (size_t i = 0; i < COUNT(scorers); i++) {
        fds_params params = walks(scorers[i], 3);
        outcome *o = gshapley(&g, &value, &params);
        for (size_t k = 0; k < o->players * o->columns; k++)
            assert_true(o->values[k] == 0 && o->errors[k] == 0);
        assert_true(o->report.lr == 0.1); /* the largest of equal rates */
        free(o);
    }
    game_free(&g);
}

/* Players of classes 0 and 1 only, inputs of a third. */
static void a_class_that_no_player_has_is_answered(void **state) {
    (void)state;
    const float x[] = {0, 1, 2, 3, 4, 5};
    const uint16_t labels[] = {0, 1, 0, 1, 2, 2};
    const uint32_t players[] = {0, 1, 2, 3};
    game g = {.input_count = 2, .inputs = {4, 5}};
    fds_error err;
    for (int i = 0; i < 2; i++)
        expect_ok(fds__dataset_create(6, (fds_shape){1, 1, 1}, NULL, x, labels, 3, NULL,
                                      i ? &g.test : &g.train, &err),
                  &err);
    expect_ok(fds_players_points(g.train, players, 4, &g.players, &err), &err);
    fds__utility_params value = smaller("retrain:3");
    expect_plain(&g, &value, FDS__SCORER_CONFIDENCE, 5);
    fds_params params = walks(FDS__SCORER_CONFIDENCE, 5);
    outcome *o = gshapley(&g, &value, &params);
    double sum = 0;
    for (size_t i = 0; i < 4; i++)
        sum += o->values[i];
    assert_true(sum < 0); /* to learn other labels costs the missing one */
    free(o);
    game_free(&g);
}

/* ---- the search ---- */

/* Two clouds of points of two numbers, side by side; far: how far away the first input is put. */
static game game_clouds(size_t players, size_t inputs, float far) {
    game g = {.input_count = inputs};
    float x[2 * 64];
    uint16_t labels[64];
    fds_error err;
    for (int part = 0; part < 2; part++) {
        size_t count = part ? inputs : players;
        fds_rng rng = fds_rng_make(11, 2002, (uint64_t)part, 0);
        for (size_t i = 0; i < count; i++) {
            labels[i] = i % 2;
            x[2 * i] = (float)(fds_rng_normal(&rng) * 0.3 + (i % 2 ? 1 : -1));
            x[2 * i + 1] = (float)fds_rng_normal(&rng);
        }
        if (part && far > 0)
            x[0] = -far;
        expect_ok(fds__dataset_create(count, (fds_shape){2, 1, 1}, NULL, x, labels, 2, NULL,
                                      part ? &g.test : &g.train, &err),
                  &err);
    }
    expect_ok(fds_players_points(g.train, NULL, players, &g.players, &err), &err);
    for (size_t i = 0; i < inputs; i++)
        g.inputs[i] = (uint32_t)i;
    return g;
}

/* One epoch at the rate found must separate what is easily separated. */
static void the_search_finds_a_rate_that_learns(void **state) {
    (void)state;
    game g = game_clouds(40, 50, 0);
    fds__utility_params value = smaller("retrain:3");
    for (size_t i = 0; i < 3; i++) {
        fds_params params = walks(scorers[i], 10);
        outcome *o = gshapley(&g, &value, &params);
        plain p = plain_make(&g, &value, FDS__SCORER_ACCURACY);
        double right = 0, scores;
        for (uint64_t t = 0; t < 10; t++) {
            uint32_t order[40];
            baseline_permutation(77, t, 40, order);
            restart(&p);
            for (size_t j = 0; j < 40; j++)
                assert_int_equal(plain_step(&p, &g, order[j], o->report.lr), FDS_OK);
            assert_int_equal(plain_score(&p, o->labels, &scores), FDS_OK);
            right += scores / 10;
        }
        if (!(right > 0.95))
            fail_msg("scorer %d: %g right at %g", (int)scorers[i], right, o->report.lr);
        assert_true(o->report.lr > 0.005);
        expect_plain(&g, &value, scorers[i], 3);
        plain_free(&p);
        free(o);
    }
    game_free(&g);
}

/* An input so far away that a network which has learnt much overflows on it. */
static void rates_at_which_the_network_diverges_are_out(void **state) {
    (void)state;
    game g = game_clouds(40, 10, 3.3e38f);
    fds__utility_params value = smaller("retrain:3");
    value.network = "logistic";
    plain p = plain_make(&g, &value, FDS__SCORER_CONFIDENCE);
    fds_params params = walks(FDS__SCORER_CONFIDENCE, 3);
    outcome *o = gshapley(&g, &value, &params);
    assert_true(isnan(plain_grade(&p, &g, o, params.seed, 0.1)));
    assert_true(o->report.lr < 0.1);
    expect_plain(&g, &value, FDS__SCORER_CONFIDENCE, 3);
    free(o);
    plain_free(&p);
    game_free(&g);
}

/* ---- failures ---- */

static void a_network_that_cannot_answer_is_refused(void **state) {
    (void)state;
    game g = game_clouds(40, 4, 0);
    fds__utility_params value = smaller("retrain:3");
    fds_params params = walks(FDS__SCORER_ACCURACY, 3);
    outcome *o = need(1, sizeof *o);
    const float far[] = {2.9e38f, 2.9e38f};
    const uint16_t label = 0;
    fds_error err = {0};
    fds_dataset_free(g.test);
    g.input_count = 1;
    expect_ok(
        fds__dataset_create(1, (fds_shape){2, 1, 1}, NULL, far, &label, 2, NULL, &g.test, &err),
        &err);
    value.network = "fc:512,relu,fc:classes"; /* overflows before it has learnt anything */
    expect_failure(try_gshapley(&g, &value, &params, o, &err), FDS_ERR_DIVERGED, &err,
                   "input 0 (sample 0)");
    value.network = NULL;
    expect_failure(try_gshapley(&g, &value, &params, o, &err), FDS_ERR_USAGE, &err, "network");
    value.network = "nonsense";
    expect_failure(try_gshapley(&g, &value, &params, o, &err), FDS_ERR_USAGE, &err, "nonsense");
    free(o);
    game_free(&g);
}

static bool cancel(void *user, const fds_progress *progress) {
    (void)progress;
    return --*(int *)user < 0;
}

static void it_stops_when_asked(void **state) {
    (void)state;
    game g = game_vectors(5, 4, 2, 2);
    fds__utility_params value = smaller("retrain:3");
    fds_params params = walks(FDS__SCORER_CONFIDENCE, 200);
    const int calls[] = {0, 30, 81}; /* twice in the search, once in the walk */
    for (size_t i = 0; i < COUNT(calls); i++) {
        int left = calls[i];
        fds_events events = {.progress = cancel, .user = &left};
        double values[5], errors[5];
        uint32_t labels[4] = {0};
        fds__baseline_report report = {0};
        const fds_problem problem = game_problem(&g);
        fds__baseline_data data = {.problem = &problem, .labels = labels, .utility = &value};
        baseline_job job = {.params = &params,
                            .data = &data,
                            .classes = 2,
                            .players = 5,
                            .columns = 1,
                            .values = values,
                            .errors = errors,
                            .report = &report,
                            .events = &events};
        fds_error err = {0};
        assert_int_equal(run_job(&baseline_gshapley, &job, &err), FDS_ERR_CANCELLED);
    }
    game_free(&g);
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    game g = game_vectors(4, 3, 2, 2);
    fds__utility_params value = smaller("retrain:3");
    fds_params params = walks(FDS__SCORER_EACH_SAMPLE, 2);
    params.threads = 2;
    outcome *o = need(1, sizeof *o);
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    free(gshapley(&g, &value, &params));
    uint64_t calls = fds__fault_arm(FDS__FAULT_ALLOC, 0);
    assert_true(calls > 30);
    for (uint64_t n = 1; n <= calls; n++) {
        fds_error err = {0};
        fds__fault_arm(FDS__FAULT_ALLOC, n);
        fds_status status = try_gshapley(&g, &value, &params, o, &err);
        fds__fault_arm(FDS__FAULT_ALLOC, 0);
        assert_int_equal(status, FDS_ERR_NOMEM);
        assert_int_equal(err.status, FDS_ERR_NOMEM);
    }
    free(o);
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_a_plain_loop),
        cmocka_unit_test(a_convolution_changes_nothing_about_that),
        cmocka_unit_test(the_network_alone_is_taken_from_the_utility_function),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(one_player_gets_all),
        IN_SCRATCH(a_players_samples_are_one_step),
        cmocka_unit_test(duplicates_do_no_harm),
        cmocka_unit_test(with_one_class_all_are_worth_nothing),
        cmocka_unit_test(a_class_that_no_player_has_is_answered),
        cmocka_unit_test(the_search_finds_a_rate_that_learns),
        cmocka_unit_test(rates_at_which_the_network_diverges_are_out),
        cmocka_unit_test(a_network_that_cannot_answer_is_refused),
        cmocka_unit_test(it_stops_when_asked),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
