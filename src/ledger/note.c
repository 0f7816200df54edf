/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys, and checkpoints as signed notes (C2SP signed-note, tlog-checkpoint). A checkpoint is
 *
 *   ORIGIN                      the log's name, which is that of its key
 *   SIZE                        number of leaves, decimal
 *   base64(ROOT)                root of the tree of that size
 *                               (an empty line)
 *   — NAME base64(ID | SIGNATURE)     one line per signature; the dash is U+2014
 *
 * Every line ends in a newline. What is signed are the first three lines with their newlines, by
 * Ed25519. A name has no blanks and no plus. A key is one line,
 *
 *   NAME+ID+base64(0x01 | PUBLIC KEY)            to verify with
 *   PRIVATE+KEY+NAME+ID+base64(0x01 | SEED)      to sign with; a file has this line and a newline
 *
 * where ID is the beginning of SHA-256(NAME | 0x0a | 0x01 | PUBLIC KEY): 4 bytes, here in
 * hexadecimal.
 *
 * A note may have signatures of others (witnesses), which are read but cannot be verified. One by
 * the key in question must be there, once, and be right. The specification also allows further
 * lines before the empty one; we refuse them: our logs write none, and nobody could audit what they
 * say.
 */
#include "ledger/log.h"

#include <sodium.h>

#define DASH "\xe2\x80\x94 "
#define PRIVATE "PRIVATE+KEY+"

enum {
    ED25519 = 1,
    ID = 4,
    KEY = 32,                        /* bytes of a seed, also of a public key */
    KEY64 = 44,                      /* characters of base64(type | key) */
    TAIL = 1 + 2 * ID + 1 + KEY64,   /* what follows the name in the line of a key */
    SIGNED = ID + crypto_sign_BYTES, /* bytes of a signature with its ID */
    OTHERS = 6144,                   /* the same of others: ML-DSA-87 has 4,627 */
};

_Static_assert(sizeof(((log_key *)0)->secret) == crypto_sign_SECRETKEYBYTES, "libsodium's key");
_Static_assert(LOG_NAME + TAIL < LOG_VKEY, "the longest key has room");

/* What verifies a note. */
typedef struct verifier {
    char name[LOG_NAME + 1];
    uint8_t id[ID], key[KEY];
} verifier;

static fds_status start_sodium(fds_error *err) {
    return sodium_init() >= 0 ? FDS_OK
                              : fds__fail(err, FDS_ERR_EXTERNAL, "libsodium does not start");
}

/* ---- names ---- */

