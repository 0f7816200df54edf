/* SPDX-License-Identifier: Apache-2.0
 * FreeShap: what a walk finds at each place is what the utility function "entk" answers for that
 * coalition, and the means go to the exact Shapley values of that game. */
#include "run_fixture.h"

/* ---- prefixes ---- */

/* Marginals of one order, from the answers of "entk" for its prefixes. */
static void marginals_of(const call *c, double *out) {
    const game *g = c->g;
    fds__utility_params p = c->value;
    if (strncmp(p.kind, "entk", 4) != 0)
        p.kind = "entk";
    fds_utility *value = make_value(g, &p, 1);
    fds__dataset_info test = fds__dataset_get_info(g->test);
    uint32_t order[MOST_PLAYERS], labels[MOST_INPUTS];
    float probs[MOST_INPUTS * 16];
    double doubles[MOST_INPUTS * 16], before[MOST_INPUTS], now[MOST_INPUTS];
    uint64_t coalition = 0;
    baseline_permutation(c->params.seed, 0, c->players, order);
    for (size_t i = 0; i < g->input_count; i++)
        labels[i] = test.labels[g->inputs[i]];
    for (size_t place = 0; place <= c->players; place++) {
        coalition |= place ? (uint64_t)1 << order[place - 1] : 0;
        eval(value, 0, coalition, probs);
        for (size_t i = 0; i < g->input_count * value->classes; i++)
            doubles[i] = (double)probs[i];
        baseline_score(c->params.scorer, doubles, labels, g->input_count, value->classes, now);
        if (!place && c->params.scorer == FDS__SCORER_ACCURACY)
            now[0] = 1.0 / value->classes; /* by chance, not what the lowest label is right in */
        for (size_t i = 0; place && i < c->columns; i++)
            out[order[place - 1] * c->columns + i] = now[i] - before[i];
        memcpy(before, now, sizeof now);
    }
    fds_utility_free(value);
}

static void expect_prefixes(const game *g, const char *kind) {
    static const fds__scorer scorers[] = {FDS__SCORER_ACCURACY, FDS__SCORER_CONFIDENCE,
                                          FDS__SCORER_CROSS_ENTROPY, FDS__SCORER_EACH_SAMPLE};
    for (size_t k = 0; k < COUNT(scorers); k++) {
        call c = call_of(g, kind, "freeshap", scorers[k]);
        double wanted[MOST_VALUES];
        c.params.permutations = 1;
        run_call(&c);
        marginals_of(&c, wanted);
        for (size_t i = 0; i < c.players * c.columns; i++)
            assert_true(fabs(c.values[i] - wanted[i]) < 1e-6); /* answers there are floats */
        assert_int_equal(c.report.permutations, 1);
        assert_int_equal(c.report.trained, 0);
        assert_int_equal(c.report.asked, c.players + 2); /* and everyone, beforehand */
        assert_true(c.report.truncated == 0);
    }
}

static void prefixes_are_worth_what_entk_says(void **state) {
    (void)state;
    game g = game_vectors(10, 7, 3, 11);
    expect_prefixes(&g, "retrain:10"); /* the network as it is initialised */
    expect_prefixes(&g, "entk:4");     /* the kind is the caller's */
    game_free(&g);
}

static void players_may_have_many_samples(void **state) {
    (void)state;
    game g = game_providers(30, 6, 3, 12);
    expect_prefixes(&g, "entk");
    game_free(&g);
}

