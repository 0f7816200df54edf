/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the PostgreSQL store share:
 *
 *   db_pg.c         transactions, queries, columns
 *   db_pg_link.c    the connection
 *   db_pg_tables.c  whether the tables are those of a ledger; copies of them
 */
#ifndef FDS_LEDGER_DB_PG_H
#define FDS_LEDGER_DB_PG_H

#include "ledger/db_store.h"

#include <libpq-fe.h>

typedef struct {
    db base;
    PGconn *conn;
    db_access access;
    bool is_open;         /* in a transaction */
    bool is_reading;      /* in one that a long query has begun for itself */
    bool was_lost;        /* since db_was_lost was asked */
    unsigned connections; /* so far: prepared statements belong to one of them */
    unsigned queries;     /* so far: their names */
    unsigned queued;
    unsigned long schema;     /* its oid */
    char *uri;                /* may have a password: never for messages */
    char name[FDS__PATH_MAX]; /* the same for messages */
} db_pg_link;

/* ---- db_pg_link.c ---- */

/* d->name is not a URI of PostgreSQL: FDS_ERR_USAGE. */
fds_status db_pg_check_uri(const db_pg_link *d, fds_error *err);
/* With the lock, if it is for writing. */
fds_status db_pg_connect(db_pg_link *d, fds_error *err);
bool db_pg_is_lost(const db_pg_link *d);
/* A connection on which nothing is waited for. Outside of transactions a lost one is made again. */
fds_status db_pg_ready(db_pg_link *d, fds_error *err);
/* Waits for the outcome of all statements that were queued. */
fds_status db_pg_drain(db_pg_link *d, fds_error *err);
/* Statements, once ready. *out, or NULL to drop it: the last result; PQclear it. */
fds_status db_pg_run(db_pg_link *d, const char *sql, PGresult **out, fds_error *err);
/* What has failed; result NULL: libpq itself. */
fds_status db_pg_fail(const db_pg_link *d, const PGresult *result, fds_error *err);

/* ---- db_pg_tables.c ---- */

/* The body of the trigger that protects a table. */
#define DB_PG_PROTECT "BEGIN RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME; END"

/* db_check, db_copy. name: what messages call the database. */
fds_status db_pg_check(db *d, const char *name, db_make make, fds_error *err);
fds_status db_pg_copy(db *d, db_make make, const char *path, db_pause pause, void *user,
                      fds_error *err);

#endif
