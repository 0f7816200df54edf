/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of a log as tiles (C2SP tlog-tiles). Tile n of level l has up to 256 hashes; hash i is
 * the root of the complete subtree over the leaves
 *
 *   (256 n + i) 256^l  to  (256 n + i + 1) 256^l, the latter excluded.
 *
 * A tree of size s has floor(s / 256^l) hashes at level l, so its last tile there has
 * floor(s / 256^l) mod 256 of them, and there is none if that is 0. The seven rows between two
 * levels are computed, not stored. As files:
 *
 *   checkpoint                 the newest signed tree head
 *   tile/L/N, tile/L/N.p/W     a full tile; a partial one of W (1 to 255) hashes, 32 bytes each
 *   tile/entries/N[.p/W]       the entries of tile N of level 0: of each its size (u16, big-
 *                              endian), then its bytes
 *
 * L and W are decimal without leading zeroes. N has groups of three digits, all but the last behind
 * an x and followed by a slash, as few as possible: 1234067 is x001/x234/067.
 *
 * A hash, once in a tile, never changes: a wider tile begins with the narrower one. So an append
 * that fails between two writes leaves tiles from which the old tree can still be read, and every
 * size that was signed keeps its proofs.
 */
#include "ledger/log.h"

/* How many hashes the tree has at this level. */
static uint64_t hashes_at(uint64_t size, unsigned level) { return size >> (8 * level); }

/* ---- growing ---- */

fds_status log_tree_open(log_tree *tree, uint64_t size, const log_store *store, fds_error *err) {
    if (size > LOG_SIZE_MAX)
        return fds__fail(err, FDS_ERR_LIMIT, "the log cannot have %llu entries",
                         (unsigned long long)size);
    tree->size = size;
    for (unsigned level = 0; level < LOG_LEVELS; level++) {
        uint64_t count = hashes_at(size, level);
        if (count % LOG_TILE)
            TRY(store->read(store->context, level, count / LOG_TILE, count % LOG_TILE,
                            tree->edge[level], err));
    }
    return FDS_OK;
}

/* Puts the leaf into its tile; a tile that becomes full is written and gives a hash to the level
 * above. */
static fds_status add_leaf(log_tree *tree, const log_hash *leaf, const log_store *store,
                           fds_error *err) {
    log_hash hash = *leaf;
    for (unsigned level = 0; level < LOG_LEVELS; level++) {
        uint64_t place = hashes_at(tree->size, level);
        tree->edge[level][place % LOG_TILE] = hash;
        if (place % LOG_TILE != LOG_TILE - 1)
            break;
        TRY(store->write(store->context, level, place / LOG_TILE, LOG_TILE, tree->edge[level],
                         err));
        hash = log_root(tree->edge[level], LOG_TILE);
    }
    tree->size++;
    return FDS_OK;
}

static fds_status add_leaves(log_tree *tree, const log_hash *leaves, size_t count,
                             const log_store *store, fds_error *err) {
    const uint64_t before = tree->size;
    for (size_t i = 0; i < count; i++)
        TRY(add_leaf(tree, &leaves[i], store, err));
    for (unsigned level = 0; level < LOG_LEVELS; level++) {
        uint64_t now = hashes_at(tree->size, level);
        if (now != hashes_at(before, level) && now % LOG_TILE)
            TRY(store->write(store->context, level, now / LOG_TILE, now % LOG_TILE,
                             tree->edge[level], err));
    }
    return FDS_OK;
}

fds_status log_tree_append(log_tree *tree, const log_hash *leaves, size_t count,
                           const log_store *store, fds_error *err) {
    if (count > LOG_SIZE_MAX - tree->size)
        return fds__fail(err, FDS_ERR_LIMIT, "the log cannot have more than %llu entries",
                         (unsigned long long)LOG_SIZE_MAX);
    OWNED log_tree *before = NULL;
    TRY(NEW(before, 1, err));
    *before = *tree;
    fds_status status = add_leaves(tree, leaves, count, store, err);
    if (status != FDS_OK)
        *tree = *before;
    return status;
}

/* The hashes of a level and, behind them, what the levels below leave over are the nodes of one
 * row, of which only the last is incomplete. The tree over them splits where that of the leaves
 * does. */
