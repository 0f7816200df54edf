/* SPDX-License-Identifier: Apache-2.0
 *
 * The transparency log of a ledger, apart from where it is stored: RFC 6962 hashes and proofs, C2SP
 * tlog-tiles, signed notes, checkpoints and tlog-proofs.
 *
 *   merkle.c    hashes, roots, inclusion and consistency proofs
 *   tiles.c     the tree as tiles of 256 hashes: growing it, proofs from tiles, names of files
 *   note.c      keys, signed notes, checkpoints
 *   proof.c     a tlog-proof as text
 *   text.c      base64, lines and numbers of these texts
 *
 * What is read must be exactly what would be written: a text that means the same but looks
 * different is refused. Nothing here is shared between threads except through log_store.
 */
#ifndef FDS_LEDGER_LOG_H
#define FDS_LEDGER_LOG_H

#include "base/base.h"

/* ---- merkle.c ---- */

typedef struct log_hash {
    uint8_t bytes[32];
} log_hash;

enum { LOG_PATH = 64 }; /* hashes of the longest proof of inclusion, also of one of consistency */
/* Leaves of the largest tree: LOG_PATH is enough for it, and other programs count in int64. */
#define LOG_SIZE_MAX ((uint64_t)INT64_MAX)

log_hash log_leaf(const void *data, size_t size);               /* SHA-256(0 | data) */
log_hash log_node(const log_hash *left, const log_hash *right); /* SHA-256(1 | left | right) */
extern const char log_leaf_mark;                                /* the 0 */
/* Hashes of contents that begin with their mark: many at once are faster. */
void log_marked(const fds__bytes *contents, size_t count, log_hash *out);
bool log_equal(const log_hash *a, const log_hash *b);
/* Of a tree in memory: its root (SHA-256 of nothing if it is empty); the path of leaf i < count,
 * the hash beside the leaf first, which returns its length. */
log_hash log_root(const log_hash *leaves, size_t count);
size_t log_path(const log_hash *leaves, size_t count, size_t i, log_hash path[LOG_PATH]);
/* Whether leaf number i is in the tree of that size and root. */
bool log_includes(const log_hash *leaf, uint64_t i, uint64_t size, const log_hash *path,
                  size_t length, const log_hash *root);
/* Whether the tree of size begins with that of old_size. */
bool log_extends(uint64_t old_size, const log_hash *old_root, uint64_t size, const log_hash *root,
                 const log_hash *proof, size_t length);
/* Leaves of the left subtree of a tree of count > 1: the greatest power of two below count. */
uint64_t log_split(uint64_t count);
void log_reverse(log_hash *hashes, size_t count);

/* ---- tiles.c ---- */

enum { LOG_TILE = 256, LOG_LEVELS = 8 };

/* Where tiles are stored. Tile n of a level has width hashes, at most LOG_TILE. */
typedef struct log_store {
    void *context;
    /* The first width hashes of the tile. FDS_ERR_NOT_FOUND: there is no such tile, or it is
     * narrower. */
    fds_status (*read)(void *context, unsigned level, uint64_t n, size_t width, log_hash *hashes,
                       fds_error *err);
    /* Replaces what is there: a narrower tile, or a wider one that a failed append left. */
    fds_status (*write)(void *context, unsigned level, uint64_t n, size_t width,
                        const log_hash *hashes, fds_error *err);
} log_store;

/* A growing tree: the last tile of each level, in memory. Empty when it is all zeroes. */
typedef struct log_tree {
    uint64_t size;
    log_hash edge[LOG_LEVELS][LOG_TILE]; /* of level l there are (size >> 8l) % 256 */
} log_tree;

/* Reads the edge of a stored tree of that size. */
fds_status log_tree_open(log_tree *tree, uint64_t size, const log_store *store, fds_error *err);
/* Adds leaves and writes the tiles that have changed. After a failure the tree is as before, but
 * the store may hold wider tiles, which the next append replaces. */
fds_status log_tree_append(log_tree *tree, const log_hash *leaves, size_t count,
                           const log_store *store, fds_error *err);
log_hash log_tree_root(const log_tree *tree);
/* Proofs from stored tiles, in the tree of that size; each tile is read with the width that it has
 * in that tree. FDS_ERR_USAGE unless i < size, old_size <= size. */
fds_status log_tree_path(const log_store *store, uint64_t size, uint64_t i, log_hash path[LOG_PATH],
                         size_t *length, fds_error *err);
fds_status log_tree_extension(const log_store *store, uint64_t old_size, uint64_t size,
                              log_hash proof[LOG_PATH], size_t *length, fds_error *err);

