/* SPDX-License-Identifier: Apache-2.0
 * validation.json: its figures are those of the definitions, and a run keeps them. */
#include "fixture.h"

static json_t *read_validation(const char *dir) {
    json_t *json = json_load_file(in_run(dir, FDS__RUN_VALIDATION), 0, NULL);
    assert_non_null(json);
    return json;
}

static double number(const json_t *json, const char *name) {
    assert_true(json_is_number(json_object_get(json, name)));
    return json_number_value(json_object_get(json, name));
}

/* ---- figures of made-up answers ---- */

enum { X = 40 };

typedef struct {
    task t;
    uint32_t order[INPUTS], predicted[X], payee[PLAYERS];
    size_t n;
    fds_utility *utility;
    fds__comparison c;
} sheet;

static void sheet_make(sheet *s, bool has_providers) {
    fds_rng rng = fds_rng_make(5, 3100, 0, 0);
    s->t = has_providers ? task_providers("afds") : task_make("afds");
    s->n = fds_players_count(s->t.players);
    s->utility = utility_of(&s->t, s->order);
    size_t size = X * CLASSES * s->n;
    s->c = (fds__comparison){.inputs = X,
                             .players = s->n,
                             .classes = CLASSES,
                             .predicted = s->predicted,
                             .values = need(size, sizeof(double)),
                             .targets = need(size, sizeof(double)),
                             .errors = need(size, sizeof(double)),
                             .stated = need(X * s->n, sizeof(double))};
    for (size_t i = 0; i < size; i++) {
        s->c.targets[i] = fds_rng_normal(&rng);
        s->c.errors[i] = 0.1 + 0.1 * fds_rng_unit(&rng);
        s->c.values[i] = s->c.targets[i] + 0.3 * fds_rng_normal(&rng);
    }
    for (size_t x = 0; x < X; x++)
        s->predicted[x] = (uint32_t)(x % CLASSES);
    for (size_t i = 0; i < X * s->n; i++)
        s->c.stated[i] = 0.2 + 0.1 * fds_rng_unit(&rng);
}

static json_t *validate(sheet *s, bool is_own) {
    fds_error err;
    const fds__validated what = {problem_of(&s->t), s->utility->data, &s->c, is_own, 0.75, 3};
    expect_ok(fds__validation_write(scratch_path(""), &what, NULL, &err), &err);
    return read_validation(scratch_path(""));
}

static void sheet_free(sheet *s) {
    free(s->c.values);
    free(s->c.targets);
    free(s->c.errors);
    free(s->c.stated);
    fds_utility_free(s->utility);
    task_free(&s->t);
}

/* Of one input: parts of the money by two lists of values. */
static double misallocated(const double *a, const double *b, size_t n) {
    double sum_a = 0, sum_b = 0, moved = 0;
    for (size_t i = 0; i < n; i++) {
        sum_a += a[i] > 0 ? a[i] : 0;
        sum_b += b[i] > 0 ? b[i] : 0;
    }
    for (size_t i = 0; i < n; i++)
        moved += fabs((a[i] > 0 ? a[i] / sum_a : 0) - (b[i] > 0 ? b[i] / sum_b : 0));
    return moved / 2;
}

static void figures_are_those_of_the_definitions(void **state) {
    (void)state;
    enum { DRAWS = 400 };
    sheet s;
    sheet_make(&s, false);
    json_t *json = validate(&s, false);
    double moved = 0, inside = 0;
    fds_rng rng = fds_rng_make(6, 3100, 0, 0);
    for (size_t x = 0; x < X; x++) {
        size_t at = (x * CLASSES + s.predicted[x]) * s.n;
        moved += misallocated(s.c.values + at, s.c.targets + at, s.n) / X;
        for (size_t i = 0; i < s.n * DRAWS; i++) {
            size_t p = at + i / DRAWS;
            double truth = s.c.targets[p] + s.c.errors[p] * fds_rng_normal(&rng);
            inside += fabs(s.c.values[p] - truth) <= 1.96 * s.c.stated[x * s.n + i / DRAWS];
        }
    }
    inside /= (double)(X * s.n * DRAWS);
    assert_true(fabs(number(json, "misallocation") - moved) < 1e-12);
    assert_true(fabs(number(json, "covered") - inside) < 0.01);
    assert_true(number(json, "agreement") == 0.75 && number(json, "inputs") == X);
    assert_string_equal(json_string_value(json_object_get(json, "against")), "bank");
    json_decref(json);
    sheet_free(&s);
}

