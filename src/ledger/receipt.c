/* SPDX-License-Identifier: Apache-2.0
 *
 * What others can check without the ledger: the files of its log, and receipts.
 *
 * A receipt is a C2SP tlog-proof of an entry whose extra bytes are a text:
 *
 *   fds receipt v1
 *   posting I N        the number of the posting, from 0, and how many the entry has
 *   path HASH          base64; from the hash beside the share to the root of the tree of shares
 *   ...
 *                      an empty line
 *   fds share v1       the share, as entry.c has it
 *   ...
 *                      an empty line
 *   fds entry v1       the leaf of the log, as entry.c has it
 *   ...
 *
 * It is right if the share is in the tree whose root is in the leaf, the leaf is in the tree of the
 * checkpoint, and the checkpoint is signed by the log. */
#include "ledger/ledger.h"

#include <stdlib.h>

/* ---- the log's files ---- */

fds_status fds_ledger_checkpoint(const fds_ledger *l, char **note, fds_error *err) {
    db_query *q;
    bool has_row;
    TRY(ledger_query(l, LEDGER_Q_CHECKPOINT, &q, err));
    fds_status status = db_next(q, &has_row, err);
    const char *text = status == FDS_OK && has_row ? db_text(q, 2, NULL) : NULL;
    if (status == FDS_OK && !text)
        status = ledger_fail(l, err, "it has no checkpoint");
    char *copy = text ? fds__strdup(text) : NULL;
    if (text && !copy)
        status = fds__fail_nomem(err, strlen(text) + 1);
    db_end(q);
    if (status == FDS_OK)
        *note = copy;
    return status;
}

static fds_status fail_file(const fds_ledger *l, const char *path, fds_error *err) {
    return fds__fail(err, FDS_ERR_NOT_FOUND, "the log of %s has no file %.100s", l->path, path);
}

static fds_status add_entry_bytes(const fds_ledger *l, const db_query *row, ledger_parts *parts,
                                  fds__text *out, fds_error *err) {
    ledger_entry e;
    TRY(ledger_entry_read(row, &e, err));
    TRY(ledger_parts_read(parts, &e, &l->state, &l->unit, err));
    if (parts->leaf.used > UINT16_MAX)
        return fds__fail(err, FDS_ERR_LIMIT, "entry %llu is too long for the log",
                         (unsigned long long)e.index);
    uint8_t size[2] = {(uint8_t)(parts->leaf.used >> 8), (uint8_t)parts->leaf.used};
    fds__text_add(out, (const char *)size, 2);
    fds__text_add(out, parts->leaf.data, parts->leaf.used);
    return FDS_OK;
}

/* Leaves, each after its length in two bytes, the higher one first. */
static fds_status read_entries(const fds_ledger *l, const log_file *file, fds__text *out,
                               fds_error *err) {
    ledger_parts parts = {0};
    db_query *q;
    size_t found = 0;
    TRY(ledger_query(l, LEDGER_Q_ENTRIES, &q, err));
    db_bind_int(q, 1, (int64_t)(file->n * LOG_TILE));
    db_bind_int(q, 2, (int64_t)file->width);
    fds_status status = FDS_OK;
    for (bool has_row = true; status == FDS_OK;) {
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        status = add_entry_bytes(l, q, &parts, out, err);
        found++;
    }
    db_end(q);
    ledger_parts_free(&parts);
    if (status == FDS_OK && found != file->width)
        status = ledger_fail(l, err, "an entry is missing");
    return status == FDS_OK ? fds__text_check(out, err) : status;
}

static fds_status read_log_file(const fds_ledger *l, const char *path, fds__text *out,
                                fds_error *err) {
    log_file file;
    log_hash hashes[LOG_TILE];
    if (!log_file_parse(path, &file))
        return fail_file(l, path, err);
    if (file.kind == LOG_FILE_CHECKPOINT) {
        OWNED char *note = NULL;
        TRY(fds_ledger_checkpoint(l, &note, err));
        fds__text_add(out, note, strlen(note));
        return fds__text_check(out, err);
    }
    /* how many hashes of the level there are: those of complete tiles below */
    uint64_t there = file.level < LOG_LEVELS ? l->state.size >> (8 * file.level) : 0;
    if (file.n > there / LOG_TILE || file.n * LOG_TILE + file.width > there)
        return fail_file(l, path, err);
    if (file.kind == LOG_FILE_ENTRIES)
        return read_entries(l, &file, out, err);
    TRY(l->store.read(l->store.context, file.level, file.n, file.width, hashes, err));
    fds__text_add(out, (const char *)hashes, file.width * sizeof *hashes);
    return fds__text_check(out, err);
}

fds_status fds_ledger_log_file(const fds_ledger *l, const char *path, void **data, size_t *size,
                               fds_error *err) {
    fds__text out = {0};
    fds_status status = read_log_file(l, path ? path : "", &out, err);
    if (status != FDS_OK) {
        fds__free(out.data);
        return status;
    }
    *data = out.data;
    *size = out.used;
    return FDS_OK;
}

