/* SPDX-License-Identifier: Apache-2.0
 * API keys and logins: who may ask.
 *
 * A key is fds_ROLE_R_C: R are 32 random bytes in hexadecimal, C the first 8 digits of the SHA-256 of
 * all before "_C", so that a mistyped key is told from a wrong one. A file of keys has one line of JSON
 * per key, {"role": "customer", "account": "acme", "sha256": "..."}, with the SHA-256 of the whole key:
 * who reads the file cannot ask with it. A key has 256 random bits, so a plain hash is enough. A login
 * is a line {"role": ..., "account": ..., "login": "ann", "argon2id": "$argon2id$..."}: people choose
 * passwords, so theirs is a slow hash. */
#include "serve/serve.h"

#include <nettle/base64.h>
#include <strings.h>
#include <sys/stat.h>

enum { RANDOM = 32, CHECK_DIGITS = 8, MAX_FILE = 16 << 20, LEAST_PASSWORD = 8 };

static const char *const role_names[] = {"nobody",  "customer", "provider",
                                         "auditor", "operator", NULL};

const char *serve_role_name(serve_role role) { return role_names[role]; }

static serve_role find_role(const char *name) {
    for (serve_role role = SERVE_CUSTOMER; name && role <= SERVE_OPERATOR; role++)
        if (strcmp(name, role_names[role]) == 0)
            return role;
    return SERVE_NOBODY;
}

fds_status serve_check_word(const char *what, const char *word, size_t most, fds_error *err) {
    size_t size = word ? strlen(word) : 0;
    bool is_fine = size > 0 && size <= most && fds__is_utf8(word);
    for (const char *at = word; is_fine && *at;) {
        uint32_t code;
        at += fds__utf8(at, &code);
        is_fine = !fds__is_control(code);
    }
    return is_fine
               ? FDS_OK
               : fds__fail(err, FDS_ERR_USAGE,
                           "%s must have 1 to %zu bytes without control characters", what, most);
}

/* ---- making keys ---- */

static fds_status make_key(const char *role, char key[FDS_SERVE_KEY], fds_error *err) {
    uint8_t bytes[RANDOM];
    char check[65];
    TRY(fds__random_secret(bytes, sizeof bytes, err));
    int used = snprintf(key, FDS_SERVE_KEY, "fds_%s_", role);
    for (size_t i = 0; i < RANDOM; i++)
        used += snprintf(key + used, (size_t)(FDS_SERVE_KEY - used), "%02x", bytes[i]);
    fds_sha256_hex(key, (size_t)used, check);
    snprintf(key + used, (size_t)(FDS_SERVE_KEY - used), "_%.*s", CHECK_DIGITS, check);
    return FDS_OK;
}

/* Where the next line begins. A last line without a newline, of a writer that was killed or of an
 * editor, gets one: *is_torn. */
static fds_status find_end(fds__file *file, uint64_t *end, bool *is_torn, fds_error *err) {
    char last = '\n';
    TRY(fds__file_size(file, end, err));
    if (*end > 0)
        TRY(fds__file_read_at(file, &last, 1, *end - 1, err));
    *is_torn = last != '\n';
    return FDS_OK;
}

/* Adds line, which begins with a newline, at the end: what was there stays, whatever happens. */
static fds_status append(const char *path, const fds__text *line, fds_error *err) {
    fds__file file;
    uint64_t end = 0;
    bool is_torn = false;
    TRY(fds__file_open(&file, path, FDS__ACCESS_CREATE, err));
    fds_status status = fds__file_lock(&file, path, err);
    if (status == FDS_OK && fchmod(file.fd, 0600) != 0)
        status = fds__fail_errno(err, "protect", path);
    if (status == FDS_OK)
        status = find_end(&file, &end, &is_torn, err);
    if (status == FDS_OK)
        status = fds__file_write_at(&file, line->data + !is_torn, line->used - !is_torn, end, err);
    if (status == FDS_OK)
        status = fds__file_sync(&file, err);
    fds__file_close(&file);
    return status == FDS_OK ? fds__dir_sync_parent(path, err) : status;
}

/* A line for the owner of a role and account, with a secret of his: more are members of JSON. */
static fds_status add_line(const char *path, const char *role, const char *account,
                           const fds__text *more, fds_error *err) {
    fds__text line = {0};
    fds__text_print(&line, "\n{\"role\":\"%s\",\"account\":", role);
    oip_write_string(&line, account);
    fds__text_add(&line, more->data, more->used);
    fds__text_print(&line, "}\n");
    fds_status status = fds__text_check(more, err);
    if (status == FDS_OK)
        status = fds__text_check(&line, err);
    if (status == FDS_OK)
        status = append(path, &line, err);
    fds__free(line.data);
    return status;
}

