/* SPDX-License-Identifier: Apache-2.0
 * API keys, logins, sessions and rates. */
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
    /* who only asks whether more is allowed makes nobody forgotten */
    for (uint32_t i = 0; i < 100000; i++) {
        uint8_t other[SERVE_WHO] = {7};
        memcpy(other + 4, &i, sizeof i);
        assert_true(serve_rates_use(rates, other, (serve_rate){1, 1}, false, 1000));
    }
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

/* A writer that was killed, or an editor, has left no newline at the end. */
static void a_torn_last_line_is_not_glued_to_the_next(void **state) {
    (void)state;
    char key[FDS_SERVE_KEY];
    const char *path = scratch_path("torn.jsonl");
    serve_keys keys;
    fds_error err = {0};
    expect_ok(fds_serve_key_add(path, "provider", "north", key, &err), &err);
    size_t size;
    char *data = scratch_read(path, &size);
    assert_int_equal(data[size - 1], '\n');
    scratch_write(path, data, size - 1);
    free(data);
    expect_ok(fds_serve_key_add(path, "customer", "acme", key, &err), &err);
    expect_ok(serve_keys_read(path, &keys, &err), &err);
    assert_int_equal(keys.count, 2);
    assert_int_equal(keys.items[0].role, SERVE_PROVIDER);
    serve_keys_free(&keys);
    data = scratch_read(path, &size);
    scratch_write(path, data, size - 40); /* half a line: it is named, and the others stay */
    free(data);
    expect_ok(fds_serve_key_add(path, "customer", "bolt", key, &err), &err);
    assert_int_equal(serve_keys_read(path, &keys, &err), FDS_ERR_FORMAT);
    data = scratch_read(path, &size);
    assert_non_null(strstr(data, "\n{\"role\":\"customer\",\"account\":\"bolt\""));
    free(data);
}

static void lines_of_logins_are_checked(void **state) {
    (void)state;
    serve_keys keys;
    fds_error err = {0};
#define LOGIN(name, hash) \
    "{\"role\":\"auditor\",\"account\":\"a\",\"login\":\"" name "\",\"argon2id\":\"" hash "\"}\n"
    static const char *const wrong[] = {LOGIN("", "$argon2id$x"), LOGIN("ann", "$argon2i$x"),
                                        LOGIN("ann", ""),
                                        LOGIN("ann", "$argon2id$x") LOGIN("ann", "$argon2id$y")};
    const char *path = scratch_path("logins.jsonl");
    for (size_t i = 0; i < COUNT(wrong); i++) {
        scratch_write(path, wrong[i], strlen(wrong[i]));
        assert_int_equal(chmod(path, 0600), 0);
        assert_int_equal(serve_keys_read(path, &keys, &err), FDS_ERR_FORMAT);
    }
    scratch_write(path, LOGIN("ann", "$argon2id$x"), strlen(LOGIN("ann", "$argon2id$x")));
    expect_ok(serve_keys_read(path, &keys, &err), &err);
    assert_int_equal(serve_logins_find(&keys, "ann")->role, SERVE_AUDITOR);
    assert_null(serve_logins_find(&keys, "Ann"));
    assert_int_equal(keys.count, 0);
    serve_keys_free(&keys);
}

static serve_login some_login(const char *name) {
    serve_login login = {.role = SERVE_OPERATOR, .account = "ann", .hash = "$argon2id$x"};
    snprintf(login.name, sizeof login.name, "%s", name);
    return login;
}

