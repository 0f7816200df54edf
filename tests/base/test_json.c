/* SPDX-License-Identifier: Apache-2.0
 * JSON: texts of any bytes, sealed objects whose damage is found, files whole or not at all. */
#include "faults.h"

#include "base/base.h"

#include <math.h>

static json_t *parse(const char *text) {
    json_t *json = NULL;
    fds_error err = {0};
    expect_ok(fds__json_parse("test", text, strlen(text), &json, &err), &err);
    return json;
}

static const char sample[] = "{\"b\": 1, \"a\": {\"z\": [1, 2.5, null, true], \"y\": \"\xc3\xa4\"},"
                             " \"c\": -0.1, \"d\": 1e300, \"e\": 9007199254740991}";

/* ---- seals ---- */

static void a_sealed_object_is_unsealed_as_it_was(void **state) {
    (void)state;
    json_t *json = parse(sample), *before = parse(sample);
    fds_error err = {0};
    assert_true(fds__json_seal(json));
    const char *checksum = json_string_value(json_object_get(json, "checksum"));
    assert_int_equal(strlen(checksum), 16);
    assert_int_equal(strspn(checksum, "0123456789abcdef"), 16);
    /* XXH3 of all other members, compact, with sorted keys; files on disk depend on it */
    char hex[17], *text = fds__json_text(before, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"a\":{\"y\":\"\xc3\xa4\",\"z\":[1,2.5,null,true]},\"b\":1,"
                              "\"c\":-0.10000000000000001,\"d\":1.0000000000000001e300,"
                              "\"e\":9007199254740991}");
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)fds_checksum(text, strlen(text)));
    assert_string_equal(checksum, hex);
    fds__free(text);
    expect_ok(fds__json_unseal("run.json", json, &err), &err);
    assert_true(json_equal(json, before));
    json_decref(json);
    json_decref(before);
}

static void a_seal_outlives_writing_and_reading(void **state) {
    (void)state;
    json_t *json = parse(sample), *back;
    fds_error err = {0};
    fds_rng rng = fds_rng_make(9, 0, 0, 0);
    json_t *list = json_array();
    for (int i = 0; i < 2000; i++)
        fds__json_append(list, json_real(fds_rng_normal(&rng) * exp(50 * fds_rng_normal(&rng))));
    fds__json_put(json, "reals", list);
    assert_true(fds__json_seal(json));
    expect_ok(fds__json_write(scratch, "a.json", json, &err), &err);
    expect_ok(fds__json_read(scratch_path("a.json"), 1 << 20, &back, &err), &err);
    assert_true(json_equal(json, back));
    expect_ok(fds__json_unseal("a.json", back, &err), &err);
    json_decref(json);
    json_decref(back);
}

static void sealing_again_takes_the_new_members_in(void **state) {
    (void)state;
    json_t *json = parse(sample);
    fds_error err = {0};
    assert_true(fds__json_seal(json));
    char first[17];
    snprintf(first, sizeof first, "%s", json_string_value(json_object_get(json, "checksum")));
    assert_true(fds__json_seal(json));
    assert_string_equal(json_string_value(json_object_get(json, "checksum")), first);
    fds__json_put(json, "more", json_true());
    assert_true(fds__json_seal(json));
    assert_string_not_equal(json_string_value(json_object_get(json, "checksum")), first);
    expect_ok(fds__json_unseal("run.json", json, &err), &err);
    json_decref(json);
}

static void expect_damage(json_t *json) {
    fds_error err = {0};
    assert_int_equal(fds__json_unseal("run.json", json, &err), FDS_ERR_CORRUPT);
    assert_string_equal(err.text, "run.json is damaged: its checksum does not agree");
    json_decref(json);
}

static json_t *sealed(void) {
    json_t *json = parse(sample);
    assert_true(fds__json_seal(json));
    return json;
}

static void any_change_is_damage(void **state) {
    (void)state;
    static const char *const seals[] = {"", "0", "0123456789abcdef", "0123456789abcdef0",
                                        "\xc3\xa4"};
    json_t *json = sealed();
    fds__json_put(json, "b", json_integer(2));
    expect_damage(json);
    json = sealed();
    fds__json_put(json, "b", json_real(1)); /* 1.0 is not 1 */
    expect_damage(json);
    json = sealed();
    json_array_append_new(json_object_get(json_object_get(json, "a"), "z"), json_null());
    expect_damage(json);
    json = sealed();
    json_object_del(json, "c");
    expect_damage(json);
    json = sealed();
    fds__json_put(json, "new", json_null());
    expect_damage(json);
    for (size_t i = 0; i < COUNT(seals); i++) {
        json = sealed();
        fds__json_put(json, "checksum", json_string(seals[i]));
        expect_damage(json);
    }
    json = sealed();
    char upper[17];
    snprintf(upper, sizeof upper, "%s", json_string_value(json_object_get(json, "checksum")));
    for (char *at = upper; *at; at++)
        *at = (char)(*at >= 'a' ? *at - 32 : *at);
    if (strpbrk(upper, "ABCDEF")) {
        fds__json_put(json, "checksum", json_string(upper));
        expect_damage(json);
    } else {
        json_decref(json);
    }
    json = sealed();
    char longer[18];
    snprintf(longer, sizeof longer, "%s0", json_string_value(json_object_get(json, "checksum")));
    fds__json_put(json, "checksum", json_string(longer));
    expect_damage(json);
    json = sealed();
    fds__json_put(json, "checksum", json_integer(5));
    expect_damage(json);
    expect_damage(parse(sample)); /* never sealed */
    expect_damage(parse("{}"));
    expect_damage(parse("[1, 2]"));
}