/* ---- making a receipt ---- */

static void write_extra(const fds_ledger *l, const ledger_entry *e, const ledger_parts *parts,
                        size_t posting, fds__text *out) {
    log_hash path[LOG_PATH];
    size_t length = log_path(parts->hashes, parts->count, posting, path);
    const fds_posting *p = &parts->postings[posting];
    fds__text_print(out, "fds receipt v1\nposting %zu %zu\n", posting, parts->count);
    for (size_t i = 0; i < length; i++) {
        char text[LOG_HASH64 + 1];
        log_base64_encode(path[i].bytes, sizeof path[i].bytes, text);
        fds__text_print(out, "path %s\n", text);
    }
    fds__text_add(out, "\n", 1);
    ledger_share_text(e, posting, l->state.accounts[p->account].name, p->units, out);
    fds__text_add(out, "\n", 1);
    fds__text_add(out, parts->leaf.data, parts->leaf.used);
}

static fds_status make_extra(const fds_ledger *l, uint64_t index, uint64_t account, fds__text *out,
                             fds_error *err) {
    ledger_parts parts = {0};
    ledger_entry e;
    db_query *row;
    TRY(ledger_entry_get(l, index, &e, &row, err));
    fds_status status = ledger_parts_read(&parts, &e, &l->state, &l->unit, err);
    size_t posting = 0;
    while (status == FDS_OK && posting < parts.count &&
           (parts.postings[posting].account != account ||
            ledger_is_earned(e.kind, posting, parts.count)))
        posting++;
    if (status == FDS_OK && e.kind == LEDGER_PREDICTION && ledger_is_hidden(l, account))
        status = fds__fail(err, FDS_ERR_USAGE,
                           "%s is private: receipts of %.200s are of releases, not of predictions",
                           l->path, l->state.accounts[account].name);
    if (status == FDS_OK && posting == parts.count)
        status = fds__fail(err, FDS_ERR_NOT_FOUND, "entry %llu has no posting of %.200s",
                           (unsigned long long)index, l->state.accounts[account].name);
    if (status == FDS_OK) {
        write_extra(l, &e, &parts, posting, out);
        status = fds__text_check(out, err);
    }
    db_end(row);
    ledger_parts_free(&parts);
    return status;
}

fds_status fds_ledger_receipt(const fds_ledger *l, uint64_t index, uint64_t account, char **proof,
                              fds_error *err) {
    OWNED char *note = NULL;
    log_hash path[LOG_PATH];
    size_t length;
    fds__text extra = {0};
    TRY(ledger_check_account(l, account, err));
    TRY(fds_ledger_checkpoint(l, &note, err));
    fds_status status = make_extra(l, index, account, &extra, err);
    if (status == FDS_OK)
        status = log_tree_path(&l->store, l->state.size, index, path, &length, err);
    if (status == FDS_OK)
        status = log_proof_write(extra.data, extra.used, index, path, length, note, proof, err);
    fds__free(extra.data);
    return status;
}

/* ---- checking a receipt ---- */

/* What the extra bytes of a receipt say. */
typedef struct {
    uint64_t posting, postings;
    log_hash path[LOG_PATH], share;
    size_t length;
    json_t *json; /* what is told once it is proven */
} claim;

static fds_status fail_receipt(fds_error *err, const char *why) {
    return fds__fail(err, FDS_ERR_CORRUPT, "the receipt is not right: %s", why);
}

static bool put_text(json_t *json, const char *name, const char *text, size_t length) {
    return fds__json_put(json, name, json_stringn(text, length));
}

/* A whole number with an optional sign. */
static bool put_number(json_t *json, const char *name, const char *text, size_t length) {
    bool is_negative = length && *text == '-';
    uint64_t size;
    return log_number_parse(text + is_negative, length - is_negative, &size) &&
           fds__json_put(json, name,
                         json_integer(is_negative ? -(json_int_t)size : (json_int_t)size));
}

/* "posting I N" and the path. */
static bool read_head(log_lines *lines, claim *c) {
    if (!log_line_next(lines) || !log_line_is(lines, "fds receipt v1") || !log_line_next(lines) ||
        !log_line_skip(lines, "posting "))
        return false;
    const char *blank = memchr(lines->line, ' ', lines->length);
    size_t first = blank ? (size_t)(blank - lines->line) : 0;
    if (!blank || !log_number_parse(lines->line, first, &c->posting) ||
        !log_number_parse(blank + 1, lines->length - first - 1, &c->postings))
        return false;
    while (log_line_next(lines) && lines->length) {
        if (c->length == LOG_PATH || !log_line_skip(lines, "path ") ||
            !log_hash_decode(lines->line, lines->length, &c->path[c->length++]))
            return false;
    }
    return lines->length == 0;
}

