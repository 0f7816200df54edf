/* SPDX-License-Identifier: Apache-2.0
 * API keys, and how often each may ask.
 *
 * A key is fds_ROLE_R_C: R are 32 random bytes in hexadecimal, C the first 8 digits of the SHA-256 of
 * all before "_C", so that a mistyped key is told from a wrong one. A file of keys has one line of JSON
 * per key, {"role": "customer", "account": "acme", "sha256": "..."}, with the SHA-256 of the whole key:
 * who reads the file cannot ask with it. A key has 256 random bits, so a plain hash is enough. */
#include "serve/serve.h"

#include <nettle/base64.h>
#include <strings.h>
#include <sys/stat.h>

enum { RANDOM = 32, CHECK_DIGITS = 8, MAX_FILE = 16 << 20 };

static const char *const role_names[] = {"nobody", "customer", "auditor", "operator", NULL};

const char *serve_role_name(serve_role role) { return role_names[role]; }

static serve_role find_role(const char *name) {
    for (serve_role role = SERVE_CUSTOMER; name && role <= SERVE_OPERATOR; role++)
        if (strcmp(name, role_names[role]) == 0)
            return role;
    return SERVE_NOBODY;
}

fds_status serve_check_word(const char *what, const char *word, fds_error *err) {
    size_t size = word ? strlen(word) : 0;
    bool is_fine = size > 0 && size <= SERVE_ACCOUNT && fds__is_utf8(word);
    for (const char *at = word; is_fine && *at;) {
        uint32_t code;
        at += fds__utf8(at, &code);
        is_fine = !fds__is_control(code);
    }
    return is_fine ? FDS_OK
                   : fds__fail(err, FDS_ERR_USAGE,
                               "%s must have 1 to %d bytes without control characters", what,
                               SERVE_ACCOUNT);
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

/* Adds a line at the end: what was there stays, whatever happens. */
static fds_status append(const char *path, const char *line, size_t size, fds_error *err) {
    fds__file file;
    uint64_t end = 0;
    TRY(fds__file_open(&file, path, FDS__ACCESS_CREATE, err));
    fds_status status = fds__file_lock(&file, path, err);
    if (status == FDS_OK && fchmod(file.fd, 0600) != 0)
        status = fds__fail_errno(err, "protect", path);
    if (status == FDS_OK)
        status = fds__file_size(&file, &end, err);
    if (status == FDS_OK)
        status = fds__file_write_at(&file, line, size, end, err);
    if (status == FDS_OK)
        status = fds__file_sync(&file, err);
    fds__file_close(&file);
    return status == FDS_OK ? fds__dir_sync_parent(path, err) : status;
}

fds_status fds_serve_key_add(const char *path, const char *role, const char *account,
                             char key[FDS_SERVE_KEY], fds_error *err) {
    char hex[65], hint[FDS__HINT];
    if (!find_role(role))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`role` must be customer, auditor or operator (got %s)%s",
                         role ? role : "", fds__hint(role ? role : "", role_names + 1, hint));
    TRY(serve_check_word("an account", account, err));
    TRY(make_key(role, key, err));
    fds_sha256_hex(key, strlen(key), hex);
    fds__text line = {0};
    fds__text_print(&line, "{\"role\":\"%s\",\"account\":", role);
    oip_write_string(&line, account);
    fds__text_print(&line, ",\"sha256\":\"%s\"}\n", hex);
    fds_status status = fds__text_check(&line, err);
    if (status == FDS_OK)
        status = append(path, line.data, line.used, err);
    fds__free(line.data);
    return status;
}

/* ---- reading keys ---- */

static bool read_hex(const char *text, uint8_t out[32]) {
    if (!text || strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)
        return false;
    for (size_t i = 0; i < 32; i++) {
        unsigned byte;
        sscanf(text + 2 * i, "%2x", &byte);
        out[i] = (uint8_t)byte;
    }
    return true;
}

