/* SPDX-License-Identifier: Apache-2.0
 * Where the data of problems comes from: arrays, files; and what happens when memory or files fail. */
#include "problem_fixture.h"

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

int main(void) {
    json_set_alloc_funcs(fds__alloc, fds__free);
    const struct CMUnitTest tests[] = {
        TEST(arrays_are_copied_and_asked),   TEST(wrong_arrays_are_refused),
        TEST(files_give_the_same_problem),   TEST(opening_tells_mistakes_before_it_reads),
        TEST(failures_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