typedef enum log_file_kind { LOG_FILE_CHECKPOINT, LOG_FILE_TILE, LOG_FILE_ENTRIES } log_file_kind;

/* A file of tlog-tiles: width is LOG_TILE, or less for a partial one. Of a checkpoint and of
 * entries level is 0; of a checkpoint n and width are 0 too. */
typedef struct log_file {
    log_file_kind kind;
    unsigned level;
    uint64_t n;
    size_t width;
} log_file;

enum { LOG_FILE_NAME = 64 };
/* "tile/0/x001/234.p/7": false unless it is exactly as the specification writes it, and a tree of
 * LOG_SIZE_MAX leaves could have it. */
bool log_file_parse(const char *path, log_file *out);
void log_file_name(const log_file *file, char out[LOG_FILE_NAME]);

/* ---- note.c ---- */

enum { LOG_NAME = 200, LOG_VKEY = 320, LOG_NOTE = 1 << 18 }; /* LOG_NOTE: bytes of a signed note */

/* A signing key: Ed25519, as in Go's note package ("PRIVATE+KEY+name+hash+base64"). */
typedef struct log_key {
    char name[LOG_NAME + 1]; /* the log's origin: no blanks, no plus, UTF-8 */
    uint8_t secret[64];
    char vkey[LOG_VKEY]; /* "name+hash+base64" */
} log_key;

fds_status log_key_make(const char *name, log_key *out, fds_error *err);
/* The file has mode 0600; one that others can read is refused (FDS_ERR_USAGE), and saving never
 * replaces one (FDS_ERR_CONFLICT). */
fds_status log_key_save(const log_key *key, const char *path, fds_error *err);
fds_status log_key_load(const char *path, log_key *out, fds_error *err);
void log_key_forget(log_key *key); /* overwrites it */

/* A checkpoint of a tree as a signed note; the caller fds__frees it. */
fds_status log_checkpoint_sign(const log_key *key, uint64_t size, const log_hash *root, char **note,
                               fds_error *err);
/* FDS_ERR_CORRUPT unless it is signed by vkey and is a checkpoint of that origin. FDS_ERR_USAGE:
 * vkey is not one. */
fds_status log_checkpoint_open(const char *note, size_t length, const char *vkey, uint64_t *size,
                               log_hash *root, fds_error *err);

/* ---- proof.c ---- */

enum { LOG_EXTRA = 1 << 17 }; /* bytes */

/* c2sp.org/tlog-proof@v1. extra: opaque bytes, at most LOG_EXTRA; checkpoint: a signed note. The
 * caller fds__frees *out. */
fds_status log_proof_write(const void *extra, size_t extra_size, uint64_t index,
                           const log_hash *path, size_t length, const char *checkpoint, char **out,
                           fds_error *err);
/* Reads a proof and checks its form, the checkpoint's signature, and that the entry with this leaf
 * hash is included. The leaf comes from the extra bytes (none: size 0): get_leaf makes it, and may
 * refuse. It is called when all but the inclusion is known to be right. The bytes have a NUL after
 * them. */
fds_status log_proof_open(const char *text, size_t size, const char *vkey,
                          fds_status (*get_leaf)(void *context, const uint8_t *extra,
                                                 size_t extra_size, uint64_t index, log_hash *leaf,
                                                 fds_error *err),
                          void *context, fds_error *err);

/* ---- text.c ---- */

/* Base64: standard, with padding. out of encoding has room for (size + 2) / 3 * 4 characters, whose
 * number is returned, and a NUL; out of decoding for length / 4 * 3 bytes. */
size_t log_base64_encode(const void *data, size_t size, char *out);
/* False unless it is exactly what encoding gives. */
bool log_base64_decode(const char *text, size_t length, uint8_t *out, size_t *size);
enum { LOG_HASH64 = 44 }; /* characters of a hash */
bool log_hash_decode(const char *text, size_t length, log_hash *out);

/* A text that is read line by line, and the line that was read last. */
typedef struct log_lines {
    const char *at, *end;
    const char *line;
    size_t length; /* of the line, without its newline */
} log_lines;

bool log_line_next(log_lines *lines); /* false: the text ends before the next newline */
bool log_line_is(const log_lines *lines, const char *text);
/* Removes text from the beginning of the line; false unless it begins so. */
bool log_line_skip(log_lines *lines, const char *text);
/* A decimal number up to LOG_SIZE_MAX without sign or leading zeroes. */
bool log_number_parse(const char *text, size_t length, uint64_t *out);

#endif