/* In double precision, from the kernel itself: the values of a permutation in closed form. */
static void the_factor_grows_as_it_would_be_made_anew(void **state) {
    (void)state;
    enum { N = 6 };
    game g = game_vectors(N, 5, 3, 21);
    call c = call_of(&g, "entk", "freeshap", FDS__SCORER_EACH_SAMPLE);
    fds_utility *value = make_value(&g, &c.value, 1);
    const fds__regression *r = fds__utility_regression(value);
    uint32_t order[N];
    c.params.permutations = 1;
    run_call(&c);
    baseline_permutation(c.params.seed, 0, N, order);
    double before[5] = {1.0 / 3, 1.0 / 3, 1.0 / 3, 1.0 / 3, 1.0 / 3};
    for (size_t n = 1; n <= N; n++) {
        double a[N][N + 3] = {{0}};
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < n; j++)
                a[i][j] = r->between[order[i] * N + order[j]] + (i == j ? r->ridge : 0);
            a[i][n + r->data->samples->labels[order[i]]] = 1;
        }
        for (size_t k = 0; k < n; k++) /* Gauss and Jordan */
            for (size_t i = 0; i < n; i++)
                for (size_t j = n + 3; i != k && j-- > k;)
                    a[i][j] -= a[i][k] / a[k][k] * a[k][j];
        for (size_t x = 0; x < 5; x++) {
            double scores[3] = {0};
            for (size_t y = 0; y < 3; y++)
                for (size_t i = 0; i < n; i++)
                    scores[y] += r->inputs[x * N + order[i]] * a[i][n + y] / a[i][i];
            fds__regression_probs(r, scores);
            double now = scores[fds__dataset_get_info(g.test).labels[x]];
            assert_true(fabs(c.values[order[n - 1] * 5 + x] - (now - before[x])) < 1e-8);
            before[x] = now;
        }
    }
    fds_utility_free(value);
    game_free(&g);
}

/* ---- the values ---- */

static void the_means_go_to_the_exact_values(void **state) {
    (void)state;
    game g = game_vectors(8, 4, 3, 31);
    call c = call_of(&g, "entk", "freeshap", FDS__SCORER_EACH_SAMPLE);
    double exact[MOST_VALUES], last = INFINITY;
    exact_each(&g, &c.value, exact);
    for (c.params.permutations = 50; c.params.permutations <= 12800; c.params.permutations *= 16) {
        double off = 0, expected = 0;
        run_call(&c);
        for (size_t i = 0; i < c.players * c.columns; i++) {
            off += (c.values[i] - exact[i]) * (c.values[i] - exact[i]);
            expected += c.errors[i] * c.errors[i];
        }
        assert_true(off < 4 * expected); /* the standard errors are what they claim */
        assert_true(sqrt(off) < last);
        last = sqrt(off) / 1.5; /* a quarter would be usual */
    }
    assert_true(last < 0.02);
    game_free(&g);
}

/* Whatever the share of the lowest label is. */
static void the_empty_coalition_is_as_accurate_as_chance(void **state) {
    (void)state;
    game g = game_vectors(8, 9, 3, 13);
    call c = call_of(&g, "entk", "freeshap", FDS__SCORER_ACCURACY);
    fds_utility *value = make_value(&g, &c.value, 1);
    float probs[9 * 3];
    double sum = 0, full = 0, zeros = 0;
    eval(value, 0, everyone(&g), probs);
    for (size_t i = 0; i < 9; i++) {
        const float *q = probs + i * 3;
        uint32_t top = q[1] > q[0] ? 1 : 0, label = fds__dataset_get_info(g.test).labels[i];
        full += (q[2] > q[top] ? 2 : top) == label;
        zeros += label == 0;
    }
    assert_true(zeros != 3); /* or nothing would be seen */
    run_call(&c);
    for (size_t i = 0; i < c.players; i++)
        sum += c.values[i];
    assert_true(fabs(sum - (full / 9 - 1.0 / 3)) < 1e-12);
    fds_utility_free(value);
    game_free(&g);
}

static void values_of_an_order_add_up(void **state) {
    (void)state;
    game g = game_vectors(12, 9, 3, 41);
    call c = call_of(&g, "entk", "freeshap", FDS__SCORER_CONFIDENCE);
    fds_utility *value = make_value(&g, &c.value, 1);
    float probs[9 * 3];
    double sum = 0, full = 0;
    eval(value, 0, everyone(&g), probs);
    for (size_t i = 0; i < 9; i++)
        full += (double)probs[i * 3 + fds__dataset_get_info(g.test).labels[i]] / 9;
    run_call(&c);
    for (size_t i = 0; i < c.players; i++)
        sum += c.values[i];
    assert_true(fabs(sum - (full - 1.0 / 3)) < 1e-6);
    fds_utility_free(value);
    game_free(&g);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    game g = game_vectors(12, 9, 3, 51);
    call one = call_of(&g, "entk", "freeshap", FDS__SCORER_EACH_SAMPLE), two = one;
    one.params.permutations = two.params.permutations = 130;
    one.params.truncate = two.params.truncate = 0.3;
    two.params.threads = 3;
    run_call(&one);
    run_call(&two);
    expect_same_bits(&one, &two);
    assert_int_equal(one.report.asked, two.report.asked);
    game_free(&g);
}

