/* SPDX-License-Identifier: Apache-2.0
 *
 * One entry: its row in the database, its postings as bytes, its leaf in the log.
 *
 * Postings: a varint with their number; for each a varint with the account and a varint with the
 * units, as 2u for u >= 0 and -2u-1 for u < 0. A varint has 7 bits per byte, the lowest first; all
 * bytes but the last have the highest bit set. The last byte is not 0 unless it is the only one.
 *
 * Leaf: lines of a name, a blank and a value, each ended by a newline, in this order; a line is left
 * out where the column is null.
 *
 *   fds entry v1
 *   index     its number
 *   kind      open, run, topup, prediction, payout, correction, audit, privacy or release
 *   at        2026-11-17T21:00:00.123Z
 *   run       SHA-256 of the run: of a prediction and of the run's own entry
 *   label     of a prediction, as are the next six
 *   amount    units, a blank, currency, a slash, decimals: 1000000 USD/6
 *   fee       units
 *   rule      clip, signed, clip-for-signed or evenly
 *   payees    their number; also of a run's own entry
 *   input     SHA-256(salt | "input" | input)
 *   ref       number of the corrected entry; of a release, of the entry that charges it
 *   shares    root of the tree of shares, of an entry with postings
 *   private   SHA-256(salt | columns)
 *
 * Predictions of a private ledger have no lines label, amount, fee and rule.
 *
 * Columns: idx, kind, at, run, customer, amount, fee, label, confidence, rule, ref, text, key,
 * fingerprint, answer, postings, vals, errors, input, in this order; each as a byte that says its type
 * and what follows: 0 null; 1 a whole number in 8 bytes; 2 a text and 3 bytes, each after its length in
 * 8 bytes; 4 a double in 8 bytes. Numbers are little-endian. So a change of any column of an entry
 * changes its leaf.
 *
 * Share: leaf i of the tree of shares (RFC 6962, as the log's) is posting i, from 0:
 *
 *   fds share v1
 *   entry     number of the entry
 *   account   name
 *   units     of the posting
 *   salt      SHA-256(salt of the entry | "share" | i in decimal digits)
 *
 * Hashes are in lower-case hexadecimal digits.
 */
#include "ledger/ledger.h"

#include <math.h>
#include <time.h>

const char *const ledger_entry_kinds[LEDGER_KINDS] = {
    "open", "run", "topup", "prediction", "payout", "correction", "audit", "privacy", "release"};
static const char *const rules[] = {"clip", "signed", "clip-for-signed", "evenly"};
enum { RULES = sizeof rules / sizeof *rules };

const char *ledger_rule_name(fds__pay_rule rule) { return rules[rule]; }

bool ledger_rule_find(const char *name, fds__pay_rule *out) {
    for (int i = 0; i < RULES; i++)
        if (strcmp(name, rules[i]) == 0) {
            *out = (fds__pay_rule)i;
            return true;
        }
    return false;
}

/* ---- words, times ---- */

fds_status ledger_check_word(const char *what, const char *word, size_t most, fds_error *err) {
    size_t size = word ? strlen(word) : 0;
    if (size == 0 || size > most)
        return fds__fail(err, FDS_ERR_USAGE, "%s must have 1 to %zu bytes (got %zu)", what, most,
                         size);
    for (const char *at = word; *at;) {
        uint32_t code;
        size_t step = fds__utf8(at, &code);
        if (step == 0 || fds__is_control(code))
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s must be UTF-8 without control characters (got \"%.60s\")", what,
                             word);
        at += step;
    }
    return FDS_OK;
}

void ledger_hex(const void *data, size_t size, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = ((const uint8_t *)data)[i];
        out[2 * i] = digits[byte >> 4];
        out[2 * i + 1] = digits[byte & 15];
    }
    out[2 * size] = 0;
}

static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

const char *ledger_time_text(int64_t at_ms, char out[LEDGER_TIME]) {
    time_t seconds = (time_t)floor_divide(at_ms, 1000);
    struct tm utc;
    out[0] = 0;
    if (gmtime_r(&seconds, &utc) && utc.tm_year >= -1900 && utc.tm_year < 8100)
        snprintf(out, LEDGER_TIME, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900,
                 utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                 (int)(at_ms - (int64_t)seconds * 1000));
    return out;
}

const char *ledger_day_text(int64_t day, char out[LEDGER_TIME]) {
    if (day > -1000000 && day < 3000000) {
        ledger_time_text(day * LEDGER_DAY_MS, out);
        out[10] = 0;
    } else {
        out[0] = 0;
    }
    return out;
}

