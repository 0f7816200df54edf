/* SPDX-License-Identifier: Apache-2.0
 * Problems: players, test samples and training inputs are the nested balanced choices that version
 * 0.1 made, limits are reported before any work, and so is what is missing. */
#include "fixture.h"

#include "../base/faults.h"

#include <math.h>

/* ---- data in memory ---- */

enum { CLASSES = 4, PROVIDERS = 6 };
static const char *const class_names[CLASSES] = {"cat", "dog", "owl", "f\xc3\xbcnf"};
static const char *const provider_names[PROVIDERS] = {
    "A", "a", "A ", "M\xc3\xbcller", "M\xc3\xb6ller", "last"};

/* Two features; classes of 40, 30, 20 and 10 % of the samples; providers of uneven sizes. */
static fds_dataset *make_data(size_t count, bool has_providers) {
    float *floats = need(count, 2 * sizeof *floats);
    uint16_t *labels = need(count, sizeof *labels);
    uint32_t *providers = need(count, sizeof *providers);
    for (size_t i = 0; i < count; i++) {
        static const uint16_t pattern[] = {0, 1, 0, 2, 1, 0, 3, 2, 1, 0};
        labels[i] = pattern[i % 10];
        providers[i] = (uint32_t)(i * i % 7 % PROVIDERS); /* some have many, some none */
        floats[2 * i] = (float)i;
        floats[2 * i + 1] = (float)labels[i];
    }
    fds_arrays arrays = {.count = count,
                         .shape = {2, 1, 1},
                         .floats = floats,
                         .labels = labels,
                         .classes = CLASSES,
                         .class_names = class_names,
                         .providers = has_providers ? providers : NULL,
                         .provider_count = PROVIDERS,
                         .provider_names = provider_names};
    fds_dataset *ds = NULL;
    fds_error err = {0};
    expect_ok(fds_dataset_create(&arrays, &ds, &err), &err);
    memset(floats, 0, 2 * count * sizeof *floats); /* all was copied */
    free(floats);
    free(labels);
    free(providers);
    return ds;
}

static fds_params *make_params(const char *job, const char *const *pairs) {
    fds_params *p = fds_params_create(job);
    fds_error err = {0};
    assert_non_null(p);
    for (; pairs && *pairs; pairs += 2)
        expect_ok(fds_params_set(p, pairs[0], pairs[1], &err), &err);
    return p;
}
#define PARAMS(job, ...) make_params(job, (const char *const[]){__VA_ARGS__, NULL})

static fds_problem *make_problem(const fds_dataset *train, const fds_dataset *test,
                                 const fds_params *params) {
    fds_problem *p = NULL;
    fds_error err = {0};
    expect_ok(fds_problem_create(train, test, params, NULL, &p, &err), &err);
    return p;
}

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

static char logged[2048];

static void on_log(void *user, fds_log_level level, const char *text) {
    (void)user;
    size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s: %s\n",
             level == FDS_LOG_WARNING ? "warning" : "note", text);
}

static const fds_events listening = {.log = on_log};

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