static fds_status check_owner(const char *role, const char *account, fds_error *err) {
    char hint[FDS__HINT];
    if (!find_role(role))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`role` must be customer, provider, auditor or operator (got %s)%s",
                         role ? role : "", fds__hint(role ? role : "", role_names + 1, hint));
    return serve_check_word("an account", account, SERVE_ACCOUNT, err);
}

fds_status fds_serve_key_add(const char *path, const char *role, const char *account,
                             char key[FDS_SERVE_KEY], fds_error *err) {
    char hex[65];
    fds__text more = {0};
    TRY(check_owner(role, account, err));
    TRY(make_key(role, key, err));
    fds_sha256_hex(key, strlen(key), hex);
    fds__text_print(&more, ",\"sha256\":\"%s\"", hex);
    fds_status status = add_line(path, role, account, &more, err);
    fds__free(more.data);
    return status;
}

/* ---- making logins ---- */

/* One name is one login. */
static fds_status check_new(const char *path, const char *login, fds_error *err) {
    serve_keys keys = {0};
    if (!fds__path_exists(path))
        return FDS_OK;
    TRY(serve_keys_read(path, &keys, err));
    bool is_there = serve_logins_find(&keys, login) != NULL;
    serve_keys_free(&keys);
    return is_there ? fds__fail(err, FDS_ERR_CONFLICT,
                                "%s has a login \"%.100s\": remove its line to give it another "
                                "password",
                                path, login)
                    : FDS_OK;
}

fds_status fds_serve_login_add(const char *path, const char *role, const char *account,
                               const char *login, const char *password, fds_error *err) {
    char hash[SERVE_HASH];
    fds__text more = {0};
    account = account ? account : login;
    TRY(serve_check_word("a login", login, SERVE_ACCOUNT, err));
    TRY(check_owner(role, account, err));
    size_t size = password ? strlen(password) : 0;
    if (size < LEAST_PASSWORD || size > SERVE_PASSWORD)
        return fds__fail(err, FDS_ERR_USAGE, "a password must have %d to %d bytes (got %zu)",
                         LEAST_PASSWORD, SERVE_PASSWORD, size);
    TRY(check_new(path, login, err));
    TRY(serve_password_hash(password, hash, err));
    fds__text_print(&more, ",\"login\":");
    oip_write_string(&more, login);
    fds__text_print(&more, ",\"argon2id\":\"%s\"", hash);
    fds_status status = add_line(path, role, account, &more, err);
    fds__free(more.data);
    return status;
}

/* ---- reading keys ---- */

static fds_status add_key(const json_t *line, const serve_key *owner, serve_keys *out,
                          fds_error *err) {
    void *items = out->items;
    fds_status status = fds__grow(&items, &out->capacity, out->count + 1, sizeof *out->items, err);
    out->items = items;
    TRY(status);
    serve_key *key = &out->items[out->count];
    *key = *owner;
    if (!fds__hex_read(json_string_value(json_object_get(line, "sha256")), key->hash))
        return FDS_ERR_FORMAT;
    out->count++;
    return FDS_OK;
}

static fds_status add_login(const json_t *line, const serve_key *owner, serve_keys *out,
                            fds_error *err) {
    void *items = out->logins;
    const char *name = json_string_value(json_object_get(line, "login")),
               *hash = json_string_value(json_object_get(line, "argon2id"));
    fds_status status =
        fds__grow(&items, &out->login_capacity, out->login_count + 1, sizeof *out->logins, err);
    out->logins = items;
    TRY(status);
    if (serve_check_word("a login", name, SERVE_ACCOUNT, NULL) != FDS_OK || !hash ||
        strlen(hash) >= SERVE_HASH || strncmp(hash, "$argon2id$", 10) != 0 ||
        serve_logins_find(out, name))
        return FDS_ERR_FORMAT;
    serve_login *login = &out->logins[out->login_count++];
    *login = (serve_login){.role = owner->role};
    memcpy(login->account, owner->account, sizeof login->account);
    snprintf(login->name, sizeof login->name, "%s", name);
    snprintf(login->hash, sizeof login->hash, "%s", hash);
    return FDS_OK;
}

