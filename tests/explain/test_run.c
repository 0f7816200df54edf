/* SPDX-License-Identifier: Apache-2.0
 * A fitted run: what it says of itself, that its answers depend on the input alone, and every wrong
 * question. */
#include "fixture.h"

/* ---- what it is ---- */

static void a_run_knows_who_took_part(void **state) {
    (void)state;
    task t = task_make("gfds");
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    const fds__run_info info = fds__run_get_info(run);
    assert_string_equal(info.method, "gfds");
    assert_string_equal(info.source, fds__dataset_get_info(t.train).source);
    assert_string_equal(info.explainer, "linear");
    assert_int_equal(info.players, PLAYERS);
    assert_int_equal(info.groups, GROUPS);
    assert_int_equal(info.classes, CLASSES);
    assert_true(info.shape.channels == FEATURES && info.shape.height == 1 && info.shape.width == 1);
    assert_false(info.is_image);
    assert_false(info.has_bank);
    json_t *json = json_loads(fds_run_describe(run), 0, NULL),
           *file = read_run(scratch_path("run"));
    json_object_del(file, "checksum");
    assert_true(json_equal(json, file));
    json_decref(json);
    json_decref(file);
    const uint16_t *labels = fds__dataset_get_info(t.train).labels;
    for (size_t i = 0; i < PLAYERS; i++) {
        assert_string_equal(fds__run_player_name(run, i), fds_players_name(t.players, i));
        assert_int_equal(fds__run_player_label(run, i), labels[i]);
        assert_null(fds__run_player_provider(run, i));
    }
    assert_string_equal(fds__run_player_name(run, PLAYERS), "?");
    assert_null(fds__run_player_provider(run, PLAYERS));
    for (uint32_t c = 0; c < CLASSES; c++)
        assert_string_equal(fds__run_class_name(run, c), fds_dataset_class_name(t.train, c));
    assert_string_equal(fds__run_class_name(run, CLASSES), "?");
    expect_in(fds__run_error_source(run, FDS__ANSWERER_EXPLAINER),
              "calibrated on 6 validation inputs");
    fds_run_free(run);
    fds_run_free(NULL);
    task_free(&t);
}

/* The service model is, to the byte, the one that the players' samples train, and the samples are
 * theirs. */
static void a_run_keeps_the_service_model_and_samples(void **state) {
    (void)state;
    task t = task_make("afds");
    fds_train_params train;
    fds_model *model = NULL;
    fds_error err;
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    const fds__fit_settings settings = settled(&t);
    const fds__utility_params utility = fds__fit_utility(&settings);
    expect_ok(fds__utility_training(&utility, &train, &err), &err);
    expect_ok(
        fds_model_train(t.train, NULL, PLAYERS, t.params.model, &train, NULL, &model, NULL, &err),
        &err);
    assert_string_equal(fds__model_get_info(fds_run_service(run)).sha256,
                        fds__model_get_info(model).sha256);
    char wanted[65], got[65];
    expect_ok(fds_model_save(model, scratch_path("model.safetensors"), &err), &err);
    sha256_of(scratch_path("model.safetensors"), wanted);
    sha256_of(scratch_path("run/service.safetensors"), got);
    assert_string_equal(got, wanted);
    fds_model_free(model);
    const fds__dataset_info info = fds__dataset_get_info(fds_run_samples(run));
    assert_int_equal(info.count, PLAYERS);
    assert_int_equal(info.classes, CLASSES);
    for (size_t i = 0; i < PLAYERS; i++) {
        float a[FEATURES], b[FEATURES];
        fds_dataset_sample(t.train, i, a);
        fds_dataset_sample(fds_run_samples(run), i, b);
        assert_memory_equal(a, b, sizeof a);
        assert_int_equal(info.labels[i], fds__dataset_get_info(t.train).labels[i]);
    }
    fds_run_free(run);
    task_free(&t);
}

/* Players of several samples, who are providers: names of providers, the label that most of their
 * samples have, names of classes; and no groups where none are needed. */
static void providers_are_named(void **state) {
    (void)state;
    task t = task_providers("afds");
    t.params.adjust = "none";
    t.params.coalitions = 20;
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    const fds__run_info info = fds__run_get_info(run);
    assert_int_equal(info.players, 5);
    assert_int_equal(info.groups, 0);
    expect_in(info.source, "providers.csv");
    for (size_t i = 0; i < info.players; i++) {
        const uint32_t *index;
        size_t count = fds_players_samples(t.players, i, &index), most = 0;
        unsigned counts[CLASSES] = {0};
        for (size_t s = 0; s < count; s++)
            counts[fds__dataset_get_info(t.train).labels[index[s]]]++;
        for (size_t c = 0; c < CLASSES; c++)
            most = counts[c] > counts[most] ? c : most;
        assert_true(count > 1);
        assert_int_equal(fds__run_player_label(run, i), most);
        assert_string_equal(fds__run_player_name(run, i), fds_players_name(t.players, i));
        assert_string_equal(fds__run_player_provider(run, i), fds_players_name(t.players, i));
    }
    assert_string_equal(fds__run_class_name(run, 1), "class y");
    fds_error err;
    expect_ok(fds__run_check_data(run, t.train, &err), &err);
    fds_run_free(run);
    task_free(&t);
}

