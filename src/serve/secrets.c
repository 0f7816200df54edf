/* SPDX-License-Identifier: Apache-2.0
 *
 * Which predictions are audited: nobody can steer it, and everybody can check it afterwards.
 *
 * Each day (UTC) has a secret of 32 random bytes, in a file of its own beside the signing key (mode 0600):
 *
 *     BASE.audit-2026-11-18    {"day": "2026-11-18", "share_ppm": 50000, "secret": HEX, "key": HEX}
 *
 * where BASE is the file of the signing key, or the ledger's own if that has its usual name. Entries of
 * kind "audit" commit to it, and reveal it:
 *
 *     {"audit": "commit", "day": D, "hash": SHA-256 of the secret, "share_ppm": P}
 *     {"audit": "reveal", "day": D, "secret": HEX, "share_ppm": P, "rows": N, "sha256": HEX}
 *
 * Prediction i is audited when the first 8 bytes of SHA-256(secret, i in 8 bytes) are below P/10^6 2^64.
 *
 * Why a crash does no harm. The file is complete and synced before its hash is committed, and is never
 * written again: a secret whose hash is in the log is on the disk. The keys of both entries are made from
 * the day, so there is one of each. The file goes only after the revealing entry is on the disk. A file
 * without a commitment was never used; it is committed to if its day has not passed, else removed. Where
 * the log has a commitment and the file is gone, nothing is chosen on that day, the server's log says so,
 * and audits miss the revealing entry.
 *
 * The next day is committed to along with the present one, so that midnight may come at any moment.
 *
 * The inputs of chosen predictions wait in the ledger until the bank has answered (shadow.c), encrypted by
 * the day's key, which nothing else is made from and nobody reveals. Pages, logs and copies of the database
 * keep what was deleted; once the file is gone, nobody can read it. An input is sealed as
 *
 *     day in 8 bytes, nonce of 12 random bytes, tag of 16, ChaCha20 of the input
 *
 * by ChaCha20-Poly1305 with the day and the number of the entry, 8 bytes each, as associated data: it
 * opens for its own entry alone. Numbers are little-endian. */
#include "serve/serve.h"

#include <math.h>
#include <nettle/chacha-poly1305.h>
#include <nettle/memops.h>
#include <stdlib.h>
#include <time.h>

enum { DAY_MS = 86400000, MOST_FILE = 4096, KEY = 40, NAME = 11 };
#define MARK ".audit-"

/* ---- days ---- */

int64_t serve_system_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void serve_secrets_name(int64_t day, char name[NAME]) {
    time_t seconds = (time_t)(day * (DAY_MS / 1000));
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(name, NAME, "%Y-%m-%d", &parts);
}

/* The day of "2026-11-18", or of a time that begins with it; -1: it is none. */
static int64_t read_day(const char *text) {
    struct tm parts = {0};
    char again[NAME];
    int year, month, mday;
    if (!text || sscanf(text, "%4d-%2d-%2d", &year, &month, &mday) != 3)
        return -1;
    parts.tm_year = year - 1900;
    parts.tm_mon = month - 1;
    parts.tm_mday = mday;
    int64_t day = (int64_t)timegm(&parts) / (DAY_MS / 1000);
    serve_secrets_name(day, again);
    return strncmp(again, text, NAME - 1) == 0 ? day : -1;
}

int64_t serve_secrets_today(const serve_secrets *s) {
    return MAX(s->now_ms() / DAY_MS, s->last_day); /* as the ledger dates entries */
}

/* ---- hexadecimal digits ---- */

