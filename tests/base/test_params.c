/* SPDX-License-Identifier: Apache-2.0
 * Parameters: every type is read, checked and written back, and mistakes name the parameter, what
 * would be right and what was given. */
#include "comma.h"
#include "params_fixture.h"

#include <ctype.h>
#include <math.h>

/* ---- numbers ---- */

/* The ends of every range are taken, what lies beyond is refused. */
static void ranges_end_where_the_table_says(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const row *r = &rows[i];
        if (r->kind != KIND_COUNT && r->kind != KIND_REAL)
            continue;
        size_t j = 0;
        while (!(jobs[j].bit & r->jobs))
            j++;
        fds_params *p = make(jobs[j].name);
        char text[64], min[32], max[32], range[160];
        fds__write_double(r->min, min);
        fds__write_double(r->max, max);
        if (r->kind == KIND_COUNT)
            snprintf(range, sizeof range, "must be %s from %s to %s (got ",
                     r->is_even ? "an even number" : "a whole number", min, max);
        else
            snprintf(range, sizeof range, "must be a number %s %s%s %s (got ",
                     r->is_above ? "above" : "from", min, r->is_above ? ", at most" : " to", max);
        double step = r->is_even ? 2 : 1;
        set(p, name_of(r), max);
        expect(p, name_of(r), max);
        if (r->is_above) {
            refuse(p, name_of(r), min, range);
            set(p, name_of(r), "1e-300");
            expect(p, name_of(r), "1e-300");
        } else {
            set(p, name_of(r), min);
            expect(p, name_of(r), min);
        }
        if (r->kind == KIND_COUNT) {
            snprintf(text, sizeof text, "%.0f", r->max + step);
            refuse(p, name_of(r), text, range);
            if (r->min > 0) {
                snprintf(text, sizeof text, "%.0f", r->min - step);
                refuse(p, name_of(r), text, range);
            }
        } else {
            fds__write_double(nextafter(r->max, INFINITY), text);
            refuse(p, name_of(r), text, range);
            refuse(p, name_of(r), "-1e-300", range);
        }
        if (r->is_even)
            refuse(p, name_of(r), "3", "an even number");
        fds_params_free(p);
    }
}

static void counts_are_written_with_digits_alone(void **state) {
    (void)state;
    static const char *const wrong[] = {"",
                                        " 5",
                                        "5 ",
                                        "+5",
                                        "-5",
                                        "5.0",
                                        "5e1",
                                        "0x10",
                                        "5,0",
                                        "five",
                                        "\n5",
                                        "5\n",
                                        "18446744073709551616",
                                        "99999999999999999999999",
                                        "nan",
                                        "\xd9\xa5",
                                        "9007199254740992",
                                        "9007199254740993",
                                        "18446744073709551615"};
    fds_params *p = make("fit");
    set(p, "seed", "41");
    for (size_t i = 0; i < COUNT(wrong); i++)
        refuse(p, "seed", wrong[i], "must be a whole number from 0 to 9007199254740991 (got ");
    refuse(p, "seed", "-7", "(got -7)");
    set(p, "seed", "9007199254740991");
    assert_true(p->seed == 9007199254740991u);
    set(p, "seed", "0007");
    assert_true(p->seed == 7);
    refuse(p, "draws", "7", "`draws` must be an even number from 2 to 65536 (got 7)");
    refuse(p, "inputs", "9", "`inputs` must be a whole number from 10 to 10000000 (got 9)");
    fds_params_free(p);
}

static void reals_are_decimal_numbers(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",  " 0.5", "0.5 ",  "0,5",    "nan", "inf", "-inf", "0x1",   "1e",          "e1",
        ".", "--1",  "1e400", "1e-400", "0",   "-0",  "-1",   "1.2.3", "1000.0000001"};
    static const struct {
        const char *text;
        double value;
    } right[] = {{"0.1", 0.1}, {"1e-3", 1e-3}, {"+.5", 0.5},      {"5.", 5},
                 {"1E2", 100}, {"1000", 1000}, {"5e-324", 5e-324}};
    fds_params *p = make("train");
    for (size_t i = 0; i < COUNT(wrong); i++)
        refuse(p, "lr", wrong[i], "must be a number above 0, at most 1000 (got ");
    for (size_t i = 0; i < COUNT(right); i++) {
        set(p, "lr", right[i].text);
        assert_true(p->lr == right[i].value);
    }
    set(p, "lr", "0.10");
    expect(p, "lr", "0.1");
    refuse(p, "momentum", "1", "must be a number from 0 to 0.9999 (got 1)");
    fds_params_free(p);
}