bool ledger_day_read(const char *text, int64_t *day) {
    struct tm utc = {0};
    char again[LEDGER_TIME];
    int used = 0;
    if (strlen(text) != 10 ||
        sscanf(text, "%4d-%2d-%2d%n", &utc.tm_year, &utc.tm_mon, &utc.tm_mday, &used) != 3 ||
        used != 10)
        return false;
    utc.tm_year -= 1900;
    utc.tm_mon -= 1;
    *day = (int64_t)timegm(&utc) * 1000 / LEDGER_DAY_MS;
    return strcmp(ledger_day_text(*day, again), text) == 0; /* there is no February 30 */
}

/* ---- postings ---- */

static void put_varint(fds__text *out, uint64_t value) {
    char bytes[10];
    size_t used = 0;
    for (; value >= 128; value >>= 7)
        bytes[used++] = (char)(value | 128);
    bytes[used++] = (char)value;
    fds__text_add(out, bytes, used);
}

fds_status ledger_postings_encode(const fds_posting *postings, size_t count, fds__text *out,
                                  fds_error *err) {
    out->used = 0;
    out->is_failed = false;
    put_varint(out, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t units = (uint64_t)postings[i].units;
        put_varint(out, postings[i].account);
        put_varint(out, units << 1 ^ (postings[i].units < 0 ? UINT64_MAX : 0));
    }
    return fds__text_check(out, err);
}

static bool get_varint(const uint8_t **at, const uint8_t *end, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = value;
            return byte != 0 || shift == 0;
        }
    }
    return false;
}

static bool read_postings(const uint8_t *at, const uint8_t *end, size_t accounts, size_t count,
                          fds_posting *out) {
    for (size_t i = 0; i < count; i++) {
        uint64_t units;
        if (!get_varint(&at, end, &out[i].account) || out[i].account >= accounts ||
            !get_varint(&at, end, &units))
            return false;
        out[i].units = (int64_t)(units >> 1 ^ (units & 1 ? UINT64_MAX : 0));
    }
    return at == end;
}

fds_status ledger_postings_decode(const ledger_entry *e, size_t accounts, fds_posting **postings,
                                  size_t *capacity, size_t *count, fds_error *err) {
    const uint8_t *at = e->postings.data, *end = at ? at + e->postings.size : NULL;
    uint64_t number = 0;
    void *grown = *postings;
    *count = 0;
    if (!at)
        return FDS_OK;
    /* a posting has at least two bytes */
    bool is_right = get_varint(&at, end, &number) && number <= e->postings.size / 2;
    if (is_right) {
        fds_status status = fds__grow(&grown, capacity, number + 1, sizeof **postings, err);
        *postings = grown;
        TRY(status);
        is_right = read_postings(at, end, accounts, number, *postings);
    }
    if (!is_right)
        return fds__fail(err, FDS_ERR_CORRUPT, "entry %llu: its postings are malformed",
                         (unsigned long long)e->index);
    *count = number;
    return FDS_OK;
}

/* ---- shares ---- */

/* What a share's salt is the hash of. */
typedef struct {
    uint8_t bytes[LEDGER_SALT + sizeof "share" + FDS__DIGITS];
    size_t size;
} salted;

static void put_salted(const ledger_entry *e, size_t i, salted *out) {
    char digits[FDS__DIGITS], *number = fds__digits(i, digits);
    size_t length = (size_t)(digits + sizeof digits - number);
    memcpy(out->bytes, e->salt, sizeof e->salt);
    memcpy(out->bytes + sizeof e->salt, "share", 5);
    memcpy(out->bytes + sizeof e->salt + 5, number, length);
    out->size = sizeof e->salt + 5 + length;
}

static void put_share(const ledger_entry *e, const char *account, int64_t units,
                      const uint8_t salt[32], fds__text *out) {
    char hex[65];
    ledger_hex(salt, 32, hex);
    fds__text_add(out, "fds share v1\nentry ", 19);
    fds__text_int(out, (int64_t)e->index);
    fds__text_add(out, "\naccount ", 9);
    fds__text_add(out, account, strlen(account));
    fds__text_add(out, "\nunits ", 7);
    fds__text_int(out, units);
    fds__text_add(out, "\nsalt ", 6);
    fds__text_add(out, hex, 64);
    fds__text_add(out, "\n", 1);
}

void ledger_share_text(const ledger_entry *e, size_t i, const char *account, int64_t units,
                       fds__text *out) {
    salted from;
    uint8_t salt[32];
    put_salted(e, i, &from);
    fds__sha256(&(fds__bytes){from.bytes, from.size}, 1, salt);
    put_share(e, account, units, salt, out);
}