static fds_status read_line(const char *path, size_t number, const char *line, size_t size,
                            serve_key *out, fds_error *err) {
    json_t *json = NULL;
    TRY(fds__json_parse(path, line, size, &json, err));
    const char *account = json_string_value(json_object_get(json, "account"));
    out->role = find_role(json_string_value(json_object_get(json, "role")));
    bool is_fine = out->role && serve_check_word("an account", account, NULL) == FDS_OK &&
                   read_hex(json_string_value(json_object_get(json, "sha256")), out->hash);
    if (is_fine)
        snprintf(out->account, sizeof out->account, "%s", account);
    json_decref(json);
    return is_fine ? FDS_OK
                   : fds__fail(err, FDS_ERR_FORMAT,
                               "%s: line %zu must be {\"role\": ..., \"account\": ..., "
                               "\"sha256\": ...}",
                               path, number);
}

fds_status serve_keys_read(const char *path, serve_keys *out, fds_error *err) {
    OWNED uint8_t *data = NULL;
    size_t size, capacity = 0, number = 0;
    *out = (serve_keys){0};
    TRY(fds__file_read_secret(path, MAX_FILE, &data, &size, err));
    for (const char *line = (const char *)data; *line;) {
        size_t length = strcspn(line, "\n");
        void *items = out->items;
        number++;
        fds_status status = FDS_OK;
        if (length > 0)
            status = fds__grow(&items, &capacity, out->count + 1, sizeof *out->items, err);
        out->items = items;
        if (status == FDS_OK && length > 0)
            status = read_line(path, number, line, length, &out->items[out->count++], err);
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
    *keys = (serve_keys){0};
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

/* ---- rates ---- */

enum { SETS = 1024, WAYS = 8 };

typedef struct {
    uint8_t who[SERVE_WHO];
    double tokens, at_s; /* as of then; at_s 0: free */
} bucket;

/* Where a set is full, who asked longest ago is forgotten: a full bucket is lost, or some asker's debt,
 * of whom there are thousands at that time. */
struct serve_rates {
    pthread_mutex_t lock;
    uint64_t salt; /* so that nobody can aim at a set */
    bucket buckets[SETS][WAYS];
};

fds_status serve_rates_create(serve_rates **out, fds_error *err) {
    uint64_t salt;
    TRY(fds__random_secret(&salt, sizeof salt, err));
    TRY(NEW(*out, 1, err));
    (*out)->salt = salt;
    pthread_mutex_init(&(*out)->lock, NULL);
    return FDS_OK;
}

void serve_rates_free(serve_rates *rates) {
    if (rates)
        pthread_mutex_destroy(&rates->lock);
    fds__free(rates);
}

static bucket *find_bucket(serve_rates *r, const uint8_t who[SERVE_WHO], double per_s,
                           double now_s) {
    uint8_t salted[SERVE_WHO + sizeof r->salt];
    memcpy(salted, who, SERVE_WHO);
    memcpy(salted + SERVE_WHO, &r->salt, sizeof r->salt);
    bucket *set = r->buckets[fds_checksum(salted, sizeof salted) % SETS], *oldest = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].at_s > 0 && memcmp(set[i].who, who, SERVE_WHO) == 0)
            return &set[i];
        oldest = set[i].at_s < oldest->at_s ? &set[i] : oldest;
    }
    *oldest = (bucket){.tokens = MAX(per_s, 1), .at_s = now_s};
    memcpy(oldest->who, who, SERVE_WHO);
    return oldest;
}

bool serve_rates_take(serve_rates *r, const uint8_t who[SERVE_WHO], double per_s, double now_s) {
    pthread_mutex_lock(&r->lock);
    bucket *b = find_bucket(r, who, per_s, now_s);
    b->tokens = MIN(b->tokens + (now_s - b->at_s) * per_s, MAX(per_s, 1));
    b->at_s = now_s;
    bool is_within = b->tokens >= 1;
    b->tokens -= is_within;
    pthread_mutex_unlock(&r->lock);
    return is_within;
}
