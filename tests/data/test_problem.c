/* SPDX-License-Identifier: Apache-2.0
 * Problems: players, test samples and training inputs are the nested balanced choices that version
 * 0.1 made, limits are reported before any work, and so is what is missing. */
#include "problem_fixture.h"

/* ---- what version 0.1 chose ---- */

/* A sample's place in the nested choices: of a choice of n samples are those with a place below. */
static uint32_t *places_of(const fds_dataset *ds, uint64_t seed) {
    size_t count = fds_dataset_count(ds);
    uint32_t *places = need(count, sizeof *places), *chosen = need(count, sizeof *chosen);
    fds_error err = {0};
    memset(places, 0xff, count * sizeof *places);
    for (size_t n = 1; n <= count; n++) {
        expect_ok(fds_split_balanced(ds, n, seed, chosen, &err), &err);
        size_t fresh = 0;
        for (size_t i = 0; i < n; i++)
            if (places[chosen[i]] == UINT32_MAX) {
                places[chosen[i]] = (uint32_t)n - 1;
                fresh++;
            }
        assert_int_equal(fresh, 1); /* nested */
    }
    free(chosen);
    return places;
}

/* The samples with places from first to first + count - 1, ascending. */
static void expect_choice(const uint32_t *places, size_t all, size_t first, size_t count,
                          const uint32_t *got, size_t got_count) {
    assert_int_equal(got_count, count);
    size_t at = 0;
    for (size_t i = 0; i < all; i++)
        if (places[i] >= first && places[i] - first < count) {
            assert_true(at < got_count);
            assert_int_equal(got[at++], i);
        }
    assert_int_equal(at, count);
}

typedef struct {
    size_t held, tests, players, inputs;
} sizes;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* The numbers, by the rules of version 0.1. */
static sizes sizes_of(const fds_dataset *train, const fds_dataset *test, const fds_params *p) {
    bool has_inputs = p->job == FDS__JOB_FIT || p->job == FDS__JOB_BENCH;
    bool is_bench = p->job == FDS__JOB_BENCH;
    size_t test_most = p->job == FDS__JOB_VALUE ? 200 : is_bench ? (p->quick ? 20 : 200) : SIZE_MAX;
    size_t player_most = p->quick ? 30 : 100;
    size_t input_most = is_bench ? (p->quick ? 300 : 2000) : 3000;
    size_t count = fds_dataset_count(train), by_class[CLASSES] = {0}, smallest = SIZE_MAX;
    sizes s = {0};
    for (size_t i = 0; i < count; i++)
        by_class[fds_dataset_label(train, i)]++;
    for (size_t c = 0; c < CLASSES; c++)
        if (by_class[c] >= 2)
            smallest = least(smallest, by_class[c]);
    if (!test) {
        s.held = least(count / 5, smallest / 2 * CLASSES);
        s.held = p->test ? p->test : s.held ? s.held : 1;
    }
    s.tests = p->test ? p->test : least(test_most, test ? fds_dataset_count(test) : s.held);
    size_t have = count - s.held;
    bool is_number = p->players && p->players[0] >= '0' && p->players[0] <= '9';
    if (is_number)
        s.players = strtoul(p->players, NULL, 10);
    else if (!p->players)
        s.players = least(has_inputs ? have / 2 : have, player_most);
    else if (has_inputs)
        s.players = have - (p->inputs ? p->inputs : least(have / 5, input_most));
    else
        s.players = have;
    if (has_inputs)
        s.inputs = p->inputs ? p->inputs : least(have - s.players, input_most);
    return s;
}

static void expect_owners(const fds_problem *p, bool by_provider) {
    const fds_dataset *ds = p->train;
    size_t next = 0, total = 0;
    assert_true(p->by_provider == by_provider);
    for (size_t i = 0; i < fds_problem_players(p); i++) {
        const uint32_t *index;
        size_t count = fds_players_samples(p->players, i, &index), counts[CLASSES] = {0};
        for (size_t k = 0; k < count; k++) {
            counts[fds_dataset_label(ds, index[k])]++;
            if (by_provider)
                assert_string_equal(
                    fds_dataset_provider_name(ds, fds_dataset_provider(ds, index[k])),
                    fds_problem_player(p, i));
        }
        if (!by_provider) {
            assert_int_equal(count, 1);
            assert_int_equal(index[0], p->samples[next++]);
        }
        for (uint32_t c = 0; c < CLASSES; c++) /* the most frequent label, the lowest of several */
            assert_true(counts[p->player_labels[i]] > counts[c] ||
                        (counts[p->player_labels[i]] == counts[c] && p->player_labels[i] <= c));
        total += count;
    }
    assert_int_equal(total, p->sample_count);
}