/* A program around the library may have set any locale, before or after. */
static void numbers_have_a_point_in_every_locale(void **state) {
    (void)state;
    if (!comma_begin())
        return;
    fds_params *p = make("train");
    assert_true(p->lr == 0.001 && p->loss_bound == 0.01);
    expect(p, "lr", "0.001");
    set(p, "lr", "0.25");
    assert_true(p->lr == 0.25);
    refuse(p, "lr", "0,25", "(got 0,25)");
    refuse(p, "momentum", "2", "from 0 to 0.9999");
    fds_params_free(p);
    comma_end();
}

/* ---- choices, flags, texts ---- */

static void every_choice_is_taken_and_others_are_refused(void **state) {
    (void)state;
    for (size_t j = 0; j < COUNT(jobs); j++) {
        fds_params *p = make(jobs[j].name);
        fds_param_info info;
        for (size_t i = 0; fds_params_describe(jobs[j].name, i, &info); i++) {
            if (!info.value || !strchr(info.value, '|'))
                continue;
            char words[256], *rest = words, *word;
            int place = 0;
            snprintf(words, sizeof words, "%s", info.value);
            while ((word = strsep(&rest, "|"))) {
                set(p, info.name, word);
                expect(p, info.name, word);
                assert_int_equal(fds__choice_find(info.value, word), place++);
                refuse(p, info.name, "@@@", " or ");
                refuse(p, info.name, info.value, "(got ");
            }
            refuse(p, info.name, "", strcmp(info.type, "text") == 0 ? "is empty" : "(got )");
            if (strcmp(info.type, "choice") == 0)
                refuse(p, info.name, "0", "(got 0)"); /* by word, not by place */
        }
        fds_params_free(p);
    }
}

static void near_words_are_suggested(void **state) {
    (void)state;
    fds_params *p = make("fit");
    refuse(p, "optimizer", "adm",
           "`optimizer` must be adam or sgd (got adm); did you mean \"adam\"?");
    refuse(p, "explainer", "resnet5",
           "`explainer` must be auto, probe, bank, mlp, cnn, resnet18, resnet50 or linear (got "
           "resnet5); did "
           "you mean \"resnet50\"?");
    refuse(p, "method", "gdfs",
           "`method` must be fds, afds, gfds or gfds+ (got gdfs); did you "
           "mean \"gfds\"?");
    refuse(p, "sampler", "lev", "did you mean \"leverage\"?");
    fds_error err = {0};
    assert_int_equal(fds_params_set(p, "optimizer", "rmsprop", &err), FDS_ERR_USAGE);
    assert_null(strstr(err.text, "did you mean"));
    assert_int_equal(fds_params_set(p, "epoch", "3", &err), FDS_ERR_USAGE);
    assert_string_equal(err.text, "there is no parameter \"epoch\"; did you mean \"epochs\"?");
    assert_int_equal(fds_params_set(p, "keep-models", "true", &err), FDS_ERR_USAGE);
    expect_in(err.text, "did you mean \"keep_models\"?");
    assert_int_equal(fds_params_set(p, "zzz", "3", &err), FDS_ERR_USAGE);
    assert_string_equal(err.text, "there is no parameter \"zzz\"");
    assert_int_equal(fds_params_set(p, "", "3", &err), FDS_ERR_USAGE);
    assert_int_equal(fds_params_set(p, "scorer", "accuracy", &err), FDS_ERR_USAGE); /* of VALUE */
    char out[8];
    assert_int_equal(fds_params_get(p, "coalition", out, sizeof out, &err), FDS_ERR_USAGE);
    expect_in(err.text, "did you mean \"coalitions\"?");
    fds_params_free(p);
}

static void suggestions_are_near_enough(void **state) {
    (void)state;
    static const char *const names[] = {"permutations", "players", "lr", "batch", NULL};
    static const struct {
        const char *word, *nearest;
    } cases[] = {{"permutatoins", "permutations"},
                 {"permuta", "permutations"},
                 {"player", "players"},
                 {"plaeyrs", "players"},
                 {"rl", "lr"},
                 {"pe", NULL},
                 {"bitch", "batch"},
                 {"xyzzy", NULL},
                 {"", NULL},
                 {"batches and more", NULL}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *got = fds_nearest(cases[i].word, names);
        assert_true((got == NULL) == (cases[i].nearest == NULL));
        if (got)
            assert_string_equal(got, cases[i].nearest);
    }
    char huge[200], hint[FDS__HINT];
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = 0;
    assert_null(fds_nearest(huge, names));
    const char *const long_names[] = {huge, NULL};
    assert_string_equal(fds__hint(huge, long_names, hint), ""); /* the very name is no hint */
    assert_int_equal(strlen(fds__hint("aaa", long_names, hint)), FDS__HINT - 1); /* cut */
    assert_string_equal(fds__hint("zzz", names, hint), "");
}