enum { SHARES = 64 }; /* hashed together */

/* Of count shares from number first on; at most SHARES. */
static fds_status hash_shares(const ledger_entry *e, const ledger_state *s,
                              const fds_posting *postings, size_t first, size_t count,
                              fds__text *text, log_hash *hashes, fds_error *err) {
    salted from[SHARES];
    fds__bytes messages[SHARES];
    uint8_t salts[SHARES][32];
    size_t ends[SHARES];
    for (size_t i = 0; i < count; i++) {
        put_salted(e, first + i, &from[i]);
        messages[i] = (fds__bytes){from[i].bytes, from[i].size};
    }
    fds__sha256_each(messages, count, salts);
    text->used = 0;
    for (size_t i = 0; i < count; i++) {
        const fds_posting *p = &postings[first + i];
        fds__text_add(text, &log_leaf_mark, 1);
        put_share(e, s->accounts[p->account].name, p->units, salts[i], text);
        ends[i] = text->used;
    }
    TRY(fds__text_check(text, err)); /* no longer moves */
    for (size_t i = 0; i < count; i++) {
        size_t begin = i ? ends[i - 1] : 0;
        messages[i] = (fds__bytes){text->data + begin, ends[i] - begin};
    }
    log_marked(messages, count, hashes + first);
    return FDS_OK;
}

fds_status ledger_share_hashes(const ledger_entry *e, const ledger_state *s,
                               const fds_posting *postings, size_t count, log_hash **hashes,
                               size_t *capacity, fds_error *err) {
    void *grown = *hashes;
    fds_status status = fds__grow(&grown, capacity, count, sizeof **hashes, err);
    *hashes = grown;
    TRY(status);
    fds__text text = {0};
    for (size_t i = 0; i < count && status == FDS_OK; i += SHARES)
        status =
            hash_shares(e, s, postings, i, MIN(count - i, (size_t)SHARES), &text, *hashes, err);
    fds__free(text.data);
    return status;
}

/* ---- the leaf ---- */

enum { COLUMN_NULL, COLUMN_INT, COLUMN_TEXT, COLUMN_BYTES, COLUMN_REAL };

/* Columns as they are hashed. */
typedef struct {
    fds__bytes parts[64];
    size_t count;
    uint8_t heads[24][9]; /* type, and a number or length */
    size_t used;
} columns;

static void add_head(columns *c, uint8_t type, const void *number, size_t size) {
    uint8_t *head = c->heads[c->used++];
    head[0] = type;
    memcpy(head + 1, number, size);
    c->parts[c->count++] = (fds__bytes){head, 1 + size};
}

static void add_int(columns *c, bool is_there, uint64_t value) {
    add_head(c, is_there ? COLUMN_INT : COLUMN_NULL, &value, is_there ? sizeof value : 0);
}

static void add_bytes(columns *c, uint8_t type, const void *data, size_t size) {
    uint64_t length = size;
    add_head(c, data ? type : COLUMN_NULL, &length, data ? sizeof length : 0);
    if (data)
        c->parts[c->count++] = (fds__bytes){data, size};
}

static void add_text(columns *c, const char *text) {
    add_bytes(c, COLUMN_TEXT, text, text ? strlen(text) : 0);
}

static void add_blob(columns *c, fds__bytes bytes) {
    add_bytes(c, COLUMN_BYTES, bytes.data, bytes.size);
}

static void hash_private(const ledger_entry *e, uint8_t digest[32]) {
    columns c = {.count = 1};
    bool has_confidence = !isnan(e->confidence);
    c.parts[0] = (fds__bytes){e->salt, sizeof e->salt};
    add_int(&c, true, e->index);
    add_text(&c, ledger_entry_kinds[e->kind]);
    add_int(&c, true, (uint64_t)e->at_ms);
    add_int(&c, e->run != LEDGER_NONE, e->run);
    add_int(&c, e->customer != LEDGER_NONE, e->customer);
    add_int(&c, e->has_amount, (uint64_t)e->amount);
    add_int(&c, e->has_amount, (uint64_t)e->fee);
    add_text(&c, e->label);
    add_head(&c, has_confidence ? COLUMN_REAL : COLUMN_NULL, &e->confidence,
             has_confidence ? 8 : 0);
    add_text(&c, e->rule);
    add_int(&c, e->ref != LEDGER_NONE, e->ref);
    add_text(&c, e->text);
    add_text(&c, e->key);
    add_blob(&c, e->fingerprint);
    add_blob(&c, e->answer);
    add_blob(&c, e->postings);
    add_blob(&c, e->values);
    add_blob(&c, e->errors);
    add_blob(&c, e->input);
    fds__sha256(c.parts, c.count, digest);
}