static void expect_problem(const fds_dataset *train, const fds_dataset *test,
                           const fds_params *params, const uint32_t *places,
                           const uint32_t *test_places) {
    sizes s = sizes_of(train, test, params);
    size_t count = fds_dataset_count(train);
    fds_problem *p = make_problem(train, test, params);
    assert_int_equal(p->set_aside, s.held);
    assert_int_equal(fds_problem_tests(p), s.tests);
    expect_choice(test ? test_places : places, fds_dataset_count(test ? test : train), 0, s.tests,
                  p->tests, p->test_count);
    expect_choice(places, count, s.held, s.players, p->samples, p->sample_count);
    expect_choice(places, count, s.held + s.players, s.inputs, p->inputs, p->input_count);
    for (size_t i = 0; i < p->test_count; i++)
        assert_int_equal(p->test_labels[i], fds_dataset_label(p->test, p->tests[i]));
    assert_ptr_equal(fds_problem_train(p), train);
    assert_ptr_equal(fds_problem_test(p), test ? test : train);
    expect_owners(p, params->players && strcmp(params->players, "providers") == 0);
    fds_problem_free(p);
}

static void choices_are_those_of_version_0_1(void **state) {
    (void)state;
    static const char *const jobs[] = {"train", "shapley", "baseline", "fit", "bench"};
    static const char *const players[] = {NULL, "all", "providers", "1", "37"};
    static const char *const tests[] = {NULL, "1", "23"};
    static const char *const inputs[] = {NULL, "10", "31"};
    static const char *const seeds[] = {"0", "9007199254740991"};
    const size_t counts[] = {160, 340};
    for (size_t n = 0; n < COUNT(counts); n++)
        for (size_t s = 0; s < COUNT(seeds); s++) {
            fds_dataset *train = make_data(counts[n], true), *test = make_data(57, true);
            uint64_t seed = strtoull(seeds[s], NULL, 10);
            uint32_t *places = places_of(train, seed), *test_places = places_of(test, seed);
            for (size_t way = 0; way < COUNT(jobs) * COUNT(players) * COUNT(tests) * 3 * 4; way++) {
                size_t left = way;
                const char *job = jobs[left % COUNT(jobs)];
                const char *who = players[(left /= COUNT(jobs)) % COUNT(players)];
                const char *tested = tests[(left /= COUNT(players)) % COUNT(tests)];
                const char *learnt = inputs[(left /= COUNT(tests)) % COUNT(inputs)];
                bool has_test = (left /= COUNT(inputs)) % 2, is_quick = left / 2;
                bool has_inputs = strcmp(job, "fit") == 0 || strcmp(job, "bench") == 0;
                if ((learnt && !has_inputs) || (is_quick && strcmp(job, "bench") != 0))
                    continue;
                fds_params *p = PARAMS(job, "seed", seeds[s]);
                fds_error err = {0};
                if (who)
                    expect_ok(fds_params_set(p, "players", who, &err), &err);
                if (tested)
                    expect_ok(fds_params_set(p, "test", tested, &err), &err);
                if (learnt)
                    expect_ok(fds_params_set(p, "inputs", learnt, &err), &err);
                if (is_quick)
                    expect_ok(fds_params_set(p, "quick", "true", &err), &err);
                expect_problem(train, has_test ? test : NULL, p, places, test_places);
                fds_params_free(p);
            }
            free(places);
            free(test_places);
            fds_dataset_free(train);
            fds_dataset_free(test);
        }
}