static void its_own_data_is_known_again(void **state) {
    (void)state;
    task t = task_make("afds");
    fds_error err = {0};
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    expect_ok(fds__run_check_data(run, t.train, &err), &err);
    fds_dataset *other = clouds(SAMPLES, 2), *few = clouds(PLAYERS - 1, 1), *wide = NULL;
    expect_failure(fds__run_check_data(run, other, &err), FDS_ERR_USAGE, &err, "other data");
    expect_failure(fds__run_check_data(run, few, &err), FDS_ERR_USAGE, &err, "sample 15");
    const float values[] = {1, 2, 3, 4, 5};
    const uint16_t label = 0;
    expect_ok(fds__dataset_create(1, (fds_shape){5, 1, 1}, NULL, values, &label, CLASSES, NULL,
                                  &wide, &err),
              &err);
    expect_failure(fds__run_check_data(run, wide, &err), FDS_ERR_USAGE, &err, "5x1x1");
    fds_dataset_free(other);
    fds_dataset_free(few);
    fds_dataset_free(wide);
    fds_run_free(run);
    task_free(&t);
}

/* ---- answers ---- */

static void expect_same_answer(const answers *many, size_t x, const answers *one, size_t n) {
    assert_int_equal(many->labels[x], one->labels[0]);
    assert_memory_equal(many->probs + x * CLASSES, one->probs, CLASSES * sizeof(float));
    assert_memory_equal(&many->full[x], one->full, sizeof(double));
    assert_memory_equal(&many->empty[x], one->empty, sizeof(double));
    assert_memory_equal(many->values + x * n, one->values, n * sizeof(double));
    assert_memory_equal(many->errors + x * n, one->errors, n * sizeof(double));
}

/* By network and by bank, predicted labels and given ones, in one call or in many, in any order. */
static void an_answer_does_not_depend_on_other_inputs(void **state) {
    (void)state;
    static answers many, one;
    static const int explainers[] = {LINEAR, MLP};
    uint32_t index[MOST];
    for (size_t e = 0; e < COUNT(explainers); e++) {
        task t = task_make("afds");
        t.params.explainer = explainers[e];
        t.params.keep_models = true;
        fit(&t, scratch_path("run"));
        fds_run *run = open_run(scratch_path("run"));
        for (uint32_t i = 0; i < MOST; i++)
            index[i] = (i * 37 + 5) % SAMPLES;
        for (int by = FDS__ANSWERER_EXPLAINER; by <= FDS__ANSWERER_BANK; by++)
            for (int given = 0; given < 2; given++) {
                for (uint32_t i = 0; i < MOST; i++)
                    many.labels[i] = i % CLASSES;
                ask(run, (fds__answerer)by, t.train, index, MOST, given, &many);
                for (size_t x = 0; x < MOST; x++) {
                    one.labels[0] = (uint32_t)(x % CLASSES);
                    ask(run, (fds__answerer)by, t.train, &index[x], 1, given, &one);
                    expect_same_answer(&many, x, &one, PLAYERS);
                }
            }
        fds_run_free(run);
        remove_run(scratch_path("run"));
        task_free(&t);
    }
}

/* More inputs than are explained at a time. */
static void many_inputs_are_explained_in_parts(void **state) {
    (void)state;
    enum { MANY = 700 };
    static uint32_t labels[MANY], index[MANY];
    static double values[MANY * PLAYERS];
    static answers one;
    task t = task_make("afds");
    const fds__answers to = {.labels = labels, .values = values}; /* all others may be NULL */
    fds_error err;
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    for (uint32_t i = 0; i < MANY; i++)
        index[i] = i * 7 % SAMPLES;
    expect_ok(
        fds__run_explain(run, FDS__ANSWERER_EXPLAINER, t.train, index, MANY, false, &to, &err),
        &err);
    for (size_t x = 0; x < MANY; x += 51) {
        ask(run, FDS__ANSWERER_EXPLAINER, t.train, &index[x], 1, false, &one);
        assert_int_equal(labels[x], one.labels[0]);
        assert_memory_equal(values + x * PLAYERS, one.values, PLAYERS * sizeof *values);
    }
    fds_run_free(run);
    task_free(&t);
}