static void put_hash(fds__text *out, const char *name, const void *digest) {
    char hex[65];
    ledger_hex(digest, 32, hex);
    fds__text_print(out, "%s %s\n", name, hex);
}

static void put_prediction(const ledger_entry *e, const ledger_state *s, const ledger_unit *unit,
                           fds__text *out) {
    const ledger_run *run = s->runs[e->run];
    uint8_t digest[32];
    fds__text_print(out, "run %s\n", run->sha256);
    if (!s->privacy.is_on)
        fds__text_print(out, "label %s\namount %lld %s/%d\nfee %lld\nrule %s\n", e->label,
                        (long long)e->amount, unit->currency, unit->decimals, (long long)e->fee,
                        e->rule);
    fds__text_print(out, "payees %zu\n", run->count);
    fds__sha256((fds__bytes[]){{e->salt, sizeof e->salt}, {"input", 5}, e->input}, 3, digest);
    put_hash(out, "input", digest);
}

void ledger_leaf_text(const ledger_entry *e, const ledger_state *s, const ledger_unit *unit,
                      const log_hash *shares, fds__text *out) {
    char time[LEDGER_TIME];
    uint8_t digest[32];
    fds__text_print(out, "fds entry v1\nindex %llu\nkind %s\nat %s\n", (unsigned long long)e->index,
                    ledger_entry_kinds[e->kind], ledger_time_text(e->at_ms, time));
    if (e->kind == LEDGER_PREDICTION)
        put_prediction(e, s, unit, out);
    if (e->kind == LEDGER_RUN)
        fds__text_print(out, "run %s\npayees %zu\n", s->runs[e->run]->sha256,
                        s->runs[e->run]->count);
    if (e->ref != LEDGER_NONE)
        fds__text_print(out, "ref %llu\n", (unsigned long long)e->ref);
    if (shares)
        put_hash(out, "shares", shares->bytes);
    hash_private(e, digest);
    put_hash(out, "private", digest);
}

/* ---- all parts of an entry that was read ---- */

static bool is_complete(const ledger_entry *e, const ledger_state *s) {
    if (e->customer != LEDGER_NONE && e->customer >= s->account_count)
        return false;
    switch (e->kind) {
    case LEDGER_OPEN:
        return e->text != NULL;
    case LEDGER_RUN:
        return e->run < s->run_count && e->text;
    case LEDGER_PREDICTION:
        return e->run < s->run_count && e->customer < s->account_count && e->has_amount &&
               e->label && strlen(e->label) <= LEDGER_NAME && e->rule && e->input.size == 32 &&
               e->postings.data && e->values.size == s->runs[e->run]->count * sizeof(float) &&
               (!e->errors.data || e->errors.size == e->values.size / 2);
    case LEDGER_TOPUP:
    case LEDGER_PAYOUT:
        return e->customer < s->account_count && e->has_amount && e->postings.data;
    case LEDGER_AUDIT:
    case LEDGER_PRIVACY:
        return e->text && e->ref == LEDGER_NONE && !e->postings.data;
    default:
        return e->ref < e->index && e->text && e->postings.data;
    }
}

fds_status ledger_parts_postings(ledger_parts *p, const ledger_entry *e, const ledger_state *s,
                                 fds_error *err) {
    if (!is_complete(e, s))
        return fds__fail(err, FDS_ERR_CORRUPT, "entry %llu: a column is missing or malformed",
                         (unsigned long long)e->index);
    return ledger_postings_decode(e, s->account_count, &p->postings, &p->posting_capacity,
                                  &p->count, err);
}

fds_status ledger_parts_read(ledger_parts *p, const ledger_entry *e, const ledger_state *s,
                             const ledger_unit *unit, fds_error *err) {
    log_hash root;
    TRY(ledger_parts_postings(p, e, s, err));
    if (p->count) {
        TRY(ledger_share_hashes(e, s, p->postings, p->count, &p->hashes, &p->hash_capacity, err));
        root = log_root(p->hashes, p->count);
    }
    p->leaf.used = 0;
    ledger_leaf_text(e, s, unit, p->count ? &root : NULL, &p->leaf);
    return fds__text_check(&p->leaf, err);
}

void ledger_parts_free(ledger_parts *p) {
    fds__free(p->postings);
    fds__free(p->hashes);
    fds__free(p->leaf.data);
}

/* ---- the row ---- */

typedef struct {
    const db_query *row;
    bool is_wrong;
} reader;