static void coverage_is_told_by_tenths_of_size(void **state) {
    (void)state;
    sheet s;
    sheet_make(&s, false);
    json_t *json = validate(&s, false), *list = json_object_get(json, "coverage");
    double size = 0, mean = 0, count = 0;
    assert_int_equal(json_array_size(list), 10);
    for (size_t i = 0; i < 10; i++) {
        const json_t *tenth = json_array_get(list, i);
        assert_true(number(tenth, "size") >= size && number(tenth, "count") == X * s.n / 10.0);
        size = number(tenth, "size");
        count += number(tenth, "count");
        mean += number(tenth, "coverage") * number(tenth, "count");
    }
    assert_true(count == (double)(X * s.n) && fabs(mean / count - number(json, "covered")) < 1e-12);
    json_decref(json);
    sheet_free(&s);
}

/* One class is paid at random: it comes first. One player is paid twice what is due. */
static void the_worst_groups_are_named(void **state) {
    (void)state;
    sheet s;
    sheet_make(&s, false);
    memcpy(s.c.values, s.c.targets, X * CLASSES * s.n * sizeof(double));
    for (size_t x = 0; x < X; x++)
        for (size_t i = 0; i < s.n; i++) {
            double *value = &s.c.values[(x * CLASSES + s.predicted[x]) * s.n + i];
            *value = i == 7 ? 2 * *value : s.predicted[x] == 2 ? (double)((i * 7 + x) % 5) : *value;
        }
    json_t *json = validate(&s, false), *list = json_object_get(json, "worst_groups");
    assert_int_equal(json_array_size(list), 6);
    const json_t *group = json_array_get(list, 0), *payee = json_array_get(list, 3);
    assert_string_equal(json_string_value(json_object_get(group, "kind")), "class");
    assert_string_equal(json_string_value(json_object_get(group, "name")), "2");
    assert_true(number(group, "misallocation") >
                2 * number(json_array_get(list, 1), "misallocation"));
    assert_string_equal(json_string_value(json_object_get(payee, "kind")), "payee");
    assert_true(number(payee, "paid") > number(payee, "due"));
    json_decref(json);
    sheet_free(&s);
}

/* All sub-models answer: what is expected by the stated errors, as if the truth were drawn. */
static void a_bank_is_judged_by_its_own_errors(void **state) {
    (void)state;
    sheet s;
    sheet_make(&s, false);
    json_t *rough = validate(&s, true);
    for (size_t i = 0; i < X * s.n; i++)
        s.c.stated[i] /= 10;
    json_t *fine = validate(&s, true);
    assert_string_equal(json_string_value(json_object_get(rough, "against")), "errors");
    assert_true(number(fine, "misallocation") > 0);
    assert_true(number(rough, "misallocation") > 5 * number(fine, "misallocation"));
    assert_true(number(fine, "agreement") > 0.999 && number(rough, "agreement") < 0.99);
    assert_true(json_is_null(json_object_get(fine, "coverage")));
    expect_in(json_string_value(json_object_get(json_object_get(fine, "reasons"), "coverage")),
              "all sub-models answer");
    json_decref(rough);
    json_decref(fine);
    sheet_free(&s);
}

/* ---- runs ---- */

static void players_of_one_provider_are_paid_as_one(void **state) {
    (void)state;
    task t = task_providers("afds");
    fit(&t, scratch_path("run"));
    json_t *json = read_validation(scratch_path("run"));
    assert_true(number(json_array_get(json_object_get(json, "coverage"), 0), "count") <=
                (double)INPUTS / 10 * 5 / 10 + 1);
    json_decref(json);
    task_free(&t);
}

