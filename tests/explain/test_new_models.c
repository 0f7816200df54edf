/* SPDX-License-Identifier: Apache-2.0
 * Values of new players from sub-models that are trained with them: those of the exact game, on average and
 * where all coalitions are trained; the sub-models of known players are those of the run. */
#include "explain/new_game.h"
#include "fixture.h"

enum { KNOWN = 5, NEW = 2, ALL = 1 << KNOWN, NEW_SAMPLES = 12 };

/* Two new providers, whose points are not those of the run. */
static const char *write_new(void) {
    static char path[600];
    static const char *const names[NEW] = {"violet", "white"};
    fds_rng rng = fds_rng_make(8, 3000, 0, 0);
    snprintf(path, sizeof path, "%s", scratch_path("new.csv"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "a,b,c,d,label,provider\n");
    for (size_t i = 0; i < NEW_SAMPLES; i++) {
        float x[FEATURES];
        uint16_t label;
        cloud(&rng, NEW_SAMPLES - i, x, &label); /* classes come in another order */
        fprintf(file, "%.9g,%.9g,%.9g,%.9g,class %c,%s\n", (double)x[0], (double)x[1], (double)x[2],
                (double)x[3], 'x' + label, names[i % 3 == 0]);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static fds_params question_of(const char *path, size_t models, uint64_t seed) {
    fds_params p = fds__params_default(FDS__JOB_EXPLAIN);
    p.new_player = path;
    p.new_models = models;
    p.seed = seed;
    p.given[FDS__PLACE_seed] = true;
    return p;
}

static fds_input *asked_of(fds_run *run, const task *t) {
    uint32_t index[ASKED];
    fds_input *in = NULL;
    fds_error err;
    for (uint32_t i = 0; i < ASKED; i++)
        index[i] = PLAYERS + INPUTS + i;
    expect_ok(fds_input_samples(run, t->train, index, ASKED, &in, &err), &err);
    return in;
}

/* values, errors (ASKED, NEW) */
static void value(fds_run *run, const task *t, size_t models, uint64_t seed, double *values,
                  double *errors) {
    const fds_params p = question_of(write_new(), models, seed);
    fds_input *in = asked_of(run, t);
    fds_result *r = NULL;
    fds_error err;
    expect_ok(fds_run_explain(run, in, &p, NULL, &r, &err), &err);
    assert_int_equal(fds_result_players(r), NEW);
    for (size_t x = 0; x < ASKED; x++)
        for (size_t i = 0; i < NEW; i++) {
            values[x * NEW + i] = fds_result_value(r, x, i);
            errors[x * NEW + i] = fds_result_error(r, x, i);
        }
    fds_result_free(r);
    fds_input_free(in);
}

/* The exact values of each new player in the game of it and the known ones, by the definition, from
 * the utility function of the fit's settings and the service model's normalisation. */
static void exact_values(const task *t, const fds_run *run, double *out) {
    const fds__fit_settings s = settled(t);
    const fds__model_info info = fds__model_get_info(run->service);
    const fds__scale scale = {info.mean, info.std, 0, 1};
    fds__utility_params params = fds__fit_utility(&s);
    fds_dataset *more = NULL, *none = NULL, *all = NULL;
    bool keep[SAMPLES];
    uint32_t rows[PLAYERS + NEW_SAMPLES], asked[ASKED];
    static float probs[1 << (KNOWN + NEW)][ASKED * CLASSES];
    fds_players *players = NULL;
    fds_utility *utility = NULL;
    fds_error err;
    params.scale = &scale;
    memset(keep, true, sizeof keep);
    expect_ok(fds__data_open(write_new(), NULL, NULL, &more, &none, &err), &err);
    expect_ok(fds__dataset_select((const fds_dataset *const[]){t->train, more},
                                  (const bool *const[]){keep, keep}, 2, &all, &err),
              &err);
    for (uint32_t i = 0; i < PLAYERS + NEW_SAMPLES; i++)
        rows[i] = i < PLAYERS ? i : SAMPLES + i - PLAYERS;
    expect_ok(fds_players_providers(all, rows, COUNT(rows), &players, &err), &err);
    assert_int_equal(fds_players_count(players), KNOWN + NEW);
    assert_string_equal(fds_players_name(players, KNOWN), "violet"); /* behind those known */
    for (uint32_t i = 0; i < ASKED; i++)
        asked[i] = PLAYERS + INPUTS + i;
    expect_ok(fds__utility_create(&params, all, players, t->train, asked, ASKED, 1, &utility, &err),
              &err);
    for (uint64_t set = 0; set < COUNT(probs); set++)
        expect_ok(fds_utility_eval(utility, 0, &set, probs[set], &err), &err);
    for (size_t x = 0; x < ASKED; x++) {
        const float *full = probs[ALL - 1] + x * CLASSES;
        const uint32_t label = fds__argmax_f32(full, CLASSES);
        for (size_t i = 0; i < NEW; i++) {
            out[x * NEW + i] = 0;
            for (uint64_t set = 0; set < ALL; set++) {
                static const double factorial[] = {1, 1, 2, 6, 24, 120, 720};
                size_t size = fds_coalition_size(&set, KNOWN);
                double weight = factorial[size] * factorial[KNOWN - size] / factorial[KNOWN + 1];
                out[x * NEW + i] +=
                    weight * ((double)probs[set | 1u << (KNOWN + i)][x * CLASSES + label] -
                              (double)probs[set][x * CLASSES + label]);
            }
        }
    }
    fds_utility_free(utility);
    fds_players_free(players);
    fds_dataset_free(all);
    fds_dataset_free(more);
}

static void all_coalitions_give_the_exact_value(void **state) {
    (void)state;
    double exact[ASKED * NEW], values[ASKED * NEW], errors[ASKED * NEW];
    task t = task_providers("afds");
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    exact_values(&t, run, exact);
    for (size_t models = 0; models <= ALL + 5; models += ALL + 5) { /* 0: 32 is the default */
        value(run, &t, models, 1, values, errors);
        for (size_t k = 0; k < ASKED * NEW; k++) {
            assert_true(fabs(values[k] - exact[k]) < 1e-12);
            assert_true(errors[k] == 0);
        }
    }
    assert_true(fds__new_models_are_all(run->read.models));
    fds_run_free(run);
    task_free(&t);
}

static void the_mean_over_some_coalitions_is_unbiased(void **state) {
    (void)state;
    enum { SEEDS = 100 };
    double exact[ASKED * NEW], values[ASKED * NEW], errors[ASKED * NEW],
        sum[ASKED * NEW] = {0}, squares[ASKED * NEW] = {0}, worst = 0;
    size_t within = 0;
    task t = task_providers("afds");
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    exact_values(&t, run, exact);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        value(run, &t, 8, seed, values, errors);
        for (size_t k = 0; k < ASKED * NEW; k++) {
            sum[k] += values[k] / SEEDS;
            squares[k] += (values[k] - exact[k]) * (values[k] - exact[k]) / SEEDS;
            within += fabs(values[k] - exact[k]) <= 1.96 * errors[k];
        }
    }
    for (size_t k = 0; k < ASKED * NEW; k++)
        worst = fmax(worst, fabs(sum[k] - exact[k]) / sqrt(squares[k] / SEEDS));
    double share = (double)within / (ASKED * NEW * SEEDS);
    print_message("# the mean of %d estimates is off by at most %.1f of its standard errors; %.3f "
                  "within 1.96 stated ones\n",
                  SEEDS, worst, share);
    assert_true(worst < 4.5); /* the greatest of 20 that depend on each other */
    assert_true(share > 0.93);
    fds_run_free(run);
    task_free(&t);
}

static void the_number_of_threads_changes_no_bit(void **state) {
    (void)state;
    double values[3][ASKED * NEW], errors[3][ASKED * NEW];
    task t = task_providers("afds");
    fit(&t, scratch_path("run"));
    for (unsigned i = 0; i < 3; i++) {
        fds_run *run = NULL;
        fds_error err;
        expect_ok(fds__run_open(scratch_path("run"), 1u << i, &run, &err), &err);
        value(run, &t, 9, 4, values[i], errors[i]);
        fds_run_free(run);
        assert_memory_equal(values[i], values[0], sizeof *values);
        assert_memory_equal(errors[i], errors[0], sizeof *errors);
    }
    task_free(&t);
}

static void known_coalitions_have_the_sub_models_of_the_run(void **state) {
    (void)state;
    static float ours[INPUTS * CLASSES], theirs[INPUTS * CLASSES];
    double values[ASKED * NEW], errors[ASKED * NEW];
    uint32_t order[INPUTS];
    fds_error err;
    for (int m = 0; m < 3; m++) {
        task t = task_providers(m ? "afds" : "fds");
        if (!m) /* until they have converged */
            t.params.epochs = 0;
        t.params.optimizer = m == 2;
        fit(&t, scratch_path("run"));
        fds_run *run = open_run(scratch_path("run"));
        fds_utility *own = utility_of(&t, order);
        value(run, &t, ALL, 1, values, errors);
        const fds__new_models *models = run->read.models;
        const size_t weights = fds_net_weights(run->net);
        assert_memory_equal(models->weights + (ALL - 1) * (1 + NEW) * weights,
                            fds__model_weights(run->service), weights * sizeof(float));
        for (uint64_t set = 0; set < ALL; set++) {
            expect_ok(fds_utility_eval(own, 0, &set, theirs, &err), &err);
            expect_ok(fds_lane_predict(run->lane, own->data->inputs, 0, INPUTS,
                                       models->weights + set * (1 + NEW) * weights, ours, &err),
                      &err);
            assert_memory_equal(ours, theirs, sizeof ours);
        }
        fds_utility_free(own);
        fds_run_free(run);
        task_free(&t);
        remove_run(scratch_path("run"));
    }
}

static fds_status try_value(fds_run *run, const task *t, const fds_params *p,
                            const fds_events *events, fds_error *err) {
    fds_input *in = asked_of(run, t);
    fds_result *r = NULL;
    *err = (fds_error){0};
    fds_status status = fds_run_explain(run, in, p, events, &r, err);
    fds_result_free(r);
    fds_input_free(in);
    return status;
}

static void training_can_be_cancelled_and_asked_for_again(void **state) {
    (void)state;
    double values[ASKED * NEW], errors[ASKED * NEW];
    fds_error err;
    task t = task_providers("afds");
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    const fds_params p = question_of(write_new(), 9, 4);
    stopper s = {.stop_at = UINT64_MAX};
    const fds_events events = {.progress = stop, .user = &s};
    expect_ok(try_value(run, &t, &p, &events, &err), &err);
    const uint64_t calls = s.calls;
    assert_true(calls > 10);
    for (uint64_t at = 1; at < calls; at += 1 + calls / 12) {
        fds_run_free(run);
        run = open_run(scratch_path("run"));
        s = (stopper){.stop_at = at};
        expect_failure(try_value(run, &t, &p, &events, &err), FDS_ERR_CANCELLED, &err, "");
        value(run, &t, 9, 4, values, errors);
    }
    fds_run_free(run);
    task_free(&t);
}

/* Every allocation and file operation that fails is told, and the next question is answered. */
static void failures_are_told(void **state) {
    (void)state;
    double values[ASKED * NEW], errors[ASKED * NEW];
    task t = task_providers("afds");
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    const fds_params p = question_of(write_new(), 8, 4);
    fds_input *in = asked_of(run, &t);
    fds_error err;
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t nth = 1;; nth++) {
            fds_result *r = NULL;
            err = (fds_error){0};
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status = fds_run_explain(run, in, &p, NULL, &r, &err);
            bool has_struck = fds__fault_arm((fds__fault_kind)kind, 0) >= nth;
            fds_result_free(r);
            fds__new_players_free(&run->read);
            if (!has_struck)
                break;
            if (status != FDS_OK)
                expect_told((fds__fault_kind)kind, nth, status, &err);
        }
    value(run, &t, 8, 4, values, errors);
    fds_input_free(in);
    fds_run_free(run);
    task_free(&t);
}

static void other_data_is_refused(void **state) {
    (void)state;
    fds_error err;
    task t = task_providers("afds");
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    fds_params p = question_of(write_new(), 8, 4);
    const char *data = scratch_path("providers.csv");
    size_t size;
    char *text = scratch_read(data, &size), *row = text;
    for (int line = 0; line < 11; line++)
        row = strchr(row, '\n') + 1;
    row[strcspn(row, ".") + 1] ^= 1; /* a digit of the tenth sample, which is no player's first */
    scratch_write(data, text, size);
    expect_failure(try_value(run, &t, &p, NULL, &err), FDS_ERR_USAGE, &err, "checksum");
    row[strcspn(row, ".") + 1] ^= 1;
    scratch_write(scratch_path("moved.csv"), text, size);
    assert_int_equal(remove(data), 0);
    expect_failure(try_value(run, &t, &p, NULL, &err), FDS_ERR_NOT_FOUND, &err, "`data`");
    p.data = scratch_path("moved.csv");
    expect_ok(try_value(run, &t, &p, NULL, &err), &err);
    free(text);
    p = question_of(NULL, 8, 4);
    expect_failure(try_value(run, &t, &p, NULL, &err), FDS_ERR_USAGE, &err, "`new_player`");
    fds_params *named = fds_params_create("explain");
    assert_int_equal(fds_params_set(named, "new_models", "7", &err), FDS_ERR_USAGE);
    expect_in(err.text, "8");
    fds_params_free(named);
    fds_run_free(run);
    task_free(&t);
}

/* What would otherwise be told after hours of training. */
static void mistakes_are_found_before_anything_is_trained(void **state) {
    (void)state;
    static const float pixels[4 * PLAYERS];
    static const uint16_t labels[PLAYERS];
    fds_error err;
    task t = task_providers("afds");
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    fds_params p = question_of(write_new(), 8, 4);
    p.explained_label = "nonsense";
    expect_failure(try_value(run, &t, &p, NULL, &err), FDS_ERR_USAGE, &err, "`target`");
    assert_true(run->read.count == 0);
    p.explained_label = NULL;
    fds_dataset *other = NULL;
    fds_result *r = NULL;
    expect_ok(fds__dataset_create(PLAYERS, (fds_shape){2, 1, 1}, NULL, pixels, labels, CLASSES,
                                  NULL, &other, &err),
              &err);
    fds_input odd = {.ds = other, .index = (uint32_t[]){0}, .count = 1};
    err = (fds_error){0};
    expect_failure(fds_run_explain(run, &odd, &p, NULL, &r, &err), FDS_ERR_SHAPE, &err, "2x1x1");
    assert_true(run->read.count == 0);
    p.new_models = (size_t)1 << 20;
    assert_int_equal(remove(scratch_path("providers.csv")), 0); /* nor has it been read */
    expect_failure(try_value(run, &t, &p, NULL, &err), FDS_ERR_LIMIT, &err, "`new_models`");
    fds_dataset_free(other);
    fds_run_free(run);
    task_free(&t);
}

/* The share of the time of a question that its answer tells. */
static double told_share(fds_run *run, const task *t, uint64_t seed) {
    const fds_params p = question_of(write_new(), ALL, seed);
    fds_input *in = asked_of(run, t);
    fds_result *r = NULL;
    json_t *about = NULL;
    fds_error err;
    const double start_s = fds__now_s();
    expect_ok(fds_run_explain(run, in, &p, NULL, &r, &err), &err);
    const double elapsed_s = fds__now_s() - start_s;
    const char *text = fds_result_describe(r);
    expect_ok(fds__json_parse("result", text, strlen(text), &about, &err), &err);
    const double seconds = json_number_value(json_object_get(about, "seconds"));
    assert_true(seconds <= elapsed_s);
    json_decref(about);
    fds_result_free(r);
    fds_input_free(in);
    return seconds / elapsed_s;
}

static void the_time_of_an_answer_includes_training(void **state) {
    (void)state;
    double most = 0;
    task t = task_providers("afds");
    fit(&t, scratch_path("run"));
    fds_run *run = open_run(scratch_path("run"));
    for (uint64_t seed = 0; seed < 5; seed++) /* each trains anew; other programs may run between */
        most = fmax(most, told_share(run, &t, seed));
    assert_true(most > 0.5);
    fds_run_free(run);
    task_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(all_coalitions_give_the_exact_value),
        IN_SCRATCH(the_mean_over_some_coalitions_is_unbiased),
        IN_SCRATCH(the_number_of_threads_changes_no_bit),
        IN_SCRATCH(known_coalitions_have_the_sub_models_of_the_run),
        IN_SCRATCH(training_can_be_cancelled_and_asked_for_again),
        IN_SCRATCH(failures_are_told),
        IN_SCRATCH(other_data_is_refused),
        IN_SCRATCH(mistakes_are_found_before_anything_is_trained),
        IN_SCRATCH(the_time_of_an_answer_includes_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