/* The numbers that the help promises, where the data has enough. */
static void large_data_gives_the_default_numbers(void **state) {
    (void)state;
    static const struct {
        const char *job;
        bool is_quick;
        size_t players, tests, inputs;
    } cases[] = {{"train", false, 100, 1000, 0},   {"shapley", false, 100, 200, 0},
                 {"baseline", false, 100, 200, 0}, {"fit", false, 100, 1000, 6000},
                 {"bench", false, 100, 200, 2000}, {"bench", true, 30, 20, 300}};
    fds_dataset *train = make_data(8000, false), *test = make_data(1000, false);
    for (size_t i = 0; i < COUNT(cases); i++) {
        fds_params *params = fds_params_create(cases[i].job);
        params->quick = cases[i].is_quick;
        fds_problem *p = make_problem(train, test, params);
        assert_int_equal(fds_problem_players(p), cases[i].players);
        assert_int_equal(fds_problem_tests(p), cases[i].tests);
        assert_int_equal(p->input_count, cases[i].inputs);
        fds_problem_free(p);
        params->players = "all";
        p = make_problem(train, test, params);
        size_t spared = cases[i].inputs ? least(cases[i].inputs, 1600) : 0; /* at most a fifth */
        assert_int_equal(fds_problem_players(p), 8000 - spared);
        assert_int_equal(p->input_count, spared);
        fds_problem_free(p);
        fds_params_free(params);
    }
    fds_dataset_free(train);
    fds_dataset_free(test);
}

/* Where a class is small it keeps half of its samples. */
static void testing_leaves_half_of_a_small_class(void **state) {
    (void)state;
    fds_dataset *ds = make_data(100, false);
    size_t small = 0;
    for (size_t i = 0; i < 100; i++) /* of class 3 only four are left, one more class has one */
        if (ds->labels[i] == 3 && ++small > 4)
            ds->labels[i] = 0;
    fds_params *params = fds_params_create("train");
    fds_problem *p = make_problem(ds, NULL, params);
    assert_int_equal(p->set_aside, 8); /* two of each class; a fifth would be 20 */
    size_t of_small = 0;
    for (size_t i = 0; i < p->test_count; i++)
        of_small += p->test_labels[i] == 3;
    assert_int_equal(of_small, 2);
    fds_problem_free(p);
    for (size_t i = 0; i < 100; i++)
        ds->labels[i] = i == 50; /* a class of one sample does not count */
    p = make_problem(ds, NULL, params);
    assert_int_equal(p->set_aside, 20);
    fds_problem_free(p);
    fds_params_free(params);
    fds_dataset_free(ds);
}

/* ---- limits ---- */

static void refuse_status(const fds_dataset *train, const fds_dataset *test, fds_params *params,
                          fds_status status, const char *text) {
    fds_problem *p = NULL;
    fds_error err = {0};
    fds_status got = fds_problem_create(train, test, params, NULL, &p, &err);
    if (got != status)
        fail_msg("%s, not %s: %s", fds_status_name(got), fds_status_name(status), err.text);
    assert_string_equal(err.text, text);
    assert_null(p);
    fds_params_free(params);
}

static void refuse(const fds_dataset *train, const fds_dataset *test, fds_params *params,
                   const char *text) {
    refuse_status(train, test, params, FDS_ERR_USAGE, text);
}

static void too_many_are_refused_and_the_most_is_told(void **state) {
    (void)state;
    fds_dataset *train = make_data(100, false), *test = make_data(20, false), *one, *four;
    refuse(train, test, PARAMS("shapley", "players", "101"),
           "`players` must be at most 100, the number of samples (got 101)");
    refuse(train, NULL, PARAMS("shapley", "players", "81"),
           "`players` must be at most 80, the number of samples besides the test samples (got 81)");
    refuse(train, test, PARAMS("shapley", "players", "4294967295"),
           "`players` must be at most 100, the number of samples (got 4294967295)");
    refuse(train, test, PARAMS("shapley", "test", "21"),
           "`test` must be at most 20, the size of the test part (got 21)");
    refuse(train, NULL, PARAMS("train", "test", "100"),
           "memory has 100 samples and no test part: 100 test samples leave none to learn from");
    refuse(train, NULL, PARAMS("train", "test", "4294967295"),
           "memory has 100 samples and no test part: 4294967295 test samples leave none to learn "
           "from");
    refuse(train, test, PARAMS("fit", "players", "90", "inputs", "11"),
           "`inputs` must be at most 10, the number of samples besides those of the players (got "
           "11); choose fewer `players`");
    refuse(
        train, NULL, PARAMS("fit", "players", "70", "inputs", "11"),
        "`inputs` must be at most 10, the number of samples besides those of the players and the "
        "test samples (got 11); choose fewer `players`");
    refuse(train, test, PARAMS("fit", "players", "100"),
           "`players` leaves no samples for an explainer to learn from; choose fewer");
    refuse(
        train, test, PARAMS("fit", "players", "all", "inputs", "100"),
        "`inputs` must be below 100, the number of samples, because players need some (got 100)");
    refuse(train, NULL, PARAMS("bench", "players", "all", "inputs", "10000000"),
           "`inputs` must be below 80, the number of samples, because players need some (got "
           "10000000)");
    one = make_data(1, false);
    four = make_data(4, false);
    refuse(one, NULL, fds_params_create("shapley"),
           "memory has 1 samples and no test part: 1 test samples leave none to learn from");
    refuse(one, test, fds_params_create("fit"),
           "1 samples are too few for players and an explainer");
    refuse(four, test, PARAMS("fit", "players", "all"),
           "`players` leaves no samples for an explainer to learn from; choose fewer");
    fds_dataset_free(one);
    fds_dataset_free(four);
    fds_dataset_free(train);
    fds_dataset_free(test);
}