/* White space of Unicode. */
static bool is_space(uint32_t code) {
    return code == ' ' || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
           code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

static bool is_name(const char *name) {
    uint32_t code = 0;
    size_t length = 0;
    for (size_t size; name[length]; length += size) {
        size = fds__utf8(name + length, &code);
        if (!size || fds__is_control(code) || is_space(code) || code == '+')
            return false;
    }
    return length >= 1 && length <= LOG_NAME;
}

static bool read_name(const char *text, size_t length, char name[LOG_NAME + 1]) {
    if (length > LOG_NAME || memchr(text, 0, length))
        return false;
    memcpy(name, text, length);
    name[length] = 0;
    return is_name(name);
}

/* ---- keys ---- */

static void key_id(const char *name, const uint8_t key[KEY], uint8_t id[ID]) {
    const uint8_t type[] = {'\n', ED25519};
    uint8_t digest[32];
    fds__sha256((fds__bytes[]){{name, strlen(name)}, {type, sizeof type}, {key, KEY}}, 3, digest);
    memcpy(id, digest, ID);
}

/* "name+id+base64" */
static void write_key(const char *name, const uint8_t id[ID], const uint8_t key[KEY],
                      char out[LOG_VKEY]) {
    uint8_t typed[1 + KEY] = {ED25519};
    char base64[KEY64 + 1];
    memcpy(typed + 1, key, KEY);
    log_base64_encode(typed, sizeof typed, base64);
    snprintf(out, LOG_VKEY, "%s+%02x%02x%02x%02x+%s", name, id[0], id[1], id[2], id[3], base64);
    sodium_memzero(typed, sizeof typed);
    sodium_memzero(base64, sizeof base64);
}

/* The id is given as it stands there; the caller compares it with what it must be. */
static bool read_key(const char *text, size_t length, verifier *out) {
    uint8_t typed[KEY64 / 4 * 3];
    size_t size, name = length - TAIL;
    if (length <= TAIL || !read_name(text, name, out->name) || text[name] != '+' ||
        text[name + 1 + 2 * ID] != '+')
        return false;
    for (size_t i = 0; i < 2 * ID; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = memchr(digits, text[name + 1 + i], sizeof digits - 1);
        if (!digit)
            return false;
        out->id[i / 2] = (uint8_t)(out->id[i / 2] << 4 | (digit - digits));
    }
    bool is_right = log_base64_decode(text + length - KEY64, KEY64, typed, &size) &&
                    size == sizeof typed && typed[0] == ED25519;
    if (is_right)
        memcpy(out->key, typed + 1, KEY);
    sodium_memzero(typed, sizeof typed);
    return is_right;
}

static bool has_right_id(const verifier *v, const uint8_t public_key[KEY]) {
    uint8_t id[ID];
    key_id(v->name, public_key, id);
    return memcmp(id, v->id, ID) == 0;
}

static fds_status read_vkey(const char *vkey, verifier *out, fds_error *err) {
    if (read_key(vkey, strlen(vkey), out) && has_right_id(out, out->key))
        return FDS_OK;
    return fds__fail(err, FDS_ERR_USAGE,
                     "\"%.300s\" is not the public key of a log: name+hash+base64, as in "
                     "log.example+c74f20a3+ARpc2Qc...",
                     vkey);
}

static void key_from_seed(const char *name, const uint8_t seed[KEY], log_key *out) {
    uint8_t id[ID], public_key[KEY];
    snprintf(out->name, sizeof out->name, "%s", name);
    crypto_sign_seed_keypair(public_key, out->secret, seed);
    key_id(name, public_key, id);
    write_key(name, id, public_key, out->vkey);
}

fds_status log_key_make(const char *name, log_key *out, fds_error *err) {
    uint8_t seed[KEY];
    if (!is_name(name))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "\"%.200s\" cannot be the name of a log: it must be UTF-8 of 1 to %d bytes "
            "without blanks, plus and control characters, for example log.example/pay",
            name, LOG_NAME);
    TRY(start_sodium(err));
    TRY(fds__random_secret(seed, sizeof seed, err));
    key_from_seed(name, seed, out);
    sodium_memzero(seed, sizeof seed);
    return FDS_OK;
}

void log_key_forget(log_key *key) { sodium_memzero(key, sizeof *key); }

fds_status log_key_save(const log_key *key, const char *path, fds_error *err) {
    char text[LOG_VKEY], line[sizeof PRIVATE + sizeof text + 1];
    uint8_t id[ID];
    key_id(key->name, key->secret + KEY, id); /* libsodium: the seed, then the public key */
    write_key(key->name, id, key->secret, text);
    int size = snprintf(line, sizeof line, PRIVATE "%s\n", text);
    fds_status status = fds__file_write_secret(path, line, (size_t)size, err);
    sodium_memzero(text, sizeof text);
    sodium_memzero(line, sizeof line);
    return status;
}

static bool read_private(const char *text, size_t size, log_key *out) {
    log_lines lines = {.at = text, .end = text + size};
    verifier v = {{0}, {0}, {0}};
    bool is_right = log_line_next(&lines) && lines.at == lines.end &&
                    log_line_skip(&lines, PRIVATE) && read_key(lines.line, lines.length, &v);
    if (is_right)
        key_from_seed(v.name, v.key, out);
    sodium_memzero(v.key, sizeof v.key);
    return is_right && has_right_id(&v, out->secret + KEY);
}

fds_status log_key_load(const char *path, log_key *out, fds_error *err) {
    uint8_t *data = NULL;
    size_t size = 0;
    TRY(start_sodium(err));
    TRY(fds__file_read_secret(path, sizeof PRIVATE + LOG_VKEY, &data, &size, err));
    bool is_right = read_private((const char *)data, size, out);
    sodium_memzero(data, size);
    fds__free(data);
    if (is_right)
        return FDS_OK;
    log_key_forget(out);
    return fds__fail(err, FDS_ERR_FORMAT,
                     "%s: not a signing key: it must be one line, " PRIVATE "name+hash+base64",
                     path);
}

