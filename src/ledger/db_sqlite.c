/* SPDX-License-Identifier: Apache-2.0
 *
 * A ledger in an SQLite file.
 *
 * One process writes, through one connection that keeps the file locked. While it is open the file
 * has a write-ahead log ("PATH-wal"), synced by every commit; a known defect of write-ahead logs in
 * SQLite up to 3.51 needs two connections that write, so it cannot occur. When the writer closes it,
 * the log is folded into the file, which is then complete by itself: it can be copied, and read by
 * several processes at once, also where they may not write. A reader sees one moment of it until it
 * closes; a writer cannot open it meanwhile. After a crash, the next open of either kind recovers
 * what was committed.
 */
#include "ledger/db_store.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

/* The alternative, to be compared: "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA" */
#define DURABLE "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL"

enum {
    READER_WAIT_MS = 2000, /* another reader may be recovering what a crash has left */
    PAGES_AT_ONCE = 256,   /* of a copy: 1 MiB */
};

typedef struct {
    db base;
    sqlite3 *handle;
    db_access access;
    bool is_open; /* in a transaction */
    char path[FDS__PATH_MAX];
} file_db;

typedef struct {
    db_query base;
    sqlite3_stmt *statement;
    int failed; /* the first code of a failed bind */
} file_query;

/* ---- failures ---- */

static fds_status fail_busy(const file_db *d, fds_error *err) {
    return d->access == DB_READ
               ? fds__fail(
                     err, FDS_ERR_CONFLICT,
                     "%s is open for writing in another process: read a copy of it (fds ledger "
                     "backup), or ask that process",
                     d->path)
               : fds__fail(err, FDS_ERR_CONFLICT,
                           "%s is open in another process: only one can open it for writing, while "
                           "nobody reads it",
                           d->path);
}

