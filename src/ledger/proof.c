/* SPDX-License-Identifier: Apache-2.0
 *
 * A proof that a log has an entry, which is verified without the log (C2SP tlog-proof):
 *
 *   c2sp.org/tlog-proof@v1
 *   extra BASE64                what makes the entry, and more; no such line if there is nothing
 *   index NUMBER                of the entry, from 0, decimal
 *   base64(HASH)                one line per hash of its path, the one beside the leaf first
 *                               (an empty line)
 *   CHECKPOINT                  a signed note: see note.c
 *
 * Every line ends in a newline. Nothing protects the extra bytes: they are true only as far as the
 * leaf that is made from them depends on them.
 */
#include "ledger/log.h"

#define HEAD "c2sp.org/tlog-proof@v1"

/* The longest proof: a head, extra bytes, an index of at most 19 digits, a path, a checkpoint. */
enum { MOST = 64 + (LOG_EXTRA + 2) / 3 * 4 + LOG_PATH * (LOG_HASH64 + 1) + LOG_NOTE };

/* ---- writing ---- */

static void add_base64(fds__text *text, const void *data, size_t size) {
    enum { STEP = 768 }; /* a multiple of 3: only the last part has padding */
    char part[STEP / 3 * 4 + 1];
    const uint8_t *at = data;
    for (size_t used = 0; used < size; used += STEP)
        fds__text_add(text, part, log_base64_encode(at + used, MIN(size - used, STEP), part));
}

fds_status log_proof_write(const void *extra, size_t extra_size, uint64_t index,
                           const log_hash *path, size_t length, const char *checkpoint, char **out,
                           fds_error *err) {
    fds__text text = {0};
    if (extra_size > LOG_EXTRA)
        return fds__fail(err, FDS_ERR_LIMIT, "a proof with %zu bytes: at most %d are possible",
                         extra_size, LOG_EXTRA);
    fds__text_print(&text, HEAD "\n");
    if (extra_size) {
        fds__text_print(&text, "extra ");
        add_base64(&text, extra, extra_size);
        fds__text_print(&text, "\n");
    }
    fds__text_print(&text, "index %llu\n", (unsigned long long)index);
    for (size_t i = 0; i < length; i++) {
        add_base64(&text, path[i].bytes, sizeof path[i]);
        fds__text_print(&text, "\n");
    }
    fds__text_print(&text, "\n");
    fds__text_add(&text, checkpoint, strlen(checkpoint));
    fds_status status = fds__text_check(&text, err);
    if (status == FDS_OK)
        *out = text.data;
    else
        fds__free(text.data);
    return status;
}

/* ---- reading ---- */

typedef struct proof {
    uint8_t *extra; /* owned */
    size_t extra_size, length;
    uint64_t index;
    log_hash path[LOG_PATH];
} proof;

static fds_status refuse(fds_error *err, const char *why) {
    return fds__fail(err, FDS_ERR_CORRUPT, "not a proof: %s", why);
}

/* The rest of a line that begins with "extra ". */
static fds_status read_extra(const log_lines *lines, proof *out, fds_error *err) {
    size_t room = lines->length / 4 * 3;
    if (lines->length > (LOG_EXTRA + 2) / 3 * 4)
        return refuse(err, "its extra bytes are too many");
    out->extra = fds__alloc(room + 1);
    if (!out->extra)
        return fds__fail_nomem(err, room + 1);
    if (!log_base64_decode(lines->line, lines->length, out->extra, &out->extra_size) ||
        out->extra_size == 0)
        return refuse(err, "what follows extra in its line must be base64");
    out->extra[out->extra_size] = 0;
    return FDS_OK;
}

/* All that stands above the checkpoint. */
static fds_status read_head(log_lines *lines, proof *out, fds_error *err) {
    if (!log_line_next(lines) || !log_line_is(lines, HEAD))
        return refuse(err, "the first line must be " HEAD);
    bool is_there = log_line_next(lines);
    if (is_there && log_line_skip(lines, "extra ")) {
        TRY(read_extra(lines, out, err));
        is_there = log_line_next(lines);
    }
    if (!is_there || !log_line_skip(lines, "index ") ||
        !log_number_parse(lines->line, lines->length, &out->index))
        return refuse(err, "a line must be: index, and the number of the entry");
    while (log_line_next(lines)) {
        if (lines->length == 0)
            return FDS_OK;
        if (out->length == LOG_PATH)
            return refuse(err, "its path is too long");
        if (!log_hash_decode(lines->line, lines->length, &out->path[out->length++]))
            return refuse(err,
                          "the lines between index and the empty one must be hashes in base64");
    }
    return refuse(err, "there is no empty line, and no checkpoint");
}

fds_status log_proof_open(const char *text, size_t size, const char *vkey,
                          fds_status (*get_leaf)(void *context, const uint8_t *extra,
                                                 size_t extra_size, uint64_t index, log_hash *leaf,
                                                 fds_error *err),
                          void *context, fds_error *err) {
    log_lines lines = {.at = text, .end = text + size};
    proof p = {.extra = NULL};
    log_hash leaf, root;
    uint64_t tree_size = 0;
    if (size > MOST)
        return refuse(err, "it is too long");
    fds_status status = read_head(&lines, &p, err);
    if (status == FDS_OK)
        status = log_checkpoint_open(lines.at, (size_t)(lines.end - lines.at), vkey, &tree_size,
                                     &root, err);
    if (status == FDS_OK)
        status = get_leaf(context, p.extra, p.extra_size, p.index, &leaf, err);
    if (status == FDS_OK && !log_includes(&leaf, p.index, tree_size, p.path, p.length, &root))
        status = refuse(err, "the log that signed the checkpoint has no such entry at this place");
    fds__free(p.extra);
    return status;
}