static void sessions_end_by_age_and_by_idleness(void **state) {
    (void)state;
    enum { MINUTE = 60, HOUR = 3600 };
    serve_sessions *sessions;
    serve_session about;
    fds_error err = {0};
    char id[SERVE_SESSION], other[SERVE_SESSION];
    const serve_login login = some_login("ann");
    expect_ok(serve_sessions_create(&sessions, &err), &err);
    expect_ok(serve_sessions_begin(sessions, &login, 1000, id, &about, &err), &err);
    assert_int_equal(strlen(id), 64);
    assert_string_not_equal(id, about.token);
    assert_true(serve_sessions_find(sessions, id, 1000 + 29 * MINUTE, &about));
    assert_string_equal(about.login, "ann");
    assert_true(serve_sessions_find(sessions, id, 1000 + 58 * MINUTE, &about));
    assert_false(serve_sessions_find(sessions, id, 1000 + 89 * MINUTE, &about));
    assert_false(serve_sessions_find(sessions, id, 1000 + 58 * MINUTE, &about)); /* it is gone */
    expect_ok(serve_sessions_begin(sessions, &login, 1000, id, &about, &err), &err);
    for (int i = 1; i <= 12 * 4; i++)
        assert_true(serve_sessions_find(sessions, id, 1000 + i * 15 * MINUTE, &about));
    assert_false(serve_sessions_find(sessions, id, 1001 + 12 * HOUR, &about));
    expect_ok(serve_sessions_begin(sessions, &login, 1000, id, &about, &err), &err);
    expect_ok(serve_sessions_begin(sessions, &login, 1000, other, &about, &err), &err);
    serve_sessions_end(sessions, id);
    assert_false(serve_sessions_find(sessions, id, 1000, &about));
    assert_true(serve_sessions_find(sessions, other, 1000, &about));
    serve_sessions_keep(sessions, &(serve_keys){0});
    assert_false(serve_sessions_find(sessions, other, 1000, &about));
    serve_sessions_free(sessions);
}

static void sessions_are_bounded(void **state) {
    (void)state;
    serve_sessions *sessions;
    serve_session about;
    fds_error err = {0};
    char first[SERVE_SESSION], ids[9][SERVE_SESSION], id[SERVE_SESSION];
    serve_login login = some_login("ann");
    expect_ok(serve_sessions_create(&sessions, &err), &err);
    for (int i = 0; i < 9; i++) /* one login has eight */
        expect_ok(serve_sessions_begin(sessions, &login, 1000 + i, ids[i], &about, &err), &err);
    assert_false(serve_sessions_find(sessions, ids[0], 1100, &about));
    for (int i = 1; i < 9; i++)
        assert_true(serve_sessions_find(sessions, ids[i], 1100, &about));
    login = some_login("first");
    expect_ok(serve_sessions_begin(sessions, &login, 1050, first, &about, &err), &err);
    for (int i = 0; i < 1500; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        login = some_login(name);
        expect_ok(serve_sessions_begin(sessions, &login, 1200, id, &about, &err), &err);
    }
    assert_false(serve_sessions_find(sessions, first, 1200, &about));
    assert_true(serve_sessions_find(sessions, id, 1200, &about));
    serve_sessions_free(sessions);
}

static void a_cookie_is_read_by_its_whole_name(void **state) {
    (void)state;
    char id[SERVE_SESSION], header[400];
    static const char digits[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct {
        const char *format;
        bool is_right;
    } cases[] = {{"fds=%s", true},      {"a=b; fds=%s", true}, {"fds=%s; a=b", true},
                 {"fds=%s;x", true},    {"xfds=%s", false},    {"fds2=%s", false},
                 {"fds=%s0", false},    {"fds =%s", false},    {"FDS=%s", false},
                 {"fds=\"%s\"", false}, {"", false},           {"a=fds=%s", false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(header, sizeof header, cases[i].format, digits);
        assert_int_equal(serve_cookie_read(header, "fds", id), cases[i].is_right);
    }
    assert_true(serve_cookie_read(
        "fds=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "fds", id));
    assert_string_equal(id, digits);
    assert_true(serve_is_same_origin(NULL, NULL, NULL));
    assert_true(serve_is_same_origin("same-origin", "http://a:1", "A:1"));
    assert_false(serve_is_same_origin("same-origin", "http://a:1", "a"));
    assert_false(serve_is_same_origin("none", NULL, "a"));
    assert_false(serve_is_same_origin(NULL, "null", "null"));
    assert_false(serve_is_same_origin(NULL, "http://a", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_found_by_its_hash_alone),
        cmocka_unit_test(files_that_others_read_and_damaged_lines_are_refused),
        cmocka_unit_test(both_kinds_of_headers_carry_a_key),
        cmocka_unit_test(a_rate_allows_a_seconds_worth_at_once),
        cmocka_unit_test(a_torn_last_line_is_not_glued_to_the_next),
        cmocka_unit_test(lines_of_logins_are_checked),
        cmocka_unit_test(sessions_end_by_age_and_by_idleness),
        cmocka_unit_test(sessions_are_bounded),
        cmocka_unit_test(a_cookie_is_read_by_its_whole_name),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