static fds_status seal_again(void *with, fds_error *err) {
    return fds__json_seal(with) ? FDS_OK : fds__fail_json(err);
}

static fds_status unseal_again(void *with, fds_error *err) {
    json_t *copy = parse(with);
    fds_status status = fds__json_unseal("run.json", copy, err);
    json_decref(copy);
    return status;
}

static void a_seal_without_memory_is_no_damage(void **state) {
    (void)state;
    json_t *json = sealed();
    char *text = fds__json_text(json, JSON_COMPACT);
    assert_true(each_fault(FDS__FAULT_ALLOC, seal_again, NULL, json) > 2);
    json_set_alloc_funcs(malloc, free); /* the test's own reading must not fail */
    fds__fault_arm(FDS__FAULT_ALLOC, 1);
    fds_error err = {0};
    assert_int_equal(unseal_again(text, &err), FDS_ERR_NOMEM);
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    expect_ok(unseal_again(text, &err), &err);
    json_set_alloc_funcs(fds__alloc, fds__free);
    fds__free(text);
    json_decref(json);
}

/* ---- texts ---- */

static void texts_of_any_bytes_become_strings(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"plain", "plain"},
        {"M\xc3\xbcller", "M\xc3\xbcller"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\x01\x7f", "\x01\x7f"},
        {"M\xfcller", "M?ller"},
        {"a\xc3", "a?"},
        {"\xc0\x80", "??"},           /* overlong */
        {"\xed\xa0\x80", "???"},      /* half of a pair */
        {"\xf4\x90\x80\x80", "????"}, /* beyond the last character */
        {"\xf8\x88\x80\x80\x80", "?????"},
        {"\xc3\xa4\xff", "???"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *json = fds__json_string(cases[i][0]);
        assert_string_equal(json_string_value(json), cases[i][1]);
        json_decref(json);
    }
    assert_true(json_is_null(fds__json_string(NULL)));
    /* jansson and fds agree on what is UTF-8: a text is kept or all its other bytes are marks */
    fds_rng rng = fds_rng_make(4, 0, 0, 0);
    for (int round = 0; round < 20000; round++) {
        char text[6] = {0};
        for (int i = 0; i < 5; i++)
            text[i] = (char)(0x70 + fds_rng_below(&rng, 0x90)); /* many lead and trail bytes */
        json_t *plain = json_string(text), *json = fds__json_string(text);
        assert_non_null(json);
        assert_true((plain != NULL) == (strcmp(json_string_value(json), text) == 0));
        json_decref(plain);
        json_decref(json);
    }
}

static fds_status string_again(void *with, fds_error *err) {
    json_t *json = fds__json_string(with);
    if (json)
        assert_string_equal(json_string_value(json), with);
    json_decref(json);
    return json ? FDS_OK : fds__fail_json(err);
}

/* A name must not lose its letters because memory was short for a moment. */
static void a_text_without_memory_is_none(void **state) {
    (void)state;
    assert_true(
        each_fault(FDS__FAULT_ALLOC, string_again, NULL, (void *)(uintptr_t) "M\xc3\xbcller") > 0);
    assert_true(each_fault(FDS__FAULT_ALLOC, string_again, NULL, (void *)(uintptr_t) "plain") > 0);
}

static void numbers_that_are_not_finite_are_null(void **state) {
    (void)state;
    json_t *json = fds__json_real(0.5);
    assert_true(json_real_value(json) == 0.5);
    json_decref(json);
    assert_true(json_is_null(fds__json_real(NAN)));
    assert_true(json_is_null(fds__json_real(INFINITY)));
    assert_true(json_is_null(fds__json_real(-INFINITY)));
}

/* ---- reading ---- */

static void mistakes_are_told_with_their_line(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",         "{",   "{\"a\": 1,}",       "{\"a\": 1, \"a\": 2}", "[1] [2]",
        "\"text\"", "nul", "{\"a\": \"\xff\"}", "{\"a\": 1e999}"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        json_t *json = NULL;
        fds_error err = {0};
        assert_int_equal(fds__json_parse("x.json", wrong[i], strlen(wrong[i]), &json, &err),
                         FDS_ERR_FORMAT);
        expect_in(err.text, "x.json: line 1: ");
        assert_null(json);
    }
    json_t *json = NULL;
    fds_error err = {0};
    assert_int_equal(fds__json_parse("x.json", "{\n\n\"a\" 1}", 10, &json, &err), FDS_ERR_FORMAT);
    expect_in(err.text, "x.json: line 3: ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void) {
    json_set_alloc_funcs(fds__alloc, fds__free);
    const struct CMUnitTest tests[] = {
        TEST(a_sealed_object_is_unsealed_as_it_was),  TEST(a_seal_outlives_writing_and_reading),
        TEST(sealing_again_takes_the_new_members_in), TEST(any_change_is_damage),
        TEST(a_seal_without_memory_is_no_damage),     TEST(texts_of_any_bytes_become_strings),
        TEST(a_text_without_memory_is_none),          TEST(numbers_that_are_not_finite_are_null),
        TEST(mistakes_are_told_with_their_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