static fds_status fail(const file_db *d, int code, fds_error *err) {
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return fds__fail(err, FDS_ERR_NOMEM, "out of memory for %s", d->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fail_busy(d, err);
    case SQLITE_FULL:
        return fds__fail(err, FDS_ERR_IO, "cannot write %s: the disk is full", d->path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return fds__fail(err, FDS_ERR_CORRUPT, "%s: %s", d->path,
                         d->handle ? sqlite3_errmsg(d->handle) : sqlite3_errstr(code));
    default:
        return fds__fail(err, FDS_ERR_IO, "%s: %s (SQLite: %s)", d->path,
                         d->handle ? sqlite3_errmsg(d->handle) : "cannot be opened",
                         sqlite3_errstr(code));
    }
}

/* ---- opening ---- */

static fds_status create_file(const char *path, fds_error *err) {
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return fds__fail(err, FDS_ERR_CONFLICT, "%s exists already: choose another name", path);
    if (fd < 0)
        return fds__fail_errno(err, "create", path);
    close(fd);
    return FDS_OK;
}

/* An empty file is no database: SQLite would take it for a new one. The file is not opened for this:
 * closing it again would release the locks that this process may have on it. */
static fds_status check_file(const char *path, fds_error *err) {
    struct stat about;
    if (stat(path, &about) != 0)
        return fds__fail_errno(err, "open", path);
    if (!S_ISREG(about.st_mode))
        return fds__fail(err, FDS_ERR_FORMAT, "%s is not a file", path);
    if (about.st_size == 0)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s is empty: making it was interrupted. Remove it and its key", path);
    return FDS_OK;
}

static fds_status run_sql(file_db *d, const char *sql, fds_error *err) {
    int code = sqlite3_exec(d->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? FDS_OK : fail(d, code, err);
}

static fds_status configure(file_db *d, fds_error *err) {
    sqlite3_extended_result_codes(d->handle, 1);
    sqlite3_db_config(d->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_busy_timeout(d->handle, d->access == DB_READ ? READER_WAIT_MS : 0);
    TRY(run_sql(d,
                "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA foreign_keys=ON; "
                "PRAGMA mmap_size=0",
                err));
    if (d->access == DB_READ)
        return run_sql(d, "PRAGMA query_only=ON", err);
    TRY(run_sql(d, "PRAGMA locking_mode=EXCLUSIVE; " DURABLE, err));
    return run_sql(d, "BEGIN IMMEDIATE; COMMIT", err); /* takes the lock, for good */
}

static void rollback(db *base) {
    file_db *d = (file_db *)base;
    /* a serious failure has rolled it back already */
    if (d->is_open && !sqlite3_get_autocommit(d->handle))
        sqlite3_exec(d->handle, "ROLLBACK", NULL, NULL, NULL);
    d->is_open = false;
}

static void close_file(db *base) {
    file_db *d = (file_db *)base;
    rollback(base);
    /* if that fails, the next one to open it does it */
    if (d->handle && d->access != DB_READ)
        sqlite3_exec(d->handle, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    sqlite3_close(d->handle);
    fds__free(d);
}

static fds_status open_file(const char *path, db_access access, db **out, fds_error *err) {
    if (strlen(path) >= FDS__PATH_MAX)
        return fds__fail(err, FDS_ERR_LIMIT, "%.60s...: the path is too long", path);
    file_db *d;
    TRY(NEW(d, 1, err));
    fds_status status = access == DB_CREATE ? create_file(path, err) : check_file(path, err);
    if (status != FDS_OK) {
        fds__free(d);
        return status;
    }
    d->base.store = &db_sqlite;
    d->access = access;
    snprintf(d->path, sizeof d->path, "%s", path);
    /* a reader may have to recover what a crash has left; SQLite falls back to reading alone */
    int code = sqlite3_open_v2(path, &d->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    status = code == SQLITE_OK ? configure(d, err) : fail(d, code, err);
    if (status == FDS_OK)
        *out = &d->base;
    else
        close_file(&d->base);
    if (status != FDS_OK && access == DB_CREATE)
        unlink(path);
    return status;
}

static void remove_file(const char *path) { unlink(path); }

/* ---- statements without parameters ---- */

static fds_status run(db *base, const char *sql, fds_error *err) {
    return run_sql((file_db *)base, sql, err);
}

static fds_status protect(db *base, const char *table, fds_error *err) {
    static const char *const events[] = {"UPDATE", "DELETE"};
    for (int i = 0; i < 2; i++) {
        char sql[256];
        snprintf(sql, sizeof sql,
                 "CREATE TRIGGER %s_%s BEFORE %s ON %s BEGIN SELECT RAISE(ABORT, 'rows of %s are "
                 "never changed'); END",
                 table, i ? "delete" : "update", events[i], table, table);
        TRY(run(base, sql, err));
    }
    return FDS_OK;
}

static fds_status begin(db *base, fds_error *err) {
    file_db *d = (file_db *)base;
    TRY(run_sql(d, d->access == DB_READ ? "BEGIN" : "BEGIN IMMEDIATE", err));
    d->is_open = true;
    return FDS_OK;
}

static fds_status commit(db *base, fds_error *err) {
    file_db *d = (file_db *)base;
    fds_status status = run_sql(d, "COMMIT", err);
    if (status != FDS_OK)
        rollback(base);
    d->is_open = false;
    return status;
}

static fds_status settle(db *base, fds_error *err) {
    file_db *d = (file_db *)base;
    /* A commit whose sync failed has left its frames in the write-ahead log. This process does not see
     * them, but the next one would. */
    int code = sqlite3_wal_checkpoint_v2(d->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return code == SQLITE_OK ? FDS_OK : fail(d, code, err);
}

static bool was_lost(db *base) {
    (void)base;
    return false; /* the file is locked for as long as it is open */
}

/* ---- queries ---- */

static fds_status prepare(db *base, const char *sql, bool is_long, db_query **out, fds_error *err) {
    file_db *d = (file_db *)base;
    file_query *q;
    (void)is_long; /* rows come one by one */
    TRY(NEW(q, 1, err));
    q->base.db = base;
    int code =
        sqlite3_prepare_v3(d->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &q->statement, NULL);
    if (code == SQLITE_OK) {
        *out = &q->base;
        return FDS_OK;
    }
    fds__free(q);
    return fail(d, code, err);
}

static void query_free(db_query *base) {
    sqlite3_finalize(((file_query *)base)->statement);
    fds__free(base);
}

static int bind_value(sqlite3_stmt *s, int at, const db_value *v) {
    switch (v->type) {
    case DB_INT:
        return sqlite3_bind_int64(s, at, v->number);
    case DB_REAL:
        return sqlite3_bind_double(s, at, v->real);
    case DB_TEXT:
        return sqlite3_bind_text64(s, at, v->data, v->size, SQLITE_STATIC, SQLITE_UTF8);
    case DB_BLOB:
        return sqlite3_bind_blob64(s, at, v->data, v->size, SQLITE_STATIC);
    default:
        return sqlite3_bind_null(s, at);
    }
}

static void bind(db_query *base, int at, const db_value *value) {
    file_query *q = (file_query *)base;
    int code = bind_value(q->statement, at, value);
    if (code != SQLITE_OK && !q->failed)
        q->failed = code;
}

static fds_status next(db_query *base, bool *has_row, fds_error *err) {
    file_query *q = (file_query *)base;
    int code = q->failed ? q->failed : sqlite3_step(q->statement);
    *has_row = code == SQLITE_ROW;
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        return FDS_OK;
    return fail((file_db *)base->db, code, err);
}

static void end(db_query *base) {
    file_query *q = (file_query *)base;
    sqlite3_reset(q->statement); /* its code is that of the last step again */
    sqlite3_clear_bindings(q->statement);
    q->failed = 0;
}

static fds_status execute(db_query *base, fds_error *err) {
    bool has_row;
    return next(base, &has_row, err);
}

static void column(const db_query *base, int i, db_value *out) {
    sqlite3_stmt *s = ((const file_query *)base)->statement;
    switch (sqlite3_column_type(s, i)) {
    case SQLITE_INTEGER:
        *out = (db_value){.type = DB_INT, .number = sqlite3_column_int64(s, i)};
        break;
    case SQLITE_FLOAT:
        *out = (db_value){.type = DB_REAL, .real = sqlite3_column_double(s, i)};
        break;
    case SQLITE_TEXT:
        *out = (db_value){.type = DB_TEXT, .data = sqlite3_column_text(s, i)};
        out->size = (size_t)sqlite3_column_bytes(s, i);
        break;
    case SQLITE_BLOB:
        *out = (db_value){.type = DB_BLOB, .data = sqlite3_column_blob(s, i)};
        out->size = (size_t)sqlite3_column_bytes(s, i);
        break;
    default:
        *out = (db_value){.type = DB_NULL};
    }
}

/* ---- copies ---- */

/* What this connection writes between two parts SQLite writes to the copy too. */
static fds_status copy_pages(file_db *d, file_db *to, db_pause pause, void *user, fds_error *err) {
    bool is_stopped = false;
    int code = SQLITE_OK;
    TRY(run_sql(to, "PRAGMA synchronous=OFF", err));
    sqlite3_backup *backup = sqlite3_backup_init(to->handle, "main", d->handle, "main");
    if (!backup)
        return fail(to, sqlite3_errcode(to->handle), err);
    while (code == SQLITE_OK && !is_stopped) {
        code = sqlite3_backup_step(backup, pause ? PAGES_AT_ONCE : -1);
        int total = sqlite3_backup_pagecount(backup), left = sqlite3_backup_remaining(backup);
        if (code == SQLITE_OK && pause)
            is_stopped = pause(user, (uint64_t)(total - left), (uint64_t)total);
    }
    sqlite3_backup_finish(backup);
    if (code == SQLITE_DONE)
        return FDS_OK;
    return is_stopped ? fds__fail(err, FDS_ERR_CANCELLED, "copying %s was cancelled", d->path)
                      : fail(to, code, err);
}

static fds_status copy(db *base, db_make make, const char *path, db_pause pause, void *user,
                       fds_error *err) {
    file_db *to;
    (void)make; /* pages have the tables too */
    TRY(create_file(path, err));
    TRY(NEW(to, 1, err));
    to->access = DB_WRITE;
    snprintf(to->path, sizeof to->path, "%s", path);
    int code = sqlite3_open_v2(
        path, &to->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    fds_status status =
        code == SQLITE_OK ? copy_pages((file_db *)base, to, pause, user, err) : fail(to, code, err);
    /* the pages say that there is a write-ahead log; there is none of the copy */
    if (status == FDS_OK)
        status = run_sql(to, "PRAGMA journal_mode=DELETE", err);
    sqlite3_close(to->handle);
    fds__free(to);
    return status;
}

/* ---- checks ---- */

static const char *const schema_sql =
    "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1";

/* Tables, indexes and triggers, word by word. */
static fds_status compare_schemas(file_db *d, file_db *wanted, fds_error *err) {
    db_query *a = NULL, *b = NULL;
    fds_status status = db_prepare(&d->base, schema_sql, false, &a, err);
    if (status == FDS_OK)
        status = db_prepare(&wanted->base, schema_sql, false, &b, err);
    for (bool more = status == FDS_OK; more;) {
        bool has_b = false;
        status = db_next(a, &more, err);
        if (status == FDS_OK)
            status = db_next(b, &has_b, err);
        if (status != FDS_OK)
            break;
        if (more != has_b || (more && strcmp(db_text(a, 0, NULL), db_text(b, 0, NULL)) != 0)) {
            status = fds__fail(err, FDS_ERR_CORRUPT,
                               "%s: its tables, indexes or triggers were changed: %s", d->path,
                               has_b ? db_text(b, 0, NULL) : db_text(a, 0, NULL));
            break;
        }
    }
    db_query_free(a);
    db_query_free(b);
    return status;
}

static fds_status check_pages(file_db *d, fds_error *err) {
    db_query *q = NULL;
    bool has_row;
    TRY(db_prepare(&d->base, "PRAGMA integrity_check(1)", false, &q, err));
    fds_status status = db_next(q, &has_row, err);
    const char *found = status == FDS_OK && has_row ? db_text(q, 0, NULL) : "";
    const char *last = strrchr(found, '\n'); /* after a line that says which database */
    if (status == FDS_OK && strcmp(found, "ok") != 0)
        status =
            fds__fail(err, FDS_ERR_CORRUPT, "%s is damaged: %s", d->path, last ? last + 1 : found);
    db_query_free(q);
    return status;
}

static fds_status check(db *base, db_make make, fds_error *err) {
    file_db *d = (file_db *)base;
    file_db wanted = {.base.store = &db_sqlite, .access = DB_READ, .path = "a new database"};
    int code =
        sqlite3_open_v2(":memory:", &wanted.handle,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    fds_status status = code == SQLITE_OK ? make(&wanted.base, err) : fail(&wanted, code, err);
    if (status == FDS_OK)
        status = check_pages(d, err);
    if (status == FDS_OK)
        status = compare_schemas(d, &wanted, err);
    sqlite3_close(wanted.handle);
    return status;
}

const db_store db_sqlite = {
    .open = open_file,
    .close = close_file,
    .remove = remove_file,
    .run = run,
    .protect = protect,
    .begin = begin,
    .commit = commit,
    .settle = settle,
    .rollback = rollback,
    .was_lost = was_lost,
    .copy = copy,
    .check = check,
    .prepare = prepare,
    .query_free = query_free,
    .bind = bind,
    .next = next,
    .end = end,
    .execute = execute,
    .column = column,
};