static bool read_share(log_lines *lines, uint64_t index, claim *c) {
    const char *begin = lines->at;
    uint64_t entry;
    bool is_right = log_line_next(lines) && log_line_is(lines, "fds share v1") &&
                    log_line_next(lines) && log_line_skip(lines, "entry ") &&
                    log_number_parse(lines->line, lines->length, &entry) && entry == index &&
                    log_line_next(lines) && log_line_skip(lines, "account ") &&
                    put_text(c->json, "account", lines->line, lines->length) &&
                    log_line_next(lines) && log_line_skip(lines, "units ") &&
                    put_number(c->json, "units", lines->line, lines->length) &&
                    log_line_next(lines) && log_line_skip(lines, "salt ") && lines->length == 64;
    c->share = log_leaf(begin, (size_t)(lines->at - begin));
    return is_right && log_line_next(lines) && lines->length == 0;
}

/* "1000000 USD/6" */
static bool put_amount(json_t *json, const char *text, size_t length) {
    const char *blank = memchr(text, ' ', length), *slash = memchr(text, '/', length);
    return blank && slash && slash > blank &&
           put_number(json, "amount", text, (size_t)(blank - text)) &&
           put_text(json, "currency", blank + 1, (size_t)(slash - blank - 1)) &&
           put_number(json, "decimals", slash + 1, (size_t)(text + length - slash - 1));
}

/* One line of the leaf; the root of the shares is compared, not told. */
static bool read_leaf_line(const log_lines *lines, claim *c, bool *has_shares) {
    static const char *const numbers[] = {"index", "fee", "payees", "ref"};
    const char *blank = memchr(lines->line, ' ', lines->length);
    char name[16], hex[65];
    size_t size = blank ? (size_t)(blank - lines->line) : sizeof name;
    if (size >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)size, lines->line);
    const char *value = blank + 1;
    size_t length = lines->length - size - 1;
    if (strcmp(name, "amount") == 0)
        return put_amount(c->json, value, length);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i]) == 0)
            return put_number(c->json, name, value, length);
    if (strcmp(name, "shares") != 0)
        return strcmp(name, "private") == 0 || put_text(c->json, name, value, length);
    log_hash root = {0};
    for (size_t i = 0; length == 64 && i < sizeof root.bytes; i++) {
        unsigned byte = 0;
        if (sscanf(value + 2 * i, "%2x", &byte) != 1)
            return false;
        root.bytes[i] = (uint8_t)byte;
    }
    ledger_hex(root.bytes, sizeof root.bytes, hex);
    *has_shares = length == 64 && memcmp(hex, value, 64) == 0 &&
                  log_includes(&c->share, c->posting, c->postings, c->path, c->length, &root);
    return *has_shares;
}

static fds_status get_leaf(void *context, const uint8_t *extra, size_t size, uint64_t index,
                           log_hash *leaf, fds_error *err) {
    claim *c = context;
    const char *text = (const char *)extra;
    log_lines lines = {.at = text, .end = text + size};
    bool has_shares = false;
    if (memchr(extra, 0, size) || !fds__is_utf8(text))
        return fail_receipt(err, "it is not text");
    if (!read_head(&lines, c))
        return fail_receipt(err, "its path is malformed");
    if (!read_share(&lines, index, c))
        return fail_receipt(err, "its share is malformed, or of another entry");
    *leaf = log_leaf(lines.at, (size_t)(lines.end - lines.at));
    if (!log_line_next(&lines) || !log_line_is(&lines, "fds entry v1"))
        return fail_receipt(err, "it has no entry");
    while (lines.at < lines.end)
        if (!log_line_next(&lines) || !read_leaf_line(&lines, c, &has_shares))
            return fail_receipt(err, "its share is not of this entry, or a line is malformed");
    json_int_t payees = json_integer_value(json_object_get(c->json, "payees"));
    if (!has_shares || json_integer_value(json_object_get(c->json, "index")) != (json_int_t)index ||
        (payees && (uint64_t)payees + 2 != c->postings))
        return fail_receipt(err, "its parts are of different entries");
    return FDS_OK;
}

fds_status fds_receipt_verify(const char *proof, size_t size, const char *vkey, char **json,
                              fds_error *err) {
    claim c = {.json = json_object()};
    if (!vkey || !proof) {
        json_decref(c.json);
        return fds__fail(err, FDS_ERR_USAGE, "a receipt is verified by the key of its log");
    }
    fds_status status =
        c.json ? log_proof_open(proof, size, vkey, get_leaf, &c, err) : fds__fail_json(err);
    char *text = status == FDS_OK && json ? fds__json_text(c.json, JSON_COMPACT) : NULL;
    json_decref(c.json);
    if (status != FDS_OK || !json)
        return status;
    *json = text;
    return text ? FDS_OK : fds__fail_json(err);
}
