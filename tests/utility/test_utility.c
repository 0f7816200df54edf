/* SPDX-License-Identifier: Apache-2.0
 * What holds for utility functions of every kind: wrong parameters are refused with their names,
 * the text says all that the answers depend on and nothing else, memory is accounted for. */
#include "utility_fixture.h"

static const char *const every_kind[] = {"retrain", "retrain:2", "knn:3",
                                         "kernel",  "entk",      "entk:2"};

/* ---- parameters ---- */

static void the_defaults_are_the_papers(void **state) {
    (void)state;
    fds__utility_params p = fds__utility_params_default();
    assert_string_equal(p.kind, "retrain:10");
    assert_string_equal(p.network, "lenet5");
    assert_int_equal(p.train.optimizer, FDS_OPTIMIZER_ADAM);
    assert_true(p.train.lr == 1e-4f && p.beta == 10.0f);
}

static void wrong_kinds_are_refused(void **state) {
    (void)state;
    game g = game_vectors(4, 2, 3, 1);
    const struct {
        const char *kind, *part;
    } wrong[] = {
        {NULL, "there are \"retrain\", \"retrain:K\", \"knn:K\", \"knn:K@model\", \"tknn\""},
        {"", "unknown utility function"},
        {"retrains", "\"retrains\""},
        {"retrai", "\"retrai\""},
        {"knn", "\"knn:K\""},
        {"kernel:2", "unknown utility function \"kernel:2\""},
        {":3", "unknown"},
        {"Knn:3", "unknown"},
        {"knn:", "whole number from 1 to 1048576"},
        {"knn:0", "whole number from 1"},
        {"knn:-1", "whole number from 1"},
        {"knn:+1", "whole number from 1"},
        {"knn: 1", "whole number from 1"},
        {"knn:3x", "\"knn:3x\""},
        {"knn:1048577", "to 1048576"},
        {"knn:99999999999999999999", "to 1048576"},
        {"knn:@model", "whole number from 1"},
        {"knn:3x@model", "whole number from 1"},
        {"knn@model", "unknown utility function \"knn@model\""},
        {"knn:3@", "unknown"},
        {"knn:3@models", "unknown"},
        {"knn@model:3", "unknown"},
        {"retrain:3@model", "unknown"},
        {"kernel@model", "unknown"},
        {"retrain:", "whole number from 1"},
        {"retrain:0", "whole number from 1"},
        {"retrain:ten", "whole number from 1"},
        {"retrain:1.5", "whole number from 1"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        fds__utility_params p = smaller(wrong[i].kind);
        fds_utility *value = NULL;
        fds_error err = {0};
        expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err, wrong[i].part);
        assert_null(value);
        assert_int_equal(try_value(&g, &p, 1, &value, NULL), FDS_ERR_USAGE);
    }
    game_free(&g);
}

static void expect_refused(const game *g, const fds__utility_params *p, fds_status status,
                           const char *part) {
    fds_utility *value = NULL;
    fds_error err = {0};
    expect_failure(try_value(g, p, 1, &value, &err), status, &err, part);
    assert_null(value);
}

static void wrong_training_is_refused(void **state) {
    (void)state;
    game g = game_vectors(4, 2, 3, 1);
    const float wrong_betas[] = {0.0f, -1.0f, NAN, INFINITY};
    for (size_t i = 0; i < COUNT(wrong_betas); i++) {
        fds__utility_params p = smaller("retrain:2");
        p.beta = wrong_betas[i];
        expect_refused(&g, &p, FDS_ERR_USAGE, "beta must be above 0");
        p.kind = "retrain";
        expect_refused(&g, &p, FDS_ERR_USAGE, "beta must be above 0");
    }
    for (int i = 0; i < 2; i++) {
        const char *kind = every_kind[i];
        fds__utility_params p = smaller(kind);
        p.network = NULL;
        expect_refused(&g, &p, FDS_ERR_USAGE, "network");
        p.network = "nonsense";
        expect_refused(&g, &p, FDS_ERR_USAGE, "nonsense");
        p = smaller(kind);
        p.train.lr = 0;
        expect_refused(&g, &p, FDS_ERR_USAGE, "lr is 0");
        p = smaller(kind);
        p.train.batch = 0;
        expect_refused(&g, &p, FDS_ERR_USAGE, "batch is 0");
        p = smaller(kind);
        p.train.optimizer = (fds_optimizer)7;
        expect_refused(&g, &p, FDS_ERR_USAGE, "optimizer 7");
    }
    fds__utility_params p = smaller("retrain:2");
    p.train.lr = 1e38f;
    p.beta = 1e38f;
    expect_refused(&g, &p, FDS_ERR_USAGE, "times beta");
    p = smaller("retrain");
    p.train.patience = 0;
    expect_refused(&g, &p, FDS_ERR_USAGE, "patience");
    p.kind = "retrain:2"; /* the stopping rule is not used */
    p.train.epochs = 0;   /* nor is the caller's number of epochs */
    fds_utility_free(make_value(&g, &p, 1));
    game_free(&g);
}