log_hash log_tree_root(const log_tree *tree) {
    log_hash row[LOG_TILE], rest = log_root(NULL, 0);
    bool has_rest = false;
    for (unsigned level = 0; level < LOG_LEVELS; level++) {
        size_t count = hashes_at(tree->size, level) % LOG_TILE;
        if (!count)
            continue;
        memcpy(row, tree->edge[level], count * sizeof *row);
        if (has_rest)
            row[count++] = rest;
        rest = log_root(row, count);
        has_rest = true;
    }
    return rest;
}

/* ---- proofs ---- */

/* The tiles of one proof: of each level the one that was read last. From the root down a proof
 * needs one tile of each level, or two: at most one of its subtrees is incomplete, and the tiles at
 * the edge of the tree, which that one needs, are read before the others. */
typedef struct reader {
    const log_store *store;
    uint64_t size;
    struct {
        bool is_read;
        uint64_t n;
        log_hash hashes[LOG_TILE];
    } tiles[LOG_LEVELS];
} reader;

/* The root of the complete subtree of 2^height leaves with this number among those of its height.
 */
static fds_status complete_root(reader *from, unsigned height, uint64_t number, log_hash *out,
                                fds_error *err) {
    unsigned level = height / 8, rows = height % 8;
    uint64_t first = number << rows, n = first / LOG_TILE;
    uint64_t width = MIN(hashes_at(from->size, level) - n * LOG_TILE, LOG_TILE);
    assert(level < LOG_LEVELS && first % LOG_TILE + (UINT64_C(1) << rows) <= width);
    if (!from->tiles[level].is_read || from->tiles[level].n != n) {
        from->tiles[level].is_read = false;
        TRY(from->store->read(from->store->context, level, n, (size_t)width,
                              from->tiles[level].hashes, err));
        from->tiles[level].is_read = true;
        from->tiles[level].n = n;
    }
    *out = log_root(from->tiles[level].hashes + first % LOG_TILE, (size_t)1 << rows);
    return FDS_OK;
}

/* The root over the leaves first .. end-1, a subtree: complete ones of falling height, side by
 * side. */
static fds_status subtree_root(reader *from, uint64_t first, uint64_t end, log_hash *out,
                               fds_error *err) {
    log_hash peaks[LOG_PATH];
    size_t used = 0;
    while (first < end) {
        unsigned height = 63 - (unsigned)__builtin_clzll(end - first);
        TRY(complete_root(from, height, first >> height, &peaks[used++], err));
        first += UINT64_C(1) << height;
    }
    for (; used > 1; used--)
        peaks[used - 2] = log_node(&peaks[used - 2], &peaks[used - 1]);
    *out = peaks[0];
    return FDS_OK;
}

static fds_status reader_create(const log_store *store, uint64_t size, reader **out,
                                fds_error *err) {
    TRY(NEW(*out, 1, err));
    (*out)->store = store;
    (*out)->size = size;
    return FDS_OK;
}

fds_status log_tree_path(const log_store *store, uint64_t size, uint64_t i, log_hash path[LOG_PATH],
                         size_t *length, fds_error *err) {
    if (i >= size || size > LOG_SIZE_MAX)
        return fds__fail(err, FDS_ERR_USAGE, "entry %llu is not in a log of %llu entries",
                         (unsigned long long)i, (unsigned long long)size);
    OWNED reader *from = NULL;
    TRY(reader_create(store, size, &from, err));
    uint64_t first = 0, end = size;
    size_t used = 0;
    while (end - first > 1) {
        uint64_t middle = first + log_split(end - first);
        bool is_left = i < middle;
        TRY(subtree_root(from, is_left ? middle : first, is_left ? end : middle, &path[used++],
                         err));
        *(is_left ? &end : &first) = middle;
    }
    log_reverse(path, used);
    *length = used;
    return FDS_OK;
}

/* RFC 6962, section 2.1.2: from the root down to the subtree that ends where the old tree ends, all
 * subtrees beside the way; that subtree too, unless it is the old tree itself. */
