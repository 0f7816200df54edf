/* SPDX-License-Identifier: Apache-2.0
 * The table of parameters: every row is sound, and every job is described as the table says. */
#include "comma.h"
#include "params_fixture.h"

#include <ctype.h>
#include <math.h>

static void names_are_unique_in_each_job(void **state) {
    (void)state;
    for (size_t j = 0; j < COUNT(jobs); j++)
        for (size_t a = 0; a < COUNT(rows); a++)
            for (size_t b = 0; b < a; b++)
                if (rows[a].jobs & rows[b].jobs & jobs[j].bit) {
                    if (strcmp(name_of(&rows[a]), name_of(&rows[b])) == 0 ||
                        rows[a].place == rows[b].place)
                        fail_msg("%s: %s is there twice", jobs[j].name, name_of(&rows[a]));
                }
}

static void names_are_words_of_small_letters(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (const char *at = name_of(&rows[i]); *at; at++)
            if (!islower((unsigned char)*at) && (*at != '_' || !at[1]))
                fail_msg("%s", name_of(&rows[i]));
}

static void rows_have_what_their_type_needs(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const row *r = &rows[i];
        bool is_number = r->kind == KIND_COUNT || r->kind == KIND_REAL;
        if (!r->help || (r->kind != KIND_FLAG && r->kind != KIND_CHOICE && !r->value) ||
            (r->kind == KIND_FLAG && (r->value || r->standard || r->automatic)) ||
            (r->kind == KIND_CHOICE) != (r->choices != NULL) || (r->standard && r->automatic) ||
            (is_number && !(r->min < r->max)) || (!is_number && (r->min || r->max)) ||
            (r->is_even && r->kind != KIND_COUNT) || (r->is_above && r->kind != KIND_REAL) ||
            r->min < 0 || r->max > FDS__EXACT_MAX || (is_number && !r->standard && !r->automatic))
            fail_msg("row %zu, %s", i, name_of(r));
        if (r->kind == KIND_COUNT)
            assert_true(floor(r->min) == r->min && floor(r->max) == r->max);
    }
}

static void methods_and_needs_name_what_there_is(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const row *r = &rows[i];
        char word[64];
        for (const char *at = r->methods; at && *at; at += strspn(at, " ")) {
            int length = (int)strcspn(at, " ");
            snprintf(word, sizeof word, "%.*s", length, at);
            if (!(fds__is_among(word, "ls exact tknn @") && r->jobs & VALUE) &&
                !(fds__is_among(word, "fds afds gfds gfds+") && r->jobs & FIT))
                fail_msg("%s: methods %s", name_of(r), r->methods);
            at += length;
        }
        if (!r->needs)
            continue;
        char needed[64];
        size_t length = strcspn(r->needs, "=");
        snprintf(needed, sizeof needed, "%.*s", (int)length, r->needs);
        for (size_t j = 0; j < COUNT(jobs); j++) {
            const row *other = find_row(jobs[j].bit, needed);
            if (!(jobs[j].bit & r->jobs))
                continue;
            if (!other || other == r)
                fail_msg("%s needs %s", name_of(r), r->needs);
            if (!r->needs[length])
                assert_int_equal(other->kind, KIND_FLAG);
            else
                for (const char *at = r->needs + length; *at; at += 1 + strcspn(at + 1, "|")) {
                    snprintf(word, sizeof word, "%.*s", (int)strcspn(at + 1, "|"), at + 1);
                    assert_true(fds__choice_find(other->choices, word) >= 0);
                }
        }
    }
}

/* The phrases of the old English, and what a help text must not have. */
static void help_is_plain_english(void **state) {
    (void)state;
    static const char *const phrases[] = {"could not be had",
                                          "asked for",
                                          "is needed",
                                          "needed, but",
                                          "foretell",
                                          "left-out",
                                          "left out",
                                          "rightly",
                                          "kept out",
                                          "held out",
                                          "held back",
                                          "of others",
                                          "; needed",
                                          "one a ",
                                          "samples a ",
                                          "value a ",
                                          "weights move",
                                          "was number",
                                          "as wholes",
                                          "singly",
                                          "labels alike",
                                          "the better",
                                          "is to be",
                                          "is missing",
                                          "the room",
                                          "by default",
                                          "at the most",
                                          "judge",
                                          "orders",
                                          "value function",
                                          "  ",
                                          " ,",
                                          "stranger",
                                          "whole of",
                                          "where no other"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *const texts[] = {rows[i].help, rows[i].automatic};
        for (size_t k = 0; k < COUNT(texts); k++) {
            const char *text = texts[k];
            if (!text)
                continue;
            size_t length = strlen(text);
            if (!length || text[length - 1] == '.' || text[length - 1] == ' ' || text[0] == ' ')
                fail_msg("%s: \"%s\"", name_of(&rows[i]), text);
            for (size_t p = 0; p < COUNT(phrases); p++)
                if (strcasestr(text, phrases[p]))
                    fail_msg("%s: \"%s\" has \"%s\"", name_of(&rows[i]), text, phrases[p]);
            for (const char *at = text; *at; at++)
                assert_true(isprint((unsigned char)*at));
        }
    }
}