static void everything_may_be_used_up(void **state) {
    (void)state;
    fds_dataset *train = make_data(100, false), *test = make_data(20, false);
    fds_params *params = PARAMS("fit", "players", "90", "inputs", "10", "test", "20");
    fds_problem *p = make_problem(train, test, params);
    assert_int_equal(p->sample_count + p->input_count, 100);
    fds_problem_free(p);
    fds_params_free(params);
    params = PARAMS("shapley", "players", "1", "test", "99");
    p = make_problem(train, NULL, params);
    assert_true(p->test_count == 99 && p->sample_count == 1);
    fds_problem_free(p);
    fds_params_free(params);
    fds_dataset_free(train);
    fds_dataset_free(test);
}

static void players_are_a_number_all_or_providers(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "0", "-1", "+5", "5.0", " 5", "5 ", "1e2", "4294967296", "some", "99999999999999999999999"};
    fds_dataset *train = make_data(50, false);
    char text[160];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        snprintf(text, sizeof text,
                 "`players` must be a whole number from 1, all or providers (got %s)", wrong[i]);
        refuse(train, NULL, PARAMS("shapley", "players", wrong[i]), text);
    }
    refuse(train, NULL, PARAMS("shapley", "players", "provider"),
           "`players` must be a whole number from 1, all or providers (got provider); did you mean "
           "\"providers\"?");
    refuse(train, NULL, PARAMS("shapley", "players", "providers"),
           "memory has no providers; a CSV file names them in a column \"provider\", folders of "
           "pictures as PROVIDER/CLASS/NAME.png, and any data with --owners FILE");
    fds_dataset_free(train);
}

static void other_test_data_is_refused(void **state) {
    (void)state;
    static const float floats[6] = {0};
    static const uint8_t bytes[6] = {0};
    static const uint16_t labels[3] = {0, 1, 2};
    static const char *const swapped[CLASSES] = {"dog", "cat", "owl", "f\xc3\xbcnf"};
    fds_arrays arrays = {.count = 3,
                         .shape = {2, 1, 1},
                         .floats = floats,
                         .labels = labels,
                         .classes = CLASSES,
                         .class_names = class_names};
    fds_dataset *train = make_data(50, false), *test;
    fds_error err = {0};
    arrays.shape = (fds_shape){1, 2, 1};
    expect_ok(fds_dataset_create(&arrays, &test, &err), &err);
    refuse_status(train, test, fds_params_create("shapley"), FDS_ERR_SHAPE,
                  "memory: training samples are 2 x 1 x 1, test samples 1 x 2 x 1");
    fds_dataset_free(test);
    arrays.shape = (fds_shape){2, 1, 1};
    arrays.floats = NULL;
    arrays.bytes = bytes;
    expect_ok(fds_dataset_create(&arrays, &test, &err), &err);
    refuse_status(train, test, fds_params_create("shapley"), FDS_ERR_SHAPE,
                  "memory: training samples are floats, test samples bytes");
    fds_dataset_free(test);
    arrays.floats = floats;
    arrays.bytes = NULL;
    arrays.classes = 3;
    expect_ok(fds_dataset_create(&arrays, &test, &err), &err);
    refuse_status(train, test, fds_params_create("shapley"), FDS_ERR_SHAPE,
                  "training samples have 4 classes, test samples 3");
    fds_dataset_free(test);
    arrays.classes = CLASSES;
    arrays.class_names = swapped;
    expect_ok(fds_dataset_create(&arrays, &test, &err), &err);
    refuse_status(train, test, fds_params_create("shapley"), FDS_ERR_SHAPE,
                  "class 0 is \"cat\" in the training data, \"dog\" in the test data");
    fds_dataset_free(test);
    refuse(NULL, NULL, fds_params_create("shapley"),
           "a problem needs training data and parameters");
    refuse(train, NULL, NULL, "a problem needs training data and parameters");
    fds_dataset_free(train);
}