fds_status log_tree_extension(const log_store *store, uint64_t old_size, uint64_t size,
                              log_hash proof[LOG_PATH], size_t *length, fds_error *err) {
    if (old_size > size || size > LOG_SIZE_MAX)
        return fds__fail(err, FDS_ERR_USAGE, "a log of %llu entries has none of %llu in it",
                         (unsigned long long)size, (unsigned long long)old_size);
    *length = 0;
    if (old_size == 0 || old_size == size)
        return FDS_OK;
    OWNED reader *from = NULL;
    TRY(reader_create(store, size, &from, err));
    uint64_t first = 0, end = size;
    size_t used = 0;
    while (end != old_size) {
        uint64_t middle = first + log_split(end - first);
        bool is_left = old_size <= middle;
        TRY(subtree_root(from, is_left ? middle : first, is_left ? end : middle, &proof[used++],
                         err));
        *(is_left ? &end : &first) = middle;
    }
    if (first > 0)
        TRY(subtree_root(from, first, end, &proof[used++], err));
    log_reverse(proof, used);
    *length = used;
    return FDS_OK;
}

/* ---- names of files ---- */

static bool read_digits(const char **at, size_t count, uint64_t *value) {
    for (size_t i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *value = *value * 10 + (uint64_t)(**at - '0');
    }
    return true;
}

/* What follows "tile/": generous, because log_file_parse compares with what log_file_name writes.
 */
static bool read_tile(const char *at, log_file *file) {
    enum { GROUPS = 6 }; /* 18 digits: more than any tile needs, and no overflow */
    uint64_t level = 0, width = 0;
    bool is_partial;
    if (strncmp(at, "entries/", 8) == 0) {
        file->kind = LOG_FILE_ENTRIES;
        at += 8;
    } else if (!read_digits(&at, 1, &level) || *at++ != '/' || level >= LOG_LEVELS)
        return false;
    for (size_t groups = 1; *at == 'x'; groups++) {
        at++;
        if (groups == GROUPS || !read_digits(&at, 3, &file->n) || *at++ != '/')
            return false;
    }
    if (!read_digits(&at, 3, &file->n))
        return false;
    is_partial = strncmp(at, ".p/", 3) == 0;
    at += is_partial ? 3 : 0;
    for (size_t digits = 0; is_partial && *at; digits++)
        if (digits == 3 || !read_digits(&at, 1, &width))
            return false;
    file->level = (unsigned)level;
    file->width = is_partial ? (size_t)width : LOG_TILE;
    return !*at && (!is_partial || (width >= 1 && width < LOG_TILE));
}

/* A tree has that tile if its first hash covers leaves of LOG_SIZE_MAX. */
static bool is_possible(const log_file *file) {
    return file->n <= (hashes_at(LOG_SIZE_MAX, file->level) - 1) / LOG_TILE;
}

bool log_file_parse(const char *path, log_file *out) {
    log_file file = {.kind = LOG_FILE_CHECKPOINT};
    char name[LOG_FILE_NAME];
    if (strncmp(path, "tile/", 5) == 0) {
        file.kind = LOG_FILE_TILE;
        if (!read_tile(path + 5, &file) || !is_possible(&file))
            return false;
    }
    log_file_name(&file, name);
    if (strcmp(name, path) != 0)
        return false;
    *out = file;
    return true;
}

void log_file_name(const log_file *file, char out[LOG_FILE_NAME]) {
    unsigned groups[8];
    size_t count = 0, used;
    if (file->kind == LOG_FILE_CHECKPOINT) {
        strcpy(out, "checkpoint");
        return;
    }
    assert(file->level < LOG_LEVELS && file->width >= 1 && file->width <= LOG_TILE);
    uint64_t rest = file->n;
    do
        groups[count++] = (unsigned)(rest % 1000);
    while ((rest /= 1000) > 0);
    used = (size_t)(file->kind == LOG_FILE_ENTRIES
                        ? snprintf(out, LOG_FILE_NAME, "tile/entries/")
                        : snprintf(out, LOG_FILE_NAME, "tile/%u/", file->level));
    while (count-- > 0)
        used += (size_t)snprintf(out + used, LOG_FILE_NAME - used, count ? "x%03u/" : "%03u",
                                 groups[count]);
    if (file->width < LOG_TILE)
        snprintf(out + used, LOG_FILE_NAME - used, ".p/%zu", file->width);
}