/* The predicted label has the greatest probability; given that label, or any other, the answer
 * is the same as when it was predicted, and errors of others are others. */
static void given_labels_are_answered_like_predicted_ones(void **state) {
    (void)state;
    static answers predicted, given;
    task t = task_make("afds");
    float probs[MOST * CLASSES];
    fds_error err;
    bool differs = false;
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, MOST, false, &predicted);
    expect_ok(fds_model_predict(fds_run_service(run), t.train, NULL, MOST, 1, probs, NULL, &err),
              &err);
    assert_memory_equal(probs, predicted.probs, sizeof probs);
    for (size_t x = 0; x < MOST; x++)
        for (uint32_t y = 0; y < CLASSES; y++)
            assert_true(probs[x * CLASSES + y] <= probs[x * CLASSES + predicted.labels[x]]);
    memcpy(given.labels, predicted.labels, sizeof given.labels);
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, MOST, true, &given);
    assert_memory_equal(&given, &predicted, sizeof given);
    for (size_t x = 0; x < MOST; x++)
        given.labels[x] = (predicted.labels[x] + 1) % CLASSES;
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, MOST, true, &given);
    for (size_t x = 0; x < MOST; x++) {
        assert_int_equal(given.labels[x], (predicted.labels[x] + 1) % CLASSES); /* as they were */
        assert_true(given.full[x] <= predicted.full[x]);
        for (size_t i = 0; i < PLAYERS; i++)
            differs |= given.errors[x * PLAYERS + i] != predicted.errors[x * PLAYERS + i];
    }
    assert_true(differs);
    fds_run_free(run);
    task_free(&t);
}

/* Opened again, with other threads, it says the same. */
static void a_run_opened_again_says_the_same(void **state) {
    (void)state;
    static answers first, again;
    task t = task_make("afds");
    fit(&t, scratch_path("run"));
    for (unsigned threads = 0; threads < 3; threads++) {
        fds_run *run = NULL;
        fds_error err;
        expect_ok(fds__run_open(scratch_path("run"), threads, &run, &err), &err);
        ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, MOST, false, threads ? &again : &first);
        if (threads == 1)
            assert_memory_equal(&first, &again, sizeof first);
        for (size_t i = 0; threads == 2 && i < MOST * PLAYERS; i++)
            assert_true(fabs(first.values[i] - again.values[i]) < 1e-6);
        fds_run_free(run);
    }
    task_free(&t);
}

/* A run answers in another place, and without the table. */
static void a_run_may_be_moved(void **state) {
    (void)state;
    static answers before, after;
    task t = task_make("afds");
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, MOST, false, &before);
    fds_run_free(run);
    assert_int_equal(rename(scratch_path("run"), scratch_path("moved")), 0);
    remove_run(scratch_path("moved/utilities"));
    run = open_run(scratch_path("moved"));
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, MOST, false, &after);
    assert_memory_equal(&before, &after, sizeof before);
    fds_run_free(run);
    task_free(&t);
}

static void wrong_questions_are_named(void **state) {
    (void)state;
    static answers a;
    task t = task_make("afds");
    const fds__answers to = places(&a);
    const float values[] = {1, 2, 3, 4, 5};
    const uint16_t label = 0;
    const uint32_t beyond = SAMPLES;
    fds_dataset *wide = NULL;
    fds_error err = {0};
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    expect_ok(fds__dataset_create(1, (fds_shape){5, 1, 1}, NULL, values, &label, CLASSES, NULL,
                                  &wide, &err),
              &err);
    expect_failure(fds__run_explain(run, FDS__ANSWERER_EXPLAINER, wide, NULL, 1, false, &to, &err),
                   FDS_ERR_SHAPE, &err, "5x1x1");
    expect_in(err.text, "4x1x1");
    expect_failure(
        fds__run_explain(run, FDS__ANSWERER_EXPLAINER, t.train, &beyond, 1, false, &to, &err),
        FDS_ERR_USAGE, &err, "86");
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, 2, false, &a); /* it goes on answering */
    fds_dataset_free(wide);
    fds_run_free(run);
    task_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_run_knows_who_took_part),
        IN_SCRATCH(a_run_keeps_the_service_model_and_samples),
        IN_SCRATCH(providers_are_named),
        IN_SCRATCH(its_own_data_is_known_again),
        IN_SCRATCH(an_answer_does_not_depend_on_other_inputs),
        IN_SCRATCH(many_inputs_are_explained_in_parts),
        IN_SCRATCH(given_labels_are_answered_like_predicted_ones),
        IN_SCRATCH(a_run_opened_again_says_the_same),
        IN_SCRATCH(a_run_may_be_moved),
        IN_SCRATCH(wrong_questions_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