static void flags_are_true_or_false(void **state) {
    (void)state;
    fds_params *p = make("fit");
    static const char *const wrong[] = {"", "yes", "TRUE", "on", "2", "01", " 1"};
    set(p, "keep_models", "true");
    assert_true(p->keep_models);
    for (size_t i = 0; i < COUNT(wrong); i++)
        refuse(p, "keep_models", wrong[i], "`keep_models` must be true or false (got ");
    set(p, "keep_models", "0");
    assert_false(p->keep_models);
    set(p, "keep_models", "1");
    expect(p, "keep_models", "true");
    set(p, "keep_models", "false");
    expect(p, "keep_models", "false");
    assert_true(fds__is_given(p, keep_models)); /* that it was said is not forgotten */
    fds_params_free(p);
}

static void texts_are_copied_and_replaced(void **state) {
    (void)state;
    for (size_t j = 0; j < COUNT(jobs); j++) {
        fds_params *p = make(jobs[j].name);
        fds_param_info info;
        for (size_t i = 0; fds_params_describe(jobs[j].name, i, &info); i++) {
            char text[64] = "first";
            if (strcmp(info.type, "text") != 0 || strchr(info.value, '|'))
                continue;
            set(p, info.name, text);
            strcpy(text, "changed");
            expect(p, info.name, "first");
            set(p, info.name, "\xc3\xa4, \"b\"\n");
            bool repeats = strcmp(info.name, "values") == 0 ||
                           strcmp(info.name, "force_run") == 0 ||
                           (jobs[j].bit == SERVE && strcmp(info.name, "model") == 0) ||
                           (jobs[j].bit == TRUST && strcmp(info.name, "run") == 0) ||
                           (jobs[j].bit == UPDATE &&
                            (strcmp(info.name, "add") == 0 || strcmp(info.name, "remove") == 0));
            if (repeats) /* it may be given several times */
                expect(p, info.name, "first\n\xc3\xa4, \"b\"\n");
            else
                expect(p, info.name, "\xc3\xa4, \"b\"\n");
            refuse(p, info.name, "", "is empty; it must be ");
        }
        fds_params_free(p); /* a leak or a text freed twice shows under the sanitizer */
    }
    fds_params *p = make("train");
    set(p, "data", "mnist");
    set(p, "data", p->data); /* its own text */
    expect(p, "data", "mnist");
    fds_params_free(p);
}

static void values_are_cut_to_the_room_there_is(void **state) {
    (void)state;
    fds_params *p = make("train");
    char out[8] = "xxxxxxx";
    set(p, "data", "a-long-path");
    assert_int_equal(fds_params_get(p, "data", out, 5, NULL), FDS_OK);
    assert_string_equal(out, "a-lo");
    assert_int_equal(fds_params_get(p, "seed", out, 1, NULL), FDS_OK);
    assert_string_equal(out, "");
    out[0] = 'x';
    assert_int_equal(fds_params_get(p, "data", out, 0, NULL), FDS_OK);
    assert_int_equal(fds_params_get(p, "test", out, 0, NULL), FDS_OK);
    assert_int_equal(out[0], 'x');
    fds_params_free(p);
}