static void write_hex(const uint8_t bytes[32], char hex[65]) {
    for (size_t i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- files ---- */

static fds_status write_path(const serve_secrets *s, int64_t day, char path[FDS__PATH_MAX],
                             fds_error *err) {
    char name[NAME];
    serve_secrets_name(day, name);
    int size = snprintf(path, FDS__PATH_MAX, "%s" MARK "%s", s->base, name);
    return size < FDS__PATH_MAX ? FDS_OK : fds__fail(err, FDS_ERR_USAGE, "%s: too long", s->base);
}

static fds_status save(const serve_secrets *s, const serve_secret *secret, fds_error *err) {
    char path[FDS__PATH_MAX], name[NAME], hex[65], key[65], text[300];
    TRY(write_path(s, secret->day, path, err));
    serve_secrets_name(secret->day, name);
    write_hex(secret->bytes, hex);
    write_hex(secret->key, key);
    int size =
        snprintf(text, sizeof text,
                 "{\"day\": \"%s\", \"share_ppm\": %u, \"secret\": \"%s\", \"key\": \"%s\"}\n",
                 name, secret->share_ppm, hex, key);
    fds_status status = fds__file_write_secret(path, text, (size_t)size, err);
    serve_forget(text, sizeof text);
    serve_forget(hex, sizeof hex);
    serve_forget(key, sizeof key);
    return status;
}

static fds_status load(const char *path, serve_secret *out, fds_error *err) {
    uint8_t *data = NULL;
    size_t size;
    json_t *json = NULL;
    TRY(fds__file_read_secret(path, MOST_FILE, &data, &size, err));
    fds_status status = fds__json_parse(path, (const char *)data, size, &json, err);
    serve_forget(data, size);
    fds__free(data);
    TRY(status);
    json_int_t ppm = json_integer_value(json_object_get(json, "share_ppm"));
    *out = (serve_secret){.day = read_day(json_string_value(json_object_get(json, "day"))),
                          .share_ppm = (uint32_t)ppm};
    bool is_fine = out->day >= 0 && ppm >= 0 && ppm <= 1000000 &&
                   fds__hex_read(json_string_value(json_object_get(json, "secret")), out->bytes) &&
                   fds__hex_read(json_string_value(json_object_get(json, "key")), out->key);
    json_decref(json);
    return is_fine
               ? FDS_OK
               : fds__fail(err, FDS_ERR_FORMAT,
                           "%s: it must have \"day\", \"share_ppm\", \"secret\" and \"key\"", path);
}

/* ---- the log ---- */

/* The entry of a day: its note, to be freed; NULL: there is none. */
static fds_status find_note(const fds_ledger *ledger, const char *what, int64_t day, json_t **note,
                            fds_error *err) {
    char key[KEY], name[NAME], *text = NULL;
    uint64_t cash, index;
    json_t *entry = NULL;
    serve_secrets_name(day, name);
    snprintf(key, sizeof key, "audit %s %s", what, name);
    *note = NULL;
    TRY(fds_ledger_find(ledger, "cash", &cash, err));
    fds_status status = fds_ledger_find_key(ledger, cash, key, &index, err);
    if (status == FDS_ERR_NOT_FOUND)
        return FDS_OK;
    TRY(status);
    TRY(fds_ledger_entry(ledger, index, UINT64_MAX, &text, err));
    status = fds__json_parse("entry", text, strlen(text), &entry, err);
    fds_text_free(text);
    *note = json_incref(json_object_get(entry, "text"));
    json_decref(entry);
    return status;
}

static fds_status write_note(fds_ledger *ledger, const char *what, int64_t day, json_t *note,
                             fds_error *err) {
    char key[KEY], name[NAME];
    uint64_t index;
    serve_secrets_name(day, name);
    snprintf(key, sizeof key, "audit %s %s", what, name);
    OWNED char *text = note ? fds__json_text(note, JSON_COMPACT) : NULL;
    json_decref(note);
    TRY(text ? FDS_OK : fds__fail_json(err));
    return fds_ledger_note(ledger, text, key, &index, err);
}

static void hash_secret(const serve_secret *secret, char hex[65]) {
    uint8_t digest[32];
    fds__sha256(&(fds__bytes){secret->bytes, sizeof secret->bytes}, 1, digest);
    write_hex(digest, hex);
}

static fds_status is_committed(const fds_ledger *ledger, const serve_secret *secret, bool *is_there,
                               bool *is_other, fds_error *err) {
    json_t *note;
    char hash[65];
    TRY(find_note(ledger, "commit", secret->day, &note, err));
    const char *logged = json_string_value(json_object_get(note, "hash"));
    hash_secret(secret, hash);
    *is_there = note != NULL;
    *is_other = note && (!logged || strcmp(logged, hash) != 0);
    json_decref(note);
    return FDS_OK;
}

static fds_status commit(fds_server *server, const serve_secret *secret, fds_error *err) {
    char name[NAME], hash[65];
    serve_secrets_name(secret->day, name);
    hash_secret(secret, hash);
    return write_note(server->ledger, "commit", secret->day,
                      json_pack("{s:s, s:s, s:s, s:I}", "audit", "commit", "day", name, "hash",
                                hash, "share_ppm", (json_int_t)secret->share_ppm),
                      err);
}

/* ---- opening ---- */

/* Takes a file's secret, or removes what is of no use any more. */
static fds_status take(fds_server *server, const char *path, fds_error *err) {
    serve_secrets *s = &server->shadow->secrets;
    serve_secret secret;
    json_t *revealed;
    bool is_there, is_other;
    TRY(load(path, &secret, err));
    TRY(find_note(server->ledger, "reveal", secret.day, &revealed, err));
    bool is_over = revealed != NULL;
    json_decref(revealed);
    TRY(is_committed(server->ledger, &secret, &is_there, &is_other, err));
    if (is_over || (!is_there && secret.day < serve_secrets_today(s)))
        return fds__file_remove(path, err);
    if (is_other)
        return fds__fail(err, FDS_ERR_CONFLICT,
                         "%s: the log has another commitment for that day: move the file away",
                         path);
    if (s->count == SERVE_SECRETS)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: more than %d secrets wait", path, SERVE_SECRETS);
    secret.is_committed = is_there;
    s->items[s->count++] = secret;
    return FDS_OK;
}

/* The day of the newest entry: the ledger dates none before it. */
static fds_status read_last_day(const fds_ledger *ledger, int64_t *day, fds_error *err) {
    char *text = NULL;
    json_t *entry = NULL;
    TRY(fds_ledger_entry(ledger, fds_ledger_size(ledger) - 1, UINT64_MAX, &text, err));
    fds_status status = fds__json_parse("entry", text, strlen(text), &entry, err);
    fds_text_free(text);
    *day = read_day(json_string_value(json_object_get(entry, "at")));
    json_decref(entry);
    return status;
}

fds_status serve_secrets_open(fds_server *server, const char *base, fds_error *err) {
    serve_secrets *s = &server->shadow->secrets;
    char folder[FDS__PATH_MAX], path[FDS__PATH_MAX], mark[FDS__PATH_MAX], **names = NULL;
    size_t count = 0;
    snprintf(s->base, sizeof s->base, "%s", base);
    s->now_ms = s->now_ms ? s->now_ms : serve_system_ms;
    s->ready_day = -1;
    TRY(read_last_day(server->ledger, &s->last_day, err));
    snprintf(folder, sizeof folder, "%s", base);
    char *slash = strrchr(folder, '/');
    snprintf(mark, sizeof mark, "%.4000s" MARK, slash ? slash + 1 : folder);
    strcpy(slash ? slash + 1 : folder, slash ? "" : ".");
    TRY(fds__dir_list(folder, &names, &count, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++)
        if (strncmp(names[i], mark, strlen(mark)) == 0 && read_day(names[i] + strlen(mark)) >= 0 &&
            strlen(names[i]) == strlen(mark) + NAME - 1) {
            status = fds__path_join(path, sizeof path, folder, names[i], err);
            if (status == FDS_OK)
                status = take(server, path, err);
        }
    fds__dir_list_free(names, count);
    return status;
}

/* ---- a day ---- */

static serve_secret *find(serve_secrets *s, int64_t day) {
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].day == day)
            return &s->items[i];
    return NULL;
}

/* A new secret, on the disk; or none, because the log has a commitment whose secret is lost. */
static fds_status make(fds_server *server, int64_t day, fds_error *err) {
    serve_secrets *s = &server->shadow->secrets;
    serve_secret secret = {.day = day, .share_ppm = s->share_ppm};
    json_t *note;
    TRY(find_note(server->ledger, "commit", day, &note, err));
    bool is_lost = note != NULL;
    json_decref(note);
    if (is_lost) {
        serve_log_event(
            server, "audit",
            "the secret of this day, which the log commits to, is lost: nothing is audited");
        return FDS_OK;
    }
    if (s->count == SERVE_SECRETS)
        return fds__fail(err, FDS_ERR_LIMIT, "more than %d secrets wait", SERVE_SECRETS);
    TRY(fds__random_secret(secret.bytes, sizeof secret.bytes, err));
    TRY(fds__random_secret(secret.key, sizeof secret.key, err));
    TRY(save(s, &secret, err));
    s->items[s->count++] = secret;
    return FDS_OK;
}

static fds_status prepare(fds_server *server, int64_t day, fds_error *err) {
    serve_secrets *s = &server->shadow->secrets;
    if (!find(s, day) && s->share_ppm)
        TRY(make(server, day, err));
    serve_secret *secret = find(s, day);
    if (!secret || secret->is_committed)
        return FDS_OK;
    TRY(commit(server, secret, err));
    secret->is_committed = true;
    return FDS_OK;
}

fds_status serve_secrets_prepare(fds_server *server, fds_error *err) {
    serve_secrets *s = &server->shadow->secrets;
    int64_t today = serve_secrets_today(s);
    s->last_day = today;
    if (s->ready_day == today)
        return FDS_OK;
    TRY(prepare(server, today, err));
    TRY(prepare(server, today + 1, err));
    s->ready_day = today;
    return FDS_OK;
}

bool serve_secrets_choose(const serve_secrets *s, int64_t day, uint64_t entry) {
    const serve_secret *secret = find((serve_secrets *)(uintptr_t)s, day);
    uint8_t number[8], digest[32];
    uint64_t first = 0;
    if (!secret || !secret->is_committed)
        return false;
    for (int i = 0; i < 8; i++)
        number[i] = (uint8_t)(entry >> (56 - 8 * i));
    fds__sha256((fds__bytes[]){{secret->bytes, 32}, {number, 8}}, 2, digest);
    for (int i = 0; i < 8; i++)
        first = first << 8 | digest[i];
    return (double)first < ldexp((double)secret->share_ppm / 1e6, 64);
}

/* ---- inputs ---- */

enum { NONCE_AT = 8, TAG_AT = NONCE_AT + CHACHA_POLY1305_NONCE_SIZE };
_Static_assert(TAG_AT + CHACHA_POLY1305_DIGEST_SIZE == SERVE_SEAL, "the head of what is sealed");

static void begin_seal(struct chacha_poly1305_ctx *ctx, const serve_secret *secret,
                       const uint8_t *nonce, uint64_t entry) {
    const uint64_t about[2] = {(uint64_t)secret->day, entry};
    chacha_poly1305_set_key(ctx, secret->key);
    chacha_poly1305_set_nonce(ctx, nonce);
    chacha_poly1305_update(ctx, sizeof about, (const uint8_t *)about);
}

fds_status serve_secrets_seal(const serve_secrets *s, int64_t day, uint64_t entry, const void *data,
                              size_t size, uint8_t *out, fds_error *err) {
    struct chacha_poly1305_ctx ctx;
    const serve_secret *secret = find((serve_secrets *)(uintptr_t)s, day);
    assert(secret); /* it has chosen the entry */
    memcpy(out, &day, sizeof day);
    TRY(fds__random_secret(out + NONCE_AT, CHACHA_POLY1305_NONCE_SIZE, err));
    begin_seal(&ctx, secret, out + NONCE_AT, entry);
    chacha_poly1305_encrypt(&ctx, size, out + SERVE_SEAL, data);
    chacha_poly1305_digest(&ctx, CHACHA_POLY1305_DIGEST_SIZE, out + TAG_AT);
    serve_forget(&ctx, sizeof ctx);
    return FDS_OK;
}

int64_t serve_secrets_sealed_day(const void *sealed, size_t size) {
    int64_t day = -1;
    if (size >= SERVE_SEAL)
        memcpy(&day, sealed, sizeof day);
    return day;
}

fds_status serve_secrets_unseal(const serve_secrets *s, uint64_t entry, const void *sealed,
                                size_t size, void *out, fds_error *err) {
    struct chacha_poly1305_ctx ctx;
    const uint8_t *from = sealed;
    uint8_t tag[CHACHA_POLY1305_DIGEST_SIZE];
    int64_t day = serve_secrets_sealed_day(sealed, size);
    const serve_secret *secret = day < 0 ? NULL : find((serve_secrets *)(uintptr_t)s, day);
    if (!secret)
        return fds__fail(err, FDS_ERR_NOT_FOUND,
                         "entry %llu waits for its audit, but the secret of its day is lost",
                         (unsigned long long)entry);
    begin_seal(&ctx, secret, from + NONCE_AT, entry);
    chacha_poly1305_decrypt(&ctx, size - SERVE_SEAL, out, from + SERVE_SEAL);
    chacha_poly1305_digest(&ctx, sizeof tag, tag);
    serve_forget(&ctx, sizeof ctx);
    return memeql_sec(tag, from + TAG_AT, sizeof tag)
               ? FDS_OK
               : fds__fail(err, FDS_ERR_CORRUPT,
                           "entry %llu waits for its audit, but its input was changed",
                           (unsigned long long)entry);
}

/* ---- the day after ---- */

static fds_status reveal(fds_server *server, const serve_secret *secret, fds_error *err) {
    char name[NAME], hex[65], rows_hex[65], path[FDS__PATH_MAX];
    uint8_t sha256[32];
    uint64_t rows;
    serve_secrets_name(secret->day, name);
    TRY(fds_ledger_audited_day(server->ledger, name, &rows, sha256, err));
    write_hex(secret->bytes, hex);
    write_hex(sha256, rows_hex);
    TRY(write_note(server->ledger, "reveal", secret->day,
                   json_pack("{s:s, s:s, s:s, s:I, s:I, s:s}", "audit", "reveal", "day", name,
                             "secret", hex, "share_ppm", (json_int_t)secret->share_ppm, "rows",
                             (json_int_t)rows, "sha256", rows_hex),
                   err));
    TRY(write_path(&server->shadow->secrets, secret->day, path, err));
    return fds__file_remove(path, err);
}

fds_status serve_secrets_reveal(fds_server *server, int64_t before, fds_error *err) {
    serve_secrets *s = &server->shadow->secrets;
    for (size_t i = 0; i < s->count;) {
        if (s->items[i].day >= before) {
            i++;
            continue;
        }
        if (s->items[i].is_committed)
            TRY(reveal(server, &s->items[i], err));
        s->items[i] = s->items[--s->count];
    }
    return FDS_OK;
}
