/* SPDX-License-Identifier: Apache-2.0
 * Utility functions of the caller's own: fds_utility_custom. */
#include "utility_fixture.h"
#include "utility/table.h"

#include <stdatomic.h>

enum { PLAYERS = 6, INPUTS = 4, CLASSES = 3, WORKERS = 2 };

typedef struct {
    game g;
    fds_problem problem;
    uint32_t sent[WORKERS][PLAYERS]; /* the last ones of each worker */
    size_t count[WORKERS];
    atomic_uint calls;
    bool fails, is_nan;
} fixture;

static void begin(fixture *f) {
    *f = (fixture){.g = game_vectors(PLAYERS, INPUTS, CLASSES, 3)};
    f->problem = (fds_problem){.train = f->g.train,
                               .test = f->g.test,
                               .players = f->g.players,
                               .tests = f->g.inputs,
                               .test_count = INPUTS};
}

/* The number of samples decides, and the input and the class. */
static fds_status answer(void *context, unsigned worker, const uint32_t *samples, size_t count,
                         float *probs, fds_error *err) {
    fixture *f = context;
    atomic_fetch_add(&f->calls, 1);
    if (f->fails)
        return snprintf(err->text, sizeof err->text, "no luck"), FDS_ERR_EXTERNAL;
    memcpy(f->sent[worker], samples, count * sizeof *samples);
    f->count[worker] = count;
    for (size_t i = 0; i < INPUTS * CLASSES; i++)
        probs[i] = f->is_nan ? NAN : (float)(count * 100 + i);
    return FDS_OK;
}

static fds_utility *make(fixture *f, unsigned workers) {
    fds_utility *utility = NULL;
    fds_error err;
    expect_ok(fds_utility_custom(&f->problem, "mine, 1", answer, f, workers, &utility, &err), &err);
    return utility;
}

static void the_callback_gets_the_samples_and_gives_the_answers(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    fds_utility *utility = make(&f, WORKERS);
    float probs[INPUTS * CLASSES];
    eval(utility, 1, 0x29, probs); /* players 0, 3 and 5 */
    assert_int_equal(f.count[1], 3);
    assert_true(f.sent[1][0] == 0 && f.sent[1][1] == 3 && f.sent[1][2] == 5);
    assert_true(probs[7] == 307);
    eval(utility, 0, 0, probs);
    assert_true(f.count[0] == 0 && probs[0] == 0);
    assert_non_null(strstr(fds_utility_get_info(utility).text, "\"name\":\"mine, 1\""));
    fds_utility_free(utility);
    game_free(&f.g);
}

static void its_failures_name_the_coalition(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    fds_utility *utility = make(&f, 1);
    float probs[INPUTS * CLASSES];
    fds_error err = {0};
    const uint64_t coalition = 0x5;
    f.fails = true;
    expect_failure(fds_utility_eval(utility, 0, &coalition, probs, &err), FDS_ERR_EXTERNAL, &err,
                   "the coalition of 2 players (sample 0, sample 2): no luck");
    f.fails = false, f.is_nan = true;
    expect_failure(fds_utility_eval(utility, 0, &coalition, probs, &err), FDS_ERR_EXTERNAL, &err,
                   "input 0, class 0; it must be a finite number");
    fds_utility_free(utility);
    game_free(&f.g);
}

static void missing_parts_are_refused(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    fds_utility *utility = NULL;
    fds_error err = {0};
    expect_failure(fds_utility_custom(&f.problem, "mine", NULL, NULL, 1, &utility, &err),
                   FDS_ERR_USAGE, &err, "callback");
    expect_failure(fds_utility_custom(&f.problem, "", answer, &f, 1, &utility, &err), FDS_ERR_USAGE,
                   &err, "text");
    assert_null(utility);
    game_free(&f.g);
}

/* A table of its answers belongs to its text. */
static void tables_of_different_texts_do_not_mix(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    fds_utility *utility = make(&f, WORKERS), *other = NULL;
    fds_table *table = NULL;
    fds_plan *plan = NULL;
    fds_error err = {0};
    expect_ok(fds_plan_exact(FDS_SAMPLER_KERNEL, PLAYERS, NULL, &plan, &err), &err);
    expect_ok(fds_table_open(scratch_path("t"), utility, FDS_STORE_F32, NULL, &table, &err), &err);
    expect_ok(fds_table_fill(table, plan, 2, NULL, &err), &err);
    assert_int_equal(f.calls, 64);
    expect_ok(fds_table_fill(table, plan, 2, NULL, &err), &err);
    assert_int_equal(f.calls, 64);
    fds_table_free(table);
    expect_ok(fds_utility_custom(&f.problem, "mine, 2", answer, &f, 1, &other, &err), &err);
    expect_failure(fds_table_open(scratch_path("t"), other, FDS_STORE_F32, NULL, &table, &err),
                   FDS_ERR_CONFLICT, &err, "name");
    fds_utility_free(other);
    fds_utility_free(utility);
    fds_plan_free(plan);
    game_free(&f.g);
}

static void every_failed_allocation_is_survived(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    fds_error err = {0};
    for (uint64_t n = 1;; n++) {
        fds_utility *utility = NULL;
        fds__fault_arm(FDS__FAULT_ALLOC, n);
        fds_status status = fds_utility_custom(&f.problem, "mine", answer, &f, 2, &utility, &err);
        bool has_failed = fds__fault_arm(FDS__FAULT_ALLOC, 0) >= n;
        assert_int_equal(status, has_failed ? FDS_ERR_NOMEM : FDS_OK);
        fds_utility_free(utility);
        if (!has_failed)
            break;
    }
    game_free(&f.g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_callback_gets_the_samples_and_gives_the_answers),
        cmocka_unit_test(its_failures_name_the_coalition),
        cmocka_unit_test(missing_parts_are_refused),
        IN_SCRATCH(tables_of_different_texts_do_not_mix),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