static void data_that_do_not_fit_are_refused(void **state) {
    (void)state;
    const float floats[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const uint16_t labels[2] = {0, 1};
    fds_error err;
    for (size_t i = 0; i < COUNT(every_kind); i++) {
        fds__utility_params p = smaller(every_kind[i]);
        game g = game_vectors(4, 2, 3, 1);
        fds_utility *value = NULL;
        g.inputs[1] = 2;
        expect_refused(&g, &p, FDS_ERR_USAGE, "sample 2 requested, the data has 2");
        g.inputs[1] = 1;
        g.input_count = 0;
        expect_refused(&g, &p, FDS_ERR_USAGE, "no inputs");
        g.input_count = 2;
        expect_failure(
            fds__utility_create(&p, g.train, g.players, g.test, NULL, 3, 1, &value, &err),
            FDS_ERR_USAGE, &err, "3 samples requested");
        expect_failure(try_value(&g, &p, 1025, &value, &err), FDS_ERR_LIMIT, &err, "1025 workers");
        /* players of another, larger set */
        game large = game_vectors(6, 2, 3, 2);
        expect_failure(
            fds__utility_create(&p, g.train, large.players, g.test, NULL, 2, 1, &value, &err),
            FDS_ERR_USAGE, &err, "sample 4 requested, the data has 4");
        game_free(&large);
        /* another shape */
        fds_dataset_free(g.test);
        expect_ok(fds__dataset_create(2, (fds_shape){4, 1, 1}, NULL, floats, labels, 3, NULL,
                                      &g.test, &err),
                  &err);
        expect_refused(&g, &p, FDS_ERR_SHAPE, "of 4x1x1");
        /* more classes, which matters where a sample has one of them */
        fds_dataset_free(g.test);
        const uint16_t strange[2] = {0, 3};
        expect_ok(fds__dataset_create(2, (fds_shape){3, 1, 1}, NULL, floats, strange, 4, NULL,
                                      &g.test, &err),
                  &err);
        expect_refused(&g, &p, FDS_ERR_SHAPE, "sample 1 has label 3");
        g.input_count = 1;
        fds_utility_free(make_value(&g, &p, 1));
        game_free(&g);
    }
}

/* A value that overflows when it is normalised has no distance from anything. */
static void values_beyond_all_bounds_are_refused(void **state) {
    (void)state;
    const float near[3] = {0, 1e-30f, 0}, far[3] = {0, 0, 3e38f};
    const uint16_t labels[3] = {0, 1, 0};
    game g = {.input_count = 3, .inputs = {0, 1, 2}};
    fds_error err;
    fds_shape shape = {1, 1, 1};
    expect_ok(fds__dataset_create(3, shape, NULL, near, labels, 2, NULL, &g.train, &err), &err);
    expect_ok(fds__dataset_create(3, shape, NULL, far, labels, 2, NULL, &g.test, &err), &err);
    expect_ok(fds_players_points(g.train, NULL, 3, &g.players, &err), &err);
    for (size_t i = 0; i < COUNT(every_kind); i++) {
        fds__utility_params p = smaller(every_kind[i]);
        expect_refused(&g, &p, FDS_ERR_LIMIT, "sample 2: value 0 is infinite");
    }
    game_free(&g);
}

static void wrong_questions_are_refused(void **state) {
    (void)state;
    game g = game_vectors(5, 2, 3, 1);
    for (size_t i = 0; i < COUNT(every_kind); i++) {
        fds__utility_params p = smaller(every_kind[i]);
        fds_utility *value = make_value(&g, &p, 2);
        float probs[2 * 3];
        uint64_t coalition = 3;
        fds_error err = {0};
        expect_failure(fds_utility_eval(value, 2, &coalition, probs, &err), FDS_ERR_USAGE, &err,
                       "worker 2");
        coalition = 32;
        expect_failure(fds_utility_eval(value, 0, &coalition, probs, &err), FDS_ERR_USAGE, &err,
                       "beyond the last, 4");
        fds_utility_free(value);
    }
    fds_utility_free(NULL);
    game_free(&g);
}

/* ---- the text ---- */

static char *text_of(const game *g, const fds__utility_params *p, unsigned workers) {
    fds_utility *value = make_value(g, p, workers);
    char *text = fds__strdup(fds_utility_get_info(value).text);
    assert_non_null(text);
    fds_utility_free(value);
    return text;
}

static void the_text_is_json_with_sorted_keys(void **state) {
    (void)state;
    game g = game_vectors(5, 2, 3, 1);
    for (size_t i = 0; i < COUNT(every_kind); i++) {
        fds__utility_params p = smaller(every_kind[i]);
        char *text = text_of(&g, &p, 1);
        json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *item;
        assert_non_null(object);
        const char *key, *last = "";
        json_object_foreach(object, key, item) {
            assert_true(strcmp(key, last) > 0);
            last = key;
        }
        assert_string_equal(json_string_value(json_object_get(object, "kind")), every_kind[i]);
        assert_int_equal(json_integer_value(json_object_get(object, "players")), 5);
        assert_int_equal(json_integer_value(json_object_get(object, "inputs")), 2);
        assert_int_equal(json_integer_value(json_object_get(object, "classes")), 3);
        assert_int_equal(strlen(json_string_value(json_object_get(object, "samples_sha256"))), 64);
        assert_int_equal(strlen(json_string_value(json_object_get(object, "inputs_sha256"))), 64);
        assert_true(json_is_integer(json_object_get(object, "version")));
        if (i < 2) {
            assert_string_equal(json_string_value(json_object_get(object, "network")),
                                "fc:5,relu,fc:3");
            assert_true(json_real_value(json_object_get(object, "lr")) == 0.01);
            assert_int_equal(json_integer_value(json_object_get(object, "epochs")),
                             i == 0 ? 1000 : 2);
        }
        json_decref(object);
        fds__free(text);
    }
    game_free(&g);
}

enum { CHANGES = 14 };
static const char *change(fds__utility_params *p, size_t which) {
    fds_train_params *t = &p->train;
    switch (which) {
    case 0:
        p->network = "fc:6,relu,fc:classes";
        return "network";
    case 1:
        t->optimizer = FDS_OPTIMIZER_SGD;
        return "optimizer";
    case 2:
        t->lr *= 2;
        return "lr";
    case 3:
        t->beta1 = 0.8f;
        return "beta1";
    case 4:
        t->beta2 = 0.9f;
        return "beta2";
    case 5:
        t->epsilon = 1e-7f;
        return "epsilon";
    case 6:
        t->weight_decay = 0.1f;
        return "weight decay";
    case 7:
        t->batch = 8;
        return "batch";
    case 8:
        t->seed++;
        return "seed";
    case 9:
        p->beta = 3;
        return "beta";
    case 10:
        t->loss_bound = INFINITY;
        return "loss bound";
    case 11:
        t->min_delta = 0.5f;
        return "min delta";
    case 12:
        t->patience = 3;
        return "patience";
    default:
        t->momentum = 0.5f;
        return "momentum";
    }
}

static void the_text_changes_with_every_parameter_that_matters(void **state) {
    (void)state;
    game g = game_vectors(5, 2, 3, 1);
    for (int converge = 0; converge < 2; converge++) {
        fds__utility_params p = smaller(converge ? "retrain" : "retrain:2");
        char *before = text_of(&g, &p, 1);
        for (size_t i = 0; i < CHANGES; i++) {
            fds__utility_params q = p;
            const char *name = change(&q, i);
            bool matters = i < 10 || (i < 13 && converge);
            char *after = text_of(&g, &q, 1);
            if ((strcmp(before, after) != 0) != matters)
                fail_msg("%s: %s: %s and %s", p.kind, name, before, after);
            fds__free(after);
        }
        fds__free(before);
        p.train.optimizer =
            FDS_OPTIMIZER_SGD; /* where momentum matters and Adam's numbers do not */
        before = text_of(&g, &p, 1);
        for (size_t i = 3; i < CHANGES; i += i == 5 ? CHANGES - 6 : 1) {
            fds__utility_params q = p;
            const char *name = change(&q, i);
            char *after = text_of(&g, &q, 1);
            if ((strcmp(before, after) != 0) != (i == CHANGES - 1))
                fail_msg("sgd: %s: %s and %s", name, before, after);
            fds__free(after);
        }
        fds__free(before);
    }
    game_free(&g);
}

/* Neither threads nor what the kind does not use. */
static void the_text_does_not_change_with_what_does_not_matter(void **state) {
    (void)state;
    game g = game_vectors(5, 2, 3, 1);
    for (size_t i = 0; i < COUNT(every_kind); i++) {
        fds__utility_params p = smaller(every_kind[i]), q = p;
        char *one = text_of(&g, &p, 1), *three = text_of(&g, &p, 3), *all = text_of(&g, &p, 0);
        assert_string_equal(one, three);
        assert_string_equal(one, all);
        q.train.epochs = 77;
        q.train.converge = true;
        if (i == 2 || i == 3) { /* without a network */
            q.network = NULL;
            q.train.lr = -1;
            q.train.seed = 77;
            q.beta = 0;
        }
        char *other = text_of(&g, &q, 1);
        assert_string_equal(one, other);
        fds__free(other);
        /* the label of an input is no part of the question */
        game h = g;
        float values[2 * 3];
        const uint16_t labels[2] = {2, 2};
        fds_error err;
        fds_dataset_sample(g.test, 0, values);
        fds_dataset_sample(g.test, 1, values + 3);
        expect_ok(fds__dataset_create(2, (fds_shape){3, 1, 1}, NULL, values, labels, 3, NULL,
                                      &h.test, &err),
                  &err);
        other = text_of(&h, &p, 1);
        assert_string_equal(one, other);
        fds_dataset_free(h.test);
        fds__free(other);
        fds__free(one);
        fds__free(three);
        fds__free(all);
    }
    game_free(&g);
}

static void the_text_changes_with_the_data(void **state) {
    (void)state;
    enum { TEXTS = 7 };
    const uint32_t index[] = {0, 1, 2, 3, 4}, turned[] = {1, 0, 2, 3, 4},
                   others[] = {0, 1, 2, 3, 5};
    float values[3 * 6];
    uint16_t labels[6];
    fds_error err;
    for (size_t k = 0; k < COUNT(every_kind); k++) {
        fds__utility_params p = smaller(every_kind[k]);
        game g = game_vectors(6, 3, 3, 1), h;
        char *texts[TEXTS];
        fds_players_free(g.players);
        expect_ok(fds_players_points(g.train, index, 5, &g.players, &err), &err);
        texts[0] = text_of(&g, &p, 1);
        h = g; /* players in another order, other players */
        expect_ok(fds_players_points(g.train, turned, 5, &h.players, &err), &err);
        texts[1] = text_of(&h, &p, 1);
        fds_players_free(h.players);
        expect_ok(fds_players_points(g.train, others, 5, &h.players, &err), &err);
        texts[2] = text_of(&h, &p, 1);
        fds_players_free(h.players);
        h = g; /* inputs in another order, fewer of them */
        h.inputs[0] = 1, h.inputs[1] = 0;
        texts[3] = text_of(&h, &p, 1);
        h = g;
        h.input_count = 2;
        texts[4] = text_of(&h, &p, 1);
        for (size_t i = 0; i < 6; i++) { /* one label, one value */
            fds_dataset_sample(g.train, i, values + 3 * i);
            labels[i] = fds__dataset_get_info(g.train).labels[i];
        }
        for (size_t t = 5; t < TEXTS; t++) {
            h = g;
            labels[3] = (uint16_t)((labels[3] + (t == 5)) % 3);
            values[4] += t == 6 ? 0.25f : 0;
            expect_ok(fds__dataset_create(6, (fds_shape){3, 1, 1}, NULL, values, labels, 3, NULL,
                                          &h.train, &err),
                      &err);
            texts[t] = text_of(&h, &p, 1);
            fds_dataset_free(h.train);
        }
        for (size_t a = 0; a < TEXTS; a++)
            for (size_t b = a + 1; b < TEXTS; b++)
                if (strcmp(texts[a], texts[b]) == 0)
                    fail_msg("%s: texts %zu and %zu are equal: %s", p.kind, a, b, texts[a]);
        for (size_t t = 0; t < TEXTS; t++)
            fds__free(texts[t]);
        game_free(&g);
    }
}

/* ---- memory ---- */

static void every_failed_allocation_is_survived(void **state) {
    (void)state;
    game g = game_vectors(5, 2, 3, 1);
    for (size_t i = 0; i < COUNT(every_kind); i++) {
        fds__utility_params p = smaller(every_kind[i]);
        expect_failed_allocations_survived(&g, &p, 3);
    }
    game_free(&g);
}

/* But for a worker's first answer: of kernel regression, whose workers then get their workers. */
static void answering_allocates_nothing(void **state) {
    (void)state;
    game g = game_vectors(5, 2, 3, 1);
    for (size_t i = 0; i < COUNT(every_kind); i++) {
        fds__utility_params p = smaller(every_kind[i]);
        fds_utility *value = make_value(&g, &p, 2);
        float probs[2 * 3], first[2 * 3];
        uint64_t all = 31;
        fds_error err = {0};
        bool is_regression = fds__utility_regression(value);
        fds__fault_arm(FDS__FAULT_ALLOC, is_regression ? 1 : 0);
        if (is_regression)
            expect_failure(fds_utility_eval(value, 0, &all, probs, &err), FDS_ERR_NOMEM, &err, "");
        eval(value, 0, all, first);
        eval(value, 1, all, probs);
        assert_int_equal(fds__fault_arm(FDS__FAULT_ALLOC, 0), is_regression ? 3 : 0);
        for (uint64_t s = 0; s < 32; s++)
            eval(value, s % 2, s, probs);
        assert_int_equal(fds__fault_arm(FDS__FAULT_ALLOC, 0), 0);
        assert_memory_equal(first, probs, sizeof first);
        fds_utility_free(value);
    }
    game_free(&g);
}

/* What a worker takes is what the engine says of a lane, and more. */
static void memory_is_accounted_for(void **state) {
    (void)state;
    game g = game_digits(20, 10);
    for (size_t i = 0; i < COUNT(every_kind); i++) {
        fds__utility_params p = small(every_kind[i]);
        size_t memory[3];
        for (unsigned w = 0; w < 3; w++) {
            fds_utility *value = make_value(&g, &p, w + 1);
            fds_utility_info info = fds_utility_get_info(value);
            assert_int_equal(info.players, 20);
            assert_int_equal(info.inputs, 10);
            assert_int_equal(info.classes, 10);
            memory[w] = info.memory;
            fds_utility_free(value);
        }
        assert_true(memory[0] > 30 * 784 * sizeof(float));
        assert_int_equal(memory[2] - memory[1], memory[1] - memory[0]);
        size_t least[] = {3 * (49 * 8 + 8 + 80 + 10) * sizeof(float), 0, 20 * 20 * sizeof(double)};
        assert_true(memory[1] - memory[0] >= least[i < 2 ? 0 : i == 2 ? 1 : 2]);
        assert_true(memory[1] - memory[0] < 200000);
    }
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_the_papers),
        cmocka_unit_test(wrong_kinds_are_refused),
        cmocka_unit_test(wrong_training_is_refused),
        cmocka_unit_test(data_that_do_not_fit_are_refused),
        cmocka_unit_test(values_beyond_all_bounds_are_refused),
        cmocka_unit_test(wrong_questions_are_refused),
        cmocka_unit_test(the_text_is_json_with_sorted_keys),
        cmocka_unit_test(the_text_changes_with_every_parameter_that_matters),
        cmocka_unit_test(the_text_does_not_change_with_what_does_not_matter),
        cmocka_unit_test(the_text_changes_with_the_data),
        cmocka_unit_test(every_failed_allocation_is_survived),
        cmocka_unit_test(answering_allocates_nothing),
        cmocka_unit_test(memory_is_accounted_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
