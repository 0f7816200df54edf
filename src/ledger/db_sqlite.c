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
#include "ledger/db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

/* The alternative, to be compared: "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA" */
#define DURABLE "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL"

enum { READER_WAIT_MS = 2000 }; /* another reader may be recovering what a crash has left */

struct db {
    sqlite3 *handle;
    db_access access;
    bool is_open; /* in a transaction */
    char path[FDS__PATH_MAX];
};

struct db_query {
    db *db;
    sqlite3_stmt *statement;
    int failed; /* the first code of a failed bind */
};

/* ---- failures ---- */

static fds_status fail_busy(const db *d, fds_error *err) {
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

static fds_status fail(const db *d, int code, fds_error *err) {
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

static fds_status configure(db *d, fds_error *err) {
    sqlite3_extended_result_codes(d->handle, 1);
    sqlite3_db_config(d->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_busy_timeout(d->handle, d->access == DB_READ ? READER_WAIT_MS : 0);
    TRY(db_run(d,
               "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA foreign_keys=ON; "
               "PRAGMA mmap_size=0",
               err));
    if (d->access == DB_READ)
        return db_run(d, "PRAGMA query_only=ON", err);
    TRY(db_run(d, "PRAGMA locking_mode=EXCLUSIVE; " DURABLE, err));
    return db_run(d, "BEGIN IMMEDIATE; COMMIT", err); /* takes the lock, for good */
}

fds_status db_open(const char *path, db_access access, db **out, fds_error *err) {
    if (strlen(path) >= FDS__PATH_MAX)
        return fds__fail(err, FDS_ERR_LIMIT, "%.60s...: the path is too long", path);
    db *d;
    TRY(NEW(d, 1, err));
    fds_status status = access == DB_CREATE ? create_file(path, err) : check_file(path, err);
    if (status != FDS_OK) {
        fds__free(d);
        return status;
    }
    d->access = access;
    snprintf(d->path, sizeof d->path, "%s", path);
    /* a reader may have to recover what a crash has left; SQLite falls back to reading alone */
    int code = sqlite3_open_v2(path, &d->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    status = code == SQLITE_OK ? configure(d, err) : fail(d, code, err);
    if (status == FDS_OK)
        *out = d;
    else
        db_close(d);
    if (status != FDS_OK && access == DB_CREATE)
        unlink(path);
    return status;
}

void db_close(db *d) {
    if (!d)
        return;
    db_rollback(d);
    /* if that fails, the next one to open it does it */
    if (d->handle && d->access != DB_READ)
        sqlite3_exec(d->handle, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    sqlite3_close(d->handle);
    fds__free(d);
}

/* ---- statements without parameters ---- */

fds_status db_run(db *d, const char *sql, fds_error *err) {
    int code = sqlite3_exec(d->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? FDS_OK : fail(d, code, err);
}

fds_status db_protect(db *d, const char *table, fds_error *err) {
    static const char *const events[] = {"UPDATE", "DELETE"};
    for (int i = 0; i < 2; i++) {
        char sql[256];
        snprintf(sql, sizeof sql,
                 "CREATE TRIGGER %s_%s BEFORE %s ON %s BEGIN SELECT RAISE(ABORT, 'rows of %s are "
                 "never changed'); END",
                 table, i ? "delete" : "update", events[i], table, table);
        TRY(db_run(d, sql, err));
    }
    return FDS_OK;
}

fds_status db_begin(db *d, fds_error *err) {
    TRY(db_run(d, d->access == DB_READ ? "BEGIN" : "BEGIN IMMEDIATE", err));
    d->is_open = true;
    return FDS_OK;
}

fds_status db_commit(db *d, fds_error *err) {
    fds_status status = db_run(d, "COMMIT", err);
    if (status != FDS_OK)
        db_rollback(d);
    d->is_open = false;
    return status;
}

fds_status db_forget(db *d, fds_error *err) {
    /* A commit whose sync failed has left its frames in the write-ahead log. */
    int code = sqlite3_wal_checkpoint_v2(d->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return code == SQLITE_OK ? FDS_OK : fail(d, code, err);
}

void db_rollback(db *d) {
    /* a serious failure has rolled it back already */
    if (d->is_open && !sqlite3_get_autocommit(d->handle))
        sqlite3_exec(d->handle, "ROLLBACK", NULL, NULL, NULL);
    d->is_open = false;
}

/* ---- queries ---- */

fds_status db_prepare(db *d, const char *sql, db_query **out, fds_error *err) {
    db_query *q;
    TRY(NEW(q, 1, err));
    q->db = d;
    int code =
        sqlite3_prepare_v3(d->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &q->statement, NULL);
    if (code == SQLITE_OK) {
        *out = q;
        return FDS_OK;
    }
    fds__free(q);
    return fail(d, code, err);
}

void db_query_free(db_query *q) {
    if (q)
        sqlite3_finalize(q->statement);
    fds__free(q);
}

static void note(db_query *q, int code) {
    if (code != SQLITE_OK && !q->failed)
        q->failed = code;
}

void db_bind_int(db_query *q, int at, int64_t value) {
    note(q, sqlite3_bind_int64(q->statement, at, value));
}
void db_bind_real(db_query *q, int at, double value) {
    note(q, sqlite3_bind_double(q->statement, at, value));
}
void db_bind_text(db_query *q, int at, const char *text) {
    note(q, sqlite3_bind_text(q->statement, at, text, -1, SQLITE_STATIC));
}
void db_bind_blob(db_query *q, int at, const void *data, size_t size) {
    note(q, sqlite3_bind_blob64(q->statement, at, data, size, SQLITE_STATIC));
}
void db_bind_null(db_query *q, int at) { note(q, sqlite3_bind_null(q->statement, at)); }

fds_status db_next(db_query *q, bool *has_row, fds_error *err) {
    int code = q->failed ? q->failed : sqlite3_step(q->statement);
    *has_row = code == SQLITE_ROW;
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        return FDS_OK;
    return fail(q->db, code, err);
}

void db_end(db_query *q) {
    sqlite3_reset(q->statement); /* its code is that of the last step again */
    sqlite3_clear_bindings(q->statement);
    q->failed = 0;
}

fds_status db_do(db_query *q, fds_error *err) {
    bool has_row;
    fds_status status = db_next(q, &has_row, err);
    db_end(q);
    return status;
}

db_type db_type_of(const db_query *q, int column) {
    switch (sqlite3_column_type(q->statement, column)) {
    case SQLITE_INTEGER:
        return DB_INT;
    case SQLITE_FLOAT:
        return DB_REAL;
    case SQLITE_TEXT:
        return DB_TEXT;
    case SQLITE_BLOB:
        return DB_BLOB;
    default:
        return DB_NULL;
    }
}

int64_t db_int(const db_query *q, int column) { return sqlite3_column_int64(q->statement, column); }
double db_real(const db_query *q, int column) {
    return sqlite3_column_double(q->statement, column);
}

const char *db_text(const db_query *q, int column, size_t *size) {
    const unsigned char *text = sqlite3_column_text(q->statement, column);
    if (size)
        *size = (size_t)sqlite3_column_bytes(q->statement, column);
    return (const char *)text;
}

/* An empty blob is NULL for SQLite, which is not the same as null. */
const void *db_blob(const db_query *q, int column, size_t *size) {
    const void *data = sqlite3_column_blob(q->statement, column);
    *size = (size_t)sqlite3_column_bytes(q->statement, column);
    return data ? data : "";
}

/* ---- copies ---- */

static fds_status copy_pages(db *d, db *to, fds_error *err) {
    sqlite3_backup *backup = sqlite3_backup_init(to->handle, "main", d->handle, "main");
    if (!backup)
        return fail(to, sqlite3_errcode(to->handle), err);
    int code = sqlite3_backup_step(backup, -1);
    sqlite3_backup_finish(backup);
    return code == SQLITE_DONE ? FDS_OK : fail(to, code, err);
}

fds_status db_copy(db *d, const char *path, fds_error *err) {
    db *to;
    TRY(NEW(to, 1, err));
    to->access = DB_WRITE;
    snprintf(to->path, sizeof to->path, "%s", path);
    int code = sqlite3_open_v2(
        path, &to->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    fds_status status = code == SQLITE_OK ? copy_pages(d, to, err) : fail(to, code, err);
    /* the pages say that there is a write-ahead log; there is none of the copy */
    if (status == FDS_OK)
        status = db_run(to, "PRAGMA journal_mode=DELETE", err);
    sqlite3_close(to->handle);
    fds__free(to);
    return status;
}

/* ---- checks ---- */

static const char *const schema_sql =
    "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1";

/* Tables, indexes and triggers, word by word. */
static fds_status compare_schemas(db *d, db *wanted, fds_error *err) {
    db_query *a = NULL, *b = NULL;
    fds_status status = db_prepare(d, schema_sql, &a, err);
    if (status == FDS_OK)
        status = db_prepare(wanted, schema_sql, &b, err);
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

static fds_status check_pages(db *d, fds_error *err) {
    db_query *q = NULL;
    bool has_row;
    TRY(db_prepare(d, "PRAGMA integrity_check(1)", &q, err));
    fds_status status = db_next(q, &has_row, err);
    const char *found = status == FDS_OK && has_row ? db_text(q, 0, NULL) : "";
    const char *last = strrchr(found, '\n'); /* after a line that says which database */
    if (status == FDS_OK && strcmp(found, "ok") != 0)
        status =
            fds__fail(err, FDS_ERR_CORRUPT, "%s is damaged: %s", d->path, last ? last + 1 : found);
    db_query_free(q);
    return status;
}

fds_status db_check(db *d, fds_status (*make)(db *d, fds_error *err), fds_error *err) {
    db wanted = {.access = DB_READ, .path = "a new database"};
    int code =
        sqlite3_open_v2(":memory:", &wanted.handle,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    fds_status status = code == SQLITE_OK ? make(&wanted, err) : fail(&wanted, code, err);
    if (status == FDS_OK)
        status = check_pages(d, err);
    if (status == FDS_OK)
        status = compare_schemas(d, &wanted, err);
    sqlite3_close(wanted.handle);
    return status;
}