static void expect_described(const fds_problem *p, const char *kind) {
    json_t *root = json_loads(fds_problem_describe(p), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    const json_t *players = json_object_get(root, "players");
    assert_int_equal(json_object_size(root), 7);
    assert_true(json_is_true(json_object_get(root, "tests_balanced")) == !p->is_proportional);
    assert_string_equal(json_string_value(json_object_get(root, "task")), "classification");
    assert_string_equal(json_string_value(json_object_get(root, "data")), p->train->source);
    assert_string_equal(json_string_value(json_object_get(players, "kind")), kind);
    assert_int_equal(json_integer_value(json_object_get(players, "count")), fds_problem_players(p));
    assert_int_equal(json_integer_value(json_object_get(players, "samples")), p->sample_count);
    assert_int_equal(json_integer_value(json_object_get(root, "tests")), p->test_count);
    assert_int_equal(json_integer_value(json_object_get(root, "inputs")), p->input_count);
    assert_true(json_is_true(json_object_get(root, "tests_set_aside")) == (p->test == p->train));
    json_decref(root);
    assert_ptr_equal(fds_problem_describe(p), fds_problem_describe(p));
}

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

/* ---- datasets from arrays ---- */

static void arrays_are_copied_and_asked(void **state) {
    (void)state;
    fds_dataset *ds = make_data(30, true), *plain = make_data(30, false);
    assert_string_equal(fds_dataset_source(ds), "memory");
    assert_int_equal(fds_dataset_count(ds), 30);
    assert_int_equal(fds_dataset_classes(ds), CLASSES);
    assert_int_equal(fds_dataset_providers(ds), PROVIDERS);
    assert_int_equal(fds_dataset_providers(plain), 0);
    assert_false(fds_dataset_is_image(ds) || fds_dataset_is_bytes(ds));
    assert_int_equal(fds_dataset_shape(ds).channels, 2);
    for (size_t i = 0; i < 30; i++) {
        float sample[2];
        fds_dataset_sample(ds, i, sample);
        assert_true(sample[0] == (float)i && sample[1] == (float)fds_dataset_label(ds, i));
        assert_int_equal(fds_dataset_provider(ds, i), i * i % 7 % PROVIDERS);
        assert_int_equal(fds_dataset_provider(plain, i), 0);
    }
    assert_string_equal(fds_dataset_class_name(ds, 3), "f\xc3\xbcnf");
    assert_string_equal(fds_dataset_provider_name(ds, 2), "A ");
    assert_string_equal(fds_dataset_class_name(ds, CLASSES), "?");
    assert_string_equal(fds_dataset_provider_name(ds, PROVIDERS), "?");
    assert_string_equal(fds_dataset_provider_name(plain, 0), "?");
    assert_int_equal(fds_dataset_label(ds, 30) + fds_dataset_provider(ds, SIZE_MAX), 0);
    fds_dataset_free(ds);
    fds_dataset_free(plain);
}

static void refuse_arrays(const fds_arrays *arrays, fds_status status, const char *part) {
    fds_dataset *ds = NULL;
    fds_error err = {0};
    assert_int_equal(fds_dataset_create(arrays, &ds, &err), status);
    expect_in(err.text, part);
    assert_null(ds);
}

static void wrong_arrays_are_refused(void **state) {
    (void)state;
    static const uint8_t bytes[4] = {0};
    static const float bad[4] = {0, 1, NAN, 0};
    static const uint16_t labels[4] = {0, 1, 1, 0};
    static const uint32_t providers[4] = {0, 1, 2, 0};
    const fds_arrays fine = {.count = 4,
                             .shape = {1, 1, 1},
                             .bytes = bytes,
                             .labels = labels,
                             .classes = 2,
                             .providers = providers,
                             .provider_count = 3,
                             .provider_names = provider_names};
    fds_arrays a = fine;
    fds_dataset *ds = NULL;
    fds_error err = {0};
    expect_ok(fds_dataset_create(&a, &ds, &err), &err);
    assert_string_equal(fds_dataset_class_name(ds, 1), "1");
    fds_dataset_free(ds);
    a.provider_count = 2;
    refuse_arrays(&a, FDS_ERR_USAGE, "sample 2: provider 2, there are 2");
    a.provider_count = 0;
    refuse_arrays(&a, FDS_ERR_USAGE, "providers need their number and their names");
    a = fine;
    a.provider_names = NULL;
    refuse_arrays(&a, FDS_ERR_USAGE, "providers need their number and their names");
    a = fine;
    a.classes = 1;
    refuse_arrays(&a, FDS_ERR_FORMAT, "label 1, but there are 1 classes");
    a.classes = 0;
    refuse_arrays(&a, FDS_ERR_USAGE, "0 classes");
    a = fine;
    a.floats = bad;
    refuse_arrays(&a, FDS_ERR_USAGE, "either bytes or floats");
    a.bytes = NULL;
    refuse_arrays(&a, FDS_ERR_FORMAT, "sample 2, value 0 (from 0): NaN");
    a.floats = NULL;
    refuse_arrays(&a, FDS_ERR_USAGE, "either bytes or floats");
    a = fine;
    a.labels = NULL;
    refuse_arrays(&a, FDS_ERR_USAGE, "labels");
    a = fine;
    a.count = 0;
    refuse_arrays(&a, FDS_ERR_SHAPE, "no samples");
}

/* ---- problems from files ---- */

static void put_shops(void) {
    char text[8192] = "x,label,provider\n";
    for (int i = 0; i < 120; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%d,%s,%s\n", i, class_names[i % 3],
                 i % 5 ? "north" : "south");
    }
    put_text("shops.csv", text);
}