/* ---- warnings ---- */

static void expect_told(const fds_dataset *train, const fds_dataset *test, fds_params *params,
                        const char *text) {
    fds_problem *p = NULL;
    fds_error err = {0};
    logged[0] = 0;
    expect_ok(fds_problem_create(train, test, params, &listening, &p, &err), &err);
    assert_string_equal(logged, text);
    fds_problem_free(p);
    fds_params_free(params);
}

static void what_is_missing_is_said(void **state) {
    (void)state;
    fds_dataset *train = make_data(100, true), *test = make_data(20, true);
    expect_told(train, test, fds_params_create("shapley"), "");
    expect_told(train, NULL, fds_params_create("shapley"),
                "note: the data has no test part: 20 samples are set aside for testing\n");
    expect_told(train, test, PARAMS("shapley", "players", "3"),
                "warning: 1 of 4 classes have no sample to learn from, the first is \"dog\"\n");
    expect_told(train, test, PARAMS("shapley", "players", "providers"),
                "warning: 2 of 6 providers have no sample to learn from: all of theirs are test "
                "samples\n");
    /* all of 3, 4 and 5 but a few of 0 are for testing or for the explainer */
    for (size_t i = 0; i < 100; i++)
        train->provider_ids[i] = i < 96;
    fds_params *params = PARAMS("fit", "players", "providers", "inputs", "70");
    fds_problem *p = make_problem(train, test, params);
    size_t players = fds_problem_players(p);
    fds_problem_free(p);
    char text[200];
    snprintf(text, sizeof text,
             "warning: %zu of 6 providers have no sample to learn from: all of theirs are test "
             "samples or training inputs of the explainer\n",
             6 - players);
    expect_told(train, test, params, text);
    fds_dataset_free(train);
    fds_dataset_free(test);
}

/* ---- inputs of the test part ---- */

static void inputs_of_the_test_part_leave_players_all_of_their_samples(void **state) {
    (void)state;
    fds_dataset *train = make_data(100, true), *test = make_data(60, true);
    for (int is_proportional = 0; is_proportional < 2; is_proportional++) {
        fds_params *params = PARAMS("fit", "players", "providers", "inputs_from", "test", "inputs",
                                    "20", "test_balance", is_proportional ? "no" : "yes");
        fds_problem *p = make_problem(train, test, params);
        assert_int_equal(p->sample_count, 100);
        assert_ptr_equal(fds__problem_input_data(p), test);
        assert_int_equal(p->input_count, 20);
        assert_int_equal(p->test_count, 40); /* all others */
        size_t by_class[CLASSES] = {0};
        for (size_t i = 0; i < p->input_count; i++)
            by_class[test->labels[p->inputs[i]]]++;
        assert_true(by_class[0] == 5 && by_class[1] == 5 && by_class[2] == 5 && by_class[3] == 5);
        for (size_t i = 0; i < p->test_count; i++) {
            assert_false(fds__samples_has(p->inputs, p->input_count, p->tests[i]));
            assert_int_equal(p->test_labels[i], test->labels[p->tests[i]]);
        }
        fds_problem_free(p);
        fds_params_free(params);
    }
    fds_params *params = PARAMS("fit", "inputs_from", "test");
    fds_problem *p = make_problem(train, test, params);
    assert_true(p->sample_count == 100 && p->input_count == 30 && p->test_count == 30);
    fds_problem_free(p);
    fds_params_free(params);
    params = PARAMS("fit", "players", "50");
    p = make_problem(train, test, params);
    assert_ptr_equal(fds__problem_input_data(p), train);
    fds_problem_free(p);
    fds_params_free(params);
    refuse(train, test, PARAMS("fit", "inputs_from", "test", "inputs", "60"),
           "`inputs` must be below 60, the size of the test part (got 60)");
    refuse(train, test, PARAMS("fit", "inputs_from", "test", "inputs", "50", "test", "11"),
           "`test` must be at most 10, the size of the test part without the training inputs (got "
           "11)");
    refuse(train, NULL, PARAMS("fit", "inputs_from", "test"),
           "`inputs_from` test: memory has no test part");
    fds_dataset_free(train);
    fds_dataset_free(test);
}

/* ---- frequencies of classes ---- */