static void scores_of_a_run_are_those_of_the_file(void **state) {
    (void)state;
    task t = task_make("afds");
    uint32_t order[INPUTS];
    double scores[SAMPLES];
    fds_error err;
    fit(&t, scratch_path("run"));
    fds__fit_settings settings = settled(&t);
    fds__fit_order(&settings, t.inputs, t.input_count, order);
    fds_run *run = open_run(scratch_path("run"));
    expect_ok(fds__run_scores(run, t.train, scores, &err), &err);
    for (size_t p = 0; p < PLAYERS; p++)
        assert_true(scores[p] == 0); /* it is the player's own sample */
    json_t *json = read_validation(scratch_path("run")),
           *list = json_object_get(json_object_get(json, "drift"), "scores");
    assert_int_equal(json_array_size(list), settings.validation_inputs);
    for (size_t i = 0; i < json_array_size(list); i++) {
        bool is_found = false;
        double score = json_real_value(json_array_get(list, i));
        assert_true(i == 0 || score >= json_real_value(json_array_get(list, i - 1)));
        for (size_t k = INPUTS - settings.validation_inputs; k < INPUTS; k++)
            is_found |= fabs(scores[order[k]] - score) < 1e-6;
        assert_true(is_found);
    }
    json_decref(json);
    fds_run_free(run);
    task_free(&t);
}

/* As fits left it that validated nothing. */
static void a_run_without_it_opens_and_the_same_fit_adds_it(void **state) {
    (void)state;
    static const int explainers[] = {LINEAR, BANK};
    for (size_t e = 0; e < COUNT(explainers); e++) {
        task t = task_make("afds");
        char wanted[65], got[65];
        fds__validation v;
        fds_error err;
        t.params.explainer = explainers[e];
        fit(&t, scratch_path("run"));
        sha256_of(scratch_path("run/validation.json"), wanted);
        expect_ok(fds__validation_read(scratch_path("run"), &v, &err), &err);
        assert_true(v.is_there && v.misallocation > 0 && v.misallocation < 1);
        json_t *json = read_run(scratch_path("run"));
        json_object_del(json_object_get(json_object_get(json, "results"), "sha256"),
                        FDS__RUN_VALIDATION);
        write_run(scratch_path("run"), json);
        assert_int_equal(unlink(scratch_path("run/validation.json")), 0);
        fds_run_free(open_run(scratch_path("run")));
        expect_ok(fds__validation_read(scratch_path("run"), &v, &err), &err);
        assert_true(!v.is_there && isnan(v.agreement) && isnan(v.coverage));
        fit(&t, scratch_path("run"));
        sha256_of(scratch_path("run/validation.json"), got);
        assert_string_equal(got, wanted);
        remove_run(scratch_path("run"));
        task_free(&t);
    }
}

static void a_file_of_another_kind_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{}", "[]", "{\"format\": \"fds-validation 1\"}",
        "{\"format\": \"fds-validation 1\", \"agreement\": \"good\", \"misallocation\": 0, "
        "\"covered\": 1}",
        "{\"format\": \"fds-validation 2\", \"agreement\": 1, \"misallocation\": 0, \"covered\": "
        "1}"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        fds__validation v;
        fds_error err = {0};
        scratch_write(scratch_path("validation.json"), texts[i], strlen(texts[i]));
        expect_failure(fds__validation_read(scratch_path(""), &v, &err), FDS_ERR_FORMAT, &err,
                       "validation.json");
        assert_false(v.is_there);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(figures_are_those_of_the_definitions),
        IN_SCRATCH(coverage_is_told_by_tenths_of_size),
        IN_SCRATCH(the_worst_groups_are_named),
        IN_SCRATCH(a_bank_is_judged_by_its_own_errors),
        IN_SCRATCH(players_of_one_provider_are_paid_as_one),
        IN_SCRATCH(scores_of_a_run_are_those_of_the_file),
        IN_SCRATCH(a_run_without_it_opens_and_the_same_fit_adds_it),
        IN_SCRATCH(a_file_of_another_kind_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