static void files_give_the_same_problem(void **state) {
    (void)state;
    put_shops();
    fds_params *params = PARAMS("fit", "data", scratch_path("shops.csv"), "players", "30");
    fds_problem *opened = NULL;
    fds_error err = {0};
    logged[0] = 0;
    expect_ok(fds_problem_open(params, &listening, &opened, &err), &err);
    assert_string_equal(logged, "note: the data has no test part: 24 samples are set aside for "
                                "testing\n");
    fds_problem *made = make_problem(fds_problem_train(opened), NULL, params);
    assert_int_equal(opened->sample_count, 30);
    assert_int_equal(opened->input_count, 66);
    assert_memory_equal(opened->samples, made->samples, 30 * sizeof(uint32_t));
    assert_memory_equal(opened->inputs, made->inputs, 66 * sizeof(uint32_t));
    assert_memory_equal(opened->tests, made->tests, opened->test_count * sizeof(uint32_t));
    fds_problem_free(made);
    fds_problem_free(opened);
    fds_params_free(params);
}

static void opening_tells_mistakes_before_it_reads(void **state) {
    (void)state;
    fds_problem *p = NULL;
    fds_error err = {0};
    assert_int_equal(fds_problem_open(NULL, NULL, &p, &err), FDS_ERR_USAGE);
    expect_in(err.text, "`data` is missing");
    fds_params *params = fds_params_create("shapley");
    assert_int_equal(fds_problem_open(params, NULL, &p, &err), FDS_ERR_USAGE);
    expect_in(err.text, "`data` is missing");
    expect_ok(fds_params_set(params, "data", "minst", &err), &err);
    assert_int_equal(fds_problem_open(params, NULL, &p, &err), FDS_ERR_NOT_FOUND);
    expect_in(err.text, "did you mean \"mnist\"?");
    assert_int_equal(fds_problem_open(params, NULL, &p, NULL), FDS_ERR_NOT_FOUND);
    expect_ok(fds_params_set(params, "players", "none", &err), &err);
    assert_int_equal(fds_problem_open(params, NULL, &p, &err), FDS_ERR_USAGE);
    expect_in(err.text, "`players` must be");
    assert_null(p);
    fds_params_free(params);
}

/* ---- failing allocations and files ---- */

typedef struct {
    fds_dataset *train, *test;
    fds_params *params;
} question;

static fds_status create_again(void *with, fds_error *err) {
    question *q = with;
    fds_problem *p = NULL;
    fds_result *r = NULL;
    fds_status status = fds_problem_create(q->train, q->test, q->params, &listening, &p, err);
    assert_true((status == FDS_OK) == (p != NULL));
    if (status == FDS_OK)
        status = fds__problem_result(p, "ls", 1, &r, err);
    fds_result_free(r);
    fds_problem_free(p);
    return status;
}

static fds_status open_again(void *with, fds_error *err) {
    fds_problem *p = NULL;
    fds_status status = fds_problem_open(with, NULL, &p, err);
    assert_true((status == FDS_OK) == (p != NULL));
    fds_problem_free(p);
    return status;
}