static fds_status read_line(const char *path, size_t number, const char *text, size_t size,
                            serve_keys *out, fds_error *err) {
    json_t *line = NULL;
    serve_key owner = {0};
    TRY(fds__json_parse(path, text, size, &line, err));
    const char *account = json_string_value(json_object_get(line, "account"));
    owner.role = find_role(json_string_value(json_object_get(line, "role")));
    fds_status status = FDS_ERR_FORMAT;
    if (owner.role && serve_check_word("an account", account, SERVE_ACCOUNT, NULL) == FDS_OK) {
        snprintf(owner.account, sizeof owner.account, "%s", account);
        status = json_object_get(line, "login") ? add_login(line, &owner, out, err)
                                                : add_key(line, &owner, out, err);
    }
    json_decref(line);
    return status == FDS_ERR_FORMAT
               ? fds__fail(err, FDS_ERR_FORMAT,
                           "%s: line %zu must be {\"role\": ..., \"account\": ..., \"sha256\": "
                           "...}, or have a \"login\" of its own and \"argon2id\" instead",
                           path, number)
               : status;
}

fds_status serve_keys_read(const char *path, serve_keys *out, fds_error *err) {
    OWNED uint8_t *data = NULL;
    size_t size, number = 0;
    *out = (serve_keys){0};
    TRY(fds__file_read_secret(path, MAX_FILE, &data, &size, err));
    for (const char *line = (const char *)data; *line;) {
        size_t length = strcspn(line, "\n");
        number++;
        fds_status status = length ? read_line(path, number, line, length, out, err) : FDS_OK;
        if (status != FDS_OK) {
            serve_keys_free(out);
            return status;
        }
        line += length + (line[length] == '\n');
    }
    return FDS_OK;
}

void serve_keys_free(serve_keys *keys) {
    fds__free(keys->items);
    fds__free(keys->logins);
    *keys = (serve_keys){0};
}

const serve_login *serve_logins_find(const serve_keys *keys, const char *name) {
    for (size_t i = 0; i < keys->login_count; i++)
        if (strcmp(keys->logins[i].name, name) == 0)
            return &keys->logins[i];
    return NULL;
}

/* ---- finding a key ---- */

/* The password of "user:password" in base64. */
static bool read_basic(const char *text, char key[FDS_SERVE_KEY]) {
    struct base64_decode_ctx context;
    uint8_t plain[BASE64_DECODE_LENGTH(512)];
    size_t size = sizeof plain, length = strlen(text);
    base64_decode_init(&context);
    if (length > 512 || !base64_decode_update(&context, &size, plain, length, text) ||
        !base64_decode_final(&context))
        return false;
    const uint8_t *colon = memchr(plain, ':', size);
    size_t rest = colon ? size - (size_t)(colon + 1 - plain) : 0;
    if (rest == 0 || rest >= FDS_SERVE_KEY)
        return false;
    memcpy(key, colon + 1, rest);
    key[rest] = 0;
    return true;
}

bool serve_keys_extract(const char *authorization, char key[FDS_SERVE_KEY]) {
    if (strncasecmp(authorization, "Basic ", 6) == 0)
        return read_basic(authorization + 6, key);
    if (strncasecmp(authorization, "Bearer ", 7) != 0 || strlen(authorization + 7) >= FDS_SERVE_KEY)
        return false;
    snprintf(key, FDS_SERVE_KEY, "%s", authorization + 7);
    return *key != 0;
}

bool serve_keys_is_whole(const char *key) {
    const char *last = strrchr(key, '_');
    char check[65];
    if (!last || strncmp(key, "fds_", 4) != 0)
        return false;
    fds_sha256_hex(key, (size_t)(last - key), check);
    return strncmp(last + 1, check, CHECK_DIGITS) == 0 && strlen(last + 1) == CHECK_DIGITS;
}

/* The time does not depend on where two hashes differ. */
static bool is_equal(const uint8_t a[32], const uint8_t b[32]) {
    volatile uint8_t different = 0;
    for (size_t i = 0; i < 32; i++)
        different = (uint8_t)(different | (a[i] ^ b[i]));
    return different == 0;
}

const serve_key *serve_keys_find(const serve_keys *keys, const char *key) {
    const serve_key *found = NULL;
    uint8_t own[32];
    fds__sha256(&(fds__bytes){key, strlen(key)}, 1, own);
    for (size_t i = 0; i < keys->count; i++)
        if (is_equal(keys->items[i].hash, own))
            found = &keys->items[i];
    return found;
}