/* ---- checkpoints ---- */

fds_status log_checkpoint_sign(const log_key *key, uint64_t size, const log_hash *root, char **note,
                               fds_error *err) {
    fds__text text = {0};
    uint8_t sign[SIGNED];
    char base64[(SIGNED + 2) / 3 * 4 + 1];
    TRY(start_sodium(err));
    log_base64_encode(root->bytes, sizeof *root, base64);
    fds__text_print(&text, "%s\n%llu\n%s\n", key->name, (unsigned long long)size, base64);
    if (!text.is_failed) {
        key_id(key->name, key->secret + KEY, sign);
        crypto_sign_detached(sign + ID, NULL, (const uint8_t *)text.data, text.used, key->secret);
        log_base64_encode(sign, sizeof sign, base64);
        fds__text_print(&text, "\n" DASH "%s %s\n", key->name, base64);
    }
    fds_status status = fds__text_check(&text, err);
    if (status == FDS_OK)
        *note = text.data;
    else
        fds__free(text.data);
    return status;
}

static fds_status refuse(fds_error *err, const char *why) {
    return fds__fail(err, FDS_ERR_CORRUPT, "not a checkpoint of this log: %s", why);
}

/* The lines above the signatures. */
static fds_status read_head(log_lines *lines, const char *origin, uint64_t *size, log_hash *root,
                            fds_error *err) {
    if (!log_line_next(lines) || !log_line_is(lines, origin))
        return fds__fail(err, FDS_ERR_CORRUPT,
                         "not a checkpoint of this log: the first line must be %s", origin);
    if (!log_line_next(lines) || !log_number_parse(lines->line, lines->length, size))
        return refuse(err, "the second line must be the number of entries");
    if (!log_line_next(lines) || !log_hash_decode(lines->line, lines->length, root))
        return refuse(err, "the third line must be the root of the tree in base64");
    return FDS_OK;
}

/* One line; *is_ours if it is by the key of v. */
static fds_status read_signature(log_lines *lines, const verifier *v, const char *text,
                                 size_t length, bool *is_ours, fds_error *err) {
    char name[LOG_NAME + 1];
    uint8_t bytes[OTHERS];
    size_t size = 0;
    const char *blank = NULL;
    if (log_line_skip(lines, DASH))
        blank = memchr(lines->line, ' ', lines->length);
    size_t before = blank ? (size_t)(blank - lines->line) : 0;
    size_t after = blank ? lines->length - before - 1 : 0;
    if (!blank || !read_name(lines->line, before, name) || after > OTHERS / 3 * 4 ||
        !log_base64_decode(blank + 1, after, bytes, &size) || size <= ID)
        return refuse(err, "below the empty line, lines must be — name base64");
    *is_ours = strcmp(name, v->name) == 0 && memcmp(bytes, v->id, ID) == 0;
    if (*is_ours && (size != SIGNED || crypto_sign_verify_detached(
                                           bytes + ID, (const uint8_t *)text, length, v->key) != 0))
        return refuse(err, "the signature is wrong");
    return FDS_OK;
}

fds_status log_checkpoint_open(const char *note, size_t length, const char *vkey, uint64_t *size,
                               log_hash *root, fds_error *err) {
    log_lines lines = {.at = note, .end = note + length};
    verifier v = {{0}, {0}, {0}};
    log_hash found_root;
    uint64_t found_size;
    bool is_signed = false, is_ours;
    TRY(start_sodium(err));
    TRY(read_vkey(vkey, &v, err));
    if (length > LOG_NOTE)
        return refuse(err, "it is too long");
    TRY(read_head(&lines, v.name, &found_size, &found_root, err));
    size_t text = (size_t)(lines.at - note);
    if (!log_line_next(&lines) || lines.length != 0)
        return refuse(err, "the fourth line must be empty");
    while (lines.at < lines.end) {
        if (!log_line_next(&lines))
            return refuse(err, "its last line has no end");
        TRY(read_signature(&lines, &v, note, text, &is_ours, err));
        if (is_ours && is_signed)
            return refuse(err, "it is signed twice by the same key");
        is_signed |= is_ours;
    }
    if (!is_signed)
        return refuse(err, "it is not signed by this key");
    *size = found_size;
    *root = found_root;
    return FDS_OK;
}