/* Near to everyone's value from the first place on: six places are walked, the rest is 0. */
static void an_order_ends_when_nothing_is_left_to_win(void **state) {
    (void)state;
    game g = game_vectors(12, 9, 3, 61);
    call c = call_of(&g, "entk", "freeshap", FDS__SCORER_CONFIDENCE);
    c.params.truncate = 1e9;
    c.params.permutations = 1;
    run_call(&c);
    uint32_t order[12];
    baseline_permutation(c.params.seed, 0, 12, order);
    assert_true(c.report.truncated == 0.5);
    assert_int_equal(c.report.asked, 8);
    for (size_t place = 0; place < 12; place++)
        assert_true((c.values[order[place]] != 0) == (place < 6));
    game_free(&g);
}

/* ---- odd games ---- */

static void one_player_has_it_all(void **state) {
    (void)state;
    game g = game_vectors(1, 4, 3, 71);
    call c = call_of(&g, "entk", "freeshap", FDS__SCORER_EACH_SAMPLE);
    double exact[MOST_VALUES];
    exact_each(&g, &c.value, exact);
    run_call(&c);
    for (size_t i = 0; i < 4; i++)
        assert_true(fabs(c.values[i] - exact[i]) < 1e-6);
    game_free(&g);
}

/* All vectors equal: apart from the ridge there is nothing to factorise. And a label that no player
 * has, and a set of one label. */
static void twins_and_missing_labels_are_no_trouble(void **state) {
    (void)state;
    const float values[8 * 3] = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 2, 2, 2};
    const uint16_t labels[2][8] = {{0, 1, 0, 1, 1, 1, 0, 1}, {2, 2, 2, 2, 2, 2, 2, 2}};
    fds_error err;
    for (size_t k = 0; k < 2; k++) {
        game g = {.test = vectors(6, 3, 5), .input_count = 6, .inputs = {0, 1, 2, 3, 4, 5}};
        expect_ok(fds__dataset_create(8, (fds_shape){3, 1, 1}, NULL, values, labels[k], 3, NULL,
                                      &g.train, &err),
                  &err);
        expect_ok(fds_players_points(g.train, NULL, 8, &g.players, &err), &err);
        call c = call_of(&g, "entk", "freeshap", FDS__SCORER_EACH_SAMPLE);
        c.params.permutations = 2000;
        run_call(&c);
        for (size_t i = 0; i < c.players * c.columns; i++)
            assert_true(isfinite(c.values[i]) && fabs(c.values[i]) <= 1);
        for (size_t i = 0; i < c.columns; i++) { /* twins with the same label */
            double off = c.values[0 * c.columns + i] - c.values[2 * c.columns + i];
            assert_true(fabs(off) < 6 * (c.errors[i] + c.errors[2 * c.columns + i]) + 1e-9);
        }
        game_free(&g);
    }
}

static void a_kernel_that_is_there_is_not_made_again(void **state) {
    (void)state;
    game g = game_vectors(6, 5, 3, 91);
    call plain = call_of(&g, "retrain:10", "freeshap", FDS__SCORER_EACH_SAMPLE);
    call trained = call_of(&g, "entk:2", "freeshap", FDS__SCORER_EACH_SAMPLE);
    expect_made_to_be_used(&plain, "entk", "kernel");
    expect_made_to_be_used(&trained, "entk:2", "entk:3");
    game_free(&g);
}

static void without_memory_nothing_is_left_behind(void **state) {
    (void)state;
    game g = game_vectors(4, 3, 3, 81);
    call c = call_of(&g, "entk", "freeshap", FDS__SCORER_CONFIDENCE);
    c.params.permutations = 3;
    expect_allocations_to_fail(&c);
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_are_worth_what_entk_says),
        IN_SCRATCH(players_may_have_many_samples),
        cmocka_unit_test(the_factor_grows_as_it_would_be_made_anew),
        IN_SCRATCH(the_means_go_to_the_exact_values),
        cmocka_unit_test(the_empty_coalition_is_as_accurate_as_chance),
        cmocka_unit_test(values_of_an_order_add_up),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(an_order_ends_when_nothing_is_left_to_win),
        IN_SCRATCH(one_player_has_it_all),
        cmocka_unit_test(twins_and_missing_labels_are_no_trouble),
        cmocka_unit_test(a_kernel_that_is_there_is_not_made_again),
        cmocka_unit_test(without_memory_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
