/* SPDX-License-Identifier: Apache-2.0
 * Watching a log from outside: its newest checkpoint must extend the one that was seen last.
 *
 * The kept file is that last checkpoint, a signed note. Where the log was rewritten, the new one goes to
 * "FILE.conflict": two signed notes that contradict each other are a proof that anybody can check. Files
 * of the log come from a folder, or over HTTP by the program curl. */
#include "ledger/ledger.h"

#include <unistd.h>

#define MOST_TEXT "262144" /* bytes of a file of the log: LOG_NOTE */
#define MOST_S "30"

typedef struct {
    const char *from; /* a URL or a folder */
    char part[FDS__PATH_MAX];
} source;

typedef struct {
    uint8_t *note; /* NULL: there is none */
    size_t length;
    uint64_t size;
    log_hash root;
} checkpoint;

static bool is_url(const char *from) {
    return strncmp(from, "http://", 7) == 0 || strncmp(from, "https://", 8) == 0;
}

/* A file of the log; the caller fds__frees *data. */
static fds_status fetch(const source *s, const char *name, uint8_t **data, size_t *size,
                        fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, s->from, name, err));
    if (!is_url(s->from))
        return fds__file_read(path, LOG_NOTE, data, size, err);
    const char *const curl[] = {
        "curl",           "--fail",  "--silent", "--proto", "=http,https", "--max-time", MOST_S,
        "--max-filesize", MOST_TEXT, "--output", s->part,   "--",          path,         NULL};
    fds_error why = {0};
    fds_status status = fds__run_program(curl, ".", &why);
    if (status == FDS_OK)
        status = fds__file_read(s->part, LOG_NOTE, data, size, &why);
    unlink(s->part);
    return status == FDS_OK ? FDS_OK
                            : fds__fail(err, status, "cannot fetch %s: %s", path, why.text);
}

/* The first width hashes of a tile. A log may drop a partial tile once it has the whole one. */
static fds_status read_tile(void *context, unsigned level, uint64_t n, size_t width,
                            log_hash *hashes, fds_error *err) {
    const source *s = context;
    log_file file = {.kind = LOG_FILE_TILE, .level = level, .n = n, .width = width};
    char name[LOG_FILE_NAME];
    OWNED uint8_t *data = NULL;
    size_t size = 0;
    log_file_name(&file, name);
    fds_status status = fetch(s, name, &data, &size, err);
    if (status != FDS_OK && width < LOG_TILE) {
        file.width = LOG_TILE;
        log_file_name(&file, name);
        status = fetch(s, name, &data, &size, NULL);
    }
    TRY(status);
    if (size != file.width * sizeof *hashes)
        return fds__fail(err, FDS_ERR_FORMAT, "%s/%s has %zu bytes instead of %zu", s->from, name,
                         size, file.width * sizeof *hashes);
    memcpy(hashes, data, width * sizeof *hashes);
    return FDS_OK;
}

/* name: where it comes from, for messages. */
static fds_status open_note(checkpoint *c, const char *name, const char *vkey, fds_error *err) {
    fds_error why = {0};
    fds_status status =
        log_checkpoint_open((const char *)c->note, c->length, vkey, &c->size, &c->root, &why);
    return status == FDS_OK ? FDS_OK : fds__fail(err, status, "%s: %s", name, why.text);
}

/* FDS_ERR_CORRUPT unless the log of new begins with that of old. */
static fds_status compare(const source *s, const checkpoint *old, const checkpoint *new,
                          fds_error *err) {
    const log_store store = {.context = (void *)s, .read = read_tile};
    log_hash proof[LOG_PATH];
    size_t length = 0;
    if (new->size < old->size)
        return fds__fail(err, FDS_ERR_CORRUPT,
                         "the log has shrunk: it had %llu entries, and now has %llu",
                         (unsigned long long)old->size, (unsigned long long)new->size);
    TRY(log_tree_extension(&store, old->size, new->size, proof, &length, err));
    if (!log_extends(old->size, &old->root, new->size, &new->root, proof, length))
        return fds__fail(err, FDS_ERR_CORRUPT,
                         "the log of %llu entries does not begin with the %llu that it had: it was "
                         "rewritten, or its tiles are damaged",
                         (unsigned long long)new->size, (unsigned long long)old->size);
    return FDS_OK;
}

static fds_status keep_conflict(const char *kept, const checkpoint *new, fds_error *err) {
    char path[FDS__PATH_MAX + 16];
    fds_error why = *err;
    snprintf(path, sizeof path, "%s.conflict", kept);
    TRY(fds__file_write(path, new->note, new->length, err));
    return fds__fail(err, FDS_ERR_CORRUPT, "%s. Keep %s and %s: both are signed", why.text, kept,
                     path);
}

static fds_status watch(const source *s, const char *vkey, const char *kept, checkpoint *old,
                        checkpoint *new, fds_error *err) {
    if (fds__path_exists(kept)) {
        TRY(fds__file_read(kept, LOG_NOTE, &old->note, &old->length, err));
        TRY(open_note(old, kept, vkey, err));
    }
    TRY(fetch(s, "checkpoint", &new->note, &new->length, err));
    TRY(open_note(new, s->from, vkey, err));
    fds_status status = old->note ? compare(s, old, new, err) : FDS_OK;
    if (status == FDS_ERR_CORRUPT)
        return keep_conflict(kept, new, err);
    TRY(status);
    return fds__file_write(kept, new->note, new->length, err);
}

fds_status fds_log_watch(const char *from, const char *vkey, const char *kept, uint64_t *old_size,
                         uint64_t *size, fds_error *err) {
    source s = {.from = from};
    checkpoint old = {0}, new = {0};
    fds_error own = {0};
    if (!from || !vkey || !kept)
        return fds__fail(err, FDS_ERR_USAGE, "a log, its public key and a file are needed");
    if (strlen(kept) + sizeof ".conflict" > sizeof s.part)
        return fds__fail(err, FDS_ERR_USAGE, "the name of a file is too long: %.100s...", kept);
    snprintf(s.part, sizeof s.part, "%s.part", kept);
    fds_status status = watch(&s, vkey, kept, &old, &new, err ? err : &own);
    *old_size = old.note ? old.size : 0;
    *size = new.size;
    fds__free(old.note);
    fds__free(new.note);
    return status;
}