static fds_status arrays_again(void *with, fds_error *err) {
    static const float floats[4] = {0};
    static const uint16_t labels[4] = {0, 1, 1, 0};
    static const uint32_t providers[4] = {0, 1, 2, 0};
    const fds_arrays arrays = {.count = 4,
                               .shape = {1, 1, 1},
                               .floats = floats,
                               .labels = labels,
                               .classes = 2,
                               .class_names = class_names,
                               .providers = providers,
                               .provider_count = 3,
                               .provider_names = provider_names};
    (void)with;
    fds_dataset *ds = NULL;
    fds_status status = fds_dataset_create(&arrays, &ds, err);
    assert_true((status == FDS_OK) == (ds != NULL));
    fds_dataset_free(ds);
    return status;
}

static void failures_leave_nothing_behind(void **state) {
    (void)state;
    question q = {make_data(60, true), make_data(20, true),
                  PARAMS("fit", "players", "providers", "inputs", "20")};
    assert_true(each_fault(FDS__FAULT_ALLOC, create_again, NULL, &q) > 20);
    fds_dataset_free(q.test);
    q.test = NULL;
    assert_true(each_fault(FDS__FAULT_ALLOC, create_again, NULL, &q) > 20);
    fds_params_free(q.params);
    q.params = PARAMS("shapley", "players", "5");
    assert_true(each_fault(FDS__FAULT_ALLOC, create_again, NULL, &q) > 20);
    fds_problem *p = make_problem(q.train, NULL, q.params);
    fds__fault_arm(FDS__FAULT_ALLOC, 1);
    assert_string_equal(fds_problem_describe(p), "{}");
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    expect_described(p, "samples");
    fds_problem_free(p);
    fds_params_free(q.params);
    fds_dataset_free(q.train);
    assert_true(each_fault(FDS__FAULT_ALLOC, arrays_again, NULL, NULL) > 5);
    put_shops();
    q.params = PARAMS("fit", "data", scratch_path("shops.csv"));
    assert_true(each_fault(FDS__FAULT_ALLOC, open_again, NULL, q.params) > 20);
    assert_true(each_fault(FDS__FAULT_IO, open_again, NULL, q.params) > 0);
    fds_params_free(q.params);
}

/* ---- samples that the caller names ---- */

typedef struct {
    fds_dataset *train, *test;
    fds_params *params;
    fds_selection chosen;
} selecting;

static fds_status select_again(void *with, fds_error *err) {
    const selecting *s = with;
    fds_problem *p = NULL;
    fds_status status = fds_problem_select(s->train, s->test, &s->chosen, s->params, NULL, &p, err);
    fds_problem_free(p);
    return status;
}

static void named_samples_are_taken_as_they_are(void **state) {
    (void)state;
    static const uint32_t samples[] = {3, 4, 9, 11}, inputs[] = {0, 5, 6, 7, 8, 12, 13, 14, 15, 16},
                          group_of[] = {0, 1, 0, 1};
    selecting s = {.train = make_data(20, true), .test = make_data(7, true)};
    fds_error err = {0};
    fds_groups *groups;
    fds_problem *p;
    expect_ok(fds_groups_create(group_of, 4, NULL, &groups, &err), &err);
    s.chosen = (fds_selection){samples, 4, inputs, 10, groups};
    s.params = PARAMS("fit", "players", "all");
    expect_ok(fds_problem_select(s.train, s.test, &s.chosen, s.params, NULL, &p, &err), &err);
    assert_int_equal(fds_problem_players(p), 4);
    assert_string_equal(fds_problem_player(p, 1), "sample 4");
    assert_int_equal(fds_problem_tests(p), 7);
    assert_int_equal(p->input_count, 10);
    assert_memory_equal(p->inputs, inputs, sizeof inputs);
    assert_int_equal(fds_groups_of(p->groups, 2), 0);
    fds_problem_free(p);
    expect_ok(fds_problem_select(s.train, NULL, &s.chosen, s.params, NULL, &p, &err), &err);
    assert_int_equal(fds_problem_tests(p), 0);
    fds_problem_free(p);
    assert_true(each_fault(FDS__FAULT_ALLOC, select_again, NULL, &s) > 10);
    fds_params_free(s.params);
    s.params = PARAMS("shapley", "players", "providers");
    s.chosen.groups = NULL;
    expect_ok(fds_problem_select(s.train, s.test, &s.chosen, s.params, NULL, &p, &err), &err);
    assert_true(fds_problem_players(p) < 4); /* some have two of the samples */
    assert_int_equal(p->input_count, 0);
    fds_problem_free(p);
    fds_params_free(s.params);
    fds_groups_free(groups);
    fds_dataset_free(s.train);
    fds_dataset_free(s.test);
}

