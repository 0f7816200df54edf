/* SPDX-License-Identifier: Apache-2.0
 *
 * The log, computed again from the leaves of the entries: the tree, its tiles, and the root of each
 * signed checkpoint. */
#include "ledger/ledger.h"

typedef struct {
    int64_t day;
    uint64_t size;
    log_hash root;
} mark;

struct ledger_log_check {
    const fds_ledger *ledger;
    log_tree tree;
    log_store store; /* compares instead of writing */
    log_hash leaves[LOG_TILE];
    size_t leaf_count; /* not in the tree yet */
    mark *marks;       /* checkpoints by day */
    size_t mark_count, mark_capacity, mark_at;
};

/* ---- checkpoints ---- */

static fds_status read_mark(ledger_log_check *c, const db_query *row, const char *vkey,
                            fds_error *err) {
    void *grown = c->marks;
    fds_status status =
        fds__grow(&grown, &c->mark_capacity, c->mark_count + 1, sizeof *c->marks, err);
    c->marks = grown;
    TRY(status);
    const mark *last = c->mark_count ? &c->marks[c->mark_count - 1] : NULL;
    mark m = {.day = db_int(row, 0)};
    const char *note = db_text(row, 2, NULL);
    TRY(log_checkpoint_open(note ? note : "", note ? strlen(note) : 0, vkey, &m.size, &m.root,
                            err));
    if (db_int(row, 1) != (int64_t)m.size || m.size == 0 || (last && m.size <= last->size))
        return ledger_fail(c->ledger, err, "the checkpoint of day %lld is of another size",
                           (long long)m.day);
    c->marks[c->mark_count++] = m;
    return FDS_OK;
}

static fds_status read_marks(ledger_log_check *c, const char *vkey, fds_error *err) {
    db_query *q;
    bool has_row = true;
    TRY(ledger_query(c->ledger, LEDGER_Q_CHECKPOINTS, &q, err));
    fds_status status = FDS_OK;
    while (status == FDS_OK) {
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        status = read_mark(c, q, vkey, err);
    }
    db_end(q);
    if (status == FDS_OK &&
        (!c->mark_count || c->marks[c->mark_count - 1].size != c->ledger->state.size))
        status = ledger_fail(c->ledger, err, "its newest checkpoint is not of all entries");
    return status;
}

/* ---- the tree ---- */

static fds_status compare_tile(void *context, unsigned level, uint64_t n, size_t width,
                               const log_hash *hashes, fds_error *err) {
    const ledger_log_check *c = context;
    log_hash stored[LOG_TILE];
    if (width < LOG_TILE) /* not its last state, or compared at the end */
        return FDS_OK;
    fds_status status =
        c->ledger->store.read(c->ledger->store.context, level, n, width, stored, err);
    if (status == FDS_ERR_NOT_FOUND || (status == FDS_OK && memcmp(stored, hashes, sizeof stored)))
        return ledger_fail(c->ledger, err, "tile %llu of level %u is not that of the entries",
                           (unsigned long long)n, level);
    return status;
}

/* Adds the waiting leaves to the tree; at a checkpoint, its root must be the signed one. */
static fds_status grow_tree(ledger_log_check *c, fds_error *err) {
    TRY(log_tree_append(&c->tree, c->leaves, c->leaf_count, &c->store, err));
    c->leaf_count = 0;
    while (c->mark_at < c->mark_count && c->marks[c->mark_at].size == c->tree.size) {
        const mark *m = &c->marks[c->mark_at++];
        log_hash root = log_tree_root(&c->tree);
        if (!log_equal(&root, &m->root))
            return ledger_fail(c->ledger, err,
                               "the checkpoint of %llu entries is signed for other entries",
                               (unsigned long long)m->size);
    }
    return FDS_OK;
}

fds_status ledger_log_check_add(ledger_log_check *c, const log_hash *leaf, fds_error *err) {
    c->leaves[c->leaf_count++] = *leaf;
    bool is_marked =
        c->mark_at < c->mark_count && c->marks[c->mark_at].size == c->tree.size + c->leaf_count;
    return c->leaf_count == LOG_TILE || is_marked ? grow_tree(c, err) : FDS_OK;
}

/* The tiles that are not full, and that there are no others. */
static fds_status check_tiles(const ledger_log_check *c, fds_error *err) {
    const fds_ledger *l = c->ledger;
    uint64_t wanted = 0, found;
    for (unsigned level = 0; level < LOG_LEVELS; level++) {
        uint64_t hashes = c->tree.size >> (8 * level);
        size_t width = (size_t)(hashes % LOG_TILE);
        log_hash stored[LOG_TILE];
        wanted += (hashes + LOG_TILE - 1) / LOG_TILE;
        if (!width)
            continue;
        fds_status status =
            l->store.read(l->store.context, level, hashes / LOG_TILE, width, stored, err);
        bool is_other =
            status == FDS_ERR_NOT_FOUND ||
            (status == FDS_OK && memcmp(stored, c->tree.edge[level], width * sizeof *stored) != 0);
        if (!is_other)
            TRY(status);
        if (is_other || l->store.read(l->store.context, level, hashes / LOG_TILE, width + 1, stored,
                                      NULL) == FDS_OK)
            return ledger_fail(l, err, "the last tile of level %u is not that of the entries",
                               level);
    }
    TRY(ledger_count_rows(l, LEDGER_Q_COUNT_TILES, &found, err));
    return found == wanted ? FDS_OK
                           : ledger_fail(l, err, "its log has %llu tiles instead of %llu",
                                         (unsigned long long)found, (unsigned long long)wanted);
}

fds_status ledger_log_check_end(ledger_log_check *c, size_t *checkpoints, fds_error *err) {
    TRY(grow_tree(c, err));
    if (c->mark_at != c->mark_count)
        return ledger_fail(c->ledger, err, "a checkpoint is of more entries than there are");
    *checkpoints = c->mark_count;
    return check_tiles(c, err);
}

/* ---- making and freeing ---- */

void ledger_log_check_free(ledger_log_check *c) {
    if (c)
        fds__free(c->marks);
    fds__free(c);
}

fds_status ledger_log_check_create(const fds_ledger *l, const char *vkey, ledger_log_check **out,
                                   fds_error *err) {
    ledger_log_check *c;
    TRY(NEW(c, 1, err));
    c->ledger = l;
    c->store = (log_store){.context = c, .write = compare_tile};
    fds_status status = read_marks(c, vkey, err);
    if (status == FDS_OK)
        *out = c;
    else
        ledger_log_check_free(c);
    return status;
}