static void nothing_is_refused_and_does_no_harm(void **state) {
    (void)state;
    fds_error err = {0};
    char out[8];
    fds_params *p = make("train");
    assert_int_equal(fds_params_set(NULL, "lr", "1", &err), FDS_ERR_USAGE);
    expect_in(err.text, "fds_params_create returned NULL");
    assert_int_equal(fds_params_set(NULL, "lr", "1", NULL), FDS_ERR_USAGE);
    assert_int_equal(fds_params_get(NULL, "lr", out, sizeof out, &err), FDS_ERR_USAGE);
    expect_in(err.text, "fds_params_create returned NULL");
    assert_int_equal(fds_params_set(p, NULL, "1", &err), FDS_ERR_USAGE);
    assert_int_equal(fds_params_get(p, NULL, out, sizeof out, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_params_set(p, "lr", NULL, &err), FDS_ERR_USAGE);
    expect_in(err.text, "`lr`");
    assert_int_equal(fds_params_set(p, "data", NULL, &err), FDS_ERR_USAGE);
    expect_in(err.text, "`data` is empty; it must be DATA");
    expect(p, "data", "auto");
    fds_params_free(p);
}

static void choices_are_found_and_named(void **state) {
    (void)state;
    assert_int_equal(fds__choice_find("a|bc|d", "bc"), 1);
    assert_int_equal(fds__choice_find("a|bc|d", "d"), 2);
    assert_int_equal(fds__choice_find("a|bc|d", "b"), -1);
    assert_int_equal(fds__choice_find("a|bc|d", ""), -1);
    assert_int_equal(fds__choice_find("a|bc|d", "a|bc"), -1);
    assert_int_equal(fds__choice_find("", "a"), -1);
    fds_params p = fds__params_default(VALUE);
    assert_string_equal(fds__choice(&p, sampler), "");
    p.sampler = 4;
    assert_string_equal(fds__choice(&p, sampler), "gfds+");
    p.sampler = 5; /* no such one */
    assert_string_equal(fds__choice(&p, sampler), "");
}

/* ---- what goes together ---- */

static void check_fails(const fds_params *p, const char *method, const char *takes,
                        const char *text) {
    fds_error err = {0};
    assert_int_equal(fds__params_check(p, method, takes, &err), FDS_ERR_USAGE);
    assert_string_equal(err.text, text);
}

static void check_passes(const fds_params *p, const char *method, const char *takes) {
    fds_error err = {0};
    expect_ok(fds__params_check(p, method, takes, &err), &err);
}

static void methods_take_their_own_parameters(void **state) {
    (void)state;
    fds_params *p = make("fit");
    check_passes(p, "fds", NULL);
    set(p, "epochs", "3");
    check_passes(p, "afds", NULL);
    check_passes(p, "gfds+", NULL);
    check_fails(p, "fds", NULL,
                "`epochs` does not apply to method fds; it applies to afds, gfds or gfds+");
    fds_params_free(p);
    p = make("fit");
    set(p, "sampler", "kernel");
    check_fails(p, "gfds", NULL,
                "`sampler` does not apply to method gfds; it applies to fds or afds");
    fds_params_free(p);
    p = make("fit");
    set(p, "form", "groups"); /* given, though it is the default */
    check_fails(p, "gfds", NULL, "`form` does not apply to method gfds; it applies to gfds+");
    check_passes(p, "gfds+", NULL);
    fds_params_free(p);
}

static void baselines_take_what_their_own_files_say(void **state) {
    (void)state;
    fds_params *p = make("baseline");
    check_passes(p, "random", "");
    set(p, "until", "0.1");
    check_passes(p, "tmc", "permutations until");
    check_fails(p, "loo", "utility",
                "`until` does not apply to method loo; it applies to some baselines");
    check_fails(p, "loo", "", "`until` does not apply to method loo; it applies to some baselines");
    check_fails(p, "ls", NULL, "`until` does not apply to method ls; it applies to some baselines");
    check_fails(p, "tmc", "permutations untilx",
                "`until` does not apply to method tmc; it applies to some baselines");
    fds_params_free(p);
    p = make("shapley");
    set(p, "coalitions", "40");
    check_passes(p, "ls", NULL);
    check_fails(p, "exact", NULL,
                "`coalitions` does not apply to method exact; it applies to ls or some baselines");
    set(p, "lr", "0.1"); /* of every method, and so are seed and threads */
    set(p, "seed", "4");
    check_passes(p, "ls", NULL);
    check_passes(p, "banzhaf", "coalitions");
    fds_params_free(p);
    p = make("shapley");
    set(p, "adjust", "none");
    check_fails(p, "knn:5", "", "`adjust` does not apply to method knn:5; it applies to ls");
    fds_params_free(p);
}

static void json_has_what_is_given_or_standard(void **state) {
    (void)state;
    fds_params *p = make("train");
    set(p, "lr", "0.5");
    set(p, "optimizer", "sgd");
    set(p, "model", "mlp");
    json_t *json = fds__params_json(p);
    assert_non_null(json);
    assert_true(json_real_value(json_object_get(json, "lr")) == 0.5);
    assert_string_equal(json_string_value(json_object_get(json, "optimizer")), "sgd");
    assert_string_equal(json_string_value(json_object_get(json, "model")), "mlp");
    assert_int_equal(json_integer_value(json_object_get(json, "batch")), 16); /* a default */
    assert_null(json_object_get(json, "epochs"));                             /* chosen later */
    assert_null(json_object_get(json, "coalitions"));                         /* of other jobs */
    json_decref(json);
    fds_params_free(p);
}

static void parameters_need_others(void **state) {
    (void)state;
    fds_params *p = make("train");
    set(p, "patience", "3");
    check_fails(p, "train", NULL, "`patience` needs `converge`");
    set(p, "converge", "true");
    check_passes(p, "train", NULL);
    set(p, "momentum", "0.5");
    check_fails(p, "train", NULL, "`momentum` needs `optimizer` sgd (it is adam)");
    set(p, "optimizer", "sgd");
    check_passes(p, "train", NULL);
    set(p, "converge", "false");
    check_fails(p, "train", NULL, "`patience` needs `converge`");
    fds_params_free(p);

    p = make("fit");
    set(p, "patience", "3"); /* the same field, another need */
    set(p, "explainer_epochs", "2");
    check_passes(p, "fds", NULL);
    set(p, "explainer", "bank");
    check_fails(
        p, "fds", NULL,
        "`patience` needs `explainer` auto, mlp, cnn, resnet18, resnet50 or linear (it is bank)");
    fds_params_free(p);

    p = make("fit");
    set(p, "gamma", "0.5");
    check_fails(p, "gfds+", NULL, "`gamma` needs `form` penalty (it is groups)");
    set(p, "form", "penalty");
    check_passes(p, "gfds+", NULL);
    check_fails(p, "gfds", NULL, "`form` does not apply to method gfds; it applies to gfds+");
    set(p, "draws", "8");
    check_fails(p, "gfds+", NULL, "`draws` needs `objective` paper (it is closed)");
    fds_params_free(p);
}

static void words_of_a_list_are_found_whole(void **state) {
    (void)state;
    assert_true(fds__is_among("tmc", "loo tmc beta"));
    assert_true(fds__is_among("knn:5", "loo knn"));
    assert_true(fds__is_among("gfds+", "gfds gfds+"));
    assert_false(fds__is_among("gfds", "gfds+ afds"));
    assert_false(fds__is_among("tm", "tmc"));
    assert_false(fds__is_among("tmcx", "tmc"));
    assert_false(fds__is_among("a b", "a b"));
    assert_false(fds__is_among("tmc", ""));
    assert_false(fds__is_among("", "tmc"));
}

/* ---- failing allocations ---- */

static void a_failing_allocation_leaves_the_parameter(void **state) {
    (void)state;
    fds_error err = {0};
    fds__fault_arm(FDS__FAULT_ALLOC, 1);
    assert_null(fds_params_create("train"));
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    fds_params *p = make("train");
    for (int round = 0; round < 2; round++) {
        fds__fault_arm(FDS__FAULT_ALLOC, 1);
        assert_int_equal(fds_params_set(p, "data", "second", &err), FDS_ERR_NOMEM);
        assert_string_equal(err.text, "out of memory (7 bytes)");
        fds__fault_arm(FDS__FAULT_ALLOC, 0);
        expect(p, "data", round ? "first" : "auto");
        assert_true(fds__is_given(p, data) == (round == 1));
        set(p, "data", "first");
    }
    fds__fault_arm(FDS__FAULT_ALLOC, 1); /* numbers and choices take none */
    set(p, "lr", "0.5");
    set(p, "optimizer", "sgd");
    set(p, "converge", "true");
    assert_int_equal(fds__fault_arm(FDS__FAULT_ALLOC, 0), 0);
    fds_params_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(ranges_end_where_the_table_says),
        TEST(counts_are_written_with_digits_alone),
        TEST(reals_are_decimal_numbers),
        TEST(numbers_have_a_point_in_every_locale),
        TEST(every_choice_is_taken_and_others_are_refused),
        TEST(near_words_are_suggested),
        TEST(suggestions_are_near_enough),
        TEST(flags_are_true_or_false),
        TEST(texts_are_copied_and_replaced),
        TEST(values_are_cut_to_the_room_there_is),
        TEST(nothing_is_refused_and_does_no_harm),
        TEST(choices_are_found_and_named),
        TEST(methods_take_their_own_parameters),
        TEST(baselines_take_what_their_own_files_say),
        TEST(json_has_what_is_given_or_standard),
        TEST(parameters_need_others),
        TEST(words_of_a_list_are_found_whole),
        TEST(a_failing_allocation_leaves_the_parameter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
