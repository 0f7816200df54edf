/* SPDX-License-Identifier: Apache-2.0
 * "command:PROGRAM" within a process: its description, its own answers, failed calls. FDS_TEST_WORKER is
 * the example in C. test_external.py has programs that misbehave. */
#include "utility_fixture.h"
#include "utility/external.h"

enum { PLAYERS = 8, INPUTS = 4, CLASSES = 3 };

static fds__utility_params program(void) {
    static char kind[600];
    assert_non_null(getenv("FDS_TEST_WORKER"));
    snprintf(kind, sizeof kind, "command:%s", getenv("FDS_TEST_WORKER"));
    return smaller(kind);
}

static void answers_are_shares_of_classes(void **state) {
    (void)state;
    game g = game_vectors(PLAYERS, INPUTS, CLASSES, 3);
    const fds__utility_params p = program();
    fds_utility *value = make_value(&g, &p, 2);
    const uint16_t *labels = fds__dataset_get_info(g.train).labels;
    for (uint64_t s = 0; s <= everyone(&g); s++) {
        float probs[INPUTS * CLASSES], wanted[CLASSES] = {0};
        size_t count = 0;
        for (size_t i = 0; i < PLAYERS; i++)
            if (s >> i & 1 || !s) { /* no players: the prior of all */
                wanted[labels[i]] += 1;
                count++;
            }
        eval(value, (unsigned)s % 2, s, probs);
        for (size_t i = 0; i < INPUTS * CLASSES; i++)
            assert_true(fabsf(probs[i] - wanted[i % CLASSES] / (float)count) < 1e-6f);
    }
    fds_utility_free(value);
    game_free(&g);
}

static void the_text_has_the_program_and_the_raw_data(void **state) {
    (void)state;
    game g = game_vectors(PLAYERS, INPUTS, CLASSES, 3);
    fds__utility_params p = program();
    fds_utility *value = make_value(&g, &p, 1);
    json_t *about;
    fds_error err;
    expect_ok(fds__json_parse("text", value->text, strlen(value->text), &about, &err), &err);
    assert_string_equal(json_string_value(json_object_get(about, "kind")), "command");
    assert_string_equal(json_string_value(json_object_get(about, "command")), p.kind + 8);
    assert_string_equal(json_string_value(json_object_get(about, "name")), "shares");
    assert_string_equal(json_string_value(json_object_get(about, "normalisation")), "none");
    assert_int_equal(strlen(json_string_value(json_object_get(about, "samples_raw_sha256"))), 64);
    assert_null(json_object_get(about, "noise"));
    fds_utility_free(value);
    p.allow_noise = true;
    value = make_value(&g, &p, 1);
    assert_non_null(strstr(value->text, "\"noise\":\"allowed\""));
    fds_utility_free(value);
    json_decref(about);
    game_free(&g);
}

static void every_failed_allocation_of_making_is_survived(void **state) {
    (void)state;
    game g = game_vectors(PLAYERS, INPUTS, CLASSES, 3);
    const fds__utility_params p = program();
    expect_failed_allocations_survived(&g, &p, 2);
    game_free(&g);
}

/* Of making and of asking: it fails with a reason, or a new process answers. */
static void every_failed_call_is_survived(void **state) {
    (void)state;
    game g = game_vectors(PLAYERS, INPUTS, CLASSES, 3);
    const fds__utility_params p = program();
    const uint64_t all = everyone(&g);
    float right[INPUTS * CLASSES], probs[INPUTS * CLASSES];
    fds_utility *value = make_value(&g, &p, 1);
    eval(value, 0, all, right);
    fds_utility_free(value);
    for (int kind = FDS__FAULT_ALLOC; kind <= FDS__FAULT_IO; kind++) {
        bool has_failed = true;
        for (uint64_t n = 1; has_failed; n++) {
            fds_error err = {0};
            value = NULL;
            fds__fault_arm((fds__fault_kind)kind, n);
            fds_status status = try_value(&g, &p, 1, &value, &err);
            if (status == FDS_OK)
                status = fds_utility_eval(value, 0, &all, probs, &err);
            has_failed = fds__fault_arm((fds__fault_kind)kind, 0) >= n;
            if (status == FDS_OK)
                assert_memory_equal(probs, right, sizeof probs);
            else
                assert_true(has_failed && err.text[0]);
            fds_utility_free(value);
        }
    }
    game_free(&g);
}

static void wrong_programs_are_refused(void **state) {
    (void)state;
    game g = game_vectors(PLAYERS, INPUTS, CLASSES, 3);
    fds_utility *value = NULL;
    fds_error err = {0};
    fds__utility_params p = smaller("command:");
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err, "needs a program");
    p.kind = "command:\xff";
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_USAGE, &err, "UTF-8");
    p.kind = "command:sh -c 'exit 9'";
    expect_failure(try_value(&g, &p, 1, &value, &err), FDS_ERR_EXTERNAL, &err, "exit code 9");
    assert_null(value);
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_shares_of_classes),
        cmocka_unit_test(the_text_has_the_program_and_the_raw_data),
        cmocka_unit_test(every_failed_allocation_of_making_is_survived),
        cmocka_unit_test(every_failed_call_is_survived),
        cmocka_unit_test(wrong_programs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