/* Whether the column has a value, of the right type. */
static bool is_there(reader *r, int column, db_type type) {
    db_type found = db_type_of(r->row, column);
    r->is_wrong |= found != type && found != DB_NULL;
    return found == type;
}

static const char *read_text(reader *r, int column) {
    size_t size = 0;
    const char *text = is_there(r, column, DB_TEXT) ? db_text(r->row, column, &size) : NULL;
    r->is_wrong |= text && strlen(text) != size;
    return text;
}

static fds__bytes read_blob(reader *r, int column) {
    fds__bytes bytes = {0};
    if (is_there(r, column, DB_BLOB))
        bytes.data = db_blob(r->row, column, &bytes.size);
    return bytes;
}

static uint64_t read_number(reader *r, int column) {
    int64_t value = is_there(r, column, DB_INT) ? db_int(r->row, column) : -1;
    r->is_wrong |= value < -1;
    return value < 0 ? LEDGER_NONE : (uint64_t)value;
}

/* A blob of exactly 32 bytes. */
static void read_hash(reader *r, int column, uint8_t out[32]) {
    fds__bytes bytes = read_blob(r, column);
    r->is_wrong |= !bytes.data || bytes.size != 32;
    if (bytes.data && bytes.size == 32)
        memcpy(out, bytes.data, 32);
}

bool ledger_entry_kind_find(const char *name, ledger_entry_kind *out) {
    for (int i = 0; name && i < LEDGER_KINDS; i++)
        if (strcmp(name, ledger_entry_kinds[i]) == 0) {
            *out = (ledger_entry_kind)i;
            return true;
        }
    return false;
}

fds_status ledger_entry_read(const db_query *row, ledger_entry *e, fds_error *err) {
    reader r = {.row = row};
    *e = (ledger_entry){.index = read_number(&r, 0)};
    r.is_wrong |= e->index == LEDGER_NONE || !ledger_entry_kind_find(read_text(&r, 1), &e->kind);
    r.is_wrong |= !is_there(&r, 2, DB_INT);
    e->at_ms = db_int(row, 2);
    e->run = read_number(&r, 3);
    e->customer = read_number(&r, 4);
    e->has_amount = is_there(&r, 5, DB_INT);
    r.is_wrong |= is_there(&r, 6, DB_INT) != e->has_amount;
    e->amount = db_int(row, 5);
    e->fee = db_int(row, 6);
    e->label = read_text(&r, 7);
    e->confidence = is_there(&r, 8, DB_REAL) ? db_real(row, 8) : NAN;
    e->rule = read_text(&r, 9);
    e->ref = read_number(&r, 10);
    e->text = read_text(&r, 11);
    e->key = read_text(&r, 12);
    fds__bytes *blobs[] = {&e->fingerprint, &e->answer, &e->postings,
                           &e->values,      &e->errors, &e->input};
    for (int i = 0; i < 6; i++)
        *blobs[i] = read_blob(&r, 13 + i);
    read_hash(&r, 19, e->salt);
    read_hash(&r, 20, e->leaf.bytes);
    if (r.is_wrong)
        return fds__fail(err, FDS_ERR_CORRUPT, "entry %lld: a column is malformed",
                         (long long)e->index);
    return FDS_OK;
}

static void bind_number(db_query *q, int at, uint64_t value) {
    if (value == LEDGER_NONE)
        db_bind_null(q, at);
    else
        db_bind_int(q, at, (int64_t)value);
}

void ledger_entry_bind(const ledger_entry *e, db_query *q) {
    db_bind_int(q, 1, (int64_t)e->index);
    db_bind_text(q, 2, ledger_entry_kinds[e->kind]);
    db_bind_int(q, 3, e->at_ms);
    bind_number(q, 4, e->run);
    bind_number(q, 5, e->customer);
    if (e->has_amount) {
        db_bind_int(q, 6, e->amount);
        db_bind_int(q, 7, e->fee);
    }
    db_bind_text(q, 8, e->label);
    if (!isnan(e->confidence))
        db_bind_real(q, 9, e->confidence);
    db_bind_text(q, 10, e->rule);
    bind_number(q, 11, e->ref);
    db_bind_text(q, 12, e->text);
    db_bind_text(q, 13, e->key);
    const fds__bytes *blobs[] = {&e->fingerprint, &e->answer, &e->postings,
                                 &e->values,      &e->errors, &e->input};
    for (int i = 0; i < 6; i++)
        db_bind_blob(q, 14 + i, blobs[i]->data, blobs[i]->size);
    db_bind_blob(q, 20, e->salt, sizeof e->salt);
    db_bind_blob(q, 21, e->leaf.bytes, sizeof e->leaf.bytes);
}