static void tests_may_follow_the_frequencies_of_classes(void **state) {
    (void)state;
    fds_dataset *ds = make_data(200, false);
    for (int has_part = 0; has_part < 2; has_part++) {
        fds_params *params = PARAMS("fit", "test_balance", "no", "test", "50", "players", "60");
        fds_problem *p = make_problem(ds, has_part ? ds : NULL, params);
        size_t counts[CLASSES] = {0};
        for (size_t i = 0; i < p->test_count; i++)
            counts[p->test_labels[i]]++;
        assert_true(counts[0] == 20 && counts[1] == 15 && counts[2] == 10 && counts[3] == 5);
        for (size_t i = 0; !has_part && i < p->test_count; i++) {
            assert_false(fds__samples_has(p->samples, p->sample_count, p->tests[i]));
            assert_false(fds__samples_has(p->inputs, p->input_count, p->tests[i]));
        }
        size_t players[CLASSES] = {0}; /* these are still balanced */
        for (size_t i = 0; i < p->sample_count; i++)
            players[ds->labels[p->samples[i]]]++;
        assert_true(players[0] == players[1] && players[1] == players[2] && players[3] == 15);
        assert_non_null(strstr(fds_problem_describe(p), "\"tests_balanced\": false"));
        fds_problem_free(p);
        fds_params_free(params);
    }
    fds_params *params = PARAMS("value", "test_balance", "no", "players", "all");
    fds_problem *p = make_problem(ds, NULL, params);
    assert_int_equal(p->test_count, 40); /* a fifth */
    assert_int_equal(p->sample_count, 160);
    fds_problem_free(p);
    fds_params_free(params);
    fds_dataset_free(ds);
}

/* ---- what it holds ---- */

static void a_problem_describes_itself(void **state) {
    (void)state;
    fds_dataset *train = make_data(100, true), *test = make_data(20, true);
    fds_params *params = PARAMS("fit", "players", "providers");
    fds_problem *p = make_problem(train, NULL, params);
    expect_described(p, "providers");
    assert_string_equal(fds_problem_player(p, fds_problem_players(p)), "?");
    fds_problem_free(p);
    fds_params_free(params);
    params = fds_params_create("shapley");
    p = make_problem(train, test, params);
    expect_described(p, "samples");
    fds_problem_free(p);
    fds_params_free(params);
    fds_problem_free(NULL);
    fds_dataset_free(train);
    fds_dataset_free(test);
}

static void results_have_the_names_of_the_problem(void **state) {
    (void)state;
    fds_dataset *train = make_data(100, true);
    for (int way = 0; way < 2; way++) {
        fds_params *params = PARAMS("shapley", "players", way ? "providers" : "40");
        fds_problem *p = make_problem(train, NULL, params);
        fds_result *r = NULL;
        fds_error err = {0};
        expect_ok(fds__problem_result(p, "ls", 2, &r, &err), &err);
        assert_int_equal(fds_result_players(r), fds_problem_players(p));
        for (size_t i = 0; i < fds_result_players(r); i++) {
            const uint32_t *index;
            size_t samples = fds_players_samples(p->players, i, &index);
            assert_string_equal(fds_result_player(r, i), fds_problem_player(p, i));
            assert_string_equal(fds_result_player_label(r, i), class_names[p->player_labels[i]]);
            assert_string_equal(fds_result_provider(r, i),
                                provider_names[fds_dataset_provider(train, index[0])]);
            assert_int_equal(r->player_sizes[i], samples);
            if (way)
                assert_null(fds__player_provider(p, i));
            else
                assert_string_equal(fds__player_provider(p, i), fds_result_provider(r, i));
        }
        fds_result_free(r);
        fds_problem_free(p);
        fds_params_free(params);
    }
    fds_dataset_free(train);
}

int main(void) {
    json_set_alloc_funcs(fds__alloc, fds__free);
    const struct CMUnitTest tests[] = {
        TEST(choices_are_those_of_version_0_1),
        TEST(large_data_gives_the_default_numbers),
        TEST(testing_leaves_half_of_a_small_class),
        TEST(too_many_are_refused_and_the_most_is_told),
        TEST(everything_may_be_used_up),
        TEST(players_are_a_number_all_or_providers),
        TEST(other_test_data_is_refused),
        TEST(what_is_missing_is_said),
        TEST(inputs_of_the_test_part_leave_players_all_of_their_samples),
        TEST(tests_may_follow_the_frequencies_of_classes),
        TEST(a_problem_describes_itself),
        TEST(results_have_the_names_of_the_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