static void every_job_is_described_in_the_order_of_the_table(void **state) {
    (void)state;
    static const char *const types[] = {"flag", "text", "choice", "count", "real"};
    for (size_t j = 0; j < COUNT(jobs); j++) {
        size_t count = 0;
        fds_param_info info;
        for (size_t i = 0; i < COUNT(rows); i++) {
            const row *r = &rows[i];
            if (!(r->jobs & jobs[j].bit))
                continue;
            assert_true(fds_params_describe(jobs[j].name, count++, &info));
            assert_string_equal(info.name, name_of(r));
            assert_string_equal(info.type, types[r->kind]);
            assert_string_equal(info.help, r->help);
            assert_true((info.value == NULL) == (r->kind == KIND_FLAG));
            if (r->kind == KIND_CHOICE)
                assert_string_equal(info.value, r->choices);
            assert_true(info.min == r->min && info.max == r->max && info.is_above == r->is_above);
            assert_true((info.methods != NULL) == (r->methods != NULL));
            assert_true((info.automatic != NULL) == (r->automatic != NULL));
            assert_int_equal(info.level, r->operand     ? FDS_LEVEL_OPERAND
                                         : r->is_common ? FDS_LEVEL_EVERY
                                         : r->advanced  ? FDS_LEVEL_ADVANCED
                                                        : FDS_LEVEL_COMMON);
        }
        assert_true(count > (jobs[j].bit == FORGET ? 0 : 3));
        assert_false(fds_params_describe(jobs[j].name, count, &info));
        assert_false(fds_params_describe(jobs[j].name, SIZE_MAX, &info));
    }
    fds_param_info unused;
    assert_false(fds_params_describe("", 0, &unused));
    assert_false(fds_params_describe("Train", 0, &unused));
    assert_false(fds_params_describe(NULL, 0, &unused));
}

/* A default is what setting it gives, and parameters of other jobs are empty. */
static void defaults_are_within_their_ranges(void **state) {
    (void)state;
    for (size_t j = 0; j < COUNT(jobs); j++) {
        fds_params *untouched = make(jobs[j].name), *changed = make(jobs[j].name);
        fds_param_info info;
        for (size_t i = 0; fds_params_describe(jobs[j].name, i, &info); i++) {
            if (info.standard) {
                expect(untouched, info.name, info.standard);
                set(changed, info.name, info.standard);
                expect(changed, info.name, info.standard);
            } else {
                expect(untouched, info.name, strcmp(info.type, "flag") == 0 ? "false" : "auto");
            }
        }
        for (int place = 0; place < FDS__PLACES; place++)
            assert_false(untouched->given[place]);
        fds_params_free(untouched);
        fds_params_free(changed);
    }
    const fds_params pay = fds__params_default(PAY), fit = fds__params_default(FIT);
    assert_true(pay.explainer == -1 && pay.sampler == -1 && pay.optimizer == -1 && !pay.method);
    assert_true(pay.policy == 0 && pay.pay_by == 0 && pay.form == -1 && pay.output_form == -1);
    assert_true(fit.explainer == 0 && fit.sampler == -1 && fit.output_form == 0 && fit.form == -1);
    assert_true(fit.lr == 0.0001 && fit.draws == 32 && fit.coalitions == 0 && !fit.players);
    assert_string_equal(fit.method, "fds");
}

static void jobs_are_known_by_name(void **state) {
    (void)state;
    assert_null(fds_params_create("nothing"));
    assert_null(fds_params_create(""));
    assert_null(fds_params_create(NULL));
    fds_params_free(NULL);
    fds_param_info info;
    static const char *const methods[][2] = {
        {"shapley", "ls"}, {"baseline", "tmc"}, {"fit", "fds"}};
    for (size_t m = 0; m < COUNT(methods); m++) {
        fds_params *p = make(methods[m][0]);
        expect(p, "method", methods[m][1]);
        for (size_t i = 0; fds_params_describe(methods[m][0], i, &info); i++)
            if (strcmp(info.name, "method") == 0)
                assert_string_equal(info.standard, methods[m][1]);
        fds_params_free(p); /* the text is not its own */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(names_are_unique_in_each_job),
        TEST(names_are_words_of_small_letters),
        TEST(rows_have_what_their_type_needs),
        TEST(methods_and_needs_name_what_there_is),
        TEST(help_is_plain_english),
        TEST(every_job_is_described_in_the_order_of_the_table),
        TEST(defaults_are_within_their_ranges),
        TEST(jobs_are_known_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
