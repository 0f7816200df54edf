/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a ledger is stored: the few calls of a database that it needs. The SQL of the ledger is a
 * subset that SQLite and PostgreSQL both understand, with the parameters $1, $2, ... in ascending
 * order. Sums are cast to BIGINT: PostgreSQL would make them decimal numbers.
 *
 *   db.c            chooses the store by the path, and calls it
 *   db_sqlite.c     an SQLite file
 *   db_pg.c         tables of a PostgreSQL database
 *   db_store.h      what a store has to offer
 */
#ifndef FDS_LEDGER_DB_H
#define FDS_LEDGER_DB_H

#include "base/base.h"

typedef struct db db;
typedef struct db_query db_query;

/* A path that begins with "postgresql:" or "postgres:" is the URI of a PostgreSQL database; any other
 * is that of an SQLite file. */
bool db_is_uri(const char *path);
/* The path for messages: a URI without its passwords. */
void db_name(const char *path, char *out, size_t size);

/* DB_CREATE makes a new database, which DB_WRITE and DB_READ open. FDS_ERR_CONFLICT: there is one
 * already; or another process has it open in a way that this access does not allow. */
typedef enum db_access { DB_READ, DB_WRITE, DB_CREATE } db_access;

fds_status db_open(const char *path, db_access access, db **out, fds_error *err);
void db_close(db *d); /* after its queries are freed; NULL is fine */
/* Takes back what DB_CREATE has made outside of transactions, after db_close. */
void db_remove(const char *path);

/* Statements without parameters, separated by semicolons. Types of columns are INTEGER (64 bits), REAL
 * (double), TEXT (ordered by its bytes) and BLOB. */
fds_status db_run(db *d, const char *sql, fds_error *err);
/* From now on the database itself refuses to change or remove rows of this table. */
fds_status db_protect(db *d, const char *table, fds_error *err);
/* One moment of the database until commit or rollback. */
fds_status db_begin(db *d, fds_error *err);
/* When it returns FDS_OK, the changes are on the disk. Otherwise that is not known, until db_settle
 * succeeds: what queries show then is, and stays, on the disk. */
fds_status db_commit(db *d, fds_error *err);
fds_status db_settle(db *d, fds_error *err);
void db_rollback(db *d);
/* Whether others may have written since the last call, because a connection was lost and made again.
 * That happens outside of transactions; within one, what is done fails. */
bool db_was_lost(db *d);
/* Creates the tables in a new database. */
typedef fds_status (*db_make)(db *d, fds_error *err);
/* A copy, as of one moment, in the new SQLite file path, which is not synced. pause, if there is one, is
 * called between parts of it, of how many; others may use the database until it returns. True: no more.
 * The copy has what they have changed. */
typedef bool (*db_pause)(void *user, uint64_t done, uint64_t total);
fds_status db_copy(db *d, db_make make, const char *path, db_pause pause, void *user,
                   fds_error *err);
/* Whether the database's own structures are whole, and are those that make makes. FDS_ERR_CORRUPT says
 * what is wrong. */
fds_status db_check(db *d, db_make make, fds_error *err);

/* is_long: it has no parameters, and may give more rows than memory has room for. */
fds_status db_prepare(db *d, const char *sql, bool is_long, db_query **out, fds_error *err);
void db_query_free(db_query *query); /* NULL is fine */

/* Parameters are numbered from 1; those that are not bound are null. Texts and blobs must stay until
 * db_end. A failure shows in the next db_next. */
void db_bind_int(db_query *query, int at, int64_t value);
void db_bind_real(db_query *query, int at, double value);
void db_bind_text(db_query *query, int at, const char *text);              /* NULL: null */
void db_bind_blob(db_query *query, int at, const void *data, size_t size); /* data NULL: null */
void db_bind_null(db_query *query, int at);

/* The next row, if there is one. */
fds_status db_next(db_query *query, bool *has_row, fds_error *err);
/* Forgets rows and parameters; the query can be used again. */
void db_end(db_query *query);
/* For a query that gives no rows: db_next and db_end. */
fds_status db_do(db_query *query, fds_error *err);

/* Columns of the present row, from 0: 0 or NULL where they are of another type. Pointers are valid
 * until the next db_next or db_end. Texts have a NUL after them; a blob is never NULL. */
typedef enum db_type { DB_NULL, DB_INT, DB_REAL, DB_TEXT, DB_BLOB } db_type;
db_type db_type_of(const db_query *query, int column);
int64_t db_int(const db_query *query, int column);
double db_real(const db_query *query, int column);
const char *db_text(const db_query *query, int column, size_t *size);
const void *db_blob(const db_query *query, int column, size_t *size);

#endif