static void wrong_names_of_samples_are_refused(void **state) {
    (void)state;
    static const uint32_t twice[] = {3, 3}, far[] = {3, 20}, right[] = {3, 4}, group_of[] = {0};
    selecting s = {.train = make_data(20, false), .test = make_data(7, false)};
    const struct {
        fds_selection chosen;
        const fds_dataset *test;
        const char *text;
    } cases[] = {
        {{twice, 2, NULL, 0, NULL}, s.test, "samples of players must be ascending"},
        {{far, 2, NULL, 0, NULL}, s.test, "below 20 (got 20)"},
        {{right, 0, NULL, 0, NULL}, s.test, "needs samples of players"},
        {{right, 2, NULL, 0, NULL}, NULL, "needs test samples"},
    };
    fds_error err = {0};
    fds_problem *p = NULL;
    s.params = PARAMS("shapley", "players", "all");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            fds_problem_select(s.train, cases[i].test, &cases[i].chosen, s.params, NULL, &p, &err),
            FDS_ERR_USAGE);
        assert_non_null(strstr(err.text, cases[i].text));
    }
    fds_groups *groups;
    expect_ok(fds_groups_create(group_of, 1, NULL, &groups, &err), &err);
    s.chosen = (fds_selection){right, 2, NULL, 0, groups};
    assert_int_equal(fds_problem_select(s.train, s.test, &s.chosen, s.params, NULL, &p, &err),
                     FDS_ERR_USAGE);
    assert_non_null(strstr(err.text, "groups of 1 players: there are 2"));
    fds_groups_free(groups);
    fds_params_free(s.params);
    fds_dataset_free(s.train);
    fds_dataset_free(s.test);
}

static void samples_have_the_names_that_they_are_given(void **state) {
    (void)state;
    static const char *const names[] = {"eins", "zwei", "f\xc3\xbcnf"}, *const wrong[] = {
                                                                            "a", "\x01", "c"};
    fds_dataset *ds = make_data(3, false);
    fds_error err = {0};
    assert_null(fds_dataset_sample_name(ds, 0));
    assert_int_equal(fds_dataset_name_samples(ds, wrong, &err), FDS_ERR_FORMAT);
    assert_non_null(strstr(err.text, "name of sample 1"));
    expect_ok(fds_dataset_name_samples(ds, names, &err), &err);
    expect_ok(fds_dataset_name_samples(ds, names, &err), &err); /* the old ones are freed */
    assert_string_equal(fds_dataset_sample_name(ds, 2), names[2]);
    assert_null(fds_dataset_sample_name(ds, 3));
    fds_dataset_free(ds);
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
        TEST(tests_may_follow_the_frequencies_of_classes),
        TEST(a_problem_describes_itself),
        TEST(results_have_the_names_of_the_problem),
        TEST(arrays_are_copied_and_asked),
        TEST(wrong_arrays_are_refused),
        TEST(files_give_the_same_problem),
        TEST(opening_tells_mistakes_before_it_reads),
        TEST(failures_leave_nothing_behind),
        TEST(named_samples_are_taken_as_they_are),
        TEST(wrong_names_of_samples_are_refused),
        TEST(samples_have_the_names_that_they_are_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
