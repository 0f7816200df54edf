/* SPDX-License-Identifier: Apache-2.0
 * API keys and rates. */
#include "../base/scratch.h"

#include "serve/serve.h"

#include <nettle/base64.h>
#include <sys/stat.h>

static void a_key_is_found_by_its_hash_alone(void **state) {
    (void)state;
    char first[FDS_SERVE_KEY], second[FDS_SERVE_KEY];
    const char *path = scratch_path("keys.jsonl");
    serve_keys keys;
    struct stat about;
    fds_error err = {0};
    expect_ok(fds_serve_key_add(path, "customer", "ac\"me", first, &err), &err);
    expect_ok(fds_serve_key_add(path, "operator", "alice", second, &err), &err);
    assert_int_equal(strncmp(first, "fds_customer_", 13), 0);
    assert_int_equal(strlen(first), 13 + 64 + 1 + 8);
    assert_true(serve_keys_is_whole(first) && serve_keys_is_whole(second));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    uint8_t *file;
    size_t size;
    expect_ok(fds__file_read(path, 10000, &file, &size, &err), &err);
    assert_null(strstr((char *)file, first + 13));
    fds__free(file);
    expect_ok(serve_keys_read(path, &keys, &err), &err);
    assert_int_equal(keys.count, 2);
    const serve_key *found = serve_keys_find(&keys, first);
    assert_non_null(found);
    assert_string_equal(found->account, "ac\"me");
    assert_int_equal(found->role, SERVE_CUSTOMER);
    assert_int_equal(serve_keys_find(&keys, second)->role, SERVE_OPERATOR);
    first[20] = first[20] == 'a' ? 'b' : 'a';
    assert_null(serve_keys_find(&keys, first));
    assert_false(serve_keys_is_whole(first));
    serve_keys_free(&keys);
}

static void files_that_others_read_and_damaged_lines_are_refused(void **state) {
    (void)state;
    char key[FDS_SERVE_KEY];
    const char *path = scratch_path("bad.jsonl");
    serve_keys keys;
    fds_error err = {0};
    assert_int_equal(fds_serve_key_add(path, "king", "a", key, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_serve_key_add(path, "customer", "", key, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_serve_key_add(path, "customer", "a\nb", key, &err), FDS_ERR_USAGE);
    expect_ok(fds_serve_key_add(path, "customer", "a", key, &err), &err);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(serve_keys_read(path, &keys, &err), FDS_ERR_USAGE);
    assert_int_equal(chmod(path, 0600), 0);
    static const char *const lines[] = {"{}\n", "x\n", "{\"role\":\"customer\",\"account\":\"a\"}",
                                        "{\"role\":\"king\",\"account\":\"a\",\"sha256\":\"00\"}"};
    for (size_t i = 0; i < COUNT(lines); i++) {
        const char *bad = scratch_path("line.jsonl");
        expect_ok(fds__file_write(bad, lines[i], strlen(lines[i]), &err), &err);
        assert_int_equal(chmod(bad, 0600), 0);
        assert_int_equal(serve_keys_read(bad, &keys, &err), FDS_ERR_FORMAT);
    }
}

static void both_kinds_of_headers_carry_a_key(void **state) {
    (void)state;
    char key[FDS_SERVE_KEY], header[300] = "Basic ";
    assert_true(serve_keys_extract("Bearer abc", key));
    assert_string_equal(key, "abc");
    assert_true(serve_keys_extract("bearer abc", key));
    base64_encode_raw(header + 6, 9, (const uint8_t *)"user:a:bc");
    header[6 + BASE64_ENCODE_RAW_LENGTH(9)] = 0;
    assert_true(serve_keys_extract(header, key));
    assert_string_equal(key, "a:bc");
    static const char *const wrong[] = {"",       "Bearer",  "Bearer ",        "abc",
                                        "Basic ", "Basic !", "Basic dXNlcg==", "Digest a"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(serve_keys_extract(wrong[i], key));
    memset(header, 'a', sizeof header - 1);
    header[sizeof header - 1] = 0;
    memcpy(header, "Bearer ", 7);
    assert_false(serve_keys_extract(header, key));
}

static void a_rate_allows_a_seconds_worth_at_once(void **state) {
    (void)state;
    serve_rates *rates;
    fds_error err = {0};
    const uint8_t one[SERVE_WHO] = {1}, two[SERVE_WHO] = {2};
    expect_ok(serve_rates_create(&rates, &err), &err);
    for (int i = 0; i < 5; i++)
        assert_true(serve_rates_take(rates, one, 5, 100));
    assert_false(serve_rates_take(rates, one, 5, 100));
    assert_true(serve_rates_take(rates, two, 5, 100)); /* others are not concerned */
    assert_false(serve_rates_take(rates, one, 5, 100.1));
    assert_true(serve_rates_take(rates, one, 5, 100.3));
    assert_false(serve_rates_take(rates, one, 5, 100.3));
    for (int i = 0; i < 5; i++)
        assert_true(serve_rates_take(rates, one, 5, 1000));
    assert_false(serve_rates_take(rates, one, 5, 1000));
    assert_true(serve_rates_take(rates, (const uint8_t[SERVE_WHO]){3}, 0.1, 1000));
    assert_false(serve_rates_take(rates, (const uint8_t[SERVE_WHO]){3}, 0.1, 1001));
    /* thousands of others: the table stays as large as it is */
    for (uint32_t i = 0; i < 100000; i++) {
        uint8_t who[SERVE_WHO] = {9};
        memcpy(who + 4, &i, sizeof i);
        assert_true(serve_rates_take(rates, who, 1, 2000));
    }
    serve_rates_free(rates);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_found_by_its_hash_alone),
        cmocka_unit_test(files_that_others_read_and_damaged_lines_are_refused),
        cmocka_unit_test(both_kinds_of_headers_carry_a_key),
        cmocka_unit_test(a_rate_allows_a_seconds_worth_at_once),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
